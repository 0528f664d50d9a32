"""`custom_vjp`: a function with a gradient of its own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from burn.autodiff import custom_node, is_tracked, records
from burn.devices import VMAP, Device, Transform, running, transforms, under
from burn.dispatch import common_device
from burn.dtype import Kind
from burn.errors import ArgumentError, AutodiffError, OperandTypeError
from burn.functions.common import dispatch
from burn.functions.creation import zeros
from burn.functions.manipulation import broadcast_to
from burn.functions.normalize import number_dtype
from burn.functions.statistical import sum as sum_over
from burn.ops.quantized_primitive import is_quantized
from burn.transforms._arguments import (
    batched,
    check_callable,
    check_like,
    check_tensors,
    is_tensor,
    is_wrapped_at,
    layered,
    map_tensors,
    resumed,
    without_layer,
)
from burn.transforms._quantized_batches import unbatch
from burn.tree import Structure, broadcast, describe, flatten, paths, unflatten

if TYPE_CHECKING:
    from burn.ops import OpTable
    from burn.tensor.tensor import Tensor

__all__ = ["custom_vjp"]


class custom_vjp:  # noqa: N801 — used as a decorator
    """A function with a gradient of its own.

    Parameters
    ----------
    function : callable
        Takes tensors in any containers, and returns such.

    Notes
    -----
    Pass all tensors that have gradients as arguments: one that the functions take from elsewhere is
    an error. A derivative of second order differentiates what `defvjp` was given.

    Examples
    --------
    >>> import burn
    >>> @burn.custom_vjp
    ... def bounded(x, limit):
    ...     return burn.clip(x, -limit, limit)
    >>> bounded.defvjp(
    ...     lambda x, limit: (bounded(x, limit), x),      # the result, and what backward needs
    ...     lambda x, gradient: (gradient, None),         # a gradient of each argument, or None
    ... )
    >>> burn.grad(lambda x: bounded(x, 1.0).sum())(burn.asarray([0.5, 3.0], device="cpu"))
    Tensor([1., 1.], device='cpu:0')
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        check_callable(function, "custom_vjp")
        functools.update_wrapper(self, function)
        self._signature = inspect.signature(function)
        self._rules = _Rules(function, None, None, getattr(function, "__name__", repr(function)))

    def __repr__(self) -> str:
        return f"custom_vjp({self._rules.function!r})"

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        """Say how the gradient is computed.

        Parameters
        ----------
        forward : callable
            Takes the arguments of the function, and returns a pair of its result and what
            `backward` needs: anything.
        backward : callable
            ``backward(needed, gradient)`` takes that, and the gradient of the result in its
            containers. It returns a tuple of the gradient of each argument: in the containers of
            the argument, or None where it has none.

        Raises
        ------
        OperandTypeError
            If one is no function.
        """
        for rule in (forward, backward):
            if not callable(rule):
                raise OperandTypeError(
                    f"defvjp takes two functions, not an object of type {type(rule).__name__}",
                    hint="defvjp(forward, backward)",
                    operation=self._rules.name,
                )
        self._rules = _Rules(self._rules.function, forward, backward, self._rules.name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function.

        Raises
        ------
        ArgumentError
            If `defvjp` was not called.
        AutodiffError
            If a function uses a tracked tensor that is no argument.
        """
        if self._rules.backward is None:
            raise ArgumentError(
                "has no gradient yet", hint="Call its defvjp first", operation=self._rules.name
            )
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise ArgumentError(
                "keyword-only arguments have no order in which backward returns gradients",
                hint="Make them ordinary parameters",
                operation=self._rules.name,
            )
        devices = [tensor.device for tensor in flatten(bound.args)[0] if is_tensor(tensor)]
        device = functools.reduce(common_device, devices, None)
        stack = transforms()
        if device is None or (not device.layers and not stack):
            return self._rules.run_function(*bound.args)
        result = _apply(self._rules, bound.args, stack)
        return map_tensors(lambda tensor: layered(tensor, stack), result)


class _Rules:
    """A function and its gradient."""

    def __init__(
        self,
        function: Callable[..., Any],
        forward: Callable[..., Any] | None,
        backward: Callable[..., Any] | None,
        name: str,
    ) -> None:
        self.function = function
        self.forward = forward
        self.backward = backward
        self.name = name

    def run_function(self, *args: Any) -> Any:
        """The result for arguments that nothing tracks."""
        result = self.function(*args)
        for tensor in flatten(result)[0]:
            if is_tensor(tensor) and is_tracked(tensor.primitive):
                raise self.error_of_closure("function")
        return result

    def run_forward(self, *args: Any) -> tuple[Any, Any]:
        """The result, and what backward needs."""
        pair = self.forward(*args)  # type: ignore[misc]  # `defvjp` was called
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise OperandTypeError(
                f"the forward function returns {describe(pair)}",
                hint="It returns a pair: the result, and what the backward function needs",
                operation=self.name,
            )
        return pair

    def run_backward(
        self, needed: Any, gradient: Any, structure: Structure, args: Any
    ) -> list[Tensor | None]:
        """The gradient of each leaf of the arguments."""
        returned = self.backward(needed, gradient)  # type: ignore[misc]  # `defvjp` was called
        if not isinstance(returned, (tuple, list)) or len(returned) != len(args):
            raise OperandTypeError(
                f"the backward function returns {describe(returned)} for {len(args)} arguments",
                hint="It returns a tuple: a gradient for each argument, None where there is none",
                operation=self.name,
            )
        found = broadcast(tuple(returned), structure, self.name)
        leaves = flatten(args)[0]
        names = paths(args, "arguments")
        for item, argument, name in zip(found, leaves, names, strict=True):
            if item is not None:
                self._check(item, argument, name)
        return found

    def _check(self, gradient: Any, argument: Any, name: str) -> None:
        """Raise an error unless a gradient is a tensor like its argument."""
        if not is_tensor(argument):
            raise OperandTypeError(
                f"the backward function returns a gradient for {name}, which is no tensor",
                hint="Return None there",
                operation=self.name,
            )
        if not is_tensor(gradient):
            raise OperandTypeError(
                f"the gradient of {name} is an object of type {type(gradient).__name__}, no tensor",
                hint="The backward function returns tensors, and None where there is no gradient",
                operation=self.name,
            )
        check_like(gradient, argument, f"the gradient of {name}", "argument", self.name)

    def error_of_closure(self, what: str) -> AutodiffError:
        """The error for a tracked tensor that is no argument."""
        return AutodiffError(
            f"the {what} uses a tracked tensor that is no argument",
            hint="Pass it as an argument, or its .detach()",
            operation=self.name,
        )


def _apply(rules: _Rules, args: Sequence[Any], stack: tuple[Transform, ...] | None) -> Any:
    """Call a function at the outermost layer over some transforms; None stands for the hardware.

    The layer records the call, or maps it over a batch, if it tracks or batches an argument. Else
    the layer below takes the call.
    """
    if stack is None:
        with running(()):
            return rules.run_function(*args)
    level = len(stack)
    leaves, structure = flatten(args)
    wrapped = [is_wrapped_at(leaf, level) for leaf in leaves]
    if any(wrapped):
        if stack and stack[-1].kind == VMAP:
            return _apply_to_batch(rules, leaves, wrapped, structure, stack)
        parents = [
            leaf.primitive for leaf, is_parent in zip(leaves, wrapped, strict=True) if is_parent
        ]
        if records(type(parents[0]), parents):
            return _recorded(rules, leaves, wrapped, structure, stack)
    lower = unflatten(structure, [without_layer(leaf, level) for leaf in leaves])
    return _apply(rules, lower, stack[:-1] if stack else None)


def _recorded(
    rules: _Rules,
    leaves: list[Any],
    tracked: list[bool],
    structure: Structure,
    stack: tuple[Transform, ...],
) -> Any:
    """Run the forward rule below an autodiff layer, and record the call in it."""
    level = len(stack)
    lower = unflatten(structure, [without_layer(leaf, level) for leaf in leaves])
    with running(stack[:-1]):
        result, needed = rules.run_forward(*lower)
    outputs, output_structure = flatten(result)
    check_tensors(outputs, result, "result", rules.name)
    if any(is_wrapped_at(output, level) for output in outputs):
        raise rules.error_of_closure("forward function")
    parents = [leaf for leaf, is_parent in zip(leaves, tracked, strict=True) if is_parent]
    device: Device = parents[0].device
    floats = [index for index, output in enumerate(outputs) if output.dtype.kind is Kind.FLOAT]
    shapes = [(output.shape, number_dtype(output), output.device.hardware) for output in outputs]

    def pull(_: OpTable, cotangents: Sequence[Any]) -> list[Any]:
        # Later transforms may differentiate or batch the backward pass of a transform, but not that
        # of `Tensor.backward`, whose layer is the innermost one.
        current = transforms() if level else ()
        target = under(device, current) if level else device.hardware
        given = dict(zip(floats, cotangents, strict=True))
        with running(current):
            gradients = [
                zeros(shape, dtype=dtype, device=hardware)
                if given.get(index) is None
                else dispatch.wrap(given[index], target.type_of(given[index]))
                for index, (shape, dtype, hardware) in enumerate(shapes)
            ]
            found = rules.run_backward(
                needed, unflatten(output_structure, gradients), structure, lower
            )
        if any(is_wrapped_at(tensor, len(target.layers)) for tensor in found):
            raise rules.error_of_closure("backward function")
        return [
            None if tensor is None else tensor.primitive
            for tensor, is_parent in zip(found, tracked, strict=True)
            if is_parent
        ]

    primitives = [outputs[index].primitive for index in floats]
    if primitives:
        nodes = [parent.primitive.node for parent in parents]
        made = custom_node(
            device.backend.tensor_type, nodes, primitives, pull, device.below.ops, rules.name
        )
        for index, primitive in zip(floats, made, strict=True):
            on = under(outputs[index].device, stack, is_checkpointing=device.is_checkpointing)
            outputs[index] = dispatch.wrap(primitive, on.tensor_type(outputs[index].dtype))
    return unflatten(output_structure, outputs)


def _apply_to_batch(
    rules: _Rules,
    leaves: list[Any],
    is_batched: list[bool],
    structure: Structure,
    stack: tuple[Transform, ...],
) -> Any:
    """Call a function whose arguments are batched, below the layer of the batch.

    There it is a function of tensors with a batch axis, and so is its gradient.
    """
    level = len(stack)
    flags: list[bool] = []

    def function(*args: Any) -> Any:
        with resumed(stack):
            result = rules.function(*_with_hidden_axes(args, is_batched, stack))
            result, flags[:] = _with_shown_axes(result, level)
        return result

    def forward(*args: Any) -> Any:
        with resumed(stack):
            result, needed = rules.run_forward(*_with_hidden_axes(args, is_batched, stack))
            result, flags[:] = _with_shown_axes(result, level)
            return result, (_with_shown_axes(needed, level), list(flags))

    def backward(kept: Any, gradient: Any) -> Any:
        (needed, needed_flags), result_flags = kept
        with resumed(stack):
            found = rules.run_backward(
                _with_hidden_axes(needed, needed_flags, stack),
                _with_hidden_axes(gradient, result_flags, stack),
                structure,
                _with_hidden_axes(lower, is_batched, stack),
            )
            gradients = [
                _gradient_of_batch(tensor, stack, is_batched=flag)
                for tensor, flag in zip(found, is_batched, strict=True)
            ]
        return unflatten(structure, gradients)

    lower = unflatten(structure, [_with_shown_axis(leaf, level) for leaf in leaves])
    result = _apply(_Rules(function, forward, backward, rules.name), lower, stack[:-1])
    return _with_hidden_axes(result, flags, stack)


def _with_hidden_axes(tree: Any, is_batched: Sequence[bool], stack: tuple[Transform, ...]) -> Any:
    """Containers in which some tensors hide their first axis, that of the batch."""
    leaves, structure = flatten(tree)
    hidden = [
        batched(leaf, 0, stack) if flag else leaf
        for leaf, flag in zip(leaves, is_batched, strict=True)
    ]
    return unflatten(structure, hidden)


def _with_shown_axes(tree: Any, level: int) -> tuple[Any, list[bool]]:
    """Containers below the layer of a batch, and for each leaf whether it hid the batch axis."""
    leaves, structure = flatten(tree)
    is_batched = [is_wrapped_at(leaf, level) for leaf in leaves]
    return unflatten(structure, [_with_shown_axis(leaf, level) for leaf in leaves]), is_batched


def _with_shown_axis(x: Any, level: int) -> Any:
    """A leaf below the layer of a batch; a tensor that hides its batch axis gets it in front."""
    if not is_wrapped_at(x, level):
        return without_layer(x, level)
    if not is_quantized(x.primitive):
        return dispatch.wrap(x.primitive.primitive, x.device.below.tensor_type(x.dtype))
    frame = next(part.frame for part in x.primitive.parts if hasattr(part, "frame"))
    whole = unbatch(x.primitive, frame, 0, x.device)
    return dispatch.wrap(whole, x.device.below.tensor_type(whole.dtype))


def _gradient_of_batch(gradient: Any, stack: tuple[Transform, ...], *, is_batched: bool) -> Any:
    """The gradient of an argument with a batch axis, or of one that all examples share."""
    if gradient is None:
        return None
    has_axis = is_wrapped_at(gradient, len(stack))
    below = _with_shown_axis(gradient, len(stack))
    if has_axis and not is_batched:
        return sum_over(below, axis=0)
    if is_batched and not has_axis:
        return broadcast_to(below, (stack[-1].frame.size, *below.shape))
    return below
