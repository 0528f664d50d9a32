"""Batching rules that many ops share: an op on all examples of a batch at once.

A rule is called as ``rule(ops, batch, *operands, **attributes)``. `ops` is the table to compute in,
`batch` says which operands are batched (`BatchedCall`), and a batched operand has the batch axis
first, before the axes that the op is defined for. The rule returns the outputs with the batch axis
first, or NotImplemented for a call that it does not cover. Attach one with a line beside the
gradient of an op: ``softmax.batching(leading_axes)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from burn.ops._precision import is_scalar
from burn.ops.op import Op, Tag
from burn.ops.signature import Primitive, Role
from burn.ops.table import OpTable

__all__ = [
    "BatchedCall",
    "BatchingRule",
    "aligned_axes",
    "derived_rule",
    "expanded",
    "first_of",
    "leading_axes",
    "leading_axes_of",
    "merged",
    "merging",
    "shifted",
    "split",
    "with_rank",
]

BatchingRule: TypeAlias = Callable[..., Any]


class BatchedCall(NamedTuple):
    """The call that a batching rule runs for all examples.

    Attributes
    ----------
    op : Op
        The op.
    size : int
        Number of examples: the length of the batch axis.
    is_batched : tuple of bool
        For each operand whether it has a batch axis; a tuple of bools for a list operand.
    """

    op: Op
    size: int
    is_batched: tuple[bool | tuple[bool, ...], ...]

    def batched_names(self) -> set[str]:
        """Names of the operands that are batched, or of which one in a list is."""
        pairs = zip(self.op.operands, self.is_batched, strict=True)
        return {name for name, flag in pairs if (any(flag) if isinstance(flag, tuple) else flag)}


def leading_axes(ops: OpTable, batch: BatchedCall, *operands: Primitive, **attributes: Any) -> Any:
    """The op itself, with the batch axis before all others; every tensor is expanded to have it.

    For an op whose axes are named by attributes, or counted from the last.
    """
    tensors = [
        expanded(ops, batch, operand, flag)
        for operand, flag in zip(operands, batch.is_batched, strict=True)
    ]
    return getattr(ops, batch.op.name)(*tensors, **shifted(batch, attributes))


def leading_axes_of(*names: str) -> BatchingRule:
    """`leading_axes` for calls in which only the named operands are batched.

    The others, such as the weights of a layer, are passed as they are.
    """

    def rule(ops: OpTable, batch: BatchedCall, *operands: Primitive, **attributes: Any) -> Any:
        if not batch.batched_names() <= set(names):
            return NotImplemented
        tensors = [
            expanded(ops, batch, operand, flag) if name in names else operand
            for name, operand, flag in zip(
                batch.op.operands, operands, batch.is_batched, strict=True
            )
        ]
        return getattr(ops, batch.op.name)(*tensors, **shifted(batch, attributes))

    return rule


def aligned_axes(ops: OpTable, batch: BatchedCall, *operands: Primitive, **attributes: Any) -> Any:
    """The op itself, for operands that broadcast: they get the same number of axes.

    Unbatched tensors and numbers stay as they are.
    """
    ranks = [
        len(getattr(operand, "shape", ())) - bool(flag)
        for operand, flag in zip(operands, batch.is_batched, strict=True)
    ]
    rank = max(ranks)
    tensors = [
        with_rank(ops, operand, rank) if flag else operand
        for operand, flag in zip(operands, batch.is_batched, strict=True)
    ]
    return getattr(ops, batch.op.name)(*tensors, **shifted(batch, attributes))


def merging(*, outputs: tuple[int, ...] = (0,), **axes: int) -> BatchingRule:
    """A rule that merges the batch axis into another axis of each operand, and splits it again.

    For an op that treats the elements along such an axis independently: the examples or channels
    of images.

    Parameters
    ----------
    outputs : tuple of int
        For each output the axis that is split; one number is for all of them.
    **axes : int
        For each operand that may be batched the axis into which the batch axis is merged. The
        others are passed as they are.
    """

    def rule(ops: OpTable, batch: BatchedCall, *operands: Primitive, **attributes: Any) -> Any:
        if not batch.batched_names() <= axes.keys() or not batch.size:
            return NotImplemented
        tensors = [
            merged(ops, batch, operand, flag, axes[name]) if name in axes else operand
            for name, operand, flag in zip(
                batch.op.operands, operands, batch.is_batched, strict=True
            )
        ]
        result = getattr(ops, batch.op.name)(*tensors, **attributes)
        if not batch.op.returns_tuple:
            return split(ops, batch, result, outputs[0])
        each = outputs * len(result) if len(outputs) == 1 else outputs
        return tuple(
            [split(ops, batch, item, axis) for item, axis in zip(result, each, strict=True)]
        )

    return rule


def first_of(*rules: BatchingRule) -> BatchingRule:
    """The first of several rules that covers a call."""

    def rule(ops: OpTable, batch: BatchedCall, *operands: Primitive, **attributes: Any) -> Any:
        for function in rules:
            result = function(ops, batch, *operands, **attributes)
            if result is not NotImplemented:
                return result
        return NotImplemented

    return rule


def derived_rule(definition: Op) -> BatchingRule | None:
    """The rule that follows from the tags of an op, or None."""
    if definition.tags & (Tag.ELEMENTWISE | Tag.CONTRACTION):
        return aligned_axes
    if definition.tags & (Tag.VIEW | Tag.REDUCTION):
        return leading_axes
    return None


def expanded(ops: OpTable, batch: BatchedCall, operand: Primitive, flag: Any) -> Primitive:
    """An operand with the batch axis: an unbatched tensor is repeated along it, without a copy."""
    if isinstance(operand, list):
        pairs = zip(operand, flag, strict=True)
        return [expanded(ops, batch, pair, is_batched) for pair, is_batched in pairs]
    if flag or operand is None or is_scalar(operand):
        return operand
    return ops.expand(operand, shape=(batch.size, *operand.shape))


def with_rank(ops: OpTable, x: Primitive, rank: int) -> Primitive:
    """A batched tensor with axes of length 1 after the batch axis, so that `rank` follow it."""
    missing = rank - len(x.shape) + 1
    if not missing:
        return x
    return ops.reshape(x, shape=(x.shape[0], *[1] * missing, *x.shape[1:]))


def merged(ops: OpTable, batch: BatchedCall, operand: Primitive, flag: Any, axis: int) -> Primitive:
    """An operand whose batch axis is merged into an axis of the op, the examples one by one."""
    if operand is None:
        return None
    x = expanded(ops, batch, operand, flag)
    if axis:
        x = ops.permute(x, axes=(*range(1, axis + 1), 0, *range(axis + 1, len(x.shape))))
    *before, size, length = x.shape[: axis + 2]
    return ops.reshape(x, shape=(*before, size * length, *x.shape[axis + 2 :]))


def split(ops: OpTable, batch: BatchedCall, x: Primitive, axis: int) -> Primitive:
    """The batch axis, split from an axis into which `merged` put it, before all others."""
    shape = tuple(x.shape)
    length = shape[axis] // batch.size
    x = ops.reshape(x, shape=(*shape[:axis], batch.size, length, *shape[axis + 1 :]))
    if axis:
        x = ops.permute(x, axes=(axis, *range(axis), *range(axis + 1, len(x.shape))))
    return x


def shifted(batch: BatchedCall, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes of a call whose tensors have the batch axis before all others."""
    if not attributes:
        return {}
    roles = batch.op.attributes
    return {
        name: _SHIFTS[role](value, batch.size) if (role := roles[name].role) in _SHIFTS else value
        for name, value in attributes.items()
    }


_SHIFTS: Final[dict[Role, Callable[[Any, int], Any]]] = {
    Role.AXIS: lambda axis, _: axis + 1,
    Role.BROADCAST_AXIS: lambda axis, _: axis + 1,
    Role.AXES: lambda axes, _: tuple([axis + 1 for axis in axes]),
    Role.SHAPE: lambda shape, size: (size, *shape),
    Role.SLICES: lambda slices, size: ((0, size, 1), *slices),
    Role.AXIS_PAIRS: lambda pairs, _: ((0, 0), *pairs),
}
"""What the value of an attribute becomes, by its role, for a number of examples."""
