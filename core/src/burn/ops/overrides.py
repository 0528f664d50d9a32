"""Overrides: whether the method of a backend takes the calls that the definition of its op makes.

A method that was written for another version of core may lack an operand or an attribute. One that
no call can satisfy is left out, so that the default of the op runs; one that lacks an attribute
with a default runs while the attribute has that value.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any

from burn.backend.tensor_ops import is_implemented
from burn.ops.op import REGISTRY, Op, Tag

__all__ = ["Difference", "difference_of", "misfits"]


@dataclass(frozen=True)
class Difference:
    """How the parameters of a method differ from the definition of its op.

    Attributes
    ----------
    problem : str
        Why no call can succeed, such as "does not take 'dampening'"; "" where calls can.
    operands : int
        The number of operands that the method takes.
    lacks : tuple of str
        Attributes with a default that it does not take.
    needs : tuple of str
        Attributes with a default for which it has none.
    """

    problem: str
    operands: int
    lacks: tuple[str, ...]
    needs: tuple[str, ...]

    @property
    def reason(self) -> str:
        """Why the call that needs it cannot be made."""
        lacking = f"does not take {_listed(self.lacks)}" if self.lacks else ""
        return self.problem or lacking or f"takes {self.operands} operands"

    def adapted(
        self,
        definition: Op,
        method: Callable[..., Any],
        fallback: Callable[[], Callable[..., Any]],
    ) -> Callable[..., Any]:
        """The method; what `fallback` returns for calls that give what it does not take."""
        lacked = {name: definition.attributes[name].default for name in self.lacks}
        needed = {name: definition.attributes[name].default for name in self.needs}

        def call(*operands: Any, **attributes: Any) -> Any:
            if any(operand is not None for operand in operands[self.operands :]) or any(
                attributes.get(name, value) != value for name, value in lacked.items()
            ):
                return fallback()(*operands, **attributes)
            kept = {name: value for name, value in attributes.items() if name not in lacked}
            return method(*operands[: self.operands], **needed | kept)

        return call


def difference_of(definition: Op, method: Any) -> Difference | None:
    """How a method differs from the definition of its op; None if it takes every call.

    Functions written in Python are read. Others count as right: they may take more than they say.
    """
    bound = method.__class__ is MethodType
    function = method.__func__ if bound else method
    if function.__class__ is not FunctionType:
        return None
    code = function.__code__
    positional = code.co_varnames[bound : code.co_argcount]
    only_keyword = code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]
    without_default = positional[: len(positional) - len(function.__defaults__ or ())]
    operands = list(definition.operands)
    free = positional[len(operands) :]  # parameters that may be given as keywords
    keywords = {*free, *only_keyword}
    requires = {*without_default[len(operands) :], *only_keyword}
    requires -= (function.__kwdefaults__ or {}).keys()
    attributes = definition.attributes
    given = {*attributes, "device"} if Tag.CREATION in definition.tags else set(attributes)

    takes_all = code.co_flags & inspect.CO_VARKEYWORDS
    taken = len(operands) if code.co_flags & inspect.CO_VARARGS else len(positional)
    lacks = set() if takes_all else given - keywords
    unknown = requires - given
    optional = {name for name in given & attributes.keys() if not attributes[name].required}
    needs = requires & optional
    if taken >= len(operands) and not lacks and not unknown and not needs:
        return None
    problems = []
    if not all(definition.operands[name].optional for name in operands[taken:]):
        problems.append(f"takes {taken} of the {len(operands)} operands {', '.join(operands)}")
    if lacks - optional:
        problems.append(f"does not take {_listed(lacks - optional)}")
    if unknown:
        problems.append(f"requires {_listed(unknown)}, which no call gives")
    return Difference(" and ".join(problems), taken, tuple(lacks & optional), tuple(needs))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, sorted(names)))


def misfits(backend: Any) -> dict[str, str]:
    """Methods of a backend that no call of their ops can satisfy, and what is wrong with each."""
    found = {}
    for name, definition in REGISTRY.items():
        method = getattr(backend, name, None)
        if is_implemented(method):
            difference = difference_of(definition, method)
            if difference is not None and difference.problem:
                found[name] = difference.problem
    return found
