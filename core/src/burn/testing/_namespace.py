"""Every public name of ``burn.testing``: each is listed by its import here, and nowhere else."""

from burn.testing import samples as samples
from burn.testing._assertions import assert_close as assert_close
from burn.testing._check import (
    Check as Check,
    Failure as Failure,
    Result as Result,
    Skipped as Skipped,
    Status as Status,
)
from burn.testing._check_selection import Selection as Selection
from burn.testing._compiled import Compiled as Compiled
from burn.testing._expected import (
    ExpectedFailures as ExpectedFailures,
    find_expected_failures as find_expected_failures,
)
from burn.testing._gradients import (
    check_gradient_types as check_gradient_types,
    check_gradients as check_gradients,
    check_second_gradients as check_second_gradients,
    is_differentiable as is_differentiable,
)
from burn.testing._minimal import Minimal as Minimal
from burn.testing.checks import (
    check_dispatch as check_dispatch,
    check_error as check_error,
    check_error_in_dispatch as check_error_in_dispatch,
    check_error_in_table as check_error_in_table,
    check_kinds as check_kinds,
    check_sample as check_sample,
)
from burn.testing.conformance import (
    Group as Group,
    devices_of as devices_of,
    groups_of as groups_of,
    run as run,
    run_check as run_check,
    select as select,
)
from burn.testing.mocks import (
    MOCK_DEVICES as MOCK_DEVICES,
    MockBackend as MockBackend,
    MockDevice as MockDevice,
    hang as hang,
    mock_backend as mock_backend,
)
from burn.testing.op_samples import (
    INDEX_DTYPE as INDEX_DTYPE,
    SAMPLES as SAMPLES,
    TESTED_DTYPE as TESTED_DTYPE,
    ErrorSample as ErrorSample,
    OpSamples as OpSamples,
    Sample as Sample,
    error as error,
    load_samples as load_samples,
    reference as reference,
    sample as sample,
)
from burn.testing.reference_backend import NumpyBackend as NumpyBackend
from burn.testing.report import Report as Report
from burn.testing.subject import Subject as Subject, subjects as subjects
from burn.testing.suites import SUITES as SUITES, checks_of as checks_of, find_check as find_check
from burn.testing.tolerance import difference as difference

PUBLIC = sorted(name for name in globals() if not name.startswith("_"))
"""Every public name. It is no ``__all__``: a type checker reads the imports above."""
