"""Checks of programs: a traced op, saved and read back, gives what the eager call gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from burn.devices import Device
from burn.dtype import DType
from burn.errors import BurnError, TraceError
from burn.functions.common import dispatch
from burn.ir import Program, RuntimeNumber, trace
from burn.ops import Tag
from burn.public_calls import public_name
from burn.testing._bits import bits, varies
from burn.testing._check import Failure
from burn.testing._settings import hostile_settings
from burn.testing.checks import refused_call_on
from burn.testing.op_samples import Array, ErrorSample, OpSamples, Sample
from burn.testing.subject import Call, Subject, map_arrays
from burn.testing.tolerance import difference
from burn.transforms.compilation import compile
from burn.tree import flatten

__all__ = ["check_program", "check_refused_program", "check_unchanged_after_error"]


def check_program(subject: Subject, samples: OpSamples, one: Sample, dtype: DType) -> None:
    """Compare a call with what its program gives, as it was traced and as it is read back.

    Attributes that may differ from run to run are passed to the program. No setting of the user
    may change what it gives. The bits are those of the eager call where the op rounds at most once
    and repeats itself. Else both are near each other: the results of a library depend on where in
    memory its operands and results are.
    """
    call = Call.of(samples, one, dtype, subject.index_dtype)
    device: Any = subject.handle
    operands = _tensors(device, call, subject)
    numbers = {
        name: call.attributes[name]
        for name, attribute in call.op.attributes.items()
        if attribute.role.is_runtime and name in call.attributes and _may_differ(call, name)
    }
    if Tag.DATA_DEPENDENT in call.op.tags:
        _check_not_traced(device, call, operands)
        return

    def eager() -> list[Array]:
        return _arrays(call.outputs(_run(device, call, operands, numbers)))

    expected = eager()
    terms = None
    if samples.terms is not None:
        with np.errstate(all="ignore"):
            count, magnitude = samples.terms(*call.widened, **call.attributes)
        terms = 4 * count, magnitude  # both are as far from the reference as that allows
    program = _trace(device, call, operands, numbers)
    saved = Program.from_bytes(program.to_bytes())
    leaves, _ = flatten((operands, numbers))
    inputs = [
        leaf
        for argument, leaf in zip(program.calling.arguments, leaves, strict=True)
        if argument.input is not None
    ]
    with hostile_settings():
        runs = {
            "traced": call.outputs(program(operands, numbers, device=device)),
            "read back": saved(*inputs, device=device),
        }
    for what, outputs in runs.items():
        found = _arrays(outputs)
        for index, name in enumerate(call.op.output_names(call.operands, call.attributes)):
            pair = found[index], expected[index]
            if bits(pair[0]) != bits(pair[1]) and (
                difference(*pair, DType.of(pair[1].dtype), terms=terms)
                or (samples.exact and not varies(eager, index, pair[1]))
            ):
                _fail(call, f"{name} of the program as it was {what} differs from the eager call")


def check_refused_program(subject: Subject, samples: OpSamples, refused: ErrorSample) -> None:
    """See that a call is refused: by its trace, or by its program if only the data show why."""
    call = None if refused.lenient else refused_call_on(subject, samples, refused)
    if call is None or Tag.DATA_DEPENDENT in call.op.tags:  # refused in any case
        return
    device: Any = subject.handle
    operands = _tensors(device, call, subject)
    program = None
    if refused.in_data:
        if not _has_results(subject, call):
            return
        program = _trace(device, call, operands, {})
    try:
        if program is None:
            _trace(device, call, operands, {})
        else:
            for output in call.outputs(program(operands, {}, device=device)):
                dispatch.to_data(output)
    except refused.expected as error:
        if not any(name in str(error) for name in (call.op.name, public_name(call.op.name))):
            _fail(call, f"the message does not name the op: {error}")
        return
    _fail(call, f"did not raise {refused.expected.__name__}")


def check_unchanged_after_error(subject: Subject, samples: OpSamples, refused: ErrorSample) -> None:
    """See that a compiled function which raises for values has written to no tensor.

    An asynchronous device may raise at the next read and have written, as it does in eager mode.
    """
    call = refused_call_on(subject, samples, refused)
    if call is None or Tag.DATA_DEPENDENT in call.op.tags or not _has_results(subject, call):
        return  # no program has it
    device: Any = subject.handle
    operands = _tensors(device, call, subject)
    before = dispatch.create("full", device, shape=(3,), fill_value=1, dtype=subject.index_dtype)
    after = before + 1

    def step() -> Any:
        before[...] = before + 1
        outputs = _run(device, call, operands, {})
        after[...] = after + 1
        return outputs

    try:
        outputs = call.outputs(compile(step)())
    except refused.expected:
        for what, x, number in (("before", before, 1), ("after", after, 2)):
            if x.tolist() != [number] * 3:
                _fail(call, f"raised, and a write {what} it took effect: {x.tolist()}")
        return
    try:
        for output in outputs:
            dispatch.to_data(output)
    except refused.expected:
        return
    _fail(call, f"did not raise {refused.expected.__name__} in a compiled function")


def _may_differ(call: Call, name: str) -> bool:
    """Whether the operands of a call allow another value of a runtime number.

    Without a velocity, a momentum is 0.
    """
    try:
        call.op.infer(*call.metas, **{**call.attributes, name: type(call.attributes[name])(1)})
    except BurnError:
        return False
    return True


def _has_results(subject: Subject, call: Call) -> bool:
    """Whether the device has the dtypes of what a call returns."""
    outputs = call.outputs(call.op.infer(*call.metas, **call.attributes))
    return all(subject.supports(meta.dtype) for meta in outputs)


def _check_not_traced(device: Device, call: Call, operands: Sequence[Any]) -> None:
    """See that an op whose results have a shape that depends on values is an error."""
    try:
        _trace(device, call, operands, {})
    except TraceError as error:
        if call.op.name not in str(error):
            _fail(call, f"the message does not name the op: {error}")
        return
    _fail(call, "did not raise TraceError")


def _tensors(device: Device, call: Call, subject: Subject) -> list[Any]:
    return map_arrays(lambda item: dispatch.wrap(item, device.type_of(item)), call.upload(subject))


def _trace(
    device: Device, call: Call, operands: Sequence[Any], numbers: Mapping[str, Any]
) -> Program:
    """The program of a call, which takes its tensors and the numbers that may differ."""
    examples = {name: RuntimeNumber(value) for name, value in numbers.items()}
    return trace(partial(_run, device, call), operands, examples)


def _run(device: Device, call: Call, operands: Sequence[Any], numbers: Mapping[str, Any]) -> Any:
    attributes = {**call.attributes, **numbers}
    if Tag.CREATION in call.op.tags:
        return dispatch.create(call.op.name, device, **attributes)
    return dispatch.execute(call.op.name, *operands, **attributes)


def _arrays(outputs: Sequence[Any]) -> list[Array]:
    return [dispatch.to_data(output).array for output in outputs]


def _fail(call: Call, message: str) -> NoReturn:
    raise Failure(f"{call.op.describe(call.metas, call.attributes)}: {message}")
