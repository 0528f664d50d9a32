"""The parity map: every row of the original's op traits and tensor API has a counterpart here."""

import csv
import inspect
from pathlib import Path

import pytest

import burn
from burn.backend import AutodiffBackend, Backend
from burn.ops import REGISTRY

PATH = Path(__file__).parent.parent / "docs" / "parity.csv"
ROWS = list(csv.DictReader(PATH.read_text(encoding="utf-8").splitlines()))

PLANNED = {
    "distributed operations",
    "graph capture",
    "module operations",
    "quantization",
}
"""Capabilities that are still to come, and bring counterparts of their own."""

OWNERS = {
    "AutodiffBackend": AutodiffBackend,
    "Backend": Backend,
    "Device": burn.Device,
    "Dispatch": burn.Dispatch,
    "Tensor": burn.Tensor,
    "Transaction": burn.Transaction,
    "burn": burn,
}


def find(counterpart):
    """The object that a counterpart names."""
    if counterpart.startswith("op:"):
        return REGISTRY[counterpart[3:]]
    owner, *path = counterpart.split(".")
    found = OWNERS[owner]
    for name in path:
        found = getattr(found, name)
    return found


def test_every_row_of_the_original_is_there():
    names = [(row["source"], row["group"], row["name"]) for row in ROWS]
    assert len(set(names)) == len(names)
    assert sum(row["source"] == "burn_ops" for row in ROWS) == 469
    assert sum(row["source"] == "burn_tensor_api" for row in ROWS) == 399


@pytest.mark.parametrize("counterpart", sorted({row["counterpart"] for row in ROWS} - {""}))
def test_a_counterpart_exists(counterpart):
    found = find(counterpart)
    assert callable(found) or inspect.isdatadescriptor(found) or hasattr(found, "infer")


def test_a_row_has_a_counterpart_or_a_reason():
    for row in ROWS:
        assert bool(row["counterpart"]) != bool(row["note"]), row


def test_only_some_groups_wait_for_a_capability():
    waiting = {row["group"] for row in ROWS if row["note"] in PLANNED}
    tensor_api = {group for group in waiting if not group.endswith("Ops")}
    assert tensor_api <= {
        "Backend",  # graph capture
        "api/float",  # quantization, and grid sampling of the module operations
        "api/graph",
        "distributed",
        "grid/affine_grid",
        "module",
        "quantization",
    }
