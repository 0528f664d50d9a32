"""Launches of elementwise kernels: which variant for which layouts, with which parameters."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from burn.plugin_api import (
    DTYPE_CODES,
    SCALAR_CODE,
    WORD_CODES,
    DType,
    Scalar,
    Shape,
    c_type_of,
    scalar_bits,
    storage_bits,
)
from burn_opencl.buffers import Buffer, Layout, expanded_strides, row_major
from burn_opencl.elementwise_variants import (
    Variant,
    broadcast,
    collapsed,
    cpu_variant,
    gpu_variant,
    parameter_struct,
)
from burn_opencl.expressions import CASE_CODES, CASES, function_source
from burn_opencl.limits import MAX_KERNEL_AXES, SMALL_GROUP_ITEMS
from burn_opencl.programs import text_of

if TYPE_CHECKING:
    from burn_opencl.runtime import Runtime

__all__ = ["ElementwiseLauncher"]


class ElementwiseLauncher:
    """The elementwise part of a launcher."""

    runtime: Runtime
    min_specialized_elements: int
    empty: Callable[[Shape, DType], Buffer]
    kernel: Callable[[str, str, str, Mapping[str, str | int], str], Any]

    def apply(self, name: str, operands: Sequence[Buffer]) -> Buffer | None:
        """Apply an expression to tensors of one dtype; None where that takes several launches.

        The launch depends on the layouts of the operands alone and is cached: for a small
        operation the look-up takes less time than the planning.
        """
        ready = self._launch_for(
            name, self.min_specialized_elements, *[operand.layout for operand in operands]
        )
        if ready is None:
            return None
        plan, shape, dtype = ready
        out = self.empty(shape, dtype)
        memories = [operand.memory.handle for operand in operands]
        memories.append(out.memory.handle)
        self.runtime.launch(plan.kernel, plan.parameters, memories, plan.size, plan.group)
        return out

    @functools.lru_cache(maxsize=4096)  # noqa: B019 — a launcher lives as long as the process
    def _launch_for(
        self, name: str, min_specialized_elements: int, *layouts: Layout
    ) -> tuple[_Plan, Shape, DType] | None:
        """The launch, and the shape and dtype of the result."""
        dtype = layouts[0].dtype
        result = CASES[name].result(dtype)
        if result is None or any(layout.dtype is not dtype for layout in layouts):
            return None
        shape = broadcast([layout.shape for layout in layouts])
        size = math.prod(shape)
        if not size:
            return None
        strides = [expanded_strides(layout.shape, layout.strides, shape) for layout in layouts]
        plan = self._plan(
            name,
            c_type_of(dtype),
            (*[DTYPE_CODES[dtype.name]] * len(layouts), DTYPE_CODES[result.name]),
            (0,) * len(layouts),
            shape,
            (*strides, row_major(shape)),
            (*[layout.offset for layout in layouts], 0),
            is_specialized=size >= min_specialized_elements,
        )
        return None if plan is None else (plan, shape, result)

    def compute(
        self,
        name: str,
        operands: Sequence[Buffer | Scalar],
        dtype: DType,
        result: DType,
        scalar_dtype: DType | None = None,
    ) -> Buffer:
        """Apply an expression to operands of one dtype, some of which are numbers.

        Numbers are rounded to `scalar_dtype`, which is `dtype` if left out. A complex result of
        real operands is computed as one of complex ones.
        """
        out = self.empty(
            broadcast([operand.shape for operand in operands if isinstance(operand, Buffer)]),
            result,
        )
        code, rounding = DTYPE_CODES[dtype.name], scalar_dtype or dtype
        codes = [code if isinstance(operand, Buffer) else SCALAR_CODE for operand in operands]
        bits = [
            0 if isinstance(operand, Buffer) else scalar_bits(operand, rounding)
            for operand in operands
        ]
        c_type = c_type_of(result if result.is_complex else dtype)
        self._run(name, c_type, operands, codes, bits, out, DTYPE_CODES[result.name])
        return out

    def move(self, name: str, operands: Sequence[Buffer | Scalar], out: Buffer) -> None:
        """Write an expression that only moves elements, as words of their size.

        Bool operands beside operands of another dtype are conditions. Elements of complex128 are
        two words, so what is moved to them has to be tensors.
        """
        if out.dtype.itemsize not in WORD_CODES:
            pairs = [
                operand.expanded(out.shape) for operand in operands if isinstance(operand, Buffer)
            ]
            operands, out = [_as_words(pair) for pair in pairs], out.parts
        codes, bits = [], []
        for operand in operands:
            if isinstance(operand, Buffer):
                codes.append(WORD_CODES[operand.dtype.itemsize])
                bits.append(0)
            else:
                codes.append(SCALAR_CODE)
                bits.append(storage_bits(operand, out.dtype))
        self._run(name, "ulong", operands, codes, bits, out, WORD_CODES[out.dtype.itemsize])

    def _run(
        self,
        name: str,
        c_type: str,
        operands: Sequence[Any],
        codes: Sequence[int],
        bits: Sequence[int],
        out: Buffer,
        out_code: int,
    ) -> None:
        shape = out.shape
        if 0 in shape:
            return
        no_strides = (0,) * len(shape)
        views = [
            operand.expanded(shape) if isinstance(operand, Buffer) else None for operand in operands
        ]
        strides = tuple([no_strides if view is None else view.strides for view in views])
        offsets = tuple([0 if view is None else view.offset for view in views])
        plan = self._plan(
            name,
            c_type,
            (*codes, out_code),
            tuple(bits),
            shape,
            (*strides, out.strides),
            (*offsets, out.offset),
            is_specialized=math.prod(shape) >= self.min_specialized_elements,
        )
        if plan is None:
            # There are more axes than a kernel takes: a launch for each index of the first axis.
            for index in range(shape[0]):
                parts = [
                    operand if view is None else view.at(index)
                    for operand, view in zip(operands, views, strict=True)
                ]
                self._run(name, c_type, parts, codes, bits, out.at(index), out_code)
            return
        own = out.memory.handle
        memories = [own if view is None else view.memory.handle for view in views]
        memories.append(own)
        self.runtime.launch(plan.kernel, plan.parameters, memories, plan.size, plan.group)

    @functools.lru_cache(maxsize=4096)  # noqa: B019 — a launcher lives as long as the process
    def _plan(
        self,
        name: str,
        c_type: str,
        codes: tuple[int, ...],
        bits: tuple[int, ...],
        shape: Shape,
        strides: tuple[tuple[int, ...], ...],
        offsets: tuple[int, ...],
        *,
        is_specialized: bool,
    ) -> _Plan | None:
        """The launch for operands with these layouts; None for too many axes."""
        n = math.prod(shape)
        lengths, strides = collapsed(shape, strides)
        if not lengths:  # one element
            lengths, strides = (1,), ((0,),) * len(strides)
        if len(lengths) > MAX_KERNEL_AXES:
            return None
        variant = Variant(n, SMALL_GROUP_ITEMS, {}, lengths, strides)
        definitions: dict[str, str | int] = {}
        if is_specialized:
            if self.runtime.is_cpu:
                variant = cpu_variant(codes, lengths, strides)
            else:
                variant = gpu_variant(codes, lengths, strides, offsets)
            definitions = {"OP": CASE_CODES[name], **variant.definitions}
        count, group = len(bits), variant.group
        kernel = self._kernel(c_type, count, CASES[name].group, group, **definitions)
        parameters = parameter_struct(count).pack(
            n,
            *_padded(variant.lengths),
            *[stride for row in variant.strides for stride in _padded(row)],
            *offsets,
            *bits,
            *codes,
            len(variant.lengths),
            CASE_CODES[name],
        )
        return _Plan(kernel, parameters, (-(-variant.items // group) * group,), (group,))

    @functools.cache  # noqa: B019 — a launcher lives as long as the process
    def _kernel(
        self, c_type: str, count: int, expressions: str, group: int, **definitions: str | int
    ) -> Any:
        """The kernel of a group of expressions."""
        operands = range(count)
        macros: dict[str, str | int] = {
            "OPERANDS": count,
            "GROUP_SIZE": group,
            "MEMORIES": ", ".join([f"GLOBAL const void* restrict p{k}" for k in operands]),
            "VALUES": ", ".join([f"VALUE({k})" for k in operands]),
        }
        source = function_source(c_type, count, expressions, is_cpu=self.runtime.is_cpu)
        if "LOAD_VEC4S" in definitions:
            source += text_of("vec4.cl")
        return self.kernel("elementwise", "elementwise.cl", c_type, macros | definitions, source)


class _Plan(NamedTuple):
    """A launch, apart from the memory of its operands."""

    kernel: Any
    parameters: bytes
    size: tuple[int, ...]
    group: tuple[int, ...]


@functools.lru_cache(maxsize=4096)
def _padded(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return numbers + (0,) * (MAX_KERNEL_AXES - len(numbers))


def _as_words(x: Buffer) -> Buffer:
    """The two parts of complex numbers, or a condition twice, along a last axis."""
    return x.parts if x.dtype.is_complex else x.viewed((*x.shape, 2), (*x.strides, 0))
