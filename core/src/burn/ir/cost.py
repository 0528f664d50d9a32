"""What a call of an op costs: floating-point operations, and bytes that are read and written.

The operations of a call, by the first of these that says it:

- An op that runs programs says what these cost: a loop that of each iteration, or of one where
  their number is not known, and a branch that of the larger program.
- An op without a float among its outputs has none: comparisons, indices, integers, flags.
- Its own rule, ``@name.cost``, in its definition.
- A view has none.
- An elementwise op has one for each element of the output, whichever function it is.
- A reduction has one for each element of its operand.
- An op with a decomposition has those of its parts; so the numbers of a random op are what it costs
  to make floats of random bits.
- Any other op moves elements, and has none.

One on complex numbers counts as four: an addition has two, a multiplication six, and most calls as
many of one as of the other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from burn.device_id import DeviceId
from burn.dtype import DType, DTypeUsage, Kind
from burn.errors import UnsupportedOpError
from burn.ir._operands import metas_of
from burn.ir.graph import GraphIr, OperationIr, ScalarIr, with_example_scalars
from burn.ops import REGISTRY, Meta, Op, OpTable, Role, Tag, size
from burn.tensor_data import TensorData

__all__ = ["Cost", "GraphCost", "OpCost", "OperationCost", "cost", "graph_cost"]


class Cost(NamedTuple):
    """What a call of an op costs.

    Attributes
    ----------
    flops : int
        Number of floating-point operations.
    bytes : int
        Size of its operands and outputs, each read or written once; 0 for a view.
    """

    flops: int
    bytes: int


class OperationCost(NamedTuple):
    """What one operation of a graph costs.

    Attributes
    ----------
    operation : OperationIr
        The operation.
    flops : int
        Number of floating-point operations.
    bytes : int
        Size of its operands and outputs.
    """

    operation: OperationIr
    flops: int
    bytes: int


class OpCost(NamedTuple):
    """What all operations of one op cost.

    Attributes
    ----------
    calls : int
        Number of operations.
    flops : int
        Number of floating-point operations.
    bytes : int
        Size of their operands and outputs.
    """

    calls: int
    flops: int
    bytes: int


class GraphCost:
    """What a graph costs. It prints as a table, the op with the most operations first.

    Parameters
    ----------
    operations : list of OperationCost
        The operations of the graph, in order.

    Attributes
    ----------
    operations : list of OperationCost
        The same.
    by_op : dict of str to OpCost
        The sums for each op.
    total : OpCost
        The sum of all.
    """

    def __init__(self, operations: list[OperationCost]) -> None:
        self.operations = operations
        groups: dict[str, list[OperationCost]] = {}
        for operation in operations:
            groups.setdefault(operation.operation.name, []).append(operation)
        sums = {name: _total(group) for name, group in groups.items()}
        self.by_op = dict(sorted(sums.items(), key=lambda item: (-item[1].flops, -item[1].bytes)))
        self.total = _total(operations)

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [("op", *OpCost._fields)]
        for name, numbers in [*self.by_op.items(), ("total", self.total)]:
            rows.append((name, *[f"{number:,}" for number in numbers]))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            [
                "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
                for row in rows
            ]
        )


def _total(operations: Sequence[OperationCost]) -> OpCost:
    flops, sizes = (
        sum(operation.flops for operation in operations),
        sum(operation.bytes for operation in operations),
    )
    return OpCost(len(operations), flops, sizes)


def graph_cost(graph: GraphIr) -> GraphCost:
    """What each operation of a graph costs; see `cost`.

    Parameters
    ----------
    graph : GraphIr
        The graph.

    Returns
    -------
    GraphCost
        The cost of each operation, of each op, and the total.

    Raises
    ------
    BurnError
        If an op does not exist, or does not accept an operation.
    """
    return GraphCost(
        [
            OperationCost(
                operation, *cost(operation.name, metas_of(operation.inputs), operation.attributes)
            )
            for operation in graph.operations
            if isinstance(operation, OperationIr)
        ]
    )


def cost(name: str, operands: Sequence[Any], attributes: Mapping[str, Any]) -> Cost:
    """What a call of an op costs. It is kept for each signature.

    A length that depends on data is unknown, and None in a shape: a tensor with one counts no
    bytes, and a call with such an operand no operations.

    Parameters
    ----------
    name : str
        Name of the op.
    operands : sequence of Meta, Python number, None or list of Meta
        What the op gets.
    attributes : dict
        Its attributes; one with a runtime role may be a ScalarIr.

    Returns
    -------
    Cost
        Floating-point operations and bytes.

    Raises
    ------
    BurnError
        If the op does not exist, or does not accept the call.

    Examples
    --------
    >>> from burn import float32
    >>> from burn.ir.cost import cost
    >>> from burn.ops import Meta
    >>> cost("matmul", [Meta((8, 4), float32), Meta((4, 2), float32)], {})
    Cost(flops=128, bytes=224)
    """
    definition = REGISTRY.get(name)
    if definition is None:
        raise UnsupportedOpError(f"there is no op {name!r}", hint="`burn ops` lists them")
    return _call(definition, operands, attributes)[1]


class _Tensor:
    """The primitive of a counting table: a Meta that is no tuple, which is a list of tensors."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: DType) -> None:
        self.shape = shape
        self.dtype = dtype


class _CountingBackend:
    """What decompositions ask of a backend, beside its ops."""

    def dtype_usage(self, _device: DeviceId, _dtype: DType) -> DTypeUsage:
        return DTypeUsage.GENERAL

    def from_data(self, data: TensorData, _device: DeviceId) -> _Tensor:
        return _Tensor(data.array.shape, data.dtype)


class _CountingTable(OpTable):
    """Ops that compute nothing, and add up their floating-point operations.

    Attributes
    ----------
    flops : int
        The sum so far.
    """

    is_observed = False

    def __init__(self) -> None:
        self.backend = _CountingBackend()
        self.device = DeviceId(0, 0)
        self.dtypes = {dtype: dtype for dtype in DType.members()}
        self.flops = 0

    def _resolve(self, definition: Op) -> Callable[..., Any]:
        def call(*operands: Any, **attributes: Any) -> Any:
            outputs, spent = _call(definition, list(map(_meta, operands)), attributes)
            self.flops += spent.flops
            if isinstance(outputs, Meta):
                return _Tensor(*outputs)
            return tuple([_Tensor(*output) for output in outputs])

        return call


def _meta(operand: Any) -> Any:
    """An operand of a counting table as `Op.infer` takes it."""
    if isinstance(operand, _Tensor):
        return Meta(operand.shape, operand.dtype)
    return list(map(_meta, operand)) if isinstance(operand, (tuple, list)) else operand


def _primitive(operand: Any) -> Any:
    """An operand of an op as a decomposition takes it."""
    if isinstance(operand, Meta):
        return _Tensor(*operand)
    if isinstance(operand, list):
        return list(map(_primitive, operand))
    return operand


def _call(
    definition: Op, operands: Sequence[Any], attributes: Mapping[str, Any]
) -> tuple[Any, Cost]:
    """The metadata of the outputs of a call, and its cost."""
    if any(attribute.role is Role.GRAPH for attribute in definition.attributes.values()):
        output = definition.infer(*operands, **with_example_scalars(attributes))
        rule: Any = definition.flops
        return output, Cost(*rule(output, *operands, **attributes))
    return _kept(
        definition,
        tuple(map(_frozen, operands)),
        tuple([(key, _value(definition, key, attributes[key])) for key in sorted(attributes)]),
    )


def _frozen(operand: Any) -> Any:
    """An operand that hashes. No cost depends on the value of a number."""
    if isinstance(operand, list):
        return tuple(operand)
    return operand if operand is None or isinstance(operand, Meta) else operand.__class__(1)


def _value(definition: Op, name: str, value: Any) -> Any:
    """The value of an attribute, that hashes; for a runtime number but 0 one that ops accept."""
    attribute = definition.attributes.get(name)
    if attribute is not None and attribute.role.is_runtime:
        return value.kind(1) if isinstance(value, ScalarIr) else value.__class__(bool(value))
    return _as_tuple(value)


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, (list, tuple)) else value


@functools.lru_cache(maxsize=16384)
def _kept(
    definition: Op, operands: tuple[Any, ...], attributes: tuple[tuple[str, Any], ...]
) -> tuple[Any, Cost]:
    given = [list(operand) if operand.__class__ is tuple else operand for operand in operands]
    metas = _tensors(given)
    if any(None in meta.shape for meta in metas):
        return (), Cost(0, _bytes(definition, metas))
    keywords = dict(attributes)
    output = definition.infer(*given, **keywords)
    outputs = _tensors([output] if isinstance(output, Meta) else output)
    flops = 0
    if any(meta.dtype.kind in Kind.INEXACT for meta in outputs):
        flops = _flops(definition, output, given, keywords)
    return output, Cost(flops, _bytes(definition, [*metas, *outputs]))


def _flops(definition: Op, output: Any, operands: list[Any], attributes: dict[str, Any]) -> int:
    """Floating-point operations of a call with a float among its outputs."""
    if definition.flops is not None:
        count: int = definition.flops(output, *operands, **attributes)
    elif Tag.VIEW in definition.tags:
        count = 0
    elif Tag.ELEMENTWISE in definition.tags:
        count = size(output.shape)
    elif Tag.REDUCTION in definition.tags:
        count = size(operands[0].shape)
    elif definition.default is not None:
        table = _CountingTable()
        definition.default(table, *map(_primitive, operands), **attributes)
        return table.flops
    else:
        count = 0
    is_complex = any(meta.dtype.is_complex for meta in _tensors([*operands, output]))
    return _OF_COMPLEX_NUMBERS * count if is_complex else count


_OF_COMPLEX_NUMBERS: Final = 4


def _tensors(operands: Sequence[Any]) -> list[Meta]:
    """The metadata among operands or outputs, those in lists included."""
    found: list[Meta] = []
    for operand in operands:
        if isinstance(operand, Meta):
            found.append(operand)
        elif isinstance(operand, (list, tuple)):
            found += _tensors(operand)
    return found


def _bytes(definition: Op, tensors: Sequence[Meta]) -> int:
    if Tag.VIEW in definition.tags:
        return 0
    return sum(
        size(tensor.shape) * tensor.dtype.itemsize for tensor in tensors if None not in tensor.shape
    )
