"""PluginRecord and BackendEntry: a discovered plugin, and a backend from declaration to load."""

from __future__ import annotations

import enum
import logging
import os
import threading
from dataclasses import dataclass, field
from typing import Any, Final

from burn.backend import Backend, is_backend
from burn.errors import DeviceUnavailableError, PluginError
from burn.plugins._attempt import OverdueError
from burn.plugins._hints import WORKING_HINT, advice, describe
from burn.plugins._probing import Probe
from burn.plugins._streams import kept_open
from burn.plugins.api_changes import changes_since
from burn.plugins.specification import BackendSpec, DeviceInfo, check_spec

__all__ = ["IN_PROCESS", "BackendEntry", "PluginRecord", "State", "is_strict", "raise_if_strict"]

_log = logging.getLogger("burn")

IN_PROCESS: Final = "(this process)"
"""The distribution that is shown for a backend that the running process registered."""


class State(enum.Enum):
    """How far a plugin or a backend has come."""

    FAILED = "failed"
    NO_HARDWARE = "no hardware"
    READY = "ready"
    LOADED = "loaded"


@dataclass(eq=False)
class PluginRecord:
    """A plugin as it was found.

    Attributes
    ----------
    name : str
        Name of its entry point.
    distribution, version : str
        Where it comes from.
    entry_point : str
        What the entry point names: the module, such as ``"burn_cpu.plugin"``.
    specs : tuple of BackendSpec
        The backends that it declares.
    hooks : object
        The pluggy caller of its hooks, once it is imported.
    error : BaseException or None
        Why it cannot be used, or what of it was left out.
    attempt : Attempt or None
        The attempt to import it, which may go on after its time is up.
    """

    name: str
    distribution: str
    version: str
    entry_point: str = ""
    specs: tuple[BackendSpec, ...] = ()
    hooks: Any = field(default=None, repr=False)
    error: BaseException | None = None
    attempt: Any = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}".rstrip()

    @property
    def is_in_process(self) -> bool:
        """Whether the running process registered it, so that no other process knows of it."""
        return self.distribution == IN_PROCESS

    @property
    def advice(self) -> str:
        """A hint about its error."""
        return "" if self.error is None else self.advice_about(self.error)

    def advice_about(self, error: BaseException) -> str:
        """A hint about what the plugin, or a backend of it, raised."""
        module = self.entry_point.partition(":")[0].strip()
        return advice(error, module, self.distribution)


def is_strict() -> bool:
    """Whether ``BURN_STRICT_PLUGINS`` says that what a plugin raises is raised again."""
    return os.environ.get("BURN_STRICT_PLUGINS", "") not in ("", "0")


def raise_if_strict(error: BaseException, plugin: PluginRecord) -> None:
    """Raise what a plugin raised, if ``BURN_STRICT_PLUGINS`` says so."""
    if not is_strict():
        return
    note = f"From the plugin {plugin.name!r} of {plugin}; BURN_STRICT_PLUGINS is set."
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)
    raise error


@dataclass(eq=False)
class BackendEntry:
    """A backend that a plugin, or the running process, brought.

    There is one for each name as long as the name is known: devices belong to it, and when plugins
    are looked for again it learns what has changed.

    Attributes
    ----------
    spec : BackendSpec
        What was declared.
    backend_id : int
        Its number in this process.
    plugin : PluginRecord
        The plugin that brought it.
    failure : BaseException or None
        What its declaration, its probe or its `load` raised.
    absence : str
        Why there are no devices, if its probe says so.
    conflict : PluginError or None
        Why no plugin has the name: several claim it.
    backend : Backend or None
        The backend, once it is loaded.
    handles : dict
        The `burn.Device` of each (type, index), made when it is first asked for.
    decorated : dict
        The backend under the decorators of each stack of layers of a device, made at first use.
    lock : RLock
        Held while the backend is loaded.
    """

    spec: BackendSpec
    backend_id: int
    plugin: PluginRecord
    failure: BaseException | None = field(default=None, init=False)
    absence: str = field(default="", init=False)
    conflict: PluginError | None = field(default=None, init=False)
    backend: Backend | None = field(default=None, init=False)
    handles: dict[tuple[str, int], Any] = field(default_factory=dict, init=False, repr=False)
    decorated: dict[tuple[object, ...], Any] = field(default_factory=dict, init=False, repr=False)
    lock: threading.RLock = field(default_factory=threading.RLock, init=False, repr=False)
    _parsed: dict[tuple[str, int], DeviceInfo] = field(default_factory=dict, init=False, repr=False)
    _probe: Probe = field(init=False, repr=False)
    _checked: set[type] = field(default_factory=set, init=False, repr=False)
    _is_loading: bool = field(default=False, init=False, repr=False)
    _loaded_in: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        self._accept(self.spec, self.plugin)

    def _accept(self, spec: BackendSpec, plugin: PluginRecord) -> None:
        self.spec = spec
        self.plugin = plugin
        self._probe = Probe(spec)
        try:
            check_spec(spec, plugin.distribution)
            if self.backend_id < 0:
                raise PluginError(
                    f"there is no number left for the backend {spec.name!r}",
                    hint="Keep other plugins out with BURN_DISABLE_PLUGINS",
                )
        except PluginError as error:
            self.failure = error
        else:
            self.failure = None

    @property
    def name(self) -> str:
        """Name of the backend."""
        return self.spec.name

    @property
    def device_types(self) -> tuple[str, ...]:
        """Types of its devices; the index of one is its type id."""
        return (*self.spec.device_types, *dict.fromkeys([type_ for type_, _ in self._parsed]))

    @property
    def error(self) -> BaseException | None:
        """Why it cannot be used."""
        return self.conflict or self.failure

    @property
    def state(self) -> State:
        """The state of the backend; it is probed for devices if necessary."""
        if self.error is None and self.backend is not None:
            return State.LOADED
        devices = self.probe()
        if self.error is not None:
            return State.FAILED
        return State.READY if devices else State.NO_HARDWARE

    def start_probe(self) -> None:
        """Start the probe for devices, without waiting for its result."""
        if self.error is None:
            self._probe.start()

    def probe(self, *, is_asked_for: bool = False) -> list[DeviceInfo]:
        """Devices that are there, in the backend's order; none if the backend has failed.

        Parameters
        ----------
        is_asked_for : bool
            Whether the user named the backend. Then a slow probe gets a longer time limit, also if
            it was overdue before.
        """
        if is_asked_for and isinstance(self.failure, OverdueError):
            self.failure = None
        if self.error is None:
            probe = self._probe
            try:
                return [*probe.result(is_asked_for=is_asked_for), *self._parsed.values()]
            except DeviceUnavailableError as error:  # nothing is wrong with the plugin
                self.absence = describe(error)
                return []
            except BaseException as error:  # whatever a driver does is its failure
                if isinstance(error, KeyboardInterrupt) and not probe.raised(error):
                    raise  # Ctrl-C
                if probe is self._probe:
                    self.failure = error
                    if isinstance(error, OverdueError) and not is_asked_for:
                        _log.warning("%s is left out: %s", self.plugin, error)
            finally:
                probe.forget_callers()
        if self.error is not None:
            raise_if_strict(self.error, self.plugin)
        return []

    def parse(self, spelling: str) -> DeviceInfo:
        """The device that a spelling names, by the parser of the backend; see `BackendSpec.parse`.

        Raises
        ------
        BurnError
            If there is no such device.
        """
        assert self.spec.parse is not None  # noqa: S101 — the caller has seen to it
        info = self.spec.parse(spelling)
        with self.lock:
            self._parsed = {**self._parsed, (info.type, info.index): info}
        return info

    def load(self) -> Backend:
        """The backend, loaded once.

        Raises
        ------
        PluginError
            If it cannot be loaded, now or earlier; its cause is what the plugin raised.
        """
        if self.backend is not None and self.conflict is None:
            return self.backend
        with self.lock:
            if self.error is None and self.backend is None:
                self._load()
            if self.backend is not None and self.conflict is None:
                return self.backend
        raise self._refusal() from self.error

    def _load(self) -> None:
        if self._is_loading:  # by this thread: another one would wait for the lock
            raise PluginError(f"to load the backend {self.name!r} takes the backend {self.name!r}")
        self._is_loading = True
        try:
            with kept_open(f"the plugin {self.plugin}"):
                backend = self.spec.load()
            if not is_backend(backend):
                raise PluginError(
                    f"load() returned an object of type {type(backend).__name__}, "
                    "which is no burn Backend",
                    hint="Subclass burn.backend.Backend or burn.backend.ArrayBackend",
                )
        except KeyboardInterrupt:  # it may be Ctrl-C, in the thread of the program
            raise
        except BaseException as error:  # noqa: BLE001 — kept and shown, not lost
            self.failure = error
        else:
            self.check_overrides(backend)
            self._loaded_in = os.getpid()
            self.backend = backend
        finally:
            self._is_loading = False

    def _refusal(self) -> PluginError:
        """The error for a backend that cannot be used."""
        if self.conflict is not None:
            return PluginError(self.conflict.rule, hint=self.conflict.hint)
        if self.failure is None:  # plugins were looked for again in the meantime
            return PluginError(f"backend {self.name!r} was not loaded", hint="Try again")
        return PluginError(
            f"backend {self.name!r} of {self.plugin} cannot be used: {describe(self.failure)}",
            hint=self.plugin.advice_about(self.failure) or WORKING_HINT,
        )

    def check_overrides(self, backend: Any) -> None:
        """Warn of methods that no call of their ops can satisfy, once for each class.

        Parameters
        ----------
        backend : Backend
            The backend, or what its `for_device` returned.
        """
        cls = type(backend)
        if cls in self._checked:
            return
        from burn.ops.overrides import misfits

        self._checked.add(cls)
        found = misfits(backend)
        if not found:
            return
        reasons = "; ".join(f"{name} {reason}" for name, reason in found.items())
        changes = changes_since(self.spec.api_version)
        _log.warning(
            "methods of the backend %r of %s do not fit their operations, and are left out: %s%s",
            self.name,
            self.plugin,
            reasons,
            changes and f". {changes}",
        )

    def check_process(self, type_: str) -> None:
        """Refuse devices of a type whose driver was initialized before this process was forked.

        Raises
        ------
        DeviceUnavailableError
            If the backend was loaded in another process, of which this one is a fork, and devices
            of this type do not survive that.
        """
        if self.backend is None or self._loaded_in == os.getpid() or type_ in self.spec.fork_safe:
            return
        if any(info.fork_safe for info in self._parsed.values() if info.type == type_):
            return
        raise DeviceUnavailableError(
            f"the backend {self.name!r} was loaded in process {self._loaded_in}, of which this one "
            f"({os.getpid()}) is a fork: what its driver keeps in a process does not survive that",
            hint='Start processes with multiprocessing.get_context("spawn"), or use the device '
            "only after the fork",
        )

    def renew(self, spec: BackendSpec, plugin: PluginRecord) -> None:
        """Take the result of another discovery; a loaded backend stays loaded."""
        if self.backend is not None:
            self.plugin = plugin
            return
        # The thread that holds the lock is loading the backend, and may wait for this thread.
        if not self.lock.acquire(blocking=False):
            return
        try:
            if self.backend is None:
                if spec.device_types != self.spec.device_types:
                    self.handles = {}  # they have other numbers now
                self._accept(spec, plugin)
        finally:
            self.lock.release()

    def after_fork(self) -> None:
        """Reset locks and attempts of the parent process, whose threads a fork does not copy."""
        self.lock = threading.RLock()
        self._is_loading = False
        if self._probe.is_pending:
            self._probe = Probe(self.spec)
