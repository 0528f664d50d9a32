"""Windows that slide along spatial axes: what a kernel is told of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from burn.ops.pooling_windows import Windows
from burn_opencl.buffers import Buffer
from burn_opencl.expressions import CODES, class_of

if TYPE_CHECKING:
    from burn_opencl.launcher import Launcher

__all__ = ["AXES", "launch_windows"]

_IN_ROWS: Final = frozenset({"columns", "max_pool", "avg_pool"})
"""Kernels of which an item of a CPU takes many windows in a row."""

_ELEMENTS: Final = 4096
_ITEMS_OF_A_UNIT: Final = 8

AXES = 3
"""So many spatial axes the kernels know; with fewer there are others of length 1 before them."""


def launch_windows(
    launcher: Launcher,
    name: str,
    plan: Sequence[Windows],
    operand: Buffer,
    outputs: Sequence[Buffer],
    *,
    items: int,
    index_type: int = 13,
    with_padding: bool = False,
    lowest: int = 0,
) -> None:
    """Launch a kernel of ``windows.cl`` on a dense operand."""
    if not items:
        return
    each = 1
    if launcher.runtime.is_cpu and name in _IN_ROWS:
        shared = max(1, items // (_ITEMS_OF_A_UNIT * launcher.runtime.units))
        each = min(shared, max(1, _ELEMENTS // plan[-1].count) if name == "columns" else _ELEMENTS)
    one = Windows(1, 1, 1, 0, 0, 1, 1)
    axes = [one] * (AXES - len(plan)) + list(plan)
    code = CODES[operand.dtype.name]
    group = 1 if each > 1 else 64
    definitions: dict[str, str | int] = {"GROUP_SIZE": group}
    if math.prod(outputs[0].shape) >= launcher.large:
        definitions["TYPE"] = code
        if name in ("max_pool", "avg_pool"):
            definitions |= {f"K{place}": axis.kernel for place, axis in enumerate(axes)}
            definitions |= {f"D{place}": axis.dilation for place, axis in enumerate(axes)}
    kernel = launcher.kernel(name, "windows.cl", class_of(operand.dtype), definitions)
    fields = ("length", "kernel", "stride", "before", "after", "dilation", "count")
    numbers = [items, each, operand.offset, code, index_type, int(with_padding), lowest]
    numbers += [getattr(axis, field) for field in fields for axis in axes]
    memories: list[Any] = [operand.memory, *[output.memory for output in outputs]]
    launcher.run(kernel, -(-items // each), numbers, memories, group)
