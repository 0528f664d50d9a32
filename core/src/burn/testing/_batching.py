"""Checks of batching: an op on all examples at once gives what a loop over them gives.

An op is tried with each of its tensors batched alone, and with all of them. Examples are the values
of a sample, and others of the same shapes. Batched gradients are compared with those of the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from burn.autodiff import Autodiff
from burn.batching import Batch, BatchingTable, Frame
from burn.dtype import DType, Kind, float64
from burn.errors import BurnError, DTypeError, UnsupportedOpError
from burn.ops import Meta, Op, OpTable, Tag
from burn.testing._check import Failure
from burn.testing._gradients import gradient_dtype, is_differentiable
from burn.testing._problem import Problem, weighted_sum
from burn.testing.checks import refused_call_on
from burn.testing.op_samples import Array, ErrorSample, OpSamples, Sample
from burn.testing.subject import Call, Subject, map_arrays
from burn.testing.tolerance import compare

__all__ = [
    "SIZE",
    "batched_dtypes",
    "check_batched_gradients",
    "check_batched_twice",
    "check_batching",
    "check_refused_batch",
]

SIZE: Final = 3
"""Number of examples."""

_FACTORS: Final = (1.0, 0.5, 0.75)
"""By example: what the floats of a sample are multiplied by."""

_GRADIENT_TOLERANCE: Final = {True: (1e-9, 1e-11), False: (1e-4, 1e-5)}
"""In float64 or not: relative, and absolute as a fraction of the largest gradient."""


class _Level(NamedTuple):
    """A batching backend over a backend, and one call of it."""

    batch: Batch
    table: BatchingTable
    frame: Frame

    @classmethod
    def over(cls, below: Any, subject: Subject, definition: Op, size: int = SIZE) -> _Level:
        """The level over a backend. An op of burn needs no loop; one of a plugin may."""
        batch = Batch(below)
        is_own = definition.__module__.startswith("burn.")
        frame = Frame(size, allows_fallback=size == 0 or not is_own)
        return cls(batch, batch.for_device(subject.device), frame)


def batched_dtypes(subject: Subject, samples: OpSamples, one: Sample) -> list[DType]:
    """The dtypes to try a sample with: one of floats and one of integers, or any other."""
    dtypes = subject.dtypes(samples, one)
    found = []
    for kind in (Kind.FLOAT, Kind.INT):
        of_kind = [dtype for dtype in dtypes if dtype.kind is kind and dtype.itemsize >= 4]
        found += of_kind[:1]
    return found or dtypes[:1]


def check_batching(subject: Subject, samples: OpSamples, one: Sample, dtype: DType) -> float | None:
    """Compare a batched call with the calls of its examples, for each choice of batched operands.

    Returns
    -------
    float or None
        The largest error as a fraction of what is allowed; None where results must be equal.
    """
    call = Call.of(samples, one, dtype, subject.index_dtype)
    if Tag.DATA_DEPENDENT in call.op.tags:
        _check_refused(subject, call)
        return None
    worst = None
    for chosen in _choices(call):
        calls = _examples(subject, call, chosen)
        level = _Level.over(subject.backend, subject, call.op)
        operands = _stacked(subject, level, calls, chosen)
        outputs = _run(subject, level.table, call, operands)
        unbatched = [level.batch.unbatch(x, level.frame, 0, level.table) for x in outputs]
        error = _compare(subject, samples, calls, chosen, unbatched)
        worst = error if worst is None else max(worst, error or 0.0)
    _check_empty(subject, call)
    return worst


def check_batched_twice(subject: Subject, samples: OpSamples, one: Sample, dtype: DType) -> None:
    """Compare a call that is batched twice, all operands inside and one outside, with the calls."""
    call = Call.of(samples, one, dtype, subject.index_dtype)
    *_, every = _choices(call)
    for outer in sorted(every):
        inner_calls = _examples(subject, call, every)
        inner = _Level.over(subject.backend, subject, call.op)
        level = _Level.over(inner.batch, subject, call.op)
        operands = _stacked(subject, inner, inner_calls, every)
        # The examples of the outer call are equal: each is the batch of the inner one.
        whole = [
            _repeated(level, operand) if position == outer else operand
            for position, operand in enumerate(operands)
        ]
        for output in _run(subject, level.table, call, whole):
            axis = len(output.shape)
            last = level.batch.unbatch(output, level.frame, axis, level.table)
            primitive = inner.batch.unbatch(last, inner.frame, 0, inner.table)
            for index in range(SIZE):
                slices = [(0, length, 1) for length in primitive.shape[:-1]]
                part = subject.table.slice(primitive, slices=(*slices, (index, 1, 1)))
                unbatched = subject.table.reshape(part, shape=tuple(primitive.shape[:-1]))
                _compare(subject, samples, inner_calls, every, [unbatched])


def check_refused_batch(subject: Subject, samples: OpSamples, refused: ErrorSample) -> None:
    """See that a batch of calls is refused, as each of them is."""
    call = refused_call_on(subject, samples, refused)
    if call is None or refused.lenient or refused.expected is DTypeError:
        return
    *_, every = _choices(call)
    if not every:
        return
    level = _Level.over(subject.backend, subject, call.op)
    operands = _stacked(subject, level, [call] * SIZE, every)
    try:
        for output in _run(subject, level.table, call, operands):
            subject.read(level.batch.unbatch(output, level.frame, 0, level.table))
    except Exception:  # noqa: BLE001 — as `check_error_in_table`: Dispatch says what is wrong
        return
    _fail(call, every, f"did not raise {refused.expected.__name__}")


def check_batched_gradients(subject: Subject, samples: OpSamples, one: Sample) -> None:
    """Compare the gradients of a batched call with those of the calls of its examples."""
    dtype = gradient_dtype(subject)
    problem = Problem(subject, samples, one, dtype)
    if not is_differentiable(samples, one):
        return
    for chosen in _choices(problem.call):
        calls = _examples(subject, problem.call, chosen)
        level = _Level.over(subject.backend, subject, problem.call.op)
        operands = _stacked(subject, level, calls, chosen)
        found = [
            None if gradient is None else level.batch.unbatch(gradient, level.frame, 0, level.table)
            for gradient in _gradients(problem, Autodiff(level.batch), operands)
        ]
        for index, call in enumerate(calls):
            expected = _gradients(problem, subject.autodiff, call.upload(subject))
            for position, (batched, own) in enumerate(zip(found, expected, strict=True)):
                _compare_gradients(problem, chosen, index, position, batched, own)


def _choices(call: Call) -> Iterator[frozenset[int]]:
    """Which operands are batched: each tensor alone, then all; a list is one operand."""
    tensors = [
        position
        for position, operand in enumerate(call.operands)
        if isinstance(operand, (np.ndarray, list))
    ]
    if len(tensors) > 1:
        yield from (frozenset([position]) for position in tensors)
    yield frozenset(tensors)


def _examples(subject: Subject, call: Call, chosen: frozenset[int]) -> list[Call]:
    """The calls of all examples; those of the sample alone if the op refuses another."""
    calls = [_variant(call, chosen, number) for number in range(SIZE)]
    for item in calls[1:]:
        try:
            outputs = _run(subject, subject.table, item, item.upload(subject))
            _ = [subject.read(output) for output in outputs]
        except BurnError:
            return [call] * SIZE
    return calls


def _variant(call: Call, chosen: frozenset[int], number: int) -> Call:
    """The call with other values in the chosen operands; sorted ones stay sorted."""

    def changed(array: Array, *, promotes: bool) -> Array:
        if not number:
            return array
        if not promotes:  # indices stay in range
            return np.roll(array.reshape(-1), number).reshape(array.shape)
        if array.dtype == np.bool_:
            return np.full_like(array, number == 1)
        with np.errstate(all="ignore"):
            if array.dtype.kind in "iu":
                return np.asarray(array >> number)
            return np.asarray(array * array.dtype.type(_FACTORS[number]))

    specs = call.op.operands.values()
    operands = tuple(
        map_arrays(partial(changed, promotes=spec.promotes or spec.is_list), [operand])[0]
        if position in chosen
        else operand
        for position, (spec, operand) in enumerate(zip(specs, call.operands, strict=True))
    )
    layouts = tuple(
        changed if position in chosen else layout
        for position, (changed, layout) in enumerate(zip(operands, call.layouts, strict=True))
    )
    return Call(call.op, operands, layouts, call.attributes)


def _stacked(
    subject: Subject, level: _Level, calls: Sequence[Call], chosen: frozenset[int]
) -> list[Any]:
    """The operands of all examples: the chosen ones batched, the others as they are."""
    unbatched = calls[0].upload(subject)
    each = zip(*[call.operands for call in calls], strict=True)
    return [
        _batched(subject, level, parts, last=len(chosen) > 1)
        if position in chosen
        else unbatched[position]
        for position, parts in enumerate(each)
    ]


def _batched(subject: Subject, level: _Level, parts: Sequence[Any], *, last: bool) -> Any:
    """Arrays of all examples as one batched tensor, whose batch axis comes first or `last`."""
    if isinstance(parts[0], list):
        lists = zip(*parts, strict=True)
        return [_batched(subject, level, arrays, last=last) for arrays in lists]
    axis = parts[0].ndim if last else 0
    primitive = subject.upload(np.stack(parts, axis=axis))
    return level.batch.batch(primitive, level.frame, axis, level.table)


def _repeated(level: _Level, operand: Any) -> Any:
    """A tensor of the level below, or each of a list, once for every example."""
    if isinstance(operand, list):
        return [_repeated(level, part) for part in operand]
    primitive = level.table.below.expand(operand, shape=(SIZE, *operand.shape))
    return level.batch.batch(primitive, level.frame, 0, level.table)


def _run(subject: Subject, table: OpTable, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
    with subject.quiet():
        return call.outputs(getattr(table, call.op.name)(*operands, **call.attributes))


def _compare(
    subject: Subject,
    samples: OpSamples,
    calls: Sequence[Call],
    chosen: frozenset[int],
    outputs: Sequence[Any],
) -> float | None:
    """Compare batched outputs with those of each call; the largest error, or None."""
    worst = None
    arrays = [subject.read(output) for output in outputs]
    for index, call in enumerate(calls):
        expected = _run(subject, subject.table, call, call.upload(subject))
        terms = None
        if samples.terms is not None:
            with np.errstate(all="ignore"):
                terms = samples.terms(*call.widened, **call.attributes)
        for array, own in zip(arrays, expected, strict=True):
            dtype = subject.table.dtype(own)
            if DType.of(array.dtype) is not dtype:
                _fail(call, chosen, f"the result is {DType.of(array.dtype)}, not {dtype}")
            exact = samples.exact or Tag.VIEW in call.op.tags
            found = compare(array[index], subject.read(own), dtype, exact=exact, terms=terms)
            if found.text:
                _fail(call, chosen, f"example {index}: {found.text}", found.worst)
            if found.worst is not None:
                worst = max(worst or 0.0, found.worst)
    return worst


def _check_empty(subject: Subject, call: Call) -> None:
    """See that a batch of no examples gives one of no results."""
    *_, every = _choices(call)
    level = _Level.over(subject.backend, subject, call.op, size=0)
    operands = call.upload(subject)
    for position in every:
        shapes = map_arrays(
            lambda array: np.zeros((0, *array.shape), array.dtype), [call.operands[position]]
        )
        operands[position] = map_arrays(
            lambda array: level.batch.batch(subject.upload(array), level.frame, 0, level.table),
            shapes,
        )[0]
    metas = call.outputs(call.op.infer(*call.metas, **call.attributes))
    outputs = _run(subject, level.table, call, operands)
    for output, meta in zip(outputs, metas, strict=True):
        found = Meta(tuple(output.shape), level.table.dtype(output))
        if found != meta:
            _fail(call, every, f"of no examples the result is {found}, not {meta}")


def _check_refused(subject: Subject, call: Call) -> None:
    """See that an op whose results have a shape that depends on values is an error."""
    *_, every = _choices(call)
    level = _Level.over(subject.backend, subject, call.op)
    operands = _stacked(subject, level, [call] * SIZE, every)
    try:
        _run(subject, level.table, call, operands)
    except UnsupportedOpError as error:
        if call.op.name in str(error):
            return
        _fail(call, every, f"the message does not name the op: {error}")
    _fail(call, every, "did not raise UnsupportedOpError")


def _gradients(problem: Problem, autodiff: Autodiff, operands: Sequence[Any]) -> list[Any]:
    """Gradients by the float operands on an autodiff backend; None where there is none."""
    subject = problem.subject
    floats = [
        operands[position] if part is None else operands[position][part]
        for position, part in problem.float_operands
    ]
    leaves = [autodiff.require_grad(x, subject.device) for x in floats]
    whole = [list(operand) if isinstance(operand, list) else operand for operand in operands]
    for (position, part), leaf in zip(problem.float_operands, leaves, strict=True):
        if part is None:
            whole[position] = leaf
        else:
            whole[position][part] = leaf
    table = autodiff.for_device(subject.device)
    outputs = _run(subject, table, problem.call, whole)
    counted = [output for output, counts in zip(outputs, problem.counted, strict=True) if counts]
    with subject.quiet():
        weights = [subject.upload(weight) for weight in problem.weights]
        total = weighted_sum(table, counted, weights)
        if not autodiff.is_tracked(total):
            return [None] * len(leaves)
        found = autodiff.backward(total)
        return [autodiff.grad(leaf, found) for leaf in leaves]


def _compare_gradients(
    problem: Problem,
    chosen: frozenset[int],
    index: int,
    position: int,
    batched: Any,
    own: Any,
) -> None:
    subject = problem.subject
    if batched is None or own is None:
        if (batched is None) is not (own is None):
            _fail(problem.call, chosen, f"one of the gradients {position} is missing")
        return
    found, expected = subject.read(batched)[index], subject.read(own)
    relative, absolute = _GRADIENT_TOLERANCE[gradient_dtype(subject) is float64]
    size = float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0))
    near = found.shape == expected.shape and np.allclose(
        found, expected, rtol=relative, atol=absolute * max(1.0, size), equal_nan=True
    )
    if not near:
        _fail(
            problem.call,
            chosen,
            f"example {index}: gradient {position} is {found}, and {expected} in a loop",
        )


def _fail(call: Call, chosen: frozenset[int], message: str, worst: float | None = None) -> Any:
    names = [name for number, name in enumerate(call.op.operands) if number in chosen]
    described = call.op.describe(call.metas, call.attributes)
    raise Failure(f"{described} with batched {', '.join(names)}: {message}", worst=worst)
