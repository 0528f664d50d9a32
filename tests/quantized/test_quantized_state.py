"""States with quantized tensors go through files as ordinary tensors and text."""

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import burn
from burn import nn
from burn.quantization import (
    QuantScheme,
    QuantStore,
    QuantValue,
    ScaleDType,
    join_state,
    split_state,
)

BLOCKS = QuantScheme(QuantValue.Q4S).per_block((1, 16), ScaleDType.F16)
SCHEMES = [
    BLOCKS,
    BLOCKS.with_value(QuantValue.E4M3).with_store(QuantStore.NATIVE),
    BLOCKS.with_scale_dtype(ScaleDType.UE4M3).per_tensor(ScaleDType.F32),
    QuantScheme(),
]

DEVICES = [device for device in burn.Device.enumerate() if device.dtype_usage(burn.float16)]


def saved(state, path):
    tensors, schemes = split_state(state)
    save_file({name: x.numpy() for name, x in tensors.items()}, path, metadata=schemes)


def loaded(path, device):
    with safe_open(path, framework="numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 — no dict
        return join_state(tensors, file.metadata() or {}, device=device)


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_a_quantized_model_goes_through_a_file(device, scheme, tmp_path):
    model = nn.Sequential(nn.Linear(32, 8, device=device), nn.Linear(8, 4, device=device))
    state = model.state_dict()
    state["0.weight"] = state["0.weight"].quantize_dynamic(scheme)
    saved(state, tmp_path / "model.safetensors")
    found = loaded(tmp_path / "model.safetensors", device)
    assert found.keys() == state.keys()
    assert found["0.weight"].dtype is state["0.weight"].dtype
    assert found["0.weight"].data() == state["0.weight"].data()
    np.testing.assert_array_equal(found["1.weight"].numpy(), state["1.weight"].numpy())


def test_parts_and_schemes_that_do_not_fit_are_errors():
    q = burn.ones((4, 32), device="cpu").quantize_dynamic(BLOCKS)
    tensors, schemes = split_state({"w": q})
    with pytest.raises(burn.ArgumentError, match=r"w\.scales is missing"):
        join_state({"w.codes": tensors["w.codes"]}, schemes)
    with pytest.raises(burn.DTypeError, match="no quantization scheme"):
        join_state(tensors, {"w": "q9(scale=float32)"})
    with pytest.raises(burn.DTypeError, match="uint32"):
        join_state({**tensors, "w.codes": tensors["w.codes"].astype(burn.int8)}, schemes)
    with pytest.raises(burn.ShapeError, match="scales"):
        join_state({**tensors, "w.scales": tensors["w.scales"][:2]}, schemes)
    with pytest.raises(burn.ArgumentError, match="two tensors"):
        split_state({"w": q, "w.codes": burn.ones(2, device="cpu")})
