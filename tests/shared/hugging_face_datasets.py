"""Loads datasets of the library ``datasets``, which test_data_interop.py has pip bring."""

import sys

import numpy as np

from burn.data import DataLoader, collate

ROWS = 10


def example(index):
    return {
        "tokens": [index, index + 1, index + 2],
        "label": index % 2,
        "score": index / 4,
        "text": f"text {index}",
    }


def check(batches):
    indices = []
    for batch in batches:
        tokens, labels = batch["tokens"].numpy(), batch["label"].numpy()
        assert tokens.shape == (len(labels), 3)
        assert (tokens - tokens[:, :1] == np.arange(3)).all()
        assert (labels == tokens[:, 0] % 2).all()
        assert (batch["score"].numpy() == tokens[:, 0] / 4).all()
        assert str(batch["score"].dtype) == "float32"
        if "text" in batch:
            assert batch["text"] == [f"text {token}" for token in tokens[:, 0]]
        indices += tokens[:, 0].tolist()
    return indices


def main():
    from datasets import Dataset  # doctests are collected where it is not installed

    data = Dataset.from_list([example(index) for index in range(ROWS)])
    assert check(DataLoader(data, 4, device="cpu")) == list(range(ROWS))
    orders = []
    for workers in (0, 2):
        with DataLoader(data, 4, shuffle=True, seed=3, workers=workers, device="cpu") as loader:
            orders.append([check(loader), check(loader)])
    assert orders[0] == orders[1]
    for kind in ("numpy", "torch"):
        assert check(DataLoader(data.with_format(kind), 4, device="cpu")) == list(range(ROWS))
    assert check(DataLoader(data.select(range(2, 6)), 4, device="cpu")) == [2, 3, 4, 5]
    for workers in (0, 2):
        stream = data.to_iterable_dataset().map(lambda item: item)
        with DataLoader(stream, 4, workers=workers, device="cpu") as loader:
            assert check(loader) == list(range(ROWS))
    assert collate(data.__getitems__([1]))["label"].tolist() == [1]
    sys.stdout.write("loaded")


if __name__ == "__main__":
    main()
