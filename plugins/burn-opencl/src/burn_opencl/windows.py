"""Launches of kernels on windows that slide along spatial axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from burn.plugin_api import Windows
from burn_opencl.buffers import Buffer
from burn_opencl.dtypes import DTYPE_CODES, SCALAR_CODE, c_type_of
from burn_opencl.limits import SMALL_GROUP_ITEMS

if TYPE_CHECKING:
    from burn_opencl.launcher import Launcher

__all__ = ["SPATIAL_AXES", "launch_windows"]

_MANY_WINDOWS_PER_CPU_ITEM: Final = frozenset({"columns", "max_pool", "avg_pool"})
"""Kernels in which an item of a CPU computes many windows in a row."""

_MAX_ELEMENTS_PER_CPU_ITEM: Final = 4096
_MIN_CPU_ITEMS_PER_UNIT: Final = 8

SPATIAL_AXES: Final = 3
"""Spatial axes of the kernels; fewer are padded with axes of length 1 in front."""


def launch_windows(
    launcher: Launcher,
    name: str,
    plan: Sequence[Windows],
    operand: Buffer,
    outputs: Sequence[Buffer],
    *,
    items: int,
    index_type: int = SCALAR_CODE,
    with_padding: bool = False,
    lowest: int = 0,
) -> None:
    """Launch a kernel of ``windows.cl`` on a dense operand."""
    if not items:
        return
    per_item = 1
    if launcher.runtime.is_cpu and name in _MANY_WINDOWS_PER_CPU_ITEM:
        most = _MAX_ELEMENTS_PER_CPU_ITEM
        if name == "columns":
            most = max(1, most // plan[-1].count)
        per_item = min(most, max(1, items // (_MIN_CPU_ITEMS_PER_UNIT * launcher.runtime.units)))
    trivial = Windows(1, 1, 1, 0, 0, 1, 1)
    axes = [trivial] * (SPATIAL_AXES - len(plan)) + list(plan)
    code = DTYPE_CODES[operand.dtype.name]
    group = 1 if per_item > 1 else SMALL_GROUP_ITEMS
    definitions: dict[str, str | int] = {"GROUP_SIZE": group}
    if launcher.is_specialized(outputs[0].size):
        definitions["TYPE"] = code
        if name in ("max_pool", "avg_pool"):
            definitions |= {f"K{number}": axis.kernel for number, axis in enumerate(axes)}
            definitions |= {f"D{number}": axis.dilation for number, axis in enumerate(axes)}
    kernel = launcher.kernel(name, "windows.cl", c_type_of(operand.dtype), definitions)
    fields = ("length", "kernel", "stride", "before", "after", "dilation", "count")
    parameters = [items, per_item, operand.offset, code, index_type, int(with_padding), lowest]
    parameters += [getattr(axis, field) for field in fields for axis in axes]
    memories: list[Any] = [operand.memory, *[output.memory for output in outputs]]
    launcher.run(kernel, -(-items // per_item), parameters, memories, group)
