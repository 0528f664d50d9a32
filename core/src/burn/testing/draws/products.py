"""Draws of products: lengths of which one more than a tile, and batches of any rank."""

from __future__ import annotations

from typing import Final

import numpy as np

from burn.aliases import Shape
from burn.dtype import Kind
from burn.testing.draws._draw import Draw, Sort, draws
from burn.testing.op_samples import Array, Sample, sample

_MATRICES: Final = (
    (65, 66, 67),
    (3, 129, 65),
    (9, 1025, 8),
    (65, 257, 2),
    (2, 9, 257),
    (257, 9, 2),
)
"""Rows, length of the sums, and columns, which libraries compute in tiles of 32 to 256."""


def _sizes(draw: Draw) -> tuple[int, int, int]:
    if draw.sort is Sort.LONG:
        return _MATRICES[(draw.number // 3) % len(_MATRICES)]
    if draw.sort is Sort.PART:
        return (5, 7, 9)
    low = 0 if draw.sort is Sort.ANY else 1
    return draw.integer(low, 9), draw.integer(low, 9), draw.integer(low, 9)


def _batch(draw: Draw) -> Shape:
    return {Sort.RANK: (2, 3, 2), Sort.ANY: (2, 1, 3)}.get(draw.sort, ())


def _matrix(draw: Draw, *shape: int) -> Array:
    """As it is, or stored by columns, which libraries have other code for."""
    x = draw.noise(*shape) if draw.kind is Kind.FLOAT else draw.values(*shape)
    if draw.sort is Sort.LONG and draw.chance(0.4):
        return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
    return x


@draws("matmul")
def _(draw: Draw) -> Sample | None:
    if draw.sort is Sort.HUGE:  # more matrices than 16 bits count
        return sample("", draw.values(70_001, 1, 2), draw.values(70_001, 2, 1))
    rows, inner, columns = _sizes(draw)
    batch = _batch(draw)
    x, y = (
        _matrix(draw, *draw.broadcastable(batch), *pair)
        for pair in ((rows, inner), (inner, columns))
    )
    return sample("", x, y)


@draws("linear")
def _(draw: Draw) -> Sample | None:
    rows, inner, columns = _sizes(draw)
    bias = draw.floats(columns) if draw.chance(0.6) else None
    transposed = draw.chance(0.5)
    weight = _matrix(draw, *((columns, inner) if transposed else (inner, columns)))
    return sample(
        "", _matrix(draw, *_batch(draw), rows, inner), weight, bias, transposed=transposed
    )


@draws("linear_grad")
def _(draw: Draw) -> Sample | None:
    rows, inner, columns = _sizes(draw)
    batch = _batch(draw)
    x, g = _matrix(draw, *batch, rows, inner), _matrix(draw, *batch, rows, columns)
    return sample("", x, g, transposed=draw.chance(0.5))


@draws("attention", "attention_grad", "attention_bias_grad")
def _(draw: Draw) -> Sample | None:
    """Rows of keys and features beyond those of a tile; masks that leave a query no keys."""
    batch = {Sort.RANK: (2, 3), Sort.PART: (2,)}.get(draw.sort, ())
    queries, keys, features, values = (draw.integer(1, 5) for _ in range(4))
    if draw.sort is Sort.LONG:
        queries, keys, features, values = (34, 33, 3, 2) if draw.number % 2 == 0 else (3, 65, 66, 4)
    operands = [
        draw.floats(*batch, *pair)
        for pair in ((queries, features), (keys, features), (keys, values))
    ]
    scores = (*batch, queries, keys)
    wants_bias = draw.op.name == "attention_bias_grad" or draw.chance(0.4)
    mask = draw.like(np.array([True]), draw.broadcastable(scores)) if draw.chance(0.6) else None
    if mask is not None and mask.ndim > 1 and draw.chance(0.5):
        mask = np.array(mask)
        mask[..., 0, :] = True
    bias = draw.floats(*(scores if draw.chance(0.5) else scores[-2:])) if wants_bias else None
    extra = [] if draw.op.name == "attention" else [draw.floats(*batch, queries, values)]
    return sample(
        "",
        *operands,
        mask,
        bias,
        *extra,
        scale=draw.among(0.5, 0.25, -0.7),
        softcap=draw.among(None, None, 2.0),
        is_causal=draw.chance(0.4),
    )


@draws("solve", "inv", "det", "slogdet", "cholesky", "qr", "lu_decomposition", "solve_triangular")
def _(draw: Draw) -> Sample | None:
    """Well conditioned matrices, larger than the blocks of LAPACK, that need pivots."""
    size = draw.integer(1, 5)
    if draw.sort is Sort.LONG and draw.op.name not in ("inv", "det", "slogdet", "qr"):
        size = 33  # references of others add up all permutations; q and r are ill conditioned
    batch = _batch(draw) if draw.sort is not Sort.LONG else ()
    noise = np.asarray(draw.floats(*batch, size, size)) / (2 * size)
    x = np.eye(size) + noise
    if draw.op.name == "cholesky":
        x = np.eye(size) + (noise + noise.swapaxes(-1, -2)) / 2
    elif draw.op.name != "solve_triangular":
        x = np.roll(x, 1, axis=-2) if size > 1 else x
    operands = [draw.view(x, repeats=False)]
    if draw.op.name in ("solve", "solve_triangular"):
        operands.append(draw.floats(*batch, size, draw.integer(1, 3)))
    attributes = dict(draw.among(*[sample.attributes for sample in draw.samples.samples]))
    return sample("", *operands, **attributes)
