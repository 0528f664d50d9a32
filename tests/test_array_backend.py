"""ArrayBackend over a namespace with several devices, of which some lack 64-bit types."""

import array_api_strict
import pytest

from burn.backend import ArrayBackend
from burn.device_id import DeviceId
from burn.dtype import DTypeUsage, bool_, float32, int8, int32
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


@pytest.mark.parametrize(("subject", "samples"), CASES)
def test_what_an_op_makes_is_on_the_device_of_its_operands(subject, samples, everything):
    for one in samples.samples if everything else samples.samples[::4]:
        for dtype in subject.dtypes(samples, one):
            if dtype in (bool_, int8, int32, float32):
                check_sample(subject, samples, one, dtype)
