"""Work in blocks on several threads: the same results, errors and settings as on one."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from burn.plugin_api import DeviceId, DType, registry, resolve
from burn_cpu import attention, blocks


@pytest.fixture(scope="module")
def backend():
    return resolve(registry.entry("cpu").load(), DeviceId(0)).backend


@pytest.fixture(params=[1, 2, 4])
def threads(request, monkeypatch):
    """That many threads, whatever BLAS is set to."""
    monkeypatch.setattr(blocks, "thread_count", lambda: request.param)
    return request.param


@pytest.mark.parametrize(("count", "step"), [(0, 5), (1, 5), (10, 5), (11, 5), (1000, 1)])
def test_every_part_is_done_once(threads, count, step):
    done = np.zeros(count, np.int64)

    def work(start, stop):
        assert stop - start <= step
        done[start:stop] += 1

    blocks.in_blocks(work, count, step)
    assert (done == 1).all()


def test_an_error_in_a_part_is_raised_and_the_rest_is_left(threads):
    started = []

    def work(start, _):
        started.append(start)
        time.sleep(0.001)
        if start == 3:
            raise KeyError(start)

    with pytest.raises(KeyError):
        blocks.in_blocks(work, 1000, 1)
    assert len(started) < 1000
    blocks.in_blocks(lambda start, stop: None, 10, 1)


def test_parts_run_under_the_callers_settings(threads):
    x = np.array([1e30], np.float32)

    def work(start, stop):
        time.sleep(0.001)
        np.multiply(x, x)

    with np.errstate(over="ignore"):
        blocks.in_blocks(work, 50, 1)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        blocks.in_blocks(work, 50, 1)


def test_several_callers_at_once(threads):
    x = np.random.default_rng(0).normal(size=(40, 20_000))
    expected = [row.cumsum() for row in x]
    wrong = []

    def call(number):
        result = np.empty_like(x)

        def work(start, stop):
            result[start:stop] = x[start:stop].cumsum(axis=1)

        for _ in range(5):
            blocks.in_blocks(work, len(x), 1)
            wrong.extend(number for a, b in zip(result, expected, strict=True) if (a != b).any())

    callers = [threading.Thread(target=call, args=(number,)) for number in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def calls(backend):
    generator = np.random.default_rng(1)

    def floats(*shape):
        return generator.normal(size=shape).astype(np.float32)

    images = floats(12, 16, 40, 40)
    q, k, v = floats(5, 200, 32), floats(5, 300, 32), floats(5, 300, 32)
    mask = generator.random((200, 300)) < 0.5
    options = {"scale": 0.2, "softcap": None, "is_causal": True}
    windows = {"kernel_size": (3, 2), "stride": (2, 2), "padding": ((1, 0), (1, 1))}
    windows["ceil_mode"] = False
    return {
        "max_pool": lambda: backend.max_pool(images, dilation=(1, 1), **windows),
        "max_pool_with_indices": lambda: backend.max_pool_with_indices(
            images, dilation=(1, 1), index_dtype=DType.of("int64"), **windows
        ),
        "attention": lambda: backend.attention(q, k, v, mask, None, **options),
        "attention_grad": lambda: backend.attention_grad(q, k, v, mask, None, q, **options),
    }


def test_results_do_not_depend_on_the_number_of_threads(backend, monkeypatch):
    results = {}
    for count in (1, 2, 5):
        for module in ("blocks", "attention", "pooling"):
            monkeypatch.setattr(f"burn_cpu.{module}.thread_count", lambda count=count: count)
        for name, call in calls(backend).items():
            result = call()
            arrays = result if isinstance(result, tuple) else (result,)
            expected = results.setdefault(name, arrays)
            # Products of matrices may be rounded otherwise where BLAS has threads of its own.
            tolerance = 1e-5 if name.startswith("attention") else 0.0
            for item, other in zip(arrays, expected, strict=True):
                np.testing.assert_allclose(
                    item, other, rtol=tolerance, atol=tolerance, err_msg=name
                )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_has_threads_of_its_own():
    code = """
import os, numpy as np
from burn_cpu import blocks
blocks.thread_count = lambda: 2
done = []
blocks.in_blocks(lambda start, stop: done.append(start), 100, 1)
child = os.fork()
if not child:
    done.clear()
    blocks.in_blocks(lambda start, stop: done.append(start), 100, 1)
    os._exit(0 if len(done) == 100 else 1)
print(os.waitpid(child, 0)[1])
"""
    result = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert result.stdout.strip() == "0"


def test_filling_is_exact():
    x = np.random.default_rng(3).normal(size=(3, 4, 5)).astype(np.float32)
    mask = np.random.default_rng(4).random((4, 5)) < 0.5
    expected = np.where(mask, -np.inf, x)
    attention._fill(x, mask, -np.inf)
    np.testing.assert_array_equal(x, expected)
