"""The program of a worker process: it makes the checks whose names it is sent, one by one.

Its standard input has a line of JSON for each order, its standard output one for each reply: first
what it found (or the error of burn's that kept it from beginning), then how each check ended, and
at last why it makes no more. What libraries print goes to standard error.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final

from burn.devices import Device
from burn.errors import BurnError
from burn.parent_process import end_with_parent
from burn.testing._check import Check, Result, Status
from burn.testing._check_selection import Selection
from burn.testing._chosen_checks import Chosen
from burn.testing._expected import ExpectedFailures, run_check
from burn.testing._first_calls import listen as listen_to_first_calls
from burn.testing._summary import SubjectSummary
from burn.testing.shape_cost import ShapeCost
from burn.testing.subject import Subject
from burn.testing.suites import checks_of

__all__ = ["DUMP_SIGNAL", "main"]

DUMP_SIGNAL: Final = getattr(signal, "SIGUSR1", None)
"""What asks a worker to write down where it is; there is none on Windows."""

_LOOK_SECONDS: Final = 0.5
"""Time between two looks at the memory of the process, which take up to 50 ms."""

_MAX_CHECKS: Final = 50_000
"""Checks after which a worker is replaced, for what grows and is not looked at."""

_MAX_GROWTH_BYTES: Final = 8 << 30
"""Growth of the memory after which a worker is replaced, at most."""


class _Memory:
    """What a process has of memory, and of maps of it, of which Linux grants a limited number."""

    def __init__(self) -> None:
        self._max_bytes = self._max_maps = 0.0
        self._next_look = 0.0
        with contextlib.suppress(OSError, ValueError):  # not on Linux
            maps = int(Path("/proc/sys/vm/max_map_count").read_text(encoding="ascii"))
            self._max_maps = maps / 2
            whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
            self._max_bytes = _resident_bytes() + min(_MAX_GROWTH_BYTES, whole / 4)

    def excess(self) -> str:
        """What has grown too much; "" if nothing has, or it is too early to look again."""
        now = time.monotonic()
        if now < self._next_look or not self._max_maps:
            return ""
        self._next_look = now + _LOOK_SECONDS
        with Path("/proc/self/maps").open("rb") as file:
            maps = sum(1 for _ in file)
        if maps > self._max_maps:
            return f"{maps} memory maps"
        used = _resident_bytes()
        return f"{used / (1 << 30):.1f} GiB of memory" if used > self._max_bytes else ""


def main() -> None:
    """Do what standard input says, until it ends."""
    orders: queue.SimpleQueue[Any] = queue.SimpleQueue()
    source, out = _own_streams()
    job = json.loads(source.readline())
    end_with_parent(job["parent"])

    def listen() -> None:
        for line in source:
            orders.put(json.loads(line))
        os._exit(0)  # the run has ended, or was killed; whatever the device is doing

    threading.Thread(target=listen, name="burn-check-orders", daemon=True).start()

    def reply(**line: Any) -> None:
        out.write(json.dumps(line, allow_nan=False) + "\n")
        out.flush()

    with Path(job["trace"]).open("w", encoding="utf-8") as trace:
        faulthandler.enable(trace, all_threads=False)
        if DUMP_SIGNAL is not None:
            faulthandler.register(DUMP_SIGNAL, trace, all_threads=False)
        try:
            selection, subject, expected = _prepare(job)
            if job["describes"]:
                cost = ShapeCost.of(subject) if job["measures"] else ShapeCost(0.0, 0.0)
                described, checks = _describe(subject, selection, expected, job["few_shapes"], cost)
            else:
                described, checks = {}, list(checks_of(subject, selection))
        except BurnError as error:
            reply(error=[type(error).__name__, error.rule, error.hint, error.operation])
        else:
            reply(ready=described)
            listen_to_first_calls(lambda begins: reply(first_call=begins))
            by_name = {check.name: check for check in checks}
            reply(retired=_work(subject, by_name, expected, orders, reply))
        sys.stderr.flush()
        os._exit(0)  # what a library does at the end is no part of a check


def _work(
    subject: Subject,
    checks: dict[str, Check],
    expected: ExpectedFailures,
    orders: queue.SimpleQueue[Any],
    reply: Callable[..., None],
) -> str:
    """Make checks, and return why no more."""
    memory = _Memory()
    done = 0
    while True:
        for name in orders.get():
            check = checks.get(name)
            if check is None:
                reply(**_missing(name).as_json())
                continue
            reply(**run_check(subject, check, expected).as_json())
            done += 1
            reason = f"{done} checks" if done >= _MAX_CHECKS else memory.excess()
            if reason:
                return reason


def _missing(name: str) -> Result:
    suite, _, rest = name.partition("/")
    check = Check(suite, "", None, rest, lambda: None)
    message = "a second worker process does not find this check: the device seems to have changed"
    return Result(check, Status.FAILED, message, "", None, 0.0)


def _prepare(job: dict[str, Any]) -> tuple[Selection, Subject, ExpectedFailures]:
    selection = Selection(**{name: _tuple(value) for name, value in job["selection"].items()})
    path = job["expected_failures"]
    expected = ExpectedFailures.read(None if path is None else Path(path))
    return selection, Subject.of(Device(job["device"]), **job["mode"]), expected


def _describe(
    subject: Subject,
    selection: Selection,
    expected: ExpectedFailures,
    wants_few_shapes: bool | None,
    cost: ShapeCost,
) -> tuple[dict[str, Any], list[Check]]:
    """What the process that started this one asks of the device, and the checks."""
    chosen = Chosen.of(subject, selection, cost, few_shapes=wants_few_shapes)
    description = {
        "subject": SubjectSummary.of(subject).as_json(),
        "shape_cost": cost.as_json(),
        "few_shapes": chosen.few_shapes,
        "left_out": chosen.left_out,
        "problems": [name for name in (chosen.problem, *expected.unknown(subject)) if name],
        "checks": [
            [
                *(check.suite, check.op, check.dtype.name if check.dtype else None, check.note),
                *(check.is_large, expected.reason(subject, check.name)),
            ]
            for check in chosen.checks
        ],
    }
    return description, chosen.checks


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _own_streams() -> tuple[IO[str], IO[str]]:
    """Standard input and output for orders and replies; libraries print to standard error."""
    source = os.fdopen(os.dup(0), encoding="utf-8")
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # standard error is closed
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
    os.close(nothing)
    return source, out


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
