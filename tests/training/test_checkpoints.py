"""Checkpoints: what is saved comes back to the bit, whatever happens meanwhile."""

import hashlib
import json
import math
import os
import pickle
import random
import shutil
import signal
import struct
import sys
import threading
import traceback
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

import burn
from burn import nn
from burn.errors import ArgumentError, OperandTypeError, StoreError
from burn.generator import get_state
from burn.optim import schedules
from burn.store import Checkpoints, load
from burn.testing import MockDevice, mock_backend

DEVICES = [device for device in burn.Device.enumerate() if device.backend_name != "strict"]

CPU = burn.Device("cpu")

on_each_device = pytest.mark.parametrize("device", DEVICES, ids=str)

has_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


class Counter:
    """An object with a state of any kind."""

    def __init__(self, state=None):
        self.state = {} if state is None else state

    def state_dict(self):
        return self.state

    def load_state_dict(self, state):
        self.state = state


class Refusing(Counter):
    def load_state_dict(self, state):
        raise KeyError("something")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run"


@contextmanager
def held_writes(monkeypatch):
    """Files are written when the block ends, or the event is set."""
    released, entered = threading.Event(), threading.Event()
    write = safetensors.numpy.save_file

    def wait(*arguments):
        entered.set()
        assert released.wait(60)
        write(*arguments)

    monkeypatch.setattr(safetensors.numpy, "save_file", wait)
    released.entered = entered
    try:
        yield released
    finally:
        released.set()
        monkeypatch.setattr(safetensors.numpy, "save_file", write)


def bits(x):
    return x.numpy().tobytes()


def network(device):
    device = device.autodiff()
    device.seed(0)
    with burn.default_device(device):
        first, last = nn.Linear(4, 8), nn.Linear(8, 2)
        return nn.Sequential(first, nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), last)


# What is saved comes back.


VALUES = {
    "none": None,
    "true": True,
    "text": "grüße \ud800 \n",
    "large": 1 << 200,
    "negative": -(10**4000),
    "word": (1 << 63) - 1,
    "float": 0.1,
    "minus_zero": -0.0,
    "smallest": 5e-324,
    "infinite": [math.inf, -math.inf],
    "nested": {"a": [1, (2.5, "x", [])], "": {}, "$x": {"$tensor": "y", "device": "z"}},
    "tuple": (),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_value_comes_back_as_it_was(name, folder):
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(1, value=VALUES[name])
        found = checkpoints.restore().values["value"]
    assert repr(found) == repr(VALUES[name])  # also minus zero, and the types in containers


def test_nan_and_numbers_of_numpy_come_back(folder):
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(1, nan=[math.nan], number=np.float32(0.5), flag=np.True_, n=np.int64(7))
        values = checkpoints.restore().values
    assert math.isnan(values.pop("nan")[0])
    assert values == {"number": 0.5, "flag": True, "n": 7}
    assert type(values["flag"]) is bool


@pytest.mark.parametrize("dtype", burn.__array_namespace_info__().dtypes())
def test_tensors_and_arrays_of_each_dtype_come_back(dtype, folder):
    x = burn.asarray([[0, 1, 2], [3, 4, 5]], device=CPU).astype(dtype)
    array = x.numpy()
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(1, x=x, view=x.T[1:], array=array[:, ::-1], empty=array[:0], zero=x[0, 1])
        values = checkpoints.restore().values
    assert values["x"].dtype == x.dtype
    assert bits(values["x"]) == bits(x)
    assert bits(values["view"]) == bits(x.T[1:])
    assert type(values["array"]) is np.ndarray
    assert values["array"].dtype == array.dtype
    np.testing.assert_array_equal(values["array"], array[:, ::-1])
    assert values["empty"].shape == (0, 3)
    assert values["zero"].shape == ()
    values["array"][...] = 0  # an array of its own


def test_quantized_tensors_come_back(folder):
    x = burn.random.normal((8, 32), device=CPU).quantize_dynamic()
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(1, x=x, state=Counter({"weights": [x, {"deep": x}]}))
        counter = Counter()
        values = checkpoints.restore(state=counter).values
    assert values["x"].data() == x.data()
    assert counter.state["weights"][1]["deep"].data() == x.data()


def test_states_may_be_nested(folder):
    state = {"groups": [{"mean": burn.ones(3), "rate": 0.1}, (burn.zeros(2), np.arange(3))], "n": 1}
    counter = Counter()
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(1, counter=Counter(state))
        assert checkpoints.restore(counter=counter).values == {}
    (first, (zeros, array)), n = counter.state["groups"], counter.state["n"]
    assert first["mean"].tolist() == [1.0, 1.0, 1.0]
    assert (first["rate"], zeros.tolist(), array.tolist(), n) == (0.1, [0.0, 0.0], [0, 1, 2], 1)
    names = load(folder / "step-00000001" / "counter.safetensors")
    assert sorted(names) == ["groups.0.mean", "groups.1.0", "groups.1.1"]


def test_a_part_is_a_file_of_tensors(folder):
    net = network(CPU)
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(7, net=net, epoch=1)
    state = load(folder / "step-00000007" / "net.safetensors")
    assert {path: bits(x) for path, x in state.items()} == {
        path: bits(x) for path, x in net.state_dict().items()
    }
    assert sorted(path.name for path in (folder / "step-00000007").iterdir()) == [
        "checkpoint.json",
        "net.safetensors",
        "state.json",
    ]


@pytest.mark.parametrize("kind", ["MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"])
def test_generators_of_numpy_go_on(kind, folder):
    generator = np.random.Generator(getattr(np.random, kind)(1))
    generator.integers(10, dtype=np.int32)  # half of a word is left
    other = np.random.Generator(getattr(np.random, kind)(2))
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(1, one=generator, other=generator)
        values = checkpoints.restore(one=other).values
    expected = generator.integers(1 << 31, size=700, dtype=np.int32).tolist()
    assert other.integers(1 << 31, size=700, dtype=np.int32).tolist() == expected
    assert list(values) == ["other"]
    assert values["other"].integers(1 << 31, size=700, dtype=np.int32).tolist() == expected


@pytest.mark.parametrize("device", [*DEVICES, burn.Device("router/cpu")], ids=str)
def test_all_random_generators_go_on(device, folder):
    def draw():
        numbers = burn.random.uniform((3,), device=device).tolist()
        return numbers, random.random(), random.gauss(), np.random.rand(), np.random.randn()  # noqa: NPY002 — the state of this one is saved

    draw()
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(1)
        expected = draw()
        draw()
        assert checkpoints.restore().values == {}
    assert draw() == expected


def test_functions_of_numpy_draw_by_the_same_bit_generator(folder):
    before = np.random.get_bit_generator()
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(1)
        np.random.set_bit_generator(np.random.PCG64(1))
        try:
            checkpoints.save(2)
            expected = np.random.rand(3).tolist()  # noqa: NPY002 — the state of this one is saved
            checkpoints.restore(2)
            assert np.random.rand(3).tolist() == expected  # noqa: NPY002 — likewise
            with pytest.raises(ArgumentError, match="by PCG64, and those of the saved run by MT"):
                checkpoints.restore(1)
        finally:
            np.random.set_bit_generator(before)
        assert checkpoints.restore(1).step == 1


@pytest.mark.parametrize("device", [*DEVICES, burn.Device("router/cpu")], ids=str)
def test_a_run_that_is_restored_has_the_same_bits(device, folder):
    def start():
        net = network(device)
        optimizer = burn.optim.AdamW(net, schedules.cosine(0.01, 10))
        average = burn.optim.ExponentialMovingAverage(net, decay=0.9)
        scaler = burn.optim.LossScaler(256.0, interval=2)
        return {"net": net, "optimizer": optimizer, "average": average, "scaler": scaler}

    def step(net, optimizer, average, scaler):
        x = burn.random.normal((8, 4), device=device.autodiff())
        scaler.step(optimizer, scaler.scale(burn.mean(net(x) ** 2)).backward())
        average.update()

    run = start()
    with Checkpoints(folder) as checkpoints:
        for number in range(5):
            step(**run)
            if number == 2:
                checkpoints.save(3, **run)
        again = start()
        step(**again)  # has states of its own
        assert checkpoints.restore(**again).step == 3
    for _ in range(2):
        step(**again)
    for name, part in run.items():
        for path, value in part.state_dict().items():
            other = again[name].state_dict()[path]
            assert repr(value) == repr(other), (name, path)
            if isinstance(value, burn.Tensor):
                assert value.device == other.device
                assert bits(value) == bits(other), (name, path)


# A save is of one moment.


@on_each_device
def test_a_checkpoint_is_of_the_moment_of_saving(device, folder, monkeypatch):
    net = network(device)
    optimizer = burn.optim.SGD(net, 0.1, momentum=0.9)
    large = burn.zeros((128, 64), device=device.autodiff()).require_grad()
    adam = burn.optim.Adam([large])
    x = burn.random.normal((8, 4), device=device.autodiff())
    data, array = burn.ones((3, 5), device=device), np.ones(3)
    view = data[1:]
    counts = [1, 2]

    @burn.compile
    def compiled():
        loss = burn.mean(net(x) ** 2)
        optimizer.step(loss.backward())
        return loss

    def step():
        optimizer.step(burn.mean(net(x) ** 2).backward())
        adam.step(burn.sum((large - 1.0) ** 2).backward())

    step()
    compiled()
    parts = {"net": net, "optimizer": optimizer, "adam": adam}
    expected = {
        (name, path): bits(value)
        for name, part in parts.items()
        for path, value in part.state_dict().items()
        if isinstance(value, burn.Tensor)
    }
    with Checkpoints(folder) as checkpoints:
        with held_writes(monkeypatch):
            checkpoints.save(1, **parts, data=data, view=view, array=array, counts=counts)
            for _ in range(3):
                step()
                compiled()
            data[...] = 7.0
            view[0] = 8.0
            array[:] = 9.0
            counts.append(3)
        values = checkpoints.restore().values
    assert values["data"].tolist() == [[1.0] * 5] * 3
    assert values["view"].tolist() == [[1.0] * 5] * 2
    assert values["array"].tolist() == [1.0] * 3
    assert values["counts"] == [1, 2]
    saved = {
        (name, path): bits(value)
        for name in parts
        for path, value in load(folder / "step-00000001" / f"{name}.safetensors").items()
    }
    assert saved == expected


def test_a_handler_of_a_signal_may_save_while_a_save_runs(folder, monkeypatch):
    class Interrupting(Counter):
        def state_dict(self):
            signal.raise_signal(signal.SIGTERM)
            return {}

    checkpoints = Checkpoints(folder)
    before = signal.signal(signal.SIGTERM, lambda *_: checkpoints.save(1, x=burn.ones(2)))
    try:
        with checkpoints:
            checkpoints.save(2, part=Interrupting())
    finally:
        signal.signal(signal.SIGTERM, before)
    assert checkpoints.steps() == [1, 2]


def test_a_path_does_not_depend_on_later_directories(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Checkpoints("run") as checkpoints:
        monkeypatch.chdir(tmp_path.parent)
        checkpoints.save(1)
    assert Checkpoints(folder).steps() == [1]


def test_save_does_not_wait_for_the_files(folder, monkeypatch):
    with Checkpoints(folder) as checkpoints:
        with held_writes(monkeypatch) as released:
            checkpoints.save(1, x=burn.ones(3))
            assert released.entered.wait(60)
            assert checkpoints.steps() == []
        checkpoints.wait()
        assert checkpoints.steps() == [1]
        checkpoints.save(2, x=burn.ones(3), wait=True)
        assert checkpoints.steps() == [1, 2]


def test_a_second_save_waits_for_the_first(folder, monkeypatch):
    x = burn.zeros(3, device=CPU)
    with Checkpoints(folder) as checkpoints:
        with held_writes(monkeypatch) as released:
            checkpoints.save(1, x=x)
            second = threading.Thread(target=checkpoints.save, args=(2,), kwargs={"x": x})
            second.start()
            second.join(0.05)
            assert second.is_alive()
            x[...] = 5.0  # before the second one takes its values
            released.set()
            second.join()
        assert checkpoints.restore(1).values["x"].tolist() == [0.0] * 3
        assert checkpoints.restore(2).values["x"].tolist() == [5.0] * 3


# Which checkpoints remain.


@pytest.mark.parametrize(
    ("keep", "keep_every", "left"),
    [
        (3, None, [80, 90, 100]),
        (1, None, [100]),
        (None, None, [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]),
        (2, 40, [40, 80, 90, 100]),
        (1, 50, [50, 100]),
        (None, 50, [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]),
    ],
)
def test_the_newest_remain(keep, keep_every, left, folder):
    with Checkpoints(folder, keep=keep, keep_every=keep_every) as checkpoints:
        for step in range(10, 101, 10):
            checkpoints.save(step, step_was=step)
        checkpoints.wait()
        assert checkpoints.steps() == left
        assert checkpoints.restore().values == {"step_was": 100}


def test_what_was_saved_last_is_the_newest(folder):
    with Checkpoints(folder, keep=2) as checkpoints:
        for step in (100, 200, 300):
            checkpoints.save(step, branch=0)
        assert checkpoints.restore(200).step == 200
        checkpoints.save(210, branch=1)
        assert checkpoints.restore().values == {"branch": 1}
        assert checkpoints.steps() == [300, 210]
        checkpoints.save(220, branch=1)
        checkpoints.wait()
        assert checkpoints.steps() == [210, 220]


def test_a_step_is_saved_again(folder):
    with Checkpoints(folder, keep=2) as checkpoints:
        checkpoints.save(1, x=burn.zeros(2), first=True)
        checkpoints.save(2, x=burn.zeros(2))
        checkpoints.save(1, x=burn.ones(2))
        found = checkpoints.restore()
        assert (found.step, sorted(found.values)) == (1, ["x"])
        assert found.values["x"].tolist() == [1.0, 1.0]
        assert checkpoints.steps() == [2, 1]
    assert names_in(folder) == ["step-00000001", "step-00000002"]


def test_there_is_nothing_to_restore(folder):
    checkpoints = Checkpoints(folder)
    assert checkpoints.restore() is None
    assert checkpoints.restore(net=network(CPU)) is None
    assert checkpoints.steps() == []
    checkpoints.wait()
    checkpoints.close()
    assert not folder.exists()
    with pytest.raises(ArgumentError, match=r"no checkpoint of step 7. There is none"):
        checkpoints.restore(7)


def test_a_step_that_is_not_there_is_an_error(folder):
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(1)
        checkpoints.save(10**12)
        with pytest.raises(ArgumentError, match=rf"step 7. There are those of 1, {10**12}"):
            checkpoints.restore(step=7)
        assert checkpoints.restore().step == 10**12


# What cannot be saved is an error before anything is written.


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (object(), r"part is an object of type builtins.object"),
        (Counter, r"part is the class Counter"),
        (lambda: None, "function"),
        ({1: 2}, r"part has the key 1, and keys are strings"),
        ({"a": [1, {2, 3}]}, r"part\['a'\]\[1\] is an object of type builtins.set"),
        (b"bytes", "bytes"),
        (1j, "complex"),
        (np.array(["text"]), r"part is an array of <U4"),
        (np.array([None]), "array of object"),
        (np.zeros(2, "datetime64[s]"), "array of datetime64"),
        (np.ma.masked_array([1, 2], [True, False]), "mask"),
        (np.longdouble(1), "longdouble"),
        (Counter([1]), r"state_dict\(\) of the part 'part' is an object of type list"),
        (Counter({"x": object()}), r"part\['x'\] is an object"),
        ({"a": burn.ones(1), "b": {"c": burn.ones(1)}, "b.c": burn.ones(1)}, "path 'b.c'"),
        ({"__metadata__": burn.ones(1)}, "does not allow"),
        ({"\ud800": burn.ones(1)}, "does not allow"),
        (
            {"w": burn.ones((4, 4)).quantize_dynamic(), "w.codes": burn.ones(1)},
            "stored as 'w.codes'",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_saved_is_named(part, message, folder):
    with (
        Checkpoints(folder) as checkpoints,
        pytest.raises((OperandTypeError, ArgumentError), match=message) as caught,
    ):
        checkpoints.save(1, net=network(CPU), part=part)
    assert str(caught.value).startswith("Checkpoints.save: ")
    assert not folder.exists()


def test_a_container_that_contains_itself_is_an_error(folder):
    endless = []
    endless.append(endless)
    with (
        Checkpoints(folder) as checkpoints,
        pytest.raises(ArgumentError, match="containers in one another"),
    ):
        checkpoints.save(1, part=endless)


@pytest.mark.parametrize("name", ["a/b", "..", "", "a.b", "grün", "nul", "COM1", "x" * 101])
def test_a_part_has_the_name_of_a_file(name, folder):
    with Checkpoints(folder) as checkpoints, pytest.raises(ArgumentError, match="has the name"):
        checkpoints.save(1, **{name: 1})
    assert not folder.exists()


def test_names_that_are_one_file_elsewhere_are_refused(folder):
    with Checkpoints(folder) as checkpoints, pytest.raises(ArgumentError, match="one file"):
        checkpoints.save(1, net=1, Net=2)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"step": -1}, ArgumentError),
        ({"step": 10**18}, ArgumentError),
        ({"step": 1.0}, OperandTypeError),
        ({"step": True}, OperandTypeError),
        ({"step": "1"}, OperandTypeError),
        ({"step": 1, "wait": "no"}, OperandTypeError),
    ],
)
def test_arguments_of_save_are_checked(arguments, error, folder):
    with Checkpoints(folder) as checkpoints, pytest.raises(error, match=r"Checkpoints\.save: "):
        checkpoints.save(**arguments)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"path": 1}, OperandTypeError),
        ({"path": b"run"}, OperandTypeError),
        ({"keep": 0}, ArgumentError),
        ({"keep": 1.5}, OperandTypeError),
        ({"keep_every": 0}, ArgumentError),
        ({"path": __file__}, StoreError),
    ],
)
def test_arguments_of_checkpoints_are_checked(arguments, error, folder):
    with pytest.raises(error, match=r"Checkpoints: "):
        Checkpoints(**{"path": folder, **arguments})


# What does not fit changes nothing.


def state_of(net, *generators):
    drawn = [generator.bit_generator.state for generator in generators]
    randoms = [random.getstate(), get_state(CPU.generator)]
    return repr([drawn, randoms, [(path, bits(x)) for path, x in net.state_dict().items()]])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"optimizer": Refusing()}, "something"),
        ({"optimizer": Counter(), "missing": Counter()}, r"no part 'missing'. It has net, "),
        ({"optimizer": 5}, "a state: pass an object"),
        ({"epoch": Counter()}, "no state, but a value"),
        ({"draws": Counter()}, "no state, but a value"),
        ({"draws": np.random.Generator(np.random.PCG64(0))}, "by PCG64, and the saved one by SFC"),
        ({"optimizer": nn.Linear(2, 2)}, "does not fit"),
    ],
)
def test_an_error_changes_no_part(wrong, message, folder):
    net, draws = network(CPU), np.random.Generator(np.random.SFC64(0))
    optimizer = burn.optim.Adam(net)
    optimizer.step(burn.mean(net(burn.ones((4, 4), device=CPU.autodiff()))).backward())
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(1, net=net, optimizer=optimizer, draws=draws, epoch=1)
        checkpoints.wait()
        optimizer.step(burn.mean(net(burn.ones((4, 4), device=CPU.autodiff()))).backward())
        burn.random.uniform((3,), device=CPU)
        draws.normal(), random.random()
        before, moments = state_of(net, draws), repr(optimizer.state_dict())
        with pytest.raises((ArgumentError, KeyError), match=message):
            checkpoints.restore(**{"net": net, "draws": draws, **wrong})
        assert state_of(net, draws) == before
        with pytest.raises(ArgumentError):
            checkpoints.restore(net=net, optimizer=optimizer, draws=draws, more=1)
        assert repr(optimizer.state_dict()) == moments
        checkpoints.restore(net=net, optimizer=optimizer, draws=draws)
        assert state_of(net, draws) != before


def test_an_optimizer_without_steps_is_one_again_after_an_error(folder):
    net = network(CPU)
    optimizer = burn.optim.Adam(net)
    optimizer.step(burn.mean(net(burn.ones((4, 4), device=CPU.autodiff()))).backward())
    fresh = burn.optim.Adam(network(CPU))
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(1, optimizer=optimizer, z=Counter())
        with pytest.raises(KeyError) as caught:
            checkpoints.restore(optimizer=fresh, z=Refusing())
    assert fresh.state_dict() == {"step": 0, "learning_rate": 0.001}
    assert any("in the part 'z'" in note for note in caught.value.__notes__)


# Devices.


def test_what_was_on_a_device_that_is_gone_comes_to_the_default_one(folder):
    spec = mock_backend("acme", [MockDevice("npu")])
    with burn.registered(spec), Checkpoints(folder) as checkpoints:
        burn.random.seed(1, device="acme")
        net = nn.Linear(2, 2, device="acme")
        checkpoints.save(1, net=net, x=burn.ones(3, device="acme"))
    with burn.default_device("cpu"), Checkpoints(folder) as checkpoints:
        other = nn.Linear(2, 2)
        found = checkpoints.restore(net=other)
        assert found.values["x"].device == CPU
        assert other.weight.device == CPU
        assert other.weight.tolist() == load(found.path / "net.safetensors")["weight"].tolist()


def test_a_model_comes_back_to_its_own_device(folder):
    with Checkpoints(folder) as checkpoints:
        saved = network(CPU)
        checkpoints.save(1, net=saved)
        for device in DEVICES:
            net = network(device)
            net[0].weight.assign(net[0].weight.detach() * 0.0)
            checkpoints.restore(net=net)
            assert net[0].weight.device == device
            assert bits(net.state_dict()["0.weight"]) == bits(saved.state_dict()["0.weight"])


# Errors of the background.


def test_an_error_of_the_thread_arrives_with_its_traceback(folder, monkeypatch):
    def fail(*arguments):
        raise OSError(28, "No space left on device")

    checkpoints = Checkpoints(folder)
    checkpoints.save(1, x=burn.ones(2), wait=True)
    for call in (
        lambda: checkpoints.save(3, x=burn.ones(2)),
        checkpoints.wait,
        checkpoints.restore,
        checkpoints.close,
    ):
        with monkeypatch.context() as patch:
            patch.setattr(safetensors.numpy, "save_file", fail)
            checkpoints.save(2, x=burn.ones(2))
            with pytest.raises(StoreError, match=r"No space left on device\. Free space") as caught:
                call()
        assert caught.value.errno == 28
        assert "step 2 was not saved" in caught.value.__notes__
        assert "fail(" in "".join(traceback.format_exception(caught.value)) or any(
            item.name == "fail"
            for item in traceback.extract_tb(caught.value.__cause__.__traceback__)
        )
        assert checkpoints.steps() == [1]
        assert names_in(folder) == ["step-00000001"]
        checkpoints.wait()  # it was raised once
    checkpoints.save(2, x=burn.zeros(2))  # training goes on
    assert checkpoints.restore().step == 2
    checkpoints.close()


def test_an_error_does_not_hide_what_ends_the_block(folder, monkeypatch):
    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(safetensors.numpy, "save_file", fail)
    with pytest.raises(KeyboardInterrupt) as caught, Checkpoints(folder) as checkpoints:  # noqa: PT012 — the error is that of the block
        checkpoints.save(1, x=burn.ones(2))
        raise KeyboardInterrupt
    assert "the last checkpoint was not saved" in caught.value.__notes__[0]


def test_a_failed_replacement_leaves_what_was_there(folder, monkeypatch):
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(1, value=1)
        checkpoints.wait()
        with monkeypatch.context() as patch:
            patch.setattr(Path, "rename", failing_at(Path.rename, 2))
            checkpoints.save(1, value=2)
            with pytest.raises(StoreError, match="Input/output error"):
                checkpoints.wait()
        assert checkpoints.restore().values == {"value": 1}
    assert names_in(folder) == ["step-00000001"]


def failing_at(function, call):
    """A function whose so-manieth call fails."""
    count = 0

    def run(*arguments):
        nonlocal count
        count += 1
        if count == call:
            raise OSError(5, "Input/output error")
        return function(*arguments)

    return run


def test_a_keyboard_interrupt_while_saving_waits_leaves_the_checkpoint(folder, monkeypatch):
    if not hasattr(signal, "setitimer"):
        pytest.skip("this system has no timers")

    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with Checkpoints(folder) as checkpoints:
            with held_writes(monkeypatch) as released:
                checkpoints.save(1, x=burn.ones(2))
                assert released.entered.wait(60)
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                with pytest.raises(KeyboardInterrupt):
                    checkpoints.save(2, x=burn.ones(2))
            checkpoints.save(3, x=burn.ones(2))
            checkpoints.wait()
            assert checkpoints.steps() == [1, 3]
    finally:
        signal.signal(signal.SIGALRM, before)


def test_the_end_of_a_program_completes_what_is_written(folder, run_python):
    program = f"""
import atexit, burn, safetensors.numpy
from burn.store import Checkpoints
write = safetensors.numpy.save_file

def slowly(*arguments):
    import time
    time.sleep(0.3)
    write(*arguments)

safetensors.numpy.save_file = slowly
checkpoints = Checkpoints({str(folder)!r})
checkpoints.save(1, x=burn.ones(3, device="cpu"))
atexit.register(lambda: checkpoints.save(2, x=burn.ones(3, device="cpu")))
"""
    result = run_python("-c", program)
    assert (result.returncode, result.stderr) == (0, "")
    with Checkpoints(folder) as checkpoints:
        assert checkpoints.restore().values["x"].tolist() == [1.0] * 3
        assert checkpoints.steps() == [1, 2]


def test_an_error_that_no_call_raised_is_logged_at_the_end(folder, run_python):
    program = f"""
import burn, safetensors.numpy
from burn.store import Checkpoints
safetensors.numpy.save_file = None
checkpoints = Checkpoints({str(folder)!r})
checkpoints.save(1, x=burn.ones(3, device="cpu"))
"""
    result = run_python("-c", program)
    assert result.returncode == 0
    assert "not callable" in result.stderr


# Several processes, and their ends.


def names_in(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def test_a_second_process_is_refused(folder, run_python):
    program = f"""
import burn
from burn.store import Checkpoints
with Checkpoints({str(folder)!r}) as checkpoints:
    print(checkpoints.restore().values)
    checkpoints.save(2, wait=True)
"""
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(1, value=5)
        checkpoints.wait()
        result = run_python("-c", program)
        assert result.stdout == "{'value': 5}\n"
        assert "StoreError: Checkpoints.save: " in result.stderr
        assert f"another process writes checkpoints to this folder: process {os.getpid()}" in (
            result.stderr
        )
    assert run_python("-c", program).returncode == 0
    assert checkpoints.steps() == [1, 2]


def test_what_is_left_without_close_is_written_and_lets_others_write(folder, run_python):
    checkpoints = Checkpoints(folder)
    checkpoints.save(1, x=burn.ones(1_000_000, device=CPU))
    del checkpoints
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(2, x=burn.ones(3, device=CPU))
    program = f"import burn; burn.store.Checkpoints({str(folder)!r}).save(3, wait=True)"
    result = run_python("-c", program)
    assert (result.returncode, result.stderr) == (0, "")
    assert checkpoints.steps() == [1, 2, 3]


def test_one_process_may_have_several_objects_of_a_folder(folder):
    with Checkpoints(folder) as one, Checkpoints(folder) as other:
        one.save(1)
        other.save(2)
        one.wait()
        other.close()
        one.save(3)
    assert one.steps() in ([1, 2, 3], [2, 1, 3])


@has_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # later Pythons warn
def test_a_forked_process_has_no_lock_and_no_thread(folder, monkeypatch):
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(1, x=burn.ones(2, device=CPU))
        checkpoints.wait()
        reading, writing = os.pipe()
        with held_writes(monkeypatch):
            checkpoints.save(2, x=burn.ones(2, device=CPU))
            child = os.fork()
            if not child:
                try:
                    checkpoints.wait()  # the thread is the parent's
                    os.write(writing, b"%d " % checkpoints.restore().step)
                    checkpoints.save(3)
                except StoreError as error:
                    os.write(writing, str(error).encode())
                finally:
                    os._exit(0)
            os.close(writing)
            with os.fdopen(reading, "rb") as told:
                text = told.read().decode()
            os.waitpid(child, 0)
        assert text.startswith("1 Checkpoints.save: ")
        assert "another process writes checkpoints" in text
        checkpoints.save(4)
        checkpoints.wait()
        assert checkpoints.steps() == [1, 2, 4]


@has_fork
def test_a_forked_process_does_not_keep_the_lock_of_its_parent(folder, run_python):
    program = f"""
import os, sys, burn
from burn.store import Checkpoints
checkpoints = Checkpoints({str(folder)!r})
checkpoints.save(1, wait=True)
forked, has_forked = os.pipe()
if not os.fork():
    os.write(has_forked, b"x")
    sys.stdin.read()  # as long as the pipe is open
    os._exit(0)
os.read(forked, 1)  # the child is beyond what it does as it begins
os._exit(0)
"""
    reading, writing = os.pipe()
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, "-c", program],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, reading, 0), (os.POSIX_SPAWN_CLOSE, writing)],
    )
    try:
        assert os.waitpid(pid, 0)[1] == 0
        with Checkpoints(folder) as checkpoints:
            checkpoints.save(2)
        assert checkpoints.steps() == [1, 2]
    finally:
        os.close(writing)
        os.close(reading)


def test_the_next_save_removes_what_a_killed_process_left(folder):
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(1)
    for name in ("step-00000002.0123abcd.partial", "step-00000000.removed"):
        (folder / name).mkdir()
        (folder / name / "x").touch()
    (folder / "step-notes").mkdir()
    (folder / "notes.partial").touch()
    assert Checkpoints(folder).steps() == [1]
    assert len(names_in(folder)) == 5  # who reads leaves all as it is
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(3)
    assert names_in(folder) == ["notes.partial", "step-00000001", "step-00000003", "step-notes"]


def test_a_checkpoint_that_was_about_to_be_replaced_counts(folder):
    with Checkpoints(folder) as checkpoints:
        for step in (1, 2):
            checkpoints.save(step, value=step)
    (folder / "step-00000002").rename(folder / "step-00000002.replaced")
    assert Checkpoints(folder).restore().values == {"value": 2}
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(3, value=3)
    assert names_in(folder) == ["step-00000001", "step-00000002", "step-00000003"]
    shutil.copytree(folder / "step-00000002", folder / "step-00000002.replaced")
    with Checkpoints(folder) as checkpoints:
        assert checkpoints.steps() == [1, 2, 3]
        checkpoints.save(4)
    assert names_in(folder) == ["step-00000002", "step-00000003", "step-00000004"]


def test_another_process_may_remove_what_is_read(folder, monkeypatch):
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(1, value=1)
        checkpoints.save(2, value=2)
        checkpoints.wait()
        verify = burn.store.checkpoints.verify

        def remove_and_verify(found, operation):
            if found.step == 2:
                shutil.rmtree(found.path)
            return verify(found, operation)

        monkeypatch.setattr(burn.store.checkpoints, "verify", remove_and_verify)
        assert checkpoints.restore().values == {"value": 1}


KILLED = Path(__file__).parents[1] / "shared" / "checkpoint_writer.py"


@has_fork
@pytest.mark.parametrize(
    "kills", [4, pytest.param(200, marks=pytest.mark.exhaustive)], ids=["few", "many"]
)
def test_a_run_that_is_killed_while_it_saves_goes_on_to_the_bit(kills, tmp_path, run_python):
    result = run_python(KILLED, tmp_path / "run", kills, 60 if kills > 4 else 12, 0)
    assert result.returncode == 0, result.stderr
    killed, restored, _ = map(int, result.stdout.split())
    assert killed > kills / 2  # others had reached the last step before
    assert restored > killed / 2  # others were killed before the first checkpoint


# Folders that cannot be written to.


@pytest.mark.parametrize("name", ["file/run", "file"])
def test_a_path_below_a_file_is_an_error(name, tmp_path):
    checkpoints = Checkpoints(tmp_path / name)
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"Checkpoints\.save: .*file") as caught:
        checkpoints.save(1)
    assert caught.value.errno


@pytest.mark.skipif(os.name == "nt" or os.getuid() == 0, reason="permissions do not bind this user")
def test_a_read_only_folder_is_an_error(folder):
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(1, value=1)
    folder.chmod(0o500)
    try:
        with pytest.raises(StoreError, match="Permission denied"):
            Checkpoints(folder).save(2, wait=True)
        assert Checkpoints(folder).restore().values == {"value": 1}
    finally:
        folder.chmod(0o700)


def test_a_missing_library_is_an_error_at_once(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(1, value=1)  # needs no files of tensors
        with pytest.raises(StoreError, match=r'pip install "burn-core\[store\]"'):
            checkpoints.save(2, x=burn.ones(2))
        assert checkpoints.restore().values == {"value": 1}


def test_files_that_may_not_grow_are_an_error_and_training_goes_on(folder, run_python):
    pytest.importorskip("resource")
    program = f"""
import resource, burn
from burn.store import Checkpoints
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
with Checkpoints({str(folder)!r}) as checkpoints:
    for step in range(6):
        limit = 100_000 if step in (2, 3) else hard
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            checkpoints.save(step, x=burn.full(50_000, float(step), device="cpu"), wait=True)
        except burn.StoreError as error:
            print(step, error.errno, error)
    print(checkpoints.steps(), checkpoints.restore().values["x"][0].item())
"""
    result = run_python("-c", program)
    lines = result.stdout.splitlines()
    assert lines[-1] == "[1, 4, 5] 5.0", result.stdout + result.stderr
    assert [line[:5] for line in lines[:-1]] == ["2 27 ", "3 27 "]
    assert all("File too large" in line and str(folder) in line for line in lines[:-1])
    assert names_in(folder) == [f"step-0000000{step}" for step in (1, 4, 5)]


# Damaged and hostile folders.


@pytest.fixture
def saved(folder):
    with Checkpoints(folder) as checkpoints:
        for step in (1, 2):
            checkpoints.save(
                step, net=network(CPU), draws=np.random.default_rng(0), value=[step, 1.5]
            )
    return folder / "step-00000002"


def change(path, function):
    """Change what is in a JSON file, and its checksum: that of a manifest is in itself."""
    content = json.loads(path.read_text())
    if path.name == "checkpoint.json":
        del content["sha256"]
    changed = function(content)
    content = changed if isinstance(changed, list) else content
    if path.name == "checkpoint.json" and isinstance(content, dict):
        ordered = json.dumps(content, sort_keys=True).encode()
        content["sha256"] = hashlib.sha256(ordered).hexdigest()
    path.write_text(json.dumps(content))
    if path.name == "state.json":
        describe(path)


def describe(path):
    """Let the manifest have the size and checksum of a file as they are."""
    content = path.read_bytes()
    described = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    change(
        path.with_name("checkpoint.json"),
        lambda manifest: manifest["files"].update({path.name: described}),
    )


MANIFESTS = {
    "a later version": (lambda item: item.update(version=2), "version 2 of the format"),
    "no version": (lambda item: item.update(version="1"), "no manifest of a checkpoint"),
    "another format": (lambda item: item.update(format="x"), "no manifest of a checkpoint"),
    "a list": (lambda item: [1], "no JSON object"),
    "another step": (lambda item: item.update(step=1), "is of step 1, and its folder of step 2"),
    "no files": (lambda item: item.update(files=[]), "does not say which files"),
    "no state": (lambda item: item["files"].pop("state.json"), "does not say which files"),
    "a path": (lambda item: item["files"].update({"../../x": {}}), "names the file '../../x'"),
    "an absolute path": (lambda item: item["files"].update({"/etc/passwd": {}}), "names the file"),
    "a file too many": (
        lambda item: item["files"].update({"x.json": {"size": 1, "sha256": ""}}),
        "No such file",
    ),
    "no description": (lambda item: item["files"].update({"state.json": 1}), "names the file"),
    "no size": (lambda item: item["files"]["state.json"].pop("size"), "checkpoint.json says None"),
    "no hash": (lambda item: item["files"]["state.json"].pop("sha256"), "SHA-256"),
}


@pytest.mark.parametrize("case", MANIFESTS)
def test_a_hostile_manifest_is_refused(case, saved):
    function, message = MANIFESTS[case]
    change(saved / "checkpoint.json", function)
    refused(saved, message)


@pytest.mark.parametrize("number", [None, "1", -1, 1.5, True, 10**400])
def test_a_checkpoint_whose_number_is_unknown_comes_after_the_step_before(number, saved):
    change(saved / "checkpoint.json", lambda item: item.update(number=number))
    with Checkpoints(saved.parent) as checkpoints:
        assert checkpoints.steps() == [1, 2]
        assert checkpoints.restore().step == 2
        checkpoints.save(0)
        checkpoints.wait()
        assert checkpoints.steps()[-1] == 0


def refused(saved, message):
    net, draws = network(CPU), np.random.default_rng(9)
    net[0].weight.assign(net[0].weight.detach() * 0.0)
    before = state_of(net, draws)
    with Checkpoints(saved.parent) as checkpoints:
        with pytest.raises(StoreError, match=message) as caught:
            checkpoints.restore(2, net=net, draws=draws)
        assert str(saved) in str(caught.value)
        assert state_of(net, draws) == before
        assert checkpoints.restore(1, net=net, draws=draws).values == {"value": [1, 1.5]}
    return str(caught.value)


def part(name, **changes):
    return lambda state: state["parts"][name].update(changes)


def deep(state):
    for _ in range(500):
        state = [state]
    return state


STATES = {
    "no parts": (lambda state: state.pop("parts"), "describe parts"),
    "parts of numbers": (lambda state: state.update(parts={"net": 1}), "describe parts"),
    "a list of parts": (lambda state: state.update(parts=[1]), "describe parts"),
    "another kind": (part("net", kind="code"), "describe parts"),
    "a path": (lambda state: state["parts"].update({"../net": state["parts"]["net"]}), "the name"),
    "an unknown object": (part("value", content={"$code": "1"}), r"keys \['\$code'\]"),
    "two objects": (part("value", content={"$int": "1", "x": 1}), "keys"),
    "a number that is none": (part("value", content={"$int": "one"}), "invalid literal"),
    "a float that is none": (part("value", content={"$float": []}), "with list"),
    "a tuple of text": (part("value", content={"$tuple": "abc"}), "with str"),
    "a device of numbers": (part("value", content={"$tensor": "0", "device": 1}), "no name"),
    "a tensor without file": (
        part("value", content={"$tensor": "x", "device": "cpu"}),
        "no file value.safetensors",
    ),
    "an unknown tensor": (
        part("net", content={"x": {"$tensor": "x", "device": "cpu"}}),
        "no tensor 'x'",
    ),
    "deep lists": (part("value", content=deep(1)), "more than 100 containers"),
    "a generator of another kind": (part("draws", content={"bit_generator": "os"}), "'os' is no"),
    "a list as a kind": (part("draws", content={"bit_generator": []}), "no state of a generator"),
    "a generator of text": (part("draws", content="PCG64"), "no state of a generator"),
    "a generator without state": (part("draws", content={"bit_generator": "PCG64"}), "no state"),
    "no random states": (lambda state: state.update(random=None), "no states of random"),
    "a random state of text": (
        lambda state: state["random"].update(python="x"),
        "no states of random",
    ),
    "a position beyond the buffer": (
        lambda state: state["random"]["numpy"]["state"].update(pos=10**6),
        "no states of random",
    ),
    "a negative seed": (
        lambda state: state["random"]["devices"].update(cpu={"seed": -1, "offset": 0}),
        "no states of random",
    ),
}


@pytest.mark.parametrize("case", STATES)
def test_a_hostile_state_is_refused(case, saved):
    function, message = STATES[case]
    change(saved / "state.json", function)
    refused(saved, message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\xff" * 100, "no safetensors file"),
        (struct.pack("<Q", 2) + b"{}", "no tensor '0.weight'"),
        (b"PK\x03\x04" + bytes(100), "no safetensors file"),
        (pickle.dumps(print), "no safetensors file"),
    ],
    ids=["empty", "a long header", "no tensors", "an archive", "a pickle"],
)
def test_a_hostile_file_of_tensors_is_refused(content, message, saved):
    (saved / "net.safetensors").write_bytes(content)
    describe(saved / "net.safetensors")
    refused(saved, message)


def test_json_that_is_too_deep_is_refused(saved):
    path = saved / "state.json"
    path.write_text("[" * 100_000 + "]" * 100_000)
    describe(path)
    refused(saved, "is damaged")


@pytest.mark.parametrize("name", ["net.safetensors", "state.json", "checkpoint.json"])
@pytest.mark.parametrize("damage", ["truncated", "longer", "missing", "empty", "folder", "link"])
def test_a_damaged_file_is_named_with_the_step_that_is_intact(name, damage, saved, tmp_path):
    path = saved / name
    content = path.read_bytes()
    path.unlink()
    if damage == "folder":
        path.mkdir()
    elif damage == "link":
        (tmp_path / "elsewhere").write_bytes(content)
        path.symlink_to(tmp_path / "elsewhere")
    elif damage != "missing":
        path.write_bytes(
            {"truncated": content[:-5], "longer": content + b"x", "empty": b""}[damage]
        )
    message = refused(saved, "restore")
    assert str(path) in message
    assert "Step 1 is intact: restore(step=1)" in message
    with Checkpoints(saved.parent) as checkpoints:
        assert checkpoints.steps() == [1, 2]
        checkpoints.save(3)
        checkpoints.save(4)  # goes on, and the damaged one goes in its turn
        checkpoints.save(5)
    assert checkpoints.steps() == [3, 4, 5]


def test_no_intact_checkpoint_is_an_error_that_says_so(saved):
    for path in saved.parent.glob("step-*/state.json"):
        path.write_text("{}")
    with pytest.raises(StoreError, match="No other checkpoint here is intact"):
        Checkpoints(saved.parent).restore()


def test_no_changed_byte_passes(saved, everything):
    """Whatever byte is changed: an error, or what was saved."""
    draw = random.Random(0)
    with Checkpoints(saved.parent) as checkpoints:
        expected = checkpoints.restore(2, net=network(CPU)).values["draws"].random(3).tolist()
        for path in sorted(saved.iterdir()):
            content = path.read_bytes()
            for _ in range(200 if everything else 10):
                index = draw.randrange(len(content))
                changed = bytearray(content)
                changed[index] ^= 1 << draw.randrange(8)
                path.write_bytes(changed)
                net = network(CPU)
                before = state_of(net)
                try:
                    found = checkpoints.restore(2, net=net)
                except StoreError as error:
                    assert str(saved) in str(error)
                    assert state_of(net) == before
                else:
                    assert path.name == "checkpoint.json"
                    assert found.values["value"] == [2, 1.5]
                    assert found.values["draws"].random(3).tolist() == expected
            path.write_bytes(content)


def test_a_flipped_bit_of_a_manifest_gives_no_other_step(folder, everything):
    """The newest is no greater step: its number alone says that it is the newest."""
    with Checkpoints(folder) as checkpoints:
        for step in (1, 3, 2):
            checkpoints.save(step, value=step)
    path = folder / "step-00000002" / "checkpoint.json"
    content = path.read_bytes()
    refused = 0
    for index in range(0, len(content), 1 if everything else 5):
        changed = bytearray(content)
        changed[index] ^= 1 << index % 8
        path.write_bytes(changed)
        try:
            assert checkpoints.restore().step == 2
        except StoreError as error:
            refused += 1
            assert "step-00000002" in str(error)
            assert "Step 3 is intact: restore(step=3)" in str(error)
    assert refused > 0.8 * len(content) / (1 if everything else 5)


def test_a_checkpoint_of_an_earlier_version_has_no_checksum_of_its_manifest(saved):
    path = saved / "checkpoint.json"
    change(saved / "state.json", lambda state: state.pop("number"))
    manifest = json.loads(path.read_text())
    del manifest["sha256"]
    path.write_text(json.dumps(manifest))
    found = Checkpoints(saved.parent).restore()
    assert (found.step, found.values["value"]) == (2, [2, 1.5])


def test_dtypes_are_values_of_a_checkpoint(folder):
    scheme = burn.quantization.QuantScheme()
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(1, dtype=burn.float16, all=[burn.int8, burn.quantization.QDType(scheme)])
        values = checkpoints.restore().values
    assert values["dtype"] is burn.float16
    assert values["all"] == [burn.int8, burn.quantization.QDType(scheme)]


def test_nothing_of_pickle_is_in_a_checkpoint(saved):
    for path in saved.iterdir():
        assert path.suffix in {".json", ".safetensors"}
