"""Draws of ops along one axis or several: reductions, scans, sorts, softmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from burn.aliases import Shape
from burn.dtype import Kind
from burn.ops import Role
from burn.testing.draws._draw import Draw, Sort, draws, is_array, typical_sample
from burn.testing.op_samples import INDEX_DTYPE, Array, Sample, sample

__all__ = ["draw"]

_ALONG: Final = (
    *("cumsum", "cumprod", "cummax", "cummin", "argmax", "argmin", "argsort", "sort"),
    *("softmax", "softmax_grad", "log_softmax", "log_softmax_grad", "quiet_softmax"),
)


@draws(*_ALONG)
def draw(draw: Draw) -> Sample | None:
    """A sample of operands of one shape, with the attributes of another sample but for the axes."""
    typical = typical_sample(draw)
    if typical is None:
        return None
    shape = _shape(draw)
    attributes = dict(typical.attributes)
    axis = draw.axis(shape)
    for name, attribute in draw.op.attributes.items():
        if attribute.role is Role.AXIS:
            attributes[name] = axis = _long_axis(draw, shape)
        elif attribute.role is Role.AXES:
            attributes[name] = _axes(draw, shape)
            axis = (*attributes[name], 0)[0]
        elif attribute.role is Role.FLAG:
            attributes[name] = draw.chance(0.5)
    operands = [
        draw.like(operand, shape) if is_array(operand) else operand for operand in typical.operands
    ]
    if draw.number % 2 == 0 and draw.op.name in _TO_THE_END:
        decided = _TO_THE_END[draw.op.name](operands[0], axis)
        operands = [draw.view(decided, repeats=False)]
    elif draw.op.name in ("prod", "cumprod") and draw.kind is Kind.FLOAT:
        operands = [draw.floats(*shape, low=0.95, high=1.05)]  # no product is infinite, or 0
    elif draw.op.name in ("prod", "cumprod") and draw.kind is Kind.COMPLEX:
        operands = [np.exp(1j * draw.floats(*shape, low=-3.0, high=3.0))]
    elif draw.op.name in _SORTS and draw.sort is not Sort.RANK:
        operands[0] = np.trunc(operands[0]).astype(operands[0].dtype)
        draw.has_ties = True
    return sample("", *operands, differentiable=typical.differentiable, **attributes)


def _shape(draw: Draw) -> Shape:
    shape = draw.shape(least=1, empty=False)
    if draw.op.name in _SORTS and shape == (1025,):
        return (2500,)  # more than libraries sort in one block
    return shape if draw.op.name != "softmax" or draw.sort is not Sort.HUGE else (70_001, 2)


def _last_alone(x: Array, axis: int) -> Array:
    """False but for the last one along an axis."""
    result = np.zeros(x.shape, x.dtype)
    np.moveaxis(result, axis, 0)[-1:] = 1
    return result


_TO_THE_END: Final[dict[str, Callable[[Array, int], Array]]] = {
    **dict.fromkeys(("max", "argmax", "cummax"), np.sort),
    **dict.fromkeys(("min", "argmin", "cummin"), lambda x, axis: np.flip(np.sort(x, axis), axis)),
    "any": _last_alone,
    "all": lambda x, axis: (_last_alone(x, axis) == 0).astype(x.dtype),
}
"""Ops whose result no other element than the last one of a row may decide."""

_SORTS: Final = ("argsort", "argtopk", "sort")
"""Ops to which it matters what happens to equal elements."""


def _long_axis(draw: Draw, shape: Shape) -> int:
    """The longest axis, where that is what is special; else any."""
    if draw.sort in (Sort.LONG, Sort.HUGE):
        return max(range(len(shape)), key=shape.__getitem__)
    return draw.axis(shape)


def _axes(draw: Draw, shape: Shape) -> tuple[int, ...]:
    if draw.sort is Sort.LONG:
        return (_long_axis(draw, shape),)
    if draw.sort is Sort.HUGE:
        return tuple(range(len(shape))) if draw.number == 2 else (len(shape) - 1,)
    return draw.axes(shape)


@draws("argtopk")
def _(draw: Draw) -> Sample | None:
    shape = _shape(draw)
    axis = _long_axis(draw, shape)
    k = draw.integer(0, min(shape[axis], 70))
    attributes: dict[str, Any] = {"k": k, "axis": axis, "largest": draw.chance(0.5)}
    return sample("", draw.values(*shape), dtype=INDEX_DTYPE, **attributes)


@draws("glu")
def _(draw: Draw) -> Sample | None:
    shape = list(draw.shape(least=1, empty=False))
    axis = draw.axis(tuple(shape))
    shape[axis] = 2 * -(-shape[axis] // 2)
    return sample("", draw.floats(*shape), axis=axis)


@draws("vecdot", "cross")
def _(draw: Draw) -> Sample | None:
    """The axis is one of the shape to which both broadcast; neither broadcasts along it."""
    shape = list(draw.shape(least=1, empty=False))
    axis = draw.axis(tuple(shape))
    if draw.op.name == "cross":
        shape[axis] = 3

    def operand() -> Any:
        kept = [
            1 if number != axis and draw.chance(0.3) else length
            for number, length in enumerate(shape)
        ]
        return draw.floats(*kept[draw.integer(0, axis) if draw.chance(0.3) else 0 :])

    return sample("", draw.floats(*shape), operand(), axis=axis)


@draws("rfft", "irfft", "cfft")
def _(draw: Draw) -> Sample | None:
    """Lengths with large prime factors too, and signals that are cut off or filled up."""
    shape = list(draw.shape(least=1, empty=False))
    axis = draw.axis(tuple(shape))
    if draw.sort is Sort.LONG:
        shape = [2, 2]
        axis = draw.axis((2, 2))
        shape[axis] = draw.among(17, 31, 64, 97, 101)
    attributes: dict[str, Any] = {"axis": axis, "n": shape[axis]}
    if draw.chance(0.5):
        attributes["n"] = max(1, shape[axis] + draw.integer(-2, 3))
    if draw.op.name == "cfft":
        attributes["inverse"] = draw.chance(0.5)
    operands = [draw.floats(*shape) for _ in draw.op.operands]
    return sample("", *operands, **attributes)


@draws("cross_entropy", "nll_loss")
def _(draw: Draw) -> Sample | None:
    shape = draw.shape(least=1, empty=False)
    axis = _long_axis(draw, shape)
    targets = draw.integers(*shape[:axis], *shape[axis + 1 :], low=0, high=shape[axis])
    return sample("", draw.floats(*shape, low=-9.0, high=0.0), targets, axis=axis)
