"""CpuBackend: the array API backend over NumPy, with what NumPy can do better."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.backend import ArrayBackend
from burn.dtype import DTypeUsage
from burn.ops import REGISTRY, Tag
from burn_cpu.activation import ActivationOps
from burn_cpu.arithmetic import ArithmeticOps, with_numbers
from burn_cpu.attention import AttentionOps
from burn_cpu.complex_functions import COMPLEX_FUNCTIONS, with_complex
from burn_cpu.convolution import ConvolutionOps
from burn_cpu.ctc import CtcOps
from burn_cpu.deformable import DeformableOps
from burn_cpu.dense import DenseOps
from burn_cpu.indexing import IndexingOps
from burn_cpu.layout import LayoutOps
from burn_cpu.linear_algebra import LinearAlgebraOps
from burn_cpu.loss import LossOps
from burn_cpu.normalization import NormalizationOps
from burn_cpu.optimizer import OptimizerOps
from burn_cpu.plugin import USAGE
from burn_cpu.pooling import PoolingOps
from burn_cpu.random import RandomOps
from burn_cpu.reduction import ReductionOps
from burn_cpu.signal import SignalOps
from burn_cpu.softmax import SoftmaxOps
from burn_cpu.writing import WritingOps

if TYPE_CHECKING:
    from burn.device_id import DeviceId
    from burn.dtype import DType

_WITH_NUMBERS = [
    name
    for name, definition in REGISTRY.items()
    if Tag.ELEMENTWISE in definition.tags
    and len(definition.operands) == 2
    and all(spec.scalar for spec in definition.operands.values())
]
"""Ops of two operands of which one may be a Python number."""


class CpuBackend(
    LayoutOps,
    ArithmeticOps,
    ReductionOps,
    IndexingOps,
    LinearAlgebraOps,
    DenseOps,
    ActivationOps,
    ConvolutionOps,
    DeformableOps,
    SoftmaxOps,
    NormalizationOps,
    AttentionOps,
    LossOps,
    CtcOps,
    OptimizerOps,
    PoolingOps,
    RandomOps,
    SignalOps,
    WritingOps,
    ArrayBackend,
):
    """The CPU through NumPy."""

    orders_booleans = True

    def __init__(self) -> None:
        super().__init__(np)
        for name in _WITH_NUMBERS:
            setattr(self, name, with_numbers(getattr(self, name)))
        for name, function in COMPLEX_FUNCTIONS.items():
            setattr(self, name, with_complex(getattr(self, name, getattr(np, name)), function))

    def __repr__(self) -> str:
        return "CpuBackend()"

    def name(self, device: DeviceId) -> str:
        """``cpu``."""
        del device
        return "cpu"

    def native_dtype(self, dtype: DType) -> object | None:
        """NumPy's dtypes, and bfloat16 of ml_dtypes."""
        return dtype.numpy if dtype in USAGE else None

    def dtype_usage(self, device: DeviceId, dtype: DType) -> DTypeUsage:
        """NumPy computes with every dtype."""
        del device
        return USAGE.get(dtype, DTypeUsage.NONE)

    def device_count(self, type_id: int) -> int:
        """One device of the one type."""
        return 1 if type_id == 0 else 0

    def cast(self, x: Any, *, dtype: DType) -> Any:
        """The method of arrays: NumPy's function `astype` warns from a module of its own."""
        source = self.dtype(x)
        if dtype.is_bool or (dtype.is_integer and source.is_float):
            return super().cast(x, dtype=dtype)
        return x if source is dtype else x.astype(dtype.numpy)

    def sync(self, device: DeviceId) -> None:
        """Nothing to wait for: NumPy is done when it returns."""
        del device

    def quiet(self) -> contextlib.AbstractContextManager[Any]:
        """NumPy neither warns nor raises about float results."""
        return np.errstate(all="ignore")
