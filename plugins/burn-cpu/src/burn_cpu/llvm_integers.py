"""Functions of integers in LLVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from burn_cpu.llvm_text import Value
    from burn_cpu.llvm_writer import LlvmWriter

__all__ = ["of_integers"]

_INSTRUCTIONS: Final = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
}


def of_integers(
    writer: LlvmWriter, function: str, operands: tuple[Value, ...], *, signed: bool
) -> Value:
    """A function of integers or bool."""
    w = writer
    operands = tuple(w.same_lanes(*operands))
    x = operands[0]

    def number(value: int) -> Value:
        return w.constant(value, x.type, x.lanes)

    if function in _INSTRUCTIONS:
        return w.binary(_INSTRUCTIONS[function], *operands)
    if len(operands) == 1:
        if function == "abs":
            return w.intrinsic("abs", x, flags=", i1 false") if signed else x
        if function == "negative":
            return w.binary("sub", number(0), x)
        return w.binary("xor", x, number(-1))  # bitwise_not
    if function in {"maximum", "minimum"}:
        return w.intrinsic(("s" if signed else "u") + function[:3], *operands)
    y = operands[1]
    if function in {"bitwise_left_shift", "bitwise_right_shift"}:
        return _shift(w, function, x, y, signed=signed)
    if function == "pow":
        return _integer_pow(w, x, y, signed=signed)
    return _integer_division(w, function, x, y, signed=signed)


def _shift(w: LlvmWriter, function: str, x: Value, y: Value, *, signed: bool) -> Value:
    """A shift by the width or more leaves 0, or copies of the sign."""
    width = int(x.type[1:])
    beyond = w.compare("icmp uge", y, w.constant(width, x.type, x.lanes))
    if function == "bitwise_right_shift" and signed:
        most = w.constant(width - 1, x.type, x.lanes)
        return w.binary("ashr", x, w.select(beyond, most, y))
    shifted = w.binary("shl" if function == "bitwise_left_shift" else "lshr", x, y)
    return w.select(beyond, w.constant(0, x.type, x.lanes), shifted)


def _integer_division(w: LlvmWriter, function: str, x: Value, y: Value, *, signed: bool) -> Value:
    """Of a divisor of 0 the result is 0; -1, whose quotient may overflow, is no division."""

    def number(value: int) -> Value:
        return w.constant(value, x.type, x.lanes)

    is_zero = w.compare("icmp eq", y, number(0))
    divisor = w.select(is_zero, number(1), y)
    if not signed:
        result = w.binary("udiv" if function == "floor_divide" else "urem", x, divisor)
        return w.select(is_zero, number(0), result)
    minus = w.compare("icmp eq", y, number(-1))
    divisor = w.select(minus, number(1), divisor)
    rest = w.binary("srem", x, divisor)
    apart = w.compare("icmp slt", w.binary("xor", rest, divisor), number(0))
    apart = w.binary("and", apart, w.compare("icmp ne", rest, number(0)))
    if function == "floor_divide":
        quotient = w.binary("sdiv", x, divisor)
        result = w.select(apart, w.binary("sub", quotient, number(1)), quotient)
        result = w.select(minus, w.binary("sub", number(0), x), result)
    else:
        result = rest
        if function == "remainder":
            result = w.select(apart, w.binary("add", rest, divisor), rest)
        result = w.select(minus, number(0), result)
    return w.select(is_zero, number(0), result)


def _integer_pow(w: LlvmWriter, x: Value, y: Value, *, signed: bool) -> Value:
    """By squares; a negative exponent gives the truncated reciprocal."""
    bits = int(x.type[1:])

    def number(value: int) -> Value:
        return w.constant(value, x.type, x.lanes)

    result, power = number(1), x
    for bit in range(bits):
        is_set = w.binary("and", y, number(1 << bit if bit < bits - 1 else -(1 << bit)))
        times = w.select(w.compare("icmp ne", is_set, number(0)), power, number(1))
        result = w.binary("mul", result, times)
        if bit < bits - 1:
            power = w.binary("mul", power, power)
    if not signed:
        return result
    odd = w.compare("icmp ne", w.binary("and", y, number(1)), number(0))
    of_minus_one = w.select(odd, number(-1), number(1))
    reciprocal = w.select(w.compare("icmp eq", x, number(1)), number(1), number(0))
    reciprocal = w.select(w.compare("icmp eq", x, number(-1)), of_minus_one, reciprocal)
    return w.select(w.compare("icmp slt", y, number(0)), reciprocal, result)
