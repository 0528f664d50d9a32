"""What tests share; and at the end of a run, what could not be tested, and why."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
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


@pytest.fixture
def run_burn(run_python: Run) -> Run:
    """Run the command ``burn`` as a program of its own."""

    def run(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
        program = "from burn.cli import main; main(prog_name='burn')"
        return run_python("-c", program, *arguments, **variables)

    return run


@pytest.fixture
def install(tmp_path: Path) -> Callable[[str, str], str]:
    """Install a plugin for programs: ``install("name", source)`` gives the PYTHONPATH for them.

    The distribution is burn-name 1.2, its module burn_name.
    """

    def add(name: str, source: str) -> str:
        (tmp_path / f"burn_{name}.py").write_text(source, encoding="utf-8")
        metadata = tmp_path / f"burn_{name}-1.2.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: burn-{name}\nVersion: 1.2\n", encoding="utf-8"
        )
        (metadata / "entry_points.txt").write_text(
            f"[burn]\n{name} = burn_{name}\n", encoding="utf-8"
        )
        return os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)

    return add


@pytest.fixture
def install_folder(tmp_path: Path, run_python: Run) -> Callable[[Path], str]:
    """Build and install a package from its folder, offline: gives the PYTHONPATH for programs."""

    def add(folder: Path) -> str:
        target = tmp_path / "installed"
        options = ("--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check")
        result = run_python("-m", "pip", "install", *options, "--target", target, folder)
        assert result.returncode == 0, result.stdout + result.stderr
        return os.pathsep.join([str(target), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)

    return add


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
        reason = f": {entry.absence}" if entry.absence else ""
        yield f"{entry.name!r} finds no hardware{reason}"
    for name in BACKENDS:
        if name not in known:
            try:
                registry.entry(name)
            except DeviceUnavailableError as error:
                yield error.rule
