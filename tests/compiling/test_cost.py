"""What calls of ops cost: the rules, each op, and whole networks against torch's count."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as TF
from torch.utils import flop_counter

import burn
from burn import bfloat16, complex64, float32, float64, int64
from burn.errors import ShapeError, UnsupportedOpError
from burn.ir import GraphIr, OperationIr, ScalarIr, TensorIr
from burn.ir.cost import Cost, cost
from burn.nn import functional as F
from burn.ops import REGISTRY, Meta, Tag
from ir_graphs import calls, sample_graph

PRODUCTS = ("attention", "attention_grad", "conv", "conv_transpose", "conv_weight_grad")
PRODUCTS = (*PRODUCTS, "linear", "matmul")
"""The ops that torch counts, which adds up no biases and nothing else."""

aten = torch.ops.aten
ATTENTION_ON_CPU = {
    aten._scaled_dot_product_flash_attention_for_cpu: (
        lambda q, k, v, *_, **__: flop_counter.sdpa_flop_count(q, k, v)
    ),
    aten._scaled_dot_product_flash_attention_for_cpu_backward: (
        lambda g, q, k, v, *_, **__: flop_counter.sdpa_backward_flop_count(g, q, k, v)
    ),
}
"""Torch's own formulas, which it does not attach to its kernels on CPUs."""


def f32(*shape):
    return Meta(shape, float32)


def products(graph):
    """The operations of the products in a graph, without sums of biases and of their gradients."""
    total = 0
    for operation in graph.cost().operations:
        if operation.operation.name in PRODUCTS:
            has_bias = operation.operation.name in ("conv", "conv_transpose", "linear")
            has_bias = has_bias and operation.operation.inputs[2] is not None
            total += operation.flops - has_bias * math.prod(operation.operation.outputs[0].shape)
        elif operation.operation.name == "linear_grad":
            total += operation.flops - math.prod(operation.operation.inputs[1].shape)
    return total


def counted_by_torch(loss, arrays, *constants):
    """Torch's count of a loss and its gradients by the first arrays."""
    tracked = [torch.tensor(array, requires_grad=True) for array in arrays]
    counter = flop_counter.FlopCounterMode(display=False, custom_mapping=ATTENTION_ON_CPU)
    with counter:
        loss(*tracked, *map(torch.tensor, constants)).backward()
    return counter.get_total_flops()


def traced(loss, arrays, *constants):
    """The program of a loss and its gradients by the first arrays."""
    step = burn.value_and_grad(loss, argnums=tuple(range(len(arrays))))
    tensors = [burn.asarray(array, device="cpu") for array in (*arrays, *constants)]
    return burn.ir.trace(step, *tensors)


def random(*shapes):
    generator = np.random.default_rng(5)
    return [generator.normal(size=shape).astype(np.float32) for shape in shapes]


def test_a_training_step_of_dense_layers_has_the_products_that_torch_counts():
    arrays = random((13, 17), (17,), (17, 19), (19,), (19, 5), (5,))
    x, target = random((7, 13))[0], np.arange(7) % 5

    def ours(w1, b1, w2, b2, w3, b3, x, target):
        hidden = F.relu(F.linear(F.relu(F.linear(x, w1, b1)), w2, b2))
        return F.cross_entropy(F.linear(hidden, w3, b3), target)

    def theirs(w1, b1, w2, b2, w3, b3, x, target):
        hidden = TF.relu(TF.relu(x @ w1 + b1) @ w2 + b2)
        return TF.cross_entropy(hidden @ w3 + b3, target)

    graph = traced(ours, arrays, x, target)
    assert products(graph) == counted_by_torch(theirs, arrays, x, target)
    # Forward, the gradients by three weights, and those by two inputs.
    assert products(graph) == 2 * 7 * (2 * 13 * 17 + 3 * (17 * 19 + 19 * 5))
    assert 1.0 < graph.cost().total.flops / products(graph) < 1.2


def test_a_residual_block_has_the_products_that_torch_counts():
    shapes = [(4, 8, 15, 13), (16, 8, 3, 3), (16, 16, 3, 3), (16, 8, 1, 1), (16,), (16, 3, 2, 2)]
    arrays = random(*shapes)
    mean, variance = burn.zeros(16, device="cpu"), burn.ones(16, device="cpu")

    def ours(x, w1, w2, shortcut, bias, up):
        hidden = F.conv2d(x, w1, stride=2, padding=1)
        hidden, *_ = F.batch_norm_training(hidden, mean, variance)
        hidden = F.conv2d(F.relu(hidden), w2, bias, padding=2, dilation=2)
        hidden = F.relu(hidden + F.conv2d(x, shortcut, stride=2))
        return F.conv_transpose2d(F.max_pool2d(hidden, 2), up, stride=2).sum()

    def theirs(x, w1, w2, shortcut, bias, up):
        hidden = TF.conv2d(x, w1, stride=2, padding=1)
        hidden = TF.batch_norm(hidden, None, None, training=True)
        hidden = TF.conv2d(TF.relu(hidden), w2, bias, padding=2, dilation=2)
        hidden = TF.relu(hidden + TF.conv2d(x, shortcut, stride=2))
        return TF.conv_transpose2d(TF.max_pool2d(hidden, 2), up, stride=2).sum()

    graph = traced(ours, arrays)
    assert {"conv", "conv_transpose", "conv_weight_grad"} <= graph.cost().by_op.keys()
    assert products(graph) == counted_by_torch(theirs, arrays)


def test_a_convolution_in_groups_has_its_part_of_the_products_forward_and_back():
    # Torch's count of the gradient by a weight leaves the groups out.
    arrays = random((4, 8, 15, 13), (16, 2, 3, 3))
    graph = traced(lambda x, w: F.conv2d(x, w, padding=1, groups=4).sum(), arrays)
    terms, outputs = 2 * 9, 4 * 16 * 15 * 13
    assert products(graph) == 3 * 2 * outputs * terms


def test_a_block_of_a_transformer_has_the_products_that_torch_counts():
    batch, length, width, heads, tokens = 2, 12, 32, 4, 50
    shapes = [(tokens, width), (width, 3 * width), (width, width), (width,)]
    shapes += [(width, 4 * width), (4 * width,), (4 * width, width), (width,)]
    arrays = random(*shapes)
    ids = np.arange(batch * length).reshape(batch, length) % tokens

    def block(library, attention, permute, words, qkv, out, gain, w1, b1, w2, b2):
        normal = library.layer_norm(words, (width,), gain) if library is TF else None
        normal = F.layer_norm(words, gain) if normal is None else normal
        parts = (normal @ qkv).reshape((batch, length, 3, heads, width // heads))
        query, key, value = permute(parts, (2, 0, 3, 1, 4))
        mixed = attention(query, key, value, is_causal=True)
        mixed = permute(mixed, (0, 2, 1, 3)).reshape((batch, length, width))
        words = words + mixed @ out
        return words + library.gelu(words @ w1 + b1) @ w2 + b2

    def ours(table, *rest):
        *weights, ids = rest
        words = block(F, F.attention, burn.permute_dims, F.embedding(table, ids), *weights)
        logits = (words @ table.T).reshape((batch * length, tokens))
        return F.cross_entropy(logits, ids.reshape((-1,)))

    def theirs(table, *rest):
        *weights, ids = rest
        attention = TF.scaled_dot_product_attention
        words = block(TF, attention, torch.permute, TF.embedding(ids, table), *weights)
        return TF.cross_entropy((words @ table.T).reshape(-1, tokens), ids.reshape(-1))

    graph = traced(ours, arrays, ids)
    assert {"attention", "attention_grad"} <= graph.cost().by_op.keys()
    assert products(graph) == counted_by_torch(theirs, arrays, ids)


def test_every_op_has_a_cost_on_each_of_its_samples():
    seen = set()
    for known, call in calls():
        graph = sample_graph(known, call)
        ((operation, flops, size),) = graph.cost().operations
        floats = [out for out in operation.outputs if out.dtype.is_float or out.dtype.is_complex]
        assert type(flops) is type(size) is int, (known.op.name, call.note)
        assert (flops == 0) if not floats else (flops >= 0), (known.op.name, call.note)
        assert (size == 0) if Tag.VIEW in known.op.tags else (size >= 0), (known.op.name, call.note)
        seen.add(known.op.name)
    assert seen == REGISTRY.keys()


def test_an_op_that_computes_and_has_no_decomposition_says_its_cost():
    missing = [
        name
        for name, definition in REGISTRY.items()
        if Tag.COMPUTE_BOUND in definition.tags
        and definition.default is None
        and Tag.REDUCTION not in definition.tags
        and definition.flops is None
    ]
    # The outputs of these are integers.
    assert set(missing) == {
        *["argsort", "argwhere", "repeat_indices", "unique_indices", "unique_rows_indices"]
    }


X, W = f32(2, 6, 8, 8), f32(4, 3, 3, 3)
WINDOW = {"stride": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1)}
POOL = {"stride": (2, 2), "padding": ((0, 0), (0, 0)), "kernel_size": (2, 2), "ceil_mode": False}
HEADS = [f32(2, 4, 10, 16), f32(2, 4, 12, 16), f32(2, 4, 12, 8), None, None]
ATTENTION = {"scale": 0.25, "softcap": None, "is_causal": False}
SCORES = 2 * 4 * 10 * 12
MATRIX = f32(3, 10, 10)


@pytest.mark.parametrize(
    ("name", "operands", "attributes", "flops"),
    [
        ("matmul", [f32(5, 4, 3), f32(3, 2)], {}, 2 * 5 * 4 * 3 * 2),
        ("linear", [f32(5, 4, 3), f32(3, 2), f32(2)], {}, 2 * 5 * 4 * 3 * 2 + 5 * 4 * 2),
        ("vecdot", [f32(5, 7), f32(5, 7)], {"axis": 1}, 2 * 35),
        ("conv", [X, W, None], {**WINDOW, "groups": 2}, 2 * (2 * 4 * 64) * 27),
        ("conv", [X, W, f32(4)], {**WINDOW, "groups": 2}, 2 * (2 * 4 * 64) * 27 + 2 * 4 * 64),
        (
            "conv_transpose",
            [f32(2, 4, 8, 8), W, None],
            {**WINDOW, "stride": (2, 2), "groups": 2, "output_padding": (0, 0)},
            2 * (2 * 4 * 64) * 27,
        ),
        ("max_pool", [X], {**POOL, "dilation": (1, 1)}, 2 * 6 * 16 * 4),
        ("avg_pool", [X], {**POOL, "count_include_pad": True}, 2 * 6 * 16 * 4),
        ("adaptive_avg_pool", [X], {"output_size": (2, 4)}, 2 * 6 * 64),
        ("attention", HEADS, ATTENTION, 2 * SCORES * (16 + 8)),
        ("attention_grad", [*HEADS, f32(2, 4, 10, 8)], ATTENTION, 2 * SCORES * (3 * 16 + 2 * 8)),
        ("softmax", [f32(4, 10)], {"axis": 1}, 4 * 10 * 5 - 4 * 2 + 4 * 2),
        ("sum", [f32(4, 10)], {"axis": (1,), "dtype": float32}, 40),
        ("argmax", [f32(4, 10)], {"axis": 1, "dtype": int64}, 0),
        ("var", [f32(4, 10)], {"axis": (1,)}, 160),
        ("cumsum", [f32(4, 10)], {"axis": 1}, 40),
        ("gelu", [f32(4, 10)], {"approximate": "none"}, 40),
        ("less", [f32(4, 10), 0.0], {}, 0),
        ("where", [Meta((4, 10), burn.bool), f32(4, 10), 0.0], {}, 0),
        ("add", [Meta((4, 10), int64), 1], {}, 0),
        ("reshape", [f32(4, 10)], {"shape": (40,)}, 0),
        ("gather", [f32(4, 10), Meta((4, 2), int64)], {"axis": 1}, 0),
        ("scatter_add", [f32(4, 10), Meta((4, 2), int64), f32(4, 2)], {"axis": 1}, 8),
        ("cfft", [f32(3, 1024)] * 2, {"axis": 1, "n": 1024}, 3 * 5 * 1024 * 10),
        ("rfft", [f32(3, 1024)], {"axis": 1, "n": 1024}, 3 * 5 * 1024 * 10 // 2),
        ("irfft", [f32(3, 513)] * 2, {"axis": 1, "n": 1024}, 3 * 5 * 1024 * 10 // 2),
        ("solve", [MATRIX, f32(3, 10, 4)], {}, 3 * (2000 // 3 + 2 * 400)),
        ("inv", [MATRIX], {}, 3 * 2000),
        ("cholesky", [MATRIX], {}, 1000),
        ("qr", [f32(20, 10)], {}, 4 * 20 * 100 - 4000 // 3),
        ("svdvals", [f32(10, 20)], {}, 4 * 20 * 100 - 4000 // 3),
        ("eigvalsh", [MATRIX], {}, 4000),
        ("add", [Meta((5,), complex64), 1.0], {}, 5 * 4),
        ("matmul", [Meta((4, 3), complex64), Meta((3, 2), complex64)], {}, 4 * 2 * 4 * 3 * 2),
    ],
)
def test_a_count_is_that_of_the_textbook(name, operands, attributes, flops):
    assert cost(name, operands, attributes).flops == flops


def test_the_numbers_of_a_generator_cost_what_makes_floats_of_its_bits():
    attributes = {"shape": (100,), "seed": 1, "offset": 0, "dtype": float32}
    uniform = cost("random_uniform", [], {**attributes, "low": 0.0, "high": 1.0})
    assert uniform == Cost(100, 400)
    integers = {**attributes, "low": 0, "high": 6, "dtype": int64}
    assert cost("random_integers", [], integers) == Cost(0, 800)


def test_a_decomposition_in_a_wider_dtype_costs_the_same():
    for name, attributes in (("softmax", {"axis": 1}), ("layer_norm", {"epsilon": 1e-5})):
        rest = [None] * (len(REGISTRY[name].operands) - 1)
        counts = [
            cost(name, [Meta((8, 64), dtype), *rest], attributes).flops
            for dtype in (bfloat16, float32, float64)
        ]
        assert len(set(counts)) == 1
        assert counts[0] > 8 * 64


@pytest.mark.parametrize("dtype", [bfloat16, float32, float64])
def test_bytes_are_those_of_operands_and_outputs(dtype):
    x, y = Meta((4, 3), dtype), Meta((3, 2), dtype)
    assert cost("matmul", [x, y], {}).bytes == (12 + 6 + 8) * dtype.itemsize
    assert cost("concat", [[x, x]], {"axis": 0}).bytes == 2 * (12 + 12) * dtype.itemsize
    assert cost("permute", [x], {"axes": (1, 0)}).bytes == 0


def test_an_optimizer_step_costs_the_same_for_every_learning_rate_and_step():
    tensor = f32(10)
    known = {"beta1": 0.9, "beta2": 0.99, "epsilon": 1e-8, "weight_decay": 0.0}
    known["decoupled"] = True
    operands = [*[[tensor]] * 4, []]
    first = cost("adam_step", operands, {**known, "learning_rate": 0.1, "step": 1})
    runtime = {"learning_rate": ScalarIr(0, float), "step": ScalarIr(1, int, 7)}
    assert cost("adam_step", operands, {**known, **runtime}) == first
    assert cost("adam_step", operands, {**known, "learning_rate": 0.2, "step": 9}) == first
    assert first.flops == 14 * 10 - 10
    several = cost("adam_step", [*[[tensor] * 3] * 4, []], {**known, **runtime})
    assert several == (3 * first.flops, 3 * first.bytes)


def test_a_length_that_depends_on_data_counts_nothing():
    x, unknown = TensorIr(0, (4,), float32), TensorIr(1, (None, 1), int64)
    taken = TensorIr(2, (None,), float32)
    graph = GraphIr(
        (x,),
        (),
        (
            OperationIr("argwhere", (x,), {"dtype": int64}, (unknown,)),
            OperationIr("gather_nd", (x, unknown), {}, (taken,)),
        ),
        (taken,),
    )
    assert [operation[1:] for operation in graph.cost().operations] == [(0, 16), (0, 16)]


def test_the_cost_of_a_graph_is_the_sum_for_each_op_and_of_all():
    program = burn.ir.trace(
        lambda x, y: (burn.exp(x @ y) + 1.0).sum() + burn.exp(x).sum(),
        burn.ones((4, 3), device="cpu"),
        burn.ones((3, 1000), device="cpu"),
    )
    found = program.cost()
    names = [operation.operation.name for operation in found.operations]
    assert names == ["matmul", "exp", "add", "sum", "exp", "sum", "add"]
    assert found.by_op["exp"] == (2, 4012, 2 * 4 * 4012)
    assert found.total.calls == 7
    assert found.total.flops == sum(operation.flops for operation in found.operations)
    assert found.total.bytes == sum(operation.bytes for operation in found.operations)
    lines = str(found).splitlines()
    assert lines[0].split() == ["op", "calls", "flops", "bytes"]
    assert lines[1].split() == ["matmul", "1", "24,000", "28,048"]
    assert lines[-1].split()[0] == "total"
    assert len({len(line) for line in lines}) == 1


def test_what_is_no_call_is_an_error_that_says_so():
    with pytest.raises(UnsupportedOpError, match="there is no op 'matmull'"):
        cost("matmull", [f32(2, 2), f32(2, 2)], {})
    with pytest.raises(ShapeError, match=r"matmul\(float32\[2, 3\], float32\[2, 3\]\)"):
        cost("matmul", [f32(2, 3), f32(2, 3)], {})
