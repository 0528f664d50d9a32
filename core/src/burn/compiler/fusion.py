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
from collections.abc import Iterator

from burn.compiler.fusion_groups import Group, Task, Use, Value, estimate, join, settled
from burn.compiler.fusion_kernels import kernel_call, reads_of
from burn.compiler.fusion_maps import (
    IndexMap,
    composed,
    has_strides,
    identity,
    inverse,
    view_map,
    without_repeats,
)
from burn.compiler.fusion_rules import Work, operands_of, read_only, rule, shape_of
from burn.compiler.fusion_tasks import Tasks
from burn.compiler.memory import in_place
from burn.compiler.plan import KernelCall, Plan, Step, Target, inputs_of
from burn.dtype import int32, int64
from burn.ir import Drop, GraphIr, OperationIr, TensorIr, may_raise, tensors_among
from burn.ops import REGISTRY, Tag
from burn.ops.shapes import size

__all__ = ["fuses", "last_uses", "planned"]


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

    Examples
    --------
    >>> import burn
    >>> graph = GraphIr.from_text('''
    ...     input %0: float32[4, 8]
    ...     %1: float32[4, 8] = exp(%0)
    ...     %2: float32[4] = sum(%1, axis=(1,), dtype=float32)
    ...     output %2
    ... ''')
    >>> (step,) = planned(graph, Target(frozenset([burn.float32]), lambda operation: False)).steps
    >>> step.describe()
    'kernel of exp, sum'
    >>> step.kernel.space
    (4, 8)
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

    Examples
    --------
    >>> import burn
    >>> graph = GraphIr.from_text('''
    ...     input %0: float32[4, 8]
    ...     %1: float32[4, 8] = exp(%0)
    ...     %2: float32[4, 8] = softmax(%1, axis=1)
    ...     output %2
    ... ''')
    >>> target = Target(frozenset([burn.float32]), lambda operation: False)
    >>> [fuses(one, target) for one in graph.operations]
    [True, False]
    """
    return rule(operation, target)[0] is not Work.CALL


class _Planner(Tasks):
    """The state of a plan."""

    def __init__(self, graph: GraphIr, target: Target) -> None:
        super().__init__(target)
        self.graph = graph
        self.steps: list[Group | OperationIr] = []
        self.views: dict[int, OperationIr] = {}
        self.called: set[int] = set()
        """Views that are steps."""
        self.readers: dict[int, list[Group]] = {}
        self.copies: dict[tuple[int, IndexMap], Value] = {}
        """Copies of views, by what they are views of."""
        self.checks: dict[tuple[int, IndexMap, int], int] = {}
        """Tensors with indices that are out of range, by the indices and the length of the axis."""
        self.pooled: set[int] = set()
        """Indices that pooling gave."""
        self.checked: set[int] = set()
        """Outputs of calls whose indices are in range, as kernels have checked them, or pooling
        gave them."""
        self.rules = [
            (index, operation, *rule(operation, target))
            for index, operation in enumerate(graph.operations)
            if not isinstance(operation, Drop)
        ]
        given = [source for source in graph.inputs if isinstance(source, TensorIr)]
        self.given = [*given, *[constant.tensor for constant in graph.constants]]
        made = [output for _, rule, _, _ in self.rules for output in rule.outputs]
        self.next_id = 1 + max([tensor.id for tensor in [*self.given, *made]], default=0)
        self.wanted = self._wanted()
        self.index_dtype = int64 if int64 in target.dtypes else int32

    def _wanted(self) -> set[int]:
        """The tensors that are in memory in any case: outputs, and operands of calls.

        What a view of such a one is a view of, unless the view is stored as a tensor of its own.
        """
        roots: dict[int, tuple[int, IndexMap | None]] = {}
        wanted: set[int] = set()

        def want(tensor: TensorIr, *, copies: bool) -> None:
            root, map = roots.get(tensor.id, (tensor.id, identity(0)))
            is_copy = copies or map is None or not has_strides(map, shape_of(tensor))
            if tensor.id not in roots or not (is_copy or map == identity(size(shape_of(tensor)))):
                wanted.add(root)

        for _, operation, work, _ in self.rules:
            if work is Work.VIEW:
                (below,) = operands_of(operation)
                root, of_below = roots.get(below.id, (below.id, identity(size(shape_of(below)))))
                whole = None if of_below is None else composed(of_below, _map_of(operation))
                roots[operation.outputs[0].id] = root, whole
            elif work is Work.CALL:
                for tensor in tensors_among(operation.inputs):
                    want(tensor, copies=self.target.copies(operation))
        for tensor in self.graph.outputs:
            map = roots.get(tensor.id, (0, None))[1]
            want(tensor, copies=map is not None and inverse(map) is not None)
        return wanted

    def plan(self) -> Plan:
        """The plan."""
        for tensor in self.given:
            self._define(Value(tensor, in_memory=True))
        for _, operation, work, _ in self.rules:
            if work is Work.CALL:
                self._call(operation)
            elif work is Work.VIEW:
                self._view(operation)
            else:
                self._compute(operation, work)
        for tensor in self.graph.outputs:
            self.store(tensor)
        return self._finished()

    def _define(self, value: Value) -> None:
        self.refs[value.tensor.id] = (value, identity(value.count))

    def _call(self, operation: OperationIr) -> None:
        """Make an operation a step."""
        for tensor in tensors_among(operation.inputs):
            if self.target.copies(operation) and tensor.id in self.views:
                self.copy(tensor)
            self.store(tensor)
        if Tag.CHECKS_INDICES in REGISTRY[operation.name].tags and self._is_in_range(operation):
            self.checked.add(operation.outputs[0].id)
        if operation.name == "max_pool_with_indices":
            self.pooled.add(operation.outputs[1].id)
        for tensor in operation.outputs:
            made = Value(read_only(tensor), in_memory=True, position=len(self.steps))
            count = 0 if None in tensor.shape else made.count
            self.refs[tensor.id] = (made, identity(count))
        self.steps.append(operation)

    def _is_in_range(self, operation: OperationIr) -> bool:
        """Whether the indices that an operation checks are known to be in range."""
        operands = operands_of(operation)
        if operation.name == "max_pool_grad":
            return operands[1].id in self.pooled
        if "axis" not in operation.attributes:
            return False
        x, indices = operands[:2]
        value, map = self.refs[indices.id]
        length = x.shape[operation.attributes["axis"]]
        return (value.tensor.id, without_repeats(map), length) in self.checks

    def _view(self, operation: OperationIr) -> None:
        """Note what a view is a view of."""
        (below,), output = operands_of(operation), operation.outputs[0]
        map = _map_of(operation)
        value, of_below = self.refs[below.id]
        whole = composed(of_below, map)
        if whole is None:
            self.copy(below)
            value, whole = self.refs[below.id][0], map
        self.refs[output.id] = (value, whole)
        self.views[output.id] = operation

    def store(self, tensor: TensorIr) -> None:
        """See that a tensor is in memory, or is a view of one by a step."""
        value, map = self.refs[tensor.id]
        if tensor.id == value.tensor.id:
            if value.is_free:
                self._settle(value)
            value.in_memory = True
            return
        if tensor.id in self.called:
            return
        has_one = has_strides(map, shape_of(tensor))
        view = self.views[tensor.id]
        if not has_one and view.name != "reshape":  # it has strides over a copy of its operand
            (below,) = operands_of(view)
            self.copy(below)
            value, map = self.refs[tensor.id] = self.refs[below.id][0], _map_of(view)
        elif not has_one or (not value.in_memory and inverse(map) is not None):
            self.copy(tensor)
            self.store(tensor)
            return
        if map == identity(value.count):
            self.store(value.tensor)
            self.views[tensor.id] = _reshaped(self.views[tensor.id], value.tensor)
        else:
            self.store(operands_of(self.views[tensor.id])[0])
        self.called.add(tensor.id)
        self.steps.append(self.views[tensor.id])

    def copy(self, tensor: TensorIr) -> None:
        """Make a view a tensor of its own, unless it is a reshape of one that is in memory."""
        value, map = self.refs[tensor.id]
        if value.in_memory and map == identity(value.count):
            return
        copy = self.copies.get((value.tensor.id, map))
        if copy is None:
            copy = Value(read_only(tensor), in_memory=True)
            uses = (Use(tensor, value, map),)
            self._insert(Task(self.views[tensor.id], Work.VIEW, copy.count, uses), copy)
            self.copies[value.tensor.id, map] = copy
        self.refs[tensor.id] = (copy, identity(copy.count))

    def partial(self, task: Task, shape: tuple[int, ...]) -> Value:
        """The partial results of a reduction, of a shape, as a new tensor."""
        value = Value(TensorIr(self.next_id, shape, self.partial_dtype(task)), in_memory=False)
        self.next_id += 1
        self._insert(task, value)
        self._define(value)
        return value

    def _settle(self, value: Value) -> None:
        """Make a member of a group of what each reader would compute for itself."""
        if value.task is not None:
            self._insert(value.task, value)

    def _compute(self, operation: OperationIr, work: Work) -> None:
        """Make an operation a member of a group, or one that each reader computes for itself."""
        if work in {Work.GATHER, Work.ADD}:
            self._check(operation)
        output = read_only(operation.outputs[0])
        value = Value(output, in_memory=output.id in self.wanted)
        value.task = self.task(operation, work)
        if value.in_memory or not estimate(value, value.task):
            self._insert(self.divided(value.task), value)
        self._define(value)

    def _check(self, operation: OperationIr) -> None:
        """See that a kernel finds indices that are out of range."""
        x, indices = operands_of(operation)[:2]
        value, map = self.refs[indices.id]
        distinct = without_repeats(map)
        key = value.tensor.id, distinct, x.shape[operation.attributes["axis"]]
        if key in self.checks:
            return
        count = math.prod([length for length, _ in distinct.digits])
        made = Value(TensorIr(self.next_id, (count,), self.index_dtype), in_memory=True)
        self.next_id += 1
        self.checks[key] = made.tensor.id
        uses = (Use(indices, value, distinct),)
        self._insert(Task(operation, Work.CHECK, count, uses), made)
        self._define(made)

    def _insert(self, task: Task, value: Value) -> None:
        """Make an operation a member of a group."""
        while not self._is_joined(task, value):
            # What it reads is free and costs too much here, or is a view whose digits do not agree.
            free = [use.value for use in task.uses if isinstance(use, Use) and use.value.is_free]
            for item in free:
                if item.is_free:  # it is there twice, or another one of them has settled it
                    self._settle(item)
            if not free:
                task = self._with_dense_operands(task)

    def _is_joined(self, task: Task, value: Value) -> bool:
        """Make an operation a member of a group, if there is one or its operands fit a new one."""
        for group in self._candidates(task):
            if join(task, group, value):
                break
        else:
            group = Group(len(self.steps), task.count, has_tensor=not task.is_product)
            if not join(task, group, value) and not join(task, group, value, again=False):
                return False
            self.steps.append(group)
        for read in [] if value.recipe is None else reads_of(value.recipe):
            readers = self.readers.setdefault(read.value.tensor.id, [])
            if group not in readers[-2:]:
                readers.append(group)
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
                self.copy(use.tensor)
        return self.task(task.operation, task.work)

    def _finished(self) -> Plan:
        """The plan of the steps, without the members that nothing needs."""
        needed = {*self.checks.values(), *[tensor.id for tensor in self.graph.outputs]}
        made: list[Step] = []
        for step in reversed(self.steps):
            call = step
            if isinstance(step, Group):
                call = kernel_call(step, needed, self.index_dtype, relaxed=self.graph.relaxed)
            if call is not None:
                needed |= {tensor.id for tensor in inputs_of(call)}
                made.append(call)
        steps = in_place(self.graph, made[::-1], self._may_raise, self.target.makes_own)
        reasons = {index: reason for index, _, _, reason in self.rules if reason}
        return Plan(self.graph, tuple(steps), reasons, last_uses(self.graph, steps))

    def _may_raise(self, step: Step) -> bool:
        """Whether a step may raise for values."""
        if isinstance(step, KernelCall):
            return bool(step.checks) and not self.target.reports_late
        if Tag.CHECKS_INDICES in REGISTRY[step.name].tags:
            return not self.target.reports_late and step.outputs[0].id not in self.checked
        return may_raise(step)


def _map_of(view: OperationIr) -> IndexMap:
    """From the elements of a view to those of what it is a view of."""
    (below,) = operands_of(view)
    return view_map(view.name, view.attributes, shape_of(below))


def _reshaped(view: OperationIr, tensor: TensorIr) -> OperationIr:
    """A view of a tensor whose elements it has in the same order, as one operation."""
    shape = view.outputs[0].shape
    return OperationIr("reshape", (tensor,), {"shape": shape}, view.outputs, view.source)


def last_uses(graph: GraphIr, steps: list[Step]) -> dict[int, int]:
    """For each tensor that a step makes and that is no output, the last step that names it."""
    outputs = {tensor.id for tensor in graph.outputs}
    found: dict[int, int] = {}
    for index, step in enumerate(steps):
        found.update({source.id: index for source in inputs_of(step) if source.id in found})
        found.update({output.id: index for output in step.outputs if output.id not in outputs})
    return found
