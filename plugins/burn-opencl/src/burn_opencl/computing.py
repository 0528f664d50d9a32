"""Elementwise operations on a device: which kernel, told what, and whether now or later."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from burn.dtype import DType, bool_
from burn_opencl.bits import number_bits, signed, word_bits
from burn_opencl.buffers import Buffer, Layout, expanded_strides, row_major
from burn_opencl.expressions import CODES, EXPRESSIONS, NUMBERS, body, class_of
from burn_opencl.forms import (
    NUMBER,
    RANK,
    Form,
    broadcast,
    collapsed,
    cpu_form,
    gpu_form,
    layout_of,
)
from burn_opencl.late import LateMemory, Producer
from burn_opencl.programs import text_of

if TYPE_CHECKING:
    from burn.aliases import Scalar, Shape
    from burn_opencl.runtime import Runtime

__all__ = ["LATE", "Computing"]

LATE: Final = 1 << 17
"""From so many elements on, results of arithmetic are computed late."""

_SMALL_GROUP: Final = 64
_WORDS: Final = {1: CODES["uint8"], 2: CODES["uint16"], 4: CODES["uint32"], 8: CODES["uint64"]}


class Computing:
    """What a launcher does place by place."""

    runtime: Runtime
    large: int
    empty: Callable[[Shape, DType], Buffer]
    kernel: Any

    def __init__(self) -> None:
        self.late = LATE
        self._late: LateMemory | None = None

    def apply(self, name: str, operands: Sequence[Buffer]) -> Buffer | None:
        """An expression of tensors; None where that takes more than one launch, now.

        What is launched depends on how the operands lie alone, and is remembered: of a small
        operation that takes less time than to find it once more.
        """
        ready = self._ready(name, self.large, self.late, *[one.layout for one in operands])
        if ready is None:
            return None
        plan, shape, dtype = ready
        self.settle()
        out = self.empty(shape, dtype)
        memories = [one.memory.handle for one in operands]
        memories.append(out.memory.handle)
        self.runtime.launch(plan.kernel, plan.parameters, memories, plan.size, plan.group)
        return out

    @functools.lru_cache(maxsize=4096)  # noqa: B019 — a launcher lives as long as the process
    def _ready(
        self, name: str, large: int, late: int, *layouts: Layout
    ) -> tuple[_Plan, Shape, DType] | None:
        """The launch, and the shape and dtype of the result."""
        expression, dtype = EXPRESSIONS[name], layouts[0].dtype
        if any(one.dtype is not dtype for one in layouts) or expression.form(dtype.kind) is None:
            return None
        shape = broadcast([one.shape for one in layouts])
        size = math.prod(shape)
        result = bool_ if expression.mask else dtype
        if not size or (result is dtype and dtype.itemsize >= 4 and size >= late):
            return None
        strides = [expanded_strides(one.shape, one.strides, shape) for one in layouts]
        plan = self._plan(
            name,
            class_of(dtype),
            (*[CODES[dtype.name]] * len(layouts), CODES[result.name]),
            (0,) * len(layouts),
            shape,
            (*strides, row_major(shape)),
            (*[one.offset for one in layouts], 0),
            is_large=size >= large,
        )
        return None if plan is None else (plan, shape, result)

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
        codes = [code if isinstance(one, Buffer) else NUMBER for one in operands]
        rounding = numbers or dtype
        bits = [0 if isinstance(one, Buffer) else number_bits(one, rounding) for one in operands]
        arguments = (name, computed, operands, codes, bits, out, CODES[result.name])
        if result is dtype and dtype.itemsize >= 4 and out.size >= self.late:
            self._run_late(*arguments)
        else:
            self._run(*arguments)
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
                codes.append(NUMBER)
                bits.append(word_bits(one, out.dtype))
        self._run(name, "ulong", operands, codes, bits, out, _WORDS[out.dtype.itemsize])

    def _run_late(
        self,
        name: str,
        computed: str,
        operands: Sequence[Any],
        codes: Sequence[int],
        bits: Sequence[int],
        out: Buffer,
        out_code: int,
    ) -> None:
        """The same, later, where it is arithmetic on one tensor."""
        expression = EXPRESSIONS[name]
        tensors = [one for one in operands if isinstance(one, Buffer)]
        x = tensors[0]
        alike = x.is_dense and all(one is x for one in tensors)
        if expression.group != "arithmetic" or computed not in ("float", "double") or not alike:
            self._run(name, computed, operands, codes, bits, out, out_code)
            return
        self.settle()
        takes = [
            "v" if isinstance(one, Buffer) else f"OF_NUMBER((ulong)parameters.numbers[{place}])"
            for place, one in enumerate(operands)
        ]
        producer = Producer(
            x,
            {"PRODUCED(v)": f"applied({NUMBERS[name]}, {', '.join(takes)})"},
            body(computed, len(operands), expression.group),
            tuple([signed(one) for one in bits]),
        )
        target = out.viewed(out.shape, out.strides)
        write = functools.partial(
            self._run, name, computed, operands, codes, bits, target, out_code
        )
        out.memory = self._late = LateMemory(out.memory, write, producer, self.runtime.lock)

    def settle(self) -> None:
        """Compute what was left for later."""
        late, self._late = self._late, None
        if late is not None:
            late.settle()

    def producer_of(self, x: Buffer) -> Producer | None:
        """How to compute the elements of a dense tensor that was left for later, on the way."""
        late = self._late
        if late is None or x.memory is not late or x.size != late.size or not x.is_dense:
            return None
        self._late = None
        return late.producer

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
        if 0 in shape:
            return
        self.settle()
        none = (0,) * len(shape)
        views = [one.expanded(shape) if isinstance(one, Buffer) else None for one in operands]
        strides = tuple([none if one is None else one.strides for one in views])
        starts = tuple([0 if one is None else one.offset for one in views])
        plan = self._plan(
            name,
            computed,
            (*codes, out_code),
            tuple(bits),
            shape,
            (*strides, out.strides),
            (*starts, out.offset),
            is_large=math.prod(shape) >= self.large,
        )
        if plan is None:
            # More axes than a kernel is told of: one place of the first after the other.
            for place in range(shape[0]):
                parts = [
                    one if view is None else _part(view, place)
                    for one, view in zip(operands, views, strict=True)
                ]
                self._run(name, computed, parts, codes, bits, _part(out, place), out_code)
            return
        own = out.memory.handle
        memories = [own if one is None else one.memory.handle for one in views]
        memories.append(own)
        self.runtime.launch(plan.kernel, plan.parameters, memories, plan.size, plan.group)

    @functools.lru_cache(maxsize=4096)  # noqa: B019 — a launcher lives as long as the process
    def _plan(
        self,
        name: str,
        computed: str,
        types: tuple[int, ...],
        bits: tuple[int, ...],
        shape: Shape,
        strides: tuple[tuple[int, ...], ...],
        starts: tuple[int, ...],
        *,
        is_large: bool,
    ) -> _Plan | None:
        """What to launch for tensors that lie so; None for too many axes."""
        n = math.prod(shape)
        lengths, steps = collapsed(shape, strides)
        if not lengths:  # one element
            lengths, steps = (1,), ((0,),) * len(steps)
        if len(lengths) > RANK:
            return None
        form = Form(n, _SMALL_GROUP, {}, lengths, steps)
        definitions: dict[str, str | int] = {}
        if is_large:
            if self.runtime.is_cpu:
                form = cpu_form(types, lengths, steps)
            else:
                form = gpu_form(types, lengths, steps, starts)
            definitions = {"OP": NUMBERS[name], **form.definitions}
        count, group = len(bits), form.group
        kernel = self._elementwise(computed, count, EXPRESSIONS[name].group, group, **definitions)
        parameters = layout_of(count).pack(
            n,
            *_padded(form.lengths),
            *[step for row in form.strides for step in _padded(row)],
            *starts,
            *bits,
            *types,
            len(form.lengths),
            NUMBERS[name],
        )
        return _Plan(kernel, parameters, (-(-form.items // group) * group,), (group,))

    @functools.cache  # noqa: B019 — a launcher lives as long as the process
    def _elementwise(
        self, computed: str, count: int, group: str, size: int, **definitions: str | int
    ) -> Any:
        """The kernel of a group of expressions."""
        places = range(count)
        macros: dict[str, str | int] = {
            "OPERANDS": count,
            "GROUP_SIZE": size,
            "MEMORIES": ", ".join([f"GLOBAL const void* restrict p{place}" for place in places]),
            "VALUES": ", ".join([f"VALUE({place})" for place in places]),
        }
        text = body(computed, count, group)
        if "FOURS" in definitions:
            text += text_of("quads.cl")
        return self.kernel("elementwise", "elementwise.cl", computed, macros | definitions, text)


class _Plan(NamedTuple):
    """A launch, but for the memories."""

    kernel: Any
    parameters: bytes
    size: tuple[int, ...]
    group: tuple[int, ...]


@functools.lru_cache(maxsize=4096)
def _padded(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return numbers + (0,) * (RANK - len(numbers))


def _part(x: Buffer, place: int) -> Buffer:
    """What lies at a place of the first axis."""
    return x.viewed(x.shape[1:], x.strides[1:], x.offset + place * x.strides[0])
