"""Tensors on different hardware do not meet, in any op or function: the error says what to do."""

import importlib
import inspect
import itertools
import types

import numpy as np
import pytest

import burn
from burn.functions.common import dispatch
from burn.ops import REGISTRY
from burn.quantization import QuantScheme, QuantStore
from burn.tensor_data import TensorData
from burn.testing import SAMPLES, MockDevice, Subject, load_samples, mock_backend
from burn.testing.subject import Call, map_arrays

load_samples()

CPU = burn.Device("cpu")
SUBJECT = Subject.of(CPU)
PRESENT = burn.Device.enumerate()
"""Moves of one operand are tried from the CPU to each of these; and to a mock device."""


@pytest.fixture(scope="module", autouse=True)
def elsewhere():
    """A device that is no other's hardware, wherever the tests run."""
    with burn.registered(mock_backend("elsewhere", [MockDevice("unit")])):
        yield burn.Device("elsewhere")


def tensor_count(operands):
    """Number of arrays among operands, those in lists too."""
    found = []
    map_arrays(found.append, operands)
    return len(found)


def call_with_tensors(name):
    """A sample of an op with two tensors or more, as a call; None if it has none."""
    samples = SAMPLES[name]
    calls = [
        (sample, dtype)
        for sample in samples.samples
        for dtype in SUBJECT.dtypes(samples, sample)
        if tensor_count(sample.operands) > 1
    ]
    # Of a dtype that every device has, and of operands that have elements, if there is one.
    calls.sort(key=lambda pair: (pair[1] is not burn.float32, pair[1] is not burn.int32))
    for item, dtype in calls:
        call = Call.of(samples, item, dtype, SUBJECT.index_dtype)
        if tensor_count(call.operands) > 1:
            return call
    return None


CALLS = {name: call_with_tensors(name) for name in REGISTRY}
OF_SEVERAL = sorted(name for name, call in CALLS.items() if call is not None)


def tensors_of(operands):
    """Operands on the CPU as tensors."""
    return map_arrays(lambda item: dispatch.from_data(TensorData(np.asarray(item)), CPU), operands)


def with_one_moved(operands, index, device):
    """The operands, of which one tensor, counted through lists too, is on another device."""
    numbers = itertools.count()
    return map_arrays(
        lambda item: item.to_device(device) if next(numbers) == index else item, operands
    )


def has(device, call):
    """Whether a device has all dtypes of a call."""
    found = [*call.outputs(call.op.infer(*call.metas, **call.attributes))]
    map_arrays(found.append, call.metas)
    return all(device.supports_dtype(tensor.dtype) for tensor in found)


def check(device, call, operands):
    """Try one operand after the other on the other device, and then what the error advises."""
    for index in range(tensor_count(operands)):
        mixed = with_one_moved(operands, index, device)
        with pytest.raises(burn.DeviceMismatchError) as caught:
            call(*mixed)
        message = str(caught.value)
        assert CPU.name in message
        assert device.name in message
        assert caught.value.operation
        advice = message.partition(".to_device(")[2].partition(")")[0].strip('"')
        assert advice in (CPU.name, device.name)
        mended = map_arrays(lambda item, advice=advice: item.to_device(advice), mixed)
        call(*mended)


def test_most_ops_of_several_tensors_are_tried():
    assert len(OF_SEVERAL) > 60
    of_several = {
        name
        for name, definition in REGISTRY.items()
        if sum(not spec.optional for spec in definition.operands.values()) > 1
    }
    assert of_several <= set(OF_SEVERAL)


@pytest.mark.together("name", OF_SEVERAL)
def test_an_op_refuses_tensors_of_different_hardware(name, elsewhere):
    call = CALLS[name]
    operands = tensors_of(call.operands)
    if not has(elsewhere, call):  # complex: only where the hardware is real
        elsewhere = next((item for item in PRESENT if item is not CPU and has(item, call)), None)
        if elsewhere is None:
            return

    def run(*mixed):
        return dispatch.execute(name, *mixed, **call.attributes)

    check(elsewhere, run, operands)


@pytest.mark.parametrize("device", [item for item in PRESENT if item is not CPU], ids=str)
def test_devices_that_are_there_do_not_mix(device):
    for name in ("add", "matmul", "where", "concat", "gather", "scatter_add", "equal", "pow"):
        call = CALLS[name]
        if has(device, call):
            check(
                device,
                lambda *mixed, name=name, call=call: dispatch.execute(
                    name, *mixed, **call.attributes
                ),
                tensors_of(call.operands),
            )


# Public functions, which do things before they come to an op.


MODULES = ["fft", "linalg", "nn.functional", "optim", "random", "signal"]


def functions_of_several():
    """Public functions of two tensors or more, by their full names."""
    for prefix in ("burn", *[f"burn.{name}" for name in MODULES]):
        module = importlib.import_module(prefix)
        for name in dir(module):
            member = getattr(module, name)
            if isinstance(member, types.FunctionType) and not name.startswith("_"):
                annotations = [
                    str(parameter.annotation)
                    for parameter in inspect.signature(member).parameters.values()
                ]
                tensors = [
                    annotation
                    for annotation in annotations
                    if "Tensor" in annotation or "Operand" in annotation
                ]
                if len(tensors) > 1 or any("Sequence[Tensor]" in tensor for tensor in tensors):
                    yield f"{prefix}.{name}", member


FUNCTIONS = dict(functions_of_several())
del FUNCTIONS["burn.check_closeness"]  # it compares on the host
del FUNCTIONS["burn.complex"]  # the mock device has no complex dtypes

IMAGE, KERNEL, MATRIX, ROW = (1, 2, 4, 4), (2, 2, 3, 3), (3, 3), (3,)

CALLED = {
    **{f"burn.{name}space": lambda f, *ends: f(*ends, num=3) for name in ("geom", "lin", "log")},
    "burn.optim.adagrad_step": lambda f, *tensors: f(*tensors, step=1),
    "burn.optim.adam_step": lambda f, *tensors: f(*tensors, step=1),
    "burn.optim.adan_step": lambda f, *tensors: f(*tensors, step=1),
    "burn.optim.amsgrad_step": lambda f, *tensors: f(*tensors, step=1),
    "burn.nn.functional.attention": lambda f, a, b, c, m, d: f(a, b, c, m, d),
    "burn.nn.functional.batch_norm": lambda f, *tensors: f(*tensors),
    "burn.nn.functional.batch_norm_training": lambda f, *tensors: f(*tensors),
    "burn.concat": lambda f, *tensors: f(list(tensors)),
    "burn.nn.functional.group_norm": lambda f, x, gamma, beta: f(x, 2, gamma, beta),
    "burn.put_along_axis": lambda f, x, indices, values: f(x, indices, values, axis=0),
    "burn.scatter": lambda f, x, indices, values: f(x, indices, values, axis=0),
    "burn.scatter_add": lambda f, x, indices, values: f(x, indices, values, axis=0),
    "burn.select_add": lambda f, x, indices, values: f(x, indices, values, axis=0),
    "burn.select_assign": lambda f, x, indices, values: f(x, indices, values, axis=0),
    "burn.optim.sgd_step": lambda f, a, b, c: f(a, b, c, learning_rate=0.1),
    "burn.linalg.matrix_rank": lambda f, x, rtol: f(x, rtol=rtol),
    "burn.linalg.pinv": lambda f, x, rtol: f(x, rtol=rtol),
    "burn.signal.istft": lambda f, re, im, window: f(re, im, n_fft=4, window=window),
    "burn.signal.stft": lambda f, x, window: f(x, n_fft=4, window=window),
    "burn.stack": lambda f, *tensors: f(list(tensors)),
    **dict.fromkeys(
        [*[f"burn.{name}stack" for name in ("column_", "d", "h", "v")], "burn.linalg.multi_dot"],
        lambda f, *tensors: f(list(tensors)),
    ),
    "burn.linalg.solve_triangular": lambda f, x, y: f(x, y, upper=True),
    "burn.nn.functional.multilabel_soft_margin_loss": lambda f, x, y, weight: f(
        x, y, weight=weight
    ),
    "burn.nn.functional.rnnt_loss": lambda f, x, targets, frames, labels: f(
        x, targets + 1, frames + 2, labels + 1
    ),
    **{
        f"burn.nn.functional.max_unpool{rank}d": lambda f, x, indices: f(x, indices, 2)
        for rank in (1, 2, 3)
    },
    "burn.take": lambda f, x, indices: f(x, indices, axis=0),
    "burn.gather": lambda f, x, indices: f(x, indices, axis=0),
    "burn.bincount": lambda f, x, weights: f(x, weights=weights),
    "burn.histogram": lambda f, x, edges, weights: f(x, edges, weights=weights),
    "burn.histogramdd": lambda f, x, edges, weights: f(x, [edges] * 3, weights=weights),
    "burn.cov": lambda f, x, counts, weights: f(x, fweights=counts, aweights=weights),
    **dict.fromkeys(
        [f"burn.{name}" for name in ("var", "std", "nanvar", "nanstd")],
        lambda f, x, mean: f(x, mean=mean),
    ),
    "burn.random.choice": lambda f, x, p: f(x, 2, p=p),
    "burn.tensordot": lambda f, a, b: f(a, b, axes=1),
    "burn.diff": lambda f, x, before, after: f(x, prepend=before, append=after),
    "burn.nn.functional.cross_entropy": lambda f, x, y, weight: f(x, y, weight=weight),
    "burn.nn.functional.nll_loss": lambda f, x, y, weight: f(x, y, weight=weight),
    "burn.searchsorted": lambda f, x, y, sorter: f(x, y, sorter=sorter),
    "burn.nn.functional.binary_cross_entropy_with_logits": lambda f, x, y, weight, positive: f(
        x, y, weight=weight, pos_weight=positive
    ),
    "burn.nn.functional.layer_norm": lambda f, x, gamma, beta: f(x, gamma, beta),
    "burn.fori_loop": lambda f, x, y: f(x, y, lambda _, value: value, 0),
    "burn.nn.functional.binary_cross_entropy": lambda f, x, y, weight: f(x, y, weight=weight),
    "burn.nn.functional.fake_quantize": lambda f, x, scales: f(
        x, QuantScheme(store=QuantStore.NATIVE), scales=scales
    ),
    "burn.nn.functional.lp_loss": lambda f, x, y: f(x, y, 2.0),
    "burn.nn.functional.lstm": lambda f, x, h, c, *rest: f(x, (h, c), *rest),
    "burn.nn.functional.multi_margin_loss": lambda f, x, y, weight: f(x, y, weight=weight),
}
"""How functions are called that take more than their tensors by position."""

SHAPES = {
    **{f"burn.{name}": [(), ()] for name in ("arange", "geomspace", "linspace", "logspace")},
    "burn.full_like": [MATRIX, ()],
    "burn.optim.adagrad_step": [ROW] * 3,
    "burn.optim.adam_step": [ROW] * 4,
    "burn.optim.adan_step": [ROW] * 6,
    "burn.optim.amsgrad_step": [ROW] * 5,
    "burn.optim.lion_step": [ROW] * 3,
    "burn.optim.rmsprop_step": [ROW] * 5,
    "burn.nn.functional.attention": [
        (1, 2, 3, 4),
        (1, 2, 3, 4),
        (1, 2, 3, 4),
        "bool (1, 2, 3, 3)",
        (1, 2, 3, 3),
    ],
    "burn.nn.functional.batch_norm": [IMAGE, (2,), (2,), (2,), (2,)],
    "burn.nn.functional.batch_norm_training": [IMAGE, (2,), (2,), (2,), (2,)],
    "burn.nn.functional.binary_cross_entropy": [MATRIX, MATRIX, ROW],
    "burn.nn.functional.binary_cross_entropy_with_logits": [MATRIX, "bool (3, 3)", MATRIX, ROW],
    "burn.bincount": ["int64 (3,)", ROW],
    "burn.clip": [MATRIX, ROW, ROW],
    "burn.cov": [MATRIX, "int64 (3,)", ROW],
    "burn.gather": [MATRIX, "int64 (1, 3)"],
    "burn.histogram": [ROW, (1,), ROW],
    "burn.histogramdd": [MATRIX, (1,), ROW],
    "burn.nn.functional.conv1d": [(1, 2, 4), (2, 2, 3), (2,)],
    "burn.nn.functional.conv2d": [IMAGE, KERNEL, (2,)],
    "burn.nn.functional.conv3d": [(1, 2, 4, 4, 4), (2, 2, 3, 3, 3), (2,)],
    "burn.nn.functional.conv_transpose1d": [(1, 2, 4), (2, 2, 3), (2,)],
    "burn.nn.functional.conv_transpose2d": [IMAGE, KERNEL, (2,)],
    "burn.nn.functional.conv_transpose3d": [(1, 2, 4, 4, 4), (2, 2, 3, 3, 3), (2,)],
    "burn.nn.functional.cosine_embedding_loss": [MATRIX, MATRIX, ROW],
    "burn.nn.functional.cross_entropy": [MATRIX, "int64 (3,)", ROW],
    "burn.nn.functional.ctc_loss": [(3, 1, 3), "int64 (1, 1)", "int64 (1,)", "int64 (1,)"],
    "burn.nn.functional.deform_conv2d": [IMAGE, (1, 18, 2, 2), KERNEL, (1, 9, 2, 2), (2,)],
    "burn.diff": [ROW, ROW, ROW],
    "burn.fori_loop": ["int64 ()"] * 2,
    "burn.nn.functional.embedding": [MATRIX, "int64 (1, 2)"],
    "burn.nn.functional.fake_quantize": [MATRIX, (1,)],
    "burn.nn.functional.gaussian_nll_loss": [MATRIX] * 3,
    "burn.gather_nd": [MATRIX, "int64 (2, 1)"],
    "burn.nn.functional.grid_sample_2d": [IMAGE, (1, 2, 2, 2)],
    "burn.nn.functional.grid_sample_3d": [(1, 1, 2, 2, 2), (1, 2, 2, 2, 3)],
    **{
        f"burn.nn.functional.max_unpool{rank}d": [
            (1, *[2] * rank),
            f"int64 ({', '.join('12'[:1] + '2' * rank)})",
        ]
        for rank in (1, 2, 3)
    },
    "burn.nn.functional.multilabel_margin_loss": [MATRIX, "int64 (3, 3)"],
    "burn.nn.functional.multilabel_soft_margin_loss": [MATRIX, MATRIX, ROW],
    "burn.nn.functional.rnnt_loss": [
        (1, 2, 2, 3),
        "int64 (1, 1)",
        "int64 (1,)",
        "int64 (1,)",
    ],
    "burn.nn.functional.group_norm": [IMAGE, (2,), (2,)],
    "burn.nn.functional.gru": [(2, 1, 3), (1, 2), (6, 3), (6, 2), (6,), (6,)],
    "burn.nn.functional.instance_norm": [IMAGE, (2,), (2,)],
    "burn.nn.functional.layer_norm": [MATRIX, ROW, ROW],
    "burn.nn.functional.linear": [MATRIX, MATRIX, ROW],
    "burn.nn.functional.lstm": [(2, 1, 3), (1, 2), (1, 2), (8, 3), (8, 2), (8,), (8,)],
    "burn.lerp": [MATRIX, ROW, ROW],
    "burn.logical_and": ["bool (3,)"] * 2,
    "burn.logical_or": ["bool (3,)"] * 2,
    "burn.logical_xor": ["bool (3,)"] * 2,
    "burn.mask_fill": [MATRIX, "bool (3, 3)", ()],
    "burn.nn.functional.margin_ranking_loss": [MATRIX] * 3,
    "burn.nn.functional.multi_margin_loss": [MATRIX, "int64 (3,)", ROW],
    "burn.nn.functional.nll_loss": [MATRIX, "int64 (3,)", ROW],
    "burn.nn.functional.prelu": [MATRIX, ROW],
    "burn.put_along_axis": [MATRIX, "int64 (1, 3)", (1, 3)],
    "burn.nn.functional.rms_norm": [MATRIX, ROW],
    "burn.nn.functional.rnn": [(2, 1, 3), (1, 2), (2, 3), (2, 2), (2,), (2,)],
    "burn.nn.functional.rotary_embedding": [(3, 4), (3, 2), (3, 2)],
    "burn.repeat": [ROW, "int64 (3,)"],
    "burn.scatter": [MATRIX, "int64 (1, 3)", (1, 3)],
    "burn.scatter_add": [MATRIX, "int64 (1, 3)", (1, 3)],
    "burn.scatter_nd": [MATRIX, "int64 (2, 1)", (2, 3)],
    "burn.searchsorted": [ROW, ROW, "int64 (3,)"],
    "burn.select_add": [MATRIX, "int64 (2,)", (2, 3)],
    "burn.select_assign": [MATRIX, "int64 (2,)", (2, 3)],
    "burn.optim.sgd_step": [ROW] * 3,
    "burn.take": [MATRIX, "int64 (2,)"],
    "burn.take_along_axis": [MATRIX, "int64 (3, 3)"],
    "burn.nn.functional.triplet_margin_loss": [MATRIX] * 3,
    "burn.where": ["bool (3,)", ROW, ROW],
    "burn.linalg.matrix_rank": [MATRIX, ()],
    "burn.linalg.matvec": [MATRIX, ROW],
    "burn.linalg.lu_solve": [MATRIX, "int64 (3,)", MATRIX],
    "burn.linalg.pinv": [MATRIX, ()],
    "burn.linalg.solve": [(1, 1), (1, 1)],
    "burn.signal.istft": [(1, 3, 9), (1, 3, 9), (4,)],
    "burn.signal.stft": [(1, 16), (4,)],
    "burn.linalg.dot": [ROW, ROW],
    "burn.linalg.outer": [ROW, ROW],
    "burn.random.choice": [ROW, ROW],
}
"""Operands, where they are not two matrices of floats: a shape, with a dtype if it is another."""


def operands_of(name):
    made = []
    usual = "int64 (3, 3)" if ".bitwise_" in name else MATRIX
    for like in SHAPES.get(name, [usual, usual]):
        dtype, shape = like.split(" ", 1) if isinstance(like, str) else ("float32", like)
        shape = (
            tuple(int(word) for word in shape.strip("()").split(",") if word.strip())
            if isinstance(shape, str)
            else shape
        )
        values = np.arange(int(np.prod(shape))).reshape(shape) % 2 + (dtype == "float32") * 0.5
        made.append(burn.asarray(values.astype(dtype), device=CPU))
    return made


@pytest.mark.together("name", FUNCTIONS)
def test_a_function_refuses_tensors_of_different_hardware(name, elsewhere):
    how = CALLED.get(name, lambda function, *tensors: function(*tensors))
    check(elsewhere, lambda *tensors: how(FUNCTIONS[name], *tensors), operands_of(name))


def test_most_functions_of_several_tensors_are_tried():
    assert len(FUNCTIONS) > 60
    assert set(SHAPES) | set(CALLED) <= set(FUNCTIONS)


def assign(x, indices, values):
    x = x + 0
    x[indices] = values
    return x


OPERATORS = {
    "x + y": lambda x, y: x + y,
    "x ** y": lambda x, y: x**y,
    "x @ y": lambda x, y: x @ y,
    "x < y": lambda x, y: x < y,
    "x == y": lambda x, y: x == y,
    "x[indices]": lambda x, y: x[y.astype("int64")],
    "x[mask]": lambda x, y: x[y > 0],
    "x[mask] = y": lambda x, y: assign(x, x > 0, y[0, 0]),
    "x[indices] = y": lambda x, y: assign(x, burn.asarray([0], device=x.device), y[:1]),
    "x[0] = y": lambda x, y: assign(x, 0, y[0]),
    "x[theirs] = 0": lambda x, y: assign(x, y > 0, 0.0),
    "einsum": lambda x, y: burn.einsum("ij,jk->ik", x, y),
    "maximum": burn.maximum,
    "atan2": burn.atan2,
    "broadcast_arrays": lambda x, y: [burn.add(*burn.broadcast_arrays(x, y))],
    "clip": lambda x, y: burn.clip(x, max=y),
    "asarray": lambda x, y: burn.stack([x, y]),
    "cdist": lambda x, y: burn.linalg.cosine_similarity(x, y),
    "solve": lambda x, y: burn.linalg.solve(x + burn.eye(3, device=x.device) * 9, y),
    "x += y": lambda x, y: (x + 0).__iadd__(y),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_refuses_tensors_of_different_hardware(name, elsewhere):
    check(elsewhere, OPERATORS[name], operands_of("x + y"))


def test_what_is_tracked_is_advised_to_keep_its_gradient(elsewhere):
    here = burn.ones(2, device=CPU.autodiff()).require_grad()
    there = burn.ones(2, device=elsewhere.autodiff()).require_grad()
    with pytest.raises(burn.DeviceMismatchError) as caught:
        here * there
    assert '.to_device(burn.Device("cpu:0").autodiff())' in str(caught.value)
    moved = there.to_device(burn.Device("cpu:0").autodiff())
    assert there.grad((here * 3 * moved).sum().backward()).tolist() == [3.0, 3.0]
