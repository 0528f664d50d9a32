"""The parts of a checkpoint: taken from objects when it is saved, and given back to them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from burn.devices import Device
from burn.errors import (
    ArgumentError,
    DeviceUnavailableError,
    OperandTypeError,
    PluginError,
    StoreError,
)
from burn.store._encoding import part_names
from burn.store._errors import failure, os_errors
from burn.store._folders import STATE, Folder, file_path, read_json
from burn.store._random_states import (
    generator_like,
    generator_state,
    is_generator,
    random_states,
    restorer,
)
from burn.store._reading import Reader
from burn.store._values import MalformedError, PartEncoder, decoded
from burn.tensor.tensor import Tensor
from burn.tensor.transaction import Transaction
from burn.tensor_data import TensorData

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SavedParts", "captured"]

_SAVE: Final = "Checkpoints.save"
_RESTORE: Final = "Checkpoints.restore"

_NOT_FILES: Final = frozenset(
    {"aux", "con", "nul", "prn", *(f"{name}{n}" for name in ("com", "lpt") for n in range(10))}
)
"""Names that are devices on Windows, whatever their suffix."""

_KINDS: Final = ("generator", "state", "value")
"""What a part may be: a generator of NumPy, an object with a state, or any other value."""

_AGAIN: Final = "Copy it again, or remove the folder"


def captured(
    parts: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, dict[str, TensorData]]]:
    """What is saved of some objects, as it is now, and of all random generators.

    Tensors are read off their devices. Those in the memory of the host are not copied: what writes
    to a tensor makes a copy while something else refers to its memory.

    Returns
    -------
    dict
        What is no tensor, for JSON.
    dict of str to dict of str to TensorData
        The tensors of each part that has some, by their names.

    Raises
    ------
    OperandTypeError
        If a part contains an object that a checkpoint cannot hold.
    ArgumentError
        If a part has no fitting name.
    """
    _check_names(parts)
    encoders: dict[str, PartEncoder] = {}
    described: dict[str, Any] = {}
    for name, part in parts.items():
        encoders[name] = encoder = PartEncoder(name)
        kind, content = _content(name, part)
        described[name] = {"kind": kind, "content": encoder.encode(content)}
        _check_stored_names(encoder)
    random = PartEncoder("random").encode(random_states())
    reading = Transaction()
    for encoder in encoders.values():
        for x in encoder.tensors.values():
            if isinstance(x, Tensor):
                reading.register(x)
    values = iter(reading.execute())
    tensors = {
        part: {
            name: next(values) if isinstance(x, Tensor) else TensorData(x)
            for name, x in encoder.tensors.items()
        }
        for part, encoder in encoders.items()
        if encoder.tensors
    }
    return {"parts": described, "random": random}, tensors


def _check_names(parts: Mapping[str, Any]) -> None:
    """Raise ArgumentError unless each part has a name that may be that of a file everywhere."""
    seen: dict[str, str] = {}
    for name in parts:
        folded = name.casefold()
        if not (name.isascii() and name.isidentifier()) or folded in _NOT_FILES or len(name) > 100:
            raise ArgumentError(
                f"a part has the name {name!r}, which cannot be that of a file",
                hint="Use letters, digits and underscores, 100 at most",
                operation=_SAVE,
            )
        if folded in seen:
            raise ArgumentError(
                f"the parts {seen[folded]!r} and {name!r} would be one file on some systems",
                hint="Use names that differ in more than upper and lower case",
                operation=_SAVE,
            )
        seen[folded] = name


def _content(name: str, part: Any) -> tuple[str, Any]:
    """The kind of a part, and what is saved of it."""
    if _has_state(part):
        state = part.state_dict()
        if not isinstance(state, Mapping):
            raise OperandTypeError(
                f"the state_dict() of the part {name!r} is an object of type "
                f"{type(state).__name__}",
                hint="Return a dict of strings to tensors, arrays and values of JSON",
                operation=_SAVE,
            )
        return "state", state
    return ("generator", generator_state(part)) if is_generator(part) else ("value", part)


def _has_state(part: Any) -> bool:
    """Whether it is an object with a state, and no class of such."""
    methods = [getattr(part, name, None) for name in ("state_dict", "load_state_dict")]
    return not isinstance(part, type) and all(callable(method) for method in methods)


def _check_stored_names(encoder: PartEncoder) -> None:
    """Raise ArgumentError if a quantized tensor has parts with the names of other tensors."""
    seen: set[str] = set()
    for name, x in encoder.tensors.items():
        for stored in part_names(name, x.dtype) if isinstance(x, Tensor) else (name,):
            if stored in seen:
                raise ArgumentError(
                    f"two tensors of the part {encoder.part!r} are stored as {stored!r}",
                    hint="Rename one: a quantized tensor has name.codes and name.scales",
                    operation=_SAVE,
                )
            seen.add(stored)


class SavedParts:
    """The parts of a checkpoint whose files are intact.

    Parameters
    ----------
    folder : Folder
        The checkpoint.
    files : set of str
        The names of its files; others in the folder are not read.

    Raises
    ------
    StoreError
        If it does not say what its parts are.
    """

    def __init__(self, folder: Folder, files: set[str]) -> None:
        self.folder = folder
        self._files = files
        state = read_json(folder.path / STATE, _RESTORE)
        self._parts: Any = state.get("parts")
        self._random = state.get("random")
        if not isinstance(self._parts, dict) or not all(
            isinstance(part, dict) and set(part) == {"kind", "content"} and part["kind"] in _KINDS
            for part in self._parts.values()
        ):
            raise self._damaged("it does not describe parts")
        try:
            _check_names(self._parts)
        except ArgumentError as error:
            raise self._damaged(str(error.rule)) from None

    def give(self, parts: Mapping[str, Any]) -> dict[str, Any]:
        """Give objects their states, and all random generators.

        Returns
        -------
        dict of str to object
            The values of the parts that are no objects with a state.

        Raises
        ------
        ArgumentError
            If the checkpoint lacks a part, or has something else under its name.
        StoreError
            If what is saved is not what `captured` returns.
        Exception
            Of a ``load_state_dict``. All objects have the states that they had before.
        """
        self._check(parts)
        restore_random = self._decoded("the random generators", lambda: restorer(self._plain()))
        values = {
            name: self._load(name) if part["kind"] == "value" else self._generator(name)
            for name, part in self._parts.items()
            if part["kind"] != "state"
        }
        generators = [
            (part.bit_generator, self._state_for(name, part, values.pop(name)))
            for name, part in parts.items()
            if is_generator(part) and is_generator(values.get(name))
        ]
        self._give_states({name: part for name, part in parts.items() if _has_state(part)})
        for generator, state in generators:
            generator.state = state
        restore_random()
        return values

    def _state_for(self, name: str, generator: Any, saved: Any) -> Any:
        """The state of a saved generator of NumPy, for another one."""
        kinds = [type(item.bit_generator).__name__ for item in (generator, saved)]
        if kinds[0] != kinds[1]:
            raise ArgumentError(
                f"the part {name!r} draws by {kinds[0]}, and the saved one by {kinds[1]}",
                hint="Pass a generator of the same kind",
                operation=_RESTORE,
            )
        return saved.bit_generator.state

    def _check(self, parts: Mapping[str, Any]) -> None:
        """Raise ArgumentError unless there is something fitting saved for each part."""
        missing = [name for name in parts if name not in self._parts]
        if missing:
            raise ArgumentError(
                f"step {self.folder.step} has no part {', '.join(map(repr, missing))}",
                hint=f"It has {', '.join(self._parts) or 'none'}",
                operation=_RESTORE,
            )
        for name, part in parts.items():
            saved = self._parts[name]["kind"]
            given = "state" if _has_state(part) else "generator" if is_generator(part) else "value"
            if saved != given and "state" in (saved, given):
                needed = "no state, but a value: find it in the values of the checkpoint"
                if saved == "state":
                    needed = "a state: pass an object with state_dict and load_state_dict"
                raise ArgumentError(
                    f"of the part {name!r}, {type(part).__name__} here, step {self.folder.step} "
                    f"has {needed}",
                    operation=_RESTORE,
                )

    def _give_states(self, parts: Mapping[str, Any]) -> None:
        """Let objects load their states; after an error all have what they had."""
        before: dict[str, Any] = {}
        try:
            for name, part in parts.items():
                state = self._load(name)
                before[name] = part.state_dict()
                part.load_state_dict(state)
        except BaseException as error:
            error.add_note(f"in the part {name!r} of {self.folder.path}")
            for changed, state in reversed(before.items()):
                try:
                    parts[changed].load_state_dict(state)
                except Exception as failed:  # noqa: BLE001 — the others get their states back
                    if changed != name:
                        error.add_note(f"the part {changed!r} did not take its state: {failed!r}")
            raise

    def _load(self, name: str) -> Any:
        with _Tensors(file_path(self.folder, name), self._files) as source:
            content = self._parts[name]["content"]
            with os_errors(_RESTORE, self.folder.path):
                return self._decoded(f"the part {name!r}", lambda: decoded(content, source))

    def _plain(self) -> Any:
        return decoded(self._random, _Tensors(self.folder.path / STATE, set()))

    def _generator(self, name: str) -> Any:
        state = self._load(name)
        return self._decoded(f"the part {name!r}", lambda: generator_like(state))

    def _decoded(self, what: str, decode: Callable[[], Any]) -> Any:
        try:
            return decode()
        except MalformedError as error:
            raise self._damaged(f"{what}: {error}") from None

    def _damaged(self, rule: str) -> StoreError:
        return failure(_RESTORE, self.folder.path / STATE, f"is damaged: {rule}", _AGAIN)


class _Tensors:
    """The tensors of one part, whose file is opened when one is asked for."""

    def __init__(self, path: Path, files: set[str]) -> None:
        self._path = path
        self._files = files
        self._reader: Reader | None = None
        self._names: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._reader is not None:
            self._reader.__exit__(*exception)

    def tensor(self, name: str, device: str) -> Tensor:
        try:
            found = Device(device).hardware
        except (ArgumentError, DeviceUnavailableError, PluginError):
            found = Device.default().hardware
        return self._file(name).read(name, found)

    def array(self, name: str) -> Any:
        return self._file(name).array(name)

    def _file(self, name: str) -> Reader:
        if self._path.name not in self._files:
            raise MalformedError(f"the manifest has no file {self._path.name}")
        if self._reader is None:
            self._reader = Reader(self._path)
            self._names = set(self._reader.names)
        if name not in self._names:
            raise MalformedError(f"{self._path.name} has no tensor {name!r}")
        return self._reader
