"""Products of floats and a quantized matrix on a CPU, a part of its rows after the other.

Of a part, numbers are written to a buffer that stays in the cache: so memory is read for codes and
scales alone, and a product with few rows of `x`, which waits for memory, takes less time than with
a matrix of floats.
"""

from __future__ import annotations

import functools
from typing import Final, NamedTuple

import torch

from burn.plugin_api import QuantScheme
from burn_torch.dtypes import Tensor
from burn_torch.quantized_codes import (
    codes_as_bytes,
    factor_of,
    unpacked,
    write_field,
    write_numbers,
)

__all__ = ["PART", "RowLayout", "has_columns", "product_with_rows", "row_layout"]

PART: Final = 1 << 21
"""Numbers in the buffer: fewer take more calls of torch, and more do not fit into the cache."""


class RowLayout(NamedTuple):
    """How a quantized matrix is read by rows: transposed, if that makes its rows contiguous.

    Attributes
    ----------
    scheme : QuantScheme
        How the matrix is stored.
    is_unpacked : bool
        Whether words become an element for each code first.
    is_transposed : bool
        Whether rows are the columns of the matrix.
    is_outer : bool
        Whether a row is an element of the result; else a column is.
    per_byte : int
        Codes in a byte, those of neighbouring columns.
    rows, columns : int
        Lengths, of codes.
    blocks : tuple of int
        Numbers of blocks of the matrix, as it is stored, along its axes.
    step : int
        Rows in a part.
    """

    scheme: QuantScheme
    is_unpacked: bool
    is_transposed: bool
    is_outer: bool
    per_byte: int
    rows: int
    columns: int
    blocks: tuple[int, ...]
    step: int

    def words(self, values: Tensor) -> Tensor:
        """The codes as bytes, shape (rows, columns / per_byte)."""
        if self.is_unpacked:
            values = unpacked(values, self.scheme)
        if self.is_transposed:
            values = values.mT
        if self.is_unpacked or self.scheme.per_word == 1:
            return values
        return codes_as_bytes(values, self.scheme)

    def scale(self, scale: Tensor) -> Tensor:
        """Scales, shape (blocks of rows, blocks of columns)."""
        scale = scale.view(self.blocks) if scale.is_contiguous() else scale.reshape(self.blocks)
        return scale.mT if self.is_transposed else scale


def has_columns(values: Tensor) -> bool:
    """Whether a matrix lies in memory column by column."""
    return values.stride(1) != 1 and values.stride(0) == 1


@functools.lru_cache(maxsize=1024)
def row_layout(
    scheme: QuantScheme,
    shape: tuple[int, ...],
    part: int,
    *,
    is_transposed: bool,
    is_outer: bool,
) -> RowLayout:
    """How a matrix is read.

    Parameters
    ----------
    scheme : QuantScheme
        How it is stored.
    shape : tuple of int
        Its shape, of codes.
    part : int
        The most numbers in a part, unless a block has more.
    is_transposed : bool
        Whether it lies in memory column by column.
    is_outer : bool
        Whether its first axis is that of the result.
    """
    block = scheme.blocks(shape)
    blocks = tuple([length // number for length, number in zip(shape, block, strict=True)])
    per_byte = 8 // scheme.value.bits if scheme.per_word > 1 else 1
    axis = -2 if is_transposed else -1
    is_unpacked = scheme.per_word > 1 and (scheme.store.axis != axis or block[axis] % per_byte != 0)
    if is_unpacked:
        per_byte, is_transposed = 1, scheme.store.axis == -2
    rows, columns = reversed(shape) if is_transposed else shape
    of_rows, of_columns = reversed(blocks) if is_transposed else blocks
    step = max(part // columns, 1)
    if of_rows > 1 and of_columns > 1:
        length = rows // of_rows
        step = max(step // length, 1) * length
    is_outer = is_outer is not is_transposed
    return RowLayout(
        *(scheme, is_unpacked, is_transposed, is_outer, per_byte, rows, columns, blocks),
        min(step, rows),
    )


def product_with_rows(x: Tensor, words: Tensor, scale: Tensor, layout: RowLayout) -> Tensor:
    """The product of `x`, shape (examples, inner), float32 or float64, and a matrix.

    Parameters
    ----------
    x : Tensor
        The other operand.
    words, scale : Tensor
        The codes and scales by rows: `RowLayout.words` and `RowLayout.scale`.
    layout : RowLayout
        How they are read.
    """
    rows, columns, per_byte, step = layout.rows, layout.columns, layout.per_byte, layout.step
    factor = factor_of(layout.scheme.value)
    if factor != 1.0:
        scale = scale * factor
    # A scale of whole rows or columns multiplies the operand or the result instead.
    of_rows = of_columns = in_blocks = None
    if scale.shape[1] == 1:
        of_rows = _spread(scale[:, 0], rows)
    elif scale.shape[0] == 1:
        of_columns = _spread(scale[0], columns)
    else:
        in_blocks = scale
        block = rows // scale.shape[0]
    of_inner, of_outer = (of_columns, of_rows) if layout.is_outer else (of_rows, of_columns)
    if of_inner is not None:
        x = x * of_inner
    if layout.is_outer:
        x = _by_position(x, per_byte)
        result = x.new_empty((x.shape[0], rows))
    else:
        result = x.new_zeros((x.shape[0], columns))
    buffer = x.new_empty((step, columns))
    for start in range(0, rows, step):
        stop = min(start + step, rows)
        part = buffer[: stop - start]
        _write(words[start:stop], layout, part)
        if in_blocks is not None:
            _scale(part, in_blocks[start // block : stop // block], per_byte)
        if layout.is_outer:
            _multiply(x, part, result[:, start:stop])
        else:
            _multiply_add(x[:, start:stop], part, result)
    if not layout.is_outer:
        result = _by_column(result, per_byte)
    return result if of_outer is None else result.mul_(of_outer)


def _spread(scale: Tensor, length: int) -> Tensor:
    """Scales of blocks for each of their elements, or one for all."""
    count = scale.shape[0]
    return scale if count in (1, length) else scale.repeat_interleave(length // count)


def _by_position(x: Tensor, count: int) -> Tensor:
    """Columns in the order in which `_write` writes those of a matrix."""
    return x if count == 1 else x.reshape(x.shape[0], -1, count).mT.flatten(1)


def _by_column(x: Tensor, count: int) -> Tensor:
    """The inverse of `_by_position`."""
    return x if count == 1 else x.view(x.shape[0], count, -1).mT.flatten(1)


def _write(words: Tensor, layout: RowLayout, out: Tensor) -> None:
    """Write the numbers of rows: first those of the first codes of all bytes, and so on."""
    value = layout.scheme.value
    if layout.per_byte == 1:
        write_numbers(words, value, out)
        return
    codes = torch.empty_like(words)
    for position, part in enumerate(out.view(out.shape[0], layout.per_byte, -1).unbind(1)):
        write_field(words, position, value.bits, codes)
        write_numbers(codes, value, part)


def _scale(numbers: Tensor, scale: Tensor, count: int) -> None:
    """Multiply by the scales of blocks, in place."""
    rows, columns = scale.shape
    parts = numbers.view(rows, numbers.shape[0] // rows, count, columns, -1)
    parts.mul_(scale[:, None, None, :, None])


def _multiply(x: Tensor, part: Tensor, out: Tensor) -> None:
    if x.shape[0] == 1:
        torch.mv(part, x[0], out=out[0])
    else:
        torch.mm(x, part.mT, out=out)


def _multiply_add(x: Tensor, part: Tensor, total: Tensor) -> None:
    if x.shape[0] == 1:
        total[0].addmv_(part.mT, x[0])
    else:
        total.addmm_(x, part)
