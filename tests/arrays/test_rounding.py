"""Compiled arithmetic gives the bits of the operations, unless a program is relaxed."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import burn
from burn import float32
from burn.compiler import Target, planned
from burn.compiler.inner_programs import inner_programs
from burn.errors import OperandTypeError
from burn.ir import GraphIr
from burn.kernels import Apply, Kernel, Load, Reduce, Store

CHAIN = """
input %0: float32[4, 64]
input %1: float32[4, 64]
%2: float32[4, 64] = multiply(%0, %1)
%3: float32[4, 64] = add(%2, %0)
%4: float32[4] = sum(%2, axis=(1,), dtype=float32)
output %3
output %4
"""


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def kernel_of(text, *, relaxed=False):
    graph = replace(GraphIr.from_text(text.strip()), relaxed=relaxed)
    (step,) = planned(graph, Target(frozenset([float32]), lambda _: False)).steps
    return step.kernel


def area(x, y):
    return x * y + 1.0


RELAXED = burn.compile(area, relaxed=True)


# What a user says.


def test_a_function_is_relaxed_where_the_user_says_so():
    x, y = (burn.asarray(drawn(50, seed=seed), device="cpu") for seed in (1, 2))
    strict, relaxed = burn.compile(area), burn.compile(relaxed=True)(area)
    assert np.array_equal(strict(x, y).numpy(), area(x, y).numpy())
    np.testing.assert_allclose(relaxed(x, y).numpy(), area(x, y).numpy(), rtol=1e-5, atol=1e-6)
    assert not strict.graph.relaxed
    assert relaxed.graph.relaxed
    if strict.kernels:
        assert strict.kernels != relaxed.kernels


def test_a_relaxed_function_is_relaxed_when_it_has_been_pickled():
    assert pickle.loads(pickle.dumps(RELAXED))._relaxed
    assert not pickle.loads(pickle.dumps(burn.compile(area)))._relaxed


def test_relaxed_is_a_bool():
    with pytest.raises(OperandTypeError, match=r"compile: relaxed is 'yes'. It is True or False"):
        burn.compile(area, relaxed="yes")


# Programs in programs, and gradients.


def test_the_body_of_a_loop_has_the_bits_of_the_function():
    x, y = (burn.asarray(drawn(50, seed=seed), device="cpu") for seed in (1, 2))

    def function(x, y):
        return burn.fori_loop(0, 5, lambda _, value: value * y + x, x)

    assert np.array_equal(burn.compile(function)(x, y).numpy(), function(x, y).numpy())


def test_the_body_of_a_loop_is_relaxed_where_the_program_is():
    compiled = burn.compile(
        lambda x: burn.fori_loop(0, 5, lambda _, value: value * x + x, x), relaxed=True
    )
    compiled(burn.asarray(drawn(50), device="cpu"))
    for strict in (compiled.graph, replace(compiled.graph, relaxed=False)):
        bodies = [
            value
            for operation in inner_programs(strict).operations
            for value in operation.attributes.values()
            if isinstance(value, GraphIr)
        ]
        assert bodies
        assert all(body.relaxed for body in bodies)


def test_gradients_of_a_compiled_function_have_the_bits_of_the_function():
    device = burn.Device("cpu").autodiff()
    y = burn.asarray(drawn(50, seed=2), device=device)
    found = []
    for function in (area, burn.compile(area)):
        x = burn.asarray(drawn(50, seed=1), device=device).require_grad()
        loss = (function(x * y, x) * y).sum()
        found.append(x.grad(loss.backward()).numpy())
    assert np.array_equal(*found)


# Random functions.


STEPS = [
    lambda p, q, k: p + q,
    lambda p, q, k: p - q,
    lambda p, q, k: p * q,
    lambda p, q, k: p / q,
    lambda p, q, k: p * k + q,
    lambda p, q, k: k - p * q,
    lambda p, q, k: p / k,
    lambda p, q, k: -p * q + p,
    lambda p, q, k: burn.sqrt(burn.abs(p)),
    lambda p, q, k: burn.where(p > q, p, q * k),
    lambda p, q, k: p / burn.max(burn.abs(p)),
    lambda p, q, k: (p * q) / burn.max(p * q, axis=-1, keepdims=True),
    lambda p, q, k: (p - q) - burn.min(p - q, axis=0, keepdims=True),
    lambda p, q, k: burn.floor(p * k) + q,
    lambda p, q, k: burn.round(p * q) - k,
    lambda p, q, k: burn.square(p) - burn.reciprocal(q),
]


@pytest.mark.parametrize("device", ["cpu", pytest.param("opencl", marks=pytest.mark.exhaustive)])
def test_random_arithmetic_has_the_bits_of_the_function(device, everything):
    if not burn.Device.enumerate(device):
        pytest.skip(f"there is no device {device}")
    for seed in range(40 if everything else 6):
        generator = np.random.default_rng(seed)
        rows, columns, count = generator.integers([1, 1, 3], [40, 80, 18])
        steps = [
            (*generator.integers(0, [len(STEPS), 1000, 1000]), generator.normal())
            for _ in range(count)
        ]

        def function(*given, steps=steps):
            values = list(given)
            for step, first, second, number in steps:
                operands = values[first % len(values)], values[second % len(values)]
                values.append(STEPS[step](*operands, float(number)))
            return values[len(given) :]

        shapes = [(rows, columns), (rows, columns), (columns,), (rows, 1)]
        dtype = ("float32", "float64")[seed % 2]
        given = [
            burn.asarray(generator.normal(size=shape).astype(dtype), device=device)
            for shape in shapes
        ]
        pairs = zip(burn.compile(function)(*given), function(*given), strict=True)
        for number, (found, expected) in enumerate(pairs):
            np.testing.assert_array_equal(
                found.numpy(), expected.numpy(), err_msg=f"seed {seed}, step {number}"
            )


# Kernels.


def test_a_kernel_knows_that_it_is_relaxed():
    strict, relaxed = kernel_of(CHAIN), kernel_of(CHAIN, relaxed=True)
    assert (strict.relaxed, relaxed.relaxed) == (False, True)
    assert strict != relaxed
    assert strict == kernel_of(CHAIN)


def test_terms_are_products_that_sums_alone_read():
    def terms(*more, stored=2):
        body = (
            Load(0, 0, (8, 1), float32),
            Apply("multiply", (0, 0), float32),
            Reduce("sum", 1, float32),
            *more,
        )
        stores = (Store(0, stored, 0, (1, 0) if stored == 2 else (8, 1)),)
        kernel = Kernel((4, 8), 1, (float32,), (), ((float32, 32),), body, stores)
        return kernel.terms

    assert terms() == {1}
    assert terms(stored=1) == set()
    assert terms(Apply("exp", (1,), float32)) == set()
    assert terms(Reduce("max", 1, float32)) == set()


@pytest.mark.parametrize("is_cpu", [False, True])
def test_opencl_is_told_not_to_contract(is_cpu):
    pytest.importorskip("burn_opencl")
    from burn_opencl.dialect import OpenClDialect

    dialect = OpenClDialect(1 if is_cpu else 64, has_fp64=False, is_cpu=is_cpu)
    summed = CHAIN.replace("%3: float32[4, 64] = add(%2, %0)\n", "").replace("output %3\n", "")
    pragma = "#pragma OPENCL FP_CONTRACT OFF\n"
    for text in (CHAIN, summed):
        assert pragma in dialect.source(kernel_of(text)).text
        assert pragma not in dialect.source(kernel_of(text, relaxed=True)).text
    # A GPU adds products by fused multiply-adds, which a sum may have.
    assert (" = fused_float(" in dialect.source(kernel_of(summed)).text) is not is_cpu
