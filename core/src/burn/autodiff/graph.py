"""The recorded graph of calls on tracked tensors.

A node is one call of an op. The tensors that it made and the nodes that use them own it, so a graph
without references is freed like any other object: there is no global table and no cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from burn.ops import Op, OpTable
    from burn.ops.signature import Primitive, Shape

__all__ = ["AutodiffTensor", "DistributedParams", "Leaf", "Node", "Output", "Parent", "Rule"]


class Rule:
    """How to differentiate one op on one device, shared by all nodes of the op.

    Attributes
    ----------
    op : Op
        The op.
    vjp : callable
        Its gradient rule.
    ops : OpTable
        The table of the level below, in which the rule computes.
    outputs : int
        Number of outputs of the op.
    broadcasts : bool
        Whether operands broadcast, so that gradients are summed to the shapes of the operands.
    restore : callable or None
        Computes the saved values from what checkpointing kept of them.
    """

    __slots__ = ("broadcasts", "op", "ops", "outputs", "restore", "vjp")

    def __init__(self, op: Op, vjp: Callable[..., Any], ops: OpTable, *, broadcasts: bool) -> None:
        self.op = op
        self.vjp = vjp
        self.ops = ops
        self.outputs = len(op.outputs)
        self.broadcasts = broadcasts
        self.restore: Callable[[Sequence[Any]], Sequence[Any]] | None = None


class Node:
    """One recorded call; to a gradient rule it is the context (`burn.ops.Context`).

    Attributes
    ----------
    rule : Rule or None
        How to differentiate it; None after a backward pass.
    parents : tuple
        For each operand the node that made it, or None for a constant; a tuple of such for a list
        operand.
    needs : tuple
        For each operand whether its gradient is required; a tuple of bools for a list operand.
    saved : tuple
        The values that the rule saves.
    attrs : dict
        Attributes of the call.
    output_shape : tuple of int
        Shape of the output.
    """

    __slots__ = ("attrs", "needs", "output_shape", "parents", "rule", "saved")

    rule: Rule | None
    parents: tuple[Parent, ...]
    needs: tuple[Any, ...]
    saved: Sequence[Any]
    attrs: Mapping[str, Any]
    output_shape: Shape

    def shape(self, index: int) -> Shape:
        """Shape of an operand whose gradient is required."""
        parent = self.parents[index]
        if not isinstance(parent, Node):
            raise TypeError(f"operand {index} is a constant, so its gradient is not required")
        return parent.output_shape

    def tracked_parents(self) -> Iterator[Node]:
        """The nodes that made the operands, once for each operand."""
        for parent in self.parents:
            if isinstance(parent, tuple):
                yield from (one for one in parent if one is not None)
            elif parent is not None:
                yield parent

    def free(self) -> None:
        """Drop all references of the node."""
        self.rule = None
        self.parents = ()
        self.saved = ()


Parent: TypeAlias = "Node | tuple[Node | None, ...] | None"


class DistributedParams:
    """Identity of a parameter that several devices share."""

    __slots__ = ("param_id",)

    def __init__(self, param_id: int) -> None:
        self.param_id = param_id


class Leaf(Node):
    """A tensor whose gradient is required, and which depends on no other tracked tensor."""

    __slots__ = ("distributed", "table")

    def __init__(self, table: OpTable, shape: Shape) -> None:
        self.rule = None
        self.parents = ()
        self.needs = ()
        self.saved = ()
        self.attrs = {}
        self.output_shape = shape
        self.table = table
        self.distributed: DistributedParams | None = None


class Output(Node):
    """One of several outputs of a call; its only parent is the node of the call."""

    __slots__ = ("index",)

    def __init__(self, call: Node, index: int, shape: Shape) -> None:
        self.rule = call.rule
        self.parents = (call,)
        self.needs = (True,)
        self.saved = ()
        self.attrs = {}
        self.output_shape = shape
        self.index = index


class AutodiffTensor:
    """A tracked primitive: that of the level below, and the node that made it.

    Each Autodiff backend has its own subclass, which tells its tensors from those of another level:
    these are constants to it.
    """

    __slots__ = ("node", "primitive", "recipe")

    primitive: Primitive
    node: Node

    recipe: Any
    """The call that computes the primitive again; set under checkpointing alone."""

    @property
    def shape(self) -> Shape:
        """Length of each axis."""
        return self.primitive.shape  # type: ignore[no-any-return]  # a primitive is anything

    @property
    def dtype(self) -> Any:
        """The dtype object of the primitive."""
        return self.primitive.dtype

    def __repr__(self) -> str:
        return f"AutodiffTensor({self.primitive!r})"
