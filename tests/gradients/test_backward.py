"""The backward pass: retained graphs, wanted inputs, several roots, cuts, and what fails in it."""

import contextlib
import gc
import threading
import weakref

import numpy as np
import pytest

import burn
from burn.autodiff import Autodiff, Capture, backward_all, custom_node, recording
from burn.autodiff.graph import Node
from burn.device_id import DeviceId
from burn.ops import Part
from burn.ops.parts import Parts
from burn.testing import MockDevice, mock_backend

CPU = burn.Device("cpu")
TRACKED = CPU.autodiff()
CHECKPOINTING = TRACKED.gradient_checkpointing()


def leaf(values, device=TRACKED, **options):
    return burn.asarray(values, device=device, **options).require_grad()


def nodes():
    """The number of nodes of graphs that are alive."""
    return sum(issubclass(type(obj), Node) for obj in gc.get_objects())


# Where it starts.


def test_a_number_is_the_cotangent_of_every_element():
    x = leaf([1.0, 2.0])
    for cotangent in (3.0, 3, np.float32(3.0)):
        assert x.grad((x * x).backward(cotangent)).tolist() == [6.0, 12.0]
    assert np.isnan(x.grad((x * x).backward(float("nan"))).numpy()).all()
    with pytest.raises(burn.OperandTypeError, match="cotangent must be a tensor or a number"):
        (x * x).backward("1")


def test_the_error_without_a_cotangent_says_what_burn_does():
    x = leaf([1.0, 2.0])
    with pytest.raises(burn.ShapeError, match=r"backward\(1\.0\) gives what burn's backward\(\)"):
        (x * x).backward()
    assert x.grad((x * x).backward(1.0)).tolist() == x.grad((x * x).sum().backward()).tolist()


# Retained graphs.


@pytest.mark.parametrize("device", [TRACKED, CHECKPOINTING], ids=str)
def test_a_retained_graph_gives_the_same_gradients_again(device):
    x = leaf([0.5, 2.0], device)
    values, indices = burn.sort(burn.tanh(x) * x), burn.exp(x)
    y = burn.sum(values * indices)
    first = x.grad(y.backward(retain_graph=True)).tolist()
    assert x.grad(y.backward(retain_graph=True)).tolist() == first
    assert x.grad(y.backward()).tolist() == first
    with pytest.raises(burn.AutodiffError, match="Pass retain_graph=True to the earlier one"):
        y.backward()


def test_two_outputs_share_a_retained_graph():
    x = leaf([2.0])
    shared = x * x
    first, second = shared * 3, burn.exp(shared)
    assert x.grad(first.backward(retain_graph=True)).tolist() == [12.0]
    np.testing.assert_allclose(x.grad(second.backward()).numpy(), 4 * np.exp(4.0), rtol=1e-6)
    with pytest.raises(burn.AutodiffError, match="freed"):
        first.backward()


def test_a_retained_graph_serves_several_threads():
    x = leaf([0.5], CHECKPOINTING)
    y = burn.exp(burn.tanh(x) * 2).sum()
    expected = x.grad(y.backward(retain_graph=True)).item()
    found = []

    def work():
        found.extend(x.grad(y.backward(retain_graph=True)).item() for _ in range(50))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 200


# Retained gradients.


def test_the_gradient_of_a_tensor_that_is_no_leaf_is_kept_on_demand():
    x = leaf([1.0, 3.0])
    y = x * x
    z = burn.exp(y) * 0
    y.retain_grad()
    x.retain_grad()  # of a leaf it changes nothing
    gradients = (y * 5 + z).sum().backward()
    assert y.grad(gradients).tolist() == [5.0, 5.0]
    assert x.grad(gradients).tolist() == [10.0, 30.0]
    assert y.grad_remove(gradients).tolist() == [5.0, 5.0]
    assert y.grad(gradients) is None
    y.grad_replace(gradients, burn.zeros(2, device=CPU))
    assert y.grad(gradients).tolist() == [0.0, 0.0]
    with pytest.raises(burn.AutodiffError, match=r"no leaf.*retain_grad\(\)"):
        z.grad(gradients)


def test_a_retained_gradient_of_a_tensor_without_influence_is_none():
    x = leaf([1.0, 3.0])
    y, unused = x * x, x * 2
    for item in (y, unused):
        item.retain_grad()
    gradients = y.sum().backward()
    assert unused.grad(gradients) is None
    _, indices = burn.topk(x, 1)
    assert indices.grad(gradients) is None  # integers are constants


def test_what_is_retained_belongs_to_the_value_at_that_time():
    x = leaf([1.0, 3.0])
    y = x * x
    y.retain_grad()
    y[0] = 7.0
    gradients = (y * 5).sum().backward()
    with pytest.raises(burn.AutodiffError, match="no leaf"):
        y.grad(gradients)
    assert x.grad(gradients).tolist() == [0.0, 30.0]


def test_a_gradient_cannot_be_kept_of_what_has_none():
    x = leaf([1.0])
    y = x * 2
    with pytest.raises(burn.AutodiffError, match="not tracked"):
        y.detach().retain_grad()
    with pytest.raises(burn.OperandTypeError, match="does not track"):
        y.inner().retain_grad()
    y.backward()
    with pytest.raises(burn.AutodiffError, match="freed"):
        y.retain_grad()


def test_the_gradient_of_a_constant_is_none():
    x = leaf([1.0])
    gradients = (x * 2).backward()
    constant = burn.ones(1, device=TRACKED)
    assert constant.grad(gradients) is None
    assert constant.grad_remove(gradients) is None
    with pytest.raises(burn.AutodiffError, match="not tracked"):
        constant.grad_replace(gradients, burn.ones(1, device=CPU))
    with pytest.raises(burn.OperandTypeError, match="does not track"):
        burn.ones(1, device=CPU).grad(gradients)


# Wanted inputs.


@pytest.mark.parametrize("device", [TRACKED, CHECKPOINTING], ids=str)
def test_gradients_of_wanted_inputs_are_those_of_a_whole_pass(device):
    a, b, c, unused = (leaf(values, device) for values in ([0.5, 2.0], [3.0, 1.0], [1.0], [1.0]))

    def build():
        hidden = burn.concat([a * b, burn.exp(b)]) * c
        values, _ = burn.topk(hidden, 3)
        return hidden, (values * values).sum()

    hidden, loss = build()
    hidden.retain_grad()
    whole = loss.backward()
    for wanted in ([a], [b], [c], [a, c], [a, b, c]):
        hidden, loss = build()
        gradients = loss.backward(inputs=wanted)
        assert len(gradients) == len(wanted)
        for item in (a, b, c):
            if any(item is other for other in wanted):
                assert item.grad(gradients).tolist() == item.grad(whole).tolist()
            else:
                assert item not in gradients
                assert item.grad(gradients) is None
    hidden, loss = build()
    gradients = loss.backward(inputs=[hidden, a, unused])
    assert hidden.grad(gradients).shape == (4,)
    assert a.grad(gradients).tolist() == a.grad(whole).tolist()
    assert unused.grad(gradients) is None
    assert list(gradients) == [a]


def test_nothing_is_visited_or_freed_that_does_not_lead_to_an_input():
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    called = []
    x.register_hook(lambda gradient: called.append("x"))
    hidden = burn.exp(x)
    loss = (hidden * w).sum()
    gradients = loss.backward(inputs=[w])
    assert called == []
    np.testing.assert_allclose(w.grad(gradients).numpy(), np.exp([1.0, 2.0]), rtol=1e-6)
    with pytest.raises(burn.AutodiffError, match="freed"):
        loss.backward(inputs=[x])
    assert x.grad(hidden.sum().backward()) is not None


def test_rules_compute_only_what_is_wanted(monkeypatch):
    x, w = leaf(np.ones((2, 3), "float32")), leaf(np.ones((3, 4), "float32"))
    table = TRACKED.ops.below
    products = []
    plain = table.matmul
    monkeypatch.setattr(table, "matmul", lambda *args: products.append(1) or plain(*args))
    loss = (x @ w).sum()
    products.clear()
    loss.backward(inputs=[w], retain_graph=True)
    assert len(products) == 1
    loss.backward()
    assert len(products) == 3


def test_a_pass_may_stop_and_go_on():
    x = leaf([1.0, 2.0])
    hidden = burn.exp(x)
    head = hidden * hidden
    first = head.sum().backward(inputs=[hidden])
    assert x.grad(first) is None
    second = hidden.backward(hidden.grad(first))
    np.testing.assert_allclose(x.grad(second).numpy(), 2 * np.exp([2.0, 4.0]), rtol=1e-5)


def test_an_input_may_lead_to_another_one():
    x = leaf([1.0, 2.0])
    first = x * 3
    second = first * first
    gradients = second.sum().backward(inputs=[second, first, x])
    assert [item.grad(gradients).tolist() for item in (second, first, x)] == [
        [1.0, 1.0],
        [6.0, 12.0],
        [18.0, 36.0],
    ]


def test_an_output_may_be_its_own_input():
    x = leaf([1.0, 2.0])
    y = x * 3
    assert y.grad(y.backward(2.0, inputs=[y])).tolist() == [2.0, 2.0]
    assert x.grad(y.backward(1.0)).tolist() == [3.0, 3.0]
    assert x.grad(x.backward(1.0, inputs=[x])).tolist() == [1.0, 1.0]


def test_inputs_must_be_tracked_tensors():
    x = leaf([1.0])
    y = x * 2
    for wrong in (burn.ones(1, device=TRACKED), burn.ones(1, device=CPU), x.detach()):
        with pytest.raises(burn.AutodiffError, match="an input of backward depends on no leaf"):
            y.backward(inputs=[wrong])
    for wrong in (x, [], [1.0], "x"):
        with pytest.raises(burn.OperandTypeError, match="backward"):
            y.backward(inputs=wrong)
    assert x.grad(y.backward()).tolist() == [2.0]  # a refused call frees nothing


def test_an_input_may_be_on_another_device():
    x = leaf([1.0, 2.0], burn.Device("pure").autodiff())
    y = (x * 3).to_device(TRACKED)
    loss = (y * y).sum()
    gradients = loss.backward(inputs=[x, y])
    assert x.grad(gradients).tolist() == [18.0, 36.0]
    assert x.grad(gradients).device is burn.Device("pure")
    assert y.grad(gradients).device is CPU


# Failures.


def failing(monkeypatch, name, error):
    """Let an op fail in gradient rules, with an error or with an exception of a class."""

    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(TRACKED.ops.below, name, fail)


def test_a_failure_in_a_rule_names_the_op(monkeypatch):
    x, w = leaf(np.ones((2, 3), "float32")), leaf(np.ones((3, 4), "float32"))
    y = (x @ w).sum()
    failing(monkeypatch, "matmul", ValueError("broken"))
    with pytest.raises(burn.ExecutionError) as caught:
        y.backward()
    assert str(caught.value) == (
        "gradient of matmul([2, 3], [3, 4]): cpu failed with ValueError: broken"
    )
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_failure_for_want_of_memory_is_one(monkeypatch):
    x = leaf([1.0, 2.0])
    y = burn.sum(x * burn.ones(2, device=CPU), axis=0)
    failing(monkeypatch, "multiply", MemoryError("8 bytes"))
    with pytest.raises(burn.OutOfMemoryError, match=r"gradient of multiply\(\[2\], constant\)"):
        y.backward()


def test_an_error_of_burns_keeps_its_class_and_names_both_ops(monkeypatch):
    x = leaf([1.0, 2.0])
    error = burn.ShapeError("shapes differ", operation="multiply(...)")
    y = (x * x).sum()
    failing(monkeypatch, "multiply", error)
    with pytest.raises(burn.ShapeError) as caught:
        y.backward()
    assert caught.value is error
    assert str(error) == "gradient of multiply([2], [2]): multiply(...): shapes differ"


def test_a_pass_after_one_that_failed_says_why(monkeypatch):
    x = leaf([1.0, 2.0])

    def build():
        return burn.exp(x * x).sum()

    y = build()
    with monkeypatch.context() as patch:
        failing(patch, "add", MemoryError("8 bytes"))
        with pytest.raises(burn.OutOfMemoryError, match=r"gradient of multiply"):
            y.backward()
    with pytest.raises(burn.AutodiffError) as caught:
        y.backward()
    message = str(caught.value)
    assert "a backward pass that failed" in message
    assert "gradient of multiply([2], [2]): sum of gradients: cpu has too little memory" in message
    assert "Compute the output again" in message
    y = build()
    assert y.backward()[x].tolist() == pytest.approx([2 * np.e, 4 * np.exp(4.0)])


def test_a_retained_graph_survives_a_failure(monkeypatch):
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    with monkeypatch.context() as patch:
        failing(patch, "add", MemoryError("8 bytes"))
        with pytest.raises(burn.OutOfMemoryError):
            y.backward(retain_graph=True)
    assert x.grad(y.backward()).tolist() == [2.0, 4.0]


def test_an_interrupt_arrives_as_it_is(monkeypatch):
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    with monkeypatch.context() as patch:
        failing(patch, "add", KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            y.backward()
    with pytest.raises(burn.AutodiffError, match="failed: KeyboardInterrupt"):
        y.backward()


def test_a_backend_that_fails_in_backward_is_named():
    with burn.registered(mock_backend("acme", [MockDevice("npu", memory=4000)])):
        x = leaf(np.ones(200, "float32"), burn.Device("acme").autodiff())
        y = burn.exp(x).sum()
        rest = burn.ones(500, device="acme")
        with pytest.raises(burn.OutOfMemoryError, match="gradient of"):
            y.backward()
        del rest


def test_a_cotangent_that_does_not_fit_in_memory_is_an_error_of_burns(monkeypatch):
    x = leaf([1.0, 2.0])
    y = x * x
    failing(monkeypatch, "full", MemoryError)
    with pytest.raises(burn.OutOfMemoryError, match="backward: cpu has too little memory"):
        y.backward(1.0)


# Several roots, cuts, other tables: for transforms, on primitives.


@pytest.fixture
def autodiff():
    return Autodiff(CPU.backend)


DEVICE = DeviceId(0, 0)


def test_one_pass_starts_at_several_outputs(autodiff):
    ops = autodiff.for_device(DEVICE)
    x = autodiff.require_grad(np.array([1.0, 2.0]), DEVICE)
    first = ops.multiply(x, x)
    second = ops.exp(first)
    gradients = backward_all(
        [second, first, first, x, second], [one(3), one(5), one(7), one(11), None]
    )
    expected = (3 * np.exp([1.0, 4.0]) + 12) * [2.0, 4.0] + 11
    np.testing.assert_allclose(gradients.get(x.node), expected)
    with pytest.raises(burn.AutodiffError, match="freed"):
        backward_all([first], [one(1)])


def one(value):
    return np.array([value, value], float)


def test_a_pass_stops_at_a_cut(autodiff):
    ops = autodiff.for_device(DEVICE)
    x, w = (autodiff.require_grad(np.array([1.0, 2.0]), DEVICE) for _ in range(2))
    hidden = ops.multiply(x, x)
    y = ops.multiply(hidden, w)
    gradients = backward_all([y], [one(1)], cut={hidden.node})
    assert gradients.get(x.node) is None
    assert gradients.get(w.node).tolist() == [1.0, 4.0]
    assert gradients.get(hidden.node).tolist() == [1.0, 2.0]
    assert autodiff.grad(x, autodiff.backward(hidden, 1.0)).tolist() == [2.0, 4.0]


def test_rules_compute_in_another_table_on_demand(autodiff):
    outer = Autodiff(autodiff)
    ops, above = autodiff.for_device(DEVICE), outer.for_device(DEVICE)
    x = autodiff.require_grad(np.array([1.0, 2.0]), DEVICE)
    y = ops.multiply(x, x)
    start = autodiff.require_grad(np.array([3.0, 4.0]), DEVICE)
    tables = []

    def lift(table):
        tables.append(table)
        return ops

    gradients = autodiff.backward(y, start, lift=lift)
    assert set(tables) == {ops.below}
    result = autodiff.grad(x, gradients)
    assert autodiff.is_tracked(result)
    assert autodiff.grad(start, autodiff.backward(result, 1.0)).tolist() == [2.0, 4.0]
    assert (outer.level, autodiff.level) == (1, 0)
    assert above.below is ops


def test_decorators_of_a_decorator_share_its_strategy(autodiff):
    outer = Autodiff(autodiff)
    table = outer.for_device(DEVICE, checkpointing=True)
    assert table.below is autodiff.for_device(DEVICE, checkpointing=True)


def test_gradients_are_read_at_their_own_level(autodiff):
    outer = Autodiff(autodiff)
    x = autodiff.require_grad(np.array([1.0, 2.0]), DEVICE)
    gradients = autodiff.backward(autodiff.for_device(DEVICE).multiply(x, x), 1.0)
    for read in (outer.grad, outer.grad_remove):
        with pytest.raises(burn.AutodiffError, match="under 1 decorators for a tensor under 2"):
            read(outer.require_grad(x, DEVICE), gradients)


def test_a_call_that_is_no_op_has_a_gradient(autodiff, monkeypatch):
    ops = autodiff.for_device(DEVICE)
    x = autodiff.require_grad(np.array([1.0, 2.0]), DEVICE)
    w = autodiff.require_grad(np.array([1.0, 2.0]), DEVICE)
    seen = []

    def vjp(table, cotangents):
        seen.append(
            (table, [None if cotangent is None else cotangent.tolist() for cotangent in cotangents])
        )
        if len(seen) == 2:
            raise ValueError("broken")
        return table.multiply(cotangents[0], 10.0), None

    def build():
        return custom_node(
            autodiff.tensor_type, [x.node, w.node], [one(1), one(2)], vjp, ops.below, "mine"
        )

    first, second = build()
    gradients = autodiff.backward(ops.multiply(first, 2.0), 1.0)
    assert seen == [(ops.below, [[2.0, 2.0], None])]
    assert gradients.get(x.node).tolist() == [20.0, 20.0]
    assert gradients.get(w.node) is None
    first, second = build()
    with pytest.raises(burn.ExecutionError, match=r"gradient of mine\(\[2\], \[2\]\): cpu failed"):
        autodiff.backward(second, 1.0)


def test_what_is_not_recorded_can_be_noted(autodiff):
    ops = autodiff.for_device(DEVICE)
    checkpointing = autodiff.for_device(DEVICE, checkpointing=True)
    x, y, z, unused = (autodiff.require_grad(one(value), DEVICE) for value in (1, 2, 3, 4))
    calls = [
        (lambda: ops.exp(x), [x]),
        (lambda: ops.multiply(x, y), [x, y]),
        (lambda: ops.multiply(one(1), y), [y]),
        (lambda: ops.concat([x, one(1), y], axis=0), [x, y]),
        (lambda: ops.where(np.array([True, False]), x, y), [x, y]),
        (lambda: ops.reshape(x, shape=(2, 1)), [x]),
        (lambda: ops.sum(x, axis=(0,), keepdims=False, dtype=burn.float64), [x]),
        (lambda: ops.sort(x, axis=0, descending=False), [x]),
        (lambda: ops.rms_norm(x, y, epsilon=1e-5), [x, y]),
        (lambda: checkpointing.multiply(x, y), [x, y]),
        (lambda: ops.greater(x, y), []),
        (lambda: ops.exp(one(1)), []),
        (lambda: ops.exp(ops.multiply(z, ops.multiply(y, z))), [y, z]),
    ]
    for call, expected in calls:
        capture = Capture(1)
        token = recording.set(capture)
        result = call()
        recording.reset(token)
        results = result if isinstance(result, tuple) else (result,)
        assert not any(map(autodiff.is_tracked, results))
        noted = capture.tensors.get(autodiff.tensor_type, {})
        assert set(noted) == {tensor.node for tensor in expected}
        assert all(noted[tensor.node] is tensor for tensor in expected)
    del unused


def test_levels_above_those_whose_operands_are_noted_record(autodiff):
    outer = Autodiff(autodiff)
    x = autodiff.require_grad(one(2), DEVICE)
    y = outer.require_grad(x, DEVICE)
    capture = Capture(1)
    token = recording.set(capture)
    result = outer.for_device(DEVICE).multiply(y, y)
    recording.reset(token)
    assert outer.is_tracked(result)
    assert not autodiff.is_tracked(result.primitive)
    assert list(capture.tensors) == [autodiff.tensor_type]
    assert outer.grad(y, outer.backward(result, 1.0)).primitive.tolist() == [4.0, 4.0]


def test_what_would_lose_a_gradient_is_refused_where_operands_are_noted():
    x = leaf([1.0, 2.0])
    token = recording.set(Capture(1))
    try:
        with pytest.raises(burn.UnsupportedOpError, match="complex"):
            x.astype("complex64")
        with pytest.raises(burn.UnsupportedOpError, match="not differentiable"):
            burn.nextafter(x, x)
    finally:
        recording.reset(token)


# Memory.


def test_many_steps_with_retained_graphs_leave_nothing(many):
    x = leaf([1.0, 2.0])

    def steps(count):
        for _ in range(count):
            y = x * x
            y.retain_grad()
            loss = burn.exp(y) * x
            loss.backward(1.0, retain_graph=True)
            gradients = loss.backward(1.0, retain_graph=True, inputs=[y])
            assert gradients[y] is not None

    steps(10)
    gc.collect()
    gc.disable()
    try:
        before, objects = nodes(), len(gc.get_objects())
        steps(many)
        assert nodes() == before
        assert len(gc.get_objects()) < objects + 100
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_pass_that_failed_leaves_nothing(monkeypatch):
    x = leaf([1.0, 2.0])
    failing(monkeypatch, "add", MemoryError)

    def step():
        y = burn.exp(x * x)
        for _ in range(2):
            with contextlib.suppress(burn.BurnError):
                y.backward(1.0)

    step()
    gc.collect()
    gc.disable()
    try:
        before = nodes()
        for _ in range(100):
            step()
        assert nodes() == before
    finally:
        gc.enable()


# Gradients of slices, which a pass joins.

SLICED = {
    "neighbours": [np.s_[0:2], np.s_[2:3], np.s_[3:]],
    "with gaps": [np.s_[1], np.s_[3]],
    "in another order": [np.s_[3:], np.s_[0:2]],
    "overlapping": [np.s_[1:], np.s_[:-1], np.s_[1:3]],
    "the same twice": [np.s_[1:3], np.s_[1:3], np.s_[0]],
    "all": [np.s_[:], np.s_[0]],
    "along two axes": [np.s_[0], np.s_[:, 1], np.s_[:, 2:]],
    "of two axes": [np.s_[0, 1], np.s_[1:3, 1:], np.s_[0, 1:]],
    "with steps": [np.s_[::2], np.s_[1::2], np.s_[::-1]],
    "without elements": [np.s_[2:2], np.s_[:, 1:1], np.s_[3:, :0]],
}


@pytest.mark.parametrize("uses_whole", [False, True])
@pytest.mark.parametrize("keys", SLICED.values(), ids=SLICED)
def test_gradients_of_slices_add_up(keys, uses_whole):
    values = np.arange(12.0, dtype=np.float32).reshape(4, 3) / 8
    x = leaf(values)
    total = (x * x).sum() * uses_whole
    expected = 2 * values * uses_whole
    for number, key in enumerate(keys, 1):
        weights = np.arange(1.0, values[key].size + 1, dtype=np.float32).reshape(values[key].shape)
        expected[key] += weights * number
        total = total + (x[key] * burn.asarray(weights, device=CPU) * number).sum()
    np.testing.assert_array_equal(x.grad(total.backward()).numpy(), expected)


def test_gradients_of_slices_reach_tensors_that_are_no_leaves():
    x = leaf([1.0, 2.0, 3.0])
    y = x * x
    y.retain_grad()
    gradients = (y[0] * 5 + (y[1:] * y[:2]).sum()).backward()
    assert gradients[y].tolist() == [9.0, 10.0, 4.0]
    assert x.grad(gradients).tolist() == [18.0, 40.0, 24.0]


def test_the_gradient_of_a_slice_of_a_slice_has_a_gradient():
    def cubes(x):
        return (x[1:][:2] ** 3).sum() + x[2] ** 3

    x = burn.asarray([1.0, 2.0, 3.0, 4.0], device=CPU)
    assert burn.grad(cubes)(x).tolist() == [0.0, 12.0, 54.0, 0.0]
    assert burn.grad(lambda x: burn.grad(cubes)(x).sum())(x).tolist() == [0.0, 12.0, 36.0, 0.0]


def test_a_pass_joins_neighbouring_slices_by_one_op():
    x = leaf(np.ones((50, 2)))
    total = sum((row * 2).sum() for row in burn.unstack(x))
    with burn.profile(show=False) as profile:
        gradients = total.backward()
    names = [event.name for event in profile.events]
    assert names.count("concat") == 1
    assert not {"slice_assign", "add", "pad"} & set(names)
    assert (gradients[x].numpy() == 2.0).all()


def test_a_pass_keeps_few_gradients_of_overlapping_slices():
    ops = CPU.ops
    parts, kept = Parts((8,), None), []
    for number in range(8):
        gradient = np.ones(7 - number % 3)
        kept.append(weakref.ref(gradient))
        parts.add(ops, Part(gradient, ((number % 2, len(gradient), 1),)))
        del gradient
        assert sum(function() is not None for function in kept) <= 2
    assert parts.joined(ops).tolist() == [4.0, 8.0, 8.0, 8.0, 8.0, 7.0, 5.0, 1.0]
