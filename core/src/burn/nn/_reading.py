"""The representation of modules: it reads like the code that makes them."""

from __future__ import annotations

import inspect
import textwrap
from typing import TYPE_CHECKING, Any, Final

from burn.nn._slots import STATE, is_container, is_module, slots_of
from burn.tensor.tensor import Tensor

if TYPE_CHECKING:
    from burn.nn.module import Module

__all__ = ["described", "described_on_a_line"]

_NOT_SHOWN: Final = frozenset({"self", "device", "dtype"})

_WIDTH: Final = 80
"""Number of characters of a line with several modules."""


def described(module: Module) -> str:
    """``Linear(784, 512, bias=False)``; modules below are arguments on lines of their own."""
    return _described(module, set())


def described_on_a_line(module: Module) -> str:
    """The representation of a module, without the modules below it."""
    return described(module).partition("\n")[0].removesuffix("(")


def _described(value: Any, above: set[int]) -> str:
    if isinstance(value, Tensor):
        return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
    if not (is_module(value) or _has_modules(value)):
        return repr(value)
    if id(value) in above:
        return f"{type(value).__name__}(...)" if is_module(value) else "[...]"
    above = above | {id(value)}
    if isinstance(value, dict):
        parts = [f"{key!r}: {_described(part, above)}" for key, part in value.items()]
        return _joined("{", parts, "}", ["" for _ in parts])
    if is_container(value):
        parts = [_described(part, above) for part in value]
        start, end = ("[", "]") if isinstance(value, list) else ("(", ")")
        return _joined(start, parts, end, [_note(part) for part in value])
    arguments, shown = _arguments(value)
    children = {
        name: item
        for name, item in vars(value).items()
        if name != STATE and name not in shown and (is_module(item) or _has_modules(item))
    }
    items: dict[str, Any] = children
    sequence = getattr(value, "_sequence", None)
    if sequence is not None:  # its modules are its arguments
        parts = [*arguments, *[_described(part, above) for part in sequence]]
        notes = ["" for _ in arguments] + [_note(part) for part in sequence]
    else:
        parts = [*arguments, *[f"{name}={_described(item, above)}" for name, item in items.items()]]
        notes = ["" for _ in arguments] + [_note(item) for item in items.values()]
    return _joined(f"{type(value).__name__}(", parts, ")", notes)


def _joined(start: str, parts: list[str], end: str, notes: list[str]) -> str:
    """Parts on one line where they fit, else on a line each with their notes."""
    line = f"{start}{', '.join(parts)}{end}"
    if not any(notes) and len(line) <= _WIDTH and "\n" not in line and line.count("(") < 3:
        return line
    rows = [
        textwrap.indent(f"{part},{note}", "    ") for part, note in zip(parts, notes, strict=True)
    ]
    return "\n".join([start, *rows, end])


def _note(value: Any) -> str:
    """A comment behind a module with a quantized tensor, or all of whose parameters are frozen."""
    if not is_module(value):
        return ""
    own = [slot for slot in slots_of(value) if slot.owner is value]
    codes = [slot.tensor.dtype.name.partition("(")[0] for slot in own if slot.is_quantized]
    notes = [", ".join(dict.fromkeys(codes))] if codes else []
    parameters = [slot for slot in own if slot.is_parameter]
    if parameters and all(slot.is_frozen for slot in parameters):
        notes.append("frozen")
    return f"  # {', '.join(notes)}" if notes else ""


def _arguments(module: Module) -> tuple[list[str], set[str]]:
    """The constructor's arguments, of those that are attributes, and the names of these.

    Those with a default are shown if they differ from it; ``bias=False`` where there is no bias.
    """
    try:
        signature = inspect.signature(type(module).__init__)
    except (TypeError, ValueError):
        return [], set()
    members = vars(module)
    shown: list[str] = []
    names: set[str] = set()
    for name, parameter in signature.parameters.items():
        if name in _NOT_SHOWN or name not in members or _has_modules(members[name]):
            continue
        value = members[name]
        if is_module(value):
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        names.add(name)
        if isinstance(parameter.default, bool) and not isinstance(value, bool):
            value = value is not None  # a tensor, if the argument was true
        if isinstance(value, Tensor):
            continue
        if parameter.default is parameter.empty:
            shown.append(repr(value) if not shown or "=" not in shown[-1] else f"{name}={value!r}")
        elif value != parameter.default:
            shown.append(f"{name}={value!r}")
    return shown, names


def _has_modules(value: Any, above: frozenset[int] = frozenset()) -> bool:
    """Whether a container has modules in it, at any depth."""
    if not is_container(value) or id(value) in above:
        return False
    above |= {id(value)}
    items = value.values() if isinstance(value, dict) else value
    return any(is_module(item) or _has_modules(item, above) for item in items)
