"""Products of codes, for layers whose weights and inputs are quantized."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.functions import calls
from burn.functions.quantization import part_tensors

if TYPE_CHECKING:
    from burn.quant_scheme import QuantScheme
    from burn.tensor.tensor import Tensor

__all__ = ["linear_of_codes"]


def linear_of_codes(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    /,
    scheme: QuantScheme,
    *,
    scales: Tensor | None = None,
) -> Tensor:
    """``x @ weight.T + bias`` by the codes of both, in the dtype of `x`.

    Parameters
    ----------
    x : Tensor, shape (..., in)
        Floats, which are quantized first.
    weight : Tensor, shape (out, in)
        Quantized, of one level.
    bias : Tensor, shape (out,), or None
        Added to each row of the product.
    scheme : QuantScheme
        Of `x`; of one level.
    scales : Tensor, optional
        Of `x`, in lieu of those by its largest magnitudes.

    Returns
    -------
    Tensor, shape (..., out)
        Untracked.

    Raises
    ------
    ShapeError
        If blocks do not divide `x`, or the shapes do not fit each other.
    """
    own, dtype = weight.dtype.scheme, x.dtype
    if scales is None:
        values, stored = calls.quantize_dynamic(x, scheme=scheme)
    else:
        stored = calls.round_up_scales(scales, scheme=scheme)
        values = calls.quantize_values(x, stored, None, scheme=scheme)
    if bias is not None and bias.dtype is not dtype:
        bias = bias.astype(dtype)
    codes, own_scales = part_tensors(weight)
    return calls.quantized_product(
        values,
        stored,
        codes,
        own_scales,
        bias,
        a_scheme=scheme,
        b_scheme=own,
        dtype=dtype,
        transposed=True,
    )
