"""The gradient of a program that is compiled: what it saves, and the program of its pullback."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from burn.autodiff import AutodiffTensor, backward_all, custom_node
from burn.compiler import compiled
from burn.devices import Device
from burn.devices.transfer import fail
from burn.ir import Execution, GraphIr, ScalarIr, TensorIr, with_last_uses
from burn.locks import new_lock
from burn.transforms._parts import ir_of

if TYPE_CHECKING:
    from burn.autodiff import Node
    from burn.ops import OpTable
    from burn.transforms._code import Given
    from burn.transforms._compiling import Recorded
    from burn.transforms.tracing import Tracing

__all__ = ["Backward", "ProgramPullback", "made_ready", "program_vjp", "track"]


@dataclass(slots=True)
class Backward:
    """The gradient of a program by its inputs.

    Attributes
    ----------
    graph : GraphIr
        From the saved tensors and the gradients of the tracked outputs to those of the inputs.
    saved : list of (str, int)
        Where each saved tensor is: ``"input"`` or ``"output"``, and the index there.
    outputs : list of int
        Indices of the tracked outputs.
    sources : list of int
        Index of an input with each node that gets a gradient, in the order of the outputs of the
        graph.
    numbers : list of int
        Indices of the numbers that it takes too.
    """

    graph: GraphIr
    saved: list[tuple[str, int]]
    outputs: list[int]
    sources: list[int]
    numbers: list[int]


def program_vjp(
    trace: Tracing,
    nodes: Sequence[Node],
    given: Sequence[Given],
    primitives: Sequence[Any],
    tracked: Sequence[int],
    scalars: Sequence[ScalarIr],
) -> tuple[Backward, list[TensorIr]]:
    """The gradient of tracked outputs by the inputs, and what the program saves for it."""
    recorder = trace.recorder
    boundary, constants = len(recorder.operations), len(recorder.constants)
    outputs = [primitives[index] for index in tracked]
    cotangents = [recorder.tensor(tuple(output.shape), ir_of(output).dtype) for output in outputs]
    found = backward_all(outputs, cotangents, retain_graph=True, cut=frozenset(nodes))
    index_of = {
        given.start.node: index
        for index, given in reversed(list(enumerate(given)))
        if isinstance(given.start, AutodiffTensor)
    }
    pairs = [(index_of[node], found.get(node)) for node in nodes]
    reached = [(index, gradient) for index, gradient in pairs if gradient is not None]
    operations = recorder.operations[boundary:]
    gradients = tuple([ir_of(gradient) for _, gradient in reached])
    made = {output.id for operation in operations for output in getattr(operation, "outputs", ())}
    made |= {cotangent.id for cotangent in cotangents}
    used = {tensor.id: tensor for tensor in _used(operations)} | {
        gradient.id: gradient for gradient in gradients
    }
    own = [constant for constant in recorder.constants if constant.tensor.id in used]
    inside = made | {constant.tensor.id for constant in own}
    numbered = {given.ir.id: index for index, given in enumerate(given)}
    saved: list[tuple[str, int]] = []
    outside: list[TensorIr] = []
    kept: list[TensorIr] = []
    for number, tensor in used.items():
        if number in inside:
            continue
        outside.append(tensor)
        if number in numbered:
            saved.append(("input", numbered[number]))
        else:
            saved.append(("output", len(primitives) + len(kept)))
            kept.append(tensor)
    numbers = [index for index, scalar in enumerate(scalars) if scalar.id in _scalars(operations)]
    graph = GraphIr(
        (
            *outside,
            *[cotangent.ir for cotangent in cotangents],
            *[scalars[index] for index in numbers],
        ),
        tuple(own),
        tuple(operations),
        gradients,
        recorder.draw,
    )
    del recorder.constants[constants:]
    backward = Backward(
        with_last_uses(graph), saved, list(tracked), [index for index, _ in reached], numbers
    )
    return backward, kept


def _used(operations: Sequence[Any]) -> list[TensorIr]:
    """The tensors that operations use, in order."""
    found = []
    for operation in operations:
        for operand in getattr(operation, "inputs", ()):
            parts = operand if operand.__class__ is tuple else (operand,)
            found += [part for part in parts if part.__class__ is TensorIr]
    return found


def _scalars(operations: Sequence[Any]) -> set[int]:
    """The numbers of the scalars that operations use."""
    return {
        value.id
        for operation in operations
        for value in getattr(operation, "attributes", {}).values()
        if value.__class__ is ScalarIr
    }


def made_ready(graph: GraphIr, device: Device) -> Any:
    """The executable of a program; what the library raises is an error of the device."""
    try:
        return compiled(graph, device.ops)
    except Exception as error:  # noqa: BLE001 — of whatever library is underneath
        return fail(device, error, "compile")


class ProgramPullback:
    """Gradients of the inputs of a program for gradients of its outputs."""

    def __init__(self, recorded: Recorded, backward: Backward, device: Device) -> None:
        self._backward = backward
        self.device = device
        self._executable: Any = None
        self._lock = new_lock()
        types = [recorded.outputs[index].tensor_type for index in backward.outputs]
        shapes = [recorded.graph.outputs[index].shape for index in backward.outputs]
        self.outputs = list(zip(shapes, types, strict=True))
        self.tensor_class = types[0].device.backend.tensor_type

    def __call__(
        self,
        saved: Sequence[Any],
        numbers: Sequence[Any],
        draw: tuple[int, int],
        ops: OpTable,
        cotangents: Sequence[Any],
    ) -> Sequence[Any]:
        with self._lock:
            if self._executable is None:
                self._executable = made_ready(self._backward.graph, self.device)
        given = [
            ops.full(shape=shape, fill_value=0.0, dtype=tensor_type.dtype)
            if cotangent is None
            else cotangent
            for cotangent, (shape, tensor_type) in zip(cotangents, self.outputs, strict=True)
        ]
        run = self._executable.run
        if ops is not self.device.ops:  # that of a transform
            run = Execution(self._backward.graph, ops).run
        return run((*saved, *given, *numbers), draw)  # type: ignore[no-any-return]  # of primitives


def track(
    pull: ProgramPullback,
    nodes: Sequence[Any],
    outputs: Sequence[Any],
    saved: Sequence[Any],
    numbers: Sequence[Any],
    draw: tuple[int, int],
) -> Sequence[Any]:
    """Tracked tensors of one node, whose gradient a program computes."""
    vjp = functools.partial(pull, saved, numbers, draw)
    return custom_node(
        pull.tensor_class, nodes, outputs, vjp, pull.device.ops, "a compiled function"
    )
