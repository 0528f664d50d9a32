"""Suite ``transfers``: values leave a device, come back, and are shared through DLPack."""

from __future__ import annotations

from typing import Final

import numpy as np

from burn import namespace as burn
from burn.backend.dlpack import HOST
from burn.device import Device
from burn.dtype import DType, bfloat16, float32
from burn.errors import BurnError, ExportError
from burn.testing.check import Skipped
from burn.testing.suites.expectations import expect, expect_error, expect_values, typical
from burn.testing.suites.suite import DeviceSuite, for_each_dtype

__all__ = ["SUITES"]

_transfers: Final = DeviceSuite("transfers", "values leave a device, come back, and are shared")


def _in_dlpack(dtype: DType) -> bool:
    """Whether NumPy exchanges a dtype through DLPack: bfloat16 is none of its own."""
    return dtype is not bfloat16


@_transfers.check("tensors of every layout are read", dtypes=for_each_dtype())
def every_layout_is_read(device: Device, dtype: DType) -> None:
    """Results of layout ops, which may be views with any strides."""
    values = typical(dtype, 4, 6)
    x = burn.asarray(values, device=device)
    for what, tensor, expected in (
        ("a tensor", x, values),
        ("a transposed tensor", x.T, values.T),
        ("a slice", x[1:3, 2:], values[1:3, 2:]),
        ("every second element", x[::2, ::3], values[::2, ::3]),
        ("a reversed tensor", x[::-1, ::-2], values[::-1, ::-2]),
        ("an element", x[2, 3], values[2, 3]),
        ("an expanded tensor", burn.broadcast_to(x[:1], (3, 6)), np.tile(values[:1], (3, 1))),
        ("no elements", x[2:2], values[2:2]),
        ("a reshaped transposed tensor", burn.reshape(x.T, (24,)), values.T.reshape(24)),
    ):
        expect_values(what, tensor, expected)
        expect(tensor.tolist() == expected.tolist() or dtype is bfloat16, f"tolist() of {what}")


@_transfers.check("what was read cannot be written to", dtypes=for_each_dtype())
def reads_are_read_only(device: Device, dtype: DType) -> None:
    """`numpy()` gives a read-only array, and what it holds stays as it is."""
    values = typical(dtype, 8)
    x = burn.asarray(values, device=device)
    array = x.numpy()
    expect(not array.flags.writeable, "numpy() gave an array that can be written to")
    x[0:4] = x[4:8]
    expect_values("an array that was read before an assignment", array, values)


@_transfers.check("several tensors are read together")
def read_together(device: Device) -> None:
    """A `Transaction` gives what each tensor gives alone."""
    values = [typical(float32, *shape) for shape in ((3,), (0,), (2, 5), ())]
    transaction = burn.Transaction()
    for one in values:
        transaction.register(burn.asarray(one, device=device) * 1)
    for data, expected in zip(transaction.execute(), values, strict=True):
        expect_values("a tensor of a transaction", data.array, expected)


@_transfers.check("to every other device and back", dtypes=for_each_dtype())
def to_other_devices(device: Device, dtype: DType) -> None:
    """Moved to each device that has the dtype, and back again."""
    others = [
        one
        for one in Device.enumerate()
        if one.hardware is not device.hardware and _works_with(one, dtype)
    ]
    if not others:
        raise Skipped(f"no other device has {dtype}")
    values = typical(dtype, 3, 5)
    for other in others:
        there = burn.asarray(values, device=device).to_device(other)
        expect(there.device is other, f"to_device({other}) is on {there.device}")
        expect_values(f"a tensor on {other}", there, values)
        back = there.to_device(device)
        expect(back.device is device, f"to_device({device}) is on {back.device}")
        expect_values(f"a tensor that was on {other}", back, values)


def _works_with(device: Device, dtype: DType) -> bool:
    try:
        return device.supports_dtype(dtype)
    except BurnError:  # it is there, and does not load
        return False


@_transfers.check("to the autodiff device and back")
def to_autodiff(device: Device) -> None:
    """The same hardware: nothing is copied, and the values are the same."""
    x = burn.asarray(typical(float32, 5), device=device)
    there = x.to_device(device.autodiff())
    expect(there.device is device.autodiff(), f"it is on {there.device}")
    expect(there.to_device(device).device is device, "it did not come back")
    expect_values("a tensor that was on the autodiff device", there.to_device(device), x.numpy())


@_transfers.check("NumPy takes exports", dtypes=for_each_dtype(_in_dlpack))
def exported(device: Device, dtype: DType) -> None:
    """`__dlpack__` in host memory: what the device has there, or a copy."""
    values = typical(dtype, 3, 4)
    x = burn.asarray(values, device=device)
    kind, _ = x.__dlpack_device__()
    expect(type(kind) is int or hasattr(kind, "__index__"), f"__dlpack_device__ gave {kind!r}")
    array = np.from_dlpack(x) if x.__dlpack_device__() == HOST else np.from_dlpack(x, device="cpu")
    expect_values("an export", array, values)
    expect(not array.flags.writeable, "an export that shares memory can be written to")
    transposed = x.T.__dlpack__(dl_device=HOST, max_version=(1, 0))
    expect(transposed is not None, "a transposed tensor was not exported")


@_transfers.check("a copy that is exported is nobody's", dtypes=for_each_dtype(_in_dlpack))
def exported_copy(device: Device, dtype: DType) -> None:
    """``copy=True`` gives memory that the tensor does not see."""
    values = typical(dtype, 6)
    x = burn.asarray(values, device=device)
    array = np.from_dlpack(x, device="cpu", copy=True)
    array[...] = np.roll(values, 1)
    expect_values("a tensor of which a copy was exported and changed", x, values)


@_transfers.check("a stream of nobody's is refused")
def wrong_stream(device: Device) -> None:
    """A stream that is no stream of the device is an error of DLPack's kind."""
    x = burn.ones(2, device=device)
    expect_error(
        BufferError, "__dlpack__ of a stream that is text", lambda: x.__dlpack__(stream="x")
    )


@_transfers.check("tracked tensors are not exported")
def tracked_export(device: Device) -> None:
    """An export would lose the gradient."""
    x = burn.ones(2, device=device.autodiff()).require_grad()
    expect_error(ExportError, "__dlpack__ of a tracked tensor", x.__dlpack__)


@_transfers.check("imports share memory or copy it", dtypes=for_each_dtype(_in_dlpack))
def imported(device: Device, dtype: DType) -> None:
    """`from_dlpack` of NumPy's arrays, and of tensors of burn's own."""
    values = typical(dtype, 3, 4)
    for source in (values.copy(), np.asfortranarray(values), values.copy()[:, ::1]):
        x = burn.from_dlpack(source, device=device)
        expect(x.device is device, f"from_dlpack gave a tensor on {x.device}, not on {device}")
        expect_values("an import", x, values)
        expect_values("a result of an import", burn.flip(x, axis=0), values[::-1])
    again = burn.from_dlpack(burn.asarray(values, device=device), device=device)
    expect_values("an import of an export", again, values)
    source = values.copy()
    x = burn.from_dlpack(source, device=device, copy=True)
    source[...] = np.roll(values, 1)
    expect_values("a copied import whose source was changed", x, values)


@_transfers.check("imports are not written to", dtypes=for_each_dtype(_in_dlpack))
def imports_are_left_alone(device: Device, dtype: DType) -> None:
    """Whatever is computed with an imported array, it stays what it was."""
    values = typical(dtype, 8)
    source = values.copy()
    x = burn.from_dlpack(source, device=device)
    x[0:4] = x[4:8]
    burn.concat([x, burn.flip(x)]).numpy()
    expect_values("an array that was imported", source, values)


SUITES: Final = [_transfers.suite]
