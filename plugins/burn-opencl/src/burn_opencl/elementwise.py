"""Elementwise ops: an expression each, in kernels for all layouts."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from burn.plugin_api import DType, bool_
from burn_opencl.base import OpenClOps
from burn_opencl.buffers import Buffer
from burn_opencl.dtypes import DTYPE_CODES, accumulator_dtype, c_type_of
from burn_opencl.elementwise_variants import broadcast
from burn_opencl.expressions import EXPRESSIONS
from burn_opencl.limits import SMALL_GROUP_ITEMS

if TYPE_CHECKING:
    from burn.plugin_api import Scalar

__all__ = ["ElementwiseOps"]

_REFUSE_NEGATIVE_INTEGERS: Final = frozenset({"pow", "bitwise_left_shift", "bitwise_right_shift"})
"""Ops that refuse a negative Python number on the right of an integer tensor."""


def _expression_method(name: str) -> Callable[..., Buffer]:
    """The method of an op that is an expression of its operands."""
    expression = EXPRESSIONS[name]

    def method(self: ElementwiseOps, *operands: Any) -> Buffer:
        launcher = self.launcher
        if all(one.__class__ is Buffer for one in operands):
            result = launcher.apply(name, operands)
            if result is not None:
                return result
        dtype = _common_dtype(operands)
        if expression.form(dtype.kind) is None:
            raise TypeError(f"{name} of {dtype}")
        return launcher.compute(name, operands, dtype, bool_ if expression.mask else dtype)

    method.__name__ = name
    method.__qualname__ = f"ElementwiseOps.{name}"
    method.__doc__ = f"``{expression.forms[0][1]}`` in one kernel."
    return _refusing_negative_integers(method) if name in _REFUSE_NEGATIVE_INTEGERS else method


def _refusing_negative_integers(method: Callable[..., Buffer]) -> Callable[..., Buffer]:
    """Refuse a negative Python number on the right of an integer tensor."""

    def checked(self: ElementwiseOps, x1: Buffer | Scalar, x2: Buffer | Scalar) -> Buffer:
        if isinstance(x2, int) and x2 < 0 and isinstance(x1, Buffer) and x1.dtype.is_integer:
            raise ValueError(f"{method.__name__} by {x2}")
        return method(self, x1, x2)

    return functools.wraps(method)(checked)


def _common_dtype(operands: tuple[Any, ...]) -> DType:
    """The dtype of the tensors among operands, which must have one in common."""
    dtypes = {one.dtype for one in operands if isinstance(one, Buffer)}
    if len(dtypes) != 1:
        raise TypeError(f"operands of {len(dtypes)} dtypes")
    dtype: DType = dtypes.pop()
    return dtype


class ElementwiseOps(OpenClOps):
    """Elementwise ops; the first ones are expressions of their operands."""

    add = _expression_method("add")
    subtract = _expression_method("subtract")
    multiply = _expression_method("multiply")
    divide = _expression_method("divide")
    floor_divide = _expression_method("floor_divide")
    remainder = _expression_method("remainder")
    fmod = _expression_method("fmod")
    pow = _expression_method("pow")
    maximum = _expression_method("maximum")
    minimum = _expression_method("minimum")
    clip = _expression_method("clip")
    negative = _expression_method("negative")
    abs = _expression_method("abs")
    sign = _expression_method("sign")
    square = _expression_method("square")
    reciprocal = _expression_method("reciprocal")
    equal = _expression_method("equal")
    not_equal = _expression_method("not_equal")
    less = _expression_method("less")
    less_equal = _expression_method("less_equal")
    greater = _expression_method("greater")
    greater_equal = _expression_method("greater_equal")
    isnan = _expression_method("isnan")
    isinf = _expression_method("isinf")
    isfinite = _expression_method("isfinite")
    signbit = _expression_method("signbit")
    bitwise_and = _expression_method("bitwise_and")
    bitwise_or = _expression_method("bitwise_or")
    bitwise_xor = _expression_method("bitwise_xor")
    bitwise_left_shift = _expression_method("bitwise_left_shift")
    bitwise_right_shift = _expression_method("bitwise_right_shift")
    copysign = _expression_method("copysign")
    sqrt = _expression_method("sqrt")
    floor = _expression_method("floor")
    ceil = _expression_method("ceil")
    trunc = _expression_method("trunc")
    round = _expression_method("round")
    relu = _expression_method("relu")
    relu_grad = _expression_method("relu_grad")
    prelu = _expression_method("prelu")
    hard_swish = _expression_method("hard_swish")
    softsign = _expression_method("softsign")
    exp = _expression_method("exp")
    expm1 = _expression_method("expm1")
    log = _expression_method("log")
    log1p = _expression_method("log1p")
    log2 = _expression_method("log2")
    log10 = _expression_method("log10")
    sin = _expression_method("sin")
    cos = _expression_method("cos")
    tan = _expression_method("tan")
    tanh = _expression_method("tanh")
    sinh = _expression_method("sinh")
    cosh = _expression_method("cosh")
    asin = _expression_method("asin")
    acos = _expression_method("acos")
    atan = _expression_method("atan")
    asinh = _expression_method("asinh")
    acosh = _expression_method("acosh")
    atanh = _expression_method("atanh")
    erf = _expression_method("erf")
    atan2 = _expression_method("atan2")
    hypot = _expression_method("hypot")
    logaddexp = _expression_method("logaddexp")
    sigmoid = _expression_method("sigmoid")
    log_sigmoid = _expression_method("log_sigmoid")
    silu = _expression_method("silu")
    mish = _expression_method("mish")
    tanhshrink = _expression_method("tanhshrink")

    def cast(self, x: Buffer, *, dtype: DType) -> Buffer:
        """Convert in one kernel; return `x` itself where it has the dtype."""
        if x.dtype is dtype:
            return x
        launcher = self.launcher
        x = launcher.dense(x)
        out = launcher.empty(x.shape, dtype)
        source, target = DTYPE_CODES[x.dtype.name], DTYPE_CODES[dtype.name]
        group = SMALL_GROUP_ITEMS
        definitions: dict[str, str | int] = {
            "S": c_type_of(x.dtype),
            "FROM_FLOATING": int(x.dtype.is_float),
        }
        if launcher.is_specialized(x.size):
            group = launcher.specialized_group_items
            definitions |= {"SOURCE": source, "TARGET": target}
        definitions["GROUP_SIZE"] = group
        kernel = launcher.kernel("cast", "cast.cl", c_type_of(dtype), definitions)
        parameters = (x.size, x.offset, source, target)
        launcher.run(kernel, x.size, parameters, (x.memory, out.memory), group)
        return out

    def where(self, condition: Buffer, x1: Buffer | Scalar, x2: Buffer | Scalar) -> Buffer:
        """Move the elements of either operand unchanged."""
        dtype = _common_dtype((x1, x2))
        if condition.dtype is not bool_:
            raise TypeError(f"a condition of {condition.dtype}")
        tensors = [one for one in (condition, x1, x2) if isinstance(one, Buffer)]
        out = self.launcher.empty(broadcast([one.shape for one in tensors]), dtype)
        self.launcher.move("where", (condition, x1, x2), out)
        return out

    def bitwise_not(self, x: Buffer) -> Buffer:
        """``~x0``, or ``!x0`` of booleans, in one kernel."""
        name = "logical_not" if x.dtype.is_bool else "bitwise_not"
        return self.launcher.compute(name, (x,), x.dtype, x.dtype)

    def leaky_relu(self, x: Buffer, *, negative_slope: float) -> Buffer:
        """Computed in one kernel."""
        return self._with_scalars("leaky_relu", x, negative_slope)

    def hard_sigmoid(self, x: Buffer, *, alpha: float, beta: float) -> Buffer:
        """Computed in one kernel."""
        return self._with_scalars("hard_sigmoid", x, alpha, beta)

    def softplus(self, x: Buffer, *, beta: float = 1.0) -> Buffer:
        """Computed in one kernel."""
        return self._with_scalars("softplus", x, beta)

    def elu(
        self, x: Buffer, *, alpha: float, scale: float = 1.0, input_scale: float = 1.0
    ) -> Buffer:
        """Computed in one kernel."""
        return self._with_scalars("elu", x, scale * alpha, scale, input_scale)

    def gelu(self, x: Buffer, *, approximate: str = "none") -> Buffer:
        """Computed in one kernel."""
        return self._with_scalars({"none": "gelu", "tanh": "gelu_tanh"}[approximate], x)

    def gelu_grad(self, x: Buffer, g: Buffer, *, approximate: str = "none") -> Buffer:
        """Computed in one kernel."""
        name = {"none": "gelu_grad", "tanh": "gelu_tanh_grad"}[approximate]
        return self.launcher.compute(name, (x, g), _common_dtype((x, g)), x.dtype)

    def _with_scalars(self, name: str, x: Buffer, *scalars: float) -> Buffer:
        """An expression of floats and of numbers, which are not rounded to 16 bits."""
        if not x.dtype.is_float:
            raise TypeError(f"{name} of {x.dtype}")
        dtype, scalar_dtype = x.dtype, accumulator_dtype(x.dtype)
        return self.launcher.compute(name, [x, *scalars], dtype, dtype, scalar_dtype)
