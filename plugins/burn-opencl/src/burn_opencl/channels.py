"""Normalization of channels: their moments in parts, which are joined, and then all elements."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from burn.dtype import float32
from burn.ops import OpTable
from burn.ops.indexing import check_same
from burn.ops.normalization import check_channels
from burn_opencl.bits import signed_bits
from burn_opencl.buffers import Buffer, check_dtypes
from burn_opencl.expressions import CODES, class_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from burn_opencl.launcher import Launcher

__all__ = ["ChannelOps"]

_CHUNK: Final = 4096
"""A part of a channel has so many elements at least."""

_GROUP: Final = 256
_LIMIT: Final = 1 << 31
_BYTES: Final = {"float": 4, "double": 8}


class _Plan(NamedTuple):
    """(images, channels, places), and the parts in which a channel is gone through."""

    images: int
    channels: int
    places: int
    parts: int
    chunk: int


class ChannelOps:
    """Batch normalization and its gradient."""

    launcher: Launcher
    table: OpTable

    def batch_norm(
        self,
        x: Buffer,
        gamma: Buffer | None,
        beta: Buffer | None,
        mean: Buffer,
        variance: Buffer,
        *,
        epsilon: float,
    ) -> Buffer:
        """One kernel."""
        check_channels(x.shape, gamma=gamma, beta=beta, mean=mean, variance=variance)
        check_dtypes("batch_norm", x, gamma, beta, mean, variance, floats=True)
        x, mean, variance = self._dense_all(x, mean, variance)
        code = CODES[x.dtype.name]
        return self._normalized_channels(x, gamma, beta, mean, variance, code, epsilon)

    def batch_norm_training(
        self, x: Buffer, gamma: Buffer | None, beta: Buffer | None, *, epsilon: float
    ) -> tuple[Buffer, Buffer, Buffer]:
        """Three kernels."""
        check_channels(x.shape, gamma=gamma, beta=beta)
        check_dtypes("batch_norm", x, gamma, beta, floats=True)
        plan = self._channel_plan(x)
        if plan is None:
            return self.table.decomposed("batch_norm_training", x, gamma, beta, epsilon=epsilon)  # type: ignore[no-any-return]  # Buffers
        launcher = self.launcher
        (x,) = self._dense_all(x)
        numbers = (*plan, CODES[x.dtype.name], 0, x.offset)
        parts, joined = self._channel_statistics(x, plan)
        mean, variance = [launcher.empty((plan.channels,), x.dtype) for _ in range(2)]
        self._run_channels("channel_moments", x, numbers, [x, parts], plan.channels * plan.parts)
        kernel = self._channel_kernel("channel_moments", x, "join_moments")
        outputs = (parts.memory, joined.memory, mean.memory, variance.memory)
        launcher.run(kernel, plan.channels, _padded(numbers), outputs)
        # The elements are normalized by what is not rounded to their dtype.
        exact = joined.viewed((plan.channels,), (1,), 0)
        spread = joined.viewed((plan.channels,), (1,), plan.channels)
        code = CODES[joined.dtype.name]
        output = self._normalized_channels(x, gamma, beta, exact, spread, code, epsilon)
        return output, mean, variance

    def batch_norm_grad(
        self,
        x: Buffer,
        gamma: Buffer | None,
        mean: Buffer,
        variance: Buffer,
        g: Buffer,
        *,
        epsilon: float,
    ) -> tuple[Buffer, Buffer, Buffer]:
        """Three kernels."""
        check_channels(x.shape, gamma=gamma, mean=mean, variance=variance)
        check_same("g", g.shape, x.shape)
        check_dtypes("batch_norm", x, gamma, mean, variance, g, floats=True)
        plan = self._channel_plan(x)
        if plan is None:
            operands = (x, gamma, mean, variance, g)
            return self.table.decomposed("batch_norm_grad", *operands, epsilon=epsilon)  # type: ignore[no-any-return]  # Buffers
        launcher = self.launcher
        x, g, mean, variance = self._dense_all(x, g, mean, variance)
        scale = x if gamma is None else launcher.dense(gamma)
        code = CODES[x.dtype.name]
        numbers = [*plan, code, code, x.offset, g.offset, scale.offset, 0, mean.offset]
        numbers += [variance.offset, _bits(epsilon, x), int(gamma is not None)]
        parts, joined = self._channel_statistics(x, plan)
        to_beta, to_gamma = [launcher.empty((plan.channels,), x.dtype) for _ in range(2)]
        read = [x, g, mean, variance]
        self._run_channels("channel_slopes", x, numbers, [*read, parts], plan.channels * plan.parts)
        kernel = self._channel_kernel("channel_slopes", x, "join_slopes")
        outputs = (parts.memory, joined.memory, to_beta.memory, to_gamma.memory)
        launcher.run(kernel, plan.channels, _padded(numbers), outputs)
        out = launcher.empty(x.shape, x.dtype)
        self._run_channels(
            "channel_gradient", x, numbers, [x, g, scale, mean, variance, joined, out]
        )
        return out, to_gamma, to_beta

    def _normalized_channels(
        self,
        x: Buffer,
        gamma: Buffer | None,
        beta: Buffer | None,
        mean: Buffer,
        variance: Buffer,
        code: int,
        epsilon: float,
    ) -> Buffer:
        """Elements of a dense tensor by statistics of a dtype that the kernel is told."""
        launcher = self.launcher
        out = launcher.empty(x.shape, x.dtype)
        if not out.size:
            return out
        scale = x if gamma is None else launcher.dense(gamma)
        shift = x if beta is None else launcher.dense(beta)
        numbers = [*_sizes(x), 1, 0, CODES[x.dtype.name], code, x.offset, 0]
        numbers += [scale.offset, shift.offset, mean.offset, variance.offset, _bits(epsilon, x)]
        numbers += [int(gamma is not None), int(beta is not None)]
        self._run_channels("normalize_channels", x, numbers, [x, scale, shift, mean, variance, out])
        return out

    def _dense_all(self, *tensors: Buffer) -> list[Buffer]:
        return [self.launcher.dense(one) for one in tensors]

    def _channel_plan(self, x: Buffer) -> _Plan | None:
        """How to go through the channels; None where there is nothing, or too much to count."""
        images, channels, places = _sizes(x)
        count = images * places
        if not count or not channels or count >= _LIMIT:
            return None
        runtime = self.launcher.runtime
        wanted = 4 * runtime.units if runtime.is_cpu else 8 * runtime.units
        parts = max(1, min(wanted // channels, count // _CHUNK))
        chunk = -(-count // parts)
        return _Plan(images, channels, places, -(-count // chunk), chunk)

    def _channel_statistics(self, x: Buffer, plan: _Plan) -> tuple[Buffer, Buffer]:
        """Memory for two numbers of each part, and of each channel."""
        wide = float32 if x.dtype.itemsize == 2 else x.dtype
        shape = (2, plan.channels)
        return self.launcher.empty((*shape, plan.parts), wide), self.launcher.empty(shape, wide)

    def _run_channels(
        self,
        name: str,
        x: Buffer,
        numbers: Sequence[int],
        tensors: Sequence[Buffer],
        parts: int | None = None,
    ) -> None:
        """A kernel of parts, or else of all elements: on a CPU an item takes many of them."""
        on_cpu = self.launcher.runtime.is_cpu
        group = 1 if on_cpu else _GROUP
        everything = math.prod(x.shape[:2]) if on_cpu else x.size
        items = everything if parts is None else parts * group
        kernel = self._channel_kernel(name, x)
        memories = [one.memory for one in tensors]
        self.launcher.run(kernel, items, _padded(numbers), memories, group)

    def _channel_kernel(self, program: str, x: Buffer, name: str | None = None) -> Any:
        """A kernel of the program that has the kernel `program`."""
        launcher = self.launcher
        definitions: dict[str, str | int] = {f"HAS_{program}": 1}
        definitions["GROUP_SIZE"] = 1 if launcher.runtime.is_cpu else _GROUP
        if x.size >= launcher.large:
            definitions["TYPE"] = CODES[x.dtype.name]
        return launcher.kernel(name or program, "channels.cl", class_of(x.dtype), definitions)


def _sizes(x: Buffer) -> tuple[int, int, int]:
    return x.shape[0], x.shape[1], math.prod(x.shape[2:])


def _padded(numbers: Sequence[int]) -> tuple[int, ...]:
    """What ``Parameters`` holds; numbers that a kernel does not look at are left out above."""
    return (*numbers, *[0] * (16 - len(numbers)))


def _bits(epsilon: float, x: Buffer) -> int:
    return signed_bits(epsilon, float32 if x.dtype.itemsize == 2 else x.dtype)
