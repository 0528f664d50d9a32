"""Activation functions of neural networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from burn.dispatch import unary
from burn.errors import ArgumentError, ShapeError
from burn.functions.common import dispatch, of_one
from burn.functions.elementwise import negative
from burn.functions.normalize import normalize_axis, rank_of
from burn.ops.arguments import real_number

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_swish",
    "hardtanh",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "mish",
    "prelu",
    "quiet_softmax",
    "relu",
    "relu6",
    "selu",
    "shrink",
    "sigmoid",
    "silu",
    "soft_shrink",
    "softmax",
    "softmin",
    "softplus",
    "softsign",
    "tanhshrink",
    "threshold",
    "thresholded_relu",
]

_elu = unary(dispatch, "elu")
_gelu = unary(dispatch, "gelu")
_glu = unary(dispatch, "glu")
_hard_sigmoid = unary(dispatch, "hard_sigmoid")
_hardtanh = unary(dispatch, "hardtanh")
_leaky_relu = unary(dispatch, "leaky_relu")
_log_softmax = unary(dispatch, "log_softmax")
_quiet_softmax = unary(dispatch, "quiet_softmax")
_shrink = unary(dispatch, "shrink")
_softmax = unary(dispatch, "softmax")
_softplus = unary(dispatch, "softplus")
_threshold = unary(dispatch, "threshold")

_SELU_ALPHA: Final = 1.6732632423543772848170429916717
_SELU_SCALE: Final = 1.0507009873554804934193349852946
"""Constants of Klambauer et al., 2017."""

hard_swish = of_one("hard_swish")
log_sigmoid = of_one("log_sigmoid")
mish = of_one("mish")
relu = of_one("relu")
sigmoid = of_one("sigmoid")
silu = of_one("silu")
softsign = of_one("softsign")
tanhshrink = of_one("tanhshrink")


def relu6(x: Tensor, /) -> Tensor:
    """Elementwise `x`, but at least 0 and at most 6 (Sandler et al., 2018, arXiv:1801.04381)."""
    return _hardtanh(x, low=0.0, high=6.0)


def leaky_relu(x: Tensor, /, *, negative_slope: float = 0.01) -> Tensor:
    """Elementwise `x` where it is positive, else ``negative_slope * x``; that is its slope at 0.

    Examples
    --------
    >>> import burn
    >>> from burn.nn import functional as F
    >>> F.leaky_relu(burn.asarray([-2.0, 3.0], device="cpu"), negative_slope=0.5).tolist()
    [-1.0, 3.0]
    """
    return _leaky_relu(
        x, negative_slope=real_number(negative_slope, "negative_slope", "leaky_relu")
    )


def prelu(x: Tensor, alpha: Tensor, /) -> Tensor:
    """Elementwise `x` where it is positive, else ``alpha * x`` (He et al., 2015, arXiv:1502.01852).

    Parameters
    ----------
    x : Tensor, shape (N, C, ...)
        Float tensor of any shape, if there is but one slope.
    alpha : Tensor, shape (C,), (1,) or ()
        Slope of the negative side, for each channel or for all.

    Raises
    ------
    ShapeError
        If there are neither one slope nor as many as channels.
    """
    rank, slopes = rank_of(x, "prelu"), tuple(alpha.shape)
    if slopes not in ((), (1,)):
        if rank < 2 or slopes != (x.shape[1],):
            raise ShapeError(
                f"alpha has shape {slopes}, which does not fit x of shape {x.shape}",
                hint="It has one element, or one for each channel along axis 1 of x",
                operation="prelu",
            )
        alpha = alpha.reshape((*slopes, *[1] * (rank - 2)))
    elif rank == 0:
        alpha = alpha.reshape(())
    return dispatch.execute("prelu", x, alpha)  # type: ignore[no-any-return]  # one output


def elu(x: Tensor, /, *, alpha: float = 1.0) -> Tensor:
    """Elementwise `x` where it is positive, else ``alpha * (exp(x) - 1)``.

    (Exponential linear unit, Clevert et al., 2016, arXiv:1511.07289.)
    """
    return _elu(x, alpha=real_number(alpha, "alpha", "elu"))


def celu(x: Tensor, /, *, alpha: float = 1.0) -> Tensor:
    """Elementwise `x` where it is positive, else ``alpha * (exp(x / alpha) - 1)``.

    Its slope has no jump, whatever `alpha` is (Barron, 2017, arXiv:1704.07483).
    """
    number = real_number(alpha, "alpha", "celu")
    if number == 0.0:
        raise ArgumentError("alpha is 0", hint="relu is what it comes close to", operation="celu")
    return _elu(x, alpha=number, input_scale=1.0 / number)


def selu(x: Tensor, /) -> Tensor:
    """Scaled `elu` that keeps mean 0 and variance 1 (Klambauer et al., 2017, arXiv:1706.02515)."""
    return _elu(x, alpha=_SELU_ALPHA, scale=_SELU_SCALE)


def softplus(x: Tensor, /, *, beta: float = 1.0) -> Tensor:
    """Elementwise ``log(1 + exp(beta * x)) / beta``, without overflow.

    Raises
    ------
    ArgumentError
        If `beta` is not positive.
    """
    return _softplus(x, beta=real_number(beta, "beta", "softplus"))


def gelu(x: Tensor, /, *, approximate: Literal["none", "tanh"] = "none") -> Tensor:
    """Gaussian error linear unit, ``x * (1 + erf(x / sqrt(2))) / 2``.

    Parameters
    ----------
    x : Tensor
        Float tensor.
    approximate : {"none", "tanh"}
        ``"tanh"`` for ``x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2``
        (Hendrycks and Gimpel, 2016, arXiv:1606.08415).
    """
    return _gelu(x, approximate=approximate)


def glu(x: Tensor, /, *, axis: int = -1) -> Tensor:
    """Gated linear unit: the first half along an axis times the sigmoid of the second half.

    (Dauphin et al., 2017, arXiv:1612.08083.)

    Raises
    ------
    ShapeError
        If the length of the axis is odd.

    Examples
    --------
    >>> import burn
    >>> from burn.nn import functional as F
    >>> F.glu(burn.asarray([2.0, 4.0, 0.0, 0.0], device="cpu")).tolist()
    [1.0, 2.0]
    """
    return _glu(x, axis=normalize_axis(x, axis, "glu"))


def hardtanh(x: Tensor, /, *, low: float = -1.0, high: float = 1.0) -> Tensor:
    """Elementwise `x`, but at least `low` and at most `high`; the slope there is 0."""
    return _hardtanh(
        x, low=real_number(low, "low", "hardtanh"), high=real_number(high, "high", "hardtanh")
    )


def hard_sigmoid(x: Tensor, /, *, alpha: float = 1.0 / 6.0, beta: float = 0.5) -> Tensor:
    """Elementwise ``alpha * x + beta``, but at least 0 and at most 1.

    The default slope is that of PyTorch; ONNX has 0.2.
    """
    return _hard_sigmoid(
        x,
        alpha=real_number(alpha, "alpha", "hard_sigmoid"),
        beta=real_number(beta, "beta", "hard_sigmoid"),
    )


def shrink(x: Tensor, /, *, lambd: float = 0.5, bias: float = 0.0) -> Tensor:
    """Elementwise `x` moved by `bias` towards 0, but 0 within [-lambd, lambd].

    Examples
    --------
    >>> import burn
    >>> from burn.nn import functional as F
    >>> F.shrink(burn.asarray([-2.0, 0.5, 2.0], device="cpu"), lambd=1.0, bias=0.5).tolist()
    [-1.5, 0.0, 1.5]
    """
    return _shrink(
        x, lambd=real_number(lambd, "lambd", "shrink"), bias=real_number(bias, "bias", "shrink")
    )


def hard_shrink(x: Tensor, /, *, lambd: float = 0.5) -> Tensor:
    """Elementwise `x`, but 0 within [-lambd, lambd]."""
    return _shrink(x, lambd=real_number(lambd, "lambd", "hard_shrink"))


def soft_shrink(x: Tensor, /, *, lambd: float = 0.5) -> Tensor:
    """Elementwise `x` moved by `lambd` towards 0, and no further."""
    number = real_number(lambd, "lambd", "soft_shrink")
    return _shrink(x, lambd=number, bias=number)


def threshold(x: Tensor, /, *, threshold: float, value: float) -> Tensor:
    """Elementwise `x` where it is above a threshold, else `value`; NaN propagates."""
    return _threshold(
        x,
        threshold=real_number(threshold, "threshold", "threshold"),
        value=real_number(value, "value", "threshold", takes_nan=True),
    )


def thresholded_relu(x: Tensor, /, *, alpha: float = 1.0) -> Tensor:
    """Elementwise `x` where it is above `alpha`, else 0 (Konda et al., 2015, arXiv:1402.3337)."""
    return _threshold(x, threshold=real_number(alpha, "alpha", "thresholded_relu"), value=0.0)


def softmax(x: Tensor, /, *, axis: int = -1) -> Tensor:
    """``exp(x) / sum(exp(x))`` along an axis, without overflow."""
    return _softmax(x, axis=normalize_axis(x, axis, "softmax"))


def softmin(x: Tensor, /, *, axis: int = -1) -> Tensor:
    """``exp(-x) / sum(exp(-x))`` along an axis, without overflow."""
    number = normalize_axis(x, axis, "softmin")
    if x.dtype.is_integer or x.dtype.is_bool:  # the negative of an unsigned number is large
        x = x.astype(x.device.settings.float_dtype)
    return _softmax(negative(x), axis=number)


def log_softmax(x: Tensor, /, *, axis: int = -1) -> Tensor:
    """Logarithm of `softmax`, computed as ``x - log(sum(exp(x)))`` without overflow."""
    return _log_softmax(x, axis=normalize_axis(x, axis, "log_softmax"))


def quiet_softmax(x: Tensor, /, *, axis: int = -1) -> Tensor:
    """``exp(x) / (1 + sum(exp(x)))`` along an axis, without overflow: everything may be near 0.

    (E. Miller, "Attention Is Off By One", 2023.)
    """
    return _quiet_softmax(x, axis=normalize_axis(x, axis, "quiet_softmax"))
