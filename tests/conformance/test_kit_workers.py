"""``burn check`` where libraries end the process, hang, grow or print; how it stops and resumes."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

import burn
from burn.cli import main
from burn.cli.check_progress import CheckProgress
from burn.dtype import float32
from burn.errors import ArgumentError
from burn.plugins import BackendSpec, DeviceInfo, registered
from burn.testing import (
    MOCK_DEVICES,
    SAMPLES,
    SUITES,
    Check,
    NumpyBackend,
    Result,
    Status,
    Subject,
    mock_backend,
    run,
    shape_cost,
    workers,
)
from burn.testing.sample_sorts import sorts_of

pytestmark = pytest.mark.usefixtures("default_signals")

FAULTY = """
import os
import signal
import sys
import time
from pathlib import Path

from burn.plugins import BackendSpec, DeviceInfo, hookimpl

FOLDER = Path(__file__).parent


def load():
    with (FOLDER / "loads").open("a") as file:
        file.write(f"{os.getpid()}\\n")
    exec(os.environ.get("FAULTY_LOAD", ""))

    from burn_cpu.backend import CpuBackend

    class Faulty(CpuBackend):
        def name(self, device):
            return "faulty"

        def relu(self, x):
            exec(os.environ.get("FAULTY_RELU", ""))
            return self.ops.decomposed("relu", x)

    return Faulty()


@hookimpl
def burn_backends():
    devices = [DeviceInfo("unit", 0, "faulty hardware")]
    return [BackendSpec("faulty", load, lambda: devices, ("unit",))]
"""
"""A backend that does at its load, and in the op relu, what variables of the environment say."""


@pytest.fixture
def variables(install, tmp_path):
    """The environment in which that backend is there, and the folder where it notes its loads."""
    return {"PYTHONPATH": install("faulty", FAULTY), "BURN_PLUGINS": "cpu,faulty"}


@pytest.fixture
def check(run_burn, tmp_path, variables):
    """Run ``burn check faulty`` with code for relu; gives the process and the document."""

    def call(*options, relu="", **others):
        path = tmp_path / "report.json"
        result = run_burn(
            *("check", "faulty", "--json", path, *options),
            **{**variables, "FAULTY_RELU": relu, **others},
        )
        return result, json.loads(path.read_text(encoding="utf-8"))

    return call


VALUES = ("--op=relu", "--op=add", "--suite=values", "--dtype=float32")
ONCE = """
if not (FOLDER / "once").exists():
    (FOLDER / "once").touch()
    {}
"""


def only(failures):
    (failure,) = failures
    return failure


@pytest.mark.skipif(os.name == "nt", reason="its processes end without signals")
def test_a_check_that_ends_its_process_is_named_and_the_others_are_made(check):
    prints = "print('noise'); os.write(1, b'{noise}'); sys.stdin.read()\n"
    result, document = check(*VALUES, relu=prints + ONCE.format("os.abort()"))
    assert result.returncode == 1, result.stderr
    (device,) = document["devices"]
    assert device["finished"] is True
    assert device["counts"]["failed"] == 1
    assert device["counts"]["passed"] == device["total"] - 1
    failure = only(device["failures"])
    assert re.match(r"values/relu/float32/\w", failure["check"])
    assert failure["message"].startswith("the process was ended by SIGABRT\nFatal Python error")
    assert "burn_faulty.py" in failure["message"]
    assert "_check.py" not in failure["message"]
    assert f"FAILED {failure['check']}: the process was ended by SIGABRT" in result.stderr
    assert failure["script"] in result.stdout
    compile(failure["script"], "script", "exec")
    assert "noise" in result.stderr
    assert "noise" not in result.stdout


@pytest.mark.exhaustive
def test_an_op_that_always_ends_its_process_is_tried_a_few_times(check, tmp_path):
    result, document = check(*VALUES, relu="os._exit(3)")
    assert result.returncode == 1, result.stderr
    (device,) = document["devices"]
    assert {failure["message"] for failure in device["failures"]} == {
        "the process ended with status 3"
    }
    assert len(device["failures"]) == 3
    skipped = [result for result in device["results"] if result["status"] == "skipped"]
    assert skipped
    assert {item["check"].split("/")[1] for item in skipped} == {"relu"}
    assert "3 checks like it ended their process" in skipped[0]["message"]
    passed = {
        result["check"].split("/")[1]
        for result in device["results"]
        if result["status"] == "passed"
    }
    assert passed == {"add"}
    assert len((tmp_path / "loads").read_text().split()) == 3  # no load in the process of the run


@pytest.mark.exhaustive
def test_a_check_that_takes_too_long_is_a_failure_that_says_where_it_is(check):
    options = ("--time-limit=0.8", *VALUES)
    result, document = check(*options, relu=ONCE.format("time.sleep(60)"))
    assert result.returncode == 1, result.stderr
    (device,) = document["devices"]
    assert device["finished"] is True
    failure = only(device["failures"])
    assert failure["message"].startswith("it took more than 0.8 s; the process was killed\n")
    assert 0.8 <= failure["seconds"] < 30
    if os.name != "nt":
        assert "burn_faulty.py" in failure["message"]


@pytest.mark.exhaustive
def test_a_worker_is_replaced_when_it_has_many_memory_maps(check, tmp_path):
    if not Path("/proc/sys/vm/max_map_count").exists():
        pytest.skip("the number of maps is limited on Linux alone")
    code = """
import mmap
time.sleep(0.51)
if len(globals().setdefault("maps", [])) == 0:
    limit = int(Path("/proc/sys/vm/max_map_count").read_text())
    for index in range(limit // 2 + 100):  # neighbours differ, so that each stays a map of its own
        flags = mmap.PROT_READ | (mmap.PROT_WRITE if index % 2 else 0)
        maps.append(mmap.mmap(-1, 4096, prot=flags))
"""
    result, document = check("--op=relu", "--suite=values", "--dtype=float32", relu=code)
    assert result.returncode == 0, result.stdout + result.stderr
    assert document["finished"] is True
    assert len((tmp_path / "loads").read_text().split()) >= 3


@pytest.mark.exhaustive
def test_a_backend_that_ends_each_process_at_its_load_ends_the_run(check, tmp_path):
    result, document = check(*VALUES, FAULTY_LOAD="os._exit(7)")
    assert result.returncode == 1
    message = "a worker process does not come to the first check on faulty:0: "
    assert result.stderr.strip().startswith(f"Error: {message}the process ended with status 7")
    assert len(result.stderr.strip().splitlines()) == 1
    assert document["finished"] is document["conforms"] is False
    assert len((tmp_path / "loads").read_text().split()) == 3


@pytest.mark.exhaustive
def test_what_the_load_raises_is_an_error_on_one_line(check):
    result, _ = check(*VALUES, FAULTY_LOAD="raise OSError('no driver')")
    assert result.returncode == 1
    assert "no driver" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.exhaustive
def test_a_run_in_which_each_check_ends_its_process_is_ended(check):
    names = ("abs", "add", "exp", "relu", "sin")
    options = [f"--op={name}" for name in names]
    everywhere = (
        "from burn_cpu.backend import CpuBackend\n"
        f"for name in {names}:\n"
        "    setattr(CpuBackend, name, lambda *a, **k: os._exit(4))\n"
    )
    result, document = check(*options, "--suite=values", "--dtype=float32", FAULTY_LOAD=everywhere)
    assert result.returncode == 1
    (device,) = document["devices"]
    assert device["finished"] is False
    assert "10 checks, one after the other, ended their worker process" in only(device["problems"])
    assert "10 checks, one after the other" in result.stdout
    assert "stopped after" in result.stdout


@pytest.mark.exhaustive
def test_a_check_that_is_expected_to_end_its_process_is_no_failure(check, tmp_path):
    path = tmp_path / "list.txt"
    path.write_text("values/relu/float32/0-d  # crashes, reported as number 4711\n")
    options = ("--op=relu", "--suite=values", "--dtype=float32", "--expected-failures", path)
    result, document = check(*options, relu=ONCE.format("os.abort()"))
    assert result.returncode == 0, result.stdout
    (device,) = document["devices"]
    assert device["counts"]["expected"] == 1


# Progress, Ctrl-C and what a killed run leaves.


def start(variables, *options, relu="time.sleep(0.02)"):
    program = "from burn.cli import main; main(prog_name='burn')"
    return subprocess.Popen(
        [sys.executable, "-c", program, "check", "faulty", *map(str, options)],
        env={**os.environ, **variables, "FAULTY_RELU": relu},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def wait_for(condition):
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def done_in(path):
    """How many results a document has, which is whole at any moment."""
    if not path.exists():
        return 0
    return sum(len(device["results"]) for device in json.loads(path.read_text())["devices"])


def loads_in(folder):
    path = folder / "loads"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("SIGINT", 130),
        pytest.param("SIGTERM", 143, marks=pytest.mark.exhaustive),
    ],
)
def test_a_stop_leaves_a_report_a_document_and_no_process(variables, tmp_path, name, status):
    path = tmp_path / "report.json"
    hanging = "time.sleep(0.02)\nif list(x.shape).count(3) == 2: time.sleep(300)"
    options = ("--op=relu", "--op=softmax", "--json", path)
    with start(variables, *options, relu=hanging) as process:
        wait_for(lambda: done_in(path) > 0)
        (worker,) = loads_in(tmp_path)
        process.send_signal(getattr(signal, name))
        out, err = process.communicate(timeout=60)
    assert process.returncode == status, err
    assert "Traceback" not in err
    assert re.search(r"faulty:0 \(faulty hardware\) stopped after \d+ of \d+ checks", out)
    document = json.loads(path.read_text())
    assert document["finished"] is document["conforms"] is False
    assert document["devices"][0]["total"] > len(document["devices"][0]["results"]) > 0
    wait_for(lambda: not is_running(worker))


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("the results\n  differ", "the results differ"),
        (
            'Traceback (most recent call last):\n  File "a.py"\n    f()\nOSError: a\nb',
            "OSError: a b",
        ),
        (
            'Traceback (most recent call last):\n  File "a.py"',
            "Traceback (most recent call last): ",
        ),
    ],
)
def test_the_line_of_a_failure_says_what_was_raised_and_not_where(capsys, message, shown):
    session = SimpleNamespace(total=0, device=SimpleNamespace(name="unit:0"))
    check = Check("values", "relu", float32, "rows", lambda: None)
    progress = CheckProgress(session, Console(stderr=True, width=200))
    progress.update(Result(check, Status.FAILED, message, "", None, 0.0))
    assert f"FAILED values/relu/float32/rows: {shown}" in capsys.readouterr().err


@pytest.mark.exhaustive
def test_without_a_terminal_there_are_lines_of_progress(variables, tmp_path):
    with start(variables, "--op=relu", relu="time.sleep(0.1)") as process:
        line = process.stderr.readline()
        process.kill()
        process.wait()
    assert re.fullmatch(r"faulty:0: (\d+ of \d+ checks, relu|starts), \d+ s\n", line)
    wait_for(lambda: not any(map(is_running, loads_in(tmp_path))))


@pytest.mark.exhaustive
@pytest.mark.parametrize("kills", [1, 20])
def test_a_killed_run_leaves_a_whole_document_from_which_another_goes_on(
    variables, check, tmp_path, kills
):
    path = tmp_path / "report.json"
    options = ["--op=relu", "--op=softmax", "--op=exp", "--json", path]
    done = 0
    for number in range(kills):
        resume = ["--resume", path] if number else []
        with start(variables, *options, *resume) as process:
            wait_for(lambda least=done: done_in(path) > least or process.poll() is not None)
            time.sleep(number * 0.13 % 1.0)
            process.kill()
        assert done_in(path) >= done
        done = done_in(path)
        if process.returncode == 0:
            break
    wait_for(lambda: not any(map(is_running, loads_in(tmp_path))))
    before = {result["check"] for result in json.loads(path.read_text())["devices"][0]["results"]}
    result, document = check(*options[:-2], "--resume", path)
    assert result.returncode == 0, result.stdout + result.stderr
    (device,) = document["devices"]
    assert device["resumed"] == len(before) > 0
    names = [result["check"] for result in device["results"]]
    assert len(names) == len(set(names)) == device["total"]
    assert before <= set(names)
    if len(before) < device["total"]:
        assert f"{len(before)} of {device['total']} checks are done" in result.stderr
    assert f"{len(before)} of them in an earlier run" in result.stdout


@pytest.mark.exhaustive
def test_a_failure_of_an_earlier_run_stays_one(check, tmp_path):
    _, first = check(*VALUES, relu=ONCE.format("raise OSError('once')"))
    result, second = check(*VALUES, "--resume", tmp_path / "report.json")
    assert result.returncode == 1
    assert second["devices"][0]["failures"] == first["devices"][0]["failures"]
    assert second["devices"][0]["ops"] == first["devices"][0]["ops"]
    assert "OSError: once" in result.stdout


def written(path, *options):
    """The document of a run in this process."""
    arguments = ["check", "cpu", "--workers=0", "--json", str(path), *options]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    return json.loads(path.read_text())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda document: document.update(version="0.0.1"), "its burn-core is '0.0.1'"),
        (lambda document: document.update(schema=2), "its schema is 2, and here it is 1"),
        (lambda document: document["devices"][0].update(driver="2"), "its driver is '2'"),
        (lambda document: document["devices"][0].update(minimal=True), "its minimal is True"),
        (lambda document: document["devices"][0].pop("results"), "it is no document of"),
        (lambda document: document["devices"][0]["results"][0].pop("seconds"), "no document of"),
        (lambda document: document["devices"][0]["results"][0].update(status="?"), "no document"),
        (lambda document: document.update(devices=7), "it is no document of"),
    ],
)
def test_a_run_of_something_else_is_not_resumed(tmp_path, change, message):
    path = tmp_path / "report.json"
    document = written(path, "--op=relu", "--suite=values", "--dtype=float32")
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(ArgumentError, match=re.escape(message)):
        run("cpu", ops=["relu"], suites=["values"], dtypes=["float32"], resume=path)


def test_files_that_are_none_are_errors_on_one_line(tmp_path):
    (tmp_path / "text").write_text("hello")
    for option, name in (("--resume", "text"), ("--resume", "none"), ("--json", "no/folder")):
        options = ["check", "cpu", "--op=relu", option, str(tmp_path / name)]
        result = CliRunner().invoke(main, options)
        assert result.exit_code == 1
        assert len(result.stderr.strip().splitlines()) == 1, result.stderr
        assert name in result.stderr


def test_a_resumed_run_makes_only_the_checks_that_are_left(tmp_path):
    path = tmp_path / "report.json"
    options = {"ops": ["relu", "exp"], "dtypes": ["float32"]}
    written(path, "--op=relu", "--op=exp", "--dtype=float32", "--suite=values")
    part = run("cpu", **options, suites=["values"])
    made = []
    whole = run("cpu", **options, resume=path, progress=lambda *step: made.append(step))
    assert whole.finished
    assert whole.resumed == len(part.results) > 0
    assert len(made) == whole.total - whole.resumed > 0
    assert made[-1][1:] == (whole.total, whole.total)
    assert {result.check.name for result in whole.results} == {
        result.check.name for result in run("cpu", **options).results
    }


# From Python.


def test_workers_find_what_this_process_finds(monkeypatch):
    monkeypatch.setenv("BURN_PLUGINS", "cpu")
    options = {"ops": ["softmax", "matmul"], "quick": True, "dtypes": ["float32", "int32"]}
    seen = []
    here = run("cpu", **options)
    there = run("cpu", **options, workers=1, progress=lambda *step: seen.append(step))
    assert [(result.check.name, result.status) for result in there.results] == [
        (result.check.name, result.status) for result in here.results
    ]
    assert [(row.op, row.origin, row.cells, row.worst) for row in there.rows] == [
        (row.op, row.origin, row.cells, row.worst) for row in here.rows
    ]
    assert [(done, total) for _, done, total in seen] == [
        (number, len(here.results)) for number in range(1, len(here.results) + 1)
    ]
    there.results[0].check.body()  # in this process


def test_a_backend_of_this_process_alone_is_tried_in_it():
    with registered(mock_backend("mine", [MOCK_DEVICES[0]])):
        with pytest.raises(ArgumentError, match="a worker process would not find"):
            run("mine", ops=["relu"], workers=1)
        assert run("mine", ops=["relu"], suites=["values"]).conforms
    with pytest.raises(ArgumentError, match="workers is -1"):
        run("cpu", workers=-1)
    with pytest.raises(ArgumentError, match="time_limit is 0"):
        run("cpu", workers=1, time_limit=0)


# Libraries that compile for each shape.


class Compiling(NumpyBackend):
    """A backend to which new shapes cost time."""

    def __init__(self):
        super().__init__()
        self.known = set()

    def name(self, device):
        return "compiling"

    def add(self, x1, x2):
        shape = np.shape(x1)
        if shape not in self.known:
            self.known.add(shape)
            time.sleep(0.01)
        return np.add(x1, x2)


def kinds_of_checks(report):
    """What the suite values tries, and what other suites try of ops, but for draws."""
    checks = [result.check for result in report.results if result.check.op]
    values = [(check.op, check.dtype) for check in checks if check.suite == "values"]
    return values, [
        (check.suite, check.op) for check in checks if check.suite not in ("values", "draws")
    ]


_FUNCTION_SUITES = ("functions", "function_transforms", "wrong_calls")
"""Suites of public functions, which a run of few shapes leaves out."""


def sorts_of_values(report):
    """The sorts of the samples of `add` that the suite values tries."""
    samples = {sample.note: sample for sample in SAMPLES["add"].samples}
    checks = [result.check for result in report.results if result.check.suite == "values"]
    notes = {check.note for check in checks if check.op == "add"}
    return set().union(*(sorts_of(samples[note]) for note in notes))


def test_a_quick_run_tries_few_shapes_where_each_is_compiled_for():
    options = {"ops": ["add", "softmax"], "quick": True}
    spec = BackendSpec("compiling", Compiling, lambda: [DeviceInfo("unit", 0, "")], ("unit",))
    with registered(spec):
        few = run("compiling", **options)
        every = run("compiling", **options, few_shapes=False)
        whole = run("compiling", ops=["add"], suites=["values"])
        sums = run("compiling", ops=["sum"], suites=["values"], quick=True, few_shapes=True)
    with registered(spec):  # loaded anew, which has seen no shape
        printed = CliRunner().invoke(main, ["check", "compiling", "--quick", "--op=add"]).stdout
    assert few.few_shapes
    assert few.shape_cost.is_high
    assert not every.few_shapes
    assert not whole.few_shapes
    names = {result.check.name for result in few.results}
    assert names < {result.check.name for result in every.results}
    values, others = kinds_of_checks(few)
    assert len(values) < len(kinds_of_checks(every)[0])
    assert sorts_of_values(few) == sorts_of_values(every)
    assert sum(few.left_out.values()) == len(every.results) - len(few.results)
    assert len(others) == len(set(others))
    assert [dtype for op, dtype in values if op == "softmax"] == [float32]
    of_add = {dtype for op, dtype in values if op == "add"}
    assert of_add == {dtype for op, dtype in kinds_of_checks(every)[0] if op == "add"}
    drawn = [result.check for result in few.results if result.check.suite == "draws"]
    assert {item.op for item in drawn} == {"add"}
    assert {"rank 0", "long 1", "part 2"} <= {item.note for item in drawn}
    assert len(drawn) <= 4
    narrow = {
        result.check.name for result in sums.results if "/float16/beyond" in result.check.name
    }
    assert narrow == {"values/sum/float16/beyond float16 on the way"}
    of_add = {suite for suite, op in others if op == "add"}
    every_of_add = {suite for suite, op in kinds_of_checks(every)[1] if op == "add"}
    assert of_add == every_of_add - {*_FUNCTION_SUITES, "quantization"}
    of_functions = {name for name, suite in SUITES.items() if suite.of_functions}
    derived = {suite for suite, op in others if op == "softmax"} - of_functions
    assert derived == {"settings", "gradients"}
    assert "the library seems to compile for each shape" in printed
    assert re.search(r"add \d+\.\d s, \d+ calls", printed)
    assert re.search(
        r"Left out: .*\d+ of values, .*--all-shapes tries all of the quick run", printed
    )
    assert not run("cpu", ops=["relu"], quick=True).few_shapes


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--compiled", "--suite=seeding"], "--compiled has no checks of the suite seeding"),
        (["--minimal", "--suite=views"], "--minimal has no checks of the suite views"),
        (["--op=matmul", "--dtype=bool", "--suite=values"], "--dtype leaves none of those"),
        (["--op=relu", "--suite=sizes"], "--suite leaves none of those"),
        (["--quick", "--suite=values", "--op=eye", "--dtype=float64"], "--quick leaves none"),
    ],
)
def test_a_run_without_checks_fails_and_says_which_option_chose_none(options, reason):
    result = CliRunner().invoke(main, ["check", "cpu", "--workers=0", *options])
    assert result.exit_code == 1
    assert f"no check is selected: {reason}" in result.stdout
    assert "slowest" not in result.stdout
    assert "was not tried: no checks" in result.stdout
    assert "conforms" not in result.stdout
    assert "of these ran" not in result.stdout


def test_a_run_says_which_of_its_suites_had_no_check():
    options = {"ops": ["add"], "dtypes": [float32], "quick": True, "compiles": True}
    report = run("cpu", suites=["seeding", "views", "values"], **options)
    assert report.conforms
    assert report.verdict.endswith("; no check of the suite seeding or views")
    assert "no check of" not in run("cpu", suites=["values"], **options).verdict


class Clock:
    """A clock that goes on when it is told."""

    def __init__(self, monkeypatch, module):
        self.now = 0.0
        functions = {"monotonic": lambda: self.now, "perf_counter": lambda: self.now}
        monkeypatch.setattr(module, "time", SimpleNamespace(**functions))


class Programs(NumpyBackend):
    """A backend that takes some time to compile a program of new operations, by a clock."""

    def name(self, device):
        return "programs"

    def compile(self, graph, device):
        names = tuple(operation.name for operation in graph.operations)
        if len(names) > 1 and names not in self.known:  # it compiles what it can fuse
            self.clock.now += self.seconds
            self.known.add(names)


def cost_of_programs(seconds, monkeypatch):
    """What is measured of a library that compiles programs, whatever their shapes are."""
    backend = Programs()
    backend.clock, backend.seconds = Clock(monkeypatch, shape_cost), seconds
    backend.known = set()
    spec = BackendSpec("programs", lambda: backend, lambda: [DeviceInfo("unit", 0, "")], ("unit",))
    with registered(spec):
        device = burn.Device("programs")
        cost = shape_cost.ShapeCost.of(Subject.of(device, compiles=True))
        assert not shape_cost.ShapeCost.of(Subject.of(device)).is_high
    assert (cost.new, cost.known) == (pytest.approx(seconds), 0.0)
    assert shape_cost.ShapeCost.of_json(cost.as_json()) == cost
    assert "a new program takes" in str(cost)
    return cost


def tries_few_shapes(cost, monkeypatch, *, quick=True):
    """Whether a run of some programs does, of which each has that cost."""
    monkeypatch.setattr(shape_cost.ShapeCost, "of", lambda subject: cost)
    report = run(
        "cpu", ops=["add"], suites=["values"], dtypes=[float32], quick=quick, compiles=True
    )
    assert len(report.results) < 60
    return report.few_shapes


def test_a_quick_run_of_programs_tries_few_shapes_where_it_compiles_for_minutes(monkeypatch):
    cost = cost_of_programs(0.03, monkeypatch)
    assert cost.is_high
    assert not tries_few_shapes(cost, monkeypatch)  # a few checks
    assert tries_few_shapes(replace(cost, new=60.0), monkeypatch)
    assert not tries_few_shapes(replace(cost, new=60.0), monkeypatch, quick=False)
    assert cost.is_high_for(checks=17_000)  # as many as a quick run has


def test_a_quick_run_of_programs_tries_all_shapes_where_they_are_compiled_soon(monkeypatch):
    assert not cost_of_programs(0.015, monkeypatch).is_high_for(checks=17_000)


class Noting(NumpyBackend):
    """A backend that notes of each program whether a first call is under way."""

    def name(self, device):
        return "noting"

    def compile(self, graph, device):
        self.noted.append(self.in_first_call)


def test_programs_of_compiled_calls_are_compiled_in_first_calls(monkeypatch):
    backend = Noting()
    backend.in_first_call = False

    @contextlib.contextmanager
    def first_call():
        backend.in_first_call = True
        yield
        backend.in_first_call = False

    monkeypatch.setattr("burn.testing.suites.compiled_calls.first_call", first_call)
    spec = BackendSpec("noting", lambda: backend, lambda: [DeviceInfo("unit", 0, "")], ("unit",))
    late = {}
    with registered(spec):
        subject = Subject.of(burn.Device("noting"))
        for check in SUITES["compiled_calls"].checks(subject, []):
            backend.noted = []
            assert check.run().status is Status.PASSED
            late[check.note] = backend.noted.count(False)
    assert not {note: count for note, count in late.items() if count}


class WaitingProcess:
    """A worker process that makes a check, as `Workers` looks at it."""

    is_idle = False
    overdue = None
    restart_clock = workers.WorkerProcess.restart_clock

    def __init__(self):
        self.shard = SimpleNamespace(names=["a check"])
        self.restart_clock()

    def kill_overdue(self):
        self.overdue = "a check"


@pytest.mark.parametrize(("compiling", "calling"), [(9.75, 0.75), (9.75, 1.25), (10.25, 0.0)])
def test_the_time_limit_of_a_check_leaves_out_its_first_calls(compiling, calling, monkeypatch):
    clock = Clock(monkeypatch, workers)
    process = WaitingProcess()
    group = workers.Workers({}, 1, time_limit=1.0)
    group._processes.append(process)
    for begins, seconds in ((True, compiling), (False, calling)):
        group._events.put((process, {"first_call": begins}))
        assert group._next() == (None, None)
        for _ in range(int(seconds * 4)):
            clock.now += 0.25
            group._look_at_clock()
    is_late = compiling > 10.0 or calling > 1.0
    assert process.overdue == ("a check" if is_late else None)
    if is_late:
        text = group._overdue_text(process, "a check")
        what = (
            "its first calls took more than 10 s" if compiling > 10.0 else "it took more than 1 s"
        )
        assert text == what
    process.restart_clock()
