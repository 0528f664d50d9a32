"""What the public functions do with arguments that make no sense: an error of burn's.

Nothing is checked before a call. When one fails with an exception that is not burn's, its
arguments are looked at, and the error says what was wrong with them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, Final, TypeVar

import numpy as np

from burn.dispatch import DispatchTensor
from burn.errors import ArgumentError, BurnError, OperandTypeError, ScalarRangeError

__all__ = ["guard_namespace", "guarded"]

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


def guarded(function: _Function) -> _Function:
    """The function, with errors of burn's in place of Python's."""
    signature = inspect.signature(function)
    name = function.__name__

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except BurnError:
            raise
        except _CAUGHT as error:
            raise _explained(name, signature, args, kwargs, error) from error

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


def _explained(
    name: str,
    signature: inspect.Signature,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    error: Exception,
) -> BurnError:
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as mistake:
        return OperandTypeError(f"{mistake}", hint=f"It is {name}{signature}", operation=name)
    for parameter, value in bound.arguments.items():
        wanted = str(signature.parameters[parameter].annotation)
        if wanted == "Tensor" and not isinstance(value, DispatchTensor):
            return OperandTypeError(
                f"{parameter} must be a tensor, not {_described(value)}",
                hint="burn.asarray() makes a tensor of numbers, sequences and arrays",
                operation=name,
            )
    got = ", ".join(f"{key}={_described(value)}" for key, value in bound.arguments.items())
    kind: type[BurnError] = OperandTypeError
    if isinstance(error, OverflowError):
        kind = ScalarRangeError
    elif isinstance(error, (ArithmeticError, ValueError)):
        kind = ArgumentError
    return kind(
        f"cannot work with these arguments: {error}",
        hint=f"It is {name}{signature}",
        operation=f"{name}({got})",
    )


def _described(value: Any) -> str:
    if isinstance(value, DispatchTensor):
        shape = ", ".join(map(str, value.primitive.shape))
        return f"{value.tensor_type.dtype}[{shape}]"
    if isinstance(value, (bool, int, float, complex, str, np.generic, type(None))):
        return repr(value)
    return f"an object of type {type(value).__name__}"
