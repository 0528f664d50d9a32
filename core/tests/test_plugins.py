"""Discovery: each plugin is imported on its own; the error of a broken one is kept and shown."""

import importlib.metadata
import itertools
import logging
import threading
import time
import types

import pytest

from burn.backend import Backend
from burn.errors import ArgumentError, DeviceUnavailableError, PluginError
from burn.plugins import (
    API_VERSION,
    BackendSpec,
    DeviceInfo,
    Registry,
    State,
    _attempt,
    hookimpl,
    registered,
    registry as process_registry,
)


class Nothing(Backend):
    """A backend as far as the registry looks."""


def load_nothing():
    return Nothing()


def spec(name="mock", **fields):
    defaults = {
        "load": load_nothing,
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
        self.value = f"burn_{name}.plugin"
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
    [
        RuntimeError("hook"),
        ["rubbish"],
        7,
        None,
        "text",
        {"fake": 1},
        itertools.repeat(7),
        [spec("Bad-Name")],
        [spec("ünit")],
        [spec("")],
        [spec(3)],
    ],
    ids=lambda answer: f"{type(answer).__name__} {answer}"[:30],
)
def test_a_hook_that_raises_or_returns_rubbish_is_one_broken_plugin(install, answer):
    registry = install(
        Point("bad", module_with(answer)), Point("fine", module_with([spec("fine")]))
    )
    assert list(registry.entries) == ["fine"]
    assert registry.plugins[0].error is not None
    assert "\n" not in str(registry.plugins[0].error)


def test_a_backend_without_a_usable_name_is_skipped_with_a_warning(install, caplog):
    registry = install(Point("some", module_with([spec("Bad-Name"), spec("good")])))
    assert list(registry.entries) == ["good"]
    assert registry.entry("good").state is State.READY
    (warning,) = caplog.records
    assert warning.levelno == logging.WARNING
    assert "'Bad-Name'" in warning.getMessage()
    assert "burn-some 1.0" in warning.getMessage()


def test_an_entry_point_whose_name_is_no_identifier_is_skipped_with_a_warning(install, caplog):
    registry = install(Point("not a name", module_with([spec("good")])))
    assert not registry.entries
    assert "no identifier" in str(registry.plugins[0].error)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


@pytest.mark.parametrize(
    "fields",
    [
        {"device_types": ()},
        {"device_types": "unit"},
        {"device_types": None},
        {"device_types": ("unit", "unit")},
        {"device_types": ("a b",)},
        {"device_types": tuple(f"t{number}" for number in range(257))},
        {"load": 3},
        {"probe": None},
        {"priority": "high"},
        {"priority": {"gpu": 1}},
        {"fork_safe": ("gpu",)},
        {"fork_safe": None},
        {"api_version": None},
        {"api_version": (0,)},
        {"api_version": ("0", "1")},
        {"api_version": "0.1"},
    ],
    ids=lambda fields: f"{fields}"[:30],
)
def test_a_spec_that_makes_no_sense_is_a_failed_backend(install, fields):
    registry = install(Point("some", module_with([spec("bad", **fields), spec("good")])))
    bad = registry.entry("bad")
    assert bad.state is State.FAILED
    assert bad.probe() == []
    with pytest.raises(PluginError, match=next(iter(fields))):
        bad.load()
    assert registry.entry("good").state is State.READY
    with pytest.raises(PluginError, match=next(iter(fields))):
        Registry().register(spec("bad", **fields))


def test_a_module_without_hooks_says_what_is_missing(install):
    registry = install(Point("empty", types.ModuleType("a_plugin")))
    with pytest.raises(PluginError, match=r"burn_empty\.plugin has none of burn's hooks.*hookimpl"):
        registry.entry("empty")


def test_a_hook_that_burn_does_not_have_is_named(install):
    @hookimpl
    def burn_backend():  # without its last letter
        return []

    module = types.ModuleType("a_plugin")
    module.burn_backend = burn_backend
    with pytest.raises(PluginError, match="unknown hook 'burn_backend'"):
        install(Point("typo", module)).entry("typo")


def test_a_plugin_that_asks_for_devices_while_it_is_looked_at_is_told(install):
    def load():
        registry.entry("other")

    point = Point("eager", None)
    point.load = load
    registry = install(point, Point("fine", module_with([spec("fine")])))
    assert list(registry.entries) == ["fine"]
    assert "while plugins were being looked for" in str(registry.plugins[0].error)


def test_a_keyboard_interrupt_that_a_plugin_raises_is_its_failure(install):
    registry = install(Point("slow", KeyboardInterrupt()))
    assert registry.entries == {}
    assert isinstance(registry.plugins[0].error, KeyboardInterrupt)


@pytest.mark.parametrize(
    ("version", "distribution", "command"),
    [
        ((0, 99), "acme", "pip install ./core"),
        ((99, 0), "acme", "pip install ./core"),
        ((-1, 0), "acme", "pip install --upgrade acme"),
        ((-1, 0), "Burn_CUDA", "pip install ./core ./plugins/burn-nvidia ./plugins/burn-cuda"),
    ],
)
def test_another_api_version_is_refused_with_what_to_do(install, version, distribution, command):
    registry = install(
        Point("mock", module_with([spec(api_version=version)]), distribution),
        Point("fine", module_with([spec("fine")])),
    )
    entry = registry.entry("mock")
    assert entry.state is State.FAILED
    with pytest.raises(PluginError, match=f"plugin API {version[0]}.{version[1]}, ") as caught:
        entry.load()
    assert f"{API_VERSION[0]}.{API_VERSION[1]}" in str(caught.value)
    assert str(caught.value.__cause__).endswith(command)
    assert registry.entry("fine").state is State.READY


def test_who_does_not_say_has_written_for_the_first_version_of_the_api():
    assert BackendSpec.api_version == (0, 1)


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


def test_a_name_that_one_distribution_claims_twice_is_said_to_be(install):
    registry = install(Point("a", module_with([spec("mock"), spec("mock")])))
    with pytest.raises(PluginError, match="burn-a claims the name 'mock' 2 times"):
        registry.entry("mock").load()


def test_a_conflict_ends_with_the_distribution_that_caused_it(install, monkeypatch):
    one = Point("a", module_with([spec("mock")]), "first-dist")
    registry = install(one, Point("b", module_with([spec("mock")]), "second-dist"))
    entry = registry.entry("mock")
    assert entry.state is State.FAILED
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [one])
    registry.refresh()
    assert registry.entry("mock") is entry
    assert entry.state is State.READY


@pytest.mark.parametrize("entry_point", ["cpu", "acme"])
def test_a_backend_of_ours_keeps_its_name_whatever_claims_it(install, caplog, entry_point):
    ours = Point("cpu", module_with([spec("cpu")]))
    claimant = Point(entry_point, module_with([spec("cpu"), spec("other")]), "acme")
    for points in ([claimant, ours], [ours, claimant]):
        for ask_for_all_first in (True, False):
            registry = install(*points)
            if ask_for_all_first:
                assert sorted(registry.entries) == ["cpu", "other"]
            entry = registry.entry("cpu")
            assert entry.plugin.distribution == "burn-cpu"
            assert entry.state is State.READY
            assert registry.entry("other").plugin.distribution == "acme"
            (refused,) = [plugin for plugin in registry.plugins if plugin.distribution == "acme"]
            assert "acme claims the name 'cpu', which belongs to burn-cpu" in str(refused.error)
            assert registry.entry("cpu") is entry
    assert {record.levelname for record in caplog.records} == {"WARNING"}


@pytest.mark.parametrize(("name", "owner"), [("cuda", "burn-cuda"), ("metal", "burn-metal")])
def test_a_name_of_ours_is_kept_for_us_where_our_package_is_not_installed(install, name, owner):
    registry = install(Point(name, module_with([spec(name)]), "acme"))
    assert not registry.entries
    assert f"belongs to {owner}" in str(registry.plugins[0].error)
    with pytest.raises(DeviceUnavailableError):
        registry.entry(name)


def test_who_asks_for_a_backend_of_ours_waits_for_no_other_plugin(install, forever, vain_waits):
    asleep = Point("asleep", None)
    asleep.load = forever
    registry = install(asleep, Point("torch", module_with([spec("torch")])))
    entry = registry.entry("torch")
    assert registry.by_id(5) is entry
    assert entry.load() is entry.load()
    assert not vain_waits


def test_a_backend_that_was_asked_for_first_is_the_same_when_all_plugins_are_known(install):
    asked = []
    module = types.ModuleType("a_plugin")
    module.burn_backends = hookimpl(lambda: asked.append(1) or [spec("cpu"), spec("more")])
    registry = install(Point("cpu", module), Point("fine", module_with([spec("fine")])))
    entry = registry.entry("cpu")
    backend = entry.load()
    assert list(registry.entries) == ["cpu", "fine", "more"]
    assert registry.entries["cpu"] is entry
    assert asked == [1]
    registry.refresh()
    assert asked == [1, 1]
    assert registry.entry("cpu").load() is backend


def test_plugins_that_sleep_at_import_are_left_out_after_one_time_limit(
    install, monkeypatch, forever, vain_waits, caplog
):
    monkeypatch.setenv("BURN_PROBE_SECONDS", "0.4")
    points = [Point("fine", module_with([spec("fine")]))]
    for number in range(3):
        points.append(Point(f"asleep{number}", None))
        points[-1].load = forever
    registry = install(*points)
    assert list(registry.entries) == ["fine"]
    assert sum(vain_waits) < 0.8  # 0.1 s before each next import; one by one they would take 1.2
    with pytest.raises(PluginError, match=r"burn-asleep1 1\.0\) is broken: importing it took over"):
        registry.entry("asleep1")
    assert sum(vain_waits) < 0.8  # it is remembered
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 3
    for number, text in enumerate(warnings):
        assert f"plugin 'asleep{number}' of burn-asleep{number} 1.0" in text
        assert "BURN_PROBE_SECONDS=2.4 waits longer" in text


def test_a_plugin_that_was_left_out_is_tried_again_at_a_refresh(install, monkeypatch):
    monkeypatch.setenv("BURN_PROBE_SECONDS", "0.2")
    awake = threading.Event()
    point = Point("late", module_with([spec("late")]))
    load = point.load
    point.load = lambda: awake.wait(5) and load()
    registry = install(point)
    assert not registry.entries
    awake.set()
    assert not registry.entries
    registry.refresh()
    assert registry.entry("late").state is State.READY


def test_who_asks_for_a_backend_by_name_waits_longer_for_its_probe(install, monkeypatch, caplog):
    monkeypatch.setattr(_attempt, "_DEFAULT_LIMIT_SECONDS", 0.05)
    awake = threading.Event()

    def probe():
        awake.wait(5)
        return [DeviceInfo("unit", 0, "it wakes up")]

    registry = install(Point("x", module_with([spec("slow", probe=probe)])))
    assert registry.probe() == {"slow": []}
    (warning,) = caplog.records
    assert "burn-x 1.0 is left out: looking for devices of 'slow' took over 0.05 s" in (
        warning.getMessage()
    )
    awake.set()
    assert registry.entry("slow").state is State.FAILED  # not asked again
    assert [item.hardware for item in registry.entry("slow").probe(is_asked_for=True)] == [
        "it wakes up"
    ]
    assert registry.entry("slow").state is State.READY


def test_who_asks_for_a_backend_by_name_waits_longer_for_the_import_that_others_did_not_wait_for(
    install, monkeypatch, caplog
):
    monkeypatch.setattr(_attempt, "_DEFAULT_LIMIT_SECONDS", 0.05)
    awake = threading.Event()
    point = Point("slow", module_with([spec("slow")]))
    load = point.load
    point.load = lambda: awake.wait(5) and load()
    registry = install(point, Point("fine", module_with([spec("fine")])))
    assert list(registry.entries) == ["fine"]
    (warning,) = caplog.records
    assert "importing it took over 0.05 s" in warning.getMessage()
    awake.set()
    assert list(registry.entries) == ["fine"]  # not asked for
    assert registry.entry("slow").state is State.READY
    assert list(registry.entries) == ["fine", "slow"]
    assert [plugin.error for plugin in registry.plugins] == [None, None]


def test_a_plugin_that_was_asked_for_by_name_in_vain_is_not_waited_for_twice(
    install, monkeypatch, forever, vain_waits, caplog
):
    monkeypatch.setattr(_attempt, "_DEFAULT_LIMIT_SECONDS", 0.1)
    monkeypatch.setattr(_attempt, "_NAMED_LIMIT_SECONDS", 0.4)
    point = Point("asleep", None)
    point.load = forever
    registry = install(point)
    assert not registry.entries
    for _ in range(3):
        with pytest.raises(PluginError, match=r"importing it took over 0\.4 s"):
            registry.entry("asleep")
    assert sum(vain_waits) < 0.8
    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 1


def test_third_parties_are_numbered_from_128_in_the_order_of_their_names(install):
    registry = install(
        Point("x", module_with([spec("zebra"), spec("ant")])),
        Point("cpu", module_with([spec("cpu")])),
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


@pytest.mark.parametrize("variable", ["BURN_PLUGINS", "BURN_DISABLE_PLUGINS"])
def test_the_lists_take_names_of_distributions_too(install, monkeypatch, variable):
    points = [Point(name, module_with([spec(name)]), f"Acme_{name}") for name in ("a", "b")]
    registry = install(*points)
    monkeypatch.setenv(variable, "acme-a,")
    expected = ["a"] if variable == "BURN_PLUGINS" else ["b"]
    assert list(registry.entries) == expected


def test_a_backend_that_is_kept_out_is_not_said_to_be_missing(install, monkeypatch):
    registry = install(Point("cuda", module_with([spec("cuda")])))
    monkeypatch.setenv("BURN_DISABLE_PLUGINS", "cuda")
    with pytest.raises(
        DeviceUnavailableError, match=r"burn-cuda 1\.0\) is kept out by BURN_DISABLE_PLUGINS=cuda"
    ):
        registry.entry("cuda")
    assert [record.name for record, _ in registry.blocked] == ["cuda"]


def test_the_environment_is_read_at_the_first_use(install, monkeypatch):
    registry = install(Point("a", module_with([spec("a")])))
    monkeypatch.setenv("BURN_PLUGINS", "nothing")
    assert not registry.entries
    monkeypatch.delenv("BURN_PLUGINS")
    assert not registry.entries
    registry.refresh()
    assert list(registry.entries) == ["a"]


def test_strict_mode_raises_what_the_plugin_raised(install, monkeypatch):
    registry = install(Point("broken", OSError("no driver")))
    monkeypatch.setenv("BURN_STRICT_PLUGINS", "1")
    for _ in range(2):
        with pytest.raises(OSError, match="no driver") as caught:
            registry.entries  # noqa: B018 — looking is what discovers
        assert caught.value.__notes__ == [
            "From the plugin 'broken' of burn-broken 1.0; BURN_STRICT_PLUGINS is set."
        ]


def test_strict_mode_raises_what_a_declaration_and_a_probe_get_wrong(install, monkeypatch):
    def fails():
        raise OSError("driver")

    monkeypatch.setenv("BURN_STRICT_PLUGINS", "1")
    with pytest.raises(PluginError, match="device_types"):
        install(Point("a", module_with([spec(device_types=())]))).entry("mock")
    twice = [Point(name, module_with([spec("mock")])) for name in ("a", "b")]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: twice)
    with pytest.raises(PluginError, match="both claim"):
        Registry().entry("mock")
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda group: [Point("a", module_with([bad]))]
    )
    bad = spec(probe=fails)
    entry = Registry().entry("mock")
    for _ in range(2):
        with pytest.raises(OSError, match="driver"):
            entry.probe()


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


@pytest.mark.parametrize(
    "found",
    [
        None,
        7,
        "unit:0",
        ["unit:0"],
        [DeviceInfo("gpu", 0, "of no declared type")],
        [DeviceInfo("unit", -1, "")],
        [DeviceInfo("unit", 65536, "")],
        [DeviceInfo("unit", "0", "")],
        [DeviceInfo("unit", 0, "once"), DeviceInfo("unit", 0, "twice")],
    ],
    ids=lambda found: f"{found}"[:30],
)
def test_a_probe_that_returns_rubbish_is_one_failed_backend(install, found):
    registry = install(
        Point("x", module_with([spec("bad", probe=lambda: found), spec("good")])),
    )
    assert registry.entry("bad").state is State.FAILED
    with pytest.raises(PluginError, match="the probe of 'bad'"):
        registry.entry("bad").load()
    assert registry.entry("good").state is State.READY


def test_devices_are_in_the_order_of_their_types_and_then_numbers(install):
    found = [DeviceInfo("b", 1, ""), DeviceInfo("a", 0, ""), DeviceInfo("b", 0, "")]
    many = spec(probe=lambda: found, device_types=("b", "a"))
    registry = install(Point("x", module_with([many])))
    listed = [(info.type, info.index) for info in registry.entry("mock").probe()]
    assert listed == [("b", 0), ("b", 1), ("a", 0)]


@pytest.fixture
def forever():
    """A function that does not return before the end of the test."""
    event = threading.Event()
    yield event.wait
    event.set()


@pytest.fixture
def vain_waits(monkeypatch):
    """Seconds of each wait for a call into a plugin that was given up."""
    wait, seconds = _attempt.Attempt.wait, []

    def noted(attempt, limit):
        left = max(attempt._started + limit - time.monotonic(), 0.0)
        is_done = wait(attempt, limit)
        if not is_done:
            seconds.append(left)
        return is_done

    monkeypatch.setattr(_attempt.Attempt, "wait", noted)
    return seconds


def test_a_probe_that_hangs_is_given_up(install, monkeypatch, forever):
    monkeypatch.setenv("BURN_PROBE_SECONDS", "0.05")
    registry = install(Point("x", module_with([spec("slow", probe=forever)])))
    assert registry.entry("slow").state is State.FAILED
    assert "took over 0.05 s" in str(registry.entry("slow").error)
    assert "BURN_PROBE_SECONDS" in str(registry.entry("slow").error)


@pytest.mark.parametrize("text", ["soon", "-1", "0", "nan", "inf"])
def test_a_time_limit_that_is_none_is_said_of_every_backend(install, monkeypatch, text):
    monkeypatch.setenv("BURN_PROBE_SECONDS", text)
    entry = install(Point("x", module_with([spec()]))).entry("mock")
    assert entry.state is State.FAILED
    assert isinstance(entry.error, ArgumentError)
    assert f"BURN_PROBE_SECONDS={text}" in str(entry.error)


def test_a_time_limit_that_is_none_is_said_of_a_backend_whose_probe_has_ended(install, monkeypatch):
    monkeypatch.setenv("BURN_PROBE_SECONDS", "soon")
    entry = install(Point("x", module_with([spec()]))).entry("mock")
    entry.start_probe()
    while entry._probe.is_pending:
        time.sleep(0.001)
    assert entry.probe() == []
    assert isinstance(entry.error, ArgumentError)


def test_keyboard_interrupt_passes_through_a_load_which_is_tried_again(install):
    outcomes = iter([KeyboardInterrupt(), None])

    def load():
        outcome = next(outcomes)
        if outcome is not None:
            raise outcome
        return Nothing()

    entry = install(Point("x", module_with([spec(load=load)]))).entry("mock")
    with pytest.raises(KeyboardInterrupt):
        entry.load()
    assert entry.load() is entry.load()


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


def test_a_backend_that_needs_itself_to_load_is_an_error_and_no_deadlock(install):
    def load():
        return registry.entry("mock").load()

    registry = install(Point("x", module_with([spec(load=load)])))
    with pytest.raises(PluginError, match="takes the backend 'mock'"):
        registry.entry("mock").load()


def test_a_backend_can_be_registered_in_the_process_and_taken_out(install):
    registry = install(Point("fine", module_with([spec("fine")])))
    registry.register(spec("extra"))
    assert list(registry.entries) == ["extra", "fine"]
    with pytest.raises(PluginError, match="already, from \\(this process\\)"):
        registry.register(spec("extra"))
    with pytest.raises(PluginError, match="already, from burn-fine"):
        registry.register(spec("fine"))
    registry.refresh()
    assert list(registry.entries) == ["extra", "fine"]
    registry.unregister("extra")
    assert list(registry.entries) == ["fine"]
    for name in ("extra", "fine"):
        with pytest.raises(PluginError, match="was registered in this process"):
            registry.unregister(name)
    assert list(registry.entries) == ["fine"]


def test_registering_asks_no_plugin_again(install):
    calls = []
    registry = install(Point("x", module_with([spec(probe=lambda: calls.append(1) or [])])))
    assert registry.entry("mock").state is State.NO_HARDWARE
    registry.register(spec("extra"))
    assert registry.entry("mock").state is State.NO_HARDWARE
    assert len(calls) == 1


def test_a_backend_is_registered_for_the_time_of_a_context():
    with registered(spec("extra")) as entry:
        assert process_registry.entry("extra") is entry
        assert entry.state is State.READY
        with pytest.raises(PluginError, match="already"), registered(spec("extra")):
            pass
        assert process_registry.entry("extra") is entry
    with pytest.raises(DeviceUnavailableError):
        process_registry.entry("extra")
    with pytest.raises(PluginError, match="device_types"):
        registered(spec("extra", device_types=()))


@registered(spec("decorated"))
def names_inside():
    return list(process_registry.entries)


def test_a_function_can_be_given_a_backend():
    for _ in range(2):
        assert "decorated" in names_inside()
        assert "decorated" not in process_registry.entries


def test_discovery_happens_once_until_refreshed(install, monkeypatch):
    registry = install(Point("fine", module_with([spec("fine")])))
    assert list(registry.entries) == ["fine"]
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda group: [Point("b", module_with([spec("b")]))]
    )
    assert list(registry.entries) == ["fine"]
    before = registry.generation
    registry.refresh()
    assert list(registry.entries) == ["b"]
    assert registry.generation != before


def test_a_refresh_keeps_what_is_loaded_and_tries_again_what_failed(install, monkeypatch):
    """The hook makes new functions each time, as a plugin may."""
    loads, probes = [], []

    def hooked():
        def load():
            loads.append(1)
            return Nothing()

        def probe():
            probes.append(1)
            if len(probes) == 1:
                raise OSError("not yet")
            return [DeviceInfo("unit", 0, "")]

        return [spec("good", load=load), spec("late", probe=probe)]

    module = types.ModuleType("a_plugin")
    module.burn_backends = hookimpl(hooked)
    registry = install(Point("x", module))
    good, late = registry.entry("good"), registry.entry("late")
    backend = good.load()
    assert late.state is State.FAILED
    registry.refresh()
    assert registry.entry("good") is good
    assert registry.entry("late") is late
    assert good.state is State.LOADED
    assert good.load() is backend
    assert loads == [1]
    assert late.state is State.READY


def test_ids_stay_what_they_are_when_others_come(install, monkeypatch):
    points = [Point("x", module_with([spec("zebra")]))]
    registry = install(*points)
    registry.entry("zebra").load()
    points.append(Point("y", module_with([spec("ant")])))
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points)
    registry.refresh()
    ids = {name: entry.backend_id for name, entry in registry.entries.items()}
    assert ids == {"ant": 129, "zebra": 128}
    assert registry.by_id(128) is registry.entry("zebra")


def test_there_is_room_for_128_foreign_backends(install):
    names = [f"b{number:03}" for number in range(129)]
    registry = install(Point("x", module_with([spec(name) for name in names])))
    assert registry.entry("b127").backend_id == 255
    assert registry.entry("b128").state is State.FAILED
    assert "no number left" in str(registry.entry("b128").error)


def test_all_hanging_probes_together_take_one_time_limit(install, monkeypatch, forever, vain_waits):
    monkeypatch.setenv("BURN_PROBE_SECONDS", "0.4")
    stuck = [spec(f"stuck{number}", probe=forever) for number in range(5)]
    registry = install(Point("x", module_with([*stuck, spec("fine")])))
    present = registry.probe()
    assert sum(vain_waits) < 0.8  # one after the other they would take 2
    assert [name for name, devices in present.items() if devices] == ["fine"]
