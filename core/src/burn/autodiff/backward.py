"""From outputs back to the leaves: the chain rule over a recorded graph, without recursion."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from burn.autodiff.graph import AutodiffTensor, Freed, Hooks, Leaf, Node, Output, Parent, Rule
from burn.errors import (
    BurnError,
    DTypeError,
    ExecutionError,
    OutOfMemoryError,
    ShapeError,
)
from burn.ops import OpTable
from burn.ops.arrays.layout import sum_to_shape
from burn.ops.parts import Parts
from burn.ops.signature import Part, Primitive

__all__ = ["Gradients", "backward_all", "check_same", "failed"]


class Gradients:
    """Gradients that a backward pass computed, as primitives of the level below.

    Attributes
    ----------
    level : int
        The `Autodiff.level` of the tensors that they belong to.
    by_node : dict
        The gradient of each leaf that the pass reached, and of other nodes where it was wanted.
    by_key : dict
        If they were pickled: the leaf of each `Leaf.key`, for other leaves with that key.
    wanted : set of Node
        Nodes whose gradients were wanted beside those of all leaves: also such as the outputs do
        not depend on.
    """

    __slots__ = ("by_key", "by_node", "level", "wanted")

    def __init__(self, level: int = 0) -> None:
        self.level = level
        self.by_node: dict[Node, Primitive] = {}
        self.by_key: dict[bytes, Node] = {}
        self.wanted: set[Node] = set()

    def __len__(self) -> int:
        return len(self.by_node)

    def __repr__(self) -> str:
        return f"Gradients(of {len(self)} tensors)"

    def get(self, node: Node) -> Primitive | None:
        """Gradient of a node, or None where the output does not depend on it."""
        return self.by_node.get(self._own(node))

    def pop(self, node: Node) -> Primitive | None:
        """Gradient of a node, which is removed."""
        return self.by_node.pop(self._own(node), None)

    def put(self, node: Node, gradient: Primitive) -> None:
        """Replace the gradient of a node."""
        self.by_node[self._own(node)] = gradient

    def _own(self, node: Node) -> Node:
        """The node here that is the same leaf as another one, by its key."""
        if self.by_key and isinstance(node, Leaf) and node.key is not None:
            return self.by_key.get(node.key, node)
        return node


def backward_all(
    outputs: Sequence[AutodiffTensor],
    cotangents: Sequence[Primitive | None],
    *,
    retain_graph: bool = False,
    inputs: Collection[Node] | None = None,
    cut: Collection[Node] = (),
    lift: Callable[[OpTable], OpTable] | None = None,
) -> Gradients:
    """Differentiate several tracked tensors of one level in one pass; frees the graph.

    Nodes are freed one by one, so that memory shrinks while the pass runs. Where it fails, those
    that it freed say so to the next pass.

    Parameters
    ----------
    outputs : sequence of AutodiffTensor
        The tensors to differentiate.
    cotangents : sequence
        Gradient of the final result by each output, in its shape; None contributes nothing.
    retain_graph : bool
        Whether the graph is kept for another pass.
    inputs : collection of Node, optional
        Compute the gradients of these nodes alone. The pass visits, and frees, only what leads from
        the outputs to them. By default those of all leaves.
    cut : collection of Node
        Nodes at which the pass stops: their gradients are in the result, and nothing beyond them is
        visited.
    lift : callable, optional
        From the table that a rule would compute in to another one, where cotangents are of a level
        above that of the saved values.

    Raises
    ------
    AutodiffError
        If the graph, or a part of it, was used by an earlier pass.
    BurnError
        If a gradient rule fails, or the backend in it.
    """
    roots = dict.fromkeys([output.node for output in outputs], 0)
    uses = _count_uses(roots, cut)
    stops = cut
    if inputs is not None:
        uses, stops = _restricted(uses, inputs, set(cut))
    run = _Pass(outputs[0].level, uses, stops, lift, is_partial=inputs is not None)
    if inputs or cut:
        run.gradients.wanted.update(cut, inputs or ())
    freed = Freed()
    try:
        for output, cotangent in zip(outputs, cotangents, strict=True):
            if cotangent is not None:
                run.accumulate(output.node, cotangent)
        run.walk([root for root in roots if uses.get(root) == 0], None if retain_graph else freed)
    except BaseException as error:
        freed.failure = _described(error)
        raise
    return run.gradients


def _count_uses(roots: dict[Node, int], cut: Collection[Node]) -> dict[Node, int]:
    """How often each node that the roots depend on is used; it is ready when all users are done."""
    uses = roots.copy()
    stack = list(uses)
    while stack:
        node = stack.pop()
        if cut and node in cut:
            continue
        rule = node.rule
        if rule is None:  # a leaf
            continue
        if rule.__class__ is Freed:
            raise rule.error()
        parents: Any = node.tracked_parents() if rule.has_lists else node.parents
        for parent in parents:
            if parent in uses:
                uses[parent] += 1
            elif parent is not None:
                uses[parent] = 1
                stack.append(parent)
    return uses


def _restricted(
    nodes: Collection[Node], inputs: Collection[Node], cut: set[Node]
) -> tuple[dict[Node, int], Collection[Node]]:
    """The uses of the nodes that lead to inputs, and all nodes at which the pass stops.

    Parameters
    ----------
    nodes : collection of Node
        The nodes that the outputs depend on.
    inputs : collection of Node
        The nodes whose gradients are wanted.
    cut : set of Node
        Nodes at which the pass stops.
    """
    users: dict[Node, list[Node]] = {}
    for node in nodes:
        for parent in () if node in cut else node.tracked_parents():
            users.setdefault(parent, []).append(node)
    stack = [node for node in inputs if node in nodes]
    uses = dict.fromkeys(stack, 0)
    while stack:
        for user in users.get(stack.pop(), ()):
            if user not in uses:
                uses[user] = 0
                stack.append(user)
    stops = set(cut)
    for node in uses:
        parents = (
            []
            if node in cut
            else [
                tracked_parent
                for tracked_parent in node.tracked_parents()
                if tracked_parent in uses
            ]
        )
        for parent in parents:
            uses[parent] += 1
        if not parents:
            stops.add(node)
    return uses, stops


class _Pass:
    """The state of one backward pass.

    Attributes
    ----------
    gradients : Gradients
        The result.
    pending : dict
        The sum of the gradients that reached a node so far; of a call with several outputs, a list.
    uses : dict
        How many users of a node are still to be visited.
    stops : collection of Node
        Nodes whose gradients go no further.
    lift : callable or None
        From the table that a rule would compute in to another one.
    is_partial : bool
        Whether `uses` lacks parents of nodes in it, whose gradients are not wanted.
    """

    __slots__ = ("gradients", "is_partial", "lift", "pending", "stops", "uses")

    def __init__(
        self,
        level: int,
        uses: dict[Node, int],
        stops: Collection[Node],
        lift: Callable[[OpTable], OpTable] | None,
        *,
        is_partial: bool,
    ) -> None:
        self.gradients = Gradients(level)
        self.pending: dict[Node, Any] = {}
        self.uses = uses
        self.stops = stops
        self.lift = lift
        self.is_partial = is_partial

    def walk(  # noqa: C901, PLR0912 — unrolled, as one more call takes a twentieth of a small op
        self, ready: list[Node], freed: Freed | None
    ) -> None:
        """Visit nodes that are ready, and their parents when all users of these were visited.

        A leaf whose gradient is complete comes before all other nodes that are ready, so that its
        hooks run as early as they can.
        """
        uses, pending = self.uses, self.pending
        found, wanted, is_partial = self.gradients.by_node, self.gradients.wanted, self.is_partial
        leaves: list[Leaf] = []
        node: Any
        parents: Any
        while ready:
            node = ready.pop()
            rule = node.rule
            if rule is None:
                self._complete(node)
                continue
            cotangent = pending.pop(node, None)
            if cotangent.__class__ is Parts:
                cotangent = self._joined(node, cotangent)
            if rule.hooks is not None:
                cotangent = self._hooked(node, rule.hooks, rule.ops, cotangent)
            if wanted and node in wanted:
                if cotangent is not None:
                    found[node] = cotangent
                if node in self.stops:
                    continue
            parents = node.tracked_parents() if rule.has_lists else node.parents
            try:
                gradients = (
                    (None,) * len(parents)
                    if cotangent is None
                    else self._pulled(node, rule, cotangent)
                )
                for parent, gradient in zip(parents, gradients, strict=True):
                    if parent is None or (is_partial and parent not in uses):
                        continue
                    if gradient is None:
                        pass
                    elif parent in pending or gradient.__class__ is Part:
                        self.accumulate(parent, gradient)
                    else:
                        pending[parent] = gradient
                    if uses[parent] == 1:
                        (leaves if parent.__class__ is Leaf else ready).append(parent)
                    else:
                        uses[parent] -= 1
            except BurnError as error:
                inner = f": {error.operation}" if error.operation else ""
                error.operation = _operation(node, rule) + inner
                raise
            except Exception as error:
                raise failed(error, rule.ops, _operation(node, rule)) from error
            if freed is not None:
                node.free(freed)
            for leaf in leaves:
                self._complete(leaf)
            leaves.clear()

    def _pulled(self, node: Node, rule: Rule, cotangent: Any) -> Sequence[Primitive | Part | None]:
        """What a call contributes to the gradients of its operands."""
        if node.__class__ is Output:
            call: Any = node.parents[0]  # which waits for the cotangent of each output
            self.pending.setdefault(call, [None] * rule.outputs)[node.index] = cotangent
            return (None,)
        ops = rule.ops if self.lift is None else self.lift(rule.ops)
        ctx = self._context(node, rule) if self.is_partial or rule.restore else node
        gradients: Sequence[Any]
        if rule.outputs == 1:
            gradients = rule.vjp(ops, ctx, cotangent)
        else:
            gradients = rule.vjp(ops, ctx, *cotangent)
        if rule.has_lists:
            return _of_tracked(node.parents, gradients)
        if not rule.broadcasts:
            return gradients
        parents: Any = node.parents  # tensors, where operands broadcast
        return [
            gradient
            if gradient is None or parent is None or gradient.shape == parent.output_shape
            else sum_to_shape(ops, gradient, parent.output_shape)
            for parent, gradient in zip(parents, gradients, strict=True)
        ]

    def accumulate(self, node: Node, gradient: Primitive | Part) -> None:
        """Add a gradient to those that reached a node before."""
        earlier = self.pending.get(node)
        is_part = gradient.__class__ is Part
        if earlier is None and not is_part:
            self.pending[node] = gradient
            return
        ops = self._table(node)
        try:
            if is_part and earlier.__class__ is not Parts:
                earlier = self.pending[node] = Parts(node.output_shape, earlier)
            if earlier.__class__ is Parts:
                earlier.add(ops, gradient)
            else:
                self.pending[node] = ops.add(earlier, gradient)
        except BurnError:
            raise
        except Exception as error:
            raise failed(error, ops, "sum of gradients") from error

    def _joined(self, node: Node, parts: Parts) -> Primitive:
        """The gradient of a node of which parts arrived."""
        ops = self._table(node)
        try:
            return parts.joined(ops)
        except BurnError:
            raise
        except Exception as error:
            raise failed(error, ops, "sum of gradients") from error

    def _complete(self, leaf: Leaf) -> None:
        """Put the gradient of a leaf into the result."""
        gradient = self.pending.pop(leaf, None)
        if gradient.__class__ is Parts:
            gradient = self._joined(leaf, gradient)
        if leaf.hooks is not None:
            gradient = self._hooked(leaf, leaf.hooks, leaf.table, gradient)
        if gradient is not None:
            self.gradients.by_node[leaf] = gradient

    def _hooked(
        self, node: Node, hooks: Hooks, table: OpTable, gradient: Primitive | None
    ) -> Primitive | None:
        """The gradient of a node after its hooks."""
        if not self.is_partial and node in self.stops:
            return gradient  # a part of it: the pass that goes on from the cut runs the hooks
        if hooks.retains:
            self.gradients.wanted.add(node)
        if gradient is None:
            return None
        for hook in list(hooks.functions.values()):
            replaced = hook(gradient)
            if replaced is not None:
                name = getattr(hook, "__qualname__", repr(hook))
                what = f"the hook {name} returned a gradient"
                check_same(replaced, gradient, self._lifted(table), what)
                gradient = replaced
        return gradient

    def _context(self, node: Node, rule: Rule) -> Node:
        """What a rule gets for its node: with the values to save, and the gradients wanted now."""
        ctx = Node()
        ctx.parents = node.parents
        ctx.attrs = node.attrs
        ctx.output_shape = node.output_shape
        ctx.saved = node.saved if rule.restore is None else rule.restore(node.saved)
        ctx.needs = tuple(
            [
                tuple([node in self.uses for node in parent])
                if isinstance(parent, tuple)
                else parent in self.uses
                for parent in node.parents
            ]
        )
        return ctx

    def _table(self, node: Node) -> OpTable:
        """The table in which the gradients of a node are added up."""
        return self._lifted(node.table if isinstance(node, Leaf) else node.rule.ops)

    def _lifted(self, table: OpTable) -> OpTable:
        return table if self.lift is None else self.lift(table)


def _of_tracked(
    parents: Sequence[Parent], gradients: Sequence[Any]
) -> list[Primitive | Part | None]:
    """The gradients of tracked operands, those of lists among the others."""
    found: list[Primitive | Part | None] = []
    for parent, gradient in zip(parents, gradients, strict=True):
        if isinstance(parent, tuple):
            pairs = zip(parent, gradient, strict=True)
            found += [part for pair, part in pairs if pair is not None]
        elif parent is not None:
            found.append(gradient)
    return found


def check_same(found: Primitive, expected: Primitive, ops: OpTable, what: str) -> None:
    """Raise an error unless a gradient has the shape and the dtype of a tensor."""
    if tuple(found.shape) != tuple(expected.shape):
        raise ShapeError(
            f"{what} of shape {tuple(found.shape)} for a tensor of shape {tuple(expected.shape)}"
        )
    if found.dtype is expected.dtype:
        return
    own, wanted = ops.dtype(found), ops.dtype(expected)
    if own is not wanted:  # array-api-strict has several objects of one dtype
        raise DTypeError(
            f"{what} of {own} for a tensor of {wanted}", hint=f'Call .astype("{wanted}") on it'
        )


def failed(error: Exception, ops: OpTable, operation: str) -> BurnError:
    """The error for an exception of a backend."""
    backend = ops.backend
    name = backend.name(ops.device)
    if backend.is_out_of_memory(error):
        text = f"{name} has too little memory" + (f": {error}" if str(error) else "")
        hint = "Free tensors, or compute with smaller ones"
        return OutOfMemoryError(text, hint=hint, operation=operation)
    return ExecutionError(f"{name} failed with {_described(error)}", operation=operation)


def _described(error: BaseException) -> str:
    text = str(error)
    if isinstance(error, BurnError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _operation(node: Node, rule: Rule) -> str:
    """The gradient of a call, as errors name it."""
    operands = [
        f"[{', '.join(map(_shown, parent))}]" if isinstance(parent, tuple) else _shown(parent)
        for parent in node.parents
    ]
    attributes = [f"{name}={value!r}" for name, value in node.attrs.items()]
    return f"gradient of {rule.name}({', '.join([*operands, *attributes])})"


def _shown(parent: Node | None) -> str:
    return "constant" if parent is None else str(list(parent.output_shape))
