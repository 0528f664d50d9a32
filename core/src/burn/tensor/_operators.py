"""Python's operators on tensors, indexing and iteration."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.dispatch import DispatchTensor, call_of
from burn.errors import OperandTypeError
from burn.functions import elementwise
from burn.functions.common import dispatch
from burn.functions.linalg import linear_algebra
from burn.functions.views import write
from burn.tensor import _basic_indexing as basic_indexing
from burn.tensor._attributes import TensorAttributes

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["Operators"]

_COMPARABLE: Final = (DispatchTensor, bool, int, float, complex, np.generic)
"""Types of operands that ``==`` compares with a tensor; others are compared by Python's rules."""


def _operator(op: str, *, reflected: bool = False) -> Callable[[Any, Any], Tensor]:
    """The call of an op of two operands: a tensor and a tensor or number."""
    return call_of(dispatch, op, reflected=reflected)


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
        raise OperandTypeError("a 0-d tensor has no elements to iterate over", operation="iter")
    return (basic_indexing.getitem(x, index) for index in range(x.shape[0]))


class Operators(TensorAttributes):
    """Base of `Tensor` with operators, indexing and iteration."""

    __slots__ = ()

    # Operators of two operands go straight to the op table where the operands agree.

    __add__ = _operator("add")
    __sub__ = _operator("subtract")
    __mul__ = _operator("multiply")
    __truediv__ = _operator("divide")
    __floordiv__ = _operator("floor_divide")
    __mod__ = _operator("remainder")
    __pow__ = _operator("pow")
    __and__ = _operator("bitwise_and")
    __or__ = _operator("bitwise_or")
    __xor__ = _operator("bitwise_xor")
    __lshift__ = _operator("bitwise_left_shift")
    __rshift__ = _operator("bitwise_right_shift")
    __radd__ = _operator("add", reflected=True)
    __rsub__ = _operator("subtract", reflected=True)
    __rmul__ = _operator("multiply", reflected=True)
    __rtruediv__ = _operator("divide", reflected=True)
    __rfloordiv__ = _operator("floor_divide", reflected=True)
    __rmod__ = _operator("remainder", reflected=True)
    __rpow__ = _operator("pow", reflected=True)
    __rand__ = _operator("bitwise_and", reflected=True)
    __ror__ = _operator("bitwise_or", reflected=True)
    __rxor__ = _operator("bitwise_xor", reflected=True)
    __rlshift__ = _operator("bitwise_left_shift", reflected=True)
    __rrshift__ = _operator("bitwise_right_shift", reflected=True)
    __lt__ = _operator("less")
    __le__ = _operator("less_equal")
    __gt__ = _operator("greater")
    __ge__ = _operator("greater_equal")
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
            raise OperandTypeError("a 0-d tensor has no length", operation="len")
        return self.shape[0]


_equal = _operator("equal")
_not_equal = _operator("not_equal")
