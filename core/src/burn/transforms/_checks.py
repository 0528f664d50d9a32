"""What a call of a compiled function compares with what it was when the function was traced."""

from __future__ import annotations

import operator
import types
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from burn.transforms._code import Code
from burn.transforms._constants import is_same

__all__ = ["ABSENT", "Check", "CheckedContents", "CheckedPath", "CheckedVariable"]

ABSENT: Final = object()
"""Of a variable, attribute or item that is not there."""

_VALUES: Final = (bool, int, float, complex, str, bytes)
"""Classes whose objects are compared by their values."""

_SMALL: Final = 4096
"""Items up to which all items of a container are compared, and bytes of an array; of longer
containers that many are."""


class Check:
    """What is compared.

    Parameters
    ----------
    name : str
        How messages name it.
    value : object
        What it is now.
    """

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.value = value

    def read(self) -> Any:
        """What it is now; `ABSENT` if it is not there."""
        raise NotImplementedError

    def expression(self, code: Code) -> str:
        """What a generated function reads; it may raise."""
        raise NotImplementedError

    def write(self, code: Code) -> None:
        """Let a generated function miss where it is another one.

        What the function itself has changed is not compared: no call would find it as it was.
        """
        if self.read() is self.value:
            self._write(code)

    def _write(self, code: Code) -> None:
        self._compare(code, code.attempt(self.expression(code), self.name))

    def _compare(self, code: Code, found: str) -> None:
        expected = code.shared(self.value, "k")
        condition = f"{found} is {expected}"
        if isinstance(self.value, _VALUES):
            condition += f" or is_same({found}, {expected})"
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

    def _write(self, code: Code) -> None:
        if isinstance(self._owner, types.CellType):
            super()._write(code)
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

    def write(self, code: Code) -> None:
        now = self.read()
        if now is self.value or (isinstance(self.value, _VALUES) and is_same(now, self.value)):
            self._write(code)

    def expression(self, code: Code) -> str:
        owner = code.shared(self._owner, "owner")
        return f"{owner}[{code.constant(self._key)}]" if self._is_item else f"{owner}.{self._key}"

    def _write(self, code: Code) -> None:
        if self.value is ABSENT:
            owner = code.shared(self._owner, "owner")
            code.unless(f"not hasattr({owner}, {self._key!r})", self.name)
        else:
            super()._write(code)


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

    def _write(self, code: Code) -> None:
        code.unless(f"{code.constant(self.value.are_same)}()", self.name)


class _Contents:
    """The items of a container as they are now."""

    def __init__(self, owner: Any) -> None:
        self._owner = owner
        self._length = len(owner) if owner.__class__ is not np.ndarray else owner.nbytes
        self._keys = list(owner) if isinstance(owner, dict) else None
        self._items = self._now()

    def _now(self) -> Sequence[Any]:
        owner = self._owner
        if isinstance(owner, np.ndarray):
            return owner.tobytes() if owner.nbytes <= _SMALL else _sampled(owner)
        if isinstance(owner, dict):
            return list(owner.values())[:_SMALL]
        if isinstance(owner, set):
            return sorted(owner, key=id)[:_SMALL]
        return list(owner)[:_SMALL]

    def are_same(self) -> bool:
        """Whether the container has the same items, in the same order."""
        owner = self._owner
        if isinstance(owner, np.ndarray):
            return self._now() == self._items
        if len(owner) != self._length or (self._keys is not None and list(owner) != self._keys):
            return False
        items = self._now()
        return all(map(operator.is_, items, self._items)) or all(map(_is_equal, items, self._items))


def _is_equal(one: Any, other: Any) -> bool:
    return one is other or (isinstance(other, _VALUES) and is_same(one, other))


def _sampled(array: Any) -> bytes:
    """Bytes of evenly spaced elements of a large array."""
    step = max(1, array.size // 256)
    return bytes(array.reshape(-1)[::step].tobytes())
