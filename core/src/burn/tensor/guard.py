"""What the public functions do with NumPy's numbers, and with arguments that make no sense.

A scalar of NumPy's is the Python number of its value wherever a function takes numbers. Nothing
else is looked at before a call. When one fails with an exception that is not burn's, the error says
what was wrong with its arguments.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, Final, TypeVar

import numpy as np

from burn.device import Device
from burn.dispatch import DispatchTensor, as_python
from burn.dtype import DType
from burn.errors import ArgumentError, BurnError, OperandTypeError, ScalarRangeError
from burn.tensor.tensor import Tensor

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

_PLAIN: Final = frozenset(
    {Tensor, DType, Device, bool, int, float, complex, str, tuple, list, type(None)}
)
"""Types of arguments that are no scalars of NumPy's.

Whether sequences hold some is for `as_shape`, `normalize_axes` and their like to see, which look at
each element anyway.
"""

_NO_NUMBERS: Final = ("Any", "Tensor", "Tensor | None", "Sequence[Tensor]")
"""Annotations of parameters that are no numbers; of any type is what a tensor is made of."""

_KEYWORDS: Final = {
    "dim": "axis",
    "dims": "axis",
    "axes": "axis",
    "keepdim": "keepdims",
}
"""What other libraries call a parameter, and what it is called here."""


def guarded(function: _Function) -> _Function:
    """The function, with Python's numbers for those of NumPy, and burn's errors for Python's."""
    signature = inspect.signature(function)
    name = function.__name__
    first = _first_number(signature)
    flags = {
        key: one.annotation
        for key, one in signature.parameters.items()
        if one.annotation in ("bool", "bool | None")
    }

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            for key, value in kwargs.items():
                if value.__class__ not in _PLAIN or (key in flags and value.__class__ is not bool):
                    kwargs = {key: _argument(key, one, flags) for key, one in kwargs.items()}
                    break
            if len(args) > first:
                for value in args[first:]:
                    if value.__class__ not in _PLAIN:
                        args = (*args[:first], *map(_in_python, args[first:]))
                        break
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


def _first_number(signature: inspect.Signature) -> int:
    """The position of the first parameter that may be a number."""
    for position, parameter in enumerate(signature.parameters.values()):
        if parameter.annotation not in _NO_NUMBERS:
            return position
    return len(signature.parameters)


def _argument(key: str, value: Any, flags: dict[str, Any]) -> Any:
    """A keyword argument in Python's numbers; refuses what says neither yes nor no."""
    value = _in_python(value)
    if key not in flags or value.__class__ is bool or (value is None and flags[key] != "bool"):
        return value
    if value.__class__ is int and value in (0, 1):
        return value == 1
    raise OperandTypeError(f"{key} must be True or False, not {value!r}")


def _in_python(value: Any) -> Any:
    """An argument with Python's numbers in place of NumPy's scalars and 0-d integer arrays."""
    if value.__class__ in (tuple, list):
        return value.__class__(map(_in_python, value))
    if isinstance(value, np.ndarray) and not value.ndim and value.dtype.kind in "iu":
        return value.item()
    return as_python(value)


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
