"""Public functions conform on every device, as the kit tries them."""

import functools
import zlib

import pytest

from burn.testing import ExpectedFailures, Group, Selection, checks_of, find_expected_failures
from burn.testing.function_samples import FUNCTIONS
from gate import EXAMPLES, ROUTED, SUBJECTS

ALIKE = ("function_transforms", "wrong_calls")
"""Suites of what core does alike on every device: the gate tries them on ``cpu:0``."""

ELSEWHERE = [
    pytest.param(
        name,
        namespace,
        id=f"{name} {namespace or 'burn'}",
        marks=pytest.mark.exhaustive if name in (*EXAMPLES, ROUTED) else (),
    )
    for name, subject in SUBJECTS.items()
    if name != "cpu:0" and subject.handle is not None and name == subject.handle.name
    for namespace in sorted({function.rpartition(".")[0] for function in FUNCTIONS})
]


@functools.cache
def expected_failures(handle):
    return ExpectedFailures.read(find_expected_failures(handle))


def check_suites(subject, functions, suites, everything):
    selection = Selection(ops=tuple(functions), suites=tuple(suites), quick=not everything)
    checks = list(checks_of(subject, selection)) if functions else []
    Group(subject, "functions", checks, expected_failures(subject.handle)).check()


@pytest.mark.together("function", FUNCTIONS)
def test_a_public_function_conforms(function, everything):
    check_suites(SUBJECTS["cpu:0"], [function], ["functions", *ALIKE], everything)


@pytest.mark.parametrize(("name", "namespace"), ELSEWHERE)
def test_public_functions_conform_on_other_devices(name, namespace, everything):
    """The gate tries those that are made of several ops, and a share of the wrong calls."""
    subject = SUBJECTS[name]
    members = [function for function in FUNCTIONS if function.rpartition(".")[0] == namespace]
    if everything:
        check_suites(subject, members, ["functions", *ALIKE], everything)
        return
    composed = [function for function in members if FUNCTIONS[function].reference is not None]
    check_suites(subject, composed, ["functions"], everything)
    share = [member for member in members if zlib.crc32(f"{name} {member}".encode()) % 8 == 0]
    check_suites(subject, share, ["wrong_calls"], everything)
