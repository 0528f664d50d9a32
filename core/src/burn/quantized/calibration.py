"""Calibration: from the numbers of a tensor, or of its blocks, to ranges, and from those to scales.

These work on primitives, by a table of ops.
"""

from __future__ import annotations

import enum
from typing import Final

from burn.aliases import Primitive
from burn.dtype import DType, float32
from burn.errors import ArgumentError
from burn.ops import OpTable, decode_scales, split_shapes, wide_of
from burn.ops.quantized.quantization import divided
from burn.ops.quantized_primitive import QuantizedPrimitive
from burn.ops.shapes import size
from burn.quant_scheme import QuantLevel, QuantScheme

__all__ = [
    "Calibration",
    "compute_parameters",
    "compute_range",
    "decoded",
    "quantize",
    "quantize_dynamic",
]

_SMALLEST_NORMAL: Final = 2.0**-126
"""Of float32: the least global scale."""

_LEAST_SHARE: Final = 40
"""Hundredths of the largest magnitude: the least that a range of least error ends at. Weights of 2
bits want about half, of more bits more.
"""


class Calibration(enum.Enum):
    """How the range of a tensor or block is found."""

    MIN_MAX = "minmax"
    """From the smallest to the largest number."""

    ABS_MEAN = "absmean"
    """From -m to m, where m is the mean of the magnitudes (BitNet b1.58, section 2): for Q2S."""

    MIN_ERROR = "minerror"
    """From -m to m, where m is the share of the largest magnitude, of 1, 0.98, ... 0.4, with the
    least sum of squared errors: numbers beyond are clamped, and all others rounded less.
    """


def compute_range(
    ops: OpTable, x: Primitive, scheme: QuantScheme, calibration: Calibration
) -> tuple[Primitive, Primitive]:
    """Least and greatest number of the tensor, shape (1,), or of each block.

    Numbers are float32, float64 of float64. Ranges of no numbers are 0 to 0.

    Raises
    ------
    ArgumentError
        For the mean of magnitudes and a scheme of two levels.
    """
    shape = tuple(x.shape)
    scheme.check(shape)
    wide = wide_of(ops.dtype(x))
    if calibration is Calibration.ABS_MEAN and scheme.level.is_global:
        raise ArgumentError(
            f"{scheme} has two levels, and the mean of magnitudes is for one",
            hint="Use Calibration.MIN_MAX, or one level",
        )
    target = scheme.scales_shape(shape)
    if not size(shape):
        zero = ops.full(shape=target, fill_value=0.0, dtype=wide)
        return zero, zero
    split, _, axes = split_shapes(scheme, shape)
    x = ops.reshape(ops.cast(x, dtype=wide), shape=split)
    if calibration is Calibration.ABS_MEAN:
        magnitude = ops.abs(x)
        mean = ops.reshape(ops.mean(magnitude, axis=axes) if axes else magnitude, shape=target)
        return ops.negative(mean), mean
    if calibration is Calibration.MIN_ERROR:
        least_error = _least_error(ops, ops.reshape(x, shape=shape), scheme)
        return ops.negative(least_error), least_error
    if not axes:
        x = ops.reshape(x, shape=target)
        return x, x
    low, high = ops.min(x, axis=axes), ops.max(x, axis=axes)
    return ops.reshape(low, shape=target), ops.reshape(high, shape=target)


def _least_error(ops: OpTable, x: Primitive, scheme: QuantScheme) -> Primitive:
    """Of each block, the share of its largest magnitude whose scale has the least squared error."""
    shape, wide = tuple(x.shape), ops.dtype(x)
    plain = scheme.native.with_level(QuantLevel(scheme.level.block))  # errors of one level
    split, _, axes = split_shapes(plain, shape)
    target = plain.scales_shape(shape)
    magnitude = ops.abs(ops.reshape(x, shape=split))
    magnitude = ops.reshape(ops.max(magnitude, axis=axes) if axes else magnitude, shape=target)
    found, error = magnitude, None
    for hundredths in range(100, _LEAST_SHARE - 1, -2):
        bound = ops.multiply(magnitude, hundredths / 100)
        scales, _ = compute_parameters(ops, bound, bound, plain)
        restored = quantize(ops, x, scales, None, plain).dequantized(ops, wide)
        squares = ops.reshape(ops.square(ops.subtract(restored, x)), shape=split)
        total = ops.reshape(
            ops.sum(squares, axis=axes, dtype=wide) if axes else squares, shape=target
        )
        if error is None:
            error = total
            continue
        is_less = ops.less(total, error)  # false for blocks that are not finite
        found, error = ops.where(is_less, bound, found), ops.where(is_less, total, error)
    return found


def compute_parameters(
    ops: OpTable, low: Primitive, high: Primitive, scheme: QuantScheme
) -> tuple[Primitive, Primitive | None]:
    """Stored scales of ranges, and the global scale of two levels.

    A scale is ``magnitude / ((b - a) / 2)`` for the range [a, b] of the values, where `magnitude`
    is the greater one of the ends. In two levels the global scale is the largest scale divided by
    the largest number of the dtype of scales, and the others are divided by it.
    """
    least, greatest = scheme.value.range
    wide = wide_of(ops.dtype(low))
    magnitude = ops.maximum(ops.abs(ops.cast(low, dtype=wide)), ops.abs(ops.cast(high, dtype=wide)))
    scale = divided(ops, magnitude, (greatest - least) / 2.0)
    if not scheme.level.is_global:
        return ops.round_up_scales(scale, scheme=scheme), None
    if size(scale.shape):
        largest = ops.max(scale, axis=tuple(range(len(scale.shape))))
    else:
        largest = ops.full(shape=(), fill_value=0.0, dtype=wide)
    common = ops.maximum(divided(ops, largest, scheme.scale_dtype.largest), _SMALLEST_NORMAL)
    common = ops.cast(ops.reshape(common, shape=(1,)), dtype=float32)
    divisor = ops.reshape(ops.cast(common, dtype=wide), shape=(1,) * len(scale.shape))
    return ops.round_up_scales(divided(ops, scale, divisor), scheme=scheme), common


def decoded(ops: OpTable, scales: Primitive, scheme: QuantScheme, dtype: DType) -> Primitive:
    """Stored scales as numbers."""
    return decode_scales(ops, scales, None, scheme, dtype)


def quantize(
    ops: OpTable,
    x: Primitive,
    scales: Primitive,
    global_scale: Primitive | None,
    scheme: QuantScheme,
) -> QuantizedPrimitive:
    """A tensor quantized with stored scales."""
    values = ops.quantize_values(x, scales, global_scale, scheme=scheme)
    return QuantizedPrimitive(values, scales, global_scale, scheme)


def quantize_dynamic(ops: OpTable, x: Primitive, scheme: QuantScheme) -> QuantizedPrimitive:
    """A tensor quantized with scales by its own range."""
    if not scheme.level.is_global:
        values, scales = ops.quantize_dynamic(x, scheme=scheme)
        return QuantizedPrimitive(values, scales, None, scheme)
    low, high = compute_range(ops, x, scheme, Calibration.MIN_MAX)
    return quantize(ops, x, *compute_parameters(ops, low, high, scheme), scheme)
