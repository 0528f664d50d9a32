"""Suite ``contract``: the members of a backend beside its ops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from burn.backend import is_backend, is_implemented
from burn.devices import Device
from burn.dtype import DType, DTypeUsage, bool_, float32, int32
from burn.generator import get_state
from burn.ops import REGISTRY
from burn.ops.observing import plain
from burn.ops.overrides import misfits
from burn.plugins import registry
from burn.tensor_data import TensorData
from burn.testing._check import Check
from burn.testing._compiled import Compiled
from burn.testing._minimal import Minimal
from burn.testing.op_samples import OpSamples
from burn.testing.subject import Subject
from burn.testing.suites.expectations import expect, expect_values
from burn.testing.suites.suite import Suite, named_check

__all__ = ["SUITES"]


def _required_op(subject: Subject, name: str) -> None:
    origin = subject.table.origin(REGISTRY[name])
    expect(
        origin in {"native", "generated"},
        f"the backend has no method {name!r}, which is required: see burn.backend.tensor_ops",
    )


def _is_a_backend(subject: Subject) -> None:
    missing = [
        name
        for name in ("name", "native_dtype", "dtype_usage", "device_count", "sync")
        if not is_implemented(getattr(subject.backend, name, None))
    ]
    expect(not missing, f"the backend has no member {', '.join(missing)}")
    backend = subject.backend
    while isinstance(backend, (Minimal, Compiled)):
        backend = backend.wrapped
    expect(is_backend(backend), f"{backend!r} is no burn.backend.Backend")


def _has_a_name(subject: Subject) -> None:
    name = subject.backend.name(subject.device)
    expect(isinstance(name, str) and name, f"name() is {name!r}, not some text")
    if subject.handle is not None:
        declared = subject.handle.backend_name
        expect(name == declared, f"name() is {name!r}, and the plugin declares {declared!r}")


def _counts_its_devices(subject: Subject) -> None:
    kind, index = subject.device
    count = subject.backend.device_count(kind)
    expect(count > index, f"device_count({kind}) is {count}, and there is a device {index}")
    handle = subject.handle
    entry = None if handle is None else registry.entries.get(handle.backend_name)
    types = () if entry is None else entry.spec.device_types
    for absent in (len(types) or 200, 255):
        count = subject.backend.device_count(absent)
        expect(count == 0, f"device_count({absent}) is {count} for a type that does not exist")
    listed = [device.type for device in Device.enumerate(handle.backend_name)] if handle else []
    for number, declared in enumerate(types if listed else ()):
        count, found = subject.backend.device_count(number), listed.count(declared)
        expect(
            count == found,
            f"device_count({number}) is {count}, and the probe lists {found} devices of the type "
            f"{declared!r}",
        )


def _usage_is_consistent(subject: Subject) -> None:
    for dtype in DType.members():
        usage = subject.backend.dtype_usage(subject.device, dtype)
        expect(isinstance(usage, DTypeUsage), f"dtype_usage of {dtype} is {usage!r}")
        if DTypeUsage.ARITHMETIC in usage:
            expect(DTypeUsage.STORAGE in usage, f"{dtype} has arithmetic, and cannot be stored")
        if DTypeUsage.ACCELERATED in usage:
            expect(DTypeUsage.ARITHMETIC in usage, f"{dtype} is accelerated without arithmetic")
        supports = subject.backend.supports_dtype(subject.device, dtype)
        expect(
            bool(supports) == (DTypeUsage.GENERAL in usage),
            f"supports_dtype({dtype}) is {supports}, and dtype_usage is {usage}",
        )
        native = subject.backend.native_dtype(dtype)
        expect(native is not None or not usage, f"{dtype} is usable, and native_dtype gives None")


def _has_what_every_program_needs(subject: Subject) -> None:
    for needed in (bool_, float32, int32):
        expect(subject.supports(needed), f"the device does not compute with {needed}")


def _dtypes_tell_themselves_apart(subject: Subject) -> None:
    found: dict[Any, DType] = {}
    for dtype in DType.members():
        native = subject.backend.native_dtype(dtype)
        if native is None:
            continue
        expect(native not in found, f"{dtype} and {found.get(native)} have one native dtype")
        found[native] = dtype
        if not subject.supports(dtype):
            continue
        uploaded = subject.upload(np.ones((2, 3), dtype.numpy))
        made = subject.table.full(shape=(2,), fill_value=1, dtype=dtype)
        for primitive in (uploaded, made, subject.table.reshape(uploaded, shape=(6,))):
            expect(
                primitive.dtype == native and hash(primitive.dtype) == hash(native),
                f"a primitive of {dtype} has the dtype {primitive.dtype!r}, not {native!r}",
            )


def _primitives_have_a_shape(subject: Subject) -> None:
    for shape in ((), (0,), (3,), (2, 0, 4), (2, 3, 4)):
        made = subject.table.full(shape=shape, fill_value=1.0, dtype=float32)
        uploaded = subject.backend.from_data(TensorData(np.ones(shape, np.float32)), subject.device)
        for primitive in (made, uploaded):
            found = tuple(primitive.shape)
            expect(found == shape, f"a primitive of shape {shape} has the shape {found}")
            expect(all(type(item) is int for item in found), f"lengths in {found} are no int")


def _sync_may_be_called_at_any_time(subject: Subject) -> None:
    for _ in range(3):
        result = subject.backend.sync(subject.device)
        expect(result is None, f"sync() returned {result!r}")
    x = subject.table.full(shape=(4,), fill_value=2.0, dtype=float32)
    y = subject.table.multiply(x, 3.0)
    subject.backend.sync(subject.device)
    expect_values("a product after sync()", subject.read(y), np.full(4, 6.0, np.float32))


def _quiet_may_be_nested(subject: Subject) -> None:
    with subject.quiet(), subject.quiet():
        zero = subject.table.full(shape=(2,), fill_value=0.0, dtype=float32)
        subject.read(subject.table.divide(zero, zero))


def _seed_starts_the_generator_anew(subject: Subject) -> None:
    subject.backend.seed(subject.device, 7)
    key = (subject.backend.name(subject.device), subject.device)
    state = get_state(key)
    expect(tuple(state) == (7, 0), f"after seed(device, 7) the generator is at {tuple(state)}")


def _staging_keeps_values(subject: Subject) -> None:
    values = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    staged = subject.backend.staging(TensorData(values), subject.device)
    expect_values("staged data", staged.array, values)
    uploaded = subject.backend.from_data(staged, subject.device)
    expect_values("a tensor of staged data", subject.read(uploaded), values)


def _persistent_allocations_return_the_result(subject: Subject) -> None:
    data = TensorData(np.ones(3, np.float32))
    x = subject.backend.memory_persistent_allocations(
        subject.device, data, lambda given: subject.backend.from_data(given, subject.device)
    )
    expect_values("a tensor that lives long", subject.read(x), np.ones(3, np.float32))


def _cleanup_loses_nothing(subject: Subject) -> None:
    values = np.arange(1000.0, dtype=np.float32)
    x = subject.upload(values)
    y = subject.table.add(x, 1.0)
    subject.backend.memory_cleanup(subject.device)
    expect_values("a tensor after memory_cleanup()", subject.read(x), values)
    expect_values("a result after memory_cleanup()", subject.read(y), values + 1)


def _several_tensors_are_read_at_once(subject: Subject) -> None:
    values = [np.arange(float(n), dtype=np.float32) for n in (0, 1, 5)]
    found = subject.backend.read_all([subject.upload(value) for value in values])
    expect(len(found) == len(values), f"read_all() of 3 tensors gave {len(found)}")
    for data, expected in zip(found, values, strict=True):
        expect_values("a tensor read with others", data.array, expected)
    expect(subject.backend.read_all([]) == [], "read_all() of no tensors is not empty")


def _methods_take_every_call(subject: Subject) -> None:
    backend = subject.backend.wrapped if subject.hides else plain(subject.table.backend)
    found = misfits(backend)
    reasons = "; ".join(f"{name} {reason}" for name, reason in found.items())
    expect(not found, f"methods are left out, since they do not fit their operations: {reasons}")


def _does_not_track(subject: Subject) -> None:
    tracks = subject.backend.ad_enabled(subject.device)
    expect(not tracks, "ad_enabled() is true: that is for Autodiff to say")


_MEMBERS: Final[dict[str, Callable[[Subject], None]]] = {
    "it is a Backend": _is_a_backend,
    "name": _has_a_name,
    "device_count": _counts_its_devices,
    "dtype_usage is consistent": _usage_is_consistent,
    "bool, float32 and int32": _has_what_every_program_needs,
    "primitives carry their native dtype": _dtypes_tell_themselves_apart,
    "primitives have a shape of ints": _primitives_have_a_shape,
    "sync": _sync_may_be_called_at_any_time,
    "quiet": _quiet_may_be_nested,
    "seed": _seed_starts_the_generator_anew,
    "staging": _staging_keeps_values,
    "memory_persistent_allocations": _persistent_allocations_return_the_result,
    "memory_cleanup": _cleanup_loses_nothing,
    "read_all": _several_tensors_are_read_at_once,
    "ad_enabled": _does_not_track,
    "methods take the operands and attributes of their ops": _methods_take_every_call,
}


def _checks(subject: Subject, table: Sequence[OpSamples]) -> Iterator[Check]:
    for samples in table:
        if samples.op.is_required:
            name = samples.op.name
            yield named_check(subject, "contract", name, None, "required", _required_op, name)
    for note, function in _MEMBERS.items():
        yield named_check(subject, "contract", "", None, note, function)


SUITES: Final = [
    Suite("contract", "the backend has what core asks of it beside ops", _checks),
]
