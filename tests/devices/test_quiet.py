"""NumPy says nothing of what burn computes, whatever users set, and what they set stays."""

import contextlib
import contextvars
import dataclasses
import math
import threading
import warnings

import numpy as np
import pytest

import burn
from burn.nn import functional as F
from burn.ops import OpTable, resolve
from burn.ops.quiet import quiet_context
from burn.ops.table import specialized
from burn.plugin_api import registry
from burn.testing.reference_backend import NumpyBackend

MODES = ["ignore", "warn", "raise", "call", "print", "log"]


class Listener:
    """What ``numpy.seterrcall`` takes: a function to call, and an object to write to."""

    def __init__(self):
        self.heard = []

    def __call__(self, kind, flag):
        self.heard.append(kind)

    def write(self, message):
        self.heard.append(message)


def compute(device):
    """Divide by zero, overflow, make NaN: in functions, methods, compositions and gradients."""
    x = burn.asarray([-1.0, 0.0, 1e38], device=device)
    assert burn.log(x).tolist()[1] == -math.inf
    assert (x * x).tolist()[2] == math.inf
    assert (1.0 / x).tolist()[1] == math.inf
    assert math.isnan(burn.sqrt(x).tolist()[0])
    assert math.isnan(burn.pow(x, 0.5).tolist()[0])
    assert math.isnan(F.softmax(x * math.inf, axis=0).tolist()[0])
    assert burn.std(x).item() == math.inf
    assert x.astype("int8").tolist()[2] == 127
    tracked = burn.Tensor.from_inner(x).require_grad()
    assert tracked.grad(burn.log(tracked).sum().backward()).tolist()[1] == math.inf


def in_a_thread(function):
    """Run a function in a thread of its own, and raise here what it raises."""
    errors = []

    def run():
        try:
            function()
        except BaseException as error:  # noqa: BLE001 — raised below
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    for error in errors:
        raise error


@pytest.mark.parametrize(
    "where", [lambda function: function(), in_a_thread], ids=["here", "thread"]
)
@pytest.mark.parametrize("action", ["always", "error", "default"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("device", ["cpu", "strict"])
def test_what_users_set_hears_nothing_and_stays(device, mode, action, where, capfd):
    listener = Listener()

    def listen():
        with np.errstate(all=mode, call=listener):
            compute(device)
            assert set(np.geterr().values()) == {mode}

    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter(action)
        where(listen)
        assert warnings.filters[0][0] == action
    assert recorded == []
    assert listener.heard == []
    assert capfd.readouterr() == ("", "")


class WaitingBackend(NumpyBackend):
    """Its `log` waits, once told to, until another thread has called it too."""

    def __init__(self):
        super().__init__()
        self.waits = False
        self.inside, self.other = threading.Event(), threading.Event()

    def log(self, x):
        if self.waits:
            self.waits = False
            self.inside.set()
            assert self.other.wait(10)
        return np.log(x)


@pytest.mark.parametrize("of_table", [True, False], ids=["table", "specialized"])
def test_an_op_runs_while_another_thread_is_in_the_same_op(of_table):
    backend = WaitingBackend()
    table = OpTable(backend, burn.Device("cpu").id)
    function = table.log if of_table else specialized(table.log, burn.float32)
    x = np.zeros(2, np.float32)
    backend.waits = True
    results = []
    thread = threading.Thread(target=lambda: results.append(function(x)))
    thread.start()
    assert backend.inside.wait(10)
    with np.errstate(all="raise"):
        assert function(x).tolist() == [-math.inf] * 2
    backend.other.set()
    thread.join()
    assert [result.tolist() for result in results] == [[-math.inf] * 2]


def test_an_op_runs_within_itself():
    class Nested(NumpyBackend):
        def log(self, x):
            return np.log(x) if x.ndim == 1 else self.ops.log(x[0])

    backend = Nested()
    table = resolve(backend, burn.Device("cpu").id)
    with np.errstate(all="raise"):
        assert table.log(np.zeros((1, 2), np.float32)).tolist() == [-math.inf] * 2


class FailingBackend(NumpyBackend):
    """Its `log` raises what a setting of NumPy's or a filter of warnings would."""

    calls = 0

    def log(self, x):
        type(self).calls += 1
        raise FloatingPointError("divide by zero")


def test_an_op_that_fails_runs_once():
    spec = dataclasses.replace(
        registry.entry("cpu").spec, name="failing", load=FailingBackend, libraries=()
    )
    FailingBackend.calls = 0
    with burn.registered(spec):
        x = burn.asarray([1.0, 2.0], device="failing")
        calls = [
            burn.log,
            burn.compile(burn.log),
            burn.ir.trace(burn.log, x),
            lambda x: burn.log(burn.Tensor.from_inner(x).require_grad()),
        ]
        for number, call in enumerate(calls, 1):
            with pytest.raises(burn.ExecutionError, match="divide by zero"):
                call(x)
            assert FailingBackend.calls == number


def test_a_library_that_keeps_no_state_in_context_variables_is_called_as_it_is():
    class Plain(NumpyBackend):
        def quiet(self):
            return contextlib.nullcontext()

        def log(self, x):
            return contextvars.copy_context()

    seen = contextvars.ContextVar("seen")
    seen.set("here")
    backend = Plain()
    assert quiet_context(backend) is None
    assert OpTable(backend, burn.Device("cpu").id).log(None)[seen] == "here"


def test_the_context_of_a_backend_leaves_nothing_entered():
    entered = []

    class Counting(NumpyBackend):
        @contextlib.contextmanager
        def quiet(self):
            entered.append("in")
            with np.errstate(all="ignore"):
                yield
            entered.append("out")

    settings = np.geterr()
    context = quiet_context(Counting())
    assert entered == ["in", "out"]
    assert np.geterr() == settings
    assert set(context.run(np.geterr).values()) == {"ignore"}


@pytest.mark.parametrize("mode", ["warn", "raise"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_number_too_large_for_the_tensor_is_written_quietly(dtype, mode):
    x = burn.zeros(3, dtype=dtype, device="cpu")
    with warnings.catch_warnings(record=True) as recorded, np.errstate(all=mode):
        warnings.simplefilter("always")
        x[0] = 1e39
    assert recorded == []
    assert x.tolist() == [math.inf, 0.0, 0.0]


@pytest.mark.parametrize("device", ["cpu", "strict"])
def test_a_decomposition_on_the_host_is_quiet(device):
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        x = burn.asarray([[math.inf, 1.0], [1.0, math.nan]], dtype="complex64", device=device)
        burn.linalg.qr(x)
    assert recorded == []
