"""Balanced gradient checkpointing: cheap values are computed again in backward, not kept.

The outputs of memory-bound ops (elementwise functions, casts, layout) that gradient rules save are
replaced by recipes: the op, and its operands or their recipes. Backward computes the value of a
recipe when it needs it. Compute-bound ops (contractions, reductions, scans) keep their outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from burn.autodiff.recording import RecordingTable
from burn.ops import Op, Tag
from burn.ops.signature import Primitive

__all__ = ["CheckpointingTable", "Recipe"]


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
            missing = [one for one in recipe._recipes_among_operands() if one.value is None]
            if recipe.value is not None:
                stack.pop()
            elif missing:
                stack += missing
            else:
                operands = [_value(operand) for operand in recipe.operands]
                recipe.value = recipe.function(*operands, **recipe.attrs)
                recipe.operands = ()  # frees them
                stack.pop()
        return self.value

    def _recipes_among_operands(self) -> Iterator[Recipe]:
        for operand in self.operands:
            for one in operand if isinstance(operand, list) else [operand]:
                if isinstance(one, Recipe):
                    yield one


def _value(saved: Any) -> Any:
    """A saved value; recipes in it are computed."""
    if isinstance(saved, list):
        return [_value(one) for one in saved]
    return saved.compute() if isinstance(saved, Recipe) else saved


class CheckpointingTable(RecordingTable):
    """A recording table that keeps recipes instead of the outputs of memory-bound ops."""

    def _resolve(self, definition: Op) -> Callable[..., Any]:
        plain = super()._resolve(definition)
        untracked = Tag.NO_GRADIENT | Tag.UNTRACKED
        if definition.vjp is None or definition.tags & untracked or not definition.operands:
            return plain
        rule = self._rule(definition)
        rule.restore = _restore
        inner = getattr(self.below, definition.name)
        is_cheap = Tag.COMPUTE_BOUND not in definition.tags and len(definition.outputs) == 1
        record = self._with_recipes(
            self._record_any(definition, rule, inner), inner, is_cheap=is_cheap
        )
        return self._float_only(record, inner) if "dtype" in definition.attributes else record

    def _with_recipes(
        self, record: Callable[..., Any], inner: Callable[..., Any], *, is_cheap: bool
    ) -> Callable[..., Any]:
        def call(*operands: Primitive, **attrs: Any) -> Any:
            result = record(*operands, **attrs)
            first = result[0] if isinstance(result, tuple) else result
            if not self._is_tracked(first):
                return result
            kept: dict[int, Any] = {}
            kept_operands = [self._kept(operand, kept) for operand in operands]
            if is_cheap:
                first.recipe = Recipe(inner, kept_operands, attrs)
                # An op may return its operand itself.
                kept.setdefault(id(first.primitive), first.recipe)
            (node,) = first.node.parents if isinstance(result, tuple) else (first.node,)
            node.saved = [_replaced(saved, kept) for saved in node.saved]
            return result

        return call

    def _kept(self, operand: Primitive, kept: dict[int, Any]) -> Any:
        """The operand to keep: its recipe if it has one; `kept` maps its primitive to that."""
        if isinstance(operand, list):
            return [self._kept(one, kept) for one in operand]
        if not self._is_tracked(operand):
            return operand
        recipe = getattr(operand, "recipe", None)
        held = operand.primitive if recipe is None else recipe
        kept[id(operand.primitive)] = held
        return held


def _replaced(saved: Any, kept: Mapping[int, Any]) -> Any:
    if isinstance(saved, list):
        return [_replaced(one, kept) for one in saved]
    return kept.get(id(saved), saved)


def _restore(saved: Sequence[Any]) -> Sequence[Any]:
    """The values that a gradient rule saved, computed again from recipes."""
    return [_value(one) for one in saved]
