"""Elementwise ops as expressions of scalar functions: one for each op, written once.

An expression is text in the syntax of Python: the names of the operands and numeric attributes of
its op, numbers and ``infinity``, arithmetic and comparisons, ``&``, ``|`` and ``~`` of bool, calls
of scalar functions (`burn.kernels.functions.FUNCTIONS`), of other ops that are expressions, with
their attributes in order, and of `HELPERS`. Lines before the last one name intermediate results.
It is parsed once, into steps that a language of kernels takes one by one.
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

__all__ = ["WITHOUT_EXPRESSION", "Expression", "Language", "Nodes", "expression"]

Number: TypeAlias = bool | int | float

_FLOAT: Final = Kind.FLOAT
_INT: Final = Kind.INT
_UINT: Final = Kind.UINT

TEXTS: Final[dict[str, str | dict[Kind, str]]] = {
    # Arithmetic
    "axpby": "x1 * a + x2 * b",
    "floor_divide": {
        Kind.INTEGER: "floor_divide(x1, x2)",
        # The floor of the exact quotient, computed as NumPy does it.
        _FLOAT: """
            rest = fmod(x1, x2)
            ratio = (x1 - rest) / x2
            below = where((rest != 0) & ((rest < 0) != (x2 < 0)), ratio - 1, ratio)
            whole = floor(below)
            result = where(below - whole > 0.5, whole + 1, whole)
            where(x2 == 0, x1 / x2, where(below == 0, copysign(0, x1 / x2), result))
        """,
    },
    "trunc_divide": {
        _INT: """
            whole = floor_divide(x1, x2)
            negative = (x1 < 0) != (x2 < 0)
            where(negative & (remainder(x1, x2) != 0), whole + 1, whole)
        """,
        _UINT: "floor_divide(x1, x2)",
        # A whole number but for rounding, as what is divided is a multiple of the divisor.
        _FLOAT: """
            whole = round((x1 - fmod(x1, x2)) / x2)
            where(x2 == 0, x1 / x2, where(whole == 0, copysign(0, x1 / x2), whole))
        """,
    },
    "lerp": """
        difference = end - start
        from_end = end - (1 - weight) * difference
        where(abs(weight) < 0.5, start + weight * difference, from_end)
    """,
    "heaviside": "where(x1 < 0, 0, where(x1 > 0, 1, where(x1 == 0, x2, x1)))",
    "clip": "minimum(maximum(x, low), high)",
    "sign": {
        _FLOAT: "where(x > 0, 1, where(x < 0, -1, where(x == 0, 0, x)))",
        _INT: "where(x > 0, 1, where(x < 0, -1, 0))",
        _UINT: "where(x > 0, 1, 0)",
    },
    "square": "x * x",
    "reciprocal": "1 / x",
    "logaddexp": """
        distance = where(x1 == x2, 0, abs(x1 - x2))
        maximum(x1, x2) + log1p(exp(-distance))
    """,
    # Powers and logarithms
    "exp2": "pow(2, x)",
    "rsqrt": "1 / sqrt(x)",
    "cbrt": "copysign(pow(abs(x), 1 / 3), x)",
    # Near 1/2 the quotient is near 1, where its logarithm has few digits.
    "logit": """
        odds = 2 * minimum(maximum(x, 0.25), 0.75) - 1
        middle = log1p(odds) - log1p(-odds)
        where(abs(x - 0.5) <= 0.25, middle, log(x / (1 - x)))
    """,
    "xlogy": "x1 * log(where((x1 == 0) & ((x2 <= 0) | (x2 == infinity)), 1, x2))",
    # Questions
    "isnan": "x != x",
    "isinf": "abs(x) == infinity",
    "isfinite": "abs(x) < infinity",
    "signbit": "copysign(1, x) < 0",
    # Complex numbers, of which a real one is its own part
    "real": "x",
    "imag": "0",
    "conj": "x",
    # Rectifiers
    "relu": "maximum(x, 0)",
    "relu_grad": "where(output > 0, g, 0)",
    "leaky_relu": "where(x > 0, x, x * negative_slope)",
    "prelu": "where(x > 0, x, x * alpha)",
    "elu": "where(x > 0, x * scale, expm1(x * input_scale) * (scale * alpha))",
    "hardtanh": "minimum(maximum(x, low), high)",
    "hard_sigmoid": "minimum(maximum(x * alpha + beta, 0), 1)",
    "hard_swish": "x * hard_sigmoid(x, 1 / 6, 0.5)",
    "shrink": "where(abs(x) <= lambd, 0, x - sign(x) * bias)",
    "threshold": "where(x <= threshold, value, x)",
    # Smooth activation functions. Exponentials are of what is not positive: they do not overflow.
    "sigmoid": """
        decay = exp(-abs(x))
        where(x < 0, decay, 1) / (1 + decay)
    """,
    "log_sigmoid": "minimum(x, 0) - log1p(exp(-abs(x)))",
    "softplus": "maximum(x, 0) + log1p(exp(abs(x) * -beta)) / beta",
    "silu": "x * sigmoid(x)",
    # The tangent of log(1 + exp(x)), which is 1 for all x above 30.
    "mish": """
        growth = exp(minimum(x, 30))
        n = growth * (growth + 2)
        x * (n / (n + 2))
    """,
    "softsign": "x / (1 + abs(x))",
    "tanhshrink": "x - tanh(x)",
    "gelu.none": "x * 0.5 * (1 + erf(x * 0.7071067811865476))",
    "gelu.tanh": "x * gelu_gate(x)",
    "gelu_grad.none": """
        area = 0.5 * (1 + erf(x * 0.7071067811865476))
        g * (area + x * 0.3989422804014327 * exp(-0.5 * x * x))
    """,
    "gelu_grad.tanh": """
        gate = gelu_gate(x)
        inner = x * (1 + 0.134145 * x * x) * 0.3989422804014327
        g * (gate + inner * 4 * gate * (1 - gate))
    """,
    # Losses
    "binary_cross_entropy": """
        of_one = target * maximum(log(x), -100)
        (target - 1) * maximum(log1p(-x), -100) - of_one
    """,
}
"""By the name of the op, with that of its choice if it has one; for all kinds of dtypes that the op
takes, or for each kind."""

DECOMPOSED: Final = frozenset(
    {"erfc", "erfinv", "lgamma", "digamma", "i0", "i1", "sinc"},
)
"""Ops whose decompositions are their expressions: long series."""

HELPERS: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    # (1 + tanh(y)) / 2 is sigmoid(2 y), which is exact where it is small.
    "gelu_gate": (("x",), "sigmoid(x * (1 + 0.044715 * x * x) * 1.5957691216057308)"),
}
"""Parameters and text of expressions that are no ops."""

WITHOUT_EXPRESSION: Final[dict[str, str]] = {
    "complex": "its result is complex",
    "nextafter": "its steps depend on the format of the dtype; its decomposition has them",
    "polygamma": "its number of terms depends on its order; its decomposition has them",
}
"""Elementwise ops without an expression, and the reason."""


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
        parser = _Parser(are_bool + [False] * len(numbers))
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
            return language.literal(float(slot.value) if dtype.is_float else slot.value, dtype)

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


_FOLDED: Final[dict[str, Callable[..., Number]]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": lambda x, y: x / y if y else math.copysign(math.inf, x),
    "negative": operator.neg,
}


class _Parser:
    """Steps of a text.

    Attributes
    ----------
    are_bool : list of bool
        For each parameter and each step, whether it gives bool.
    steps : list of _Step or _Constant
        The steps so far.
    """

    def __init__(self, are_bool: list[bool]) -> None:
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
        if function in HELPERS:
            parameters, text = HELPERS[function]
        else:
            texts, op = TEXTS[function], REGISTRY[function]
            parameters = (*op.operands, *op.attributes)
            text = (
                texts[Kind.FLOAT] if isinstance(texts, dict) else texts
            )  # integers need no others
        return self.result(text, dict(zip(parameters, operands, strict=True)))

    def _applied(self, function: str, operands: list[int]) -> int:
        """The number of a scalar function of others."""
        needed, _, gives_bool = FUNCTIONS[function]
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
    for attribute in op.attributes.values():
        if attribute.role is Role.CHOICE:
            name = f"{name}.{choice or attribute.default}"
    text = TEXTS.get(name)
    if isinstance(text, dict):
        text = next((value for kinds, value in text.items() if kind in kinds), None)
    elif name in DECOMPOSED:
        text = text_of_decomposition(name) if kind == _FLOAT else None
    elif text is None and name in FUNCTIONS:
        text = f"{name}({', '.join(op.operands)})" if kind in FUNCTIONS[name].kinds else None
    takes = [operand.kinds for operand in op.operands.values() if operand.promotes]
    if text is None or Tag.ELEMENTWISE not in op.tags or not all(kind in take for take in takes):
        return None
    return Expression(op, text, kind)
