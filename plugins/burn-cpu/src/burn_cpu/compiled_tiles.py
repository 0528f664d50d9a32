"""Products of matrices whose results stay in registers, and transposes, for kernels of numba.

LLVM makes no such code of loops over arrays, so the instructions are written here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import llvmlite.binding as llvm
from llvmlite import ir
from numba import extending, types
from numba.core import cgutils as _cgutils

from burn_cpu.base import Array
from burn_cpu.compiled_base import compiled_exactly

__all__ = [
    "NARROW_COLUMNS",
    "NARROW_ROWS",
    "WIDE_COLUMNS",
    "WIDE_ROWS",
    "add_narrow_tile",
    "add_wide_tile",
    "turn",
]

# As Any: numba has no types, and a function of numba takes others than that which writes it.
cgutils: Any = _cgutils


def _intrinsic(write: Callable[..., Any]) -> Any:
    return extending.intrinsic(write)


_HAS_512_BITS: Final = bool(llvm.get_host_cpu_features().get("avx512f"))
_LANES: Final = 16 if _HAS_512_BITS else 8

WIDE_ROWS: Final = 6
WIDE_COLUMNS: Final = 64 if _HAS_512_BITS else 16
NARROW_ROWS: Final = 8
NARROW_COLUMNS: Final = 32 if _HAS_512_BITS else 8
"""Numbers of rows and columns of both tiles. The wide one takes 24 of 32 registers for its sums, or
12 of 16; the others are for operands."""

_INT32: Final = ir.IntType(32)
_INT64: Final = ir.IntType(64)
_VECTOR: Final = ir.VectorType(ir.FloatType(), _LANES)


def _tile(rows: int, columns: int) -> Callable[..., Any]:
    """How the instructions of a tile of so many rows and columns are written."""
    width = columns // _LANES

    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def address(number: int, offset: Any) -> Any:
            """That of an element of an array among the arguments."""
            array = context.make_array(signature.args[number])(context, builder, arguments[number])
            return builder.gep(array.data, [offset])

        def vectors(first: Any, count: int) -> list[Any]:
            """The addresses of successive vectors."""
            pointer = builder.bitcast(first, _VECTOR.as_pointer())
            return [builder.gep(pointer, [_INT64(index)]) for index in range(count)]

        def at_row(number: Any) -> Any:
            return builder.mul(number, _INT64(columns))

        row, term, first, count, start = [arguments[index] for index in (2, 4, 6, 7, 9)]
        x, terms = address(0, _INT64(0)), address(3, term)
        panel = address(5, at_row(first))
        starts = address(1, row)
        bases = [
            builder.gep(x, [builder.load(builder.gep(starts, [_INT64(index)]))])
            for index in range(rows)
        ]
        results = vectors(address(8, at_row(start)), rows * width)
        # LLVM keeps these in registers.
        sums = [
            cgutils.alloca_once_value(builder, builder.load(result, align=4)) for result in results
        ]
        multiply_add = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_VECTOR, [_VECTOR] * 3), f"llvm.fmuladd.v{_LANES}f32"
        )
        nothing = ir.Constant(_VECTOR, ir.Undefined)
        zeros = ir.Constant(ir.VectorType(_INT32, _LANES), None)
        with cgutils.for_range(builder, count) as loop:
            offset = builder.load(builder.gep(terms, [loop.index]))
            line = vectors(builder.gep(panel, [at_row(loop.index)]), width)
            factors = [builder.load(item, align=4) for item in line]
            for number, base in enumerate(bases):
                element = builder.load(builder.gep(base, [offset]))
                element = builder.insert_element(nothing, element, _INT32(0))
                element = builder.shuffle_vector(element, nothing, zeros)
                for item, factor in zip(sums[number * width :], factors, strict=False):
                    total = builder.call(multiply_add, [element, factor, builder.load(item)])
                    builder.store(total, item)
        for item, result in zip(sums, results, strict=True):
            builder.store(builder.load(item), result, align=4)
        return context.get_dummy_value()

    return write


_WRITE_WIDE_TILE: Final = _tile(WIDE_ROWS, WIDE_COLUMNS)
_WRITE_NARROW_TILE: Final = _tile(NARROW_ROWS, NARROW_COLUMNS)


@_intrinsic
def add_wide_tile(
    typing: Any,
    x: Any,
    rows: Any,
    row: Any,
    terms: Any,
    term: Any,
    panel: Any,
    first: Any,
    count: Any,
    out: Any,
    start: Any,
) -> Any:
    """Add a product of matrices to a tile: `WIDE_ROWS` rows of `out` from `start` on.

    To ``out[start + j, :]`` it adds ``x[rows[row + j] + terms[term + r]] * panel[first + r, :]``
    for all r below `count`, in their order. So the left matrix need not be in memory: a table has
    where its rows are in `x`, and another where the elements of a row are. All arrays have one
    axis; rows of `panel` and `out` have `WIDE_COLUMNS` elements.
    """
    del typing
    return types.void(x, rows, row, terms, term, panel, first, count, out, start), _WRITE_WIDE_TILE


@_intrinsic
def add_narrow_tile(
    typing: Any,
    x: Any,
    rows: Any,
    row: Any,
    terms: Any,
    term: Any,
    panel: Any,
    first: Any,
    count: Any,
    out: Any,
    start: Any,
) -> Any:
    """`add_wide_tile` for `NARROW_ROWS` and `NARROW_COLUMNS`."""
    del typing
    return types.void(
        x, rows, row, terms, term, panel, first, count, out, start
    ), _WRITE_NARROW_TILE


def _write_turn(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The instructions of `_turn_block`: exchange the bits of the numbers of lanes and vectors."""
    source, first, step, target, start, stride, rows, columns = arguments
    x = context.make_array(signature.args[0])(context, builder, source).data
    out = context.make_array(signature.args[3])(context, builder, target).data
    lanes = ir.Constant(ir.VectorType(_INT64, _LANES), list(range(_LANES)))
    masks = ir.VectorType(ir.IntType(1), _LANES)
    no_lane, zeros = ir.Constant(masks, None), ir.Constant(_VECTOR, None)

    def mask(count: Any) -> Any:
        """Of the lanes below a count."""
        every = builder.insert_element(ir.Constant(lanes.type, ir.Undefined), count, _INT32(0))
        order = ir.Constant(ir.VectorType(_INT32, _LANES), None)
        every = builder.shuffle_vector(every, every, order)
        return builder.icmp_signed("<", lanes, every)

    def line(memory: Any, begin: Any, length: Any, number: int, count: Any, full: Any) -> Any:
        """The address and the mask of a vector; no lane of one that is not there."""
        offset = builder.add(begin, builder.mul(length, _INT64(number)))
        pointer = builder.bitcast(builder.gep(memory, [offset]), _VECTOR.as_pointer())
        exists = builder.icmp_signed("<", _INT64(number), count)
        return pointer, builder.select(exists, full, no_lane)

    address = _VECTOR.as_pointer()
    load_type = ir.FunctionType(_VECTOR, [address, _INT32, masks, _VECTOR])
    store_type = ir.FunctionType(ir.VoidType(), [_VECTOR, address, _INT32, masks])
    load, store = [
        cgutils.get_or_insert_function(builder.module, type, f"llvm.masked.{name}.v{_LANES}f32.p0")
        for name, type in (("load", load_type), ("store", store_type))
    ]
    full = mask(columns)
    vectors = []
    for number in range(_LANES):
        pointer, kept = line(x, first, step, number, rows, full)
        vectors.append(builder.call(load, [pointer, _INT32(4), kept, zeros]))
    bit = 1
    while bit < _LANES:
        low = [lane if not lane & bit else lane - bit + _LANES for lane in range(_LANES)]
        high = [lane + bit if not lane & bit else lane + _LANES for lane in range(_LANES)]
        orders = [ir.Constant(ir.VectorType(_INT32, _LANES), item) for item in (low, high)]
        for number in range(_LANES):
            if not number & bit:
                pair = vectors[number], vectors[number + bit]
                vectors[number], vectors[number + bit] = [
                    builder.shuffle_vector(*pair, order) for order in orders
                ]
        bit *= 2
    full = mask(rows)
    for number, value in enumerate(vectors):
        pointer, kept = line(out, start, stride, number, columns, full)
        builder.call(store, [value, pointer, _INT32(4), kept])
    return context.get_dummy_value()


@_intrinsic
def _turn_block(
    typing: Any,
    source: Any,
    first: Any,
    step: Any,
    target: Any,
    start: Any,
    stride: Any,
    rows: Any,
    columns: Any,
) -> Any:
    """`turn` of a matrix whose rows and columns are no more than the lanes of a vector."""
    del typing
    return types.void(source, first, step, target, start, stride, rows, columns), _write_turn


@compiled_exactly
def turn(
    source: Array,
    first: int,
    step: int,
    target: Array,
    start: int,
    stride: int,
    rows: int,
    columns: int,
) -> None:
    """Transpose a matrix: ``target[start + j * stride + i] = source[first + i * step + j]``.

    Both arrays have one axis.
    """
    for row in range(0, rows, _LANES):
        height = min(_LANES, rows - row)
        for column in range(0, columns, _LANES):
            width = min(_LANES, columns - column)
            begin, end = first + row * step + column, start + column * stride + row
            _turn_block(source, begin, step, target, end, stride, height, width)
