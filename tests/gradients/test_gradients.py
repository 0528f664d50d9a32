"""Gradients as a mapping; leaves and gradients that are copied and pickled; their norm."""

import copy
import io
import pickle
from collections.abc import Mapping

import numpy as np
import pytest

import burn
from burn.autodiff import Autodiff
from burn.device_id import DeviceId

CPU = burn.Device("cpu")
TRACKED = CPU.autodiff()
PURE = burn.Device("pure").autodiff()


def leaf(values, device=TRACKED, **options):
    return burn.asarray(values, device=device, **options).require_grad()


def pickled(x, protocol=None):
    return pickle.loads(pickle.dumps(x, protocol))


# A mapping.


def test_gradients_are_a_mapping_from_leaves():
    x, y, unused = leaf([1.0, 2.0]), leaf([[3.0], [4.0]]), leaf([1.0])
    hidden = x * y
    hidden.retain_grad()
    gradients = hidden.sum().backward()
    assert isinstance(gradients, burn.Gradients)
    assert isinstance(gradients, Mapping)
    assert len(gradients) == 2
    assert {x, y} == set(gradients) == set(gradients.keys())
    assert {name: gradient.tolist() for name, gradient in gradients.items()} == {
        x: [7.0, 7.0],
        y: [[3.0], [3.0]],
    }
    assert sorted(gradient.shape for gradient in gradients.values()) == [(2,), (2, 1)]
    assert x in gradients
    assert hidden in gradients
    assert gradients[hidden].shape == (2, 2)
    assert gradients.get(x).tolist() == [7.0, 7.0]
    for missing in (unused, x.detach(), x.inner(), x * 1, 3, None):
        assert missing not in gradients
        assert gradients.get(missing) is None
        assert gradients.get(missing, "nothing") == "nothing"
        with pytest.raises(burn.MissingGradientError, match="there is no gradient of this"):
            gradients[missing]
    with pytest.raises(KeyError):
        gradients[unused]


def test_gradients_equal_themselves_alone_and_can_be_keys():
    x = leaf([1.0])
    first, second = x.backward(), x.backward()
    assert first == first  # noqa: PLR0124 — what is under test
    assert first != second
    assert len({first, second}) == 2


def test_reading_removing_and_replacing_change_the_mapping():
    x = leaf([1.0, 2.0])
    gradients = (x * x).backward(1.0)
    x.grad_replace(gradients, burn.zeros(2, device=CPU))
    assert gradients[x].tolist() == [0.0, 0.0]
    assert x.grad_remove(gradients).tolist() == [0.0, 0.0]
    assert x not in gradients
    assert len(gradients) == 0
    for read in (x.grad, x.grad_remove, lambda found: x.grad_replace(found, x.inner())):
        with pytest.raises(burn.OperandTypeError, match="gradients must be what backward"):
            read({x: 1})


def test_a_gradient_is_replaced_by_one_of_its_dtype_and_shape():
    x = leaf([1.0, 2.0])
    gradients = (x * x).backward(1.0)
    for dtype in ("float64", "float16", "int32"):
        with pytest.raises(burn.DTypeError, match="for a tensor of float32"):
            x.grad_replace(gradients, burn.ones(2, device=CPU, dtype=dtype))
    with pytest.raises(burn.ShapeError, match="a gradient of shape"):
        x.grad_replace(gradients, burn.ones((2, 1), device=CPU))
    assert gradients[x].tolist() == [2.0, 4.0]


def test_leaves_without_a_tensor_are_still_there():
    def run():
        x = leaf([1.0, 2.0])
        return (x * x).backward(1.0)

    gradients = run()
    (x,) = gradients
    assert x.is_require_grad
    assert x.device is TRACKED
    assert x.detach().tolist() == [1.0, 2.0]
    assert gradients[x].tolist() == [2.0, 4.0]
    assert burn.global_norm(gradients).item() == pytest.approx(20**0.5)


def test_repr_lists_shapes():
    x, y = leaf([1.0, 2.0]), leaf(np.ones((2, 2), "float64"))
    assert repr(x.backward(1.0)) == "Gradients(float32[2])"
    assert repr(y.backward(1.0)) == "Gradients(float64[2, 2])"
    many = [leaf([1.0]) for _ in range(12)]
    assert repr(burn.concat(many).backward(1.0)).endswith("float32[1], ... 2 more)")


def test_map_gives_other_gradients_of_the_same_leaves():
    x, y = leaf([1.0, 2.0]), leaf([3.0], PURE)
    loss = (x * y.to_device(TRACKED)).sum()
    gradients = loss.backward()
    doubled = gradients.map(lambda gradient: gradient * 2)
    assert x.grad(doubled).tolist() == [6.0, 6.0]
    assert y.grad(doubled).tolist() == [6.0]
    assert y.grad(doubled).device is burn.Device("pure")
    assert x.grad(gradients).tolist() == [3.0, 3.0]

    def bad(gradient):
        return wrong

    for result, error in (
        (None, burn.OperandTypeError),
        (burn.ones(3, device=CPU), burn.ShapeError),
        (burn.ones(2, device=CPU, dtype="float64"), burn.DTypeError),
        (x, burn.AutodiffError),
    ):
        wrong = result
        with pytest.raises(error, match=r"bad in Gradients\.map returned"):
            (x * x).backward(1.0).map(bad)


def test_gradients_belong_to_leaves_of_one_level():
    x = leaf([1.0, 2.0])
    gradients = (x * x).backward(1.0)
    outer = Autodiff(TRACKED.backend)
    other = outer.require_grad(x.primitive, DeviceId(0, 0))
    with pytest.raises(burn.AutodiffError, match="decorators"):
        outer.grad(other, gradients.primitives)


def test_leaves_that_a_backend_made_are_in_the_mapping():
    primitive = TRACKED.backend.require_grad(np.array([1.0, 2.0], "float32"), TRACKED.id)
    x = burn.Tensor.from_primitive(primitive, TRACKED)
    gradients = (x * x).backward(1.0)
    ((found, gradient),) = gradients.items()
    assert found.is_require_grad
    assert gradient.tolist() == gradients[x].tolist() == [2.0, 4.0]


# Copies.


LEAVES = {
    "plain": lambda: leaf([1.0, 2.0]),
    "checkpointing": lambda: leaf([1.0, 2.0], TRACKED.gradient_checkpointing()),
    "scalar": lambda: leaf(np.float32(3.0)),
    "half": lambda: leaf([1.0, 2.0], dtype="float16"),
    "bfloat16": lambda: leaf([1.0, 2.0], dtype="bfloat16"),
    "empty": lambda: burn.zeros((0, 3), device=TRACKED).require_grad(),
    "of a view": lambda: burn.asarray([[1.0, 2.0], [3.0, 4.0]], device=TRACKED).T.require_grad(),
    "elsewhere": lambda: leaf([1.0, 2.0], PURE),
    "distributed": lambda: leaf([1.0]).set_distributed_params(3),
}
COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "nested": lambda x: copy.deepcopy({"a": [x]})["a"][0],
    **{
        f"protocol {number}": lambda x, number=number: pickled(x, number)
        for number in range(2, pickle.HIGHEST_PROTOCOL + 1)
    },
    "twice": lambda x: pickled(pickled(x)),
    "without gradients": burn.no_grad()(pickled),
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("kind", LEAVES)
def test_a_copy_of_a_leaf_is_a_leaf(kind, way):
    x = LEAVES[kind]()
    other = COPIES[way](x)
    assert other.is_require_grad
    assert other.device is x.device
    assert other.dtype is x.dtype
    assert other.detach().tolist() == x.detach().tolist()
    gradients = (other * x).sum().backward()
    assert other.grad(gradients).tolist() == x.detach().tolist()
    assert len(gradients) == 2


@pytest.mark.parametrize("way", [way for way in COPIES if way != "copy"])
def test_a_view_of_a_leaf_is_not_copied_without_its_gradient(way):
    x = leaf([1.0, 2.0])
    for view in (x[:], x[:1], x.reshape((2, 1)), x * 1):
        with pytest.raises(burn.AutodiffError, match=r"lose its graph.*\.detach\(\)"):
            COPIES[way](view)
        assert copy.copy(view).is_tracked


# Pickles of gradients.


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_leaf_and_gradients_that_are_pickled_apart_belong_together(protocol):
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0], PURE)
    unused = leaf([1.0])
    gradients = (x * y.to_device(TRACKED)).sum().backward()
    parameters = pickled([x, y, unused], protocol)
    loaded = pickled(gradients, protocol)
    assert isinstance(loaded, burn.Gradients)
    assert len(loaded) == 2
    for own in ([x, y, unused], parameters, pickled(parameters)):
        assert own[0].grad(loaded).tolist() == [3.0, 4.0]
        assert own[1].grad(loaded).tolist() == [1.0, 2.0]
        assert own[1].grad(loaded).device is burn.Device("pure")
        assert own[2].grad(loaded) is None
        assert own[0] in loaded
        assert own[2] not in loaded
    assert {tensor.shape for tensor in loaded} == {(2,)}
    assert all(item.is_require_grad for item in loaded)
    assert [loaded[item].tolist() for item in loaded] == [
        tensor.tolist() for tensor in loaded.values()
    ]
    again = pickled(loaded.map(lambda gradient: gradient * 2))
    assert parameters[0].grad(again).tolist() == [6.0, 8.0]
    assert parameters[0].grad_remove(again).tolist() == [6.0, 8.0]
    assert parameters[0].grad(again) is None
    parameters[1].grad_replace(again, burn.zeros(2, device="pure"))
    assert y.grad(again).tolist() == [0.0, 0.0]


def test_a_loaded_leaf_is_another_leaf():
    # Its gradients do not mix with those of the leaf that was pickled.
    x = leaf([1.0, 2.0])
    other = pickled(x)
    gradients = (x * 3 + other * 5).sum().backward()
    assert x.grad(gradients).tolist() == [3.0, 3.0]
    assert other.grad(gradients).tolist() == [5.0, 5.0]
    assert other.grad((x * 3).sum().backward()) is None


@pytest.mark.parametrize("copied", [pickled, copy.deepcopy], ids=["pickle", "deepcopy"])
def test_leaves_and_gradients_that_are_copied_together_are_the_same_leaves(copied):
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    gradients = (x * y).sum().backward()
    state = copied({"parameters": [x, y], "gradients": gradients})
    (first, second), loaded = state["parameters"], state["gradients"]
    assert first.grad(loaded).tolist() == [3.0, 4.0]
    assert second.grad(loaded).tolist() == [1.0, 2.0]
    assert set(loaded) == {first, second}
    assert first is not x


def test_a_copy_of_gradients_is_of_the_same_leaves():
    x = leaf([1.0, 2.0])
    gradients = (x * x).backward(1.0)
    other = copy.copy(gradients)
    assert list(other) == [x]
    x.grad_remove(other)
    assert x in gradients
    assert x not in other
    assert pickled(other) is not other
    assert len(pickled(other)) == 0
    assert x.grad(pickled(other)) is None


def test_gradients_of_another_process_load_where_their_device_is_missing():
    # A pool would wait forever for what cannot be loaded; reading it raises the reason.
    x = leaf([1.0], PURE)
    data = pickle.dumps((x * 2).backward(1.0))

    class Missing(pickle.Unpickler):
        def find_class(self, module, name):
            if (module, name) == ("burn.tensor.tensor", "_unpickle"):
                return lambda *arguments: refused
            return super().find_class(module, name)

    from burn.tensor.tensor import _Refused

    refused = object.__new__(_Refused)
    refused.arguments = ()
    refused.error = burn.DeviceUnavailableError("there is no such device")
    loaded = Missing(io.BytesIO(data)).load()
    with pytest.raises(burn.DeviceUnavailableError, match="no such device"):
        len(loaded)


# Norms.


@pytest.mark.parametrize("ord", [2, 1, 3, float("inf"), float("-inf"), 0])
def test_the_global_norm_is_that_of_all_elements_as_one_vector(ord):
    arrays = [np.array([[3.0, -4.0], [0.0, 1.0]]), np.array(2.5), np.array([-0.5])]
    expected = np.linalg.norm(np.concatenate([array.ravel() for array in arrays]), ord)
    tensors = [burn.asarray(array, device=CPU) for array in arrays]
    for tree in (tensors, tuple(tensors), {"a": tensors[0], "b": {"c": tensors[1:]}}):
        assert burn.global_norm(tree, ord=ord).item() == pytest.approx(expected)
    assert burn.global_norm(tensors[0]).item() == pytest.approx(26**0.5)


def test_the_global_norm_of_gradients_is_computed_where_they_are():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0], PURE)
    loss = (x * y.to_device(TRACKED)).sum()
    gradients = loss.backward()
    norm = burn.global_norm(gradients)
    assert norm.item() == pytest.approx(30**0.5)
    assert norm.device is next(iter(gradients.values())).device
    assert norm.shape == ()
    clipped = gradients.map(lambda gradient: gradient * (1.0 / norm.item()))
    assert burn.global_norm(clipped).item() == pytest.approx(1.0)


def test_the_global_norm_of_halves_is_accumulated_in_float32():
    x = burn.full(10_000, 300.0, dtype="float16", device=CPU)
    for item in (x, [x, x], [burn.ones(3, device=CPU), x]):
        norm = burn.global_norm(item)
        assert norm.dtype is burn.float32
    assert burn.global_norm(x).item() == pytest.approx(30_000.0)
    assert burn.global_norm([x, burn.ones(1, dtype="float64", device=CPU)]).dtype is burn.float64
    assert burn.global_norm(burn.ones(4, dtype="bfloat16", device=CPU)).item() == 2.0


def test_the_global_norm_has_a_gradient():
    x, y = leaf([3.0]), leaf([[4.0]])
    gradients = burn.global_norm([x, y]).backward()
    assert x.grad(gradients).tolist() == pytest.approx([0.6])


def test_a_global_norm_needs_tensors():
    for nothing in ([], {}, leaf([1.0]).detach().require_grad().backward(inputs=[leaf([1.0])])):
        with pytest.raises(burn.ArgumentError, match="global_norm: there is no tensor"):
            burn.global_norm(nothing)
    for wrong in (3.0, [1.0], "x"):
        with pytest.raises(burn.OperandTypeError, match="global_norm"):
            burn.global_norm(wrong)
