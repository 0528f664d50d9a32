"""Constants: what depends on no input is computed once, by the device itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, Final

from burn.compiler._rewriting import rewritten
from burn.errors import BurnError
from burn.ir import (
    Constant,
    GraphIr,
    HostNumber,
    OperationIr,
    ScalarIr,
    Status,
    TensorIr,
    tensors_among,
)
from burn.ops import REGISTRY, OpTable, Tag

if TYPE_CHECKING:
    from burn.tensor_data import TensorData

__all__ = ["constants"]

_MAX_BYTES: Final = 1 << 18
"""Size of the largest tensor that becomes part of a program."""

_MAX_TOTAL: Final = 1 << 24
"""Size of all tensors together that are computed for them."""


def constants(graph: GraphIr, table: OpTable) -> GraphIr:
    """The program with what depends on no input replaced by its value.

    A tensor whose elements are all equal, such as ``ones(n) / n``, is computed as one number, and
    made by `full`. Of other tensors those up to 256 KiB become constants of the program. The device
    computes the values, so they are to the bit what a run would compute. Random numbers are none,
    and neither is what costs nothing to make: a range alone stays one.

    Parameters
    ----------
    graph : GraphIr
        A program.
    table : OpTable
        The ops of the device.

    Returns
    -------
    GraphIr
        The program. What its constants were computed of is still there: see `dead_code`.

    Examples
    --------
    >>> import burn
    >>> graph = GraphIr.from_text('''
    ...     input %0: float32[2, 2]
    ...     %1: float32[2, 2] = full(shape=(2, 2), fill_value=1.0, dtype=float32)
    ...     %2: float32[2, 2] = divide(%1, 4.0)
    ...     %3: float32[2, 2] = multiply(%0, %2)
    ...     output %3
    ... ''')
    >>> from burn.compiler.dead_code import dead_code
    >>> print(dead_code(constants(graph, burn.Device("cpu").ops)))
    input %0: float32[2, 2]
    %2: float32[2, 2] = full(shape=(2, 2), fill_value=0.25, dtype=float32)
    %3: float32[2, 2] = multiply(%0, %2)
    output %3
    """
    known = _Known(graph)
    used = {output.id for output in graph.outputs}
    for operation in graph.operations:
        if isinstance(operation, OperationIr) and not known.add(operation):
            used.update([tensor.id for tensor in tensors_among(operation.inputs)])
    wanted = [id for id in used if id in known.calls and known.calls[id].inputs]
    if not wanted:
        return graph
    try:
        values = known.values(wanted, table)
    except BurnError:  # a run raises it, and names the line
        return graph
    made: list[Constant] = []

    def valued(operation: OperationIr, _: object) -> list[OperationIr]:
        tensor = operation.outputs[0]
        data = values.get(tensor.id)
        if data is None:
            return [operation]
        if tensor.id in known.uniform:
            number = data.array.item()
            attributes = {"shape": tensor.shape, "fill_value": number, "dtype": tensor.dtype}
            return [OperationIr("full", (), attributes, operation.outputs, operation.source)]
        made.append(Constant(tensor._replace(status=Status.READ_ONLY), data))
        return []

    found = rewritten(graph, valued)
    return replace(found, constants=(*graph.constants, *made))


class _Known:
    """The tensors of a program that depend on no input."""

    def __init__(self, graph: GraphIr) -> None:
        self.given = {tensor.id: data for tensor, data in graph.constants}
        self.calls: dict[int, OperationIr] = {}
        """What makes them, in order, beside the constants of the program."""
        self.uniform: set[int] = set()
        """Those whose elements are all equal."""
        self._bytes = 0

    def add(self, operation: OperationIr) -> bool:
        """Whether the output of an operation is known, as that of earlier ones may be."""
        definition = REGISTRY[operation.name]
        if definition.returns_tuple or definition.tags & (Tag.RANDOM | Tag.DATA_DEPENDENT):
            return False
        numbers = (*operation.inputs, *operation.attributes.values())
        if any(number.__class__ in (ScalarIr, HostNumber) for number in numbers):
            return False
        tensors = list(tensors_among(operation.inputs))
        if not all(tensor.id in self.calls or tensor.id in self.given for tensor in tensors):
            return False
        (output,) = operation.outputs
        elements = prod(output.shape)  # type: ignore[arg-type]  # no length depends on data
        if operation.name == "full" or (
            (definition.tags & (Tag.ELEMENTWISE | Tag.VIEW) or definition.fuses == "elementwise")
            and elements
            and all(tensor.id in self.uniform for tensor in tensors)
        ):
            self.uniform.add(output.id)
        else:
            self._bytes += elements * output.dtype.itemsize
            if elements * output.dtype.itemsize > _MAX_BYTES or self._bytes > _MAX_TOTAL:
                return False
        self.calls[output.id] = operation
        return True

    def values(self, wanted: Iterable[int], table: OpTable) -> dict[int, TensorData]:
        """What the device computes for some of them; of a uniform one a single element."""
        needed = set(wanted)
        for id, operation in reversed(self.calls.items()):
            if id in needed:
                needed.update([tensor.id for tensor in tensors_among(operation.inputs)])
        backend = table.backend
        primitives = {
            id: backend.from_data(data, table.device)
            for id, data in self.given.items()
            if id in needed
        }
        for id, (name, operands, attributes, _, _) in self.calls.items():
            if id not in needed:
                continue
            inputs: tuple[Any, ...] = operands
            is_uniform = id in self.uniform
            if is_uniform and name == "full":
                primitives[id] = table.full(**{**attributes, "shape": ()})
            elif is_uniform and Tag.VIEW in REGISTRY[name].tags:
                primitives[id] = primitives[inputs[0].id]
            else:
                values = [
                    primitives[source.id]
                    if is_uniform and source.__class__ is TensorIr
                    else self._operand(source, primitives, table)
                    for source in inputs
                ]
                primitives[id] = getattr(table, name)(*values, **attributes)
        return {id: backend.to_data(primitives[id]) for id in wanted}

    def _operand(self, operand: Any, primitives: dict[int, Any], table: OpTable) -> Any:
        if operand.__class__ is tuple:
            return [self._operand(part, primitives, table) for part in operand]
        if operand.__class__ is not TensorIr:
            return operand
        if operand.id in self.uniform:
            return table.expand(primitives[operand.id], shape=operand.shape)
        return primitives[operand.id]
