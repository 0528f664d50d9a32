"""Tensors of 8, 4 and 2 bits: schemes, calibration, and quantized tensors from and to floats.

Examples
--------
>>> import burn
>>> from burn.quantization import QuantScheme, QuantValue, ScaleDType
>>> scheme = QuantScheme(QuantValue.Q4F).per_block((1, 32), ScaleDType.F16)
>>> weight = burn.ones((64, 32), device="cpu").quantize_dynamic(scheme)
>>> (burn.ones((2, 32), device="cpu") @ weight.mT).shape
(2, 64)
"""

from burn.functions.quantization import (
    CalibrationRange,
    QParams,
    compute_q_params,
    compute_range,
    default_quant_scheme,
    dequantize,
    is_quantized,
    quantize,
    quantize_dynamic,
)
from burn.functions.quantized_state import join_state, split_state
from burn.public_calls import exports as _exports
from burn.quant_scheme import (
    Propagation,
    QDType,
    QuantConfig,
    QuantLevel,
    QuantMode,
    QuantScheme,
    QuantStore,
    QuantValue,
    ScaleDType,
)
from burn.quantized import Calibration, Quantized
from burn.tensor_data import QuantizedData

__all__ = [
    "Calibration",
    "CalibrationRange",
    "Propagation",
    "QDType",
    "QParams",
    "QuantConfig",
    "QuantLevel",
    "QuantMode",
    "QuantScheme",
    "QuantStore",
    "QuantValue",
    "Quantized",
    "QuantizedData",
    "ScaleDType",
    "compute_q_params",
    "compute_range",
    "default_quant_scheme",
    "dequantize",
    "is_quantized",
    "join_state",
    "quantize",
    "quantize_dynamic",
    "split_state",
]

_exports(globals())
