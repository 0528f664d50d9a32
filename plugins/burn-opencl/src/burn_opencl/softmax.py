"""Softmax and its like: an item or a group for each row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from burn_opencl.buffers import Buffer
from burn_opencl.expressions import CODES, class_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from burn_opencl.launcher import Launcher

__all__ = ["SoftmaxOps", "launch_rows"]

_ROWS_OF_A_GROUP: Final = 4
_ITEMS_OF_A_ROW: Final = 256


def launch_rows(
    launcher: Launcher,
    name: str,
    operands: Sequence[Buffer],
    outputs: Sequence[Buffer],
    numbers: Sequence[int] = (0, 0, 0),
) -> None:
    """Launch a kernel of ``rows.cl`` on dense operands; the first is that of the rows."""
    x = operands[0]
    n = x.shape[-1]
    if not x.size:
        return
    rows = x.size // n
    code = CODES[x.dtype.name]
    on_cpu = launcher.runtime.is_cpu
    group = _ROWS_OF_A_GROUP if on_cpu else _ITEMS_OF_A_ROW
    definitions: dict[str, str | int] = {"GROUP_SIZE": group}
    if x.size >= launcher.large:
        definitions["TYPE_0"] = code
    kernel = launcher.kernel(name, "rows.cl", class_of(x.dtype), definitions)
    starts = [one.offset for one in operands] + [0] * (3 - len(operands))
    parameters = (rows, n, code, *starts, *numbers)
    memories = [one.memory for one in (*operands, *outputs)]
    launcher.run(kernel, rows if on_cpu else rows * group, parameters, memories, group)


class SoftmaxOps:
    """Functions of rows, which lie along an axis."""

    launcher: Launcher

    def softmax(self, x: Buffer, *, axis: int) -> Buffer:
        """Exponentials, less the maximum of their row, over their sum."""
        return self._rows("softmax", axis, x)

    def softmax_grad(self, output: Buffer, g: Buffer, *, axis: int) -> Buffer:
        """One kernel."""
        return self._rows("softmax_grad", axis, output, g)

    def log_softmax(self, x: Buffer, *, axis: int) -> Buffer:
        """One kernel."""
        return self._rows("log_softmax", axis, x)

    def log_softmax_grad(self, output: Buffer, g: Buffer, *, axis: int) -> Buffer:
        """One kernel."""
        return self._rows("log_softmax_grad", axis, output, g)

    def _rows(self, name: str, axis: int, *operands: Buffer) -> Buffer:
        launcher = self.launcher
        first = operands[0]
        rank = len(first.shape)
        if not 0 <= axis < rank:
            raise IndexError(f"axis {axis} of {rank}")
        if not first.dtype.is_float or any(
            one.shape != first.shape or one.dtype is not first.dtype for one in operands
        ):
            raise ValueError(f"{name} of operands of other shapes or dtypes")
        order = (*[number for number in range(rank) if number != axis], axis)
        moved = [launcher.dense(one.permuted(order)) for one in operands]
        out = launcher.empty(moved[0].shape, first.dtype)
        launch_rows(launcher, name, moved, [out])
        return out.permuted([order.index(number) for number in range(rank)])
