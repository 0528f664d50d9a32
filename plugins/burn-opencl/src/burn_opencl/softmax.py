"""Softmax and its like: an item for each row, or several that share it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from burn_opencl.buffers import Buffer, check_dtypes
from burn_opencl.expressions import CODES, class_of
from burn_opencl.forms import power_of_two
from burn_opencl.programs import text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from burn_opencl.launcher import Launcher

__all__ = ["SoftmaxOps", "launch_rows"]

_ROWS_OF_A_GROUP: Final = 4
_ITEMS_OF_A_GROUP: Final = 128
_ITEMS_OF_A_ROW: Final = 256
_PIECES: Final = 4
_QUADS: Final = 2
"""So many elements of a row an item of a GPU has, or quads, where a row has items enough."""

_HELD: Final = 128
"""Bytes of a row that an item of a GPU keeps in registers."""


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
    large, on_cpu = x.size >= launcher.large, launcher.runtime.is_cpu
    group, lanes, text = _ITEMS_OF_A_ROW, _ITEMS_OF_A_ROW, ""
    definitions: dict[str, str | int] = {"BY_ITEM": int(on_cpu)}
    if large:
        definitions["TYPE_0"] = code
    if on_cpu:
        group, lanes = _ROWS_OF_A_GROUP, 1
    elif large:
        quads = not (n % 4 or any(one.offset % 4 for one in (*operands, *outputs)))
        pieces = n // 4 if quads else n
        text = text_of("quads.cl") if quads else ""
        definitions["BY_QUADS"] = int(quads)
        lanes = min(_ITEMS_OF_A_ROW, power_of_two(-(-pieces // (_QUADS if quads else _PIECES))))
        group = max(_ITEMS_OF_A_GROUP, lanes)
        held = power_of_two(-(-pieces // lanes))
        if held * (4 if quads else 1) * x.dtype.itemsize <= _HELD:
            definitions["PER"] = held
    definitions |= {"GROUP_SIZE": group, "LANES": lanes}
    kernel = launcher.kernel(name, "rows.cl", class_of(x.dtype), definitions, text)
    starts = [one.offset for one in operands] + [0] * (3 - len(operands))
    parameters = (rows, n, code, *starts, *numbers)
    memories = [one.memory for one in (*operands, *outputs)]
    launcher.run(kernel, rows * lanes, parameters, memories, group)


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
        check_dtypes(name, *operands, floats=True)
        if any(one.shape != first.shape for one in operands):
            raise ValueError(f"{name} of operands of other shapes")
        order = (*[number for number in range(rank) if number != axis], axis)
        moved = [launcher.dense(one.permuted(order)) for one in operands]
        out = launcher.empty(moved[0].shape, first.dtype)
        launch_rows(launcher, name, moved, [out])
        return out.permuted([order.index(number) for number in range(rank)])
