"""Every public name of ``burn.testing``."""

from burn.testing import samples
from burn.testing.assertions import assert_close
from burn.testing.check import Check, Failure, Result, Skipped, Status
from burn.testing.checks import (
    check_dispatch,
    check_error,
    check_error_in_dispatch,
    check_error_in_table,
    check_kinds,
    check_sample,
)
from burn.testing.conformance import Group, devices_of, groups_of, run, run_check, select
from burn.testing.expected import ExpectedFailures, find_expected_failures
from burn.testing.gradients import (
    check_gradient_types,
    check_gradients,
    check_second_gradients,
    is_differentiable,
)
from burn.testing.minimal import Minimal
from burn.testing.mocks import MOCK_DEVICES, MockBackend, MockDevice, hang, mock_backend
from burn.testing.op_samples import (
    INDEX_DTYPE,
    SAMPLES,
    TESTED_DTYPE,
    ErrorSample,
    OpSamples,
    Sample,
    error,
    load_samples,
    reference,
    sample,
)
from burn.testing.reference_backend import NumpyBackend
from burn.testing.report import Report
from burn.testing.selection import Selection
from burn.testing.subject import Subject, subjects
from burn.testing.suites import SUITES, checks_of, find_check
from burn.testing.tolerance import difference

__all__ = [
    "INDEX_DTYPE",
    "MOCK_DEVICES",
    "SAMPLES",
    "SUITES",
    "TESTED_DTYPE",
    "Check",
    "ErrorSample",
    "ExpectedFailures",
    "Failure",
    "Group",
    "Minimal",
    "MockBackend",
    "MockDevice",
    "NumpyBackend",
    "OpSamples",
    "Report",
    "Result",
    "Sample",
    "Selection",
    "Skipped",
    "Status",
    "Subject",
    "assert_close",
    "check_dispatch",
    "check_error",
    "check_error_in_dispatch",
    "check_error_in_table",
    "check_gradient_types",
    "check_gradients",
    "check_kinds",
    "check_sample",
    "check_second_gradients",
    "checks_of",
    "devices_of",
    "difference",
    "error",
    "find_check",
    "find_expected_failures",
    "groups_of",
    "hang",
    "is_differentiable",
    "load_samples",
    "mock_backend",
    "reference",
    "run",
    "run_check",
    "sample",
    "samples",
    "select",
    "subjects",
]
