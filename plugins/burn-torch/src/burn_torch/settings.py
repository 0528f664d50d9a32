"""Settings of torch that must not change burn's results, whatever the user's program sets.

torch may round operands of float32 products to TF32 or bfloat16; for convolutions on CUDA that is
its default. The setting holds for the whole process and is read at each call, so a call changes it
where it is not exact. A user's thread that calls torch at that moment computes more exactly than it
is set to.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import torch

from burn.plugin_api import new_rlock

__all__ = ["Precision", "in_any_order", "without_autocast"]

_Method = TypeVar("_Method", bound=Callable[..., Any])

_EXACT_SETTINGS: Final = ("ieee", "none")
_lock: Final = new_rlock()
_is_ordered = torch.are_deterministic_algorithms_enabled
_get: Any = getattr(torch._C, "_get_fp32_precision_getter", None)
_set: Any = getattr(torch._C, "_set_fp32_precision_setter", None)
_BEFORE_2_9: Final[dict[tuple[str, str], tuple[str, str]]] = {
    ("cuda", "matmul"): ("_get_cublas_allow_tf32", "_set_cublas_allow_tf32"),
    ("cuda", "conv"): ("_get_cudnn_allow_tf32", "_set_cudnn_allow_tf32"),
    ("cuda", "rnn"): ("_get_cudnn_allow_tf32", "_set_cudnn_allow_tf32"),
}


class Precision:
    """The setting of torch for rounding one kind of float32 products in one library.

    Parameters
    ----------
    library : str
        ``"cuda"``, or ``"mkldnn"`` on the CPU; a library without a setting is exact.
    kind : str
        ``"matmul"``, ``"conv"`` or ``"rnn"``.
    """

    def __init__(self, library: str, kind: str) -> None:
        self._key = (library, kind)
        self._contexts = 0
        self.is_reduced: Callable[[], bool] = _never
        """Whether torch is set to round operands, or another call has changed that for a while.

        Or torch refuses products, as those of cuBLAS where it is set to deterministic algorithms.

        The setting that it changes back to may be another one, so such a call has to be waited for.
        """
        if library == "mkldnn" and not _has_bfloat16_products():
            return
        if _get is not None and library in ("cuda", "mkldnn"):
            on_cuda = library == "cuda"
            self.is_reduced = lambda: (
                self._contexts > 0
                or _get(library, kind) not in _EXACT_SETTINGS
                or (on_cuda and _is_ordered())
            )
        elif self._key in _BEFORE_2_9:
            allows_tf32 = getattr(torch._C, _BEFORE_2_9[self._key][0])
            self.is_reduced = lambda: self._contexts > 0 or allows_tf32() or _is_ordered()

    def exact(self) -> contextlib.AbstractContextManager[None]:
        """Context in which operands of float32 products are not rounded."""
        return self._set_to("ieee")

    def of_16_bits(self) -> contextlib.AbstractContextManager[None]:
        """Context for 16-bit floats held as float32, which TF32 units of CUDA multiply exactly."""
        if self._key[0] != "cuda":
            return contextlib.nullcontext()
        return self._set_to("tf32")

    @contextlib.contextmanager
    def _set_to(self, precision: str) -> Iterator[None]:
        with any_order():
            before = _get(*self._key) if _get is not None else None
            self._contexts += 1
            self._change(precision)
            try:
                yield
            finally:
                self._change(before)
                self._contexts -= 1

    def _change(self, precision: str | None) -> None:
        if _set is not None:
            _set(*self._key, precision)
        else:
            getattr(torch._C, _BEFORE_2_9[self._key][1])(precision != "ieee")


def _never() -> bool:
    return False


def _has_bfloat16_products() -> bool:
    """Whether the processor multiplies bfloat16, which torch may then use for float32."""
    try:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    except (AttributeError, RuntimeError):
        return True  # unknown in this version of torch: read the setting at every call


def without_autocast(device: torch.device) -> contextlib.AbstractContextManager[Any]:
    """Context in which torch does not cast operands."""
    return torch.autocast(device.type, enabled=False)


@contextlib.contextmanager
def any_order() -> Iterator[None]:
    """Context in which torch may use kernels whose order of summation varies, its default."""
    with _lock:
        is_ordered = _is_ordered()
        warns = torch.is_deterministic_algorithms_warn_only_enabled()
        if is_ordered:
            torch.use_deterministic_algorithms(mode=False)
        try:
            yield
        finally:
            if is_ordered:
                torch.use_deterministic_algorithms(mode=True, warn_only=warns)


def in_any_order(method: _Method) -> _Method:
    """A method whose kernels add in an order that varies on some devices.

    Torch refuses such kernels, or warns of them, where a user's program is set to deterministic
    algorithms; that is the setting of the program's own calls of torch.
    """

    @functools.wraps(method)
    def call(self: Any, *operands: Any, **attributes: Any) -> Any:
        if not _is_ordered():
            return method(self, *operands, **attributes)
        with any_order():
            return method(self, *operands, **attributes)

    return call  # type: ignore[return-value]  # of the signature of the method
