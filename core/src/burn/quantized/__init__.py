"""Quantized tensors as a decorator over any backend: codes and scales are tensors of that."""

from burn.quantized.backend import Quantized
from burn.quantized.calibration import Calibration, compute_parameters, compute_range
from burn.quantized.table import QuantizedTable

__all__ = [
    "Calibration",
    "Quantized",
    "QuantizedTable",
    "compute_parameters",
    "compute_range",
]


def __dir__() -> list[str]:
    return __all__
