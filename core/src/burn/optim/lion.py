"""Lion: steps of one length along the sign of a mean of gradients."""

from __future__ import annotations

from typing import Any, Unpack

from burn.docstrings import documented_as
from burn.functions.nn.optimizer import lion_step
from burn.optim._options import Common, Lists, Rate, Values
from burn.optim.adam import AdamW
from burn.optim.optimizer import Optimizer

__all__ = ["Lion"]


@documented_as(AdamW)
class Lion(Optimizer):
    """Lion (Chen et al., 2023, arXiv:2302.06675).

    The step is `burn.optim.lion_step`.

    The other parameters are those of `AdamW`.

    Parameters
    ----------
    learning_rate : float or schedule
        Length of the step of each element.
    beta1 : float
        Factor of the moment in the step, in [0, 1).
    beta2 : float
        Decay of the moment, in [0, 1).

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1.0, -2.0], device=burn.Device("cpu").autodiff()).require_grad()
    >>> optimizer = burn.optim.Lion([x], learning_rate=0.25)
    >>> optimizer.step((x * x).sum().backward())
    >>> x.tolist()
    [0.75, -1.75]
    """

    _state_names = ("moment",)

    def __init__(
        self,
        parameters: Any = None,
        learning_rate: Rate = 1e-4,
        *,
        beta1: float = 0.9,
        beta2: float = 0.99,
        weight_decay: float = 0.0,
        **common: Unpack[Common],
    ) -> None:
        options = {
            "learning_rate": learning_rate,
            "beta1": beta1,
            "beta2": beta2,
            "weight_decay": weight_decay,
        }
        super().__init__(parameters, options, **common)

    def _compute(self, lists: Lists, step: int, options: dict[str, Any]) -> Values:
        del step
        parameters, gradients, states = lists
        new, *moments = lion_step(parameters, gradients, *states, **options)
        return new, moments
