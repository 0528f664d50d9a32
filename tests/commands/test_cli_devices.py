"""The command ``burn devices``: the list."""

import json
import re

import pytest
from click.testing import CliRunner

import burn
from burn.cli import main
from burn.plugins import BackendSpec, DeviceInfo, registered

GENERAL, STORAGE = burn.DTypeUsage.GENERAL, burn.DTypeUsage.STORAGE
EVERY = dict.fromkeys(burn.DType.members(), GENERAL)

BROKEN = 'raise OSError("libbroken.so: cannot open\\nshared object file")'
REASON = "OSError: libbroken.so: cannot open shared object file"


def refuse():
    raise AssertionError("listing devices must not load a backend")


def backend(*devices, name="new", load=refuse, probe=None):
    """Context in which there is a backend with these devices."""
    types = tuple(dict.fromkeys(device.type for device in devices)) or ("one",)
    return registered(BackendSpec(name, load, probe or (lambda: list(devices)), types))


def devices(*arguments, width=80, status=0):
    """Output of ``burn devices`` in this process."""
    result = CliRunner(env={"COLUMNS": str(width)}).invoke(main, ["devices", *arguments])
    assert result.exit_code == status, result.output
    return result.stdout


def rows(output, name):
    """The lines of a device: one in each table."""
    return [line for line in output.splitlines() if line[2:].split(" ", 1)[0] == name]


def marks(output, name):
    """The mark of each dtype in the line of a device."""
    lines = output.splitlines()
    (head,) = [number for number, line in enumerate(lines) if line.startswith("  Dtypes")]
    families = [(item.start(), item.group()) for item in re.finditer(r"\w+", lines[head - 1])]
    columns = {"bool": families[0][0]}
    for item in re.finditer(r"\d+", lines[head]):
        family = [word for start, word in families if start <= item.start()][-1]
        columns[family + item.group()] = item.start()
    _, line = rows(output, name)
    return {dtype: line[column] for dtype, column in columns.items()}


def found(name):
    (device,) = [
        device for device in json.loads(devices("--json"))["devices"] if device["name"] == name
    ]
    return device


def test_devices_marks_the_default_and_says_what_each_device_can_do(run_burn):
    result = run_burn("devices", BURN_DEVICE="cpu", BURN_PLUGINS="cpu")
    assert result.returncode == 0, result.stderr
    assert re.search(r"^\* cpu:0 +\S.* [\d.]+ GiB +\(0, 0\)", result.stdout, re.MULTILINE)
    assert re.search(
        r"^\* cpu:0 +●     ●  ●  ●  ●    ●  ●  ●  ●    ●  ●  ●    ●", result.stdout, re.MULTILINE
    )
    assert "* default device: BURN_DEVICE=cpu" in result.stdout


def test_json_has_the_same_under_stable_keys(run_burn):
    result = run_burn("devices", "--json", BURN_DEVICE="cpu")
    document = json.loads(result.stdout)
    assert list(document) == [
        "schema",
        "version",
        "default",
        "default_reason",
        "devices",
        "no_hardware",
        "broken",
        "restrictions",
    ]
    assert document["schema"] == 1
    assert document["version"] == burn.__version__
    assert document["default"] == "cpu:0"
    (cpu,) = [device for device in document["devices"] if device["name"] == "cpu:0"]
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
        "check",
    ]
    assert cpu["default"] is True
    assert cpu["id"] == cpu["dispatch_id"] == {"type_id": 0, "index_id": 0}
    assert list(cpu["dtypes"]) == [dtype.name for dtype in burn.DType.members()]
    assert cpu["dtypes"]["float32"] == ["storage", "arithmetic"]
    assert cpu["check"] is None


def test_a_broken_plugin_changes_nothing_but_one_line(run_burn, install):
    without = run_burn("devices")
    beside = run_burn("devices", PYTHONPATH=install("broken", BROKEN))
    assert beside.returncode == 0
    assert beside.stderr == without.stderr == ""
    kept = beside.stdout.splitlines()
    kept.remove(f"broken: broken of burn-broken 1.2: {REASON}")
    assert kept == without.stdout.splitlines()


def test_json_says_of_a_broken_plugin_what_is_wrong(run_burn, install):
    result = run_burn("devices", "--json", PYTHONPATH=install("broken", BROKEN))
    assert json.loads(result.stdout)["broken"] == [
        {"name": "broken", "distribution": "burn-broken", "version": "1.2", "reason": REASON}
    ]


def test_of_a_missing_module_it_says_what_to_do(run_burn, install):
    result = run_burn("devices", PYTHONPATH=install("needy", "import nonsense"))
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("broken: ")]
    assert line.endswith(
        "No module named 'nonsense'. It needs the package that brings the module 'nonsense'"
    )


def test_verbose_shows_where_an_exception_comes_from(run_burn, install):
    path = install("broken", f"def fail():\n    {BROKEN}\n\nfail()")
    variables = {"PYTHONPATH": path, "BURN_PLUGINS": "cpu,broken"}
    assert "Traceback" not in run_burn("devices", **variables).stdout
    result = run_burn("devices", "-v", **variables)
    assert result.returncode == 0
    assert re.search(
        r'^broken:\nTraceback .*burn_broken.py", line', result.stdout, re.MULTILINE | re.DOTALL
    )


def test_a_default_that_is_not_there_is_said_below_the_list(run_burn):
    result = run_burn("devices", BURN_DEVICE="cpu:7")
    assert result.returncode == 0
    assert "cpu:0" in result.stdout
    assert "no default device: BURN_DEVICE=cpu:7: there is no device 'cpu:7'" in result.stdout
    document = json.loads(run_burn("devices", "--json", BURN_DEVICE="cpu:7").stdout)
    assert document["default"] is None
    assert "there is no device 'cpu:7'" in document["default_reason"]
    assert not any(device["default"] for device in document["devices"])


def test_without_devices_it_says_what_to_install(run_burn):
    result = run_burn("devices", BURN_PLUGINS="")
    assert result.returncode == 0
    assert result.stdout.startswith("No devices.")
    assert "pip install ./core ./plugins/burn-cpu" in result.stdout
    assert "restricted by BURN_PLUGINS=" in result.stdout


def test_where_all_is_broken_the_causes_stand_there_and_no_other_backend(
    run_burn, run_python, install
):
    path = install("broken", BROKEN)
    result = run_burn("devices", "-v", PYTHONPATH=path, BURN_PLUGINS="broken")
    assert result.stdout.startswith(f"No devices.\nbroken: broken of burn-broken 1.2: {REASON}\n")
    assert "Install a backend" not in result.stdout
    program = "import burn; burn.ones(1)"
    error = run_python("-c", program, PYTHONPATH=path, BURN_PLUGINS="broken").stderr
    assert error.index(REASON) < error.index("Install a backend")


@pytest.mark.parametrize("width", [24, 40, 60, 80, 140])
def test_everything_keeps_to_the_width_and_nothing_is_cut(width):
    hardware = " ".join(f"word{number}" for number in range(20))
    driver = "a driver 1.2, and what is below it 3.4"
    info = DeviceInfo("one", 0, hardware, 2**40, driver, EVERY)
    with backend(info, name="wide"):
        output = devices(width=width)
    table, _, _ = output.partition("\n\n* default device")
    assert max(map(len, table.splitlines())) <= width
    assert "…" not in output
    words = set(re.findall(r"[\w.-]+", output))
    if width >= 40:
        assert {*hardware.split(), "1024.0", "driver", "3.4"} <= words


def test_each_dtype_has_a_mark_under_its_width_for_what_the_device_does_with_it():
    usage = {
        burn.float32: GENERAL,
        burn.float16: GENERAL | burn.DTypeUsage.ACCELERATED,
        burn.float64: STORAGE,
        burn.int8: burn.DTypeUsage.NONE,
    }
    with backend(DeviceInfo("one", 0, "Some [red] accelerator :fire:", usage=usage)):
        output = devices(width=100)
    hardware, _ = rows(output, "new:0")
    assert "Some [red] accelerator :fire:" in hardware
    lacking = dict.fromkeys([dtype.name for dtype in burn.DType.members()], "-")
    assert marks(output, "new:0") == lacking | {"float16": "★", "float32": "●", "float64": "○"}
    legend = [line for line in output.splitlines() if line.startswith("  ●")]
    assert "○\N{NO-BREAK SPACE}stores\N{NO-BREAK SPACE}only" in legend[0]


def test_where_the_table_does_not_fit_dtypes_are_grouped_by_what_the_device_does():
    usage = {
        burn.float32: GENERAL,
        burn.float16: GENERAL | burn.DTypeUsage.ACCELERATED,
        burn.float64: STORAGE,
    }
    with backend(DeviceInfo("one", 0, "Something", driver="a driver", usage=usage)):
        lines = devices(width=50).splitlines()
        dispatch_id = str(tuple(burn.Device("new").dispatch_id))
    start = lines.index("  new:0")
    assert [line.split(maxsplit=1) for line in map(str.strip, lines[start + 1 : start + 8])] == [
        ["hardware", "Something"],
        ["memory", "?"],
        ["driver", "a driver"],
        ["DeviceId", dispatch_id],
        ["computes", "float16/32"],
        ["accelerates", "float16"],
        ["stores", "float64"],
    ]


def test_what_only_the_loaded_library_knows_is_a_question_mark_until_it_is_loaded():
    def load():
        from burn_cpu.backend import CpuBackend

        return CpuBackend()

    with backend(DeviceInfo("one", 0, "Something"), load=load):
        assert set(marks(devices(), "new:0").values()) == {"?"}
        assert found("new:0")["memory"] is None
        assert found("new:0")["dtypes"] is None
        assert set(marks(devices("-v"), "new:0").values()) == {"●"}
        assert found("new:0")["dtypes"]["int8"] == ["storage", "arithmetic"]


def test_what_cannot_be_loaded_is_broken_when_it_is_used():
    def load():
        raise ImportError("libnew.so.3: cannot open")

    with backend(DeviceInfo("one", 0, "Something"), load=load):
        assert "broken" not in devices()
        output = devices("-v")
        assert "broken: new of (this process): ImportError: libnew.so.3: cannot open" in output
        assert "Traceback" in output
        assert not rows(output, "new:0")


def test_a_backend_without_hardware_and_one_whose_probe_fails_have_a_line_each():
    def fail():
        raise OSError("no driver")

    with backend(name="absent"), backend(name="failing", probe=fail):
        lines = devices().splitlines()
        document = json.loads(devices("--json"))
    assert "no hardware: absent of (this process)" in lines
    assert "broken: failing of (this process): OSError: no driver" in lines
    assert "absent" in [backend["name"] for backend in document["no_hardware"]]
    assert [backend["name"] for backend in document["broken"]] == ["failing"]


def test_names_cannot_act_on_the_terminal():
    with backend(DeviceInfo("one", 0, "A\x1b]0;title\x07 card", driver="\x1b[2J")):
        for width in (80, 40):
            output = devices(width=width)
            assert "A\\x1b]0;title\\x07 card" in output
            assert "\x1b" not in output
