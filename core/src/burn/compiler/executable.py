"""Executable: a program made ready to run on a device."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from burn.compiler.explain import drawn
from burn.compiler.passes import simplified
from burn.compiler.plan import Plan
from burn.errors import BurnError
from burn.ir import GraphIr, OperationIr, ScalarIr
from burn.ir.check import with_last_uses
from burn.ir.execution import Execution
from burn.locks import new_rlock
from burn.ops import REGISTRY, OpTable, observing

if TYPE_CHECKING:
    from burn.aliases import Primitive

__all__ = ["Executable", "compiled"]


class Executable:
    """A program made ready to run on a device, by one thread at a time: others wait.

    Parameters
    ----------
    graph : GraphIr
        The program, after the passes for every device.
    runner : Execution or callable
        What runs it: a list of calls and launches, or what `Backend.compile` gave.
    table : OpTable
        The ops of the device.
    checks : sequence of callable
        What the inputs of a run are given first: see `_checks`.

    Attributes
    ----------
    graph : GraphIr
        The program, after the passes for every device.
    lock : lock
        Held while it runs.
    """

    def __init__(
        self,
        graph: GraphIr,
        runner: Any,
        table: OpTable,
        checks: Sequence[Callable[[Sequence[Any]], None]] = (),
    ) -> None:
        self.graph = graph
        self._runner = runner
        self._table = table
        self._checks = checks
        self.lock = new_rlock()

    def run(
        self, inputs: Sequence[Primitive], draw: tuple[int, int] = (0, 0)
    ) -> tuple[Primitive, ...]:
        """Run the program.

        Parameters
        ----------
        inputs : sequence
            A primitive for each tensor among the inputs of the program, and a number for each
            scalar.
        draw : tuple of int
            The reserved state of the generator, seed and offset, if the program draws numbers.

        Returns
        -------
        tuple of primitives
            The outputs. One that takes the memory of an input is the primitive of the input.

        Raises
        ------
        BurnError
            If an operation fails; its `operation` names the op and the line of the user's program.
        """
        self.check((*inputs, *draw))
        try:
            with self.lock:
                return self.function(*inputs, *draw)  # type: ignore[no-any-return]  # of primitives
        except BurnError as error:
            error.operation = self.describe(error)
            raise

    @property
    def function(self) -> Callable[..., Any]:
        """What runs the program until observers come or go, for who holds the lock.

        It takes the inputs, which are checked, seed and offset, and lets errors be without the
        operation.
        """
        runner = self._runner
        run: Callable[..., Any] = runner.function if isinstance(runner, Execution) else self._call
        if observing.is_observing() and type(runner) is not Execution:
            run = functools.partial(self._observed, run)
        return run

    @property
    def checks_numbers(self) -> bool:
        """Whether `check` looks at any number."""
        return bool(self._checks)

    def check(self, arguments: Sequence[Any]) -> None:
        """Raise unless the operations allow the numbers among the inputs.

        Generated code checks none, and nothing is overwritten before.
        """
        for check in self._checks:
            check(arguments)

    def _observed(self, run: Callable[..., Any], *arguments: Any) -> Any:
        """Run the program as one event, since its ops do not report what they do."""
        draw = arguments[-2:]
        report = observing.reporting(self._table, "compiled", lambda *inputs: run(*inputs, *draw))
        return report(*arguments[:-2])

    def _call(self, *arguments: Any) -> Any:
        """Call what `Backend.compile` gave."""
        return self._runner(*(arguments[:-2] if self.graph.draw is None else arguments))

    def describe(self, error: BaseException) -> str:
        """The operation that raised an exception, as in a message."""
        describe = getattr(self._runner, "describe", None)
        found = "" if describe is None else describe(error)
        return found or getattr(error, "operation", "") or "a program"

    def explain(self) -> str:
        """What runs as one kernel, and what does not and why."""
        explain = getattr(self._runner, "explain", None)
        if explain is not None:
            return str(explain())
        calls = [
            operation.describe()
            for operation in self.graph.operations
            if isinstance(operation, OperationIr)
        ]
        return "\n".join([f"{len(calls)} calls of ops of the device, one after the other", *calls])

    def svg(self) -> str:
        """A picture of what runs, where that is known as a plan; else of the program."""
        plan = getattr(self._runner, "plan", None)
        if isinstance(plan, Plan):
            return drawn(plan)
        return self.graph.svg()

    @property
    def is_calls_alone(self) -> bool:
        """Whether it calls the ops of the device one after the other, and runs nothing else.

        An operation that runs a program, such as a loop, runs what the program is compiled to.
        """
        values = [
            value
            for operation in self.graph.operations
            if isinstance(operation, OperationIr)
            for value in operation.attributes.values()
        ]
        runs_programs = any(isinstance(value, GraphIr) for value in values)
        return isinstance(self._runner, Execution) and not self.kernels and not runs_programs

    @property
    def kernels(self) -> Mapping[str, str]:
        """The source texts of generated kernels, by their names."""
        return getattr(self._runner, "kernels", {})


def compiled(graph: GraphIr, table: OpTable) -> Executable:
    """Make a program ready to run on a device.

    Parameters
    ----------
    graph : GraphIr
        A correct program; see `burn.ir.check`.
    table : OpTable
        The ops of the device.

    Returns
    -------
    Executable
        What runs it: what `Backend.compile` gives; or else generated kernels, if the backend has a
        `dialect`; or else the ops, one after the other.

    Examples
    --------
    >>> import burn
    >>> graph = GraphIr.from_text('''
    ...     input %0: float32[2]
    ...     %1: float32[2] = exp(%0)
    ...     %2: float32[2] = multiply(%1, 1.0)
    ...     output %2
    ... ''')
    >>> print(compiled(graph, burn.Device("cpu").ops).graph)
    input %0: float32[2]
    %1: float32[2] = exp(%0)
    output %1
    """
    checks = _checks(graph)
    graph = simplified(graph, table)
    return Executable(graph, _runner(graph, table), table, checks)


def _checks(graph: GraphIr) -> list[Callable[[Sequence[Any]], None]]:
    """Functions of the inputs of a run that raise if an op does not allow a number among them.

    They do so before anything runs: generated code checks no numbers, and after an error all is as
    it was before.
    """
    indices = {
        scalar.id: index
        for index, scalar in enumerate(graph.inputs)
        if isinstance(scalar, ScalarIr)
    }
    found = []
    for operation in graph.operations:
        if isinstance(operation, OperationIr) and REGISTRY[operation.name].requires is not None:
            numbers = {
                name: (indices[value.id], value.plus)
                for name, value in operation.attributes.items()
                if isinstance(value, ScalarIr) and value.id in indices
            }
            if numbers:
                found.append(_check(operation, numbers))
    return found


def _check(
    operation: OperationIr, numbers: Mapping[str, tuple[int, int]]
) -> Callable[[Sequence[Any]], None]:
    """A function that checks the attributes of an operation, some of which are inputs of a run."""
    requires: Any = REGISTRY[operation.name].requires
    attributes = dict(operation.attributes)

    def check(inputs: Sequence[Any]) -> None:
        given = {name: inputs[index] + plus for name, (index, plus) in numbers.items()}
        try:
            requires(**(attributes | given))
        except BurnError as error:
            error.operation = operation._replace(attributes=attributes | given).describe()
            raise

    return check


def _runner(graph: GraphIr, table: OpTable) -> Any:
    """What runs a program that has been simplified."""
    if type(table) is OpTable:  # another table runs the ops in a way of its own
        backend = observing.plain(table.backend)
        compile = getattr(backend, "compile", None)
        found = None if compile is None else compile(graph, table.device)
        if found is not None:
            return found
        if getattr(backend, "dialect", None) is not None:
            from burn.compiler.generated import Generated

            return Generated(graph, table)
    return Execution(with_last_uses(graph), table)
