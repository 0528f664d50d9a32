"""`compile`: a function that is traced once, and then run as one program."""

from __future__ import annotations

import builtins
import functools
import inspect
import os
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, overload
from weakref import WeakSet

from burn.autodiff import recording
from burn.devices import running_trace, transforms
from burn.errors import ArgumentError, OperandTypeError
from burn.ops.arguments import python_number
from burn.public_calls import shown_value
from burn.transforms._arguments import check_callable, is_tensor
from burn.tree import leaves

if TYPE_CHECKING:
    from burn.ir import GraphIr
    from burn.ir.cost import GraphCost
    from burn.transforms._code import Given
    from burn.transforms._compiling import Recorded
    from burn.transforms._history import History
    from burn.transforms._specialization import Specialization

__all__ = ["Compiled", "Miss", "compile"]

_MAX_SPECIALIZATIONS: Final = 64
"""Number of signatures for which a function is kept compiled."""

_MANY: Final = 8
"""Number of compilations of one function after which a warning says what changes."""

_tracing = threading.RLock()
"""Held while a function is traced and compiled."""

_all: Final[WeakSet[Compiled]] = WeakSet()


def _after_fork() -> None:
    global _tracing  # noqa: PLW0603 — another thread of the parent may have held it
    _tracing = threading.RLock()
    for compiled in _all:
        compiled.renew_lock()


if hasattr(os, "register_at_fork"):  # POSIX
    os.register_at_fork(after_in_child=_after_fork)


@overload
def compile(
    function: Callable[..., Any], /, *, donate: Any = (), relaxed: bool = False
) -> Compiled: ...
@overload
def compile(
    function: None = None, /, *, donate: Any = (), relaxed: bool = False
) -> Callable[[Callable[..., Any]], Compiled]: ...
def compile(function: Any = None, /, *, donate: Any = (), relaxed: bool = False) -> Any:
    """A function that runs as one program: traced once, optimized, and called with little between.

    Parameters
    ----------
    function : callable, optional
        Takes and returns tensors, in any containers, and other Python values. Left out, `compile`
        is a decorator with options.
    donate : int, str, or sequence of them, optional
        Arguments, by their positions or names, whose memory the program may overwrite. After a call
        any use of such a tensor is an error.
    relaxed : bool, optional
        Whether generated code may round less often than the function: ``x * y + z`` by a fused
        multiply-add, ``x / s`` by a product with ``1 / s``.

    Returns
    -------
    Compiled
        A callable that does what the function does.

    Raises
    ------
    OperandTypeError
        If it is no function, or a generator or coroutine function; or if `relaxed` is no bool.

    Notes
    -----
    The first call traces the function: its Python code runs once, with tensors that have no values.
    Later calls with arguments of the same shapes, dtypes, devices and Python values run the program
    alone. Every tensor that the function uses, passed or from outside, is read at each call, and
    one that the function rebinds is rebound after it: parameters, running statistics, states of
    optimizers. Python numbers and other objects are constants of the program, which each call
    compares along the paths that the code names (``self.model``, ``config.rate``, ``table["k"]``),
    in all functions of its own package and outside of burn and of installed packages: another value
    traces anew. A module that the function uses may change its mode or attributes: that as well.

    ``+ - * /``, `sqrt`, comparisons, casts and roundings give the bits of the same calls without
    `compile`, unless it is `relaxed`. Sums may be taken in another order, with products that they
    alone use unrounded, and what stays within a kernel of float16 or bfloat16 is held in float32.

    Inside of the function of a transform or of a trace, the function itself is called. With
    ``BURN_COMPILE=0`` in the environment, or ``device.configure(compile=False)``, it always is.

    Examples
    --------
    >>> import burn
    >>> from burn import nn
    >>> net = nn.Linear(4, 1, device=burn.Device("cpu").autodiff())
    >>> optimizer = burn.optim.Adam(net, learning_rate=0.1)
    >>> @burn.compile
    ... def step(x, y):
    ...     loss = ((net(x) - y) ** 2).mean()
    ...     optimizer.step(loss.backward())
    ...     return loss.detach()
    >>> x, y = burn.ones((8, 4), device="cpu"), burn.full((8, 1), 9.0, device="cpu")
    >>> losses = [step(x, y).item() for _ in range(20)]
    >>> losses[-1] < losses[0], step.programs
    (True, 1)
    """
    if function is None:
        return functools.partial(compile, donate=donate, relaxed=relaxed)
    check_callable(function, "compile")
    _check_returns(function)
    if relaxed.__class__ is not bool:
        raise OperandTypeError(
            f"relaxed is {shown_value(relaxed)}", hint="It is True or False", operation="compile"
        )
    return Compiled(function, donate, relaxed=relaxed)


def _check_returns(function: Callable[..., Any]) -> None:
    """Raise OperandTypeError for a function whose call computes nothing: it gives an iterator."""
    kinds: dict[str, Callable[[Any], bool]] = {
        "a generator function": inspect.isgeneratorfunction,
        "an asynchronous generator function": inspect.isasyncgenfunction,
        "a coroutine function": inspect.iscoroutinefunction,
    }
    for kind, is_of_kind in kinds.items():
        if is_of_kind(function) or is_of_kind(vars(type(function)).get("__call__")):
            raise OperandTypeError(
                f"{getattr(function, '__qualname__', function)} is {kind}, whose call computes "
                "nothing",
                hint="Compile a function that computes one step and returns it, and call that",
                operation="compile",
            )


class Miss:
    """What a generated function returns for a call that is another one than it was made for.

    Attributes
    ----------
    what : str
        What differs.
    """

    __slots__ = ("what",)

    def __init__(self, what: str) -> None:
        self.what = what


class Compiled:
    """A function that `burn.compile` has made.

    Attributes
    ----------
    programs : int
        Number of signatures for which it is compiled now.
    """

    def __init__(
        self, function: Callable[..., Any], donate: Any = (), *, relaxed: bool = False
    ) -> None:
        updated = ("__dict__",) if isinstance(function, types.FunctionType) else ()
        functools.update_wrapper(self, function, updated=updated)
        self._function = function
        self._donate = _donated(donate)
        self._relaxed = relaxed
        self._lock = threading.RLock()
        self._specializations: list[Specialization] = []
        self._last: Callable[[Any, Any], Any] = _nothing
        self._count = 0
        self._has_warned = False
        self._by_identity: frozenset[str] = frozenset()
        self._modules: dict[str, Any] = {}
        self._history: History | None = None
        _all.add(self)

    def __reduce__(self) -> Any:
        name = getattr(self, "__qualname__", "")
        if _named(getattr(self, "__module__", None), name) is self:
            return name
        make = functools.partial(Compiled, relaxed=self._relaxed)
        return make, (self._function, self._donate)

    def __repr__(self) -> str:
        return f"burn.compile({self._function!r})"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, /, *args: Any, **keywords: Any) -> Any:
        """Call the function."""
        result = self._last(args, keywords)
        if result.__class__ is not Miss:
            return result
        return self._call_another(args, keywords)

    def _call_another(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """A call that is another one than the last."""
        if running_trace() is not None or transforms() or not isinstance(recording.get(), bool):
            return self._function(*args, **keywords)
        result = self._found(args, keywords)
        if result.__class__ is not Miss:
            return result
        if _is_off(args, keywords):
            return self._function(*args, **keywords)
        with _tracing:
            result = self._found(args, keywords)  # another thread may have compiled it meanwhile
            if result.__class__ is not Miss:
                return result
            before = self._specializations[0] if self._specializations else None
            compiled = self._compiled(args, keywords)
            if compiled is None:
                return self._function(*args, **keywords)
            if before is not None:
                self._warn(before, compiled, args, keywords)
        result = compiled.call(args, keywords)
        if result.__class__ is Miss:  # an argument that is not equal to itself
            return self._function(*args, **keywords)
        return result

    def _found(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """The result of the program for a call; a Miss if there is none."""
        result: Any = _NOT_COMPILED
        for specialization in list(self._specializations):
            result = specialization.call(args, keywords)
            if result.__class__ is not Miss:
                self._use(specialization)
                break
        return result

    def _use(self, specialization: Specialization) -> None:
        """Make a specialization the first that is tried, unless another thread makes one now."""
        if not _tracing.acquire(blocking=False):
            return  # the order is a matter of time alone
        try:
            self._specializations = [
                specialization,
                *[item for item in self._specializations if item is not specialization],
            ]
            self._last = specialization.call
        finally:
            _tracing.release()

    def _compiled(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Specialization | None:
        """The specialization of a call; None where compilation is switched off for the device."""
        # These take long to import, and few programs need them.
        from burn.transforms._compiling import Aliased, record
        from burn.transforms._escapes import check_escapes
        from burn.transforms._history import History
        from burn.transforms._specialization import Specialization

        if self._history is None:
            self._history = History(getattr(self, "__qualname__", repr(self._function)))
        names = self._names(len(args))
        by_identity = self._by_identity
        while True:
            try:
                recorder, recorded = record(
                    self._function,
                    args,
                    keywords,
                    names,
                    by_identity,
                    self._takes_apart,
                    self._history,
                )
                break
            except Aliased as aliased:
                by_identity |= aliased.names
                self._by_identity |= aliased.modules
        check_escapes(recorder, "compile")
        recorder.operations.clear()
        del recorder
        if recorded.device is not None and not recorded.device.settings.compile:
            return None
        self._modules |= recorded.signature.modules
        if self._relaxed:
            recorded.relax()
        specialization = Specialization(
            recorded, self._given_up(recorded, names, keywords), self._lock
        )
        self._count += 1
        if recorded.is_for_one_call:
            return specialization
        self._specializations = [specialization, *self._specializations[: _MAX_SPECIALIZATIONS - 1]]
        self._last = specialization.call
        return specialization

    def _takes_apart(self, name: str, module: Any) -> bool:
        """Whether a module is an input by its parameters: another one was there before."""
        return name in self._modules and self._modules[name] is not module

    def _names(self, count: int) -> list[str]:
        """The names of positional arguments."""
        try:
            parameters = list(inspect.signature(self._function).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        names = [
            parameter.name
            for parameter in parameters
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]
        rest = next(
            (
                parameter.name
                for parameter in parameters
                if parameter.kind is parameter.VAR_POSITIONAL
            ),
            "arguments",
        )
        more = [f"{rest}[{index}]" for index in range(max(0, count - len(names)))]
        return [*names, *more][:count]

    def _given_up(
        self, recorded: Recorded, names: Sequence[str], keywords: Mapping[str, Any]
    ) -> list[Given]:
        """The tensors among the arguments that the caller donates."""
        from burn.transforms._signature import argument_of

        wanted = set()
        for number in self._donate:
            if isinstance(number, int):
                if not -len(names) <= number < len(names):
                    raise ArgumentError(
                        f"there is no positional argument {number} to donate, of {len(names)}",
                        operation="compile",
                    )
                wanted.add(argument_of(names[number]))
            else:
                known = [*names, *keywords]
                if number not in known:
                    raise ArgumentError(
                        f"there is no argument {shown_value(number)} to donate",
                        hint=f"The arguments are {', '.join(known) or 'none'}",
                        operation="compile",
                    )
                wanted.add(number)
        returned = {
            *builtins.compile(recorded.result, "<burn.compile>", "eval").co_names,
            *[view.base for view in recorded.views],
        }
        return [
            given
            for given in recorded.given
            if given.is_argument
            and given.is_first
            and argument_of(given.name) in wanted
            and given.variable not in returned  # the caller gets it back, or a view of it
        ]

    def _warn(
        self,
        before: Specialization,
        specialization: Specialization,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> None:
        """Say what changes, where a function is compiled again and again."""
        if self._count <= _MANY or self._has_warned:
            return
        self._has_warned = True
        changes = [
            f"{name} was {before.described.get(name, 'missing')} and is "
            f"{specialization.described.get(name, 'missing')}"
            for name in {**before.described, **specialization.described}
            if before.described.get(name) != specialization.described.get(name)
        ]
        if not changes:
            missed = before.call(args, keywords)
            changes = [missed.what] if missed.__class__ is Miss else ["a tensor from outside"]
        warnings.warn(
            f"burn.compile: {getattr(self, '__qualname__', self._function)} is compiled for the "
            f"{self._count}th time. Of the last two calls differ: {'; '.join(changes)}. Pass a "
            "number that changes as a tensor, or as burn.ir.RuntimeNumber where it is a learning "
            "rate or a step; pad tensors to a few shapes",
            stacklevel=4,
        )

    def renew_lock(self) -> None:
        """Forget all programs, of which another thread of the parent process may hold the lock."""
        self._lock = threading.RLock()
        self._specializations, self._last = [], _nothing

    # What was compiled.

    @property
    def programs(self) -> int:  # noqa: D102 — see the class
        return len(self._specializations)

    def clear(self) -> None:
        """Forget all programs, and the tensors that they hold."""
        with _tracing:
            self._specializations, self._last = [], _nothing
            self._count, self._has_warned = 0, False
            self._by_identity, self._modules, self._history = frozenset(), {}, None

    @property
    def graph(self) -> GraphIr:
        """The program of the last signature, after the passes."""
        return self._latest("graph").graph

    @property
    def kernels(self) -> Mapping[str, str]:
        """The source texts of the kernels that were generated, by their names."""
        executable = self._latest("kernels").executable
        return {} if executable is None else executable.kernels

    def explain(self) -> str:
        """What runs as one kernel, and what does not and why."""
        executable = self._latest("explain").executable
        return "nothing runs" if executable is None else str(executable.explain())

    def cost(self) -> GraphCost:
        """Floating-point operations and bytes of the program; see `burn.ir.GraphIr.cost`."""
        return self.graph.cost()

    def svg(self) -> str:
        """A picture of what runs, as a document in SVG: each kernel is a frame with its operations.

        The numbers are those of `explain`. The pointer over a box or a line shows the line of the
        user's program, and the call.
        """
        latest = self._latest("svg")
        return latest.graph.svg() if latest.executable is None else latest.executable.svg()

    def _latest(self, name: str) -> Specialization:
        specializations = self._specializations
        if not specializations:
            raise ArgumentError(
                "the function is not compiled yet",
                hint="Call it first",
                operation=f"Compiled.{name}",
            )
        return specializations[0]


def _named(module: str | None, name: str) -> Any:
    """The object of a module with a name, or None."""
    found: Any = sys.modules.get(module or "")
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _nothing(args: Any, keywords: Any) -> Any:
    """Recognizes no call."""
    del args, keywords
    return _NOT_COMPILED


_NOT_COMPILED: Final = Miss("it is not compiled yet")


def _is_off(args: Any, keywords: Any) -> bool:
    """Whether compilation is switched off, for all devices or that of an argument."""
    if os.environ.get("BURN_COMPILE", "").strip() == "0":
        return True
    found = [leaf for leaf in leaves([args, keywords]) if is_tensor(leaf)]
    return any(not tensor.tensor_type.device.settings.compile for tensor in found)


def _donated(donate: Any) -> tuple[int | str, ...]:
    single = isinstance(donate, str) or isinstance(python_number(donate), int)
    is_one = single or is_tensor(donate) or not isinstance(donate, Iterable)
    found = (donate,) if is_one else tuple(donate)
    result: list[int | str] = []
    for name in found:
        number = python_number(name)
        if not isinstance(name, str) and number.__class__ is not int:
            raise OperandTypeError(
                f"donate has {shown_value(name)}, which names no argument",
                hint="Name arguments by their positions or names: donate=(0, 'state')",
                operation="compile",
            )
        result.append(name if isinstance(name, str) else int(number))
    return tuple(result)
