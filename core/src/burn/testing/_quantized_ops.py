"""Checks of ops on quantized operands: what comes out follows from the tags of the op.

The expected result is that of the same op of the same device on the numbers that the operands stand
for, within the tolerance of the op.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

import burn.testing.quantization_reference as of
from burn.dtype import DType, Kind, float32, float64
from burn.errors import BurnError, DTypeError, ShapeError, UnsupportedOpError
from burn.ops import Op, Tag
from burn.ops.quantized_primitive import QuantizedPrimitive, is_quantized
from burn.quant_scheme import Propagation, QuantLevel, QuantScheme, QuantStore, QuantValue
from burn.quantized import QuantizedTable
from burn.testing._check import Failure
from burn.testing.op_samples import Array, OpSamples, Sample
from burn.testing.subject import Call, Subject, map_arrays, widened
from burn.testing.tolerance import compare

__all__ = ["check_quantized_operands", "check_refused_operand", "schemes_of", "takes_floats"]

_SCHEMES: Final = (
    QuantScheme(QuantValue.Q8S, QuantStore.NATIVE),
    QuantScheme(QuantValue.Q8F, QuantStore.NATIVE, QuantLevel.per_block(-1)),
    QuantScheme(QuantValue.Q4F, QuantStore.packed_native()),
)
"""Of one scale, of one for each row, and of two codes in a byte where the last axis has them."""


class _Operands(NamedTuple):
    """The operands of one call.

    Attributes
    ----------
    quantized : list
        Some of them quantized.
    numbers : list
        The same, with the numbers that those stand for.
    scheme : QuantScheme
        How they are stored.
    """

    quantized: list[Any]
    numbers: list[Any]
    scheme: QuantScheme


def schemes_of(subject: Subject) -> list[QuantScheme]:
    """The schemes to try ops with: those whose codes and scales the device has."""
    return [
        quant_scheme
        for quant_scheme in _SCHEMES
        if all(
            map(
                subject.supports,
                (
                    quant_scheme.storage_dtype,
                    quant_scheme.native.storage_dtype,
                    quant_scheme.scale_dtype.storage,
                ),
            )
        )
    ]


def takes_floats(definition: Op) -> bool:
    """Whether an op has operands that may be quantized."""
    return any(
        Kind.FLOAT in spec.kinds and (spec.promotes or spec.is_list)
        for spec in definition.operands.values()
    )


def check_quantized_operands(subject: Subject, samples: OpSamples, one: Sample) -> None:
    """Compare an op on quantized operands with the op on their numbers, inhibited and propagated.

    Each operand is quantized alone, and all of them are.
    """
    call = Call.of(samples, one, float32, subject.index_dtype)
    for operands in _choices(subject, call):
        expected = _outcome(subject.table, call, operands.numbers)
        for propagation in Propagation:
            table = QuantizedTable(subject.table, float32, propagation)
            found = _outcome(table, call, operands.quantized)
            _compare(subject, samples, call, operands, propagation, found, expected)


def check_refused_operand(subject: Subject, samples: OpSamples, one: Sample) -> None:
    """See that an op of integers or bools refuses a quantized tensor."""
    dtype = subject.dtypes(samples, one)[0]
    call = Call.of(samples, one, dtype, subject.index_dtype)
    operands = call.upload(subject)
    table = QuantizedTable(subject.table)
    scheme = schemes_of(subject)[0]
    for position, operand in enumerate(call.operands):
        if not isinstance(operand, np.ndarray):
            continue
        wrong = list(operands)
        wrong[position] = _quantized(subject, np.ones(operand.shape, np.float32), scheme)
        try:
            getattr(table, call.op.name)(*wrong, **call.attributes)
        except DTypeError:
            continue
        raise Failure(f"{call.op.name} did not refuse a quantized operand {position}")


def _choices(subject: Subject, call: Call) -> Iterator[_Operands]:
    """Calls with each of the operands that may be quantized alone, and with all of them."""
    where = [
        position
        for position, (spec, operand) in enumerate(
            zip(call.op.operands.values(), call.operands, strict=True)
        )
        if (spec.is_list or (spec.promotes and isinstance(operand, np.ndarray)))
        and Kind.FLOAT in spec.kinds
    ]
    for scheme in schemes_of(subject):
        for chosen in [*([number] for number in where), *([where] if len(where) > 1 else [])]:
            mixed, numbers = call.upload(subject), call.upload(subject)
            fits = True
            for position in chosen:
                operand = call.operands[position]
                parts = operand if isinstance(operand, list) else [operand]
                fits &= all(part.dtype == np.float32 for part in parts)
                fits &= all(_fits(scheme, part) for part in parts)
                if fits:
                    made = [_quantized(subject, part, scheme) for part in parts]
                    restored = [part.dequantized(subject.table, float32) for part in made]
                    is_list = isinstance(operand, list)
                    mixed[position] = made if is_list else made[0]
                    numbers[position] = restored if is_list else restored[0]
            if fits and any(map(_has_quantized, mixed)):
                yield _Operands(mixed, numbers, scheme)


def _fits(scheme: QuantScheme, array: Array) -> bool:
    try:
        scheme.check(array.shape)
    except ShapeError:
        return False
    return True


def _has_quantized(operand: Any) -> bool:
    return any(map(is_quantized, operand if isinstance(operand, list) else [operand]))


def _quantized(subject: Subject, array: Array, scheme: QuantScheme) -> QuantizedPrimitive:
    parts = of.quantize(array, scheme)
    return QuantizedPrimitive(
        subject.upload(parts.values), subject.upload(parts.scales), None, scheme
    )


def _outcome(table: Any, call: Call, operands: Sequence[Any]) -> Any:
    """The outputs of a call, or the error that it raises."""
    try:
        return call.outputs(getattr(table, call.op.name)(*operands, **call.attributes))
    except UnsupportedOpError:
        raise
    except BurnError as error:
        return error


def _compare(
    subject: Subject,
    samples: OpSamples,
    call: Call,
    operands: _Operands,
    propagation: Propagation,
    found: Any,
    expected: Any,
) -> None:
    what = f"{call.op.describe(call.metas, call.attributes)} in {operands.scheme}, {propagation}"
    moves = bool(call.op.tags & (Tag.VIEW | Tag.SELECTION))
    if isinstance(expected, BurnError) or isinstance(found, BurnError):
        # A view or selection may have no blocks that are those of its operand.
        refused = isinstance(found, ShapeError) and moves and operands.scheme.level.block
        if not refused and type(found) is not type(expected):
            raise Failure(f"{what}: {found!r} where the numbers give {expected!r}")
        return
    for output, number in zip(found, expected, strict=True):
        dtype = subject.table.dtype(number)
        if not dtype.is_float:
            _expect(what, subject, output, number, dtype, exact=True)
        elif moves:
            _expect_moved(what, subject, samples, output, number)
        elif propagation is Propagation.INHIBIT or not is_quantized(output):
            _expect_numbers(what, subject, samples, call, operands, output, number)
        else:
            _expect_again(what, subject, samples, output, number)
        if dtype.is_float and not moves and is_quantized(output):
            if propagation is Propagation.INHIBIT:
                raise Failure(f"{what}: the result is quantized")
            if output.scheme.value is not operands.scheme.value:
                raise Failure(f"{what}: the result is quantized as {output.scheme}")


def _expect_moved(
    what: str, subject: Subject, samples: OpSamples, output: Any, number: Any
) -> None:
    """A view or selection: the numbers themselves, or those quantized again."""
    if not is_quantized(output):
        raise Failure(f"{what}: the result is not quantized")
    numbers = subject.read(output.dequantized(subject.table, float32))
    expected = subject.read(number)
    if _same(numbers, expected):
        return
    if Tag.VIEW in samples.op.tags:
        raise Failure(f"{what}: a view has other numbers: {numbers}, not {expected}")
    _expect_again(what, subject, samples, output, number)


def _expect_again(
    what: str, subject: Subject, samples: OpSamples, output: Any, number: Any
) -> None:
    """Codes and scales of the expected numbers, by the scheme of the output."""
    array = subject.read(number)
    parts = of.quantize(array, output.scheme)
    values, scales = subject.read(output.values), subject.read(output.scales)
    if _same(values, parts.values) and _same(scales, parts.scales):
        return
    numbers = subject.read(output.dequantized(subject.table, float32))
    step = np.max(np.abs(of.dequantize(parts, output.scheme, float32) - array), initial=0.0)
    near = np.abs(numbers - array) <= 2.0 * step + 1e-5 * np.abs(array)
    # What is not exact may differ in its last bits: GPUs add up in any order.
    if samples.exact or not near.all():
        raise Failure(f"{what}: the result is {numbers}, not {array} quantized again")


def _expect_numbers(
    what: str,
    subject: Subject,
    samples: OpSamples,
    call: Call,
    operands: _Operands,
    output: Any,
    number: Any,
) -> None:
    terms = None
    if samples.terms is not None:
        arrays = map_arrays(subject.read, operands.numbers)
        with np.errstate(all="ignore"):
            terms = samples.terms(*map_arrays(widened, arrays), **call.attributes)
    dtype = subject.table.dtype(number)
    # A rule for codes may restore them in a wider dtype than float32, as a cast to float64 does.
    widest = float32 if call.op.quantized is not None and dtype is float64 else dtype
    _expect(what, subject, output, number, widest, exact=samples.exact, terms=terms)


def _expect(
    what: str,
    subject: Subject,
    output: Any,
    number: Any,
    dtype: DType,
    *,
    exact: bool,
    terms: Any = None,
) -> None:
    found, expected = subject.read(output), subject.read(number)
    if found.dtype != expected.dtype:
        raise Failure(f"{what}: the result is {found.dtype}, not {expected.dtype}")
    wide = expected.astype(np.float64) if dtype.is_float else expected
    text = compare(found.astype(dtype.numpy), wide, dtype, exact=exact, terms=terms).text
    if text:
        raise Failure(f"{what}: {text}")


def _same(found: Array, expected: Array) -> bool:
    return found.shape == expected.shape and bool(
        np.array_equal(found, expected, equal_nan=found.dtype.kind == "f")
    )
