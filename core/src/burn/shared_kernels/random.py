"""Random numbers: Philox and the distribution in one kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from burn.aliases import Primitive, Shape
from burn.device_id import DeviceId
from burn.dtype import DType, float32, float64
from burn.ops import UNIFORM_BITS, largest_below, philox_state, signed_word
from burn.shared_kernels.elements import DTYPE_CODES, c_type_of, signed_scalar_bits
from burn.shared_kernels.launching import SharedOps

__all__ = ["RandomOps"]

_WORD_VALUES: Final = 1 << 32


class RandomOps(SharedOps):
    """Random numbers; a work item draws four."""

    def random_bits(
        self, *, seed: int, offset: int, count: int, dtype: DType, device: DeviceId
    ) -> Primitive:
        """Words of Philox."""
        del device
        out = self.launcher.new((count,), dtype)
        definitions = {"WORDS_PER_NUMBER": 1}
        numbers = (0, 0, 0, 0)
        self._draw("random_words", out, dtype, (seed, offset), numbers, "ulong", definitions)
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
    ) -> Primitive:
        """Words and numbers in one kernel."""
        del device
        out = self.launcher.new(shape, dtype)
        numbers = [0, 0, 0, 0]
        if (low, high) != (0.0, 1.0):
            limits = (low, high - low, largest_below(high, low, dtype))
            numbers = [*[signed_scalar_bits(limit, dtype) for limit in limits], 1]
        definitions = {"WIDTH": UNIFORM_BITS[dtype]}
        self._draw("random_uniform", out, dtype, (seed, offset), numbers, "", definitions)
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
    ) -> Primitive:
        """Pairs by the Box-Muller transform; 16-bit floats from uniform numbers of float32."""
        del device
        out = self.launcher.new(shape, dtype)
        wide = dtype if dtype is float64 else float32
        count = math.prod(shape)
        numbers = (signed_scalar_bits(mean, wide), signed_scalar_bits(std, wide), 0, count)
        definitions = {"WIDTH": UNIFORM_BITS[wide]}
        pairs = -(-count // 2)
        self._draw("random_normal", out, dtype, (seed, offset), numbers, "", definitions, pairs)
        return out

    def random_integers(
        self, *, shape: Shape, low: int, high: int, seed: int, offset: int, dtype: DType,
        device: DeviceId,
    ) -> Primitive:  # fmt: skip
        """Words and numbers in one kernel."""
        del device
        out = self.launcher.new(shape, dtype)
        span = high - low
        numbers = (signed_word(low), signed_word(span), 0, int(not span >> 64))
        definitions = {"WORDS_PER_NUMBER": 1 if span <= _WORD_VALUES else 2}
        self._draw("random_integers", out, dtype, (seed, offset), numbers, "ulong", definitions)
        return out

    def random_state(self, seed: int, offset: int) -> tuple[int, int, int, int]:
        """The state of Philox as integers, and the address of what the device adds to it, or 0."""
        return *philox_state(seed, offset), 0

    def _draw(
        self,
        entry: str,
        out: Primitive,
        dtype: DType,
        state: tuple[int, int],
        numbers: Sequence[int],
        c_type: str,
        definitions: dict[str, Any],
        count: int | None = None,
    ) -> None:
        """Launch a kernel for some numbers, by default all of the result."""
        launcher = self.launcher
        if count is None:
            count = math.prod(out.shape)
        c_type, code = c_type or c_type_of(dtype), DTYPE_CODES[dtype.name]
        kernel = launcher.shared_kernel(entry, "random.c", c_type, definitions, {"TYPE": code})
        parameters = (count, *self.random_state(*state), *numbers, code)
        launcher.start(kernel, parameters, (out,), -(-count // 4))
