"""Steps of optimizers: one kernel for many parameters and their states."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from burn.plugin_api import FusedSteps
from burn_opencl.base import OpenClOps
from burn_opencl.buffers import Buffer
from burn_opencl.dtypes import DTYPE_CODES, accumulator_dtype, c_type_of, check_dtypes
from burn_opencl.limits import SMALL_GROUP_ITEMS
from burn_opencl.scalars import signed_scalar_bits

__all__ = ["OptimizerOps"]

_MAX_BYTES: Final = 1024
"""Size of the arguments of a kernel that every device takes.

OpenCL has no arrays of buffers, so each is an argument of its own: one launch of Adam is for up to
9 parameters. To join the parameters in one buffer would take a copy, thus a launch, for each
gradient.
"""


class OptimizerOps(FusedSteps, OpenClOps):
    """Steps that read and write each element once."""

    def run_step(
        self,
        name: str,
        lists: list[list[Buffer]],
        outputs: Sequence[int],
        numbers: Sequence[float],
        **flags: int,
    ) -> tuple[Buffer, ...]:
        """Run a step; there is a result for each list of `outputs` that is not empty."""
        launcher, parameters = self.launcher, lists[0]
        dtype = parameters[0].dtype
        check_dtypes(name, *[tensor for tensors in lists for tensor in tensors])
        operands = [[launcher.dense(tensor) for tensor in tensors] for tensors in lists if tensors]
        results = [
            [launcher.empty(parameter.shape, dtype) for parameter in parameters]
            for index in outputs
            if lists[index]
        ]
        arrays = operands + results
        wide = accumulator_dtype(dtype)
        bits = [signed_scalar_bits(float(number), wide) for number in numbers]
        definitions: dict[str, str | int] = {
            "STEP": name,
            "INPUTS": len(operands),
            "OUTPUTS": len(results),
            "NUMBERS": len(numbers),
            **flags,
        }
        room = _MAX_BYTES // 8 - 2 - len(numbers)
        limit = room // (2 + len(operands) + len(arrays))
        for chosen in _launches(
            [parameter.size for parameter in parameters], limit, launcher.is_specialized
        ):
            capacity = 1 if len(chosen) == 1 else limit
            self._launch(arrays, chosen, capacity, definitions, bits)
        return tuple([tensor for tensors in results for tensor in tensors])

    def _launch(
        self,
        arrays: list[list[Buffer]],
        chosen: list[int],
        capacity: int,
        definitions: Mapping[str, str | int],
        numbers: list[int],
    ) -> None:
        """Run a step of some parameters by a kernel that takes so many of them."""
        launcher, dtype = self.launcher, arrays[0][0].dtype
        padded = chosen + chosen[:1] * (capacity - len(chosen))
        sizes = [arrays[0][index].size for index in padded]
        specialized = launcher.is_specialized(sizes[0])
        group = launcher.specialized_group_items if specialized else SMALL_GROUP_ITEMS
        code = DTYPE_CODES[dtype.name]
        names = [f"a{number}" for number in range(capacity * len(arrays))]
        given = {
            **definitions,
            "TENSORS": capacity,
            "ARGUMENTS": ", ".join([f"GLOBAL void* {name}" for name in names]),
            "POINTERS": ", ".join(names),
            "GROUP_SIZE": group,
        }
        if specialized:
            given["TYPE"] = code
        kernel = launcher.kernel("update", "optimizer.cl", c_type_of(dtype), given)
        groups = [0, *itertools.accumulate([-(-size // group) for size in sizes])]
        inputs = arrays[: int(definitions["INPUTS"])]
        offsets = [source[index].offset for source in inputs for index in padded]
        table = [len(chosen), code, *groups[:-1], *sizes, *offsets, *numbers]
        memories = [array[index].memory for array in arrays for index in padded]
        launcher.run(kernel, groups[len(chosen)] * group, table, memories, group)


def _launches(sizes: list[int], limit: int, is_large: Callable[[int], bool]) -> Iterator[list[int]]:
    """Indices of the parameters of each launch: a large one alone, small ones together."""
    small = []
    for index, size in enumerate(sizes):
        if is_large(size):
            yield [index]
        elif size:
            small.append(index)
    for start in range(0, len(small), limit):
        yield small[start : start + limit]
