"""What a user's program sets in torch changes nothing here, and nothing here changes it."""

import contextlib
import dataclasses
import threading
import warnings

import numpy as np
import pytest
import torch

import burn
from burn.nn import functional as F
from burn.plugin_api import registry
from burn_torch.settings import Precision, in_any_order

DEVICE = burn.Device("torch/cpu")


@contextlib.contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def deterministic(*, warn_only):
    torch.use_deterministic_algorithms(mode=True, warn_only=warn_only)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(mode=False)


@contextlib.contextmanager
def threads(count):
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def precision(name):
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision("highest")


SETTINGS = {
    "default dtype float64": lambda: default_dtype(torch.float64),
    "default dtype float16": lambda: default_dtype(torch.float16),
    "default device meta": lambda: torch.device("meta"),
    "no_grad": torch.no_grad,
    "enable_grad": torch.enable_grad,
    "inference mode": torch.inference_mode,
    "deterministic algorithms": lambda: deterministic(warn_only=False),
    "deterministic algorithms that warn": lambda: deterministic(warn_only=True),
    "one thread": lambda: threads(1),
    "three threads": lambda: threads(3),
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "products of medium precision": lambda: precision("medium"),
    "anomaly detection": lambda: torch.autograd.set_detect_anomaly(True, check_nan=False),
}


def results():
    """Results of every kind of op, by name, of the same operands each time."""
    device = DEVICE.autodiff()
    device.seed(3)
    generator = np.random.default_rng(1)
    values = generator.normal(size=(6, 8)).astype(np.float32)
    x = burn.asarray(values, device=device).require_grad()
    whole = burn.asarray(generator.integers(-9, 9, (6, 8)), device=device)
    indices = burn.asarray([3, -1, 0, 3], device=device)
    images = burn.asarray(generator.normal(size=(2, 3, 6, 6)).astype(np.float32), device=device)
    kernel = burn.asarray(generator.normal(size=(4, 3, 3, 3)).astype(np.float32), device=device)
    hidden = F.relu(x @ x.T) + F.softmax(x[:, :6], axis=1) * 0.1 + 1
    pooled = F.max_pool2d(F.conv2d(images, kernel, padding=1), 2)
    states, _ = F.rnn(burn.expand_dims(x, axis=1), x[:1, :6], x, x[:, :6])
    loss = burn.mean(hidden) + burn.sum(burn.take(x, indices, axis=0) ** 2) + burn.sum(states)
    found = {
        "zeros": burn.zeros((2, 3), device=device),
        "full": burn.full((2,), 0.1, device=device),
        "full of integers": burn.full((2,), 7, device=device),
        "arange": burn.arange(5, device=device),
        "linspace": burn.linspace(0.0, 1.0, 5, device=device),
        "eye": burn.eye(3, k=1, device=device),
        "hidden": hidden,
        "where": burn.where(x > 0, x, 0.0),
        "divided": whole / 3,
        "mean of bools": burn.mean((whole > 0).astype("float32")),
        "cumulative": burn.cumulative_sum(whole, axis=0),
        "pooled": pooled,
        "attention": F.attention(images, images, images),
        "states": states,
        "sorted": burn.sort(whole, axis=1),
        "uniform": burn.random.uniform((5,), device=device),
        "normal": burn.random.normal((5,), device=device),
        "permutation": burn.random.permutation(9, device=device),
        "spectrum": burn.fft.rfft(images[0, 0].inner()),
        "inverse": burn.linalg.inv(hidden.inner() + burn.eye(6, device=DEVICE) * 9),
        "assigned": burn.concat([whole[:, :2], whole[:, ::-2]], axis=1),
        "loss": loss,
        "gradient": x.grad(loss.backward()),
    }
    return {name: tensor.detach().numpy() for name, tensor in found.items()}


@pytest.fixture(scope="module")
def expected():
    return results()


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_of_torch_changes_no_result(setting, expected):
    with SETTINGS[setting]():
        found = results()
    for name, values in expected.items():
        assert found[name].dtype == values.dtype, name
        np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("setting", SETTINGS)
def test_tensors_made_under_a_setting_are_of_use_without_it(setting):
    with SETTINGS[setting]():
        x = burn.asarray([1.0, 2.0, 3.0], device=DEVICE.autodiff()).require_grad()
        y = burn.exp(x)
        drawn = burn.random.uniform((4,), device=DEVICE)
    y = (y * y).sum()
    np.testing.assert_allclose(x.grad(y.backward()).numpy(), 2 * np.exp([2.0, 4.0, 6.0]), rtol=1e-6)
    drawn[0] = 1.0
    assert drawn.numpy()[0] == 1.0


def test_nothing_is_recorded_of_what_is_computed_here():
    x = burn.asarray([1.0, 2.0], device=DEVICE.autodiff()).require_grad()
    y = burn.tanh(x * 2.0).sum()
    x.grad(y.backward())
    for tensor in (x, y):
        primitive = tensor.inner().primitive
        assert primitive.grad_fn is None
        assert not primitive.requires_grad


def test_the_users_random_numbers_are_left_alone():
    torch.manual_seed(11)
    state = torch.get_rng_state().clone()
    DEVICE.seed(5)
    burn.random.normal((100_000,), device=DEVICE)
    burn.random.permutation(100, device=DEVICE)
    burn.random.integers((50,), 0, 9, device=DEVICE)
    assert torch.equal(torch.get_rng_state(), state)
    first = burn.random.uniform((8,), device=DEVICE).tolist()
    torch.manual_seed(12)
    DEVICE.seed(5)
    burn.random.normal((100_000,), device=DEVICE)
    burn.random.permutation(100, device=DEVICE)
    burn.random.integers((50,), 0, 9, device=DEVICE)
    assert burn.random.uniform((8,), device=DEVICE).tolist() == first


def test_settings_of_the_user_are_as_they_were():
    with precision("high"), deterministic(warn_only=True), threads(2):
        results()
        assert torch.get_float32_matmul_precision() == "high"
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled()
        assert torch.get_num_threads() == 2
    assert torch.is_grad_enabled()
    assert torch.get_default_dtype() is torch.float32


def test_a_program_of_torch_trains_while_burn_computes():
    errors = []

    def train():
        try:
            weight = torch.ones(8, 8, requires_grad=True)
            for _ in range(30):
                loss = (torch.tanh(weight @ weight) ** 2).mean()
                (gradient,) = torch.autograd.grad(loss, weight)
                with torch.no_grad():
                    weight -= gradient
            assert weight.requires_grad
        except BaseException as error:  # noqa: BLE001 — asserted below
            errors.append(error)

    thread = threading.Thread(target=train)
    thread.start()
    first = results()
    while thread.is_alive():
        second = results()
        np.testing.assert_allclose(second["gradient"], first["gradient"], rtol=1e-5)
    thread.join()
    assert not errors


@pytest.mark.parametrize("warn_only", [False, True])
def test_products_of_cublas_run_where_torch_refuses_them_as_not_deterministic(warn_only):
    precision = Precision("cuda", "matmul")
    assert not precision.is_reduced()
    with deterministic(warn_only=warn_only):
        assert precision.is_reduced()
        with precision.exact():
            assert not torch.are_deterministic_algorithms_enabled()
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled() is warn_only
    assert not precision.is_reduced()


class UnorderedBackend(type(DEVICE.backend)):
    """Its `exp` calls a function that torch refuses under deterministic algorithms."""

    calls = 0

    @in_any_order
    def exp(self, x):
        type(self).calls += 1
        return x.clone().put_(torch.tensor([0]), torch.tensor([7.0]))


@pytest.mark.parametrize("warn_only", [False, True])
def test_an_op_whose_kernel_torch_refuses_as_not_deterministic_runs_once(warn_only):
    torch_spec = registry.entry("torch").spec
    spec = dataclasses.replace(torch_spec, name="unordered", load=UnorderedBackend, libraries=())
    UnorderedBackend.calls = 0
    with burn.registered(spec), deterministic(warn_only=warn_only), warnings.catch_warnings():
        warnings.simplefilter("error")
        x = burn.asarray([1.0, 2.0], device="unordered/cpu")
        leaf = burn.asarray([1.0, 2.0], device=x.device.autodiff()).require_grad()
        assert burn.exp(x).tolist() == [7.0, 2.0]
        assert burn.exp(leaf).tolist() == [7.0, 2.0]
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled() is warn_only
    assert UnorderedBackend.calls == 2
