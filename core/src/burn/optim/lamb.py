"""LAMB: steps of Adam whose length is that of the parameter, for large batches."""

from __future__ import annotations

from typing import Any, Unpack

from burn.docstrings import documented_as
from burn.functions.creation import zeros_like
from burn.functions.elementwise import greater, logical_and
from burn.functions.linalg.norms import vector_norm
from burn.functions.nn.optimizer import adam_step, sgd_step
from burn.functions.searching import where
from burn.optim._options import Common, Lists, Rate, Values
from burn.optim.adam import Adam
from burn.optim.optimizer import Optimizer

__all__ = ["Lamb"]


@documented_as(Adam)
class Lamb(Optimizer):
    """LAMB (You et al., 2020, arXiv:1904.00962): Adam with a step length for each parameter.

    The step of Adam, plus ``weight_decay * parameter``, is scaled to the norm of the parameter;
    where one of both is 0 it is not scaled.

    The other parameters are those of `Adam`.

    Parameters
    ----------
    learning_rate : float or schedule
        Factor of the step: the length of a step relative to that of the parameter.
    weight_decay : float
        Factor of the parameter that is added to the step, before it is scaled.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([3.0, 4.0], device=burn.Device("cpu").autodiff()).require_grad()
    >>> optimizer = burn.optim.Lamb([x], learning_rate=0.1)
    >>> optimizer.step((x * x).sum().backward())  # a step of length 0.5
    >>> round(burn.linalg.vector_norm(x.detach() - burn.asarray([3.0, 4.0])).item(), 4)
    0.5
    """

    _state_names = ("first_moment", "second_moment")
    _is_one_op = False

    def __init__(
        self,
        parameters: Any = None,
        learning_rate: Rate = 1e-3,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        weight_decay: float = 0.01,
        **common: Unpack[Common],
    ) -> None:
        options = {
            "learning_rate": learning_rate,
            "beta1": beta1,
            "beta2": beta2,
            "epsilon": epsilon,
            "weight_decay": weight_decay,
        }
        super().__init__(parameters, options, **common)

    def _compute(self, lists: Lists, step: int, options: dict[str, Any]) -> Values:
        parameters, gradients, states = lists
        rate, decay = options.pop("learning_rate"), options.pop("weight_decay")
        zeros = [zeros_like(x) for x in parameters]
        # From 0, against the gradient: the direction of the step.
        opposite, *moments = adam_step(
            zeros, gradients, *states, step=step, learning_rate=1.0, weight_decay=0.0, **options
        )
        changes = []
        for x, tensor in zip(parameters, opposite, strict=True):
            change = x * decay - tensor
            length, size = vector_norm(x), vector_norm(change)
            scaled = logical_and(greater(length, 0.0), greater(size, 0.0))
            changes.append(change * where(scaled, length / where(scaled, size, 1.0), 1.0))
        new, _ = sgd_step(parameters, changes, learning_rate=rate)
        return new, moments
