"""Gradients of a tensor: leaves, the backward pass, and ways to and from the autodiff device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from burn.dispatch import DispatchTensor
from burn.errors import DeviceMismatchError, OperandTypeError
from burn.functions.normalize import check_tensor, check_tensors
from burn.ops.arguments import as_integer, python_number
from burn.tensor._attributes import TensorAttributes, dispatch

if TYPE_CHECKING:
    from burn.autodiff import DistributedParams, HookHandle
    from burn.dispatch import Gradients
    from burn.tensor.tensor import Tensor

__all__ = ["Differentiable"]


class Differentiable(TensorAttributes):
    """Base of `Tensor` with gradients."""

    __slots__ = ()

    def require_grad(self) -> Tensor:
        """A new leaf with the value of this tensor: gradients are kept for it.

        Raises
        ------
        AutodiffError
            If the tensor was computed from a leaf.
        OperandTypeError
            If it is not on an autodiff device.
        DTypeError
            If it is not a float tensor.

        Examples
        --------
        >>> import burn
        >>> x = burn.asarray([3.0], device=burn.Device("cpu").autodiff()).require_grad()
        >>> gradients = (x * x).sum().backward()
        >>> x.grad(gradients).tolist()
        [6.0]
        """
        leaf: Tensor = dispatch.require_grad(self)
        return leaf

    def backward(
        self,
        cotangent: Tensor | float | None = None,
        *,
        retain_graph: bool = False,
        inputs: Sequence[Tensor] | None = None,
    ) -> Gradients:
        """Gradients of this tensor with respect to the leaves it was computed from.

        Frees the graph, node by node. A pass that fails leaves a graph that is partly freed: then
        compute the output again.

        Parameters
        ----------
        cotangent : Tensor or number, optional
            Gradient of the differentiated quantity with respect to this tensor, in its shape; a
            number is that of each element. Needed unless the tensor has one element: there it is
            1. ``backward(1.0)`` gives the gradient of the sum of all elements.
        retain_graph : bool
            Whether the graph is kept, for another pass.
        inputs : list or tuple of Tensor, optional
            Compute the gradients of these tensors alone: leaves, or tensors that were computed
            from leaves. Nothing is computed, or freed, that does not lead to them.

        Returns
        -------
        Gradients
            For `grad` of each leaf; a mapping from leaves to gradients. Of `inputs`, if given.

        Raises
        ------
        AutodiffError
            If this tensor or an input depends on no leaf, or the graph was freed by an earlier
            backward.
        ShapeError
            If there is no cotangent of the right shape.
        DTypeError
            If the cotangent has another dtype.

        Examples
        --------
        >>> import burn
        >>> x = burn.asarray([1.0, 3.0], device=burn.Device("cpu").autodiff()).require_grad()
        >>> y = x * x
        >>> x.grad(y.backward(1.0, retain_graph=True)).tolist()
        [2.0, 6.0]
        >>> y.grad((y * 5).sum().backward(inputs=[y])).tolist()
        [5.0, 5.0]
        """
        if isinstance(cotangent, DispatchTensor):
            if cotangent.device != self.device:
                raise DeviceMismatchError(
                    f"a cotangent on {cotangent.device} for a tensor on {self.device}",
                    hint=f'Move it with .to_device("{self.device.name}")',
                )
        elif cotangent is not None:
            cotangent = python_number(cotangent)
            if isinstance(cotangent, bool) or not isinstance(cotangent, (int, float)):
                raise OperandTypeError(
                    f"cotangent must be a tensor or a number, not {type(cotangent).__name__}",
                    hint="burn.asarray() makes a tensor of sequences and arrays",
                    operation="backward",
                )
        wanted = None if inputs is None else check_tensors(inputs, "backward")
        gradients: Gradients = dispatch.backward(
            self, cotangent, retain_graph=retain_graph, inputs=wanted
        )
        return gradients

    # The gradient of a leaf that the output does not depend on is None. The type says Any for it,
    # since a check of every gradient in every training loop would find nothing.

    def grad(self, gradients: Gradients) -> Tensor | Any:
        """Gradient of this tensor, on the device below autodiff.

        Parameters
        ----------
        gradients : Gradients
            What `backward` returned.

        Returns
        -------
        Tensor or None
            None if the output does not depend on this leaf, or this tensor is a constant.

        Raises
        ------
        AutodiffError
            If this tensor was computed from leaves, and its gradient was not kept; see
            `retain_grad`.
        """
        return dispatch.grad(self, gradients)

    def grad_remove(self, gradients: Gradients) -> Tensor | Any:
        """Gradient of this tensor as by `grad`, which is removed from the gradients."""
        return dispatch.grad_remove(self, gradients)

    def grad_replace(self, gradients: Gradients, grad: Tensor) -> None:
        """Replace the gradient of this tensor by another of its shape and dtype."""
        check_tensor(grad, "grad", "grad_replace")
        dispatch.grad_replace(self, gradients, grad)

    def retain_grad(self) -> None:
        """Keep the gradient of this tensor, which was computed from leaves, in later passes.

        It belongs to the value that the tensor has now, not to one that is written to it later.
        The gradient of a leaf is always kept.

        Returns
        -------
        None
            `grad` of the gradients that `backward` returns reads it.

        Raises
        ------
        AutodiffError
            If this tensor is not tracked, or its graph was freed.

        Examples
        --------
        >>> import burn
        >>> x = burn.asarray([1.0, 3.0], device=burn.Device("cpu").autodiff()).require_grad()
        >>> y = x * x
        >>> y.retain_grad()
        >>> y.grad((y * 5).sum().backward()).tolist()
        [5.0, 5.0]
        """
        dispatch.retain_grad(self)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> HookHandle:
        """Call a function with the gradient of this tensor during backward.

        Each pass calls it once, when the gradient is complete: all uses of the tensor are summed,
        and what the tensor was computed from comes later. So the hook of a leaf may send the
        gradient to other processes while the pass goes on. Several hooks run in the order in which
        they were registered. Those of a leaf stay for later passes; those of another tensor end
        with its graph, and belong to the value that the tensor has now. A hook that refers to its
        tensor keeps it alive until then.

        Parameters
        ----------
        hook : callable
            ``hook(gradient)`` gets a tensor of the device below autodiff. It returns None, or a
            tensor of the same shape and dtype that replaces the gradient from there on. What it
            raises ends the pass.

        Returns
        -------
        HookHandle
            ``handle.remove()`` removes the hook.

        Raises
        ------
        AutodiffError
            If this tensor is not tracked, or its graph was freed.
        OperandTypeError
            If `hook` is not callable.

        Examples
        --------
        >>> import burn
        >>> x = burn.asarray([1.0, 3.0], device=burn.Device("cpu").autodiff()).require_grad()
        >>> handle = x.register_hook(lambda gradient: burn.clip(gradient, max=4.0))
        >>> x.grad((x * x).sum().backward()).tolist()
        [2.0, 4.0]
        """
        if not callable(hook):
            raise OperandTypeError(
                f"a hook must be callable, not {type(hook).__name__}", operation="register_hook"
            )
        handle: HookHandle = dispatch.register_hook(self, hook)
        return handle

    def set_distributed_params(self, param_id: int) -> Tensor:
        """Mark this leaf as a parameter that several devices share; returns it.

        With one device nothing else changes: it is for libraries that bring the gradients of
        several devices together.

        Parameters
        ----------
        param_id : int
            What the same parameter is called on each device.

        Raises
        ------
        AutodiffError
            If this tensor is no leaf.
        OperandTypeError
            If `param_id` is no integer.

        Examples
        --------
        >>> import burn
        >>> x = burn.ones(2, device=burn.Device("cpu").autodiff()).require_grad()
        >>> x.set_distributed_params(7).distributed_params.param_id
        7
        """
        identity = as_integer(param_id, "param_id", "set_distributed_params")
        marked: Tensor = dispatch.set_distributed_params(self, identity)
        return marked

    @property
    def distributed_params(self) -> DistributedParams | None:
        """What several devices know this leaf by; None of a tensor that is not shared."""
        return dispatch.distributed_params(self)

    @property
    def is_distributed(self) -> bool:
        """Whether this leaf is marked as a parameter that several devices share."""
        return dispatch.is_distributed(self)

    def inner(self) -> Tensor:
        """The value on the device below autodiff, untracked."""
        value: Tensor = dispatch.inner(self)
        return value

    def detach(self) -> Tensor:
        """The value on the same device, untracked; inside of transforms a constant to all."""
        value: Tensor = dispatch.detach(self)
        return value
