"""Pooling: an item for each window, or for each element of the gradient of an average."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from burn.plugin_api import (
    AvgPoolAttributes,
    DType,
    MaxPoolAttributes,
    Windows,
    check_pool_index_dtype,
    check_pool_indices,
    check_pooled,
    lowest_value,
    pool_windows,
    pooled_shape,
    unpooled_shape,
)
from burn_opencl.base import OpenClOps
from burn_opencl.buffers import Buffer
from burn_opencl.dtypes import DTYPE_CODES, SCALAR_CODE, c_type_of, check_dtypes
from burn_opencl.scalars import signed_scalar_bits
from burn_opencl.windows import SPATIAL_AXES, launch_windows

if TYPE_CHECKING:
    from burn.plugin_api import Sizes

__all__ = ["PoolingOps"]


class PoolingOps(OpenClOps):
    """Pooling over up to three spatial axes; the defaults pool over more."""

    def max_pool(self, x: Buffer, **attributes: Unpack[MaxPoolAttributes]) -> Buffer:
        """A kernel that writes no indices."""
        if len(attributes["kernel_size"]) > SPATIAL_AXES:
            result: Buffer = self.ops.decomposed("max_pool", x, **attributes)
            return result
        plan = pool_windows(x.shape, **attributes)
        return self._max_pool(x, plan, None)[0]

    def max_pool_with_indices(
        self, x: Buffer, *, index_dtype: DType, **attributes: Unpack[MaxPoolAttributes]
    ) -> tuple[Buffer, Buffer]:
        """Indices of the first of equal elements, and of the first NaN."""
        if len(attributes["kernel_size"]) > SPATIAL_AXES:
            result: tuple[Buffer, Buffer] = self.ops.decomposed(
                "max_pool_with_indices", x, index_dtype=index_dtype, **attributes
            )
            return result
        plan = pool_windows(x.shape, **attributes)
        check_pool_index_dtype(plan, index_dtype)
        output, indices = self._max_pool(x, plan, index_dtype)
        return output, indices

    def _max_pool(
        self, x: Buffer, plan: Sequence[Windows], index_dtype: DType | None
    ) -> list[Buffer]:
        launcher = self.launcher
        if x.dtype.is_bool:
            raise TypeError("max_pool of bool")
        x = launcher.dense(x)
        shape = pooled_shape(x.shape, plan)
        outputs = [launcher.empty(shape, x.dtype)]
        index_type = SCALAR_CODE
        if index_dtype is not None:
            outputs.append(launcher.empty(shape, index_dtype))
            index_type = DTYPE_CODES[index_dtype.name]
        launch_windows(
            launcher,
            "max_pool",
            plan,
            x,
            outputs if len(outputs) == 2 else outputs * 2,
            items=math.prod(shape),
            index_type=index_type,
            lowest=signed_scalar_bits(lowest_value(x.dtype), x.dtype),
        )
        return outputs

    def avg_pool(
        self, x: Buffer, *, count_include_pad: bool = True, **attributes: Unpack[AvgPoolAttributes]
    ) -> Buffer:
        """16-bit floats are added and divided in float32."""
        if len(attributes["kernel_size"]) > SPATIAL_AXES:
            result: Buffer = self.ops.decomposed(
                "avg_pool", x, count_include_pad=count_include_pad, **attributes
            )
            return result
        plan = pool_windows(x.shape, **attributes)
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
        **attributes: Unpack[AvgPoolAttributes],
    ) -> Buffer:
        """Each element is the sum of the shares of the windows that contain it."""
        if len(attributes["kernel_size"]) > SPATIAL_AXES:
            result: Buffer = self.ops.decomposed(
                "avg_pool_grad",
                g,
                input_size=input_size,
                count_include_pad=count_include_pad,
                **attributes,
            )
            return result
        plan = pool_windows(input_size, **attributes)
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
        """An item of a CPU computes a whole image; else the default, which scatters."""
        shape = check_pool_indices(g.shape, indices.shape, input_size)
        launcher = self.launcher
        if not launcher.runtime.is_cpu or not g.dtype.is_float or g.dtype.itemsize == 2:
            result: Buffer = self.ops.decomposed("max_pool_grad", g, indices, input_size=input_size)
            return result
        if not indices.dtype.is_integer:
            raise TypeError(f"indices of {indices.dtype}")
        out = launcher.empty(shape, g.dtype)
        elements, count = math.prod(input_size), math.prod(g.shape[-len(input_size) :])
        lead = math.prod(shape[: len(shape) - len(input_size)])
        if not elements:
            return out
        g, indices = launcher.dense(g), launcher.dense(indices)
        error, op = launcher.index_error_memory("max_pool_grad")
        definitions: dict[str, str | int] = {}
        if launcher.is_specialized(out.size):
            definitions["TYPE"] = DTYPE_CODES[g.dtype.name]
        kernel = launcher.kernel("max_pool_grad", "windows.cl", c_type_of(g.dtype), definitions)
        codes = (DTYPE_CODES[g.dtype.name], DTYPE_CODES[indices.dtype.name])
        parameters = [lead, 1, g.offset, *codes, indices.offset, op, 1, 1, elements]
        parameters += [0] * 17 + [count]
        memories = (g.memory, indices.memory, out.memory, error)
        launcher.run(kernel, lead, parameters, memories)
        return out
