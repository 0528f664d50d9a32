"""Parts of a tensor that rows of indices name: the rows become one index each."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from burn.dtype import int64
from burn.ops import REGISTRY, Meta, OpTable
from burn_opencl.buffers import Buffer
from burn_opencl.expressions import CODES

if TYPE_CHECKING:
    from burn_opencl.launcher import Launcher

__all__ = ["PlacesOps"]

_AXES: Final = 8
"""So many axes a kernel is told of."""


class PlacesOps:
    """Indexing by rows of indices, each in two kernels."""

    launcher: Launcher
    table: OpTable
    select: Any
    select_assign: Any

    def gather_nd(self, x: Buffer, indices: Buffer) -> Buffer:
        """The parts are lines of a matrix."""
        with self.launcher.checked.called("gather_nd"):
            if indices.shape and indices.shape[-1] > _AXES:
                return self.table.decomposed("gather_nd", x, indices)  # type: ignore[no-any-return]  # a Buffer
            metas = [Meta(one.shape, one.dtype) for one in (x, indices)]
            result: Any = REGISTRY["gather_nd"].infer(*metas)
            lines, places = self._lines(x, indices)
            chosen = self.select(lines, places, axis=0)
            return self.table.reshape(chosen, shape=result.shape)  # type: ignore[no-any-return]  # a Buffer

    def scatter_nd(self, x: Buffer, indices: Buffer, value: Buffer, *, update: str) -> Buffer:
        """The same to write."""
        with self.launcher.checked.called("scatter_nd"):
            if indices.shape and indices.shape[-1] > _AXES:
                return self.table.decomposed("scatter_nd", x, indices, value, update=update)  # type: ignore[no-any-return]  # a Buffer
            metas = [Meta(one.shape, one.dtype) for one in (x, indices, value)]
            REGISTRY["scatter_nd"].infer(*metas, update=update)
            lines, places = self._lines(x, indices)
            shape = (places.shape[0], lines.shape[1])
            value = self.table.reshape(value, shape=shape)
            written = self.select_assign(lines, places, value, axis=0, update=update)
            return self.table.reshape(written, shape=x.shape)  # type: ignore[no-any-return]  # a Buffer

    def _lines(self, x: Buffer, indices: Buffer) -> tuple[Buffer, Buffer]:
        """A tensor as a matrix with a line for each place, and the lines that are named."""
        launcher = self.launcher
        if not indices.dtype.is_integer:
            raise TypeError(f"indices of {indices.dtype}")
        depth = indices.shape[-1]
        lengths, count = x.shape[:depth], math.prod(indices.shape[:-1])
        indices = launcher.dense(indices)
        places = launcher.empty((count,), int64)
        kernel = launcher.kernel("flat_places", "places.cl", "ulong")
        total = math.prod(lengths)
        codes = CODES[indices.dtype.name], CODES[int64.name]
        numbers = (count, depth, indices.offset, *codes, total, *lengths, *[0] * (_AXES - depth))
        launcher.run(kernel, count, numbers, (indices.memory, places.memory))
        rest = math.prod(x.shape[depth:])
        return self.table.reshape(x, shape=(total, rest)), places
