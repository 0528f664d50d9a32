"""Dispatch: the members of a backend on tensors, and `execute`, the general path of an op."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from burn.aliases import Primitive
from burn.autodiff import AutodiffTensor, Leaf, is_tracked, tracking_level, value_of
from burn.backend import AutodiffBackend
from burn.backend.decorator import FoundByName, found_by_name
from burn.backend.invalid_values import is_about_values
from burn.device_id import DeviceId
from burn.devices import VMAP, Device, TensorType, under_running
from burn.devices.transfer import fail
from burn.dispatch._device_members import DeviceMembers
from burn.dispatch._differentiation import Differentiation
from burn.dispatch._operands import (
    DispatchTensor,
    as_python,
    join_operands,
    join_trace,
    meta_of,
    mixes_strategies,
    tensors_among,
)
from burn.dispatch._transfers import Transfers
from burn.dispatch.resolution import (
    Plan,
    UniformPlan,
    has_quantized,
    metas_of,
    plan_call,
    plan_key,
    resolve_uniform,
)
from burn.dtype import DType
from burn.errors import (
    ArgumentError,
    AutodiffError,
    BurnError,
    DeviceMismatchError,
    DTypeError,
    OperandTypeError,
    OutOfRangeError,
    TraceError,
)
from burn.ir import with_example_scalars
from burn.ops import REGISTRY, Op, Tag
from burn.ops.quantized_primitive import is_quantized
from burn.public_calls import public_name, public_operation
from burn.quant_scheme import QDType

__all__ = ["Dispatch"]

_Tensor = TypeVar("_Tensor", bound=DispatchTensor)
_new = object.__new__


@found_by_name(REGISTRY)
class Dispatch(
    FoundByName,  # type: ignore[misc]  # Any as a base, see there
    DeviceMembers[_Tensor],
    Differentiation[_Tensor],
    Transfers[_Tensor],
    AutodiffBackend,
):
    """A backend over all installed ones. Its primitives are DispatchTensors.

    Its devices are dispatch-level DeviceIds (`Device.dispatch_id`); where a DeviceId is taken, a
    Device is too. Every op of the op table is a method: ``dispatch.add(a, b)``. So a decorator can
    stand on it: ``Autodiff(dispatch)``.

    Parameters
    ----------
    tensor_class : type
        Class of the tensors it makes. It may be set once the class exists.
    """

    def __init__(self, tensor_class: type[_Tensor]) -> None:
        self.tensor_class = tensor_class
        self._tables = {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        definition = REGISTRY.get(name)
        if definition is not None:
            run = self.create if Tag.CREATION in definition.tags else self.execute
            return functools.partial(run, name)
        raise AttributeError(f"there is no op {name!r}")

    # The members of AutodiffBackend, beside those of the base class.

    def is_require_grad(self, x: _Tensor) -> bool:
        """Whether a tensor is a leaf."""
        return isinstance(x.primitive, AutodiffTensor) and isinstance(x.primitive.node, Leaf)

    def is_tracked(self, x: _Tensor) -> bool:
        """Whether a tensor is a leaf or was computed from one, in any layer of its device."""
        return is_tracked(x.primitive)

    def inner(self, tensor: _Tensor) -> _Tensor:
        """The tensor on the device below the outermost layer, untracked in that layer.

        Raises
        ------
        AutodiffError
            If that layer is of `burn.vmap` and hides a batch axis of the tensor.
        """
        join_trace(tensor)
        below = tensor.tensor_type.device.below.tensor_type(tensor.tensor_type.dtype)
        return self.wrap(self._inner(tensor), below)

    detach = Differentiation.detach  # an op has this name, too, which is not meant

    int_inner = bool_inner = q_inner = inner

    def from_inner(self, tensor: _Tensor, device: Device | None = None) -> _Tensor:
        """The value of a tensor on an autodiff device of its hardware, untracked.

        Raises
        ------
        ArgumentError
            If the device has no autodiff, or fewer layers than that of the tensor.
        DeviceMismatchError
            If it is a device of other hardware.
        """
        join_trace(tensor)
        own = tensor.tensor_type.device
        if device is not None:
            device = device.traced if own.is_traced else device
        target = device or (own if own.layers else own.autodiff())
        if target.hardware is not own.hardware:
            raise DeviceMismatchError(
                f"the tensor is on {own}, and {target} is other hardware",
                hint=f'Move it with .to_device("{target.name}")',
                operation="from_inner",
            )
        if len(target.layers) < max(1, len(own.layers)):
            raise ArgumentError(
                f"a tensor on {own} is not below {target}",
                hint="Name a device with autodiff: device.autodiff()",
                operation="from_inner",
            )
        primitive = tensor.primitive
        if len(own.layers) == len(target.layers):
            primitive = own.backend.inner(primitive)
        return self.wrap(primitive, target.tensor_type(tensor.tensor_type.dtype))

    int_from_inner = bool_from_inner = q_from_inner = from_inner

    def _autodiff_device(self, x: _Tensor) -> Any:
        join_trace(x)
        device = x.tensor_type.device
        if not device.layers:
            raise OperandTypeError(
                f"the tensor is on {device}, which does not track gradients",
                hint="Make it on device.autodiff(), or bring it there with Tensor.from_inner",
                operation="require_grad",
            )
        if device.layers[-1] == VMAP:
            raise AutodiffError(
                f"the tensor is on {device}: each example would have gradients of its own",
                hint="Call burn.grad or burn.vjp inside of burn.vmap",
            )
        return device

    def _inner(self, x: _Tensor) -> Primitive:
        """The primitive on the device below the outermost layer."""
        primitive, device = x.primitive, x.tensor_type.device
        if not device.layers or primitive.__class__ is not device.backend.tensor_type:
            if device.layers and is_quantized(primitive):
                for part in primitive.parts:  # a constant, or one for each example
                    self._below(part, device)
            return primitive
        return self._below(primitive, device)

    def _below(self, primitive: Primitive, device: Device) -> Primitive:
        if primitive.__class__ is not device.backend.tensor_type:
            return primitive
        if device.layers[-1] == VMAP:
            value_of(primitive)  # raises: there is one for each example
        return primitive.primitive

    def _untracked(self, x: _Tensor, what: str) -> Primitive:
        """The primitive below autodiff of a tensor that may have no graph to lose."""
        if self.is_tracked(x):
            raise AutodiffError(
                f"{what} is tracked: its graph would be lost, as gradients are not differentiated",
                hint="Call .detach() on it",
            )
        return self._inner(x)

    # Running ops.

    def wrap(self, primitive: Primitive, tensor_type: TensorType) -> _Tensor:
        """Tensor around a primitive."""
        result = _new(self.tensor_class)
        result.primitive = primitive
        result.tensor_type = tensor_type
        result.link = None
        return result

    def create(self, name: str, device: DeviceId | Device, dtype: DType, **attrs: Any) -> _Tensor:
        """Run a creation op on a device with the layers of all running transforms."""
        device = under_running(self.device(device))
        try:
            if isinstance(dtype, QDType):
                raise DTypeError(
                    f"Quantized tensors are not supported: {dtype}",
                    hint="Make floats, and call .quantize_dynamic() on them",
                )
            tensor_type = device.tensor_type(dtype)
        except DTypeError as error:
            error.operation = error.operation or public_operation(name)
            raise
        function = getattr(device.ops, name)
        definition = REGISTRY[name]
        attrs["dtype"] = dtype
        try:
            definition.rule(**attrs)  # a backend may take any numbers
            primitive = function(**attrs)
        except Exception as error:  # noqa: BLE001 — `_explain` says what is wrong
            failure = error
        else:
            return self.wrap(primitive, tensor_type)
        plan = Plan(function, (), device, dtype)
        return self._explain(failure, definition, (), plan, attrs)

    def execute(self, name: str, *operands: Any, **attrs: Any) -> Any:
        """Run an op on tensors and numbers.

        The tensors must be on one device; those of the op's operands that promote are brought to
        one dtype, and numbers to that of the tensor they meet.

        Returns
        -------
        Tensor, or a tuple of tensors for an op with several outputs

        Raises
        ------
        BurnError
            Of the class that fits, with the op, what it got, and the rule it broke.
        """
        x: Any = operands[0] if operands else None
        is_tensor = x.__class__ is self.tensor_class
        tensor_type = x.tensor_type if is_tensor else _first_type(operands)
        key = plan_key(name, operands)
        plan = None if tensor_type is None else tensor_type.calls.get(key)
        if plan is None:
            plan = self._plan(name, operands, attrs, tensor_type, key)
        function, converters, device, _ = plan
        try:
            result = function(
                *[convert(operand) for convert, operand in zip(converters, operands, strict=True)],
                **attrs,
            )
        except Exception as error:  # noqa: BLE001 — `explain` says what is wrong
            failure = error
        else:
            return _wrap_all(self, result, device)
        return self.explain(failure, name, operands, attrs)

    def _plan(
        self,
        name: str,
        operands: Sequence[Any],
        attrs: Mapping[str, Any],
        tensor_type: TensorType | None,
        key: tuple[Any, ...],
    ) -> Plan:
        """The plan of a call whose types of operands are new; it is kept under the key."""
        if join_operands(operands):
            return self._plan(
                name, operands, attrs, _first_type(operands), plan_key(name, operands)
            )
        calls = {} if tensor_type is None else tensor_type.calls
        tensors = tensors_among(operands)
        if mixes_strategies(tensors):  # what is tracked decides, beside the types
            key = (*key, *[tracking_level(tensor.primitive) for tensor in tensors])
        if key in calls:
            return calls[key]  # type: ignore[no-any-return]  # under this key
        definition = REGISTRY[name]
        try:
            plan = calls[key] = plan_call(definition, operands)
        except BurnError as error:
            described = definition.describe(
                [meta_of(as_python(operand)) for operand in operands], attrs
            )
            error.operation = error.operation or public_operation(described)
            raise error.with_traceback(None) from error.__cause__
        return plan

    if TYPE_CHECKING:

        def execute_one(self, name: str, *operands: Any, **attrs: Any) -> _Tensor:
            """`execute` of an op with one output, typed as such."""
    else:
        execute_one = execute

    def resolve(
        self,
        name: str,
        operands: Sequence[Any],
        tensor_type: TensorType,
        key: Any,
        attrs: Mapping[str, Any],
    ) -> UniformPlan:
        """How an op runs on operands of one TensorType whose plan this thread does not see.

        Operands that join a trace now are others then: the op runs here, and the plan has the
        outputs. That of a call which fails raises the error.
        """
        try:
            if not join_operands(operands):
                return resolve_uniform(name, operands, tensor_type, key)
            made = self.execute(name, *operands, **attrs)
        except Exception as error:  # noqa: BLE001 — `explain` says what is wrong
            return None, functools.partial(_raise, error), {}, self.tensor_class, None
        several = isinstance(made, tuple)
        output: Any = tuple([tensor.primitive for tensor in made]) if several else made.primitive
        found: TensorType = made[0].tensor_type if several else made.tensor_type
        types = found.device.types
        return None, lambda *_, **__: output, types, self.tensor_class, None if several else found

    def explain(
        self, failure: Exception, name: str, operands: Sequence[Any], attrs: Mapping[str, Any]
    ) -> NoReturn:
        """Raise the error of a call that failed, by the rule of the op; nothing runs again.

        Raises
        ------
        BurnError
            The error of the op's rule, if the rule refuses the call. Else the exception of the
            backend as an error of burn, without the frames of the failed call.
        """
        definition = REGISTRY[name]
        operands = [as_python(operand) for operand in operands]
        try:
            plan = plan_call(definition, operands)
        except BurnError as refused:
            described = definition.describe([meta_of(operand) for operand in operands], attrs)
            refused.operation = refused.operation or public_operation(described)
            raise refused.with_traceback(None) from refused.__cause__
        self._explain(failure, definition, operands, plan, attrs)

    def _explain(
        self,
        failure: Exception,
        definition: Op,
        operands: Sequence[Any],
        plan: Plan,
        attrs: Mapping[str, Any],
    ) -> NoReturn:
        device = plan.device
        metas = given = [meta_of(operand) for operand in operands]
        if isinstance(failure, TraceError):
            raise failure.with_traceback(None) from failure.__cause__
        if has_quantized(operands):
            attrs = {
                key: plan.dtype if isinstance(attr, QDType) else attr for key, attr in attrs.items()
            }
        try:
            metas = metas_of(definition, operands, plan)
            inferred = definition.infer(*metas, **with_example_scalars(attrs))
            outputs = inferred if definition.returns_tuple else (inferred,)
            for dtype in [*[output.dtype for output in outputs], *attrs.values()]:
                if isinstance(dtype, DType):
                    device.tensor_type(dtype)  # raises if the device cannot store it
        except BurnError as refused:
            shown = given if has_quantized(operands) else metas
            if has_quantized(operands) or not refused.operation:
                refused.operation = definition.describe(shown, attrs)
            refused.operation = public_operation(refused.operation)
            raise refused.with_traceback(None) from refused.__cause__
        shown = given if has_quantized(operands) else metas
        operation = _operation_of(failure, definition, definition.describe(shown, attrs))
        if isinstance(failure, BurnError):
            failure.operation = _named(failure) or operation
            raise failure.with_traceback(None) from failure.__cause__
        failure.__suppress_context__ = True
        fail(device, failure, operation)


def _raise(error: Exception, *_: Any, **__: Any) -> NoReturn:
    raise error


def _named(failure: BurnError) -> str:
    """What an error names itself; that of an index which a router described is not the call."""
    if isinstance(failure, OutOfRangeError) and "(" in failure.operation:
        return ""
    return public_operation(failure.operation)


def _operation_of(failure: Exception, definition: Op, described: str) -> str:
    """What the error of a call names; of an index as `CheckedOps` has it, which reports it late."""
    if isinstance(failure, OutOfRangeError):
        operands = "" if is_about_values(failure) else described.removeprefix(definition.name)
        return public_name(definition.name) + operands
    return public_operation(described)


def _first_type(operands: Sequence[Any]) -> TensorType | None:
    """The type of the first tensor among operands and lists of operands."""
    for operand in operands:
        for part in operand if isinstance(operand, list) else (operand,):
            if isinstance(part, DispatchTensor):
                return part.tensor_type
    return None


def _wrap_all(dispatch: Dispatch[_Tensor], result: Any, device: Device) -> Any:
    """Tensors around what an op returned, which is a tuple if it has several outputs."""
    types = device.types
    if result.__class__ is tuple:
        return tuple([dispatch.wrap(tensor, types[tensor.dtype]) for tensor in result])
    return dispatch.wrap(result, types[result.dtype])
