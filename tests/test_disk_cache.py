"""DiskCache keeps bytes between processes, whatever happens to the folder."""

import os
import subprocess
import sys
import time

import pytest

from burn.compiler import DiskCache


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
    assert sum(one.stat().st_size for one in files(folder)) <= 1000


def test_what_a_process_that_died_left_goes(folder):
    cache = DiskCache("unit", max_bytes=1000)
    cache.put("key", b"value")
    old, new = folder / "old.part", folder / "new.part"
    for one in (old, new):
        one.write_bytes(b"half")
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
    assert [one.wait() for one in writers] == [0, 0, 0]
    assert not list(folder.glob("*.part"))
    # Each process removes what is too much before it has written another sixteenth.
    assert sum(one.stat().st_size for one in files(folder)) <= 100_000 + 3 * (100_000 // 16 + 9_032)
