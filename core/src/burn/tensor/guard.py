"""What the public functions do with arguments that make no sense: an error of burn's.

Nothing is checked before a call. When one fails with an exception that is not burn's, its
arguments are looked at, and the error says what was wrong with them.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, Final, TypeVar

import numpy as np

from burn.dispatch import DispatchTensor
from burn.errors import ArgumentError, BurnError, OperandTypeError, ScalarRangeError

__all__ = ["guard_methods", "guard_namespace", "guarded"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_CAUGHT: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    RecursionError,
)
"""What Python raises of values that are not what a function expects."""

_KEYWORDS: Final = {
    "dim": "axis",
    "dims": "axis",
    "axes": "axis",
    "keepdim": "keepdims",
}
"""What other libraries call a parameter, and what it is called here."""


def guarded(function: _Function) -> _Function:
    """The function, with errors of burn's in place of Python's."""
    signature = inspect.signature(function)
    name = function.__name__

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except BurnError as error:
            error.operation = error.operation or name
            raise
        except _CAUGHT as error:
            misuse = _misuse(name, signature, args, kwargs)
            if misuse is not None:
                raise misuse from None
            raise _unexpected(name, signature, args, kwargs, error) from error

    return call  # type: ignore[return-value]  # it has the signature of the function


def guard_namespace(namespace: dict[str, Any]) -> None:
    """Guard the public functions of a module of burn's, given its variables."""
    for name in namespace.get("__all__", list(namespace)):
        member = namespace[name]
        own = isinstance(member, FunctionType) and member.__module__.startswith("burn.tensor")
        if own and not hasattr(member, "__wrapped__"):
            namespace[name] = guarded(member)
        elif isinstance(member, ModuleType) and member.__name__.startswith("burn.tensor"):
            guard_namespace(vars(member))


def guard_methods(kind: type, namespace: dict[str, Any]) -> None:
    """Make methods that are guarded functions of a namespace those functions."""
    for name, member in list(vars(kind).items()):
        function = namespace.get(name)
        if getattr(function, "__wrapped__", None) is member:
            setattr(kind, name, function)


def _misuse(
    name: str, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> BurnError | None:
    """What is wrong with a call by the signature alone."""
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as mistake:
        hint = _keyword_hint(name, signature, kwargs) + f"It is {_shown(name, signature)}"
        return OperandTypeError(f"{mistake}", hint=hint, operation=name)
    for parameter, value in bound.arguments.items():
        wanted = str(signature.parameters[parameter].annotation)
        if wanted == "Tensor" and not isinstance(value, DispatchTensor):
            return OperandTypeError(
                f"{parameter} must be a tensor, not {_described(value)}",
                hint="burn.asarray() makes a tensor of numbers, sequences and arrays",
                operation=name,
            )
    return None


def _keyword_hint(name: str, signature: inspect.Signature, kwargs: dict[str, Any]) -> str:
    """What the first unknown keyword is called here, as a sentence; "" if nothing is like it."""
    if "out" in kwargs:  # as NumPy's functions pass it to the methods of what is no NumPy array
        return f"NumPy's functions take no tensors: call burn.{name}, or convert with .numpy(). "
    known = signature.parameters
    for keyword in kwargs:
        if keyword not in known:
            similar = [_KEYWORDS.get(keyword, ""), *difflib.get_close_matches(keyword, known, n=1)]
            for one in similar:
                if one in known:
                    return f"The keyword is {one}. "
    return ""


def _unexpected(
    name: str,
    signature: inspect.Signature,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    error: Exception,
) -> BurnError:
    """An error of Python's out of a call that fits the signature, as one of burn's."""
    arguments = signature.bind(*args, **kwargs).arguments
    got = ", ".join(f"{key}={_described(value)}" for key, value in arguments.items())
    kind: type[BurnError] = OperandTypeError
    if isinstance(error, OverflowError):
        kind = ScalarRangeError
    elif isinstance(error, (ArithmeticError, ValueError)):
        kind = ArgumentError
    return kind(
        f"cannot work with these arguments: {error}",
        hint=f"It is {_shown(name, signature)}",
        operation=f"{name}({got})",
    )


def _shown(name: str, signature: inspect.Signature) -> str:
    """A signature without types, which are long, and aliases of this package."""
    bare = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
    ]
    return f"{name}{inspect.Signature(bare)}"


def _described(value: Any) -> str:
    if isinstance(value, DispatchTensor):
        shape = ", ".join(map(str, value.primitive.shape))
        return f"{value.tensor_type.dtype}[{shape}]"
    if isinstance(value, (bool, int, float, complex, str, np.generic, type(None))):
        return repr(value)
    return f"an object of type {type(value).__name__}"
