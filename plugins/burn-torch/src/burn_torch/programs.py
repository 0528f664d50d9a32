"""Programs: the ops one after the other, captured in a CUDA graph on CUDA devices."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Final

import torch

from burn.plugin_api import (
    REGISTRY,
    BurnError,
    DeviceId,
    Drop,
    Execution,
    GraphIr,
    HostNumber,
    OperationIr,
    Replay,
    ScalarIr,
    Tag,
    TensorIr,
    resolve,
    with_last_uses,
)
from burn_torch.base import TorchOps
from burn_torch.dtypes import Tensor
from burn_torch.index_checks import CapturedChecks
from burn_torch.writing import is_unused

if TYPE_CHECKING:
    from burn_torch.backend import TorchBackend

__all__ = ["ProgramOps"]

_TAKE_TENSORS: Final = frozenset({"adam_step", "sgd_step"})
_AS_TENSORS: Final = frozenset({"learning_rate", "step"})
"""Ops that take these numbers of a run as tensors, which the device reads at each run."""


class ProgramOps(TorchOps):
    """Compilation of programs."""

    def compile(self, graph: GraphIr, device: DeviceId) -> Callable[..., tuple[Tensor, ...]] | None:
        """A program in a CUDA graph; None on other devices, where core runs the ops."""
        own: Any = self.for_device(device)
        return _Program(own, graph, device) if own.torch_device.type == "cuda" else None


class _Execution(Execution):
    """The ops of a program, of which steps of optimizers take tensors."""

    def _call_line(self, operation: OperationIr, index: int, last: set[int]) -> str:
        line = super()._call_line(operation, index, last)
        if operation.name in _TAKE_TENSORS:  # without the requirements, see `_Program`
            self._names[f"f{index}"] = getattr(self.table.backend, operation.name)
        return line


class _Program:
    """A program of one CUDA device."""

    def __init__(self, backend: TorchBackend, graph: GraphIr, device: DeviceId) -> None:
        self._inputs = len(graph.inputs)
        self._execution = _Execution(with_last_uses(graph), resolve(backend, device))
        self._donated = {output: input for input, output in graph.donated if output is not None}
        self._scalars = [
            number for number, source in enumerate(graph.inputs) if isinstance(source, ScalarIr)
        ]
        self._recorder = _Recorder(backend, len(self._scalars))
        operations = [
            operation for operation in graph.operations if not isinstance(operation, Drop)
        ]
        self._positions = {
            source.id: number
            for number, source in enumerate(graph.inputs)
            if isinstance(source, ScalarIr)
        }
        self._steps = [operation for operation in operations if operation.name in _TAKE_TENSORS]
        launches = sum(not REGISTRY[operation.name].tags & Tag.VIEW for operation in operations)
        self._is_captured = all(map(_reads_tensors, operations))
        self._replay = Replay(
            self._run,
            self._recorder,
            [number for number, source in enumerate(graph.inputs) if isinstance(source, TensorIr)],
            self._donated.values(),
            launches if self._is_captured else 0,
        )

    def __call__(self, *arguments: Any) -> tuple[Tensor, ...]:
        """Run the program."""
        if torch.cuda.is_current_stream_capturing():  # as a loop in a program runs its body
            if self._scalars or len(arguments) > self._inputs:
                raise RuntimeError("a program in a loop reads numbers of a run")
            return tuple(self._execution.run(arguments))
        for step in self._steps:
            self._check(step, arguments)
        if self._is_captured and self._scalars:
            given = list(arguments)
            self._recorder.pending = [arguments[number] for number in self._scalars]
            for slot, number in enumerate(self._scalars):
                given[number] = self._recorder.numbers[slot]
            arguments = tuple(given)
        with torch.cuda.device(self._recorder.device):
            return self._replay(*arguments)

    def _check(self, operation: OperationIr, arguments: Sequence[Any]) -> None:
        """Raise unless the numbers of a step are those that it requires."""
        requires: Any = REGISTRY[operation.name].requires
        requires(
            **{
                name: arguments[self._positions[attribute.id]] + attribute.plus
                if isinstance(attribute, ScalarIr)
                else attribute
                for name, attribute in operation.attributes.items()
            }
        )

    def describe(self, error: BaseException) -> str:
        """The operation that raised an error."""
        return error.operation if isinstance(error, BurnError) else ""

    def explain(self) -> str:
        """How the calls are launched."""
        count = sum(
            isinstance(operation, OperationIr) for operation in self._execution.graph.operations
        )
        return f"{count} calls of ops of torch, {self._replay.describe()}"

    def _run(self, *arguments: Any) -> tuple[Tensor, ...]:
        """Run the ops; a donated input becomes the output, so that its address stays."""
        draw = arguments[self._inputs :] or (0, 0)
        outputs = list(self._execution.run(arguments[: self._inputs], draw))
        if not self._is_captured or not self._donated:
            return tuple(outputs)
        targets = {output: arguments[input] for output, input in self._donated.items()}
        written = {_memory(target) for target in targets.values()}
        for number, output in enumerate(outputs):
            if number not in targets and _memory(output) in written:
                outputs[number] = output.clone()
        moved = [
            (target, outputs[number])
            for number, target in targets.items()
            if outputs[number] is not target
        ]
        if moved:
            torch._foreach_copy_([target for target, _ in moved], [source for _, source in moved])
        for number, target in targets.items():
            outputs[number] = target
        return tuple(outputs)


def _reads_tensors(operation: OperationIr) -> bool:
    """Whether an operation reads its numbers of a run from the device, if it has any."""
    numbers = {
        name
        for name, attribute in operation.attributes.items()
        if isinstance(attribute, ScalarIr | HostNumber)
    }
    if any(isinstance(source, HostNumber) for source in operation.inputs):
        return False
    return not numbers or (operation.name in _TAKE_TENSORS and numbers <= _AS_TENSORS)


def _memory(x: Tensor) -> int:
    return int(x.untyped_storage().data_ptr())


class _Recorder:
    """Captures a program. See `burn.compiler.replay.Recorder`."""

    def __init__(self, backend: TorchBackend, count: int) -> None:
        self.device = backend.torch_device
        self.numbers = torch.zeros(count, dtype=torch.float64, device=self.device)
        self.pending: list[float] = []
        self.is_unused = is_unused
        self._checks = backend.index_checks
        self._stream: Any = None

    def follow(self) -> None:
        """Wait for the device where a call has another stream than the call before it."""
        stream = torch.cuda.current_stream(self.device)
        if self._stream is not None and stream != self._stream:
            torch.cuda.synchronize(self.device)
        self._stream = stream

    def keys(self, primitives: Sequence[Tensor]) -> list[Hashable]:
        """Addresses; with the strides of tensors that are not dense."""
        return [
            primitive.data_ptr()
            if primitive.is_contiguous()
            else (primitive.data_ptr(), primitive.stride())
            for primitive in primitives
        ]

    def size(self, x: Tensor) -> int:
        """Bytes of the elements."""
        return x.nbytes

    def write(self, targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
        """Copies of all tensors at once, and of the numbers."""
        if self.pending:
            numbers, self.pending = torch.tensor(self.pending, dtype=torch.float64), []
            self.numbers.copy_(numbers, non_blocking=True)  # CUDA has read it at the return
        if targets:
            torch._foreach_copy_(list(targets), list(sources))

    def duplicate(self, x: Tensor) -> Tensor:
        """A dense copy."""
        return x.clone(memory_format=torch.contiguous_format)

    def capture(
        self, run: Callable[..., tuple[Tensor, ...]], arguments: Sequence[Any]
    ) -> tuple[Callable[[], None], tuple[Tensor, ...]]:
        """A CUDA graph of what a function launches, with memory of its own."""
        graph = torch.cuda.CUDAGraph()
        stream = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]  # of torch
        checks = CapturedChecks(self._checks, self.device)
        # `torch.cuda.graph` leaves its stream the current one where the capture fails.
        with (
            torch.cuda.stream(torch.cuda.current_stream(self.device)),
            torch.cuda.graph(graph, stream=stream, capture_error_mode="relaxed"),
            checks.collecting(),
        ):
            outputs = run(*arguments)
        checks.clear()

        def launch() -> None:
            graph.replay()
            checks.launched()

        return launch, outputs
