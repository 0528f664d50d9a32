"""The programs in examples/ do what they say."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import burn
from burn.nn import functional as F

EXAMPLES = Path(__file__).parent.parent / "examples"

OTHERS = [
    device
    for device in burn.Device.enumerate()
    if device.backend_name not in ("cpu", "pure", "strict")
]
on_each_other_device = pytest.mark.parametrize("device", OTHERS, ids=lambda device: device.name)


@pytest.fixture
def run_digits(run_python, tmp_path):
    """Run the digits example."""

    def run(*arguments, **variables):
        picture = tmp_path / "pictures" / "digits.png"
        return run_python(
            EXAMPLES / "digits.py", "--picture", picture, *arguments, **variables
        ), picture

    return run


@pytest.fixture
def digits(monkeypatch):
    """The digits example as a module."""
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module("digits")


def held_out_accuracy(output):
    return float(re.search(r"^accuracy on the held-out images: (.+)$", output, re.MULTILINE)[1])


@pytest.mark.parametrize(
    ("epochs", "accuracy"),
    [pytest.param((), 0.97, marks=pytest.mark.exhaustive), (("--epochs", "4"), 0.85)],
    ids=["all epochs", "four epochs"],
)
def test_digits_reads_97_of_100_held_out_images_and_draws_a_picture(run_digits, epochs, accuracy):
    result, picture = run_digits("--device", "cpu", *epochs)
    assert result.returncode == 0, result.stderr
    assert held_out_accuracy(result.stdout) >= accuracy
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.exhaustive
@on_each_other_device
def test_digits_reads_as_many_images_on_every_device(run_digits, device):
    accuracies = []
    for name in ("cpu", device.name):
        result, _ = run_digits("--device", name, "--epochs", "20")
        assert result.returncode == 0, result.stderr
        accuracies.append(held_out_accuracy(result.stdout))
    assert abs(accuracies[0] - accuracies[1]) <= 0.005


def weights_after_20_steps(digits, name):
    device = burn.Device(name).autodiff()
    device.seed(1)
    data, _ = digits.load_data(device, "float64")
    network = digits.dense("float64", device)
    optimizer = burn.optim.AdamW(network, 0.003)
    for step in range(20):
        batch = slice(64 * step, 64 * (step + 1))
        noise = burn.random.normal((64, 64), std=0.1, dtype="float64", device=device)
        loss = F.cross_entropy(network(data.images[batch] + noise), data.labels[batch])
        optimizer.step(loss.backward())
    return {path: value.numpy() for path, value in network.state_dict().items()}


@on_each_other_device
def test_training_in_float64_gives_the_same_weights_on_every_device(device, digits):
    if not device.supports_dtype("float64"):
        pytest.skip(f"{device.name} has no float64")
    expected = weights_after_20_steps(digits, "cpu")
    for key, values in weights_after_20_steps(digits, device.name).items():
        np.testing.assert_allclose(values, expected[key], rtol=0, atol=1e-9, err_msg=key)


@pytest.mark.exhaustive
def test_a_convolutional_network_reads_985_of_1000(run_digits):
    result, picture = run_digits("--device", "cpu", "--network", "convolutional")
    assert result.returncode == 0, result.stderr
    assert held_out_accuracy(result.stdout) >= 0.985
    assert picture.exists()


def test_a_convolutional_network_learns_in_one_epoch(digits, monkeypatch, capsys, tmp_path):
    picture = tmp_path / "digits.png"
    options = ["--device=cpu", "--network=convolutional", "--epochs=1", f"--picture={picture}"]
    monkeypatch.setattr(sys, "argv", ["digits.py", *options])
    digits.main()
    assert held_out_accuracy(capsys.readouterr().out) >= 0.85
    assert picture.exists()


@pytest.mark.parametrize(
    ("steps", "loss"), [pytest.param(60, 2.6, marks=pytest.mark.exhaustive), (6, 3.8)]
)
def test_a_transformer_learns_to_spell_and_writes_a_sample(run_python, steps, loss):
    # The whole run goes below 1.8; what 60 steps reach is beyond what single letters tell (2.9).
    result = run_python(
        EXAMPLES / "characters.py", "--device", "cpu", "--steps", steps, "--length", "20"
    )
    assert result.returncode == 0, result.stderr
    assert float(re.search(r"^training loss: (\S+) nats", result.stdout, re.MULTILINE)[1]) < loss
    assert len(result.stdout.partition("In the beginning ")[2].rstrip("\n")) >= 15


@pytest.mark.exhaustive
def test_digits_repeats_itself_for_one_seed_and_dtype(run_digits):
    arguments = ("--device", "cpu", "--epochs", "1", "--dtype", "float64", "--seed", "3")
    first, _ = run_digits(*arguments)
    second, _ = run_digits(*arguments)
    assert 0.5 < held_out_accuracy(first.stdout) == held_out_accuracy(second.stdout)


each_program = pytest.mark.parametrize(
    "program", [pytest.param("digits.py", marks=pytest.mark.exhaustive), "characters.py"]
)


@each_program
def test_without_a_backend_a_program_names_the_package_to_install(run_python, program):
    result = run_python(EXAMPLES / program, BURN_PLUGINS="none")
    assert result.returncode == 1
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert "burn-cpu" in line


@each_program
def test_on_a_device_that_is_not_there_a_program_says_so_on_one_line(run_python, program):
    result = run_python(EXAMPLES / program, "--device", "cpu:9")
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert "there is no device 'cpu:9'" in line
