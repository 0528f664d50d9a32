"""Products of quantized tensors, and what `linear`, `matmul` and `embedding` of such become."""

from __future__ import annotations

import functools
from dataclasses import replace

from burn.dtype import DType, float32
from burn.errors import DTypeError
from burn.ops.batching import leading_axes_of
from burn.ops.index_arithmetic import mark_invalid_labels
from burn.ops.linalg.dense import embedding, linear
from burn.ops.linalg.linear_algebra import matmul
from burn.ops.op import Context, Tag, op
from burn.ops.quantized.quantized_codes import decode_codes, decode_scales, split_shapes, unpack
from burn.ops.quantized.quantized_operands import (
    Codes,
    OptionalScale,
    Scales,
    check_codes,
    check_one_level,
    check_scales,
    wide_of,
)
from burn.ops.quantized_primitive import QuantizedPrimitive, is_quantized
from burn.ops.shapes import size
from burn.ops.signature import (
    Cotangent,
    Flag,
    FloatOperand,
    Gradients,
    Meta,
    OptionalFloat,
    Primitive,
    Scheme,
    Shape,
    TargetDType,
)
from burn.ops.table import OpTable
from burn.quant_scheme import QuantScheme, QuantStore


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
    shape = check_codes(values, scheme)
    check_scales(scales, global_scale, shape, scheme)
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
        wide = wide_of(dtype)
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
    check_one_level(a_scheme)
    check_one_level(b_scheme)
    shape = check_codes(a_values, a_scheme)
    weight = check_codes(b_values, b_scheme)
    check_scales(a_scales, None, shape, a_scheme)
    check_scales(b_scales, None, weight, b_scheme)
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
    check_one_level(a_scheme)
    check_one_level(b_scheme)
    wide = wide_of(dtype)
    a = ops.dequantize_values(a_values, a_scales, None, scheme=a_scheme, dtype=wide)
    b = ops.dequantize_values(b_values, b_scales, None, scheme=b_scheme, dtype=wide)
    if bias is not None and wide is not dtype:
        bias = ops.cast(bias, dtype=wide)
    product = ops.linear(a, b, bias, transposed=transposed)
    return product if wide is dtype else ops.cast(product, dtype=dtype)


quantized_product.batching(leading_axes_of())  # none: by its parts, for all that may be batched


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
