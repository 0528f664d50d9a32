"""`custom_vjp`: a function with a gradient of its own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from burn.autodiff import custom_node, is_tracked, records
from burn.devices import VMAP, Device, Transform, running, transforms
from burn.dispatch import DispatchTensor, meet
from burn.errors import ArgumentError, AutodiffError, DTypeError, OperandTypeError, ShapeError
from burn.functions.common import dispatch
from burn.functions.creation import zeros
from burn.functions.manipulation import broadcast_to
from burn.functions.statistical import sum as sum_over
from burn.ops import Meta
from burn.transforms._arguments import (
    batched,
    check_callable,
    check_tensors,
    layered,
    resumed,
    under,
)
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
        tensors = [one for one in flatten(bound.args)[0] if isinstance(one, DispatchTensor)]
        device = functools.reduce(meet, [one.tensor_type.device for one in tensors], None)
        stack = transforms()
        if device is None or (not device.layers and not stack):
            return self._rules.run_function(*bound.args)
        result = _apply(self._rules, bound.args, stack)
        leaves, structure = flatten(result)
        return unflatten(
            structure,
            [
                layered(one, stack) if isinstance(one, DispatchTensor) else one  # type: ignore[arg-type]  # the only subclass that users see
                for one in leaves
            ],
        )


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
        for one in flatten(result)[0]:
            if isinstance(one, DispatchTensor) and is_tracked(one.primitive):
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
        for gradient_, argument, name in zip(found, leaves, names, strict=True):
            if gradient_ is not None:
                self._check(gradient_, argument, name)
        return found

    def _check(self, gradient: Any, argument: Any, name: str) -> None:
        """Raise an error unless a gradient has the shape and dtype of its argument."""
        if not isinstance(argument, DispatchTensor):
            raise OperandTypeError(
                f"the backward function returns a gradient for {name}, which is no tensor",
                hint="Return None there",
                operation=self.name,
            )
        if not isinstance(gradient, DispatchTensor):
            raise OperandTypeError(
                f"the gradient of {name} is an object of type {type(gradient).__name__}, no tensor",
                hint="The backward function returns tensors, and None where there is no gradient",
                operation=self.name,
            )
        own = Meta(tuple(gradient.primitive.shape), gradient.tensor_type.dtype)
        expected = Meta(tuple(argument.primitive.shape), argument.tensor_type.dtype)
        if own != expected:
            raise (DTypeError if own.shape == expected.shape else ShapeError)(
                f"the gradient of {name} is {own}, and the argument {expected}",
                hint="A gradient has the shape and dtype of its argument",
                operation=self.name,
            )

    def error_of_closure(self, what: str) -> AutodiffError:
        """The error for a tracked tensor that is no argument."""
        return AutodiffError(
            f"the {what} uses a tracked tensor that is no argument",
            hint="Pass it as an argument, or its .detach()",
            operation=self.name,
        )


def _apply(rules: _Rules, args: Sequence[Any], stack: tuple[Transform, ...] | None) -> Any:
    """Call a function at the outermost of some layers; None stands for the hardware."""
    if stack is None:
        with running(()):
            return rules.run_function(*args)
    below = stack[:-1] if stack else None
    leaves, structure = flatten(args)
    marked = [_is_marked(one, len(stack)) for one in leaves]
    if stack and stack[-1].kind == VMAP:
        if any(marked):
            return _apply_to_batch(rules, leaves, marked, structure, stack)
    elif any(marked):
        parents = [
            one.primitive for one, is_parent in zip(leaves, marked, strict=True) if is_parent
        ]
        if records(type(parents[0]), parents):
            return _recorded(rules, leaves, marked, structure, stack)
    lower = [_below(one, len(stack)) for one in leaves]
    return _apply(rules, unflatten(structure, lower), below)


def _is_marked(x: Any, depth: int) -> bool:
    """Whether a tensor is tracked, or batched, by the layer over a number of transforms."""
    if not isinstance(x, DispatchTensor) or len(x.tensor_type.device.layers) <= depth:
        return False
    return x.primitive.__class__ is x.tensor_type.device.backend.tensor_type


def _below(x: Any, depth: int) -> Any:
    """A tensor without the layer over a number of transforms."""
    if not isinstance(x, DispatchTensor) or len(x.tensor_type.device.layers) <= depth:
        return x
    return dispatch.inner(x)  # type: ignore[arg-type]  # the only subclass that users see


def _recorded(
    rules: _Rules,
    leaves: list[Any],
    tracked: list[bool],
    structure: Structure,
    stack: tuple[Transform, ...],
) -> Any:
    """Run the forward rule below an autodiff layer, and record the call in it."""
    depth = len(stack)
    lower = unflatten(structure, [_below(one, depth) for one in leaves])
    with running(stack[:-1]):
        result, needed = rules.run_forward(*lower)
    outputs, output_structure = flatten(result)
    check_tensors(outputs, result, "result", rules.name)
    if any(_is_marked(one, depth) for one in outputs):
        raise rules.error_of_closure("forward function")
    parents = [one for one, is_tracked in zip(leaves, tracked, strict=True) if is_tracked]
    device: Device = parents[0].tensor_type.device
    floats = [index for index, one in enumerate(outputs) if one.dtype.is_float]
    shapes = [(one.shape, one.dtype, one.device.hardware) for one in outputs]

    def pull(_: OpTable, cotangents: Sequence[Any]) -> list[Any]:
        target = under(device, transforms()) if depth else device.hardware
        given = dict(zip(floats, cotangents, strict=True))
        with running(transforms() if depth else ()):
            gradients = [
                zeros(shape, dtype=dtype, device=hardware)
                if given.get(index) is None
                else dispatch.wrap(given[index], target.type_of(given[index]))
                for index, (shape, dtype, hardware) in enumerate(shapes)
            ]
            found = rules.run_backward(
                needed, unflatten(output_structure, gradients), structure, lower
            )
        if any(_is_marked(one, len(target.layers)) for one in found):
            raise rules.error_of_closure("backward function")
        return [
            None if one is None else one.primitive
            for one, is_tracked in zip(found, tracked, strict=True)
            if is_tracked
        ]

    primitives = [outputs[index].primitive for index in floats]
    if primitives:
        nodes = [one.primitive.node for one in parents]
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
    marked: list[bool],
    structure: Structure,
    stack: tuple[Transform, ...],
) -> Any:
    """Call a function whose arguments are batched, below the layer of the batch.

    There it is a function of tensors with a batch axis, and so is its gradient.
    """
    depth = len(stack)
    flags: list[bool] = []

    def hide(tree: Any, is_batched: Sequence[bool]) -> Any:
        """Containers in which some tensors hide their first axis."""
        parts, containers = flatten(tree)
        hidden = [
            batched(one, 0, stack) if hides else one
            for one, hides in zip(parts, is_batched, strict=True)
        ]
        return unflatten(containers, hidden)

    def show(tree: Any) -> tuple[Any, list[bool]]:
        """Containers below the layer of the batch, and which tensors hid an axis."""
        parts, containers = flatten(tree)
        is_batched = [_is_marked(one, depth) for one in parts]
        return unflatten(containers, [_shown(one, depth) for one in parts]), is_batched

    def function(*args: Any) -> Any:
        with resumed(stack):
            result, flags[:] = show(rules.function(*hide(args, marked)))
        return result

    def forward(*args: Any) -> Any:
        with resumed(stack):
            result, needed = rules.run_forward(*hide(args, marked))
            result, flags[:] = show(result)
            return result, (show(needed), list(flags))

    def backward(kept: Any, gradient: Any) -> Any:
        needed, result_flags = kept
        with resumed(stack):
            found = rules.run_backward(
                hide(*needed), hide(gradient, result_flags), structure, hide(lower, marked)
            )
            shown = [
                _gradient_below(one, depth, stack, is_batched=is_batched)
                for one, is_batched in zip(found, marked, strict=True)
            ]
        return unflatten(structure, shown)

    lower = unflatten(structure, [_shown(one, depth) for one in leaves])
    result = _apply(_Rules(function, forward, backward, rules.name), lower, stack[:-1])
    return hide(result, flags)


def _shown(x: Any, depth: int) -> Any:
    """A tensor below the layer of a batch; one that hides its batch axis gets it in front."""
    if not _is_marked(x, depth):
        return _below(x, depth)
    return dispatch.wrap(x.primitive.primitive, x.device.below.tensor_type(x.dtype))


def _gradient_below(
    gradient: Any, depth: int, stack: tuple[Transform, ...], *, is_batched: bool
) -> Any:
    """The gradient of an argument with a batch axis, or of one that all examples share."""
    if gradient is None:
        return None
    has_axis = _is_marked(gradient, depth)
    below = _shown(gradient, depth)
    if has_axis and not is_batched:
        return sum_over(below, axis=0)
    if is_batched and not has_axis:
        return broadcast_to(below, (stack[-1].frame.size, *below.shape))
    return below
