"""Loss scaling: gradients of float16 that neither underflow nor spoil parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from burn.devices import outside_of_traces
from burn.dispatch import Gradients
from burn.dtype import float32, int32
from burn.errors import ArgumentError, OperandTypeError
from burn.functions.creation import asarray
from burn.functions.elementwise import clip, isfinite
from burn.functions.gradient import global_norm
from burn.functions.normalize import check_tensor
from burn.functions.searching import where
from burn.ops.arguments import as_integer, real_number
from burn.optim._traced import refuse_when_compiled
from burn.tree import map as map_leaves

if TYPE_CHECKING:
    from burn.devices import Device
    from burn.optim.optimizer import Optimizer
    from burn.tensor.tensor import Tensor

__all__ = ["LossScaler"]

_SMALLEST: Final = 2.0**-16
"""The smallest factor: from 0 there would be no way back."""


class LossScaler:
    """A factor of the loss that keeps the gradients of float16 in range.

    The gradients of a scaled loss are divided by the factor before an optimizer's step. If one of
    them is not finite, no parameter and no state of the optimizer changes, and the factor becomes
    smaller. After many steps without that it becomes larger. All of it is decided on the device:
    nothing is read, so the program does not wait for the device. Losses that are scaled before the
    steps have one factor, and so do several optimizers after one pass: the factor changes when the
    next loss is scaled.

    Parameters
    ----------
    scale : float
        The first factor.
    growth, backoff : float
        What multiplies the factor after `interval` finite steps, at least 1; and after a step that
        is not finite, in (0, 1).
    interval : int
        Number of finite steps in a row after which the factor grows.

    Notes
    -----
    Micikevicius et al., 2018, arXiv:1710.03740, section 3.2. A step that is left out counts for the
    optimizer's number of steps, which the host counts, and so for Adam's bias correction and for
    schedules. bfloat16 needs no scaling.

    Examples
    --------
    >>> import burn
    >>> from burn import nn
    >>> net = nn.Linear(2, 1, device=burn.Device("cpu").autodiff())
    >>> net = net.set_precision(nn.Precision("float16"))
    >>> optimizer, scaler = burn.optim.Adam(net), burn.optim.LossScaler(1024.0)
    >>> loss = (net(burn.ones((4, 2), device="cpu")) ** 2).mean()
    >>> scaler.step(optimizer, scaler.scale(loss).backward())
    >>> scaler.factor, scaler.skipped
    (1024.0, 0)
    """

    def __init__(
        self,
        scale: float = 65536.0,
        *,
        growth: float = 2.0,
        backoff: float = 0.5,
        interval: int = 2000,
    ) -> None:
        name = "LossScaler"
        first = real_number(scale, "scale", name, above=0.0)
        self._growth = real_number(growth, "growth", name, least=1.0)
        self._backoff = real_number(backoff, "backoff", name, above=0.0, below=1.0)
        self._interval = as_integer(interval, "interval", name, least=1)
        self._saved = {"scale": first, "finite_steps": 0, "skipped": 0}
        self._state: dict[str, Tensor] = {}

    def scale(self, loss: Tensor) -> Tensor:
        """A loss times the factor.

        Parameters
        ----------
        loss : Tensor
            Of any float dtype.

        Returns
        -------
        Tensor
            Of float32 or wider: call ``backward()`` on it.
        """
        check_tensor(loss, "loss", "LossScaler.scale")
        if loss.dtype.itemsize < float32.itemsize:
            loss = loss.astype(float32)
        state = self._on(loss)
        state["used"].assign(state["scale"])
        return loss * state["scale"].astype(loss.dtype)

    def step(self, optimizer: Optimizer, gradients: Any) -> None:
        """A step of an optimizer with the gradients of a scaled loss, if all are finite.

        Parameters
        ----------
        optimizer : Optimizer
            What updates the parameters.
        gradients : Gradients, or containers of tensors
            What ``scaler.scale(loss).backward()`` returned.

        Returns
        -------
        None
            The factor is the next one.

        Raises
        ------
        OperandTypeError
            If no loss was scaled before.
        """
        state = self._state
        if not state:
            raise OperandTypeError(
                "these gradients are not of a scaled loss",
                hint="Call scaler.scale(loss).backward()",
                operation="LossScaler.step",
            )
        inverse = 1.0 / state["used"]

        def unscaled(gradient: Tensor) -> Tensor:
            # The product is float32: of a large factor the inverse is 0 in float16.
            return (gradient * inverse).astype(gradient.dtype)

        if isinstance(gradients, Gradients):
            gradients = gradients.map(unscaled)
        else:
            gradients = map_leaves(unscaled, gradients)
        is_finite = isfinite(global_norm(gradients, ord=float("inf")))
        optimizer.step(gradients, where=is_finite)
        finite_steps = where(is_finite, state["finite_steps"] + 1, 0)
        grows = finite_steps >= self._interval
        grown = where(grows, state["scale"] * self._growth, state["scale"])
        grown = where(isfinite(grown), grown, state["scale"])
        smaller = clip(state["used"] * self._backoff, min=_SMALLEST)
        state["scale"].assign(where(is_finite, grown, smaller))
        state["finite_steps"].assign(where(grows, 0, finite_steps))
        state["skipped"].assign(where(is_finite, state["skipped"], state["skipped"] + 1))

    def state_dict(self) -> dict[str, Any]:
        """The factor, and the numbers of steps, for `load_state_dict`.

        Returns
        -------
        dict of str to number
            Reading them waits for the device.
        """
        state = self._state
        return {name: state[name].item() if state else value for name, value in self._saved.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned.

        Parameters
        ----------
        state : dict of str to number
            Of another scaler.

        Returns
        -------
        None
            The next loss is scaled by the factor of that scaler.

        Raises
        ------
        ArgumentError
            If it is no such dict.
        """
        refuse_when_compiled("a state is loaded", "LossScaler.load_state_dict", "Load it outside")
        if not isinstance(state, Mapping) or set(state) != set(self._saved):
            raise ArgumentError(
                "this is no state of a LossScaler",
                hint="Pass what state_dict() returned",
                operation="LossScaler.load_state_dict",
            )
        self._saved = dict(state)
        if self._state:
            for name, value in self._first_on(self._state["scale"].device).items():
                self._state[name].assign(value)

    def _on(self, loss: Tensor) -> dict[str, Tensor]:
        """The factor and the counts, on the hardware of a loss.

        A compiled function reads and writes these tensors, which are made outside of its trace.
        """
        device = loss.device.untraced.hardware
        with outside_of_traces():
            if not self._state:
                self._state = self._first_on(device)
            elif self._state["scale"].device.untraced is not device:
                for x in self._state.values():
                    x.assign(x.to_device(device))
        return self._state

    def _first_on(self, device: Device) -> dict[str, Tensor]:
        """What was saved, as tensors."""
        state = {
            name: asarray(value, dtype=float32 if name == "scale" else int32, device=device)
            for name, value in self._saved.items()
        }
        state["used"] = state["scale"] + 0.0  # by which the last loss was scaled
        return state

    @property
    def factor(self) -> float:
        """The factor of the next loss. Reading it waits for the device."""
        return float(self.state_dict()["scale"])

    @property
    def skipped(self) -> int:
        """Number of steps that were left out. Reading it waits for the device."""
        return int(self.state_dict()["skipped"])
