"""What the kernels that numba compiles are made of; modules ``compiled_*`` alone import it.

LLVM vectorizes the inner loops. It may reorder additions, but must respect infinities and NaN. Sums
of long rows are taken in chunks, whose sums are added in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import numba
import numpy as np

from burn_cpu.constants import EXP_COEFFICIENTS

__all__ = [
    "CHUNK_ELEMENTS",
    "HALF",
    "ONE",
    "ZERO",
    "compiled",
    "compiled_exactly",
    "exp",
    "float32",
]

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


def compiled(kernel: _Kernel) -> _Kernel:
    """Compile a kernel whose sums may be reordered, which vector instructions need."""
    return _njit(kernel, {"reassoc", "contract", "arcp", "nsz"})


def compiled_exactly(kernel: _Kernel) -> _Kernel:
    """Compile a function whose operations keep their order."""
    return _njit(kernel, {"contract", "nsz"})


def _njit(kernel: _Kernel, allowed: set[str]) -> _Kernel:
    compiler: Any = numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=allowed)
    result: _Kernel = compiler(kernel)
    return result


# A Python float would promote a float32 operand to float64. It is Any as numba has its own types.
float32: Any = np.float32
ZERO, HALF, ONE = map(float32, (0.0, 0.5, 1.0))
CHUNK_ELEMENTS: Final = 512
"""Elements that are added up in float32."""

_LOG2_E, _LN_2_HIGH, _LN_2_LOW = map(float32, (1.4426950408889634, 0.693359375, -2.12194440e-4))
_MIN_EXPONENT: Final = float32(-87.3)
"""For smaller arguments the exponential is subnormal, and `exp` returns 0."""

_E5, _E4, _E3, _E2, _E1, _E0 = map(float32, EXP_COEFFICIENTS)

# With NaN as one operand, min and max return the first operand.


@compiled_exactly
def exp(x: Any) -> Any:
    """The exponential of a number that is at most 0, or of NaN."""
    t = max(_MIN_EXPONENT, x)
    n = np.floor(t * _LOG2_E + HALF)
    t = t - n * _LN_2_HIGH
    t = t - n * _LN_2_LOW
    power = ((((_E5 * t + _E4) * t + _E3) * t + _E2) * t + _E1) * t + _E0
    power = power * t * t + t + ONE
    # 2**n from its exponent bits.
    power *= np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
    if x >= _MIN_EXPONENT:
        return power
    return ZERO if x < _MIN_EXPONENT else x
