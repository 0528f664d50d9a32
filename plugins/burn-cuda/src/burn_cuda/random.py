"""Random numbers: Philox in a kernel, one block of four words for each thread."""

from __future__ import annotations

import math
from typing import Any, Final

from burn.plugin_api import (
    UNIFORM_BITS,
    DeviceId,
    DType,
    Shape,
    float32,
    float64,
    largest_below,
    philox_state,
)
from burn_cuda.base import Array, CudaOps
from burn_cuda.kernels import c_type

__all__ = ["DrawnNumber", "RandomOps"]


class DrawnNumber:
    """The seed, or the offset, of a program: the device reads it, so that each run has its own.

    Parameters
    ----------
    address : int
        Where the device has what `philox_state` gives for the run.
    plus : int
        What is added to the offset here.
    """

    __slots__ = ("address", "plus")

    def __init__(self, address: int, plus: int = 0) -> None:
        self.address: Final = address
        self.plus: Final = plus

    def __add__(self, other: int) -> DrawnNumber:
        return DrawnNumber(self.address, self.plus + other)


def _state(seed: int | DrawnNumber, offset: int | DrawnNumber) -> tuple[int, int, int, int]:
    """What a kernel gets for a seed and an offset: numbers, and the address of what is added."""
    if isinstance(seed, int) and isinstance(offset, int):
        return *philox_state(seed, offset), 0
    drawn: Any = offset  # so is the seed
    return *philox_state(0, drawn.plus), drawn.address


class RandomOps(CudaOps):
    """Random numbers."""

    def random_bits(
        self, *, seed: int, offset: int, count: int, dtype: DType, device: DeviceId
    ) -> Array:
        """Words of Philox."""
        del device
        launcher = self.launcher
        out = launcher.empty((count,), dtype.numpy)
        kernel = launcher.kernel("random_words", "random.cu")
        launcher.run(kernel, -(-count // 4), out, *_state(seed, offset), count)
        return out

    def random_uniform(
        self,
        *,
        shape: Shape,
        low: float,
        high: float,
        seed: int,
        offset: int,
        dtype: DType,
        device: DeviceId,
    ) -> Array:
        """One kernel for words and numbers."""
        del device
        launcher = self.launcher
        count = math.prod(shape)
        out = launcher.empty(shape, dtype.numpy)
        scales = (low, high) != (0.0, 1.0)
        largest = largest_below(high, low, dtype) if scales else 1.0
        kernel = self._random_kernel("random_uniform", dtype)
        each = 2 if dtype is float64 else 4
        numbers = (float(low), float(high - low), float(largest), int(scales))
        launcher.run(kernel, -(-count // each), out, *_state(seed, offset), *numbers, count)
        return out

    def random_normal(
        self,
        *,
        shape: Shape,
        mean: float,
        std: float,
        seed: int,
        offset: int,
        dtype: DType,
        device: DeviceId,
    ) -> Array:
        """One kernel for words and numbers."""
        del device
        launcher = self.launcher
        count = math.prod(shape)
        out = launcher.empty(shape, dtype.numpy)
        numbers = (*_state(seed, offset), float(mean), float(std))
        half, each = -(-count // 2), 2 if dtype is float64 else 4
        kernel = self._random_kernel("random_normal", dtype)
        launcher.run(kernel, -(-half // each), out, *numbers, half, count)
        return out

    def _random_kernel(self, name: str, dtype: DType) -> Any:
        # Normal numbers of 16 bits are rounded from float32.
        wide = float32 if name != "random_uniform" and dtype.itemsize < 4 else dtype
        return self.launcher.kernel(name, "random.cu", T=c_type(dtype), WIDTH=UNIFORM_BITS[wide])
