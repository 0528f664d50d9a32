"""Sums over events: calls, time, bytes and floating-point operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from burn.ir.cost import Cost, cost
from burn.ops import REGISTRY, Meta, Tag, size
from burn.ops.observing import Event, flat

__all__ = ["Summary", "cost_of", "summaries"]


@dataclass(frozen=True)
class Summary:
    """What all calls of one op take; or those of one line, or on one device.

    Attributes
    ----------
    name : str
        The op, the line or the device.
    calls : int
        Number of calls.
    seconds : float
        Their time.
    share : float
        The part of the time of all calls of the profile, from 0 to 1.
    bytes : int
        Size of operands and outputs, each read or written once; a view has none.
    flops : int
        Floating-point operations, as `burn.ir.cost.cost` counts them.
    """

    name: str
    calls: int
    seconds: float
    share: float
    bytes: int
    flops: int

    @property
    def bytes_per_second(self) -> float:
        """Bytes that are read and written in a second."""
        return self.bytes / self.seconds if self.seconds else 0.0

    @property
    def flops_per_second(self) -> float:
        """Floating-point operations in a second."""
        return self.flops / self.seconds if self.seconds else 0.0


def summaries(events: Iterable[Event], key: Callable[[Event], str], total: int) -> list[Summary]:
    """The sums of the events with each key; the one with the most time first.

    Parameters
    ----------
    events : iterable of Event
        The calls.
    key : callable
        What is summed up together.
    total : int
        The nanoseconds of which `Summary.share` is a part.
    """
    groups: dict[str, list[Event]] = {}
    for event in events:
        groups.setdefault(key(event), []).append(event)
    found = [_summary(name, group, total) for name, group in groups.items()]
    return sorted(found, key=lambda summary: -summary.seconds)


def _summary(name: str, events: list[Event], total: int) -> Summary:
    time = sum([event.duration for event in events])
    return Summary(
        name,
        len(events),
        time / 1e9,
        time / total if total else 0.0,
        sum([cost_of(event).bytes for event in events]),
        sum([cost_of(event).flops for event in events]),
    )


def cost_of(event: Event) -> Cost:
    """Floating-point operations of a call, and bytes: of a transfer, those that move."""
    found: Cost | None = event.cost
    if found is None:
        found = event.cost = _cost_of(event)
    return found


def _cost_of(event: Event) -> Cost:
    if event.kind == "wait":
        return Cost(0, 0)
    if event.kind != "op":
        return Cost(0, _bytes(event.operands))  # each moves once
    definition = REGISTRY.get(event.name)
    if definition is None:  # a write in place
        return Cost(0, _bytes([*event.operands, *event.outputs]))
    flops = cost(event.name, event.operands, event.attributes).flops
    if Tag.VIEW in definition.tags:
        return Cost(flops, 0)
    return Cost(flops, _bytes([*event.operands, *event.outputs]))  # lengths that depend on values


def _bytes(values: Sequence[Any]) -> int:
    metas = [value for value in flat(values) if isinstance(value, Meta)]
    return sum([size(meta.shape) * meta.dtype.itemsize for meta in metas])
