"""Docstrings of families: one function has the whole text, and others what differs from it."""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any, Final, TypeVar

__all__ = ["documented_as"]

_Documented = TypeVar("_Documented", bound=Callable[..., Any])

_INDENT: Final = "" if sys.version_info >= (3, 13) else "    "
"""Before each line of the docstring of a function or class of a module."""

_ORDER: Final = ("Parameters", "Attributes", "Returns", "Yields", "Raises")
"""Sections that may be taken over; all others follow them."""

_NO_WORDS: Final[Mapping[str, str]] = {}


def documented_as(
    base: Callable[..., Any], /, words: Mapping[str, str] = _NO_WORDS
) -> Callable[[_Documented], _Documented]:
    """Decorator: `help` and the pages of documentation complete a docstring by that of another.

    Editors show a docstring as it stands in the source: a summary, what differs, an example, and
    the name of the base where a keyword is left out. Taken over are the descriptions of parameters
    that both have, exceptions, and what is returned. A class takes the parameters of a function.

    Parameters
    ----------
    base : callable
        A function or class of the same family, whose docstring is whole.
    words : mapping of str to str
        What is written instead of texts of the base, such as ``{"images": "signals"}``.

    Returns
    -------
    callable
        The decorator. It returns what it is given.

    Examples
    --------
    >>> import burn
    >>> @documented_as(burn.sum)
    ... def total(x, /, *, keepdims=False):
    ...     '''Sum of all elements; its keyword is that of `sum`.'''
    >>> inspect.getdoc(total).splitlines()[6:8]
    ['keepdims : bool', '    Whether the reduced axes stay, with length 1.']
    """

    def complete(target: _Documented) -> _Documented:
        text = base.__doc__
        if text and target.__doc__:  # `python -OO` keeps none
            for word, other in words.items():
                text = text.replace(word, other)
            target.__doc__ = _completed(target, text, is_alike=isinstance(base, type))
        return target

    return complete


def _completed(target: Callable[..., Any], text: str, *, is_alike: bool) -> str:
    head, own = _parsed(target.__doc__ or "")
    _, others = _parsed_base(text)
    sections = dict.fromkeys(_ORDER, "") | own
    sections["Parameters"] = _parameters(
        target, own.get("Parameters", ""), others.get("Parameters", "")
    )
    if is_alike or not isinstance(target, type):
        for title in ("Returns", "Yields"):
            sections[title] = own.get(title) or others.get(title, "")
        for title in ("Attributes", "Raises"):
            entries = _entries(others.get(title, "")) | _entries(own.get(title, ""))
            sections[title] = "\n".join(entries.values())
    written = [
        f"\n{_INDENT}{title}\n{_INDENT}{'-' * len(title)}\n{body}\n"
        for title, body in sections.items()
        if body
    ]
    return f"{head}\n{''.join(written)}{_INDENT}"


def _parsed(text: str) -> tuple[str, dict[str, str]]:
    """What stands before all sections, and the sections by their titles."""
    parts = text.split(f"\n{_INDENT}---")
    sections: dict[str, str] = {}
    title = ""
    for part in parts[:-1]:
        body, _, following = part.rpartition("\n")
        sections[title] = body.lstrip("-").strip("\n")
        title = following.strip()
    sections[title] = parts[-1].lstrip("-").lstrip("\n").rstrip()
    return sections.pop(""), sections


_parsed_base = functools.cache(_parsed)


@functools.cache
def _entries(body: str) -> dict[str, str]:
    """The descriptions in a section by their first lines, which are indented as the section is."""
    entries = re.split(rf"\n(?={_INDENT}\S)", body) if body else ()
    return {entry.partition("\n")[0]: entry for entry in entries}


def _parameters(target: Callable[..., Any], own: str, others: str) -> str:
    """The descriptions of a docstring, and those of its base for all else, as in the signature."""
    function: Any = target.__init__ if isinstance(target, type) else target  # type: ignore[misc]
    order = _names_of(inspect.unwrap(function).__code__)
    found: dict[str, str] = {}
    for line, entry in (*_entries(own).items(), *_entries(others).items()):
        heading = line.partition(" : ")[0].lstrip()
        names = heading.split(", ")
        new = [name for name in names if name.lstrip("*") in order and name not in found]
        kept = entry if new == names else entry.replace(heading, ", ".join(new), 1)
        found |= {name.lstrip("*"): kept for name in new}
    return "\n".join({found[name]: None for name in order if name in found})


def _names_of(code: CodeType) -> list[str]:
    """The names of parameters in the order of a signature."""
    names = code.co_varnames
    positional, count = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    extra = bool(code.co_flags & inspect.CO_VARARGS)
    ordered = [*names[:positional], *names[count : count + extra], *names[positional:count]]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        ordered.append(names[count + extra])
    return ordered
