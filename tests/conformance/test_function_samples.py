"""Samples of public functions: every one has valid calls, and the kit notices what is wrong."""

import inspect
import re

import numpy as np
import pytest

from burn import Device, namespace
from burn.errors import ArgumentError, BurnError, ShapeError
from burn.testing import Failure, Subject
from burn.testing.arrays import floats
from burn.testing.function_checks import check_function
from burn.testing.function_gradients import (
    check_function_gradients,
    check_function_second_gradients,
)
from burn.testing.function_samples import (
    FUNCTIONS,
    FunctionSamples,
    call,
    function_calls,
    public_function,
    wrong,
)
from burn.testing.function_transforms import check_function_batched
from burn.testing.wrong_calls import check_mutated_calls, check_wrong_call, mutated_calls

NAMESPACES = (
    *("", "linalg", "fft", "signal", "random", "nn.functional", "nn.init", "optim"),
    *("quantization", "tree", "Tensor"),
)


NOT_TRIED = {
    "conversion": {
        *("Tensor.__array__", "Tensor.__array_namespace__", "Tensor.__array_ufunc__"),
        *("Tensor.__arrow_array__", "Tensor.__arrow_c_stream__", "Tensor.__deepcopy__"),
        *("Tensor.__dlpack__", "Tensor.__dlpack_device__", "Tensor.data", "Tensor.data_async"),
        *("Tensor.from_primitive", "Tensor.item_async", "Tensor.numpy", "from_dlpack"),
    },
    "gradients of a graph": {
        *("Tensor.backward", "Tensor.from_inner", "Tensor.grad", "Tensor.grad_remove"),
        *("Tensor.grad_replace", "Tensor.inner", "Tensor.register_hook", "Tensor.require_grad"),
        *("Tensor.retain_grad", "Tensor.set_distributed_params"),
    },
    "quantized tensors": {
        *("Tensor.quantize", "nn.functional.fake_quantize"),
        *("quantization.compute_q_params", "quantization.compute_range"),
        *("quantization.join_state", "quantization.quantize", "quantization.split_state"),
    },
    "settings, plugins and files": {
        *("__array_namespace_info__", "default_device", "profile", "refresh_plugins"),
        *("register_backend", "set_default_device", "set_print_options", "tree.register"),
        *("tree.unflatten", "check_closeness"),
    },
    "values do not matter": {"empty", "empty_like"},
}
"""By what they are about, the functions that tests of their own try on every device."""


def public_functions():
    """Public names of functions, methods and operators of tensors."""
    for module in NAMESPACES:
        owner = public_function(module) if module else namespace
        for name in dir(owner) if module else namespace.PUBLIC:
            found = getattr(owner, name)
            if callable(found) and not inspect.isclass(found) and not is_private(name, found):
                yield f"{module}.{name}".lstrip("."), found


def is_private(name, function):
    """Whether a function is not for users, or every class has it."""
    return re.match("_[^_]", name) is not None or name in dir(object)


def test_every_public_function_has_valid_calls():
    tried = {id(public_function(name)) for name, value in FUNCTIONS.items() if value.samples}
    without = {name for name, function in public_functions() if id(function) not in tried}
    assert without == set().union(*NOT_TRIED.values())


@pytest.fixture
def cpu():
    return Subject.of(Device("cpu"))


def samples_of(name, reference=None, *, samples=(), errors=()):
    """Samples of a function, which no table has."""
    return FunctionSamples(name, tuple(samples), tuple(errors), reference)


SQUARES = [call("a vector", floats(4))]


def test_a_wrong_value_is_noticed(cpu):
    right = samples_of("square", np.square, samples=SQUARES)
    false = samples_of("square", lambda x: x * x + 1e-3, samples=SQUARES)
    dtype = namespace.float32
    check_function(cpu, right, SQUARES[0], dtype)
    with pytest.raises(Failure, match=r"square \(a vector\) with float32: 4 of 4 elements differ"):
        check_function(cpu, false, SQUARES[0], dtype)


def test_a_wrong_kind_of_dtype_is_noticed(cpu):
    false = samples_of("square", lambda x: np.square(x) > 0, samples=SQUARES)
    with pytest.raises(Failure, match="has dtype float32, where the reference gives bool"):
        check_function(cpu, false, SQUARES[0], namespace.float32)


def test_a_wrong_gradient_is_noticed(cpu, monkeypatch):
    right = samples_of("square", np.square, samples=SQUARES)
    check_function_gradients(cpu, right, SQUARES[0])
    check_function_second_gradients(cpu, right, SQUARES[0])
    monkeypatch.setattr(namespace, "square", lambda x: x * x.detach())
    with pytest.raises(Failure, match="the gradient of array 0 at element 0"):
        check_function_gradients(cpu, right, SQUARES[0])
    with pytest.raises(Failure, match="the second derivative along a direction"):
        check_function_second_gradients(cpu, right, SQUARES[0])


def test_a_function_that_differs_under_vmap_is_noticed(cpu, monkeypatch):
    samples = samples_of("square", np.square, samples=SQUARES)
    check_function_batched(cpu, samples, SQUARES[0], namespace.float64)
    monkeypatch.setattr(namespace, "square", lambda x: x / namespace.max(namespace.abs(x)))
    check_function_batched(cpu, samples, SQUARES[0], namespace.float64)
    monkeypatch.setattr(namespace, "vmap", lambda function, **_: function)  # all examples are one
    with pytest.raises(Failure, match=r"under burn\.vmap"):
        check_function_batched(cpu, samples, SQUARES[0], namespace.float64)


def refuse(message, kind=ArgumentError):
    """A function that refuses every call."""

    def square(*args, **kwargs):
        raise kind(message)

    return square


COMPLAINTS = {
    "another name": (refuse("sqrt: no"), "the message names 'sqrt'"),
    "no name": (refuse("it is wrong"), "the message names ''"),
    "an exception of a library": (refuse("square: no", ValueError), "no error of burn"),
    "words of a library": (refuse("square: cpu failed with 3"), "says 'failed with'"),
    "an address": (refuse("square: <object at 0x7f00>"), "says '0x'"),
    "nonsense is accepted": (lambda *args, **kwargs: None, "it was accepted"),
}


@pytest.mark.parametrize("broken", COMPLAINTS)
def test_a_misleading_error_is_noticed(cpu, monkeypatch, broken):
    function, complaint = COMPLAINTS[broken]
    samples = samples_of("square", samples=SQUARES)
    check_mutated_calls(cpu, samples, 0, None)
    monkeypatch.setattr(namespace, "square", function)
    with pytest.raises(Failure, match=re.escape(complaint)):
        check_mutated_calls(cpu, samples, 0, None)


def test_an_error_that_differs_between_devices_is_noticed(cpu, monkeypatch):
    def square(x, *rest, **options):
        raise ArgumentError(f"square: {'one' if 'cpu' in str(x.device) else 'two'}")

    monkeypatch.setattr(namespace, "square", square)
    samples = samples_of("square", errors=[wrong("any", ArgumentError, floats(3))])
    with pytest.raises(Failure, match="where the reference backend gives"):
        check_wrong_call(cpu, samples, samples.errors[0])


def test_an_error_of_another_class_is_noticed(cpu):
    samples = samples_of("roll", errors=[wrong("a word", ShapeError, floats(3), "one")])
    with pytest.raises(Failure, match="raised OperandTypeError, not ShapeError"):
        check_wrong_call(cpu, samples, samples.errors[0])


def test_wrong_calls_are_the_same_in_every_run():
    first, second = (
        [str(mutated_call) for mutated_call in mutated_calls(FUNCTIONS["sum"])] for _ in range(2)
    )
    assert first == second
    assert len(set(first)) > 100


def test_a_function_has_samples_once():
    with pytest.raises(ValueError, match="has samples already"):
        function_calls("sum", call("again", floats(3)))
    with pytest.raises(ValueError, match="several samples"):
        function_calls("not_there", call("a", floats(3)), call("a", floats(3)))


def test_integers_of_many_digits_are_refused_in_few_words():
    with pytest.raises(BurnError, match="an integer of 16610 bits"):
        namespace.sum(namespace.ones(3, device="cpu"), axis=10**5000)
