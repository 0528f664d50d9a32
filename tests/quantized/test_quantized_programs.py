"""Quantized tensors in transforms, programs, other threads and processes, and conversions."""

import copy
import multiprocessing
import operator
import pickle
import threading

import numpy as np
import pytest

import burn
from burn import nn, optim
from burn.errors import BurnError, GraphError
from burn.ir import GraphIr, Program, TensorSpec
from burn.nn import functional as F
from burn.quant_scheme import Propagation, QDType, QuantConfig
from burn.quantization import (
    QParams,
    QuantLevel,
    QuantScheme,
    QuantStore,
    QuantValue,
    ScaleDType,
    compute_q_params,
    compute_range,
)
from burn.router import RouterBackend
from gate import EXAMPLES
from pipe_channel import PipeChannel
from routed_devices import routed

CPU = burn.Device("cpu")
AUTODIFF = CPU.autodiff()
DEVICES = [device.name for device in burn.Device.enumerate() if device.name not in EXAMPLES]
DEVICES += ["router/cpu:0"]

SCHEMES = {
    "tensor": QuantScheme(),
    "blocks": QuantScheme(QuantValue.Q4F).per_block((1, 16), ScaleDType.F16),
    "bytes": QuantScheme(QuantValue.Q2S, QuantStore.packed_native()).per_block(
        (2, 16), ScaleDType.BF16
    ),
    "rows": QuantScheme(QuantValue.E2M1, QuantStore.packed_u32(-2)).per_block(
        (-1, 8), ScaleDType.UE8M0
    ),
    "two levels": QuantScheme(
        QuantValue.E4M3, QuantStore.NATIVE, QuantLevel.two_level(1, 8), ScaleDType.UE4M3
    ),
}
BLOCKS = SCHEMES["blocks"]

each_scheme = pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)
each_device = pytest.mark.parametrize("device", DEVICES)
forks = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="processes are not forked here"
)


def floats(*shape, seed=0, device=CPU):
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return burn.asarray(values, device=device)


def bits(q):
    """The dtype, codes and scales of a quantized tensor."""
    return q.dtype, q.shape, [part.array.tobytes() for part in q.data().parts]


def linear(x, weight):
    return F.linear(x, weight, transposed=True)


def close(x, y):
    np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=1e-5, atol=1e-5)
    return True


# Programs and compiled functions.


@each_device
@each_scheme
def test_compiled_functions_and_programs_take_and_return_quantized_tensors(device, scheme):
    x, w = floats(4, 32, device=device), floats(8, 32, seed=1, device=device)
    q = w.quantize_dynamic(scheme)

    def function(x, w, q):
        made = w.quantize_dynamic(scheme)
        return {"y": linear(x, q), "sum": linear(x, made)}, [made, q.T, q, made]

    expected, quantized = function(x, w, q)
    compiled, program = burn.compile(function), burn.ir.trace(function, x, w, q)
    for call in (compiled, compiled, program):
        found, others = call(x, w, q)
        assert [bits(other) for other in others] == [bits(item) for item in quantized]
        assert all(close(found[key], expected[key]) for key in expected)
    assert compiled.programs == 1
    for graph in (compiled.graph, program):
        tensors = [
            *graph.inputs,
            *graph.outputs,
            *[constant.tensor for constant in graph.constants],
        ]
        tensors += [
            output for operation in graph.operations for output in getattr(operation, "outputs", ())
        ]
        assert not any(isinstance(tensor.dtype, QDType) for tensor in tensors)


@each_scheme
def test_a_quantized_tensor_from_outside_is_read_at_each_call(scheme):
    x, w, q = floats(4, 32), floats(8, 32, seed=1), floats(8, 32, seed=2).quantize_dynamic(scheme)
    compiled = burn.compile(lambda x: linear(x, q) + 1.0)
    program = burn.ir.trace(lambda x: linear(x, q), x)
    assert close(compiled(x), linear(x, q) + 1.0)
    q.assign(w.quantize_dynamic(scheme))
    assert close(compiled(x), linear(x, q) + 1.0)
    assert close(program(x), linear(x, q))
    assert compiled.programs == 1
    for value in (w.quantize_dynamic(), w):  # another scheme, and no quantized tensor any more
        q.assign(value)
        assert close(compiled(x), linear(x, value) + 1.0)
        with pytest.raises(burn.DTypeError, match=r"was .* when the program was traced"):
            program(x)
    assert compiled.programs == 3


def test_a_compiled_function_is_traced_again_for_another_scheme_or_shape():
    x = floats(4, 32)
    compiled = burn.compile(linear)
    for count, (rows, scheme) in enumerate([(8, BLOCKS), (8, None), (6, BLOCKS)], 1):
        q = floats(rows, 32).quantize_dynamic(scheme)
        assert close(compiled(x, q), linear(x, q))
        assert compiled.programs == count
    assert close(compiled(x, q.dequantize()), linear(x, q))


def test_a_program_refuses_another_scheme_or_shape():
    x, q = floats(4, 32), floats(8, 32).quantize_dynamic(BLOCKS)
    program = burn.ir.trace(linear, x, q)
    with pytest.raises(burn.DTypeError, match=r"traced with q4f\(block=1x16.*\)\[8, 32\]"):
        program(x, floats(8, 32).quantize_dynamic())
    with pytest.raises(burn.ShapeError, match=r"arguments\[1\] is q4f.*\[6, 32\]"):
        program(x, floats(6, 32).quantize_dynamic(BLOCKS))
    spec = TensorSpec((8, 32), q.dtype, "cpu")
    assert close(burn.ir.trace(linear, x, spec)(x, q), linear(x, q))
    assert burn.eval_shape(lambda q: q.T, spec) == TensorSpec((32, 8), q.T.dtype, "cpu")
    with pytest.raises(burn.ShapeError, match="do not divide"):
        burn.ir.trace(linear, x, TensorSpec((8, 33), q.dtype, "cpu"))


@each_scheme
def test_functions_rebind_quantized_tensors(scheme):
    state, reference = [floats(8, 32).quantize_dynamic(scheme) for _ in range(2)]
    passed = copy.copy(state)

    def requantized(q):
        return (q.dequantize() * 2.0).quantize_dynamic(scheme)

    @burn.compile
    def step(q):
        q.assign(requantized(q))
        state.assign(requantized(state))
        return state

    program = burn.ir.trace(lambda q: q.assign(requantized(q)), passed)
    for _ in range(2):
        assert step(passed) is state
        reference = requantized(reference)
        assert bits(passed) == bits(state) == bits(reference)
    assert step.programs == 1
    program(passed)
    assert bits(passed) == bits(requantized(reference))


def test_a_function_writes_to_quantized_tensors_and_their_views():
    def write(q, x):
        q[0] = x
        q.T[1:3] = 2.0
        q[burn.asarray([2, 4], device="cpu")] = 0.0

    first, second = [floats(8, 32).quantize_dynamic(BLOCKS) for _ in range(2)]
    row, compiled = floats(32, seed=1), burn.compile(write)
    for _ in range(2):
        write(first, row)
        compiled(second, row)
        assert bits(first) == bits(second)
    assert compiled.programs == 1


def test_a_donated_quantized_tensor_is_given_up():
    x, q = floats(4, 32), floats(8, 32).quantize_dynamic(BLOCKS)
    copied = copy.copy(q)
    compiled = burn.compile(linear, donate="weight")
    assert close(compiled(x, q), linear(x, copied))
    with pytest.raises(burn.ArgumentError, match="was donated"):
        q.dequantize()


def test_quantized_weights_of_a_compiled_module_are_replaced():
    layers = [nn.Linear(32, 32, device=AUTODIFF), nn.ReLU(), nn.Linear(32, 8, device=AUTODIFF)]
    net = nn.Sequential(*layers)
    x = floats(4, 32)
    inner, outer = burn.compile(lambda x: net(x)), burn.compile(lambda net, x: net(x))
    inner(x), outer(net, x)
    net.quantize(BLOCKS)
    other = copy.deepcopy(net)
    for value in (net[0].weight, floats(32, 32).quantize_dynamic(BLOCKS), floats(32, 32)):
        net[0].weight.assign(value, require_grad=False)
        assert close(inner(x), net(x))
        assert close(outer(net, x), net(x))
        assert close(burn.ir.trace(lambda net, x: net(x), net, x)(net, x), net(x))
    assert close(outer(other, x), other(x))


@pytest.fixture
def configured():
    """A context in which the CPU quantizes otherwise."""
    yield lambda **settings: CPU.configure(quantization=QuantConfig(**settings))
    CPU.configure(quantization=QuantConfig())


def test_programs_follow_the_settings_of_the_device(configured):
    x, q = floats(4, 32), floats(8, 32).quantize_dynamic(BLOCKS)
    default = x.quantize_dynamic().dtype

    def doubled(q):
        return burn.cond(q.sum() != 0.0, lambda q: q * 2.0, lambda q: q * 3.0, q)

    doubled_by_program, quantized = (
        burn.compile(doubled),
        burn.compile(lambda x: x.quantize_dynamic()),
    )
    for count, propagation in enumerate([Propagation.INHIBIT, Propagation.PROPAGATE], 1):
        scheme = default.scheme if count == 1 else BLOCKS
        configured(scheme=scheme, propagation=propagation)
        for _ in range(2):
            found = doubled_by_program(q)
            assert found.dtype is (q * 2.0).dtype is (burn.float32 if count == 1 else q.dtype)
            assert quantized(x).dtype is QDType(scheme)
        assert doubled_by_program.programs == quantized.programs == count
        traced = burn.ir.trace(doubled, q)
        assert traced(q).dtype is found.dtype
    configured()
    assert quantized(x).dtype is default
    assert doubled_by_program(q).dtype is burn.float32
    assert quantized.programs == 2


def test_programs_with_schemes_go_through_text_and_bytes():
    x, q = floats(4, 32), floats(8, 32).quantize_dynamic(BLOCKS)
    program = burn.ir.trace(lambda x, q: linear(x.quantize_dynamic(), q), x, q)
    text = program.to_text()
    assert f"scheme='{BLOCKS}'" in text or f"b_scheme='{BLOCKS}'" in text
    parts = [burn.asarray(part.array, device="cpu") for part in q.data().parts]
    for saved in (Program.from_text(text), Program.from_bytes(program.to_bytes())):
        assert saved.to_text() == text
        assert close(saved(x, *parts)[0], program(x, q))
    restored = pickle.loads(pickle.dumps(burn.ir.trace(lambda x: linear(x, q), x)))
    assert close(restored(x), linear(x, q))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("q4f(block=1x16, ", "q5f(block=1x16, "),
        ("q4f(block=1x16, ", "q4f(block=1x0, "),
        ("q4f(block=1x16, ", "q4f(block=1x12, "),
        ("q4f(block=1x16, ", "q4f(block=1x1x1x1x1x16, "),
        ("q4f(block=1x16, ", "q8f(block=1x16, "),
        ("scale=float16", "scale=float32"),
        ("scale=float16", "global=float32, scale=float16"),
        ("@-1", "@-3"),
        ("@-1", "@" + "-" + "9" * 30),
        ("store=packed_u32@-1", "store=native"),
        ("'q4f(", "'" + "(" * 5000),
        (f"'{BLOCKS}'", "3"),
        (f"'{BLOCKS}'", "none"),
        (f"scheme='{BLOCKS}'", "axis=0"),
    ],
    ids=range(14),
)
def test_a_text_with_a_wrong_scheme_is_an_error(old, new):
    q = floats(8, 32).quantize_dynamic(BLOCKS)
    text = burn.ir.trace(lambda q: q.dequantize(), q).to_text()
    assert old in text
    with pytest.raises(GraphError):
        GraphIr.from_text(text.replace(old, new))


def test_bytes_with_a_wrong_scheme_are_an_error():
    q = floats(8, 32).quantize_dynamic(BLOCKS)
    data = burn.ir.trace(lambda q: q.dequantize(), q).to_bytes()
    assert data.count(b"q4f(block=1x16") == 1
    for wrong in (b"q4f(block=1x12", b"q5f(block=1x16", b"q8f(block=1x16", b"\xff4f(block=1x16"):
        with pytest.raises(GraphError):
            GraphIr.from_bytes(data.replace(b"q4f(block=1x16", wrong))


def test_what_says_what_a_program_does_knows_the_ops_of_quantized_tensors():
    x, q = floats(4, 32), floats(8, 32).quantize_dynamic(BLOCKS)
    compiled = burn.compile(linear)
    with burn.profile(show=False) as profile:
        linear(x, q)
        compiled(x, q)
    assert "quantized_linear" in {event.name for event in profile.events}
    for cost in (compiled.cost(), burn.ir.trace(linear, x, q).cost()):
        assert cost.total.flops >= 2 * 4 * 8 * 32
        assert cost.total.bytes == 4 * 32 * 4 + BLOCKS.nbytes((8, 32)) + 4 * 8 * 4
    assert "quantized_linear" in compiled.explain()
    assert "quantized_linear" in compiled.svg()
    assert str(BLOCKS) in compiled.explain()


# Gradients.


@each_scheme
def test_gradients_flow_past_quantized_tensors(scheme):
    x, w = floats(4, 32), floats(8, 32, seed=1)
    q = w.quantize_dynamic(scheme)

    def loss(x, weight):
        return (linear(x, weight) ** 2).sum()

    expected = burn.grad(loss)(x, q.dequantize())
    direction = floats(4, 32, seed=2)
    value, gradient = burn.value_and_grad(loss)(x, q)
    assert close(gradient, expected)
    assert close(value, loss(x, q.dequantize()))
    assert close(burn.grad(lambda x: loss(x, q))(x), expected)
    assert close(burn.vjp(lambda x: loss(x, q), x)[1](1.0)[0], expected)
    assert close(
        burn.jvp(lambda x: loss(x, q), (x,), (direction,))[1], (expected * direction).sum()
    )
    assert close(burn.grad(burn.checkpoint(loss))(x, q), expected)
    assert close(burn.compile(burn.grad(loss))(x, q), expected)
    leaf = burn.asarray(x.numpy(), device=AUTODIFF).require_grad()
    for function in (loss, burn.compile(loss), burn.ir.trace(loss, leaf, q)):
        assert close(leaf.grad(function(leaf, q).backward()), expected)


def test_nothing_is_differentiated_by_a_quantized_tensor():
    x, q = floats(4, 32), floats(8, 32).quantize_dynamic(BLOCKS)
    for transform in (burn.grad, burn.value_and_grad):
        with pytest.raises(burn.DTypeError, match="argument 1 is a tensor of q4f"):
            transform(lambda x, q: linear(x, q).sum(), argnums=1)(x, q)
    with pytest.raises(burn.DTypeError, match="only float tensors have gradients"):
        burn.jvp(linear, (x, q), (x, q))
    with pytest.raises(burn.DTypeError, match="only float"):
        q.to_device(AUTODIFF).require_grad()
    with pytest.raises(burn.DTypeError, match="returns q4f"):
        burn.jvp(lambda x: x.quantize_dynamic(BLOCKS), (x,), (x,))


def test_quantizing_detaches_also_scales_that_are_tracked():
    leaf = burn.asarray([0.5], device=AUTODIFF).require_grad()
    x = floats(8, 32, device=AUTODIFF)
    scheme = SCHEMES["two levels"]
    scales = burn.full((8, 4), 0.5, device=AUTODIFF) * leaf
    q = x.quantize(scheme, QParams(scales, leaf * 2.0))
    assert not q.is_tracked
    assert not q.dequantize().is_tracked
    assert bits(q) == bits(x.quantize(scheme, QParams(scales.detach(), (leaf * 2.0).detach())))


def test_functions_with_gradients_of_their_own_take_quantized_tensors():
    @burn.custom_vjp
    def scaled(x, q):
        return linear(x, q)

    scaled.defvjp(
        lambda x, q: (linear(x, q), q),
        lambda q, gradient: (3.0 * (gradient @ q.dequantize()), None),
    )
    x, q = floats(4, 32), floats(8, 32).quantize_dynamic(BLOCKS)
    expected = 3.0 * burn.grad(lambda x: linear(x, q).sum())(x)
    loss = lambda x, q: scaled(x, q).sum()  # noqa: E731 — one line
    for function in (burn.grad(loss), burn.compile(burn.grad(loss))):
        assert close(function(x, q), expected)
    each = burn.vmap(burn.grad(loss), in_axes=(0, None))
    assert close(each(x[:, None], q)[:, 0], expected)


def test_optimizers_leave_quantized_weights_alone():
    net = nn.Sequential(nn.Linear(32, 16, device=AUTODIFF), nn.Linear(16, 4, device=AUTODIFF))
    net[0].quantize(BLOCKS)
    before = bits(net[0].weight)
    assert [name for name, _ in net.named_parameters()] == ["0.bias", "1.weight", "1.bias"]
    optimizer = optim.Adam(net, learning_rate=0.1)
    accumulator = optim.GradientAccumulator()
    average = optim.ExponentialMovingAverage(net)
    x = floats(4, 32)

    @burn.compile
    def step(x):
        loss = (net(x) ** 2).mean()
        optimizer.step(loss.backward())
        return loss.detach()

    losses = [float(step(x)) for _ in range(3)]
    assert losses[2] < losses[0]
    accumulator.add((net(x) ** 2).mean().backward())
    optimizer.step(accumulator.take())
    average.update()
    assert bits(net[0].weight) == before


# Control flow.


def test_bodies_use_and_carry_quantized_tensors():
    x, q = floats(4, 32), floats(8, 32).quantize_dynamic(BLOCKS)
    other = floats(8, 32, seed=3).quantize_dynamic(BLOCKS)

    def either(flag, x):
        return burn.cond(flag, lambda x: (linear(x, q), q), lambda x: (linear(x, other), other), x)

    def carried(q):
        def body(state):
            return state[0] + 1, (state[1].dequantize() * 2.0).quantize_dynamic(BLOCKS)

        return burn.while_loop(lambda state: state[0] < 3, body, (burn.zeros((), device="cpu"), q))

    def scanned(x, q):
        def body(carry, row):
            return (carry[0] + linear(row, carry[1]), carry[1]), linear(row, other)

        return burn.scan(body, (burn.zeros(8, device="cpu"), q), x)

    for flag, chosen in ((True, q), (False, other)):
        result, weight = burn.compile(either)(burn.asarray(flag, device="cpu"), x)
        assert close(result, linear(x, chosen))
        assert bits(weight) == bits(chosen)
    assert bits(burn.compile(carried)(q)[1]) == bits(carried(q)[1])
    (total, weight), rows = burn.compile(scanned)(x, q)
    assert close(total, linear(x, q).sum(axis=0))
    assert close(rows, linear(x, other))
    assert bits(weight) == bits(q)
    gradient = burn.grad(lambda x: scanned(x, q)[0][0].sum())
    assert close(burn.compile(gradient)(x), gradient(x))


def test_a_traced_loop_neither_takes_apart_nor_stacks_quantized_tensors():
    x, q = floats(4, 32), floats(8, 32).quantize_dynamic(BLOCKS)
    along = burn.compile(lambda q: burn.scan(lambda c, row: (c + row.sum(), None), q.sum(), q))
    stacked = burn.compile(lambda x: burn.scan(lambda c, row: (c, q), x.sum(), x))
    for function, given in ((along, q), (stacked, x)):
        with pytest.raises(burn.TraceError, match="quantized"):
            function(given)
    with pytest.raises(BurnError, match="q4f"):
        burn.compile(lambda x: burn.scan(lambda c, row: (c.dequantize(), None), q, x))(x)


# Examples of a batch.


@each_scheme
def test_vmap_uses_quantized_tensors_from_outside(scheme):
    x, q = floats(4, 32), floats(8, 32).quantize_dynamic(scheme)
    mapped = burn.vmap(lambda x: linear(x, q))
    assert close(mapped(x), linear(x, q))
    assert not mapped.fallbacks
    assert close(burn.vmap(lambda x, q: linear(x, q), in_axes=(0, None))(x, q), linear(x, q))
    assert close(burn.compile(mapped)(x), linear(x, q))
    returned = burn.vmap(lambda x: q)(x)
    assert all(bits(returned[number])[2] == bits(q)[2] for number in range(4))


@each_scheme
@pytest.mark.parametrize("axis", range(3))
def test_vmap_maps_over_a_quantized_tensor_whose_blocks_it_leaves_whole(scheme, axis):
    q = floats(4, 8, 32).quantize_dynamic(scheme)
    if scheme.level.block and scheme.blocks(q.shape)[axis] > 1:
        with pytest.raises(burn.ShapeError, match=f"examples along axis {axis} .* share scales"):
            burn.vmap(lambda item: item, in_axes=axis)(q)
        return
    numbers = q.dequantize()
    examples = [q[(slice(None),) * axis + (number,)] for number in range(q.shape[axis])]
    found = []
    mapped = burn.vmap(
        lambda tensor: found.append(tensor.dtype) or tensor.dequantize() * 2.0, in_axes=axis
    )
    assert close(mapped(q), burn.moveaxis(numbers, axis, 0) * 2.0)
    assert not mapped.fallbacks
    assert found[0].scheme.level == examples[0].dtype.scheme.level
    for out in range(3):
        back = burn.vmap(lambda item: item, in_axes=axis, out_axes=out)(q)
        assert back.dtype.kind == q.dtype.kind
        assert back.dequantize().tolist() == burn.moveaxis(numbers, axis, out).tolist()


@each_scheme
def test_vmap_quantizes_each_example_with_scales_of_its_own(scheme):
    x = floats(4, 8, 32) * burn.asarray([1.0, 10.0, 0.1, 0.0], device="cpu").reshape((4, 1, 1))
    expected = [x[number].quantize_dynamic(scheme) for number in range(4)]
    mapped = burn.vmap(lambda x: x.quantize_dynamic(scheme).dequantize())
    assert mapped(x).tolist() == [item.dequantize().tolist() for item in expected]
    assert not mapped.fallbacks
    quantize = burn.vmap(lambda x: x.quantize_dynamic(scheme))
    if scheme.level.is_global:
        with pytest.raises(burn.ShapeError, match="a global scale of its own"):
            quantize(x)
        return
    for function in (quantize, burn.compile(quantize)):
        found = function(x)
        assert found.dtype.kind == expected[0].dtype.kind
        assert found.dequantize().tolist() == [item.dequantize().tolist() for item in expected]
    assert quantize(x[:0]).shape == (0, 8, 32)


def test_vmap_of_loops_with_quantized_tensors():
    x, q = floats(4, 32), floats(3, 8, 32).quantize_dynamic(BLOCKS)

    def total(x, q):
        def body(carry, row):
            return (carry[0] + linear(row, carry[1]) + linear(row, q), carry[1]), None

        return burn.scan(body, (burn.zeros(8, device="cpu"), q), x)[0]

    mapped = burn.vmap(total, in_axes=(None, 0))
    expected = [2.0 * linear(x, q[number]).sum(axis=0) for number in range(3)]
    for function in (mapped, burn.compile(mapped), burn.vmap(burn.compile(total), (None, 0))):
        found, weights = function(x, q)
        assert close(found, burn.stack(expected))
        assert bits(weights) == bits(q)
    program = burn.ir.trace(total, x, q[0])
    assert close(burn.vmap(program, in_axes=(None, 0))(x, q)[0], burn.stack(expected))


def test_vmap_within_vmap_and_gradients_of_examples():
    q = floats(4, 8, 32).quantize_dynamic(BLOCKS)
    numbers = q.dequantize()
    assert bits(burn.vmap(burn.vmap(lambda row: row))(q))[1:] == bits(q)[1:]
    assert close(burn.vmap(burn.vmap(lambda row: row.dequantize()))(q), numbers)
    own = burn.vmap(burn.vmap(lambda row: row.quantize_dynamic(QuantScheme())))(numbers)
    assert own.dequantize()[1, 2].tolist() == (
        numbers[1, 2].quantize_dynamic(QuantScheme()).dequantize().tolist()
    )
    x = floats(4, 32, seed=1)
    each = burn.vmap(burn.grad(lambda x, q: (linear(x, q) ** 2).sum()))
    by_loop = [burn.grad(lambda x, n=n: (linear(x, numbers[n]) ** 2).sum())(x[n]) for n in range(4)]
    assert close(each(x, q), burn.stack(by_loop))


def test_an_example_has_no_one_value():
    q = floats(4, 8, 32).quantize_dynamic(BLOCKS)
    for read in (
        lambda item: item.data(),
        lambda tensor: tensor.numpy(),
        lambda item: item.inner(),
        lambda item: pickle.dumps(item),
        lambda item: bool(item.sum()),
    ):
        with pytest.raises(BurnError, match="a value for each example"):
            burn.vmap(read)(q)
    shown = []
    burn.vmap(lambda item: shown.append(repr(item)) or item)(q)
    assert "batch=(4,)" in shown[0]
    assert f"dtype={BLOCKS}" in shown[0]


# Containers, threads, processes and routers.


@each_scheme
def test_copies_and_pickles_have_the_same_bits(scheme):
    q = floats(8, 32).quantize_dynamic(scheme)
    tree = {"weights": [q, {"other": q.T}], "name": "a"}
    for same in (copy.copy(q), copy.deepcopy(q), pickle.loads(pickle.dumps(q))):
        assert bits(same) == bits(q)
    copied = copy.deepcopy(tree)
    assert bits(copied["weights"][0]) == bits(q)
    assert copied["weights"][0] is not q
    mapped = burn.tree.map(
        lambda part: part.dequantize() if part is not tree["name"] else part, tree
    )
    assert close(mapped["weights"][1]["other"], q.dequantize().T)
    assert burn.tree.leaves(tree)[0] is q
    assert pickle.loads(pickle.dumps(q.dtype)) is q.dtype


def test_threads_use_one_quantized_weight():
    x, q = floats(4, 32), floats(8, 32).quantize_dynamic(BLOCKS)
    expected = linear(x, q).tolist()
    compiled = burn.compile(linear)
    barrier = threading.Barrier(4)
    results = []

    def work(number):
        barrier.wait(60)
        for _ in range(20):
            found = (compiled if number % 2 else linear)(x, q)
            results.append(np.allclose(found.tolist(), expected, rtol=1e-5, atol=1e-5))

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(results) == 80
    assert all(results)


POOL = """
import multiprocessing, sys
import burn
from burn.nn import functional as F

def product(arguments):
    x, q = arguments
    return F.linear(x, q, transposed=True).tolist(), q

def inherited(_):
    return F.linear(x, q, transposed=True).tolist(), q

x = burn.ones((2, 32), device="cpu")
q = burn.reshape(burn.arange(256.0, device="cpu"), (8, 32)).quantize_dynamic()

if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
        for function in (product, inherited):
            found, back = pool.map_async(function, [(x, q)]).get(60)[0]
            assert found == product((x, q))[0]
            assert [one.array.tobytes() for one in back.data().parts] == [
                one.array.tobytes() for one in q.data().parts
            ]
    print("done")
"""


@forks
@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.exhaustive)])
def test_other_processes_get_quantized_tensors(run_python, tmp_path, method):
    program = tmp_path / "pool.py"
    program.write_text(POOL)
    result = run_python("-W", "ignore:.*fork.*:DeprecationWarning", program, method)
    assert result.stdout == "done\n", result.stderr


@pytest.fixture(scope="module")
def pipe():
    """A device whose ops another process runs."""
    channel = PipeChannel("cpu")
    with routed("pipe", channel):
        assert isinstance(burn.Device("pipe").backend, RouterBackend)
        yield burn.Device("pipe")
    channel.close()


@each_scheme
def test_a_router_has_the_parts_of_quantized_tensors(pipe, scheme):
    x, w = floats(4, 32), floats(8, 32, seed=1)
    q = w.quantize_dynamic(scheme)
    there = w.to_device(pipe).quantize_dynamic(scheme)
    assert bits(there) == bits(q)
    assert bits(q.to_device(pipe)) == bits(there)
    assert bits(there.to_device("cpu").T) == bits(there.T)
    moved = x.to_device(pipe)
    for function in (linear, burn.compile(linear), burn.ir.trace(linear, moved, there)):
        assert close(function(moved, there), linear(x, q))
    assert bits(pickle.loads(pickle.dumps(there))) == bits(q)


# Conversions.


def test_conversions_give_the_numbers():
    q = floats(8, 32).quantize_dynamic(BLOCKS)
    numbers = q.dequantize()
    assert q.numpy().tolist() == q.tolist() == numbers.tolist() == np.asarray(q).tolist()
    assert np.array(q, dtype=np.float64).dtype == np.float64
    assert burn.from_dlpack(q.dequantize()).tolist() == numbers.tolist()
    assert burn.asarray(q) is q or bits(burn.asarray(q)) == bits(q)
    assert len(q) == 8
    assert [row.tolist() for row in q] == numbers.tolist()
    assert hash(q) == hash(q)
    assert {q: 1}[q] == 1
    assert numbers[0, 0].item() in q.flatten()
    assert 1e9 not in q.flatten()
    one = numbers.sum().reshape((1,)).quantize_dynamic()
    assert float(one) == one.item() == complex(one) == one.tolist()[0]
    assert int(one) == int(float(one))
    assert bool(one)
    assert f"{one:.2f}" == f"{one.item():.2f}"
    assert f"{q}" == repr(q)
    assert f"dtype={BLOCKS}" in repr(q)
    assert sorted([one, one - 1.0], key=float)[1] is one


def test_arrow_reads_the_numbers():
    pyarrow = pytest.importorskip("pyarrow")
    q = floats(8, 32).quantize_dynamic(BLOCKS)
    assert pyarrow.array(q).to_pylist() == q.tolist()


@pytest.mark.parametrize(
    ("convert", "error", "message"),
    [
        (np.from_dlpack, burn.ExportError, "codes and scales"),
        (burn.from_dlpack, burn.ExportError, "codes and scales"),
        (lambda q: q.__dlpack__(dl_device=(1, 0)), burn.ExportError, "codes and scales"),
        (lambda q: np.array(q, copy=False), burn.ArgumentError, "are computed"),
        (operator.index, burn.OperandTypeError, "is no index"),
        (lambda q: floats(4)[q], burn.OperandTypeError, "is no index"),
        (lambda q: np.add(q, q), burn.OperandTypeError, "burn.add"),
        (lambda q: f"{q:.2f}", burn.ShapeError, "not one number"),
        (float, burn.ShapeError, "not one number"),
        (operator.invert, burn.DTypeError, "bitwise_invert"),
        (lambda q: burn.zeros((2,), dtype=q.dtype), burn.DTypeError, "not supported"),
        (lambda q: operator.iadd(q, 1.0), burn.OperandTypeError, "would change the dtype"),
    ],
    ids=range(12),
)
def test_what_a_quantized_tensor_cannot_be_is_a_clear_error(convert, error, message):
    with pytest.raises(error, match=message):
        convert(floats(8, 32).quantize_dynamic(BLOCKS))


@each_scheme
def test_an_assignment_quantizes_all_numbers_again(scheme):
    q = floats(8, 32).quantize_dynamic(scheme)
    for key, value in (
        (0, 0.0),
        (1, floats(32, seed=1)),
        (2, q[3]),
        ((slice(None), 0), floats(8, seed=2).numpy()),
        ((4, 5), 1),
        (burn.asarray([0, 2], device="cpu"), floats(2, 32, seed=3)),
        (q.dequantize() > 1.0, 0.5),
        ((slice(0, 4), slice(3, 9)), [[2.0]]),
    ):
        numbers = q.dequantize()
        numbers[key] = value
        q[key] = value
        assert bits(q) == bits(numbers.quantize_dynamic(scheme))


def test_a_write_to_a_view_keeps_the_scheme_and_the_codes_of_the_others():
    q = floats(8, 32).quantize_dynamic(BLOCKS)
    before, dtype = q.dequantize(), q.dtype
    transposed, rows, blocks = q.T, q[2:4], q.reshape((2, 4, 32))
    blocks[0, 0] = 0.0
    assert q.dtype is dtype
    assert not q[0].dequantize().any()
    assert not transposed[:, 0].dequantize().any()
    transposed[:, 3] = 0.0
    assert q.dtype is dtype
    assert rows[1].tolist() == blocks[0, 3].tolist() == [0.0] * 32
    scale = float(before.abs().max()) / 7
    assert float((q[4:].dequantize() - before[4:]).abs().max()) <= 2 * scale


@pytest.mark.parametrize("scheme", [SCHEMES["tensor"], BLOCKS], ids=["tensor", "blocks"])
def test_examples_go_through_rules_of_the_user_checkpoints_and_other_devices(scheme):
    x, q = floats(4, 32), floats(4, 8, 32).quantize_dynamic(scheme)
    other = QuantScheme()

    @burn.custom_vjp
    def product(x, q):
        return linear(x, q), x.quantize_dynamic(other)

    product.defvjp(
        lambda x, q: (product(x, q), q),
        lambda q, gradients: (3.0 * (gradients[0][None] @ q.dequantize())[0], None),
    )
    expected = 3.0 * burn.vmap(burn.grad(lambda x, q: linear(x, q).sum()))(x, q)
    results, codes = burn.vmap(product)(x, q)
    assert close(results, burn.vmap(linear)(x, q))
    assert codes[2].dequantize().tolist() == x[2].quantize_dynamic(other).dequantize().tolist()
    each = burn.vmap(burn.grad(lambda x, q: product(x, q)[0].sum()))
    whole = burn.grad(lambda x, q: burn.vmap(product)(x, q)[0].sum())
    again = burn.vmap(burn.grad(lambda x, q: 3.0 * burn.checkpoint(linear)(x, q).sum()))
    for function in (each, whole, again, burn.compile(each)):
        assert close(function(x, q), expected)
    moved = burn.vmap(lambda item: item.to_device("torch/cpu").dequantize())(q)
    assert moved.tolist() == q.dequantize().tolist()


@each_device
def test_codes_near_ties_are_the_same_in_programs(device):
    random = np.random.default_rng(0)
    scale = np.exp(random.standard_normal((16, 1))).astype(np.float32)
    values = (random.integers(-100, 100, (16, 64)).astype(np.float32) + 0.5) * scale
    values[:, ::16] = 127 * scale
    x = burn.asarray(values, device=device)
    scheme = QuantScheme(QuantValue.Q8S).per_block((1, 16), ScaleDType.F32)

    def by_range(x):
        return x.quantize(scheme, compute_q_params(scheme, compute_range(scheme, x)))

    def by_example(x):
        return burn.vmap(lambda x: x.quantize_dynamic(scheme))(x.reshape((4, 4, 64)))

    expected = bits(x.quantize_dynamic(scheme))
    for function in (by_range, burn.compile(by_range), burn.ir.trace(by_range, x)):
        assert bits(function(x)) == expected
    for function in (by_example, burn.compile(by_example), burn.ir.trace(by_example, x)):
        assert bits(function(x))[2] == expected[2]


STEPS = {
    "T": lambda q: q.T,
    "rows": lambda q: q[:4],
    "reshape": lambda q: q.reshape((2, -1, *q.shape[1:])),
    "flip": lambda q: burn.flip(q, axis=0),
    "index": lambda q: q[0],
    "concat": lambda q: burn.concat([q, q], axis=0),
    "stack": lambda q: burn.stack([q, q]),
    "repeat": lambda q: burn.repeat(q, 2, axis=0),
    "expand": lambda q: burn.expand_dims(q, axis=0),
    "flatten": lambda q: q.flatten(),
    "double": lambda q: q * 2.0,
    "again": lambda q: q.dequantize().quantize_dynamic(BLOCKS),
    "abs": abs,
    "sort": lambda q: burn.sort(q, axis=-1),
    "max": lambda q: q.max(axis=-1),
    "where": lambda q: burn.where(q > 0, q, 0.0),
}


def test_compiled_steps_have_the_results_and_errors_of_eager_ones(everything):
    random = np.random.default_rng(1)
    for _ in range(250 if everything else 30):
        steps = [STEPS[name] for name in random.choice(list(STEPS), random.integers(1, 5))]
        q = floats(8, 32).quantize_dynamic(random.choice(list(SCHEMES.values())))

        def function(q, steps=steps):
            for step in steps:
                q = step(q)
            return q

        try:
            expected = function(q)
        except BurnError as error:
            with pytest.raises(type(error)):
                burn.compile(function)(q)
            continue
        found = burn.compile(function)(q)
        assert found.dtype is expected.dtype
        if isinstance(found.dtype, QDType):
            assert bits(found) == bits(expected)
        else:
            assert close(found, expected)


def test_ranges_and_parameters_of_codes_go_in_and_out_of_compiled_functions():
    scheme = burn.quantization.QuantScheme()
    x = burn.asarray([[1.0, -2.0, 3.0, 4.0]], device="cpu")

    @burn.compile
    def parameters(x):
        found = burn.quantization.compute_range(scheme, x)
        return found, burn.quantization.compute_q_params(scheme, found)

    found, made = parameters(x)
    assert (found.min.item(), found.max.item()) == (-2.0, 4.0)
    assert made.global_ is None
    (scales,) = burn.tree.leaves(made)
    assert scales is made.scales
