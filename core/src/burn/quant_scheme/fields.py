"""The fields of a scheme: values of codes, dtypes of scales, stores, and what shares a scale."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from burn.dtype import DType, bfloat16, float16, float32, uint8
from burn.errors import ArgumentError
from burn.public_calls import shown_as_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from burn.aliases import Shape

__all__ = ["MAX_BLOCK_AXES", "QuantLevel", "QuantMode", "QuantStore", "QuantValue", "ScaleDType"]

MAX_BLOCK_AXES: Final = 5
"""The most axes that a block has."""


_BITS: Final = {"q8": 8, "q4": 4, "q2": 2, "e4m3": 8, "e5m2": 8, "e2m1": 4}
_GREATEST: Final = {"e4m3": 448.0, "e5m2": 57344.0, "e2m1": 6.0}


@shown_as_text
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

    bits: int
    """Bits of a code."""

    range: tuple[float, float]
    """The least and the greatest number; integers of integer values."""

    is_float: bool
    """Whether codes are bit patterns of floats; else they are integers."""

    def __init__(self, text: str) -> None:
        self.is_float = text[0] == "e"
        self.bits = _BITS[text if self.is_float else text[:2]]
        if self.is_float:
            self.range = -_GREATEST[text], _GREATEST[text]
        else:
            half = 1 << (self.bits - 1)
            self.range = (-half if text[-1] == "f" else 1 - half), half - 1


_LARGEST_SCALES: Final = {
    "float32": 2.0**128 - 2.0**104,
    "float16": 65504.0,
    "bfloat16": 2.0**128 - 2.0**120,
    "ue8m0": 2.0**127,
    "ue4m3": 448.0,
}

_SCALE_STORAGE: Final = {"float32": float32, "float16": float16, "bfloat16": bfloat16}


@shown_as_text
class ScaleDType(enum.Enum):
    """The dtype of scales. A scale is rounded up to it, so that no value leaves the range.

    One beyond its largest number becomes that: values that are larger than it permits are clamped.
    UE8M0 is a power of two by its exponent; UE4M3 is E4M3 without negative numbers.
    """

    F32 = "float32"
    F16 = "float16"
    BF16 = "bfloat16"
    UE8M0 = "ue8m0"
    UE4M3 = "ue4m3"

    storage: DType
    """The dtype in memory: uint8, bit patterns, for the two of 8 bits."""

    largest: float
    """The largest number."""

    def __init__(self, text: str) -> None:
        self.storage = _SCALE_STORAGE.get(text, uint8)
        self.largest = _LARGEST_SCALES[text]


@shown_as_text
class QuantMode(enum.Enum):
    """How zero is represented: by the code 0."""

    SYMMETRIC = "symmetric"


@shown_as_text
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


@shown_as_text
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
        if any(length.__class__ is not int or (length < 1 and length != -1) for length in lengths):
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
            [
                max(whole, 1) if length == -1 else length
                for length, whole in zip(lengths, shape, strict=True)
            ]
        )

    @classmethod
    def per_block(cls, *lengths: int | Sequence[int]) -> QuantLevel:
        """A scale for each block; the lengths are arguments, or one tuple or list."""
        return cls(_lengths(lengths))

    @classmethod
    def two_level(cls, *lengths: int | Sequence[int]) -> QuantLevel:
        """A scale for each block, and a global one; lengths as of `per_block`."""
        return cls(_lengths(lengths), is_global=True)


def _lengths(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Lengths that are arguments, or the one argument."""
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        return tuple(given[0])
    return given


QuantLevel.TENSOR = QuantLevel()
