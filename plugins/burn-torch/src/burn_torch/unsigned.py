"""uint16, uint32 and uint64, which torch stores without computing with them.

Each has a signed dtype of the same size. Sums and products, which wrap around, have the same bits
in both; so does whatever only moves elements. Order is kept by a view whose highest bit is
inverted. What is left is computed in a wider dtype, or, of 64 bits, made of signed operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from burn.dtype import DType, Kind
from burn.ops import REGISTRY, Op
from burn_torch.dtypes import NUMBERS, SHORT, SIGNED, Tensor, rounded

__all__ = ["EMULATED", "emulated"]

_NOT_PLAIN: Final = SHORT.union(SIGNED)

_SAME_BITS: Final = (
    *("add", "subtract", "multiply", "negative", "square", "matmul", "vecdot", "cross"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "bitwise_left_shift"),
    *("equal", "not_equal", "where", "any", "all", "cumsum", "cumprod"),
    *("gather", "gather_nd", "scatter_add", "select", "select_add", "unfold", "argwhere"),
    *("real", "conj"),
)
"""Ops that give the same bits, whatever the sign means."""

_SAME_ORDER: Final = (
    *("less", "less_equal", "greater", "greater_equal", "maximum", "minimum", "clip"),
    *("max", "min", "argmax", "argmin", "argsort", "argtopk", "sort", "searchsorted"),
    *("cummax", "cummin", "max_pool", "max_pool_with_indices", "unique_places"),
)
"""Ops that depend on the order of the elements alone."""

_PLACES: Final = frozenset(["argmax", "argmin", "argsort", "argtopk", "searchsorted", "argwhere"])
"""Ops of these that give places, or truth, and no elements; so do comparisons."""

_TRUTH: Final = frozenset(
    ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "any", "all"]
)


def emulated(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of an op that takes unsigned integers too, which are handed to its emulation.

    It rounds a number that meets a 16-bit float to it first: torch computes with the number itself.
    """
    emulation = _emulation(REGISTRY[name], method)
    rounding = _with_rounded_numbers(method) if name in ROUNDED else method
    operands = REGISTRY[name].operands.values()
    chosen: Any = _general(name, method, emulation)
    if not REGISTRY[name].attributes and all(spec.promotes for spec in operands):
        if len(operands) == 1:
            chosen = _of_one(method, emulation)
        elif len(operands) == 2:
            chosen = _of_two(method, emulation, rounding)

    def specialize(dtype: DType) -> Callable[..., Any]:
        if dtype.kind is Kind.UINT and dtype.itemsize > 1:
            return emulation
        if dtype.is_float and dtype.itemsize == 2:
            return rounding
        return getattr(method, "after_tensor", method)  # as it is in a call by type

    chosen.specialize = specialize
    return chosen  # type: ignore[no-any-return]  # one of three functions


def _of_one(method: Callable[..., Any], emulation: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any) -> Any:
        return emulation(x) if x.dtype in SIGNED else method(x)

    return call


def _of_two(
    method: Callable[..., Any], emulation: Callable[..., Any], rounding: Callable[..., Any]
) -> Callable[..., Any]:
    numbers = NUMBERS

    def call(x1: Any, x2: Any) -> Any:
        dtype = x2.dtype if x1.__class__ in numbers else x1.dtype
        if dtype in _NOT_PLAIN:
            return emulation(x1, x2) if dtype in SIGNED else rounding(x1, x2)
        return method(x1, x2)

    return call


def _general(
    name: str, method: Callable[..., Any], emulation: Callable[..., Any]
) -> Callable[..., Any]:
    """Of operands that are not all of one dtype: indices, or a mask, among them."""
    specs = REGISTRY[name].operands.values()
    places = [place for place, spec in enumerate(specs) if spec.promotes]

    def call(*operands: Any, **attributes: Any) -> Any:
        for place in places:
            operand = operands[place]
            if operand.__class__ not in NUMBERS and operand is not None:
                if operand.dtype in SIGNED:
                    return emulation(*operands, **attributes)
                break  # the others have the same dtype
        return method(*operands, **attributes)

    return call


def _with_rounded_numbers(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(x1: Any, x2: Any) -> Any:
        if x2.__class__ in NUMBERS:
            x2 = rounded(x2, x1.dtype)
        elif x1.__class__ in NUMBERS:
            x1 = rounded(x1, x2.dtype)
        return method(x1, x2)

    return call


def _emulation(definition: Op, method: Callable[..., Any]) -> Callable[..., Any]:
    name = definition.name
    if name in _BY_DIVISION:
        return _BY_DIVISION[name]
    if name in _SAME_BITS:
        return _viewed(definition, method, flip=False)
    return _viewed(definition, method, flip=True)


def _viewed(definition: Op, method: Callable[..., Any], *, flip: bool) -> Callable[..., Any]:
    """A method that is run on signed integers of the same bits, or of the same order."""
    promotes = [spec.promotes for spec in definition.operands.values()]
    no_elements = definition.name in _PLACES | _TRUTH
    all_places = definition.name == "unique_places"

    def call(*operands: Any, **attributes: Any) -> Any:
        dtype = next(
            one.dtype
            for one, promoted in zip(operands, promotes, strict=True)
            if promoted and isinstance(one, Tensor)
        )
        bits = SIGNED[dtype]
        half = 1 << (8 * bits.itemsize - 1)
        arguments = [
            _signed(one, bits, half, flip=flip) if promoted else one
            for one, promoted in zip(operands, promotes, strict=True)
        ]
        result = method(*arguments, **attributes)
        if no_elements or all_places:
            return result
        first = result[0] if result.__class__ is tuple else result
        if first.dtype is bits:
            first = (first ^ -half if flip else first).view(dtype)
        return (first, *result[1:]) if result.__class__ is tuple else first

    return call


def _signed(operand: Any, bits: torch.dtype, half: int, *, flip: bool) -> Any:
    """A tensor or number as the signed one of the same bits, or of the same place in order."""
    if operand.__class__ in NUMBERS:
        number = int(operand)
        if flip:
            return number - half
        return number - 2 * half if number >= half else number
    if operand is None:
        return None
    signed = operand.view(bits)
    return signed ^ -half if flip else signed


_LARGEST: Final = (1 << 63) - 1


def _wide(x1: Any, x2: Any) -> tuple[Any, Any, torch.dtype]:
    """Operands of 16 or 32 bits in a dtype that holds them; those of 64 bits as their bits."""
    dtype = x2.dtype if x1.__class__ in NUMBERS else x1.dtype
    if dtype is torch.uint64:
        return (
            _signed(x1, torch.int64, 1 << 63, flip=False),
            _signed(x2, torch.int64, 1 << 63, flip=False),
            dtype,
        )
    wide = [one if one.__class__ in NUMBERS else one.to(torch.int64) for one in (x1, x2)]
    return wide[0], wide[1], dtype


def _as_tensors(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    like = x2 if x1.__class__ in NUMBERS else x1
    pair = [
        torch.full((), one, dtype=like.dtype, device=like.device)
        if one.__class__ in NUMBERS
        else one
        for one in (x1, x2)
    ]
    return pair[0], pair[1]


def _divided(x1: Any, x2: Any) -> tuple[Tensor, Tensor, torch.dtype]:
    """Quotient and rest, which are 0 where the divisor is."""
    x1, x2, dtype = _wide(x1, x2)
    x1, x2 = _as_tensors(x1, x2)
    nothing = x2 == 0
    safe = torch.where(nothing, 1, x2)
    if dtype is not torch.uint64:
        quotient = torch.div(x1, safe, rounding_mode="trunc")
    else:
        # Of half of the dividend, which is no negative number; then the rest is brought below the
        # divisor (H. S. Warren, "Hacker's Delight", section 9-3).
        half = (x1 >> 1) & _LARGEST
        large = safe < 0  # 2**63 or more: the quotient is 0 or 1
        positive = torch.where(large, 1, safe)
        quotient = torch.div(half, positive, rounding_mode="trunc") << 1
        rest = x1 - quotient * positive
        quotient = quotient + ((rest ^ (-1 << 63)) >= (positive ^ (-1 << 63))).to(torch.int64)
        at_least = ((x1 ^ (-1 << 63)) >= (safe ^ (-1 << 63))).to(torch.int64)
        quotient = torch.where(large, at_least, quotient)
    rest = x1 - quotient * safe
    return torch.where(nothing, 0, quotient), torch.where(nothing, 0, rest), dtype


def _narrowed(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x.view(dtype) if dtype is torch.uint64 else x.to(dtype)


def _floor_divide(x1: Any, x2: Any) -> Tensor:
    quotient, _, dtype = _divided(x1, x2)
    return _narrowed(quotient, dtype)


def _remainder(x1: Any, x2: Any) -> Tensor:
    _, rest, dtype = _divided(x1, x2)
    return _narrowed(rest, dtype)


def _pow(x1: Any, x2: Any) -> Tensor:
    x1, x2, dtype = _wide(x1, x2)
    x1, x2 = _as_tensors(x1, x2)
    # Odd numbers repeat after 2**62 factors, and even ones are 0 from the 64th on.
    cycle = 1 << 62
    exponent = torch.where(x2 < 0, (x2 & (cycle - 1)) | cycle, x2)
    return _narrowed(torch.pow(x1, exponent), dtype)


def _right_shift(x1: Any, x2: Any) -> Tensor:
    x1, x2, dtype = _wide(x1, x2)
    x1, x2 = _as_tensors(x1, x2)
    count = torch.where((x2 < 0) | (x2 > 64), 64, x2)
    if dtype is not torch.uint64:
        return torch.bitwise_right_shift(x1, count).to(dtype)
    halved = torch.bitwise_right_shift((x1 >> 1) & _LARGEST, torch.clamp_min(count - 1, 0))
    return torch.where(count == 0, x1, halved).view(dtype)


def _same(x: Tensor) -> Tensor:
    return x


def _sign(x: Tensor) -> Tensor:
    return (x.view(SIGNED[x.dtype]) != 0).to(SIGNED[x.dtype]).view(x.dtype)


_BY_DIVISION: Final[dict[str, Callable[..., Any]]] = {
    "floor_divide": _floor_divide,
    "remainder": _remainder,
    "fmod": _remainder,
    "pow": _pow,
    "bitwise_right_shift": _right_shift,
    "abs": _same,
    "sign": _sign,
    "conj": _same,
    "real": _same,
}

ROUNDED: Final = frozenset(
    ["add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod", "pow"]
)
"""Ops in which torch does not round a number to the dtype of the 16-bit floats that it meets."""

EMULATED: Final = tuple(dict.fromkeys([*_SAME_BITS, *_SAME_ORDER, *_BY_DIVISION, "divide"]))
"""Ops whose methods get an emulation, where the backend has a method."""
