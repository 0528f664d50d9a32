"""Nodes of kernels for the schedule of a CPU: what they need and cost, and how axes are divided."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from burn.kernels.kernel import Apply, Index, Kernel, Load, Node, Reduce, Store
from burn.kernels.schedule import operands_of
from burn.kernels.writer import Writer

__all__ = [
    "COSTS",
    "NO_AXIS",
    "UNROLLED",
    "Chunk",
    "chunks_of",
    "closure",
    "cost_of",
    "dependencies",
    "kept_nodes",
    "phases_of",
]

UNROLLED: Final = 4
"""Vectors that an iteration of a reduction computes, so that additions overlap."""

NO_AXIS: Final = -1
"""Axis of the vectors of a kernel for a single element."""

COSTS: Final = dict.fromkeys(
    ("exp", "expm1", "log", "log1p", "log2", "log10", "tanh", "erf", "sin", "cos", "tan"), 20.0
) | dict.fromkeys(("divide", "sqrt", "fmod", "remainder", "floor_divide"), 5.0)
"""Additions that a scalar function takes, about; those of a library take many."""

_LIBRARY: Final = frozenset(
    {"pow", "atan2", "hypot", "asin", "acos", "atan", "sinh", "cosh"} | {"asinh", "acosh", "atanh"}
)


class Chunk(NamedTuple):
    """Indices along the axis of the vectors that one vector has.

    Attributes
    ----------
    offset : int
        The first one, from a start on.
    lanes : int
        Number of lanes.
    active : Value or None
        Number of the lanes that are used, as an index; None for all.
    """

    offset: int
    lanes: int
    active: Any | None


def chunks_of(writer: Writer, length: int, lanes: int) -> list[Chunk]:
    """Vectors for a number of elements; the last one has as few lanes as a power of two has."""
    chunks = [Chunk(start, lanes, None) for start in range(0, length - lanes + 1, lanes)]
    rest = length % lanes
    if rest:
        width = 1 << (rest - 1).bit_length()
        active = None if width == rest else writer.integer(rest)
        chunks.append(Chunk(length - rest, width, active))
    return chunks


def dependencies(kernel: Kernel) -> list[tuple[int, ...]]:
    """The axes along which each node differs, in order."""
    axes: list[tuple[int, ...]] = []
    for node in kernel.body:
        own: set[int] = set().union(*[axes[operand] for operand in operands_of(node)])
        if isinstance(node, Load):
            own |= {axis for axis, stride in enumerate(node.strides) if stride}
        elif isinstance(node, Index):
            own.add(node.axis)
        elif isinstance(node, Reduce):
            own = {axis for axis in own if axis < kernel.rows}
        axes.append(tuple(sorted(own)))
    return axes


def phases_of(kernel: Kernel) -> list[int]:
    """How many reductions, one after the other, a node needs."""
    phases: list[int] = []
    for node in kernel.body:
        phase = max([phases[operand] for operand in operands_of(node)], default=0)
        phases.append(phase + isinstance(node, Reduce))
    return phases


def cost_of(node: Node, elements: float, vectors: float) -> float:
    if isinstance(node, Apply):
        if node.function in _LIBRARY:
            return elements * 50
        return vectors * COSTS.get(node.function, 1.0)
    return vectors * (2.0 if isinstance(node, Load) else 1.0)


def closure(
    kernel: Kernel,
    targets: Sequence[int],
    stop: Collection[int] = (),
    *,
    through_reduces: bool = False,
) -> list[int]:
    """Nodes that others are computed from, and these, in order.

    Nodes of `stop` are taken as they are, and so are reductions unless `through_reduces`.
    """
    found: set[int] = set()
    rest = list(targets)
    while rest:
        number = rest.pop()
        if number not in found:
            found.add(number)
            node = kernel.body[number]
            if number not in stop and (through_reduces or not isinstance(node, Reduce)):
                rest += operands_of(node)
    return sorted(found)


def kept_nodes(
    kernel: Kernel, passes: Mapping[int, tuple[Sequence[int], Sequence[Store]]]
) -> dict[int, int]:
    """Expensive nodes of columns that several passes need, and the first one that does.

    A pass is given by the nodes that it reduces, and its stores.
    """
    levels = kernel.is_row_level
    kept: dict[int, int] = {}
    first: dict[int, int] = {}
    for phase, (operands, stores) in passes.items():
        targets = [*operands, *[store.node for store in stores]]
        needed = [number for number in closure(kernel, targets, kept) if not levels[number]]
        again = {number for number in needed if number in first}
        used = set(targets)
        for number in needed:
            if number not in again:
                used.update(operands_of(kernel.body[number]))
        for number in again & used:
            below = [kernel.body[n] for n in closure(kernel, [number]) if not levels[n]]
            if sum(cost_of(node, 1.0, 1.0) for node in below) >= COSTS["exp"]:
                kept[number] = first[number]
        for number in needed:
            first.setdefault(number, phase)
    return kept
