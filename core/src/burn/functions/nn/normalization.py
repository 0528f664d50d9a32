"""Normalization layers: elements moved and scaled to mean 0 and variance 1."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from burn.errors import OperandTypeError, ShapeError
from burn.functions.common import dispatch
from burn.functions.manipulation import permute_dims
from burn.functions.normalize import normalize_axes, rank_of
from burn.functions.views import independent
from burn.ops.arguments import real_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from burn.tensor.tensor import Tensor

__all__ = [
    "batch_norm",
    "batch_norm_training",
    "group_norm",
    "instance_norm",
    "layer_norm",
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
    """``(x - mean) / sqrt(variance + epsilon) * gamma + beta`` over one axis or several.

    Parameters
    ----------
    x : Tensor
        Float tensor.
    gamma, beta : Tensor, optional
        Scale and shift, with the lengths of the normalized axes, in the order of `axis`.
    axis : int or tuple of int
        Axes that are normalized together (the last by default).
    epsilon : float
        What the variance is increased by.

    Returns
    -------
    Tensor
        In the shape of `x` (Ba et al., 2016, arXiv:1607.06450).

    Examples
    --------
    >>> import burn
    >>> from burn.nn import functional as F
    >>> x = burn.asarray([[1.0, 3.0], [5.0, 5.0]], device="cpu")
    >>> burn.round(F.layer_norm(x, epsilon=0.0001)).tolist()
    [[-1.0, 1.0], [0.0, 0.0]]
    """
    number = _epsilon(epsilon, "layer_norm")

    def normalize(rows: Tensor, *parameters: Tensor | None) -> Tensor:
        return dispatch.execute("layer_norm", rows, *parameters, epsilon=number)  # type: ignore[no-any-return]  # one output

    return _over_axes(normalize, x, (gamma, beta), axis, "layer_norm")


def rms_norm(
    x: Tensor,
    gamma: Tensor | None = None,
    /,
    *,
    axis: int | tuple[int, ...] = -1,
    epsilon: float = 1e-5,
) -> Tensor:
    """``x / sqrt(mean(x**2) + epsilon) * gamma`` over one axis or several.

    See `layer_norm` for the parameters (Zhang and Sennrich, 2019, arXiv:1910.07467).
    """
    number = _epsilon(epsilon, "rms_norm")

    def normalize(rows: Tensor, *parameters: Tensor | None) -> Tensor:
        return dispatch.execute("rms_norm", rows, *parameters, epsilon=number)  # type: ignore[no-any-return]  # one output

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
        What the variance is increased by.
    """
    return dispatch.execute(  # type: ignore[no-any-return]  # one output
        "batch_norm",
        x,
        gamma,
        beta,
        mean,
        variance,
        epsilon=_epsilon(epsilon, "batch_norm"),
    )


class BatchNormStep(NamedTuple):
    """What a step of training makes of a batch, and the statistics after it."""

    output: Any
    running_mean: Any
    running_variance: Any


def batch_norm_training(
    x: Tensor,
    running_mean: Tensor,
    running_variance: Tensor,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    /,
    *,
    momentum: float = 0.1,
    epsilon: float = 1e-5,
) -> BatchNormStep:
    """`batch_norm` with the statistics of the batch, which running ones are moved towards.

    Parameters
    ----------
    x : Tensor, shape (N, C, ...)
        Float tensor with channels along axis 1, and more than one element of each.
    running_mean, running_variance : Tensor, shape (C,)
        Statistics so far; zeros and ones before the first step. They are not changed.
    gamma, beta : Tensor, shape (C,), optional
        Scale and shift of each channel.
    momentum : float
        Share of the batch in the new running statistics.
    epsilon : float
        What the variance is increased by.

    Returns
    -------
    BatchNormStep
        ``output`` in the shape of `x`, and ``running_mean`` and ``running_variance``: they are
        ``(1 - momentum) * old + momentum * new``, where the variance of the batch is divided by
        ``n - 1`` (Ioffe and Szegedy, 2015, arXiv:1502.03167, algorithm 2). No gradient goes
        through them.

    Raises
    ------
    ShapeError
        If a channel has fewer than two elements, whose variance says nothing.
    """
    rank = rank_of(x, "batch_norm_training")
    share = real_number(momentum, "momentum", "batch_norm_training", least=0.0, most=1.0)
    number = _epsilon(epsilon, "batch_norm_training")
    count = math.prod(x.shape) // x.shape[1] if rank > 1 and x.shape[1] else 0
    if rank > 1 and x.shape[1] and count < 2:
        raise ShapeError(
            f"x of shape {x.shape} has {count} elements for each channel",
            hint="The variance of a batch needs two at least",
            operation="batch_norm_training",
        )
    output, mean, variance = dispatch.execute("batch_norm_training", x, gamma, beta, epsilon=number)
    for name, statistic in (("running_mean", running_mean), ("running_variance", running_variance)):
        if rank_of(statistic, "batch_norm_training") != 1 or statistic.shape != mean.shape:
            raise ShapeError(
                f"{name} has shape {statistic.shape} where {mean.shape} is needed",
                operation="batch_norm_training",
            )
    unbiased = count / (count - 1) if count > 1 else 1.0
    return BatchNormStep(
        output,
        _moved(running_mean, mean, share, 1.0),
        _moved(running_variance, variance, share, unbiased),
    )


def _moved(old: Tensor, new: Tensor, share: float, factor: float) -> Tensor:
    return old.detach() * (1.0 - share) + new.detach() * (share * factor)


def group_norm(
    x: Tensor,
    groups: int,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    /,
    *,
    epsilon: float = 1e-5,
) -> Tensor:
    """Normalize each group of channels of each example (Wu and He, 2018, arXiv:1803.08494).

    Parameters
    ----------
    x : Tensor, shape (N, C, ...)
        Float tensor with channels along axis 1.
    groups : int
        Number of groups of neighbouring channels; it divides C.
    gamma, beta : Tensor, shape (C,), optional
        Scale and shift of each channel.
    epsilon : float
        What the variance is increased by.

    Raises
    ------
    ShapeError
        If there are no channels along axis 1, or not that many groups of them.
    """
    if isinstance(groups, bool) or not isinstance(groups, int):
        raise OperandTypeError(f"groups must be an integer, not {groups!r}", operation="group_norm")
    return _group_norm(x, groups, gamma, beta, epsilon, "group_norm")


def instance_norm(
    x: Tensor,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    /,
    *,
    epsilon: float = 1e-5,
) -> Tensor:
    """Normalize each channel of each example (Ulyanov et al., 2016, arXiv:1607.08022).

    See `group_norm` for the parameters.
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
    count, channels, *places = x.shape
    if groups < 1 or channels % groups:
        raise ShapeError(
            f"{channels} channels cannot be divided into {groups} groups",
            hint="The number of groups divides the number of channels",
            operation=operation,
        )
    rows = x.reshape((count, groups, channels // groups * math.prod(places)))
    number = _epsilon(epsilon, operation)
    normal: Tensor = dispatch.execute("layer_norm", rows, None, None, epsilon=number)
    normal = independent(normal.reshape(x.shape))
    column = (channels, *[1] * len(places))
    if gamma is not None:
        _check_parameter(gamma, "gamma", (channels,), operation)
        normal = normal * gamma.reshape(column)
    if beta is not None:
        _check_parameter(beta, "beta", (channels,), operation)
        normal = normal + beta.reshape(column)
    return normal


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
    """Apply what normalizes the last axis to any axes, as one."""
    rank = rank_of(x, operation)
    axes = normalize_axes(x, axis, operation)
    if axes == (rank - 1,):
        return normalize(x, *parameters)
    order = (*[number for number in range(rank) if number not in axes], *axes)
    moved = permute_dims(x, order)
    lengths = tuple([x.shape[number] for number in axes])
    vectors = []
    for name, parameter in zip(("gamma", "beta"), parameters, strict=False):
        if parameter is not None:
            _check_parameter(parameter, name, lengths, operation)
        vectors.append(None if parameter is None else parameter.reshape((math.prod(lengths),)))
    kept = moved.shape[: rank - len(axes)]
    result = normalize(moved.reshape((*kept, math.prod(lengths))), *vectors)
    inverse = tuple([order.index(number) for number in range(rank)])
    return independent(permute_dims(result.reshape(moved.shape), inverse))


def _check_parameter(
    parameter: Tensor, name: str, expected: tuple[int, ...], operation: str
) -> None:
    rank_of(parameter, operation)
    if tuple(parameter.shape) != expected:
        raise ShapeError(
            f"{name} has shape {parameter.shape} where {expected} is needed", operation=operation
        )


def _epsilon(value: float, operation: str) -> float:
    return real_number(value, "epsilon", operation, least=0.0, below=math.inf)
