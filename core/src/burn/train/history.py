"""What a run was: its values after each epoch, and those of some steps."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Self

from burn.errors import OperandTypeError
from burn.train._inputs import values_of
from burn.train._values import pick

__all__ = ["History"]


class History:
    """The values of a run.

    Parameters
    ----------
    records : iterable of dict
        The values of each epoch.
    steps : iterable of dict
        The values of single steps.

    Attributes
    ----------
    records : list of dict
        One for each epoch, or every so many steps: ``epoch`` and ``step``, both counted from 1; the
        means of the values of the steps since the last record; the values of the evaluation, whose
        names begin with ``val_``; ``seconds`` since the run began; ``examples_per_second``.
    steps : list of dict
        The values of every so many steps, as ``log_every`` of `fit` says.

    Examples
    --------
    >>> import burn
    >>> history = burn.train.History(
    ...     [{"epoch": 1, "step": 50, "loss": 0.7}, {"epoch": 2, "step": 100, "loss": 0.4}]
    ... )
    >>> history["loss"]
    [0.7, 0.4]
    >>> history.last
    {'epoch': 2, 'step': 100, 'loss': 0.4}
    """

    def __init__(
        self, records: Iterable[Mapping[str, Any]] = (), steps: Iterable[Mapping[str, Any]] = ()
    ) -> None:
        self.records = [dict(record) for record in records]
        self.steps = [dict(record) for record in steps]

    @property
    def names(self) -> list[str]:
        """What the records have, each name once."""
        return [*dict.fromkeys(name for record in self.records for name in record)]

    @property
    def last(self) -> dict[str, Any]:
        """The last record; empty before the first."""
        return self.records[-1] if self.records else {}

    def __getitem__(self, name: str) -> list[Any]:
        """The values of that name in all records; of the evaluation if the steps have none."""
        if not isinstance(name, str):
            raise OperandTypeError(
                f"a history has values by their names, not by {name!r}",
                hint="history.records is the list of all",
                operation="History",
            )
        found = pick(name, dict.fromkeys(self.names), "History")
        return [record[found] for record in self.records if found in record]

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __len__(self) -> int:
        return len(self.records)

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Save the curves of all values as a picture.

        What the steps and the evaluation have by one name is in one plot. matplotlib draws it,
        without a display and without its global state.

        Parameters
        ----------
        path : str or path
            A file whose ending is that of a format of matplotlib: ``.png``, ``.svg``, ``.pdf``.

        Raises
        ------
        ArgumentError
            If there is nothing to draw, or matplotlib has no such format.
        StoreError
            If the file cannot be written.
        """
        from burn.train import _curves

        _curves.draw(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The history in a log that `fit` wrote; of a run that is not over, as far as it is.

        Parameters
        ----------
        path : str or path
            A file of JSON lines.

        Returns
        -------
        History
            Its records and steps.

        Raises
        ------
        StoreError
            If there is no such file, or it is no log of `fit`.
        """
        from burn.train import _log

        history = cls()
        for event in _log.read(path):
            kind = event.pop("event", None)
            if kind in ("epoch", "evaluation", "step"):
                (history.steps if kind == "step" else history.records).append(event)
        return history

    def state_dict(self) -> dict[str, Any]:
        """All records, for a checkpoint.

        Returns
        -------
        dict of str to list
            ``records`` and ``steps``.
        """
        return {
            "records": [dict(record) for record in self.records],
            "steps": [dict(record) for record in self.steps],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take the records of a state in place of one's own.

        Parameters
        ----------
        state : mapping of str to list
            From `state_dict`.

        Raises
        ------
        ArgumentError
            If it is no such state.
        """
        records, steps = values_of(state, ("records", "steps"), "History")
        self.__init__(records, steps)  # type: ignore[misc]  # the same as a new one

    def __repr__(self) -> str:
        last = ", ".join(f"{name}={_short(value)}" for name, value in self.last.items())
        return f"History({len(self.records)} records; last: {last or 'none'})"


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
