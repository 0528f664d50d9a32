"""PoCL and PyOpenCL execute what is in their folders: others cannot have written to these."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from burn_opencl.library_caches import check_library_caches

POSIX = pytest.mark.skipif(os.name == "nt", reason="folders of Windows have no mode and owner")


@pytest.fixture
def check(tmp_path, monkeypatch):
    """The variables that the libraries find, by the folder of caches of a user."""
    for name in ("POCL_CACHE_DIR", "PYOPENCL_NO_CACHE"):
        monkeypatch.setenv(name, "")  # so that what is set is undone
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("BURN_CACHE", str(tmp_path / "burn"))
    yield check_library_caches.__wrapped__
    if "POCL_CACHE_DIR" in os.environ:
        Path(os.environ["POCL_CACHE_DIR"]).rmdir()


def test_folders_that_are_the_users_alone_stay(check):
    check()
    assert "POCL_CACHE_DIR" not in os.environ
    assert "PYOPENCL_NO_CACHE" not in os.environ


@POSIX
def test_a_folder_that_others_may_write_to_is_not_used(check, tmp_path, caplog):
    caplog.set_level(logging.WARNING, logger="burn")
    (tmp_path / "pocl").mkdir()
    (tmp_path / "pocl").chmod(0o777)
    check()
    assert Path(os.environ["POCL_CACHE_DIR"]).stat().st_mode & 0o777 == 0o700
    assert "PYOPENCL_NO_CACHE" not in os.environ
    (warning,) = [one.getMessage() for one in caplog.records]
    assert f"other users may write to {tmp_path / 'pocl'}" in warning
    assert "POCL_CACHE_DIR names another folder" in warning


@POSIX
def test_without_a_cache_both_libraries_keep_nothing(check, tmp_path, monkeypatch):
    monkeypatch.setenv("BURN_CACHE", "0")
    check()
    assert os.environ["PYOPENCL_NO_CACHE"] == "1"
    assert not Path(os.environ["POCL_CACHE_DIR"]).is_relative_to(tmp_path)


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
