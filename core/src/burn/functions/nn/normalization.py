"""Normalization layers: elements shifted and scaled to mean 0 and variance 1."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from burn.docstrings import documented_as
from burn.errors import ShapeError
from burn.functions import calls
from burn.functions._spread import accumulation_dtype
from burn.functions.manipulation import astype, permute_dims
from burn.functions.nn.average_pooling import avg_pool2d
from burn.functions.normalize import check_tensor, normalize_axes, rank_of
from burn.functions.views import independent
from burn.ops.arguments import as_integer, real_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from burn.tensor.tensor import Tensor

__all__ = [
    "BatchNormStep",
    "batch_norm",
    "batch_norm_training",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "local_response_norm",
    "rms_norm",
]


def layer_norm(
    x: Tensor,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    /,
    *,
    axis: int | tuple[int, ...] = -1,
    epsilon: float = 1e-5,
) -> Tensor:
    """``(x - mean) / sqrt(variance + epsilon) * gamma + beta`` over some axes.

    Parameters
    ----------
    x : Tensor
        Float tensor.
    gamma, beta : Tensor, optional
        Scale and shift, with the lengths of the normalized axes, in the order of `axis`.
    axis : int or tuple of int
        Axes that are normalized together (the last by default).
    epsilon : float
        Added to the variance, at least 0.

    Returns
    -------
    Tensor
        In the shape of `x`.

    Raises
    ------
    ShapeError
        If `gamma` or `beta` does not have the lengths of the normalized axes.
    AxisError
        If `x` has no such axis.
    ArgumentError
        If `epsilon` is negative or not finite.

    Notes
    -----
    Ba et al., 2016, arXiv:1607.06450.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([[1.0, 3.0], [5.0, 5.0]], device="cpu")
    >>> burn.round(F.layer_norm(x, epsilon=0.0001)).tolist()
    [[-1.0, 1.0], [0.0, 0.0]]
    """
    number = _epsilon(epsilon, "layer_norm")

    def normalize(rows: Tensor, *parameters: Tensor | None) -> Tensor:
        return calls.layer_norm(rows, *parameters, epsilon=number)

    return _over_axes(normalize, x, (gamma, beta), axis, "layer_norm")


@documented_as(layer_norm)
def rms_norm(
    x: Tensor,
    gamma: Tensor | None = None,
    /,
    *,
    axis: int | tuple[int, ...] = -1,
    epsilon: float = 1e-5,
) -> Tensor:
    """``x / sqrt(mean(x**2) + epsilon) * gamma`` over some axes.

    The other parameters are those of `layer_norm`.

    Parameters
    ----------
    gamma : Tensor, optional
        Scale, with the lengths of the normalized axes, in the order of `axis`.
    epsilon : float
        Added to the mean square, at least 0.

    Raises
    ------
    ShapeError
        If `gamma` does not have the lengths of the normalized axes.

    Notes
    -----
    Zhang and Sennrich, 2019, arXiv:1910.07467.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> burn.round(F.rms_norm(burn.asarray([2.0, -2.0], device="cpu"))).tolist()
    [1.0, -1.0]
    """
    number = _epsilon(epsilon, "rms_norm")

    def normalize(rows: Tensor, *parameters: Tensor | None) -> Tensor:
        return calls.rms_norm(rows, *parameters, epsilon=number)

    return _over_axes(normalize, x, (gamma,), axis, "rms_norm")


def batch_norm(
    x: Tensor,
    mean: Tensor,
    variance: Tensor,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    /,
    *,
    epsilon: float = 1e-5,
) -> Tensor:
    """``(x - mean) / sqrt(variance + epsilon) * gamma + beta`` with known statistics.

    This is the form for predictions; `batch_norm_training` is that for training.

    Parameters
    ----------
    x : Tensor, shape (N, C, ...)
        Float tensor with channels along axis 1.
    mean, variance : Tensor, shape (C,)
        Statistics of each channel.
    gamma, beta : Tensor, shape (C,), optional
        Scale and shift of each channel.
    epsilon : float
        Added to the variance, at least 0.

    Returns
    -------
    Tensor
        In the shape of `x`.

    Raises
    ------
    ShapeError
        If `x` has no channels, or another operand is not of shape (C,).
    ArgumentError
        If `epsilon` is negative or not finite.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> mean, variance = burn.asarray([1.0], device="cpu"), burn.asarray([4.0], device="cpu")
    >>> F.batch_norm(burn.asarray([[5.0]], device="cpu"), mean, variance, epsilon=0.0).tolist()
    [[2.0]]
    """
    number = _epsilon(epsilon, "batch_norm")
    return calls.batch_norm(x, gamma, beta, mean, variance, epsilon=number)


class BatchNormStep(NamedTuple):
    """The result of `batch_norm_training`.

    Attributes
    ----------
    output : Tensor, shape (N, C, ...)
        The normalized batch.
    running_mean, running_variance : Tensor, shape (C,), or None
        The running statistics after the step; None if there were none before it.
    """

    output: Any
    running_mean: Any
    running_variance: Any


def batch_norm_training(
    x: Tensor,
    running_mean: Tensor | None,
    running_variance: Tensor | None,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    /,
    *,
    momentum: float = 0.1,
    epsilon: float = 1e-5,
) -> BatchNormStep:
    """`batch_norm` with the statistics of the batch, and the running statistics after it.

    Parameters
    ----------
    x : Tensor, shape (N, C, ...)
        Float tensor with channels along axis 1, and at least two elements of each.
    running_mean, running_variance : Tensor, shape (C,), or None
        Running statistics; zeros and ones before the first step. They are not changed. None where
        those of the batch alone matter.
    gamma, beta : Tensor, shape (C,), optional
        Scale and shift of each channel.
    momentum : float
        Weight of the batch in the new running statistics, in [0, 1].
    epsilon : float
        Added to the variance, at least 0.

    Returns
    -------
    BatchNormStep
        ``output`` in the shape of `x`, and ``running_mean`` and ``running_variance``: they are
        ``(1 - momentum) * old + momentum * new``, where the variance of the batch is divided by
        ``n - 1`` (Ioffe and Szegedy, 2015, arXiv:1502.03167, algorithm 2). They have no gradient.

    Raises
    ------
    ShapeError
        If a channel has fewer than two elements, or an operand is not of shape (C,).
    ArgumentError
        If `momentum` or `epsilon` is out of its range.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> mean, variance = burn.zeros(1, device="cpu"), burn.ones(1, device="cpu")
    >>> x = burn.asarray([[2.0], [4.0]], device="cpu")
    >>> step = F.batch_norm_training(x, mean, variance, momentum=0.5)
    >>> burn.round(step.output).tolist(), step.running_mean.tolist()
    ([[-1.0], [1.0]], [1.5])
    """
    operation = "batch_norm_training"
    rank = rank_of(x, operation)
    share = real_number(momentum, "momentum", operation, least=0.0, most=1.0)
    number = _epsilon(epsilon, operation)
    count = math.prod(x.shape) // x.shape[1] if rank > 1 and x.shape[1] else 0
    if rank > 1 and x.shape[1] and count < 2:
        raise ShapeError(
            f"x of shape {x.shape} has {count} elements for each channel",
            hint="The variance of a batch needs two at least",
            operation=operation,
        )
    output, mean, variance = calls.batch_norm_training(x, gamma, beta, epsilon=number)
    unbiased = count / (count - 1) if count > 1 else 1.0
    return BatchNormStep(
        output,
        _update_statistic(running_mean, "running_mean", mean, share, 1.0),
        _update_statistic(running_variance, "running_variance", variance, share, unbiased),
    )


def _update_statistic(
    old: Tensor | None, name: str, new: Tensor, share: float, factor: float
) -> Tensor | None:
    if old is None:
        return None
    _check_parameter(old, name, new.shape, "batch_norm_training")
    return calls.axpby(old.detach(), new.detach(), a=1.0 - share, b=share * factor)


@documented_as(batch_norm)
def group_norm(
    x: Tensor,
    groups: int,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    /,
    *,
    epsilon: float = 1e-5,
) -> Tensor:
    """Normalize each group of channels of each example.

    The other parameters are those of `batch_norm`.

    Parameters
    ----------
    groups : int
        Number of groups of neighbouring channels; it divides C.

    Raises
    ------
    ShapeError
        If there are no channels along axis 1, or `groups` does not divide their number.

    Notes
    -----
    Wu and He, 2018, arXiv:1803.08494.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([[1.0, 3.0, 5.0, 9.0]], device="cpu")
    >>> burn.round(F.group_norm(x, 2)).tolist()
    [[-1.0, 1.0, -1.0, 1.0]]
    """
    number = as_integer(groups, "groups", "group_norm")
    return _group_norm(x, number, gamma, beta, epsilon, "group_norm")


@documented_as(batch_norm)
def instance_norm(
    x: Tensor,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    /,
    *,
    epsilon: float = 1e-5,
) -> Tensor:
    """Normalize each channel of each example.

    The parameters are those of `batch_norm`.

    Raises
    ------
    ShapeError
        If there are no channels along axis 1.

    Notes
    -----
    Ulyanov et al., 2016, arXiv:1607.08022.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([[[1.0, 3.0], [5.0, 9.0]]], device="cpu")
    >>> burn.round(F.instance_norm(x)).tolist()
    [[[-1.0, 1.0], [-1.0, 1.0]]]
    """
    if rank_of(x, "instance_norm") < 2:
        raise _no_channels(x, "instance_norm")
    return _group_norm(x, max(x.shape[1], 1), gamma, beta, epsilon, "instance_norm")


def _group_norm(
    x: Tensor,
    groups: int,
    gamma: Tensor | None,
    beta: Tensor | None,
    epsilon: float,
    operation: str,
) -> Tensor:
    if rank_of(x, operation) < 2:
        raise _no_channels(x, operation)
    batch, channels, *spatial = x.shape
    if groups < 1 or channels % groups:
        raise ShapeError(
            f"{channels} channels cannot be divided into {groups} groups",
            hint="The number of groups divides the number of channels",
            operation=operation,
        )
    rows = x.reshape((batch, groups, channels // groups * math.prod(spatial)))
    number = _epsilon(epsilon, operation)
    normal = calls.layer_norm(rows, None, None, epsilon=number)
    normal = independent(normal.reshape(x.shape))
    column = (channels, *[1] * len(spatial))
    if gamma is not None:
        _check_parameter(gamma, "gamma", (channels,), operation)
        normal = normal * gamma.reshape(column)
    if beta is not None:
        _check_parameter(beta, "beta", (channels,), operation)
        normal = normal + beta.reshape(column)
    return normal


def local_response_norm(
    x: Tensor,
    /,
    size: int,
    *,
    alpha: float = 1e-4,
    beta: float = 0.75,
    k: float = 1.0,
) -> Tensor:
    """``x / (k + alpha * m) ** beta``, where m is the mean square of neighbouring channels.

    Parameters
    ----------
    x : Tensor, shape (N, C, ...)
        Float tensor.
    size : int
        Number of channels of a mean, at least 1: ``size // 2`` before a channel, and
        ``(size - 1) // 2`` behind it. Those that are not there count as 0.
    alpha : float
        Factor of the mean.
    beta : float
        The exponent.
    k : float
        Added to the mean.

    Returns
    -------
    Tensor
        In the shape of `x`.

    Raises
    ------
    ShapeError
        If `x` has no channels.
    ArgumentError
        If `size` is less than 1.

    Notes
    -----
    Krizhevsky et al., "ImageNet classification with deep convolutional neural networks", NIPS 2012.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([[3.0, 1.0]], device="cpu")
    >>> F.local_response_norm(x, 1, alpha=1.0, beta=1.0, k=0.0).tolist()
    [[0.3333333432674408, 1.0]]
    """
    operation = "local_response_norm"
    if rank_of(x, operation) < 2:
        raise _no_channels(x, operation)
    count = as_integer(size, "size", operation, least=1, most=2**31 - 1)
    factor, exponent, offset = [
        real_number(value, name, operation)
        for name, value in (("alpha", alpha), ("beta", beta), ("k", k))
    ]
    wide = astype(x, accumulation_dtype(x))  # the square of 256 is no number of float16
    columns = (wide * wide).reshape((*x.shape[:2], math.prod(x.shape[2:])))
    means = avg_pool2d(columns, (count, 1), 1, ((count // 2, (count - 1) // 2), (0, 0)))
    return astype(wide / (means.reshape(x.shape) * factor + offset) ** exponent, x.dtype)


def _no_channels(x: Tensor, operation: str) -> ShapeError:
    return ShapeError(
        f"a tensor of shape {x.shape} has no channels",
        hint="Channels lie along axis 1: the shape is (N, C, ...)",
        operation=operation,
    )


def _over_axes(
    normalize: Callable[..., Tensor],
    x: Tensor,
    parameters: tuple[Tensor | None, ...],
    axis: int | tuple[int, ...],
    operation: str,
) -> Tensor:
    """Apply a normalization of the last axis to other axes, which are merged into one for it."""
    rank = rank_of(x, operation)
    if axis.__class__ is int and axis == -1 and rank:  # as it nearly always is
        return normalize(x, *parameters)
    axes = normalize_axes(x, axis, operation)
    if axes == (rank - 1,):
        return normalize(x, *parameters)
    order = (*[index for index in range(rank) if index not in axes], *axes)
    permuted = permute_dims(x, order)
    lengths = tuple([x.shape[axis] for axis in axes])
    vectors = []
    for name, parameter in zip(("gamma", "beta"), parameters, strict=False):
        if parameter is not None:
            _check_parameter(parameter, name, lengths, operation)
        vectors.append(None if parameter is None else parameter.reshape((math.prod(lengths),)))
    kept = permuted.shape[: rank - len(axes)]
    result = normalize(permuted.reshape((*kept, math.prod(lengths))), *vectors)
    inverse = tuple([order.index(index) for index in range(rank)])
    return independent(permute_dims(result.reshape(permuted.shape), inverse))


def _check_parameter(
    parameter: Tensor, name: str, expected: tuple[int, ...], operation: str
) -> None:
    check_tensor(parameter, name, operation)
    if parameter.shape != expected:
        raise ShapeError(
            f"{name} has shape {parameter.shape} where {expected} is needed", operation=operation
        )


def _epsilon(value: float, operation: str) -> float:
    if value.__class__ is float and 0.0 <= value < math.inf:
        return value
    return real_number(value, "epsilon", operation, least=0.0, below=math.inf)
