"""Products of floats and a quantized matrix on a CPU, a part of its rows after the other.

Of a part, numbers are written to a buffer that stays in the cache: so memory is read for codes and
scales alone, and a product with few rows of `x`, which waits for memory, takes less time than with
a matrix of floats.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import torch

from burn.plugin_api import QuantScheme, QuantValue
from burn_torch.dtypes import Tensor
from burn_torch.quantized_codes import (
    codes_as_bytes,
    factor_of,
    unpacked,
    write_field,
    write_numbers,
)

__all__ = ["QuantizedRows", "product_with_rows", "quantized_rows"]

_PART: Final = 1 << 21
"""Numbers in the buffer: fewer take more calls of torch, and more do not fit into the cache."""


class QuantizedRows(NamedTuple):
    """A quantized matrix, transposed if that makes its rows contiguous.

    Attributes
    ----------
    words : Tensor
        Codes as bytes, shape (rows, columns / per_byte).
    per_byte : int
        Codes in a byte, those of neighbouring columns.
    value : QuantValue
        What codes stand for.
    scale : Tensor
        Floats, shape (blocks of rows, blocks of columns).
    is_outer : bool
        Whether a row is an element of the result; else a column is.
    """

    words: Tensor
    per_byte: int
    value: QuantValue
    scale: Tensor
    is_outer: bool


def quantized_rows(
    values: Tensor, scale: Tensor, scheme: QuantScheme, *, is_outer: bool
) -> QuantizedRows | None:
    """A matrix by rows; None on a machine that stores the highest byte of a word first.

    Parameters
    ----------
    values : Tensor
        The stored codes, of two axes.
    scale : Tensor
        Scales as floats, times the global one.
    scheme : QuantScheme
        How the matrix is stored.
    is_outer : bool
        Whether the first axis is that of the result.
    """
    shape = scheme.logical_shape(tuple(values.shape))
    block = scheme.blocks(shape)
    blocks = [length // one for length, one in zip(shape, block, strict=True)]
    scale = scale.reshape(blocks)
    is_packed = scheme.per_word > 1
    count = 8 // scheme.value.bits if is_packed else 1
    is_transposed = _has_columns(values)
    axis = -2 if is_transposed else -1
    if is_packed and (scheme.store.axis != axis or block[axis] % count):
        codes = unpacked(values, scheme)
        if codes is None:
            return None
        values, is_packed, count, is_transposed = codes, False, 1, _has_columns(codes)
    if is_transposed:
        values, scale, is_outer = values.mT, scale.mT, not is_outer
    words = codes_as_bytes(values, scheme) if is_packed else values
    return None if words is None else QuantizedRows(words, count, scheme.value, scale, is_outer)


def _has_columns(values: Tensor) -> bool:
    """Whether a matrix lies in memory column by column."""
    return values.stride(1) != 1 and values.stride(0) == 1


def product_with_rows(x: Tensor, rows: QuantizedRows) -> Tensor:
    """The product of `x`, shape (examples, inner), float32 or float64, and a matrix."""
    length, columns = rows.words.shape[0], rows.words.shape[1] * rows.per_byte
    scale = rows.scale * factor_of(rows.value)
    # A scale of whole rows or columns multiplies the operand or the result instead.
    of_rows = of_columns = in_blocks = None
    if scale.shape[1] == 1:
        of_rows = _spread(scale[:, 0], length)
    elif scale.shape[0] == 1:
        of_columns = _spread(scale[0], columns)
    else:
        in_blocks = scale
    of_inner, of_outer = (of_columns, of_rows) if rows.is_outer else (of_rows, of_columns)
    if of_inner is not None:
        x = x * of_inner
    if rows.is_outer:
        x = _by_position(x, rows.per_byte)
        result = x.new_empty((x.shape[0], length))
    else:
        result = x.new_zeros((x.shape[0], columns))
    step = max(_PART // columns, 1)
    if in_blocks is not None:
        block = length // in_blocks.shape[0]
        step = max(step // block, 1) * block
    buffer = x.new_empty((min(step, length), columns))
    for start in range(0, length, step):
        stop = min(start + step, length)
        part = buffer[: stop - start]
        _write(rows, slice(start, stop), part)
        if in_blocks is not None:
            _scale(part, in_blocks[start // block : stop // block], rows.per_byte)
        if rows.is_outer:
            _multiply(x, part, result[:, start:stop])
        else:
            _multiply_add(x[:, start:stop], part, result)
    if not rows.is_outer:
        result = _by_column(result, rows.per_byte)
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


def _write(rows: QuantizedRows, chosen: slice, out: Tensor) -> None:
    """Write the numbers of rows: first those of the first codes of all bytes, and so on."""
    words = rows.words[chosen]
    if rows.per_byte == 1:
        write_numbers(words, rows.value, out)
        return
    codes = torch.empty_like(words)
    for position, part in enumerate(out.view(out.shape[0], rows.per_byte, -1).unbind(1)):
        write_field(words, position, rows.value.bits, codes)
        write_numbers(codes, rows.value, part)


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
