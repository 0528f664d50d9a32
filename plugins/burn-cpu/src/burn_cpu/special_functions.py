"""Special functions: the defaults of their ops, in blocks, since they are a hundred passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burn_cpu.base import Array, CpuOps
from burn_cpu.blocks import map_elements

__all__ = ["SpecialFunctionOps"]


def _in_blocks(name: str) -> Callable[..., Array]:
    def method(self: CpuOps, x: Array, **attributes: Any) -> Array:
        def kernel(elements: Array, out: Array) -> None:
            np.copyto(out, self.ops.decomposed(name, elements, **attributes))

        return map_elements(kernel, x)

    method.__name__ = name
    method.__qualname__ = f"SpecialFunctionOps.{name}"
    method.__doc__ = "The default, in blocks."
    return method


class SpecialFunctionOps(CpuOps):
    """Functions of one tensor, of which each element takes some hundred operations."""

    erfc = _in_blocks("erfc")
    erfinv = _in_blocks("erfinv")
    lgamma = _in_blocks("lgamma")
    digamma = _in_blocks("digamma")
    polygamma = _in_blocks("polygamma")
    i0 = _in_blocks("i0")
    i1 = _in_blocks("i1")
    sinc = _in_blocks("sinc")
