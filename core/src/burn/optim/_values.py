"""Values of parameters, on the device below autodiff."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn.devices import AUTODIFF, outside_of_traces
from burn.dtype import uint8
from burn.errors import AutodiffError, DTypeError, ShapeError
from burn.functions.common import dispatch
from burn.functions.normalize import check_tensor
from burn.functions.views import rebind

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "check_gradient",
    "constant",
    "converted",
    "follow",
    "is_leaf",
    "plain",
    "value_of",
    "with_value",
]


def plain(x: Tensor) -> Tensor:
    """The value of a tensor on the device below autodiff, untracked."""
    return x.detach().inner() if x.device.layers else x.detach()


def is_leaf(x: Tensor) -> bool:
    """Whether a tensor is a leaf of the user's, not of a transform."""
    return x.device.layers == (AUTODIFF,) and x.is_require_grad


def value_of(x: Tensor) -> Tensor:
    """What an update computes with: the value of a leaf, or the tensor itself."""
    return plain(x) if is_leaf(x) else x


def check_gradient(x: Tensor, gradient: Any, path: str, operation: str) -> None:
    """Raise ShapeError or DTypeError unless a gradient has the shape and dtype of its parameter."""
    check_tensor(gradient, f"the gradient of {path!r}", operation)
    if gradient.shape != x.shape:
        raise ShapeError(
            f"the gradient of {path!r} has shape {gradient.shape}, and the parameter {x.shape}",
            hint="Pass what backward() or burn.grad gives for this parameter",
            operation=operation,
        )
    if gradient.dtype is not x.dtype:
        raise DTypeError(
            f"the gradient of {path!r} has dtype {gradient.dtype}, and the parameter {x.dtype}",
            hint=f'Call .astype("{x.dtype}") on it',
            operation=operation,
        )


def constant(gradient: Tensor, path: str, operation: str) -> Tensor:
    """The value of a gradient, for a parameter that becomes a leaf.

    Raises
    ------
    AutodiffError
        If it depends on the arguments of a running transform, which would be lost.
    """
    if len(gradient.device.layers) > 1:
        raise AutodiffError(
            f"the gradient of {path!r} is on {gradient.device}, and the parameter from outside of "
            "that transform",
            hint="Call optimizer.update(parameters, gradients, state) there, with parameters that "
            "are arguments of the function, or on a device without autodiff",
            operation=operation,
        )
    return plain(gradient)


def with_value(x: Tensor, value: Tensor) -> Tensor:
    """A new value of a parameter, which is a leaf if the parameter is."""
    return dispatch.from_inner(value, x.device).require_grad() if is_leaf(x) else value


def converted(value: Tensor, x: Tensor) -> Tensor:
    """A value on the device of another tensor, in its dtype."""
    if value.tensor_type is x.tensor_type:
        return value
    return value.to_device(x.device).astype(x.dtype)


def follow(kept: Tensor, x: Tensor) -> None:
    """Bring what is kept of a parameter to the device and dtype that the parameter has now.

    Codes, which are bytes, stay what they are.
    """
    device = x.device.untraced.hardware
    dtype = uint8 if kept.dtype is uint8 else x.dtype
    if kept.dtype is dtype and kept.device.untraced is device:
        return
    if kept.device.is_traced:  # in the running trace, which has used it before
        rebind(kept, kept.astype(dtype))
        return
    with outside_of_traces():  # a program runs on one device, so it does not move tensors
        rebind(kept, kept.to_device(device).astype(dtype))
