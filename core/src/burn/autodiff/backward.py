"""From an output back to the leaves: the chain rule over a recorded graph, without recursion."""

from __future__ import annotations

from typing import Any

from burn.autodiff.graph import AutodiffTensor, Leaf, Node, Output
from burn.errors import AutodiffError
from burn.ops.layout import sum_to_shape
from burn.ops.signature import Primitive

__all__ = ["Gradients", "backward"]


class Gradients:
    """Gradients of the leaves that a backward pass reached, as primitives of the level below."""

    __slots__ = ("_by_leaf",)

    def __init__(self) -> None:
        self._by_leaf: dict[Node, Primitive] = {}

    def __len__(self) -> int:
        return len(self._by_leaf)

    def __repr__(self) -> str:
        return f"Gradients(of {len(self)} tensors)"

    def get(self, leaf: Node) -> Primitive | None:
        """Gradient of a leaf, or None where the output does not depend on it."""
        return self._by_leaf.get(leaf)

    def pop(self, leaf: Node) -> Primitive | None:
        """Gradient of a leaf, which is removed."""
        return self._by_leaf.pop(leaf, None)

    def put(self, leaf: Node, gradient: Primitive) -> None:
        """Replace the gradient of a leaf."""
        self._by_leaf[leaf] = gradient


def backward(output: AutodiffTensor, cotangent: Primitive) -> Gradients:
    """Differentiate a tracked tensor by all leaves it was computed from; frees the graph.

    Parameters
    ----------
    output : AutodiffTensor
        The tensor to differentiate.
    cotangent : primitive
        Gradient of the final result by `output`, in its shape.

    Raises
    ------
    AutodiffError
        If the graph, or a part of it, was used by an earlier pass.
    """
    root = output.node
    uses = _count_uses(root)
    gradients = Gradients()
    pending: dict[Node, Any] = {root: cotangent}
    ready = [root]
    while ready:
        node = ready.pop()
        cotangent = pending.pop(node, None)
        if node.__class__ is Leaf:
            if cotangent is not None:
                gradients.put(node, cotangent)
            continue
        for parent, gradient in _parent_gradients(node, cotangent):
            if gradient is not None:
                _accumulate(pending, node, parent, gradient)
            uses[parent] -= 1
            if not uses[parent]:
                ready.append(parent)
        node.free()
    return gradients


def _count_uses(root: Node) -> dict[Node, int]:
    """How often each node that `root` depends on is used; it is ready when all users are done."""
    uses = {root: 0}
    stack = [root]
    while stack:
        node = stack.pop()
        if node.rule is None and node.__class__ is not Leaf:
            raise AutodiffError(
                "the graph was freed by an earlier backward pass",
                hint="Compute the output again, or add the outputs up and call backward once",
            )
        for parent in node.tracked_parents():
            if parent in uses:
                uses[parent] += 1
            else:
                uses[parent] = 1
                stack.append(parent)
    return uses


def _parent_gradients(node: Node, cotangent: Any) -> list[tuple[Node, Primitive | None]]:
    """The tracked parents of a node with the gradients that it contributes to each."""
    if isinstance(node, Output):
        return [(parent, cotangent) for parent in node.tracked_parents()]
    if cotangent is None:
        return [(parent, None) for parent in node.tracked_parents()]
    rule = node.rule
    if rule is None:
        raise AutodiffError("the graph was freed by a backward pass of another thread")
    if rule.restore is not None:
        node.saved = rule.restore(node.saved)
    if rule.outputs == 1:
        gradients = rule.vjp(rule.ops, node, cotangent)
    else:
        gradients = rule.vjp(rule.ops, node, *cotangent)
    broadcasts = rule.broadcasts
    result: list[tuple[Node, Primitive | None]] = []
    for parent, gradient in zip(node.parents, gradients, strict=True):
        if parent is None:
            continue
        if isinstance(parent, tuple):
            result += [
                (one, part) for one, part in zip(parent, gradient, strict=True) if one is not None
            ]
        elif broadcasts and gradient is not None and gradient.shape != parent.output_shape:
            result.append((parent, sum_to_shape(rule.ops, gradient, parent.output_shape)))
        else:
            result.append((parent, gradient))
    return result


def _accumulate(pending: dict[Node, Any], node: Node, parent: Node, gradient: Primitive) -> None:
    if isinstance(node, Output):
        # The parent is a call with several outputs: it waits for the cotangent of each.
        outputs = 0 if node.rule is None else node.rule.outputs
        pending.setdefault(parent, [None] * outputs)[node.index] = gradient
        return
    earlier = pending.get(parent)
    if earlier is None:
        pending[parent] = gradient
        return
    ops = parent.table if isinstance(parent, Leaf) else parent.rule.ops  # type: ignore[union-attr]  # counted, so not freed
    pending[parent] = ops.add(earlier, gradient)
