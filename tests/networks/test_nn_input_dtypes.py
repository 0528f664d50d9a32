"""Layers refuse float64 inputs beside narrower parameters; all else promotes."""

import numpy as np
import pytest

import burn
from burn import nn

CPU = burn.Device("cpu")
ROWS, IMAGES = np.ones((2, 4, 4)), np.ones((2, 4, 8, 8))

LAYERS = {
    "Linear": (lambda: nn.Linear(4, 2), ROWS),
    "Bilinear": (lambda: nn.Bilinear(4, 4, 2), ROWS, ROWS),
    "Conv1d": (lambda: nn.Conv1d(4, 2, 3), ROWS),
    "Conv2d": (lambda: nn.Conv2d(4, 2, 3), IMAGES),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(4, 2, 3), IMAGES),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(4), IMAGES),
    "BatchNorm2d.eval": (lambda: nn.BatchNorm2d(4).eval(), IMAGES),
    "LayerNorm": (lambda: nn.LayerNorm(4), ROWS),
    "RMSNorm": (lambda: nn.RMSNorm(4), ROWS),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), IMAGES),
    "LSTM": (lambda: nn.LSTM(4, 3), ROWS),
    "GRU": (lambda: nn.GRU(4, 3), ROWS),
    "MultiHeadAttention": (lambda: nn.MultiHeadAttention(4, 2), ROWS, ROWS, ROWS),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(4, 2, 8), ROWS),
    "PReLU": (nn.PReLU, ROWS),
    "SwiGLU": (lambda: nn.SwiGLU(4, 4), ROWS),
    "Sequential": (lambda: nn.Sequential(nn.ReLU(), nn.Linear(4, 2)), ROWS),
}


def tensors(name, dtype="float64", device=CPU):
    return [burn.asarray(item, dtype=dtype, device=device) for item in LAYERS[name][1:]]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_of_narrower_floats_refuses_float64(name, dtype):
    layer = LAYERS[name][0]().astype(dtype)
    for _ in range(2):  # the second call finds how the first one ran
        with pytest.raises(burn.DTypeError, match=f"float64, the parameters are {dtype}") as caught:
            layer(*tensors(name))
        assert f'x.astype("{dtype}")' in str(caught.value)
        assert 'layer.astype("float64")' in str(caught.value)
    layer(*tensors(name, dtype))
    layer.astype("float64")(*tensors(name))


def test_a_compiled_or_tracked_layer_refuses_too():
    layer = nn.Linear(4, 2)
    with pytest.raises(burn.DTypeError, match="an input is float64, the parameters are float32"):
        burn.compile(layer)(*tensors("Linear"))
    device = CPU.autodiff()
    with pytest.raises(burn.DTypeError, match="an input is float64, the parameters are float32"):
        nn.Linear(4, 2, device=device)(*tensors("Linear", device=device))


class Scaled(nn.Module):
    def __init__(self):
        self.scale = burn.ones(4)

    def forward(self, x):
        return x * self.scale


def test_all_else_promotes():
    x, narrow = burn.ones(4, dtype="float64"), burn.ones(4)
    weight = burn.ones((2, 4))
    assert (x * narrow).dtype is burn.float64
    assert Scaled()(x).dtype is burn.float64
    assert nn.Sequential(nn.ReLU(), Scaled())(x).dtype is burn.float64
    assert nn.functional.linear(x, weight, transposed=True).dtype is burn.float64
    assert nn.MSELoss()(x, narrow).dtype is burn.float64
    assert nn.Linear(4, 2, dtype="float64")(narrow).dtype is burn.float64
    assert nn.Linear(4, 2, dtype="float16")(narrow).dtype is burn.float32
    net = nn.Linear(4, 2).set_precision(nn.Precision("bfloat16"))
    assert net(x).dtype is burn.float32
