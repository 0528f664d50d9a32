"""Reductions: a block or a warp for each row, a thread for each column; long ones in two steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from burn.plugin_api import DeviceId, DType, Shape, bool_, float32
from burn_cuda.base import Array, CudaOps
from burn_cuda.complex_numbers import on_parts, slice_axis
from burn_cuda.kernels import THREADS, c_type, computed_type
from burn_cuda.launcher import LaunchCache

if TYPE_CHECKING:
    from burn_cuda.launcher import Launcher
    from burn_cuda.runtime import Runtime

__all__ = ["ReductionOps", "Rows", "rows_along"]


_WARP_THREADS: Final = 32
_MAX_ROW_OF_THREAD: Final = 16
"""Length up to which one thread reduces a row, as it does columns."""

_MAX_ROW_OF_WARP: Final = 1024
"""Length up to which one warp reduces a row; a block reduces longer ones."""

_WANTED_BLOCKS: Final = 1056
"""Blocks that keep a large GPU busy: eight for each multiprocessor."""

_ROW_CHUNK_ELEMENTS: Final = 4096
_MIN_COLUMN_CHUNK_ELEMENTS: Final = 64
_MAX_WHOLE_COLUMN: Final = 256
"""Length up to which one thread reduces a column."""

_COLUMNS_OF_BLOCK: Final = 32
_MIN_COLUMNS: Final = 16
_MIN_ROWS_OF_PART: Final = 256
"""Columns of a block whose warps share them, for that many or more, and rows that it takes."""

_MIN_ELEMENTS_FOR_PACKS: Final = 1 << 16
"""Below this number, kernels that load rows in packs save less than their compilation takes."""

_FAMILIES: Final = {
    **dict.fromkeys(("Sum", "Mean", "Product"), 0),
    **dict.fromkeys(("Any", "All"), 1),
    **dict.fromkeys(("Maximum", "Minimum", "ArgMax", "ArgMin"), 2),
    "SquaredDeviations": 3,
}
"""The section of the kernel file (FAMILY) that defines a reducer."""

_ACCUMULATOR_BYTES: Final = {"Extremum": 16, "Moments": 24}
"""Largest size of the accumulators that are structs; numbers have at most 8 bytes."""

_BYTE: Final = np.dtype(np.uint8)
_COUNTER: Final = np.dtype(np.uint32)


class Rows(NamedTuple):
    """A dense array of shape (outer, n, inner), to be reduced along the middle axis."""

    x: Array
    outer: int
    n: int
    inner: int


class _PartMemory(NamedTuple):
    """Memory that a kernel works in: bytes for parts, and counters."""

    bytes: int
    counters: int


class _Reduction(NamedTuple):
    """What is reduced to what; `key` is that of the launch, if it may be cached."""

    rows: Rows
    out: Array
    accumulator: str
    definitions: dict[str, str | int]
    key: tuple[Any, ...]

    def kernel(self, launcher: Launcher, name: str, lanes: int = THREADS) -> Any:
        """A kernel of the file."""
        own: dict[str, str | int] = {"LANES": lanes, f"HAS_{name}": 1}
        if name.endswith("_rows"):
            own["IN_PACKS"] = int(self.rows.x.size >= _MIN_ELEMENTS_FOR_PACKS)
        return launcher.kernel(name, "reduction.cu", **self.definitions, **own)


def rows_along(launcher: Launcher, x: Array, axis: Sequence[int]) -> Rows:
    """An array with the given axes merged into one; a copy where its layout does not allow that."""
    shape = x.shape
    chosen = set(axis)
    if len(chosen) != len(axis) or not all(0 <= number < len(shape) for number in axis):
        raise IndexError(f"axes {tuple(axis)} of {len(shape)}")
    long = [number for number, length in enumerate(shape) if length != 1]
    positions = [position for position, number in enumerate(long) if number in chosen]
    adjacent = not positions or positions[-1] - positions[0] + 1 == len(positions)
    n = math.prod([shape[number] for number in chosen])
    if adjacent and launcher.is_dense(x):
        if not positions:
            return Rows(x, x.size, 1, 1)
        outer = math.prod([shape[number] for number in long[: positions[0]]])
        return Rows(x, outer, n, math.prod([shape[number] for number in long[positions[-1] + 1 :]]))
    kept = [number for number in range(len(shape)) if number not in chosen]
    order = (*kept, *sorted(chosen))
    x = launcher.dense(x.transpose(order))
    return Rows(x, math.prod([shape[number] for number in kept]), n, 1)


def _reduced(shape: Shape, axis: Sequence[int], *, keepdims: bool) -> Shape:
    if keepdims:
        return tuple([1 if number in axis else length for number, length in enumerate(shape)])
    return tuple([length for number, length in enumerate(shape) if number not in axis])


def _last_axes(shape: Shape, axis: Sequence[int]) -> tuple[int, ...]:
    """The axes after the last one that is kept, where others before it are to be reduced, too."""
    kept = [number for number, length in enumerate(shape) if length != 1 and number not in axis]
    last = tuple([number for number in axis if number > kept[-1]]) if kept else ()
    count = math.prod([shape[number] for number in last])
    others = [number for number in axis if number not in last and shape[number] != 1]
    return last if others and count > 1 else ()


class ReductionOps(CudaOps):
    """Reductions over axes."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._reduction_launches = LaunchCache()

    def sum(
        self, x: Array, *, axis: tuple[int, ...], keepdims: bool = False, dtype: DType
    ) -> Array:
        """16-bit floats add up in float32."""
        return self._reduce("Sum", x, axis, dtype, computed_type(dtype), keepdims=keepdims)

    def mean(self, x: Array, *, axis: tuple[int, ...], keepdims: bool = False) -> Array:
        """16-bit floats are added and divided in float32."""
        dtype = self.launcher.dtypes[x.dtype]
        return self._reduce("Mean", x, axis, dtype, computed_type(dtype), keepdims=keepdims)

    def var(
        self, x: Array, *, axis: tuple[int, ...], keepdims: bool = False, correction: float = 0.0
    ) -> Array:
        """One pass; 16-bit floats in float32."""
        dtype = self.launcher.dtypes[x.dtype]
        return self.cast(self._variance(x, axis, correction, keepdims=keepdims), dtype=dtype)

    def std(
        self, x: Array, *, axis: tuple[int, ...], keepdims: bool = False, correction: float = 0.0
    ) -> Array:
        """The square root of the variance in float32 or float64."""
        dtype = self.launcher.dtypes[x.dtype]
        variance = self._variance(x, axis, correction, keepdims=keepdims)
        return self.cast(self.sqrt(variance), dtype=dtype)

    def _variance(
        self, x: Array, axis: tuple[int, ...], correction: float, *, keepdims: bool
    ) -> Array:
        """In float32 or float64."""
        dtype = self.launcher.dtypes[x.dtype]
        if not dtype.is_float:
            raise TypeError(f"the variance of {dtype}")
        wide = float32 if dtype.itemsize < float32.itemsize else dtype
        squares = self._reduce("SquaredDeviations", x, axis, wide, "Moments", keepdims=keepdims)
        count = math.prod([x.shape[number] for number in axis])
        return self.divide(squares, max(count - float(correction), 0.0))

    def prod(
        self, x: Array, *, axis: tuple[int, ...], keepdims: bool = False, dtype: DType
    ) -> Array:
        """16-bit floats are multiplied in float32."""
        return self._reduce("Product", x, axis, dtype, computed_type(dtype), keepdims=keepdims)

    def max(self, x: Array, *, axis: tuple[int, ...], keepdims: bool = False) -> Array:
        """NaN propagates."""
        return self._extremum("Maximum", x, axis, self.launcher.dtypes[x.dtype], keepdims=keepdims)

    def min(self, x: Array, *, axis: tuple[int, ...], keepdims: bool = False) -> Array:
        """NaN propagates."""
        return self._extremum("Minimum", x, axis, self.launcher.dtypes[x.dtype], keepdims=keepdims)

    def any(self, x: Array, *, axis: tuple[int, ...], keepdims: bool = False) -> Array:
        """Truth of numbers is read without a mask of its own."""
        return self._reduce("Any", x, axis, bool_, "int", keepdims=keepdims)

    def all(self, x: Array, *, axis: tuple[int, ...], keepdims: bool = False) -> Array:
        """Truth of numbers is read without a mask of its own."""
        return self._reduce("All", x, axis, bool_, "int", keepdims=keepdims)

    def argmax(self, x: Array, *, axis: int, keepdims: bool = False, dtype: DType) -> Array:
        """The first of equals; NaN is largest."""
        return self._extremum("ArgMax", x, (axis,), dtype, keepdims=keepdims)

    def argmin(self, x: Array, *, axis: int, keepdims: bool = False, dtype: DType) -> Array:
        """The first of equals; NaN comes before all."""
        return self._extremum("ArgMin", x, (axis,), dtype, keepdims=keepdims)

    def _extremum(
        self, reducer: str, x: Array, axis: tuple[int, ...], dtype: DType, *, keepdims: bool
    ) -> Array:
        if 0 in [x.shape[number] for number in axis]:
            raise ValueError(f"{reducer} of no elements")
        return self._reduce(reducer, x, axis, dtype, "Extremum", keepdims=keepdims)

    def _reduce(
        self,
        reducer: str,
        x: Array,
        axis: tuple[int, ...],
        dtype: DType,
        accumulator: str,
        *,
        keepdims: bool,
    ) -> Array:
        """Run a reducer of the kernel file."""
        launcher = self.launcher
        key: tuple[Any, ...] = (reducer, x.dtype, x.shape, axis, keepdims, dtype)
        known = self._reduction_launches.get(key)
        if known is not None and launcher.is_dense(x):
            kernel_of, blocks, shape, memory, numbers = known
            out = launcher.empty(shape, dtype.numpy)
            launcher.run_blocks(kernel_of, blocks, x, *self._memory(memory), out, *numbers)
            return out
        if dtype.is_complex or launcher.dtypes[x.dtype].is_complex:
            return self._reduce_complex(reducer, x, axis, dtype, keepdims=keepdims)
        if reducer == "Sum" and (last := _last_axes(x.shape, axis)) and launcher.is_dense(x):
            wide = float32 if dtype.is_float and dtype.itemsize < 4 else dtype
            rest = tuple([number for number in axis if number not in last])
            parts = self.sum(x, axis=last, keepdims=True, dtype=wide)  # without a transposed copy
            total = self.sum(parts, axis=rest, keepdims=True, dtype=wide)  # parts are not rounded
            shape = _reduced(x.shape, axis, keepdims=keepdims)
            return self.cast(total.reshape(shape), dtype=dtype)
        rows = rows_along(launcher, x, axis)
        out = launcher.empty(_reduced(x.shape, axis, keepdims=keepdims), dtype.numpy)
        if not out.size:
            return out
        definitions: dict[str, str | int] = {
            "T": c_type(launcher.dtypes[x.dtype]),
            "A": accumulator,
            "O": c_type(dtype),
            "REDUCER": reducer,
            "FAMILY": _FAMILIES[reducer],
        }
        if rows.x is not x:
            key = ()  # a copy: another array of this shape and strides need not be copied alike
        reduction = _Reduction(rows, out, accumulator, definitions, key)
        if rows.inner == 1 and rows.n > _MAX_ROW_OF_THREAD:
            self._reduce_rows(reduction)
        elif rows.inner >= _MIN_COLUMNS and rows.n > _MAX_ROW_OF_THREAD:
            self._reduce_columns(reduction)
        else:
            self._reduce_few_columns(reduction)
        return out

    def _reduce_rows(self, reduction: _Reduction) -> None:
        """A warp or a block for each row, or several blocks."""
        launcher = self.launcher
        source, outer, n, _ = reduction.rows
        if outer < _WANTED_BLOCKS:
            parts = min(-(-_WANTED_BLOCKS // outer), -(-n // _ROW_CHUNK_ELEMENTS))
        else:
            parts = 1
        if parts <= 1:
            lanes = _WARP_THREADS if n <= _MAX_ROW_OF_WARP else THREADS
            blocks = -(-outer * lanes // THREADS)
            kernel = reduction.kernel(launcher, "whole_rows", lanes)
            self._launch_once(reduction, kernel, blocks, (outer, n))
            return
        chunk = -(-n // parts)
        chunk = _ROW_CHUNK_ELEMENTS * -(-chunk // _ROW_CHUNK_ELEMENTS)
        parts = -(-n // chunk)
        scratch = self._scratch_memory(reduction.accumulator, outer * parts)
        kernel = reduction.kernel(launcher, "part_rows")
        launcher.run_blocks(kernel, outer * parts, source, scratch, n, parts, chunk)
        self._combine_parts(reduction, scratch, parts)

    def _reduce_columns(self, reduction: _Reduction) -> None:
        """A block for some adjacent columns; or several, the last of which combines their parts."""
        launcher = self.launcher
        _, outer, n, inner = reduction.rows
        across = -(-inner // _COLUMNS_OF_BLOCK)
        wanted = -(-_WANTED_BLOCKS // (outer * across))
        parts = max(1, min(wanted, n // _MIN_ROWS_OF_PART))
        chunk = -(-n // parts)
        parts = -(-n // chunk)
        kernel = reduction.kernel(launcher, "columns")
        groups, numbers = outer * across, (n, inner, parts, chunk, across)
        sizes = (outer * parts * inner, groups) if parts > 1 else (0, 0)
        memory = _PartMemory(_accumulator_bytes(reduction.accumulator) * sizes[0], sizes[1])
        self._launch_once(reduction, kernel, groups * parts, numbers, memory)

    def _reduce_few_columns(self, reduction: _Reduction) -> None:
        """A thread for each column, or for parts of it."""
        launcher = self.launcher
        source, outer, n, inner = reduction.rows
        wanted = -(-_WANTED_BLOCKS * THREADS // (outer * inner))
        parts = 1
        if n > _MAX_WHOLE_COLUMN:
            parts = max(1, min(wanted, n // _MIN_COLUMN_CHUNK_ELEMENTS))
        if parts == 1:
            blocks = -(-outer * inner // THREADS)
            kernel = reduction.kernel(launcher, "whole_columns")
            self._launch_once(reduction, kernel, blocks, (n, inner, reduction.out.size))
            return
        chunk = -(-n // parts)
        parts = -(-n // chunk)
        size = outer * parts * inner
        scratch = self._scratch_memory(reduction.accumulator, size)
        kernel = reduction.kernel(launcher, "part_columns")
        launcher.run(kernel, size, source, scratch, n, inner, parts, chunk, size)
        self._combine_parts(reduction, scratch, parts)

    def _combine_parts(self, reduction: _Reduction, scratch: Array, parts: int) -> None:
        _, outer, n, inner = reduction.rows
        kernel = reduction.kernel(self.launcher, "combine_parts")
        given = (scratch, reduction.out, n, parts, inner)
        self.launcher.run_blocks(kernel, outer * inner, *given)

    def _reduce_complex(
        self, reducer: str, x: Array, axis: tuple[int, ...], dtype: DType, *, keepdims: bool
    ) -> Array:
        """Sums by real and imaginary parts, products by halves, any and all by comparison."""
        if reducer in ("Any", "All"):
            mask = self.ops.not_equal(x, 0.0)
            return self._reduce(reducer, mask, axis, dtype, "int", keepdims=keepdims)
        x = self.cast(x, dtype=dtype)
        if reducer == "Product":
            return self._complex_product(x, axis, keepdims=keepdims)
        if reducer not in ("Sum", "Mean"):
            raise TypeError("complex numbers have no order")
        part = dtype.component

        def reduced(parts: Array) -> Array:
            accumulator = computed_type(part)
            return self._reduce(reducer, parts, axis, part, accumulator, keepdims=keepdims)

        return on_parts(self.launcher, reduced, x, dtype)

    def _complex_product(self, x: Array, axis: Sequence[int], *, keepdims: bool) -> Array:
        """The product along axes: the first half times the second half, again and again."""
        for number in axis:
            while x.shape[number] > 1:
                length = x.shape[number]
                half = length // 2
                product = self.multiply(
                    slice_axis(x, number, 0, half), slice_axis(x, number, half, 2 * half)
                )
                rest = slice_axis(x, number, 2 * half, length)
                x = self.concat([product, rest], axis=number) if rest.size else product
            if not x.shape[number]:
                shape = (*x.shape[:number], 1, *x.shape[number + 1 :])
                dtype, device = self.launcher.dtypes[x.dtype], DeviceId(0, self.index)
                x = self.full(shape=shape, fill_value=1.0, dtype=dtype, device=device)
        return x.reshape(_reduced(x.shape, axis, keepdims=keepdims))

    def _launch_once(
        self,
        reduction: _Reduction,
        kernel: Any,
        blocks: int,
        numbers: tuple[int, ...],
        memory: _PartMemory | None = None,
    ) -> None:
        """Launch one kernel, and cache the launch for dense operands of this shape."""
        out, given = reduction.out, self._memory(memory)
        self.launcher.run_blocks(kernel, blocks, reduction.rows.x, *given, out, *numbers)
        if reduction.key:
            known = (kernel, blocks, out.shape, memory, numbers)
            self._reduction_launches.store(reduction.key, known)

    def _memory(self, memory: _PartMemory | None) -> tuple[Any, ...]:
        """New memory for parts, with counters that are 0; null pointers for none."""
        if memory is None:
            return ()
        if not memory.counters:
            return 0, 0
        counters = self.launcher.empty((memory.counters,), _COUNTER)
        self.launcher.runtime.zero(counters)
        return self.launcher.empty((memory.bytes,), _BYTE), counters

    def _scratch_memory(self, accumulator: str, count: int) -> Array:
        """Memory for the accumulators of parts."""
        return self.launcher.empty((count * _accumulator_bytes(accumulator),), _BYTE)


def _accumulator_bytes(accumulator: str) -> int:
    return _ACCUMULATOR_BYTES.get(accumulator, 8)
