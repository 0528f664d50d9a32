"""Functions behind operators: where the operands agree, they go straight to the op table.

Whatever goes wrong there, `Dispatch.execute` does the same once more, and finds out why: after the
handler, so that what is wrong is shown without what went wrong first. They repeat each other
because a function more in between takes a tenth of a small op.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from burn.dispatch.operands import DispatchTensor
from burn.ops import REGISTRY

if TYPE_CHECKING:
    from burn.dispatch.dispatch import Dispatch

__all__ = ["binary", "reflected", "unary", "unary_by_dict"]

_Tensor = TypeVar("_Tensor", bound=DispatchTensor)
_new = object.__new__


def unary(dispatch: Dispatch[_Tensor], name: str) -> Callable[..., _Tensor]:
    """Function of one tensor, and attributes, that runs an op."""
    if not REGISTRY[name].attributes:
        return _unary_without_attributes(dispatch, name)

    def call(x: _Tensor, /, **attrs: Any) -> _Tensor:
        try:
            function, output = x.tensor_type.calls[name]
            primitive = function(x.primitive, **attrs)
            result = _new(x.__class__)
            result.primitive = primitive
            result.tensor_type = output or x.tensor_type.device.types[primitive.dtype]
            result.link = None
        except Exception:  # noqa: BLE001, S110 — whatever it was, `execute` finds out why
            pass
        else:
            return result
        return dispatch.execute(name, x, **attrs)  # type: ignore[no-any-return]  # one output

    return call


def unary_by_dict(
    dispatch: Dispatch[_Tensor], name: str
) -> Callable[[_Tensor, dict[str, Any]], _Tensor]:
    """Like `unary`, with the attributes in a dict, which costs less to hand on than keywords."""

    def call(x: _Tensor, attrs: dict[str, Any], /) -> _Tensor:
        try:
            function, output = x.tensor_type.calls[name]
            primitive = function(x.primitive, **attrs)
            result = _new(x.__class__)
            result.primitive = primitive
            result.tensor_type = output or x.tensor_type.device.types[primitive.dtype]
            result.link = None
        except Exception:  # noqa: BLE001, S110 — whatever it was, `execute` finds out why
            pass
        else:
            return result
        return dispatch.execute(name, x, **attrs)  # type: ignore[no-any-return]  # one output

    return call


def _unary_without_attributes(dispatch: Dispatch[_Tensor], name: str) -> Callable[..., _Tensor]:
    """`unary` once more for most ops: to hand on no attributes takes a sixth of a small op."""

    def call(x: _Tensor, /) -> _Tensor:
        try:
            function, output = x.tensor_type.calls[name]
            primitive = function(x.primitive)
            result = _new(x.__class__)
            result.primitive = primitive
            result.tensor_type = output or x.tensor_type.device.types[primitive.dtype]
            result.link = None
        except Exception:  # noqa: BLE001, S110 — whatever it was, `execute` finds out why
            pass
        else:
            return result
        return dispatch.execute(name, x)  # type: ignore[no-any-return]  # one output

    return call


def binary(dispatch: Dispatch[_Tensor], name: str) -> Callable[[Any, Any], _Tensor]:
    """Function of two operands that runs an op."""

    def call(x1: Any, x2: Any, /) -> _Tensor:
        try:
            tensor_type = x1.tensor_type
            function, output = tensor_type.calls[name]
            if x2.__class__ is x1.__class__:
                other = x2.tensor_type
                if other is not tensor_type and other.tracking is not tensor_type:
                    if other is not tensor_type.tracking:
                        return dispatch.execute(name, x1, x2)  # type: ignore[no-any-return]  # one output
                    tensor_type = other
                    function, output = tensor_type.calls[name]
                primitive = function(x1.primitive, x2.primitive)
            else:
                primitive = function(x1.primitive, tensor_type.scalars[x2.__class__](x2))
            result = _new(x1.__class__)
            result.primitive = primitive
            result.tensor_type = output or tensor_type.device.types[primitive.dtype]
            result.link = None
        except Exception:  # noqa: BLE001, S110 — whatever it was, `execute` finds out why
            pass
        else:
            return result  # type: ignore[no-any-return]  # of the class of x1
        return dispatch.execute(name, x1, x2)  # type: ignore[no-any-return]  # one output

    return call


def reflected(dispatch: Dispatch[_Tensor], name: str) -> Callable[[Any, Any], _Tensor]:
    """Like `binary` with the operands exchanged, for ``number + tensor``."""

    def call(x2: Any, x1: Any, /) -> _Tensor:
        try:
            tensor_type = x2.tensor_type
            function, output = tensor_type.calls[name]
            primitive = function(tensor_type.scalars[x1.__class__](x1), x2.primitive)
            result = _new(x2.__class__)
            result.primitive = primitive
            result.tensor_type = output or tensor_type.device.types[primitive.dtype]
            result.link = None
        except Exception:  # noqa: BLE001, S110 — whatever it was, `execute` finds out why
            pass
        else:
            return result  # type: ignore[no-any-return]  # of the class of x2
        return dispatch.execute(name, x1, x2)  # type: ignore[no-any-return]  # one output

    return call
