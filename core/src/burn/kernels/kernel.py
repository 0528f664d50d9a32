"""Kernel: one loop nest over memory, as data that every language can be written from.

A kernel has a *space* of axes. The first ones are the axes of its *rows*, whose elements are
independent; the others are the axes of its *columns*, over which reductions run. A kernel without
reductions has no columns: each row is one element. The body is a list of nodes, each of which names
earlier ones by their index. A node has one value for each row and column, or one value for each
row: `Kernel.is_row_level` says which.

    softmax of float32[8, 16]: space (8, 16), 1 axis of rows
    0  load input 0, strides (16, 1)
    1  reduce max of 0              one value a row
    2  apply subtract(0, 1)
    3  apply exp(2)
    4  reduce sum of 3              one value a row
    5  apply divide(3, 4)
    store 5 to output 0, strides (16, 1)

A matrix product is the sum of ``load a[m, k] * load b[k, n]`` over the column k, with the rows
(m, n). A value of float16 or bfloat16 is held in float32 and is rounded where it is stored, and by
`Apply` of ``"cast"``; all other dtypes are computed in themselves, integers modulo a power of two.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf, NamedTuple, TypeAlias

from burn.dtype import DType

__all__ = [
    "Apply",
    "Extent",
    "Index",
    "Kernel",
    "Length",
    "Literal",
    "Load",
    "Node",
    "Reduce",
    "Scalar",
    "Store",
    "bounds",
    "known",
]


@dataclass(frozen=True)
class Length:
    """A length, stride or offset that each launch is given: code that has it serves many shapes.

    It is no number: arithmetic on it raises `TypeError`. What decides how code is written looks at
    its bounds.

    Attributes
    ----------
    number : int
        Index among the scalars of the kernel, which are ints there.
    least : int
        What it is at least.
    most : int or None
        What it is at most; None if there is no bound.
    multiple : int
        A power of two that divides it.
    """

    number: int
    least: int = 0
    most: int | None = None
    multiple: int = 1

    def __str__(self) -> str:
        """The name of the parameter in languages like C."""
        return f"s{self.number}"


Extent: TypeAlias = int | Length
"""A length, stride or offset: one that is known, or that each launch is given."""


def known(extents: Sequence[Extent]) -> tuple[int, ...]:
    """Extents that have to be known.

    Raises
    ------
    TypeError
        If one is a `Length`.
    """
    found = tuple([extent for extent in extents if isinstance(extent, int)])
    if len(found) < len(extents):
        raise TypeError(f"{extents} has lengths that only a launch knows")
    return found


def bounds(extents: Iterable[Extent]) -> tuple[int, float]:
    """What the product of lengths is at least and at most, which is perhaps infinite."""
    low, high = 1, 1.0
    for extent in extents:
        least: int
        most: float
        if isinstance(extent, int):
            least = most = extent
        else:
            least, most = extent.least, math.inf if extent.most is None else extent.most
        low *= least
        high = 0.0 if 0 in {most, high} else high * most
    return low, high


class Load(NamedTuple):
    """An element of an input, which is dense and in row-major order.

    Attributes
    ----------
    input : int
        Index among the inputs of the kernel.
    offset : int or Length
        Index of the element that is loaded at the origin of the space.
    strides : tuple of (int or Length)
        Elements from one index of each axis of the space to the next; 0 where it repeats.
    dtype : DType
        Dtype of the input.
    gathers : tuple of (int, int or Length)
        Nodes of integers, which are in range, and the elements that each of them counts: the
        product is added to the index of the element.
    guard : int or None
        A node of bool: where it is false nothing is read, and the value is 0.
    """

    input: int
    offset: Extent
    strides: tuple[Extent, ...]
    dtype: DType
    gathers: tuple[tuple[int, Extent], ...] = ()
    guard: int | None = None


class Index(NamedTuple):
    """The index along an axis of the space, as an integer.

    Attributes
    ----------
    axis : int
        The axis.
    dtype : DType
        int64, or int32 where the device has no 64-bit integers.
    """

    axis: int
    dtype: DType


class Literal(NamedTuple):
    """A constant.

    Attributes
    ----------
    value : bool, int or float
        The number.
    dtype : DType
        Its dtype.
    """

    value: bool | int | float
    dtype: DType


class Scalar(NamedTuple):
    """A number that each launch is given.

    Attributes
    ----------
    number : int
        Index among the scalars of the kernel.
    dtype : DType
        The dtype to which it is converted.
    """

    number: int
    dtype: DType


class Apply(NamedTuple):
    """A scalar function of other nodes.

    Attributes
    ----------
    function : str
        Its name: one of `burn.kernels.functions.FUNCTIONS`.
    operands : tuple of int
        Indices of nodes, which have one dtype unless the function says otherwise.
    dtype : DType
        Dtype of the result.
    """

    function: str
    operands: tuple[int, ...]
    dtype: DType


class Reduce(NamedTuple):
    """A reduction of a node over all columns: one value for each row.

    Attributes
    ----------
    kind : str
        ``"sum"``, ``"product"``, ``"max"`` or ``"min"``; of the last two NaN is the result if it is
        among the values. Of bool ``"max"`` is any, and ``"min"`` all.
    operand : int
        Index of a node.
    dtype : DType
        Dtype of the result, which is that of the operand. float16 and bfloat16 add in float32.
    """

    kind: OneOf["sum", "product", "max", "min"]
    operand: int
    dtype: DType


Node: TypeAlias = Load | Index | Literal | Scalar | Apply | Reduce


class Store(NamedTuple):
    """A node that is written to an output.

    Attributes
    ----------
    output : int
        Index among the outputs of the kernel.
    node : int
        Index of the node.
    offset : int or Length
        Index of the element that is stored at the origin of the space.
    strides : tuple of (int or Length)
        Elements from one index of each axis of the space to the next. A node of one value for each
        row is stored once for each row if those of the columns are 0, and in each column if not. No
        element is stored twice.
    """

    output: int
    node: int
    offset: Extent
    strides: tuple[Extent, ...]


@dataclass(frozen=True, eq=False)
class Kernel:
    """A loop nest. Equal kernels have equal code, and are compiled once.

    Attributes
    ----------
    space : tuple of (int or Length)
        Lengths of the axes: of the rows first, then of the columns.
    rows : int
        Number of axes of the rows.
    inputs : tuple of DType
        Dtype of each input.
    scalars : tuple of type
        int or float for each number that a launch is given, those of each `Length` among them.
    outputs : tuple of (DType, int or None)
        Dtype and number of elements of each output; None where only the launch knows it.
    body : tuple of Node
        What is computed.
    stores : tuple of Store
        What is written; each output has one.
    overwrites : tuple of (int, int)
        An output and an input that may be the same memory: each element is read in the row and
        column alone in which it is written. In a kernel with columns such tensors have one element
        for each row, and a schedule writes it after the last time that it reads it.
    relaxed : bool
        Whether code may round less often than the nodes do: a product and a sum as one fused
        multiply-add, a quotient as a product. Otherwise each `Apply` of ``add``, ``subtract``,
        ``multiply``, ``divide`` and ``sqrt`` is rounded by itself; `terms` are the exception.
    ragged : int, Length or None
        Columns of all rows along the first axis, which counts parts of them: a kernel has one axis
        of columns then, and row ``i`` of the first axis has ``min(n, ragged - i * n)`` of ``n``
        columns, at least one. None if all rows have equally many.
    wide : bool or None
        Whether indices of elements need 64 bits; None if that follows from the lengths.
    """

    space: tuple[Extent, ...]
    rows: int
    inputs: tuple[DType, ...]
    scalars: tuple[type[int | float], ...]
    outputs: tuple[tuple[DType, int | None], ...]
    body: tuple[Node, ...]
    stores: tuple[Store, ...]
    overwrites: tuple[tuple[int, int], ...] = ()
    relaxed: bool = False
    ragged: Extent | None = None
    wide: bool | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kernel) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    @functools.cached_property
    def _key(self) -> tuple[object, ...]:
        # Tuples of several classes may be equal, and so are the two zeros.
        body = tuple(
            [(type(node), repr(node) if type(node) is Literal else node) for node in self.body]
        )
        parts = self.space, self.rows, self.inputs, self.scalars, self.outputs
        more = self.stores, self.overwrites, self.relaxed, self.ragged, self.wide
        return *parts, body, *more

    @functools.cached_property
    def _hash(self) -> int:
        return hash(self._key)

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return math.prod(known(self.space[: self.rows]))

    @property
    def column_count(self) -> int:
        """Number of columns, at least 1."""
        return math.prod(known(self.space[self.rows :]))

    def is_of_rows(self, store: Store) -> bool:
        """Whether a store writes one element for each row."""
        return self.is_row_level[store.node] and not any(store.strides[self.rows :])

    @functools.cached_property
    def terms(self) -> frozenset[int]:
        """Products of floats that nothing but sums over the columns reads.

        They need no rounding of their own: sums may add them by fused multiply-add.
        """
        found = {
            number
            for number, node in enumerate(self.body)
            if isinstance(node, Apply) and node.function == "multiply" and node.dtype.is_float
        }
        found -= {store.node for store in self.stores}
        for node in self.body:
            if isinstance(node, Apply):
                found -= {*node.operands}
            elif isinstance(node, Reduce) and node.kind != "sum":
                found.discard(node.operand)
        return frozenset(found)

    @functools.cached_property
    def is_row_level(self) -> tuple[bool, ...]:
        """For each node, whether it has one value for each row."""
        levels: list[bool] = []
        for node in self.body:
            if isinstance(node, Load):
                used = [gather for gather, _ in node.gathers]
                used += [] if node.guard is None else [node.guard]
                level = not any(node.strides[self.rows :]) and all(
                    levels[number] for number in used
                )
            elif isinstance(node, Index):
                level = node.axis < self.rows
            elif isinstance(node, Apply):
                level = all(levels[operand] for operand in node.operands)
            else:  # a constant, or a reduction
                level = True
            levels.append(level)
        return tuple(levels)
