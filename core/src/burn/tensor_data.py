"""TensorData: values on the host, as they enter and leave a backend."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.dtype import DType
from burn.errors import ArgumentError, OperandTypeError, ShapeError

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["TensorData", "check_unmasked"]


def __dir__() -> list[str]:
    return __all__


def check_unmasked(values: object) -> None:
    """Check that a NumPy array has no masked elements, which a tensor cannot represent.

    Raises
    ------
    ArgumentError
        If an element is masked.
    """
    masked = sys.modules.get("numpy.ma")  # NumPy imports it lazily; without it no array is masked
    if masked is not None and isinstance(values, masked.MaskedArray) and masked.is_masked(values):
        raise ArgumentError(
            "a tensor has no mask, and elements of this array are masked",
            hint="Call .filled(value), or pass .data and keep .mask as a tensor of its own",
        )


class TensorData:
    """Values on the host.

    Parameters
    ----------
    array : numpy.ndarray
        The values. They are shared, not copied, if they have the native byte order.

    Attributes
    ----------
    array : numpy.ndarray
        The values.
    dtype : DType
        Their dtype.
    """

    __slots__ = ("array", "dtype")

    def __init__(self, array: npt.NDArray[Any]) -> None:
        if array.__class__ is not np.ndarray:
            check_unmasked(array)
        self.dtype = dtype = DType.of(array.dtype)
        if array.dtype is not dtype.numpy:  # NumPy has several names for a dtype, such as longlong
            native = dtype.numpy
            array = array.view(native) if array.dtype.isnative else array.astype(native)
        self.array = array

    @classmethod
    def of(cls, values: object, dtype: DType | None = None) -> TensorData:
        """Host data from nested sequences, numbers, or anything NumPy reads.

        Parameters
        ----------
        values : object
            A number, a nested sequence of numbers, or an array on the host.
        dtype : DType, optional
            The dtype to convert to. By default that which NumPy chooses.

        Raises
        ------
        ShapeError
            If nested sequences are ragged.
        OperandTypeError
            If an element is neither a number nor a boolean.
        ArgumentError
            If an array has masked elements.
        OverflowError
            If a number does not fit `dtype`.
        """
        check_unmasked(values)
        try:
            array = np.asarray(values, dtype=None if dtype is None else dtype.numpy)
        except OverflowError:
            raise
        except ValueError as error:
            raise ShapeError(
                f"cannot make a tensor of {type(values).__name__}: {error}",
                hint="Nested sequences must have the same length at every level",
            ) from None
        except TypeError as error:
            raise OperandTypeError(
                f"cannot make a tensor of {type(values).__name__}: {error}"
            ) from None
        if array.dtype.kind not in "biufcV":
            raise OperandTypeError(
                f"cannot make a tensor of {type(values).__name__} with elements of {array.dtype}",
                hint="A tensor holds numbers or booleans",
            )
        return cls(array)

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return self.array.shape

    def __repr__(self) -> str:
        return f"TensorData(shape={self.shape}, dtype={self.dtype})"
