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
from burn.errors import AxisError, OperandTypeError
from burn.ops import REGISTRY
from burn.ops.arguments import as_integer

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "Axis",
    "DTypeLike",
    "DeviceLike",
    "Operand",
    "dispatch",
    "find_device",
    "meet_libraries",
    "normalize_axes",
    "normalize_axis",
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


_ALL_AXES = [tuple(range(rank)) for rank in range(9)]


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


def find_device(device: DeviceLike | None) -> Device:
    """The device that an argument means, the default one if there is none, for a new tensor."""
    meet_libraries()
    return Device.default() if device is None else Device(device)


def meet_libraries() -> None:
    """Tell libraries that have to be told of burn's tensors, once they are imported.

    What makes tensors calls this, since a library may be imported after burn. It costs 40 ns.
    """
    if "einops" in sys.modules:
        _meet_einops()


@functools.cache
def _meet_einops() -> None:
    try:
        importlib.import_module("burn.interop")
    except Exception as error:  # noqa: BLE001 — a version of it that differs is no reason to fail
        logging.getLogger("burn").debug("einops does not learn of burn: %s", error)


def rank_of(x: Tensor, operation: str) -> int:
    """Number of axes of what has to be a tensor."""
    if not isinstance(x, DispatchTensor):
        raise OperandTypeError(
            f"x must be a tensor, not an object of type {type(x).__name__}",
            hint="burn.asarray() makes a tensor of numbers, sequences and arrays",
            operation=operation,
        )
    return len(x.primitive.shape)


def normalize_axis(x: Tensor, axis: int, operation: str, *, rank: int | None = None) -> int:
    """An axis counted from the front; ``rank`` replaces that of `x`."""
    count = rank_of(x, operation) if rank is None else rank
    if axis.__class__ is int and -count <= axis < count:  # as it nearly always is
        return axis + count if axis < 0 else axis
    number = as_integer(axis, "axis", operation)
    if not -count <= number < count:
        raise AxisError(
            f"axis {number} is out of range for a tensor with {count} axes",
            hint=f"Use an axis from {-count} to {count - 1}" if count else "It has no axis",
            operation=operation,
        )
    return number + count if number < 0 else number


def normalize_axes(
    x: Tensor, axis: Axis, operation: str, *, repeats: bool = False
) -> tuple[int, ...]:
    """Axes counted from the front, in the order given; all of them for None.

    None is named twice, unless it `repeats`.
    """
    if axis is None:
        rank = rank_of(x, operation)
        return _ALL_AXES[rank] if rank < len(_ALL_AXES) else tuple(range(rank))
    if axis.__class__ is int or not isinstance(axis, (tuple, list)):
        return (normalize_axis(x, axis, operation),)
    numbers = tuple([normalize_axis(x, one, operation) for one in axis])
    if not repeats and len({*numbers}) != len(numbers):
        raise AxisError(
            f"axis {tuple(axis)} names an axis twice",
            hint="Name each axis once",
            operation=operation,
        )
    return numbers
