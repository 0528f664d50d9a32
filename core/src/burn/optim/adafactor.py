"""Adafactor: steps like those of Adam, with second moments in two factors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from burn.docstrings import documented_as
from burn.dtype import float32
from burn.functions.creation import full, zeros
from burn.functions.data_type import finfo
from burn.functions.elementwise import maximum, minimum, sqrt, square
from burn.functions.linalg.linear_algebra import matmul
from burn.functions.linalg.norms import vector_norm
from burn.functions.nn.optimizer import adagrad_step, sgd_step
from burn.functions.statistical import mean
from burn.ops.arguments import real_number
from burn.optim._options import Common, Lists, Rate, Values
from burn.optim.adam import AdamW
from burn.optim.optimizer import Optimizer

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.tensor.tensor import Tensor

__all__ = ["Adafactor"]


@documented_as(AdamW)
class Adafactor(Optimizer):
    """Adafactor (Shazeer and Stern, 2018, arXiv:1804.04235), as ``torch.optim.Adafactor``.

    Of the squares of the gradients of a matrix it keeps the means of its rows and of its columns,
    whose product stands for their moving means; it has no first moment.

    The other parameters are those of `AdamW`.

    Parameters
    ----------
    learning_rate : float or schedule
        Largest factor of the step. Step t has ``min(learning_rate, 1 / sqrt(t))`` times the root
        mean square of the parameter.
    beta2_decay : float
        Of step t the squares count ``t ** beta2_decay``; at most 0.
    epsilon : float, optional
        Least root of a moving mean. By default the distance from 1 to the next number.
    least_scale : float
        What the root mean square of a parameter is at least.
    clip_threshold : float
        Root mean square that a step is scaled down to, before it has the factor.

    Examples
    --------
    >>> import burn
    >>> net = burn.nn.Linear(64, 32, device=burn.Device("cpu").autodiff())
    >>> optimizer = burn.optim.Adafactor(net)
    >>> optimizer.step((net(burn.ones((4, 64), device="cpu")) ** 2).mean().backward())
    >>> optimizer.state_dict()["weight.row_moment"].shape
    (32, 1)
    """

    _state_names = ("row_moment", "column_moment")
    _is_one_op = False

    def __init__(
        self,
        parameters: Any = None,
        learning_rate: Rate = 1e-2,
        *,
        beta2_decay: float = -0.8,
        epsilon: float | None = None,
        least_scale: float = 1e-3,
        clip_threshold: float = 1.0,
        weight_decay: float = 0.0,
        **common: Unpack[Common],
    ) -> None:
        options = {
            "learning_rate": learning_rate,
            "beta2_decay": beta2_decay,
            "epsilon": epsilon,
            "least_scale": least_scale,
            "clip_threshold": clip_threshold,
            "weight_decay": weight_decay,
        }
        super().__init__(parameters, options, **common)

    def _checked_option(self, name: str, value: Any) -> Any:
        if name == "beta2_decay":
            return real_number(value, name, "Adafactor", most=0.0, above=-math.inf)
        if name == "epsilon" and value is None:
            return None
        if name in ("least_scale", "clip_threshold"):
            return real_number(value, name, "Adafactor", above=0.0)
        return super()._checked_option(name, value)

    def _state_shapes(self, shape: Shape, options: Mapping[str, Any]) -> tuple[Shape, ...]:
        """Of vectors, and of numbers, the first state has all moments, and the second is empty."""
        del options
        if len(shape) < 2:
            return shape, (0,)
        return (*shape[:-1], 1), (*shape[:-2], 1, shape[-1])

    def _compute(self, lists: Lists, step: int, options: dict[str, Any]) -> Values:
        parameters, gradients, states = lists
        rows, columns = states
        like = parameters[0]
        kind: dict[str, Any] = {
            "dtype": float32 if like.dtype.itemsize < float32.itemsize else like.dtype,
            "device": like.device,
        }
        rate, inverse = _rate_and_inverse_step(options["learning_rate"], step, kind)
        share = inverse ** -options["beta2_decay"]
        factor = minimum(rate, sqrt(inverse))
        kept = 1.0 - rate * options["weight_decay"]
        epsilon = options["epsilon"]
        least = finfo(like.dtype).eps if epsilon is None else epsilon
        results = []
        for x, gradient, *old in zip(parameters, gradients, rows, columns, strict=True):
            value, g = x.astype(kind["dtype"], copy=False), gradient.astype(kind["dtype"])
            row, column, estimate = _moments(square(g), old, share, least)
            change = g / sqrt(maximum(estimate, least * least))
            length = math.sqrt(max(x.size, 1))
            excess = vector_norm(change) / (length * options["clip_threshold"])
            scale = maximum(vector_norm(value) / length, options["least_scale"])
            change = change * (factor * scale / maximum(excess, 1.0))
            found = (value * kept - change, row, column)
            results.append([item.astype(x.dtype, copy=False) for item in found])
        new, *states = ([*column] for column in zip(*results, strict=True))
        return new, states


def _moments(
    squares: Tensor, states: list[Tensor], share: Tensor, least: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The moving means of rows and of columns, and what they say of each element."""
    row, column = states
    if squares.ndim < 2:
        row = _moved(row, squares, share)
        return row, column, row
    row = _moved(row, mean(squares, axis=-1, keepdims=True), share)
    column = _moved(column, mean(squares, axis=-2, keepdims=True), share)
    total = maximum(mean(row, axis=-2, keepdims=True), least)
    return row, column, matmul(row, column) / total


def _moved(old: Tensor, new: Tensor, share: Tensor) -> Tensor:
    """A moving mean, of which what is new has a share."""
    old = old.astype(new.dtype, copy=False)
    return old + (new - old) * share


def _rate_and_inverse_step(rate: Any, step: Any, kind: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """The learning rate, and 1 / step, as tensors: in a program both are known when it runs.

    The ops of optimizers take them as numbers that a run gives. From 0 along a gradient of -1 plain
    descent goes by the rate, and Adagrad, whose rate decays as 1 / step, by that.
    """
    zero, one = zeros((), **kind), full((), -1.0, **kind)
    (value,), _ = sgd_step([zero], [one], learning_rate=rate)
    (inverse,), _ = adagrad_step(
        [zero], [one], [zero], step=step, learning_rate=1.0, learning_rate_decay=1.0, epsilon=0.0
    )
    return value, inverse
