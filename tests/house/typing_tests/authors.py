"""What the author of a backend writes, with the types of the plugin API."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn.plugin_api import (
    REGISTRY,
    ArrayBackend,
    Backend,
    BackendSpec,
    DeviceId,
    DeviceInfo,
    DType,
    Meta,
    Primitive,
    RealScalar,
    Scalar,
    Shape,
    Slices,
    TensorData,
)


class TypedBackend(ArrayBackend):
    def __init__(self) -> None:
        super().__init__(np)

    def name(self, device: DeviceId) -> str:
        return "typed"

    def from_data(self, data: TensorData, device: DeviceId) -> Primitive:
        return np.array(data.array)

    def full(
        self, *, shape: Shape, fill_value: Scalar, dtype: DType, device: DeviceId
    ) -> Primitive:
        return np.full(shape, fill_value, dtype.numpy)

    def arange(
        self, *, start: RealScalar, step: RealScalar, length: int, dtype: DType, device: DeviceId
    ) -> Primitive:
        return (np.arange(length) * step + start).astype(dtype.numpy)

    def slice(self, x: Primitive, *, slices: Slices) -> Primitive:
        REGISTRY["slice"].infer(Meta(x.shape, self.dtype(x)), slices=slices)
        return super().slice(x, slices=slices)

    def add(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        return np.add(x1, x2)

    def softmax(self, x: Primitive, *, axis: int) -> Primitive:
        result: Any = self.ops.decomposed("softmax", x, axis=axis)
        return result


def _load() -> Backend:
    return TypedBackend()  # type: ignore[abstract]  # __init__ sets the ops of the namespace


SPEC = BackendSpec(
    name="typed",
    load=_load,
    probe=lambda: [DeviceInfo("gpu", 0, hardware="none")],
    device_types=("gpu", "cpu"),
    priority={"gpu": 10},
    libraries=("numpy",),
)
