"""Which dtype of torch is which of burn's."""

from __future__ import annotations

import functools
from typing import Any, Final

import torch

from burn.dtype import DType

Tensor = torch.Tensor

TORCH: Final[dict[DType, torch.dtype]] = {
    dtype: getattr(torch, dtype.name) for dtype in DType.members() if hasattr(torch, dtype.name)
}
"""torch's dtype of each of burn's; it is one object, so ``is`` compares."""

BURN: Final[dict[torch.dtype, DType]] = {native: dtype for dtype, native in TORCH.items()}

SHORT: Final = frozenset([torch.float16, torch.bfloat16])
"""Floats that are computed in float32."""

SIGNED: Final[dict[torch.dtype, torch.dtype]] = {
    torch.uint16: torch.int16,
    torch.uint32: torch.int32,
    torch.uint64: torch.int64,
}
"""Unsigned dtypes that torch stores without computing with them, and the dtype of the same bits."""

NUMBERS: Final[frozenset[Any]] = frozenset([bool, int, float, complex])

SAME_BITS: Final[dict[Any, torch.dtype]] = {
    torch.bfloat16: torch.int16,
    torch.uint16: torch.int16,
    torch.uint32: torch.int32,
    torch.uint64: torch.int64,
}
"""Dtypes that NumPy, or some functions of torch, do not take, and one of the same size they do."""


def rounded(number: Any, dtype: torch.dtype) -> Any:
    """The nearest number of a float dtype, an infinity if it is too large; others as they are."""
    if not number or not dtype.is_floating_point or dtype is torch.float64:
        return number
    return _rounded(number, dtype)


@functools.lru_cache(maxsize=1024)
def _rounded(number: float, dtype: torch.dtype) -> float:
    return torch.full((), number, dtype=torch.float64, device="cpu").to(dtype).item()
