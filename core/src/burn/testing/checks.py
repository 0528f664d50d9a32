"""Checks of one op on one device: whether it gives what its definition and reference say.

Each check raises an `AssertionError` that names the op, what it got, and what is wrong.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from burn.device import Device
from burn.dtype import DType, Kind
from burn.errors import DTypeError
from burn.ops import Meta, Tag
from burn.tensor.dispatcher import dispatch
from burn.testing.sample import ErrorSample, OpSamples, Sample
from burn.testing.subject import Call, Subject, map_arrays
from burn.testing.tolerance import difference

__all__ = [
    "check_dispatch",
    "check_error",
    "check_error_in_dispatch",
    "check_error_in_table",
    "check_kinds",
    "check_sample",
    "expected_outputs",
]


def check_sample(subject: Subject, samples: OpSamples, one: Sample, dtype: DType) -> None:
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
    """
    call = Call.of(samples, one, dtype, subject.index_dtype)
    operands = call.upload(subject)
    with subject.quiet():
        result = getattr(subject.table, call.op.name)(*operands, **call.attributes)
        outputs = call.outputs(result)
        values = [subject.read(output) for output in outputs]
    metas = call.outputs(call.op.infer(*call.metas, **call.attributes))
    _check_metas(call, metas, [_meta(subject, output) for output in outputs])
    references = expected_outputs(samples, call)
    terms = None
    if samples.terms is not None:
        with np.errstate(all="ignore"):
            terms = samples.terms(*call.widened, **call.attributes)
    for name, meta, value, expected in zip(call.op.outputs, metas, values, references, strict=True):
        exact = samples.exact or Tag.VIEW in call.op.tags
        wrong = difference(value, expected, meta.dtype, exact=exact, terms=terms)
        _require(not wrong, call, f"{name}: {wrong}")
    after = map_arrays(subject.read, operands)
    _check_same(call, "operand", call.operands, after)


def expected_outputs(samples: OpSamples, call: Call) -> tuple[Any, ...]:
    """What the reference of an op gives for a call."""
    operands = call.widened if samples.widens else call.operands
    with np.errstate(all="ignore"):
        result = samples.reference(*operands, **call.attributes)
    return call.outputs(result)


def check_dispatch(device: Device, samples: OpSamples, one: Sample, dtype: DType) -> None:
    """Run a sample through Dispatch while NumPy raises and every warning is an error.

    Nobody's settings may change what an op gives: the result is that of the op table.
    """
    subject = Subject(device.backend, device.id)
    call = Call.of(samples, one, dtype, subject.index_dtype)
    operands = call.upload(subject)
    with subject.quiet():
        direct = call.outputs(getattr(device.ops, call.op.name)(*operands, **call.attributes))
        expected = [subject.read(output) for output in direct]
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        outputs = call.outputs(_dispatched(device, call, operands))
        values = [dispatch.to_data(output).array for output in outputs]
    _check_same(call, "output", expected, values)


def check_error(samples: OpSamples, refused: ErrorSample) -> None:
    """See that `Op.infer` refuses a call, unless only the data show what is wrong."""
    call = _refused_call(samples, refused)
    try:
        call.op.infer(*call.metas, **call.attributes)
    except refused.expected as error:
        _require(call.op.name in str(error), call, f"the message does not name the op: {error}")
        _require(not refused.in_data, call, "infer knew: the sample should not say in_data")
        return
    _require(refused.in_data, call, f"infer did not raise {refused.expected.__name__}")


def check_error_in_dispatch(device: Device, samples: OpSamples, refused: ErrorSample) -> None:
    """See that a call is refused on a device, no later than its result is read."""
    if refused.lenient:
        return
    call = _refused_call(samples, refused)
    subject = Subject(device.backend, device.id)
    operands = call.upload(subject)
    try:
        for output in call.outputs(_dispatched(device, call, operands)):
            dispatch.to_data(output)
    except refused.expected as error:
        _require(call.op.name in str(error), call, f"the message does not name the op: {error}")
        return
    raise AssertionError(
        f"{call.op.describe(call.metas, call.attributes)} did not raise "
        f"{refused.expected.__name__} on {device}"
    )


def check_error_in_table(subject: Subject, samples: OpSamples, refused: ErrorSample) -> None:
    """See that an op table does not accept a call, whatever it raises: Dispatch finds out why.

    Kinds of dtypes, the numbers of creation ops, and calls without any tensor are none of its
    business: Dispatch checks them.
    """
    if refused.lenient or refused.expected is DTypeError or Tag.CREATION in samples.op.tags:
        return
    call = _refused_call(samples, refused)
    if not any(isinstance(operand, (np.ndarray, list)) for operand in call.operands):
        return
    operands = call.upload(subject)
    try:
        result = getattr(subject.table, call.op.name)(*operands, **call.attributes)
        for output in call.outputs(result):
            subject.read(output)
    except Exception:  # noqa: BLE001 — an op may raise anything on what its definition refuses
        return
    raise AssertionError(f"{call.op.describe(call.metas, call.attributes)} did not raise")


def check_kinds(samples: OpSamples) -> None:
    """See that `Op.infer` refuses an operand of every kind of dtype that the op does not take."""
    for one in samples.samples[:1]:
        for position, spec in enumerate(samples.op.operands.values()):
            for dtype in DType.members():
                if dtype.kind in spec.kinds:
                    continue
                operands = list(_call_in_first_dtype(samples, one).metas)
                wrong = Meta((2,), dtype)
                operands[position] = [wrong] if spec.is_list else wrong
                try:
                    samples.op.infer(*operands, **_call_in_first_dtype(samples, one).attributes)
                except DTypeError:
                    continue
                raise AssertionError(f"{samples.op.describe(operands)} was not refused")


def _call_in_first_dtype(samples: OpSamples, one: Sample) -> Call:
    kinds = Kind.REAL if one.kinds is None else one.kinds
    dtype = next(dtype for dtype in DType.members() if dtype.kind in kinds)
    return Call.of(samples, one, dtype, DType.of("int64"))


def _refused_call(samples: OpSamples, refused: ErrorSample) -> Call:
    attributes = dict(refused.attributes)
    return Call(samples.op, refused.operands, refused.operands, attributes)


def _dispatched(device: Device, call: Call, operands: Sequence[Any]) -> Any:
    """Run a call on primitives through Dispatch, as the public functions do."""
    if Tag.CREATION in call.op.tags:
        return dispatch.create(call.op.name, device, **call.attributes)
    tensors = map_arrays(lambda one: dispatch.wrap(one, device.type_of(one)), operands)
    return dispatch.execute(call.op.name, *tensors, **call.attributes)


def _meta(subject: Subject, primitive: Any) -> Meta:
    return Meta(tuple(primitive.shape), subject.table.dtype(primitive))


def _check_metas(call: Call, inferred: Sequence[Meta], found: Sequence[Meta]) -> None:
    for name, expected, actual in zip(call.op.outputs, inferred, found, strict=True):
        _require(
            expected.dtype is actual.dtype and _agree(expected.shape, actual.shape),
            call,
            f"{name} is {actual} where infer says {expected}",
        )


def _agree(inferred: Sequence[int | None], found: Sequence[int]) -> bool:
    """Whether a shape is the inferred one, in which None stands for what only the data tell."""
    return len(inferred) == len(found) and all(
        expected in (None, actual) for expected, actual in zip(inferred, found, strict=True)
    )


def _check_same(call: Call, what: str, expected: Sequence[Any], actual: Sequence[Any]) -> None:
    """See that values are equal to the bit, but for what a NaN carries."""
    for position, (one, other) in enumerate(zip(expected, actual, strict=True)):
        if isinstance(one, list):
            _check_same(call, f"{what} {position}, part", one, other)
        elif isinstance(one, np.ndarray):
            wrong = difference(other, one, DType.of(one.dtype), exact=True)
            _require(not wrong, call, f"{what} {position}: {wrong}")


def _require(condition: bool, call: Call, message: str) -> None:
    if not condition:
        raise AssertionError(f"{call.op.describe(call.metas, call.attributes)}: {message}")
