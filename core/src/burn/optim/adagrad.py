"""Adagrad and RMSprop: gradients divided by the root of a sum or mean of their squares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from burn.docstrings import documented_as
from burn.functions.creation import full_like
from burn.functions.nn.optimizer import adagrad_step, rmsprop_step
from burn.ops.arguments import real_number
from burn.optim._options import Common, Lists, Rate, Values
from burn.optim.optimizer import Optimizer
from burn.optim.sgd import SGD

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["Adagrad", "RMSprop"]


@documented_as(SGD)
class Adagrad(Optimizer):
    """Adagrad (Duchi et al., 2011, JMLR 12), as ``torch.optim.Adagrad``.

    The step is `burn.optim.adagrad_step`.

    The other parameters are those of `SGD`.

    Parameters
    ----------
    learning_rate_decay : float
        The learning rate of step ``n`` is divided by ``1 + (n - 1) * learning_rate_decay``.
    initial_total : float
        The sum of squares before the first step.
    epsilon : float
        Added to the square root of the sum.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1.0, -2.0], device=burn.Device("cpu").autodiff()).require_grad()
    >>> optimizer = burn.optim.Adagrad([x], learning_rate=0.5)
    >>> optimizer.step((x * x).sum().backward())
    >>> x.tolist()
    [0.5, -1.5]
    """

    _state_names = ("total",)

    def __init__(
        self,
        parameters: Any = None,
        learning_rate: Rate = 1e-2,
        *,
        learning_rate_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_total: float = 0.0,
        epsilon: float = 1e-10,
        **common: Unpack[Common],
    ) -> None:
        options = {
            "learning_rate": learning_rate,
            "learning_rate_decay": learning_rate_decay,
            "weight_decay": weight_decay,
            "initial_total": initial_total,
            "epsilon": epsilon,
        }
        super().__init__(parameters, options, **common)

    def _checked_option(self, name: str, value: Any) -> Any:
        if name == "initial_total":
            return real_number(value, name, "Adagrad", least=0.0)
        return super()._checked_option(name, value)

    def _first_states(self, parameter: Tensor, options: Mapping[str, Any]) -> tuple[Tensor, ...]:
        return (full_like(parameter, options["initial_total"]),)

    def _compute(self, lists: Lists, step: int, options: dict[str, Any]) -> Values:
        parameters, gradients, states = lists
        del options["initial_total"]
        new, *totals = adagrad_step(parameters, gradients, *states, step=step, **options)
        return new, totals


@documented_as(SGD)
class RMSprop(Optimizer):
    """RMSprop (Hinton et al., 2012, lecture 6e), as ``torch.optim.RMSprop``.

    The step is `burn.optim.rmsprop_step`.

    The other parameters are those of `SGD`.

    Parameters
    ----------
    alpha : float
        Decay of the means, in [0, 1).
    epsilon : float
        Added to the square root.
    centered : bool
        Whether the square of the mean gradient is subtracted from the mean of squares (Graves,
        2013, arXiv:1308.0850).

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1.0, -2.0], device=burn.Device("cpu").autodiff()).require_grad()
    >>> optimizer = burn.optim.RMSprop([x], learning_rate=0.25, alpha=0.75)
    >>> optimizer.step((x * x).sum().backward())
    >>> x.tolist()
    [0.5, -1.5]
    """

    def __init__(
        self,
        parameters: Any = None,
        learning_rate: Rate = 1e-2,
        *,
        alpha: float = 0.99,
        epsilon: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        **common: Unpack[Common],
    ) -> None:
        options = {
            "learning_rate": learning_rate,
            "alpha": alpha,
            "epsilon": epsilon,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "centered": centered,
        }
        super().__init__(parameters, options, **common)

    def _states_of(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        velocity = ("velocity",) if options["momentum"] else ()
        return ("second_moment", *velocity, *(("first_moment",) if options["centered"] else ()))

    def _compute(self, lists: Lists, step: int, options: dict[str, Any]) -> Values:
        del step
        parameters, gradients, states = lists
        names = self._states_of(options)
        del options["centered"]
        by_name: dict[str, Any] = dict(zip(names, states, strict=True))
        operands = [by_name.get(name) for name in ("second_moment", "velocity", "first_moment")]
        new, *found = rmsprop_step(parameters, gradients, *operands, **options)
        return new, [item for item in found if item is not None]
