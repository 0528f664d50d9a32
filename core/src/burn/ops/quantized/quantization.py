"""Quantized tensors: from numbers to codes and scales and back.

These ops take the stored codes and scales of a quantized tensor as ordinary tensors, and its
`QuantScheme` as an attribute. Which of them an op on quantized tensors becomes is the matter of
`burn.quantized`.

Numbers are quantized and restored in float32, in float64 if they are float64. The product of a
block's scale and the global scale is rounded once to that dtype, as is the quotient of a number and
its scale; the restored number, code times scale, is rounded once, and once more to a 16-bit dtype.
"""

from __future__ import annotations

from burn.dtype import DType, int8, uint8
from burn.errors import DTypeError
from burn.ops.arrays.layout import cast
from burn.ops.op import Tag, op
from burn.ops.quantized.quantized_codes import (
    decode_codes,
    decode_scales,
    encode_codes,
    encode_scales,
    greatest_codes,
    pack,
    split_shapes,
    unpack,
)
from burn.ops.quantized.quantized_operands import (
    Codes,
    OptionalScale,
    Scales,
    check_codes,
    check_one_level,
    check_scale_shapes,
    check_scales,
    wide_of,
)
from burn.ops.shapes import size
from burn.ops.signature import FloatOperand, Meta, Primitive, Scheme, TargetDType
from burn.ops.table import OpTable
from burn.quant_scheme import QuantScheme


@op(Tag.NO_GRADIENT)
def quantize_values(
    x: FloatOperand, scales: Scales, global_scale: OptionalScale, *, scheme: Scheme
) -> Meta:
    """The stored codes of `x`: ``clamp(round(x / scale), low, high)``, halves to even.

    `scales` has shape (1,), or one for each block, in the scheme's dtype; `global_scale` has shape
    (1,) and is there in schemes of two levels. Where a scale is 0, and of NaN, the code is 0. A
    code whose product with the scale is infinite becomes the next one whose product is not.
    """
    scheme.check(x.shape)
    check_scales(scales, global_scale, x.shape, scheme)
    return Meta(scheme.values_shape(x.shape), scheme.storage_dtype)


@quantize_values.decomposition
def _(
    ops: OpTable,
    x: Primitive,
    scales: Primitive,
    global_scale: Primitive | None,
    *,
    scheme: QuantScheme,
) -> Primitive:
    shape = tuple(x.shape)
    scheme.check(shape)
    check_scale_shapes(scales, global_scale, shape, scheme)
    wide = wide_of(ops.dtype(x))
    split, ones, _ = split_shapes(scheme, shape)
    scale = ops.reshape(decode_scales(ops, scales, global_scale, scheme, wide), shape=ones)
    is_zero = ops.equal(scale, 0.0)
    numbers = ops.reshape(ops.cast(x, dtype=wide), shape=split)
    quotient = divided(ops, numbers, ops.where(is_zero, 1.0, scale))
    most = greatest_codes(ops, scale, scheme)
    codes = encode_codes(ops, ops.where(is_zero, 0.0, quotient), scheme, most)
    return pack(ops, ops.reshape(codes, shape=shape), scheme)


@op(Tag.NO_GRADIENT | Tag.COMPUTE_BOUND, outputs=("values", "scales"))
def quantize_dynamic(x: FloatOperand, *, scheme: Scheme) -> tuple[Meta, Meta]:
    """Stored codes and scales of `x`, by the largest magnitude of the tensor or of each block.

    A scale is ``magnitude / ((high - low) / 2)`` rounded up to its dtype, and is the largest
    number of that at most: larger values are clamped. A block with NaN or an infinity has such a
    scale, and is NaN when it is restored.
    """
    scheme.check(x.shape)
    check_one_level(scheme)
    return (
        Meta(scheme.values_shape(x.shape), scheme.storage_dtype),
        Meta(scheme.scales_shape(x.shape), scheme.scale_dtype.storage),
    )


@quantize_dynamic.decomposition
def _(ops: OpTable, x: Primitive, *, scheme: QuantScheme) -> tuple[Primitive, Primitive]:
    shape = tuple(x.shape)
    scheme.check(shape)
    check_one_level(scheme)
    wide = wide_of(ops.dtype(x))
    low, high = scheme.value.range
    if size(shape):
        split, _, axes = split_shapes(scheme, shape)
        magnitude = ops.abs(ops.reshape(ops.cast(x, dtype=wide), shape=split))
        magnitude = ops.max(magnitude, axis=axes) if axes else magnitude
        scale = divided(ops, magnitude, (high - low) / 2.0)
        scale = ops.reshape(scale, shape=scheme.scales_shape(shape))
    else:
        scale = ops.full(shape=scheme.scales_shape(shape), fill_value=0.0, dtype=wide)
    scales = encode_scales(ops, scale, scheme)
    return ops.quantize_values(x, scales, None, scheme=scheme), scales


def divided(ops: OpTable, x: Primitive, divisor: Primitive | float) -> Primitive:
    """A quotient that is rounded once.

    Libraries multiply by the reciprocal of a number, and generated kernels by that of what a row
    has once: so the divisor is a tensor which depends on each element.
    """
    if isinstance(divisor, float):
        divisor = ops.full(shape=(1,) * len(x.shape), fill_value=divisor, dtype=ops.dtype(x))
    return ops.divide(x, ops.where(ops.isnan(x), 1.0, divisor))


@op(Tag.NO_GRADIENT)
def round_up_scales(scales: FloatOperand, *, scheme: Scheme) -> Meta:
    """Scales in the scheme's dtype: each is the least number of it that is not below.

    Of UE8M0 it is the next power of two. What is larger than all becomes the largest one; what is
    infinite or NaN stays so, and is NaN in the dtypes of 8 bits.
    """
    return Meta(scales.shape, scheme.scale_dtype.storage)


@round_up_scales.decomposition
def _(ops: OpTable, scales: Primitive, *, scheme: QuantScheme) -> Primitive:
    return encode_scales(ops, ops.cast(scales, dtype=wide_of(ops.dtype(scales))), scheme)


@op()
def dequantize_values(
    values: Codes,
    scales: Scales,
    global_scale: OptionalScale,
    *,
    scheme: Scheme,
    dtype: TargetDType,
) -> Meta:
    """The numbers of stored codes: ``code * scale``, times the global scale if there is one."""
    shape = check_codes(values, scheme)
    check_scales(scales, global_scale, shape, scheme)
    if not dtype.is_float:
        raise DTypeError(f"quantized tensors stand for floats, not for {dtype}")
    return Meta(shape, dtype)


@dequantize_values.decomposition
def _(
    ops: OpTable,
    values: Primitive,
    scales: Primitive,
    global_scale: Primitive | None,
    *,
    scheme: QuantScheme,
    dtype: DType,
) -> Primitive:
    shape = scheme.logical_shape(tuple(values.shape))
    scheme.check(shape)
    check_scale_shapes(scales, global_scale, shape, scheme)
    wide = wide_of(dtype)
    split, ones, _ = split_shapes(scheme, shape)
    scale = ops.reshape(decode_scales(ops, scales, global_scale, scheme, wide), shape=ones)
    numbers = decode_codes(ops, unpack(ops, values, scheme), scheme, wide)
    product = ops.reshape(ops.multiply(ops.reshape(numbers, shape=split), scale), shape=shape)
    return product if wide is dtype else ops.cast(product, dtype=dtype)


@op(Tag.NO_GRADIENT)
def pack_values(codes: Codes, *, scheme: Scheme) -> Meta:
    """Codes, an element for each, as the scheme stores them."""
    native = uint8 if scheme.value.is_float else int8
    if codes.dtype is not native:
        raise DTypeError(f"codes of {scheme.value.name} are {native}, got {codes.dtype}")
    scheme.check(codes.shape)
    return Meta(scheme.values_shape(codes.shape), scheme.storage_dtype)


@pack_values.decomposition
def _(ops: OpTable, codes: Primitive, *, scheme: QuantScheme) -> Primitive:
    scheme.check(tuple(codes.shape))
    return pack(ops, codes, scheme)


@op(Tag.NO_GRADIENT)
def unpack_values(values: Codes, *, scheme: Scheme) -> Meta:
    """Stored codes, an element for each."""
    return Meta(check_codes(values, scheme), uint8 if scheme.value.is_float else int8)


@unpack_values.decomposition
def _(ops: OpTable, values: Primitive, *, scheme: QuantScheme) -> Primitive:
    return unpack(ops, values, scheme)


@cast.on_quantized
def _(ops: OpTable, own: DType, x: Primitive, *, dtype: DType) -> Primitive:
    del own
    return x.dequantized(ops, dtype) if dtype.is_float else NotImplemented
