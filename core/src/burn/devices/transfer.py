"""Transfers of primitives between devices, and the error for a backend that fails."""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Any, NoReturn

from burn.backend.dlpack import DLPackObject, is_readable
from burn.errors import BurnError, ExecutionError, OutOfMemoryError
from burn.plugins import describe

if TYPE_CHECKING:
    from burn.aliases import Primitive
    from burn.devices.device import Device
    from burn.dtype import DType

__all__ = ["fail", "transfer"]

_log = logging.getLogger("burn")


def transfer(dtype: DType, source: Device, target: Device, x: Primitive) -> Primitive:
    """Move a primitive from one device to another, sharing its memory where both can access it.

    Two backends on one accelerator share what lies there through DLPack, and a backend may have a
    way of its own between its devices. Everything else goes through host memory, which is shared
    with every backend that computes in it.

    Parameters
    ----------
    dtype : DType
        The dtype, which both have.
    source, target : Device
        Where the primitive lies and where it goes; devices without autodiff.
    x : primitive
        The primitive, below all autodiff.
    """
    shape = ", ".join(map(str, x.shape))
    operation = f'to_device({dtype}[{shape}], "{target.name}")'
    sender, receiver = source.ops.backend, target.ops.backend
    memory = sender.dlpack_device(source.id)
    try:
        if source.backend is target.backend:
            moved = sender.to_device(x, target.id)
            if moved is not None:
                return moved
        if not is_readable(memory) and memory == receiver.dlpack_device(target.id):
            # Errors of queued work show now: no later read of this device would raise them.
            sender.sync(source.id)
            capsules = DLPackObject(functools.partial(sender.to_dlpack, x), memory)
            shared = _shared(receiver, target, capsules, dtype)
            if shared is not None:
                return shared
        data = sender.to_data(x)
    except Exception as error:  # noqa: BLE001 — of whatever library is underneath
        fail(source, error, operation)
    try:
        shared = receiver.share(data, target.id)
        if shared is not None:
            return shared
        return receiver.from_data(receiver.staging(data, target.id), target.id)
    except Exception as error:  # noqa: BLE001 — of whatever library is underneath
        fail(target, error, operation)


def _shared(
    receiver: Any, target: Device, exported: DLPackObject, dtype: DType
) -> Primitive | None:
    """A primitive in memory that another backend exported; None if the receiver cannot use it."""
    try:
        primitive = receiver.from_dlpack(exported, target.id)
    except Exception as error:  # noqa: BLE001 — of whatever library is underneath
        _log.debug("%s does not take %s through DLPack: %s", target.name, dtype, describe(error))
        return None
    if primitive is None or primitive.dtype != receiver.native_dtype(dtype):
        return None
    return primitive


def fail(device: Device, error: Exception, operation: str) -> NoReturn:
    """Raise the exception that a backend raised on a valid call, as an error of burn."""
    if isinstance(error, BurnError):
        error.operation = error.operation or operation
        raise error
    if device.hardware.backend.is_out_of_memory(error):
        rule = f"{device} has too little memory" + (f": {error}" if str(error) else "")
        hint = "Free tensors, or compute with smaller ones"
        raise OutOfMemoryError(rule, hint=hint, operation=operation) from error
    rule = f"{device} failed with {describe(error)}"
    raise ExecutionError(rule, operation=operation) from error
