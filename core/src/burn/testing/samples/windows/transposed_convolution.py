"""Samples of transposed convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn.errors import ArgumentError, ShapeError
from burn.testing.arrays import expanded, floats, reversed_view, strided, transposed
from burn.testing.op_samples import Array, Sample, error, reference, sample
from burn.testing.samples.windows._convolutions import (
    BIAS,
    matrix_of,
    meetings,
    numbers_of,
    product,
)


def _conv_transpose(x: Array, weight: Array, bias: Array | None, **numbers: Any) -> Array:
    lengths = tuple(
        (count - 1) * step - sum(ends) + spread * (taps - 1) + extra + 1
        for count, taps, step, ends, spread, extra in zip(
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
    for window, index, element in meetings(lengths, x.shape[2:], weight.shape[2:], numbers):
        output[element] += product(x[window], matrix_of(weight[index], groups))
    return output if bias is None else output + bias.reshape(-1, *[1] * len(lengths))


def _conv_transpose_terms(
    x: Array, weight: Array, bias: Array | None, **numbers: Any
) -> tuple[Any, Any]:
    magnitude = _conv_transpose(abs(x), abs(weight), None if bias is None else abs(bias), **numbers)
    return weight.size // max(weight.shape[1], 1) + 1, magnitude


def _back(note: str, *operands: Any, axes: int = 2, **changed: Any) -> Sample:
    return sample(note, *operands, **{"output_padding": (0,) * axes, **numbers_of(axes, **changed)})


_BACK = floats(2, 3, 3, 2, phase=0.1)
_Y = floats(2, 2, 3, 4)

reference(
    "conv_transpose",
    samples=[
        _back("images", _Y, _BACK, BIAS),
        _back("without a bias", _Y, _BACK, None),
        _back("padding", _Y, _BACK, BIAS, padding=((1, 1), (1, 2))),
        _back("stride", _Y, _BACK, BIAS, stride=(2, 3)),
        _back("output padding", _Y, _BACK, None, stride=(2, 3), output_padding=(1, 2)),
        _back(
            "stride larger than the kernel", _Y, _BACK, BIAS, stride=(4, 3), output_padding=(3, 0)
        ),
        _back("dilation", _Y, _BACK, None, dilation=(2, 3), padding=((1, 0), (0, 2))),
        _back(
            "everything",
            _Y,
            _BACK,
            BIAS,
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
            BIAS,
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
        _back("1x1 images made larger", floats(3, 2, 1, 1), _BACK, BIAS),
        _back("pointwise", _Y, floats(2, 3, 1, 1, phase=0.1), BIAS),
        _back(
            "more padding than kernel", floats(1, 2, 7, 5), _BACK, None, padding=((3, 3), (2, 1))
        ),
        _back(
            "more padding than kernel, with a stride",
            floats(1, 2, 4, 4),
            _BACK,
            BIAS,
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
        _back("empty batch", floats(0, 2, 3, 4), _BACK, BIAS, stride=(2, 2)),
        _back("no channels", floats(2, 0, 2, 2), floats(0, 2, 2, 2), floats(2)),
        _back("no outputs", floats(2, 2, 2, 2), floats(2, 0, 2, 2), None),
        _back("transposed", transposed(_Y), transposed(_BACK), BIAS),
        _back("strided", strided(_Y), strided(_BACK), strided(BIAS), stride=(2, 1)),
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
            "NaN and infinity reach their own elements",
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
            **numbers_of(output_padding=(0, 0)),
        ),
        error(
            "weight of other rank",
            ShapeError,
            _Y,
            floats(2, 3, 3),
            None,
            **numbers_of(output_padding=(0, 0)),
        ),
        error(
            "other channels",
            ShapeError,
            _Y,
            floats(3, 2, 3, 3),
            None,
            **numbers_of(output_padding=(0, 0)),
        ),
        error(
            "groups of inputs",
            ShapeError,
            _Y,
            _BACK,
            None,
            **numbers_of(output_padding=(0, 0), groups=3),
        ),
        error(
            "no groups",
            ArgumentError,
            _Y,
            _BACK,
            None,
            **numbers_of(output_padding=(0, 0), groups=0),
        ),
        error(
            "bias of other length",
            ShapeError,
            _Y,
            _BACK,
            floats(2),
            **numbers_of(output_padding=(0, 0)),
        ),
        error("bias of one", ShapeError, _Y, _BACK, floats(1), **numbers_of(output_padding=(0, 0))),
        error(
            "nothing is left",
            ShapeError,
            _Y,
            _BACK,
            None,
            **numbers_of(output_padding=(0, 0), padding=((3, 2), (0, 0))),
        ),
        error(
            "output padding of a stride",
            ArgumentError,
            _Y,
            _BACK,
            None,
            **numbers_of(output_padding=(0, 1)),
        ),
        error(
            "negative output padding",
            ArgumentError,
            _Y,
            _BACK,
            None,
            **numbers_of(output_padding=(-1, 0)),
        ),
        error(
            "one output padding", ArgumentError, _Y, _BACK, None, **numbers_of(output_padding=(0,))
        ),
        error(
            "stride 0",
            ArgumentError,
            _Y,
            _BACK,
            None,
            **numbers_of(output_padding=(0, 0), stride=(1, 0)),
        ),
        error(
            "empty spatial axis",
            ShapeError,
            floats(2, 2, 0, 4),
            _BACK,
            None,
            **numbers_of(output_padding=(0, 0)),
        ),
    ],
    terms=_conv_transpose_terms,
)(_conv_transpose)
