"""New values for tensors that other objects refer to: parameters, and statistics of layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from burn.autodiff import is_wrapped
from burn.devices import outside_of_traces
from burn.dispatch import join_trace
from burn.errors import AutodiffError, ShapeError
from burn.functions.common import dispatch
from burn.functions.normalize import as_flag, check_tensor
from burn.functions.views import rebind

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["assign", "assign_all", "make_leaf"]


def assign(x: Tensor, value: Tensor, /, *, require_grad: bool | None = None) -> None:
    """Give this object the value of another tensor, and its dtype and device.

    All names of this object show the new value, as do views of it. A leaf remains a leaf, with
    its hooks, for later computations; what was computed from the old value is not changed. So
    optimizers update parameters.

    Parameters
    ----------
    value : Tensor
        Of the shape of this tensor: a leaf, or untracked.
    require_grad : bool, optional
        Whether this tensor is a leaf afterwards. By default it is one if it is one now, and
        a value of the same hardware comes to the autodiff device, or the device without
        autodiff, that this tensor is on.

    Returns
    -------
    None
        A view is no view any more: its new value is not written to its root.

    Raises
    ------
    ShapeError
        If the shape is another one.
    AutodiffError
        If the value was computed from tracked tensors; or if a transform computed it (`burn.grad`,
        `burn.vmap`), and it depends on the transform's arguments.
    OperandTypeError
        If it is to be a leaf on a device without autodiff.
    DTypeError
        If it is to be a leaf without a float dtype.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([3.0], device=burn.Device("cpu").autodiff()).require_grad()
    >>> x.assign(x.inner() - 0.1 * x.grad((x * x).sum().backward()))
    >>> x.is_require_grad, round(x.tolist()[0], 6)
    (True, 2.4)
    """
    check_tensor(value, "value", "assign")
    if require_grad is not None:
        require_grad = as_flag(require_grad, "require_grad", "assign")
    join_trace(x)
    join_trace(value)
    if value.shape != x.shape:
        raise ShapeError(
            f"a value of shape {value.shape} for a tensor of shape {x.shape}",
            hint="The shapes agree; make another tensor for another shape",
            operation="assign",
        )
    own, device = x.tensor_type.device, value.tensor_type.device
    is_leaf = dispatch.is_require_grad(x) if require_grad is None else require_grad
    if dispatch.is_require_grad(value):
        value = dispatch.detach(value)
    elif dispatch.is_tracked(value):
        raise AutodiffError(
            "the value was computed from tracked tensors, and its graph would go on growing",
            hint="Call .detach() on the value, or compute it inside burn.no_grad(); x[...] = value "
            "writes a tracked one",
            operation="assign",
        )
    if device is not own and (require_grad is None or len(device.layers) > max(1, len(own.layers))):
        value = _on_same_layers(value, x)
    if is_leaf:
        value = dispatch.leaf_for(x, value)
    elif require_grad is False:
        value = dispatch.detach(value)
    rebind(x, value)


def assign_all(tensors: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    """Let objects hold what other tensors hold, as by `assign` of each: parameters after a step.

    Parameters
    ----------
    tensors : sequence of Tensor
        Objects without layers of transforms, outside of traces.
    values : sequence of Tensor
        Untracked, in the shape and dtype of each object, on its device below autodiff.
    """
    renew = dispatch.renew_leaf
    for x, value in zip(tensors, values, strict=True):
        if x.link is not None or not renew(x, value.primitive):
            assign(x, value)


def make_leaf(x: Tensor) -> None:
    """Let a tensor of an autodiff device be a leaf, with the value that it has."""
    if x.tensor_type.device.is_traced:
        rebind(x, dispatch.leaf_for(x, x))
        return
    with outside_of_traces():  # the value from outside becomes a leaf, before a trace reads it
        rebind(x, dispatch.leaf_for(x, x))


def _on_same_layers(value: Tensor, x: Tensor) -> Tensor:
    """A value from the hardware of `x`, on the device of `x` unless it is tracked or a batch."""
    own, device = x.tensor_type.device, value.tensor_type.device
    if device.hardware is own.hardware and not is_wrapped(value.primitive):
        return dispatch.wrap(value.primitive, own.tensor_type(value.dtype))
    if len(device.layers) > max(1, len(own.layers)):
        raise AutodiffError(
            f"cannot give a tensor from outside what burn.{device.layers[-1]} computes from its "
            "arguments",
            hint="Return the value from the function; or assign value.detach(), which is a "
            "constant, but inside burn.vmap still another one for each example",
            operation="assign",
        )
    return value
