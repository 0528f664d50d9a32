"""Formatting of tensors, and a report of how close two of them are."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.errors import ArgumentError
from burn.functions.normalize import check_tensor

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["Closeness", "PrintOptions", "check_closeness", "set_print_options"]


@dataclass(frozen=True)
class PrintOptions:
    """How many digits and elements ``repr`` of a tensor shows.

    Attributes
    ----------
    precision : int
        Digits after the point.
    threshold : int
        Number of elements above which only the ends of each axis are shown.
    edgeitems : int
        Number of elements at each of these ends.
    linewidth : int
        Characters per line.
    suppress : bool
        Whether small numbers are written without an exponent.
    """

    precision: int = 8
    threshold: int = 1000
    edgeitems: int = 3
    linewidth: int = 75
    suppress: bool = False


_options: ContextVar[PrintOptions | None] = ContextVar("burn_print_options", default=None)


def _current() -> PrintOptions:
    return _options.get() or PrintOptions()


def set_print_options(**options: Any) -> PrintOptions:
    """Change the formatting of tensors in the current thread or asyncio task.

    Parameters
    ----------
    **options
        Fields of `PrintOptions`; those left out keep their value.

    Returns
    -------
    PrintOptions
        The options from now on.

    Raises
    ------
    ArgumentError
        If there is no such option.

    Examples
    --------
    >>> import burn
    >>> burn.set_print_options(precision=2).precision
    2
    >>> burn.asarray([2.0 / 3.0], device="cpu")
    Tensor([0.67], device='cpu:0')
    >>> _ = burn.set_print_options(precision=8)
    """
    try:
        changed = replace(_current(), **options)
    except TypeError:
        known = ", ".join(PrintOptions.__dataclass_fields__)
        raise ArgumentError(
            f"unknown print option among {', '.join(options)}",
            hint=f"The options are {known}",
            operation="set_print_options",
        ) from None
    _options.set(changed)
    return changed


def format_values(array: np.ndarray[Any, Any], prefix: str) -> str:
    """The values of an array as NumPy writes them, under the current options."""
    options = _current()
    return np.array2string(
        array,
        separator=", ",
        prefix=prefix,
        precision=options.precision,
        threshold=options.threshold,
        edgeitems=options.edgeitems,
        max_line_width=options.linewidth,
        suppress_small=options.suppress,
    )


_LEVELS: Final = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)


@dataclass(frozen=True)
class Closeness:
    """How close two tensors are.

    Attributes
    ----------
    shares : dict of float to float
        Share of the elements within each relative tolerance.
    largest : float
        Largest absolute difference; NaN where one element of a pair is NaN and the other is not.
    """

    shares: dict[float, float]
    largest: float

    def __str__(self) -> str:
        lines = [f"largest difference {self.largest:.3g}"]
        lines += [f"within {level:.0e}: {share:7.2%}" for level, share in self.shares.items()]
        return "\n".join(lines)


def check_closeness(output: Tensor, expected: Tensor, /) -> Closeness:
    """Compare a result with its expected values, for relative tolerances from 1e-1 to 1e-7.

    Parameters
    ----------
    output, expected : Tensor
        Tensors of one shape, on any devices.

    Returns
    -------
    Closeness
        The share of elements within each tolerance, and the largest difference.

    Raises
    ------
    ArgumentError
        If their shapes differ.

    Examples
    --------
    >>> import burn
    >>> output = burn.asarray([1.0, 2.0], device="cpu")
    >>> burn.check_closeness(output, output).largest
    0.0
    """
    check_tensor(output, "output", "check_closeness")
    check_tensor(expected, "expected", "check_closeness")
    if output.shape != expected.shape:
        raise ArgumentError(
            f"shapes {output.shape} and {expected.shape} differ", operation="check_closeness"
        )
    arrays = [tensor.detach().data().array for tensor in (output, expected)]
    wide = np.complex128 if any(array.dtype.kind == "c" for array in arrays) else np.float64
    ours, theirs = (array.astype(wide) for array in arrays)
    with np.errstate(all="ignore"):
        same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        difference = np.where(same, 0.0, np.abs(ours - theirs))
        scale = np.maximum(np.abs(ours), np.abs(theirs))
        shares = {
            level: float(np.mean(same | (difference <= level * scale))) if ours.size else 1.0
            for level in _LEVELS
        }
    return Closeness(shares, float(difference.max(initial=0.0)))
