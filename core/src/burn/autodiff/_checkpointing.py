"""Balanced gradient checkpointing: cheap values are computed again in backward, not kept.

A memory-bound op (see `burn.ops.Tag.COMPUTE_BOUND`) leaves a recipe: the op, and its operands or
their recipes. Gradient rules that save its output keep the recipe instead, and backward computes
the value when it needs it, once. Outputs of all other ops are kept.

A recipe keeps what it starts from. Mostly that is kept anyway: a leaf, or what a rule saves, as
that of gelu saves its operand. Where an operand at least as large as the output would be kept for
the recipe alone (the scores of a softmax, whose rule saves the output), the output is kept: so no
tensor is computed again for nothing, and a chain of sums along a network does not start at its
first layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from burn.autodiff._recorders import recorder
from burn.autodiff.graph import AutodiffTensor, Leaf
from burn.autodiff.recording import RecordingTable
from burn.ops import Op, Tag
from burn.ops.shapes import size
from burn.ops.signature import Primitive

__all__ = ["CheckpointingTable", "Recipe"]

_KEPT: Final = object()
"""Stands for the recipe of a tensor that a node keeps."""


class Recipe:
    """A recorded call of a memory-bound op, to compute its output again.

    Attributes
    ----------
    function : callable
        The op, in the table of the level below.
    operands : sequence
        Primitives, numbers, recipes, or lists of them.
    attrs : dict
        Attributes of the call.
    value : primitive or None
        The output, after it was computed.
    """

    __slots__ = ("attrs", "function", "operands", "value")

    def __init__(
        self, function: Callable[..., Any], operands: Sequence[Any], attrs: Mapping[str, Any]
    ) -> None:
        self.function = function
        self.operands = operands
        self.attrs = attrs
        self.value: Primitive | None = None

    def compute(self) -> Primitive:
        """The output; the recipes among its operands are computed first, without recursion."""
        stack = [self]
        while stack:
            recipe = stack[-1]
            operands = recipe.operands  # before the value: another thread sets it first
            if recipe.value is not None:
                stack.pop()
            elif missing := [recipe for recipe in _recipes_in(operands) if recipe.value is None]:
                stack += missing
            else:
                recipe.value = recipe.function(*_values(operands), **recipe.attrs)
                recipe.operands = ()  # frees them
                stack.pop()
        return self.value


def _recipes_in(operands: Sequence[Any]) -> Iterator[Recipe]:
    return (recipe for recipe in _flat(operands) if isinstance(recipe, Recipe))


def _flat(values: Sequence[Any]) -> Iterator[Any]:
    """Values, and those in lists among them."""
    for value in values:
        if isinstance(value, list):
            yield from value
        else:
            yield value


def _values(saved: Sequence[Any]) -> list[Any]:
    """Saved values; recipes among them are computed."""
    return _replaced(
        saved, lambda recipe: recipe.compute() if isinstance(recipe, Recipe) else recipe
    )


def _replaced(values: Sequence[Any], replace: Callable[[Any], Any]) -> list[Any]:
    return [
        [replace(part) for part in value] if isinstance(value, list) else replace(value)
        for value in values
    ]


class CheckpointingTable(RecordingTable):
    """A recording table that keeps recipes instead of the outputs of memory-bound ops."""

    def _resolve(self, definition: Op) -> Callable[..., Any]:
        plain = super()._resolve(definition)
        untracked = Tag.NO_GRADIENT | Tag.UNTRACKED
        if definition.vjp is None or definition.tags & untracked or not definition.operands:
            return plain
        rule = self._rule(definition)
        rule.restore = _values
        inner = getattr(self.below, definition.name)
        is_cheap = Tag.COMPUTE_BOUND not in definition.tags
        record = self._with_recipes(
            recorder(definition, rule, self.tensor_type, self.dtype)(inner),
            inner,
            is_cheap=is_cheap,
        )
        return self._float_only(record, inner) if "dtype" in definition.attributes else record

    def _with_recipes(
        self, record: Callable[..., Any], inner: Callable[..., Any], *, is_cheap: bool
    ) -> Callable[..., Any]:
        def compute_first(*operands: Any, **attrs: Any) -> Primitive:
            return inner(*operands, **attrs)[0]

        def call(*operands: Primitive, **attrs: Any) -> Any:
            result = record(*operands, **attrs)
            several = isinstance(result, tuple)
            first = result[0] if several else result
            if not self._is_own(first):
                return result
            (node,) = first.node.parents if several else (first.node,)
            tracked = [item for item in _flat(operands) if self._is_own(item)]
            outputs = filter(self._is_own, result) if several else [result]
            _mark_kept([*tracked, *outputs], node.saved)
            recipes = {
                id(item.primitive): item.recipe
                for item in tracked
                if isinstance(_recipe(item), Recipe)
            }
            fresh = {id(item.primitive): item for item in tracked if _recipe(item) is None}
            if is_cheap and sum(map(self._bytes, fresh.values())) < self._bytes(first):
                # Further outputs are statistics, such as a mean for each channel: they are kept.
                again = compute_first if several else inner
                first.recipe = Recipe(again, _replaced(operands, self._held), attrs)
                # An op may return its operand itself.
                recipes.setdefault(id(first.primitive), first.recipe)
                for item in fresh.values():
                    item.recipe = _KEPT
            node.saved = _replaced(node.saved, lambda item: recipes.get(id(item), item))
            return result

        return call

    def _held(self, operand: Primitive) -> Any:
        """What a recipe keeps of an operand: its recipe, or its primitive."""
        if not self._is_own(operand):
            return operand
        recipe = _recipe(operand)
        return recipe if isinstance(recipe, Recipe) else operand.primitive

    def _bytes(self, tensor: AutodiffTensor) -> int:
        return size(tensor.shape) * self.dtype(tensor).itemsize


def _recipe(tensor: AutodiffTensor) -> Any:
    """The recipe of a tensor; ``_KEPT`` if its primitive is kept; None if nothing keeps it yet."""
    recipe = getattr(tensor, "recipe", None)
    return _KEPT if recipe is None and isinstance(tensor.node, Leaf) else recipe


def _mark_kept(tensors: Sequence[AutodiffTensor], saved: Sequence[Any]) -> None:
    """Mark the tensors that have no recipe and whose primitives a rule saves."""
    ids = set(map(id, _flat(saved)))
    for tensor in tensors:
        if _recipe(tensor) is None and id(tensor.primitive) in ids:
            tensor.recipe = _KEPT
