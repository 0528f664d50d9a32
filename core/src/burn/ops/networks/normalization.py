"""Normalization to mean 0 and variance 1, with learned parameters.

``gamma`` scales and ``beta`` shifts; both may be None. Variances are those of the population
(divided by n), as training uses them.
"""

from __future__ import annotations

from burn.errors import ShapeError
from burn.ops._precision import in_float32
from burn.ops.arrays.indexing import check_same_shape
from burn.ops.batching import first_of, leading_axes_of, merging
from burn.ops.op import Context, op
from burn.ops.shapes import size
from burn.ops.signature import (
    Cotangent,
    FloatOperand,
    Gradients,
    Meta,
    Number,
    OptionalFloat,
    Primitive,
    Shape,
)
from burn.ops.table import OpTable


@op(fuses="decomposition")
def layer_norm(
    x: FloatOperand, gamma: OptionalFloat, beta: OptionalFloat, *, epsilon: Number
) -> Meta:
    """``(x - mean) / sqrt(variance + epsilon) * gamma + beta`` over the last axis.

    `gamma` and `beta` have one element for each index of that axis (Ba et al., 2016,
    arXiv:1607.06450).
    """
    check_last_axis(x.shape, gamma=gamma, beta=beta)
    return x


@layer_norm.decomposition
@in_float32
def _(
    ops: OpTable,
    x: Primitive,
    gamma: Primitive | None,
    beta: Primitive | None,
    *,
    epsilon: float,
) -> Primitive:
    check_last_axis(tuple(x.shape), gamma=gamma, beta=beta)
    normal, _ = _normalized_rows(ops, x, epsilon)
    if gamma is not None:
        normal = ops.multiply(normal, gamma)
    return normal if beta is None else ops.add(normal, beta)


@layer_norm.gradient(saves=("x", "gamma"))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    x, gamma = ctx.saved
    gradients = ops.layer_norm_grad(x, gamma, g, epsilon=ctx.attrs["epsilon"])
    return tuple(
        [
            gradient if needed else None
            for gradient, needed in zip(gradients, ctx.needs, strict=True)
        ]
    )


layer_norm.batching(leading_axes_of("x"))


@op(outputs=("x_gradient", "gamma_gradient", "beta_gradient"), fuses="decomposition")
def layer_norm_grad(
    x: FloatOperand, gamma: OptionalFloat, g: FloatOperand, *, epsilon: Number
) -> tuple[Meta, Meta, Meta]:
    """Gradients of `layer_norm` by `x`, `gamma` and `beta`.

    The last two are also computed where there is no `gamma`.
    """
    length = check_last_axis(x.shape, gamma=gamma)
    check_same_shape("g", g.shape, x.shape)
    parameter = Meta((length,), x.dtype)
    return x, parameter, parameter


@layer_norm_grad.decomposition
@in_float32
def _(
    ops: OpTable, x: Primitive, gamma: Primitive | None, g: Primitive, *, epsilon: float
) -> tuple[Primitive, Primitive, Primitive]:
    check_last_axis(tuple(x.shape), gamma=gamma)
    check_same_shape("g", tuple(g.shape), tuple(x.shape))
    last = len(x.shape) - 1
    normal, inverse = _normalized_rows(ops, x, epsilon)
    product = ops.multiply(g, normal)
    weighted, weighted_product = g, product
    if gamma is not None:
        weighted, weighted_product = ops.multiply(g, gamma), ops.multiply(product, gamma)
    # The output is constant along changes of the mean and the variance: remove these directions.
    along_mean = ops.mean(weighted, axis=(last,), keepdims=True)
    along_variance = ops.mean(weighted_product, axis=(last,), keepdims=True)
    rest = ops.subtract(ops.subtract(weighted, along_mean), ops.multiply(normal, along_variance))
    return (
        ops.multiply(rest, inverse),
        _sum(ops, product, tuple(range(last))),
        _sum(ops, g, tuple(range(last))),
    )


def _normalized_rows(ops: OpTable, x: Primitive, epsilon: float) -> tuple[Primitive, Primitive]:
    """Rows with mean 0 and variance 1, and the factor that made the variance 1."""
    axis = (len(x.shape) - 1,)
    distance = ops.subtract(x, ops.mean(x, axis=axis, keepdims=True))
    inverse = _inverse_deviation(
        ops, ops.mean(ops.multiply(distance, distance), axis=axis, keepdims=True), epsilon
    )
    return ops.multiply(distance, inverse), inverse


@op(fuses="decomposition")
def rms_norm(x: FloatOperand, gamma: OptionalFloat, *, epsilon: Number) -> Meta:
    """``x / sqrt(mean(x**2) + epsilon) * gamma`` over the last axis.

    `gamma` has one element for each index of that axis (Zhang and Sennrich, 2019,
    arXiv:1910.07467).
    """
    check_last_axis(x.shape, gamma=gamma)
    return x


@rms_norm.decomposition
@in_float32
def _(ops: OpTable, x: Primitive, gamma: Primitive | None, *, epsilon: float) -> Primitive:
    check_last_axis(tuple(x.shape), gamma=gamma)
    squares = ops.mean(ops.multiply(x, x), axis=(len(x.shape) - 1,), keepdims=True)
    normal = ops.multiply(x, _inverse_deviation(ops, squares, epsilon))
    return normal if gamma is None else ops.multiply(normal, gamma)


rms_norm.batching(leading_axes_of("x"))


@op()
def batch_norm(
    x: FloatOperand,
    gamma: OptionalFloat,
    beta: OptionalFloat,
    mean: FloatOperand,
    variance: FloatOperand,
    *,
    epsilon: Number,
) -> Meta:
    """``(x - mean) / sqrt(variance + epsilon) * gamma + beta`` with known statistics.

    All but `x` have one element for each channel, along axis 1 of `x`.
    """
    check_channels(x.shape, gamma=gamma, beta=beta, mean=mean, variance=variance)
    return x


@batch_norm.decomposition
@in_float32
def _(
    ops: OpTable,
    x: Primitive,
    gamma: Primitive | None,
    beta: Primitive | None,
    mean: Primitive,
    variance: Primitive,
    *,
    epsilon: float,
) -> Primitive:
    shape = tuple(x.shape)
    check_channels(shape, gamma=gamma, beta=beta, mean=mean, variance=variance)
    factor = _inverse_deviation(ops, variance, epsilon)
    if gamma is not None:
        factor = ops.multiply(factor, gamma)
    # The mean goes first: a factor of both would lose the digits in which they differ.
    distance = ops.subtract(x, _per_channel(ops, mean, shape))
    scaled = ops.multiply(distance, _per_channel(ops, factor, shape))
    return scaled if beta is None else ops.add(scaled, _per_channel(ops, beta, shape))


batch_norm.batching(
    first_of(merging(x=0), merging(x=1, gamma=0, beta=0, mean=0, variance=0, outputs=(1,)))
)


@op(outputs=("output", "mean", "variance"))
def batch_norm_training(
    x: FloatOperand, gamma: OptionalFloat, beta: OptionalFloat, *, epsilon: Number
) -> tuple[Meta, Meta, Meta]:
    """`batch_norm` with the mean and the variance of each channel of `x` itself, and these two.

    (Ioffe and Szegedy, 2015, arXiv:1502.03167.)
    """
    channels = check_channels(x.shape, gamma=gamma, beta=beta)
    statistic = Meta((channels,), x.dtype)
    return x, statistic, statistic


@batch_norm_training.decomposition
@in_float32
def _(
    ops: OpTable,
    x: Primitive,
    gamma: Primitive | None,
    beta: Primitive | None,
    *,
    epsilon: float,
) -> tuple[Primitive, Primitive, Primitive]:
    shape = tuple(x.shape)
    check_channels(shape, gamma=gamma, beta=beta)
    axis = _beside_channels(shape)
    mean = ops.mean(x, axis=axis, keepdims=False)
    distance = ops.subtract(x, _per_channel(ops, mean, shape))
    variance = ops.mean(ops.multiply(distance, distance), axis=axis, keepdims=False)
    factor = _inverse_deviation(ops, variance, epsilon)
    if gamma is not None:
        factor = ops.multiply(factor, gamma)
    scaled = ops.multiply(distance, _per_channel(ops, factor, shape))
    output = scaled if beta is None else ops.add(scaled, _per_channel(ops, beta, shape))
    return output, mean, variance


@batch_norm_training.gradient(saves=("x", "gamma", "mean", "variance"))
def _(
    ops: OpTable,
    ctx: Context,
    g: Cotangent | None,
    g_mean: Cotangent | None,
    g_variance: Cotangent | None,
) -> Gradients:
    x, gamma, mean, variance = ctx.saved
    to_x = to_gamma = to_beta = None
    if g is not None:
        to_x, to_gamma, to_beta = ops.batch_norm_grad(
            x, gamma, mean, variance, g, epsilon=ctx.attrs["epsilon"]
        )
    shape = tuple(x.shape)
    count = float(_count_per_channel(shape) or 1)
    if g_mean is not None:
        part = _per_channel(ops, ops.divide(g_mean, count), shape)
        to_x = ops.expand(part, shape=shape) if to_x is None else ops.add(to_x, part)
    if g_variance is not None:
        factor = _per_channel(ops, ops.multiply(g_variance, 2.0 / count), shape)
        part = ops.multiply(ops.subtract(x, _per_channel(ops, mean, shape)), factor)
        to_x = part if to_x is None else ops.add(to_x, part)
    gradients = (to_x, to_gamma, to_beta)
    return tuple(
        [
            gradient if needed else None
            for gradient, needed in zip(gradients, ctx.needs, strict=True)
        ]
    )


batch_norm_training.batching(merging(x=1, gamma=0, beta=0, outputs=(1, 0, 0)))


@op(outputs=("x_gradient", "gamma_gradient", "beta_gradient"))
def batch_norm_grad(
    x: FloatOperand,
    gamma: OptionalFloat,
    mean: FloatOperand,
    variance: FloatOperand,
    g: FloatOperand,
    *,
    epsilon: Number,
) -> tuple[Meta, Meta, Meta]:
    """Gradients of the output of `batch_norm_training` by `x`, `gamma` and `beta`.

    The last two are also computed where there is no `gamma`.
    """
    channels = check_channels(x.shape, gamma=gamma, mean=mean, variance=variance)
    check_same_shape("g", g.shape, x.shape)
    parameter = Meta((channels,), x.dtype)
    return x, parameter, parameter


@batch_norm_grad.decomposition
@in_float32
def _(
    ops: OpTable,
    x: Primitive,
    gamma: Primitive | None,
    mean: Primitive,
    variance: Primitive,
    g: Primitive,
    *,
    epsilon: float,
) -> tuple[Primitive, Primitive, Primitive]:
    shape = tuple(x.shape)
    check_channels(shape, gamma=gamma, mean=mean, variance=variance)
    check_same_shape("g", tuple(g.shape), shape)
    axis, count = _beside_channels(shape), float(_count_per_channel(shape) or 1)
    inverse = _inverse_deviation(ops, variance, epsilon)
    distance = ops.subtract(x, _per_channel(ops, mean, shape))
    normal = ops.multiply(distance, _per_channel(ops, inverse, shape))
    to_beta = _sum(ops, g, axis)
    to_gamma = _sum(ops, ops.multiply(g, normal), axis)
    # The output is constant along changes of the mean and the variance: remove these directions.
    along_mean = _per_channel(ops, ops.divide(to_beta, count), shape)
    along_variance = _per_channel(ops, ops.divide(to_gamma, count), shape)
    rest = ops.subtract(ops.subtract(g, along_mean), ops.multiply(normal, along_variance))
    factor = inverse if gamma is None else ops.multiply(inverse, gamma)
    return ops.multiply(rest, _per_channel(ops, factor, shape)), to_gamma, to_beta


batch_norm_grad.batching(merging(x=1, gamma=0, mean=0, variance=0, g=1, outputs=(1, 0, 0)))


def _inverse_deviation(ops: OpTable, variance: Primitive, epsilon: float) -> Primitive:
    return ops.divide(1.0, ops.sqrt(ops.add(variance, epsilon)))


def _sum(ops: OpTable, x: Primitive, axis: tuple[int, ...]) -> Primitive:
    return ops.sum(x, axis=axis, keepdims=False, dtype=ops.dtype(x))


def _per_channel(ops: OpTable, x: Primitive, shape: Shape) -> Primitive:
    """A vector with an element for each channel, to broadcast with a tensor of `shape`."""
    return ops.reshape(x, shape=(shape[1],) + (1,) * (len(shape) - 2))


def _beside_channels(shape: Shape) -> tuple[int, ...]:
    """All axes but that of the channels."""
    return (0, *range(2, len(shape)))


def _count_per_channel(shape: Shape) -> int:
    return size(shape[:1]) * size(shape[2:])


def check_last_axis(shape: Shape, **parameters: Meta | Primitive | None) -> int:
    """Length of the last axis; raises ShapeError unless each parameter has that length."""
    if not shape:
        raise ShapeError("a 0-d tensor has no last axis to normalize over")
    for name, parameter in parameters.items():
        _check_vector(name, parameter, shape[-1], f"the last axis of {shape}")
    return shape[-1]


def check_channels(shape: Shape, **parameters: Meta | Primitive | None) -> int:
    """Number of channels; raises ShapeError unless each parameter has that length."""
    if len(shape) < 2:
        raise ShapeError(
            f"a tensor of shape {shape} has no channels",
            hint="Channels lie along axis 1: the shape is (N, C, ...)",
        )
    for name, parameter in parameters.items():
        _check_vector(name, parameter, shape[1], f"the channels of {shape}")
    return shape[1]


def _check_vector(name: str, parameter: Meta | Primitive | None, length: int, part: str) -> None:
    if parameter is not None and tuple(parameter.shape) != (length,):
        raise ShapeError(
            f"{name} has shape {tuple(parameter.shape)}, which does not fit {part}",
            hint=f"Its shape must be ({length},)",
        )
