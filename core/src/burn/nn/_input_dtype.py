"""float64 inputs of layers of narrower floats: an error, where promotion would widen a network.

Dispatch asks where it widens a float tensor to float64. Calls whose dtypes agree pay nothing.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import TYPE_CHECKING, Any

from burn.dtype import float64
from burn.errors import DTypeError
from burn.nn._slots import STATE, slots_of

if TYPE_CHECKING:
    from burn.nn.module import Module

__all__ = ["check_no_layer_widens"]


def check_no_layer_widens() -> None:
    """Raise where a layer of this package computes, whose parameters are narrower than float64.

    Code of others, which a layer may call, promotes as the standard says.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("burn."):
        if frame.f_code.co_name == "forward":
            layer: Any = frame.f_locals.get("self")
            if STATE in getattr(layer, "__dict__", ()):
                _check(layer)
        frame = frame.f_back


def _check(layer: Module) -> None:
    dtypes = {slot.tensor.dtype: None for slot in slots_of(layer) if slot.is_parameter}
    if dtypes and float64 not in dtypes:
        names = " and ".join(map(str, dtypes))
        narrow = next(iter(dtypes))
        error = DTypeError(
            f"an input is float64, the parameters are {names}",
            hint=f'Cast the input, x.astype("{narrow}"), or the layer, layer.astype("float64")',
        )
        error.operation = type(layer).__name__  # not the function that it calls
        raise error
