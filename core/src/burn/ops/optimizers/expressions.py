"""Expressions of steps of optimizers: the next values of one element, written once.

The expression of a step (`Op.expression`) is text in the syntax of Python. Its names are the
operands of the op, of which it sees one element, and the attributes. What it assigns to the name of
an output is the next value; other names are its own. What is made of attributes alone is a number,
which each call computes once, in double precision. Conditions are of attributes, and of lists,
which are false if they are empty: there is a `StepFormula` for the branches that a call takes.
"""

from __future__ import annotations

import ast
import functools
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from burn.ops.op import REGISTRY, Op

__all__ = ["Instruction", "StepFormula", "step_formula"]


class Instruction(NamedTuple):
    """An elementwise op of values before it.

    Attributes
    ----------
    function : str
        Name of the op.
    operands : tuple of int
        Indices of the values.
    """

    function: str
    operands: tuple[int, ...]


class StepFormula:
    """A step of some options and states, as instructions.

    Its values are the operands, the numbers, and what each instruction gives, in this order.

    Attributes
    ----------
    name : str
        Name of the op.
    operands : tuple of int
        Indices of the lists of the op that it reads: those that are not empty.
    number_count : int
        How many numbers there are.
    instructions : tuple of Instruction
        What is computed.
    results : tuple of int
        Indices of the values that are the outputs, for each list that the op returns.
    outputs : tuple of int
        For each result the index of the operand, among those that are read, that it is the next
        value of.
    """

    def __init__(self, op: Op, branches: Mapping[str, bool], given: Sequence[str]) -> None:
        reader = _Reader(branches, given)
        reader.read(op.expression)  # type: ignore[arg-type]  # a text
        self.name = op.name
        names = list(op.operands)
        self.operands = tuple([names.index(name) for name in given])
        self.number_count = len(reader.numbers)
        self._numbers = _compiled(op.attributes, reader.numbers)
        start = len(given)
        count = start + self.number_count

        def index(value: _Value) -> int:
            return value.number + {"operand": 0, "number": start, "result": count}[value.kind]

        self.instructions = tuple(
            [Instruction(name, tuple(map(index, values))) for name, values in reader.instructions]
        )
        outputs = [name for name in op.outputs if name in given]
        self.results = tuple([index(reader.element(name)) for name in outputs])
        self.outputs = tuple([list(given).index(name) for name in outputs])

    def numbers(self, attributes: Mapping[str, Any]) -> tuple[Any, ...]:
        """The numbers of a call."""
        return self._numbers(**attributes)  # type: ignore[no-any-return]  # a tuple

    def run(
        self, apply: Callable[..., Any], operands: Sequence[Any], numbers: Sequence[Any]
    ) -> list[Any]:
        """Run the instructions.

        Parameters
        ----------
        apply : callable
            ``apply(function, *operands)``: an elementwise op of values, and of numbers.
        operands : sequence
            The values of the operands.
        numbers : sequence
            What `numbers` gave.

        Returns
        -------
        list
            The results.
        """
        values = [*operands, *numbers]
        for function, used in self.instructions:
            values.append(apply(function, *[values[index] for index in used]))
        return [values[index] for index in self.results]


class _Value(NamedTuple):
    """An element: of an operand, a number, or what an instruction gives."""

    kind: str
    number: int


class _Reader:
    """Reads the branches of an expression that are taken.

    A number is its text, until an element meets it.
    """

    def __init__(self, branches: Mapping[str, bool], given: Sequence[str]) -> None:
        self.instructions: list[tuple[str, tuple[_Value, ...]]] = []
        self.numbers: list[str] = []
        self._branches = branches
        self._names: dict[str, _Value | str] = {
            name: _Value("operand", number) for number, name in enumerate(given)
        }

    def read(self, text: str) -> None:
        for statement in _parsed(text):
            match statement:
                case ast.Assign([ast.Name(name)], value):
                    self._names[name] = self._read(value)
                case _:
                    raise SyntaxError(f"no assignment: {ast.unparse(statement)}")

    def element(self, name: str) -> _Value:
        """The value of a name at the end."""
        return self._element(self._names[name])

    def _element(self, value: _Value | str) -> _Value:
        if isinstance(value, _Value):
            return value
        if value not in self.numbers:
            self.numbers.append(value)
        return _Value("number", self.numbers.index(value))

    def _read(self, node: ast.expr) -> _Value | str:
        match node:
            case ast.IfExp(test, body, other):
                return self._read(body if self._branches[ast.unparse(test)] else other)
            case ast.Name(name):
                return self._names.get(name, name)
            case ast.Constant():
                return ast.unparse(node)
            case ast.BinOp(left, operator, right):
                x, y = self._read(left), self._read(right)
                if isinstance(x, str) and isinstance(y, str):
                    return f"({ast.unparse(ast.BinOp(ast.Name(x), operator, ast.Name(y)))})"
                function = _OPERATORS[type(operator)]
                if isinstance(x, str) and function in {"add", "multiply"}:
                    x, y = y, x
                return self._applied(function, (x, y))
            case ast.Call(ast.Name(function), operands):
                return self._applied(function, [self._read(operand) for operand in operands])
        raise SyntaxError(f"no part of a step: {ast.unparse(node)}")

    def _applied(self, function: str, operands: Sequence[_Value | str]) -> _Value:
        self.instructions.append(
            (function, tuple([self._element(operand) for operand in operands]))
        )
        return _Value("result", len(self.instructions) - 1)


_OPERATORS: Final[dict[type, str]] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
}


def _parsed(text: str) -> list[ast.stmt]:
    return ast.parse(textwrap.dedent(text).strip()).body


def _compiled(names: Sequence[str] | Mapping[str, Any], texts: Sequence[str]) -> Callable[..., Any]:
    """A function of keywords that gives the values of some texts."""
    values = "".join([f"{text}, " for text in texts])
    return eval(f"lambda *, {', '.join(names)}: ({values})")  # type: ignore[no-any-return]  # noqa: S307 — of our own definitions


class _Choices:
    """The formulas of an op."""

    def __init__(self, op: Op) -> None:
        self._op = op
        found = [
            ast.unparse(node.test)
            for statement in _parsed(op.expression)  # type: ignore[arg-type]  # a text
            for node in ast.walk(statement)
            if isinstance(node, ast.IfExp)
        ]
        self._tests = list(dict.fromkeys(found))
        self._conditions = _compiled([*op.operands, *op.attributes], self._tests)
        self._formulas: dict[tuple[bool, ...], StepFormula] = {}

    def formula(self, lists: Sequence[Sequence[Any]], attributes: Mapping[str, Any]) -> StepFormula:
        given = dict(zip(self._op.operands, lists, strict=True))
        taken = [_holds(condition) for condition in self._conditions(**given, **attributes)]
        key = (*taken, *map(bool, lists))
        found = self._formulas.get(key)
        if found is None:
            branches = dict(zip(self._tests, taken, strict=True))
            found = StepFormula(
                self._op, branches, [name for name, value in given.items() if value]
            )
            self._formulas[key] = found
        return found


def _holds(condition: Any) -> bool:
    """Whether a condition is true; that of a number which each run of a program gets anew is."""
    return bool(condition) if isinstance(condition, (bool, int, float, list, tuple)) else True


@functools.cache
def _choices(name: str) -> _Choices:
    return _Choices(REGISTRY[name])


def step_formula(
    name: str, lists: Sequence[Sequence[Any]], attributes: Mapping[str, Any]
) -> StepFormula:
    """The formula of a step for the lists and attributes of a call.

    Parameters
    ----------
    name : str
        Name of the op.
    lists : sequence of list
        Its operands, of which some may be empty.
    attributes : dict of str to number
        Its attributes.

    Returns
    -------
    StepFormula
        The same one for calls that take the same branches.
    """
    return _choices(name).formula(lists, attributes)
