"""HostNumber: arithmetic on numbers that each run of a program gets anew."""

from __future__ import annotations

import numbers
import re
from typing import Any, Final, NoReturn

from burn.ir.graph import ScalarIr

__all__ = ["HostNumber"]

_SCALAR: Final = re.compile(r"s(\d+)|\(s(\d+) \+ (-?\d+)\)")
"""The text of a scalar, to which an integer may be added."""


class HostNumber:
    """A Python expression of scalars of a program, which each run computes in double precision.

    Decompositions of ops compute with it as with a number: ``learning_rate / (1.0 - beta**step)``.
    Its value is not known, so it cannot be compared.

    Parameters
    ----------
    text : str
        The expression; the scalar with the number 3 is ``s3`` in it.
    kind : type
        int or float: what the expression gives.

    Examples
    --------
    >>> from burn.ir import ScalarIr
    >>> step = HostNumber.of(ScalarIr(3, int))
    >>> (1.0 - 0.9**step).text
    '(1.0 - (0.9 ** s3))'
    """

    __slots__ = ("kind", "text")

    def __init__(self, text: str, kind: type[int | float]) -> None:
        self.text: Final = text
        self.kind: Final = kind

    @staticmethod
    def of(scalar: ScalarIr) -> HostNumber:
        """The number of a scalar."""
        text = f"(s{scalar.id} + {scalar.plus})" if scalar.plus else f"s{scalar.id}"
        return HostNumber(text, scalar.kind)

    def simplest(self) -> ScalarIr | HostNumber:
        """The scalar that this is, which an attribute of a program can be; else this itself."""
        found = _SCALAR.fullmatch(self.text)
        if found is None:
            return self
        return ScalarIr(int(found[1] or found[2]), self.kind, int(found[3] or 0))

    @property
    def scalars(self) -> tuple[int, ...]:
        """The numbers of the scalars in the expression."""
        return tuple([int(item) for item in re.findall(r"\bs(\d+)", self.text)])

    def __repr__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        if isinstance(other, numbers.Number):
            self._refuse()
        return isinstance(other, HostNumber) and (self.text, self.kind) == (other.text, other.kind)

    def __hash__(self) -> int:
        return hash((self.text, self.kind))

    def _refuse(self, *_: object) -> NoReturn:
        raise ScalarIr(0, self.kind).unknown()

    __bool__ = __float__ = __index__ = __int__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __abs__ = __round__ = __trunc__ = __floor__ = __ceil__ = (
        _refuse
    )
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __lshift__ = __rlshift__ = _refuse
    __rshift__ = __rrshift__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _refuse

    def __neg__(self) -> HostNumber:
        return HostNumber(f"(-{self.text})", self.kind)

    def __add__(self, other: Any) -> HostNumber:
        return _combined(self, "+", other)

    def __radd__(self, other: Any) -> HostNumber:
        return _combined(other, "+", self)

    def __sub__(self, other: Any) -> HostNumber:
        return _combined(self, "-", other)

    def __rsub__(self, other: Any) -> HostNumber:
        return _combined(other, "-", self)

    def __mul__(self, other: Any) -> HostNumber:
        return _combined(self, "*", other)

    def __rmul__(self, other: Any) -> HostNumber:
        return _combined(other, "*", self)

    def __truediv__(self, other: Any) -> HostNumber:
        return _combined(self, "/", other)

    def __rtruediv__(self, other: Any) -> HostNumber:
        return _combined(other, "/", self)

    def __pow__(self, other: Any) -> HostNumber:
        return _combined(self, "**", other)

    def __rpow__(self, other: Any) -> HostNumber:
        return _combined(other, "**", self)


def _combined(left: Any, operator: str, right: Any) -> HostNumber:
    """An operation of two numbers, of which one at least is a HostNumber."""
    for tensor in (left, right):
        if tensor.__class__ not in {HostNumber, int, float}:
            return NotImplemented  # type: ignore[no-any-return]  # Python raises TypeError
    kinds = [
        tensor.kind if tensor.__class__ is HostNumber else type(tensor) for tensor in (left, right)
    ]
    kind = int if kinds == [int, int] and operator in {"+", "-", "*"} else float
    return HostNumber(f"({left!r} {operator} {right!r})", kind)
