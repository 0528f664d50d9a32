"""Native steps that follow each other, and what native code reads of them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from burn.plugin_api import Check, HostNumber, Kernel, OperationIr, TensorIr
from burn_cpu.layouts import Layouts
from burn_cpu.native import READABLE, WRITEABLE, Machine, Text
from burn_cpu.products import Product

__all__ = ["LONG_WORK", "PARALLEL_WORK", "PARTS", "Code", "Native", "Repair", "Segment"]

PARALLEL_WORK: Final = 15_000.0
"""Nanoseconds of work from which it is divided among threads."""

LONG_WORK: Final = 20_000.0
"""Nanoseconds of work for which Python's lock is released."""

PARTS: Final = 4
"""Parts of a kernel for each thread: one that comes late takes fewer."""


class Native(NamedTuple):
    """A native step: a kernel, with what `KernelCall` says of it, or a product."""

    code: Kernel | Product
    inputs: tuple[TensorIr, ...]
    scalars: tuple[HostNumber | int | float, ...]
    outputs: tuple[TensorIr, ...]
    over: tuple[int | None, ...]
    operations: tuple[OperationIr, ...]
    checks: tuple[Check, ...] = ()


class Segment:
    """Native steps that follow each other.

    Attributes
    ----------
    steps : list of Native
        The steps.
    """

    def __init__(self) -> None:
        self.steps: list[Native] = []

    @property
    def scalars(self) -> list[HostNumber]:
        """The numbers of a run that it needs; see `Execution`."""
        return [number for number, _ in self.numbers]

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
        return next((operation.source for step in self.steps for operation in step.operations), "")

    def describe(self) -> str:
        """As in a message."""
        names = [operation.name for step in self.steps for operation in step.operations]
        return f"kernels of {', '.join(dict.fromkeys(names))}"


class _Found(NamedTuple):
    """A check, the number of the array that it looks at, and the bytes before what it looks at."""

    check: Check
    array: int
    start: int


class Code:
    """A segment as data for ``kernels/runtime.ll``.

    Parameters
    ----------
    segment : Segment
        The steps.
    layouts : Layouts
        Which memory tensors are in.
    offsets : dict of int to int
        Memory that is in the arena, and where; all other memory is that of arrays.
    arena_size : int
        Bytes of the arena.
    machine : Machine
        The compiler.
    functions : dict of Kernel to (Text, int)
        The functions of the kernels.

    Attributes
    ----------
    arrays : dict of int to bool
        The arrays that it is given before the arena, and whether it writes them.
    fresh : list of int
        Those that it makes.
    checks : list
        What it checks, in order.
    words : array
        What native code reads.
    is_parallel : bool
        Whether a step is divided among threads.
    """

    def __init__(
        self,
        segment: Segment,
        layouts: Layouts,
        offsets: Mapping[int, int],
        arena_size: int,
        machine: Machine,
        functions: Mapping[Kernel, tuple[Text, int]],
    ) -> None:
        self._layouts = layouts
        self._offsets = offsets
        self._machine = machine
        self._functions = functions
        self._numbers = {number: slot for slot, number in enumerate(segment.numbers)}
        self.arrays: dict[int, bool] = {}
        self.fresh: list[int] = []
        for step in segment.steps:
            self._note_arrays(step)
        self._slots = {id: slot for slot, id in enumerate(self.arrays)}
        self._arena = len(self.arrays)
        self._zero = self._arena + 1 + len(self._numbers)
        self.checks: list[_Found] = []
        self.is_parallel = False
        self._work = 0.0
        self._most = self._count = 0
        steps = [word for step in segment.steps for word in self._step(step)]
        head = [self._arena + 1, len(self._numbers), int(self._work > LONG_WORK)]
        arguments = [word for id in self.arrays for word in self._array(id)]
        arguments += [WRITEABLE, 1, arena_size]
        arguments += [int(is_float) for _, is_float in self._numbers]
        words = [*head, self._count, max(self._most, 1), *arguments, *steps]
        self.words = np.array([_signed(word) for word in words], np.int64)

    def _note_arrays(self, step: Native) -> None:
        for tensor in step.inputs:
            root = self._layouts.root(tensor)
            if root not in self._offsets:
                self.arrays.setdefault(root, False)
        for tensor in step.outputs:
            root = self._layouts.root(tensor)
            if root not in self._offsets:
                if root not in self.arrays:
                    self.fresh.append(root)
                self.arrays[root] = True

    def _array(self, id: int) -> list[int]:
        """The flags that an array needs, and its axes."""
        shape = self._layouts.memory(id).shape
        return [WRITEABLE if self.arrays[id] else READABLE, len(shape), *shape]

    def _step(self, step: Native) -> Iterator[int]:
        """The words of a step and of its checks."""
        code = step.code
        if isinstance(code, Product):
            function = self._machine.products[step.outputs[0].dtype.name]
            items, work, parts, table = code.items, code.work, 1, self._product_table(step, code)
            self.is_parallel = True  # BLAS is to start no threads of its own
        else:
            text, function = self._functions[code]
            items, work = text.items(step.scalars), text.work(step.scalars)
            parts, table = PARTS, self._table(step, code)
        if not items:
            return
        is_parallel = work > PARALLEL_WORK and items > 1
        self.is_parallel |= is_parallel
        self._work += work
        self._most = max(self._most, len(table) // 2)
        self._count += 1 + len(step.checks)
        yield from (function, items, parts * is_parallel, len(table) // 2, *table)
        for check in step.checks:
            tensor = step.outputs[check.output]
            array, start = address = self._address(tensor, self._layouts.offset(tensor))
            self.checks.append(_Found(check, array, start))
            yield from (-len(self.checks), self._layouts.like(tensor).size, -1, 1, *address)

    def _address(self, tensor: TensorIr, offset: int) -> tuple[int, int]:
        """An argument, and the bytes that are added to its address."""
        root = self._layouts.root(tensor)
        if root in self._offsets:
            return self._arena, self._offsets[root] + offset
        return self._slots[root], offset

    def _product_table(self, step: Native, code: Product) -> list[int]:
        table: list[int] = []
        for tensor, offset in zip((*step.inputs, *step.outputs), code.offsets, strict=True):
            table += self._address(tensor, offset)
        for word in code.words:
            table += [self._zero, word]
        return table

    def _table(self, step: Native, kernel: Kernel) -> list[int]:
        table: list[int] = []
        for tensor in (*step.inputs, *step.outputs):
            table += self._address(tensor, self._layouts.offset(tensor))
        for number, kind in zip(step.scalars, kernel.scalars, strict=True):
            if isinstance(number, HostNumber):
                table += [self._arena + 1 + self._numbers[number, kind is float], 0]
            else:
                table += [self._zero, _bits(number) if kind is float else int(number)]
        return table


class Repair:
    """What is done after a segment that did not run to its end.

    If an array is of another class or layout, it runs on copies, and what it writes is copied back.

    Parameters
    ----------
    run : callable
        Runs the segment.
    code : Code
        The segment.
    """

    def __init__(self, run: Callable[..., int], code: Code) -> None:
        self._run = run
        self._written = tuple(code.arrays.values())
        self._checks = code.checks

    def __call__(self, result: int, *arguments: Any) -> None:
        """Run the segment again, or raise what a check found."""
        repaired = list(arguments)
        if result > 0:
            for index, is_written in enumerate(self._written):
                array = np.require(arguments[index], requirements=["C", "A"])
                repaired[index] = array if array.flags.writeable or not is_written else array.copy()
            result = self._run(*repaired)
        if result > 0:
            shape = np.shape(arguments[result - 1])
            raise ValueError(f"a tensor of shape {shape} where the program has another shape")
        if result < 0:
            check, array, start = self._checks[-1 - result]
            found = repaired[array].reshape(-1).view(np.uint8)[start:]
            found = found[: found.size // 8 * 8].view(np.int64)
            raise check.error(int(found[found.nonzero()[0][0]]))
        for index, is_written in enumerate(self._written):
            if is_written and repaired[index] is not arguments[index]:
                np.copyto(arguments[index], repaired[index])


def _bits(number: float) -> int:
    return int(struct.unpack("q", struct.pack("d", number))[0])


def _signed(word: int) -> int:
    word %= 1 << 64
    return word - (1 << 64) if word >> 63 else word
