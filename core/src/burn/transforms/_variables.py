"""The variables outside of a function that its code reads."""

from __future__ import annotations

import dis
import types
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from burn.transforms._code import Code

__all__ = ["Variable", "variables_of"]

_VALUES: Final = (bool, int, float, complex, str, bytes)
"""Classes whose objects are compared by their values."""

_FIXED: Final = (type, types.ModuleType, types.BuiltinFunctionType)
"""Classes whose objects are not compared: who names them hardly ever means another one later."""

_MISSING: Final = object()


class Variable(NamedTuple):
    """A variable outside of a function: in a function around it, or of its module.

    Attributes
    ----------
    name : str
        How messages name it.
    owner : cell or dict
        What holds its value: a cell, or the global variables of a module.
    key : str
        Its name in the owner.
    value : object
        What it had when the function was traced.
    """

    name: str
    owner: Any
    key: str
    value: Any

    @property
    def is_cell(self) -> bool:
        """Whether it is of a function around it."""
        return isinstance(self.owner, types.CellType)

    def check(self, code: Code) -> None:
        """Let a generated function miss where the variable has another value."""
        if _read(self.owner, self.key) is not self.value:
            return  # the function itself gives it another one
        if isinstance(self.owner, types.CellType):
            found = code.contents(self.owner, self.name)
        else:
            found = f"{code.shared(self.owner, 'around')}.get({self.key!r})"
        expected = code.shared(self.value, "k")
        condition = f"{found} is {expected}"
        if isinstance(self.value, _VALUES):
            condition += f" or is_same({found}, {expected})"
        code.unless(condition, self.name)


def variables_of(function: Callable[..., Any]) -> list[Variable]:
    """The variables outside that a function reads, and those functions of its package.

    Parameters
    ----------
    function : callable
        A function or a method.

    Returns
    -------
    list of Variable
        Each once, without those that hold classes, modules of Python, or functions of burn.

    Examples
    --------
    >>> def scaled_by(rate):
    ...     return lambda x: rate * x
    >>> [(one.key, one.value) for one in variables_of(scaled_by(0.5))]
    [('rate', 0.5)]
    """
    found: dict[tuple[int, str], Variable] = {}
    waiting = [_plain(function)]
    seen = set()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        for variable in _named(one):
            value = variable.value
            inner = _plain(value)
            if isinstance(value, _FIXED) or (inner and _is_burn(inner) and not inner.__closure__):
                continue
            found[id(variable.owner), variable.key] = variable
            if inner and (variable.is_cell or _is_burn(inner) or _package(inner) == _package(one)):
                waiting.append(inner)
    return list(found.values())


def _plain(value: Any) -> types.FunctionType | None:
    """The function with code that a method, or another object around it, calls."""
    value = getattr(value, "__func__", value)
    if not isinstance(value, types.FunctionType):
        value = vars(value).get("__wrapped__") if hasattr(value, "__dict__") else None
    return value if isinstance(value, types.FunctionType) else None


def _package(function: types.FunctionType) -> str:
    """The package whose code a function is; that of a decorator, where it has wrapped one."""
    return str(function.__globals__.get("__name__")).partition(".")[0]


def _is_burn(function: types.FunctionType) -> bool:
    return _package(function) == "burn"


def _named(function: types.FunctionType) -> Iterator[Variable]:
    """The variables that have values among those that the code of a function names."""
    code = function.__code__
    for key, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        value = _read(cell, key)
        if value is not _MISSING:
            yield Variable(f"the variable {key!r} around {function.__qualname__}", cell, key, value)
    names = {} if _is_burn(function) else function.__globals__
    for key in dict.fromkeys(_global_names(code)):
        value = names.get(key, _MISSING)
        if value is not _MISSING:
            name = f"the global variable {key!r} of {names.get('__name__')}"
            yield Variable(name, names, key, value)


def _global_names(code: types.CodeType) -> Iterator[str]:
    """The global names that a code reads, and those of the functions in it."""
    for one in dis.get_instructions(code):
        if one.opname == "LOAD_GLOBAL":
            yield one.argval
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _global_names(constant)


def _read(owner: Any, key: str) -> Any:
    """The value of a variable, if it has one."""
    if isinstance(owner, dict):
        return owner.get(key, _MISSING)
    try:
        return owner.cell_contents
    except ValueError:  # it has none
        return _MISSING
