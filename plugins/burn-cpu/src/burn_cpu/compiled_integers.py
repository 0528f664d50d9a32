"""Products of matrices of int8, added up in int32 by the instructions for that (AVX512-VNNI).

They multiply unsigned bytes by signed ones, so the first matrix is one of ``code + 128``, and 128
times the sum of the other's codes is subtracted: it is the product with one more row, of zeros.
"""

from __future__ import annotations

from typing import Any, Final

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils as _cgutils

from burn_cpu.base import Array
from burn_cpu.compiled_base import IS_FOR_HOST, compiled_exactly, literal_intrinsic

__all__ = ["HAS_INSTRUCTIONS", "MAX_LENGTH", "STEP", "offset_codes", "products"]

# As Any: numba has no types, and a function of numba takes others than that which writes it.
cgutils: Any = _cgutils

HAS_INSTRUCTIONS: Final = IS_FOR_HOST and bool(llvm.get_host_cpu_features().get("avx512vnni"))
"""Whether numba compiles for a processor that has them."""

STEP: Final = 64
"""Codes of a vector: the length of a row is a multiple."""

MAX_LENGTH: Final = 1 << 16
"""Length of a row up to which no sum leaves int32: 255 * 128 * 65536 < 2**31."""

_COLUMNS: Final = 4
_ROWS: Final = 4
"""Rows and columns of a tile: 16 of 32 registers have its sums."""

_BLOCK_BYTES: Final = 1 << 19
"""Bytes of rows that stay in the cache."""

_LANES: Final = 16
_INT32, _INT64 = ir.IntType(32), ir.IntType(64)
_VECTOR: Final = ir.VectorType(_INT32, _LANES)


def _write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The instructions of `_write_tile`."""
    rows, columns = signature.args[-1].literal_value, _COLUMNS
    first, second, length = arguments[1], arguments[3], arguments[4]

    def at(number: int, offset: Any) -> Any:
        """The address of an element of an array among the arguments."""
        array = context.make_array(signature.args[number])(context, builder, arguments[number])
        return builder.gep(array.data, [offset])

    def lines(number: int, start: Any, count: int) -> list[Any]:
        """The addresses of successive lines."""
        offsets = [builder.mul(length, _INT64(index)) for index in range(count)]
        return [at(number, builder.add(start, offset)) for offset in offsets]

    def load(line: Any, offset: Any) -> Any:
        pointer = builder.bitcast(builder.gep(line, [offset]), _VECTOR.as_pointer())
        return builder.load(pointer, align=1)

    add_products = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(_VECTOR, [_VECTOR] * 3), "llvm.x86.avx512.vpdpbusd.512"
    )
    zero = ir.Constant(_VECTOR, None)
    totals = [cgutils.alloca_once_value(builder, zero) for _ in range(rows * columns)]
    left, right = lines(0, first, rows), lines(2, second, columns)
    with cgutils.for_range(builder, builder.sdiv(length, _INT64(STEP))) as step:
        offset = builder.mul(step.index, _INT64(STEP))
        factors = [load(item, offset) for item in right]
        for row, line in enumerate(left):
            codes = load(line, offset)
            for total, factor in zip(totals[row * columns :], factors, strict=False):
                parts = [builder.load(total), codes, factor]
                builder.store(builder.call(add_products, parts), total)
    for number, total in enumerate(totals):
        vector = builder.load(total)
        for half in (8, 4, 2, 1):
            order = [(lane + half) % _LANES for lane in range(_LANES)]
            other = builder.shuffle_vector(vector, vector, ir.Constant(_VECTOR, order))
            vector = builder.add(vector, other)
        builder.store(builder.extract_element(vector, _INT32(0)), at(5, _INT64(number)))
    return context.get_dummy_value()


@literal_intrinsic
def _write_tile(
    typing: Any, x: Any, first: Any, y: Any, second: Any, length: Any, out: Any, rows: Any
) -> Any:
    """Write the products of `rows` rows of `x`, from `first` on, and 4 lines of `y`.

    Both have `length` bytes; `out` has the results, one row after the other.
    """
    del typing
    if not isinstance(rows, types.Literal):
        return None
    return types.void(x, first, y, second, length, out, rows), _write


@compiled_exactly
def products(
    x: Array,
    x_scales: Array,
    y: Array,
    y_scales: Array,
    length: int,
    out: Array,
    begin: int,
    end: int,
) -> None:
    """Write columns `begin` to `end`, 4 or more, of the product of two matrices by their codes.

    All arrays have one axis; lines of `x` and `y` have `length` codes. There is a float64 scale of
    each row of `x`, which `offset_codes` has made, and of each line of `y`.
    """
    rows, width = len(x_scales), len(y_scales)
    together = max(_ROWS, _BLOCK_BYTES // length // _ROWS * _ROWS)
    found = np.empty(_ROWS * _COLUMNS, np.int32)
    surplus = np.empty(_COLUMNS, np.int32)
    for block in range(0, rows, together):
        last = min(block + together, rows)
        for tile in range(begin, end, _COLUMNS):
            line = min(tile, end - _COLUMNS)
            _write_tile(x, rows * length, y, line * length, length, surplus, 1)
            row = block
            while row < last:
                count = _ROWS if row + _ROWS <= last else 1
                if count == 1:
                    _write_tile(x, row * length, y, line * length, length, found, 1)
                else:
                    _write_tile(x, row * length, y, line * length, length, found, 4)
                for index in range(count):
                    scale = x_scales[row + index]
                    for column in range(_COLUMNS):
                        number = np.int32(found[index * _COLUMNS + column] - surplus[column])
                        product = number * scale * y_scales[line + column]
                        out[(row + index) * width + line + column] = out.dtype.type(product)
                row += count


def offset_codes(codes: Array) -> Array:
    """Rows of int8 as bytes of ``code + 128``, and a row of zeros, on one axis."""
    rows, length = codes.shape
    result = np.empty((rows + 1, length), np.uint8)
    np.bitwise_xor(codes.view(np.uint8), np.uint8(128), out=result[:rows])
    result[rows] = 128
    return result.reshape(-1)
