"""Weights of other people's models: those of transformers load by renaming, and compute the same.

So do its files, and it reads ours.

pip installs the library into a folder of its own, where only another process imports it: with small
random weights, so that nothing else is downloaded. The folder, and what the models computed, are
kept in ``~/.cache/burn-tests``.
"""

import hashlib
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from filelock import FileLock

import burn
from nn_models import BERT, GPT2, Llama, ResNet, ViT, generate

pytestmark = pytest.mark.exhaustive  # pip brings 170 MB the first time

REQUIREMENT = "transformers==5.23.0"  # the paths of weights differ between versions
PROGRAM = Path(__file__).parents[1] / "shared" / "transformers_reference.py"
CACHE = Path.home() / ".cache/burn-tests"

CPU = burn.Device("cpu")
DEVICES = [
    device
    for device in burn.Device.enumerate()
    if device.backend_name not in ("pure", "strict") and device.supports_dtype(burn.float64)
]

RESNET = {"stem": 8, "depths": (2, 1, 2)}
MODELS = {
    "gpt2": lambda **options: GPT2(61, 32, 24, 3, 4, **options),
    "llama": lambda **options: Llama(61, 32, 32, 56, 3, 4, 2, **options),
    "bert": lambda **options: BERT(61, 32, 24, 40, 3, 4, **options),
    "vit": lambda **options: ViT(7, 24, 8, 24, 40, 3, 4, **options),
    "resnet-basic": lambda **options: ResNet(7, **RESNET, widths=(8, 12, 16), **options),
    "resnet-bottleneck": lambda **options: ResNet(
        7, **RESNET, widths=(16, 24, 32), is_bottleneck=True, **options
    ),
}

NAMES_IN_FILES = {
    "vit": {  # its files have the names of an older version
        r"encoder\.layer\.": "layers.",
        r"attention\.attention\.([kqv])\w+": r"attention.\1_proj",
        r"attention\.output\.dense": "attention.o_proj",
        r"intermediate\.dense": "mlp.fc1",
        r"(\d)\.output\.dense": r"\1.mlp.fc2",
    }
}

TOLERANCES = {
    # There Llama's normalizations and angles are in float32 whatever the dtype of the model.
    ("llama", "float64"): 1e-5,
}


CONTENT = PROGRAM.read_bytes() + f"{REQUIREMENT} torch {torch.__version__}".encode()
FILES = CACHE / f"transformers-{hashlib.sha256(CONTENT).hexdigest()[:16]}"
"""The models as transformers saves them."""


@pytest.fixture(scope="module")
def references(run_python):
    """Of each model its weights, inputs, logits and tokens, as transformers has them."""
    found = FILES.with_suffix(".pickle")
    CACHE.mkdir(parents=True, exist_ok=True)
    with FileLock(CACHE / "transformers.lock"):
        if not found.exists():
            packages = CACHE / REQUIREMENT
            if not (packages / "done").exists():
                options = ("--disable-pip-version-check", "--no-compile", "--upgrade", "--target")
                result = run_python("-m", "pip", "install", *options, packages, REQUIREMENT)
                assert result.returncode == 0, result.stderr
                (packages / "done").touch()
            partial = found.with_suffix(".partial")
            result = run_python(PROGRAM, packages, partial, FILES, HF_HUB_OFFLINE="1")
            assert result.returncode == 0, result.stderr
            partial.rename(found)
    return pickle.loads(found.read_bytes())


def inputs_of(reference, device, dtype="float32"):
    inputs = {
        name: burn.asarray(source, device=device) for name, source in reference["inputs"].items()
    }
    if "attention_mask" in inputs:
        padding = inputs["attention_mask"] == 0
        return inputs["input_ids"], inputs["token_type_ids"], padding
    return tuple(
        [source.astype(dtype) if source.dtype.is_float else source for source in inputs.values()]
    )


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", MODELS)
def test_logits_are_those_of_transformers(references, name, dtype, device):
    reference = references[name]
    model = MODELS[name](dtype=dtype, device=device).load(reference["state"])
    logits = model(*inputs_of(reference, device, dtype))
    tolerance = TOLERANCES.get((name, dtype), 1e-9 if dtype == "float64" else 1e-4)
    np.testing.assert_allclose(logits.numpy(), reference[dtype], rtol=0.0, atol=tolerance)


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_generation_with_a_cache_gives_the_tokens_of_transformers(references, name, device):
    reference = references[name]
    model = MODELS[name](device=device).load(reference["state"])
    (tokens,) = inputs_of(reference, device)
    found = generate(model, tokens, reference["generated"].shape[1])
    assert found.tolist() == reference["generated"].tolist()


def test_generation_without_a_cache_gives_the_same_tokens(references):
    reference = references["llama"]
    model = MODELS["llama"](device=CPU).load(reference["state"])
    (tokens,) = inputs_of(reference, CPU)
    for _ in range(reference["generated"].shape[1]):
        last = burn.argmax(model(tokens)[:, -1], axis=-1, keepdims=True)
        tokens = burn.concat([tokens, last], axis=1)
    assert tokens[:, 9:].tolist() == reference["generated"].tolist()


@pytest.mark.parametrize("name", MODELS)
def test_files_of_transformers_load_whole_and_in_shards(references, name):
    reference = references[name]
    options = {"rename": NAMES_IN_FILES.get(name), "device": CPU}
    whole = burn.store.load(FILES / name / "whole", **options)
    shards = burn.store.load(FILES / name / "shards", **options)
    assert len(list((FILES / name / "shards").glob("*-of-*.safetensors"))) > 1
    assert sorted(whole) == sorted(shards)
    for path, value in whole.items():
        assert value.data().array.tobytes() == reference["state"][path].tobytes(), path
        assert shards[path].data().array.tobytes() == reference["state"][path].tobytes(), path
    model = MODELS[name](device=CPU).load(whole)
    logits = model(*inputs_of(reference, CPU))
    np.testing.assert_allclose(logits.numpy(), reference["float32"], rtol=0.0, atol=1e-4)


def test_transformers_reads_files_of_burn(references, run_python, tmp_path):
    for number, (name, reference) in enumerate(references.items()):
        limit = 20_000 if number % 2 else None
        path = tmp_path / name / "model.safetensors"
        burn.store.save(reference["state"], path, max_shard_bytes=limit)
    target = tmp_path / "logits"
    arguments = (CACHE / REQUIREMENT, target, FILES, tmp_path)
    result = run_python(PROGRAM, *arguments, HF_HUB_OFFLINE="1")
    assert result.returncode == 0, result.stderr
    for name, logits in pickle.loads(target.read_bytes()).items():
        np.testing.assert_array_equal(logits, references[name]["float32"])


def test_models_of_other_weights_train(references):
    reference = references["vit"]
    model = MODELS["vit"](device=CPU).load(reference["state"]).to(CPU.autodiff())
    (images,) = inputs_of(reference, CPU)
    gradients = (model(images) ** 2).mean().backward()
    for name, parameter in model.named_parameters():
        assert burn.max_abs(parameter.grad(gradients)).item() > 0.0, name
