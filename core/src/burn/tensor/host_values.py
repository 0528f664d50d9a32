"""Host values of what `asarray` takes: their dtype, and their conversion to another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from burn.data import TensorData, check_unmasked
from burn.dispatch import DispatchTensor, dtype_with_number, to_scalar
from burn.dtype import DType, float64, int64, promote, uint64
from burn.errors import ScalarRangeError, ShapeError
from burn.ops.shapes import check_conversion

if TYPE_CHECKING:
    from burn.device import Device

__all__ = ["Elements", "dtype_of", "elements_of", "host_data"]

_NUMBERS: Final[frozenset[type]] = frozenset({bool, int, float, complex})

_DEEPEST: Final = 64
"""The number of axes that NumPy has. A list that contains itself is deeper, and NumPy hangs."""


class Elements(NamedTuple):
    """What is in nested sequences.

    Attributes
    ----------
    arrays : list
        The tensors, the arrays, NumPy's scalars, and whatever else is no Python number.
    numbers : set of type
        The types of the Python numbers.
    """

    arrays: list[Any]
    numbers: set[type]


def elements_of(obj: Any) -> Elements:
    """What is in nested lists and tuples; of anything else, it alone.

    Raises
    ------
    ShapeError
        If they are nested too deeply: a list may contain itself.
    """
    found = Elements([], set())
    _collect(obj if isinstance(obj, (list, tuple)) else [obj], found, 1)
    return found


def _collect(row: list[Any] | tuple[Any, ...], found: Elements, depth: int) -> None:
    if depth > _DEEPEST:
        raise ShapeError(
            f"sequences are nested more than {_DEEPEST} deep",
            hint="A list may not contain itself",
        )
    types = set(map(type, row))
    found.numbers.update(types & _NUMBERS)
    if types <= _NUMBERS:
        return
    for one in row:
        if isinstance(one, (list, tuple)):
            _collect(one, found, depth + 1)
        elif one.__class__ not in _NUMBERS:
            found.arrays.append(one)


def dtype_of(elements: Elements, device: Device) -> DType | None:
    """The dtype in which arrays and Python numbers meet; None where there are numbers alone.

    Raises
    ------
    DTypeError
        If there is none, as for uint64 and int64.
    """
    # There may be many elements, and few dtypes.
    dtypes = list(dict.fromkeys([one for array in elements.arrays if (one := _own_dtype(array))]))
    if not dtypes:
        return None
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = promote(result, dtype)
    for number in (int, float, complex):
        if number in elements.numbers:
            result = dtype_with_number(result, number(0), device)
    return result


def _own_dtype(obj: Any) -> DType | None:
    """The dtype of a tensor, or of what NumPy reads as an array; None for anything else."""
    if isinstance(obj, DispatchTensor):
        return obj.tensor_type.dtype
    if not isinstance(obj, (np.ndarray, np.generic)):
        if not hasattr(obj, "__array__") and not _has_buffer(obj):
            return None
        obj = np.asarray(obj)
    return DType.of(obj.dtype) if obj.dtype.kind in "biufcV" else None


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
        What has the values.
    wanted : DType, optional
        Their dtype. By default that of the arrays among them; for Python numbers the device's
        default of the kind that holds them all.
    device : Device
        The device whose defaults are taken.
    """
    elements = elements_of(obj)
    for one in elements.arrays:
        check_unmasked(one)
    if wanted is None:
        wanted = dtype_of(elements, device)
    try:
        data = TensorData.of(obj)
        if data.dtype is float64 and isinstance(obj, (list, tuple)):
            data = _without_rounding(obj, data, wanted, has_arrays=bool(elements.arrays))
    except OverflowError as error:
        raise ScalarRangeError(f"no integer dtype holds these numbers: {error}") from None
    if wanted is None:
        wanted = device.settings.default_for(data.dtype)
    return data if wanted is data.dtype else TensorData(_converted(data, wanted))


def _without_rounding(
    obj: Any, data: TensorData, wanted: DType | None, *, has_arrays: bool
) -> TensorData:
    """Host values, where NumPy reads integers as floats: some beyond int64, or some in uint64."""
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
    """Host values in another dtype; integers that do not fit are refused."""
    array = data.array
    check_conversion(data.dtype, dtype)
    if dtype.is_integer and data.dtype.is_integer and array.size:
        for value in (int(array.min()), int(array.max())):
            to_scalar(value, dtype)
    with np.errstate(all="ignore"):
        return array.astype(dtype.numpy)
