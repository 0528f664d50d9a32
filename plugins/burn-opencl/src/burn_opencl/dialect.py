"""OpenClDialect: the language in which core writes kernels for OpenCL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.plugin_api import Code, CWriter, collapsed, needs_wide_indices, write_groups
from burn_opencl.programs import text_of

if TYPE_CHECKING:
    from burn.plugin_api import Kernel

__all__ = ["OpenClDialect", "OpenClWriter"]

_ENTRY = "generated"


class OpenClWriter(CWriter):
    """OpenCL C 1.2."""

    types = {
        "bool": "uchar",
        "int8": "char",
        "int16": "short",
        "int32": "int",
        "int64": "long",
        "uint8": "uchar",
        "uint16": "ushort",
        "uint32": "uint",
        "uint64": "ulong",
        "float16": "ushort",
        "bfloat16": "ushort",
        "float32": "float",
        "float64": "double",
    }
    as_bits = "as_uint({0})"
    as_float = "as_float({0})"
    from_half = "from_half({0})"
    to_half = "to_half({0})"
    preamble = """
inline float from_half(ushort bits) { return vload_half(0, (const half*)&bits); }
inline ushort to_half(float x) {
    ushort bits;
    vstore_half_rte(x, 0, (half*)&bits);
    return bits;
}"""
    function = "inline"
    entry = "__kernel __attribute__((reqd_work_group_size({0}, 1, 1)))"
    memory = "__global"
    unrolled = "__attribute__((opencl_unroll_hint))"
    group = "get_group_id(0)"
    lane = "get_local_id(0)"
    shared = "__local"
    fence = "barrier(CLK_LOCAL_MEM_FENCE);"


class OpenClDialect:
    """Kernels for the work groups of a device.

    Parameters
    ----------
    lanes : int
        Lanes of a group at most.
    """

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes

    def source(self, kernel: Kernel) -> Code:
        """OpenCL C of a kernel."""
        small = collapsed(kernel)
        writer = OpenClWriter(small, wide=needs_wide_indices(small))
        groups, lanes = write_groups(writer, small, self.lanes)
        return Code(kernel, writer.text(_ENTRY, lanes), _ENTRY, groups, lanes)
