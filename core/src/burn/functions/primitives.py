"""Tensors around primitives: the objects that the library of a backend computes with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn.autodiff import AutodiffTensor
from burn.devices import Device
from burn.dispatch import DispatchTensor
from burn.errors import (
    AutodiffError,
    BurnError,
    DeviceMismatchError,
    DTypeError,
    OperandTypeError,
    UnsupportedOpError,
)
from burn.functions._registration import register_with_libraries
from burn.functions.common import dispatch
from burn.plugins import describe

if TYPE_CHECKING:
    from burn.device_id import DeviceId
    from burn.tensor.tensor import Tensor

__all__ = ["from_primitive", "wrapped"]


def from_primitive(primitive: Any, device: Device) -> Tensor:
    """A tensor around a primitive of the device's backend; see `Tensor.from_primitive`."""
    below = primitive
    if isinstance(primitive, AutodiffTensor):
        if not device.is_autodiff or not device.backend.is_tracked(primitive):
            raise AutodiffError(
                f"the primitive of a tracked tensor is no primitive of {device}",
                hint="Take that of tensor.detach(), or name the device of the tensor",
                operation="from_primitive",
            )
        below = primitive.primitive
    own = _device_of_primitive(below, device)
    if own != device.id:
        raise DeviceMismatchError(
            f"the primitive is on {_name_of(own, device)}, not on {device.name}",
            hint=f'Make the tensor on that device, and call .to_device("{device.name}")',
            operation="from_primitive",
        )
    if below is primitive:
        found = device.ops.backend.as_primitive(primitive)
        return wrapped(found, device, DTypeError, "from_primitive")
    register_with_libraries()
    return dispatch.wrap(primitive, device.tensor_type(device.ops.dtypes[below.dtype]))


def wrapped(primitive: Any, device: Device, error: type[BurnError], operation: str) -> Tensor:
    """A tensor around a primitive of the device's backend, perhaps of a dtype without a `DType`.

    Raises
    ------
    BurnError
        Of the class `error`, if it has a dtype that the device does not have.
    """
    dtype = device.ops.dtypes.get(primitive.dtype)
    if dtype is None:
        raise error(
            f"{device.name} has no dtype {primitive.dtype!r}",
            hint=f"It has {', '.join(str(dtype) for dtype in device.dtypes())}",
            operation=operation,
        )
    register_with_libraries()
    return dispatch.wrap(primitive, device.tensor_type(dtype))


def _device_of_primitive(primitive: Any, device: Device) -> DeviceId:
    """The device of a primitive; an error where it is no primitive of the device's backend."""
    kind = f"an object of type {type(primitive).__name__}"
    if isinstance(primitive, DispatchTensor):
        raise OperandTypeError(
            "a tensor is no primitive",
            hint="Its attribute `primitive` is one; .to_device() moves a tensor",
            operation="from_primitive",
        )
    backend = device.ops.backend
    try:
        own: DeviceId | None = backend.device_of(primitive)
    except BurnError as error:
        error.operation = error.operation or "from_primitive"
        raise
    except Exception as error:
        raise OperandTypeError(
            f"{kind} is no primitive of {device.name}: {describe(error)}",
            operation="from_primitive",
        ) from error
    if own is not None:
        return own
    zero = device.ops.full(shape=(), fill_value=0, dtype=device.settings.float_dtype)
    if backend.device_of(zero) is None:
        raise UnsupportedOpError(
            f"the backend {device.backend_name!r} does not say which primitives it takes",
            hint="burn.asarray() and burn.from_dlpack() make tensors of arrays",
            operation="from_primitive",
        )
    raise OperandTypeError(
        f"{kind} is no primitive of {device.name}, which computes with {type(zero).__name__}",
        hint="burn.asarray() makes a tensor of any array",
        operation="from_primitive",
    )


def _name_of(device_id: DeviceId, device: Device) -> str:
    """Name of another device of the same backend."""
    found = [index.name for index in Device.enumerate(device.backend_name) if index.id == device_id]
    return found[0] if found else f"another device of {device.backend_name}"
