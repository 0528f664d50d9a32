"""Quantizing and restoring tensors: the steps of the decompositions, in fewer passes."""

from __future__ import annotations

import functools

import torch

from burn.plugin_api import DType, QuantScheme, greatest_codes, split_shapes
from burn_torch.base import TorchOps
from burn_torch.dtypes import BURN_DTYPES, TORCH_DTYPES, Tensor
from burn_torch.quantized_codes import (
    FLOAT8,
    READS_WORDS,
    converts_float8,
    numbers_of_codes,
    numbers_of_scales,
    packed,
    unpacked,
)
from burn_torch.quantized_kernels import QuantizedKernels

__all__ = ["QuantizationOps", "check_scales", "stored_shape"]


class QuantizationOps(TorchOps):
    """Codes from numbers and back; each result has the bits of the decomposition."""

    def pack_values(self, codes: Tensor, *, scheme: QuantScheme) -> Tensor:
        """Bytes viewed as words."""
        shape = tuple(codes.shape)
        scheme.check(shape)
        _check_dtype(codes, scheme.native.storage_dtype)
        if not READS_WORDS:
            return self.decomposed("pack_values", codes, scheme=scheme)
        return packed(codes, scheme)

    def unpack_values(self, values: Tensor, *, scheme: QuantScheme) -> Tensor:
        """Words viewed as bytes."""
        _check_dtype(values, scheme.storage_dtype)
        scheme.check(scheme.logical_shape(tuple(values.shape)))
        if not READS_WORDS:
            return self.decomposed("unpack_values", values, scheme=scheme)
        return unpacked(values, scheme)

    def quantize_values(
        self,
        x: Tensor,
        scales: Tensor,
        global_scale: Tensor | None = None,
        *,
        scheme: QuantScheme,
    ) -> Tensor:
        """A kernel for rows on CUDA; else divided in float32 and rounded in place."""
        shape = tuple(x.shape)
        scheme.check(shape)
        check_scales(scales, global_scale, shape, scheme)
        codes = None if self.on_host else self.kernels.quantize(x, scales, scheme)
        if codes is not None:
            return self.pack_values(codes, scheme=scheme)
        dtype = _wide(x.dtype)
        scale = self.scale(scales, global_scale, scheme, dtype)
        is_rounded_by_cast = (
            scheme.value in FLOAT8 and dtype is torch.float32 and converts_float8(x)
        )
        if scale is None or (scheme.value.is_float and not is_rounded_by_cast):
            return self.decomposed("quantize_values", x, scales, global_scale, scheme=scheme)
        split, ones, _ = split_shapes(scheme, shape)
        divisor = torch.where(scale == 0.0, torch.nan, scale).reshape(ones)
        quotient = torch.div(x.reshape(split), divisor)
        low, high = scheme.value.range
        # NaN is of a scale 0 too: its code is 0.
        quotient.clamp_(low, high).nan_to_num_(0.0)
        if not self.on_host or _may_overflow(scale, max(-low, high)):
            most = greatest_codes(self.ops, scale, scheme).reshape(ones)
            if not scheme.value.is_float:
                quotient.round_()
            quotient.clamp_(-most, most)
        if is_rounded_by_cast:
            codes = quotient.to(FLOAT8[scheme.value]).view(torch.uint8)
        else:
            codes = quotient.round_().to(torch.int8)
        return self.pack_values(codes.reshape(shape), scheme=scheme)

    def quantize_dynamic(self, x: Tensor, *, scheme: QuantScheme) -> tuple[Tensor, Tensor]:
        """A kernel for rows on CUDA; else a reduction, or two of them on the host."""
        shape = tuple(x.shape)
        scheme.check(shape)
        if scheme.level.is_global or not x.numel():
            return self.decomposed("quantize_dynamic", x, scheme=scheme)
        found = None if self.on_host else self.kernels.quantize_dynamic(x, scheme)
        if found is not None:
            return self.pack_values(found[0], scheme=scheme), found[1]
        split, _, axes = split_shapes(scheme, shape)
        dtype = _wide(x.dtype)
        parts = x.reshape(split)
        if not axes:
            magnitude = parts.abs()
        elif self.on_host:  # the norm is not vectorized there
            magnitude = torch.maximum(parts.amax(axes), parts.amin(axes).neg_()).abs_()
        else:
            magnitude = torch.linalg.vector_norm(parts, torch.inf, axes)
        low, high = scheme.value.range
        # On CUDA, torch multiplies by the reciprocal of a number.
        half = torch.full((1,) * magnitude.dim(), (high - low) / 2.0, dtype=dtype, device=x.device)
        scale = torch.div(magnitude.to(dtype), half).reshape(scheme.scales_shape(shape))
        scales = self.ops.round_up_scales(scale, scheme=scheme)
        return self.quantize_values(x, scales, None, scheme=scheme), scales

    def dequantize_values(
        self,
        values: Tensor,
        scales: Tensor,
        global_scale: Tensor | None = None,
        *,
        scheme: QuantScheme,
        dtype: DType,
    ) -> Tensor:
        """A kernel on CUDA; else one multiplication of what codes are converted to."""
        shape = stored_shape(values, scales, global_scale, scheme)
        native = TORCH_DTYPES[dtype]
        if not native.is_floating_point:
            raise TypeError(f"quantized tensors stand for floats, not for {dtype}")
        wide = _wide(native)
        scale = self.scale(scales, global_scale, scheme, wide)
        if scale is None:
            return self.decomposed(
                "dequantize_values", values, scales, global_scale, scheme=scheme, dtype=dtype
            )
        if not self.on_host and READS_WORDS and wide is torch.float32:
            found = self.kernels.dequantize(values, scale, scheme, native)
            if found is not None:
                return found
        codes = self.unpack_values(values, scheme=scheme)
        split, ones, _ = split_shapes(scheme, shape)
        scale = scale.reshape(ones)
        if self.on_host or scheme.value.is_float:
            numbers = numbers_of_codes(codes, scheme.value, wide).reshape(split)
            return numbers.mul_(scale).reshape(shape).to(native)
        result = torch.empty(split, dtype=native, device=values.device)
        return torch.mul(codes.reshape(split), scale, out=result).reshape(shape)

    @functools.cached_property
    def kernels(self) -> QuantizedKernels:
        """The kernels that torch does not have; for CUDA alone."""
        return QuantizedKernels(self.torch_device)

    def scale(
        self, scales: Tensor, global_scale: Tensor | None, scheme: QuantScheme, dtype: torch.dtype
    ) -> Tensor | None:
        """Scales times the global one, as floats; None if this torch lacks their dtype."""
        scale = numbers_of_scales(scales, scheme.scale_dtype, dtype)
        if scale is None or global_scale is None:
            return scale
        return scale * global_scale.to(dtype)


def _wide(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which numbers are quantized and restored."""
    return torch.float64 if dtype is torch.float64 else torch.float32


def _may_overflow(scale: Tensor, code: float) -> bool:
    """Whether a product of a scale and the greatest code is infinite, or a scale is not finite."""
    return not torch.isfinite(scale * code).all()


def _check_dtype(x: Tensor, dtype: DType) -> None:
    """Raise for another dtype; what is wrong is said by `infer` of the op."""
    if BURN_DTYPES.get(x.dtype) is not dtype:
        raise TypeError(f"{x.dtype} instead of {dtype}")


def check_scales(
    scales: Tensor, global_scale: Tensor | None, shape: tuple[int, ...], scheme: QuantScheme
) -> None:
    """Raise for scales that are not those of a tensor of a shape."""
    of_global = None if global_scale is None else (global_scale.shape, global_scale.dtype)
    _check_scales(scales.shape, scales.dtype, of_global, shape, scheme)


def stored_shape(
    values: Tensor, scales: Tensor, global_scale: Tensor | None, scheme: QuantScheme
) -> tuple[int, ...]:
    """The shape of a tensor that is stored, an error for what does not fit."""
    of_global = None if global_scale is None else (global_scale.shape, global_scale.dtype)
    return _stored_shape(values.shape, values.dtype, scales.shape, scales.dtype, of_global, scheme)


@functools.lru_cache(maxsize=1024)
def _stored_shape(
    values: torch.Size,
    dtype: torch.dtype,
    scales: torch.Size,
    scale_dtype: torch.dtype,
    of_global: tuple[torch.Size, torch.dtype] | None,
    scheme: QuantScheme,
) -> tuple[int, ...]:
    if BURN_DTYPES.get(dtype) is not scheme.storage_dtype:
        raise TypeError(f"codes of {dtype} instead of {scheme.storage_dtype}")
    shape = scheme.logical_shape(tuple(values))
    scheme.check(shape)
    _check_scales(scales, scale_dtype, of_global, shape, scheme)
    return shape


@functools.lru_cache(maxsize=1024)
def _check_scales(
    scales: torch.Size,
    dtype: torch.dtype,
    of_global: tuple[torch.Size, torch.dtype] | None,
    shape: tuple[int, ...],
    scheme: QuantScheme,
) -> None:
    if BURN_DTYPES.get(dtype) is not scheme.scale_dtype.storage:
        raise TypeError(f"scales of {dtype} instead of {scheme.scale_dtype.storage}")
    if tuple(scales) != scheme.scales_shape(shape):
        raise ValueError(f"scales of shape {tuple(scales)} for a tensor of shape {shape}")
    if (of_global is not None) is not scheme.level.is_global:
        raise ValueError(f"{scheme} with global scale {of_global}")
    if of_global is not None and of_global != ((1,), torch.float32):
        raise ValueError(f"global scale {of_global}")
