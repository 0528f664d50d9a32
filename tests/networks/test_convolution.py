"""Convolutions against PyTorch: values and gradients over a grid of options; what they refuse."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch.nn import functional

import burn
from burn.nn import functional as F
from windows_against_torch import CPU, TRACKED, assert_close, compare, normal, ones, zeros_around

CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TORCH_CONV = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
TORCH_TRANSPOSED = {
    1: functional.conv_transpose1d,
    2: functional.conv_transpose2d,
    3: functional.conv_transpose3d,
}


OPTIONS = [
    pytest.param(
        stride, padding, dilation, groups, id=f"s{stride} p{padding} d{dilation} g{groups}"
    )
    for stride, padding, dilation, groups in itertools.product(
        [1, 2, (3, 1)], [0, 1, ((0, 2), (1, 0))], [1, 2, (1, 3)], [1, 2, 4]
    )
]


@pytest.mark.together(("stride", "padding", "dilation", "groups"), OPTIONS)
@pytest.mark.parametrize("kernel", [(3, 3), (1, 1), (2, 3)])
def test_conv2d_agrees_with_torch(stride, padding, dilation, groups, kernel):
    x, weight, bias = normal(2, 4, 9, 8), normal(8, 4 // groups, *kernel), normal(8)
    options = {"stride": stride, "dilation": dilation, "groups": groups}
    pairs = padding if isinstance(padding, tuple) else ((padding, padding),) * 2
    compare(
        lambda x, w, b: F.conv2d(x, w, b, padding=padding, **options),
        lambda x, w, b: functional.conv2d(zeros_around(x, pairs), w, b, **options),
        x,
        weight,
        bias,
    )


CASES = {
    "kernel equal to the input": ((2, 3, 4, 5), (2, 3, 4, 5), {}),
    "1x1 images": ((3, 4, 1, 1), (2, 4, 1, 1), {}),
    "1x1 images with padding": ((3, 2, 1, 1), (2, 2, 3, 3), {"padding": 1}),
    "stride larger than the kernel": ((2, 2, 7, 8), (3, 2, 2, 1), {"stride": 4}),
    "windows that end before the input": ((1, 2, 9, 9), (2, 2, 2, 2), {"stride": (5, 4)}),
    "depthwise": ((2, 5, 6, 7), (5, 1, 3, 3), {"groups": 5, "padding": 1}),
    "depthwise, several of each": ((2, 3, 6, 7), (6, 1, 3, 2), {"groups": 3}),
    "depthwise, with a stride": ((2, 3, 7, 7), (3, 1, 3, 3), {"groups": 3, "stride": 2}),
    "depthwise, dilated": ((2, 3, 9, 9), (3, 1, 3, 3), {"groups": 3, "dilation": (2, 3)}),
    "one channel": ((4, 1, 8, 8), (16, 1, 3, 3), {"padding": 1}),
    "small images with many channels": ((6, 24, 4, 4), (8, 24, 3, 3), {"padding": 1}),
    "the same, with a stride": ((6, 24, 5, 5), (8, 24, 3, 3), {"padding": 1, "stride": 2}),
    "the same, dilated": ((6, 24, 6, 6), (8, 24, 3, 3), {"padding": 2, "dilation": 2}),
    "more padding than kernel": ((2, 2, 3, 3), (2, 2, 2, 2), {"padding": (3, 4)}),
    "pointwise": ((2, 6, 5, 4), (4, 6, 1, 1), {}),
    "pointwise in groups": ((2, 6, 5, 4), (4, 3, 1, 1), {"groups": 2}),
    "pointwise with a stride": ((2, 6, 5, 4), (4, 6, 1, 1), {"stride": 2}),
    "an image of many blocks": ((1, 16, 70, 90), (4, 16, 5, 5), {"padding": 2}),
    "many images": ((70, 3, 24, 24), (4, 3, 3, 3), {}),
}


@pytest.mark.parametrize("case", CASES)
def test_conv2d_agrees_with_torch_at_the_edges(case):
    shape, weight, options = CASES[case]
    compare(
        lambda x, w, b: F.conv2d(x, w, b, **options),
        lambda x, w, b: functional.conv2d(x, w, b, **options),
        normal(*shape),
        normal(*weight),
        normal(weight[0]),
    )


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("padding", [0, 2])
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_conv1d_agrees_with_torch(stride, padding, groups):
    options = {"stride": stride, "padding": padding, "groups": groups, "dilation": 2}
    compare(
        lambda x, w: F.conv1d(x, w, **options),
        lambda x, w: functional.conv1d(x, w, **options),
        normal(3, 6, 17),
        normal(6, 6 // groups, 3),
    )


@pytest.mark.parametrize("stride", [1, (2, 1, 3)])
@pytest.mark.parametrize("padding", [0, (1, 0, 2)])
@pytest.mark.parametrize("groups", [1, 2])
def test_conv3d_agrees_with_torch(stride, padding, groups):
    options = {"stride": stride, "padding": padding, "groups": groups, "dilation": (1, 2, 1)}
    compare(
        lambda x, w, b: F.conv3d(x, w, b, **options),
        lambda x, w, b: functional.conv3d(x, w, b, **options),
        normal(2, 4, 5, 6, 7),
        normal(2, 4 // groups, 2, 3, 3),
        normal(2),
    )


@pytest.mark.parametrize("stride", [1, 2, (3, 2)])
@pytest.mark.parametrize("dilation", [1, (2, 3)])
@pytest.mark.together("padding", [0, 1, (2, 0)])
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("longer", [False, True])
def test_conv_transpose2d_agrees_with_torch(stride, padding, dilation, groups, longer):
    steps = stride if isinstance(stride, tuple) else (stride, stride)
    extra = tuple(step - 1 for step in steps) if longer else 0
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    compare(
        lambda x, w, b: F.conv_transpose2d(x, w, b, output_padding=extra, **options),
        lambda x, w, b: functional.conv_transpose2d(x, w, b, output_padding=extra, **options),
        normal(2, 4, 5, 4),
        normal(4, 8 // groups, 3, 2),
        normal(8),
    )


TRANSPOSED_CASES = {
    "1x1 images": ((3, 4, 1, 1), (4, 2, 1, 1), {}),
    "1x1 images made larger": ((3, 4, 1, 1), (4, 2, 4, 4), {}),
    "stride larger than the kernel": ((2, 2, 3, 4), (2, 3, 2, 1), {"stride": 4}),
    "more padding than the kernel has": ((1, 2, 6, 7), (2, 3, 2, 2), {"padding": 3}),
    "the same, with a stride": ((1, 2, 6, 7), (2, 3, 2, 2), {"padding": 4, "stride": (2, 3)}),
    "depthwise": ((2, 4, 5, 5), (4, 1, 3, 3), {"groups": 4, "stride": 2, "padding": 1}),
    "output padding beyond the stride": (
        (2, 3, 4, 5),
        (3, 2, 2, 3),
        {"dilation": 3, "stride": 2, "output_padding": 2},
    ),
    "the same along one axis": (
        (2, 3, 4, 5),
        (3, 2, 2, 3),
        {"dilation": (1, 4), "output_padding": (0, 3), "padding": 1},
    ),
    "an image of many blocks": ((1, 16, 60, 70), (16, 4, 4, 4), {"stride": 2, "padding": 1}),
}


@pytest.mark.parametrize("case", TRANSPOSED_CASES)
def test_conv_transpose2d_agrees_with_torch_at_the_edges(case):
    shape, weight, options = TRANSPOSED_CASES[case]
    compare(
        lambda x, w, b: F.conv_transpose2d(x, w, b, **options),
        lambda x, w, b: functional.conv_transpose2d(x, w, b, **options),
        normal(*shape),
        normal(*weight),
        normal(weight[1] * options.get("groups", 1)),
    )


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("stride", [1, 3])
@pytest.mark.parametrize("groups", [1, 2])
def test_conv_transpose_of_other_ranks_agrees_with_torch(count, stride, groups):
    options = {"stride": stride, "padding": 1, "output_padding": stride - 1, "groups": groups}
    compare(
        lambda x, w, b: TRANSPOSED[count](x, w, b, **options),
        lambda x, w, b: TORCH_TRANSPOSED[count](x, w, b, **options),
        normal(2, 4, *(4, 3, 5)[:count]),
        normal(4, 3, *(3, 2, 3)[:count]),
        normal(3 * groups),
    )


@pytest.mark.parametrize("count", [1, 2, 3])
def test_an_empty_batch_gives_an_empty_result_and_zero_gradients(count):
    x = burn.zeros((0, 2, *[5] * count), device=TRACKED).require_grad()
    weight = burn.ones((4, 2, *[3] * count), device=TRACKED).require_grad()
    bias = burn.ones(4, device=TRACKED).require_grad()
    output = CONV[count](x, weight, bias)
    assert output.shape == (0, 4, *[3] * count)
    back = TRANSPOSED[count](output, weight)
    assert back.shape == x.shape
    gradients = (output.sum() + back.sum()).backward()
    assert x.grad(gradients).shape == x.shape
    assert weight.grad(gradients).shape == weight.shape
    assert not weight.grad(gradients).numpy().any()
    assert bias.grad(gradients).tolist() == [0.0] * 4


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel:UserWarning")
@pytest.mark.parametrize("lengths", [(7, 8), (5, 5), (4, 9)])
@pytest.mark.parametrize("kernel", [(3, 3), (2, 4), (5, 1)])
@pytest.mark.parametrize("dilation", [1, 2])
def test_same_padding_is_that_of_torch(lengths, kernel, dilation):
    x, weight = normal(2, 2, *lengths), normal(3, 2, *kernel)
    compare(
        lambda x, w: F.conv2d(x, w, padding="same", dilation=dilation),
        lambda x, w: functional.conv2d(x, w, padding="same", dilation=dilation),
        x,
        weight,
    )


@pytest.mark.parametrize("stride", [1, 2, 3, 5])
@pytest.mark.parametrize("length", [1, 4, 7, 12])
@pytest.mark.parametrize("kernel", [1, 2, 3])
def test_same_padding_gives_the_length_over_the_stride(stride, length, kernel):
    x, weight = burn.ones((1, 1, length), device=CPU), burn.ones((1, 1, kernel), device=CPU)
    output = F.conv1d(x, weight, stride=stride, padding="same")
    assert output.shape == (1, 1, math.ceil(length / stride))


def test_valid_padding_is_none():
    x, weight = burn.asarray(normal(1, 2, 5), device=CPU), burn.asarray(normal(2, 2, 3), device=CPU)
    assert_close(F.conv1d(x, weight, padding="valid").numpy(), F.conv1d(x, weight).numpy())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bit_floats_add_up_in_float32(dtype):
    x = burn.ones((1, 4096, 1), dtype=dtype, device=CPU)
    weight = burn.ones((1, 4096, 1), dtype=dtype, device=CPU)
    output = F.conv1d(x, weight)
    assert output.dtype is burn.Tensor.dtype.fget(x)
    assert output.tolist() == [[[4096.0]]]
    bias = burn.ones(1, dtype=dtype, device=TRACKED).require_grad()
    long = F.conv1d(burn.ones((1, 1, 3000), dtype=dtype, device=TRACKED), weight[:, :1], bias)
    expected = float(burn.asarray(3000.0, dtype=dtype, device=CPU))
    assert bias.grad(long.sum().backward()).tolist() == [expected]


def test_operands_are_promoted_together():
    x = burn.ones((1, 1, 3), dtype="int32", device=CPU)
    weight = burn.ones((1, 1, 2), dtype="float64", device=CPU)
    output = F.conv1d(x, weight, burn.ones(1, device=CPU))
    assert output.dtype is burn.float64
    assert output.tolist() == [[[3.0, 3.0]]]


def test_views_are_convolved_like_copies():
    x, weight = normal(6, 7, 3, 2), normal(3, 3, 4, 3)
    a = burn.permute_dims(burn.asarray(x, device=CPU), (3, 2, 1, 0))
    w = burn.permute_dims(burn.asarray(weight, device=CPU), (2, 1, 3, 0))
    expected = functional.conv2d(
        torch.from_numpy(x).permute(3, 2, 1, 0), torch.from_numpy(weight).permute(2, 1, 3, 0)
    )
    assert_close(F.conv2d(a, w[:, ::1]).numpy(), expected.numpy())
    flipped = burn.flip(a, axis=2)
    expected = functional.conv2d(
        torch.from_numpy(x).permute(3, 2, 1, 0).flip(2),
        torch.from_numpy(weight).permute(2, 1, 3, 0),
    )
    assert_close(F.conv2d(flipped, w).numpy(), expected.numpy())


def test_an_element_that_is_not_finite_reaches_its_own_windows_only():
    x = np.zeros((1, 1, 6, 6), np.float32)
    x[0, 0, 2, 3] = np.nan
    weight = burn.ones((1, 1, 3, 3), device=CPU)
    output = F.conv2d(burn.asarray(x, device=CPU), weight, padding=1).numpy()
    expected = np.zeros((6, 6), bool)
    expected[1:4, 2:5] = True
    assert (np.isnan(output[0, 0]) == expected).all()


# What is refused.

X, W = ones(2, 4, 5, 6), ones(6, 4, 3, 3)

REFUSED = {
    "unbatched": (
        lambda: F.conv2d(ones(4, 5, 6), W),
        burn.ShapeError,
        r"conv2d: x has shape \(4, 5, 6\) where a batch \(N, C, H, W\) is needed. x\[None\] adds",
    ),
    "unbatched 1-d": (lambda: F.conv1d(ones(4, 5), ones(6, 4, 3)), burn.ShapeError, "batch"),
    "unbatched transposed": (
        lambda: F.conv_transpose3d(X, ones(4, 1, 2, 2, 2)),
        burn.ShapeError,
        r"\(N, C, D, H, W\)",
    ),
    "too many axes": (lambda: F.conv1d(X, ones(6, 4, 3)), burn.ShapeError, "conv1d"),
    "kernel too long": (
        lambda: F.conv2d(X, ones(6, 4, 3, 9), padding=1, dilation=(1, 2)),
        burn.ShapeError,
        r"- 1\) - 1\)/stride\) \+ 1 = floor\(\(6 \+ 1 \+ 1 - 2\*\(9 - 1\) - 1\)/1\) \+ 1 = -8",
    ),
    "other channels": (
        lambda: F.conv2d(X, ones(6, 3, 3, 3)),
        burn.ShapeError,
        "has 3 channels where C / groups = 4 / 1 = 4",
    ),
    "groups of inputs": (
        lambda: F.conv2d(X, ones(6, 1, 3, 3), groups=3),
        burn.ShapeError,
        "4 channels C are no multiple of 3 groups",
    ),
    "groups of outputs": (
        lambda: F.conv2d(X, ones(5, 2, 3, 3), groups=2),
        burn.ShapeError,
        "5 channels O are no multiple of 2 groups",
    ),
    "no groups": (lambda: F.conv2d(X, W, groups=0), burn.ArgumentError, "groups is 0"),
    "bias": (
        lambda: F.conv2d(X, W, ones(5)),
        burn.ShapeError,
        r"bias has shape \(5,\) where \(6,\)",
    ),
    "weight with other axes": (lambda: F.conv2d(X, ones(6, 4, 3)), burn.ShapeError, "weight"),
    "stride 0": (lambda: F.conv2d(X, W, stride=0), burn.ArgumentError, "stride"),
    "stride 0, same": (
        lambda: F.conv2d(X, W, stride=0, padding="same"),
        burn.ArgumentError,
        "stride",
    ),
    "negative padding": (lambda: F.conv2d(X, W, padding=-1), burn.ArgumentError, "padding"),
    "named padding": (
        lambda: F.conv2d(X, W, padding="full"),
        burn.ArgumentError,
        'conv2d: padding is \'full\'. Use numbers, "same" or "valid"',
    ),
    "padding of one axis": (lambda: F.conv2d(X, W, padding=(1,)), burn.ArgumentError, "conv2d"),
    "stride of three axes": (
        lambda: F.conv2d(X, W, stride=(1, 1, 1)),
        burn.ArgumentError,
        "conv2d: stride has 3 values",
    ),
    "dilation 1.5": (lambda: F.conv2d(X, W, dilation=1.5), burn.OperandTypeError, "dilation"),
    "no tensor": (lambda: F.conv2d(np.ones((1, 1, 2, 2)), W), burn.OperandTypeError, "conv2d"),
    "booleans": (
        lambda: F.conv2d(burn.ones((1, 1, 2, 2), dtype="bool", device=CPU), W) and None,
        burn.BurnError,
        "conv",
    ),
    "empty image": (lambda: F.conv2d(ones(1, 4, 0, 3), W), burn.ShapeError, "no elements"),
    "empty kernel": (lambda: F.conv2d(X, ones(6, 4, 0, 3)), burn.ArgumentError, "kernel"),
    "transposed weight": (
        lambda: F.conv_transpose2d(X, W),
        burn.ShapeError,
        r"\(C, O / groups, \*kernel\)",
    ),
    "nothing left": (
        lambda: F.conv_transpose2d(X, ones(4, 6, 3, 3), padding=4),
        burn.ShapeError,
        r"= \(5 - 1\)\*1 - 4 - 4 \+ 1\*\(3 - 1\) \+ 0 \+ 1 = -1",
    ),
    "output padding": (
        lambda: F.conv_transpose2d(X, ones(4, 6, 3, 3), output_padding=1),
        burn.ArgumentError,
        "output_padding is 1 along axis 2 where the stride is 1",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_says_why(case):
    call, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        call()
