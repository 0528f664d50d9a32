"""Layers against torch.nn with the same weights: outputs, gradients and states."""

import ast
import copy
import functools
import inspect
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
import torch

import burn
from burn import nn
from crossing import on_devices

pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same' with even:UserWarning")

CPU = burn.Device("cpu")
DEVICES = [device for device in burn.Device.enumerate() if device.supports_dtype(burn.float64)]


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
            random.integers(0, source[1], source[0])
            if isinstance(source, list)
            else random.normal(size=source)
            for source in self.inputs
        ]


class Layers(dict):
    """The layers of burn.nn by their names, on a device."""

    def __init__(self, device):
        self.device = device

    def __missing__(self, name):
        layer = getattr(nn, name)
        has_device = "device" in inspect.signature(layer).parameters
        return functools.partial(layer, device=self.device) if has_device else layer


def make(code, device, **known):
    """A layer of burn.nn on a device, from the code that makes it."""
    layers = Layers(device)
    layers.update(known)
    return eval(code, {}, layers)  # noqa: S307 — of the tables below


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
    Case("AdaptiveMaxPool2d((3, 2), return_indices=True)", IMAGES),
    Case("LPPool1d(2, 3, stride=2)", ((2, 3, 9),), "LPPool1d(2, 3, 2)"),
    Case("LPPool2d(4.0, (3, 2), ceil_mode=True)", IMAGES),
    Case("LPPool3d(2.0, 2)", ((2, 3, 4, 5, 2),)),
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
    Case("RReLU(lower=0.3, upper=0.3)", ELEMENTS, "RReLU(0.3, 0.3)"),
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
    Case("Interpolate(size=(9, 4))", IMAGES, "Upsample((9, 4))"),
    Case(
        "Interpolate(scale_factor=2, mode='bilinear', align_corners=True)",
        IMAGES,
        "Upsample(scale_factor=2, mode='bilinear', align_corners=True)",
    ),
    Case(
        "Interpolate(scale_factor=(1.5, 2.0), mode='bicubic')",
        IMAGES,
        "Upsample(scale_factor=(1.5, 2.0), mode='bicubic')",
    ),
    Case(
        "Interpolate(scale_factor=1.3, mode='linear', recompute_scale_factor=True)",
        SIGNALS,
        "Upsample(scale_factor=1.3, mode='linear', recompute_scale_factor=True)",
    ),
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
        for item, other in zip(ours, theirs, strict=True):
            same(item, other, what)
        return
    expected = theirs.detach().numpy()
    assert ours.shape == expected.shape, what
    np.testing.assert_allclose(
        ours.detach().inner().numpy(), expected, rtol=1e-9, atol=1e-9, err_msg=what
    )


def compare(layer, module, device, arrays):
    """Outputs and all gradients of a layer and of torch's."""
    xs = [leaf(array, device) for array in arrays]
    ys = [torch.tensor(array, requires_grad=array.dtype == np.float64) for array in arrays]
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
        shapes = {name: tuple(parameter.shape) for name, parameter in module.named_parameters()}
        assert {name: parameter.shape for name, parameter in layer.named_parameters()} == shapes
    report = layer.load_state_dict(state)
    assert not report
    for seed in 0, 1:  # two steps of running statistics
        compare(layer, module, device, case.arrays(seed))
    buffers = dict(module.named_buffers())
    assert buffers.keys() == dict(layer.named_buffers()).keys()
    for name, buffer in layer.named_buffers():
        # Batches are counted where their number matters alone.
        if name != "num_batches_tracked" or layer.momentum is None:
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


OTHER_DEVICES = [item for item in DEVICES if item != CPU]

OF_EACH_SORT = [
    *("Bilinear(3, 4, 2)", "Embedding(7, 3, padding_idx=2)", "Conv2d(3, 4, 3)", "RMSNorm(4)"),
    *("Conv2d(3, 2, 3, padding=1, padding_mode='circular')", "ConvTranspose1d(3, 4, 3)"),
    *("BatchNorm2d(3)", "BatchNorm1d(3, momentum=None)", "GroupNorm(2, 6)", "LayerNorm(4)"),
    *("MaxPool2d(2, return_indices=True)", "AdaptiveAvgPool2d((3, 2))", "PReLU()", "GLU(axis=1)"),
    *("Interpolate(size=(9, 4))", "PixelShuffle(2)", "ReflectionPad2d((1, 2, 3, 0))"),
]


@pytest.mark.parametrize(("code", "device"), on_devices(OF_EACH_SORT, OTHER_DEVICES, OF_EACH_SORT))
def test_some_layers_are_those_of_torch_on_every_device(code, device):
    (case,) = [case for case in CASES if case.ours == code]
    like_torch(case, device)


@pytest.mark.exhaustive
@pytest.mark.parametrize("device", OTHER_DEVICES, ids=str)
@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_all_layers_are_those_of_torch_on_every_device(case, device):
    like_torch(case, device)


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_a_layer_is_shown_as_the_code_that_makes_it(case):
    layer = make(case.ours, CPU)
    assert same_code(repr(layer), case.shown or case.ours)
    assert repr(make(repr(layer), CPU)) == repr(layer)


# Losses.

VALUES = {
    "number": lambda random: random.normal(size=(5, 3)),
    "probability": lambda random: random.uniform(0.1, 0.9, size=(5, 3)),
    "distribution": lambda random: random.dirichlet(np.ones(3), size=5),
    "positive": lambda random: random.uniform(0.5, 2.0, size=(5, 3)),
    "class": lambda random: random.integers(0, 3, 5),
    "count": lambda random: random.integers(0, 5, size=(5, 3)).astype(np.float64),
    "sign": lambda random: random.choice([-1.0, 1.0], size=(5, 3)),
    "pair": lambda random: random.choice([-1.0, 1.0], size=5),
}
"""Values of operands of losses, by what they stand for."""

LOSSES = [
    ("MSELoss()", "number number"),
    ("MSELoss(reduction='sum')", "number number"),
    ("L1Loss(reduction='none')", "number number"),
    ("HuberLoss(delta=0.4)", "number number"),
    ("SmoothL1Loss(beta=0.4)", "number number"),
    ("CrossEntropyLoss()", "number class"),
    ("CrossEntropyLoss(weights, label_smoothing=0.2, ignore_index=1)", "number class"),
    ("CrossEntropyLoss(label_smoothing=0.2, reduction='sum')", "number distribution"),
    ("NLLLoss(weights)", "number class"),
    ("NLLLoss(ignore_index=1, reduction='none')", "number class"),
    ("BCELoss()", "probability probability"),
    ("BCELoss(weights, reduction='sum')", "probability probability"),
    ("BCEWithLogitsLoss()", "number probability"),
    ("BCEWithLogitsLoss(weights, pos_weight=weights * 2)", "number probability"),
    ("KLDivLoss(reduction='batchmean')", "number distribution"),
    ("KLDivLoss(log_target=True, reduction='sum')", "number number"),
    ("PoissonNLLLoss(full=True)", "number count"),
    ("PoissonNLLLoss(log_input=False, eps=0.1)", "positive count"),
    ("GaussianNLLLoss()", "number number positive"),
    ("GaussianNLLLoss(full=True, eps=0.7)", "number number positive"),
    ("CosineEmbeddingLoss(margin=0.2)", "number number pair"),
    ("HingeEmbeddingLoss(margin=0.5)", "number sign"),
    ("MarginRankingLoss(margin=0.5)", "number number sign"),
    ("SoftMarginLoss()", "number sign"),
    ("MultiMarginLoss(p=2, margin=0.5)", "number class"),
    ("MultiMarginLoss(weight=weights)", "number class"),
    ("TripletMarginLoss(margin=0.5, swap=True)", "number number number"),
    ("TripletMarginLoss(p=1.0)", "number number number"),
]

WEIGHTS = [0.5, 2.0, 1.5]


@pytest.mark.parametrize(("code", "operands"), LOSSES, ids=[code for code, _ in LOSSES])
def test_a_loss_is_that_of_torch(code, operands, everything):
    random = np.random.default_rng(0)
    arrays = [VALUES[word](random) for word in operands.split()]
    module = eval(code, KNOWN | {"weights": torch.tensor(WEIGHTS)}).double()  # noqa: S307 — of the table above
    # torch knows no gradients by some targets, and is not asked for them.
    ys = [torch.tensor(array, requires_grad=index == 0) for index, array in enumerate(arrays)]
    expected = module(*ys)
    expected.sum().backward()
    for device in DEVICES if everything else [CPU]:
        weights = burn.asarray(WEIGHTS, device=device)
        loss = make(code, device, weights=weights).astype("float64")
        assert not loss.load_state_dict(module.state_dict())
        assert not loss.parameters()
        assert {name for name, _ in loss.named_buffers()} == {*module.state_dict()}
        xs = [leaf(array, device) for array in arrays]
        found = loss(*xs)
        same(found, expected)
        same(xs[0].grad(found.sum().backward()), ys[0].grad)


@pytest.mark.parametrize("code", [code for code, _ in LOSSES if "weights" not in code])
def test_a_loss_is_shown_as_the_code_that_makes_it(code):
    assert same_code(repr(make(code, CPU)), code)


def test_the_classes_of_a_loss_lie_along_any_axis():
    logits, classes = np.random.default_rng(0).normal(size=(2, 3, 4)), np.ones((2, 4), np.int64)
    expected = torch.nn.CrossEntropyLoss()(torch.tensor(logits), torch.tensor(classes))
    loss = nn.CrossEntropyLoss(axis=1)
    same(loss(burn.asarray(logits, device=CPU), burn.asarray(classes, device=CPU)), expected)


def test_the_losses_that_torch_has_not_or_otherwise_are_those_of_their_functions():
    x, y = burn.asarray([1.0, 2.0], device=CPU), burn.asarray([1.5, 5.0], device=CPU)
    assert nn.LpLoss(3.0)(x, y).item() == nn.functional.lp_loss(x, y, 3.0).item()
    log_probs = nn.functional.log_softmax(burn.ones((4, 1, 3), device=CPU))
    lengths = burn.asarray([4], device=CPU), burn.asarray([2], device=CPU)
    labels = burn.asarray([[0, 1]], device=CPU)
    expected = nn.functional.ctc_loss(log_probs, labels, *lengths, blank=2, reduction="sum").item()
    assert nn.CTCLoss(blank=2, reduction="sum")(log_probs, labels, *lengths).item() == expected


# Layers that torch has not.


def test_a_deformable_convolution_without_offsets_is_a_convolution():
    layer = make("DeformConv2d(4, 6, (3, 2), stride=2, padding=1, groups=2, offset_groups=2)", CPU)
    assert repr(layer).count("\n") > 2 or repr(layer).startswith("DeformConv2d(4, 6, (3, 2), str")
    convolution = make("Conv2d(4, 6, (3, 2), stride=2, padding=1, groups=2)", CPU)
    assert not convolution.load_state_dict(layer.state_dict())
    x = burn.random.normal((2, 4, 5, 6), device=CPU)
    expected = convolution(x)
    offset = burn.zeros((2, 24, *expected.shape[2:]), device=CPU)
    mask = burn.full((2, 12, *expected.shape[2:]), 0.5, device=CPU)
    np.testing.assert_allclose(layer(x, offset).numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)
    halves = (layer(x, offset, mask) - layer.bias.reshape((6, 1, 1))) * 2.0
    both = expected - convolution.bias.reshape((6, 1, 1))
    np.testing.assert_allclose(halves.numpy(), both.numpy(), rtol=1e-5, atol=1e-5)


def test_the_gate_of_swiglu_is_its_inner_map():
    layer = make("SwiGLU(3, 5, bias=True)", CPU)
    inner, outer = torch.nn.Linear(3, 5), torch.nn.Linear(3, 5)
    state = {f"linear_inner.{name}": value for name, value in inner.state_dict().items()}
    state |= {f"linear_outer.{name}": value for name, value in outer.state_dict().items()}
    assert not layer.load_state_dict(state)
    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    expected = torch.nn.functional.silu(inner(torch.tensor(x))) * outer(torch.tensor(x))
    found = layer(burn.asarray(x, device=CPU))
    np.testing.assert_allclose(found.numpy(), expected.detach().numpy(), rtol=1e-5, atol=1e-6)
    assert "bias=True" in repr(layer)
    assert "bias" not in repr(make("SwiGLU(3, 5)", CPU)).partition("linear")[0]


# Dropout.

DROPOUT = [
    ("Dropout(p=0.25)", (40, 50)),
    ("Dropout1d(p=0.25)", (40, 30, 3)),
    ("Dropout2d(p=0.25)", (40, 30, 2, 3)),
    ("Dropout3d(p=0.25)", (40, 30, 2, 1, 3)),
    ("AlphaDropout(p=0.25)", (40, 50)),
    ("GaussianNoise(0.25)", (40, 50)),
]


@pytest.mark.parametrize(("code", "shape"), DROPOUT, ids=[code for code, _ in DROPOUT])
def test_dropout_and_noise_are_for_training(code, shape):
    layer = make(code, CPU)
    assert repr(layer) == code
    array = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    plain, training = burn.asarray(array, device=CPU), burn.asarray(array, device=CPU.autodiff())
    assert layer(plain) is plain
    found = {}
    for device in burn.Device.enumerate():
        if device.supports_dtype(burn.float32):
            device.seed(3)
            found[device] = layer(burn.asarray(array, device=device.autodiff())).numpy()
    for other in found.values():
        # Equal draws; of normal numbers as far as burn.random.normal says.
        np.testing.assert_allclose(other, found[CPU], rtol=1e-6, atol=1e-6)
    assert (found[CPU] != array).mean() > 0.15
    assert layer.eval()(training) is training
    CPU.seed(3)
    assert (layer.train()(training).numpy() == found[CPU]).all()


def test_dropout_follows_the_model_that_it_is_part_of():
    model = nn.Sequential(make("Linear(64, 64)", CPU.autodiff()), nn.Dropout(0.5))
    x = burn.ones((4, 64), device=CPU)
    assert (model(x) == 0.0).any()
    with burn.no_grad():
        assert not (model.eval()(x) == 0.0).any()
    assert not (model.train().to(CPU)(x) == 0.0).any()


def test_noise_has_its_deviation():
    CPU.seed(0)
    noise = nn.GaussianNoise(0.25)(burn.zeros(100_000, device=CPU.autodiff()))
    assert abs(burn.std(noise).item() - 0.25) < 0.003
    assert abs(burn.mean(noise).item()) < 0.003
    assert nn.GaussianNoise(0.25)(noise.astype("float16")).dtype is burn.float16


# What all layers do.


@pytest.mark.parametrize(
    ("code", "shape", "message"),
    [
        ("Linear(4, 3)", (2, 5), "linear"),
        ("Bilinear(3, 4, 2)", (2, 3), "nn.Bilinear"),
        ("Conv1d(3, 4, 3)", (3, 9), "conv1d.*batch of one"),
        ("Conv2d(3, 4, 3)", (2, 4, 5, 5), "conv"),
        ("Conv2d(3, 4, 3, padding=1, padding_mode='reflect')", (2, 3), "pad"),
        ("Conv3d(3, 4, 3)", (2, 3, 5, 5, 2), "conv"),
        ("ConvTranspose2d(3, 4, 3)", (2, 4, 5, 5), "conv_transpose"),
        ("BatchNorm1d(3)", (2, 4), r"nn.BatchNorm1d.*\(N, C\) or \(N, C, L\)"),
        ("BatchNorm2d(3)", (2, 3, 4), r"nn.BatchNorm2d.*\(N, C, H, W\)"),
        ("BatchNorm3d(3)", (2, 4, 4, 4, 4), r"nn.BatchNorm3d.*\(N, C, D, H, W\)"),
        ("InstanceNorm1d(3)", (3, 4), "nn.InstanceNorm1d"),
        ("InstanceNorm2d(3)", (2, 4, 4, 4), "nn.InstanceNorm2d"),
        ("GroupNorm(2, 6, affine=False)", (2, 4, 3), "nn.GroupNorm.*6 channels"),
        ("LayerNorm(4, elementwise_affine=False)", (2, 3), r"nn.LayerNorm.*\(4,\)"),
        ("LayerNorm((3, 4))", (4,), "nn.LayerNorm"),
        ("RMSNorm(4)", (), "nn.RMSNorm"),
        ("LocalResponseNorm(2)", (4,), "local_response_norm"),
        ("MaxPool2d(2)", (4,), r"max_pool2d\(.*2 spatial axes"),
        ("AvgPool1d(2)", (), r"avg_pool1d\(.*1 spatial axes"),
        ("AdaptiveAvgPool2d(2)", (4,), "adaptive_avg_pool"),
        ("AdaptiveMaxPool2d(2)", (4,), "adaptive_max_pool2d"),
        ("PReLU(num_parameters=3)", (2, 4), "prelu"),
        ("GLU()", (2, 3), "glu"),
        ("Softmax(axis=2)", (2, 3), "softmax"),
        ("Flatten(start_axis=3)", (2, 3), "nn.Flatten"),
        ("Flatten(start_axis=1, end_axis=0)", (2, 3), "nn.Flatten"),
        ("Unflatten(1, (2, 2))", (2, 3), "nn.Unflatten"),
        ("Unflatten(1, (2, -1))", (2, 3), "nn.Unflatten"),
        ("PixelShuffle(2)", (2, 3, 4, 4), "pixel_shuffle"),
        ("Interpolate(size=2)", (2, 3), "interpolate"),
        ("ZeroPad2d(1)", (3,), "nn.ZeroPad2d"),
        ("Dropout2d()", (3,), "dropout2d"),
    ],
)
def test_an_input_of_a_wrong_shape_is_an_error_that_says_so(code, shape, message):
    layer = make(code, CPU.autodiff())
    x = burn.ones(shape, device=CPU.autodiff())
    with pytest.raises(burn.ShapeError, match=message) as caught:
        layer(*[x] * (2 if "Bilinear" in code else 1))
    assert any(type(layer).__name__ in note for note in caught.value.__notes__)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("Conv2d(3, 4, (3, 3, 3))", r"nn.Conv2d: kernel_size is \(3, 3, 3\)"),
        ("Conv2d(3, 4, 0)", "kernel_size"),
        ("Conv2d(3, 4, 3, groups=2)", "groups is 2 for 3 and 4 channels"),
        ("Conv1d(3, 4, 3, padding_mode='mirror')", "nn.Conv1d: padding_mode is 'mirror'.*circular"),
        (
            "Conv2d(3, 4, 3, stride=(1, 2), padding='same', padding_mode='reflect')",
            r"nn.Conv2d: the padding 'same' of mode 'reflect' for a stride of \(1, 2\)",
        ),
        ("ConvTranspose2d(4, 3, 3, groups=2)", "groups is 2"),
        ("DeformConv2d(3, 4, 3, offset_groups=2)", "offset_groups is 2"),
        ("Embedding(3, 4, padding_idx=3)", "padding_idx is 3 for a table of 3"),
        ("GroupNorm(2, 3)", "3 channels cannot be divided into 2"),
        ("Dropout(1.5)", "nn.Dropout"),
        ("GaussianNoise(-1.0)", "nn.GaussianNoise"),
        ("ReflectionPad2d((1, 2))", "nn.ReflectionPad2d.*or 4"),
    ],
)
def test_an_argument_that_makes_no_layer_is_an_error(code, message):
    with pytest.raises((burn.ArgumentError, burn.ShapeError), match=message):
        make(code, CPU)


def first_of_each(cases):
    return list({item.ours.partition("(")[0]: item for item in reversed(cases)}.values())


@pytest.mark.parametrize("case", first_of_each(CASES), ids=lambda case: case.ours)
def test_a_layer_is_pickled_and_copied_with_its_values(case):
    device = CPU.autodiff()
    layer = make(case.ours, device)
    xs = [burn.asarray(array, device=CPU) for array in case.arrays()]
    xs = [tensor.astype("float32") if tensor.dtype.is_float else tensor for tensor in xs]
    expected = layer.eval()(*xs)
    for twin in pickle.loads(pickle.dumps(layer)), copy.deepcopy(layer):
        assert repr(twin) == repr(layer)
        found = twin(*xs)
        for item, other in zip(leaves(found), leaves(expected), strict=True):
            assert (item == other).all()
        assert not {id(parameter) for parameter in twin.parameters()} & {
            id(parameter) for parameter in layer.parameters()
        }


def leaves(value):
    return burn.tree.leaves(value)


@pytest.mark.parametrize("case", first_of_each(CASES), ids=lambda case: case.ours)
def test_a_layer_is_differentiated_by_grad_and_mapped_by_vmap(case):
    layer = case.layer(CPU)
    arrays = case.arrays()
    xs = [burn.asarray(array, device=CPU) for array in arrays]

    def total(layer, *xs):
        return burn.sum(leaves(layer(*xs))[0])

    found = burn.grad(total)(layer, *xs) if layer.parameters() else None
    leafs = [leaf(array, CPU) for array in arrays]
    training = copy.deepcopy(layer).to(CPU.autodiff())
    output = total(training, *leafs)
    if found is not None:
        gradients = output.backward()
        pairs = zip(found.named_parameters(), training.named_parameters(), strict=True)
        for (_, item), (name, parameter) in pairs:
            expected = parameter.grad(gradients).numpy()
            np.testing.assert_allclose(
                item.detach().numpy(), expected, rtol=1e-9, atol=1e-9, err_msg=name
            )
    layer = case.layer(CPU).eval()
    stacked = [
        burn.stack([tensor, tensor + tensor])
        if tensor.dtype.is_float
        else burn.stack([tensor, tensor])
        for tensor in xs
    ]
    mapped = leaves(burn.vmap(layer)(*stacked))
    for index in range(2):
        single = leaves(layer(*[item[index] for item in stacked]))
        for item, other in zip(mapped, single, strict=True):
            np.testing.assert_allclose(item[index].numpy(), other.numpy(), rtol=1e-9, atol=1e-9)


def test_a_layer_of_a_sequence_is_replaced():
    net = nn.Sequential(nn.Linear(2, 3, device=CPU), nn.Tanh(), nn.Linear(3, 2, device=CPU))
    net[-1] = nn.Linear(3, 4, bias=False, device=CPU)
    assert [repr(item) for item in net[1:]] == ["Tanh()", "Linear(3, 4, bias=False)"]
    assert [path for path, _ in net.named_parameters()] == ["0.weight", "0.bias", "2.weight"]
    net[0] = nn.Linear(2, 3, device=CPU).to(CPU.autodiff())
    assert len(net(burn.ones((1, 2), device=CPU)).sum().backward()) == 2
    with pytest.raises(burn.OperandTypeError, match=r"module 1 .* int"):
        net[1] = 3
    with pytest.raises(IndexError):
        net[3] = nn.Tanh()


def test_a_frozen_layer_with_buffers_is_shown_as_frozen():
    net = nn.Sequential(nn.BatchNorm1d(2), nn.BatchNorm1d(2), nn.Tanh()).freeze("0.*", "1.weight")
    lines = repr(net).splitlines()
    assert ["# frozen" in line for line in lines] == [False, True, False, False, False]


def test_a_precision_and_a_pattern_of_another_type_change_nothing():
    net = nn.Linear(2, 2)
    with pytest.raises(burn.OperandTypeError, match=r"set_precision: got 'bfloat16'.*Precision\("):
        net.set_precision("bfloat16")
    assert net(burn.ones((1, 2))).dtype == burn.float32
    for wrong in (["weight"], 0, net):
        with pytest.raises(burn.OperandTypeError, match=r'freeze: a pattern .*freeze\("first'):
            net.freeze(wrong)


def test_a_weight_that_another_module_computes_belongs_to_a_function():
    device = burn.Device("cpu").autodiff()
    main, other = nn.Linear(2, 2, device=device), nn.Linear(2, 4, device=device)
    main.weight = other(burn.ones(2, device=device)).reshape((2, 2))
    with pytest.raises(burn.AutodiffError, match=r"weight was computed .*functional\.linear"):
        main(burn.ones((1, 2)))
