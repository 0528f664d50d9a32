"""Programs on the CPU: native code for kernels and products, calls of ops between them.

Steps of a plan that are native and follow each other are one call of native code, a *segment*. What
only segments use lies in an arena that belongs to the program; all else is an array of its own.
Views that only segments use are no steps at all.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from burn.plugin_api import (
    Check,
    Execution,
    HostNumber,
    Kernel,
    KernelCall,
    OperationIr,
    OpTable,
    Plan,
    TensorIr,
    explained,
    index_error,
    tensors_among,
)
from burn_cpu.layouts import Layouts
from burn_cpu.native import READABLE, WRITEABLE, Machine
from burn_cpu.products import Product, products_of, stored

__all__ = ["NativeProgram"]

_ALIGNMENT: Final = 64

_PARALLEL_WORK: Final = 15_000.0
"""Nanoseconds of work from which it is divided among threads."""

_LONG_WORK: Final = 20_000.0
"""Nanoseconds of work for which Python's lock is released."""

_PARTS: Final = 4
"""Parts of a kernel for each thread: one that comes late takes fewer."""


class _Native(NamedTuple):
    """A native step."""

    code: Kernel | Product
    inputs: tuple[TensorIr, ...]
    scalars: tuple[HostNumber | int | float, ...]
    outputs: tuple[TensorIr, ...]
    over: tuple[int | None, ...]
    operations: tuple[OperationIr, ...]
    checks: tuple[Check, ...] = ()


class _Segment:
    """Native steps that follow each other."""

    def __init__(self) -> None:
        self.steps: list[_Native] = []

    @property
    def scalars(self) -> tuple[HostNumber, ...]:
        """The numbers of a run that it needs."""
        return tuple([one for one, _ in self.numbers if isinstance(one, HostNumber)])

    @property
    def numbers(self) -> list[tuple[HostNumber, bool]]:
        """The same, and whether kernels take them as floats."""
        found = [
            (number, kind is float)
            for step in self.steps
            if isinstance(step.code, Kernel)
            for number, kind in zip(step.scalars, step.code.scalars, strict=True)
            if isinstance(number, HostNumber)
        ]
        return list(dict.fromkeys(found))

    @property
    def source(self) -> str:
        """The line of the user's program of the first operation."""
        return next((one.source for step in self.steps for one in step.operations), "")

    def describe(self) -> str:
        """As in a message."""
        return ", ".join([one.describe() for step in self.steps for one in step.operations])


class _Found(NamedTuple):
    """A check, the number of the array that it looks at, and the bytes before what it looks at."""

    check: Check
    array: int
    start: int


class NativeProgram(Execution):
    """A plan as native code.

    Parameters
    ----------
    plan : Plan
        What runs.
    table : OpTable
        What runs the calls of ops.
    machine : Machine
        The compiler.
    """

    def __init__(self, plan: Plan, table: OpTable, machine: Machine) -> None:
        self.plan = plan
        self._machine = machine
        self._layouts = Layouts(plan.graph, table)
        steps = self._classified()
        needed = self._needed(steps)
        self._program = self._joined(steps, needed)
        self._ends, offsets, size = self._lifetimes(needed)
        memory = np.empty(size + _ALIGNMENT, np.uint8)
        start = -memory.__array_interface__["data"][0] % _ALIGNMENT
        self._arena = memory[start : start + size]
        self._offsets = offsets
        kernels = [
            step.code
            for segment in self._program
            if isinstance(segment, _Segment)
            for step in segment.steps
            if isinstance(step.code, Kernel)
        ]
        engine, self._functions = machine.functions(dict.fromkeys(kernels))
        super().__init__(plan.graph, table)
        self._names["engine"] = engine  # lives as long as the function that calls its code

    @property
    def kernels(self) -> dict[str, str]:
        """The texts of the kernels, by their names."""
        return {text.name: text.definition for text, _ in self._functions.values()}

    def explain(self) -> str:
        """What runs as one kernel, and what does not and why."""
        return explained(self.plan)

    def describe(self, error: BaseException) -> str:
        """The operation that raised an exception, as in a message."""
        checked: OperationIr | None = vars(error).get("checked")
        return super().describe(error) if checked is None else checked.describe()

    # --- which steps are native ---

    def _classified(self) -> list[_Native | OperationIr]:
        """Native steps, views and calls, in order."""
        layouts = self._layouts
        found: list[_Native | OperationIr] = []
        for step in self.plan.steps:
            if isinstance(step, KernelCall):
                found += self._kernel(step)
            elif isinstance(native := self._products(step), list):
                found += native
            else:
                if not layouts.add_view(step):
                    for tensor in step.outputs:
                        layouts.add(tensor)
                found.append(step)
        return found

    def _kernel(self, call: KernelCall) -> list[_Native]:
        """A kernel, after copies of what it reads that is not in row-major order."""
        layouts = self._layouts
        copies, inputs = self._dense(call.inputs, layouts.is_dense)
        for tensor, over in zip(call.outputs, call.over, strict=True):
            if over is None:
                layouts.add(tensor)
            else:
                layouts.add_over(tensor, inputs[over])
        return [*copies, _Native(*call)._replace(inputs=inputs)]

    def _dense(
        self, tensors: Sequence[TensorIr], test: Callable[[TensorIr], bool]
    ) -> tuple[list[_Native], tuple[TensorIr, ...]]:
        """Copies of the tensors that fail a test, and the tensors with the copies among them."""
        copies, result = [], []
        for tensor in tensors:
            if not test(tensor):
                copy = self._layouts.copy(tensor)
                copies.append(_Native(*copy))
                tensor = copy.outputs[0]
            result.append(tensor)
        return copies, tuple(result)

    def _products(self, operation: OperationIr) -> list[_Native] | None:
        """A matrix product as native steps; None if BLAS does not compute it."""
        if operation.name != "matmul":
            return None
        layouts, (output,) = self._layouts, operation.outputs
        operands = tuple(tensors_among(operation.inputs))
        likes = [layouts.like(one) for one in operands]
        if output.dtype not in self._machine.products or any(
            like is None or not like.size or like.ndim < 2 for like in likes
        ):
            return None
        copies, inputs = self._dense(operands, lambda one: stored(layouts.like(one)) is not None)
        layouts.add(output)
        tensors = (*inputs, output)
        found = products_of(
            *[layouts.like(one) for one in tensors],
            tuple([layouts.memory(layouts.root(one)) for one in tensors]),
        )
        if found is None:
            return None
        return [
            *copies,
            *[_Native(one, inputs, (), (output,), (None,), (operation,)) for one in found],
        ]

    # --- which steps are variables of Python ---

    def _needed(self, steps: list[_Native | OperationIr]) -> set[int]:
        """The tensors that are variables of Python: outputs, and what calls read or make.

        A view is a call only if it is one of them.
        """
        layouts = self._layouts
        needed = {one.id for one in self.plan.graph.outputs}
        for step in reversed(steps):
            if isinstance(step, OperationIr):
                is_view = all(layouts.root(one) != one.id for one in step.outputs)
                if not is_view or step.outputs[0].id in needed:
                    needed.update(one.id for one in tensors_among(step.inputs))
                    needed.update(one.id for one in step.outputs)
            else:
                for tensor, over in zip(step.outputs, step.over, strict=True):
                    if over is not None and tensor.id in needed:
                        needed.add(layouts.root(tensor))
        given = [one.id for one in self.plan.graph.inputs if isinstance(one, TensorIr)]
        return needed | {*given, *[one.tensor.id for one in self.plan.graph.constants]}

    def _joined(
        self, steps: list[_Native | OperationIr], needed: set[int]
    ) -> list[_Segment | OperationIr]:
        """Native steps that follow each other as segments."""
        found: list[_Segment | OperationIr] = []
        for step in steps:
            if isinstance(step, OperationIr):
                if any(one.id in needed for one in step.outputs):
                    found.append(step)
                continue
            if not found or not isinstance(found[-1], _Segment):
                found.append(_Segment())
            found[-1].steps.append(step)  # type: ignore[union-attr]  # a segment
        return found

    # --- memory ---

    def _lifetimes(self, needed: set[int]) -> tuple[list[set[int]], dict[int, int], int]:
        """Variables that end with each step; where in the arena all else is, and its size."""
        layouts = self._layouts
        made: dict[int, int] = {}
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        ends: list[set[int]] = [set() for _ in self._program]
        time = 0
        for index, step in enumerate(self._program):
            for part in step.steps if isinstance(step, _Segment) else [step]:
                time += 1
                tensors = [*tensors_among(part.inputs), *part.outputs]
                for tensor in tensors:
                    root = layouts.root(tensor)
                    first.setdefault(root, time)
                    last[root] = time
                    made.setdefault(tensor.id, index)
                    made[tensor.id] = made[root] = index
        outputs = {one.id for one in self.plan.graph.outputs}
        given = {one.id for one in self.plan.graph.inputs if isinstance(one, TensorIr)}
        for id, index in made.items():
            if id in needed and id not in outputs | given:
                ends[index].add(id)
        arena = [root for root in first if root not in needed]
        spans = [(first[root], last[root], layouts.memory(root).nbytes, root) for root in arena]
        offsets, size = _packed(spans)
        return ends, offsets, size

    # --- the function of Python ---

    def _steps(self) -> Sequence[Any]:
        return self._program

    def _line(self, step: Any, index: int) -> str:
        ended = self._ends[index]
        if not isinstance(step, _Segment):
            return self._call_line(step, index, ended)
        self._names["arena"] = self._arena
        return self._segment_line(step, index, ended)

    def _segment_line(self, segment: _Segment, index: int, ended: set[int]) -> str:
        """The call of a segment, after its new arrays and before the end of those used last."""
        arrays: dict[int, bool] = {}  # roots that are variables, and whether they are written
        fresh: list[int] = []
        layouts = self._layouts
        for step in segment.steps:
            for tensor in step.inputs:
                root = layouts.root(tensor)
                if root not in self._offsets:
                    arrays.setdefault(root, False)
            for tensor, over in zip(step.outputs, step.over, strict=True):
                root = layouts.root(tensor)
                if root not in self._offsets:
                    if root not in arrays and over is None:
                        fresh.append(root)
                    arrays[root] = True
        ids = list(arrays)
        words, is_parallel = self._words(segment, arrays)
        names = [*[f"t{id}" for id in ids], "arena"]
        names += [self._numbers[number.text] for number, _ in segment.numbers]
        run = self._machine.entry(words)
        if is_parallel:
            run = self._machine.parallel(run)
        self._names[f"k{index}"] = run
        self._names[f"r{index}"] = _Repair(run, tuple(arrays.values()), self._checks(segment, ids))
        lines = []
        for id in fresh:
            like = layouts.memory(id)
            self._names[f"e{id}"] = like.shape
            self._names[f"d{id}"] = like.dtype
            self._names["empty"] = np.empty
            lines.append(f"t{id} = empty(e{id}, d{id})")
        arguments = ", ".join(names)
        lines.append(f"e = k{index}({arguments}); e and r{index}(e, {arguments})")
        for step in segment.steps:
            for tensor, over in zip(step.outputs, step.over, strict=True):
                root = layouts.root(tensor)
                if over is not None and root != tensor.id and root not in self._offsets:
                    lines.append(f"t{tensor.id} = t{root}")
        gone = sorted({f"t{id}" for id in ended} - self._names.keys())
        if gone:
            lines.append(f"del {', '.join(gone)}")
        return "; ".join(lines)

    def _checks(self, segment: _Segment, ids: list[int]) -> list[_Found]:
        """The checks of a segment, in order."""
        found = []
        for step in segment.steps:
            for check in step.checks:
                tensor = step.outputs[check.output]
                root = self._layouts.root(tensor)
                start = self._layouts.offset(tensor)
                if root in self._offsets:
                    found.append(_Found(check, len(ids), self._offsets[root] + start))
                else:
                    found.append(_Found(check, ids.index(root), start))
        return found

    def _words(self, segment: _Segment, arrays: dict[int, bool]) -> tuple[Any, bool]:
        """What native code reads of a segment; see ``kernels/runtime.ll``."""
        layouts, numbers = self._layouts, segment.numbers
        slots = {id: slot for slot, id in enumerate(arrays)}
        arena, zero = len(slots), len(slots) + 1 + len(numbers)
        head: list[int] = []
        for id, is_written in arrays.items():
            shape = layouts.memory(id).shape
            head += [WRITEABLE if is_written else READABLE, len(shape), *shape]
        head += [WRITEABLE, 1, self._arena.size]
        head += [int(is_float) for _, is_float in numbers]
        tail: list[int] = []
        total, most, failed, is_parallel = 0.0, 1, 0, False

        def address(tensor: TensorIr, offset: int) -> list[int]:
            root = layouts.root(tensor)
            if root in self._offsets:
                return [arena, self._offsets[root] + offset]
            return [slots[root], offset]

        for step in segment.steps:
            code, table = step.code, []
            if isinstance(code, Product):
                function, items, work = (
                    self._machine.products[step.outputs[0].dtype],
                    code.items,
                    code.work,
                )
                for tensor, offset in zip((*step.inputs, *step.outputs), code.offsets, strict=True):
                    table += address(tensor, offset)
                for word in code.words:
                    table += [zero, word]
            else:
                text, function = self._functions[code]
                items, work = text.items, text.work
                for tensor in (*step.inputs, *step.outputs):
                    table += address(tensor, layouts.offset(tensor))
                for number, kind in zip(step.scalars, code.scalars, strict=True):
                    if isinstance(number, HostNumber):
                        table += [arena + 1 + numbers.index((number, kind is float)), 0]
                    else:
                        table += [zero, _bits(number) if kind is float else int(number)]
            if not items:
                continue
            share = 0
            if work > _PARALLEL_WORK and items > 1:
                share = 1 if isinstance(code, Product) else _PARTS
                is_parallel = True
            total += work
            most = max(most, len(table) // 2)
            tail += [function, items, share, len(table) // 2, *table]
            for check in step.checks:
                failed += 1
                tensor = step.outputs[check.output]
                count = layouts.like(tensor).size
                tail += [-failed, count, -1, 1, *address(tensor, layouts.offset(tensor))]
        steps = failed + sum(1 for step in segment.steps if not self._is_empty(step))
        start = [arena + 1, len(numbers), int(total > _LONG_WORK), steps, most]
        words = np.array([_signed(word) for word in (*start, *head, *tail)], np.int64)
        return words, is_parallel

    def _is_empty(self, step: _Native) -> bool:
        return isinstance(step.code, Kernel) and not self._functions[step.code][0].items


class _Repair:
    """What is done after a segment that did not run to its end.

    If an array is of another class or layout, it runs on copies, and what it writes is copied back.
    """

    def __init__(
        self, run: Callable[..., int], written: tuple[bool, ...], checks: list[_Found]
    ) -> None:
        self._run = run
        self._written = written
        self._checks = checks

    def __call__(self, code: int, *arguments: Any) -> None:
        repaired = list(arguments)
        if code > 0:
            for index, is_written in enumerate(self._written):
                needs = "CAW" if is_written else "CA"
                repaired[index] = np.require(arguments[index], requirements=needs)
            code = self._run(*repaired)
        if code > 0:
            shape = np.shape(arguments[code - 1])
            raise ValueError(f"a tensor of shape {shape} where the program has another shape")
        if code < 0:
            check, position, start = self._checks[-1 - code]
            memory = repaired[position].reshape(-1).view(np.uint8)[start:].view(np.int64)
            error = index_error(int(memory[memory.nonzero()[0][0]]), check.length)
            vars(error)["checked"] = check.operation
            raise error
        for index, is_written in enumerate(self._written):
            if is_written and repaired[index] is not arguments[index]:
                np.copyto(arguments[index], repaired[index])


def _packed(spans: list[tuple[int, int, int, int]]) -> tuple[dict[int, int], int]:
    """Offsets of memory that is used from a time to a time: as low as what is in use permits."""
    offsets: dict[int, int] = {}
    active: list[tuple[int, int, int]] = []  # begin, end, last use
    size = 0
    for first, last, count, root in sorted(spans):
        active = [one for one in active if one[2] >= first]
        count = -(-max(count, 1) // _ALIGNMENT) * _ALIGNMENT
        offset, position = 0, 0
        for position, (begin, end, _) in enumerate(active):
            if begin - offset >= count:
                break
            offset = max(offset, end)
        else:
            position = len(active)
        active.insert(position, (offset, offset + count, last))
        offsets[root] = offset
        size = max(size, offset + count)
    return offsets, size


def _bits(number: float) -> int:
    return int(struct.unpack("q", struct.pack("d", number))[0])


def _signed(word: int) -> int:
    word %= 1 << 64
    return word - (1 << 64) if word >> 63 else word
