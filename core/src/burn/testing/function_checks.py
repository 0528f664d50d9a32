"""Runs of public functions on a device, and checks of their values."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn import namespace as burn
from burn.devices import Device
from burn.dtype import DType, Kind, complex64, complex128, float32, float64
from burn.functions.common import dispatch
from burn.generator import GeneratorState, get_state, set_state
from burn.testing._check import Failure
from burn.testing._settings import hostile_settings
from burn.testing.function_samples import (
    FunctionCall,
    FunctionSamples,
    arrays_in,
    map_arguments,
    public_function,
)
from burn.testing.op_samples import TESTED_DTYPE, Array
from burn.testing.reference_backend import reference_devices
from burn.testing.subject import Subject, widened
from burn.testing.tolerance import ELEMENTWISE, compare

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "Trial",
    "check_function",
    "expect_near",
    "flat",
    "main_kind",
    "read",
    "reference_subject",
    "tried_dtypes",
]

_STRONGEST_FIRST: Final = "cfib"
"""The kinds of NumPy's dtypes: complex, float, integer, bool."""

_PLAIN: Final = (bool, int, float, complex, str)
"""Results that are equal on all backends; others, such as functions, are of one class."""

_COARSE: Final = 10.0
"""How many times the elementwise tolerance of the largest element a result may be away from that
of another backend: a wrapper that mixes up its arguments is away by far more."""


class Trial:
    """A call of a public function with one dtype on one device.

    Parameters
    ----------
    subject : Subject
        The device, as users know it.
    samples : FunctionSamples
        The function.
    one : FunctionCall
        The call.
    dtype : DType or None
        The dtype that is tried; None for the defaults of the device.
    """

    def __init__(
        self, subject: Subject, samples: FunctionSamples, one: FunctionCall, dtype: DType | None
    ) -> None:
        self.subject = subject
        self.samples = samples
        self.one = one
        self.dtype = dtype
        self._main = main_kind(one)

    @property
    def device(self) -> Device:
        """The device as users know it."""
        device = self.subject.handle
        if device is None:
            raise Failure(f"{self.subject} is no device that users know")
        return device

    def __str__(self) -> str:
        with_dtype = f" with {self.dtype}" if self.dtype else ""
        return f"burn.{self.samples.name} ({self.one.note}){with_dtype}"

    def converted(self, array: Array) -> Array:
        """An array of the call in the dtype that its tensor has."""
        kind = array.dtype.kind
        dtype = self.dtype
        if dtype is None or kind != self._main:
            part = float32 if dtype is None or not dtype.is_complex else dtype.component
            defaults = {"c": complex64, "f": part, "i": self.subject.index_dtype}
            dtype = defaults.get(kind)
        with np.errstate(all="ignore"):
            return array if dtype is None else array.astype(dtype.numpy)

    def map(self, function: Callable[[Array], Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments with each array replaced, and placeholders filled in."""

        def replace(value: Any) -> Any:
            return self.dtype if value is TESTED_DTYPE else map_arguments(function, value)

        arguments = [replace(value) for value in self.one.arguments]  # in the order of `arrays_in`
        return arguments, {name: replace(value) for name, value in self.one.keywords.items()}

    def tensor(self, array: Array) -> Tensor:
        """A tensor for an array of the call, in its layout."""
        primitive = self.subject.upload(self.converted(array), array)
        return dispatch.wrap(primitive, self.device.type_of(primitive))

    def run(self, replace: Callable[[Array], Any] | None = None) -> Any:
        """Call the function; `replace` gives the tensor for each array."""
        return self.made(*self.map(self.tensor if replace is None else replace))

    def made(self, arguments: Sequence[Any], keywords: dict[str, Any]) -> Any:
        """Call the function with these arguments."""
        if "device" not in keywords and needs_device(self.samples.name, self.one):
            keywords["device"] = self.device
        with _seeded(self.device):
            return public_function(self.samples.name)(*arguments, **keywords)

    def reference(self, values: Sequence[Array] | None = None) -> list[Any]:
        """What the reference gives, flat, for other values of the arrays that are tried."""
        if self.samples.reference is None:
            raise Failure(f"{self} has no reference")
        arguments, keywords = self.map(self._replaced(values))
        with np.errstate(all="ignore"):
            return flat(self.samples.reference(*arguments, **keywords))

    def _replaced(self, values: Sequence[Array] | None) -> Callable[[Array], Array]:
        if values is None:
            return lambda array: widened(self.converted(array))
        rest = iter(values)
        return lambda array: (
            next(rest) if array.dtype.kind == "f" else widened(self.converted(array))
        )

    @property
    def floats(self) -> list[Array]:
        """The float arrays of the call, widened."""
        arrays = arrays_in([*self.one.arguments, self.one.keywords])
        return [widened(self.converted(array)) for array in arrays if array.dtype.kind == "f"]


def main_kind(one: FunctionCall) -> str:
    """The strongest kind of NumPy's among the arrays of a call; "" for none."""
    kinds = {array.dtype.kind for array in arrays_in([*one.arguments, one.keywords])}
    return next((kind for kind in _STRONGEST_FIRST if kind in kinds), "")


def needs_device(name: str, one: FunctionCall) -> bool:
    """Whether a call creates a tensor of no other, so that it must be told the device."""
    if main_kind(one):
        return False
    return "device" in inspect.signature(public_function(name)).parameters


def tried_dtypes(
    subject: Subject, samples: FunctionSamples, one: FunctionCall
) -> list[DType | None]:
    """The dtypes with which a call is tried on a device.

    Without a reference that is one: the samples of the op try the others.
    """
    main = main_kind(one)
    kinds = one.kinds or {"c": Kind.COMPLEX, "f": Kind.FLOAT}.get(main)
    if kinds is None:
        return [None] if _can(subject, samples, one, None) else []
    dtypes = [
        dtype
        for dtype in DType.members()
        if dtype.kind in kinds and _can(subject, samples, one, dtype)
    ]
    if samples.reference is None:
        typical = {float32, complex64, subject.index_dtype}
        dtypes = [dtype for dtype in dtypes if dtype in typical] or dtypes[:1]
    return [*dtypes]


def _can(
    subject: Subject, samples: FunctionSamples, one: FunctionCall, dtype: DType | None
) -> bool:
    """Whether a device has all dtypes of a call."""
    used = [value for value in one.keywords.values() if isinstance(value, DType)]
    used += [value for value in one.arguments if isinstance(value, DType)]
    used += samples.needs if dtype is None else [*samples.needs, dtype]
    if samples.needs_complex:
        used.append(complex128 if dtype is float64 else complex64)
    if any(array.dtype.kind == "c" for array in arrays_in([*one.arguments, one.keywords])):
        used.append(complex64 if dtype is None else dtype)
    return all(map(subject.supports, used))


def check_function(
    subject: Subject, samples: FunctionSamples, one: FunctionCall, dtype: DType | None
) -> float | None:
    """Compare the results of a call with the reference, or with those of another backend.

    Returns
    -------
    float or None
        The largest error as a fraction of what is allowed; None where results must be equal.
    """
    trial = Trial(subject, samples, one, dtype)
    with hostile_settings():
        found = [read(value) for value in flat(trial.run())]
    if samples.reference is None:
        _compare_backends(trial, found)
        return None
    expected = trial.reference()
    arguments, keywords = trial.map(lambda array: widened(trial.converted(array)))
    with np.errstate(all="ignore"):
        terms = samples.terms(*arguments, **keywords) if samples.terms else None
        magnitude = samples.magnitude(*arguments, **keywords) if samples.magnitude else 0.0
    if len(found) != len(expected):
        raise Failure(f"{trial} gives {len(found)} results, not {len(expected)}")
    worst = None
    for index, (actual, right) in enumerate(zip(found, expected, strict=True)):
        what = f"{trial}: result {index}" if len(found) > 1 else str(trial)
        if not isinstance(actual, np.ndarray):
            if actual != right:
                raise Failure(f"{what} is {actual!r}, not {right!r}")
            continue
        _check_dtype(what, trial, actual, np.asarray(right))
        found_dtype = DType.of(actual.dtype)
        comparison = compare(
            actual,
            right,
            found_dtype,
            exact=samples.exact,
            terms=terms,
            magnitude=magnitude,
        )
        if comparison.text:
            raise Failure(f"{what}: {comparison.text}", worst=comparison.worst)
        if comparison.worst is not None:
            worst = max(worst or 0.0, comparison.worst)
    return worst


def _check_dtype(what: str, trial: Trial, actual: Array, expected: Array) -> None:
    """See that a result is of the kind of its reference; floats have the dtype that is tried."""
    found = DType.of(actual.dtype)
    sorts = {"b": found.is_bool, "f": found.is_float, "c": found.is_complex}
    if not sorts.get(expected.dtype.kind, found.is_integer):
        raise Failure(f"{what} has dtype {found}, where the reference gives {expected.dtype}")
    tried = trial.dtype
    is_given = any(isinstance(value, DType) for value in trial.one.keywords.values())
    if tried is None or is_given or not (tried.is_float or tried.is_complex):
        return
    if (found.is_float or found.is_complex) and found.component is not tried.component:
        raise Failure(f"{what} has dtype {found} for arguments of {tried}")


def _compare_backends(trial: Trial, found: list[Any]) -> None:
    """Compare with the results of the reference device, where it has the dtypes."""
    reference = reference_subject(trial)
    if not _can(reference, trial.samples, trial.one, trial.dtype):
        return
    other = Trial(reference, trial.samples, trial.one, trial.dtype)
    expected = [read(value) for value in flat(other.run())]
    if len(found) != len(expected):
        raise Failure(f"{trial} gives {len(found)} results, not {len(expected)}")
    for actual, right in zip(found, expected, strict=True):
        if not isinstance(actual, np.ndarray):
            is_same = actual == right if isinstance(actual, _PLAIN) else type(actual) is type(right)
            if not is_same:
                raise Failure(f"{trial} gives {actual!r}, not {right!r}")
            continue
        expect_near(str(trial), actual, right)


def expect_near(what: str, actual: Array, expected: Array) -> None:
    """Fail unless two results agree but for what two ways to compute them differ by."""
    if actual.shape != expected.shape:
        raise Failure(f"{what} has shape {actual.shape}, not {expected.shape}")
    dtype = DType.of(actual.dtype)
    if not (dtype.is_float or dtype.is_complex):
        text = compare(actual, expected, dtype).text
    else:
        wide = np.complex128 if dtype.is_complex else np.float64
        x, y = actual.astype(wide), expected.astype(wide)
        relative, absolute = ELEMENTWISE[dtype.component]
        finite = np.abs(y[np.isfinite(y)])
        size = float(finite.max()) if finite.size else 0.0
        with np.errstate(all="ignore"):
            near = (x == y) | (np.isnan(x) & np.isnan(y))
            near |= np.abs(x - y) <= _COARSE * max(absolute, relative * size)
        text = "" if near.all() else f"got {actual}, expected {expected}"
    if text:
        raise Failure(f"{what}: {text}")


def reference_subject(trial: Trial) -> Subject:
    """The device of NumPy that the results and errors of a trial are compared with."""
    return _subject_of(reference_devices(trial.device.hardware)[0])


@functools.cache
def _subject_of(device: Device) -> Subject:
    return Subject.of(device)


def flat(result: Any) -> list[Any]:
    """Everything in a result that is no tuple, list or dict."""
    if isinstance(result, (tuple, list)):
        return [part for item in result for part in flat(item)]
    if isinstance(result, dict):
        return flat(list(result.values()))
    return [result]


def read(value: Any) -> Any:
    """A tensor as an array; everything else as it is."""
    return dispatch.to_data(value).array if isinstance(value, burn.Tensor) else value


@contextmanager
def _seeded(device: Device) -> Iterator[None]:
    """Context in which a device draws the same numbers each time; its generator is put back."""
    key = device.generator
    state = get_state(key)
    set_state(key, GeneratorState(7, 0))
    try:
        yield
    finally:
        set_state(key, state)
