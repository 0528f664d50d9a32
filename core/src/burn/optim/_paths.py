"""Paths of the tensors in containers: of modules, dicts, lists and other trees."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from burn.dispatch import Gradients
from burn.errors import ArgumentError, OperandTypeError
from burn.functions.normalize import check_tensor
from burn.nn.module import Module
from burn.tensor.tensor import Tensor
from burn.tree import Structure, flatten

__all__ = [
    "check_none_is_new",
    "check_paths",
    "matching",
    "named_parameters",
    "named_tensors",
    "paths_of",
    "some",
]

_SHOWN: Final = 8
"""Number of paths that an error lists."""


def named_parameters(parameters: Any, operation: str) -> list[tuple[str, Tensor]]:
    """The parameters of a module or of containers, with their paths.

    Raises
    ------
    OperandTypeError
        If one is no float tensor, or there is none.
    ArgumentError
        If a path or a tensor is there twice.
    """
    if isinstance(parameters, Module):
        named = parameters.named_parameters()
    else:
        named = named_tensors(parameters)
    if not named:
        raise OperandTypeError(
            "there are no parameters",
            hint="Pass a module with parameters, or a list or dict of tensors; a generator counts "
            "as a list only if you write list(...)",
            operation=operation,
        )
    for path, x in named:
        check_tensor(x, f"the parameter {path!r}", operation)
        if not x.dtype.is_float:
            raise OperandTypeError(
                f"the parameter {path!r} has dtype {x.dtype}",
                hint="Parameters are float tensors; leave out the others",
                operation=operation,
            )
    paths: set[str] = set()
    tensors: set[int] = set()
    for path, x in named:
        if path in paths or id(x) in tensors:
            raise ArgumentError(
                f"the {'path' if path in paths else 'tensor'} {path!r} is there twice",
                hint="Name each parameter once",
                operation=operation,
            )
        paths.add(path)
        tensors.add(id(x))
    return named


def check_none_is_new(
    module: Module, parameters: Iterable[Tensor], gradients: Gradients, operation: str
) -> None:
    """Raise ArgumentError if a parameter with a gradient came to a module after its optimizer."""
    own = {id(x) for x in parameters}
    new = [path for path, x in module.named_parameters() if id(x) not in own and x in gradients]
    if new:
        raise ArgumentError(
            f"the module has parameters that it got after its optimizer: {some(new)}",
            hint="Make the optimizer when the model is complete. To leave them to another "
            "optimizer, pass the list of parameters instead of the module",
            operation=operation,
        )


def check_paths(gradients: Mapping[str, Any], paths: Sequence[str], operation: str) -> None:
    """Raise ArgumentError if there is a gradient by a path that no parameter has."""
    own = set(paths)
    unknown = [
        path for path, gradient in gradients.items() if gradient is not None and path not in own
    ]
    if unknown:
        raise ArgumentError(
            f"no parameters have these paths of gradients: {some(unknown)}",
            hint=f"There are {some(paths)}. Make the optimizer when the model is complete",
            operation=operation,
        )


def named_tensors(tree: Any) -> list[tuple[str, Any]]:
    """The leaves of a tree with their paths; of a list of (path, leaf) the pairs."""
    if isinstance(tree, (list, tuple)) and tree and all(_is_pair(part) for part in tree):
        return list(tree)
    leaves, structure = flatten(tree)
    return list(zip(paths_of(structure), leaves, strict=True))


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str)


def paths_of(structure: Structure, prefix: str = "") -> list[str]:
    """The path of each leaf of a structure: keys and indices with dots between them."""
    if structure.kind is None:
        return [prefix.removesuffix(".")]
    keys: Sequence[Any] = range(len(structure.children))
    if issubclass(structure.kind, Module):
        keys = structure.metadata.paths
    elif issubclass(structure.kind, dict):
        keys = structure.metadata
    elif issubclass(structure.kind, tuple):
        keys = getattr(structure.kind, "_fields", keys)
    return [
        path
        for key, child in zip(keys, structure.children, strict=True)
        for path in paths_of(child, f"{prefix}{key}.")
    ]


def matching(pattern: str, paths: Sequence[str], operation: str) -> list[int]:
    """The indices of the paths that fit a pattern.

    Raises
    ------
    ArgumentError
        If there is none.
    """
    found = [index for index, path in enumerate(paths) if fnmatch.fnmatchcase(path, pattern)]
    if not found:
        raise ArgumentError(
            f"no parameter is called {pattern!r}",
            hint=f"There are {some(paths)}",
            operation=operation,
        )
    return found


def some(names: Sequence[str]) -> str:
    """Names for an error, of which it lists the first ones."""
    more = f", ... {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
