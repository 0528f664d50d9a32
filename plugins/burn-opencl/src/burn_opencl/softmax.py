"""Softmax and other ops on rows: an item of a CPU computes a row, items of a GPU share one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from burn.plugin_api import DTYPE_CODES, c_type_of
from burn_opencl.base import OpenClOps, check_axis
from burn_opencl.buffers import Buffer
from burn_opencl.dtypes import check_dtypes
from burn_opencl.elementwise_variants import power_of_two
from burn_opencl.limits import GPU_GROUP_ITEMS
from burn_opencl.programs import text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from burn_opencl.launcher import Launcher

__all__ = ["SoftmaxOps", "launch_rows"]

_ROWS_PER_CPU_GROUP: Final = 4
_MIN_GPU_GROUP_ITEMS: Final = 128
_ELEMENTS_PER_GPU_LANE: Final = 4
_VEC4S_PER_GPU_LANE: Final = 2
"""What a lane of a GPU reads of a row at least, where a group has lanes enough."""

_MAX_REGISTER_BYTES: Final = 128
"""Bytes of a row that a lane of a GPU keeps in registers."""


def launch_rows(
    launcher: Launcher,
    name: str,
    operands: Sequence[Buffer],
    outputs: Sequence[Buffer],
    parameters: Sequence[int] = (0, 0, 0),
) -> None:
    """Launch a kernel of ``rows.cl`` on dense operands; the first one determines the rows."""
    x = operands[0]
    n = x.shape[-1]
    if not x.size:
        return
    rows = x.size // n
    code = DTYPE_CODES[x.dtype.name]
    specialized, on_cpu = launcher.is_specialized(x.size), launcher.runtime.is_cpu
    group, lanes, body = GPU_GROUP_ITEMS, GPU_GROUP_ITEMS, text_of("row_helpers.cl")
    definitions: dict[str, str | int] = {}
    if specialized:
        definitions["SPECIALIZED_TYPE"] = code
    if on_cpu:
        group, lanes = _ROWS_PER_CPU_GROUP, 1
    elif specialized:
        by_vec4 = not (n % 4 or any(operand.offset % 4 for operand in (*operands, *outputs)))
        width, per_lane = (4, _VEC4S_PER_GPU_LANE) if by_vec4 else (1, _ELEMENTS_PER_GPU_LANE)
        vectors = n // width
        body = text_of("vec4.cl") + body if by_vec4 else body
        definitions["BY_VEC4"] = int(by_vec4)
        lanes = min(GPU_GROUP_ITEMS, power_of_two(-(-vectors // per_lane)))
        group = max(_MIN_GPU_GROUP_ITEMS, lanes)
        in_registers = power_of_two(-(-vectors // lanes))
        if in_registers * width * x.dtype.itemsize <= _MAX_REGISTER_BYTES:
            definitions["VECTORS_PER_LANE"] = in_registers
    definitions |= {"GROUP_SIZE": group, "LANES": lanes}
    kernel = launcher.kernel(name, "rows.cl", c_type_of(x.dtype), definitions, body)
    offsets = [operand.offset for operand in operands] + [0] * (3 - len(operands))
    memories = [operand.memory for operand in (*operands, *outputs)]
    launcher.run(kernel, rows * lanes, (rows, n, code, *offsets, *parameters), memories, group)


class SoftmaxOps(OpenClOps):
    """Softmax, its logarithm, and their gradients along an axis."""

    def softmax(self, x: Buffer, *, axis: int) -> Buffer:
        """Computed in one kernel, with the maximum of each row subtracted first."""
        return self._rows("softmax", axis, x)

    def softmax_grad(self, output: Buffer, g: Buffer, *, axis: int) -> Buffer:
        """Computed in one kernel."""
        return self._rows("softmax_grad", axis, output, g)

    def log_softmax(self, x: Buffer, *, axis: int) -> Buffer:
        """Computed in one kernel."""
        return self._rows("log_softmax", axis, x)

    def log_softmax_grad(self, output: Buffer, g: Buffer, *, axis: int) -> Buffer:
        """Computed in one kernel."""
        return self._rows("log_softmax_grad", axis, output, g)

    def _rows(self, name: str, axis: int, *operands: Buffer) -> Buffer:
        launcher = self.launcher
        first = operands[0]
        rank = len(first.shape)
        check_axis(first, axis)
        check_dtypes(name, *operands, floats=True)
        if any(operand.shape != first.shape for operand in operands):
            raise ValueError(f"{name} of operands of several shapes")
        order = (*[number for number in range(rank) if number != axis], axis)
        moved = [launcher.dense(operand.permuted(order)) for operand in operands]
        out = launcher.empty(moved[0].shape, first.dtype)
        launch_rows(launcher, name, moved, [out])
        return out.permuted([order.index(number) for number in range(rank)])
