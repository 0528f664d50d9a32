"""Calls of elementwise functions that have no samples of their own: samples of their ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn.functions import elementwise
from burn.ops import REGISTRY, Tag
from burn.testing.function_samples import FUNCTIONS, call, function_calls
from burn.testing.op_samples import SAMPLES, Sample
from burn.testing.samples import derived

__all__ = ["attach"]


def attach() -> None:
    """Give calls to each function of the name of an elementwise op that has none."""
    derived.attach()
    for name, op in REGISTRY.items():
        if name in FUNCTIONS or name not in SAMPLES or Tag.ELEMENTWISE not in op.tags:
            continue
        if hasattr(elementwise, name) and not op.attributes:
            chosen = [item for item in SAMPLES[name].samples if _is_plain(item)]
            function_calls(name, *[call(item.note, *item.operands) for item in chosen])


def _is_plain(item: Sample) -> bool:
    """Whether the operands of a sample are some finite numbers."""
    arrays: Any = [operand for operand in item.operands if isinstance(operand, np.ndarray)]
    return item.differentiable and all(
        0 < array.size <= 64 and np.isfinite(array).all() for array in arrays
    )
