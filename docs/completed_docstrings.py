"""Docstrings that `burn.docstrings.documented_as` completes, for pages that are made of sources."""

from __future__ import annotations

import inspect
import pkgutil
from typing import Any

import griffe


class CompletedDocstrings(griffe.Extension):
    """mkdocstrings reads sources; what a decorator does to a docstring it learns here."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Replace the docstring of a function or class by that of the object."""
        decorators = getattr(obj, "decorators", ())
        if any(str(decorator.value).startswith("documented_as(") for decorator in decorators):
            text = inspect.getdoc(pkgutil.resolve_name(obj.path))
            if obj.docstring and text:
                obj.docstring.value = text
