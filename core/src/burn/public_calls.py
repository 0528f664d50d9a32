"""The public function that a user called, for errors: found on the stack when an error is made.

A public function is often made of others: `topk` of the op ``argtopk``, `Tensor.tolist` of a
transfer. An error names the one that the user called. Calls that succeed pay nothing for it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import CodeType, FrameType, MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeVar

__all__ = [
    "did_you_mean",
    "exports",
    "has_callers",
    "has_functions",
    "has_methods",
    "passes_on",
    "public_name",
    "public_operation",
    "rename_op",
    "shown_as_text",
    "shown_value",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Class = TypeVar("_Class", bound=type)

_MAX_LENGTH: Final = 60
"""Characters of an argument in a message."""

_MAX_BITS: Final = 192
"""Bits of an integer whose digits a message has."""

_MAX_SHOWN: Final = 8
"""Elements of a list in a message."""

_ROOT: Final = __name__.partition(".")[0] + "."


class _Package(NamedTuple):
    """What a package or module says of its functions, for frames of these on the stack."""

    has: Literal["callers", "functions", "methods"]
    names: Collection[str] = ()
    """The public functions, where these are not those that something exports."""
    prefix: str = ""
    shown: Mapping[str, str] = MappingProxyType({})


_packages: Final[dict[str, _Package]] = {}
_exporters: Final[list[Mapping[str, Any]]] = []
_texts: Final[set[type]] = set()
_renamed: Final[dict[str, str]] = {}


def has_callers(package: str) -> None:
    """Tell errors that the functions of a package call public functions as users do."""
    _packages[package] = _Package("callers")


def has_functions(package: str, prefix: str = "", names: Collection[str] = ()) -> None:
    """Tell errors that a package has public functions.

    Parameters
    ----------
    package : str
        Its name, or that of a module.
    prefix : str
        What messages write before the names: ``random.`` where they mean something elsewhere.
    names : collection of str
        The public names; those that something exports if left out.
    """
    _packages[package] = _Package("functions", names, prefix)


def has_methods(package: str, shown: Mapping[str, str]) -> None:
    """Tell errors that the methods of a package are public, and how they show special ones."""
    _packages[package] = _Package("methods", shown=shown)


def exports(names: Mapping[str, Any]) -> None:
    """Tell errors the public names of a module or class: its ``globals()``, or ``vars`` of it."""
    _exporters.append(names)


def passes_on(function: _Function) -> _Function:
    """Decorator: the function calls what its user names, and errors name that."""
    _public_codes[function.__code__] = False
    return function


def shown_as_text(cls: _Class) -> _Class:
    """Decorator: messages show the text of objects of this class, which is short."""
    _texts.add(cls)
    return cls


def rename_op(op: str, name: str) -> None:
    """Tell errors that the function of an op has another name."""
    if name != op:
        _renamed[op] = name


def public_operation(operation: str) -> str:
    """What an error names in its beginning: the public function that runs, with its arguments.

    Parameters
    ----------
    operation : str
        What the code that found the error calls the operation: ``argtopk(float32[3], k=5)``.

    Returns
    -------
    str
        `operation`, where it names the function that the user called or where none is found;
        else that function: ``topk(float32[3], 5)``.
    """
    if not operation.partition("(")[0].replace(".", "").isidentifier():
        return operation  # "", or no call: "gradient of add([3], [3])"
    found = _public_frame(sys._getframe())
    name, opened, rest = operation.partition("(")
    name = _renamed.get(name, name)
    if found is None or name.rpartition(".")[2] == _short_name(found):
        return name + opened + rest
    return _described(found)


def public_name(op: str, frame: FrameType | None = None) -> str:
    """The name of the public function that runs; where none does, that of an op's function.

    It is that which called the function of `frame`, if given, else this one.
    """
    found = _public_frame(frame or sys._getframe())
    return _renamed.get(op, op) if found is None else _name(found)


def _public_frame(frame: FrameType | None) -> FrameType | None:
    """The outermost public function that runs, up to a function of the user or of a plugin."""
    found: FrameType | None = None
    while frame is not None:
        is_public = _public_codes.get(frame.f_code)
        if is_public is None:
            module = frame.f_globals.get("__name__", "")
            package = _package_of(module)
            if not module.startswith(_ROOT) or (package and package.has == "callers"):
                break
            is_public = package is not None and _is_public(frame, package)
            if is_public or not package or package.has == "methods":  # else exported later, perhaps
                _public_codes[frame.f_code] = is_public
        if is_public:
            found = frame
        frame = frame.f_back
    return found


_public_codes: Final[dict[CodeType, bool]] = {}
"""Whether functions of burn are public, by their code: of each call of an asynchronous device whose
indices are checked that is asked."""


def _package_of(module: str) -> _Package | None:
    """What a module, or else the innermost package around it, says of its functions."""
    while module and module not in _packages:
        module = module.rpartition(".")[0]
    return _packages.get(module)


def _is_public(frame: FrameType, package: _Package) -> bool:
    owner, _, name = frame.f_code.co_qualname.rpartition(".")
    if package.has == "functions":
        if package.names:
            return not owner and name in package.names
        return not owner and any(name in names for names in _exporters)
    return "<" not in owner and (
        name in package.shown or (owner != "" and not name.startswith("_"))
    )


def _short_name(frame: FrameType) -> str:
    package = _package_of(frame.f_globals["__name__"])
    name = frame.f_code.co_name
    return package.shown.get(name, name) if package else name


def _name(frame: FrameType) -> str:
    package = _package_of(frame.f_globals["__name__"])
    return (package.prefix if package else "") + _short_name(frame)


def _described(frame: FrameType) -> str:
    """A call as in a message: its arguments, without those that have their default."""
    return f"{_name(frame)}({', '.join(_arguments(frame))})"


def _arguments(frame: FrameType) -> Iterator[str]:
    values = frame.f_locals
    function: Any = frame.f_globals
    for part in frame.f_code.co_qualname.split("."):
        function = function.get(part) if isinstance(function, dict) else vars(function).get(part)
    try:
        parameters = inspect.signature(inspect.unwrap(function)).parameters.values()
    except TypeError:
        return
    for parameter in parameters:
        value = values.get(parameter.name)
        if parameter.kind is parameter.VAR_POSITIONAL:
            yield from map(_shown, value or ())
        elif parameter.kind is parameter.VAR_KEYWORD:
            yield from (f"{name}={_shown(given)}" for name, given in (value or {}).items())
        elif parameter.default is parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY:
            yield _shown(value)
        elif value is not parameter.default:
            yield f"{parameter.name}={_shown(value)}"


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """A hint with the names that are like an unknown one, each once; `otherwise` where none is.

    Examples
    --------
    >>> did_you_mean("amax", ["max", "max", "sum"], "See the list")
    'Did you mean max?'
    >>> did_you_mean("softmax", ["softmax"], "See the list")
    'See the list'
    """
    import difflib  # slow to import, and used by errors alone

    others = dict.fromkeys(item for item in known if item != name)
    near = difflib.get_close_matches(name, others)
    return f"Did you mean {' or '.join(near)}?" if near else otherwise


def shown_value(value: Any) -> str:
    """A wrong argument as a rule quotes it: of what is no number, text or sequence, the type."""
    text, name = _shown(value), type(value).__name__
    return f"an object of type {name}" if text == name else text


def _shown(value: Any) -> str:
    """An argument as in a message; of an object that may be large, the type."""
    if hasattr(type(value), "tensor_type") and hasattr(value, "primitive"):
        return f"{value.tensor_type.dtype}[{', '.join(map(str, value.primitive.shape))}]"
    if isinstance(value, (list, tuple)):
        return _shown_sequence(value)
    if isinstance(value, tuple(_texts)):
        return str(value)
    if value.__class__ is int and value.bit_length() > _MAX_BITS:
        return f"an integer of {value.bit_length()} bits"
    if value is None or isinstance(value, _PLAIN):
        return _shortened(value)
    return type(value).__name__


_PLAIN: Final = (bool, int, float, complex, str, slice, type(...))


def _shown_sequence(values: list[Any] | tuple[Any, ...]) -> str:
    parts = list(map(_shown, values[:_MAX_SHOWN]))
    if len(values) > _MAX_SHOWN:
        parts.append(f"... {len(values) - _MAX_SHOWN} more")
    if isinstance(values, list):
        return f"[{', '.join(parts)}]"
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _shortened(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 — of an integer with too many digits, or an object of a user
        return type(value).__name__
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}..."
