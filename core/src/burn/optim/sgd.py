"""SGD: gradient descent with momentum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from burn.docstrings import documented_as
from burn.errors import ArgumentError
from burn.functions.nn.optimizer import sgd_step
from burn.optim._options import Common, Lists, Rate, Values
from burn.optim.adam import Adam
from burn.optim.optimizer import Optimizer

__all__ = ["SGD"]


@documented_as(Adam)
class SGD(Optimizer):
    """Gradient descent with momentum (Sutskever et al., 2013), as ``torch.optim.SGD``.

    The step is `burn.optim.sgd_step`.

    The other parameters are those of `Adam`.

    Parameters
    ----------
    momentum : float
        Factor of the old velocity.
    dampening : float
        What momentum takes from the factor 1 of the gradient, from the second step on.
    weight_decay : float
        Factor of the parameter that is added to the gradient.
    nesterov : bool
        Whether the gradient is added to the velocity once more; with momentum only.

    Raises
    ------
    ArgumentError
        If `nesterov` is true without momentum.

    Examples
    --------
    >>> import burn
    >>> from burn import nn
    >>> device = burn.Device("cpu").autodiff()
    >>> net = nn.Linear(1, 1, device=device)
    >>> optimizer = burn.optim.SGD(net, learning_rate=0.1, momentum=0.9)
    >>> x = burn.asarray([[0.0], [1.0]], device="cpu")
    >>> for _ in range(200):
    ...     optimizer.step(nn.functional.mse_loss(net(x), 2 * x + 1).backward())
    >>> round(net.weight.item(), 3), round(net.bias.item(), 3)
    (2.0, 1.0)
    """

    def __init__(
        self,
        parameters: Any = None,
        learning_rate: Rate = 1e-3,
        *,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        **common: Unpack[Common],
    ) -> None:
        options = {
            "learning_rate": learning_rate,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
        }
        super().__init__(parameters, options, **common)
        for item in (self._options, *[self._options | given for given in self._groups.values()]):
            if item["nesterov"] and not item["momentum"]:
                raise ArgumentError(
                    "nesterov=True without momentum",
                    hint="Pass momentum too, such as 0.9",
                    operation="SGD",
                )

    def _states_of(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        return ("velocity",) if options["momentum"] else ()

    def _is_first_special(self, options: Mapping[str, Any]) -> bool:
        return bool(options["momentum"] and options["dampening"])

    def _compute(self, lists: Lists, step: int, options: dict[str, Any]) -> Values:
        parameters, gradients, states = lists
        if self._is_first(step):
            options["dampening"] = 0.0  # the first velocity is the gradient
        new, velocities = sgd_step(parameters, gradients, *states, **options)
        return new, [velocities] if states else []
