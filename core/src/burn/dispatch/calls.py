"""Functions behind operators: where the operands agree, they go straight to the op of the device.

A call is resolved once per type of its operands (`burn.dispatch.resolution`) and then costs two
look-ups. Operands of two types, and numbers that promote, go to `Dispatch.execute`. A call that
fails goes to `Dispatch.recover`, after the handler: so users see one error without a context. The
functions repeat each other because one more call between them takes a tenth of a small op.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from burn.dispatch._operands import DispatchTensor
from burn.dispatch.resolution import resolve_uniform
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
            tensor_type = x.tensor_type
            try:
                function, output = tensor_type.calls[name]
            except KeyError:
                function, output = resolve_uniform(name, (x,), tensor_type)
            primitive = function(x.primitive, **attrs)
        except Exception as error:  # noqa: BLE001 — `recover` says what is wrong
            failure = error
        else:
            result = _new(x.__class__)
            result.primitive = primitive
            result.tensor_type = output or tensor_type.device.types[primitive.dtype]
            result.link = None
            return result
        recovered: _Tensor = dispatch.recover(failure, name, (x,), attrs)
        return recovered

    return call


def unary_by_dict(
    dispatch: Dispatch[_Tensor], name: str
) -> Callable[[_Tensor, dict[str, Any]], _Tensor]:
    """Like `unary` for an op whose output has the dtype of its operand: views, sums of floats.

    The attributes come in a dict, which views keep: it is not copied.
    """

    def call(x: _Tensor, attrs: dict[str, Any], /) -> _Tensor:
        try:
            tensor_type = x.tensor_type
            try:
                function, _ = tensor_type.calls[name]
            except KeyError:
                function, _ = resolve_uniform(name, (x,), tensor_type)
            primitive = function(x.primitive, **attrs)
        except Exception as error:  # noqa: BLE001 — `recover` says what is wrong
            failure = error
        else:
            result = _new(x.__class__)
            result.primitive = primitive
            result.tensor_type = tensor_type
            result.link = None
            return result
        recovered: _Tensor = dispatch.recover(failure, name, (x,), attrs)
        return recovered

    return call


def _unary_without_attributes(dispatch: Dispatch[_Tensor], name: str) -> Callable[..., _Tensor]:
    """`unary` once more for most ops: to hand on no attributes takes a sixth of a small op."""

    def call(x: _Tensor, /) -> _Tensor:
        try:
            tensor_type = x.tensor_type
            try:
                function, output = tensor_type.calls[name]
            except KeyError:
                function, output = resolve_uniform(name, (x,), tensor_type)
            primitive = function(x.primitive)
        except Exception as error:  # noqa: BLE001 — `recover` says what is wrong
            failure = error
        else:
            result = _new(x.__class__)
            result.primitive = primitive
            result.tensor_type = output or tensor_type.device.types[primitive.dtype]
            result.link = None
            return result
        recovered: _Tensor = dispatch.recover(failure, name, (x,), {})
        return recovered

    return call


def binary(  # noqa: C901 — unrolled, as one more call takes a tenth of a small op
    dispatch: Dispatch[_Tensor], name: str
) -> Callable[[Any, Any], _Tensor]:
    """Function of two operands that runs an op."""

    def call(x1: Any, x2: Any, /) -> _Tensor:  # noqa: C901 — likewise
        try:
            tensor_type, first = x1.tensor_type, x1.primitive
        except AttributeError:
            tensor_type = None
        if tensor_type is None:  # a number, or what is no operand
            return dispatch.execute_one(name, x1, x2)
        if x2.__class__ is x1.__class__:
            second, other = x2.primitive, x2.tensor_type
            if other is not tensor_type and other not in tensor_type.constants:
                if tensor_type not in other.constants:
                    return dispatch.execute_one(name, x1, x2)
                tensor_type = other
        else:
            try:
                second = tensor_type.scalars[x2.__class__](x2)
            except (KeyError, OverflowError):
                second = None
            if second is None:  # a number that promotes, or what is no operand
                return dispatch.execute_one(name, x1, x2)
        try:
            try:
                function, output = tensor_type.calls[name]
            except KeyError:
                function, output = resolve_uniform(name, (x1, x2), tensor_type)
            primitive = function(first, second)
        except Exception as error:  # noqa: BLE001 — `recover` says what is wrong
            failure = error
        else:
            result = _new(x1.__class__)
            result.primitive = primitive
            result.tensor_type = output or tensor_type.device.types[primitive.dtype]
            result.link = None
            return result  # type: ignore[no-any-return]  # of the class of x1
        recovered: _Tensor = dispatch.recover(failure, name, (x1, x2), {})
        return recovered

    return call


def reflected(dispatch: Dispatch[_Tensor], name: str) -> Callable[[Any, Any], _Tensor]:
    """Like `binary` with the operands exchanged, for ``number + tensor``."""

    def call(x2: Any, x1: Any, /) -> _Tensor:
        tensor_type = x2.tensor_type
        try:
            first = tensor_type.scalars[x1.__class__](x1)
        except (KeyError, OverflowError):
            first = None
        if first is None:  # a number that promotes, or what is no operand
            return dispatch.execute_one(name, x1, x2)
        try:
            try:
                function, output = tensor_type.calls[name]
            except KeyError:
                function, output = resolve_uniform(name, (x1, x2), tensor_type)
            primitive = function(first, x2.primitive)
        except Exception as error:  # noqa: BLE001 — `recover` says what is wrong
            failure = error
        else:
            result = _new(x2.__class__)
            result.primitive = primitive
            result.tensor_type = output or tensor_type.device.types[primitive.dtype]
            result.link = None
            return result  # type: ignore[no-any-return]  # of the class of x2
        recovered: _Tensor = dispatch.recover(failure, name, (x1, x2), {})
        return recovered

    return call
