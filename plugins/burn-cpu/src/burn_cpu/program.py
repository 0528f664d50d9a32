"""Programs on the CPU: native code for kernels and products, calls of ops between them.

Steps of a plan that are native and follow each other are one call of native code, a *segment*. What
only segments use lies in an arena, of which large ones are parts of a workspace that the program
takes while it runs; all else is an array of its own.
Views that only segments use are no steps at all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from burn.plugin_api import (
    Arena,
    Execution,
    Kernel,
    KernelCall,
    OperationIr,
    OpTable,
    Plan,
    TensorIr,
    explained,
    packed,
    tensors_among,
)
from burn_cpu.layouts import Layouts
from burn_cpu.native import Machine
from burn_cpu.products import Product, products_of, stored
from burn_cpu.segment import Code, Native, Repair, Segment
from burn_cpu.workspaces import Workspace, Workspaces

__all__ = ["NativeProgram"]

_OWN: Final = 1 << 16
"""Bytes of an arena up to which a program keeps its own: to take one would show in its time."""


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
    is_shared : bool, optional
        Whether several threads may run it at a time; and its code is kept, for other programs with
        equal kernels.
    """

    def __init__(
        self, plan: Plan, table: OpTable, machine: Machine, *, is_shared: bool = False
    ) -> None:
        self.plan = plan
        self._machine = machine
        self._is_shared = is_shared
        self._layouts = Layouts(plan.graph, table)
        steps = self._classified()
        needed = self._needed(steps)
        self._program = self._joined(steps, needed)
        self._ends, arena = self._lifetimes(needed)
        self._arena_size, self._offsets = arena.size, arena.offsets
        self._workspaces = Workspaces.shared() if self._arena_size > _OWN else None
        kernels = [
            step.code
            for segment in self._program
            if isinstance(segment, Segment)
            for step in segment.steps
            if isinstance(step.code, Kernel)
        ]
        find = machine.kept_functions if is_shared else machine.functions
        engine, self._functions = find(dict.fromkeys(kernels))
        super().__init__(plan.graph, table)
        self._names["engine"] = engine  # lives as long as the function that calls its code

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        """Run the operations."""
        draw = 0 if self.graph.draw is None else 2
        split = len(arguments) - draw
        return self.run(arguments[:split], arguments[split:] if draw else (0, 0))

    @property
    def kernels(self) -> dict[str, str]:
        """The texts of the kernels, by their names."""
        return {text.name: text.definition for text, _ in self._functions.values()}

    def explain(self) -> str:
        """What runs as one kernel, and what does not and why."""
        return explained(self.plan)

    # --- which steps are native ---

    def _classified(self) -> list[Native | OperationIr]:
        """Native steps, views and calls, in order."""
        layouts = self._layouts
        found: list[Native | OperationIr] = []
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

    def _kernel(self, call: KernelCall) -> list[Native]:
        """A kernel, after copies of what it reads that is not in row-major order."""
        layouts = self._layouts
        copies, inputs = self._dense(call.inputs, layouts.is_dense)
        for tensor, over in zip(call.outputs, call.over, strict=True):
            if over is None:
                layouts.add(tensor)
            else:
                layouts.add_over(tensor, inputs[over])
        return [*copies, Native(*call)._replace(inputs=inputs)]

    def _dense(
        self, tensors: Sequence[TensorIr], test: Callable[[TensorIr], bool]
    ) -> tuple[list[Native], tuple[TensorIr, ...]]:
        """Copies of the tensors that fail a test, and the tensors with the copies among them."""
        copies = {
            tensor: Native(*self._layouts.copy(tensor)) for tensor in tensors if not test(tensor)
        }
        dense = tuple(
            [copies[tensor].outputs[0] if tensor in copies else tensor for tensor in tensors]
        )
        return list(copies.values()), dense

    def _products(self, operation: OperationIr) -> list[Native] | None:
        """A matrix product as native steps; None if BLAS does not compute it."""
        if operation.name != "matmul":
            return None
        layouts, (output,) = self._layouts, operation.outputs
        operands = tuple(tensors_among(operation.inputs))
        likes = [layouts.like(operand) for operand in operands]
        if output.dtype not in self._machine.products or any(
            like is None or not like.size or like.ndim < 2 for like in likes
        ):
            return None
        copies, inputs = self._dense(
            operands, lambda tensor: stored(layouts.like(tensor)) is not None
        )
        layouts.add(output)
        tensors = (*inputs, output)
        likes = [layouts.like(tensor) for tensor in tensors]
        found = products_of(likes, [layouts.memory(layouts.root(tensor)) for tensor in tensors])
        if found is None:
            return None
        return [
            *copies,
            *[Native(product, inputs, (), (output,), (None,), (operation,)) for product in found],
        ]

    # --- which steps are variables of Python ---

    def _needed(self, steps: list[Native | OperationIr]) -> set[int]:
        """The tensors that are variables of Python: outputs, and what calls read or make.

        A view is a call only if it is one of them.
        """
        layouts = self._layouts
        needed = {output.id for output in self.plan.graph.outputs}
        for step in reversed(steps):
            if isinstance(step, OperationIr):
                is_view = all(layouts.root(output) != output.id for output in step.outputs)
                if not is_view or step.outputs[0].id in needed:
                    needed.update(tensor.id for tensor in tensors_among(step.inputs))
                    needed.update(output.id for output in step.outputs)
            else:
                for tensor, over in zip(step.outputs, step.over, strict=True):
                    if over is not None and tensor.id in needed:
                        needed.add(layouts.root(tensor))
        given = [source.id for source in self.plan.graph.inputs if isinstance(source, TensorIr)]
        return needed | {*given, *[constant.tensor.id for constant in self.plan.graph.constants]}

    def _joined(
        self, steps: list[Native | OperationIr], needed: set[int]
    ) -> list[Segment | OperationIr]:
        """Native steps that follow each other as segments."""
        found: list[Segment | OperationIr] = []
        for step in steps:
            if isinstance(step, OperationIr):
                if any(output.id in needed for output in step.outputs):
                    found.append(step)
                continue
            if not found or not isinstance(found[-1], Segment):
                found.append(Segment())
            found[-1].steps.append(step)  # type: ignore[union-attr]  # a segment
        return found

    # --- memory ---

    def _lifetimes(self, needed: set[int]) -> tuple[list[set[int]], Arena]:
        """Variables that end with each step; and the arena, where all else is."""
        layouts = self._layouts
        made: dict[int, int] = {}
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        ends: list[set[int]] = [set() for _ in self._program]
        time = 0
        for index, step in enumerate(self._program):
            for part in step.steps if isinstance(step, Segment) else [step]:
                time += 1
                tensors = [*tensors_among(part.inputs), *part.outputs]
                for tensor in tensors:
                    root = layouts.root(tensor)
                    first.setdefault(root, time)
                    last[root] = time
                    made.setdefault(tensor.id, index)
                    made[tensor.id] = made[root] = index
        graph = self.plan.graph
        kept = {
            output.id for output in (*graph.outputs, *graph.inputs) if isinstance(output, TensorIr)
        }
        for id, index in made.items():
            if id in needed and id not in kept:
                ends[index].add(id)
        spans = [
            (start, last[root], layouts.memory(root).nbytes, root)
            for root, start in first.items()
            if root not in needed
        ]
        return ends, packed(spans)

    # --- the function of Python ---

    def _steps(self) -> Sequence[Any]:
        return self._program

    def _line(self, step: Any, index: int) -> str:
        ended = self._ends[index]
        if not isinstance(step, Segment):
            return self._call_line(step, index, ended)
        line = self._segment_line(step, index, ended)
        if self._workspaces is not None:
            segments = [segment for segment in self._program if isinstance(segment, Segment)]
            if step is segments[0]:
                line = f"workspace, arena = take({self._arena_size}); {line}"
            if step is segments[-1]:
                line += "; give(workspace)"
        return line

    def _segment_line(self, segment: Segment, index: int, ended: set[int]) -> str:
        """The call of a segment, after its new arrays and before the end of those used last."""
        names, layouts = self._names, self._layouts
        code = Code(
            segment, layouts, self._offsets, self._arena_size, self._machine, self._functions
        )
        run = self._machine.entry(code.words)
        if code.is_parallel:
            uses_blas = any(isinstance(step.code, Product) for step in segment.steps)
            run = self._machine.parallel(run, uses_blas=uses_blas)
        names[f"k{index}"] = run
        names[f"r{index}"] = Repair(run, code)
        names["empty"] = np.empty
        if self._workspaces is None:
            names["arena"] = arena = Workspace().part(self._arena_size)
            names["new_arena"] = functools.partial(np.empty, arena.shape, arena.dtype)
        else:
            names["take"], names["give"] = self._workspaces.take, self._workspaces.free.append
        first = next(step for step in self._program if isinstance(step, Segment))
        is_new = self._is_shared and self._arena_size and self._workspaces is None
        statements = ["arena = new_arena()"] if is_new and segment is first else []
        for id in code.fresh:
            like = layouts.memory(id)
            names[f"e{id}"], names[f"d{id}"] = like.shape, like.dtype
            statements.append(f"t{id} = empty(e{id}, d{id})")
        numbers = [self._numbers[scalar.text] for scalar in segment.scalars]
        arguments = ", ".join([*[f"t{id}" for id in code.arrays], "arena", *numbers])
        statements.append(f"e = k{index}({arguments}); e and r{index}(e, {arguments})")
        statements += [
            f"t{tensor.id} = t{root}"
            for step in segment.steps
            for tensor in step.outputs
            if (root := layouts.root(tensor)) != tensor.id and root not in self._offsets
        ]
        gone = sorted([name for id in ended if (name := f"t{id}") not in names])
        return "; ".join([*statements, *([f"del {', '.join(gone)}"] if gone else [])])
