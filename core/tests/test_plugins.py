"""Discovery: every plugin is looked at on its own, and what is wrong with one is kept and told."""

import importlib.metadata
import threading
import types

import pytest

from burn import plugins
from burn.errors import DeviceUnavailableError, PluginError
from burn.plugins import BackendSpec, DeviceInfo, Registry, State, hookimpl


def spec(name="mock", **fields):
    defaults = {
        "load": lambda: None,
        "probe": lambda: [DeviceInfo("unit", 0, "a mock")],
        "device_types": ("unit",),
    }
    return BackendSpec(name=name, **(defaults | fields))


def module_with(specs):
    module = types.ModuleType("a_plugin")

    @hookimpl
    def burn_backends():
        if isinstance(specs, BaseException):
            raise specs
        return specs

    module.burn_backends = burn_backends
    return module


class Point:
    """An entry point of a distribution, installed nowhere."""

    def __init__(self, name, outcome, distribution=None, version="1.0"):
        self.name = name
        self.outcome = outcome
        self.dist = types.SimpleNamespace(name=distribution or f"burn-{name}", version=version)

    def load(self):
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


@pytest.fixture
def install(monkeypatch):
    """Make these entry points the only ones; returns a registry that has not looked yet."""
    for variable in ("BURN_PLUGINS", "BURN_DISABLE_PLUGINS", "BURN_STRICT_PLUGINS"):
        monkeypatch.delenv(variable, raising=False)

    def make(*points):
        monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: list(points))
        return Registry()

    return make


def test_a_ready_backend_has_its_fixed_id_and_its_distribution(install):
    registry = install(Point("opencl", module_with([spec("opencl")])))
    entry = registry.entry("opencl")
    assert entry.backend_id == 12
    assert entry.plugin.distribution == "burn-opencl"
    assert entry.state is State.READY


@pytest.mark.parametrize(
    "failure",
    [OSError("libfoo.so: cannot open"), ImportError("no foo"), SystemExit(3), ValueError("x")],
    ids=lambda failure: type(failure).__name__,
)
def test_a_plugin_that_fails_at_import_costs_the_others_nothing(install, failure):
    registry = install(Point("broken", failure), Point("fine", module_with([spec("fine")])))
    assert list(registry.entries) == ["fine"]
    broken, fine = registry.plugins
    assert broken.error is failure
    assert fine.error is None
    with pytest.raises(PluginError, match=type(failure).__name__) as caught:
        registry.entry("broken")
    assert caught.value.__cause__ is failure


@pytest.mark.parametrize(
    "answer",
    [RuntimeError("hook"), ["rubbish"], 7, [spec("Bad-Name")], [spec(device_types=())]],
    ids=["raises", "strings", "number", "name", "no types"],
)
def test_a_hook_that_raises_or_returns_rubbish_is_one_broken_plugin(install, answer):
    registry = install(
        Point("bad", module_with(answer)), Point("fine", module_with([spec("fine")]))
    )
    assert list(registry.entries) == ["fine"]
    assert registry.plugins[0].error is not None


def test_keyboard_interrupt_passes_through(install):
    registry = install(Point("slow", KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        registry.entries  # noqa: B018 — looking is what discovers


@pytest.mark.parametrize("version", [(1, 0), (0, 99)])
def test_another_api_version_is_refused_with_both_versions(install, version):
    registry = install(Point("mock", module_with([spec(api_version=version)])))
    assert not registry.entries
    assert f"{version[0]}.{version[1]}" in str(registry.plugins[0].error)


def test_two_plugins_that_claim_one_name_replace_each_other_by_no_means(install):
    registry = install(
        Point("a", module_with([spec("mock")]), "first-dist"),
        Point("b", module_with([spec("mock")]), "second-dist"),
        Point("c", module_with([spec("fine")])),
    )
    entry = registry.entry("mock")
    assert entry.state is State.FAILED
    with pytest.raises(PluginError, match=r"first-dist and second-dist"):
        entry.load()
    assert registry.entry("fine").state is State.READY


def test_third_parties_are_numbered_from_128_in_the_order_of_their_names(install):
    registry = install(
        Point("x", module_with([spec("zebra"), spec("ant")])),
        Point("y", module_with([spec("cpu")])),
    )
    ids = {name: entry.backend_id for name, entry in registry.entries.items()}
    assert ids == {"ant": 128, "cpu": 0, "zebra": 129}


def test_allow_and_deny_lists(install, monkeypatch):
    points = [Point(name, module_with([spec(name)])) for name in ("a", "b", "c")]
    monkeypatch.setenv("BURN_PLUGINS", "a, b")
    registry = install(*points)
    monkeypatch.setenv("BURN_PLUGINS", "a, b")
    assert list(registry.entries) == ["a", "b"]
    monkeypatch.setenv("BURN_DISABLE_PLUGINS", "a")
    registry.refresh()
    assert list(registry.entries) == ["b"]


def test_strict_mode_raises_what_the_plugin_raised(install, monkeypatch):
    registry = install(Point("broken", OSError("no driver")))
    monkeypatch.setenv("BURN_STRICT_PLUGINS", "1")
    with pytest.raises(OSError, match="no driver"):
        registry.entries  # noqa: B018 — looking is what discovers


def test_a_backend_that_is_known_but_not_installed_says_what_to_install(install):
    with pytest.raises(DeviceUnavailableError, match=r"burn-cuda.*not installed.*burn-cuda"):
        install().entry("cuda")


def test_a_typo_lists_what_there_is(install):
    registry = install(Point("fine", module_with([spec("fine")])))
    with pytest.raises(DeviceUnavailableError, match="Installed: fine"):
        registry.entry("fnie")


def test_a_probe_that_fails_or_finds_nothing(install):
    def fails():
        raise OSError("driver")

    registry = install(
        Point("x", module_with([spec("bad", probe=fails), spec("none", probe=list)]))
    )
    assert registry.entry("bad").state is State.FAILED
    assert registry.entry("none").state is State.NO_HARDWARE


def test_a_probe_that_hangs_is_given_up(install, monkeypatch):
    monkeypatch.setattr(plugins, "_PROBE_SECONDS", 0.05)
    forever = threading.Event()
    registry = install(Point("x", module_with([spec("slow", probe=forever.wait)])))
    assert registry.entry("slow").state is State.FAILED
    assert "does not answer" in str(registry.entry("slow").error)
    forever.set()


def test_a_load_that_fails_is_tried_once_and_told_again(install):
    calls = []

    def load():
        calls.append(1)
        raise OSError("no library")

    registry = install(Point("x", module_with([spec("bad", load=load)])))
    for _ in range(2):
        with pytest.raises(PluginError, match="no library"):
            registry.entry("bad").load()
    assert len(calls) == 1


def test_what_load_returns_must_be_a_backend(install):
    registry = install(Point("x", module_with([spec("odd", load=lambda: object())])))
    with pytest.raises(PluginError, match="no burn Backend"):
        registry.entry("odd").load()


def test_a_backend_can_be_registered_in_the_process_and_taken_out(install):
    registry = install(Point("fine", module_with([spec("fine")])))
    registry.register(spec("extra"))
    assert list(registry.entries) == ["extra", "fine"]
    with pytest.raises(PluginError, match="already"):
        registry.register(spec("extra"))
    registry.unregister("extra")
    assert list(registry.entries) == ["fine"]


def test_discovery_happens_once_until_refreshed(install, monkeypatch):
    registry = install(Point("fine", module_with([spec("fine")])))
    assert list(registry.entries) == ["fine"]
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda group: [Point("b", module_with([spec("b")]))]
    )
    assert list(registry.entries) == ["fine"]
    registry.refresh()
    assert list(registry.entries) == ["b"]
