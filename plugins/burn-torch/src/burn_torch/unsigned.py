"""uint16, uint32 and uint64, which torch stores but does not compute with.

Their ops run on the signed dtype of the same size. Ops that move elements, and sums and products,
which wrap around, give the same bits in both. Ops that compare elements run with the highest bit
inverted, which keeps the order. Division, powers and right shifts run in int64, and for uint64 are
composed of signed operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from burn.plugin_api import REGISTRY, DType, Kind, Op, specializing
from burn_torch.dtypes import HALF_FLOATS, NUMBER_TYPES, SIGNED_OF_UNSIGNED, Tensor, rounded

__all__ = ["EMULATED", "emulated"]

_SPECIAL_DTYPES: Final = HALF_FLOATS.union(SIGNED_OF_UNSIGNED)

_BITWISE_EQUAL_OPS: Final = (
    *("add", "subtract", "multiply", "negative", "square", "matmul", "vecdot", "cross"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "bitwise_left_shift"),
    *("equal", "not_equal", "where", "any", "all", "cumsum", "cumprod"),
    *("gather", "gather_nd", "scatter_add", "select", "select_add", "unfold", "argwhere"),
    *("real", "conj"),
)
"""Ops whose results have the same bits for signed and unsigned operands."""

_ORDER_OPS: Final = (
    *("less", "less_equal", "greater", "greater_equal", "maximum", "minimum", "clip"),
    *("max", "min", "argmax", "argmin", "argsort", "argtopk", "sort", "searchsorted"),
    *("cummax", "cummin", "max_pool", "max_pool_with_indices", "unique_indices"),
)
"""Ops that depend only on the order of the elements."""

_INDEX_OPS: Final = frozenset(
    ["argmax", "argmin", "argsort", "argtopk", "searchsorted", "argwhere"]
)
"""Ops that return indices; nothing in their results is an element."""

_BOOL_OPS: Final = frozenset(
    ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "any", "all"]
)


def emulated(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """The method of an op, with an emulation for unsigned integers.

    It also rounds a Python number to the dtype of the 16-bit floats beside it; torch does not.
    """
    emulation = _emulation(REGISTRY[name], method)
    rounding = _with_rounded_numbers(method) if name in ROUNDED else method
    operands = REGISTRY[name].operands.values()
    call: Any = _general(name, method, emulation)
    if not REGISTRY[name].attributes and all(spec.promotes for spec in operands):
        if len(operands) == 1:
            call = _unary(method, emulation)
        elif len(operands) == 2:
            call = _binary(method, emulation, rounding)

    def for_dtype(dtype: DType) -> Callable[..., Any]:
        if dtype.kind is Kind.UINT and dtype.itemsize > 1:
            return emulation
        if dtype.is_float and dtype.itemsize == 2:
            return rounding
        return method

    return specializing(call, for_dtype)


def _unary(method: Callable[..., Any], emulation: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any) -> Any:
        return emulation(x) if x.dtype in SIGNED_OF_UNSIGNED else method(x)

    return call


def _binary(
    method: Callable[..., Any], emulation: Callable[..., Any], rounding: Callable[..., Any]
) -> Callable[..., Any]:
    numbers = NUMBER_TYPES

    def call(x1: Any, x2: Any) -> Any:
        dtype = x2.dtype if x1.__class__ in numbers else x1.dtype
        if dtype in _SPECIAL_DTYPES:
            return emulation(x1, x2) if dtype in SIGNED_OF_UNSIGNED else rounding(x1, x2)
        return method(x1, x2)

    return call


def _general(
    name: str, method: Callable[..., Any], emulation: Callable[..., Any]
) -> Callable[..., Any]:
    """For operands of several dtypes, such as indices or a mask beside elements."""
    specs = REGISTRY[name].operands.values()
    element_slots = [slot for slot, spec in enumerate(specs) if spec.promotes]

    def call(*operands: Any, **attributes: Any) -> Any:
        for slot in element_slots:
            operand = operands[slot]
            if operand.__class__ not in NUMBER_TYPES and operand is not None:
                if operand.dtype in SIGNED_OF_UNSIGNED:
                    return emulation(*operands, **attributes)
                break  # the other elements have the same dtype
        return method(*operands, **attributes)

    return call


def _with_rounded_numbers(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(x1: Any, x2: Any) -> Any:
        if x2.__class__ in NUMBER_TYPES:
            x2 = rounded(x2, x1.dtype)
        elif x1.__class__ in NUMBER_TYPES:
            x1 = rounded(x1, x2.dtype)
        return method(x1, x2)

    return call


def _emulation(definition: Op, method: Callable[..., Any]) -> Callable[..., Any]:
    name = definition.name
    if name in _EMULATIONS:
        return _EMULATIONS[name]
    if name in _BITWISE_EQUAL_OPS:
        return _on_signed(definition, method, invert_high_bit=False)
    return _on_signed(definition, method, invert_high_bit=True)


def _on_signed(
    definition: Op, method: Callable[..., Any], *, invert_high_bit: bool
) -> Callable[..., Any]:
    """A method run on signed integers of the same bits, or of the same order."""
    promotes = [spec.promotes for spec in definition.operands.values()]
    returns_elements = definition.name not in {*_INDEX_OPS, *_BOOL_OPS, "unique_indices"}

    def call(*operands: Any, **attributes: Any) -> Any:
        dtype = next(
            operand.dtype
            for operand, promoted in zip(operands, promotes, strict=True)
            if promoted and isinstance(operand, Tensor)
        )
        bits = SIGNED_OF_UNSIGNED[dtype]
        half = 1 << (8 * bits.itemsize - 1)
        arguments = [
            _signed(operand, bits, half, invert_high_bit=invert_high_bit) if promoted else operand
            for operand, promoted in zip(operands, promotes, strict=True)
        ]
        result = method(*arguments, **attributes)
        if not returns_elements:
            return result
        first = result[0] if result.__class__ is tuple else result
        if first.dtype is bits:
            first = (first ^ -half if invert_high_bit else first).view(dtype)
        return (first, *result[1:]) if result.__class__ is tuple else first

    return call


def _signed(operand: Any, bits: torch.dtype, half: int, *, invert_high_bit: bool) -> Any:
    """A tensor or number as a signed one of the same bits, or of the same rank in the order."""
    if operand.__class__ in NUMBER_TYPES:
        number = int(operand)
        if invert_high_bit:
            return number - half
        return number - 2 * half if number >= half else number
    if operand is None:
        return None
    signed = operand.view(bits)
    return signed ^ -half if invert_high_bit else signed


_INT64_MAX: Final = (1 << 63) - 1


def _wide(x1: Any, x2: Any) -> tuple[Any, Any, torch.dtype]:
    """Operands of 16 or 32 bits as int64 values; those of 64 bits as int64 of the same bits."""
    dtype = x2.dtype if x1.__class__ in NUMBER_TYPES else x1.dtype
    if dtype is torch.uint64:
        return (
            _signed(x1, torch.int64, 1 << 63, invert_high_bit=False),
            _signed(x2, torch.int64, 1 << 63, invert_high_bit=False),
            dtype,
        )
    wide = [
        tensor if tensor.__class__ in NUMBER_TYPES else tensor.to(torch.int64)
        for tensor in (x1, x2)
    ]
    return wide[0], wide[1], dtype


def _as_tensors(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    like = x2 if x1.__class__ in NUMBER_TYPES else x1
    pair = [
        torch.full((), tensor, dtype=like.dtype, device=like.device)
        if tensor.__class__ in NUMBER_TYPES
        else tensor
        for tensor in (x1, x2)
    ]
    return pair[0], pair[1]


def _divided(x1: Any, x2: Any) -> tuple[Tensor, Tensor, torch.dtype]:
    """Quotient and remainder, which are 0 where the divisor is."""
    x1, x2, dtype = _wide(x1, x2)
    x1, x2 = _as_tensors(x1, x2)
    is_zero = x2 == 0
    safe = torch.where(is_zero, 1, x2)
    if dtype is not torch.uint64:
        quotient = torch.div(x1, safe, rounding_mode="trunc")
    else:
        # Divide half of the dividend, which is not negative as int64, double the quotient, and
        # correct it by the remainder (H. S. Warren, "Hacker's Delight", section 9-3).
        half = (x1 >> 1) & _INT64_MAX
        large = safe < 0  # 2**63 or more: the quotient is 0 or 1
        positive = torch.where(large, 1, safe)
        quotient = torch.div(half, positive, rounding_mode="trunc") << 1
        remainder = x1 - quotient * positive
        quotient = quotient + ((remainder ^ (-1 << 63)) >= (positive ^ (-1 << 63))).to(torch.int64)
        at_least = ((x1 ^ (-1 << 63)) >= (safe ^ (-1 << 63))).to(torch.int64)
        quotient = torch.where(large, at_least, quotient)
    remainder = x1 - quotient * safe
    return torch.where(is_zero, 0, quotient), torch.where(is_zero, 0, remainder), dtype


def _narrowed(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x.view(dtype) if dtype is torch.uint64 else x.to(dtype)


def _floor_divide(x1: Any, x2: Any) -> Tensor:
    quotient, _, dtype = _divided(x1, x2)
    return _narrowed(quotient, dtype)


def _remainder(x1: Any, x2: Any) -> Tensor:
    _, remainder, dtype = _divided(x1, x2)
    return _narrowed(remainder, dtype)


def _pow(x1: Any, x2: Any) -> Tensor:
    x1, x2, dtype = _wide(x1, x2)
    x1, x2 = _as_tensors(x1, x2)
    # Powers of odd numbers have the period 2**62; those of even ones are 0 from the exponent 64 on.
    period = 1 << 62
    exponent = torch.where(x2 < 0, (x2 & (period - 1)) | period, x2)
    return _narrowed(torch.pow(x1, exponent), dtype)


def _right_shift(x1: Any, x2: Any) -> Tensor:
    x1, x2, dtype = _wide(x1, x2)
    x1, x2 = _as_tensors(x1, x2)
    count = torch.where((x2 < 0) | (x2 > 64), 64, x2)
    if dtype is not torch.uint64:
        return torch.bitwise_right_shift(x1, count).to(dtype)
    halved = torch.bitwise_right_shift((x1 >> 1) & _INT64_MAX, torch.clamp_min(count - 1, 0))
    return torch.where(count == 0, x1, halved).view(dtype)


def _identity(x: Tensor) -> Tensor:
    return x


def _sign(x: Tensor) -> Tensor:
    return (x.view(SIGNED_OF_UNSIGNED[x.dtype]) != 0).to(SIGNED_OF_UNSIGNED[x.dtype]).view(x.dtype)


_EMULATIONS: Final[dict[str, Callable[..., Any]]] = {
    "floor_divide": _floor_divide,
    "remainder": _remainder,
    "fmod": _remainder,
    "pow": _pow,
    "bitwise_right_shift": _right_shift,
    "abs": _identity,
    "sign": _sign,
    "conj": _identity,
    "real": _identity,
}

ROUNDED: Final = frozenset(
    ["add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod", "pow"]
)
"""Ops in which torch does not round a number to the dtype of the 16-bit floats beside it."""

EMULATED: Final = tuple(dict.fromkeys([*_BITWISE_EQUAL_OPS, *_ORDER_OPS, *_EMULATIONS, "divide"]))
"""Ops whose methods get an emulation for unsigned integers."""
