"""Batch normalization: moments of parts of each channel, those of the channels, the elements."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from burn.plugin_api import check_channels, check_same_shape
from burn_opencl.base import OpenClOps
from burn_opencl.buffers import Buffer
from burn_opencl.dtypes import DTYPE_CODES, accumulator_dtype, c_type_of, check_dtypes
from burn_opencl.limits import GPU_GROUP_ITEMS, INT32_LIMIT
from burn_opencl.programs import text_of
from burn_opencl.scalars import signed_scalar_bits

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ChannelOps"]

_MIN_ELEMENTS_PER_PART: Final = 4096
_CPU_PARTS_PER_UNIT: Final = 4
_GPU_PARTS_PER_UNIT: Final = 8

_PARAMETERS: Final = 16
"""Fields of ``Parameters`` in ``channels.cl``."""


class _Plan(NamedTuple):
    """(images, channels, positions), and the parts in which a channel is reduced."""

    images: int
    channels: int
    positions: int
    parts: int
    chunk: int


class ChannelOps(OpenClOps):
    """Batch normalization and its gradient."""

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
        """Computed in one kernel."""
        check_channels(x.shape, gamma=gamma, beta=beta, mean=mean, variance=variance)
        check_dtypes("batch_norm", x, gamma, beta, mean, variance, floats=True)
        x, mean, variance = self._dense_all(x, mean, variance)
        code = DTYPE_CODES[x.dtype.name]
        return self._normalized_channels(x, gamma, beta, mean, variance, code, epsilon)

    def batch_norm_training(
        self, x: Buffer, gamma: Buffer | None, beta: Buffer | None, *, epsilon: float
    ) -> tuple[Buffer, Buffer, Buffer]:
        """Computed in three kernels."""
        check_channels(x.shape, gamma=gamma, beta=beta)
        check_dtypes("batch_norm", x, gamma, beta, floats=True)
        plan = self._channel_plan(x)
        if plan is None:
            outputs: tuple[Buffer, Buffer, Buffer] = self.ops.decomposed(
                "batch_norm_training", x, gamma, beta, epsilon=epsilon
            )
            return outputs
        launcher = self.launcher
        (x,) = self._dense_all(x)
        parameters = (*plan, DTYPE_CODES[x.dtype.name], 0, x.offset)
        parts, combined = self._channel_statistics(x, plan)
        mean, variance = [launcher.empty((plan.channels,), x.dtype) for _ in range(2)]
        self._run_channels("channel_moments", x, parameters, [x, parts], plan.channels * plan.parts)
        kernel = self._channel_kernel("channel_moments", x, "combine_moments")
        memories = (parts.memory, combined.memory, mean.memory, variance.memory)
        launcher.run(kernel, plan.channels, _padded(parameters), memories)
        # The elements are normalized by statistics that are not rounded to their dtype.
        exact_mean = combined.viewed((plan.channels,), (1,), 0)
        exact_variance = combined.viewed((plan.channels,), (1,), plan.channels)
        code = DTYPE_CODES[combined.dtype.name]
        output = self._normalized_channels(
            x, gamma, beta, exact_mean, exact_variance, code, epsilon
        )
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
        """Computed in three kernels."""
        check_channels(x.shape, gamma=gamma, mean=mean, variance=variance)
        check_same_shape("g", g.shape, x.shape)
        check_dtypes("batch_norm", x, gamma, mean, variance, g, floats=True)
        plan = self._channel_plan(x)
        if plan is None:
            outputs: tuple[Buffer, Buffer, Buffer] = self.ops.decomposed(
                "batch_norm_grad", x, gamma, mean, variance, g, epsilon=epsilon
            )
            return outputs
        launcher = self.launcher
        x, g, mean, variance = self._dense_all(x, g, mean, variance)
        scale = x if gamma is None else launcher.dense(gamma)
        code = DTYPE_CODES[x.dtype.name]
        parameters = [*plan, code, code, x.offset, g.offset, scale.offset, 0, mean.offset]
        parameters += [variance.offset, _bits(epsilon, x), int(gamma is not None)]
        parts, combined = self._channel_statistics(x, plan)
        beta_grad, gamma_grad = [launcher.empty((plan.channels,), x.dtype) for _ in range(2)]
        operands = [x, g, mean, variance]
        self._run_channels(
            "channel_grad_sums", x, parameters, [*operands, parts], plan.channels * plan.parts
        )
        kernel = self._channel_kernel("channel_grad_sums", x, "combine_grad_sums")
        memories = (parts.memory, combined.memory, beta_grad.memory, gamma_grad.memory)
        launcher.run(kernel, plan.channels, _padded(parameters), memories)
        out = launcher.empty(x.shape, x.dtype)
        self._run_channels(
            "channel_gradient", x, parameters, [x, g, scale, mean, variance, combined, out]
        )
        return out, gamma_grad, beta_grad

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
        """Normalize a dense tensor by statistics of the dtype with a code."""
        launcher = self.launcher
        out = launcher.empty(x.shape, x.dtype)
        if not out.size:
            return out
        scale = x if gamma is None else launcher.dense(gamma)
        shift = x if beta is None else launcher.dense(beta)
        parameters = [*_sizes(x), 1, 0, DTYPE_CODES[x.dtype.name], code, x.offset, 0]
        parameters += [scale.offset, shift.offset, mean.offset, variance.offset, _bits(epsilon, x)]
        parameters += [int(gamma is not None), int(beta is not None)]
        self._run_channels(
            "normalize_channels", x, parameters, [x, scale, shift, mean, variance, out]
        )
        return out

    def _dense_all(self, *tensors: Buffer) -> list[Buffer]:
        return [self.launcher.dense(tensor) for tensor in tensors]

    def _channel_plan(self, x: Buffer) -> _Plan | None:
        """Parts of the channels; None where there are no elements, or too many for 32 bits."""
        images, channels, positions = _sizes(x)
        count = images * positions
        if not count or not channels or count >= INT32_LIMIT:
            return None
        runtime = self.launcher.runtime
        wanted = (_CPU_PARTS_PER_UNIT if runtime.is_cpu else _GPU_PARTS_PER_UNIT) * runtime.units
        parts = max(1, min(wanted // channels, count // _MIN_ELEMENTS_PER_PART))
        chunk = -(-count // parts)
        return _Plan(images, channels, positions, -(-count // chunk), chunk)

    def _channel_statistics(self, x: Buffer, plan: _Plan) -> tuple[Buffer, Buffer]:
        """Memory for two statistics of each part, and of each channel."""
        wide = accumulator_dtype(x.dtype)
        shape = (2, plan.channels)
        return self.launcher.empty((*shape, plan.parts), wide), self.launcher.empty(shape, wide)

    def _run_channels(
        self,
        name: str,
        x: Buffer,
        parameters: Sequence[int],
        tensors: Sequence[Buffer],
        parts: int | None = None,
    ) -> None:
        """Launch a kernel of parts, or of all elements, of which an item of a CPU computes many."""
        on_cpu = self.launcher.runtime.is_cpu
        group = 1 if on_cpu else GPU_GROUP_ITEMS
        items = math.prod(x.shape[:2]) if on_cpu else x.size
        if parts is not None:
            items = parts * group
        kernel = self._channel_kernel(name, x)
        memories = [tensor.memory for tensor in tensors]
        self.launcher.run(kernel, items, _padded(parameters), memories, group)

    def _channel_kernel(self, program: str, x: Buffer, name: str | None = None) -> Any:
        """A kernel of the program that has the kernel `program`."""
        launcher = self.launcher
        definitions: dict[str, str | int] = {f"HAS_{program}": 1}
        group = 1 if launcher.runtime.is_cpu else GPU_GROUP_ITEMS
        definitions |= {"GROUP_SIZE": group, "LANES": group}
        if launcher.is_specialized(x.size):
            definitions["TYPE"] = DTYPE_CODES[x.dtype.name]
        body = text_of("row_helpers.cl")
        return launcher.kernel(
            name or program, "channels.cl", c_type_of(x.dtype), definitions, body
        )


def _sizes(x: Buffer) -> tuple[int, int, int]:
    return x.shape[0], x.shape[1], math.prod(x.shape[2:])


def _padded(parameters: Sequence[int]) -> tuple[int, ...]:
    """Parameters, with zeros for those at the end that a kernel does not read."""
    return (*parameters, *[0] * (_PARAMETERS - len(parameters)))


def _bits(epsilon: float, x: Buffer) -> int:
    return signed_scalar_bits(epsilon, accumulator_dtype(x.dtype))
