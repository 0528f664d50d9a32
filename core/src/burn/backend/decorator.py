"""Decorator: base of a backend over another one; and `found_by_name`, which it is made with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from burn.backend.base import Backend

__all__ = ["Decorator", "FoundByName", "found_by_name"]

_Class = TypeVar("_Class", bound=type)

if TYPE_CHECKING:
    FoundByName: TypeAlias = Any
else:

    class FoundByName:
        """Base of classes with `found_by_name`.

        To a type checker it is `Any`, since the members that `__getattr__` finds would be abstract.
        """


def found_by_name(names: Iterable[str]) -> Callable[[_Class], _Class]:
    """Class decorator: what the base classes have under these names, `__getattr__` finds instead.

    Without it the members of a protocol that the class inherits from would come first.
    """

    def decorate(cls: _Class) -> _Class:
        for name in names:
            if name not in vars(cls):
                setattr(cls, name, _Found(name))
        return cls

    return decorate


class _Found:
    """A member that the object's `__getattr__` finds."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, owner: Any, cls: type) -> Any:
        return self if owner is None else owner.__getattr__(self._name)


@found_by_name([name for name in dir(Backend) if not name.startswith("_")])
class Decorator(FoundByName, Backend):  # type: ignore[misc]  # Any as a base, see FoundByName
    """A backend over another, which has all members that a subclass does not define.

    Parameters
    ----------
    below : Backend
        The backend that computes.
    """

    def __init__(self, below: Backend) -> None:
        self.below = below

    def __getattr__(self, name: str) -> Any:
        return getattr(self.below, name)
