"""Ops run in a context in which their library does not warn about float results.

NumPy, and what is built on it, keeps its error state in a context variable: in a Context that was
copied inside of `Backend.quiet` it neither warns nor raises nor calls a handler, whatever the user
set, and what the user set stays as it is.

A Context runs one function at a time. So each call of an op runs in a copy of its own, and no call
meets another one, of another thread or around it. The copy shares the variables: it takes 30 ns,
half of what a thread takes to find a Context of its own. To enter ``numpy.errstate`` takes 1000.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from burn.ops.op import Op
    from burn.ops.signature import Primitive

__all__ = ["quiet_context", "run_in", "without_frame"]


def quiet_context(backend: Any) -> Context | None:
    """A Context in which a backend's library is quiet; None if no context variable says so."""

    def inside() -> Context:
        with backend.quiet():
            return copy_context()

    return Context().run(inside) or None  # an empty one is False


def run_in(context: Context, definition: Op, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of an op, each call of which runs in a copy of a Context."""
    copy = context.copy

    def call(*operands: Primitive, **attributes: Any) -> Any:
        return copy().run(function, *operands, **attributes)

    def call_one(x: Primitive, /) -> Any:  # to hand on any operands takes a third of a small op
        return copy().run(function, x)

    def call_two(x1: Primitive, x2: Primitive, /) -> Any:
        return copy().run(function, x1, x2)

    unrolled = {1: call_one, 2: call_two}.get(len(definition.operands), call)
    found: Any = call if definition.attributes else unrolled
    found.in_context = copy, function
    choose = getattr(function, "specialize", None)
    if choose is not None:
        found.specialize = lambda dtype: run_in(context, definition, choose(dtype))
    return found  # type: ignore[no-any-return]  # functions take attributes


def without_frame(
    function: Callable[..., Any],
) -> tuple[Callable[[], Context] | None, Callable[..., Any]]:
    """What makes the Context of a call of an op, or None; and the function to run there.

    Generated code calls that itself, which saves the frame of a function of Python.
    """
    found: tuple[Callable[[], Context] | None, Callable[..., Any]]
    found = getattr(function, "in_context", (None, function))
    return found
