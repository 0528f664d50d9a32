"""Suite ``compiled``: an op, its loss and its gradients in one compiled function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any, Final, NoReturn

import numpy as np

from burn import namespace as burn
from burn.dtype import DType
from burn.functions.common import dispatch
from burn.ops import Tag
from burn.testing._check import Check, Failure
from burn.testing._first_calls import first_call
from burn.testing._gradients import differentiable, gradient_dtype
from burn.testing.op_samples import OpSamples, Sample
from burn.testing.subject import Call, Subject, map_arrays
from burn.testing.suites.suite import Suite, named_check
from burn.testing.tolerance import difference

__all__ = ["SUITES"]

_CALLS: Final = 3
"""Calls of a function: a device may record the second one, and replay it from the third on."""


def _compiled(subject: Subject, table: Sequence[OpSamples]) -> Iterator[Check]:
    for samples in table:
        if {Tag.NO_GRADIENT, Tag.DATA_DEPENDENT} & set(samples.op.tags):
            continue
        if samples.op.name == "while_loop":  # no program has its gradient
            continue
        dtype = gradient_dtype(subject)
        chosen = differentiable(subject, samples, dtype)
        for number, sample in enumerate(chosen):
            yield named_check(
                subject,
                "compiled",
                samples.op.name,
                dtype,
                sample.note,
                _same_gradients,
                samples,
                sample,
                is_quick=number == 1,
            )


def _same_gradients(subject: Subject, samples: OpSamples, one: Sample) -> None:
    """Outputs and gradients of a compiled function are near those of the function.

    The Python code of a compiled function runs once, to trace it.
    """
    device: Any = subject.handle
    call = Call.of(samples, one, gradient_dtype(subject), subject.index_dtype)
    operands = map_arrays(
        lambda array: burn.asarray(array, device=device.autodiff()), call.operands
    )
    traces: list[None] = []

    def function(operands: list[Any]) -> tuple[list[Any], list[Any]]:
        traces.append(None)
        return _outputs_and_gradients(call, operands)

    expected = _arrays(_outputs_and_gradients(call, operands))
    compiled = burn.compile(function)
    for number in range(_CALLS):
        with nullcontext() if number else first_call():
            found = _arrays(compiled(operands))
        for index, pair in enumerate(zip(found, expected, strict=True)):
            wrong = _difference(*pair)
            if wrong:
                _fail(call, f"result {index} of call {number} of the compiled one: {wrong}")
    if len(traces) != 1 or not compiled.programs:
        _fail(call, f"the compiled function ran as it is written {len(traces)} times, not once")
    if subject.compiles:
        subject.backend.count(call.op, bool(compiled.kernels))


def _outputs_and_gradients(call: Call, operands: list[Any]) -> tuple[list[Any], list[Any]]:
    leaves: list[Any] = []

    def tracked(x: Any) -> Any:
        if not x.dtype.is_float:
            return x
        leaves.append(x.require_grad())
        return leaves[-1] * 1.5

    # What is around the op is what a device may fuse it with.
    used = map_arrays(tracked, operands)
    outputs = call.outputs(dispatch.execute(call.op.name, *used, **call.attributes))
    losses = [burn.sum(burn.tanh(output) * output) for output in outputs if output.is_tracked]
    found: list[Any] = []
    if losses:
        gradients = sum(losses[1:], losses[0]).backward()
        found = [leaf.grad(gradients) for leaf in leaves]
    return [output.detach() for output in outputs], found


def _difference(found: Any, expected: Any) -> str:
    """How a result differs from what it should be; both may be None."""
    if found is None or expected is None:
        return "" if found is expected else f"it is {found}, not {expected}"
    return difference(found, expected, DType.of(expected.dtype))


def _arrays(result: tuple[list[Any], list[Any]]) -> list[Any]:
    return [
        None if item is None else np.asarray(dispatch.to_data(item).array)
        for part in result
        for item in part
    ]


def _fail(call: Call, message: str) -> NoReturn:
    raise Failure(f"{call.op.describe(call.metas, call.attributes)}: {message}")


SUITES: Final = [
    Suite(
        "compiled",
        "an op, its loss and its gradients in one compiled function give what they give",
        _compiled,
        of_devices=True,
        compiles=True,
    )
]
