"""Suites ``checkpointing`` and ``autodiff``: what users do with gradients on a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from burn import namespace as burn
from burn.devices import Device
from burn.dtype import DType, float32
from burn.errors import AutodiffError, DTypeError
from burn.functions.common import dispatch
from burn.ops import Tag
from burn.testing._check import Check, Failure
from burn.testing._gradients import differentiable
from burn.testing.op_samples import Array, OpSamples, Sample
from burn.testing.subject import Call, Subject, map_arrays
from burn.testing.suites.expectations import expect, expect_error, expect_values, gradient_of
from burn.testing.suites.suite import DeviceSuite, Suite, for_each_dtype, named_check

__all__ = ["SUITES"]

_autodiff: Final = DeviceSuite("autodiff", "gradients as users take them")


def _checkpointing(subject: Subject, table: Sequence[OpSamples]) -> Iterator[Check]:
    for samples in table:
        if Tag.NO_GRADIENT in samples.op.tags:
            continue
        chosen = differentiable(subject, samples, float32)
        for number, sample in enumerate(chosen):
            yield named_check(
                subject,
                "checkpointing",
                samples.op.name,
                float32,
                sample.note,
                _same_gradients,
                samples,
                sample,
                is_quick=number == 1,
            )


def _same_gradients(subject: Subject, samples: OpSamples, one: Sample) -> None:
    """Gradients with checkpointing are those without it, to the bit."""
    if subject.handle is None:
        return
    plain = subject.handle.autodiff()
    call = Call.of(samples, one, float32, subject.index_dtype)
    found = [_gradients_on(device, call) for device in (plain, plain.gradient_checkpointing())]
    for first, second in zip(*found, strict=True):
        if not np.array_equal(first, second, equal_nan=True):
            described = call.op.describe(call.metas, call.attributes)
            raise Failure(f"{described}: a gradient is {second} with checkpointing, not {first}")


def _gradients_on(device: Device, call: Call) -> list[Array]:
    """Gradients of the sum of the float outputs of a call whose operands are computed."""
    leaves: list[Any] = []

    def operand(array: Any) -> Any:
        x = burn.asarray(array, device=device)
        if not x.dtype.is_float:
            return x
        leaves.append(x.require_grad())
        return leaves[-1] * 1.0  # memory-bound: checkpointing computes it again

    operands = map_arrays(operand, call.operands)
    outputs = call.outputs(dispatch.execute(call.op.name, *operands, **call.attributes))
    tracked = [output for output in outputs if output.is_tracked]
    if not tracked:
        return []
    # The rule of a product saves its operands, so the outputs are computed again as well.
    total = sum([burn.sum(item * item) for item in tracked[1:]], burn.sum(tracked[0] * tracked[0]))
    gradients = total.backward()
    return [
        np.zeros(leaf.shape) if (found := leaf.grad(gradients)) is None else found.numpy()
        for leaf in leaves
    ]


def _loss(x: Any, weight: Any) -> Any:
    h = burn.nn.functional.gelu(x @ weight) * burn.nn.functional.sigmoid(x @ weight)
    h = burn.nn.functional.softmax(burn.concat([h, burn.exp(-(h * h))], axis=1), axis=1)
    return burn.mean(burn.tanh(h[:, ::-1]) * 3.0) + burn.max(h, axis=0).sum()


def _operands() -> tuple[Array, Array]:
    x = np.sin(np.arange(24.0)).reshape(4, 6).astype(np.float32)
    return x, np.cos(np.arange(30.0)).reshape(6, 5).astype(np.float32)


@_autodiff.check("a small network has its gradients")
def network(device: Device) -> None:
    """Against differences along a direction, in float32, and the same with checkpointing."""
    x, weight = _operands()
    tracking = device.autodiff()
    found = []
    for where in (tracking, tracking.gradient_checkpointing()):
        leaf = burn.asarray(weight, device=where).require_grad()
        loss = _loss(burn.asarray(x, device=where), leaf)
        found.append(gradient_of(leaf, loss).numpy())
    expect_values("the gradient with checkpointing", found[1], found[0])
    direction = np.where(np.arange(30) % 2, 1.0, -1.0).reshape(6, 5).astype(np.float32)
    ends = [
        _loss(
            burn.asarray(x, device=device), burn.asarray(weight + step * direction, device=device)
        )
        for step in (np.float32(1e-2), np.float32(-1e-2))
    ]
    numeric = (float(ends[0]) - float(ends[1])) / 2e-2
    along = float((found[0] * direction).sum())
    expect(abs(along - numeric) <= 2e-3 * max(1.0, abs(numeric)), f"{along}, not {numeric}")


@_autodiff.check(
    "leaves have gradients, of their dtype", dtypes=for_each_dtype(lambda dtype: dtype.is_float)
)
def leaves(device: Device, dtype: DType) -> None:
    """On the device below, read and replaced."""
    x = burn.asarray([1.0, 2.0], dtype=dtype, device=device.autodiff()).require_grad()
    gradients = (x * x * 2.0).sum().backward()
    gradient = x.grad(gradients)
    if gradient is None:
        raise Failure("there is no gradient")
    expect(gradient.device is device, f"the gradient is on {gradient.device}, not on {device}")
    expect_values("the gradient", gradient, np.array([4.0, 8.0]).astype(dtype.numpy))
    x.grad_replace(gradients, burn.asarray([5.0, 6.0], dtype=dtype, device=device))
    expect_values("its replacement", x.grad_remove(gradients), np.array([5, 6]).astype(dtype.numpy))
    expect(x.grad(gradients) is None, "a gradient that was removed is still there")
    for other in (item for item in device.dtypes() if item.is_float and item is not dtype):
        wrong = burn.asarray([1.0, 2.0], dtype=other, device=device)
        replace, back = partial(x.grad_replace, gradients, wrong), partial((x * 2).backward, wrong)
        expect_error(DTypeError, f"a gradient of {other}", replace)
        expect_error(DTypeError, f"a cotangent of {other}", back)


@_autodiff.check("only float leaves have gradients")
def no_gradients(device: Device) -> None:
    """Integers and results of comparisons carry none."""
    tracking = device.autodiff()
    integers = burn.asarray([1, 2], device=tracking)
    expect_error(DTypeError, "require_grad() of integers", integers.require_grad)
    x = burn.asarray([1.0, -2.0], device=tracking).require_grad()
    for what, result in (
        ("a comparison", x > 0),
        ("argmax", burn.argmax(x)),
        ("a cast to integers", x.astype(device.settings.int_dtype)),
    ):
        expect(not result.is_tracked, f"{what} is tracked")
    expect_error(AutodiffError, "backward of an untracked tensor", (x.detach() * 2).sum().backward)


@_autodiff.check("the graph is freed by backward")
def freed(device: Device) -> None:
    """A second backward is refused."""
    x = burn.asarray([2.0], device=device.autodiff()).require_grad()
    loss = (x * x).sum()
    loss.backward()
    expect_error(AutodiffError, "a second backward", loss.backward, says="freed")


@_autodiff.check("a deep graph needs no recursion")
def deep(device: Device) -> None:
    """Thousands of ops one after the other."""
    x = burn.asarray([1.0], device=device.autodiff()).require_grad()
    y = x
    for _ in range(5000):
        y = y + 1.0
    expect_values("the gradient", x.grad(y.sum().backward()), np.ones(1, np.float32))


@_autodiff.check("tracked tensors meet untracked ones of the same device")
def constants(device: Device) -> None:
    """On the autodiff device or below it, they are constants."""
    x = burn.asarray([1.0, 2.0], device=device.autodiff()).require_grad()
    for where in (device, device.autodiff()):
        y = x * burn.asarray([3.0, 4.0], device=where)
        expect(y.is_tracked and y.device is device.autodiff(), f"with one on {where}: {y.device}")
        expect_values("the gradient", x.grad(y.sum().backward()), np.array([3, 4], np.float32))


SUITES: Final = [
    Suite(
        "checkpointing",
        "checkpointing changes no gradient",
        _checkpointing,
        of_devices=True,
    ),
    _autodiff.suite,
]
