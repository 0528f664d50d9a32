"""The parameters that have a gradient, for a step of an optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from burn.autodiff import AutodiffTensor
from burn.devices import AUTODIFF, running_trace
from burn.dispatch import Gradients, join_trace
from burn.errors import ArgumentError, AutodiffError, TraceError
from burn.functions.common import dispatch
from burn.nn.module import Module
from burn.optim._paths import check_none_is_new, check_paths, named_tensors
from burn.optim._values import check_gradient, constant, follow

if TYPE_CHECKING:
    from burn.optim._slots import Slot
    from burn.tensor.tensor import Tensor

__all__ = ["with_gradients"]

_Pairs: TypeAlias = "list[tuple[Slot, Tensor]]"


def with_gradients(
    slots: Sequence[Slot], gradients: Any, module: Module | None, operation: str
) -> _Pairs:
    """The parameters that have a gradient, and these.

    Parameters
    ----------
    slots : sequence of Slot
        All parameters of an optimizer. Their states follow them to other devices and dtypes.
    gradients : Gradients, or containers of tensors
        What `Optimizer.step` takes.
    module : Module or None
        The module that has all of the parameters.
    operation : str
        How an error names the step.

    Raises
    ------
    ArgumentError, AutodiffError, TraceError
        As `Optimizer.step` says.
    """
    if isinstance(gradients, Gradients):
        pairs = _from_backward(slots, gradients, module, operation)
    else:
        pairs = _from_containers(slots, gradients, module, operation)
    if not pairs:
        raise ArgumentError(
            "no parameter has a gradient",
            hint="Does the loss depend on them? Are they frozen? Gradients belong to the "
            "values that parameters had in the forward pass: take one step of each pass",
            operation=operation,
        )
    if running_trace() is not None and not all(slot.tensor.device.is_traced for slot, _ in pairs):
        raise TraceError(
            "these gradients were computed outside of the function, before it was compiled",
            hint="Call backward() inside, with what it needs as arguments",
            operation=operation,
        )
    return pairs


def _from_backward(
    slots: Sequence[Slot], gradients: Gradients, module: Module | None, operation: str
) -> _Pairs:
    """The parameters that have a gradient in the result of a backward pass, and these."""
    found = gradients.primitives
    get = found.get if found.by_key else found.by_node.get
    wrap = dispatch.wrap
    pairs = []
    for slot in slots:
        x = slot.tensor
        primitive = x.primitive
        if x.tensor_type is not slot.seen:
            _follow(slot, operation)
        if isinstance(primitive, AutodiffTensor):
            gradient = get(primitive.node)
            if gradient is not None:
                pairs.append((slot, wrap(gradient, slot.below)))  # type: ignore[arg-type]  # `_follow` set it
        elif not x.device.layers:
            raise AutodiffError(
                f"the parameter {slot.path!r} is on {x.device}, which does not track gradients",
                hint="Move the parameters to a device with autodiff: module.to(device.autodiff())",
                operation=operation,
            )
    if module is not None and len(pairs) < len(gradients):
        own = [slot.tensor for slot in slots]
        check_none_is_new(module, own, gradients, operation)
    return pairs


def _from_containers(
    slots: Sequence[Slot], gradients: Any, module: Module | None, operation: str
) -> _Pairs:
    """The parameters that have a gradient in containers, by their paths, and these."""
    by_path = dict(named_tensors(gradients))
    pairs = []
    for slot in slots:
        gradient = by_path.get(slot.path)
        if gradient is None:
            continue
        join_trace(slot.tensor)
        if slot.tensor.tensor_type is not slot.seen:
            _follow(slot, operation)
        check_gradient(slot.tensor, gradient, slot.path, operation)
        pairs.append((slot, constant(gradient, slot.path, operation)))
    if module is not None or not isinstance(gradients, Module):
        check_paths(by_path, [slot.path for slot in slots], operation)
    return pairs


def _follow(slot: Slot, operation: str) -> None:
    """Bring the states of a parameter to its device and dtype, which are other than before."""
    x = slot.tensor
    device = x.device
    if device.layers not in ((), (AUTODIFF,)):
        raise AutodiffError(
            f"the parameter {slot.path!r} is on {device}, inside of a transform",
            hint="Call optimizer.update(parameters, gradients, state) there",
            operation=operation,
        )
    if x.is_tracked and not x.is_require_grad:
        raise AutodiffError(
            f"the parameter {slot.path!r} is no leaf: it was computed from other tensors",
            hint="Optimize the leaf that it was computed from",
            operation=operation,
        )
    for state in slot.states:
        follow(state, x)
    slot.seen, slot.below = x.tensor_type, device.hardware.tensor_type(x.dtype)
