"""The memory of a plan: what overwrites what, and where intermediate tensors are in one block."""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from burn.compiler.plan import KernelCall, Plan, Step, inputs_of
from burn.dtype import DType
from burn.ir import GraphIr, OperationIr, TensorIr, tensors_among
from burn.kernels.kernel import Kernel, Load
from burn.ops import REGISTRY, Tag
from burn.ops.shapes import size

__all__ = ["Arena", "arena", "in_place", "packed"]

_ALIGNMENT: Final = 64
"""Bytes that each tensor begins at a multiple of: a line of a cache, and a vector of any CPU."""


@dataclass(frozen=True)
class Arena:
    """One block of memory for the intermediate tensors of a plan.

    Attributes
    ----------
    offsets : dict of int to int
        Where each tensor begins, in bytes, by its id.
    size : int
        Bytes of the block.
    """

    offsets: Mapping[int, int]
    size: int


class _Sharing:
    """Which tensors may have memory in common: what an op returns may be what it was given."""

    def __init__(self, graph: GraphIr, steps: Sequence[Step]) -> None:
        self.roots: dict[int, int] = {}
        for step in steps:
            if isinstance(step, KernelCall):
                pairs = [
                    (step.inputs[number].id, output.id)
                    for output, number in zip(step.outputs, step.over, strict=True)
                    if number is not None
                ]
            else:
                pairs = _may_share(step)
            for given, made in pairs:
                self._join(given, made)
        self.last: dict[int, int] = {}
        for index, step in enumerate(steps):
            for tensor in (*inputs_of(step), *step.outputs):
                self.last[self.root(tensor.id)] = index
        for tensor in graph.outputs:
            self.last[self.root(tensor.id)] = len(steps)

    def root(self, id: int) -> int:
        """One tensor for all that may have memory in common with a tensor."""
        root = id
        while root in self.roots:
            root = self.roots[root]
        while id != root:
            self.roots[id], id = root, self.roots[id]
        return root

    def _join(self, a: int, b: int) -> None:
        a, b = self.root(a), self.root(b)
        if a != b:
            self.roots[b] = a


def _may_share(operation: OperationIr) -> list[tuple[int, int]]:
    """Pairs that connect operands and outputs of a call that may have memory in common."""
    tags = REGISTRY[operation.name].tags
    if Tag.COMPUTE_BOUND in tags and Tag.REDUCTION not in tags:
        return []
    first_made: dict[DType, int] = {}
    for made in operation.outputs:
        first_made.setdefault(made.dtype, made.id)
    given = [tensor for tensor in tensors_among(operation.inputs) if tensor.dtype in first_made]
    first_given = {tensor.dtype: tensor.id for tensor in reversed(given)}
    pairs = [(tensor.id, first_made[tensor.dtype]) for tensor in given]
    pairs += [
        (first_given[output.dtype], output.id)
        for output in operation.outputs
        if output.dtype in first_given
    ]
    return pairs


def in_place(
    graph: GraphIr,
    steps: Sequence[Step],
    may_raise: Callable[[Step], bool] = lambda _: False,
    makes_own: Callable[[OperationIr], bool] = lambda _: False,
) -> list[Step]:
    """The steps of a plan, in which kernels overwrite what nothing reads afterwards.

    An output of the program takes the memory of the input that was donated for it, and an
    intermediate tensor that of another one, or of an input that was donated for any.

    Parameters
    ----------
    graph : GraphIr
        The program.
    steps : sequence of Step
        What a run does.
    may_raise : callable, optional
        Whether a step may raise for values: after an error donated inputs are as they were before.
    makes_own : callable, optional
        Whether kernels may overwrite the results of a call; see `Target`.
    """
    last_raising = max([index for index, step in enumerate(steps) if may_raise(step)], default=-1)
    sharing = _Sharing(graph, steps)
    outputs = {tensor.id for tensor in graph.outputs}
    own = [step for step in steps if isinstance(step, KernelCall) or makes_own(step)]
    of_kernels = {tensor.id for call in own for tensor in call.outputs}
    free = {id for id in of_kernels if sharing.last[sharing.root(id)] < len(steps)}
    donated = _donated(graph, sharing, len(steps))
    free |= donated.pop(None, set())
    found: list[Step] = []
    for index, step in enumerate(steps):
        if not isinstance(step, KernelCall):
            found.append(step)
            continue
        over: list[int | None] = []
        for number, output in enumerate(step.outputs):
            wanted = donated.get(output.id, set()) if output.id in outputs else free
            fitting = [
                item
                for item, given in enumerate(step.inputs)
                if given.id in wanted
                and (index > last_raising or given.id in of_kernels)
                and given.shape == output.shape
                and item not in over
                and sharing.last[sharing.root(given.id)] == index
                and _is_alone(given, step.inputs, sharing)
                and _may_overwrite(step.kernel, number, item)
            ]
            over.append(fitting[0] if fitting else None)
        pairs = tuple([(number, item) for number, item in enumerate(over) if item is not None])
        kernel = replace(step.kernel, overwrites=pairs) if pairs else step.kernel
        found.append(step._replace(kernel=kernel, over=tuple(over)))
    return found


def _donated(graph: GraphIr, sharing: _Sharing, end: int) -> dict[int | None, set[int]]:
    """The inputs that each output may take, and for None those that any tensor may take."""
    donated: dict[int | None, set[int]] = {}
    for number, output in graph.donated:
        tensor = graph.inputs[number]
        if isinstance(tensor, TensorIr) and sharing.last.get(sharing.root(tensor.id), end) < end:
            id = None if output is None else graph.outputs[output].id
            donated.setdefault(id, set()).add(tensor.id)  # no output is the input, or a view of it
    return donated


def _is_alone(given: TensorIr, inputs: Sequence[TensorIr], sharing: _Sharing) -> bool:
    """Whether no other input of a kernel has memory in common with one."""
    root = sharing.root(given.id)
    return [sharing.root(source.id) for source in inputs].count(root) == 1


def _may_overwrite(kernel: Kernel, output: int, input: int) -> bool:
    """Whether an output may be the memory of an input: see `Kernel.overwrites`."""
    store = kernel.stores[output]
    dtype, count = kernel.outputs[output]
    has_columns = kernel.rows < len(kernel.space)
    if has_columns and not kernel.is_of_rows(store):
        return False
    if store.offset or kernel.inputs[input] is not dtype or count != _stored(kernel, output):
        return False
    return all(
        (node.offset, node.strides, node.gathers, node.guard) == (0, store.strides, (), None)
        for node in kernel.body
        if isinstance(node, Load) and node.input == input
    )


def _stored(kernel: Kernel, output: int) -> int:
    """Number of elements that a kernel writes to an output."""
    is_of_rows = kernel.is_of_rows(kernel.stores[output])
    return kernel.row_count if is_of_rows else kernel.row_count * kernel.column_count


def arena(plan: Plan, owns: Callable[[OperationIr], bool] = lambda _: False) -> Arena:
    """Where in one block of memory the intermediate tensors of a plan are; see `packed`.

    Parameters
    ----------
    plan : Plan
        The plan. Tensors that kernels make are in the block, except outputs of the program and what
        takes the memory of an input.
    owns : callable, optional
        Whether the outputs of a call are in the block too; those that are not are allocated by the
        op. A call of which no output is in the block may return a view of one that is.
    """
    sharing = _Sharing(plan.graph, plan.steps)
    inputs = {source.id for source in plan.graph.inputs} | {
        constant.tensor.id for constant in plan.graph.constants
    }
    kept = {sharing.root(id) for id in inputs}
    spans: dict[int, tuple[int, int, int, int]] = {}
    roots: dict[int, int] = {}
    for index, step in enumerate(plan.steps):
        for tensor in step.outputs if isinstance(step, KernelCall) or owns(step) else ():
            root = sharing.root(tensor.id)
            last = sharing.last[root]
            if root not in kept and last < len(plan.steps):
                bytes = size(tensor.shape) * tensor.dtype.itemsize  # type: ignore[arg-type]  # lengths are known
                spans.setdefault(root, (index, last, bytes, root))
                roots[tensor.id] = root
    block = packed(spans.values())
    return Arena({id: block.offsets[root] for id, root in roots.items()}, block.size)


def packed(spans: Iterable[tuple[int, int, int, int]]) -> Arena:
    """Where in one block tensors are that are in use from a time to a time.

    Those in use at the same time do not overlap. Each one takes the smallest free part that it fits
    in.

    Parameters
    ----------
    spans : iterable of (int, int, int, int)
        For each tensor the times of its first and of its last use, its bytes, and its id.

    Examples
    --------
    >>> packed([(0, 1, 100, 7), (1, 2, 64, 8), (2, 3, 80, 9)])
    Arena(offsets={7: 0, 8: 128, 9: 0}, size=192)
    """
    free = _Free()
    offsets: dict[int, int] = {}
    used: list[tuple[int, int, int]] = []  # last use, begin, length: a heap
    for first, last, bytes, id in sorted(spans):
        while used and used[0][0] < first:
            free.give(*heapq.heappop(used)[1:])
        start, length = free.take(-(-max(bytes, 1) // _ALIGNMENT) * _ALIGNMENT)
        offsets[id] = start
        heapq.heappush(used, (last, start, length))
    return Arena(offsets, free.size)


class _Free:
    """The free parts of a block that grows.

    Attributes
    ----------
    size : int
        Bytes of the block.
    """

    def __init__(self) -> None:
        self.size = 0
        self._by_size: list[tuple[int, int]] = []
        self._starts: dict[int, int] = {}
        self._stops: dict[int, int] = {}

    def take(self, count: int) -> tuple[int, int]:
        """Where a part of so many bytes begins, and its size."""
        number = bisect.bisect_left(self._by_size, (count, 0))
        if number < len(self._by_size):
            length, start = self._by_size[number]
            self._remove(start, length)
            if length > count:
                self._add(start + count, length - count)
            return start, count
        start = self._stops.get(self.size, self.size)
        if start < self.size:  # the last part is free, and grows
            self._remove(start, self.size - start)
        self.size = start + count
        return start, count

    def give(self, start: int, length: int) -> None:
        """Make a part free."""
        if start in self._stops:
            before = self._stops[start]
            self._remove(before, start - before)
            start, length = before, length + start - before
        if start + length in self._starts:
            after = self._starts[start + length]
            self._remove(start + length, after)
            length += after
        self._add(start, length)

    def _add(self, start: int, length: int) -> None:
        bisect.insort(self._by_size, (length, start))
        self._starts[start] = length
        self._stops[start + length] = start

    def _remove(self, start: int, length: int) -> None:
        del self._by_size[bisect.bisect_left(self._by_size, (length, start))]
        del self._starts[start], self._stops[start + length]
