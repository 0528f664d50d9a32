"""Contexts of automatic differentiation."""

from __future__ import annotations

import contextlib
from contextvars import Token

from burn.autodiff import recording

__all__ = ["no_grad"]


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
        self._tokens: list[Token[bool]] = []

    def __enter__(self) -> None:
        self._tokens.append(recording.set(False))

    def __exit__(self, *exception: object) -> None:
        recording.reset(self._tokens.pop())

    def _recreate_cm(self) -> no_grad:
        # As a decorator: one context per call, so that functions may call themselves.
        return no_grad()
