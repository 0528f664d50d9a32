"""Operations as tasks: what each reads, at which of its elements, and what it reduces."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from dataclasses import replace

from burn.compiler.fusion_groups import Along, Condition, Number, Task, Use, Value
from burn.compiler.fusion_maps import (
    IndexMap,
    along_axis,
    broadcast_map,
    composed,
    dense_strides,
    has_strides,
    identity,
    normal,
    reduction_map,
    spans,
    strides,
    zeros,
)
from burn.compiler.fusion_rules import Work, cost_of, operand_dtype, operands_of, shape_of
from burn.compiler.plan import Target
from burn.dtype import DType, float32
from burn.ir import OperationIr, TensorIr
from burn.ops.shapes import size

__all__ = ["Tasks"]


class Tasks(abc.ABC):
    """Makes tasks of operations.

    Parameters
    ----------
    target : Target
        What the device computes with kernels.

    Attributes
    ----------
    refs : dict of int to (Value, IndexMap)
        For each tensor so far what it is a view of, and from its elements to those of that.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.refs: dict[int, tuple[Value, IndexMap]] = {}

    @abc.abstractmethod
    def store(self, tensor: TensorIr) -> None:
        """See that a tensor is in memory."""

    @abc.abstractmethod
    def copy(self, tensor: TensorIr) -> None:
        """Make a view a tensor of its own."""

    @abc.abstractmethod
    def partial(self, task: Task, shape: tuple[int, ...]) -> Value:
        """The partial results of a reduction, of a shape, as a new tensor."""

    def task(self, operation: OperationIr, work: Work) -> Task:
        """An operation with its operands as uses."""
        shape = shape_of(operation.outputs[0])
        if work is Work.PRODUCT:
            return self._product(operation, shape)
        if work is Work.PARTS:
            return self._parts(operation, shape)
        if work is Work.GATHER:
            return self._gathered(operation)
        if work is Work.ADD:
            return self._added(operation)
        if work is Work.REDUCTION:
            (operand,) = operands_of(operation)
            read = shape_of(operand)
            reduced = _reduced(read, operation.attributes["axis"])
            return Task(operation, work, size(read), (self._use(operand, read),), reduced)
        dtype = operand_dtype(operation)
        uses = [
            self._use(source, shape) if isinstance(source, TensorIr) else Number(source, dtype)
            for source in operation.inputs
        ]
        cost = cost_of(operation, dtype) if work is Work.ELEMENTWISE else 1
        return Task(operation, work, size(shape), tuple(uses), cost=cost)

    def _use(self, tensor: TensorIr, shape: tuple[int, ...]) -> Use:
        """An operand that broadcasts to a shape."""
        return self._use_by(tensor, broadcast_map(shape_of(tensor), shape))

    def _use_by(self, tensor: TensorIr, map: IndexMap) -> Use:
        """An operand, and from the elements of the operation to those of the operand."""
        value, below = self.refs[tensor.id]
        whole = composed(below, map)
        if whole is None:
            self.copy(tensor)
            value, whole = self.refs[tensor.id][0], map
        return Use(tensor, value, whole)

    def _product(self, operation: OperationIr, shape: tuple[int, ...]) -> Task:
        """A matrix product: its domain is the batch, rows, columns, and products."""
        first, second = operands_of(operation)
        domain = (*shape, first.shape[-1])
        batch, (rows, columns, products) = domain[:-3], domain[-3:]
        left = _moved(shape_of(first), (*batch, rows, products), domain, (-3, -1))
        right = _moved(shape_of(second), (*batch, products, columns), domain, (-1, -2))
        uses = (self._use_by(first, left), self._use_by(second, right))
        reduced = _reduced(domain, (len(domain) - 1,))
        return Task(operation, Work.PRODUCT, size(domain), uses, reduced)

    def _parts(self, operation: OperationIr, shape: tuple[int, ...]) -> Task:
        """A tensor of which each part comes from another one."""
        uses: list[Use | Number] = []
        if operation.name == "slice_assign":
            x, part = operands_of(operation)
            starts = [start for start, _, _ in operation.attributes["slices"]]
            lengths = tuple([length for _, length, _ in operation.attributes["slices"]])
            uses.append(self._use(x, shape))
            if isinstance(part, TensorIr):
                uses.append(self._part(part, shape, starts, lengths))
            else:
                uses.append(Number(part, x.dtype, _inside(shape, starts, lengths)))
        else:
            (tensors,), axis = operands_of(operation), operation.attributes["axis"]
            start = 0
            for part in tensors:
                starts = [start if number == axis else 0 for number in range(len(shape))]
                uses.append(self._part(part, shape, starts, shape_of(part)))
                start += part.shape[axis]
        return Task(operation, Work.PARTS, size(shape), tuple(uses), cost=2 * len(uses))

    def _part(
        self, tensor: TensorIr, shape: tuple[int, ...], starts: list[int], lengths: tuple[int, ...]
    ) -> Use:
        """A tensor, broadcast to `lengths`, that is read inside of a slice of a shape."""
        inside = _inside(shape, starts, lengths)
        use = self._use(tensor, lengths)
        if not inside:
            return use
        if not has_strides(use.map, lengths):
            self.copy(tensor)
            use = self._use(tensor, lengths)
        if use.value.is_free:
            self.store(use.value.tensor)
        steps = strides(use.map, spans(lengths))
        before = [start * step for start, step in zip(starts, steps, strict=True)]
        map = normal(use.map.offset - sum(before), zip(shape, steps, strict=True))
        return use._replace(map=map, inside=inside)

    def _gathered(self, operation: OperationIr) -> Task:
        """Elements at indices: loads, or a reduction of what is not in memory."""
        x, indices = operands_of(operation)
        axis = operation.attributes["axis"]
        read, shape = shape_of(x), shape_of(indices)
        value, map = self.refs[x.id]
        if shape[axis] == 1 and not value.in_memory and value.group is not None:
            along = Along(along_axis(read, axis))
            picked = (self._use(indices, read), along, self._use(x, read))
            return Task(operation, Work.PICK, size(read), picked, _reduced(read, (axis,)))
        if not has_strides(map, read):
            self.copy(x)
            value, map = self.refs[x.id]
        steps = strides(map, spans(read))
        step, steps[axis] = steps[axis], 0
        if step and value.is_free:
            self.store(value.tensor)
        use = Use(x, value, normal(map.offset, zip(shape, steps, strict=True)), step=step)
        return Task(operation, Work.GATHER, size(shape), (self._use(indices, shape), use), cost=4)

    def _added(self, operation: OperationIr) -> Task:
        """A tensor with a number added to one element of each row."""
        x, indices, value = operands_of(operation)
        shape = shape_of(x)
        along = Along(along_axis(shape, operation.attributes["axis"]))
        uses = (self._use(indices, shape), along, self._use(x, shape), self._use(value, shape))
        return Task(operation, Work.ADD, size(shape), uses, cost=8)

    def divided(self, task: Task) -> Task:
        """A reduction to few rows over many columns as one of partial results; others as they are.

        Float types of less than 32 bits have partial results in float32.
        """
        if task.reduced is None or task.work is not Work.REDUCTION:
            return task
        columns = math.prod([high // low for low, high in zeros(task.reduced)])
        rows = task.count // columns
        is_strided = task.reduced.digits[-1][1] != 0
        busy = self.target.strided_rows if is_strided else self.target.rows
        if rows >= busy or columns < self.target.long_columns:
            return task
        most = min(max(columns // 64, 2), 2 * busy // rows)
        parts, map = _partial(task.reduced, most)
        if parts == 1:
            return task
        value = self.partial(replace(task, reduced=map), (rows, parts))
        use = Use(value.tensor, value, identity(rows * parts))
        reduced = reduction_map((rows, parts), (1,))
        return replace(task, count=rows * parts, uses=(use,), reduced=reduced)

    def partial_dtype(self, task: Task) -> DType:
        """The dtype of partial results."""
        dtype = task.operation.outputs[0].dtype
        is_narrow = dtype.is_float and dtype.itemsize < 4
        return float32 if is_narrow and float32 in self.target.dtypes else dtype


def _partial(reduced: IndexMap, most: int) -> tuple[int, IndexMap]:
    """How many parts a reduction has for each row, at most so many, and the map to the parts."""
    parts = 1
    digits: list[tuple[int, int | None]] = []  # a length, and the stride if it counts no parts
    for length, stride in reduced.digits:
        if stride or most == 1:
            digits.append((length, stride))
            continue
        count = next(n for n in range(min(most, length), 0, -1) if length % n == 0)
        digits += [(count, None), (length // count, 0)]
        parts *= count
        most = most // count if count == length else 1
    unit, made = parts, []
    for length, known in digits:
        if known is None:
            unit //= length
        made.append((length, unit if known is None else known * parts))
    return parts, normal(0, made)


def _reduced(shape: tuple[int, ...], axes: Sequence[int]) -> IndexMap | None:
    """From the elements of a shape to those of a reduction; None if the axes have length 1."""
    map = reduction_map(shape, tuple(axes))
    return map if zeros(map) else None


def _moved(
    shape: tuple[int, ...],
    matrices: tuple[int, ...],
    domain: tuple[int, ...],
    axes: tuple[int, int],
) -> IndexMap:
    """From the domain of a product to the elements of one operand, by the axes of its matrices."""
    steps = [
        0 if length == 1 else step for length, step in zip(shape, dense_strides(shape), strict=True)
    ]
    steps = [0] * (len(matrices) - len(shape)) + steps
    along = [*steps[:-2], 0, 0, 0]
    along[axes[0]], along[axes[1]] = steps[-2:]
    return normal(0, zip(domain, along, strict=True))


def _inside(
    shape: Sequence[int], starts: Sequence[int], lengths: Sequence[int]
) -> tuple[Condition, ...]:
    """The conditions under which an element of a shape is in a slice of it."""
    return tuple(
        [
            Condition(along_axis(shape, axis), start, start + length, extent)
            for axis, (extent, start, length) in enumerate(zip(shape, starts, lengths, strict=True))
            if length < extent
        ]
    )
