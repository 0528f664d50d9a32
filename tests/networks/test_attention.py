"""Attention against torch, in values and gradients, with all options and at the edges."""

import math
import tracemalloc

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import burn
from burn.nn import functional

CPU = burn.Device("cpu")
AUTODIFF = CPU.autodiff()
RANDOM = np.random.default_rng(4)


def leaf(values):
    return burn.asarray(np.asarray(values, np.float64), device=AUTODIFF).require_grad()


def expected_attention(query, key, value, mask, bias, scale, softcap, is_causal):
    """The formula, in torch, with excluded rows taken out by hand."""
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if mask is not None:
        scores = scores.masked_fill(mask, -math.inf)
    if is_causal:
        queries, keys = scores.shape[-2:]
        seen = torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)
        scores = scores.masked_fill(~seen, -math.inf)
    if bias is not None:
        scores = scores + bias
    excluded = (scores == -math.inf).all(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(excluded, 0.0), -1).masked_fill(excluded, 0.0)
    return weights @ value


def compare(arrays, mask=None, bias=None, **options):
    """Values and gradients, by all operands that are floats."""
    floats = [*arrays] if bias is None else [*arrays, bias]
    xs = [leaf(number) for number in floats]
    ys = [torch.tensor(number, requires_grad=True) for number in floats]
    ours = functional.attention(
        *xs[:3],
        None if mask is None else burn.asarray(mask, device=CPU),
        xs[3] if bias is not None else None,
        **options,
    )
    theirs = expected_attention(
        *ys[:3],
        None if mask is None else torch.tensor(mask),
        ys[3] if bias is not None else None,
        *[options.get(name) for name in ("scale", "softcap", "is_causal")],
    )
    np.testing.assert_allclose(
        ours.inner().numpy(), theirs.detach().numpy(), rtol=1e-10, atol=1e-12
    )
    weights = RANDOM.normal(size=ours.shape)
    gradients = (ours * burn.asarray(weights, device=CPU)).sum().backward()
    (theirs * torch.tensor(weights)).sum().backward()
    for x, y in zip(xs, ys, strict=True):
        np.testing.assert_allclose(x.grad(gradients).numpy(), y.grad.numpy(), rtol=1e-9, atol=1e-11)


def operands(batch, queries, keys, features, values):
    return [
        RANDOM.normal(size=(*batch, *shape))
        for shape in ((queries, features), (keys, features), (keys, values))
    ]


@pytest.mark.parametrize("scale", [None, 0.3])
@pytest.mark.parametrize("softcap", [None, 2.0])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("with_mask", [False, True])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (3, 6), (6, 3)])
def test_attention_is_its_formula(queries, keys, with_mask, with_bias, is_causal, softcap, scale):
    compare(
        operands((2, 3), queries, keys, 4, 5),
        mask=RANDOM.random((2, 1, queries, keys)) < 0.4 if with_mask else None,
        bias=RANDOM.normal(size=(3, queries, keys)) if with_bias else None,
        is_causal=is_causal,
        softcap=softcap,
        scale=scale,
    )


@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_is_that_of_torch_with_the_mask_inverted(is_causal):
    query, key, value = operands((2, 3), 5, 5, 4, 4)
    mask = RANDOM.random((2, 1, 5, 5)) < 0.3
    mask[..., 0] = False
    options = {"is_causal": True} if is_causal else {"attn_mask": torch.tensor(~mask)}
    expected = F.scaled_dot_product_attention(
        *[torch.tensor(tensor) for tensor in (query, key, value)], **options
    )
    found = functional.attention(
        *[burn.asarray(tensor, device=CPU) for tensor in (query, key, value)],
        None if is_causal else burn.asarray(mask, device=CPU),
        is_causal=is_causal,
    )
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "batches",
    [
        ((), (), ()),
        ((2,), (1,), (1,)),
        ((2, 3), (3,), (1, 1)),
        ((), (2,), (3, 1)),
    ],
)
def test_batches_broadcast(batches):
    shapes = ((4, 2), (5, 2), (5, 3))
    compare(
        [RANDOM.normal(size=(*batch, *shape)) for batch, shape in zip(batches, shapes, strict=True)]
    )


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (3, 4, 5), (4, 5), (5,), (), (2, 1, 1, 5)])
def test_masks_and_biases_broadcast_to_the_scores(shape):
    arrays = operands((2, 3), 4, 5, 2, 2)
    compare(arrays, mask=RANDOM.random(shape) < 0.5)
    compare(arrays, bias=RANDOM.normal(size=shape))


@pytest.mark.parametrize(("batch", "queries", "keys"), [((3,), 300, 200), ((), 600, 700)])
@pytest.mark.parametrize("is_causal", [False, True])
def test_long_sequences_are_worked_on_in_blocks(batch, queries, keys, is_causal):
    compare(
        operands(batch, queries, keys, 8, 8),
        mask=RANDOM.random((queries, keys)) < 0.1,
        is_causal=is_causal,
    )


def test_a_query_without_keys_gives_0_and_no_gradient():
    query, key, value = (leaf(operand) for operand in operands((2,), 3, 4, 2, 2))
    mask = np.zeros((2, 3, 4), np.bool_)
    mask[0, 1] = True
    mask[1] = True
    output = functional.attention(query, key, value, burn.asarray(mask, device=CPU))
    assert output.inner().numpy()[0, 1].tolist() == [0.0, 0.0]
    assert not output.inner().numpy()[1].any()
    gradients = output.sum().backward()
    assert not query.grad(gradients).numpy()[0, 1].any()
    for x in (query, key, value):
        assert np.isfinite(x.grad(gradients).numpy()).all()
        assert not x.grad(gradients).numpy()[1].any()


def test_a_bias_of_minus_infinity_excludes_a_key():
    query, key, value = (burn.asarray(operand, device=CPU) for operand in operands((), 2, 3, 2, 2))
    mask = np.array([[False, True, False], [True, True, True]])
    bias = np.where(mask, -math.inf, 0.0)
    masked = functional.attention(query, key, value, burn.asarray(mask, device=CPU))
    biased = functional.attention(query, key, value, None, burn.asarray(bias, device=CPU))
    np.testing.assert_allclose(biased.numpy(), masked.numpy(), rtol=1e-12)


def test_a_causal_query_stands_at_the_end():
    value = burn.asarray([[1.0], [2.0], [4.0]], device=CPU)
    zeros = burn.zeros((3, 1), device=CPU)
    seen = functional.attention(burn.zeros((2, 1), device=CPU), zeros, value, is_causal=True)
    np.testing.assert_allclose(seen.numpy(), [[1.5], [7.0 / 3.0]], rtol=1e-6)
    early = functional.attention(
        burn.zeros((3, 1), device=CPU), zeros[:2], value[:2], is_causal=True
    )
    assert early.tolist() == [[0.0], [1.0], [1.5]]


@pytest.mark.parametrize(
    "shape", [(0, 3, 4, 2, 2), (2, 0, 4, 2, 2), (2, 3, 0, 2, 2), (2, 3, 4, 0, 2), (2, 3, 4, 2, 0)]
)
def test_empty_operands(shape):
    batch, queries, keys, features, values = shape
    xs = [leaf(operand) for operand in operands((batch,), queries, keys, features, values)]
    output = functional.attention(*xs)
    assert output.shape == (batch, queries, values)
    gradients = output.sum().backward()
    for x in xs:
        assert x.grad(gradients).shape == x.shape
        assert np.isfinite(x.grad(gradients).numpy()).all()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_narrow_dtypes_add_up_in_float32(dtype):
    xs = [
        burn.asarray(operand, dtype=dtype, device=CPU) for operand in operands((2,), 40, 60, 16, 16)
    ]
    output = functional.attention(*xs)
    assert str(output.dtype) == dtype
    wide = [torch.tensor(x.astype("float64").numpy()) for x in xs]
    expected = F.scaled_dot_product_attention(*wide).numpy()
    tolerance = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}[dtype]
    np.testing.assert_allclose(
        output.astype("float64").numpy(), expected, rtol=tolerance, atol=tolerance
    )


def test_nothing_of_the_size_of_the_scores_is_kept():
    xs = [
        burn.asarray(RANDOM.normal(size=(1, 1024, 8)), dtype="float32", device=AUTODIFF)
        for _ in range(3)
    ]
    xs = [x.require_grad() for x in xs]
    functional.attention(*xs)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    output = functional.attention(*xs)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert output.is_tracked
    assert after - before < 1024 * 1024


def test_errors_say_which_lengths_differ():
    x = burn.ones((2, 3, 4), device=CPU)
    with pytest.raises(burn.ShapeError, match="a query has 4 features and a key 5"):
        functional.attention(x, burn.ones((2, 3, 5), device=CPU), x)
    with pytest.raises(burn.ShapeError, match="there are 3 keys and 2 values"):
        functional.attention(x, x, burn.ones((2, 2, 4), device=CPU))
    with pytest.raises(burn.ShapeError, match=r"mask has shape \(4, 4\).*scores, \(2, 3, 3\)"):
        functional.attention(x, x, x, burn.zeros((4, 4), dtype="bool", device=CPU))
    with pytest.raises(burn.DTypeError, match="mask takes bool"):
        functional.attention(x, x, x, x)
    with pytest.raises(burn.ArgumentError, match=r"softcap is 0\.0"):
        functional.attention(x, x, x, softcap=0)
