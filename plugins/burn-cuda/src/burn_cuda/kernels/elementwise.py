"""Sources of elementwise kernels, for dense and for strided operands."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

from burn.plugin_api import DType
from burn_cuda.kernels import c_type, computed_type, shared

__all__ = ["NARROW_LIMIT", "RANKS", "Program", "dense_source", "strided_source"]

RANKS: Final = (1, 2, 3, 4, 6, 8, 16, 32, 64)
"""Numbers of axes that kernels for strided operands are compiled for; shapes are padded to them."""

NARROW_LIMIT: Final = 1 << 31
"""From this number of elements on, kernels use 64-bit indices."""

_VECTOR_BYTES: Final = 16
"""Bytes of one access to memory."""


@dataclass(frozen=True, eq=False)
class Program:
    """What an elementwise kernel computes. Kernels are cached by the identity of the program.

    Attributes
    ----------
    body : str
        C++ statements that set ``r0``, ``r1``, ... from ``x0``, ``x1``, ... ``T`` is the type of
        the elements of the first operand that is not bool, ``C`` that in which they are computed.
    inputs : tuple of DType
        The dtype of each operand.
    scalars : tuple of bool
        Which operands are Python numbers.
    outputs : tuple of DType
        The dtype of each result.
    parameters : tuple of str
        Names of attributes, each a double.
    functions : str
        Functions that the body calls.
    """

    body: str
    inputs: tuple[DType, ...]
    scalars: tuple[bool, ...]
    outputs: tuple[DType, ...]
    parameters: tuple[str, ...] = ()
    functions: str = ""

    @functools.cached_property
    def elements(self) -> int:
        """Elements that a thread computes where all operands are dense."""
        sizes = [dtype.itemsize for dtype in self.outputs]
        sizes += [
            dtype.itemsize
            for dtype, scalar in zip(self.inputs, self.scalars, strict=True)
            if not scalar
        ]
        return min(_VECTOR_BYTES // max(sizes), 8)


def _leading(program: Program) -> DType:
    """The dtype whose types are `C` and `T`."""
    others = [dtype for dtype in program.inputs if not dtype.is_bool]
    return (others or list(program.inputs) or list(program.outputs))[0]


def _scalar_type(dtype: DType) -> str:
    if dtype.is_complex:
        return "complex128"
    return "double" if dtype.is_float else "long long"


def _shared(program: Program) -> str:
    return shared(
        has_complex=any(source.is_complex for source in (*program.inputs, *program.outputs))
    )


def _parts(program: Program) -> tuple[str, list[str], list[str]]:
    """The function of one element; operands and results as parameters of a kernel."""
    leading = _leading(program)
    takes = [f"{computed_type(dtype)} x{i}" for i, dtype in enumerate(program.inputs)]
    gives = [f"{computed_type(dtype)}& r{i}" for i, dtype in enumerate(program.outputs)]
    numbers = [f"C {name}" for name in program.parameters]
    function = (
        f"typedef {c_type(leading)} T;\ntypedef {computed_type(leading)} C;\n{program.functions}\n"
        f"__device__ __forceinline__ void apply({', '.join(takes + numbers + gives)}) {{\n"
        f"    {program.body}\n}}\n"
    )
    operands = [
        f"{_scalar_type(dtype)} s{i}" if scalar else f"const {c_type(dtype)}* __restrict__ p{i}"
        for i, (dtype, scalar) in enumerate(zip(program.inputs, program.scalars, strict=True))
    ]
    operands += [f"double {name}_" for name in program.parameters]
    results = [f"{c_type(dtype)}* __restrict__ o{i}" for i, dtype in enumerate(program.outputs)]
    return function, operands, results


def _constants(program: Program) -> str:
    """Statements that convert numbers to the dtype of their operand."""
    lines = [
        f"const {computed_type(dtype)} x{i} = load(convert<{c_type(dtype)}>(s{i}));"
        for i, (dtype, scalar) in enumerate(zip(program.inputs, program.scalars, strict=True))
        if scalar
    ]
    lines += [f"const C {name} = (C){name}_;" for name in program.parameters]
    return "\n    ".join(lines)


def _call(program: Program, loads: list[str], stores: list[str]) -> str:
    """One call of the function, from expressions for the operands and for the results."""
    names = [f"x{i}" if scalar else loads[i] for i, scalar in enumerate(program.scalars)]
    results = [f"{computed_type(dtype)} r{i};" for i, dtype in enumerate(program.outputs)]
    names += list(program.parameters) + [f"r{i}" for i in range(len(program.outputs))]
    writes = [
        f"{store} = convert<{c_type(dtype)}>(r{i});"
        for i, (dtype, store) in enumerate(zip(program.outputs, stores, strict=True))
    ]
    return f"{' '.join(results)} apply({', '.join(names)}); {' '.join(writes)}"


def dense_source(program: Program) -> str:
    """Kernel ``dense(operands, parameters, results, n)`` of dense operands of one shape."""
    function, operands, results = _parts(program)
    count = program.elements
    tensors = [i for i, scalar in enumerate(program.scalars) if not scalar]
    addresses = [f"(unsigned long long)p{i}" for i in tensors]
    addresses += [f"(unsigned long long)o{i}" for i in range(len(program.outputs))]
    packs = [
        f"const Pack<{c_type(program.inputs[i])}, {count}> v{i} = "
        f"*reinterpret_cast<const Pack<{c_type(program.inputs[i])}, {count}>*>(p{i} + first);"
        for i in tensors
    ]
    packs += [f"Pack<{c_type(dtype)}, {count}> w{i};" for i, dtype in enumerate(program.outputs)]
    writes = [
        f"*reinterpret_cast<Pack<{c_type(dtype)}, {count}>*>(o{i} + first) = w{i};"
        for i, dtype in enumerate(program.outputs)
    ]
    packed = _call(
        program,
        [f"load(v{i}.values[j])" for i in range(len(program.inputs))],
        [f"w{i}.values[j]" for i in range(len(program.outputs))],
    )
    single = _call(
        program,
        [f"load(p{i}[i])" for i in range(len(program.inputs))],
        [f"o{i}[i]" for i in range(len(program.outputs))],
    )
    newline = "\n        "
    return (
        _shared(program)
        + f"""
{function}
extern "C" __global__ void dense({", ".join(operands + results)}, long long n) {{
    {_constants(program)}
    const long long first = ((long long)blockIdx.x * blockDim.x + threadIdx.x) * {count};
    const bool aligned = (({" | ".join(addresses)}) & 15) == 0;
    if (aligned && first + {count} <= n) {{
        {newline.join(packs)}
#pragma unroll
        for (int j = 0; j < {count}; ++j) {{ {packed} }}
        {newline.join(writes)}
    }} else {{
        for (long long i = first; i < n && i < first + {count}; ++i) {{ {single} }}
    }}
}}
"""
    )


def strided_source(program: Program, rank: int, *, wide: bool, packs: bool) -> str:
    """Kernel ``strided(operands, parameters, results, layout, n)`` of operands with any strides.

    The layout has the lengths of the axes, their dividers (see `quotient` in ``common.cuh``), and
    the strides in elements of each tensor among the operands and the results.

    Parameters
    ----------
    program : Program
        The program.
    rank : int
        Number of axes in the layout.
    wide : bool
        Whether indices need 64 bits.
    packs : bool
        Whether the last length is a multiple of 4, so that a thread computes 4 adjacent elements.
    """
    function, operands, results = _parts(program)
    types = {f"p{i}": c_type(program.inputs[i]) for i in _tensors(program)}
    outputs = {f"o{i}": c_type(dtype) for i, dtype in enumerate(program.outputs)}
    tensors = [*types, *outputs]
    index_type = "unsigned long long" if wide else "unsigned int"
    starts = " ".join([f"long long offset_{name} = 0;" for name in tensors])
    steps = " ".join(
        [
            f"offset_{name} += (long long)index_d * layout.strides[{row}][d];"
            for row, name in enumerate(tensors)
        ]
    )
    quotient = "index / length" if wide else "quotient(index, layout.dividers[d])"
    if packs:
        last = {name: f"layout.strides[{row}][{rank - 1}]" for row, name in enumerate(tensors)}
        loads = [f"load(v_p{i}[j])" for i in range(len(program.inputs))]
        stores = [f"v_o{i}[j]" for i in range(len(program.outputs))]
        body = [
            f"{kind} v_{name}[4]; load_four(v_{name}, {name} + offset_{name}, {last[name]});"
            for name, kind in types.items()
        ]
        body += [f"{kind} v_{name}[4];" for name, kind in outputs.items()]
        call = _call(program, loads, stores)
        body += [f'_Pragma("unroll") for (int j = 0; j < 4; ++j) {{ {call} }}']
        body += [f"store_four({name} + offset_{name}, v_{name}, {last[name]});" for name in outputs]
    else:
        loads = [f"load(p{i}[offset_p{i}])" for i in range(len(program.inputs))]
        stores = [f"o{i}[offset_o{i}]" for i in range(len(program.outputs))]
        body = [_call(program, loads, stores)]
    newline = "\n    "
    return (
        _shared(program)
        + f"""
{function}
struct Layout {{
    long long lengths[{rank}];
    unsigned long long dividers[{rank}];
    long long strides[{len(tensors)}][{rank}];
}};
extern "C" __global__ void strided(
    {", ".join(operands + results)}, const Layout layout, long long n) {{
    {_constants(program)}
    {index_type} index =
        {4 if packs else 1} * (({index_type})blockIdx.x * blockDim.x + threadIdx.x);
    if (index >= ({index_type})n) return;
    {starts}
#pragma unroll
    for (int d = {rank} - 1; d > 0; --d) {{
        const {index_type} length = ({index_type})layout.lengths[d];
        const {index_type} above = {quotient};
        const {index_type} index_d = index - above * length;
        index = above;
        {steps}
    }}
    {{
        const int d = 0;
        const {index_type} index_d = index;
        {steps}
    }}
    {newline.join(body)}
}}
"""
    )


def _tensors(program: Program) -> list[int]:
    """Indices of the operands that are tensors."""
    return [i for i, scalar in enumerate(program.scalars) if not scalar]
