"""BatchingTable: the op table of a batching device, derived from the table below and the ops.

No op is named here. A call without a batched operand goes to the table below. Any other is run by
the first of these that there is: the op's batching rule, or that which follows from its tags; its
decomposition, in this table; a loop over the examples.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

from burn.batching.tensor import BatchedTensor, Frame
from burn.errors import ArgumentError, UnsupportedOpError
from burn.ops import Meta, Op, Tag
from burn.ops.batching import BatchedCall, BatchingRule, derived_rule
from burn.ops.index_arithmetic import narrow
from burn.ops.signature import Primitive
from burn.ops.table import DecoratorTable, with_requirement, wrapping

__all__ = ["BatchingTable", "check_active"]

_new: Final = object.__new__


class BatchingTable(DecoratorTable):
    """The ops of one device, which run on all examples of batched tensors."""

    def _resolve(self, definition: Op) -> Callable[..., Any]:
        inner = getattr(self.below, definition.name)
        if not definition.operands:
            return inner  # type: ignore[no-any-return]  # an entry of a table
        batched = self._batched(definition)
        is_batched = self._is_own

        def wrap(inner: Callable[..., Any]) -> Callable[..., Any]:
            def call(*operands: Primitive, **attributes: Any) -> Any:
                if not any(map(is_batched, operands)):
                    return inner(*operands, **attributes)
                return batched(operands, attributes)

            return call

        return wrapping(inner, wrap)

    def _batched(self, definition: Op) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
        """A function of the operands, some of which are batched, and the attributes of a call."""
        if Tag.DATA_DEPENDENT in definition.tags:
            return functools.partial(_refuse_data_dependent, definition)
        rule: BatchingRule | None = definition.batch or derived_rule(definition)
        default = definition.default and with_requirement(definition, definition.default)
        # With the batch axis an op may accept shapes that it refuses: det of vectors, for one.
        checks = Tag.ELEMENTWISE not in definition.tags

        def run(operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
            frame, flags, primitives = self._opened(operands)
            if frame is None:
                raise TypeError("no operand is batched")
            if checks:
                definition.rule(*map(self._meta, operands), **attributes)
            result: Any = NotImplemented
            if rule is not None:
                call = BatchedCall(definition, frame.size, flags)
                result = rule(self.below, call, *primitives, **attributes)
            if result is NotImplemented and default is not None:
                return default(self, *operands, **attributes)
            if result is NotImplemented:
                result = self._loop(definition, frame, operands, attributes)
            if not definition.returns_tuple:
                return self._wrap(result, frame)
            return tuple([self._wrap(item, frame) for item in result])

        return run

    def _opened(
        self, operands: Sequence[Primitive], frame: Frame | None = None
    ) -> tuple[Frame | None, tuple[Any, ...], list[Any]]:
        """The one call that batched operands belong to, what is batched, and the primitives."""
        flags: list[Any] = []
        primitives: list[Any] = []
        for operand in operands:
            flag: Any = operand.__class__ is self.tensor_type
            primitive = operand
            if flag:
                if operand.frame is not frame:
                    check_active(operand, frame)
                    frame = operand.frame
                primitive = operand.primitive
            elif operand.__class__ is list:
                frame, flag, primitive = self._opened(operand, frame)
            flags.append(flag)
            primitives.append(primitive)
        return frame, tuple(flags), primitives

    def _wrap(self, primitive: Primitive, frame: Frame) -> BatchedTensor:
        tensor: BatchedTensor = _new(self.tensor_type)
        tensor.primitive = primitive
        tensor.frame = frame
        return tensor

    def _loop(
        self,
        definition: Op,
        frame: Frame,
        operands: tuple[Any, ...],
        attributes: dict[str, Any],
    ) -> Any:
        """The op once for each example, and the results joined along the batch axis."""
        if not frame.allows_fallback:
            raise UnsupportedOpError(
                f"{definition.name} has no batching rule, and loops over examples are not allowed",
                hint="Use burn.vmap(function, fallback=True), or give the op a rule: @op.batching",
            )
        frame.fallbacks[definition.name] += 1
        if frame.size:
            function = getattr(self.below, definition.name)
            examples = [
                function(*[self._example(operand, index) for operand in operands], **attributes)
                for index in range(frame.size)
            ]
            if not definition.returns_tuple:
                return self._stacked(examples)
            return tuple([self._stacked(parts) for parts in zip(*examples, strict=True)])
        metas = definition.infer(*map(self._meta, operands), **attributes)
        if not definition.returns_tuple:
            return self._empty(metas)
        return tuple(map(self._empty, metas))

    def _example(self, operand: Primitive, index: int) -> Primitive:
        """What one example has as an operand."""
        if operand.__class__ is list:
            return [self._example(part, index) for part in operand]
        if operand.__class__ is not self.tensor_type:
            return operand
        part = narrow(self.below, operand.primitive, 0, index, 1)
        return self.below.reshape(part, shape=operand.shape)

    def _stacked(self, examples: Sequence[Primitive]) -> Primitive:
        parts = [self.below.reshape(example, shape=(1, *example.shape)) for example in examples]
        return self.below.concat(parts, axis=0)

    def _meta(self, operand: Primitive) -> Any:
        if operand.__class__ is list:
            return [self._meta(part) for part in operand]
        if not hasattr(operand, "dtype"):
            return operand
        return Meta(tuple(operand.shape), self.dtype(operand))

    def _empty(self, meta: Meta) -> Primitive:
        """The results of no examples."""
        return self.below.full(shape=(0, *meta.shape), fill_value=0, dtype=meta.dtype)


def check_active(tensor: BatchedTensor, frame: Frame | None) -> None:
    """Raise ArgumentError unless a tensor belongs to a call that runs, to `frame` if there is one.

    Raises
    ------
    ArgumentError
        If the call has returned, or is another one.
    """
    if not tensor.frame.runs:
        raise ArgumentError(
            f"a tensor of shape {tensor.shape} was kept from a call of burn.vmap that has returned",
            hint="Return it from the function that is mapped: the batch axis is added to it then",
        )
    if frame is not None and tensor.frame is not frame:
        raise ArgumentError(
            f"a tensor of shape {tensor.shape} belongs to another call of burn.vmap",
            hint="Pass it to the function that is mapped as an argument",
        )


def _refuse_data_dependent(
    definition: Op, operands: tuple[Any, ...], attributes: dict[str, Any]
) -> Any:
    del operands, attributes
    raise UnsupportedOpError(
        f"inside burn.vmap, {definition.name} would give each example a shape that depends on its "
        "values",
        hint="Use a mask (burn.where) in the function that is mapped, or loop over the examples",
    )
