"""Steps of optimizers: one kernel for many parameters and their states."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Final

import numpy as np

from burn.plugin_api import Donated, FusedSteps
from burn_cuda.base import Array, CudaOps
from burn_cuda.kernels import THREADS, c_type
from burn_cuda.launcher import packed
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
    sizes = [one for one in _ARGUMENT_BYTES if one <= limit]
    capacities = [(one // 8 - 1 - numbers) // words for one in sizes]
    return next((one for one in capacities if one >= count), capacities[-1])


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
        if any(one.dtype is not dtype for tensors in lists for one in tensors):
            raise TypeError(f"{name} of different dtypes")
        results = [self._targets(lists[index]) for index in outputs if lists[index]]
        operands = [
            [one if one.is_dense else launcher.copied(one) for one in tensors]
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
        addresses = [[one.address for one in arrays] for arrays in columns]
        sizes = [one.size for one in parameters]
        rows = [row for row in zip(sizes, *addresses, strict=True) if row[0]]
        table = np.zeros(len(numbers) + words * tensors, np.int64)
        table[: len(numbers)].view(np.float64)[:] = numbers
        for start in range(0, len(rows), tensors):
            chosen = rows[start : start + tensors]
            ends = itertools.accumulate([-(-row[0] // (THREADS * _EACH)) for row in chosen])
            entries = [word for end, row in zip(ends, chosen, strict=True) for word in (end, *row)]
            table[len(numbers) : len(numbers) + len(entries)] = entries
            blocks = entries[-words]
            launcher.run_blocks(kernel, blocks, packed(table), len(chosen))
        return tuple([one for tensors in results for one in tensors])

    def _targets(self, tensors: list[Array]) -> list[Array]:
        """Memory for the results: that of donated tensors, where nothing else refers to it."""
        launcher = self.launcher
        if not isinstance(tensors, Donated):
            return [launcher.empty(one.shape, one.dtype) for one in tensors]
        unused = self.are_unused(tensors, tensors.references)
        return [
            one if usable and one.is_dense else launcher.empty(one.shape, one.dtype)
            for one, usable in zip(tensors, unused, strict=True)
        ]
