"""What a program has as constants: values of arguments, and all of a module but its parameters."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import numpy as np

from burn.errors import ArgumentError
from burn.transforms._arguments import is_tensor
from burn.tree import Structure

__all__ = ["as_it_is_now", "check_module", "is_module_part", "is_record", "is_same", "modules_in"]


def is_module_part(metadata: Any) -> bool:
    """Whether something is what a module is beside its trainable parameters."""
    return hasattr(type(metadata), "constants")


def modules_in(structure: Structure) -> list[Any]:
    """What containers have of modules beside their trainable parameters."""
    own = [structure.metadata] if is_module_part(structure.metadata) else []
    parts = [modules_in(child) for child in structure.children if child.kind is not None]
    return own + [item for part in parts for item in part]


def check_module(expected: Any, given: Any) -> None:
    """Raise ArgumentError unless all of a module but its trainable parameters is as traced."""
    kind = type(given.module).__name__
    if given.modes != expected.modes:
        raise ArgumentError(
            f"in a {kind} train(), eval() or set_precision() was called after it was traced",
            hint="Trace the function for this mode too",
            operation="a program",
        )
    if given.module is expected.module:
        return
    constants = expected.constants
    for path, value in given.constants.items():
        wanted = constants.get(path, value)
        if value is wanted or is_same(value, wanted):
            continue
        what = f"{value!r} where it was {wanted!r}"
        if is_tensor(value) and is_tensor(wanted):
            what = "another tensor than"
        raise ArgumentError(
            f"{path} of a {kind} is {what} when the program was traced",
            hint="All but the trainable parameters of a module is constant in a program: trace the "
            "function for this module too",
            operation="a program",
        )


def as_it_is_now(value: Any) -> Any:
    """A copy of a constant that can change; any other value itself."""
    if isinstance(value, (np.ndarray, set, bytearray, list, dict)):
        return copy.copy(value)
    if not is_record(value):
        return value
    made = copy.copy(value)
    for field in dataclasses.fields(value):
        if hasattr(value, field.name):
            object.__setattr__(made, field.name, as_it_is_now(getattr(value, field.name)))
    return made


def is_record(value: Any) -> bool:
    """Whether a value is an instance of a dataclass that can change."""
    params = getattr(type(value), "__dataclass_params__", None)
    return params is not None and not params.frozen


def is_same(value: Any, expected: Any) -> bool:
    """Whether a value is what a program was traced with, as far as Python tells."""
    kind = expected.__class__
    if value is expected or is_tensor(expected):
        return value is expected
    if kind is np.ndarray:
        return value.__class__ is kind and (
            (value.dtype, value.shape, value.tobytes())
            == (expected.dtype, expected.shape, expected.tobytes())
        )
    if kind in {float, complex} or isinstance(expected, np.inexact):  # 0.0 is not -0.0, NaN is NaN
        return value.__class__ is kind and repr(value) == repr(expected)
    if is_record(expected):
        return value.__class__ is kind and all(
            is_same(getattr(value, field.name, None), getattr(expected, field.name, None))
            for field in dataclasses.fields(expected)
        )
    try:
        is_equal = value.__class__ is kind and bool(value == expected)
    except Exception:  # noqa: BLE001 — of whatever class the value is
        return False
    return is_equal and _has_same_attributes(value, expected)


def _has_same_attributes(value: Any, expected: Any) -> bool:
    """Whether equal objects are equal in all attributes too, which an ``__eq__`` may leave out."""
    names = [*getattr(expected, "__dict__", ()), *getattr(type(expected), "__slots__", ())]
    if getattr(value, "__dict__", {}).keys() != getattr(expected, "__dict__", {}).keys():
        return False
    try:
        return all(
            is_same(getattr(value, name, None), getattr(expected, name, None)) for name in names
        )
    except RecursionError:  # objects in a circle
        return False
