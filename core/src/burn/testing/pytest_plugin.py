"""The conformance kit as tests of pytest: ``pytest --pyargs burn.testing --burn-device=cuda:0``.

pytest loads this module in every project where burn-core is installed, so it imports nothing until
one of its options is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from burn.testing._check import Result
    from burn.testing.conformance import Group
    from burn.testing.subject import Subject

_HERE = Path(__file__).parent
_ANCHOR = _HERE / "conformance.py"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup(
        "burn", "conformance of a backend of burn (pytest --pyargs burn.testing)"
    )
    group.addoption(
        "--burn-device",
        action="append",
        default=[],
        metavar="DEVICE",
        help="the device to try, such as cuda:0, or a backend for all of its devices",
    )
    for what, example in (("op", "softmax"), ("dtype", "float16"), ("suite", "gradients")):
        group.addoption(
            f"--burn-{what}",
            action="append",
            default=[],
            metavar=what.upper(),
            help=f"only this {what}, such as {example}",
        )
    group.addoption("--burn-quick", action="store_true", help="a representative part only")
    group.addoption("--burn-large", action="store_true", help="also what takes gigabytes")
    group.addoption(
        "--burn-minimal",
        action="store_true",
        help="hide what the backend has beyond the required ops",
    )
    group.addoption(
        "--burn-compiled",
        action="store_true",
        help="compile each call of an op as a program",
    )
    group.addoption(
        "--burn-expected-failures",
        metavar="FILE",
        help="what is expected to fail, instead of expected_failures.txt beside the plugin",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker; say what is missing where the kit is asked for without a device."""
    config.addinivalue_line("markers", "large: takes gigabytes of memory (burn.testing)")
    asked = "burn.testing" in config.invocation_params.args
    if asked and not config.getoption("burn_device"):
        raise pytest.UsageError(
            "burn.testing needs a device: --burn-device=cpu:0, or another from `burn devices`"
        )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The checks stand under `burn.testing.conformance`, for the devices that are named."""
    if file_path != _ANCHOR or not parent.config.getoption("burn_device"):
        return None
    file: pytest.Collector = ConformanceFile.from_parent(parent, path=file_path)
    return file


class ConformanceFile(pytest.File):
    """The subjects that the command line names."""

    def collect(self) -> Iterator[pytest.Collector]:
        """One collector per device."""
        from burn.errors import BurnError
        from burn.testing.conformance import devices_of
        from burn.testing.subject import Subject

        minimal = self.config.getoption("burn_minimal")
        compiles = self.config.getoption("burn_compiled")
        try:
            devices = [
                device
                for name in self.config.getoption("burn_device")
                for device in devices_of(name)
            ]
            subjects = [
                Subject.of(device, minimal=minimal, compiles=compiles) for device in devices
            ]
        except BurnError as error:
            raise self.CollectError(str(error)) from error
        for device, subject in zip(devices, subjects, strict=True):
            name = device.name + " minimal" * minimal + " compiled" * compiles
            yield SubjectCollector.from_parent(self, name=name, subject=subject)


class SubjectCollector(pytest.Collector):
    """The checks of one subject."""

    def __init__(self, *, subject: Subject, **options: Any) -> None:
        super().__init__(**options)
        self.subject = subject

    def collect(self) -> Iterator[pytest.Item]:
        """One item per suite, op and dtype."""
        from burn.errors import BurnError
        from burn.testing._check_selection import Selection
        from burn.testing._expected import ExpectedFailures, find_expected_failures
        from burn.testing.conformance import groups_of
        from burn.testing.op_samples import SAMPLES
        from burn.testing.suites import SUITES

        option = self.config.getoption
        named = option("burn_expected_failures")
        handle = self.subject.handle
        selection = Selection(
            ops=tuple(option("burn_op")),
            dtypes=tuple(option("burn_dtype")),
            suites=tuple(option("burn_suite")),
            quick=option("burn_quick"),
            large=option("burn_large"),
        )
        try:
            selection.refuse_unknown(SAMPLES, SUITES)
            path = Path(named) if named else find_expected_failures(handle) if handle else None
            expected = ExpectedFailures.read(path)
            groups = list(groups_of(self.subject, selection, expected))
        except BurnError as error:
            raise self.CollectError(str(error)) from error
        for group in groups:
            yield ConformanceItem.from_parent(self, name=group.name, group=group)


class ConformanceItem(pytest.Item):
    """The checks of one suite, op and dtype."""

    def __init__(self, *, group: Group, **options: Any) -> None:
        super().__init__(**options)
        self.group = group
        if group.is_large:
            self.add_marker(pytest.mark.large)

    def runtest(self) -> None:
        """Run them all; what was expected to fail and did is an expected failure of pytest's."""
        from burn.testing._check import Status

        results = self.group.run()
        wrong = [result for result in results if result.status.is_wrong]
        if wrong:
            raise ConformanceError(wrong)
        for status, end in ((Status.EXPECTED, pytest.xfail), (Status.UNSUPPORTED, pytest.skip)):
            found = [result for result in results if result.status is status]
            if found:
                end(f"{len(found)} of {len(results)}: {found[0].message}")
        if results and all(result.status is Status.SKIPPED for result in results):
            pytest.skip(results[0].message)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What went wrong, without the insides of the kit."""
        if isinstance(excinfo.value, ConformanceError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where it is, and what it is called."""
        return self.path, None, f"{self.parent.name if self.parent else ''} {self.name}"


class ConformanceError(Exception):
    """Checks failed."""

    def __init__(self, results: list[Result]) -> None:
        super().__init__("\n\n".join(map(str, results)))
