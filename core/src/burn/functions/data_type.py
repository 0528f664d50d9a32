"""Limits, kinds and promotion of dtypes (chapter "Data Type Functions" of the standard)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from burn.devices import Device
from burn.dispatch import DispatchTensor, dtype_with_number
from burn.docstrings import documented_as
from burn.dtype import DType, Kind, promote
from burn.errors import ArgumentError, DTypeError, OperandTypeError
from burn.functions.common import DTypeLike
from burn.functions.normalize import as_dtype, number_dtype
from burn.ops.arguments import python_number
from burn.public_calls import shown_value

if TYPE_CHECKING:
    from burn.aliases import Scalar
    from burn.tensor.tensor import Tensor

__all__ = ["can_cast", "finfo", "iinfo", "isdtype", "result_type"]

DTypeOrTensor: TypeAlias = "DTypeLike | Tensor"

_NUMBER: Final = (bool, int, float, complex)


@dataclass(frozen=True)
class FloatInfo:
    """Limits of a float dtype.

    Attributes
    ----------
    bits : int
        Bits per number.
    eps : float
        Distance from 1 to the next larger number.
    max, min : float
        Largest and smallest finite number.
    smallest_normal : float
        Smallest positive number of full precision.
    dtype : DType
        The float dtype; of a complex dtype that of its parts.
    """

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True)
class IntegerInfo:
    """Limits of an integer dtype.

    Attributes
    ----------
    bits : int
        Bits per number.
    max, min : int
        Largest and smallest number.
    dtype : DType
        The dtype.
    """

    bits: int
    max: int
    min: int
    dtype: DType


_KINDS: Final = {  # by the names of the standard
    "bool": Kind.BOOL,
    "signed integer": Kind.INT,
    "unsigned integer": Kind.UINT,
    "integral": Kind.INTEGER,
    "real floating": Kind.FLOAT,
    "complex floating": Kind.COMPLEX,
    "numeric": Kind.NUMBER,
}


def finfo(type: DTypeOrTensor, /) -> FloatInfo:
    """Limits of a float dtype, or of the parts of a complex one.

    Parameters
    ----------
    type : DType, str or Tensor
        The dtype, or a tensor of it.

    Returns
    -------
    FloatInfo
        The limits.

    Raises
    ------
    DTypeError
        If it is of another kind.

    Examples
    --------
    >>> import burn
    >>> burn.finfo(burn.float16).max
    65504.0
    """
    dtype = _dtype_of(type, "finfo").component
    if dtype.kind is Kind.QUANTIZED:
        raise DTypeError(
            f"{dtype} has no limits: they depend on the scales",
            hint="Ask for those of .dequantize(), or for scheme.value.range of the codes",
            operation="finfo",
        )
    if not dtype.is_float:
        raise DTypeError(f"{dtype} is no float dtype", hint="Use burn.iinfo", operation="finfo")
    if dtype.name == "bfloat16":
        import ml_dtypes

        find: Any = ml_dtypes.finfo
    else:
        find = np.finfo
    limits = find(dtype.numpy)
    return FloatInfo(
        bits=dtype.bits,
        eps=float(limits.eps),
        max=float(limits.max),
        min=float(limits.min),
        smallest_normal=float(limits.smallest_normal),
        dtype=dtype,
    )


@documented_as(finfo)
def iinfo(type: DTypeOrTensor, /) -> IntegerInfo:
    """Limits of an integer dtype.

    Returns
    -------
    IntegerInfo
        The limits.

    Examples
    --------
    >>> import burn
    >>> burn.iinfo(burn.int8).min
    -128
    """
    dtype = _dtype_of(type, "iinfo")
    if not dtype.is_integer:
        raise DTypeError(f"{dtype} is no integer dtype", hint="Use burn.finfo", operation="iinfo")
    low, high = dtype.integer_range
    return IntegerInfo(bits=dtype.bits, max=high, min=low, dtype=dtype)


def isdtype(dtype: DTypeLike, kind: DTypeLike | tuple[DTypeLike, ...]) -> bool:
    """Whether a dtype is of a kind, or of one of several.

    Parameters
    ----------
    dtype : DType or str
        The dtype.
    kind : DType, str, or tuple of them
        A dtype, or ``"bool"``, ``"signed integer"``, ``"unsigned integer"``, ``"integral"``,
        ``"real floating"``, ``"complex floating"`` or ``"numeric"``.

    Returns
    -------
    bool
        Whether the dtype is of the kind.

    Raises
    ------
    DTypeError
        If burn has no such dtype.
    ArgumentError
        If there is no such kind.

    Examples
    --------
    >>> import burn
    >>> burn.isdtype(burn.uint8, ("integral", burn.float32))
    True
    """
    found = as_dtype(dtype, "isdtype")
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return any(_is_of(found, kind) for kind in kinds)


def _is_of(dtype: DType, kind: DTypeLike) -> bool:
    if isinstance(kind, str) and kind in _KINDS:
        return dtype.kind in _KINDS[kind]
    try:
        return dtype is DType.of(kind)
    except DTypeError:
        raise ArgumentError(
            f"unknown kind {shown_value(kind)}",
            hint=f"The kinds are {', '.join(map(repr, _KINDS))}",
            operation="isdtype",
        ) from None


def can_cast(from_: DTypeOrTensor, to: DTypeLike, /) -> bool:
    """Whether promotion alone converts one dtype to another.

    Parameters
    ----------
    from_ : DType, str or Tensor
        The dtype, or a tensor of it.
    to : DType or str
        The other dtype.

    Returns
    -------
    bool
        Whether `from_` and `to` promote to `to`.

    Raises
    ------
    DTypeError
        If burn has no such dtype.

    Examples
    --------
    >>> import burn
    >>> burn.can_cast(burn.int8, burn.int16), burn.can_cast(burn.float64, burn.float32)
    (True, False)
    """
    start, wanted = _dtype_of(from_, "can_cast"), as_dtype(to, "can_cast")
    try:
        return promote(start, wanted) is wanted
    except DTypeError:
        return False


def result_type(*arrays_and_dtypes: DTypeOrTensor | Scalar) -> DType:
    """The dtype to which tensors, dtypes and numbers promote.

    A number matters only where its kind is above that of the rest; then the default dtypes of the
    device decide. A quantized tensor stands for floats of the dtype that the others have, or of the
    device's.

    Parameters
    ----------
    *arrays_and_dtypes : Tensor, DType, str or number
        At least one tensor or dtype, and any numbers.

    Returns
    -------
    DType
        The dtype of the result of an op on such operands.

    Raises
    ------
    OperandTypeError
        If there are only numbers.
    DTypeError
        If there is no such dtype.

    Examples
    --------
    >>> import burn
    >>> burn.result_type(burn.int32, burn.uint8, 3)
    burn.int32
    """
    arguments = [python_number(arrays_and_dtype) for arrays_and_dtype in arrays_and_dtypes]
    numbers = [argument for argument in arguments if isinstance(argument, _NUMBER)]
    others = [argument for argument in arguments if not isinstance(argument, _NUMBER)]
    if not others:
        raise OperandTypeError("needs a tensor or a dtype", operation="result_type")
    tensors = [other for other in others if isinstance(other, DispatchTensor)]
    device = tensors[0].tensor_type.device if tensors else None
    dtypes = [_dtype_of(other, "result_type") for other in others]
    if any(tensor.tensor_type.dtype.kind is Kind.QUANTIZED for tensor in tensors):
        dtypes = _of_numbers(others, dtypes)
    try:
        result = dtypes[0]
        for dtype in dtypes[1:]:
            result = promote(result, dtype)
    except DTypeError as error:
        error.operation = f"result_type({', '.join(map(str, dtypes))})"
        raise
    for number in numbers:
        if number.__class__ is not bool:
            result = dtype_with_number(result, number, device or Device.default())
    return result


def _of_numbers(arguments: Sequence[Any], dtypes: Sequence[DType]) -> list[DType]:
    """The dtypes of arguments, in which quantized tensors are floats like the others."""
    is_restored = [
        isinstance(argument, DispatchTensor) and dtype.kind is Kind.QUANTIZED
        for argument, dtype in zip(arguments, dtypes, strict=True)
    ]
    rest = [dtype for dtype, own in zip(dtypes, is_restored, strict=True) if not own]
    if any(dtype.is_float or dtype.is_complex for dtype in rest):
        return rest
    first = arguments[is_restored.index(True)]
    return [*rest, number_dtype(first)]


def _dtype_of(thing: Any, operation: str) -> DType:
    if isinstance(thing, DispatchTensor):
        return thing.tensor_type.dtype
    return as_dtype(thing, operation)
