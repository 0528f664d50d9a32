"""Every public function and method under `burn.ir.trace`: no value of the trace goes stale."""

import copy
import operator
import pickle
import re

import numpy as np
import pytest
from test_tracking import FUNCTIONS, OF_TENSORS, TRIED, calls_of, flat, mapped

import burn
from burn.devices import forget_plans
from nearness import Near

CPU = burn.Device("cpu")
AUTODIFF = CPU.autodiff()
DEVICES = {
    "cpu": CPU,
    "autodiff": AUTODIFF,
    "checkpointing": AUTODIFF.gradient_checkpointing(),
    "torch": burn.Device("torch/cpu"),
    "opencl": burn.Device("opencl"),
}

UNIQUE = ("all", "consecutive", "counts", "inverse", "values")
NO_VALUE = "no value while a function is traced"
NO_SHAPE = r"the shape of \w+ depends on values"
REFUSED = {
    "allclose": NO_VALUE,
    "argwhere": NO_SHAPE,
    "bincount": NO_VALUE,
    "from_dlpack": NO_VALUE,
    "nonzero": NO_SHAPE,
    "unique": NO_SHAPE,
    **{f"unique_{name}": NO_SHAPE for name in UNIQUE},
    "a mask": NO_SHAPE,
    "signal.istft": NO_VALUE,
    "random.seed": "cannot seed the generator",
}
"""Functions with calls whose results depend on values in Python, or in their shape; and what
acts beside the trace."""

CALLS = {
    **{name: [(FUNCTIONS[name], *call) for call in calls_of(name)] for name in TRIED},
    **{name: [(function, *arguments)] for name, (function, arguments) in OF_TENSORS.items()},
    "from_dlpack": [(burn.from_dlpack, [np.ones(3, np.float32)], {"copy": True})],
}


def arrays_of(tree):
    found = []
    mapped(tree, found.append)
    return found


def changed(array):
    """Other values of the same kind: of indices, those of another order."""
    if array.dtype == np.bool_:
        return ~array
    if array.dtype.kind in "iu":
        return np.roll(array.reshape(-1), 1).reshape(array.shape)
    return array * array.dtype.type(0.9)


def with_arrays(function, tree, device):
    """The function of tensors in the order of the arrays in a tree."""

    def call(*tensors):
        rest = iter(tensors)
        args, kwargs = mapped(tree, lambda _: next(rest))
        with burn.default_device(device):
            return flat(function(*args, **kwargs))

    return call


def values(tensors):
    return [Near(x.detach().numpy()) for x in tensors]


def choices(arrays):
    """Which of the tensors are from outside of the function: all, and each one alone."""
    every = set(range(len(arrays)))
    return [every, *([{number} for number in every] if len(every) > 1 else [])]


def check_follows(function, tree, outside, device, *, is_warm):
    """See that the program of a call gives the eager values, and reads the tensors from outside."""
    arrays = arrays_of(tree)
    call = with_arrays(function, tree, device)
    tensors = [burn.asarray(array, device=device) for array in arrays]
    new = [burn.asarray(changed(array), device=device) for array in arrays]

    def closure(*arguments):
        rest = iter(arguments)
        return call(*[x if n in outside else next(rest) for n, x in enumerate(tensors)])

    def inside(tensors):
        return [x for number, x in enumerate(tensors) if number not in outside]

    expected = seeded(device, call, *tensors)
    if not is_warm:
        forget_plans()
    program = burn.ir.trace(closure, *inside(tensors))
    assert all(x.device == device for x in tensors)
    assert seeded(device, program, *inside(tensors), device=device) == expected
    for number in outside:
        tensors[number][...] = new[number]
    found = seeded(device, program, *inside(new), device=device)
    assert found == seeded(device, call, *new)


def seeded(device, function, /, *arguments, **keywords):
    """The values that a function gives, with the same random numbers each time."""
    device.seed(3)
    return values(function(*arguments, **keywords))


def is_there(function, tree, device):
    """Whether a device has what a call needs: complex numbers, some ops."""
    try:
        with_arrays(function, tree, device)(
            *[burn.asarray(array, device=device) for array in arrays_of(tree)]
        )
    except (burn.DTypeError, burn.UnsupportedOpError):
        return False
    return True


@pytest.mark.together("name", sorted(CALLS))
def test_a_public_function_follows_the_tensors_from_outside(name, everything):
    refused = 0
    devices = DEVICES if everything else {name: DEVICES[name] for name in ("cpu", "autodiff")}
    for device in devices.values():
        for function, *tree in CALLS[name]:
            assert device.backend_name != "cpu" or is_there(function, tree, device)
            if not is_there(function, tree, device):
                continue
            for outside in choices(arrays_of(tree)):
                # In the gate plans are made anew by one of the two devices.
                for is_warm in (True, False) if everything else (device.is_autodiff,):
                    try:
                        check_follows(function, tree, outside, device, is_warm=is_warm)
                    except burn.BurnError as error:
                        assert re.search(REFUSED[name], str(error))
                        refused += 1
    assert bool(refused) == (name in REFUSED)


@pytest.mark.parametrize("name", ["F.conv2d", "F.softmax", "add", "linalg.solve", "random.normal"])
@pytest.mark.parametrize("device", ["checkpointing", "torch", "opencl"])
def test_some_functions_follow_the_tensors_from_outside_on_each_device(name, device):
    for function, *tree in CALLS[name.replace("F.", "nn.functional.")]:
        for outside in choices(arrays_of(tree)):
            check_follows(function, tree, outside, DEVICES[device], is_warm=True)


@pytest.mark.together("name", sorted(set(CALLS) - set(REFUSED)))
def test_the_gradients_of_a_public_function_are_those_of_its_program(name):
    for function, *tree in CALLS[name]:
        call = with_arrays(function, tree, AUTODIFF)

        def gradients(*tensors, call=call):
            leaves = [x.require_grad() if x.dtype.is_float else x for x in tensors]
            results = [x for x in call(*leaves) if x.is_tracked and x.dtype.is_float]
            if not results:
                return []
            found = sum((x * x).sum() for x in results).backward()
            return [found[x] for x in leaves if x in found]

        arrays = arrays_of(tree)
        first, second = (
            [burn.asarray(value, device=AUTODIFF) for value in values]
            for values in (arrays, [changed(array) for array in arrays])
        )
        try:
            seeded(AUTODIFF, gradients, *first)
        except burn.BurnError as error:
            with pytest.raises(type(error)):
                burn.ir.trace(gradients, *first)
            continue
        program = burn.ir.trace(gradients, *first)
        for tensors in (first, second):
            expected = seeded(AUTODIFF, gradients, *tensors)
            assert seeded(AUTODIFF, program, *tensors, device=CPU) == expected


SCALES = burn.asarray([1.0, 2.0], device=CPU)


@pytest.mark.together("name", sorted(set(CALLS) - set(REFUSED)))
def test_a_public_function_inside_vmap_follows_the_tensors_from_outside(name):
    for function, *tree in CALLS[name]:
        call = with_arrays(function, tree, CPU)
        tensors = [burn.asarray(array, device=CPU) for array in arrays_of(tree)]

        def batched(call=call, tensors=tensors):
            def example(scale):
                return [x * scale if x.dtype.is_float else x for x in call(*tensors)]

            return burn.vmap(example)(SCALES)

        for _ in range(2):
            expected = seeded(CPU, batched)
            program = burn.ir.trace(batched)
            assert seeded(CPU, program, device=CPU) == expected
            for x, array in zip(tensors, arrays_of(tree), strict=True):
                x[...] = burn.asarray(changed(array), device=CPU)
            assert seeded(CPU, program, device=CPU) == seeded(CPU, batched)


# Methods.

OPERATORS = ["add", "floordiv", "mod", "mul", "pow", "sub", "truediv"]
OPERATORS_OF_INTEGERS = ["and", "lshift", "or", "rshift", "xor"]


def binary(name, make):
    """The calls of an operator: as it is, reflected, and in place."""
    plain, changing = getattr(operator, f"__{name}__"), getattr(operator, f"__i{name}__")
    return {
        f"__{name}__": lambda x: plain(make(x), make(x)),
        f"__r{name}__": lambda x: plain(3, make(x)),
        f"__i{name}__": lambda x: changing(burn.asarray(make(x), copy=True), make(x)),
    }


def assigned(x):
    y = burn.asarray(x, copy=True)
    y[0] = x[1]
    return y


def given_values(x):
    y, leaf = burn.zeros_like(x), burn.zeros_like(x).to_device(AUTODIFF).require_grad()
    y.assign(x * 2.0)
    leaf.assign(y)
    return [y, (leaf * leaf).sum().backward()[leaf]]


def differentiated(x):
    x = x.to_device(AUTODIFF).require_grad()
    y = (x * x).sum(axis=0)
    return y.backward(burn.ones_like(y.inner()))[x]


def replaced(x):
    leaf = x.to_device(AUTODIFF).require_grad()
    gradients = (leaf * leaf).sum().backward()
    first = leaf.grad_remove(gradients)
    (leaf * 2.0).sum().backward()
    leaf.grad_replace(gradients, x)
    return [first, leaf.grad(gradients)]


def hooked(x):
    leaf = x.to_device(AUTODIFF).require_grad()
    y = leaf * leaf
    y.retain_grad()
    leaf.register_hook(lambda g: g + x)
    gradients = (y * y).sum().backward()
    return [gradients[leaf], gradients[y]]


def of_columns(name):
    return lambda x: getattr(x, name)(axis=0)


def quantized(x):
    scales = burn.full((1,), 0.05, device=x.device)
    scheme = burn.quantization.default_quant_scheme(x.device)
    return x.quantize(scheme, burn.quantization.QParams(scales))


METHODS = {
    **{key: f for name in OPERATORS for key, f in binary(name, lambda x: x).items()},
    **{
        key: f
        for name in OPERATORS_OF_INTEGERS
        for key, f in binary(name, lambda x: burn.astype(abs(x), burn.int32)).items()
    },
    **{name: of_columns(name) for name in ("all", "any", "argmax", "argmin", "argsort", "max")},
    **{name: of_columns(name) for name in ("mean", "min", "prod", "sort", "sum")},
    **{name: getattr(operator, name) for name in ("__abs__", "__neg__", "__pos__")},
    **{name: operator.methodcaller(name) for name in ("abs", "exp", "flatten", "log", "sqrt")},
    "square": lambda x: x.square(),
    "dequantize": lambda x: x.quantize_dynamic().dequantize(),
    "quantize": lambda x: quantized(x).dequantize(),
    "quantize_dynamic": lambda x: x.quantize_dynamic().dequantize(),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "__matmul__": lambda x: x @ x,
    "__rmatmul__": lambda x: x.__rmatmul__(x),
    "__imatmul__": lambda x: operator.imatmul(burn.asarray(x, copy=True), x),
    "__invert__": lambda x: ~burn.astype(x, burn.int32),
    "__getitem__": lambda x: x[1:, 0],
    "__setitem__": assigned,
    "__iter__": list,
    "__copy__": copy.copy,
    "__deepcopy__": copy.deepcopy,
    "__array_ufunc__": lambda x: np.float32(2) * x,
    "__array_namespace__": lambda x: x.__array_namespace__().exp(x),
    "__len__": lambda x: x * len(x),
    "astype": lambda x: x.astype(burn.float16),
    "broadcast_to": lambda x: x.broadcast_to((2, 3, 3)),
    "clip": lambda x: x.clip(-0.5, 0.5),
    "permute_dims": lambda x: x.permute_dims((1, 0)),
    "reshape": lambda x: x.reshape((9,)),
    "squeeze": lambda x: x[None].squeeze(0),
    "transpose": lambda x: x.transpose(),
    "to_device": lambda x: x.to_device(AUTODIFF) * 2.0,
    "from_inner": lambda x: burn.Tensor.from_inner(x, AUTODIFF) * 2.0,
    "inner": lambda x: x.to_device(AUTODIFF).inner(),
    "detach": lambda x: x.to_device(AUTODIFF).require_grad().detach(),
    "require_grad": differentiated,
    "assign": given_values,
    "backward": differentiated,
    "grad": replaced,
    "grad_remove": replaced,
    "grad_replace": replaced,
    "register_hook": hooked,
    "retain_grad": hooked,
    "size": lambda x: x * x.size,
    "shape": lambda x: x * x.shape[0],
    "ndim": lambda x: x * x.ndim,
    "dtype": lambda x: burn.ones(3, dtype=x.dtype, device=CPU) * x,
    "device": lambda x: burn.ones(3, device=x.device) * x,
    "is_tracked": lambda x: x * float(x.is_tracked),
    "is_require_grad": lambda x: x * float(x.is_require_grad),
}
"""A function of each method and property; of a matrix."""

OF_VALUES = {
    "__array__": np.asarray,
    "__arrow_array__": lambda x: x.__arrow_array__(),
    "__arrow_c_stream__": lambda x: x[0].__arrow_c_stream__(),
    "__bool__": lambda x: 1 if x[0, 0] else 2,
    "__complex__": lambda x: complex(x[0, 0]),
    "__dlpack__": lambda x: x.__dlpack__(),
    "__float__": lambda x: float(x[0, 0]),
    "__index__": lambda x: range(x.astype(burn.int32)[0, 0]),
    "__int__": lambda x: int(x[0, 0]),
    "__reduce__": pickle.dumps,
    "data": lambda x: x.data(),
    "item": lambda x: x[0, 0].item(),
    "numpy": lambda x: x.numpy(),
    "tolist": lambda x: x.tolist(),
}
"""A function of each method that needs values."""

OTHERS = {
    *["__dlpack_device__", "__numpy_dtype__", "from_primitive", "link", "primitive", "tensor_type"],
    *["distributed_params", "is_distributed", "set_distributed_params"],
    *["data_async", "item_async"],
}
"""What has nothing of the values, or what plugins use."""


def test_every_method_is_tried():
    members = {
        name
        for name in dir(burn.Tensor)
        if name not in dir(object) and (name.endswith("__") or not name.startswith("_"))
    }
    members -= {"__annotations__", "__module__", "__slots__", "__weakref__"}
    assert members | {"__reduce__"} == set(METHODS) | set(OF_VALUES) | OTHERS


MATRIX = np.array([[0.5, 2.0, -1.0], [1.5, -2.5, 4.0], [3.0, 1.0, 2.0]], np.float32)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_follows_the_tensor_from_outside(name):
    function = METHODS[name]
    for outside in ({0}, set()):
        for is_warm in (True, False):
            check_follows(as_list(function), [(MATRIX,), {}], outside, CPU, is_warm=is_warm)


def as_list(function):
    def call(x):
        result = function(x)
        return result if isinstance(result, list) else [result]

    return call


@pytest.mark.parametrize("device", [CPU, AUTODIFF], ids=str)
@pytest.mark.parametrize("name", OF_VALUES)
def test_a_method_that_needs_a_value_is_refused(name, device):
    function = OF_VALUES[name]
    x = burn.asarray(MATRIX, device=device)
    function(x)
    for refused in (
        lambda: burn.ir.trace(lambda: function(x)),
        lambda: burn.ir.trace(function, x),
        lambda: burn.eval_shape(function, x),
    ):
        with pytest.raises((burn.TraceError, burn.ExportError), match=NO_VALUE):
            refused()
    assert x.tolist() == MATRIX.tolist()
