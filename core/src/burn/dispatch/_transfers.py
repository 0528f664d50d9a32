"""Transfers: the members of `Dispatch` that bring tensors in and out, and to other devices."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from burn.aliases import Primitive
from burn.autodiff import Route, value_of
from burn.device_id import DeviceId
from burn.devices import Device, TensorType, under_running
from burn.devices.transfer import fail, transfer
from burn.dispatch._operands import (
    DispatchTensor,
    common_device,
    join_operands,
    join_trace,
    meta_of,
)
from burn.dtype import DType
from burn.errors import AutodiffError, TraceError
from burn.ops import OpTable
from burn.ops.quantized_primitive import is_quantized, of_parts
from burn.quantized.backend import download, read_all, upload
from burn.tensor_data import QuantizedData, TensorData

__all__ = ["Transfers"]

_Tensor = TypeVar("_Tensor", bound=DispatchTensor)


class Transfers(Generic[_Tensor]):
    """Base of `Dispatch` with the members of a Backend that move data, quantized or not."""

    if TYPE_CHECKING:

        def wrap(self, primitive: Primitive, tensor_type: TensorType) -> _Tensor:
            """Tensor around a primitive."""

        def device(self, device: DeviceId | Device) -> Device:
            """Handle of a dispatch-level DeviceId."""

        def is_tracked(self, x: _Tensor) -> bool:
            """Whether a tensor is a leaf or was computed from one."""

    def from_data(self, data: TensorData, device: DeviceId | Device) -> _Tensor:
        """Upload host data, to the device with the layers of all running transforms."""
        device = under_running(self.device(device))
        tensor_type = device.tensor_type(data.dtype)
        backend = device.ops.backend
        try:
            if isinstance(data, QuantizedData):
                primitive: Any = upload(backend, data, device.id)
            else:
                primitive = backend.from_data(data, device.id)
        except Exception as error:  # noqa: BLE001 — of whatever library is underneath
            fail(device, error, f"from_data({data.dtype}{list(data.shape)})")
        return self.wrap(primitive, tensor_type)

    def to_data(self, x: _Tensor) -> TensorData:
        """Read values back."""
        join_trace(x)
        device = x.tensor_type.device
        backend = device.ops.backend
        primitive = value_of(x.primitive)
        try:
            if is_quantized(primitive):
                return download(backend, primitive)
            return backend.to_data(primitive)  # type: ignore[no-any-return]  # of the backend
        except Exception as error:  # noqa: BLE001 — of whatever library is underneath
            fail(device, error, f"to_data({meta_of(x)})")

    def read_all(self, tensors: Sequence[_Tensor]) -> list[TensorData]:
        """Read several tensors, those of one device together."""
        join_operands(tensors)
        results: dict[int, TensorData] = {}
        by_device: dict[Device, list[int]] = {}
        for index, x in enumerate(tensors):
            by_device.setdefault(x.tensor_type.device, []).append(index)
        for device, indices in by_device.items():
            primitives = [value_of(tensors[index].primitive) for index in indices]
            backend = device.ops.backend
            try:
                data = read_all(backend, primitives)
            except Exception as error:  # noqa: BLE001 — of whatever library is underneath
                fail(device, error, "read_all")
            results.update(zip(indices, data, strict=True))
        return [results[index] for index in range(len(tensors))]

    def to_device(self, x: _Tensor, device: DeviceId | Device) -> _Tensor:
        """The tensor on another device; the gradient of a tracked one comes back.

        Between devices of the same hardware the value stays where it is. A tracked tensor goes on
        being tracked, from there on by the strategy of the target.

        Raises
        ------
        DTypeError
            If the device does not have the dtype.
        AutodiffError
            If the tensor is tracked, and the device does not track gradients.
        """
        join_trace(x)
        source: Device = x.tensor_type.device
        dtype: Any = x.tensor_type.dtype
        target = under_running(self.device(device))
        if target is source:
            return x
        if target.is_traced and target != source:
            raise TraceError(
                f"a program runs on one device, and this moves a tensor from {source.name} to "
                f"{target.name}",
                hint="Trace what runs on each device for itself, and move tensors between",
                operation="to_device",
            )
        tensor_type = target.tensor_type(dtype)
        is_leaving = len(target.layers) < len(source.layers)
        if is_leaving and self.is_tracked(x):
            raise AutodiffError(
                f"the gradient of a tracked tensor would be lost on {target}",
                hint=f'Move it to "autodiff<{target.name}>", or drop the gradient with .inner()',
                operation="to_device",
            )
        primitive = value_of(x.primitive) if is_leaving else x.primitive
        if target.hardware is source.hardware:
            common_device(source, target)  # refuses the layers of another transform
        elif is_quantized(primitive):
            parts = zip(dtype.scheme.part_dtypes, primitive.parts, strict=True)
            moved = [_moved(part, source, target, item) for item, part in parts]
            primitive = of_parts(moved, dtype.scheme)
        else:
            primitive = _moved(primitive, source, target, dtype)
        return self.wrap(primitive, tensor_type)


def _moved(primitive: Primitive, source: Device, target: Device, dtype: DType) -> Primitive:
    """A primitive of one device on another one, of other hardware."""
    if len(target.layers) < len(source.layers):
        return transfer(dtype, source.hardware, target.hardware, primitive)
    # To the layers above those of the source it is a constant.
    same_layers = target.layered(source.layers, is_checkpointing=target.is_checkpointing)
    return _route(dtype, source, same_layers).carry(primitive)


def _route(dtype: DType, source: Device, target: Device) -> Route:
    """The way from one device to another under the same layers."""
    below = target
    while below.layers:
        below = below.below
        below.ops  # noqa: B018 — opened, so that gradient rules find its device

    def back(table: OpTable) -> Route:
        start: Device = table.handle or target.hardware  # the table that autodiff has resolved
        end = source.layered(start.layers, is_checkpointing=source.is_checkpointing)
        return _route(dtype, start, end)

    move = functools.partial(transfer, dtype, source.hardware, target.hardware)
    return Route(source.backend, target.backend, target.id, move, back)
