"""The dialect of generated kernels: CUDA C++."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, TypeAlias

from burn.plugin_api import (
    Code,
    CWriter,
    DType,
    Kernel,
    StepCode,
    StepFormula,
    collapsed,
    needs_wide_indices,
    step_code,
    write_groups,
)
from burn_cuda.kernels import C_TYPES, THREADS, text

__all__ = ["HIP_OPTIONS", "CudaWriter", "HipWriter", "code_of", "code_of_launch", "code_of_step"]

Checks: TypeAlias = Mapping[int, tuple[int, int]]

_LANES: Final = 256
"""Lanes of a group that computes items."""

_ROW_LANES: Final = 512
"""Lanes of a group that computes rows, at most."""

HIP_OPTIONS: Final = ("-std=c++17", "-ffp-contract=off")
"""Options of AMD's compilers, which otherwise make fused multiply-adds of products and sums."""

_BITS: Final = "unsigned short"


class CudaWriter(CWriter):
    """CUDA C++. The numbers of a launch are in memory, so that a captured one reads them anew."""

    types: ClassVar = {**C_TYPES, "bool": "unsigned char", "float16": _BITS, "bfloat16": _BITS}
    as_bits = "float_as_bits({0})"
    as_float = "bits_as_float({0})"
    from_half = "half_as_float({0})"
    to_half = "float_as_half({0})"
    preamble = text("generated.cuh")
    fused = "fused({0}, {1}, {2})"
    function = "__device__ __forceinline__"
    entry = 'extern "C" __global__'
    restrict = "__restrict__"
    aligned = "__align__({0})"
    group = "blockIdx.x"
    lane = "threadIdx.x"
    shared = "__shared__"
    fence = "__syncthreads();"

    def __init__(self, kernel: Kernel, checks: Checks, *, wide: bool) -> None:
        super().__init__(kernel, wide=wide)
        self.checks = checks

    def store(self, output: int, index: str, value: str, dtype: DType) -> None:
        """Write an element; an index out of range goes to the flag that the host reads."""
        if output in self.checks:
            self._report(output, value)
        else:
            super().store(output, index, value, dtype)

    def store_vector(self, output: int, index: str, array: Any, count: int) -> None:
        """Write neighbours."""
        if output in self.checks:
            for number in range(count):
                self._report(output, f"{array.name}[{number}]")
        else:
            super().store_vector(output, index, array, count)

    def _report(self, output: int, value: str) -> None:
        op, length = self.checks[output]
        flag = f"q{output}"
        self.line(f"if ({value} != 0) {{")
        self.line(f"    {flag}[1] = {value}; {flag}[2] = {length}; {flag}[0] = {op};")
        self.line("}")

    def argument(self, number: int) -> str:
        """An element of the parameter ``numbers``."""
        is_integer = self.kernel.scalars[number] is int
        return f"((const long long*)numbers)[{number}]" if is_integer else f"numbers[{number}]"

    def scalar_parameters(self) -> list[str]:
        """Doubles, or integers of 64 bits."""
        return ["const double* __restrict__ numbers"] if self.kernel.scalars else []

    def exchanged(self, value: str, distance: int, dtype: DType) -> str:
        """A shuffle of the warp."""
        return self.constant(
            f"({self.type_of(dtype)})__shfl_xor_sync(0xffffffffu, {self.shuffled(value, dtype)}, "
            f"{distance})",
            dtype,
            pure=False,
        )

    def shuffled(self, value: str, dtype: DType) -> str:
        """A value of a type that shuffles take."""
        return f"(int){value}" if dtype.itemsize < 4 and not dtype.is_float else value

    def _rounded(self, value: str, dtype: DType) -> str:
        if dtype.name == "bfloat16":
            bits = f"(unsigned int)float_as_bfloat({value}) << 16"
            return self.constant(f"bits_as_float({bits})", dtype)
        return super()._rounded(value, dtype)

    def _stored(self, value: str, dtype: DType) -> str:
        if dtype.name == "bfloat16":
            return f"float_as_bfloat({value})"
        return super()._stored(value, dtype)


class HipWriter(CudaWriter):
    """HIP, the C++ of AMD's GPUs, whose words are those of CUDA."""

    def exchanged(self, value: str, distance: int, dtype: DType) -> str:
        """A shuffle, which has no mask of lanes."""
        text = f"({self.type_of(dtype)})__shfl_xor({self.shuffled(value, dtype)}, {distance})"
        return self.constant(text, dtype, pure=False)


def code_of(
    kernel: Kernel, checks: Checks, name: str, writer: type[CudaWriter] = CudaWriter
) -> Code:
    """The text of a kernel, and its launch.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    checks : dict
        The outputs that say whether indices are in range, with the number of the op and the length
        of the axis: instead of them the kernel gets the address of the flag.
    name : str
        Name of the kernel.
    writer : type
        The language.
    """
    lanes = _ROW_LANES if kernel.rows < len(kernel.space) else _LANES
    small = collapsed(kernel)
    written = writer(small, checks, wide=needs_wide_indices(small))
    groups, lanes = write_groups(written, small, lanes)
    source = written.text(f"__launch_bounds__({lanes}) {name}", lanes)
    return Code(kernel, source, name, groups, lanes)


class _LaunchWriter(CudaWriter):
    """Numbers are arguments of the launch, or in a table that is one."""

    argument = CWriter.argument
    scalar_parameters = CWriter.scalar_parameters


def code_of_launch(kernel: Kernel) -> Code:
    """The text of the kernel of one op, whose numbers are arguments of its launch."""
    return code_of(kernel, {}, "generated", _LaunchWriter)


def code_of_step(formula: StepFormula, dtype: DType, capacity: int) -> StepCode:
    """The text of a step of an optimizer for so many parameters."""
    return step_code(
        lambda kernel: _LaunchWriter(kernel, {}, wide=True),
        formula,
        dtype,
        capacity,
        THREADS,
        has_doubles=True,
    )
