"""The command ``burn``."""

import importlib.metadata
import json
import os
import re

import click
import pytest
from click.testing import CliRunner

import burn
from burn.cli import main
from burn.plugins import BackendSpec, DeviceInfo, registry

BURN = "from burn.cli import main; main(prog_name='burn')"

COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-7]")
"""An escape sequence that sets a colour."""

LOADED = """
import sys
from burn.cli import main
main(sys.argv[1:], standalone_mode=False)
print(*sys.modules)
"""


@pytest.fixture
def run_burn(run_python):
    """Run the command ``burn`` as a program of its own."""

    def run(*arguments, **variables):
        return run_python("-c", BURN, *arguments, **variables)

    return run


@pytest.fixture
def broken_plugin(tmp_path):
    """Install a plugin whose import fails; the folder to put on PYTHONPATH."""
    module = tmp_path / "burn_broken.py"
    module.write_text('raise OSError("libbroken.so: cannot open\\nshared object file")\n')
    metadata = tmp_path / "burn_broken-1.2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: burn-broken\nVersion: 1.2\n")
    (metadata / "entry_points.txt").write_text("[burn]\nbroken = burn_broken\n")
    return os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])


@pytest.fixture
def register():
    """Register backends for one test: ``register("name", probe, *device_types)``."""
    names = []

    def add(name, probe, *device_types):
        def load():
            raise AssertionError("listing devices must not load a backend")

        registry.register(BackendSpec(name, load, probe, device_types))
        names.append(name)

    yield add
    for name in names:
        registry.unregister(name)


def devices(*arguments, width=80):
    """Output of ``burn devices`` in this process."""
    result = CliRunner(env={"COLUMNS": str(width)}).invoke(main, ["devices", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_version_is_that_of_the_core(run_burn):
    assert run_burn("--version").stdout == f"burn-core {burn.__version__}\n"


def test_the_installed_program_is_this_command():
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="burn")
    assert script.load() is main


def test_devices_marks_the_default_and_says_what_each_device_can_do(run_burn):
    result = run_burn("devices", BURN_DEVICE="cpu")
    assert result.returncode == 0, result.stderr
    assert re.search(r"^\* cpu:0 +[\d.]+ GiB +\S", result.stdout, re.MULTILINE)
    assert re.search(r"computes +bool, int8-64, uint8-64, float16-64", result.stdout)
    assert "* default device: BURN_DEVICE=cpu" in result.stdout


def test_json_has_the_same_under_stable_keys(run_burn):
    result = run_burn("devices", "--json", BURN_DEVICE="cpu")
    found = json.loads(result.stdout)
    assert list(found) == [
        "version",
        "default",
        "default_reason",
        "devices",
        "no_hardware",
        "broken",
        "restrictions",
    ]
    assert found["version"] == burn.__version__
    assert found["default"] == "cpu:0"
    (cpu,) = [device for device in found["devices"] if device["name"] == "cpu:0"]
    assert list(cpu) == [
        "name",
        "backend",
        "type",
        "index",
        "default",
        "id",
        "dispatch_id",
        "hardware",
        "memory",
        "driver",
        "dtypes",
    ]
    assert cpu["default"] is True
    assert cpu["id"] == cpu["dispatch_id"] == {"type_id": 0, "index_id": 0}
    assert list(cpu["dtypes"]) == [dtype.name for dtype in burn.DType.members()]
    assert cpu["dtypes"]["float32"] == ["storage", "arithmetic"]


def test_a_broken_plugin_changes_nothing_but_one_line(run_burn, broken_plugin):
    without = run_burn("devices")
    beside = run_burn("devices", PYTHONPATH=broken_plugin)
    assert beside.returncode == 0
    assert beside.stderr == without.stderr == ""
    kept = beside.stdout.splitlines()
    kept.remove(
        "broken: broken of burn-broken 1.2: OSError: libbroken.so: cannot open shared object file"
    )
    assert kept == without.stdout.splitlines()


def test_json_says_of_a_broken_plugin_what_is_wrong(run_burn, broken_plugin):
    result = run_burn("devices", "--json", PYTHONPATH=broken_plugin)
    assert json.loads(result.stdout)["broken"] == [
        {
            "name": "broken",
            "distribution": "burn-broken",
            "version": "1.2",
            "reason": "OSError: libbroken.so: cannot open shared object file",
        }
    ]


def test_a_default_that_is_not_there_is_said_below_the_list(run_burn):
    result = run_burn("devices", BURN_DEVICE="cpu:7")
    assert result.returncode == 0
    assert "cpu:0" in result.stdout
    assert "no default device: BURN_DEVICE=cpu:7: there is no device 'cpu:7'" in result.stdout
    found = json.loads(run_burn("devices", "--json", BURN_DEVICE="cpu:7").stdout)
    assert found["default"] is None
    assert "there is no device 'cpu:7'" in found["default_reason"]
    assert not any(device["default"] for device in found["devices"])


def test_without_devices_it_says_what_to_install(run_burn):
    result = run_burn("devices", BURN_PLUGINS="")
    assert result.returncode == 0
    assert result.stdout.startswith("No devices.")
    assert "pip install ./core ./plugins/burn-cpu" in result.stdout
    assert "restricted by BURN_PLUGINS=" in result.stdout


def test_listing_loads_no_array_library_but_numpy_and_no_backend(run_python):
    loaded = set(run_python("-c", LOADED, "devices").stdout.splitlines()[-1].split())
    assert "burn_cpu.plugin" in loaded
    assert not loaded & {"torch", "cupy", "pyopencl", "burn_cpu.backend"}


@pytest.mark.parametrize("arguments", [["--help"], ["devices", "--help"], ["--version"]])
def test_help_and_version_import_nothing_heavy(run_python, arguments):
    loaded = set(run_python("-c", LOADED, *arguments).stdout.splitlines()[-1].split())
    assert not loaded & {"numpy", "rich", "torch"}


def test_colours_are_for_terminals_that_want_them(run_burn):
    assert "\x1b" not in run_burn("devices").stdout
    terminal = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
    assert COLOUR.search(run_burn("devices", **terminal).stdout)
    assert not COLOUR.search(run_burn("devices", **terminal, NO_COLOR="1").stdout)


@pytest.mark.parametrize("width", [60, 80, 140])
def test_the_table_keeps_to_the_width_and_leaves_no_dtype_out(register, width):
    every = dict.fromkeys(burn.DType.members(), burn.DTypeUsage.GENERAL)
    register("wide", lambda: [DeviceInfo("one", 0, "A long name " * 9, 2**40, usage=every)], "one")
    table, _, _ = devices(width=width).partition("\n\n")
    assert max(map(len, table.splitlines())) <= width
    words = table.replace(",", " ").split()
    assert {"bool", "int8-64", "bfloat16", "complex64/128"} <= set(words)


def test_dtypes_are_grouped_by_what_the_device_does_with_them(register):
    general, storage = burn.DTypeUsage.GENERAL, burn.DTypeUsage.STORAGE
    usage = {
        burn.float32: general,
        burn.float16: general | burn.DTypeUsage.ACCELERATED,
        burn.float64: storage,
        burn.int8: burn.DTypeUsage.NONE,
    }
    register("new", lambda: [DeviceInfo("one", 0, "Some [red] accelerator", usage=usage)], "one")
    lines = devices().splitlines()
    (place,) = [number for number, line in enumerate(lines) if "new:0" in line]
    assert lines[place].split() == ["new:0", "?", "Some", "[red]", "accelerator"]
    assert [line.split() for line in lines[place + 1 : place + 4]] == [
        ["computes", "float16/32"],
        ["accelerates", "float16"],
        ["stores", "float64"],
    ]


def test_what_only_the_loaded_library_knows_is_a_question_mark(register):
    register("new", lambda: [DeviceInfo("one", 0, "Something")], "one")
    assert re.search(r"new:0 +\? +Something *\n +computes +\? *\n", devices())
    (device,) = [
        device for device in json.loads(devices("--json"))["devices"] if device["backend"] == "new"
    ]
    assert device["memory"] is None
    assert device["dtypes"] is None


def test_a_backend_without_hardware_and_one_whose_probe_fails_have_a_line_each(register):
    def fail():
        raise OSError("no driver")

    register("absent", list, "one")
    register("failing", fail, "one")
    lines = devices().splitlines()
    assert "no hardware: absent of (this process)" in lines
    assert "broken: failing of (this process): OSError: no driver" in lines
    found = json.loads(devices("--json"))
    assert [backend["name"] for backend in found["no_hardware"]] == ["absent"]
    assert [backend["name"] for backend in found["broken"]] == ["failing"]


def test_an_error_of_burn_is_one_line_and_exit_status_1():
    @click.command()
    def fail():
        raise burn.ArgumentError("something is wrong", hint="Do\nbetter")

    group = type(main)("burn", commands=[fail])
    result = CliRunner().invoke(group, ["fail"])
    assert result.exit_code == 1
    assert result.stderr == "Error: something is wrong. Do better\n"
