"""Samples of public functions: calls that work, calls that are refused, and references in NumPy.

Ops have samples of their own (`burn.testing.op_samples`). Those here are calls as users write them:
of functions that are composed of several ops, and of all others as examples of valid calls. A
family module under `burn.testing.functions` attaches them by the public name below ``burn``::

    @function_reference(
        "diff",
        samples=[call("columns", floats(3, 4), axis=0), call("integers", integers(5))],
        errors=[wrong("a negative order", ArgumentError, floats(3), n=-1)],
    )
    def _(x, *, axis=-1, n=1):
        return np.diff(x, n=n, axis=axis)

Arrays anywhere in the arguments become tensors on the device that is tried. They are float64,
int64, bool or complex128. Those of the strongest kind among them (complex over float over integer
over bool) get the dtype that is tried: each one of the kinds of the call. The others get the
defaults of the device, and floats beside complex arrays the component of the complex dtype. The
reference gets the same arguments with the arrays widened again, as that of an op does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from burn.dtype import DType, Kind
from burn.errors import BurnError
from burn.testing.op_samples import Reference, Terms

__all__ = [
    "FUNCTIONS",
    "FunctionCall",
    "FunctionSamples",
    "WrongCall",
    "arrays_in",
    "call",
    "function_calls",
    "function_reference",
    "map_arguments",
    "public_function",
    "wrong",
]


@dataclass(frozen=True, eq=False)
class FunctionCall:
    """One call of a public function that works.

    Attributes
    ----------
    note : str
        What is special about it, in a few words. It becomes a part of the name of the check.
    arguments : tuple
        Positional arguments; NumPy arrays in them, and in lists, tuples and dicts, stand for
        tensors. An array that is a view (transposed, strided, reversed, expanded) is a view on the
        device too.
    keywords : dict
        Keyword arguments, likewise; a value may be `TESTED_DTYPE`. A function that takes a
        ``device`` and is given no tensor gets the device that is tried.
    kinds : Kind or None
        Kinds of the dtypes with which it is tried. None stands for floats where an array is one of
        floats, for complex dtypes likewise, and else for the defaults of the device alone.
    differentiable : bool
        False where some derivative does not exist at this point.
    """

    note: str
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    kinds: Kind | None = None
    differentiable: bool = True


@dataclass(frozen=True, eq=False)
class WrongCall:
    """One call of a public function that must be refused.

    Attributes
    ----------
    note : str
        What is wrong with it, in a few words.
    expected : type
        The class of the error.
    arguments : tuple
        As in a `FunctionCall`; arrays of floats become tensors of float32.
    keywords : dict
        Keyword arguments, likewise.
    in_data : bool
        Whether only the data show it: the error may come when the result is read.
    """

    note: str
    expected: type[BurnError]
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    in_data: bool = False


@dataclass(frozen=True, eq=False)
class FunctionSamples:
    """The calls of one public function, and how their results are compared.

    Attributes
    ----------
    name : str
        Its public name below ``burn``: ``"linalg.solve"``, ``"Tensor.view"``.
    samples : tuple of FunctionCall
        Calls that work.
    errors : tuple of WrongCall
        Calls that must be refused.
    reference : callable, optional
        What the calls should give. Without it results are compared with those of the backend
        `NumpyBackend` in float64.
    exact : bool
        Whether floats must be equal, but for a rounding to the dtype of the result.
    terms : callable, optional
        For contractions and sums; see `burn.testing.op_samples.Terms`.
    magnitude : callable, optional
        For what rounds intermediate results to the dtype of the arguments: takes what the reference
        takes, and returns the largest magnitude of those on the way to each element, as a number
        or an array. The tolerance is relative to it.
    needs_complex : bool
        Whether it computes with complex dtypes also where no argument is complex.
    transforms : bool
        Whether it can be traced and mapped by ``burn.vmap``: False where a shape depends on data.
    needs : tuple of DType
        Dtypes that it computes with whatever the arguments are.
    """

    name: str
    samples: tuple[FunctionCall, ...]
    errors: tuple[WrongCall, ...] = ()
    reference: Reference | None = None
    exact: bool = False
    terms: Terms | None = None
    magnitude: Reference | None = None
    needs_complex: bool = False
    transforms: bool = True
    needs: tuple[DType, ...] = ()


FUNCTIONS: Final[dict[str, FunctionSamples]] = {}
"""Samples of public functions by their names, filled by importing `burn.testing.functions`."""


def call(
    note: str,
    /,
    *arguments: Any,
    kinds: Kind | None = None,
    differentiable: bool = True,
    **keywords: Any,
) -> FunctionCall:
    """A `FunctionCall`."""
    return FunctionCall(note, arguments, keywords, kinds, differentiable)


def wrong(
    note: str,
    expected: type[BurnError],
    /,
    *arguments: Any,
    in_data: bool = False,
    **keywords: Any,
) -> WrongCall:
    """A `WrongCall`."""
    return WrongCall(note, expected, arguments, keywords, in_data)


def function_reference(
    name: str,
    *,
    samples: Iterable[FunctionCall],
    errors: Iterable[WrongCall] = (),
    exact: bool = False,
    terms: Terms | None = None,
    magnitude: Reference | None = None,
    needs_complex: bool = False,
    transforms: bool = True,
) -> Callable[[Reference], Reference]:
    """Decorator: attach calls to a public function, and the function that says what they give.

    Parameters
    ----------
    name : str
        The public name below ``burn``.
    samples, errors : iterable
        What it is tried on.
    exact, terms, magnitude, needs_complex, transforms
        See `FunctionSamples`.

    Raises
    ------
    ValueError
        If the function has samples already, or two with one note, or a note has a character that
        lists of expected failures use.
    """

    def attach(function: Reference) -> Reference:
        _attach(
            FunctionSamples(
                name,
                tuple(samples),
                tuple(errors),
                function,
                exact,
                terms,
                magnitude,
                needs_complex,
                transforms,
            )
        )
        return function

    return attach


def function_calls(
    name: str,
    *samples: FunctionCall,
    errors: Sequence[WrongCall] = (),
    needs_complex: bool = False,
    transforms: bool = True,
    needs: tuple[DType, ...] = (),
) -> None:
    """Attach calls to a public function whose values the samples of its op test already.

    Parameters
    ----------
    name : str
        The public name below ``burn``.
    *samples : FunctionCall
        Calls that work.
    errors : sequence of WrongCall
        Calls that must be refused.
    needs_complex, transforms, needs
        See `FunctionSamples`.

    Raises
    ------
    ValueError
        As in `function_reference`.
    """
    _attach(
        FunctionSamples(
            name,
            samples,
            tuple(errors),
            needs_complex=needs_complex,
            transforms=transforms,
            needs=needs,
        )
    )


def public_function(name: str) -> Callable[..., Any]:
    """The function of a public name: ``"sum"``, ``"nn.functional.relu"``, ``"Tensor.sum"``."""
    from burn import namespace  # the samples are read without it

    found: Any = namespace
    for part in name.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]  # whatever is public there


def map_arguments(function: Callable[[Any], Any], value: Any) -> Any:
    """Apply a function to each NumPy array in an argument, and within lists, tuples and dicts."""
    if isinstance(value, np.ndarray):
        return function(value)
    if type(value) in (list, tuple):
        return type(value)([map_arguments(function, part) for part in value])
    if type(value) is dict:
        return {key: map_arguments(function, part) for key, part in value.items()}
    return value


def arrays_in(value: Any) -> Iterator[Any]:
    """The NumPy arrays in an argument, and within lists, tuples and dicts."""
    if isinstance(value, np.ndarray):
        yield value
    elif type(value) in (list, tuple):
        for part in value:
            yield from arrays_in(part)
    elif isinstance(value, Mapping):
        yield from arrays_in(list(value.values()))


def _attach(samples: FunctionSamples) -> None:
    if samples.name in FUNCTIONS:
        raise ValueError(f"function {samples.name!r} has samples already")
    notes = [sample.note for sample in samples.samples] + [error.note for error in samples.errors]
    doubled = sorted({note for note in notes if notes.count(note) > 1})
    if doubled:
        raise ValueError(f"function {samples.name!r} has several samples: {', '.join(doubled)}")
    for note in notes:
        if set(note) & set("#@*\n"):  # they mean something in lists of expected failures
            raise ValueError(f"sample {note!r} of {samples.name!r}: a note has no #, @, * or \\n")
    FUNCTIONS[samples.name] = samples
