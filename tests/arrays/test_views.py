"""Writes go through views; what is no view is independent."""

import copy
import gc
import inspect
import operator
import pickle
import threading
import warnings
import weakref

import numpy as np
import pytest
from hypothesis import given, strategies as st

import burn
from burn.functions import views

CPU = burn.Device("cpu")
TRACKED = CPU.autodiff()
DEVICES = [
    name
    for name in ("cpu", "torch/cpu", "opencl/cpu")
    if any(device.name == f"{name}:0" for device in burn.Device.enumerate(name.partition("/")[0]))
]

VIEWS = {
    "x[...]": lambda x: x[...],
    "x[0]": lambda x: x[0],
    "x[1, 1:, None]": lambda x: x[1, 1:, None],
    "x[::-1, ::2]": lambda x: x[::-1, ::2],
    "list(x)": lambda x: list(x)[1],
    "reshape": lambda x: burn.reshape(x, (-1,)),
    "reshape to the same shape": lambda x: x.reshape((2, 3)),
    "permute_dims": lambda x: burn.permute_dims(x, (1, 0)),
    "transpose": lambda x: x.transpose(),
    "matrix_transpose": burn.matrix_transpose,
    "moveaxis": lambda x: burn.moveaxis(x, 0, 1),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "squeeze": lambda x: burn.squeeze(x[:1], axis=0),
    "expand_dims": lambda x: burn.expand_dims(x, axis=0),
    "flip": lambda x: burn.flip(x),
    "split": lambda x: burn.split(x, 3, axis=1)[2],
    "split_with_sizes": lambda x: burn.split_with_sizes(x, (1, 2), axis=1)[1],
    "chunk": lambda x: burn.chunk(x, 2, axis=1)[0],
    "unstack": lambda x: burn.unstack(x, axis=1)[1],
    "narrow": lambda x: burn.narrow(x, 1, 2, axis=1),
    "view of a view of a view": lambda x: x.T[1:].reshape((-1,))[::2],
}


def matrix(device=CPU):
    return burn.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], device=device)


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("device", DEVICES)
def test_a_write_to_a_view_is_one_to_the_tensor_and_the_other_way_round(device, name):
    x = matrix(device)
    view = VIEWS[name](x)
    positions = VIEWS[name](burn.reshape(burn.arange(6, device=device), (2, 3)))
    view *= 10.0
    expected = np.arange(1.0, 7.0)
    expected[positions.numpy().reshape(-1)] *= 10.0
    assert x.tolist() == expected.reshape(2, 3).tolist()
    x += 1.0
    assert view.tolist() == (expected + 1.0)[positions.numpy()].tolist()
    view[...] = 0.0
    assert burn.sum(view).item() == 0.0
    assert burn.count_nonzero(x).item() == 6 - view.size


def test_views_of_one_tensor_see_each_others_writes():
    x = matrix()
    row, column, flat = x[1], x[:, 2], x.reshape((6,))
    flat[5] = -1.0
    assert (row.tolist(), column.tolist()) == ([4.0, 5.0, -1.0], [3.0, -1.0])
    column[[0, 1]] = burn.asarray([7.0, 8.0], device=CPU)
    assert flat.tolist() == [1.0, 2.0, 7.0, 4.0, 5.0, 8.0]
    row[row > 5.0] = 0.0
    assert x.tolist() == [[1.0, 2.0, 7.0], [4.0, 5.0, 0.0]]


def test_iteration_gives_views():
    x = matrix()
    for row in x:
        operator.itruediv(row, burn.sum(row))
    np.testing.assert_allclose(burn.sum(x, axis=1).tolist(), [1.0, 1.0], rtol=1e-6)


INDEPENDENT = {
    "advanced indexing": lambda x: x[[0, 1]],
    "a mask": lambda x: x[x > 0.0],
    "astype": lambda x: x.astype("float32"),
    "asarray(copy=True)": lambda x: burn.asarray(x, copy=True),
    "bitcast": lambda x: burn.bitcast(x.detach(), "float32"),
    "broadcast_arrays": lambda x: burn.broadcast_arrays(x, x[0])[0],
    "clip": lambda x: burn.clip(x),
    "concat of one": lambda x: burn.concat([x]),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "detach": lambda x: x.detach(),
    "einsum": lambda x: burn.einsum("ij->ij", x),
    "flatten": lambda x: x.flatten(),
    "from_inner": burn.Tensor.from_inner,
    "inner": lambda x: burn.Tensor.from_inner(x).inner(),
    "nan_to_num": burn.nan_to_num,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "reshape(copy=True)": lambda x: burn.reshape(x, (3, 2), copy=True),
    "diff, no times": lambda x: burn.diff(x, n=0),
    "fftshift of no axes": lambda x: burn.fft.fftshift(x, axes=()),
    "ifftshift of no axes": lambda x: burn.fft.ifftshift(x, axes=()),
    "median_with_indices": lambda x: burn.median_with_indices(x, axis=1, keepdims=True).values,
    "roll by 0": lambda x: burn.roll(x, 0, axis=0),
    "roll of no axes": lambda x: burn.roll(x, 0, axis=()),
    "roll by a period": lambda x: burn.roll(x, 3, axis=1),
    "swapaxes": lambda x: burn.swapaxes(x, 0, 1),
    "tile once": lambda x: burn.tile(x, 1),
    "to_device": lambda x: x.to_device(burn.Device("cpu").autodiff()),
    "tril": burn.tril,
    "where": lambda x: burn.where(x > 0.0, x, 0.0),
}


@pytest.mark.parametrize("name", INDEPENDENT)
def test_everything_else_is_independent(name):
    x = matrix()
    result = INDEPENDENT[name](x)
    before = result.tolist()
    x[...] = 100.0
    assert result.tolist() == before
    result[...] = -100.0
    assert x.tolist() == [[100.0] * 3] * 2


RETURN_VIEWS = {
    "broadcast_to",
    "expand_dims",
    "flip",
    "matrix_transpose",
    "reshape",
    "squeeze",
    "transpose",
    "unstack",
}
RETURN_THE_TENSOR = {"asarray", "assert_on_device"}


def test_no_other_function_of_one_tensor_returns_it_or_a_view():
    for module in (burn, burn.linalg, burn.fft, burn.signal):
        for name in dir(module):
            function = getattr(module, name)
            if inspect.isclass(function) or not callable(function):
                continue
            x = burn.asarray([[2.0, 1.0], [1.0, 3.0]], device=CPU)
            try:
                results = function(x)
            except (burn.BurnError, TypeError):
                continue
            for result in results if isinstance(results, (tuple, list)) else (results,):
                if isinstance(result, burn.Tensor):
                    is_view = views.is_view(result)
                    assert is_view == (name in RETURN_VIEWS), name
                    assert (result is x) == (name in RETURN_THE_TENSOR), name


@pytest.mark.parametrize(
    "function",
    [
        lambda x: burn.linalg.diag(x[0]),
        lambda x: burn.median_with_indices(x.astype("int32"), axis=0, keepdims=True).indices,
    ],
    ids=["diag", "median_with_indices"],
)
def test_what_a_function_makes_is_no_view_of_what_it_made_before(function):
    assert not views.is_view(function(matrix()))


def test_what_broadcast_to_returns_refuses_writes():
    x = burn.asarray([1.0, 2.0], device=CPU)
    wide = burn.broadcast_to(x, (3, 2))
    x[0] = 9.0
    assert wide.tolist() == [[9.0, 2.0]] * 3
    for target in (wide, wide[0], wide.T):
        with pytest.raises(burn.UnsupportedOpError, match="broadcast_to"):
            target[...] = 0.0
        with pytest.raises(burn.UnsupportedOpError, match="broadcast_to"):
            operator.iadd(target, 1.0)
    assert x.tolist() == [9.0, 2.0]


def test_an_in_place_operator_on_an_element_writes_once(monkeypatch):
    x = matrix()
    written = []
    rebind, in_place = views._rebind, views._assign_in_place
    monkeypatch.setattr(views, "_rebind", lambda *args: written.append(1) or rebind(*args))
    monkeypatch.setattr(
        views, "_assign_in_place", lambda *args: in_place(*args) and not written.append(1)
    )
    x[1] += 1.0
    assert written == [1]
    x[0, ::2] *= 2.0
    assert written == [1, 1]
    assert x.tolist() == [[2.0, 2.0, 6.0], [5.0, 6.0, 7.0]]


def test_a_failed_write_changes_nothing():
    x = matrix()
    row = x[0]
    for key, value in ((3, 1.0), ("a", 1.0), (0, [1.0, 2.0]), (0, 1j)):
        with pytest.raises(burn.BurnError):
            row[key] = value
    with pytest.raises(burn.OperandTypeError):
        row //= burn.asarray([1.0, 2.0, 3.0], device=CPU, dtype="float64")
    assert x.tolist() == matrix().tolist()


def test_writing_a_tensor_to_itself_shifts_it():
    x = burn.arange(6, device=CPU)
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3, 4]
    x[:] = burn.flip(x)
    assert x.tolist() == [4, 3, 2, 1, 0, 0]


# In memory.


def test_elements_are_written_in_place_where_nothing_else_sees_the_memory():
    x = burn.zeros(1000, device=CPU)
    x[0] = 1.0
    owned = id(x.primitive)
    view = x[10:20]
    x[1] = 2.0
    view[0] += 3.0
    view.reshape((2, 5))[1, 0] = 4.0
    assert id(x.primitive) == owned
    assert x.tolist()[:2] == [1.0, 2.0]
    assert view.tolist() == [3.0, 0.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 0.0]


HOLDERS = {
    "an array": lambda x: x.numpy(),
    "the primitive": lambda x: x.primitive,
    "a view of the primitive": lambda x: x.primitive[3:],
    "a buffer": lambda x: memoryview(x.primitive),
    "another tensor": lambda x: x.detach(),
    "a tensor made of a view": lambda x: x[2:].detach(),
    "the primitive of a view": lambda x: (x, (view := x[2:]), view.primitive),
    "an export": np.from_dlpack,
    "a node": lambda x: burn.ones(5, device=TRACKED).require_grad() * x,
    "torch": lambda x: x.to_device("torch/cpu"),
}


@pytest.mark.parametrize("name", HOLDERS)
def test_the_first_write_copies_where_something_else_sees_the_memory(name):
    x = burn.asarray([1.0, 2.0, 3.0, 4.0, 5.0], device=CPU)
    x[0] = 1.0
    array = x.primitive
    before = array.copy()
    address = array.__array_interface__["data"][0]
    del array
    held = HOLDERS[name](x)
    x[...] = 9.0
    assert x.primitive.__array_interface__["data"][0] != address
    assert x.tolist() == [9.0] * 5
    if isinstance(held, np.ndarray):
        assert held.tolist() == before.tolist()[5 - held.size :]
    elif isinstance(held, memoryview):
        assert held.tolist() == before.tolist()
    del held
    address = x.primitive.__array_interface__["data"][0]
    x[1] = 8.0
    assert x.primitive.__array_interface__["data"][0] == address


@pytest.mark.parametrize("share", [lambda a: burn.asarray(a, copy=False), burn.from_dlpack])
def test_memory_of_another_library_is_never_written(share):
    array = np.arange(4.0)
    with burn.default_device("cpu"):
        x = share(array)
    x[0] = 9.0
    x[1:3] += 1.0
    assert array.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert x.tolist() == [9.0, 2.0, 3.0, 3.0]


def test_tensors_and_views_are_freed_without_the_collector():
    gc.collect()
    gc.disable()
    try:
        x = matrix()
        view = x[0].reshape((3, 1))
        alive = [weakref.ref(x), weakref.ref(view)]
        for _ in range(100):
            x[0, 0] += 1.0
        del x
        assert alive[0]() is not None  # a view holds its tensor
        view[0] = 5.0
        del view
        assert [function() for function in alive] == [None, None]
    finally:
        gc.enable()


def test_a_tensor_forgets_views_that_are_gone():
    x = matrix()
    for _ in range(1000):
        x[0].reshape((3, 1))
    assert not x.link


def test_a_chain_of_views_is_as_long_as_the_user_makes_it():
    x = burn.zeros((2, 3), device=CPU)
    view = x
    for _ in range(20_000):
        view = view.T
    view[0, 1] = 1.0
    assert x.tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]


# In threads.


@pytest.mark.parametrize("device", DEVICES)
def test_writes_of_threads_to_different_positions_are_not_lost(device):
    count = 20
    x = burn.zeros((count, 5), device=device)
    barrier = threading.Barrier(count)

    def work(number):
        barrier.wait()
        for position in range(5):
            x[number, position] = 1.0 + number

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.tolist() == [[1.0 + number] * 5 for number in range(count)]


def test_views_that_are_made_during_writes_show_the_last_one():
    x = burn.zeros((50, 40), device=CPU)
    stop = threading.Event()
    made = []

    def look():
        while not stop.is_set():
            made.append(x.T.reshape((-1,)))  # NumPy copies here
            made.append(x[:, 1])
            del made[:-20]

    readers = [threading.Thread(target=look) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(300):
        x[number % 50] = float(number)
    stop.set()
    for reader in readers:
        reader.join()
    expected = x.numpy()
    for view in made:
        shown = view.numpy()
        assert (shown == (expected[:, 1] if shown.size == 50 else expected.T.reshape(-1))).all()


# Under autodiff.


def test_views_of_a_tracked_tensor_are_tracked_through_writes():
    x = burn.asarray([1.0, 2.0, 3.0], device=TRACKED).require_grad()
    y = x * x
    row = y[:2]
    row[1] = 10.0 * x[0]
    y[0] *= 3.0
    assert row.tolist() == [3.0, 10.0]
    assert x.grad((burn.sum(row) + y[2]).backward()).tolist() == [16.0, 0.0, 6.0]


def test_a_tracked_value_makes_the_tensor_and_its_views_tracked():
    w = burn.asarray(2.0, device=TRACKED).require_grad()
    x = burn.zeros(3, device=CPU)
    view = x[1:]
    x[1] = w * 3.0
    assert x.is_tracked
    assert view.is_tracked
    assert w.grad(burn.sum(view).backward()).item() == 3.0


@pytest.mark.parametrize("inside", [False, True])
def test_a_leaf_and_its_views_refuse_writes(inside):
    leaf = matrix(TRACKED).require_grad()
    targets = [leaf, leaf[0], leaf.T, leaf.reshape((6,))[1:]]
    with burn.no_grad() if inside else warnings.catch_warnings():
        for target in targets:
            with pytest.raises(burn.AutodiffError, match="leaf"):
                target[0] = 1.0
            with pytest.raises(burn.AutodiffError, match="leaf"):
                operator.iadd(target, 1.0)
    assert leaf.tolist() == matrix().tolist()


def test_a_write_to_a_tracked_tensor_inside_no_grad_is_an_error():
    leaf = matrix(TRACKED).require_grad()
    y = leaf * 2.0
    row = y[0]
    with burn.no_grad():
        for target in (y, row):
            with pytest.raises(burn.AutodiffError, match="no_grad"):
                target[0] = 1.0
            with pytest.raises(burn.AutodiffError, match="no_grad"):
                operator.imul(target, 2.0)
        untracked = leaf * 2.0
        untracked[0] = 0.0
    assert not untracked.is_tracked
    assert leaf.grad(burn.sum(y).backward()).tolist() == [[2.0] * 3] * 2


def test_a_view_that_was_made_inside_no_grad_stays_untracked():
    leaf = matrix(TRACKED).require_grad()
    y = leaf * 2.0
    with burn.no_grad():
        row = y[0]
    y += 1.0
    assert y.is_tracked
    assert not row.is_tracked
    assert row.tolist() == [3.0, 5.0, 7.0]


def test_copies_and_pickles_of_a_leaf_are_leaves():
    leaf = matrix(TRACKED).require_grad()
    for copied in (copy.copy(leaf), copy.deepcopy(leaf), pickle.loads(pickle.dumps(leaf))):
        assert copied is not leaf
        assert copied.is_require_grad
        assert copied.tolist() == leaf.tolist()
        gradients = burn.sum(copied * 2.0).backward()
        assert copied.grad(gradients).tolist() == [[2.0] * 3] * 2
        assert leaf.grad(gradients) is None


def test_a_copy_of_a_computed_tensor_is_tracked_and_what_would_lose_the_graph_is_an_error():
    leaf = matrix(TRACKED).require_grad()
    y = leaf * 2.0
    copied = copy.copy(y)
    copied[0] = 0.0
    assert y.tolist()[0] == [2.0, 4.0, 6.0]
    for function in (copy.deepcopy, pickle.dumps):
        with pytest.raises(burn.AutodiffError, match="detach"):
            function(y)
    assert leaf.grad(burn.sum(copied).backward()).tolist() == [[0.0] * 3, [2.0] * 3]


def test_one_deepcopy_copies_a_tensor_once():
    x = matrix()
    first, second = copy.deepcopy([x, x])
    assert first is second


# Random programs.

KEYS = st.sampled_from(
    [0, -1, slice(None), slice(1, None), slice(None, None, -1), slice(None, None, 2), ..., None]
)


@given(st.data())
def test_random_writes_do_what_numpy_does(data):
    array = np.arange(24.0).reshape(2, 3, 4)
    x = burn.asarray(array, device=CPU)
    ours, theirs = [x], [array]
    for _ in range(data.draw(st.integers(2, 8))):
        index = data.draw(st.integers(0, len(ours) - 1))
        target, reference = ours[index], theirs[index]
        action = data.draw(st.sampled_from(["index", "transpose", "set", "add"]))
        if action == "index":
            key = data.draw(KEYS)
            if reference.ndim or key in (..., None):
                ours.append(target[key])
                theirs.append(reference[(key, ...) if key is not ... else ...])
        elif action == "transpose":
            ours.append(target.transpose())
            theirs.append(reference.transpose())
        elif action == "set":
            number = float(data.draw(st.integers(-9, 9)))
            target[...] = number
            reference[...] = number
        else:
            target += 1.0
            reference += 1.0
        assert all(
            tensor.tolist() == other.tolist() for tensor, other in zip(ours, theirs, strict=True)
        )


@pytest.mark.parametrize("is_seen", [False, True], ids=["in place", "in a copy"])
@pytest.mark.parametrize("device", DEVICES)
def test_a_tensor_takes_the_device_of_a_constant_of_the_autodiff_device(device, is_seen):
    x = burn.zeros(3, device=device)
    other = x.detach() if is_seen else None
    view = x[1:]
    tracking = burn.Device(device).autodiff()
    x[:2] = burn.ones(2, device=tracking)
    assert x.device is tracking
    assert view.device is tracking
    assert x.tolist() == [1.0, 1.0, 0.0]
    assert other is None or other.tolist() == [0.0] * 3


@pytest.mark.parametrize("value", [[300], [1, -129], np.array([300]), (np.int64(300),)])
def test_numbers_that_do_not_fit_are_refused_in_a_list_as_they_are_alone(value):
    x = burn.zeros(2, dtype="int8", device=CPU)
    with pytest.raises(burn.ScalarRangeError, match="does not fit int8"):
        x[:] = value
    assert x.tolist() == [0, 0]
