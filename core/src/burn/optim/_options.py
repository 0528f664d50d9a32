"""Options of optimizers, and for which parameters they are others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from burn.errors import OperandTypeError
from burn.optim._paths import matching

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["Common", "Lists", "Mask", "Rate", "Values", "check_groups", "overrides_of"]

Rate: TypeAlias = "float | Callable[[int], float]"
"""A learning rate, or a schedule: the rate of each step, which are counted from 1."""

Mask: TypeAlias = "str | Sequence[str] | Callable[[str, Tensor], bool]"
"""Patterns of paths, or a function of a path and a parameter."""

Values: TypeAlias = "tuple[Sequence[Tensor], Sequence[Sequence[Tensor]]]"
"""Parameters, and for each state that an optimizer keeps, that state of each parameter."""

Lists: TypeAlias = "tuple[list[Tensor], list[Tensor], list[list[Tensor]]]"
"""Parameters, their gradients, and for each state that an optimizer keeps a list of it."""


class Common(TypedDict, total=False):
    """The keywords of every optimizer; see `Optimizer`."""

    groups: Mapping[str, Mapping[str, Any]] | None
    weight_decay_mask: Mask | None
    clip_value: float | None
    clip_norm: float | None


def check_groups(groups: Any, operation: str) -> None:
    """Raise OperandTypeError unless groups are a mapping of patterns to mappings of options."""
    if groups is None:
        return
    if not isinstance(groups, Mapping) or not all(
        isinstance(key, str) and isinstance(given, Mapping) for key, given in groups.items()
    ):
        raise OperandTypeError(
            f"groups must be a dict of patterns and options, not {groups!r}",
            hint='Write groups={"*.bias": {"weight_decay": 0.0}}',
            operation=operation,
        )


def overrides_of(
    named: Sequence[tuple[str, Tensor]],
    groups: Mapping[str, Mapping[str, Any]],
    mask: Sequence[str] | Callable[[str, Tensor], bool] | None,
    operation: str,
) -> list[dict[str, Any]]:
    """For each parameter the options that differ from those of the optimizer.

    Raises
    ------
    ArgumentError
        If a pattern fits no parameter.
    """
    paths = [path for path, _ in named]
    overrides: list[dict[str, Any]] = [{} for _ in named]
    for pattern, given in groups.items():
        for index in matching(pattern, paths, operation):
            overrides[index].update(given)
    if mask is None:
        return overrides
    if callable(mask):
        decaying = {index for index, pair in enumerate(named) if mask(*pair)}
    else:
        decaying = {number for pattern in mask for number in matching(pattern, paths, operation)}
    for index in set(range(len(named))) - decaying:
        overrides[index]["weight_decay"] = 0.0
    return overrides
