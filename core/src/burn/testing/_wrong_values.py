"""What the arguments of valid calls are replaced by, to make wrong calls of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from burn import namespace as burn
from burn.devices import Device
from burn.dtype import DType
from burn.testing.reference_backend import reference_devices

__all__ = ["A_COMPLEX_NUMBER", "WRONG", "Wrong", "constant"]

Make = Callable[[Device], Any]
"""Makes an argument for a call on a device."""


@dataclass(frozen=True, eq=False)
class Wrong:
    """Something to replace an argument by.

    Attributes
    ----------
    name : str
        What it is.
    make : callable
        Makes it for a device.
    is_nonsense : bool
        Whether no parameter of any function takes it.
    is_tensor : bool
        Whether it is a tensor: methods are called on no other object.
    dtype : DType or None
        The dtype that a device needs for it.
    """

    name: str
    make: Make
    is_nonsense: bool = False
    is_tensor: bool = False
    dtype: DType | None = None


def constant(name: str, value: Any, *, is_nonsense: bool = False) -> Wrong:
    """A value of Python, on whatever device."""
    return Wrong(name, lambda device: value, is_nonsense)  # noqa: ARG005 — of no device


def _tensor(name: str, values: Any, dtype: str) -> Wrong:
    array = np.asarray(values, dtype)
    return Wrong(
        name,
        lambda device: burn.asarray(array, device=device),
        is_tensor=True,
        dtype=DType.of(dtype),
    )


def _elsewhere(device: Device) -> Any:
    """A tensor on other hardware."""
    del device
    return burn.asarray(np.ones((2, 3), np.float32), device=reference_devices()[1])


def _quantized(device: Device) -> Any:
    return burn.quantization.quantize_dynamic(
        burn.asarray(np.ones((4, 32), np.float32), device=device)
    )


A_COMPLEX_NUMBER: Final = "a complex number"

HUGE: Final = 2**70
"""An integer that no dtype and no memory holds."""

FAR: Final = -(10**9)
"""An integer below every index, length and bound."""

WRONG: Final = (
    constant("None", None),
    constant("text", "wrong", is_nonsense=True),
    constant("a fraction", 0.5),
    constant("2**70", HUGE),
    constant("-10**9", FAR),
    constant("10**5000", 10**5000),
    constant("NaN", float("nan")),
    constant("infinity", float("inf")),
    constant("True", True),  # noqa: FBT003 — it is what replaces an argument
    constant(A_COMPLEX_NUMBER, 1j),
    constant("17", 17),
    constant("-17", -17),
    constant("0", 0),
    constant("no elements", ()),
    constant("one element", (1,)),
    constant("one twice", (0, 0)),
    constant("four elements", (1, 2, 1, 2)),
    constant("mixed elements", [1, "a"], is_nonsense=True),
    constant("an object", object(), is_nonsense=True),
    constant("a dict", {"wrong": 1}),
    constant("a class", int),
    constant("an array", np.ones((2, 3))),
    constant("a dtype", burn.int8),
    _tensor("a tensor of bool", np.ones((2, 3)), "bool"),
    _tensor("a tensor of integers", np.ones((2, 3)), "int32"),
    _tensor("a tensor of uint8", np.ones(3), "uint8"),
    _tensor("a tensor without axes", 1.0, "float32"),
    _tensor("a tensor of five axes", np.ones((1, 2, 1, 3, 1)), "float32"),
    _tensor("a tensor without elements", np.ones((0, 3)), "float32"),
    _tensor("a tensor of another shape", np.ones(7), "float32"),
    _tensor("a tensor of float16", np.ones((2, 3)), "float16"),
    _tensor("indices out of range", np.full(2, 99), "int32"),
    Wrong("a tensor of another device", _elsewhere, is_tensor=True),
    Wrong("a quantized tensor", _quantized, is_tensor=True, dtype=burn.int8),
)
