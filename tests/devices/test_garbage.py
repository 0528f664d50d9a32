"""Every public function, called with garbage, gives a result or an error of burn's."""

import inspect
import random
import types

import numpy as np
import pytest

import burn

CPU = burn.Device("cpu")


MODULES = ["fft", "linalg", "optim", "random", "signal"]


def public_functions():
    """The functions of the public namespace and of the modules in it, by their full names."""
    modules = {f"burn.{name}": getattr(burn, name) for name in MODULES}
    modules |= {"burn": burn, "burn.nn.functional": burn.nn.functional}
    for prefix, module in modules.items():
        for name in dir(module):
            member = getattr(module, name)
            if isinstance(member, types.FunctionType) and not name.startswith("_"):
                yield f"{prefix}.{name}", member


FUNCTIONS = dict(public_functions())

HARMLESS = {
    "burn.refresh_plugins",
    "burn.register_backend",
    "burn.set_default_device",
    "burn.set_print_options",
}
"""Functions that change the state of the process."""


UNCHANGED = [
    None,
    True,
    -5,
    0,
    1,
    3,
    2.5,
    float("nan"),
    1 << 70,
    1j,
    "abc",
    "float32",
    b"x",
    (),
    (2, 3),
    (-1, 0),
    burn.float32,
    CPU,
]
"""Values that no call can write to."""

MADE = [
    object,
    dict,
    lambda: [1.0, [2.0]],
    lambda: [[1.0, 2.0], [3.0, 4.0]],
    lambda: np.ones((2, 2)),
    lambda: burn.ones((2, 3), device=CPU),
    lambda: burn.ones((3, 3), dtype="float64", device=CPU),
    lambda: burn.zeros((0, 2), device=CPU),
    lambda: burn.ones((), device=CPU),
    lambda: burn.asarray([1, 0, 7], device=CPU),
    lambda: burn.asarray([True, False], device=CPU),
    lambda: [burn.ones(2, device=CPU), burn.ones(3, device=CPU)],
]
"""Values that are made for each call."""


def garbage(generator):
    """A value of any sort, which is wrong for most parameters."""
    number = generator.randrange(len(UNCHANGED) + len(MADE))
    return UNCHANGED[number] if number < len(UNCHANGED) else MADE[number - len(UNCHANGED)]()


def call_with(function, parameters, generator):
    """Call a function with random garbage for its parameters."""
    args, kwargs = [], {}
    for parameter in parameters:
        optional = parameter.default is not inspect.Parameter.empty
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            args += [garbage(generator) for _ in range(generator.randrange(3))]
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        elif parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            if not optional or generator.random() < 0.4:
                kwargs[parameter.name] = garbage(generator)
        elif not optional or (len(args) == len(kwargs) and generator.random() < 0.4):
            args.append(garbage(generator))
    try:
        function(*args, **kwargs)
    except burn.BurnError as error:
        assert str(error)
    except Exception as error:
        raise AssertionError(f"args={args!r} kwargs={kwargs!r}") from error


@pytest.mark.together("name", sorted(set(FUNCTIONS) - HARMLESS))
def test_garbage_gives_a_result_or_an_error_of_burns(name):
    generator = random.Random(name)
    parameters = inspect.signature(FUNCTIONS[name]).parameters.values()
    for _ in range(150):
        call_with(FUNCTIONS[name], parameters, generator)


def test_an_error_names_what_is_no_tensor():
    with pytest.raises(burn.OperandTypeError, match=r"reshape.*: x must be a tensor, not"):
        burn.reshape("abc", (1,))
    with pytest.raises(burn.OperandTypeError, match=r"concat: tensors\[1\] must be a tensor, not"):
        burn.concat([burn.ones(1, device=CPU), 3])


def test_a_call_that_does_not_fit_the_signature_is_a_type_error_of_pythons():
    with pytest.raises(TypeError, match="reshape") as caught:
        burn.reshape()
    assert not isinstance(caught.value, burn.BurnError)
