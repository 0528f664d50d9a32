"""NumPy scalars count as Python numbers in every public function, on every device."""

import inspect
import operator
import random

import numpy as np
import pytest

import burn
from nearness import Near
from valid_calls import (
    NUMBER,
    TENSOR,
    Number,
    covering,
    has_number,
    mapped,
    parameters_like,
    public_functions,
)

BACKENDS = ("cpu", "cuda", "opencl", "torch")
DEVICES = [device for device in burn.Device.enumerate() if device.backend_name in BACKENDS]


FUNCTIONS = {
    name: function
    for name, function in public_functions().items()
    if parameters_like(function, NUMBER)
    and not function.__module__.startswith(("burn.transforms.", "burn.profiling."))
}

WITHOUT_SAMPLES = {
    "empty": [([3], {}), ([(2, 3)], {})],
    "from_dlpack": [([np.ones(3, np.float32)], {"copy": True})],
    "random.seed": [([5], {})],
}
"""Calls of functions whose values do not matter, or that the kit does not try."""


def variants(name):
    """A few calls in which each number that a function takes is given."""
    if name in WITHOUT_SAMPLES:
        return WITHOUT_SAMPLES[name]
    calls, missing = covering(FUNCTIONS[name], parameters_like(FUNCTIONS[name], NUMBER), has_number)
    assert not missing, name
    return calls


def test_every_number_of_every_public_function_is_tried():
    assert len(FUNCTIONS) > 300
    for name in FUNCTIONS:
        assert variants(name)


def numpys(number):
    """The scalars of NumPy's that are a Python number."""
    kinds = {
        bool: [np.bool_],
        int: [np.int64, np.int32, np.uint8, lambda item: np.array(item).view(Number)],
        float: [np.float64, np.float32, np.float16, np.longdouble],
        complex: [np.complex128, np.complex64],
    }
    if number.__class__ is int and number < 0:
        del kinds[int][2]
    made = [kind(number) for kind in kinds.get(number.__class__, [])]
    return [other for other in made if other.item() == number]  # not 0.1 in 16 bits


def replaced(thing):
    """The thing with each of the numbers in it, one at a time, as one of NumPy's."""
    if isinstance(thing, (tuple, list, dict)):
        items = thing.items() if isinstance(thing, dict) else enumerate(thing)
        for key, part in items:
            for other in replaced(part):
                made = dict(thing) if isinstance(thing, dict) else list(thing)
                made[key] = other
                yield tuple(made) if isinstance(thing, tuple) else made
    else:
        yield from numpys(thing)


def has_array_operand(name, arguments, keywords):
    """Whether an operand is an array without axes, which is refused as any other array is."""
    signature = inspect.signature(FUNCTIONS[name])
    return any(
        isinstance(value, Number) and TENSOR.search(str(signature.parameters[key].annotation))
        for key, value in signature.bind(*arguments, **keywords).arguments.items()
    )


def run(name, device, arguments, keywords):
    function = FUNCTIONS[name]
    if "device" in inspect.signature(function).parameters:
        keywords = {**keywords, "device": device}

    def here(thing):
        return burn.asarray(thing, device=device) if thing.__class__ is np.ndarray else thing

    burn.random.seed(3, device=device)
    result = function(*mapped(here, arguments), **mapped(here, keywords))
    if name == "random.seed":
        result = burn.random.uniform(3, device=device)
    return flat(result)


def flat(result):
    if isinstance(result, burn.Tensor):
        return [Near(result.numpy())]
    if isinstance(result, (tuple, list)):
        return [part for item in result for part in flat(item)]
    return [result, type(result)]


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.together("name", sorted(FUNCTIONS))
def test_a_scalar_of_numpys_is_the_python_number_of_its_value(name, device, everything):
    generator = random.Random(name)
    for variant in variants(name):
        try:
            expected = run(name, device, *variant)
        except burn.DTypeError:
            assert not device.supports_dtype(burn.complex64)  # and the result is complex
            continue
        others = [other for other in replaced(variant) if not has_array_operand(name, *other)]
        if device.backend_name != "cpu":  # where they become Python's, no device counts
            others = generator.sample(others, min(3 if everything else 1, len(others)))
        for other in others:
            assert run(name, device, *other) == expected, other


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.longdouble, np.int64, np.uint8])
def test_an_operand_that_is_a_scalar_of_numpys_takes_the_dtype_of_the_tensor(kind, device):
    for dtype in ("float16", "float32", "int32", "uint8"):
        x, python = burn.asarray([1, 2, 3], dtype=dtype, device=device), kind(2).item()
        python = float(python) if kind is np.longdouble else python
        for function in (burn.add, burn.pow, burn.maximum, burn.less, operator.mul, operator.eq):
            assert flat(function(x, kind(2))) == flat(function(x, python))
            assert flat(function(kind(2), x)) == flat(function(python, x))
        if dtype.startswith("float") or kind in (np.int64, np.uint8):
            x[0] = x[x > 2] = kind(2)
            assert (x.dtype, x.tolist()) == (burn.DType.of(dtype), [2, 2, 2])
        else:
            for key in (0, x > 2):
                with pytest.raises(burn.OperandTypeError):
                    x[key] = kind(2)


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_methods_take_scalars_of_numpys_too(device):
    x = burn.reshape(burn.arange(12, device=device) / 4, (3, 4))
    same = (x.sum(axis=1, keepdims=True), x.sum(axis=np.int64(1), keepdims=np.True_))
    assert flat(same[0]) == flat(same[1])
    assert flat(x.reshape(np.int64(12))) == flat(x.reshape((np.uint8(12),))) == flat(x.reshape(12))
    assert flat(x[np.int64(1) : np.uint8(3), np.int8(-1)]) == flat(x[1:3, -1])
    device.seed(np.int64(5))
    first = flat(burn.random.uniform(3, device=device))
    device.seed(5)
    assert flat(burn.random.uniform(3, device=device)) == first
