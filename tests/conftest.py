"""What tests share; and at the end of a run, what could not be tested, and why."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from filelock import FileLock

from burn.devices import transforms
from burn.errors import DeviceUnavailableError

if TYPE_CHECKING:
    from burn.cli.inventory import Inventory

os.environ["SCIPY_ARRAY_API"] = "1"  # SciPy reads it when it is imported

BACKENDS = ("cpu", "cuda", "opencl", "torch")
"""The backends of this project."""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def everything(request: pytest.FixtureRequest) -> bool:
    """Whether ``--all`` was given; else a test may try a representative part."""
    return bool(request.config.getoption("all"))


@pytest.fixture(scope="session")
def many(everything: bool) -> int:
    """How often a test does what is to leave nothing behind."""
    return 10_000 if everything else 500


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def run_burn(run_python: Run) -> Run:
    """Run the command ``burn`` as a program of its own."""

    def run(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
        program = "from burn.cli import main; main(prog_name='burn')"
        return run_python("-c", program, *arguments, **variables)

    return run


@pytest.fixture(scope="session")
def once(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str, Callable[[Path], object]], Path]:
    """Fill a folder once per run, whatever the number of workers: ``once("site", build)``.

    ``build`` takes the folder.
    """
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent  # the workers share it

    def fill(name: str, build: Callable[[Path], object]) -> Path:
        folder, done = root / f"once-{name}", root / f"once-{name}.done"
        with FileLock(root / f"once-{name}.lock"):
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)  # of a build that failed
                folder.mkdir()
                build(folder)
                done.touch()
        return folder

    return fill


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


@pytest.fixture(scope="session")
def install_folder(run_python: Run) -> Callable[[Path], str]:
    """Build and install a package from its folder, offline: gives the PYTHONPATH for programs.

    It is installed beside its folder, once.
    """

    def add(folder: Path) -> str:
        target = folder.with_name(f"{folder.name}-installed")
        path = os.pathsep.join([str(target), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        if target.exists():
            return path
        options = ("--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check")
        result = run_python("-m", "pip", "install", *options, "--target", target, folder)
        assert result.returncode == 0, result.stdout + result.stderr
        return path

    return add


@pytest.fixture
def default_signals() -> Iterator[None]:
    """SIGINT and SIGTERM have their usual effect here and in programs that the test starts.

    Programs inherit what is ignored, as by ``nohup`` or in the background of a script.
    """
    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def no_transform_is_left() -> Iterator[None]:
    """After the test no transform runs."""
    yield
    assert transforms() == ()


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
