"""An error names the function that the user called, with what it got, on every device alike."""

import pickle

import pytest

import burn
import burn.nn.functional as F
from burn.backend import CheckedOps

DEVICES = [str(device.name) for device in burn.Device.enumerate()]


def ones(*shape, device="cpu"):
    return burn.ones(shape, device=device)


def message(call):
    with pytest.raises(burn.errors.BurnError) as raised:
        call()
    return str(raised.value)


@pytest.mark.parametrize(
    ("call", "beginning"),
    [
        (lambda: burn.topk(ones(3, 4), 9), "topk(float32[3, 4], 9): "),
        (lambda: burn.take(ones(3), ones(2), axis=0), "take(float32[3], float32[2], axis=0): "),
        (lambda: burn.linalg.matvec(ones(2, 3), ones(5)), "matvec"),
        (lambda: F.conv1d(ones(1, 2, 4), ones(1, 1, 2)), "conv1d(float32[1, 2, 4], float32[1, 1, "),
        (lambda: ones(3) + ones(2), "add(float32[3], float32[2]): "),
        (lambda: ones(3)[ones(2)], "indexing"),
        (lambda: burn.random.normal((2, -1), device="cpu"), "random.normal("),
        (lambda: burn.bitwise_invert(ones(2)), "bitwise_invert(float32[2]): "),
        (lambda: burn.apply_op("relu", "text"), "relu(str): "),
        (lambda: burn.zeros(1 << 50, device="cpu"), "zeros("),
    ],
)
def test_the_function_that_was_called_is_named(call, beginning):
    assert message(call).startswith(beginning)


def test_no_random_seed_or_offset_is_shown():
    text = message(lambda: burn.random.normal((2, -1), device="cpu"))
    assert "seed" not in text
    assert "offset" not in text


@pytest.mark.parametrize("transform", [burn.grad, burn.jacobian, burn.compile, lambda f: f])
def test_it_is_the_innermost_function_that_code_of_the_user_calls(transform):
    def loss(x):
        return burn.topk(x, 9).sum()

    assert "topk(float32[3], 9): k is 9" in message(lambda: transform(loss)(ones(3)))


def test_a_module_names_the_function_that_it_calls():
    assert message(lambda: burn.nn.Linear(3, 2, device="cpu")(ones(5))).startswith("linear(")


def test_a_default_that_was_not_given_is_not_shown():
    assert message(lambda: burn.topk(ones(3), 9, largest=False)).startswith(
        "topk(float32[3], 9, largest=False): "
    )


def test_an_argument_that_has_no_text_is_shown_by_its_type():
    class Silent:
        def __repr__(self):
            raise RuntimeError

    assert message(lambda: burn.topk(ones(3), Silent())).startswith("topk")


def test_an_error_keeps_its_text_when_it_is_pickled_inside_of_another_call():
    with pytest.raises(burn.errors.BurnError) as raised:
        burn.topk(ones(3), 9)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("call", "operation"),
    [
        (lambda x, i: x[i], "indexing(float32[3, 4], int64[1], axis=0)"),
        (lambda x, i: burn.take(x, i, axis=1), "take(float32[3, 4], int64[1], axis=1)"),
        (lambda x, i: F.embedding(x, i), "embedding(float32[3, 4], int64[1])"),
    ],
)
def test_an_index_out_of_range_has_one_text_on_every_device(device, call, operation):
    index = burn.asarray([2**31], device=device)
    operation = operation.replace("int64", index.dtype.name)
    found = message(lambda: call(ones(3, 4, device=device), index).numpy())
    assert found.startswith(f"{operation}: index {2**31} is out of range for an axis of length ")


def test_calls_that_wait_for_their_check_have_numbers_of_their_own():
    checked = CheckedOps()
    gather = checked.named("gather", lambda x: checked.number("gather"))
    first, second = gather(ones(2, 3).numpy()), gather(ones(5).numpy())
    assert checked.error(first, 7, 2).operation == "gather(float32[2, 3])"
    assert checked.error(second, 7, 5).operation == "gather(float32[5])"


def test_a_call_of_long_ago_is_not_taken_for_another():
    checked = CheckedOps()
    gather = checked.named("gather", lambda: checked.number("gather"))
    first = gather()
    for _ in range(5000):
        gather()
    assert checked.error(first, 7, 2).operation == "an earlier call"
