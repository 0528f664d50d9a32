"""Elementwise ops: an expression each, in kernels that know how to go over any layout."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from burn.dtype import DType, bool_, float32
from burn_opencl.buffers import Buffer
from burn_opencl.expressions import CODES, EXPRESSIONS, class_of
from burn_opencl.forms import broadcast

if TYPE_CHECKING:
    from burn.aliases import Scalar
    from burn_opencl.launcher import Launcher

__all__ = ["ElementwiseOps"]

_SPECIAL: Final = frozenset(
    [
        "copy",
        "where",
        "bitwise_not",
        "logical_not",
        "leaky_relu",
        "hard_sigmoid",
        "softplus",
        "elu",
        "gelu",
        "gelu_tanh",
        "gelu_grad",
        "gelu_tanh_grad",
    ]
)
"""Expressions that are no op with the same operands."""

_NOT_NEGATIVE: Final = frozenset({"pow", "bitwise_left_shift", "bitwise_right_shift"})
"""Ops that refuse integers with a Python number below 0 on their right."""


def _op(name: str) -> Callable[..., Buffer]:
    """The method of an op that is an expression of its operands."""
    expression = EXPRESSIONS[name]

    def call(self: ElementwiseOps, *operands: Any) -> Buffer:
        launcher = self.launcher
        if all(one.__class__ is Buffer for one in operands):
            done = launcher.apply(name, operands)
            if done is not None:
                return done
        dtype = _common(operands)
        if expression.form(dtype.kind) is None:
            raise TypeError(f"{name} of {dtype}")
        return launcher.compute(name, operands, dtype, bool_ if expression.mask else dtype)

    call.__name__ = name
    call.__qualname__ = f"ElementwiseOps.{name}"
    call.__doc__ = f"``{expression.forms[0][1]}`` in one kernel."
    return _checked(call) if name in _NOT_NEGATIVE else call


def _checked(call: Callable[..., Buffer]) -> Callable[..., Buffer]:
    """The same, but for a Python number below 0 on the right of an integer."""

    def checked(self: ElementwiseOps, x1: Buffer | Scalar, x2: Buffer | Scalar) -> Buffer:
        if isinstance(x2, int) and x2 < 0 and isinstance(x1, Buffer) and x1.dtype.is_integer:
            raise ValueError(f"{call.__name__} by {x2}")
        return call(self, x1, x2)

    return functools.wraps(call)(checked)


def _common(operands: tuple[Any, ...]) -> DType:
    """The one dtype of the tensors among operands."""
    dtypes = {one.dtype for one in operands if isinstance(one, Buffer)}
    if len(dtypes) != 1:
        raise TypeError(f"operands of {len(dtypes)} dtypes")
    dtype: DType = dtypes.pop()
    return dtype


class ElementwiseOps:
    """Elementwise ops; those that are plain expressions are added below."""

    launcher: Launcher

    def cast(self, x: Buffer, *, dtype: DType) -> Buffer:
        """One kernel that converts; the tensor itself where it has the dtype."""
        if x.dtype is dtype:
            return x
        launcher = self.launcher
        x = launcher.dense(x)
        out = launcher.empty(x.shape, dtype)
        source, target = CODES[x.dtype.name], CODES[dtype.name]
        definitions: dict[str, str | int] = {
            "S": class_of(x.dtype),
            "FROM_FLOATING": int(x.dtype.is_float),
            "GROUP_SIZE": 64,
        }
        if x.size >= launcher.large:
            definitions |= {"SOURCE": source, "TARGET": target, "GROUP_SIZE": launcher.group}
        kernel = launcher.kernel("cast", "cast.cl", class_of(dtype), definitions)
        group = int(definitions["GROUP_SIZE"])
        numbers = (x.size, x.offset, source, target)
        launcher.run(kernel, x.size, numbers, (x.memory, out.memory), group)
        return out

    def where(self, condition: Buffer, x1: Buffer | Scalar, x2: Buffer | Scalar) -> Buffer:
        """The bits of the one or the other."""
        dtype = _common((x1, x2))
        if condition.dtype is not bool_:
            raise TypeError(f"a choice by {condition.dtype}")
        shape = _shape((condition, x1, x2))
        out = self.launcher.empty(shape, dtype)
        self.launcher.move("where", (condition, x1, x2), out)
        return out

    def bitwise_not(self, x: Buffer) -> Buffer:
        """Of bits, or of booleans."""
        name = "logical_not" if x.dtype.is_bool else "bitwise_not"
        return self.launcher.compute(name, (x,), x.dtype, x.dtype)

    def leaky_relu(self, x: Buffer, *, negative_slope: float) -> Buffer:
        """One kernel."""
        return self._with("leaky_relu", x, negative_slope)

    def hard_sigmoid(self, x: Buffer, *, alpha: float, beta: float) -> Buffer:
        """One kernel."""
        return self._with("hard_sigmoid", x, alpha, beta)

    def softplus(self, x: Buffer, *, beta: float = 1.0) -> Buffer:
        """One kernel."""
        return self._with("softplus", x, beta)

    def elu(
        self, x: Buffer, *, alpha: float, scale: float = 1.0, input_scale: float = 1.0
    ) -> Buffer:
        """One kernel."""
        return self._with("elu", x, scale * alpha, scale, input_scale)

    def gelu(self, x: Buffer, *, approximate: str = "none") -> Buffer:
        """One kernel."""
        return self._with({"none": "gelu", "tanh": "gelu_tanh"}[approximate], x)

    def gelu_grad(self, x: Buffer, g: Buffer, *, approximate: str = "none") -> Buffer:
        """One kernel."""
        name = {"none": "gelu_grad", "tanh": "gelu_tanh_grad"}[approximate]
        return self.launcher.compute(name, (x, g), _common((x, g)), x.dtype)

    def _with(self, name: str, x: Buffer, *numbers: float) -> Buffer:
        if not x.dtype.is_float:
            raise TypeError(f"{name} of {x.dtype}")
        wide = float32 if x.dtype.itemsize == 2 else x.dtype
        return self.launcher.compute(name, (x, *numbers), x.dtype, x.dtype, wide)


for _name in EXPRESSIONS.keys() - _SPECIAL:
    setattr(ElementwiseOps, _name, _op(_name))


def _shape(operands: tuple[Any, ...]) -> tuple[int, ...]:
    return broadcast([one.shape for one in operands if isinstance(one, Buffer)])
