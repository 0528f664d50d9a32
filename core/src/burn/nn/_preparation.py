"""What modules keep beside their attributes, and how their parameters become leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from burn.devices import AUTODIFF, before_compilation, running_trace
from burn.errors import ArgumentError, AutodiffError
from burn.functions.assignment import make_leaf
from burn.locks import new_rlock
from burn.nn._slots import (
    STATE,
    Slot,
    Watched,
    found_in,
    has_changed,
    is_container,
    is_module,
    modules_of,
    slots_of,
    watched_in,
)
from burn.nn._structure import Skeleton, flatten, tracks_gradients
from burn.nn._watching import Watch, count_change
from burn.tensor.tensor import Tensor

if TYPE_CHECKING:
    from burn.nn.module import Module
    from burn.nn.precision import Precision

__all__ = [
    "State",
    "begin_generation",
    "call_forward",
    "generation",
    "may_bring_parameters",
    "own_state",
    "prepare",
    "prepared_and_flattened",
    "quantization_of",
]

generation: Final = [1]
"""Its item changes when an attribute of any module is set that may bring new parameters."""

_lock = new_rlock()
"""Held while tensors become leaves."""


@dataclass(slots=True)
class State:
    """What a module keeps beside its attributes.

    Attributes
    ----------
    is_eval : bool
        Whether `Module.eval` was called last, and not `Module.train`.
    prepared : int
        The generation in which its parameters were made leaves; 0 before.
    tracks : bool or None
        Whether tensors of the last tree with any that it was called in are on an autodiff device;
        None if there was no such tree.
    inherits : bool
        Of a copy inside of `burn.vmap`: whether the original's are.
    is_copy : bool
        Whether `burn.tree` made it of another module: its tensors may be computed ones.
    source : Module or None
        The module from whose tensors its own were computed, for one call in another precision.
    frozen : frozenset of str
        Paths from the module to those of its own parameters that are not trained.
    precision : Precision or None
        The dtypes that it computes in.
    watched : tuple of Watched
        The containers among its attributes, as they were when it was prepared.
    is_quantized : bool
        Whether its attribute ``quantization`` had something to call it when it was prepared.
    """

    is_eval: bool = False
    prepared: int = 0
    tracks: bool | None = None
    inherits: bool = False
    is_copy: bool = False
    source: Module | None = None
    frozen: frozenset[str] = frozenset()
    precision: Precision | None = None
    watched: tuple[Watched, ...] = ()
    is_quantized: bool = False

    def of_copy(self, source: Module | None) -> State:
        """The state of a copy; `source` is the module if the copy is for one call."""
        inherits = self.inherits or bool(self.tracks)
        return State(
            self.is_eval,
            tracks=self.tracks,
            inherits=inherits,
            is_copy=True,
            source=source,
            frozen=self.frozen,
            precision=self.precision,
        )

    @property
    def is_current(self) -> bool:
        """Whether no attribute has been set since, and no container has changed."""
        return self.prepared == generation[0] and not (self.watched and has_changed(self.watched))


def begin_generation() -> None:
    with _lock:
        generation[0] += 1
    count_change()


before_compilation.append(begin_generation)  # so that each module is prepared, and watched


def may_bring_parameters(module: Module, name: str, value: Any) -> bool:
    """Whether an attribute may hold modules, or tensors that are to be leaves and are not."""
    return (isinstance(value, Tensor) or is_module(value) or is_container(value)) and any(
        not isinstance(slot, Slot)
        or (slot.is_parameter and bool(slot.tensor.device.layers) and not slot.tensor.is_tracked)
        for slot in found_in(value, module, name)
    )


def quantization_of(module: Module) -> Any:
    """What quantizes the calls of a layer, a `LayerQuantization`; or None."""
    found = vars(module).get("quantization")
    return found if getattr(type(found), "calls_layers", False) else None


def call_forward(module: Module, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """What the method ``forward`` returns, or what quantizes the calls of the module."""
    quantization = quantization_of(module)
    if quantization is None:
        return module.forward(*args, **keywords)
    return quantization.call(module, args, keywords)


def own_state(module: Module) -> State:
    """The state of a module, to be written to."""
    state: State | None = vars(module).get(STATE)
    if state is None:
        state = vars(module)[STATE] = State()
    return state


def prepare(root: Module) -> State:
    """Make the parameters of a tree leaves where its device has autodiff."""
    trace = running_trace()
    if trace is not None and trace.watches and not root._module_state.is_copy:
        trace.watch(Watch(root))
    with _lock:
        current = generation[0]
        slots = slots_of(root)
        for slot in slots:
            if slot.tensor.device.layers == (AUTODIFF,) and slot.is_parameter:
                _make_leaf(slot)
        inherits = root._module_state.inherits
        devices = [slot.tensor.device for slot in slots]
        tracks = any(
            tracks_gradients(device) or (inherits and len(device.layers) > 1) for device in devices
        )
        for _, module in modules_of(root):
            state = own_state(module)
            _check_names(module)
            state.prepared, state.watched = current, watched_in(module)
            state.is_quantized = quantization_of(module) is not None
            if slots:  # a tree without tensors goes on as the model that it is a part of
                state.tracks = tracks
        return root._module_state


def prepared_and_flattened(module: Module) -> tuple[Sequence[Tensor], Skeleton]:
    """The parameters of a module, which are leaves from then on where its device has autodiff.

    Those of a copy are as they are: gradients, for example.
    """
    if not module._module_state.is_copy:
        prepare(module)
    return flatten(module)


def _check_names(module: Module) -> None:
    """Raise ArgumentError if the class names a buffer that the module does not have."""
    missing = [name for name in (*module.buffers, *module.transient) if name not in vars(module)]
    if missing:
        raise ArgumentError(
            f"{type(module).__name__} names {missing[0]!r} as a buffer, and has no such attribute",
            hint="Set the attribute in __init__, to None if there is no such tensor",
            operation="nn.Module",
        )


def _make_leaf(slot: Slot) -> None:
    x = slot.tensor
    if x.is_require_grad or slot.is_frozen or slot.owner._module_state.source is not None:
        return
    if x.is_tracked and slot.owner._module_state.is_copy:  # adapted parameters: p - rate * g
        return
    if x.is_tracked:
        raise AutodiffError(
            f"{slot.path} was computed from other tensors, so it is no parameter",
            hint="Compute with it by a function such as burn.nn.functional.linear, which keeps its "
            f"gradient; or name it among the buffers of {type(slot.owner).__name__}: buffers = "
            f'("{slot.attribute}",); or assign its .detach()',
            operation=f"nn.{type(slot.owner).__name__}",
        )
    make_leaf(x)
