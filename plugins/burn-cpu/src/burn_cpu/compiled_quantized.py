"""Products of few rows with codes of few bits, which are restored in registers.

LLVM makes no such code of loops over arrays, so the instructions are written here: a vector of
bytes becomes as many vectors of floats as a byte has codes, and each of them is multiplied by the
elements of every row that meet its codes, which `arranged` has put side by side.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils as _cgutils

from burn_cpu.base import Array
from burn_cpu.compiled_base import IS_FOR_HOST, compiled_exactly, literal_intrinsic
from burn_cpu.compiled_codes import decode_scales

__all__ = ["MAX_ROWS", "ROWS", "Format", "Tile", "arranged", "format_of", "product"]

# As Any: numba has no types, and a function of numba takes others than that which writes it.
cgutils: Any = _cgutils


_FEATURES: Final = llvm.get_host_cpu_features()
_HAS_512_BITS: Final = bool(_FEATURES.get("avx512f"))
_HAS_HALF: Final = IS_FOR_HOST and bool(_FEATURES.get("f16c") or _FEATURES.get("fullfp16"))
"""Whether the processor converts float16, through which floats of few bits are restored."""

_LANES: Final = 16 if _HAS_512_BITS else 8
ROWS: Final = 8
"""The most rows that a kernel multiplies at a time."""

MAX_ROWS: Final = 32
"""Rows up to which this takes less time than BLAS with a restored weight."""

_SUMS: Final = 16 if _HAS_512_BITS else 8
"""Vectors of sums, of 32 registers or 16; the others are for operands."""

_LINES: Final = 16
"""Lines of the weight whose scales are decoded at a time: they stay in the cache."""

_INT8, _INT16, _INT32, _INT64 = map(ir.IntType, (8, 16, 32, 64))
_FLOAT: Final = ir.FloatType()

_FACTORS: Final = {3: 2.0**8, 2: 1.0, 1: 2.0**14}
"""By the bits of a mantissa: what a float of few bits is, divided by the float16 of its bits."""


class Format(NamedTuple):
    """How codes are read.

    Attributes
    ----------
    bits : int
        Bits of a code.
    mantissa : int
        Bits of the mantissa of floats; 0 for integers.
    lanes : int
        Bytes that are read at a time.
    unroll : int
        How often in a step, where there is one row of numbers.
    """

    bits: int
    mantissa: int
    lanes: int
    unroll: int


@functools.lru_cache(maxsize=1024)
def format_of(bits: int, mantissa: int, block: int) -> Format | None:
    """How to read codes in blocks of a length along the line; None for a length that is not."""
    if mantissa and not _HAS_HALF:
        return None
    for lanes, unroll in ((_LANES, 2), (_LANES, 1), (8, 1)):
        if not block % (lanes * unroll * (8 // bits)):
            return Format(bits, mantissa, lanes, unroll)
    return None


def arranged(x: Array, form: Format) -> Array:
    """Rows in the order of the codes of a vector of bytes, on one axis; 1, 2, 4 or 8 rows."""
    rows, length = x.shape
    count = 1 << (rows - 1).bit_length()
    fields = 8 // form.bits
    result = np.empty((count, length // (form.lanes * fields), fields, form.lanes), np.float32)
    source = x.reshape(rows, -1, form.lanes, fields)
    result[:rows] = source.swapaxes(2, 3)
    result[rows:] = 0.0
    return result.reshape(-1)


def product(form: Format, rows: int, columns: int, block: int) -> Callable[..., None]:
    """The kernel of a format for 1, 2, 4 or 8 rows, so many columns, and blocks of some bytes.

    See `_product`.
    """
    unroll = form.unroll if rows == 1 else 1
    width = min(4, _SUMS // rows) if columns >= 4 else 1
    is_short = int(block == form.lanes * unroll)
    return _product(form.bits, form.mantissa, form.lanes, unroll, rows, width, is_short)


class Tile:
    """Writes instructions on vectors: codes of some bits, and floats."""

    def __init__(self, builder: Any, shape: Sequence[int]) -> None:
        self.builder: Final = builder
        self.bits, self.mantissa, self.lanes, self.unroll, self.rows, self.columns = shape
        self.floats: Final = ir.VectorType(_FLOAT, self.lanes)
        name = f"llvm.fmuladd.v{self.lanes}f32"
        signature = ir.FunctionType(self.floats, [self.floats] * 3)
        self.multiply_add: Final = cgutils.get_or_insert_function(builder.module, signature, name)

    def constant(self, element: Any, value: float) -> Any:
        """A vector of one number."""
        return ir.Constant(ir.VectorType(element, self.lanes), [value] * self.lanes)

    def vector(self, element: Any, pointer: Any) -> Any:
        """A vector in memory, at any address."""
        vector = ir.VectorType(element, self.lanes)
        align = 1 if element is _INT8 else 4
        return self.builder.load(self.builder.bitcast(pointer, vector.as_pointer()), align=align)

    def spread(self, value: Any) -> Any:
        """A vector of a number in a register."""
        vector = self.builder.insert_element(self.constant(_FLOAT, 0.0), value, _INT32(0))
        order = ir.Constant(ir.VectorType(_INT32, self.lanes), None)
        return self.builder.shuffle_vector(vector, vector, order)

    def total(self, vector: Any) -> Any:
        """The sum of the lanes."""
        half = self.lanes // 2
        while half:
            lanes = [(lane + half) % self.lanes for lane in range(self.lanes)]
            order = ir.Constant(ir.VectorType(_INT32, self.lanes), lanes)
            other = self.builder.shuffle_vector(vector, vector, order)
            vector = self.builder.fadd(vector, other)
            half //= 2
        return self.builder.extract_element(vector, _INT32(0))

    def numbers(self, codes: Any) -> list[Any]:
        """The numbers of a vector of bytes: a vector for each code of a byte."""
        restore = self._float if self.mantissa else self._integer
        return [restore(codes, shift) for shift in range(8 - self.bits, -1, -self.bits)]

    def _integer(self, codes: Any, shift: int) -> Any:
        """Codes that are to be shifted so many bits to the left to be the highest of a byte."""
        wide = self.builder.sext(codes, ir.VectorType(_INT32, self.lanes))
        if shift:
            wide = self.builder.shl(wide, self.constant(_INT32, 24 + shift))
            wide = self.builder.ashr(wide, self.constant(_INT32, 32 - self.bits))
        elif self.bits < 8:
            wide = self.builder.ashr(wide, self.constant(_INT32, 8 - self.bits))
        return self.builder.sitofp(wide, self.floats)

    def _float(self, codes: Any, shift: int) -> Any:
        """The same codes as floats, by the float16 that has their sign, exponent and mantissa."""
        bits = self.builder.zext(codes, ir.VectorType(_INT16, self.lanes))
        bits = self.builder.shl(bits, self.constant(_INT16, 8 + shift))
        exponents = 5 - (self.bits - 1 - self.mantissa)
        bits = self.builder.ashr(bits, self.constant(_INT16, exponents))
        kept = (1 << (self.bits - 1 + 10 - self.mantissa)) - (1 << (10 - self.mantissa))
        bits = self.builder.and_(bits, self.constant(_INT16, kept | 0x8000))
        half = self.builder.bitcast(bits, ir.VectorType(ir.HalfType(), self.lanes))
        number = self.builder.fpext(half, self.floats)
        if _FACTORS[self.mantissa] != 1.0:
            number = self.builder.fmul(number, self.constant(_FLOAT, _FACTORS[self.mantissa]))
        if self.mantissa == 3:  # the largest code is NaN
            kept = self.builder.and_(codes, self.constant(_INT8, 0x7F))
            is_nan = self.builder.icmp_unsigned("==", kept, self.constant(_INT8, 0x7F))
            number = self.builder.select(is_nan, self.constant(_FLOAT, float("nan")), number)
        return number


class _Products:
    """Writes the instructions of `_write_products`."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.context: Final = context
        self.builder: Final = builder
        self.types: Final = signature.args
        self.arguments: Final = arguments
        *shape, is_short = (argument.literal_value for argument in signature.args[11:])
        self.tile: Final = Tile(builder, shape)
        self.is_short: Final = bool(is_short)
        to_prefetch = [_INT8.as_pointer(), _INT32, _INT32, _INT32]
        self.prefetch: Final = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), to_prefetch), "llvm.prefetch.p0"
        )
        self.fields: Final = 8 // self.tile.bits
        self.zero: Final = self.tile.constant(_FLOAT, 0.0)
        rows, columns = self.tile.rows, self.tile.columns
        _, start, length, _, begin, blocks, steps, *_ = arguments
        self.lines: Final = [
            self.at(0, builder.add(start, self.multiple(length, column)))
            for column in range(columns)
        ]
        vectors = self.multiple(builder.mul(blocks, steps), self.tile.unroll)
        span = self.multiple(vectors, self.tile.lanes * self.fields)
        self.operands: Final = [self.at(7, self.multiple(span, row)) for row in range(rows)]
        self.begins: Final = [
            builder.add(begin, self.multiple(blocks, column)) for column in range(columns)
        ]
        self.totals: Final = self.zeros(rows * columns)
        # Of one row the sums of a block are multiplied by its scale, of more the numbers are.
        self.parts: Final = [
            self.zeros(self.tile.unroll) for _ in range(columns if rows == 1 else 0)
        ]

    def at(self, number: int, offset: Any) -> Any:
        """The address of an element of an array among the arguments."""
        array = self.context.make_array(self.types[number])
        data = array(self.context, self.builder, self.arguments[number]).data
        return self.builder.gep(data, [offset])

    def multiple(self, value: Any, factor: int, offset: int = 0) -> Any:
        """A multiple of an index, and so much more."""
        return self.builder.add(self.builder.mul(value, _INT64(factor)), _INT64(offset))

    def zeros(self, count: int) -> list[Any]:
        """Sums, which LLVM keeps in registers."""
        return [cgutils.alloca_once_value(self.builder, self.zero) for _ in range(count)]

    def add(self, total: Any, first: Any, second: Any) -> None:
        """Add a product to a sum."""
        old = self.builder.load(total)
        self.builder.store(self.builder.call(self.tile.multiply_add, [first, second, old]), total)

    def write(self) -> None:
        """Write all of it."""
        builder, (blocks, steps) = self.builder, self.arguments[5:7]
        with cgutils.for_range(builder, blocks) as block:
            indices = [builder.add(begin, block.index) for begin in self.begins]
            scales = [self.tile.spread(builder.load(self.at(3, index))) for index in indices]
            for part in itertools.chain(*self.parts):
                builder.store(self.zero, part)
            if self.is_short:
                self.add_vectors(block.index, scales)
            else:
                with cgutils.for_range(builder, steps) as step:
                    index = builder.add(builder.mul(block.index, steps), step.index)
                    self.add_vectors(index, scales)
            for total, own, scale in zip(self.totals, self.parts, scales, strict=False):
                for item in own:
                    self.add(total, builder.load(item), scale)
        line, width = self.arguments[9:11]
        for number, total in enumerate(self.totals):
            row, column = divmod(number, self.tile.columns)
            target = self.at(8, builder.add(line, self.multiple(width, row, column)))
            builder.store(self.tile.total(builder.load(total)), target)

    def add_vectors(self, index: Any, scales: list[Any]) -> None:
        """Add the products with `unroll` vectors of bytes of each line; prefetch the next lines."""
        builder, tile = self.builder, self.tile
        # A line may begin a page, where the processor does not know yet what will be read next.
        first = self.multiple(index, tile.unroll * tile.lanes)
        ahead = builder.add(first, self.multiple(self.arguments[2], tile.columns))
        for line in self.lines:
            builder.call(self.prefetch, [builder.gep(line, [ahead]), *map(_INT32, (0, 3, 1))])
        for part in range(tile.unroll):
            vector = self.multiple(index, tile.unroll, part)
            offset = self.multiple(vector, tile.lanes)
            numbers = [
                tile.numbers(tile.vector(_INT8, builder.gep(line, [offset]))) for line in self.lines
            ]
            for field, row in itertools.product(range(self.fields), range(tile.rows)):
                offset = self.multiple(vector, tile.lanes * self.fields, field * tile.lanes)
                operand = tile.vector(_FLOAT, builder.gep(self.operands[row], [offset]))
                for column, own in enumerate(numbers):
                    if tile.rows == 1:
                        self.add(self.parts[column][part], own[field], operand)
                        continue
                    if not row:
                        own[field] = builder.fmul(own[field], scales[column])
                    self.add(self.totals[row * tile.columns + column], own[field], operand)


def _write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    _Products(context, builder, signature, arguments).write()
    return context.get_dummy_value()


@literal_intrinsic
def _write_products(
    typing: Any,
    codes: Any,
    start: Any,
    length: Any,
    scales: Any,
    begin: Any,
    blocks: Any,
    steps: Any,
    x: Any,
    out: Any,
    line: Any,
    width: Any,
    bits: Any,
    mantissa: Any,
    lanes: Any,
    unroll: Any,
    rows: Any,
    columns: Any,
    is_short: Any,
) -> Any:
    """Write the products of all rows of `x` with `columns` lines of codes, from `start` on.

    A line has `length` bytes and `blocks` scales, those of the first from `begin` on; a block is
    `steps` times `unroll` vectors, and `is_short` says that there is one step. Rows of `out` have
    `width` elements; `line` is the first of them that is written. What describes the tile are
    literals.
    """
    del typing
    if not isinstance(is_short, types.Literal):
        return None
    return types.void(
        codes, start, length, scales, begin, blocks, steps, x, out, line, width,
        bits, mantissa, lanes, unroll, rows, columns, is_short,
    ), _write  # fmt: skip


@functools.cache
def _product(
    bits: int, mantissa: int, lanes: int, unroll: int, rows: int, columns: int, is_short: int
) -> Callable[..., None]:
    """The kernel whose tiles have so many rows of numbers, and columns: lines of the weight.

    ``kernel(codes, length, scales, scale_mantissa, block, x, out, first, last)`` writes columns
    `first` to `last` of `out`, of which there are `columns` or more. A line of `codes` has `length`
    bytes, and a block `block` of them; `scales` has bits, see `decode_scales`; `x` is `arranged`.
    All arrays have one axis.
    """
    # Numba takes integers of the enclosing function for literals, and knows them in its cache.
    step = lanes * unroll

    @compiled_exactly
    def kernel(
        codes: Array,
        length: int,
        scales: Array,
        scale_mantissa: int,
        block: int,
        x: Array,
        out: Array,
        first: int,
        last: int,
    ) -> None:
        width = len(out) // rows
        blocks = length // block
        numbers = np.empty(_LINES * blocks, np.float32)
        for begin in range(first, last, _LINES):
            # What is left is computed with some of what is before, so that there are whole tiles.
            start = max(first, min(begin, last - _LINES))
            stop = min(start + _LINES, last)
            decode_scales(scales[start * blocks : stop * blocks], scale_mantissa, numbers)
            for tile in range(start, stop, columns):
                line = min(tile, stop - columns)
                _write_products(
                    codes, line * length, length, numbers, (line - start) * blocks, blocks,
                    block // step, x, out, line, width,
                    bits, mantissa, lanes, unroll, rows, columns, is_short,
                )  # fmt: skip

    return kernel
