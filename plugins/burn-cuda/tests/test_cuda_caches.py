"""CuPy executes what is in its folder: others cannot have written to it."""

import os
from pathlib import Path

import pytest

from burn_cuda.library_caches import check_library_caches


@pytest.fixture
def check(tmp_path, monkeypatch):
    """Sets the variables of CuPy."""
    for name in ("CUPY_CACHE_DIR", "CUPY_CACHE_IN_MEMORY", "CUPY_DISABLE_JITIFY_CACHE"):
        monkeypatch.setenv(name, "")  # so that what is set is undone
        monkeypatch.delenv(name)
    monkeypatch.setenv("BURN_CACHE", str(tmp_path / "burn"))
    return check_library_caches.__wrapped__


def test_cupy_has_the_folder_that_was_checked(check, tmp_path):
    check()
    assert Path(os.environ["CUPY_CACHE_DIR"]) == tmp_path / "burn/burn-cupy"
    assert "CUPY_CACHE_IN_MEMORY" not in os.environ


@pytest.mark.skipif(os.name == "nt", reason="folders of Windows have no mode and owner")
def test_cupy_keeps_kernels_in_memory_where_its_folder_is_refused_whatever_a_user_chose(
    check, tmp_path, monkeypatch
):
    (tmp_path / "cupy").mkdir()
    (tmp_path / "cupy").chmod(0o777)
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "cupy"))
    monkeypatch.setenv("CUPY_CACHE_IN_MEMORY", "0")
    check()
    assert os.environ["CUPY_CACHE_IN_MEMORY"] == "1"
    assert os.environ["CUPY_DISABLE_JITIFY_CACHE"] == "1"


def test_a_user_without_a_home_keeps_nothing_and_meets_no_error(check, monkeypatch):
    monkeypatch.delenv("BURN_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    check()
    assert os.environ["CUPY_CACHE_IN_MEMORY"] == "1"
