"""Convolutions in deformed windows against their definition; what they refuse."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

import burn
from burn.nn import functional as F
from windows_against_torch import CPU, assert_close, compare, normal, ones


def deformed(x, offset, weight, mask, bias, *, stride, padding, dilation, groups, offset_groups):
    """The definition, in PyTorch so that it has gradients: one value after the other."""
    images, channels, height, width = x.shape
    outputs, per_group, *kernel = weight.shape
    counts = [
        (length + 2 * pad - spread * (size - 1) - 1) // step + 1
        for length, size, step, pad, spread in zip(
            (height, width), kernel, stride, padding, dilation, strict=True
        )
    ]

    def element(plane, row, column):
        inside = 0 <= row < height and 0 <= column < width
        return plane[row, column] if inside else plane.new_zeros(())

    def value(plane, y, x):
        top, left = math.floor(y.item()), math.floor(x.item())
        down, right = y - top, x - left
        return (
            (1 - down) * (1 - right) * element(plane, top, left)
            + (1 - down) * right * element(plane, top, left + 1)
            + down * (1 - right) * element(plane, top + 1, left)
            + down * right * element(plane, top + 1, left + 1)
        )

    results = []
    for n, o, row, column in np.ndindex(images, outputs, *counts):
        total = x.new_zeros(()) if bias is None else bias[o]
        group = o // (outputs // groups)
        for c, i, j in np.ndindex(per_group, *kernel):
            channel = group * per_group + c
            part = channel // (channels // offset_groups)
            tap = (part * kernel[0] + i) * kernel[1] + j
            y = row * stride[0] - padding[0] + i * dilation[0] + offset[n, 2 * tap, row, column]
            x_offset = offset[n, 2 * tap + 1, row, column]
            found = value(
                x[n, channel], y, column * stride[1] - padding[1] + j * dilation[1] + x_offset
            )
            if mask is not None:
                found = found * mask[n, tap, row, column]
            total = total + weight[o, c, i, j] * found
        results.append(total)
    return torch.stack(results).reshape(images, outputs, *counts)


DEFORMED = [
    pytest.param(dict(zip(NAMES, values, strict=True)), masked, id=f"{values} {masked}")
    for NAMES in [("stride", "padding", "dilation", "weight_groups", "offset_groups")]
    for values, masked in [
        (((1, 1), (0, 0), (1, 1), 1, 1), True),
        (((1, 1), (1, 1), (1, 1), 1, 1), False),
        (((2, 1), (1, 2), (1, 2), 2, 1), True),
        (((1, 1), (0, 1), (2, 1), 1, 2), True),
        (((2, 2), (1, 0), (1, 1), 2, 4), False),
    ]
]


@pytest.mark.parametrize(("options", "masked"), DEFORMED)
def test_deform_conv2d_is_what_its_definition_says(options, masked):
    x, weight, bias = normal(2, 4, 4, 5), normal(2, 4 // options["weight_groups"], 2, 3), normal(2)
    rows, columns = functional.conv2d(
        torch.from_numpy(x),
        torch.zeros(2, 4, 2, 3, dtype=torch.float64),
        **{name: options[name] for name in ("stride", "padding", "dilation")},
    ).shape[2:]
    taps = options["offset_groups"] * 6
    offset = 1.5 * normal(2, 2 * taps, rows, columns)
    arrays = [x, offset, weight, bias]
    if masked:
        arrays.append(normal(2, taps, rows, columns))

    def ours(x, offset, weight, bias, mask=None):
        return F.deform_conv2d(x, offset, weight, mask, bias, **options)

    def theirs(x, offset, weight, bias, mask=None):
        renamed = {
            "groups" if name == "weight_groups" else name: option
            for name, option in options.items()
        }
        return deformed(x, offset, weight, mask, bias, **renamed)

    compare(ours, theirs, *arrays)


@pytest.mark.parametrize("groups", [1, 2])
def test_windows_that_are_not_moved_give_a_convolution(groups):
    x, weight, bias = normal(2, 4, 6, 5), normal(6, 4 // groups, 3, 2), normal(6)
    options = {"stride": (2, 1), "padding": 1, "dilation": (1, 2)}
    expected = functional.conv2d(
        *map(torch.from_numpy, (x, weight, bias)), groups=groups, **options
    )
    offset = burn.zeros((2, 12, *expected.shape[2:]), dtype="float64", device=CPU)
    tensors = [burn.asarray(tensor, device=CPU) for tensor in (x, weight, bias)]
    output = F.deform_conv2d(
        tensors[0], offset, tensors[1], None, tensors[2], weight_groups=groups, **options
    )
    assert_close(output.numpy(), expected.numpy())


def test_offsets_that_are_no_numbers():
    x = burn.ones((1, 1, 2, 2), device=CPU)
    weight = burn.ones((1, 1, 1, 1), device=CPU)
    offset = np.zeros((1, 2, 2, 2), np.float32)
    offset[0, 0] = [[np.nan, np.inf], [-np.inf, 1e30]]
    output = F.deform_conv2d(x, burn.asarray(offset, device=CPU), weight).numpy()
    assert_close(output[0, 0], [[np.nan, 0.0], [0.0, 0.0]])


X, W = ones(2, 4, 5, 6), ones(6, 4, 3, 3)

REFUSED = {
    "offset": (
        lambda: F.deform_conv2d(X, ones(2, 9, 3, 4), W),
        burn.ShapeError,
        r"offset has shape \(2, 9, 3, 4\) where \(2, 18, 3, 4\) is needed",
    ),
    "mask": (
        lambda: F.deform_conv2d(X, ones(2, 18, 3, 4), W, ones(2, 9, 3, 3)),
        burn.ShapeError,
        "mask has shape",
    ),
    "offset groups": (
        lambda: F.deform_conv2d(X, ones(2, 54, 3, 4), W, offset_groups=3),
        burn.ShapeError,
        "4 channels are no multiple of 3 offset_groups",
    ),
    "no offset groups": (
        lambda: F.deform_conv2d(X, ones(2, 18, 3, 4), W, offset_groups=0),
        burn.ArgumentError,
        "offset_groups",
    ),
    "deformed, unbatched": (
        lambda: F.deform_conv2d(ones(4, 5, 6), ones(2, 18, 3, 4), W),
        burn.ShapeError,
        "deform_conv2d: .*batch",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_says_why(case):
    call, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        call()
