"""Smooth activation functions, elementwise or gated.

They take float tensors; integers and booleans become the default float dtype.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from burn.docstrings import documented_as
from burn.functions import calls
from burn.functions.common import op_function
from burn.functions.normalize import normalize_axis
from burn.ops.arguments import real_number

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "gelu",
    "glu",
    "log_sigmoid",
    "mish",
    "sigmoid",
    "silu",
    "softplus",
    "softsign",
    "tanhshrink",
]


def softplus(x: Tensor, /, *, beta: float = 1.0) -> Tensor:
    """``log(1 + exp(beta * x)) / beta``, without overflow.

    Parameters
    ----------
    x : Tensor
        Real tensor; integers and booleans become the default float dtype.
    beta : float
        Sharpness, positive and finite: the larger, the nearer to `relu`.

    Returns
    -------
    Tensor
        In the shape of `x`.

    Raises
    ------
    ArgumentError
        If `beta` is not positive and finite.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> burn.round(F.softplus(burn.asarray([-99.0, 99.0], device="cpu"))).tolist()
    [0.0, 99.0]
    """
    return calls.softplus(x, beta=real_number(beta, "beta", "softplus"))


@op_function
def softsign(x: Tensor, /) -> Tensor:
    """``x / (1 + abs(x))``.

    Parameters
    ----------
    x : Tensor
        Real tensor; integers and booleans become the default float dtype.

    Returns
    -------
    Tensor
        In the shape of `x`, between -1 and 1.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.softsign(burn.asarray([-1.0, 3.0], device="cpu")).tolist()
    [-0.5, 0.75]
    """


@documented_as(softplus)
def gelu(x: Tensor, /, *, approximate: Literal["none", "tanh"] = "none") -> Tensor:
    """Gaussian error linear unit, ``x * (1 + erf(x / sqrt(2))) / 2``.

    Parameters
    ----------
    approximate : {"none", "tanh"}
        ``"tanh"`` for ``x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2``.

    Raises
    ------
    ArgumentError
        If there is no such approximation.

    Notes
    -----
    Hendrycks and Gimpel, 2016, arXiv:1606.08415.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> burn.round(F.gelu(burn.asarray([0.0, 9.0], device="cpu"))).tolist()
    [0.0, 9.0]
    """
    return calls.gelu(x, approximate=approximate)


@op_function
@documented_as(softsign)
def sigmoid(x: Tensor, /) -> Tensor:
    """Logistic function, ``1 / (1 + exp(-x))``, without overflow.

    Returns
    -------
    Tensor
        In the shape of `x`, from 0 to 1.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.sigmoid(burn.asarray([0.0, 99.0], device="cpu")).tolist()
    [0.5, 1.0]
    """


@op_function
@documented_as(softsign)
def log_sigmoid(x: Tensor, /) -> Tensor:
    """Logarithm of `sigmoid`, ``-log(1 + exp(-x))``, without overflow.

    Returns
    -------
    Tensor
        In the shape of `x`, at most 0.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.log_sigmoid(burn.asarray([-99.0], device="cpu")).tolist()
    [-99.0]
    """


@op_function
def silu(x: Tensor, /) -> Tensor:
    """Sigmoid linear unit or swish, ``x * sigmoid(x)`` (Elfwing et al., 2017, arXiv:1702.03118).

    Parameters
    ----------
    x : Tensor
        Real tensor; integers and booleans become the default float dtype.

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
    >>> burn.round(F.silu(burn.asarray([0.0, 99.0], device="cpu"))).tolist()
    [0.0, 99.0]
    """


@op_function
@documented_as(silu)
def mish(x: Tensor, /) -> Tensor:
    """``x * tanh(softplus(x))`` (Misra, 2019, arXiv:1908.08681).

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> burn.round(F.mish(burn.asarray([0.0, 99.0], device="cpu"))).tolist()
    [0.0, 99.0]
    """


@op_function
@documented_as(silu)
def tanhshrink(x: Tensor, /) -> Tensor:
    """``x - tanh(x)``.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.tanhshrink(burn.asarray([0.0, 99.0], device="cpu")).tolist()
    [0.0, 98.0]
    """


def glu(x: Tensor, /, *, axis: int = -1) -> Tensor:
    """Gated linear unit: the first half along an axis times the sigmoid of the second half.

    Parameters
    ----------
    x : Tensor
        Real tensor; integers and booleans become the default float dtype.
    axis : int
        Axis that is halved; its length is even.

    Returns
    -------
    Tensor
        In the shape of `x`, with half the length of the axis.

    Raises
    ------
    ShapeError
        If the length of the axis is odd.
    AxisError
        If `x` has no such axis.

    Notes
    -----
    Dauphin et al., 2017, arXiv:1612.08083.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.glu(burn.asarray([2.0, 4.0, 0.0, 0.0], device="cpu")).tolist()
    [1.0, 2.0]
    """
    return calls.glu(x, axis=normalize_axis(x, axis, "glu"))
