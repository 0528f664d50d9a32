"""PoCL and PyOpenCL execute what is in their folders: others cannot have written to these."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from burn_opencl import library_caches
from burn_opencl.library_caches import check_library_caches

POSIX = pytest.mark.skipif(os.name == "nt", reason="folders of Windows have no mode and owner")


@pytest.fixture
def check(tmp_path, monkeypatch):
    """Sets the variables of the libraries."""
    for name in ("POCL_CACHE_DIR", "PYOPENCL_NO_CACHE"):
        monkeypatch.setenv(name, "")  # so that what is set is undone
        monkeypatch.delenv(name)
    monkeypatch.setenv("BURN_CACHE", str(tmp_path / "burn"))
    return check_library_caches.__wrapped__


@POSIX
def test_pocl_has_the_folder_that_was_checked_and_pyopencl_none(check, tmp_path):
    check()
    assert Path(os.environ["POCL_CACHE_DIR"]) == tmp_path / "burn/burn-pocl"
    assert Path(os.environ["POCL_CACHE_DIR"]).stat().st_mode & 0o777 == 0o700
    assert os.environ["PYOPENCL_NO_CACHE"] == "1"


@POSIX
@pytest.mark.parametrize("home", ["burn", "none"])
def test_pocl_never_looks_for_a_folder_by_itself(check, tmp_path, monkeypatch, home):
    monkeypatch.delenv("HOME", raising=False)  # PoCL then takes one that any user may make
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("POCL_CACHE_DIR", "")
    if home == "none":
        monkeypatch.setenv("BURN_CACHE", "0")
        monkeypatch.setattr(library_caches, "library_folder", lambda *names, or_temporary: None)
    check()
    expected = tmp_path / "burn/burn-pocl" if home == "burn" else Path("/dev/null/burn-pocl-none")
    assert Path(os.environ["POCL_CACHE_DIR"]) == expected


@POSIX
def test_without_a_cache_both_libraries_keep_nothing(check, tmp_path, monkeypatch):
    monkeypatch.setenv("BURN_CACHE", "0")
    check()
    assert os.environ["PYOPENCL_NO_CACHE"] == "1"
    assert not Path(os.environ["POCL_CACHE_DIR"]).is_relative_to(tmp_path)


_WITHOUT_FOLDER = """
from burn_opencl import library_caches

library_caches.library_folder = lambda *names, or_temporary: None
from burn_opencl.icd_loader import found_devices

print([device for device in found_devices() if "Portable" in device.platform])
"""


@POSIX
def test_where_no_folder_can_be_made_pocl_has_no_devices_and_a_warning_says_so():
    program = [sys.executable, "-c", _WITHOUT_FOLDER]
    result = subprocess.run(program, capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["[]"]
    assert "PoCL has no devices" in result.stderr


_PROGRAM = """
import json, os
import burn

for device in ("cpu", "opencl"):
    x = burn.ones((300, 300), device=device)
    float(burn.nn.functional.gelu(x).sum())
    float(burn.compile(lambda x: (x * 2).sum())(x))
print(json.dumps([str(os.environ["POCL_CACHE_DIR"])]))
"""


@POSIX
@pytest.mark.exhaustive
def test_a_program_without_a_cache_writes_nothing_anywhere(tmp_path):
    folders = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "TMPDIR"), str(tmp_path))
    environment = os.environ | folders | {"BURN_CACHE": "0"}
    found = subprocess.check_output([sys.executable, "-c", _PROGRAM], env=environment, text=True)
    (temporary,) = json.loads(found)
    assert Path(temporary).is_relative_to(tmp_path)
    assert not list(tmp_path.iterdir())
