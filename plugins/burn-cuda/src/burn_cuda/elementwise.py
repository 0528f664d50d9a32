"""Elementwise ops: one kernel and one launch each."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.plugin_api import REGISTRY, DType, Scalar, bool_
from burn_cuda import array
from burn_cuda.base import Array, CudaOps
from burn_cuda.expressions import EXPRESSIONS
from burn_cuda.kernels import THREADS, computed_type
from burn_cuda.kernels.elementwise import Program
from burn_cuda.launcher import LaunchCache, Packed, packed

if TYPE_CHECKING:
    from burn_cuda.launcher import Launcher
    from burn_cuda.runtime import Runtime

__all__ = ["ElementwiseOps", "number_for"]


_Array: Final = array.Array
_NUMBERS: Final = frozenset([bool, int, float, complex])
_SIGN_BIT: Final = 1 << 63


def number_for(value: Scalar, dtype: DType) -> float | int | Packed:
    """A Python number as the argument of a kernel that converts it to a dtype."""
    if dtype.is_complex:
        return packed(np.array([value], np.complex128).view(np.float64))
    real: Any = value  # a real dtype meets no complex number
    if dtype.is_float:
        return float(real)
    whole = int(real)
    return whole - 2 * _SIGN_BIT if whole >= _SIGN_BIT else whole


class _Function:
    """An elementwise op of one device.

    The common case, dense operands of one shape, is checked first.
    """

    def __init__(self, launcher: Launcher, name: str) -> None:
        self.launcher = launcher
        self.expression = EXPRESSIONS[name]
        self.name = name
        self._programs: dict[Any, Program] = {}
        self._launches = LaunchCache()
        self._with_numbers: dict[Any, Any] = {}

    def program(self, dtype: DType, scalars: tuple[bool, ...]) -> Program:
        """The program for operands of a dtype."""
        key = (dtype, scalars)
        found = self._programs.get(key)
        if found is None:
            found = self.expression.program(dtype, scalars)
            self._programs[key] = found
        return found

    def with_number(self, x: Array, number: float) -> Array:
        """A dense operand and a float."""
        known = self._with_numbers.get(x.dtype)
        if known is None:
            dtype = self.launcher.dtypes[x.dtype]
            if not dtype.is_float:
                return self.general(x, number)
            known = self._with_numbers[x.dtype] = _prepared(self, dtype, (False, True))
        kernel, native, step = known
        result = self.launcher.empty(x.shape, native)
        size = x.size
        if size:
            kernel.launch(-(-size // step), x.address, number, result.address, size)
        return result

    def broadcasting(self, x1: Array, x2: Array) -> Array:
        """Two operands of one dtype with any shapes and layouts."""
        key = (x1.dtype, x1.shape, x1.strides, x2.shape, x2.strides)
        try:
            kernel, dtype, shape, blocks, rest = self._launches[key]
        except KeyError:
            program = self.program(self.launcher.dtypes[x1.dtype], (False, False))
            prepared = self.launcher.prepared(program, (x1, x2))
            if prepared is None:
                return self.general(x1, x2)
            kernel, dtype, shape, blocks, rest = prepared
            self._launches.store(key, prepared)
        result = self.launcher.empty(shape, dtype)
        kernel.launch(blocks, x1.address, x2.address, result.address, *rest)
        return result

    def general(self, *operands: Any, parameters: tuple[float, ...] = ()) -> Array:
        """Any operands, which may be numbers and may broadcast."""
        launcher = self.launcher
        scalars = tuple([operand.__class__ in _NUMBERS for operand in operands])
        dtypes = {
            operand.dtype for operand, scalar in zip(operands, scalars, strict=True) if not scalar
        }
        if len(dtypes) != 1:
            raise TypeError(f"{self.name} of operands of {len(dtypes)} dtypes")
        dtype = launcher.dtypes[dtypes.pop()]
        if True in scalars:
            operands = tuple(
                [
                    number_for(operand, dtype) if scalar else operand
                    for operand, scalar in zip(operands, scalars, strict=True)
                ]
            )
        program = self.program(dtype, scalars)
        return launcher.elementwise(program, operands, parameters)[0]


def _unary(function: _Function) -> Callable[[Array], Array]:
    """An op of one operand."""
    launcher = function.launcher
    empty = launcher.empty
    ready: dict[Any, Any] = {}

    def call(x: Array) -> Array:
        known = ready.get(x.dtype)
        if known is None or not x.is_dense:
            if known is None and x.dtype in launcher.dtypes and x.is_dense:
                ready[x.dtype] = _prepared(function, launcher.dtypes[x.dtype], (False,))
            return function.general(x)
        kernel, dtype, step = known
        result = empty(x.shape, dtype)
        size = x.size
        if size:
            kernel.launch(-(-size // step), x.address, result.address, size)
        return result

    return call


def _prepared(function: _Function, dtype: DType, scalars: tuple[bool, ...]) -> tuple[Any, Any, int]:
    """Kernel for dense operands, dtype of the result, and elements of a block."""
    program = function.program(dtype, scalars)
    kernel = function.launcher.dense_kernel(program)
    return kernel, program.outputs[0].numpy, THREADS * program.elements


def _binary(function: _Function) -> Callable[[Any, Any], Array]:
    """An op of two operands, one of which may be a number."""
    launcher = function.launcher
    empty = launcher.empty
    tensors: dict[Any, Any] = {}

    def call(x1: Any, x2: Any) -> Array:
        if x2.__class__ is _Array and x1.__class__ is _Array:
            dtype = x1.dtype
            if x2.dtype is dtype:
                known = tensors.get(dtype)
                if known is not None:
                    shape = x1.shape
                    if x2.shape == shape and x1.is_dense and x2.is_dense:
                        kernel, native, step = known
                        result = empty(shape, native)
                        size = x1.size
                        if size:
                            words = (x1.address, x2.address, result.address, size)
                            kernel.launch(-(-size // step), *words)
                        return result
                    return function.broadcasting(x1, x2)
                if dtype in launcher.dtypes:
                    if x2.shape != x1.shape or not (x1.is_dense and x2.is_dense):
                        return function.broadcasting(x1, x2)
                    tensors[dtype] = _prepared(function, launcher.dtypes[dtype], (False, False))
        elif x2.__class__ is float and x1.__class__ is _Array and x1.is_dense:
            return function.with_number(x1, x2)
        return function.general(x1, x2)

    return call


class ElementwiseOps(CudaOps):
    """Elementwise ops: those of `EXPRESSIONS` as attributes, the others as methods."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._functions = {name: _Function(self.launcher, name) for name in EXPRESSIONS}
        for name in {expression.op for expression in EXPRESSIONS.values()} - vars(
            ElementwiseOps
        ).keys():
            op = REGISTRY[name]
            if op.attributes:
                setattr(self, name, self._with_attributes(name))
                continue
            function = self._functions[name]
            kinds = {1: _unary, 2: _binary}
            make = kinds.get(len(op.operands))
            setattr(self, name, function.general if make is None else make(function))

    def _with_attributes(self, name: str) -> Callable[..., Array]:
        """An op with attributes: numbers are parameters, and a choice is another function."""
        functions = self._functions
        attributes = [
            (attribute.name, attribute.default, bool(attribute.choices))
            for attribute in REGISTRY[name].attributes.values()
        ]

        def call(*operands: Any, **given: Any) -> Array:
            values, key = [], name
            for attribute, default, is_choice in attributes:
                value: Any = given.get(attribute, default)
                if is_choice:
                    key = f"{name}.{value}"
                else:
                    values.append(float(value))
            return functions[key].general(*operands, parameters=tuple(values))

        return call

    def cast(self, x: Array, *, dtype: DType) -> Array:
        """One kernel; the array itself where it has the dtype."""
        source = self.launcher.dtypes[x.dtype]
        if source is dtype:
            return x
        return self.launcher.elementwise(_cast_program(source, dtype), (x,))[0]

    def where(self, condition: Array, x1: Any, x2: Any) -> Array:
        """One kernel, which loads both values."""
        launcher = self.launcher
        values = (x1, x2)
        scalars = tuple([value.__class__ in _NUMBERS for value in values])
        dtypes = {value.dtype for value, scalar in zip(values, scalars, strict=True) if not scalar}
        if len(dtypes) != 1 or launcher.dtypes[condition.dtype] is not bool_:
            raise TypeError("a choice between operands of two dtypes, or between numbers")
        dtype = launcher.dtypes[dtypes.pop()]
        program = _choice_program(dtype, scalars)
        operands = [
            number_for(value, dtype) if scalar else value
            for value, scalar in zip(values, scalars, strict=True)
        ]
        return launcher.elementwise(program, (condition, *operands))[0]


@functools.cache
def _cast_program(source: DType, dtype: DType) -> Program:
    return Program(f"r0 = convert<{computed_type(dtype)}>(x0);", (source,), (False,), (dtype,))


@functools.cache
def _choice_program(dtype: DType, scalars: tuple[bool, ...]) -> Program:
    return Program("r0 = x0 ? x1 : x2;", (bool_, dtype, dtype), (False, *scalars), (dtype,))
