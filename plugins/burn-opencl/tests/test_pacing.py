"""How much work is in the queue: never so much that an interrupted program has to wait for long."""

import math
import time

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
def test_who_reads_after_many_products_waits_for_few_of_them(monkeypatch):
    launched = []
    add = Pacing.add

    def noted(pacing, key, event):
        launched.append((pacing, event))
        add(pacing, key, event)

    x = burn.full((768, 768), 1e-3, device=burn.Device("opencl"))
    seconds = []
    for _ in range(4):  # the first compiles; each begins with an empty queue
        start = time.perf_counter()
        (x @ x).numpy()
        seconds.append(time.perf_counter() - start)
    quickest = min(seconds)  # beside other work a product takes longer, and fewer are in the queue
    most = max(4 * MAX_QUEUED_SECONDS / quickest + 2, 100)  # of any speed few until it is known
    y = x
    monkeypatch.setattr(Pacing, "add", noted)
    for _ in range(min(math.ceil(1.5 * most), 300)):
        y = y @ x
    queued = [event for pacing, event in launched if not pacing._is_done(event)]
    assert len(queued) <= most
    y.numpy()
