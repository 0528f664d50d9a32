"""`burn.ir.trace` and `burn.eval_shape`: what they write down, refuse, and leave."""

import asyncio
import contextvars
import functools
import gc
import importlib.util
import inspect
import os
import re
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import burn
from burn.devices import running_trace
from burn.ir import RuntimeNumber, TensorSpec, trace
from burn.ops import observing

CPU = burn.Device("cpu")
AUTODIFF = CPU.autodiff()
DEVICES = ["cpu", "torch/cpu", "opencl"]

pytestmark = pytest.mark.usefixtures("no_transform_is_left")
on_each_device = pytest.mark.parametrize("device", DEVICES)


@pytest.fixture(autouse=True)
def no_trace_is_left():
    yield
    assert running_trace() is None


def tensor(*values, device=CPU, **options):
    return burn.asarray(values, device=device, **options)


def leaf(*values):
    return tensor(*values, device=AUTODIFF).require_grad()


def names(program):
    return [operation.name for operation in program.operations if hasattr(operation, "name")]


def line_of(function, text):
    """``file:line`` of the line of a function that has a text."""
    lines, first = inspect.getsourcelines(function)
    (number,) = [first + index for index, line in enumerate(lines) if text in line]
    return f"{Path(__file__).name}:{number}"


# What is written down.


@pytest.fixture
def executed():
    """Names of the ops that run on devices."""
    found = []
    with observing.observed(lambda *_: found.append(1)):
        yield found


def test_nothing_is_executed():
    huge = TensorSpec((10**6, 10**6), "float32", "cpu")
    row = TensorSpec((10**6,), "float32", "cpu")

    def f(x, y):
        z = burn.softmax(x) if hasattr(burn, "softmax") else burn.nn.functional.softmax(x, axis=-1)
        z = z @ y + burn.zeros((10**6,), device=CPU)
        z[0] = 1.0
        return burn.sort(z), burn.sum(x * x), burn.random.normal((10**9,), device=CPU)

    program = trace(f, huge, row)
    assert {"softmax", "matmul", "sort", "random_normal"} <= set(names(program))
    assert [tensor.shape for tensor in burn.eval_shape(f, huge, row)] == [(10**6,), (), (10**9,)]


def test_a_gradient_of_huge_tensors_is_written_down():
    huge = TensorSpec((10**6, 10**6), "float32", "cpu")
    program = trace(burn.grad(lambda x: (burn.tanh(x) * x).sum()), huge)
    assert program.outputs[0].shape == (10**6, 10**6)


def test_each_operation_has_the_line_of_the_user():
    def f(x):
        y = burn.tanh(x)
        return helper(y)

    def helper(y):
        return y @ y  # the product

    tanh, product = trace(f, burn.eye(2, device=CPU)).operations[:2]
    assert tanh.source.endswith(line_of(f, "tanh"))
    assert product.source.endswith(line_of(helper, "# the product"))


def test_the_backward_pass_and_the_step_of_the_optimizer_are_in_the_program():
    w, x = tensor(1.0, 2.0), tensor(3.0, 4.0)

    def step(w, x, velocity):
        leaf = burn.Tensor.from_inner(w, AUTODIFF).require_grad()
        gradient = (burn.exp(leaf) * x).sum().backward()[leaf]
        return burn.optim.sgd_step(w, gradient, velocity, learning_rate=0.5)

    program = trace(step, w, x, burn.zeros_like(w))
    assert names(program).count("exp") == 1
    assert names(program)[-1] == "sgd_step"
    expected = step(w, x, burn.zeros_like(w))
    for item, other in zip(program(w, x, burn.zeros_like(w)), expected, strict=True):
        assert item.tolist() == other.tolist()


def test_tensors_from_outside_are_inputs_in_the_order_of_their_first_use():
    a, b, c = tensor(1.0), tensor(2.0), tensor(3.0)
    program = trace(lambda x: b * x + a * b, c)
    assert len(program.inputs) == 3
    assert [
        item is other for item, other in zip(program.calling.captured, (b, a), strict=True)
    ] == [
        True,
        True,
    ]


def test_arrays_lists_and_numbers_are_constants():
    array = np.array([1.0, 2.0], np.float32)
    values = [3.0, 4.0]
    factor = 2.0
    program = trace(
        lambda x: x * burn.asarray(array, device=CPU) + burn.asarray(values, device=CPU) * factor,
        tensor(1.0, 1.0),
    )
    array[:], values[:], factor = 0.0, [0.0, 0.0], 0.0
    assert program(tensor(1.0, 1.0)).tolist() == [7.0, 10.0]
    assert len(program.constants) == 2


def test_a_tensor_is_one_input_however_often_it_is_used():
    w = tensor(1.0, 2.0)
    program = trace(lambda x: w * x + w - w[0] + burn.stack([w, w])[0], tensor(1.0, 2.0))
    assert len(program.inputs) == 2


def test_the_same_argument_twice_is_two_inputs():
    x = tensor(1.0, 2.0)
    program = trace(lambda a, b: a - b, x, x)
    assert program(tensor(5.0, 5.0), x).tolist() == [4.0, 3.0]


def test_an_argument_that_is_closed_over_too_is_another_input():
    x = tensor(1.0, 2.0)
    program = trace(lambda a: a + x, x)
    assert program(tensor(10.0, 10.0)).tolist() == [11.0, 12.0]


# What depends on values.


def branch(x):
    if x.sum() > 0:  # the user's line
        return x
    return -x


NEEDS_VALUES = {
    "item": lambda x: x * x.sum().item(),
    "bool": branch,
    "float": lambda x: x * float(x[0]),
    "numpy": lambda x: burn.asarray(x.numpy() * 2.0, device=CPU),
    "range": lambda x: [x * n for n in range(x.astype(burn.int32)[0])],
    "printed numbers": lambda x: f"{x[0]:.3f}",
    "a comparison of elements": lambda x: x[0] in (1.0, 2.0),
    "all": lambda x: x if burn.all(x > 0) else -x,
    "a transaction": lambda x: burn.Transaction().register(x).execute(),
    "allclose": lambda x: x if burn.allclose(x, x) else -x,
    "closeness": lambda x: burn.check_closeness(x, x),
    "nonzero": burn.nonzero,
    "a mask": lambda x: x[x > 0.0],
    "unique": burn.unique_values,
    "a slice": lambda x: x[: x.astype(burn.int32)[0]],
    "inside of vmap": lambda x: burn.vmap(lambda a: a * float(y_outside.sum()))(x),
}

y_outside = tensor(1.0, 2.0)


@pytest.mark.parametrize("is_closed_over", [False, True])
@pytest.mark.parametrize("name", NEEDS_VALUES)
def test_what_depends_on_values_names_the_line_and_the_alternatives(name, is_closed_over):
    function, x = NEEDS_VALUES[name], tensor(1.0, 2.0)
    traced, examples = (lambda: function(x), ()) if is_closed_over else (function, (x,))
    with pytest.raises(burn.TraceError) as failure:
        trace(traced, *examples)
    assert isinstance(failure.value, burn.UnsupportedOpError)
    assert re.search(r"test_tracing\.py:\d+", str(failure.value))
    assert re.search("burn.where", failure.value.hint)
    assert x.tolist() == [1.0, 2.0]


def test_the_line_is_that_which_needs_the_value():
    with pytest.raises(burn.TraceError, match=line_of(branch, "# the user's line")):
        trace(branch, tensor(1.0))


def test_what_waits_for_a_device_moves_tensors_or_seeds_is_refused():
    x, there = tensor(1.0), burn.Device("torch/cpu")
    there.seed(1)  # so that its generator has a state, to which a failed draw returns
    y = tensor(1.0, device=there)
    for function, message in {
        lambda x: x.device.sync(): "nothing runs",
        lambda x: CPU.seed(1): "Seed it before",
        lambda x: burn.random.seed(1, device=CPU): "Seed it before",
        lambda x: x.to_device(there): "moves a tensor from cpu:0 to torch/cpu:0",
        lambda x: x + y.to_device(CPU): "on",
        lambda x: (x, y): "uses cpu:0 and torch/cpu:0",
        lambda x: (x, y * y): "uses cpu:0 and torch/cpu:0",
        lambda x: (
            burn.random.uniform((2,), device=CPU),
            burn.random.uniform((2,), device=there),
        ): "uses cpu:0 and torch/cpu:0",
    }.items():
        with pytest.raises(burn.BurnError, match=message):
            trace(function, x)
    assert (x + x).tolist() == [2.0]
    assert (y + y).tolist() == [2.0]


def test_how_much_an_example_of_vmap_draws_is_not_part_of_the_program():
    def noisy(row):
        return row * burn.random.uniform((2,), device=CPU) + burn.asarray([3.0, 4.0], device=CPU)

    program = trace(lambda x: burn.vmap(noisy)(x), burn.ones((3, 2), device=CPU))
    assert len(program.constants) == 1
    assert [operation.name for operation in program.operations].count("random_uniform") == 3
    assert not any(isinstance(operation, burn.ir.Drop) for operation in program.operations)


def test_a_trace_inside_of_a_transform_is_refused():
    x = tensor(1.0)
    for transform in (burn.grad, burn.vmap):
        with pytest.raises(burn.ArgumentError, match="inside of a transform"):
            transform(lambda x: trace(lambda y: y * y, x)(x).sum())(x)


def test_a_tensor_that_depends_on_a_leaf_outside_is_refused_but_has_a_shape():
    x = leaf(1.0, 2.0)
    y = x * x
    with pytest.raises(burn.TraceError, match="computed from a leaf outside"):
        trace(lambda: y + 1.0)
    with pytest.raises(burn.TraceError, match="computed from a leaf outside"):
        trace(lambda y: y + 1.0, y)
    assert burn.eval_shape(lambda y: y + 1.0, y).shape == (2,)
    assert y.sum().backward()[x].tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    "use",
    [
        lambda x, r: x * r,
        lambda x, r: x * float(r),
        lambda x, r: x if r else -x,
        lambda x, r: burn.clip(x, 0, r),
        lambda x, r: burn.full((2,), r, device=CPU),
    ],
)
def test_a_runtime_number_is_refused_where_numbers_are_constants(use):
    with pytest.raises(burn.BurnError, match=r"number"):
        trace(use, tensor(1.0, 2.0), RuntimeNumber(3))


def test_a_runtime_number_is_a_number():
    for value in (True, "1", None, 1j, tensor(1.0)):
        with pytest.raises(burn.OperandTypeError, match="a runtime number is"):
            RuntimeNumber(value)
    assert RuntimeNumber(np.float32(0.5)).value == 0.5


# Tensors that are kept.


class Module:
    pass


@pytest.fixture
def escapes():
    """The functions that keep a tensor, imported anew: what is frozen has no names in messages."""
    gc.freeze()  # the collector is slow where libraries were loaded
    path = Path(__file__).parents[1] / "shared" / "escapes.py"
    specification = importlib.util.spec_from_file_location("escapes", path)
    found = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(found)
    return found.ESCAPES


@pytest.mark.parametrize("transform", [trace, burn.eval_shape])
def test_a_tensor_that_is_kept_is_an_error_that_names_where(escapes, transform):
    assert len(escapes) >= 15
    x = tensor(1.0, 2.0)
    for function, where in escapes.items():
        with pytest.raises(burn.TraceError, match=re.escape(where)) as failure:
            transform(function, x)
        assert re.search(r"Return it, .*; or write it", failure.value.hint)
        assert (x + x).tolist() == [2.0, 4.0]


def test_a_cycle_that_nothing_refers_to_keeps_nothing():
    def f(x):
        node = Module()
        node.self, node.value = node, x * 2.0
        return node.value

    assert trace(f, tensor(1.0))(tensor(2.0)).tolist() == [4.0]


def test_a_weak_reference_keeps_nothing():
    found = []

    def f(x):
        y = x * 2.0
        found.append(weakref.ref(y))
        return x

    trace(f, tensor(1.0))
    assert found[0]() is None


def test_a_tensor_of_a_trace_that_failed_can_be_dropped_but_not_used():
    kept = []

    def f(x):
        kept.append(x * 2.0)
        return x.item()

    x = tensor(1.0)
    with pytest.raises(burn.TraceError, match="no value"):
        trace(f, x)
    for use in (lambda y: y + 1.0, lambda y: y + x, lambda y: trace(lambda: y * y)):
        with pytest.raises(burn.TraceError):
            use(kept[0])
    kept.clear()
    assert (x + x).tolist() == [2.0]


def test_tensors_of_two_traces_do_not_meet():
    kept = []

    def f(x):
        kept.append(x * 2.0)
        return x.item()

    with pytest.raises(burn.TraceError, match="no value"):
        trace(f, tensor(1.0))
    with pytest.raises(burn.TraceError):
        trace(lambda x: x + kept[0], tensor(1.0))
    with pytest.raises(burn.TraceError):
        trace(lambda: (kept[0] * 2.0, 1))


# What a trace leaves.


class Interrupt(BaseException):
    pass


@pytest.mark.parametrize("error", [ValueError, Interrupt, KeyboardInterrupt, burn.ShapeError])
def test_after_an_exception_everything_is_what_it_was(error):
    root = burn.zeros((2, 2), device=CPU)
    view, w = root[0], leaf(1.0, 2.0)
    primitives = [root.primitive, view.primitive, w.primitive]

    def f(x):
        view[...] = x
        burn.random.normal((3,), device=CPU)
        (w * x).sum().backward()
        with burn.no_grad(), burn.default_device("torch/cpu"):
            raise error("stop")

    with pytest.raises(error):
        trace(f, tensor(1.0, 1.0))
    for x, primitive in zip((root, view, w), primitives, strict=True):
        assert x.primitive is primitive
    assert root.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    view[...] = 1.0
    assert root.tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert (w * w).sum().backward()[w].tolist() == [2.0, 4.0]


def test_a_trace_draws_no_numbers_and_changes_nothing():
    x, w = tensor(1.0, 2.0), tensor(3.0, 4.0)

    def f(x):
        nonlocal w
        w += x
        x *= 2.0
        return burn.random.normal((2,), device=CPU) + w * x

    CPU.seed(1)
    expected = burn.random.normal((4,), device=CPU).tolist()
    CPU.seed(1)
    trace(f, x)
    burn.eval_shape(f, x)
    assert (x.tolist(), w.tolist()) == ([1.0, 2.0], [3.0, 4.0])
    assert burn.random.normal((4,), device=CPU).tolist() == expected


def test_hundreds_of_traces_leave_nothing():
    w = tensor(1.0, 2.0)
    root = burn.zeros((2, 2), device=CPU)
    view = root[0]

    def step(x):
        leaf = burn.Tensor.from_inner(w, AUTODIFF).require_grad()
        loss = (burn.tanh(leaf) * x + view).sum()
        return burn.vmap(lambda a: a * loss.backward()[leaf])(x)

    def run():
        trace(step, x)(x)
        burn.eval_shape(step, x)
        try:
            trace(lambda x: x.sum().item(), x)
        except burn.TraceError:
            return
        raise AssertionError

    x = tensor(1.0, 2.0)
    counts = []
    for _ in range(3):
        for _ in range(100):
            run()
        gc.collect()
        counts.append(sys.getallocatedblocks())
    assert counts[-1] - counts[0] < 100


def test_a_program_and_its_tensors_are_freed():
    def made():
        w = tensor(1.0, 2.0)
        program = trace(lambda x: w * x, tensor(1.0, 2.0))
        program(tensor(1.0, 2.0))
        return weakref.ref(program), weakref.ref(w)

    references = made()
    gc.collect()
    assert [reference() for reference in references] == [None, None]


# Contexts, threads, tasks and processes.


def test_contexts_inside_of_a_function_hold():
    w = leaf(1.0, 2.0)

    def f(x):
        with burn.no_grad():
            constant = w * x
        with burn.default_device("cpu"):
            made = burn.ones(2)
        return constant.is_tracked, (w * x).is_tracked, constant + made

    assert trace(f, tensor(3.0, 4.0))(tensor(3.0, 4.0))[:2] == (False, True)
    with burn.no_grad():
        program = trace(lambda x: (w * x).sum(), tensor(3.0, 4.0))
    assert program(tensor(3.0, 4.0)).tolist() == 11.0


def test_other_threads_compute_while_a_function_is_traced():
    inside, leave = threading.Event(), threading.Event()
    mine, shared = tensor(1.0, 2.0), tensor(5.0)

    def f(x):
        y = shared * x
        inside.set()
        assert leave.wait(20)
        return y + shared

    with ThreadPoolExecutor(2) as pool:
        traced = pool.submit(trace, f, tensor(1.0))
        assert inside.wait(20)
        before = (burn.exp(mine) * mine + mine.sum()).tolist()
        new = burn.atan2(mine, burn.ones(2, device="cpu"))  # a plan that was not there
        assert (new * 2.0).shape == (2,)
        assert trace(lambda x: x * mine, mine)(mine).tolist() == [1.0, 4.0]
        assert (leaf(1.0) * 2.0).backward() is not None
        assert (shared + 1.0).tolist() == [6.0]
        assert (shared + mine[:1]).tolist() == [6.0]
        leave.set()
        program = traced.result()
    assert program(tensor(2.0)).tolist() == [15.0]
    assert (shared + 1.0).tolist() == [6.0]
    assert (burn.exp(mine) * mine + mine.sum()).tolist() == before


def test_threads_trace_at_once():
    barrier = threading.Barrier(4)

    def work(number):
        w = tensor(float(number), 1.0)

        def f(x):
            y = w * x
            barrier.wait(20)
            return burn.tanh(y) + w

        found = []
        for _ in range(10):
            program = trace(f, w)
            found.append(program(w).tolist() == pytest.approx((burn.tanh(w * w) + w).tolist()))
        return found

    with ThreadPoolExecutor(4) as pool:
        assert all(all(found) for found in pool.map(work, range(4)))


@pytest.mark.parametrize("copies_context", [False, True])
def test_a_thread_of_the_function_itself_cannot_use_its_tensors(copies_context):
    failures = []

    def f(x):
        def work():
            try:
                x * 2.0
            except burn.TraceError as error:
                failures.append(str(error))

        run = functools.partial(contextvars.copy_context().run, work) if copies_context else work
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        return x

    trace(f, tensor(1.0))
    assert "another thread" in failures[0]


def test_a_task_of_the_function_is_traced():
    async def double(x):
        await asyncio.sleep(0)
        return x * 2.0

    async def both(x):
        return await asyncio.gather(double(x), double(x + 1.0))

    program = trace(lambda x: asyncio.run(both(x)), tensor(1.0))
    assert [tensor.tolist() for tensor in program(tensor(3.0))] == [[6.0], [8.0]]


def test_other_tasks_of_a_thread_do_not_see_the_trace():
    x = tensor(2.0)

    async def other():
        return (x * 3.0).tolist()

    async def main():
        task = asyncio.create_task(other())
        program = trace(lambda y: y * y, x)
        return await task, program(x).tolist()

    assert asyncio.run(main()) == ([6.0], [4.0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_process_that_is_forked_while_a_thread_traces_computes_and_traces():
    inside, leave = threading.Event(), threading.Event()
    x = tensor(1.0, 2.0)

    def f(y):
        inside.set()
        assert leave.wait(20)
        return y * y

    with ThreadPoolExecutor(1) as pool:
        traced = pool.submit(trace, f, tensor(1.0))
        assert inside.wait(20)
        process = os.fork()
        if not process:
            status = 1
            try:
                right = (x * x).tolist() == [1.0, 4.0]
                right &= trace(lambda y: y * x, x)(x).tolist() == [1.0, 4.0]
                status = 0 if right else 2
            finally:
                os._exit(status)
        leave.set()
        traced.result()
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0


# eval_shape, TensorSpec.


def test_eval_shape_keeps_containers_and_devices():
    spec = TensorSpec((3, 4), burn.float32, "cpu")
    found = burn.eval_shape(
        lambda a, n: {"y": [a.T @ a, None], "n": n, "z": (burn.argmax(a), a.to_device(AUTODIFF))},
        spec,
        3,
    )
    assert found == {
        "y": [TensorSpec((4, 4), burn.float32, CPU), None],
        "n": 3,
        "z": (TensorSpec((), burn.int64, CPU), TensorSpec((3, 4), burn.float32, AUTODIFF)),
    }
    assert found["z"][0].device is CPU


def test_a_spec_says_what_is_wrong():
    for arguments, error in {
        ((-1,), burn.float32): burn.ShapeError,
        ("a", burn.float32): burn.BurnError,
        ((2,), "float31"): burn.BurnError,
        ((2,), burn.float32, "nowhere"): burn.BurnError,
    }.items():
        with pytest.raises(error, match="TensorSpec"):
            TensorSpec(*arguments)


def test_shapes_are_refused_by_the_rule_of_the_op():
    spec = TensorSpec((3, 4), burn.float32, "cpu")
    with pytest.raises(burn.ShapeError, match=r"matmul\(float32\[3, 4\], float32\[3, 4\]\)"):
        burn.eval_shape(lambda a: a @ a, spec)
    for function in (trace, burn.eval_shape):
        with pytest.raises(burn.BurnError, match="function"):
            function(3)


def test_gradients_from_outside_are_refused():
    leaf = burn.asarray([1.0, 2.0], device=burn.Device("cpu").autodiff()).require_grad()
    gradients = (leaf * leaf).sum().backward()
    for read in (leaf.grad, gradients.get):
        with pytest.raises(burn.TraceError, match="gradients from outside"):
            burn.ir.trace(
                lambda x, read=read: leaf * x * read(gradients if read == leaf.grad else leaf), leaf
            )
