"""OpTable: a backend's ops on one device, each its own method or the op's default."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from burn.backend.tensor_ops import is_implemented
from burn.dtype import DType
from burn.errors import BurnError, DTypeError, UnsupportedOpError
from burn.ops import observing
from burn.ops.op import REGISTRY, Op, Tag
from burn.ops.overrides import difference_of
from burn.ops.quiet import quiet_context, run_in

if TYPE_CHECKING:
    from burn.device_id import DeviceId

__all__ = [
    "DecoratorTable",
    "Generator",
    "OpTable",
    "resolve",
    "resolve_below",
    "specialized",
    "with_requirement",
    "wrapping",
]

_log = logging.getLogger("burn")


class Generator(Protocol):
    """Makes ops of generated kernels."""

    def runner(self, backend: Any, device: DeviceId, /) -> Any | None:
        """What runs kernels on a device of a backend; None if it has no language for them."""

    def covers(self, definition: Op, /) -> bool:
        """Whether an op may be kernels."""

    def method(
        self, table: OpTable, definition: Op, fallback: Callable[..., Any], /
    ) -> Callable[..., Any]:
        """The callable of an op; `fallback` runs the calls that kernels do not compute."""


class OpTable:
    """The ops of one device as attributes: ``table.add(a, b)`` works on primitives.

    An op is resolved when it is first asked for, and from then on is a plain attribute of the
    table, so that a call costs a dictionary look-up.

    Parameters
    ----------
    backend : object
        What has the backend's methods: usually the backend, or what its `for_device` returned.
    device : DeviceId
        The device, passed to creation ops.
    """

    handle: Any = None
    """The `burn.Device` whose table this is, once it has opened one."""

    is_observed: ClassVar[bool] = True
    """Whether observers see its ops: not where other tables run them, or nothing does."""

    is_recorded: bool = False
    """Whether calls are written down, and no tensor has a value."""

    generator: ClassVar[Generator | None] = None
    """Makes ops of generated kernels. It is handed down from the compiler, which is above."""

    def __new__(cls, *_: Any, **__: Any) -> Self:  # noqa: D102 — see the class
        self = super().__new__(cls)
        observing.watch(self)
        return self

    def __init__(self, backend: Any, device: DeviceId) -> None:
        self.backend = observing.observed(self, backend)
        self.device = device
        self.dtypes: dict[Any, DType] = {}
        """DType of each dtype object that the backend's primitives carry."""
        for dtype in DType.members():
            native = backend.native_dtype(dtype)
            if native is not None:
                self.dtypes[native] = dtype
        self._context = quiet_context(backend)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        definition = REGISTRY.get(name)
        if definition is None:
            raise AttributeError(f"there is no op {name!r}")
        generation = observing.generation()
        resolved = self._resolve(definition)
        if self.is_observed and observing.is_observing():
            resolved = wrapping(resolved, functools.partial(observing.reporting, self, name))
        vars(self)[name] = resolved
        if generation != observing.generation():  # forgotten in another thread, in the meantime
            vars(self).pop(name, None)
        return resolved

    def forget(self) -> None:
        """Resolve all ops anew when they are next asked for, as observers have come or gone."""
        for name in REGISTRY:
            vars(self).pop(name, None)
        if self.is_observed and "backend" in vars(self):
            self.backend = observing.observed(self, self.backend)

    def dtype(self, primitive: Any) -> DType:
        """DType of a primitive."""
        return self.dtypes.get(primitive.dtype) or self.dtype_of(primitive.dtype)

    def dtype_of(self, native: Any) -> DType:
        """DType of a dtype object that the backend's primitives carry."""
        found = self.dtypes.get(native)
        if found is None:
            raise DTypeError(
                f"the backend made a tensor of {native}, which it does not declare",
                hint="See Backend.native_dtype",
            )
        return found

    def origin(self, definition: Op) -> str:
        """Where an op comes from.

        It is ``native``, ``generated`` (kernels in the language of the backend; calls that these do
        not compute run the default), ``derived``, ``host`` or ``unsupported``.
        """
        if self._own_method(definition) is not None:
            return "native"
        if self._is_generated(definition):
            return "generated"
        if definition.default is not None:
            return "derived"
        return "unsupported" if definition.host is None else "host"

    def decomposed(self, name: str, *operands: Any, **attributes: Any) -> Any:
        """An op made of others, which are the backend's own where it has them.

        For a method of a backend that leaves some dtypes, or some shapes, to the default of its op.
        """
        default: Any = REGISTRY[name].default
        return default(self, *operands, **attributes)

    def close(self, reason: BurnError) -> None:
        """Remove the ops: from now on each of them raises `reason`."""
        for name in REGISTRY.keys() & vars(self).keys():
            del vars(self)[name]
        backend = observing.plain(self.backend)
        if vars(backend).get("ops") is self:
            del backend.ops
        self.backend = _Closed(reason)

    def _own_method(self, definition: Op) -> Callable[..., Any] | None:
        """The method of the backend; None if there is none that a call of the op can satisfy."""
        method = getattr(self.backend, definition.name, None)
        if not is_implemented(method):
            return None
        difference = difference_of(definition, method)
        if difference is None:
            return method
        if difference.problem:
            return None
        return difference.adapted(definition, method, functools.partial(self._fallback, definition))

    def _resolve(self, definition: Op) -> Callable[..., Any]:
        function = self._implementation(definition)
        named = getattr(self.backend, "named", None)
        if named is not None and Tag.CHECKS_INDICES in definition.tags:
            function = wrapping(function, functools.partial(named, definition.name))
        if definition.requires_numbers is not None:
            function = self._with_checked_numbers(definition, function)
        return with_requirement(definition, function)

    def _with_checked_numbers(
        self, definition: Op, function: Callable[..., Any]
    ) -> Callable[..., Any]:
        """A callable of an op that first checks the numbers among the operands."""
        requires: Any = definition.requires_numbers
        kinds = definition.number_kinds

        def checked(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*operands: Any) -> Any:
                requires(*operands)
                return function(*operands)

            return call

        def call(*operands: Any) -> Any:
            dtypes = [operand.dtype for operand in operands if hasattr(operand, "dtype")]
            if dtypes and self.dtype_of(dtypes[0]).kind in kinds:
                requires(*operands)
            return function(*operands)

        def specialize(dtype: DType) -> Callable[..., Any]:
            found = specialized(function, dtype)
            return checked(found) if dtype.kind in kinds else found

        result: Any = call
        result.specialize = specialize
        return call

    def _implementation(self, definition: Op) -> Callable[..., Any]:
        method = self._own_method(definition)
        if method is not None:
            if Tag.CREATION in definition.tags:
                method = functools.partial(method, device=self.device)
            if self._context is None or Tag.VIEW in definition.tags:  # a view computes nothing
                return method
            return run_in(self._context, definition, method)
        return self.generated(definition.name) or self._fallback(definition)

    @functools.cached_property
    def runner(self) -> Any | None:
        """What runs generated kernels on the device; None where the backend has no language."""
        if self.generator is None or type(self) is not OpTable:
            return None
        return self.generator.runner(observing.plain(self.backend), self.device)

    def _is_generated(self, definition: Op) -> bool:
        return self.generator is not None and (
            self.runner is not None and self.generator.covers(definition)
        )

    def generated(
        self, name: str, fallback: Callable[..., Any] | None = None
    ) -> Callable[..., Any] | None:
        """The callable of an op by generated kernels; None where the backend has none.

        It is for methods of backends that leave large tensors to kernels. Calls that no kernel
        computes run `fallback`, by default the decomposition of the op.
        """
        definition = REGISTRY[name]
        if self.generator is None or not self._is_generated(definition):
            return None
        if fallback is None:
            fallback = functools.partial(self._run_fallback, definition)
        return self.generator.method(self, definition, fallback)

    def _run_fallback(self, definition: Op, *operands: Any, **attributes: Any) -> Any:
        return self._fallback(definition)(*operands, **attributes)

    def _fallback(self, definition: Op) -> Callable[..., Any]:
        """What runs an op without the backend's own method, or generated kernels.

        Raises
        ------
        UnsupportedOpError
            If the op is required.
        """
        if definition.default is not None:
            return functools.partial(definition.default, self)
        backend = observing.plain(self.backend)
        if definition.host is not None:
            _log.info("%s runs on the host for %r", definition.name, backend)
            # NumPy computes, whatever the backend's library is.
            return np.errstate(all="ignore")(functools.partial(definition.host, self))
        name = type(backend).__name__
        method = getattr(backend, definition.name, None)
        difference = difference_of(definition, method) if is_implemented(method) else None
        if difference is not None:
            raise UnsupportedOpError(
                f"the method {definition.name!r} of {name} {difference.reason}",
                hint="See the operation in the documentation, or burn.ops.REGISTRY",
            )
        raise UnsupportedOpError(
            f"{name} does not implement the required op {definition.name!r}",
            hint="A backend must have every op that has no default: see burn.backend",
        )


class DecoratorTable(OpTable):
    """The ops of one device under a decorator, whose own tensors wrap primitives.

    Parameters
    ----------
    below : OpTable
        The table that computes.
    tensor_type : type
        The class of the decorator's own tensors, which have a `primitive` of the level below.
    """

    is_observed = False

    def __init__(self, below: OpTable, tensor_type: type) -> None:
        # The tables of both levels have the same dtypes and device.
        self.below = below
        self.tensor_type: Any = tensor_type
        self.backend = below.backend
        self.device = below.device
        self.dtypes = below.dtypes
        self.is_recorded = below.is_recorded

    def forget(self) -> None:
        """Resolve all ops anew; the table below, which is older, has done so."""
        super().forget()
        self.backend = self.below.backend

    def close(self, reason: BurnError) -> None:
        """Remove the ops of both tables."""
        super().close(reason)
        self.below.close(reason)

    def _is_own(self, operand: Any) -> bool:
        """Whether an operand is a tensor of the decorator, or one in a list is."""
        if operand.__class__ is list:
            return any(map(self._is_own, operand))
        return operand.__class__ is self.tensor_type


class _Closed:
    """Replaces the backend of a closed table: each of its members raises the reason."""

    def __init__(self, reason: BurnError) -> None:
        self._reason = reason

    def __getattr__(self, name: str) -> Any:
        raise self._reason


def specialized(function: Callable[..., Any], dtype: DType) -> Callable[..., Any]:
    """The callable of an op for tensors of one dtype; see `Backend` for ``specialize``."""
    choose = getattr(function, "specialize", None)
    return function if choose is None else choose(dtype)


def wrapping(
    function: Callable[..., Any], wrap: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Callable[..., Any]:
    """A wrapped callable of an op, whose ``specialize`` wraps what that of the callable gives."""
    wrapped: Any = wrap(function)
    choose = getattr(function, "specialize", None)
    if choose is not None:
        wrapped.specialize = lambda dtype: wrap(choose(dtype))
    return wrapped  # type: ignore[no-any-return]  # a callable


def with_requirement(definition: Op, function: Callable[..., Any]) -> Callable[..., Any]:
    """A callable of an op that first checks the attributes, if the op has a requirement."""
    requires = definition.requires
    if requires is None:
        return function

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*operands: Any, **attributes: Any) -> Any:
            requires(**attributes)
            return function(*operands, **attributes)

        return call

    return wrapping(function, wrap)


def resolve_below(backend: Any, device: DeviceId, *, checkpointing: bool) -> OpTable:
    """The op table below a decorator: of a backend, or of another decorator with that strategy."""
    if not hasattr(backend, "below"):
        return resolve(backend, device)
    table: OpTable = backend.for_device(device, checkpointing=checkpointing)
    return table


def resolve(backend: Any, device: DeviceId) -> OpTable:
    """The op table of a backend for one device.

    The object that `Backend.for_device` returns has it as ``ops`` from then on, so that a second
    call returns the same table, and its methods can run an op's default.
    """
    on_device = backend.for_device(device)
    if isinstance(on_device, OpTable):
        return on_device
    table: OpTable | None = getattr(on_device, "__dict__", {}).get("ops")
    if table is None or table.device != device:
        table = on_device.ops = OpTable(on_device, device)
    return table
