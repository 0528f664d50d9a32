"""Exceptions on their way from a worker."""

from __future__ import annotations

import pickle
import traceback
from typing import NamedTuple

from burn.errors import WorkerError

__all__ = ["Failure"]


class Failure(NamedTuple):
    """An exception of a worker.

    Attributes
    ----------
    data : bytes or None
        Its pickle; None if it has none that gives the same exception.
    summary, text : str
        Its type and message; its traceback.
    """

    data: bytes | None
    summary: str
    text: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """What another process needs to raise an exception.

        Parameters
        ----------
        error : BaseException
            The exception, as it was caught.

        Returns
        -------
        Failure
            For the pipe.
        """
        text = "".join(traceback.format_exception(error)).rstrip()
        summary = traceback.format_exception_only(error)[0].rstrip()
        data = None
        try:
            again = pickle.loads(data := pickle.dumps(error))  # noqa: S301 — what it wrote
            if type(again) is not type(error) or str(again) != str(error):
                data = None
        except Exception:  # noqa: BLE001 — a constructor of the user's may raise what it likes
            data = None
        return cls(data, summary, text)

    def error(self, worker: str, work: str) -> BaseException:
        """The exception again: of its own type if it can be, else a `WorkerError`.

        Parameters
        ----------
        worker, work : str
            Who raised it, and what it was doing.

        Returns
        -------
        BaseException
            To be raised. A note has the traceback of the worker.
        """
        error: BaseException | None = None
        if self.data is not None:
            try:
                error = pickle.loads(self.data)  # noqa: S301 — from a process that this one started
            except Exception:  # noqa: BLE001 — as above
                error = None
        if error is None:
            error = WorkerError(self.summary, operation=f"DataLoader, {work}")
        error.add_note(f"{worker} raised it {work}:\n\n{self.text}")
        return error
