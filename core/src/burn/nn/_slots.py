"""The tensors and modules among the attributes of a module, by their paths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from burn.tensor.tensor import Tensor

if TYPE_CHECKING:
    from burn.nn.module import Module

__all__ = ["STATE", "Slot", "found_in", "is_container", "modules_of", "slots_of", "walk"]

STATE = "_module_state"
"""The attribute of a module that is none of the user's."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A tensor in a tree of modules.

    Attributes
    ----------
    path : str
        From the root of the tree: ``layers.0.weight``.
    owner : Module
        The module whose attribute it is, or in whose attribute's containers it is.
    local : str
        The path from the owner.
    tensor : Tensor
        The tensor.
    """

    path: str
    owner: Module
    local: str
    tensor: Tensor

    @property
    def attribute(self) -> str:
        """Name of the owner's attribute."""
        return self.local.partition(".")[0]

    @property
    def is_transient(self) -> bool:
        """Whether it is computed, so that nothing saves it."""
        return self.attribute in self.owner.transient

    @property
    def is_parameter(self) -> bool:
        """Whether it is a float tensor that is no buffer."""
        owner, name = self.owner, self.attribute
        return (
            self.tensor.dtype.is_float and name not in owner.buffers and name not in owner.transient
        )

    @property
    def is_frozen(self) -> bool:
        """Whether it is a parameter that is not trained."""
        return self.local in getattr(self.owner, STATE).frozen


def slots_of(module: Module) -> list[Slot]:
    """Every tensor of a tree of modules, in the order of the attributes.

    A module at several paths has the first; a tensor at several paths has a slot for each.
    """
    return [slot for slot in walk(module) if isinstance(slot, Slot)]


def modules_of(module: Module) -> list[tuple[str, Module]]:
    """Every module of a tree with its path, the root first, each once."""
    return [one for one in walk(module) if not isinstance(one, Slot)]


def walk(module: Module) -> Iterator[Slot | tuple[str, Module]]:
    """All of `slots_of` and `modules_of`; a module comes before its tensors."""
    return _walk(module, "", set())


def found_in(value: object, owner: Module, name: str) -> Iterator[Slot | tuple[str, Module]]:
    """The tensors in the value of an attribute, and the modules with their paths."""
    return _visit(value, owner, "", name, set())


def is_container(value: object) -> bool:
    """Whether tensors and modules are looked for in an object."""
    return isinstance(value, (list, tuple, dict))


def _walk(module: Module, prefix: str, seen: set[int]) -> Iterator[Slot | tuple[str, Module]]:
    seen.add(id(module))
    yield prefix.removesuffix("."), module
    for name, value in vars(module).items():
        if name != STATE:
            yield from _visit(value, module, prefix, name, seen)


def _visit(
    value: Any, owner: Module, prefix: str, local: str, seen: set[int]
) -> Iterator[Slot | tuple[str, Module]]:
    if isinstance(value, Tensor):
        yield Slot(prefix + local, owner, local, value)
    elif hasattr(value, STATE):
        if id(value) not in seen:
            yield from _walk(value, f"{prefix}{local}.", seen)
    elif is_container(value) and id(value) not in seen:
        seen.add(id(value))
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, one in items:
            yield from _visit(one, owner, prefix, f"{local}.{key}", seen)
