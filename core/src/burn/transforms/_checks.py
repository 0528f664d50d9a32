"""What a call of a compiled function compares with what it was when the function was traced."""

from __future__ import annotations

import operator
import types
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from burn.transforms._code import Code
from burn.transforms._constants import is_same

__all__ = [
    "ABSENT",
    "MAX_COMPARED_BYTES",
    "Check",
    "CheckedCache",
    "CheckedCall",
    "CheckedContents",
    "CheckedPath",
    "CheckedVariable",
    "is_equal",
]

ABSENT: Final = object()
"""Of a variable, attribute or item that is not there."""

_VALUES: Final = (bool, int, float, complex, str, bytes, np.generic)
"""Classes whose objects are compared by their values, as are tuples of them."""

MAX_COMPARED_BYTES: Final = 1 << 20
"""Bytes up to which arrays are compared as a whole; of larger ones evenly spaced elements are."""

_SAMPLES: Final = 4096
"""Elements of a large array that are compared."""


class Check:
    """What is compared.

    Parameters
    ----------
    name : str
        How messages name it.
    value : object
        What it is now.

    Attributes
    ----------
    is_of_burn : bool
        Whether it belongs to an object of burn, which may be another while a function is traced.
    """

    is_of_burn = False

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.value = value

    def read(self) -> Any:
        """What it is now; `ABSENT` if it is not there."""
        raise NotImplementedError

    def expression(self, code: Code) -> str:
        """What a generated function reads; it may raise."""
        raise NotImplementedError

    @property
    def is_value(self) -> bool:
        """Whether it is a number, a text, or a tuple of these."""
        return _is_value(self.value)

    def is_unchanged(self) -> bool:
        """Whether it is what it was."""
        return is_equal(self.read(), self.value)

    def write(self, code: Code) -> None:
        """Let a generated function miss where it is another one."""
        self._compare(code, code.attempt(self.expression(code), self.name))

    def _compare(self, code: Code, found: str) -> None:
        expected = code.shared(self.value, "k")
        condition = f"{found} is {expected}"
        if _is_value(self.value) or issubclass(type(self.value), types.MethodType):
            condition += f" or {code.constant(is_equal)}({found}, {expected})"
        code.unless(condition, self.name)


class CheckedVariable(Check):
    """A variable outside of a function: in a function around it, or of its module.

    Parameters
    ----------
    name : str
        How messages name it.
    owner : cell or dict
        What holds its value: a cell, or the global variables of a module.
    key : str
        Its name in the owner.
    """

    def __init__(self, name: str, owner: Any, key: str) -> None:
        self._owner = owner
        self._key = key
        super().__init__(name, self.read())

    def read(self) -> Any:
        if isinstance(self._owner, dict):
            return self._owner.get(self._key, ABSENT)
        try:
            return self._owner.cell_contents
        except ValueError:  # it has none
            return ABSENT

    def expression(self, code: Code) -> str:
        if isinstance(self._owner, types.CellType):
            return f"{code.shared(self._owner, 'cell')}.cell_contents"
        return f"{code.shared(self._owner, 'around')}.get({self._key!r})"

    def write(self, code: Code) -> None:
        if isinstance(self._owner, types.CellType):
            super().write(code)
        else:
            self._compare(code, self.expression(code))


class CheckedPath(Check):
    """An attribute or an item of an object.

    Parameters
    ----------
    name : str
        How messages name it.
    owner : object
        Whose it is.
    key : object
        The name of the attribute, or the key of the item.
    value : object
        What it is; `ABSENT` if there is none.
    is_item : bool
        Whether it is an item.
    """

    def __init__(
        self, name: str, owner: Any, key: Any, value: Any, *, is_item: bool = False
    ) -> None:
        self._owner = owner
        self._key = key
        self._is_item = is_item
        super().__init__(name, value)

    def read(self) -> Any:
        try:
            return self._owner[self._key] if self._is_item else getattr(self._owner, self._key)
        except Exception:  # noqa: BLE001 — of whatever code computes it
            return ABSENT

    def expression(self, code: Code) -> str:
        owner = code.shared(self._owner, "owner")
        return f"{owner}[{code.constant(self._key)}]" if self._is_item else f"{owner}.{self._key}"

    def write(self, code: Code) -> None:
        if self.value is not ABSENT:
            super().write(code)
            return
        owner, key = code.shared(self._owner, "owner"), code.constant(self._key)
        absent = f"{key} not in {owner}" if self._is_item else f"not hasattr({owner}, {key})"
        code.unless(absent, self.name)


class CheckedCache(CheckedPath):
    """An item that the function may add: it is compared with what is there after the trace."""

    def __init__(self, name: str, owner: Any, key: Any) -> None:
        super().__init__(name, owner, key, ABSENT, is_item=True)

    def is_unchanged(self) -> bool:
        """Whether nothing was added, or a number: what an object holds a later trace knows."""
        self.value = self.read()
        return self.value is ABSENT or self.is_value


class CheckedCall(Check):
    """What a function gives, such as a reference.

    Parameters
    ----------
    name : str
        How messages name it.
    function : callable
        The function, which changes nothing.
    args : tuple
        Its arguments.
    """

    def __init__(self, name: str, function: Any, args: tuple[Any, ...]) -> None:
        self._function = function
        self._args = args
        super().__init__(name, self.read())

    def read(self) -> Any:
        try:
            return self._function(*self._args)
        except Exception:  # noqa: BLE001 — of whatever function it is
            return ABSENT

    def expression(self, code: Code) -> str:
        return f"{code.constant(self.read)}()"

    def write(self, code: Code) -> None:
        expected = code.shared(self.value, "k")
        code.unless(f"{code.constant(is_equal)}({self.expression(code)}, {expected})", self.name)


class CheckedContents(Check):
    """All items of a container, or the elements of an array.

    Parameters
    ----------
    name : str
        How messages name it.
    owner : container or array
        The container.
    """

    def __init__(self, name: str, owner: Any) -> None:
        self._owner = owner
        super().__init__(name, _Contents(owner))

    def read(self) -> Any:
        return self.value if self.value.are_same() else ABSENT

    def write(self, code: Code) -> None:
        code.unless(f"{code.constant(self.value.are_same)}()", self.name)

    @property
    def items(self) -> Sequence[Any]:
        """The items of a container."""
        items: Sequence[Any] = self.value.items
        return items


class _Contents:
    """The items of a container as they are now."""

    def __init__(self, owner: Any) -> None:
        self._owner = owner
        self._is_mapping = isinstance(owner, Mapping)
        self._length = owner.size if isinstance(owner, np.ndarray) else len(owner)
        self._keys = list(owner) if self._is_mapping else None
        self.items = self._now()

    def _now(self) -> Any:
        owner = self._owner
        if isinstance(owner, np.ndarray):
            return owner.shape, owner.dtype, _elements(owner)
        if self._is_mapping:
            return list(owner.values())
        return sorted(owner, key=id) if isinstance(owner, set) else list(owner)

    def are_same(self) -> bool:
        """Whether the container has the same items, in the same order."""
        owner = self._owner
        if isinstance(owner, np.ndarray):
            return bool(self._now() == self.items)
        if len(owner) != self._length or (self._keys is not None and list(owner) != self._keys):
            return False
        items = self._now()
        return all(map(operator.is_, items, self.items)) or all(map(is_equal, items, self.items))


def is_equal(one: Any, other: Any) -> bool:
    """Whether a value is the one that it was: the same object, or an equal number or text."""
    if one is other:
        return True
    if type(one) is types.MethodType and type(other) is types.MethodType:
        return one.__self__ is other.__self__ and one.__func__ is other.__func__
    if issubclass(type(one), tuple) and type(one) is type(other):
        return len(one) == len(other) and all(map(is_equal, one, other))
    return issubclass(type(other), _VALUES) and is_same(one, other)


def _is_value(value: Any) -> bool:
    if issubclass(type(value), tuple):
        return all(map(_is_value, value))
    return issubclass(type(value), _VALUES)


def _elements(array: Any) -> Any:
    """A copy of the bytes of an array, or of evenly spaced elements of a large one."""
    if array.dtype.hasobject:
        return list(array.flat)
    flat = array.reshape(-1)
    if array.nbytes > MAX_COMPARED_BYTES:
        flat = flat[:: max(1, array.size // _SAMPLES)]
    return flat.tobytes()
