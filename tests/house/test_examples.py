"""The programs in examples/ do what they say."""

import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from safetensors.numpy import load_file

import burn
from burn.nn import functional as F

EXAMPLES = Path(__file__).parents[2] / "examples"

OTHERS = [
    device
    for device in burn.Device.enumerate()
    if device.backend_name not in ("cpu", "pure", "strict")
]
on_each_other_device = pytest.mark.parametrize("device", OTHERS, ids=lambda device: device.name)

TEXT = "In the beginning God created the heaven and the earth.\n" * 40

SMALL = {
    "digits": ("digits.py", "--epochs=1"),
    "digits, convolutional": ("digits.py", "--epochs=1", "--network=convolutional"),
    "characters": ("characters.py", "--steps=4", "--length=5", "--text=text.txt"),
    "characters, LSTM": (
        *("characters.py", "--network=lstm"),
        *("--steps=4", "--length=5", "--text=text.txt"),
    ),
    "vae": ("vae.py", "--epochs=1"),
    "resnet": ("resnet.py", "--epochs=1", "--depth=8", "--images=256", "--workers=0"),
    "finetune, frozen": ("finetune.py", "--epochs=1", "--method=frozen"),
    "finetune, LoRA": ("finetune.py", "--epochs=1", "--method=lora"),
}
"""A few steps of each program."""

CONSTANTS = {
    "characters.py": {"CONTEXT": 16},
    "resnet.py": {"HELD_OUT": 32, "WIDTHS": (4, 8, 16)},
}
"""What is smaller in these forms, and has no option."""


@pytest.fixture
def call_main(monkeypatch, capsys, tmp_path):
    """Call the function main of a program in the folder of the test: what it prints."""
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text(TEXT, encoding="utf-8")

    def call(program, *options):
        module = importlib.import_module(program.removesuffix(".py"))
        monkeypatch.setattr(sys, "argv", [program, *options])
        module.main()
        return capsys.readouterr().out

    return call


@pytest.fixture
def digits(monkeypatch):
    """The digits example as a module."""
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module("digits")


def held_out_accuracy(output):
    found = re.search(r"^accuracy on the held-out \w+: (.+)$", output, re.MULTILINE)
    return float(found[1])


def epochs_in(folder):
    """What the log in a folder has of each epoch: all numbers but times."""
    (path,) = folder.rglob("log.jsonl")
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    others = ("event", "seconds", "examples_per_second")
    return [
        {name: value for name, value in line.items() if name not in others}
        for line in lines
        if line["event"] == "epoch"
    ]


def shrink(program, monkeypatch):
    """Give a program the constants of its small form."""
    module = importlib.import_module(program.removesuffix(".py"))
    for name, value in CONSTANTS.get(program, {}).items():
        monkeypatch.setattr(module, name, value)


# A small form of each program.


@pytest.mark.parametrize("form", SMALL)
def test_each_program_trains_alike_on_every_device(form, call_main, monkeypatch, everything):
    program, *options = SMALL[form]
    shrink(program, monkeypatch)
    runs = {}
    turn = list(SMALL).index(form) % max(len(OTHERS), 1)
    others = OTHERS if everything else OTHERS[turn : turn + 1]
    for name in ("cpu", *(device.name for device in others)):
        folder = Path("out", name.replace("/", "-"))
        printed = call_main(program, f"--device={name}", f"--out={folder}", *options)
        assert re.search(rf"^\d+ .*, on {burn.Device(name)}$", printed.splitlines()[0])
        assert list(folder.rglob("network.safetensors"))
        runs[name] = epochs_in(folder)
        assert runs[name] == [pytest.approx(epoch, rel=1e-3) for epoch in runs["cpu"]]
        monkeypatch.setattr(Figure, "savefig", lambda *_, **__: None)  # one drawing is enough


@on_each_other_device
def test_training_in_float64_gives_the_same_weights_on_every_device(device, digits):
    if not device.supports_dtype("float64"):
        pytest.skip(f"{device.name} has no float64")
    expected = weights_after_20_steps(digits, "cpu")
    for key, values in weights_after_20_steps(digits, device.name).items():
        np.testing.assert_allclose(values, expected[key], rtol=0, atol=1e-9, err_msg=key)


def weights_after_20_steps(digits, name):
    device = burn.Device(name).autodiff()
    device.seed(1)
    (images, labels), _ = digits.load_data(device, "float64")
    network = digits.dense("float64", device)
    optimizer = burn.optim.AdamW(network, 0.003)
    for step in range(20):
        batch = slice(64 * step, 64 * (step + 1))
        noise = burn.random.normal((64, 64), std=0.1, dtype="float64", device=device)
        loss = F.cross_entropy(network(images[batch] + noise), labels[batch])
        optimizer.step(loss.backward())
    return {path: value.numpy() for path, value in network.state_dict().items()}


def test_digits_reads_85_of_100_held_out_images_after_a_few_epochs(call_main, everything):
    for epochs, network in ((4, "dense"), (1, "convolutional"))[: 2 if everything else 1]:
        options = ("--device=cpu", f"--epochs={epochs}", f"--network={network}")
        assert held_out_accuracy(call_main("digits.py", *options)) >= 0.85
        assert Path("out", "digits.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.exhaustive
def test_worker_processes_paint_the_pictures_that_the_program_would(call_main, monkeypatch):
    shrink("resnet.py", monkeypatch)
    runs = []
    for workers in (0, 2):
        folder = Path(f"workers-{workers}")
        options = ("--device=cpu", "--epochs=1", "--depth=8", "--images=256")
        call_main("resnet.py", *options, f"--workers={workers}", f"--out={folder}")
        runs.append(epochs_in(folder))
    assert runs[0] == runs[1]


def test_a_text_goes_on_where_the_cache_is_full(call_main):
    options = ("--device=cpu", "--text=text.txt", "--steps=1", "--prompt=In the ")
    printed = call_main("characters.py", *options, "--length=150")
    assert len(printed.partition("In the ")[2].removesuffix("\n")) == 150


def test_a_finetuned_network_reads_turned_digits_and_loads_from_a_small_file(call_main):
    _finetuned(call_main, "--epochs=4", gain=0.3)


@pytest.mark.exhaustive
def test_a_finetuned_network_reads_96_of_100_turned_digits(call_main):
    turned = _finetuned(call_main, gain=0.5)
    assert turned["after"] >= 0.96
    assert turned["merged, in 4 bits"] >= 0.95


def _finetuned(call_main, *options, gain):
    printed = call_main("finetune.py", "--device=cpu", *options)
    found = re.findall(r"^(.+): (\S+) upright, (\S+) on their side$", printed, re.MULTILINE)
    turned = {title: float(share) for title, _, share in found}
    assert turned["after"] >= turned["before"] + gain
    assert turned["loaded"] == turned["after"]
    assert turned["merged"] == pytest.approx(turned["after"], abs=0.005)
    assert turned["merged, in 4 bits"] >= turned["merged"] - 0.03
    whole, trained = (
        Path("out", "finetune", name).stat().st_size
        for name in ("upright.safetensors", "lora/trained.safetensors")
    )
    assert trained < whole / 4
    return turned


# To the end.


@pytest.mark.exhaustive
@pytest.mark.parametrize(("network", "share"), [("dense", 0.97), ("convolutional", 0.985)])
def test_digits_reads_97_of_100_held_out_images(network, share, call_main):
    printed = call_main("digits.py", "--device=cpu", f"--network={network}")
    assert held_out_accuracy(printed) >= share


@pytest.mark.exhaustive
@on_each_other_device
def test_digits_reads_as_many_images_on_every_device(device, call_main):
    shares = [
        held_out_accuracy(call_main("digits.py", f"--device={name}", "--epochs=20"))
        for name in ("cpu", device.name)
    ]
    assert abs(shares[0] - shares[1]) <= 0.005


@pytest.mark.exhaustive
@pytest.mark.parametrize("network", ["transformer", "lstm"])
def test_a_network_writes_words_of_the_book(network, call_main):
    # Perplexity 4 is 2 bits a character; a table of single letters has 18.
    printed = call_main("characters.py", "--device=cpu", f"--network={network}")
    assert float(re.search(r"^held-out perplexity: (.+)$", printed, re.MULTILINE)[1]) < 4.0
    book = set((EXAMPLES / "data" / "genesis.txt").read_text("utf-8").lower().split())
    written = printed.partition("In the beginning ")[2].lower().split()
    assert sum(word in book for word in written) > 0.5 * len(written)


@pytest.mark.exhaustive
def test_an_autoencoder_needs_24_nats_for_a_held_out_image(call_main):
    printed = call_main("vae.py", "--device=cpu")
    assert (
        float(re.search(r"^loss on the held-out images: (.+) nats", printed, re.MULTILINE)[1])
        < 24.3
    )
    assert Path("out", "vae", "digits.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.exhaustive
def test_a_residual_network_names_95_of_100_shapes(call_main):
    assert held_out_accuracy(call_main("resnet.py", "--device=cpu")) >= 0.95


@pytest.mark.exhaustive
def test_a_network_with_its_last_layer_trained_reads_80_of_100_turned_digits(call_main):
    printed = call_main("finetune.py", "--device=cpu", "--method=frozen")
    assert (
        float(re.search(r"^after: .+ upright, (.+) on their side$", printed, re.MULTILINE)[1])
        >= 0.8
    )


# Stopped and started again.


LONGER = {
    "digits": ("digits.py", "--epochs=60"),
    "characters": ("characters.py", "--steps=200", "--text=text.txt"),
    "characters, LSTM": ("characters.py", "--network=lstm", "--steps=200", "--text=text.txt"),
    "vae": ("vae.py", "--epochs=60"),
    "resnet": ("resnet.py", "--epochs=6", "--depth=8", "--images=256"),
    "finetune": ("finetune.py", "--epochs=60"),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", LONGER)
def test_a_program_that_is_killed_goes_on_and_ends_with_the_same_weights(form, tmp_path):
    program, *options = LONGER[form]
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    command = [sys.executable, EXAMPLES / program, "--device=cpu", *options]
    variables = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

    def run(out):
        return subprocess.Popen(
            [*command, f"--out={out}"],
            cwd=tmp_path,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
        )

    with run("whole") as whole:
        expected, _ = whole.communicate(timeout=300)
    assert whole.returncode == 0
    killed = 0
    for _ in range(3):
        with run("killed") as process:
            _wait_for_checkpoint(tmp_path / "killed", process)
            process.kill()
        killed += process.returncode == -signal.SIGKILL
    assert killed
    with run("killed") as process:
        found, _ = process.communicate(timeout=300)
    assert found.replace("killed", "whole") == expected
    for path in (tmp_path / "whole").rglob("*.safetensors"):
        weights = load_file(tmp_path / "killed" / path.relative_to(tmp_path / "whole"))
        for name, value in load_file(path).items():
            np.testing.assert_array_equal(weights[name], value, strict=True)
    assert epochs_in(tmp_path / "killed") == epochs_in(tmp_path / "whole")


def _wait_for_checkpoint(folder, process):
    """Until a program has saved another checkpoint, or has ended."""
    before = {path.name for path in folder.rglob("step-*")}
    end = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < end:
        if {path.name for path in folder.rglob("step-*")} - before:
            return
        time.sleep(0.01)


def test_a_program_that_is_done_only_reports_when_it_is_started_again(call_main):
    options = ("vae.py", "--device=cpu", "--epochs=1")
    first = call_main(*options)
    log = Path("out", "vae", "log.jsonl").read_bytes()
    assert call_main(*options) == first
    assert Path("out", "vae", "log.jsonl").read_bytes() == log


# Errors.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("digits.py", "--epochs=0"), "steps is 0"),
        (("vae.py", "--epochs=0"), "epochs is 0"),
        (("vae.py", "--out=text.txt"), "text.txt"),
        (("resnet.py", "--images=10"), "steps is 0"),
        (("characters.py", "--text=none.txt"), "none.txt"),
        (("characters.py", "--top-k=0"), "--top-k"),
        (("finetune.py", "--method=frozen", "--layers=0"), "--layers"),
        (("finetune.py", "--weights=none"), "none"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_an_argument_that_cannot_be_is_an_error_that_names_it(
    arguments, message, call_main, capsys
):
    with pytest.raises((burn.BurnError, OSError, SystemExit)) as caught:
        call_main(*arguments)
    assert message in f"{caught.value} {capsys.readouterr().err}"


each_program = pytest.mark.parametrize(
    "program",
    [
        "characters.py",
        *(
            pytest.param(name, marks=pytest.mark.exhaustive)
            for name in ("digits.py", "finetune.py", "resnet.py", "vae.py")
        ),
    ],
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
