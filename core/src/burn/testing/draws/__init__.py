"""Samples that are drawn: ranks, axes, layouts and sizes for every op, the same in each run.

A drawer makes a sample of the choices of a `Draw`. An op without one of its own is drawn by its
tags and the roles of its attributes, and if these do not say enough, as one of its samples in other
layouts. The results are compared with those of the reference of its samples.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final

from burn.dtype import Kind
from burn.ops import Op, Role, Tag
from burn.testing.draws import (
    along_axes,
    creation,
    elementwise,
    indexing,
    layers,
    products,
    views,
    windows,
)
from burn.testing.draws._draw import DRAWERS, Draw, Drawer, Sort, has_slopes, sort_of, with_layouts
from burn.testing.op_samples import OpSamples, Sample

__all__ = ["Sort", "drawn", "has_slopes", "sort_of"]

_ATTEMPTS: Final = 40
"""How often a sample is drawn anew that the op, or who asked for it, does not accept."""

_FAMILIES = (along_axes, creation, elementwise, indexing, layers, products, views, windows)
"""Importing them fills the table of drawers."""


def drawn(
    samples: OpSamples,
    number: int,
    kind: Kind,
    *,
    sort: Sort | None = None,
    accepts: Callable[[Sample], bool] | None = None,
) -> Sample | None:
    """Draw a sample of an op.

    Parameters
    ----------
    samples : OpSamples
        The op, with its samples and their reference.
    number : int
        Which draw; each gives the same in every run.
    kind : Kind
        The kind of dtypes that it is for.
    sort : Sort, optional
        What shall be special about its shapes.
    accepts : callable, optional
        Whether a sample is one to try; else it is drawn anew.

    Returns
    -------
    Sample or None
        None if none was accepted.
    """
    for attempt in range(_ATTEMPTS):
        one = _attempted(samples, number, kind, sort, attempt)
        if one is not None and (accepts is None or accepts(one)):
            return one
    return None


@functools.cache
def _attempted(
    samples: OpSamples, number: int, kind: Kind, sort: Sort | None, attempt: int
) -> Sample | None:
    """One attempt; devices share it, and what its reference gives."""
    DRAWERS.setdefault(samples.op.name, _drawer_of(samples.op))
    return Draw(samples, number, kind, sort, attempt).sample()


def _drawer_of(definition: Op) -> Drawer:
    """What draws the samples of an op that has no drawer of its own."""
    roles = {attribute.role for attribute in definition.attributes.values()}
    is_plain = not any(spec.is_list for spec in definition.operands.values())
    if Tag.ELEMENTWISE in definition.tags and is_plain:
        return elementwise.draw
    if is_plain and Tag.REDUCTION in definition.tags and roles & {Role.AXES, Role.AXIS}:
        return along_axes.draw
    return with_layouts
