"""Bytes of a graph, and of the messages that a router and a runner exchange.

A frame is ``BURN``, the version (2 bytes), the length of the header (4 bytes), the header, and the
values of each tensor, which begin at a multiple of 64 bytes. All numbers are little-endian. The
header is a message of msgpack with three parts: the tensors whose values follow, the lines of the
user's program that operations name, and the message. In the message an array begins with a
number that says what it is.
"""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Callable
from typing import Any, Final

import msgpack
import numpy as np
import numpy.typing as npt

from burn import errors
from burn.dtype import DType
from burn.errors import BurnError, ExecutionError, GraphError
from burn.ir._forms import INTEGER_BITS, MAX_AXES, check_operation, check_tensor, is_id, shown
from burn.ir.check import check
from burn.ir.graph import (
    Constant,
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
from burn.tensor_data import TensorData

__all__ = ["VERSION", "decode", "decode_graph", "encode"]

VERSION: Final = 1
"""Version of the format. Bytes of another version are refused."""

_MAGIC: Final = b"BURN"

_HEAD: Final = struct.Struct("<4sHI")

_ALIGNMENT: Final = 64

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


def encode(message: Any) -> bytes:
    """The bytes of a message.

    Parameters
    ----------
    message : object
        A GraphIr, OperationIr, Drop, TensorIr or TensorData, an exception, None, a boolean, a
        number, a string, or a list, a tuple, or a dict by strings of such objects.

    Returns
    -------
    bytes
        What `decode` reads. An exception that is none of `burn.errors` becomes the nearest of its
        bases there, or an ExecutionError with its text.

    Raises
    ------
    GraphError
        If the message holds something else.

    Examples
    --------
    >>> decode(encode({"count": 3, "values": [1.5, True, None]}))
    {'count': 3, 'values': [1.5, True, None]}
    """
    writer = _Writer()
    try:
        packed = writer.packed(message, 0)
        header = msgpack.packb(
            (writer.tensors, tuple(writer.sources), packed),
            default=_default,
            unicode_errors="surrogatepass",  # names of files have surrogates
        )
        head = _HEAD.pack(_MAGIC, VERSION, len(header))
    except BurnError:
        raise
    except (OverflowError, TypeError, ValueError, struct.error) as error:
        raise GraphError(
            f"bytes cannot hold this: {error}",
            hint="Use dtypes, strings, and numbers; integers of at most 256 bits",
        ) from None
    parts: list[Any] = [head, header]
    end = len(head) + len(header)
    for array in writer.arrays:
        start = _aligned(end)
        parts += [bytes(start - end), array]
        end = start + array.nbytes
    return b"".join(parts)


def decode(data: bytes) -> Any:
    """The message of some bytes.

    Parameters
    ----------
    data : bytes
        What `encode` gives.

    Returns
    -------
    object
        The message. Arrays share the memory of `data`, read-only. Operations are of known ops, with
        operands and attributes that their signatures allow; a graph has been checked.

    Raises
    ------
    GraphError
        If they are the bytes of no message, or of another version; nothing is executed.
    """
    if data.__class__ is not bytes:  # the memory of others may change
        try:
            data = bytes(memoryview(data))
        except TypeError:
            raise GraphError(f"a message is bytes, not {type(data).__name__}") from None
    if len(data) < _HEAD.size:
        raise GraphError(f"{len(data)} bytes are no message", hint="A message has 10 or more")
    magic, version, length = _HEAD.unpack_from(data)
    if magic != _MAGIC:
        raise GraphError(f"the bytes begin with {magic!r}, and a message with {_MAGIC!r}")
    if version != VERSION:
        raise GraphError(
            f"the bytes are of version {version} of the format, and this is version {VERSION}",
            hint="Use the same version of burn on both sides",
        )
    start = _HEAD.size
    if length > len(data) - start:
        raise GraphError(
            f"the header has {length} bytes from byte {start} on, of which {len(data) - start} "
            f"are there"
        )
    try:
        tensors, sources, message = _unpacked(data[start : start + length])
        return _Reader(_arrays(data, start + length, tensors), sources).read(message)
    except BurnError as error:
        if error.__class__ is GraphError:
            raise
        raise GraphError(error.rule, hint=error.hint, operation=error.operation) from None
    except (LookupError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise GraphError(f"the header is malformed: {error!r:.200}") from None


def decode_graph(data: bytes) -> GraphIr:
    """The program of some bytes.

    Parameters
    ----------
    data : bytes
        What `encode` gives for a graph.

    Returns
    -------
    GraphIr
        The program, which has been checked.

    Raises
    ------
    GraphError
        If they are the bytes of no correct program; nothing is executed.
    """
    graph = decode(data)
    if not isinstance(graph, GraphIr):
        raise GraphError(f"the bytes are those of no program, but of a {type(graph).__name__}")
    return graph


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT


def _default(value: Any) -> Any:
    """What msgpack writes for an object that it does not know."""
    if value.__class__ is Status:
        return _STATUSES.index(value)
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


def _extension(code: int, data: bytes) -> Any:
    """The object of an extension type."""
    if code == _COMPLEX:
        return complex(*_PARTS.unpack(data))
    if code == _SCALAR:
        id, is_float, plus = _FIELDS.unpack(data)
        return ScalarIr(id, float if is_float else int, plus)
    if code == _INTEGER and len(data) == INTEGER_BITS // 8:
        return int.from_bytes(data, "little", signed=True)
    raise GraphError(f"there is no extension type {code} of {len(data)} bytes")


def _unpacked(header: bytes) -> Any:
    # msgpack allocates the items of an array when it reads their number. Going over them first
    # finds out whether they are there; it allocates nothing.
    scan = msgpack.Unpacker(max_buffer_size=len(header))
    scan.feed(header)
    try:
        scan.skip()
        return msgpack.unpackb(
            header, use_list=False, ext_hook=_extension, unicode_errors="surrogatepass"
        )
    except BurnError:
        raise
    except (msgpack.UnpackException, struct.error, ValueError) as error:
        at = _HEAD.size + scan.tell()
        raise GraphError(f"the header is malformed before byte {at}: {error!r:.200}") from None


def _arrays(data: bytes, end: int, tensors: Any) -> list[npt.NDArray[Any]]:
    """The values that follow a header."""
    arrays = []
    for name, shape in tensors:
        dtype = _dtype(name)
        if len(shape) > MAX_AXES or not all(map(is_id, shape)):
            raise GraphError(f"{shown(shape)} is no shape of values")
        start = _aligned(end)
        elements = math.prod(shape)
        end = start + elements * dtype.itemsize
        if end > len(data):
            raise GraphError(
                f"the values of {name}{list(shape)} end at byte {end}, and the bytes at {len(data)}"
            )
        flat = np.frombuffer(data, dtype.numpy, elements, start if elements else 0)
        if dtype.is_bool and elements and flat.view(np.uint8).max() > 1:
            raise GraphError(f"the values from byte {start} on are no booleans: not only 0 and 1")
        arrays.append(_native(flat).reshape(shape))
    if end != len(data):
        raise GraphError(f"the message ends at byte {end}, and the bytes at {len(data)}")
    return arrays


def _native(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array of little-endian numbers in the order of this machine, or the other way round."""
    return array if sys.byteorder == "little" else array.byteswap()


_LIST, _TUPLE, _GRAPH, _OPERATION, _DROP, _TENSOR, _DATA, _ERROR = range(8)
"""What an array in a message is: its first item."""


class _Writer:
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
            items = [self.packed(one, depth + 1) for one in message]
            return (_LIST if kind is list else _TUPLE, *items)
        if kind is dict:
            _check_keys(message)
            return {name: self.packed(one, depth + 1) for name, one in message.items()}
        if isinstance(message, BaseException):
            return _packed_error(message)
        if isinstance(message, GraphIr):  # a program, which is called
            return self._graph(message)
        return str(message) if isinstance(message, str) else _number(message)

    def _tensor(self, tensor: TensorIr) -> Any:
        return _TENSOR, tensor

    def _drop(self, drop: Drop) -> Any:
        return _DROP, drop.id

    def _values(self, data: TensorData) -> Any:
        return _DATA, self._data(data)

    def _operation(self, operation: OperationIr) -> Any:
        name, inputs, attributes, outputs, source = operation
        line = self.sources.setdefault(source, len(self.sources))
        return _OPERATION, name, inputs, dict(attributes), outputs, line

    def _data(self, data: TensorData) -> int:
        """The number of some values among those of the frame."""
        flat = _native(np.asarray(data.array, order="C").reshape(-1))
        self.arrays.append(flat.view(np.uint8))
        self.tensors.append((data.dtype.name, data.shape))
        return len(self.arrays) - 1

    def _graph(self, graph: GraphIr) -> Any:
        check(graph)
        return (
            _GRAPH,
            graph.inputs,
            [(tensor, self._data(data)) for tensor, data in graph.constants],
            [one.id if isinstance(one, Drop) else self._operation(one) for one in graph.operations],
            graph.outputs,
            graph.draw,
        )


_WRITERS: Final[dict[type, Callable[[_Writer, Any], Any]]] = {
    OperationIr: _Writer._operation,
    TensorIr: _Writer._tensor,
    Drop: _Writer._drop,
    TensorData: _Writer._values,
    GraphIr: _Writer._graph,
}


def _check_keys(message: dict[Any, Any]) -> None:
    if any(name.__class__ is not str for name in message):
        raise GraphError("the keys of a dict in a message are strings")


def _packed_error(error: BaseException) -> Any:
    if not isinstance(error, BurnError):
        error = ExecutionError(f"{type(error).__name__}: {error}")
    known = vars(errors)
    name = next(one.__name__ for one in type(error).__mro__ if known.get(one.__name__) is one)
    return _ERROR, name, str(error.rule), error.hint, error.operation


class _Reader:
    """Makes messages of what msgpack has read."""

    def __init__(self, arrays: list[npt.NDArray[Any]], sources: tuple[str, ...]) -> None:
        self.arrays = arrays
        self.sources = sources
        if any(one.__class__ is not str for one in sources):
            raise GraphError("a line of the user's program is a string")

    def read(self, packed: Any) -> Any:
        """The message of what `_Writer.packed` gives."""
        return self._read(packed, 0)

    def _read(self, packed: Any, depth: int) -> Any:
        kind = packed.__class__
        if kind in _PLAIN or kind is complex:
            return packed
        if depth > _MAX_DEPTH:
            raise GraphError(f"a message is nested more than {_MAX_DEPTH} times")
        if kind is dict:
            _check_keys(packed)
            return {name: self._read(one, depth + 1) for name, one in packed.items()}
        if kind is not tuple:
            raise GraphError(f"a message holds no {kind.__name__}")
        tag, *fields = packed
        if tag == _OPERATION:
            return self._operation(*fields)
        if tag == _LIST:
            return [self._read(one, depth + 1) for one in fields]
        if tag == _TUPLE:
            return tuple([self._read(one, depth + 1) for one in fields])
        return _READERS[tag](self, *fields)

    def _operation(self, name: Any, inputs: Any, attributes: Any, outputs: Any, line: Any) -> Any:
        if attributes.__class__ is not dict:
            raise GraphError(f"the attributes of {shown(name)} are {shown(attributes)}")
        definition = REGISTRY.get(name)
        for key, value in attributes.items():
            known = definition and definition.attributes.get(key)
            if known and known.role is Role.DTYPE and value is not None:
                attributes[key] = _dtype(value)
        operation = OperationIr(
            name,
            tuple([_operand(one) if one.__class__ is tuple else one for one in inputs]),
            attributes,
            tuple([_tensor(one) for one in outputs]),
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
        return kind(rule, hint=hint, operation=operation)  # type: ignore[misc]  # __all__ has classes alone

    def _graph(
        self, inputs: Any, constants: Any, operations: Any, outputs: Any, draw: Any
    ) -> GraphIr:
        graph = GraphIr(
            tuple([one if isinstance(one, ScalarIr) else _tensor(one) for one in inputs]),
            tuple([Constant(_tensor(one), self._data(index)) for one, index in constants]),
            tuple([self._step(one) for one in operations]),
            tuple([_tensor(one) for one in outputs]),
            None if draw is None else Draw(*draw),
        )
        check(graph)
        return graph

    def _step(self, packed: Any) -> OperationIr | Drop:
        if packed.__class__ is not tuple:
            return self._drop(packed)
        tag, *fields = packed
        if tag != _OPERATION:
            raise GraphError("a graph has operations and drops alone")
        return self._operation(*fields)  # type: ignore[no-any-return]  # it makes one


_READERS: Final[dict[int, Callable[..., Any]]] = {
    _GRAPH: _Reader._graph,
    _DROP: _Reader._drop,
    _TENSOR: _Reader._tensor,
    _DATA: _Reader._data,
    _ERROR: _Reader._error,
}


def _operand(packed: tuple[Any, ...]) -> Any:
    """A tensor, which has a number first, or a list of them."""
    if packed and packed[0].__class__ is not tuple:
        return _tensor(packed)
    return tuple([_tensor(one) for one in packed])


def _tensor(packed: Any) -> TensorIr:
    """A tensor, which is not checked yet."""
    id, shape, dtype, status = packed
    return TensorIr(id, shape, _dtype(dtype), _NUMBERED[status])


def _dtype(name: Any) -> DType:
    found = _DTYPES.get(name)
    if found is None:
        raise GraphError(f"there is no dtype {shown(name)}")
    return found


def _index(value: Any) -> int:
    if not is_id(value):
        raise GraphError(f"{shown(value)} is no index")
    return value  # type: ignore[no-any-return]  # see above
