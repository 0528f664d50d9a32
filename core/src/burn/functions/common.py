"""The Dispatch of the public namespace, types of arguments, and decorators of elementwise ops."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

from burn.devices import Device
from burn.dispatch import Dispatch, DispatchTensor, call_of
from burn.dtype import DType
from burn.public_calls import rename_op

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "Axis",
    "DTypeLike",
    "DeviceLike",
    "Operand",
    "dispatch",
    "op_function",
]

Operand: TypeAlias = "Tensor | bool | int | float | complex"
Axis: TypeAlias = int | tuple[int, ...] | None
DTypeLike: TypeAlias = DType | str
DeviceLike: TypeAlias = Device | str

_Function = TypeVar("_Function", bound=Callable[..., Any])

dispatch: Dispatch[Tensor] = Dispatch(DispatchTensor)  # type: ignore[arg-type]  # Tensor sets itself


@overload
def op_function(function: _Function, /) -> _Function: ...
@overload
def op_function(op: str, /) -> Callable[[_Function], _Function]: ...
def op_function(function: Any, /) -> Any:
    """Decorator: make a definition, a signature and a docstring, the function of an op.

    The op has the name of the function, unless it is given: ``@op_function("bitwise_not")``.
    The result is the call of the op, with the signature and docstring of the definition, so a call
    passes through no other function.
    """
    if isinstance(function, str):
        return functools.partial(_defined, op=function)
    return _defined(function, op=function.__name__)


def _defined(function: _Function, *, op: str) -> _Function:
    rename_op(op, function.__name__)
    return functools.update_wrapper(call_of(dispatch, op), function)  # type: ignore[return-value]  # its signature
