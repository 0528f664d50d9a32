"""Two devices in one process, and long runs: each in a process of its own."""

import os
import subprocess
import sys

import pytest

from burn_opencl.icd_loader import found_devices

if all(device.platform != "Portable Computing Language" for device in found_devices()):
    pytest.skip("only PoCL makes two devices of one", allow_module_level=True)


def output(code, **variables):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BURN_")}
    finished = subprocess.run(
        [sys.executable, "-c", code],
        env=kept | {"BURN_PLUGINS": "cpu,opencl"} | variables,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.split()


THREADS = """
import threading
import numpy as np
import burn

devices = [burn.Device("opencl/cpu:0"), burn.Device("opencl/cpu:1")]
assert devices[0] != devices[1]
wrong = []

def work(seed):
    values = np.random.default_rng(seed).normal(size=(40, 30)).astype(np.float32)
    there, back = devices[seed % 2], devices[1 - seed % 2]
    x = burn.asarray(values, device=there)
    for turn in range(10):
        y = (x * 2.0).to_device(back)
        z = (y + 1.0).to_device(there)
        total = float(burn.sum(z - x))
        if abs(total - (values + 1.0).sum(dtype=np.float64)) > 1e-2 or y.device != back:
            wrong.append((seed, turn))

threads = [threading.Thread(target=work, args=(seed,)) for seed in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for one in devices:
    one.sync()
print("wrong", len(wrong), "of", len(threads))
"""


def test_threads_send_tensors_to_and_fro_between_two_devices():
    assert output(THREADS, POCL_DEVICES="pthread pthread") == ["wrong", "0", "of", "16"]


ERRORS = """
import burn

a, b = burn.Device("opencl/cpu:0"), burn.Device("opencl/cpu:1")
x = burn.take(burn.arange(4, device=a), burn.asarray([7], device=a))
assert (burn.ones(2, device=b) + 1.0).tolist() == [2.0, 2.0]
b.sync()
try:
    x.to_device(b)
except IndexError:
    print("told")
print((burn.ones(1, device=a) + 1.0).tolist()[0], burn.sum(burn.ones(5, device=b)).tolist())
"""


def test_what_is_wrong_on_one_device_is_told_there_and_not_on_the_other():
    assert output(ERRORS, POCL_DEVICES="pthread pthread") == ["told", "2.0", "5.0"]


STEPS = """
import gc
import numpy as np
import burn

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

device = burn.Device("opencl")
tracked = device.autodiff()
weight = burn.ones((16, 16), device=tracked).require_grad()
x = np.ones((8, 16), np.float32)

def step():
    y = burn.asarray(x, device=tracked) @ weight
    gradient = weight.grad(burn.sum(burn.tanh(y)).backward())
    return float(burn.sum(gradient))

def steps(count):
    for _ in range(count):
        step()
    device.sync()
    gc.collect()
    return device.backend.for_device(device.id).launcher.pool.held, resident()

steps(COUNT // 5)
held, before = steps(COUNT // 5)
held_after, after = steps(COUNT)
print(held_after == held, (after - before) >> 20)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="no /proc")  # noqa: PTH110 — one call
def test_memory_does_not_grow_from_step_to_step():
    # 10,000 steps show the same; they take half a minute.
    same, grown = output(STEPS.replace("COUNT", "1000"))
    assert same == "True"
    assert int(grown) < 3
