"""Execution: a graph on an op table, as one Python function of straight calls."""

from __future__ import annotations

import bisect
import functools
import math
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.errors import BurnError
from burn.ir._operands import promoted_dtype, tensors_among
from burn.ir.graph import Drop, GraphIr, OperationIr, ScalarIr, Status, TensorIr
from burn.ir.host_number import HostNumber
from burn.locks import new_lock
from burn.ops import REGISTRY, OpTable, Tag, observing
from burn.ops.quiet import without_frame
from burn.ops.source import PROGRAM
from burn.ops.table import specialized
from burn.tensor_data import TensorData

if TYPE_CHECKING:
    from burn.ops.signature import Primitive

__all__ = ["Execution"]


class Execution:
    """A graph made ready to run on one op table.

    Each operation is a line of a Python function, with the op of the table and the attributes as
    names: a call costs what the table's callable costs, and no look-up of a tensor. A write to a
    slice of a tensor that is used for the last time is one in place, where the backend permits it.

    Parameters
    ----------
    graph : GraphIr
        What runs. It is not checked: see `burn.ir.check`.
    table : OpTable
        What runs it. Constants are made there once.
    """

    def __init__(self, graph: GraphIr, table: OpTable) -> None:
        self._lock = new_lock()
        self.graph = graph
        self.table = table
        self._names: dict[str, Any] = {"inf": math.inf, "nan": math.nan}
        self._numbers: dict[str, str] = {}
        for constant in graph.constants:
            primitive = table.backend.from_data(constant.data, table.device)
            self._names[_name(constant.tensor)] = primitive
        self._prepare()

    def run(
        self, inputs: Sequence[Primitive], draw: tuple[int, int] = (0, 0)
    ) -> tuple[Primitive, ...]:
        """Run the operations.

        Parameters
        ----------
        inputs : sequence
            A primitive of the table for each tensor among the inputs of the graph, and a number for
            each scalar.
        draw : tuple of int
            The reserved state of the generator, seed and offset, if the graph draws numbers.

        Returns
        -------
        tuple of primitives
            The outputs.

        Raises
        ------
        BurnError
            If an operation fails; its `operation` names the op and the line of the user's program.
        """
        try:
            return self.function(*inputs, *draw)
        except BurnError as error:
            error.operation = self.describe(error)
            raise

    @property
    def function(self) -> Callable[..., tuple[Primitive, ...]]:
        """What `run` calls: a function of the inputs, and of the seed and offset.

        It holds until observers come or go, and lets errors be without the operation.
        """
        if self._generation != observing.changes[0]:
            self._prepare()
        return self._run

    def describe(self, error: BaseException) -> str:
        """The operation that raised an exception, as in a message: that which the user called."""
        operation = self._failed(error)
        if operation is None:
            return getattr(error, "operation", "") or "a program"
        if isinstance(operation, OperationIr):
            operation = operation.called
            name = getattr(error, "operation", "")
            if name and "(" not in name:  # a public function that checks values by ops
                return f"{name} at {operation.source}" if operation.source else str(name)
        return str(operation.describe())

    def _failed(self, error: BaseException) -> Any:
        """The operation, or another step, that raised an exception; None if that is unknown."""
        checked = vars(error).get("checked")
        if checked is not None:
            return checked
        operation = None
        step = error.__traceback__
        while step is not None:  # the innermost: an operation may run a program
            if step.tb_frame.f_code.co_filename == PROGRAM:
                operation = step.tb_frame.f_globals["by_line"].get(step.tb_lineno, operation)
            step = step.tb_next
        return operation

    @functools.cached_property
    def _writes_in_place(self) -> bool:
        """Whether `can_write` tells a tensor of one local variable from a tensor of two.

        It counts references. Later versions of Python may not count those that a call only borrows.
        """
        table = self.table
        if type(table) is not OpTable:
            return False
        backend = observing.plain(table.backend)
        x = backend.from_data(TensorData(np.zeros(1, np.bool_)), table.device)
        of_one = backend.can_write(x, [])
        second = x
        return of_one and not backend.can_write(second, [])

    def _prepare(self) -> None:
        """Take the callables of the table as they are now: observers may have come or gone."""
        with self._lock:
            generation = observing.generation()
            self._run = self._compiled()
            self._generation = generation

    def _compiled(self) -> Callable[..., Any]:
        graph, names = self.graph, self._names
        parameters = [
            f"s{source.id}" if isinstance(source, ScalarIr) else _name(source)
            for source in graph.inputs
        ]
        if graph.draw is not None:
            parameters += [f"s{graph.draw.seed.id}", f"s{graph.draw.offset.id}"]
        else:
            parameters += ["_", "__"]
        lines = [f"def run({', '.join(parameters)}):"]
        by_line: dict[int, Any] = {}
        steps = self._steps()
        self._numbers = {}
        for step in steps:
            lines += [f"    {number_line}" for number_line in self._number_lines(step)]
        for index, step in enumerate(steps):
            if isinstance(step, Drop):
                lines[-1] += f"; del t{step.id}"
            else:
                lines.append(f"    {self._line(step, index)}")
                by_line[len(lines)] = step
        lines.append(f"    return ({''.join(f'{_name(output)}, ' for output in graph.outputs)})")
        # A graph consists of numbers and of names of ops, so its text has no code of others.
        exec(compile("\n".join(lines), PROGRAM, "exec"), names)  # noqa: S102 — see above
        run = names.pop("run")
        names["by_line"] = by_line
        names["source_at"] = _source_at(run.__code__, by_line)
        return run  # type: ignore[no-any-return]  # a function

    def _steps(self) -> Sequence[Any]:
        """What runs, in order."""
        return self.graph.operations

    def _line(self, step: Any, index: int) -> str:
        """The statement of a step."""
        return self._call_line(step, index, _read_last(step))

    def _number_lines(self, step: Any) -> Iterator[str]:
        """Statements that compute the numbers of a step that no earlier step has."""
        for number in _host_numbers(step):
            if number.text not in self._numbers:
                self._numbers[number.text] = name = f"h{len(self._numbers)}"
                yield f"{name} = {number.text}"

    def _function(self, operation: OperationIr) -> Callable[..., Any]:
        """What runs an operation; an index error that a device reports late names it."""
        definition = REGISTRY[operation.name]
        function: Callable[..., Any] = getattr(self.table, operation.name)
        dtype = promoted_dtype(definition, operation.inputs)
        if dtype is not None:
            function = specialized(function, dtype)
        named = getattr(self.table.backend, "named", None)
        if named is not None and Tag.CHECKS_INDICES in definition.tags:
            function = named(operation.called.describe(), function)
        return function

    def _call_line(self, operation: OperationIr, index: int, last: set[int]) -> str:
        """The call of an operation, and the end of the tensors that it uses last."""
        names = self._names
        definition = REGISTRY[operation.name]
        copy, names[f"f{index}"] = without_frame(self._function(operation))
        run = f"f{index}("
        if copy is not None:
            names[f"q{index}"] = copy
            run = f"q{index}().run(f{index}, "
        arguments = []
        for number, operand in enumerate(operation.inputs):
            if isinstance(operand, TensorIr):
                arguments.append(_name(operand))
            elif operand.__class__ is tuple:
                arguments.append(f"[{', '.join(map(_name, operand))}]")
            elif isinstance(operand, HostNumber):
                arguments.append(self._numbers[operand.text])
            else:
                names[f"n{index}_{number}"] = operand
                arguments.append(f"n{index}_{number}")
        for name, value in operation.attributes.items():
            if isinstance(value, ScalarIr):
                arguments.append(f"{name}=s{value.id}{f' + {value.plus}' if value.plus else ''}")
            elif isinstance(value, HostNumber):
                arguments.append(f"{name}={self._numbers[value.text]}")
            else:
                names[f"a{index}_{name}"] = value
                arguments.append(f"{name}=a{index}_{name}")
        targets = ", ".join(map(_name, operation.outputs)) + "," * definition.returns_tuple
        call = f"{run}{', '.join(arguments)})"
        ended = {name for id in last if (name := f"t{id}") not in names}
        x = arguments[0] if arguments else ""
        if operation.name == "slice_assign" and x in ended and self._writes_in_place:
            # The function alone holds the tensor, and only in its own line: `can_write` counts.
            names[f"c{index}"] = self.table.backend.can_write
            names[f"w{index}"] = self.table.backend.write_slice
            in_place = f"c{index}({x}, []) and w{index}({', '.join(arguments)}) is None"
            call = f"{x} if {in_place} else {call}"
        end = f"; del {', '.join(sorted(ended))}" if ended else ""
        return f"{targets} = {call}{end}"


def _read_last(operation: OperationIr) -> set[int]:
    """The tensors that an operation is the last to use."""
    operands = tensors_among(operation.inputs)
    return {operand.id for operand in operands if operand.status is Status.READ_WRITE}


def _host_numbers(step: Any) -> list[HostNumber]:
    """The expressions of numbers of a run that a step has."""
    if isinstance(step, OperationIr):
        values = [*step.inputs, *step.attributes.values()]
        return [value for value in values if isinstance(value, HostNumber)]
    return [
        host_number
        for host_number in getattr(step, "scalars", ())
        if isinstance(host_number, HostNumber)
    ]


def _source_at(code: types.CodeType, by_line: Mapping[int, Any]) -> Callable[[int], str]:
    """The function that finds the source of the operation at the offset of an instruction."""
    starts: list[int] = []
    sources: list[str] = []
    for start, _, line in code.co_lines():
        operation = by_line.get(line or 0)
        starts.append(start)
        sources.append("" if operation is None else operation.source)
    return lambda offset: sources[bisect.bisect(starts, offset) - 1]


def _name(tensor: TensorIr) -> str:
    return f"t{tensor.id}"
