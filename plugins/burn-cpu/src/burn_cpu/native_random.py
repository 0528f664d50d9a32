"""Philox4x32-10 as native code: eight counters at a time, on all threads."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from burn.plugin_api import PHILOX_KEY_STEPS, PHILOX_MULTIPLIERS, PHILOX_ROUNDS
from burn_cpu.base import Array
from burn_cpu.llvm_text import Instructions, Value
from burn_cpu.native import ATTRIBUTES, WRITEABLE, Machine

__all__ = ["philox"]

_LANES: Final = 8
_WORD: Final = 0xFFFFFFFF
_MIN_PARALLEL: Final = 512
"""Vectors of counters from which they are divided among threads."""

_PARTS: Final = 4
"""Parts for each thread."""


def philox(machine: Machine, seed: int, offset: int, blocks: int) -> Array:
    """The words of `blocks` counters from `offset` on, as uint32."""
    vectors = -(-blocks // _LANES)
    words = np.empty((vectors * _LANES, 4), np.uint32)
    mask = (1 << 64) - 1
    run = _run(machine, vectors)
    run(words, seed & _WORD, seed >> 32 & _WORD, offset & mask, offset >> 64 & mask)
    return words.reshape(-1)[: 4 * blocks]


@functools.lru_cache(maxsize=256)
def _run(machine: Machine, vectors: int) -> Callable[..., int]:
    """Writes the words of so many vectors; see ``kernels/runtime.ll`` for what it consists of."""
    _, function = _function(machine)
    is_parallel = vectors >= _MIN_PARALLEL
    words = [1, 4, int(is_parallel), 1, 5, WRITEABLE, 2, vectors * _LANES, 4, 0, 0, 0, 0]
    words += [function, vectors, _PARTS * is_parallel, 5]
    words += [number for argument in range(5) for number in (argument, 0)]
    run = machine.entry(np.array(words, np.int64))
    return machine.parallel(run, uses_blas=False) if is_parallel else run


@functools.cache
def _function(machine: Machine) -> tuple[Any, int]:
    engine, (address,) = machine.loaded([machine.object_code(_text())], ["burn_philox"])
    return engine, address


class _Vectors(Instructions):
    """Instructions of vectors of 64-bit integers."""

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def op(self, instruction: str, a: Value, b: Value | int) -> Value:
        other = b if isinstance(b, Value) else self.constant(b, "i64", _LANES)
        return self.binary(instruction, a, other)

    def shuffled(self, a: Value, b: Value, lanes: Sequence[int]) -> Value:
        mask = ", ".join([f"i32 {lane}" for lane in lanes])
        text = f"shufflevector {a.typed}, {b.typed}, <{len(lanes)} x i32> <{mask}>"
        return self.emit(text, a.type, len(lanes))


def _text() -> str:
    """``void burn_philox(ptr table, i64 start, i64 stop)``: table of words, key, low and high."""
    loads = []
    for number, name in enumerate(("key0", "key1", "low", "high"), 1):
        loads.append(f"  %p{number} = getelementptr i64, ptr %table, i64 {number}")
        loads.append(f"  %{name} = load i64, ptr %p{number}")
    w = _Vectors()

    def splat(name: str) -> Value:
        return w.splat(Value(name, "i64"), _LANES)

    steps = ", ".join([f"i64 {lane}" for lane in range(_LANES)])
    index = w.op("add", splat("%first"), Value(f"<{steps}>", "i64", _LANES))
    low = splat("%low")
    counter = w.op("add", index, low)
    carry = w.convert("zext", w.compare("icmp ult", counter, low), "i64")
    high = w.op("add", splat("%high"), carry)
    c0, c1 = w.op("and", counter, _WORD), w.op("lshr", counter, 32)
    c2, c3 = w.op("and", high, _WORD), w.op("lshr", high, 32)
    keys = [splat("%key0"), splat("%key1")]
    for _ in range(PHILOX_ROUNDS):
        product0 = w.op("mul", c0, PHILOX_MULTIPLIERS[0])
        product1 = w.op("mul", c2, PHILOX_MULTIPLIERS[1])
        c0 = w.op("xor", w.op("xor", w.op("lshr", product1, 32), c1), keys[0])
        c2 = w.op("xor", w.op("xor", w.op("lshr", product0, 32), c3), keys[1])
        c1, c3 = w.op("and", product1, _WORD), w.op("and", product0, _WORD)
        keys = [
            w.op("and", w.op("add", key, step), _WORD)
            for key, step in zip(keys, PHILOX_KEY_STEPS, strict=True)
        ]
    n0, n1, n2, n3 = [w.convert("trunc", word, "i32") for word in (c0, c1, c2, c3)]
    both = range(2 * _LANES)
    lanes = [lane + _LANES * word for lane in range(_LANES) for word in range(4)]
    words = w.shuffled(w.shuffled(n0, n1, both), w.shuffled(n2, n3, both), lanes)
    return f"""define void @burn_philox(ptr %table, i64 %start, i64 %stop) #0 {{
entry:
  %words = load ptr, ptr %table
{chr(10).join(loads)}
  br label %loop
loop:
  %item = phi i64 [%start, %entry], [%next, %body]
  %more = icmp slt i64 %item, %stop
  br i1 %more, label %body, label %end
body:
  %first = mul i64 %item, {_LANES}
{w.text}
  %at = mul i64 %item, {4 * _LANES}
  %target = getelementptr i32, ptr %words, i64 %at
  store {words.typed}, ptr %target, align 4
  %next = add i64 %item, 1
  br label %loop
end:
  ret void
}}
{ATTRIBUTES}"""
