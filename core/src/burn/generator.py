"""The state of the random number generator of each device.

Backends are stateless: the seed and the offset are attributes of the ops that draw numbers. The
state is kept here, one (seed, offset) per device, so the same seed gives the same numbers run after
run and on every backend. The generator itself, Philox4x32-10, is an op
(`burn.ops.arrays.random`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Final, NamedTuple, TypeAlias

from burn.device_id import DeviceId
from burn.errors import ArgumentError, AutodiffError
from burn.locks import new_lock

__all__ = [
    "GeneratorState",
    "Key",
    "after",
    "get_state",
    "isolated",
    "logged",
    "release",
    "replayed",
    "reserve",
    "reserved_by",
    "seed",
    "set_state",
    "states",
]

Key: TypeAlias = tuple[str, DeviceId]
"""Name of a backend, and its DeviceId of a device."""

_WORDS_PER_BLOCK = 4
_SEED_MASK = (1 << 64) - 1


class GeneratorState(NamedTuple):
    """The 64-bit key, and the number of 128-bit blocks drawn."""

    seed: int
    offset: int


_states: dict[Key, GeneratorState] = {}
_lock = new_lock()

_source: Final[ContextVar[Callable[[Key, int], GeneratorState] | None]] = ContextVar(
    "burn_generator", default=None
)
"""What draws get their states from in this thread or asyncio task, if not from the generators."""


def seed(device: Key, value: int) -> None:
    """Seed the generator of a device; any integer, modulo 2**64.

    Raises
    ------
    ArgumentError
        Inside of a function whose draws are counted, or will be made again.
    """
    if _source.get() is not None:
        raise ArgumentError(
            "a function of burn.vmap, burn.checkpoint or burn.ir.trace draws the numbers that a "
            "loop, its first call or each run would draw, so it cannot seed the generator",
            hint="Seed it before",
            operation="seed",
        )
    set_state(device, GeneratorState(value & _SEED_MASK, 0))


def get_state(device: Key) -> GeneratorState:
    """The state of the generator of a device, which the system seeds on first use."""
    return _reserve(device, 0)


def set_state(device: Key, state: GeneratorState) -> None:
    """Set the state of the generator of a device."""
    with _lock:
        _states[device] = state


def states() -> dict[Key, GeneratorState]:
    """The states of the generators of all devices that have drawn numbers or were seeded."""
    with _lock:
        return dict(_states)


def reserve(device: Key, words: int) -> GeneratorState:
    """Reserve 32-bit words of the generator of a device, and return the state at the first."""
    source = _source.get()
    return _reserve(device, words) if source is None else source(device, words)


@contextlib.contextmanager
def isolated() -> Iterator[dict[Key, int]]:
    """Context in which draws leave all generators as they are; counts the words of each."""
    words_of: dict[Key, int] = {}

    def peek(device: Key, words: int) -> GeneratorState:
        start = words_of.get(device, 0)
        words_of[device] = start + _whole_blocks(words)
        return after(_reserve(device, 0), start)

    with reserved_by(peek):
        yield words_of


@contextlib.contextmanager
def logged() -> Iterator[list[GeneratorState]]:
    """Context that lists the states that draws return."""
    outer = _source.get() or _reserve
    states: list[GeneratorState] = []

    def draw(device: Key, words: int) -> GeneratorState:
        states.append(outer(device, words))
        return states[-1]

    with reserved_by(draw):
        yield states


@contextlib.contextmanager
def replayed(states: list[GeneratorState]) -> Iterator[None]:
    """Context in which the draws return what `logged` listed, in order."""
    rest = iter(states)

    def draw(device: Key, words: int) -> GeneratorState:
        del device, words
        for state in rest:
            return state
        raise AutodiffError(
            "draws more random numbers when it runs again",
            hint="The function must draw the same numbers for the same arguments",
            operation="checkpoint",
        )

    with reserved_by(draw):
        yield


@contextlib.contextmanager
def reserved_by(source: Callable[[Key, int], GeneratorState]) -> Iterator[None]:
    """Context in which a function of the key and a number of words gives draws their states."""
    token = _source.set(source)
    try:
        yield
    finally:
        _source.reset(token)


def _reserve(device: Key, words: int) -> GeneratorState:
    with _lock:
        state = _states.get(device)
        if state is None:
            state = GeneratorState(int.from_bytes(os.urandom(8), "little"), 0)
        _states[device] = after(state, words)
        return state


def release(device: Key, state: GeneratorState, words: int) -> None:
    """Undo a `reserve` that returned `state`, unless more was reserved since."""
    if state.seed.__class__ is not int:  # a trace reserves nothing
        return
    with _lock:
        if _states.get(device) == after(state, words):
            _states[device] = state


def after(state: GeneratorState, words: int) -> GeneratorState:
    """The state that follows a draw of 32-bit words."""
    return GeneratorState(state.seed, state.offset + _whole_blocks(words) // _WORDS_PER_BLOCK)


def _whole_blocks(words: int) -> int:
    """The words of all blocks that some words take up."""
    return -(-words // _WORDS_PER_BLOCK) * _WORDS_PER_BLOCK
