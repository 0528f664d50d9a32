"""Draws of ops along one axis or several: reductions, scans, sorts, softmax."""

from __future__ import annotations

from typing import Any, Final

from burn.ops import Role
from burn.testing.draws._draw import Draw, Sort, draws, is_array, typical_sample
from burn.testing.op_samples import INDEX_DTYPE, Sample, sample

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
    shape = draw.shape(least=1, empty=False)
    attributes = dict(typical.attributes)
    for name, attribute in draw.op.attributes.items():
        if attribute.role is Role.AXIS:
            attributes[name] = _long_axis(draw, shape) if draw.chance(0.7) else draw.axis(shape)
        elif attribute.role is Role.AXES:
            attributes[name] = _long_axes(draw, shape) if draw.chance(0.7) else draw.axes(shape)
        elif attribute.role is Role.FLAG:
            attributes[name] = draw.chance(0.5)
    operands = [draw.like(one, shape) if is_array(one) else one for one in typical.operands]
    return sample("", *operands, differentiable=typical.differentiable, **attributes)


def _long_axis(draw: Draw, shape: tuple[int, ...]) -> int:
    """The longest axis, where that is what is special; else any."""
    if draw.sort in (Sort.LONG, Sort.HUGE):
        return max(range(len(shape)), key=shape.__getitem__)
    return draw.axis(shape)


def _long_axes(draw: Draw, shape: tuple[int, ...]) -> tuple[int, ...]:
    if draw.sort is Sort.LONG:
        return (_long_axis(draw, shape),)
    if draw.sort is Sort.HUGE:
        return draw.among((0,), (len(shape) - 1,), tuple(range(len(shape))))
    return draw.axes(shape)


@draws("argtopk")
def _(draw: Draw) -> Sample | None:
    shape = draw.shape(least=1, empty=False)
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
