"""Dtypes as the kernels know them: their codes, and the C types that they are computed in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from burn.plugin_api import DType, Kind, complex128

if TYPE_CHECKING:
    from burn_opencl.buffers import Buffer

__all__ = [
    "COMPLEX_TYPES",
    "DTYPE_CODES",
    "SCALAR_CODE",
    "WORD_CODES",
    "accumulator_dtype",
    "c_type_of",
    "check_dtypes",
]

_CODED: Final = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "no dtype", "complex64", "complex128"),
)

DTYPE_CODES: Final = {name: code for code, name in enumerate(_CODED)}
"""Codes of the dtypes in the kernels (``common.cl``, ``complex_numbers.cl``)."""

SCALAR_CODE: Final = DTYPE_CODES.pop("no dtype")
"""Stands for the dtype of an operand that is a number, or that is absent (``common.cl``)."""

WORD_CODES: Final = {
    1: DTYPE_CODES["uint8"],
    2: DTYPE_CODES["uint16"],
    4: DTYPE_CODES["uint32"],
    8: DTYPE_CODES["uint64"],
}
"""Codes of the dtypes as which elements of so many bytes are moved unchanged."""

COMPLEX_TYPES: Final = frozenset({"float2", "double2"})
"""C types of complex numbers."""

_ACCUMULATORS: Final = {
    "float": "float32",
    "double": "float64",
    "long": "int64",
    "ulong": "uint64",
    "float2": "complex64",
    "double2": "complex128",
}


def c_type_of(dtype: DType) -> str:
    """C type in which elements are computed: float, double, long, ulong, float2 or double2."""
    if dtype.is_complex:
        return "double2" if dtype is complex128 else "float2"
    if dtype.is_float:
        return "double" if dtype.itemsize == 8 else "float"
    return "long" if dtype.kind is Kind.INT else "ulong"


def accumulator_dtype(dtype: DType) -> DType:
    """Dtype that keeps intermediate results of a dtype without rounding: that of its C type."""
    return DType.of(_ACCUMULATORS[c_type_of(dtype)])


def check_dtypes(op: str, *operands: Buffer | None, floats: bool = False) -> None:
    """Refuse operands of several dtypes; None stands for an optional operand that is absent.

    Raises
    ------
    TypeError
        If there are several dtypes, or if `floats` is True and there is one that is no float.
    """
    dtypes = {operand.dtype for operand in operands if operand is not None}
    if len(dtypes) > 1 or (floats and not all(dtype.is_float for dtype in dtypes)):
        raise TypeError(f"{op} of {' and '.join(sorted([dtype.name for dtype in dtypes]))}")
