"""QuantScheme: how a tensor is stored in few bits; QDType: the dtype of such a tensor.

A quantized tensor is codes and scales: an element is ``code * scale``, or ``code * scale * global``
in a scheme of two levels. Values, stores and levels are those of the Rust framework burn.
"""

from burn.quant_scheme.config import Propagation, QuantConfig
from burn.quant_scheme.fields import (
    MAX_BLOCK_AXES,
    QuantLevel,
    QuantMode,
    QuantStore,
    QuantValue,
    ScaleDType,
)
from burn.quant_scheme.quantized_dtype import QDType
from burn.quant_scheme.scheme import QuantScheme

__all__ = [
    "MAX_BLOCK_AXES",
    "Propagation",
    "QDType",
    "QuantConfig",
    "QuantLevel",
    "QuantMode",
    "QuantScheme",
    "QuantStore",
    "QuantValue",
    "ScaleDType",
]


def __dir__() -> list[str]:
    return __all__
