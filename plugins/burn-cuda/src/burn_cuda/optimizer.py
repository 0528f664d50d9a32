"""Steps of optimizers: one kernel for many parameters and their states."""

from __future__ import annotations

import functools
import itertools
import struct
from collections.abc import Sequence
from typing import Final

from burn.plugin_api import Donated, FusedSteps
from burn_cuda.base import Array, CudaOps
from burn_cuda.kernels import THREADS, c_type
from burn_cuda.launcher import Packed
from burn_cuda.writing import WritingOps

__all__ = ["OptimizerOps"]

_EACH: Final = 4
"""Elements that a thread computes."""

_ARGUMENT_BYTES: Final = (4096, 8192, 16384, 32764)
"""Sizes of the arguments of kernels; the first is possible on every GPU and driver.

The table of arrays is an argument, so 4096 bytes are enough for 55 parameters of Adam, and 32764
for 453. A table in device memory would have no limit, but would be uploaded before each launch,
which takes longer than a second launch.
"""


@functools.lru_cache(maxsize=1024)
def _capacity(count: int, words: int, numbers: int, limit: int) -> int:
    """Parameters of a launch, with so many words each: few sizes, since each is another kernel."""
    sizes = [item for item in _ARGUMENT_BYTES if item <= limit]
    capacities = [(size // 8 - 1 - numbers) // words for size in sizes]
    return next((capacity for capacity in capacities if capacity >= count), capacities[-1])


class OptimizerOps(FusedSteps, WritingOps, CudaOps):
    """Steps that read and write each element once."""

    overwrites_donated = True

    def run_step(
        self,
        name: str,
        lists: list[list[Array]],
        outputs: Sequence[int],
        numbers: Sequence[float],
        **flags: int,
    ) -> tuple[Array, ...]:
        """Run a step; there is a result for each list of `outputs` that is not empty."""
        launcher, parameters = self.launcher, lists[0]
        dtype = parameters[0].dtype
        if any(tensor.dtype is not dtype for tensors in lists for tensor in tensors):
            raise TypeError(f"{name} of different dtypes")
        results = [self._targets(lists[index]) for index in outputs if lists[index]]
        operands = [
            [tensor if tensor.is_dense else launcher.copied(tensor) for tensor in tensors]
            for tensors in lists
            if tensors
        ]
        columns = operands + results
        words = 2 + len(columns)
        limit = launcher.runtime.max_argument_bytes
        tensors = _capacity(len(parameters), words, len(numbers), limit)
        kernel = launcher.kernel(
            "update",
            "optimizer.cu",
            T=c_type(launcher.dtypes[dtype]),
            STEP=name,
            INPUTS=len(operands),
            OUTPUTS=len(results),
            NUMBERS=len(numbers),
            TENSORS=tensors,
            THREADS=THREADS,
            EACH=_EACH,
            **flags,
        )
        sizes = [parameter.size for parameter in parameters]
        fields = [sizes, *[[array.address for array in arrays] for arrays in columns]]
        blocks = [-(-size // (THREADS * _EACH)) for size in sizes]
        length = 8 * (len(numbers) + words * tensors)
        for start in range(0, len(parameters), tensors):
            own = slice(start, start + tensors)
            ends = itertools.accumulate(blocks[own])
            rows = zip(ends, *[field[own] for field in fields], strict=True)
            entries = list(itertools.chain.from_iterable(rows))
            table = struct.pack(f"{len(numbers)}d{len(entries)}q", *numbers, *entries)
            arguments = Packed(table.ljust(length, b"\0"))
            launcher.run_blocks(kernel, entries[-words], arguments, len(blocks[own]))
        return tuple([tensor for tensors in results for tensor in tensors])

    def _targets(self, tensors: list[Array]) -> list[Array]:
        """Memory for the results: that of donated tensors, where nothing else refers to it."""
        launcher = self.launcher
        if not isinstance(tensors, Donated):
            return [launcher.empty(tensor.shape, tensor.dtype) for tensor in tensors]
        unused = self.are_unused(tensors, tensors.references)
        return [
            tensor if usable and tensor.is_dense else launcher.empty(tensor.shape, tensor.dtype)
            for tensor, usable in zip(tensors, unused, strict=True)
        ]
