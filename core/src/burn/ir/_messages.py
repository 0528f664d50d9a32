"""Messages as what msgpack can write, and the other way round."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

import msgpack
import numpy as np
import numpy.typing as npt

from burn import errors
from burn.dtype import DType
from burn.errors import BurnError, ExecutionError, GraphError
from burn.ir._forms import (
    INTEGER_BITS,
    MAX_GRAPHS,
    check_operation,
    check_tensor,
    is_id,
    restore_schemes,
    shown,
)
from burn.ir.check import check, check_bodies
from burn.ir.graph import (
    Constant,
    Donation,
    Draw,
    Drop,
    GraphIr,
    OperationIr,
    ScalarIr,
    Status,
    TensorIr,
)
from burn.ops import REGISTRY, Role
from burn.ops.arguments import as_python
from burn.quant_scheme import QuantScheme
from burn.tensor_data import TensorData

__all__ = ["Reader", "Writer", "default", "dtype_of", "extension"]

_MAX_DEPTH: Final = 32
"""Depth of lists and dicts in a message."""

_COMPLEX, _SCALAR, _INTEGER = 1, 2, 3
"""Codes of msgpack's extension types."""

_PARTS: Final = struct.Struct("<dd")
"""Of a complex number: real and imaginary."""

_FIELDS: Final = struct.Struct("<q?q")
"""Of a scalar: its number, whether it is a float, and what is added."""

_STATUSES: Final = tuple(Status)

_NUMBERED: Final = dict(enumerate(Status))

_DTYPES: Final = {dtype.name: dtype for dtype in DType.members()}

_PLAIN: Final = frozenset({type(None), bool, int, float, str})


def default(value: Any) -> Any:
    """What msgpack writes for an object that it does not know."""
    if value.__class__ is Status:
        return _STATUSES.index(value)
    if isinstance(value, DType):
        return value.name
    if value.__class__ is ScalarIr:
        fields = _FIELDS.pack(value.id, value.kind is float, value.plus)
        return msgpack.ExtType(_SCALAR, fields)
    return _number(value)


def _number(value: Any) -> Any:
    """A number of NumPy, or a complex one, as what msgpack can write."""
    number = as_python(value)
    if isinstance(number, complex):
        return msgpack.ExtType(_COMPLEX, _PARTS.pack(number.real, number.imag))
    if number is not value:
        return number
    if value.__class__ is int and value.bit_length() < INTEGER_BITS:  # msgpack has 64 bits
        octets = value.to_bytes(INTEGER_BITS // 8, "little", signed=True)
        return msgpack.ExtType(_INTEGER, octets)
    raise GraphError(
        f"bytes hold no {type(value).__name__}: {shown(value)}",
        hint="Use dtypes, strings, tuples, and numbers; integers of at most 256 bits",
    )


def extension(code: int, data: bytes) -> Any:
    """The object of an extension type."""
    if code == _COMPLEX:
        return complex(*_PARTS.unpack(data))
    if code == _SCALAR:
        id, is_float, plus = _FIELDS.unpack(data)
        return ScalarIr(id, float if is_float else int, plus)
    if code == _INTEGER and len(data) == INTEGER_BITS // 8:
        return int.from_bytes(data, "little", signed=True)
    raise GraphError(f"there is no extension type {code} of {len(data)} bytes")


_LIST, _TUPLE, _GRAPH, _OPERATION, _DROP, _TENSOR, _DATA, _ERROR = range(8)
"""What an array in a message is: its first item."""


class Writer:
    """Makes messages of what msgpack can write."""

    def __init__(self) -> None:
        self.tensors: list[tuple[str, tuple[int, ...]]] = []
        self.arrays: list[npt.NDArray[Any]] = []
        self.sources: dict[str, int] = {}

    def packed(self, message: Any, depth: int) -> Any:
        """A message as nested tuples."""
        kind = message.__class__
        if kind in _PLAIN:
            return message
        write = _WRITERS.get(kind)
        if write is not None:
            return write(self, message)
        if depth == _MAX_DEPTH:
            raise GraphError(f"a message is nested {_MAX_DEPTH} times", hint="Make it flat")
        if kind is list or kind is tuple:
            items = [self.packed(item, depth + 1) for item in message]
            return (_LIST if kind is list else _TUPLE, *items)
        if kind is dict:
            _check_keys(message)
            return {name: self.packed(value, depth + 1) for name, value in message.items()}
        if isinstance(message, BaseException):
            return _packed_error(message)
        if isinstance(message, GraphIr):  # a program, which is called
            return self._graph(message)
        return str(message) if isinstance(message, (str, DType)) else _number(message)

    def _tensor(self, tensor: TensorIr) -> Any:
        return _TENSOR, tensor

    def _drop(self, drop: Drop) -> Any:
        return _DROP, drop.id

    def _values(self, data: TensorData) -> Any:
        return _DATA, self._data(data)

    def _operation(self, operation: OperationIr, depth: int = 0) -> Any:
        if depth >= MAX_GRAPHS:
            raise GraphError(f"there are more than {MAX_GRAPHS} programs within each other")
        name, inputs, attributes, outputs, source = operation
        line = self.sources.setdefault(source, len(self.sources))
        values = {
            key: self._parts(value, depth + 1)
            if isinstance(value, GraphIr)
            else value.text
            if isinstance(value, QuantScheme)
            else value
            for key, value in attributes.items()
        }
        return _OPERATION, name, inputs, values, outputs, line

    def _data(self, data: TensorData) -> int:
        """The number of some values among those of the frame."""
        self.arrays.append(np.asarray(data.array, order="C").reshape(-1))
        self.tensors.append((data.dtype.name, data.shape))
        return len(self.arrays) - 1

    def _graph(self, graph: GraphIr) -> Any:
        check(graph)
        return self._parts(graph, 0)

    def _parts(self, graph: GraphIr, depth: int) -> Any:
        return (
            _GRAPH,
            graph.inputs,
            [(tensor, self._data(data)) for tensor, data in graph.constants],
            [
                operation.id if isinstance(operation, Drop) else self._operation(operation, depth)
                for operation in graph.operations
            ],
            graph.outputs,
            graph.draw,
            graph.donated,
            *((True,) if graph.relaxed else ()),
        )


_WRITERS: Final[dict[type, Callable[[Writer, Any], Any]]] = {
    OperationIr: Writer._operation,
    TensorIr: Writer._tensor,
    Drop: Writer._drop,
    TensorData: Writer._values,
    GraphIr: Writer._graph,
}


def _check_keys(message: dict[Any, Any]) -> None:
    if any(name.__class__ is not str for name in message):
        raise GraphError("the keys of a dict in a message are strings")


def _packed_error(error: BaseException) -> Any:
    if not isinstance(error, BurnError):
        error = ExecutionError(f"{type(error).__name__}: {error}")
    known = vars(errors)
    name = next(cls.__name__ for cls in type(error).__mro__ if known.get(cls.__name__) is cls)
    return _ERROR, name, str(error.rule), error.hint, error.operation


class Reader:
    """Makes messages of what msgpack has read."""

    def __init__(self, arrays: list[npt.NDArray[Any]], sources: tuple[str, ...]) -> None:
        self.arrays = arrays
        self.sources = sources
        if any(source.__class__ is not str for source in sources):
            raise GraphError("a line of the user's program is a string")

    def read(self, packed: Any) -> Any:
        """The message of what `Writer.packed` gives."""
        return self._read(packed, 0)

    def _read(self, packed: Any, depth: int) -> Any:
        kind = packed.__class__
        if kind in _PLAIN or kind is complex:
            return packed
        if depth > _MAX_DEPTH:
            raise GraphError(f"a message is nested more than {_MAX_DEPTH} times")
        if kind is dict:
            _check_keys(packed)
            return {name: self._read(value, depth + 1) for name, value in packed.items()}
        if kind is not tuple:
            raise GraphError(f"a message holds no {kind.__name__}")
        tag, *fields = packed
        if tag == _OPERATION:
            operation = self._operation(0, *fields)
            check_bodies(operation)
            return operation
        if tag == _LIST:
            return [self._read(field, depth + 1) for field in fields]
        if tag == _TUPLE:
            return tuple([self._read(field, depth + 1) for field in fields])
        return _READERS[tag](self, *fields)

    def _operation(
        self, depth: int, name: Any, inputs: Any, attributes: Any, outputs: Any, line: Any
    ) -> OperationIr:
        if attributes.__class__ is not dict:
            raise GraphError(f"the attributes of {shown(name)} are {shown(attributes)}")
        definition = REGISTRY.get(name)
        for key, value in attributes.items():
            known = definition and definition.attributes.get(key)
            if known and known.role is Role.DTYPE and value is not None:
                attributes[key] = dtype_of(value)
            elif known and known.role is Role.GRAPH:
                tag, *fields = value
                if tag != _GRAPH or depth >= MAX_GRAPHS:
                    raise GraphError(f"{key} of {shown(name)} is no program")
                attributes[key] = self._parts(depth + 1, *fields)
        restore_schemes(name, attributes)
        operation = OperationIr(
            name,
            tuple([_operand(source) if source.__class__ is tuple else source for source in inputs]),
            attributes,
            tuple([_tensor(output) for output in outputs]),
            self.sources[_index(line)],
        )
        try:
            check_operation(operation)
        except BurnError as error:
            error.operation = error.operation or f"operation {shown(name)}"
            raise
        return operation

    def _drop(self, id: Any) -> Drop:
        return Drop(_index(id))

    def _tensor(self, fields: Any) -> TensorIr:
        tensor = _tensor(fields)
        check_tensor(tensor)
        return tensor

    def _data(self, index: Any) -> TensorData:
        return TensorData(self.arrays[_index(index)])

    def _error(self, name: Any, rule: Any, hint: Any, operation: Any) -> BurnError:
        kind = vars(errors).get(name) if name in errors.__all__ else ExecutionError
        if not rule.__class__ is hint.__class__ is operation.__class__ is str:
            raise GraphError("the parts of an error are strings")
        error: BurnError = kind(rule, hint=hint)  # type: ignore[misc]  # __all__ has classes alone
        error.operation = operation
        return error

    def _graph(self, *fields: Any) -> GraphIr:
        graph = self._parts(0, *fields)
        check(graph)
        return graph

    def _parts(
        self,
        depth: int,
        inputs: Any,
        constants: Any,
        operations: Any,
        outputs: Any,
        draw: Any,
        donated: Any = (),
        relaxed: Any = False,
    ) -> GraphIr:
        if relaxed.__class__ is not bool:
            raise GraphError(f"{shown(relaxed)} does not say whether a program is relaxed")
        return GraphIr(
            tuple(
                [source if isinstance(source, ScalarIr) else _tensor(source) for source in inputs]
            ),
            tuple(
                [Constant(_tensor(constant), self._data(index)) for constant, index in constants]
            ),
            tuple([self._step(depth, operation) for operation in operations]),
            tuple([_tensor(output) for output in outputs]),
            None if draw is None else Draw(*draw),
            tuple([Donation(*item) for item in donated]),
            relaxed,
        )

    def _step(self, depth: int, packed: Any) -> OperationIr | Drop:
        if packed.__class__ is not tuple:
            return self._drop(packed)
        tag, *fields = packed
        if tag != _OPERATION:
            raise GraphError("a graph has operations and drops alone")
        return self._operation(depth, *fields)


_READERS: Final[dict[int, Callable[..., Any]]] = {
    _GRAPH: Reader._graph,
    _DROP: Reader._drop,
    _TENSOR: Reader._tensor,
    _DATA: Reader._data,
    _ERROR: Reader._error,
}


def _operand(packed: tuple[Any, ...]) -> Any:
    """A tensor, which has a number first, or a list of them."""
    if packed and packed[0].__class__ is not tuple:
        return _tensor(packed)
    return tuple([_tensor(item) for item in packed])


def _tensor(packed: Any) -> TensorIr:
    """A tensor, which is not checked yet."""
    id, shape, dtype, status = packed
    return TensorIr(id, shape, dtype_of(dtype), _NUMBERED[status])


def dtype_of(name: Any) -> DType:
    found = _DTYPES.get(name)
    if found is None:
        raise GraphError(f"there is no dtype {shown(name)}")
    return found


def _index(value: Any) -> int:
    if not is_id(value):
        raise GraphError(f"{shown(value)} is no index")
    return value  # type: ignore[no-any-return]  # see above
