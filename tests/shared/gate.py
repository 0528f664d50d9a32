"""What the gate tries of the kit, by a table in CONTRIBUTING.md; ``make test-all`` tries all."""

from collections import Counter

import pytest

from burn import Device
from burn.device_id import DeviceId
from burn.dtype import float32
from burn.ops import REGISTRY
from burn.testing import NumpyBackend, Subject, subjects

EXAMPLES = ("pure:0", "strict:0")
"""Devices of the examples of backends."""

SLOW_ON_EXAMPLES = (
    *("compiled_calls", "distributions", "long_axes", "memory", "quantization", "rounding"),
    *("seeding", "silence", "threads"),
)
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


DRAWN = [SUBJECTS[name] for name in SUBJECTS if not name.endswith((" minimal", *EXAMPLES, "numpy"))]
"""Subjects on which operands are drawn too."""


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
    tried = is_method(subject, op) or name == "cpu:0 minimal"
    return marks_of(name) if tried else pytest.mark.exhaustive


def is_method(subject, op):
    """Whether an op is a method of the backend, not a default.

    So are generated kernels on ``cpu:0``; on other devices, which compile for longer, those of
    required ops.
    """
    origin = subject.table.origin(REGISTRY[op])
    is_tried = subject is SUBJECTS["cpu:0"] or REGISTRY[op].is_required
    return origin == "native" or (origin == "generated" and is_tried)


def has_op(name, op):
    """Whether an op is tried at all: on OpenCL few of them are compiled by each dtype."""
    return op in COMPILED or not (name.startswith("opencl/") and name.endswith(" compiled"))


def marks_of_suite(name, suite):
    """The gate tries a suite beyond single ops natively on each device."""
    is_slow = name in EXAMPLES and suite in SLOW_ON_EXAMPLES
    routed = ("compiled_calls", "long_axes", "memory", "silence")
    later = is_slow or (name == ROUTED and suite in routed)
    return pytest.mark.exhaustive if later else marks_of(name)


def is_tried(check, subject):
    """The gate tries what core does alike on any device on ``cpu:0``: batching, say.

    It does so with the required ops alone where ``cpu:0`` has no method.
    """
    cpu, minimal = SUBJECTS["cpu:0"], SUBJECTS["cpu:0 minimal"]
    if check.suite == "draws":
        return subject in DRAWN
    if check.suite == "compiled" and subject.compiles:
        return False  # the subject that compiles not each op has it too
    if check.suite == "compiled" and check.op not in COMPILED:
        return subject is cpu
    if check.suite in ("memory", "threads") and subject is minimal:
        return not is_method(cpu, check.op)
    if check.suite in ("batching", "checkpointing", "programs", "quantization", "settings"):
        return subject is (cpu if is_method(cpu, check.op) else minimal)
    return True


def checks_of_gate(checks, subject):
    """The checks of one op that the gate makes.

    A sample that float32 tries is tried with each other dtype if it is the first of five; of three
    samples one is tried in batches.
    """
    tried = {check.note for check in checks if is_value(check) and check.dtype is float32}
    counts = Counter()
    for check in filter(lambda check: is_tried(check, subject), checks):
        if check.suite == "batching":
            counts[check.suite] += 1
            if counts[check.suite] % 3 != 1:
                continue
        if is_value(check) and check.dtype is not float32 and check.note in tried:
            counts[check.dtype] += 1
            if counts[check.dtype] % 5 != 1:
                continue
        yield check


def checks_beyond_ops(checks):
    """Of the schemes of quantized tensors the gate tries one store of each value."""
    return [check for check in checks if check.is_quick or check.suite != "quantization"]


def is_value(check):
    return check.suite == "values"
