"""First values of parameters: new tensors, of random numbers that a device's seed decides.

The same seed gives the same numbers on every backend, as far as `burn.random` says.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from burn.docstrings import documented_as
from burn.errors import ArgumentError, ShapeError
from burn.functions import creation, random
from burn.functions.normalize import as_shape, find_device
from burn.ops.arguments import real_number
from burn.public_calls import has_functions, shown_value

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.functions.common import DeviceLike, DTypeLike
    from burn.tensor.tensor import Tensor

__all__ = [
    "constant",
    "fans",
    "gain",
    "kaiming_normal",
    "kaiming_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]

has_functions(__name__, prefix="nn.init.", names=__all__)

Mode: TypeAlias = Literal["fan_in", "fan_out"]

_GAINS: Final = {
    "linear": 1.0,
    "sigmoid": 1.0,
    "tanh": 5.0 / 3.0,
    "relu": math.sqrt(2.0),
    "selu": 0.75,
}
"""By nonlinearities, as in PyTorch; that of leaky_relu has a parameter."""


def fans(shape: Shape) -> tuple[int, int]:
    """Number of inputs and of outputs that an element of a weight's output and input sees.

    Parameters
    ----------
    shape : tuple of int
        Of a weight: (outputs, inputs), with the lengths of a kernel after them.

    Returns
    -------
    tuple of (int, int)
        ``(fan_in, fan_out)``.

    Raises
    ------
    ShapeError
        If there are fewer than two axes.

    Examples
    --------
    >>> import burn
    >>> burn.nn.init.fans((16, 3, 5, 5))
    (75, 400)
    """
    lengths = as_shape(shape, "nn.init.fans")
    if len(lengths) < 2:
        raise ShapeError(
            f"a weight of shape {shown_value(lengths)} has no axes of inputs and outputs",
            hint="Give the shape (outputs, inputs, ...); use uniform or normal for others",
            operation="nn.init.fans",
        )
    receptive = math.prod(lengths[2:])
    return lengths[1] * receptive, lengths[0] * receptive


def gain(nonlinearity: str, a: float = 0.0) -> float:
    """The factor of a weight's standard deviation that a nonlinearity behind it asks for.

    Parameters
    ----------
    nonlinearity : {"linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu"}
        What is applied to the output.
    a : float
        The slope of ``"leaky_relu"`` below 0.

    Returns
    -------
    float
        The values of ``torch.nn.init.calculate_gain``.

    Raises
    ------
    ArgumentError
        If there is no such nonlinearity.

    Examples
    --------
    >>> import burn
    >>> burn.nn.init.gain("leaky_relu", 1.0)
    1.0
    """
    slope = real_number(a, "a", "nn.init.gain")
    if not isinstance(nonlinearity, str) or nonlinearity not in (*_GAINS, "leaky_relu"):
        raise ArgumentError(
            f"nonlinearity is {shown_value(nonlinearity)}",
            hint=f"Use one of {', '.join(sorted([*_GAINS, 'leaky_relu']))}",
            operation="nn.init.gain",
        )
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1.0 + slope**2))
    return _GAINS[nonlinearity]


def constant(
    shape: int | Shape,
    value: float,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """A tensor filled with a number.

    Parameters
    ----------
    shape : int or tuple of int
        Length of each axis.
    value : float
        The number.
    dtype : DType, optional
        A float dtype; the default one of the device if left out.
    device : Device or str, optional
        Device of the result; the default device if left out.

    Returns
    -------
    Tensor
        In the given shape.

    Examples
    --------
    >>> import burn
    >>> burn.nn.init.constant(2, 0.5, device="cpu").tolist()
    [0.5, 0.5]
    """
    number = real_number(value, "value", "nn.init.constant")
    return creation.full(shape, number, dtype=dtype, device=device)


@documented_as(constant)
def zeros(
    shape: int | Shape, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """A tensor of zeros.

    The parameters are those of `constant`.

    Examples
    --------
    >>> import burn
    >>> burn.nn.init.zeros(2, device="cpu").tolist()
    [0.0, 0.0]
    """
    return creation.zeros(shape, dtype=dtype, device=device)


@documented_as(constant)
def ones(
    shape: int | Shape, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """A tensor of ones.

    The parameters are those of `constant`.

    Examples
    --------
    >>> import burn
    >>> burn.nn.init.ones(2, device="cpu").tolist()
    [1.0, 1.0]
    """
    return creation.ones(shape, dtype=dtype, device=device)


def uniform(
    shape: int | Shape,
    low: float = 0.0,
    high: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Uniform numbers in [low, high).

    Parameters
    ----------
    shape : int or tuple of int
        Length of each axis.
    low, high : float
        Bounds of the numbers.
    dtype : DType, optional
        A float dtype; the default one of the device if left out.
    device : Device or str, optional
        Device of the result; the default device if left out.

    Returns
    -------
    Tensor
        Independent numbers in the given shape.

    Examples
    --------
    >>> import burn
    >>> burn.nn.init.uniform((2, 3), -0.5, 0.5, device="cpu").shape
    (2, 3)
    """
    return random.uniform(shape, low, high, dtype=dtype, device=device)


@documented_as(uniform)
def normal(
    shape: int | Shape,
    mean: float = 0.0,
    std: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Normal numbers with a mean and a standard deviation.

    The other parameters are those of `uniform`.

    Parameters
    ----------
    mean, std : float
        Mean and standard deviation of the distribution.

    Examples
    --------
    >>> import burn
    >>> burn.nn.init.normal((2, 3), std=0.02, device="cpu").shape
    (2, 3)
    """
    return random.normal(shape, mean, std, dtype=dtype, device=device)


@documented_as(uniform)
def truncated_normal(
    shape: int | Shape,
    mean: float = 0.0,
    std: float = 1.0,
    low: float = -2.0,
    high: float = 2.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Normal numbers with a mean and a standard deviation, of those in [low, high].

    The other parameters are those of `uniform`.

    Parameters
    ----------
    mean, std : float
        Mean and standard deviation of the distribution before it is truncated.
    low, high : float
        Bounds of the numbers. They do not scale with `std`.

    Examples
    --------
    >>> import burn
    >>> x = burn.nn.init.truncated_normal((2, 3), std=0.02, low=-0.04, high=0.04, device="cpu")
    >>> bool(burn.all(burn.abs(x) <= 0.04))
    True
    """
    return random.truncated_normal(shape, mean, std, low, high, dtype=dtype, device=device)


def kaiming_uniform(
    shape: Shape,
    a: float = 0.0,
    mode: Mode = "fan_in",
    nonlinearity: str = "leaky_relu",
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Uniform weights that keep the variance of what a layer with a rectifier passes on.

    Parameters
    ----------
    shape : tuple of int
        Of the weight: (outputs, inputs, ...).
    a : float
        The slope of ``"leaky_relu"`` below 0.
    mode : {"fan_in", "fan_out"}
        Whether the variance is kept of outputs, or of gradients by the input.
    nonlinearity : str
        What is applied to the output; see `gain`.
    dtype : DType, optional
        A float dtype; the default one of the device if left out.
    device : Device or str, optional
        Device of the result; the default device if left out.

    Returns
    -------
    Tensor
        Numbers in [-b, b) for ``b = gain(nonlinearity, a) * sqrt(3 / fan)``.

    Raises
    ------
    ArgumentError
        If there is no such mode or nonlinearity.
    ShapeError
        If `shape` has fewer than two axes.

    Notes
    -----
    He et al., 2015, arXiv:1502.01852.

    Examples
    --------
    >>> import burn
    >>> x = burn.nn.init.kaiming_uniform((64, 6), device="cpu")
    >>> x.shape, bool(burn.max(burn.abs(x)) <= 1.0)
    ((64, 6), True)
    """
    bound = math.sqrt(3.0) * _kaiming_deviation(shape, a, mode, nonlinearity)
    return uniform(shape, -bound, bound, dtype=dtype, device=device)


@documented_as(kaiming_uniform)
def kaiming_normal(
    shape: Shape,
    a: float = 0.0,
    mode: Mode = "fan_in",
    nonlinearity: str = "leaky_relu",
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Normal weights that keep the variance of what a layer with a rectifier passes on.

    The parameters are those of `kaiming_uniform`.

    Returns
    -------
    Tensor
        Numbers with mean 0 and the standard deviation ``gain(nonlinearity, a) / sqrt(fan)``.

    Notes
    -----
    He et al., 2015, arXiv:1502.01852.

    Examples
    --------
    >>> import burn
    >>> burn.nn.init.kaiming_normal((64, 6), nonlinearity="relu", device="cpu").shape
    (64, 6)
    """
    std = _kaiming_deviation(shape, a, mode, nonlinearity)
    return normal(shape, 0.0, std, dtype=dtype, device=device)


def xavier_uniform(
    shape: Shape,
    gain: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Uniform weights that keep the variance of outputs and of gradients.

    Parameters
    ----------
    shape : tuple of int
        Of the weight: (outputs, inputs, ...).
    gain : float
        A factor of the numbers; the function `gain` knows that of a nonlinearity.
    dtype : DType, optional
        A float dtype; the default one of the device if left out.
    device : Device or str, optional
        Device of the result; the default device if left out.

    Returns
    -------
    Tensor
        Numbers in [-b, b) for ``b = gain * sqrt(6 / (fan_in + fan_out))``.

    Raises
    ------
    ShapeError
        If `shape` has fewer than two axes.

    Notes
    -----
    Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks",
    AISTATS 2010.

    Examples
    --------
    >>> import burn
    >>> x = burn.nn.init.xavier_uniform((2, 4), device="cpu")
    >>> x.shape, bool(burn.max(burn.abs(x)) <= 1.0)
    ((2, 4), True)
    """
    bound = math.sqrt(3.0) * _xavier_deviation(shape, gain)
    return uniform(shape, -bound, bound, dtype=dtype, device=device)


@documented_as(xavier_uniform)
def xavier_normal(
    shape: Shape,
    gain: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Normal weights that keep the variance of outputs and of gradients.

    The parameters are those of `xavier_uniform`.

    Returns
    -------
    Tensor
        With mean 0 and the standard deviation ``gain * sqrt(2 / (fan_in + fan_out))``.

    Notes
    -----
    Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks",
    AISTATS 2010.

    Examples
    --------
    >>> import burn
    >>> burn.nn.init.xavier_normal((2, 4), gain=burn.nn.init.gain("tanh"), device="cpu").shape
    (2, 4)
    """
    std = _xavier_deviation(shape, gain)
    return normal(shape, 0.0, std, dtype=dtype, device=device)


@documented_as(xavier_uniform)
def orthogonal(
    shape: Shape,
    gain: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """A matrix with orthonormal rows, or columns where they are fewer, times a factor.

    The other parameters are those of `xavier_uniform`.

    Parameters
    ----------
    shape : tuple of int
        Of the weight; all axes after the first are the columns of the matrix.
    gain : float
        The factor.

    Returns
    -------
    Tensor
        Drawn uniformly from such matrices; computed in float64 on the host.

    Notes
    -----
    Saxe et al., 2014, arXiv:1312.6120; Mezzadri, 2007, arXiv:math-ph/0609050, on the signs.

    Examples
    --------
    >>> import burn
    >>> x = burn.nn.init.orthogonal((2, 5), device="cpu")
    >>> burn.abs(burn.round(x @ x.mT)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    lengths = as_shape(shape, "nn.init.orthogonal")
    fans(lengths)
    target = find_device(device, "nn.init.orthogonal")
    dtype = target.settings.float_dtype if dtype is None else dtype
    factor = real_number(gain, "gain", "nn.init.orthogonal")
    rows, columns = lengths[0], math.prod(lengths[1:])
    # The Box-Muller method in float64 on uniform numbers, which are equal on every backend.
    count = rows * columns
    radii, angles = random.uniform((2, count), dtype="float32", device=target).numpy().astype(float)
    numbers = np.sqrt(-2.0 * np.log1p(-radii)) * np.cos(2.0 * math.pi * angles)
    matrix, triangle = np.linalg.qr(numbers.reshape(max(rows, columns), min(rows, columns)))
    matrix *= factor * np.copysign(1.0, np.diagonal(triangle))
    values = (matrix if rows >= columns else matrix.T).reshape(lengths)
    return creation.asarray(np.ascontiguousarray(values), dtype=dtype, device=target)


def weight_and_bias(
    shape: Shape,
    bias_length: int,
    *,
    bias: bool,
    dtype: DTypeLike | None,
    device: DeviceLike | None,
) -> tuple[Tensor, Tensor | None]:
    """The first parameters of dense layers and convolutions: uniform within 1 / sqrt(fan_in).

    As in PyTorch, where it is a Kaiming initialization with a slope of sqrt(5).
    """
    bound = max(fans(shape)[0], 1) ** -0.5
    weight = uniform(shape, -bound, bound, dtype=dtype, device=device)
    if not bias:
        return weight, None
    return weight, uniform(bias_length, -bound, bound, dtype=dtype, device=device)


def _kaiming_deviation(shape: Shape, a: float, mode: Any, nonlinearity: str) -> float:
    if not isinstance(mode, str) or mode not in ("fan_in", "fan_out"):
        raise ArgumentError(
            f"mode is {shown_value(mode)}",
            hint='Use "fan_in" or "fan_out"',
            operation="nn.init.kaiming",
        )
    fan_in, fan_out = fans(shape)
    return gain(nonlinearity, a) / math.sqrt(max(fan_in if mode == "fan_in" else fan_out, 1))


def _xavier_deviation(shape: Shape, factor: float) -> float:
    return real_number(factor, "gain", "nn.init.xavier") * math.sqrt(2.0 / max(sum(fans(shape)), 1))


def __dir__() -> list[str]:
    return __all__
