"""`trace`, and what `eval_shape` calls: what a function computes, without computing it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from burn.autodiff import AutodiffTensor, Freed, Leaf, Node, is_wrapped
from burn.devices import (
    Device,
    TensorType,
    count_traces,
    plans_hidden_from_traces,
    running_trace,
    tracing,
    transforms,
)
from burn.dispatch import meta_of
from burn.dtype import DType
from burn.errors import ArgumentError, OperandTypeError, ShapeError, TraceError
from burn.functions.common import DeviceLike, DTypeLike, dispatch
from burn.functions.normalize import as_dtype, as_shape, find_device
from burn.functions.views import root_of
from burn.generator import reserved_by
from burn.ir import GraphIr, ScalarIr, TensorIr, with_last_uses
from burn.ops.arguments import python_number
from burn.ops.shapes import check_shape
from burn.router import Recorder
from burn.transforms._arguments import check_callable, is_tensor
from burn.transforms._calling import Argument, Calling, Result
from burn.transforms._escapes import check_escapes
from burn.transforms._parts import (
    input_of,
    irs_of,
    new_input,
    parts_of,
    router_tensor,
    scheme_of,
)
from burn.transforms._stand_ins import StandIns
from burn.transforms.program import Program
from burn.tree import Structure, flatten, paths, unflatten

if TYPE_CHECKING:
    from burn.aliases import Primitive, Scalar, Shape
    from burn.tensor.tensor import Tensor

__all__ = ["RuntimeNumber", "TensorSpec", "Tracing", "specs", "trace"]


@dataclass(frozen=True, init=False)
class TensorSpec:
    """The shape, dtype and device of a tensor, without its values.

    Parameters
    ----------
    shape : tuple of int
        Length of each axis.
    dtype : DType
        Dtype of the elements.
    device : Device or str, optional
        The default device if left out.

    Examples
    --------
    >>> import burn
    >>> burn.ir.TensorSpec((2, 3), burn.float32, "cpu")
    TensorSpec(shape=(2, 3), dtype=burn.float32, device=Device('cpu:0'))
    """

    shape: Shape
    dtype: DType
    device: Device

    def __init__(
        self, shape: int | Shape, dtype: DTypeLike, device: DeviceLike | None = None
    ) -> None:
        fields = vars(self)
        fields["shape"] = as_shape(shape, "TensorSpec")
        try:
            check_shape(self.shape)
        except ShapeError as error:
            error.operation = "TensorSpec"
            raise
        fields["dtype"] = as_dtype(dtype, "TensorSpec")
        fields["device"] = find_device(device, "TensorSpec")


@dataclass(frozen=True)
class RuntimeNumber:
    """An example of a number that each run of a program gets anew, such as a learning rate.

    The function that is traced may pass it on where a number differs from run to run: the step and
    the learning rate of an optimizer. Any other use is an error. All other numbers among the
    arguments are constants of the program.

    Parameters
    ----------
    value : int or float
        The example.

    Examples
    --------
    >>> import burn
    >>> def step(x, g, rate):
    ...     return burn.optim.sgd_step(x, g, burn.zeros_like(x), learning_rate=rate)[0]
    >>> x, g = burn.asarray([1.0], device="cpu"), burn.asarray([2.0], device="cpu")
    >>> program = burn.ir.trace(step, x, g, burn.ir.RuntimeNumber(0.5))
    >>> program(x, g, 0.25).tolist()
    [0.5]
    """

    value: Scalar

    def __post_init__(self) -> None:
        number = python_number(self.value)
        if number.__class__ not in (int, float):
            raise OperandTypeError(
                f"a runtime number is an int or a float, not {self.value!r}",
                operation="RuntimeNumber",
            )
        vars(self)["value"] = number


class Captured(NamedTuple):
    """A tensor from outside that the function uses.

    Attributes
    ----------
    tensor : Tensor
        The tensor.
    primitive, tensor_type : object
        What it has outside.
    start : primitive
        Its primitive at first in the trace.
    """

    tensor: Tensor
    primitive: Primitive
    tensor_type: TensorType
    start: Primitive


class Tracing:
    """One call of a function that is traced.

    Parameters
    ----------
    takes_tracked : bool
        Whether a tensor that was computed from leaves outside may be used, for its shape alone.
    compiles : bool
        Whether the program may read numbers of Python objects and change such objects.

    Attributes
    ----------
    recorder : Recorder
        What the ops are written to.
    captured : list of Captured
        The tensors from outside that the function used, in order.
    numbers : list of (ScalarIr, callable)
        The numbers that each call of the program reads.
    effects : list of callable
        What each call of the program does at its end.
    compiles : bool
        Whether the program reads and changes Python objects: that of `burn.compile` does.
    watches : bool
        Whether that is so of this trace, or of one around it.
    body : str
        The control flow of which a body is called; empty in other traces.
    outer : Trace or None
        The trace around it.
    stand_ins : StandIns
        What the tensors from outside are in it.
    watched : list of (callable, object)
        What the program holds for: as long as each function returns that value.
    """

    def __init__(self, operation: str, *, takes_tracked: bool, compiles: bool = False) -> None:
        self.recorder = Recorder()
        self.captured: list[Captured] = []
        self.numbers: list[tuple[ScalarIr, Callable[[], Scalar]]] = []
        self.effects: list[Callable[[], None]] = []
        self.watched: list[tuple[Callable[[], object], object]] = []
        self.compiles = compiles
        self._leaves: dict[Node, Leaf] = {}
        self._operation = operation
        self._takes_tracked = takes_tracked
        self.outer: Any = running_trace()
        self.stand_ins = StandIns()
        self.watches: bool = compiles or (self.outer is not None and self.outer.watches)
        self.body = ""

    def join(self, x: Tensor) -> bool:
        """Make a tensor from outside an input of the program until the call has returned.

        A tensor of the trace around this one is from outside too.
        """
        if x.tensor_type.device.is_traced and (self.outer is None or not self.outer.owns(x)):
            return False
        primitive, tensor_type = self.stand_in(x)
        self.captured.append(Captured(x, x.primitive, x.tensor_type, primitive))
        self.stand_ins.add(x, primitive, tensor_type)
        return True

    def owns(self, x: Tensor) -> bool:
        """Whether a tensor that is traced belongs to this trace, or to one around it."""
        recorder = router_tensor(x.primitive).client
        trace: Any = self
        while trace is not None and trace.recorder is not recorder:
            trace = trace.outer
        return trace is not None

    def host_number(self, read: Callable[[], Scalar], kind: type[int | float]) -> ScalarIr:
        """A number of a Python object, which each call of the compiled function reads anew.

        Parameters
        ----------
        read : callable
            Returns the number. It is not called while the function is traced.
        kind : type
            int or float.

        Raises
        ------
        TraceError
            In a program of `burn.ir.trace`, which has no Python objects.
        """
        self._check_compiles()
        number = self.recorder.scalar(kind)
        self.numbers.append((number, read))
        return number

    def after_call(self, effect: Callable[[], None]) -> None:
        """Call a function after each successful call of the compiled function, in order.

        The trace itself does not call it: a call follows the trace.

        Raises
        ------
        TraceError
            In a program of `burn.ir.trace`, which has no Python objects.
        """
        self._check_compiles()
        self.effects.append(effect)

    def watch(self, read: Callable[[], object]) -> None:
        """Let the program hold only for calls before which a function returns what it returns now.

        Before any other call the compiled function is traced again.

        Raises
        ------
        TraceError
            In a program of `burn.ir.trace`, which has no Python objects.
        """
        if self.watches and not self.compiles:
            self.outer.watch(read)
            return
        self._check_compiles()
        if not any(function == read for function, _ in self.watched):
            self.watched.append((read, read()))

    def _check_compiles(self) -> None:
        if self.body:
            raise TraceError(
                f"the body of burn.{self.body} is a program, and no run of it reads or changes the "
                "state of a Python object",
                hint="Do so in the function around burn." + self.body,
                operation=self._operation,
            )
        if not self.compiles:
            raise TraceError(
                "the function reads or changes the state of a Python object",
                hint="burn.compile(function) does so at each call; or pass the numbers as "
                "burn.ir.RuntimeNumber to an op such as burn.optim.sgd_step",
                operation=self._operation,
            )

    def is_leaf_from_outside(self, x: Tensor) -> bool:
        """Whether a leaf is an input of the program, and was not made by the function."""
        return any(x.primitive.node is leaf for leaf in self._leaves.values())

    def tracks(self, x: Tensor) -> bool:
        """Whether a result has a graph that may lead to a leaf among the inputs."""
        node = getattr(x.primitive, "node", None)
        return bool(self._leaves) and node is not None and node.rule.__class__ is not Freed

    def __enter__(self) -> None:
        count_traces(1)
        if self.outer is not None:
            self.outer.recorder.is_open = False

    def __exit__(self, *exception: object) -> None:
        """Let all tensors from outside show what they hold."""
        self.recorder.is_open = False
        if self.outer is not None:
            self.outer.recorder.is_open = True
        self.stand_ins.clear()
        count_traces(-1)

    def stand_in(self, x: Tensor | TensorSpec) -> tuple[Primitive, TensorType]:
        """The primitive and type of an input of the program for a tensor."""
        device = self._on(x.device)
        primitive: Any = new_input(self.recorder, tuple(x.shape), x.dtype)
        tensor_type = device.tensor_type(x.dtype)
        tracked = x.primitive if is_tensor(x) and is_wrapped(x.primitive) else None
        if tracked is None:
            return primitive, tensor_type
        if not isinstance(getattr(tracked, "node", None), Leaf) or len(x.device.layers) > 1:
            if self._takes_tracked:
                return primitive, tensor_type
            raise TraceError(
                f"a tensor {meta_of(x)} was computed from a leaf outside of the function",
                hint="Pass the leaf, and compute with it inside; or call .detach() on the tensor",
                operation=self._operation,
            )
        leaf = device.backend.require_grad(primitive, device.id)
        leaf.node = self._leaves.setdefault(tracked.node, leaf.node)
        return _same_leaf(tracked, leaf), tensor_type

    def _on(self, device: Device) -> Device:
        """The device of an input in the program."""
        try:
            self.recorder.use(device.name)
        except TraceError as error:
            error.operation = self._operation
            raise
        return device.traced.layered(
            device.traced.layers[:1], is_checkpointing=device.is_checkpointing
        )


def _same_leaf(leaf: AutodiffTensor, traced: AutodiffTensor) -> AutodiffTensor:
    """A leaf in a trace with the hooks and the identity of one outside."""
    for name in ("distributed", "hooks", "key", "owner", "tensor_type"):
        setattr(traced.node, name, getattr(leaf.node, name))
    return traced


def trace(function: Callable[..., Any], /, *examples: Any) -> Program:
    """What a function computes, as a program: nothing is executed.

    Parameters
    ----------
    function : callable
        Takes and returns tensors, in any containers, and other Python values. It may call
        ``backward``, `burn.grad` and the steps of optimizers: they become part of the program.
    *examples : Tensor, TensorSpec, RuntimeNumber, containers of them, or any other value
        Arguments of the function. Of tensors only shape, dtype and device matter. Numbers and other
        values are constants of the program, except a `RuntimeNumber`.

    Returns
    -------
    Program
        A `GraphIr` that is called like the function. Every tensor that the function uses, passed or
        from outside, is read at each call; one that it rebinds (``x += y``) is rebound after it.
        Random numbers are reserved at each call. The results are those of the function to the bit.

    Raises
    ------
    TraceError
        If the function needs the value of a tensor (``if``, `item`, `nonzero`), moves tensors
        between devices, or keeps a tensor elsewhere than in its result.
    ArgumentError
        Inside of the function of a transform: transform the program instead.

    Notes
    -----
    A result is tracked by the leaves among the inputs, as that of the function is, but
    not if the function has taken their gradients itself. The function runs once here: what it does
    beside computing with tensors, a program does not repeat. A view that it returns is independent.
    A quantized tensor is several tensors of the graph: its codes, its scales and, in two levels,
    its global scale.

    Examples
    --------
    >>> import burn
    >>> weight = burn.asarray([1.0, 2.0], device="cpu")
    >>> program = burn.ir.trace(lambda x: burn.sum(weight * x), burn.ones(2, device="cpu"))
    >>> len(program.operations)
    2
    >>> weight += 1.0
    >>> program(burn.asarray([10.0, 1.0], device="cpu")).tolist()
    23.0
    """
    operation = "ir.trace"
    check_callable(function, operation)
    if transforms():
        raise ArgumentError(
            "a function cannot be traced inside of a transform",
            hint="Trace it outside, and call the program inside: it can be differentiated, mapped "
            "and traced in turn",
            operation=operation,
        )
    recorder, program = _traced(function, examples)
    check_escapes(recorder, operation)
    return program


def specs(function: Callable[..., Any], examples: tuple[Any, ...]) -> Any:
    """What a function returns, without values; see `burn.eval_shape`."""
    recorder, result = _specs(function, examples)
    check_escapes(recorder, "eval_shape")
    return result


def _specs(function: Callable[..., Any], examples: tuple[Any, ...]) -> tuple[Recorder, Any]:
    """What a function returns. What it made is gone when this returns."""
    trace = Tracing("eval_shape", takes_tracked=True)
    leaves, structure = _Call(trace, examples).run(function)
    specs = [
        TensorSpec(leaf.shape, leaf.dtype, leaf.device.untraced) if is_tensor(leaf) else leaf
        for leaf in leaves
    ]
    return trace.recorder, unflatten(structure, specs)


def _traced(function: Callable[..., Any], examples: tuple[Any, ...]) -> tuple[Recorder, Program]:
    """The program of a function. What the function made is gone when this returns."""
    trace = Tracing("ir.trace", takes_tracked=False)
    call = _Call(trace, examples)
    leaves, result_structure = call.run(function)
    tensors = [leaf for leaf in leaves if is_tensor(leaf)]
    new_values = [value for _, value in call.rebound]
    recorder = trace.recorder
    graph = GraphIr(
        (*call.inputs, *[ir for captured in trace.captured for ir in irs_of(captured.start)]),
        tuple(recorder.constants),
        tuple(recorder.operations),
        tuple([ir for tensor in (*tensors, *new_values) for ir in irs_of(tensor.primitive)]),
        recorder.draw,
    )
    graph = with_last_uses(graph)
    calling = Calling(
        call.structure,
        tuple(call.arguments),
        tuple([captured.tensor for captured in trace.captured]),
        tuple([captured.tensor_type.dtype for captured in trace.captured]),
        tuple([_result_of(leaf, trace) if is_tensor(leaf) else leaf for leaf in leaves]),
        result_structure,
        tuple([(index, _rebound_result(value)) for index, value in call.rebound]),
        call.same_leaves(),
        tensors[0].device.untraced.hardware if tensors else None,
    )
    parts = graph.inputs, graph.constants, graph.operations, graph.outputs, graph.draw
    return recorder, Program(*parts, calling=calling)


def _result_of(x: Tensor, trace: Tracing) -> Result:
    is_leaf = dispatch.is_require_grad(x) and not trace.is_leaf_from_outside(x)
    is_tracked = trace.tracks(x) and not is_leaf
    return Result(
        x.device.layers, x.device.is_checkpointing, is_tracked, is_leaf, scheme_of(x.dtype)
    )


def _rebound_result(x: Tensor) -> Result:
    """What the function rebinds is untracked, or a leaf of its own."""
    is_leaf = dispatch.is_require_grad(x)
    return Result(
        x.device.layers, x.device.is_checkpointing, is_leaf=is_leaf, scheme=scheme_of(x.dtype)
    )


class _Call:
    """The call of a function in a trace, with tensors that stand in for the examples.

    Attributes
    ----------
    structure : Structure
        The containers of the arguments.
    arguments : list of Argument
        Their leaves.
    rebound : list of (int, Tensor)
        What the call rebound, as `Calling.rebound` has it, and the new values.
    """

    def __init__(self, trace: Tracing, examples: tuple[Any, ...]) -> None:
        self._trace = trace
        self._examples, self.structure = flatten(examples)
        self.arguments: list[Argument] = []
        self.rebound: list[tuple[int, Any]] = []
        self._values: list[Any] = []
        names = paths(examples, "arguments")
        for leaf, name in zip(self._examples, names, strict=True):
            value = leaf
            argument = Argument(name, None, leaf.copy() if isinstance(leaf, np.ndarray) else leaf)
            if is_tensor(leaf) or isinstance(leaf, TensorSpec):
                value = dispatch.wrap(*trace.stand_in(leaf))
                layers = len(leaf.device.layers)
                argument = Argument(
                    name, input_of(value.primitive), None, value.is_require_grad, layers
                )
            elif isinstance(leaf, RuntimeNumber):
                value = trace.recorder.scalar(int if isinstance(leaf.value, int) else float)
                argument = Argument(name, value)
            self.arguments.append(argument)
            self._values.append(value)
        self._starts = [value.primitive if is_tensor(value) else None for value in self._values]

    @property
    def inputs(self) -> list[TensorIr | ScalarIr]:
        """The inputs of the graph."""
        return [ir for argument in self.arguments for ir in argument.inputs]

    def run(self, function: Callable[..., Any]) -> tuple[list[Any], Structure]:
        """Call the function: the leaves of its result, and their containers."""
        trace = self._trace
        with (
            plans_hidden_from_traces(),
            tracing(trace),
            reserved_by(trace.recorder.reserve),
            trace,
        ):
            result = function(*unflatten(self.structure, self._values))
            leaves, structure = flatten(result)
            for index, leaf in enumerate(leaves):
                if is_tensor(leaf):
                    trace.join(leaf)
                    leaves[index] = dispatch.wrap(leaf.primitive, leaf.tensor_type)
                elif isinstance(leaf, ScalarIr):
                    raise TraceError(
                        "the function returns a runtime number, and a program returns tensors",
                        hint="Count outside of the function, or pass a tensor instead",
                        operation="ir.trace",
                    )
            self.rebound = self._find_rebound()
        return leaves, structure

    def same_leaves(self) -> tuple[tuple[int, int], ...]:
        """Inputs that are one leaf, as `Calling.same` has them."""
        starts = [
            start
            for argument, start in zip(self.arguments, self._starts, strict=True)
            if argument.input is not None
        ]
        starts += [captured.start for captured in self._trace.captured]
        starts = [part for start in starts for part in parts_of(start)]
        first: dict[Node, int] = {}
        pairs = [
            (first.setdefault(start.node, index), index)
            for index, start in enumerate(starts)
            if isinstance(start, AutodiffTensor)
        ]
        return tuple([pair for pair in pairs if pair[0] != pair[1]])

    def _find_rebound(self) -> list[tuple[int, Any]]:
        found = []
        roots = [id(root_of(example)) for example in self._examples if is_tensor(example)]
        roots += [id(root_of(captured.tensor)) for captured in self._trace.captured]
        for index, (value, start) in enumerate(zip(self._values, self._starts, strict=True)):
            if is_tensor(value) and value.primitive is not start:
                example = self._examples[index]
                if is_tensor(example) and roots.count(id(root_of(example))) > 1:
                    raise TraceError(
                        f"the function writes to {self.arguments[index].name}, which shares "
                        "elements with another tensor that it uses",
                        hint="Pass a copy: x.astype(x.dtype, copy=True)",
                        operation="ir.trace",
                    )
                found.append((index, value))
        changed = [
            (index, captured.tensor)
            for index, captured in enumerate(self._trace.captured)
            if captured.tensor.primitive is not captured.start
        ]
        are_changed = {id(tensor) for _, tensor in changed}
        for index, x in changed:
            root = root_of(x)
            if root is x or id(root) not in are_changed:  # a view is computed from its root
                found.append((-1 - index, dispatch.wrap(x.primitive, x.tensor_type)))
        for _, value in found:
            if dispatch.is_tracked(value) and not dispatch.is_require_grad(value):
                raise TraceError(
                    "the function gives a tensor from outside a tracked value, whose graph no "
                    "program has",
                    hint="Write .detach() of the value",
                    operation="ir.trace",
                )
        return found
