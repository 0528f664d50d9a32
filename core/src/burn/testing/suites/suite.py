"""Suite: checks that belong together, as a list that is made for one device at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from burn.devices import Device
from burn.dtype import DType
from burn.errors import UnsupportedOpError
from burn.testing._check import Check, Unsupported
from burn.testing.op_samples import OpSamples
from burn.testing.subject import Subject

__all__ = ["DeviceSuite", "Suite", "for_each_dtype", "named_check", "on_op"]

DTypes: TypeAlias = Callable[[Device], Iterable[DType]]
"""The dtypes with which a check of a device and a dtype runs on that device."""


@dataclass(frozen=True)
class Suite:
    """Checks that belong together.

    Attributes
    ----------
    name : str
        Its name on the command line, which begins the names of its checks.
    summary : str
        What its checks test, in one line.
    checks : callable
        Makes the checks for a subject, one after the other: those that are about one op for the
        ops that are given, and the others.
    of_devices : bool
        Whether its checks use a `burn.Device`, as users do. Else they call the op table, and run
        on a `Minimal` backend too.
    compiles : bool
        Whether its checks compile what they try, so that they belong to a compiled subject too.
    of_functions : bool
        Whether its checks are about public functions: `checks` gets `FunctionSamples`.
    of_ops : bool
        Whether some of its checks are about one op.
    """

    name: str
    summary: str
    checks: Callable[[Subject, Sequence[Any]], Iterator[Check]] = field(repr=False)
    of_devices: bool = False
    compiles: bool = False
    of_functions: bool = False
    of_ops: bool = True


class DeviceSuite:
    """A suite of functions that take a device, and raise if a result is wrong.

    A function that also takes a dtype runs once for each of several dtypes. Results are compared
    with those of Python and NumPy.

    Parameters
    ----------
    name, summary : str
        See `Suite`.
    """

    def __init__(self, name: str, summary: str) -> None:
        self.name = name
        self.summary = summary
        self._members: list[tuple[Callable[..., Any], str, DTypes | None, bool, bool]] = []

    def check(
        self, note: str, *, dtypes: DTypes | None = None, quick: bool = True, large: bool = False
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorator: make a function a check.

        Parameters
        ----------
        note : str
            The rule that it tries.
        dtypes : callable, optional
            With which dtypes of a device; without it the function takes no dtype.
        quick, large : bool
            See `Check`.
        """

        def attach(function: Callable[..., Any]) -> Callable[..., Any]:
            self._members.append((function, note, dtypes, quick, large))
            return function

        return attach

    def checks(self, subject: Subject, table: Sequence[OpSamples] = ()) -> Iterator[Check]:
        """The checks for a device; none of them is about one op."""
        del table
        device = subject.handle
        if device is None:
            return
        for function, note, dtypes, quick, large in self._members:
            for dtype in [None] if dtypes is None else dtypes(device):
                arguments = (device,) if dtype is None else (device, dtype)
                yield Check(
                    self.name,
                    "",
                    dtype,
                    note,
                    partial(_run, function, subject, arguments),
                    partial(_script, function, *arguments),
                    is_quick=quick,
                    is_large=large,
                )

    @property
    def suite(self) -> Suite:
        """The suite."""
        return Suite(self.name, self.summary, self.checks, of_devices=True, of_ops=False)


def for_each_dtype(condition: Callable[[DType], bool] | None = None) -> DTypes:
    """The dtypes that a device computes with, and that fulfil a condition, if there is one."""

    def choose(device: Device) -> list[DType]:
        return [
            dtype
            for dtype in DType.members()
            if device.supports_dtype(dtype) and (condition is None or condition(dtype))
        ]

    return choose


def on_op(
    subject: Subject, body: Callable[..., float | None], *arguments: Any
) -> Callable[[], float | None]:
    """The body of a check of one op, which knows an op that is merely not there yet."""
    return partial(_run, body, subject, (subject, *arguments))


def named_check(
    subject: Subject,
    suite: str,
    op: str,
    dtype: DType | None,
    note: str,
    body: Callable[..., float | None],
    *arguments: Any,
    is_quick: bool = True,
) -> Check:
    """A check of a function of a subject, whose program finds it by its name."""
    run = on_op(subject, body, *arguments)
    check = Check(
        suite, op, dtype, note, run, lambda: _script_by_name(subject, check.name), is_quick=is_quick
    )
    return check


def _run(function: Callable[..., Any], subject: Subject, arguments: tuple[Any, ...]) -> Any:
    try:
        return function(*arguments)
    except UnsupportedOpError as error:
        if subject.missing:
            raise Unsupported(str(error)) from error
        raise


def _script(function: Callable[..., Any], device: Device, dtype: DType | None = None) -> str:
    arguments = f"burn.Device({device.name!r})" + (f", {dtype!r}" if dtype else "")
    name = function.__name__
    return f"import burn\nfrom {function.__module__} import {name}\n\n{name}({arguments})\n"


def _script_by_name(subject: Subject, name: str) -> str:
    _, transcript = subject.transcript()
    transcript.need("from burn.testing import Subject, find_check")
    where = "Subject.of(device" if subject.handle is not None else "Subject(backend, device_id"
    transcript.write(f"check = find_check({where}{subject.options}), {name!r})")
    transcript.write("check.body()")
    return str(transcript)
