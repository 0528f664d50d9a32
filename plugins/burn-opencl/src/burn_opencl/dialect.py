"""OpenClDialect: the language in which core writes kernels for OpenCL."""

from __future__ import annotations

from ctypes import c_double, c_float, c_int64
from typing import TYPE_CHECKING, Any, ClassVar, Final

from burn.plugin_api import (
    Code,
    CWriter,
    DType,
    StepCode,
    StepFormula,
    collapsed,
    float64,
    needs_wide_indices,
    step_code,
    write_chunks,
    write_groups,
)
from burn_opencl.programs import text_of

if TYPE_CHECKING:
    from burn.plugin_api import Kernel

__all__ = ["OpenClDialect", "OpenClWriter", "VectorizedWriter", "scalar_types"]

_ENTRY: Final = "generated"

_STRICT: Final = "#pragma OPENCL FP_CONTRACT OFF\n"


class OpenClWriter(CWriter):
    """OpenCL C 1.2."""

    types: ClassVar[dict[str, str]] = {
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
    # The tanh of some drivers does not reach 1.
    helper_texts: ClassVar[dict[str, str]] = {
        "tanh": """({T} x) {
    const {T} decay = expm1(({T})-2 * fabs(x));
    return copysign(-decay / (({T})2 + decay), x);
}""",
    }
    as_bits = "as_uint({0})"
    as_float = "as_float({0})"
    nan = "as_float(0x7fc00000u)"  # NVIDIA's compiler finds 0.0f / 0.0f equal to itself
    from_half = "from_half({0})"
    to_half = "to_half({0})"
    preamble = """
#ifdef FP_FAST_FMAF
#define fused_float(x, y, z) fma(x, y, z)
#else
#define fused_float(x, y, z) ((x) * (y) + (z))
#endif
#define fused_double(x, y, z) fma(x, y, z)
inline float from_half(ushort bits) { return vload_half(0, (const half*)&bits); }
inline ushort to_half(float x) {
    ushort bits;
    vstore_half_rte(x, 0, (half*)&bits);
    return bits;
}"""
    fused = "fused_{T}({0}, {1}, {2})"
    function = "inline"
    entry = "__kernel __attribute__((reqd_work_group_size({0}, 1, 1)))"
    memory = "__global"
    group = "get_group_id(0)"
    lane = "get_local_id(0)"
    shared = "__local"
    has_pointers_in_structs = False
    fence = "barrier(CLK_LOCAL_MEM_FENCE);"

    def scalar_parameters(self) -> list[str]:
        """Numbers as doubles only where the kernel computes with doubles."""
        names = {c_int64: "long", c_float: "float", c_double: "double"}
        return [f"{names[kind]} s{number}" for number, kind in enumerate(scalar_types(self.kernel))]


class VectorizedWriter(OpenClWriter):
    """OpenCL C for a CPU, whose compiler makes vectors of loops without calls."""

    fused = ""  # it calls a function
    independent = "#pragma clang loop vectorize(assume_safety)"
    texts: ClassVar[dict[str, str]] = {
        name: f"burn_{name}({{0}})" for name in ("log", "log1p", "expm1", "tanh", "erf")
    }
    preamble = OpenClWriter.preamble + "\n" + text_of("functions.cl")


def scalar_types(kernel: Kernel) -> list[type[Any]]:
    """Type of each number that a launch is given."""
    has_doubles = any(node.dtype is float64 for node in kernel.body)
    real = c_double if has_doubles else c_float
    return [c_int64 if kind is int else real for kind in kernel.scalars]


class OpenClDialect:
    """Kernels for the work groups of a device.

    Parameters
    ----------
    lanes : int
        Lanes of a group at most; with 1 an item computes many elements, as suits a CPU.
    has_fp64 : bool
        Whether the device computes in float64.
    is_cpu : bool
        Whether it is a CPU.

    Attributes
    ----------
    dtypes : frozenset of DType
        Dtypes that kernels may have.
    """

    def __init__(self, lanes: int, *, has_fp64: bool, is_cpu: bool) -> None:
        self.lanes = lanes
        self._writer = VectorizedWriter if is_cpu else OpenClWriter
        self.dtypes = frozenset(
            [DType.of(name) for name in OpenClWriter.types if has_fp64 or name != "float64"]
        )
        self._preamble = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" * has_fp64

    def step(self, formula: StepFormula, dtype: DType, capacity: int) -> StepCode:
        """OpenCL C of a step of an optimizer."""
        code = step_code(
            lambda kernel: self._writer(kernel, wide=True),
            formula,
            dtype,
            capacity,
            self.lanes,
            has_doubles=dtype is float64,
        )
        return code._replace(text=self._preamble + _STRICT + code.text)

    def source(self, kernel: Kernel) -> Code:
        """OpenCL C of a kernel."""
        small = collapsed(kernel)
        writer = self._writer(small, wide=needs_wide_indices(small))
        if self.lanes == 1:
            groups, lanes = write_chunks(writer, small)
        else:
            groups, lanes = write_groups(writer, small, self.lanes)
        preamble = self._preamble + ("" if kernel.relaxed else _STRICT)
        return Code(kernel, preamble + writer.text(_ENTRY, lanes), _ENTRY, groups, lanes)
