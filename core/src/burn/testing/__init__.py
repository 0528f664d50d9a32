"""The conformance kit: what the author of a backend runs to know when the backend is done.

Each op has samples and a NumPy reference (`SAMPLES`), and the checks run one sample on one device.
"""

from burn.testing import samples
from burn.testing.checks import (
    check_dispatch,
    check_error,
    check_error_in_dispatch,
    check_error_in_table,
    check_kinds,
    check_sample,
)
from burn.testing.gradients import (
    check_gradient_types,
    check_gradients,
    check_second_gradients,
    is_differentiable,
)
from burn.testing.minimal import Minimal
from burn.testing.mocks import MOCK_DEVICES, MockBackend, MockDevice, hang, mock_backend
from burn.testing.sample import (
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
from burn.testing.subject import Subject, subjects
from burn.testing.tolerance import difference

__all__ = [
    "INDEX_DTYPE",
    "MOCK_DEVICES",
    "SAMPLES",
    "TESTED_DTYPE",
    "ErrorSample",
    "Minimal",
    "MockBackend",
    "MockDevice",
    "OpSamples",
    "Sample",
    "Subject",
    "check_dispatch",
    "check_error",
    "check_error_in_dispatch",
    "check_error_in_table",
    "check_gradient_types",
    "check_gradients",
    "check_kinds",
    "check_sample",
    "check_second_gradients",
    "difference",
    "error",
    "hang",
    "is_differentiable",
    "load_samples",
    "mock_backend",
    "reference",
    "sample",
    "samples",
    "subjects",
]
