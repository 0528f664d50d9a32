"""Files of tensors: what is saved comes back to the bit, here and in other libraries."""

import copy
import json
import os
import stat
import tracemalloc

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy
import safetensors.torch
import torch

import burn
from burn import nn, store
from burn.errors import ArgumentError, DTypeError, OperandTypeError, StoreError
from burn.quantization import QuantLevel, QuantScheme, QuantStore, QuantValue, ScaleDType
from burn.testing import MockDevice, mock_backend

CPU = burn.Device("cpu")
DEVICES = [device for device in burn.Device.enumerate() if device.backend_name != "strict"]

SCHEMES = {
    "plain": QuantScheme(QuantValue.Q8S),
    "packed": QuantScheme(QuantValue.Q4F, store=QuantStore.packed_u32()),
    "blocks": QuantScheme(QuantValue.Q8F).per_block((1, 8), ScaleDType.F16),
    "levels": QuantScheme(
        QuantValue.Q8F, level=QuantLevel.two_level(1, 8), scale_dtype=ScaleDType.F16
    ),
    "floats": QuantScheme(QuantValue.E4M3),
}

FORMAT_NAMES = {
    "bool": "BOOL",
    "bfloat16": "BF16",
    "complex64": "C64",
    **{f"{kind}{bits}": f"{kind[0].upper()}{bits}" for kind in ("int", "uint") for bits in (8, 64)},
    **{f"float{bits}": f"F{bits}" for bits in (16, 32, 64)},
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def drawn(dtype, shape, seed=0):
    """An array of random bits: also NaNs with payloads, infinities and subnormals."""
    count = int(np.prod(shape)) * dtype.itemsize
    bits = np.random.default_rng(seed).integers(0, 256, count, dtype=np.uint8)
    if dtype.kind in burn.bool.kind:
        bits &= 1
    return bits.view(dtype.numpy).reshape(shape)


def bits(x):
    data = x.data()
    return data.dtype, data.shape, np.asarray(data.array, order="C").tobytes()


def small_net(**options):
    return nn.Sequential(
        nn.Linear(3, 4, **options), nn.BatchNorm1d(4, **options), nn.Linear(4, 2, **options)
    )


def values_of(module):
    return {name: bits(value) for name, value in module.state_dict().items()}


# Round trips.


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("shards", [False, True], ids=["whole", "shards"])
def test_every_dtype_and_shape_comes_back_to_the_bit(device, shards, path):
    shapes = [(), (3,), (2, 5), (0, 4), (1, 2, 1, 3)]
    state = {
        f"{dtype.name}.{len(shape)}": burn.asarray(drawn(dtype, shape), device=device)
        for dtype in burn.DType.members()
        if device.supports_dtype(dtype)
        for shape in shapes
    }
    store.save(state, path, max_shard_bytes=100 if shards else None)
    found = store.load(path, device=device)
    assert {name: bits(x) for name, x in found.items()} == {n: bits(x) for n, x in state.items()}
    assert {x.device for x in found.values()} == {device}


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_views_are_saved_as_they_are_read(device, path):
    x = burn.arange(24, device=device).reshape((4, 6))
    state = {"transposed": x.mT, "steps": x[::2, 1::3], "reversed": x[::-1], "row": x[1]}
    state["broadcast"] = burn.broadcast_to(x[0], (3, 6))
    store.save(state, path)
    for name, found in store.load(path, device=device).items():
        assert found.tolist() == state[name].tolist(), name


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("device", [CPU, burn.Device("opencl")], ids=str)
def test_quantized_tensors_keep_codes_scales_and_schemes(device, scheme, path):
    weight = burn.random.normal((8, 16), device=device).quantize_dynamic(SCHEMES[scheme])
    store.save({"weight": weight, "bias": burn.ones(2, device=device)}, path)
    found = store.load(path, device=device)
    assert sorted(found) == ["bias", "weight"]
    assert found["weight"].data() == weight.data()
    assert found["weight"].dtype is weight.dtype
    assert {"weight.codes", "weight.scales"} < set(safetensors.numpy.load_file(path))


def test_arrays_of_other_libraries_are_saved(path):
    state = {
        "strided": np.arange(12).reshape(3, 4)[:, ::2],
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "big endian": np.arange(3, dtype=">i4"),
        "scalar": np.float32(2.5),
        "bfloat16": np.asarray([1.5], ml_dtypes.bfloat16),
        "torch": torch.arange(4.0).reshape(2, 2).T.to(torch.bfloat16),
    }
    store.save(state, path)
    found = store.load(path, device=CPU)
    for name, value in state.items():
        expected = value.float().numpy() if name == "torch" else value
        np.testing.assert_array_equal(found[name].astype("float64").numpy(), expected)
    assert [found[name].dtype.name for name in ("big endian", "scalar", "torch")] == [
        "int32",
        "float32",
        "bfloat16",
    ]


def test_an_empty_state_is_a_file(path):
    store.save({}, path)
    assert store.load(path) == {}


def test_metadata_come_back(path):
    for limit in (None, 8):
        store.save(
            {"x": burn.ones(2), "y": burn.ones(2)},
            path,
            metadata={"epoch": "3", "größe": "∞"},
            max_shard_bytes=limit,
        )
        assert store.read_metadata(path) == {"epoch": "3", "format": "pt", "größe": "∞"}


def test_equal_states_are_equal_bytes(path):
    state = {"größe": burn.ones(8).quantize_dynamic(), 'a"\\\n': burn.ones(2)}
    metadata = {str(index): 'text "quoted" \\ \n \u2028 ü' for index in range(8)}
    found = set()
    for _ in range(5):
        store.save(state, path, metadata=metadata)
        found.add(path.read_bytes())
    assert len(found) == 1
    assert sorted(store.load(path)) == sorted(state)
    assert store.read_metadata(path) == {**metadata, "format": "pt"}
    assert sorted(safetensors.numpy.load_file(path)) == ['a"\\\n', "größe.codes", "größe.scales"]


# Other libraries.


def test_the_library_and_torch_read_every_dtype(path):
    state = {dtype.name: drawn(dtype, (2, 3)) for dtype in burn.DType.members()}
    store.save(state, path)
    arrays, tensors = safetensors.numpy.load_file(path), safetensors.torch.load_file(path)
    with safetensors.safe_open(path, "np") as file:
        for name, code in FORMAT_NAMES.items():
            assert file.get_slice(name).get_dtype() == code
    for name, value in state.items():
        assert arrays[name].tobytes() == value.tobytes(), name
        assert tensors[name].contiguous().view(torch.uint8).numpy().tobytes() == value.tobytes()
    assert arrays["complex128"].shape == (2, 3, 2)  # the format has no such dtype
    assert arrays["bfloat16"].dtype == ml_dtypes.bfloat16
    assert tensors["bfloat16"].dtype is torch.bfloat16


def test_files_that_torch_wrote_load(path):
    names = [dtype.name for dtype in burn.DType.members() if dtype.name != "complex128"]
    state = {
        name: torch.from_numpy(drawn(burn.uint8, (8, 16))).view(getattr(torch, name))
        for name in names
        if name != "bool"
    }
    safetensors.torch.save_file(state, path, metadata={"format": "pt"})
    for name, found in store.load(path, device=CPU).items():
        raw = state[name].view(torch.uint8).numpy().tobytes()
        assert bits(found) == (getattr(burn, name), tuple(state[name].shape), raw)


def test_a_model_goes_to_torch_and_back(path):
    theirs = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2)
    )
    ours = small_net()
    safetensors.torch.save_file(theirs.state_dict(), path)
    assert not store.load_into(ours, path)
    np.testing.assert_array_equal(ours.state_dict()["2.weight"].numpy(), theirs[2].weight.detach())
    ours.map(lambda name, x: x + 1.0)
    store.save(ours, path)
    theirs.load_state_dict(safetensors.torch.load_file(path))
    np.testing.assert_array_equal(ours.state_dict()["2.weight"].numpy(), theirs[2].weight.detach())


@pytest.mark.parametrize("archive", [True, False], ids=["archive", "pickle"])
@pytest.mark.parametrize("key", [None, "state_dict", "model", "weights of my own"])
def test_files_of_pytorch_load(key, archive, tmp_path):
    state = {
        "weight": torch.randn(3, 4),
        "transposed": torch.randn(3, 4).T,
        "bfloat16": torch.randn(2).to(torch.bfloat16),
        "conjugate": torch.randn(2, dtype=torch.complex64).conj(),
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "count": torch.tensor(3),
        "empty": torch.ones(0, 2),
    }
    content = state if key is None else {key: state, "epoch": 3, "best": 0.5}
    path = tmp_path / "model.bin"
    torch.save(content, path, _use_new_zipfile_serialization=archive)
    found = store.load(path, device=CPU)
    assert sorted(found) == sorted(state)
    for name, value in state.items():
        expected = value.detach().resolve_conj().contiguous().reshape(-1).view(torch.uint8)
        assert bits(found[name])[1:] == (tuple(value.shape), expected.numpy().tobytes()), name


def test_an_empty_state_of_pytorch_is_empty(tmp_path):
    torch.save({}, tmp_path / "x.pt")
    assert store.load(tmp_path / "x.pt") == {}


def test_what_loads_does_not_change_with_its_file(tmp_path):
    for name, write in (("x.safetensors", safetensors.torch.save_file), ("x.pt", torch.save)):
        path = tmp_path / name
        write({"x": torch.arange(1000)}, path)
        x = store.load(path, device=CPU)["x"]
        with path.open("r+b") as file:
            file.write(bytes(path.stat().st_size))
            file.truncate(10)
        assert x.tolist() == list(range(1000))


# Modules.


def test_a_module_on_an_autodiff_device_with_frozen_weights_keeps_what_it_is(path):
    net = small_net(device=CPU.autodiff()).freeze("0.*")
    store.save(net, path)
    assert sorted(store.load(path)) == sorted(net.state_dict())
    other = small_net(device=CPU.autodiff()).freeze("2.bias")
    tensors = [x for _, x in other.named_parameters()]
    assert not store.load_into(other, path)
    assert values_of(other) == values_of(net)
    assert all(x is y for (_, x), y in zip(other.named_parameters(), tensors, strict=True))
    trained = [name for name, x in other.named_parameters() if x.is_require_grad]
    assert trained == ["0.weight", "0.bias", "1.weight", "1.bias", "2.weight"]


def test_transient_tensors_are_no_part_of_a_file(path):
    class Masked(nn.Module):
        buffers = ("mean",)
        transient = ("mask",)

        def __init__(self):
            self.mean, self.mask, self.weight = burn.ones(2), burn.ones(2), burn.ones(2)

    store.save(Masked(), path)
    assert sorted(store.load(path)) == ["mean", "weight"]
    assert not store.load_into(Masked(), path)


class Tied(nn.Module):
    def __init__(self):
        self.table = nn.Embedding(5, 3)
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.table.weight


def test_tied_weights_are_saved_at_each_path_and_may_be_in_a_file_at_one(path):
    net = Tied()
    store.save(net, path)
    assert sorted(store.load(path)) == ["head.weight", "table.weight"]
    for name in ("head.weight", "table.weight"):
        store.save({name: burn.ones((5, 3))}, path)
        other = Tied()
        assert not store.load_into(other, path)
        assert not other.load_state_dict(store.load(path))
        assert other.head.weight is other.table.weight
        assert other.head.weight.tolist() == [[1.0] * 3] * 5


def test_optimizers_of_flat_states_and_other_objects_with_a_state_are_saved(path):
    average = burn.optim.ExponentialMovingAverage(small_net(), 0.9)
    with pytest.raises(OperandTypeError, match=r"save: .* is an object of type"):
        store.save(burn.optim.Adam(small_net()), path)
    del average
    assert not path.exists()


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_a_module_gets_values_in_its_dtypes_on_its_device(device, path):
    state = small_net(dtype="float32", device=CPU).state_dict()
    store.save({name: value.astype("float64") for name, value in state.items()}, path)
    net = small_net(dtype="float32", device=device)
    assert not store.load_into(net, path)
    assert values_of(net) == {name: bits(value) for name, value in state.items()}


def test_a_device_without_the_dtypes_of_a_file_gets_those_of_the_module(path):
    store.save({"weight": np.arange(4.0).reshape(1, 4), "steps": np.arange(2)}, path)

    class Net(nn.Module):
        def __init__(self, device):
            self.weight = burn.zeros((1, 4), dtype="float32", device=device)
            self.steps = burn.zeros(2, dtype="int32", device=device)

    devices = [MockDevice("npu", without=("float64", "int64", "uint64"))]
    with burn.registered(mock_backend("acme", devices)):
        net = Net(burn.Device("acme"))
        store.load_into(net, path)
        assert (net.weight.tolist(), net.steps.tolist()) == ([[0.0, 1.0, 2.0, 3.0]], [0, 1])
        with pytest.raises(DTypeError, match=r"load: weight is float64: "):
            store.load(path, device="acme", only="weight")


def test_a_state_that_does_not_fit_changes_nothing(path):
    net = small_net()
    before = values_of(net)
    state = {name: x + 1 for name, x in net.state_dict().items()}
    wrong = [
        (state | {"new": burn.ones(1)}, "unexpected: new"),
        ({name: x for name, x in state.items() if name != "2.bias"}, "missing: 2.bias"),
        (state | {"2.bias": burn.ones(3)}, r"2.bias has shape \(3,\) in the state and \(2,\)"),
    ]
    for item, message in wrong:
        store.save(item, path)
        with pytest.raises(ArgumentError, match=rf"load_into: .*{message}"):
            store.load_into(net, path)
        assert values_of(net) == before
    fractions = state | {"1.num_batches_tracked": burn.asarray(0.5)}
    for value in (np.asarray(0.5), np.asarray(1j)):
        store.save(fractions | {"1.num_batches_tracked": value}, path)
        with pytest.raises(DTypeError):
            store.load_into(net, path)
        assert values_of(net) == before


def test_what_fits_is_loaded_where_not_all_has_to(path):
    net = small_net()
    state = {"0.bias": burn.ones(4), "2.bias": burn.ones(7), "new": burn.ones(1)}
    store.save(state, path)
    report = store.load_into(net, path, strict=False)
    assert report.unexpected == ["new"]
    assert report.mismatched == {"2.bias": ((2,), (7,))}
    assert "0.weight" in report.missing
    assert "0.bias" not in report.missing
    assert net.state_dict()["0.bias"].tolist() == [1.0] * 4


def test_patterns_say_what_of_a_module_is_loaded(path):
    net, other = small_net(), small_net()
    store.save(net, path)
    before = values_of(other)
    assert not store.load_into(other, path, only=["0.*", "*.bias"])
    for name, value in values_of(other).items():
        expected = values_of(net) if name.startswith("0.") or name.endswith("bias") else before
        assert value == expected[name]


def test_a_quantized_module_takes_quantized_and_float_values(path):
    net = nn.Sequential(nn.Linear(8, 8))
    quantized = copy.deepcopy(net)
    quantized.quantize()
    store.save(quantized, path)
    other = copy.deepcopy(quantized).map(lambda name, x: x)
    assert not store.load_into(other, path)
    assert other.state_dict()["0.weight"].data() == quantized.state_dict()["0.weight"].data()
    assert not store.load_into(net, path)
    np.testing.assert_array_equal(
        net.state_dict()["0.weight"].numpy(),
        quantized.state_dict()["0.weight"].dequantize().numpy(),
    )


# Memory, and what is read.


def test_a_module_is_loaded_one_tensor_after_the_other(path):
    size = 1_000_000
    net = nn.Sequential(*[nn.Linear(1000, 1000, bias=False) for _ in range(10)])
    store.save(net, path)
    store.load_into(net, path)  # imports
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        store.load_into(net, path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The values that the module had are not traced, so all ten new ones count, and one more.
    assert peak - before < 11.5 * 4 * size


def test_tensors_that_are_not_wanted_are_not_read(path):
    state = {f"layer.{index}": burn.full(100, index) for index in range(4)}
    store.save(state, path, max_shard_bytes=800)
    damaged = sorted(path.parent.glob("*-of-*"))[1:]
    for item in damaged:
        item.write_bytes(b"")
    found = store.load(path, only="layer.0")
    assert found["layer.0"].tolist() == [0.0] * 100
    with pytest.raises(StoreError, match="is empty"):
        store.load(path, only="layer.3")


def test_a_program_that_stores_nothing_imports_no_library_for_it(run_python):
    program = (
        "import sys, burn, burn.store; burn.store.save; found = set(sys.modules);"
        "print(found & {'safetensors', 'torch', 'burn.nn.module'})"
    )
    assert run_python("-c", program).stdout == "set()\n"


def test_without_their_libraries_errors_say_what_to_install(run_python, tmp_path):
    torch.save({"x": torch.ones(1)}, tmp_path / "x.pt")
    program = (
        "import sys; sys.modules['safetensors'] = sys.modules['torch'] = None\n"
        "import burn\n"
        "x = {'x': burn.ones(1, device='cpu')}\n"
        "for call in (lambda: burn.store.save(x, 'x.safetensors'),"
        " lambda: burn.store.load(sys.argv[1] + '/x.pt')):\n"
        "    try: call()\n"
        "    except burn.errors.StoreError as error: print(error)\n"
    )
    result = run_python("-c", program, tmp_path)
    assert 'pip install "burn-core[store]"' in result.stdout
    assert "pip install torch" in result.stdout
    assert result.stdout.count("x.safetensors: ") == result.stdout.count("x.pt: ") == 1
    assert result.stderr == ""


# Renaming.


def test_patterns_are_replaced_in_their_order(path):
    store.save({"h.0.w": burn.zeros(1), "h.1.w": burn.ones(1), "end": burn.ones(1)}, path)
    rules = {r"^h\.(\d+)": r"blocks.\1", r"blocks\.1": "last", "end": None}
    for rename in (rules, list(rules.items())):
        assert sorted(store.load(path, rename=rename)) == ["blocks.0.w", "last.w"]
    found = store.load(path, rename=lambda name: name.upper() if "." in name else None)
    assert sorted(found) == ["H.0.W", "H.1.W"]
    assert list(store.load(path, rename=rules, only="*.0.?")) == ["blocks.0.w"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"rename": {"x": "y"}}, ArgumentError, "pattern 'x', which fits no path. There are a.w"),
        ({"rename": {"^.": ""}}, ArgumentError, r"calls both 'a.w' and 'b.w' '.w'"),
        ({"rename": {"(": ""}}, ArgumentError, r"'\(' -> '': missing \)"),
        ({"rename": {"a": r"\1"}}, ArgumentError, "invalid group reference"),
        ({"rename": "a"}, OperandTypeError, "rename is 'a'"),
        ({"rename": [("a",)]}, OperandTypeError, "rename is"),
        ({"rename": 3}, OperandTypeError, "rename is 3"),
        ({"rename": lambda name: 3}, OperandTypeError, "returned 3"),
        ({"rename": lambda name: "x"}, ArgumentError, "calls both 'a.w' and 'b.w' 'x'"),
        ({"only": "c.*"}, ArgumentError, "'c.*', which fits no path. There are a.w, b.w"),
        ({"only": ["a.*", "c"]}, ArgumentError, "'c', which fits no path"),
        ({"only": 3}, OperandTypeError, "only is 3"),
    ],
)
def test_wrong_patterns_are_errors(options, error, message, path):
    store.save({"a.w": burn.ones(1), "b.w": burn.ones(1)}, path)
    with pytest.raises(error, match=rf"^burn.store.load: .*{message}"):
        store.load(path, **options)


# What cannot be saved.


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        (3, OperandTypeError, "takes a module, or a mapping"),
        ([burn.ones(1)], OperandTypeError, "takes a module, or a mapping"),
        ({3: burn.ones(1)}, OperandTypeError, "the name 3 is no text"),
        ({"x": 3.0}, OperandTypeError, "x is an object of type float"),
        ({"x": {"y": burn.ones(1)}}, OperandTypeError, "x is an object of type dict"),
        ({"x": np.asarray(["text"])}, DTypeError, "x: "),
        ({"x": np.asarray([None])}, DTypeError, "x: "),
        ({"x": np.ones(2, ml_dtypes.float8_e4m3fn)}, DTypeError, "x: "),
        ({"__metadata__": burn.ones(1)}, ArgumentError, "the name '__metadata__' is reserved"),
        (
            {"x.codes": burn.ones(1), "x": burn.ones(8).quantize_dynamic()},
            ArgumentError,
            "the name 'x.codes' is reserved, or there twice",
        ),
    ],
)
def test_what_is_no_state_is_an_error_before_anything_is_written(state, error, message, path):
    with pytest.raises(error, match=rf"^burn.store.save: {message}"):
        store.save(state, path)
    assert list(path.parent.iterdir()) == []


def test_what_the_library_does_not_write_is_an_error_that_leaves_nothing(path):
    with pytest.raises(StoreError, match=rf"^burn.store.save: {path}: the library safetensors"):
        store.save({"\ud800": burn.ones(1)}, path)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"metadata": {"x": 1}}, OperandTypeError),
        ({"metadata": "x"}, OperandTypeError),
        ({"metadata": {"burn.store": "x"}}, ArgumentError),
        ({"max_shard_bytes": 0}, ArgumentError),
        ({"max_shard_bytes": "5GB"}, ArgumentError),
    ],
)
def test_wrong_options_are_errors(options, error, path):
    with pytest.raises(error, match=r"^burn.store.save: (metadata|max_shard_bytes)"):
        store.save({"x": burn.ones(1)}, path, **options)


def test_the_name_of_a_file_says_its_format(tmp_path):
    with pytest.raises(ArgumentError, match=r"end in .safetensors: model.safetensors"):
        store.save({}, tmp_path / "model.pt")


# Shards.


def test_shards_are_those_of_hugging_face(path):
    state = {f"layer.{index}": burn.full(10, index, dtype="float32") for index in range(5)}
    store.save(state, path, max_shard_bytes=80)
    names = [f"model-{number:05}-of-00003.safetensors" for number in (1, 2, 3)]
    assert sorted(path.name for path in path.parent.iterdir()) == [
        *names,
        "model.safetensors.index.json",
    ]
    index = json.loads((path.parent / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == 200
    assert index["weight_map"] == {f"layer.{i}": names[i // 2] for i in range(5)}
    assert sorted(safetensors.torch.load_file(path.parent / names[0])) == ["layer.0", "layer.1"]
    for item in (path, path.parent, path.parent / "model.safetensors.index.json"):
        assert {name: bits(x) for name, x in store.load(item).items()} == {
            name: bits(x) for name, x in state.items()
        }


def test_a_new_model_replaces_all_files_of_the_old_one(path):
    def folder():
        return sorted(path.name for path in path.parent.iterdir() if path.name != "other.txt")

    (path.parent / "other.txt").write_text("kept")
    states = [{str(i): burn.full(10, seed) for i in range(4)} for seed in range(4)]
    store.save(states[0], path)
    store.save(states[1], path, max_shard_bytes=80)
    first = folder()
    assert "model.safetensors" not in first
    store.save(states[2], path, max_shard_bytes=80)  # the same number of shards
    assert len(folder()) == len(first)
    assert not set(folder()) & set(first) - {"model.safetensors.index.json"}
    assert store.load(path)["3"].tolist() == [2.0] * 10
    store.save(states[3], path)
    assert folder() == ["model.safetensors"]
    assert store.load(path)["0"].tolist() == [3.0] * 10
    assert (path.parent / "other.txt").read_text() == "kept"


def test_an_index_that_names_other_files_does_not_let_them_be_removed(path):
    (path.parent / "mine.safetensors").write_text("mine")
    index = path.with_name("model.safetensors.index.json")
    index.write_text('{"weight_map": {"x": "mine.safetensors", "y": "../other"}}')
    store.save({"x": burn.ones(3), "y": burn.ones(3)}, path, max_shard_bytes=12)
    index.write_text('{"weight_map": {"x": "mine.safetensors"}}')
    store.save({"x": burn.ones(3)}, path)
    assert (path.parent / "mine.safetensors").read_text() == "mine"


def test_shards_without_an_index_are_no_model(path):
    store.save({"x": burn.ones(3), "y": burn.ones(3)}, path, max_shard_bytes=12)
    path.with_name("model.safetensors.index.json").unlink()
    with pytest.raises(StoreError, match="shards of a file, and no"):
        store.load(path.parent)


def test_files_of_a_cache_may_be_links(tmp_path):
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots"
    state = {"x": burn.ones(3), "y": burn.zeros(3)}
    store.save(state, blobs / "model.safetensors", max_shard_bytes=12)
    snapshot.mkdir()
    for path in blobs.iterdir():
        (snapshot / path.name).symlink_to(path)
    assert sorted(store.load(snapshot)) == ["x", "y"]


# Files appear whole.


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_a_new_file_has_the_permissions_of_the_old_one_or_those_of_new_files(path):
    plain = path.with_name("plain")
    plain.touch()
    store.save({}, path)
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    path.chmod(0o640)
    store.save({}, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_saving_to_a_link_replaces_the_link(path):
    target = path.with_name("target.safetensors")
    store.save({"x": burn.zeros(1)}, target)
    path.symlink_to(target)
    store.save({"x": burn.ones(1)}, path)
    assert not path.is_symlink()
    assert store.load(target)["x"].item() == 0.0


def test_the_folder_of_a_file_is_made(tmp_path):
    store.save({"x": burn.ones(1)}, tmp_path / "runs/first/x.safetensors")
    assert list(store.load(tmp_path / "runs/first")) == ["x"]


def test_paths_may_be_text_or_objects(path):
    store.save({"x": burn.ones(1)}, str(path))
    assert list(store.load(str(path.parent))) == list(store.load(path)) == ["x"]
    with pytest.raises(OperandTypeError, match="path is an object of type int"):
        store.load(3)


@pytest.mark.parametrize("limit", [None, 16], ids=["whole", "shards"])
def test_an_interrupted_save_leaves_the_old_model_or_the_new_one(limit, path, monkeypatch):
    original = os.fsync
    for last in range(1, 8):  # of the calls, the one that is interrupted
        numbers = iter(range(1, 100))
        done = []

        def fsync(number, last=last, numbers=numbers):
            if next(numbers) == last:
                raise KeyboardInterrupt
            original(number)

        old = {"x": burn.zeros(4), "y": burn.zeros(4)}
        store.save(old, path, max_shard_bytes=limit)
        before = sorted(path.parent.iterdir())
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fsync)
            try:
                store.save({"x": burn.ones(4), "y": burn.ones(4)}, path, max_shard_bytes=limit)
                done.append(1)
            except KeyboardInterrupt:
                pass
        values = {tuple(value.tolist()) for value in store.load(path).values()}
        assert values <= {(0.0,) * 4, (1.0,) * 4}
        assert len(values) == 1
        if values == {(0.0,) * 4}:
            assert sorted(path.parent.iterdir()) == before
        assert not list(path.parent.glob("*.partial"))
    assert done, "the last save was not interrupted"
    assert values == {(1.0,) * 4}


@pytest.mark.skipif(os.name == "nt", reason="Windows syncs no folders")
def test_files_and_folders_are_synced(path, monkeypatch):
    synced = []
    original = os.fsync

    def fsync(number):
        synced.append(stat.S_ISDIR(os.fstat(number).st_mode))
        original(number)

    monkeypatch.setattr(os, "fsync", fsync)
    store.save({"x": burn.ones(4)}, path)
    assert synced == [False, True]
