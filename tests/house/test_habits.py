"""What users of NumPy and PyTorch do without thinking: it works, or the error says what does."""

import builtins
import copy
import importlib
import inspect
import operator
import pickle
import pkgutil
import subprocess
import sys
import traceback
import types

import numpy as np
import pytest

import burn
import burn.functions.nn
from burn.functions.normalize import reduction

CPU = burn.Device("cpu")


def tensor(values, **options):
    return burn.asarray(values, device=CPU, **options)


# Formats.


@pytest.mark.parametrize("spec", [".3f", "8.2e", "+.1%", "g", "", ">30"])
def test_a_tensor_with_one_element_is_formatted_as_its_number(spec):
    for shape in ((), (1,), (1, 1)):
        loss = burn.full(shape, 0.5, device=CPU)
        assert f"{loss:{spec}}" == (format(0.5, spec) if spec else str(loss))


def test_a_tracked_tensor_is_formatted_without_detach():
    loss = burn.ones(3, device=CPU.autodiff()).require_grad().sum()
    assert f"{loss:.2f}" == "3.00"


def test_a_tensor_with_more_elements_is_formatted_as_a_whole_only():
    x = burn.ones(3, device=CPU)
    assert f"{x}" == str(x)
    with pytest.raises(burn.ShapeError, match=r"format: .*\(3,\).*'.3f'.*set_print_options"):
        f"{x:.3f}"
    with pytest.raises(burn.ArgumentError, match=r"int64, '\.3q'"):
        f"{tensor(3):.3q}"


# Arguments.


METHODS = sorted(
    name
    for name, member in vars(burn.Tensor).items()
    if isinstance(member, types.FunctionType) and name in dir(burn)
)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_refuses_what_its_function_refuses_in_the_same_words(name):
    def message(function):
        with pytest.raises(TypeError) as caught:
            function(tensor([1.0]), no_such_keyword=1)
        return str(caught.value)

    assert message(getattr(burn.Tensor, name)) == message(getattr(burn, name))


@pytest.mark.parametrize("call", [lambda x, **o: x.sum(**o), burn.sum], ids=["method", "function"])
def test_a_keyword_of_another_library_is_answered_with_ours(call):
    for option, ours in ({"dim": 0}, "axis"), ({"keepdim": True}, "keepdims"), ({"axs": 0}, "axis"):
        with pytest.raises(burn.OperandTypeError) as caught:
            call(tensor([[1.0]]), **option)
        assert f"The keyword is {ours}. It is sum(x, /, *, axis=None," in str(caught.value)
        assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "call", [lambda x, *args: x.sum(*args), burn.sum], ids=["method", "function"]
)
def test_an_axis_by_position_is_answered_with_the_keyword(call):
    with pytest.raises(burn.OperandTypeError, match=r"^sum: too many .* The keyword is axis\. "):
        call(tensor([[1.0]]), 0)


REDUCTIONS = [
    name
    for name in dir(burn)
    if isinstance(getattr(burn, name), types.FunctionType)
    and {"axis", "keepdims"} <= inspect.signature(getattr(burn, name)).parameters.keys()
]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_every_reduction_answers_a_keyword_of_another_library(name):
    with pytest.raises(burn.OperandTypeError, match="The keyword is keepdims"):
        getattr(burn, name)(tensor([[1.0]]), keepdim=True)


def test_a_bug_inside_of_a_function_is_raised_as_it_is():
    @reduction
    def total(x, /, *, axis=None):
        return len(x, axis)

    with pytest.raises(TypeError, match="len") as caught:
        total(tensor([1.0]))
    assert not isinstance(caught.value, burn.BurnError)


# Tracebacks.


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x + tensor([1.0, 2.0]),
        lambda x: 2.0 + x + tensor([1.0, 2.0]),
        lambda x: x @ x,
        lambda x: burn.add(x, tensor([1.0, 2.0])),
        lambda x: burn.concat([x, x[0]]),
        lambda x: x.sum(axis=7),
        lambda x: x.sum(dim=0),
        lambda x: burn.where(x, x, x),
        lambda x: x + np.ones(3),
        lambda x: np.ones(3) + x,
        lambda x: burn.exp(3),
        lambda x: x & x,
        lambda x: x[1.5],
        lambda x: x[[[1], [1, 2]]],
        lambda x: tensor([[1.0], [1.0, 2.0]]),
        lambda x: tensor([1 << 80]),
        lambda x: burn.linalg.inv(burn.zeros((2, 2), device=CPU)),
        lambda x: burn.zeros((1, 2), device=CPU, dtype="float31"),
        lambda x: burn.take(x, tensor([5]), axis=0),
    ],
)
@pytest.mark.parametrize("device", [CPU, CPU.autodiff()])
def test_the_traceback_of_a_mistake_is_short_and_of_one_exception(call, device):
    x = burn.ones((2, 3), device=device)
    with pytest.raises(burn.BurnError) as caught:
        call(x).tolist()
    shown = "".join(traceback.format_exception(caught.value))
    assert shown.count("Traceback") == 1, shown
    frames = [item.filename for item in traceback.extract_tb(caught.tb)]
    assert len(frames) - frames.count(__file__) <= 6, shown


def test_a_shape_error_of_an_operator_shows_three_frames_of_burn():
    with pytest.raises(burn.ShapeError) as caught:
        tensor([1.0, 2.0]) + tensor([1.0, 2.0, 3.0])
    assert len(traceback.extract_tb(caught.tb)) == 4


# Names.


def test_a_star_import_gives_every_public_name_and_hides_no_builtin():
    given = {}
    exec("from burn import *", given)  # noqa: S102 — star imports stand at module level only
    del given["__builtins__"]
    public = {name for name in dir(burn) if not name.startswith("_")} - {"testing"}
    assert given.keys() == {name for name in public if not hasattr(builtins, name)}
    assert public - given.keys() >= {"abs", "all", "any", "bool", "max", "min", "pow", "round"}


NAMESPACES = ["linalg", "fft", "nn", "optim", "random", "signal", "testing"]
MODULES = ["autodiff", "backend", "dtype", "errors", "interop", "ops", "plugins", "tensor_data"]


@pytest.mark.parametrize("name", [*NAMESPACES, *MODULES])
def test_a_module_lists_what_is_public_and_nothing_else(name):
    module = importlib.import_module(f"burn.{name}") if name in MODULES else getattr(burn, name)
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, item) for item in module.__all__)


def test_the_functions_of_networks_are_listed_and_nothing_else():
    families = [module.name for module in pkgutil.iter_modules(burn.functions.nn.__path__)]
    names = set()
    for family in families:
        if not family.startswith("_") and family != "optimizer":
            names |= {*importlib.import_module(f"burn.functions.nn.{family}").__all__}
    assert dir(burn.nn.functional) == sorted(names)
    steps = [text for text in dir(burn.optim) if text.endswith("_step")]
    assert steps == burn.functions.nn.optimizer.__all__
    assert "BatchNormStep" in names


@pytest.mark.parametrize(
    ("package", "others"),
    [
        (burn.nn, {"functional", "init"}),
        (burn.optim, {"schedules", *burn.functions.nn.optimizer.__all__}),
        (burn.store, set()),
        (burn.data, set()),
        (burn.train, set()),
    ],
)
def test_a_package_lists_what_its_modules_export(package, others):
    # for other modules of burn
    internal = {"summary", "loading", "mapped_files", "shared_memory", "uploading"}
    names = {*others}
    for family in [module.name for module in pkgutil.iter_modules(package.__path__)]:
        if not family.startswith("_") and family not in {*others, *internal}:
            names |= {*importlib.import_module(f"{package.__name__}.{family}").__all__}
    assert dir(package) == sorted(names)


def test_the_kit_needs_no_import_of_its_own():
    program = "import burn; burn.testing.assert_close"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_typo_is_an_attribute_error_that_suggests_the_name():
    for module, name in (burn, "reshapee"), (burn.testing, "assert_closs"):
        program = f"import burn.testing; {module.__name__}.{name}"
        result = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False
        )
        expected = f"module '{module.__name__}' has no attribute '{name}'"
        assert expected in result.stderr
        assert f"Did you mean: '{name[:-1].replace('clos', 'close')[:12]}" in result.stderr


@pytest.mark.parametrize("name", ["T", "mT"])
def test_an_attribute_that_needs_a_matrix_is_missing_elsewhere(name):
    for shape in ((), (4,)):
        x = burn.ones(shape, device=CPU)
        assert not hasattr(x, name)
        assert getattr(x, name, None) is None
        with pytest.raises(burn.ShapeError, match=f"{name} is for matrices"):
            getattr(x, name)
    assert not hasattr(burn.ones((2, 2, 2), device=CPU), "T")
    assert hasattr(burn.ones((2, 3), device=CPU), name)


# Memory.


@pytest.mark.parametrize("device", ["cpu", "torch/cpu"])
@pytest.mark.parametrize("exponent", [50, 62])
def test_an_error_for_want_of_memory_is_a_memory_error(device, exponent):
    with pytest.raises(MemoryError) as caught:
        burn.ones(1 << exponent, device=device)
    assert isinstance(caught.value, burn.OutOfMemoryError)
    assert isinstance(caught.value, burn.ExecutionError)
    assert "Free tensors" in str(caught.value)


@pytest.mark.parametrize("exponent", [50, 61, 63, 70])
def test_numbers_of_linspace_that_do_not_fit_in_memory_are_an_error_of_burn(exponent):
    with pytest.raises(burn.OutOfMemoryError, match=r"^linspace: \d+ numbers do not fit"):
        burn.linspace(0, 1, 1 << exponent, device=CPU)


# Devices.


@pytest.mark.parametrize("device", burn.Device.enumerate(), ids=str)
def test_what_a_device_prints_makes_the_same_handle(device):
    tracking = device.autodiff()
    for item in (device, tracking, tracking.gradient_checkpointing()):
        assert burn.Device(str(item)) is item
        assert pickle.loads(pickle.dumps(item)) is item
        assert copy.deepcopy(item) is item


def test_the_device_below_autodiff_may_be_spelled_in_every_way():
    assert burn.Device("autodiff<cpu>") is CPU.autodiff()
    assert burn.Device("autodiff<cpu, checkpointing>") is CPU.autodiff().gradient_checkpointing()
    for wrong in ("autodiff<>", "autodiff<cpu", "autodiff<cpu>:0", "cpu, checkpointing"):
        with pytest.raises((burn.ArgumentError, burn.DeviceUnavailableError)):
            burn.Device(wrong)
    with pytest.raises(burn.ArgumentError, match="first order"):
        burn.Device("autodiff<autodiff<cpu>>")


# NumPy.


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (np.sin, "Call burn.sin;"),
        (np.arctan, "Call burn.atan;"),
        (lambda x: np.add(x, x), "Call burn.add;"),
        (lambda x: np.power(x, np.ones(3)), "Call burn.pow, with all arrays made tensors"),
        (lambda x: np.sin(x, out=np.ones(3)), "Call burn.sin;"),
        (np.spacing, "Call a function of burn;"),
        (np.add.reduce, "numpy.add.reduce: "),
        (np.sum, "call burn.sum, or convert with .numpy()"),
        (np.mean, "call burn.mean, or convert with .numpy()"),
        (np.max, "call burn.max, or convert with .numpy()"),
    ],
)
@pytest.mark.parametrize("device", burn.Device.enumerate(), ids=str)
def test_a_function_of_numpy_is_refused_with_the_one_to_call(call, hint, device):
    with pytest.raises(burn.OperandTypeError) as caught:
        call(burn.ones(3, device=device))
    assert hint in str(caught.value)


OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
]


@pytest.mark.parametrize("function", OPERATORS)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_an_operator_takes_a_numpy_scalar_on_either_side(function, kind):
    values = np.array([1.0, 2.0, 3.0], np.float32)
    x, number = tensor(values), kind(2.0)
    for result, expected in (
        (function(number, x), function(np.float32(2.0), values)),
        (function(x, number), function(values, np.float32(2.0))),
    ):
        assert isinstance(result, burn.Tensor)
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("function", [operator.and_, operator.or_, operator.xor, operator.lshift])
def test_an_operator_of_integers_takes_a_numpy_scalar_on_either_side(function):
    values = np.array([1, 2, 3])
    for result, expected in (
        (function(np.int64(2), tensor(values)), function(np.int64(2), values)),
        (function(tensor(values), np.int64(2)), function(values, np.int64(2))),
    ):
        assert result.tolist() == expected.tolist()


@pytest.mark.parametrize("function", [*OPERATORS, operator.matmul, operator.iadd])
def test_an_operator_refuses_a_numpy_array_on_the_left(function):
    with pytest.raises(burn.OperandTypeError, match=r"burn\.asarray\(\)"):
        function(np.ones(3, np.float32), tensor([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("number", [1.0, 1])
@pytest.mark.parametrize("function", [operator.add, operator.mul, operator.pow, burn.maximum])
def test_an_array_without_axes_is_an_array(function, number):
    for item, other in (np.array(number), tensor([1.0])), (tensor([1.0]), np.array(number)):
        with pytest.raises(burn.OperandTypeError, match=r"burn\.asarray\(\)"):
            function(item, other)
    for call in (burn.clip, lambda x, y: burn.where(x > 0, x, y), burn.logical_and):
        with pytest.raises(burn.OperandTypeError, match=r"burn\.asarray\(\)"):
            call(tensor([1.0]), np.array(number))


@pytest.mark.parametrize("other", [np.ones(3), "text", {"a": 1}])
def test_a_message_has_the_type_of_what_is_no_operand_and_not_its_value(other):
    name = type(other).__name__
    with pytest.raises(burn.OperandTypeError, match=rf"add\(float32\[3\], {name}\): "):
        tensor([1.0, 2.0, 3.0]) + other
    with pytest.raises(burn.OperandTypeError, match=rf"add\({name}, float32\[3\]\): "):
        other + tensor([1.0, 2.0, 3.0])


# Tests of users.

assert_close = burn.testing.assert_close


def failure(*args, **options):
    with pytest.raises(AssertionError) as caught:
        assert_close(*args, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("dtype", "near", "far"),
    [
        ("float64", 1 + 5e-11, 1 + 5e-10),
        ("float32", 1 + 5e-6, 1 + 5e-5),
        ("float16", 1 + 1e-3, 1 + 1e-2),
        ("bfloat16", 1.0078125, 1.0625),
        ("complex128", 1 + 5e-11j, 1 + 5e-10j),
        ("int64", 1, 2),
    ],
)
def test_how_near_values_must_be_depends_on_their_dtype(dtype, near, far):
    x = tensor([1, 1], dtype=dtype)
    for expected in (x.numpy(), [1, 1], 1):
        assert_close(x, expected)
    assert_close(tensor([near, 1], dtype=dtype), x)
    assert "1 of 2 (50.0%)" in failure(tensor([far, 1], dtype=dtype), x)
    assert_close(tensor([far, 1], dtype=dtype), x, rtol=2.0)
    assert_close(tensor([far, 1], dtype=dtype), x, atol=1)


def test_the_less_precise_of_two_dtypes_says_what_is_near():
    x = tensor([1.0], dtype="float64")
    assert_close(tensor([1 + 1e-3], dtype="float16"), x)
    assert_close(x, tensor([1 + 1e-3], dtype="float16"))
    assert_close(np.array([1 + 5e-6]), tensor([1.0]))


def test_a_difference_is_told_with_its_index_its_size_and_how_many_there_are():
    x = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert failure(x, tensor([[1.0, 2.5, 3.0], [4.0, 5.0, 7.0]])).splitlines() == [
        "Tensors are not close: rtol=1e-05, atol=1e-06",
        "Elements that differ: 2 of 6 (33.3%)",
        "Greatest absolute difference: 1 at (1, 2)",
        "Greatest relative difference: 0.2 at (0, 1)",
        "at (0, 1): actual 2.0, expected 2.5",
        "at (1, 2): actual 6.0, expected 7.0",
    ]
    assert failure(x, 0.0, message="weights differ").startswith("weights differ\n")
    assert failure(burn.zeros(1000, device=CPU), 1.0).count("actual 0.0") == 10


def test_shapes_must_be_equal_except_that_a_number_has_every_shape():
    x = burn.ones((2, 3), device=CPU)
    assert_close(x, 1.0)
    assert "actual (2, 3), expected (3,)" in failure(x, burn.ones(3, device=CPU))
    assert "actual (2, 3), expected (0,)" in failure(x, [])
    assert_close(burn.zeros((0, 2), device=CPU), np.zeros((0, 2)))


def test_what_is_not_finite_is_near_its_equal_only():
    x = tensor([np.inf, -np.inf, np.nan])
    assert_close(x, x)
    for number in range(3):
        assert "1 of 1" in failure(x[number : number + 1], [1.0])
        assert "1 of 1" in failure([1e300], x[number : number + 1], rtol=1.0)
    assert "Greatest" not in failure(x, [-np.inf, -np.inf, np.nan])
    assert "1 of 3" in failure(x, x, equal_nan=False)


def test_large_integers_are_compared_exactly():
    x = tensor([1 << 62])
    assert "difference: 1 at (0,)" in failure(x, x + 1)
    assert_close(x, x + 1, atol=1)
    assert "1 of 1" in failure(tensor([(1 << 64) - 1], dtype="uint64"), tensor([-1]))


def test_a_tracked_tensor_and_one_of_another_device_are_compared_by_value():
    x = burn.ones(2, device=CPU.autodiff()).require_grad() * 2
    for device in burn.Device.enumerate():
        assert_close(x, burn.full(2, 2.0, device=device))


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), "1e-5"])
def test_a_tolerance_is_a_number_from_zero_on(wrong):
    with pytest.raises(burn.ArgumentError, match="rtol must be a number from 0 on"):
        assert_close(1.0, 1.0, rtol=wrong)
