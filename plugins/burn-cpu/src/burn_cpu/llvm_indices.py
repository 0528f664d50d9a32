"""Indices in LLVM: those of a vector are a progression, where they can be."""

from __future__ import annotations

from typing import Any, NamedTuple

from burn.plugin_api import DType, Extent
from burn_cpu.llvm_conversions import REGISTER_TYPES, Conversions
from burn_cpu.llvm_text import Value

__all__ = ["Indices", "Linear"]


class Linear(NamedTuple):
    """An index: in each lane `step` more than in the one before; `base` may be a constant."""

    base: int | str
    step: int = 0
    lanes: int = 1


class Indices(Conversions):
    """Arithmetic of indices: each is a `Linear`, or a value of 64-bit integers."""

    def __init__(self) -> None:
        super().__init__()
        self._active: int | str | None = None

    def integer(self, value: Extent) -> Linear:
        """A constant, or a parameter."""
        return Linear(value if isinstance(value, int) else f"%{value}")

    def vector(self, start: Any, lanes: int) -> Linear:
        """Indices from a scalar one on."""
        return Linear(start.base, 1, lanes)

    def restrict(self, active: Linear | None) -> None:
        """Load and store the first lanes only."""
        self._active = None if active is None else active.base

    def index_of(self, value: Value, dtype: DType) -> Any:
        """As 64 bits; indices are below 2**63."""
        wide = value
        if value.type != "i64":
            wide = self.convert("sext" if dtype.kind == "i" else "zext", value, "i64")
        return wide if wide.lanes > 1 else Linear(wide.text)

    def value_of(self, index: Any, dtype: DType) -> Value:
        """The index of each lane, if it has several."""
        target = REGISTER_TYPES[dtype.name]
        value = self._lane_values(index)
        return value if target == "i64" else self.convert("trunc", value, target)

    def add(self, a: Any, b: Any) -> Any:
        """The sum, whose lanes are a progression if those of both are."""
        if isinstance(a, Linear) and isinstance(b, Linear):
            base = self._arithmetic("add nsw", a.base, b.base)
            return Linear(base, a.step + b.step, max(a.lanes, b.lanes))
        return self.binary("add", self._lane_values(a), self._lane_values(b))

    def multiply(self, a: Any, b: Any) -> Any:
        """The product; `b` is the same in each lane."""
        if isinstance(a, Linear) and (not a.step or isinstance(b.base, int)):
            step = a.step and a.step * b.base
            return Linear(self._arithmetic("mul nsw", a.base, b.base), step, a.lanes)
        return self.binary("mul", self._lane_values(a), self._lane_values(b))

    def divide(self, a: Any, b: Any) -> Any:
        """The quotient of scalar indices."""
        return Linear(self._arithmetic("udiv", a.base, b.base))

    def remainder(self, a: Any, b: Any) -> Any:
        """The remainder of scalar indices."""
        return Linear(self._arithmetic("urem", a.base, b.base))

    def minimum(self, a: Any, b: Any) -> Any:
        """The smaller one of scalar indices."""
        if isinstance(a.base, int) and isinstance(b.base, int):
            return Linear(min(a.base, b.base))
        arguments = f"i64 {a.base}, i64 {b.base}"
        return Linear(self.call("llvm.smin.i64", arguments, "i64").text)

    def less(self, a: Any, b: Any) -> Value:
        """A comparison of scalar indices."""
        return self.emit(f"icmp slt i64 {a.base}, {b.base}", "i1")

    def _arithmetic(self, instruction: str, a: int | str, b: int | str) -> int | str:
        """Integer arithmetic, at once where both are constants."""
        name = instruction.split(maxsplit=1)[0]
        if isinstance(a, int) and isinstance(b, int):
            return {"add": a + b, "mul": a * b, "udiv": a // max(b, 1), "urem": a % max(b, 1)}[name]
        if name == "add" and 0 in {a, b}:
            return b if a == 0 else a
        if name == "mul":
            if 0 in {a, b}:
                return 0
            if 1 in {a, b}:
                return b if a == 1 else a
        if name in {"udiv", "urem"} and b == 1:
            return a if name == "udiv" else 0
        return self.emit(f"{instruction} i64 {a}, {b}", "i64").text

    def _lane_values(self, index: Any) -> Value:
        """An index as a value."""
        if isinstance(index, Value):
            return index
        base = Value(str(index.base), "i64")
        if index.lanes == 1:
            return base
        steps = ", ".join([f"i64 {lane * index.step}" for lane in range(index.lanes)])
        return self.binary("add", base, Value(f"<{steps}>", "i64", index.lanes))
