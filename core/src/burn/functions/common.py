"""The Dispatch behind the public namespace, and what its functions share."""

from __future__ import annotations

import functools
import importlib
import inspect
import logging
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from burn.devices.device import Device
from burn.dispatch import Dispatch, DispatchTensor, binary, unary
from burn.dtype import DType
from burn.ops import REGISTRY

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "Axis",
    "DTypeLike",
    "DeviceLike",
    "Operand",
    "dispatch",
    "meet_libraries",
    "of_one",
    "of_one_real",
    "of_two",
    "of_two_tensors",
]

Operand: TypeAlias = "Tensor | bool | int | float | complex"
Axis: TypeAlias = int | tuple[int, ...] | None
DTypeLike: TypeAlias = DType | str
DeviceLike: TypeAlias = Device | str

dispatch: Dispatch[Tensor] = Dispatch(DispatchTensor)  # type: ignore[arg-type]  # Tensor sets itself


def of_one(name: str) -> Callable[[Tensor], Tensor]:
    """Public function of one tensor for an elementwise op, with the op's name and description."""
    function: Callable[[Tensor], Tensor] = unary(dispatch, name)
    _publish(function, name, ["x"])
    return function


def of_one_real(name: str) -> Callable[[Tensor], Tensor]:
    """Like `of_one`, for an op of floats that leaves integers as they are."""
    function: Callable[[Tensor], Tensor] = unary(dispatch, name)

    def call(x: Tensor, /) -> Tensor:
        if isinstance(x, DispatchTensor) and x.tensor_type.dtype.is_integer:
            return dispatch.wrap(x.primitive, x.tensor_type)
        return function(x)

    _publish(call, name, ["x"])
    return call


def of_two(name: str) -> Callable[[Operand, Operand], Tensor]:
    """Public function of two operands for an elementwise op; one may be a Python number."""
    function: Callable[[Operand, Operand], Tensor] = binary(dispatch, name)
    _publish(function, name, ["x1", "x2"])
    return function


def of_two_tensors(name: str) -> Callable[[Tensor, Tensor], Tensor]:
    """Like `of_two`, for an op of which neither operand may be a number."""
    function: Callable[[Tensor, Tensor], Tensor] = binary(dispatch, name)
    _publish(function, name, list(REGISTRY[name].operands))
    return function


def _publish(function: Callable[..., Any], name: str, parameters: Sequence[str]) -> None:
    """Give a function the name, the description and the signature that help() shows."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = REGISTRY[name].__doc__
    function.__module__ = "burn"
    function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # read by help()
        [inspect.Parameter(one, inspect.Parameter.POSITIONAL_ONLY) for one in parameters]
    )


def meet_libraries() -> None:
    """Tell libraries that have to be told of burn's tensors, once they are imported.

    Functions that make tensors call this, since a library may be imported after burn: 40 ns.
    """
    if "einops" in sys.modules:
        _meet_einops()


@functools.cache
def _meet_einops() -> None:
    try:
        importlib.import_module("burn.interop")
    except Exception as error:  # noqa: BLE001 — a version of it that differs is no reason to fail
        logging.getLogger("burn").debug("einops does not learn of burn: %s", error)
