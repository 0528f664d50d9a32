"""Primitives on their way from one device to another, and what to say where that fails."""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Any, NoReturn

from burn.backend.dlpack import DLPackObject, is_readable
from burn.errors import BurnError, ExecutionError, OutOfMemoryError
from burn.plugins import describe

if TYPE_CHECKING:
    from burn.aliases import Primitive
    from burn.devices import Device
    from burn.dtype import DType

__all__ = ["fail", "transfer"]

_log = logging.getLogger("burn")


def transfer(dtype: DType, source: Device, target: Device, x: Primitive) -> Primitive:
    """A primitive of one device as one of another, in the same memory where both can.

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
    giver, taker = source.ops.backend, target.ops.backend
    memory = giver.dlpack_device(source.id)
    try:
        if source.backend is target.backend:
            moved = giver.to_device(x, target.id)
            if moved is not None:
                return moved
        if not is_readable(memory) and memory == taker.dlpack_device(target.id):
            giver.sync(source.id)  # the last read of this device, so errors of queued work show now
            shared = _shared(
                taker, target, DLPackObject(functools.partial(giver.to_dlpack, x), memory), dtype
            )
            if shared is not None:
                return shared
        data = giver.to_data(x)
    except Exception as error:  # noqa: BLE001 — of whatever library is underneath
        fail(source, error, operation)
    try:
        shared = taker.share(data, target.id)
        if shared is not None:
            return shared
        return taker.from_data(taker.staging(data, target.id), target.id)
    except Exception as error:  # noqa: BLE001 — of whatever library is underneath
        fail(target, error, operation)


def _shared(taker: Any, target: Device, lent: DLPackObject, dtype: DType) -> Primitive | None:
    """A primitive in the memory of one that lies on the same hardware; None if that cannot be."""
    try:
        primitive = taker.from_dlpack(lent, target.id)
    except Exception as error:  # noqa: BLE001 — of whatever library is underneath
        _log.debug("%s does not take %s through DLPack: %s", target.name, dtype, describe(error))
        return None
    if primitive is None or primitive.dtype != taker.native_dtype(dtype):
        return None
    return primitive


def fail(device: Device, error: Exception, operation: str) -> NoReturn:
    """Raise what a backend raised although nothing was wrong with the call, as an error of burn."""
    if isinstance(error, BurnError):
        error.operation = error.operation or operation
        raise error
    rule = f"{device} failed with {describe(error)}"
    if device.hardware.backend.is_out_of_memory(error):
        hint = "Free tensors, or compute with smaller ones"
        raise OutOfMemoryError(rule, hint=hint, operation=operation) from error
    raise ExecutionError(rule, operation=operation) from error
