"""Elementwise ops as expressions of scalar functions, which kernels compute.

That of an op is the text in its definition (`Op.expression`), the scalar function of its name
(`burn.kernels.functions.FUNCTIONS`), or else what its decomposition computes, written down
(`burn.kernels.decomposed_text`).

Such a text has the syntax of Python: the names of the operands and numeric attributes of its op,
numbers and ``infinity``, arithmetic and comparisons, ``&``, ``|`` and ``~`` of bool, calls of
scalar functions, and of other elementwise ops, with their attributes in order. Lines before the
last one name intermediate results. It is parsed once, into steps that a language of kernels takes
one by one.
"""

from __future__ import annotations

import ast
import functools
import math
import operator
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from burn.dtype import DType, Kind, bool_
from burn.kernels.decomposed_text import text_of_decomposition
from burn.kernels.functions import FUNCTIONS
from burn.kernels.kernel import Apply, Literal, Node
from burn.ops import REGISTRY, Op, Tag
from burn.ops.signature import Role

__all__ = ["Expression", "Language", "Nodes", "expression"]

Number: TypeAlias = bool | int | float


class Language(Protocol):
    """What an expression is written in: `Nodes`, or a `burn.kernels.writer.Writer`."""

    def literal(self, value: Number, dtype: DType, /) -> Any:
        """A constant."""

    def apply(self, function: str, operands: tuple[Any, ...], dtype: DType, of: DType, /) -> Any:
        """A scalar function; `dtype` is that of the result, `of` that of the last operand."""


class Nodes:
    """The body of a kernel as a language: its values are indices of nodes, and equal ones are one.

    Attributes
    ----------
    body : list of Node
        The nodes so far.

    Examples
    --------
    >>> from burn import float32
    >>> from burn.dtype import Kind
    >>> from burn.kernels import Load
    >>> from burn.kernels.expressions import Nodes, expression
    >>> nodes = Nodes()
    >>> x = nodes.add(Load(0, 0, (1,), float32))
    >>> expression("square", Kind.FLOAT).write(nodes, {"x": x}, float32)
    1
    >>> nodes.body[1]
    Apply(function='multiply', operands=(0, 0), dtype=burn.float32)
    """

    def __init__(self) -> None:
        self.body: list[Node] = []
        self._indices: dict[Node, int] = {}

    def add(self, node: Node) -> int:
        """The index of a node, which is appended if there is no equal one.

        Parameters
        ----------
        node : Node
            A node of nodes that are there.
        """
        key = _distinct(node)
        index = self._indices.get(key)
        if index is None:
            index = self._indices[key] = len(self.body)
            self.body.append(node)
        return index

    def literal(self, value: Number, dtype: DType) -> int:
        """The index of a constant."""
        return self.add(Literal(value, dtype))

    def apply(self, function: str, operands: tuple[int, ...], dtype: DType, of: DType) -> int:
        """The index of a scalar function of other nodes."""
        del of
        return self.add(Apply(function, operands, dtype))


def _distinct(node: Node) -> Any:
    """A key of a node: 0.0 and -0.0 are equal, and nodes of several classes are equal tuples."""
    if node.__class__ is Literal:
        return Literal, repr(node.value), node.dtype
    return node.__class__, node


class _Constant(NamedTuple):
    """A number that is known when an expression is written."""

    value: Number


class _Step(NamedTuple):
    """A scalar function of what parameters, constants and earlier steps give, by their numbers."""

    function: str
    operands: tuple[int, ...]
    gives_bool: bool
    of_bool: bool


class Expression:
    """The expression of an op for one kind of dtype.

    Attributes
    ----------
    parameters : tuple of str
        The operands of the op, and its attributes that are numbers.
    gives_bool : bool
        Whether the result is bool; otherwise it has the dtype of the operands.
    """

    def __init__(self, op: Op, text: str, kind: Kind) -> None:
        numbers = [
            attribute for attribute in op.attributes.values() if attribute.role is Role.NUMBER
        ]
        self.parameters = (*op.operands, *[number.name for number in numbers])
        self._defaults: dict[str, Any] = {
            number.name: number.default for number in numbers if not number.required
        }
        are_bool = [Kind.BOOL in {spec.kinds, kind} for spec in op.operands.values()]
        parser = _Parser(kind, are_bool + [False] * len(numbers))
        self._result = parser.result(
            text, {parameter: i for i, parameter in enumerate(self.parameters)}
        )
        self._steps = tuple(parser.steps)
        self.gives_bool = parser.are_bool[self._result]

    def write(
        self,
        language: Language,
        values: Mapping[str, Any],
        dtype: DType,
        numbers: Mapping[str, Number] = {},
    ) -> Any:
        """Write the expression.

        Parameters
        ----------
        language : Language
            What gets the scalar functions, in order.
        values : dict of str to value
            The operands, and attributes that are known when a kernel is launched, as values of the
            language. All of them have one dtype, except the condition of `where`, which is bool.
        dtype : DType
            Their dtype.
        numbers : dict of str to number, optional
            Attributes that are known now; those that are in neither have their defaults.

        Returns
        -------
        value
            The result, of `dtype` or, if `gives_bool`, of bool.
        """
        slots: list[Any] = [
            values[name]
            if name in values
            else _Constant(numbers[name] if name in numbers else self._defaults[name])
            for name in self.parameters
        ]

        def written(slot: Any) -> Any:
            if slot.__class__ is not _Constant:
                return slot
            return language.literal(_CLASSES[dtype.kind](slot.value), dtype)

        for step in self._steps:
            if isinstance(step, _Constant):
                slots.append(step)
                continue
            function, numbered, gives_bool, of_bool = step
            operands = tuple([slots[number] for number in numbered])
            result = _folded(function, operands)
            if result is None:
                result = language.apply(
                    function,
                    tuple([written(operand) for operand in operands]),
                    bool_ if gives_bool else dtype,
                    bool_ if of_bool else dtype,
                )
            slots.append(result)
        return written(slots[self._result])


def _folded(function: str, operands: tuple[Any, ...]) -> Any:
    """The result where no function is needed: a constant, or one of the operands; else None."""
    constants = [operand.__class__ is _Constant for operand in operands]
    compute = _FOLDED.get(function)
    if compute is not None and all(constants):
        return _Constant(compute(*[operand.value for operand in operands]))
    if function in {"multiply", "divide"}:
        if constants[1] and operands[1].value == 1:
            return operands[0]
        if constants[0] and operands[0].value == 1 and function == "multiply":
            return operands[1]
    return None


_CLASSES: Final[dict[str, type]] = {"b": bool, "i": int, "u": int, "f": float}
"""The class of the constants of each kind of dtype."""

_FOLDED: Final[dict[str, Callable[..., Number]]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": lambda x, y: x / y if y else math.copysign(math.inf, x),
    "negative": operator.neg,
}


class _Parser:
    """Steps of a text for one kind of dtype.

    Attributes
    ----------
    are_bool : list of bool
        For each parameter and each step, whether it gives bool.
    steps : list of _Step or _Constant
        The steps so far.
    """

    def __init__(self, kind: Kind, are_bool: list[bool]) -> None:
        self._kind = kind
        self.are_bool = are_bool
        self.steps: list[_Step | _Constant] = []

    def result(self, text: str, names: dict[str, int]) -> int:
        """The number of the result of a text, from the numbers of its names."""
        for statement in ast.parse(textwrap.dedent(text).strip()).body:
            match statement:
                case ast.Assign([ast.Name(name)], value):
                    names[name] = self._parsed(value, names)
                case ast.Expr(value):
                    return self._parsed(value, names)
        raise SyntaxError(f"an expression without a result: {text}")

    def _parsed(self, node: ast.expr, names: dict[str, int]) -> int:
        match node:
            case ast.Constant(bool() | int() | float() as value):
                return self._append(_Constant(value), gives_bool=isinstance(value, bool))
            case ast.Name("infinity"):
                return self._append(_Constant(math.inf), gives_bool=False)
            case ast.Name(name) if name in names:
                return names[name]
        function, parts = _call(node)
        operands = [self._parsed(part, names) for part in parts]
        if function in FUNCTIONS:
            return self._applied(function, operands)
        op = REGISTRY[function]
        text = _text(op, self._kind)
        if text is None:
            raise SyntaxError(f"{function} has no expression for {self._kind}")
        parameters = (*op.operands, *op.attributes)
        return self.result(text, dict(zip(parameters, operands, strict=True)))

    def _applied(self, function: str, operands: list[int]) -> int:
        """The number of a scalar function of others."""
        needed, gives_bool = FUNCTIONS[function].operands, FUNCTIONS[function].gives_bool
        if len(operands) != needed:
            raise SyntaxError(f"{function} of {len(operands)} operands")
        of_bool = self.are_bool[operands[-1]]
        same = operands[1:] if function == "where" else operands
        if any(self.are_bool[number] is not of_bool for number in same):
            raise SyntaxError(f"{function} of a bool and a number")
        step = _Step(function, tuple(operands), gives_bool or of_bool, of_bool)
        return self._append(step, gives_bool=step.gives_bool)

    def _append(self, step: _Step | _Constant, *, gives_bool: bool) -> int:
        self.steps.append(step)
        self.are_bool.append(gives_bool)
        return len(self.are_bool) - 1


def _call(node: ast.expr) -> tuple[str, list[ast.expr]]:
    """The function that a part of an expression calls, and its operands."""
    match node:
        case ast.UnaryOp(operation, operand):
            return _OPERATORS[type(operation)], [operand]
        case ast.BinOp(left, operation, right) | ast.Compare(left, [operation], [right]):
            return _OPERATORS[type(operation)], [left, right]
        case ast.Call(ast.Name(function), operands):
            return function, operands
    raise SyntaxError(f"no part of an expression: {ast.unparse(node)}")


_OPERATORS: Final[dict[type, str]] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.USub: "negative",
    ast.Invert: "bitwise_not",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
}


@functools.cache
def expression(name: str, kind: Kind, choice: str | None = None) -> Expression | None:
    """The expression of an elementwise op.

    Parameters
    ----------
    name : str
        Name of the op.
    kind : Kind
        Kind of the dtype of its operands, those of bool aside that do not promote.
    choice : str, optional
        Value of its attribute that is a choice, if it has one; left out, its default.

    Returns
    -------
    Expression or None
        None if the op, or this kind, has none: it is no elementwise op, or its result is complex.

    Examples
    --------
    >>> from burn.dtype import Kind
    >>> from burn.kernels.expressions import expression
    >>> expression("softplus", Kind.FLOAT).parameters
    ('x', 'beta')
    >>> expression("softplus", Kind.INT) is None
    True
    """
    op = REGISTRY[name]
    takes = [operand.kinds for operand in op.operands.values() if operand.promotes]
    if Tag.ELEMENTWISE not in op.tags or not all(kind in kinds for kinds in takes):
        return None
    for attribute in op.attributes.values():
        if attribute.role is Role.CHOICE:
            choice = choice or attribute.default
    text = _text(op, kind, choice)
    return None if text is None else Expression(op, text, kind)


def _text(op: Op, kind: Kind, choice: str | None = None) -> str | None:
    """The text of an op for a kind of dtype; None if it has none."""
    text: Any = op.expression
    if isinstance(text, Mapping):
        text = next((found for kinds, found in text.items() if kind in kinds), None)
    if text is not None or kind == Kind.COMPLEX:
        return text  # type: ignore[no-any-return]  # a str
    if op.name in FUNCTIONS:
        has_kind = kind in FUNCTIONS[op.name].kinds
        return f"{op.name}({', '.join(op.operands)})" if has_kind else None
    return text_of_decomposition(op, kind, choice)
