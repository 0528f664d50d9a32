"""Replay: the launches of a program, which a library captures once and then launches at once.

A library such as CUDA captures the launches of a function, with the addresses that they were given,
and repeats them by one call. `Replay` does what is the same for all such libraries: it finds out
which inputs move, copies these to memory that does not, and hands out the outputs so that no call
changes what an earlier one returned.

The first call of a program runs its function, which compiles kernels and loads libraries. The
second one captures it:

- An input whose address was the same in both calls is read where it is: parameters and states that
  are updated in place. If its address changes later, the program is captured again.
- Any other input is copied, before each launch, to memory of its own. If that would take longer
  than the launches, the program is not captured.
- An output is the primitive of a donated input, a copy, or, if it is large, in the memory of the
  captured program: as long as anything refers to it, another capture runs, or the function itself.

A program that cannot be captured, and one of few launches, runs its function at each call.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from burn.aliases import Primitive

__all__ = ["Recorder", "Replay"]

_log = logging.getLogger("burn")

_MIN_LAUNCHES: Final = 4
"""Launches from which on one launch of all of them is faster."""

_COPIED_BYTES_PER_LAUNCH: Final = 1 << 22
"""Bytes that a GPU copies, at least, while the host launches a kernel."""

_SMALL_OUTPUT_BYTES: Final = 1 << 16
"""Bytes up to which an output is copied: that takes no longer than to launch the copy."""

_MAX_CAPTURES: Final = 2
"""Captures at a time: two take turns where a caller has the last result while it asks for the next.
"""

_MAX_CHANGES: Final = 4
"""Times that inputs may turn out to move one by one; then all are copied."""


class Recorder(Protocol):
    """What a library does for a program that is captured, on its current stream."""

    def follow(self) -> None:
        """Let the work that comes now run after that of earlier calls, if the stream is another."""

    def keys(self, primitives: Sequence[Primitive]) -> list[Hashable]:
        """For each primitive its address and, unless it is dense, its layout."""

    def size(self, x: Primitive) -> int:
        """Bytes of the elements of a primitive."""

    def write(self, targets: Sequence[Primitive], sources: Sequence[Primitive]) -> None:
        """Copy primitives to others, and the numbers of this call to the device."""

    def duplicate(self, x: Primitive) -> Primitive:
        """A dense copy."""

    def is_unused(self, primitives: list[Primitive], index: int) -> bool:
        """Whether nothing but an item of a list refers to the memory of a primitive."""

    def capture(
        self, run: Callable[..., tuple[Primitive, ...]], arguments: Sequence[Any]
    ) -> tuple[Callable[[], None], tuple[Primitive, ...]]:
        """Capture what a function launches, which does not run; all that it allocates stays alive.

        Returns
        -------
        launch : callable
            Launches all of it.
        outputs : tuple of primitives
            What the function returned.

        Raises
        ------
        Exception
            Of any class, if it cannot be captured. The stream is as before.
        """


class _Output(NamedTuple):
    """An output of a capture: an argument, or one that the capture makes."""

    argument: int | None
    is_copied: bool


class _Capture:
    """One capture of a program."""

    def __init__(
        self, launch: Callable[[], None], made: Sequence[Primitive], arguments: Sequence[Any]
    ) -> None:
        self.launch = launch
        positions = {id(argument): number for number, argument in enumerate(arguments)}
        self.plan = [_Output(positions.get(id(item)), is_copied=False) for item in made]
        self.made: list[Primitive] = [
            None if output.argument is not None else item
            for output, item in zip(self.plan, made, strict=True)
        ]

    def decide(self, recorder: Recorder) -> None:
        """Find out which outputs are copied: small ones, and those that share their memory."""
        self.plan = [
            output
            if output.argument is not None
            else output._replace(
                is_copied=recorder.size(self.made[index]) <= _SMALL_OUTPUT_BYTES
                or not recorder.is_unused(self.made, index)
            )
            for index, output in enumerate(self.plan)
        ]
        self.shared = [
            index
            for index, (argument, is_copied) in enumerate(self.plan)
            if argument is None and not is_copied
        ]

    def is_free(self, recorder: Recorder) -> bool:
        """Whether nothing refers to an output that an earlier launch returned."""
        return all(recorder.is_unused(self.made, index) for index in self.shared)


class Replay:
    """A function of launches, captured from the second call on. One thread at a time may call it.

    Parameters
    ----------
    run : callable
        The function: it takes all arguments, and returns a primitive for each output. It computes
        nothing on the host from values of tensors, and nothing from those arguments that are
        numbers except through `Recorder.write`.
    recorder : Recorder
        Captures it.
    tensors : sequence of int
        Which arguments are primitives.
    donated : collection of int
        Which of them the function may change: those that it does change it returns.
    launches : int
        About how many launches there are; 0 if it cannot be captured.
    """

    def __init__(
        self,
        run: Callable[..., tuple[Primitive, ...]],
        recorder: Recorder,
        tensors: Sequence[int],
        donated: Collection[int],
        launches: int,
    ) -> None:
        self._run = run
        self._recorder = recorder
        self._donated = frozenset(donated)
        self._launches = launches
        self._fixed = tuple(tensors)
        """The arguments that do not move, so far."""
        self._moving: tuple[int, ...] = ()
        self._keys: list[Hashable] | None = None
        """Of the fixed ones."""
        self._ids: list[Any] = []
        """Of the objects that had these keys; empty if one of them is not alive any more."""
        self._alive: list[weakref.ref[Any]] = []
        self._copies: list[Primitive] = []
        """The memory for each of the moving ones."""
        self._captures: list[_Capture] = []
        self._changes = 0
        self._reason = "" if launches >= _MIN_LAUNCHES else "it has few launches"

    def __call__(self, *arguments: Any) -> tuple[Primitive, ...]:
        """Run the function on arguments, or launch what was captured."""
        recorder = self._recorder
        recorder.follow()
        if not self._reason and self._is_known(arguments):
            capture = self._free_capture(arguments)
            if capture is not None:
                return self._launched(capture, arguments)
        recorder.write((), ())
        return self._run(*arguments)

    def describe(self) -> str:
        """How a call runs, as in ``explain()``."""
        if self._reason:
            return f"launched one by one: {self._reason}"
        if not self._captures:
            return "launched one by one at the first call, and captured at the second"
        return f"captured and launched at once; {len(self._moving)} inputs are copied before that"

    def _is_known(self, arguments: Sequence[Any]) -> bool:
        """Whether captures are of use: this is not the first call, and few inputs move."""
        fixed = [arguments[index] for index in self._fixed]
        ids: list[Any] = list(map(id, fixed))
        if ids and ids == self._ids:
            return True
        keys, old = self._recorder.keys(fixed), self._keys
        if old is None:
            self._keys = keys
            return False
        if keys != old:
            return self._moved(arguments, old, keys)
        self._ids = ids
        # The callback is no Python code, in which Ctrl-C would be lost; the list is another then.
        self._alive = [weakref.ref(item, ids.append) for item in fixed]
        return True

    def _moved(self, arguments: Sequence[Any], old: list[Hashable], keys: list[Hashable]) -> bool:
        """Copy inputs that turn out to move from now on; whether that pays."""
        recorder = self._recorder
        self._captures.clear()
        self._changes += 1
        moving = {
            index
            for index, before, now in zip(self._fixed, old, keys, strict=True)
            if before != now or self._changes > _MAX_CHANGES
        }
        self._moving = tuple(sorted({*self._moving, *moving}))
        self._fixed = tuple([index for index in self._fixed if index not in moving])
        self._keys = recorder.keys([arguments[index] for index in self._fixed])
        size = sum([recorder.size(arguments[index]) for index in self._moving])
        if size > self._launches * _COPIED_BYTES_PER_LAUNCH:
            self._reason = f"it would copy {size:,} bytes of inputs whose addresses change"
            self._copies = []
            return False
        self._copies = [recorder.duplicate(arguments[index]) for index in self._moving]
        return True

    def _free_capture(self, arguments: Sequence[Any]) -> _Capture | None:
        """A capture whose outputs nothing refers to, a new one if there may be; else None."""
        recorder = self._recorder
        for capture in self._captures:
            if capture.is_free(recorder):
                return capture
        if len(self._captures) >= _MAX_CAPTURES:
            return None
        given = self._replaced(arguments)
        try:
            capture = _Capture(*recorder.capture(self._run, given), given)
        except Exception as error:  # noqa: BLE001 — any failure: the function runs without
            _log.debug("a program is not captured: %s: %s", type(error).__name__, error)
            self._reason = f"{type(error).__name__}: {error}"
            return None
        capture.decide(recorder)
        self._captures.append(capture)
        return capture

    def _replaced(self, arguments: Sequence[Any]) -> list[Any]:
        """The arguments with the copies of those that move."""
        given = list(arguments)
        for index, copy in zip(self._moving, self._copies, strict=True):
            given[index] = copy
        return given

    def _launched(self, capture: _Capture, arguments: Sequence[Any]) -> tuple[Primitive, ...]:
        """The outputs of a launch."""
        recorder, moving = self._recorder, self._moving
        recorder.write(self._copies, [arguments[index] for index in moving])
        capture.launch()
        outputs = []
        for made, (argument, is_copied) in zip(capture.made, capture.plan, strict=True):
            if is_copied:
                outputs.append(recorder.duplicate(made))
            elif argument is None:
                outputs.append(made)
            else:
                outputs.append(arguments[argument])
                if argument in moving and argument in self._donated:
                    changed = self._copies[moving.index(argument)]
                    recorder.write([arguments[argument]], [changed])
        return tuple(outputs)
