"""Covariance and correlation of variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.dispatch import DispatchTensor
from burn.docstrings import documented_as
from burn.errors import DTypeError, OperandTypeError, ShapeError
from burn.functions._spread import accumulation_dtype, finite_correction
from burn.functions.elementwise import clip, maximum, sqrt
from burn.functions.manipulation import matrix_transpose
from burn.functions.normalize import as_flag, as_float, rank_of
from burn.functions.quantization import numbers_of
from burn.functions.statistical import mean, sum
from burn.public_calls import shown_value

if TYPE_CHECKING:
    from burn.dtype import DType
    from burn.tensor.tensor import Tensor

__all__ = ["corrcoef", "cov"]


def cov(
    x: Tensor,
    /,
    *,
    correction: float = 1.0,
    rowvar: bool = True,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """Covariance of variables over observations.

    Parameters
    ----------
    x : Tensor, shape (..., variables, observations)
        Real tensor; integers give the default float dtype. A vector has the observations of one
        variable; axes before the last two are those of a batch.
    correction : float
        What the number of observations is reduced by in the divisor.
    rowvar : bool
        Whether the variables are the rows; otherwise they are the columns.
    fweights : Tensor, shape (observations,), optional
        How often each observation was made: integers that are not negative.
    aweights : Tensor, shape (observations,), optional
        Weights of the observations that are not negative: how reliable each is.

    Returns
    -------
    Tensor, shape (..., variables, variables)
        0-d for a vector or one variable, like NumPy's; a batch keeps its matrices.

    Raises
    ------
    DTypeError
        If `fweights` has another dtype than one of integers, or a tensor is complex.
    ShapeError
        If `x` is a number, or weights are no vector with an element for each observation.

    Notes
    -----
    With the weights w, which are the products of both, the divisor is
    ``sum(w) - correction * sum(w * aweights) / sum(w)``, as in NumPy.

    Examples
    --------
    >>> import burn
    >>> burn.cov(burn.asarray([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]], device="cpu")).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    result, dtype = _covariance(x, correction, fweights, aweights, "cov", rowvar=rowvar)
    return result.astype(dtype)


@documented_as(cov)
def corrcoef(x: Tensor, /, *, rowvar: bool = True) -> Tensor:
    """Correlation coefficients (Pearson's) of variables over observations.

    The parameters are those of `cov`.

    Returns
    -------
    Tensor, shape (..., variables, variables)
        Numbers in [-1, 1]: the covariances, over the standard deviations of both variables. NaN
        for a variable without spread. 0-d for a vector or one variable, like NumPy's.

    Raises
    ------
    DTypeError
        If `x` is complex.
    ShapeError
        If `x` is a number.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]], device="cpu")
    >>> burn.corrcoef(x).numpy().round(3).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    covariance, dtype = _covariance(x, 0.0, None, None, "corrcoef", rowvar=rowvar)
    if not covariance.ndim:
        return (covariance / covariance).astype(dtype)
    count = covariance.shape[-1]
    diagonal = covariance.reshape((*covariance.shape[:-2], count * count))[..., :: count + 1]
    deviation = sqrt(diagonal)
    shape = covariance.shape[:-1]
    scaled = covariance / deviation.reshape((*shape, 1))
    result = scaled / deviation.reshape((*shape[:-1], 1, count))
    return clip(result, -1.0, 1.0).astype(dtype)


def _covariance(
    x: Tensor,
    correction: float,
    fweights: Tensor | None,
    aweights: Tensor | None,
    operation: str,
    *,
    rowvar: bool,
) -> tuple[Tensor, DType]:
    """Covariances, in the dtype in which they are summed, and the dtype of the result."""
    rank = rank_of(x, operation)
    if not rank:
        raise ShapeError(
            "a number has no observations",
            hint="x has the shape (..., variables, observations)",
            operation=operation,
        )
    correction = finite_correction(correction, operation)
    if x.dtype.is_complex:
        raise DTypeError(f"x must be real, not {x.dtype}", operation=operation)
    in_rows = as_flag(rowvar, "rowvar", operation)
    x = numbers_of(as_float(x, operation))
    rows = x.reshape((1, -1)) if rank == 1 else x if in_rows else matrix_transpose(x)
    rows = rows.astype(accumulation_dtype(x))
    count = rows.shape[-1]
    weights = _weights(rows, fweights, aweights, operation)
    if weights is None:
        distance = rows - mean(rows, axis=-1, keepdims=True)
        result = distance @ matrix_transpose(distance) / max(count - correction, 0.0)
    else:
        total = sum(weights)
        distance = rows - sum(rows * weights, axis=-1, keepdims=True) / total
        less: Tensor | float = correction
        if aweights is not None:
            less = sum(weights * aweights.astype(rows.dtype)) * correction / total
        result = (distance * weights) @ matrix_transpose(distance) / maximum(total - less, 0.0)
    return result.reshape((), copy=True) if result.shape == (1, 1) else result, x.dtype


def _weights(
    rows: Tensor, fweights: Tensor | None, aweights: Tensor | None, operation: str
) -> Tensor | None:
    """The product of both weights of the observations; None without any."""
    result = None
    for name, tensor in (("fweights", fweights), ("aweights", aweights)):
        if tensor is None:
            continue
        if not isinstance(tensor, DispatchTensor):
            raise OperandTypeError(
                f"{name} must be a tensor, not {shown_value(tensor)}", operation=operation
            )
        if tensor.shape != rows.shape[-1:]:
            raise ShapeError(
                f"{name} of shape {tensor.shape} for {rows.shape[-1]} observations",
                hint="A vector has a weight for each observation",
                operation=operation,
            )
        if tensor.dtype.is_complex or (name == "fweights" and not tensor.dtype.is_integer):
            raise DTypeError(
                f"{name} of {tensor.dtype}",
                hint="fweights are integers, aweights real numbers",
                operation=operation,
            )
        tensor = tensor.astype(rows.dtype)  # noqa: PLW2901 — the same weights
        result = tensor if result is None else result * tensor
    return result
