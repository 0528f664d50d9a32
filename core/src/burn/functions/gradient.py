"""Contexts of automatic differentiation, and what is computed of all gradients together."""

from __future__ import annotations

import contextlib
from contextvars import Token
from typing import TYPE_CHECKING, Any

from burn.autodiff import recording
from burn.dispatch import Gradients
from burn.dtype import float32
from burn.errors import ArgumentError
from burn.functions.manipulation import astype, stack
from burn.functions.normalize import check_tensor
from burn.functions.norms import vector_norm
from burn.tree import leaves

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["global_norm", "no_grad"]


class no_grad(contextlib.ContextDecorator):  # noqa: N801 — used like a function
    """Context in which results are untracked, also those of tracked tensors.

    It holds for the current thread or asyncio task. It also decorates functions.

    Examples
    --------
    >>> import burn
    >>> x = burn.ones(2, device=burn.Device("cpu").autodiff()).require_grad()
    >>> with burn.no_grad():
    ...     y = x * 2
    >>> y.is_tracked
    False
    """

    def __init__(self) -> None:
        self._tokens: list[Token[Any]] = []

    def __enter__(self) -> None:
        self._tokens.append(recording.set(False))

    def __exit__(self, *exception: object) -> None:
        recording.reset(self._tokens.pop())

    def _recreate_cm(self) -> no_grad:
        # As a decorator: one context per call, so that functions may call themselves.
        return no_grad()


def global_norm(x: Any, /, *, ord: float = 2) -> Tensor:
    """Norm of all elements of several tensors, as if they were one vector.

    Parameters
    ----------
    x : Gradients, Tensor, or containers of tensors (see `burn.tree`)
        Of any shapes, dtypes and devices. Of gradients those of all leaves.
    ord : number
        As of `burn.linalg.vector_norm`: 2 for the length, 1 for the sum of magnitudes, ``inf`` for
        the largest.

    Returns
    -------
    Tensor
        A scalar on the device of the first tensor; float32 at least.

    Raises
    ------
    ArgumentError
        If there is no tensor.
    OperandTypeError
        If `x` holds something else.

    Examples
    --------
    >>> import burn
    >>> burn.global_norm([burn.asarray([3.0, 0.0]), {"bias": burn.asarray(4.0)}]).item()
    5.0
    """
    norms: list[Tensor] = []
    for tensor in leaves(list(x.values()) if isinstance(x, Gradients) else x):
        check_tensor(tensor, "each leaf", "global_norm")
        is_half = tensor.dtype.is_float and tensor.dtype.bits < 32
        norm = vector_norm(astype(tensor, float32) if is_half else tensor, ord=ord)
        is_elsewhere = norms and norm.device != norms[0].device
        norms.append(norm.to_device(norms[0].device) if is_elsewhere else norm)
    if not norms:
        raise ArgumentError(
            "there is no tensor", hint="Pass gradients, or tensors", operation="global_norm"
        )
    together = stack(norms)
    return together.sum() if ord == 0 else vector_norm(together, ord=ord)
