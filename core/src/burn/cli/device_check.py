"""Whether a device computes what it should: ``burn devices --check``.

The numbers are small integers, which every float dtype holds and sums in any order without
rounding, so a result is right or wrong. They are computed once more on the host, as integers.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import burn
from burn.dtype import DType, DTypeUsage, int32, uint32
from burn.errors import ExecutionError, PluginError
from burn.plugins import describe

if TYPE_CHECKING:
    from burn.cli.inventory import Failure
    from burn.devices import Device

__all__ = ["TIME_LIMIT_SECONDS", "Outcome", "check", "failed"]

TIME_LIMIT_SECONDS: Final = 60.0
"""Time limit of the check of one device; the first use of a GPU compiles kernels."""

_FIRST_BITS: Final = (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
"""Philox4x32-10 of counter 0 and key 0: known answers of Random123 1.14.0, ``kat_vectors``."""

_Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Outcome:
    """What a check found.

    Attributes
    ----------
    name : str
        The device; the backend or plugin where it did not come to devices.
    passed : bool
        Whether all results were right.
    seconds : float or None
        How long it took, loading the backend included; None where nothing ran.
    reason : str or None
        Which computation failed, and how, on one line.
    traceback : str
        Where what was raised comes from; of a process that crashed, what it said.
    usage : dict of DType to DTypeUsage, or None
        What the loaded library says of each dtype, where it came to that.
    """

    name: str
    passed: bool
    seconds: float | None
    reason: str | None = None
    traceback: str = ""
    usage: Mapping[DType, DTypeUsage] | None = None


def failed(failure: Failure) -> Outcome:
    """Outcome for a plugin or backend that cannot be used."""
    return Outcome(failure.name, passed=False, seconds=None, reason=failure.reason)


def check(
    device: Device,
    seconds: float | None = None,
    on_step: Callable[[str], object] = str,
) -> Outcome:
    """Compute on a device, and compare with the host.

    An exception is a failure of the device, and so is a check that takes more than `seconds`, a
    minute by default. `on_step` is called with the name of each step before it begins.
    """
    limit = TIME_LIMIT_SECONDS if seconds is None else seconds
    run = _Run(device, on_step)
    thread = threading.Thread(target=run, name=f"burn-check-{device.name}", daemon=True)
    start = time.perf_counter()
    thread.start()
    thread.join(limit)
    taken = time.perf_counter() - start
    reason = None
    if thread.is_alive():
        reason = f"{run.step}: no answer within {limit:g} s"
    elif run.error is not None:
        # Of a backend that cannot be loaded the name is known; what its plugin raised is not.
        cause = run.error.__cause__ if isinstance(run.error, PluginError) else None
        reason = f"{run.step}: {describe(cause or run.error)}"
    lines = traceback.format_exception(run.error) if run.error is not None else []
    return Outcome(device.name, reason is None, taken, reason, "".join(lines), run.usage)


class _Run:
    """The computations on one device, and how far they have come."""

    def __init__(self, device: Device, on_step: Callable[[str], object]) -> None:
        self.device = device
        self.step = ""
        self.on_step = on_step
        self.error: BaseException | None = None
        self.usage: Mapping[DType, DTypeUsage] | None = None

    def __call__(self) -> None:
        usage = {}

        def load(device: Device) -> None:
            usage.update({dtype: device.dtype_usage(dtype) for dtype in DType.members()})

        try:
            for step, work in {"load": load, **_STEPS, "sync": type(self.device).sync}.items():
                self.step = step
                self.on_step(step)
                work(self.device)
            self.usage = usage
        except BaseException as error:  # noqa: BLE001 — whatever a library does is its failure
            self.error = error


def _transfer(device: Device) -> None:
    values = np.arange(24).reshape(2, 3, 4) % 2
    for dtype in device.dtypes():
        expected = values.astype(dtype.numpy)
        found = burn.asarray(expected, device=device, copy=True).numpy()
        if found.dtype != expected.dtype:
            raise ExecutionError(f"{dtype} came back as {found.dtype}")
        _compare(found, expected)


def _matrix_product(device: Device) -> None:
    first, second = _small_integers(33, 24), _small_integers(24, 17)
    _compare((_upload(first, device) @ _upload(second, device)).numpy(), first @ second)


def _reductions(device: Device) -> None:
    values = _small_integers(37, 29)
    x = _upload(values, device)
    _compare(burn.sum(x, axis=0).numpy(), values.sum(axis=0))
    _compare(burn.max(x, axis=1).numpy(), values.max(axis=1))
    _compare(burn.argmin(x, axis=0).numpy(), values.argmin(axis=0))


def _random_bits(device: Device) -> None:
    dtype = uint32 if device.supports_dtype(uint32) else int32
    ops = device.ops
    words = ops.backend.to_data(ops.random_bits(seed=0, offset=0, count=4, dtype=dtype)).array
    _compare(words.view(np.uint32), np.asarray(_FIRST_BITS, dtype=np.uint32))


_STEPS: Final[dict[str, Callable[[Device], None]]] = {
    "transfer": _transfer,
    "matrix product": _matrix_product,
    "reductions": _reductions,
    "random bits": _random_bits,
}


def _small_integers(rows: int, columns: int) -> _Array:
    """Integers from -2 to 2, no row or column like the one beside it."""
    numbers = np.arange(rows * columns).reshape(rows, columns)
    return numbers * numbers % 7 % 5 - 2


def _upload(values: _Array, device: Device) -> Any:
    return burn.asarray(values, dtype=device.settings.float_dtype, device=device)


def _compare(found: _Array, expected: _Array) -> None:
    if found.shape != expected.shape:
        raise ExecutionError(f"the result has shape {found.shape} instead of {expected.shape}")
    wrong = np.argwhere(found != expected)
    if len(wrong):
        index = tuple(map(int, wrong[0]))
        raise ExecutionError(
            f"{len(wrong)} of {expected.size} elements are wrong, the first at {index}: "
            f"{found[index]} instead of {expected[index]}"
        )
