"""The ICD loader of the probe: the one that PyOpenCL uses; it finds nothing without drivers.

These run without any device too.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import burn
from burn_opencl.icd_loader import found_devices

PROBE = "from burn_opencl.icd_loader import found_devices; print(len(found_devices()))"

LOADERS = """
import ctypes
opened = []
library = ctypes.CDLL
ctypes.CDLL = lambda name, *rest: opened.append(name) or library(name, *rest)
from burn_opencl.icd_loader import found_devices
found_devices()
print(opened[-1])
"""


def run(code, **variables):
    """Run a program in a new process, without PyOpenCL; return its output."""
    kept = {name: value for name, value in os.environ.items() if name != "PYOPENCL_HOME"}
    finished = subprocess.run(
        [sys.executable, "-c", code],
        env=kept | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert finished.returncode == 0, (finished.returncode, finished.stderr)
    return finished.stdout.strip()


def bundled_loaders():
    spec = find_spec("pyopencl")
    package = Path(spec.origin).parent
    folders = (package / ".libs", package / ".dylibs", package.with_name("pyopencl.libs"))
    return [path for folder in folders for path in folder.glob("*OpenCL*")]


def test_a_probe_without_drivers_finds_nothing_and_does_not_crash(tmp_path):
    nowhere = {"OCL_ICD_VENDORS": str(tmp_path), "OPENCL_VENDOR_PATH": str(tmp_path)}
    assert run(PROBE, **nowhere) == "0"


def test_a_probe_is_the_first_to_use_the_loader_and_finds_what_later_ones_find():
    assert run(PROBE) == str(len(found_devices()))


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or not bundled_loaders(),
    reason="PyOpenCL was built with the loader of the system",
)
def test_the_probe_asks_the_loader_of_pyopencl_before_that_of_the_system(tmp_path):
    """Another loader may find drivers that PyOpenCL cannot open."""
    (bundled,) = bundled_loaders()
    (tmp_path / "libOpenCL.so.1").symlink_to(bundled)
    assert run(LOADERS, LD_LIBRARY_PATH=str(tmp_path)) == str(bundled)


@pytest.mark.skipif(find_spec("pyopencl") is None, reason="there is no PyOpenCL")
def test_the_probe_looks_where_pyopencl_will_whatever_another_process_left(tmp_path):
    package = str(Path(find_spec("pyopencl").origin).parent)
    found = "import os; found_devices(); print(os.environ['PYOPENCL_HOME'])"
    program = f"from burn_opencl.icd_loader import found_devices; {found}"
    assert run(program, PYOPENCL_HOME=str(tmp_path)) == package


def test_a_device_that_pyopencl_does_not_list_is_refused_with_what_to_do():
    from burn_opencl.runtime import System

    with pytest.raises(burn.DeviceUnavailableError, match=r"opencl/custom:7 .* /etc/OpenCL"):
        System().open(3, 7)
