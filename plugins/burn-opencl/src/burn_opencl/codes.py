"""Codes of quantized tensors, as the kernels know them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from burn.plugin_api import DTYPE_CODES

if TYPE_CHECKING:
    from burn.plugin_api import QuantScheme

__all__ = ["code_macros", "scale_code"]

_FORMATS: Final = {"e4m3": 1, "e5m2": 2, "e2m1": 3}
"""Formats of floats (``codes.cl``); integers have 0."""

_SCALES: Final = {"ue8m0": 14, "ue4m3": 15}
"""Dtypes of scales beside those of floats (``codes.cl``)."""


def code_macros(scheme: QuantScheme) -> dict[str, str | int]:
    """Macros by which the kernels know the stored codes of a scheme."""
    return {
        "CODE_BITS": scheme.value.bits if scheme.per_word > 1 else 8,
        "FORMAT": _FORMATS.get(scheme.value.value, 0),
    }


def scale_code(scheme: QuantScheme) -> int:
    """Code of the dtype of a scheme's scales."""
    name = scheme.scale_dtype.value
    return _SCALES.get(name) or DTYPE_CODES[name]
