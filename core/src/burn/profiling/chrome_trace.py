"""Profiles as traces in the format of Chrome, which Perfetto reads."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

from burn.ops.observing import Event
from burn.profiling.summary import cost_of

__all__ = ["write_trace"]


def write_trace(file: TextIO, events: Sequence[Event], start: int) -> None:
    """Write a trace, an event per line.

    Parameters
    ----------
    file : text file
        Where to.
    events : sequence of Event
        The calls.
    start : int
        When the trace begins, in nanoseconds of `time.perf_counter_ns`.
    """
    file.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
    file.write(",\n".join(map(json.dumps, _trace_events(events, start))))
    file.write("\n]}\n")


def _trace_events(events: Sequence[Event], start: int) -> Iterator[dict[str, Any]]:
    """The slices of all calls, and the names of their tracks."""
    process = os.getpid()
    yield {"ph": "M", "name": "process_name", "pid": process, "args": {"name": "burn"}}
    tracks: dict[tuple[int, str], int] = {}
    for event in (node for outermost in events for node in outermost.walk()):
        ident, thread = event.thread
        track = tracks.get((ident, event.device))
        if track is None:
            track = tracks[ident, event.device] = len(tracks) + 1
            name = {"name": f"{thread}, {event.device}"}
            yield {"ph": "M", "name": "thread_name", "pid": process, "tid": track, "args": name}
        cost = cost_of(event)
        yield {
            "ph": "X",
            "name": event.name,
            "cat": event.kind,
            "ts": (event.start - start) / 1e3,
            "dur": (event.end - event.start) / 1e3,
            "pid": process,
            "tid": track,
            "args": {
                "call": event.describe(),
                "line": event.line,
                "bytes": cost.bytes,
                "flops": cost.flops,
            },
        }
