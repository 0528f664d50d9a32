"""Attention layers, encodings of positions, caches and transformers, against torch and formulas."""

import copy
import itertools
import pickle
import re

import numpy as np
import pytest
import torch

import burn
from burn import nn
from burn.errors import (
    ArgumentError,
    AutodiffError,
    OperandTypeError,
    OutOfRangeError,
    ShapeError,
    TraceError,
)
from burn.nn import functional as F
from crossing import on_devices

CPU = burn.Device("cpu")
DEVICES = [device for device in burn.Device.enumerate() if device.supports_dtype(burn.float64)]
on_each_device = pytest.mark.parametrize(
    "device",
    [
        pytest.param(
            item, marks=pytest.mark.exhaustive if item.backend_name in ("pure", "strict") else ()
        )
        for item in DEVICES
    ],
    ids=str,
)


def normal(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def loaded(module, reference):
    """A module with the weights of torch's, and larger biases than the zeros that they start as."""
    with torch.no_grad():
        for index, parameter in enumerate(reference.parameters()):
            parameter.add_(torch.from_numpy(normal(*parameter.shape, seed=index)) / 8)
    state = {
        path: value.numpy() for path, value in nn.split_attention(reference.state_dict()).items()
    }
    assert not module.load_state_dict(state)
    return module


def compare(module, reference, arrays, call, reference_call=None):
    """The same outputs, and gradients by inputs and parameters, as torch's within 1e-9."""
    device = module.parameters()[0].device
    xs = [burn.asarray(array, device=device).require_grad() for array in arrays]
    ys = [torch.tensor(array, requires_grad=True) for array in arrays]
    ours, theirs = call(module, *xs), (reference_call or call)(reference, *ys)
    theirs = theirs[0] if isinstance(theirs, tuple) else theirs
    np.testing.assert_allclose(ours.inner().numpy(), theirs.detach().numpy(), rtol=1e-9, atol=1e-9)
    cotangent = normal(*ours.shape, seed=1)
    gradients = (ours * burn.asarray(cotangent, device=device)).sum().backward()
    (theirs * torch.from_numpy(cotangent)).sum().backward()
    for x, y in zip(xs, ys, strict=True):
        np.testing.assert_allclose(x.grad(gradients).numpy(), y.grad.numpy(), rtol=1e-9, atol=1e-9)
    found = {
        name: parameter.grad(gradients).numpy() for name, parameter in module.named_parameters()
    }
    expected = {name: parameter.grad for name, parameter in reference.named_parameters()}
    for name, gradient in nn.split_attention(expected).items():
        np.testing.assert_allclose(
            found.pop(name), gradient.numpy(), rtol=1e-9, atol=1e-9, err_msg=name
        )
    assert not found


def excluded(*shape, seed=0):
    """A mask that leaves the first key to every query."""
    mask = np.random.default_rng(seed).random(shape) < 0.4
    mask[..., 0] = False
    return mask


def masks(**arrays):
    """Masks for burn and for torch."""
    ours = {name: burn.asarray(array, device=CPU) for name, array in arrays.items()}
    return ours, {name: torch.from_numpy(array) for name, array in arrays.items()}


@on_each_device
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("features", [{}, {"kdim": 5, "vdim": 7}])
def test_attention_with_weights_of_torch_is_that_of_torch(device, bias, features):
    reference = torch.nn.MultiheadAttention(
        8, 2, bias=bias, batch_first=True, dtype=torch.float64, **features
    )
    module = nn.MultiHeadAttention(
        8,
        2,
        bias=bias,
        key_features=features.get("kdim"),
        value_features=features.get("vdim"),
        dtype="float64",
        device=device.autodiff(),
    )
    loaded(module, reference)
    inputs = [normal(3, 4, 8), normal(3, 6, features.get("kdim", 8), seed=2)]
    inputs.append(normal(3, 6, features.get("vdim", 8), seed=3))
    ours, theirs = masks(key_padding_mask=excluded(3, 6))
    ours = {name: our.to_device(device) for name, our in ours.items()}
    compare(
        module,
        reference,
        inputs,
        lambda layer, *xs: layer(*xs, **ours),
        lambda layer, *ys: layer(*ys, **theirs, need_weights=False),
    )


@pytest.mark.parametrize("rank", [2, 3, 4])
@pytest.mark.parametrize("is_causal", [False, True])
def test_masks_are_for_all_examples_each_example_or_each_head(rank, is_causal):
    reference = torch.nn.MultiheadAttention(8, 2, batch_first=True, dtype=torch.float64)
    module = nn.MultiHeadAttention(8, 2, dtype="float64", device=CPU.autodiff())
    loaded(module, reference)
    mask = excluded(*{2: (5, 5), 3: (3, 5, 5), 4: (3, 2, 5, 5)}[rank])
    padding = excluded(3, 5, seed=1)
    full = np.broadcast_to(mask if rank != 3 else mask[:, None], (3, 2, 5, 5))
    if is_causal:
        full = full | np.triu(np.ones((5, 5), np.bool_), 1)
    compare(
        module,
        reference,
        [normal(3, 5, 8)],
        lambda layer, x: layer(
            x,
            mask=burn.asarray(mask, device=CPU),
            key_padding_mask=burn.asarray(padding, device=CPU),
            is_causal=is_causal,
        ),
        lambda layer, x: layer(
            x,
            x,
            x,
            attn_mask=torch.tensor(full.reshape(6, 5, 5)),
            key_padding_mask=torch.tensor(padding),
        ),
    )


def test_biases_are_added_to_the_scores_and_weights_are_those_of_torch():
    reference = torch.nn.MultiheadAttention(8, 2, batch_first=True, dtype=torch.float64)
    module = loaded(nn.MultiHeadAttention(8, 2, dtype="float64", device=CPU), reference)
    x, bias = normal(3, 5, 8), normal(3, 2, 5, 5)
    padding = excluded(3, 5)
    output, weights = module(
        burn.asarray(x, device=CPU),
        bias=burn.asarray(bias, device=CPU),
        key_padding_mask=burn.asarray(padding, device=CPU),
        return_weights=True,
    )
    y = torch.tensor(x)
    float_padding = torch.zeros(3, 5, dtype=torch.float64)
    expected, expected_weights = reference(
        y,
        y,
        y,
        attn_mask=torch.tensor(bias.reshape(6, 5, 5)),
        key_padding_mask=float_padding.masked_fill(torch.tensor(padding), -torch.inf),
        average_attn_weights=False,
    )
    np.testing.assert_allclose(output.numpy(), expected.detach().numpy(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        weights.numpy(), expected_weights.detach().numpy(), rtol=1e-9, atol=1e-9
    )


MASKS = [None, (6, 6), (3, 6, 6), (3, 4, 6, 6), (3, 1, 1, 6)]
GROUPED = list(itertools.product(MASKS, (6, 1), (False, True)))


@pytest.mark.parametrize(
    ("case", "device"), on_devices(GROUPED, DEVICES, [(None, 6, True), ((3, 6, 6), 1, False)])
)
def test_grouped_queries_are_those_of_torch(case, device):
    mask_shape, queries, is_causal = case
    module = nn.MultiHeadAttention(
        16, 4, num_key_value_heads=2, head_dim=3, dtype="float64", device=device
    )
    assert module.key.weight.shape == (6, 16)
    x, memory = normal(3, queries, 16), normal(3, 6, 16, seed=1)
    full = np.zeros((queries, 6), np.bool_)
    mask = None
    if mask_shape is not None:
        mask = excluded(*mask_shape)[..., -queries:, :]
        full = mask[:, None] if mask.ndim == 3 else mask
    if is_causal:
        full = full | np.triu(np.ones((queries, 6), np.bool_), 1 + 6 - queries)

    def heads(layer, x, count):
        weight, bias = (torch.tensor(tensor.numpy()) for tensor in (layer.weight, layer.bias))
        return (torch.tensor(x) @ weight.T + bias).unflatten(-1, (count, 3)).transpose(1, 2)

    expected = torch.nn.functional.scaled_dot_product_attention(
        heads(module.query, x, 4),
        heads(module.key, memory, 2),
        heads(module.value, memory, 2),
        attn_mask=torch.tensor(~full),
        enable_gqa=True,
    )
    expected = expected.transpose(1, 2).flatten(-2) @ torch.tensor(module.output.weight.numpy()).T
    options = {
        "mask": None if mask is None else burn.asarray(mask, device=device),
        "is_causal": is_causal,
    }
    inputs = [burn.asarray(item, device=device) for item in (x, memory)]
    found, weights = module(*inputs, **options, return_weights=True)
    np.testing.assert_allclose(
        module(*inputs, **options).numpy(), expected.numpy(), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9, atol=1e-9)
    assert weights.shape == (3, 4, queries, 6)


def test_inputs_have_any_number_of_batch_axes():
    module = nn.MultiHeadAttention(8, 4, num_key_value_heads=2, dtype="float64", device=CPU)
    x = burn.asarray(normal(2, 3, 5, 8), device=CPU)
    mask = burn.asarray(excluded(2, 3, 5, 5), device=CPU)
    whole = module(x, mask=mask, is_causal=True)
    for index in np.ndindex(2, 3):
        one = module(x[index], mask=mask[index], is_causal=True)
        np.testing.assert_allclose(one.numpy(), whole[index].numpy(), atol=1e-12)
    mapped = burn.vmap(burn.vmap(lambda x, mask: module(x, mask=mask, is_causal=True)))(x, mask)
    np.testing.assert_allclose(mapped.numpy(), whole.numpy(), atol=1e-12)


def test_a_query_whose_keys_are_all_excluded_gives_the_bias_of_the_output():
    module = nn.MultiHeadAttention(8, 2, dropout=0.5, device=CPU.autodiff())
    mask = burn.asarray(np.ones((1, 3), np.bool_), device=CPU)
    x = burn.asarray(normal(1, 3, 8).astype(np.float32), device=CPU.autodiff()).require_grad()
    for layer in (module, module.eval()):
        output = layer(x, key_padding_mask=mask)
        assert not output.inner().numpy().any()
        assert not x.grad(output.sum().backward()).numpy().any()


def test_dropout_leaves_out_weights_in_training_alone():
    device = CPU.autodiff()
    module = nn.MultiHeadAttention(4, 1, dropout=0.25, dtype="float64", device=device)
    kept = nn.MultiHeadAttention(4, 1, dtype="float64", device=device)
    kept.load_state_dict(module.state_dict())
    # Values are positions, one-hot: outputs before the last layer are the weights themselves.
    for layer in (module, kept):
        layer.value.weight.assign(burn.eye(4, dtype="float64", device=device), require_grad=True)
        layer.output.weight.assign(burn.eye(4, dtype="float64", device=device), require_grad=True)
    x = burn.asarray(normal(500, 4, 4), device=device)
    one_hot = burn.broadcast_to(burn.eye(4, dtype="float64", device=device), (500, 4, 4))
    ratio = (module(x, x, one_hot) / kept(x, x, one_hot)).inner().numpy()
    dropped = ratio < 0.5
    np.testing.assert_allclose(ratio[~dropped], 1 / 0.75, rtol=1e-9)
    assert not ratio[dropped].any()
    assert abs(dropped.mean() - 0.25) < 5.0 * (0.25 * 0.75 / dropped.size) ** 0.5
    np.testing.assert_allclose(
        module.eval()(x).inner().numpy(), kept(x).inner().numpy(), rtol=1e-12
    )


def test_weights_start_as_in_torch():
    for options in ({}, {"kdim": 300, "vdim": 500}):
        reference = torch.nn.MultiheadAttention(200, 2, **options)
        names = {"kdim": "key_features", "vdim": "value_features"}
        module = nn.MultiHeadAttention(
            200, 2, **{names[name]: value for name, value in options.items()}
        )
        expected = nn.split_attention(reference.state_dict())
        for path, parameter in module.named_parameters():
            bound = expected[path].abs().max().item()
            assert burn.max(burn.abs(parameter)).item() == pytest.approx(bound, rel=1e-2), path
            spread = expected[path].std().item()
            assert burn.std(parameter).item() == pytest.approx(spread, rel=2e-2), path


@pytest.mark.parametrize(
    ("options", "call", "error", "message"),
    [
        ({"num_heads": 3}, {}, ArgumentError, "3 heads do not divide 8 features"),
        ({"num_key_value_heads": 3}, {}, ArgumentError, "4 heads cannot share 3 heads of keys"),
        ({"num_heads": 0}, {}, ArgumentError, "0 heads cannot share 0 heads of keys"),
        ({"rotary": nn.RotaryEncoding(4, 8)}, {}, ShapeError, "heads of 4 features"),
        ({}, {"mask": (2, 1, 1, 5, 5)}, ShapeError, "(N, H, T, S)"),
        ({}, {"mask": (2, 3, 5, 5)}, ShapeError, "does not broadcast"),
        ({}, {"key_padding_mask": (2, 4)}, ShapeError, "does not broadcast"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(options, call, error, message):
    masks = {name: burn.ones(shape, dtype="bool") for name, shape in call.items()}
    with pytest.raises(error, match=re.escape(message)):
        nn.MultiHeadAttention(8, **{"num_heads": 4, **options})(burn.ones((2, 5, 8)), **masks)


def test_other_weights_keep_their_names():
    state = {
        "a.in_proj_weight": np.arange(12).reshape(6, 2),
        "a.in_proj_bias": np.arange(6),
        "a.out_proj.weight": np.ones((2, 2)),
        "b.out_proj.weight": np.zeros(1),
        "norm.weight": np.zeros(3),
    }
    found = nn.split_attention(state)
    assert found.pop("a.key.weight").tolist() == [[4, 5], [6, 7]]
    assert found.pop("a.value.bias").tolist() == [4, 5]
    assert sorted(found) == [
        "a.key.bias",
        "a.output.weight",
        "a.query.bias",
        "a.query.weight",
        "a.value.weight",
        "b.out_proj.weight",
        "norm.weight",
    ]


# Positions.


def llama_rotary(x, positions, base, fraction=1.0, scaling=1.0):
    """As transformers' apply_rotary_pos_emb and LlamaRotaryEmbedding have it, in NumPy."""
    dim = int(x.shape[-1] * fraction)
    inverse_frequencies = 1.0 / (base ** (np.arange(0, dim, 2) / dim)) / scaling
    frequencies = np.asarray(positions)[..., None] * inverse_frequencies
    angles = np.concatenate([frequencies, frequencies], axis=-1)
    rotated, rest = x[..., :dim], x[..., dim:]
    rotate_half = np.concatenate([-rotated[..., dim // 2 :], rotated[..., : dim // 2]], axis=-1)
    return np.concatenate([rotated * np.cos(angles) + rotate_half * np.sin(angles), rest], axis=-1)


@on_each_device
@pytest.mark.parametrize("fraction", [1.0, 0.5])
@pytest.mark.parametrize("scaling", [1.0, 4.0])
def test_rotary_positions_of_llama(device, fraction, scaling):
    rotary = nn.RotaryEncoding(8, 32, base=500.0, fraction=fraction, scaling=scaling)
    x = normal(3, 2, 5, 8)
    found = rotary(burn.asarray(x, device=device), offset=7)
    expected = llama_rotary(x, np.arange(7, 12), 500.0, fraction, scaling)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-9)


def test_rotary_positions_of_the_paper_are_rotations_of_complex_numbers():
    x = normal(3, 2, 5, 8)
    rotary = nn.RotaryEncoding(8, 32, interleaved=True)
    angles = np.outer(np.arange(5), 10000.0 ** (-2 * np.arange(4) / 8))
    expected = (x.view(np.complex128) * np.exp(1j * angles)).view(np.float64)
    found = rotary(burn.asarray(x, device=CPU))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-9)


def test_each_example_has_positions_of_its_own():
    x, positions = normal(3, 2, 5, 8), np.random.default_rng(0).integers(0, 32, (3, 5))
    rotary = nn.RotaryEncoding(8, 32)
    found = rotary(burn.asarray(x, device=CPU), positions=burn.asarray(positions, device=CPU))
    expected = llama_rotary(x, positions[:, None], 10000.0)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-9)
    for_all = rotary(burn.asarray(x, device=CPU), positions=burn.asarray(positions[0], device=CPU))
    np.testing.assert_allclose(
        for_all.numpy(), llama_rotary(x, positions[0], 10000.0), rtol=1e-9, atol=1e-9
    )


@on_each_device
def test_rotary_gradients_are_rotated_back(device):
    x = burn.asarray(normal(5, 6), device=device.autodiff()).require_grad()
    rotary = nn.RotaryEncoding(6, 32)
    g = normal(5, 6, seed=1)
    gradients = (rotary(x, offset=3) * burn.asarray(g, device=device)).sum().backward()
    expected = llama_rotary(g, -np.arange(3, 8), 10000.0)
    np.testing.assert_allclose(x.grad(gradients).numpy(), expected, rtol=1e-9, atol=1e-9)


@on_each_device
def test_sinusoidal_positions_are_those_of_the_formula(device):
    encoding = nn.SinusoidalEncoding(5, 32)
    x = normal(2, 4, 5)
    positions, index = np.arange(3, 7)[:, None], np.arange(5)
    angles = positions / 10000.0 ** (index // 2 * 2 / 5)
    expected = x + np.where(index % 2, np.cos(angles), np.sin(angles))
    tensor = burn.asarray(x, device=device)
    np.testing.assert_allclose(encoding(tensor, offset=3).numpy(), expected, rtol=1e-9, atol=1e-9)
    one_by_one = burn.asarray(np.broadcast_to(positions.T, (2, 4)).copy(), device=device)
    np.testing.assert_allclose(
        encoding(tensor, positions=one_by_one).numpy(), expected, rtol=1e-9, atol=1e-9
    )


def test_tables_of_positions_are_made_once_for_a_dtype_and_are_no_state():
    class Net(nn.Module):
        def __init__(self):
            self.rotary = nn.RotaryEncoding(4, 16)

        def forward(self, x):
            return self.rotary(x)

    net = Net()
    x = burn.ones((3, 4), dtype="float64", device=CPU)
    first = net(x)
    assert net.state_dict() == {}
    assert net.named_buffers() == []
    assert net(burn.astype(x, "float32")).dtype is burn.float32
    tables = dict(net.rotary._tables._found)
    net(x)
    assert {key: id(value) for key, value in net.rotary._tables._found.items()} == {
        key: id(table) for key, table in tables.items()
    }
    for copied in (pickle.loads(pickle.dumps(net.rotary)), copy.deepcopy(net.rotary)):
        assert copied(x).tolist() == first.tolist()
    # Tables that are made within a trace serve the calls after it.
    other = nn.RotaryEncoding(4, 16)
    program = burn.ir.trace(other, x)
    assert program(x).tolist() == other(x).tolist() == first.tolist()


def test_positions_out_of_the_table_are_refused():
    x = burn.ones((3, 4), device=CPU)
    for encoding in (nn.RotaryEncoding(4, 8), nn.SinusoidalEncoding(4, 8)):
        encoding(x, offset=5)
        with pytest.raises(OutOfRangeError, match="positions from 6 to 8 of 8"):
            encoding(x, offset=6)
        with pytest.raises(OutOfRangeError):
            encoding(x, positions=burn.asarray([0, 1, 8], device=CPU)).tolist()
    with pytest.raises(ShapeError, match="no positions"):
        nn.RotaryEncoding(4, 8)(x[0])
    with pytest.raises(ArgumentError, match="odd number"):
        nn.RotaryEncoding(6, 8, fraction=0.5)
    with pytest.raises(ShapeError, match="3 angles for 4 features"):
        F.rotary_embedding(x, burn.ones(3), burn.ones(3))


# Caches.


def steps(call, x, lengths):
    """The outputs of calls with one part of a sequence after another."""
    found, start = [], 0
    for length in lengths:
        found.append(call(x[:, start : start + length]))
        start += length
    return burn.concat(found, axis=1).numpy()


STEPWISE = list(itertools.product((4, 2, 1), (False, True)))


@pytest.mark.parametrize(("case", "device"), on_devices(STEPWISE, DEVICES, [(2, True)]))
def test_attention_step_by_step_is_that_of_the_whole_sequence(case, device):
    heads, with_rotary = case
    module = nn.MultiHeadAttention(
        16,
        4,
        num_key_value_heads=heads,
        is_causal=True,
        rotary=nn.RotaryEncoding(4, 16) if with_rotary else None,
        dtype="float64",
        device=device,
    )
    x = burn.asarray(normal(2, 9, 16), device=device)
    expected = module(x).numpy()
    cache = nn.KeyValueCache(9)
    for _ in range(2):
        found = steps(lambda x: module(x, cache=cache), x, (4, 1, 1, 2, 1))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        assert cache.length == 9
        cache.reset()
    with burn.no_grad():
        module.to(device.autodiff())
        found = steps(lambda x: module(x, cache=nn.KeyValueCache(9)), x, (9,))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_left_padding_has_positions_and_a_mask():
    module = nn.MultiHeadAttention(
        8, 2, is_causal=True, rotary=nn.RotaryEncoding(4, 16), dtype="float64", device=CPU
    )
    short, long = normal(1, 3, 8), normal(1, 5, 8, seed=1)
    padded = burn.asarray(
        np.concatenate([np.concatenate([np.zeros((1, 2, 8)), short], axis=1), long]), device=CPU
    )
    mask = burn.asarray([[True, True, False, False, False], [False] * 5], device=CPU)
    positions = burn.asarray([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]], device=CPU)
    cache = nn.KeyValueCache(5)
    for part in (slice(0, 4), slice(4, 5)):
        found = module(
            padded[:, part],
            cache=cache,
            key_padding_mask=mask[:, : part.stop],
            positions=positions[:, part],
        )
    for index, alone in enumerate((short, long)):
        expected = module(burn.asarray(alone, device=CPU))[0, -1]
        np.testing.assert_allclose(found[index, -1].numpy(), expected.numpy(), rtol=1e-9, atol=1e-9)


def test_a_cache_writes_in_place_and_begins_again_with_another_batch():
    cache = nn.KeyValueCache(6)
    key, value = (burn.asarray(normal(1, 2, 3, 4, seed=index), device=CPU) for index in range(2))
    keys, values = cache.append(key[..., :2, :], value[..., :2, :])
    memory = id(cache._memory[0].primitive)  # a reference would prevent it
    keys, values = cache.append(key[..., 2:, :], value[..., 2:, :])
    assert id(cache._memory[0].primitive) == memory
    assert keys.tolist() == key.tolist()
    assert values.tolist() == value.tolist()
    with pytest.raises(ShapeError, match=r"keys of shape \(2, 2, 3, 4\)"):
        cache.append(*[burn.concat([tensor, tensor]) for tensor in (key, value)])
    cache.reset()
    assert (
        cache.append(*[burn.concat([tensor, tensor]) for tensor in (key, value)])[0].shape[0] == 2
    )


def test_a_cache_in_a_traced_function_is_refused():
    module = nn.MultiHeadAttention(8, 2, is_causal=True, device=CPU)
    x, cache = burn.ones((1, 1, 8), device=CPU), nn.KeyValueCache(4)
    for _ in range(2):
        with pytest.raises(TraceError, match="would be a constant of the program"):
            burn.ir.trace(lambda x: module(x, cache=cache), x)
        module(x, cache=cache)
    assert cache.length == 2


def test_a_full_cache_and_tracked_keys_are_refused():
    module = nn.MultiHeadAttention(8, 2, is_causal=True, device=CPU)
    x, cache = burn.ones((1, 3, 8), device=CPU), nn.KeyValueCache(5)
    module(x, cache=cache)
    with pytest.raises(OutOfRangeError, match="6 positions in a cache for 5"):
        module(x, cache=cache)
    assert repr(cache) == "KeyValueCache(5, length=3)"
    module.to(CPU.autodiff())
    for item in (nn.KeyValueCache(5), nn.CrossAttentionCache()):
        with pytest.raises(AutodiffError, match="no_grad"):
            module(x, cache=item)
        assert item.length == 0
        with burn.no_grad():
            module(x, cache=item)
        assert item.length == 3


def test_keys_and_values_of_a_memory_are_computed_once():
    module = nn.MultiHeadAttention(8, 2, device=CPU)
    x, memory = (burn.asarray(normal(2, n, 8).astype(np.float32), device=CPU) for n in (3, 5))
    cache = nn.CrossAttentionCache()
    first = module(x, memory, cache=cache)
    assert module(x, memory * 2, cache=cache).tolist() == first.tolist()
    cache.reset()
    assert module(x, memory * 2, cache=cache).tolist() != first.tolist()
    rotary = nn.MultiHeadAttention(8, 2, rotary=nn.RotaryEncoding(4, 8), device=CPU)
    with pytest.raises(ArgumentError, match="rotary"):
        rotary(x, memory, cache=nn.CrossAttentionCache())


# Transformers.

LAYERS = {
    "after": {"norm_first": False, "activation": "relu", "bias": True},
    "first": {"norm_first": True, "activation": "gelu", "bias": True},
    "no bias": {"norm_first": True, "activation": "relu", "bias": False},
}


def encoders(device, options, count=2):
    common = {**options, "dropout": 0.1}
    reference = torch.nn.TransformerEncoder(
        torch.nn.TransformerEncoderLayer(
            8, 2, 16, **common, batch_first=True, dtype=torch.float64, layer_norm_eps=1e-4
        ),
        count,
        norm=torch.nn.LayerNorm(8, dtype=torch.float64) if options["norm_first"] else None,
        enable_nested_tensor=False,
    )
    common |= {"dtype": "float64", "device": device}
    module = nn.TransformerEncoder(
        [nn.TransformerEncoderLayer(8, 2, 16, **common, epsilon=1e-4) for _ in range(count)],
        norm=nn.LayerNorm(8, dtype="float64", device=device) if options["norm_first"] else None,
    )
    return loaded(module, reference).eval(), reference.eval()


def decoders(device, options, count=2):
    common = {**options, "dropout": 0.1}
    reference = torch.nn.TransformerDecoder(
        torch.nn.TransformerDecoderLayer(8, 2, 16, **common, batch_first=True, dtype=torch.float64),
        count,
        norm=torch.nn.LayerNorm(8, dtype=torch.float64) if options["norm_first"] else None,
    )
    common |= {"dtype": "float64", "device": device}
    module = nn.TransformerDecoder(
        [nn.TransformerDecoderLayer(8, 2, 16, **common) for _ in range(count)],
        norm=nn.LayerNorm(8, dtype="float64", device=device) if options["norm_first"] else None,
    )
    return loaded(module, reference).eval(), reference.eval()


@pytest.mark.parametrize(("options", "device"), on_devices(LAYERS, DEVICES, ["first"]))
def test_an_encoder_is_that_of_torch(options, device):
    module, reference = encoders(device.autodiff(), LAYERS[options])
    mask, padding = excluded(5, 5), excluded(3, 5, seed=1)
    compare(
        module,
        reference,
        [normal(3, 5, 8)],
        lambda layer, x: layer(
            x,
            mask=burn.asarray(mask, device=device),
            key_padding_mask=burn.asarray(padding, device=device),
        ),
        lambda layer, x: layer(
            x, mask=torch.tensor(mask), src_key_padding_mask=torch.tensor(padding)
        ),
    )


@pytest.mark.parametrize(("options", "device"), on_devices(LAYERS, DEVICES, ["after"]))
def test_a_decoder_is_that_of_torch(options, device):
    module, reference = decoders(device.autodiff(), LAYERS[options])
    padding, memory_padding = excluded(3, 4), excluded(3, 6)
    memory_mask, later = excluded(4, 6), np.triu(np.ones((4, 4), np.bool_), 1)
    compare(
        module,
        reference,
        [normal(3, 4, 8), normal(3, 6, 8)],
        lambda layer, x, memory: layer(
            x,
            memory,
            key_padding_mask=burn.asarray(padding, device=device),
            memory_mask=burn.asarray(memory_mask, device=device),
            memory_key_padding_mask=burn.asarray(memory_padding, device=device),
        ),
        lambda layer, y, memory: layer(
            y,
            memory,
            tgt_mask=torch.tensor(later),
            tgt_key_padding_mask=torch.tensor(padding),
            memory_mask=torch.tensor(memory_mask),
            memory_key_padding_mask=torch.tensor(memory_padding),
        ),
    )


@on_each_device
def test_transformers_step_by_step_are_those_of_the_whole_sequence(device):
    x, memory = (burn.asarray(normal(2, n, 8), device=device) for n in (7, 5))
    encoder, _ = encoders(device, LAYERS["first"])
    cache = encoder.new_cache(7)
    found = steps(lambda x: encoder(x, cache=cache, is_causal=True), x, (3, 1, 2, 1))
    np.testing.assert_allclose(found, encoder(x, is_causal=True).numpy(), rtol=1e-9, atol=1e-9)
    decoder, _ = decoders(device, LAYERS["after"])
    cache = decoder.new_cache(7)
    found = steps(lambda x: decoder(x, memory, cache=cache), x, (3, 1, 2, 1))
    np.testing.assert_allclose(found, decoder(x, memory).numpy(), rtol=1e-9, atol=1e-9)
    assert [item.cross_attention.length for item in cache] == [5, 5]
    with pytest.raises(ArgumentError, match="1 caches for 2 layers"):
        decoder(x, memory, cache=cache[:1])


def test_layers_of_a_transformer_start_with_weights_of_their_own():
    layer = nn.TransformerEncoderLayer(8, 2)
    with pytest.raises(OperandTypeError, match="a list of layers, not one TransformerEncoderLayer"):
        nn.TransformerEncoder(layer)
    with pytest.raises(OperandTypeError, match="TransformerDecoder"):
        nn.TransformerDecoder(layer)


def test_dropout_of_transformers_is_in_training_alone():
    device = CPU.autodiff()
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.5, device=device)
    x = burn.ones((2, 3, 8), device=device)
    assert layer(x).tolist() != layer(x).tolist()
    layer.eval()
    assert layer(x).tolist() == layer(x).tolist()
    assert layer.self_attn._module_state.is_eval


def test_transformers_are_containers_for_transforms():
    encoder, _ = encoders(CPU.autodiff(), LAYERS["first"])
    x = burn.asarray(normal(2, 3, 8), device=CPU.autodiff())

    def loss(encoder):
        return (encoder(x, is_causal=True) ** 2).sum()

    found = dict(burn.grad(loss)(encoder).named_parameters())
    gradients = loss(encoder).backward()
    for name, parameter in encoder.named_parameters():
        np.testing.assert_allclose(
            found[name].detach().numpy(),
            parameter.grad(gradients).numpy(),
            rtol=1e-9,
            atol=1e-9,
            err_msg=name,
        )
    restored = pickle.loads(pickle.dumps(encoder))
    assert restored(x).tolist() == encoder(x).tolist()


def test_a_mask_is_no_bias():
    layer = nn.MultiHeadAttention(4, 2, device="cpu")
    x = burn.ones((1, 3, 4), device="cpu")
    with pytest.raises(burn.DTypeError, match="mask is a tensor of bool") as caught:
        layer(x, mask=burn.zeros((3, 3), device="cpu"))
    assert "are the bias" in str(caught.value)


@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (3, 7), (1, 4), (4, 2)])
@pytest.mark.parametrize(("before", "after"), [(0, 0), (2, 0), (1, 1), (0, 3), (10**12, 0)])
def test_a_sliding_window_shows_the_keys_near_a_query(queries, keys, before, after):
    own = np.arange(queries)[:, None] + keys - queries
    distance = np.arange(keys) - own
    mask = F.sliding_window_mask((queries, keys), before, after, device=CPU)
    assert np.array_equal(mask.numpy(), (distance < -before) | (distance > after))


@pytest.mark.parametrize("window", [1, (2, 0), (0, 3)])
def test_attention_with_a_window_is_that_with_its_mask(window):
    plain = nn.MultiHeadAttention(8, 2, device=CPU)
    windowed = nn.MultiHeadAttention(8, 2, window=window, device=CPU)
    windowed.load_state_dict(plain.state_dict())
    x = burn.asarray(normal(2, 6, 8), dtype="float32", device=CPU)
    sides = (window, window) if isinstance(window, int) else window
    mask = F.sliding_window_mask((6, 6), *sides, device=CPU)
    assert windowed(x).tolist() == plain(x, mask=mask).tolist()
    more = burn.asarray(normal(2, 6) > 1.5, device=CPU)
    both = burn.logical_or(mask, more[:, None])
    assert windowed(x, key_padding_mask=more).tolist() == plain(x, mask=both).tolist()


def test_a_window_moves_with_a_cache():
    layer = nn.MultiHeadAttention(8, 2, is_causal=True, window=(2, 0), device=CPU)
    x = burn.asarray(normal(1, 6, 8), dtype="float32", device=CPU)
    cache = nn.KeyValueCache(6)
    parts = [layer(x[:, index : index + 1], cache=cache).numpy() for index in range(6)]
    np.testing.assert_allclose(np.concatenate(parts, 1), layer(x).numpy(), atol=1e-6)


@pytest.mark.parametrize("window", [-1, (1, 2, 3), 1.5, (1, None)])
def test_a_window_is_a_number_of_keys_or_two(window):
    with pytest.raises((ArgumentError, OperandTypeError), match="window"):
        nn.MultiHeadAttention(8, 2, window=window)
