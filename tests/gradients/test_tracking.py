"""No gradient is lost without a word: in every op and every public function."""

import re
from pathlib import Path

import numpy as np
import pytest

import burn
import burn.testing.samples
import burn.transforms
from burn.dtype import Kind, float32, int64
from burn.functions.common import dispatch
from burn.testing.op_samples import SAMPLES
from burn.testing.subject import Call
from valid_calls import public_functions, tried_calls

TRACKED = burn.Device("cpu").autodiff()

PAGE = Path(__file__).parents[2] / "docs" / "users" / "autodiff.md"
CONSTANTS = (
    PAGE.read_text(encoding="utf-8").split("## What has no gradient\n")[1].split("\n- Complex")[0]
)
"""What the documentation says of results that are constants."""

X = np.linspace(-1.0, 1.5, 12, dtype=np.float32).reshape(3, 4)
Y, POSITIVE, MASK = X + np.float32(0.3), np.abs(X) + np.float32(0.5), X > 0


def call(*arguments, **keywords):
    return arguments, keywords


OF_TENSORS = {
    "basic indexing": (lambda x: x[1:, ::-1], call(X)),
    "an index": (lambda x: x[1], call(X)),
    "advanced indexing": (lambda x: x[[0, 2]], call(X)),
    "a mask": (lambda x, mask: x[mask], call(X, MASK)),
    "all of it": (lambda x: x[:], call(X)),
    "iteration": (list, call(X)),
    "T": (lambda x: x.T, call(X)),
    "mT": (lambda x: x.mT, call(X)),
    "operators": (lambda x, y: [x + y, x - 1, 2 * x, x / y, x // y, x % y, x**2], call(X, Y)),
    "reflected operators": (lambda x: [1 - x, 2 / x, 3**x, 4 % x, 5 // x], call(POSITIVE)),
    "operators of one": (lambda x: [+x, -x, abs(x)], call(X)),
    "products": (lambda x, y: [x @ y.T, x[0] @ y[0], x @ y[0]], call(X, Y)),
    "a list of tensors": (lambda x, y: burn.asarray([x, y]), call(X, Y)),
}

NO_TENSORS = {
    *["can_cast", "check_closeness", "default_device", "finfo", "iinfo", "isdtype"],
    *["profile", "refresh_plugins", "register_backend", "set_default_device", "set_print_options"],
    *burn.transforms.__all__,
    "apply_op",
}
"""Public functions that compute nothing from tensors, or what another function or an op does."""

ANYTHING = {"empty", "empty_like"}
"""Public functions whose results have any value."""

RETURN_THE_TENSOR = {"astype"}
"""Those that return their operand as it is, as the call asks for it."""

WITHOUT_GRADIENT = {
    "histogram": {0},
    "histogramdd": {0},
    "linalg.l0_norm": {0},
    "nn.functional.batch_norm_training": {1, 2},
}
"""Float results that the documentation calls constants, by their indices."""

OPS_WITHOUT_GRADIENT = {"detach": {0}, "quantize_dynamic": {1}, "round_up_scales": {0}}
"""Float results of ops that are constants by definition, by their indices."""


FUNCTIONS = public_functions()
TRIED = sorted(FUNCTIONS.keys() - NO_TENSORS - ANYTHING)


def is_float(value):
    if not isinstance(value, np.ndarray) or value.dtype != np.float32:
        return False
    return not value.size or not np.all(np.abs(value) == 1.0)  # signs are classes


def mapped(tree, function):
    """Nested containers with a function applied to every array."""
    if isinstance(tree, dict):
        return {key: mapped(part, function) for key, part in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(mapped(part, function) for part in tree)
    return function(tree) if isinstance(tree, np.ndarray) else tree


def flat(tree):
    """The tensors in nested containers."""
    if isinstance(tree, burn.Tensor):
        return [tree]
    return [x for part in tree for x in flat(part)] if isinstance(tree, (list, tuple)) else []


def results(function, arguments, number, change):
    """The tensors that come out where `change` makes the tensor of one of the float arrays."""
    seen = iter(range(1000))

    def tensor(array):
        chosen = is_float(array) and next(seen) == number
        return change(array) if chosen else burn.asarray(array, device=TRACKED)

    operands, keywords = mapped(arguments, tensor)
    return flat(function(*operands, **keywords))


def leaf(array):
    return burn.asarray(array, device=TRACKED).require_grad()


def moved(array):
    steps = np.linspace(0.01, 0.02, array.size, dtype=np.float32).reshape(array.shape)
    return burn.asarray(array + steps, device=TRACKED)


def outcomes(function, arguments):
    """For each float array, made a leaf: the results of a call, and what loses its gradient.

    These are the indices of results that change with the array and are not tracked. The results are
    None where burn refuses the call.
    """
    floats = []
    mapped(arguments, lambda array: floats.append(array) if is_float(array) else None)
    for number in range(len(floats)):
        try:
            tracked = results(function, arguments, number, leaf)
        except (burn.AutodiffError, burn.ExportError, burn.UnsupportedOpError) as error:
            assert re.search("gradient|differentiable|tracked", str(error))
            yield None, set()
            continue
        before = results(function, arguments, number, lambda x: burn.asarray(x, device=TRACKED))
        after = results(function, arguments, number, moved)
        differ = [
            not np.array_equal(tensor.numpy(), other.numpy(), equal_nan=tensor.dtype.is_float)
            for tensor, other in zip(before, after, strict=True)
        ]
        lost = {
            index
            for index, x in enumerate(tracked)
            if (x.dtype.is_float or x.dtype.is_complex) and differ[index] and not x.is_tracked
        }
        yield tracked, lost


calls_of = tried_calls


@pytest.mark.together("name", sorted(SAMPLES))
def test_an_op_of_tracked_floats_has_a_gradient_or_refuses(name):
    samples = SAMPLES[name]
    for item in samples.samples:
        if Kind.FLOAT not in item.kinds:
            continue
        sample = Call.of(samples, item, float32, int64)
        arguments = (list(sample.operands), dict(sample.attributes))

        def function(*operands, **attributes):
            return dispatch.execute(name, *operands, **attributes)

        for tracked, lost in outcomes(function, arguments):
            assert lost <= OPS_WITHOUT_GRADIENT.get(name, set()), item.note
            assert not any(x.is_require_grad for x in tracked or ()), item.note


def test_every_public_function_is_tried():
    assert {name for name in TRIED if not calls_of(name)} == {
        "from_dlpack",
        "nn.functional.fake_quantize",
    }


@pytest.mark.together("name", TRIED)
def test_a_public_function_of_tracked_floats_has_a_gradient_or_refuses(name):
    for arguments in calls_of(name):
        for tracked, lost in outcomes(FUNCTIONS[name], arguments):
            assert lost <= WITHOUT_GRADIENT.get(name, set())
            if name not in RETURN_THE_TENSOR:
                assert not any(x.is_require_grad for x in tracked or ())


@pytest.mark.parametrize("name", OF_TENSORS)
def test_indexing_and_operators_keep_the_gradient(name):
    function, arguments = OF_TENSORS[name]
    for tracked, lost in outcomes(function, arguments):
        assert tracked
        assert not lost
        assert not any(x.is_require_grad for x in tracked)


def test_the_documentation_lists_what_has_no_gradient():
    found = set(WITHOUT_GRADIENT)
    for name in TRIED:
        results = [
            tracked
            for arguments in calls_of(name)
            for tracked, _ in outcomes(FUNCTIONS[name], arguments)
            if tracked
        ]
        dtypes = [x.dtype for tracked in results for x in tracked]
        if name in RETURN_THE_TENSOR:
            continue
        if results and not any(dtype.is_float or dtype.is_complex for dtype in dtypes):
            found.add(name)
    listed = set(re.findall(r"`([a-z_0-9.]+)`", CONSTANTS))
    assert listed == found


COPIES = {
    "asarray": lambda x: burn.asarray(x, copy=True),
    "positive": burn.positive,
    "+x": lambda x: +x,
    "x[:]": lambda x: x[:],
    "x[...]": lambda x: x[...],
    "astype": lambda x: x.astype(x.dtype),
    "clip": burn.clip,
    "roll": lambda x: burn.roll(x, 0, axis=0),
    "pad": lambda x: burn.pad(x, 0, mode="edge"),
    "reshape": lambda x: burn.reshape(x, x.shape, copy=True),
    "tile": lambda x: burn.tile(x, 1),
}


@pytest.mark.parametrize("device", [TRACKED, TRACKED.gradient_checkpointing()], ids=str)
@pytest.mark.parametrize("name", COPIES)
def test_a_copy_of_a_leaf_takes_writes_and_its_gradient_goes_on(name, device):
    x = burn.asarray([1.0, 2.0, 3.0], device=device).require_grad()
    y = COPIES[name](x)
    assert y.is_tracked
    assert not y.is_require_grad
    y[0] = 5.0
    y *= 2.0
    assert (x.tolist(), y.tolist()) == ([1.0, 2.0, 3.0], [10.0, 4.0, 6.0])
    assert x.grad(burn.sum(y * y).backward()).tolist() == [0.0, 16.0, 24.0]


def test_a_view_of_a_leaf_is_no_leaf_and_refuses_writes():
    x = burn.asarray([1.0, 2.0, 3.0], device=TRACKED).require_grad()
    y = x[:2]
    assert y.is_tracked
    assert not y.is_require_grad
    with pytest.raises(burn.AutodiffError, match=r"to a view of a leaf.*copy=True"):
        y[0] = 5.0
    assert x.grad(burn.sum(y * y).backward()).tolist() == [2.0, 4.0, 0.0]


def test_a_copy_of_a_tracked_tensor_inside_no_grad_is_a_constant():
    x = burn.asarray([1.0, 2.0], device=TRACKED).require_grad()
    for item in (x, x * 2.0):
        with burn.no_grad():
            copied = burn.asarray(item, copy=True)
            copied[0] = 5.0
        assert not copied.is_tracked
    assert x.tolist() == [1.0, 2.0]


def test_the_ways_out_that_the_refusal_of_a_write_names_work():
    x = burn.asarray([1.0, 2.0], device=TRACKED).require_grad()
    with pytest.raises(burn.AutodiffError) as failure:
        x[0] = 5.0
    ways = re.findall(r"y = ([\w.]+\([^)]*\))", failure.value.hint)
    assert ways == ["burn.asarray(x, copy=True)", "x.detach()"]
    copied, detached = (eval(way, {"burn": burn, "x": x}) for way in ways)  # noqa: S307 — of burn's hint
    copied[0] = 5.0
    detached[0] = 5.0
    new = detached.require_grad()
    gradients = burn.sum(copied * copied + new).backward()
    assert x.grad(gradients).tolist() == [0.0, 4.0]
    assert new.grad(gradients).tolist() == [1.0, 1.0]


def test_nextafter_refuses_tracked_operands():
    x = burn.asarray([1.0], device=TRACKED).require_grad()
    for operands in ((x, 2.0), (2.0, x), (x, x), (burn.ones(1, device=TRACKED), x)):
        with pytest.raises(burn.UnsupportedOpError, match=r"nextafter.*not differentiable.*detach"):
            burn.nextafter(*operands)
    with burn.no_grad():
        assert burn.nextafter(x, 2.0).item() > 1.0
    assert burn.nextafter(x.detach(), 2.0).item() > 1.0
