"""Random numbers: Philox in a kernel, a block of four words for each item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from burn.dtype import DType, bfloat16, float16, float32, float64
from burn.ops.random import UNIFORM_BITS, largest_below, philox_state, signed_word
from burn_opencl.bits import signed_bits
from burn_opencl.buffers import Buffer
from burn_opencl.expressions import CODES, class_of

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.device_id import DeviceId
    from burn_opencl.launcher import Launcher

__all__ = ["RandomOps"]

_WORDS: Final = 1 << 32
_EACH: Final = {float16: 4, bfloat16: 4, float32: 4, float64: 2}
"""Numbers that a block of four words makes."""


class RandomOps:
    """Random numbers, each kind in one kernel."""

    launcher: Launcher

    def random_bits(
        self, *, seed: int, offset: int, count: int, dtype: DType, device: DeviceId
    ) -> Buffer:
        """Words of Philox."""
        del device
        out = self.launcher.empty((count,), dtype)
        kernel = self.launcher.kernel("random_words", "random.cl", "ulong")
        self._draw(kernel, out, seed, offset, count, 4, (0, 0, 0, 0))
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
    ) -> Buffer:
        """Words and numbers in one pass."""
        del device
        scales = (low, high) != (0.0, 1.0)
        launcher = self.launcher
        out = launcher.empty(shape, dtype)
        largest = largest_below(high, low, dtype) if scales else 1.0
        numbers = [signed_bits(one, dtype) for one in (low, high - low, largest)]
        kernel = self._floating("random_uniform", dtype, UNIFORM_BITS[dtype])
        self._draw(kernel, out, seed, offset, out.size, _EACH[dtype], (*numbers, int(scales)))
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
    ) -> Buffer:
        """Words and numbers in one pass; those of 16 bits are made of uniform ones of float32."""
        del device
        out = self.launcher.empty(shape, dtype)
        wide = dtype if dtype is float64 else float32
        kernel = self._floating("random_normal", dtype, UNIFORM_BITS[wide])
        numbers = (signed_bits(mean, wide), signed_bits(std, wide), 0, out.size)
        self._draw(kernel, out, seed, offset, -(-out.size // 2), _EACH[dtype], numbers)
        return out

    def random_integers(
        self, *, shape: Shape, low: int, high: int, seed: int, offset: int, dtype: DType,
        device: DeviceId,
    ) -> Buffer:  # fmt: skip
        """Words and numbers in one pass."""
        del device
        out = self.launcher.empty(shape, dtype)
        span = high - low
        words = 1 if span <= _WORDS else 2
        numbers = (signed_word(low), signed_word(span), 0, 0 if span >> 64 else words)
        kernel = self.launcher.kernel("random_integers", "random.cl", "ulong")
        self._draw(kernel, out, seed, offset, out.size, 4 // words, numbers)
        return out

    def _floating(self, name: str, dtype: DType, bits: int) -> Any:
        definitions: dict[str, str | int] = {"UNIFORM": 1, "BITS": bits}
        return self.launcher.kernel(name, "random.cl", class_of(dtype), definitions)

    def _draw(
        self, kernel: Any, out: Buffer, seed: int, offset: int, count: int, each: int, numbers: Any
    ) -> None:
        state = (count, *philox_state(seed, offset))
        parameters = (*state, *numbers, CODES[out.dtype.name])
        self.launcher.run(kernel, -(-count // each), parameters, (out.memory,))
