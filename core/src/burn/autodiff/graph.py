"""The recorded graph of calls on tracked tensors.

A node is one call of an op. The tensors that it made and the nodes that use them own it, so a graph
without references is freed like any other object: there is no global table and no cycle.
"""

from __future__ import annotations

import copy
import itertools
import uuid
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from burn.errors import AutodiffError

if TYPE_CHECKING:
    import weakref

    from burn.ops import OpTable
    from burn.ops.signature import Primitive, Shape

__all__ = [
    "AutodiffTensor",
    "DistributedParams",
    "Freed",
    "HookHandle",
    "Hooks",
    "Leaf",
    "Node",
    "Output",
    "Parent",
    "Rule",
    "hooks_of",
]


class Rule:
    """How to differentiate one op on one device, shared by all nodes of the op.

    A node whose tensor has hooks has a rule of its own, with them: so all other nodes pay nothing.

    Attributes
    ----------
    name : str
        Name of the op.
    vjp : callable
        Its gradient rule.
    ops : OpTable
        The table of the level below, in which the rule computes.
    outputs : int
        Number of outputs of the op.
    broadcasts : bool
        Whether operands broadcast, so that gradients are summed to the shapes of the operands.
    has_lists : bool
        Whether an operand is a list of tensors.
    restore : callable or None
        Computes the saved values from what checkpointing kept of them.
    hooks : Hooks or None
        What backward does with the gradient of the output.
    """

    __slots__ = ("broadcasts", "has_lists", "hooks", "name", "ops", "outputs", "restore", "vjp")

    def __init__(
        self,
        name: str,
        vjp: Callable[..., Any],
        ops: OpTable,
        outputs: int,
        *,
        broadcasts: bool = False,
        has_lists: bool = False,
    ) -> None:
        self.name = name
        self.vjp = vjp
        self.ops = ops
        self.outputs = outputs
        self.broadcasts = broadcasts
        self.has_lists = has_lists
        self.restore: Callable[[Sequence[Any]], Sequence[Any]] | None = None
        self.hooks: Hooks | None = None


class Freed:
    """What a node has for its rule after a backward pass, which all nodes of the pass share.

    Attributes
    ----------
    failure : str
        Why the pass failed; empty if it did not.
    """

    __slots__ = ("failure",)

    def __init__(self) -> None:
        self.failure = ""

    @property
    def hooks(self) -> Hooks | None:
        """Raises the error: another thread freed a node that a pass comes to."""
        raise self.error()

    def error(self) -> AutodiffError:
        """The error for another pass over such a node."""
        if self.failure:
            return AutodiffError(
                f"the graph was freed by a backward pass that failed: {self.failure}",
                hint="Compute the output again; backward(retain_graph=True) frees nothing",
            )
        return AutodiffError(
            "the graph was freed by an earlier backward pass",
            hint="Pass retain_graph=True to the earlier one, add the outputs up and call backward "
            "once, or compute the output again",
        )


class Hooks:
    """What backward does with the complete gradient of a tensor.

    Attributes
    ----------
    functions : dict
        The hooks by their numbers, in order: each gets the gradient and returns another, or None.
    retains : bool
        Whether the gradient is kept in the result of the pass; that of a leaf always is.
    """

    __slots__ = ("functions", "retains")

    def __init__(self) -> None:
        self.functions: dict[int, Callable[[Primitive], Primitive | None]] = {}
        self.retains = False

    def add(self, function: Callable[[Primitive], Primitive | None]) -> HookHandle:
        """Register a hook after all others."""
        number = next(_numbers)
        self.functions[number] = function
        return HookHandle(self.functions, number)


class HookHandle:
    """A registered hook, which can be removed.

    Examples
    --------
    >>> import burn
    >>> x = burn.ones(2, device=burn.Device("cpu").autodiff()).require_grad()
    >>> handle = x.register_hook(lambda gradient: gradient * 2)
    >>> x.grad(x.sum().backward()).tolist()
    [2.0, 2.0]
    >>> handle.remove()
    >>> x.grad(x.sum().backward()).tolist()
    [1.0, 1.0]
    """

    __slots__ = ("_functions", "_number")

    def __init__(self, functions: dict[int, Any], number: int) -> None:
        self._functions = functions
        self._number = number

    def remove(self) -> None:
        """Remove the hook; nothing happens if it was removed before."""
        self._functions.pop(self._number, None)


_numbers = itertools.count()


class Node:
    """One recorded call; to a gradient rule it is the context (`burn.ops.Context`).

    Attributes
    ----------
    rule : Rule or Freed or None
        How to differentiate it; `Freed` after a backward pass; None of a leaf.
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

    rule: Any
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

    def tracked_parents(self) -> list[Node]:
        """The nodes that made the operands, once for each operand."""
        found: list[Node] = []
        for parent in self.parents:
            if isinstance(parent, tuple):
                found += [node for node in parent if node is not None]
            elif parent is not None:
                found.append(parent)
        return found

    def free(self, freed: Freed) -> None:
        """Drop all references of the node."""
        self.rule = freed
        self.parents = ()
        self.saved = ()


Parent: TypeAlias = "Node | tuple[Node | None, ...] | None"


class DistributedParams:
    """Identity of a parameter that several devices share."""

    __slots__ = ("param_id",)

    def __init__(self, param_id: int) -> None:
        self.param_id = param_id


class Leaf(Node):
    """A tensor whose gradient is required, and which depends on no other tracked tensor.

    Attributes
    ----------
    table : OpTable
        The table of the level below, in which its gradients are summed.
    hooks : Hooks or None
        What backward does with its gradient.
    distributed : DistributedParams or None
        Its identity, if several devices share it.
    primitive : primitive
        Its value, of the level below.
    owner : weakref.ref or None
        The object that users hold for it; None if there is none.
    tensor_type : object
        What that object has beside its primitive.
    key : bytes or None
        Its identity in pickles; None if it was in none.
    """

    __slots__ = ("distributed", "hooks", "key", "owner", "primitive", "table", "tensor_type")

    rule = None
    parents = ()
    needs = ()
    saved = ()
    attrs: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, table: OpTable, primitive: Primitive) -> None:
        self.output_shape = primitive.shape
        self.table = table
        self.primitive = primitive
        self.hooks: Hooks | None = None
        self.distributed: DistributedParams | None = None
        self.owner: weakref.ref[Any] | None = None
        self.tensor_type: Any = None
        self.key: bytes | None = None

    def identity(self) -> bytes:
        """The key, which is made at the first call."""
        if self.key is None:
            self.key = uuid.uuid4().bytes
        return self.key


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

    __slots__ = ("__weakref__", "node", "primitive", "recipe")

    level = 0
    """`Autodiff.level`, in the subclass."""

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


def hooks_of(node: Node) -> Hooks:
    """The hooks of the tensor of a node, to add some; a node without them gets its own rule.

    Raises
    ------
    AutodiffError
        If the node was freed by a backward pass.
    """
    if isinstance(node, Leaf):
        if node.hooks is None:
            node.hooks = Hooks()
        return node.hooks
    rule = node.rule
    if rule.__class__ is Freed:
        raise rule.error()
    if rule.hooks is None:
        rule = copy.copy(rule)
        rule.hooks = Hooks()
        node.rule = rule
    return rule.hooks  # type: ignore[no-any-return]  # of a Rule
