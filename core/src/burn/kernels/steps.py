"""Steps of optimizers as kernels: the expression of an op for many parameters, in one launch.

A kernel gets a table by value: how many parameters there are, the group after the last one of each,
their sizes, and the numbers of the step. A group computes neighbouring elements of one parameter.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from ctypes import c_double, c_float
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from burn.dtype import DType, Kind, float32
from burn.kernels.expressions import Nodes, expression
from burn.kernels.functions import FUNCTIONS
from burn.kernels.kernel import Kernel, Length, Load, Scalar, Store
from burn.kernels.schedule import Schedule
from burn.ops import REGISTRY, STEPS, Op, StepFormula, step_formula

if TYPE_CHECKING:
    from burn.kernels.c import CWriter

__all__ = ["GroupSteps", "StepCode", "Steps", "step_code", "step_kernel"]

_ENTRY: Final = "steps"

_CHUNK: Final = 8192
"""Elements that a group of one lane computes."""

_EACH: Final = 4
"""Elements that a lane of another group computes; it loads all of them before it stores one."""


class Steps:
    """The ops that are steps of optimizers, for a backend that runs formulas.

    The backend defines `run_step`; this class defines a method for each op of `STEPS`.
    """

    def run_step(
        self, formula: StepFormula, lists: list[list[Any]], numbers: tuple[float, ...]
    ) -> tuple[Any, ...]:
        """Run a step.

        Parameters
        ----------
        formula : StepFormula
            What is computed.
        lists : list of list
            Its operands, of fitting shapes; some may be `Donated`.
        numbers : tuple of float
            Its numbers.

        Returns
        -------
        tuple of primitives
            The results, one list after the other.
        """
        raise NotImplementedError


def _method(definition: Op) -> Callable[..., Any]:
    def step(self: Steps, *lists: list[Any], **attributes: Any) -> tuple[Any, ...]:
        definition.rule(*lists, **attributes)
        formula = step_formula(definition.name, lists, attributes)
        operands = [lists[index] for index in formula.operands]
        return self.run_step(formula, operands, formula.numbers(attributes))

    step.__name__ = definition.name
    step.__qualname__ = f"Steps.{definition.name}"
    step.__doc__ = "The expression of the op."
    return step


for _definition in STEPS.values():
    setattr(Steps, _definition.name, _method(_definition))


class GroupSteps(Steps):
    """The same for a backend with work groups, which launches text of `step_code`."""

    def run_step(
        self, formula: StepFormula, lists: list[list[Any]], numbers: tuple[float, ...]
    ) -> tuple[Any, ...]:
        """Run a step by as few launches as the arguments of a kernel allow."""
        first = lists[0]
        dtype = first[0].dtype
        if any(x.dtype is not dtype for tensors in lists for x in tensors):
            raise TypeError(f"{formula.name} of different dtypes")
        results = [self.step_targets(lists[index]) for index in formula.outputs]
        columns = [*[[self.step_operand(x) for x in tensors] for tensors in lists], *results]
        capacity = self.step_capacity(len(columns), len(numbers), len(first), dtype)
        key = formula, dtype, capacity
        found = self._step_kernels.get(key)
        if found is None:
            found = self._step_kernels[key] = self.step_kernel(formula, dtype, capacity)
        code, kernel = found
        sizes = [x.size for x in first]
        groups = [-(-size // code.elements) for size in sizes]
        kind = c_double if code.has_doubles else c_float
        packed = bytes((kind * len(numbers))(*numbers))
        for start in range(0, len(first), code.capacity):
            own = slice(start, start + code.capacity)
            ends = list(itertools.accumulate(groups[own]))
            if ends[-1]:
                head = [len(ends), *_filled(ends, code), *_filled(sizes[own], code)]
                tensors = [column[own] for column in columns]
                self.launch_step(code, kernel, ends[-1], head, tensors, packed)
        return tuple([x for tensors in results for x in tensors])

    @functools.cached_property
    def _step_kernels(self) -> dict[tuple[StepFormula, DType, int], tuple[StepCode, Any]]:
        return {}

    def step_capacity(self, columns: int, numbers: int, count: int, dtype: DType) -> int:
        """How many parameters, of `count`, a launch computes: few different numbers.

        Each has a tensor in each of the columns.
        """
        raise NotImplementedError

    def step_kernel(
        self, formula: StepFormula, dtype: DType, capacity: int
    ) -> tuple[StepCode, Any]:
        """A new kernel for so many parameters: its code, and what is launched."""
        raise NotImplementedError

    def step_operand(self, x: Any) -> Any:
        """A tensor in row-major order, from the beginning of its memory."""
        raise NotImplementedError

    def step_targets(self, tensors: list[Any]) -> list[Any]:
        """Memory for the results: that of donated tensors, where nothing else refers to it."""
        raise NotImplementedError

    def launch_step(
        self,
        code: StepCode,
        kernel: Any,
        groups: int,
        head: list[int],
        columns: list[list[Any]],
        numbers: bytes,
    ) -> None:
        """Launch a kernel.

        Parameters
        ----------
        code : StepCode
            Its code.
        kernel : object
            As `step_kernel` returned it.
        groups : int
            Number of groups.
        head : list of int
            The table as words of 64 bits; if pointers are in it, those of each column follow.
        columns : list of list
            The tensors of each operand and result.
        numbers : bytes
            The end of the table.
        """
        raise NotImplementedError


def _filled(numbers: list[int], code: StepCode) -> list[int]:
    return numbers + [0] * (code.capacity - len(numbers))


class StepCode(NamedTuple):
    """A kernel as a text.

    Attributes
    ----------
    text : str
        The source.
    entry : str
        Name of the kernel.
    lanes : int
        Lanes of a group.
    elements : int
        Elements of a parameter that a group computes.
    capacity : int
        Number of parameters of a launch, at most.
    has_doubles : bool
        Whether the numbers in the table are doubles.
    """

    text: str
    entry: str
    lanes: int
    elements: int
    capacity: int
    has_doubles: bool


def step_kernel(formula: StepFormula, dtype: DType) -> Kernel:
    """A formula as the kernel of one parameter, whose length is its last scalar.

    Parameters
    ----------
    formula : StepFormula
        The formula.
    dtype : DType
        Dtype of the parameter, a float.
    """
    wide = float32 if dtype.itemsize < float32.itemsize else dtype
    nodes = Nodes()

    def apply(function: str, *operands: int) -> int:
        if function in FUNCTIONS:
            return nodes.apply(function, operands, wide, wide)
        found = expression(function, Kind.FLOAT)
        if found is None:
            raise TypeError(f"{function} has no expression")
        values = dict(zip(REGISTRY[function].operands, operands, strict=True))
        return found.write(nodes, values, wide)  # type: ignore[no-any-return]  # a node

    count = len(formula.operands)
    operands = [nodes.add(Load(index, 0, (1,), dtype)) for index in range(count)]
    numbers = [nodes.add(Scalar(index, wide)) for index in range(formula.number_count)]
    results = formula.run(apply, operands, numbers)
    stores = tuple([Store(index, node, 0, (1,)) for index, node in enumerate(results)])
    return Kernel(
        (Length(len(numbers)),),
        1,
        (dtype,) * count,
        (*[float] * len(numbers), int),
        ((dtype, None),) * len(results),
        tuple(nodes.body),
        stores,
        tuple(enumerate(formula.outputs)),
    )


def step_code(
    writer_of: Callable[[Kernel], CWriter],
    formula: StepFormula,
    dtype: DType,
    capacity: int,
    lanes: int,
    *,
    has_doubles: bool,
) -> StepCode:
    """The text of a kernel for many parameters.

    Parameters
    ----------
    writer_of : callable
        A new writer of the language for a kernel, with indices of 64 bits.
    formula : StepFormula
        The formula.
    dtype : DType
        Dtype of the parameters.
    capacity : int
        Number of parameters of a launch, at most.
    lanes : int
        Lanes of a group.
    has_doubles : bool
        Whether the numbers are doubles, or floats.
    """
    kernel = step_kernel(formula, dtype)
    writer = writer_of(kernel)
    elements = _CHUNK if lanes == 1 else lanes * _EACH
    integer, real = writer.types["int64"], "double" if has_doubles else "float"
    pointer = f"{writer.memory} {writer.types[dtype.name]}*"
    columns = len(kernel.inputs) + len(kernel.outputs)
    fields = [f"{integer} count, ends[{capacity}], sizes[{capacity}];"]
    arguments, arrays = ["const Table table"], "table.arrays"
    if writer.has_pointers_in_structs:
        fields.append(f"{pointer} arrays[{columns * capacity}];")
    else:
        names = [f"memory{number}" for number in range(columns * capacity)]
        arguments += [f"{pointer} {name}" for name in names]
        writer.line(f"{pointer} const arrays[] = {{{', '.join(names)}}};")
        arrays = "arrays"
    fields.append(f"{real} numbers[{max(formula.number_count, 1)}];")
    for text in (
        f"const {integer} group = {writer.group};",
        f"{integer} tensor = 0;",
        f"for ({integer} last = table.count - 1; last > tensor;) {{",
        f"    const {integer} middle = (tensor + last) / 2;",
        "    if (table.ends[middle] <= group) tensor = middle + 1; else last = middle;",
        "}",
        f"const {integer} size = table.sizes[tensor];",
        f"const {integer} before = tensor ? table.ends[tensor - 1] : 0;",
        f"const {integer} first = (group - before) * {elements};",
        f"const {integer} stop = first + {elements} < size ? first + {elements} : size;",
        *[
            f"const {real} s{number} = table.numbers[{number}];"
            for number in range(formula.number_count)
        ],
    ):
        writer.line(text)
    names = [f"p{number}" for number in range(len(kernel.inputs))]
    names += [f"q{number}" for number in range(len(kernel.outputs))]
    for column, name in enumerate(names):
        writer.line(f"{pointer} const {name} = {arrays}[{column * capacity} + tensor];")
    if lanes == 1:
        _write_chunk(writer, kernel)
    else:
        _write_lanes(writer, kernel, lanes)
    text = "\n".join(
        [
            writer.functions,
            f"typedef struct {{ {' '.join(fields)} }} Table;",
            f"{writer.entry.format(lanes)} void {_ENTRY}({', '.join(arguments)}) {{",
            writer.body,
            "}\n",
        ]
    )
    return StepCode(text, _ENTRY, lanes, elements, capacity, has_doubles)


def _write_chunk(writer: CWriter, kernel: Kernel) -> None:
    """Elements one by one, in a loop of which a compiler makes vectors."""
    schedule = Schedule(writer, kernel)
    with writer.loop("first", "stop", kind="vector") as index, schedule.nested():
        _write_element(schedule, index)


def _write_lanes(writer: CWriter, kernel: Kernel, lanes: int) -> None:
    """Some elements for each lane, of which neighbours are those of neighbouring lanes."""
    schedule = Schedule(writer, kernel)
    loads = {
        number: (node, writer.array(_EACH, node.dtype))
        for number, node in enumerate(kernel.body)
        if isinstance(node, Load)
    }
    start = writer.add("first", writer.lane_index())

    def parts() -> Any:
        return writer.loop("0", str(_EACH), kind="unrolled")

    with parts() as part:
        index = writer.add(start, writer.multiply(part, str(lanes)))
        with writer.when(writer.less(index, "stop")):
            for node, array in loads.values():
                writer.set_element(array, part, writer.load(node.input, index, node.dtype))
    with parts() as part:
        index = writer.add(start, writer.multiply(part, str(lanes)))
        with writer.when(writer.less(index, "stop")), schedule.nested():
            for number, (_, array) in loads.items():
                schedule.values[number] = writer.element(array, part)
            _write_element(schedule, index)


def _write_element(schedule: Schedule[CWriter], index: str) -> None:
    stores = schedule.kernel.stores
    schedule.compute([store.node for store in stores], {0: index})
    for store in stores:
        schedule.store(store, {0: index})
