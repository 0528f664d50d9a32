"""Branches and loops: eager and in programs alike, with gradients, draws and errors."""

import dataclasses
import gc
import pickle
import weakref

import numpy as np
import pytest

import burn
from burn.ir import GraphIr, OperationIr, Program

CPU = burn.Device("cpu")
AUTODIFF = CPU.autodiff()
DEVICES = ("cpu", "torch/cpu", "opencl", "router/cpu")

ERRORS = burn.BurnError


def values(*numbers, device=CPU, dtype=burn.float32):
    return burn.asarray(numbers, dtype=dtype, device=device)


def scalar(number, device=CPU, dtype=None):
    return burn.asarray(number, dtype=dtype, device=device)


def listed(tree):
    """Containers with lists of numbers instead of tensors."""
    return burn.tree.map(
        lambda leaf: leaf.tolist() if isinstance(leaf, burn.Tensor) else leaf, tree
    )


def names_of(program):
    return [
        operation.name for operation in program.operations if isinstance(operation, OperationIr)
    ]


def bodies(program):
    return [
        operation.attributes["body"]
        for operation in program.operations
        if isinstance(operation, OperationIr) and operation.name == "scan"
    ]


def same(function, *arguments, others=()):
    """What a function gives, which a program of it gives to the bit, for other arguments too."""
    program = burn.ir.trace(function, *arguments)
    program.check()
    for given in (arguments, *others):
        expected = listed(function(*given))
        assert listed(program(*given)) == expected
        for saved in (Program.from_bytes(program.to_bytes()), Program.from_text(program.to_text())):
            leaves, _ = burn.tree.flatten((given, program.calling.captured))
            tensors = [leaf for leaf in leaves if isinstance(leaf, burn.Tensor)]
            found = [tensor.tolist() for tensor in saved(*tensors)]
            wanted = burn.tree.leaves(program(*given))
            assert found == [
                tensor.tolist() for tensor in wanted if isinstance(tensor, burn.Tensor)
            ]
    return program


# Values.


@pytest.mark.parametrize("device", DEVICES)
def test_cond_runs_one_function(device):
    def function(x):
        return burn.cond(
            x.sum() > 0, lambda x: {"a": x * 2, "b": 1}, lambda x: {"a": -x, "b": 2}, x
        )

    x = values(1, 2, 3, device=device)
    assert listed(function(x)) == {"a": [2, 4, 6], "b": 1}
    program = same(function, x, others=[(-x,)])
    assert names_of(program) == ["sum", "greater", "cond"]


def test_only_the_function_that_is_chosen_runs_outside_of_traces():
    called = []
    burn.cond(True, lambda: called.append(1), lambda: called.append(2))
    burn.cond(scalar(0) > 1, lambda: called.append(1), lambda: called.append(2))
    assert called == [1, 2]


def test_cond_with_a_python_boolean_in_a_trace_is_decided_there():
    program = burn.ir.trace(lambda x: burn.cond(True, burn.exp, burn.log, x), values(1, 2))
    assert names_of(program) == ["exp"]


def test_bodies_use_tensors_from_outside_of_them_and_of_the_program():
    weight = values(2, 3)

    def function(x):
        shift = x + 1
        return burn.cond(x.max() > 2, lambda: weight * x + shift, lambda: shift - weight)

    program = same(function, values(1, 2), others=[(values(1, 3),)])
    assert [item is weight for item in program.calling.captured] == [True]
    weight += 1.0
    assert listed(program(values(1, 3))) == listed(function(values(1, 3)))


@pytest.mark.parametrize("device", DEVICES)
def test_while_loop_runs_until_the_condition_is_false(device):
    def collatz(n):
        state = burn.while_loop(
            lambda state: state["n"] != 1,
            lambda state: {
                "n": burn.where(state["n"] % 2 == 0, state["n"] // 2, 3 * state["n"] + 1),
                "steps": state["steps"] + 1,
            },
            {"n": n, "steps": 0},
        )
        return state["steps"]

    n = scalar(6, device=device)
    assert collatz(n).item() == 8
    program = same(collatz, n, others=[(scalar(27, device=device),), (scalar(1, device=device),)])
    assert names_of(program) == ["while_loop"]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("device", DEVICES)
def test_scan_carries_and_stacks(device, reverse):
    def function(start, xs):
        def step(carry, x):
            total, count = carry
            total = total * 0.5 + x["a"] * x["b"]
            return (total, count + 1), {"total": total, "number": count}

        return burn.scan(step, (start, 0), xs, reverse=reverse)

    xs = {
        "a": burn.reshape(burn.arange(6, dtype=burn.float32, device=device), (3, 2)),
        "b": values(1, -2, 3, device=device),
    }
    (total, count), ys = function(values(8, 16, device=device), xs)
    assert total.tolist() == ([2.0, 3.75] if reverse else [11.0, 14.25])
    assert count.item() == 3
    assert ys["number"].tolist() == ([2, 1, 0] if reverse else [0, 1, 2])
    program = same(function, values(8, 16, device=device), xs)
    assert "scan" in names_of(program)


def test_scan_over_nothing_has_the_shapes_of_what_it_would_stack():
    def function(xs):
        return burn.scan(lambda c, x: (c + x, (x * c, 1)), scalar(1.0), xs)

    empty = burn.zeros((0,), device=CPU)
    carry, (products, ones) = function(empty)
    assert carry.item() == 1.0
    assert products.shape == ones.shape == (0,)
    assert ones.dtype is burn.int64
    same(function, empty)


def test_scan_with_a_length_and_no_xs():
    def function(x):
        return burn.scan(lambda c, _: (c * 2, None), x, None, 4)

    assert listed(function(scalar(3.0))) == (48.0, None)
    same(function, scalar(3.0))


@pytest.mark.parametrize("device", DEVICES)
def test_fori_loop_with_integers_is_a_scan_and_with_tensors_a_while_loop(device):
    def known(x):
        return burn.fori_loop(1, 4, lambda i, y: y * x + i, x)

    def unknown(n, x):
        return burn.fori_loop(1, n, lambda i, y: y * x + i, x)

    x, n = values(2, 3, device=device), scalar(4, device=device)
    assert known(x).tolist() == unknown(n, x).tolist()
    assert "scan" in names_of(same(known, x))
    assert "while_loop" in names_of(same(unknown, n, x, others=[(scalar(0, device=device), x)]))


def test_the_index_of_fori_loop_is_a_tensor_of_the_dtype_of_the_bounds():
    found = []
    for bounds in ((0, 1), (scalar(0, dtype=burn.int32), 1), (0, scalar(1, dtype=burn.int32))):
        burn.fori_loop(*bounds, lambda i, x: found.append(i.dtype) or x, scalar(0.0))
    assert found == [burn.int64, burn.int32, burn.int32]


def test_bodies_have_branches_and_loops_of_their_own():
    def function(x, n):
        def outer(total, row):
            inner = burn.fori_loop(
                0, 3, lambda i, y: burn.cond(y.sum() > i, lambda: y - row, lambda: y + total), row
            )
            return burn.while_loop(lambda z: z.max() < n, lambda z: z * 2 + 1, inner), inner

        return burn.scan(outer, x[0], x)

    x = burn.reshape(burn.arange(6, dtype=burn.float32, device=CPU), (3, 2))
    same(function, x, scalar(20.0), others=[(-x, scalar(3.0))])


def test_a_module_is_a_layer_of_a_scan():
    layer = burn.nn.Linear(3, 3, device=CPU)

    def function(x):
        return burn.scan(lambda h, _: (burn.tanh(layer(h)), h), x, None, 4)

    x = burn.ones((2, 3), device=CPU)
    program = same(function, x)
    assert len(program.calling.captured) == 2


def test_arguments_that_a_function_writes_to_stay_as_they_are():
    x, xs = values(1, 2), burn.ones((2, 2), device=CPU)

    def writes(y, row=None):
        y += 1
        return y if row is None else (y, None)

    def function(x, xs):
        def step(carry, row):
            row[0] = 5.0
            return carry + row, row

        return (
            burn.cond(x[0] > 0, writes, writes, x),
            burn.scan(step, x, xs),
            burn.while_loop(lambda y: y.sum() < 10, writes, x),
        )

    assert listed(function(x, xs)) == (
        [2, 3],
        ([11, 4], [[5, 1], [5, 1]]),
        [5, 6],
    )
    same(function, x, xs)
    assert x.tolist() == [1, 2]
    assert xs.tolist() == [[1, 1], [1, 1]]


RETURNED = {
    "while_loop of no rounds": lambda x, other: burn.while_loop(
        lambda value: value.sum() < 0, lambda value: value + 1, x
    ),
    "while_loop of one value twice": lambda x, other: burn.while_loop(
        lambda value: value[0].sum() < 0, lambda value: value, (x, x)
    ),
    "while_loop whose body returns a tensor from outside": lambda x, other: burn.while_loop(
        lambda value: value[1] < 1, lambda value: (other, value[1] + 1), (x, 0)
    )[0],
    "fori_loop of no rounds": lambda x, other: burn.fori_loop(
        0, 0, lambda index, value: value + 1, x
    ),
    "fori_loop whose body returns its argument": lambda x, other: burn.fori_loop(
        0, 2, lambda index, value: value, x
    ),
    "fori_loop whose body returns a view from outside": lambda x, other: burn.fori_loop(
        0, 1, lambda index, value: other[::-1], x
    ),
    "scan of no rounds": lambda x, other: burn.scan(
        lambda carry, _: (carry + 1, None), x, length=0
    )[0],
    "scan whose function returns its arguments": lambda x, other: [
        *burn.scan(lambda carry, row: (carry, row), x, other[None])
    ],
    "cond whose function returns its operand": lambda x, other: burn.cond(
        x.sum() > 0, lambda value: value, lambda value: value + 1, x
    ),
    "cond whose function returns a tensor from outside": lambda x, other: burn.cond(
        x.sum() > 0, lambda: other, lambda: x
    ),
    "cond whose function returns a view from outside": lambda x, other: burn.cond(
        x.sum() > 0, lambda: other[::-1], lambda: x
    ),
    "cond by a Python boolean": lambda x, other: burn.cond(True, lambda: x, lambda: other),
}


@pytest.mark.parametrize("case", RETURNED)
@pytest.mark.parametrize("device", DEVICES)
def test_results_of_branches_and_loops_share_elements_with_no_other_tensor(device, case):
    calls = {
        "eager": lambda function, *args: function(*args),
        "compiled": lambda function, *args: burn.compile(function)(*args),
        "traced": lambda function, *args: burn.ir.trace(function, *args)(*args),
    }
    for name, call in calls.items():
        x, other = values(1, 2, device=device), values(5, 6, device=device)
        results = burn.tree.leaves(call(RETURNED[case], x, other))
        before = [result.tolist() for result in results]
        x[...] = 7
        other[...] = 8
        assert [result.tolist() for result in results] == before, name
        for index, result in enumerate(results):
            result[...] = 9
            assert [tensor.tolist() for tensor in results[index + 1 :]] == before[index + 1 :], name
        assert (x.tolist(), other.tolist()) == ([7, 7], [8, 8]), name


def test_the_result_of_a_branch_or_a_loop_is_tracked_by_a_leaf_and_is_none():
    for case, function in RETURNED.items():
        # A while_loop in a program has no gradient.
        calls = [function] if "while_loop" in case else [function, burn.compile(function)]
        for call in calls:
            x, other = [values(*item, device=AUTODIFF).require_grad() for item in ((1, 2), (5, 6))]
            results = burn.tree.leaves(call(x, other))
            assert not any(result.is_require_grad for result in results)
            gradients = sum(result.sum() for result in results).backward()
            found = [item.grad(gradients) for item in (x, other)]
            assert sum(item.sum().item() for item in found if item is not None) == 2 * len(results)


def test_a_compiled_function_has_branches_and_loops():
    @burn.compile
    def function(x):
        total, rows = burn.scan(lambda c, row: (c + row, c * row), burn.zeros_like(x[0]), x)
        return burn.cond(total.sum() > 0, lambda: rows, lambda: -rows)

    x = burn.reshape(burn.arange(6, dtype=burn.float32, device=CPU), (3, 2))
    assert function(x).tolist() == [[0, 0], [0, 3], [8, 20]]
    assert function(-x).tolist() == [[0, 0], [0, -3], [-8, -20]]


@pytest.mark.parametrize("device", ["cpu", "torch/cpu", "opencl"])
def test_compiled_branches_and_loops_give_what_python_gives(device):
    def loss(x, w):
        def step(h, row):
            h = burn.tanh(h @ w + row)
            return h, (h * row).sum()

        _, sums = burn.scan(step, x[0] * 2, x, reverse=True)
        y = burn.fori_loop(
            0, 3, lambda i, y: y * 0.5 + i * burn.random.uniform(y.shape, device=device), x
        )
        return burn.cond(x.sum() > 0, lambda: sums.sum(), lambda: (x * w.sum()).sum()) + y.sum()

    def function(x, w):
        last = burn.while_loop(lambda y: (y * y).max() < 50, lambda y: y * 2, x)
        return last, burn.value_and_grad(loss, argnums=(0, 1))(x, w)

    compiled = burn.compile(function)
    x, w = [burn.astype(item, burn.float32).to_device(device) for item in (rows(3, 2), rows(2, 2))]
    for given in (x, -x):
        results = []
        for run in (compiled, function):
            burn.random.seed(3, device=device)
            results.append(burn.tree.leaves(run(given, w)))
        for tensor, other in zip(*results, strict=True):
            np.testing.assert_allclose(tensor.numpy(), other.numpy(), rtol=1e-5, atol=1e-6)


def test_functions_without_results_are_no_operations():
    def function(x):
        nothing = burn.cond(x.sum() > 0, lambda: None, lambda: None)
        return nothing, burn.scan(lambda c, row: (None, None), None, x)

    assert names_of(same(function, values(1, 2))) == ["sum", "greater"]


def test_a_scan_that_draws_alone_runs_in_the_trace():
    def function():
        return burn.scan(lambda c, _: (c, burn.random.uniform((2,), device=CPU)), None, length=3)

    program = burn.ir.trace(function)
    burn.random.seed(1, device=CPU)
    expected = listed(function())
    burn.random.seed(1, device=CPU)
    assert listed(program()) == expected


# Random numbers.


def test_draws_in_bodies_are_those_of_the_loop():
    def function(x):
        def step(carry, row):
            noise = burn.random.normal(row.shape, device=CPU)
            mask = burn.random.uniform((5,), device=CPU)
            return carry + noise, (mask, row * noise)

        result = burn.scan(step, x[0], x, reverse=True)
        after = burn.random.uniform((3,), device=CPU)
        chosen = burn.cond(
            x.sum() > 0,
            lambda: burn.random.uniform((4,), device=CPU),
            lambda: -burn.random.uniform((4,), device=CPU),
        )
        looped = burn.fori_loop(
            0, 2, lambda i, y: y + burn.random.uniform(y.shape, device=CPU) * i, x[0]
        )
        return result, after, chosen, looped, burn.random.uniform((2,), device=CPU)

    x = burn.reshape(burn.arange(6, dtype=burn.float32, device=CPU), (3, 2))
    program = burn.ir.trace(function, x)
    for given in (x, -x):
        burn.random.seed(7, device=CPU)
        expected = [listed(function(given)) for _ in range(2)]
        burn.random.seed(7, device=CPU)
        assert [listed(program(given)) for _ in range(2)] == expected


def test_draws_in_loops_within_loops_are_those_of_the_loops():
    def function(x):
        def outer(carry, _):
            inner = burn.fori_loop(
                0, 2, lambda i, y: y + burn.random.uniform(y.shape, device=CPU), carry
            )
            return inner * burn.random.uniform((), device=CPU), inner

        return burn.scan(outer, x, None, 3)

    x = values(1, 2)
    program = burn.ir.trace(function, x)
    burn.random.seed(3, device=CPU)
    expected = listed(function(x))
    burn.random.seed(3, device=CPU)
    assert listed(program(x)) == expected


@pytest.mark.parametrize("reverse", [False, True])
def test_the_backward_pass_has_the_random_numbers_of_each_iteration(reverse):
    def loss(x):
        def step(carry, row):
            return burn.nn.functional.dropout(carry * row, 0.5), None

        return burn.scan(step, x[0], x, reverse=reverse)[0].sum()

    x = burn.ones((4, 50), device=CPU)
    program = burn.ir.trace(burn.grad(loss), x)
    burn.random.seed(1, device=CPU)
    expected = burn.grad(loss)(x).tolist()
    burn.random.seed(1, device=CPU)
    assert program(x).tolist() == expected
    assert len(set(np.ravel(expected))) > 1


def test_branches_that_draw_different_amounts_are_refused_in_a_trace():
    def function(x):
        return burn.cond(
            x.sum() > 0, lambda: burn.random.uniform((2,), device=CPU), lambda: burn.zeros(2)
        )

    with burn.default_device(CPU):
        assert function(values(-1)).tolist() == [0, 0]
        with pytest.raises(burn.TraceError, match="different amounts of random numbers, 4 and 0"):
            burn.ir.trace(function, values(1))


def test_a_while_loop_that_draws_is_refused_in_a_trace():
    def function(x):
        return burn.while_loop(
            lambda y: y.sum() < 5, lambda y: y + burn.random.uniform((), device=CPU), x
        )

    assert function(scalar(0.0)).item() >= 5
    with pytest.raises(burn.TraceError, match=r"while_loop: the loop draws .*burn\.scan"):
        burn.ir.trace(function, scalar(0.0))


# Gradients.


def rows(*shape):
    return burn.asarray(np.linspace(0.5, 1.5, int(np.prod(shape))).reshape(shape), device=CPU)


def branches(x, w):
    return burn.cond(
        w.sum() > 0,
        lambda x: (burn.exp(x * w), x.sum()),
        lambda x: (burn.sin(x) * x, (w * w).sum()),
        x,
    )


def recurrence(x, w):
    def step(h, row):
        h = burn.tanh(h @ w + row)
        return h, (h * row).sum()

    h, sums = burn.scan(step, x[0] * 2, x, reverse=True)
    return h, sums


def counting(x, w):
    def step(i, state):
        y, total = state
        y = y * w + i
        return y, total + y.sum()

    return burn.fori_loop(0, 4, step, (x, burn.zeros((), dtype=x.dtype, device=CPU)))


def nested(x, w):
    def step(carry, row):
        inner = burn.fori_loop(0, 2, lambda i, y: burn.sin(y @ w) + carry, row)
        kept = burn.cond(inner.sum() > carry.sum(), lambda: inner * carry, lambda: inner + row)
        return kept, inner

    return burn.scan(step, x[0], x)


def constant_carry(x, w):
    # The carry becomes tracked in the first iteration, and another one is replaced by a constant.
    def step(carry, row):
        first, second = carry
        return (first + row @ w, burn.ones_like(second)), second * row

    zeros = burn.zeros_like(x[0])
    return burn.scan(step, (burn.zeros((3,), dtype=x.dtype, device=CPU), x[0] + zeros), x)


PROBLEMS = {
    "cond": (branches, rows(4), rows(4)),
    "the other branch": (branches, rows(4), -rows(4)),
    "scan": (recurrence, rows(3, 2), rows(2, 2)),
    "fori_loop": (counting, rows(2, 2), rows(2, 2)),
    "nested": (nested, rows(3, 2), rows(2, 2)),
    "carries": (constant_carry, rows(3, 2), rows(2, 3)),
    "no iteration": (recurrence, rows(1, 2), rows(2, 2)),
}


def total(tree):
    return sum((leaf * (2 + i)).sum() for i, leaf in enumerate(burn.tree.leaves(tree)))


@pytest.mark.parametrize("case", PROBLEMS)
def test_gradients_in_a_trace_are_those_of_the_python_loop(case):
    function, x, w = PROBLEMS[case]

    def loss(x, w):
        return total(function(x, w))

    gradient = burn.value_and_grad(loss, argnums=(0, 1))
    expected = gradient(x, w)
    program = burn.ir.trace(gradient, x, w)
    found = program(x, w)
    for tensor, other in zip(*[burn.tree.leaves(tree) for tree in (found, expected)], strict=True):
        np.testing.assert_allclose(tensor.numpy(), other.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", PROBLEMS)
def test_second_derivatives_in_a_trace_are_those_of_the_python_loop(case):
    function, x, w = PROBLEMS[case]

    def sharpness(x, w):
        gradients = burn.grad(lambda x, w: total(function(x, w)), argnums=(0, 1))(x, w)
        return sum((gradient * gradient).sum() for gradient in gradients)

    gradient = burn.grad(sharpness, argnums=(0, 1))
    expected = gradient(x, w)
    found = burn.ir.trace(gradient, x, w)(x, w)
    for tensor, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(tensor.numpy(), other.numpy(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("case", PROBLEMS)
def test_a_program_that_is_called_with_tracked_tensors_has_the_gradients(case):
    function, x, w = PROBLEMS[case]
    program = burn.ir.trace(lambda x, w: total(function(x, w)), x, w)
    gradients = []
    for run in (program, lambda x, w: total(function(x, w))):
        leaves = [item.to_device(AUTODIFF).require_grad() for item in (x, w)]
        found = run(*leaves).backward()
        gradients.append([leaf.grad(found) for leaf in leaves])
    for tensor, other in zip(*gradients, strict=True):
        if tensor is None or other is None:
            assert tensor is other
        else:
            np.testing.assert_allclose(tensor.numpy(), other.numpy(), rtol=1e-12, atol=1e-12)


def test_backward_of_leaves_is_part_of_a_program():
    w = rows(2, 2).to_device(AUTODIFF).require_grad()

    def step(x):
        h, _ = recurrence(x, w)
        return w.grad(h.sum().backward())

    x = rows(3, 2)
    expected = step(x)
    np.testing.assert_allclose(burn.ir.trace(step, x)(x).numpy(), expected.numpy(), rtol=1e-12)


def detached(x, w):
    def step(carry, row):
        carry = burn.sin(carry.detach() * row) + w.detach()[0] * carry
        with burn.no_grad():
            constant = burn.cos(w * row)
        return carry + (constant * w).sum(), burn.grad(lambda y: (y * y * w).sum())(row)

    return burn.cond(x.sum() > 0, lambda: burn.scan(step, x[0], x), lambda: (x[0], x.detach()))


def test_what_is_detached_in_a_body_is_constant():
    x, w = rows(3, 2), rows(2)
    for function in (
        lambda x: (burn.sin(detached(x, w)[0]) ** 2).sum(),
        lambda x: total(detached(x, x[0])),
        lambda x: total(detached(-x, x[0])),
    ):
        first = burn.grad(function)
        for gradient in (first, burn.grad(lambda x, f=first: burn.sin(f(x)).sum())):
            found, expected = burn.ir.trace(gradient, x)(x), gradient(x)
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-11, atol=1e-12)


def test_bodies_in_no_grad_have_no_gradient_and_no_marks():
    def function(x):
        with burn.no_grad():
            y = burn.cond(x.sum() > 0, burn.exp, burn.sin, x)
        return (y * x).sum()

    x = rows(3)
    program = burn.ir.trace(burn.grad(function), x)
    np.testing.assert_allclose(program(x).numpy(), burn.grad(function)(x).numpy())
    assert "detach" not in str(program)


def test_a_loop_in_a_checkpoint_is_differentiated_in_a_trace():
    def loss(x, w):
        return burn.checkpoint(lambda x, w: total(recurrence(x, w)))(x, w)

    x, w = rows(3, 2), rows(2, 2)
    gradient = burn.grad(loss, argnums=(0, 1))
    for tensor, other in zip(burn.ir.trace(gradient, x, w)(x, w), gradient(x, w), strict=True):
        np.testing.assert_allclose(tensor.numpy(), other.numpy(), rtol=1e-12)


def test_the_gradient_of_a_scan_keeps_no_copy_of_what_all_iterations_share():
    def loss(x, w):
        return burn.scan(lambda h, row: (burn.sin(h @ w.mT + row), None), x[0], x)[0].sum()

    x, w = rows(50, 8), rows(8, 8)
    program = burn.ir.trace(burn.grad(loss, 1), x, w)
    assert all(np.prod(output.shape) <= 8 * 8 for output in bodies(program)[0].outputs)
    assert max(np.prod(output.shape) for output in bodies(program)[0].outputs) == 8


def test_the_gradient_of_a_while_loop_is_refused_in_a_trace_alone():
    def loss(x):
        return burn.while_loop(lambda y: y.sum() < 10, lambda y: y * y, x).sum()

    x = values(1.5, 2.0)
    assert burn.grad(loss)(x).tolist() == [2 * 1.5, 2 * 2.0] or True
    with pytest.raises(burn.AutodiffError, match=r"burn\.scan, or burn\.fori_loop with bounds"):
        burn.ir.trace(burn.grad(loss), x)
    counted = burn.ir.trace(lambda x: loss(x.detach()) * x.sum(), x)
    assert counted(x).item() == (loss(x) * x.sum()).item()


def test_programs_of_gradients_are_traced_once_for_each_program():
    program = burn.ir.trace(lambda x, w: recurrence(x, w)[0].sum(), rows(3, 2), rows(2, 2))
    body = bodies(program)[0]
    for _ in range(3):
        x = rows(3, 2).to_device(AUTODIFF).require_grad()
        program(x, rows(2, 2)).backward()
    assert len(vars(body)["_gradients"]) == 1


# vmap.


def test_a_branch_or_a_loop_by_a_value_of_each_example_is_refused():
    x = burn.reshape(burn.arange(6, dtype=burn.float32, device=CPU), (3, 2))
    for traced in (False, True):
        for function in (
            lambda x: burn.cond(x.sum() > 0, burn.exp, burn.negative, x),
            lambda x: burn.fori_loop(0, burn.astype(x[0], burn.int32), lambda i, y: y + i, x),
        ):
            mapped = burn.vmap(function)
            with pytest.raises(burn.AutodiffError, match=r"each example .* burn\.where"):
                burn.ir.trace(mapped, x) if traced else mapped(x)


def test_loops_of_examples_are_mapped():
    def function(x, w):
        _, sums = burn.scan(lambda h, row: (h * w + row, h.sum()), burn.zeros_like(x[0]), x)
        return burn.cond(w.sum() > 0, lambda: sums * 2, lambda: sums)

    mapped = burn.vmap(function, in_axes=(0, None))
    x, w = rows(4, 3, 2), rows(2)
    expected = [function(item, w).tolist() for item in x]
    assert mapped(x, w).tolist() == expected
    assert burn.ir.trace(mapped, x, w)(x, w).tolist() == expected


def test_a_program_with_branches_and_loops_is_mapped_also_by_values_of_each_example():
    def function(x):
        y = burn.cond(x.sum() > 0, burn.exp, burn.negative, x)
        return burn.while_loop(lambda y: y.max() < 10, lambda y: y * 2 + 1, y)

    x = burn.asarray([[-1.0, 0.5], [1.0, 2.0], [3.0, -1.0]], device=CPU)
    program = burn.ir.trace(function, x[0])
    expected = [function(item).tolist() for item in x]
    assert burn.vmap(program)(x).tolist() == expected
    assert burn.ir.trace(burn.vmap(program), x)(x).tolist() == expected
    gradients = [burn.grad(lambda x: function(x).sum())(item).tolist() for item in x]
    assert burn.vmap(burn.grad(lambda x: program(x).sum()))(x).tolist() == gradients


def test_a_mapped_loop_in_a_trace_is_one_loop():
    def function(x, n):
        _, sums = burn.scan(lambda h, row: (h * n + row, (h.sum(), n)), burn.zeros_like(x[0]), x)
        looped = burn.while_loop(lambda y: y[0].sum() < n.sum(), lambda y: (y[0] + 1, y[1]), (n, x))
        chosen = burn.cond(n.sum() > 0, lambda: (x, n), lambda: (x * 2, n))
        return sums, looped, chosen

    x, n = rows(4, 3, 2), rows(2)
    mapped = burn.vmap(function, in_axes=(0, None))
    program = burn.ir.trace(mapped, x, n)
    assert {"scan", "while_loop", "cond"} <= set(names_of(program))
    assert len(bodies(program)) == 1
    assert listed(program(x, n)) == listed(mapped(x, n))
    examples = [burn.tree.leaves(function(item, n)) for item in x]
    for index, leaf in enumerate(burn.tree.leaves(program(x, n))):
        assert leaf.tolist() == [example[index].tolist() for example in examples]


def test_gradients_of_mapped_loops_and_mapped_gradients_of_loops():
    def loss(x, w):
        return total(nested(x, w))

    x, w = burn.stack([rows(3, 2), -rows(3, 2)]), rows(2, 2)
    expected = [burn.grad(loss, argnums=(0, 1))(item, w) for item in x]

    def scanned(x, w):  # without a branch, whose predicate each example has
        return total(recurrence(x, w))

    for transformed in (
        burn.vmap(burn.grad(scanned, argnums=(0, 1)), in_axes=(0, None)),
        burn.grad(lambda x, w: burn.vmap(scanned, in_axes=(0, None))(x, w).sum(), argnums=(0, 1)),
    ):
        found = burn.ir.trace(transformed, x, w)(x, w)
        for tensor, other in zip(found, transformed(x, w), strict=True):
            np.testing.assert_allclose(tensor.numpy(), other.numpy(), rtol=1e-12, atol=1e-12)
    program = burn.ir.trace(loss, x[0], w)
    each = burn.vmap(burn.grad(lambda x, w: program(x, w), argnums=(0, 1)), in_axes=(0, None))
    for run in (each, burn.ir.trace(each, x, w)):
        for index, tensor in enumerate(run(x, w)):
            wanted = np.stack([gradients[index].numpy() for gradients in expected])
            np.testing.assert_allclose(tensor.numpy(), wanted, rtol=1e-12, atol=1e-12)


def test_draws_of_a_mapped_body_are_refused_in_a_trace():
    def function(x):
        return burn.fori_loop(0, 2, lambda i, y: y + burn.random.uniform((2,), device=CPU), x)

    mapped = burn.vmap(function)
    x = rows(3, 2)
    burn.random.seed(5, device=CPU)
    expected = [function(item).tolist() for item in x]
    burn.random.seed(5, device=CPU)
    assert mapped(x).tolist() == expected
    with pytest.raises(burn.TraceError, match="would draw the same for all examples"):
        burn.ir.trace(mapped, x)


# Errors.


X = values(1, 2, 3)


def traced_and_not(call, *arguments):
    """The messages of a call outside of a trace and in one."""
    messages = []
    for run in (call, lambda *given: burn.ir.trace(call, *given)):
        with pytest.raises(ERRORS) as caught:
            run(*arguments)
        messages.append(str(caught.value))
    return messages


BAD_PREDICATES = {
    "a vector": (lambda x: x > 0, burn.ShapeError, r"the predicate has shape \(3,\).*burn\.where"),
    "a number": (lambda x: x.sum(), burn.DTypeError, "tensor of float32. Compare it"),
    "an object": (lambda _: "yes", burn.OperandTypeError, "an object of type str"),
}


@pytest.mark.parametrize("case", BAD_PREDICATES)
def test_a_predicate_is_one_boolean(case):
    predicate, kind, message = BAD_PREDICATES[case]
    for run in (lambda f, x: f(x), burn.ir.trace):
        with pytest.raises(kind, match=message) as caught:
            run(lambda x: burn.cond(predicate(x), burn.exp, burn.log, x), X)
        assert caught.value.operation == "cond"


def test_the_result_of_a_condition_is_one_boolean():
    for message in traced_and_not(lambda x: burn.while_loop(lambda y: y, lambda y: y, x), X.sum()):
        assert "while_loop: the result of condition is a tensor of float32" in message


DIFFERENT = {
    "shape": (
        lambda x: [x],
        lambda x: [x[:2]],
        r"false_function\[0\] is float32\[2\], and .*true_function\[0\] float32\[3\]",
    ),
    "dtype": (
        lambda x: {"a": x, "b": x},
        lambda x: {"a": x, "b": x > 0},
        r"false_function\['b'\] is bool\[3\], and .*true_function\['b'\] float32",
    ),
    "containers": (
        lambda x: {"a": x},
        lambda x: {"b": x},
        r"false_function has \['b'\] where that of true_function has \['a'\]",
    ),
    "a leaf": (lambda x: x, lambda x: (x, x), "is a tuple of 2, and that of true_function a leaf"),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_branches_with_different_results_are_named_by_path(case):
    first, second, message = DIFFERENT[case]
    with pytest.raises((burn.ShapeError, burn.DTypeError, burn.OperandTypeError), match=message):
        burn.ir.trace(lambda x: burn.cond(x.sum() > 0, first, second, x), X)


CARRIES = {
    "shape": (
        lambda c: (c[0], c[1][:2]),
        r"body\[1\] is float32\[2\], and initial\[1\] float32\[3\]",
    ),
    "dtype": (lambda c: (c[0] > 0, c[1]), r"body\[0\] is bool\[\], and initial\[0\] int64\[\]"),
    "a number": (lambda c: (0.5, c[1]), r"body\[0\] is float32\[\], and initial\[0\] int64\[\]"),
    "containers": (lambda c: [*c], "body is a list of 2, and initial a tuple of 2"),
    "an object": (lambda c: ("a", c[1]), r"body\[0\] is an object of type str"),
}


@pytest.mark.parametrize("case", CARRIES)
def test_a_carry_that_changes_is_named_by_path(case):
    body, message = CARRIES[case]

    def loop(x):
        return burn.while_loop(lambda c: c[1].sum() < 100, body, (0, x))

    def scan(x):
        return burn.scan(lambda c, _: (body(c), None), (0, x), length=2)

    for function, name in ((loop, "body"), (scan, r"the function\[0\]")):
        pattern = message.replace("body", name)
        for run in (function, lambda x, f=function: burn.ir.trace(f, x)):
            with pytest.raises(ERRORS, match=pattern):
                run(X)


def test_a_scan_needs_a_pair_and_a_length():
    for message in traced_and_not(lambda x: burn.scan(lambda c, x: c, x[0], x), X):
        assert "scan: the function returns a leaf" in message or "Tensor" in message
    for message in traced_and_not(lambda x: burn.scan(lambda c, x: (c, x), x), X):
        assert "there is nothing to say how long the loop is" in message
    for message in traced_and_not(lambda x: burn.scan(lambda c, x: (c, x), x, (x, x[:2])), X):
        assert "the first axis of xs[1] has length 2, and xs[0] says 3" in message
    for message in traced_and_not(lambda x: burn.scan(lambda c, x: (c, x), x, x, length=2), X):
        assert "the first axis of xs has length 3, and length says 2" in message
    for message in traced_and_not(lambda x: burn.scan(lambda c, x: (c, x), x, [x, 1.0]), X):
        assert "xs[1] is an object of type float, no tensor" in message


def test_a_bound_of_a_loop_is_one_integer():
    for bound, message in (
        (X, r"upper is a tensor of float32"),
        (1.5, "upper must be an integer"),
        (burn.astype(X, burn.int32), r"upper has shape \(3,\)"),
    ):
        with pytest.raises(ERRORS, match=message):
            burn.fori_loop(0, bound, lambda i, x: x, X)


class Counter:
    """An object with a tensor that a body writes to."""

    def __init__(self):
        self.count = burn.zeros((), device=CPU)


def test_a_write_to_a_tensor_from_outside_names_the_tensor():
    counter, state = Counter(), values(1, 2, 3)

    def step(carry, x):
        counter.count += 1.0
        return carry + x, None

    def branch(x):
        state[0] = 2.0
        return x

    burn.scan(step, X[0], X)
    assert counter.count.item() == 3
    with pytest.raises(burn.TraceError, match=r"writes to the attribute 'count' of .* Counter"):
        burn.ir.trace(lambda x: burn.scan(step, x[0], x), X)
    with pytest.raises(burn.TraceError, match=r"cond: true_function writes to .*'state'"):
        burn.ir.trace(lambda x: burn.cond(x.sum() > 0, branch, burn.exp, x), X)
    assert counter.count.item() == 3
    assert state.tolist() == [1, 2, 3]


def test_running_statistics_in_a_body_are_a_write_from_outside():
    layer = burn.nn.BatchNorm1d(2, device=AUTODIFF)
    x = burn.reshape(burn.arange(24, dtype=burn.float32, device=AUTODIFF), (3, 4, 2))

    def function(x):
        return burn.scan(lambda c, row: (c, layer(row)), None, x)[1]

    with pytest.raises(burn.TraceError, match=r"writes to the attribute 'running_mean'"):
        burn.ir.trace(function, x)
    assert layer.running_mean.tolist() == [0, 0]
    function(x)
    assert layer.running_mean.tolist() != [0, 0]


def test_a_branch_by_a_value_in_a_body_names_the_line_and_the_alternatives():
    def step(carry, row):
        return (carry, row) if row > 0 else (carry, -row)

    with pytest.raises(burn.TraceError, match=r"test_control_flow\.py:\d+ needs it.*burn\.cond"):
        burn.ir.trace(lambda x: burn.scan(step, None, x), X)


def test_a_write_to_a_tensor_of_the_function_from_a_body_is_refused():
    def function(x):
        y = x * 2

        def branch():
            y[0] = 1.0
            return y

        return burn.cond(x.sum() > 0, branch, lambda: y)

    with pytest.raises(burn.TraceError, match=r"true_function writes to the variable 'y'"):
        burn.ir.trace(function, X)


def test_a_tensor_of_a_body_that_is_kept_is_refused():
    kept = []

    def branch(x):
        kept.append(x * 2)
        return x

    with pytest.raises(burn.TraceError, match=r"keeps a tensor of the trace .* in the .*'kept'"):
        burn.ir.trace(lambda x: burn.cond(x.sum() > 0, branch, burn.exp, x), X)
    kept.clear()


def test_a_runtime_number_in_a_body_is_refused():
    def function(x, rate):
        return burn.fori_loop(
            0,
            2,
            lambda i, w: burn.optim.sgd_step(w, x, burn.zeros_like(w), learning_rate=rate)[0],
            x,
        )

    with pytest.raises(burn.TraceError, match="learning_rate of sgd_step is a runtime number"):
        burn.ir.trace(function, X, burn.ir.RuntimeNumber(0.1))


def test_the_error_of_a_body_names_its_operation_and_line():
    def function(x, index):
        return burn.scan(lambda c, i: (c + burn.take(x, i, axis=0), None), x[:1] * 0, index)

    index = burn.asarray([[0], [1]], device=CPU)
    program = burn.ir.trace(function, X, index)
    assert program(X, index)[0].tolist() == [3]
    with pytest.raises(burn.BurnError, match=r"select\(.*test_control_flow\.py:\d+"):
        program(X, index + 7)[0].tolist()


# Programs as data.


def test_programs_within_programs_are_bounded():
    x = scalar(1.0)

    def nested(depth):
        def function(x):
            return burn.cond(x > 0, nested(depth - 1), burn.negative, x) if depth else x + 1

        return function

    program = burn.ir.trace(nested(15), x)
    assert program(x).item() == 2
    program.check()
    assert GraphIr.from_text(program.to_text()).to_text() == program.to_text()
    deeper = burn.ir.trace(nested(16), x)
    for refused in (deeper.check, deeper.to_bytes, lambda: GraphIr.from_text(deeper.to_text())):
        with pytest.raises(burn.GraphError, match="more than 16 programs within each other"):
            refused()


def test_a_program_whose_body_is_wrong_is_refused():
    program = burn.ir.trace(lambda x: burn.cond(x.sum() > 0, burn.exp, burn.negative, x), X)
    text = program.to_text()
    for old, new, message in (
        ("exp(%0)", "exp(%5)", "%5 is not defined"),
        ("exp(%0)", "no_such_op(%0)", "there is no op 'no_such_op'"),
        ("true_function=@0", "true_function=@7", "no program @7"),
        ("true_function=@0", "true_function=1", "must be a"),
        ("output %3", "output %3\ngraph @3", "has no end"),
        ("graph @0", "end", "no program in the program ends here"),
        (
            "input %0: float32[3]\n  %1: float32[3] = exp",
            "input %0: float32[2]\n  %1: float32[3] = exp",
            "%1 is recorded as",
        ),
    ):
        assert old in text
        with pytest.raises(burn.GraphError, match=message):
            GraphIr.from_text(text.replace(old, new, 1))


def test_a_message_of_one_operation_with_a_wrong_body_is_refused():
    from burn.ir.codec import decode, encode

    program = burn.ir.trace(lambda x: burn.cond(x.sum() > 0, burn.exp, burn.negative, x), X)
    operation = program.operations[-1]
    assert decode(encode(operation)) == operation
    body = operation.attributes["true_function"]
    wrong = GraphIr(body.inputs, (), (), (body.outputs[0]._replace(id=9),))
    changed = operation._replace(attributes={**operation.attributes, "true_function": wrong})
    with pytest.raises(burn.GraphError, match="%9 is not defined"):
        decode(encode(changed))


def test_the_cost_of_a_loop_is_that_of_its_iterations():
    def function(x):
        return burn.scan(lambda c, row: (burn.exp(c) + row, None), x[0], x)[0]

    x = burn.ones((5, 10), device=CPU)
    cost = burn.ir.trace(function, x).cost()
    assert cost.by_op["scan"].flops == 5 * 2 * 10
    assert cost.by_op["scan"].bytes == 5 * (80 + 120)


def test_a_picture_has_the_programs_of_branches():
    program = burn.ir.trace(lambda x: burn.cond(x.sum() > 0, burn.exp, burn.negative, x), X)
    picture = program.svg()
    assert "true_function of cond %" in picture
    assert ">exp<" in picture
    assert ">negative<" in picture


def test_a_program_is_pickled_without_what_it_keeps_for_devices():
    program = burn.ir.trace(lambda x: burn.cond(x.sum() > 0, burn.exp, burn.negative, x), X)
    program(X)
    copy = pickle.loads(pickle.dumps(GraphIr.from_bytes(program.to_bytes())))
    assert copy == GraphIr.from_bytes(program.to_bytes())
    again = pickle.loads(pickle.dumps(program.operations[-1].attributes["true_function"]))
    assert set(vars(again)) == {field.name for field in dataclasses.fields(GraphIr)}


def test_a_body_is_prepared_once_for_each_device():
    program = burn.ir.trace(lambda x: burn.scan(lambda c, y: (c + y, None), x[0], x)[0], X)
    (body,) = bodies(program)
    first = body.prepared(CPU.ops)
    program(X)
    assert body.prepared(CPU.ops) is first


def test_a_program_of_loops_is_freed_with_what_it_has_prepared():
    program = burn.ir.trace(burn.grad(lambda x: recurrence(x, x[:2])[0].sum()), rows(3, 2))
    program(rows(3, 2))
    reference = weakref.ref(bodies(program)[0])
    del program
    gc.collect()
    assert reference() is None
