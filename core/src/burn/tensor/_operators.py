"""Python's operators on tensors, indexing and iteration."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.dispatch import DispatchTensor, binary, reflected
from burn.errors import OperandTypeError
from burn.functions import elementwise, linear_algebra
from burn.functions.common import dispatch
from burn.functions.views import write
from burn.tensor import _basic_indexing as basic_indexing
from burn.tensor._attributes import TensorAttributes

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["Operators"]

_COMPARABLE: Final = (DispatchTensor, bool, int, float, complex, np.generic)
"""Types of operands that ``==`` compares with a tensor; others are compared by Python's rules."""


def _in_place(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The in-place form of an operator."""

    def call(x: Tensor, other: Any, /) -> Tensor:
        write(x, lambda: function(x, other), f"i{function.__name__.strip('_')}")
        return x

    return call


def _reflected_matmul(x: Tensor, other: Tensor, /) -> Tensor:
    return linear_algebra.matmul(other, x)


def _iterator(x: Tensor, /) -> Iterator[Tensor]:
    if not x.shape:
        raise OperandTypeError("a 0-d tensor has no elements to iterate over")
    return (basic_indexing.getitem(x, index) for index in range(x.shape[0]))


class Operators(TensorAttributes):
    """Base of `Tensor` with operators, indexing and iteration."""

    __slots__ = ()

    # Operators of two operands go straight to the op table where the operands agree.

    __add__ = binary(dispatch, "add")
    __sub__ = binary(dispatch, "subtract")
    __mul__ = binary(dispatch, "multiply")
    __truediv__ = binary(dispatch, "divide")
    __floordiv__ = binary(dispatch, "floor_divide")
    __mod__ = binary(dispatch, "remainder")
    __pow__ = binary(dispatch, "pow")
    __and__ = binary(dispatch, "bitwise_and")
    __or__ = binary(dispatch, "bitwise_or")
    __xor__ = binary(dispatch, "bitwise_xor")
    __lshift__ = binary(dispatch, "bitwise_left_shift")
    __rshift__ = binary(dispatch, "bitwise_right_shift")
    __radd__ = reflected(dispatch, "add")
    __rsub__ = reflected(dispatch, "subtract")
    __rmul__ = reflected(dispatch, "multiply")
    __rtruediv__ = reflected(dispatch, "divide")
    __rfloordiv__ = reflected(dispatch, "floor_divide")
    __rmod__ = reflected(dispatch, "remainder")
    __rpow__ = reflected(dispatch, "pow")
    __rand__ = reflected(dispatch, "bitwise_and")
    __ror__ = reflected(dispatch, "bitwise_or")
    __rxor__ = reflected(dispatch, "bitwise_xor")
    __rlshift__ = reflected(dispatch, "bitwise_left_shift")
    __rrshift__ = reflected(dispatch, "bitwise_right_shift")
    __lt__ = binary(dispatch, "less")
    __le__ = binary(dispatch, "less_equal")
    __gt__ = binary(dispatch, "greater")
    __ge__ = binary(dispatch, "greater_equal")
    __neg__ = elementwise.negative
    __pos__ = elementwise.positive
    __abs__ = elementwise.abs
    __invert__ = elementwise.bitwise_invert
    __matmul__ = linear_algebra.matmul
    __rmatmul__ = _reflected_matmul

    def __eq__(self, other: object, /) -> Any:
        """Elementwise equality with a tensor or number; otherwise Python's own."""
        return _equal(self, other) if isinstance(other, _COMPARABLE) else NotImplemented

    def __ne__(self, other: object, /) -> Any:
        """Elementwise inequality with a tensor or number; otherwise Python's own."""
        return _not_equal(self, other) if isinstance(other, _COMPARABLE) else NotImplemented

    __hash__ = object.__hash__

    # In place: this object, its views and what it is a view of get the value of ``x + y``.

    __iadd__ = _in_place(operator.add)
    __isub__ = _in_place(operator.sub)
    __imul__ = _in_place(operator.mul)
    __itruediv__ = _in_place(operator.truediv)
    __ifloordiv__ = _in_place(operator.floordiv)
    __imod__ = _in_place(operator.mod)
    __ipow__ = _in_place(operator.pow)
    __iand__ = _in_place(operator.and_)
    __ior__ = _in_place(operator.or_)
    __ixor__ = _in_place(operator.xor)
    __ilshift__ = _in_place(operator.lshift)
    __irshift__ = _in_place(operator.rshift)
    __imatmul__ = _in_place(operator.matmul)

    __getitem__ = basic_indexing.getitem
    __setitem__ = basic_indexing.setitem
    __iter__ = _iterator

    def __len__(self) -> int:
        if not self.shape:
            raise OperandTypeError("a 0-d tensor has no length")
        return self.shape[0]


_equal = binary(dispatch, "equal")
_not_equal = binary(dispatch, "not_equal")
