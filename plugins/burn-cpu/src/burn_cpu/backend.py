"""CpuBackend: NumPy as a backend, with faster methods than those of the namespace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burn.plugin_api import REGISTRY, DeviceId, DType, GraphIr, Tag
from burn_cpu.arithmetic import ArithmeticOps, with_numbers
from burn_cpu.attention import AttentionOps
from burn_cpu.compilation import NativeRunner, compiled_program, native_runner
from burn_cpu.complex_functions import COMPLEX_FUNCTIONS, with_complex
from burn_cpu.convolution import ConvolutionOps
from burn_cpu.ctc import CtcOps
from burn_cpu.deformable import DeformableOps
from burn_cpu.indexing import IndexingOps
from burn_cpu.layout import LayoutOps
from burn_cpu.linear_algebra import LinearAlgebraOps
from burn_cpu.optimizer import OptimizerOps
from burn_cpu.pooling import PoolingOps
from burn_cpu.quantized_products import QuantizedProductOps
from burn_cpu.random import RandomOps
from burn_cpu.recurrent import RecurrentOps
from burn_cpu.reduction import ReductionOps
from burn_cpu.signal import SignalOps
from burn_cpu.writing import WritingOps

_WITH_NUMBERS = [
    name
    for name, definition in REGISTRY.items()
    if Tag.ELEMENTWISE in definition.tags
    and len(definition.operands) == 2
    and all(spec.scalar for spec in definition.operands.values())
]
"""Ops of two operands, either of which may be a Python number."""


class CpuBackend(
    LayoutOps,
    ArithmeticOps,
    ReductionOps,
    IndexingOps,
    LinearAlgebraOps,
    ConvolutionOps,
    DeformableOps,
    AttentionOps,
    CtcOps,
    OptimizerOps,
    PoolingOps,
    QuantizedProductOps,
    RandomOps,
    RecurrentOps,
    SignalOps,
    WritingOps,
):
    """The CPU through NumPy."""

    def __init__(self) -> None:
        super().__init__()
        for name in _WITH_NUMBERS:
            if hasattr(self, name):
                setattr(self, name, with_numbers(getattr(self, name)))
        for name, function in COMPLEX_FUNCTIONS.items():
            setattr(self, name, with_complex(getattr(self, name, getattr(np, name)), function))

    def __repr__(self) -> str:
        return "CpuBackend()"

    def name(self, device: DeviceId) -> str:
        """``cpu``."""
        del device
        return "cpu"

    def compile(self, graph: GraphIr, device: DeviceId) -> Callable[..., tuple[Any, ...]] | None:
        """Native code for generated kernels; None without llvmlite, or with BURN_CPU_JIT=0."""
        return compiled_program(graph, device, self)

    def kernel_runner(self, device: DeviceId) -> NativeRunner | None:
        """Native code of llvmlite; None where `compile` gives None."""
        del device
        return native_runner()

    def native_dtype(self, dtype: DType) -> object | None:
        """NumPy's dtypes, and bfloat16 of ml_dtypes."""
        return dtype.numpy

    def cast(self, x: Any, *, dtype: DType) -> Any:
        """`ndarray.astype`: the function `numpy.astype` warns from a module of its own."""
        source = self.dtype(x)
        if dtype.is_bool or (dtype.is_integer and source.is_float):
            return super().cast(x, dtype=dtype)
        return x if source is dtype else x.astype(dtype.numpy)
