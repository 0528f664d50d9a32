"""Batches of host memory come to a device as they are, in order, and no more ahead than allowed."""

import dataclasses
import gc
import queue
import threading
import time

import ml_dtypes
import numpy as np
import pytest
import torch

import burn
from burn.data import Arrays, DataLoader, collate
from burn.data.uploading import upload, upload_one
from burn.testing import MockDevice, mock_backend

DEVICES = [device for device in burn.Device.enumerate() if device.backend_name != "strict"]

SHARING = [device for device in DEVICES if device.name in ("cpu:0", "torch/cpu:0")]
"""Devices whose tensors may lie in memory of the host."""

AHEAD = [device for device in DEVICES if device not in SHARING]


@dataclasses.dataclass
class Example:
    image: object
    label: object


class Source:
    """Batches of a function of their number; `None` blocks until it is closed."""

    def __init__(self, count, make, failing=()):
        self.count, self.make, self.failing = count, make, failing
        self.taken = 0
        self.threads = set()
        self.closed = threading.Event()

    def __next__(self):
        self.threads.add(threading.current_thread().name)
        if self.closed.is_set() or self.taken == self.count:
            raise StopIteration
        number = self.taken
        self.taken += 1
        if number in self.failing:
            raise ValueError(number)
        made = self.make(number)
        if made is None:
            self.closed.wait()
            raise StopIteration
        return made

    def close(self):
        self.closed.set()


def upload_threads():
    return [device for device in threading.enumerate() if device.name == "burn-upload"]


def eventually(condition):
    """Wait until a condition holds; it fails where it does not within a time that is ample."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("owned", [False, True])
def test_arrays_of_a_batch_become_tensors_and_all_else_stays(device, owned):
    dates = np.array(["2020-01-01"], "M8[D]")
    mask = object()
    batch = {
        "float": np.float32([[1, 2]]),
        "big endian": np.array([1, 2], ">f4"),
        "reversed": np.arange(3, dtype=np.int32)[::-1],
        "bool": np.array([True, False]),
        "bfloat16": np.array([1.5], ml_dtypes.bfloat16),
        "0-d": np.array(3, np.int32),
        "empty": np.zeros((0, 3), np.float32),
        "torch": torch.tensor([1, 2], dtype=torch.int32),
        "tensor": burn.asarray([1.0], device="cpu"),
        "pair": (np.int32([5]), "text"),
        "dataclass": Example(np.int32([6]), None),
        "numbers": collate([1, 2]),
        "floats": collate([1, 2.5]),
        "kept": [np.array(["a"]), dates, mask, 3, 4.5, np.float64(1), None],
    }
    found = upload_one(batch, device, owned=owned)
    tensors = {
        "float": ([[1, 2]], "float32"),
        "big endian": ([1, 2], "float32"),
        "reversed": ([2, 1, 0], "int32"),
        "bool": ([True, False], "bool"),
        "bfloat16": ([1.5], "bfloat16"),
        "0-d": (3, "int32"),
        "empty": ([], "float32"),
        "torch": ([1, 2], "int32"),
        "tensor": ([1.0], "float32"),
        "numbers": ([1, 2], str(device.settings.int_dtype)),
        "floats": ([1, 2.5], "float32"),
    }
    for name, expected in tensors.items():
        assert found[name].device is device, name
        assert (found[name].tolist(), str(found[name].dtype)) == expected, name
    assert found["pair"][0].tolist() == [5]
    assert found["pair"][1] == "text"
    assert found["dataclass"].image.tolist() == [6]
    assert found["dataclass"].label is None
    assert isinstance(batch["dataclass"].image, np.ndarray)  # the batch itself is not changed
    assert all(item is two for item, two in zip(found["kept"], batch["kept"], strict=True))


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_tensors_of_autodiff_devices_are_constants_there(device):
    autodiff = device.autodiff()
    for owned in (False, True):
        x, label = upload_one((np.float32([1, 2]), collate([1])), autodiff, owned=owned)
        assert x.device is label.device is autodiff
        assert not x.is_tracked
        weight = burn.asarray([3.0, 4.0], device=autodiff).require_grad()
        assert weight.grad((x * weight).sum().backward()).tolist() == [1, 2]


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_a_tensor_keeps_its_values_when_the_array_of_another_changes(device):
    array = np.ones(1000, np.float32)
    x = upload_one(array, device, owned=False)
    array[...] = 2
    assert x.tolist() == [1] * 1000


@pytest.mark.parametrize("device", SHARING, ids=str)
def test_tensors_lie_in_the_memory_of_arrays_that_belong_to_the_batch(device):
    array = np.ones(5, np.float32)
    x = upload_one(array, device, owned=True)
    assert np.shares_memory(x.numpy(), array)
    y = x + 1
    x += 1  # no op writes to memory that it shares
    assert array.tolist() == [1] * 5
    assert x.tolist() == y.tolist() == [2] * 5


def test_dtypes_that_a_device_lacks_are_errors_that_name_the_field():
    lacking = MockDevice("npu", without=("float64", "int64", "uint64"))
    with burn.registered(mock_backend("acme", [lacking])):
        device = burn.Device("acme")
        x, number = upload_one((np.float32([1]), collate([7])), device, owned=True)
        assert (str(number.dtype), number.tolist()) == ("int32", [7])
        with pytest.raises(burn.DTypeError, match=r"batch\['x'\].*has no float64.*transform"):
            upload_one({"x": np.zeros(2)}, device, owned=True)
        with pytest.raises(burn.ScalarRangeError, match=r"batch\[0\].*int32"):
            upload_one((collate([2**40]),), device, owned=True)
        del x


@pytest.mark.parametrize("device", SHARING, ids=str)
@pytest.mark.parametrize("ahead", [0, 3])
def test_there_is_no_thread_where_the_device_reads_memory_of_the_host(device, ahead):
    source = Source(3, lambda number: np.full(2, number, np.float32))
    batches = upload(source, device, ahead, owned=True)
    assert next(batches).tolist() == [0, 0]
    assert (source.taken, source.threads) == (1, {threading.current_thread().name})
    assert [batch.tolist() for batch in batches] == [[1, 1], [2, 2]]
    batches.close()
    assert source.closed.is_set()


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("ahead", [0, 1, 2])
def test_exceptions_arrive_in_order_and_the_next_batch_follows(device, ahead):
    source = Source(5, lambda number: np.full(2, number, np.float32), failing=(2,))
    batches = upload(source, device, ahead, owned=True)
    assert next(batches).tolist() == [0, 0]
    assert next(batches).tolist() == [1, 1]
    with pytest.raises(ValueError, match="2") as found:
        next(batches)
    assert found.traceback[-1].name == "__next__"  # of the source
    assert [batch.tolist() for batch in batches] == [[3, 3], [4, 4]]
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(batches)
    batches.close()


@pytest.mark.parametrize("device", AHEAD, ids=str)
@pytest.mark.parametrize("ahead", [1, 2, 4])
def test_as_many_batches_as_allowed_are_uploaded_ahead(device, ahead):
    source = Source(20, lambda number: np.full(2, number, np.float32))
    batches = upload(source, device, ahead, owned=True)
    for number in range(10):
        eventually(lambda number=number: source.taken == number + ahead)
        time.sleep(0.005)  # in which a thread that did not stop would take another
        assert source.taken == number + ahead
        assert next(batches).tolist() == [number] * 2
    assert source.threads == {"burn-upload"}
    batches.close()


@pytest.mark.parametrize("device", AHEAD, ids=str)
@pytest.mark.parametrize("how", ["closed", "dropped", "closed while it waits", "exhausted"])
def test_the_thread_ends_with_the_loop(device, how):
    assert not upload_threads()
    waits = how == "closed while it waits"
    source = Source(
        5, lambda number: None if waits and number == 1 else np.full(2, number, np.float32)
    )
    batches = upload(source, device, 2, owned=True)
    next(batches)
    if waits:
        waiting = queue.SimpleQueue()
        consumer = threading.Thread(target=lambda: waiting.put(next(batches, "ended")))
        consumer.start()
        eventually(lambda: source.taken == 2)
        batches.close()
        assert waiting.get(timeout=20) == "ended"
        consumer.join()
    elif how == "dropped":
        del batches
        gc.collect()
    elif how == "exhausted":
        assert len(list(batches)) == 4
        batches.close()
    else:
        batches.close()
        batches.close()  # a second time does nothing
        with pytest.raises(StopIteration):
            next(batches)
    eventually(lambda: not upload_threads())
    assert source.closed.is_set()


@pytest.mark.parametrize("device", AHEAD, ids=str)
def test_arrays_are_dropped_when_they_are_uploaded(device):
    alive = set()

    class Marked(np.ndarray):
        def __del__(self):
            alive.discard(self.number)

    def make(number):
        array = np.zeros(3, np.float32).view(Marked)
        array.number = number
        alive.add(number)
        return [array]

    source = Source(20, make)
    batches = upload(source, device, 3, owned=True)
    received = next(batches)
    eventually(lambda: source.taken == 4)
    device.sync()
    eventually(lambda: not alive)  # the last upload may go on
    assert received[0].tolist() == [0] * 3
    batches.close()


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_values_are_right_while_the_device_computes(device, everything):
    count = 200 if everything else 25
    if device.backend_name == "pure":
        count = 3
    generator = np.random.default_rng(0)
    sizes = generator.integers(1, 40_000 if device.backend_name != "pure" else 40, count)
    rows = [generator.integers(0, 1000, size, dtype=np.int32) for size in sizes]
    weight = burn.ones((64, 64), device=device)
    total = burn.zeros((), dtype="int32", device=device)
    source = Source(count, lambda number: {"x": rows[number].copy()})
    batches = upload(source, device, 3, owned=True)
    kept = []
    for batch in batches:
        for _ in range(3):
            weight = weight @ weight / 64
        total = total + burn.sum(batch["x"], dtype="int32")
        if len(kept) < 8:
            kept.append(batch["x"])
    batches.close()
    assert int(total) == sum(int(row.sum()) for row in rows)
    for tensor, row in zip(kept, rows, strict=False):
        assert np.array_equal(tensor.numpy(), row)


@pytest.mark.parametrize("device", AHEAD, ids=str)
def test_a_failed_upload_is_that_of_its_batch(device):
    bad = Example(np.zeros(2, "V3"), 0)
    source = Source(3, lambda number: bad if number == 1 else np.full(2, number, np.float32))
    batches = upload(source, device, 2, owned=True)
    next(batches)
    with pytest.raises(burn.BurnError, match=r"batch.image"):
        next(batches)
    assert next(batches).tolist() == [2, 2]
    batches.close()


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("workers", [0, 1])
def test_a_loop_has_the_default_device_of_its_beginning(device, workers):
    data = Arrays(np.arange(8, dtype=np.float32))
    with DataLoader(data, 2, workers=workers, threads=True) as loader:
        with burn.default_device(device.autodiff()):
            batches = iter(loader)
            first = next(batches)
        found = [first, *batches]
    assert all(tensor.device is device.autodiff() for tensor in found)
    assert [tensor.tolist() for tensor in found] == [[0, 1], [2, 3], [4, 5], [6, 7]]
