"""CWriter: kernels in languages like C. A dialect derives from it and spells what differs."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from ctypes import c_float
from typing import ClassVar, Final, NamedTuple

from burn.dtype import DType, Kind, int32, int64
from burn.kernels.c_functions import (
    CAST_HELPER,
    FLOAT_HELPERS,
    FLOAT_TEXTS,
    INTEGER_HELPERS,
    INTEGER_TEXTS,
    TEXTS,
)
from burn.kernels.functions import FUNCTIONS
from burn.kernels.indices import IndexTexts, is_constant
from burn.kernels.kernel import Kernel, Length
from burn.kernels.writer import LoopKind

__all__ = ["CWriter"]


class Array(NamedTuple):
    """A small array, in registers or shared by a work group.

    Attributes
    ----------
    name : str
        Its name.
    dtype : DType
        Dtype of the elements.
    is_packed : bool
        Whether the elements are as in memory.
    """

    name: str
    dtype: DType
    is_packed: bool = False


_NO_KERNEL: Final = Kernel((), 0, (), (), (), (), ())


class CWriter(IndexTexts):
    """A writer (`burn.kernels.writer.Writer`) of C, whose values are names of constants.

    Equal expressions of one block are one constant. What a schedule for work groups needs beside a
    `Writer`, see `burn.kernels.groups.GroupWriter`, is here too.

    Parameters
    ----------
    kernel : Kernel, optional
        The kernel that is written. Left out for expressions in kernels of another origin.
    wide : bool, optional
        Whether indices need 64 bits.

    Attributes
    ----------
    types : dict of str to str
        Type of the elements in memory for each name of a dtype: of bool a byte without sign, of
        float16 and bfloat16 an integer of 16 bits without sign.
    texts, float64_texts : dict of str to str
        Scalar functions of float32, and of float64, where they differ from `FLOAT_TEXTS`.
    helper_texts : dict of str to str
        Parameters and bodies of functions to use instead of those of C; ``{T}`` is their type.
    as_bits, as_float : str
        The bits of a float32 ``{0}`` as an unsigned integer, and back.
    nan : str
        A constant of float32 that is no number.
    from_half, to_half : str
        The float32 of the bits ``{0}`` of a float16, and back.
    preamble : str
        What a source begins with.
    function, entry, memory, restrict, aligned, shared : str
        Words before a function; before a kernel with groups of ``{0}`` lanes; for pointers to
        memory, and to memory that has no other name; for a struct that begins at a multiple of
        ``{0}`` bytes; and before an array that a group shares.
    fused : str
        The fused multiply-add of floats ``{0} * {1} + {2}``, where it is as fast as a product.
    independent : str
        What stands before a loop whose iterations are independent, though tensors may be the same
        memory.
    has_pointers_in_structs : bool
        Whether a struct that a kernel gets by value may have pointers.
    unrolled, fence : str
        What stands before a loop that is unrolled, and a statement for which all lanes wait.
    group, lane : str
        Number of the group, and of the lane in it.
    """

    types: ClassVar[dict[str, str]]
    texts: ClassVar[dict[str, str]] = {}
    float64_texts: ClassVar[dict[str, str]] = {}
    helper_texts: ClassVar[dict[str, str]] = {}
    as_bits: ClassVar[str]
    as_float: ClassVar[str]
    nan: ClassVar[str] = "0.0f / 0.0f"
    from_half: ClassVar[str]
    to_half: ClassVar[str]
    preamble: ClassVar[str] = ""
    function: ClassVar[str] = "static inline"
    entry: ClassVar[str]
    memory: ClassVar[str] = ""
    restrict: ClassVar[str] = "restrict"
    aligned: ClassVar[str] = "__attribute__((aligned({0})))"
    fused: ClassVar[str] = ""
    independent: ClassVar[str] = ""
    has_pointers_in_structs: ClassVar[bool] = True
    unrolled: ClassVar[str] = "#pragma unroll"
    quotient_text = "{0} / {1}"
    remainder_text = "{0} % {1}"
    minimum_text = "{0} < {1} ? {0} : {1}"
    group: ClassVar[str]
    lane: ClassVar[str]
    shared: ClassVar[str]
    fence: ClassVar[str]

    def __init__(self, kernel: Kernel = _NO_KERNEL, *, wide: bool = False) -> None:
        self.kernel = kernel
        self.index_dtype = int64 if wide else int32
        self.helpers: dict[str, str] = {}
        self._lines: list[str] = []
        self._declared: list[str] = []
        self._scopes: list[dict[tuple[str, str], str]] = [{}]
        self._count = 0

    # Text

    @property
    def functions(self) -> str:
        """What stands before the kernel."""
        return "\n".join([self.preamble, *self.helpers.values()])

    @property
    def body(self) -> str:
        """The statements so far."""
        return "\n".join([*[f"    {line}" for line in self._declared], *self._lines])

    def line(self, text: str) -> None:
        """Append a statement."""
        self._lines.append("    " * len(self._scopes) + text)

    def name(self, prefix: str) -> str:
        """A new name."""
        self._count += 1
        return f"{prefix}{self._count}"

    def constant(self, text: str, dtype: DType, *, pure: bool = True) -> str:
        """The name of a constant, which is a new one unless an equal pure one is in scope."""
        key = (text, dtype.name)
        if pure:
            for scope in self._scopes:
                if key in scope:
                    return scope[key]
        name = self.name("v")
        self.line(f"const {self.type_of(dtype)} {name} = {text};")
        if pure:
            self._scopes[-1][key] = name
        return name

    @contextlib.contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Context whose statements are a block."""
        self.line(f"{head} {{")
        self._scopes.append({})
        yield
        self._scopes.pop()
        self.line("}")

    def helper(self, name: str, dtype: DType, text: str) -> str:
        """The name of a function for a dtype, which is written before the kernel."""
        full = f"{name}_{dtype}"
        self.helpers[full] = f"{self.function} {self.type_of(dtype)} {full}{text}"
        return full

    # Types

    def type_of(self, dtype: DType) -> str:
        """The type of values of a dtype."""
        if dtype.is_bool:
            return "int"
        return self.types["float32" if dtype.is_float and dtype.itemsize == 2 else dtype.name]

    def _filled(self, text: str, dtype: DType) -> str:
        """A text with the types of a dtype."""
        unsigned = f"u{dtype.name.removeprefix('u')}" if dtype.is_integer else dtype.name
        words = {
            "T": self.type_of(dtype),
            "U": self.types.get(unsigned, ""),
            "W": self.types["uint64" if dtype.itemsize == 8 else "uint32"],
            "S": str(int(dtype.kind is Kind.INT)),
            "B": str(8 * dtype.itemsize),
        }
        for word, value in words.items():
            text = text.replace(f"{{{word}}}", value)
        return text

    # Values

    def literal(self, value: bool | float, dtype: DType) -> str:
        """A constant of C."""
        if dtype.is_bool:
            return str(int(value))
        kind = self.type_of(dtype)
        if dtype.is_integer:
            if value == -(1 << 63):
                return f"({kind})(-{(1 << 63) - 1} - 1)"
            return f"({kind}){int(value)}{'u' if value >= 1 << 63 else ''}"
        number = float(value) if dtype.itemsize == 8 else c_float(value).value
        if math.isnan(number):
            return f"({kind})({self.nan})"
        if not math.isfinite(number):
            return f"({kind})({'-' * (number < 0)}1.0f / 0.0f)"
        if dtype.itemsize == 8:
            return f"({number!r})"
        text = f"{number:.9g}"
        return f"({text}{'' if '.' in text or 'e' in text else '.0'}f)"

    def scalar(self, number: int, dtype: DType) -> str:
        """An argument of the kernel, converted."""
        return self.constant(f"({self.type_of(dtype)}){self.argument(number)}", dtype)

    def argument(self, number: int) -> str:
        """A number that each launch is given."""
        return f"s{number}"

    def apply(self, function: str, operands: tuple[str, ...], dtype: DType, of: DType) -> str:
        """A scalar function."""
        if function == "cast":
            return self._cast(operands[0], dtype, of)
        return self.constant(self._applied(function, of).format(*operands), dtype)

    def multiply_add(self, a: str, b: str, c: str, dtype: DType) -> str | None:
        """``a * b + c``, rounded once; None where `fused` does not say how."""
        if not self.fused:
            return None
        return self.constant(self._filled(self.fused, dtype).format(a, b, c), dtype)

    def _applied(self, function: str, of: DType) -> str:
        if of.is_bool and function == "bitwise_not":
            return "!{0}"
        texts, helpers = INTEGER_TEXTS, INTEGER_HELPERS
        if of.is_float:
            texts = {**FLOAT_TEXTS, **(self.float64_texts if of.itemsize == 8 else self.texts)}
            helpers = {**FLOAT_HELPERS, **self.helper_texts}
        text = texts.get(function) or TEXTS.get(function)
        if text is not None:
            return self._filled(text, of)
        name = function
        if function in helpers:
            name = self.helper(function, of, self._filled(helpers[function], of))
        return f"{name}({', '.join(['{0}', '{1}'][: FUNCTIONS[function].operands])})"

    def _cast(self, value: str, dtype: DType, of: DType) -> str:
        if dtype.is_bool:
            return self.constant(f"{value} != 0", dtype)
        if dtype.is_float and dtype.itemsize == 2:
            return self._rounded(self.constant(f"({self.type_of(dtype)}){value}", dtype), dtype)
        if of.is_float and dtype.is_integer:
            bits = 8 * dtype.itemsize - (dtype.kind is Kind.INT)
            low = -(1 << bits) if dtype.kind is Kind.INT else 0
            text = self._filled(CAST_HELPER, dtype).replace("{F}", self.type_of(of))
            for word, number in (("high", 1 << bits), ("low", low)):
                text = text.replace(f"{{{word}}}", self.literal(float(number), of))
            for word, number in (("largest", (1 << bits) - 1), ("smallest", low)):
                text = text.replace(f"{{{word}}}", self.literal(number, dtype))
            return self.constant(f"{self.helper(f'from_{of}', dtype, text)}({value})", dtype)
        return self.constant(f"({self.type_of(dtype)}){value}", dtype)

    def _rounded(self, value: str, dtype: DType) -> str:
        """A float32 rounded to 16 bits."""
        if dtype.name == "float16":
            return self.constant(self.from_half.format(self.to_half.format(value)), dtype)
        bits, unsigned = self.as_bits.format("x"), self.types["uint32"]
        text = f"""(float x) {{
    const {unsigned} bits = {bits};
    const {unsigned} even = bits + 0x7fffu + ((bits >> 16) & 1u);
    return {self.as_float.format("(x != x ? bits | 0x400000u : even) & 0xffff0000u")};
}}"""
        return self.constant(f"{self.helper('rounded', dtype, text)}({value})", dtype)

    # Indices

    def length(self, length: Length) -> str:
        """An argument of the kernel, which is converted before all else."""
        name, kind = f"n{length.number}", self.type_of(self.index_dtype)
        line = f"const {kind} {name} = ({kind}){self.argument(length.number)};"
        if line not in self._declared:
            self._declared.append(line)
        return name

    def index_of(self, value: str, dtype: DType) -> str:
        """A value as an index."""
        del dtype
        return self.constant(f"({self.type_of(self.index_dtype)}){value}", self.index_dtype)

    def value_of(self, index: str, dtype: DType) -> str:
        """An index as a value."""
        return self.constant(f"({self.type_of(dtype)}){index}", dtype)

    def less(self, a: str, b: str) -> str:
        """A comparison of two indices."""
        return f"{a} < {b}"

    def divide(self, a: str, b: str) -> str:
        """The quotient of two indices, which no language computes faster with signs."""
        return super().divide(*self._unsigned(a, b))

    def remainder(self, a: str, b: str) -> str:
        """The remainder of two indices."""
        return super().remainder(*self._unsigned(a, b))

    def _unsigned(self, *indices: str) -> Iterator[str]:
        kind = self.types[f"u{self.index_dtype}"]
        for index in indices:
            yield index if is_constant(index) else f"({kind}){index}"

    def index(self, text: str) -> str:
        """A constant of the type of indices."""
        return self.constant(text, self.index_dtype)

    # Memory

    def load(self, input: int, index: str, dtype: DType, guard: str | None = None) -> str:
        """An element of the input ``p0``, ``p1``, ...."""
        text = self._element(f"p{input}[{index}]", dtype)
        if guard is not None:
            text = f"{guard} ? {text} : ({self.type_of(dtype)})0"
        return self.constant(text, dtype, pure=False)

    def store(self, output: int, index: str, value: str, dtype: DType) -> None:
        """Write an element of the output ``q0``, ``q1``, ...."""
        self.line(f"q{output}[{index}] = {self._stored(value, dtype)};")

    def _element(self, text: str, dtype: DType) -> str:
        """The value of an element in memory."""
        if dtype.name == "float16":
            return self.from_half.format(text)
        if dtype.name == "bfloat16":
            return self.as_float.format(f"({self.types['uint32']}){text} << 16")
        return text

    def _stored(self, value: str, dtype: DType) -> str:
        """A value as an element in memory."""
        if dtype.name == "float16":
            return self.to_half.format(value)
        if dtype.name == "bfloat16":
            bits = self.as_bits.format(self._rounded(value, dtype))
            return f"({self.types['uint16']})({bits} >> 16)"
        return value

    def variable(self, initial: str, dtype: DType) -> tuple[str, DType]:
        """A variable of C."""
        name = self.name("x")
        self.line(f"{self.type_of(dtype)} {name} = {initial};")
        return name, dtype

    def get(self, variable: tuple[str, DType]) -> str:
        """The value of a variable as a constant."""
        return self.constant(*variable, pure=False)

    def set(self, variable: tuple[str, DType], value: str) -> None:
        """Assign to a variable."""
        self.line(f"{variable[0]} = {value};")

    def array(self, count: int, dtype: DType) -> Array:
        """An array in registers."""
        name = self.name("a")
        self.line(f"{self.type_of(dtype)} {name}[{count}];")
        return Array(name, dtype)

    def element(self, array: Array, index: str) -> str:
        """An element of an array as a constant."""
        text = f"{array.name}[{index}]"
        if array.is_packed:
            text = self._element(text, array.dtype)
        return self.constant(text, array.dtype, pure=False)

    def set_element(self, array: Array, index: str, value: str) -> None:
        """Assign to an element of an array."""
        if array.is_packed:
            value = self._stored(value, array.dtype)
        self.line(f"{array.name}[{index}] = {value};")

    # Control

    @contextlib.contextmanager
    def loop(
        self, start: str, stop: str, step: int = 1, kind: LoopKind = "serial"
    ) -> Iterator[str]:
        """A loop, which is left to the compiler to make vectors of."""
        name = self.name("i")
        if kind == "vector" and self.kernel.overwrites and self.independent:
            self.line(self.independent)
        if kind == "unrolled":
            self.line(self.unrolled)
        declared = f"{self.type_of(self.index_dtype)} {name} = {start}"
        with self.block(f"for ({declared}; {name} < {stop}; {name} += {step})"):
            yield name

    def when(self, condition: str) -> contextlib.AbstractContextManager[None]:
        """A conditional block."""
        return self.block(f"if ({condition})")

    # Work groups

    def group_index(self) -> str:
        """The number of the group."""
        return self.index(self.group)

    def lane_index(self) -> str:
        """The number of the lane in its group."""
        return self.index(self.lane)

    def shared_array(self, count: int, dtype: DType) -> Array:
        """An array that the lanes of a group share."""
        array = Array(self.name("t"), dtype)
        self._declared.append(f"{self.shared} {self.type_of(dtype)} {array.name}[{count}];")
        return array

    def barrier(self) -> None:
        """Wait for all lanes of the group."""
        self.line(self.fence)

    def exchanged(self, value: str, distance: int, dtype: DType) -> str | None:
        """The value of the lane whose number differs in one bit; None where there is no such step.

        A dialect whose devices exchange registers among 32 lanes has it.
        """

    def vector(self, count: int, dtype: DType) -> Array:
        """An array that `store_vector` takes."""
        name = self.name("w")
        self.line(f"{self._vector_type(count, dtype)} {name};")
        return Array(f"{name}.values", dtype, is_packed=True)

    def load_vector(self, input: int, index: str, count: int, dtype: DType) -> Array:
        """Aligned neighbours of an input."""
        kind, name = self._vector_type(count, dtype), self.name("w")
        self.line(f"const {kind} {name} = *({self.memory} const {kind}*)(p{input} + {index});")
        return Array(f"{name}.values", dtype, is_packed=True)

    def store_vector(self, output: int, index: str, array: Array, count: int) -> None:
        """Write aligned neighbours of an output."""
        kind, name = self._vector_type(count, array.dtype), array.name.removesuffix(".values")
        self.line(f"*({self.memory} {kind}*)(q{output} + {index}) = {name};")

    def _vector_type(self, count: int, dtype: DType) -> str:
        name = f"{dtype}_x{count}"
        aligned = self.aligned.format(count * dtype.itemsize)
        self.helpers[name] = (
            f"typedef struct {aligned} {{ {self.types[dtype.name]} values[{count}]; }} {name};"
        )
        return name

    # The whole

    def text(self, entry: str, lanes: int) -> str:
        """The source of the kernel.

        Parameters
        ----------
        entry : str
            Its name.
        lanes : int
            Number of lanes in a group.
        """
        over = self.kernel.overwrites
        inputs = [
            f"{self.memory} const {self.types[dtype.name]}* "
            f"{'' if number in {number for _, number in over} else self.restrict} p{number}"
            for number, dtype in enumerate(self.kernel.inputs)
        ]
        outputs = [
            f"{self.memory} {self.types[dtype.name]}* "
            f"{'' if number in {number for number, _ in over} else self.restrict} q{number}"
            for number, (dtype, _) in enumerate(self.kernel.outputs)
        ]
        head = f"{self.entry.format(lanes)} void {entry}"
        parameters = ", ".join([*inputs, *outputs, *self.scalar_parameters()])
        return "\n".join([self.functions, f"{head}({parameters}) {{", self.body, "}\n"])

    def scalar_parameters(self) -> list[str]:
        """Parameters ``s0``, ``s1``, ... for the numbers that a launch is given."""
        kinds = {int: self.types["int64"], float: "double"}
        return [f"{kinds[kind]} s{number}" for number, kind in enumerate(self.kernel.scalars)]
