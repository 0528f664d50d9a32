"""Quantized tensors: from numbers to codes and scales and back, and products with codes.

These ops take the stored codes and scales of a quantized tensor as ordinary tensors, and its
`QuantScheme` as an attribute. Which of them an op on quantized tensors becomes is the matter of
`burn.quantization`.

Numbers are quantized and restored in float32, in float64 if they are float64. The product of a
block's scale and the global scale is rounded once to that dtype, as is the quotient of a number and
its scale; the restored number, code times scale, is rounded once, and once more to a 16-bit dtype.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Annotated, TypeAlias

from burn.dtype import DType, Kind, float32, float64, int8, uint8
from burn.errors import DTypeError, ShapeError
from burn.ops._quantized_codes import (
    decode_codes,
    decode_scales,
    encode_codes,
    encode_scales,
    pack,
    split_shapes,
    unpack,
)
from burn.ops.batching import leading_axes_of
from burn.ops.dense import embedding, linear
from burn.ops.index_arithmetic import mark_invalid_labels
from burn.ops.layout import cast
from burn.ops.linear_algebra import matmul
from burn.ops.op import Context, Tag, op
from burn.ops.quantized_primitive import QuantizedPrimitive, is_quantized
from burn.ops.shapes import size
from burn.ops.signature import (
    Cotangent,
    Flag,
    FloatOperand,
    Gradients,
    Meta,
    Operand,
    OptionalFloat,
    Primitive,
    Scheme,
    Shape,
    TargetDType,
)
from burn.ops.table import OpTable
from burn.quant_scheme import QuantScheme, QuantStore

Codes: TypeAlias = Annotated[Meta, Operand(Kind.INTEGER, promotes=False)]
Scales: TypeAlias = Annotated[Meta, Operand(Kind("fu"), promotes=False)]
OptionalScale: TypeAlias = Annotated[
    Meta | None, Operand(Kind.FLOAT, promotes=False, optional=True)
]


@op(Tag.NO_GRADIENT)
def quantize_values(
    x: FloatOperand, scales: Scales, global_scale: OptionalScale, *, scheme: Scheme
) -> Meta:
    """The stored codes of `x`: ``clamp(round(x / scale), low, high)``, halves to even.

    `scales` has shape (1,), or one for each block, in the scheme's dtype; `global_scale` has shape
    (1,) and is there in schemes of two levels. Where a scale is 0, and of NaN, the code is 0.
    """
    scheme.check(x.shape)
    _check_scales(scales, global_scale, x.shape, scheme)
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
    _check_scale_shapes(scales, global_scale, shape, scheme)
    wide = _wide(ops.dtype(x))
    split, ones, _ = split_shapes(scheme, shape)
    scale = ops.reshape(decode_scales(ops, scales, global_scale, scheme, wide), shape=ones)
    is_zero = ops.equal(scale, 0.0)
    numbers = ops.reshape(ops.cast(x, dtype=wide), shape=split)
    quotient = divided(ops, numbers, ops.where(is_zero, 1.0, scale))
    codes = encode_codes(ops, ops.where(is_zero, 0.0, quotient), scheme)
    return pack(ops, ops.reshape(codes, shape=shape), scheme)


@op(Tag.NO_GRADIENT | Tag.COMPUTE_BOUND, outputs=("values", "scales"))
def quantize_dynamic(x: FloatOperand, *, scheme: Scheme) -> tuple[Meta, Meta]:
    """Stored codes and scales of `x`, by the largest magnitude of the tensor or of each block.

    A scale is ``magnitude / ((high - low) / 2)`` rounded up to its dtype. A block with NaN or an
    infinity has such a scale, and is NaN when it is restored.
    """
    scheme.check(x.shape)
    _check_one_level(scheme)
    return (
        Meta(scheme.values_shape(x.shape), scheme.storage_dtype),
        Meta(scheme.scales_shape(x.shape), scheme.scale_dtype.storage),
    )


@quantize_dynamic.decomposition
def _(ops: OpTable, x: Primitive, *, scheme: QuantScheme) -> tuple[Primitive, Primitive]:
    shape = tuple(x.shape)
    scheme.check(shape)
    _check_one_level(scheme)
    wide = _wide(ops.dtype(x))
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

    Of UE8M0 it is the next power of two. What is too large becomes infinite, or NaN.
    """
    return Meta(scales.shape, scheme.scale_dtype.storage)


@round_up_scales.decomposition
def _(ops: OpTable, scales: Primitive, *, scheme: QuantScheme) -> Primitive:
    return encode_scales(ops, ops.cast(scales, dtype=_wide(ops.dtype(scales))), scheme)


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
    shape = _check_codes(values, scheme)
    _check_scales(scales, global_scale, shape, scheme)
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
    _check_scale_shapes(scales, global_scale, shape, scheme)
    wide = _wide(dtype)
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
    return Meta(_check_codes(values, scheme), uint8 if scheme.value.is_float else int8)


@unpack_values.decomposition
def _(ops: OpTable, values: Primitive, *, scheme: QuantScheme) -> Primitive:
    return unpack(ops, values, scheme)


@op(Tag.CONTRACTION | Tag.COMPUTE_BOUND)
def quantized_linear(
    x: FloatOperand,
    values: Codes,
    scales: Scales,
    global_scale: OptionalScale,
    bias: OptionalFloat,
    *,
    scheme: Scheme,
    transposed: Flag = False,
) -> Meta:
    """`linear` of `x` and a quantized weight: its codes, scales and global scale.

    The weight has shape (in, out), or (out, in) if `transposed`.
    """
    shape = _check_codes(values, scheme)
    _check_scales(scales, global_scale, shape, scheme)
    return linear.rule(x, Meta(shape, x.dtype), bias, transposed=transposed)  # type: ignore[no-any-return]  # a rule


@quantized_linear.decomposition
def _(
    ops: OpTable,
    x: Primitive,
    values: Primitive,
    scales: Primitive,
    global_scale: Primitive | None,
    bias: Primitive | None,
    *,
    scheme: QuantScheme,
    transposed: bool = False,
) -> Primitive:
    weight = ops.dequantize_values(values, scales, global_scale, scheme=scheme, dtype=ops.dtype(x))
    return ops.linear(x, weight, bias, transposed=transposed)


@quantized_linear.gradient(
    saves={
        "x": ("values", "scales", "global_scale"),
        "scales": ("x", "values", "global_scale"),
        "global_scale": ("x", "values", "scales"),
        "bias": (),
    }
)
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    # The weight is restored again: a model in few bits has no room for one in floats.
    x, values, scales, global_scale = ctx.saved
    scheme, transposed = ctx.attrs["scheme"], ctx.attrs.get("transposed", False)
    dtype = ops.dtype(g)
    to_x = to_scales = to_global = to_bias = None
    if ctx.needs[0]:
        weight = ops.dequantize_values(values, scales, global_scale, scheme=scheme, dtype=dtype)
        to_x = ops.linear(g, weight, None, transposed=not transposed)
    if ctx.needs[2] or ctx.needs[3]:
        to_weight, _ = ops.linear_grad(x, g, transposed=transposed)
        wide = _wide(dtype)
        shape = tuple(to_weight.shape)
        split, ones, axes = split_shapes(scheme, shape)
        codes = decode_codes(ops, unpack(ops, values, scheme), scheme, wide)
        part = ops.multiply(ops.cast(to_weight, dtype=wide), codes)
        total = ops.sum(ops.reshape(part, shape=split), axis=axes, keepdims=True, dtype=wide)
        if ctx.needs[2]:
            to_scales = total if global_scale is None else ops.multiply(total, global_scale)
            to_scales = ops.reshape(to_scales, shape=tuple(scales.shape))
            to_scales = ops.cast(to_scales, dtype=ops.dtype(scales))
        if ctx.needs[3]:
            scale = ops.reshape(decode_scales(ops, scales, None, scheme, wide), shape=ones)
            to_global = ops.multiply(total, scale)
            everything = tuple(range(len(ones)))
            to_global = ops.sum(to_global, axis=everything, keepdims=False, dtype=wide)
            to_global = ops.cast(ops.reshape(to_global, shape=(1,)), dtype=float32)
    if ctx.needs[4]:
        leading = tuple(range(len(g.shape) - 1))
        to_bias = ops.sum(g, axis=leading, keepdims=False, dtype=dtype) if leading else g
    return to_x, None, to_scales, to_global, to_bias


quantized_linear.batching(leading_axes_of("x"))


@op(Tag.CONTRACTION | Tag.COMPUTE_BOUND)
def quantized_product(
    a_values: Codes,
    a_scales: Scales,
    b_values: Codes,
    b_scales: Scales,
    bias: OptionalFloat,
    *,
    a_scheme: Scheme,
    b_scheme: Scheme,
    dtype: TargetDType,
    transposed: Flag = False,
) -> Meta:
    """`linear` of two quantized tensors, by their codes and scales, in a float dtype.

    The second has shape (in, out), or (out, in) if `transposed`. Both schemes are of one level. Of
    8-bit floats for a 16-bit result, the sum may have an error of 2**-13 of its magnitudes, as it
    has in tensor cores; else it is as exact as a float32 one.
    """
    _check_one_level(a_scheme)
    _check_one_level(b_scheme)
    shape = _check_codes(a_values, a_scheme)
    weight = _check_codes(b_values, b_scheme)
    _check_scales(a_scales, None, shape, a_scheme)
    _check_scales(b_scales, None, weight, b_scheme)
    if not dtype.is_float:
        raise DTypeError(f"the product of quantized tensors is a float, not {dtype}")
    return linear.rule(Meta(shape, dtype), Meta(weight, dtype), bias, transposed=transposed)  # type: ignore[no-any-return]  # a rule


@quantized_product.decomposition
def _(
    ops: OpTable,
    a_values: Primitive,
    a_scales: Primitive,
    b_values: Primitive,
    b_scales: Primitive,
    bias: Primitive | None,
    *,
    a_scheme: QuantScheme,
    b_scheme: QuantScheme,
    dtype: DType,
    transposed: bool = False,
) -> Primitive:
    _check_one_level(a_scheme)
    _check_one_level(b_scheme)
    wide = _wide(dtype)
    a = ops.dequantize_values(a_values, a_scales, None, scheme=a_scheme, dtype=wide)
    b = ops.dequantize_values(b_values, b_scales, None, scheme=b_scheme, dtype=wide)
    if bias is not None and wide is not dtype:
        bias = ops.cast(bias, dtype=wide)
    product = ops.linear(a, b, bias, transposed=transposed)
    return product if wide is dtype else ops.cast(product, dtype=dtype)


quantized_product.batching(leading_axes_of())  # none: by its parts, for all that may be batched


def _wide(dtype: DType) -> DType:
    """The dtype in which numbers are quantized and restored."""
    return float64 if dtype is float64 else float32


def _check_codes(values: Meta, scheme: QuantScheme) -> Shape:
    """Shape of the tensor that codes stand for."""
    if values.dtype is not scheme.storage_dtype:
        raise DTypeError(f"the codes of {scheme} are {scheme.storage_dtype}, got {values.dtype}")
    shape = scheme.logical_shape(values.shape)
    scheme.check(shape)
    return shape


def _check_scales(
    scales: Meta, global_scale: Meta | None, shape: Shape, scheme: QuantScheme
) -> None:
    storage = scheme.scale_dtype.storage
    if scales.dtype is not storage:
        raise DTypeError(f"the scales of {scheme} are {storage}, got {scales.dtype}")
    if global_scale is not None and global_scale.dtype is not float32:
        raise DTypeError(f"a global scale is float32, got {global_scale.dtype}")
    _check_scale_shapes(scales, global_scale, shape, scheme)


def _check_scale_shapes(
    scales: Meta | Primitive,
    global_scale: Meta | Primitive | None,
    shape: Shape,
    scheme: QuantScheme,
) -> None:
    expected, found = scheme.scales_shape(shape), tuple(scales.shape)
    if found != expected:
        raise ShapeError(
            f"the scales of {scheme} for a tensor of shape {shape} have shape {expected}, got "
            f"{found}"
        )
    if (global_scale is not None) is not scheme.level.is_global:
        has = "needs a" if scheme.level.is_global else "has no"
        raise ShapeError(f"{scheme} {has} global scale")
    if global_scale is not None and tuple(global_scale.shape) != (1,):
        raise ShapeError(f"a global scale has shape (1,), got {tuple(global_scale.shape)}")


def _check_one_level(scheme: QuantScheme) -> None:
    if scheme.level.is_global:
        raise ShapeError(
            f"{scheme} has two levels",
            hint="Scales of one level are computed here; dequantize first, or use one level",
        )


@linear.on_quantized
def _linear(
    ops: OpTable,
    dtype: DType,
    x: Primitive,
    weight: Primitive,
    bias: Primitive | None,
    *,
    transposed: bool = False,
) -> Primitive:
    if not is_quantized(weight) or is_quantized(bias) or len(weight.shape) != 2:
        return NotImplemented
    if _runs_along_first_axis(weight.scheme, weight.shape):
        weight, transposed = _transposed(ops, weight), not transposed
    if not is_quantized(x):
        return ops.quantized_linear(
            x,
            weight.values,
            weight.scales,
            weight.global_scale,
            bias,
            scheme=weight.scheme,
            transposed=transposed,
        )
    if x.scheme.level.is_global or weight.scheme.level.is_global:
        return NotImplemented
    return ops.quantized_product(
        x.values,
        x.scales,
        weight.values,
        weight.scales,
        bias,
        a_scheme=x.scheme,
        b_scheme=weight.scheme,
        dtype=dtype,
        transposed=transposed,
    )


@functools.lru_cache(maxsize=4096)
def _runs_along_first_axis(scheme: QuantScheme, shape: Shape) -> bool:
    """Whether words or blocks of a matrix lie along its first axis, as in the transpose of one.

    Kernels are for those along the last axis.
    """
    if scheme.per_word > 1:
        return scheme.store.axis == -2
    first, last = scheme.blocks(shape)
    return bool(scheme.level.block) and first > last == 1


def _transposed(ops: OpTable, x: QuantizedPrimitive) -> QuantizedPrimitive:
    """The transpose of a quantized matrix: of its codes and scales."""
    scheme = x.scheme
    scales = x.scales
    if scheme.per_word > 1:
        scheme = scheme.with_store(QuantStore(scheme.store.kind, -3 - scheme.store.axis))
    if scheme.level.block:
        block = (1, *scheme.level.block)[-2:]
        scheme = scheme.with_level(replace(scheme.level, block=block[::-1]))
        scales = ops.permute(scales, axes=(1, 0))
    return QuantizedPrimitive(ops.permute(x.values, axes=(1, 0)), scales, x.global_scale, scheme)


@matmul.on_quantized
def _(ops: OpTable, dtype: DType, x1: Primitive, x2: Primitive) -> Primitive:
    if len(x1.shape) < 2 or len(x2.shape) != 2:
        return NotImplemented
    return _linear(ops, dtype, x1, x2, None)


@embedding.on_quantized
def _(ops: OpTable, dtype: DType, weight: Primitive, indices: Primitive) -> Primitive:
    # Rows of codes and scales are picked, so that the table is not restored as a whole.
    if not is_quantized(weight) or len(weight.shape) != 2:
        return NotImplemented
    scheme, shape = weight.scheme, tuple(indices.shape)
    block = scheme.blocks(weight.shape)
    if (scheme.per_word > 1 and scheme.store.axis == -2) or (scheme.level.block and block[0] != 1):
        return NotImplemented
    labels = ops.reshape(mark_invalid_labels(ops, indices), shape=(size(shape),))
    rows = [ops.select(weight.values, labels, axis=0), weight.scales]
    if scheme.level.block:
        rows[1] = ops.select(weight.scales, labels, axis=0)
    found = ops.dequantize_values(*rows, weight.global_scale, scheme=scheme, dtype=dtype)
    return ops.reshape(found, shape=(*shape, weight.shape[1]))


@cast.on_quantized
def _(ops: OpTable, own: DType, x: Primitive, *, dtype: DType) -> Primitive:
    del own
    return x.dequantized(ops, dtype) if dtype.is_float else NotImplemented
