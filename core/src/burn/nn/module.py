"""Module: an object whose attributes are tensors and modules, and which computes with them."""

from __future__ import annotations

import fnmatch
import os
import threading
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeAlias

from burn.devices import AUTODIFF, GRAD
from burn.errors import ArgumentError, AutodiffError, BurnError, DTypeError, OperandTypeError
from burn.functions.assignment import make_leaf
from burn.functions.common import DeviceLike, DTypeLike
from burn.functions.gradient import no_grad
from burn.functions.normalize import as_dtype, find_device
from burn.nn._reading import described, described_on_a_line
from burn.nn._slots import STATE, Slot, found_in, is_container, modules_of, slots_of
from burn.nn._state_dict import LoadReport, load
from burn.nn._structure import flatten, unflatten
from burn.nn.precision import Precision
from burn.tensor.tensor import Tensor
from burn.tree import register

if TYPE_CHECKING:
    from burn.nn.summary import Summary

__all__ = ["Module"]

_generation = 1
"""Changes when an attribute of any module is set that may bring new parameters."""

_lock = threading.RLock()
"""Held while tensors become leaves."""


def _after_fork() -> None:
    global _lock  # noqa: PLW0603 — another thread of the parent may have held it
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # POSIX
    os.register_at_fork(after_in_child=_after_fork)


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
        Of a copy that a transform made: whether the original's are.
    source : Module or None
        The module from whose tensors its own were computed, for one call in another precision.
    frozen : frozenset of str
        Paths from the module to those of its own parameters that are not trained.
    precision : Precision or None
        The dtypes that it computes in.
    """

    is_eval: bool = False
    prepared: int = 0
    tracks: bool | None = None
    inherits: bool = False
    source: Module | None = None
    frozen: frozenset[str] = frozenset()
    precision: Precision | None = None

    def of_copy(self, source: Module | None) -> State:
        """The state of a copy; `source` is the module if the copy is for one call."""
        inherits = self.inherits or bool(self.tracks)
        return State(self.is_eval, 0, self.tracks, inherits, source, self.frozen, self.precision)


class Module:
    """Base of layers and models: an ordinary class with a method ``forward``.

    Attributes are tensors, modules, lists, tuples and dicts of them, and anything else. Float
    tensors are parameters, unless the class names their attribute in `buffers` or `transient`. All
    other tensors are buffers. A parameter is called by its path: ``layers.0.weight``.

    On a device without autodiff a module infers. On an autodiff device it trains: its parameters
    are leaves (from its first call, or the first `parameters`, on), and layers such as dropout do
    what they do in training, until `eval`.

    Modules can be pickled and copied. `burn.grad`, `burn.vmap` and `burn.tree` take them as
    containers of their trainable parameters.

    Attributes
    ----------
    buffers : tuple of str
        Of a class: names of attributes whose float tensors are no parameters, such as the running
        statistics of a normalization. Those of base classes are added.
    transient : tuple of str
        Of a class: names of attributes whose tensors are computed, such as masks. They are buffers
        that `state_dict` leaves out.

    Examples
    --------
    >>> import burn
    >>> from burn import nn
    >>> class Net(nn.Module):
    ...     def __init__(self, width, *, device=None):
    ...         self.first = nn.Linear(4, width, device=device)
    ...         self.second = nn.Linear(width, 2, device=device)
    ...
    ...     def forward(self, x):
    ...         return self.second(nn.functional.relu(self.first(x)))
    >>> net = Net(16, device=burn.Device("cpu").autodiff())
    >>> net.num_parameters
    114
    >>> [name for name, _ in net.named_parameters()]
    ['first.weight', 'first.bias', 'second.weight', 'second.bias']
    >>> loss = (net(burn.ones((8, 4), device="cpu")) ** 2).mean()
    >>> net.first.weight.grad(loss.backward()).shape
    (16, 4)
    """

    buffers: ClassVar[tuple[str, ...]] = ()
    transient: ClassVar[tuple[str, ...]] = ()

    _module_state: State = State()  # of a module that has none of its own: never written to

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__call__" in cls.__dict__:
            raise OperandTypeError(
                f"{cls.__name__} defines __call__, which belongs to Module",
                hint="Call the method forward",
                operation="nn.Module",
            )
        for kind in ("buffers", "transient"):
            names = [getattr(base, kind, ()) for base in reversed(cls.__mro__)]
            if any(isinstance(one, str) for one in names):
                raise OperandTypeError(
                    f"{kind} of {cls.__name__} is a string",
                    hint=f'Write a tuple of names: {kind} = ("name",)',
                    operation="nn.Module",
                )
            setattr(cls, kind, tuple(dict.fromkeys([name for one in names for name in one])))
        register(cls, flatten, unflatten)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if _may_bring_parameters(self, name, value):
            _begin_generation()

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """What ``forward`` returns."""
        state = self._module_state
        if state.prepared != _generation:
            state = _prepare(self)
        try:
            if observer.get() is not None or state.precision is not None:
                return _call_observed(self, state, args, keywords)
            return self.forward(*args, **keywords)
        except BurnError as error:
            if not hasattr(error, "__notes__"):
                error.add_note(f"in {described_on_a_line(self)}")
            raise

    def forward(self, *args: Any, **keywords: Any) -> Any:
        """The outputs of the module. Every class defines it."""
        del args, keywords
        raise OperandTypeError(
            f"{type(self).__name__} has no method forward",
            hint="Define forward(self, x), and call the module itself: module(x)",
            operation="nn.Module",
        )

    def __repr__(self) -> str:
        return described(self)

    def __getstate__(self) -> dict[str, Any]:
        # Another process counts generations of its own.
        return vars(self) | {STATE: replace(self._module_state, prepared=0)}

    # What the tree has.

    def parameters(self) -> list[Tensor]:
        """Every parameter of the tree, each once; on an autodiff device leaves, if not frozen.

        Returns
        -------
        list of Tensor
            In the order of `named_parameters`.
        """
        return [parameter for _, parameter in self.named_parameters()]

    def named_parameters(self) -> list[tuple[str, Tensor]]:
        """Every parameter with its path, each tensor once, under the first of its paths.

        Returns
        -------
        list of (str, Tensor)
            In the order in which the attributes were set.
        """
        _prepare(self)
        return [(slot.path, slot.tensor) for slot in _parameters_of(self)]

    def named_buffers(self) -> list[tuple[str, Tensor]]:
        """Every tensor that is no parameter, with its path.

        Returns
        -------
        list of (str, Tensor)
            In the order in which the attributes were set.
        """
        return [(slot.path, slot.tensor) for slot in slots_of(self) if not slot.is_parameter]

    def modules(self) -> list[Module]:
        """Every module of the tree, each once; this one is the first.

        Returns
        -------
        list of Module
            Parents before their children.
        """
        return [module for _, module in modules_of(self)]

    def named_modules(self) -> list[tuple[str, Module]]:
        """Every module of the tree with its path, each once; the path of this one is empty.

        Returns
        -------
        list of (str, Module)
            Parents before their children.
        """
        return modules_of(self)

    @property
    def num_parameters(self) -> int:
        """Number of elements of all parameters, frozen ones included."""
        return sum([slot.tensor.size for slot in _parameters_of(self)])

    # Training and inference.

    @property
    def training(self) -> bool:
        """Whether the module trains: it is on an autodiff device, and `eval` was not called."""
        if self._module_state.prepared != _generation:
            _prepare(self)
        return not self._module_state.is_eval and bool(self._module_state.tracks)

    def is_training(self, x: Tensor) -> bool:
        """Whether a layer does with an input what it does in training.

        As `training` says. The input's device decides for a layer without tensors that is no part
        of a model with some.

        Parameters
        ----------
        x : Tensor
            The input.

        Returns
        -------
        bool
            For the method ``forward`` of layers such as dropout.
        """
        state = self._module_state
        return not state.is_eval and (_tracks(x) if state.tracks is None else state.tracks)

    def train(self) -> Self:
        """Let the module and all below it train where they are on an autodiff device.

        Returns
        -------
        Module
            This one.
        """
        for module in self.modules():
            _own_state(module).is_eval = False
        return self

    def eval(self) -> Self:
        """Let the module and all below it infer: no dropout, running statistics.

        Returns
        -------
        Module
            This one. Its parameters stay leaves; `burn.no_grad` saves what gradients need.
        """
        for module in self.modules():
            _own_state(module).is_eval = True
        return self

    def freeze(self, *patterns: str) -> Self:
        """Keep parameters as they are: no gradient is computed for them.

        Parameters
        ----------
        *patterns : str
            Of paths, with ``*`` and ``?`` for any characters; all parameters if there is none.

        Returns
        -------
        Module
            This one.

        Raises
        ------
        ArgumentError
            If a pattern fits no parameter.
        OperandTypeError
            If a pattern is no string.

        Examples
        --------
        >>> from burn import nn
        >>> net = nn.Sequential(nn.Linear(4, 16), nn.Linear(16, 2)).freeze("0.*")
        >>> net
        Sequential(
            Linear(4, 16),  # frozen
            Linear(16, 2),
        )
        """
        for slot in _matching(self, patterns, "freeze"):
            state = _own_state(slot.owner)
            state.frozen |= {slot.local}
            slot.tensor.assign(slot.tensor.detach(), require_grad=False)
        _begin_generation()
        return self

    def unfreeze(self, *patterns: str) -> Self:
        """Train parameters again.

        Parameters
        ----------
        *patterns : str
            As in `freeze`.

        Returns
        -------
        Module
            This one.

        Raises
        ------
        ArgumentError
            If a pattern fits no parameter.
        OperandTypeError
            If a pattern is no string.
        """
        for slot in _matching(self, patterns, "unfreeze"):
            state = _own_state(slot.owner)
            state.frozen -= {slot.local}
        _begin_generation()
        return self

    # Values.

    def state_dict(self) -> dict[str, Tensor]:
        """The values of all parameters and buffers, by their paths.

        Returns
        -------
        dict of str to Tensor
            Untracked tensors, which do not change with the module. What `transient` names is not
            among them. A tensor at several paths is there under each.
        """
        return {
            slot.path: slot.tensor.detach().inner()
            for slot in slots_of(self)
            if not slot.is_transient
        }

    def load_state_dict(self, state: Any, *, strict: bool = True) -> LoadReport:
        """Give parameters and buffers the values of a `state_dict`, of this library or PyTorch.

        Parameters
        ----------
        state : mapping of str to Tensor or array
            Values by paths, in the shapes of the tensors; their dtype and device do not matter.
        strict : bool
            Whether every path has to be in both. If not, what fits is taken.

        Returns
        -------
        LoadReport
            What was missing, unexpected or of another shape.

        Raises
        ------
        ArgumentError
            If `strict` and the report is not empty; the module is unchanged then.

        Examples
        --------
        >>> from burn import nn
        >>> one, other = nn.Linear(2, 3), nn.Linear(2, 3)
        >>> one.load_state_dict(other.state_dict())
        LoadReport(missing=[], unexpected=[], mismatched={})
        """
        slots = [slot for slot in slots_of(self) if not slot.is_transient]
        return load({slot.path: slot.tensor for slot in slots}, state, strict=strict)

    def to(self, device: DeviceLike) -> Self:
        """Move all tensors to a device; the tensors stay the same objects.

        Parameters
        ----------
        device : Device or str
            Where the module computes from then on: with autodiff to train, without to infer.

        Returns
        -------
        Module
            This one.

        Examples
        --------
        >>> import burn
        >>> layer = burn.nn.Linear(2, 3, device="cpu")
        >>> layer.to(burn.Device("cpu").autodiff()).weight.device
        Device('autodiff<cpu:0>')
        """
        target = find_device(device, "Module.to")
        return self._replace(lambda x: x.detach().inner().to_device(target))

    def astype(self, dtype: DTypeLike) -> Self:
        """Convert all float parameters and buffers; the tensors stay the same objects.

        Parameters
        ----------
        dtype : DType or str
            A float dtype.

        Returns
        -------
        Module
            This one.

        Raises
        ------
        DTypeError
            If it is no float dtype, or the device does not have it.
        """
        target = as_dtype(dtype, "Module.astype")
        if not target.is_float:
            raise DTypeError(
                f"parameters have a float dtype, not {target}", operation="Module.astype"
            )
        return self._replace(lambda x: x.detach().astype(target) if x.dtype.is_float else x)

    def map(self, function: Callable[[str, Tensor], Tensor]) -> Self:
        """Give each parameter the value that a function computes of it.

        Parameters
        ----------
        function : callable
            ``function(path, parameter)`` returns a tensor of the same shape. What it computes is
            not tracked.

        Returns
        -------
        Module
            This one.

        Examples
        --------
        >>> layer = burn.nn.Linear(2, 3).map(lambda path, x: x * 0 if path == "bias" else x)
        >>> layer.bias.tolist()
        [0.0, 0.0, 0.0]
        """
        with no_grad():
            for path, parameter in self.named_parameters():
                parameter.assign(function(path, parameter))
        return self

    def visit(self, function: Callable[[str, Tensor], object]) -> None:
        """Call a function with each parameter.

        Parameters
        ----------
        function : callable
            ``function(path, parameter)``; its result is ignored.

        Returns
        -------
        None
            See `map` for a function that changes parameters.
        """
        for path, parameter in self.named_parameters():
            function(path, parameter)

    # Dtypes of the computation, and what it costs.

    def set_precision(self, precision: Precision | None) -> Self:
        """Compute in other dtypes than that of the parameters; see `Precision`.

        Parameters
        ----------
        precision : Precision or None
            For this module and those below it that have none of their own. None: in the dtypes of
            the parameters and inputs.

        Returns
        -------
        Module
            This one, with parameters of the dtype that `precision` names.

        Raises
        ------
        OperandTypeError
            If it is neither a Precision nor None.
        """
        if precision is not None and not isinstance(precision, Precision):
            raise OperandTypeError(
                f"got {precision!r}, which is no Precision",
                hint='Write set_precision(nn.Precision(compute="bfloat16")); None removes it',
                operation="Module.set_precision",
            )
        if precision is not None and precision.parameters is not None:
            self.astype(precision.parameters)
        _own_state(self).precision = precision
        return self

    def summary(self, *inputs: Any) -> Summary:
        """Shapes, parameters, operations and bytes of each module for an input.

        Parameters
        ----------
        *inputs : Tensor, TensorSpec, or anything else that ``forward`` takes
            Of tensors only shape, dtype and device matter: nothing is executed.

        Returns
        -------
        Summary
            Prints as a table.
        """
        from burn.nn.summary import summarize  # imports the tracer, which few programs need

        return summarize(self, inputs)

    def _replace(self, function: Callable[[Tensor], Tensor]) -> Self:
        """Give each tensor of the tree, once, what a function returns for it."""
        tensors = {id(slot.tensor): slot for slot in slots_of(self)}
        values = [(slot.tensor, function(slot.tensor)) for slot in tensors.values()]
        for tensor, value in values:  # when all are computed: an error leaves the module as it was
            tensor.assign(value, require_grad=False)
        _begin_generation()
        _prepare(self)
        return self


Observe: TypeAlias = "Callable[[Module, Callable[[], Any]], Any]"

observer: Final[ContextVar[Observe | None]] = ContextVar("burn_module_observer", default=None)
"""What calls modules for their callers, such as `Module.summary` while it runs."""


def _call_observed(
    module: Module, state: State, args: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    def call() -> Any:
        if state.precision is not None:
            return state.precision.call(module, args, keywords)
        return module.forward(*args, **keywords)

    observe = observer.get()
    return call() if observe is None else observe(module, call)


def _begin_generation() -> None:
    global _generation  # noqa: PLW0603 — one counter for all modules
    with _lock:
        _generation += 1


def _may_bring_parameters(module: Module, name: str, value: Any) -> bool:
    """Whether an attribute may hold modules, or tensors that are to be leaves and are not."""
    return (isinstance(value, (Tensor, Module)) or is_container(value)) and any(
        not isinstance(one, Slot)
        or (one.is_parameter and bool(one.tensor.device.layers) and not one.tensor.is_tracked)
        for one in found_in(value, module, name)
    )


def _own_state(module: Module) -> State:
    """The state of a module, to be written to."""
    state: State | None = vars(module).get(STATE)
    if state is None:
        state = vars(module)[STATE] = State()
    return state


def _prepare(root: Module) -> State:
    """Make the parameters of a tree leaves where its device has autodiff."""
    with _lock:
        generation = _generation
        slots = slots_of(root)
        for slot in slots:
            if slot.tensor.device.layers == (AUTODIFF,) and slot.is_parameter:
                _make_leaf(slot)
        tracks = root._module_state.inherits or any(_tracks(slot.tensor) for slot in slots)
        for _, module in modules_of(root):
            state = _own_state(module)
            state.prepared = generation
            if slots:  # a tree without tensors goes on as the model that it is a part of
                state.tracks = tracks
        return root._module_state


def _make_leaf(slot: Slot) -> None:
    x = slot.tensor
    if x.is_require_grad or slot.is_frozen or slot.owner._module_state.source is not None:
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


def _tracks(x: Tensor) -> bool:
    """Whether a tensor is on a device where gradients are taken, not of `burn.vmap` alone."""
    layers = x.device.layers
    return layers == (AUTODIFF,) or GRAD in layers


def _parameters_of(module: Module) -> list[Slot]:
    """The parameters of a tree, each tensor once."""
    found: dict[int, Slot] = {}
    for slot in slots_of(module):
        if slot.is_parameter:
            found.setdefault(id(slot.tensor), slot)
    return list(found.values())


def _matching(module: Module, patterns: tuple[str, ...], operation: str) -> list[Slot]:
    """The slots of the parameters whose paths fit some patterns, at all their paths."""
    slots = [slot for slot in slots_of(module) if slot.is_parameter]
    found: set[int] = set()
    for pattern in patterns or ("*",):
        if not isinstance(pattern, str):
            raise OperandTypeError(
                f"a pattern is a string, not an object of type {type(pattern).__name__}",
                hint=f'Write {operation}("first.*", "last.bias"), or call it on the module below',
                operation=f"Module.{operation}",
            )
        fitting = [slot for slot in slots if fnmatch.fnmatchcase(slot.path, pattern)]
        if not fitting and patterns:
            raise ArgumentError(
                f"no parameter is called {pattern!r}",
                hint=f"There are {_some([slot.path for slot in slots])}",
                operation=f"Module.{operation}",
            )
        found |= {id(slot.tensor) for slot in fitting}
    return [slot for slot in slots if id(slot.tensor) in found]


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return f"{shown}, ... {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


_SHOWN: Final = 8
"""Number of names that an error lists."""
