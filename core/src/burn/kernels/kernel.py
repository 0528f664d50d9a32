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
from dataclasses import dataclass
from typing import Literal as OneOf, NamedTuple, TypeAlias

from burn.dtype import DType

__all__ = ["Apply", "Index", "Kernel", "Literal", "Load", "Node", "Reduce", "Scalar", "Store"]


class Load(NamedTuple):
    """An element of an input, which is dense and in row-major order.

    Attributes
    ----------
    input : int
        Index among the inputs of the kernel.
    offset : int
        Index of the element that is loaded at the origin of the space.
    strides : tuple of int
        Elements from one index of each axis of the space to the next; 0 where it repeats.
    dtype : DType
        Dtype of the input.
    gathers : tuple of (int, int)
        Nodes of integers, which are in range, and the elements that each of them counts: the
        product is added to the index of the element.
    guard : int or None
        A node of bool: where it is false nothing is read, and the value is 0.
    """

    input: int
    offset: int
    strides: tuple[int, ...]
    dtype: DType
    gathers: tuple[tuple[int, int], ...] = ()
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
    offset : int
        Index of the element that is stored at the origin of the space.
    strides : tuple of int
        Elements from one index of each axis of the space to the next. A node of one value for each
        row is stored once for each row if those of the columns are 0, and in each column if not. No
        element is stored twice.
    """

    output: int
    node: int
    offset: int
    strides: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Kernel:
    """A loop nest. Equal kernels have equal code, and are compiled once.

    Attributes
    ----------
    space : tuple of int
        Lengths of the axes: of the rows first, then of the columns.
    rows : int
        Number of axes of the rows.
    inputs : tuple of DType
        Dtype of each input.
    scalars : tuple of type
        int or float for each number that a launch is given.
    outputs : tuple of (DType, int)
        Dtype and number of elements of each output.
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
    """

    space: tuple[int, ...]
    rows: int
    inputs: tuple[DType, ...]
    scalars: tuple[type[int | float], ...]
    outputs: tuple[tuple[DType, int], ...]
    body: tuple[Node, ...]
    stores: tuple[Store, ...]
    overwrites: tuple[tuple[int, int], ...] = ()
    relaxed: bool = False

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
        return *parts, body, self.stores, self.overwrites, self.relaxed

    @functools.cached_property
    def _hash(self) -> int:
        return hash(self._key)

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return math.prod(self.space[: self.rows])

    @property
    def column_count(self) -> int:
        """Number of columns, at least 1."""
        return math.prod(self.space[self.rows :])

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
