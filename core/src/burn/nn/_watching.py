"""Whether a module is as it was when a function that uses it was compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from burn.devices import running_trace
from burn.nn._slots import PLAIN, STATE, is_container, is_module

if TYPE_CHECKING:
    from burn.nn.module import Module

__all__ = ["Watch", "count_change"]

_changes: Final = [0]
"""Number of changes of attributes and modes, of all modules."""


def count_change() -> None:
    """Let every `Watch` look at its module again."""
    _changes[0] += 1


class Watch:
    """Whether a module and all below it have the attributes and modes that they had.

    The first call outside of traces says how they are to be. Of containers it looks at their items.

    Parameters
    ----------
    module : Module
        The module.
    """

    def __init__(self, module: Module) -> None:
        self._module = ref(module)  # the function holds it, unless it has made it
        self._seen = -1
        self._expected: list[Any] = []
        self._containers: list[tuple[Any, list[int]]] = []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Watch) and self._module() is other._module()

    def __hash__(self) -> int:
        return hash(self._module)

    def __call__(self) -> bool:
        if self._seen == _changes[0]:
            containers = self._containers
            return not containers or all([_ids(one) == items for one, items in containers])  # noqa: C419 — a generator takes longer
        if running_trace() is not None:
            return True
        seen = _changes[0]
        found: list[Any] = []
        containers: list[Any] = []
        _look(self._module(), found, containers, set())
        if self._expected:
            if not _same(found, self._expected):
                return False
        else:
            self._expected = found
            self._containers = [(one, _ids(one)) for one in containers]
        self._seen = seen
        return True


def _ids(container: Any) -> list[int]:
    return [*map(id, container.values() if isinstance(container, dict) else container)]


def _look(value: Any, found: list[Any], containers: list[Any], seen: set[int]) -> None:
    """Add all that is in a module or container, and the containers that may change."""
    if value is None or id(value) in seen:
        return
    seen.add(id(value))
    items: Any = enumerate(value) if isinstance(value, (list, tuple)) else None
    if is_module(value):
        state = value._module_state
        found += [state.is_eval, state.precision, state.frozen]
        items = [(name, one) for name, one in vars(value).items() if name != STATE]
    elif not isinstance(value, tuple):
        containers.append(value)
    for key, one in value.items() if items is None else items:
        found += [key, one]
        if one.__class__ not in PLAIN and (is_module(one) or is_container(one)):
            _look(one, found, containers, seen)


def _same(found: list[Any], expected: list[Any]) -> bool:
    return len(found) == len(expected) and all(
        one is other or (one.__class__ is other.__class__ and _is_equal(one, other))
        for one, other in zip(found, expected, strict=True)
    )


def _is_equal(one: Any, other: Any) -> bool:
    """Whether two objects of one class are one value: 0.0 is not -0.0, and NaN is NaN."""
    if isinstance(one, float):
        return repr(one) == repr(other)
    return (one.__class__ in PLAIN or isinstance(one, frozenset)) and bool(one == other)
