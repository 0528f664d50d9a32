"""Draws of ops that read and write at indices: negative ones, and ones that repeat."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn.aliases import Shape
from burn.testing.draws._draw import Draw, Sort, draws
from burn.testing.op_samples import INDEX_DTYPE, Array, Sample, sample


def _indices(draw: Draw, shape: Shape, length: int) -> Array:
    found = draw.integers(*shape, low=-length, high=length)
    kind = draw.among(np.int64, np.int64, np.int32, np.int16)
    return found if length < 2 else found.astype(kind) if kind is not np.int64 else found


def _values(draw: Draw, x: Array, shape: Shape) -> Array:
    """Updates: near 1, so that many products at one index are no large numbers."""
    if x.dtype.kind == "f" and draw.op.attributes.get("update"):
        return draw.floats(*shape, low=0.5, high=1.5)
    return draw.like(x, shape)


def _update(draw: Draw) -> dict[str, Any]:
    if "update" not in draw.op.attributes:
        return {}
    update = "add" if draw.number == 0 else draw.among("assign", "add", "multiply", "min", "max")
    return {"update": update}


@draws("gather", "scatter_add", "scatter")
def _(draw: Draw) -> Sample | None:
    shape = draw.shape(least=1, empty=False)
    axis = draw.axis(shape)
    count = 1500 // max(1, int(np.prod(shape)) // shape[axis]) if draw.sort is Sort.LONG else None
    count = draw.integer(1, 2 * min(shape[axis], 6)) if count is None else max(count, 1)
    wanted = (*shape[:axis], count, *shape[axis + 1 :])
    x = draw.values(*shape)
    indices = _indices(draw, wanted, shape[axis])
    if draw.op.name == "gather":
        return sample("", x, indices, axis=axis)
    return sample("", x, indices, _values(draw, x, wanted), axis=axis, **_update(draw))


@draws("select", "select_add", "select_assign")
def _(draw: Draw) -> Sample | None:
    shape = draw.shape(least=1, empty=False)
    axis = draw.axis(shape)
    count = draw.integer(1, 7) if draw.sort is not Sort.LONG or len(shape) > 1 else 1500
    wanted = (*shape[:axis], count, *shape[axis + 1 :])
    x = draw.values(*shape)
    indices = _indices(draw, (count,), shape[axis])
    if draw.op.name == "select":
        return sample("", x, indices, axis=axis)
    return sample("", x, indices, _values(draw, x, wanted), axis=axis, **_update(draw))


@draws("gather_nd", "scatter_nd")
def _(draw: Draw) -> Sample | None:
    shape = draw.shape(least=1, empty=False)
    depth = min(len(shape), 3) if draw.number == 0 else draw.integer(1, min(len(shape), 4))
    lead = draw.among((7,), (2, 3)) if draw.sort is not Sort.LONG else (300,)
    indices = np.stack(
        [np.asarray(_indices(draw, lead, length)).astype(np.int64) for length in shape[:depth]],
        axis=-1,
    )
    x = draw.values(*shape)
    if draw.op.name == "gather_nd":
        return sample("", x, indices)
    wanted = (*lead, *shape[depth:])
    return sample("", x, indices, _values(draw, x, wanted), **_update(draw))


@draws("embedding", "embedding_grad")
def _(draw: Draw) -> Sample | None:
    rows, width = (700, 3) if draw.sort is Sort.LONG else (draw.integer(1, 9), draw.integer(1, 5))
    lead = (300,) if draw.sort is Sort.LONG else (2, 3, 2)[draw.integer(0, 2) :]
    indices = draw.integers(*lead, low=0, high=rows)
    if draw.op.name == "embedding":
        return sample("", draw.floats(rows, width), indices)
    return sample("", draw.floats(*lead, width), indices, count=rows)


@draws("searchsorted")
def _(draw: Draw) -> Sample | None:
    length = 1500 if draw.sort is Sort.LONG else draw.integer(0, 40)
    x = np.sort(draw.values(length))
    shape = draw.shape()
    return sample(
        "",
        draw.view(x),
        draw.values(*shape),
        right=draw.chance(0.5),
        dtype=INDEX_DTYPE,
    )


@draws("unique_indices", "argwhere")
def _(draw: Draw) -> Sample | None:
    shape = draw.shape()
    if draw.op.name == "unique_indices":
        shape = (int(np.prod(shape)),)
    return sample("", draw.values(*shape), dtype=INDEX_DTYPE)
