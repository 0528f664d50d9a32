"""Programs as data: tensors by their ids, the calls of ops on them, and whole graphs of calls."""

from __future__ import annotations

import enum
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeAlias

from burn.aliases import Scalar
from burn.dtype import DType
from burn.errors import OperandTypeError
from burn.tensor_data import TensorData

if TYPE_CHECKING:
    from burn.ir.cost import GraphCost
    from burn.ir.execution import Execution
    from burn.ops import OpTable

__all__ = [
    "Constant",
    "Donation",
    "Draw",
    "Drop",
    "GraphIr",
    "Input",
    "OperationIr",
    "PartSource",
    "ScalarIr",
    "Status",
    "TensorIr",
    "with_example_scalars",
]


class Status(enum.Enum):
    """What an operation may do with a tensor that it names."""

    NOT_INIT = "not initialized"
    """The operation makes the tensor."""

    READ_ONLY = "read only"
    """A later operation, or the caller, reads the tensor again."""

    READ_WRITE = "read write"
    """The last use: the memory of the tensor may be used again, or freed."""


class TensorIr(NamedTuple):
    """A tensor of a program.

    Attributes
    ----------
    id : int
        Its number, at least 0.
    shape : tuple of int or None
        Length of each axis; None for a length that depends on data.
    dtype : DType
        Dtype of the elements.
    status : Status
        What the operation that names it here may do with it.
    """

    id: int
    shape: tuple[int | None, ...]
    dtype: DType
    status: Status = Status.READ_ONLY

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(['?' if n is None else str(n) for n in self.shape])}]"


@dataclass(frozen=True, slots=True, repr=False)
class ScalarIr:
    """A number that each run of a program gets anew: an attribute with a runtime role.

    Attributes
    ----------
    id : int
        Its number among the scalars of the program.
    kind : type
        int or float.
    plus : int
        What is added to the number here.
    """

    id: int
    kind: type[int | float]
    plus: int = 0

    def __repr__(self) -> str:
        return f"${self.id} + {self.plus}" if self.plus else f"${self.id}"

    def __add__(self, other: int) -> ScalarIr:
        if other.__class__ is not int:
            raise self.unknown()
        return ScalarIr(self.id, self.kind, self.plus + other)

    __radd__ = __add__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, numbers.Number):
            raise self.unknown()
        return isinstance(other, ScalarIr) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    def _refuse(self, *_: object) -> NoReturn:
        raise self.unknown()

    __bool__ = __float__ = __index__ = __int__ = __abs__ = __neg__ = __pos__ = _refuse
    __ceil__ = __floor__ = __round__ = __trunc__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = _refuse
    __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = _refuse

    @property
    def _parts(self) -> tuple[object, ...]:
        return self.id, self.kind, self.plus

    def unknown(self) -> OperandTypeError:
        """The error of what needs the value."""
        return OperandTypeError(
            "a runtime number has no value while a function is traced",
            hint="Pass it on as a learning rate, step, seed or offset, to which an integer may be "
            "added; or pass a tensor instead of the number",
        )


def with_example_scalars(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes with a number that every op accepts instead of each ScalarIr, for `Op.infer`."""
    return {
        name: value.kind(1) if value.__class__ is ScalarIr else value
        for name, value in attributes.items()
    }


Input: TypeAlias = TensorIr | tuple[TensorIr, ...] | Scalar | None
"""An operand of an operation; a tuple is a list of tensors."""


class OperationIr(NamedTuple):
    """The call of an op.

    Attributes
    ----------
    name : str
        Name of the op.
    inputs : tuple of Input
        The operands, in the order of the op's signature.
    attributes : dict
        Its attributes; one with a runtime role may be a ScalarIr.
    outputs : tuple of TensorIr
        What it makes, with the status `Status.NOT_INIT`.
    source : str
        File and line of the user's code that called it, as in ``train.py:12``; empty if unknown.
    """

    name: str
    inputs: tuple[Input, ...]
    attributes: Mapping[str, Any]
    outputs: tuple[TensorIr, ...]
    source: str = ""

    def describe(self) -> str:
        """The call as in a message: ``sum(float32[2, 3], axis=(1,)) at train.py:12``."""
        from burn.ir._operands import metas_of
        from burn.ops import REGISTRY

        call = REGISTRY[self.name].describe(metas_of(self.inputs), self.attributes)
        return f"{call} at {self.source}" if self.source else call

    @property
    def called(self) -> OperationIr:
        """The operation that the user called: that of which this one is a part, or this one."""
        return self.source.whole if isinstance(self.source, PartSource) else self


class PartSource(str):
    """The source of a part of an operation: its file and line, and its op, as in ``a.py:1 (gelu)``.

    Attributes
    ----------
    whole : OperationIr
        The operation that the user called.
    """

    __slots__ = ("whole",)

    whole: OperationIr

    @classmethod
    def of(cls, operation: OperationIr) -> PartSource:
        """The source of what an operation is made of."""
        source = cls(f"{operation.source} ({operation.name})".strip())
        source.whole = operation.called
        return source


class Drop(NamedTuple):
    """A tensor is not used any more.

    Attributes
    ----------
    id : int
        Its number.
    """

    id: int


class Constant(NamedTuple):
    """A tensor whose values are part of the program.

    Attributes
    ----------
    tensor : TensorIr
        The tensor.
    data : TensorData
        Its values.
    """

    tensor: TensorIr
    data: TensorData


class Draw(NamedTuple):
    """The random numbers of a program: each run reserves them from the generator of its device.

    Attributes
    ----------
    seed, offset : ScalarIr
        What the state of the generator at the first number is.
    words : int
        Number of 32-bit words that a run reserves.
    """

    seed: ScalarIr
    offset: ScalarIr
    words: int


_MAX_PREPARED: Final = 16
"""Number of op tables for which a program is kept ready to run."""


class Donation(NamedTuple):
    """An input whose memory a run may overwrite.

    Attributes
    ----------
    input : int
        Index among the inputs of the program.
    output : int or None
        Index of the output that takes the memory of the input, and has its shape and dtype; the run
        then returns the same primitive. None if any tensor may take it.
    """

    input: int
    output: int | None = None


@dataclass(frozen=True)
class GraphIr:
    """A program: operations on inputs and constants, in the order in which they run.

    Attributes
    ----------
    inputs : tuple of TensorIr or ScalarIr
        What a run is given, in order.
    constants : tuple of Constant
        Tensors whose values are part of the program.
    operations : tuple of OperationIr or Drop
        What a run does.
    outputs : tuple of TensorIr
        What a run returns; a tensor may be there several times, and may be an input.
    draw : Draw or None
        The random numbers that the operations draw.
    donated : tuple of Donation
        Inputs whose memory a run may overwrite.
    relaxed : bool
        Whether generated code may round less often than the operations do: a product and a sum as
        one fused multiply-add, a quotient as a product. Otherwise ``+ - * /``, `sqrt`, comparisons,
        casts and roundings give the bits of the ops of the device.
    """

    inputs: tuple[TensorIr | ScalarIr, ...]
    constants: tuple[Constant, ...]
    operations: tuple[OperationIr | Drop, ...]
    outputs: tuple[TensorIr, ...]
    draw: Draw | None = None
    donated: tuple[Donation, ...] = ()
    relaxed: bool = False

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def prepared(self, table: OpTable) -> Execution:
        """The program ready to run on an op table, for an op that has it as an attribute.

        It is kept, and several threads may run it at once.

        Parameters
        ----------
        table : OpTable
            What runs it.

        Returns
        -------
        Execution
            What runs it.
        """
        from burn.ir.execution import Execution

        kept: dict[OpTable, Execution] = vars(self).setdefault("_prepared_for", {})
        found = kept.get(table)
        if found is None:
            if len(kept) >= _MAX_PREPARED:
                kept.clear()
            found = kept[table] = Execution(self, table)
        return found

    def check(self) -> None:
        """Raise unless the program is one that can run; see `burn.ir.check`.

        Raises
        ------
        GraphError
            If it breaks a rule; the message names the operation, its line, and the rule.
        """
        from burn.ir.check import check

        check(self)

    def __str__(self) -> str:
        from burn.ir.text import write_graph

        return write_graph(self, short=True)

    def to_text(self) -> str:
        """The program as text, with the values of all constants.

        ``str(graph)`` leaves out the values of constants with more than 64 elements.

        Returns
        -------
        str
            A line for each input, constant, operation and output; `from_text` reads it.

        Raises
        ------
        GraphError
            If an attribute has a value that text cannot hold.

        Examples
        --------
        >>> from burn import float32
        >>> from burn.ir import GraphIr, OperationIr, Status, TensorIr
        >>> x, y = TensorIr(0, (2, 3), float32), TensorIr(1, (2,), float32)
        >>> made = y._replace(status=Status.NOT_INIT)
        >>> total = OperationIr("sum", (x,), {"axis": (1,), "dtype": float32}, (made,), "a.py:3")
        >>> graph = GraphIr((x,), (), (total,), (y,))
        >>> print(graph.to_text())
        input %0: float32[2, 3]
        %1: float32[2] = sum(%0, axis=(1,), dtype=float32)    # a.py:3
        output %1
        >>> GraphIr.from_text(graph.to_text()) == graph
        True
        """
        from burn.ir.text import write_graph

        return write_graph(self)

    @staticmethod
    def from_text(text: str) -> GraphIr:
        """The program of a text.

        Parameters
        ----------
        text : str
            What `to_text` gives.

        Returns
        -------
        GraphIr
            The program, which has been checked.

        Raises
        ------
        GraphError
            If it is the text of no correct program; nothing is executed.
        """
        from burn.ir.text import parse_graph

        return parse_graph(text)

    def to_bytes(self) -> bytes:
        """The program as bytes, in a format with a version.

        Returns
        -------
        bytes
            What `from_bytes` reads, on any machine.

        Raises
        ------
        GraphError
            If the program breaks a rule, or an attribute has a value that bytes cannot hold.
        """
        from burn.ir.codec import encode

        return encode(self)

    @staticmethod
    def from_bytes(data: bytes) -> GraphIr:
        """The program of some bytes.

        Parameters
        ----------
        data : bytes
            What `to_bytes` gives.

        Returns
        -------
        GraphIr
            The program, which has been checked. Constants share the memory of `data`, read-only.

        Raises
        ------
        GraphError
            If they are the bytes of no correct program; nothing is executed.

        Examples
        --------
        >>> from burn import float32
        >>> from burn.ir import GraphIr, TensorIr
        >>> x = TensorIr(0, (2, 3), float32)
        >>> graph = GraphIr((x,), (), (), (x,))
        >>> GraphIr.from_bytes(graph.to_bytes()) == graph
        True
        """
        from burn.ir.codec import decode_graph

        return decode_graph(data)

    def cost(self) -> GraphCost:
        """Floating-point operations and bytes of each operation, of each op, and of all.

        `burn.ir.cost` says how they are counted.

        Returns
        -------
        GraphCost
            The numbers; it prints as a table.

        Raises
        ------
        BurnError
            If an op does not exist, or does not accept an operation.

        Examples
        --------
        >>> from burn import float32
        >>> from burn.ir import GraphIr, OperationIr, TensorIr
        >>> x, y = TensorIr(0, (8, 4), float32), TensorIr(1, (4, 2), float32)
        >>> z = TensorIr(2, (8, 2), float32)
        >>> product = OperationIr("matmul", (x, y), {}, (z,))
        >>> print(GraphIr((x, y), (), (product,), (z,)).cost())
        op      calls  flops  bytes
        matmul      1    128    224
        total       1    128    224
        """
        from burn.ir.cost import graph_cost

        return graph_cost(self)

    def svg(self) -> str:
        """A picture: operations from top to bottom as boxes, and lines where tensors go.

        The pointer over a box or a line shows the line of the user's program, the call and what it
        makes. A box with a dashed border is another one that is far above.

        Returns
        -------
        str
            A document in SVG, to be written to a file; a browser shows it.

        Examples
        --------
        >>> from burn import float32
        >>> from burn.ir import GraphIr, OperationIr, TensorIr
        >>> x, y = TensorIr(0, (8,), float32), TensorIr(1, (8,), float32)
        >>> graph = GraphIr((x,), (), (OperationIr("exp", (x,), {}, (y,)),), (y,))
        >>> graph.svg().startswith("<svg")
        True
        """
        from burn.ir.svg import draw

        return draw(self)
