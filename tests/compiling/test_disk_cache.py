"""DiskCache keeps bytes between processes, whatever happens to the folder."""

import errno
import logging
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from burn.compiler import DiskCache, private_folder

POSIX = pytest.mark.skipif(os.name == "nt", reason="folders of Windows have no mode and owner")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("BURN_CACHE", str(tmp_path))
    return tmp_path / "unit"


def files(folder):
    return sorted(folder.glob("*.bin"))


def test_what_was_put_is_there_for_this_process_and_for_others(folder):
    cache = DiskCache("unit")
    assert cache.get("key") is None
    cache.put("key", b"value")
    assert cache.get("key") == DiskCache("unit").get("key") == b"value"
    assert cache.get("another") is None
    cache.put("key", b"")
    assert cache.get("key") == b""


def test_the_folder_is_the_users_alone(folder):
    DiskCache("unit").put("key", b"value")
    assert folder.stat().st_mode & 0o777 == 0o700
    (entry,) = files(folder)
    assert entry.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_folder_that_others_may_write_to_is_not_used(folder, mode):
    DiskCache("unit").put("key", b"value")
    folder.chmod(mode)
    cache = DiskCache("unit")
    assert cache.folder is None
    assert cache.get("key") is None
    cache.put("second", b"value")
    assert len(files(folder)) == 1


@pytest.mark.parametrize("value", ["", "0"])
def test_it_can_be_switched_off(tmp_path, monkeypatch, value):
    monkeypatch.setenv("BURN_CACHE", value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache = DiskCache("unit")
    cache.put("key", b"value")
    assert cache.get("key") is None
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other folders of caches")
def test_without_the_variable_it_is_in_the_users_folder_of_caches(tmp_path, monkeypatch):
    monkeypatch.delenv("BURN_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert DiskCache("unit").folder == tmp_path / "burn/unit"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other folders of caches")
def test_a_relative_folder_of_caches_counts_as_none_as_its_specification_says(
    tmp_path, monkeypatch
):
    monkeypatch.delenv("BURN_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert DiskCache("unit").folder == tmp_path / ".cache/burn/unit"


def test_a_folder_that_cannot_be_made_keeps_nothing(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("BURN_CACHE", str(tmp_path / "file"))
    cache = DiskCache("unit")
    cache.put("key", b"value")
    assert cache.get("key") is None


def _cut(stored):
    return stored[:-1]


def _changed(stored):
    return stored[:-1] + b"?"


def _empty(stored):
    del stored
    return b""


@pytest.mark.parametrize("damage", [_cut, _changed, _empty])
def test_a_damaged_entry_is_none_and_goes(folder, damage):
    cache = DiskCache("unit")
    cache.put("key", b"value")
    (entry,) = files(folder)
    entry.write_bytes(damage(entry.read_bytes()))
    assert cache.get("key") is None
    assert not files(folder)
    cache.put("key", b"value")
    assert cache.get("key") == b"value"


def test_an_entry_of_another_key_is_none(folder):
    cache = DiskCache("unit")
    cache.put("first", b"value")
    (first,) = files(folder)
    cache.put("second", b"other")
    (second,) = set(files(folder)) - {first}
    second.write_bytes(first.read_bytes())
    assert cache.get("second") is None


def test_entries_go_that_were_not_used_for_the_longest_time(folder):
    cache = DiskCache("unit", max_bytes=1000)
    long_ago = time.time() - 1000
    for number in range(5):
        cache.put(str(number), bytes(168))  # 200 with its digest
        for entry in files(folder):
            if entry.stat().st_mtime > time.time() - 100:
                os.utime(entry, (long_ago + number, long_ago + number))
    assert cache.get("0") is not None
    cache.put("5", bytes(168))
    kept = [number for number in range(6) if cache.get(str(number)) is not None]
    assert kept == [0, 2, 3, 4, 5]
    assert sum(file.stat().st_size for file in files(folder)) <= 1000


def test_what_a_process_that_died_left_goes(folder):
    cache = DiskCache("unit", max_bytes=1000)
    cache.put("key", b"value")
    old, new = folder / "old.part", folder / "new.part"
    for item in (old, new):
        item.write_bytes(b"half")
    os.utime(old, (0, 0))
    cache.put("other", bytes(100))
    assert not old.exists()
    assert new.exists()


_WRITER = """
import sys
from burn.compiler import DiskCache

cache = DiskCache("unit", max_bytes=100_000)
for turn in range(60):
    for number in range(20):
        value = cache.get(str(number))
        assert value is None or value == bytes([number]) * 9_000, (turn, number)
        cache.put(str(number), bytes([number]) * 9_000)
"""


def test_processes_that_write_the_same_entries_at_once_do_not_disturb_each_other(folder):
    writers = [subprocess.Popen([sys.executable, "-c", _WRITER]) for _ in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert not list(folder.glob("*.part"))
    # Each process removes what is too much before it has written another sixteenth.
    assert sum(file.stat().st_size for file in files(folder)) <= 100_000 + 3 * (
        100_000 // 16 + 9_032
    )


@pytest.fixture
def warnings_of_burn(caplog, monkeypatch):
    monkeypatch.setattr(private_folder, "_refusals", set())
    caplog.set_level(logging.WARNING, logger="burn")
    return lambda: [record.getMessage() for record in caplog.records]


@POSIX
@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_where_others_may_write_to_any_folder_of_the_path_nothing_is_loaded_or_kept(
    tmp_path, monkeypatch, warnings_of_burn, level, mode
):
    monkeypatch.setenv("BURN_CACHE", str(tmp_path / "outer/inner"))
    cache = DiskCache("unit")
    cache.put("key", b"value")
    changed = [tmp_path / "outer", tmp_path / "outer/inner", tmp_path / "outer/inner/unit"][level]
    changed.chmod(mode)
    assert cache.get("key") is None
    cache.put("second", b"value")
    assert cache.folder is None
    (warning,) = warnings_of_burn()
    assert f"other users may write to {changed} (mode {mode:o})" in warning
    assert (
        f"`chmod go-w {changed}` forbids it, or set BURN_CACHE to a folder of your own" in warning
    )
    changed.chmod(0o700)
    assert cache.get("key") == b"value"
    assert cache.get("second") is None


@POSIX
def test_a_folder_that_replaces_one_of_the_path_is_checked_too(tmp_path, monkeypatch):
    monkeypatch.setenv("BURN_CACHE", str(tmp_path / "outer/inner"))
    cache = DiskCache("unit")
    cache.put("key", b"value")
    (tmp_path / "outer").rename(tmp_path / "moved")
    (tmp_path / "outer/inner").mkdir(parents=True)
    shutil.copytree(tmp_path / "moved/inner/unit", tmp_path / "outer/inner/unit")
    (tmp_path / "outer/inner/unit").chmod(0o777)
    assert cache.get("key") is None


@POSIX
def test_a_folder_with_the_sticky_bit_may_be_one_of_the_path_but_not_the_folder(
    tmp_path, monkeypatch
):
    (tmp_path / "temporary").mkdir()
    (tmp_path / "temporary").chmod(0o1777)
    monkeypatch.setenv("BURN_CACHE", str(tmp_path / "temporary"))
    cache = DiskCache("unit")
    cache.put("key", b"value")
    assert cache.get("key") == b"value"
    (tmp_path / "temporary/unit").chmod(0o1777)
    assert cache.get("key") is None


@POSIX
def test_what_belongs_to_another_user_is_refused(tmp_path, monkeypatch, warnings_of_burn):
    monkeypatch.setenv("BURN_CACHE", str(tmp_path))
    cache = DiskCache("unit")
    cache.put("key", b"value")
    owner = os.geteuid()
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: owner + 1)
        assert cache.get("key") is None
    (warning,) = warnings_of_burn()
    assert f"belongs to user {owner}, this process to user {owner + 1}" in warning
    assert "is executed: set BURN_CACHE to a folder of your own" in warning
    assert "remove" not in warning  # such as the home folder of the other user
    assert cache.get("key") == b"value"


@POSIX
def test_all_caches_say_once_why_none_of_them_is_used(tmp_path, monkeypatch, warnings_of_burn):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    monkeypatch.setenv("BURN_CACHE", str(tmp_path / "shared"))
    for name in ("first", "second"):
        DiskCache(name).put("key", b"value")
    (warning,) = warnings_of_burn()
    assert warning.startswith(
        f"compiled code is not kept on disk: other users may write to {tmp_path}"
    )


@POSIX
def test_an_entry_of_another_user_or_that_others_may_write_to_is_none(folder, monkeypatch):
    cache = DiskCache("unit")
    for spoil in (lambda entry: entry.chmod(0o620), lambda entry: entry.chmod(0o602)):
        cache.put("key", b"value")
        (entry,) = files(folder)
        spoil(entry)
        assert cache.get("key") is None
        assert not files(folder)
    cache.put("key", b"value")
    status = private_folder.os.fstat

    def of_another(file):
        found = status(file)
        if not stat.S_ISREG(found.st_mode):
            return found
        return os.stat_result([*found[:4], found.st_uid + 1, *found[5:]])

    monkeypatch.setattr(private_folder.os, "fstat", of_another)
    assert cache.get("key") is None


@POSIX
@pytest.mark.parametrize("kind", ["fifo", "link", "folder", "device", "sparse"])
def test_what_is_no_file_but_has_the_name_of_an_entry_is_none_and_does_not_hang(folder, kind):
    cache = DiskCache("unit", max_bytes=1 << 20)
    cache.put("key", b"value")
    (entry,) = files(folder)
    if kind == "sparse":
        os.truncate(entry, 1 << 40)
    elif kind == "link":
        entry.rename(folder / "elsewhere")
        entry.symlink_to(folder / "elsewhere")
    else:
        entry.unlink()
        make = {
            "fifo": lambda: os.mkfifo(entry),
            "folder": entry.mkdir,
            "device": lambda: entry.symlink_to("/dev/zero"),
        }
        make[kind]()
    assert cache.get("key") is None
    cache.put("key", b"value")
    assert cache.get("key") == b"value"


@POSIX
def test_a_folder_with_files_that_has_the_name_of_an_entry_stays(folder):
    cache = DiskCache("unit")
    cache.put("key", b"value")
    (entry,) = files(folder)
    entry.unlink()
    entry.mkdir()
    (entry / "file").write_text("of the user")
    assert cache.get("key") is None
    cache.put("key", b"value")
    assert cache.get("key") is None
    assert (entry / "file").exists()


def test_entries_of_a_disk_that_cannot_be_written_to_are_read(folder, monkeypatch):
    cache = DiskCache("unit")
    cache.put("key", b"value")

    def refuse(*arguments, **options):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    for name in ("utime", "mkdir", "unlink", "replace"):
        monkeypatch.setattr(private_folder.os, name, refuse)
    monkeypatch.setattr(private_folder.os, "supports_fd", {refuse})
    assert cache.get("key") == b"value"


_LARGE = """
import os, resource, sys
from burn.compiler import DiskCache

cache = DiskCache("unit")
cache.put("key", b"value")
(entry,) = cache.folder.glob("*.bin")
os.truncate(entry, 255 << 20)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit = used + (int(sys.argv[1]) << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
print(cache.get("key"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit address space")
@pytest.mark.parametrize("space", [100, 300])
def test_an_entry_for_which_there_is_no_memory_is_none(folder, space):
    program = [sys.executable, "-c", _LARGE, str(space)]
    assert subprocess.check_output(program, text=True).split() == ["None"]


@POSIX
def test_a_symbolic_link_of_the_user_may_be_one_of_the_path_but_not_the_folder(
    tmp_path, monkeypatch
):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real/relative").symlink_to("../real/./")
    monkeypatch.setenv("BURN_CACHE", str(tmp_path / "link/relative/made"))
    cache = DiskCache("unit")
    cache.put("key", b"value")
    assert cache.get("key") == b"value"
    assert files(tmp_path / "real/made/unit")
    (tmp_path / "real/made/unit").rename(tmp_path / "elsewhere")
    (tmp_path / "real/made/unit").symlink_to(tmp_path / "elsewhere")
    assert cache.get("key") is None
    (tmp_path / "real").chmod(0o777)  # where the link leads
    assert DiskCache("other").folder is None
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    monkeypatch.setenv("BURN_CACHE", str(tmp_path / "loop/made"))
    assert DiskCache("unit").folder is None


@POSIX
def test_a_symbolic_link_of_another_user_is_refused(tmp_path, monkeypatch, warnings_of_burn):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setenv("BURN_CACHE", str(tmp_path / "link"))
    plain = os.stat

    def of_another(name, **options):
        found = plain(name, **options)
        return os.stat_result([*found[:4], found.st_uid + 1, *found[5:]])

    monkeypatch.setattr(private_folder.os, "stat", of_another)
    assert DiskCache("unit").folder is None
    (warning,) = warnings_of_burn()
    assert f"{tmp_path / 'link'} belongs to user {os.geteuid() + 1}" in warning


_FOREIGN = """
import os, sys
from burn.compiler import DiskCache

if os.geteuid() == 0:
    os.seteuid(65534)
cache = DiskCache("unit")
cache.put("key", b"value")
print(cache.get("key"), cache.folder is not None)
"""


@POSIX
def test_a_user_loads_nothing_that_another_one_made(monkeypatch):
    with tempfile.TemporaryDirectory() as shared:  # in a folder that every user may enter
        Path(shared).chmod(0o1777)
        monkeypatch.setenv("BURN_CACHE", shared)
        made = subprocess.check_output([sys.executable, "-c", _FOREIGN], text=True)
        assert made.split() == ["b'value'", "True"]
        if os.geteuid() != 0:  # the other process was of this user
            other = os.geteuid() + 1
            monkeypatch.setattr(os, "geteuid", lambda: other)
        assert DiskCache("unit").get("key") is None


@POSIX
@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_folders_and_entries_are_the_users_alone_whatever_the_umask(tmp_path, monkeypatch, umask):
    monkeypatch.setenv("BURN_CACHE", str(tmp_path / "outer/inner"))
    before = os.umask(umask)
    try:
        cache = DiskCache("unit")
        cache.put("key", b"value")
    finally:
        os.umask(before)
    assert cache.get("key") == b"value"
    for item in (tmp_path / "outer", tmp_path / "outer/inner", tmp_path / "outer/inner/unit"):
        assert item.stat().st_mode & 0o777 == 0o700
    (entry,) = files(tmp_path / "outer/inner/unit")
    assert entry.stat().st_mode & 0o777 == 0o600


def test_a_system_without_descriptors_of_folders_keeps_entries_too(folder, monkeypatch):
    monkeypatch.setattr(private_folder, "_HAS_DESCRIPTORS", False)
    cache = DiskCache("unit", max_bytes=1000)
    cache.put("key", b"value")
    assert cache.get("key") == b"value"
    (entry,) = files(folder)
    entry.write_bytes(b"damaged")
    assert cache.get("key") is None
    for number in range(20):
        cache.put(str(number), bytes(100))
    assert len(files(folder)) <= 10


def test_no_descriptor_stays_open(folder):
    cache = DiskCache("unit", max_bytes=1000)

    def descriptors():
        return len(list(Path("/dev/fd").glob("*")))

    before = descriptors()
    for number in range(50):
        cache.put(str(number), bytes(100))
        cache.get(str(number))
        cache.get("none")
    folder.chmod(0o777)
    cache.get("0")
    assert descriptors() == before
