"""Checks of one op on one device: whether it gives what its definition and reference say.

Each check raises a `Failure`, an `AssertionError` that names the op, what it got, and what is
wrong, and has a program that shows it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NoReturn, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from burn.devices import Device
from burn.dtype import DType, Kind, float32, int64
from burn.errors import ArgumentError, BurnError, DTypeError
from burn.functions.common import dispatch
from burn.ops import REGISTRY, Meta, Tag
from burn.public_calls import public_name
from burn.testing._check import Failure
from burn.testing._script import Transcript, literal
from burn.testing._settings import hostile_settings
from burn.testing.op_samples import Array, ErrorSample, OpSamples, Sample, resolve_attributes
from burn.testing.subject import Call, Subject, map_arrays
from burn.testing.tolerance import Comparison, compare

__all__ = [
    "check_dispatch",
    "check_error",
    "check_error_in_dispatch",
    "check_error_in_table",
    "check_kinds",
    "check_sample",
    "expected_outputs",
    "refused_call_on",
    "run_in_dispatch",
    "script_of_call",
    "script_of_dispatch",
    "script_of_refused",
]

Run: TypeAlias = Callable[[Subject, Call, Sequence[Any]], list[tuple[Meta, Array]]]
"""Makes a call with primitives, and gives shape, dtype and values of each output."""

Show: TypeAlias = Callable[[Subject, Call], tuple[Transcript, list[Any], tuple[Any, ...]]]
"""Writes the same call down: the transcript, the operands in it, and the outputs."""


def check_sample(subject: Subject, samples: OpSamples, one: Sample, dtype: DType) -> float | None:
    """Run a sample on a device: its values, its metadata, and that its operands stay as they were.

    Parameters
    ----------
    subject : Subject
        The device, with the op table to try.
    samples : OpSamples
        The op and its reference.
    one : Sample
        The sample.
    dtype : DType
        The dtype to try it with.

    Returns
    -------
    float or None
        The largest error as a fraction of what is allowed; None where results must be equal.
    """
    return _check_call(subject, samples, one, dtype, _run_in_table, _show_in_table)


def check_dispatch(subject: Subject, samples: OpSamples, one: Sample, dtype: DType) -> float | None:
    """Like `check_sample` through Dispatch, while NumPy raises and every warning is an error.

    No setting of the user may change the result of an op.
    """
    return _check_call(subject, samples, one, dtype, _run_in_dispatch, _show_in_dispatch)


def _check_call(
    subject: Subject, samples: OpSamples, one: Sample, dtype: DType, run: Run, show: Show
) -> float | None:
    call = Call.of(samples, one, dtype, subject.index_dtype)
    operands = call.upload(subject)
    outputs = run(subject, call, operands)
    inferred = call.outputs(call.op.infer(*call.metas, **call.attributes))
    exact = samples.exact or Tag.VIEW in call.op.tags
    references, terms = _expected(samples, one, call, (dtype, subject.index_dtype))
    worst = None
    names = call.op.output_names(call.operands, call.attributes)
    for index, (meta, (found, value)) in enumerate(zip(inferred, outputs, strict=True)):
        name = names[index]
        if not (meta.dtype is found.dtype and _agree(meta.shape, found.shape)):
            transcript, _, shown = show(subject, call)
            transcript.expect_meta(shown[index], Meta(np.shape(references[index]), meta.dtype))
            _fail(call, f"{name} is {found} where infer says {meta}", transcript)
        comparison = compare(
            value,
            references[index],
            meta.dtype,
            exact=exact,
            signed_zeros=samples.signed_zeros,
            terms=terms,
        )
        if comparison.text:
            transcript, _, shown = show(subject, call)
            _expect(transcript, shown[index], comparison, references[index], meta.dtype)
            _fail(call, f"{name}: {comparison.text}", transcript, comparison.worst)
        if comparison.worst is not None:
            worst = max(worst or 0.0, comparison.worst)
    _check_operands(subject, call, operands, show)
    return worst


def expected_outputs(samples: OpSamples, call: Call) -> tuple[Any, ...]:
    """What the reference of an op gives for a call."""
    operands = call.widened if samples.widens else call.operands
    with np.errstate(all="ignore"):
        result = samples.reference(*operands, **call.attributes)
    return call.outputs(result)


_known: Final[WeakKeyDictionary[Sample, dict[Any, tuple[tuple[Any, ...], Any]]]] = (
    WeakKeyDictionary()
)
"""By sample, what `_expected` gives: devices, and the ways to call an op, share it."""


def _expected(
    samples: OpSamples, one: Sample, call: Call, dtypes: tuple[DType, DType]
) -> tuple[tuple[Any, ...], Any]:
    """What the reference of a sample gives, and its terms, if it says them; computed once."""
    known = _known.setdefault(one, {})
    key = (samples.reference, samples.terms, dtypes)
    if key not in known:
        terms = None
        if samples.terms is not None:
            with np.errstate(all="ignore"):
                terms = samples.terms(*call.widened, **call.attributes)
        known[key] = expected_outputs(samples, call), terms
    return known[key]


def check_error(samples: OpSamples, refused: ErrorSample) -> None:
    """See that `Op.infer` refuses a call, unless only the data show what is wrong."""
    call = _refused_call(samples, refused)
    try:
        call.op.infer(*call.metas, **call.attributes)
    except refused.expected as error:
        if call.op.name not in str(error):
            _fail(call, f"the message does not name the op: {error}")
        if refused.in_data:
            _fail(call, "infer knew: the sample should not say in_data")
        return
    if not refused.in_data:
        _fail(call, f"infer did not raise {refused.expected.__name__}")


def check_error_in_dispatch(subject: Subject, samples: OpSamples, refused: ErrorSample) -> None:
    """See that a call is refused on a device, no later than its result is read."""
    call = None if refused.lenient else refused_call_on(subject, samples, refused)
    if call is None:
        return
    operands = call.upload(subject)
    names = [call.op.name, public_name(call.op.name)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what only a warning tells is accepted without them
            outputs = call.outputs(_dispatched(_handle(subject), call, operands))
        if subject.table.origin(call.op) in {"derived", "generated"}:
            # An error of queued work names the op that was queued, which may be a part of this op.
            names += [f"{name}(" for name in REGISTRY]
        for output in outputs:
            dispatch.to_data(output)
    except refused.expected as error:
        if not any(name in str(error) for name in names):
            script = script_of_refused(subject, samples, refused)
            _fail(call, f"the message does not name the op: {error}", script)
        return
    script = script_of_refused(subject, samples, refused)
    _fail(call, f"did not raise {refused.expected.__name__}", script)


def check_error_in_table(subject: Subject, samples: OpSamples, refused: ErrorSample) -> None:
    """See that an op table raises any error for a call; Dispatch replaces it by that of the rule.

    Kinds of dtypes, the numbers of creation ops, and calls without any tensor are not tried here:
    Dispatch checks them.
    """
    if refused.lenient or refused.expected is DTypeError or Tag.CREATION in samples.op.tags:
        return
    call = refused_call_on(subject, samples, refused)
    if call is None or not any(isinstance(x, (np.ndarray, list)) for x in call.operands):
        return
    operands = call.upload(subject)
    try:
        result = getattr(subject.table, call.op.name)(*operands, **call.attributes)
        for output in call.outputs(result):
            subject.read(output)
    except Exception:  # noqa: BLE001 — an op may raise anything on what its definition refuses
        return
    _fail(call, "did not raise", script_of_refused(subject, samples, refused, in_table=True))


def check_kinds(samples: OpSamples) -> None:
    """See that `Op.infer` refuses an operand of every kind of dtype that the op does not take."""
    for sample in samples.samples[:1]:
        for position, spec in enumerate(samples.op.operands.values()):
            for dtype in DType.members():
                if dtype.kind in spec.kinds:
                    continue
                operands = list(_call_in_first_dtype(samples, sample).metas)
                wrong = Meta((2,), dtype)
                operands[position] = [wrong] if spec.is_list else wrong
                try:
                    samples.op.infer(*operands, **_call_in_first_dtype(samples, sample).attributes)
                except DTypeError:
                    continue
                raise Failure(f"{samples.op.describe(operands)} was not refused")


# Programs that make the same calls.


def script_of_call(subject: Subject, call: Call) -> str:
    """A program that makes a call in the op table and reads what comes out."""
    transcript, _, outputs = _show_in_table(subject, call)
    transcript.write(f"print({_reads(outputs)})")
    return str(transcript)


def script_of_dispatch(subject: Subject, call: Call) -> str:
    """The same through Dispatch, while NumPy raises and every warning is an error."""
    return str(_show_in_dispatch(subject, call)[0])


def script_of_refused(
    subject: Subject, samples: OpSamples, refused: ErrorSample, *, in_table: bool = False
) -> str:
    """A program that makes a call which must be refused."""
    call = refused_call_on(subject, samples, refused) or _refused_call(samples, refused)
    writing, transcript = subject.transcript()
    operands = call.upload(writing)
    wanted = "Exception" if in_table else f"burn.{refused.expected.__name__}"
    test = "pass" if in_table else f"assert {public_name(call.op.name)!r} in str(error), error"
    with transcript.block("try:"):
        if in_table:
            result = transcript.call("ops", call.op.name, operands, call.attributes)
            transcript.write(_reads(call.outputs(result)))
        else:
            outputs = _show_dispatched(transcript, call, operands)
            transcript.write(", ".join([f"dispatch.to_data({output.name})" for output in outputs]))
    with transcript.block(f"except {wanted} as error:"):
        transcript.write(test)
    with transcript.block("else:"):
        transcript.write(f'raise AssertionError("{wanted} was not raised")')
    return str(transcript)


def _show_in_table(subject: Subject, call: Call) -> tuple[Transcript, list[Any], tuple[Any, ...]]:
    writing, transcript = subject.transcript()
    operands = call.upload(writing)
    with transcript.block("with backend.quiet():"):
        result = transcript.call("ops", call.op.name, operands, call.attributes)
    return transcript, operands, call.outputs(result)


def _show_in_dispatch(
    subject: Subject, call: Call
) -> tuple[Transcript, list[Any], tuple[Any, ...]]:
    writing, transcript = subject.transcript()
    operands = call.upload(writing)
    transcript.need("import warnings")
    hostile = 'with np.errstate(all="raise"), warnings.catch_warnings(action="error"):'
    with transcript.block(hostile):
        outputs = _show_dispatched(transcript, call, operands)
    for output in outputs:
        transcript.write(f"{output.name} = {output.name}.primitive")
    return transcript, operands, outputs


def _show_dispatched(
    transcript: Transcript, call: Call, operands: Sequence[Any]
) -> tuple[Any, ...]:
    """Write down what `_dispatched` does, as one line."""
    transcript.need("from burn.functions.common import dispatch")
    name, attributes = call.op.name, call.attributes
    if Tag.CREATION in call.op.tags:
        parts = [repr(name), "device"]
        parts += [f"{key}={literal(value)}" for key, value in attributes.items()]
        expression = f"dispatch.create({', '.join(parts)})"
        return call.outputs(transcript.outputs(expression, name, (), attributes))
    transcript.set_up("wrap = lambda x: dispatch.wrap(x, device.type_of(x))")
    wrapped = map_arrays(lambda item: replace(item, name=f"wrap({item.name})"), operands)
    return call.outputs(transcript.call("dispatch", name, wrapped, attributes))


def _reads(outputs: Sequence[Any]) -> str:
    return ", ".join([f"read({output.name})" for output in outputs])


def _expect(
    transcript: Transcript, output: Any, comparison: Comparison, expected: Any, dtype: DType
) -> None:
    if comparison.index is None:
        transcript.expect_meta(output, Meta(np.shape(expected), dtype))
    else:
        transcript.expect_value(output, comparison)


# The parts of a check.


def _run_in_table(
    subject: Subject, call: Call, operands: Sequence[Any]
) -> list[tuple[Meta, Array]]:
    with subject.quiet():
        result = getattr(subject.table, call.op.name)(*operands, **call.attributes)
        return [
            (Meta(tuple(output.shape), subject.table.dtype(output)), subject.read(output))
            for output in call.outputs(result)
        ]


def _run_in_dispatch(
    subject: Subject, call: Call, operands: Sequence[Any]
) -> list[tuple[Meta, Array]]:
    with hostile_settings():
        outputs = run_in_dispatch(subject, call, operands)
        if set(np.geterr().values()) != {"raise"} or warnings.filters[0][0] != "error":
            _fail(call, "the settings of NumPy or of warnings are not what they were")
    return outputs


def run_in_dispatch(
    subject: Subject, call: Call, operands: Sequence[Any]
) -> list[tuple[Meta, Array]]:
    """Make a call as the public functions do; shape, dtype and values of each output."""
    tensors = call.outputs(_dispatched(_handle(subject), call, operands))
    return [
        (Meta(tuple(x.primitive.shape), x.tensor_type.dtype), dispatch.to_data(x).array)
        for x in tensors
    ]


def _dispatched(device: Device, call: Call, operands: Sequence[Any]) -> Any:
    """Run a call on primitives through Dispatch, as the public functions do."""
    if Tag.CREATION in call.op.tags:
        return dispatch.create(call.op.name, device, **call.attributes)
    tensors = map_arrays(lambda item: dispatch.wrap(item, device.type_of(item)), operands)
    return dispatch.execute(call.op.name, *tensors, **call.attributes)


def _handle(subject: Subject) -> Device:
    if subject.handle is None:
        raise ArgumentError(
            f"{subject} is no device that users know",
            hint="Register its backend (burn.register_backend), and use Subject.of(device)",
        )
    return subject.handle


def _call_in_first_dtype(samples: OpSamples, one: Sample) -> Call:
    kinds = Kind.REAL if one.kinds is None else one.kinds
    dtype = next(dtype for dtype in DType.members() if dtype.kind in kinds)
    return Call.of(samples, one, dtype, DType.of("int64"))


def _refused_call(samples: OpSamples, refused: ErrorSample) -> Call:
    attributes = resolve_attributes(refused.attributes, float32, int64)
    return Call(samples.op, refused.operands, refused.operands, attributes)


def refused_call_on(subject: Subject, samples: OpSamples, refused: ErrorSample) -> Call | None:
    """A refused call in dtypes that the device has; None if it is not refused in them."""

    def held(dtype: DType) -> DType:
        if subject.supports(dtype) or not (dtype.is_float or dtype.is_integer):
            return dtype
        return float32 if dtype.is_float else subject.index_dtype

    call = _refused_call(samples, refused)
    is_held = True

    def converted(array: Array) -> Array:
        nonlocal is_held
        found = array.astype(held(DType.of(array.dtype)).numpy)
        is_held = is_held and (array.dtype.kind not in "iu" or np.array_equal(found, array))
        return found

    call.operands = tuple(map_arrays(converted, call.operands))
    if not is_held:  # an integer of 64 bits on a device that has none
        return None
    call.attributes = {
        name: held(value) if isinstance(value, DType) else value
        for name, value in call.attributes.items()
    }
    used = [value for value in call.attributes.values() if isinstance(value, DType)]
    map_arrays(lambda meta: used.append(meta.dtype), call.metas)
    if not all(map(subject.supports, used)):
        return None
    if refused.in_data:
        outputs = call.outputs(call.op.infer(*call.metas, **call.attributes))
        return call if all(subject.supports(output.dtype) for output in outputs) else None
    try:
        call.op.infer(*call.metas, **call.attributes)
    except BurnError as error:
        return call if isinstance(error, refused.expected) else None
    return None


def _agree(inferred: Sequence[int | None], found: Sequence[int]) -> bool:
    """Whether a shape is the inferred one, in which None stands for what only the data tell."""
    return len(inferred) == len(found) and all(
        expected in (None, actual) for expected, actual in zip(inferred, found, strict=True)
    )


def _check_operands(subject: Subject, call: Call, operands: Sequence[Any], show: Show) -> None:
    """See that operands are what they were to the bit, but for what a NaN carries."""
    for position, (name, array, primitive) in enumerate(_pairs(call, operands)):
        dtype = DType.of(array.dtype)
        comparison = compare(subject.read(primitive), array, dtype, exact=True)
        if comparison.text:
            transcript, shown, _ = show(subject, call)
            changed = list(_pairs(call, shown))[position][2]
            _expect(transcript, changed, comparison, array, dtype)
            _fail(call, f"operand {name} was changed: {comparison.text}", transcript)


def _pairs(call: Call, primitives: Sequence[Any]) -> Iterator[tuple[str, Array, Any]]:
    """The arrays among operands, and within lists: the operand's name, and its primitive."""
    for name, operand, other in zip(call.op.operands, call.operands, primitives, strict=True):
        if isinstance(operand, list):
            for part, (array, primitive) in enumerate(zip(operand, other, strict=True)):
                yield f"{name}[{part}]", array, primitive
        elif isinstance(operand, np.ndarray):
            yield name, operand, other


def _fail(call: Call, message: str, script: object = "", worst: float | None = None) -> NoReturn:
    described = call.op.describe(call.metas, call.attributes)
    raise Failure(f"{described}: {message}", str(script), worst)
