"""The parts of a checkpoint as JSON and tensors with names, and back.

JSON has no tuples, no NaN, and programs differ in how large its integers may be. What it lacks is
an object with a key that begins with ``$``: ``{"$tuple": [1, 2]}``, ``{"$tensor": "0.weight"}``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from burn.dtype import DType
from burn.errors import ArgumentError, BurnError, OperandTypeError
from burn.tensor.tensor import Tensor
from burn.tensor_data import check_unmasked

__all__ = ["MalformedError", "PartEncoder", "TensorSource", "decoded"]

_DEEPEST: Final = 100
"""Number of containers in one another that a part may have: more is one that contains itself."""

_JSON_BITS: Final = 63
"""Integers of so many bits are numbers in JSON; larger ones are text, which has no limit."""

_OPERATION: Final = "Checkpoints.save"

_Path: TypeAlias = tuple[str | int, ...]


class MalformedError(Exception):
    """JSON that `PartEncoder` does not write; the message says what is wrong with it."""


class TensorSource(Protocol):
    """What `decoded` reads tensors from."""

    def tensor(self, name: str, device: str) -> Tensor:
        """A tensor on a device, or on the default one if there is no such device."""

    def array(self, name: str) -> Any:
        """An array of NumPy that nothing else refers to."""


class PartEncoder:
    """Takes the value of one part apart.

    Parameters
    ----------
    part : str
        Name of the part, for errors and for a tensor that is the whole part.

    Attributes
    ----------
    tensors : dict of str to (Tensor or numpy.ndarray)
        The tensors, without gradients, and copies of the arrays, by the paths to them.
    """

    def __init__(self, part: str) -> None:
        self.part = part
        self.tensors: dict[str, Tensor | np.ndarray[Any, Any]] = {}

    def encode(self, value: Any, path: _Path = ()) -> Any:
        """What JSON holds of a value, whose tensors are then in `tensors`.

        Raises
        ------
        OperandTypeError
            If the value contains an object that a checkpoint cannot hold.
        ArgumentError
            If it contains itself, or two tensors have one name.
        """
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, np.generic) and value.dtype.kind in "biuf":
            value = value.item()  # a number of NumPy is as good as one of Python
        if isinstance(value, int | float | DType):
            return _encoded(value)
        if isinstance(value, Tensor):
            device = value.device.hardware.name
            return {"$tensor": self._add(value.detach().inner(), path), "device": device}
        if isinstance(value, np.ndarray):
            return {"$array": self._add(self._copied(value, path), path)}
        if len(path) > _DEEPEST:
            raise ArgumentError(
                f"{self._shown(path[:3])}... has more than {_DEEPEST} containers in one another",
                hint="Save a container that does not contain itself",
                operation=_OPERATION,
            )
        if isinstance(value, Mapping):
            return self._mapping(value, path)
        if isinstance(value, list | tuple):
            items = [self.encode(part, (*path, index)) for index, part in enumerate(value)]
            return {"$tuple": items} if isinstance(value, tuple) else items
        raise OperandTypeError(
            f"{self._shown(path)} is {_named(value)}, which a checkpoint cannot hold",
            hint="A part is an object with the methods state_dict and load_state_dict, a tensor, "
            "an array, a numpy.random.Generator, None, a bool, a number, a string, a dtype, or "
            "lists, tuples and dicts of these",
            operation=_OPERATION,
        )

    def _mapping(self, value: Mapping[Any, Any], path: _Path) -> dict[str, Any]:
        for key in value:
            if not isinstance(key, str):
                raise OperandTypeError(
                    f"{self._shown(path)} has the key {key!r}, and keys are strings",
                    hint="Use str(key)",
                    operation=_OPERATION,
                )
        encoded = {str(key): self.encode(part, (*path, key)) for key, part in value.items()}
        return {"$dict": encoded} if any(key.startswith("$") for key in encoded) else encoded

    def _add(self, x: Tensor | np.ndarray[Any, Any], path: _Path) -> str:
        name = ".".join(map(str, path)) or self.part
        try:
            name.encode()
        except UnicodeEncodeError:
            is_allowed = False
        else:
            is_allowed = name != "__metadata__"
        if not is_allowed:
            raise ArgumentError(
                f"{self._shown(path)} has a name that the file format does not allow",
                hint="Choose another key",
                operation=_OPERATION,
            )
        if name in self.tensors:
            raise ArgumentError(
                f"two tensors of the part {self.part!r} have the path {name!r}",
                hint="Choose another key for one of them",
                operation=_OPERATION,
            )
        self.tensors[name] = x
        return name

    def _copied(self, array: np.ndarray[Any, Any], path: _Path) -> np.ndarray[Any, Any]:
        """A copy, as others may write to an array while it is saved."""
        try:
            check_unmasked(array)
            dtype = DType.of(array.dtype)
        except BurnError as error:
            raise OperandTypeError(
                f"{self._shown(path)} is an array of {array.dtype}: {error}", operation=_OPERATION
            ) from None
        return np.array(array, dtype.numpy, order="C", subok=False)

    def _shown(self, path: _Path) -> str:
        return self.part + "".join(f"[{item!r}]" for item in path)


def _encoded(value: float | DType) -> Any:
    if isinstance(value, int):
        return value if value.bit_length() <= _JSON_BITS else {"$int": hex(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(float(value))}
    return {"$dtype": value.name}


def _named(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}, no object of it"
    return f"an object of type {type(value).__module__}.{type(value).__qualname__}"


def decoded(node: Any, source: TensorSource, depth: int = 0) -> Any:
    """The value that `PartEncoder.encode` made JSON of.

    Raises
    ------
    MalformedError
        If it did not.
    """
    if depth > _DEEPEST + 1:
        raise MalformedError(f"more than {_DEEPEST} containers in one another")
    if isinstance(node, list):
        return [decoded(item, source, depth + 1) for item in node]
    if not isinstance(node, dict):
        return node
    tag = next((key for key in node if key.startswith("$")), None)
    if tag is None:
        return {key: decoded(value, source, depth + 1) for key, value in node.items()}
    content = node[tag]
    expected = {"$tensor": {tag, "device"}}.get(tag, {tag})
    if tag not in _DECODERS or set(node) != expected:
        raise MalformedError(f"an object with the keys {sorted(node)}")
    kind, decode = _DECODERS[tag]
    if not isinstance(content, kind):
        raise MalformedError(f"{tag} with {type(content).__name__}")
    return decode(content, node, source, depth + 1)


def _decoded_tensor(name: str, node: dict[str, Any], source: TensorSource, _: int) -> Tensor:
    if not isinstance(node["device"], str):
        raise MalformedError("a device that is no name")
    return source.tensor(name, node["device"])


def _decoded_dtype(name: str) -> DType:
    try:
        return DType.of(name)
    except BurnError as error:
        raise MalformedError(str(error)) from None


def _decoded_number(parse: Callable[[str], Any]) -> Callable[..., Any]:
    def decode(text: str, *_: object) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise MalformedError(str(error)) from None

    return decode


def _decoded_dict(
    content: dict[str, Any], _: object, source: TensorSource, depth: int
) -> dict[str, Any]:
    return {key: decoded(value, source, depth) for key, value in content.items()}


def _decoded_tuple(
    content: Sequence[Any], _: object, source: TensorSource, depth: int
) -> tuple[Any, ...]:
    return tuple([decoded(item, source, depth) for item in content])


_DECODERS: Final[dict[str, tuple[type, Callable[..., Any]]]] = {
    "$array": (str, lambda name, _node, source, _depth: source.array(name)),
    "$dict": (dict, _decoded_dict),
    "$dtype": (str, lambda name, _node, _source, _depth: _decoded_dtype(name)),
    "$float": (str, _decoded_number(float)),
    "$int": (str, _decoded_number(lambda text: int(text, 16))),
    "$tensor": (str, _decoded_tensor),
    "$tuple": (list, _decoded_tuple),
}
"""By the key that begins with ``$``: the type of its value, and what makes an object of it."""
