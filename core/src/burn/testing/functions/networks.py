"""Calls of functions of networks: activations, losses, convolutions, pooling, norms, cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from burn.errors import ArgumentError
from burn.testing.arrays import booleans, floats
from burn.testing.function_samples import FunctionCall, WrongCall, call, function_calls, wrong

_X: Final = floats(2, 3)
_OTHER: Final = floats(2, 3, phase=0.7)
_IMAGES: Final = floats(2, 4, 5, 6)
_CLASSES: Final = np.array([2, 0])
_SIGNS: Final = np.array([1.0, -1.0])
_PROBABILITIES: Final = floats(2, 3, low=0.1, high=0.9)
_LOG_PROBABILITIES: Final = floats(2, 3, low=-3.0, high=-0.1)
_SPATIAL: Final = {1: floats(2, 4, 9), 2: _IMAGES, 3: floats(1, 4, 4, 5, 4)}
"""Tensors with two axes and as many more as the key says."""


def _functional(
    name: str,
    *samples: FunctionCall,
    errors: Sequence[WrongCall] = (),
    transforms: bool = True,
) -> None:
    function_calls(f"nn.functional.{name}", *samples, errors=errors, transforms=transforms)


for _name in (
    *("celu", "elu", "gelu", "hard_shrink", "hard_sigmoid", "hard_swish", "hardtanh"),
    *("leaky_relu", "log_sigmoid", "log_softmax", "mish", "quiet_softmax", "relu", "relu6"),
    *("selu", "shrink", "silu", "soft_shrink", "softmax", "softmin", "softplus", "softsign"),
    *("tanhshrink", "thresholded_relu"),
):
    _functional(_name, call("a matrix", _X))
_functional("glu", call("halves", floats(2, 4)))
_functional("prelu", call("a slope each", _X, floats(3)))
_functional("threshold", call("both", _X, threshold=0.1, value=20.0))

for _name in ("l1_loss", "mse_loss", "huber_loss", "smooth_l1_loss", "poisson_nll_loss"):
    _functional(_name, call("the mean", _X, _OTHER), call("each", _X, _OTHER, reduction="none"))
_functional("lp_loss", call("cubes", _X, _OTHER, 3.0))
_functional("soft_margin_loss", call("signs", _X, np.sign(_OTHER)))
_functional("hinge_embedding_loss", call("signs", _X, np.sign(_OTHER)))
_functional(
    "gaussian_nll_loss",
    call("variances", _X, _OTHER, _PROBABILITIES, full=True),
    call("one variance", _X, _OTHER, 0.5),
)
_functional("kl_div", call("probabilities", _LOG_PROBABILITIES, _PROBABILITIES))
_functional(
    "binary_cross_entropy",
    call("targets", _PROBABILITIES, floats(2, 3, low=0.0, high=1.0)),
    call("weights", _PROBABILITIES, _PROBABILITIES[::-1], weight=floats(3, low=0.5)),
)
_functional(
    "binary_cross_entropy_with_logits",
    call(
        "weights",
        _X,
        floats(2, 3, low=0.0, high=1.0),
        weight=floats(2, 3, low=0.5),
        pos_weight=floats(3, low=1.0),
    ),
)
_functional(
    "cross_entropy",
    call("classes", _X, _CLASSES),
    call("smoothed", _X, _CLASSES, label_smoothing=0.1, reduction="sum"),
    call("weights", _X, _CLASSES, weight=floats(3, low=0.5), ignore_index=0),
)
_functional(
    "nll_loss",
    call("classes", _LOG_PROBABILITIES, _CLASSES),
    call("weights", _LOG_PROBABILITIES, _CLASSES, weight=floats(3, low=0.5), ignore_index=0),
)
_functional("multi_margin_loss", call("classes", _X, _CLASSES, p=2, weight=floats(3, low=0.5)))
_functional(
    "cosine_embedding_loss",
    call("signs", _X, _OTHER, _SIGNS, margin=0.2),
    call("squares beyond float16", _X * 300, _OTHER * 300, _SIGNS),
)
_functional("margin_ranking_loss", call("signs", floats(2), floats(2, phase=0.7), _SIGNS))
_functional("triplet_margin_loss", call("rows", _X, _OTHER, floats(2, 3, phase=0.1), swap=True))
_functional("pairwise_distance", call("rows", _X, _OTHER, 1.0, keepdims=True))
_functional(
    "ctc_loss",
    call(
        "two",
        np.log(floats(6, 2, 4, low=0.1, high=0.5)),
        np.array([[1, 2], [3, 1]]),
        np.array([6, 5]),
        np.array([2, 1]),
    ),
)

for _axes, _x in _SPATIAL.items():
    _weight = floats(6, 2, *[3] * _axes)
    _functional(
        f"conv{_axes}d",
        call("groups", _x, _weight, floats(6), stride=2, padding=1, groups=2),
        call("dilated", _x, floats(3, 4, *[2] * _axes), dilation=2),
    )
    _functional(
        f"conv_transpose{_axes}d",
        call("a stride", _x, floats(4, 3, *[3] * _axes), stride=2, output_padding=1),
        call("groups", _x, floats(4, 3, *[2] * _axes), floats(6), groups=2, padding=1),
    )
    _functional(f"adaptive_avg_pool{_axes}d", call("to two", _x, 2))
    _functional(f"adaptive_max_pool{_axes}d", call("to two", _x, 2))
    _functional(
        f"avg_pool{_axes}d",
        call("twos", _x, 2),
        call("padded", _x, 3, 2, 1),
        call("shorter than windows", floats(1, 2, *(1, 3, 1)[:_axes]), 3, 2, 1),
        call("a divisor", _x, 2, 1, ceil_mode=True, divisor_override=3),
        call("dilated", floats(1, 2, *(5, 4, 3)[:_axes]), 2, 1, 1, dilation=2),
        errors=[wrong("divided by 0", ArgumentError, _x, 2, divisor_override=0)],
    )
    for _name in (f"max_pool{_axes}d", f"max_pool{_axes}d_with_indices"):
        _functional(_name, call("twos", _x, 2), call("padded", _x, 3, 2, 1))
    _functional(f"dropout{_axes}d", call("half", _x, 0.5), transforms=False)
_functional("dropout", call("half", _X), call("none", _X, training=False), transforms=False)
_functional("alpha_dropout", call("half", _X), transforms=False)
_functional(
    "deform_conv2d",
    call("a kernel", _IMAGES, floats(2, 18, 3, 4, low=-0.4, high=0.4), floats(2, 4, 3, 3)),
    call(
        "a mask and a bias",
        _IMAGES,
        floats(2, 18, 3, 4, low=-0.4, high=0.4),
        floats(2, 4, 3, 3),
        floats(2, 9, 3, 4, low=0.1, high=0.9),
        floats(2),
    ),
)
_functional("unfold4d", call("windows", _IMAGES, 2, stride=2))
_functional("fold4d", call("windows", floats(2, 16, 6), (4, 6), 2, stride=2))
_functional(
    "interpolate",
    call("a size", _IMAGES, (7, 4)),
    call("twice", _IMAGES, scale_factor=2),
    call("smoothed", _IMAGES, (2, 3), mode="bilinear", antialias=True),
    call("smoothed by cubes", _IMAGES, scale_factor=0.7, mode="cubic", antialias=True),
    errors=[wrong("no mode that smooths", ArgumentError, _IMAGES, (2, 3), antialias=True)],
)
_functional("affine_grid_2d", call("a grid", floats(2, 2, 3), (2, 4, 3, 5)))
_functional("affine_grid_3d", call("a grid", floats(2, 3, 4), (2, 1, 2, 1, 3)))
_functional(
    "grid_sample_3d",
    call("a grid", floats(1, 2, 3, 2, 3), floats(1, 1, 2, 2, 3, low=-0.9, high=0.9)),
)
_functional("grid_sample_2d", call("a grid", _IMAGES, floats(2, 3, 3, 2, low=-0.9, high=0.9)))
_functional("pixel_shuffle", call("twos", _IMAGES, 2))
_functional("pixel_unshuffle", call("twos", floats(2, 3, 4, 6), 2))
_functional(
    "local_response_norm",
    call("three", _IMAGES, 3),
    call("squares beyond float16", _IMAGES * 300, 3, alpha=0.1),
)

_functional("linear", call("a bias", _X, floats(3, 4), floats(4)), call("none", _X, floats(3, 4)))
_functional("embedding", call("rows", floats(5, 3), _CLASSES))
_functional("layer_norm", call("weights", _X, floats(3), floats(3)), call("rows", _X))
_functional("rms_norm", call("weights", _X, floats(3)))
_functional("group_norm", call("two groups", _IMAGES, 2, floats(4), floats(4)))
_functional("instance_norm", call("weights", _IMAGES, floats(4), floats(4)))
_functional(
    "batch_norm", call("statistics", _X, floats(3), floats(3, low=0.5), floats(3), floats(3))
)
_functional(
    "batch_norm_training",
    call("statistics", _X, floats(3), floats(3, low=0.5)),
    call("weights", _X, None, None, floats(3), floats(3, phase=0.4)),
)
_functional(
    "attention",
    call("causal", *[floats(1, 2, 3, 4, phase=0.1 * k) for k in range(3)], is_causal=True),
    call("a mask", *[floats(1, 2, 3, 4, phase=0.1 * k) for k in range(3)], booleans(3, 3)),
    call(
        "a bias",
        *[floats(1, 2, 3, 4, phase=0.1 * k) for k in range(3)],
        bias=floats(1, 2, 3, 3),
        scale=0.5,
        softcap=2.0,
    ),
)
_functional(
    "rotary_embedding", call("angles", floats(1, 2, 3, 4), floats(3, 2), floats(3, 2, phase=0.7))
)
_functional(
    "rnn",
    call("a cell", floats(4, 2, 3), floats(2, 5), floats(5, 3), floats(5, 5), floats(5), floats(5)),
)
_functional(
    "gru",
    call("a cell", floats(4, 2, 3), floats(2, 5), floats(15, 3), floats(15, 5)),
    call("biases", floats(2, 1, 3), floats(1, 2), floats(6, 3), floats(6, 2), floats(6), floats(6)),
)
_functional(
    "lstm",
    call("a cell", floats(4, 2, 3), (floats(2, 5), floats(2, 5)), floats(20, 3), floats(20, 5)),
    call(
        "biases",
        floats(2, 1, 3),
        (floats(1, 2), floats(1, 2)),
        *[floats(8, 3), floats(8, 2), floats(8), floats(8)],
    ),
)

_STATE: Final = [floats(3, phase=0.1 * k) for k in range(5)]
_POSITIVE_STATE: Final = [floats(3, low=0.1, phase=0.1 * k) for k in range(3)]
function_calls("optim.sgd_step", call("momentum", *_STATE[:3], learning_rate=0.1, momentum=0.9))
function_calls("optim.adagrad_step", call("a step", *_STATE[:2], _POSITIVE_STATE[0], step=3))
function_calls("optim.adam_step", call("a step", *_STATE[:3], _POSITIVE_STATE[0], step=3))
function_calls("optim.amsgrad_step", call("a step", *_STATE[:3], *_POSITIVE_STATE[:2], step=3))
function_calls("optim.adan_step", call("a step", *_STATE, _POSITIVE_STATE[0], step=3))
function_calls("optim.lion_step", call("a step", *_STATE[:3]))
function_calls(
    "optim.rmsprop_step",
    call("a step", *_STATE[:2], _POSITIVE_STATE[0]),
    call("momentum", *_STATE[:2], _POSITIVE_STATE[0], *_STATE[2:3], floats(3) / 9, momentum=0.9),
)
function_calls("optim.clip_by_value", call("two", [floats(3), _X], 0.5))
function_calls("optim.clip_by_global_norm", call("two", [floats(3), _X], 0.5))
