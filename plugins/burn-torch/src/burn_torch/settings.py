"""Settings of torch that a user's program may have made, and that are not to change a result.

Products of float32 may be rounded to TF32 or bfloat16 on the way; for convolutions on CUDA that is
torch's default. It is one setting for the whole process, read when an operation is called: where it
is not what burn promises, it is changed for that call. A thread of the user's that calls torch at
the same moment computes more exactly than it asked for.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import torch

__all__ = ["Precision", "any_order", "without_autocast"]

_EXACT: Final = ("ieee", "none")
_lock: Final = threading.RLock()
_get: Any = getattr(torch._C, "_get_fp32_precision_getter", None)
_set: Any = getattr(torch._C, "_set_fp32_precision_setter", None)
_BEFORE_2_9: Final[dict[tuple[str, str], tuple[str, str]]] = {
    ("cuda", "matmul"): ("_get_cublas_allow_tf32", "_set_cublas_allow_tf32"),
    ("cuda", "conv"): ("_get_cudnn_allow_tf32", "_set_cudnn_allow_tf32"),
}


class Precision:
    """How one library of torch's rounds one kind of product.

    Parameters
    ----------
    library : str
        ``"cuda"``, or ``"mkldnn"`` on the CPU; what torch knows no setting for is exact.
    kind : str
        ``"matmul"`` or ``"conv"``.
    """

    def __init__(self, library: str, kind: str) -> None:
        self._place = (library, kind)
        self.is_reduced: Callable[[], bool] = _never
        """Whether torch is set to round them now."""
        if library == "mkldnn" and not _has_bfloat16_products():
            return
        if _get is not None and library in ("cuda", "mkldnn"):
            self.is_reduced = lambda: _get(library, kind) not in _EXACT
        elif self._place in _BEFORE_2_9:
            self.is_reduced = getattr(torch._C, _BEFORE_2_9[self._place][0])

    def exact(self) -> contextlib.AbstractContextManager[None]:
        """Context in which products of float32 are what IEEE 754 makes of them."""
        return self._set_to("ieee")

    def of_16_bits(self) -> contextlib.AbstractContextManager[None]:
        """Context for 16-bit floats as float32: on CUDA units for TF32 multiply those exactly."""
        if self._place[0] != "cuda":
            return contextlib.nullcontext()
        return self._set_to("tf32")

    @contextlib.contextmanager
    def _set_to(self, precision: str) -> Iterator[None]:
        with _lock:
            before = _get(*self._place) if _get is not None else None
            self._change(precision)
            try:
                yield
            finally:
                self._change(before)

    def _change(self, precision: str | None) -> None:
        if _set is not None:
            _set(*self._place, precision)
        else:
            getattr(torch._C, _BEFORE_2_9[self._place][1])(precision != "ieee")


def _never() -> bool:
    return False


def _has_bfloat16_products() -> bool:
    """Whether this processor multiplies bfloat16, which torch then may use for float32."""
    try:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    except (AttributeError, RuntimeError):
        return True  # torch has another name for it: look at the setting in every call


def without_autocast(place: torch.device) -> contextlib.AbstractContextManager[Any]:
    """Context in which torch keeps the dtypes that it is given."""
    return torch.autocast(place.type, enabled=False)


@contextlib.contextmanager
def any_order() -> Iterator[None]:
    """Let torch use kernels whose order of summation varies, as it does by default."""
    if not torch.are_deterministic_algorithms_enabled():
        yield
        return
    with _lock:
        warns = torch.is_deterministic_algorithms_warn_only_enabled()
        torch.use_deterministic_algorithms(mode=False)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(mode=True, warn_only=warns)
