"""Element types, what a device can do with them, and their promotion.

The promotion rules are those of the array API standard (2025.12, "Type Promotion Rules"), the
same on every backend, with the extensions that `promote` names.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, ClassVar, Final

from burn.errors import DTypeError
from burn.public_calls import shown_as_text, shown_value

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

__all__ = [
    "DType",
    "DTypeUsage",
    "Kind",
    "bfloat16",
    "bool_",
    "complex64",
    "complex128",
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "promote",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]


def __dir__() -> list[str]:
    return __all__


class Kind(str):
    """A set of kinds of element types, as the letters that NumPy gives them.

    It declares the kinds that an operand of an op accepts. A DType has one letter: ``"b"``,
    ``"i"``, ``"u"``, ``"f"`` or ``"c"``, so that code for NumPy's dtypes can read it.

    Examples
    --------
    >>> Kind.FLOAT in Kind.REAL
    True
    >>> Kind.REAL & Kind("fc")
    Kind('f')
    """

    __slots__ = ()

    BOOL: ClassVar[Kind]
    INT: ClassVar[Kind]
    UINT: ClassVar[Kind]
    FLOAT: ClassVar[Kind]
    COMPLEX: ClassVar[Kind]
    INTEGER: ClassVar[Kind]
    NUMERIC: ClassVar[Kind]
    """Numbers that have an order."""
    NUMBER: ClassVar[Kind]
    """Numbers, complex ones among them."""
    INTEGRAL: ClassVar[Kind]
    INEXACT: ClassVar[Kind]
    REAL: ClassVar[Kind]
    ANY: ClassVar[Kind]
    """Every kind of element: all but quantized tensors, which are no elements of a backend."""
    QUANTIZED: ClassVar[Kind]

    def __new__(cls, letters: str = "") -> Kind:  # noqa: PYI034 — no class derives from it
        """The kinds with these letters, in the one order that makes equal sets equal strings."""
        return str.__new__(cls, "".join([letter for letter in "biufcq" if letter in str(letters)]))

    def __repr__(self) -> str:
        return f"Kind({str(self)!r})"

    def __contains__(self, other: object) -> bool:
        return all(str.__contains__(self, letter) for letter in str(other))

    def __and__(self, other: str) -> Kind:
        return Kind("".join([letter for letter in str(self) if letter in str(other)]))

    def __or__(self, other: str) -> Kind:
        return Kind(str(self) + str(other))

    def describe(self) -> str:
        """Name the kinds for a message, such as ``"int or uint"``."""
        return " or ".join([_KIND_NAMES[letter] for letter in str(self)])


_KIND_NAMES: Final = {
    "b": "bool",
    "i": "int",
    "u": "uint",
    "f": "float",
    "c": "complex",
    "q": "quantized",
}

Kind.BOOL = Kind("b")
Kind.INT = Kind("i")
Kind.UINT = Kind("u")
Kind.FLOAT = Kind("f")
Kind.COMPLEX = Kind("c")
Kind.INTEGER = Kind("iu")
Kind.NUMERIC = Kind("iuf")
Kind.NUMBER = Kind("iufc")
Kind.INTEGRAL = Kind("biu")
Kind.INEXACT = Kind("fc")
Kind.REAL = Kind("biuf")
Kind.ANY = Kind("biufc")
Kind.QUANTIZED = Kind("q")


@shown_as_text
class DTypeUsage(enum.Flag):
    """What a device can do with a dtype."""

    STORAGE = enum.auto()
    """Creation, cast, layout and transfer work."""

    ARITHMETIC = enum.auto()
    """Every op gives results within tolerance, in any internal precision."""

    ACCELERATED = enum.auto()
    """Faster than float32 on special units."""

    NONE = 0
    GENERAL = STORAGE | ARITHMETIC


@shown_as_text
class DType:
    """An element type. There is one object per type, so ``is`` compares.

    It equals its name and hashes like it, so ``x.dtype == "float32"`` and
    ``x.dtype in {"float16", "float32"}`` hold. It also equals NumPy's dtypes and scalar types that
    mean the same (which, as in NumPy, hash differently), and NumPy takes it for a dtype. It is no
    string: ``str(dtype)`` is its name.

    Attributes
    ----------
    name : str
        The name in the array API standard, such as ``"float32"``.
    kind : Kind
        Its kind, as NumPy's letter: ``"b"``, ``"i"``, ``"u"``, ``"f"``, ``"c"``.
    itemsize : int
        Bytes per element.

    Examples
    --------
    >>> import burn
    >>> burn.float32.itemsize
    4
    >>> burn.DType.of("int8") is burn.int8
    True
    >>> burn.int8 == "int8"
    True
    """

    __slots__ = (
        "_hash",
        "is_bool",
        "is_complex",
        "is_float",
        "is_integer",
        "itemsize",
        "kind",
        "name",
        "numpy",
    )

    numpy: np.dtype[Any]
    """The NumPy dtype with this layout (bfloat16 comes from ml_dtypes)."""

    _members: ClassVar[dict[str, DType]] = {}
    _native: ClassVar[dict[object, DType]] = {}
    """By NumPy dtype: NumPy takes 10 µs to compute the name of one."""

    of_scheme: ClassVar[Callable[[str], DType] | None] = None
    """From the text of a scheme to the dtype of its tensors; `burn.quant_scheme` sets it."""

    def __init__(self, name: str, kind: Kind, itemsize: int) -> None:
        self.name = name
        self._hash = hash(name)
        self.kind = kind
        self.itemsize = itemsize
        self.is_float = kind is Kind.FLOAT
        self.is_integer = kind in Kind.INTEGER
        self.is_bool = kind is Kind.BOOL
        self.is_complex = kind is Kind.COMPLEX
        self._members[name] = self

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, str):
            return self.name == other
        if isinstance(other, DType):
            return False
        import numpy as np

        if not isinstance(other, (type, np.dtype)):
            return False
        try:
            return DType.of(other) is self
        except DTypeError:
            return False

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"burn.{self.name}"

    def __str__(self) -> str:
        return self.name

    def __format__(self, spec: str) -> str:
        return format(self.name, spec)

    def __reduce__(self) -> tuple[object, ...]:
        return DType.of, (self.name,)

    @classmethod
    def members(cls) -> tuple[DType, ...]:
        """All dtypes, in a fixed order."""
        return tuple(cls._members.values())

    @classmethod
    def of(cls, dtype: object) -> DType:
        """The DType of a name, or of a dtype of NumPy.

        Parameters
        ----------
        dtype : DType, str or numpy dtype
            A DType, its name (of quantized tensors the text of the scheme), or a NumPy (or
            ml_dtypes) dtype or scalar type.

        Raises
        ------
        DTypeError
            If burn has no such type.
        """
        if isinstance(dtype, DType):
            return dtype
        try:
            return cls._native[dtype]
        except (KeyError, TypeError):  # not cached yet, or not hashable
            pass
        name = dtype if isinstance(dtype, str) else _numpy_name(dtype)
        found = cls._members.get(name)
        if found is None:
            if isinstance(dtype, str) and "(" in name and cls.of_scheme is not None:
                return cls.of_scheme(name)
            shown = shown_value(dtype) if isinstance(dtype, str) else name
            is_plain = not shown.startswith("an object")
            raise DTypeError(
                f"unknown dtype {shown}" if is_plain else f"{shown} is no dtype",
                hint=f"burn has {', '.join(cls._members)}",
            )
        if dtype.__class__.__module__.startswith("numpy"):
            import numpy as np

            if isinstance(dtype, np.dtype):  # a NumPy scalar as a key would equal other numbers
                cls._native[dtype] = found
        return found

    def __getattr__(self, name: str) -> Any:
        # The slot of `numpy` is filled on first access, so that dtypes alone do not import NumPy.
        if name != "numpy":
            raise AttributeError(f"a DType has no attribute {name!r}")
        import numpy as np

        if self.name == "bfloat16":
            import ml_dtypes

            self.numpy = np.dtype(ml_dtypes.bfloat16)
        else:
            self.numpy = np.dtype(self.name)
        return self.numpy

    @property
    def dtype(self) -> np.dtype[Any]:
        """The attribute `numpy`: where NumPy finds what an object means as a dtype."""
        return self.numpy

    @property
    def __numpy_dtype__(self) -> np.dtype[Any]:  # where NumPy looks first, from 2.4 on
        return self.numpy

    @property
    def bits(self) -> int:
        """Bits per element (8 for bool, which is stored in a byte)."""
        return 8 * self.itemsize

    @property
    def component(self) -> DType:
        """Dtype of the real and the imaginary part of a complex dtype; any other dtype itself."""
        if not self.is_complex:
            return self
        return float64 if self.itemsize == 16 else float32

    @property
    def integer_range(self) -> tuple[int, int]:
        """Smallest and largest value of an integer dtype."""
        if self.kind is Kind.UINT:
            return 0, (1 << self.bits) - 1
        return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1


def _numpy_name(dtype: object) -> str:
    import numpy as np

    if dtype is None:  # NumPy's default, which is not that of a device
        return "None"
    try:
        return str(np.dtype(dtype).name)  # type: ignore[call-overload]  # any object may come
    except (TypeError, ValueError):
        return shown_value(dtype)


bool_: Final = DType("bool", Kind.BOOL, 1)
int8: Final = DType("int8", Kind.INT, 1)
int16: Final = DType("int16", Kind.INT, 2)
int32: Final = DType("int32", Kind.INT, 4)
int64: Final = DType("int64", Kind.INT, 8)
uint8: Final = DType("uint8", Kind.UINT, 1)
uint16: Final = DType("uint16", Kind.UINT, 2)
uint32: Final = DType("uint32", Kind.UINT, 4)
uint64: Final = DType("uint64", Kind.UINT, 8)
float16: Final = DType("float16", Kind.FLOAT, 2)
bfloat16: Final = DType("bfloat16", Kind.FLOAT, 2)
float32: Final = DType("float32", Kind.FLOAT, 4)
float64: Final = DType("float64", Kind.FLOAT, 8)
complex64: Final = DType("complex64", Kind.COMPLEX, 8)
complex128: Final = DType("complex128", Kind.COMPLEX, 16)

_SIGNED: Final = {1: int8, 2: int16, 4: int32, 8: int64}


def promote(first: DType, second: DType) -> DType:
    """The common dtype of two operands.

    The standard's rules, and beyond it: bool with anything gives the other; an integer with a
    float gives the float; float16 with bfloat16 gives float32.

    Raises
    ------
    DTypeError
        For uint64 with a signed integer, which no integer dtype holds.

    Examples
    --------
    >>> promote(int8, uint8)
    burn.int16
    >>> promote(int64, float16)
    burn.float16
    """
    if first is second:
        return first
    if Kind.QUANTIZED in (first.kind, second.kind):
        raise DTypeError(
            f"{first} and {second} have no common dtype",
            hint="Quantized tensors have a dtype for each scheme: call .dequantize() first",
        )
    low, high = sorted((first, second), key=lambda dtype: _RANK[dtype.kind])
    if low.is_bool or (low.is_integer and not high.is_integer):
        return high
    if low.is_integer:
        return _promote_integers(low, high)
    if low.is_float and high.is_float:
        if low.itemsize == high.itemsize:  # float16 and bfloat16: neither holds the other
            return float32
        return max(low, high, key=lambda dtype: dtype.itemsize)
    double = float64 in (low, high) or complex128 in (low, high)
    return complex128 if double else complex64


_RANK: Final = {Kind.BOOL: 0, Kind.INT: 1, Kind.UINT: 2, Kind.FLOAT: 3, Kind.COMPLEX: 4}


def _promote_integers(low: DType, high: DType) -> DType:
    if low.kind is high.kind:
        return max(low, high, key=lambda dtype: dtype.itemsize)
    if high is uint64:
        raise DTypeError(
            f"{low} and uint64 have no common integer dtype",
            hint="Cast one of them first, for example with .astype(burn.int64)",
        )
    return _SIGNED[max(low.itemsize, 2 * high.itemsize)]
