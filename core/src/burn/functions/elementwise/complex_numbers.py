"""Complex numbers, and their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.docstrings import documented_as
from burn.functions.common import op_function
from burn.functions.elementwise.trigonometric import atan2

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "angle",
    "complex",
    "conj",
    "imag",
    "real",
]


@op_function
def real(x: Tensor, /) -> Tensor:
    """Real part of each element.

    Parameters
    ----------
    x : Tensor
        Numbers.

    Returns
    -------
    Tensor
        Of the shape of `x`, and the dtype of its parts; a real number is its own real part.

    Raises
    ------
    DTypeError
        If `x` is boolean.

    Examples
    --------
    >>> import burn
    >>> burn.real(burn.asarray([1 + 2j], device="cpu")).tolist()
    [1.0]
    """


@op_function
@documented_as(real)
def imag(x: Tensor, /) -> Tensor:
    """Imaginary part of each element.

    Returns
    -------
    Tensor
        Of the shape of `x`, and the dtype of its parts; of a real number it is 0.

    Examples
    --------
    >>> import burn
    >>> burn.imag(burn.asarray([1 + 2j], device="cpu")).tolist()
    [2.0]
    """


@op_function
@documented_as(real)
def conj(x: Tensor, /) -> Tensor:
    """Complex conjugate of each element.

    Returns
    -------
    Tensor
        Of the shape and dtype of `x`; a real number is its own conjugate.

    Examples
    --------
    >>> import burn
    >>> burn.conj(burn.asarray([1 + 2j], device="cpu")).tolist()
    [(1-2j)]
    """


@op_function
def complex(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Complex numbers from their real and imaginary parts.

    Parameters
    ----------
    x1 : Tensor
        Real parts.
    x2 : Tensor
        Imaginary parts, of a shape that broadcasts with that of `x1`.

    Returns
    -------
    Tensor
        Of the shape to which the parts broadcast: complex128 of float64, else complex64.

    Raises
    ------
    DTypeError
        If a part is boolean or complex.
    OperandTypeError
        If a part is no tensor.
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import burn
    >>> re, im = burn.asarray([1.0], device="cpu"), burn.asarray([2.0], device="cpu")
    >>> burn.complex(re, im).tolist()
    [(1+2j)]
    """


@documented_as(real)
def angle(x: Tensor, /) -> Tensor:
    """Angle in radians of each complex number: ``atan2(imag(x), real(x))``.

    Returns
    -------
    Tensor
        Of the shape of `x`, and the dtype of its parts: from -pi to pi.

    Examples
    --------
    >>> import burn
    >>> burn.angle(burn.asarray([1 + 0j, 1j], device="cpu")).tolist()
    [0.0, 1.5707963705062866]
    """
    return atan2(imag(x), real(x))
