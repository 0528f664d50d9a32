"""Elementwise ops: an expression each, in kernels for all layouts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from burn.plugin_api import DTYPE_CODES, REGISTRY, DType, accumulator_dtype, bool_, c_type_of
from burn_opencl.buffers import Buffer
from burn_opencl.complex_numbers import ComplexOps, as_tensor
from burn_opencl.elementwise_variants import broadcast
from burn_opencl.expressions import CASES
from burn_opencl.limits import SMALL_GROUP_ITEMS

if TYPE_CHECKING:
    from burn.plugin_api import Scalar

__all__ = ["ElementwiseOps"]


def _expression_method(name: str) -> Callable[..., Buffer]:
    """The method of an op that is an expression of its operands, and of numbers."""
    op = REGISTRY[name]
    choices: dict[str, Any] = {}
    numbers: dict[str, Any] = {}
    for attribute in op.attributes.values():
        (choices if attribute.choices else numbers)[attribute.name] = attribute.default

    def method(self: ElementwiseOps, *operands: Any, **attributes: Any) -> Buffer:
        launcher = self.launcher
        if not attributes and all(operand.__class__ is Buffer for operand in operands):
            ready = None if op.attributes else launcher.apply(name, operands)
            if ready is not None:
                return ready
        dtype = _common_dtype(operands)
        chosen = [attributes.get(name, default) for name, default in choices.items()]
        case = ".".join([name, *chosen])
        result = CASES[case].result(dtype)
        if result is None:
            raise TypeError(f"{name} of {dtype}")
        if dtype.is_complex:
            tensors = [as_tensor(self, operand, dtype) for operand in operands]
            return launcher.compute(case, tensors, dtype, result)
        values = [attributes.get(name, default) for name, default in numbers.items()]
        return launcher.compute(
            case,
            [*operands, *values],
            dtype,
            result,
            accumulator_dtype(dtype) if values else dtype,
        )

    method.__name__ = name
    method.__qualname__ = f"ElementwiseOps.{name}"
    method.__doc__ = f"{(op.__doc__ or '').partition('.')[0]}, in one kernel."
    return method


def _common_dtype(operands: tuple[Any, ...]) -> DType:
    """The dtype of the tensors among operands, which must have one in common."""
    dtypes = {operand.dtype for operand in operands if isinstance(operand, Buffer)}
    if len(dtypes) != 1:
        raise TypeError(f"operands of {len(dtypes)} dtypes")
    dtype: DType = dtypes.pop()
    return dtype


class ElementwiseOps(ComplexOps):
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
    leaky_relu = _expression_method("leaky_relu")
    hard_swish = _expression_method("hard_swish")
    hard_sigmoid = _expression_method("hard_sigmoid")
    hardtanh = _expression_method("hardtanh")
    softsign = _expression_method("softsign")
    shrink = _expression_method("shrink")
    threshold = _expression_method("threshold")
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
    softplus = _expression_method("softplus")
    elu = _expression_method("elu")
    gelu = _expression_method("gelu")
    gelu_grad = _expression_method("gelu_grad")
    binary_cross_entropy = _expression_method("binary_cross_entropy")
    exp2 = _expression_method("exp2")
    rsqrt = _expression_method("rsqrt")
    cbrt = _expression_method("cbrt")
    logit = _expression_method("logit")
    xlogy = _expression_method("xlogy")
    heaviside = _expression_method("heaviside")
    trunc_divide = _expression_method("trunc_divide")
    lerp = _expression_method("lerp")
    erfc = _expression_method("erfc")
    erfinv = _expression_method("erfinv")
    lgamma = _expression_method("lgamma")
    digamma = _expression_method("digamma")
    i0 = _expression_method("i0")
    i1 = _expression_method("i1")
    sinc = _expression_method("sinc")

    def cast(self, x: Buffer, *, dtype: DType) -> Buffer:
        """Convert in one kernel; return `x` itself where it has the dtype."""
        if x.dtype is dtype:
            return x
        launcher = self.launcher
        if x.dtype.is_complex:
            if dtype.is_complex:
                return self.cast(x.parts, dtype=dtype.component).of_parts(dtype)
            if not dtype.is_bool:
                raise TypeError(f"{x.dtype} to {dtype}")
            return self.not_equal(x, 0.0)
        if dtype.is_complex:
            part = self.cast(x, dtype=dtype.component)
            return launcher.compute("real", (part,), part.dtype, dtype)
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
        if dtype.is_complex:
            x1, x2 = as_tensor(self, x1, dtype), as_tensor(self, x2, dtype)
        tensors = [buffer for buffer in (condition, x1, x2) if isinstance(buffer, Buffer)]
        out = self.launcher.empty(broadcast([tensor.shape for tensor in tensors]), dtype)
        self.launcher.move("where", (condition, x1, x2), out)
        return out

    def bitwise_not(self, x: Buffer) -> Buffer:
        """``~x0``, or whether booleans are false, in one kernel."""
        if x.dtype.is_bool:
            return self.launcher.compute("equal", (x, False), bool_, bool_)
        return self.launcher.compute("bitwise_not", (x,), x.dtype, x.dtype)
