"""The log of a run: one JSON object a line."""

from __future__ import annotations

import contextlib
import json
import math
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from burn.errors import StoreError
from burn.train._inputs import as_path

__all__ = ["Log", "read"]

HEAD: Final = b'{"event": "start"'
"""What every log begins with."""

NONFINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""What JSON has no number for, as strings that ``float`` reads in most languages."""


class Log:
    """A file of lines, each complete when `write` returns.

    Parameters
    ----------
    path : str or path
        Where the file is; its folder is made if need be.
    start : dict
        The first line of a new log.
    kept : int or None
        How many lines of the file belong to the run so far; what comes after them is cut off. None
        for a new run: a log of an earlier one is replaced, and any other file is left alone.
    """

    def __init__(
        self, path: str | os.PathLike[str], start: dict[str, Any], kept: int | None
    ) -> None:
        self.path = Path(path)
        with self._explained():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("a+b")
        try:
            with self._explained():
                lines = _lines(self._file, self.path)
                lines = lines[:kept] if kept is not None else []
                if os.fstat(self._file.fileno()).st_size > (size := sum(map(len, lines))):
                    self._file.truncate(size)
            self.lines = len(lines)
            if not lines:
                self.write("start", start)
        except BaseException:
            self.close()
            raise

    def write(self, event: str, values: dict[str, Any]) -> None:
        """Add a line."""
        line = json.dumps(_encoded({"event": event, **values}), allow_nan=False)
        with self._explained():
            self._file.write(line.encode() + b"\n")
            self._file.flush()
        self.lines += 1

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(OSError):  # the line that could not be written was reported
            self._file.close()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn an error of the system into one that names the log."""
        try:
            yield
        except StoreError:
            raise
        except OSError as error:
            hint = "Free some space, or give the log another path"
            raise _store_error(self.path, "written", error, hint) from error


def read(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The events of a log; a last line that a kill cut short is left out.

    Raises
    ------
    StoreError
        If there is no such file, or it is no log of `fit`.
    """
    path = as_path(path, "path", "History.load")
    try:
        with path.open("rb") as file:
            lines = _lines(file, path)
    except StoreError:
        raise
    except OSError as error:
        raise _store_error(path, "read", error, "Give the path that fit got as log") from error
    events = []
    for number, line in enumerate(lines, 1):
        try:
            event = json.loads(line)
        except ValueError:
            event = None
        if not isinstance(event, dict):
            raise StoreError(
                f"line {number} of {path} is no JSON object", hint="Delete the line, or the file"
            )
        events.append(_decoded(event))
    return events


def _lines(file: BinaryIO, path: Path) -> list[bytes]:
    """The complete lines of a log; of a device or a pipe none, as it has no end."""
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return []
    file.seek(0)
    head = file.read(len(HEAD))
    if not HEAD.startswith(head):
        raise StoreError(
            f"{path} is no log of burn.train.fit: it begins with {head!r}",
            hint="This file stays as it is: give the path of a log, or of a new one",
        )
    lines = (head + file.read()).splitlines(keepends=True)
    return [line for line in lines if line.endswith(b"\n")]


def _store_error(path: Path, verb: str, error: OSError, hint: str) -> StoreError:
    """An error of the system as one of ours, with its number."""
    reason = error.strerror or error
    explained = StoreError(f"the log {path} cannot be {verb}: {reason}", hint=hint)
    explained.errno, explained.filename = error.errno, str(path)
    return explained


def _encoded(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return next(word for word, number in NONFINITE.items() if str(number) == str(value))
    if isinstance(value, dict):
        return {name: _encoded(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_encoded(part) for part in value]
    return value


def _decoded(value: Any) -> Any:
    if isinstance(value, str):
        return NONFINITE.get(value, value)
    if isinstance(value, dict):
        return {name: _decoded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_decoded(part) for part in value]
    return value
