"""Contexts of automatic differentiation, and what is computed of all gradients together."""

from __future__ import annotations

import contextlib
from contextvars import Token
from typing import TYPE_CHECKING, Any, Final

from burn.autodiff import recording
from burn.dispatch import Gradients
from burn.dtype import float32
from burn.errors import ArgumentError
from burn.functions.linalg.norms import vector_norm
from burn.functions.manipulation import astype, concat, stack
from burn.functions.normalize import check_tensor
from burn.functions.quantization import numbers_of
from burn.tree import leaves

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["global_norm", "no_grad"]

_SMALL: Final = 2**16
"""Number of elements up to which a copy costs less than a norm of its own."""


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
    small: dict[Any, list[Tensor]] = {}  # those of one device and dtype are joined
    tensors = leaves(list(x.values()) if isinstance(x, Gradients) else x)
    for leaf in tensors:
        check_tensor(leaf, "each leaf", "global_norm")
        tensor = numbers_of(leaf)
        if tensor.size <= _SMALL:
            small.setdefault(tensor.tensor_type, []).append(tensor)
        else:
            norms.append(_norm(tensor, ord))
    norms += [_norm(concat(item, axis=None), ord) for item in small.values()]
    if not tensors:
        raise ArgumentError(
            "there is no tensor", hint="Pass gradients, or tensors", operation="global_norm"
        )
    device = tensors[0].device
    together = stack([norm if norm.device == device else norm.to_device(device) for norm in norms])
    return together.sum() if ord == 0 else vector_norm(together, ord=ord)


def _norm(x: Tensor, ord: float) -> Tensor:
    is_half = x.dtype.is_float and x.dtype.bits < 32
    return vector_norm(astype(x, float32) if is_half else x, ord=ord)
