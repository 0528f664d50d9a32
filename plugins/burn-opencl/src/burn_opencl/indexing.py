"""Writing at indices: an item for each column, or on a GPU by segments of equal indices."""

from __future__ import annotations

import burn.plugin_api as core
from burn.plugin_api import DType, Update, accumulator_dtype
from burn_opencl.base import OpenClOps
from burn_opencl.buffers import Buffer
from burn_opencl.segments import update_segments, updates_by_segments

__all__ = ["IndexingOps"]


class IndexingOps(OpenClOps, core.IndexingOps):
    """Indexing. Updates of an element take effect in order, so sums are reproducible."""

    def update_dtype(self, dtype: DType, update: str, count: int) -> DType:
        """That of the accumulator, in which sums and products of floats are not rounded."""
        del count
        combines = dtype.is_float and update in ("add", "multiply")
        return accumulator_dtype(dtype) if combines else dtype

    def update_dense(self, out: Buffer, indices: Buffer, values: Buffer, rule: Update) -> None:
        """In order in each column, or in segments of the updates."""
        if updates_by_segments(self.launcher, rule):
            update_segments(self.launcher, out, indices, values, rule)
        else:
            self.update_in_order(out, indices, values, rule)
