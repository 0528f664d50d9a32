"""How host values differ from others, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.dtype import bfloat16, complex64, complex128, float16, float32, float64

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["TOLERANCES", "difference"]

TOLERANCES: Final = {
    float64: (1e-7, 1e-7),
    float32: (1.3e-6, 1e-5),
    float16: (1e-3, 1e-5),
    bfloat16: (1.6e-2, 1e-5),
    complex64: (1.3e-6, 1e-5),
    complex128: (1e-7, 1e-7),
}
"""Relative and absolute tolerance of each dtype, as in ``torch.testing.assert_close``."""


def difference(x: npt.NDArray[Any], expected: npt.NDArray[Any], rtol: float, atol: float) -> str:
    """How many elements differ by more than a tolerance, and which one most; "" for none."""
    is_complex = x.dtype.kind == "c" or expected.dtype.kind == "c"
    wide = np.complex128 if is_complex else np.float64
    wide_x, wide_expected = x.astype(wide), expected.astype(wide)
    with np.errstate(all="ignore"):
        is_close = (x == expected) | (np.isnan(wide_x) & np.isnan(wide_expected))
        error = np.where(is_close, 0.0, np.abs(wide_x - wide_expected))
        if rtol or atol:  # else large integers that differ may be the same float64
            is_near = error <= atol + rtol * np.abs(wide_expected)
            is_close = is_close | (np.isfinite(wide_expected) & is_near)
    if is_close.all():
        return ""
    excess = np.where(is_close, -1.0, np.where(np.isnan(error), np.inf, error))
    index = np.unravel_index(np.argmax(excess), x.shape)
    bound = f" by more than {atol:g} + {rtol:g} * abs(expected)" if rtol or atol else ""
    count = x.size - np.count_nonzero(is_close)
    return (
        f"{count} of {x.size} elements differ{bound}: at {tuple(map(int, index))} it is "
        f"{x[index]}, not {expected[index]}"
    )
