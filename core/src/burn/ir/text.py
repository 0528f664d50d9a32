"""Text of a graph, a line for each operation, and the graph of a text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from burn.dtype import DType
from burn.errors import BurnError, GraphError
from burn.ir._forms import INTEGER_BITS, MAX_GRAPHS, restore_schemes, shown
from burn.ir._tokens import CONSTANTS, Line, unescaped
from burn.ir.check import check
from burn.ir.graph import (
    Constant,
    Donation,
    Draw,
    Drop,
    GraphIr,
    OperationIr,
    ScalarIr,
    Status,
    TensorIr,
)
from burn.ir.host_number import HostNumber
from burn.ops.arguments import as_python
from burn.quant_scheme import QuantScheme
from burn.tensor_data import TensorData

__all__ = ["parse_graph", "write_graph"]

_SHOWN_ELEMENTS: Final = 64
"""Number of values of a constant that the short text has."""


def write_graph(graph: GraphIr, *, short: bool = False) -> str:
    """The text of a program.

    Parameters
    ----------
    graph : GraphIr
        A program that `burn.ir.check` accepts, or one that the passes of `burn.compiler` made of
        such a one: the text of a `HostNumber` is shown, and cannot be read.
    short : bool
        Whether the values of constants with more than 64 elements are left out.

    Raises
    ------
    GraphError
        If an attribute has a value that text cannot hold.
    """
    return "\n".join(_lines(graph, short=short))


def _lines(graph: GraphIr, *, short: bool) -> list[str]:
    lines = [_declaration(source) for source in graph.inputs]
    for tensor, data in graph.constants:
        elided = short and data.array.size > _SHOWN_ELEMENTS
        values = "..." if elided else f"[{', '.join(map(_value, _numbers(data)))}]"
        lines.append(f"constant {_typed(tensor)} = {values}")
    if graph.draw is not None:
        seed, offset, words = graph.draw
        lines.append(f"draw {words} words: seed {_value(seed)}, offset {_value(offset)}")
    for operation in graph.operations:
        if isinstance(operation, Drop):
            lines.append(f"drop %{operation.id}")
        else:
            bodies: list[GraphIr] = []
            line = _operation(operation, bodies)
            for number, body in enumerate(bodies):
                within = [f"  {line}" for line in _lines(body, short=short)]
                lines += [f"graph @{number}", *within, "end"]
            lines.append(line)
    lines += [f"output %{tensor.id}" for tensor in graph.outputs]
    for input, output in graph.donated:
        lines.append(f"donate input {input}{'' if output is None else f' to output {output}'}")
    return [*lines, "relaxed"] if graph.relaxed else lines


def _declaration(one: TensorIr | ScalarIr) -> str:
    if isinstance(one, ScalarIr):
        return f"input ${one.id}: {one.kind.__name__}"
    return f"input {_typed(one)}"


def _typed(tensor: TensorIr) -> str:
    return f"%{tensor.id}: {tensor}"


def _operation(operation: OperationIr, bodies: list[GraphIr]) -> str:
    """The line of an operation; the programs among its attributes are added to `bodies`."""
    outputs = ", ".join(map(_typed, operation.outputs))
    parts = [
        f"[{', '.join(map(_value, source))}]" if source.__class__ is tuple else _value(source)
        for source in operation.inputs
    ]
    for name, value in operation.attributes.items():
        if isinstance(value, GraphIr):
            parts.append(f"{name}=@{len(bodies)}")
            bodies.append(value)
        else:
            parts.append(f"{name}={_value(value)}")
    line = f"{outputs} = {operation.name}({', '.join(parts)})"
    source = operation.source
    if not source:
        return line
    if source != source.strip() or not source.isprintable() or source[0] in "'\"":
        source = repr(source)
    return f"{line}    # {source}"


def _value(value: Any) -> str:
    """An operand or an attribute as text."""
    value = as_python(value)
    if isinstance(value, DType):
        return value.name
    if isinstance(value, QuantScheme):
        return repr(value.text)
    if isinstance(value, TensorIr):
        return f"%{value.id}{'!' if value.status is Status.READ_WRITE else ''}"
    if value is None or isinstance(value, (bool, str, ScalarIr, HostNumber)):
        return repr(value)
    if isinstance(value, int) and value.bit_length() < INTEGER_BITS:
        return int.__repr__(value)
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, complex):  # its repr may lose the sign of a zero
        return f"complex({value.real!r}, {value.imag!r})"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(_value, value))}{',' if len(value) == 1 else ''})"
    raise GraphError(
        f"text holds no {type(value).__name__}: {shown(value)}",
        hint="Use dtypes, strings, tuples, and numbers; integers of at most 256 bits",
    )


def _numbers(data: TensorData) -> list[Any]:
    """The values of a constant as Python numbers, which hold them exactly."""
    flat = data.array.reshape(-1)
    return (flat.astype(np.float64) if data.dtype.is_float else flat).tolist()


def parse_graph(text: str) -> GraphIr:
    """The program of a text.

    Parameters
    ----------
    text : str
        What `write_graph` gives, in full.

    Raises
    ------
    GraphError
        If a line says something else, or the program is not correct; nothing is executed.
    """
    if not isinstance(text, str):
        raise GraphError(f"the text of a program is a str, not {type(text).__name__}")
    builders = [_Builder()]
    for number, line in enumerate(text.split("\n"), 1):
        try:
            _read(builders, Line(line))
        except BurnError as error:
            raise GraphError(error.rule, hint=error.hint, operation=f"line {number}") from None
    if len(builders) > 1:
        raise GraphError("a program in the program has no end", hint="It ends with a line: end")
    graph = builders[0].graph()
    check(graph)
    return graph


def _read(builders: list[_Builder], line: Line) -> None:
    """Add what a line says to the innermost program, or begin or end a program in it."""
    if line.accept("graph"):
        if len(builders) == MAX_GRAPHS:
            raise GraphError(f"there are more than {MAX_GRAPHS} programs within each other")
        builders.append(_Builder(line.id("@")))
        line.end()
    elif line.accept("end"):
        if len(builders) == 1:
            raise GraphError("no program in the program ends here")
        line.end()
        body = builders.pop()
        builders[-1].bodies[body.number] = body.graph()
    else:
        builders[-1].read(line)


_MAX_DEPTH: Final = 4
"""Depth of tuples: an attribute is at most a tuple of tuples."""


class _Builder:
    """The parts of a graph that the lines so far have named.

    Parameters
    ----------
    number : int
        Its number among the programs in the one around it.
    """

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.bodies: dict[int, GraphIr] = {}
        self.inputs: list[TensorIr | ScalarIr] = []
        self.constants: list[Constant] = []
        self.operations: list[OperationIr | Drop] = []
        self.outputs: list[TensorIr] = []
        self.draw: Draw | None = None
        self.donated: list[Donation] = []
        self.relaxed = False
        self.tensors: dict[int, TensorIr] = {}
        self.scalars: dict[int, ScalarIr] = {}

    def graph(self) -> GraphIr:
        """The graph."""
        return GraphIr(
            tuple(self.inputs),
            tuple(self.constants),
            tuple(self.operations),
            tuple(self.outputs),
            self.draw,
            tuple(self.donated),
            self.relaxed,
        )

    def read(self, line: Line) -> None:
        """Add what a line says."""
        if line.kind == "id":
            self.operations.append(self._operation(line))
        elif line.text:
            statement = _STATEMENTS.get(line.name())
            if statement is None:
                raise GraphError(
                    "a line begins with a tensor and its type, or with input, constant, draw, "
                    "drop, output, donate, relaxed, graph or end"
                )
            statement(self, line)
        line.end()

    def _input(self, line: Line) -> None:
        if line.text.startswith("$"):
            id = line.id("$")
            line.expect(":")
            self.inputs.append(self._scalar(id, line.name()))
        else:
            self.inputs.append(self._typed(line, Status.READ_ONLY))

    def _scalar(self, id: int, kind: str) -> ScalarIr:
        if kind not in ("int", "float"):
            raise GraphError(f"a scalar is int or float, not {kind}")
        self.scalars[id] = scalar = ScalarIr(id, int if kind == "int" else float)
        return scalar

    def _typed(self, line: Line, status: Status) -> TensorIr:
        id = line.id("%")
        line.expect(":")
        dtype = DType.of(line.name())
        line.expect("[")
        shape = tuple(line.items("]", lambda: None if line.accept("?") else line.integer()))
        tensor = TensorIr(id, shape, dtype, status)
        self.tensors[id] = tensor._replace(status=Status.READ_ONLY)
        return tensor

    def _constant(self, line: Line) -> None:
        tensor = self._typed(line, Status.READ_ONLY)
        line.expect("=")
        if line.accept("..."):
            raise GraphError(
                "the text has been shortened: it lacks the values of a constant",
                hint="Write it with to_text(), which has all values, or with to_bytes()",
            )
        line.expect("[")
        array = _array(list(line.items("]", line.number)), tensor)
        self.constants.append(Constant(tensor, TensorData(array)))

    def _draw(self, line: Line) -> None:
        if self.draw is not None:
            raise GraphError("a program has one draw")
        words = line.integer()
        line.expect("words")
        line.expect(":")
        line.expect("seed")
        seed = self._scalar(line.id("$"), "int")
        line.expect(",")
        line.expect("offset")
        self.draw = Draw(seed, self._scalar(line.id("$"), "int"), words)

    def _drop(self, line: Line) -> None:
        self.operations.append(Drop(line.id("%")))

    def _output(self, line: Line) -> None:
        self.outputs.append(self._tensor(line))

    def _donate(self, line: Line) -> None:
        line.expect("input")
        input = line.integer()
        output = None
        if line.accept("to"):
            line.expect("output")
            output = line.integer()
        self.donated.append(Donation(input, output))

    def _relaxed(self, line: Line) -> None:
        del line
        self.relaxed = True

    def _operation(self, line: Line) -> OperationIr:
        made = [self._typed(line, Status.NOT_INIT)]
        while line.accept(","):
            made.append(self._typed(line, Status.NOT_INIT))
        line.expect("=")
        name = line.name()
        line.expect("(")
        inputs: list[Any] = []
        attributes: dict[str, Any] = {}
        while not line.accept(")"):
            if line.accept("["):
                inputs.append(tuple(line.items("]", lambda: self._use(line))))
            elif line.kind == "id" and line.text[0] == "%":
                inputs.append(self._use(line))
            else:
                self._argument(line, inputs, attributes)
            if line.text != ")":
                line.expect(",")
        line.end()
        restore_schemes(name, attributes)
        return OperationIr(name, tuple(inputs), attributes, tuple(made), line.source)

    def _argument(self, line: Line, inputs: list[Any], attributes: dict[str, Any]) -> None:
        """A number or None as an operand, or an attribute."""
        if line.kind != "name" or line.text in CONSTANTS or line.text == "complex":
            operand = line.number()
        elif line.accept("None"):
            operand = None
        else:
            name = line.name()
            line.expect("=")
            if name in attributes:
                raise GraphError(f"{name} is there twice")
            attributes[name] = self._attribute(line)
            return
        if attributes:
            raise GraphError("operands come before attributes")
        inputs.append(operand)

    def _tensor(self, line: Line) -> TensorIr:
        id = line.id("%")
        if id not in self.tensors:
            raise GraphError(f"%{id} is not defined before")
        return self.tensors[id]

    def _use(self, line: Line) -> TensorIr:
        tensor = self._tensor(line)
        return tensor._replace(status=Status.READ_WRITE) if line.accept("!") else tensor

    def _attribute(self, line: Line, depth: int = 0) -> Any:
        if line.kind == "string":
            return unescaped(line.next())
        if line.text.startswith("@"):
            id = line.id("@")
            if depth or id not in self.bodies:
                raise GraphError(f"no program @{id} is here")
            return self.bodies.pop(id)
        if line.kind == "id":
            id = line.id("$")
            if id not in self.scalars:
                raise GraphError(f"${id} is not declared before")
            return self.scalars[id] + (line.integer() if line.accept("+") else 0)
        if line.accept("("):
            if depth == _MAX_DEPTH:
                raise GraphError("tuples are nested too deeply")
            return tuple(line.items(")", lambda: self._attribute(line, depth + 1)))
        if line.accept("None"):
            return None
        if line.kind == "name" and line.text not in CONSTANTS and line.text != "complex":
            return DType.of(line.name())
        return line.number()


_STATEMENTS: Final[dict[str, Callable[[_Builder, Line], None]]] = {
    "input": _Builder._input,
    "constant": _Builder._constant,
    "draw": _Builder._draw,
    "drop": _Builder._drop,
    "output": _Builder._output,
    "donate": _Builder._donate,
    "relaxed": _Builder._relaxed,
}


_KINDS: Final[dict[str, type]] = {"b": bool, "i": int, "u": int, "f": float, "c": complex}
"""Class of the values of a dtype, by its kind."""


def _array(values: list[Any], tensor: TensorIr) -> npt.NDArray[Any]:
    """The values of a constant."""
    dtype = tensor.dtype
    kind = _KINDS[dtype.kind]
    strangers = [value for value in values if value.__class__ is not kind]
    if strangers:
        raise GraphError(f"{strangers[0]!r} is no value of {dtype}, which are {kind.__name__}s")
    try:
        wide = np.array(values, dtype=kind if kind is not int else dtype.numpy)
        with np.errstate(all="ignore"):
            array = wide.astype(dtype.numpy)
        reshaped = array.reshape(tensor.shape)  # type: ignore[arg-type]  # None is a TypeError
    except (OverflowError, TypeError, ValueError) as error:
        raise GraphError(f"the values are not those of {tensor}: {error}") from None
    if not np.array_equal(np.isfinite(array), np.isfinite(wide)):
        raise GraphError(f"a value is too large for {dtype}")
    return reshaped
