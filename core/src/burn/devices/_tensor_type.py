"""TensorType: the object that all tensors of one dtype on one device share."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from burn.devices._transforms import running_trace
from burn.locks import new_rlock

if TYPE_CHECKING:
    from burn.devices.device import Device
    from burn.dtype import DType

__all__ = ["TensorType", "forget_plans", "plans_hidden_from_traces"]


class TensorType:
    """The object that all tensors of one dtype on one device share.

    Two operands of one TensorType are of one device and one dtype, so a single comparison by
    identity lets an op go ahead, and `calls` has what it needs.

    Attributes
    ----------
    device : Device
        Where the tensors live.
    dtype : DType
        The dtype of their elements.
    calls : dict
        How ops run whose first tensor is of this type; see `burn.dispatch.resolution`, which fills
        it at first use.
    scalars : dict of type to callable
        For each type of Python number that may meet such a tensor without changing its dtype:
        what converts it, or raises OverflowError.
    constants : frozenset of TensorType
        Those of the same dtype on the same hardware with fewer layers: an op on operands of this
        type and of such a type runs here.
    """

    __slots__ = ("__weakref__", "calls", "constants", "device", "dtype", "scalars")

    def __init__(self, device: Device, dtype: DType) -> None:
        self.device = device
        self.dtype = dtype
        self.calls: dict[Any, Any] = {}
        self.scalars: dict[type, Callable[[Any], Any]] = {}
        self.constants: frozenset[TensorType] = frozenset()
        with _lock:
            (_inside_of_traces if device.is_traced else _outside_of_traces).add(self)
            if device.is_traced:
                self.calls = _Plans(self.calls, _is_outermost)
            elif _traces:
                self.calls = _Plans(self.calls, _is_outside)
        if dtype.is_float:
            self.scalars = {float: float, int: float}
        elif dtype.is_complex:
            self.scalars = {complex: complex, float: complex, int: complex}
        elif dtype.is_integer:
            self.scalars = {int: functools.partial(_in_range, *dtype.integer_range)}

    def __repr__(self) -> str:
        return f"TensorType({self.device}, {self.dtype})"


def _in_range(low: int, high: int, number: int) -> int:
    if low <= number <= high:
        return number
    raise OverflowError


class _Plans(dict[Any, Any]):
    """The plans of a TensorType that some threads do not see: it is empty, and asks who looks.

    What is planned anew joins the running trace first. So a trace sees no plan for tensors from
    outside of it: neither of those whose ops run, nor of those of a trace around it.
    """

    def __init__(self, plans: dict[Any, Any], is_visible: Callable[[], bool]) -> None:
        super().__init__()
        self.plans = plans
        self._is_visible = is_visible

    def __missing__(self, key: Any) -> Any:
        if self._is_visible():
            return self.plans[key]
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return self._is_visible() and key in self.plans

    def __setitem__(self, key: Any, plan: Any) -> None:
        self.plans[key] = plan

    def get(self, key: Any, default: Any = None) -> Any:
        """The plan of a call, if this thread sees it."""
        return self.plans.get(key, default) if self._is_visible() else default

    def clear(self) -> None:
        """Forget all plans."""
        self.plans.clear()


def _is_outside() -> bool:
    """Whether no trace runs here."""
    return running_trace() is None


def _is_outermost() -> bool:
    """Whether no trace runs around the one that runs here."""
    trace = running_trace()
    return trace is None or trace.outer is None


_lock: Final = new_rlock()
"""Held while a trace begins or ends, and while a TensorType is made."""

_outside_of_traces: Final[WeakSet[TensorType]] = WeakSet()
"""Every TensorType of a device whose ops run."""

_inside_of_traces: Final[WeakSet[TensorType]] = WeakSet()
"""Every TensorType of a device whose ops a trace writes down."""

_traces = 0
"""Number of traces that run now, in all threads."""


def forget_plans() -> None:
    """Plan each call anew, as op tables have forgotten what they resolved.

    A plan that another thread makes in the meantime is kept where nothing looks for it.
    """
    with _lock:
        for tensor_type in _outside_of_traces:
            tensor_type.calls = _Plans({}, _is_outside) if _traces else {}
        for tensor_type in _inside_of_traces:
            tensor_type.calls = _Plans({}, _is_outermost)


@contextlib.contextmanager
def plans_hidden_from_traces() -> Iterator[None]:
    """Context of a trace: its thread sees no plan for tensors from outside of traces."""
    global _traces  # noqa: PLW0603 — changed under the lock only
    with _lock:
        _traces += 1
        if _traces == 1:
            for tensor_type in _outside_of_traces:
                tensor_type.calls = _Plans(tensor_type.calls, _is_outside)
    try:
        yield
    finally:
        with _lock:
            _traces -= 1
            if not _traces:
                for tensor_type in _outside_of_traces:
                    tensor_type.calls = tensor_type.calls.plans  # type: ignore[attr-defined]  # hidden above
