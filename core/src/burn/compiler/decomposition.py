"""Decomposition: operations that a target has no kernel for, as the ops say that they are made."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from burn.compiler._rewriting import exact, new_tuple, next_id, rewritten
from burn.errors import BurnError
from burn.ir import (
    Constant,
    GraphIr,
    HostNumber,
    OperationIr,
    ScalarIr,
    Status,
    TensorIr,
    infer,
    tensors_among,
)
from burn.ir.graph import PartSource
from burn.ops import REGISTRY, Meta, Op, OpTable, Role

if TYPE_CHECKING:
    from burn.device_id import DeviceId
    from burn.dtype import DType, DTypeUsage
    from burn.tensor_data import TensorData

__all__ = ["decomposition"]


def decomposition(graph: GraphIr, wanted: Callable[[OperationIr], bool], table: OpTable) -> GraphIr:
    """The program with operations replaced by what their ops are made of.

    Parameters
    ----------
    graph : GraphIr
        A program.
    wanted : callable
        Whether an operation is to be replaced, if its op has a decomposition. Of what replaces it,
        it is asked too. It depends on the name, the attributes, and the shapes and dtypes of the
        tensors: the answer for one call holds for each like it.
    table : OpTable
        The ops of the device: the dtypes that it has are those of decompositions.

    Returns
    -------
    GraphIr
        A program that gives the same. The numbers of a run are operands and attributes of the class
        `HostNumber` where a decomposition computes with them. The source of a new operation names
        the op that it is a part of, as in ``train.py:12 (gelu)``. An operation whose decomposition
        needs a value, or does not hold for its dtype, stays, and so do control flow, and operations
        with numbers of a run as operands.

    Examples
    --------
    >>> import burn
    >>> from burn.ir import GraphIr, OperationIr, TensorIr
    >>> x, y = TensorIr(0, (3,), burn.float32), TensorIr(1, (3,), burn.float32)
    >>> graph = GraphIr((x,), (), (OperationIr("silu", (x,), {}, (y,), "a.py:1"),), (y,))
    >>> print(decomposition(graph, lambda one: one.name == "silu", burn.Device("cpu").ops))
    input %0: float32[3]
    %2: float32[3] = sigmoid(%0)    # a.py:1 (silu)
    %3: float32[3] = multiply(%0, %2)    # a.py:1 (silu)
    output %3
    """
    recording = _Recording(table, wanted, next_id(graph))

    def parts(operation: OperationIr, replacement: dict[int, TensorIr]) -> list[OperationIr]:
        recording.source = PartSource.of(operation)
        made = recording.expanded(operation, _key(operation))
        if made is None:
            return [operation]
        replacement.update(zip([output.id for output in operation.outputs], made, strict=True))
        return recording.taken()

    found = rewritten(graph, parts)
    return replace(found, constants=(*graph.constants, *recording.constants))


class _Value:
    """What stands for a tensor while a decomposition runs."""

    __slots__ = ("dtype", "id", "shape")

    def __init__(self, tensor: TensorIr) -> None:
        self.id, self.shape, self.dtype, _ = tensor

    @property
    def ir(self) -> TensorIr:
        """What operations name it by."""
        return TensorIr(self.id, self.shape, self.dtype)


class _Template(NamedTuple):
    """The decomposition of a call, whose tensors have negative numbers, operands first."""

    operations: tuple[OperationIr, ...]
    outputs: tuple[TensorIr, ...]


class _NeedsValueError(BurnError):
    """A decomposition reads a tensor."""


class _Device:
    """The backend of a decomposition: it makes constants, and knows dtypes."""

    def __init__(self, recording: _Recording) -> None:
        self._recording = recording

    def from_data(self, data: TensorData, device: DeviceId) -> _Value:
        """A constant of the program."""
        del device
        return self._recording.constant(data)

    def to_data(self, x: _Value) -> NoReturn:
        """Raise: a tensor has no value."""
        raise _NeedsValueError(f"the values of {x.ir} are not known")

    def dtype_usage(self, device: DeviceId, dtype: DType) -> DTypeUsage:
        """What the device can do with a dtype."""
        usage: DTypeUsage = self._recording.table.backend.dtype_usage(device, dtype)
        return usage


class _Recording(OpTable):
    """A table that writes down what a decomposition calls, decomposed in turn where wanted."""

    is_observed = False

    def __init__(self, table: OpTable, wanted: Callable[[OperationIr], bool], first: int) -> None:
        self.table = table
        self.device = table.device
        self.backend = _Device(self)
        self.dtypes = {dtype: dtype for dtype in table.dtypes.values()}
        self.constants: list[Constant] = []
        self.source = ""
        self._wanted = wanted
        self._templates: dict[Any, _Template | None] = {}
        self._metas: dict[Any, tuple[Meta, ...]] = {}
        self._global = self._numbers = itertools.count(first)
        self._operations: list[OperationIr] = []

    def taken(self) -> list[OperationIr]:
        """The operations that have been written down since the last call."""
        operations, self._operations = self._operations, []
        return operations

    def constant(self, data: TensorData) -> _Value:
        """A constant of the program."""
        tensor = TensorIr(next(self._global), data.shape, data.dtype)
        self.constants.append(Constant(tensor, data))
        return _Value(tensor)

    def expanded(self, operation: OperationIr, key: Any) -> tuple[TensorIr, ...] | None:
        """Write down what an operation is made of, and return its outputs; None if it stays."""
        if key not in self._templates:
            self._templates[key] = self._template(REGISTRY[operation.name], operation)
        template = self._templates[key]
        return None if template is None else self._instance(template, operation)

    def _instance(self, template: _Template, operation: OperationIr) -> tuple[TensorIr, ...]:
        """Write down a decomposition of the operands of a call."""
        tensors = {
            -1 - index: tensor for index, tensor in enumerate(tensors_among(operation.inputs))
        }

        def named(operand: Any) -> Any:
            if operand.__class__ is TensorIr:
                return tensors.get(operand.id, operand)
            return tuple(map(named, operand)) if operand.__class__ is tuple else operand

        for name, inputs, attributes, outputs, _ in template.operations:
            operands = tuple(map(named, inputs))
            made = []
            for id, shape, dtype, status in outputs:
                number = next(self._numbers)
                made.append(new_tuple(TensorIr, (number, shape, dtype, status)))
                tensors[id] = new_tuple(TensorIr, (number, shape, dtype, Status.READ_ONLY))
            fields = (name, operands, attributes, tuple(made), self.source)
            self._operations.append(new_tuple(OperationIr, fields))
        return tuple(map(named, template.outputs))

    def _template(self, definition: Op, operation: OperationIr) -> _Template | None:
        """The decomposition of each call like this one; None if there is none."""
        if definition.default is None or not self._wanted(operation):
            return None
        inputs: tuple[Any, ...] = operation.inputs
        if any(source.__class__ is HostNumber for source in inputs):
            return None
        if any(attribute.role is Role.GRAPH for attribute in definition.attributes.values()):
            return None
        outer = self._operations, self._numbers, self.source
        self._operations, self._numbers, self.source = [], itertools.count(-1, -1), ""
        operands = [self._operand(source) for source in inputs]
        attributes = {
            name: HostNumber.of(value) if value.__class__ is ScalarIr else value
            for name, value in operation.attributes.items()
        }
        try:
            result = definition.default(self, *operands, **attributes)
        except BurnError:
            return None
        else:
            made = result if definition.returns_tuple else (result,)
            return _Template(tuple(self._operations), tuple([item.ir for item in made]))
        finally:
            self._operations, self._numbers, self.source = outer

    def _operand(self, operand: Any) -> Any:
        """What a decomposition gets for an operand."""
        if operand.__class__ is TensorIr:
            return _Value(operand._replace(id=next(self._numbers)))
        if operand.__class__ is tuple:
            return list(map(self._operand, operand))
        return operand

    def _resolve(self, definition: Op) -> Callable[..., Any]:
        def call(*operands: Any, **attributes: Any) -> Any:
            inputs = tuple(map(_as_input, operands))
            for name, value in attributes.items():
                if value.__class__ is HostNumber:
                    attributes[name] = value.simplest()
            key = _key(OperationIr(definition.name, inputs, attributes, ()))
            metas = self._metas.get(key)
            if metas is None:
                metas = self._metas[key] = infer(definition, inputs, attributes)
            outputs = tuple(
                [TensorIr(next(self._numbers), *meta, Status.NOT_INIT) for meta in metas]
            )
            operation = OperationIr(definition.name, inputs, attributes, outputs)
            made = self.expanded(operation, key)
            if made is None:
                self._operations.append(operation)
                made = outputs
            values = tuple(map(_Value, made))
            return values if definition.returns_tuple else values[0]

        return call


def _as_input(operand: Any) -> Any:
    """What an operation has for an operand."""
    if operand.__class__ is _Value:
        return operand.ir
    if operand.__class__ is list:
        return tuple([part.ir for part in operand])
    return operand


def _key(operation: OperationIr) -> Any:
    """What two calls have in common that have the same decomposition."""
    name, inputs, attributes, _, _ = operation
    return (
        name,
        tuple(map(_operand_key, inputs)),
        tuple([(name, exact(value)) for name, value in attributes.items()]),
    )


def _operand_key(operand: Any) -> Any:
    if operand.__class__ is TensorIr:
        return operand.shape, operand.dtype
    if operand.__class__ is tuple:
        return tuple(map(_operand_key, operand))
    return exact(operand)
