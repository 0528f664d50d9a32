"""Values on the host, as they enter and leave a backend."""

from burn.tensor_data.host import TensorData, check_unmasked
from burn.tensor_data.quantized import QuantizedData

__all__ = ["QuantizedData", "TensorData", "check_unmasked"]


def __dir__() -> list[str]:
    return __all__
