"""Sums that grow on a device, without rounding errors that grow with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.devices import VMAP, outside_of_traces
from burn.dispatch import DispatchTensor, join_trace
from burn.dtype import DType, float32, float64, int32, int64
from burn.errors import AutodiffError
from burn.functions.creation import asarray
from burn.functions.statistical import sum as sum_of
from burn.tensor_data import TensorData

if TYPE_CHECKING:
    from burn.devices import Device
    from burn.tensor.tensor import Tensor

__all__ = ["Sum", "device_of", "plain", "precise", "total", "widened"]

_LOW_BITS: Final = 24
"""Bits of the low part of an integer sum in two parts; the rest of its 31 bits takes amounts."""


class Sum:
    """The sum of tensors of one shape, on their device.

    Floats are added in float64 and integers in int64. A device without such a dtype keeps two
    tensors of half its width: of floats the sum and its rounding error (Knuth, The Art of Computer
    Programming, volume 2, section 4.2.2, theorem B), of integers the high and the low bits.

    Parameters
    ----------
    first : np.ndarray
        float64 or int64: where the sum begins.
    device : Device
        Hardware, without layers.
    """

    def __init__(self, first: np.ndarray[Any, Any], device: Device) -> None:
        self.is_float = first.dtype.kind == "f"
        self.shape = first.shape
        self.device = device
        self._is_whole = device.supports_dtype(float64 if self.is_float else int64)
        with outside_of_traces():
            self._parts = self._parts_of(first)

    @property
    def dtype(self) -> DType:
        """In which amounts are added."""
        if self._is_whole:
            return float64 if self.is_float else int64
        return float32 if self.is_float else int32

    def add(self, amount: Tensor | float) -> None:
        """Add a tensor of the shape of the sum, on its device without layers; or a number."""
        for part in self._parts:
            join_trace(part)
        if isinstance(amount, DispatchTensor):
            amount = amount.astype(self.dtype)
        high = self._parts[0]
        grown = high + amount
        if self._is_whole:
            high.assign(grown)
        elif self.is_float:
            rounded = grown - high
            error = (high - (grown - rounded)) + (amount - rounded)
            self._parts[1].assign(self._parts[1] + error)
            high.assign(grown)
        else:
            low = self._parts[1] + amount
            carry = low >> _LOW_BITS
            self._parts[1].assign(low - (carry << _LOW_BITS))
            high.assign(high + carry)

    def begin(self, first: np.ndarray[Any, Any]) -> None:
        """Go on from other values. Compiled functions know the tensors, which stay the same."""
        for part, value in zip(self._parts, self._parts_of(first), strict=True):
            part.assign(value)

    @property
    def parts(self) -> list[Tensor]:
        """What `value` takes when it has been read."""
        return self._parts

    def value(self, parts: list[TensorData]) -> np.ndarray[Any, Any]:
        """The sum, as float64 or int64, of its parts that were read."""
        high, *rest = [np.asarray(part.array) for part in parts]
        if not rest:
            return np.array(high)
        if not self.is_float:
            return np.asarray((high.astype(np.int64) << _LOW_BITS) + rest[0])
        error = np.where(np.isfinite(high), rest[0], 0.0)  # of infinity it is NaN
        return np.asarray(high.astype(np.float64) + error)

    def _parts_of(self, value: np.ndarray[Any, Any]) -> list[Tensor]:
        """Tensors that stand for a value."""
        if self._is_whole:
            arrays = [value]
        elif self.is_float:
            high = value.astype(np.float32)
            with np.errstate(invalid="ignore"):
                arrays = [high, np.where(np.isfinite(high), value - high, 0.0)]
        else:
            high = value >> _LOW_BITS
            arrays = [high, value - (high << _LOW_BITS)]
        return [asarray(one, dtype=self.dtype, device=self.device, copy=True) for one in arrays]


def device_of(x: Tensor) -> Device:
    """The hardware that the values of a tensor are on, outside of traces."""
    return x.device.untraced.hardware


def plain(x: Tensor, operation: str) -> Tensor:
    """The value of a tensor, without the layers of its device.

    Raises
    ------
    AutodiffError
        Inside of `burn.vmap`, where each example has a value of its own.
    """
    if VMAP in x.device.layers:
        raise AutodiffError(
            "a metric cannot be updated inside burn.vmap, where each example has values of its own",
            hint="Return the values, and update the metric with them after vmap",
            operation=operation,
        )
    while x.device.layers:
        x = x.detach().inner()
    return x


def total(x: Tensor) -> Tensor:
    """The sum of all elements: float64 of float64, float32 of other floats, else an integer."""
    if x.dtype.is_float:
        return sum_of(x, dtype=x.dtype if x.dtype is float64 else float32)
    return sum_of(x, dtype=x.device.settings.int_dtype)


def widened(x: Tensor) -> Tensor:
    """In the widest float dtype of its device, in which floats are added up."""
    return x.astype(float64 if device_of(x).supports_dtype(float64) else float32)


def precise(x: Tensor) -> Tensor:
    """In float32 at least: floats of 16 bits would lose what is added to them."""
    if not x.dtype.is_float:
        return widened(x)
    return x if x.dtype.itemsize >= float32.itemsize else x.astype(float32)
