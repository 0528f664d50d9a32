"""The public function that a user called, for errors: found on the stack when an error is made.

A public function is often made of others: `topk` of the op ``argtopk``, `Tensor.tolist` of a
transfer. An error names the one that the user called. Calls that succeed pay nothing for it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType
from typing import Any, Final

__all__ = ["did_you_mean", "public_name", "public_operation", "rename_op", "shown_value"]

_FUNCTIONS: Final = "burn.functions."
_TENSOR: Final = "burn.tensor."

_USERS: Final = (
    "burn.cli",
    "burn.data",
    "burn.interop",
    "burn.nn",
    "burn.optim",
    "burn.store",
    "burn.testing",
    "burn.train",
    "burn.transforms",
)
"""Packages that call public functions as users do."""

_NAMESPACES: Final = (
    "burn.namespace",
    "burn.fft",
    "burn.linalg",
    "burn.nn.functional",
    "burn.optim",
    "burn.quantization",
    "burn.random",
    "burn.signal",
)
"""Modules whose names are public."""

_TRANSPARENT: Final = ("apply_op",)
"""Functions that call what the user names."""

_FUNCTIONS_OF_LAYERS: Final = ("burn.nn.init", "burn.optim.clipping")
"""Modules of public functions in those packages."""

_METHODS: Final = {
    "__array__": "numpy",
    "__complex__": "complex",
    "__contains__": "in",
    "__float__": "float",
    "__format__": "format",
    "__index__": "int",
    "__int__": "int",
    "getitem": "indexing",
    "setitem": "indexing",
    "__bool__": "bool",
}
"""What messages call a special method; others keep their name."""

_PREFIXES: Final = {
    "burn.functions.random": "random.",
    "burn.functions.sampling": "random.",
    "burn.nn.init": "nn.init.",
}
"""What messages write before the functions of modules whose names mean something elsewhere."""

_MAX_LENGTH: Final = 60
"""Characters of an argument in a message."""

_MAX_BITS: Final = 192
"""Bits of an integer whose digits a message has."""

_MAX_SHOWN: Final = 8
"""Elements of a list in a message."""

_renamed: Final[dict[str, str]] = {}


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
            if not module.startswith("burn.") or (
                module.startswith(_USERS) and module not in _FUNCTIONS_OF_LAYERS
            ):
                break
            is_public = _is_public(frame.f_code, module)
            if is_public or not module.startswith(_FUNCTIONS):  # else it may be exported later
                _public_codes[frame.f_code] = is_public
        if is_public:
            found = frame
        frame = frame.f_back
    return found


_public_codes: Final[dict[CodeType, bool]] = {}
"""Whether functions of burn are public, by their code: of each call of an asynchronous device whose
indices are checked that is asked."""


def _is_public(code: CodeType, module: str) -> bool:
    owner, _, name = code.co_qualname.rpartition(".")
    if module in _FUNCTIONS_OF_LAYERS:
        return not owner and name in sys.modules[module].__all__
    if module.startswith(_FUNCTIONS):
        return not owner and name not in _TRANSPARENT and _is_exported(name)
    if not module.startswith(_TENSOR) or "<" in owner:
        return False
    return name in _METHODS or (owner != "" and not name.startswith("_"))


def _is_exported(name: str) -> bool:
    if name in getattr(sys.modules.get("burn.tensor.tensor"), "Tensor", object).__dict__:
        return True  # a function that is a method as well
    return any(name in vars(sys.modules[item]) for item in _NAMESPACES if item in sys.modules)


def _short_name(frame: FrameType) -> str:
    name = frame.f_code.co_name
    return _METHODS.get(name, name)


def _name(frame: FrameType) -> str:
    return _PREFIXES.get(frame.f_globals["__name__"], "") + _short_name(frame)


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
    if type(value).__module__.startswith(_BURN):
        return str(value)
    if value.__class__ is int and value.bit_length() > _MAX_BITS:
        return f"an integer of {value.bit_length()} bits"
    if value is None or isinstance(value, _PLAIN):
        return _shortened(value)
    return type(value).__name__


_PLAIN: Final = (bool, int, float, complex, str, slice, type(...))
_BURN: Final = ("burn.dtype", "burn.devices", "burn.quant_scheme")
"""Modules of classes whose text is short."""


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
