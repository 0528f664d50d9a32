"""Host values of numbers, sequences and arrays: their dtype, and conversion to another one."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from burn.dispatch import DispatchTensor, dtype_with_number, to_scalar
from burn.dtype import DType, Kind, float64, int64, promote, uint64
from burn.errors import ScalarRangeError, ShapeError
from burn.ops.shapes import check_conversion
from burn.tensor_data import TensorData, check_unmasked

if TYPE_CHECKING:
    from burn.devices import Device

__all__ = ["Elements", "dtype_of", "elements_of", "host_data"]

_NUMBERS: Final[frozenset[type]] = frozenset({bool, int, float, complex})

_NUMPY_KINDS: Final = "biufcV"
"""NumPy's codes of the kinds of dtypes that a tensor may have (V: those of ml_dtypes)."""

_MAX_DEPTH: Final = 64
"""Most axes of a NumPy array. A list that contains itself is nested deeper, and NumPy hangs."""


class Elements(NamedTuple):
    """Elements of nested sequences, by type.

    Attributes
    ----------
    arrays : list
        Tensors, arrays, and any other object that is no number.
    scalars : set of type
        Types of the NumPy scalars.
    numbers : set of type
        Types of the Python numbers.
    """

    arrays: list[Any]
    scalars: set[type]
    numbers: set[type]


def elements_of(obj: Any) -> Elements:
    """Elements of nested lists and tuples; any other object is the only element.

    Raises
    ------
    ShapeError
        If they are nested too deeply: a list may contain itself.
    """
    found = Elements([], set(), set())
    _collect(obj if isinstance(obj, (list, tuple)) else [obj], found, 1)
    return found


def _collect(row: list[Any] | tuple[Any, ...], found: Elements, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise ShapeError(
            f"sequences are nested more than {_MAX_DEPTH} deep",
            hint="A list may not contain itself",
        )
    # Rows have many elements of few types. Tensors in a trace have another `__class__`.
    types = set(map(type, row))
    found.numbers.update(types & _NUMBERS)
    others = types - _NUMBERS
    if not others:
        return
    scalars = {kind for kind in others if issubclass(kind, np.generic)}
    found.scalars.update(scalars)
    others -= scalars
    if not others:
        return
    for values in row:
        if isinstance(values, (list, tuple)):
            _collect(values, found, depth + 1)
        elif type(values) in others:
            found.arrays.append(values)


def dtype_of(elements: Elements, device: Device) -> DType | None:
    """The dtype to which arrays and Python numbers promote; None for numbers alone.

    Raises
    ------
    DTypeError
        If there is none, as for uint64 and int64.
    """
    native = [np.dtype(kind) for kind in elements.scalars]
    found = [DType.of(dtype) for dtype in native if dtype.kind in _NUMPY_KINDS]
    found += [one for array in elements.arrays if (one := _own_dtype(array))]
    if not found:
        return None
    if len(set(found)) > 1 or elements.numbers:
        found = _of_numbers(found, device)
    # Integers last: uint64 and int64 promote to a float dtype if there is one, in any order.
    result = functools.reduce(
        promote, sorted(set(found), key=lambda dtype: (dtype.is_integer, dtype.name))
    )
    for number in (int, float, complex):
        if number in elements.numbers:
            result = dtype_with_number(result, number(0), device)
    return result


def _of_numbers(dtypes: list[DType], device: Device) -> list[DType]:
    """Dtypes of which quantized ones stand for floats: those of the others, or of the device."""
    found = [dtype for dtype in dtypes if dtype.kind is not Kind.QUANTIZED]
    if len(found) == len(dtypes) or any(dtype.is_float or dtype.is_complex for dtype in found):
        return found
    return [*found, device.settings.float_dtype]


def _own_dtype(obj: Any) -> DType | None:
    """The dtype of a tensor, or of an object that NumPy reads as an array; else None."""
    if isinstance(obj, DispatchTensor):
        return obj.tensor_type.dtype
    if not isinstance(obj, (np.ndarray, np.generic)):
        if not hasattr(obj, "__array__") and not _has_buffer(obj):
            return None
        obj = np.asarray(obj)
    return DType.of(obj.dtype) if obj.dtype.kind in _NUMPY_KINDS else None


def _has_buffer(obj: Any) -> bool:
    try:
        memoryview(obj)
    except TypeError:
        return False
    return True


def host_data(obj: Any, wanted: DType | None, device: Device) -> TensorData:
    """The values of numbers, nested sequences or an array, none of which is a tensor.

    Parameters
    ----------
    obj : object
        The numbers, sequences or array.
    wanted : DType, optional
        Dtype of the result. By default that of the arrays among the values; for Python numbers the
        device's default of the kind that holds them all.
    device : Device
        The device whose default dtypes apply.
    """
    try:
        if isinstance(obj, (list, tuple)):
            data, wanted = _joined(obj, wanted, device)
        else:
            data = TensorData.of(obj)
            if wanted is None and obj.__class__ not in _NUMBERS and _own_dtype(obj):
                wanted = data.dtype
    except ScalarRangeError:
        raise
    except OverflowError as error:
        raise ScalarRangeError(f"no integer dtype holds these numbers: {error}") from None
    if wanted is None:
        wanted = device.settings.default_for(data.dtype)
    return data if wanted is data.dtype else TensorData(_converted(data, wanted))


def _joined(
    obj: list[Any] | tuple[Any, ...], wanted: DType | None, device: Device
) -> tuple[TensorData, DType | None]:
    """The values in nested sequences as NumPy joins them, and the dtype of the result."""
    elements = elements_of(obj)
    for array in elements.arrays:
        check_unmasked(array)
    has_arrays = bool(elements.arrays or elements.scalars)
    if wanted is None and has_arrays:
        wanted = dtype_of(elements, device)
    data = TensorData.of(obj)
    if data.dtype is float64:
        data = _without_rounding(obj, data, wanted, has_arrays=has_arrays)
    return data, wanted


def _without_rounding(
    obj: Any, data: TensorData, wanted: DType | None, *, has_arrays: bool
) -> TensorData:
    """Host values as integers where NumPy read integers beyond int64 as floats."""
    if wanted is not None and not wanted.is_integer:
        return data
    are_large = bool(np.any(np.abs(data.array) >= 2.0**63))
    if not are_large and not has_arrays:
        return data
    numbers = np.array(obj, dtype=object)
    if not all(isinstance(number, (int, np.integer)) for number in numbers.flat):
        return data
    return TensorData(numbers.astype((uint64 if are_large else int64).numpy))


def _converted(data: TensorData, dtype: DType) -> np.ndarray[Any, Any]:
    """Host values in another dtype; an error for numbers that do not fit an integer dtype."""
    array = data.array
    check_conversion(data.dtype, dtype)
    with np.errstate(all="ignore"):
        if dtype.is_integer and not data.dtype.is_bool and array.size:
            for value in (array.min(), array.max()):  # both NaN if there is one
                to_scalar(value, dtype)
        return array.astype(dtype.numpy)
