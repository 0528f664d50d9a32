"""compiled() asks the backend, generates kernels, or calls the ops; runs are alike in all cases."""

import threading

import numpy as np
import pytest

import burn
from burn.compiler import compiled
from burn.device_id import DeviceId
from burn.dtype import float32
from burn.errors import ExecutionError, OutOfRangeError
from burn.ir import Execution, GraphIr
from burn.ops import OpTable, observing, resolve
from burn.tensor_data import TensorData
from burn.testing import NumpyBackend

DEVICE = DeviceId(0, 0)


def parsed(text):
    return GraphIr.from_text(text)


_UNIFORM = "shape=(3,), low=0.0, high=1.0, seed=$1, offset=$2, dtype=float32"

PROGRAM = parsed(f"""
    input %0: float32[3]
    input $0: float
    draw 4 words: seed $1, offset $2
    %1: float32[3] = random_uniform({_UNIFORM})
    %2: float32[3] = multiply(%0, 1.0)    # train.py:1
    %3: float32[3] = exp(%2)    # train.py:2
    output %3
    output %1
""")

WITHOUT_DRAW = parsed("""
    input %0: float32[3]
    %1: float32[3] = exp(%0)    # train.py:7
    output %1
""")


class Compiling(NumpyBackend):
    """A backend with a compiler, which records what it is given."""

    def __init__(self, make):
        super().__init__()
        self.make = make
        self.graphs = []

    def compile(self, graph, device):
        assert device == DEVICE
        self.graphs.append(graph)
        return self.make(graph, resolve(self, device))


def straight(graph, table):
    execution = Execution(graph, table)
    calls = []

    def call(*values):
        calls.append(values)
        tensors = len(graph.inputs)
        return execution.run(values[:tensors], values[tensors:] or (0, 0))

    call.calls = calls
    return call


def vector(table, *values):
    return table.backend.from_data(TensorData(np.array(values, np.float32)), table.device)


def test_the_backend_gets_the_simplified_program_and_its_function_the_inputs_and_the_draw():
    made = []
    backend = Compiling(lambda *given: made.append(straight(*given)) or made[-1])
    table = resolve(backend, DEVICE)
    executable = compiled(PROGRAM, table)
    assert backend.graphs == [executable.graph]
    assert [operation.name for operation in executable.graph.operations] == [
        "random_uniform",
        "exp",
    ]
    x = vector(table, 0.0, 1.0, 2.0)
    found, drawn = executable.run([x, 0.5], (3, 4))
    assert made[0].calls == [(x, 0.5, 3, 4)]
    expected = Execution(PROGRAM, table).run([x, 0.5], (3, 4))
    np.testing.assert_allclose(found, expected[0], rtol=1e-6)
    np.testing.assert_array_equal(drawn, expected[1])


def test_a_program_without_random_numbers_is_called_without_a_draw():
    made = []
    table = resolve(Compiling(lambda *given: made.append(straight(*given)) or made[-1]), DEVICE)
    x = vector(table, 0.0)
    graph = parsed("input %0: float32[1]\n%1: float32[1] = exp(%0)\noutput %1")
    compiled(graph, table).run([x], (0, 0))
    assert made[0].calls == [(x,)]


def test_a_backend_may_leave_a_program_to_core():
    table = resolve(Compiling(lambda *_: None), DEVICE)
    executable = compiled(WITHOUT_DRAW, table)
    (found,) = executable.run([vector(table, 0.0, 1.0, 2.0)])
    np.testing.assert_allclose(found, np.exp([0.0, 1.0, 2.0]), rtol=1e-6)
    assert executable.kernels == {}
    assert "exp(float32[3]) at train.py:7" in executable.explain()


class _WithoutMembers:
    """A backend that was written for an earlier plugin API."""

    def __init__(self, backend):
        self._backend = backend

    def __getattr__(self, name):
        if name in {"compile", "dialect", "load_kernel"}:
            raise AttributeError(name)
        return getattr(self._backend, name)


def test_a_backend_without_the_members_runs_programs():
    table = OpTable(_WithoutMembers(NumpyBackend()), DEVICE)
    (found,) = compiled(WITHOUT_DRAW, table).run([vector(table, 0.0, 0.0, 0.0)])
    assert found.tolist() == [1.0, 1.0, 1.0]


def test_a_table_of_a_transform_runs_the_ops_itself():
    backend = Compiling(straight)
    device = burn.Device("cpu").autodiff()
    executable = compiled(WITHOUT_DRAW, device.ops)
    assert not backend.graphs
    assert executable.explain().startswith("1 calls")


def test_what_the_function_says_of_itself_is_what_users_read():
    def make(graph, table):
        call = straight(graph, table)
        call.explain = lambda: "one launch"
        call.kernels = {"exp": "the source"}
        return call

    executable = compiled(WITHOUT_DRAW, resolve(Compiling(make), DEVICE))
    assert executable.explain() == "one launch"
    assert executable.kernels == {"exp": "the source"}


@pytest.mark.parametrize(
    ("describe", "operation", "expected"),
    [
        (None, "", "a program"),
        (None, "exp", "exp"),
        (lambda error: f"the step at {error.rule}", "exp", "the step at fault"),
        (lambda error: "", "exp", "exp"),
    ],
)
def test_an_error_names_the_operation_as_well_as_it_is_known(describe, operation, expected):
    def make(graph, table):
        def call(*values):
            raise ExecutionError("fault", operation=operation)

        if describe is not None:
            call.describe = describe
        return call

    executable = compiled(WITHOUT_DRAW, resolve(Compiling(make), DEVICE))
    with pytest.raises(ExecutionError) as caught:
        executable.run([None])
    assert caught.value.operation == expected


@pytest.mark.parametrize("device", burn.Device.enumerate(), ids=str)
def test_an_index_out_of_range_names_the_op_and_the_line(device):
    table = device.ops
    graph = parsed("""
        input %0: float32[3]
        input %1: int64[1]
        %2: float32[3] = exp(%0)
        %3: float32[1] = select(%2, %1, axis=0)    # train.py:3
        output %3
    """)
    backend, id = table.backend, table.device
    x = vector(table, 0.0, 1.0, 2.0)
    executable = compiled(graph, table)
    for index, expected in ((1, 1.0), (7, None)):
        indices = backend.from_data(TensorData(np.array([index])), id)
        if expected is None:
            with pytest.raises(OutOfRangeError, match="select"):
                backend.to_data(executable.run([x, indices])[0])
        else:
            (found,) = executable.run([x, indices])
            np.testing.assert_allclose(backend.to_data(found).array, [np.exp(1.0)], rtol=1e-6)


def test_one_thread_at_a_time_calls_the_function():
    running = threading.Semaphore(1)
    at_once = []

    def make(graph, table):
        run = straight(graph, table)

        def call(*values):
            at_once.append(not running.acquire(blocking=False))
            result = run(*values)
            threading.Event().wait(0.002)
            running.release()
            return result

        return call

    table = resolve(Compiling(make), DEVICE)
    executable = compiled(WITHOUT_DRAW, table)
    x = vector(table, 0.0, 1.0, 2.0)
    threads = [threading.Thread(target=executable.run, args=([x],)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert at_once == [False] * 8


@pytest.mark.parametrize("device", burn.Device.enumerate(), ids=str)
def test_a_compiled_program_gives_what_its_ops_give_on_every_device(device):
    table = device.ops
    graph = parsed(
        """
        input %0: float32[8, 16]
        input %1: float32[16, 4]
        input $0: float
        input %9: float32[16]
        constant %2: float32[4] = [0.5, -1.0, 0.0, 2.0]
        %3: float32[8, 16] = layer_norm(%0, %9, %9, epsilon=1e-05)
        %4: float32[8, 4] = linear(%3, %1, %2)
        %5: float32[8, 4] = gelu(%4, approximate='none')
        %6: float32[8, 4] = softmax(%5, axis=1)
        %7: float32[4] = sum(%6, axis=(0,), dtype=float32)
        %8: float32[4, 8] = permute(%6, axes=(1, 0))
        output %7
        output %8
        output %0
    """
    )
    rng = np.random.default_rng(0)
    inputs = []
    for source in graph.inputs:
        if not hasattr(source, "shape"):
            inputs.append(0.5)
            continue
        data = TensorData(rng.normal(size=source.shape).astype(np.float32))
        inputs.append(table.backend.from_data(data, table.device))
    expected = Execution(graph, table).run(inputs)
    executable = compiled(graph, table)
    for _ in range(3):
        for found, item in zip(executable.run(inputs), expected, strict=True):
            np.testing.assert_allclose(
                table.backend.to_data(found).array,
                table.backend.to_data(item).array,
                rtol=1e-4,
                atol=1e-5,
            )
    assert found is not None
    assert executable.explain()


class Observer:
    """Keeps the events."""

    synchronize = False

    def __init__(self):
        self.events = []

    def record(self, event):
        self.events.append(event)


@pytest.mark.parametrize(("make", "name"), [(straight, "compiled"), (lambda *_: None, "exp")])
def test_observers_see_a_run_or_the_ops_of_it(make, name):
    table = resolve(Compiling(make), DEVICE)
    executable = compiled(WITHOUT_DRAW, table)
    x = vector(table, 0.0, 0.0, 0.0)
    observer = Observer()
    observing.start(observer)
    try:
        executable.run([x])
    finally:
        observing.stop(observer)
    (event,) = observer.events
    assert event.describe() == f"{name}(float32[3])"
    assert list(map(str, event.outputs)) == ["float32[3]"]


def test_a_program_that_was_compiled_while_ops_are_observed_runs_afterwards():
    table = burn.Device("cpu").ops
    observer = Observer()
    observing.start(observer)
    try:
        executable = compiled(WITHOUT_DRAW, table)
        executable.run([vector(table, 0.0, 0.0, 0.0)])
    finally:
        observing.stop(observer)
    assert observer.events
    (found,) = executable.run([vector(table, 0.0, 0.0, 0.0)])
    assert table.backend.to_data(found).array.tolist() == [1.0, 1.0, 1.0]
    assert table.dtype(found) is float32
