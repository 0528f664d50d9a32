"""Gradients of ops that run programs: the backward pass runs programs in turn.

A program is traced under automatic differentiation, and its backward pass after it. What follows is
two programs: one that gives what the first gave and what the backward pass needs of it, and the
backward pass. Both are kept with the program, so each is traced once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from burn.autodiff import Autodiff, AutodiffTensor, Gradients, backward_all, recording
from burn.ir import Execution, GraphIr, OperationIr, ScalarIr, Status, TensorIr, with_last_uses
from burn.ops import observing
from burn.router import Recorder, RouterTensor, TraceBackend

if TYPE_CHECKING:
    from burn.aliases import Primitive
    from burn.ops import OpTable

__all__ = ["linearize_cond", "linearize_scan"]

_Pull = Callable[["OpTable", Sequence["Primitive | None"]], Sequence["Primitive"]]

_Linear = tuple[Sequence["Primitive"], Sequence[int], _Pull | None]


def linearize_cond(
    ops: OpTable,
    needs: Sequence[Any],
    predicate: Primitive,
    operands: list[Primitive],
    *,
    true_function: GraphIr,
    false_function: GraphIr,
    **state: Any,
) -> _Linear:
    """`burn.ops.Op.linearize` of ``cond``."""
    branches = _kept_with(
        true_function,
        (id(false_function), needs[1], observing.plain(ops.backend), ops.device),
        lambda: _Branches(true_function, false_function, needs[1], ops),
    )
    outputs = ops.cond(
        predicate,
        operands,
        true_function=branches.forward[0],
        false_function=branches.forward[1],
        **state,
    )
    count = len(true_function.outputs)
    saved = [*[operands[index] for index in branches.used], *outputs[count:]]

    def pull(ops: OpTable, cotangents: Sequence[Primitive | None]) -> Sequence[Primitive]:
        metas = [true_function.outputs[index] for index in branches.tracked]
        gradients: Sequence[Primitive] = ops.cond(
            predicate,
            [*saved, *_filled(ops, cotangents, metas)],
            true_function=branches.backward[0],
            false_function=branches.backward[1],
            **state,
        )
        return gradients

    return outputs[:count], branches.tracked, pull


def linearize_scan(
    ops: OpTable,
    needs: Sequence[Any],
    carry: list[Primitive],
    xs: list[Primitive],
    captured: list[Primitive],
    *,
    body: GraphIr,
    length: int,
    reverse: bool = False,
    seed: int = 0,
    offset: int = 0,
    offset_stride: int = 0,
) -> _Linear:
    """`burn.ops.Op.linearize` of ``scan``."""
    flags = (*needs[0], *needs[1], *needs[2])
    loop = _kept_with(
        body,
        (flags, len(carry), len(xs), observing.plain(ops.backend), ops.device),
        lambda: _Loop(body, flags, len(carry), len(xs), ops),
    )
    outputs = ops.scan(
        carry,
        xs,
        captured,
        body=loop.forward,
        length=length,
        reverse=reverse,
        seed=seed,
        offset=offset,
        offset_stride=offset_stride,
    )
    count = len(body.outputs)
    operands = [*carry, *xs, *captured]
    rows = [outputs[index] for index in loop.kept]
    rows += [operands[index] for index in loop.used_rows]
    shared = [operands[index] for index in loop.used_shared]
    metas = [_meta_of(outputs[index], body.outputs[index]) for index in loop.tracked]
    sums = [_meta_of(operands[index], body.inputs[index]) for index in loop.summed]

    def pull(ops: OpTable, cotangents: Sequence[Primitive | None]) -> Sequence[Primitive]:
        starts = _filled(ops, cotangents, metas)
        changing = loop.changing
        gradients = ops.scan(
            [*starts[: len(changing)], *_filled(ops, [None] * len(sums), sums)],
            [*rows, *starts[len(changing) :]],
            shared,
            body=loop.backward,
            length=length,
            reverse=not reverse,
            seed=seed,
            offset=offset + (length - 1) * offset_stride,
            offset_stride=-offset_stride,
        )
        found = dict(zip([*changing, *loop.summed, *loop.rows], gradients, strict=True))
        return [found[index] for index, need in enumerate(flags) if need]

    return outputs[:count], loop.tracked, pull


class _Branches:
    """The programs of a `cond` and its gradient.

    Attributes
    ----------
    forward : list of GraphIr
        For each branch: its outputs, and what the backward passes of both need.
    backward : list of GraphIr
        For each branch: from the used operands, what forward gave beside the outputs, and the
        cotangents, to the gradients of the operands that need them.
    used : list of int
        The operands that backward passes use.
    tracked : list of int
        The outputs that have cotangents.
    """

    def __init__(
        self, first: GraphIr, second: GraphIr, needs: Sequence[bool], ops: OpTable
    ) -> None:
        self.graphs = first, second  # as long as they are here, no other one has their numbers
        joints = [_Joint(graph, needs, ops) for graph in self.graphs]
        self.tracked = sorted({index for joint in joints for index in joint.cotangents})
        self.used = sorted({index for joint in joints for index in joint.used})
        self.forward: list[GraphIr] = []
        self.backward: list[GraphIr] = []
        for own, joint in enumerate(joints):
            kept = [
                joint.kept
                if number is own
                else [joint.new(tensor) for tensor in joints[number].kept]
                for number in (0, 1)
            ]
            self.forward.append(joint.forward([*kept[0], *kept[1]], zeros=kept[1 - own]))
            cotangents = [
                joint.cotangents.get(index) or joint.new(first.outputs[index])
                for index in self.tracked
            ]
            inputs = [joint.inputs[index] for index in self.used]
            self.backward.append(
                joint.backward(
                    [*inputs, *kept[0], *kept[1], *cotangents], list(joint.gradients.values())
                )
            )


class _Loop:
    """The programs of a `scan` and its gradient.

    Attributes
    ----------
    forward : GraphIr
        The body, whose outputs are followed by what else the backward pass needs of each iteration.
    backward : GraphIr
        From the gradients of the carry and the sums of gradients so far, which are its carry; what
        forward gave, the elements that are used, and the cotangents of what is stacked; and the
        captured tensors that are used. To its carry, and the gradients of the elements.
    kept : list of int
        The outputs of `forward` that the backward pass gets.
    changing, rows, summed : list of int
        The inputs of the body that have gradients: in the carry, elements, and captured ones.
    used_rows, used_shared : list of int
        The inputs of the body that the backward pass uses: elements, and captured ones.
    tracked : list of int
        The outputs that have cotangents, those in the carry first.
    """

    def __init__(
        self, body: GraphIr, needs: Sequence[bool], carried: int, elements: int, ops: OpTable
    ) -> None:
        first_shared = carried + elements
        shared = range(first_shared, len(body.inputs))
        flags = list(needs)
        while True:
            joint = _Joint(body, flags, ops, shared=shared, stored=range(carried))
            made = [index for index in joint.cotangents if index < carried and not flags[index]]
            if not made:
                break
            for index in made:  # what an iteration makes tracked, the next one gets
                flags[index] = True
        having = [index for index, need in enumerate(flags) if need]
        self.changing = [index for index in having if index < carried]
        self.rows = [index for index in having if carried <= index < first_shared]
        self.summed = [index for index in having if index >= first_shared]
        self.used_rows = [index for index in joint.used if index < first_shared]
        self.used_shared = [index for index in joint.used if index >= first_shared]
        stacked = [index for index in joint.cotangents if index >= carried]
        self.tracked = [*self.changing, *stacked]
        at = {output.id: index for index, output in enumerate(joint.outputs) if index >= carried}
        further = [tensor for tensor in joint.kept if tensor.id not in at]
        at |= {tensor.id: len(joint.outputs) + index for index, tensor in enumerate(further)}
        self.kept = [at[tensor.id] for tensor in joint.kept]
        self.forward = joint.forward(further)
        self.backward = joint.backward(
            [
                *[
                    joint.cotangents.get(index) or joint.new(body.outputs[index])
                    for index in self.changing
                ],
                *joint.sums,
                *joint.kept,
                *[joint.inputs[index] for index in self.used_rows],
                *[joint.cotangents[index] for index in stacked],
                *[joint.inputs[index] for index in self.used_shared],
            ],
            [joint.gradients[index] for index in (*self.changing, *self.summed, *self.rows)],
        )


class _Joint:
    """A program and its backward pass, written down one after the other.

    Parameters
    ----------
    graph : GraphIr
        The program.
    needs : sequence of bool
        For each input whether its gradient is needed.
    ops : OpTable
        What is to run it.
    shared : collection of int
        Inputs that are the same at each run, one after the other: what depends on them alone is
        computed again, and their gradients are added to `sums`.
    stored : collection of int
        Inputs that the backward pass gets as a part of `kept`.

    Attributes
    ----------
    inputs : list of TensorIr
        The inputs of the program.
    sums : list of TensorIr
        Inputs of the backward pass: to each a gradient of a shared input is added.
    cotangents : dict of int to TensorIr
        Inputs of the backward pass: for each output that depends on what needs a gradient.
    gradients : dict of int to TensorIr
        Outputs of the backward pass: for each input that needs one.
    used : list of int
        Inputs of the program that the backward pass uses.
    kept : list of TensorIr
        What else it uses.
    """

    def __init__(
        self,
        graph: GraphIr,
        needs: Sequence[bool],
        ops: OpTable,
        *,
        shared: Collection[int] = (),
        stored: Collection[int] = (),
    ) -> None:
        recorder = self._recorder = Recorder()
        self._graph = graph
        backend = TraceBackend(  # type: ignore[abstract]  # its ops are those of its table
            observing.plain(ops.backend), lambda: recorder, lambda _: ""
        )
        autodiff = Autodiff(backend)
        table = autodiff.for_device(ops.device)
        tensors: Sequence[Any] = graph.inputs  # no scalars, and of known lengths
        given: list[Any] = [recorder.tensor(tensor.shape, tensor.dtype) for tensor in tensors]
        self.inputs: list[TensorIr] = [item.ir for item in given]
        leaves = {
            index: autodiff.require_grad(given[index], ops.device)
            for index, need in enumerate(needs)
            if need
        }
        token = recording.set(True)
        try:
            draw: Any = (0, 0)
            if graph.draw is not None:  # scalars stand for the numbers
                draw = graph.draw.seed, graph.draw.offset
            outputs = Execution(graph, table).run(
                [leaves.get(index, item) for index, item in enumerate(given)],
                draw,
            )
            self._split = len(recorder.operations)
            self.outputs = [_ir_of(output) for output in outputs]
            self._differentiate(outputs, leaves, table.below, shared)
        finally:
            recording.reset(token)
        self._choose(shared, stored)

    def _differentiate(
        self,
        outputs: Sequence[Any],
        leaves: dict[int, AutodiffTensor],
        ops: OpTable,
        shared: Collection[int],
    ) -> None:
        """Write down the backward pass."""
        recorder = self._recorder
        starts = {
            index: recorder.tensor(tuple(output.shape), self._graph.outputs[index].dtype)
            for index, output in enumerate(outputs)
            if isinstance(output, AutodiffTensor)
        }
        self.cotangents = {index: start.ir for index, start in starts.items()}
        found = Gradients()
        if starts:
            found = backward_all([outputs[index] for index in starts], list(starts.values()))
        self.sums: list[TensorIr] = []
        self.gradients: dict[int, TensorIr] = {}
        for index, leaf in leaves.items():
            gradient = found.get(leaf.node)
            if index in shared:
                total = recorder.tensor(tuple(leaf.shape), self.inputs[index].dtype)
                self.sums.append(total.ir)
                gradient = total if gradient is None else ops.add(total, gradient)
            elif gradient is None:
                (gradient,) = _filled(ops, [None], [self.inputs[index]])
            self.gradients[index] = gradient.ir

    def _choose(self, shared: Collection[int], stored: Collection[int]) -> None:
        """Find out what the backward pass uses."""
        operations = self._recorder.operations
        constants = {constant.tensor.id for constant in self._recorder.constants}
        fixed = constants | {self.inputs[index].id for index in shared}
        again: list[OperationIr] = []
        if shared:
            for operation in operations[: self._split]:
                if _ids(operation.inputs) <= fixed and not _has_scalars(operation):
                    fixed |= _ids(operation.outputs)
                    again.append(operation)
        self._backward = operations[self._split :]
        wanted = _ids(self.gradients.values())
        for operation in self._backward:
            wanted |= _ids(operation.inputs)
        for operation in reversed(again):
            if _ids(operation.outputs) & wanted:
                wanted |= _ids(operation.inputs)
                self._backward.insert(0, operation)
        for operation in self._backward:
            wanted -= _ids(operation.outputs)
        wanted -= constants | _ids([*self.sums, *self.cotangents.values()])
        positions = {source.id: index for index, source in enumerate(self.inputs)}
        by_id = {source.id: source for source in self.inputs}
        by_id |= {output.id: output for made in operations for output in made.outputs}
        self.used: list[int] = []
        self.kept: list[TensorIr] = []
        for id in sorted(wanted):
            index = positions.get(id)
            if index is None or index in stored:
                self.kept.append(by_id[id]._replace(status=Status.READ_ONLY))
            else:
                self.used.append(index)

    def new(self, like: TensorIr) -> TensorIr:
        """A new tensor of the shape and dtype of another one."""
        return like._replace(id=self._recorder.next_id(), status=Status.READ_ONLY)

    def forward(self, kept: Iterable[TensorIr], zeros: Iterable[TensorIr] = ()) -> GraphIr:
        """The program with further outputs, some of which are zeros."""
        made = [
            OperationIr(
                "full",
                (),
                {"shape": zero.shape, "fill_value": 0, "dtype": zero.dtype},
                (zero._replace(status=Status.NOT_INIT),),
            )
            for zero in zeros
        ]
        operations = [*self._recorder.operations[: self._split], *made]
        return self._program(self.inputs, operations, [*self.outputs, *kept])

    def backward(self, inputs: Sequence[TensorIr], outputs: Sequence[TensorIr]) -> GraphIr:
        """The backward pass."""
        return self._program(inputs, self._backward, outputs)

    def _program(
        self,
        inputs: Sequence[TensorIr],
        operations: Sequence[OperationIr],
        outputs: Sequence[TensorIr],
    ) -> GraphIr:
        used = _ids(outputs)
        for operation in operations:
            used |= _ids(operation.inputs)
        constants = tuple(
            [constant for constant in self._recorder.constants if constant.tensor.id in used]
        )
        graph = GraphIr(
            tuple(inputs), constants, tuple(operations), tuple(outputs), self._graph.draw
        )
        return with_last_uses(graph)


class _Meta(NamedTuple):
    """Shape and dtype of a tensor."""

    shape: Any
    dtype: Any


def _meta_of(primitive: Primitive, like: TensorIr) -> _Meta:
    return _Meta(tuple(primitive.shape), like.dtype)


def _filled(
    ops: OpTable, tensors: Sequence[Primitive | None], metas: Sequence[Any]
) -> list[Primitive]:
    """Tensors, with zeros for each None."""
    return [
        ops.full(shape=tuple(meta.shape), fill_value=0.0, dtype=meta.dtype)
        if tensor is None
        else tensor
        for tensor, meta in zip(tensors, metas, strict=True)
    ]


def _kept_with(graph: GraphIr, key: Any, make: Callable[[], Any]) -> Any:
    """What was made for a program and a key before, or else is made now."""
    kept = vars(graph).setdefault("_gradients", {})
    found = kept.get(key)
    if found is None:
        found = kept[key] = make()
    return found


def _ids(values: Iterable[Any]) -> set[int]:
    """Numbers of the tensors among operands and lists of operands."""
    return {
        part.id
        for value in values
        for part in (value if value.__class__ is tuple else (value,))
        if part.__class__ is TensorIr
    }


def _has_scalars(operation: OperationIr) -> bool:
    return any(isinstance(attribute, ScalarIr) for attribute in operation.attributes.values())


def _ir_of(primitive: Primitive) -> TensorIr:
    while not isinstance(primitive, RouterTensor):
        primitive = primitive.primitive
    return primitive.ir
