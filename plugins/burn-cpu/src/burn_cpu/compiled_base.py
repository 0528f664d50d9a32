"""What the kernels that numba compiles are made of; modules ``compiled_*`` alone import it.

LLVM vectorizes the inner loops. It may reorder additions, but must respect infinities and NaN. Sums
of long rows are taken in chunks, whose sums are added in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import numba
import numpy as np
from numba import config as _config, types
from numba.extending import intrinsic

from burn_cpu.compiled_cache import KernelCache
from burn_cpu.constants import EXP_COEFFICIENTS
from burn_cpu.forking import hold_compilers_at_fork

__all__ = [
    "CHUNK_ELEMENTS",
    "HALF",
    "IS_FOR_HOST",
    "ONE",
    "ZERO",
    "compiled",
    "compiled_exactly",
    "compiled_strictly",
    "exp",
    "float32",
    "literal_intrinsic",
]

hold_compilers_at_fork()

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


def compiled(kernel: _Kernel) -> _Kernel:
    """Compile a kernel whose sums may be reordered, which vector instructions need."""
    return _njit(kernel, {"reassoc", "contract", "arcp", "nsz"})


def compiled_exactly(kernel: _Kernel) -> _Kernel:
    """Compile a function whose operations keep their order."""
    return _njit(kernel, {"contract", "nsz"})


def compiled_strictly(kernel: _Kernel) -> _Kernel:
    """Compile a function whose results are those of IEEE 754 to the last bit."""
    return _njit(kernel, set())


def _njit(kernel: _Kernel, allowed: set[str]) -> _Kernel:
    compiler: Any = numba.njit(nogil=True, error_model="numpy", fastmath=allowed)
    result: Any = compiler(kernel)
    result._cache = KernelCache(kernel, " ".join(sorted(allowed)))
    return result  # type: ignore[no-any-return]  # it is called as the kernel is


def literal_intrinsic(write: Callable[..., Any]) -> Any:
    """Instructions in a kernel that depend on arguments which are constants there."""
    return intrinsic(prefer_literal=True)(write)


def _widen(typing: Any) -> Any:
    del typing

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature, arguments
        # llvmlite knows attributes without a value alone.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), generate


with_wide_vectors: Final[Any] = intrinsic(_widen)
"""To be called in a kernel whose vectors may have 512 bits, where LLVM prefers 256.

An exponential then takes a quarter less time.
"""


config: Any = _config  # as Any: numba has no types
IS_FOR_HOST: Final = not (config.CPU_NAME or config.CPU_FEATURES)
"""Whether numba compiles for the processor of this machine, with all of its instructions."""

# A Python float would promote a float32 operand to float64. It is Any as numba has its own types.
float32: Any = np.float32
ZERO, HALF, ONE = map(float32, (0.0, 0.5, 1.0))
CHUNK_ELEMENTS: Final = 512
"""Elements that are added up in float32."""

_LOG2_E, _LN_2_HIGH, _LN_2_LOW = map(float32, (1.4426950408889634, 0.693359375, -2.12194440e-4))
_ROUNDING: Final = float32(1.5 * 2**23)
"""In a sum with this number the fraction of the other is rounded away; its last bits are
the integer."""

_MIN_EXPONENT: Final = float32(-87.3)
"""For smaller arguments the exponential is subnormal, and `exp` returns 0."""

_E5, _E4, _E3, _E2, _E1, _E0 = map(float32, EXP_COEFFICIENTS)


@compiled_exactly
def exp(x: Any) -> Any:
    """The exponential of a number that is at most 0, or of NaN."""
    t = max(x, _MIN_EXPONENT)  # with NaN as one operand it returns the first
    shifted = np.float32(t * _LOG2_E + _ROUNDING)
    n = shifted - _ROUNDING
    t = t - n * _LN_2_HIGH
    t = t - n * _LN_2_LOW
    power = ((((_E5 * t + _E4) * t + _E3) * t + _E2) * t + _E1) * t + _E0
    power = power * (t * t) + (t + ONE)
    # 2**n from its exponent bits.
    factor = np.int32((shifted.view(np.int32) + np.int32(127)) << np.int32(23)).view(np.float32)
    return ZERO if x < _MIN_EXPONENT else power * factor
