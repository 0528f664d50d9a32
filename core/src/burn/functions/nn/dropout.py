"""Dropout: elements, or whole channels, that training leaves out at random."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from burn.docstrings import documented_as
from burn.errors import ShapeError
from burn.functions.nn.rectifier import SELU_ALPHA, SELU_SCALE
from burn.functions.normalize import as_flag, as_float, number_dtype
from burn.functions.random import bernoulli
from burn.functions.searching import where
from burn.functions.spatial_words import SIGNALS, VOLUMES
from burn.ops.arguments import real_number

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.tensor.tensor import Tensor

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d"]


def dropout(x: Tensor, /, p: float = 0.5, *, training: bool = True) -> Tensor:
    """Elements zeroed with a probability; the others are multiplied by ``1 / (1 - p)``.

    Parameters
    ----------
    x : Tensor
        Tensor of any dtype; integers give the default float dtype.
    p : float
        The probability of zero, from 0 to 1.
    training : bool
        Without it, and with a `p` of 0, the result is `x`.

    Returns
    -------
    Tensor
        In the shape of `x`.

    Raises
    ------
    ArgumentError
        If `p` is not between 0 and 1.

    Notes
    -----
    Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from Overfitting", JMLR
    2014. The generator of the device decides, so that the same seed drops the same elements on
    every backend. As in PyTorch a NaN or infinity that is dropped is NaN.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.ones(1000, device="cpu")
    >>> sorted(set(F.dropout(x, 0.75).tolist()))
    [0.0, 4.0]
    >>> F.dropout(x, 0.75, training=False) is x
    True
    """
    return _dropout(x, p, training, "dropout")


@documented_as(dropout)
def dropout2d(x: Tensor, /, p: float = 0.5, *, training: bool = True) -> Tensor:
    """Whole images zeroed with a probability; the others are multiplied by ``1 / (1 - p)``.

    The other parameters are those of `dropout`.

    Parameters
    ----------
    x : Tensor, shape (..., C, H, W)
        Images; of each channel all elements are dropped, or none.

    Raises
    ------
    ShapeError
        If `x` has too few axes.

    Notes
    -----
    Tompson et al., 2015, arXiv:1411.4280.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = F.dropout2d(burn.ones((1000, 2, 2), device="cpu"), 0.75)
    >>> sorted(set(burn.sum(x, axis=(1, 2)).tolist()))
    [0.0, 16.0]
    """
    return _dropout(x, p, training, "dropout2d", axis_count=2)


@documented_as(dropout2d, SIGNALS)
def dropout1d(x: Tensor, /, p: float = 0.5, *, training: bool = True) -> Tensor:
    """Whole signals zeroed with a probability; the others are multiplied by ``1 / (1 - p)``.

    The parameters are those of `dropout`, with `x` of shape (..., C, L).

    Notes
    -----
    Tompson et al., 2015, arXiv:1411.4280.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = F.dropout1d(burn.ones((1000, 3), device="cpu"), 0.75)
    >>> sorted(set(burn.sum(x, axis=1).tolist()))
    [0.0, 12.0]
    """
    return _dropout(x, p, training, "dropout1d", axis_count=1)


@documented_as(dropout2d, VOLUMES)
def dropout3d(x: Tensor, /, p: float = 0.5, *, training: bool = True) -> Tensor:
    """Whole volumes zeroed with a probability; the others are multiplied by ``1 / (1 - p)``.

    The parameters are those of `dropout`, with `x` of shape (..., C, D, H, W).

    Notes
    -----
    Tompson et al., 2015, arXiv:1411.4280.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = F.dropout3d(burn.ones((1000, 2, 2, 2), device="cpu"), 0.75)
    >>> sorted(set(burn.sum(x, axis=(1, 2, 3)).tolist()))
    [0.0, 32.0]
    """
    return _dropout(x, p, training, "dropout3d", axis_count=3)


@documented_as(dropout)
def alpha_dropout(x: Tensor, /, p: float = 0.5, *, training: bool = True) -> Tensor:
    """Dropout for `selu`: what is dropped is the least value of that function.

    The other parameters are those of `dropout`.

    Parameters
    ----------
    p : float
        The probability of an element to be dropped, from 0 to 1.

    Returns
    -------
    Tensor
        In the shape of `x`, scaled and shifted: of elements of mean 0 and variance 1 it has the
        same mean and variance. All elements are 0 where `p` is 1.

    Notes
    -----
    Klambauer et al., 2017, arXiv:1706.02515.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> len(set(F.alpha_dropout(burn.zeros(1000, device="cpu"), 0.25).tolist()))
    2
    """
    x = as_float(x, "alpha_dropout")
    p = _probability(p, "alpha_dropout")
    if not as_flag(training, "training", "alpha_dropout") or p == 0.0:
        return x
    least = -SELU_SCALE * SELU_ALPHA
    scale = 1.0 / math.sqrt((1.0 - p) * (1.0 + p * least * least)) if p < 1.0 else 0.0
    shift = -scale * p * least
    kept = bernoulli(x.shape, 1.0 - p, device=x.device)
    return where(kept, x * scale + shift, least * scale + shift)


def _dropout(x: Tensor, p: float, training: bool, operation: str, *, axis_count: int = 0) -> Tensor:
    """Dropout of the elements, or of all that differ in the last axes alone."""
    x = as_float(x, operation)
    if axis_count and x.ndim <= axis_count:
        raise ShapeError(
            f"x of shape {x.shape} has no channels",
            hint=f"The channels stand before the last {axis_count} axes",
            operation=operation,
        )
    p = _probability(p, operation)
    if not as_flag(training, "training", operation) or p == 0.0:
        return x
    shape: Shape = x.shape
    if axis_count:
        shape = (*shape[:-axis_count], *[1] * axis_count)
    kept = bernoulli(shape, 1.0 - p, device=x.device)
    return x * (kept.astype(number_dtype(x)) * (1.0 / (1.0 - p) if p < 1.0 else 0.0))


def _probability(p: float, operation: str) -> float:
    return real_number(p, "p", operation, least=0.0, most=1.0)
