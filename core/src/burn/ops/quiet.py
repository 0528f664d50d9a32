"""Ops run in a context in which their library does not warn about float results.

NumPy, and what is built on it, keeps its error state in a context variable: in a Context that was
copied inside of `Backend.quiet` it neither warns nor raises nor calls a handler, whatever the user
set, and what the user set stays as it is. To run a function in a Context takes some 30 ns; to enter
``numpy.errstate`` around it takes a microsecond.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context, copy_context
from types import MethodType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from burn.dtype import DType
    from burn.ops.op import Op
    from burn.ops.signature import Primitive

__all__ = ["is_busy", "quiet_context", "run_in"]


def quiet_context(backend: Any) -> Context | None:
    """A Context in which a backend's library is quiet; None if no context variable says so."""

    def inside() -> Context:
        with backend.quiet():
            return copy_context()

    return Context().run(inside) or None  # an empty one is False


def is_busy(error: Exception) -> bool:
    """Whether a function did not run because its Context was running another one."""
    return isinstance(error, RuntimeError) and str(error).startswith("cannot enter context")


def run_in(context: Context, definition: Op, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of an op, run in a Context.

    A Context runs one function at a time: another thread meanwhile gets a copy of it. What
    `specialize` gives raises in that case (`is_busy`), and `Dispatch.recover` calls this instead.
    """
    copy = context.copy
    shared: Callable[..., Any] = MethodType(copy().run, function)  # calls run(function, ...)

    def retry(error: RuntimeError, *operands: Primitive, **attributes: Any) -> Any:
        if not is_busy(error):
            raise error
        return copy().run(function, *operands, **attributes)

    def call(*operands: Primitive, **attributes: Any) -> Any:
        try:
            return shared(*operands, **attributes)
        except RuntimeError as error:
            return retry(error, *operands, **attributes)

    def call_one(x: Primitive, /) -> Any:  # to hand on any operands takes a third of a small op
        try:
            return shared(x)
        except RuntimeError as error:
            return retry(error, x)

    def call_two(x1: Primitive, x2: Primitive, /) -> Any:
        try:
            return shared(x1, x2)
        except RuntimeError as error:
            return retry(error, x1, x2)

    def specialize(dtype: DType) -> Callable[..., Any]:
        choose = getattr(function, "specialize", None)
        return MethodType(copy().run, choose(dtype) if choose else function)

    unrolled = {1: call_one, 2: call_two}.get(len(definition.operands), call)
    found: Any = call if definition.attributes else unrolled
    found.specialize = specialize
    return found  # type: ignore[no-any-return]  # functions take attributes
