"""Conversions between dtypes in LLVM: of values, and of what is in memory."""

from __future__ import annotations

from typing import Final

from burn.plugin_api import DType, bfloat16, bool_, float16
from burn_cpu.llvm_text import Instructions, Value

__all__ = ["MEMORY_TYPES", "REGISTER_TYPES", "Conversions"]

REGISTER_TYPES: Final = {
    "bool": "i1",
    "float16": "float",
    "bfloat16": "float",
    "float32": "float",
    "float64": "double",
} | {f"{sign}int{bits}": f"i{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
"""Types of values that are computed with."""

MEMORY_TYPES: Final = REGISTER_TYPES | {"bool": "i8", "float16": "half", "bfloat16": "i16"}
"""Types of elements of memory."""


class Conversions(Instructions):
    """Writes conversions; 16-bit floats are computed with as float32."""

    def cast(self, x: Value, dtype: DType, of: DType) -> Value:
        """A value of a dtype as one of another."""
        if dtype is of:
            return x
        if of.kind == "f":
            return self.from_float(x, of, dtype)
        if of is bool_:
            return self.from_integer(x, dtype, signed=False)
        return self.from_integer(x, dtype, signed=of.kind == "i")

    def from_float(self, x: Value, of: DType, dtype: DType) -> Value:
        """A float as a value of another dtype; to an integer by truncation and saturation."""
        target = REGISTER_TYPES[dtype.name]
        if dtype is bool_:
            return self.compare("fcmp une", x, self.constant(0.0, x.type, x.lanes))
        if dtype.kind in "iu":
            name = "fptosi.sat" if dtype.kind == "i" else "fptoui.sat"
            return self.intrinsic(name, x, result=target)
        if target != x.type:
            x = self.convert("fpext" if target == "double" else "fptrunc", x, target)
        return self._rounded(x, dtype) if dtype is not of else x

    def from_integer(self, x: Value, dtype: DType, *, signed: bool) -> Value:
        """An integer or bool as a value of another dtype."""
        target = REGISTER_TYPES[dtype.name]
        if dtype is bool_:
            return self.compare("icmp ne", x, self.constant(0, x.type, x.lanes))
        if dtype.kind == "f":
            instruction = "sitofp" if signed and x.type != "i1" else "uitofp"
            return self._rounded(self.convert(instruction, x, target), dtype)
        before, after = int(x.type[1:]), int(target[1:])
        if before == after:
            return x
        widen = "sext" if signed and x.type != "i1" else "zext"
        return self.convert("trunc" if after < before else widen, x, target)

    def _rounded(self, x: Value, dtype: DType) -> Value:
        """A float32 rounded to a dtype of 16 bits."""
        if dtype is float16:
            return self.convert("fpext", self.convert("fptrunc", x, "half"), "float")
        if dtype is bfloat16:
            bits = self.convert("zext", self._bfloat16(x), "i32")
            shifted = self.binary("shl", bits, self.constant(16, "i32"))
            return self.convert("bitcast", shifted, "float")
        return x

    def _bfloat16(self, x: Value) -> Value:
        """The bits of the nearest bfloat16, of halves the even one."""
        bits = self.convert("bitcast", x, "i32")
        high = self.binary("lshr", bits, self.constant(16, "i32"))
        odd = self.binary("and", high, self.constant(1, "i32"))
        bias = self.binary("add", odd, self.constant(0x7FFF, "i32"))
        rounded = self.binary("lshr", self.binary("add", bits, bias), self.constant(16, "i32"))
        quiet = self.binary("or", high, self.constant(0x40, "i32"))
        is_nan = self.compare("fcmp uno", x, x)
        return self.convert("trunc", self.select(is_nan, quiet, rounded), "i16")

    def to_register(self, x: Value, dtype: DType) -> Value:
        """What was loaded as what is computed with."""
        if dtype is bool_:
            return self.compare("icmp ne", x, self.constant(0, "i8"))
        if dtype is float16:
            return self.convert("fpext", x, "float")
        if dtype is bfloat16:
            bits = self.convert("zext", x, "i32")
            shifted = self.binary("shl", bits, self.constant(16, "i32"))
            return self.convert("bitcast", shifted, "float")
        return x

    def to_memory(self, x: Value, dtype: DType) -> Value:
        """What is computed with as what is stored."""
        if dtype is bool_:
            return self.convert("zext", x, "i8")
        if dtype is float16:
            return self.convert("fptrunc", x, "half")
        return self._bfloat16(x) if dtype is bfloat16 else x
