"""Checks of the dtypes of operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from burn_opencl.buffers import Buffer

__all__ = ["check_dtypes"]


def check_dtypes(op: str, *operands: Buffer | None, floats: bool = False) -> None:
    """Refuse operands of several dtypes; None stands for an optional operand that is absent.

    Raises
    ------
    TypeError
        If there are several dtypes, or if `floats` is True and there is one that is no float.
    """
    dtypes = {operand.dtype for operand in operands if operand is not None}
    if len(dtypes) > 1 or (floats and not all(dtype.is_float for dtype in dtypes)):
        raise TypeError(f"{op} of {' and '.join(sorted([dtype.name for dtype in dtypes]))}")
