"""The conformance kit as its users meet it: scripts, reports, the command, pytest, lists."""

import json
import math
import os
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import burn
from burn.backend import Backend
from burn.cli import main
from burn.errors import ArgumentError
from burn.ir.execution import Execution
from burn.ops import REGISTRY, resolve
from burn.plugins import BackendSpec, DeviceInfo, registered
from burn.testing import (
    SUITES,
    ExpectedFailures,
    Failure,
    MockDevice,
    NumpyBackend,
    Selection,
    Status,
    Subject,
    checks_of,
    find_check,
    mock_backend,
    run,
)
from burn.testing.report_html import render
from burn.testing.suites.random_numbers import kolmogorov_smirnov
from burn_cpu.backend import CpuBackend

pytest_plugins = ["pytester"]

BROKEN = """
from burn.plugins import BackendSpec, DeviceInfo, hookimpl


def load():
    import numpy as np

    from burn_cpu.backend import CpuBackend

    class Broken(CpuBackend):
        def name(self, device):
            return "broken"

        def softmax(self, x, *, axis):
            return np.flip(self.ops.decomposed("softmax", x, axis=axis), axis)

        def relu_grad(self, output, g):
            return -self.ops.decomposed("relu_grad", output, g)

        def sqrt(self, x):
            x = np.sqrt(x)
            return x.astype(np.float64) if x.dtype == np.float32 else x

        def negative(self, x):
            result = np.negative(x)
            if x.shape:
                x[...] = result
            return result

        def gather(self, x, indices, *, axis):
            return super().gather(x, np.clip(indices, 0, x.shape[axis] - 1), axis=axis)

        def floor(self, x):
            raise OSError("the driver has gone")

    return Broken()


@hookimpl
def burn_backends():
    devices = [DeviceInfo("unit", 0, "broken hardware")]
    return [BackendSpec("broken", load, lambda: devices, ("unit",), fork_safe=("unit",))]
"""


class Flipped(CpuBackend):
    """A backend with a bug in one op."""

    def name(self, device):
        return "flipped"

    def softmax(self, x, *, axis):
        return np.flip(self.ops.decomposed("softmax", x, axis=axis), axis)


class Unfinished(NumpyBackend):
    """A backend without one of the required ops."""

    def name(self, device):
        return "unfinished"

    gather = Backend.gather


class Single(NumpyBackend):
    """A backend of a device that has few dtypes, and no float64 among them."""

    HAS = frozenset([burn.bool, burn.int32, burn.float32])

    def name(self, device):
        return "single"

    def native_dtype(self, dtype):
        return super().native_dtype(dtype) if dtype in self.HAS else None


class Late(Single):
    """A backend that looks at indices when values are read, and then names the op it was in."""

    def __init__(self):
        super().__init__()
        self.noted = []

    def name(self, device):
        return "late"

    def gather(self, x, indices, *, axis):
        try:
            return super().gather(x, indices, axis=axis)
        except IndexError as error:
            self.noted.append(error)
            return super().gather(x, np.clip(indices, 0, x.shape[axis] - 1), axis=axis)

    def sync(self, device):
        if self.noted:
            error = self.noted[0]
            self.noted.clear()
            error.operation = "gather(...)"
            raise error

    def to_data(self, x):
        self.sync(None)
        return super().to_data(x)


def backend(kind):
    """Context in which there is a backend of one device."""
    name = kind().name(burn.DeviceId(0))
    return registered(BackendSpec(name, kind, lambda: [DeviceInfo("unit", 0, "none")], ("unit",)))


# Programs that show a failure.


BUGS = {
    ("values", "softmax"): "AssertionError",
    ("values", "sqrt"): "AssertionError",
    ("values", "negative"): "AssertionError",
    ("values", "floor"): "OSError: the driver has gone",
    ("settings", "softmax"): "AssertionError",
    ("errors", "gather"): "AssertionError: Exception was not raised",
    ("gradients", "relu"): "AssertionError",
    ("second_gradients", "relu"): "AssertionError",
    ("threads", "floor"): "OSError: the driver has gone",
}
"""What raises in the program for the first failure of a suite and op, if `BROKEN` is installed."""


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """The folder of a broken plugin, and what ``burn check`` says of it."""
    folder = tmp_path_factory.mktemp("broken")
    (folder / "burn_broken.py").write_text(BROKEN)
    metadata = folder / "burn_broken-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: burn-broken\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[burn]\nbroken = burn_broken\n")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]),
        "BURN_PLUGINS": "cpu,broken",
    }
    options = [f"--op={op}" for _, op in BUGS] + [f"--suite={suite}" for suite, _ in BUGS]
    result = subprocess.run(
        [sys.executable, "-m", "burn", "check", "broken", *options, "--json=report.json"],
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert result.returncode == 1, result.stderr
    (report,) = json.loads((folder / "report.json").read_text())["devices"]
    return environment, result.stdout, report


RUN_EACH = """
import json, runpy, sys, traceback

raised = []
for path in sys.argv[1:]:
    try:
        runpy.run_path(path, run_name="__main__")
    except Exception:
        raised.append(traceback.format_exc())
    else:
        raised.append("")
print(json.dumps(raised), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def raised(broken, tmp_path_factory):
    """What raises in the program of each bug: all of them run in one process."""
    environment, _, report = broken
    folder = tmp_path_factory.mktemp("programs")
    for suite, op in BUGS:
        begin = f"{suite}/{op}/"
        failure = next(
            failure for failure in report["failures"] if failure["check"].startswith(begin)
        )
        (folder / f"{suite}-{op}.py").write_text(failure["script"])
    shown = subprocess.run(
        [sys.executable, "-c", RUN_EACH, *(folder / f"{suite}-{op}.py" for suite, op in BUGS)],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return folder, dict(zip(BUGS, json.loads(shown.stderr.splitlines()[-1]), strict=True))


@pytest.mark.parametrize(("suite", "op"), BUGS)
def test_the_program_that_is_printed_fails(raised, suite, op):
    folder, texts = raised
    assert len((folder / f"{suite}-{op}.py").read_text().splitlines()) <= 40
    assert BUGS[suite, op] in texts[suite, op]


@pytest.mark.parametrize(
    ("suite", "op"),
    [
        pytest.param(*bug, marks=() if bug[0] == "threads" else pytest.mark.exhaustive)
        for bug in BUGS
    ],
)
def test_the_program_that_is_printed_fails_by_itself(broken, raised, suite, op):
    shown = subprocess.run(
        [sys.executable, raised[0] / f"{suite}-{op}.py"],
        env=broken[0],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert shown.returncode == 1
    assert BUGS[suite, op] in shown.stderr


def test_the_command_prints_the_program(broken):
    _, output, report = broken
    assert report["failures"][0]["script"] in output


def first_of_each(checks):
    """The first check of each suite and op."""
    seen = set()
    for check in checks:
        if (check.suite, check.op) not in seen:
            seen.add((check.suite, check.op))
            yield check


def every_sort_of_check():
    """A check of each suite and op on float dtypes, of each way in which programs are written."""
    subject = Subject.of(burn.Device("cpu"))
    for suite in (
        "values",
        "settings",
        "errors",
        "gradients",
        "second_gradients",
        "gradient_types",
        "special_cases",
    ):
        yield from first_of_each(checks_of(subject, Selection(suites=(suite,))))


def test_programs_of_what_works_run_without_an_error(capsys, everything):
    """Each op's, of each suite: the program for any backend is valid Python."""
    for check in list(every_sort_of_check())[:: 1 if everything else 7]:
        program = check.script()
        if program:
            exec(compile(program, check.name, "exec"), {})  # noqa: S102 — that is what it is for


def test_a_program_of_a_minimal_or_unregistered_backend_runs(everything):
    selection = Selection(ops=("softmax", "select", "conv"), quick=True)
    for subject in (
        Subject.of(burn.Device("cpu"), minimal=True),
        Subject(NumpyBackend(), burn.DeviceId(0)),
        Subject(NumpyBackend(), burn.DeviceId(0), minimal=True),
    ):
        checks = checks_of(subject, selection)
        for check in checks if everything else first_of_each(checks):
            exec(compile(check.script(), check.name, "exec"), {})  # noqa: S102 — as above


# What checks say.


def test_a_failure_says_what_was_called_and_what_came_out():
    with backend(Flipped):
        check = find_check(Subject.of(burn.Device("flipped")), "values/softmax/float32/last axis")
        with pytest.raises(Failure, match=r"softmax\(float32\[3, 4\], axis=1\).*expected"):
            check.body()
    with pytest.raises(ArgumentError, match="has no check 'values/relu/x'"):
        find_check(Subject.of(burn.Device("cpu")), "values/relu/x")


@pytest.fixture(scope="module")
def all_checks(everything):
    """The checks of ``cpu:0``."""
    return list(checks_of(Subject.of(burn.Device("cpu")), Selection(quick=not everything)))


def test_names_of_checks_are_unique_and_the_same_every_time(all_checks):
    quick = Selection(quick=True)
    minimal = Subject.of(burn.Device("cpu"), minimal=True)
    for checks in (all_checks, list(checks_of(minimal, quick))):
        names = [check.name for check in checks]
        assert len(set(names)) == len(names)
    again = [check.name for check in checks_of(Subject.of(burn.Device("cpu")), quick)]
    assert [check.name for check in all_checks if check.is_quick] == again


def test_each_suite_has_checks_for_the_cpu_and_quick_ones(all_checks):
    assert {check.suite for check in all_checks} == set(SUITES)
    assert {check.suite for check in all_checks if check.is_quick} == set(SUITES)
    tried = {check.op for check in all_checks if check.is_quick and check.suite == "values"}
    assert tried == set(REGISTRY)


def test_a_required_op_that_is_missing_is_named_and_what_needs_it_is_unsupported():
    with backend(Unfinished):
        report = run("unfinished", ops=["gather", "select", "relu"], quick=True)
    (failure,) = [failure for failure in report.failures if failure.check.suite == "contract"]
    assert "no method 'gather', which is required" in failure.message
    assert all(failure.check.op == "gather" for failure in report.failures)
    states = {row.op: set(row.cells.values()) for row in report.rows}
    assert "unsupported" in states["gather"]
    assert states["relu"] <= {"passed", "derived", "unsupported"}
    assert report.counts["unsupported"] > 0


def test_a_device_of_few_dtypes_conforms_with_those():
    suites = ["contract", "dtypes", "errors", "gradients", "values"]
    with backend(Single):
        report = run("single", suites=suites, ops=["add", "conv", "gather", "pow"], quick=True)
    assert report.conforms, report.failures[:1]
    tried = {result.check.dtype for result in report.results if result.check.suite == "values"}
    assert tried == Single.HAS
    assert not report.counts["unsupported"]


def test_an_error_that_comes_late_may_name_the_part_of_an_op_that_it_is_of():
    with backend(Late):
        report = run("late", suites=["errors"], ops=["gather", "select", "embedding"])
        assert report.conforms, report.failures[:1]
        assert run("late", suites=["failures"]).conforms


def test_minimal_tries_the_required_ops_alone():
    report = run("cpu", ops=["softmax"], dtypes=["float32"], quick=True, minimal=True)
    assert report.conforms
    assert report.rows[0].origin == "derived"
    found = {result.check.suite for result in report.results}
    assert found == {"values", "draws", "batching", "memory", "quantization"}
    options = {"ops": ["softmax"], "dtypes": ["float32"], "suites": ["values"], "quick": True}
    report = run("cpu", minimal=True, compiles=True, **options)
    assert report.conforms
    assert report.ways["generated kernels"] == 0


class Interpreting(CpuBackend):
    """Compiles no program."""

    def name(self, device):
        return "interpreting"

    def compile(self, graph, device):
        return None


class Inexact(Interpreting):
    """Calls of programs give other bits, as near as any kernel."""

    def name(self, device):
        return "inexact"

    def compile(self, graph, device):
        return Execution(graph, resolve(Nudged(), device))


class Nudged(CpuBackend):
    def matmul(self, a, b):
        return nudged(super().matmul(a, b))

    def maximum(self, a, b):
        return nudged(super().maximum(a, b))


def nudged(found):
    found = np.asarray(found)
    return found + found * np.finfo(found.dtype).eps if found.dtype.kind == "f" else found


def test_a_report_of_compiled_ops_says_how_many_ran_generated_kernels():
    options = {"ops": ["exp", "matmul", "argwhere"], "dtypes": ["float32"], "compiles": True}
    options |= {"quick": True, "suites": ["values"]}
    with backend(Interpreting):
        found = run("interpreting", **options)
    assert found.conforms, found.failures[:1]
    assert found.title.endswith(", compiled, quick")
    by_op = Counter((result.check.op, result.way) for result in found.results)
    count = sum(by_op.values())
    eager = by_op["argwhere", ""]
    assert 0 < eager < count
    assert found.ways == {
        "generated kernels": 0,
        "no generated kernel": count - eager,
        "no program": eager,
    }
    assert found.as_json()["ways"] == found.ways
    native = run("cpu", **options | {"ops": ["exp"]})
    assert native.conforms
    count = len(native.results) - 1  # one sample has no elements
    assert native.ways == {"generated kernels": count, "no generated kernel": 1, "no program": 0}
    assert f"{count} generated kernels" in render([native])
    assert run("cpu", ops=["exp"], quick=True, suites=["values"]).ways == {}


@pytest.mark.parametrize(("op", "conforms"), [("matmul", True), ("maximum", False)])
def test_a_program_that_calls_an_op_alone_gives_its_bits_if_no_library_rounds(op, conforms):
    options = {"ops": [op], "dtypes": ["float32"], "quick": True, "suites": ["values"]}
    with backend(Inexact):
        assert run("inexact", **options).conforms
        found = run("inexact", compiles=True, **options)
    assert found.conforms is conforms, found.failures[:1]


def test_a_loop_of_generated_kernels_is_near_the_eager_one():
    found = run("cpu", ops=["scan"], dtypes=["float16"], suites=["values"], compiles=True)
    assert found.conforms, found.failures[:1]


def test_a_function_that_is_not_compiled_fails(monkeypatch):
    options = {"ops": ["softmax"], "suites": ["compiled"], "quick": True, "compiles": True}
    assert run("cpu", **options).conforms
    monkeypatch.setenv("BURN_COMPILE", "0")
    (failure,) = run("cpu", **options).failures
    assert "ran as it is written 3 times, not once" in failure.message


def test_the_statistic_of_kolmogorov_and_smirnov_is_that_of_scipy():
    from scipy import stats

    numbers = np.random.default_rng(5).normal(size=400)
    expected = stats.kstest(numbers, "norm").statistic
    found = kolmogorov_smirnov(
        numbers, lambda x: np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in x])
    )
    assert found == pytest.approx(expected, rel=1e-12)


# Lists of expected failures.


LIST = """
# what is known
values/softmax/*  # along the wrong axis @ all
settings/softmax/* @ flipped:*  # likewise
gradients/softmax/* @ opencl*   # elsewhere
"""


def listed(text, tmp_path, **options):
    """The report of softmax on the backend with a bug, with a list of expected failures."""
    path = tmp_path / "expected.txt"
    path.write_text(text)
    with backend(Flipped):
        return run("flipped", ops=["softmax"], expected_failures=path, **options)


def test_what_is_expected_to_fail_and_does_is_no_failure(tmp_path):
    report = listed("values/softmax/float32/last axis  # wrong axis", tmp_path, suites=["values"])
    ends = {result.check.name: result.status for result in report.results}
    assert ends["values/softmax/float32/last axis"] is Status.EXPECTED
    assert ends["values/softmax/float32/first axis"] is Status.FAILED


def test_a_star_stands_for_many_and_each_of_them_that_passes_is_an_error(tmp_path):
    report = listed("values/*  # all of them", tmp_path, suites=["values"])
    unexpected = [result for result in report.results if result.status is Status.UNEXPECTED]
    assert "values/softmax/float32/length 1" in {item.check.name for item in unexpected}
    assert {result.status for result in report.results} == {Status.EXPECTED, Status.UNEXPECTED}
    assert not report.conforms
    assert "expects it to fail: all of them" in unexpected[0].message


def test_a_line_can_be_for_some_devices_alone():
    with backend(Flipped):
        subject = Subject.of(burn.Device("flipped"))
        expected = ExpectedFailures(LIST)
        assert expected.reason(subject, "values/softmax/int8/x") == "along the wrong axis @ all"
        assert expected.reason(subject, "settings/softmax/x") == "likewise"
        assert expected.reason(subject, "gradients/softmax/x") is None
        assert not expected.unknown(subject)
        hidden = Subject.of(burn.Device("flipped"), minimal=True)
        assert ExpectedFailures("values/* @ minimal  # x").reason(hidden, "values/x") == "x"
        assert ExpectedFailures("values/* @ native  # x").reason(hidden, "values/x") is None
        both = ExpectedFailures("values/* @ cpu:* flipped:* native compiled  # x")
        assert both.reason(subject, "values/x") == "x"
        assert both.reason(hidden, "values/x") is None
        assert ExpectedFailures("values/* @ cpu:* native # x").reason(subject, "values/x") is None


def test_a_line_that_fits_no_check_is_an_error(tmp_path):
    report = listed("values/sofmax/*  # a typo", tmp_path, suites=["settings"])
    assert not report.conforms
    assert "line 1 of" in report.unknown[0]
    assert "values/sofmax/*" in report.unknown[0]


def test_a_line_without_a_reason_is_refused():
    with pytest.raises(ArgumentError, match="line 2 of the list has no reason"):
        ExpectedFailures("# comment\nvalues/exp/float32/far\n")


def test_the_list_beside_the_module_of_a_plugin_is_found(install, tmp_path, run_burn):
    environment = {"PYTHONPATH": install("broken", BROKEN), "BURN_PLUGINS": "broken"}
    (tmp_path / "expected_failures.txt").write_text("values/floor/*  # the driver has gone\n")
    result = run_burn("check", "broken", "--op", "floor", "--suite", "values", **environment)
    assert result.returncode == 0, result.stdout
    assert "expected float16-64" in result.stdout


# Reports and the command.


def check(*arguments):
    return CliRunner().invoke(main, ["check", *map(str, arguments)])


def test_the_command_prints_a_line_per_op_and_exits_with_0():
    result = check("cpu", "--op", "relu", "--op", "log_softmax", "--quick")
    assert result.exit_code == 0, result.output
    lines = {line.split()[0]: line for line in result.stdout.splitlines() if line.strip()}
    assert "generated" in lines["relu"]
    assert "float16-64, bfloat16" in lines["relu"]
    assert lines["relu"].rstrip().endswith(" ms")
    assert "conforms" in result.stdout


def test_the_command_exits_with_1_on_a_failure_and_prints_the_program():
    with backend(Flipped):
        result = check("flipped:0", "--op", "softmax", "--dtype", "float32", "--suite", "values")
    assert result.exit_code == 1
    assert "failed float32" in result.stdout
    assert "FAILED values/softmax/float32/" in result.stdout
    assert "device = burn.Device('flipped:0')" in result.stdout
    assert "does not conform" in result.stdout


def test_json_and_html_have_every_op_dtype_and_failure(tmp_path):
    with backend(Flipped):
        page = tmp_path / "r.html"
        result = check(
            *("flipped", "--op", "softmax", "--op", "add", "--quick"),
            *("--json", "-", "--html", page),
        )
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert document["conforms"] is False
    (device,) = document["devices"]
    ops = {item["name"]: item for item in device["ops"]}
    assert ops["add"]["failures"] == 0
    assert ops["add"]["dtypes"]["float32"] == "passed"
    assert 0 <= ops["add"]["worst_error"] < 1
    assert ops["softmax"]["dtypes"]["float32"] == "failed"
    assert ops["softmax"]["worst_error"] > 1
    assert device["counts"]["failed"] == len(device["failures"])
    assert all(failure["script"] for failure in device["failures"])
    assert len(device["slowest"]) == 10
    text = page.read_text(encoding="utf-8")
    assert text.count("<details") == len(device["failures"])
    assert "&#x27;" in text  # what comes from outside is escaped
    assert "<script" not in text


def test_a_page_of_several_devices_has_them_all():
    report = run("cpu", ops=["relu"], quick=True)
    page = render([report, report])
    assert page.count("cpu:0") >= 2
    assert page.endswith("</body></html>\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cpu", "--op", "sofmax"], "there is no op 'sofmax'. Did you mean softmax"),
        (["cpu", "--op", "amax"], "there is no op 'amax'. Did you mean max or nanmax or argmax?"),
        (["cpu", "--suite", "value"], "there is no suite 'value'. Did you mean values"),
        (["cpu", "--dtype", "float31"], "unknown dtype 'float31'"),
        (["cpu:7"], "there is no device 'cpu:7'"),
        (["cpux"], "no backend 'cpux'"),
    ],
)
def test_what_there_is_not_is_an_error_on_one_line(arguments, message):
    result = check(*arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_suites_and_checks_are_listed():
    result = check("cpu", "--list", "--op", "softmax")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line for line in lines if line.startswith("# values:")]
    assert "values/softmax/float32/last axis" in lines
    chosen = check("cpu", "--list", "--op", "relu", "--dtype", "float32").stdout.splitlines()
    names = [line for line in chosen if not line.startswith("# ")]
    assert names
    assert all("/relu/float32/" in name for name in names)


# The plugin of pytest.


# By its module and not by its entry point, so that this checkout is what is tried.
PLUGIN = ["-p", "no:burn", "-p", "burn.testing.pytest_plugin", "-p", "no:cacheprovider"]
KIT = [*PLUGIN, "--pyargs", "burn.testing"]


@pytest.fixture
def run_kit(pytester):
    """Run pytest on the kit in this process."""
    pytester.makeini("[pytest]")
    return lambda *arguments: pytester.runpytest_inprocess(*KIT, *arguments)


def test_pytest_collects_and_runs_the_checks_of_a_device(run_kit):
    result = run_kit("--burn-device=cpu:0", "--burn-quick", "--burn-op=relu", "-k", "float32")
    assert result.ret == 0
    assert result.parseoutcomes()["passed"] == 11
    result = run_kit("--burn-device=cpu", "--burn-op=relu", "--burn-suite=errors", "-v")
    assert result.parseoutcomes() == {}  # there is nothing to refuse


def test_pytest_prints_the_program_that_shows_a_failure(run_kit):
    with backend(Flipped):
        result = run_kit("--burn-device=flipped", "--burn-op=softmax", "--burn-dtype=bfloat16")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["device = burn.Device('flipped:0')"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_pytest_knows_expected_failures(run_kit, tmp_path):
    path = tmp_path / "list.txt"
    options = [f"--burn-expected-failures={path}", "--burn-device=flipped", "-rx"]
    options += ["--burn-suite=values", "--burn-dtype=float32"]
    with backend(Flipped):
        path.write_text("values/softmax/float32/last axis  # flipped\n")
        result = run_kit("--burn-op=softmax", *options)
        assert result.parseoutcomes() == {"failed": 1}  # by the other samples
        path.write_text("values/relu/float32/vector  # passes\n")
        result = run_kit("--burn-op=relu", *options)
        assert result.ret == 1
        result.stdout.fnmatch_lines(["*expects it to fail: passes"])
        path.write_text("values/sofmax/*  # a typo\n")
        result = run_kit("--burn-op=softmax", *options)
        assert result.ret == 2
        result.stdout.fnmatch_lines(["*line 1 of*fits no check: values/sofmax/[*]"])


def test_pytest_reports_what_was_expected_to_fail_and_did(run_kit, tmp_path):
    with backend(Unfinished):
        path = tmp_path / "list.txt"
        path.write_text("contract/gather/required  # not written yet\n")
        options = ["--burn-device=unfinished", f"--burn-expected-failures={path}", "-rxs"]
        result = run_kit(*options, "--burn-op=gather", "--burn-suite=contract")
        assert result.parseoutcomes() == {"xfailed": 1}
        result.stdout.fnmatch_lines(["*not written yet"])
        result = run_kit(*options, "--burn-op=gather", "--burn-dtype=float32")
        assert set(result.parseoutcomes()) == {"skipped"}
        result.stdout.fnmatch_lines(["*does not implement the required op 'gather'*"])


def test_pytest_says_what_is_missing_or_unknown(run_kit):
    result = run_kit()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--burn-device=cpu:0*"])
    result = run_kit("--burn-device=cpux")
    assert result.ret == 2
    result.stdout.fnmatch_lines(["*no backend 'cpux'*"])
    result = run_kit("--burn-device=cpu", "--burn-op=sofmax")
    assert result.ret == 2
    result.stdout.fnmatch_lines(["*Did you mean softmax*"])


def test_large_checks_have_a_marker_and_are_asked_for(run_kit):
    options = ["--burn-device=cpu", "--burn-suite=sizes", "--co", "-q"]
    assert "2**31" not in run_kit(*options).stdout.str()
    found = run_kit(*options, "--burn-large", "-m", "large").stdout.str()
    assert "sizes/more than 2**31 bytes" in found
    assert "sizes/int8" not in found


def test_the_plugin_imports_nothing_until_it_is_used(tmp_path, run_python):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_nothing.py").write_text(
        "import sys\n\ndef test_nothing():\n"
        "    assert 'numpy' not in sys.modules\n"
        "    assert 'burn.testing.samples' not in sys.modules\n"
    )
    others = ["-p", "no:hypothesispytest", "-p", "no:anyio"]
    ini = ["-c", tmp_path / "pytest.ini"]
    result = run_python("-m", "pytest", *PLUGIN, *others, *ini, tmp_path)
    assert result.returncode == 0, result.stdout


@pytest.mark.exhaustive  # the gate itself is such a run
def test_a_run_shared_out_among_processes_has_the_same_tests(tmp_path, run_python):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    options = ["--burn-device=cpu", "--burn-quick", "--burn-op=relu", "-n2"]
    command = ["-m", "pytest", *KIT, "-c", tmp_path / "pytest.ini", *options]
    result = run_python(*command, BURN_PLUGINS="cpu")
    assert result.returncode == 0, result.stdout + result.stderr


def test_core_declares_the_plugin_and_does_not_need_pytest():
    project = Path(burn.__file__).parents[2] / "pyproject.toml"
    with project.open("rb") as file:
        declared = tomllib.load(file)["project"]
    assert declared["entry-points"]["pytest11"] == {"burn": "burn.testing.pytest_plugin"}
    assert not [
        dependency for dependency in declared["dependencies"] if dependency.startswith("pytest")
    ]
    assert [text for text in declared["optional-dependencies"]["test"] if text.startswith("pytest")]


def test_a_device_that_cannot_be_opened_fails_no_check_of_another_backend_and_is_named():
    """Its backend raises whatever it likes, also when it is asked what the device can do."""
    refused = mock_backend("mock", [MockDevice(refusal="it belongs to another process")])
    cpu = Subject.of(burn.Device("cpu"))
    with registered(refused):
        moves = find_check(cpu, "transfers/float32/to every other device and back").run()
        names = find_check(cpu, "transfers/every other device works").run()
    assert moves.status in (Status.PASSED, Status.SKIPPED), moves.message
    assert names.status is Status.SKIPPED, names.message
    assert "mock:0 is left out: mock:0 cannot be opened: OSError: it belongs" in names.message
