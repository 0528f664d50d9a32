"""Products with quantized tensors, by kernels of torch that multiply codes, or by rows."""

from __future__ import annotations

import functools
from typing import Any, Final

import torch

from burn.plugin_api import DType, QuantScheme, QuantValue
from burn_torch.dtypes import BURN_DTYPES, HALF_FLOATS, TORCH_DTYPES, Tensor
from burn_torch.quantization import QuantizationOps, stored_shape
from burn_torch.quantized_codes import FLOAT8, READS_WORDS, numbers_of_scales
from burn_torch.quantized_rows import (
    PART,
    RowLayout,
    has_columns,
    product_with_rows,
    row_layout,
)

__all__ = ["QuantizedProductOps"]

# torch does not type these functions, and not every version has them.
_int_mm: Final[Any] = getattr(torch, "_int_mm", None)
_scaled_mm: Final[Any] = getattr(torch, "_scaled_mm", None)
_int8pack_mm: Final[Any] = getattr(torch, "_weight_int8pack_mm", None)

_INT8PACK_MULTIPLE: Final = 32
"""What divides the inner length of `_weight_int8pack_mm`, which reads beyond the end of others."""

_INT_MM_ROWS: Final = 32
"""Rows to which fewer are padded for `_int_mm` on CUDA, which takes more than 16."""

_INT_MM_MULTIPLE: Final = 8
"""What divides the inner and outer lengths of `_int_mm` on CUDA."""

_FLOAT8_MULTIPLE: Final = 16
"""What divides the inner and outer lengths of `_scaled_mm`."""

_FLOAT8_CAPABILITY: Final = (8, 9)
"""The first compute capability of CUDA devices that multiply float8."""

_ROWS_VERSION: Final = (12, 9)
"""The first version of CUDA in which cuBLAS scales rows and columns."""

_ROWS_CAPABILITY: Final = 9
"""The major compute capability for which it does."""

_INT32_MAX: Final = 2**31 - 1

_EXACT_IN_BFLOAT16: Final = frozenset([torch.bfloat16, torch.uint8])
"""Storage dtypes of scales that bfloat16 holds exactly; uint8 is of those of 8 bits."""


class QuantizedProductOps(QuantizationOps):
    """Products in which a weight is not restored as a whole, where torch has kernels."""

    def quantized_linear(
        self,
        x: Tensor,
        values: Tensor,
        scales: Tensor,
        global_scale: Tensor | None = None,
        bias: Tensor | None = None,
        *,
        scheme: QuantScheme,
        transposed: bool = False,
    ) -> Tensor:
        """On the host by rows of the weight; on CUDA of few rows of `x` by a kernel."""
        if not x.dim() or values.dim() != 2:
            raise ValueError(f"x {x.shape}, codes {values.shape}")
        shape = stored_shape(values, scales, global_scale, scheme)
        inner, outer = reversed(shape) if transposed else shape
        _check_linear(x.shape[-1], inner, outer, bias)
        found = None
        operands = (values, scales, global_scale, bias)
        if x.numel() and outer and READS_WORDS:
            if self.on_host:
                found = self._by_rows(x, *operands, scheme, shape, transposed)
            elif transposed:
                found = self._of_few_rows(x, *operands, scheme)
        if found is not None:
            return found if x.dim() == 2 else found.reshape(*x.shape[:-1], outer)
        return self.decomposed(
            "quantized_linear", x, *operands, scheme=scheme, transposed=transposed
        )

    def _of_few_rows(
        self,
        x: Tensor,
        values: Tensor,
        scales: Tensor,
        global_scale: Tensor | None,
        bias: Tensor | None,
        scheme: QuantScheme,
    ) -> Tensor | None:
        """The product as a matrix; None where the decomposition has to compute it."""
        scale = self.scale(scales, global_scale, scheme, torch.float32)
        if scale is None or (bias is not None and bias.dtype is not x.dtype):
            return None
        return self.kernels.few_rows(x.reshape(-1, x.shape[-1]), values, scale, scheme, bias)

    def _by_rows(
        self,
        x: Tensor,
        values: Tensor,
        scales: Tensor,
        global_scale: Tensor | None,
        bias: Tensor | None,
        scheme: QuantScheme,
        shape: tuple[int, ...],
        transposed: bool,
    ) -> Tensor | None:
        """The product as a matrix; None where the decomposition has to compute it."""
        wide = _wide(x.dtype)
        scale = self.scale(scales, global_scale, scheme, wide)
        if scale is None:
            return None
        layout = row_layout(
            scheme, shape, PART, is_transposed=has_columns(values), is_outer=transposed
        )
        words, scale = layout.words(values), layout.scale(scale)
        if x.dim() != 2:
            x = x.reshape(-1, x.shape[-1])
        is_exact = global_scale is None and scales.dtype in _EXACT_IN_BFLOAT16
        if is_exact and bias is None and _has_int8_kernel(x, words, scale, layout):
            scale = scale[:, 0].to(x.dtype).expand(layout.rows).contiguous()
            return _int8pack_mm(_by_rows(x), _by_rows(words), scale)  # type: ignore[no-any-return]  # a tensor
        with self.exact_products():
            product = product_with_rows(x.to(wide), words, scale, layout)
        if bias is not None:
            product.add_(bias)
        return product if x.dtype is wide else product.to(x.dtype)

    def quantized_product(
        self,
        a_values: Tensor,
        a_scales: Tensor,
        b_values: Tensor,
        b_scales: Tensor,
        bias: Tensor | None = None,
        *,
        a_scheme: QuantScheme,
        b_scheme: QuantScheme,
        dtype: DType,
        transposed: bool = False,
    ) -> Tensor:
        """Codes are multiplied where scales are those of whole rows and columns."""
        a_shape = stored_shape(a_values, a_scales, None, a_scheme)
        b_shape = stored_shape(b_values, b_scales, None, b_scheme)
        if not a_shape or len(b_shape) != 2:
            raise ValueError(f"codes of shapes {a_shape} and {b_shape}")
        inner, outer = reversed(b_shape) if transposed else b_shape
        _check_linear(a_shape[-1], inner, outer, bias)
        native = TORCH_DTYPES[dtype]
        wide = _wide(native)
        a_scale = _of_rows(a_scales, a_scheme, a_shape, -1, wide)
        b_scale = _of_rows(b_scales, b_scheme, b_shape, -1 if transposed else 0, wide)
        found = None
        if a_scale is not None and b_scale is not None and 0 not in (*a_shape, outer):
            a = self.unpack_values(a_values, scheme=a_scheme).reshape(-1, inner)
            b = self.unpack_values(b_values, scheme=b_scheme)
            if transposed:
                b, b_scale = b.mT, b_scale.mT
            values = a_scheme.value, b_scheme.value
            if not any(value.is_float for value in values):
                found = self._product_of_int8(a, b, values, a_scale, b_scale, bias, native)
            elif all(value in FLOAT8 for value in values) and self._multiplies_float8:
                found = self._product_of_float8(a, b, values, a_scale, b_scale, bias, native)
        if found is not None:
            return found.reshape(*a_shape[:-1], outer)
        if not self.on_host:
            return self.decomposed(
                "quantized_product",
                *(a_values, a_scales, b_values, b_scales, bias),
                a_scheme=a_scheme,
                b_scheme=b_scheme,
                dtype=dtype,
                transposed=transposed,
            )
        # The rows of the second operand need no memory for all of its numbers.
        x = self.dequantize_values(
            a_values, a_scales, None, scheme=a_scheme, dtype=BURN_DTYPES[wide]
        )
        wide_bias = None if bias is None else bias.to(wide)
        return self.quantized_linear(
            x, b_values, b_scales, None, wide_bias, scheme=b_scheme, transposed=transposed
        ).to(native)

    @functools.cached_property
    def _multiplies_float8(self) -> bool:
        """Whether the device does; a CPU converts each code by itself, which is slow."""
        return (
            _scaled_mm is not None
            and self.torch_device.type == "cuda"
            and torch.cuda.get_device_capability(self.torch_device) >= _FLOAT8_CAPABILITY
        )

    @functools.cached_property
    def _scales_rows(self) -> bool:
        """Whether the product of float8 takes a scale for each row and column, by cuBLAS.

        CUTLASS, which does so elsewhere, has read beyond the end of them (pytorch/pytorch#133334).
        """
        version = tuple(map(int, (torch.version.cuda or "0").split(".")))
        return (
            version >= _ROWS_VERSION
            and torch.cuda.get_device_capability(self.torch_device)[0] == _ROWS_CAPABILITY
        )

    def _product_of_int8(
        self,
        a: Tensor,
        b: Tensor,
        values: tuple[QuantValue, QuantValue],
        a_scale: Tensor,
        b_scale: Tensor,
        bias: Tensor | None,
        dtype: torch.dtype,
    ) -> Tensor | None:
        """The product by `_int_mm`; None for lengths that it does not take."""
        count, inner = a.shape
        largest = [max(map(abs, value.range)) for value in values]
        if _int_mm is None or inner * largest[0] * largest[1] > _INT32_MAX:
            return None
        if not self.on_host:
            if inner % _INT_MM_MULTIPLE or b.shape[1] % _INT_MM_MULTIPLE:
                return None
            if count < _INT_MM_ROWS:
                a = torch.nn.functional.pad(a, (0, 0, 0, _INT_MM_ROWS - count))
        product = _int_mm(_by_rows(a), _by_rows_or_columns(b))[:count]
        if not self.on_host and (bias is None or bias.dtype is dtype):
            found = self.kernels.scaled_sums(product, a_scale, b_scale, bias, dtype)
            if found is not None:
                return found
        return _scaled(product, a_scale, b_scale, bias, dtype)

    def _product_of_float8(
        self,
        a: Tensor,
        b: Tensor,
        values: tuple[QuantValue, QuantValue],
        a_scale: Tensor,
        b_scale: Tensor,
        bias: Tensor | None,
        dtype: torch.dtype,
    ) -> Tensor | None:
        """The product by `_scaled_mm`; None for what it does not take."""
        inner, outer = b.shape
        if inner % _FLOAT8_MULTIPLE or outer % _FLOAT8_MULTIPLE or dtype is torch.float64:
            return None
        a, b = (tensor.view(FLOAT8[value]) for tensor, value in zip((a, b), values, strict=True))
        a, b = _by_rows(a), _by_rows(b.mT).mT  # columns of the second one have to be contiguous
        own_bias = bias if dtype in HALF_FLOATS else None  # it has the dtype of the result
        scales = (a_scale, b_scale)
        is_scaled = a_scale.numel() == b_scale.numel() == 1
        if not is_scaled and self._scales_rows:
            rows, columns = a_scale.expand(a.shape[0], 1), b_scale.expand(1, outer)
            scales, is_scaled = (rows.contiguous(), columns.contiguous()), True
        try:
            if is_scaled:
                product = _scaled_mm(a, b, *scales, own_bias, out_dtype=dtype)
            else:
                one = torch.ones((), device=a.device)
                product = _scaled_mm(a, b, one, one, out_dtype=torch.float32)
        except (RuntimeError, ValueError, NotImplementedError):
            return None  # both of E5M2, or what another version does not take
        if not is_scaled:
            return _scaled(product, a_scale, b_scale, bias, dtype)
        return product if bias is own_bias else product.add_(bias)  # type: ignore[no-any-return]  # a tensor


def _scaled(
    product: Tensor, a_scale: Tensor, b_scale: Tensor, bias: Tensor | None, dtype: torch.dtype
) -> Tensor:
    """Scales of rows, shape (rows or 1, 1), and of columns, times a product; and a bias."""
    if a_scale.numel() == 1:
        scaled = torch.mul(product, a_scale * b_scale)
    elif bias is None and dtype in HALF_FLOATS and not product.is_cpu:
        result = torch.empty(product.shape, dtype=dtype, device=product.device)
        return torch.mul(torch.mul(product, a_scale), b_scale, out=result)  # also rounds
    else:
        scaled = torch.mul(product, a_scale).mul_(b_scale)
    return (scaled if bias is None else scaled.add_(bias)).to(dtype)


def _of_rows(
    scales: Tensor,
    scheme: QuantScheme,
    shape: tuple[int, ...],
    inner_axis: int,
    dtype: torch.dtype,
) -> Tensor | None:
    """Scales of each index of a tensor but the inner one; None where they differ along that.

    The shape is (rows, 1) if the inner axis is the last one, else (1, columns); 1 if all share one.
    """
    scale = numbers_of_scales(scales, scheme.scale_dtype, dtype)
    if scale is None:
        return None
    if not scheme.level.block:
        return scale.reshape(1, 1)
    if scale.shape[inner_axis] != 1:
        return None
    if scale.numel() > 1:
        for axis, (length, count) in enumerate(zip(shape, scale.shape, strict=True)):
            if count != length and axis != inner_axis % len(shape):
                scale = scale.repeat_interleave(length // count, axis)
    return scale.reshape((-1, 1) if inner_axis == -1 else (1, -1))


def _has_int8_kernel(x: Tensor, words: Tensor, scale: Tensor, layout: RowLayout) -> bool:
    """Whether `_weight_int8pack_mm` computes a product, in float32, and rounds it once.

    Torch has vectors for bfloat16 alone.
    """
    return (
        _int8pack_mm is not None
        and x.dtype is torch.bfloat16
        and layout.is_outer
        and words.dtype is torch.int8
        and layout.per_byte == 1
        and scale.shape[1] == 1
        and scale.shape[0] in (1, layout.rows)
        and words.is_contiguous()
        and not x.shape[1] % _INT8PACK_MULTIPLE
    )


def _by_rows(x: Tensor) -> Tensor:
    """A matrix whose rows are contiguous, with the strides that say so.

    An axis of length 1 may have any stride, which kernels take for the distance of rows.
    """
    return torch.as_strided(x.contiguous(), x.shape, (x.shape[1], 1))


def _by_rows_or_columns(x: Tensor) -> Tensor:
    """A matrix whose columns, or else rows, are contiguous, likewise.

    Of columns of length 1 `_int_mm` reads other memory.
    """
    return _by_rows(x.mT).mT if x.shape[0] > 1 and x.mT.is_contiguous() else _by_rows(x)


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype is torch.float64 else torch.float32


def _check_linear(given: int, inner: int, outer: int, bias: Tensor | None) -> None:
    """Raise for shapes that do not fit; what is wrong is said by `infer` of the op."""
    if given != inner or (bias is not None and tuple(bias.shape) != (outer,)):
        raise ValueError(f"{given} inputs and bias {bias} for a weight of {inner} and {outer}")
