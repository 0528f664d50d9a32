"""Samples of convolutions. The references go through all windows and all places in them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from burn.errors import ArgumentError, ShapeError
from burn.testing.arrays import expanded, floats, reversed_view, strided, transposed
from burn.testing.op_samples import Array, Sample, error, reference, sample


def _numbers(axes: int = 2, **changed: Any) -> dict[str, Any]:
    """Attributes of a convolution in which nothing is special but what is said."""
    plain = {"stride": (1,) * axes, "padding": ((0, 0),) * axes, "dilation": (1,) * axes}
    return {**plain, "groups": 1, **changed}


def _meetings(
    lengths: tuple[int, ...],
    counts: tuple[int, ...],
    kernel: tuple[int, ...],
    numbers: dict[str, Any],
) -> Iterator[tuple[Any, Any, Any]]:
    """Each window, each place of the kernel in it, and the element that is there, if one is."""
    for window in itertools.product(*map(range, counts)):
        for place in itertools.product(*map(range, kernel)):
            element = tuple(
                i * step - before + k * spread
                for i, k, step, (before, _), spread in zip(
                    window,
                    place,
                    numbers["stride"],
                    numbers["padding"],
                    numbers["dilation"],
                    strict=True,
                )
            )
            if all(0 <= one < length for one, length in zip(element, lengths, strict=True)):
                everything = (slice(None), slice(None))
                yield (*everything, *window), (*everything, *place), (*everything, *element)


def _matrix(weight: Array, groups: int) -> Array:
    """Weights of one place: from all channels to all outputs, 0 between groups."""
    outputs, inputs = weight.shape
    matrix = np.zeros((outputs, inputs * groups))
    features = outputs // groups
    for output in range(outputs):
        group = output // features
        matrix[output, group * inputs : (group + 1) * inputs] = weight[output]
    return matrix


def _conv(x: Array, weight: Array, bias: Array | None, **numbers: Any) -> Array:
    counts = tuple(
        (length + sum(ends) - spread * (places - 1) - 1) // step + 1
        for length, places, step, ends, spread in zip(
            x.shape[2:],
            weight.shape[2:],
            numbers["stride"],
            numbers["padding"],
            numbers["dilation"],
            strict=True,
        )
    )
    output = np.zeros((x.shape[0], weight.shape[0], *counts))
    for window, place, element in _meetings(x.shape[2:], counts, weight.shape[2:], numbers):
        output[window] += _product(x[element], _matrix(weight[place], numbers["groups"]).T)
    return output if bias is None else output + bias.reshape(-1, *[1] * len(counts))


def _product(rows: Array, matrix: Array) -> Array:
    """Matrix product in which 0 times anything is 0: those are the channels of other groups."""
    terms = np.where(matrix == 0.0, 0.0, rows[:, :, None] * matrix)
    return np.asarray(terms.sum(axis=1))


def _conv_terms(x: Array, weight: Array, bias: Array | None, **numbers: Any) -> tuple[Any, Any]:
    magnitude = _conv(abs(x), abs(weight), None if bias is None else abs(bias), **numbers)
    return math.prod(weight.shape[1:]) + 1, magnitude


_WEIGHT = floats(3, 2, 3, 2, phase=0.1)
_BIAS = floats(3, phase=0.7)

_SHARED: list[Sample] = [
    sample("images", floats(2, 2, 4, 5), _WEIGHT, _BIAS, **_numbers()),
    sample("without a bias", floats(2, 2, 4, 5), _WEIGHT, None, **_numbers()),
    sample("padding", floats(1, 2, 4, 5), _WEIGHT, _BIAS, **_numbers(padding=((1, 1), (2, 2)))),
    sample(
        "padding at one end",
        floats(1, 2, 4, 5),
        _WEIGHT,
        None,
        **_numbers(padding=((0, 2), (1, 0))),
    ),
    sample(
        "stride",
        floats(1, 2, 7, 6),
        _WEIGHT,
        _BIAS,
        **_numbers(stride=(2, 3), padding=((1, 0),) * 2),
    ),
    sample(
        "stride larger than the kernel",
        floats(1, 2, 9, 6),
        _WEIGHT,
        None,
        **_numbers(stride=(5, 3)),
    ),
    sample("dilation", floats(1, 2, 7, 6), _WEIGHT, None, **_numbers(dilation=(2, 3))),
    sample(
        "everything",
        floats(2, 2, 6, 7),
        _WEIGHT,
        _BIAS,
        **_numbers(stride=(2, 1), dilation=(2, 2), padding=((1, 2), (0, 1))),
    ),
    sample(
        "groups", floats(2, 4, 3, 4), floats(6, 2, 2, 2, phase=0.1), floats(6), **_numbers(groups=2)
    ),
    sample(
        "depthwise",
        floats(2, 3, 4, 4),
        floats(3, 1, 3, 3, phase=0.1),
        _BIAS,
        **_numbers(groups=3, padding=((1, 1),) * 2),
    ),
    sample(
        "depthwise, two outputs each",
        floats(2, 2, 4, 5),
        floats(4, 1, 2, 3, phase=0.1),
        None,
        **_numbers(groups=2, padding=((1, 0), (0, 2))),
    ),
    sample(
        "depthwise with a stride",
        floats(1, 2, 5, 5),
        floats(2, 1, 3, 3, phase=0.1),
        None,
        **_numbers(groups=2, stride=(2, 2)),
    ),
    sample("kernel equal to the input", floats(2, 2, 3, 2), _WEIGHT, _BIAS, **_numbers()),
    sample("1x1 images", floats(3, 2, 1, 1), floats(4, 2, 1, 1, phase=0.1), None, **_numbers()),
    sample(
        "1x1 images with padding",
        floats(3, 2, 1, 1),
        _WEIGHT,
        None,
        **_numbers(padding=((1, 1),) * 2),
    ),
    sample("pointwise", floats(2, 3, 3, 4), floats(2, 3, 1, 1, phase=0.1), floats(2), **_numbers()),
    sample(
        "more padding than kernel",
        floats(1, 1, 2, 2),
        floats(1, 1, 2, 1, phase=0.1),
        None,
        **_numbers(padding=((3, 1), (0, 2)), stride=(1, 2)),
    ),
    sample(
        "small images with many channels",
        floats(3, 16, 3, 3),
        floats(4, 16, 3, 3, phase=0.1),
        floats(4),
        **_numbers(padding=((1, 1),) * 2),
    ),
    sample("one axis", floats(2, 2, 6), floats(2, 2, 3, phase=0.1), floats(2), **_numbers(1)),
    sample(
        "three axes",
        floats(1, 2, 3, 4, 3),
        floats(2, 2, 2, 3, 1, phase=0.1),
        floats(2),
        **_numbers(3, stride=(1, 2, 1), padding=((0, 1), (1, 1), (0, 0))),
    ),
    sample(
        "four axes",
        floats(1, 1, 2, 3, 2, 2),
        floats(1, 1, 1, 2, 2, 1, phase=0.1),
        None,
        **_numbers(4),
    ),
    sample("empty batch", floats(0, 2, 4, 5), _WEIGHT, _BIAS, **_numbers()),
    sample("transposed", transposed(floats(2, 2, 4, 5)), transposed(_WEIGHT), _BIAS, **_numbers()),
    sample("strided", strided(floats(2, 2, 4, 5)), strided(_WEIGHT), strided(_BIAS), **_numbers()),
    sample(
        "reversed",
        reversed_view(floats(2, 2, 4, 5)),
        reversed_view(_WEIGHT),
        None,
        **_numbers(padding=((1, 1),) * 2),
    ),
    sample(
        "expanded",
        expanded(floats(4, 1), 2, 2, 4, 5),
        expanded(floats(3, 1, 1, 2, phase=0.1), 3, 2, 3, 2),
        expanded(floats(), 3),
        **_numbers(),
    ),
]

_CONVOLVED = [
    *_SHARED,
    sample(
        "windows that end before the input",
        floats(1, 2, 6, 7),
        _WEIGHT,
        None,
        **_numbers(stride=(4, 4)),
    ),
    sample("no channels", floats(2, 0, 3, 3), floats(2, 0, 2, 2), floats(2), **_numbers()),
    sample("no outputs", floats(2, 2, 3, 3), floats(0, 2, 2, 2), None, **_numbers()),
    sample(
        "ones that 16-bit addition would lose",
        np.ones((1, 500, 1)),
        np.ones((1, 500, 1)),
        None,
        **_numbers(1),
    ),
    sample(
        "NaN and infinity reach their own windows",
        np.where(
            floats(1, 1, 5, 5) > 1.8, np.nan, np.where(floats(1, 1, 5, 5) < -1.8, np.inf, 1.0)
        ),
        np.abs(floats(2, 1, 2, 2)),
        None,
        **_numbers(padding=((1, 1),) * 2),
    ),
]

_X = floats(2, 4, 5, 6)

reference(
    "conv",
    samples=_CONVOLVED,
    errors=[
        error("unbatched", ShapeError, floats(4, 5, 6), floats(6, 4, 3, 3), None, **_numbers()),
        error("weight of other rank", ShapeError, _X, floats(6, 4, 3), None, **_numbers()),
        error("no spatial axes", ShapeError, floats(2, 3), floats(2, 3), None, **_numbers(0)),
        error("other channels", ShapeError, _X, floats(6, 3, 3, 3), None, **_numbers()),
        error("one channel", ShapeError, _X, floats(6, 1, 3, 3), None, **_numbers()),
        error("groups of inputs", ShapeError, _X, floats(6, 1, 3, 3), None, **_numbers(groups=3)),
        error("groups of outputs", ShapeError, _X, floats(5, 2, 3, 3), None, **_numbers(groups=2)),
        error("no groups", ArgumentError, _X, floats(6, 4, 3, 3), None, **_numbers(groups=0)),
        error("bias of other length", ShapeError, _X, floats(6, 4, 3, 3), floats(5), **_numbers()),
        error("bias of one", ShapeError, _X, floats(6, 4, 3, 3), floats(1), **_numbers()),
        error("bias with axes", ShapeError, _X, floats(6, 4, 3, 3), floats(6, 1, 1), **_numbers()),
        error("kernel too long", ShapeError, _X, floats(6, 4, 6, 1), None, **_numbers()),
        error(
            "dilated kernel too long",
            ShapeError,
            _X,
            floats(6, 4, 1, 4),
            None,
            **_numbers(dilation=(1, 2)),
        ),
        error("kernel without places", ArgumentError, _X, floats(6, 4, 0, 3), None, **_numbers()),
        error(
            "empty spatial axis",
            ShapeError,
            floats(2, 4, 0, 6),
            floats(6, 4, 1, 1),
            None,
            **_numbers(),
        ),
        error("stride 0", ArgumentError, _X, floats(6, 4, 3, 3), None, **_numbers(stride=(0, 1))),
        error(
            "dilation 0", ArgumentError, _X, floats(6, 4, 3, 3), None, **_numbers(dilation=(1, 0))
        ),
        error(
            "negative padding",
            ArgumentError,
            _X,
            floats(6, 4, 3, 3),
            None,
            **_numbers(padding=((0, 0), (-1, 0))),
        ),
        error("one stride", ArgumentError, _X, floats(6, 4, 3, 3), None, **_numbers(dilation=(1,))),
        error(
            "too much padding",
            ShapeError,
            _X,
            floats(6, 4, 3, 3),
            None,
            **_numbers(padding=((1 << 61, 1 << 61),) * 2),
        ),
    ],
    terms=_conv_terms,
)(_conv)


def _conv_transpose(x: Array, weight: Array, bias: Array | None, **numbers: Any) -> Array:
    lengths = tuple(
        (count - 1) * step - sum(ends) + spread * (places - 1) + extra + 1
        for count, places, step, ends, spread, extra in zip(
            x.shape[2:],
            weight.shape[2:],
            numbers["stride"],
            numbers["padding"],
            numbers["dilation"],
            numbers["output_padding"],
            strict=True,
        )
    )
    groups = numbers["groups"]
    output = np.zeros((x.shape[0], weight.shape[1] * groups, *lengths))
    for window, place, element in _meetings(lengths, x.shape[2:], weight.shape[2:], numbers):
        output[element] += _product(x[window], _matrix(weight[place], groups))
    return output if bias is None else output + bias.reshape(-1, *[1] * len(lengths))


def _conv_transpose_terms(
    x: Array, weight: Array, bias: Array | None, **numbers: Any
) -> tuple[Any, Any]:
    magnitude = _conv_transpose(abs(x), abs(weight), None if bias is None else abs(bias), **numbers)
    return weight.size // max(weight.shape[1], 1) + 1, magnitude


def _back(note: str, *operands: Any, axes: int = 2, **changed: Any) -> Sample:
    return sample(note, *operands, **{"output_padding": (0,) * axes, **_numbers(axes, **changed)})


_BACK = floats(2, 3, 3, 2, phase=0.1)
_Y = floats(2, 2, 3, 4)

reference(
    "conv_transpose",
    samples=[
        _back("images", _Y, _BACK, _BIAS),
        _back("without a bias", _Y, _BACK, None),
        _back("padding", _Y, _BACK, _BIAS, padding=((1, 1), (1, 2))),
        _back("stride", _Y, _BACK, _BIAS, stride=(2, 3)),
        _back("output padding", _Y, _BACK, None, stride=(2, 3), output_padding=(1, 2)),
        _back(
            "stride larger than the kernel", _Y, _BACK, _BIAS, stride=(4, 3), output_padding=(3, 0)
        ),
        _back("dilation", _Y, _BACK, None, dilation=(2, 3), padding=((1, 0), (0, 2))),
        _back(
            "everything",
            _Y,
            _BACK,
            _BIAS,
            stride=(2, 3),
            dilation=(2, 2),
            padding=((1, 2), (0, 1)),
            output_padding=(1, 1),
        ),
        _back("groups", floats(2, 4, 3, 2), floats(4, 3, 2, 2, phase=0.1), floats(6), groups=2),
        _back(
            "depthwise",
            floats(2, 3, 3, 4),
            floats(3, 1, 3, 3, phase=0.1),
            _BIAS,
            groups=3,
            padding=((1, 1),) * 2,
        ),
        _back(
            "groups with a stride",
            floats(1, 4, 3, 2),
            floats(4, 2, 3, 2, phase=0.1),
            None,
            groups=2,
            stride=(2, 2),
            padding=((1, 0), (0, 0)),
        ),
        _back("1x1 images", floats(3, 2, 1, 1), floats(2, 4, 1, 1, phase=0.1), None),
        _back("1x1 images made larger", floats(3, 2, 1, 1), _BACK, _BIAS),
        _back("pointwise", _Y, floats(2, 3, 1, 1, phase=0.1), _BIAS),
        _back(
            "more padding than kernel", floats(1, 2, 7, 5), _BACK, None, padding=((3, 3), (2, 1))
        ),
        _back(
            "more padding than kernel, with a stride",
            floats(1, 2, 4, 4),
            _BACK,
            _BIAS,
            padding=((4, 3), (0, 5)),
            stride=(3, 2),
        ),
        _back(
            "small images with many channels",
            floats(3, 16, 3, 3),
            floats(16, 4, 3, 3, phase=0.1),
            floats(4),
            padding=((1, 1),) * 2,
        ),
        _back("one axis", floats(2, 2, 4), floats(2, 2, 3, phase=0.1), None, axes=1, stride=(2,)),
        _back(
            "three axes",
            floats(1, 2, 2, 3, 2),
            floats(2, 2, 2, 3, 1, phase=0.1),
            floats(2),
            axes=3,
            stride=(1, 2, 1),
            padding=((0, 1), (1, 1), (0, 0)),
        ),
        _back("empty batch", floats(0, 2, 3, 4), _BACK, _BIAS, stride=(2, 2)),
        _back("no channels", floats(2, 0, 2, 2), floats(0, 2, 2, 2), floats(2)),
        _back("no outputs", floats(2, 2, 2, 2), floats(2, 0, 2, 2), None),
        _back("transposed", transposed(_Y), transposed(_BACK), _BIAS),
        _back("strided", strided(_Y), strided(_BACK), strided(_BIAS), stride=(2, 1)),
        _back("reversed", reversed_view(_Y), reversed_view(_BACK), None),
        _back("expanded", expanded(floats(4), 2, 2, 3, 4), expanded(floats(2), 2, 3, 3, 2), None),
        _back(
            "ones that 16-bit addition would lose",
            np.ones((1, 500, 1)),
            np.ones((500, 1, 1)),
            None,
            axes=1,
        ),
        _back(
            "NaN and infinity reach their own places",
            np.array([[[[1.0, np.nan, 2.0, 1.0], [np.inf, 1.0, 1.0, 1.0]]]]),
            np.abs(floats(1, 2, 2, 2)),
            None,
            stride=(2, 2),
        ),
    ],
    errors=[
        error(
            "unbatched",
            ShapeError,
            floats(2, 3, 4),
            _BACK,
            None,
            **_numbers(output_padding=(0, 0)),
        ),
        error(
            "weight of other rank",
            ShapeError,
            _Y,
            floats(2, 3, 3),
            None,
            **_numbers(output_padding=(0, 0)),
        ),
        error(
            "other channels",
            ShapeError,
            _Y,
            floats(3, 2, 3, 3),
            None,
            **_numbers(output_padding=(0, 0)),
        ),
        error(
            "groups of inputs",
            ShapeError,
            _Y,
            _BACK,
            None,
            **_numbers(output_padding=(0, 0), groups=3),
        ),
        error(
            "no groups", ArgumentError, _Y, _BACK, None, **_numbers(output_padding=(0, 0), groups=0)
        ),
        error(
            "bias of other length",
            ShapeError,
            _Y,
            _BACK,
            floats(2),
            **_numbers(output_padding=(0, 0)),
        ),
        error("bias of one", ShapeError, _Y, _BACK, floats(1), **_numbers(output_padding=(0, 0))),
        error(
            "nothing is left",
            ShapeError,
            _Y,
            _BACK,
            None,
            **_numbers(output_padding=(0, 0), padding=((3, 2), (0, 0))),
        ),
        error(
            "output padding of a stride",
            ArgumentError,
            _Y,
            _BACK,
            None,
            **_numbers(output_padding=(0, 1)),
        ),
        error(
            "negative output padding",
            ArgumentError,
            _Y,
            _BACK,
            None,
            **_numbers(output_padding=(-1, 0)),
        ),
        error(
            "one output padding", ArgumentError, _Y, _BACK, None, **_numbers(output_padding=(0,))
        ),
        error(
            "stride 0",
            ArgumentError,
            _Y,
            _BACK,
            None,
            **_numbers(output_padding=(0, 0), stride=(1, 0)),
        ),
        error(
            "empty spatial axis",
            ShapeError,
            floats(2, 2, 0, 4),
            _BACK,
            None,
            **_numbers(output_padding=(0, 0)),
        ),
    ],
    terms=_conv_transpose_terms,
)(_conv_transpose)


def _conv_weight_grad(x: Array, g: Array, *, kernel_size: tuple[int, ...], **numbers: Any) -> Array:
    groups = numbers["groups"]
    inputs, features = x.shape[1] // groups, g.shape[1] // groups
    gradient = np.zeros((g.shape[1], inputs, *kernel_size))
    for window, place, element in _meetings(x.shape[2:], g.shape[2:], kernel_size, numbers):
        products = (g[window][:, :, None] * x[element][:, None, :]).sum(axis=0)
        for output in range(g.shape[1]):
            group = output // features
            gradient[(output, *place[1:])] += products[
                output, group * inputs : (group + 1) * inputs
            ]
    return gradient


def _conv_weight_grad_terms(x: Array, g: Array, **attributes: Any) -> tuple[Any, Any]:
    count = max(g.size // max(g.shape[1], 1), 1)
    return count, _conv_weight_grad(abs(x), abs(g), **attributes)


def _of_weight(one: Sample) -> Sample:
    """A sample of `conv` as one of its gradient: what it gives takes the place of the gradient."""
    x, weight, _ = one.operands
    output = _conv(x, weight, None, **one.attributes)
    g = floats(*output.shape, phase=0.4)
    views = {"transposed": transposed, "strided": strided, "reversed": reversed_view}
    view = views.get(one.note, np.asarray)
    return sample(one.note, x, view(g), kernel_size=weight.shape[2:], **one.attributes)


reference(
    "conv_weight_grad",
    samples=[
        *[_of_weight(one) for one in _SHARED],
        sample(
            "ones that 16-bit addition would lose",
            np.ones((1, 1, 500)),
            np.ones((1, 1, 500)),
            kernel_size=(1,),
            **_numbers(1),
        ),
        sample(
            "no channels", floats(2, 0, 3, 3), floats(2, 2, 2, 2), kernel_size=(2, 2), **_numbers()
        ),
    ],
    errors=[
        error(
            "windows that there are not",
            ShapeError,
            _X,
            floats(2, 3, 3, 3),
            kernel_size=(3, 3),
            **_numbers(),
        ),
        error(
            "another batch", ShapeError, _X, floats(1, 3, 3, 4), kernel_size=(3, 3), **_numbers()
        ),
        error("another rank", ShapeError, _X, floats(2, 3, 3), kernel_size=(3, 3), **_numbers()),
        error(
            "without channels", ShapeError, floats(2), floats(2), kernel_size=(3, 3), **_numbers()
        ),
        error(
            "groups of outputs",
            ShapeError,
            _X,
            floats(2, 3, 3, 4),
            kernel_size=(3, 3),
            **_numbers(groups=2),
        ),
        error(
            "kernel of one axis", ShapeError, _X, floats(2, 3, 3, 4), kernel_size=(3,), **_numbers()
        ),
    ],
    terms=_conv_weight_grad_terms,
)(_conv_weight_grad)
