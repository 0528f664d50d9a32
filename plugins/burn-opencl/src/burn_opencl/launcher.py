"""Launcher: kernels of one device, what they are told, and the tensors they make.

There are two kernels for most work, of one source: a general one, which is told the operation and
the dtypes and serves small tensors, and one for large tensors, in which they are constants. So a
program compiles few kernels, and what takes time is compiled for itself.
"""

from __future__ import annotations

import contextlib
import functools
import math
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from burn.backend.array import index_error
from burn.dtype import DType
from burn.errors import OutOfRangeError
from burn_opencl.bits import number_bits, word_bits
from burn_opencl.buffers import Buffer, Pool, row_major
from burn_opencl.composed import COMPOSED
from burn_opencl.expressions import CODES, EXPRESSIONS, NUMBERS, body, class_of
from burn_opencl.programs import Programs, cache_folder

if TYPE_CHECKING:
    from burn.aliases import Scalar, Shape
    from burn_opencl.runtime import Runtime

__all__ = ["LARGE", "Launcher", "Rows", "broadcast", "collapsed"]

LARGE: Final = 8192
"""From so many elements on, work gets a kernel of its own."""

_RANK: Final = 8
_NONE: Final[Mapping[str, str | int]] = {}
_SMALL_GROUP: Final = 64
_NUMBER: Final = 13
_FLOATS: Final = {_NUMBER, CODES["float32"]}
_BLOCK: Final = 8192
"""Elements that an item of a CPU takes, in operations on large tensors."""

_WORDS: Final = {1: CODES["uint8"], 2: CODES["uint16"], 4: CODES["uint32"], 8: CODES["uint64"]}
_INDEXING: Final = (
    "",
    *("gather", "select", "scatter_add", "select_add", "scatter", "select_assign"),
    *COMPOSED,
)
"""Ops whose kernels check indices, by the number that a kernel leaves in the note."""


class Rows(NamedTuple):
    """Dense elements as (outer, n, inner), of which the middle axis is meant."""

    x: Buffer
    outer: int
    n: int
    inner: int


class Launcher:
    """Kernels and memory of one device.

    Parameters
    ----------
    runtime : Runtime
        The device.
    owner : object
        What buffers name as their owner.
    """

    def __init__(self, runtime: Runtime, owner: Any) -> None:
        self.runtime = runtime
        self.owner = owner
        self.pool = Pool(runtime)
        self.programs = Programs(runtime, cache_folder())
        self.large = LARGE
        self.group = 1024 if runtime.is_cpu else 256
        """Items of a group in the kernels for large tensors."""
        self._note = self.pool.take(32)
        runtime.fill(self._note.handle, bytes(8), 32)
        self._unread = False
        self._calls = threading.local()

    # Tensors

    def empty(self, shape: Shape, dtype: DType) -> Buffer:
        """A tensor whose elements are not written yet."""
        memory = self.pool.take(math.prod(shape) * dtype.itemsize)
        return Buffer(memory, shape, dtype, row_major(shape), 0, self.owner)

    def dense(self, x: Buffer) -> Buffer:
        """The same elements in row-major order without gaps."""
        return x if x.is_dense else self.copied(x)

    def copied(self, x: Buffer) -> Buffer:
        """A dense copy."""
        result = self.empty(x.shape, x.dtype)
        size = x.size * x.dtype.itemsize
        if size and x.is_dense:
            start = x.offset * x.dtype.itemsize
            self.runtime.copy(result.memory.handle, x.memory.handle, start, size)
        else:
            self.write(result, x)
        return result

    def write(self, target: Buffer, values: Buffer) -> None:
        """Write values, which broadcast, to the places that a new tensor shows."""
        self.move("copy", [values], target)

    def rows_along(self, x: Buffer, axis: Sequence[int]) -> Rows:
        """Elements so that the given axes are one, copied where they lie otherwise."""
        shape = x.shape
        chosen = set(axis)
        if len(chosen) != len(axis) or not all(0 <= one < len(shape) for one in axis):
            raise IndexError(f"axes {tuple(axis)} of {len(shape)}")
        n = math.prod([shape[one] for one in chosen])
        long = [one for one, length in enumerate(shape) if length != 1]
        places = [place for place, one in enumerate(long) if one in chosen]
        if not places:
            return Rows(self.dense(x), x.size, 1, 1)
        if places[-1] - places[0] + 1 == len(places) and x.is_dense:
            outer = math.prod([shape[one] for one in long[: places[0]]])
            inner = math.prod([shape[one] for one in long[places[-1] + 1 :]])
            return Rows(x, outer, n, inner)
        kept = [one for one in range(len(shape)) if one not in chosen]
        moved = self.dense(x.permuted((*kept, *sorted(chosen))))
        return Rows(moved, math.prod([shape[one] for one in kept]), n, 1)

    # Elementwise

    def compute(
        self,
        name: str,
        operands: Sequence[Buffer | Scalar],
        dtype: DType,
        result: DType,
        numbers: DType | None = None,
    ) -> Buffer:
        """An expression of operands of one dtype, some of them numbers.

        Numbers are rounded to that dtype too, unless they are said to be of another.
        """
        computed = class_of(dtype)
        out = self.empty(
            broadcast([one.shape for one in operands if isinstance(one, Buffer)]), result
        )
        code = CODES[dtype.name]
        codes = [code if isinstance(one, Buffer) else _NUMBER for one in operands]
        rounding = numbers or dtype
        bits = [0 if isinstance(one, Buffer) else number_bits(one, rounding) for one in operands]
        self._run(name, computed, operands, codes, bits, out, CODES[result.name])
        return out

    def move(self, name: str, operands: Sequence[Buffer | Scalar], out: Buffer) -> None:
        """The same for operations that only move elements: their bits, whatever they mean.

        Bool operands beside others are conditions.
        """
        codes, bits = [], []
        for one in operands:
            if isinstance(one, Buffer):
                codes.append(_WORDS[one.dtype.itemsize])
                bits.append(0)
            else:
                codes.append(_NUMBER)
                bits.append(word_bits(one, out.dtype))
        self._run(name, "ulong", operands, codes, bits, out, _WORDS[out.dtype.itemsize])

    def _run(
        self,
        name: str,
        computed: str,
        operands: Sequence[Any],
        codes: Sequence[int],
        bits: Sequence[int],
        out: Buffer,
        out_code: int,
    ) -> None:
        shape = out.shape
        n = math.prod(shape)
        if not n:
            return
        none = (0,) * len(shape)
        tensors = [one if isinstance(one, Buffer) else None for one in operands]
        views = [None if one is None else one.expanded(shape) for one in tensors]
        strides = tuple([none if one is None else one.strides for one in views])
        lengths, steps = collapsed(shape, (*strides, out.strides))
        if not lengths:  # one element
            lengths, steps = (1,), ((0,),) * len(steps)
        if len(lengths) > _RANK:
            # More axes than a kernel is told of: one place of the first after the other.
            for place in range(shape[0]):
                parts = [
                    one if view is None else _part(view, place)
                    for one, view in zip(operands, views, strict=True)
                ]
                self._run(name, computed, parts, codes, bits, _part(out, place), out_code)
            return
        expression = EXPRESSIONS[name]
        count = len(operands)
        types = (*codes, out_code)
        starts = [0 if one is None else one.offset for one in views]
        definitions: dict[str, str | int] = {}
        group, items = _SMALL_GROUP, n
        if n >= self.large:
            definitions = {"OP": NUMBERS[name]}
            definitions |= {f"TYPE_{place}": code for place, code in enumerate(types)}
            if self.runtime.is_cpu:
                group, items = 1, _blocks(n, lengths[-1] if lengths else 1)
                definitions |= _steps(types, steps)
            else:
                group, items = self.group, n
                dense = _is_dense(types, steps)
                if (
                    dense
                    and set(types) <= _FLOATS
                    and not any(start % 4 for start in (*starts, out.offset))
                ):
                    items = -(-n // 4)
                    definitions |= _quads(count)
                elif dense:
                    definitions["DENSE"] = 1
        kernel = self._elementwise(computed, count, expression.group, group, **definitions)
        parameters = layout_of(count).pack(
            n,
            *_padded(lengths),
            *[step for row in steps for step in _padded(row)],
            *starts,
            out.offset,
            *bits,
            *types,
            len(lengths),
            NUMBERS[name],
        )
        own = out.memory.handle
        memories = [own if one is None else one.memory.handle for one in tensors]
        memories.append(own)
        size = (-(-items // group) * group,)
        self.runtime.launch(kernel, parameters, memories, size, (group,))

    @functools.cache  # noqa: B019 — a launcher lives as long as the process
    def _elementwise(
        self, computed: str, count: int, group: str, size: int, **definitions: str | int
    ) -> Any:
        """The kernel of a group of expressions."""
        places = range(count)
        definitions |= {
            "OPERANDS": count,
            "GROUP_SIZE": size,
            "MEMORIES": ", ".join([f"GLOBAL const void* restrict p{place}" for place in places]),
            "VALUES": ", ".join([f"VALUE({place})" for place in places]),
        }
        return self.kernel(
            "elementwise", "elementwise.cl", computed, definitions, body(computed, count, group)
        )

    # Other kernels

    def kernel(
        self,
        name: str,
        file: str,
        computed: str,
        definitions: Mapping[str, str | int] = _NONE,
        body: str = "",
    ) -> Any:
        """A kernel of a file, which computes in a type."""
        macros = class_macros(computed) | {f"HAS_{name}": 1}
        return self.programs.kernel(name, file, {**macros, **definitions}, body)

    def run(
        self,
        kernel: Any,
        items: int,
        numbers: Sequence[int],
        memories: Sequence[Any],
        group: int = _SMALL_GROUP,
    ) -> None:
        """Launch a kernel with an item for each of so many, told numbers of 64 bits."""
        if items:
            size = -(-items // group) * group
            parameters = struct.pack(f"={len(numbers)}q", *numbers)
            handles = [getattr(one, "handle", one) for one in memories]
            self.runtime.launch(kernel, parameters, handles, (size,), (group,))

    def scratch(self, size: int) -> Any:
        """Memory for a while: the caller holds it until the kernels that use it are queued."""
        return self.pool.take(max(size, 8))

    # Indices out of range

    def note(self, op: str) -> tuple[Any, int]:
        """Where a kernel leaves a note of an index that is out of range, and the op's number."""
        self._unread = True
        return self._note, _INDEXING.index(getattr(self._calls, "op", op))

    @contextlib.contextmanager
    def called(self, op: str) -> Iterator[None]:
        """Context of an op that is made of others: a note names this one."""
        if hasattr(self._calls, "op"):
            yield
            return
        self._calls.op = op
        try:
            yield
        finally:
            del self._calls.op

    def raise_noted(self) -> None:
        """Raise what a kernel left, and forget it.

        Raises
        ------
        OutOfRangeError
            If there is something.
        """
        if not self._unread:
            return
        self._unread = False
        values = np.zeros(4, np.int64)
        self.runtime.read(values, self._note.handle, 0)
        call, index, length, _ = map(int, values)
        if call:
            self.runtime.fill(self._note.handle, bytes(8), 32)
            error = index_error(index, length)
            raise OutOfRangeError(error.rule, hint=error.hint, operation=f"{_INDEXING[call]}(...)")


def class_macros(computed: str) -> dict[str, str | int]:
    """What the kernel files ask of the type that is computed in."""
    return {
        "C": computed,
        "IS_FLOATING": int(computed in ("float", "double")),
        "IS_DOUBLE": int(computed == "double"),
        "IS_SIGNED": int(computed != "ulong"),
    }


@functools.lru_cache(maxsize=4096)
def _blocks(n: int, inner: int) -> int:
    """Items of the form that goes along rows: each takes a part of a row, or several rows."""
    rows = n // inner
    return rows * -(-inner // _BLOCK) if inner >= _BLOCK else -(-rows // (_BLOCK // inner))


@functools.lru_cache(maxsize=4096)
def _steps(types: tuple[int, ...], strides: tuple[tuple[int, ...], ...]) -> dict[str, str | int]:
    """From one element of a row to the next: a constant where it is 0 or 1."""
    steps: dict[str, str | int] = {"BLOCK": _BLOCK}
    for place, (code, row) in enumerate(zip(types, strides, strict=True)):
        step = 0 if code == _NUMBER or not row else row[-1]
        steps[f"STEP_{place}"] = step if step in (0, 1) else f"steps[{place}]"
    return steps


@functools.lru_cache(maxsize=4096)
def _is_dense(types: tuple[int, ...], strides: tuple[tuple[int, ...], ...]) -> bool:
    """Whether all tensors lie alike, without gaps."""
    return all(
        code == _NUMBER or row in ((1,), ()) for code, row in zip(types, strides, strict=True)
    )


@functools.cache
def _quads(count: int) -> dict[str, str | int]:
    """Four elements of each operand, and the operation on one of the four."""
    places = range(count)
    return {
        "QUADS": " ".join([f"const float4 w{place} = QUAD({place});" for place in places]),
        "PART(c)": f"applied(OP, {', '.join([f'w{place}.c' for place in places])})",
    }


@functools.cache
def layout_of(count: int) -> struct.Struct:
    """The structure ``Layout`` of ``elementwise.cl`` for a number of operands."""
    longs = 1 + _RANK + (count + 1) * (_RANK + 1)
    integers = count + 3
    padding = "4x" if integers % 2 else ""
    return struct.Struct(f"={longs}q{count}Q{integers}i{padding}")


@functools.lru_cache(maxsize=4096)
def _padded(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return numbers + (0,) * (_RANK - len(numbers))


def _part(x: Buffer, place: int) -> Buffer:
    """What lies at a place of the first axis."""
    return x.viewed(x.shape[1:], x.strides[1:], x.offset + place * x.strides[0])


@functools.lru_cache(maxsize=8192)
def collapsed(
    shape: Shape, strides: tuple[tuple[int, ...], ...]
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Lengths and strides with axes joined where in all tensors one goes on as the next ends."""
    lengths: list[int] = []
    rows: list[list[int]] = [[] for _ in strides]
    for axis, length in enumerate(shape):
        if length == 1:
            continue
        own = [row[axis] for row in strides]
        joins = lengths and all(
            row[-1] == step * length for row, step in zip(rows, own, strict=True)
        )
        if joins:
            lengths[-1] *= length
            for row, step in zip(rows, own, strict=True):
                row[-1] = step
        else:
            lengths.append(length)
            for row, step in zip(rows, own, strict=True):
                row.append(step)
    return tuple(lengths), tuple([tuple(row) for row in rows])


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The shape that tensors of these shapes have together."""
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    return tuple(np.broadcast_shapes(*shapes))
