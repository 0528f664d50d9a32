"""Operands of an op: their common device and dtype, and errors for invalid operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from burn.aliases import Primitive, Scalar, Shape
from burn.autodiff import tracking_level
from burn.devices import Device, TensorType, running_trace
from burn.dtype import DType, Kind, complex64, promote
from burn.errors import (
    AutodiffError,
    DeviceMismatchError,
    DTypeError,
    OperandTypeError,
    ScalarRangeError,
    TraceError,
)
from burn.ir import ScalarIr
from burn.ops import Meta, Op, Operand
from burn.ops.arguments import as_python
from burn.public_calls import shown_value

__all__ = [
    "DispatchTensor",
    "as_python",
    "check_kind",
    "common_device",
    "common_dtype",
    "device_of_operands",
    "dtype_with_number",
    "join_operands",
    "join_trace",
    "meta_of",
    "mixes_strategies",
    "prevailing_strategy",
    "tensors_among",
    "to_scalar",
]


class DispatchTensor:
    """A primitive with its device and dtype.

    Attributes
    ----------
    primitive : object
        What the backend computes with.
    tensor_type : TensorType
        The device and the dtype, with the ops for them.
    link : object
        How it shares elements with views, or None (see `burn.functions.views`).
    """

    __slots__ = ("__weakref__", "link", "primitive", "tensor_type")

    primitive: Primitive
    tensor_type: TensorType
    link: Any

    @property
    def shape(self) -> Shape:
        """Length of each axis."""
        return tuple(self.primitive.shape)

    @property
    def dtype(self) -> DType:
        """Dtype of the elements."""
        return self.tensor_type.dtype


def join_trace(x: Any) -> None:
    """Make a tensor from outside of the running trace, if one runs, an input of it."""
    trace = running_trace()
    if trace is not None:
        trace.join(x)


def join_operands(operands: Sequence[Any]) -> bool:
    """Make the tensors among operands inputs of the running trace; whether one was none before."""
    trace = running_trace()
    return trace is not None and any([trace.join(tensor) for tensor in tensors_among(operands)])  # noqa: C419 — all of them join


def to_scalar(value: Any, dtype: DType) -> Scalar:
    """Convert a Python number to one that a dtype represents.

    Raises
    ------
    ScalarRangeError
        If it does not fit.
    """
    if dtype.is_float or dtype.is_complex:
        try:
            return float(value) if dtype.is_float else complex(value)
        except OverflowError:
            raise ScalarRangeError(f"{shown_value(value)} is too large for {dtype}") from None
        except TypeError:
            raise OperandTypeError(f"the complex number {value} is no {dtype}") from None
    if isinstance(value, complex):
        raise OperandTypeError(f"the complex number {value} is no {dtype}")
    if dtype.is_bool:
        return bool(value)
    low, high = dtype.integer_range
    try:
        number = int(value)
    except (OverflowError, ValueError):
        raise ScalarRangeError(f"{value} is no integer") from None
    if not low <= number <= high:
        raise ScalarRangeError(
            f"{shown_value(number)} does not fit {dtype}, which holds {low} to {high}",
            hint="Use a number in that range, or a wider dtype",
        )
    return number


def device_of_operands(definition: Op, operands: Sequence[Any]) -> Device:
    """The device of all tensors among the operands."""
    if len(operands) != len(definition.operands):
        raise OperandTypeError(
            f"takes {len(definition.operands)} operands ({', '.join(definition.operands)}), "
            f"got {len(operands)}"
        )
    device: Device | None = None
    for (name, spec), operand in zip(definition.operands.items(), operands, strict=True):
        if spec.is_list and not isinstance(operand, list):
            raise OperandTypeError(f"{name} must be a list of tensors, not {_kind_of(operand)}")
        for part in operand if spec.is_list else [operand]:
            if isinstance(part, DispatchTensor):
                device = common_device(device, part.tensor_type.device)
            elif isinstance(part, ScalarIr):
                raise part.unknown()
            elif not _fits(spec, part):
                takes = "a tensor or a number" if spec.scalar else "a tensor"
                takes += " or None" if spec.optional else ""
                raise OperandTypeError(
                    f"{name} must be {takes}, not {_kind_of(part)}",
                    hint="burn.asarray() makes a tensor of numbers, sequences and arrays",
                )
    if device is None:
        raise OperandTypeError(
            "at least one operand must be a tensor",
            hint="burn.asarray() makes a tensor of numbers, sequences and arrays",
        )
    tensors = tensors_among(operands)
    if mixes_strategies(tensors):
        return device.layered(device.layers, is_checkpointing=_common_strategy(tensors))
    return device


def tensors_among(operands: Sequence[Any]) -> list[DispatchTensor]:
    """The tensors among operands and lists of operands."""
    return [
        part
        for operand in operands
        for part in (operand if isinstance(operand, list) else (operand,))
        if isinstance(part, DispatchTensor)
    ]


def mixes_strategies(tensors: Sequence[DispatchTensor]) -> bool:
    """Whether some tensors are on devices with gradient checkpointing, and some on others."""
    devices = [tensor.tensor_type.device for tensor in tensors]
    return len({device.is_checkpointing for device in devices if device.layers}) > 1


def _common_strategy(tensors: Sequence[DispatchTensor]) -> bool:
    """Whether the device of an op on such tensors is one with gradient checkpointing."""
    of_leaves = {
        tensor.tensor_type.device.is_checkpointing: tensor.tensor_type.device
        for tensor in tensors
        if tracking_level(tensor.primitive) == 0
    }
    if len(of_leaves) > 1:
        raise AutodiffError(
            "tracked tensors of two strategies meet, "
            f"on {of_leaves[False]} and on {of_leaves[True]}",
            hint=f'Move one of them, for example with .to_device("{of_leaves[True]}")',
        )
    return prevailing_strategy(tensors)


def prevailing_strategy(tensors: Sequence[DispatchTensor]) -> bool:
    """Whether what is computed from such tensors is on a device with gradient checkpointing.

    As those say that were computed from leaves of the user. What transforms alone track follows
    them, and constants follow both. Among those that are alike, checkpointing wins.
    """
    found: dict[int, bool] = {}
    for tensor in tensors:
        level = tracking_level(tensor.primitive)
        rank = 2 if level is None else min(level, 1)
        found[rank] = found.get(rank, False) or tensor.tensor_type.device.is_checkpointing
    return found[min(found)]


def _fits(spec: Operand, operand: Any) -> bool:
    """Whether an operand accepts this object, which is no tensor."""
    if operand is None:
        return spec.optional
    return spec.scalar and isinstance(operand, (bool, int, float, complex))


def common_device(first: Device | None, second: Device) -> Device:
    """Device of an op on tensors of two devices of the same hardware: the one with more layers."""
    if first is None or first is second:
        return second
    if first.hardware is not second.hardware:
        if first == second:
            raise TraceError(
                f"tensors on {first} and on {second} meet: one of them belongs to a trace",
                hint="Return tensors from the function that is traced; another thread that uses "
                "its tensors has to wait for burn.ir.trace",
            )
        where = f'"{first.name}"'
        if second.is_autodiff:  # what is tracked moves to where its gradient is not lost
            where = f"burn.Device({where}).autodiff()"
        raise DeviceMismatchError(
            f"tensors on {first} and on {second} meet",
            hint=f"Move one of them, for example with .to_device({where})",
        )
    most, least = (first, second) if len(first.layers) >= len(second.layers) else (second, first)
    if most.layers[: len(least.layers)] != least.layers:
        raise DeviceMismatchError(
            f"tensors on {first} and on {second} meet, which belong to two transforms",
            hint="Return tensors from the function of a transform; do not keep them elsewhere",
        )
    return most


def common_dtype(together: Sequence[tuple[Operand, Any]], device: Device) -> DType | None:
    """Common dtype of operands: that of the tensors, promoted by numbers of a higher kind."""
    dtype: DType | None = None
    kinds = Kind.ANY
    for spec, operand in together:
        kinds &= spec.kinds
        if isinstance(operand, DispatchTensor):
            found = operand.tensor_type.dtype
            dtype = found if dtype is None else promote(dtype, found)
    if dtype is None:
        return None
    for _, operand in together:
        if not isinstance(operand, (DispatchTensor, bool)):
            dtype = dtype_with_number(dtype, operand, device)
    if dtype.kind in Kind.INTEGRAL and Kind.FLOAT in kinds and not kinds & Kind.INTEGRAL:
        dtype = device.settings.float_dtype
    if dtype.kind not in kinds:
        raise DTypeError(
            f"takes {kinds.describe()} tensors, got {dtype}",
            hint="Convert with .astype()" + (", or use logical operators" if dtype.is_bool else ""),
        )
    return dtype


def dtype_with_number(dtype: DType, number: Scalar, device: Device) -> DType:
    """Dtype of a tensor beside a Python number, which matters if its kind is above the tensor's."""
    if isinstance(number, complex):
        if dtype.kind in Kind.INTEGRAL:
            return device.settings.complex_dtype
        return dtype if dtype.is_complex else promote(dtype, complex64)
    if isinstance(number, float) and dtype.kind in Kind.INTEGRAL:
        return device.settings.float_dtype
    if isinstance(number, int) and dtype.is_bool:
        return device.settings.int_dtype
    return dtype


def check_kind(name: str, spec: Operand, operand: Any) -> Any:
    """The operand; an error if the op does not accept its dtype."""
    dtype = operand.tensor_type.dtype
    if dtype.kind not in spec.kinds:
        raise DTypeError(
            f"{name} takes {spec.kinds.describe()} tensors, got {dtype}",
            hint="Convert it with .astype()",
        )
    return operand


def meta_of(operand: Any) -> Any:
    """Shape and dtype of a tensor, as rules take them; a number, or None, as it is."""
    if isinstance(operand, list):
        return [meta_of(part) for part in operand]
    if isinstance(operand, DispatchTensor):
        return Meta(tuple(operand.primitive.shape), operand.tensor_type.dtype)
    return operand


def _kind_of(operand: Any) -> str:
    return f"an object of type {type(operand).__name__}"
