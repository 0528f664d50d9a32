"""Programs: generated kernels, and ops of this plugin, captured in a CUDA graph."""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import burn.plugin_api as core
from burn.plugin_api import (
    REGISTRY,
    Check,
    Code,
    DeviceId,
    GraphIr,
    HostNumber,
    KernelCall,
    Op,
    OperationIr,
    Replay,
    ScalarIr,
    Straight,
    Tag,
    Target,
    TensorIr,
    fuses,
    lowered,
    philox_state,
    planned,
    resolve,
    tensors_among,
)
from burn_cuda.base import Array, CudaOps
from burn_cuda.dialect import code_of
from burn_cuda.generated import ALIGNMENT, LONG_COLUMNS, REAL, ROWS, STRIDED_ROWS
from burn_cuda.lanes import Lanes, dependencies, made_bytes
from burn_cuda.random import DrawnNumber
from burn_cuda.recorder import CudaRecorder

if TYPE_CHECKING:
    from burn_cuda.backend import CudaBackend

__all__ = ["Program", "ProgramOps"]

_OWN: Final = frozenset({"attention_bias_grad", "select", "select_add"})
"""Ops of which kernels of this plugin stay, though what they are made of could be generated."""

_NEW_MEMORY: Final = frozenset({"matmul"})
"""Ops whose results are dense arrays of their own."""

_DRAWS: Final = frozenset(vars(core.RandomOps)) & frozenset(REGISTRY)
"""Ops whose kernels read the state of the generator from memory."""

_STATE: Final = struct.Struct("=qqq")
"""The seed, and both halves of the offset."""

_MAX_NAME: Final = 60
_COMPILING_THREADS: Final = 8
_MAX_SCORES: Final = 1 << 26
_MAX_KEPT_BYTES: Final = 256 << 20
"""What the steps of a program make at most, if they are captured on several streams."""


class ProgramOps(CudaOps):
    """Compilation of programs."""

    def compile(self, graph: GraphIr, device: DeviceId) -> Callable[..., tuple[Array, ...]]:
        """Generated kernels and calls, which are captured when they have run once."""
        own: Any = self.for_device(device)
        return Program(own, graph, device)


class Program:
    """A program of one device.

    Parameters
    ----------
    backend : CudaBackend
        The device.
    graph : GraphIr
        The program.
    device : DeviceId
        The device as core numbers it.
    """

    def __init__(self, backend: CudaBackend, graph: GraphIr, device: DeviceId) -> None:
        self._backend = backend
        self._inputs = len(graph.inputs)
        table = resolve(backend, device)

        def keeps(operation: OperationIr) -> bool:
            definition = REGISTRY[operation.name]
            return (
                not _is_generated(operation)
                and not definition.tags & Tag.ELEMENTWISE
                and table.origin(definition) == "native"
            )

        target = Target(
            REAL,
            keeps,
            checks=True,
            makes_own=lambda operation: operation.name in _NEW_MEMORY,
            reports_late=True,
            rows=ROWS,
            strided_rows=STRIDED_ROWS,
            long_columns=LONG_COLUMNS,
        )
        parts = lowered(
            graph, lambda operation: not keeps(operation) and not fuses(operation, target), table
        )
        self.plan = planned(parts, target)
        self._draws = self._reads_draws()
        self._state = _STATE.size // 8 if self._draws else 0
        calls = [step for step in self.plan.steps if isinstance(step, KernelCall)]
        self._slots: dict[int, int] = {}
        """Where the scalars of each call of a kernel are among the numbers."""
        numbers: list[HostNumber | float] = []
        for call in calls:
            self._slots[id(call)] = self._state + len(numbers)
            numbers += call.scalars
        self._numbers = _numbers(graph, numbers)
        kinds = [kind for call in calls for kind in call.kernel.scalars]
        self._packer = struct.Struct("=" + "".join(["q" if kind is int else "d" for kind in kinds]))
        with ThreadPoolExecutor(_COMPILING_THREADS) as pool:
            self._compiled = dict(zip(map(id, calls), pool.map(self._code, calls), strict=True))
        with backend.runtime.current():
            self._recorder = CudaRecorder(backend, self._state + len(numbers))
            self._straight = _Straight(self.plan, table, self._load)
        self._waits = dependencies(self.plan) if made_bytes(self.plan) <= _MAX_KEPT_BYTES else None
        self._replay = Replay(
            self._run,
            self._recorder,
            [number for number, source in enumerate(graph.inputs) if isinstance(source, TensorIr)],
            [donation.input for donation in graph.donated],
            self._launches(),
        )

    def __call__(self, *arguments: Any) -> tuple[Array, ...]:
        """Run the program."""
        runtime = self._backend.runtime
        if not runtime.is_current():
            with runtime.current():
                return self(*arguments)
        if runtime.is_capturing:  # as a loop in a program runs its body
            return self._run_in_capture(arguments)
        pending = self._packer.pack(*self._numbers(*arguments))
        if self._draws:
            pending = _STATE.pack(*philox_state(*arguments[-2:])) + pending
            drawn = DrawnNumber(runtime.address(self._recorder.numbers))
            arguments = (*arguments[:-2], drawn, drawn)
        self._recorder.pending = pending
        return self._replay(*arguments)

    def _run_in_capture(self, arguments: tuple[Any, ...]) -> tuple[Array, ...]:
        """Launch the kernels, which become a part of what is captured.

        Raises
        ------
        RuntimeError
            If they read numbers, which only a run of this program itself brings.
        """
        if self._draws or self._packer.size:
            raise RuntimeError("a program in a loop reads numbers of a run")
        return self._straight.run(arguments[: self._inputs])

    def _run(self, *arguments: Any) -> tuple[Array, ...]:
        """Launch the kernels one by one."""
        with self._backend.runtime.tuned_products():
            draw = arguments[self._inputs :] or (0, 0)
            if self._waits is None or not self._backend.runtime.is_capturing:
                return self._straight.run(arguments[: self._inputs], draw)
            lanes = self._straight.lanes = Lanes(self._backend.runtime, self._waits)
            try:
                outputs = self._straight.run(arguments[: self._inputs], draw)
                lanes.join()
                return outputs
            finally:
                self._straight.lanes = None

    def describe(self, error: BaseException) -> str:
        """The operation that raised an error."""
        return getattr(error, "operation", "") or self._straight.describe(error)

    def explain(self) -> str:
        """What the kernels are, and how they are launched."""
        return f"{self._straight.explain()}\n{self._replay.describe()}"

    @property
    def kernels(self) -> Mapping[str, str]:
        """The sources of the generated kernels."""
        return {
            f"{number} {code.entry}": code.text
            for number, (code, _) in enumerate(self._compiled.values())
        }

    def _launches(self) -> int:
        """About how many kernels there are; 0 if numbers of a run are not read from memory."""
        count = 0
        for step in self.plan.steps:
            if isinstance(step, KernelCall):
                count += 1
                continue
            count += not REGISTRY[step.name].tags & Tag.VIEW
            if _has_numbers(step) and not (self._draws and step.name in _DRAWS):
                return 0
        return count

    def _reads_draws(self) -> bool:
        """Whether the program draws numbers, only by ops that can read the state from memory."""
        draw = self.plan.graph.draw
        if draw is None:
            return False
        names = {
            step.name
            for step in self.plan.steps
            if isinstance(step, OperationIr)
            for attribute in step.attributes.values()
            if isinstance(attribute, ScalarIr) and attribute.id in {draw.seed.id, draw.offset.id}
        }
        return names <= _DRAWS

    def _code(self, call: KernelCall) -> tuple[Code, Any]:
        """The text of a kernel, and the kernel."""
        number = self._backend.launcher.checked.number
        checks = {
            check.output: (number(check.operation.called.describe()), check.length)
            for check in call.checks
        }
        code = code_of(call.kernel, checks, _name(call))
        contracts = call.kernel.relaxed
        return code, self._backend.runtime.compile(code.text, code.entry, contracts=contracts)

    def _load(self, call: KernelCall) -> Callable[..., tuple[Array, ...]]:
        """The launch of a kernel, whose numbers have a part of the memory."""
        launcher, runtime = self._backend.launcher, self._backend.runtime
        slot = self._slots[id(call)]
        code, launch = self._compiled[id(call)]
        checks = {check.output for check in call.checks}
        grid, block = (code.groups(call.scalars),), (code.lanes,)
        numbers: tuple[int, ...] = ()
        if call.scalars:
            numbers = (runtime.address(self._recorder.numbers) + 8 * slot,)
        made = [
            (lambda: runtime.flag_address)
            if index in checks
            else functools.partial(launcher.empty, output.shape, output.dtype.numpy)  # type: ignore[arg-type]  # lengths are known
            for index, output in enumerate(call.outputs)
        ]
        is_dense, copied = launcher.is_dense, launcher.copied
        address = runtime.address

        def run(
            inputs: tuple[Array, ...], scalars: tuple[float, ...], out: tuple[Array | None, ...]
        ) -> tuple[Array, ...]:
            del scalars  # they are in memory
            operands = [
                source if is_dense(source) and not address(source) % ALIGNMENT else copied(source)
                for source in inputs
            ]
            results = [new() if item is None else item for new, item in zip(made, out, strict=True)]
            if grid[0]:
                launch(grid, block, (*operands, *results, *numbers))
            return tuple(results)

        return run


class _Straight(Straight):
    """A plan whose kernels report indices out of range in the flag of the device."""

    lanes: Lanes | None = None

    def _line(self, step: Any, index: int) -> str:
        """A step, on a lane while the program is captured on several."""
        line = super()._line(step, index)
        name = f"k{index}" if isinstance(step, KernelCall) else f"f{index}"
        self._names[name] = functools.partial(self._on_lane, index, self._names[name])
        return line

    def _on_lane(self, index: int, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        lanes = self.lanes
        if lanes is None:
            return function(*args, **named)
        return lanes.run(index, function, *args, **named)

    def _check(self, check: Check, found: Any) -> None:
        """The kernel has reported; the host reads it later."""


def _is_generated(operation: OperationIr) -> bool:
    """Whether an op that has a kernel of its own is left to generated kernels."""
    name = operation.name
    if _fuses_well(REGISTRY[name]) or name.endswith("_step"):
        return True
    if operation.outputs[0].dtype.itemsize < 4:
        return False  # tensor cores multiply
    return name == "linear" or (name == "attention_grad" and _has_few_scores(operation))


def _fuses_well(op: Op) -> bool:
    """Whether an op becomes a part of generated kernels, or is decomposed into such parts.

    It does though there are kernels of this plugin: with what stands around them they read and
    write less.
    """
    if op.fuses is None:
        return op.combines is not None
    return not (op.tags & Tag.CONTRACTION or op.name in _OWN or op.name == "attention_grad")


def _has_few_scores(operation: OperationIr) -> bool:
    """Whether the scores of an attention take little memory, so that they may be there at once."""
    query, key = list(tensors_among(operation.inputs))[:2]
    *batch, rows, _ = query.shape
    return math.prod(batch) * rows * key.shape[-2] <= _MAX_SCORES  # type: ignore[operator, arg-type]  # lengths are known


def _name(call: KernelCall) -> str:
    """The name of a kernel, as profiles show it: what it computes, its rows and columns."""
    names = dict.fromkeys([operation.name for operation in call.operations])
    kernel = call.kernel
    text = "_".join(names)[:_MAX_NAME]
    return f"{text}_{kernel.row_count}x{kernel.column_count}"


def _has_numbers(operation: OperationIr) -> bool:
    """Whether an operation gets a number that each run has anew."""
    return any(
        isinstance(source, ScalarIr | HostNumber)
        for source in (*operation.inputs, *operation.attributes.values())
    )


def _numbers(
    graph: GraphIr, wanted: Sequence[HostNumber | float]
) -> Callable[..., tuple[float, ...]]:
    """The function of a run's arguments that computes numbers of its kernels."""
    names = [
        f"s{source.id}" if isinstance(source, ScalarIr) else f"x{number}"
        for number, source in enumerate(graph.inputs)
    ]
    draw = graph.draw
    names += ["*_"] if draw is None else [f"s{draw.seed.id}", f"s{draw.offset.id}"]
    values = "".join([f"{item!r}, " for item in wanted])
    # HostNumbers consist of numbers, names of scalars and operators.
    function: Callable[..., tuple[float, ...]] = eval(f"lambda {', '.join(names)}: ({values})")  # noqa: S307 — see above
    return function
