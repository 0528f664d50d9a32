"""The text of an expression by running a decomposition, which then is the only definition."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NoReturn

from burn.dtype import DType, Kind
from burn.errors import UnsupportedOpError
from burn.ops import REGISTRY, Op, Tag
from burn.ops.signature import Role

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["text_of_decomposition"]


class _NoTextError(Exception):
    """Raised where a decomposition does more than to compute with numbers."""


def _arithmetic(symbol: str, *, reflected: bool = False) -> Callable[[_Name, Any], _Name]:
    def combined(self: _Name, other: Any) -> _Name:
        left, right = (other, self) if reflected else (self, other)
        return _Name(f"({_written(left)} {symbol} {_written(right)})")

    return combined


class _Name:
    """A value of the text: an operand, an attribute that is a number, or what an op gives."""

    shape: Final = ()

    def __init__(self, name: str) -> None:
        self.name = name

    __add__, __radd__ = _arithmetic("+"), _arithmetic("+", reflected=True)
    __sub__, __rsub__ = _arithmetic("-"), _arithmetic("-", reflected=True)
    __mul__, __rmul__ = _arithmetic("*"), _arithmetic("*", reflected=True)
    __truediv__, __rtruediv__ = _arithmetic("/"), _arithmetic("/", reflected=True)

    def __neg__(self) -> _Name:
        return _Name(f"(-{self.name})")

    def _unknown(self, *_: object) -> NoReturn:
        raise _NoTextError("it depends on a value")

    __bool__ = __float__ = __index__ = _unknown
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _unknown
    __hash__ = object.__hash__


class _Lines:
    """What stands in for an op table: each op is a line that names its result."""

    def __init__(self, dtype: DType) -> None:
        self.lines: list[str] = []
        self._dtype = dtype

    def dtype(self, x: _Name) -> DType:
        """The dtype of the operands."""
        del x
        return self._dtype

    def __getattr__(self, name: str) -> Callable[..., _Name]:
        op = REGISTRY.get(name)
        if op is None or Tag.ELEMENTWISE not in op.tags:
            raise _NoTextError(f"it uses {name}")

        def write(*operands: Any, **attributes: Any) -> _Name:
            values = [
                attributes.get(name, attribute.default) for name, attribute in op.attributes.items()
            ]
            result = _Name(f"v{len(self.lines)}")
            written = ", ".join(map(_written, [*operands, *values]))
            self.lines.append(f"{result.name} = {name}({written})")
            return result

        return write


def _written(value: Any) -> str:
    if isinstance(value, _Name):
        return value.name
    if not isinstance(value, (bool, int, float)):
        raise _NoTextError(f"it uses {value!r}")
    if math.isfinite(value):
        return repr(value)
    if math.isnan(value):
        return "(infinity - infinity)"
    return "infinity" if value > 0.0 else "-infinity"


def text_of_decomposition(op: Op, kind: Kind, choice: str | None = None) -> str | None:
    """The decomposition of an elementwise op as the text of an expression.

    Parameters
    ----------
    op : Op
        The op.
    kind : Kind
        The kind of the dtype of its operands.
    choice : str, optional
        Value of its attribute that is a choice, if it has one.

    Returns
    -------
    str or None
        A line for each op, and the name of the result. None if the op has no decomposition, or one
        that is not made of elementwise ops alone, or depends on a value or on the size of a dtype.

    Examples
    --------
    >>> from burn.dtype import Kind
    >>> from burn.kernels.decomposed_text import text_of_decomposition
    >>> from burn.ops import REGISTRY
    >>> print(text_of_decomposition(REGISTRY["tan"], Kind.FLOAT))
    v0 = sin(x)
    v1 = cos(x)
    v2 = divide(v0, v1)
    v2
    """
    if op.default is None:
        return None
    attributes = {
        attribute.name: choice if attribute.role is Role.CHOICE else _Name(attribute.name)
        for attribute in op.attributes.values()
    }
    # 16-bit floats are widened to the dtype of others, in kernels as in decompositions.
    dtypes = [dtype for dtype in DType.members() if dtype.kind == kind]
    texts = set()
    for dtype in dtypes:
        if dtype.is_float and dtype.itemsize == 2:
            continue
        table = _Lines(dtype)
        try:
            result = op.default(table, *map(_Name, op.operands), **attributes)
            texts.add("\n".join([*table.lines, _written(result)]))
        except (_NoTextError, UnsupportedOpError):
            return None
    return texts.pop() if len(texts) == 1 else None
