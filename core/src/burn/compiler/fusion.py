"""Fusion: which operations of a program become generated kernels, and which ones are calls.

The steps of a plan have positions. Operations are taken in order: one joins the group of the
latest step that makes one of its operands, if all its other operands are made before that group or
in it; else a group that reads the same tensors; else it is a new group at the end. So a group reads
nothing that is made after it, and the whole takes time that is linear in the number of operations.
What is cheap to compute again from what is in memory is computed by each group that needs it. At
the end, members that nothing needs are dropped, and each group becomes a kernel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from burn.compiler.fusion_groups import (
    Along,
    Condition,
    Group,
    Number,
    Task,
    Use,
    Value,
    estimate,
    join,
    settled,
)
from burn.compiler.fusion_kernels import kernel_call, reads_of
from burn.compiler.fusion_maps import (
    IndexMap,
    broadcast_map,
    without_repeats,
    composed,
    cuts,
    identity,
    inverse,
    normal,
    reduction_map,
    strides,
    view_map,
    zeros,
)
from burn.compiler.fusion_rules import Work, cost_of, operand_dtype, rule
from burn.compiler.memory import in_place
from burn.compiler.plan import KernelCall, Plan, Step, Target
from burn.dtype import float32, int32, int64
from burn.ir import Drop, GraphIr, OperationIr, Status, TensorIr
from burn.ir._operands import tensors_among
from burn.ops import REGISTRY, Role, Tag
from burn.ops.shapes import size

__all__ = ["fuses", "planned"]


_RAISING: Final = frozenset(["burn.ops.decomposition", "burn.ops.eigenvalues", "burn.ops.inverse"])
"""Modules of ops that may raise for values that are no indices, such as a singular matrix."""

_INDEXING: Final = frozenset(["gather", "scatter_add", "select", "select_add"])
"""Ops with indices along an axis as their second operand."""


def planned(graph: GraphIr, target: Target) -> Plan:
    """The steps of a program on a device that runs generated kernels.

    Parameters
    ----------
    graph : GraphIr
        A program after the other passes: composite ops that the device has no kernel for are
        decomposed.
    target : Target
        What the device computes with kernels.

    Returns
    -------
    Plan
        Calls of ops, and of kernels.
    """
    return _Planner(graph, target).plan()


def fuses(operation: OperationIr, target: Target) -> bool:
    """Whether an operation can be part of a kernel, so that it needs no decomposition.

    Parameters
    ----------
    operation : OperationIr
        An operation.
    target : Target
        What the device computes with kernels.
    """
    return rule(operation, target)[0] is not Work.CALL


class _Call:
    """A step that is an operation of the op table."""

    def __init__(self, position: int, operation: OperationIr) -> None:
        self.position = position
        self.operation = operation


class _Planner:
    """The state of a plan."""

    def __init__(self, graph: GraphIr, target: Target) -> None:
        self.graph = graph
        self.target = target
        self.steps: list[Group | _Call] = []
        self.refs: dict[int, tuple[Value, IndexMap]] = {}
        self.views: dict[int, OperationIr] = {}
        self.called: set[int] = set()
        """Views that are steps."""
        self.readers: dict[int, list[Group]] = {}
        self.reasons: dict[int, str] = {}
        self.copies: dict[tuple[int, IndexMap], Value] = {}
        """Copies of views, by what they are views of."""
        self.checks: dict[tuple[int, IndexMap, Any], int] = {}
        """Tensors with indices that are out of range, by the indices and the length of the axis."""
        self.checked: set[int] = set()
        """Outputs of calls whose indices are in range: kernels have checked them, or pooling gave
        them."""
        self.indices: set[int] = set()
        """Indices that pooling gave."""
        operations = [one for one in graph.operations if not isinstance(one, Drop)]
        self.rules = [
            (index, one, *rule(one, target))
            for index, one in enumerate(graph.operations)
            if not isinstance(one, Drop)
        ]
        self.next_id = 1 + max(
            [one.id for one in graph.inputs if isinstance(one, TensorIr)]
            + [constant.tensor.id for constant in graph.constants]
            + [one.id for operation in operations for one in operation.outputs],
            default=0,
        )
        self.wanted = self._wanted()
        self.index_dtype = int64 if int64 in target.dtypes else int32

    def _wanted(self) -> set[int]:
        """The tensors that are in memory in any case: outputs, and operands of calls.

        What a view of such a one is a view of, unless the view is stored as a tensor of its own.
        """
        roots: dict[int, tuple[int, IndexMap | None]] = {}
        wanted: set[int] = set()
        for _, operation, work, _ in self.rules:
            if work is Work.VIEW:
                below = operation.inputs[0]
                assert isinstance(below, TensorIr)  # a view has one operand
                map = _map_of(operation, below)
                root, of_below = roots.get(below.id, (below.id, map))
                if below.id in roots:
                    map = None if of_below is None else composed(of_below, map)
                roots[operation.outputs[0].id] = root, map
            elif work is Work.CALL:
                for tensor in tensors_among(operation.inputs):
                    root, map = roots.get(tensor.id, (tensor.id, None))
                    is_same = map is not None and map == identity(size(tensor.shape))  # type: ignore[arg-type]  # see `rule`
                    if tensor.id not in roots or (not is_same and _has_strides(map, tensor)):
                        wanted.add(root)
        for tensor in self.graph.outputs:
            root, map = roots.get(tensor.id, (tensor.id, None))
            if tensor.id not in roots or (
                map is not None and inverse(map) is None and _has_strides(map, tensor)
            ):
                wanted.add(root)
        return wanted

    def plan(self) -> Plan:
        """The plan."""
        given = [one for one in self.graph.inputs if isinstance(one, TensorIr)]
        for tensor in [*given, *[constant.tensor for constant in self.graph.constants]]:
            self._define(Value(tensor, in_memory=True))
        for index, operation, work, reason in self.rules:
            if work is Work.CALL:
                self.reasons[index] = reason
                self._call(operation)
            elif work is Work.VIEW:
                self._view(operation)
            else:
                self._compute(operation, work)
        for tensor in self.graph.outputs:
            self._store(tensor)
        return self._finished()

    def _define(self, value: Value) -> None:
        tensor = value.tensor
        self.refs[tensor.id] = (value, identity(value.count))

    def _call(self, operation: OperationIr) -> None:
        """Make an operation a step."""
        if operation.name in _INDEXING:
            self._note_checked(operation)
        elif operation.name == "max_pool_with_indices":
            self.indices.add(operation.outputs[1].id)
        elif operation.name == "max_pool_grad" and self.indices.issuperset(
            [one.id for one in tensors_among(operation.inputs[1:])]
        ):
            self.checked.add(operation.outputs[0].id)
        for tensor in tensors_among(operation.inputs):
            self._store(tensor)
        step = _Call(len(self.steps), operation)
        self.steps.append(step)
        for tensor in operation.outputs:
            self.refs[tensor.id] = (
                Value(_read_only(tensor), in_memory=True, position=step.position),
                identity(0 if None in tensor.shape else size(tensor.shape)),  # type: ignore[arg-type]  # see the test
            )

    def _view(self, operation: OperationIr) -> None:
        """Note what a view is a view of."""
        (below,), output = operation.inputs, operation.outputs[0]
        assert isinstance(below, TensorIr)  # a view has one operand
        map = _map_of(operation, below)
        value, of_below = self.refs[below.id]
        whole = composed(of_below, map)
        if whole is None:
            self._copy(below)
            value, whole = self.refs[below.id][0], map
        self.refs[output.id] = (value, whole)
        self.views[output.id] = operation

    def _store(self, tensor: TensorIr) -> None:
        """See that a tensor is in memory, or is a view of one by a step."""
        value, map = self.refs[tensor.id]
        if tensor.id == value.tensor.id:
            if value.is_free:
                self._settle(value)
            value.in_memory = True
            return
        if tensor.id in self.called:
            return
        if not _has_strides(map, tensor) or (not value.in_memory and inverse(map) is not None):
            self._copy(tensor)
            self._store(tensor)
            return
        if map == identity(value.count):
            self._store(value.tensor)
            self.views[tensor.id] = _reshaped(self.views[tensor.id], value.tensor)
        else:
            below = self.views[tensor.id].inputs[0]
            assert isinstance(below, TensorIr)  # a view has one operand
            self._store(below)
        self.called.add(tensor.id)
        self.steps.append(_Call(len(self.steps), self.views[tensor.id]))

    def _copy(self, tensor: TensorIr) -> None:
        """Make a view a tensor of its own."""
        value, map = self.refs[tensor.id]
        key = value.tensor.id, map
        copy = self.copies.get(key)
        if copy is None:
            task = Task(
                self.views[tensor.id], Work.VIEW, size(tensor.shape), (Use(tensor, value, map),)
            )  # type: ignore[arg-type]  # see `rule`
            copy = self.copies[key] = Value(_read_only(tensor), in_memory=True)
            self._insert(task, copy)
        self.refs[tensor.id] = (copy, identity(copy.count))

    def _settle(self, value: Value) -> None:
        """Make a member of a group of what each reader would compute for itself."""
        assert value.task is not None  # it is computed
        self._insert(value.task, value)

    def _compute(self, operation: OperationIr, work: Work) -> None:
        """Make an operation a member of a group, or one that each reader computes for itself."""
        output = _read_only(operation.outputs[0])
        value = Value(output, in_memory=output.id in self.wanted)
        value.task = self._task(operation, work)
        if value.in_memory or not estimate(value, value.task):
            self._insert(value.task, value)
        self._define(value)

    def _insert(self, task: Task, value: Value) -> None:
        """Make an operation a member of a group."""
        task = self._shortened(task)
        while not self._is_joined(task, value):
            # What it reads is free and costs too much here, or is a view whose digits do not agree.
            free = [use.value for use in task.uses if isinstance(use, Use) and use.value.is_free]
            if free:
                for one in free:
                    if one.is_free:
                        self._settle(one)
            else:
                task = self._with_dense_operands(task)
        assert value.recipe is not None  # it has joined
        assert value.group is not None  # it has joined
        for read in reads_of(value.recipe):
            readers = self.readers.setdefault(read.value.tensor.id, [])
            if value.group not in readers[-2:]:
                readers.append(value.group)

    def _is_joined(self, task: Task, value: Value) -> bool:
        """Make an operation a member of a group, if there is one or its operands fit a new one."""
        for group in self._candidates(task):
            if join(task, group, value):
                return True
        group = Group(len(self.steps), task.count, has_tensor=not task.is_product)
        if not join(task, group, value) and not join(task, group, value, again=False):
            return False
        self.steps.append(group)
        return True

    def _candidates(self, task: Task) -> Iterator[Group]:
        """Groups that an operation may join, the latest one first."""
        if task.is_product:
            return
        makers: dict[int, Group] = {}
        values = {use.value.tensor.id: use.value for use in settled(task)}
        for value in values.values():
            if value.group is not None:
                makers[value.position] = value.group
        for position in sorted(makers, reverse=True)[:3]:
            yield makers[position]
        for id in values:
            for group in self.readers.get(id, ())[:-3:-1]:
                if group.position not in makers and group.count == task.count:
                    makers[group.position] = group
                    yield group

    def _with_dense_operands(self, task: Task) -> Task:
        """An operation that reads copies of views, whose digits may disagree."""
        for use in task.uses:
            if isinstance(use, Use) and self.refs[use.tensor.id][0].tensor.id != use.tensor.id:
                self._copy(use.tensor)
        return self._task(task.operation, task.work)

    def _task(self, operation: OperationIr, work: Work) -> Task:
        """An operation with its operands as uses."""
        output = operation.outputs[0]
        shape: tuple[int, ...] = output.shape  # type: ignore[assignment]  # see `rule`
        if work is Work.PRODUCT:
            return self._product(operation, shape)
        if work is Work.PARTS:
            return self._parts(operation, shape)
        if work in {Work.GATHER, Work.ADD}:
            self._check(operation)
            return self._gathered(operation) if work is Work.GATHER else self._added(operation)
        if work is Work.REDUCTION:
            (operand,) = operation.inputs
            assert isinstance(operand, TensorIr)  # of a reduction
            read: tuple[int, ...] = operand.shape  # type: ignore[assignment]  # see `rule`
            reduced = _reduced(read, tuple(operation.attributes["axis"]))
            return Task(operation, work, size(read), (self._use(operand, read),), reduced)
        dtype = operand_dtype(operation)
        uses = tuple(
            [
                self._use(one, shape) if isinstance(one, TensorIr) else Number(one, dtype)
                for one in operation.inputs
            ]
        )
        return Task(operation, work, size(shape), uses, cost=cost_of(operation))

    def _use(self, tensor: TensorIr, shape: tuple[int, ...]) -> Use:
        """An operand that broadcasts to a shape."""
        map = broadcast_map(tensor.shape, shape)  # type: ignore[arg-type]  # see `rule`
        return self._use_by(tensor, map)

    def _use_by(self, tensor: TensorIr, map: IndexMap) -> Use:
        value, below = self.refs[tensor.id]
        whole = composed(below, map)
        if whole is None:
            self._copy(tensor)
            value, whole = self.refs[tensor.id][0], map
        return Use(_read_only(tensor), value, whole)

    def _product(self, operation: OperationIr, shape: tuple[int, ...]) -> Task:
        """A matrix product: its domain is the batch, rows, columns, and products."""
        first, second = operation.inputs
        assert isinstance(first, TensorIr)  # an operand of matmul
        assert isinstance(second, TensorIr)  # an operand of matmul
        *batch, rows, columns = shape
        length: int = first.shape[-1]  # type: ignore[assignment]  # see `rule`
        count = size(shape) * length
        domain = (*batch, rows, columns, length)
        output = _reduced(domain, (len(domain) - 1,))
        left = _moved(first, (*batch, rows, length), domain, (-3, -1))
        right = _moved(second, (*batch, length, columns), domain, (-1, -2))
        uses = (self._use_by(first, left), self._use_by(second, right))
        return Task(operation, Work.PRODUCT, count, uses, output)

    def _parts(self, operation: OperationIr, shape: tuple[int, ...]) -> Task:
        """A tensor of which each part comes from another one."""
        uses: list[Use | Number]
        if operation.name == "slice_assign":
            x, part = operation.inputs
            assert isinstance(x, TensorIr)  # the operand that is written to
            uses = [self._use(x, shape)]
            slices = operation.attributes["slices"]
            starts = [start for start, _, _ in slices]
            lengths = tuple([length for _, length, _ in slices])
            if isinstance(part, TensorIr):
                uses.append(self._part(part, shape, starts, lengths))
            else:
                uses.append(Number(part, x.dtype, _inside(shape, starts, lengths)))
        else:
            axis, start = operation.attributes["axis"], 0
            uses = []
            for part in operation.inputs[0]:  # type: ignore[union-attr]  # a list of tensors
                length = part.shape[axis]
                starts = [start if number == axis else 0 for number in range(len(shape))]
                uses.append(self._part(part, shape, starts, part.shape))
                start += length
        return Task(operation, Work.PARTS, size(shape), tuple(uses), cost=2 * len(uses))

    def _check(self, operation: OperationIr) -> None:
        """See that a kernel finds indices that are out of range."""
        x, indices = operation.inputs[:2]
        assert isinstance(x, TensorIr)  # of an op with indices
        assert isinstance(indices, TensorIr)  # of an op with indices
        value, map = self.refs[indices.id]
        length = x.shape[operation.attributes["axis"]]
        distinct = without_repeats(map)
        key = value.tensor.id, distinct, length
        if key in self.checks:
            return
        count = math.prod([length for length, _ in distinct.digits])
        made = Value(TensorIr(self.next_id, (count,), self.index_dtype), in_memory=True)
        self.next_id += 1
        self.checks[key] = made.tensor.id
        use = Use(indices, value, distinct)
        self._insert(Task(operation, Work.CHECK, count, (use,)), made)
        self._define(made)

    def _note_checked(self, operation: OperationIr) -> None:
        """Note a call whose indices a kernel has checked."""
        x, indices = operation.inputs[:2]
        assert isinstance(x, TensorIr)  # of an op with indices
        assert isinstance(indices, TensorIr)  # of an op with indices
        value, map = self.refs[indices.id]
        length = x.shape[operation.attributes["axis"]]
        if (value.tensor.id, without_repeats(map), length) in self.checks:
            self.checked.add(operation.outputs[0].id)

    def _gathered(self, operation: OperationIr) -> Task:
        """Elements at indices: loads, or a reduction of what is not in memory."""
        x, indices = operation.inputs
        assert isinstance(x, TensorIr)  # see the signature of the op
        assert isinstance(indices, TensorIr)  # see the signature of the op
        axis: int = operation.attributes["axis"]
        read: tuple[int, ...] = x.shape  # type: ignore[assignment]  # see `rule`
        shape: tuple[int, ...] = indices.shape  # type: ignore[assignment]  # see `rule`
        value, map = self.refs[x.id]
        if shape[axis] == 1 and not value.in_memory and value.group is not None:
            uses = (self._use(indices, read), Along(_along(read, axis)), self._use(x, read))
            reduced = _reduced(read, (axis,))
            return Task(operation, Work.PICK, math.prod(read), uses, reduced)
        if not _has_strides(map, x):
            self._copy(x)
            value, map = self.refs[x.id]
        steps = strides(map, _spans(read))
        step, steps[axis] = steps[axis], 0
        if step and value.is_free:
            self._store(value.tensor)
        use = Use(x, value, normal(map.offset, zip(shape, steps, strict=True)), step=step)
        uses = (self._use(indices, shape), use)
        return Task(operation, Work.GATHER, math.prod(shape), uses, cost=4)

    def _added(self, operation: OperationIr) -> Task:
        """A tensor with a number added to one element of each row."""
        x, indices, value = operation.inputs
        assert isinstance(x, TensorIr)  # see the signature of the op
        assert isinstance(indices, TensorIr)  # see the signature of the op
        assert isinstance(value, TensorIr)  # see the signature of the op
        shape: tuple[int, ...] = x.shape  # type: ignore[assignment]  # see `rule`
        along = Along(_along(shape, operation.attributes["axis"]))
        uses = (self._use(indices, shape), along, self._use(x, shape), self._use(value, shape))
        return Task(operation, Work.ADD, math.prod(shape), uses, cost=8)

    def _part(
        self, tensor: TensorIr, shape: tuple[int, ...], starts: list[int], lengths: tuple[int, ...]
    ) -> Use:
        """A tensor, broadcast to `lengths`, that is read inside of a slice of a shape."""
        inside = _inside(shape, starts, lengths)
        use = self._use(tensor, lengths)
        if not inside:
            return use
        spans = _spans(lengths)
        if not {begin for _, begin in spans}.issuperset(cuts(use.map)):
            self._copy(tensor)
            use = self._use(tensor, lengths)
        if use.value.position < 0:
            self._store(use.value.tensor)
        steps = strides(use.map, spans)
        offset = use.map.offset - sum(
            [start * step for start, step in zip(starts, steps, strict=True)]
        )
        return use._replace(map=normal(offset, zip(shape, steps, strict=True)), inside=inside)

    def _shortened(self, task: Task) -> Task:
        """A reduction to few rows over many columns as one of partial results."""
        if task.reduced is None or task.work is not Work.REDUCTION:
            return task
        columns = math.prod([high // low for low, high in zeros(task.reduced)])
        rows = task.count // columns
        is_strided = bool(task.reduced.digits) and task.reduced.digits[-1][1] != 0
        busy = self.target.strided_rows if is_strided else self.target.rows
        if rows >= busy or columns < self.target.long_columns:
            return task
        parts, digits = self._partial_digits(
            task.reduced, min(max(columns // 64, 2), 2 * busy // rows)
        )
        if parts == 1:
            return task
        unit, made = parts, []
        for length, stride, is_partial in digits:
            if is_partial:
                unit //= length
            made.append((length, unit if is_partial else stride * parts))
        dtype = task.operation.outputs[0].dtype
        if dtype.is_float and dtype.itemsize < 4 and float32 in self.target.dtypes:
            dtype = float32
        value = Value(TensorIr(self.next_id, (rows, parts), dtype), in_memory=False)
        self.next_id += 1
        self._insert(replace(task, reduced=normal(0, made)), value)
        self._define(value)
        return replace(
            task,
            count=rows * parts,
            uses=(Use(value.tensor, value, identity(rows * parts)),),
            reduced=reduction_map((rows, parts), (1,)),
        )

    @staticmethod
    def _partial_digits(reduced: IndexMap, most: int) -> tuple[int, list[tuple[int, int, bool]]]:
        """Digits of a reduction, the first reduced ones split off: at most so many parts of a row.

        The number of parts, and the length and stride of each digit, and whether it counts parts.
        """
        parts, digits = 1, []
        for length, stride in reduced.digits:
            count = 1
            if stride == 0 and most > 1:
                count = next(n for n in range(min(most, length), 0, -1) if length % n == 0)
                digits.append((count, 0, True))
                parts *= count
                most = most // count if count == length else 1
            digits.append((length // count, stride, False))
        return parts, digits

    def _finished(self) -> Plan:
        """The plan of the steps, without the members that nothing needs."""
        needed: set[int] = set(self.checks.values())
        for tensor in self.graph.outputs:
            needed.add(tensor.id)
        made: list[Step] = []
        for step in reversed(self.steps):
            if isinstance(step, _Call):
                for tensor in tensors_among(step.operation.inputs):
                    needed.add(tensor.id)
                made.append(step.operation)
                continue
            call = kernel_call(step, needed, self.index_dtype)
            if call is not None:
                needed |= {tensor.id for tensor in call.inputs}
                made.append(call)
        steps = in_place(self.graph, made[::-1], self._may_raise)
        return Plan(self.graph, tuple(steps), self.reasons, _last_uses(self.graph, steps))

    def _may_raise(self, step: Step) -> bool:
        """Whether a step may raise for values."""
        if isinstance(step, KernelCall):
            return bool(step.checks)
        definition = REGISTRY[step.name]
        if Tag.CHECKS_INDICES in definition.tags:
            return self.target.checks and step.outputs[0].id not in self.checked
        return (
            Tag.DATA_DEPENDENT in definition.tags
            or definition.host is not None
            or definition.__module__ in _RAISING
            or any(one.role is Role.GRAPH for one in definition.attributes.values())
        )


def _reduced(shape: tuple[int, ...], axes: tuple[int, ...]) -> IndexMap | None:
    """From the elements of a shape to those of a reduction; None if the axes have length 1."""
    map = reduction_map(shape, axes)
    return map if zeros(map) else None


def _moved(
    tensor: TensorIr,
    matrix: tuple[int, ...],
    domain: tuple[int, ...],
    axes: tuple[int, int],
) -> IndexMap:
    """From the domain of a product to the elements of one operand, by the axes of its matrices."""
    lead = len(matrix) - len(tensor.shape)
    step, steps = 1, [0] * len(matrix)
    for axis in range(len(matrix) - 1, lead - 1, -1):
        length: int = tensor.shape[axis - lead]  # type: ignore[assignment]  # see `rule`
        steps[axis] = step if length > 1 else 0
        step *= length
    along = [*steps[:-2], 0, 0, 0]
    along[axes[0]], along[axes[1]] = steps[-2], steps[-1]
    return normal(0, zip(domain, along, strict=True))


def _spans(shape: Sequence[int]) -> list[tuple[int, int]]:
    """Of each axis its length, and where the digit of its index begins."""
    spans, unit = [], 1
    for length in reversed(shape):
        spans.append((length, unit))
        unit *= length
    return spans[::-1]


def _inside(
    shape: Sequence[int], starts: Sequence[int], lengths: Sequence[int]
) -> tuple[Condition, ...]:
    """The conditions under which an element of a shape is in a slice of it."""
    found = []
    for axis, (extent, start, length) in enumerate(zip(shape, starts, lengths, strict=True)):
        if length < extent:
            found.append(Condition(_along(shape, axis), start, start + length, extent))
    return tuple(found)


def _along(shape: Sequence[int], axis: int) -> IndexMap:
    """From the elements of a shape to the index along an axis."""
    return normal(0, [(length, int(number == axis)) for number, length in enumerate(shape)])


def _map_of(operation: OperationIr, below: TensorIr) -> IndexMap:
    """From the elements of a view to those of what it is a view of."""
    map = view_map(operation.name, operation.attributes, below.shape)  # type: ignore[arg-type]  # see `rule`
    assert map is not None  # of an op that `rule` calls a view
    return map


def _has_strides(map: IndexMap | None, tensor: TensorIr) -> bool:
    """Whether a view is an array with one stride for each axis."""
    if map is None:
        return False
    spans = _spans(tensor.shape)  # type: ignore[arg-type]  # see `rule`
    return {begin for _, begin in spans}.issuperset(cuts(map))


def _reshaped(view: OperationIr, tensor: TensorIr) -> OperationIr:
    """A view of a tensor whose elements it has in the same order, as one operation."""
    shape = view.outputs[0].shape
    return OperationIr("reshape", (tensor,), {"shape": shape}, view.outputs, view.source)


def _read_only(tensor: TensorIr) -> TensorIr:
    return tensor if tensor.status is Status.READ_ONLY else tensor._replace(status=Status.READ_ONLY)


def _last_uses(graph: GraphIr, steps: list[Step]) -> dict[int, int]:
    """For each tensor that a step makes and that is no output, the last step that reads it."""
    outputs = {tensor.id for tensor in graph.outputs}
    found: dict[int, int] = {}
    for index, step in enumerate(steps):
        read: Any = step.inputs if isinstance(step, KernelCall) else tensors_among(step.inputs)
        for tensor in read:
            if tensor.id in found:
                found[tensor.id] = index
        for tensor in step.outputs:
            if tensor.id not in outputs:
                found[tensor.id] = index
    return found
