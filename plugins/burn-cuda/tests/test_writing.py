"""Writes in place: only to memory that nothing but one tensor refers to."""

import sys
from pathlib import Path

import numpy as np
import pytest

import burn
from burn.plugin_api import BackendSpec, DeviceInfo
from burn_cuda.backend import CudaBackend

sys.path.insert(0, str(Path(__file__).parent / "emulation"))

import emulated

pytestmark = pytest.mark.skipif(
    emulated.COMPILER is None, reason="there is no C++ compiler to emulate a GPU with"
)


@pytest.fixture(params=["emulated", "cuda"])
def device(request):
    if request.param == "cuda":
        if not burn.Device.enumerate("cuda"):
            pytest.skip("there is no NVIDIA GPU, or no CuPy for it")
        yield burn.Device("cuda")
        return
    spec = BackendSpec(
        "emulated",
        load=lambda: CudaBackend(emulated.Runtime, lambda: 1),
        probe=lambda: [DeviceInfo("gpu", 0, "a host compiler")],
        device_types=("gpu",),
    )
    with burn.registered(spec):
        yield burn.Device("emulated")


def address(x):
    return x.device.ops.backend.runtime.address(x.primitive)


def may_write(x):
    """The answer for a tensor; an assertion would refer to its primitive, too."""
    return x.device.ops.backend.can_write(x.primitive, [])


def test_a_slice_is_assigned_in_place(device):
    x = burn.zeros((4, 3), device=device)
    before = address(x)
    x[1:3, ::2] = 5.0
    x[0] = burn.ones(3, device=device)
    assert address(x) == before
    np.testing.assert_array_equal(x.numpy(), [[1, 1, 1], [5, 0, 5], [5, 0, 5], [0, 0, 0]])


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.primitive,
        lambda x: x.reshape((12,)),
        lambda x: x[1:],
        lambda x: x.T,
        lambda x: burn.broadcast_to(x, (2, 4, 3)),
        lambda x: x.primitive.__dlpack__(),
    ],
)
def test_what_refers_to_the_memory_keeps_it_as_it_is(device, make):
    x = burn.zeros((4, 3), device=device)
    assert may_write(x)
    other = make(x)
    assert not may_write(x)
    del other
    assert may_write(x)


def test_a_view_keeps_its_values_where_the_array_is_assigned_to(device):
    x = burn.zeros((4, 3), device=device)
    kept = x.primitive
    x[0] = 1.0
    assert device.ops.backend.to_data(kept).array.sum() == 0.0
    assert x.sum().item() == 3.0


def test_a_step_of_an_optimizer_overwrites_what_it_alone_uses(device):
    model = burn.nn.Linear(3, 2).to(device.autodiff())
    optimizer = burn.optim.Adam(model, learning_rate=0.1)
    x = burn.ones((4, 3), device=device)

    def step():
        optimizer.step((model(x) ** 2).sum().backward())
        return [address(item.detach()) for item in (model.weight, model.bias)]

    step()
    addresses = step()
    assert step() == addresses
    kept = model.weight.detach()  # another tensor of the same memory
    values = kept.numpy()
    weight, bias = step()
    assert (weight == addresses[0], bias == addresses[1]) == (False, True)
    np.testing.assert_array_equal(kept.numpy(), values)
    assert not np.array_equal(model.weight.detach().numpy(), values)
