"""Discrete Fourier transforms of any length, on tensors of real and of imaginary parts.

``X[k] = sum over j of x[j] exp(-2 pi i j k / n)``; the inverse has the other sign.

The decomposition is that of Cooley and Tukey (1965): a length is split into factors of up to 64,
each of which is one product with a matrix of cosines and sines. Factors that are prime and larger
go through a convolution (L. I. Bluestein, "A linear filtering approach to the computation of the
discrete Fourier transform", 1970).
"""

from __future__ import annotations

import math
from typing import Final

from burn.dtype import int32, int64
from burn.errors import ArgumentError, ShapeError
from burn.ops._precision import in_float32
from burn.ops.batching import leading_axes
from burn.ops.op import Context, Tag, op
from burn.ops.shapes import check_axis, size
from burn.ops.signature import (
    Axis,
    Cotangent,
    Flag,
    FloatOperand,
    Gradients,
    Integer,
    Meta,
    Primitive,
)
from burn.ops.table import OpTable

_MAX_DIRECT_LENGTH: Final = 64
"""Longest transform that is one product with a matrix."""

Pair = tuple[Primitive, Primitive]


@op(Tag.COMPUTE_BOUND, outputs=("re", "im"))
def rfft(x: FloatOperand, *, axis: Axis, n: Integer) -> tuple[Meta, Meta]:
    """Half of the spectrum of a real signal along `axis`: frequencies 0 to ``n // 2``.

    The signal is cropped, or padded with zeros at its end, to `n` elements. The other half of the
    spectrum is the conjugate of this one. Returns the real parts and the imaginary parts.
    """
    spectrum = _resized(x, axis, n, n // 2 + 1)
    return spectrum, spectrum


@rfft.decomposition
@in_float32
def _(ops: OpTable, x: Primitive, *, axis: int, n: int) -> Pair:
    _check_length(axis, len(x.shape), n)
    re, im = _along(ops, x, None, axis, n, -1)
    return resize(ops, re, axis, n // 2 + 1), resize(ops, im, axis, n // 2 + 1)


@rfft.gradient()
def _(ops: OpTable, ctx: Context, g_re: Cotangent, g_im: Cotangent) -> Gradients:
    # The inverse counts each frequency but 0 and n / 2 twice, and divides by n.
    axis, n = ctx.attrs["axis"], ctx.attrs["n"]
    g_re, g_im = both(ops, g_re, g_im)
    weight = ops.divide(float(n), _multiplicity(ops, g_re, axis, n))
    signal = ops.irfft(ops.multiply(g_re, weight), ops.multiply(g_im, weight), axis=axis, n=n)
    return (resize(ops, signal, axis, ctx.shape(0)[axis]),)


rfft.batching(leading_axes)


@rfft.cost
def _(outputs: tuple[Meta, Meta], x: Meta, *, axis: int, n: int) -> int:
    return _flops(outputs[0], axis, n) // 2


@op(Tag.COMPUTE_BOUND)
def irfft(re: FloatOperand, im: FloatOperand, *, axis: Axis, n: Integer) -> Meta:
    """The real signal of `n` elements that has half a spectrum: the inverse of `rfft`.

    The spectrum is cropped, or padded with zeros, to ``n // 2 + 1`` frequencies. The imaginary
    parts of frequency 0, and of n / 2 for an even `n`, count as 0.
    """
    _check_pair(re, im)
    return _resized(re, axis, n, n)


@irfft.decomposition
@in_float32
def _(ops: OpTable, re: Primitive, im: Primitive, *, axis: int, n: int) -> Primitive:
    _check_length(axis, len(re.shape), n)
    _check_same_shape(re, im)
    half = n // 2 + 1
    re, im = (resize(ops, part, axis, half) for part in (re, im))
    if n > 2:
        # Frequency n - k is the conjugate of frequency k.
        mirror = tuple(
            (n - half, n - half, -1) if number == axis else (0, length, 1)
            for number, length in enumerate(re.shape)
        )
        re = ops.concat([re, ops.slice(re, slices=mirror)], axis=axis)
        im = ops.concat([im, ops.negative(ops.slice(im, slices=mirror))], axis=axis)
    signal, _ = _along(ops, re, im, axis, n, 1)
    return ops.divide(signal, float(n))


@irfft.gradient()
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    axis, n = ctx.attrs["axis"], ctx.attrs["n"]
    length = ctx.shape(0 if ctx.needs[0] else 1)[axis]
    g_re, g_im = ops.rfft(g, axis=axis, n=n)
    weight = ops.divide(_multiplicity(ops, g_re, axis, n), float(n))
    return tuple(
        resize(ops, ops.multiply(part, weight), axis, length) if needed else None
        for part, needed in zip((g_re, g_im), ctx.needs, strict=True)
    )


irfft.batching(leading_axes)


@irfft.cost
def _(output: Meta, re: Meta, im: Meta, *, axis: int, n: int) -> int:
    return _flops(output, axis, n) // 2


@op(Tag.COMPUTE_BOUND, outputs=("spectrum_re", "spectrum_im"))
def cfft(
    re: FloatOperand, im: FloatOperand, *, axis: Axis, n: Integer, inverse: Flag = False
) -> tuple[Meta, Meta]:
    """Spectrum of a complex signal along `axis`, cropped or padded with zeros to `n` elements.

    `inverse` changes the sign of the frequencies and does not divide: with a transform
    it multiplies by `n`. Returns the real parts and the imaginary parts.
    """
    _check_pair(re, im)
    spectrum = _resized(re, axis, n, n)
    return spectrum, spectrum


@cfft.decomposition
@in_float32
def _(
    ops: OpTable, re: Primitive, im: Primitive, *, axis: int, n: int, inverse: bool = False
) -> Pair:
    _check_length(axis, len(re.shape), n)
    _check_same_shape(re, im)
    return _along(ops, re, im, axis, n, 1 if inverse else -1)


@cfft.gradient()
def _(ops: OpTable, ctx: Context, g_re: Cotangent, g_im: Cotangent) -> Gradients:
    axis, n = ctx.attrs["axis"], ctx.attrs["n"]
    g_re, g_im = both(ops, g_re, g_im)
    parts = ops.cfft(g_re, g_im, axis=axis, n=n, inverse=not ctx.attrs.get("inverse", False))
    length = ctx.shape(0 if ctx.needs[0] else 1)[axis]
    return tuple(resize(ops, part, axis, length) for part in parts)


cfft.batching(leading_axes)


@cfft.cost
def _(
    outputs: tuple[Meta, Meta], re: Meta, im: Meta, *, axis: int, n: int, inverse: bool = False
) -> int:
    return _flops(outputs[0], axis, n)


def _flops(output: Meta, axis: int, n: int) -> int:
    """Operations of complex transforms of n elements, as M. Frigo and S. G. Johnson count them.

    ("The design and implementation of FFTW3", 2005, section VII; a real transform has half.)
    """
    rows = size(output.shape) // output.shape[axis]
    return round(5 * rows * n * math.log2(n))


def resize(ops: OpTable, x: Primitive, axis: int, length: int) -> Primitive:
    """Crop an axis at its end, or pad it there with zeros."""
    shape = tuple(x.shape)
    if shape[axis] > length:
        slices = tuple(
            (0, length if number == axis else extent, 1) for number, extent in enumerate(shape)
        )
        return ops.slice(x, slices=slices)
    if shape[axis] < length:
        missing = (*shape[:axis], length - shape[axis], *shape[axis + 1 :])
        zeros = ops.full(shape=missing, fill_value=0.0, dtype=ops.dtype(x))
        return ops.concat([x, zeros], axis=axis)
    return x


def both(ops: OpTable, g1: Cotangent, g2: Cotangent) -> Pair:
    """Two cotangents, where zeros replace that of an unused output, which is None."""

    def zeros(like: Primitive) -> Primitive:
        return ops.full(shape=tuple(like.shape), fill_value=0.0, dtype=ops.dtype(like))

    return zeros(g2) if g1 is None else g1, zeros(g1) if g2 is None else g2


def _check_length(axis: int, rank: int, n: int) -> None:
    check_axis(axis, rank)
    if n < 1:
        raise ArgumentError(f"a transform has a length of 1 or more, not {n}")


def _check_pair(re: Meta, im: Meta) -> None:
    if re.shape != im.shape:
        raise ShapeError(f"real parts of shape {re.shape} and imaginary parts of shape {im.shape}")


def _check_same_shape(re: Primitive, im: Primitive) -> None:
    if tuple(re.shape) != tuple(im.shape):
        raise ShapeError("real and imaginary parts have different shapes")


def _resized(x: Meta, axis: int, n: int, length: int) -> Meta:
    _check_length(axis, len(x.shape), n)
    return Meta((*x.shape[:axis], length, *x.shape[axis + 1 :]), x.dtype)


def _multiplicity(ops: OpTable, like: Primitive, axis: int, n: int) -> Primitive:
    """How often a frequency of half a spectrum is in the whole: twice, but once for 0 and n / 2."""
    count = n // 2 + 1
    frequency = ops.arange(start=0, step=1, length=count, dtype=int32)
    alone = ops.equal(ops.remainder(ops.multiply(frequency, 2), n), 0)
    weight = ops.subtract(2.0, ops.cast(alone, dtype=ops.dtype(like)))
    shape = tuple(count if number == axis else 1 for number in range(len(like.shape)))
    return ops.reshape(weight, shape=shape)


def _along(ops: OpTable, re: Primitive, im: Primitive | None, axis: int, n: int, sign: int) -> Pair:
    """Transform along an axis; `im` is None for a real signal."""
    rank = len(re.shape)
    order = (*[number for number in range(rank) if number != axis], axis)
    inverse = tuple(order.index(number) for number in range(rank))

    def rows(x: Primitive | None) -> Primitive | None:
        if x is None:
            return None
        moved = ops.permute(resize(ops, x, axis, n), axes=order)
        return ops.reshape(moved, shape=(size(moved.shape[:-1]), n))

    outer = tuple(length for number, length in enumerate(re.shape) if number != axis)

    def back(x: Primitive) -> Primitive:
        return ops.permute(ops.reshape(x, shape=(*outer, n)), axes=inverse)

    result_re, result_im = _transform(ops, rows(re), rows(im), sign)
    return back(result_re), back(result_im)


def _transform(ops: OpTable, re: Primitive, im: Primitive | None, sign: int) -> Pair:
    """Transform the rows of a matrix; `sign` is that of the exponent."""
    rows, n = re.shape
    if n <= _MAX_DIRECT_LENGTH:
        return _direct(ops, re, im, sign)
    factor = _factor(n)
    if factor == n:
        return _bluestein(ops, re, im, sign)
    # With j = p a + b and k = c + m d for n = p m (Cooley and Tukey):
    # X[c + m d] = sum over b of w_p**(b d) * w_n**(b c) * (sum over a of x[p a + b] w_m**(a c)).
    p, m = factor, n // factor

    def split(x: Primitive | None) -> Primitive | None:
        if x is None:
            return None
        parts = ops.permute(ops.reshape(x, shape=(rows, m, p)), axes=(0, 2, 1))
        return ops.reshape(parts, shape=(rows * p, m))

    pair = _transform(ops, split(re), split(im), sign)
    inner_re, inner_im = (ops.reshape(part, shape=(rows, p, m)) for part in pair)
    cosines, sines = _circle(ops, _products(ops, p, m), n, sign, inner_re)
    twisted = _multiply(ops, inner_re, inner_im, cosines, sines)

    def crosswise(x: Primitive) -> Primitive:
        return ops.reshape(ops.permute(x, axes=(0, 2, 1)), shape=(rows * m, p))

    pair = _transform(ops, crosswise(twisted[0]), crosswise(twisted[1]), sign)

    def joined(x: Primitive) -> Primitive:
        parts = ops.permute(ops.reshape(x, shape=(rows, m, p)), axes=(0, 2, 1))
        return ops.reshape(parts, shape=(rows, n))

    return joined(pair[0]), joined(pair[1])


def _factor(n: int) -> int:
    """The largest factor that is one matrix product, else the smallest prime factor."""
    for factor in range(_MAX_DIRECT_LENGTH, 1, -1):
        if n % factor == 0:
            return factor
    return next((f for f in range(_MAX_DIRECT_LENGTH + 1, math.isqrt(n) + 1) if n % f == 0), n)


def _direct(ops: OpTable, re: Primitive, im: Primitive | None, sign: int) -> Pair:
    n = re.shape[-1]
    turns = ops.remainder(_products(ops, n, n), n)
    cosines, sines = _circle(ops, turns, n, sign, re)
    if im is None:
        return ops.matmul(re, cosines), ops.matmul(re, sines)
    return (
        ops.subtract(ops.matmul(re, cosines), ops.matmul(im, sines)),
        ops.add(ops.matmul(re, sines), ops.matmul(im, cosines)),
    )


def _bluestein(ops: OpTable, re: Primitive, im: Primitive | None, sign: int) -> Pair:
    """As a convolution with a chirp, since ``2 j k = j**2 + k**2 - (k - j)**2``."""
    n = re.shape[-1]
    length = 1 << (2 * n - 2).bit_length()
    # The squares need 64 bits beyond this.
    index = ops.arange(start=0, step=1, length=n, dtype=int32 if n < 46341 else int64)
    turns = ops.remainder(ops.multiply(index, index), 2 * n)
    chirp = _circle(ops, turns, 2 * n, sign, re)
    signal = _multiply(ops, re, im, *chirp)
    padded = [resize(ops, part, 1, length) for part in signal]

    def wrapped(part: Primitive) -> Primitive:
        part = ops.reshape(part, shape=(1, n))
        gap = ops.full(shape=(1, length - 2 * n + 1), fill_value=0.0, dtype=ops.dtype(part))
        return ops.concat(
            [part, gap, ops.slice(part, slices=((0, 1, 1), (n - 1, n - 1, -1)))], axis=1
        )

    kernel = wrapped(chirp[0]), wrapped(ops.negative(chirp[1]))
    signal_re, signal_im = _transform(ops, padded[0], padded[1], -1)
    kernel_re, kernel_im = _transform(ops, kernel[0], kernel[1], -1)
    product = _multiply(ops, signal_re, signal_im, kernel_re, kernel_im)
    folded = [
        ops.divide(resize(ops, part, 1, n), float(length))
        for part in _transform(ops, product[0], product[1], 1)
    ]
    return _multiply(ops, folded[0], folded[1], *chirp)


def _products(ops: OpTable, rows: int, columns: int) -> Primitive:
    """``i * j`` for each row i and column j."""
    row = ops.reshape(ops.arange(start=0, step=1, length=rows, dtype=int32), shape=(rows, 1))
    return ops.multiply(row, ops.arange(start=0, step=1, length=columns, dtype=int32))


def _circle(ops: OpTable, turns: Primitive, n: int, sign: int, like: Primitive) -> Pair:
    """Cosine and sine of ``sign * 2 pi turns / n`` for turns in [0, n)."""
    # In [-pi, pi] an angle is rounded the least.
    nearest = ops.where(ops.greater(turns, n // 2), ops.subtract(turns, n), turns)
    angle = ops.multiply(ops.cast(nearest, dtype=ops.dtype(like)), sign * 2.0 * math.pi / n)
    return ops.cos(angle), ops.sin(angle)


def _multiply(
    ops: OpTable, re: Primitive, im: Primitive | None, cosine: Primitive, sine: Primitive
) -> Pair:
    if im is None:
        return ops.multiply(re, cosine), ops.multiply(re, sine)
    return (
        ops.subtract(ops.multiply(re, cosine), ops.multiply(im, sine)),
        ops.add(ops.multiply(re, sine), ops.multiply(im, cosine)),
    )
