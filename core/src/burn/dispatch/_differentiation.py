"""Differentiation: the members of `Dispatch` for backward passes, gradients and hooks."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from burn.aliases import Primitive
from burn.autodiff import DistributedParams, Gradients as Primitives, HookHandle, Leaf, untracked
from burn.device_id import DeviceId
from burn.devices import Device, TensorType, running_trace, under_running
from burn.dispatch._operands import DispatchTensor, common_device, join_trace
from burn.dispatch.gradients import Gradients, name_of, replacement
from burn.dtype import Kind
from burn.errors import AutodiffError, OperandTypeError

__all__ = ["Differentiation"]

_Tensor = TypeVar("_Tensor", bound=DispatchTensor)
_new = object.__new__


class Differentiation(Generic[_Tensor]):
    """Base of `Dispatch` with the members of an AutodiffBackend that need a graph."""

    if TYPE_CHECKING:
        tensor_class: type[_Tensor]

        def wrap(self, primitive: Primitive, tensor_type: TensorType) -> _Tensor:
            """Tensor around a primitive."""

        def execute_one(self, name: str, *operands: Any) -> _Tensor:
            """Run an op with one output."""

        def _autodiff_device(self, x: _Tensor) -> Any: ...

        def _untracked(self, x: _Tensor, what: str) -> Primitive: ...

    def detach(self, x: _Tensor) -> _Tensor:
        """The value on the same device, untracked in all layers."""
        join_trace(x)
        result = self.wrap(untracked(x.primitive), x.tensor_type)
        trace = running_trace()
        if trace is None or not trace.recorder.is_differentiated or x.dtype.kind is not Kind.FLOAT:
            return result
        return self.execute_one("detach", result)  # the body of a loop says so at each run

    def require_grad(self, x: _Tensor, device: DeviceId | Device | None = None) -> _Tensor:
        """A new leaf with the value of a tensor, on its device, whichever is named."""
        del device
        own = self._autodiff_device(x)
        leaf = self.wrap(own.backend.require_grad(x.primitive, own.id), x.tensor_type)
        node = leaf.primitive.node
        node.owner, node.tensor_type = weakref.ref(leaf), x.tensor_type
        return leaf

    def leaf_for(self, x: _Tensor, value: _Tensor) -> _Tensor:
        """A leaf with a value for the object `x` to hold: it has the hooks of the leaf that `x` is.

        What other devices and pickles know that leaf by, they know the new one by as well.
        """
        leaf = self.require_grad(value)
        node, old = leaf.primitive.node, getattr(x.primitive, "node", None)
        node.owner = weakref.ref(x)
        if isinstance(old, Leaf):
            node.hooks, node.distributed, node.key = old.hooks, old.distributed, old.key
        return leaf

    def renew_leaf(self, x: _Tensor, primitive: Primitive) -> bool:
        """Let a leaf hold another primitive of the device below, as by `leaf_for`: the fast path.

        Returns
        -------
        bool
            False if `x` is no leaf, or its leaf is also another object's; nothing is changed then.
        """
        tracked = x.primitive
        old = getattr(tracked, "node", None)
        if old.__class__ is not Leaf or old.owner is None or old.owner() is not x:
            return False
        node = Leaf(old.table, primitive)
        node.hooks, node.distributed, node.key = old.hooks, old.distributed, old.key
        node.owner, node.tensor_type = old.owner, x.tensor_type
        leaf = _new(tracked.__class__)
        leaf.primitive, leaf.node = primitive, node
        x.primitive = leaf
        return True

    def backward(
        self,
        x: _Tensor,
        cotangent: _Tensor | float | None = None,
        *,
        retain_graph: bool = False,
        inputs: Sequence[_Tensor] | None = None,
    ) -> Gradients:
        """Gradients of a tensor by the leaves it was computed from, or by some inputs alone.

        Raises
        ------
        AutodiffError
            If the tensor depends on the arguments of a running transform: the gradients would not;
            or in a body of control flow, if it depends on no leaf that was made there.
        """
        device = self._autodiff_device(x)
        if len(device.layers) > 1:
            raise AutodiffError(
                f"backward inside of a transform, on {device}: its gradients are constants there",
                hint="Call burn.grad or burn.vjp, whose results are differentiable",
                operation="backward",
            )
        trace = running_trace()
        if trace is not None and trace.body and not device.backend.is_tracked(x.primitive):
            raise AutodiffError(
                f"a tensor that depends on no leaf of the body of burn.{trace.body}, in which "
                "leaves from outside are values",
                hint="In the body call burn.grad or burn.value_and_grad, with the parameters or "
                "the module as an argument; or call backward outside of the body",
                operation="backward",
            )
        start: Any = cotangent
        if isinstance(cotangent, DispatchTensor):
            start = self._untracked(cotangent, "a cotangent")
        wanted = None if inputs is None else [source.primitive for source in inputs]
        found = device.backend.backward(
            x.primitive, start, retain_graph=retain_graph, inputs=wanted
        )
        return Gradients(found, self.tensor_class, device)

    def grad(self, x: _Tensor, gradients: Any) -> _Tensor | None:
        """Gradient of a tensor, on the device below autodiff."""
        backend = self._autodiff_device(x).backend
        return self._wrap_gradient(x, backend.grad(x.primitive, _primitives(gradients, x)))

    def grad_remove(self, x: _Tensor, gradients: Any) -> _Tensor | None:
        """Gradient of a tensor, which is taken out."""
        backend = self._autodiff_device(x).backend
        return self._wrap_gradient(x, backend.grad_remove(x.primitive, _primitives(gradients, x)))

    def grad_replace(self, x: _Tensor, gradients: Any, grad: _Tensor) -> None:
        """Put another gradient in place of that of a tensor."""
        backend = self._autodiff_device(x).backend
        common_device(x.tensor_type.device, grad.tensor_type.device)
        primitive = self._untracked(grad, "a gradient")
        backend.grad_replace(x.primitive, _primitives(gradients, x), primitive)

    def retain_grad(self, x: _Tensor) -> None:
        """Keep the gradient of a tensor that was computed from leaves."""
        self._autodiff_device(x).backend.retain_grad(x.primitive)

    def register_hook(self, x: _Tensor, hook: Callable[[_Tensor], _Tensor | None]) -> HookHandle:
        """Call a function with the gradient of a tensor when it is complete, in each pass."""
        device = self._autodiff_device(x)
        below = device.below

        @functools.wraps(hook)
        def on_primitive(primitive: Primitive) -> Primitive | None:
            # A pullback may run inside of transforms that began after the call.
            gradient = self.wrap(primitive, under_running(below).type_of(primitive))
            result = hook(gradient)
            if result is None:
                return None
            return replacement(result, gradient, f"the hook {name_of(hook)}")

        handle: HookHandle = device.backend.register_hook(x.primitive, on_primitive)
        return handle

    def set_distributed_params(self, x: _Tensor, param_id: int) -> _Tensor:
        """Mark a leaf as a parameter that several devices share."""
        self._autodiff_device(x).backend.set_distributed_params(x.primitive, param_id)
        return x

    def distributed_params(self, x: _Tensor) -> DistributedParams | None:
        """Identity of a leaf that several devices share; None of every other tensor."""
        return getattr(getattr(x.primitive, "node", None), "distributed", None)

    def is_distributed(self, x: _Tensor) -> bool:
        """Whether a tensor is marked as shared."""
        return self.distributed_params(x) is not None

    def _wrap_gradient(self, x: _Tensor, gradient: Primitive | None) -> _Tensor | None:
        if gradient is None:
            return None
        return self.wrap(gradient, x.tensor_type.device.below.type_of(gradient))


def _primitives(gradients: object, x: DispatchTensor) -> Primitives:
    if not isinstance(gradients, Gradients):
        raise OperandTypeError(
            f"gradients must be what backward() returned, not {type(gradients).__name__}"
        )
    gradients.check_trace(x)
    return gradients.primitives
