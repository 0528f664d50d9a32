"""Selection: which checks to run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from burn.dtype import DType
from burn.errors import ArgumentError
from burn.public_calls import did_you_mean
from burn.testing._check import Check

__all__ = ["Selection"]


@dataclass(frozen=True)
class Selection:
    """Which checks to run; by default all but the large ones.

    Attributes
    ----------
    ops : tuple of str
        Names of ops, in which ``*`` and ``?`` stand for other characters; "" for what is not about
        one op.
    dtypes : tuple of str
        Names of dtypes.
    suites : tuple of str
        Names of suites.
    quick : bool
        Only the representative ones.
    large : bool
        Those that take gigabytes as well.

    Examples
    --------
    >>> Selection(ops=("softmx",)).refuse_unknown(["softmax", "relu"], ["values"])
    Traceback (most recent call last):
        ...
    burn.errors.ArgumentError: there is no op 'softmx'. Did you mean softmax?
    """

    ops: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    quick: bool = False
    large: bool = False

    def includes(self, check: Check) -> bool:
        """Whether a check is selected."""
        if check.is_large:
            if not self.large:
                return False
        elif self.quick and not check.is_quick:
            return False
        if self.suites and check.suite not in self.suites:
            return False
        if self.dtypes and (check.dtype is None or check.dtype.name not in self.dtypes):
            return False
        return self.includes_op(check.op)

    def includes_op(self, name: str) -> bool:
        """Whether checks of an op are selected."""
        return not self.ops or any(fnmatchcase(name, pattern) for pattern in self.ops)

    def refuse_unknown(self, ops: Iterable[str], suites: Iterable[str]) -> None:
        """Raise an error for names that do not exist.

        Raises
        ------
        ArgumentError
            With the names that are like them.
        """
        known = list(ops)
        for pattern in self.ops:
            if not any(fnmatchcase(name, pattern) for name in known):
                raise _unknown("op", pattern, known)
        for name in self.suites:
            if name not in (there := list(suites)):
                raise _unknown("suite", name, there)
        for name in self.dtypes:
            DType.of(name)


def _unknown(what: str, name: str, known: Sequence[str]) -> ArgumentError:
    hint = did_you_mean(name, known, f"`burn check NAME --list` has each {what}")
    return ArgumentError(f"there is no {what} {name!r}", hint=hint)
