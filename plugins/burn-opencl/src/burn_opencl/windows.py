"""Windows that slide along spatial axes: what a kernel is told of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from burn.ops.pooling_windows import Windows
from burn_opencl.buffers import Buffer
from burn_opencl.expressions import CODES, class_of

if TYPE_CHECKING:
    from burn_opencl.launcher import Launcher

__all__ = ["AXES", "launch_windows"]

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
    one = Windows(1, 1, 1, 0, 0, 1, 1)
    axes = [one] * (AXES - len(plan)) + list(plan)
    code = CODES[operand.dtype.name]
    # Along a row of windows a CPU goes by itself.
    group = 1 if name == "columns" and launcher.runtime.is_cpu else 64
    definitions: dict[str, str | int] = {"GROUP_SIZE": group}
    if math.prod(outputs[0].shape) >= launcher.large:
        definitions["TYPE"] = code
    kernel = launcher.kernel(name, "windows.cl", class_of(operand.dtype), definitions)
    fields = ("length", "kernel", "stride", "before", "after", "dilation", "count")
    numbers = [items, operand.offset, code, index_type, int(with_padding), lowest]
    numbers += [getattr(axis, field) for field in fields for axis in axes]
    memories: list[Any] = [operand.memory, *[output.memory for output in outputs]]
    launcher.run(kernel, items, numbers, memories, group)
