"""Attribute: one keyword of an op, read from its annotation, and the check of its values."""

from __future__ import annotations

import functools
import inspect
import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import NoneType
from typing import (
    Any,
    Final,
    Literal,
    NotRequired,
    Required,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

from burn.dtype import DType
from burn.errors import ArgumentError, OperandTypeError
from burn.ops.signature import Role
from burn.public_calls import shown_value
from burn.quant_scheme import QuantScheme

__all__ = ["Attribute", "attributes_of", "check_choice", "without"]


class Attribute:
    """A keyword of an op.

    Attributes
    ----------
    name : str
        Its name.
    role : Role
        What it means.
    choices : tuple of str
        The values that it may have, if its role is `Role.CHOICE`.
    optional : bool
        Whether it may be None.
    required : bool
        Whether a call must name it.
    default : object
        Its value in a call that does not; None if it is required.
    """

    __slots__ = ("choices", "default", "name", "optional", "required", "role")

    def __init__(self, name: str, hint: Any, default: Any = inspect.Parameter.empty) -> None:
        self.name = name
        self.required = default is inspect.Parameter.empty
        self.default = None if self.required else default
        roles = [item for item in getattr(hint, "__metadata__", ()) if isinstance(item, Role)]
        if len(roles) != 1:
            raise TypeError("has no role")
        self.role = roles[0]
        kind = get_args(hint)[0]
        self.optional = NoneType in get_args(kind)
        self.choices: tuple[str, ...] = get_args(kind) if get_origin(kind) is Literal else ()
        if (self.role is Role.CHOICE) is not bool(self.choices):
            raise TypeError("is a choice if, and only if, its type is a Literal of the choices")

    def __repr__(self) -> str:
        return f"<attribute {self.name}: {self.role.value}>"

    def check(self, value: Any) -> None:
        """Raise unless a value is of the type that the role says.

        Raises
        ------
        OperandTypeError
            If the type is another one.
        ArgumentError
            If it is none of the choices.
        """
        if value is None and self.optional:
            return
        if self.choices:
            check_choice(self.name, value, self.choices)
            return
        description, accepts = _RULES[self.role]
        if not accepts(value):
            raise OperandTypeError(f"{self.name} must be {description}, not {shown_value(value)}")


def check_choice(name: str, value: str, choices: Iterable[str]) -> None:
    """Raise ArgumentError unless a value is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ArgumentError(
            f"there is no {name} {shown_value(value)}", hint=f"One of {', '.join(choices)}"
        )


def without(attributes: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The attributes of a call without one of them, for an op that shares the others."""
    return {key: value for key, value in attributes.items() if key != name}


def attributes_of(
    op_name: str, parameters: Iterable[inspect.Parameter], hints: Mapping[str, Any]
) -> dict[str, Attribute]:
    """The attributes among the parameters of an op's definition.

    Raises
    ------
    TypeError
        If one is not annotated with a role.
    """
    found = {}
    for name, hint, default in _declared(parameters, hints):
        try:
            found[name] = Attribute(name, hint, default)
        except TypeError as error:
            raise TypeError(
                f"op {op_name}: attribute {name!r} {error}: annotate it with an alias of "
                f"burn.ops.signature, such as Axis or Number"
            ) from None
    return found


def _declared(
    parameters: Iterable[inspect.Parameter], hints: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """Name, annotation and default of each keyword, those in an unpacked TypedDict included."""
    for parameter in parameters:
        hint = hints.get(parameter.name)
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            yield parameter.name, hint, parameter.default
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD and get_origin(hint) is Unpack:
            for name, member in _members(get_args(hint)[0]).items():
                yield name, member, inspect.Parameter.empty


@functools.cache
def _members(attributes: type) -> dict[str, Any]:
    """The annotations of a TypedDict of attributes, all of which are required."""
    members = get_type_hints(attributes, include_extras=True)
    for name, member in members.items():
        if get_origin(member) in (NotRequired, Required):
            raise TypeError(f"{name} in {attributes.__name__} must be required")
    return members


def _is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_tuple_of(accepts: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, (tuple, list)) and all(map(accepts, value))


def _is_group_of(count: int) -> Callable[[Any], bool]:
    integers = _is_tuple_of(_is_integer)
    return lambda value: integers(value) and len(value) == count


_INTEGERS: Final = ("a tuple of integers", _is_tuple_of(_is_integer))
_PAIRS: Final = ("a tuple of pairs of integers", _is_tuple_of(_is_group_of(2)))
_INTEGER: Final = ("an integer", _is_integer)
_NUMBER: Final = ("a number", _is_number)

_RULES: Final[dict[Role, tuple[str, Callable[[Any], bool]]]] = {
    Role.AXIS: _INTEGER,
    Role.BROADCAST_AXIS: _INTEGER,
    Role.AXES: _INTEGERS,
    Role.SHAPE: _INTEGERS,
    Role.SLICES: ("a tuple of (start, length, step)", _is_tuple_of(_is_group_of(3))),
    Role.AXIS_PAIRS: _PAIRS,
    Role.SIZES: _INTEGERS,
    Role.SPATIAL_PAIRS: _PAIRS,
    Role.SPATIAL_NUMBERS: ("a tuple of numbers", _is_tuple_of(_is_number)),
    Role.DTYPE: ("a dtype", lambda value: isinstance(value, DType)),
    Role.INTEGER: _INTEGER,
    Role.NUMBER: _NUMBER,
    Role.SCALAR: ("a number", lambda value: isinstance(value, numbers.Number)),
    Role.RUNTIME_INTEGER: _INTEGER,
    Role.RUNTIME_NUMBER: _NUMBER,
    Role.FLAG: ("True or False", lambda value: isinstance(value, bool)),
    Role.SCHEME: ("a QuantScheme", lambda value: isinstance(value, QuantScheme)),
    Role.GRAPH: ("a program", lambda value: hasattr(value, "operations")),
}
"""Description of the values of a role in a message, and a test for them."""
