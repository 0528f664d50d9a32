"""Datasets of other libraries load: of PyTorch, Hugging Face, polars, and whatever is indexed."""

from pathlib import Path

import numpy as np
import pytest
import torch
from filelock import FileLock
from PIL import Image
from torch.utils.data import DataLoader as TorchLoader, Dataset, IterableDataset, TensorDataset

import burn
from burn.data import Arrays, DataLoader, Mapped, Subset, Windows, collate, split

REQUIREMENT = "datasets==5.2.0"
CACHE = Path.home() / ".cache/burn-tests"

DEVICES = [device for device in burn.Device.enumerate() if device.backend_name != "strict"]


class Pictures(Dataset):
    """Pairs of an image and its label, as the datasets of torchvision."""

    def __len__(self):
        return 5

    def __getitem__(self, index):
        if index >= len(self):
            raise IndexError(index)
        return Image.new("RGB", (4, 3), (index, 0, 9)), index


class Fetching(Dataset):
    """A dataset of PyTorch that fetches a batch at once."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        raise AssertionError("one by one")

    def __getitems__(self, indices):
        return [{"x": torch.full((2,), float(index)), "name": str(index)} for index in indices]


class Stream(IterableDataset):
    def __iter__(self):
        return iter([(torch.tensor([index]), index) for index in range(5)])


def lists(batches):
    return [[tensor.tolist() for tensor in batch] for batch in batches]


def as_float(pair):
    image, label = pair
    return np.asarray(image, dtype=np.float32) / 255, label


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_datasets_of_torch_load(device):
    x, y = torch.arange(6.0).reshape(3, 2), torch.arange(3, dtype=torch.int32)
    loader = DataLoader(TensorDataset(x, y), 2, device=device)
    batches = list(loader)
    assert all(tensor.device is device for batch in batches for tensor in batch)
    assert lists(batches) == [[[[0, 1], [2, 3]], [0, 1]], [[[4, 5]], [2]]]
    halves = torch.utils.data.Subset(TensorDataset(x, y), [2, 0])
    assert lists(DataLoader(halves, 2, device=device)) == [[[[4, 5], [0, 1]], [2, 0]]]
    (batch,) = DataLoader(Fetching(), 4, device=device)
    assert batch["x"].tolist() == [[0, 0], [1, 1], [2, 2], [3, 3]]
    assert batch["name"] == ["0", "1", "2", "3"]
    assert lists(DataLoader(Stream(), 3, device=device)) == [
        [[[0], [1], [2]], [0, 1, 2]],
        [[[3], [4]], [3, 4]],
    ]


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_pairs_of_an_image_and_a_label_load(device):
    images, labels = next(iter(DataLoader(Pictures(), 4, device=device)))
    assert (images.shape, str(images.dtype)) == ((4, 3, 4, 3), "uint8")
    assert images[2, 0, 0].tolist() == [2, 0, 9]
    assert labels.dtype is device.settings.int_dtype
    images, _ = next(iter(DataLoader(Mapped(Pictures(), as_float), 4, device=device)))
    assert str(images.dtype) == "float32"


def test_our_datasets_load_with_the_loader_of_torch():
    data = Arrays(x=np.arange(6.0).reshape(3, 2), y=np.arange(3))
    batches = list(TorchLoader(data, batch_size=2))
    assert [batch["y"].tolist() for batch in batches] == [[0, 1], [2]]
    assert batches[0]["x"].tolist() == [[0, 1], [2, 3]]
    for other in (Subset(range(9), [3, 4]), split(range(4), [0.5, 0.5])[0], Windows(np.eye(3), 2)):
        assert len(list(TorchLoader(other))) == 2
    ours = TorchLoader(data, batch_size=3, collate_fn=collate)
    assert next(iter(ours))["y"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "dataset",
    [range(5), [0, 1, 2, 3, 4], (0, 1, 2, 3, 4), np.arange(5), torch.arange(5)],
    ids=lambda item: type(item).__name__,
)
def test_whatever_has_a_length_and_indices_loads(dataset):
    assert [tensor.tolist() for tensor in DataLoader(dataset, 2, device="cpu")] == [
        [0, 1],
        [2, 3],
        [4],
    ]


def test_columns_of_data_frames_load():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"x": [1.5, 2.5, 3.5], "label": [0, 1, 0], "text": ["a", "b", "c"]})
    data = Arrays(frame.to_dict())
    (batch,) = DataLoader(data, 3, device="cpu")
    assert batch["x"].tolist() == [1.5, 2.5, 3.5]
    assert batch["label"].tolist() == [0, 1, 0]
    assert batch["text"] == ["a", "b", "c"]
    examples = data.__getitems__([2, 0])
    assert [example["text"] for example in examples] == collate(examples)["text"] == ["c", "a"]
    parts = split(data, [0.5, 0.5], stratify=frame["text"])
    assert sorted(len(part) for part in parts) == [1, 2]
    rows = frame.to_dicts()
    (batch,) = DataLoader(rows, 3, device="cpu")
    assert (batch["x"].tolist(), batch["text"]) == ([1.5, 2.5, 3.5], ["a", "b", "c"])
    matrix = Arrays(frame.select("x", "label"))
    assert next(iter(DataLoader(matrix, 3, device="cpu"))).shape == (3, 2)


def test_memory_mapped_arrays_load(tmp_path):
    np.save(tmp_path / "tokens.npy", np.arange(100, dtype=np.uint16))
    tokens = np.load(tmp_path / "tokens.npy", mmap_mode="r")
    batches = DataLoader(Windows(tokens, 9, step=8), 4, shuffle=True, seed=0, device="cpu")
    for batch in batches:
        assert str(batch.dtype) == "uint16"
        assert ((batch[:, 1:].astype("int32") - batch[:, :-1].astype("int32")) == 1).all()


@pytest.mark.exhaustive  # pip brings 300 MB the first time
def test_datasets_of_hugging_face_load(run_python):
    # Of modules elsewhere dill, by which the library makes its fingerprints, pickles the content.
    packages = CACHE / REQUIREMENT / "site-packages"
    CACHE.mkdir(parents=True, exist_ok=True)
    with FileLock(CACHE / "datasets.lock"):
        if not (packages / "done").exists():
            options = ("--disable-pip-version-check", "--no-compile", "--upgrade", "--target")
            result = run_python("-m", "pip", "install", *options, packages, REQUIREMENT)
            assert result.returncode == 0, result.stderr
            (packages / "done").touch()
    program = Path(__file__).parents[1] / "shared" / "hugging_face_datasets.py"
    result = run_python(program, PYTHONPATH=f"{packages}", HF_HUB_OFFLINE="1")
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["loaded"]
