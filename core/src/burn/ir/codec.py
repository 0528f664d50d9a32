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
from typing import Any, Final

import msgpack
import numpy as np
import numpy.typing as npt

from burn.errors import BurnError, GraphError
from burn.ir._forms import MAX_AXES, is_id, shown
from burn.ir._messages import Reader, Writer, default, dtype_of, extension
from burn.ir.graph import GraphIr

__all__ = ["VERSION", "decode", "decode_graph", "encode"]

VERSION: Final = 1
"""Version of the format. Bytes of another version are refused."""

_MAGIC: Final = b"BURN"

_HEAD: Final = struct.Struct("<4sHI")

_ALIGNMENT: Final = 64


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
    writer = Writer()
    try:
        packed = writer.packed(message, 0)
        header = msgpack.packb(
            (writer.tensors, tuple(writer.sources), packed),
            default=default,
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
        parts += [bytes(start - end), _native(array).view(np.uint8)]
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
        return Reader(_arrays(data, start + length, tensors), sources).read(message)
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


def _unpacked(header: bytes) -> Any:
    # msgpack allocates the items of an array when it reads their number. Going over them first
    # finds out whether they are there; it allocates nothing.
    scan = msgpack.Unpacker(max_buffer_size=len(header))
    scan.feed(header)
    try:
        scan.skip()
        return msgpack.unpackb(
            header, use_list=False, ext_hook=extension, unicode_errors="surrogatepass"
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
        dtype = dtype_of(name)
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
