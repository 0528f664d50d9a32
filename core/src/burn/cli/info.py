"""The command ``burn info``."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import click

import burn
from burn.cli._output import own_stdout, printable

if TYPE_CHECKING:
    from burn.cli.inventory import Inventory, Row

__all__ = ["info"]

_THREAD_COUNTS: Final = (
    "scipy_openblas_get_num_threads64_",
    "scipy_openblas_get_num_threads",
    "openblas_get_num_threads64_",
    "openblas_get_num_threads",
    "MKL_Get_Max_Threads",
    "bli_thread_get_num_threads",
)
"""What BLAS libraries call the function that returns their number of threads."""


@click.command()
def info() -> None:
    """Print what to paste into a bug report.

    Versions, BLAS and its threads, devices and drivers, the state of every plugin, and the
    environment variables of burn. It has no other variables, and neither names of users nor home
    directories; look it over all the same before you publish it.

    \b
    Examples:
      burn info
      burn info > report.txt

    \b
    Exit status:
      0   always: what is broken is part of the report
    """  # noqa: D301 — \b keeps click from filling the paragraph
    from burn.cli.inventory import plugin_rows, take
    from burn.cli.privacy import Scrubber
    from burn.plugins import describe

    scrub = Scrubber(os.environ)
    with own_stdout() as out:

        def write(title: str, lines: Iterable[str]) -> None:
            out.write(f"\n{title}\n")
            out.writelines(f"  {printable(scrub(line))}\n" for line in list(lines) or ["none"])

        out.writelines(f"{printable(scrub(line))}\n" for line in _basics())
        try:
            inventory, rows = take(), plugin_rows()
        except Exception as error:  # noqa: BLE001 — what is broken is part of the report
            write("devices and plugins", [f"broken: {describe(error)}"])
        else:
            write("packages", _packages(rows))
            write("devices", _devices(inventory))
            write("plugins", _plugins(rows))
        write("environment", _environment())


def _basics() -> Iterator[str]:
    yield f"burn-core {burn.__version__}"
    free_threaded = " free-threaded" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    bits = "64 bit" if sys.maxsize > 2**32 else "32 bit"
    implementation = platform.python_implementation()
    yield f"{implementation} {platform.python_version()}{free_threaded}, {bits}"
    libc = " ".join(platform.libc_ver())
    yield f"{platform.system()} {platform.release()} {platform.machine()} {libc}".rstrip()
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield f"processors: {os.cpu_count()}, usable: {usable}"
    yield _blas()


def _blas() -> str:
    """What NumPy computes matrix products with, and in how many threads."""
    try:
        import numpy as np

        built: Any = np.show_config(mode="dicts")
        blas = built["Build Dependencies"]["blas"]
        threads = _blas_threads()
        return (
            f"NumPy {np.__version__} with {blas['name']} {blas['version']}, "
            f"threads: {'?' if threads is None else threads}"
        )
    except Exception as error:  # noqa: BLE001 — what is broken is part of the report
        from burn.plugins import describe

        return f"NumPy: {describe(error)}"


def _blas_threads() -> int | None:
    """Threads of the BLAS that NumPy has loaded; None where it does not say."""
    import ctypes

    from numpy.linalg import _umath_linalg

    library = ctypes.CDLL(_umath_linalg.__file__)  # loaded already, with the BLAS it is linked to
    for name in _THREAD_COUNTS:
        function = getattr(library, name, None)
        if function is not None:
            return int(function())
    return None


def _packages(rows: list[Row]) -> Iterator[str]:
    """Our distribution, the plugins', and what they require; with extras, if installed."""
    from importlib.metadata import PackageNotFoundError, distribution

    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    owners = ["burn-core", *sorted({row.plugin.distribution for row in rows})]
    names = [*owners]
    for owner in owners:
        with contextlib.suppress(PackageNotFoundError):
            names += sorted(
                Requirement(require).name for require in distribution(owner).requires or ()
            )
    for name in dict.fromkeys(map(canonicalize_name, names)):
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue
        editable = '"editable": true' in (found.read_text("direct_url.json") or "")
        yield f"{name} {found.version}{' (editable)' if editable else ''}"


def _devices(inventory: Inventory) -> Iterator[str]:
    for device in inventory.devices:
        info = device.info
        memory = "?" if info.memory is None else f"{info.memory / 2**30:.1f} GiB"
        driver = f", driver {info.driver}" if info.driver else ""
        mark = " (default)" if device is inventory.default else ""
        yield f"{device.name}{mark}: {info.hardware}, memory {memory}{driver}"
    if inventory.default is None:
        yield f"no default: {inventory.choice}"


def _plugins(rows: list[Row]) -> Iterator[str]:
    for row in rows:
        what = row.plugin.name if row.entry is None else row.entry.name
        api = "" if row.entry is None else f", API {'.'.join(map(str, row.entry.spec.api_version))}"
        reason = f": {row.reason}" if row.reason else ""
        yield f"{what} of {row.plugin} ({row.plugin.entry_point}{api}): {row.state}{reason}"


def _environment() -> Iterator[str]:
    """The environment variables of burn; the values of possible secrets are left out."""
    from burn.cli.privacy import is_secret

    for name, value in sorted(os.environ.items()):
        if name.startswith("BURN_"):
            yield f"{name} is set" if is_secret(name, value) else f"{name}={value}"
