"""The end of a run whose evaluation no longer improves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from burn.errors import ArgumentError, OperandTypeError
from burn.ops.arguments import as_integer, real_number
from burn.train._inputs import Stateful, is_stateful, values_of

__all__ = ["EarlyStopping"]


class EarlyStopping:
    """Ends a run when a value has not improved for some evaluations.

    `fit` gives it the value of that name after each epoch; in a loop of your own call `update`.

    Parameters
    ----------
    name : str
        The name of a value of the step or of the evaluation, as in the history.
    patience : int
        So many evaluations in a row without an improvement end the run.
    mode : {"min", "max"}
        Whether smaller or larger values are better.
    min_delta : float
        What is no better than the best value so far by more than this is no improvement. NaN never
        is one.
    restore : Module or any object with ``state_dict`` and ``load_state_dict``, optional
        It gets back, at the end of the run, the state that it had at the best value. The state is
        kept in the memory of its device, and in checkpoints.

    Attributes
    ----------
    best : float or None
        The best value so far.
    waited : int
        Number of evaluations since then.

    Raises
    ------
    ArgumentError
        If `patience` is less than 1, `min_delta` negative, or `mode` another word.
    OperandTypeError
        If `restore` has no state.

    Examples
    --------
    >>> import burn
    >>> stop = burn.train.EarlyStopping("val_loss", patience=2)
    >>> [stop.update(loss) for loss in (0.9, 0.5, 0.6, 0.7)]
    [False, False, False, True]
    >>> stop.best
    0.5
    """

    def __init__(
        self,
        name: str,
        *,
        patience: int = 3,
        mode: Literal["min", "max"] = "min",
        min_delta: float = 0.0,
        restore: Stateful | None = None,
    ) -> None:
        if not isinstance(name, str):
            raise OperandTypeError(f"name must be a str, not {name!r}", operation="EarlyStopping")
        if not (restore is None or is_stateful(restore)):
            raise OperandTypeError(
                f"restore is {type(restore).__name__}, which has no state_dict",
                hint="Give the model",
                operation="EarlyStopping",
            )
        if mode not in ("min", "max"):
            raise ArgumentError(
                f"mode is {mode!r}", hint='It is "min" or "max"', operation="EarlyStopping"
            )
        self.name = name
        self.patience = as_integer(patience, "patience", "EarlyStopping", least=1)
        self.mode = mode
        self.min_delta = real_number(min_delta, "min_delta", "EarlyStopping", least=0.0)
        self.best: float | None = None
        self.waited = 0
        self._restored = restore
        self._best_state: Mapping[str, Any] | None = None

    @property
    def is_over(self) -> bool:
        """Whether the value has not improved for `patience` evaluations."""
        return self.waited >= self.patience

    def update(self, value: float) -> bool:
        """Take the value of one more evaluation.

        Parameters
        ----------
        value : float
            What is to become smaller, or larger.

        Returns
        -------
        bool
            Whether the run is to end.
        """
        value = real_number(value, self.name, "EarlyStopping.update", takes_nan=True)
        if self._is_better(value):
            self.best, self.waited = value, 0
            if self._restored is not None:
                self._best_state = self._restored.state_dict()
        else:
            self.waited += 1
        return self.is_over

    def _is_better(self, value: float) -> bool:
        if math.isnan(value) or self.best is None:
            return not math.isnan(value)
        gain = self.best - value if self.mode == "min" else value - self.best
        return gain > self.min_delta

    def reset(self) -> None:
        """Forget all values; `fit` does so when a run begins."""
        self.best, self.waited, self._best_state = None, 0, None

    def restore_best(self) -> None:
        """Give `restore` the state that it had at the best value; `fit` does so at the end."""
        if self._restored is not None and self._best_state is not None:
            self._restored.load_state_dict(self._best_state)

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs: the best value, its state, and how long ago it was.

        Returns
        -------
        dict of str to value
            ``best``, ``waited`` and ``best_state``.
        """
        return {"best": self.best, "waited": self.waited, "best_state": self._best_state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state.

        Parameters
        ----------
        state : mapping of str to value
            From `state_dict`.

        Raises
        ------
        ArgumentError
            If it is no such state.
        """
        names = ("best", "waited", "best_state")
        self.best, self.waited, self._best_state = values_of(state, names, "EarlyStopping")

    def __repr__(self) -> str:
        return f"EarlyStopping({self.name!r}, patience={self.patience}, mode={self.mode!r})"
