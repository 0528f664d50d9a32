"""Sharding rules: what becomes of an axis that is divided among devices, or among processes.

A rule gets a call of an op of which one operand is divided along an axis into shards of equal
length. It says along which axes the other operands have to be divided, so that the op on the
shards of each device gives a shard of the output; or that it gives a part, which is combined with
those of all other devices (`Op.combines`). None is no way but to gather the operand first.

The rule of an op follows from its tags and from the roles of its attributes; one that differs is
attached beside its gradient: ``@permute.sharding``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from burn.ops.batching import leading_axes
from burn.ops.op import Op, Tag
from burn.ops.signature import Meta, Role

__all__ = [
    "Sharded",
    "ShardedCall",
    "ShardingRule",
    "attributes_of_shard",
    "other_axes",
    "sharded",
    "whole_axes",
]


class ShardedCall(NamedTuple):
    """A call of an op with an operand that is divided.

    Attributes
    ----------
    op : Op
        The op.
    operands : sequence of Meta, number or None
        The whole operands.
    attributes : dict
        Those of the call on whole operands.
    operand : int
        The number of the operand that is divided.
    axis : int
        The axis along which it is.
    """

    op: Op
    operands: Sequence[Any]
    attributes: Mapping[str, Any]
    operand: int
    axis: int


class Sharded(NamedTuple):
    """How an op runs on shards.

    Attributes
    ----------
    operands : tuple of (int or None)
        For each operand the axis along which it is divided; None for one that each device has
        whole, or that is a number.
    axis : int or None
        The axis along which each output is divided; None where all devices have a part of each.
    combine : str or None
        How those parts make an output: ``"sum"``, ``"product"``, ``"max"`` or ``"min"``.
    """

    operands: tuple[int | None, ...]
    axis: int | None
    combine: str | None = None


ShardingRule: TypeAlias = Callable[[ShardedCall], Sharded | None]


def sharded(
    op: Op, operands: Sequence[Any], attributes: Mapping[str, Any], *, operand: int, axis: int
) -> Sharded | None:
    """What becomes of an axis of an operand that is divided.

    Parameters
    ----------
    op : Op
        The op.
    operands : sequence of Meta, number or None
        Its operands, whole.
    attributes : dict
        Its attributes.
    operand : int
        The number of the operand that is divided.
    axis : int
        The axis along which it is divided, from 0.

    Returns
    -------
    Sharded or None
        None if the op needs the whole axis.

    Examples
    --------
    >>> from burn import float32
    >>> from burn.ops import REGISTRY, Meta
    >>> from burn.ops.sharding import sharded
    >>> x, bias = Meta((8, 4), float32), Meta((4,), float32)
    >>> sharded(REGISTRY["add"], [x, bias], {}, operand=0, axis=0)
    Sharded(operands=(0, None), axis=0, combine=None)
    >>> total = {"axis": (0,), "keepdims": False, "dtype": float32}
    >>> sharded(REGISTRY["sum"], [x], total, operand=0, axis=0)
    Sharded(operands=(0,), axis=None, combine='sum')
    """
    rule = op.shards or _derived_rule(op)
    return None if rule is None else rule(ShardedCall(op, operands, attributes, operand, axis))


def attributes_of_shard(
    op: Op, attributes: Mapping[str, Any], found: Sharded, count: int
) -> dict[str, Any]:
    """The attributes with which an op runs on one of several shards."""

    def local(name: str, value: Any) -> Any:
        role = op.attributes[name].role
        if role is Role.SHAPE and found.axis is not None:
            length = value[found.axis] // count
            return (*value[: found.axis], length, *value[found.axis + 1 :])
        if role is Role.SLICES and found.axis is not None:
            whole = (0, value[found.axis][1] // count, 1)
            return (*value[: found.axis], whole, *value[found.axis + 1 :])
        return value

    return {name: local(name, value) for name, value in attributes.items()}


def aligned(call: ShardedCall) -> Sharded | None:
    """Of operands that broadcast: the axis is that of all which have it, and of the output."""
    ranks = [len(operand.shape) if isinstance(operand, Meta) else 0 for operand in call.operands]
    axis = call.axis + max(ranks) - ranks[call.operand]
    operands: list[int | None] = []
    for operand, rank in zip(call.operands, ranks, strict=True):
        own = axis - max(ranks) + rank
        operands.append(own if own >= 0 and operand.shape[own] != 1 else None)
    return Sharded(tuple(operands), axis) if operands[call.operand] is not None else None


def reduced(call: ShardedCall) -> Sharded | None:
    """Of a reduction: parts along an axis that is reduced, and along others shards."""
    axis = call.attributes["axis"]
    axes = axis if isinstance(axis, tuple) else (axis,)
    operands = (call.axis,) + (None,) * (len(call.operands) - 1)
    if call.operand or len(call.operands) > 1:
        return None
    if call.axis in axes:
        return Sharded(operands, None, call.op.combines) if call.op.combines else None
    keeps = call.attributes.get("keepdims", False)
    return Sharded(operands, call.axis - (0 if keeps else sum(other < call.axis for other in axes)))


def other_axes(call: ShardedCall) -> Sharded | None:
    """Of an op along axes that attributes name: an axis that none of them names stays."""
    x = call.operands[0]
    named = [
        value
        for name, value in call.attributes.items()
        if call.op.attributes[name].role in (Role.AXIS, Role.AXES)
    ]
    if any(call.axis in (axes if isinstance(axes, tuple) else (axes,)) for axes in named):
        return None
    shapes = [getattr(operand, "shape", None) for operand in call.operands]
    if any(shape != x.shape for shape in shapes):
        return None
    return Sharded((call.axis,) * len(shapes), call.axis)


def whole_axes(call: ShardedCall) -> Sharded | None:
    """Of a slice: an axis of which it has all elements stays."""
    (x,) = call.operands
    is_whole = call.attributes["slices"][call.axis] == (0, x.shape[call.axis], 1)
    return Sharded((call.axis,), call.axis) if is_whole else None


def _derived_rule(op: Op) -> ShardingRule | None:
    """The rule that follows from the tags of an op, and from what its attributes name."""
    if Tag.ELEMENTWISE in op.tags:
        return aligned
    if Tag.REDUCTION in op.tags and "axis" in op.attributes:
        return reduced
    roles = {attribute.role for attribute in op.attributes.values()}
    is_along = Role.AXIS in roles and roles <= {Role.AXIS, Role.FLAG, Role.DTYPE, Role.CHOICE}
    if Tag.VIEW not in op.tags and op.batch is leading_axes and is_along:
        return other_axes
    return None
