"""The check of one device in a process of its own: a crash is the failure of that device alone.

The process writes a line of JSON for each step that it begins, and one for the outcome, so that the
step is known where a native library ends the process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from burn.cli._output import own_stdout
from burn.cli.device_check import TIME_LIMIT_SECONDS, Outcome, check
from burn.devices import Device
from burn.dtype import DType, DTypeUsage
from burn.parent_process import end_with_parent

if TYPE_CHECKING:
    from burn.cli.inventory import Inventory

__all__ = ["check_all", "main"]

_START_UP_SECONDS: Final = 30.0
"""Time for a process to start and to find its device, beside the time limit of the check."""

_PROGRAM: Final = "from burn.cli._device_check_process import main; main()"


def check_all(inventory: Inventory) -> Iterator[Outcome]:
    """Check each device, several at a time, in the order of the list."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        yield from pool.map(_check, inventory.devices)


def _check(device: Device) -> Outcome:
    # What only this process knows of is checked here.
    if device.entry.plugin.is_in_process or not sys.executable:
        return check(device)
    limit = TIME_LIMIT_SECONDS + _START_UP_SECONDS
    command = [sys.executable, "-X", "faulthandler", "-c", _PROGRAM, device.name, str(os.getpid())]
    with subprocess.Popen(  # noqa: S603 — this interpreter, and the program above
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="replace"
    ) as process:
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            return _ended(device, out, err, f"no answer within {limit:g} s")
    lines = _lines(out)
    if not lines or "passed" not in lines[-1]:
        return _ended(device, out, err, f"the process {_ending(process.returncode)}")
    sys.stderr.write(err)
    found = lines[-1]
    usage = found.pop("usage")
    if usage is not None:
        usage = {DType.of(name): DTypeUsage(value) for name, value in usage.items()}
    return Outcome(device.name, usage=usage, **found)


def _ended(device: Device, out: str, err: str, how: str) -> Outcome:
    """Outcome for a process that ended before it wrote one."""
    steps = [line["step"] for line in _lines(out) if "step" in line]
    reason = f"{steps[-1] if steps else 'start'}: {how}"
    return Outcome(device.name, passed=False, seconds=0.0, reason=reason, traceback=err.strip())


def _ending(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


def _lines(out: str) -> list[dict[str, Any]]:
    """The complete lines of JSON that a process wrote."""
    lines = []
    for line in out.splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            break
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Check the device that the command line names for a parent process, and end the process."""
    name, parent = sys.argv[1:] if arguments is None else arguments
    end_with_parent(int(parent))
    with own_stdout() as out:

        def write(**line: Any) -> None:
            out.write(json.dumps(line) + "\n")
            out.flush()

        write(step="start")
        found = check(Device(name), on_step=lambda step: write(step=step))
        usage = None
        if found.usage is not None:
            usage = {dtype.name: use.value for dtype, use in found.usage.items()}
        write(
            passed=found.passed,
            seconds=found.seconds,
            reason=found.reason,
            traceback=found.traceback,
            usage=usage,
        )
    sys.stderr.flush()
    os._exit(0)  # what a library does at the end, or a thread that hangs, is no part of the check
