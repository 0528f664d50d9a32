"""Examples joined to a batch: `collate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.data._containers import Parts, taken_apart
from burn.data._rows import Numbers, Rows, as_array, as_list, is_array, is_tensor
from burn.errors import ArgumentError, BurnError, OperandTypeError, ScalarRangeError, ShapeError
from burn.tensor_data import check_unmasked

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["collate"]

_NUMBERS: Final = (bool, int, float, complex)
"""Types of Python numbers, the later ones holding the earlier ones."""

_MAX_DEPTH: Final = 64
"""Most axes of a NumPy array."""

_OWN_FUNCTION: Final = "Pass collate=, a function of the list of examples, to join them differently"


def collate(examples: Sequence[Any], /) -> Any:
    """Examples joined to a batch, as a `DataLoader` does it without ``collate=``.

    The batch has the containers of an example: dicts, tuples, named tuples, dataclasses and lists,
    nested in each other. It lies on the host; the loader makes tensors of its arrays.

    =============================================  ==============================================
    in each example                                in the batch
    =============================================  ==============================================
    NumPy array or scalar, PyTorch tensor, image   a NumPy array with a new first axis, of the same
    of PIL, any array that the host can read       dtype
    Python number, list of numbers                 an array of the device's default dtype of the
                                                   kind: float32, int64, bool
    tensor                                         a tensor with a new first axis, on its device
    string, bytes, any other object                a list
    None in all                                    None
    =============================================  ==============================================

    Parameters
    ----------
    examples : sequence
        At least one example; all have the same containers, and arrays of the same shapes.

    Returns
    -------
    object
        The batch.

    Raises
    ------
    ShapeError
        If arrays of a field differ in shape.
    OperandTypeError
        If examples differ in their containers, or some have None.
    ScalarRangeError
        If no integer dtype holds the numbers.
    ArgumentError
        If there is no example, or elements of an array are masked.

    Examples
    --------
    >>> import numpy
    >>> from burn.data import collate
    >>> batch = collate([(numpy.zeros(3), "a"), (numpy.ones(3), "b")])
    >>> batch[0].shape, batch[1]
    ((2, 3), ['a', 'b'])
    """
    if isinstance(examples, Rows):
        return examples.batch
    values = as_list(examples, "collate([example]) makes a batch of one", "collate")
    if not values:
        raise ArgumentError("there is no example", operation="collate")
    return _joined(values, "example")


def _joined(values: list[Any], name: str) -> Any:
    """One field of all examples as a batch."""
    first = values[0]
    if isinstance(first, np.ndarray):
        return _stacked(values, name)
    if isinstance(first, (str, bytes)):
        return values
    if isinstance(first, _NUMBERS) and not isinstance(first, np.generic):
        return _of_numbers(values, name)
    if first is None or any(value is None for value in values):
        return _absent(values, name)
    if is_tensor(first):
        return _stacked_tensors(values, name)
    if isinstance(first, list):
        kind = type(_first_element(first, name))
        if issubclass(kind, (*_NUMBERS, np.number, np.bool_)):
            return _of_lists(values, name, kind)
    parts = taken_apart(first)
    if parts is not None:
        return _joined_containers(values, parts, name)
    return _stacked(values, name) if is_array(first) else values


def _absent(values: list[Any], name: str) -> None:
    """None, which all examples have or none."""
    count = sum(value is None for value in values)
    if count < len(values):
        raise OperandTypeError(
            f"{name} is None in {count} of {len(values)} examples",
            hint=_OWN_FUNCTION,
            operation="collate",
        )


def _joined_containers(values: list[Any], first: Parts, name: str) -> Any:
    """Containers with the keys of the first one, as one with the batches of its children."""
    kind, keys, child = values[0].__class__, first.keys, first.child
    for value in values:
        if value.__class__ is not kind or not _has_keys(value, keys):
            raise OperandTypeError(
                f"{name} is {_described(values[0])} in one example and {_described(value)} in "
                "another",
                hint=_OWN_FUNCTION,
                operation="collate",
            )
    return first.rebuild(
        [_joined([child(value, key) for value in values], first.name(name, key)) for key in keys]
    )


def _has_keys(x: Any, keys: list[Any]) -> bool:
    """Whether a container of the class of another one has its keys, in any order."""
    if isinstance(x, Mapping):
        return len(x) == len(keys) and all(key in x for key in keys)
    return not isinstance(x, (tuple, list)) or len(x) == len(keys)


def _described(x: Any) -> str:
    if isinstance(x, (tuple, list)):
        return f"a {type(x).__name__} of {len(x)}"
    if isinstance(x, Mapping):
        return f"a {type(x).__name__} of {', '.join(map(repr, x)) or 'nothing'}"
    return f"of type {type(x).__name__}"


def _stacked(values: list[Any], name: str) -> Any:
    """Arrays of one shape along a new first axis."""
    arrays = values
    kinds = set(map(type, values))
    if kinds != {np.ndarray}:
        is_of_one_kind = len(kinds) == 1 and not isinstance(values[0], (np.ndarray, np.generic))
        try:
            arrays = [(as_array if is_of_one_kind else _array)(value) for value in values]
        except BurnError as error:
            error.operation = f"collate: {name}"
            raise
        if any(map(is_tensor, arrays)):  # on a device that the host cannot read
            return _stacked_tensors(arrays, name)
    shape, dtypes = arrays[0].shape, {array.dtype for array in arrays}
    for array in arrays:
        if array.shape != shape:
            raise _ragged(name, shape, array.shape)
    dtype = dtypes.pop() if len(dtypes) == 1 else _common_dtype(values, arrays, name)
    batch = np.empty((len(arrays), *shape), dtype)
    for index, array in enumerate(arrays):
        batch[index] = array
    return batch


def _array(x: Any) -> Any:
    """A value of a field of arrays as an array."""
    if isinstance(x, np.ndarray):
        check_unmasked(x)
        return x
    if isinstance(x, (np.generic, *_NUMBERS)):
        return np.asarray(x)
    if is_tensor(x):
        return x
    if not is_array(x):
        raise OperandTypeError(
            f"an array in one example and an object of type {type(x).__name__} in another",
            hint=_OWN_FUNCTION,
        )
    return as_array(x)


def _common_dtype(values: list[Any], arrays: list[npt.NDArray[Any]], name: str) -> np.dtype[Any]:
    """The dtype to which NumPy promotes those of all examples; Python numbers have none."""
    pairs = list(zip(values, arrays, strict=True))
    dtypes = {array.dtype for value, array in pairs if type(value) not in _NUMBERS}
    numbers = {type(value) for value, _ in pairs if type(value) in _NUMBERS}
    try:
        return np.result_type(*dtypes, *[kind(0) for kind in numbers])
    except TypeError as error:
        raise OperandTypeError(f"{name}: {error}", operation="collate") from None


def _ragged(name: str, shape: Any, other: Any) -> ShapeError:
    return ShapeError(
        f"{name} has shape {tuple(shape)} in one example and {tuple(other)} in another",
        hint=f"Pad or cut them to one shape in the dataset. {_OWN_FUNCTION}",
        operation="collate",
    )


def _stacked_tensors(values: list[Any], name: str) -> Any:
    """Tensors along a new first axis, on their device."""
    from burn.functions.creation import asarray
    from burn.functions.manipulation import stack

    tensors = [asarray(value) for value in values]
    for tensor in tensors:
        if tensor.shape != tensors[0].shape:
            raise _ragged(name, tensors[0].shape, tensor.shape)
    return stack(tensors)


def _of_numbers(values: list[Any], name: str) -> Any:
    """Python numbers as an array of the widest dtype of their kind."""
    types = set(map(type, values))
    if types.issubset(_NUMBERS):
        return _numbers_array(values, max(types, key=_NUMBERS.index), name)
    if any(value is None for value in values):
        return _absent(values, name)
    if all(issubclass(kind, _NUMBERS) and not issubclass(kind, np.generic) for kind in types):
        return _of_numbers([_plain(value) for value in values], name)  # such as of an IntEnum
    return _stacked(values, name)


def _plain(number: Any) -> Any:
    """A number of a subclass as one of the class."""
    kind: Any = next(kind for kind in _NUMBERS if isinstance(number, kind))
    return kind(number)


def _numbers_array(values: Any, kind: type, name: str) -> npt.NDArray[Any]:
    """An array of (lists of) Python numbers of a kind."""
    if kind is not int:
        return np.array(values, dtype=kind).view(Numbers)
    for dtype in (np.int64, np.uint64):
        try:
            return np.array(values, dtype=dtype).view(Numbers)
        except OverflowError:
            continue
    raise ScalarRangeError(f"no integer dtype holds the numbers of {name}", operation="collate")


def _first_element(values: list[Any], name: str) -> Any:
    """The first element of nested lists; 0.0 of an empty one, which NumPy makes floats."""
    first: Any = values
    for _ in range(_MAX_DEPTH):
        if not isinstance(first, list):
            return first
        first = first[0] if first else 0.0
    raise ShapeError(
        f"{name} has lists that are nested more than {_MAX_DEPTH} deep",
        hint="A list may not contain itself",
        operation="collate",
    )


def _of_lists(values: list[Any], name: str, kind: type) -> npt.NDArray[Any]:
    """Lists of numbers, such as tokens, as an array with a row for each."""
    arrays = []
    for value in values:
        try:
            array = np.array(value)
        except ValueError:
            raise ShapeError(
                f"{name} has lists of different lengths in one example",
                hint=_OWN_FUNCTION,
                operation="collate",
            ) from None
        if not isinstance(value, list) or array.dtype.kind not in "biufc":
            is_list = isinstance(value, list)
            found = "a list of something else" if is_list else type(value).__name__
            raise OperandTypeError(
                f"{name} is a list of numbers in one example, and in another it is {found}",
                hint=_OWN_FUNCTION,
                operation="collate",
            )
        arrays.append(array)
    batch: npt.NDArray[Any] = _stacked(arrays, name)
    return batch if issubclass(kind, np.generic) else batch.view(Numbers)
