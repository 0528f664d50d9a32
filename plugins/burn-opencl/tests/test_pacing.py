"""How much work is in the queue: never so much that an interrupted program has to wait for long."""

import itertools

import pytest

import burn
from burn_opencl.icd_loader import found_devices
from burn_opencl.pacing import MAX_QUEUED_SECONDS, Pacing


class Device:
    """A device whose commands take as long as they are said to, on a clock of its own."""

    def __init__(self):
        self.now = self.idle_from = 0.0
        self.pacing = Pacing(lambda done_at: done_at <= self.now, self.wait, lambda: self.now)

    def wait(self, done_at):
        self.now = max(self.now, done_at)

    def launch(self, key, seconds, host=1e-5):
        self.now += host
        self.idle_from = max(self.idle_from, self.now) + seconds
        self.pacing.add(key, self.idle_from)

    @property
    def ahead(self):
        """Seconds that the device has to do."""
        return max(self.idle_from - self.now, 0.0)


@pytest.mark.parametrize("seconds", [1.0, 0.1, 1e-3, 1e-5])
def test_a_fraction_of_a_second_or_two_launches_are_in_the_queue(seconds):
    device = Device()
    for _ in range(500):
        device.launch("product", seconds)
        assert device.ahead <= 2 * MAX_QUEUED_SECONDS + 2 * seconds


def test_slow_launches_after_many_quick_ones_are_seen_to_be_slow():
    device = Device()
    for _ in range(2000):
        device.launch("sum", 2e-6)
    for _ in range(50):
        device.launch("product", 0.5)
        device.launch("sum", 2e-6)
        assert device.ahead <= 2.0


def test_few_launches_are_queued_when_their_kind_takes_longer_than_before_a_read():
    device = Device()
    for _ in range(2000):
        device.launch("product", 2e-6)
    device.wait(device.idle_from)
    device.pacing.clear()
    for _ in range(300):
        device.launch("product", 1e-2)
        assert device.ahead <= 1.0


def test_a_kernel_that_becomes_slow_is_found_out():
    device = Device()
    for _ in range(2000):
        device.launch("sort", 2e-5)
    most = 0.0
    for number in range(2000):
        device.launch("sort", 1e-2)
        most = max(most, device.ahead if number > 700 else 0.0)
    assert most <= 1.0


@pytest.mark.parametrize("seconds", [1e-4, 1e-3, 5e-2])
def test_the_device_does_not_wait_for_the_host(seconds):
    device = Device()
    for _ in range(100):  # until it is known how long a launch takes
        device.launch("product", seconds)
    start = device.idle_from
    for _ in range(300):
        device.launch("product", seconds)
    assert device.idle_from - start == pytest.approx(300 * seconds)


@pytest.mark.skipif(not found_devices(), reason="OpenCL is not tested: there is no device")
def test_launches_of_a_program_wait_for_those_before_them(monkeypatch):
    device = burn.Device("opencl")
    x = burn.full((64, 64), 1e-3, device=device)
    (x @ x).numpy()  # compiled before it is counted
    pacing = device.backend.for_device(device.id).launcher.runtime._pacing
    wait, launches, waits, now = pacing._wait, [], [], [0.0]

    def waited(event):
        wait(event)
        now[0] += 0.1  # as long as each wait is said to take, whatever this device does
        waits.append(len(launches))

    def noted(key, event):
        launches.append(event)
        Pacing.add(pacing, key, event)

    monkeypatch.setattr(pacing, "_costs", {})
    monkeypatch.setattr(pacing, "_is_done", lambda event: False)
    monkeypatch.setattr(pacing, "_wait", waited)
    monkeypatch.setattr(pacing, "_clock", lambda: now[0])
    monkeypatch.setattr(pacing, "add", noted)
    y = x
    for _ in range(50):
        y = y @ x
    assert len(launches) >= 50
    assert len(launches) - waits[-1] <= 5
    assert max(later - earlier for earlier, later in itertools.pairwise([0, *waits])) <= 5
    y.numpy()
