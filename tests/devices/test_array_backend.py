"""ArrayBackend over a namespace with several devices, of which some lack 64-bit types."""

import types

import array_api_strict
import ml_dtypes
import numpy as np
import pytest

from burn.backend import ArrayBackend
from burn.cli.scaffold import render
from burn.device_id import DeviceId
from burn.dtype import DTypeUsage, bool_, float32, int8, int32
from burn.tensor_data import TensorData
from burn.testing import SAMPLES, Subject, check_sample

DEVICES = {"no_float64": ("float64", "complex128")}
DEVICES["no_x64"] = (*DEVICES["no_float64"], "int64", "uint64")
"""Devices of array-api-strict, and what they have not. None is the one that it takes by itself."""


class StrictBackend(ArrayBackend):
    def __init__(self):
        super().__init__(array_api_strict)

    def name(self, device):
        return "strict"

    def native_device(self, device):
        return array_api_strict.Device(list(DEVICES)[device.type_id])

    def dtype_usage(self, device, dtype):
        if dtype.name in list(DEVICES.values())[device.type_id]:
            return DTypeUsage.NONE
        return super().dtype_usage(device, dtype)


BACKEND = StrictBackend()

# On the device without int64 its argmax and argsort (2.6.1) raise, as they make int64 there.
OF_INDICES = {"argmax", "argmin", "argsort"}
MADE_OF_THEM = {"argtopk", "scatter", "scatter_nd", "select_assign", "sort"}

CASES = [
    pytest.param(Subject(BACKEND, DeviceId(type_id)), samples, id=f"{name} {device}")
    for type_id, device in enumerate(DEVICES)
    for name, samples in SAMPLES.items()
    if device != "no_x64" or name not in OF_INDICES | MADE_OF_THEM
]


@pytest.mark.together(("subject", "samples"), CASES)
def test_what_an_op_makes_is_on_the_device_of_its_operands(subject, samples, everything):
    for sample in samples.samples if everything else samples.samples[::4]:
        for dtype in subject.dtypes(samples, sample):
            if dtype in (bool_, int8, int32, float32):
                check_sample(subject, samples, sample, dtype)


class Late(types.ModuleType):
    """A namespace that reads what it is given when its values are first needed."""

    def __getattr__(self, name):
        return getattr(np, name)

    def asarray(self, x, *, dtype=None, device=None, copy=None):
        return Future(x, dtype)


class Future:
    """An array whose values are read later."""

    def __init__(self, x, dtype):
        self.x, self.dtype, self.shape = x, np.dtype(dtype), x.shape

    def __dlpack__(self, **options):
        return self.x.astype(self.dtype).__dlpack__(**options)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


def template_of(namespace):
    """The class of a new backend over a namespace, as ``burn new-plugin`` writes it."""
    source = render("late", "array")["src/burn_late/backend.py"]
    names = {"namespace": namespace}
    exec(source.replace("import numpy as xp", "xp = namespace"), names)  # noqa: S102 — our template
    return names["LateBackend"]


class LateBackend(ArrayBackend):
    def __init__(self):
        super().__init__(Late("late"))

    def name(self, device):
        return "late"


@pytest.mark.parametrize("is_template", [False, True])
def test_an_upload_that_is_read_later_has_the_values_of_the_call(is_template):
    backend = template_of(Late("late"))() if is_template else LateBackend()
    for source in (np.arange(6.0, dtype="float32"), np.arange(6.0).reshape(2, 3).T, np.ones(())):
        values = source.tolist()
        x = backend.from_data(TensorData(source), DeviceId(0, 0))
        source[...] = -1
        assert backend.to_data(x).array.tolist() == values


class Bits(Future):
    """An array of bfloat16 that only its DLPack knows."""

    def __dlpack__(self, **options):
        from burn.backend.capsule import relabel_capsule
        from burn.dtype import bfloat16

        return relabel_capsule(self.x.view(np.uint16).__dlpack__(**options), bfloat16)


def test_bfloat16_is_read_by_its_bits():
    x = Bits(np.asarray([1.5, -2.0], ml_dtypes.bfloat16), ml_dtypes.bfloat16)
    assert LateBackend().to_data(x).array.tolist() == [1.5, -2.0]


class Frozen(np.ndarray):
    """An array that never changes."""

    def __setitem__(self, key, value):
        raise TypeError("arrays do not support item assignment")


class FrozenBackend(ArrayBackend):
    def __init__(self):
        super().__init__(np)
        self.xp = types.SimpleNamespace(**{name: getattr(np, name) for name in dir(np)})
        self.xp.asarray = lambda *args, **options: np.asarray(
            *args, **{name: option for name, option in options.items() if option is not None}
        ).view(Frozen)

    def name(self, device):
        return "frozen"


@pytest.mark.parametrize(
    ("shape", "slices"),
    [
        ((), ()),
        ((5,), ((1, 2, 2),)),
        ((5,), ((4, 5, -1),)),
        ((5,), ((0, 0, 1),)),
        ((3, 4), ((2, 2, -2), (1, 3, 1))),
        ((3, 4), ((0, 3, 1), (3, 0, 1))),
        ((2, 3, 4), ((1, 1, 1), (2, 3, -1), (0, 2, 3))),
    ],
)
def test_slices_are_assigned_where_arrays_never_change(shape, slices):
    key = tuple(slice(a, a + n * s if a + n * s >= 0 else None, s) for a, n, s in slices)
    lengths = tuple(length for _, length, _ in slices)
    values = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    x = values.view(Frozen)
    several = np.linspace(-1, 1, np.prod(lengths, dtype=int), dtype=np.float32).reshape(lengths)
    for value in (several, np.float32([7.5]).reshape(()), 9.0):
        expected = values.copy()
        expected[key] = value
        part = value if isinstance(value, float) else value.view(Frozen)
        found = FrozenBackend().slice_assign(x, part, slices=slices)
        assert np.array_equal(found, expected)
        assert found.dtype == np.float32
