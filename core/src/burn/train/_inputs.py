"""What a run is given: objects with states, batches, arguments; and what its log says of them."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, TypeGuard

import numpy as np

from burn.devices import Device
from burn.errors import ArgumentError, BurnError, OperandTypeError

__all__ = [
    "Stateful",
    "as_path",
    "description",
    "examples_of",
    "is_stateful",
    "length_of",
    "values_of",
]


class Stateful(Protocol):
    """Whatever has a state that a checkpoint can hold: modules, optimizers, loaders, metrics."""

    def state_dict(self) -> Mapping[str, Any]:
        """The state."""

    def load_state_dict(self, state: Any, /) -> object:
        """Take a state."""


def is_stateful(value: object) -> TypeGuard[Stateful]:
    """Whether an object has a state, be it by its ``__getattr__``."""
    return hasattr(value, "state_dict") and hasattr(value, "load_state_dict")


def examples_of(batch: Any) -> int:
    """The length of the first array of a batch; 0 if there is none."""
    while True:
        shape = getattr(batch, "shape", None)
        if shape is not None:
            return int(shape[0]) if len(shape) else 0
        if isinstance(batch, (tuple, list)) and batch:
            batch = batch[0]
        elif isinstance(batch, Mapping) and batch:
            batch = next(iter(batch.values()))
        elif is_dataclass(batch) and vars(batch):
            batch = next(iter(vars(batch).values()))
        else:
            return 0


def values_of(state: Any, names: Iterable[str], operation: str) -> list[Any]:
    """The values of these names in a state.

    Raises
    ------
    ArgumentError
        If it has not all of them.
    """
    missing = [name for name in names if not (isinstance(state, Mapping) and name in state)]
    if missing:
        raise ArgumentError(
            f"the state has no {', '.join(missing)}",
            hint="Give what state_dict of the same class returned",
            operation=operation,
        )
    return [state[name] for name in names]


def as_path(path: Any, name: str, operation: str) -> Path:
    """An argument that is the name of a file."""
    if not isinstance(path, (str, os.PathLike)) or isinstance(os.fspath(path), bytes):
        raise OperandTypeError(f"{name} must be a str or a path, not {path!r}", operation=operation)
    return Path(path)


def length_of(loader: Any) -> int | None:
    """Number of batches of an epoch; None if the loader does not know."""
    try:
        return len(loader)
    except (TypeError, NotImplementedError, BurnError):
        return None


def description(parts: Mapping[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """What runs: versions, the device and the size of the modules among the parts, arguments.

    Nothing that says whose machine it is: no paths, no names of hosts.
    """
    modules = {name: part for name, part in parts.items() if hasattr(part, "num_parameters")}
    tensors = [item for part in modules.values() for item in part.state_dict().values()]
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "burn": version("burn-core"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "device": str(tensors[0].device if tensors else Device.default()),
        "parameters": {name: part.num_parameters for name, part in modules.items()},
        "arguments": arguments,
    }
