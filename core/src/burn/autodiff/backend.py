"""Autodiff: a decorator that gives any backend gradients, driven by the op table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from burn.autodiff._checkpointing import CheckpointingTable
from burn.autodiff.backward import Gradients, backward_all, check_same, failed
from burn.autodiff.graph import (
    AutodiffTensor,
    DistributedParams,
    Freed,
    HookHandle,
    Leaf,
    Node,
    hooks_of,
)
from burn.autodiff.recording import RecordingTable
from burn.backend import AutodiffBackend
from burn.backend.decorator import Decorator
from burn.errors import AutodiffError, BurnError, DTypeError, OperandTypeError, ShapeError
from burn.locks import new_lock
from burn.ops import OpTable
from burn.ops.arguments import real_number
from burn.ops.quantized_primitive import is_quantized
from burn.ops.shapes import size
from burn.ops.table import resolve_below

if TYPE_CHECKING:
    from burn.backend import Backend
    from burn.device_id import DeviceId
    from burn.ops.signature import Primitive

__all__ = ["Autodiff"]


class Autodiff(Decorator, AutodiffBackend):
    """A backend over another that records the ops on tracked tensors.

    An untracked tensor is a primitive of the backend below; only a tensor that depends on a leaf
    (see `require_grad`) is wrapped. Autodiff over Autodiff differentiates gradients.

    Parameters
    ----------
    below : Backend
        The backend that computes.

    Attributes
    ----------
    level : int
        The number of decorators below this one.
    tensor_type : type
        The class of its tracked tensors.
    """

    def __init__(self, below: Backend) -> None:
        super().__init__(below)
        self.level = _decorators(below)
        self.tensor_type: type[AutodiffTensor] = type(
            "AutodiffTensor", (AutodiffTensor,), {"__slots__": (), "level": self.level}
        )
        self._tables: dict[DeviceId, RecordingTable] = {}
        self._checkpointing_tables: dict[DeviceId, RecordingTable] = {}
        self._lock = new_lock()

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
                table_below = resolve_below(self.below, device, checkpointing=checkpointing)
                table = tables[device] = kind(table_below, self.tensor_type)
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
        quantized = is_quantized(tensor)
        dtype = tensor.dtype if quantized else table.dtype(tensor)
        if quantized or not dtype.is_float:
            raise DTypeError(f"only float tensors have gradients, not {dtype}")
        return self.tensor_of(Leaf(table.below, tensor))

    def tensor_of(self, leaf: Leaf) -> AutodiffTensor:
        """The tensor of a leaf."""
        tensor = self.tensor_type()
        tensor.primitive = leaf.primitive
        tensor.node = leaf
        return tensor

    def is_require_grad(self, tensor: Primitive) -> bool:
        """Whether a tensor is a leaf."""
        return self.is_tracked(tensor) and isinstance(tensor.node, Leaf)

    def is_tracked(self, tensor: Primitive) -> bool:
        """Whether a tensor is a leaf or was computed from one."""
        return tensor.__class__ is self.tensor_type

    def backward(
        self,
        tensor: Primitive,
        cotangent: Primitive | float | None = None,
        *,
        retain_graph: bool = False,
        inputs: Sequence[Primitive] | None = None,
        lift: Callable[[OpTable], OpTable] | None = None,
    ) -> Gradients:
        """Gradients of a tensor by the leaves it was computed from; frees the graph.

        Parameters
        ----------
        tensor : primitive
            The output to differentiate.
        cotangent : primitive or number, optional
            Gradient of the final result by this output, in its shape, or a number for all elements.
            By default 1, for an output with one element.
        retain_graph : bool
            Whether the graph is kept for another pass.
        inputs : sequence of primitives, optional
            Tracked tensors: compute their gradients alone, and visit nothing else.
        lift : callable, optional
            See `backward_all`.

        Raises
        ------
        AutodiffError
            If the tensor or an input is not tracked, or the graph was freed.
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
        nodes = None if inputs is None else [self._input(source) for source in inputs]
        ops = _table_of(tensor.node)
        if lift is not None:
            ops = lift(ops)
        cotangent = self._cotangent(tensor, cotangent, ops)
        return backward_all(
            [tensor], [cotangent], retain_graph=retain_graph, inputs=nodes, lift=lift
        )

    def _cotangent(
        self, tensor: AutodiffTensor, cotangent: Primitive | float | None, ops: OpTable
    ) -> Primitive:
        """The gradient with which a pass starts."""
        shape = tuple(tensor.shape)
        if cotangent is None:
            if size(shape) != 1:
                raise ShapeError(
                    f"backward on a tensor of shape {shape} needs a cotangent",
                    hint="Reduce it to one element (.sum() or .mean()), or pass the gradient of "
                    "what you differentiate by it: backward(1.0) gives what burn's backward() "
                    "gives, the gradient of the sum of all elements",
                )
            value = 1.0
        elif hasattr(cotangent, "shape"):
            check_same(cotangent, tensor, ops, "a cotangent")
            return cotangent
        else:
            value = real_number(cotangent, "cotangent", "backward", takes_nan=True)
        try:
            return ops.full(shape=shape, fill_value=value, dtype=ops.dtype(tensor.primitive))
        except BurnError:
            raise
        except Exception as error:
            raise failed(error, ops, "backward") from error

    def _input(self, tensor: Primitive) -> Node:
        """The node of an input, which may be on a device of another backend."""
        if isinstance(tensor, AutodiffTensor) and tensor.level == self.level:
            return tensor.node
        raise AutodiffError(
            "an input of backward depends on no leaf",
            hint="Name leaves, and tensors that were computed from leaves",
        )

    def grad(self, tensor: Primitive, gradients: Gradients) -> Primitive | None:
        """Gradient of a tensor; None where the output did not depend on it, or it is untracked.

        Raises
        ------
        AutodiffError
            If the tensor was computed from others, and its gradient was not kept; or if the
            gradients belong to tensors of another level.
        """
        node = self._node(tensor, gradients)
        return None if node is None else gradients.get(node)

    def grad_remove(self, tensor: Primitive, gradients: Gradients) -> Primitive | None:
        """Gradient of a tensor as by `grad`, which is removed."""
        node = self._node(tensor, gradients)
        return None if node is None else gradients.pop(node)

    def grad_replace(self, tensor: Primitive, gradients: Gradients, grad: Primitive) -> None:
        """Replace the gradient of a tensor."""
        node = self._node(tensor, gradients)
        if node is None:
            raise AutodiffError(
                "the tensor is not tracked, so it has no gradient",
                hint="Gradients are kept for tensors on which .require_grad() was called",
            )
        table = next(iter(self._tables.values()))  # there is one, for the leaf; all know the dtypes
        check_same(grad, tensor, table, "a gradient")
        gradients.put(node, grad)

    def retain_grad(self, tensor: Primitive) -> None:
        """Keep the gradient of a tensor that was computed from others, in later passes."""
        if not self.is_require_grad(tensor):
            hooks_of(self._tracked(tensor)).retains = True

    def register_hook(
        self, tensor: Primitive, hook: Callable[[Primitive], Primitive | None]
    ) -> HookHandle:
        """Call a function with the gradient of a tensor when it is complete, in each pass.

        Parameters
        ----------
        tensor : primitive
            A tracked tensor.
        hook : callable
            From the gradient to another one of its shape and dtype, with which the pass goes on; or
            to None.
        """
        return hooks_of(self._tracked(tensor)).add(hook)

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
        if not self.is_require_grad(tensor):
            raise AutodiffError(
                "only a leaf can be a parameter that several devices share",
                hint="Call .require_grad() on the tensor first",
            )
        tensor.node.distributed = DistributedParams(param_id)
        return tensor

    def distributed_params(self, tensor: Primitive) -> DistributedParams | None:
        """Identity of a leaf that several devices share, or None."""
        return tensor.node.distributed if self.is_require_grad(tensor) else None

    def is_distributed(self, tensor: Primitive) -> bool:
        """Whether a tensor is marked as shared."""
        return self.distributed_params(tensor) is not None

    def _tracked(self, tensor: Primitive) -> Node:
        if not self.is_tracked(tensor):
            raise AutodiffError(
                "the tensor is not tracked, so it has no gradient",
                hint="Call .require_grad() on it, or on a tensor that it is computed from",
            )
        return tensor.node  # type: ignore[no-any-return]  # of a tracked tensor

    def _node(self, tensor: Primitive, gradients: Gradients) -> Node | None:
        """The node under which gradients have that of a tensor; None of an untracked one."""
        if not isinstance(gradients, Gradients):
            raise OperandTypeError(
                f"gradients must be what backward() returned, not {type(gradients).__name__}"
            )
        if gradients.level != self.level:
            raise AutodiffError(
                f"gradients of tensors under {gradients.level + 1} decorators for a tensor under "
                f"{self.level + 1}",
                hint="Read them with the tensors that backward() was called for",
            )
        if not self.is_tracked(tensor):
            return None
        node: Node = tensor.node
        if isinstance(node, Leaf) or node in gradients.wanted or _retains(node):
            return node
        raise AutodiffError(
            "the tensor is no leaf, so no gradient is kept for it",
            hint="Call .retain_grad() on it before backward(), or pass it as one of the inputs "
            "of backward()",
        )


def _retains(node: Node) -> bool:
    """Whether a node that was not visited keeps its gradient."""
    rule = node.rule
    return rule.__class__ is not Freed and rule.hooks is not None and rule.hooks.retains


def _decorators(backend: Any) -> int:
    """The number of decorators in a stack, which have a backend below."""
    count = 0
    while (backend := getattr(backend, "below", None)) is not None:
        count += 1
    return count


def _table_of(node: Node) -> OpTable:
    """The table in which the gradients of a node are computed."""
    if isinstance(node, Leaf):
        return node.table
    if node.rule.__class__ is Freed:
        raise node.rule.error()
    return node.rule.ops  # type: ignore[no-any-return]  # of a Rule
