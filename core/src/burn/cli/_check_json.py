"""The document of ``burn check --json``, which is there from the beginning of a run, and whole."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import burn
from burn.errors import ArgumentError

if TYPE_CHECKING:
    from burn.testing import Report

__all__ = ["JsonFile", "document_of"]

_SECONDS: Final = 2.0
"""Time between two versions of the file, at least."""

_SHARE: Final = 0.05
"""Part of the time that writing it may take."""

_RESULTS: Final = '"results": []'
"""What a document has instead of results at first; no text in JSON has such quotation marks."""


class JsonFile:
    """A file with a document, which is replaced by a newer one now and then.

    A run that is killed at any moment leaves a whole document.

    Parameters
    ----------
    path : Path
        The file. What is no regular file, such as a pipe, gets the last document only.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_regular = path.is_file() or not path.exists()
        self._next = 0.0

    @property
    def is_due(self) -> bool:
        """Whether it is time for a newer document."""
        return self._is_regular and time.monotonic() >= self._next

    def write(self, reports: Sequence[Report], *, is_over: bool = False) -> None:
        """Write a document.

        Raises
        ------
        ArgumentError
            If the file cannot be written.
        """
        start = time.monotonic()
        text = document_of(reports, is_over=is_over)
        try:
            if self._is_regular:
                partial = self._path.with_name(f"{self._path.name}.{os.getpid()}.partial")
                partial.write_text(text, encoding="utf-8")
                partial.replace(self._path)
            elif is_over:
                self._path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ArgumentError(f"cannot write the report: {error}") from error
        now = time.monotonic()
        self._next = now + max(_SECONDS, (now - start) / _SHARE)


def document_of(reports: Sequence[Report], *, is_over: bool) -> str:
    """The document for reports, with a line for each result.

    Parameters
    ----------
    reports : sequence of Report
        What is known so far.
    is_over : bool
        Whether no more comes: the run was not stopped.
    """
    finished = is_over and all(report.finished for report in reports)
    document: dict[str, Any] = {
        "schema": 1,
        "version": burn.__version__,
        "conforms": finished and all(report.conforms for report in reports),
        "finished": finished,
        "devices": [{**report.as_json(), "results": []} for report in reports],
    }
    first, *others = json.dumps(document, indent=2, allow_nan=False).split(_RESULTS)
    parts = [first]
    for report, other in zip(reports, others, strict=True):
        lines = [json.dumps(result.as_json(), allow_nan=False) for result in report.results]
        parts += ['"results": [', ",".join([f"\n        {line}" for line in lines]), "]", other]
    return "".join([*parts, "\n"])
