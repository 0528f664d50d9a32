"""Broken plugins, installed on disk: each costs one clear line, and the others nothing."""

import importlib
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import traceback

import pytest

from burn import DeviceUnavailableError, PluginError
from burn.backend import Backend
from burn.cli.inventory import take
from burn.plugins import Registry, State, describe, registry as process_registry

PLUGIN = """
from burn.plugins import BackendSpec, DeviceInfo, hookimpl
{at_import}

def load():
    {at_load}
    from burn.testing import MockBackend, MockDevice
    return MockBackend("{name}", [MockDevice()])

def probe():
    {at_count}
    return [DeviceInfo("unit", 0, "{hardware}")]

@hookimpl
def burn_backends():
    {at_hook}
    return [BackendSpec("{name}", load, probe, ("unit",), api_version=(0, 1))]
"""

STAGES = ("import", "hook", "count", "load")

_numbers = itertools.count()


class Folder:
    """A folder of installed distributions."""

    def __init__(self, path):
        self.path = path

    def install(
        self, distribution, source=None, *, version="1.0", entry_points=None, metadata=None
    ):
        """Write what pip would; without source, what it leaves if only the files are deleted."""
        self.path.mkdir(exist_ok=True)
        module = distribution.replace("-", "_")
        if source is not None:
            (self.path / f"{module}.py").write_text(textwrap.dedent(source), encoding="utf-8")
        info = self.path / f"{module}-{version}.dist-info"
        info.mkdir()
        if entry_points is None:
            entry_points = f"[burn]\n{module} = {module}\n"
        if metadata is None:
            metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
        for name, content in (("entry_points.txt", entry_points), ("METADATA", metadata)):
            if content:
                raw = content.encode() if isinstance(content, str) else content
                (info / name).write_bytes(raw)
        return info

    def install_plugin(self, distribution, *, version="1.0", hardware="fake", **faults):
        """Install a plugin with a backend of its name, which does something bad at some stage."""
        name = distribution.replace("-", "_")
        stages = {f"at_{stage}": faults.get(stage, "pass") for stage in STAGES}
        source = PLUGIN.format(name=name, hardware=hardware, **stages)
        return self.install(distribution, source, version=version)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder on the path, and a process that has not looked for plugins yet."""
    for variable in ("BURN_PLUGINS", "BURN_DISABLE_PLUGINS", "BURN_STRICT_PLUGINS", "BURN_DEVICE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    known = set(sys.modules)
    yield Folder(tmp_path)
    for name in set(sys.modules) - known:
        if name.startswith("fake_"):
            del sys.modules[name]
    importlib.invalidate_caches()


def assert_the_others_are_unharmed(registry):
    assert registry.entry("cpu").state in (State.READY, State.LOADED)
    assert isinstance(registry.entry("cpu").load(), Backend)


def load(registry, name):
    """Go through all stages."""
    entry = registry.entry(name)
    entry.probe()
    return entry.load()


ERRORS = [
    "ImportError('libfake.so.3: undefined symbol')",
    "OSError('libfake.so: cannot open shared object file')",
    "SystemExit(3)",
    "SystemExit('fake says goodbye')",
    "ValueError('two\\nlines')",
    "MemoryError()",
    "RecursionError('deep')",
    "GeneratorExit()",
    "type('Odd', (BaseException,), {})('of no common kind')",
    "type('Bad', (Exception,), {'__str__': lambda self: 1 / 0})()",
    "type('Exits', (Exception,), {'__str__': lambda self: __import__('sys').exit(3)})()",
    "type('Named', (ImportError,), {'name': property(lambda self: __import__('sys').exit(3))})()",
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error[:24])
@pytest.mark.parametrize("stage", STAGES)
def test_whatever_is_raised_at_any_stage_is_one_line_for_one_plugin(folder, stage, error):
    name = f"fake_{next(_numbers)}"
    folder.install_plugin(name, **{stage: f"raise {error}"})
    registry = Registry()
    with pytest.raises(PluginError) as caught:
        load(registry, name)
    message = str(caught.value)
    raised = eval(error)  # noqa: S307 — one of the errors above
    assert describe(raised) in message
    assert f"{name} 1.0" in message
    assert "\n" not in message
    cause = caught.value.__cause__
    assert type(cause).__name__ == type(raised).__name__
    frames = traceback.extract_tb(cause.__traceback__)
    assert frames[-1].filename == str(folder.path / f"{name}.py")
    assert_the_others_are_unharmed(registry)


# In a thread of its own, where Python delivers no signal.
@pytest.mark.parametrize("stage", ["import", "hook", "count"])
def test_an_interrupt_that_a_plugin_raises_is_its_failure(folder, stage):
    name = f"fake_{next(_numbers)}"
    folder.install_plugin(name, **{stage: "raise KeyboardInterrupt('of its own')"})
    registry = Registry()
    registry.probe()  # as the choice of a default device does
    with pytest.raises(PluginError, match="KeyboardInterrupt"):
        load(registry, name)
    assert_the_others_are_unharmed(registry)


def test_an_interrupt_while_a_backend_is_loaded_passes_and_the_next_try_works(folder):
    name = f"fake_{next(_numbers)}"
    once = "import sys\n    if not hasattr(sys, '{0}'): sys.{0} = 1; raise KeyboardInterrupt"
    folder.install_plugin(name, load=once.format(name))
    registry = Registry()
    with pytest.raises(KeyboardInterrupt):
        load(registry, name)
    assert isinstance(load(registry, name), Backend)
    assert registry.entry(name).state is State.LOADED
    assert_the_others_are_unharmed(registry)


@pytest.mark.parametrize("stage", ["import", "hook", "count"])
def test_ctrl_c_ends_the_wait_for_a_plugin_and_the_next_try_works(folder, stage):
    name = f"fake_{next(_numbers)}"
    # The signal comes while the main thread waits for the thread that runs this.
    once = (
        "import sys, signal, os, threading\n    if not hasattr(sys, '{0}'):\n"
        "        sys.{0} = threading.Event(); os.kill(os.getpid(), signal.SIGINT)\n"
        "        sys.{0}.wait(30)"
    )
    if stage == "import":
        once = once.replace("\n    ", "\n")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        folder.install_plugin(name, **{stage: once.format(name)})
        registry = Registry()
        with pytest.raises(KeyboardInterrupt):
            load(registry, name)
    finally:
        signal.signal(signal.SIGINT, before)
    getattr(sys, name).set()
    assert isinstance(load(registry, name), Backend)
    assert_the_others_are_unharmed(registry)


CLOSES = [
    "sys.stdout.close()",
    "sys.stderr.close()",
    "sys.stdout.buffer.close()",
    "sys.stdout.detach()",
    "sys.stdin.close()",
    "sys.__stdout__.close()",
    "getattr(sys.stdout.buffer, 'raw', sys.stdout).close()",
    "sys.stdout = None",
    "sys.stderr = sys.stdout = io.StringIO()",
    "del sys.stdin",
    "os.close(1)",
    "os.closerange(0, 3)",
]

_CLOSING = """
import sys
import burn

error = sys.stderr
print(float(burn.ones(3).sum()), burn.Device("cpu"))
print(burn.ones(1, device="fake_closing").device, flush=True)
error.write("ends")
print(sys.stdout.close.__class__.__name__, sys.stdin.fileno(), type(sys).__name__)
"""


@pytest.mark.parametrize(
    "stage",
    [
        "import",
        pytest.param("hook", marks=pytest.mark.exhaustive),
        pytest.param("count", marks=pytest.mark.exhaustive),
        pytest.param("load", marks=pytest.mark.exhaustive),
    ],
)
def test_a_plugin_that_closes_or_replaces_the_standard_streams_leaves_them_to_the_program(
    folder, stage
):
    statement = f"import sys, os, io; {'; '.join(CLOSES)}"
    folder.install_plugin("fake_closing", **{stage: statement})
    environment = os.environ | {"PYTHONPATH": str(folder.path)}
    found = subprocess.run(
        [sys.executable, "-c", _CLOSING],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    first, second, third = found.stdout.splitlines()
    assert first == "3.0 cpu:0"
    assert "fake_closing" in second
    assert third == "builtin_function_or_method 0 module"
    assert "closed standard streams, which stay open: close(), detach()" in found.stderr
    assert "replaced standard streams, which are put back: sys.stdout, sys.stderr" in found.stderr
    assert "descriptor 1" in found.stderr
    assert found.stderr.endswith("ends")


_OWN_STREAMS = """
import io
import os
import sys
import threading
import burn
from burn.plugins import describe

threading.gone_on, threading.ended = threading.Event(), threading.Event()
try:
    burn.ones(1, device="fake_slow")
except burn.PluginError as error:
    assert "took over" in describe(error), error
assert sys.stdout is sys.__stdout__
log = os.open("log", os.O_CREAT | os.O_WRONLY)
os.dup2(log, 1)
sys.stdout = file = open(log, "w", buffering=1, closefd=False)
print(burn.ones(1, device="fake_other").device)
assert sys.stdout is file
threading.gone_on.set()
threading.ended.wait()
for one in threading.enumerate():
    if one is not threading.main_thread():
        one.join()
assert sys.stdout is file
os.write(1, b"ends")
assert not hasattr(file, "no name") and "close" not in vars(file) and type(sys) is type(os)
file.close()
assert file.closed
"""


def test_what_a_program_redirects_while_a_plugin_hangs_stays_redirected(folder, tmp_path):
    folder.install_plugin("fake_other", **{"import": "import sys; sys.stdout.close()"})
    slow = (
        "import io, sys, threading; sys.stdout = io.StringIO()\n"
        "threading.gone_on.wait(); threading.ended.set()"
    )
    folder.install_plugin("fake_slow", **{"import": slow})
    environment = os.environ | {"PYTHONPATH": str(folder.path), "BURN_PROBE_SECONDS": "0.5"}
    found = subprocess.run(
        [sys.executable, "-c", _OWN_STREAMS],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (found.returncode, found.stdout) == (0, ""), found.stderr
    assert (tmp_path / "log").read_text(encoding="utf-8") == "fake_other:0\nends"


def test_several_endless_probes_cost_one_time_limit(folder, monkeypatch):
    monkeypatch.setenv("BURN_PROBE_SECONDS", "1")
    names = [f"fake_{next(_numbers)}" for _ in range(4)]
    endless = "import threading; threading.probes.wait(); threading.Event().wait()"
    for name in names:
        folder.install_plugin(name, count=endless)
    registry = Registry()
    at_once = []

    def note():  # when all four are inside
        at_once.append([registry.entry(name).failure for name in names])

    probes = threading.Barrier(4, action=note)
    monkeypatch.setattr(threading, "probes", probes, raising=False)
    present = registry.probe()
    assert at_once == [[None] * 4]
    for name in names:
        assert present[name] == []
        assert registry.entry(name).state is State.FAILED
        with pytest.raises(PluginError, match=f"devices of '{name}' took over 1 s"):
            registry.entry(name).load()
    assert_the_others_are_unharmed(registry)


@pytest.mark.parametrize(
    "returned",
    ["None", "7", "'text'", "[object()]", "[BackendSpec]", "{1: 2}", "iter([])", "[[]]"],
)
def test_a_hook_that_returns_rubbish_is_one_line_for_one_plugin(folder, returned):
    name = f"fake_{next(_numbers)}"
    folder.install_plugin(name, hook=f"return {returned}")
    registry = Registry()
    with pytest.raises(PluginError, match=r"burn_backends\(\) returned") as caught:
        registry.entry(name)
    assert "\n" not in str(caught.value)
    assert_the_others_are_unharmed(registry)


def test_a_missing_dependency_is_named(folder):
    folder.install_plugin("fake-thirsty", **{"import": "import fake_water.wells"})
    with pytest.raises(PluginError) as caught:
        Registry().entry("fake_thirsty")
    assert "No module named 'fake_water'" in str(caught.value)
    assert "needs the package that brings the module 'fake_water'" in str(caught.value)


def test_a_dependency_that_is_missing_when_the_backend_is_loaded_is_named(folder):
    folder.install_plugin("fake-late", load="import fake_library")
    registry = Registry()
    entry = registry.entry("fake_late")
    assert entry.state is State.READY
    with pytest.raises(PluginError, match="the package that brings the module 'fake_library'"):
        entry.load()
    assert entry.state is State.FAILED
    assert_the_others_are_unharmed(registry)


@pytest.mark.parametrize(
    ("statement", "module"),
    [
        ("import burn.plugins.host", "burn.plugins.host"),
        ("from burn.dispatch import _gone", "burn.dispatch"),
    ],
)
@pytest.mark.parametrize("stage", ["import", "load"])
def test_of_a_private_module_that_is_gone_it_says_what_plugins_import(
    folder, stage, statement, module
):
    folder.install_plugin("fake-private", **{stage: statement})
    with pytest.raises(PluginError) as caught:
        load(Registry(), "fake_private")
    text = str(caught.value)
    assert f"{module!r} is a private module of burn-core" in text
    assert "imports from burn.plugin_api alone" in text
    assert "needs the package" not in text


def test_of_a_name_that_the_plugin_api_does_not_have_it_says_which_version_that_is(folder):
    folder.install_plugin("fake-newer", **{"import": "from burn.plugin_api import Later"})
    with pytest.raises(PluginError, match=r"has plugin API \d\.\d+, which has no such name"):
        Registry().entry("fake_newer")


def test_stale_metadata_of_an_uninstalled_package_is_said_to_be_that(folder):
    folder.install("fake-gone")
    registry = Registry()
    with pytest.raises(PluginError, match="pip uninstall fake-gone"):
        registry.entry("fake_gone")
    assert_the_others_are_unharmed(registry)


def test_of_two_versions_of_one_plugin_the_first_on_the_path_counts(folder, tmp_path, monkeypatch):
    folder.install_plugin("fake-twice", version="1.0", hardware="the old one")
    newer = Folder(tmp_path / "newer")
    newer.install_plugin("Fake_Twice", version="2.0", hardware="the new one")
    (newer.path / "Fake_Twice.py").rename(newer.path / "fake_twice.py")
    points = newer.path / "Fake_Twice-2.0.dist-info" / "entry_points.txt"
    points.write_text("[burn]\nfake_twice = fake_twice\n", encoding="utf-8")
    source = newer.path / "fake_twice.py"
    source.write_text(source.read_text().replace("Fake_Twice", "fake_twice"), encoding="utf-8")
    monkeypatch.syspath_prepend(newer.path)
    registry = Registry()
    (plugin,) = [plugin for plugin in registry.plugins if plugin.name == "fake_twice"]
    assert plugin.version == "2.0"
    entry = registry.entry("fake_twice")
    assert entry.state is State.READY
    assert [info.hardware for info in entry.probe()] == ["the new one"]


def test_two_distributions_that_claim_one_name_are_both_named(folder):
    folder.install_plugin("fake-one")
    source = (folder.path / "fake_one.py").read_text(encoding="utf-8")
    folder.install("fake-two", source)
    registry = Registry()
    with pytest.raises(PluginError, match="fake-one and fake-two both claim the name 'fake_one'"):
        registry.entry("fake_one").load()
    assert_the_others_are_unharmed(registry)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("not-a-name", "no identifier"),
        ("two words", "no identifier"),
        ("1st", "no identifier"),
    ],
)
def test_an_entry_point_whose_name_is_no_identifier_is_skipped(folder, caplog, name, reason):
    folder.install("fake-named", "", entry_points=f"[burn]\n{name} = fake_named\n")
    registry = Registry()
    (plugin,) = [plugin for plugin in registry.plugins if plugin.name == name]
    assert reason in str(plugin.error)
    assert plugin.distribution == "fake-named"
    assert "fake_named" not in sys.modules
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert_the_others_are_unharmed(registry)


@pytest.mark.parametrize(
    "entry_points",
    ["[burn]\nfake = \n", "[burn]\nfake = 3 + 4\n", "[burn]\nfake = fake_odd:nothing.there\n"],
)
def test_an_entry_point_that_names_nothing_is_one_broken_plugin(folder, entry_points):
    folder.install("fake-odd", "", entry_points=entry_points)
    registry = Registry()
    (plugin,) = [plugin for plugin in registry.plugins if plugin.name == "fake"]
    assert plugin.error is not None
    assert_the_others_are_unharmed(registry)


@pytest.mark.parametrize(
    ("entry_points", "metadata"),
    [
        ("[burn]\nthis is no entry point\n", None),
        ("[other]\nthis is no entry point\n", None),
        (b"[burn]\nfake = \xff\xfe\n", None),
        ("no section\n", None),
        ("[burn]\nfake = fake_damaged\n", b""),
        ("[burn]\nfake = fake_damaged\n", b"\xff\xfe\x00"),
        ("[burn]\nfake = fake_damaged\n", "Metadata-Version: 2.1\n"),
    ],
)
def test_damaged_metadata_of_any_distribution_harms_no_plugin(folder, entry_points, metadata):
    folder.install("fake-damaged", "", entry_points=entry_points, metadata=metadata)
    folder.install_plugin("fake-fine")
    registry = Registry()
    assert registry.entry("fake_fine").state is State.READY
    assert_the_others_are_unharmed(registry)


def test_a_refresh_finds_what_was_installed_and_repaired_and_loses_what_is_gone(folder):
    registry = Registry()
    with pytest.raises(DeviceUnavailableError, match="there is no backend 'fake_new'"):
        registry.entry("fake_new")
    folder.install_plugin("fake-broken", **{"import": "raise OSError('not yet')"})
    info = folder.install_plugin("fake-new")
    registry.refresh()
    entry = registry.entry("fake_new")
    assert entry.state is State.READY
    backend = entry.load()
    with pytest.raises(PluginError, match="not yet"):
        registry.entry("fake_broken")
    repaired = folder.path / "fake_broken.py"
    repaired.write_text(
        (folder.path / "fake_new.py").read_text().replace("fake_new", "fake_broken")
    )
    registry.refresh()
    assert registry.entry("fake_broken").state is State.READY
    assert registry.entry("fake_new") is entry
    assert entry.load() is backend
    for file in info.iterdir():
        file.unlink()
    info.rmdir()
    registry.refresh()
    with pytest.raises(DeviceUnavailableError, match="there is no backend 'fake_new'"):
        registry.entry("fake_new")


def break_everything(folder):
    """Install a plugin for each fault; their names."""
    for stage in STAGES:
        folder.install_plugin(f"fake-{stage}", **{stage: f"raise OSError('at the {stage}')"})
        folder.install_plugin(f"fake-exit-{stage}", **{stage: "raise SystemExit(1)"})
    folder.install_plugin("fake-endless", count="import threading; threading.Event().wait()")
    folder.install_plugin("fake-rubbish", hook="return 7")
    folder.install_plugin("fake-missing", **{"import": "import fake_nothing"})
    folder.install("fake-stale")
    folder.install("fake-named", "", entry_points="[burn]\nno-name = fake_named\n")
    folder.install("fake-damaged", "", entry_points="[burn]\nno entry point\n")


def test_in_an_inventory_each_broken_plugin_is_one_line_and_every_device_is_there(
    folder, monkeypatch
):
    monkeypatch.setenv("BURN_PROBE_SECONDS", "0.5")
    before = take()
    break_everything(folder)
    process_registry.refresh()
    try:
        after = take()
    finally:
        for file in folder.path.rglob("*"):
            if file.is_file():
                file.unlink()
        process_registry.refresh()
    lost = {"fake_load:0", "fake_exit_load:0"}  # whose faults have not been seen yet
    assert {device.name for device in after.devices} - lost == {
        device.name for device in before.devices
    }
    assert after.default is before.default
    known = {failure.plugin.distribution for failure in before.failures}
    broken = [failure for failure in after.failures if failure.plugin.distribution not in known]
    assert all("\n" not in item.reason for item in broken)
    assert sorted(item.plugin.distribution for item in broken) == sorted(
        [
            *(f"fake-{stage}" for stage in STAGES if stage != "load"),
            *(f"fake-exit-{stage}" for stage in STAGES if stage != "load"),
            *("fake-endless", "fake-missing", "fake-named", "fake-rubbish", "fake-stale"),
        ]
    )


DEFAULT = """
import burn
print(burn.zeros(2).device)
print(*burn.Device.fallbacks(), sep="\\n")
"""


def test_a_program_goes_on_with_the_next_device_and_ends(folder, run_python):
    """In a process of its own, which must not wait for the endless probe when it ends."""
    break_everything(folder)
    for name in ("fake-load", "fake-exit-load"):
        path = folder.path / f"{name.replace('-', '_')}.py"
        source = path.read_text().replace('("unit",),', '("unit",), priority=1,')
        path.write_text(source)
    result = run_python(
        *("-c", DEFAULT),
        PYTHONPATH=str(folder.path),
        BURN_PROBE_SECONDS="1",
        BURN_DISABLE_PLUGINS="cuda,opencl,torch",
    )
    assert result.returncode == 0, result.stderr
    device, *passed_over = result.stdout.splitlines()
    assert device == "cpu:0"
    assert "fake_load:0: OSError: at the load" in passed_over
    assert "fake_exit_load:0: SystemExit: 1" in passed_over
    assert "fake-import: OSError: at the import" in passed_over


ASLEEP = """
import sys
import burn
burn.ones(3, device="cpu") + 1
print("fake_asleep" in sys.modules)
print(burn.ones(3).device)
burn.ones(3)
"""


@pytest.mark.parametrize("stage", ["import", "hook", "count"])
def test_a_plugin_that_sleeps_costs_a_program_one_short_limit_and_a_warning(
    folder, run_python, stage
):
    asleep = "import time; time.sleep(1000)"  # longer than a program of a test may run
    folder.install_plugin("fake-asleep", **{stage: asleep})
    result = run_python(
        *("-c", ASLEEP),
        PYTHONPATH=str(folder.path),
        BURN_PLUGINS="cpu,fake_asleep",
        BURN_PROBE_SECONDS="1",
    )
    assert result.stdout.split() == ["False", "cpu:0"], result.stderr
    (warning,) = result.stderr.splitlines()
    assert "fake-asleep 1.0" in warning
    assert "took over 1 s" in warning


ASKED = """
import burn
for name in ("import", "hook", "count", "load", "exit_import", "endless", "missing", "stale"):
    try:
        burn.zeros(2, device=f"fake_{name}")
    except burn.PluginError as error:
        print(error)
burn.zeros(2, device="cpu")
burn.zeros(2)
"""


def test_a_backend_that_was_asked_for_by_name_fails_loudly(folder, run_python):
    break_everything(folder)
    result = run_python(
        *("-c", ASKED),
        PYTHONPATH=str(folder.path),
        BURN_DEVICE="fake_endless",
        BURN_PROBE_SECONDS="0.5",
    )
    expected = [
        "OSError: at the import",
        "OSError: at the hook",
        "OSError: at the count",
        "OSError: at the load",
        "SystemExit: 1",
        "looking for devices of 'fake_endless' took over 0.5 s",
        "No module named 'fake_nothing'",
        "No module named 'fake_stale'",
    ]
    for line, reason in zip(result.stdout.splitlines(), expected, strict=True):
        assert reason in line
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert last.startswith("burn.errors.PluginError: zeros: BURN_DEVICE=fake_endless: ")
    there = last.partition("Devices that are there: ")[2].split(", ")
    assert {"cpu:0", "fake_exit_load:0"} <= set(there)
