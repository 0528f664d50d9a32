"""The states of random generators: of all devices, of Python's `random`, and of NumPy."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from burn.devices import Device
from burn.errors import ArgumentError, DeviceUnavailableError, PluginError
from burn.generator import GeneratorState, Key, set_state, states
from burn.plugins import registry
from burn.store._values import MalformedError

__all__ = ["generator_like", "generator_state", "is_generator", "random_states", "restorer"]

_log = logging.getLogger("burn")

_LIMITS: Final = {
    "MT19937": ("state", "pos", 624),
    "Philox": ("", "buffer_pos", 4),
}
"""Of NumPy's bit generators with a buffer: where its position stands, its name and its largest.

NumPy itself would read beyond the buffer.
"""

_BIT_GENERATORS: Final = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")


def random_states() -> dict[str, Any]:
    """The states of the generators, by ``devices``, ``python`` and ``numpy``."""
    from numpy.random import get_state  # imported here, as not every program draws from it

    return {
        "devices": {
            device.name: {"seed": state.seed, "offset": state.offset}
            for key, state in states().items()
            if (device := _device_of(key)) is not None
        },
        "python": random.getstate(),
        "numpy": _listed(get_state(legacy=False)),  # noqa: NPY002 — users draw from it
    }


def _device_of(key: Key) -> Device | None:
    """The device of a generator; None if its backend was there for a while only."""
    try:
        handles = registry.entry(key[0]).handles.values()
    except (DeviceUnavailableError, PluginError):
        return None
    return next((handle for handle in list(handles) if handle.generator == key), None)


def _listed(state: Any) -> Any:
    """A state of a generator of NumPy with lists instead of arrays."""
    if isinstance(state, Mapping):
        return {key: _listed(value) for key, value in state.items()}
    return state.tolist() if isinstance(state, np.ndarray) else state


def restorer(saved: Any) -> Callable[[], None]:
    """A function that sets the states that `random_states` returned, which are checked here.

    The state of a device that is not there is left out, as its numbers cannot be drawn.

    Raises
    ------
    MalformedError
        If these are no such states.
    ArgumentError
        If functions of `numpy.random` draw by another bit generator now.
    """
    from numpy import random as numpy_random

    try:
        devices, python, numpy_state = saved["devices"], saved["python"], saved["numpy"]
        of_devices = [
            (str(name), GeneratorState(_word(device["seed"]), _word(device["offset"])))
            for name, device in devices.items()
        ]
        random.Random().setstate(python)  # noqa: S311 — it only checks the state
        kind = _checked_kind(numpy_state)
        numpy_random.RandomState(getattr(numpy_random, kind)(0)).set_state(numpy_state)
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
        raise MalformedError(f"no states of random generators: {error!r}") from None
    now = numpy_random.get_state(legacy=False)["bit_generator"]  # noqa: NPY002 — as above
    if now != kind:
        raise ArgumentError(
            f"the functions of numpy.random draw by {now}, and those of the saved run by {kind}",
            hint=f"Call numpy.random.set_bit_generator(numpy.random.{kind}()) before",
            operation="Checkpoints.restore",
        )

    def restore() -> None:
        for name, state in of_devices:
            try:
                device = Device(name)
            except (DeviceUnavailableError, PluginError) as error:
                _log.info("the random state of %s is not restored: %s", name, error)
            else:
                set_state(device.generator, state)
        random.setstate(python)
        numpy_random.set_state(numpy_state)  # noqa: NPY002 — likewise

    return restore


def _word(number: Any) -> int:
    if number.__class__ is not int or not 0 <= number < 1 << 64:
        raise ValueError(f"{number!r} is no unsigned integer of 64 bits")
    return int(number)


def _checked_kind(state: Any) -> str:
    """The bit generator that a state is of; raises ValueError if it points beyond its buffer."""
    kind = state["bit_generator"]
    if kind not in _BIT_GENERATORS:
        raise ValueError(f"{kind!r} is no bit generator")
    inside, name, most = _LIMITS.get(kind, ("", "", 0))
    if name:
        position = (state[inside] if inside else state)[name]
        if position.__class__ is not int or not 0 <= position <= most:
            raise ValueError(f"{name} is {position!r}, and at most {most}")
    return str(kind)


def is_generator(value: object) -> bool:
    """Whether it is a `numpy.random.Generator`."""
    import sys

    module = sys.modules.get("numpy.random")  # without it there is no such object
    return module is not None and isinstance(value, module.Generator)


def generator_state(generator: Any) -> dict[str, Any]:
    """The state of a generator of NumPy."""
    state: dict[str, Any] = _listed(generator.bit_generator.state)
    return state


def generator_like(state: Any) -> Any:
    """A new generator of NumPy with a state.

    Raises
    ------
    MalformedError
        If it is no state of one.
    """
    from numpy import random as numpy_random

    try:
        generator = numpy_random.Generator(getattr(numpy_random, _checked_kind(state))(0))
        generator.bit_generator.state = state
    except (LookupError, OverflowError, TypeError, ValueError) as error:
        raise MalformedError(f"no state of a generator: {error!r}") from None
    return generator
