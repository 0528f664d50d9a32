"""LlvmWriter: kernels in the text of LLVM's intermediate representation, with vectors."""

from __future__ import annotations

import contextlib
import math
import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from burn.plugin_api import DType, bfloat16, bool_, float16, float32, float64
from burn_cpu import llvm_functions, llvm_integers
from burn_cpu.llvm_conversions import MEMORY_TYPES, REGISTER_TYPES
from burn_cpu.llvm_indices import Indices, Linear
from burn_cpu.llvm_text import Value, full_type, split_arguments, suffix_of, type_of

__all__ = ["LlvmWriter"]


class _Variable(NamedTuple):
    pointer: str
    type: str
    lanes: int


_COMPARISONS: Final = {
    "equal": ("oeq", "eq"),
    "not_equal": ("une", "ne"),
    "less": ("olt", "lt"),
    "less_equal": ("ole", "le"),
    "greater": ("ogt", "gt"),
    "greater_equal": ("oge", "ge"),
}
"""The conditions of fcmp, and of icmp less the sign."""

_INTRINSICS: Final = {
    "abs": "fabs",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "round": "roundeven",
    "sqrt": "sqrt",
    "copysign": "copysign",
}


_SHUFFLES: Final = frozenset([1, 2, -1])
"""Elements from one lane to the next for which vectors of neighbours are loaded."""


class LlvmWriter(Indices):
    """Writes statements of one function; see `burn.kernels.writer` and `burn.kernels.serial`.

    Parameters
    ----------
    lanes : int
        Number of lanes of a vector.
    relaxed : bool, optional
        Whether a product and a sum may become one fused multiply-add.

    Attributes
    ----------
    start, stop : index
        The range of items that the function computes.
    """

    def __init__(self, lanes: int, *, relaxed: bool = False) -> None:
        super().__init__()
        self.lanes = lanes
        self._flags = " contract" if relaxed else ""
        self.start = Linear("%start")
        self.stop = Linear("%stop")
        self.pool: dict[int, int] = {}
        self._variables: list[str] = []
        self._block = "entry"

    def body(self) -> str:
        """The statements of the function."""
        return "\n".join(["entry:", *self._variables, *self._lines, "  ret void"])

    # --- constants and scalar functions ---

    def literal(self, value: float, dtype: DType) -> Value:
        """A constant; of a dtype of 16 bits it is not rounded."""
        if dtype.is_float:
            value = float(value)
        elif dtype is not bool_:
            value = int(value) % (1 << (8 * dtype.itemsize))
        return self.constant(value, REGISTER_TYPES[dtype.name])

    def pooled(self, value: float, type: str, lanes: int) -> Value:
        """A constant in each lane, loaded from an array.

        LLVM loads constants of vectors by a full address each. Those of a function like `exp` then
        take all registers, and more where a loop has a second one for its rest.
        """
        if lanes == 1:
            return self.constant(value, type)
        format = "f" if type == "float" else "d"
        bits = int.from_bytes(struct.pack("<" + format, value), "little")
        slot = self.pool.setdefault(bits, len(self.pool))
        address = f"getelementptr inbounds (i64, ptr @pool, i64 {slot})"
        return self.splat(self.emit(f"load {type}, ptr {address}", type), lanes)

    def scalar(self, number: int, dtype: DType) -> Value:
        """Parameters are named by their numbers: ``%d2`` is a double, ``%i3`` an integer."""
        given = self.scalar_types[number]
        value = Value(f"%s{number}", given)
        if given == "double":
            return self.from_float(value, float64, dtype)
        return self.from_integer(value, dtype, signed=True)

    scalar_types: tuple[str, ...] = ()

    def apply(self, function: str, operands: tuple[Value, ...], dtype: DType, of: DType) -> Value:
        """A scalar function."""
        if function == "cast":
            return self.cast(operands[0], dtype, of)
        if function == "where":
            return self.select(*operands)
        kind = of.kind
        if function in _COMPARISONS:
            ordered, condition = _COMPARISONS[function]
            if kind == "f":
                return self.compare(f"fcmp {ordered}", *operands)
            sign = "" if condition in {"eq", "ne"} else "s" if kind == "i" else "u"
            return self.compare(f"icmp {sign}{condition}", *operands)
        if kind == "f":
            return self._float_function(function, operands, of)
        return llvm_integers.of_integers(self, function, operands, signed=kind == "i")

    def _float_function(self, function: str, operands: tuple[Value, ...], of: DType) -> Value:
        if function in {"add", "subtract", "multiply", "divide"}:
            instruction = {"add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv"}
            return self.binary(f"{instruction[function]}{self._flags}", *operands)
        if function == "negative":
            (x,) = operands
            return self.emit(f"fneg {x.typed}", x.type, x.lanes)
        if function in _INTRINSICS:
            return self.intrinsic(_INTRINSICS[function], *operands)
        if function in {"maximum", "minimum"}:
            return self._extreme(function, *operands)
        del of
        return llvm_functions.of_floats(self, function, operands)

    def _extreme(self, function: str, a: Value, b: Value) -> Value:
        """The larger or smaller one; NaN if one is."""
        a, b = self.same_lanes(a, b)
        # Also true if one is NaN, so that a NaN as `a` is the result.
        condition = self.compare(f"fcmp {'ugt' if function == 'maximum' else 'ult'}", a, b)
        either = self.select(condition, a, b)
        return self.select(self.compare("fcmp uno", b, b), b, either)

    # --- memory ---

    def load(self, input: int, index: Any, dtype: DType, guard: Value | None = None) -> Value:
        """An element for each lane."""
        return self._load(f"%in{input}", index, dtype, guard)

    def store(self, output: int, index: Any, value: Value, dtype: DType) -> None:
        """An element for each lane."""
        self._store(f"%out{output}", index, value, dtype)

    def _load(self, pointer: str, index: Any, dtype: DType, guard: Value | None) -> Value:
        memory, size = MEMORY_TYPES[dtype.name], dtype.itemsize
        lanes = max(index.lanes, guard.lanes if guard is not None else 1)
        linear = isinstance(index, Linear)
        if guard is None and (lanes == 1 or (linear and index.step == 0)):
            address = self._address(pointer, memory, index.base if linear else index.text)
            found = self.emit(f"load {memory}, ptr {address}, align {size}", memory)
            return self.to_register(found, dtype)
        if lanes == 1 and guard is not None:
            return self._guarded_load(pointer, index, dtype, guard)
        mask = None if guard is None and self._active is None else self._mask(lanes, guard)
        if linear and index.step in _SHUFFLES:
            return self.to_register(self._neighbours(pointer, dtype, index, mask), dtype)
        full, mask = full_type(memory, lanes), mask or self._mask(lanes, None)
        addresses = self._addresses(pointer, memory, index, lanes)
        arguments = f"{addresses}, i32 {size}, {mask.typed}, {full} zeroinitializer"
        name = f"llvm.masked.gather.{suffix_of(memory, lanes)}.v{lanes}p0"
        return self.to_register(self.call(name, arguments, memory, lanes), dtype)

    def _neighbours(self, pointer: str, dtype: DType, index: Linear, mask: Value | None) -> Value:
        """Elements that are few steps from each other: vectors of neighbours, and a shuffle.

        Of memory behind the last element, or before the first one, nothing is read.
        """
        base, step, lanes = index
        if step < 0:
            base = self._arithmetic("add nsw", base, (lanes - 1) * step)
        # In which lane each element is wanted, by its distance from the first in memory.
        wanted = {abs(step) * n: n if step > 0 else lanes - 1 - n for n in range(lanes)}
        starts, vectors = [0, lanes - 1][: abs(step)], []
        for start in starts:
            own = mask
            if mask is not None and step != 1:
                order = [wanted.get(start + lane, lanes) for lane in range(lanes)]
                own = self._shuffled(mask, Value("zeroinitializer", "i1", lanes), order)
            address = self._arithmetic("add nsw", base, start)
            vectors.append(self._vector(pointer, dtype, address, lanes, own))
        if step == 1:
            return vectors[0]
        by_lane = sorted(wanted, key=wanted.__getitem__)
        return self._shuffled(vectors[0], vectors[-1], [n if n < lanes else n + 1 for n in by_lane])

    def _vector(
        self, pointer: str, dtype: DType, base: int | str, lanes: int, mask: Value | None
    ) -> Value:
        """Neighbours in memory."""
        memory, size = MEMORY_TYPES[dtype.name], dtype.itemsize
        full, address = full_type(memory, lanes), self._address(pointer, memory, base)
        if mask is None:
            return self.emit(f"load {full}, ptr {address}, align {size}", memory, lanes)
        arguments = f"ptr {address}, i32 {size}, {mask.typed}, {full} zeroinitializer"
        name = f"llvm.masked.load.{suffix_of(memory, lanes)}.p0"
        return self.call(name, arguments, memory, lanes)

    def _shuffled(self, a: Value, b: Value, lanes: Sequence[int]) -> Value:
        """Lanes of two vectors."""
        order = ", ".join([f"i32 {lane}" for lane in lanes])
        text = f"shufflevector {a.typed}, {b.typed}, <{len(lanes)} x i32> <{order}>"
        return self.emit(text, a.type, len(lanes))

    def _guarded_load(self, pointer: str, index: Any, dtype: DType, guard: Value) -> Value:
        """An element, or 0."""
        variable = self.variable(self.constant(0, REGISTER_TYPES[dtype.name]), dtype)
        with self.when(guard):
            self.set(variable, self._load(pointer, index, dtype, None))
        return self.get(variable)

    def _store(self, pointer: str, index: Any, value: Value, dtype: DType) -> None:
        memory, size = MEMORY_TYPES[dtype.name], dtype.itemsize
        value = self.to_memory(value, dtype)
        lanes = index.lanes
        linear = isinstance(index, Linear)
        value = self.splat(value, lanes) if lanes > 1 else value
        if lanes == 1 or (linear and index.step == 1 and self._active is None):
            base = index.base if linear else index.text
            address = self._address(pointer, memory, base)
            self._lines.append(f"  store {value.typed}, ptr {address}, align {size}")
            return
        mask, suffix = self._mask(lanes, None), suffix_of(memory, lanes)
        if linear and index.step == 1:
            name = f"llvm.masked.store.{suffix}.p0"
            target = f"ptr {self._address(pointer, memory, index.base)}"
        else:
            name = f"llvm.masked.scatter.{suffix}.v{lanes}p0"
            target = self._addresses(pointer, memory, index, lanes)
        arguments = f"{value.typed}, {target}, i32 {size}, {mask.typed}"
        types = ", ".join(
            [type_of(split_argument) for split_argument in split_arguments(arguments)]
        )
        self.declarations[name] = f"declare void @{name}({types})"
        self._lines.append(f"  call void @{name}({arguments})")

    def _address(self, pointer: str, memory: str, base: int | str) -> str:
        if base == 0:
            return pointer
        return self.emit(f"getelementptr inbounds {memory}, ptr {pointer}, i64 {base}", "ptr").text

    def _addresses(self, pointer: str, memory: str, index: Any, lanes: int) -> str:
        indices = self.splat(self._lane_values(index), lanes)
        text = f"getelementptr {memory}, ptr {pointer}, {indices.typed}"
        return self.emit(text, "ptr", lanes).typed

    def _mask(self, lanes: int, guard: Value | None) -> Value:
        """Which lanes are loaded or stored."""
        if self._active is None:
            mask = Value("splat (i1 true)", "i1", lanes)
        elif isinstance(self._active, int):
            bits = ", ".join([f"i1 {int(lane < self._active)}" for lane in range(lanes)])
            mask = Value(f"<{bits}>", "i1", lanes)
        else:
            numbers = ", ".join([f"i32 {lane}" for lane in range(lanes)])
            active = self.convert("trunc", Value(self._active, "i64"), "i32")
            mask = self.compare("icmp slt", Value(f"<{numbers}>", "i32", lanes), active)
        return mask if guard is None else self.binary("and", mask, guard)

    # --- variables ---

    def variable(self, initial: Value, dtype: DType) -> _Variable:
        """On the stack, from where LLVM moves it to a register."""
        del dtype
        made = self._allocate(initial.full_type)
        variable = _Variable(made, initial.type, initial.lanes)
        self.set(variable, initial)
        return variable

    def _allocate(self, type: str, count: int = 1) -> str:
        name = f"%a{len(self._variables)}"
        self._variables.append(f"  {name} = alloca {type}, i64 {count}, align 64")
        return name

    def get(self, variable: _Variable) -> Value:
        """The value now."""
        full = full_type(variable.type, variable.lanes)
        return self.emit(f"load {full}, ptr {variable.pointer}", variable.type, variable.lanes)

    def set(self, variable: _Variable, value: Value) -> None:
        """Assign."""
        value = self.splat(value, variable.lanes)
        self._lines.append(f"  store {value.typed}, ptr {variable.pointer}")

    def array(self, count: int, dtype: DType) -> tuple[str, DType]:
        """On the stack; of 16-bit floats as float32."""
        held = float32 if dtype in {float16, bfloat16} else dtype
        return self._allocate(MEMORY_TYPES[held.name], count), held

    def element(self, array: tuple[str, DType], index: Any) -> Value:
        """An element for each lane."""
        return self._load(array[0], index, array[1], None)

    def set_element(self, array: tuple[str, DType], index: Any, value: Value) -> None:
        """An element for each lane."""
        self._store(array[0], index, value, array[1])

    # --- reductions ---

    def identity(self, kind: str, dtype: DType, lanes: int) -> Value:
        """0, 1, or the smallest or largest value."""
        type = REGISTER_TYPES[dtype.name]
        if kind in {"sum", "product"}:
            return self.constant(kind == "product", type, lanes)
        if dtype.kind == "f":
            return self.constant(-math.inf if kind == "max" else math.inf, type, lanes)
        bits = int(type[1:])
        if dtype.kind == "i":
            value = 1 << (bits - 1) if kind == "max" else (1 << (bits - 1)) - 1
        else:
            value = 0 if kind == "max" else (1 << bits) - 1
        return self.constant(value, type, lanes)

    def combine(self, kind: str, a: Value, b: Value, dtype: DType) -> Value:
        """Of two values of one dtype."""
        a, b = self.same_lanes(a, b)
        if dtype.kind == "f":
            if kind in {"max", "min"}:
                return self._extreme({"max": "maximum", "min": "minimum"}[kind], a, b)
            return self.binary(f"{'fadd' if kind == 'sum' else 'fmul'} contract", a, b)
        if dtype is bool_:
            return self.binary("or" if kind == "max" else "and", a, b)
        if kind in {"sum", "product"}:
            return self.binary("add" if kind == "sum" else "mul", a, b)
        return self.intrinsic(f"{'s' if dtype.kind == 'i' else 'u'}{kind}", a, b)

    def term(self, a: Value, b: Value, *, dtype: DType) -> Value:
        """A product; `combine` may contract the sum with it."""
        del dtype
        return self.binary("fmul contract", a, b)

    def active(self, kind: str, value: Value, dtype: DType, lanes: int) -> Value:
        """A value of all lanes, with the identity in those that are not loaded."""
        value = self.splat(value, lanes)
        if self._active is None:
            return value
        return self.select(self._mask(lanes, None), value, self.identity(kind, dtype, lanes))

    def total(self, kind: str, value: Value, dtype: DType) -> Value:
        """Halves are combined until one lane is left."""
        while value.lanes > 1:
            half = value.lanes // 2
            parts = []
            for start in (0, half):
                lanes = ", ".join([f"i32 {start + lane}" for lane in range(half)])
                both = f"{value.typed}, {value.full_type} poison"
                text = f"shufflevector {both}, <{half} x i32> <{lanes}>"
                if half == 1:
                    text = f"extractelement {value.typed}, i32 {start}"
                parts.append(self.emit(text, value.type, half))
            value = self.combine(kind, parts[0], parts[1], dtype)
        return value

    # --- control ---

    @contextlib.contextmanager
    def loop(self, start: Any, stop: Any, step: int = 1, kind: str = "serial") -> Iterator[Any]:
        """A loop, whose index is a scalar."""
        del kind
        self._count += 1
        label, before = f"loop{self._count}", self._block
        index, after = f"%i{self._count}", f"%n{self._count}"
        self._lines += [
            f"  br label %{label}",
            f"{label}:",
            f"  {index} = phi i64 [{start.base}, %{before}], [{after}, %{label}.next]",
            f"  %c{label} = icmp slt i64 {index}, {stop.base}",
            f"  br i1 %c{label}, label %{label}.body, label %{label}.end",
            f"{label}.body:",
        ]
        self._block = f"{label}.body"
        yield Linear(index)
        self._lines += [
            f"  br label %{label}.next",
            f"{label}.next:",
            f"  {after} = add nsw i64 {index}, {step}",
            f"  br label %{label}",
            f"{label}.end:",
        ]
        self._block = f"{label}.end"

    @contextlib.contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """Statements that run under a condition."""
        self._count += 1
        label = f"when{self._count}"
        self._lines += [
            f"  br i1 {condition.text}, label %{label}, label %{label}.end",
            f"{label}:",
        ]
        self._block = label
        yield
        self._lines += [f"  br label %{label}.end", f"{label}.end:"]
        self._block = f"{label}.end"
