"""Valid calls of every public function: those of the kit, and more with all numbers given."""

import functools
import inspect
import re
import types

import numpy as np

import burn
import burn.testing.functions
from burn.testing.function_samples import FUNCTIONS, arrays_in, public_function
from burn.testing.op_samples import TESTED_DTYPE

MODULES = ("fft", "linalg", "nn.functional", "optim", "random", "signal")

NUMBER = re.compile(
    r"\b(int|float|bool|complex|Scalar|RealScalar|Shape|Axis|PerAxis|Padding|NamedPadding|PadWidth"
    r"|Operand|MatrixOrder|OutputSize)\b"
)
OPERAND = re.compile("Operand")
TENSOR = re.compile(r"\b(Tensor|Operand)\b")


def public_functions():
    """All public functions by their names below ``burn``."""
    return {
        f"{module}.{name}".lstrip("."): member
        for module in ("", *MODULES)
        for name, member in inspect.getmembers(public_function(module) if module else burn)
        if isinstance(member, types.FunctionType) and not name.startswith("_")
    }


def parameters_like(function, pattern):
    """The parameters of a function whose annotation has one of some words."""
    parameters = inspect.signature(function).parameters.values()
    return {item.name for item in parameters if pattern.search(str(item.annotation))}


@functools.cache
def _samples():
    found = {}
    for name, samples in FUNCTIONS.items():
        found.setdefault(id(public_function(name)), []).extend(samples.samples)
    return found


@functools.cache
def calls_of(function):
    """Positional and keyword arguments of valid calls; floats have 32 bits, as all devices have."""
    calls = [
        (mapped(as_float32, list(sample.arguments)), mapped(as_float32, dict(sample.keywords)))
        for sample in _samples().get(id(function), [])
    ]
    found = list(calls)
    signature = inspect.signature(function)
    for arguments, keywords in calls:
        given = signature.bind(*arguments, **keywords).arguments
        numbers = {
            parameter.name: parameter.default
            for parameter in signature.parameters.values()
            if parameter.name not in given and has_number(parameter.default)
        }
        if numbers:
            found.append((arguments, keywords | numbers))
    if {"x1", "x2"} <= parameters_like(
        function, re.compile("Operand")
    ):  # a number may be either of them
        found += [
            ([x2, x1, *rest], keywords)
            for (x1, x2, *rest), keywords in calls
            if has_number(x2) and not has_number(x1)
        ]
    return found


class Number(np.ndarray):
    """An array without axes that stands for a number, and for no tensor."""


def as_float32(value):
    """An array of floats as one of float32, and a placeholder for it as well."""
    if value is TESTED_DTYPE:
        return burn.float32
    is_wide = isinstance(value, np.ndarray) and value.dtype == np.float64
    return value.astype(np.float32) if is_wide else value


def has_number(value):
    """Whether a value is a Python number, or has one in it."""
    if isinstance(value, (list, tuple)):
        return any(map(has_number, value))
    return isinstance(value, (bool, int, float, complex))


def has_array(value):
    """Whether a value is an array, or has one in it."""
    return next(arrays_in(value), None) is not None


def covering(function, wanted, has):
    """A few calls in which each of some parameters has what it may have, and what none gives it."""
    signature = inspect.signature(function)
    missing, chosen = set(wanted), []
    calls = []
    for arguments, keywords in calls_of(function):
        given = signature.bind(*arguments, **keywords).arguments
        calls.append(((arguments, keywords), {key for key, value in given.items() if has(value)}))
    calls.sort(key=lambda pair: not any(x.dtype == np.float32 for x in arrays_in(list(pair[0]))))
    while True:
        call, given = max(calls, key=lambda pair: len(pair[1] & missing), default=(None, set()))
        if not given & missing:
            return chosen, missing
        missing -= given
        chosen.append(call)


def mapped(function, value):
    """A value with a function applied to all that is in its lists, tuples and dicts."""
    if isinstance(value, (list, tuple)):
        return type(value)([mapped(function, part) for part in value])
    if isinstance(value, dict):
        return {key: mapped(function, part) for key, part in value.items()}
    return function(value)


@functools.cache
def tried_calls(name, without=None, *, takes_nan=True):
    """A few calls of a public function in which each tensor and each number is given once.

    Those are left out in which the parameter `without` is a tensor; without `takes_nan` those with
    NaN as well.
    """
    function = public_functions()[name]
    tensors, _ = covering(function, parameters_like(function, TENSOR), has_array)
    numbers, _ = covering(function, parameters_like(function, NUMBER), has_number)
    calls = tensors + [call for call in numbers if not any(call is other for other in tensors)]
    signature = inspect.signature(function)

    def is_tried(arguments, keywords):
        given = signature.bind(*arguments, **keywords).arguments
        arrays = list(arrays_in([arguments, keywords]))
        has_nan = any(x.dtype.kind == "f" and np.isnan(x).any() for x in arrays)
        return not has_array(given.get(without)) and (takes_nan or not has_nan)

    return [call for call in calls if is_tried(*call)]
