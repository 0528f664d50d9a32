"""The tensors and modules among the attributes of a module, by their paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from burn.quant_scheme import QDType
from burn.tensor.tensor import Tensor

if TYPE_CHECKING:
    from burn.nn.module import Module

__all__ = [
    "PLAIN",
    "STATE",
    "Slot",
    "Watched",
    "found_in",
    "has_changed",
    "is_container",
    "is_module",
    "modules_of",
    "slots_of",
    "walk",
    "watched_in",
]

STATE = "_module_state"
"""The attribute of a module that is none of the user's."""


@dataclass(slots=True, eq=False)
class Slot:
    """A tensor in a tree of modules.

    Attributes
    ----------
    path : str
        From the root of the tree: ``layers.0.weight``.
    owner : Module
        The module whose attribute it is, or in whose attribute's containers it is.
    attribute : str
        The name of that attribute.
    local : str
        The path from the owner.
    tensor : Tensor
        The tensor.
    """

    path: str
    owner: Module
    attribute: str
    local: str
    tensor: Tensor

    @property
    def is_transient(self) -> bool:
        """Whether it is computed, so that nothing saves it."""
        return self.attribute in self.owner.transient

    @property
    def is_parameter(self) -> bool:
        """Whether it is a float tensor that is no buffer."""
        owner, name = self.owner, self.attribute
        return (
            self.tensor.dtype.is_float
            and not self.is_quantized
            and name not in owner.buffers
            and name not in owner.transient
        )

    @property
    def is_quantized(self) -> bool:
        """Whether it is a quantized tensor: a buffer, as no gradient is taken of it."""
        return isinstance(self.tensor.dtype, QDType)

    @property
    def is_frozen(self) -> bool:
        """Whether it is a parameter that is not trained."""
        return self.local in getattr(self.owner, STATE).frozen


Found: TypeAlias = "Slot | tuple[str, Module]"
"""A tensor, or a module with its path."""


def slots_of(module: Module) -> list[Slot]:
    """Every tensor of a tree of modules, in the order of the attributes.

    A module at several paths has the first; a tensor at several paths has a slot for each.
    """
    return [slot for slot in walk(module) if isinstance(slot, Slot)]


def modules_of(module: Module) -> list[tuple[str, Module]]:
    """Every module of a tree with its path, the root first, each once."""
    return [node for node in walk(module) if not isinstance(node, Slot)]


def walk(module: Module) -> list[Found]:
    """All of `slots_of` and `modules_of`; a module comes before its tensors."""
    found: list[Found] = []
    _walk(module, "", set(), found)
    return found


def found_in(value: object, owner: Module, name: str) -> list[Found]:
    """The tensors in the value of an attribute, and the modules with their paths."""
    found: list[Found] = []
    _visit(value, owner, "", name, name, set(), found)
    return found


def is_container(value: object) -> bool:
    """Whether tensors and modules are looked for in an object."""
    return isinstance(value, (list, tuple, dict))


class Watched(NamedTuple):
    """A list or dict among the attributes of a module, as it was.

    Attributes
    ----------
    container : list or dict
        The container.
    length : int
        Its length.
    tensors : list of (object, Tensor)
        The tensors in it, by index or key.
    """

    container: Any
    length: int
    tensors: list[tuple[Any, Tensor]]


def watched_in(module: Module) -> tuple[Watched, ...]:
    """The lists and dicts among the attributes of a module, also those in other containers."""
    found: dict[int, Watched] = {}
    waiting = list(vars(module).values())
    while waiting:
        value = waiting.pop()
        if not is_container(value) or id(value) in found:
            continue
        items = list(value.items() if isinstance(value, dict) else enumerate(value))
        tensors = [(key, item) for key, item in items if isinstance(item, Tensor)]
        found[id(value)] = Watched(value, len(value), tensors)
        waiting += [item for _, item in items]
    return tuple(
        [watched for watched in found.values() if not isinstance(watched.container, tuple)]
    )


def has_changed(watched: tuple[Watched, ...]) -> bool:
    """Whether a container has another length, or another tensor somewhere."""
    for container, length, tensors in watched:
        if len(container) != length:
            return True
        for key, tensor in tensors:
            if container[key] is not tensor:
                return True
    return False


def is_module(value: object) -> bool:
    """Whether an object is a module; a class of modules is none."""
    return hasattr(type(value), STATE)


def _walk(module: Module, prefix: str, seen: set[int], found: list[Found]) -> None:
    seen.add(id(module))
    found.append((prefix.removesuffix("."), module))
    for name, value in vars(module).items():
        if name != STATE and value.__class__ not in PLAIN:
            _visit(value, module, prefix, name, name, seen, found)


def _visit(
    value: Any,
    owner: Module,
    prefix: str,
    attribute: str,
    local: str,
    seen: set[int],
    found: list[Found],
) -> None:
    if isinstance(value, Tensor):
        found.append(Slot(prefix + local, owner, attribute, local, value))
    elif is_module(value):
        if id(value) not in seen:
            _walk(value, f"{prefix}{local}.", seen, found)
    elif is_container(value) and id(value) not in seen:
        seen.add(id(value))
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            if item.__class__ not in PLAIN:
                _visit(item, owner, prefix, attribute, f"{local}.{key}", seen, found)


PLAIN: Final = frozenset({bool, int, float, str, type(None)})
"""Classes of most attributes that hold no tensors."""
