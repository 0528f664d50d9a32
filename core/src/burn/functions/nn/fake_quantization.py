"""Fake quantization: floats that are rounded to what a quantized tensor can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.errors import OperandTypeError
from burn.functions.normalize import check_tensor
from burn.functions.quantization import QParams, dequantize, numbers_of, quantize, quantize_dynamic
from burn.quant_scheme import QuantScheme
from burn.quantized import Calibration

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["fake_quantize"]


def fake_quantize(
    x: Tensor,
    scheme: QuantScheme,
    /,
    *,
    calibration: Calibration = Calibration.MIN_MAX,
    scales: Tensor | None = None,
) -> Tensor:
    """What quantization leaves of a tensor, in floats; its gradient passes unchanged.

    Parameters
    ----------
    x : Tensor
        Float tensor.
    scheme : QuantScheme
        How it would be stored.
    calibration : Calibration
        How the ranges of its blocks are found.
    scales : Tensor, optional
        In lieu of those that follow from the ranges.

    Returns
    -------
    Tensor
        The restored numbers, in the dtype of `x`.

    Raises
    ------
    OperandTypeError
        If `scheme` is no QuantScheme.
    ShapeError
        If the blocks of the scheme do not divide the shape.

    Notes
    -----
    The gradient is the straight-through estimator (Bengio et al., 2013, arXiv:1308.3432): that of
    the identity, also where numbers are clamped.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> from burn.quantization import QuantScheme, QuantValue
    >>> x = burn.asarray([-3.0, 0.1, 0.8, 2.0], device="cpu")
    >>> F.fake_quantize(x, QuantScheme(QuantValue.Q2S)).tolist()
    [-3.0, 0.0, 0.0, 3.0]
    """
    check_tensor(x, "x", "fake_quantize")
    if not isinstance(scheme, QuantScheme):
        raise OperandTypeError(
            f"scheme must be a QuantScheme, not {type(scheme).__name__}", operation="fake_quantize"
        )
    x = numbers_of(x)
    plain = x.detach()
    native = scheme.native  # which has the same numbers
    if scales is not None:
        codes = quantize(plain, native, QParams(scales))
    else:
        codes = quantize_dynamic(plain, native, calibration=calibration)
    rounded = dequantize(codes, x.dtype)
    return rounded + (x - plain) if x.is_tracked else rounded
