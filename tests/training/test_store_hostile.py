"""Files that are damaged, hostile or where they should not be: clear errors, nothing executed."""

import errno
import json
import os
import pickle
import shutil
import signal
import struct
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

import burn
from burn import nn, store
from burn.errors import ArgumentError, BurnError, StoreError

CPU = burn.Device("cpu")
POSIX = pytest.mark.skipif(os.name == "nt", reason="the limits of a process are those of POSIX")


def tensor(shape, offsets, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def file_of(header, data=b"", length=None):
    """The bytes of a safetensors file."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def encoded(text, **tensors):
    return {"__metadata__": {"burn.store": text}, **tensors}


ONE = {"a": tensor([1], [0, 4])}
SCHEME = '{"schemes": {"w": "q8f(scale=float32, store=native)"}, "complex128": []}'
CODES = {"w.codes": tensor([4], [0, 4], "I8")}

DAMAGED = {
    "empty": b"",
    "short": b"abc",
    "zeros": bytes(64),
    "text": b"<!DOCTYPE html><html>Not found</html>",
    "length of the header": file_of(ONE, bytes(4), 1 << 62),
    "header beyond the file": file_of(ONE, bytes(4), 5000),
    "no JSON": file_of(b"{nonsense}", bytes(4)),
    "nested JSON": file_of(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "overlap": file_of({"a": tensor([2], [0, 8]), "b": tensor([2], [4, 12])}, bytes(12)),
    "gap": file_of({"a": tensor([1], [0, 4]), "b": tensor([1], [8, 12])}, bytes(12)),
    "more data": file_of(ONE, bytes(9)),
    "less data": file_of({"a": tensor([4], [0, 16])}, bytes(9)),
    "backwards": file_of({"a": tensor([1], [4, 0])}, bytes(4)),
    "huge": file_of({"a": tensor([1 << 62, 1 << 62], [0, 4])}, bytes(4)),
    "huge and empty": file_of({"a": tensor([1 << 62, 1 << 62, 0], [0, 0])}),
    "negative": file_of({"a": tensor([-1], [0, 4])}, bytes(4)),
    "axes": file_of({"a": tensor([1] * 70, [0, 4])}, bytes(4)),
    "dtype": file_of({"a": tensor([1], [0, 4], "Q9")}, bytes(4)),
    "names": file_of(
        b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},'
        b'"a":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}}',
        bytes(4),
    ),
    "metadata": file_of(encoded("[]", **ONE), bytes(4)),
    "nested metadata": file_of(encoded("[" * 100_000, **ONE), bytes(4)),
    "scheme": file_of(encoded('{"schemes": {"w": "x"}, "complex128": []}'), b""),
    "no codes": file_of(encoded(SCHEME, **ONE), bytes(4)),
    "no scales": file_of(encoded(SCHEME, **CODES), bytes(4)),
    "codes": file_of(
        encoded(SCHEME, **{"w.codes": ONE["a"], "w.scales": tensor([1], [4, 8])}), bytes(8)
    ),
    "scales": file_of(encoded(SCHEME, **CODES, **{"w.scales": tensor([3], [4, 16])}), bytes(16)),
    "both": file_of(
        encoded(SCHEME, **CODES, **{"w.scales": tensor([1], [4, 8]), "w": tensor([0], [8, 8])}),
        bytes(8),
    ),
    "complex": file_of(encoded('{"schemes": {}, "complex128": ["a"]}', **ONE), bytes(4)),
    "no complex": file_of(encoded('{"schemes": {}, "complex128": ["b"]}', **ONE), bytes(4)),
    "Git LFS": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
    "archive": b"PK\x03\x04" + bytes(100),
    "pickle": b"\x80\x02" + bytes(100),
}


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_file_is_an_error_with_its_name(content, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(DAMAGED[content])
    with pytest.raises(StoreError, match=rf"^burn.store.load: {path}: .*\. ") as found:
        store.load(path, device=CPU)
    assert found.value.filename == str(path)
    net = nn.Linear(1, 1)
    before = net.state_dict()
    with pytest.raises((StoreError, ArgumentError), match=r"^burn.store.load_into: "):
        store.load_into(net, path)
    assert all(net.state_dict()[name].tolist() == x.tolist() for name, x in before.items())


@pytest.mark.parametrize("dtype", ["F8_E4M3", "F8_E5M2", "F4"])
def test_dtypes_that_no_tensor_has_are_named_and_may_be_left_out(dtype, tmp_path):
    path = tmp_path / "model.safetensors"
    size = 1 if dtype == "F4" else 2
    header = {"a": tensor([2], [0, size], dtype), "b": tensor([1], [size, size + 4], "I32")}
    path.write_bytes(file_of(header, bytes(size + 4)))
    with pytest.raises(StoreError, match=rf"a is stored as {dtype}; .* only="):
        store.load(path, device=CPU)
    assert store.load(path, device=CPU, only="b")["b"].tolist() == [0]


def test_booleans_of_any_byte_are_booleans(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(file_of({"a": tensor([4], [0, 4], "BOOL")}, b"\x02\x80\x00\xff"))
    found = store.load(path, device=CPU)["a"].numpy()
    assert found.view(np.uint8).tolist() == [1, 1, 0, 1]


@pytest.mark.parametrize("kind", ["safetensors", "index", "archive", "pickle"])
def test_any_changed_byte_loads_or_is_an_error(kind, everything, tmp_path):
    generator = np.random.default_rng(everything)
    path = tmp_path / "model.safetensors"
    state = {
        "a": burn.ones((2, 3)),
        "q": burn.random.normal((4, 8)).quantize_dynamic(),
        "c": np.ones((2, 2), np.complex128),
        "e": burn.zeros((0, 3)),
    }
    if kind in ("safetensors", "index"):
        store.save(
            state, path, metadata={"k": "v"}, max_shard_bytes=40 if kind == "index" else None
        )
        path = path.with_name(path.name + ".index.json") if kind == "index" else path
    else:
        path = tmp_path / "model.bin"
        theirs = {"model": {"a": torch.ones(2, 3), "b": torch.ones(2, 2).T}, "n": [1, 2.0, "x"]}
        torch.save(theirs, path, _use_new_zipfile_serialization=kind == "archive")
    content = path.read_bytes()
    end = 8 + struct.unpack("<Q", content[:8])[0] if kind == "safetensors" else len(content)
    for _ in range(5000 if everything else 100):
        changed, index = bytearray(content), generator.integers(end)
        match generator.integers(4):
            case 0:
                changed[index] ^= 1 << generator.integers(8)
            case 1:
                changed[index] = generator.integers(256)
            case 2:
                del changed[index:]
            case 3:
                del changed[index : index + 5]
        path.write_bytes(changed)
        try:
            store.load(path, device=CPU)
        except StoreError as error:
            assert str(error).startswith("burn.store.load: ")


# Indexes.

INDEXES = {
    "no JSON": "nonsense",
    "nested": "[" * 100_000,
    "list": "[]",
    "no map": "{}",
    "other map": '{"weight_map": []}',
    "numbers": '{"weight_map": {"a": 3}}',
    "metadata": '{"metadata": 3, "weight_map": {}}',
    "twice": '{"weight_map": {"a": "x.safetensors", "a": "y.safetensors"}}',
    "above": '{"weight_map": {"a": "../outside.safetensors"}}',
    "absolute": '{"weight_map": {"a": "/outside.safetensors"}}',
    "below": '{"weight_map": {"a": "folder/x.safetensors"}}',
    "windows": '{"weight_map": {"a": "..\\\\outside.safetensors"}}',
    "drive": '{"weight_map": {"a": "C:outside.safetensors"}}',
    "folder": '{"weight_map": {"a": ".."}}',
    "nothing": '{"weight_map": {"a": ""}}',
    "itself": '{"weight_map": {"a": "model.safetensors.index.json"}}',
    "no file": '{"weight_map": {"a": "nowhere.safetensors"}}',
    "no tensor": '{"weight_map": {"b": "x.safetensors"}}',
    "directory": '{"weight_map": {"a": "folder"}}',
}


@pytest.mark.parametrize("content", INDEXES)
def test_an_index_names_tensors_of_files_beside_it(content, tmp_path):
    folder = tmp_path / "model"
    store.save({"a": burn.ones(1)}, tmp_path / "outside.safetensors")
    store.save({"a": burn.ones(1)}, folder / "x.safetensors")
    (folder / "folder").mkdir()
    shutil.copy(folder / "x.safetensors", folder / "folder/x.safetensors")
    (folder / "model.safetensors.index.json").write_text(INDEXES[content])
    with pytest.raises(StoreError, match=r"^burn.store.load: .*(index.json|nowhere|x\.|folder)"):
        store.load(folder, device=CPU)


# PyTorch.


class Payload:
    """Runs a command where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"echo run > {self.path}",)


def test_nothing_that_a_file_has_is_run(tmp_path):
    target = tmp_path / "was_run"
    contents = {
        "raw.pt": pickle.dumps(Payload(target), 2),
        "protocol.pt": pickle.dumps({"state_dict": Payload(target)}, 4),
        "raw.safetensors": pickle.dumps(Payload(target), 2),  # read as the format of its name
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    for archive in (True, False):
        path = tmp_path / f"saved-{archive}.bin"
        state = {"w": torch.ones(1), "x": Payload(target)}
        torch.save(state, path, _use_new_zipfile_serialization=archive)
        contents[path.name] = b""
    torch.save(torch.nn.Linear(1, 1), tmp_path / "module.pt")
    for name in [*contents, "module.pt"]:
        with pytest.raises(StoreError, match=rf"{name}: (has more than tensors|is damaged)"):
            store.load(tmp_path / name, device=CPU)
    assert not target.exists()
    with pytest.raises(StoreError, match=r"containers: \w+.system"):
        store.load(tmp_path / "saved-True.bin")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([torch.ones(1)], "has an object of type list, and no state"),
        ({"n": 1}, "has the keys 'n', and no tensors"),
        (
            {"a": {"x": torch.ones(1)}, "b": {"x": torch.ones(1)}},
            "has the keys 'a', 'b', and tensors in",
        ),
        ({"w": torch.ones(1).expand(1 << 40)}, "w has 4398046511104 bytes, and the file"),
        ({"w": torch.ones(1, dtype=torch.float8_e5m2)}, "w is stored as torch.float8_e5m2"),
        ({"w": torch.eye(2).to_sparse()}, "w is stored as a sparse tensor"),
        ({"w": torch.ones(1, device="meta")}, "w is stored as a meta tensor"),
    ],
    ids=["list", "numbers", "two", "expanded", "float8", "sparse", "meta"],
)
def test_what_is_no_state_of_pytorch_is_named(content, message, tmp_path):
    torch.save(content, tmp_path / "x.pt")
    with pytest.raises(StoreError, match=rf"^burn.store.load: .*x.pt: {message}"):
        store.load(tmp_path / "x.pt", device=CPU)


def resident():
    """Bytes of the memory of this process, where the system says so."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    except OSError:
        return 0


@pytest.mark.parametrize("kind", ["float32", "bool"])
def test_names_that_share_memory_in_a_file_of_pytorch_share_it_here(kind, tmp_path):
    values = torch.arange(1 << 18).to(getattr(torch, kind))
    path = tmp_path / "state.pt"
    torch.save({f"n{number}": values for number in range(1000)}, path)
    before = resident()
    state = store.load(path, device="cpu")
    assert resident() - before < 200 * values.nbytes
    state["n0"][0] = True if kind == "bool" else 1.0
    assert state["n0"].tolist()[:2] == [1, 1]
    assert state["n1"].tolist()[:2] == state["n999"].tolist()[:2] == [0, 1]


VIEWS = {
    "ranges": lambda x: {f"n{number}": x[number:] for number in range(50)},
    "transposed": lambda x: {f"n{number}": x.view(32, 32).T[number:] for number in range(30)},
    "repeated": lambda x: {"n": x[:1].expand(1 << 40)},
    "repeated beyond 64 bits": lambda x: {"n": x[:1].expand(1 << 40, 1 << 22)},
    "windows": lambda x: {"n": x.unfold(0, 512, 1)},
}


@pytest.mark.parametrize("kind", VIEWS)
def test_tensors_of_far_more_bytes_than_the_file_are_refused(kind, tmp_path):
    path = tmp_path / "state.pt"
    torch.save(VIEWS[kind](torch.arange(1024, dtype=torch.float32)), path)
    module = nn.Linear(1, 1)
    for read in (lambda: store.load(path), lambda: store.load_into(module, path, strict=False)):
        with pytest.raises(StoreError, match=r"bytes( or more)?, and the file \d+"):
            read()


def test_tied_weights_and_some_views_of_a_file_of_pytorch_are_loaded(tmp_path):
    x = torch.arange(4096, dtype=torch.float32)
    state = {"all": x, "tied": x, "matrix": x.view(64, 64), "end": x[100:], "T": x.view(64, 64).T}
    torch.save(state, tmp_path / "state.pt")
    found = store.load(tmp_path / "state.pt", device="cpu")
    for name, expected in state.items():
        np.testing.assert_array_equal(found[name].numpy(), expected.numpy())


def test_a_program_of_torchscript_is_named(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.pt", "w") as archive:  # as torch.jit.save writes it
        for name in ("data.pkl", "constants.pkl", "code/model.py"):
            archive.writestr(f"x/{name}", "")
    with pytest.raises(StoreError, match=r"is a program of TorchScript\. Save state_dict\(\)"):
        store.load(tmp_path / "x.pt")


def test_a_compressed_archive_is_no_file_of_pytorch(tmp_path):
    np.savez_compressed(tmp_path / "x.npz", x=np.zeros(1000))
    np.savez(tmp_path / "y.npz", x=np.zeros(1000))
    for name in ("x.npz", "y.npz"):
        with pytest.raises(StoreError, match=r"npz: is (a compressed|damaged)"):
            store.load(tmp_path / name, device=CPU)


# Paths.


def test_a_path_that_is_not_there_is_an_error_that_names_near_ones(tmp_path):
    store.save({"x": burn.ones(1)}, tmp_path / "model.safetensors")
    with pytest.raises(StoreError, match=r"No such file.* has model.safetensors") as found:
        store.load(tmp_path / "modle.safetensors")
    assert found.value.errno == errno.ENOENT
    assert isinstance(found.value, OSError)
    with pytest.raises(StoreError, match="There is no folder"):
        store.load(tmp_path / "nowhere/model.safetensors")
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match="has no file of tensors"):
        store.load(tmp_path / "empty")
    store.save({"x": burn.ones(1)}, tmp_path / "other.safetensors")
    with pytest.raises(StoreError, match=r"has model\.safetensors, other\.safetensors\. Name one"):
        store.load(tmp_path)


@POSIX
def test_what_is_no_file_is_neither_read_nor_replaced(tmp_path):
    pipe, device = tmp_path / "pipe.safetensors", tmp_path / "device.safetensors"
    os.mkfifo(pipe)
    device.symlink_to("/dev/null")
    folder = tmp_path / "folder.safetensors"
    folder.mkdir()
    for path in (pipe, device):
        with pytest.raises(StoreError, match="is a device or a pipe"):
            store.load(path)
        with pytest.raises(StoreError, match="is a device or a pipe"):
            store.save({}, path)
    with pytest.raises(StoreError, match="is a folder") as found:
        store.save({}, folder)
    assert found.value.errno == errno.EISDIR
    store.save({}, tmp_path / "file.safetensors")
    with pytest.raises(StoreError, match=r"A (part|file)"):
        store.save({}, tmp_path / "file.safetensors/x.safetensors")
    assert len(list(tmp_path.iterdir())) == 4


class Named:
    """A path as other libraries have them."""

    def __init__(self, name):
        self.name = name

    def __fspath__(self):
        return self.name

    def __repr__(self):
        return f"Named({self.name!r})"


ODD = [
    "",
    ".",
    "/",
    "a\0b",
    "\ud800",
    b"bytes",
    Named(b"bytes"),
    Named("a\0b"),
    Named("."),
    3,
    None,
]
USES = {
    "load": store.load,
    "load_into": lambda path: store.load_into(nn.Linear(1, 1), path),
    "read_metadata": store.read_metadata,
    "save": lambda path: store.save({"x": np.ones(1)}, path),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("path", ODD, ids=ascii)
def test_an_odd_path_is_an_error_that_says_what_to_do(path, use, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BurnError, match=rf"burn\.store\.{use}: .*\. \w"):
        USES[use](path)


@pytest.mark.parametrize("path", ["a\0b", "\ud800", b"bytes", Named(b"bytes"), 3], ids=ascii)
def test_an_odd_path_of_checkpoints_is_an_error(path):
    with pytest.raises(BurnError, match=r"Checkpoints: the path .*\. \w"):
        store.Checkpoints(path)


@POSIX
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_an_index_that_is_no_file_is_neither_waited_for_nor_read(make, tmp_path):
    path = tmp_path / "x.safetensors"
    index = tmp_path / "x.safetensors.index.json"
    make(index)
    for item in (path, index, tmp_path):
        with pytest.raises(StoreError, match=r"index\.json: is a device or a pipe, and no file"):
            store.load(item)
    store.save({"x": np.ones(1)}, path)
    assert not os.path.lexists(index)
    assert store.load(path, device="cpu")["x"].tolist() == [1.0]


@POSIX
def test_shards_do_not_replace_what_is_no_file(tmp_path):
    path = tmp_path / "x.safetensors"
    os.mkfifo(path)
    with pytest.raises(StoreError, match="is a device or a pipe"):
        store.save({"x": np.ones(1), "y": np.ones(1)}, path, max_shard_bytes=8)
    assert [path.name for path in tmp_path.iterdir()] == [path.name]


def test_names_that_the_system_refuses_are_errors(tmp_path):
    with pytest.raises(StoreError, match="Choose a shorter name"):
        store.save({}, tmp_path / ("x" * 300 + ".safetensors"))
    with pytest.raises(ArgumentError, match="null character"):
        store.load("x\0y")
    store.save({"x": burn.ones(1)}, tmp_path / ("ü" * 120 + ".safetensors"))
    assert list(store.load(tmp_path)) == ["x"]


# Disks.

DISK = """
import os, sys
from pathlib import Path
import burn
from burn import store

os.chdir(sys.argv[1])
folder, trouble = Path(), sys.argv[2]
small = {"x": burn.zeros(4, device="cpu")}
large = {"x": burn.ones(300_000, device="cpu"), "y": burn.ones(300_000, device="cpu")}
path = folder / "model.safetensors"
if trouble != "read-only":
    store.save(small, path)
if trouble == "limit":
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
elif trouble == "permission":
    folder.chmod(0o755)
    os.setuid(65534)
for limit in (None, 1_300_000):
    try:
        store.save(large, path, max_shard_bytes=limit)
    except burn.errors.StoreError as error:
        print(error.errno, error)
    if trouble != "read-only":
        assert [one.name for one in folder.iterdir()] == [path.name]
        assert store.load(path, device="cpu")["x"].tolist() == [0.0] * 4
"""


def check_disk(output, number, hint):
    lines = output.splitlines()
    assert len(lines) == 2, output
    for line in lines:
        assert line.startswith(f"{number} burn.store.save: ")
        assert hint in line


@POSIX
def test_a_file_that_grows_too_large_is_an_error_and_the_old_one_stays(run_python, tmp_path):
    result = run_python("-c", DISK, tmp_path, "limit")
    check_disk(result.stdout, errno.EFBIG, "ulimit -f")
    assert result.stderr == ""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="root alone may")
def test_a_folder_without_permission_is_an_error(run_python, tmp_path):
    result = run_python("-c", DISK, tmp_path, "permission")
    check_disk(result.stdout, errno.EACCES, "Ask for the permission")


MOUNT = 'mount -t tmpfs -o "$1" none "$2" && exec "$3" -c "$4" "$2" "$5"'
"""A shell's program: a disk of its own for a program of Python."""


@pytest.mark.parametrize(
    ("trouble", "options", "number", "hint"),
    [
        ("full", "size=1m", errno.ENOSPC, "Free space"),
        ("read-only", "ro", errno.EROFS, "The disk is read-only"),
    ],
)
def test_a_full_or_read_only_disk_is_an_error_and_the_old_file_stays(
    trouble, options, number, hint, tmp_path
):
    namespace = ["unshare", "--user", "--map-root-user", "--mount"]
    if not shutil.which("unshare") or subprocess.run([*namespace, "true"], check=False).returncode:
        pytest.skip("no disk can be mounted here")
    command = ["sh", "-c", MOUNT, "sh", options, tmp_path, sys.executable, DISK, trouble]
    result = subprocess.run(
        [*namespace, *command], capture_output=True, text=True, timeout=100, check=False
    )
    check_disk(result.stdout, number, hint)


# Kills.

WRITER = """
import sys
import burn
from burn import store

number = 0
while True:
    number += 1
    state = {str(index): burn.full(20_000, number, device="cpu") for index in range(6)}
    store.save(state, sys.argv[1], max_shard_bytes=None if number % 3 == 0 else 200_000)
    print(number, flush=True)
"""


@POSIX
def test_a_kill_at_any_moment_leaves_one_whole_model(everything, tmp_path):
    generator = np.random.default_rng(everything)
    path = tmp_path / "model.safetensors"
    for _ in range(60 if everything else 2):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True
        ) as process:
            process.stdout.readline()  # it has begun
            time.sleep(generator.uniform(0.0, 0.1))
            process.send_signal(signal.SIGKILL)
            lines = process.stdout.read().split()
        saved = int(lines[-1]) if lines else 1
        found = store.load(path, device=CPU)
        numbers = {float(x) for value in found.values() for x in value.tolist()}
        assert len(found) == 6
        assert len(numbers) == 1
        assert saved <= numbers.pop() <= saved + 1
        for item in Path(tmp_path).iterdir():
            item.unlink()
