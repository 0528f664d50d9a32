"""How a program is called: its arguments, what is from outside, and its results."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from burn.autodiff import AutodiffTensor, Leaf
from burn.dispatch import join_trace, meta_of
from burn.errors import ArgumentError, DTypeError, OperandTypeError, ShapeError
from burn.ir import GraphIr, ScalarIr, TensorIr
from burn.ops.arguments import python_number
from burn.transforms._arguments import is_tensor
from burn.transforms._constants import is_same, modules_in
from burn.transforms._parts import QuantizedIr
from burn.tree import Structure, flatten, paths

if TYPE_CHECKING:
    from burn.aliases import Primitive
    from burn.devices import Device
    from burn.dtype import DType
    from burn.quant_scheme import QuantScheme
    from burn.tensor.tensor import Tensor

__all__ = [
    "Argument",
    "Calling",
    "Result",
    "calling_of",
    "check_same",
    "number_of",
    "other_containers",
    "other_leaf",
    "primitive_of",
    "value_of",
]


class Argument(NamedTuple):
    """A leaf of the arguments of a program.

    Attributes
    ----------
    name : str
        How errors name it.
    input : TensorIr or QuantizedIr or ScalarIr or None
        The input of the graph; None of a value that is part of the program.
    value : object
        That value.
    is_leaf : bool
        Whether it is a leaf, of which the program computes with the value alone.
    layers : int
        Number of layers of the device of the example.
    """

    name: str
    input: TensorIr | QuantizedIr | ScalarIr | None
    value: Any = None
    is_leaf: bool = False
    layers: int = 0

    @property
    def inputs(self) -> Sequence[TensorIr | ScalarIr]:
        """The inputs of the graph."""
        if self.input is None:
            return ()
        return self.input.parts if isinstance(self.input, QuantizedIr) else (self.input,)


class Result(NamedTuple):
    """A leaf of what a program returns, which is a tensor.

    Attributes
    ----------
    layers : tuple of str
        The layers of its device.
    is_checkpointing : bool
        Whether its device has gradient checkpointing.
    is_tracked : bool
        Whether it is tracked by leaves among the inputs, since the function does not take their
        gradients itself.
    is_leaf : bool
        Whether it is a leaf that the function makes.
    scheme : QuantScheme or None
        How it is quantized, if it is.
    """

    layers: tuple[str, ...] = ()
    is_checkpointing: bool = False
    is_tracked: bool = False
    is_leaf: bool = False
    scheme: QuantScheme | None = None


@dataclass(frozen=True)
class Calling:
    """How a program is called.

    Attributes
    ----------
    structure : Structure
        The containers of the arguments.
    arguments : tuple of Argument
        Their leaves.
    captured : tuple of Tensor
        Tensors from outside, which each call reads.
    captured_dtypes : tuple of DType
        Their dtypes.
    results : tuple
        The leaves of what is returned: a Result, or the value itself.
    result_structure : Structure
        The containers of what is returned.
    rebound : tuple of (int, Result)
        What each call rebinds: the index of an argument, or ``-1 - index`` of a captured tensor.
    same : tuple of (int, int)
        Inputs of the graph that are one leaf, which has one gradient.
    device : Device or None
        Where the program runs if it has no tensor among its inputs.
    """

    structure: Structure
    arguments: tuple[Argument, ...]
    captured: tuple[Any, ...]
    captured_dtypes: tuple[DType, ...]
    results: tuple[Any, ...]
    result_structure: Structure
    rebound: tuple[tuple[int, Result], ...] = ()
    same: tuple[tuple[int, int], ...] = ()
    device: Device | None = None

    @functools.cached_property
    def modules(self) -> list[Any]:
        """What the structure has of modules beside their trainable parameters."""
        return modules_in(self.structure)

    @functools.cached_property
    def is_tracked(self) -> bool:
        """Whether a result is tracked by leaves among the inputs."""
        return any(result.__class__ is Result and result.is_tracked for result in self.results)


def calling_of(graph: GraphIr) -> Calling:
    """How a graph without containers is called: with its inputs, for a tuple of its outputs."""
    arguments = tuple(
        [Argument(f"arguments[{index}]", source) for index, source in enumerate(graph.inputs)]
    )
    results = (Result(),) * len(graph.outputs)
    _, structure = flatten(tuple(range(len(arguments))))
    _, result_structure = flatten(tuple(range(len(results))))
    return Calling(structure, arguments, (), (), results, result_structure)


def other_containers(calling: Calling, args: tuple[Any, ...]) -> ArgumentError:
    """The error of arguments in other containers than the examples; it names the first."""
    wanted, given = len(calling.structure.children), len(args)
    if wanted != given:
        what = f"the program takes {wanted} arguments, and was given {given}"
    else:
        what = "the containers of the arguments are others than those of the examples"
        expected = [argument.name for argument in calling.arguments]
        pairs = zip_longest(paths(args, "arguments"), expected, fillvalue="nothing")
        first = next((pair for pair in pairs if pair[0] != pair[1]), None)
        if first is not None:
            what += f": {first[0]} where they have {first[1]}"
    return ArgumentError(
        what, hint="A program is called like the function that was traced", operation="a program"
    )


def other_leaf(calling: Calling, first: int, second: int) -> ArgumentError:
    """The error of two inputs that were one leaf in the examples, and are not in a call."""
    names = [argument.name for argument in calling.arguments for _ in argument.inputs]
    names += ["a tensor from outside of the function"] * (second + 1 - len(names))
    return ArgumentError(
        f"{names[second]} was the same leaf as {names[first]} when the program was traced, and is "
        "another one",
        hint="Trace the function for tensors that differ; or pass the leaf once",
        operation="a program",
    )


def primitive_of(argument: Argument, x: Any) -> Primitive:
    """What the program gets for a tensor."""
    expected: Any = argument.input
    if not is_tensor(x):
        raise OperandTypeError(
            f"{argument.name} is an object of type {type(x).__name__}, no tensor",
            hint="burn.asarray() makes a tensor of numbers, sequences and arrays",
            operation="a program",
        )
    join_trace(x)
    primitive = x.primitive
    if x.tensor_type.dtype is not expected.dtype or tuple(primitive.shape) != expected.shape:
        kind = ShapeError if x.tensor_type.dtype is expected.dtype else DTypeError
        raise kind(
            f"{argument.name} is {meta_of(x)}, and the program was traced with {expected}",
            hint="Trace the function for these shapes and dtypes too",
            operation="a program",
        )
    return value_of(x) if argument.is_leaf else primitive


def value_of(x: Tensor) -> Primitive:
    """The primitive of a tensor; of a leaf, whose gradients the program computes, the value."""
    primitive = x.primitive
    if isinstance(primitive, AutodiffTensor) and isinstance(primitive.node, Leaf):
        return primitive.primitive
    return primitive


def number_of(argument: Argument, value: Any) -> Any:
    """What the program gets for a number; OperandTypeError if it is of another type."""
    expected: Any = argument.input
    number = python_number(value)
    if number.__class__ is not expected.kind and not (
        expected.kind is float and number.__class__ is int
    ):
        raise OperandTypeError(
            f"{argument.name} is {value!r}, and the program takes a number of type "
            f"{expected.kind.__name__}",
            operation="a program",
        )
    return expected.kind(number)


def check_same(argument: Argument, value: Any) -> None:
    """Raise ArgumentError unless a value is the one that the program was traced with."""
    expected = argument.value
    if not is_same(value, expected):
        raise ArgumentError(
            f"{argument.name} is {value!r}, and the program was traced with {expected!r}",
            hint="Trace the function for this value too; burn.ir.RuntimeNumber is an example of a "
            "number that may differ",
            operation="a program",
        )
