"""Steps of optimizers: one kernel for many parameters and their states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from burn.plugin_api import FusedSteps
from burn_cuda.base import Array, CudaOps
from burn_cuda.kernels import THREADS, c_type
from burn_cuda.launcher import packed

__all__ = ["OptimizerOps"]

_EACH: Final = 4
"""Elements that a thread computes."""

_MAX_BYTES: Final = 4096
"""Size of the arguments of a kernel, on every GPU and driver.

The table of arrays is an argument, so one launch of Adam is for up to 55 parameters. A table in
device memory would have no limit, but would be uploaded before each launch, which takes longer than
a second launch.
"""


class OptimizerOps(FusedSteps, CudaOps):
    """Steps that read and write each element once."""

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
        operands = [[launcher.dense(one) for one in tensors] for tensors in lists if tensors]
        results = [
            [launcher.empty(one.shape, dtype) for one in parameters]
            for index in outputs
            if lists[index]
        ]
        arrays = operands + results
        tensors = (_MAX_BYTES // 8 - 1 - len(numbers)) // (2 + len(arrays))
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
        address = launcher.runtime.address
        filled = [index for index, one in enumerate(parameters) if one.size]
        for start in range(0, len(filled), tensors):
            chosen = filled[start : start + tensors]
            sizes = np.array([parameters[index].size for index in chosen], np.int64)
            ends = np.cumsum(-(-sizes // (THREADS * _EACH)))
            table = np.zeros((2 + len(arrays), tensors), np.int64)
            table[0, 1 : len(chosen)] = ends[:-1]
            table[1, : len(chosen)] = sizes
            for row, one in zip(table[2:], arrays, strict=True):
                row[: len(chosen)] = [address(one[index]) for index in chosen]
            values = np.array(numbers, np.float64).view(np.int64)
            arguments = packed(np.concatenate([table.reshape(-1), values]))
            launcher.run_blocks(kernel, int(ends[-1]), arguments, len(chosen))
        return tuple([one for tensors in results for one in tensors])
