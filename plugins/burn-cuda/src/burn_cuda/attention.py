"""Attention without the matrix of scores, in one kernel; of 16-bit floats on tensor cores."""

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

if TYPE_CHECKING:
    from burn_cuda.runtime import Runtime

__all__ = ["AttentionOps", "attention_tiles"]


_THREADS: Final = 128
_ROWS: Final = 64
"""Queries, or keys, of which a block computes gradients."""

_BLOCKS: Final = 264
_FEWEST_KEYS: Final = 256
"""With fewer blocks the keys of each query are shared out, at least so many to a block."""

_SCORE_BYTES: Final = 8
_MOST_BYTES: Final = 1 << 31
"""Where scores are made at all, they are made in parts that take no more memory."""

_MOST_FEATURES: Final = 128
"""A kernel keeps the features of its queries in registers."""

_LEAST: Final = 2.0**-64
"""A factor of scores from which on an exponent in float32 may have it as its own."""

_TENSOR_CORES: Final = (8, 0)
"""Compute capability from which on they take both 16-bit dtypes, in the shapes used here."""


class _Tiles(NamedTuple):
    """What a block computes with, and how many queries it has."""

    queries: int
    definitions: dict[str, int]


@functools.lru_cache(maxsize=1024)
def attention_tiles(
    features: int, values: int, itemsize: int, capability: tuple[int, int]
) -> _Tiles | None:
    """Tiles for so many features, or None where there are too many for a kernel."""
    most = max(features, values)
    narrow = most <= _MOST_FEATURES // 2
    if most > _MOST_FEATURES or (itemsize > 4 and not narrow):
        return None
    if itemsize == 2 and capability >= _TENSOR_CORES:
        sizes = {"D": _up_to(features, 16), "V": _up_to(values, 16)}
        # So that registers last for so many blocks at a time.
        sizes |= {"KEYS": 64, "BLOCKS": 4} if narrow else {"KEYS": 32, "BLOCKS": 2}
        return _Tiles(_ROWS, {"TENSOR_CORES": 1, "TALL": 1, **sizes})
    queries, keys = (64, 32) if narrow and itemsize <= 4 else (32, 16)
    sizes = {"D": _up_to(features, 16), "V": _up_to(values, 32), "KEYS": keys}
    return _Tiles(queries, {"QUERIES": queries, **sizes})


def _up_to(length: int, multiple: int) -> int:
    return max(-(-length // multiple), 1) * multiple


class _Plan(NamedTuple):
    """How the operands of an attention lie."""

    rank: int
    batch: int
    layout: Packed


class _Operands(NamedTuple):
    """What kernels of attention get: memory, how it lies, and the numbers behind the layout."""

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
        """A block for some queries, which goes along their keys."""
        operands = (query, key, value, mask, bias)
        laid = [None if one is None else (one.shape, one.strides, one.dtype) for one in operands]
        known = self._attention_launches.get((scale, softcap, is_causal, *laid))
        launcher = self.launcher
        if known is not None:
            launch, grid, shape, numbers = known
            out = launcher.empty(shape, query.dtype)
            memory = [0 if one is None else one for one in operands]
            launch(grid, (_THREADS,), (*memory, out, 0, 0, 0, *numbers))
            return out
        attributes: dict[str, Any] = {"scale": scale, "softcap": softcap, "is_causal": is_causal}
        given = self._attention_operands(*operands, **attributes)
        tiles = self._attention_tiles(query, value)
        if tiles is None:
            return self._attention_by_definition("attention", operands, given, **attributes)
        out = launcher.empty(given.shape.output, query.dtype)
        if out.size:
            launched = self._along_keys(given, tiles, out)
            copied = any(
                one is not own for one, own in zip(operands[:3], given.memory, strict=False)
            )
            if launched is not None and not copied:
                self._attention_launches.store((scale, softcap, is_causal, *laid), launched)
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
        """Of 16-bit floats without the matrix of scores: for some queries, then for some keys."""
        attributes: dict[str, Any] = {"scale": scale, "softcap": softcap, "is_causal": is_causal}
        given = self._attention_operands(query, key, value, mask, bias, **attributes)
        shape = given.shape
        if g.shape != shape.output or g.dtype is not query.dtype:
            raise ValueError(f"g of shape {g.shape} for {shape.output}")
        launcher = self.launcher
        tiles = self._attention_tiles(query, value)
        if tiles is None or "TENSOR_CORES" not in tiles.definitions:
            operands = (query, key, value, mask, bias, g)
            return self._attention_by_definition("attention_grad", operands, given, **attributes)  # type: ignore[no-any-return]  # three
        queries, keys = shape.scores[-2:]
        features, values = query.shape[-1], value.shape[-1]
        results = [
            launcher.empty((*shape.batch, *ends), query.dtype)
            for ends in ((queries, features), (keys, features), (keys, values))
        ]
        if not min(queries, keys, values, given.plan.batch):
            for one in results:
                launcher.runtime.zero(one)
            return tuple(results)
        g = launcher.dense(g)
        rows = given.plan.batch * queries
        statistics = launcher.empty((2, rows), float32.numpy)
        self._along_keys(given, tiles, 0, g, statistics, STATISTICS=1)
        largest = self._largest_magnitude(g, value) if query.dtype == float16.numpy else 0
        wide = max(features, values) > _MOST_FEATURES // 2
        sizes = {name: tiles.definitions[name] for name in ("D", "V")}
        for of_keys in (False, True):
            columns = 16 if wide and of_keys else 32
            tile = {"COLUMNS": columns, "BLOCKS": 2 if wide else 3}
            definitions = {**given.definitions, **sizes, **tile}
            if of_keys:
                definitions["OF_KEYS"] = 1
            kernel = launcher.kernel("attention_slopes", "attention_gradient.cu", **definitions)
            blocks = -(-(keys if of_keys else queries) // _ROWS)
            written = results[1:] if of_keys else (results[0], 0)
            operands = (*given.memory, g, statistics, largest, *written, given.plan.layout)
            grid = (given.plan.batch * blocks,)
            kernel(grid, (_THREADS,), (*operands, *given.numbers, blocks, rows))
        return tuple(results)

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
        """The operands as kernels take them; refuses what does not belong together."""
        shape = attention_shapes(query.shape, key.shape, value.shape, softcap)
        check_broadcasts_to_scores(shape.scores, mask=mask, bias=bias)
        if any(one is not None and one.dtype is not query.dtype for one in (key, value, bias)):
            raise TypeError("an attention of operands of several dtypes")
        features, values = query.shape[-1], value.shape[-1]
        query, key, value = [self._in_rows(one) for one in (query, key, value)]
        others = [0 if one is None else one for one in (mask, bias)]
        plan = _plan(
            shape.scores,
            *[
                None if one is None else (one.shape, element_strides(one, one.ndim))
                for one in (query, key, value, mask, bias)
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
        """Write the result, or what the gradients need of each query.

        Returns
        -------
        kernel, grid, shape, numbers
            How to launch that again for operands that lie alike; None where it is not one kernel.
        """
        definitions = {**given.definitions, **tiles.definitions, **macros}
        scale = given.numbers[0]
        changed = "HAS_BIAS" in definitions or "SOFTCAP" in definitions
        if "TENSOR_CORES" in definitions and not changed and _LEAST < scale < 1 / _LEAST:
            definitions["FOLDED"] = 1
        queries, keys = given.shape.scores[-2:]
        blocks = -(-queries // tiles.queries)
        rows, grid = given.plan.batch * queries, given.plan.batch * blocks
        launcher = self.launcher
        parts = min(-(-_BLOCKS // grid), -(-keys // _FEWEST_KEYS))
        sums: Array = 0
        values = given.shape.output[-1]
        if parts > 1 and 2 * grid <= _BLOCKS and not macros:
            definitions["IN_PARTS"] = 1
            dtype = float32.numpy if out.dtype.itemsize < float32.itemsize else out.dtype
            statistics = launcher.empty((2 * parts * rows,), dtype)
            sums = launcher.empty((parts * rows * values,), dtype)
        else:
            parts = 1
        kernel = launcher.kernel("attention_of_tiles", "attention.cu", **definitions)
        numbers = (given.plan.layout, *given.numbers, blocks, rows)
        operands = (*given.memory, out, g, statistics, sums)
        kernel((grid, parts), (_THREADS,), (*operands, *numbers))
        if parts == 1:
            return kernel, (grid, parts), given.shape.output, numbers
        kernel = launcher.kernel("join_parts", "attention.cu", **definitions)
        lengths = (parts, rows, values, rows * values)
        launcher.run(kernel, rows * values, statistics, sums, out, *lengths)
        return None

    def _largest_magnitude(self, *operands: Array) -> Array:
        """The largest magnitude in each operand."""
        found = self.launcher.empty((len(operands),), operands[0].dtype)
        for number, one in enumerate(operands):
            peak = self.max(self.abs(one), axis=tuple(range(one.ndim)), keepdims=False)
            self.launcher.write(found[number : number + 1], peak.reshape(1))
        return found

    def _attention_by_definition(
        self, name: str, operands: tuple[Any, ...], given: _Operands, **attributes: Any
    ) -> Any:
        """The definition of the op, in parts of the batch where the scores take much memory."""
        scores = given.shape.scores
        rank, batch = len(scores), given.shape.batch
        parts = -(-math.prod(scores) * _SCORE_BYTES // _MOST_BYTES)
        if parts <= 1 or max(batch, default=1) == 1:
            return self.ops.decomposed(name, *operands, **attributes)
        axis = batch.index(max(batch))
        step = -(-batch[axis] // min(parts, batch[axis]))
        results = []
        for start in range(0, batch[axis], step):
            own = [_part(one, axis - rank, slice(start, start + step)) for one in operands]
            results.append(self.ops.decomposed(name, *own, **attributes))
        if isinstance(results[0], tuple):
            return tuple(
                [self.concat(list(each), axis=axis) for each in zip(*results, strict=True)]
            )
        return self.concat(results, axis=axis)

    def _in_rows(self, x: Array) -> Array:
        """The same elements, those of a row next to each other."""
        steps = x.strides[-1] == x.dtype.itemsize or x.shape[-1] <= 1
        return x if steps else self.launcher.dense(x)


def _part(x: Array | None, axis: int, places: slice) -> Array | None:
    """Some places along an axis, counted from the last one; all of an operand that broadcasts."""
    if x is None or x.ndim < -axis or x.shape[axis] == 1:
        return x
    return x[(slice(None),) * (x.ndim + axis) + (places,)]


_Laid = tuple[tuple[int, ...], tuple[int, ...]]


@functools.lru_cache(maxsize=4096)
def _plan(
    scores: Shape,
    query: _Laid | None,
    key: _Laid | None,
    value: _Laid | None,
    mask: _Laid | None,
    bias: _Laid | None,
) -> _Plan:
    """Steps along the axes of the batch, merged where they can be, then along the last ones."""
    batch = scores[:-2]
    rank = len(batch)
    steps: list[tuple[int, ...]] = []
    ends: list[int] = []
    for laid, count in ((query, 1), (key, 1), (value, 1), (mask, 2), (bias, 2)):
        shape, strides = laid or ((), ())
        strides = (0,) * (rank + 2 - len(shape)) + strides
        steps.append(strides[:rank])
        ends += strides[rank : rank + count]
    axes = merged(batch, tuple(steps)) or [(1, (0,) * len(steps))]
    table = [length for length, _ in axes]
    for row in range(len(steps)):
        table += [strides[row] for _, strides in axes]
    return _Plan(len(axes), math.prod(batch), packed(np.array([*table, *ends], np.int64)))
