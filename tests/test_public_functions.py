"""Public functions conform on every device, as the kit tries them."""

import functools

import pytest

from burn.testing import (
    ExpectedFailures,
    Group,
    Selection,
    checks_of,
    find_expected_failures,
)
from burn.testing.function_samples import FUNCTIONS
from gate import EXAMPLES, SUBJECTS


def functions_of_subjects():
    """On ``cpu:0`` the gate tries all, on other devices what is made of several ops."""
    for name, subject in SUBJECTS.items():
        if subject.handle is not None and name == subject.handle.name:
            for function, samples in FUNCTIONS.items():
                later = name != "cpu:0" and (name in EXAMPLES or samples.reference is None)
                marks = pytest.mark.exhaustive if later else ()
                yield pytest.param(subject, function, id=f"{name} {function}", marks=marks)


@functools.cache
def expected_failures(handle):
    return ExpectedFailures.read(find_expected_failures(handle))


@pytest.mark.parametrize(("subject", "function"), list(functions_of_subjects()))
def test_a_public_function_conforms(subject, function, everything):
    suites = ["functions"]
    if everything or subject.handle.name == "cpu:0":
        suites.append("function_transforms")
    selection = Selection(ops=(function,), suites=tuple(suites), quick=not everything)
    Group(
        subject, function, list(checks_of(subject, selection)), expected_failures(subject.handle)
    ).check()
