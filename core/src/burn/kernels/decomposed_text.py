"""The text of an expression by running a decomposition, which then is the only definition."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from burn.dtype import DType, float32
from burn.ops import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["text_of_decomposition"]


class _Name:
    """A value of the text."""

    shape: Final = ()

    def __init__(self, name: str) -> None:
        self.name = name


class _Lines:
    """What stands in for an op table: each op is a line that names its result."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def dtype(self, x: _Name) -> DType:
        """A dtype in which a decomposition computes without casts."""
        del x
        return float32

    def __getattr__(self, op: str) -> Callable[..., _Name]:
        def write(*operands: _Name | float) -> _Name:
            result = _Name(f"v{len(self.lines)}")
            written = ", ".join([_written(operand) for operand in operands])
            self.lines.append(f"{result.name} = {op}({written})")
            return result

        return write


def _written(operand: _Name | float) -> str:
    if isinstance(operand, _Name):
        return operand.name
    if math.isfinite(operand):
        return repr(operand)
    if math.isnan(operand):
        return "(infinity - infinity)"
    return "infinity" if operand > 0.0 else "-infinity"


def text_of_decomposition(name: str) -> str:
    """The decomposition of an op, for floats, as the text of an expression.

    Parameters
    ----------
    name : str
        Name of an op without attributes. Its decomposition consists of ops that have expressions,
        and does not depend on the dtype.

    Returns
    -------
    str
        A line for each op, and the name of the result.

    Examples
    --------
    >>> from burn.kernels.decomposed_text import text_of_decomposition
    >>> print(text_of_decomposition("tan"))
    v0 = sin(x)
    v1 = cos(x)
    v2 = divide(v0, v1)
    v2
    """
    op = REGISTRY[name]
    table = _Lines()
    operands = [_Name(operand) for operand in op.operands]
    default: Any = op.default
    result = default(table, *operands)
    return "\n".join([*table.lines, result.name])
