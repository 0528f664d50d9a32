"""NumPy's ufuncs on tensors: those of operators compute, all others are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.dispatch import DispatchTensor
from burn.errors import OperandTypeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from burn.tensor.tensor import Tensor

__all__ = ["array_ufunc"]

_REFLECTED: Final = {
    "add": "__radd__",
    "subtract": "__rsub__",
    "multiply": "__rmul__",
    "divide": "__rtruediv__",
    "floor_divide": "__rfloordiv__",
    "remainder": "__rmod__",
    "power": "__rpow__",
    "matmul": "__rmatmul__",
    "bitwise_and": "__rand__",
    "bitwise_or": "__ror__",
    "bitwise_xor": "__rxor__",
    "left_shift": "__rlshift__",
    "right_shift": "__rrshift__",
    "equal": "__eq__",
    "not_equal": "__ne__",
    "less": "__gt__",
    "less_equal": "__ge__",
    "greater": "__lt__",
    "greater_equal": "__le__",
}
"""The method of the right operand for each ufunc that implements an operator."""

_COMPARISONS: Final = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}
"""Ufuncs that NumPy calls with a 0-d array in place of a scalar."""

_NAMES: Final = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "conjugate": "conj",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "power": "pow",
    "right_shift": "bitwise_right_shift",
    "rint": "round",
}
"""Ufuncs whose name in the array API standard is another one."""


def array_ufunc(
    x: Tensor,
    function: np.ufunc,
    method: str,
    inputs: Sequence[Any],
    options: Mapping[str, Any],
) -> Any:
    """Apply the operator that NumPy was called for to its left operand and the tensor.

    Raises
    ------
    OperandTypeError
        For any other function of NumPy; it names the function of burn to call.
    """
    name = function.__name__
    reflected = _REFLECTED.get(name)
    left = inputs[0]
    if reflected and method == "__call__" and not options and not isinstance(left, DispatchTensor):
        if isinstance(left, np.generic) or (name in _COMPARISONS and left.shape == ()):
            left = left.item()  # a Python number takes the fast path of an operator
        result = getattr(x, reflected)(left)
        if result is not NotImplemented:
            return result
    own_name = _NAMES.get(name, name)
    exists = method == "__call__" and hasattr(x.__array_namespace__(), own_name)
    instead = f"Call burn.{own_name}" if exists else "Call a function of burn"
    arrays = [source for source in inputs if not isinstance(source, DispatchTensor)]
    both = ", with all arrays made tensors by burn.asarray()" if arrays else ""
    raise OperandTypeError(
        "NumPy's functions take no tensors",
        hint=f"{instead}{both}; or convert the tensor with .numpy()",
        operation=f"numpy.{name}" if method == "__call__" else f"numpy.{name}.{method}",
    )
