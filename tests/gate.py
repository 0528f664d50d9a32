"""What the gate tries of the kit, by a table in CONTRIBUTING.md; ``make test-all`` tries all."""

import pytest

from burn import Device
from burn.device_id import DeviceId
from burn.ops import REGISTRY
from burn.testing import NumpyBackend, Subject, subjects

EXAMPLES = ("pure:0", "strict:0")
"""Devices of the examples of backends."""

SLOW_ON_EXAMPLES = ("distributions", "memory", "seeding", "silence", "threads")
"""Suites of what core does alike on every device, which take long on an example."""

ROUTED = "router/cpu:0"
"""A device of a router, of which the gate tries the suites beyond single ops."""

COMPILED = ("adam_step", "matmul", "scatter", "softmax", "where")
"""Ops each call of which the gate compiles. For OpenCL, whose compilers take seconds, it compiles
one sample of each, and ``make test-all`` all of these ops."""


def kit_subjects():
    """Every device natively, with the required ops alone, and compiled; a router; a bare NumPy."""
    for device in Device.enumerate():
        for subject in subjects(device.backend, device.id, handle=device):
            yield f"{device.name}{' minimal' if subject.hides else ''}", subject
        if device.name not in EXAMPLES:
            yield f"{device.name} compiled", Subject.of(device, compiles=True)
    yield ROUTED, Subject.of(Device(ROUTED))
    yield "numpy", Subject(NumpyBackend(), DeviceId(0))


SUBJECTS = dict(kit_subjects())


def marks_of(name):
    """The gate tries the required ops alone on ``cpu:0 minimal``, and compiles few ops."""
    later = name.endswith((" minimal", " compiled")) and name != "cpu:0 minimal"
    return pytest.mark.exhaustive if later else ()


def marks_of_op(name, subject, op):
    """The gate tries an op where it is a method, and its default on ``cpu:0 minimal``."""
    if name.endswith(" compiled") and not name.startswith("opencl/") and op in COMPILED:
        return ()
    if name == ROUTED:
        return pytest.mark.exhaustive
    is_method = subject.table.origin(REGISTRY[op]) == "native"
    return marks_of(name) if is_method or name == "cpu:0 minimal" else pytest.mark.exhaustive


def has_op(name, op):
    """Whether an op is tried at all: on OpenCL few of them are compiled by each dtype."""
    return op in COMPILED or not (name.startswith("opencl/") and name.endswith(" compiled"))


def marks_of_suite(name, suite):
    """The gate tries a suite beyond single ops natively on each device."""
    later = (name in EXAMPLES and suite in SLOW_ON_EXAMPLES) or (name, suite) == (ROUTED, "silence")
    return pytest.mark.exhaustive if later else marks_of(name)


def is_tried(check, subject):
    """The gate tries what core does alike on any device on ``cpu:0``: batching, say."""
    if check.suite == "compiled" and subject.compiles:
        return False  # the subject that compiles not each op has it too
    if check.suite == "compiled" and check.op not in COMPILED:
        return subject.backend.name(subject.device) != "opencl"
    alike = check.suite in ("batching", "checkpointing", "programs", "settings")
    return not alike or subject in (SUBJECTS["cpu:0"], SUBJECTS["cpu:0 minimal"])
