"""Datasets: rows of arrays, windows of an array, and datasets made of other datasets."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.data._rows import Rows, as_array, as_list, is_array, is_tensor, row
from burn.errors import ArgumentError, AxisError, OperandTypeError, ShapeError
from burn.tensor_data import check_unmasked

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Arrays", "Concatenated", "Mapped", "Subset", "Windows"]


class _Dataset:
    """Base of the datasets of this package, which are sequences of examples."""

    def __len__(self) -> int:
        raise NotImplementedError

    def _example(self, index: int) -> Any:
        """The example with an index from 0."""
        raise NotImplementedError

    def _examples(self, indices: npt.NDArray[np.intp]) -> Sequence[Any]:
        """The examples with indices from 0."""
        return [self._example(index) for index in indices.tolist()]

    def __getitem__(self, index: Any) -> Any:
        length = len(self)
        if isinstance(index, slice):
            return Subset(self, range(*index.indices(length)))
        number: int = index if index.__class__ is int else _integer(index, "index", self)
        if not -length <= number < length:
            raise AxisError(
                f"index {number} is out of range for {length} examples",
                hint=f"Indices are -{length}, …, {length - 1}" if length else "There is none",
                operation=type(self).__name__,
            )
        return self._example(number % length)

    def __getitems__(self, indices: Sequence[int]) -> Sequence[Any]:
        """The examples with some indices, which `collate` joins at once where they are rows."""
        return self._examples(_checked(indices, len(self), type(self).__name__))


def _integer(value: Any, name: str, dataset: _Dataset, *, least: int | None = None) -> int:
    """An argument as an integer."""
    from burn.ops.arguments import as_integer  # imports the ops, which workers do without

    return as_integer(value, name, type(dataset).__name__, least=least)


def _checked(indices: Any, length: int, operation: str) -> npt.NDArray[np.intp]:
    """Indices as an array, counted from 0."""
    try:
        array = np.asarray(indices)
    except ValueError:  # nested lists of different lengths
        array = np.asarray(indices, dtype=object)
    if array.size == 0:
        return np.zeros(0, np.intp)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise OperandTypeError(
            f"indices are integers in one sequence, got {array.dtype} of shape {array.shape}",
            hint="numpy.flatnonzero() gives those of a mask" if array.dtype == bool else "",
            operation=operation,
        )
    wrong = (array < -length) | (array >= length)
    if wrong.any():
        raise AxisError(
            f"index {array[wrong][0]} is out of range for {length} examples", operation=operation
        )
    array = array.astype(np.intp, copy=False)
    return np.where(array < 0, array + length, array) if array.min() < 0 else array


def checked_dataset(dataset: Any, operation: str) -> Any:
    """A dataset that has a length and examples by index."""
    try:
        len(dataset)
        has_examples = hasattr(dataset, "__getitem__")
    except TypeError:  # of an array without axes, too
        has_examples = False
    if not has_examples:
        raise OperandTypeError(
            f"a dataset has a length and examples by index, and an object of type "
            f"{type(dataset).__name__} has not",
            hint="list(...) makes one of what can only be iterated",
            operation=operation,
        )
    return dataset


def _examples_of(dataset: Any, indices: npt.NDArray[np.intp]) -> Sequence[Any]:
    """Examples of any dataset, at once if it can."""
    chosen = indices.tolist()
    if hasattr(dataset, "__getitems__"):
        return dataset.__getitems__(chosen)  # type: ignore[no-any-return]  # a sequence, as of torch
    return [dataset[index] for index in chosen]


class Arrays(_Dataset):
    """Rows of arrays of one length: example i has element i of each.

    A batch is taken of each array at once, of tensors on their device.

    Parameters
    ----------
    *arrays : array or tensor
        The arrays: of NumPy (also a `numpy.memmap`, of which only the rows of a batch are read), of
        PyTorch, columns of a data frame, or tensors of burn. An example is a tuple of their
        elements, of one array the element itself. One mapping stands for named arrays. A batch has
        a list of the elements of an array of strings or objects.
    **named : array or tensor
        The arrays with names: an example is a dict.

    Raises
    ------
    OperandTypeError
        If an argument is no array: of a list, `numpy.asarray` makes one of the dtype that you say.
    ShapeError
        If an array has no axis, or their lengths differ.
    ArgumentError
        If there is no array, there are both named ones and others, or elements are masked.

    Notes
    -----
    The dtypes of the arrays are those of the batches: NumPy's float64 stays float64.

    Examples
    --------
    >>> import numpy
    >>> from burn.data import Arrays
    >>> data = Arrays(numpy.eye(3), numpy.array([7, 8, 9]))
    >>> len(data), data[2]
    (3, (array([0., 0., 1.]), np.int64(9)))
    >>> Arrays(label=numpy.array([7, 8, 9]))[0]
    {'label': np.int64(7)}
    """

    def __init__(self, *arrays: Any, **named: Any) -> None:
        if len(arrays) == 1 and isinstance(arrays[0], Mapping) and not named:
            named = dict(arrays[0])
            arrays = ()
        if bool(arrays) is bool(named):
            raise ArgumentError(
                "needs arrays, either all with names or all without", operation="Arrays"
            )
        columns = named or {f"arrays[{index}]": array for index, array in enumerate(arrays)}
        columns = {name: _as_column(column, name) for name, column in columns.items()}
        lengths = {name: column.shape[0] for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            found = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            raise ShapeError(
                f"arrays of different lengths: {found}",
                hint="Row i of every array belongs to example i",
                operation="Arrays",
            )
        self._length: int = next(iter(lengths.values()))
        values = tuple(columns.values())
        self._arrays: Any = columns if named else values if len(values) > 1 else values[0]

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return f"Arrays({_described(self._arrays)})"

    def _example(self, index: int) -> Any:
        return row(self._arrays, index)

    def _examples(self, indices: npt.NDArray[np.intp]) -> Rows:
        arrays = self._arrays
        if arrays.__class__ is dict:
            batch: Any = {name: _rows(array, indices) for name, array in arrays.items()}
        elif arrays.__class__ is tuple:
            batch = tuple([_rows(array, indices) for array in arrays])
        else:
            batch = _rows(arrays, indices)
        return Rows(batch, len(indices))


def _as_column(x: Any, name: str, operation: str = "Arrays") -> Any:
    """An array or tensor with at least one axis."""
    if not is_tensor(x):
        if not is_array(x):
            raise OperandTypeError(
                f"{name} is no array but of type {type(x).__name__}",
                hint="numpy.asarray(values, dtype) makes one, with the dtype of the batches",
                operation=operation,
            )
        check_unmasked(x)
        x = as_array(x)
    if not x.shape:
        raise ShapeError(f"{name} has no axis of examples", operation=operation)
    return x


def _rows(array: Any, indices: npt.NDArray[np.intp]) -> Any:
    """Rows of an array as a new array, of strings as a list, of a tensor on its device."""
    if isinstance(array, np.ndarray):
        if array.dtype.kind in "OSTU":
            return array[indices].tolist()
        # `take` is faster, but copies all of an array that is not contiguous.
        if array.__class__ is np.ndarray and array.flags.c_contiguous:
            return array.take(indices, axis=0)
        return np.asarray(array[indices])
    return _taken(array, indices)


def _taken(x: Any, indices: npt.NDArray[np.intp]) -> Any:
    """Rows of a tensor."""
    from burn.data.uploading import upload_one  # imports the ops, which workers do without
    from burn.functions.indexing import take

    native = x.device.settings.int_dtype.numpy
    return take(x, upload_one(indices.astype(native), x.device, owned=True), axis=0)


def _described(arrays: Any) -> str:
    """Arrays by dtype and shape."""
    if arrays.__class__ is dict:
        return ", ".join(f"{name}={_described(array)}" for name, array in arrays.items())
    if arrays.__class__ is tuple:
        return ", ".join(map(_described, arrays))
    return f"{arrays.dtype}{list(arrays.shape)}"


class Subset(_Dataset):
    """The examples of a dataset with some indices, in their order.

    Parameters
    ----------
    dataset : dataset
        Any object with ``__len__`` and ``__getitem__``.
    indices : sequence of int
        Indices of its examples; negative ones count from its end.

    Raises
    ------
    OperandTypeError
        If the dataset has no length or no examples by index, or an index is no integer.
    AxisError
        If an index is out of range.

    Examples
    --------
    >>> from burn.data import Subset
    >>> list(Subset("abcdef", [0, 2, -1]))
    ['a', 'c', 'f']
    """

    def __init__(self, dataset: Any, indices: Iterable[int]) -> None:
        self._dataset = checked_dataset(dataset, "Subset")
        if not isinstance(indices, np.ndarray):
            indices = as_list(indices, "[0, 2] takes the examples 0 and 2", "Subset")
        self._indices = _checked(indices, len(dataset), "Subset")

    def __len__(self) -> int:
        return len(self._indices)

    def __repr__(self) -> str:
        return f"Subset({self._dataset!r}, {len(self)} of {len(self._dataset)})"

    def _example(self, index: int) -> Any:
        return self._dataset[int(self._indices[index])]

    def _examples(self, indices: npt.NDArray[np.intp]) -> Sequence[Any]:
        return _examples_of(self._dataset, self._indices[indices])


class Concatenated(_Dataset):
    """The examples of several datasets, one dataset after the other.

    Parameters
    ----------
    *datasets : dataset
        At least one; each has ``__len__`` and ``__getitem__``.

    Raises
    ------
    ArgumentError
        If there is none.
    OperandTypeError
        If one has no length or no examples by index.

    Examples
    --------
    >>> from burn.data import Concatenated
    >>> list(Concatenated("ab", [1, 2]))
    ['a', 'b', 1, 2]
    """

    def __init__(self, *datasets: Any) -> None:
        if not datasets:
            raise ArgumentError("needs at least one dataset", operation="Concatenated")
        self._datasets = [checked_dataset(dataset, "Concatenated") for dataset in datasets]
        self._ends = list(itertools.accumulate(map(len, datasets)))

    def __len__(self) -> int:
        return self._ends[-1]

    def __repr__(self) -> str:
        return f"Concatenated({', '.join(map(repr, self._datasets))})"

    def _example(self, index: int) -> Any:
        number = bisect.bisect_right(self._ends, index)
        return self._datasets[number][index - (self._ends[number - 1] if number else 0)]

    def _examples(self, indices: npt.NDArray[np.intp]) -> Sequence[Any]:
        numbers = np.searchsorted(self._ends, indices, side="right")
        starts = np.array([0, *self._ends[:-1]])
        result: list[Any] = [None] * len(indices)
        for number in np.unique(numbers):
            chosen = np.flatnonzero(numbers == number)
            found = _examples_of(self._datasets[number], indices[chosen] - starts[number])
            if len(chosen) == len(indices):
                return found
            for index, example in zip(chosen.tolist(), found, strict=True):
                result[index] = example
        return result


class Mapped(_Dataset):
    """The results of a function of each example, computed when they are asked for.

    Parameters
    ----------
    dataset : dataset
        Any object with ``__len__`` and ``__getitem__``.
    function : callable
        Takes an example and returns another. Worker processes need one that can be pickled: a
        function of a module, no lambda. Random numbers for it: `burn.data.rng`.

    Raises
    ------
    OperandTypeError
        If the dataset has no length or no examples by index, or the function is not callable.

    Examples
    --------
    >>> from burn.data import Mapped
    >>> list(Mapped([1, 2, 3], str))
    ['1', '2', '3']
    """

    def __init__(self, dataset: Any, function: Callable[[Any], Any]) -> None:
        self._dataset = checked_dataset(dataset, "Mapped")
        if not callable(function):
            raise OperandTypeError(
                f"needs a function of an example, not an object of type {type(function).__name__}",
                operation="Mapped",
            )
        self._function = function

    def __len__(self) -> int:
        return len(self._dataset)

    def __repr__(self) -> str:
        name = getattr(self._function, "__qualname__", None) or repr(self._function)
        return f"Mapped({self._dataset!r}, {name})"

    def _example(self, index: int) -> Any:
        return self._function(self._dataset[index])

    def _examples(self, indices: npt.NDArray[np.intp]) -> Sequence[Any]:
        return [self._function(example) for example in _examples_of(self._dataset, indices)]


class Windows(_Dataset):
    """Windows of equal length along the first axis of an array: example i begins at ``i * step``.

    For a language model that reads n tokens, take windows of ``n + 1``: inputs are
    ``window[:, :-1]``, and the tokens to predict ``window[:, 1:]``.

    Parameters
    ----------
    array : array or tensor
        As those of `Arrays`; of a `numpy.memmap` only the windows of a batch are read.
    length : int
        Length of each window, at least 1.
    step : int
        How far the next one begins behind, at least 1. With `length` they do not overlap.

    Raises
    ------
    OperandTypeError
        If `array` is no array, or a number no integer.
    ShapeError
        If the array is shorter than a window.
    ArgumentError
        If a number is less than 1.

    Examples
    --------
    >>> import numpy
    >>> from burn.data import Windows
    >>> [one.tolist() for one in Windows(numpy.arange(7), 3, step=2)]
    [[0, 1, 2], [2, 3, 4], [4, 5, 6]]
    """

    def __init__(self, array: Any, length: int, step: int = 1) -> None:
        self._array = _as_column(array, "array", "Windows")
        self._size = _integer(length, "length", self, least=1)
        self._step = _integer(step, "step", self, least=1)
        if self._array.shape[0] < self._size:
            raise ShapeError(
                f"windows of {self._size} of an array of {self._array.shape[0]}",
                hint="Take shorter windows",
                operation="Windows",
            )

    def __len__(self) -> int:
        return int((self._array.shape[0] - self._size) // self._step + 1)

    def __repr__(self) -> str:
        return f"Windows({_described(self._array)}, {self._size}, step={self._step})"

    def _example(self, index: int) -> Any:
        start = index * self._step
        return self._array[start : start + self._size]

    def _examples(self, indices: npt.NDArray[np.intp]) -> Sequence[Any]:
        if isinstance(self._array, np.ndarray):
            return super()._examples(indices)
        rows = indices[:, None] * self._step + np.arange(self._size)
        taken = _taken(self._array, rows.reshape(-1))
        return Rows(taken.reshape((*rows.shape, *self._array.shape[1:])), len(indices))
