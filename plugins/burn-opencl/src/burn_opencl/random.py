"""Random parameters by Philox; an item computes a block of four words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from burn.plugin_api import (
    UNIFORM_BITS,
    DType,
    bfloat16,
    float16,
    float32,
    float64,
    largest_below,
    philox_state,
    signed_word,
)
from burn_opencl.base import OpenClOps
from burn_opencl.buffers import Buffer
from burn_opencl.dtypes import DTYPE_CODES, c_type_of
from burn_opencl.scalars import signed_scalar_bits

if TYPE_CHECKING:
    from burn.plugin_api import DeviceId, Shape

__all__ = ["RandomOps"]

_WORD_VALUES: Final = 1 << 32
_NUMBERS_PER_BLOCK: Final = {float16: 4, bfloat16: 4, float32: 4, float64: 2}


class RandomOps(OpenClOps):
    """Random parameters, each distribution in one kernel."""

    def random_bits(
        self, *, seed: int, offset: int, count: int, dtype: DType, device: DeviceId
    ) -> Buffer:
        """The words of Philox."""
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
        """Computed in one kernel."""
        del device
        scales = (low, high) != (0.0, 1.0)
        launcher = self.launcher
        out = launcher.empty(shape, dtype)
        largest = largest_below(high, low, dtype) if scales else 1.0
        parameters = [signed_scalar_bits(number, dtype) for number in (low, high - low, largest)]
        kernel = self._floating("random_uniform", dtype, UNIFORM_BITS[dtype])
        self._draw(
            kernel,
            out,
            seed,
            offset,
            out.size,
            _NUMBERS_PER_BLOCK[dtype],
            (*parameters, int(scales)),
        )
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
        """Pairs by the Box-Muller transform; 16-bit floats from uniform parameters of float32."""
        del device
        out = self.launcher.empty(shape, dtype)
        wide = dtype if dtype is float64 else float32
        kernel = self._floating("random_normal", dtype, UNIFORM_BITS[wide])
        parameters = (signed_scalar_bits(mean, wide), signed_scalar_bits(std, wide), 0, out.size)
        self._draw(
            kernel, out, seed, offset, -(-out.size // 2), _NUMBERS_PER_BLOCK[dtype], parameters
        )
        return out

    def random_integers(
        self, *, shape: Shape, low: int, high: int, seed: int, offset: int, dtype: DType,
        device: DeviceId,
    ) -> Buffer:  # fmt: skip
        """Computed in one kernel."""
        del device
        out = self.launcher.empty(shape, dtype)
        span = high - low
        words = 1 if span <= _WORD_VALUES else 2
        parameters = (signed_word(low), signed_word(span), 0, 0 if span >> 64 else words)
        kernel = self.launcher.kernel("random_integers", "random.cl", "ulong")
        self._draw(kernel, out, seed, offset, out.size, 4 // words, parameters)
        return out

    def _floating(self, name: str, dtype: DType, bits: int) -> Any:
        definitions: dict[str, str | int] = {"UNIFORM": 1, "BITS": bits}
        return self.launcher.kernel(name, "random.cl", c_type_of(dtype), definitions)

    def _draw(
        self,
        kernel: Any,
        out: Buffer,
        seed: int,
        offset: int,
        count: int,
        per_item: int,
        parameters: Any,
    ) -> None:
        state = (count, *philox_state(seed, offset))
        parameters = (*state, *parameters, DTYPE_CODES[out.dtype.name])
        self.launcher.run(kernel, -(-count // per_item), parameters, (out.memory,))
