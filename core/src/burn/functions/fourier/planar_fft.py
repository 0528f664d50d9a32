"""Discrete Fourier transforms over two axes, those of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from burn.docstrings import documented_as
from burn.functions.fourier.fft import fftn, ifftn, irfftn, rfftn
from burn.functions.fourier.real_fourier import Norm

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["fft2", "ifft2", "irfft2", "rfft2"]


@documented_as(fftn)
def fft2(
    x: Tensor,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: Norm = "backward",
) -> Tensor:
    """Spectrum along two axes; along the last two if none are named.

    The other parameters are those of `fftn`.

    Parameters
    ----------
    axes : sequence of int
        The axes to transform.

    Examples
    --------
    >>> import burn
    >>> burn.fft.fft2(burn.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")).tolist()
    [[(10+0j), (-2+0j)], [(-4+0j), 0j]]
    """
    return fftn(x, s=s, axes=axes, norm=norm)


@documented_as(fft2)
def ifft2(
    x: Tensor,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: Norm = "backward",
) -> Tensor:
    """The signal along two axes that a spectrum belongs to: the inverse of `fft2`.

    The parameters are those of `fft2`.

    Returns
    -------
    Tensor
        Complex, with as many samples along each axis as its length in `s`.

    Examples
    --------
    >>> import burn
    >>> burn.fft.ifft2(burn.asarray([[10.0, -2.0], [-4.0, 0.0]], device="cpu")).tolist()
    [[(1+0j), (2+0j)], [(3+0j), (4+0j)]]
    """
    return ifftn(x, s=s, axes=axes, norm=norm)


@documented_as(fft2)
def rfft2(
    x: Tensor,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: Norm = "backward",
) -> Tensor:
    """Spectrum of a real signal along two axes, of which the last is halved as by `rfft`.

    The other parameters are those of `fft2`.

    Parameters
    ----------
    x : Tensor
        Real tensor.

    Returns
    -------
    Tensor
        Complex, with ``n // 2 + 1`` frequencies along the last axis for the length n of it.

    Raises
    ------
    DTypeError
        If `x` is complex, or the device has no complex numbers; `burn.signal` has transforms to
        pairs of real tensors.

    Examples
    --------
    >>> import burn
    >>> burn.fft.rfft2(burn.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")).tolist()
    [[(10+0j), (-2+0j)], [(-4+0j), 0j]]
    """
    return rfftn(x, s=s, axes=axes, norm=norm)


@documented_as(irfftn)
def irfft2(
    x: Tensor,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: Norm = "backward",
) -> Tensor:
    """The real signal along two axes that a halved spectrum belongs to: the inverse of `rfft2`.

    The other parameters are those of `irfftn`.

    Parameters
    ----------
    axes : sequence of int
        The axes to transform.

    Examples
    --------
    >>> import burn
    >>> burn.fft.irfft2(burn.asarray([[10.0, -2.0], [-4.0, 0.0]], device="cpu")).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    return irfftn(x, s=s, axes=axes, norm=norm)
