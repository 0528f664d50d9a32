"""Pooling: an item for each window, and for each place in the gradient of a mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from burn.dtype import DType
from burn.ops import OpTable
from burn.ops.max_pooling import check_index_dtype, check_indices, lowest
from burn.ops.pooling_windows import (
    WindowRule,
    Windows,
    check_pooled,
    pooled_shape,
    unpooled_shape,
    windows,
)
from burn_opencl.bits import signed_bits
from burn_opencl.buffers import Buffer, check_dtypes
from burn_opencl.expressions import CODES, class_of
from burn_opencl.windows import AXES, launch_windows

if TYPE_CHECKING:
    from burn.ops.pooling_windows import Sizes
    from burn_opencl.launcher import Launcher

__all__ = ["PoolingOps"]


class PoolingOps:
    """Pooling over up to three axes; over more, as the defaults have it."""

    launcher: Launcher
    table: OpTable

    def max_pool(self, x: Buffer, **rule: Unpack[WindowRule]) -> Buffer:
        """Without places."""
        if len(rule["kernel_size"]) > AXES:
            return self.table.decomposed("max_pool", x, **rule)  # type: ignore[no-any-return]  # a Buffer
        plan = windows(x.shape, **rule)
        return self._largest(x, plan, None)[0]

    def max_pool_with_indices(
        self, x: Buffer, *, index_dtype: DType, **rule: Unpack[WindowRule]
    ) -> tuple[Buffer, Buffer]:
        """The first of equals, and of several NaN."""
        if len(rule["kernel_size"]) > AXES:
            return self.table.decomposed(  # type: ignore[no-any-return]  # two Buffers
                "max_pool_with_indices", x, index_dtype=index_dtype, **rule
            )
        plan = windows(x.shape, **rule)
        check_index_dtype(plan, index_dtype)
        output, indices = self._largest(x, plan, index_dtype)
        return output, indices

    def _largest(
        self, x: Buffer, plan: Sequence[Windows], index_dtype: DType | None
    ) -> list[Buffer]:
        launcher = self.launcher
        if x.dtype.is_bool:
            raise TypeError("the largest of booleans")
        x = launcher.dense(x)
        shape = pooled_shape(x.shape, plan)
        outputs = [launcher.empty(shape, x.dtype)]
        index_type = 13
        if index_dtype is not None:
            outputs.append(launcher.empty(shape, index_dtype))
            index_type = CODES[index_dtype.name]
        launch_windows(
            launcher,
            "max_pool",
            plan,
            x,
            outputs if len(outputs) == 2 else outputs * 2,
            items=math.prod(shape),
            index_type=index_type,
            lowest=signed_bits(lowest(x.dtype), x.dtype),
        )
        return outputs

    def avg_pool(
        self, x: Buffer, *, count_include_pad: bool = True, **rule: Unpack[WindowRule]
    ) -> Buffer:
        """Added up and divided in float32 at the least."""
        if len(rule["kernel_size"]) > AXES:
            return self.table.decomposed(  # type: ignore[no-any-return]  # a Buffer
                "avg_pool", x, count_include_pad=count_include_pad, **rule
            )
        plan = windows(x.shape, **rule)
        check_dtypes("avg_pool", x, floats=True)
        launcher = self.launcher
        shape = pooled_shape(x.shape, plan)
        out = launcher.empty(shape, x.dtype)
        launch_windows(
            launcher,
            "avg_pool",
            plan,
            launcher.dense(x),
            [out],
            items=math.prod(shape),
            with_padding=count_include_pad,
        )
        return out

    def avg_pool_grad(
        self,
        g: Buffer,
        *,
        input_size: Sizes,
        count_include_pad: bool = True,
        **rule: Unpack[WindowRule],
    ) -> Buffer:
        """Each place adds up the shares of the windows that hold it."""
        if len(rule["kernel_size"]) > AXES:
            return self.table.decomposed(  # type: ignore[no-any-return]  # a Buffer
                "avg_pool_grad",
                g,
                input_size=input_size,
                count_include_pad=count_include_pad,
                **rule,
            )
        plan = windows(input_size, **rule)
        check_pooled(g.shape, input_size, plan)
        check_dtypes("avg_pool_grad", g, floats=True)
        launcher = self.launcher
        shape = unpooled_shape(g.shape, input_size)
        out = launcher.empty(shape, g.dtype)
        launch_windows(
            launcher,
            "avg_pool_grad",
            plan,
            launcher.dense(g),
            [out],
            items=math.prod(shape),
            with_padding=count_include_pad,
        )
        return out

    def max_pool_grad(self, g: Buffer, indices: Buffer, *, input_size: Sizes) -> Buffer:
        """On a CPU an item takes a whole image; else the default, which scatters."""
        shape = check_indices(g.shape, indices.shape, input_size)
        launcher = self.launcher
        if not launcher.runtime.is_cpu or not g.dtype.is_float or g.dtype.itemsize == 2:
            with launcher.checked.called("max_pool_grad"):
                return self.table.decomposed("max_pool_grad", g, indices, input_size=input_size)  # type: ignore[no-any-return]  # a Buffer
        if not indices.dtype.is_integer:
            raise TypeError(f"indices of {indices.dtype}")
        out = launcher.empty(shape, g.dtype)
        places, windows_ = math.prod(input_size), math.prod(g.shape[-len(input_size) :])
        lead = math.prod(shape[: len(shape) - len(input_size)])
        if not places:
            return out
        g, indices = launcher.dense(g), launcher.dense(indices)
        note, call = launcher.note("max_pool_grad")
        definitions: dict[str, str | int] = {}
        if out.size >= launcher.large:
            definitions["TYPE"] = CODES[g.dtype.name]
        kernel = launcher.kernel("max_pool_grad", "windows.cl", class_of(g.dtype), definitions)
        codes = (CODES[g.dtype.name], CODES[indices.dtype.name])
        numbers = [lead, 1, g.offset, *codes, indices.offset, call, 1, 1, places]
        numbers += [0] * 17 + [windows_]
        memories = (g.memory, indices.memory, out.memory, note)
        launcher.run(kernel, lead, numbers, memories)
        return out
