"""Standard output, reserved for what a command prints; text without control characters."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

__all__ = ["close_stdout", "own_stdout", "printable", "write_json"]


@contextlib.contextmanager
def own_stdout() -> Iterator[TextIO]:
    """Standard output for the command alone; other output of the process goes to standard error.

    Plugins and native libraries may print at any time; a program that reads
    ``burn devices --json`` gets exactly one document.

    Yields
    ------
    file
        Where the command writes.
    """
    real: TextIO | None = sys.stdout
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        if real is None:  # closed before the program began
            yield stack.enter_context(open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123 — pathlib takes 10 ms
            return
        descriptor = _descriptor(real)
        if descriptor is None:  # not a program of its own, but called by a test or a notebook
            yield real
            return
        real.flush()
        kept = os.dup(descriptor)
        stack.callback(os.close, kept)
        stack.callback(os.dup2, kept, descriptor)
        _divert(descriptor)
        with open(os.dup(kept), "w", encoding=real.encoding, errors="replace") as out:  # noqa: PTH123 — of a number
            yield out


def close_stdout() -> None:
    """Send what libraries still print while the process ends to standard error."""
    descriptor = _descriptor(sys.stdout)
    if descriptor is not None:
        with contextlib.suppress(BrokenPipeError):  # the reader has seen enough
            sys.stdout.flush()
        _divert(descriptor)


def _descriptor(stream: TextIO | None) -> int | None:
    """The file descriptor of the real standard output; None for a replacement of it."""
    if stream is not sys.__stdout__ or stream is None:
        return None
    try:
        return stream.fileno()
    except (OSError, ValueError):  # closed since
        return None


def _divert(descriptor: int) -> None:
    """Point a file descriptor at standard error, or at the null device if that is closed."""
    try:
        os.dup2(2, descriptor)
    except OSError:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, descriptor)
        os.close(nothing)


def write_json(out: TextIO, document: dict[str, Any]) -> None:
    """Write one JSON document."""
    import json

    out.write(json.dumps(document, indent=2) + "\n")


def printable(text: str) -> str:
    r"""The text without characters that would act on a terminal instead of standing in it.

    Examples
    --------
    >>> printable("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return "".join(
        character if character.isprintable() or character == "\n" else ascii(character)[1:-1]
        for character in text
    )
