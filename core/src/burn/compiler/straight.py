"""Straight: a plan as one Python function of calls of ops and launches of kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from burn.compiler.explain import explained
from burn.compiler.plan import Check, KernelCall, Plan
from burn.ir import HostNumber
from burn.ir.execution import Execution
from burn.ops import observing

if TYPE_CHECKING:
    from burn.ops import OpTable

__all__ = ["Straight"]


class Straight(Execution):
    """A plan made ready to run on one op table.

    Parameters
    ----------
    plan : Plan
        What runs.
    table : OpTable
        What runs the calls of ops. Constants are made there once.
    load : callable
        Makes a kernel ready: ``load(call)``, for each `KernelCall` in the order of the steps,
        returns what launches it: ``launch(inputs, scalars, out)`` returns the outputs; see
        `Backend.load_kernel`.
    """

    def __init__(
        self, plan: Plan, table: OpTable, load: Callable[[KernelCall], Callable[..., Any]]
    ) -> None:
        self.plan = plan
        self._load = load
        self._ends: list[set[int]] = [set() for _ in plan.steps]
        for id, index in plan.last_use.items():
            self._ends[index].add(id)
        super().__init__(plan.graph, table)

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """`run` with the inputs, and the state of the generator if the plan draws numbers."""
        return self.run(inputs)

    def explain(self) -> str:
        """What runs as one kernel, and what does not and why."""
        return explained(self.plan)

    def _steps(self) -> Sequence[Any]:
        return self.plan.steps

    def _line(self, step: Any, index: int) -> str:
        ended = self._ends[index]
        if not isinstance(step, KernelCall):
            return self._call_line(step, index, ended)
        launch = self._load(step)
        if self.table.is_observed and observing.is_observing():
            launch = self._reporting(step, launch)
        self._names[f"k{index}"] = launch
        inputs = [f"t{source.id}" for source in step.inputs]
        numbers = [
            self._numbers[scalar.text] if isinstance(scalar, HostNumber) else repr(scalar)
            for scalar in step.scalars
        ]
        out = ["None" if number is None else inputs[number] for number in step.over]
        outputs = [f"t{output.id}" for output in step.outputs]
        arguments = ", ".join(map(_tuple, (inputs, numbers, out)))
        end = f"; del {', '.join([f't{id}' for id in sorted(ended)])}" if ended else ""
        checks = ""
        for number, check in enumerate(step.checks):
            self._names[f"c{index}_{number}"] = functools.partial(self._check, check)
            checks += f"; c{index}_{number}({outputs[check.output]})"
        return f"{', '.join(outputs)}, = k{index}({arguments}){checks}{end}"

    def _reporting(self, step: KernelCall, launch: Callable[..., Any]) -> Callable[..., Any]:
        """A launch that reports to observers, as a call of an op does."""

        def run(inputs: Any, numbers: Any, out: Any) -> Any:
            report = observing.reporting(
                self.table, step.name, lambda *inputs: launch(inputs, numbers, out)
            )
            return report(*inputs)

        return run

    def _check(self, check: Check, found: Any) -> None:
        """Raise if indices are out of range."""
        indices = self.table.backend.to_data(found).array
        strange = indices[indices != 0]
        if strange.size:
            raise check.error(int(strange[0]))


def _tuple(items: Sequence[str]) -> str:
    return f"({''.join([f'{item}, ' for item in items])})"
