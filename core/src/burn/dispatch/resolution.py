"""Resolution: from an op and the types of its operands to the callable that runs it.

Each resolution happens once, and is kept in `TensorType.calls` of the first tensor while the device
is open: under the name of the op where all operands have that one type, else under the name and
the types of all operands.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from burn.devices import Device, TensorType
from burn.dispatch._operands import (
    DispatchTensor,
    as_python,
    check_kind,
    common_dtype,
    device_of_operands,
    meta_of,
    tensors_among,
    to_scalar,
)
from burn.dtype import DType, Kind, float64
from burn.errors import OperandTypeError, PluginError
from burn.ops import REGISTRY, Meta, Op, Operand
from burn.ops.quiet import without_frame
from burn.ops.table import specialized

__all__ = [
    "Plan",
    "before_widening",
    "has_quantized",
    "metas_of",
    "plan_call",
    "plan_key",
    "resolve_uniform",
]

Convert: TypeAlias = Callable[[Any], Any]
"""Makes what a backend takes of an operand: a primitive, a number, None or a list."""


class Plan(NamedTuple):
    """How an op runs on operands of certain types.

    Attributes
    ----------
    function : callable
        Runs the op on primitives.
    converters : tuple of callable
        For each operand: what makes of it what `function` takes.
    device : Device
        Where the op runs, and its outputs are.
    dtype : DType or None
        The dtype of all operands that promote; None if none does.
    """

    function: Callable[..., Any]
    converters: tuple[Convert, ...]
    device: Device
    dtype: DType | None


UniformPlan: TypeAlias = tuple[
    Callable[[], Any] | None,
    Callable[..., Any],
    Mapping[Any, TensorType],
    type[DispatchTensor],
    TensorType | None,
]
"""How an op runs on operands of one TensorType.

What makes the Context of a call, or None, and what runs the op on primitives there (see
`without_frame`); from a dtype object of a primitive to the TensorType of a tensor with it; the
class of tensors; and the TensorType of the output, once `settle` has kept it.
"""


def plan_key(name: str, operands: Sequence[Any]) -> tuple[Any, ...]:
    """What decides how an op runs: types of tensors, and classes of numbers."""
    return (
        name,
        *[
            frozenset([getattr(part, "tensor_type", None) for part in operand])
            if isinstance(operand, list)
            else getattr(operand, "tensor_type", operand.__class__)
            for operand in operands
        ],
    )


class _Varying(tuple[Any, ...]):
    """How an op runs on quantized operands: the dtype of its output depends on their shapes."""

    __slots__ = ()


def resolve_uniform(
    name: str, operands: Sequence[Any], tensor_type: TensorType, key: Any
) -> UniformPlan:
    """How an op runs on operands of one TensorType; the result is kept under the key.

    `operands` are tensors of that type and constants beside it, numbers that do not change their
    dtype, and others that do not promote.

    Raises
    ------
    BurnError
        If the op does not take operands of these types.
    """
    tensor_class = tensors_among(operands)[0].__class__
    calls = tensor_type.calls  # before: a plan that is forgotten in the meantime is not kept
    definition = REGISTRY[name]
    plan = plan_call(definition, operands)
    dtype, device = plan.dtype, plan.device
    function = plan.function
    if tensor_type.dtype.kind is Kind.QUANTIZED:
        found: Any = _Varying((None, function, device.types, tensor_class, None))
        calls[key] = found
        return found  # type: ignore[no-any-return]  # made above
    if dtype is not None and dtype is not tensor_type.dtype:
        cast = functools.partial(specialized(device.ops.cast, tensor_type.dtype), dtype=dtype)
        function = _converting(
            function, dtype, cast, [operand.promotes for operand in definition.operands.values()]
        )
    found = calls[key] = *without_frame(function), device.types, tensor_class, None
    return found  # type: ignore[no-any-return]  # made here


def settle(
    calls: dict[Any, Any], key: Any, types: Mapping[Any, TensorType], primitive: Any
) -> TensorType:
    """The TensorType of an output, kept for later calls: its dtype follows from the key."""
    output = types[primitive.dtype]
    plan = calls.get(key)
    if plan.__class__ is tuple:  # else plans were forgotten in the meantime, or it varies
        calls[key] = *plan[:4], output
    return output


def wrapped(primitives: Any, types: Mapping[Any, TensorType], tensor_class: type) -> Any:
    """Tensors around the primitives that an op with several outputs returned."""
    results = []
    new = object.__new__
    seen: Any = None
    tensor_type: Any = None
    for primitive in primitives:
        try:
            dtype = primitive.dtype
        except AttributeError:
            raise not_flat(primitive) from None
        if dtype is not seen:  # a look-up takes longer than the rest
            seen, tensor_type = dtype, types[dtype]
        result: Any = new(tensor_class)
        result.primitive = primitive
        result.tensor_type = tensor_type
        result.link = None
        results.append(result)
    return tuple(results)


def not_flat(output: Any, operation: str = "") -> PluginError:
    """The error for an output that is no primitive."""
    return PluginError(
        f"the backend returned an object of type {type(output).__name__} as an output: an "
        "operation with several outputs returns a flat tuple of primitives",
        hint="Report it to the author of the backend, whose `burn check` finds it",
        operation=operation,
    )


def _converting(
    function: Callable[..., Any],
    dtype: DType,
    cast: Callable[[Any], Any],
    promote: Sequence[bool],
) -> Callable[..., Any]:
    """An op on primitives of a dtype that it takes after a conversion."""

    def convert(operand: Any) -> Any:
        if operand is None:
            return operand
        if isinstance(operand, (bool, int, float, complex)):
            return to_scalar(operand, dtype)
        return [cast(part) for part in operand] if isinstance(operand, list) else cast(operand)

    def call(*operands: Any, **attrs: Any) -> Any:
        return function(
            *[
                convert(operand) if promotes else operand
                for operand, promotes in zip(operands, promote, strict=True)
            ],
            **attrs,
        )

    return call


def plan_call(definition: Op, operands: Sequence[Any]) -> Plan:
    """Decide how an op runs on operands, by their types alone.

    Raises
    ------
    BurnError
        If it does not take operands of these types.
    """
    operands = [as_python(operand) for operand in operands]
    device = device_of_operands(definition, operands)
    specs = list(definition.operands.items())
    if has_quantized(operands):
        return _plan_quantized(definition, operands, device)
    together = [
        (spec, part)
        for (_, spec), operand in zip(specs, operands, strict=True)
        if spec.promotes
        for part in (operand if spec.is_list else [operand])
        if part is not None
    ]
    dtype = common_dtype(together, device) if together else None
    if together and dtype is None:
        raise OperandTypeError(
            "there is no tensor to say the dtype of the result",
            hint="burn.asarray() makes a tensor of a number",
        )
    function = getattr(device.ops, definition.name)
    if dtype is not None:
        device.tensor_type(dtype)  # raises if the device cannot store it
        device.check_usage(dtype, definition)
        function = specialized(function, dtype)
        if dtype.is_complex and "dtype" in definition.attributes:
            function = _inferring(definition, function, dtype)
    converters = tuple(
        [
            _converter(name, spec, operand, dtype, device)
            for (name, spec), operand in zip(specs, operands, strict=True)
        ]
    )
    return Plan(function, converters, device, dtype)


def has_quantized(operands: Sequence[Any]) -> bool:
    """Whether one of the tensors among operands is quantized."""
    return any(
        tensor.tensor_type.dtype.kind is Kind.QUANTIZED for tensor in tensors_among(operands)
    )


def _plan_quantized(definition: Op, operands: Sequence[Any], device: Device) -> Plan:
    """How an op runs some of whose operands are quantized: the table of those brings them together.

    The dtype of the plan is that in which the metadata of an error shows them to the op's rule.
    """
    for (name, spec), operand in zip(definition.operands.items(), operands, strict=True):
        for part in operand if isinstance(operand, list) else (operand,):
            dtype = part.tensor_type.dtype if isinstance(part, DispatchTensor) else None
            if dtype is None or (dtype.kind is not Kind.QUANTIZED and spec.promotes):
                continue
            if Kind.FLOAT not in spec.kinds or dtype.kind is not Kind.QUANTIZED:
                check_kind(name, spec, part)
    function = getattr(device.quantized_ops, definition.name)
    converters = tuple(
        [
            _primitives
            if isinstance(operand, list)
            else _primitive
            if isinstance(operand, DispatchTensor)
            else as_python
            for operand in operands
        ]
    )
    return Plan(function, converters, device, device.settings.float_dtype)


def _inferring(definition: Op, function: Callable[..., Any], dtype: DType) -> Callable[..., Any]:
    """An op after its rule, which refuses to drop imaginary parts: a library may do it silently."""

    def call(*primitives: Any, **attrs: Any) -> Any:
        definition.infer(
            *[Meta(tuple(primitive.shape), dtype) for primitive in primitives], **attrs
        )
        return function(*primitives, **attrs)

    return call


def _converter(
    name: str, spec: Operand, operand: Any, dtype: DType | None, device: Device
) -> Convert:
    """What makes of an operand what a backend takes."""
    if operand is None:
        return _identity
    if not spec.promotes:
        if spec.is_list:
            for part in operand:
                check_kind(name, spec, part)
            return _primitives
        check_kind(name, spec, operand)
        return _primitive
    if dtype is None:
        return _identity
    if spec.is_list:
        if all(part.tensor_type.dtype is dtype for part in operand):
            return _primitives
        return functools.partial(_converted_list, dtype, device)
    if not isinstance(operand, DispatchTensor):
        return _NUMBERS.get((dtype.kind, operand.__class__)) or functools.partial(_number, dtype)
    if operand.tensor_type.dtype is dtype:
        return _primitive
    widens = _widens(operand, dtype)
    return functools.partial(_widened if widens else _converted, dtype, device)


def _identity(operand: Any) -> Any:
    return operand


_primitive: Final = operator.attrgetter("primitive")


def _primitives(operands: list[Any]) -> list[Any]:
    return [operand.primitive for operand in operands]


def _converted(dtype: DType, device: Device, x: DispatchTensor) -> Any:
    if x.tensor_type.dtype is dtype:
        return x.primitive
    return device.ops.cast(x.primitive, dtype=dtype)


def _widened(dtype: DType, device: Device, x: DispatchTensor) -> Any:
    for check in before_widening:
        check()
    return _converted(dtype, device, x)


def _converted_list(dtype: DType, device: Device, operands: list[DispatchTensor]) -> list[Any]:
    return [
        (_widened if _widens(operand, dtype) else _converted)(dtype, device, operand)
        for operand in operands
    ]


def _widens(x: DispatchTensor, dtype: DType) -> bool:
    """Whether a narrower float tensor becomes one of float64."""
    return dtype is float64 and x.tensor_type.dtype.is_float and x.tensor_type.dtype is not dtype


before_widening: Final[list[Callable[[], None]]] = []
"""Called before a narrower float tensor becomes one of float64; `burn.nn` refuses it in layers."""


def _number(dtype: DType, value: Any) -> Any:
    return to_scalar(as_python(value), dtype)


_NUMBERS: Final[dict[Any, Convert]] = {
    ("f", float): float,
    ("c", complex): complex,
    ("c", float): complex,
}
"""Conversions of numbers that never fail, by the kind of the dtype and the class."""


def metas_of(definition: Op, operands: Sequence[Any], plan: Plan) -> list[Any]:
    """What the rule of an op takes for operands: their metadata after promotion."""
    metas: list[Any] = []
    for spec, convert, operand in zip(
        definition.operands.values(), plan.converters, operands, strict=True
    ):
        meta = meta_of(operand)
        if isinstance(meta, Meta):
            metas.append(meta._replace(dtype=plan.dtype) if spec.promotes and plan.dtype else meta)
        elif isinstance(meta, list):
            metas.append([item._replace(dtype=plan.dtype) if plan.dtype else item for item in meta])
        else:
            metas.append(convert(operand))
    return metas
