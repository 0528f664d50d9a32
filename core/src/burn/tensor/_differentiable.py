"""Gradients of a tensor: leaves, the backward pass, and ways to and from the autodiff device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn.errors import DeviceMismatchError
from burn.functions.normalize import check_tensor
from burn.tensor._attributes import TensorAttributes, dispatch

if TYPE_CHECKING:
    from burn.autodiff import Gradients
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

    def backward(self, cotangent: Tensor | None = None) -> Gradients:
        """Gradients of this tensor with respect to the leaves it was computed from.

        Frees the graph.

        Parameters
        ----------
        cotangent : Tensor, optional
            Gradient of the differentiated quantity with respect to this tensor, in its shape.
            Needed unless the tensor has one element.

        Returns
        -------
        Gradients
            For `grad` of each leaf.

        Raises
        ------
        AutodiffError
            If it depends on no leaf, or the graph was freed by an earlier backward.
        ShapeError
            If there is no cotangent of the right shape.
        DTypeError
            If the cotangent has another dtype.
        """
        if cotangent is not None:
            check_tensor(cotangent, "cotangent", "backward")
            if cotangent.device != self.device:
                raise DeviceMismatchError(
                    f"a cotangent on {cotangent.device} for a tensor on {self.device}",
                    hint=f'Move it with .to_device("{self.device.name}")',
                )
        return dispatch.backward(self, cotangent)  # type: ignore[no-any-return]  # Gradients

    # The gradient of a leaf that the output does not depend on is None. The type says Any for it,
    # since a check of every gradient in every training loop would find nothing.

    def grad(self, gradients: Gradients) -> Tensor | Any:
        """Gradient of this leaf, on the device below autodiff.

        None if the output does not depend on this leaf.
        """
        return dispatch.grad(self, gradients)

    def grad_remove(self, gradients: Gradients) -> Tensor | Any:
        """Gradient of this leaf, which is removed from the gradients."""
        return dispatch.grad_remove(self, gradients)

    def grad_replace(self, gradients: Gradients, grad: Tensor) -> None:
        """Replace the gradient of this leaf by another of its shape and dtype."""
        check_tensor(grad, "grad", "grad_replace")
        dispatch.grad_replace(self, gradients, grad)

    def inner(self) -> Tensor:
        """The value on the device below autodiff, untracked."""
        value: Tensor = dispatch.inner(self)
        return value

    def detach(self) -> Tensor:
        """The value on the same device, untracked."""
        value: Tensor = dispatch.wrap(dispatch.inner(self).primitive, self.tensor_type)
        return value
