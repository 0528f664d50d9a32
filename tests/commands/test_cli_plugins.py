"""The commands ``burn plugins`` and ``burn ops``: what is installed, and what it brings."""

import json
import os
import re
import signal

import pytest
from click.testing import CliRunner

import burn
from burn.cli import main
from burn.ops import REGISTRY
from burn.plugins import API_VERSION, BackendSpec, DeviceInfo, registered
from burn_cpu.backend import CpuBackend

SEVERAL = """
from burn.plugins import BackendSpec, DeviceInfo, hookimpl


def load():
    raise AssertionError("listing plugins must not load a backend")


def fail():
    raise OSError("no driver")


@hookimpl
def burn_backends():
    return [
        BackendSpec("working", load, lambda: [DeviceInfo("one", 0, "Something")] * 1, ("one",)),
        BackendSpec("idle", load, list, ("one", "two")),
        BackendSpec("failing", load, fail, ("one",)),
        BackendSpec("modern", load, list, ("one",), api_version=(0, 99)),
    ]
"""

BROKEN = "raise ImportError('no such thing')"


def plugins(run_burn, **variables):
    result = run_burn("plugins", "--json", **variables)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def by_backend(document):
    return {plugin["backend"] or plugin["name"]: plugin for plugin in document["plugins"]}


def ops(*arguments, width=80, status=0):
    result = CliRunner(env={"COLUMNS": str(width)}).invoke(main, ["ops", *arguments])
    assert result.exit_code == status, result.output
    return result.stdout


def test_plugins_says_where_each_backend_comes_from_and_how_far_it_is(run_burn):
    lines = run_burn("plugins").stdout.splitlines()
    (cpu,) = [line.split() for line in lines if line.startswith("cpu ")]
    api = ".".join(map(str, API_VERSION))
    assert cpu == ["cpu", "ready", api, "burn-cpu", burn.__version__, "cpu", "=", "burn_cpu.plugin"]


def test_plugins_says_what_changed_since_the_version_of_a_plugin(run_burn, install):
    path = install("several", SEVERAL)
    lines = run_burn("plugins", COLUMNS="1000", PYTHONPATH=path).stdout.splitlines()
    (line,) = [line for line in lines if line.startswith("working of ")]
    assert "Written for plugin API 0.1; burn-core has" in line
    assert not any(line.startswith("cpu of ") for line in lines)


def test_json_has_the_same_under_stable_keys(run_burn):
    document = plugins(run_burn)
    assert list(document) == ["schema", "version", "api_version", "plugins"]
    assert document["schema"] == 1
    assert document["api_version"] == list(API_VERSION)
    assert by_backend(document)["cpu"] == {
        "name": "cpu",
        "entry_point": "burn_cpu.plugin",
        "distribution": "burn-cpu",
        "version": burn.__version__,
        "backend": "cpu",
        "device_types": ["cpu"],
        "api_version": list(API_VERSION),
        "devices": 1,
        "state": "ready",
        "reason": None,
    }


def test_every_backend_of_a_plugin_has_a_state_of_its_own(run_burn, install):
    found = by_backend(plugins(run_burn, PYTHONPATH=install("several", SEVERAL)))
    assert {
        name: value["state"] for name, value in found.items() if value["name"] == "several"
    } == {
        "working": "ready",
        "idle": "no hardware",
        "failing": "failed",
        "modern": "failed",
    }
    assert found["working"]["devices"] == 1
    assert found["idle"]["devices"] == 0
    assert found["idle"]["device_types"] == ["one", "two"]
    assert found["failing"]["devices"] is None
    assert found["failing"]["reason"] == "OSError: no driver"
    assert found["modern"]["api_version"] == [0, 99]
    assert "0.99" in found["modern"]["reason"]
    assert found["cpu"]["state"] == "ready"


def test_a_plugin_that_cannot_be_imported_is_listed_with_its_reason(run_burn, install):
    path = install("broken", BROKEN)
    found = by_backend(plugins(run_burn, PYTHONPATH=path))["broken"]
    assert found["state"] == "failed"
    assert found["reason"] == "ImportError: no such thing"
    assert found["backend"] is found["api_version"] is found["devices"] is None
    result = run_burn("plugins", PYTHONPATH=path)
    assert result.returncode == 0
    assert re.search(
        r"^-  +failed  +-  +burn-broken 1\.2  +broken = burn_broken", result.stdout, re.MULTILINE
    )
    assert "failed: broken of burn-broken 1.2: ImportError: no such thing\n" in result.stdout
    assert "Traceback" not in result.stdout
    assert "Traceback" in run_burn("plugins", "-v", PYTHONPATH=path).stdout


def test_what_a_variable_keeps_out_is_blocked_by_it(run_burn, install):
    path = install("broken", BROKEN)
    found = by_backend(plugins(run_burn, PYTHONPATH=path, BURN_DISABLE_PLUGINS="broken"))
    assert found["broken"]["state"] == "blocked"
    assert found["broken"]["reason"] == "kept out by BURN_DISABLE_PLUGINS=broken"
    found = by_backend(plugins(run_burn, PYTHONPATH=path, BURN_PLUGINS="cpu"))
    assert found["cpu"]["state"] == "ready"
    assert found["broken"]["state"] == "blocked"


def test_without_plugins_it_says_what_to_install(run_python):
    program = """
import importlib.metadata
importlib.metadata.entry_points = lambda **_: []
from burn.cli import main
main(["plugins"])
"""
    result = run_python("-c", program)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("No plugins. ")
    assert "pip install ./core ./plugins/burn-cpu" in result.stdout


@pytest.mark.parametrize("width", [40, 60, pytest.param(80, marks=pytest.mark.exhaustive), 140])
def test_the_table_of_plugins_keeps_to_the_width_and_nothing_is_cut(run_burn, install, width):
    path = install("several", SEVERAL)
    result = run_burn("plugins", PYTHONPATH=path, COLUMNS=str(width))
    table, _, _ = result.stdout.partition("\n\n")
    assert max(map(len, table.splitlines())) <= width
    assert "…" not in table
    cells = re.sub(r"\s", "", table)
    assert "burn_" in cells
    if width >= 80:
        assert table.count("several = burn_several") == 4


def test_ops_says_of_each_op_where_it_comes_from():
    output = ops("cpu")
    origins = dict(re.findall(r"^  (\w+) +(\w+) *$", output, re.MULTILINE))
    assert set(origins) == set(REGISTRY)
    assert origins["add"] == "native"
    assert origins["solve"] == "host"
    assert set(origins.values()) <= {"native", "generated", "derived", "host"}
    assert re.search(r"^linear algebra \(\d+\) *$", output, re.MULTILINE)


def test_ops_ends_with_a_line_for_each_backend():
    *_, last = ops("cpu").splitlines()
    origins = "native|generated|derived|host|unsup"
    counts = [int(number) for number in re.findall(rf"(\d+) (?:{origins})", last)]
    assert last.startswith(f"cpu of burn-cpu {burn.__version__}: {len(REGISTRY)} ops, ")
    assert sum(counts) == len(REGISTRY)
    assert counts[4] == 0


def test_ops_without_a_backend_has_a_column_for_each():
    with registered(BackendSpec("new", CpuBackend, list, ("one",))):
        head, *lines = ops(width=200).splitlines()
    assert {"cpu", "new"} < set(head.split())
    (line,) = [line for line in lines if line.startswith("  add ")]
    assert len(line.split()) == len(head.split())


def test_a_required_op_that_is_missing_is_unsupported():
    class Partial(CpuBackend):
        def __init__(self):
            super().__init__()
            self.matmul = None

    with registered(BackendSpec("partial", Partial, list, ("one",))):
        assert re.search(r"^  matmul +unsupported *$", ops("partial"), re.MULTILINE)


@pytest.mark.parametrize("width", [40, 60, 140])
def test_backends_that_do_not_fit_beside_each_other_follow(width):
    with registered(BackendSpec("new", CpuBackend, list, ("one",))):
        output = ops(width=width)
    table, _, _ = output.rpartition("\n\n")
    assert max(map(len, table.splitlines())) <= width
    assert "…" not in table
    heads = [line.split()[1:] for line in output.splitlines() if line.startswith("Op ")]
    assert {"cpu", "new"} <= {name for names in heads for name in names}


def test_ops_as_json_has_stable_keys():
    document = json.loads(ops("cpu", "--json"))
    assert list(document) == ["schema", "version", "backends", "ops"]
    assert document["schema"] == 1
    (cpu,) = document["backends"]
    counts = cpu.pop("counts")
    assert cpu == {
        "name": "cpu",
        "distribution": "burn-cpu",
        "version": burn.__version__,
        "device": "cpu:0",
        "reason": None,
    }
    assert list(counts) == ["native", "generated", "derived", "host", "unsupported"]
    (relu,) = [item for item in document["ops"] if item["name"] == "relu"]
    assert relu == {
        "name": "relu",
        "family": "rectifier",
        "required": False,
        "origins": {"cpu": "generated"},
    }
    assert len(document["ops"]) == sum(counts.values()) == len(REGISTRY)


def test_a_backend_that_cannot_be_loaded_is_a_line_unless_it_was_asked_for():
    def load():
        raise ImportError("libnew.so: cannot open")

    probe = [DeviceInfo("one", 0, "Something")]
    with registered(BackendSpec("new", load, lambda: probe, ("one",))):
        output = ops()
        assert "broken: new of (this process): ImportError: libnew.so: cannot open" in output
        assert "cpu of burn-cpu" in output
        document = json.loads(ops("--json"))
        result = CliRunner().invoke(main, ["ops", "new"])
    reasons = {backend["name"]: backend["reason"] for backend in document["backends"]}
    assert reasons["new"] == "ImportError: libnew.so: cannot open"
    assert reasons["cpu"] is None
    assert {item["origins"]["new"] for item in document["ops"]} == {None}
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "ImportError: libnew.so: cannot open" in result.stderr


@pytest.mark.parametrize(("name", "reason"), [("cud", "no backend"), ("cuda", "burn-cuda")])
def test_a_backend_that_is_not_there_is_an_error_that_says_what_to_do(name, reason):
    result = CliRunner().invoke(main, ["ops", name])
    assert result.exit_code == 1
    assert reason in result.stderr


def test_without_backends_ops_says_what_to_install(run_burn):
    result = run_burn("ops", BURN_PLUGINS="")
    assert result.returncode == 0
    assert result.stdout.startswith("No backends.")


CLAIMANT = """
from burn.plugins import BackendSpec, DeviceInfo, hookimpl

@hookimpl
def burn_backends():
    return [BackendSpec("cpu", lambda: None, lambda: [DeviceInfo("x", 0, "not ours")], ("x",))]
"""


def test_a_plugin_that_claims_a_name_of_ours_is_refused_and_named(run_burn, install):
    variables = {"PYTHONPATH": install("claimant", CLAIMANT), "BURN_PLUGINS": "cpu,claimant"}
    document = json.loads(run_burn("plugins", "--json", **variables).stdout)
    states = {
        plugin["distribution"]: (plugin["state"], plugin["reason"])
        for plugin in document["plugins"]
    }
    assert states["burn-cpu"] == ("ready", None)
    state, reason = states["burn-claimant"]
    assert state == "failed"
    assert "burn-claimant claims the name 'cpu', which belongs to burn-cpu" in reason
    result = run_burn("devices", **variables)
    assert "* cpu:0 " in result.stdout
    assert "broken: claimant of burn-claimant 1.2: burn-claimant claims" in result.stdout


@pytest.mark.skipif(os.name == "nt", reason="its processes end without signals")
@pytest.mark.parametrize("command", [["plugins"], ["devices"], ["devices", "--check"]])
def test_a_plugin_that_crashes_the_command_while_it_is_imported_is_named(
    run_burn, install, command
):
    path = install("crashing", "import signal\nsignal.raise_signal(signal.SIGSEGV)\n")
    result = run_burn(*command, PYTHONPATH=path, BURN_PLUGINS="cpu,crashing")
    assert result.returncode == -signal.SIGSEGV
    assert 'burn_crashing.py", line 2 in <module>' in result.stderr
