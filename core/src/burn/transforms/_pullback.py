"""A recorded call of a function, and the pullback from its results to its arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from burn.autodiff import Gradients, backward_all, is_tracked, recording
from burn.devices import GRAD, Transform, running, transforms, under
from burn.dispatch import DispatchTensor, common_device, prevailing_strategy
from burn.dtype import Kind
from burn.errors import ArgumentError, DTypeError, OperandTypeError
from burn.functions.common import dispatch
from burn.functions.creation import asarray, zeros
from burn.functions.normalize import as_flag
from burn.functions.views import independent
from burn.ops.arguments import python_number
from burn.public_calls import shown_value
from burn.transforms._arguments import (
    check_layers,
    check_like,
    check_tensors,
    is_tensor,
    is_wrapped_at,
    layered,
    lifted,
    map_tensors,
    on_device_of_caller,
    without_layer,
)
from burn.tree import Structure, describe, flatten, flatten_like, paths, unflatten

if TYPE_CHECKING:
    from burn.devices import Device
    from burn.tensor.tensor import Tensor

__all__ = ["Pullback", "linearize"]


class Pullback:
    """Takes gradients of a function's results to gradients of its arguments.

    Attributes
    ----------
    primals : list of Tensor
        The results, without the layer that recorded the call.
    structure : Structure
        Containers of the results.
    arguments : list of Tensor
        The tensors that the function was differentiated by, as the caller passed them.
    argument_structure : Structure
        Their containers.
    """

    def __init__(
        self,
        outputs: list[Tensor],
        structure: Structure,
        leaves: list[Tensor],
        arguments: list[Tensor],
        argument_structure: Structure,
        *,
        is_recorded: bool,
        operation: str,
    ) -> None:
        self._outputs = outputs
        self._leaves = leaves
        self._level = len(transforms()) + 1  # of the layer that recorded the call
        self._has_autodiff = any(argument.device.layers for argument in arguments)
        self._is_recorded = is_recorded
        self._operation = operation
        self.structure = structure
        self.arguments = arguments
        self.argument_structure = argument_structure
        self.primals = [self.result(output) for output in outputs]

    def __call__(self, cotangents: Any) -> Any:
        """Gradients of the arguments for gradients of the results, in the same containers."""
        parts = flatten_like(self.structure, cotangents, self._operation)
        return self.pull(parts, retain_graph=True)

    def pull(self, cotangents: Sequence[Tensor | None], *, retain_graph: bool) -> Any:
        """Gradients of the arguments for gradients of the results in order; None counts as 0."""
        pairs = [
            (output.primitive, self._start(output, cotangent, index))
            for index, (output, cotangent) in enumerate(zip(self._outputs, cotangents, strict=True))
            if cotangent is not None and is_wrapped_at(output, self._level)
        ]
        found = Gradients()
        if pairs:
            outputs, starts = zip(*pairs, strict=True)
            lift = None
            if self._runs_under_later_transforms():
                lift = functools.partial(lifted, operation=self._operation)
            found = backward_all(outputs, starts, retain_graph=retain_graph, lift=lift)
        given = [*self._outputs, *filter(is_tensor, cotangents)]
        gradients = [
            self._gradient(leaf, argument, found.get(leaf.primitive.node), given)
            for leaf, argument in zip(self._leaves, self.arguments, strict=True)
        ]
        return unflatten(self.argument_structure, gradients)

    def result(self, x: Tensor) -> Tensor:
        """A tensor that the function computed, as the caller knows tensors."""
        return self._for_caller(without_layer(x, self._level))

    def _runs_under_later_transforms(self) -> bool:
        """Whether transforms run that did not run when the function was called."""
        return len(transforms()) >= self._level

    def _start(self, output: Tensor, cotangent: Any, index: int) -> Any:
        """The primitive with which the backward pass starts at an output."""
        if not is_tensor(cotangent):
            number = python_number(cotangent)
            if not isinstance(number, (int, float)):
                raise OperandTypeError(
                    f"gradient {index} is an object of type {type(cotangent).__name__}, no tensor",
                    hint="Pass a tensor for each result, or None for 0",
                    operation=self._operation,
                )
            cotangent = asarray(number, dtype=output.dtype, device=output.device.hardware)
        check_like(cotangent, output, f"gradient {index}", "result", self._operation)
        common_device(under(output.device, transforms()), cotangent.device)
        return cotangent.primitive

    def _gradient(
        self, leaf: Tensor, argument: Tensor, primitive: Any, given: Sequence[DispatchTensor]
    ) -> Tensor:
        if primitive is None:
            made = zeros(argument.shape, dtype=argument.dtype, device=argument.device)
            return self._for_caller(made)
        is_checkpointing = prevailing_strategy([leaf, *given])
        layers = under(leaf.device, transforms()).layers
        device = leaf.device.layered(layers, is_checkpointing=is_checkpointing)
        return self._for_caller(dispatch.wrap(primitive, device.type_of(primitive)))

    def _for_caller(self, x: Tensor) -> Tensor:
        # What a later transform records is its own: it differentiates the pullback.
        is_recorded = self._is_recorded or self._runs_under_later_transforms()
        if not is_recorded and is_tracked(x.primitive):
            x = dispatch.detach(x)
        return on_device_of_caller(x, has_autodiff=self._has_autodiff)


def linearize(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    argnums: int | Sequence[int],
    *,
    has_aux: bool,
    operation: str,
) -> tuple[Pullback, Any]:
    """Run a function under a layer that records it; what it returns beside the results.

    Parameters
    ----------
    function : callable
        The function.
    args, kwargs : tuple, dict
        What it is called with.
    argnums : int or sequence of int
        Positions of the arguments to differentiate by.
    has_aux : bool
        Whether it returns a pair of its results and anything else.
    operation : str
        Name of the transform in errors.
    """
    has_aux = as_flag(has_aux, "has_aux", operation)
    number = python_number(argnums)
    is_single = isinstance(number, int)
    positions = _positions([number] if is_single else argnums, len(args), operation)
    selected = [args[position] for position in positions]
    parts, structure = flatten(selected[0] if is_single else tuple(selected))
    names = [path for number in positions for path in paths(args[number], f"argument {number}")]
    leaves = [*parts, *flatten([args, kwargs])[0]]
    devices = [leaf.device.hardware for leaf in leaves if is_tensor(leaf)]
    arguments = [
        _differentiable(part, devices, name, operation)
        for part, name in zip(parts, names, strict=True)
    ]
    is_checkpointing = any(argument.device.is_checkpointing for argument in arguments)
    stack = (*transforms(), Transform(GRAD, is_checkpointing=is_checkpointing))
    state = recording.get()
    is_recorded = state is not False
    token = recording.set(state if is_recorded else True)
    try:
        with running(stack):
            leaves = [
                dispatch.require_grad(layered(argument, stack, is_checkpointing=is_checkpointing))
                for argument in arguments
            ]
            for leaf in leaves:
                leaf.device.below.ops  # noqa: B018 — opened, so that `lifted` finds its device
            # The function may write to its arguments, which a leaf does not permit.
            tree = unflatten(structure, [independent(leaf) for leaf in leaves])
            values = dict(zip(positions, [tree] if is_single else tree, strict=True))
            result = function(*[values.get(i, arg) for i, arg in enumerate(args)], **kwargs)
            result, aux = _with_aux(result, has_aux=has_aux, operation=operation)
            outputs, output_structure = flatten(result)
            check_tensors(outputs, result, "result", operation)
    finally:
        recording.reset(token)
    pullback = Pullback(
        outputs,
        output_structure,
        leaves,
        arguments,
        structure,
        is_recorded=is_recorded,
        operation=operation,
    )
    return pullback, map_tensors(pullback.result, aux)


def _positions(argnums: Any, count: int, operation: str) -> list[int]:
    """The arguments to differentiate by, counted from the first of all positional ones."""
    if not isinstance(argnums, (list, tuple, range)):
        raise ArgumentError(
            f"argnums is {shown_value(argnums)}",
            hint="Use an integer or a tuple of them",
            operation=operation,
        )
    positions = [_position(number, count, operation) for number in argnums]
    if len(set(positions)) < len(positions):
        raise ArgumentError(f"argnums {tuple(argnums)} has an argument twice", operation=operation)
    return positions


def _position(argnum: Any, count: int, operation: str) -> int:
    number = python_number(argnum)
    if number.__class__ is not int or not -count <= number < count:
        raise ArgumentError(
            f"there is no argument {shown_value(argnum)} among {count} positional ones",
            hint="argnums counts positional arguments from 0; keyword arguments are constants",
            operation=operation,
        )
    return int(number % count)


def _differentiable(x: Any, devices: Sequence[Device], name: str, operation: str) -> Tensor:
    """A tensor to differentiate by; a number goes to the first device of the arguments."""
    if is_tensor(x):
        check_layers(x, name, operation)
        if x.dtype.kind is not Kind.FLOAT:
            raise DTypeError(
                f"{name} is a tensor of {x.dtype}; only float tensors have gradients",
                hint="Convert it with .astype(), or choose other arguments with argnums",
                operation=operation,
            )
        return x
    number = python_number(x)
    if not isinstance(number, float):
        raise OperandTypeError(
            f"{name} is an object of type {type(x).__name__}, by which nothing is differentiated",
            hint="Pass float tensors, or choose other arguments with argnums",
            operation=operation,
        )
    return asarray(number, device=devices[0] if devices else None)


def _with_aux(result: Any, *, has_aux: bool, operation: str) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise OperandTypeError(
            f"the function returns {describe(result)}",
            hint="With has_aux it returns a pair of its result and anything else",
            operation=operation,
        )
    return result
