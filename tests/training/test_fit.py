"""`burn.train.fit`: steps, epochs, values, early stops, logs, curves, and what ends a run."""

import contextlib
import json
import math
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import burn
from burn import nn
from burn.cli.inventory import take
from burn.data import DataLoader
from burn.errors import (
    ArgumentError,
    ExecutionError,
    OperandTypeError,
    ShapeError,
    StoreError,
    WorkerError,
)
from burn.store import Checkpoints
from burn.tensor.transaction import Transaction
from burn.train import Accuracy, EarlyStopping, History, Mean, fit
from fit_program import run, without_times

pytestmark = pytest.mark.usefixtures("default_signals")

PROGRAM = Path(__file__).parents[1] / "shared" / "fit_program.py"

DEVICES = [
    device.name for device in take().devices if device.backend_name not in ("pure", "strict")
]


class Numbers:
    """A loader of the numbers from 1 on, which knows its position."""

    def __init__(self, count, *, knows_length=True):
        self.count, self.position = count, 0
        if knows_length:
            self.__class__ = _Sized

    def __iter__(self):
        while self.position < self.count:
            self.position += 1
            yield self.position
        self.position = 0

    def state_dict(self):
        return {"position": self.position}

    def load_state_dict(self, state):
        self.position = state["position"]


class _Sized(Numbers):
    def __len__(self):
        return self.count


class Sum:
    """A part that adds up what it has seen."""

    def __init__(self):
        self.seen = []

    def __call__(self, number):
        self.seen.append(number)
        return burn.asarray(float(number), device="cpu")

    def state_dict(self):
        return {"seen": self.seen}

    def load_state_dict(self, state):
        self.seen = list(state["seen"])


def quiet(step, loader, **options):
    return fit(step, loader, progress=False, **options)


# Steps, epochs and their values.


def test_each_epoch_goes_through_the_loader_once():
    part = Sum()
    history = quiet(part, [1, 2, 3], epochs=2)
    assert part.seen == [1, 2, 3, 1, 2, 3]
    assert [(record["epoch"], record["step"]) for record in history.records] == [(1, 3), (2, 6)]


def test_steps_may_end_inside_of_an_epoch():
    part = Sum()
    history = quiet(part, Numbers(4), steps=6)
    assert part.seen == [1, 2, 3, 4, 1, 2]
    assert [(record["epoch"], record["step"]) for record in history.records] == [(1, 4), (2, 6)]
    assert history["loss"] == [2.5, 1.5]


def test_steps_may_end_with_an_epoch():
    assert [record["step"] for record in quiet(Sum(), Numbers(4), steps=8).records] == [4, 8]


def test_values_are_means_over_the_steps_of_an_epoch_and_metrics_are_computed():
    mean = Mean()

    def step(number):
        mean.update(float(number), weight=number)
        x = burn.asarray(float(number), device="cpu")
        return {"tensor": x, "number": number, "numpy": np.float32(number), "weighted": mean}

    history = quiet(step, [1, 2, 3, 6], epochs=2)
    assert history["tensor"] == history["number"] == history["numpy"] == [3.0, 3.0]
    assert history["weighted"] == [50 / 12, 50 / 12]


def test_a_metric_need_not_be_updated_in_each_step(tmp_path):
    sometimes, never = Mean(), Mean()

    def step(number):
        if number == 3:
            sometimes.update(float(number))
        return {"sometimes": sometimes, "never": never}

    parts = {"part": Sum()}
    options = {"checkpoints": tmp_path, "parts": parts, "save_every": 1}
    history = quiet(step, Numbers(4), epochs=2, **options)
    assert history["sometimes"] == [3.0, 3.0]
    assert "never" not in history
    with pytest.raises(ArgumentError, match="no update"):
        quiet(nothing, [1], epochs=1, evaluate=lambda: {"never": never})


def test_a_metric_that_each_step_makes_anew_is_an_error():
    def step(number):
        mean = Mean()
        mean.update(float(number))
        return {"mean": mean}

    with pytest.raises(ArgumentError, match=r"another Mean for 'mean' .* make a metric once"):
        quiet(step, [1, 2], epochs=1)


def test_a_loss_may_have_a_graph_and_one_element():
    device = burn.Device("cpu").autodiff()
    x = burn.ones(1, device=device).require_grad()
    assert quiet(lambda k: x * k, [1, 2], epochs=1)["loss"] == [1.5]


def test_a_step_may_return_nothing():
    assert quiet(lambda _: None, [1, 2], epochs=1).records[0]["step"] == 2


def test_means_of_equal_numbers_are_that_number():
    history = quiet(lambda _: {"learning_rate": 0.003}, range(45), epochs=1)
    assert history["learning_rate"] == [0.003]


def test_means_of_many_steps_are_exact():
    values = np.random.default_rng(0).lognormal(0.0, 5.0, 3000)
    history = quiet(lambda value: value, list(values), epochs=1)
    assert history["loss"] == [math.fsum(values) / 3000]


def test_nothing_is_read_after_each_step(monkeypatch):
    reads = []
    execute = Transaction.execute
    monkeypatch.setattr(Transaction, "execute", lambda self: reads.append(1) or execute(self))
    quiet(Sum(), Numbers(400), epochs=1)
    assert len(reads) <= 5


def test_a_compiled_step_is_a_step():
    device = burn.Device("cpu").autodiff()
    net = nn.Linear(2, 1, device=device)
    optimizer = burn.optim.SGD(net, learning_rate=0.1)

    @burn.compile
    def step(x):
        loss = (net(x) ** 2).mean()
        optimizer.step(loss.backward())
        return {"loss": loss}

    losses = quiet(step, [burn.ones((3, 2), device=device)] * 4, epochs=3)["loss"]
    assert losses[2] < losses[0]


@pytest.mark.parametrize("device", DEVICES)
def test_training_reduces_the_loss_on_every_device(device):
    device = burn.Device(device).autodiff()
    x = burn.asarray([[1.0, 2.0], [3.0, -1.0]], dtype="float32", device=device)
    net = nn.Linear(2, 1, device=device)
    optimizer = burn.optim.Adam(net, learning_rate=0.1)
    accuracy = Accuracy()

    def step(x):
        loss = (net(x) ** 2).mean()
        optimizer.step(loss.backward())
        accuracy.update(burn.concat([net(x), -net(x)], axis=1), burn.argmin(x, axis=1))
        return {"loss": loss, "accuracy": accuracy}

    history = quiet(step, [x] * 5, epochs=4)
    assert history["loss"][-1] < history["loss"][0]
    assert 0.0 <= history["accuracy"][0] <= 1.0


# Evaluations and early stops.


def test_the_values_of_an_evaluation_have_a_name_of_their_own():
    seen = []

    def evaluate():
        seen.append(len(part.seen))
        accuracy = Accuracy()
        accuracy.update(burn.asarray([1, 2], device="cpu"), burn.asarray([1, 1], device="cpu"))
        return {"loss": burn.asarray(0.5, device="cpu"), "accuracy": accuracy, "val_x": 3}

    part = Sum()
    history = quiet(part, [1, 2], epochs=2, evaluate=evaluate)
    assert seen == [2, 4]
    assert history["loss"] == [1.5, 1.5]
    assert history["val_loss"] == [0.5, 0.5]
    assert history["accuracy"] == history["val_accuracy"] == [0.5, 0.5]
    assert history["x"] == [3.0, 3.0]


def test_a_run_of_steps_is_evaluated_at_its_end():
    evaluated = []
    quiet(Sum(), Numbers(4), steps=6, evaluate=lambda: evaluated.append(1))
    assert len(evaluated) == 2


def test_long_epochs_are_evaluated_every_so_many_steps(tmp_path):
    log = tmp_path / "log.jsonl"
    history = quiet(
        Sum(), Numbers(10), epochs=2, evaluate=lambda: 0.5, evaluate_every=8, log=log, log_every=99
    )
    assert [(record["epoch"], record["step"]) for record in history.records] == [
        (1, 8),
        (2, 16),
        (2, 20),
    ]
    assert history["loss"] == [4.5, (9 + 10 + 21) / 8, 8.5]
    assert history["val_loss"] == [0.5] * 3
    assert History.load(log).records == history.records
    stop = EarlyStopping("val_loss", patience=2)
    part = Sum()
    history = quiet(part, Numbers(99), epochs=2, evaluate=lambda: 0.5, evaluate_every=8, stop=stop)
    assert len(part.seen) == 24


def test_what_a_run_leaves_does_not_count_in_the_next_one():
    mean, stop = Mean(), EarlyStopping("loss", patience=1)

    def step(number):
        mean.update(float(number))
        if number == bad:
            raise KeyError
        return {"mean": mean}

    for bad in (3, None):
        with pytest.raises(KeyError) if bad else contextlib.nullcontext():
            history = quiet(step, [1, 2, 3], epochs=3, evaluate=lambda: 1.0, stop=stop)
    assert history["mean"] == [2.0, 2.0]
    assert len(quiet(step, [1, 2, 3], epochs=3, evaluate=lambda: 1.0, stop=stop)) == 2


@pytest.mark.parametrize(
    ("options", "values", "ends"),
    [
        ({"patience": 1}, [3, 2, 1, 1], 3),
        ({"patience": 2}, [3, 4, 2, 3, 4, 1], 4),
        ({"patience": 2, "mode": "max"}, [1, 2, 1, 1, 3], 3),
        ({"patience": 1, "min_delta": 0.5}, [3, 2.4, 2, 0], 2),
        ({"patience": 2}, [math.nan, 3, math.nan, math.nan, 1], 3),
        ({"patience": 1}, [math.nan, 1], 0),
        ({"patience": 3}, [math.inf, 3, 2], None),
    ],
)
def test_a_run_ends_when_a_value_does_not_improve(options, values, ends):
    stop = EarlyStopping("value", **options)
    ended = [stop.update(value) for value in values]
    assert (ended.index(True) if True in ended else None) == ends

    stop = EarlyStopping("value", **options)
    found = iter(values)
    history = quiet(
        lambda _: None, [0], epochs=len(values), evaluate=lambda: {"value": next(found)}, stop=stop
    )
    assert len(history) == (len(values) if ends is None else ends + 1)
    copy = EarlyStopping("value", **options)
    copy.load_state_dict(stop.state_dict())
    assert copy.is_over == stop.is_over


def test_the_best_state_is_restored():
    net = nn.Linear(1, 1, bias=False, device="cpu")
    losses = iter([3.0, 1.0, 2.0])

    def step(_):
        net.weight.assign(net.weight * 0 + 10.0 * len(stop_values))
        stop_values.append(0)

    stop_values = []
    stop = EarlyStopping("loss", patience=5, restore=net)
    quiet(step, [0], epochs=3, evaluate=lambda: next(losses), stop=stop)
    assert net.weight.item() == 10.0
    assert stop.best == 1.0


def test_a_name_that_is_not_there_is_an_error_that_lists_those_that_are():
    with pytest.raises(ArgumentError, match=r"no value 'los'.*loss, val_accuracy"):
        quiet(Sum(), [1], epochs=1, evaluate=lambda: {"accuracy": 1.0}, stop=EarlyStopping("los"))
    with pytest.raises(ArgumentError, match="There are: a"):
        History([{"epoch": 1, "step": 1, "a": 2}])["b"]
    with pytest.raises(OperandTypeError, match="by their names"):
        History()[0]


# What is no run.


def nothing(_batch):
    return None


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, ArgumentError, "epochs or steps"),
        ({"epochs": 1, "steps": 1}, ArgumentError, "exactly one"),
        ({"epochs": 0}, ArgumentError, "epochs is 0"),
        ({"epochs": True}, OperandTypeError, "epochs must be an integer"),
        ({"steps": 1.5}, OperandTypeError, "steps must be an integer"),
        ({"epochs": 1, "save_every": 0}, ArgumentError, "save_every is 0"),
        ({"epochs": 1, "evaluate_every": 0}, ArgumentError, "evaluate_every is 0"),
        ({"epochs": 1, "save_every": "epochs"}, OperandTypeError, "save_every must be"),
        ({"epochs": 1, "save_every": 2}, ArgumentError, "there is no checkpoints"),
        ({"epochs": 1, "evaluate_every": 2}, ArgumentError, "there is no evaluate"),
        ({"epochs": 1, "log_every": -1}, ArgumentError, "log_every is -1"),
        ({"epochs": 1, "evaluate": 3}, OperandTypeError, "evaluate is 3"),
        ({"epochs": 1, "stop": "loss"}, OperandTypeError, "EarlyStopping"),
        ({"epochs": 1, "stop": EarlyStopping}, OperandTypeError, "EarlyStopping"),
        ({"epochs": 1, "checkpoints": "x"}, ArgumentError, "would hold no model"),
        ({"epochs": 1, "checkpoints": "x", "parts": {"run": Sum()}}, ArgumentError, "'run'"),
        ({"epochs": 1, "checkpoints": "x", "parts": {"x": 3}}, OperandTypeError, "no state_dict"),
        ({"epochs": 1, "checkpoints": "x", "parts": [Sum()]}, OperandTypeError, "a dict"),
        ({"epochs": 1, "picture": "x.doc"}, ArgumentError, "ends with 'doc'"),
        ({"epochs": 1, "picture": "x"}, ArgumentError, "must end with"),
        ({"epochs": 1, "picture": 3}, OperandTypeError, "path must be"),
        ({"epochs": 1, "log": 3}, OperandTypeError, "log must be"),
        ({"epochs": 1, "allow_nonfinite": "no"}, OperandTypeError, "True or False"),
    ],
)
def test_a_wrong_argument_is_refused_before_anything_runs(
    options, error, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        quiet(lambda _: pytest.fail("it ran"), [1], **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("part", [EarlyStopping("loss"), History()])
@pytest.mark.parametrize("state", [{}, {"best": 1}, None, 3])
def test_a_state_of_something_else_is_refused(part, state):
    with pytest.raises(ArgumentError, match="the state has no"):
        part.load_state_dict(state)


def test_an_early_stop_refuses_what_it_cannot_use():
    for options, error in (
        ({"patience": 0}, ArgumentError),
        ({"mode": "least"}, ArgumentError),
        ({"min_delta": -1}, ArgumentError),
        ({"restore": 3}, OperandTypeError),
    ):
        with pytest.raises(error, match=next(iter(options))):
            EarlyStopping("loss", **options)
    with pytest.raises(OperandTypeError, match="name must be"):
        EarlyStopping(3)
    with pytest.raises(OperandTypeError, match="loss must be a number"):
        EarlyStopping("loss").update([1])


def test_a_step_and_a_loader_have_to_be_there():
    with pytest.raises(OperandTypeError, match="step is None"):
        quiet(None, [1], epochs=1)
    with pytest.raises(OperandTypeError, match="gives no batches"):
        quiet(nothing, 3, epochs=1)


@pytest.mark.parametrize("options", [{"epochs": 1}, {"steps": 3}])
def test_an_empty_loader_is_an_error(options):
    with pytest.raises(ArgumentError, match="no batch in epoch 1"):
        quiet(nothing, [], **options)


@pytest.mark.parametrize("options", [{"epochs": 2}, {"steps": 5}])
def test_an_iterator_that_ends_too_early_is_an_error(options):
    with pytest.raises(ArgumentError, match=r"no batch in epoch 2.*iterator"):
        quiet(nothing, iter([1, 2, 3]), **options)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (lambda: burn.ones(3, device="cpu"), ShapeError, r"shape \(3,\) for 'loss'"),
        (lambda: {"x": "high"}, OperandTypeError, "returned str for 'x'"),
        (lambda: 10**400, burn.ScalarRangeError, "an integer of 1329 bits for 'loss'"),
        (lambda: [1.0], OperandTypeError, "returned list for 'loss'"),
        (lambda: {"step": 1}, ArgumentError, "the name 'step'"),
        (lambda: {1: 1}, ArgumentError, "the name 1"),
        (lambda: {"x": 1j}, OperandTypeError, "complex"),
        (lambda: burn.asarray(1j, device="cpu"), OperandTypeError, "complex"),
    ],
)
def test_a_value_that_is_no_number_is_an_error(value, error, message):
    with pytest.raises(error, match=message):
        quiet(lambda _: value(), [1], epochs=1)
    with pytest.raises(error, match=f"evaluate returned .*{message.removeprefix('returned ')}"):
        quiet(nothing, [1], epochs=1, evaluate=value)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_ends_the_run_and_names_the_step(bad, tmp_path):
    def step(number):
        return {"fine": 1, "loss": burn.asarray(bad if number == 5 else 1.0, device="cpu")}

    with pytest.raises(ExecutionError, match=f"'loss' is {bad} in step 5.*learning rate") as caught:
        quiet(step, Numbers(9), epochs=1)
    assert not hasattr(caught.value, "__notes__")
    log = tmp_path / "log.jsonl"
    history = quiet(step, Numbers(9), epochs=1, allow_nonfinite=True, log=log, log_every=1)
    assert not math.isfinite(history["loss"][0])
    assert history["fine"] == [1.0]
    for line in log.read_text().splitlines():
        json.loads(line, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    loaded = History.load(log)
    assert repr(without_times(loaded)) == repr(without_times(history))


# Errors of the user's functions.


def test_an_error_of_a_step_says_where_it_was(tmp_path):
    def step(number):
        if number == 3:
            raise KeyError("mine")
        return float(number)

    log = tmp_path / "log.jsonl"
    with pytest.raises(KeyError, match="mine") as caught:
        quiet(step, Numbers(5), epochs=1, log=log, log_every=1)
    assert caught.value.__notes__ == ["burn.train.fit: in the step after 2 steps, epoch 1"]


def test_an_error_of_an_evaluation_or_a_loader_says_where_it_was():
    def batches():
        yield 1
        raise OSError("lost")

    with pytest.raises(ZeroDivisionError) as caught:
        quiet(nothing, [1, 2], epochs=1, evaluate=lambda: 1 / 0)
    assert "in the evaluation after 2 steps, epoch 1" in caught.value.__notes__[0]
    with pytest.raises(OSError, match="lost") as caught:
        quiet(nothing, batches(), epochs=1)
    assert "in the loader after 1 steps" in caught.value.__notes__[0]


# The log.


def test_a_log_has_a_line_for_each_event(tmp_path):
    net = nn.Linear(3, 2, device="cpu")
    log = tmp_path / "new" / "log.jsonl"
    history = quiet(
        Sum(), Numbers(5), epochs=2, log=log, log_every=2, parts={"net": net}, evaluate=lambda: 0.25
    )
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["event"], line.get("step")) for line in lines] == [
        ("start", None),
        ("step", 2),
        ("step", 4),
        ("epoch", 5),
        ("step", 6),
        ("step", 8),
        ("step", 10),
        ("epoch", 10),
        ("end", 10),
    ]
    start = lines[0]
    assert start["parameters"] == {"net": 8}
    assert start["device"] == "cpu:0"
    assert start["arguments"]["epochs"] == 2
    assert [line["loss"] for line in lines if line["event"] == "step"] == [2, 4, 1, 3, 5]
    assert lines[3].items() >= {"loss": 3.0, "val_loss": 0.25, "epoch": 1}.items()
    loaded = History.load(log)
    assert loaded.records == history.records
    assert loaded.steps == history.steps


def test_a_log_does_not_say_whose_machine_it_is(tmp_path):
    log = tmp_path / "log.jsonl"
    quiet(nothing, [1], epochs=1, log=log)
    start = log.read_text().splitlines()[0]
    for secret in (str(Path.home()), socket.gethostname(), str(tmp_path), sys.prefix):
        assert secret not in start


def test_examples_are_counted_in_the_first_array(tmp_path):
    batches = [{"points": np.zeros((4, 2)), "labels": np.zeros(9)}] * 3
    assert quiet(nothing, batches, epochs=1).last["examples_per_second"] > 0
    assert "examples_per_second" not in quiet(nothing, ["text"], epochs=1).last


def test_a_new_run_replaces_a_log_but_no_other_file(tmp_path):
    log = tmp_path / "log.jsonl"
    for _ in range(2):
        quiet(Sum(), [1, 2], epochs=1, log=log)
    assert len(History.load(log)) == 1
    log.write_text("dear diary")
    with pytest.raises(StoreError, match=r"no log of burn.train.fit: it begins with b'dear"):
        quiet(Sum(), [1], epochs=1, log=log)
    assert log.read_text() == "dear diary"
    with pytest.raises(StoreError, match="no log"):
        History.load(log)
    with pytest.raises(StoreError, match=r"cannot be read: No such file.*Give the path") as caught:
        History.load(tmp_path / "none")
    assert caught.value.errno == 2


def test_a_log_that_cannot_be_written_is_an_error(tmp_path):
    with pytest.raises(StoreError, match="cannot be written"):
        quiet(Sum(), [1], epochs=1, log=tmp_path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a file of Linux")
def test_a_full_disk_is_an_error_of_the_log():
    with pytest.raises(StoreError, match=r"/dev/full.*No space left"):
        quiet(Sum(), [1], epochs=1, log="/dev/full")


@pytest.mark.parametrize("torn", ["", '{"event": "st', '{"event": "start", "time"'])
def test_a_log_that_a_kill_cut_short_is_begun_anew(torn, tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text(torn)
    assert len(History.load(log)) == 0
    quiet(Sum(), [1], epochs=1, log=log)
    assert len(History.load(log)) == 1


def test_a_line_that_is_no_event_is_an_error(tmp_path):
    log = tmp_path / "log.jsonl"
    quiet(Sum(), [1], epochs=1, log=log)
    log.write_text(log.read_text() + "oops\n")
    with pytest.raises(StoreError, match=r"line 4 of .*no JSON object"):
        History.load(log)


# Curves.


def test_curves_are_a_picture(tmp_path):
    records = [
        {"epoch": k, "step": 10 * k, "loss": 10.0**-k, "val_loss": math.nan, "table": [[1]]}
        for k in range(1, 5)
    ]
    history = History(records, [{"epoch": 1, "step": 5, "loss": 3.0, "rate": 0.1}])
    for name, head in (("a.png", b"\x89PNG"), ("new/b.svg", b"<?xml")):
        history.draw(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(head)
    assert "epoch" in (tmp_path / "new/b.svg").read_text()


def test_curves_of_one_epoch_have_its_steps(tmp_path):
    quiet(Sum(), Numbers(40), epochs=1, log_every=5, picture=tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_drawing_leaves_the_state_of_matplotlib_alone(run_python, tmp_path):
    result = run_python(
        "-c",
        "import sys; from burn.train import History\n"
        f"History([{{'epoch': 1, 'step': 1, 'loss': 1.0}}]).draw({str(tmp_path / 'a.png')!r})\n"
        "assert 'matplotlib.pyplot' not in sys.modules",
    )
    assert result.returncode == 0, result.stderr


def test_a_picture_that_cannot_be_made_is_an_error(tmp_path, monkeypatch):
    with pytest.raises(ArgumentError, match="the step or the evaluation returns"):
        History().draw(tmp_path / "a.png")
    history = History([{"epoch": 1, "step": 1, "loss": 1.0}])
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be written"):
        history.draw(tmp_path / "file" / "a.png")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(StoreError, match=r"burn-core\[train\]"):
        history.draw(tmp_path / "a.png")


# Progress.


def test_there_is_a_line_for_each_epoch_where_no_terminal_is(capfd):
    fit(Sum(), [1, 2], epochs=2, evaluate=lambda: {"accuracy": 0.5})
    out, err = capfd.readouterr()
    assert not out
    first, second = err.splitlines()
    assert first.startswith("epoch 1/2  step 2  loss 1.5  val_accuracy 0.5  ")
    assert second.startswith("epoch 2/2  step 4")


def test_no_progress_is_silent(capfd):
    quiet(Sum(), [1, 2], epochs=2)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("options", [{"epochs": 2}, {"steps": 5}])
@pytest.mark.parametrize("knows_length", [True, False])
def test_a_terminal_has_bars(options, knows_length, capfd, monkeypatch):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    fit(Sum(), Numbers(3, knows_length=knows_length), evaluate=lambda: 0.5, **options)
    err = capfd.readouterr().err
    for text in ("epoch 2", "loss", "val_loss 0.5", "all"):
        assert text in err


def test_bars_are_closed_by_an_error(capfd, monkeypatch):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "xterm")
    for _ in range(2):  # rich has one display at a time
        with pytest.raises(ZeroDivisionError):
            fit(lambda _: 1 / 0, [1], epochs=1)


# Checkpoints.


def same(ours, theirs):
    """Whether histories and values are equal to the bit."""
    assert without_times(ours[0]) == without_times(theirs[0])
    assert ours[1].keys() == theirs[1].keys()
    for name, value in ours[1].items():
        np.testing.assert_array_equal(value, theirs[1][name])


class PowerCutError(Exception):
    """Ends a run in the middle."""


def cut(at):
    """What ends a run when that many steps of it were begun."""

    def during(step):
        if step == at:
            raise PowerCutError

    return during


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return run(tmp_path_factory.mktemp("undisturbed"))


def test_a_run_that_was_stopped_anywhere_ends_as_if_it_was_not(undisturbed, tmp_path, everything):
    for at in range(28) if everything else (2, 10):
        folder = tmp_path / str(at)
        with pytest.raises(PowerCutError):
            run(folder, during=cut(at))
        same(run(folder), undisturbed)


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.exhaustive), 7, "epoch"])
def test_it_does_so_however_often_it_is_saved_and_stopped(every, tmp_path, everything):
    whole = run(tmp_path / "whole", save_every=every)
    for _ in range(20):
        try:
            same(
                run(tmp_path / "parts", during=cut(9 if every == "epoch" else 8), save_every=every),
                whole,
            )
            break
        except PowerCutError:
            pass
    else:
        pytest.fail("the run does not get on")


@pytest.mark.parametrize("device", DEVICES)
def test_a_run_on_any_device_goes_on_where_it_was(device, tmp_path):
    with pytest.raises(PowerCutError):
        run(tmp_path, during=cut(9), device=device)
    begun = []
    history, _ = run(tmp_path, during=begun.append, device=device)
    assert len(begun) == 28 - 9
    assert [record["step"] for record in history.records] == [7, 14, 21, 28]


def test_a_run_that_is_complete_returns_at_once(undisturbed, tmp_path):
    run(tmp_path)
    log = (tmp_path / "log.jsonl").read_bytes()
    same(run(tmp_path, during=cut(0)), undisturbed)
    assert (tmp_path / "log.jsonl").read_bytes() == log


def test_a_run_that_is_complete_can_be_made_longer(undisturbed, tmp_path):
    run(tmp_path, epochs=2)
    same(run(tmp_path), undisturbed)
    events = [
        json.loads(line)["event"] for line in (tmp_path / "log.jsonl").read_text().splitlines()
    ]
    assert events.count("end") == events.count("start") == 1


@pytest.mark.parametrize("knows_length", [True, False])
@pytest.mark.parametrize("options", [{"epochs": 3}, {"steps": 11}])
@pytest.mark.parametrize("every", [2, pytest.param(1, marks=pytest.mark.exhaustive), 5])
def test_every_batch_is_used_once_whatever_the_loader_knows(
    knows_length, options, every, tmp_path, everything
):
    mean = Mean()

    def attempt(folder, at):
        part = Sum()
        mean.reset()

        def step(number):
            if len(part.seen) == at:
                raise PowerCutError
            value = part(number)
            mean.update(value)
            return {"loss": value, "mean": mean}

        loader = Numbers(5, knows_length=knows_length)
        history = quiet(
            step, loader, checkpoints=folder, parts={"part": part}, save_every=every, **options
        )
        return part.seen, without_times(history)

    whole = attempt(tmp_path / "whole", None)
    for at in range(11) if everything else (5,):
        with pytest.raises(PowerCutError):
            attempt(tmp_path / str(at), at)
        assert attempt(tmp_path / str(at), None) == whole


def test_a_list_of_batches_goes_on_at_the_next_one(tmp_path):
    for at in (4, None):
        part = Sum()

        def step(number, part=part, at=at):
            if len(part.seen) == at:
                raise PowerCutError
            return part(number)

        options = {"checkpoints": tmp_path, "parts": {"part": part}, "save_every": 2}
        if at:
            with pytest.raises(PowerCutError):
                quiet(step, [1, 2, 3], epochs=2, **options)
        else:
            quiet(step, [1, 2, 3], epochs=2, **options)
            assert part.seen == [1, 2, 3, 1, 2, 3]


@pytest.mark.parametrize("options", [{"epochs": 2, "evaluate_every": 2}, {"steps": 3}])
def test_an_evaluation_that_moves_the_loader_of_the_training_is_an_error(options, tmp_path):
    loader = DataLoader([1.0, 2.0, 3.0, 4.0, 5.0], device="cpu")

    def evaluate():
        return len(list(loader))

    with pytest.raises(ArgumentError, match="a loader of its own"):
        quiet(
            nothing,
            loader,
            evaluate=evaluate,
            checkpoints=tmp_path,
            parts={"x": Sum()},
            **options,
        )
    assert quiet(nothing, loader, evaluate=evaluate, **options)["val_loss"][0] == 5.0


class Shuffled:
    """A loader that does not say where it is."""

    def __iter__(self):
        return iter([1, 2, 3])


def test_a_loader_without_a_position_is_saved_between_epochs(tmp_path):
    with pytest.raises(ArgumentError, match=r"Shuffled has no state_dict.*DataLoader"):
        quiet(Sum(), Shuffled(), epochs=1, checkpoints=tmp_path, parts={"x": Sum()}, save_every=2)
    with Checkpoints(tmp_path) as checkpoints:
        quiet(Sum(), Shuffled(), epochs=2, checkpoints=checkpoints, parts={"x": Sum()})
        assert checkpoints.steps() == [0, 3, 6]


def test_what_cannot_be_saved_is_found_before_the_first_step(tmp_path):
    class Unsaved(Sum):
        def state_dict(self):
            return {"file": sys.stdout}

    def step(_):
        pytest.fail("it ran")

    (tmp_path / "file").touch()
    for parts, folder in (
        ({"../x": Sum()}, "a"),
        ({"x": Unsaved()}, "b"),
        ({"x": Sum()}, "file"),
    ):
        with pytest.raises(burn.BurnError):
            quiet(step, [1], epochs=1, checkpoints=tmp_path / folder, parts=parts)


def test_a_run_that_ends_before_its_first_checkpoint_begins_as_it_began(tmp_path):
    for at in (2, None):
        part = nn.Linear(2, 2, device="cpu")
        first = part.weight.tolist()

        def step(number, at=at):
            if number == at:
                raise PowerCutError

        with pytest.raises(PowerCutError) if at else contextlib.nullcontext():
            quiet(step, Numbers(3), epochs=1, checkpoints=tmp_path, parts={"x": part})
        if at:
            before = first
    assert part.weight.tolist() == before != first


def test_checkpoints_of_something_else_are_an_error(tmp_path):
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(1, part=Sum(), wait=True)
    with pytest.raises(ArgumentError):
        quiet(Sum(), [1], epochs=1, checkpoints=tmp_path, parts={"part": Sum()})


# Signals.

needs_signals = pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")


def fit_process(folder, *arguments):
    folder.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, PROGRAM, folder, *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )


@needs_signals
def test_a_killed_run_ends_as_if_it_was_not_killed(undisturbed, tmp_path, everything):
    for step in range(1, 28) if everything else (13,):
        folder = tmp_path / str(step)
        killed = fit_process(folder, int(signal.SIGKILL), step)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        same(run(folder), undisturbed)


@needs_signals
@pytest.mark.exhaustive
def test_a_run_that_is_killed_again_and_again_ends_all_the_same(undisturbed, tmp_path):
    steps = np.random.default_rng(0).integers(4, 9, 20)
    for step in steps:
        fit_process(tmp_path, int(signal.SIGKILL), step)
    same(run(tmp_path), undisturbed)


@needs_signals
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("at", [4, pytest.param(13, marks=pytest.mark.exhaustive)])
def test_a_signal_ends_a_run_after_the_step_and_saves_it(number, at, undisturbed, tmp_path):
    handlers = [signal.getsignal(item) for item in (signal.SIGINT, signal.SIGTERM)]
    begun = []

    def during(step):
        begun.append(step)
        if step == at:
            os.kill(os.getpid(), number)

    with pytest.raises(KeyboardInterrupt if number == signal.SIGINT else SystemExit) as caught:
        run(tmp_path, during=during)
    assert begun[-1] == at
    if number == signal.SIGTERM:
        assert caught.value.code == 143
    with Checkpoints(tmp_path / "checkpoints") as checkpoints:
        assert checkpoints.steps()[-1] == at + 1
    assert [signal.getsignal(item) for item in (signal.SIGINT, signal.SIGTERM)] == handlers
    same(run(tmp_path), undisturbed)


@needs_signals
def test_a_second_signal_ends_a_run_at_once(tmp_path, capfd):
    def step(_):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("the step went on")

    with pytest.raises(KeyboardInterrupt):
        fit(step, Numbers(3), epochs=1, checkpoints=tmp_path, parts={"x": Sum()})
    assert "SIGINT: the run ends after this step" in capfd.readouterr().err


@needs_signals
def test_a_signal_to_the_workers_of_the_loader_too_saves_the_run(tmp_path):
    class Job(Numbers):
        def __iter__(self):
            for number in super().__iter__():
                yield number
                if number == 2 and is_ended:
                    os.kill(os.getpid(), signal.SIGTERM)
                    raise WorkerError("worker 0 ended with SIGTERM")

    part = Sum()
    options = {"epochs": 1, "checkpoints": tmp_path, "parts": {"x": part}}
    for is_ended in (True, False):
        with pytest.raises(SystemExit) if is_ended else contextlib.nullcontext():
            quiet(part, Job(4, knows_length=False), **options)
    assert part.seen == [1, 2, 3, 4]


@needs_signals
def test_handlers_of_the_program_stay(tmp_path):
    seen = []
    before = signal.signal(signal.SIGTERM, lambda *_: seen.append(1))
    try:
        part = Sum()

        def step(number):
            os.kill(os.getpid(), signal.SIGTERM)
            return part(number)

        quiet(step, Numbers(3), epochs=1, checkpoints=tmp_path, parts={"x": part})
    finally:
        signal.signal(signal.SIGTERM, before)
    assert len(seen) == len(part.seen) == 3


def test_a_run_in_another_thread_has_checkpoints_too(tmp_path):
    part = Sum()
    thread = threading.Thread(
        target=quiet,
        args=(part, Numbers(3)),
        kwargs={"epochs": 1, "checkpoints": tmp_path, "parts": {"x": part}},
    )
    thread.start()
    thread.join()
    with Checkpoints(tmp_path) as checkpoints:
        assert checkpoints.steps() == [0, 3]
