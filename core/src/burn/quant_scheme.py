"""QuantScheme: how a tensor is stored in few bits; QDType: the dtype of such a tensor.

A quantized tensor is codes and scales: an element is ``code * scale``, or ``code * scale * global``
in a scheme of two levels. Values, stores and levels are those of the Rust framework burn.
"""

from __future__ import annotations

import enum
import functools
import math
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from burn.dtype import DType, Kind, bfloat16, float16, float32, int8, uint8, uint32
from burn.errors import ArgumentError, DTypeError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from burn.aliases import Shape

__all__ = [
    "Propagation",
    "QDType",
    "QuantConfig",
    "QuantLevel",
    "QuantMode",
    "QuantScheme",
    "QuantStore",
    "QuantValue",
    "ScaleDType",
]


def __dir__() -> list[str]:
    return __all__


MAX_BLOCK_AXES: Final = 5
"""The most axes that a block has."""


class QuantValue(enum.Enum):
    """The numbers that a code stands for, before its scale: ``F`` all of the bits, ``S`` symmetric.

    E4M3, E5M2 and E2M1 are floats by their bits of exponent and mantissa (OCP Microscaling Formats
    1.0, section 5.3); E4M3 is the form without infinities.
    """

    Q8F = "q8f"
    Q8S = "q8s"
    Q4F = "q4f"
    Q4S = "q4s"
    Q2F = "q2f"
    Q2S = "q2s"
    E4M3 = "e4m3"
    E5M2 = "e5m2"
    E2M1 = "e2m1"

    @property
    def bits(self) -> int:
        """Bits of a code."""
        return _BITS[self.value[:2] if self.value[0] == "q" else self.value]

    @property
    def range(self) -> tuple[float, float]:
        """The least and the greatest number; integers of integer values."""
        greatest = _GREATEST.get(self.value)
        if greatest is not None:
            return -greatest, greatest
        half = 1 << (self.bits - 1)
        return (-half if self.value[-1] == "f" else 1 - half), half - 1

    @property
    def is_float(self) -> bool:
        """Whether codes are bit patterns of floats; else they are integers."""
        return self.value[0] == "e"


_BITS: Final = {"q8": 8, "q4": 4, "q2": 2, "e4m3": 8, "e5m2": 8, "e2m1": 4}
_GREATEST: Final = {"e4m3": 448.0, "e5m2": 57344.0, "e2m1": 6.0}


class ScaleDType(enum.Enum):
    """The dtype of scales. A scale is rounded up to it, so that no value leaves the range.

    UE8M0 is a power of two by its exponent; UE4M3 is E4M3 without negative numbers.
    """

    F32 = "float32"
    F16 = "float16"
    BF16 = "bfloat16"
    UE8M0 = "ue8m0"
    UE4M3 = "ue4m3"

    @property
    def storage(self) -> DType:
        """The dtype in memory: uint8, bit patterns, for the two of 8 bits."""
        return _SCALE_STORAGE.get(self, uint8)


_SCALE_STORAGE: Final = {
    ScaleDType.F32: float32,
    ScaleDType.F16: float16,
    ScaleDType.BF16: bfloat16,
}


class QuantMode(enum.Enum):
    """How zero is represented: by the code 0."""

    SYMMETRIC = "symmetric"


@dataclass(frozen=True)
class QuantStore:
    """How codes lie in memory.

    Attributes
    ----------
    kind : str
        ``"native"``: an element a code, int8 or, of floats, uint8. ``"packed_u32"``: as many codes
        as fit in a uint32 along an axis, the first in the lowest bits. ``"packed_native"``: the
        same in a uint8; a code of 8 bits is stored as natively.
    axis : int
        The axis along which codes are packed, counted from the end: negative.

    Examples
    --------
    >>> QuantStore.packed_u32()
    QuantStore(kind='packed_u32', axis=-1)
    """

    kind: str = "native"
    axis: int = -1

    NATIVE: ClassVar[QuantStore]

    def __post_init__(self) -> None:
        if self.kind not in {"native", "packed_u32", "packed_native"}:
            raise ArgumentError(
                f"there is no store {self.kind!r}",
                hint='One of "native", "packed_u32" and "packed_native"',
                operation="QuantStore",
            )
        if self.axis.__class__ is not int or self.axis >= 0:
            raise ArgumentError(
                f"the packed axis is {self.axis!r}",
                hint="It is counted from the end: -1 is the last axis",
                operation="QuantStore",
            )
        if self.kind == "native":
            vars(self)["axis"] = -1

    @classmethod
    def packed_u32(cls, axis: int = -1) -> QuantStore:
        """Codes packed into uint32 along an axis."""
        return cls("packed_u32", axis)

    @classmethod
    def packed_native(cls, axis: int = -1) -> QuantStore:
        """Codes packed into bytes along an axis."""
        return cls("packed_native", axis)


QuantStore.NATIVE = QuantStore()


@dataclass(frozen=True)
class QuantLevel:
    """What shares a scale.

    Attributes
    ----------
    block : tuple of int
        Lengths of a block, right-aligned with the shape; -1 is a whole axis, and axes to the left
        have length 1. Empty if the whole tensor shares one scale.
    is_global : bool
        Whether the scales of the blocks have a common float32 factor, the global scale.

    Examples
    --------
    >>> QuantLevel.per_block(1, 32).block
    (1, 32)
    """

    block: tuple[int, ...] = ()
    is_global: bool = False

    TENSOR: ClassVar[QuantLevel]

    def __post_init__(self) -> None:
        lengths = self.block
        if not isinstance(lengths, tuple) or len(lengths) > MAX_BLOCK_AXES:
            raise ArgumentError(
                f"the lengths of a block are {lengths!r}",
                hint=f"A tuple of 1 to {MAX_BLOCK_AXES} integers",
                operation="QuantLevel",
            )
        if any(one.__class__ is not int or (one < 1 and one != -1) for one in lengths):
            raise ArgumentError(
                f"a block of {lengths}",
                hint="Lengths are positive, or -1 for a whole axis",
                operation="QuantLevel",
            )
        if self.is_global and not lengths:
            raise ArgumentError(
                "two levels without a block",
                hint="QuantLevel.two_level(1, 32) has blocks under a global scale",
                operation="QuantLevel",
            )

    def lengths(self, shape: Shape) -> tuple[int, ...]:
        """Length of a block along each axis of a shape; the shape itself if there is one scale."""
        if not self.block:
            return shape
        lengths = (1,) * (len(shape) - len(self.block)) + self.block
        return tuple(
            [max(whole, 1) if one == -1 else one for one, whole in zip(lengths, shape, strict=True)]
        )

    @classmethod
    def per_block(cls, *lengths: int) -> QuantLevel:
        """A scale for each block."""
        return cls(lengths)

    @classmethod
    def two_level(cls, *lengths: int) -> QuantLevel:
        """A scale for each block, and a global one."""
        return cls(lengths, is_global=True)


QuantLevel.TENSOR = QuantLevel()


@dataclass(frozen=True)
class QuantScheme:
    """How a tensor is stored in few bits.

    Attributes
    ----------
    value : QuantValue
        The numbers that codes stand for.
    store : QuantStore
        How codes lie in memory.
    level : QuantLevel
        What shares a scale.
    scale_dtype : ScaleDType
        The dtype of scales. A global scale is float32.
    mode : QuantMode
        How zero is represented.

    Examples
    --------
    >>> scheme = QuantScheme(QuantValue.Q4F).per_block((1, 32), ScaleDType.F16)
    >>> str(scheme)
    'q4f(block=1x32, scale=float16, store=packed_u32@-1)'
    >>> scheme.values_shape((8, 64)), scheme.scales_shape((8, 64))
    ((8, 8), (8, 2))
    """

    value: QuantValue = QuantValue.Q8F
    store: QuantStore = field(default_factory=QuantStore.packed_u32)
    level: QuantLevel = QuantLevel.TENSOR
    scale_dtype: ScaleDType = ScaleDType.F32
    mode: QuantMode = QuantMode.SYMMETRIC

    def __post_init__(self) -> None:
        for name, kind in _FIELDS.items():
            if not isinstance(getattr(self, name), kind):
                raise ArgumentError(
                    f"{name} must be a {kind.__name__}, not {getattr(self, name)!r}",
                    operation="QuantScheme",
                )
        if self.level.is_global and self.scale_dtype in {
            ScaleDType.F32,
            ScaleDType.BF16,
            ScaleDType.UE8M0,
        }:
            raise ArgumentError(
                f"two levels with block scales of {self.scale_dtype.value}",
                hint="Its numbers reach beyond those of float16 and need no global scale: use "
                "ScaleDType.UE4M3 or ScaleDType.F16, or one level",
                operation="QuantScheme",
            )

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"QuantScheme.parse({self.text!r})"

    def __hash__(self) -> int:  # of a string, which keeps it: plans are looked up by schemes
        return hash(self.text)

    @functools.cached_property
    def text(self) -> str:
        """The scheme as a string, which `parse` reads."""
        parts = []
        if self.level.block:
            parts.append("block=" + "x".join(map(str, self.level.block)))
        if self.level.is_global:
            parts.append("global=float32")
        parts.append(f"scale={self.scale_dtype.value}")
        store = self.store
        parts.append(
            "store=native" if store.kind == "native" else f"store={store.kind}@{store.axis}"
        )
        return f"{self.value.value}({', '.join(parts)})"

    @classmethod
    def parse(cls, text: str) -> QuantScheme:
        """The scheme of a string.

        Raises
        ------
        DTypeError
            If it is none.
        """
        match = _TEXT.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise DTypeError(f"{text!r} is no quantization scheme", hint=f"One is '{cls()}'")
        block = tuple(map(int, match["block"].split("x"))) if match["block"] else ()
        kind, _, axis = match["store"].partition("@")
        try:
            found = cls(
                QuantValue(match["value"]),
                QuantStore(kind, int(axis or -1)),
                QuantLevel(block, is_global=bool(match["global"])),
                ScaleDType(match["scale"]),
            )
        except ArgumentError as error:
            raise DTypeError(f"{text!r}: {error.rule}", hint=error.hint) from None
        except ValueError as error:
            raise DTypeError(f"{text!r}: {error}", hint=f"One is '{cls()}'") from None
        if found.text != text:
            raise DTypeError(f"{text!r} is not how a scheme is written", hint=f"It is '{found}'")
        return found

    def with_value(self, value: QuantValue) -> QuantScheme:
        """The scheme with another value."""
        return replace(self, value=value)

    def with_store(self, store: QuantStore) -> QuantScheme:
        """The scheme with another store."""
        return replace(self, store=store)

    def with_level(self, level: QuantLevel) -> QuantScheme:
        """The scheme with another level."""
        return replace(self, level=level)

    def with_scale_dtype(self, scale_dtype: ScaleDType) -> QuantScheme:
        """The scheme with another dtype of scales."""
        return replace(self, scale_dtype=scale_dtype)

    def with_mode(self, mode: QuantMode) -> QuantScheme:
        """The scheme with another mode."""
        return replace(self, mode=mode)

    def per_block(self, block: Sequence[int], scale_dtype: ScaleDType) -> QuantScheme:
        """The scheme with a scale for each block; a global scale remains."""
        lengths: Any = tuple(block) if isinstance(block, (tuple, list)) else block
        level = QuantLevel(lengths, is_global=self.level.is_global)
        return replace(self, level=level, scale_dtype=scale_dtype)

    def per_tensor(self, scale_dtype: ScaleDType = ScaleDType.F32) -> QuantScheme:
        """The scheme with a scale of the tensor: the only one, or beside those of its blocks.

        Raises
        ------
        ArgumentError
            If the scheme has blocks and the scale is not float32.
        """
        if not self.level.block:
            return replace(self, scale_dtype=scale_dtype)
        if scale_dtype is not ScaleDType.F32:
            raise ArgumentError(
                f"the scale of the tensor beside those of blocks is {scale_dtype.value}",
                hint="It is float32. For one scale alone: with_level(QuantLevel.TENSOR)",
                operation="QuantScheme.per_tensor",
            )
        return replace(self, level=QuantLevel(self.level.block, is_global=True))

    @functools.cached_property
    def storage_dtype(self) -> DType:
        """The dtype of the stored codes."""
        if self.store.kind == "packed_u32":
            return uint32
        packed = self.store.kind == "packed_native" and self.value.bits < 8
        return uint8 if packed or self.value.is_float else int8

    @functools.cached_property
    def per_word(self) -> int:
        """Number of codes in a stored element."""
        if self.store.kind == "native":
            return 1
        return 8 * self.storage_dtype.itemsize // self.value.bits

    @property
    def part_dtypes(self) -> list[DType]:
        """The dtypes of the stored codes, scales and, if there is one, global scale."""
        dtypes = [self.storage_dtype, self.scale_dtype.storage]
        return [*dtypes, float32] if self.level.is_global else dtypes

    @property
    def native(self) -> QuantScheme:
        """The scheme with an element for each code."""
        return self if self.store.kind == "native" else replace(self, store=QuantStore.NATIVE)

    def fitting(self, shape: Shape) -> QuantScheme:
        """The scheme, with a native store if the packed axis of the shape is not divisible.

        A tensor without axes has one scale: float32, if the scheme has two levels.
        """
        if not shape and self.level.block:
            scale = ScaleDType.F32 if self.level.is_global else self.scale_dtype
            store = self.store if self.per_word == 1 else QuantStore.NATIVE
            return replace(self, store=store, level=QuantLevel.TENSOR, scale_dtype=scale)
        if self.per_word == 1 or (
            len(shape) >= -self.store.axis and not shape[self.store.axis] % self.per_word
        ):
            return self
        return self.native

    def blocks(self, shape: Shape) -> tuple[int, ...]:
        """Length of a block along each axis; the shape itself if the tensor shares a scale."""
        return self.level.lengths(shape)

    def check(self, shape: Shape) -> None:
        """Check that a tensor of a shape can be stored.

        Raises
        ------
        ShapeError
            If blocks or words do not divide it.
        """
        block = self.level.block
        if len(block) > len(shape):
            raise ShapeError(
                f"a tensor of shape {shape} in blocks of {len(block)} axes",
                hint="A block has at most as many axes as the tensor",
            )
        for length, one in zip(reversed(shape), reversed(block), strict=False):
            if one != -1 and length % one:
                raise ShapeError(
                    f"blocks of {block} do not divide a tensor of shape {shape}",
                    hint="Choose lengths that divide the last axes, or pad the tensor",
                )
        if self.per_word > 1 and (
            len(shape) < -self.store.axis or shape[self.store.axis] % self.per_word
        ):
            raise ShapeError(
                f"axis {self.store.axis} of shape {shape} is packed, {self.per_word} codes a "
                f"{self.storage_dtype}, and is not divisible by that",
                hint="Pad the tensor, or use with_store(QuantStore.NATIVE)",
            )

    def values_shape(self, shape: Shape) -> Shape:
        """Shape of the stored codes of a tensor of a shape."""
        if self.per_word == 1:
            return shape
        stored = list(shape)
        stored[self.store.axis] //= self.per_word
        return tuple(stored)

    def logical_shape(self, values_shape: Shape) -> Shape:
        """Shape of the tensor whose stored codes have a shape."""
        if self.per_word == 1:
            return values_shape
        if len(values_shape) < -self.store.axis:
            raise ShapeError(f"codes of shape {values_shape} have no axis {self.store.axis}")
        logical = list(values_shape)
        logical[self.store.axis] *= self.per_word
        return tuple(logical)

    def scales_shape(self, shape: Shape) -> Shape:
        """Shape of the scales of a tensor of a shape: (1,) if it shares one."""
        if not self.level.block:
            return (1,)
        return tuple([length // one for length, one in zip(shape, self.blocks(shape), strict=True)])

    def nbytes(self, shape: Shape) -> int:
        """Bytes of the codes and scales of a tensor of a shape."""
        codes = math.prod(self.values_shape(shape)) * self.storage_dtype.itemsize
        scales = math.prod(self.scales_shape(shape)) * self.scale_dtype.storage.itemsize
        return codes + scales + (float32.itemsize if self.level.is_global else 0)


_FIELDS: Final[dict[str, Any]] = {
    "value": QuantValue,
    "store": QuantStore,
    "level": QuantLevel,
    "scale_dtype": ScaleDType,
    "mode": QuantMode,
}

_TEXT: Final = re.compile(
    r"(?P<value>\w+)\((?:block=(?P<block>-?\d+(?:x-?\d+)*), )?(?P<global>global=float32, )?"
    r"scale=(?P<scale>\w+), store=(?P<store>\w+(?:@-\d+)?)\)"
)


class Propagation(enum.Enum):
    """What arithmetic on quantized tensors gives."""

    INHIBIT = "inhibit"
    """Floats."""

    PROPAGATE = "propagate"
    """Tensors quantized with the scheme of the first quantized operand.

    Floats remain what autodiff tracks, since quantizing has no gradient, and results of a shape
    that the blocks of the scheme do not divide.
    """


@dataclass(frozen=True)
class QuantConfig:
    """How a device quantizes.

    Attributes
    ----------
    scheme : QuantScheme
        The scheme where the user names none: 8 bits, a scale for the tensor, an element for each
        code, which every shape allows.
    propagation : Propagation
        What arithmetic on quantized tensors gives.
    """

    scheme: QuantScheme = field(default_factory=lambda: QuantScheme(store=QuantStore.NATIVE))
    propagation: Propagation = Propagation.INHIBIT

    def __post_init__(self) -> None:
        for name, kind in {"scheme": QuantScheme, "propagation": Propagation}.items():
            if not isinstance(getattr(self, name), kind):
                raise ArgumentError(
                    f"{name} must be a {kind.__name__}, not {getattr(self, name)!r}",
                    operation="QuantConfig",
                )


class QDType(DType):
    """The dtype of quantized tensors of one scheme. There is one object per scheme.

    It is of a kind of its own: no backend has it, it takes no part in promotion, and it is none of
    `DType.members`. Its name is the text of the scheme.

    Attributes
    ----------
    scheme : QuantScheme
        How the tensors are stored.

    Examples
    --------
    >>> dtype = QDType(QuantScheme())
    >>> dtype
    burn.q8f(scale=float32, store=packed_u32@-1)
    >>> dtype is QDType(QuantScheme())
    True
    """

    __slots__ = ("scheme",)

    scheme: QuantScheme

    _interned: ClassVar[dict[QuantScheme, QDType]] = {}

    def __new__(cls, scheme: QuantScheme) -> QDType:  # noqa: PYI034 — no class derives from it
        """The one dtype of a scheme."""
        if scheme.__class__ is not QuantScheme:
            raise ArgumentError(
                f"{scheme!r} is no QuantScheme",
                hint="QuantScheme.parse reads the text of one",
                operation="QDType",
            )
        found = cls._interned.get(scheme)
        if found is None:
            made = str.__new__(cls, scheme.text)
            made.scheme = scheme
            made.name = scheme.text
            made.kind = Kind.QUANTIZED
            made.itemsize = scheme.storage_dtype.itemsize
            made.is_float = True  # what it stands for: functions treat it as floats
            made.is_integer = made.is_bool = made.is_complex = False
            found = cls._interned.setdefault(scheme, made)
        return found

    def __init__(self, scheme: QuantScheme) -> None:
        pass

    def __reduce__(self) -> tuple[object, ...]:
        return QDType, (self.scheme,)

    def __getattr__(self, name: str) -> Any:
        if name == "numpy":
            raise DTypeError(
                f"NumPy has no dtype for {self.name}",
                hint="Call .dequantize() first, or .data() for codes and scales; quantized tensors "
                "are made of floats, with .quantize_dynamic()",
            )
        raise AttributeError(f"a QDType has no attribute {name!r}")

    @property
    def bits(self) -> int:
        """Bits of a code."""
        return self.scheme.value.bits


DType.of_scheme = staticmethod(lambda text: QDType(QuantScheme.parse(text)))
