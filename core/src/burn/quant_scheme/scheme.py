"""QuantScheme: how a tensor is stored in few bits."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from burn.dtype import DType, float32, int8, uint8, uint32
from burn.errors import ArgumentError, DTypeError, ShapeError
from burn.public_calls import shown_as_text, shown_value
from burn.quant_scheme.fields import QuantLevel, QuantMode, QuantStore, QuantValue, ScaleDType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from burn.aliases import Shape

__all__ = ["QuantScheme"]


@shown_as_text
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

    def __reduce__(self) -> tuple[object, ...]:
        return QuantScheme.parse, (self.text,)

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
            raise DTypeError(
                f"{shown_value(text)} is no quantization scheme", hint=f"One is '{cls()}'"
            )
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
        self.scales_shape(shape)  # it remembers shapes that can be stored

    @functools.cached_property
    def _scales_shapes(self) -> dict[Shape, Shape]:
        """Shape of the scales of each shape that can be stored, as far as asked for."""
        return {}

    def _check(self, shape: Shape) -> None:
        """`check` of a shape that has not been asked for."""
        block = self.level.block
        if len(block) > len(shape):
            raise ShapeError(
                f"a tensor of shape {shape} in blocks of {len(block)} axes",
                hint="A block has at most as many axes as the tensor",
            )
        for length, number in zip(reversed(shape), reversed(block), strict=False):
            if number != -1 and length % number:
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
        """Shape of the scales of a tensor of a shape: (1,) if it shares one.

        Raises
        ------
        ShapeError
            If blocks or words do not divide it.
        """
        shape = tuple(shape)
        found = self._scales_shapes.get(shape)
        if found is None:
            self._check(shape)
            found = (1,)
            if self.level.block:
                pairs = zip(shape, self.blocks(shape), strict=True)
                found = tuple([length // pair for length, pair in pairs])
            if len(self._scales_shapes) > _MAX_SHAPES:
                self._scales_shapes.clear()
            self._scales_shapes[shape] = found
        return found

    def nbytes(self, shape: Shape) -> int:
        """Bytes of the codes and scales of a tensor of a shape."""
        codes = math.prod(self.values_shape(shape)) * self.storage_dtype.itemsize
        scales = math.prod(self.scales_shape(shape)) * self.scale_dtype.storage.itemsize
        return codes + scales + (float32.itemsize if self.level.is_global else 0)


_MAX_SHAPES: Final = 1024
"""Number of shapes that a scheme remembers."""

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
