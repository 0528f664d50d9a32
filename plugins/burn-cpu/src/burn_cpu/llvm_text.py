"""Instructions of LLVM's intermediate representation, as text."""

from __future__ import annotations

import math
import struct
from typing import NamedTuple

__all__ = ["Instructions", "Value", "full_type", "split_arguments", "suffix_of", "type_of"]


class Value(NamedTuple):
    """An operand of instructions: a name or a constant.

    Attributes
    ----------
    text : str
        The operand.
    type : str
        Type of an element: ``"float"``, ``"i64"``.
    lanes : int
        Number of elements.
    """

    text: str
    type: str
    lanes: int = 1

    @property
    def full_type(self) -> str:
        """The type of the operand."""
        return full_type(self.type, self.lanes)

    @property
    def typed(self) -> str:
        """The operand after its type."""
        return f"{self.full_type} {self.text}"


class Instructions:
    """Writes instructions of one function.

    Attributes
    ----------
    declarations : dict of str to str
        Functions that it calls, by their names.
    """

    def __init__(self) -> None:
        self.declarations: dict[str, str] = {}
        self._lines: list[str] = []
        self._count = 0

    def emit(self, instruction: str, type: str, lanes: int = 1) -> Value:
        """An instruction with a result."""
        self._count += 1
        name = f"%v{self._count}"
        self._lines.append(f"  {name} = {instruction}")
        return Value(name, type, lanes)

    def constant(self, value: float, type: str, lanes: int = 1) -> Value:
        """A constant in each lane."""
        text = _number(value, type)
        return Value(text if lanes == 1 else f"splat ({type} {text})", type, lanes)

    def binary(self, instruction: str, a: Value, b: Value) -> Value:
        """An instruction of two operands."""
        a, b = self.same_lanes(a, b)
        return self.emit(f"{instruction} {a.typed}, {b.text}", a.type, a.lanes)

    def compare(self, condition: str, a: Value, b: Value) -> Value:
        """``fcmp`` or ``icmp``, with the condition."""
        return self.binary(condition, a, b)._replace(type="i1")

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """The one operand where a condition is true, else the other one."""
        condition, a, b = self.same_lanes(condition, a, b)
        return self.emit(f"select {condition.typed}, {a.typed}, {b.typed}", a.type, a.lanes)

    def convert(self, instruction: str, value: Value, type: str) -> Value:
        """An instruction that converts to another type."""
        text = f"{instruction} {value.typed} to {full_type(type, value.lanes)}"
        return self.emit(text, type, value.lanes)

    def intrinsic(self, name: str, *operands: Value, result: str = "", flags: str = "") -> Value:
        """A function of LLVM that has a variant for each type; `flags` are its other operands."""
        operands = tuple(self.same_lanes(*operands))
        first = operands[0]
        type = result or first.type
        suffix = suffix_of(first.type, first.lanes)
        if result:
            suffix = f"{suffix_of(result, first.lanes)}.{suffix}"
        arguments = ", ".join([operand.typed for operand in operands]) + flags
        return self.call(f"llvm.{name}.{suffix}", arguments, type, first.lanes)

    def call(self, name: str, arguments: str, type: str, lanes: int = 1) -> Value:
        """A call of a function that is declared by what it is called with."""
        full = full_type(type, lanes)
        if name not in self.declarations:
            types = ", ".join(
                [type_of(split_argument) for split_argument in split_arguments(arguments)]
            )
            self.declarations[name] = f"declare {full} @{name}({types})"
        return self.emit(f"call {full} @{name}({arguments})", type, lanes)

    def in_lanes(self, name: str, *operands: Value) -> Value:
        """A function of a library, called for each lane."""
        operands = tuple(self.same_lanes(*operands))
        type, lanes = operands[0].type, operands[0].lanes
        if lanes == 1:
            return self.call(name, ", ".join([operand.typed for operand in operands]), type)
        result = Value("poison", type, lanes)
        for lane in range(lanes):
            parts = [
                self.emit(f"extractelement {operand.typed}, i32 {lane}", type)
                for operand in operands
            ]
            value = self.call(name, ", ".join([part.typed for part in parts]), type)
            result = self.emit(
                f"insertelement {result.typed}, {value.typed}, i32 {lane}", type, lanes
            )
        return result

    def same_lanes(self, *values: Value) -> list[Value]:
        """Values with the number of lanes of the widest."""
        lanes = max([value.lanes for value in values])
        return [self.splat(value, lanes) for value in values]

    def splat(self, value: Value, lanes: int) -> Value:
        """A value in each lane."""
        if value.lanes == lanes:
            return value
        if not value.text.startswith("%"):
            return Value(f"splat ({value.type} {value.text})", value.type, lanes)
        full = full_type(value.type, lanes)
        first = self.emit(f"insertelement {full} poison, {value.typed}, i32 0", value.type, lanes)
        shuffle = f"shufflevector {first.typed}, {full} poison, <{lanes} x i32> zeroinitializer"
        return self.emit(shuffle, value.type, lanes)


def full_type(type: str, lanes: int) -> str:
    """The type of a vector, or of a number."""
    return type if lanes == 1 else f"<{lanes} x {type}>"


def suffix_of(type: str, lanes: int) -> str:
    """How the names of functions of LLVM end."""
    name = {"float": "f32", "double": "f64", "half": "f16"}.get(type, type)
    return name if lanes == 1 else f"v{lanes}{name}"


def _number(value: float, type: str) -> str:
    """A constant as text: floats by the bits of a double, which has to be a number of the type."""
    if type == "float" and math.isfinite(value):
        try:
            (value,) = struct.unpack("f", struct.pack("f", value))
        except OverflowError:
            value = math.copysign(math.inf, value)
    if type in {"float", "double"}:
        return "0x" + struct.pack(">d", value).hex().upper()
    return str(int(value))


def split_arguments(arguments: str) -> list[str]:
    """Arguments at the commas that are in no brackets."""
    parts, depth, start = [], 0, 0
    for position, letter in enumerate(arguments):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and not depth:
            parts.append(arguments[start:position].strip())
            start = position + 1
    return [*parts, arguments[start:].strip()]


def type_of(argument: str) -> str:
    """The type of an argument with its type."""
    if argument.startswith("<"):
        return argument[: argument.index(">") + 1]
    return argument.split(" ", 1)[0]
