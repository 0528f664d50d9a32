"""Batching below the public functions: rules, decompositions, loops, and levels of decorators."""

import numpy as np
import pytest

import burn
from burn.autodiff import Autodiff
from burn.batching import Batch, Frame
from burn.dtype import bool_, float32, int64
from burn.errors import ArgumentError, ShapeError, UnsupportedOpError
from burn.ops import REGISTRY, FloatOperand, Meta, TensorList, op, resolve
from burn.tensor_data import TensorData
from burn_cpu.backend import CpuBackend

ID = burn.Device("cpu").id


class Level:
    """Batching over a backend, with one call of three examples."""

    def __init__(self, below=None, size=3, **options):
        self.batch = Batch(CpuBackend() if below is None else below)
        self.table = self.batch.for_device(ID)
        self.frame = Frame(size, **options)

    def given(self, values, axis=0):
        """A batched tensor."""
        return self.batch.batch(upload(values), self.frame, axis, self.table)

    def result(self, tensor, axis=0):
        return read(self.batch.unbatch(tensor, self.frame, axis, self.table))


def upload(values):
    return CpuBackend().from_data(TensorData(np.asarray(values)), ID)


def read(primitive):
    return CpuBackend().to_data(primitive).array


def floats(*shape):
    return np.sin(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape)


@pytest.fixture
def level():
    return Level()


def test_a_batched_tensor_hides_its_batch_axis(level):
    x = level.given(floats(2, 3, 4), axis=1)
    assert x.shape == (2, 4)
    assert x.dtype == np.float32
    assert level.table.dtype(x) is float32
    assert level.batch.is_batched(x)
    assert not level.batch.is_batched(upload(floats(2)))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_the_batch_axis_goes_where_it_is_asked_for(level, axis):
    values = floats(3, 2, 4)
    out = level.result(level.given(np.moveaxis(values, 0, axis), axis), axis)
    np.testing.assert_array_equal(out, np.moveaxis(values, 0, axis))


@pytest.mark.parametrize("axis", [0, 1])
def test_what_is_the_same_for_all_examples_is_repeated(level, axis):
    values = floats(2)
    expected = np.stack([values] * 3, axis)
    np.testing.assert_array_equal(level.result(upload(values), axis), expected)


def test_a_call_without_a_batched_operand_is_that_of_the_backend(level):
    result = level.table.add(upload(floats(2)), 1.0)
    assert isinstance(result, np.ndarray)
    assert isinstance(level.table.full(shape=(2,), fill_value=0, dtype=float32), np.ndarray)


def test_names_and_members_are_those_of_the_backend_below(level):
    assert level.batch.name(ID) == "vmap<cpu>"
    assert Batch(level.batch).name(ID) == "vmap<vmap<cpu>>"
    assert level.batch.device_count(0) == CpuBackend().device_count(0)
    assert level.batch.for_device(ID) is level.table


# How an op is run.


def weights(*shape):
    return upload(floats(*shape))


WINDOW = {"stride": (1, 1), "padding": ((0, 0), (0, 0))}
CONV = {**WINDOW, "dilation": (1, 1), "groups": 1}
NATIVE = {
    "softmax": (lambda x: (x(4, 5),), {"axis": 1}),
    "linear": (lambda x: (x(4, 5), weights(5, 2), weights(2)), {}),
    "layer_norm": (lambda x: (x(4, 5), weights(5), weights(5)), {"epsilon": 1e-5}),
    "batch_norm_training": (lambda x: (x(4, 5), weights(5), weights(5)), {"epsilon": 1e-5}),
    "conv": (lambda x: (x(2, 4, 6, 6), weights(3, 4, 2, 2), weights(3)), CONV),
    "max_pool": (
        lambda x: (x(2, 4, 6, 6),),
        {**WINDOW, "kernel_size": (2, 2), "dilation": (1, 1), "ceil_mode": False},
    ),
    "attention": (
        lambda x: (x(2, 4, 5), x(2, 4, 5), x(2, 4, 5), None, None),
        {"scale": 0.5, "softcap": None, "is_causal": True},
    ),
    "cumsum": (lambda x: (x(4, 5),), {"axis": 0}),
    "matmul": (lambda x: (x(4, 5), weights(5, 2)), {}),
}


@pytest.mark.parametrize("name", NATIVE)
def test_a_method_of_the_backend_runs_once_for_all_examples(name, monkeypatch):
    calls = []

    def default(self, *operands, **attributes):
        return self.ops.decomposed(name, *operands, **attributes)

    right = getattr(CpuBackend, name, default)

    def counted(self, *operands, **attributes):
        calls.append(name)
        return right(self, *operands, **attributes)

    monkeypatch.setattr(CpuBackend, name, counted, raising=False)
    level = Level()
    make, attributes = NATIVE[name]
    getattr(level.table, name)(*make(lambda *shape: level.given(floats(3, *shape))), **attributes)
    assert calls == [name]


def test_operands_of_different_ranks_broadcast_from_the_last_axis(level):
    scalars, matrix = floats(3), floats(2, 5)
    product = level.table.multiply(level.given(scalars), upload(matrix))
    assert product.shape == (2, 5)
    np.testing.assert_array_equal(level.result(product), scalars[:, None, None] * matrix)


def test_an_error_is_that_of_one_example(level):
    with pytest.raises(ShapeError, match=r"\(2, 3\)"):
        level.table.cross_entropy(
            level.given(floats(3, 2, 3)), level.given(np.zeros((3, 3), np.int64)), axis=1
        )


@pytest.fixture
def total():
    """An op without a rule or a decomposition, for the length of a test."""

    @op(outputs=("doubled", "total"))
    def total(x: FloatOperand, others: TensorList) -> tuple[Meta, Meta]:
        """``2 * x``, and the sum of all."""
        return x, Meta((), x.dtype)

    @total.on_host
    def _(ops, x, others):
        values = [ops.backend.to_data(item).array for item in (x, *others)]
        upload = [TensorData(2 * values[0]), TensorData(np.asarray(sum(map(np.sum, values))))]
        return tuple(ops.backend.from_data(item, ops.device) for item in upload)

    yield total
    del REGISTRY["total"]


def test_an_op_without_a_rule_runs_in_a_loop_which_is_counted(total, level):
    x, y, same = floats(3, 2), floats(3, 4), floats(5)
    for _ in range(2):
        doubled, sums = level.table.total(level.given(x), [level.given(y), upload(same)])
    np.testing.assert_array_equal(level.result(doubled), 2 * x)
    np.testing.assert_allclose(level.result(sums), x.sum(1) + y.sum(1) + same.sum(), rtol=1e-6)
    assert level.frame.fallbacks == {"total": 2}


def test_a_loop_can_be_an_error(total):
    level = Level(allows_fallback=False)
    with pytest.raises(UnsupportedOpError, match="total has no batching rule"):
        level.table.total(level.given(floats(3, 2)), [])
    assert not level.frame.fallbacks


def test_a_loop_over_no_examples_gives_no_results(total):
    level = Level(size=0)
    doubled, sums = level.table.total(level.given(floats(0, 2)), [])
    assert (doubled.shape, sums.shape) == ((2,), ())
    assert level.result(doubled).shape == (0, 2)


def test_a_rule_that_does_not_cover_a_call_leaves_it_to_the_decomposition(monkeypatch):
    asked = []
    definition = REGISTRY["softplus"]

    def rule(ops, batch, x, *, beta):
        asked.append((batch.op, batch.size, batch.is_batched, beta))
        return NotImplemented

    monkeypatch.setattr(definition, "batch", rule)
    level = Level()
    x = floats(3, 4)
    found = level.result(level.table.softplus(level.given(x), beta=2.0))
    np.testing.assert_allclose(found, np.log1p(np.exp(2 * x)) / 2, rtol=1e-6)
    assert asked == [(definition, 3, (True,), 2.0)]


def test_the_attributes_of_a_decomposition_are_checked(level):
    x = level.given(floats(3, 4, 2, 2))
    bad = level.given(floats(3, 2))
    with pytest.raises(burn.BurnError):
        level.table.adam_step(
            [x], [x], [x], [x], [],
            step=0, learning_rate=0.1, beta1=0.9, beta2=0.9, epsilon=0.1, weight_decay=0.0,
            decoupled=True,
        )  # fmt: skip
    with pytest.raises(ShapeError):
        level.table.linear(x, bad, None)


def test_a_shape_that_depends_on_values_is_an_error(level):
    x = level.given(np.array([[0, 1], [1, 1], [0, 0]]))
    with pytest.raises(UnsupportedOpError, match="argwhere would give each example a shape"):
        level.table.argwhere(x, dtype=int64)


# Calls and levels.


def test_a_tensor_of_a_call_that_has_returned_is_an_error(level):
    x = level.given(floats(3, 2))
    level.frame.leave()
    with pytest.raises(ArgumentError, match="has returned"):
        level.table.add(x, 1.0)
    with pytest.raises(ArgumentError, match="has returned"):
        level.result(x)


def test_tensors_of_two_calls_do_not_meet(level):
    x = level.given(floats(3, 2))
    level.frame = Frame(3)
    with pytest.raises(ArgumentError, match="another call"):
        level.table.concat([level.given(floats(3, 2)), x], axis=0)


def test_levels_of_batches_have_an_axis_each():
    inner = Level()
    outer = Level(inner.batch, size=2)
    x, y = floats(3, 2, 4), floats(3, 4)
    both = outer.batch.batch(inner.given(x), outer.frame, 0, outer.table)
    assert both.shape == (4,)
    total = outer.table.add(both, inner.given(y))
    found = inner.result(outer.batch.unbatch(total, outer.frame, 1, outer.table))
    np.testing.assert_array_equal(found, np.moveaxis(x + y[:, None], 1, 2))


def test_autodiff_over_a_batch_gives_the_gradients_of_each_example():
    level = Level()
    autodiff = Autodiff(level.batch)
    table = autodiff.for_device(ID)
    x, weight = floats(3, 4), floats(4)
    leaf = autodiff.require_grad(upload(weight), ID)  # the same for all examples
    y = table.sum(table.exp(table.multiply(level.given(x), leaf)), axis=(0,), dtype=float32)
    gradient = autodiff.grad(leaf, autodiff.backward(y))
    assert gradient.shape == (4,)
    np.testing.assert_allclose(level.result(gradient), x * np.exp(x * weight), rtol=1e-6)


def test_a_batch_over_autodiff_adds_up_the_gradients_of_all_examples():
    autodiff = Autodiff(CpuBackend())
    level = Level(autodiff)
    x, weight = floats(3, 4), floats(4)
    leaf = autodiff.require_grad(upload(weight), ID)
    y = level.table.exp(level.table.multiply(level.given(x), leaf))
    losses = level.batch.unbatch(y, level.frame, 0, level.table)
    total = level.table.below.sum(losses, axis=(0, 1), dtype=float32)
    found = read(autodiff.grad(leaf, autodiff.backward(total)))
    np.testing.assert_allclose(found, (x * np.exp(x * weight)).sum(0), rtol=1e-6)


def test_a_batch_over_checkpointing_has_a_table_of_its_own():
    batch = Batch(Autodiff(CpuBackend()))
    plain, checkpointing = batch.for_device(ID), batch.for_device(ID, checkpointing=True)
    assert plain is not checkpointing
    assert checkpointing.below is batch.below.for_device(ID, checkpointing=True)
    assert checkpointing is batch.for_device(ID, checkpointing=True)


def test_a_closed_table_refuses_every_op():
    backend = CpuBackend()
    level = Level(backend)
    x = level.given(floats(3, 2))
    reason = burn.DeviceUnavailableError("the device has gone")
    level.table.close(reason)
    with pytest.raises(burn.DeviceUnavailableError, match="gone"):
        level.table.exp(x)
    assert resolve(backend, ID) is not level.table.below


def test_choices_of_examples_may_be_batched(level):
    condition = np.array([[True, False], [False, False], [True, True]])
    x = floats(2)
    chosen = level.table.where(level.given(condition), upload(x), 0.0)
    np.testing.assert_array_equal(level.result(chosen), np.where(condition, x, 0))
    assert level.table.dtype(level.table.isnan(chosen)) is bool_
