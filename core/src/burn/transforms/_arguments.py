"""Tensors on their way into the function of a transform and out of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from burn.autodiff import is_tracked
from burn.devices import Device, Transform, running, transforms, under
from burn.dispatch import DispatchTensor, common_device, join_trace, meta_of
from burn.errors import AutodiffError, DTypeError, OperandTypeError, ShapeError
from burn.functions.common import dispatch
from burn.ops.quantized_primitive import is_quantized
from burn.transforms._quantized_batches import batch
from burn.tree import map as map_leaves, paths

if TYPE_CHECKING:
    from burn.ops import OpTable
    from burn.tensor.tensor import Tensor

__all__ = [
    "batched",
    "check_callable",
    "check_layers",
    "check_like",
    "check_tensors",
    "is_tensor",
    "is_wrapped_at",
    "layered",
    "lifted",
    "map_tensors",
    "on_device_of_caller",
    "resumed",
    "without_layer",
]


def is_tensor(x: object) -> TypeGuard[Tensor]:
    """Whether an object is a tensor, by its own class and not a property ``__class__``."""
    return issubclass(type(x), DispatchTensor)


def map_tensors(function: Callable[[Tensor], Any], tree: Any) -> Any:
    """Containers with the results of a function of each tensor; all other leaves stay."""
    return map_leaves(lambda leaf: function(leaf) if is_tensor(leaf) else leaf, tree)


def layered(x: Tensor, stack: Sequence[Transform], *, is_checkpointing: bool = False) -> Tensor:
    """Another tensor with the same value under these transforms, a constant to the last one."""
    join_trace(x)
    target = under(x.device, stack, is_checkpointing=is_checkpointing)
    common_device(x.device, target)  # refuses a tensor that was kept from another transform
    return dispatch.wrap(x.primitive, target.tensor_type(x.dtype))


def batched(
    x: Tensor, axis: int, stack: Sequence[Transform], *, is_checkpointing: bool = False
) -> Tensor:
    """A tensor that hides its batch axis, under transforms of which the last one is a vmap."""
    result = layered(x, stack, is_checkpointing=is_checkpointing)
    device = result.device
    frame = stack[-1].frame
    if is_quantized(result.primitive):
        primitive = batch(result.primitive, frame, axis, device)
        return dispatch.wrap(primitive, device.tensor_type(primitive.dtype))
    result.primitive = device.backend.batch(result.primitive, frame, axis, device.ops)
    return result


@contextlib.contextmanager
def resumed(stack: tuple[Transform, ...]) -> Iterator[None]:
    """Context in which transforms run again that have returned, for a backward pass."""
    frames = [transform.frame for transform in stack if transform.frame is not None]
    for frame in frames:
        frame.enter()
    try:
        with running(stack):
            yield
    finally:
        for frame in frames:
            frame.leave()


def is_wrapped_at(x: Any, level: int) -> bool:
    """Whether a leaf is a tensor that one layer of its device, by its index, tracks or batches.

    It is the outermost layer of that device.
    """
    if not is_tensor(x) or len(x.device.layers) != level + 1:
        return False
    kind = x.device.backend.tensor_type
    if is_quantized(x.primitive):
        return any(part.__class__ is kind for part in x.primitive.parts)
    return x.primitive.__class__ is kind


def without_layer(x: Any, level: int) -> Any:
    """A leaf below the layer with this index; as it is where it is no tensor of that layer."""
    if not is_tensor(x) or len(x.device.layers) <= level:
        return x
    return dispatch.inner(x)


def on_device_of_caller(x: Tensor, *, has_autodiff: bool) -> Tensor:
    """A result of a transform on a device such as its caller knows.

    Where no argument of the outermost transform was on a device with autodiff, the result is not
    either, unless it is tracked.
    """
    if has_autodiff or transforms() or not x.device.layers or is_tracked(x.primitive):
        return x
    return dispatch.wrap(x.primitive, x.device.hardware.tensor_type(x.dtype))


def check_callable(function: Any, operation: str) -> None:
    """Raise OperandTypeError unless a transform was given a function."""
    if not callable(function):
        raise OperandTypeError(
            f"takes a function, not an object of type {type(function).__name__}",
            hint=f"burn.{operation}(function)(arguments)",
            operation=operation,
        )


def check_layers(x: Tensor, name: str, operation: str) -> None:
    """Raise AutodiffError if an argument belongs to a transform that does not run."""
    if len(x.device.layers) > len(transforms()) + 1:
        raise AutodiffError(
            f"{name} is on {x.device}, which belongs to a transform that does not run here",
            hint="Return tensors from the function of a transform; a thread that its function "
            "starts runs contextvars.copy_context().run(...)",
            operation=operation,
        )


def check_tensors(leaves: Sequence[Any], tree: Any, name: str, operation: str) -> None:
    """Raise OperandTypeError unless all leaves of a result are tensors."""
    for index, leaf in enumerate(leaves):
        if not is_tensor(leaf):
            raise OperandTypeError(
                f"{paths(tree, name)[index]} is an object of type {type(leaf).__name__}, no tensor",
                hint="The function returns tensors, also in lists, tuples and dicts",
                operation=operation,
            )


def check_like(x: Tensor, expected: Tensor, what: str, owner: str, operation: str) -> None:
    """Raise ShapeError or DTypeError unless a tensor has the shape and dtype of its owner.

    Parameters
    ----------
    x, expected : Tensor
        A gradient or a direction, and the tensor to which it belongs.
    what, owner : str
        How errors name them.
    operation : str
        Name of the transform in errors.
    """
    own, wanted = meta_of(x), meta_of(expected)
    if own != wanted:
        raise (DTypeError if own.shape == wanted.shape else ShapeError)(
            f"{what} is {own}, and the {owner} {wanted}",
            hint=f"It has the shape and dtype of the {owner}",
            operation=operation,
        )


def lifted(table: OpTable, operation: str) -> OpTable:
    """The table of the same device under the transforms that run now, for gradient rules."""
    device: Device | None = table.handle
    if device is None:
        raise AutodiffError(
            "the function moved tensors to another device, where the transforms cannot follow",
            hint="Move tensors between devices outside of the function",
            operation=operation,
        )
    return under(device, transforms()).ops
