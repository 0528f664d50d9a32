"""Modules as containers of `burn.tree`: taken apart into trainable parameters, and made of them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from burn.devices import AUTODIFF, GRAD, Device, running_trace
from burn.nn._slots import PLAIN, STATE, Slot, found_in, is_container, is_module, walk
from burn.nn._watching import Watch
from burn.tensor.tensor import Tensor

if TYPE_CHECKING:
    from burn.nn.module import Module

__all__ = ["Skeleton", "copy_with", "flatten", "tracks_gradients", "unflatten"]


class Skeleton:
    """A module beside its trainable parameters; two are equal if a class has the same paths.

    Attributes
    ----------
    module : Module
        The module itself.
    paths : tuple of str
        Of its trainable parameters, each tensor once.
    tensors : tuple of object
        These parameters, or what stands for them.
    modes : tuple of object
        Of each module whether `Module.eval` was called last, and its precision.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        found: dict[int, tuple[str, Tensor]] = {}
        modes = []
        for node in walk(module):
            if not isinstance(node, Slot):
                state = node[1]._module_state
                modes.append((state.is_eval, state.precision))
            elif node.is_parameter and not node.is_frozen:
                found.setdefault(id(node.tensor), (node.path, node.tensor))
        self.paths = tuple([path for path, _ in found.values()])
        self.tensors: tuple[Any, ...] = tuple([tensor for _, tensor in found.values()])
        self.modes = tuple(modes)

    @functools.cached_property
    def constants(self) -> dict[str, Any]:
        """By its path, all that a program of the module keeps: what is no trainable parameter."""
        found: dict[str, Any] = {}
        _add_constants(self.module, "", set(map(id, self.tensors)), found)
        return found

    def watch(self) -> Watch:
        """A function that tells whether the module has other attributes, buffers or modes."""
        return Watch(self.module)

    def release(self) -> None:
        """Keep a copy of the module without its trainable parameters."""
        stand_ins = tuple([object() for _ in self.tensors])
        self.module = copy_with(
            self.module, dict(zip(map(id, self.tensors), stand_ins, strict=True)), {}
        )
        self.tensors = stand_ins

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Skeleton):
            return NotImplemented
        return type(self.module) is type(other.module) and self.paths == other.paths

    def __hash__(self) -> int:
        return hash((type(self.module), self.paths))


def flatten(module: Module) -> tuple[Sequence[Tensor], Skeleton]:
    """The trainable parameters of a tree of modules, and the rest of it."""
    skeleton = Skeleton(module)
    tensors = skeleton.tensors
    if running_trace() is not None:  # a program keeps the skeleton, and no tensor of the trace
        skeleton.release()
    return tensors, skeleton


def unflatten(skeleton: Skeleton, leaves: Sequence[Any]) -> Module:
    """A copy of a tree of modules with other objects for its trainable parameters.

    Buffers and frozen parameters are the same objects in both. Whether a module of the copy trains,
    also one that is called by itself, follows from the devices of the new parameters.
    """
    values = dict(zip(map(id, skeleton.tensors), leaves, strict=True))
    copies: dict[int, Any] = {}
    copy = copy_with(skeleton.module, values, copies)
    tracks = _tracks(leaves)
    if tracks is not None:
        for copy_ in copies.values():
            if is_module(copy_):
                copy_._module_state.tracks, copy_._module_state.inherits = tracks, False
    return copy


def _tracks(leaves: Sequence[Any]) -> bool | None:
    """Whether parameters are where gradients are taken; None if only `burn.vmap` can be seen."""
    devices = [leaf.device for leaf in leaves if isinstance(leaf, Tensor)]
    if any(map(tracks_gradients, devices)):
        return True
    return None if not devices or any(device.layers for device in devices) else False


def tracks_gradients(device: Device) -> bool:
    """Whether gradients are taken on a device, which is not of `burn.vmap` alone."""
    layers = device.layers
    return layers == (AUTODIFF,) or GRAD in layers


def _add_constants(value: Any, prefix: str, seen: set[int], found: dict[str, Any]) -> None:
    """Add what is in a module or container to what was found."""
    seen.add(id(value))
    if is_module(value) or isinstance(value, dict):
        items = (vars(value) if is_module(value) else value).items()
    else:
        items = enumerate(value)
    for key, item in items:
        path = f"{prefix}{key}"
        if item.__class__ in PLAIN:
            found[path] = item
        elif id(item) in seen or key == STATE:
            continue
        elif is_module(item) or is_container(item):
            found[path] = type(item), 0 if is_module(item) else len(item)
            _add_constants(item, f"{path}.", seen, found)
        else:
            found[path] = item


def copy_with(
    module: Module, values: dict[int, Any], copies: dict[int, Any], *, is_cast: bool = False
) -> Module:
    """A copy of a tree of modules with other objects for some tensors, which ids name.

    A module, tensor or container that is at several paths is so in the copy as well.

    Parameters
    ----------
    module : Module
        The root.
    values : dict of int to object
        What stands for the tensor with an id.
    copies : dict of int to object
        Receives what stands for every object that was copied, by its id.
    is_cast : bool
        Whether the tensors of the copy were computed from those of the module, for one call.
    """
    copies |= values
    copied: Module = _copied(module, copies, is_cast=is_cast)
    return copied


def _copied(value: Any, memo: dict[int, Any], *, is_cast: bool) -> Any:
    if id(value) in memo or isinstance(value, Tensor):
        return memo.get(id(value), value)
    if is_module(value):
        copy = memo[id(value)] = object.__new__(type(value))
        members = vars(copy)
        for name, item in vars(value).items():
            if name == STATE:
                continue
            # A call adds to lists of other things, and the module keeps what it adds.
            is_shared = is_cast and not found_in(item, value, name)
            members[name] = item if is_shared else _copied(item, memo, is_cast=is_cast)
        members[STATE] = value._module_state.of_copy(value if is_cast else None)
        return copy
    if not is_container(value):
        return value
    if isinstance(value, tuple):
        parts = [_copied(part, memo, is_cast=is_cast) for part in value]
        new: Any = type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        memo[id(value)] = new
        return new
    new = memo[id(value)] = value.copy()  # of its class, before what may refer to it
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        new[key] = _copied(part, memo, is_cast=is_cast)
    return new
