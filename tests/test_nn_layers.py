"""Layers against torch.nn with the same weights: outputs, gradients and states."""

import ast
import inspect
from dataclasses import dataclass

import numpy as np
import pytest
import torch

import burn
from burn import nn

pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same' with even:UserWarning")

CPU = burn.Device("cpu")
DEVICES = [one for one in burn.Device.enumerate() if one.supports_dtype(burn.float64)]


class Function(torch.nn.Module):
    """A function as a module of torch."""

    def __init__(self, function):
        super().__init__()
        self.forward = function


KNOWN = vars(torch.nn) | {"torch": torch, "Function": Function}


@dataclass(frozen=True)
class Case:
    """A layer, as it is written here and for torch, and the shapes of its inputs.

    A list of a shape and a number stands for integers below it. `shown` is the representation
    where it is not `ours`.
    """

    ours: str
    inputs: tuple
    theirs: str = ""
    shown: str = ""

    @property
    def module(self):
        """The layer of torch, in float64."""
        torch.manual_seed(0)
        code = self.theirs or self.ours
        module = eval(code, KNOWN)  # noqa: S307 — of the tables below
        return module.double()

    def layer(self, device):
        """The layer here, in float64."""
        return make(self.ours, device).astype("float64")

    def arrays(self, seed=0):
        """Values of the inputs."""
        random = np.random.default_rng(seed)
        return [
            random.integers(0, one[1], one[0]) if isinstance(one, list) else random.normal(size=one)
            for one in self.inputs
        ]


def make(code, device):
    """A layer of burn.nn on a device, from the code that makes it."""

    def on_device(layer):
        takes = inspect.signature(layer).parameters
        return lambda *args, **options: layer(
            *args, **options, **({"device": device} if "device" in takes else {})
        )

    names = [name for name in dir(nn) if isinstance(getattr(nn, name), type)]
    known = {name: on_device(getattr(nn, name)) for name in names} | {"burn": burn}
    return eval(code, known)  # noqa: S307 — of the tables below


LINEAR = [
    Case("Linear(4, 3)", ((5, 4),)),
    Case("Linear(4, 3, bias=False)", ((2, 5, 4),)),
    Case("Linear(4, 3)", ((4,),)),
    Case("Bilinear(3, 4, 2)", ((5, 3), (5, 4))),
    Case("Bilinear(3, 4, 2, bias=False)", ((2, 5, 3), (2, 5, 4))),
    Case("Embedding(7, 3)", ([(2, 5), 7],)),
    Case("Embedding(7, 3, padding_idx=2)", ([(4, 5), 7],)),
    Case("Embedding(7, 3, padding_idx=-1)", ([(20,), 7],)),
    Case("Identity()", ((2, 3),)),
    Case("Flatten()", ((2, 3, 4, 5),)),
    Case("Flatten(start_axis=0, end_axis=-2)", ((2, 3, 4, 5),), "Flatten(0, -2)"),
    Case("Unflatten(1, (2, 3))", ((4, 6, 2),)),
    Case("Unflatten(-1, (2, -1))", ((4, 6),)),
]

CONVOLUTION = [
    Case("Conv1d(3, 4, 3)", ((2, 3, 9),)),
    Case("Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2)", ((2, 4, 11),)),
    Case("Conv1d(3, 4, 4, padding='same', bias=False)", ((2, 3, 9),)),
    Case("Conv1d(3, 4, 4, padding='same', dilation=2, padding_mode='circular')", ((2, 3, 9),)),
    Case("Conv2d(3, 4, 3)", ((2, 3, 6, 5),)),
    Case("Conv2d(4, 4, (3, 2), stride=(2, 1), padding=(1, 0), groups=4)", ((2, 4, 6, 5),)),
    Case("Conv2d(3, 4, 3, padding='valid', bias=False)", ((2, 3, 6, 5),)),
    Case("Conv2d(3, 2, 3, padding=(2, 1), padding_mode='reflect')", ((2, 3, 6, 5),)),
    Case("Conv2d(3, 2, 3, stride=2, padding=2, padding_mode='replicate')", ((2, 3, 6, 5),)),
    Case("Conv2d(3, 2, 3, padding=1, padding_mode='circular')", ((2, 3, 6, 5),)),
    Case("Conv2d(3, 2, (2, 3), padding='same', padding_mode='reflect')", ((2, 3, 6, 5),)),
    Case(
        "Conv2d(3, 2, 3, padding=((1, 2), (0, 1)), padding_mode='replicate')",
        ((2, 3, 6, 5),),
        "Sequential(torch.nn.ReplicationPad2d((0, 1, 1, 2)), Conv2d(3, 2, 3))",
    ),
    Case("Conv3d(2, 3, 2)", ((2, 2, 4, 3, 3),)),
    Case("Conv3d(2, 2, (2, 1, 3), stride=2, padding=1, groups=2)", ((2, 2, 4, 3, 3),)),
    Case("ConvTranspose1d(3, 4, 3)", ((2, 3, 5),)),
    Case(
        "ConvTranspose1d(4, 6, 3, 2, 1, 1, 2, 2)",
        ((2, 4, 5),),
        "ConvTranspose1d(4, 6, 3, 2, 1, 1, 2, dilation=2)",
        "ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2, dilation=2)",
    ),
    Case("ConvTranspose2d(3, 4, 3, bias=False)", ((2, 3, 4, 3),)),
    Case(
        "ConvTranspose2d(4, 2, (3, 2), stride=2, padding=1, output_padding=(1, 0), groups=2)",
        ((2, 4, 4, 3),),
    ),
    Case("ConvTranspose3d(2, 3, 2)", ((2, 2, 3, 2, 2),)),
    Case("ConvTranspose3d(2, 2, 2, stride=2, output_padding=1, dilation=2)", ((1, 2, 3, 2, 2),)),
]

NORMALIZATION = [
    Case("BatchNorm1d(3)", ((5, 3),)),
    Case("BatchNorm1d(3, epsilon=0.1, momentum=0.3)", ((5, 3, 2),), "BatchNorm1d(3, 0.1, 0.3)"),
    Case("BatchNorm1d(3, momentum=None)", ((5, 3),)),
    Case("BatchNorm2d(3)", ((2, 3, 4, 2),)),
    Case("BatchNorm2d(3, affine=False)", ((2, 3, 4, 2),)),
    Case("BatchNorm2d(3, track_running_stats=False)", ((2, 3, 4, 2),)),
    Case("BatchNorm3d(3)", ((2, 3, 2, 3, 2),)),
    Case("InstanceNorm1d(3)", ((2, 3, 4),)),
    Case("InstanceNorm1d(3, affine=True)", ((2, 3, 4),)),
    Case("InstanceNorm2d(3, affine=True, track_running_stats=True)", ((2, 3, 4, 2),)),
    Case("InstanceNorm3d(3, momentum=0.3, track_running_stats=True)", ((2, 3, 4, 2, 2),)),
    Case("GroupNorm(2, 6)", ((2, 6, 3, 2),)),
    Case("GroupNorm(3, 6, epsilon=0.1, affine=False)", ((2, 6),), "GroupNorm(3, 6, 0.1, False)"),
    Case("LayerNorm(4)", ((2, 3, 4),)),
    Case("LayerNorm((3, 4), epsilon=0.1)", ((2, 3, 4),), "LayerNorm((3, 4), 0.1)"),
    Case("LayerNorm(4, bias=False)", ((2, 3, 4),)),
    Case(
        "LayerNorm((3, 4), elementwise_affine=False)",
        ((2, 3, 4),),
        shown="LayerNorm((3, 4), elementwise_affine=False, bias=False)",
    ),
    Case("RMSNorm(4)", ((2, 3, 4),)),
    Case("RMSNorm((3, 4), epsilon=0.1)", ((2, 3, 4),), "RMSNorm((3, 4), 0.1)"),
    Case("RMSNorm(4, elementwise_affine=False)", ((2, 3, 4),)),
    Case("LocalResponseNorm(3)", ((2, 5, 3, 2),)),
    Case("LocalResponseNorm(2, alpha=0.5, beta=0.6, k=2.0)", ((2, 5, 3),)),
]

IMAGES = ((2, 3, 7, 6),)

POOLING = [
    Case("MaxPool1d(2)", ((2, 3, 7),)),
    Case("MaxPool1d(3, stride=2, padding=1, dilation=2)", ((2, 3, 9),), "MaxPool1d(3, 2, 1, 2)"),
    Case("MaxPool2d((3, 2), stride=(2, 1), padding=(1, 0), ceil_mode=True)", IMAGES),
    Case("MaxPool2d(2, return_indices=True)", IMAGES),
    Case("MaxPool3d(2)", ((2, 3, 4, 5, 2),)),
    Case("AvgPool1d(3, stride=2)", ((2, 3, 9),), "AvgPool1d(3, 2)"),
    Case("AvgPool2d(3, stride=2, padding=1, count_include_pad=False)", IMAGES),
    Case("AvgPool2d((3, 2), padding=(1, 0), ceil_mode=True)", IMAGES),
    Case("AvgPool3d(2)", ((2, 3, 4, 5, 2),)),
    Case("AdaptiveAvgPool1d(4)", ((2, 3, 7),)),
    Case("AdaptiveAvgPool2d((3, 2))", IMAGES),
    Case("AdaptiveAvgPool3d(2)", ((2, 3, 4, 5, 3),)),
    Case("AdaptiveMaxPool1d(4)", ((2, 3, 7),)),
    Case("AdaptiveMaxPool2d((3, 2))", IMAGES),
    Case("AdaptiveMaxPool3d(2)", ((2, 3, 4, 5, 3),)),
]

ELEMENTS = ((3, 4, 5),)

ACTIVATION = [
    *[
        Case(f"{name}()", ELEMENTS)
        for name in (
            *("ReLU", "ReLU6", "SELU", "SiLU", "Mish", "Sigmoid", "LogSigmoid", "Tanh", "ELU"),
            *("Tanhshrink", "Softsign", "Hardswish", "LeakyReLU", "PReLU", "CELU"),
            *("GELU", "Hardtanh", "Softplus", "Hardshrink", "Softshrink"),
        )
    ],
    # The gradient of torch's own has a slope of 1/6 in float32.
    Case("Hardsigmoid()", ELEMENTS, "Function(lambda x: torch.clamp(x / 6 + 0.5, 0, 1))"),
    Case(
        "Hardsigmoid(alpha=0.2, beta=0.4)",
        ELEMENTS,
        "Function(lambda x: torch.clamp(0.2 * x + 0.4, 0, 1))",
    ),
    Case("LeakyReLU(negative_slope=0.3)", ELEMENTS, "LeakyReLU(0.3)"),
    Case("PReLU(num_parameters=4, init=0.5)", ELEMENTS, "PReLU(4, 0.5)"),
    Case("ELU(alpha=0.5)", ELEMENTS, "ELU(0.5)"),
    Case("CELU(alpha=0.5)", ELEMENTS, "CELU(0.5)"),
    Case("GELU(approximate='tanh')", ELEMENTS, "GELU('tanh')"),
    Case("Hardtanh(low=-0.5, high=0.4)", ELEMENTS, "Hardtanh(-0.5, 0.4)"),
    Case("Softplus(beta=3.0)", ELEMENTS, "Softplus(3.0)"),
    Case("Hardshrink(lambd=0.3)", ELEMENTS, "Hardshrink(0.3)"),
    Case("Softshrink(lambd=0.3)", ELEMENTS, "Softshrink(0.3)"),
    Case("Shrink(lambd=0.3, bias=0.3)", ELEMENTS, "Softshrink(0.3)"),
    Case("Threshold(0.2, 3.0)", ELEMENTS),
    Case("ThresholdedReLU(alpha=0.2)", ELEMENTS, "Threshold(0.2, 0.0)"),
    Case("Softmax(axis=1)", ELEMENTS, "Softmax(1)"),
    Case("LogSoftmax()", ELEMENTS, "LogSoftmax(-1)"),
    Case("LogSoftmax(axis=0)", ELEMENTS, "LogSoftmax(0)"),
    Case("Softmin(axis=1)", ELEMENTS, "Softmin(1)"),
    Case("Softmax2d()", ((2, 3, 4, 5),)),
    Case("GLU(axis=1)", ELEMENTS, "GLU(1)"),
    Case(
        "QuietSoftmax(axis=1)",
        ELEMENTS,
        "Function(lambda x: x.exp() / (1 + x.exp().sum(1, keepdim=True)))",
    ),
]

SIGNALS, VOLUMES = ((2, 3, 5),), ((2, 3, 4, 5, 3),)

RESAMPLING = [
    Case("Upsample(size=(9, 4))", IMAGES, "Upsample((9, 4))"),
    Case("Upsample(scale_factor=2, mode='bilinear', align_corners=True)", IMAGES),
    Case("Upsample(scale_factor=(1.5, 2.0), mode='bicubic')", IMAGES),
    Case("Upsample(scale_factor=1.3, mode='linear', recompute_scale_factor=True)", SIGNALS),
    Case("PixelShuffle(2)", ((2, 12, 3, 4),)),
    Case("PixelUnshuffle(2)", ((2, 3, 6, 4),)),
    Case("Unfold(2)", IMAGES),
    Case("Unfold((3, 2), dilation=2, padding=1, stride=2)", IMAGES, "Unfold((3, 2), 2, 1, 2)"),
    Case("Fold((4, 5), 2)", ((2, 12, 12),)),
    Case("Fold(5, 2, padding=1, stride=3)", ((2, 12, 4),), "Fold(5, 2, 1, 1, 3)"),
    Case("ZeroPad1d((1, 2))", SIGNALS),
    Case("ZeroPad2d((1, 2, 3, 0))", IMAGES),
    Case("ZeroPad3d((1, 2, 3, 0, 2, 1))", VOLUMES),
    Case("ConstantPad1d(2, 0.5)", SIGNALS),
    Case("ConstantPad2d((1, 2, 3, 0), 0.5)", IMAGES),
    Case("ConstantPad3d((1, 2, 3, 0, 2, 1), 0.5)", VOLUMES),
    Case("ReflectionPad1d((1, 2))", SIGNALS),
    Case("ReflectionPad2d((1, 2, 3, 0))", IMAGES),
    Case("ReflectionPad3d((1, 2, 3, 0, 2, 1))", VOLUMES),
    Case("ReplicationPad1d((1, 2))", SIGNALS),
    Case("ReplicationPad2d((1, 2, 3, 0))", IMAGES),
    Case("ReplicationPad3d((1, 2, 3, 0, 2, 1))", VOLUMES),
    Case("CircularPad1d((1, 2))", SIGNALS),
    Case("CircularPad2d((1, 2, 3, 0))", IMAGES),
    Case("CircularPad3d((1, 2, 3, 0, 2, 1))", VOLUMES),
]

CASES = [*LINEAR, *CONVOLUTION, *NORMALIZATION, *POOLING, *ACTIVATION, *RESAMPLING]


def leaf(array, device):
    x = burn.asarray(array, device=device.autodiff())
    return x.require_grad() if x.dtype.is_float else x


def same(ours, theirs, what=""):
    if isinstance(ours, tuple):
        for one, other in zip(ours, theirs, strict=True):
            same(one, other, what)
        return
    expected = theirs.detach().numpy()
    assert ours.shape == expected.shape, what
    np.testing.assert_allclose(
        ours.detach().inner().numpy(), expected, rtol=1e-9, atol=1e-9, err_msg=what
    )


def compare(layer, module, device, arrays):
    """Outputs and all gradients of a layer and of torch's."""
    xs = [leaf(one, device) for one in arrays]
    ys = [torch.tensor(one, requires_grad=one.dtype == np.float64) for one in arrays]
    output, expected = layer(*xs), module(*ys)
    same(output, expected, "output")
    if isinstance(output, tuple):
        output, expected = output[0], expected[0]
    if not expected.requires_grad:
        assert not output.is_tracked
        return
    weights = np.random.default_rng(1).normal(size=output.shape)
    gradients = (output * burn.asarray(weights, device=device)).sum().backward()
    module.zero_grad()
    (expected * torch.tensor(weights)).sum().backward()
    for index, (x, y) in enumerate(zip(xs, ys, strict=True)):
        if y.requires_grad:
            same(x.grad(gradients), y.grad, f"gradient of input {index}")
    parameters = layer.named_parameters()
    for (name, x), y in zip(parameters, module.parameters(), strict=True):
        same(x.grad(gradients), y.grad, f"gradient of {name}")


def renamed(state, names):
    """A state dict with its values under other names, in order."""
    return dict(zip(names, state.values(), strict=True))


def like_torch(case, device):
    """Outputs, gradients, parameters and buffers of a layer, in training and after it."""
    layer, module = case.layer(device.autodiff()), case.module
    state = module.state_dict()
    if type(module) is torch.nn.Sequential:
        state = renamed(state, layer.state_dict())
    else:
        shapes = {name: tuple(one.shape) for name, one in module.named_parameters()}
        assert {name: one.shape for name, one in layer.named_parameters()} == shapes
    report = layer.load_state_dict(state)
    assert not report
    for seed in 0, 1:  # two steps of running statistics
        compare(layer, module, device, case.arrays(seed))
    buffers = dict(module.named_buffers())
    assert buffers.keys() == dict(layer.named_buffers()).keys()
    for name, buffer in layer.named_buffers():
        if name != "num_batches_tracked":
            same(buffer, buffers[name], name)
    layer.eval(), module.eval()
    compare(layer, module, device, case.arrays(2))


def same_code(one, other):
    """Whether texts differ in line breaks alone."""
    return ast.dump(ast.parse(one)) == ast.dump(ast.parse(other))


def ids(cases):
    return [case.ours for case in cases]


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_a_layer_computes_what_torch_does_with_its_state(case):
    like_torch(case, CPU)


@pytest.mark.parametrize("device", [one for one in DEVICES if one != CPU], ids=str)
@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_a_layer_is_that_of_torch_on_every_device(case, device, everything):
    first = {one.ours.partition("(")[0]: one for one in reversed(CASES)}
    if everything or case in first.values():
        like_torch(case, device)


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_a_layer_is_shown_as_the_code_that_makes_it(case):
    layer = make(case.ours, CPU)
    assert same_code(repr(layer), case.shown or case.ours)
    assert repr(make(repr(layer), CPU)) == repr(layer)
