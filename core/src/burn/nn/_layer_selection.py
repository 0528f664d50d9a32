"""The layers of a model whose weights can be quantized, and those of them that a user names."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from burn.errors import ArgumentError, OperandTypeError
from burn.nn._slots import modules_of
from burn.nn.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    DeformConv2d,
)
from burn.nn.linear import Embedding, Linear

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.nn.module import Module
    from burn.quant_scheme import QuantScheme

__all__ = ["Only", "scheme_for", "selected_layers"]

Only: TypeAlias = (
    "str | type[Module] | Callable[[str, Module], bool] | tuple[Any, ...] | list[Any] | None"
)
"""Patterns of paths, classes of layers or of modules around them, functions of path and layer."""

_LAYERS: Final = (
    Linear,
    Embedding,
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    DeformConv2d,
)
"""Classes of modules whose attribute `weight` can be a quantized tensor."""

_SHOWN: Final = 8
"""Number of paths that an error lists."""


def selected_layers(model: Module, only: Only, operation: str) -> list[tuple[str, Module]]:
    """The layers of a tree of modules with weights to quantize, with their paths.

    Raises
    ------
    ArgumentError
        If there is none, or a pattern or class fits none.
    OperandTypeError
        If `only` is something else.
    """
    layers: list[tuple[str, Module]] = [
        (path, module) for path, module in modules_of(model) if isinstance(module, _LAYERS)
    ]
    if not layers:
        names = ", ".join(item.__name__ for item in _LAYERS)
        raise ArgumentError(
            f"{type(model).__name__} has no layer whose weights can be quantized",
            hint=f"Those of {names} can; another tensor by Tensor.quantize_dynamic",
            operation=operation,
        )
    if only is None:
        return layers
    found: set[int] = set()
    for item in only if isinstance(only, (tuple, list)) else (only,):
        fitting = _fitting(model, layers, item, operation)
        if not fitting:
            paths = [path or "(the model itself)" for path, _ in layers]
            more = f", ... {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
            raise ArgumentError(
                f"no layer with weights to quantize fits {_shown(item)}",
                hint=f"There are {', '.join(paths[:_SHOWN])}{more}",
                operation=operation,
            )
        found |= fitting
    return [(path, layer) for path, layer in layers if id(layer) in found]


def scheme_for(scheme: QuantScheme, shape: Shape) -> QuantScheme:
    """A scheme as it fits a shape: packed along another axis, or natively, where it has to be.

    The numbers of codes and scales, and so the error, are the same.

    Raises
    ------
    ShapeError
        If its blocks do not divide the shape.
    """
    scheme.native.check(shape)
    if scheme.per_word == 1:
        return scheme
    for axis in (scheme.store.axis, *range(-1, -len(shape) - 1, -1)):
        packed = scheme.with_store(replace(scheme.store, axis=axis))
        if len(shape) >= -axis and not shape[axis] % packed.per_word:
            return packed
    return scheme.native


def _fitting(model: Module, layers: list[tuple[str, Module]], one: Any, operation: str) -> set[int]:
    """The ids of the layers that one pattern, class or function names."""
    if isinstance(one, str):
        return {id(layer) for path, layer in layers if fnmatch.fnmatchcase(path, one)}
    if isinstance(one, type):
        around = [module for module in model.modules() if isinstance(module, one)]
        return {id(below) for module in around for below in module.modules()} & {
            id(layer) for _, layer in layers
        }
    if callable(one):
        return {id(layer) for path, layer in layers if one(path, layer)}
    raise OperandTypeError(
        f"only is an object of type {type(one).__name__}",
        hint='Pass a pattern of paths ("layers.*"), a class of modules, a function of path and '
        "layer that returns a bool, or a list of these",
        operation=operation,
    )


def _shown(one: Any) -> str:
    return getattr(one, "__name__", repr(one)) if callable(one) else repr(one)
