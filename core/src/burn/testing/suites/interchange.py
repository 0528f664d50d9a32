"""Suite ``interchange``: memory is shared with other libraries, and never written to."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn import namespace as burn
from burn.backend.capsule import read_capsule
from burn.backend.dlpack import HOST, export_host, import_host, is_readable
from burn.devices import Device
from burn.dtype import DType, bfloat16, float32
from burn.errors import AutodiffError, DeviceMismatchError, ExportError, OperandTypeError
from burn.tensor_data import TensorData
from burn.testing._check import Skipped
from burn.testing.suites.expectations import (
    expect,
    expect_error,
    expect_values,
    gradient_of,
    typical,
)
from burn.testing.suites.suite import DeviceSuite, for_each_dtype
from burn.testing.suites.transfers import layouts, works_with

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["SUITES"]

_interchange: Final = DeviceSuite("interchange", "memory is shared with other libraries")


def _in_dlpack(dtype: DType) -> bool:
    """Whether NumPy takes exports of a dtype: bfloat16 is none of its own."""
    return dtype is not bfloat16


@_interchange.check("exports have the values", dtypes=for_each_dtype())
def exported(device: Device, dtype: DType) -> None:
    """`__dlpack__` in host memory: the device's own memory, read-only, or a copy."""
    for what, x, values in layouts(device, dtype):
        data = import_host(_OnHost(x))
        expect(data.dtype is dtype, f"an export of {what} has the dtype {data.dtype}")
        expect_values(f"an export of {what}", data.array, values)
        if x.__dlpack_device__() == HOST:
            expect(not data.array.flags.writeable, f"an export of {what} can be written to")


@_interchange.check("a tensor of the device needs no copy", dtypes=for_each_dtype())
def taken_back(device: Device, dtype: DType) -> None:
    """`from_dlpack` without a copy, whatever memory the device exports; a write stays apart."""
    for what, x, values in layouts(device, dtype):
        found = burn.from_dlpack(x, copy=False)
        expect(found.device is device, f"{what} is on {found.device} then")
        expect_values(f"from_dlpack of {what}", found, values)
        if found.size:
            found[...] = burn.zeros_like(found)
            expect_values(f"{what}, after a write to that", x, values)


@_interchange.check("what is exported as a copy is not shared", dtypes=for_each_dtype())
def imported_copy(device: Device, dtype: DType) -> None:
    """`from_dlpack` without a copy of an array that its library copies is an error."""
    copied = _Copied(typical(dtype, 4, 3))
    take = partial(burn.from_dlpack, copied, device=device, copy=False)
    expect_error(ExportError, "from_dlpack(copy=False) of an array that is copied", take)
    expect_values("from_dlpack of it", burn.from_dlpack(copied, device=device), copied.values)


class _Copied:
    """An array whose library exports it as a copy only."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __dlpack__(self, *, copy: bool | None = None, **options: Any) -> Any:
        if copy is False:
            raise BufferError("it is exported as a copy only")
        return export_host(TensorData(self.values), copy=True, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return HOST


class _OnHost:
    """A tensor whose exports are in host memory."""

    def __init__(self, x: Tensor) -> None:
        self._x = x

    def __dlpack__(self, **options: Any) -> Any:
        return self._x.__dlpack__(**{**options, "dl_device": HOST})

    def __dlpack_device__(self) -> tuple[int, int]:
        return HOST


@_interchange.check("exports say what they are", dtypes=for_each_dtype())
def export_marks(device: Device, dtype: DType) -> None:
    """The marks of DLPack: where it lies, whether it may be written to, whether it is a copy."""
    for what, x, _ in layouts(device, dtype):
        dlpack_device = x.__dlpack_device__()
        expect(
            type(dlpack_device) is tuple and len(dlpack_device) == 2,
            f"__dlpack_device__ gave {dlpack_device!r}",
        )
        try:
            capsule = x.__dlpack__(max_version=(1, 0))
        except ExportError:
            if dlpack_device == HOST:
                raise
            continue  # the library underneath has no DLPack for this dtype
        found = read_capsule(capsule)
        expect(
            found.device == tuple(map(int, dlpack_device)),
            f"{what} is at {found.device}, not {dlpack_device}",
        )
        expect(found.dtype is dtype, f"{what} is exported as {found.dtype}")
        expect(found.shape == x.shape, f"{what} is exported with the shape {found.shape}")
        # Both capsules live on, so that no memory of theirs is used again.
        shared = _shared_capsules(x)
        memory, other = (read_capsule(item).address for item in shared) if shared else (None, None)
        expect(
            not x.size or memory == other,
            f"__dlpack__(copy=False) of {what} gave a copy: it must raise BufferError",
        )
        expect(
            not x.size or found.is_read_only or found.is_copied or found.address != memory,
            f"an export of {what} is in the memory of the tensor, and not marked as read-only",
        )
        expect(not found.has_negative_strides, f"{what} is exported with negative strides")
        expect(read_capsule(x.__dlpack__()).version is None, "who knows no version got a later one")
        for options in ({"copy": True}, {"copy": True, "max_version": (1, 0)}, {}):
            copy = x.__dlpack__(**options)
            copied = read_capsule(copy)
            expect(
                not x.size or copied.address != memory,
                f"what should be a copy of {what} is in the memory of the tensor: {options}",
            )


def _shared_capsules(x: Tensor) -> list[Any]:
    """Two exports of a tensor without a copy; none where it needs one."""
    try:
        return [x.__dlpack__(copy=False), x.__dlpack__(copy=False)]
    except ExportError:
        return []


@_interchange.check("NumPy's array without a copy is in the memory", dtypes=for_each_dtype())
def array_without_copy(device: Device, dtype: DType) -> None:
    """``copy=False`` of `numpy.asarray` shares memory, or is an error."""
    x = burn.asarray(typical(dtype, 4, 3), device=device)
    try:
        arrays = [np.asarray(x, copy=False) for _ in range(2)]
    except (ValueError, OperandTypeError):
        return
    first, second = (array.__array_interface__["data"][0] for array in arrays)
    expect(first == second, "np.asarray(x, copy=False) gave a copy: it must raise ValueError")


@_interchange.check(
    "a copy that is exported belongs to its consumer", dtypes=for_each_dtype(_in_dlpack)
)
def exported_copy(device: Device, dtype: DType) -> None:
    """``copy=True`` gives memory that the tensor does not see."""
    values = typical(dtype, 6)
    x = burn.asarray(values, device=device)
    array = np.from_dlpack(x, device="cpu", copy=True)
    array[...] = np.roll(values, 1)
    expect_values("a tensor of which a copy was exported and changed", x, values)


@_interchange.check("an unknown stream is refused")
def wrong_stream(device: Device) -> None:
    """A stream that is no stream of the device is an error of DLPack's kind."""
    x = burn.ones(2, device=device)
    expect_error(
        BufferError, "__dlpack__ of a stream that is text", lambda: x.__dlpack__(stream="x")
    )


@_interchange.check("tracked tensors are not exported")
def tracked_export(device: Device) -> None:
    """An export would lose the gradient."""
    x = burn.ones(2, device=device.autodiff()).require_grad()
    expect_error(ExportError, "__dlpack__ of a tracked tensor", x.__dlpack__)


@_interchange.check("imports share memory or copy it", dtypes=for_each_dtype())
def imported(device: Device, dtype: DType) -> None:
    """`from_dlpack` of NumPy's arrays of any strides, and of tensors of burn's own."""
    values = typical(dtype, 3, 4)
    fixed = values.copy()
    fixed.flags.writeable = False
    for what, source in (
        ("an array", values.copy()),
        ("an array of Fortran's order", np.asfortranarray(values)),
        ("every second column", np.repeat(values, 2, axis=1)[:, ::2]),
        ("a reversed array", values[::-1, ::-1].copy()[::-1, ::-1]),
        ("a read-only array", fixed),
        ("one row many times", np.broadcast_to(values[:1], (3, 4))),
        ("a 0-d array", values[1, 2, ...]),
        ("no elements", values[:, :0]),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            x = burn.from_dlpack(source, device=device)
        expect(x.device is device, f"from_dlpack gave a tensor on {x.device}, not on {device}")
        expect_values(f"an import of {what}", x, source)
        expect_values(f"a result of an import of {what}", burn.flip(x), np.flip(source))
        again = burn.from_dlpack(x)
        expect(again.device is device, f"an export came back on {again.device}")
        expect_values(f"an import of an export of {what}", again, source)
    source = values.copy()
    x = burn.from_dlpack(source, device=device, copy=True)
    source[...] = np.roll(values, 1)
    expect_values("a copied import whose source was changed", x, values)


@_interchange.check("imports keep their memory", dtypes=for_each_dtype())
def imports_keep_memory(device: Device, dtype: DType) -> None:
    """The array may go: its memory stays as long as a tensor or a view is in it."""
    values = typical(dtype, 40, 50)
    part = burn.from_dlpack(values.copy(), device=device)[1::2]
    others = [np.zeros_like(values) for _ in range(4)]
    expect_values("a part of an import", part, values[1::2])
    del others


@_interchange.check("shared memory is shared", dtypes=for_each_dtype())
def shared_is_shared(device: Device, dtype: DType) -> None:
    """Where `share` takes host memory, it takes it as it is."""
    values = typical(dtype, 6)
    source = values.copy()
    primitive = device.ops.backend.share(TensorData(source), device.id)
    if primitive is None:
        raise Skipped("the backend takes no host memory: `share` gives None")
    expect(is_readable(burn.ones(1, device=device).__dlpack_device__()), "it lies elsewhere")
    x = burn.asarray(source, device=device, copy=False)
    source[...] = np.roll(values, 1)
    expect_values("a tensor in memory that was changed from outside", x, source)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = burn.from_dlpack(x, device=device, copy=False)
    expect_values("the same memory once more", again, source)


@_interchange.check("primitives become tensors", dtypes=for_each_dtype())
def primitives_become_tensors(device: Device, dtype: DType) -> None:
    """`Tensor.from_primitive` of what `primitive` gives: the object itself, where it lies."""
    if device.ops.backend.device_of(burn.ones(1, device=device).primitive) is None:
        raise Skipped("the backend does not say which primitives it takes: see device_of")
    for what, x, values in layouts(device, dtype):
        owner = device.ops.backend.device_of(x.primitive)
        expect(owner == device.id, f"device_of the primitive of {what} is {owner}")
        again = burn.Tensor.from_primitive(x.primitive, device)
        expect(again.primitive is x.primitive, f"the primitive of {what} is another one")
        expect(again.device is device and again.dtype is dtype, f"{what} became {again!r}")
        expect_values(
            f"a tensor of the primitive of {what}", again * 1 if dtype.is_float else again, values
        )
        tracking = burn.Tensor.from_primitive(x.primitive, device.autodiff())
        expect(tracking.device is device.autodiff(), f"it is on {tracking.device}")


@_interchange.check("what is no primitive is refused")
def no_primitive(device: Device) -> None:
    """Objects of other classes, tensors, and primitives of other devices."""
    x = burn.ones(2, device=device)
    if device.ops.backend.device_of(x.primitive) is None:
        raise Skipped("the backend does not say which primitives it takes: see device_of")
    for item in (None, 1.0, True, "x", object(), [1.0], x, type(x.primitive)):
        what = f"from_primitive of {type(item).__name__}"
        take = partial(burn.Tensor.from_primitive, item, device)
        expect_error(OperandTypeError, what, take)
    for other in Device.enumerate(device.backend_name):
        if other.hardware is not device.hardware and works_with(other, float32):
            take = partial(burn.Tensor.from_primitive, x.primitive, other)
            expect_error(DeviceMismatchError, f"from_primitive for {other}", take)
    leaf = burn.ones(2, device=device.autodiff()).require_grad()
    again = burn.Tensor.from_primitive(leaf.primitive, leaf.device)
    expect_values("a gradient", gradient_of(leaf, (again * 3).sum()), np.full(2, 3, np.float32))
    take = partial(burn.Tensor.from_primitive, leaf.primitive, device)
    expect_error(AutodiffError, "from_primitive of a tracked one", take)


@_interchange.check("imports are not written to", dtypes=for_each_dtype(_in_dlpack))
def imports_are_left_alone(device: Device, dtype: DType) -> None:
    """Whatever is computed with an imported array, it stays what it was."""
    values = typical(dtype, 8)
    source = values.copy()
    x = burn.from_dlpack(source, device=device)
    x[0:4] = x[4:8]
    burn.concat([x, burn.flip(x)]).numpy()
    expect_values("an array that was imported", source, values)


SUITES: Final = [_interchange.suite]
