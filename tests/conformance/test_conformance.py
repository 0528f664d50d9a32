"""Every device that is there conforms, by the backend's own methods and by the defaults."""

import functools
import inspect
import math

import numpy as np
import pytest

from burn import Device
from burn.backend import is_implemented, tensor_ops
from burn.dtype import DType, DTypeUsage, Kind, float64, int64
from burn.ops import REGISTRY, Part, Tag
from burn.tensor_data import TensorData
from burn.testing import (
    SAMPLES,
    ExpectedFailures,
    Group,
    Minimal,
    Selection,
    Subject,
    check_error,
    check_gradients,
    check_kinds,
    check_sample,
    check_second_gradients,
    checks_of,
    find_expected_failures,
    is_differentiable,
    load_samples,
)
from burn.testing.subject import Call
from gate import SUBJECTS, checks_beyond_ops, checks_of_gate, has_op, marks_of_op, marks_of_suite

load_samples()  # those of plugins


def ops_of_subjects():
    for name, subject in SUBJECTS.items():
        for op, samples in SAMPLES.items():
            tried = any(subject.dtypes(samples, sample) for sample in samples.samples)
            if tried and has_op(name, op):
                marks = marks_of_op(name, subject, op)
                yield pytest.param(subject, op, id=f"{name} {op}", marks=marks)


def suites_beyond_ops():
    for name, subject in SUBJECTS.items():
        checks = list(checks_of(subject, Selection(ops=("",))))
        for suite in dict.fromkeys(check.suite for check in checks):
            chosen = [check for check in checks if check.suite == suite]
            marks = marks_of_suite(name, suite)
            yield pytest.param(subject, suite, chosen, id=f"{name} {suite}", marks=marks)


@functools.cache
def expected_failures(handle):
    return ExpectedFailures.read(find_expected_failures(handle) if handle else None)


for_each_op = pytest.mark.together("samples", SAMPLES.values(), ids=SAMPLES.keys())
on_each_device = pytest.mark.parametrize("device", Device.enumerate(), ids=lambda item: item.name)


@pytest.mark.parametrize(("subject", "op"), list(ops_of_subjects()))
def test_a_device_conforms(subject, op, everything):
    selection = Selection(ops=(op,), quick=subject.compiles or not everything)
    checks = list(checks_of(subject, selection))
    if not everything:
        checks = list(checks_of_gate(checks, subject))
    assert checks
    Group(subject, op, checks, expected_failures(subject.handle)).check()


@pytest.mark.parametrize(("subject", "suite", "checks"), list(suites_beyond_ops()))
def test_a_device_conforms_beyond_single_ops(subject, suite, checks, everything):
    if not everything:
        checks = checks_beyond_ops(checks)
    Group(subject, suite, checks, expected_failures(subject.handle)).check()


@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS.keys())
def test_every_expected_failure_names_a_check(subject):
    assert expected_failures(subject.handle).unknown(subject) == []


@for_each_op
def test_infer_refuses_what_the_op_does_not_accept(samples):
    for refused in samples.errors:
        check_error(samples, refused)


@for_each_op
def test_infer_refuses_dtypes_that_the_op_does_not_take(samples):
    check_kinds(samples)


def test_every_op_has_samples_and_a_reference():
    assert set(SAMPLES) == set(REGISTRY)
    for samples in SAMPLES.values():
        assert samples.samples
        assert callable(samples.reference)


def test_every_op_is_tried_with_each_kind_of_dtype_that_it_takes():
    for name, samples in SAMPLES.items():
        tried = Kind()
        for sample in samples.samples:
            tried |= sample.kinds
        taken = Kind.ANY
        promoting = [spec for spec in samples.op.operands.values() if spec.promotes]
        for spec in promoting:
            taken &= spec.kinds
        if promoting:
            assert tried == taken, name


def test_every_op_with_a_gradient_is_tried_where_it_is_differentiable():
    without = {
        name
        for name, samples in SAMPLES.items()
        if Tag.NO_GRADIENT not in samples.op.tags
        and any(spec.promotes for spec in samples.op.operands.values())
        and not any(is_differentiable(samples, sample) for sample in samples.samples)
    }
    assert not without


def arrays(samples):
    for sample in samples.samples:
        for operand in sample.operands:
            for part in operand if isinstance(operand, list) else [operand]:
                if isinstance(part, np.ndarray):
                    yield part


def test_samples_are_small():
    for name, samples in SAMPLES.items():
        assert max([array.size for array in arrays(samples)], default=0) <= 1000, name
        for sample in samples.samples:
            dtype = next(dtype for dtype in DType.members() if dtype.kind in sample.kinds)
            call = Call.of(samples, sample, dtype, int64)
            for meta in call.outputs(call.op.infer(*call.metas, **call.attributes)):
                if None not in meta.shape:
                    assert math.prod(meta.shape) <= 1000, f"{name} ({sample.note})"


def test_every_op_of_tensors_is_tried_without_elements_and_on_views():
    for name, samples in SAMPLES.items():
        if samples.op.operands:
            assert any(array.size == 0 for array in arrays(samples)), name
            assert any(not array.flags.c_contiguous for array in arrays(samples)), name


def test_sixty_ops_or_fewer_are_required():
    assert sum(definition.is_required for definition in REGISTRY.values()) <= 60


PROTOCOLS = [
    tensor_ops.BaseTensorOps,
    tensor_ops.NumericTensorOps,
    tensor_ops.FloatTensorOps,
    tensor_ops.IntTensorOps,
    tensor_ops.BoolTensorOps,
]


def protocol_methods():
    methods = {}
    for protocol in PROTOCOLS:
        for name, member in vars(protocol).items():
            if not is_implemented(member):
                assert name not in methods, f"{name} stands in two protocols"
                methods[name] = member
    return methods


def test_the_protocols_name_exactly_the_required_ops():
    required = {name for name, definition in REGISTRY.items() if definition.is_required}
    assert set(protocol_methods()) - {"from_data", "to_data"} == required


def test_a_protocol_method_has_the_parameters_of_its_op():
    for name, method in protocol_methods().items():
        if name in ("from_data", "to_data"):
            continue
        definition = REGISTRY[name]
        parameters = list(inspect.signature(method).parameters.values())[1:]
        keywords = {
            parameter.name: parameter
            for parameter in parameters
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        }
        assert [
            parameter.name for parameter in parameters if parameter.name not in keywords
        ] == list(definition.operands)
        device = {"device"} if Tag.CREATION in definition.tags else set()
        assert set(keywords) == set(definition.attributes) | device, name
        for attribute in definition.attributes.values():
            default = keywords[attribute.name].default
            assert (default is inspect.Parameter.empty) == attribute.required, name
            assert attribute.required or default == attribute.default, name


class WithoutUnsigned(Minimal):
    """A backend without unsigned integers, as many libraries are."""

    def native_dtype(self, dtype):
        return None if dtype.kind is Kind.UINT else self._backend.native_dtype(dtype)

    def dtype_usage(self, device, dtype):
        if dtype.kind is Kind.UINT:
            return DTypeUsage.NONE
        return self._backend.dtype_usage(device, dtype)

    def for_device(self, device):
        return WithoutUnsigned(self._backend.for_device(device))


@on_each_device
@pytest.mark.parametrize("name", ["random_uniform", "random_normal", "random_integers"])
def test_random_numbers_are_the_same_without_unsigned_integers(device, name, everything):
    subject = Subject(WithoutUnsigned(device.backend), device.id)
    for number, sample in enumerate(SAMPLES[name].samples):
        dtypes = subject.dtypes(SAMPLES[name], sample)
        for dtype in dtypes if everything else dtypes[number % 3 :: 3]:
            check_sample(subject, SAMPLES[name], sample, dtype)


def reference_subject():
    """The device on which the kit itself is tried; fresh, so that its table can be broken."""
    device = Device("cpu")
    return Subject(type(device.backend)(), device.id)


def check_all(subject, samples):
    for sample in samples.samples:
        for dtype in reversed(subject.dtypes(samples, sample)):
            check_sample(subject, samples, sample, dtype)


def check_all_gradients(subject, samples):
    for sample in samples.samples:
        check_gradients(subject, samples, sample)


def slightly_wrong(subject, primitive):
    """The same values but for the first one, which is off by little more than rounding."""
    values = subject.read(primitive).copy()
    if values.size:
        first = values.reshape(-1)[:1]
        if values.dtype.kind == "b":
            first[:] = ~first
        else:
            first += 1 if values.dtype.kind in "iu" else 1e-8 * (1 + abs(first))
    return subject.backend.from_data(TensorData(values), subject.device)


@for_each_op
def test_the_kit_notices_a_result_that_is_slightly_wrong(samples):
    subject = reference_subject()
    right = getattr(subject.table, samples.op.name)

    def wrong(*operands, **attributes):
        result = right(*operands, **attributes)
        if not samples.op.returns_tuple:
            return slightly_wrong(subject, result)
        return (*result[:-1], slightly_wrong(subject, result[-1]))

    vars(subject.table)[samples.op.name] = wrong
    with pytest.raises(AssertionError, match="elements differ"):
        check_all(subject, samples)


def operands_with_gradients():
    for name, samples in SAMPLES.items():
        if samples.op.vjp is not None:
            for position, (operand, spec) in enumerate(samples.op.operands.items()):
                if spec.promotes:
                    yield pytest.param(samples, position, id=f"{name} {operand}")


@pytest.mark.parametrize(("samples", "position"), list(operands_with_gradients()))
def test_the_kit_notices_a_gradient_that_is_slightly_wrong(samples, position, monkeypatch):
    right = samples.op.vjp

    def wrong(ops, ctx, *cotangents):
        gradients = list(right(ops, ctx, *cotangents))
        gradient = gradients[position]
        if isinstance(gradient, list):
            gradient[0] = gradient[0] if gradient[0] is None else ops.add(gradient[0], 1e-3)
        elif isinstance(gradient, Part):
            gradients[position] = gradient._replace(gradient=ops.add(gradient.gradient, 1e-3))
        elif gradient is not None:
            gradients[position] = ops.add(gradient, 1e-3)
        return tuple(gradients)

    monkeypatch.setattr(samples.op, "vjp", wrong)
    subject = reference_subject()
    with pytest.raises(AssertionError, match="gradient of operand"):
        check_all_gradients(subject, samples)


def test_the_kit_notices_an_operand_that_was_written_to():
    subject = reference_subject()

    def in_place(x):
        result = -x
        if x.shape:
            x[...] = result
        return result

    vars(subject.table)["negative"] = in_place
    with pytest.raises(AssertionError, match="operand x was changed"):
        check_all(subject, SAMPLES["negative"])


def test_the_kit_notices_a_second_gradient_that_is_missing(monkeypatch):
    definition = REGISTRY["exp"]

    def constant_slope(ops, ctx, g):
        values = ops.backend.to_data(getattr(ctx.saved[0], "primitive", ctx.saved[0]))
        return (ops.multiply(g, ops.backend.from_data(values, ops.device)),)

    monkeypatch.setattr(definition, "vjp", constant_slope)
    subject = reference_subject()
    check_gradients(subject, SAMPLES["exp"], SAMPLES["exp"].samples[1])
    with pytest.raises(AssertionError, match="second gradient"):
        check_second_gradients(subject, SAMPLES["exp"], SAMPLES["exp"].samples[1])


def test_the_kit_notices_a_result_of_another_dtype():
    subject = reference_subject()
    right = subject.table.square
    vars(subject.table)["square"] = lambda x: subject.table.cast(right(x), dtype=float64)
    with pytest.raises(AssertionError, match="where infer says"):
        check_all(subject, SAMPLES["square"])
