"""Groups of operations that become one kernel each, and how an operation joins one.

A group has a *domain*: the elements of the tensor that its first operation computes (of a
reduction, the elements that it reads), numbered in row-major order. What its members are at each
element of the domain, and what they read, are index maps from these numbers. A member is of full
level if its map is one to one, and of row level if the map repeats along the digits over which the
group reduces; so the members of a group are what one pass over rows and columns computes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from burn.compiler.fusion_maps import IndexMap, chain, composed, cuts, identity, inverse, zeros
from burn.compiler.fusion_rules import Work
from burn.dtype import DType
from burn.ir import OperationIr, TensorIr
from burn.ops.shapes import size

__all__ = [
    "Along",
    "Condition",
    "Group",
    "Member",
    "Number",
    "Operand",
    "Read",
    "Recipe",
    "Task",
    "Use",
    "Value",
    "estimate",
    "join",
    "settled",
]

_MOST_READS: Final = 32
"""Tensors that one kernel reads: launches have limits of their arguments, and cores of pointers."""

_MOST_MEMBERS: Final = 400
"""Operations in one kernel."""

_MOST_STORED: Final = 64
"""Outputs of one kernel: what a compiler takes for each of them grows with their number."""

_CHEAP: Final = 16
"""Cost of an element, in additions, up to which it is computed again instead of stored."""

_CHEAP_REPEATED: Final = 4
"""The same for an element that many elements of the reader need."""

_MOST_READS_AGAIN: Final = 3
"""Tensors that are loaded to compute an element again, those that are small aside."""

_FEW: Final = 8
"""A value is small beside another one if it has so many times fewer bytes: it may as well be stored
for the sake of the other one."""

_FEW_ROWS: Final = 32
_MANY_COLUMNS: Final = 8192
"""A kernel of fewer rows with more columns ends with its reductions: what follows has more work to
share among cores in a kernel of its own."""


class Condition(NamedTuple):
    """An index along an axis is in a range.

    Attributes
    ----------
    map : IndexMap
        From the elements to the index along the axis.
    start, stop : int
        The range.
    length : int
        Length of the axis.
    """

    map: IndexMap
    start: int
    stop: int
    length: int


class Use(NamedTuple):
    """A tensor that an operation reads.

    Attributes
    ----------
    tensor : TensorIr
        The operand.
    value : Value
        What has been computed or is in memory, of which the operand is a view.
    map : IndexMap
        From the elements that the operation computes to those of the value.
    inside : tuple of Condition
        Where it is read, unless that is everywhere. Then the value is in memory.
    step : int
        For what is read at an index, which the operand before it gives: the elements that the index
        counts. Then the value is in memory. 0 for all others.
    """

    tensor: TensorIr
    value: Value
    map: IndexMap
    inside: tuple[Condition, ...] = ()
    step: int = 0


class Number(NamedTuple):
    """A number as an operand: a Python number, or one that each run gets anew.

    Attributes
    ----------
    value : number, HostNumber or ScalarIr
        The number.
    dtype : DType
        Its dtype.
    inside : tuple of Condition
        Where it is the value, unless that is everywhere.
    """

    value: Any
    dtype: DType
    inside: tuple[Condition, ...] = ()


class Along(NamedTuple):
    """The index along an axis as an operand.

    Attributes
    ----------
    map : IndexMap
        From the elements to the index.
    """

    map: IndexMap


class Member(NamedTuple):
    """An operand that the same group computes at the same element."""

    value: Value


class Read(NamedTuple):
    """An operand that is loaded: where of the domain, as `Use` has it of an operation."""

    value: Value
    map: IndexMap
    inside: tuple[Condition, ...] = ()
    step: int = 0


@dataclass(frozen=True, slots=True)
class Recipe:
    """How an element is computed.

    Attributes
    ----------
    operation : OperationIr
        The op and its attributes.
    work : Work
        What it is to fusion.
    operands : tuple of Operand
        What it computes with.
    map : IndexMap
        From the domain of the group to the elements of the operation.
    reduces : bool
        Whether it is the reduction over all columns of the group.
    """

    operation: OperationIr
    work: Work
    operands: tuple[Operand, ...]
    map: IndexMap
    reduces: bool = False


Operand: TypeAlias = Number | Along | Member | Read | Recipe


@dataclass(slots=True)
class Task:
    """An operation that is to join a group.

    Attributes
    ----------
    operation : OperationIr
        The operation.
    work : Work
        What it is to fusion.
    count : int
        Number of elements that it computes; of a reduction, that it reads.
    uses : tuple of Use, Number or Along
        Its operands, in order.
    reduced : IndexMap or None
        From the elements that it reads to those of its output, if it is a reduction of several
        elements.
    cost : int
        Cost of an element, in additions.
    """

    operation: OperationIr
    work: Work
    count: int
    uses: tuple[Use | Number | Along, ...]
    reduced: IndexMap | None = None
    cost: int = 1

    @property
    def is_product(self) -> bool:
        """Whether it is a sum of products: no tensor has its domain."""
        return self.work is Work.PRODUCT and self.reduced is not None


@dataclass(slots=True, eq=False)
class Value:
    """A tensor that is no view: an input, or what an operation makes.

    Attributes
    ----------
    tensor : TensorIr
        The tensor.
    in_memory : bool
        Whether it is in memory after the step that makes it, as far as is known by now.
    position : int
        The step that makes it; -1 for inputs, and for what each reader computes for itself.
    group : Group or None
        The group that computes it.
    map : IndexMap or None
        From the domain of the group to its elements.
    task, recipe : Task and Recipe, or None
        How it is computed.
    cost : int
        Cost of an element that is computed again from what is in memory.
    reads : tuple of Value or None
        What is loaded for that: it is in memory, or small; None if it cannot be computed again at
        any element.
    repeated_in : Group or None
        The first group that computes it again.
    """

    tensor: TensorIr
    in_memory: bool
    position: int = -1
    group: Group | None = None
    map: IndexMap | None = None
    task: Task | None = None
    recipe: Recipe | None = None
    cost: int = 0
    reads: tuple[Value, ...] | None = None
    repeated_in: Group | None = None

    @property
    def is_free(self) -> bool:
        """Whether no step makes it yet: each reader computes it for itself."""
        return self.position < 0 and not self.in_memory

    @property
    def count(self) -> int:
        """Number of elements."""
        return size(self.tensor.shape)  # type: ignore[arg-type]  # all lengths are known

    @property
    def bytes(self) -> int:
        """Size in memory."""
        return self.count * self.tensor.dtype.itemsize


@dataclass(slots=True, eq=False)
class Group:
    """Operations that become one kernel.

    Attributes
    ----------
    position : int
        The number of the step.
    count : int
        Number of elements of the domain.
    has_tensor : bool
        Whether a tensor has the elements of the domain: not those of a matrix product, for which
        they are the rows, the columns and the products.
    columns : tuple of (int, int) or None
        The digits over which it reduces: where each begins and ends; None without reductions.
    cuts : tuple of int
        Where the digits begin of all index maps.
    members : list of Value
        What it computes, in order.
    reads : set of int
        The ids of tensors that it loads.
    stored : int
        Members that are outputs of the program, or operands of calls.
    """

    position: int
    count: int
    has_tensor: bool = True
    columns: tuple[tuple[int, int], ...] | None = None
    cuts: tuple[int, ...] = ()
    members: list[Value] = field(default_factory=list)
    reads: set[int] = field(default_factory=set)
    stored: int = 0

    @property
    def is_long(self) -> bool:
        """Whether it has few rows with many columns."""
        columns = 1
        for low, high in self.columns or ():
            columns *= high // low
        return columns > _MANY_COLUMNS and self.count // columns < _FEW_ROWS


def join(task: Task, group: Group, value: Value, *, again: bool = True) -> bool:
    """Make a value a member of a group, if what it reads is there; whether it was possible.

    Parameters
    ----------
    task : Task
        The operation.
    group : Group
        The group; new ones have no members.
    value : Value
        What the operation makes.
    again : bool
        Whether operands may be computed again.
    """
    if len(group.members) >= _MOST_MEMBERS or group.stored >= _MOST_STORED:
        return False
    return any(_Attempt(task, group, map, again=again).join(value) for map in _maps(task, group))


def _maps(task: Task, group: Group) -> Iterator[IndexMap]:
    """Maps from the domain of a group that may give the elements of an operation."""
    found: list[IndexMap] = []
    of_rows: list[IndexMap] = []
    for use in settled(task):
        if use.value.group is group and use.value.map is not None:
            back = inverse(use.map)
            map = None if back is None else composed(back, use.value.map)
            if map is not None and map not in found and map not in of_rows:
                (of_rows if zeros(map) else found).append(map)
    of_domain = group.has_tensor and task.count == group.count
    if not found and (of_domain or not group.members):
        found.append(identity(group.count))
    yield from found
    yield from of_rows


def settled(task: Task) -> Iterator[Use]:
    """The tensors that an operation reads, and those that its free operands are computed from."""
    for use in task.uses:
        if not isinstance(use, Use):
            continue
        if not use.value.is_free:
            yield use
        elif use.value.task is not None:
            for inner in settled(use.value.task):
                map = composed(inner.map, use.map)
                if map is not None:
                    yield inner._replace(map=map)


class _Attempt:
    """An attempt to make an operation a member of a group by one map from its domain."""

    def __init__(self, task: Task, group: Group, map: IndexMap, *, again: bool) -> None:
        self.task = task
        self.group = group
        self.map = map
        self.reads: dict[int, Value] = {}
        self.maps: list[IndexMap] = [map]
        self.may_repeat = again
        self.limit = 1 if task.is_product else _CHEAP
        self.reads_rows = False
        self.repeated: list[Value] = []

    def join(self, value: Value) -> bool:
        """Make a value a member; whether it was possible."""
        task, group = self.task, self.group
        out = self._result()
        operands = None if out is None else self._operands()
        if out is None or operands is None:
            return False
        found = chain(group.cuts, *[cuts(map) for map in (out, *self.maps)])
        is_too_large = group.members and len(self.reads.keys() | group.reads) > _MOST_READS
        if found is None or is_too_large:
            return False
        if task.reduced is not None:
            group.columns = zeros(out)
        group.cuts = found
        group.reads |= self.reads.keys()
        group.members.append(value)
        group.stored += value.in_memory
        for read in self.reads.values():
            read.in_memory = True
        for item in self.repeated:
            item.repeated_in = item.repeated_in or group
        value.position, value.group, value.map = group.position, group, out
        value.task = task
        reduces = task.reduced is not None
        value.recipe = Recipe(task.operation, task.work, operands, self.map, reduces)
        estimate(value, task)
        return True

    def _result(self) -> IndexMap | None:
        """From the domain to the elements of the result; None if it is of no level of the group."""
        columns = self.group.columns
        if self.task.reduced is None:
            return self.map if zeros(self.map) in {(), columns} else None
        out = composed(self.task.reduced, self.map)
        if out is None or zeros(self.map) or (columns is not None and zeros(out) != columns):
            return None
        return out

    def _operands(self) -> tuple[Operand, ...] | None:
        """What the group computes with; None if it cannot."""
        operands = []
        for use in self.task.uses:
            operand = self._operand(use, self.map)
            if operand is None:
                return None
            operands.append(operand)
        if self.reads_rows and not zeros(self.map) and self.group.is_long:
            return None
        return tuple(operands)

    def _operand(self, use: Use | Number | Along, map: IndexMap) -> Operand | None:
        """What the group computes with for an operand; None if it cannot."""
        if isinstance(use, Number):
            inside = self._conditions(use.inside, map)
            return None if inside is None else use._replace(inside=inside)
        where = composed(use.map, map)
        if where is None:
            return None
        if isinstance(use, Along):
            self.maps.append(where)
            return Along(where)
        value, group = use.value, self.group
        if use.inside or use.step:
            inside = self._conditions(use.inside, map)
            if value.position >= group.position or value.is_free or inside is None:
                return None
            return self._read(Read(value, where, inside, use.step))
        if value.group is group and where == value.map:
            self.reads_rows |= bool(zeros(where))
            return Member(value)
        if value.position >= group.position:
            return self._again(value, where)
        if not value.in_memory and (_is_small(value, group) or self._reads_for(value)):
            again = self._again(value, where)
            if again is not None:
                self.repeated.append(value)
                return again
        return None if value.is_free else self._read(Read(value, where))

    def _reads_for(self, value: Value) -> bool:
        """Whether the kernel reads in any case what a value is computed from."""
        return all(
            read.tensor.id in self.reads or read.tensor.id in self.group.reads
            for read in value.reads or ()
        )

    def _read(self, read: Read) -> Read:
        self.reads[read.value.tensor.id] = read.value
        self.maps.append(read.map)
        return read

    def _conditions(
        self, conditions: tuple[Condition, ...], map: IndexMap
    ) -> tuple[Condition, ...] | None:
        """Conditions on the elements of the operation, as such on the domain."""
        found = []
        for condition in conditions:
            along = composed(condition.map, map)
            if along is None:
                return None
            self.maps.append(along)
            found.append(condition._replace(map=along))
        return tuple(found)

    def _again(self, value: Value, where: IndexMap) -> Recipe | None:
        """How the group computes a value of another step, or at another element, for itself."""
        task = value.task
        if task is None or value.reads is None or not (self.may_repeat or value.is_free):
            return None
        is_repeated = zeros(where) not in {(), zeros(self.map)}
        if value.cost > (min(self.limit, _CHEAP_REPEATED) if is_repeated else self.limit):
            return None
        before = dict(self.reads), len(self.maps)
        operands = []
        for use in task.uses:
            operand = self._operand(use, where)
            if operand is None:
                self.reads = before[0]
                del self.maps[before[1] :]
                return None
            operands.append(operand)
        if task.work is Work.RANGE:
            self.maps.append(where)
        return Recipe(task.operation, task.work, tuple(operands), where)


def _is_small(value: Value, group: Group) -> bool:
    """Whether memory moves fewer bytes if a group computes a value again than if it is stored.

    It may read as many bytes as a load of the value, and a few more; or twice as many in one group,
    as a value that is stored is written and then read.
    """
    read = _bytes_again(value)
    if read * _FEW <= value.bytes * (_FEW + 1):
        return True
    return read <= 2 * value.bytes and value.repeated_in in {None, group}


def _bytes_again(value: Value) -> float:
    """The bytes that are read to compute a value again; infinity if it cannot be."""
    if value.reads is None:
        return math.inf
    return sum([min(read.count, value.count) * read.tensor.dtype.itemsize for read in value.reads])


def estimate(value: Value, task: Task) -> bool:
    """Note what it costs to compute a value again, if that is little; whether it is."""
    value.reads = None
    if task.reduced is not None:
        return False
    cost = task.cost
    reads: dict[int, Value] = {}
    for use in task.uses:
        if not isinstance(use, Use):
            continue
        other = use.value
        if other.in_memory:
            reads[other.tensor.id] = other
        elif other.reads is None:
            if other.is_free or other.bytes * _FEW > value.bytes:
                return False
            reads[other.tensor.id] = other
        else:
            cost += other.cost
            reads.update({read.tensor.id: read for read in other.reads})
    large = [read for read in reads.values() if read.bytes * _FEW > value.bytes]
    if cost > _CHEAP or len(large) > _MOST_READS_AGAIN or len(reads) > _MOST_READS // 4:
        return False
    value.cost, value.reads = cost, tuple(reads.values())
    return True
