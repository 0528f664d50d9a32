"""SubjectSummary: what a report says of a device, which a worker process sends to the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from burn.dtype import DType
from burn.ops import REGISTRY
from burn.testing.subject import Subject

__all__ = ["SubjectSummary"]


@dataclass(frozen=True)
class SubjectSummary:
    """A device under test, without the backend.

    Attributes
    ----------
    name : str
        The device as users know it, or what stands for it.
    hardware, driver : str
        What it is; "" for a backend that is not registered.
    hides : bool
        Whether what the backend has beyond the required ops is hidden.
    compiles : bool
        Whether each call of an op is compiled.
    origins : dict of str to str
        Where the backend has each op from; see `OpTable.origin`.
    dtypes : frozenset of DType
        With which dtypes it computes.
    """

    name: str
    hardware: str
    driver: str
    hides: bool
    compiles: bool
    origins: Mapping[str, str]
    dtypes: frozenset[DType]

    @classmethod
    def of(cls, subject: Subject) -> Self:
        """The summary of a subject."""
        handle = subject.handle
        return cls(
            handle.name if handle else repr(subject),
            handle.info.hardware if handle else "",
            handle.info.driver if handle else "",
            subject.hides,
            subject.compiles,
            {name: subject.table.origin(definition) for name, definition in REGISTRY.items()},
            frozenset([dtype for dtype in DType.members() if subject.supports(dtype)]),
        )

    @property
    def title(self) -> str:
        """What is tried, in one line."""
        modes = ["required ops alone"] if self.hides else []
        modes += ["compiled"] if self.compiles else []
        hardware = f" ({self.hardware})" if self.hardware else ""
        return ", ".join([f"{self.name}{hardware}", *modes])

    def as_json(self) -> dict[str, Any]:
        """The same for another process."""
        record = asdict(replace(self, dtypes=frozenset()))
        return {**record, "dtypes": [dtype.name for dtype in self.dtypes]}

    @classmethod
    def of_json(cls, record: Mapping[str, Any]) -> Self:
        """The summary that `as_json` wrote."""
        return cls(**{**record, "dtypes": frozenset(map(DType.of, record["dtypes"]))})
