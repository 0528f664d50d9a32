"""Whether a module is as it was when a function that uses it was compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from burn.devices import running_trace, watches
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

    The first call after the trace says how they are to be. What the traced function has changed
    itself is left out, such as a number of calls: no program changes it.

    Parameters
    ----------
    module : Module
        The module.
    """

    def __init__(self, module: Module) -> None:
        self._module = ref(module)  # the function holds it, unless it has made it
        self._seen = -1
        self._before = _Snapshot(module)
        self._expected: _Snapshot | None = None
        self._containers: list[tuple[Any, list[int]]] = []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Watch) and self._module() is other._module()

    def __hash__(self) -> int:
        return hash(self._module)

    def __call__(self) -> bool:
        if self._seen == _changes[0]:
            containers = self._containers
            # A list, since a generator takes longer.
            return not containers or all([_ids(held) == ids for held, ids in containers])  # noqa: C419
        if running_trace() is not None:
            return True
        seen = _changes[0]
        found = _Snapshot(self._module())
        if self._expected is None:
            for key in found.different(self._before):
                found.values.pop(key, None)
                found.left_out.add(key)
            self._before = self._expected = found
            self._containers = [(container, _ids(container)) for container in found.containers]
        elif found.different(self._expected):
            return False
        self._seen = seen
        return True


def _ids(container: Any) -> list[int]:
    return [*map(id, container.values() if isinstance(container, dict) else container)]


class _Snapshot:
    """What a module and all below it have.

    Attributes
    ----------
    values : dict
        Attributes, items and modes, by the object that has them and their names there.
    containers : list
        The lists and dicts.
    left_out : set
        Keys whose values do not matter.
    """

    def __init__(self, module: Module | None) -> None:
        self.values: dict[tuple[int, Any], Any] = {}
        self.containers: list[Any] = []
        self.left_out: set[tuple[int, Any]] = set()
        if module is not None:
            self._look(module, set())

    def _look(self, value: Any, seen: set[int]) -> None:
        """Add all that is in a module or container."""
        own = id(value)
        if own in seen:
            return
        seen.add(own)
        if is_module(value):
            state = value._module_state
            modes = (state.is_eval, state.precision, state.frozen)
            items = [(name, item) for name, item in vars(value).items() if name != STATE]
            items.append((STATE, modes))
        else:
            items = list(value.items() if isinstance(value, dict) else enumerate(value))
            if not isinstance(value, tuple):
                self.containers.append(value)
        for key, item in items:
            self.values[own, key] = item
            is_plain = key == STATE or item.__class__ in PLAIN
            if not is_plain and (is_module(item) or is_container(item)):
                self._look(item, seen)

    def different(self, other: _Snapshot) -> list[tuple[int, Any]]:
        """The keys of values that another snapshot does not have, or has others for."""
        values, others = self.values, other.values
        found = [
            key
            for key, value in values.items()
            if key not in other.left_out and (key not in others or not _is_same(value, others[key]))
        ]
        return found + [key for key in others if key not in values and key not in self.left_out]


def _is_same(one: Any, other: Any) -> bool:
    """Whether two objects are one, or plain ones of one value: 0.0 is not -0.0, and NaN is NaN."""
    if one is other:
        return True
    kind = one.__class__
    if kind is not other.__class__:
        return False
    if kind is float:
        return repr(one) == repr(other)
    return (kind in PLAIN or kind is tuple) and bool(one == other)


def _watch_of(value: object) -> Watch | None:
    """The watch of what a compiled function finds around it, if that is a module."""
    return Watch(value) if is_module(value) else None  # type: ignore[arg-type]  # it is one


watches.append(_watch_of)
