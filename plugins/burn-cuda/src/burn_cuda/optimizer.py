"""Steps of optimizers: one kernel for many parameters and their states."""

from __future__ import annotations

import functools
import struct
from typing import Any, Final

from burn.plugin_api import Donated, DType, GroupSteps, StepCode, StepFormula
from burn_cuda.base import Array, CudaOps
from burn_cuda.dialect import code_of_step
from burn_cuda.launcher import Packed
from burn_cuda.writing import WritingOps

__all__ = ["OptimizerOps"]

_ARGUMENT_BYTES: Final = (4096, 8192, 16384, 32764)
"""Sizes of the arguments of kernels; the first is possible on every GPU and driver.

The table of arrays is an argument, so 4096 bytes are enough for 55 parameters of Adam, and 32764
for 453. A table in device memory would have no limit, but would be uploaded before each launch,
which takes longer than a second launch.
"""


@functools.lru_cache(maxsize=1024)
def _capacity(count: int, words: int, numbers: int, limit: int) -> int:
    """Parameters of a launch, with so many words each: few sizes, since each is another kernel."""
    sizes = [size for size in _ARGUMENT_BYTES if size <= limit]
    capacities = [(size // 8 - 1 - numbers) // words for size in sizes]
    return next((capacity for capacity in capacities if capacity >= count), capacities[-1])


class OptimizerOps(GroupSteps, WritingOps, CudaOps):
    """Steps that read and write each element once."""

    overwrites_donated = True

    def step_capacity(self, columns: int, numbers: int, count: int, dtype: DType) -> int:
        """As many as the smallest arguments take that take all."""
        del dtype
        return _capacity(count, 2 + columns, numbers, self.launcher.runtime.max_argument_bytes)

    def step_kernel(
        self, formula: StepFormula, dtype: DType, capacity: int
    ) -> tuple[StepCode, Any]:
        """The kernel of a formula, whose table has the addresses of arrays."""
        code = code_of_step(formula, self.launcher.dtypes[dtype], capacity)
        return code, self.runtime.compile(code.text, code.entry, contracts=False)

    def step_operand(self, x: Array) -> Array:
        """A dense array."""
        return self.launcher.dense(x)

    def step_targets(self, tensors: list[Array]) -> list[Array]:
        """New arrays, or those that are donated and that nothing else uses."""
        launcher = self.launcher
        if not isinstance(tensors, Donated):
            return [launcher.empty(x.shape, x.dtype) for x in tensors]
        unused = self.are_unused(tensors, tensors.references)
        return [
            x if usable and x.is_dense else launcher.empty(x.shape, x.dtype)
            for x, usable in zip(tensors, unused, strict=True)
        ]

    def launch_step(
        self,
        code: StepCode,
        kernel: Any,
        groups: int,
        head: list[int],
        columns: list[list[Array]],
        numbers: bytes,
    ) -> None:
        """Launch a kernel with a table of addresses."""
        for arrays in columns:
            head += [x.address for x in arrays] + [0] * (code.capacity - len(arrays))
        table = struct.pack(f"{len(head)}q", *head) + numbers
        self.launcher.run_blocks(kernel, groups, Packed(table))
