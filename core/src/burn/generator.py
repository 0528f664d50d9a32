"""The state of the random number generator of each device.

Backends are stateless: the seed and the offset are attributes of the ops that draw numbers. The
state is kept here, one (seed, offset) per device, so the same seed gives the same numbers run after
run and on every backend. The generator itself, Philox4x32-10, is an op
(`burn.ops.random`).
"""

from __future__ import annotations

import os
import threading
from typing import NamedTuple, TypeAlias

from burn.device_id import DeviceId

__all__ = ["GeneratorState", "Key", "get_state", "release", "reserve", "seed", "set_state"]

Key: TypeAlias = tuple[str, DeviceId]
"""Name of a backend, and its DeviceId of a device."""

_WORDS_PER_BLOCK = 4
_SEED_MASK = (1 << 64) - 1


class GeneratorState(NamedTuple):
    """The 64-bit key, and the number of 128-bit blocks drawn."""

    seed: int
    offset: int


_states: dict[Key, GeneratorState] = {}
_lock = threading.Lock()


def seed(device: Key, value: int) -> None:
    """Seed the generator of a device; any integer, modulo 2**64."""
    set_state(device, GeneratorState(value & _SEED_MASK, 0))


def get_state(device: Key) -> GeneratorState:
    """The state of the generator of a device, which the system seeds on first use."""
    return reserve(device, 0)


def set_state(device: Key, state: GeneratorState) -> None:
    """Set the state of the generator of a device."""
    with _lock:
        _states[device] = state


def reserve(device: Key, words: int) -> GeneratorState:
    """Reserve 32-bit words of the generator of a device, and return the state at the first."""
    with _lock:
        state = _states.get(device)
        if state is None:
            state = GeneratorState(int.from_bytes(os.urandom(8), "little"), 0)
        _states[device] = _after(state, words)
        return state


def release(device: Key, state: GeneratorState, words: int) -> None:
    """Undo a `reserve` that returned `state`, unless more was reserved since."""
    with _lock:
        if _states.get(device) == _after(state, words):
            _states[device] = state


def _after(state: GeneratorState, words: int) -> GeneratorState:
    return GeneratorState(state.seed, state.offset + -(-words // _WORDS_PER_BLOCK))
