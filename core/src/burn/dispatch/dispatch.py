"""Dispatch itself: the members of a backend, and the path on which ops promote and explain."""

from __future__ import annotations

import contextlib
import functools
import operator
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from burn.aliases import Primitive
from burn.autodiff import Route
from burn.device_id import DeviceId, decode_type_id
from burn.devices.device import Device
from burn.devices.tensor_type import TensorType
from burn.dispatch.operands import (
    DispatchTensor,
    as_python,
    check_kind,
    common_device,
    common_dtype,
    meet,
    meta_of,
    primitive_of,
    to_scalar,
)
from burn.dispatch.transfer import fail, transfer
from burn.dtype import DType, DTypeUsage
from burn.errors import AutodiffError, BurnError, OperandTypeError
from burn.ops import REGISTRY, Op
from burn.plugins import registry
from burn.tensor_data import TensorData

__all__ = ["Dispatch"]

_Tensor = TypeVar("_Tensor", bound=DispatchTensor)
_new = object.__new__


class Dispatch(Generic[_Tensor]):
    """A backend over all installed ones. Its primitives are DispatchTensors, its devices Devices.

    Every op of the op table is a method: ``dispatch.add(a, b)``.

    Parameters
    ----------
    tensor_class : type
        Class of the tensors it makes. It may be set once the class exists.
    """

    def __init__(self, tensor_class: type[_Tensor]) -> None:
        self.tensor_class = tensor_class
        self._plans: dict[tuple[Any, ...], tuple[Callable[..., Any], Device, list[Any]]] = {}
        self._crossed: weakref.WeakSet[Device] | None = None
        if hasattr(os, "register_at_fork"):  # POSIX; devices may not survive a fork
            os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self) -> None:
        self._plans.clear()
        self._crossed = None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name in REGISTRY:
            return functools.partial(self.execute, name)
        raise AttributeError(f"there is no op {name!r}")

    # The members of Backend.

    def name(self, device: Device) -> str:
        """``dispatch<cpu>`` for a device of the backend ``cpu``."""
        return f"dispatch<{device.backend.name(device.id)}>"

    def seed(self, device: Device, seed: int) -> None:
        """Start the random numbers of a device anew."""
        device.seed(seed)

    def sync(self, device: Device) -> None:
        """Wait for all work on a device."""
        device.sync()

    def dtype_usage(self, device: Device, dtype: DType) -> DTypeUsage:
        """What a device can do with a dtype."""
        return device.dtype_usage(dtype)

    def supports_dtype(self, device: Device, dtype: DType) -> bool:
        """Whether a device can store a dtype and compute with it."""
        return device.supports_dtype(dtype)

    def ad_enabled(self, device: Device) -> bool:
        """Whether tensors on a device can be tracked."""
        return device.is_autodiff

    def device_count(self, type_id: int) -> int:
        """Number of devices of a dispatch-level type id; 0 for a backend that is not installed."""
        backend_id, backend_type = decode_type_id(type_id)
        entry = registry.by_id(backend_id)
        present = [] if entry is None else entry.probe()
        if entry is None or not present or backend_type >= len(entry.spec.device_types):
            return 0
        type_ = entry.spec.device_types[backend_type]
        return sum(info.type == type_ for info in present)

    def device(self, device_id: DeviceId) -> Device:
        """Handle of a dispatch-level DeviceId."""
        backend_id, backend_type = decode_type_id(device_id.type_id)
        entry = registry.by_id(backend_id)
        if entry is not None and entry.error is not None:
            entry.load()  # raises, with the reason
        if entry is None or backend_type >= len(entry.spec.device_types):
            raise OperandTypeError(f"no backend has the type id {device_id.type_id}")
        type_ = entry.spec.device_types[backend_type]
        return Device(f"{entry.name}/{type_}:{device_id.index_id}")

    def from_data(self, data: TensorData, device: Device) -> _Tensor:
        """Upload host data."""
        tensor_type = device.tensor_type(data.dtype)
        backend = device.ops.backend
        try:
            primitive = backend.from_data(data, device.id)
        except Exception as error:  # noqa: BLE001 — of whatever library is underneath
            fail(device, error, f"from_data({data.dtype}{list(data.shape)})")
        return self.wrap(primitive, tensor_type)

    def to_data(self, x: _Tensor) -> TensorData:
        """Read values back."""
        device = x.tensor_type.device
        backend = device.ops.backend
        try:
            return backend.to_data(self._inner(x))  # type: ignore[no-any-return]  # of the backend
        except Exception as error:  # noqa: BLE001 — of whatever library is underneath
            fail(device, error, f"to_data({meta_of(x)})")

    def read_all(self, tensors: Sequence[_Tensor]) -> list[TensorData]:
        """Read several tensors, those of one device together."""
        results: dict[int, TensorData] = {}
        by_device: dict[Device, list[int]] = {}
        for place, x in enumerate(tensors):
            by_device.setdefault(x.tensor_type.device, []).append(place)
        for device, places in by_device.items():
            primitives = [self._inner(tensors[place]) for place in places]
            backend = device.ops.backend
            try:
                data = backend.read_all(primitives)
            except Exception as error:  # noqa: BLE001 — of whatever library is underneath
                fail(device, error, "read_all")
            results.update(zip(places, data, strict=True))
        return [results[place] for place in range(len(tensors))]

    def to_device(self, x: _Tensor, target: Device) -> _Tensor:
        """The tensor on a device of other hardware; the gradient of a tracked one comes back.

        Raises
        ------
        DTypeError
            If the device does not have the dtype.
        AutodiffError
            If the tensor is tracked, and the device does not track gradients.
        """
        source, dtype = x.tensor_type.device, x.tensor_type.dtype
        tensor_type = target.tensor_type(dtype)
        there = functools.partial(transfer, dtype, source.hardware, target.hardware)
        if not self.is_tracked(x):
            return self.wrap(there(x.primitive), tensor_type)
        if not target.is_autodiff:
            raise AutodiffError(
                f"the gradient of a tracked tensor would be lost on {target}",
                hint=f"Move it to {target!r}.autodiff(), or drop the gradient with .inner()",
                operation="to_device",
            )
        self._crossed = self._crossed or weakref.WeakSet()
        self._crossed.update((source.hardware, target.hardware))
        back = functools.partial(transfer, dtype, target.hardware, source.hardware)
        route = Route(source.backend, source.id, target.backend, target.id, there, back)
        return self.wrap(route.carry(x.primitive), tensor_type)

    def memory_cleanup(self, device: Device) -> None:
        """Give memory that is held but not in use back to the system."""
        device.memory_cleanup()

    # The members of AutodiffBackend.

    def require_grad(self, x: _Tensor) -> _Tensor:
        """A new leaf with the value of a tensor on an autodiff device."""
        tensor_type = x.tensor_type
        device = self._autodiff_device(x)
        return self.wrap(device.backend.require_grad(x.primitive, device.id), tensor_type)

    def is_require_grad(self, x: _Tensor) -> bool:
        """Whether a tensor is a leaf."""
        backend = x.tensor_type.device.backend
        return x.tensor_type.device.is_autodiff and backend.is_require_grad(x.primitive)

    def is_tracked(self, x: _Tensor) -> bool:
        """Whether a tensor is a leaf or was computed from one."""
        backend = x.tensor_type.device.backend
        return x.tensor_type.device.is_autodiff and backend.is_tracked(x.primitive)

    def backward(self, x: _Tensor, cotangent: _Tensor | None = None) -> Any:
        """Gradients of a tensor by the leaves it was computed from."""
        device = self._autodiff_device(x)
        start = None if cotangent is None else self._untracked(cotangent, "a cotangent")
        call = functools.partial(device.backend.backward, x.primitive, start)
        with device.ops.backend.quiet():
            if self._crossed is None:
                return call()
            with contextlib.ExitStack() as stack:  # the graph may lie on several devices
                for other in self._crossed:
                    stack.enter_context(other.ops.backend.quiet())
                return call()

    def grad(self, x: _Tensor, gradients: Any) -> _Tensor | None:
        """Gradient of a leaf, on the device below autodiff."""
        return self._wrap_gradient(x, self._autodiff_device(x).backend.grad(x.primitive, gradients))

    def grad_remove(self, x: _Tensor, gradients: Any) -> _Tensor | None:
        """Gradient of a leaf, which is taken out."""
        backend = self._autodiff_device(x).backend
        return self._wrap_gradient(x, backend.grad_remove(x.primitive, gradients))

    def grad_replace(self, x: _Tensor, gradients: Any, grad: _Tensor) -> None:
        """Put another gradient in place of that of a leaf."""
        backend = self._autodiff_device(x).backend
        meet(x.tensor_type.device, grad.tensor_type.device)
        backend.grad_replace(x.primitive, gradients, self._untracked(grad, "a gradient"))

    def inner(self, x: _Tensor) -> _Tensor:
        """The tensor on the device below autodiff, untracked."""
        device = x.tensor_type.device.inner()
        return self.wrap(self._inner(x), device.tensor_type(x.tensor_type.dtype))

    int_inner = bool_inner = q_inner = inner

    def from_inner(self, x: _Tensor) -> _Tensor:
        """The tensor on the autodiff device of its hardware, untracked."""
        device = x.tensor_type.device.hardware.autodiff()
        return self.wrap(x.primitive, device.tensor_type(x.tensor_type.dtype))

    int_from_inner = bool_from_inner = q_from_inner = from_inner

    def set_distributed_params(self, x: _Tensor, param_id: int) -> _Tensor:
        """Mark a leaf as a parameter that several devices share."""
        self._autodiff_device(x).backend.set_distributed_params(x.primitive, param_id)
        return x

    def distributed_params(self, x: _Tensor) -> Any | None:
        """Identity of a leaf that several devices share, or None."""
        return self._autodiff_device(x).backend.distributed_params(x.primitive)

    def is_distributed(self, x: _Tensor) -> bool:
        """Whether a tensor is marked as shared."""
        return self.distributed_params(x) is not None

    def _autodiff_device(self, x: _Tensor) -> Any:
        device = x.tensor_type.device
        if not device.is_autodiff:
            raise OperandTypeError(
                f"the tensor is on {device}, which does not track gradients",
                hint="Make it on device.autodiff(), or bring it there with Tensor.from_inner",
            )
        return device

    def _inner(self, x: _Tensor) -> Primitive:
        device = x.tensor_type.device
        return device.backend.inner(x.primitive) if device.is_autodiff else x.primitive

    def _untracked(self, x: _Tensor, what: str) -> Primitive:
        """The primitive below autodiff of a tensor that may have no graph to lose."""
        if self.is_tracked(x):
            raise AutodiffError(
                f"{what} is tracked: its graph would be lost, as gradients are not differentiated",
                hint="Call .detach() on it",
            )
        return self._inner(x)

    def _wrap_gradient(self, x: _Tensor, gradient: Primitive | None) -> _Tensor | None:
        if gradient is None:
            return None
        return self.wrap(gradient, x.tensor_type.device.hardware.type_of(gradient))

    # Running ops.

    def wrap(self, primitive: Primitive, tensor_type: TensorType) -> _Tensor:
        """Tensor around a primitive."""
        result = _new(self.tensor_class)
        result.primitive = primitive
        result.tensor_type = tensor_type
        result.link = None
        return result

    def create(self, name: str, device: Device, dtype: DType, **attrs: Any) -> _Tensor:
        """Run a creation op on a device."""
        tensor_type = device.tensor_type(dtype)
        function = getattr(device.ops, name)
        try:
            REGISTRY[name].rule(dtype=dtype, **attrs)  # a backend may take any numbers
            primitive = function(dtype=dtype, **attrs)
        except Exception as error:  # noqa: BLE001 — _repeat finds out why
            call = functools.partial(function, dtype=dtype, **attrs)
            primitive = _repeat(REGISTRY[name], call, device, error, (), {**attrs, "dtype": dtype})
        return self.wrap(primitive, tensor_type)

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
        # All that is checked and chosen below depends on the types of the operands alone, so what
        # once went through without a conversion goes straight to its callable from then on.
        plan = (name, *[_plan_key(operand) for operand in operands])
        known = self._plans.get(plan)
        if known is not None:
            function, device, unwraps = known
            try:
                primitives = [unwrap(one) for unwrap, one in zip(unwraps, operands, strict=True)]
                return self._wrap_all(function(*primitives, **attrs), device)
            except Exception:  # noqa: BLE001, S110 — the full path finds out why
                pass
        definition = REGISTRY[name]
        operands = tuple([as_python(operand) for operand in operands])
        try:
            device = common_device(definition, operands)
            promoted = self._promoted(definition, operands, device)
            converts = "dtype" in attrs and any(map(_is_complex, promoted))
            if converts:  # the rule refuses to drop imaginary parts; a library may do it silently
                definition.infer(*[meta_of(operand) for operand in promoted], **attrs)
        except BurnError as error:
            error.operation = error.operation or definition.describe(
                [meta_of(operand) for operand in operands], attrs
            )
            raise
        call = functools.partial(
            getattr(device.ops, name), *[primitive_of(operand) for operand in promoted], **attrs
        )
        try:
            result = call()
        except Exception as error:  # noqa: BLE001 — _repeat finds out why
            result = _repeat(definition, call, device, error, promoted, attrs)
        unwraps = [_unwrap(*pair) for pair in zip(operands, promoted, strict=True)]
        if None not in unwraps and not converts:
            self._plans[plan] = getattr(device.ops, name), device, unwraps
        return self._wrap_all(result, device)

    if TYPE_CHECKING:

        def execute_one(self, name: str, *operands: Any, **attrs: Any) -> _Tensor:
            """`execute` of an op with one output, typed as such."""
    else:
        execute_one = execute

    def _wrap_all(self, result: Any, device: Device) -> Any:
        """Tensors around what an op returned, which is a tuple if it has several outputs."""
        if result.__class__ is tuple:
            return tuple([self.wrap(one, device.type_of(one)) for one in result])
        return self.wrap(result, device.type_of(result))

    def _promoted(self, definition: Op, operands: Sequence[Any], device: Device) -> Sequence[Any]:
        """The operands, those that promote brought to one dtype and everything checked for kind."""
        pairs = list(zip(definition.operands.items(), operands, strict=True))
        together = [
            (spec, one)
            for (_, spec), operand in pairs
            if spec.promotes
            for one in (operand if spec.is_list else [operand])
            if one is not None
        ]
        dtype = common_dtype(together, device) if together else None
        if together and dtype is None:
            raise OperandTypeError(
                "there is no tensor to say the dtype of the result",
                hint="burn.asarray() makes a tensor of a number",
            )
        if dtype is not None:
            tensor_type = device.tensor_type(dtype)
            if definition.name not in tensor_type.calls:
                tensor_type.prepare(definition)
        result: list[Any] = []
        for (name, spec), operand in pairs:
            if operand is None:
                result.append(None)
            elif not spec.promotes:
                result.append(check_kind(name, spec, operand))
            elif spec.is_list:
                result.append([self._convert(one, dtype, device) for one in operand])
            else:
                result.append(self._convert(operand, dtype, device))
        return result

    def _convert(self, operand: Any, dtype: DType | None, device: Device) -> Any:
        if dtype is None:
            return operand
        if not isinstance(operand, DispatchTensor):
            return to_scalar(operand, dtype)
        if operand.tensor_type.dtype is dtype:
            return operand
        primitive = device.ops.cast(operand.primitive, dtype=dtype)
        return self.wrap(primitive, device.tensor_type(dtype))


def _is_complex(operand: Any) -> bool:
    return isinstance(operand, DispatchTensor) and operand.tensor_type.dtype.is_complex


def _plan_key(operand: Any) -> Any:
    """What of an operand decides how an op is run: types of tensors, or the class of a number."""
    if operand.__class__ is list:
        return frozenset([getattr(one, "tensor_type", None) for one in operand])
    return getattr(operand, "tensor_type", operand.__class__)


def _unwrap(operand: Any, promoted: Any) -> Callable[[Any], Any] | None:
    """What makes the primitive of an operand like this one; None if that takes a conversion."""
    if operand is None:
        return _itself
    if isinstance(operand, list):
        return _primitives if all(map(operator.is_, operand, promoted)) else None
    if isinstance(operand, DispatchTensor):
        return _primitive if promoted is operand else None
    return _FLOATS.get(promoted.__class__) if operand.__class__ in (float, int) else None


def _itself(operand: Any) -> Any:
    return operand


def _primitives(operand: list[Any]) -> list[Primitive]:
    return [one.primitive for one in operand]


_primitive: Final = operator.attrgetter("primitive")

_FLOATS: Final[dict[type, Callable[[Any], Any]]] = {float: float, complex: complex}
"""What makes numbers those that a float, or a complex, dtype takes; of integers the size counts."""


def _repeat(
    definition: Op,
    call: Callable[[], Any],
    device: Device,
    error: Exception,
    operands: Sequence[Any],
    attrs: Mapping[str, Any],
) -> Any:
    """Find out why a call failed; if nothing is wrong with it, run it once more undisturbed.

    An error of burn's says all there is to say, so it is raised as from here: without the frames
    below, and without the error that led here.
    """
    metas = [meta_of(operand) for operand in operands]
    try:
        definition.infer(*metas, **attrs)
        for value in attrs.values():
            if isinstance(value, DType):
                device.tensor_type(value)  # raises if the device has it not
    except BurnError as refused:
        refused.operation = refused.operation or definition.describe(metas, attrs)
        raise refused.with_traceback(None) from refused.__cause__
    if not isinstance(error, BurnError):
        try:
            with device.ops.backend.quiet():
                return call()
        except BurnError as again:
            error = again
        except Exception as again:  # noqa: BLE001 — `fail` makes it an error of burn's
            again.__suppress_context__ = True  # that is the same error, of the first time
            fail(device, again, definition.describe(metas, attrs))
    error.operation = error.operation or definition.describe(metas, attrs)
    raise error.with_traceback(None) from error.__cause__
