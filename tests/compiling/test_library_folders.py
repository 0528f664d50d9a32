"""library_folder: a library executes only what this user has written."""

import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from burn.compiler import library_folder, library_folders, private_folder

POSIX = pytest.mark.skipif(os.name == "nt", reason="folders of Windows have no mode and owner")


@pytest.fixture
def base(tmp_path, monkeypatch):
    """The folder of burn's caches, of which each test has another one."""
    monkeypatch.setenv("BURN_CACHE", str(tmp_path / "burn"))
    monkeypatch.delenv("UNIT_CACHE_DIR", raising=False)
    monkeypatch.setattr(private_folder, "_refusals", set())
    return tmp_path / "burn"


@pytest.fixture
def warnings_of_burn(caplog):
    caplog.set_level(logging.WARNING, logger="burn")
    return lambda: [record.getMessage() for record in caplog.records]


def found():
    return library_folder("unit", "UNIT_CACHE_DIR")


def test_a_library_has_a_folder_of_its_own_among_burns_caches(base):
    assert found() == base / "burn-unit"
    assert found().stat().st_mode & 0o077 == 0 or os.name == "nt"


def test_without_a_cache_a_library_has_no_folder(base, monkeypatch, tmp_path):
    monkeypatch.setenv("UNIT_CACHE_DIR", str(tmp_path / "named"))
    monkeypatch.setenv("BURN_CACHE", "0")
    assert found() is None
    assert not list(tmp_path.iterdir())


def test_a_variable_without_a_value_names_no_folder(base, monkeypatch):
    monkeypatch.setenv("UNIT_CACHE_DIR", "")
    assert found() == base / "burn-unit"


@POSIX
@pytest.mark.parametrize("umask", [0o000, 0o002, 0o777])
def test_other_users_may_not_enter_the_folder_whatever_the_umask(base, umask):
    before = os.umask(umask)
    try:
        assert found().stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)


@POSIX
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o755, 0o711])
def test_a_folder_that_others_may_enter_is_refused_since_its_content_may_be_theirs(
    base, mode, warnings_of_burn
):
    found().chmod(mode)
    assert found() is None
    (warning,) = warnings_of_burn()
    assert f"{base / 'burn-unit'} is open to other users (mode {mode:o})" in warning
    assert "remove it, or set BURN_CACHE to a folder of your own" in warning
    assert "chmod" not in warning  # after which what was planted would be executed


@POSIX
def test_what_is_in_a_folder_that_a_user_names_is_not_executed(base, tmp_path, monkeypatch):
    (tmp_path / "named").mkdir()
    (tmp_path / "named/planted.so").write_text("by another user, while the mode was 777")
    monkeypatch.setenv("UNIT_CACHE_DIR", str(tmp_path / "named"))
    assert found() == tmp_path / "named/burn-unit"
    assert not list(found().iterdir())


@POSIX
def test_a_folder_that_a_user_names_is_refused_where_others_may_write(
    base, tmp_path, monkeypatch, warnings_of_burn
):
    (tmp_path / "named").mkdir()
    (tmp_path / "named").chmod(0o777)
    monkeypatch.setenv("UNIT_CACHE_DIR", str(tmp_path / "named"))
    assert found() is None
    (warning,) = warnings_of_burn()
    assert f"other users may write to {tmp_path / 'named'}" in warning
    assert "set UNIT_CACHE_DIR to a folder of your own" in warning


@pytest.mark.parametrize("name", ["burn", "named"])
def test_a_child_process_has_the_folder_of_its_parent(base, tmp_path, monkeypatch, name):
    if name == "named":
        monkeypatch.setenv("UNIT_CACHE_DIR", str(tmp_path / name))
    parents = found()
    assert parents == tmp_path / name / "burn-unit"
    monkeypatch.setenv("UNIT_CACHE_DIR", str(parents))  # as plugins do
    assert found() == parents


def test_a_temporary_folder_of_a_parent_process_is_not_used(base, tmp_path, monkeypatch):
    monkeypatch.setenv("UNIT_CACHE_DIR", str(tmp_path / "burn-unit-x7d3"))
    assert found() == base / "burn-unit"


def test_a_folder_that_cannot_be_written_to_is_none(base, monkeypatch):
    assert found() is not None
    monkeypatch.setattr(library_folders.os, "access", lambda path, mode: False)
    assert found() is None


@pytest.fixture
def temporary(monkeypatch, tmp_path):
    """A folder of temporary ones, in which a library that needs one gets another each time."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("BURN_CACHE", "0")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(library_folders, "_OTHER_TEMPORARY", str(tmp_path / "memory"))
    left = []
    monkeypatch.setattr(library_folders.atexit, "register", lambda *call: left.append(call))
    library_folders._temporary_folder.cache_clear()
    yield lambda: library_folder("unit", "UNIT_CACHE_DIR", or_temporary=True)
    for leave, *arguments in left:
        leave(*arguments)
    library_folders._temporary_folder.cache_clear()
    assert not list(tmp_path.glob("*/burn-unit-*"))  # at exit they go


def test_a_library_that_needs_a_folder_gets_a_temporary_one_where_nothing_is_kept(
    temporary, tmp_path
):
    folder = temporary()
    assert folder == temporary()
    assert folder.parent == tmp_path / "temporary"
    assert folder.stat().st_mode & 0o077 == 0 or os.name == "nt"


def test_where_no_temporary_folder_can_be_made_it_is_in_memory_or_none(
    temporary, tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    assert temporary() is None
    library_folders._temporary_folder.cache_clear()
    (tmp_path / "memory").mkdir()
    assert temporary().parent == tmp_path / "memory"


_PROCESS = """
import os, sys, tempfile, time
from burn.compiler import library_folder

print(library_folder("unit", "UNIT_CACHE_DIR", or_temporary=True), flush=True)
if "fork" in sys.argv and os.fork() == 0:
    time.sleep(600)
if "wait" in sys.argv:
    time.sleep(600)
"""


def started(tmp_path, *arguments):
    """A process that has a temporary folder, and that folder, which looks like an old one."""
    process = subprocess.Popen(
        [sys.executable, "-c", _PROCESS, *arguments],
        env=os.environ | {"TMPDIR": str(tmp_path / "temporary")},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    with process.stdout as output:
        folder = Path(output.readline().decode().strip())
    os.utime(folder, (0, 0))
    return process, folder


@POSIX
@pytest.mark.usefixtures("default_signals")
def test_the_temporary_folder_of_a_process_that_was_killed_goes_and_that_of_others_stays(
    temporary, tmp_path
):
    killed, left = started(tmp_path, "wait")
    alive, used = started(tmp_path, "wait")
    killed.kill()
    killed.wait()
    (tmp_path / "temporary/burn-unit-new").mkdir()  # its process has not locked it yet
    assert left.is_dir()
    temporary()
    try:
        assert not left.exists()
        assert used.is_dir()
        assert (tmp_path / "temporary/burn-unit-new").is_dir()
    finally:
        (tmp_path / "temporary/burn-unit-new").rmdir()
        alive.send_signal(signal.SIGINT)
        alive.wait()
    assert not used.exists()


@POSIX
def test_the_temporary_folder_of_a_process_stays_for_its_fork(temporary, tmp_path):
    parent, folder = started(tmp_path, "fork")
    parent.wait()
    assert folder.is_dir()
    os.killpg(parent.pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while folder.exists() and time.monotonic() < deadline:  # until the system has ended the fork
        library_folders._remove_unlocked(folder, 0)
    assert not folder.exists()
