"""Scalar functions in languages like C, where they are no functions of the same names."""

from __future__ import annotations

from typing import Final

__all__ = [
    "CAST_HELPER",
    "FLOAT_HELPERS",
    "FLOAT_TEXTS",
    "INTEGER_HELPERS",
    "INTEGER_TEXTS",
    "TEXTS",
]

FLOAT_TEXTS: Final[dict[str, str]] = {
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "divide": "{0} / {1}",
    "negative": "-{0}",
    "abs": "fabs({0})",
    "maximum": "({0} > {1}) | ({0} != {0}) ? {0} : {1}",
    "minimum": "({0} < {1}) | ({0} != {0}) ? {0} : {1}",
    "round": "rint({0})",
}
"""Scalar functions of floats; one that is not here is a function of this name."""

INTEGER_TEXTS: Final[dict[str, str]] = {
    # Of unsigned numbers: those with a sign must not overflow.
    "add": "({T})(({U}){0} + ({U}){1})",
    "subtract": "({T})(({U}){0} - ({U}){1})",
    "multiply": "({T})(({W}){0} * ({W}){1})",
    "negative": "({T})(({U})0 - ({U}){0})",
    "abs": "{0} < 0 ? ({T})(({U})0 - ({U}){0}) : {0}",
    "maximum": "{0} > {1} ? {0} : {1}",
    "minimum": "{0} < {1} ? {0} : {1}",
    "bitwise_not": "({T})~{0}",
}
"""Scalar functions of integers of type ``T``; ``U`` and ``W``, of 32 or 64 bits, have no sign."""

TEXTS: Final[dict[str, str]] = {
    "equal": "{0} == {1}",
    "not_equal": "{0} != {1}",
    "less": "{0} < {1}",
    "less_equal": "{0} <= {1}",
    "greater": "{0} > {1}",
    "greater_equal": "{0} >= {1}",
    "where": "{0} ? {1} : {2}",
    "bitwise_and": "({T})({0} & {1})",
    "bitwise_or": "({T})({0} | {1})",
    "bitwise_xor": "({T})({0} ^ {1})",
}
"""Scalar functions of all dtypes."""

FLOAT_HELPERS: Final[dict[str, str]] = {
    "remainder": """({T} x, {T} y) {
    const {T} rest = fmod(x, y);
    if (rest == ({T})0) return copysign(({T})0, y);
    return (rest < ({T})0) != (y < ({T})0) ? rest + y : rest;
}""",
}
"""Functions of floats that C does not have."""

INTEGER_HELPERS: Final[dict[str, str]] = {
    "floor_divide": """({T} x, {T} y) {
    if (y == 0) return 0;
    if ({S} && y == ({T})-1) return ({T})(({U})0 - ({U})x);
    const {T} quotient = x / y;
    return x % y != 0 && (x < 0) != (y < 0) ? quotient - 1 : quotient;
}""",
    "fmod": """({T} x, {T} y) {
    return y == 0 || ({S} && y == ({T})-1) ? 0 : x % y;
}""",
    "remainder": """({T} x, {T} y) {
    if (y == 0 || ({S} && y == ({T})-1)) return 0;
    const {T} rest = x % y;
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}""",
    "pow": """({T} base, {T} exponent) {
    if ({S} && exponent < 0)
        return base == 1 ? 1 : base == ({T})-1 ? (exponent & 1 ? ({T})-1 : 1) : 0;
    {W} result = 1, factor = ({W})base;
    for ({U} left = ({U})exponent; left; left >>= 1) {
        if (left & 1) result *= factor;
        factor *= factor;
    }
    return ({T})result;
}""",
    "bitwise_left_shift": """({T} x, {T} count) {
    return ({W})({U})count >= {B} ? 0 : ({T})(({W})x << count);
}""",
    "bitwise_right_shift": """({T} x, {T} count) {
    if (({W})({U})count >= {B}) return x < 0 ? ({T})-1 : 0;
    return x >> count;
}""",
}
"""Functions of integers that C does not have; ``S`` is 1 if they have signs, ``B`` their width."""

CAST_HELPER: Final = """({F} x) {
    if (x != x) return 0;
    if (x >= {high}) return ({T}){largest};
    return x <= {low} ? ({T}){smallest} : ({T})x;
}"""
