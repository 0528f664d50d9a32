"""Products of small matrices of float32, by a kernel that divides the terms among warps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from burn_cuda.kernels import source

__all__ = ["TILES", "Tile", "launch_of", "suits"]

Compile = Callable[[str, str], Any]

_MAX_MULTIPLICATIONS: Final = 1 << 27
_MAX_RESULTS: Final = 1 << 20
"""Above these sizes the tiles of cuBLAS keep a GPU busy."""

_VECTOR_BYTES: Final = 16


class Tile(NamedTuple):
    """What a block computes: rows and columns, and the warps that share its terms."""

    rows: int
    columns: int
    warps: int


TILES: Final = (Tile(16, 32, 8), Tile(32, 32, 4))
"""The first is for few results of many terms."""


def suits(shape: tuple[int, int, int]) -> bool:
    """Whether a product of so many rows, columns and terms is small."""
    rows, columns, terms = shape
    return rows * columns <= _MAX_RESULTS and rows * columns * terms <= _MAX_MULTIPLICATIONS


def launch_of(
    compile: Compile,
    tile: Tile,
    shape: tuple[int, int, int],
    transposed: tuple[bool, bool],
    leading: tuple[int, int],
    addresses: tuple[int, int, int],
) -> None:
    """Launch the product of two matrices; see `Runtime.gemm` for the arguments.

    Parameters
    ----------
    compile : callable
        Gives a kernel of a source.
    tile : Tile
        What a block computes.
    shape, transposed, leading : tuple
        The matrices.
    addresses : tuple of int
        Those of the operands, and of the result.
    """
    rows, columns, terms = shape
    contiguous = (rows if transposed[0] else terms, terms if transposed[1] else columns)
    aligned = all(not number % 4 for number in (*contiguous, *leading))
    vector = 4 if aligned and not any(address % _VECTOR_BYTES for address in addresses[:2]) else 1
    text = source(
        "small_product.cu",
        BM=tile.rows,
        BN=tile.columns,
        WARPS=tile.warps,
        FIRST_TRANSPOSED=int(transposed[0]),
        SECOND_TRANSPOSED=int(transposed[1]),
        VECTOR=vector,
    )
    down, across = -(-rows // tile.rows), -(-columns // tile.columns)
    kernel = compile(text, "small_product")
    kernel((down * across,), (32 * tile.warps,), (*addresses, *shape, *leading, across))
