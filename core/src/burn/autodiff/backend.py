"""Autodiff: a decorator that gives any backend gradients, driven by the op table."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from burn.autodiff._checkpointing import CheckpointingTable
from burn.autodiff.backward import Gradients, backward
from burn.autodiff.graph import AutodiffTensor, DistributedParams, Leaf, Node
from burn.autodiff.recording import RecordingTable
from burn.errors import AutodiffError, DTypeError, OperandTypeError, ShapeError
from burn.ops import OpTable, resolve
from burn.ops.shapes import size

if TYPE_CHECKING:
    from burn.backend import Backend
    from burn.device_id import DeviceId
    from burn.ops.signature import Primitive

__all__ = ["Autodiff"]


class Autodiff:
    """A backend over another that records the ops on tracked tensors.

    An untracked tensor is a primitive of the backend below; only a tensor that depends on a leaf
    (see `require_grad`) is wrapped. Autodiff over Autodiff differentiates gradients.

    Parameters
    ----------
    below : Backend
        The backend that computes.
    """

    def __init__(self, below: Backend) -> None:
        self.below = below
        self.tensor_type: type[AutodiffTensor] = type(
            "AutodiffTensor", (AutodiffTensor,), {"__slots__": ()}
        )
        self._tables: dict[DeviceId, RecordingTable] = {}
        self._checkpointing_tables: dict[DeviceId, RecordingTable] = {}
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        # All other members are those of the backend below.
        return getattr(self.below, name)

    def name(self, device: DeviceId) -> str:
        """``autodiff<cpu>`` for the backend ``cpu``."""
        return f"autodiff<{self.below.name(device)}>"

    def ad_enabled(self, device: DeviceId) -> bool:
        """True: tensors can be tracked."""
        del device
        return True

    def for_device(self, device: DeviceId, *, checkpointing: bool = False) -> RecordingTable:
        """The recording op table of a device; with `checkpointing`, one that recomputes."""
        tables = self._checkpointing_tables if checkpointing else self._tables
        kind = CheckpointingTable if checkpointing else RecordingTable
        with self._lock:
            table = tables.get(device)
            if table is None:
                table = tables[device] = kind(resolve(self.below, device), self.tensor_type)
            return table

    def require_grad(self, tensor: Primitive, device: DeviceId) -> AutodiffTensor:
        """A new leaf with the value of an untracked tensor, or of a leaf.

        Raises
        ------
        AutodiffError
            If the tensor was computed from a leaf.
        DTypeError
            If it is not a float tensor.
        """
        if tensor.__class__ is self.tensor_type:
            if not self.is_require_grad(tensor):
                raise AutodiffError(
                    "require_grad on a tensor that was computed from tracked ones",
                    hint="Only a leaf can be one: call .detach() first for a new start",
                )
            tensor = tensor.primitive
        table = self._tables.get(device) or self.for_device(device)
        dtype = table.dtype(tensor)
        if not dtype.is_float:
            raise DTypeError(f"only float tensors have gradients, not {dtype}")
        leaf = self.tensor_type()
        leaf.primitive = tensor
        leaf.node = Leaf(table.below, tensor.shape)
        return leaf

    def is_require_grad(self, tensor: Primitive) -> bool:
        """Whether a tensor is a leaf."""
        return self.is_tracked(tensor) and isinstance(tensor.node, Leaf)

    def is_tracked(self, tensor: Primitive) -> bool:
        """Whether a tensor is a leaf or was computed from one."""
        return tensor.__class__ is self.tensor_type

    def backward(self, tensor: Primitive, cotangent: Primitive | None = None) -> Gradients:
        """Gradients of a tensor by the leaves it was computed from; frees the graph.

        Parameters
        ----------
        tensor : primitive
            The output to differentiate.
        cotangent : primitive, optional
            Gradient of the final result by this output, in its shape. By default 1, for an output
            with one element.

        Raises
        ------
        AutodiffError
            If the tensor is not tracked, or its graph was freed.
        ShapeError
            If the tensor has several elements and there is no cotangent, or of another shape.
        DTypeError
            If the cotangent has another dtype.
        """
        if not self.is_tracked(tensor):
            raise AutodiffError(
                "backward on a tensor that depends on no leaf",
                hint="Call .require_grad() on a tensor of an autodiff device, then compute with it",
            )
        shape = tuple(tensor.shape)
        if cotangent is None:
            if size(shape) != 1:
                raise ShapeError(
                    f"backward on a tensor of shape {shape} needs a cotangent",
                    hint="Reduce it to one element (.sum() or .mean()), or pass a cotangent",
                )
            ops = _table_of(tensor.node)
            cotangent = ops.full(shape=shape, fill_value=1.0, dtype=ops.dtype(tensor.primitive))
        else:
            if tuple(cotangent.shape) != shape:
                raise ShapeError(
                    f"a cotangent of shape {tuple(cotangent.shape)} for a tensor of shape {shape}"
                )
            _check_dtype(cotangent, tensor, _table_of(tensor.node), "a cotangent")
        return backward(tensor, cotangent)

    def grad(self, tensor: Primitive, gradients: Gradients) -> Primitive | None:
        """Gradient of a leaf, or None where the output did not depend on it."""
        return _checked(gradients).get(self._leaf(tensor))

    def grad_remove(self, tensor: Primitive, gradients: Gradients) -> Primitive | None:
        """Gradient of a leaf, which is removed."""
        return _checked(gradients).pop(self._leaf(tensor))

    def grad_replace(self, tensor: Primitive, gradients: Gradients, grad: Primitive) -> None:
        """Replace the gradient of a leaf."""
        leaf = self._leaf(tensor)
        if tuple(grad.shape) != tuple(leaf.output_shape):
            raise ShapeError(
                f"a gradient of shape {tuple(grad.shape)} for a tensor of shape {leaf.output_shape}"
            )
        _check_dtype(grad, tensor, leaf.table, "a gradient")
        _checked(gradients).put(leaf, grad)

    def inner(self, tensor: Primitive) -> Primitive:
        """The tensor of the backend below, untracked."""
        return tensor.primitive if self.is_tracked(tensor) else tensor

    int_inner = bool_inner = q_inner = inner

    def from_inner(self, tensor: Primitive) -> Primitive:
        """A tensor of the backend below as an untracked one of this backend: the same object."""
        return tensor

    int_from_inner = bool_from_inner = q_from_inner = from_inner

    def set_distributed_params(self, tensor: Primitive, param_id: int) -> Primitive:
        """Mark a leaf as a parameter that several devices share."""
        self._leaf(tensor).distributed = DistributedParams(param_id)
        return tensor

    def distributed_params(self, tensor: Primitive) -> DistributedParams | None:
        """Identity of a leaf that several devices share, or None."""
        return self._leaf(tensor).distributed if self.is_require_grad(tensor) else None

    def is_distributed(self, tensor: Primitive) -> bool:
        """Whether a tensor is marked as shared."""
        return self.distributed_params(tensor) is not None

    def _leaf(self, tensor: Primitive) -> Leaf:
        if self.is_tracked(tensor) and isinstance(tensor.node, Leaf):
            return tensor.node
        raise AutodiffError(
            "the tensor is no leaf, so no gradient is kept for it",
            hint="Gradients are kept for tensors on which .require_grad() was called",
        )


def _check_dtype(gradient: Primitive, tensor: AutodiffTensor, ops: OpTable, name: str) -> None:
    """Raise DTypeError unless a gradient has the dtype of its tensor."""
    if gradient.dtype is tensor.dtype:
        return
    own, expected = ops.dtype(gradient), ops.dtype(tensor)
    if own is not expected:  # array-api-strict has several objects of one dtype
        raise DTypeError(
            f"{name} of {own} for a tensor of {expected}",
            hint=f'Call .astype("{expected}") on it',
        )


def _checked(gradients: object) -> Gradients:
    if not isinstance(gradients, Gradients):
        raise OperandTypeError(
            f"gradients must be what backward() returned, not {type(gradients).__name__}"
        )
    return gradients


def _table_of(node: Node) -> OpTable:
    """The table in which the gradients of a node are computed."""
    if isinstance(node, Leaf):
        return node.table
    if node.rule is None:
        raise AutodiffError(
            "the graph was freed by an earlier backward pass",
            hint="Compute the output again, or add the outputs up and call backward once",
        )
    return node.rule.ops
