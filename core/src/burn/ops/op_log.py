"""A line of the log for each op, which ``BURN_LOG_OPS=1`` asks for."""

from __future__ import annotations

import logging
from typing import Final

from burn.ops.observing import Event

__all__ = ["OpLog", "duration_text"]

_log: Final = logging.getLogger("burn")


class OpLog:
    """The observer that logs each op with shapes, duration, device and line of the program.

    It logs to the logger ``burn``, and shows that on standard error until the program configures
    logging itself.
    """

    synchronize = True

    def __init__(self) -> None:
        if _log.getEffectiveLevel() > logging.INFO:
            _log.setLevel(logging.INFO)
        handler = logging.StreamHandler()
        handler.addFilter(lambda _: not logging.getLogger().handlers)
        _log.addHandler(handler)

    def record(self, event: Event) -> None:
        """Log an op or a transfer."""
        _log.info(
            "burn op: %s %s on %s%s",
            event.describe(),
            duration_text(event.duration),
            event.device,
            event.line and f" at {event.line}",
        )


def duration_text(nanoseconds: float) -> str:
    """A duration in the unit that fits it.

    Examples
    --------
    >>> duration_text(3_214)
    '3.21 µs'
    >>> duration_text(81_234_567)
    '81.2 ms'
    """
    for unit, size in (("s", 1e9), ("ms", 1e6)):
        if nanoseconds >= 0.9995 * size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds / 1e3:.3g} µs"
