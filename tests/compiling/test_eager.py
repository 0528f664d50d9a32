"""Eager ops as generated kernels, in the language of a backend that has nothing but that."""

import numpy as np
import pytest

import burn
from burn.compiler import eager
from burn.compiler.plan import KernelCall, Target
from burn.ir import ScalarIr, TensorIr
from burn.ops import REGISTRY, OpTable
from burn.plugin_api import DeviceId, resolve
from burn.testing import NumpyBackend

TARGET = Target(frozenset([burn.float32, burn.bool, burn.int64]), lambda operation: False)
TABLE = burn.Device("cpu").ops


class Launches:
    """A language whose kernels are their names: what is launched, and how often one is made."""

    dtypes = TARGET.dtypes

    def __init__(self):
        self.kernels = []

    def source(self, kernel):
        self.kernels.append(kernel)
        return kernel


class Backend(NumpyBackend):
    """NumPy, with kernels that return zeros and note their scalars."""

    def __init__(self):
        super().__init__()
        self.dialect = Launches()
        self.launched = []

    def load_kernel(self, code, shapes):
        def launch(inputs, scalars, out):
            self.launched.append(scalars)
            dtypes = [dtype.numpy for dtype, _ in code.outputs]
            return tuple([np.zeros(*meta) for meta in zip(shapes, dtypes, strict=True)])

        return launch


@pytest.fixture
def backend():
    return Backend()


@pytest.fixture
def ops(backend):
    return resolve(backend, DeviceId(0))


def tensor(*shape, dtype=burn.float32, id=0):
    return TensorIr(id, shape, dtype)


def plan(name, *operands, **attributes):
    return eager.one_op_plan(REGISTRY[name], operands, attributes, TABLE, TARGET)


def test_one_kernel_serves_all_numbers_and_shapes_of_a_sort(ops, backend):
    for rows, slope in ((40, 0.1), (40, 0.7), (50, 0.7)):
        ops.leaky_relu(np.zeros((rows, 300), np.float32), negative_slope=slope)
    for rows, epsilon in ((40, 1e-5), (50, 1e-3)):
        ops.layer_norm(np.zeros((rows, 300), np.float32), None, None, epsilon=epsilon)
    assert len(set(backend.dialect.kernels)) == 2
    assert [scalars[0] for scalars in backend.launched[:3]] == [0.1, 0.7, 0.7]


def test_a_method_of_the_backend_wins(ops, backend):
    assert ops.origin(REGISTRY["add"]) == "native"
    assert ops.origin(REGISTRY["gelu"]) == "generated"
    ops.add(np.ones(3, np.float32), np.ones(3, np.float32))
    assert not backend.launched


@pytest.mark.parametrize("name", ["reshape", "random_uniform", "argwhere", "full", "cond"])
def test_views_draws_and_programs_are_no_kernels(name):
    assert not eager.is_generated(REGISTRY[name])


def test_calls_that_kernels_do_not_compute_run_the_default(ops, backend):
    empty = np.zeros((0, 3), np.float32)
    assert ops.softmax(empty, axis=1).shape == (0, 3)
    wide = np.array([1.0, 2.0])  # the language has no float64
    np.testing.assert_allclose(ops.sigmoid(wide), 1 / (1 + np.exp(-wide)))
    assert not backend.launched


def test_numbers_that_decide_make_a_plan_each(ops, backend):
    x = np.zeros((4, 6), np.float32)
    for correction in (0.0, 1.0, 0.0):
        ops.var(x, axis=(1,), correction=correction)
    assert len(backend.dialect.kernels) <= 2
    assert len(backend.launched) == 3


def test_numbers_beside_integers_are_integers():
    condition, x = tensor(3, dtype=burn.bool), tensor(3, dtype=burn.int64, id=2)
    (step,) = plan("where", condition, ScalarIr(1, int), x).steps
    assert step.kernel.scalars[0] is int


def test_few_rows_of_many_columns_are_reduced_in_parts():
    for length in (1_000_003, 1_048_576):
        steps = plan("sum", tensor(length), axis=(0,), keepdims=False, dtype=burn.float32).steps
        assert [step.kernel.ragged is not None for step in steps] == [True, False]
    (step,) = plan("sum", tensor(4000, 300), axis=(1,), keepdims=False, dtype=burn.float32).steps
    assert step.kernel.ragged is None


def test_counts_of_elements_are_no_constants_of_a_kernel():
    kernels = {
        step.kernel
        for columns in (301, 303, 307)  # none is even: vectors of neighbours are other kernels
        for step in plan("mean", tensor(64, columns), axis=(1,), keepdims=False).steps
    }
    assert len(kernels) == 1


def test_a_plan_frees_what_its_steps_use_last():
    found = plan("sum", tensor(1_000_003), axis=(0,), keepdims=False, dtype=burn.float32)
    (partial,) = found.steps[0].outputs
    assert found.last_use == {partial.id: 1}
    assert all(isinstance(step, KernelCall) for step in found.steps)


def test_tables_of_decorators_generate_nothing():
    device = burn.Device("cpu").autodiff()
    assert type(device.ops) is not OpTable
    assert device.ops.runner is None
