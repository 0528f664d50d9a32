"""The dtypes of torch and those of burn."""

from __future__ import annotations

import functools
from typing import Any, Final

import torch

from burn.plugin_api import DType

Tensor = torch.Tensor

TORCH_DTYPES: Final[dict[DType, torch.dtype]] = {
    dtype: getattr(torch, dtype.name) for dtype in DType.members() if hasattr(torch, dtype.name)
}
"""torch's dtype for each of burn's. It is one object, so ``is`` compares dtypes."""

BURN_DTYPES: Final[dict[torch.dtype, DType]] = {
    native: dtype for dtype, native in TORCH_DTYPES.items()
}
"""burn's dtype for each of torch's."""

HALF_FLOATS: Final = frozenset([torch.float16, torch.bfloat16])
"""Floats of 16 bits, which are computed in float32."""

SIGNED_OF_UNSIGNED: Final[dict[torch.dtype, torch.dtype]] = {
    torch.uint16: torch.int16,
    torch.uint32: torch.int32,
    torch.uint64: torch.int64,
}
"""Unsigned dtypes that torch stores but does not compute with, and signed ones of their size."""

NUMBER_TYPES: Final[frozenset[Any]] = frozenset([bool, int, float, complex])
"""Classes of Python numbers."""

BITS_FOR_NUMPY: Final[dict[Any, torch.dtype]] = {
    torch.bfloat16: torch.int16,
    **SIGNED_OF_UNSIGNED,
}
"""Dtypes that torch and NumPy do not exchange, and those of the same size that they do."""


def rounded(number: Any, dtype: torch.dtype) -> Any:
    """The nearest number of a float dtype, infinity beyond its range; others unchanged."""
    if not number or not dtype.is_floating_point or dtype is torch.float64:
        return number
    return _rounded(number, dtype)


@functools.lru_cache(maxsize=1024)
def _rounded(number: float, dtype: torch.dtype) -> float:
    return torch.full((), number, dtype=torch.float64, device="cpu").to(dtype).item()
