"""Sums over events: calls, time, bytes and floating-point operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from burn.ir.cost import cost
from burn.ops import REGISTRY, Meta, Tag, size
from burn.ops.observing import Event, flat

__all__ = ["Summary", "bytes_of", "flops_of", "summaries"]


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
    return sorted(found, key=lambda one: -one.seconds)


def _summary(name: str, events: list[Event], total: int) -> Summary:
    time = sum([event.duration for event in events])
    return Summary(
        name,
        len(events),
        time / 1e9,
        time / total if total else 0.0,
        sum(map(bytes_of, events)),
        sum(map(flops_of, events)),
    )


def flops_of(event: Event) -> int:
    """Floating-point operations of a call."""
    if event.name not in REGISTRY:
        return 0
    return cost(event.name, event.operands, event.attributes).flops


def bytes_of(event: Event) -> int:
    """Size of the tensors of a call; of a transfer, of the one that moves."""
    definition = REGISTRY.get(event.name)
    if definition is not None and Tag.VIEW in definition.tags:
        return 0
    moves_once = event.kind in {"upload", "read", "copy"}
    values = flat(event.operands if moves_once else [*event.operands, *event.outputs])
    return sum([_bytes(value) for value in values if isinstance(value, Meta)])


def _bytes(meta: Meta) -> int:
    return size(meta.shape) * meta.dtype.itemsize
