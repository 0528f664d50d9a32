"""What the networks of the examples share: named parameters, and Adam."""

from __future__ import annotations

import burn
from burn import Device, Tensor


class Model:
    """Parameters by name, and what Adam remembers of each.

    Parameters
    ----------
    device : Device
        Where they live: an autodiff device, to train them.
    dtype : str
        Their dtype.
    """

    def __init__(self, device: Device, dtype: str = "float32") -> None:
        self.device = device
        self.dtype = dtype
        self.parameters: dict[str, Tensor] = {}
        self._moments: dict[str, tuple[Tensor, Tensor]] = {}
        self._steps = 0

    def __getitem__(self, name: str) -> Tensor:
        return self.parameters[name]

    def add(self, name: str, *shape: int, deviation: float = 0.0, mean: float = 0.0) -> None:
        """A parameter of normally distributed numbers, or of equal ones."""
        options = {"dtype": self.dtype, "device": self.device}
        if deviation:
            value = burn.random.normal(shape, mean=mean, std=deviation, **options)
        else:
            value = burn.full(shape, mean, **options)
        self.parameters[name] = value.require_grad()
        self._moments[name] = (burn.zeros_like(value), burn.zeros_like(value))

    def update(
        self, gradients: burn.Gradients, learning_rate: float, weight_decay: float = 0.0
    ) -> None:
        """One step of Adam."""
        self._steps += 1
        with burn.no_grad():
            for name, parameter in self.parameters.items():
                value, first, second = burn.optim.adam_step(
                    parameter,
                    parameter.grad(gradients),
                    *self._moments[name],
                    step=self._steps,
                    learning_rate=learning_rate,
                    weight_decay=weight_decay,
                )
                # The new value is where the next step starts: a leaf that gradients are kept for.
                self.parameters[name] = value.detach().require_grad()
                self._moments[name] = (first, second)
