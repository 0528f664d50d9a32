"""Sums that grow on a device, without rounding errors that grow with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.devices import VMAP, outside_of_traces, running_trace
from burn.dispatch import join_trace
from burn.dtype import DType, float32, float64, int32, int64
from burn.errors import AutodiffError
from burn.functions.common import dispatch
from burn.functions.creation import asarray
from burn.functions.statistical import sum as sum_of
from burn.tensor.tensor import Tensor
from burn.tensor_data import TensorData

if TYPE_CHECKING:
    from burn.devices import Device

__all__ = ["Sum", "device_of", "plain", "precise", "total", "widened"]

_LOW_BITS: Final = 24
"""Bits of the low part of an integer sum in two parts; the rest of its 31 bits takes amounts."""


class Sum:
    """The sum of tensors of one shape on their device, or of numbers on the host.

    Floats are added in float64 and integers in int64. A device without such a dtype keeps two
    tensors of half its width: of floats the sum and its rounding error (Knuth, The Art of Computer
    Programming, volume 2, section 4.2.2, theorem B), of integers the high and the low bits.

    Parameters
    ----------
    first : NumPy array
        float64 or int64: where the sum begins.

    Attributes
    ----------
    device : Device or None
        The hardware that it is on, from the first tensor on.
    parts : list of Tensor
        What is on the device: `value` takes what was read of them.
    """

    def __init__(self, first: np.ndarray[Any, Any]) -> None:
        self.shape = first.shape
        self.is_float = first.dtype.kind == "f"
        self.device: Device | None = None
        self.parts: list[Tensor] = []
        self._dtype: DType = float64
        self._on_host = first if self.shape else first.item()

    def add(self, amount: Tensor | float) -> None:
        """Add a tensor of the shape of the sum, without layers; or a number."""
        trace = running_trace()
        if not isinstance(amount, Tensor):
            if trace is not None:
                trace.after_call(lambda: self.add(amount))
                return
            if self.device is None:
                self._on_host += amount
                return
        else:
            self._follow(device_of(amount))
            amount = amount.astype(self._dtype)
            if trace is not None:
                parts = self.parts
                trace.watch(lambda: self.parts is parts)
        high, *low = self.parts
        if not low:
            high.assign(high + amount)
        elif self.is_float:
            grown = high + amount
            rounded = grown - high
            error = (high - (grown - rounded)) + (amount - rounded)
            low[0].assign(low[0] + error)
            high.assign(grown)
        else:
            bits = low[0] + amount
            carry = bits >> _LOW_BITS
            low[0].assign(bits - (carry << _LOW_BITS))
            high.assign(high + carry)

    def begin(self, first: np.ndarray[Any, Any]) -> None:
        """Go on from other values. Compiled functions know the tensors, which stay the same."""
        self._on_host = first if self.shape else first.item()
        if self.device is not None:
            for part, value in zip(self.parts, self._parts_of(first, self.device), strict=True):
                part.assign(value)

    def value(self, read: list[TensorData]) -> np.ndarray[Any, Any]:
        """The sum, as float64 or int64, from what was read of its parts."""
        if self.device is None:
            return np.array(self._on_host, np.float64 if self.is_float else np.int64)
        high, *low = [np.asarray(part.array) for part in read]
        if not low:
            return np.array(high)
        if not self.is_float:
            return np.asarray((high.astype(np.int64) << _LOW_BITS) + low[0])
        error = np.where(np.isfinite(high), low[0], 0.0)  # of infinity it is NaN
        return np.asarray(high.astype(np.float64) + error)

    def _follow(self, device: Device) -> None:
        """Bring the sum to the device of what is added."""
        if self.device is not device:
            with outside_of_traces():
                value = self.value(dispatch.read_all(self.parts) if self.parts else [])
                wide, narrow = (float64, float32) if self.is_float else (int64, int32)
                self._dtype = wide if device.supports_dtype(wide) else narrow
                self.parts = self._parts_of(value, device)
            self.device = device
        for part in self.parts:
            join_trace(part)

    def _parts_of(self, value: np.ndarray[Any, Any], device: Device) -> list[Tensor]:
        """Tensors that stand for a value on a device."""
        if self._dtype in (float64, int64):
            arrays = [value]
        elif self.is_float:
            rounded = value.astype(np.float32)
            with np.errstate(invalid="ignore"):
                arrays = [rounded, np.where(np.isfinite(rounded), value - rounded, 0.0)]
        else:
            carry = value >> _LOW_BITS
            arrays = [carry, value - (carry << _LOW_BITS)]
        return [asarray(array, dtype=self._dtype, device=device, copy=True) for array in arrays]


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
