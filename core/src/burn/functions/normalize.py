"""Checks of arguments that functions and methods share: each returns the value to compute with.

NumPy scalars, and 0-d arrays where a number is meant, count as Python numbers. Every
check tries the common case first; callers on a fast path test for it inline:
``if keepdims.__class__ is not bool: keepdims = as_flag(keepdims, "keepdims", "sum")``. Numbers are
checked by `burn.ops.arguments`.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import numpy as np

from burn.devices import Device
from burn.dispatch import DispatchTensor, common_device, join_trace, to_scalar
from burn.dtype import DType, Kind
from burn.errors import (
    ArgumentError,
    AutodiffError,
    AxisError,
    BurnError,
    OperandTypeError,
    ShapeError,
)
from burn.functions._registration import register_with_libraries
from burn.functions.common import Axis, DeviceLike, DTypeLike, dispatch
from burn.ops.arguments import as_integer, python_number, real_number
from burn.public_calls import public_operation, shown_value

if TYPE_CHECKING:
    from burn.aliases import Scalar, Shape
    from burn.tensor.tensor import Tensor

__all__ = [
    "as_device",
    "as_dtype",
    "as_flag",
    "as_float",
    "as_integers",
    "as_number",
    "as_real",
    "as_scalar",
    "as_shape",
    "check_any_tensor",
    "check_choice",
    "check_tensor",
    "check_tensors",
    "device_of_numbers",
    "find_device",
    "normalize_axes",
    "normalize_axis",
    "number_dtype",
    "rank_of",
    "reduction",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_ALL_AXES: Final = [tuple(range(rank)) for rank in range(9)]

_NAMES_ELSEWHERE: Final = {"dim": "axis", "dims": "axis", "axes": "axis", "keepdim": "keepdims"}
"""Keywords of other libraries, and what they are called here."""


def check_tensor(x: Any, name: str, operation: str) -> None:
    """Raise OperandTypeError unless an argument is a tensor."""
    if not isinstance(x, DispatchTensor):
        raise OperandTypeError(
            f"{name} must be a tensor, not an object of type {type(x).__name__}",
            hint="burn.asarray() makes a tensor of numbers, sequences and arrays",
            operation=operation,
        )


def check_tensors(tensors: Any, operation: str) -> list[Tensor]:
    """A list of the tensors in a list or tuple of at least one."""
    if not isinstance(tensors, (list, tuple)) or not tensors:
        raise OperandTypeError("needs a list of at least one tensor", operation=operation)
    for index, tensor in enumerate(tensors):
        if not isinstance(tensor, DispatchTensor):
            check_tensor(tensor, f"tensors[{index}]", operation)
    return list(tensors)


def check_choice(value: Any, choices: Sequence[str], name: str, operation: str) -> None:
    """Raise ArgumentError unless an argument is one of some strings."""
    if not isinstance(value, str) or value not in choices:
        known = [f'"{choice}"' for choice in choices]
        raise ArgumentError(
            f"{name} is {shown_value(value)}",
            hint=f"Use {', '.join(known[:-1])} or {known[-1]}",
            operation=operation,
        )


def check_any_tensor(x1: Any, x2: Any, operation: str) -> None:
    """Raise OperandTypeError unless one of two operands is a tensor."""
    if not (isinstance(x1, DispatchTensor) or isinstance(x2, DispatchTensor)):
        raise OperandTypeError(
            "at least one operand must be a tensor",
            hint="burn.asarray() makes a tensor of numbers, sequences and arrays",
            operation=operation,
        )


def rank_of(x: Tensor, operation: str, name: str = "x") -> int:
    """Number of axes of an argument, which must be a tensor."""
    if not isinstance(x, DispatchTensor):
        check_tensor(x, name, operation)
    return len(x.primitive.shape)


def as_flag(value: Any, name: str, operation: str) -> bool:
    """An argument that must be True or False; 0, 1 and NumPy's booleans count as such."""
    if value.__class__ is bool:
        return value
    number = python_number(value)
    if isinstance(number, int) and number in (0, 1):
        return bool(number)
    raise OperandTypeError(
        f"{name} must be True or False, not {shown_value(value)}", operation=operation
    )


def as_number(value: Any, name: str, operation: str) -> Scalar:
    """An argument that must be a number of any kind, as a Python number; a 0-d array is read."""
    number = python_number(value)
    is_tensor = isinstance(number, DispatchTensor)
    if (is_tensor or isinstance(number, np.ndarray)) and number.shape == ():
        if is_tensor and dispatch.is_tracked(number):
            raise AutodiffError(
                f"{name} is a tracked tensor, whose gradient would be lost",
                hint="Drop the gradient with .detach()",
                operation=operation,
            )
        number = python_number(number.item())
    if not isinstance(number, (bool, int, float, complex)):
        raise OperandTypeError(
            f"{name} must be a number, not {shown_value(value)}", operation=operation
        )
    return number


def as_real(value: Any, name: str, operation: str, **bounds: Any) -> float:
    """An argument that must be a real number, as a float; a 0-d array is read.

    `bounds` are those of `burn.ops.arguments.real_number`.
    """
    if value.__class__ is not float:
        value = as_number(value, name, operation)
    return real_number(value, name, operation, **bounds)


def device_of_numbers(device: DeviceLike | None, operation: str, *numbers: Any) -> Device:
    """The given device for a new tensor, that of the tensors among numbers, or the default one."""
    common: Device | None = None
    for number in numbers:
        if isinstance(number, DispatchTensor):
            join_trace(number)
            try:
                common = common_device(common, number.tensor_type.device)
            except BurnError as error:
                error.operation = error.operation or public_operation(operation)
                raise
    return find_device(common if device is None else device, operation)


def as_scalar(value: Scalar, dtype: DType, operation: str) -> Scalar:
    """A Python number as one that a dtype represents; an error where it does not fit."""
    try:
        return to_scalar(value, dtype)
    except BurnError as error:
        error.operation = error.operation or public_operation(operation)
        raise


def as_shape(shape: Any, operation: str = "") -> Shape:
    """A shape as a tuple of Python integers, from an integer or a sequence of integers."""
    if shape.__class__ is tuple:
        for length in shape:
            if length.__class__ is not int:
                break
        else:  # as it nearly always is
            return shape
    if shape.__class__ is int:
        return (shape,)
    try:
        lengths = (shape,) if hasattr(shape, "__index__") else tuple(shape)
        if bool not in [length.__class__ for length in lengths]:
            return tuple([length.__index__() for length in lengths])
    except (AttributeError, TypeError, ShapeError):
        pass
    raise ShapeError(
        f"{shown_value(shape)} is no shape",
        hint="A shape is a tuple of integers",
        operation=operation,
    )


def as_integers(value: Any, name: str, operation: str) -> tuple[int, ...]:
    """An argument that is an integer or a sequence of integers, as a tuple of them."""
    try:
        return as_shape(value)
    except ShapeError:
        raise OperandTypeError(
            f"{name} must be an integer or a tuple of integers, not {shown_value(value)}",
            operation=operation,
        ) from None


def as_dtype(dtype: DTypeLike, operation: str = "") -> DType:
    """A dtype, from itself or its name."""
    if dtype.__class__ is DType:
        return dtype
    try:
        return DType.of(dtype)
    except BurnError as error:
        error.operation = error.operation or public_operation(operation)
        raise


def as_float(x: Tensor, operation: str, name: str = "x") -> Tensor:
    """A tensor with integers and booleans in the default float dtype of its device."""
    check_tensor(x, name, operation)
    if x.dtype.is_integer or x.dtype.is_bool:
        return x.astype(x.device.settings.float_dtype)
    return x


def number_dtype(x: Tensor) -> DType:
    """The dtype of a tensor; of a quantized one that of the floats that it stands for."""
    dtype: DType = x.dtype
    if dtype.kind is Kind.QUANTIZED:
        return x.device.settings.float_dtype
    return dtype


def find_device(device: DeviceLike | None, operation: str = "") -> Device:
    """The device for a new tensor: the given one, or the default one for None."""
    register_with_libraries()
    if device is not None:
        return as_device(device, operation)
    try:
        return Device.default()
    except BurnError as error:
        error.operation = error.operation or public_operation(operation)
        raise


def as_device(device: DeviceLike, operation: str) -> Device:
    """A device, from itself or its name."""
    if device.__class__ is Device:
        return device
    try:
        return Device(device)
    except BurnError as error:
        error.operation = error.operation or public_operation(operation)
        raise


def normalize_axis(x: Tensor, axis: int, operation: str, *, rank: int | None = None) -> int:
    """An axis counted from the front; ``rank`` replaces that of `x`."""
    count = rank_of(x, operation) if rank is None else rank
    if axis.__class__ is int and -count <= axis < count:  # as it nearly always is
        return axis + count if axis < 0 else axis
    number = as_integer(axis, "axis", operation)
    if not -count <= number < count:
        raise AxisError(
            f"axis {shown_value(number)} is out of range for a tensor with {count} axes",
            hint=f"Use an axis from {-count} to {count - 1}" if count else "It has no axis",
            operation=operation,
        )
    return number + count if number < 0 else number


def normalize_axes(
    x: Tensor, axis: Axis, operation: str, *, rank: int | None = None, repeats: bool = False
) -> tuple[int, ...]:
    """Axes counted from the front, in the order given; all of them for None.

    An axis that is named twice is an error, unless `repeats`. ``rank`` replaces that of `x`.
    """
    if not isinstance(x, DispatchTensor):
        check_tensor(x, "x", operation)
    count = len(x.primitive.shape) if rank is None else rank
    if axis is None:
        return _ALL_AXES[count] if count < len(_ALL_AXES) else tuple(range(count))
    if axis.__class__ is int and 0 <= axis < count:
        return (axis,)
    if not isinstance(axis, (tuple, list)):
        return (normalize_axis(x, axis, operation, rank=count),)
    numbers = tuple([normalize_axis(x, number, operation, rank=count) for number in axis])
    if not repeats and len({*numbers}) != len(numbers):
        raise AxisError(
            f"axis {tuple(axis)} names an axis twice",
            hint="Name each axis once",
            operation=operation,
        )
    return numbers


def reduction(function: _Function) -> _Function:
    """A function with `axis` and `keepdims` that answers keywords of other libraries with its own.

    A call that does not fit the signature raises OperandTypeError, which names the keyword and
    shows the signature, in place of Python's TypeError. Any other error passes through.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise  # from within the function: the call fits
        _raise_misfit(function, args, kwargs)

    return call  # type: ignore[return-value]  # it has the signature of the function


def _raise_misfit(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> NoReturn:
    """Raise the error of a call whose arguments do not fit the signature."""
    signature = inspect.signature(function)
    name = function.__name__
    try:
        signature.bind(*args, **kwargs)
        rule = "cannot be called with these arguments"
    except TypeError as mistake:
        rule = str(mistake)
    bare = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
    ]
    hint = _keyword_hint(name, signature, args, kwargs)
    raise OperandTypeError(
        rule, hint=f"{hint}It is {name}{inspect.Signature(bare)}", operation=name
    )


def _keyword_hint(
    name: str, signature: inspect.Signature, args: Sequence[Any], kwargs: dict[str, Any]
) -> str:
    """A sentence that names the keyword meant; "" where none is similar."""
    if "out" in kwargs:  # NumPy's functions pass it to the methods of other arrays
        return f"NumPy's functions take no tensors: call burn.{name}, or convert with .numpy(). "
    known = signature.parameters
    unknown = [keyword for keyword in kwargs if keyword not in known]
    for keyword in unknown:
        similar = [_NAMES_ELSEWHERE.get(keyword), *difflib.get_close_matches(keyword, known, n=1)]
        for item in similar:
            if item in known:
                return f"The keyword is {item}. "
    positional = [
        parameter for parameter in known.values() if parameter.kind is not parameter.KEYWORD_ONLY
    ]
    if not unknown and len(args) > len(positional) and "axis" in known:
        return "The keyword is axis. "
    return ""
