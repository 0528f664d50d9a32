"""Rectified linear units and units like them.

They take float tensors; integers and booleans become the default float dtype.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from burn.docstrings import documented_as
from burn.errors import ArgumentError, ShapeError
from burn.functions import calls
from burn.functions.common import op_function
from burn.functions.elementwise import less
from burn.functions.normalize import as_flag, as_float, number_dtype, rank_of
from burn.functions.quantization import numbers_of
from burn.functions.random import uniform
from burn.functions.searching import where
from burn.ops.arguments import real_number

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "celu",
    "elu",
    "hard_sigmoid",
    "hard_swish",
    "hardtanh",
    "leaky_relu",
    "prelu",
    "relu",
    "relu6",
    "rrelu",
    "selu",
]


SELU_ALPHA: Final = 1.6732632423543772848170429916717
SELU_SCALE: Final = 1.0507009873554804934193349852946
"""Constants of Klambauer et al., 2017."""


@op_function
def relu(x: Tensor, /) -> Tensor:
    """Rectified linear unit, ``max(x, 0)``; its slope at 0, and of NaN, is 0.

    Parameters
    ----------
    x : Tensor
        Real tensor; integers and booleans become the default float dtype.

    Returns
    -------
    Tensor
        In the shape of `x`; NaN propagates.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.relu(burn.asarray([-2.0, 3.0], device="cpu")).tolist()
    [0.0, 3.0]
    """


@documented_as(relu)
def relu6(x: Tensor, /) -> Tensor:
    """``min(max(x, 0), 6)`` (Sandler et al., 2018, arXiv:1801.04381).

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.relu6(burn.asarray([-2.0, 3.0, 9.0], device="cpu")).tolist()
    [0.0, 3.0, 6.0]
    """
    return calls.hardtanh(x, low=0.0, high=6.0)


def leaky_relu(x: Tensor, /, *, negative_slope: float = 0.01) -> Tensor:
    """`x` where it is positive, otherwise ``negative_slope * x`` (Maas et al., ICML 2013).

    Parameters
    ----------
    x : Tensor
        Real tensor; integers and booleans become the default float dtype.
    negative_slope : float
        Slope at and below 0.

    Returns
    -------
    Tensor
        In the shape of `x`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.leaky_relu(burn.asarray([-2.0, 3.0], device="cpu"), negative_slope=0.5).tolist()
    [-1.0, 3.0]
    """
    return calls.leaky_relu(
        x, negative_slope=real_number(negative_slope, "negative_slope", "leaky_relu")
    )


def rrelu(
    x: Tensor, /, lower: float = 1.0 / 8.0, upper: float = 1.0 / 3.0, *, training: bool = False
) -> Tensor:
    """`x` where it is positive, otherwise `x` times a slope that is drawn for each element.

    Parameters
    ----------
    x : Tensor
        Real tensor; integers and booleans become the default float dtype.
    lower, upper : float
        The bounds between which slopes are distributed uniformly.
    training : bool
        Without it, all slopes are the mean of the bounds.

    Returns
    -------
    Tensor
        In the shape of `x`.

    Raises
    ------
    ArgumentError
        If a bound is not finite, or the lower one is above the upper one.

    Notes
    -----
    Xu et al., 2015, arXiv:1505.00853. The generator of the device draws the slopes, so that the
    same seed gives the same ones on every backend.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.rrelu(burn.asarray([-2.0, 3.0], device="cpu"), 0.25, 0.75).tolist()
    [-1.0, 3.0]
    """
    x = numbers_of(as_float(x, "rrelu"))
    low = real_number(lower, "lower", "rrelu", above=-math.inf, below=math.inf)
    high = real_number(upper, "upper", "rrelu", least=low, below=math.inf)
    if not as_flag(training, "training", "rrelu"):
        return leaky_relu(x, negative_slope=(low + high) / 2.0)
    slopes = uniform(x.shape, low, high, dtype=number_dtype(x), device=x.device)
    return where(less(x, 0.0), x * slopes, x)


def prelu(x: Tensor, alpha: Tensor, /) -> Tensor:
    """`x` where it is positive, otherwise ``alpha * x`` (He et al., 2015, arXiv:1502.01852).

    Parameters
    ----------
    x : Tensor, shape (N, C, ...)
        Float tensor; of any shape if there is one slope.
    alpha : Tensor, shape (C,), (1,) or ()
        Slope at and below 0, for each channel or for all of them.

    Returns
    -------
    Tensor
        In the shape of `x`.

    Raises
    ------
    ShapeError
        If `alpha` has neither one element nor one for each channel.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([[-2.0, -2.0]], device="cpu")
    >>> F.prelu(x, burn.asarray([0.5, 2.0], device="cpu")).tolist()
    [[-1.0, -4.0]]
    """
    rank = rank_of(x, "prelu")
    rank_of(alpha, "prelu", "alpha")
    slopes = alpha.shape
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
    return calls.prelu(x, alpha)


@documented_as(leaky_relu)
def elu(x: Tensor, /, *, alpha: float = 1.0) -> Tensor:
    """Exponential linear unit (Clevert et al., 2016, arXiv:1511.07289).

    `x` where it is positive, otherwise ``alpha * (exp(x) - 1)``.

    Parameters
    ----------
    alpha : float
        Negative of the limit for small `x`.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> burn.round(F.elu(burn.asarray([-9.0, 3.0], device="cpu"))).tolist()
    [-1.0, 3.0]
    """
    return calls.elu(x, alpha=real_number(alpha, "alpha", "elu"))


@documented_as(rrelu)
def celu(x: Tensor, /, *, alpha: float = 1.0) -> Tensor:
    """Continuously differentiable `elu` (Barron, 2017, arXiv:1704.07483).

    `x` where it is positive, otherwise ``alpha * (exp(x / alpha) - 1)``. The slope is continuous
    for every `alpha`.

    Parameters
    ----------
    alpha : float
        Negative of the limit for small `x`; not 0.

    Raises
    ------
    ArgumentError
        If `alpha` is 0.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> burn.round(F.celu(burn.asarray([-99.0, 3.0], device="cpu"), alpha=2.0)).tolist()
    [-2.0, 3.0]
    """
    number = real_number(alpha, "alpha", "celu")
    if number == 0.0:
        raise ArgumentError("alpha is 0", hint="The limit is relu", operation="celu")
    return calls.elu(x, alpha=number, input_scale=1.0 / number)


@documented_as(leaky_relu)
def selu(x: Tensor, /) -> Tensor:
    """Scaled `elu` that keeps mean 0 and variance 1 (Klambauer et al., 2017, arXiv:1706.02515).

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> burn.round(100 * F.selu(burn.asarray([-99.0, 1.0], device="cpu"))).tolist()
    [-176.0, 105.0]
    """
    return calls.elu(x, alpha=SELU_ALPHA, scale=SELU_SCALE)


def hardtanh(x: Tensor, /, *, low: float = -1.0, high: float = 1.0) -> Tensor:
    """``min(max(x, low), high)``; its slope at the bounds is 0.

    Parameters
    ----------
    x : Tensor
        Real tensor; integers and booleans become the default float dtype.
    low, high : float
        Bounds of the result; `high` is at least `low`.

    Returns
    -------
    Tensor
        In the shape of `x`; NaN propagates.

    Raises
    ------
    ArgumentError
        If `high` is less than `low`.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.hardtanh(burn.asarray([-3.0, 0.5, 3.0], device="cpu")).tolist()
    [-1.0, 0.5, 1.0]
    """
    return calls.hardtanh(
        x, low=real_number(low, "low", "hardtanh"), high=real_number(high, "high", "hardtanh")
    )


@documented_as(relu)
def hard_sigmoid(x: Tensor, /, *, alpha: float = 1.0 / 6.0, beta: float = 0.5) -> Tensor:
    """``min(max(alpha * x + beta, 0), 1)``.

    Parameters
    ----------
    alpha : float
        Slope; the default is PyTorch's, ONNX has 0.2.
    beta : float
        Value at 0.

    Returns
    -------
    Tensor
        In the shape of `x`, from 0 to 1.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.hard_sigmoid(burn.asarray([-9.0, 0.0, 9.0], device="cpu")).tolist()
    [0.0, 0.5, 1.0]
    """
    return calls.hard_sigmoid(
        x,
        alpha=real_number(alpha, "alpha", "hard_sigmoid"),
        beta=real_number(beta, "beta", "hard_sigmoid"),
    )


@op_function
@documented_as(leaky_relu)
def hard_swish(x: Tensor, /) -> Tensor:
    """``x * min(max(x + 3, 0), 6) / 6`` (Howard et al., 2019, arXiv:1905.02244).

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.hard_swish(burn.asarray([0.0, 9.0], device="cpu")).tolist()
    [0.0, 9.0]
    """
