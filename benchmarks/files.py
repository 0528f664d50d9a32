"""Files of a model with 256 MB of weights, as the library of safetensors handles them for torch."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from burn import nn, store
from harness import Case

__all__ = ["files"]

LAYERS, WIDTH = 16, 2048
"""16 matrices of 16 MB in float32."""


def files() -> Iterator[Case]:
    """Save and load; a file that the library wrote is synced as well."""
    ours = nn.Sequential(
        *[nn.Linear(WIDTH, WIDTH, bias=False, device="cpu") for _ in range(LAYERS)]
    )
    layers = [torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)]
    theirs = torch.nn.Sequential(*layers)
    against = "safetensors.torch"
    with tempfile.TemporaryDirectory() as folder:
        path, other = Path(folder, "ours.safetensors"), Path(folder, "theirs.safetensors")

        def save_theirs() -> None:
            save_file(theirs.state_dict(), other)
            with other.open("r+b") as file:
                os.fsync(file.fileno())

        yield Case("save 256 MB", lambda: store.save(ours, path), save_theirs, against, 1.25)
        yield Case(
            "load 256 MB into a model",
            lambda: store.load_into(ours, path),
            lambda: theirs.load_state_dict(load_file(other)),
            against,
            1.25,
        )
        yield Case(
            "load 1 of 16 tensors",
            lambda: store.load(path, device="cpu", only="7.*"),
            lambda: _one(other),
            against,
            1.25,
        )


def _one(path: Path) -> torch.Tensor:
    """A copy of one tensor of a file: the library maps memory, and copies nothing."""
    return load_file(path)["7.weight"].clone()
