"""What is particular to the CPU backend; that its ops are right is shown by the conformance kit."""

import subprocess
import sys
import threading

import numpy as np
import pytest

from burn.plugin_api import (
    BackendSpec,
    DeviceId,
    DTypeUsage,
    float32,
    registry,
    resolve,
    uint32,
)
from burn_cpu.plugin import burn_backends

CPU = DeviceId(0)


@pytest.fixture(scope="module")
def backend():
    return resolve(registry.entry("cpu").load(), DeviceId(0)).backend


def test_the_plugin_declares_one_device_of_one_type():
    (spec,) = burn_backends()
    assert isinstance(spec, BackendSpec)
    (info,) = spec.probe()
    assert (info.type, info.index) == ("cpu", 0)
    assert info.hardware
    assert info.memory is None or info.memory > 1 << 20
    assert DTypeUsage.GENERAL in info.usage[float32]


def test_looking_for_devices_does_not_load_the_backend():
    code = "import sys; from burn_cpu.plugin import burn_backends as b; b()[0].probe(); "
    code += "print('burn_cpu.backend' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "False"


def bits(backend, seed, offset, count):
    return backend.random_bits(seed=seed, offset=offset, count=count, dtype=uint32, device=CPU)


def test_words_generated_ahead_are_those_that_a_call_would_have_made(backend):
    whole = bits(backend, 11, 0, 300_000)
    for offset, count in ((0, 16), (5, 7), (16_383, 40), (16_384, 4), (70_000, 1000), (3, 2)):
        expected = whole[4 * offset : 4 * offset + count]
        np.testing.assert_array_equal(bits(backend, 11, offset, count), expected)


def test_random_words_are_the_callers_own(backend):
    first = bits(backend, 12, 0, 8)
    first[:] = 0
    assert bits(backend, 12, 0, 8).any()


def test_threads_with_different_seeds_do_not_disturb_each_other(backend):
    expected = {seed: bits(backend, seed, 0, 64).tolist() for seed in range(8)}
    wrong = []

    def draw(seed):
        drawn = [bits(backend, seed, 0, 64).tolist() for _ in range(100)]
        wrong.extend(words for words in drawn if words != expected[seed])

    threads = [threading.Thread(target=draw, args=(seed,)) for seed in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_batch_times_one_matrix_is_the_product_of_each(backend):
    generator = np.random.default_rng(0)
    batch, matrix = generator.normal(size=(5, 3, 4)), generator.normal(size=(4, 6))
    for x in (batch, batch.transpose(1, 0, 2), batch[::2], batch[:0]):
        np.testing.assert_allclose(backend.matmul(x, matrix), np.matmul(x, matrix), rtol=1e-13)


def test_optimizer_steps_change_no_operand(backend):
    arrays = [np.full(4, value, np.float32) for value in (1.0, 0.5, 0.1, 0.2)]
    before = [array.copy() for array in arrays]
    lists = [[array] for array in arrays]
    rates = {"learning_rate": 0.1, "weight_decay": 0.1}
    betas = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "decoupled": False}
    backend.adam_step(*lists, [], step=1, **betas, **rates)
    backend.sgd_step(*lists[:3], momentum=0.9, dampening=0.0, nesterov=True, **rates)
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)


def adam(backend, lists):
    rates = {"learning_rate": 0.1, "weight_decay": 0.1, "epsilon": 1e-8, "decoupled": True}
    return backend.adam_step(*lists, [], step=3, beta1=0.9, beta2=0.999, **rates)


def test_parameters_of_one_call_are_updated_as_by_calls_of_their_own(backend):
    generator = np.random.default_rng(0)
    shapes = [(5,), (), (70, 60), (2, 3), (0, 4), (40_000,), (3, 2), (5,)]
    lists = [[np.abs(generator.normal(size=shape)) for shape in shapes] for _ in range(4)]
    turned = [np.asfortranarray(operand[2]) for operand in lists]
    turned[1] = lists[1][2]  # of another layout than the parameter
    for operand, last in zip(lists, turned, strict=True):
        operand.append(last)
        operand.append(last[:3, ::2])
    together = adam(backend, lists)
    count = len(lists[0])
    for index in range(count):
        alone = adam(backend, [[operand[index]] for operand in lists])
        for found, expected in zip(together[index::count], alone, strict=True):
            np.testing.assert_array_equal(found, expected)
    for found, expected in zip(together[8::count], together[2::count], strict=True):
        np.testing.assert_array_equal(found, expected)
        assert found.flags.f_contiguous
