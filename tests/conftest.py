"""What tests share; and at the end of a run, what could not be tested, and why."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from burn.errors import DeviceUnavailableError

if TYPE_CHECKING:
    from burn.cli.inventory import Inventory

os.environ["SCIPY_ARRAY_API"] = "1"  # SciPy reads it when it is imported

settings.register_profile(
    "fixed",
    max_examples=25,
    derandomize=True,  # who changes one thing is not to be stopped by a find in another
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
settings.register_profile(
    "explore", settings.get_profile("fixed"), max_examples=400, derandomize=False
)
settings.load_profile("fixed")

BACKENDS = ("cpu", "cuda", "opencl", "torch")
"""The backends of this project."""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run_python() -> Run:
    """Run the interpreter in an environment that says nothing of burn, colours or widths."""

    def run(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
        unwanted = ("BURN_", "COLUMNS", "FORCE_COLOR", "NO_COLOR", "PYTHONWARNINGS", "TTY_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
        return subprocess.run(
            [sys.executable, *map(str, arguments)],
            env={**kept, **variables},
            capture_output=True,
            encoding="utf-8",
            timeout=300,
            check=False,
        )

    return run


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    from burn.cli.inventory import take

    inventory = take()
    terminalreporter.section("devices")
    for device in inventory.devices:
        terminalreporter.write_line(f"tested: {device.name} ({device.info.hardware})")
    for reason in _missing(inventory):
        terminalreporter.write_line(f"not tested: {reason}")


def _missing(inventory: Inventory) -> Iterator[str]:
    """Why there is no device of a backend, for each one without."""
    from burn.plugins import registry

    known = {device.backend_name for device in inventory.devices}
    for failure in inventory.failures:
        known.add(failure.name)
        yield f"{failure.name!r} is broken: {failure.reason}"
    for entry in inventory.idle:
        known.add(entry.name)
        yield f"{entry.name!r} finds no hardware"
    for name in BACKENDS:
        if name not in known:
            try:
                registry.entry(name)
            except DeviceUnavailableError as error:
                yield error.rule
