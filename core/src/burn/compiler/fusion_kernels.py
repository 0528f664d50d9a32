"""The kernel of a group: its axes, the nodes of its members, and what it stores."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from burn.compiler.fusion_groups import (
    Along,
    Condition,
    Group,
    Member,
    Number,
    Operand,
    Read,
    Recipe,
)
from burn.compiler.fusion_maps import IndexMap, cuts, strides
from burn.compiler.fusion_rules import (
    Work,
    expression_of,
    host_number,
    number_for,
    operands_of,
    shape_of,
)
from burn.compiler.plan import Check, KernelCall
from burn.dtype import DType, Kind, bool_, float32
from burn.ir import HostNumber, OperationIr, TensorIr
from burn.kernels.expressions import Nodes
from burn.kernels.kernel import Apply, Index, Kernel, Load, Node, Reduce, Scalar, Store
from burn.ops import REGISTRY
from burn.ops.shapes import size

__all__ = ["kernel_call", "reads_of"]


def reads_of(operand: Operand) -> Iterator[Read]:
    """What is loaded to compute an operand."""
    if isinstance(operand, Read):
        yield operand
    elif isinstance(operand, Recipe):
        for parts in operand.operands:
            yield from reads_of(parts)


def _members_of(operand: Operand) -> Iterator[int]:
    """The ids of members that an operand is, or is computed from."""
    if isinstance(operand, Member):
        yield operand.value.tensor.id
    elif isinstance(operand, Recipe):
        for parts in operand.operands:
            yield from _members_of(parts)


def kernel_call(
    group: Group, needed: set[int], index_dtype: DType, *, relaxed: bool = False
) -> KernelCall | None:
    """The kernel of a group.

    Parameters
    ----------
    group : Group
        The group.
    needed : set of int
        The ids of tensors that are to be in memory.
    index_dtype : DType
        The dtype of indices that kernels compute with.
    relaxed : bool, optional
        Whether the kernel may round less often than its operations.

    Returns
    -------
    KernelCall or None
        None if nothing of the group is needed.
    """
    used: set[int] = set()
    alive = []
    value: Any  # a member: it has a map, a task and a recipe
    for value in reversed(group.members):
        id = value.tensor.id
        if id in needed or id in used:
            used.update(_members_of(value.recipe))
            alive.append(value)
    if not alive:
        return None
    alive.reverse()
    return _Builder(group, alive, needed, index_dtype).call(relaxed=relaxed)


class _Builder:
    """Collects the nodes of a kernel."""

    def __init__(
        self, group: Group, alive: list[Any], needed: set[int], index_dtype: DType
    ) -> None:
        self.alive = alive
        self.needed = needed
        self.index_dtype = index_dtype
        self.nodes = Nodes()
        self.inputs: list[TensorIr] = []
        self.numbers: list[HostNumber] = []
        self.made: dict[int, int] = {}
        self.operations: dict[int, OperationIr] = {}
        self.input_numbers: dict[int, int] = {}
        self.strides_of: dict[IndexMap, tuple[int, ...]] = {}
        self._find_axes(group)

    def _find_axes(self, group: Group) -> None:
        """The axes of the space, and the strides of all maps along them."""
        maps: dict[IndexMap, None] = {}
        for value in self.alive:
            maps[value.map] = None
            _collect(value.recipe, maps)
        found = sorted({1, group.count, *[cut for index_map in maps for cut in cuts(index_map)]})
        units = [(high // low, low) for low, high in itertools.pairwise(found)][::-1]
        reduces = any(value.task.reduced is not None for value in self.alive)
        spans = group.columns if reduces and group.columns else ()
        of_columns = [any(low <= begin < high for low, high in spans) for _, begin in units]
        order = [i for i, of_column in enumerate(of_columns) if not of_column]
        self.rows = len(order)
        order += [i for i, of_column in enumerate(of_columns) if of_column]
        lengths = [units[i][0] for i in order]
        table = []
        for index_map in maps:
            along = strides(index_map, units)
            table.append([along[i] for i in order])
        self._merge(lengths, table)
        self.space = tuple(lengths)
        self.strides_of = dict(zip(maps, map(tuple, table), strict=True))

    def _merge(self, lengths: list[int], table: list[list[int]]) -> None:
        """Make one axis of two where all strides permit it, and both are of the same sort."""
        index = 0
        while index + 1 < len(lengths):
            inner = lengths[index + 1]
            if index + 1 != self.rows and all(
                item[index] == item[index + 1] * inner for item in table
            ):
                lengths[index : index + 2] = [lengths[index] * inner]
                for item in table:
                    del item[index]
                self.rows -= index < self.rows
            else:
                index += 1

    def call(self, *, relaxed: bool) -> KernelCall:
        """The kernel with what it is launched with."""
        outputs: list[TensorIr] = []
        stores, checks = [], []
        for value in self.alive:
            node = self._recipe(value.recipe, value.tensor)
            self.made[value.tensor.id] = node
            if value.tensor.id in self.needed:
                map = value.map
                stores.append(Store(len(outputs), node, map.offset, self.strides_of[map]))
                if value.task.work is Work.CHECK:
                    operation = value.task.operation
                    checks.append(Check(len(outputs), _axis_length(operation), operation))
                outputs.append(value.tensor)
        kernel = Kernel(
            self.space,
            self.rows,
            tuple([source.dtype for source in self.inputs]),
            tuple([number.kind for number in self.numbers]),
            tuple([(output.dtype, size(shape_of(output))) for output in outputs]),
            tuple(self.nodes.body),
            tuple(stores),
            relaxed=relaxed,
        )
        return KernelCall(
            kernel,
            tuple(self.inputs),
            tuple(self.numbers),
            tuple(outputs),
            (None,) * len(outputs),
            tuple(self.operations.values()),
            tuple(checks),
        )

    def _operand(self, operand: Operand) -> int:
        """The node of an operand."""
        match operand:
            case Member(value):
                return self.made[value.tensor.id]
            case Read():
                return self._read(operand)
            case Along(map):
                return self._index(map)
            case Number(value, dtype):
                return self._number(value, dtype)
        return self._recipe(operand, operand.operation.outputs[0])

    def _read(self, read: Read, index: int | None = None) -> int:
        """The node of a load, at an index if there is one."""
        tensor = read.value.tensor
        number = self.input_numbers.get(tensor.id)
        if number is None:
            number = self.input_numbers[tensor.id] = len(self.inputs)
            self.inputs.append(tensor)
        guard = self._inside(read.inside)
        gathers = () if index is None else ((index, read.step),)
        return self.nodes.add(
            Load(number, read.map.offset, self.strides_of[read.map], tensor.dtype, gathers, guard)
        )

    def _number(self, value: Any, dtype: DType) -> int:
        """The node of a number."""
        at_launch = host_number(value)
        if at_launch is None:
            return self.nodes.add(number_for(value, dtype))
        if at_launch not in self.numbers:
            self.numbers.append(at_launch)
        return self.nodes.add(Scalar(self.numbers.index(at_launch), dtype))

    def _inside(self, conditions: Sequence[Condition]) -> int | None:
        """The node that says whether all conditions hold; None without conditions."""
        found = None
        for condition in conditions:
            index = self._index(condition.map)
            if condition.start > 0:
                found = self._both(found, "greater_equal", index, condition.start)
            if condition.stop < condition.length:
                found = self._both(found, "less", index, condition.stop)
        return found

    def _both(self, found: int | None, function: str, index: int, bound: int) -> int:
        limit = self.nodes.literal(bound, self.index_dtype)
        holds = self.nodes.add(Apply(function, (index, limit), bool_))
        return holds if found is None else self._apply("bitwise_and", (found, holds), bool_)

    def _index(self, map: IndexMap) -> int:
        """The node of the integer that a map gives."""
        dtype = self.index_dtype
        total = self.nodes.literal(map.offset, dtype) if map.offset else None
        for axis, stride in enumerate(self.strides_of[map]):
            if stride:
                term = self.nodes.add(Index(axis, dtype))
                if stride != 1:
                    term = self._apply("multiply", (term, self.nodes.literal(stride, dtype)), dtype)
                total = term if total is None else self._apply("add", (total, term), dtype)
        return self.nodes.literal(0, dtype) if total is None else total

    def _apply(self, function: str, operands: tuple[int, ...], dtype: DType) -> int:
        return self.nodes.add(Apply(function, operands, dtype))

    def _cast(self, node: int, dtype: DType) -> int:
        """A node as another dtype."""
        if self.nodes.body[node].dtype is dtype:
            return node
        return self._apply("cast", (node,), dtype)

    def _recipe(self, recipe: Recipe, output: TensorIr) -> int:
        """The node of a recipe."""
        if recipe.work is Work.GATHER:
            node = self._gathered(recipe)
            self._note(recipe)
            return node
        nodes = [self._operand(operand) for operand in recipe.operands]
        self._note(recipe)
        return _WRITERS[recipe.work](self, recipe, nodes, output.dtype)

    def _note(self, recipe: Recipe) -> None:
        """Note an operation that the kernel replaces."""
        self.operations[recipe.operation.outputs[0].id] = recipe.operation

    def _elementwise(self, recipe: Recipe, nodes: list[int], dtype: DType) -> int:
        """The nodes of an elementwise op."""
        operation = recipe.operation
        if operation.name == "cast":
            return self._cast(nodes[0], dtype)
        of = self.nodes.body[nodes[-1]].dtype
        values: dict[str, int] = dict(zip(REGISTRY[operation.name].operands, nodes, strict=True))
        numbers = {}
        for name, value in operation.attributes.items():
            if host_number(value) is not None:
                # Numbers of expressions are rounded to what floats of 16 bits are held in.
                held = float32 if of.is_float and of.itemsize < 4 else of
                values[name] = self._number(value, held)
            elif value.__class__ is not str:
                numbers[name] = value
        expression: Any = expression_of(operation, of)  # see `rule`
        return int(expression.write(self.nodes, values, of, numbers))

    def _view(self, recipe: Recipe, nodes: list[int], dtype: DType) -> int:
        """The node of a copy."""
        del recipe, dtype
        return nodes[0]

    def _full(self, recipe: Recipe, nodes: list[int], dtype: DType) -> int:
        """The node of a tensor of one number."""
        del nodes
        return self._number(recipe.operation.attributes["fill_value"], dtype)

    def _gathered(self, recipe: Recipe) -> int:
        """The node of a load at an index."""
        index, read = recipe.operands
        if not isinstance(read, Read) or not read.step:  # the axis has length 1
            return self._operand(read)
        length = _axis_length(recipe.operation)
        return self._read(read, self._wrapped(self._operand(index), length))

    def _product(self, recipe: Recipe, nodes: list[int], dtype: DType) -> int:
        """The nodes of a sum of products."""
        return self._reduced("sum", self._apply("multiply", (nodes[0], nodes[1]), dtype), recipe)

    def _range(self, recipe: Recipe, nodes: list[int], dtype: DType) -> int:
        """The nodes of ``start + i * step``."""
        del nodes
        attributes = recipe.operation.attributes
        start, step = attributes["start"], attributes["step"]
        index = self._cast(self._index(recipe.map), dtype)
        if host_number(step) is not None or step != 1:
            index = self._apply("multiply", (index, self._number(step, dtype)), dtype)
        if host_number(start) is not None or start != 0:
            index = self._apply("add", (index, self._number(start, dtype)), dtype)
        return index

    def _reduction(self, recipe: Recipe, nodes: list[int], dtype: DType) -> int:
        """The nodes of a reduction."""
        (node,) = nodes
        name = recipe.operation.name
        of: Node = self.nodes.body[node]
        if name in {"any", "all"} and not of.dtype.is_bool:
            zero = self.nodes.add(number_for(0, of.dtype))
            node = self._apply("not_equal", (node, zero), bool_)
        elif not (of.dtype.is_float and dtype.is_float and of.dtype.itemsize > dtype.itemsize):
            node = self._cast(node, dtype)
        return self._cast(self._reduced(REGISTRY[name].combines, node, recipe), dtype)

    def _reduced(self, kind: Any, node: int, recipe: Recipe) -> int:
        """A reduction over all columns, unless the operation reduces single elements."""
        if not recipe.reduces:
            return node
        return self.nodes.add(Reduce(kind, node, self.nodes.body[node].dtype))

    def _choice(self, function: str, index: int, bound: int, then: int, other: int) -> int:
        """One of two indices, by a comparison of an index with a number."""
        limit = self.nodes.literal(bound, self.index_dtype)
        holds = self._apply(function, (index, limit), bool_)
        return self._apply("where", (holds, then, other), self.index_dtype)

    def _wrapped(self, node: int, length: int) -> int:
        """An index in [-length, length) as one in [0, length); of any other one, one of these."""
        index = self._cast(node, self.index_dtype)
        if self.nodes.body[node].dtype.kind != Kind.UINT:
            extent = self.nodes.literal(length, self.index_dtype)
            again = self._apply("add", (index, extent), self.index_dtype)
            index = self._choice("less", index, 0, again, index)
        for function, bound in (("maximum", 0), ("minimum", length - 1)):
            limit = self.nodes.literal(bound, self.index_dtype)
            index = self._apply(function, (index, limit), self.index_dtype)
        return index

    def _checked(self, recipe: Recipe, nodes: list[int], dtype: DType) -> int:
        """An index that is out of range, or 0."""
        index, length = self._cast(nodes[0], dtype), _axis_length(recipe.operation)
        zero = self.nodes.literal(0, self.index_dtype)
        found = self._choice("greater_equal", index, length, index, zero)
        return self._choice("less", index, -length, index, found)

    def _at_index(self, recipe: Recipe, nodes: list[int], dtype: DType) -> int:
        """The nodes of what is done where an index is that along the axis."""
        index, along, x, *value = nodes
        wrapped = self._wrapped(index, _axis_length(recipe.operation))
        chosen = self._apply("equal", (along, wrapped), bool_)
        if value:
            added = self._apply("add", (x, value[0]), dtype)
            return self._apply("where", (chosen, added, x), dtype)
        zero = self.nodes.add(number_for(0, dtype))
        one = self._apply("where", (chosen, x, zero), dtype)
        return self._reduced("max" if dtype.is_bool else "sum", one, recipe)

    def _parts(self, recipe: Recipe, nodes: list[int], dtype: DType) -> int:
        """The nodes of a tensor of which each part comes from another one."""
        operands: list[tuple[Any, int]] = list(zip(recipe.operands, nodes, strict=True))
        if recipe.operation.name == "concat":
            operands.reverse()
        result = operands[0][1]
        for operand, node in operands[1:]:
            inside = self._inside(operand.inside)
            result = node if inside is None else self._apply("where", (inside, node, result), dtype)
        return result


_WRITERS: Final[dict[Work, Callable[[_Builder, Recipe, list[int], DType], int]]] = {
    Work.ELEMENTWISE: _Builder._elementwise,
    Work.NUMBER: _Builder._full,
    Work.RANGE: _Builder._range,
    Work.VIEW: _Builder._view,
    Work.REDUCTION: _Builder._reduction,
    Work.PRODUCT: _Builder._product,
    Work.PARTS: _Builder._parts,
    Work.PICK: _Builder._at_index,
    Work.ADD: _Builder._at_index,
    Work.CHECK: _Builder._checked,
}
"""What writes the nodes of a recipe from those of its operands."""


def _axis_length(operation: OperationIr) -> int:
    """Length of the axis that indices are for."""
    x = operands_of(operation)[0]
    return int(x.shape[operation.attributes["axis"]])


def _collect(operand: Operand, maps: dict[IndexMap, None]) -> None:
    """Add the maps by which an operand reads and computes indices."""
    if isinstance(operand, Recipe):
        for parts in operand.operands:
            _collect(parts, maps)
    if isinstance(operand, Read | Along) or (
        isinstance(operand, Recipe) and operand.work is Work.RANGE
    ):
        maps[operand.map] = None
    if isinstance(operand, Read | Number):
        maps.update(dict.fromkeys([condition.map for condition in operand.inside]))
