"""How tensors are printed, and how two of them compare in words."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.errors import ArgumentError
from burn.functions.normalize import rank_of

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
        Number of elements above which the middle is left out.
    edgeitems : int
        Elements shown at each end of an axis then.
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
    """Change how tensors are printed in this thread, or asyncio task.

    Parameters
    ----------
    **options
        Fields of `PrintOptions`; those left out keep their value.

    Returns
    -------
    PrintOptions
        The options that hold now.

    Raises
    ------
    ArgumentError
        If there is no such option.
    """
    try:
        changed = replace(_current(), **options)
    except TypeError:
        known = ", ".join(PrintOptions.__dataclass_fields__)
        raise ArgumentError(
            f"unknown print option among {', '.join(options)}", hint=f"There are {known}"
        ) from None
    _options.set(changed)
    return changed


def format_values(array: np.ndarray[Any, Any], prefix: str) -> str:
    """The values of an array as NumPy writes them, under the options that hold."""
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
        For each relative tolerance the share of elements within it.
    largest : float
        The largest absolute difference; NaN where only one of two elements is NaN.
    """

    shares: dict[float, float]
    largest: float

    def __str__(self) -> str:
        lines = [f"largest difference {self.largest:.3g}"]
        lines += [f"within {level:.0e}: {share:7.2%}" for level, share in self.shares.items()]
        return "\n".join(lines)


def check_closeness(output: Tensor, expected: Tensor, /) -> Closeness:
    """How close a result is to what was expected, for relative tolerances from 1e-1 to 1e-7.

    Parameters
    ----------
    output, expected : Tensor
        Of one shape, on any devices.

    Raises
    ------
    ArgumentError
        If their shapes differ.
    """
    for one in (output, expected):
        rank_of(one, "check_closeness")
    if output.shape != expected.shape:
        raise ArgumentError(
            f"shapes {output.shape} and {expected.shape} differ", operation="check_closeness"
        )
    arrays = [one.detach().data().array for one in (output, expected)]
    wide = np.complex128 if any(one.dtype.kind == "c" for one in arrays) else np.float64
    ours, theirs = (one.astype(wide) for one in arrays)
    with np.errstate(all="ignore"):
        same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        difference = np.where(same, 0.0, np.abs(ours - theirs))
        scale = np.maximum(np.abs(ours), np.abs(theirs))
        shares = {
            level: float(np.mean(same | (difference <= level * scale))) if ours.size else 1.0
            for level in _LEVELS
        }
    return Closeness(shares, float(difference.max(initial=0.0)))
