"""Samples: operands and attributes with which an op is tested, and its reference in NumPy.

A family module under `burn.testing.samples` attaches both to an op::

    @reference("square", samples=[sample("a vector", floats(5))])
    def _(x):
        return x * x

One sample serves every dtype of a kind. Its arrays are float64, int64, bool or complex128; an array
of floats is rounded to each float dtype that is tried, and one of integers wrapped around into each
integer dtype. The reference gets what came of that, widened again: float64, int64 (uint64 for
unsigned dtypes), bool or complex128. So it computes with what the backend saw, and in more than
enough precision.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from burn.dtype import DType, Kind
from burn.errors import BurnError
from burn.ir import GraphIr
from burn.ops import REGISTRY, Op
from burn.plugins import registry

__all__ = [
    "INDEX_DTYPE",
    "SAME_SIZE_INTEGER",
    "SAMPLES",
    "TESTED_DTYPE",
    "Array",
    "ErrorSample",
    "OpSamples",
    "Reference",
    "Sample",
    "Terms",
    "TestedGraph",
    "also_for_complex",
    "error",
    "load_samples",
    "reference",
    "resolve_attributes",
    "sample",
]

Array: TypeAlias = npt.NDArray[Any]

Reference: TypeAlias = Callable[..., Any]
"""Takes the operands of the op, widened, and its attributes; returns its outputs, widened."""

Terms: TypeAlias = Callable[..., tuple[Any, Any]]
"""Takes what a `Reference` takes; for each element of the output the number of terms that are
added up for it, and the sum of their magnitudes."""


class _Placeholder:
    """An attribute that stands for a dtype which is known only when the sample is run."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


TESTED_DTYPE: Final = _Placeholder("TESTED_DTYPE")
"""As an attribute of a sample: the dtype that is being tried."""

INDEX_DTYPE: Final = _Placeholder("INDEX_DTYPE")
"""As an attribute of a sample: the default integer dtype of the device."""

SAME_SIZE_INTEGER: Final = _Placeholder("SAME_SIZE_INTEGER")
"""As an attribute of a sample: the signed integer dtype of the size of the one being tried."""


class TestedGraph:
    """As an attribute of a sample: a program on tensors of the dtype that is being tried.

    Parameters
    ----------
    text : str
        Its text, with ``DTYPE`` where that dtype is to be.
    shape : tuple of int
        What replaces ``SHAPE`` in it.
    """

    def __init__(self, text: str, *shape: int) -> None:
        self._text = text.strip().replace("SHAPE", ", ".join(map(str, shape)))

    @functools.cache  # noqa: B019 — a sample lives as long as its module
    def of(self, dtype: DType) -> GraphIr:
        """The program for a dtype."""
        return GraphIr.from_text(self._text.replace("DTYPE", dtype.name))


@dataclass(frozen=True, eq=False)
class Sample:
    """One call of an op that works.

    Attributes
    ----------
    note : str
        What is special about it, in a few words. It becomes a part of the test's name.
    operands : tuple
        NumPy arrays, Python numbers, None, or lists of arrays. An array that is a view (transposed,
        strided, reversed, expanded) is a view on the device too. Arrays for operands that do not
        promote (indices, masks) keep their dtype, but int64 becomes the device's integer dtype;
        those in lists have the dtype that is tried.
    attributes : dict
        Attributes of the call; a value may be a placeholder (`TESTED_DTYPE`, `INDEX_DTYPE`,
        `SAME_SIZE_INTEGER`) or a `TestedGraph`.
    kinds : Kind, optional
        For which kinds of dtypes it is meant. Without it `reference` tells from the operands that
        promote: a float makes it a sample for floats, else an integer one for integers (signed
        ones if a number is negative), else it is for bool.
    differentiable : bool
        False where some operand's derivative does not exist at this point.
    gradients : tuple, optional
        What the gradient rule must give by each operand, for a cotangent of ones, where the
        derivative does not exist but burn defines a value (None: not checked).
    """

    note: str
    operands: tuple[Any, ...]
    attributes: Mapping[str, Any]
    kinds: Kind | None = None
    differentiable: bool = True
    gradients: tuple[Any, ...] | None = None


@dataclass(frozen=True, eq=False)
class ErrorSample:
    """One call of an op that must be refused.

    Attributes
    ----------
    note : str
        What is wrong with it, in a few words.
    expected : type
        The class of the error.
    operands : tuple
        As in a `Sample`, but arrays keep their dtypes.
    attributes : dict
        Attributes of the call.
    in_data : bool
        Whether only the data show it: then `Op.infer` cannot know, and the error comes from the
        call or from the next read.
    lenient : bool
        Whether a backend may accept it nevertheless, because its library gives it the meaning that
        anybody would expect (a negative axis). The public functions never let it through.
    """

    note: str
    expected: type[BurnError]
    operands: tuple[Any, ...]
    attributes: Mapping[str, Any]
    in_data: bool = False
    lenient: bool = False


@dataclass(frozen=True, eq=False)
class OpSamples:
    """The samples, error samples and reference of one op, and how results are compared.

    Attributes
    ----------
    op : Op
        The op.
    reference : callable
        What it should give; see `Reference`.
    samples : tuple of Sample
        Calls that work.
    errors : tuple of ErrorSample
        Calls that must be refused.
    exact : bool
        Whether floats must be equal, the sign of a zero included: the op rounds at most once, and
        that is the cast to the output's dtype.
    signed_zeros : bool
        Whether a zero of a float dtype must have the sign that the reference gives it.
    terms : callable, optional
        For contractions and sums; see `Terms`. Their tolerance depends on what is added up.
    widens : bool
        False where the reference needs the operands in the dtype that is tried.
    """

    op: Op
    reference: Reference
    samples: tuple[Sample, ...]
    errors: tuple[ErrorSample, ...] = ()
    exact: bool = False
    signed_zeros: bool = False
    terms: Terms | None = None
    widens: bool = True


SAMPLES: Final[dict[str, OpSamples]] = {}
"""Samples of every op by its name, filled by importing `burn.testing.samples`."""


@functools.cache
def load_samples() -> None:
    """Let the plugins attach the samples that they bring, once."""
    registry.ask("burn_samples")


def sample(
    note: str,
    /,
    *operands: Any,
    kinds: Kind | None = None,
    differentiable: bool = True,
    gradients: tuple[Any, ...] | None = None,
    **attributes: Any,
) -> Sample:
    """A `Sample`."""
    return Sample(note, operands, attributes, kinds, differentiable, gradients)


def error(
    note: str,
    expected: type[BurnError],
    /,
    *operands: Any,
    in_data: bool = False,
    lenient: bool = False,
    **attributes: Any,
) -> ErrorSample:
    """An `ErrorSample`."""
    return ErrorSample(note, expected, operands, attributes, in_data, lenient)


def reference(
    name: str,
    *,
    samples: Iterable[Sample],
    errors: Iterable[ErrorSample] = (),
    kinds: Kind | None = None,
    exact: bool = False,
    signed_zeros: bool = False,
    terms: Terms | None = None,
    widens: bool = True,
) -> Callable[[Reference], Reference]:
    """Decorator: attach samples to an op, and the function that says what they give.

    Parameters
    ----------
    name : str
        Name of the op.
    samples, errors : iterable
        What it is tried on.
    kinds : Kind, optional
        Kinds of dtypes to try it with; those that its promoting operands have in common if left
        out.
    exact, signed_zeros, terms, widens
        How results are compared; see `OpSamples`.

    Raises
    ------
    ValueError
        If the op has samples already, or two with one note, or a sample fits no dtype, or a note
        has a character that lists of expected failures use.
    """
    if name in SAMPLES:
        raise ValueError(f"op {name!r} has samples already")
    definition = REGISTRY[name]
    accepted = _accepted(definition) if kinds is None else kinds

    def attach(function: Reference) -> Reference:
        kept = tuple(_restricted(definition, sample, accepted) for sample in samples)
        refused = tuple(errors)
        notes = [sample.note for sample in kept] + [error_sample.note for error_sample in refused]
        doubled = sorted({note for note in notes if notes.count(note) > 1})
        if doubled:
            raise ValueError(f"op {name!r} has several samples called {', '.join(doubled)}")
        for note in notes:
            if set(note) & set("#@*\n"):  # they mean something in lists of expected failures
                raise ValueError(f"sample {note!r} of {name!r}: a note has no #, @, * or line end")
        SAMPLES[name] = OpSamples(
            definition, function, kept, refused, exact, signed_zeros, terms, widens
        )
        return function

    return attach


def also_for_complex(
    name: str,
    *,
    samples: Iterable[Sample] = (),
    errors: Iterable[ErrorSample] = (),
    reference: Reference | None = None,
) -> None:
    """Add complex samples to an op that has real ones.

    Parameters
    ----------
    name : str
        Name of the op.
    samples : iterable of Sample
        Samples with complex operands.
    errors : iterable of ErrorSample
        Calls with complex operands that must be refused.
    reference : callable, optional
        What complex operands should give, where the reference of real ones cannot say it.
    """
    known = SAMPLES[name]
    kept = [_restricted(known.op, sample, Kind.COMPLEX) for sample in samples]
    function = known.reference
    if reference is not None:

        def function(*operands: Any, **attributes: Any) -> Any:
            is_complex = any(map(np.iscomplexobj, operands))
            return (reference if is_complex else known.reference)(*operands, **attributes)

    SAMPLES[name] = replace(
        known,
        reference=function,
        samples=(*known.samples, *kept),
        errors=(*known.errors, *errors),
    )


def resolve_attributes(
    attributes: Mapping[str, Any], tested: DType, index: DType
) -> dict[str, Any]:
    """Attributes with the placeholders filled in."""
    values = {TESTED_DTYPE: tested, INDEX_DTYPE: index}
    if SAME_SIZE_INTEGER in attributes.values():
        values[SAME_SIZE_INTEGER] = DType.of(f"int{8 * tested.itemsize}")
    return {
        name: values[value]
        if isinstance(value, _Placeholder)
        else value.of(tested)
        if isinstance(value, TestedGraph)
        else value
        for name, value in attributes.items()
    }


def _accepted(definition: Op) -> Kind:
    """Kinds that all operands which promote take."""
    kinds = Kind.ANY
    for spec in definition.operands.values():
        if spec.promotes:
            kinds &= spec.kinds
    return kinds


def _restricted(definition: Op, one: Sample, accepted: Kind) -> Sample:
    kinds = accepted & (_kinds_of(definition, one) if one.kinds is None else one.kinds)
    if not kinds:
        raise ValueError(f"sample {one.note!r} of {definition.name!r} is for no dtype of the op")
    return replace(one, kinds=kinds)


def _kinds_of(definition: Op, one: Sample) -> Kind:
    """Kinds of dtypes for which the operands of a sample are meant."""
    found = set()
    for spec, operand in zip(definition.operands.values(), one.operands, strict=True):
        if spec.promotes or spec.is_list:
            for value in operand if isinstance(operand, list) else [operand]:
                negative = isinstance(value, int) and value < 0
                found.add("negative" if negative else np.asarray(value).dtype.kind)
    for kind, kinds in _KINDS.items():
        if kind in found:
            return kinds
    return Kind.REAL


_KINDS: Final = {
    "c": Kind.COMPLEX,
    "f": Kind.FLOAT,
    "negative": Kind.INT,
    "i": Kind.INTEGER,
    "b": Kind.BOOL,
}
"""By what is in a sample, the strongest first."""
