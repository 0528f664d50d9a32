"""Adan: Adam with a Nesterov momentum that it estimates from differences of gradients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from burn.docstrings import documented_as
from burn.functions.nn.optimizer import adan_step
from burn.optim._options import Common, Lists, Rate, Values
from burn.optim.adam import Adam
from burn.optim.optimizer import Optimizer

__all__ = ["Adan"]


@documented_as(Adam)
class Adan(Optimizer):
    """Adan (Xie et al., 2022, arXiv:2208.06677).

    The step is `burn.optim.adan_step`.

    The other parameters are those of `Adam`.

    Parameters
    ----------
    beta1, beta2, beta3 : float
        Decay of the means of gradients, of their differences and of squares, in [0, 1).
    weight_decay : float
        Decoupled weight decay.
    proximal : bool
        Whether the weight decay divides the parameter by ``1 + learning_rate * weight_decay`` after
        the step. Else it multiplies it by ``1 - learning_rate * weight_decay`` before.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1.0, -2.0], device=burn.Device("cpu").autodiff()).require_grad()
    >>> optimizer = burn.optim.Adan([x], learning_rate=0.25)
    >>> optimizer.step((x * x).sum().backward())
    >>> x.tolist()
    [0.75, -1.75]
    """

    _state_names = ("previous_gradient", "first_moment", "difference", "second_moment")

    def __init__(
        self,
        parameters: Any = None,
        learning_rate: Rate = 1e-3,
        *,
        beta1: float = 0.98,
        beta2: float = 0.92,
        beta3: float = 0.99,
        epsilon: float = 1e-8,
        weight_decay: float = 0.0,
        proximal: bool = True,
        **common: Unpack[Common],
    ) -> None:
        options = {
            "learning_rate": learning_rate,
            "beta1": beta1,
            "beta2": beta2,
            "beta3": beta3,
            "epsilon": epsilon,
            "weight_decay": weight_decay,
            "proximal": proximal,
        }
        super().__init__(parameters, options, **common)

    def _is_first_special(self, options: Mapping[str, Any]) -> bool:
        del options
        return True  # there is no gradient before the first

    def _compute(self, lists: Lists, step: int, options: dict[str, Any]) -> Values:
        parameters, gradients, states = lists
        previous, *moments = states
        if self._is_first(step):
            previous = gradients
        new, *found = adan_step(parameters, gradients, previous, *moments, step=step, **options)
        return new, [gradients, *found]
