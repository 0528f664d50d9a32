"""Attention in one kernel, without the matrix of scores; on tensor cores for 16-bit floats."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from burn.plugin_api import (
    AttentionShapes,
    Shape,
    attention_shapes,
    check_broadcasts_to_scores,
    float16,
    float32,
)
from burn_cuda.base import Array, CudaOps
from burn_cuda.kernels import c_type
from burn_cuda.launcher import LaunchCache, Packed, element_strides, merged, packed
from burn_cuda.linear_algebra import write_product
from burn_cuda.softmax import row_launch, row_shape

if TYPE_CHECKING:
    from burn_cuda.runtime import Runtime

__all__ = ["AttentionOps", "attention_tiles"]


_BLOCK_THREADS: Final = 128
_GRADIENT_TILE_ROWS: Final = 64
"""Queries, or keys, whose gradients a block computes."""

_WANTED_BLOCKS: Final = 264
_MIN_KEYS_OF_PART: Final = 256
"""With fewer blocks, several blocks share the keys of a query, each at least this many."""

_SCORE_BYTES: Final = 8
_MAX_SCORE_BYTES: Final = 1 << 31
"""Memory of the scores, where a decomposition computes them: parts of the batch are smaller."""

_MAX_FEATURES: Final = 128
"""Features of a query or value that fit into the registers of a kernel."""

_MIN_FOLDED_SCALE: Final = 2.0**-64
"""Scale from which on it may be applied in the exponent in float32."""

_TENSOR_CORE_CAPABILITY: Final = (8, 0)
"""Compute capability from which on tensor cores multiply both 16-bit dtypes as 16x8x16."""


class _Tiles(NamedTuple):
    """Queries of a block, and the macros of the kernel."""

    queries: int
    definitions: dict[str, int]


@functools.lru_cache(maxsize=1024)
def attention_tiles(
    features: int, values: int, itemsize: int, capability: tuple[int, int]
) -> _Tiles | None:
    """Tiles for a number of features; None where they do not fit into registers."""
    most = max(features, values)
    narrow = most <= _MAX_FEATURES // 2
    if most > _MAX_FEATURES or (itemsize > 4 and not narrow):
        return None
    if itemsize == 2 and capability >= _TENSOR_CORE_CAPABILITY:
        sizes = {"D": _up_to(features, 16), "V": _up_to(values, 16)}
        # Registers suffice for this number of blocks at a time.
        sizes |= {"KEYS": 64, "BLOCKS": 4} if narrow else {"KEYS": 32, "BLOCKS": 2}
        return _Tiles(_GRADIENT_TILE_ROWS, {"TENSOR_CORES": 1, "QUERY_GROUPS": 1, **sizes})
    queries, keys = (64, 32) if narrow and itemsize <= 4 else (32, 16)
    sizes = {"D": _up_to(features, 16), "V": _up_to(values, 32), "KEYS": keys}
    return _Tiles(queries, {"QUERIES": queries, **sizes})


def _up_to(length: int, multiple: int) -> int:
    return max(-(-length // multiple), 1) * multiple


class _Plan(NamedTuple):
    """Layout of the operands of an attention."""

    rank: int
    batch: int
    layout: Packed


class _Operands(NamedTuple):
    """Arguments of the kernels: arrays, their layout, and the numbers after the layout."""

    shape: AttentionShapes
    memory: tuple[Any, ...]
    plan: _Plan
    numbers: tuple[Any, ...]
    definitions: dict[str, str | int]


class AttentionOps(CudaOps):
    """Attention."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._attention_launches = LaunchCache()

    def attention(
        self,
        query: Array,
        key: Array,
        value: Array,
        mask: Array | None,
        bias: Array | None,
        *,
        scale: float,
        softcap: float | None = None,
        is_causal: bool = False,
    ) -> Array:
        """One kernel: a block for each tile of queries iterates over the keys."""
        operands = (query, key, value, mask, bias)
        layouts = [
            None if operand is None else (operand.shape, operand.strides, operand.dtype)
            for operand in operands
        ]
        known = self._attention_launches.get((scale, softcap, is_causal, *layouts))
        launcher = self.launcher
        if known is not None:
            launch, grid, shape, numbers = known
            out = launcher.empty(shape, query.dtype)
            memory = [0 if operand is None else operand for operand in operands]
            launch(grid, (_BLOCK_THREADS,), (*memory, out, 0, 0, 0, *numbers))
            return out
        attributes: dict[str, Any] = {"scale": scale, "softcap": softcap, "is_causal": is_causal}
        given = self._attention_operands(*operands, **attributes)
        tiles = self._attention_tiles(query, value)
        if tiles is None:
            return self._decomposed_attention("attention", operands, given, **attributes)
        out = launcher.empty(given.shape.output, query.dtype)
        if out.size:
            launched = self._along_keys(given, tiles, out)
            copied = any(
                operand is not own for operand, own in zip(operands[:3], given.memory, strict=False)
            )
            if launched is not None and not copied:
                self._attention_launches.store((scale, softcap, is_causal, *layouts), launched)
        return out

    def attention_grad(
        self,
        query: Array,
        key: Array,
        value: Array,
        mask: Array | None,
        bias: Array | None,
        g: Array,
        *,
        scale: float,
        softcap: float | None = None,
        is_causal: bool = False,
    ) -> tuple[Array, Array, Array]:
        """For 16-bit floats one kernel for tiles of queries and one for tiles of keys.

        For others five products, and two kernels that overwrite what two of these give.
        """
        attributes: dict[str, Any] = {"scale": scale, "softcap": softcap, "is_causal": is_causal}
        given = self._attention_operands(query, key, value, mask, bias, **attributes)
        shape = given.shape
        if g.shape != shape.output or g.dtype is not query.dtype:
            raise ValueError(f"g of shape {g.shape} for {shape.output}")
        launcher = self.launcher
        tiles = self._attention_tiles(query, value)
        if tiles is None or "TENSOR_CORES" not in tiles.definitions:
            operands = (query, key, value, mask, bias, g)
            if mask is bias is softcap is None and self._has_rows(shape, query.dtype):
                return self._gradients_by_products(query, key, value, g, scale, is_causal=is_causal)
            gradients: tuple[Array, Array, Array] = self._decomposed_attention(
                "attention_grad", operands, given, **attributes
            )
            return gradients
        queries, keys = shape.scores[-2:]
        features, values = query.shape[-1], value.shape[-1]
        results = [
            launcher.empty((*shape.batch, *ends), query.dtype)
            for ends in ((queries, features), (keys, features), (keys, values))
        ]
        if not min(queries, keys, values, given.plan.batch):
            for result in results:
                launcher.runtime.zero(result)
            return tuple(results)
        g = launcher.dense(g)
        rows = given.plan.batch * queries
        statistics = launcher.empty((2, rows), float32.numpy)
        self._along_keys(given, tiles, 0, g, statistics, STATISTICS=1)
        largest = self._largest_magnitudes(g, value) if query.dtype == float16.numpy else 0
        wide = max(features, values) > _MAX_FEATURES // 2
        sizes = {name: tiles.definitions[name] for name in ("D", "V")}
        for of_keys in (False, True):
            columns = 16 if wide and of_keys else 32
            tile = {"COLUMNS": columns, "BLOCKS": 2 if wide else 3}
            definitions = {**given.definitions, **sizes, **tile}
            if of_keys:
                definitions["OF_KEYS"] = 1
            kernel = launcher.kernel("attention_gradient", "attention_gradient.cu", **definitions)
            blocks = -(-(keys if of_keys else queries) // _GRADIENT_TILE_ROWS)
            written = results[1:] if of_keys else (results[0], 0)
            operands = (*given.memory, g, statistics, largest, *written, given.plan.layout)
            grid = (given.plan.batch * blocks,)
            kernel(grid, (_BLOCK_THREADS,), (*operands, *given.numbers, blocks, rows))
        return tuple(results)

    def _has_rows(self, shape: AttentionShapes, dtype: Any) -> bool:
        """Whether rows of scores fit into registers, and all scores into memory twice."""
        size, keys = math.prod(shape.scores), shape.scores[-1]
        is_wide = dtype.itemsize >= float32.itemsize
        if not is_wide or not 0 < size <= _MAX_SCORE_BYTES // _SCORE_BYTES or 0 in shape.output:
            return False
        return row_shape(keys, dtype.itemsize).packs > 0

    def _gradients_by_products(
        self, query: Array, key: Array, value: Array, g: Array, scale: float, *, is_causal: bool
    ) -> tuple[Array, Array, Array]:
        """Gradients of an attention without mask, bias and soft cap."""
        launcher, dtype = self.launcher, query.dtype
        query, key, value, g = [launcher.dense(tensor) for tensor in (query, key, value, g)]
        batch, (queries, keys) = g.shape[:-2], (query.shape[-2], key.shape[-2])

        def product(x1: Array, x2: Array) -> Array:
            out = launcher.empty((*batch, x1.shape[-2], x2.shape[-1]), dtype)
            write_product(launcher, x1, x2, out)
            return out

        weights = product(query, _transposed(key))
        rows, numbers = weights.size // keys, (float(scale), int(is_causal), queries)
        row_launch(launcher, "attention_weights", weights, rows, keys, weights, *numbers)
        slopes = product(g, _transposed(value))
        given = (weights, slopes, float(scale))
        row_launch(launcher, "attention_slopes", slopes, rows, keys, *given)
        to_value = product(_transposed(weights), g)
        return product(slopes, key), product(_transposed(slopes), query), to_value

    def _attention_operands(
        self,
        query: Array,
        key: Array,
        value: Array,
        mask: Array | None,
        bias: Array | None,
        *,
        scale: float,
        softcap: float | None,
        is_causal: bool,
    ) -> _Operands:
        """The arguments of the kernels; raises for operands that do not match."""
        shape = attention_shapes(query.shape, key.shape, value.shape, softcap)
        check_broadcasts_to_scores(shape.scores, mask=mask, bias=bias)
        if any(
            tensor is not None and tensor.dtype is not query.dtype for tensor in (key, value, bias)
        ):
            raise TypeError("an attention of operands of several dtypes")
        features, values = query.shape[-1], value.shape[-1]
        query, key, value = [self._with_contiguous_rows(tensor) for tensor in (query, key, value)]
        others = [0 if tensor is None else tensor for tensor in (mask, bias)]
        plan = _plan(
            shape.scores,
            *[
                None if tensor is None else (tensor.shape, element_strides(tensor, tensor.ndim))
                for tensor in (query, key, value, mask, bias)
            ],
        )
        definitions: dict[str, str | int] = {
            "T": c_type(self.launcher.dtypes[query.dtype]),
            "R": plan.rank,
        }
        changes = {"HAS_MASK": mask, "HAS_BIAS": bias, "SOFTCAP": softcap, "CAUSAL": is_causal}
        for name, there in changes.items():
            if there is not None and there is not False:
                definitions[name] = 1
        numbers = (float(scale), float(softcap or 1.0), *shape.scores[-2:], features, values)
        return _Operands(shape, (query, key, value, *others), plan, numbers, definitions)

    def _attention_tiles(self, query: Array, value: Array) -> _Tiles | None:
        capability = self.launcher.runtime.capability
        return attention_tiles(query.shape[-1], value.shape[-1], query.dtype.itemsize, capability)

    def _along_keys(
        self,
        given: _Operands,
        tiles: _Tiles,
        out: Array,
        g: Array = 0,
        statistics: Array = 0,
        **macros: int,
    ) -> tuple[Any, tuple[int, int], Shape, tuple[Any, ...]] | None:
        """Write the result, or the statistics of each query that the gradients need.

        Returns
        -------
        kernel, grid, shape, numbers
            The launch for operands of the same layouts; None where there are several kernels.
        """
        definitions = {**given.definitions, **tiles.definitions, **macros}
        scale = given.numbers[0]
        changed = "HAS_BIAS" in definitions or "SOFTCAP" in definitions
        if (
            "TENSOR_CORES" in definitions
            and not changed
            and _MIN_FOLDED_SCALE < scale < 1 / _MIN_FOLDED_SCALE
        ):
            definitions["FOLDED"] = 1
        queries, keys = given.shape.scores[-2:]
        blocks = -(-queries // tiles.queries)
        rows, grid = given.plan.batch * queries, given.plan.batch * blocks
        launcher = self.launcher
        parts = min(-(-_WANTED_BLOCKS // grid), -(-keys // _MIN_KEYS_OF_PART))
        sums: Array = 0
        values = given.shape.output[-1]
        if parts > 1 and 2 * grid <= _WANTED_BLOCKS and not macros:
            definitions["IN_PARTS"] = 1
            dtype = float32.numpy if out.dtype.itemsize < float32.itemsize else out.dtype
            statistics = launcher.empty((2 * parts * rows,), dtype)
            sums = launcher.empty((parts * rows * values,), dtype)
        else:
            parts = 1
        kernel = launcher.kernel("attention", "attention.cu", **definitions)
        numbers = (given.plan.layout, *given.numbers, blocks, rows)
        operands = (*given.memory, out, g, statistics, sums)
        kernel((grid, parts), (_BLOCK_THREADS,), (*operands, *numbers))
        if parts == 1:
            return kernel, (grid, parts), given.shape.output, numbers
        kernel = launcher.kernel("combine_parts", "attention.cu", **definitions)
        lengths = (parts, rows, values, rows * values)
        launcher.run(kernel, rows * values, statistics, sums, out, *lengths)
        return None

    def _largest_magnitudes(self, *operands: Array) -> Array:
        """The largest magnitude in each operand."""
        found = self.launcher.empty((len(operands),), operands[0].dtype)
        for number, operand in enumerate(operands):
            peak = self.max(self.abs(operand), axis=tuple(range(operand.ndim)), keepdims=False)
            self.launcher.write(found[number : number + 1], peak.reshape(1))
        return found

    def _decomposed_attention(
        self, name: str, operands: tuple[Any, ...], given: _Operands, **attributes: Any
    ) -> Any:
        """The default of the op, in parts of the batch where the scores take much memory."""
        scores = given.shape.scores
        rank, batch = len(scores), given.shape.batch
        parts = -(-math.prod(scores) * _SCORE_BYTES // _MAX_SCORE_BYTES)
        if parts <= 1 or max(batch, default=1) == 1:
            return self.ops.decomposed(name, *operands, **attributes)
        axis = batch.index(max(batch))
        step = -(-batch[axis] // min(parts, batch[axis]))
        results = []
        for start in range(0, batch[axis], step):
            own = [_part(operand, axis - rank, slice(start, start + step)) for operand in operands]
            results.append(self.ops.decomposed(name, *own, **attributes))
        if isinstance(results[0], tuple):
            return tuple(
                [self.concat(list(each), axis=axis) for each in zip(*results, strict=True)]
            )
        return self.concat(results, axis=axis)

    def _with_contiguous_rows(self, x: Array) -> Array:
        """The array, or a dense copy where the elements of a row are not adjacent."""
        steps = x.strides[-1] == x.dtype.itemsize or x.shape[-1] <= 1
        return x if steps else self.launcher.dense(x)


def _transposed(x: Array) -> Array:
    """The transpose of each matrix."""
    rank = x.ndim
    return x.transpose((*range(rank - 2), rank - 1, rank - 2))


def _part(x: Array | None, axis: int, indices: slice) -> Array | None:
    """A range along a negative axis; all of an operand that broadcasts along it."""
    if x is None or x.ndim < -axis or x.shape[axis] == 1:
        return x
    return x[(slice(None),) * (x.ndim + axis) + (indices,)]


_ShapeAndStrides = tuple[tuple[int, ...], tuple[int, ...]]


@functools.lru_cache(maxsize=4096)
def _plan(
    scores: Shape,
    query: _ShapeAndStrides | None,
    key: _ShapeAndStrides | None,
    value: _ShapeAndStrides | None,
    mask: _ShapeAndStrides | None,
    bias: _ShapeAndStrides | None,
) -> _Plan:
    """Strides along the axes of the batch, merged where possible, then along the last axes."""
    batch = scores[:-2]
    rank = len(batch)
    steps: list[tuple[int, ...]] = []
    ends: list[int] = []
    for layouts, count in ((query, 1), (key, 1), (value, 1), (mask, 2), (bias, 2)):
        shape, strides = layouts or ((), ())
        strides = (0,) * (rank + 2 - len(shape)) + strides
        steps.append(strides[:rank])
        ends += strides[rank : rank + count]
    axes = merged(batch, tuple(steps)) or [(1, (0,) * len(steps))]
    table = [length for length, _ in axes]
    for row in range(len(steps)):
        table += [strides[row] for _, strides in axes]
    return _Plan(len(axes), math.prod(batch), packed(np.array([*table, *ends], np.int64)))
