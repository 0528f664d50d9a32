"""Public functions conform on every device, as the kit tries them."""

import functools
import zlib

import pytest

from burn.testing import ExpectedFailures, Group, Selection, checks_of, find_expected_failures
from burn.testing.function_samples import FUNCTIONS
from gate import EXAMPLES, ROUTED, SUBJECTS

ALIKE = ("function_transforms", "wrong_calls")
"""Suites of what core does alike on every device: the gate tries a function on one device more."""


def functions_of_subjects():
    """On ``cpu:0`` the gate tries all, on other devices what is made of several ops."""
    for name, subject in SUBJECTS.items():
        if subject.handle is not None and name == subject.handle.name:
            for function, samples in FUNCTIONS.items():
                is_light = name == "cpu:0" or samples.reference is not None
                later = name in (*EXAMPLES, ROUTED) or not is_light
                marks = pytest.mark.exhaustive if later else ()
                yield pytest.param(subject, function, id=f"{name} {function}", marks=marks)


def suites_of_gate(device, function):
    """Every suite on ``cpu:0``; elsewhere those of wrong calls for one function of eight."""
    if device == "cpu:0":
        return ("functions", *ALIKE)
    chosen = zlib.crc32(f"{device} {function}".encode()) % 8 == 0
    return ("functions", "wrong_calls") if chosen else ("functions",)


@functools.cache
def expected_failures(handle):
    return ExpectedFailures.read(find_expected_failures(handle))


@pytest.mark.parametrize(("subject", "function"), list(functions_of_subjects()))
def test_a_public_function_conforms(subject, function, everything):
    device = subject.handle.name
    suites = ("functions", *ALIKE) if everything else suites_of_gate(device, function)
    selection = Selection(ops=(function,), suites=suites, quick=not everything)
    checks = list(checks_of(subject, selection))
    Group(subject, function, checks, expected_failures(subject.handle)).check()
