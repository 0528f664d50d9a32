"""Launcher: compiles and launches kernels, packs layouts, and reports index errors of kernels."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from burn.plugin_api import DType, Shape, divider
from burn_cuda import array
from burn_cuda.kernels import THREADS, WORDS, source
from burn_cuda.kernels.elementwise import (
    NARROW_LIMIT,
    RANKS,
    Program,
    dense_source,
    strided_source,
)
from burn_cuda.shared_launcher import Packed, SharedLauncher

if TYPE_CHECKING:
    from burn_cuda.runtime import Runtime

__all__ = [
    "LaunchCache",
    "Launcher",
    "Packed",
    "broadcast",
    "element_strides",
    "merged",
    "packed",
]

Array = Any
_Array: Final = array.Array

_TILE_SIDES: Final = (32, 64)
"""Sides of the tiles of transposed copies: for short axes or large elements, and for others."""

_WORD_BYTES: Final = 8
"""Bytes that a thread moves in one access; elements of this size take the smaller tiles."""

_MIN_TILE_LENGTH: Final = 16
"""Length of an axis below which tiles do not pay."""

_MIN_ELEMENTS_FOR_TILES: Final = 1 << 14
"""Number of elements below which kernels for a layout, and copies in tiles, do not pay."""

_MAX_TILE_AXES: Final = 8
_COMMON_RANK: Final = 4
_MAX_CACHED_LAUNCHES: Final = 4096


class Launcher(SharedLauncher):
    """Kernels of one device, and launches of them.

    Parameters
    ----------
    runtime : Runtime
        The device.
    dtypes : dict
        DType of each NumPy dtype that arrays have.
    """

    def __init__(self, runtime: Runtime, dtypes: dict[Any, DType]) -> None:
        super().__init__(runtime, dtypes)
        self.empty: Callable[[Shape, Any], Array] = runtime.empty
        self.is_dense: Callable[[Array], bool] = runtime.is_dense
        self._strided = LaunchCache()
        self._copies = LaunchCache()

    def kernel(self, name: str, file: str, **definitions: str | int) -> Any:
        """A kernel of a file, compiled with macros."""
        key = (name, file, *definitions.items())
        found = self._compiled.get(key)
        if found is None:
            found = self.runtime.compile(source(file, **definitions), name)
            self._compiled[key] = found
        return found

    def run(self, kernel: Any, threads: int, *arguments: Any) -> None:
        """Launch a kernel with a number of threads."""
        if threads:
            self.run_blocks(kernel, -(-threads // THREADS), *arguments)

    def run_blocks(self, kernel: Any, blocks: int, *arguments: Any) -> None:
        """Launch a kernel with a number of blocks."""
        if blocks:
            words = [
                argument.address if argument.__class__ is _Array else argument
                for argument in arguments
            ]
            kernel.launch(blocks, *words)

    def dense(self, x: Array) -> Array:
        """The array, or a dense copy in row-major order."""
        return x if x.is_dense else self.copied(x)

    def copied(self, x: Array) -> Array:
        """A dense copy."""
        if x.is_dense:
            return self.runtime.copy(x)
        result = self.empty(x.shape, x.dtype)
        key = (x.dtype, x.shape, x.strides)
        try:
            launch = self._copies[key]
        except KeyError:
            launch = self._tiled_copy(x)
            self._copies.store(key, launch)
        if launch is None:
            self.write(result, x)
        else:
            kernel, blocks, rest = launch
            kernel.launch(blocks, x.address, result.address, *rest)
        return result

    def _tiled_copy(self, x: Array) -> tuple[Any, int, tuple[Any, ...]] | None:
        """The launch of a copy in tiles: kernel, blocks, and the arguments after the result."""
        itemsize = x.dtype.itemsize
        tiles = _tiles(x.shape, element_strides(x, len(x.shape)), itemsize)
        if tiles is None:
            return None
        definitions: dict[str, str | int] = {
            "E": WORDS[itemsize],
            "R": tiles.rank,
            "SIDE": tiles.side,
            "EACH": max(1, _WORD_BYTES // itemsize) if tiles.side == _TILE_SIDES[1] else 1,
        }
        kernel = self.kernel("transposed", "transposition.cu", **definitions)
        return kernel, tiles.blocks, (tiles.layout, *tiles.numbers)

    def write(self, target: Array, values: Array) -> None:
        """Write values, which broadcast, to the elements of a view."""
        program = _copy_program(self.dtypes[target.dtype])
        self.strided(program, (values,), (target,), target.shape)

    def elementwise(
        self, program: Program, operands: Sequence[Any], parameters: Sequence[float] = ()
    ) -> tuple[Array, ...]:
        """Compute a program on operands that broadcast."""
        tensors = [
            operand for operand, scalar in zip(operands, program.scalars, strict=True) if not scalar
        ]
        shape = tensors[0].shape
        if any(tensor.shape != shape for tensor in tensors):
            shape = broadcast([tensor.shape for tensor in tensors])
        elif all(tensor.is_dense for tensor in tensors):
            return self._dense(program, operands, parameters, shape)
        order = self._order(operands, program.scalars, shape)
        if order is not None:
            moved = [
                operand if scalar else operand.transpose(order)
                for operand, scalar in zip(operands, program.scalars, strict=True)
            ]
            back = tuple([order.index(axis) for axis in range(len(order))])
            return tuple(
                [item.transpose(back) for item in self.elementwise(program, moved, parameters)]
            )
        if math.prod(shape) >= _MIN_ELEMENTS_FOR_TILES:
            operands = [
                operand if scalar else self._untransposed(operand)
                for operand, scalar in zip(operands, program.scalars, strict=True)
            ]
        results = tuple([self.empty(shape, dtype.numpy) for dtype in program.outputs])
        self.strided(program, operands, results, shape, parameters)
        return results

    def _dense(
        self,
        program: Program,
        operands: Sequence[Any],
        parameters: Sequence[float],
        shape: Shape,
    ) -> tuple[Array, ...]:
        """Compute a program on dense operands of one shape."""
        results = tuple([self.empty(shape, dtype.numpy) for dtype in program.outputs])
        size = results[0].size
        if size:
            blocks = -(-size // (THREADS * program.elements))
            kernel = self.dense_kernel(program)
            self.run_blocks(kernel, blocks, *operands, *parameters, *results, size)
        return results

    def prepared(self, program: Program, operands: Sequence[Array]) -> tuple[Any, ...] | None:
        """The launch of a program for operands of these shapes and layouts.

        None where there is nothing to compute, or an operand is copied first.

        Returns
        -------
        kernel, dtype, shape, blocks, rest
            The kernel, the dtype and the shape of the result, and the arguments after it.
        """
        shape = broadcast([operand.shape for operand in operands])
        size = math.prod(shape)
        if not size or (
            size >= _MIN_ELEMENTS_FOR_TILES and any(map(self._is_transposed, operands))
        ):
            return None
        strides = [element_strides(operand, len(shape)) for operand in operands]
        launch = self._strided_launch(program, shape, (*strides, _row_major(shape)))
        return launch[0], program.outputs[0].numpy, shape, *launch[1:]

    def _order(
        self, operands: Sequence[Any], scalars: Sequence[bool], shape: Shape
    ) -> tuple[int, ...] | None:
        """The order of axes in which all operands are dense; None if there is none.

        The result is computed in the same order.
        """
        tensors = [operand for operand, scalar in zip(operands, scalars, strict=True) if not scalar]
        if math.prod(shape) < _MIN_ELEMENTS_FOR_TILES or self.is_dense(tensors[0]):
            return None
        strides = element_strides(tensors[0], len(shape))
        order = tuple(sorted(range(len(shape)), key=lambda axis: -strides[axis]))
        for tensor in tensors:
            same = tensor.shape == shape and element_strides(tensor, len(shape)) == strides
            if not same or not self.is_dense(tensor.transpose(order)):
                return None
        return order

    def _untransposed(self, x: Array) -> Array:
        """A dense copy of a transposed array, which a kernel could not load efficiently."""
        return self.copied(x) if self._is_transposed(x) else x

    def _is_transposed(self, x: Array) -> bool:
        strides = element_strides(x, len(x.shape))
        return not self.is_dense(x) and _tiles(x.shape, strides, x.dtype.itemsize) is not None

    def dense_kernel(self, program: Program) -> Any:
        """Kernel of a program for dense operands of one shape."""
        found = self._compiled.get(program)
        if found is None:
            found = self.runtime.compile(dense_source(program), "dense", contracts=False)
            self._compiled[program] = found
        return found

    def strided(
        self,
        program: Program,
        operands: Sequence[Any],
        results: Sequence[Array],
        shape: Shape,
        parameters: Sequence[float] = (),
    ) -> None:
        """Compute a program on views."""
        key: list[Any] = [program, shape]
        words: list[Any] = []
        for operand, scalar in zip(operands, program.scalars, strict=True):
            if scalar:
                words.append(operand)
            else:
                words.append(operand.address)
                key += operand.shape, operand.strides
        words += parameters
        for result in results:
            words.append(result.address)
            key.append(result.strides)
        found = tuple(key)
        try:
            launch = self._strided[found]
        except KeyError:
            tensors = [
                operand
                for operand, scalar in zip(operands, program.scalars, strict=True)
                if not scalar
            ]
            strides = tuple(
                [element_strides(tensor, len(shape)) for tensor in (*tensors, *results)]
            )
            launch = self._strided_launch(program, shape, strides) if math.prod(shape) else None
            self._strided.store(found, launch)
        if launch is not None:
            kernel, blocks, rest = launch
            kernel.launch(blocks, *words, *rest)

    def _strided_launch(
        self, program: Program, shape: Shape, strides: tuple[tuple[int, ...], ...]
    ) -> tuple[Any, int, tuple[Any, ...]]:
        """The launch of a program on views: kernel, blocks, and the arguments after the results."""
        size = math.prod(shape)
        layout, rank, packs = _layout(shape, strides)
        kernel = self._strided_kernel(program, rank, wide=size >= NARROW_LIMIT, packs=packs)
        threads = size // 4 if packs else size
        return kernel, -(-threads // THREADS), (layout, size)

    def _strided_kernel(self, program: Program, rank: int, *, wide: bool, packs: bool) -> Any:
        key = (program, rank, wide, packs)
        kernel = self._compiled.get(key)
        if kernel is None:
            text = strided_source(program, rank, wide=wide, packs=packs)
            kernel = self.runtime.compile(text, "strided", contracts=False)
            self._compiled[key] = kernel
        return kernel

    def raise_failed(self) -> None:
        """Raise the error that kernels have reported in the flag, once.

        Raises
        ------
        OutOfRangeError
            If an index was out of range.
        """
        flag = self.runtime.flag
        number = int(flag[0])
        if number:
            error = self.checked.error(number, int(flag[1]), int(flag[2]))
            flag[0] = 0
            raise error


@functools.cache
def _copy_program(dtype: DType) -> Program:
    return Program("r0 = x0;", (dtype,), (False,), (dtype,))


def element_strides(x: Array, rank: int) -> tuple[int, ...]:
    """Strides in elements of an array that broadcasts to a number of axes; 0 where it repeats."""
    itemsize = x.dtype.itemsize
    strides = [
        0 if length == 1 else stride // itemsize
        for length, stride in zip(x.shape, x.strides, strict=True)
    ]
    return (0,) * (rank - len(strides)) + tuple(strides)


def _row_major(shape: Shape) -> tuple[int, ...]:
    """Strides in elements of a dense array; 0 for axes of length 1."""
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(0 if length == 1 else step)
        step *= length
    return tuple(reversed(strides))


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The shape that shapes broadcast to."""
    return np.broadcast_shapes(*shapes)


class LaunchCache(dict[Any, Any]):
    """Prepared launches, by the shapes and layouts that they are for; emptied when it is full."""

    def store(self, key: Any, launch: Any) -> None:
        """Keep a launch."""
        if len(self) >= _MAX_CACHED_LAUNCHES:
            self.clear()
        self[key] = launch


def packed(numbers: np.ndarray[Any, Any]) -> Packed:
    """Numbers of 64 bits as one argument."""
    return Packed(numbers.tobytes())


def merged(shape: Shape, strides: tuple[tuple[int, ...], ...]) -> list[tuple[int, tuple[int, ...]]]:
    """Length and strides of each axis; adjacent axes are merged where all tensors allow it."""
    axes: list[tuple[int, tuple[int, ...]]] = []
    for position, length in enumerate(shape):
        if length == 1:
            continue
        axis_strides = tuple([stride[position] for stride in strides])
        if axes:
            outer, above = axes[-1]
            if above == tuple([length * stride for stride in axis_strides]):
                axes[-1] = (outer * length, axis_strides)
                continue
        axes.append((length, axis_strides))
    return axes


class _Tiles(NamedTuple):
    """The tiles of a transposed copy."""

    side: int
    rank: int
    blocks: int
    layout: Packed
    numbers: tuple[int, ...]


@functools.lru_cache(maxsize=4096)
def _tiles(shape: Shape, strides: tuple[int, ...], itemsize: int) -> _Tiles | None:
    """Tiles that copy an array with these strides to row-major order; None if they do not pay."""
    if math.prod(shape) < _MIN_ELEMENTS_FOR_TILES:
        return None
    axes = merged(shape, (strides, _row_major(shape)))
    n, (x_step, _) = axes[-1]
    across = [number for number, (_, (stride, _)) in enumerate(axes[:-1]) if stride == 1]
    if x_step in (0, 1) or not across or n < _MIN_TILE_LENGTH or len(axes) > _MAX_TILE_AXES:
        return None
    m, (_, out_step) = axes[across[0]]
    if m < _MIN_TILE_LENGTH:
        return None
    others = [axis for number, axis in enumerate(axes[:-1]) if number != across[0]]
    others = others or [(1, (0, 0))]
    table = [length for length, _ in others]
    table += [stride for _, (stride, _) in others] + [stride for _, (_, stride) in others]
    side = _TILE_SIDES[min(m, n) > _TILE_SIDES[0] and itemsize < _WORD_BYTES]
    counts = (-(-m // side), -(-n // side))
    blocks = math.prod(counts) * math.prod([length for length, _ in others])
    numbers = (m, n, x_step, out_step, *counts)
    return _Tiles(side, len(others), blocks, packed(np.array(table, np.int64)), numbers)


@functools.lru_cache(maxsize=4096)
def _layout(shape: Shape, strides: tuple[tuple[int, ...], ...]) -> tuple[Packed, int, bool]:
    """The layout of a strided kernel, with merged axes; the number of axes; whether it uses packs.

    With packs, each thread computes 4 elements along the last axis, whose length is a multiple of
    4. Small arrays share a kernel for `_COMMON_RANK` axes: another one takes longer to compile than
    it saves.
    """
    axes = merged(shape, strides)
    is_small = math.prod(shape) < _MIN_ELEMENTS_FOR_TILES
    rank = next(rank for rank in RANKS if rank >= max(len(axes), _COMMON_RANK * is_small))
    none = (1, (0,) * len(strides))
    axes = [none] * (rank - len(axes)) + axes
    table = [[length for length, _ in axes], [divider(length) for length, _ in axes]]
    table += [[own[row] for _, own in axes] for row in range(len(strides))]
    numbers = [number for row in table for number in row]
    return packed(np.array(numbers, np.int64)), rank, not is_small and axes[-1][0] % 4 == 0
