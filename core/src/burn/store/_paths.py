"""Paths that a user passes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from burn.errors import ArgumentError, OperandTypeError

__all__ = ["as_path"]


def as_path(path: Any, operation: str) -> Path:
    """An argument that is the name of a file or folder.

    Raises
    ------
    OperandTypeError
        If it is neither text nor a path of text.
    ArgumentError
        If the system has no such names.
    """
    try:
        found = Path(path)
    except TypeError as error:
        raise OperandTypeError(
            f"the path is an object of type {type(path).__name__}",
            hint='Pass text or a Path: "model.safetensors"',
            operation=operation,
        ) from error
    text = str(found)
    wrong = "a null character" if "\0" in text else ""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        wrong = wrong or "a surrogate"
    if wrong:
        raise ArgumentError(
            f"the path {text!r} has {wrong}", hint="Names of files have none", operation=operation
        )
    return found
