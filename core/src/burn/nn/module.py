"""Module: an object whose attributes are tensors and modules, and which computes with them."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeAlias

from burn.dispatch import before_widening
from burn.errors import (
    ArgumentError,
    BurnError,
    DTypeError,
    OperandTypeError,
)
from burn.functions.common import DeviceLike, DTypeLike
from burn.functions.gradient import no_grad
from burn.functions.normalize import as_dtype, find_device
from burn.nn._hints import HINTS_OF_MODULES
from burn.nn._input_dtype import check_no_layer_widens
from burn.nn._preparation import (
    State,
    begin_generation,
    call_forward,
    generation,
    may_bring_parameters,
    own_state,
    prepare,
    prepared_and_flattened,
)
from burn.nn._reading import described, described_on_a_line
from burn.nn._slots import STATE, Slot, modules_of, slots_of
from burn.nn._state_dict import LoadReport, load
from burn.nn._structure import tracks_gradients, unflatten
from burn.nn._watching import count_change
from burn.nn.precision import Precision
from burn.quant_scheme import QDType
from burn.tensor.tensor import Tensor
from burn.tree import register

if TYPE_CHECKING:
    from collections.abc import Iterable

    from burn.dtype import DType
    from burn.nn._layer_selection import Only
    from burn.nn._quantization_report import QuantizationReport
    from burn.nn.summary import Summary
    from burn.quant_scheme import QuantScheme
    from burn.quantization import Calibration

__all__ = ["Module"]


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
            if any(isinstance(name, str) for name in names):
                raise OperandTypeError(
                    f"{kind} of {cls.__name__} is a string",
                    hint=f'Write a tuple of names: {kind} = ("name",)',
                    operation="nn.Module",
                )
            setattr(cls, kind, tuple(dict.fromkeys([name for item in names for name in item])))
        register(cls, prepared_and_flattened, unflatten)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("buffers", "transient"):
            raise ArgumentError(
                f"{name} of {type(self).__name__} is set on one module",
                hint=f'It is an attribute of the class: {name} = ("name",)',
                operation="nn.Module",
            )
        object.__setattr__(self, name, value)
        count_change()
        if may_bring_parameters(self, name, value):
            begin_generation()

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        begin_generation()

    if not TYPE_CHECKING:  # a type checker reports such names

        def __getattr__(self, name: str) -> Any:
            hint = f". {HINTS_OF_MODULES[name]}" if name in HINTS_OF_MODULES else ""
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}{hint}",
                name=name,
                obj=self,
            )

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """What ``forward`` returns."""
        state = self._module_state
        if state.prepared != generation[0] or (state.watched and not state.is_current):
            state = prepare(self)
        try:
            if observer.get() is not None or state.precision is not None or state.is_quantized:
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
        return vars(self) | {STATE: replace(self._module_state, prepared=0, watched=())}

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
        prepare(self)
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
        """Number of elements of all parameters, frozen ones and quantized weights included."""
        slots = {id(slot.tensor): slot for slot in slots_of(self)}.values()
        return sum([slot.tensor.size for slot in slots if slot.is_parameter or slot.is_quantized])

    # Training and inference.

    @property
    def training(self) -> bool:
        """Whether the module trains: it is on an autodiff device, and `eval` was not called."""
        if not self._module_state.is_current:
            prepare(self)
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
        return not state.is_eval and (
            tracks_gradients(x.device) if state.tracks is None else state.tracks
        )

    def train(self) -> Self:
        """Let the module and all below it train where they are on an autodiff device.

        Returns
        -------
        Module
            This one.
        """
        for module in self.modules():
            own_state(module).is_eval = False
        count_change()
        return self

    def eval(self) -> Self:
        """Let the module and all below it infer: no dropout, running statistics.

        Returns
        -------
        Module
            This one. Its parameters stay leaves; `burn.no_grad` saves what gradients need.
        """
        for module in self.modules():
            own_state(module).is_eval = True
        count_change()
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
            state = own_state(slot.owner)
            state.frozen |= {slot.local}
            slot.tensor.assign(slot.tensor.detach(), require_grad=False)
        begin_generation()
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
            state = own_state(slot.owner)
            state.frozen -= {slot.local}
        begin_generation()
        prepare(self)
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
        DTypeError
            If values are fractions and the tensor holds integers.

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
        for module in self.modules():
            module._take_dtype(target)

        def converted(x: Tensor) -> Tensor:
            is_plain = x.dtype.is_float and not isinstance(x.dtype, QDType)
            return x.detach().astype(target) if is_plain else x

        return self._replace(converted)

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
        >>> import burn
        >>> layer = burn.nn.Linear(2, 3).map(lambda path, x: burn.ones_like(x))
        >>> layer.bias.tolist()
        [1.0, 1.0, 1.0]
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

    # Dtypes of weights and of the computation, and what it costs.

    def quantize(
        self,
        scheme: QuantScheme | None = None,
        *,
        only: Only = None,
        calibration: Calibration | None = None,
        activations: QuantScheme | None = None,
        batches: Iterable[Any] | None = None,
    ) -> QuantizationReport:
        """Store the weights of Linear, Embedding and convolution layers in few bits.

        Their tensors become quantized ones, and stay the same objects. Biases, and what other
        layers have, stay floats. A layer whose weight the blocks of the scheme do not divide stays
        as it is, and the report says so.

        Parameters
        ----------
        scheme : QuantScheme, optional
            Of the weights. By default what `burn.nn.prepare_qat` was given, else that of the
            device. Codes are packed along another axis where the last one is not divisible.
        only : str, class, callable, or list of these, optional
            Selects layers: a pattern of paths, such as ``"layers.*"``; a class of layers, or of
            modules whose layers are meant; a function of path and layer that returns a bool. By
            default all layers.
        calibration : Calibration, optional
            How the ranges of weights are found: by default `MIN_MAX` for values of 8 bits, and
            `MIN_ERROR` for fewer.
        activations : QuantScheme, optional
            Of the inputs of Linear layers, for products of codes. By default they stay floats.
        batches : iterable, optional
            Examples of inputs, from which the scales of activations are computed once: tensors, or
            tuples or dicts of arguments. By default each call computes the scales of its input.

        Returns
        -------
        QuantizationReport
            The error of each layer, and bytes before and after. It prints as a table.

        Raises
        ------
        ArgumentError
            If `only` fits no layer, or `batches` nothing that is to be calibrated.
        ShapeError
            If the scheme fits no weight of the selected layers.

        Examples
        --------
        >>> from burn import nn
        >>> from burn.quantization import QuantScheme, QuantValue, ScaleDType
        >>> net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
        >>> scheme = QuantScheme(QuantValue.Q4F).per_block((1, 32), ScaleDType.F16)
        >>> report = net.quantize(scheme)
        >>> report.bytes_before, report.bytes_after
        (9640, 1500)
        """
        from burn.nn._quantizing import quantize_model  # imports layers, which are modules

        return quantize_model(
            self,
            scheme,
            only=only,
            calibration=calibration,
            activations=activations,
            batches=batches,
        )

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
        own_state(self).precision = precision
        count_change()
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

    def _take_dtype(self, dtype: DType) -> None:
        """Compute in a float dtype what its tensors do not say; most modules have no such thing."""

    def _replace(self, function: Callable[[Tensor], Tensor]) -> Self:
        """Give each tensor of the tree, once, what a function returns for it."""
        tensors = {id(slot.tensor): slot for slot in slots_of(self)}
        values = [(slot.tensor, function(slot.tensor)) for slot in tensors.values()]
        for tensor, value in values:  # when all are computed: an error leaves the module as it was
            tensor.assign(value, require_grad=False)
        begin_generation()
        prepare(self)
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
        return call_forward(module, args, keywords)

    observe = observer.get()
    return call() if observe is None else observe(module, call)


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


before_widening.append(check_no_layer_widens)
