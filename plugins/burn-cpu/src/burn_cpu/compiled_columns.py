"""Products of few rows with codes of few bits that lie in the order of the results.

Each element of a row is multiplied by a line of codes. So the results are in memory, and several
lines are added at a time, whose products are summed up in registers first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core import cgutils as _cgutils

from burn_cpu.base import Array
from burn_cpu.compiled_base import compiled_exactly, literal_intrinsic
from burn_cpu.compiled_quantized import Format, Tile

__all__ = ["LINES", "MAX_ROWS", "ROWS", "in_order", "product"]

# As Any: numba has no types, and a function of numba takes others than that which writes it.
cgutils: Any = _cgutils

ROWS: Final = 4
"""The most rows that a kernel multiplies at a time."""

MAX_ROWS: Final = 16
"""Rows up to which this takes less time than BLAS with a restored weight."""

LINES: Final = 8
"""Of the number of lines this is a divisor: so many are added at a time, or half of them."""

_INT8, _INT64 = ir.IntType(8), ir.IntType(64)
_FLOAT: Final = ir.FloatType()


def in_order(results: Array, form: Format) -> Array:
    """Rows of results, as a kernel wrote them, in the order of their columns."""
    vectors = results.reshape(len(results), -1, 8 // form.bits, form.lanes)
    return vectors.swapaxes(2, 3).reshape(results.shape)


class _Lines:
    """Writes the instructions of `_add_lines`."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.context: Final = context
        self.builder: Final = builder
        self.types: Final = signature.args
        self.arguments: Final = arguments
        bits, mantissa, lanes, rows, lines, is_scaled = (
            argument.literal_value for argument in signature.args[14:]
        )
        self.is_scaled: Final = bool(is_scaled)
        self.tile: Final = Tile(builder, (bits, mantissa, lanes, 1, rows, 1))
        self.fields: Final = 8 // bits
        start, length, element, elements = (arguments[index] for index in (1, 2, 10, 11))
        self.lines: Final = [self.at(0, self.plus(start, length, line)) for line in range(lines)]
        self.factors: Final = [
            [
                self.spread(9, self.plus(self.plus(element, elements, row), _INT64(line)))
                for line in range(lines)
            ]
            for row in range(rows)
        ]

    def at(self, number: int, offset: Any) -> Any:
        """The address of an element of an array among the arguments."""
        array = self.context.make_array(self.types[number])
        data = array(self.context, self.builder, self.arguments[number]).data
        return self.builder.gep(data, [offset])

    def plus(self, index: Any, step: Any, factor: int = 1) -> Any:
        """An index, and some steps."""
        return self.builder.add(index, self.builder.mul(step, _INT64(factor)))

    def spread(self, number: int, index: Any) -> Any:
        """A vector of an element of an array."""
        return self.tile.spread(self.builder.load(self.at(number, index)))

    def write(self) -> None:
        """Write all of it."""
        builder, (begin, blocks, first, last, steps) = self.builder, self.arguments[4:9]
        if not self.is_scaled:
            first, last = builder.mul(first, steps), builder.mul(last, steps)
            with cgutils.for_range_slice(builder, first, last, _INT64(1)) as (vector, _):
                self.add_vector(vector, [])
            return
        with cgutils.for_range_slice(builder, first, last, _INT64(1)) as (block, _):
            scales = [
                self.spread(3, builder.add(self.plus(begin, blocks, line), block))
                for line in range(len(self.lines))
            ]
            with cgutils.for_range(builder, steps) as step:
                self.add_vector(builder.add(builder.mul(block, steps), step.index), scales)

    def add_vector(self, vector: Any, scales: list[Any]) -> None:
        """Add the products with a vector of bytes of each line."""
        builder, tile = self.builder, self.tile
        offset = builder.mul(vector, _INT64(tile.lanes))
        numbers = [
            tile.numbers(tile.vector(_INT8, builder.gep(line, [offset]))) for line in self.lines
        ]
        for own, scale in zip(numbers, scales, strict=False):
            own[:] = [builder.fmul(item, scale) for item in own]
        for field in range(self.fields):
            column = builder.add(
                builder.mul(offset, _INT64(self.fields)), _INT64(field * tile.lanes)
            )
            for row, factors in enumerate(self.factors):
                total = builder.fmul(numbers[0][field], factors[0])
                for own, factor in zip(numbers[1:], factors[1:], strict=True):
                    total = builder.call(tile.multiply_add, [own[field], factor, total])
                address = self.at(12, self.plus(column, self.arguments[13], row))
                total = builder.fadd(tile.vector(_FLOAT, address), total)
                pointer = builder.bitcast(address, tile.floats.as_pointer())
                builder.store(total, pointer, align=4)


def _write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    _Lines(context, builder, signature, arguments).write()
    return context.get_dummy_value()


@literal_intrinsic
def _add_lines(
    typing: Any,
    codes: Any,
    start: Any,
    length: Any,
    scales: Any,
    begin: Any,
    blocks: Any,
    first: Any,
    last: Any,
    steps: Any,
    x: Any,
    element: Any,
    elements: Any,
    out: Any,
    width: Any,
    bits: Any,
    mantissa: Any,
    lanes: Any,
    rows: Any,
    lines: Any,
    is_scaled: Any,
) -> Any:
    """Add products of elements of rows, from `element` on, and lines of codes, from `start` on.

    A line has `length` bytes; of its `blocks`, each of `steps` vectors, those from `first` to
    `last` are added. The scales of the first line are there from `begin` on, if there are any. Rows
    of `x` have `elements`, and rows of `out` have `width` of them. What is last are literals.
    """
    del typing
    if not isinstance(is_scaled, types.Literal):
        return None
    return types.void(
        codes, start, length, scales, begin, blocks, first, last, steps, x, element, elements,
        out, width, bits, mantissa, lanes, rows, lines, is_scaled,
    ), _write  # fmt: skip


def product(form: Format, rows: int, *, is_scaled: bool) -> Callable[..., None]:
    """The kernel of a format for 1, 2 or 4 rows, with or without scales; see `_product`."""
    lines = LINES if rows < ROWS else LINES // 2
    return _product(form.bits, form.mantissa, form.lanes, rows, lines, int(is_scaled))


@functools.cache
def _product(
    bits: int, mantissa: int, lanes: int, rows: int, lines: int, is_scaled: int
) -> Callable[..., None]:
    """The kernel for so many rows, and lines at a time.

    ``kernel(codes, length, scales, blocks, steps, x, out, first, last)`` adds blocks `first` to
    `last` of the products to rows of `out`, see `_add_lines`; `scales` are float32. All arrays have
    one axis.
    """
    # Numba takes integers of the enclosing function for literals, and knows them in its cache.

    @compiled_exactly
    def kernel(
        codes: Array,
        length: int,
        scales: Array,
        blocks: int,
        steps: int,
        x: Array,
        out: Array,
        first: int,
        last: int,
    ) -> None:
        elements, width = len(x) // rows, len(out) // rows
        for line in range(0, elements, lines):
            _add_lines(
                codes, line * length, length, scales, line * blocks, blocks, first, last, steps,
                x, line, elements, out, width,
                bits, mantissa, lanes, rows, lines, is_scaled,
            )  # fmt: skip

    return kernel
