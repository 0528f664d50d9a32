"""Adam and AdamW: steps along a mean of gradients, divided by the root of their mean square."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from burn.docstrings import documented_as
from burn.functions.nn.optimizer import adam_step, amsgrad_step
from burn.optim._options import Common, Lists, Rate, Values
from burn.optim.optimizer import Optimizer

__all__ = ["Adam", "AdamW"]


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015, arXiv:1412.6980), as ``torch.optim.Adam``.

    The step is `burn.optim.adam_step`.

    Parameters
    ----------
    parameters : Module, or containers of tensors, optional
        See `Optimizer`.
    learning_rate : float or schedule
        Factor of the step.
    beta1, beta2 : float
        Decay of the moments, in [0, 1).
    epsilon : float
        Added to the square root of the second moment.
    weight_decay : float
        Factor of the parameter that is added to the gradient; `AdamW` decays otherwise.
    amsgrad : bool
        Whether the largest of all second moments divides (Reddi et al., 2018, arXiv:1904.09237).
    **common
        `groups`, `weight_decay_mask`, `clip_value` and `clip_norm` of `Optimizer`.

    Examples
    --------
    >>> import burn
    >>> from burn import nn
    >>> device = burn.Device("cpu").autodiff()
    >>> net = nn.Linear(1, 1, device=device)
    >>> optimizer = burn.optim.Adam(net, learning_rate=0.1)
    >>> x = burn.asarray([[0.0], [1.0]], device="cpu")
    >>> for _ in range(300):
    ...     optimizer.step(nn.functional.mse_loss(net(x), 2 * x + 1).backward())
    >>> round(net.weight.item(), 2), round(net.bias.item(), 2)
    (2.0, 1.0)
    """

    _is_decoupled = False

    def __init__(
        self,
        parameters: Any = None,
        learning_rate: Rate = 1e-3,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        **common: Unpack[Common],
    ) -> None:
        options = {
            "learning_rate": learning_rate,
            "beta1": beta1,
            "beta2": beta2,
            "epsilon": epsilon,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
        }
        super().__init__(parameters, options, **common)

    def _states_of(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        largest = ("largest_moment",) if options["amsgrad"] else ()
        return ("first_moment", "second_moment", *largest)

    def _compute(self, lists: Lists, step: int, options: dict[str, Any]) -> Values:
        parameters, gradients, states = lists
        function: Any = amsgrad_step if options.pop("amsgrad") else adam_step
        new, *moments = function(
            parameters, gradients, *states, step=step, decoupled=self._is_decoupled, **options
        )
        return new, moments


@documented_as(Adam)
class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019, arXiv:1711.05101).

    As ``torch.optim.AdamW``. The step is `burn.optim.adam_step`.

    The other parameters are those of `Adam`.

    Parameters
    ----------
    weight_decay : float
        Each step multiplies the parameter by ``1 - learning_rate * weight_decay``.

    Examples
    --------
    >>> import burn
    >>> from burn import nn
    >>> net = nn.Linear(3, 1, device=burn.Device("cpu").autodiff())
    >>> optimizer = burn.optim.AdamW(
    ...     net,
    ...     burn.optim.schedules.cosine(1e-3, 100),
    ...     groups={"*bias": {"learning_rate": 1e-4}},
    ...     weight_decay_mask=lambda path, x: x.ndim > 1,
    ...     clip_norm=1.0,
    ... )
    >>> optimizer.step((net(burn.ones((4, 3), device="cpu")) ** 2).mean().backward())
    """

    _is_decoupled = True

    def __init__(
        self,
        parameters: Any = None,
        learning_rate: Rate = 1e-3,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 0.01,
        amsgrad: bool = False,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            parameters,
            learning_rate,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            weight_decay=weight_decay,
            amsgrad=amsgrad,
            **common,
        )
