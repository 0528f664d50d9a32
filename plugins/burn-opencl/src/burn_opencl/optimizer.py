"""Steps of optimizers: one kernel for many parameters and their states."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

from burn.plugin_api import Donated, GroupSteps
from burn_opencl.generated import GeneratedOps
from burn_opencl.writing import WritingOps

if TYPE_CHECKING:
    from burn.plugin_api import DType, StepCode, StepFormula
    from burn_opencl.buffers import Buffer

__all__ = ["OptimizerOps"]

_ARGUMENT_BYTES: Final = 1024
"""Size of the arguments of a kernel that every device takes.

OpenCL has no arrays of buffers, so each is an argument of its own: one launch of Adam is for up to
13 parameters. To join the parameters in one buffer would take a copy, thus a launch, for each
gradient.
"""


class OptimizerOps(GroupSteps, GeneratedOps, WritingOps):
    """Steps that read and write each element once, in place where that is allowed."""

    overwrites_donated = True

    def step_capacity(self, columns: int, numbers: int, count: int, dtype: DType) -> int:
        """One number, so that there is one kernel."""
        del count
        room = _ARGUMENT_BYTES // 8 - 2 - numbers * max(dtype.itemsize, 4) // 8
        return room // (2 + columns)

    def step_kernel(
        self, formula: StepFormula, dtype: DType, capacity: int
    ) -> tuple[StepCode, Any]:
        """The kernel of a formula."""
        code = self.dialect.step(formula, dtype, capacity)
        return code, self.launcher.programs.generated(code.text, code.entry)

    def step_operand(self, x: Buffer) -> Buffer:
        """A buffer that begins with its memory."""
        return x if x.is_dense and not x.offset else self.launcher.copied(x)

    def step_targets(self, tensors: list[Buffer]) -> list[Buffer]:
        """New buffers, or those that nothing else uses."""
        empty = self.launcher.empty
        if not isinstance(tensors, Donated):
            return [empty(x.shape, x.dtype) for x in tensors]
        unused = self.are_unused(tensors, tensors.references)
        return [
            x if usable and x.is_dense and not x.offset else empty(x.shape, x.dtype)
            for x, usable in zip(tensors, unused, strict=True)
        ]

    def launch_step(
        self,
        code: StepCode,
        kernel: Any,
        groups: int,
        head: list[int],
        columns: list[list[Buffer]],
        numbers: bytes,
    ) -> None:
        """Launch a kernel, of which each buffer is an argument."""
        table = struct.pack(f"{len(head)}q", *head) + numbers
        memories = []
        for tensors in columns:
            handles = [x.memory.handle for x in tensors]
            memories += handles + handles[:1] * (code.capacity - len(handles))
        size = -(-len(table) // 8) * 8
        self.launcher.runtime.launch(
            kernel, table.ljust(size, b"\0"), memories, (groups * code.lanes,), (code.lanes,)
        )
