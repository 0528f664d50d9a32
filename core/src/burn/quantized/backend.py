"""Quantized: a decorator that gives any backend quantized tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn.backend.decorator import Decorator
from burn.locks import new_lock
from burn.ops.quantized_primitive import QuantizedPrimitive, is_quantized, of_parts
from burn.ops.table import resolve_below
from burn.quant_scheme import QuantConfig
from burn.quantized.calibration import quantize, quantize_dynamic
from burn.quantized.table import QuantizedTable
from burn.tensor_data import QuantizedData, TensorData

if TYPE_CHECKING:
    from collections.abc import Sequence

    from burn.aliases import Primitive
    from burn.backend import Backend
    from burn.device_id import DeviceId
    from burn.dtype import DType
    from burn.quant_scheme import QuantScheme

__all__ = ["Quantized", "download", "read_all", "upload"]


class Quantized(Decorator):
    """A backend over another, some of whose tensors are quantized.

    A tensor that is not is a primitive of the backend below.

    Parameters
    ----------
    below : Backend
        The backend that computes. Autodiff may be below: of a product of a tracked float and a
        quantized tensor the gradient flows to the float.
    config : QuantConfig, optional
        The default scheme, and what arithmetic gives.
    """

    def __init__(self, below: Backend, config: QuantConfig | None = None) -> None:
        super().__init__(below)
        self.config = config or QuantConfig()
        self._tables: dict[tuple[DeviceId, bool], QuantizedTable] = {}
        self._lock = new_lock()

    def name(self, device: DeviceId) -> str:
        """``quantized<cpu>`` for the backend ``cpu``."""
        return f"quantized<{self.below.name(device)}>"

    def for_device(self, device: DeviceId, *, checkpointing: bool = False) -> QuantizedTable:
        """The op table of a device, on tensors some of which are quantized."""
        with self._lock:
            table = self._tables.get((device, checkpointing))
            if table is None:
                below = resolve_below(self.below, device, checkpointing=checkpointing)
                table = QuantizedTable(below, propagation=self.config.propagation)
                self._tables[device, checkpointing] = table
            return table

    def default_quant_scheme(self, device: DeviceId) -> QuantScheme:
        """The scheme where the user names none."""
        del device
        return self.config.scheme

    def quantize(
        self,
        x: Primitive,
        scheme: QuantScheme,
        scales: Primitive,
        global_scale: Primitive | None,
        device: DeviceId,
    ) -> QuantizedPrimitive:
        """A tensor quantized with scales, which are rounded up to the scheme's dtype."""
        ops = self.for_device(device).below
        return quantize(ops, x, ops.round_up_scales(scales, scheme=scheme), global_scale, scheme)

    def quantize_dynamic(
        self, x: Primitive, scheme: QuantScheme, device: DeviceId
    ) -> QuantizedPrimitive:
        """A tensor quantized with scales by its own range."""
        return quantize_dynamic(self.for_device(device).below, x, scheme)

    def dequantize(self, x: QuantizedPrimitive, dtype: DType, device: DeviceId) -> Primitive:
        """The numbers that a quantized tensor stands for."""
        return x.dequantized(self.for_device(device).below, dtype)

    def from_data(self, data: TensorData, device: DeviceId) -> Primitive:
        """Upload host data, quantized or not."""
        if not isinstance(data, QuantizedData):
            return self.below.from_data(data, device)
        return upload(self.below, data, device)

    def to_data(self, x: Primitive) -> TensorData:
        """Read values back: of a quantized tensor codes and scales."""
        return download(self.below, x) if is_quantized(x) else self.below.to_data(x)

    def read_all(self, tensors: Sequence[Primitive]) -> list[TensorData]:
        """Read several tensors together."""
        return read_all(self.below, tensors)


def upload(backend: Any, data: QuantizedData, device: DeviceId) -> QuantizedPrimitive:
    """A quantized tensor of host data."""
    return of_parts([backend.from_data(part, device) for part in data.parts], data.scheme)


def download(backend: Any, x: QuantizedPrimitive) -> QuantizedData:
    """Codes and scales of a quantized tensor."""
    return QuantizedData([item.array for item in backend.read_all(x.parts)], x.scheme)


def read_all(backend: Any, primitives: Sequence[Primitive]) -> list[TensorData]:
    """Read several tensors together, some of which may be quantized."""
    parts = [
        primitive.parts if is_quantized(primitive) else [primitive] for primitive in primitives
    ]
    if not any(map(is_quantized, primitives)):
        return backend.read_all(primitives)  # type: ignore[no-any-return]  # of a backend
    data = iter(backend.read_all([part for item in parts for part in item]))
    return [
        QuantizedData([next(data).array for _ in own], primitive.scheme)
        if is_quantized(primitive)
        else next(data)
        for primitive, own in zip(primitives, parts, strict=True)
    ]
