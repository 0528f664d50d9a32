"""Many threads at once: each backend is loaded once, each handle is one object, no long waits.

A deadlock does not hang the tests: threads are daemons, and who waits does so for a limited time.
"""

import dataclasses
import faulthandler
import importlib.metadata
import sys
import threading
import types

import pytest

import burn
from burn.plugins import BackendSpec, DeviceInfo, Registry, State, hookimpl, registry
from burn.testing import MockDevice, mock_backend

THREADS = 64
SECONDS = 60


@pytest.fixture(autouse=True)
def frequent_switches():
    """Let threads get in each other's way as often as possible."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(interval)


@pytest.fixture(autouse=True)
def no_choice(monkeypatch):
    for variable in ("BURN_DEVICE", "BURN_DEVICE_PRIORITY", "BURN_STRICT_PLUGINS"):
        monkeypatch.delenv(variable, raising=False)
    yield
    burn.set_default_device(None)


@pytest.fixture
def repetitions(everything):
    return 200 if everything else 50


class Crew:
    """Threads that do the same kind of work at the same time, again and again."""

    def __init__(self, work):
        self.work = work
        self.errors = []
        self.begin = threading.Barrier(THREADS + 1, timeout=SECONDS)
        self.end = threading.Barrier(THREADS + 1, timeout=SECONDS)
        self.is_over = False
        self.threads = [
            threading.Thread(target=self._run, args=(number,), daemon=True)
            for number in range(THREADS)
        ]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, kind, error, trace):
        self.is_over = True
        if kind is None:
            self.begin.wait()
            for thread in self.threads:
                thread.join(SECONDS)
                assert not thread.is_alive()
        else:
            self.begin.abort()

    def once(self):
        """Let every thread do its work once."""
        self.begin.wait()
        try:
            self.end.wait()
        except threading.BrokenBarrierError:
            faulthandler.dump_traceback(all_threads=True)
            pytest.fail("deadlock: not all threads came to an end")
        assert not self.errors, self.errors[0]

    def _run(self, number):
        while True:
            self.begin.wait()
            if self.is_over:
                return
            try:
                self.work(number)
            except BaseException as error:  # noqa: BLE001 — the test's thread looks at it
                self.errors.append(error)
            self.end.wait()


def counted(spec, loads, probes):
    """A spec that notes how often it is asked."""

    def load():
        loads.append(spec.name)
        return spec.load()

    def probe():
        probes.append(spec.name)
        return spec.probe()

    return dataclasses.replace(spec, load=load, probe=probe)


NAMES = ("left", "middle", "right")


def ask(spelling, other):
    return burn.Device(spelling)


def choose_for_all(spelling, other):
    burn.set_default_device(spelling)
    assert burn.Device.default().backend_name in NAMES
    return burn.Device(spelling)


def choose_for_this_thread(spelling, other):
    with burn.default_device(spelling):
        device = burn.zeros(1).device
        with burn.default_device(other):
            assert burn.zeros(1).device.backend_name == other
        assert burn.zeros(1).device is device
    return device


def choose_nothing(spelling, other):
    burn.set_default_device(None)
    assert burn.Device.default().backend_name in NAMES
    return burn.Device(spelling)


def enumerate_all(spelling, other):
    assert len(burn.Device.enumerate(other)) == 3
    return burn.Device(spelling)


def compute(spelling, other):
    x = burn.ones(3, device=spelling)
    assert (x + x).tolist() == [2.0, 2.0, 2.0]
    return x.device


def differentiate(spelling, other):
    x = burn.ones(2, device=burn.Device(spelling).autodiff()).require_grad()
    assert x.grad((x * x).backward(burn.ones_like(x))).tolist() == [2.0, 2.0]
    return x.device.inner()


def configure(spelling, other):
    device = burn.Device(spelling)
    device.configure(float_dtype="float32")
    return device


JOBS = (
    ask,
    choose_for_all,
    choose_for_this_thread,
    choose_nothing,
    enumerate_all,
    compute,
    differentiate,
    configure,
)


def test_threads_that_ask_for_devices_load_backends_and_switch_defaults(repetitions):
    devices = [MockDevice("one"), MockDevice("one"), MockDevice("two")]
    found = set()

    def work(number):
        spelling = f"{NAMES[number % 3]}/one:{number % 2}"
        device = JOBS[number % len(JOBS)](spelling, NAMES[(number + 1) % 3])
        tracked = device.autodiff()
        objects = (device, tracked, device.ops, tracked.ops, tracked.backend)
        found.add((spelling, *map(id, objects)))

    with Crew(work) as crew:
        for _ in range(repetitions):
            loads, probes = [], []
            for name in NAMES:
                spec = mock_backend(name, devices, priority=1)
                burn.register_backend(counted(spec, loads, probes))
            try:
                crew.once()
            finally:
                burn.set_default_device(None)
                for name in NAMES:
                    registry.unregister(name)
            assert sorted(loads) == sorted(probes) == sorted(NAMES)
            assert len(found) == 6  # one for each device that was spelled
            found.clear()


def test_threads_that_look_for_plugins_find_them_once_and_the_same(monkeypatch, repetitions):
    asked = []

    class Point:
        def __init__(self, name):
            self.name = name
            self.value = f"{name}.plugin"
            self.dist = types.SimpleNamespace(name=f"burn-{name}", version="1.0")

        def load(self):
            asked.append(self.name)
            module = types.ModuleType(self.name)
            spec = mock_backend(self.name, [MockDevice()])
            module.burn_backends = hookimpl(lambda: [counted(spec, loads, probes)])
            return module

    points = [Point(name) for name in ("a", "b", "c", "d")]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points)
    fresh = Registry()
    found = set()
    loads, probes = [], []

    def work(number):
        entry = fresh.entry("abcd"[number % 4])
        assert entry.state in (State.READY, State.LOADED)
        found.add((entry.name, id(entry), id(entry.load())))
        assert entry.state is State.LOADED

    with Crew(work) as crew:
        for _ in range(repetitions):
            fresh = Registry()
            crew.once()
            assert sorted(asked) == sorted(loads) == sorted(probes) == ["a", "b", "c", "d"]
            assert len(found) == 4
            for kept in (asked, loads, probes, found):
                kept.clear()


def test_threads_go_on_while_plugins_are_looked_for_again():
    loads, probes = [], []
    spec = counted(mock_backend("mock", [MockDevice(), MockDevice()]), loads, probes)

    def work(number):
        if number == 0:
            burn.refresh_plugins()
        elif number == 1:
            with burn.registered(mock_backend("passing", [MockDevice()])):
                assert burn.zeros(2, device="passing").tolist() == [0.0, 0.0]
        else:
            x = burn.ones(2, device=f"mock:{number % 2}")
            assert (x + x).tolist() == [2.0, 2.0]
            assert burn.Device("cpu") is burn.Device.enumerate("cpu")[0]

    with burn.registered(spec), Crew(work) as crew:
        device = burn.Device("mock:1")
        for _ in range(20):
            crew.once()
        assert burn.Device("mock:1") is device
    assert loads == ["mock"]


def test_backends_that_load_each_other_at_the_same_time_do_not_wait_for_ever():
    """Each of two threads starts at another end of the chain, which has no circle."""

    def load_below():
        burn.Device("below").ops  # noqa: B018 — loads it

    below = mock_backend("below", [MockDevice()])
    above = mock_backend("above", [MockDevice()], on_load=load_below)

    def work(number):
        name = "above" if number % 2 else "below"
        assert burn.ones(2, device=name).tolist() == [1.0, 1.0]

    with Crew(work) as crew:
        for _ in range(20):
            with burn.registered(below), burn.registered(above):
                crew.once()


def test_a_probe_that_asks_for_its_own_devices_does_not_wait_for_itself():
    def probe():
        burn.Device.enumerate()
        return [DeviceInfo("unit", 0, "a mock")]

    inner = mock_backend("mock", [MockDevice()])
    spec = BackendSpec("curious", load=inner.load, probe=probe, device_types=("unit",))
    with burn.registered(spec) as entry:
        assert entry.state is State.FAILED
        assert "asked for the devices of 'curious'" in str(entry.error)
