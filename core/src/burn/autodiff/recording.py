"""RecordingTable: the op table of an autodiff device, derived from the table below and the ops.

No op is named here. An op with a gradient rule runs in the table below and records a node; an op
without one runs its decomposition in this table if an operand is tracked.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from burn.autodiff.graph import AutodiffTensor, Node, Output, Parent, Rule
from burn.autodiff.recording_state import custom_node, recording, records
from burn.errors import UnsupportedOpError
from burn.ops import Op, OpTable, Tag
from burn.ops.signature import Primitive
from burn.ops.table import DecoratorTable, with_requirement, wrapping

__all__ = ["RecordingTable"]


_BROADCASTING: Final = Tag.ELEMENTWISE | Tag.CONTRACTION

Saver: TypeAlias = Callable[[Sequence[Any]], Sequence[Any]]

_new = object.__new__


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
        rule = self._rule(definition)
        has_list = any(spec.is_list for spec in definition.operands.values())
        if rule.outputs == 1 and not has_list and len(definition.operands) <= 2:
            recorder = _record_one if len(definition.operands) == 1 else _record_two
            wrap = functools.partial(recorder, definition, rule, self.tensor_type)
        else:
            wrap = functools.partial(self._record_any, definition, rule)
        if "dtype" in definition.attributes:
            return wrapping(inner, lambda inner: self._float_only(wrap(inner), inner))
        return wrapping(inner, wrap)

    def _rule(self, definition: Op) -> Rule:
        """How to differentiate an op that has a gradient rule."""
        vjp: Any = definition.vjp
        broadcasts = bool(definition.tags & _BROADCASTING)
        return Rule(
            definition.name, vjp, self.below, len(definition.outputs), broadcasts=broadcasts
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
            nodes = [one for parent in parents for one in _parts_of(parent) if one is not None]
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
            return tuple([self._computed(one, operands) for one in result])
        given = [one for operand in operands for one in _parts(operand)]
        if any(result is operand for operand in given):
            return self.reshape(result, shape=result.shape)
        return result

    def _unwrap(self, operand: Primitive) -> Primitive:
        if operand.__class__ is self.tensor_type:
            return operand.primitive
        return [self._unwrap(one) for one in operand] if operand.__class__ is list else operand

    def _parent(self, operand: Primitive) -> Parent:
        if isinstance(operand, list):
            return tuple([one.node if self._is_own(one) else None for one in operand])
        return operand.node if self._is_own(operand) else None

    def _record_any(
        self, definition: Op, rule: Rule, inner: Callable[..., Any]
    ) -> Callable[..., Any]:
        """An op with any operands and outputs."""
        several = rule.outputs > 1
        savers: dict[tuple[bool, ...], Saver] = {}

        def call(*operands: Primitive, **attrs: Any) -> Any:
            if not any(map(self._is_own, operands)):
                return inner(*operands, **attrs)
            primitives = [self._unwrap(operand) for operand in operands]
            result = inner(*primitives, **attrs)
            node = _new(Node)
            if not records(self.tensor_type, operands, node):
                return result
            outputs = result if several else (result,)
            node.rule = rule
            node.parents = tuple([self._parent(operand) for operand in operands])
            node.needs = tuple(map(_needs, node.parents))
            needs = tuple(map(_any_true, node.needs))
            save = savers.get(needs)
            if save is None:
                save = savers[needs] = make_saver(definition, rule.ops, needs)
            node.saved = save([*primitives, *outputs])
            node.attrs = attrs
            node.output_shape = outputs[0].shape
            if not several:
                return self._track(result, node)
            # Integers, such as indices, have no gradient.
            return tuple(
                [
                    self._track(output, Output(node, index, output.shape))
                    if self.dtype(output).is_float
                    else output
                    for index, output in enumerate(outputs)
                ]
            )

        return call

    def _track(self, primitive: Primitive, node: Node) -> AutodiffTensor:
        tensor: AutodiffTensor = _new(self.tensor_type)
        tensor.primitive = primitive
        tensor.node = node
        return tensor


def _needs(parent: Parent) -> bool | tuple[bool, ...]:
    """Whether the gradient of an operand is required, or of each in a list."""
    if isinstance(parent, tuple):
        return tuple([one is not None for one in parent])
    return parent is not None


def _parts_of(parent: Parent) -> Sequence[Node | None]:
    return parent if isinstance(parent, tuple) else (parent,)


def _parts(operand: Primitive) -> Sequence[Primitive]:
    return operand if operand.__class__ is list else (operand,)


def _any_true(need: bool | tuple[bool, ...]) -> bool:
    return any(need) if isinstance(need, tuple) else need


def _record_one(
    definition: Op,
    rule: Rule,
    tensor_type: type[AutodiffTensor],
    inner: Callable[..., Any],
) -> Callable[..., Any]:
    """An op of one tensor with one output: `_record_any`, unrolled for speed."""
    save = make_saver(definition, rule.ops, (True,))
    new = _new
    is_recording = recording.get

    def call(x: Primitive, **attrs: Any) -> Any:
        if x.__class__ is not tensor_type:
            return inner(x, **attrs)
        primitive = x.primitive
        output = inner(primitive, **attrs)
        node = new(Node)
        if not is_recording() and not records(tensor_type, (x,), node):
            return output
        node.rule = rule
        node.parents = (x.node,)
        node.needs = (True,)
        node.saved = save((primitive, output))
        node.attrs = attrs
        node.output_shape = output.shape
        tensor = new(tensor_type)
        tensor.primitive = output
        tensor.node = node
        return tensor

    return call


def _record_two(
    definition: Op,
    rule: Rule,
    tensor_type: type[AutodiffTensor],
    inner: Callable[..., Any],
) -> Callable[..., Any]:
    """An op of two operands with one output: `_record_any`, unrolled for speed."""
    save_both = make_saver(definition, rule.ops, (True, True))
    save_first = make_saver(definition, rule.ops, (True, False))
    save_second = make_saver(definition, rule.ops, (False, True))
    new = _new
    is_recording = recording.get

    def call(x1: Primitive, x2: Primitive, **attrs: Any) -> Any:
        if x1.__class__ is tensor_type:
            first, parent1 = x1.primitive, x1.node
            if x2.__class__ is tensor_type:
                second, parent2 = x2.primitive, x2.node
                needs, save = (True, True), save_both
            else:
                second, parent2 = x2, None
                needs, save = (True, False), save_first
        elif x2.__class__ is tensor_type:
            first, parent1 = x1, None
            second, parent2 = x2.primitive, x2.node
            needs, save = (False, True), save_second
        else:
            return inner(x1, x2, **attrs)
        output = inner(first, second, **attrs)
        node = new(Node)
        if not is_recording() and not records(tensor_type, (x1, x2), node):
            return output
        node.rule = rule
        node.parents = (parent1, parent2)
        node.needs = needs
        node.saved = save((first, second, output))
        node.attrs = attrs
        node.output_shape = output.shape
        tensor = new(tensor_type)
        tensor.primitive = output
        tensor.node = node
        return tensor

    return call


def make_saver(definition: Op, ops: OpTable, needs: tuple[bool, ...]) -> Saver:
    """A function that selects the values to save if the gradients of `needs` are required.

    It takes the primitives of the operands and outputs, in order. A value that is not needed is
    saved as None, so that a rule always unpacks the same names.
    """
    names_in_order = (*definition.operands, *definition.outputs)
    indices = {name: index for index, name in enumerate(names_in_order)}
    saves = definition.saves
    if isinstance(saves, Mapping):
        required = {
            name
            for (operand, names), needed in zip(_in_order(definition, saves), needs, strict=True)
            if needed
            for name in names
        }
        every = {name for names in saves.values() for name in names}
        names = sorted(every, key=lambda name: indices[name.partition(".")[0]])
    else:
        names = list(saves)
        required = set(names)
    readers = [_reader(name, indices, ops) if name in required else _nothing for name in names]
    if not readers:
        return _save_nothing
    if len(readers) == 1:
        (only,) = readers
        return lambda values: (only(values),)
    return lambda values: [read(values) for read in readers]


def _in_order(
    definition: Op, saves: Mapping[str, tuple[str, ...]]
) -> list[tuple[str, tuple[str, ...]]]:
    return [(operand, saves.get(operand, ())) for operand in definition.operands]


def _nothing(values: Sequence[Any]) -> None:
    del values


def _save_nothing(values: Sequence[Any]) -> tuple[()]:
    del values
    return ()


def _reader(name: str, indices: Mapping[str, int], ops: OpTable) -> Callable[[Sequence[Any]], Any]:
    base, _, field = name.partition(".")
    index = indices[base]
    if not field:
        return operator.itemgetter(index)
    read: Callable[[Any], Any] = ops.dtype if field == "dtype" else _shape

    def read_field(values: Sequence[Any]) -> Any:
        value = values[index]
        if value is None:
            return None
        return [read(one) for one in value] if isinstance(value, list) else read(value)

    return read_field


def _shape(value: Primitive) -> tuple[int, ...]:
    return () if isinstance(value, (bool, int, float, complex)) else tuple(value.shape)
