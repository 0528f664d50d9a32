"""RecordingTable: the op table of an autodiff device, derived from the table below and the ops.

No op is named here. An op with a gradient rule runs in the table below and records a node; an op
without one runs its decomposition in this table if an operand is tracked.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

from burn.autodiff._recorders import recorder
from burn.autodiff.graph import Node, Parent, Rule
from burn.autodiff.recording_state import custom_node, recording, records
from burn.errors import UnsupportedOpError
from burn.ops import Op, Tag
from burn.ops.signature import Primitive
from burn.ops.table import DecoratorTable, with_requirement, wrapping

__all__ = ["RecordingTable"]


_BROADCASTING: Final = Tag.ELEMENTWISE | Tag.CONTRACTION


class RecordingTable(DecoratorTable):
    """The ops of one device, which record their calls on tracked tensors."""

    def _resolve(self, definition: Op) -> Callable[..., Any]:
        inner = getattr(self.below, definition.name)
        if not definition.operands:
            return inner  # type: ignore[no-any-return]  # an entry of a table
        if Tag.UNTRACKED in definition.tags:
            return wrapping(inner, self._untracked)
        if Tag.NO_GRADIENT in definition.tags:
            return wrapping(inner, self._unwrapped)
        if definition.linearize is not None:
            return self._linearized(definition, inner)
        if definition.vjp is None:
            return wrapping(inner, functools.partial(self._decomposed, definition))
        wrap = recorder(definition, self._rule(definition), self.tensor_type, self.dtype)
        if "dtype" in definition.attributes:
            return wrapping(inner, lambda inner: self._float_only(wrap(inner), inner))
        return wrapping(inner, wrap)

    def _rule(self, definition: Op) -> Rule:
        """How to differentiate an op that has a gradient rule."""
        vjp: Any = definition.vjp
        return Rule(
            definition.name,
            vjp,
            self.below,
            len(definition.outputs),
            broadcasts=bool(definition.tags & _BROADCASTING),
            has_lists=any(spec.is_list for spec in definition.operands.values()),
        )

    def _unwrapped(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        """An op without a gradient, which gets the primitives below."""
        unwrap = self._unwrap

        def call(*operands: Primitive, **attrs: Any) -> Any:
            return inner(*[unwrap(operand) for operand in operands], **attrs)

        return call

    def _float_only(
        self, record: Callable[..., Any], inner: Callable[..., Any]
    ) -> Callable[..., Any]:
        """An op with a dtype attribute: only a float result is recorded."""
        unwrapped = self._unwrapped(inner)
        untracked = self._untracked(inner)

        def call(*operands: Primitive, **attrs: Any) -> Any:
            dtype = attrs["dtype"]
            if dtype.is_float:
                return record(*operands, **attrs)
            return (untracked if dtype.is_complex else unwrapped)(*operands, **attrs)

        return call

    def _untracked(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        """An op with a complex result, or a float one that is not differentiable."""
        unwrapped = self._unwrapped(inner)

        def call(*operands: Primitive, **attrs: Any) -> Any:
            if recording.get() is not False and any(map(self._is_own, operands)):
                raise UnsupportedOpError(
                    "the result is not differentiable, and an operand is tracked",
                    hint="Call .detach() on the operand; instead of complex numbers, compute with "
                    "real and imaginary parts",
                )
            return unwrapped(*operands, **attrs)

        return call

    def _decomposed(self, definition: Op, inner: Callable[..., Any]) -> Callable[..., Any]:
        """An op without a gradient rule: its decomposition is recorded."""
        default = definition.default and with_requirement(definition, definition.default)
        unwrapped = self._unwrapped(inner)

        def call(*operands: Primitive, **attrs: Any) -> Any:
            if recording.get() is False:
                return unwrapped(*operands, **attrs)
            if not any(map(self._is_own, operands)):
                return inner(*operands, **attrs)
            if default is None:
                raise UnsupportedOpError(
                    f"{definition.name} has no gradient",
                    hint="Use .detach() on its operands, or burn.no_grad()",
                )
            if not records(self.tensor_type, operands):
                return unwrapped(*operands, **attrs)
            return self._computed(default(self, *operands, **attrs), operands)

        return call

    def _linearized(self, definition: Op, inner: Callable[..., Any]) -> Callable[..., Any]:
        """An op that says itself how it runs on tracked operands."""
        linearize: Any = definition.linearize
        unwrapped = self._unwrapped(inner)
        decomposed = self._decomposed(definition, inner)

        def call(*operands: Primitive, **attrs: Any) -> Any:
            if not any(map(self._is_own, operands)):
                return inner(*operands, **attrs)
            if not records(self.tensor_type, operands):
                return unwrapped(*operands, **attrs)
            parents = [self._parent(operand) for operand in operands]
            linear = linearize(
                self.below, tuple(map(_needs, parents)), *map(self._unwrap, operands), **attrs
            )
            if linear is NotImplemented:
                return decomposed(*operands, **attrs)
            outputs, tracked, pull = linear
            if not tracked:
                return outputs
            nodes = [part for parent in parents for part in _parts_of(parent) if part is not None]
            made = custom_node(
                self.tensor_type,
                nodes,
                [outputs[index] for index in tracked],
                pull,
                self.below,
                definition.name,
            )
            found = list(outputs)
            for index, tensor in zip(tracked, made, strict=True):
                found[index] = tensor
            return tuple(found)

        return call

    def _computed(self, result: Any, operands: Sequence[Primitive]) -> Any:
        """The outputs of a decomposition; an operand among them gets a node: it may be a leaf."""
        if isinstance(result, tuple):
            return tuple([self._computed(item, operands) for item in result])
        given = [part for operand in operands for part in _parts(operand)]
        if any(result is operand for operand in given):
            return self.reshape(result, shape=result.shape)
        return result

    def _unwrap(self, operand: Primitive) -> Primitive:
        if operand.__class__ is self.tensor_type:
            return operand.primitive
        return [self._unwrap(part) for part in operand] if operand.__class__ is list else operand

    def _parent(self, operand: Primitive) -> Parent:
        if isinstance(operand, list):
            return tuple([part.node if self._is_own(part) else None for part in operand])
        return operand.node if self._is_own(operand) else None


def _needs(parent: Parent) -> bool | tuple[bool, ...]:
    """Whether the gradient of an operand is required, or of each in a list."""
    if isinstance(parent, tuple):
        return tuple([node is not None for node in parent])
    return parent is not None


def _parts_of(parent: Parent) -> Sequence[Node | None]:
    return parent if isinstance(parent, tuple) else (parent,)


def _parts(operand: Primitive) -> Sequence[Primitive]:
    return operand if operand.__class__ is list else (operand,)
