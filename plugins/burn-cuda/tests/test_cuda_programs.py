"""Compiled programs, with a host compiler in place of the GPU and a list in place of its graphs."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import burn
from burn import nn
from burn.nn import functional as F
from burn.plugin_api import REGISTRY, BackendSpec, DeviceId, DeviceInfo, GraphIr, resolve
from burn.testing import SAMPLES, Compiled, Subject, check_sample, load_samples
from burn_cuda.backend import CudaBackend
from burn_cuda.small_products import TILES, launch_of, suits

sys.path.insert(0, str(Path(__file__).parent / "emulation"))

import emulated

pytestmark = pytest.mark.skipif(
    emulated.COMPILER is None, reason="there is no C++ compiler to emulate a GPU with"
)

load_samples()
IN_GATE = frozenset(
    {
        *("add", "adam_step", "concat", "cross_entropy", "gather", "layer_norm", "linear"),
        *("matmul", "max_pool_grad", "random_uniform", "scan", "softmax_grad", "sum"),
    }
)
SPREAD = 11
"""Every so many-th sample of an op is tried: each kernel takes the compiler a moment."""


@pytest.fixture(autouse=True)
def captures_of_few_launches(monkeypatch):
    monkeypatch.setattr("burn.compiler.replay._MIN_LAUNCHES", 1)


@pytest.fixture(scope="module")
def subject():
    return Subject(Compiled(CudaBackend(emulated.Runtime, lambda: 2)), DeviceId(0, 1))


@pytest.fixture(scope="module", params=["emulated", "cuda"])
def gpu(request):
    """A device, and the runtime of its backend: an emulated one, and a GPU if there is one."""
    if request.param == "cuda":
        if not burn.Device.enumerate("cuda"):
            pytest.skip("there is no NVIDIA GPU, or no CuPy for it")
        device = burn.Device("cuda")
        yield device, device.ops.backend.runtime
        return
    backend = CudaBackend(emulated.Runtime, lambda: 1)
    spec = BackendSpec(
        "emulated",
        load=lambda: backend,
        probe=lambda: [DeviceInfo("gpu", 0, "a host compiler")],
        device_types=("gpu",),
    )
    with burn.registered(spec):
        yield burn.Device("emulated"), backend.runtime


@pytest.fixture
def captures(gpu, monkeypatch):
    """How many times a runtime has captured launches."""
    found = []
    capture = gpu[1].capture

    def counted(run):
        launch, result = capture(run)
        found.append(launch)
        return launch, result

    monkeypatch.setattr(gpu[1], "capture", counted)
    return found


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in IN_GATE else pytest.mark.exhaustive)
        for name in sorted(set(REGISTRY) & set(SAMPLES))
    ],
)
def test_a_compiled_op_gives_what_its_reference_gives(subject, name):
    samples = SAMPLES[name]
    for number, sample in enumerate(samples.samples):
        available = subject.dtypes(samples, sample)
        if number % SPREAD == 0 and available:
            dtype = available[number // SPREAD % len(available)]
            check_sample(subject, samples, sample, dtype)


class Training:
    """A model with an optimizer, and its steps on new data."""

    def __init__(self, device, *layers, compiles):
        burn.zeros(1).device.seed(5)  # parameters are made on the default device
        self.device = device
        self.data = np.random.default_rng(0)
        self.model = nn.Sequential(
            nn.Linear(12, 16), nn.ReLU(), *[make() for make in layers], nn.Linear(16, 5)
        )
        self.model = self.model.to(device.autodiff())
        self.rates = iter(np.linspace(0.1, 0.01, 50).tolist())
        self.optimizer = burn.optim.Adam(self.model, learning_rate=lambda _: next(self.rates))
        self.step = burn.compile(self.eager_step) if compiles else self.eager_step

    def eager_step(self, x, y):
        loss = F.cross_entropy(self.model(x), y)
        self.optimizer.step(loss.backward())
        return loss.detach()

    def losses(self, steps):
        self.device.seed(6)
        found = []
        for _ in range(steps):
            x = burn.asarray(self.data.normal(size=(8, 12)).astype(np.float32), device=self.device)
            y = burn.asarray(self.data.integers(0, 5, 8), device=self.device)
            found.append(self.step(x, y))
        return [item.item() for item in found]


@pytest.mark.parametrize(
    "layers", [[], [lambda: nn.Dropout(0.4)], [lambda: nn.LayerNorm(16), nn.GELU]]
)
def test_steps_of_training_that_are_captured_are_the_eager_steps(gpu, captures, layers):
    device, _ = gpu
    eager, compiled = (Training(device, *layers, compiles=compiles) for compiles in (False, True))
    assert compiled.losses(8) == pytest.approx(eager.losses(8), rel=1e-5)
    assert "captured and launched at once" in compiled.step.explain()
    assert 1 <= len(captures) <= 3
    for own, other in zip(compiled.model.parameters(), eager.model.parameters(), strict=True):
        np.testing.assert_allclose(own.detach().numpy(), other.detach().numpy(), atol=1e-5)


def test_parameters_and_moments_stay_where_they_are(gpu, captures):
    device, runtime = gpu
    training = Training(device, compiles=True)
    training.losses(4)
    parameters = list(training.model.parameters())
    addresses = [runtime.address(parameter.detach().primitive) for parameter in parameters]
    before = len(captures)
    training.losses(4)
    assert [runtime.address(parameter.detach().primitive) for parameter in parameters] == addresses
    assert len(captures) == before
    assert "2 inputs are copied" in training.step.explain()  # the data


def test_an_index_out_of_range_is_reported_by_a_captured_program(gpu):
    device, _ = gpu
    table = burn.arange(12, dtype="float32", device=device).reshape((4, 3))

    @burn.compile
    def rows(indices):
        return F.embedding(table, indices) * 2.0

    for _ in range(3):
        assert rows(burn.asarray([1, 3], device=device)).sum().item() == 84.0
    call = r"^embedding\(float32\[4, 3\], int64\[2\]\) at .*test_cuda_programs.py:\d+: index 9 is"
    with pytest.raises(burn.OutOfRangeError, match=call):
        rows(burn.asarray([1, 9], device=device)).numpy()
    assert rows(burn.asarray([1, 3], device=device)).sum().item() == 84.0


def test_a_program_with_a_step_on_the_host_is_not_captured(gpu, captures):
    device, _ = gpu

    @burn.compile
    def solved(x):
        return burn.linalg.eigh(x)[0] * 2.0

    x = burn.asarray([[2.0, 0.0], [0.0, 3.0]], device=device)
    for _ in range(4):
        np.testing.assert_allclose(solved(x).numpy(), [4.0, 6.0], rtol=1e-6)
    assert not captures
    assert "one by one" in solved.explain()


def test_random_numbers_of_a_captured_program_are_those_of_the_eager_one(gpu):
    device, _ = gpu

    def draw():
        return (
            burn.random.uniform((5,), device=device),
            burn.random.normal((4,), device=device) * 3.0,
            burn.random.integers((6,), 3, 90, device=device),
        )

    device.seed(11)
    expected = [[tensor.numpy() for tensor in draw()] for _ in range(5)]
    device.seed(11)
    compiled = burn.compile(draw)
    for wanted in expected:
        for tensor, values in zip(compiled(), wanted, strict=True):
            np.testing.assert_array_equal(tensor.numpy(), values)
    assert "captured and launched at once" in compiled.explain()


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_a_loop_in_a_captured_program_runs_its_body_anew(gpu, noise):
    device, _ = gpu

    def walk(start, steps):
        def move(position, step):
            position = position * 0.5 + step
            if noise:
                position = position + burn.random.uniform((3,), device=device)
            return position, position * 2.0

        return burn.scan(move, start, steps)

    compiled, found, expected = burn.compile(walk), [], []
    for function, results in ((compiled, found), (walk, expected)):
        device.seed(3)
        for number in range(4):
            start = burn.full(3, float(number), device=device)
            steps = burn.arange(12, dtype="float32", device=device).reshape((4, 3))
            results.append(function(start, steps))
    for ours, theirs in zip(found, expected, strict=True):
        for tensor, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(tensor.numpy(), other.numpy(), rtol=1e-6)


def test_results_that_are_kept_keep_their_values(gpu):
    device, _ = gpu
    compiled = burn.compile(lambda x: (burn.exp(x) + 1.0, x.sum()))
    kept = []
    for number in range(6):
        x = burn.full((200, 100), float(number), device=device)
        kept.append(compiled(x))
    for number, (large, small) in enumerate(kept):
        np.testing.assert_allclose(large.numpy(), np.exp(number) + 1.0, rtol=1e-5)
        assert small.item() == number * 20000.0


CHAIN = """input %0: float32[7]
input %1: float32[7]
%2: float32[7] = multiply(%0, %1)
%3: float32[7] = add(%2, %1)
output %3"""


def test_a_relaxed_program_alone_may_contract():
    backend = CudaBackend(emulated.Runtime, lambda: 1)
    table = resolve(backend, DeviceId(0, 0))
    contracts = table.backend.runtime.contracts
    for relaxed in (False, True):
        contracts.clear()
        graph = replace(GraphIr.from_text(CHAIN), relaxed=relaxed)
        (source,) = backend.compile(graph, table.device).kernels.values()
        assert contracts[source] is relaxed
    contracts.clear()
    x, y = (table.full(shape=(7,), fill_value=number, dtype=burn.float32) for number in (1.0, 2.0))
    table.lerp(x, y, 0.375)
    assert False in contracts.values()


def test_operands_that_are_not_dense_or_not_aligned_are_copied(gpu):
    device, _ = gpu
    whole = burn.arange(41, dtype="float32", device=device)
    compiled = burn.compile(lambda x: burn.sqrt(x) + 1.0)
    for x in (whole[1:], whole[::2], whole[:40].reshape((5, 8)).T):
        for _ in range(3):
            np.testing.assert_allclose(compiled(x).numpy(), np.sqrt(x.numpy()) + 1.0, rtol=1e-6)


def test_the_numbers_of_a_run_and_its_copies_may_be_more_than_one_launch_brings(gpu):
    device, _ = gpu
    count = 400
    xs = [burn.full(3, float(number), device=device) for number in range(count)]
    compiled = burn.compile(lambda *xs: [x + 1.0 for x in xs])
    for start in range(3):
        xs = [burn.full(3, float(start + number), device=device) for number in range(count)]
        found = [tensor.numpy()[0] for tensor in compiled(*xs)]
        assert found == [start + number + 1.0 for number in range(count)]


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("shape", [(20, 40, 52), (37, 10, 129), (5, 3, 7)])
def test_a_small_product_is_the_sum_of_what_its_warps_compute(tile, transposed, shape):
    rows, columns, terms = shape
    values = np.random.default_rng(0)
    a = values.normal(size=(rows, terms)).astype(np.float32)
    b = values.normal(size=(terms, columns)).astype(np.float32)
    first = np.ascontiguousarray(a.T if transposed[0] else a)
    second = np.ascontiguousarray(b.T if transposed[1] else b)
    out = np.full((rows, columns), np.nan, np.float32)
    leading = first.shape[1], second.shape[1]
    addresses = tuple(item.ctypes.data for item in (first, second, out))
    runtime = emulated.Runtime(0)
    launch_of(runtime.compile, tile, shape, transposed, leading, addresses)
    np.testing.assert_allclose(out, a @ b, rtol=1e-4, atol=1e-5)


def test_large_products_are_left_to_the_library():
    assert suits((128, 512, 784))
    assert not suits((4096, 512, 64))
    assert not suits((512, 512, 4096))
