"""Worker processes of DataLoader: the same batches, and an end whatever happens."""

import contextlib
import gc
import itertools
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from concurrent.futures import Future
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import burn
from burn.data import Arrays, DataLoader
from burn.data.shared_memory import Memory, Reader, Writer
from burn.errors import OperandTypeError, WorkerError
from data_sources import (
    Ending,
    Failing,
    Images,
    NotRebuiltError,
    Numbers,
    Processes,
    Random,
    Slow,
    Unreadable,
    noisy,
    unpicklable,
)

pytestmark = pytest.mark.usefixtures("default_signals")

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
POSIX = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

SECONDS = 30.0
"""How long a process may take to end, on a busy machine."""


def loader_of(dataset, *arguments, workers=1, **options):
    return DataLoader(dataset, *arguments, workers=workers, device="cpu", **options)


def values(loader):
    return [burn.tree.map(lambda leaf: leaf.tolist(), batch) for batch in loader]


def children(process=None):
    """The processes that a process has started, and those that these have."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, _, rest = path.read_text().partition(" (")
        except (FileNotFoundError, ProcessLookupError):
            continue
        state, parent = rest.rpartition(") ")[2].split()[:2]
        if int(parent) == (process or os.getpid()) and state != "Z":
            found += [int(number), *children(int(number))]
    return found


def wait_until(condition):
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def is_alive(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_order_and_content_are_the_same_for_any_number_of_workers():
    def indexed(workers):
        return loader_of(Random(20), 3, shuffle=True, seed=4, workers=workers)

    def streamed(workers):
        return loader_of(iter(range(20)), 3, seed=4, transform=noisy, workers=workers)

    for make, several in ((indexed, 4), (streamed, 2)):
        expected = values(make(0))
        for workers in (1, several):
            with make(workers) as loader:
                assert values(loader) == expected


@pytest.mark.parametrize(
    "device",
    [
        device
        if device.name in ("cpu:0", "opencl/cpu:0", "cuda:0")
        else pytest.param(device, marks=pytest.mark.exhaustive)
        for device in burn.Device.enumerate()
    ],
    ids=str,
)
def test_batches_of_workers_come_to_every_device(device):
    if device.backend_name == "strict":
        device = device.autodiff()
    for dataset in (Images(12), map(Images(12).__getitem__, range(12))):
        with DataLoader(dataset, 4, workers=1, device=device) as loader:
            for index, batch in enumerate(loader):
                assert batch.device == device
                assert batch[:, 0, 0, 0].tolist() == [4 * index + k for k in range(4)]
            assert loader.epoch == 1


@pytest.mark.exhaustive
@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("prefetch", [1, 2, 5])
@pytest.mark.parametrize("drop_last", [False, True])
def test_epochs_and_positions_are_the_same_for_any_number_of_workers(workers, prefetch, drop_last):
    def make(**options):
        return DataLoader(
            Random(50), 4, shuffle=True, seed=4, drop_last=drop_last, device="cpu", **options
        )

    undisturbed = make()
    expected = [values(undisturbed) for _ in range(3)]
    with make(workers=workers, prefetch=prefetch) as loader:
        for epoch, stop in enumerate((5, 12, 1)):
            begun = []
            for batch in loader:
                begun.append(burn.tree.map(lambda leaf: leaf.tolist(), batch))
                if len(begun) == stop:
                    break
            assert begun == expected[epoch][:stop]
            loader.load_state_dict(loader.state_dict())
            assert begun + values(loader) == expected[epoch]


def test_workers_are_other_processes_that_start_once():
    with loader_of(Processes(), workers=2) as loader:
        first, second = ({batch.item() for batch in loader} for _ in range(2))
    assert os.getpid() not in first | second
    assert len(first | second) <= 2


def test_arrays_of_every_dtype_and_layout_arrive_as_they_are():
    large = np.arange(40_000, dtype=np.float32)
    arrays = [
        large,
        large.astype(ml_dtypes.bfloat16),
        large.astype("datetime64[s]"),
        np.asfortranarray(large.reshape(200, 200)),
        large[::2],
        large.astype(object),
        large[:3],
        np.zeros((0, 3)),
        np.array(["text", "more"]),
    ]
    with loader_of(arrays, collate=one_of) as loader:
        for batch, array in zip(loader, arrays, strict=True):
            got = batch["x"]
            if isinstance(got, burn.Tensor):
                got = got.numpy()
            assert got.dtype == array.dtype
            np.testing.assert_array_equal(got, array)


def one_of(examples):
    return {"x": examples[0]}


def test_a_system_without_files_in_memory_sends_all_through_pipes(monkeypatch):
    for module in ("shared_memory", "_processes"):
        monkeypatch.setattr(f"burn.data.{module}.available", lambda: False)
    array = np.arange(400_000, dtype=np.float32)
    with loader_of(Arrays(array), 100_000, workers=2) as loader:
        assert np.concatenate([batch.numpy() for batch in loader]).tolist() == array.tolist()


def test_batches_that_are_kept_do_not_change():
    with loader_of(Images(120), 2, workers=2) as loader:
        kept = list(loader)
        again = list(loader)
        loader.close()
        for batches in (kept, again):
            for index, batch in enumerate(batches):
                assert batch.reshape((2, -1))[:, ::1000].tolist() == [
                    [2 * index] * 66,
                    [2 * index + 1] * 66,
                ]


@LINUX
def test_memory_of_batches_that_are_gone_is_used_again():
    with loader_of(Images(2000), 1) as loader:
        batches = iter(loader)
        next(batches)
        (worker,) = (child for child in children() if "multiprocessing.spawn" in command(child))

        def mapped():
            lines = Path(f"/proc/{worker}/maps").read_text().splitlines()
            return sum("memfd:burn.data" in line for line in lines)

        for _ in range(300):
            next(batches)
        assert mapped() <= 8


def command(process):
    return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()


def test_arrays_of_a_dataset_are_those_of_the_program_and_can_be_written():
    array = np.arange(60_000, dtype=np.float32)
    with loader_of(Arrays(array), 20_000, transform=add_in_memory) as loader:
        (first, _, _) = loader
    assert array[1] == 1
    np.testing.assert_array_equal(first.numpy(), array[:20_000] + 1)


def test_large_objects_that_are_no_arrays_go_both_ways():
    texts = [str(index) * 300_000 for index in range(12)]
    with loader_of(texts, 2, workers=2) as loader:
        assert list(itertools.chain(*loader)) == texts
    with loader_of(iter(texts), 2, workers=2, transform=str.upper) as loader:
        batches = iter(loader)
        time.sleep(0.1)
        assert list(itertools.chain(*batches)) == texts


@LINUX
def test_a_dataset_of_a_mapped_file_is_mapped_by_each_worker(tmp_path):
    path = tmp_path / "tokens.npy"
    np.save(path, np.arange(10**6))
    array = np.load(path, mmap_mode="r").reshape(1000, 1000)
    with loader_of(array, 1000, transform=name_of_file) as loader:
        (names,) = loader
    assert names == [str(path)] * 1000


def name_of_file(x):
    while not isinstance(x, np.memmap):
        x = x.base
    return str(x.filename)


def add_in_memory(x):
    x += 1
    return x


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (burn.ShapeError("a rule"), burn.ShapeError, "a rule"),
        pytest.param(KeyError("five"), KeyError, "five", marks=pytest.mark.exhaustive),
        pytest.param(
            StopIteration(), RuntimeError, "StopIteration was raised", marks=pytest.mark.exhaustive
        ),
    ],
)
def test_an_exception_arrives_with_its_type_example_worker_and_traceback(error, kind, text):
    with loader_of(Failing(error), 2) as loader:
        batches = iter(loader)
        next(batches), next(batches)
        with pytest.raises(kind, match=text) as caught:
            next(batches)
        notes = "\n".join(caught.value.__notes__)
        assert "worker 0 (process " in notes
        assert "batch 2 of epoch 0, examples [4, 5]" in notes
        assert "in __getitem__" in notes
        assert loader.state_dict()["batches"] == 2
        assert next(batches).tolist() == [6, 7]
        assert len(list(batches)) == 1


def test_an_exception_that_pickle_cannot_rebuild_is_a_worker_error_with_its_text():
    with loader_of(range(3), transform=raise_not_rebuilt) as loader:
        with pytest.raises(WorkerError, match="NotRebuiltError: this and that") as caught:
            next(iter(loader))
        assert "raise_not_rebuilt" in caught.value.__notes__[0]


def raise_not_rebuilt(_):
    raise NotRebuiltError("this", "that")


@POSIX
@pytest.mark.parametrize(
    ("way", "text"),
    [
        ("kill", r"ended with SIGKILL as it loaded batch 2 of epoch 0, examples \[4, 5\]"),
        pytest.param("exit", "ended with exit status 3", marks=pytest.mark.exhaustive),
        pytest.param("crash", "ended with SIGSEGV", marks=[LINUX, pytest.mark.exhaustive]),
    ],
)
def test_a_worker_that_dies_is_named_and_the_next_loop_has_new_ones(way, text, tmp_path):
    with loader_of(Ending(way, tmp_path / "once"), 2, workers=2) as loader:
        batches = iter(loader)
        assert [next(batches).tolist() for _ in range(2)] == [[0, 1], [2, 3]]
        with pytest.raises(WorkerError, match=r"worker [01] \(process \d+\)") as caught:
            next(batches)
        assert caught.match(text)
        assert loader.state_dict()["batches"] == 2
        loader.load_state_dict(loader.state_dict())
        assert values(loader) == [[4, 5], [6, 7], [8, 9]]


@POSIX
def test_every_batch_that_a_dead_worker_was_to_load_is_an_error():
    with loader_of(Ending("kill"), 1) as loader:
        batches = iter(loader)
        assert len(list(itertools.islice(batches, 5))) == 5
        for _ in range(5):
            with pytest.raises(WorkerError):
                next(batches)
        with pytest.raises(StopIteration):
            next(batches)


@pytest.mark.parametrize("options", [{"transform": lambda x: x}, {"dataset": [lambda: 1]}])
def test_what_cannot_be_pickled_is_an_error_that_says_what_to_do(options):
    with (
        loader_of(**{"dataset": range(3)} | options) as loader,
        pytest.raises(OperandTypeError, match=r"fails with .*lambda.*threads=True"),
    ):
        iter(loader)


def test_what_a_worker_cannot_read_or_send_is_an_error_that_says_what_to_do():
    with loader_of(Unreadable()) as loader:
        with pytest.raises(RuntimeError, match="no such file here") as caught:
            next(iter(loader))
        assert "as it got the dataset" in caught.value.__notes__[0]
    with (
        loader_of(range(3), collate=unpicklable) as loader,
        pytest.raises(OperandTypeError, match=r"cannot be sent by a worker process.*arrays"),
    ):
        next(iter(loader))


def test_a_loop_that_was_left_stops_loading():
    loader = loader_of(Slow(0.2, quick=1), prefetch=4)
    next(iter(loader))
    start = time.monotonic()
    loader.close()
    assert time.monotonic() - start < SECONDS
    with loader_of(Numbers(200), 2, workers=2) as other:
        for batch in other:
            assert batch["number"].tolist() == [0, 1]
            break
        assert len(values(other)) == 100


@LINUX
def test_close_ends_a_worker_in_the_middle_of_a_long_batch():
    before = children()
    loader = loader_of(Slow(60.0, quick=2), workers=2)
    next(iter(loader))
    start = time.monotonic()
    loader.close()
    assert time.monotonic() - start < SECONDS
    assert {*children()} - {*before} <= {resource_tracker()}


def resource_tracker():
    return multiprocessing.resource_tracker._resource_tracker._pid


@LINUX
def test_workers_end_with_the_last_reference_to_their_loader():
    before = {*children()}
    descriptors = open_descriptors()
    loader = loader_of(Images(), 2, workers=2)
    batches = iter(loader)
    batch = next(batches)
    assert len({*children()} - before - {resource_tracker()}) == 2
    del loader, batches
    gc.collect()
    wait_until(lambda: {*children()} - before <= {resource_tracker()})
    assert burn.all(batch[1] == 1)
    del batch
    wait_until(lambda: open_descriptors() <= descriptors + 1)  # that of the tracker of resources


def open_descriptors():
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


@contextlib.contextmanager
def forked(function):
    """A child that waits for the end of the context; it yields what function returns there."""
    (told, tell), (answer, write) = os.pipe(), os.pipe()
    with warnings.catch_warnings(action="ignore"):  # Python's, of forks beside threads
        child = os.fork()
    if not child:
        try:
            os.close(tell)
            os.read(told, 1)
            os.write(write, repr(function()).encode())
        finally:
            os._exit(0)
    os.close(told)
    os.close(write)
    found = []
    try:
        yield found
    finally:
        os.close(tell)
        found.append(os.read(answer, 1000).decode())
        os.waitpid(child, 0)
        os.close(answer)


@LINUX
@pytest.mark.parametrize("then", ["loads on", "writes", "closes and writes"])
def test_batches_of_a_forked_process_are_its_own(then):
    memory = Memory()
    writer, reader = Writer(memory), Reader(memory)
    batches = [reader.read(writer.write(np.full(50_000, float(k)))) for k in range(3)]
    batches[2][0] = 9.0
    if then == "closes and writes":
        reader.close()
        memory.close()
    with forked(lambda: [sorted(set(batch.tolist())) for batch in batches]) as found:
        if then == "loads on":
            batches.clear()
            for k in range(6):
                writer.release(reader.released())
                kept = reader.read(writer.write(np.full(50_000, 10.0 + k)))
                assert kept[0] == kept[-1] == 10.0 + k
        else:
            for batch in batches:
                batch[:] = 20.0
    assert found == ["[[0.0], [1.0], [2.0, 9.0]]"]
    assert all(batch[0] == 20.0 for batch in batches)


@LINUX
@pytest.mark.parametrize("ended", [False, True])
def test_memory_is_used_again_when_a_forked_process_has_copied_it(ended):
    memory = Memory()
    writer, reader = Writer(memory), Reader(memory)
    batch = reader.read(writer.write(np.zeros(50_000)))
    with forked(lambda: batch.sum()) as found:
        if not ended:
            batch[:] = 7.0
            del batch
            wait_until(reader.released)
    if ended:
        del batch
        assert reader.released()
    assert found
    assert not reader.released()


@LINUX
def test_a_fork_has_workers_of_its_own_and_leaves_those_of_its_parent():
    with loader_of(Processes(), 2, workers=1) as loader:
        batches = iter(loader)
        first = next(batches)[0].item()
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            text = b"failed"
            try:
                try:
                    next(batches)
                except WorkerError as error:
                    text = str(error).encode()
                own = {batch[0].item() for batch in loader}
                loader.close()
                text += b"; own" if first not in own and len(own) == 1 else b"; not own"
                del loader, batches
                gc.collect()
            finally:
                os.write(writer, text)
                os._exit(0)
        os.close(writer)
        os.waitpid(child, 0)
        text = os.read(reader, 1000).decode()
        os.close(reader)
        assert "forked" in text
        assert text.endswith("; own")
        assert {next(batches)[0].item(), *(batch[0].item() for batch in loader)} == {first}


def program(tmp_path, text):
    """A script, and whatever it imports from the tests."""
    path, shared = tmp_path / "program.py", Path(__file__).parents[1] / "shared"
    path.write_text(
        f"import sys\nsys.path.insert(0, {str(shared)!r})\n" + textwrap.dedent(text),
        encoding="utf-8",
    )
    return [sys.executable, str(path)]


def started(command):
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,  # a process group of its own, as a shell gives it
    )


def shared_memory():
    return {path.name for path in Path("/dev/shm").iterdir()}  # noqa: S108 — only listed


ENDLESS = """
    import time
    from burn.data import DataLoader
    from data_sources import Images, Slow

    if __name__ == "__main__":
        loader = DataLoader({dataset}, 2, workers=2, device="cpu")
        for index, batch in enumerate(loader):
            if index == 3:
                print("ready", flush=True)
            {step}
    """


@LINUX
@pytest.mark.parametrize(
    ("dataset", "step"),
    [
        ("Slow(60.0, quick=10)", "pass"),
        pytest.param("Images(10**6)", "time.sleep(0.001)", marks=pytest.mark.exhaustive),
    ],
)
def test_ctrl_c_ends_the_program_and_all_processes_without_a_word_of_workers(
    tmp_path, dataset, step
):
    process = started(program(tmp_path, ENDLESS.format(dataset=dataset, step=step)))
    assert process.stdout.readline() == "ready\n"
    workers = children(process.pid)
    assert len(workers) >= 2
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")
    wait_until(lambda: not any(map(is_alive, workers)))


@LINUX
@pytest.mark.exhaustive
def test_ctrl_c_while_workers_start_ends_all_processes(tmp_path):
    text = """
    from burn.data import DataLoader
    from data_sources import Numbers

    if __name__ == "__main__":
        loader = DataLoader(Numbers(), workers=2, device="cpu")
        batches = iter(loader)
        print("ready", flush=True)
        list(batches)
        import time
        time.sleep(60)
    """
    process = started(program(tmp_path, text))
    assert process.stdout.readline() == "ready\n"
    workers = children(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert errors.count("Traceback") == 1
    wait_until(lambda: not any(map(is_alive, workers)))


@LINUX
def test_a_killed_program_leaves_no_process_and_no_memory(tmp_path):
    before = shared_memory()
    command = program(tmp_path, ENDLESS.format(dataset="Images(10**6)", step="pass"))
    process = started(command)
    assert process.stdout.readline() == "ready\n"
    workers = children(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    wait_until(lambda: not any(map(is_alive, workers)))
    assert errors == ""
    assert shared_memory() <= before


@LINUX
@pytest.mark.parametrize(
    "load", ["list(loader)", "threading.Thread(target=list, args=(loader,)).start()"]
)
def test_a_worker_that_never_returns_to_python_ends_with_its_parent(tmp_path, load):
    text = f"""
    import threading
    from burn.data import DataLoader
    from data_sources import Stuck

    if __name__ == "__main__":
        loader = DataLoader(Stuck(), workers=1, device="cpu")
        {load}
    """
    process = started(program(tmp_path, text))
    assert process.stdout.readline() == "stuck\n"
    process.kill()
    process.communicate(timeout=60)  # to the end of output, which the worker has as well


@LINUX
def test_a_process_that_cannot_be_started_is_an_error_in_the_thread_that_asks(monkeypatch):
    def refuse(*_):
        raise OSError("no more processes")

    errors = []

    def load():
        try:
            with loader_of(Numbers(8), 2) as loader:
                errors.append(len(list(loader)))
        except OSError as error:
            errors.append(str(error))

    for _ in range(2):
        with monkeypatch.context() as patched:
            patched.setattr(multiprocessing.util, "spawnv_passfds", refuse)
            run_in_a_thread(load)
        run_in_a_thread(load)
    assert errors == ["no more processes", 4] * 2


@LINUX
def test_a_fork_starts_processes_in_a_thread_as_its_parent_does():
    def load():
        with loader_of(Numbers(8), 2) as loader:
            found.append(len(list(loader)))

    found = []
    run_in_a_thread(load)
    child = os.fork()
    if not child:
        try:
            run_in_a_thread(load)
        finally:
            os._exit(len(found))
    _, status = os.waitpid(child, 0)
    assert (found, os.waitstatus_to_exitcode(status)) == ([4], 2)


def run_in_a_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


@LINUX
def test_workers_outlive_the_thread_that_started_them():
    with loader_of(Numbers(8), 2) as loader:
        batches = iter(loader)
        thread = threading.Thread(target=lambda: next(batches))
        thread.start()
        thread.join()
        assert len(list(batches)) == 3


@LINUX
@pytest.mark.exhaustive
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_program_that_is_ended_at_any_moment_leaves_no_process_and_no_memory(tmp_path, number):
    text = """
    import sys
    from burn.data import DataLoader
    from data_sources import Images

    if __name__ == "__main__":
        print("ready", flush=True)
        while True:
            with DataLoader(Images(60), 2, workers=2, device="cpu") as loader:
                for batch in loader:
                    pass
                for batch in loader:
                    break
    """
    command = program(tmp_path, text)
    before = shared_memory()
    moments = random.Random(0)
    for _ in range(25):
        process = started(command)
        process.stdout.readline()
        time.sleep(moments.uniform(0.0, 2.0))
        (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
        _, errors = process.communicate(timeout=60)
        if number == signal.SIGINT:
            assert errors.count("Traceback") == 1
            assert errors.rstrip().endswith("KeyboardInterrupt")
        else:  # a child that was just starting: Python says so before any code of ours runs
            is_starting = "in spawn_main" in errors and errors.endswith("Ran out of input\n")
            assert errors == "" or is_starting
        wait_until(lambda session=process.pid: not in_session(session))
    assert shared_memory() <= before


def in_session(session):
    """The processes that a program and those that it started have started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            state, _, _, number = path.read_text().rpartition(") ")[2].split()[:4]
            if int(number) == session and state != "Z":
                found.append(path.parent.name)
    return found


def test_an_interrupt_leaves_no_lock_locked():
    class Interrupted:
        """A lock; Ctrl-C comes as soon as it is taken."""

        def acquire(self, *, blocking):
            lock.acquire(blocking=blocking)
            raise KeyboardInterrupt

        def release(self):
            lock.release()

    with DataLoader(Images(4), 2, workers=1, device="cpu") as loader:
        batches = iter(loader)
        next(batches)
        lock, loader._pool._reading = loader._pool._reading, Interrupted()
        with pytest.raises(KeyboardInterrupt):
            loader._pool.is_ready(Future())
        loader._pool._reading = lock
        closing = threading.Thread(target=loader.close, daemon=True)
        closing.start()
        closing.join(30)
        assert not closing.is_alive()


@LINUX
def test_a_program_without_the_guard_is_an_error_that_names_it(tmp_path):
    text = """
    from burn.data import DataLoader

    print([batch.tolist() for batch in DataLoader(range(3), workers=1, device="cpu")])
    """
    process = started(program(tmp_path, text))
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert output == ""
    assert 'stands below `if __name__ == "__main__":`' in errors
    assert not children(process.pid)


def test_a_script_gives_workers_what_it_defines(tmp_path):
    text = """
    from burn.data import DataLoader

    def square(x):
        if x == 3:
            raise OddError(x)
        return x * x

    class OddError(Exception):
        pass

    if __name__ == "__main__":
        try:
            for batch in DataLoader(range(4), workers=1, transform=square, device="cpu"):
                print(batch.tolist())
        except OddError as error:
            print("caught", error)
    """
    process = started(program(tmp_path, text))
    output, errors = process.communicate(timeout=60)
    assert (output, errors) == ("[0]\n[1]\n[4]\ncaught 3\n", "")


def test_a_program_that_keeps_its_loader_ends(tmp_path):
    text = """
    import warnings
    warnings.simplefilter("error")
    from burn.data import DataLoader
    from data_sources import Images

    if __name__ == "__main__":
        loader = DataLoader(Images(100), 2, workers=2, device="cpu")
        stream = DataLoader((i for i in range(10**9)), workers=1, device="cpu")
        kept = [next(iter(loader)), next(iter(stream))]
        batches = iter(loader)
        next(batches)
    """
    process = started(program(tmp_path, text))
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output, errors) == (0, "", "")


def test_a_worker_has_no_workers_of_its_own():
    with (
        loader_of(range(2), transform=load_in_worker) as loader,
        pytest.raises(WorkerError, match=r"a worker itself.*threads=True"),
    ):
        next(iter(loader))
    with loader_of(range(2), transform=load_in_threads) as loader:
        assert [batch.tolist() for batch in loader] == [[3], [3]]


def load_in_worker(_):
    return len(list(DataLoader(range(3), workers=1, device="cpu")))


def load_in_threads(_):
    return len(list(DataLoader(range(3), workers=1, threads=True, device="cpu")))
