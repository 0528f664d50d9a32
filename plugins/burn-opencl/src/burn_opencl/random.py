"""Random numbers: Philox in a kernel, a block of four words for each item."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from burn.dtype import DType, float16, float64
from burn.ops import REGISTRY, OpTable
from burn.ops.random import UNIFORM_BITS, largest_below
from burn_opencl.bits import signed_bits
from burn_opencl.buffers import Buffer
from burn_opencl.expressions import CODES, class_of

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.device_id import DeviceId
    from burn_opencl.launcher import Launcher

__all__ = ["RandomOps"]

_HALF: Final = 1 << 63
_FULL: Final = 1 << 64


def _signed(number: int) -> int:
    """The integer of 64 bits that has the lowest bits of a number."""
    number %= _FULL
    return number - _FULL if number >= _HALF else number


class RandomOps:
    """Random words and uniform numbers, of which the others are made."""

    launcher: Launcher
    table: OpTable

    def random_bits(
        self, *, seed: int, offset: int, count: int, dtype: DType, device: DeviceId
    ) -> Buffer:
        """Words of Philox."""
        del device
        out = self.launcher.empty((count,), dtype)
        kernel = self.launcher.kernel("random_words", "random.cl", "ulong")
        self._draw(kernel, out, seed, offset, 4, (0, 0, 0, 0))
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
        scales = (low, high) != (0.0, 1.0)
        if dtype is float16 and scales:
            # Products and sums are rounded on the way, which the default does.
            default: Any = REGISTRY["random_uniform"].default
            attributes = {"shape": shape, "low": low, "high": high, "dtype": dtype}
            return default(self.table, seed=seed, offset=offset, **attributes)  # type: ignore[no-any-return]  # a Buffer
        del device
        launcher = self.launcher
        out = launcher.empty(shape, dtype)
        largest = largest_below(high, low, dtype) if scales else 1.0
        numbers = [signed_bits(one, dtype) for one in (low, high - low, largest)]
        definitions: dict[str, str | int] = {"UNIFORM": 1, "BITS": UNIFORM_BITS[dtype]}
        kernel = launcher.kernel("random_uniform", "random.cl", class_of(dtype), definitions)
        each = 2 if dtype is float64 else 4
        self._draw(kernel, out, seed, offset, each, (*numbers, int(scales)))
        return out

    def _draw(
        self, kernel: Any, out: Buffer, seed: int, offset: int, each: int, numbers: Any
    ) -> None:
        count = math.prod(out.shape)
        state = (count, _signed(seed), _signed(offset), _signed(offset >> 64))
        parameters = (*state, *numbers, CODES[out.dtype.name])
        self.launcher.run(kernel, -(-count // each), parameters, (out.memory,))
