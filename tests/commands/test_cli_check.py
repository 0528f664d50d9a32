"""``burn devices --check``: real computations, and what becomes of their failures."""

import json
import os
import re
import threading

import numpy as np
import pytest
from click.testing import CliRunner

import burn
from burn.cli import main
from burn.cli.device_check import check
from burn.plugins import BackendSpec, DeviceInfo, registered, registry
from burn_cpu.backend import CpuBackend


class WrongMatmul(CpuBackend):
    def matmul(self, a, b):
        result = np.array(super().matmul(a, b))
        result[2, 3] += 1
        return result


class WrongBits(CpuBackend):
    def random_bits(self, **attributes):
        return super().random_bits(**attributes) ^ 1


class LossyTransfer(CpuBackend):
    def to_data(self, x):
        data = super().to_data(x)
        return type(data)(data.array[..., ::-1]) if data.array.dtype == np.int16 else data


class LateFailure(CpuBackend):
    def sync(self, device):
        raise burn.ExecutionError("a kernel failed\nsome time ago")


class LeavingBackend(CpuBackend):
    def sum(self, x, **attributes):
        raise SystemExit(3)


def cannot_load():
    raise ImportError("libnew.so: cannot open")


def backend(load, name="new"):
    """Context in which there is a backend with one device."""
    probe = [DeviceInfo("one", 0, "Something")]
    return registered(BackendSpec(name, load, lambda: list(probe), ("one",)))


@pytest.fixture(autouse=True)
def without_others(monkeypatch):
    """Of the backends that are installed, only one that a process loads in no time."""
    monkeypatch.setenv("BURN_PLUGINS", "cpu")
    burn.refresh_plugins()
    yield
    monkeypatch.undo()
    burn.refresh_plugins()


def run(*arguments):
    return CliRunner().invoke(main, ["devices", "--check", *arguments])


def outcome(load):
    """Exit status, and the line of a device, of a check with this backend."""
    with backend(load):
        result = run()
    (line,) = [line for line in result.stdout.splitlines() if line[4:].startswith("  new:0  ")]
    assert "PASS  cpu:0  " in result.stdout  # whatever becomes of the others
    return result.exit_code, line


def test_devices_that_compute_what_they_should_pass(run_burn, everything):
    result = run_burn("devices", "--check", **({} if everything else {"BURN_PLUGINS": "cpu"}))
    assert result.returncode == 0, result.stdout
    verdicts = [line.split()[:2] for line in result.stdout.splitlines() if " s" in line[-2:]]
    assert ["PASS", "cpu:0"] in verdicts
    assert {verdict for verdict, _ in verdicts} == {"PASS"}


def test_every_device_of_a_backend_is_checked():
    probe = [DeviceInfo("one", 0, "Something"), DeviceInfo("two", 1, "Something")]
    with registered(BackendSpec("new", CpuBackend, lambda: probe, ("one", "two"))):
        lines = run().stdout.splitlines()
    assert [line.split()[:2] for line in lines if "new/" in line and line.endswith(" s")] == [
        ["PASS", "new/one:0"],
        ["PASS", "new/two:1"],
    ]


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        (cannot_load, "load: ImportError: libnew.so: cannot open"),
        pytest.param(
            LossyTransfer,
            "transfer: 24 of 24 elements are wrong, the first at (0, 0, 0): 1 instead",
            marks=pytest.mark.exhaustive,
        ),
        (WrongMatmul, "matrix product: 1 of 561 elements are wrong, the first at (2, 3): "),
        pytest.param(LeavingBackend, "reductions: SystemExit: 3", marks=pytest.mark.exhaustive),
        pytest.param(
            WrongBits,
            "random bits: 4 of 4 elements are wrong, the first at (0,): 1713891540 ",
            marks=pytest.mark.exhaustive,
        ),
        (LateFailure, "sync: a kernel failed some time ago"),
    ],
    ids=lambda value: getattr(value, "__name__", "reason"),
)
def test_what_is_wrong_fails_with_its_reason_and_exit_status_1(load, reason):
    status, line = outcome(load)
    assert status == 1
    assert line.startswith("FAIL  new:0  ")
    assert reason in line


def test_json_says_it_of_each_device():
    with backend(WrongBits):
        result = run("--json")
    assert result.exit_code == 1
    checks = {device["name"]: device["check"] for device in json.loads(result.stdout)["devices"]}
    assert checks["cpu:0"]["passed"] is True
    assert checks["cpu:0"]["reason"] is None
    assert 0 < checks["cpu:0"]["seconds"] < 60
    assert checks["new:0"]["passed"] is False
    assert checks["new:0"]["reason"].startswith("random bits: ")


def test_a_check_loads_what_only_the_library_knows():
    with backend(CpuBackend):
        result = run("--json")
    (device,) = [
        device for device in json.loads(result.stdout)["devices"] if device["backend"] == "new"
    ]
    assert device["dtypes"]["float32"] == ["storage", "arithmetic"]


def test_verbose_shows_where_a_failure_comes_from():
    with backend(LateFailure):
        result = run("-v")
    assert 'raise burn.ExecutionError("a kernel failed' in result.stdout


def test_a_broken_plugin_fails_the_check(run_burn, install):
    path = install("broken", "raise OSError('no')")
    result = run_burn("devices", "--check", PYTHONPATH=path, BURN_PLUGINS="cpu,broken")
    assert result.returncode == 1
    assert re.search(r"^FAIL  broken +OSError: no$", result.stdout, re.MULTILINE)
    assert "PASS  cpu:0 " in result.stdout


CRASHING = """
import signal
from burn.plugins import BackendSpec, DeviceInfo, hookimpl

def load():
    signal.raise_signal(signal.{signal})

@hookimpl
def burn_backends():
    return [BackendSpec("crashing", load, lambda: [DeviceInfo("one", 0, "")], ("one",))]
"""


@pytest.mark.skipif(os.name == "nt", reason="its processes end without signals")
@pytest.mark.parametrize("name", [pytest.param("SIGSEGV", marks=pytest.mark.exhaustive), "SIGABRT"])
def test_a_plugin_that_ends_the_process_is_named_and_the_others_are_checked(
    run_burn, install, name
):
    path = install("crashing", CRASHING.format(signal=name))
    variables = {"PYTHONPATH": path, "BURN_PLUGINS": "cpu,crashing"}
    result = run_burn("devices", "--check", "-v" if name == "SIGABRT" else "--json", **variables)
    assert result.returncode == 1
    reason = f"load: the process was ended by {name}"
    if name == "SIGABRT":
        assert re.search(rf"^FAIL  crashing:0 .*{reason}", result.stdout, re.MULTILINE)
        assert "PASS  cpu:0 " in result.stdout
        assert 'burn_crashing.py", line 6 in load' in result.stdout
    else:
        checks = {
            device["name"]: device["check"] for device in json.loads(result.stdout)["devices"]
        }
        assert checks["cpu:0"]["passed"] is True
        assert checks["crashing:0"]["reason"] == reason


def test_without_devices_nothing_has_passed(run_burn):
    assert run_burn("devices", "--check", BURN_PLUGINS="").returncode == 1


def test_a_device_that_does_not_answer_fails_in_time():
    release = threading.Event()

    class Hanging(CpuBackend):
        def matmul(self, a, b):
            release.wait()
            return super().matmul(a, b)

    with backend(Hanging):
        result = check(burn.Device("new"), seconds=0.2)
        release.set()
    assert not result.passed
    assert result.reason == "matrix product: no answer within 0.2 s"
    assert 0.2 <= result.seconds < 10


def test_a_load_that_does_not_answer_keeps_nothing_else_from_being_listed(monkeypatch):
    release = threading.Event()

    def load():
        release.wait()
        return CpuBackend()

    monkeypatch.setattr("burn.cli.device_check.TIME_LIMIT_SECONDS", 0.2)
    with backend(load):
        result = run("--json")
        release.set()
        registry.entries["new"].load()
    devices = {device["name"]: device for device in json.loads(result.stdout)["devices"]}
    assert devices["new:0"]["check"]["reason"] == "load: no answer within 0.2 s"
    assert devices["new:0"]["dtypes"] is None
    assert devices["cpu:0"]["check"]["passed"] is True
