"""NumPy scalars count as Python numbers in every public function, on every device."""

import inspect
import operator
import random
import re
import types

import numpy as np
import pytest

import burn
from nearness import Near

BACKENDS = ("cpu", "cuda", "opencl", "torch")
DEVICES = [device for device in burn.Device.enumerate() if device.backend_name in BACKENDS]


def values(*shape, integers=False):
    numbers = np.arange(int(np.prod(shape))).reshape(shape) * 7 % 11
    return numbers if integers else ((numbers - 4) / 4).astype(np.float32)


X, Y, ROW = values(3, 4), values(3, 4) + np.float32(0.5), values(5)
SQUARE = values(3, 3) + 3 * np.eye(3, dtype=np.float32)
POSITIVE = np.abs(X) + np.float32(0.5)
STEPS, IMAGE, SPACE = values(1, 2, 6), values(1, 2, 5, 6), values(1, 2, 4, 4, 5)
MASK = X > 0
CHANNELS = np.ones(2, np.float32)
INDICES = np.array([[0, 2, 1, 0]])
LABELS = np.array([1, 0, 3])
STATE = (values(1, 2),)
LOGS = np.log(values(4, 1, 3) + np.float32(2))


def call(*arguments, **keywords):
    return arguments, keywords


REDUCED = call(X, axis=1, keepdims=True)
POOLED = {"ceil_mode": False}
NORMED = {"epsilon": 0.5}
STEPPED = {"epsilon": 0.25, "weight_decay": 0.5}
ADAM = {"learning_rate": 0.5, "beta1": 0.5, "beta2": 0.75, **STEPPED}


def pooled(x, rank, **options):
    sizes = {"kernel_size": 2, "stride": (1,) * rank, "padding": (1,) * rank}
    return [call(x, **sizes, **options), call(x, (2,) * rank, 1, 1, **options)]


def convolved(x, transposed=False):
    rank = x.ndim - 2
    weight = np.ones((2, 1) + (2,) * rank, np.float32)
    padding = 1 if transposed else ((1, 0),) * rank
    options = {"output_padding": 0} if transposed else {}
    return [
        call(x, weight, stride=(1,) * rank, padding=padding, dilation=1, groups=2, **options),
        call(x, weight, stride=2, padding=1, dilation=(1,) * rank, groups=2),
    ]


BINARY = [
    *["add", "atan2", "copysign", "divide", "equal", "floor_divide", "fmod", "greater"],
    *["fmax", "fmin"],
    *["greater_equal", "hypot", "less", "less_equal", "logaddexp", "maximum", "minimum"],
    *["multiply", "nextafter", "not_equal", "pow", "remainder", "subtract"],
]
BITWISE = [f"bitwise_{name}" for name in ("and", "or", "xor", "left_shift", "right_shift")]

CALLS = {
    **dict.fromkeys(["all", "any", "argmax", "argmin", "count_nonzero", "max", "max_abs"], REDUCED),
    **dict.fromkeys(["max_with_indices", "mean", "median", "median_with_indices"], REDUCED),
    **dict.fromkeys(["min", "min_with_indices", "mode", "prod", "ptp"], REDUCED),
    **dict.fromkeys(
        [f"nan{name}" for name in ("argmax", "argmin", "max", "mean", "median", "min")], REDUCED
    ),
    **dict.fromkeys(["nanprod", "nansum"], call(X, axis=(0, 1), keepdims=True)),
    **dict.fromkeys(["nanstd", "nanvar"], call(X, axis=0, correction=0.5, keepdims=True)),
    "nanquantile": [call(X, 0.25, axis=1, keepdims=True), call(X, [0.5, 1])],
    "quantile": [call(X, 0.25, axis=1, keepdims=True), call(X, [0.5, 1])],
    "kthvalue": call(X, 2, axis=1, keepdims=True),
    "histogramdd": call(
        X[:, :2], (2, 3), range=((-1.0, 1.0), (-2.0, 1.0)), density=True, weights=ROW[:3]
    ),
    "multigammaln": call(POSITIVE + np.float32(1), 2),
    "vander": call(ROW, 3, increasing=True),
    "histogram": call(X, 3, range=(-1.0, 1.0), density=True),
    "bincount": call(LABELS, minlength=6),
    "bucketize": [call(X, [0.0, 0.5], right=True), call(0.25, ROW)],
    "corrcoef": call(X, rowvar=False),
    "unique": call(
        X, axis=0, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    ),
    "unique_consecutive": call(X, axis=0, return_inverse=True, return_counts=True),
    "global_norm": call(X, ord=1),
    "sum": [REDUCED, call(X, axis=(0, 1), keepdims=True)],
    "std": call(X, axis=(0,), correction=1, keepdims=True),
    "var": call(X, axis=0, correction=0.5, keepdims=True),
    "var_mean": call(X, axis=0, correction=1.0, keepdims=False),
    "cov": call(X, correction=1, rowvar=False),
    "cummax": call(X, axis=1),
    "cummin": call(X, axis=1),
    "cumulative_sum": call(X, axis=1, include_initial=True),
    "cumulative_prod": call(X, axis=1, include_initial=True),
    "diff": call(X, axis=1, n=2),
    **dict.fromkeys(BINARY, call(X, 0.5)),
    **dict.fromkeys(BITWISE, call(INDICES, 1)),
    "allclose": call(X, X, rtol=0.5, atol=0.5, equal_nan=True),
    "isclose": call(X, 0.5, rtol=0.5, atol=0.25, equal_nan=True),
    "isin": [call(INDICES, 2, invert=True), call(2, INDICES, invert=False)],
    "logical_and": [call(MASK, True), call(0, MASK)],
    "logical_or": [call(MASK, True), call(0, MASK)],
    "logical_xor": [call(MASK, True), call(0, MASK)],
    **dict.fromkeys(["heaviside", "trunc_divide", "xlogy"], call(X, 0.5)),
    "lerp": [call(X, 0.5, 0.25), call(X, 2, X), call(0.5, X, 1)],
    "nan_to_num": call(X, nan=0.5, posinf=1.5, neginf=-1),
    "logit": call(POSITIVE, epsilon=0.25),
    "logsumexp": REDUCED,
    "logcumsumexp": call(X, axis=1),
    "polygamma": call(1, POSITIVE),
    "where": [call(MASK, X, 0.5), call(MASK, 2, X)],
    "clip": [call(X, -0.5, 0.5), call(X, 0, 1), call(X, min=-0.5, max=0.5)],
    "mask_fill": call(X, MASK, 0.5),
    "put_along_axis": call(X, INDICES, 0.5, axis=0),
    "scatter": call(X, INDICES, 0.5, axis=0, update="add", include_self=False),
    "scatter_add": call(X, INDICES, 0.5, axis=0),
    "gather": call(X, INDICES, axis=0),
    "gather_nd": call(X, LABELS.reshape(3, 1), batch_dims=1),
    "select_add": call(X, LABELS[:1], Y[:1], axis=0),
    "select_assign": call(X, LABELS[:1], Y[:1], axis=0),
    "searchsorted": call(np.sort(ROW), 0.5),
    "take": call(X, LABELS, axis=1),
    "take_along_axis": call(X, INDICES, axis=0),
    "narrow": call(X, 1, 2, axis=1),
    "sort": call(X, axis=0, descending=True, stable=True),
    "argsort": call(X, axis=0, descending=True, stable=True),
    "sort_with_indices": call(X, axis=0, descending=True),
    "topk": call(X, 2, axis=1, largest=False),
    "argtopk": call(X, 2, axis=1, largest=False),
    # Creation.
    "arange": [call(1, 9, 2), call(0.5, 4.0, 0.5)],
    "asarray": call(X, copy=True),
    "from_dlpack": call(X, copy=True),
    "astype": call(X, burn.float32, copy=False),
    "empty": [call(3), call((2, 3))],
    "eye": call(3, 4, k=1),
    "full": [call((2, 3), 0.5), call(2, 3), call(2, True), call(2, 1.5 + 1j)],
    "full_like": [call(X, 2), call(X, 0.5)],
    "linspace": call(0.0, 2.0, 5, endpoint=False),
    **{name: call(X, Y, dx=0.5, axis=0) for name in ("trapezoid", "cumulative_trapezoid")},
    "logspace": call(0.0, 2.0, 5, base=2.5, endpoint=False),
    "geomspace": call(0.5, 2.0, 5, endpoint=False),
    "ones": [call(3), call((2, 3))],
    "zeros": [call(3), call((2, 3))],
    "cartesian_grid": [call(3), call((2, 3))],
    "diag_mask": call((2, 3), k=1),
    "tril_mask": call((2, 3), k=1),
    "triu_mask": call((2, 3), k=1),
    "tril_indices": call(3, k=1, m=4),
    "triu_indices": call(3, k=1, m=4),
    "tril": call(X, k=1),
    "triu": call(X, k=1),
    "one_hot": call(LABELS, 4, axis=0),
    "one_hot_fill": call(LABELS, 4, 0.5, 2, axis=0),
    "result_type": [call(burn.int32, 2), call(burn.int32, 0.5), call(burn.bool, True)],
    # Layout.
    "broadcast_shapes": call((2, 1), (1, 3)),
    "broadcast_to": call(ROW, (2, 5)),
    "chunk": call(X, 2, axis=1),
    "concat": call([X, Y], axis=1),
    "stack": call([X, Y], axis=1),
    "flatten": call(IMAGE, start_axis=1, end_axis=2),
    "rot90": call(X, k=1, axes=(1, 0)),
    "meshgrid": call(ROW, ROW, sparse=True),
    "expand_dims": [call(X, axis=1), call(X, axis=(0, 1))],
    "squeeze": [call(STEPS, axis=0), call(STEPS, axis=(0,))],
    "flip": [call(X, axis=0), call(X, axis=(0, 1))],
    "moveaxis": [call(IMAGE, 0, 2), call(IMAGE, (0, 1), (2, 3))],
    "permute_dims": call(IMAGE, (3, 0, 1, 2)),
    "transpose": call(IMAGE, (3, 0, 1, 2)),
    "swapaxes": call(IMAGE, 1, 3),
    "reshape": [call(X, (4, 3), copy=False), call(X, 12), call(X, (2, -1))],
    "repeat": [call(X, 2, axis=1), call(X, [1, 2, 0], axis=0)],
    "roll": [call(X, 1, axis=1), call(X, (1, -2), axis=(0, 1))],
    "split": [call(X, 2, axis=1), call(X, [1, 3], axis=1)],
    "split_with_sizes": call(X, [1, 3], axis=1),
    "tile": [call(X, 2), call(X, (2, 1))],
    "unstack": call(X, axis=1),
    "pad": [call(X, ((1, 0), (0, 2)), constant_values=0.5), call(X, 1, constant_values=2)],
    "tensordot": [call(X, X, axes=2), call(X, X, axes=((0, 1), (0, 1)))],
    "vecdot": call(X, Y, axis=0),
    "unfold": call(X, 2, axis=1, step=2),
    "nn.functional.unfold4d": call(IMAGE, 2, stride=(1, 2), padding=1, dilation=1),
    "nn.functional.fold4d": call(values(1, 8, 12), (4, 5), 2, stride=1, padding=(0, 0), dilation=1),
    # Networks.
    **{
        f"nn.functional.{name}": call(X, axis=0)
        for name in ("softmax", "softmin", "log_softmax", "quiet_softmax")
    },
    "nn.functional.glu": call(X, axis=1),
    **{f"nn.functional.{name}": call(X, alpha=0.5) for name in ("celu", "elu", "thresholded_relu")},
    "nn.functional.hard_shrink": call(X, lambd=0.25),
    "nn.functional.soft_shrink": call(X, lambd=0.25),
    "nn.functional.shrink": call(X, lambd=0.25, bias=0.5),
    "nn.functional.hard_sigmoid": call(X, alpha=0.25, beta=0.5),
    "nn.functional.hardtanh": call(X, low=-0.5, high=1),
    "nn.functional.leaky_relu": call(X, negative_slope=0.5),
    "nn.functional.softplus": call(X, beta=2),
    "nn.functional.threshold": call(X, threshold=0.5, value=2),
    "nn.functional.huber_loss": call(X, Y, delta=0.25),
    "nn.functional.smooth_l1_loss": call(X, Y, beta=0.25),
    "nn.functional.lp_loss": call(X, Y, 3),
    "nn.functional.cosine_embedding_loss": call(X, Y, LABELS, margin=0.25),
    "nn.functional.gaussian_nll_loss": [
        call(X, Y, POSITIVE, full=True, eps=0.25),
        call(X, Y, 0.5),
    ],
    "nn.functional.hinge_embedding_loss": call(X, Y, margin=0.25),
    "nn.functional.margin_ranking_loss": call(X, Y, Y, margin=0.25),
    "nn.functional.multi_margin_loss": call(X, LABELS, p=2, margin=0.25),
    "nn.functional.pairwise_distance": call(X, Y, 3, axis=0, eps=0.25, keepdims=True),
    "nn.functional.poisson_nll_loss": call(POSITIVE, Y, log_input=False, full=True, eps=0.25),
    "nn.functional.triplet_margin_loss": call(X, Y, -X, margin=0.25, p=3, eps=0.5, swap=True),
    "nn.functional.local_response_norm": call(IMAGE, 2, alpha=0.5, beta=0.5, k=2),
    "nn.functional.pixel_shuffle": call(values(1, 4, 2, 3), 2),
    "nn.functional.pixel_unshuffle": call(values(1, 1, 4, 6), 2),
    "nn.functional.kl_div": call(-POSITIVE, POSITIVE, log_target=False),
    "nn.functional.cross_entropy": call(X, LABELS, axis=1, label_smoothing=0.25, ignore_index=1),
    "nn.functional.nll_loss": call(X, LABELS, axis=1, ignore_index=1),
    "nn.functional.ctc_loss": call(
        LOGS, np.array([[1, 2]]), np.array([4]), np.array([2]), blank=0, zero_infinity=True
    ),
    "nn.functional.linear": call(X, X, transposed=True),
    "nn.functional.rnn": call(values(2, 1, 3), *STATE, values(2, 3), values(2, 2), reverse=True),
    "nn.functional.lstm": call(
        values(2, 1, 3), STATE * 2, values(8, 3), values(8, 2), reverse=True
    ),
    "nn.functional.gru": call(
        values(2, 1, 3), *STATE, values(6, 3), values(6, 2), reset_after=False, reverse=True
    ),
    "nn.functional.rotary_embedding": call(X, values(3, 1), values(3, 1), interleaved=True),
    **{
        f"nn.functional.{name}": call(IMAGE, 0.25, training=True)
        for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout")
    },
    "nn.functional.attention": call(
        *[values(1, 1, 3, 4)] * 3, scale=0.5, softcap=2.0, is_causal=True
    ),
    "nn.functional.batch_norm": call(IMAGE, CHANNELS, CHANNELS, **NORMED),
    "nn.functional.batch_norm_training": call(IMAGE, CHANNELS, CHANNELS, momentum=0.25, **NORMED),
    "nn.functional.group_norm": call(IMAGE, 2, **NORMED),
    "nn.functional.instance_norm": call(IMAGE, **NORMED),
    "nn.functional.layer_norm": [call(X, axis=-1, **NORMED), call(X, axis=(0, 1), **NORMED)],
    "nn.functional.rms_norm": call(X, axis=(1,), **NORMED),
    "optim.adagrad_step": call(
        X, X, POSITIVE, learning_rate_decay=0.5, step=2, learning_rate=0.5, **STEPPED
    ),
    "optim.adam_step": call(*[X] * 3, POSITIVE, step=2, decoupled=False, **ADAM),
    "optim.adan_step": call(*[X] * 5, POSITIVE, step=2, beta3=0.5, proximal=False, **ADAM),
    "optim.amsgrad_step": call(*[X] * 3, POSITIVE, POSITIVE, step=2, decoupled=False, **ADAM),
    "optim.clip_by_global_norm": call([X, Y], 0.5),
    "optim.clip_by_value": call(X, 0.5),
    "optim.lion_step": call(X, X, X, learning_rate=0.5, beta1=0.5, beta2=0.75, weight_decay=0.5),
    "optim.rmsprop_step": call(
        X, X, POSITIVE, X, learning_rate=0.5, alpha=0.5, momentum=0.5, **STEPPED
    ),
    "optim.sgd_step": call(
        X, X, X, learning_rate=0.5, momentum=0.5, dampening=0.5, weight_decay=0.25, nesterov=True
    ),
    **{
        f"nn.functional.adaptive_{kind}_pool{rank}d": call(x, size)
        for kind in ("avg", "max")
        for rank, (x, size) in enumerate(((STEPS, 2), (IMAGE, (2, 3)), (SPACE, 2)), 1)
    },
    **{
        f"nn.functional.adaptive_max_pool{rank}d_with_indices": call(x, size)
        for rank, (x, size) in enumerate(((STEPS, 2), (IMAGE, (2, 3)), (SPACE, 2)), 1)
    },
    **{
        f"nn.functional.lp_pool{rank}d": call(x, 2.0, 2, stride=1, ceil_mode=True)
        for rank, x in enumerate((STEPS, IMAGE, SPACE), 1)
    },
    **{
        f"nn.functional.max_unpool{rank}d": call(
            values(1, 1, *[2] * rank),
            np.arange(2**rank).reshape((1, 1, *[2] * rank)),
            2,
            stride=2,
            padding=0,
            output_size=(4,) * rank,
        )
        for rank in (1, 2, 3)
    },
    "nn.functional.rnnt_loss": call(
        values(1, 3, 3, 4),
        np.array([[1, 2]]),
        np.array([3]),
        np.array([2]),
        blank=0,
        fused_log_softmax=True,
    ),
    "nn.functional.sliding_window_mask": call((3, 4), 1, after=1),
    "nn.functional.rrelu": call(X, lower=0.25, upper=0.5, training=False),
    **{
        f"nn.functional.avg_pool{rank}d": pooled(
            x, rank, count_include_pad=False, divisor_override=3, dilation=1, **POOLED
        )
        for rank, x in enumerate((STEPS, IMAGE, SPACE), 1)
    },
    **{
        f"nn.functional.max_pool{rank}d{suffix}": pooled(x, rank, dilation=1, **POOLED)
        for rank, x in enumerate((STEPS, IMAGE, SPACE), 1)
        for suffix in ("", "_with_indices")
    },
    **{
        f"nn.functional.conv{rank}d": convolved(x)
        for rank, x in enumerate((STEPS, IMAGE, SPACE), 1)
    },
    **{
        f"nn.functional.conv_transpose{rank}d": convolved(x, transposed=True)
        for rank, x in enumerate((STEPS, IMAGE, SPACE), 1)
    },
    "nn.functional.deform_conv2d": call(
        IMAGE,
        values(1, 8, 4, 5),
        np.ones((2, 1, 2, 2), np.float32),
        stride=1,
        padding=(0, 0),
        dilation=1,
        weight_groups=2,
        offset_groups=1,
    ),
    "nn.functional.affine_grid_2d": call(values(1, 2, 3), (1, 1, 2, 3), align_corners=True),
    "nn.functional.affine_grid_3d": call(values(1, 3, 4), (1, 1, 2, 3, 2), align_corners=True),
    "nn.functional.grid_sample_3d": call(SPACE, values(1, 2, 1, 2, 3), align_corners=True),
    "nn.functional.grid_sample_2d": call(IMAGE, values(1, 2, 3, 2), align_corners=True),
    "nn.functional.interpolate": [
        call(IMAGE, 3),
        call(IMAGE, size=(3, 7), mode="bilinear", align_corners=True),
        call(IMAGE, scale_factor=(0.5, 2.0), recompute_scale_factor=True),
        call(IMAGE, size=(3, 7), mode="bilinear", antialias=True),
    ],
    # The modules.
    **{f"fft.{name}": call(ROW, n=4, axis=0) for name in ("fft", "ifft", "rfft", "irfft")},
    **{f"fft.{name}": call(ROW, n=4, axis=0) for name in ("hfft", "ihfft")},
    **{f"fft.{name}": call(X, s=(2, 4), axes=(0, 1)) for name in ("fftn", "ifftn", "rfftn")},
    "fft.irfftn": call(X, s=(2, 4), axes=(0, 1)),
    **{f"fft.{name}2": call(X, s=(2, 4), axes=(0, 1)) for name in ("fft", "ifft", "rfft", "irfft")},
    "fft.fftfreq": call(5, d=0.5),
    "fft.rfftfreq": call(5, d=0.5),
    "fft.fftshift": [call(X, axes=1), call(X, axes=(0,))],
    "fft.ifftshift": [call(X, axes=1), call(X, axes=(0,))],
    "linalg.cholesky": call(SQUARE @ SQUARE.T, upper=True),
    "linalg.cosine_similarity": call(X, Y, axis=0, eps=0.5),
    "linalg.cross": call(X, Y, axis=0),
    "linalg.cholesky_solve": call(X, SQUARE, upper=True),
    **{
        f"{prefix}{name}": calls
        for prefix in ("", "linalg.")
        for name, calls in {
            "cdist": call(X, Y, p=1),
            "diag": call(ROW, offset=1),
            "diag_embed": call(X, offset=1, axis1=0, axis2=2),
            "diagonal": call(X, offset=1),
        }.items()
    },
    "linalg.trace": call(X, offset=1),
    "linalg.lu_solve": call(SQUARE, np.array([2, 0, 1]), SQUARE, left=False, adjoint=True),
    "linalg.norm": [call(X, 2, axis=1, keepdims=True), call(X, ord=1, axis=(0, 1))],
    "linalg.lstsq": call(X, X[:, 0], rcond=0.5),
    "linalg.solve_triangular": call(SQUARE, SQUARE, upper=True, left=False, unitriangular=True),
    **{
        f"linalg.{name}_norm": call(X, axis=1, keepdims=True)
        for name in ("l0", "l1", "l2", "max_abs", "min_abs")
    },
    "linalg.lp_norm": call(X, 3, axis=1, keepdims=True),
    "linalg.matrix_norm": [call(X, keepdims=True, ord=1), call(X, keepdims=False, ord=2)],
    "linalg.matrix_power": call(SQUARE, 2),
    "linalg.matrix_rank": call(SQUARE, rtol=0.5),
    "linalg.pinv": call(SQUARE, rtol=0.25),
    "linalg.outer_dim": call(X, Y, axis=1),
    "linalg.svd": call(X, full_matrices=False),
    "linalg.tensordot": call(X, X, axes=2),
    "linalg.vecdot": call(X, Y, axis=0),
    "linalg.vector_norm": [call(X, axis=(0, 1), keepdims=True, ord=1), call(X, axis=0, ord=2.5)],
    "linalg.vector_normalize": call(X, axis=0, ord=3, eps=0.5),
    "random.bernoulli": [call((2, 3), 0.25), call(4, 0.5)],
    "random.categorical": call(POSITIVE, 2),
    "random.choice": [
        call(5, (2, 3), replace=True),
        call(7, 2, replace=False),
        call(X, 2, axis=1),
    ],
    "random.integers": [call((2, 3), 1, 9), call(4, 0, 2)],
    "random.normal": [call((2, 3), 0.5, 2.0), call(4, 1, 2)],
    "random.permutation": call(5),
    "random.seed": call(5),
    "random.truncated_normal": [call((2, 3), 0.5, 2.0, -1.0, 2.5), call(4, 1, 2, -3, 3)],
    "random.uniform": [call((2, 3), 0.5, 2.0), call(4, 1, 2)],
    **{f"signal.{name}_window": call(5, periodic=True) for name in ("blackman", "hamming", "hann")},
    **{
        f"signal.{name}_window": call(5, periodic=True)
        for name in ("bartlett", "cosine", "nuttall")
    },
    "signal.exponential_window": call(5, tau=2.5, periodic=True),
    "signal.gaussian_window": call(5, std=2.5, periodic=True),
    "signal.general_cosine_window": call(5, weights=[0.5, 0.25], periodic=True),
    "signal.general_hamming_window": call(5, alpha=0.75, periodic=True),
    "signal.kaiser_window": call(5, beta=2.5, periodic=True),
    "signal.cfft": call(ROW, ROW, n=4, axis=0),
    "signal.icfft": call(ROW, ROW, n=4, axis=0),
    "signal.rfft": call(ROW, n=4, axis=0),
    "signal.irfft": call(ROW, ROW, n=4, axis=0),
    "signal.stft": call(
        values(1, 16),
        n_fft=4,
        hop_length=2,
        win_length=4,
        center=True,
        normalized=True,
        onesided=True,
    ),
    "signal.istft": call(
        values(1, 3, 9),
        values(1, 3, 9),
        n_fft=4,
        hop_length=2,
        win_length=4,
        center=True,
        normalized=True,
        onesided=True,
        length=16,
    ),
}
"""Calls of every public function that takes numbers. Arrays stand for tensors on the device."""

NUMBER = re.compile(
    r"\b(int|float|bool|complex|Scalar|RealScalar|Shape|Axis|PerAxis|Padding|NamedPadding|PadWidth"
    r"|Operand|MatrixOrder|OutputSize)\b"
)


def functions():
    """Name, function and parameters that may be numbers, of all public functions with any."""
    names = ("fft", "linalg", "optim", "random", "signal")
    modules = {f"{name}.": getattr(burn, name) for name in names}
    modules["nn.functional."] = burn.nn.functional
    for prefix, module in {"": burn, **modules}.items():
        for name in dir(module):
            function = getattr(module, name)
            if not isinstance(function, types.FunctionType) or name.startswith("_"):
                continue
            elsewhere = ("burn.transforms.", "burn.profiling.")  # see their own tests
            if function.__module__.startswith(elsewhere):
                continue
            parameters = inspect.signature(function).parameters.values()
            numbers = [
                parameter.name
                for parameter in parameters
                if NUMBER.search(str(parameter.annotation))
            ]
            if numbers:
                yield prefix + name, function, numbers


FUNCTIONS = {name: (function, numbers) for name, function, numbers in functions()}


def variants(name):
    found = CALLS[name]
    return found if isinstance(found, list) else [found]


def test_every_number_of_every_public_function_is_tried():
    assert set(CALLS) == set(FUNCTIONS)
    for name, (function, numbers) in FUNCTIONS.items():
        tried = set()
        for arguments, keywords in variants(name):
            tried |= set(inspect.signature(function).bind(*arguments, **keywords).arguments)
        assert set(numbers) <= tried, name


def numpys(number):
    """The scalars of NumPy's that stand for a Python number."""
    if isinstance(number, bool):
        return [np.bool_(number)]
    if isinstance(number, int):
        kinds = [np.int64, np.int32, np.uint8, lambda item: np.array(item)]
        return [kind(number) for kind in kinds if number >= 0 or kind is not np.uint8]
    if isinstance(number, float):
        return [kind(number) for kind in (np.float64, np.float32, np.float16, np.longdouble)]
    return [np.complex128(number), np.complex64(number)] if isinstance(number, complex) else []


def replaced(thing):
    """The thing with each of the numbers in it, one at a time, as one of NumPy's."""
    if isinstance(thing, (tuple, list, dict)):
        items = thing.items() if isinstance(thing, dict) else enumerate(thing)
        for key, part in items:
            for other in replaced(part):
                made = dict(thing) if isinstance(thing, dict) else list(thing)
                made[key] = other
                yield tuple(made) if isinstance(thing, tuple) else made
    else:
        yield from numpys(thing)


def has_array_operand(name, arguments, keywords):
    """Whether an operand is an array without axes, which is refused as any other array is."""
    signature = inspect.signature(FUNCTIONS[name][0])
    return any(
        isinstance(value, np.ndarray)
        and not value.ndim
        and "Operand" in str(signature.parameters[key].annotation)
        for key, value in signature.bind(*arguments, **keywords).arguments.items()
    )


def run(name, device, arguments, keywords):
    function, _ = FUNCTIONS[name]
    if "device" in inspect.signature(function).parameters:
        keywords = {**keywords, "device": device}

    def here(thing):
        if isinstance(thing, (list, tuple)) and thing and isinstance(thing[0], np.ndarray):
            return type(thing)(map(here, thing))
        is_tensor = isinstance(thing, np.ndarray) and thing.ndim
        return burn.asarray(thing, device=device) if is_tensor else thing

    burn.random.seed(3, device=device)
    result = function(
        *map(here, arguments), **{key: here(keyword) for key, keyword in keywords.items()}
    )
    if name == "random.seed":
        result = burn.random.uniform(3, device=device)
    return flat(result)


def flat(result):
    if isinstance(result, burn.Tensor):
        return [Near(result.numpy())]
    if isinstance(result, (tuple, list)):
        return [part for item in result for part in flat(item)]
    return [result, type(result)]


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.together("name", sorted(CALLS))
def test_a_scalar_of_numpys_is_the_python_number_of_its_value(name, device, everything):
    generator = random.Random(name)
    for variant in variants(name):
        try:
            expected = run(name, device, *variant)
        except burn.DTypeError:
            assert not device.supports_dtype(burn.complex64)  # and the result is complex
            continue
        others = [other for other in replaced(variant) if not has_array_operand(name, *other)]
        if device.backend_name != "cpu":  # where they become Python's, no device counts
            others = generator.sample(others, min(3 if everything else 1, len(others)))
        for other in others:
            assert run(name, device, *other) == expected, other


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.longdouble, np.int64, np.uint8])
def test_an_operand_that_is_a_scalar_of_numpys_takes_the_dtype_of_the_tensor(kind, device):
    for dtype in ("float16", "float32", "int32", "uint8"):
        x, python = burn.asarray([1, 2, 3], dtype=dtype, device=device), kind(2).item()
        python = float(python) if kind is np.longdouble else python
        for function in (burn.add, burn.pow, burn.maximum, burn.less, operator.mul, operator.eq):
            assert flat(function(x, kind(2))) == flat(function(x, python))
            assert flat(function(kind(2), x)) == flat(function(python, x))
        if dtype.startswith("float") or kind in (np.int64, np.uint8):
            x[0] = x[x > 2] = kind(2)
            assert (x.dtype, x.tolist()) == (burn.DType.of(dtype), [2, 2, 2])
        else:
            for key in (0, x > 2):
                with pytest.raises(burn.OperandTypeError):
                    x[key] = kind(2)


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_methods_take_scalars_of_numpys_too(device):
    x = burn.asarray(X, device=device)
    same = (x.sum(axis=1, keepdims=True), x.sum(axis=np.int64(1), keepdims=np.True_))
    assert flat(same[0]) == flat(same[1])
    assert flat(x.reshape(np.int64(12))) == flat(x.reshape((np.uint8(12),))) == flat(x.reshape(12))
    assert flat(x[np.int64(1) : np.uint8(3), np.int8(-1)]) == flat(x[1:3, -1])
    device.seed(np.int64(5))
    first = flat(burn.random.uniform(3, device=device))
    device.seed(5)
    assert flat(burn.random.uniform(3, device=device)) == first
