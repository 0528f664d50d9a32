"""Properties of this backend; the conformance kit tests the results of its ops."""

import gc
import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import burn
from burn.plugin_api import (
    DiskCache,
    DTypeUsage,
    ExecutionError,
    OutOfRangeError,
    float32,
    float64,
)
from burn.testing import SAMPLES, Subject, check_sample, load_samples
from burn_opencl.buffers import Buffer, piece_size, row_major
from burn_opencl.elementwise_variants import collapsed
from burn_opencl.icd_loader import found_devices
from burn_opencl.plugin import burn_backends
from burn_opencl.programs import Programs

if not found_devices():
    pytest.skip("OpenCL is not tested: there is no device", allow_module_level=True)

load_samples()

PROGRAM = """
import burn
x = burn.arange(20_000, device="opencl", dtype=burn.float32)
print(float(burn.sum(burn.exp(x * 1e-4))))
x.primitive.owner.launcher.programs.save()
"""


@pytest.fixture(scope="module")
def device():
    return burn.Device("opencl")


@pytest.fixture(scope="module")
def launcher(device):
    return device.backend.for_device(device.id).launcher


def run(code, **variables):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BURN_")}
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=kept | {"BURN_PLUGINS": "cpu,opencl"} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.strip()


def test_the_probe_and_the_backend_find_the_same_devices(device):
    (spec,) = burn_backends()
    infos = spec.probe()
    assert len(infos) == len(found_devices())
    for number, name in enumerate(spec.device_types):
        of_type = [info for info in infos if info.type == name]
        assert device.backend.device_count(number) == len(of_type)
    assert device.backend.device_count(77) == 0
    assert all(info.hardware and info.driver and info.memory for info in infos)
    assert DTypeUsage.GENERAL in infos[0].usage[float32]


def test_the_probe_does_not_import_pyopencl():
    code = "import sys; from burn_opencl.plugin import burn_backends as b; b()[0].probe(); "
    assert output(run(code + "print('pyopencl' in sys.modules)")) == "False"


def test_without_a_driver_there_is_no_device(tmp_path):
    code = "from burn_opencl.plugin import burn_backends as b; print(b()[0].probe())"
    assert output(run(code, OCL_ICD_VENDORS=str(tmp_path))) == "[]"


@pytest.mark.skipif(
    all(device.platform != "Portable Computing Language" for device in found_devices()),
    reason="only PoCL makes two devices of one",
)
def test_two_devices_of_one_machine_have_tensors_of_their_own():
    code = (
        "import burn; a, b = burn.Device('opencl/cpu:0'), burn.Device('opencl/cpu:1')\n"
        "x = burn.ones(3, device=a); y = (x + 1).to_device(b) * 2\n"
        "print(y.tolist(), y.device)\n"
        "try: x + y\n"
        "except burn.DeviceMismatchError: print('refused')"
    )
    text = output(run(code, POCL_DEVICES="pthread pthread"))
    assert text.splitlines() == ["[4.0, 4.0, 4.0] opencl/cpu:1", "refused"]


OPS = ("add", "sum", "max", "argmax", "softmax", "matmul", "scatter_add", "cumsum", "argsort")


@pytest.mark.parametrize("name", OPS)
def test_the_kernels_for_large_tensors_give_the_same_results(
    device, launcher, monkeypatch, name, everything
):
    monkeypatch.setattr(launcher, "min_specialized_elements", 0)
    subject = Subject(device.backend, device.id)
    for sample in SAMPLES[name].samples[:: 1 if everything else 4]:
        for dtype in subject.dtypes(SAMPLES[name], sample):
            if dtype is float32:
                check_sample(subject, SAMPLES[name], sample, dtype)


def test_large_tensors_are_computed_in_parts(device):
    values = np.random.default_rng(0).normal(size=(300, 1000)).astype(np.float32)
    x = burn.asarray(values, device=device)
    for axis in (None, 0, 1):
        found = burn.sum(x, axis=axis).numpy()
        expected = values.astype(np.float64).sum(axis=axis)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)
        np.testing.assert_array_equal(burn.max(x, axis=axis).numpy(), values.max(axis=axis))
        np.testing.assert_array_equal(burn.argmin(x, axis=axis).numpy(), values.argmin(axis=axis))
    flat = burn.reshape(x, (-1,))
    assert int(burn.argmax(flat)) == values.argmax()
    np.testing.assert_allclose(
        burn.cumulative_sum(flat).numpy(), values.ravel().cumsum(dtype=np.float64), atol=1e-2
    )
    order = burn.argsort(flat, stable=True).numpy()
    np.testing.assert_array_equal(order, values.ravel().argsort(kind="stable"))


@pytest.mark.parametrize("shape", [(70, 33, 41), (1, 200, 3), (129, 130, 131), (7, 500, 17)])
def test_products_of_matrices_of_odd_sizes(device, shape):
    m, k, n = shape
    numbers = np.random.default_rng(1)
    a, b = numbers.normal(size=(m, k)), numbers.normal(size=(n, k))
    for dtype, allowed in ((float32, 1e-3), (float64, 1e-10)):
        x, y = (burn.asarray(tensor, dtype=dtype, device=device) for tensor in (a, b))
        np.testing.assert_allclose((x @ y.T).numpy(), a @ b.T, atol=allowed)
        stacked = burn.stack([x, x + 1])
        np.testing.assert_allclose((stacked @ y.T).numpy()[1], (a + 1) @ b.T, atol=allowed)


def test_views_cost_no_memory(device):
    x = burn.ones((4, 6), device=device)
    views = [
        x.T,
        x[1:, ::2],
        burn.flip(x),
        burn.reshape(x, (2, 12)),
        burn.broadcast_to(x, (3, 4, 6)),
    ]
    for view in views:
        assert view.primitive.memory is x.primitive.memory


def test_axes_that_are_contiguous_in_all_operands_are_merged():
    shape = (2, 3, 1, 4)
    assert collapsed(shape, (row_major(shape),)) == ((24,), ((1,),))
    assert collapsed((2, 3), ((3, 1), (0, 1))) == ((2, 3), ((3, 1), (0, 1)))
    assert collapsed((), ((),)) == ((), ((),))


def test_more_axes_than_a_kernel_takes(device):
    shape = (2,) * 12
    values = np.arange(2**12, dtype=np.float32).reshape(shape)
    x = burn.asarray(values, device=device)
    axes = tuple(reversed(range(12)))
    found = (burn.permute_dims(x, axes) + x).numpy()
    np.testing.assert_array_equal(found, values.transpose(axes) + values)


def test_pieces_waste_a_quarter_at_most():
    for size in (1, 255, 257, 1000, 4097, 10**6, 10**9 + 1):
        piece = piece_size(size)
        assert size <= piece <= max(256, size * 5 / 4 + 1)


def test_memory_of_collected_tensors_is_reused(device, launcher):
    def step():
        x = burn.ones((64, 64), device=device)
        return (x * 2.0 + 1.0).sum()

    step()
    gc.collect()
    held = launcher.pool.held
    for _ in range(2_000):
        step()
    device.sync()
    assert launcher.pool.held == held


def test_a_tensor_that_does_not_fit_is_refused_with_sizes(device):
    with pytest.raises(ExecutionError, match=r"no room for \d+ bytes: .* of its \d+ bytes"):
        burn.zeros(1 << 45, dtype=burn.uint8, device=device)
    assert float(burn.ones(2, device=device).sum()) == 2.0


def test_memory_cleanup_frees_the_pool(device, launcher):
    burn.zeros(1 << 20, device=device)
    held = launcher.pool.held
    device.memory_cleanup()
    assert launcher.pool.held < held


def test_a_kernel_that_does_not_compile_is_shown_with_its_line(launcher):
    source = "__kernel void broken(__global float* x) {\n    x[0] = nonsense;\n}\n"
    with pytest.raises(ExecutionError) as caught:
        launcher.runtime.build(source)
    assert "line 2: x[0] = nonsense;" in str(caught.value)
    assert "nonsense" in str(caught.value).split("line 2")[1]


def test_an_index_out_of_range_is_raised_at_the_next_read_and_forgotten(device):
    x = burn.arange(4, device=device)
    taken = burn.take(x, burn.asarray([1, 9], device=device))
    with pytest.raises(OutOfRangeError, match=r"index 9 .* length 4"):
        taken.tolist()
    assert x.tolist() == [0, 1, 2, 3]
    burn.take(x, burn.asarray([-5], device=device))
    with pytest.raises(IndexError, match="index -5"):
        device.sync()
    device.sync()
    indices = burn.asarray([[1, 3], [0, -5]], device=device)
    taken = burn.gather_nd(burn.zeros((2, 4), device=device), indices)
    with pytest.raises(OutOfRangeError, match=r"gather_nd.* index -5 .* length 4"):
        taken.tolist()


@pytest.fixture
def fast_thread_switching():
    """Switch threads as often as Python can, so that missing locks show soon."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("fast_thread_switching")
def test_threads_share_a_device(device):
    wrong = []

    def work(seed):
        values = np.random.default_rng(seed).normal(size=(17, 23))
        x = burn.asarray(values, device=device)
        for _ in range(20):
            found = (burn.exp(x) @ x.T).sum(axis=0).numpy()
            if not np.allclose(found, (np.exp(values) @ values.T).sum(axis=0)):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.exhaustive
def test_two_processes_write_one_cache(tmp_path):
    variables = {"BURN_CACHE": str(tmp_path)}
    first, second = run(PROGRAM, **variables), run(PROGRAM, **variables)
    result = output(first)
    assert result == output(second)
    stored = sorted(tmp_path.glob("opencl/*.bin"))
    assert stored
    assert not list(tmp_path.glob("opencl/*.part"))
    stored[0].write_bytes(stored[0].read_bytes()[:100])
    assert output(run(PROGRAM, **variables)) == result


def test_cached_binaries_are_not_compiled_again(launcher, tmp_path, monkeypatch):
    monkeypatch.setenv("BURN_CACHE", str(tmp_path))
    built = []

    class Counting(SimpleNamespace):
        is_cpu, has_fp64 = launcher.runtime.is_cpu, launcher.runtime.has_fp64
        binaries_take_long = launcher.runtime.binaries_take_long
        identity = launcher.runtime.identity
        load, binary = launcher.runtime.load, launcher.runtime.binary
        kernel = launcher.runtime.kernel

        def build(self, source):
            built.append(source)
            return launcher.runtime.build(source)

    macros = {"C": "ulong", "KIND": "ulong", "IS_DOUBLE": 0, "WORDS_PER_NUMBER": 1}

    def use():
        programs = Programs(Counting(), DiskCache("opencl"))
        programs.kernel("random_words", "random.c", macros | {"HAS_random_words": 1})
        programs.save()

    use()
    use()
    assert len(built) == 1
    (entry,) = tmp_path.glob("opencl/*.bin")
    whole = entry.read_bytes()
    for number, damaged in enumerate((whole[:100], whole[:-1] + bytes([whole[-1] ^ 1])), 2):
        entry.write_bytes(damaged)
        use()
        use()
        assert len(built) == number


def test_a_check_of_a_device_compiles_few_programs():
    code = (
        "import burn; from burn.cli.device_check import check; device = burn.Device('opencl')\n"
        "print(check(device).passed, len(device.ops.backend.launcher.programs._programs))"
    )
    passed, count = output(run(code)).split()
    assert passed == "True"
    assert int(count) <= 5


def test_binaries_that_take_long_are_written_at_exit_within_a_time_limit_where_any_are_kept(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("BURN_CACHE", str(tmp_path))
    asked = []

    class Slow(SimpleNamespace):
        is_cpu, has_fp64, binaries_take_long = True, False, True
        identity = "slow"
        load = staticmethod(lambda binary: None)
        build = staticmethod(lambda source: source)
        kernel = staticmethod(lambda program, name: name)
        binary = staticmethod(lambda program: asked.append(program) or b"binary")

    programs = Programs(Slow(), DiskCache("opencl"))
    for number in range(3):
        programs.kernel("random_words", "random.c", {"C": "ulong", "NUMBER": number})
    assert not asked
    programs.save(seconds=0.0)
    assert not asked
    programs.save()
    assert len(asked) == len(list(tmp_path.glob("opencl/*.bin"))) == 3
    programs.save()
    assert len(asked) == 3
    monkeypatch.setenv("BURN_CACHE", "0")
    programs = Programs(Slow(), DiskCache("opencl"))
    programs.kernel("random_words", "random.c", {"C": "ulong", "NUMBER": 0})
    programs.save()
    assert len(asked) == 3


def test_weights_after_some_steps_are_those_of_the_cpu(device):
    def train(where):
        tracked = where.autodiff()
        rng = np.random.default_rng(3)
        x = burn.asarray(rng.normal(size=(32, 8)), device=tracked)
        y = burn.asarray(rng.normal(size=(32, 1)), device=tracked)
        weights = [
            burn.asarray(rng.normal(size=shape), device=tracked).require_grad()
            for shape in ((8, 16), (16,), (16, 1))
        ]
        moments = [
            [burn.zeros(weight.shape, dtype=float64, device=tracked)] * 2 for weight in weights
        ]
        for step in range(1, 21):
            hidden = burn.tanh(x @ weights[0] + weights[1])
            gradients = burn.mean(burn.square(hidden @ weights[2] - y)).backward()
            for number, weight in enumerate(weights):
                with burn.no_grad():
                    gradient = weight.grad(gradients)
                    new, *moments[number] = burn.optim.adam_step(
                        weight.detach(), gradient, *moments[number], step=step, learning_rate=0.01
                    )
                weights[number] = new.require_grad()
        return [weight.detach().inner().numpy() for weight in weights]

    for found, expected in zip(train(device), train(burn.Device("cpu")), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_a_buffer_is_what_tensors_are_made_of(device):
    x = burn.ones(3, device=device)
    assert isinstance(x.primitive, Buffer)
    assert burn.Tensor.from_primitive(x.primitive, device=device).tolist() == [1.0] * 3
