"""Arrays of other libraries become tensors and the reverse: where, and in which memory."""

import array
import dataclasses
import re
import warnings

import ml_dtypes
import numpy as np
import pytest
import torch

import burn
from burn.backend.capsule import (
    CapsuleObject,
    read_capsule,
    readdress_capsule,
    relabel_capsule,
    request_capsule,
)
from burn.device_id import DeviceId
from burn.testing import MockDevice, mock_backend
from burn.testing.mocks import MockArray, MockBackend

CPU = burn.Device("cpu")
HOST = (1, 0)
CUDA = (2, 0)
OWN_MEMORY = (12, 0)
"""kDLExtDev: what DLPack calls memory of devices that it does not know."""

TORCH = next(iter(burn.Device.enumerate("torch/cpu")), CPU)
"""Where a tensor of torch on the CPU goes: to burn-torch, if that is there."""


class Foreign:
    """An array of an unknown library: DLPack, and nothing else."""

    def __init__(self, values, dlpack_device=HOST):
        self.values = values
        self.dlpack_device = dlpack_device
        self.asked = []

    def __dlpack__(self, **options):
        self.asked.append(options)
        wanted = options.pop("dl_device", None) or self.dlpack_device
        if wanted not in (self.dlpack_device, HOST):
            raise BufferError("cannot go there")
        if wanted != self.dlpack_device:
            options["copy"] = True
        return readdress_capsule(self.values.__dlpack__(**options), wanted)

    def __dlpack_device__(self):
        return self.dlpack_device


class Old(Foreign):
    """The same, from before version 1.0 of DLPack."""

    def __dlpack__(self, stream=None):
        return readdress_capsule(self.values.__dlpack__(), self.dlpack_device)


@pytest.fixture
def unit():
    """A device with memory of its own."""
    with burn.registered(mock_backend("near", [MockDevice("unit", dlpack=OWN_MEMORY)])):
        yield burn.Device("near")


# Tensors of torch.


TORCH_TENSORS = {
    "float32": lambda: torch.arange(6.0).reshape(2, 3),
    "bfloat16": lambda: torch.arange(6.0).to(torch.bfloat16),
    "float16": lambda: torch.arange(6.0).to(torch.float16),
    "uint16": lambda: torch.arange(6).to(torch.uint16),
    "bool": lambda: torch.tensor([True, False]),
    "complex64": lambda: torch.tensor([1 + 2j, 3j]),
    "0-d": lambda: torch.tensor(3),
    "empty": lambda: torch.zeros(2, 0, 3),
    "transposed": lambda: torch.arange(6).reshape(2, 3).T,
    "strided": lambda: torch.arange(24).reshape(4, 6)[1:, ::2],
    "expanded": lambda: torch.arange(3).expand(4, 3),
    "parameter": lambda: torch.nn.Parameter(torch.ones(2), requires_grad=False),
    "inference": lambda: inference_tensor(),
}


def inference_tensor():
    with torch.inference_mode():
        return torch.ones(3)


def listed(tensor):
    return tensor.tolist()


@pytest.mark.parametrize("name", TORCH_TENSORS)
def test_a_tensor_of_torch_becomes_one_in_its_memory(name):
    source = TORCH_TENSORS[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shared = burn.from_dlpack(source)
        same = burn.asarray(source, copy=False)
        copied = burn.asarray(source)
        own = burn.from_dlpack(source, copy=True)
        here = burn.from_dlpack(source, device=CPU)
    for x in (shared, same, copied, own):
        assert x.device is TORCH
    assert here.device is CPU
    values = source.tolist()
    for x in (shared, same, copied, own, here):
        assert x.dtype.name == str(source.dtype).removeprefix("torch.")
        assert x.tolist() == values
        assert x.shape == tuple(source.shape)
    if source.numel() and name != "inference":
        source.zero_()
        for x in (shared, same, here):
            assert x.tolist() == source.tolist()
        for x in (copied, own):
            assert x.tolist() == values


REFUSED = {
    "a gradient": (lambda: torch.ones(2, requires_grad=True), "detach"),
    "a result with a gradient": (lambda: torch.ones(2, requires_grad=True) * 2, "detach"),
    "a conjugate": (lambda: torch.tensor([1 + 2j]).conj(), "conj"),
    "a negative": (lambda: torch.tensor([1 + 2j]).conj().imag, "resolve_neg"),
    "a sparse tensor": (lambda: torch.eye(2).to_sparse(), "(?i)layout|sparse"),
    "no memory": (lambda: torch.ones(2, device="meta"), "meta"),
    "a dtype of no other library": (
        lambda: torch.ones(2, dtype=torch.complex32),
        "complex32|dtype",
    ),
}


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("where", ["cpu", *(["cuda"] if torch.cuda.is_available() else [])])
@pytest.mark.parametrize("name", REFUSED)
def test_a_tensor_whose_memory_is_not_its_value_is_refused(name, where):
    first, says = REFUSED[name]

    def make():
        with torch.device(where):
            return first()

    for call in (burn.from_dlpack, lambda x: burn.from_dlpack(x, device=CPU)):
        with pytest.raises(BufferError, match=says) as caught:
            call(make())
        assert isinstance(caught.value, burn.ExportError)
    for call in (burn.asarray, lambda x: burn.asarray(x, copy=False)):
        with pytest.raises(burn.BurnError):
            call(make())


def test_torch_takes_tensors():
    for device in {CPU, TORCH}:
        x = burn.arange(12.0, device=device).reshape((3, 4))
        assert (
            torch.from_dlpack(x).data_ptr()
            == read_capsule(x.__dlpack__(max_version=(1, 0))).address
        )
        assert torch.from_dlpack(x.T).tolist() == x.T.tolist()
        assert torch.from_dlpack(x[::-1, ::-2]).tolist() == x[::-1, ::-2].tolist()
        assert torch.from_dlpack(burn.broadcast_to(x[0], (2, 4))).tolist() == [x[0].tolist()] * 2
        for dtype in ("bfloat16", "float16", "bool", "int8", "complex64", "uint8"):
            there = torch.from_dlpack(x.astype(dtype))
            assert str(there.dtype) == f"torch.{dtype}"
            assert there.tolist() == x.astype(dtype).tolist()


# Arrays of NumPy, and of unknown libraries.


def test_arrays_of_numpy_go_to_the_default_device(unit):
    values = np.arange(4.0)
    for default, expected in ((CPU, CPU), (TORCH, TORCH), (unit, CPU)):
        with burn.default_device(default):
            assert burn.asarray(values).device is default
            assert burn.from_dlpack(values).device is expected


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "bool", "complex128"])
def test_a_read_only_array_is_shared_without_a_warning(dtype):
    source = np.zeros((2, 3), burn.DType.of(dtype).numpy)
    source.flags.writeable = False
    for device in {CPU, TORCH}:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for x in (
                burn.from_dlpack(source, device=device, copy=False),
                burn.asarray(source, device=device, copy=False),
            ):
                assert np.shares_memory(x.numpy(), source)
                assert not x.numpy().flags.writeable
                assert burn.concat([x, x]).tolist() == [*source.tolist(), *source.tolist()]


def test_several_names_of_a_dtype_are_one():
    for values in (
        np.arange(3, dtype=np.longlong),
        np.arange(3, dtype=np.dtype("int64", metadata={"unit": "m"})),
    ):
        for x in (burn.asarray(values, device=CPU), burn.asarray(values, device=CPU, copy=False)):
            assert x.dtype is burn.int64
            assert x.primitive.dtype is burn.int64.numpy


def test_the_other_byte_order_is_converted_but_not_shared():
    values = np.arange(3.0).astype(">f8")
    assert burn.asarray(values, device=CPU).tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(ValueError, match="copy"):
        burn.asarray(values, device=CPU, copy=False)
    with pytest.raises(BufferError):
        burn.from_dlpack(values, device=CPU)


class Described:
    """Memory that is described the way NumPy does it."""

    def __init__(self, values):
        self.values = values
        self.__array_interface__ = values.__array_interface__


@pytest.mark.parametrize(
    "make",
    [memoryview, Described, lambda values: array.array("d", values), lambda values: values],
    ids=["memoryview", "__array_interface__", "array.array", "numpy"],
)
def test_memory_of_every_sort_is_copied_or_shared_as_asked(make):
    source = make(np.arange(3.0))
    copied = burn.asarray(source, device=CPU)
    shared = burn.asarray(source, device=CPU, copy=False)
    np.asarray(source)[0] = 7.0
    assert copied.tolist() == [0.0, 1.0, 2.0]
    assert shared.tolist() == [7.0, 1.0, 2.0]
    assert (shared * 2).tolist() == [14.0, 2.0, 4.0]
    assert shared.dtype is burn.float64


@pytest.mark.parametrize("kind", [Foreign, Old])
def test_an_array_with_dlpack_alone_is_enough(kind):
    source = kind(np.arange(6.0).reshape(2, 3))
    copied = burn.asarray(source, device=CPU)
    shared = burn.asarray(source, device=CPU, copy=False)
    again = burn.from_dlpack(source, device=CPU)
    own = burn.from_dlpack(source, device=CPU, copy=True)
    converted = burn.asarray(source, dtype="int8", device=CPU)
    source.values[0, 0] = 9.0
    assert (copied[0, 0].item(), own[0, 0].item()) == (0.0, 0.0)
    assert (shared[0, 0].item(), again[0, 0].item()) == (9.0, 9.0)
    assert converted.dtype is burn.int8
    with pytest.raises(OverflowError, match="uint8"):
        burn.asarray(Foreign(np.array([300])), dtype="uint8", device=CPU)


def test_bfloat16_comes_from_any_library():
    values = np.arange(4).astype(ml_dtypes.bfloat16)

    class Bfloat16(Foreign):
        def __dlpack__(self, **options):
            return relabel_capsule(self.values.view(np.uint16).__dlpack__(**options), burn.bfloat16)

    for source in (Bfloat16(values), values):
        x = burn.from_dlpack(source, device=CPU, copy=False)
        assert x.dtype is burn.bfloat16
        assert np.shares_memory(x.numpy(), values)
        assert burn.asarray(source, device=CPU).tolist() == [0.0, 1.0, 2.0, 3.0]


# Memory that the host cannot read.


def test_an_array_stays_on_its_device(unit):
    source = Foreign(np.arange(6.0).reshape(2, 3), OWN_MEMORY)
    x = burn.from_dlpack(source)
    y = burn.asarray(source, copy=False)
    own = burn.from_dlpack(source, copy=True)
    also = burn.asarray(source)
    for tensor in (x, y, own, also):
        assert tensor.device is unit
        assert tensor.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    source.values[0, 0] = 9.0
    assert [item[0, 0].item() for item in (x, y, own, also)] == [9.0, 9.0, 0.0, 0.0]
    assert burn.asarray(source, dtype="int32").dtype is burn.int32
    assert burn.from_dlpack(source, device=unit.autodiff()).device is unit.autodiff()


def test_an_array_on_a_device_is_copied_to_another(unit):
    source = Foreign(np.arange(3.0), OWN_MEMORY)
    for x in (burn.from_dlpack(source, device=CPU), burn.asarray(source, device=CPU)):
        assert x.device is CPU
        source.values[0] = 9.0
        assert x.tolist()[0] == 0.0
        source.values[0] = 0.0
    for call in (burn.from_dlpack, burn.asarray):
        with pytest.raises((BufferError, ValueError), match=r"shared|copy"):
            call(source, device=CPU, copy=False)


def test_an_array_on_an_unknown_device_is_asked_for_a_copy():
    x = burn.from_dlpack(Foreign(np.arange(3.0), (12, 7)), device=CPU)
    assert x.tolist() == [0.0, 1.0, 2.0]
    assert burn.asarray(Foreign(np.arange(3.0), (12, 7))).tolist() == [0.0, 1.0, 2.0]
    for options in ({}, {"copy": True}):
        with pytest.raises(BufferError, match="cannot read"):
            burn.from_dlpack(Old(np.arange(3.0), (12, 7)), **options)
    with pytest.raises(BufferError, match="copy"):
        burn.from_dlpack(Foreign(np.arange(3.0), (12, 7)), copy=False)


def test_an_old_array_on_a_device_is_copied_through_the_host(unit):
    source = Old(np.arange(3.0), OWN_MEMORY)
    assert burn.from_dlpack(source).device is unit
    own = burn.from_dlpack(source, copy=True)
    source.values[0] = 9.0
    assert own.tolist() == [0.0, 1.0, 2.0]


def test_no_library_meets_negative_strides_of_another(unit, monkeypatch):
    """PyTorch ends the process where it meets them."""
    found = []
    right = MockBackend.from_dlpack

    def take(self, x, device):
        found.append(read_capsule(x.__dlpack__(max_version=(1, 0))))
        return right(self, x, device)

    monkeypatch.setattr(MockBackend, "from_dlpack", take)
    values = np.arange(6.0).reshape(2, 3)
    x = burn.from_dlpack(Foreign(values[::-1, ::-1], OWN_MEMORY))
    assert x.device is unit
    assert x.tolist() == values[::-1, ::-1].tolist()
    assert [item.has_negative_strides for item in found] == [False]
    assert found[0].is_copied


class OnCuda:
    """An array of a library that has no DLPack."""

    __cuda_array_interface__ = {"shape": (2,), "typestr": "<f4", "data": (8, False), "version": 3}  # noqa: RUF012 — as libraries have it


def test_an_array_on_cuda_needs_a_backend_that_takes_it():
    with pytest.raises(burn.ExportError, match="CUDA"):
        burn.asarray(OnCuda())
    with pytest.raises(TypeError, match="DLPack"):
        burn.from_dlpack(OnCuda())


def test_every_device_of_cuda_takes_an_array_that_has_no_dlpack():
    for device in (index for index in burn.Device.enumerate(type="cuda") if index.index == 0):
        source = torch.arange(3.0, device="cuda")
        described = type("Described", (), {})()
        described.__cuda_array_interface__ = source.__cuda_array_interface__
        shared = burn.asarray(described, device=device, copy=False)
        copied = burn.asarray(described, device=device)
        source[0] = 9.0
        assert (shared.device, shared.tolist()) == (device, [9.0, 1.0, 2.0])
        assert copied.tolist() == [0.0, 1.0, 2.0]
        assert burn.asarray(described, device=CPU).tolist() == [9.0, 1.0, 2.0]


def test_a_backend_for_cuda_takes_what_has_no_dlpack(monkeypatch):
    values = np.array([1.0, 2.0], np.float32)

    def take(self, x, device):
        assert isinstance(x, OnCuda)
        return self._made(values, device)

    monkeypatch.setattr(MockBackend, "from_dlpack", take)
    with burn.registered(mock_backend("gpu", [MockDevice("unit", dlpack=CUDA)])):
        x = burn.asarray(OnCuda())
        assert x.device is burn.Device("gpu")
        assert not np.shares_memory(x.primitive.values, values)
        shared = burn.asarray(OnCuda(), copy=False)
        assert np.shares_memory(shared.primitive.values, values)
        assert burn.asarray(OnCuda(), device=CPU, dtype="int32").tolist() == [1, 2]
        with pytest.raises(burn.ExportError, match="cpu:0"):
            burn.asarray(OnCuda(), device=CPU, copy=False)


# The backend of an array's own library.


class Kept(Foreign):
    """An array of a library that a backend says is its own."""


Kept.__module__ = "somelib.arrays"


def declared(**options):
    spec = mock_backend("some", [MockDevice("unit")], **options)
    return dataclasses.replace(spec, libraries=("somelib",))


def test_an_array_goes_to_the_backend_of_its_library():
    class Derived(Kept):
        pass

    with burn.registered(declared()):
        for source in (Kept(np.arange(3.0)), Derived(np.arange(3.0))):
            for x in (burn.asarray(source), burn.from_dlpack(source)):
                assert x.device is burn.Device("some")
                assert x.tolist() == [0.0, 1.0, 2.0]
            assert burn.asarray(source, device=CPU).device is CPU
            assert burn.from_dlpack(source, device=CPU).device is CPU
        assert burn.asarray(Kept(np.arange(3.0), (12, 9))).device is burn.Device.default()
        assert burn.from_dlpack(Foreign(np.arange(3.0))).device is not burn.Device("some")


class Owned(MockArray):
    """A primitive that its library exports, and of which it knows the device."""

    __slots__ = ()

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return HOST


Owned.__module__ = "somelib.arrays"


def test_an_array_stays_on_the_device_that_its_backend_names():
    spec = mock_backend("some", [MockDevice("unit"), MockDevice("unit")])
    with burn.registered(dataclasses.replace(spec, libraries=("somelib",))):
        for index in (0, 1):
            source = Owned(np.arange(3.0), DeviceId(0, index))
            for x in (burn.from_dlpack(source), burn.asarray(source, copy=False)):
                assert x.device is burn.Device(f"some:{index}")
                assert np.shares_memory(x.primitive.values, source.values)
            for x in (burn.asarray(source), burn.from_dlpack(source, copy=True)):
                assert x.device is burn.Device(f"some:{index}")
                assert not np.shares_memory(x.primitive.values, source.values)
                assert x.tolist() == [0.0, 1.0, 2.0]
            other = burn.from_dlpack(source, device=f"some:{1 - index}")
            assert other.tolist() == [0.0, 1.0, 2.0]
            assert other.device is burn.Device(f"some:{1 - index}")


@pytest.mark.parametrize("device", burn.Device.enumerate("torch/cpu"))
def test_a_tensor_in_the_memory_of_torch_keeps_its_shape_and_has_no_gradient(device):
    for source in (torch.arange(3.0), torch.arange(6.0).reshape(2, 3).T):
        values, address = source.tolist(), source.data_ptr()
        shared = [
            burn.from_dlpack(source),
            burn.from_dlpack(source, device=device.autodiff()),
            burn.asarray(source, copy=False),
        ]
        assert burn.from_dlpack(source, copy=True).primitive.data_ptr() != address
        source.requires_grad_()
        source.data = source.data.reshape(-1)
        for x in shared:
            assert x.primitive.data_ptr() == address
            assert x.tolist() == (x * 1).tolist() == values


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("device", burn.Device.enumerate("torch/cpu"))
def test_an_array_of_a_dtype_that_no_tensor_has_says_so(device):
    source = torch.ones(2, dtype=torch.complex32)
    says = re.escape("torch/cpu:0 has no dtype torch.complex32. It has bool, ")
    with pytest.raises(burn.ExportError, match=f"from_dlpack: {says}"):
        burn.from_dlpack(source)
    with pytest.raises(burn.DTypeError, match=f"from_primitive: {says}"):
        burn.Tensor.from_primitive(source, device)


def test_a_backend_that_does_not_load_takes_no_arrays():
    def fail():
        raise OSError("libsome.so: cannot open shared object file")

    with burn.registered(declared(on_load=fail)):
        assert burn.asarray(Kept(np.arange(3.0))).device is burn.Device.default()
        assert burn.from_dlpack(Kept(np.arange(3.0))).tolist() == [0.0, 1.0, 2.0]


def test_the_declared_libraries_are_names_of_modules():
    spec = dataclasses.replace(mock_backend("some"), libraries=("not a module",))
    with pytest.raises(burn.PluginError, match="libraries"):
        burn.register_backend(spec)


# Exports.


def test_an_export_says_what_it_is(unit):
    x = burn.arange(6.0, device=CPU).reshape((2, 3))
    shared = read_capsule(x.__dlpack__(max_version=(1, 1)))
    assert shared.is_read_only
    assert not shared.is_copied
    assert (shared.device, shared.dtype, shared.shape) == (HOST, burn.float32, (2, 3))
    copied = read_capsule(x.__dlpack__(max_version=(1, 0), copy=True))
    assert copied.is_copied
    assert copied.address != shared.address
    for options in ({}, {"max_version": (0, 8)}, {"max_version": None, "copy": True}):
        old = read_capsule(x.__dlpack__(**options))
        assert old.version is None
        assert old.address != shared.address
    assert read_capsule(x.__dlpack__(copy=False)).address == shared.address
    turned = read_capsule(x[::-1].__dlpack__(max_version=(1, 0)))
    assert turned.is_copied
    assert min(turned.strides) > 0
    there = x.to_device(unit)
    assert there.__dlpack_device__() == OWN_MEMORY
    assert read_capsule(there.__dlpack__(max_version=(1, 0))).device == OWN_MEMORY
    assert read_capsule(there.__dlpack__(max_version=(1, 0))).is_read_only
    assert (
        read_capsule(there.__dlpack__()).address
        != read_capsule(there.__dlpack__(copy=False)).address
    )
    on_host = read_capsule(there.__dlpack__(max_version=(1, 0), dl_device=HOST))
    assert on_host.device == HOST
    assert np.from_dlpack(there, device="cpu").tolist() == x.tolist()
    for options in ({"dl_device": HOST, "copy": False}, {"dl_device": (12, 5)}, {"stream": 3}):
        with pytest.raises(burn.ExportError):
            there.__dlpack__(max_version=(1, 0), **options)


def test_what_a_library_fails_to_export_is_an_export_error(unit, monkeypatch):
    def fail(self, x, **options):
        raise RuntimeError("no such dtype here")

    x = burn.ones(2, device=unit)
    monkeypatch.setattr(MockBackend, "to_dlpack", fail)
    with pytest.raises(burn.ExportError, match=r"near:0 does not export float32.*no such dtype"):
        x.__dlpack__(max_version=(1, 0))
    monkeypatch.setattr(MockBackend, "to_dlpack", lambda self, x, **options: "no capsule")
    with pytest.raises(burn.ExportError, match="no DLPack capsule"):
        x.__dlpack__(max_version=(1, 0))


def test_a_tensor_through_dlpack_stays_where_it_is(unit):
    for device in (CPU, TORCH, unit, CPU.autodiff()):
        x = burn.arange(3.0, device=device)
        again = burn.from_dlpack(x)
        assert again.device is device
        assert again.tolist() == [0.0, 1.0, 2.0]
        assert burn.from_dlpack(x, copy=True).tolist() == [0.0, 1.0, 2.0]
        assert burn.from_dlpack(x, device=CPU).device is CPU


class Copying(Foreign):
    """An array whose library exports it as a copy only."""

    def __dlpack__(self, *, copy=None, **options):
        if copy is False:
            raise BufferError("only as a copy")
        return super().__dlpack__(copy=True, **options)


class Disobedient(Foreign):
    """The same, of a library that does not listen, but marks its copies."""

    def __dlpack__(self, **options):
        return super().__dlpack__(**{**options, "copy": True})


def test_what_is_exported_as_a_copy_is_not_shared(unit):
    for make in (Copying, Disobedient):
        for memory, devices in ((HOST, (CPU, TORCH)), (OWN_MEMORY, (unit,))):
            for device in devices:
                source = make(np.arange(3.0), memory)
                with pytest.raises(burn.ExportError, match=r"copy"):
                    burn.from_dlpack(source, device=device, copy=False)
                with pytest.raises((burn.ExportError, burn.ArgumentError), match=r"copy"):
                    burn.asarray(source, device=device, copy=False)
                assert burn.from_dlpack(source, device=device).tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("source", [d for d in burn.Device.enumerate() if d.backend_name != "cpu"])
def test_a_tensor_of_a_device_that_copies_is_not_shared_with_another(source):
    x = burn.arange(3.0, device=source)
    for device in (CPU, TORCH):
        try:
            pair = [burn.from_dlpack(x, device=device, copy=False) for _ in range(2)]
        except burn.ExportError:
            continue
        first, second = (np.asarray(part, copy=False) for part in pair)
        assert np.shares_memory(first, second)


def test_an_array_of_a_library_that_does_not_know_copies_is_shared(unit):
    for kind in (Old, Foreign):
        for memory, device in ((HOST, CPU), (OWN_MEMORY, unit)):
            values = np.arange(3.0)
            x = burn.from_dlpack(kind(values, memory), device=device, copy=False)
            values[0] = 5.0
            assert x.tolist() == [5.0, 1.0, 2.0]


def test_a_capsule_is_read_and_relabelled():
    values = np.arange(4, dtype=np.uint16)
    capsule = request_capsule(values)
    assert read_capsule(capsule).dtype is burn.uint16
    assert read_capsule(relabel_capsule(capsule, burn.int16)).dtype is burn.int16
    with pytest.raises(burn.ExportError, match="16 bits"):
        relabel_capsule(capsule, burn.float32)
    assert np.from_dlpack(CapsuleObject(capsule, HOST)).dtype == np.int16
    for wrong in (capsule, "text", None):
        with pytest.raises(burn.ExportError, match="no DLPack capsule"):
            read_capsule(wrong)


# Primitives.


def test_a_primitive_is_the_object_of_the_library():
    x = burn.asarray([1.0, 4.0], device=CPU)
    assert type(x.primitive) is np.ndarray
    array = np.array([1.0, 2.0])
    y = burn.Tensor.from_primitive(array, "cpu")
    assert y.primitive is array
    array[0] = 5.0
    assert y.tolist() == [5.0, 2.0]
    number = burn.Tensor.from_primitive(np.float32(3.0), CPU)
    assert (number.shape, number.dtype, number.item()) == ((), burn.float32, 3.0)
    tracked = burn.Tensor.from_primitive(array, CPU.autodiff()).require_grad()
    assert tracked.detach().primitive is array
    assert tracked.grad((tracked * 2).sum().backward()).tolist() == [2.0, 2.0]


def test_what_computes_differently_is_no_primitive():
    for wrong, kind in (
        (np.ma.masked_array([1.0]), burn.OperandTypeError),
        (np.ones(2).view(np.recarray), burn.OperandTypeError),
        (torch.ones(2), burn.OperandTypeError),
        (3.0, burn.OperandTypeError),
        (np.ones(2, ">f4"), burn.DTypeError),
        (np.array(["x"]), burn.DTypeError),
        (np.array([None]), burn.DTypeError),
        (burn.ones(2, device=CPU), burn.OperandTypeError),
    ):
        with pytest.raises(kind, match="from_primitive"):
            burn.Tensor.from_primitive(wrong, CPU)


@pytest.mark.parametrize("device", burn.Device.enumerate("torch/cpu"))
def test_a_primitive_of_torch_is_its_tensor(device):
    tensor = torch.arange(3.0)
    x = burn.Tensor.from_primitive(tensor, device)
    assert x.primitive is tensor
    for make in (REFUSED["a gradient"][0], REFUSED["a conjugate"][0], REFUSED["a negative"][0]):
        with pytest.raises(burn.ExportError, match=r"from_primitive.*Call \."):
            burn.Tensor.from_primitive(make(), device)
    for wrong in (torch.eye(2).to_sparse(), np.ones(2), torch.ones(2, device="meta")):
        with pytest.raises(burn.OperandTypeError):
            burn.Tensor.from_primitive(wrong, device)


def test_a_primitive_of_another_device_is_refused():
    with burn.registered(mock_backend("two", [MockDevice("unit"), MockDevice("unit")])):
        x = burn.ones(2, device="two:1")
        with pytest.raises(burn.DeviceMismatchError, match=r"is on two:1, not on two:0") as caught:
            burn.Tensor.from_primitive(x.primitive, "two:0")
        assert '.to_device("two:0")' in str(caught.value)


def test_a_backend_may_take_no_primitives(monkeypatch):
    monkeypatch.setattr(MockBackend, "device_of", lambda self, x: None)
    takes_none = pytest.raises(burn.UnsupportedOpError, match="does not say which primitives")
    with burn.registered(mock_backend("two", [MockDevice("unit")])), takes_none:
        burn.Tensor.from_primitive(object(), "two")
