"""The required ops, by the kind of tensor they work on.

Their full meaning stands with their definitions in `burn.ops`; a test holds the two together.
Where an operand may be a Python number, it is one that the dtype represents, and at least one
operand is a tensor. Operands of one op that are computed with each other have one dtype; shapes
broadcast as in NumPy. Kinds of dtypes, and the numbers that creation ops take, were checked before.
Other operands that its definition refuses an op must not accept; it may raise anything on them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from burn.aliases import Primitive, RealScalar, Scalar, Shape, Slices
    from burn.data import TensorData
    from burn.device_id import DeviceId
    from burn.dtype import DType

__all__ = [
    "BaseTensorOps",
    "BoolTensorOps",
    "FloatTensorOps",
    "IntTensorOps",
    "NumericTensorOps",
    "required",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def required(function: _Function) -> _Function:
    """Mark a protocol method that a backend has to write; until then the op counts as missing."""
    function.__burn_stub__ = True  # type: ignore[attr-defined]  # functions take attributes
    return function


class BaseTensorOps(Protocol):
    """Tensors of any kind: entering and leaving, layout, choice and places."""

    @required
    def from_data(self, data: TensorData, device: DeviceId) -> Primitive:
        """Upload host data. The memory of `data` is the caller's again afterwards."""

    @required
    def to_data(self, x: Primitive) -> TensorData:
        """Read the values back; waits for the work they depend on.

        Raises
        ------
        ExecutionError
            If that work failed.
        """

    @required
    def full(
        self, *, shape: Shape, fill_value: Scalar, dtype: DType, device: DeviceId
    ) -> Primitive:
        """Every element `fill_value`."""

    @required
    def cast(self, x: Primitive, *, dtype: DType) -> Primitive:
        """The elements as another dtype; float to integer saturates, and NaN becomes 0."""

    @required
    def reshape(self, x: Primitive, *, shape: Shape) -> Primitive:
        """The same elements, row-major, under another shape."""

    @required
    def permute(self, x: Primitive, *, axes: tuple[int, ...]) -> Primitive:
        """Output axis i is input axis ``axes[i]``."""

    @required
    def expand(self, x: Primitive, *, shape: Shape) -> Primitive:
        """Repeat axes of length 1, and new leading axes, up to `shape`."""

    @required
    def slice(self, x: Primitive, *, slices: Slices) -> Primitive:
        """Per axis (start, length, step): element i of the output is ``start + i * step``."""

    @required
    def slice_assign(self, x: Primitive, value: Primitive | Scalar, *, slices: Slices) -> Primitive:
        """A copy of `x` with `value`, broadcast, at the places of a slice."""

    @required
    def concat(self, tensors: list[Primitive], *, axis: int) -> Primitive:
        """Join tensors along an axis."""

    @required
    def gather(self, x: Primitive, indices: Primitive, *, axis: int) -> Primitive:
        """``output[i, j, k] = x[i, indices[i, j, k], k]`` for axis 1.

        Raises
        ------
        OutOfRangeError
            Now or at the next read, if an index is outside [-n, n).
        """

    @required
    def where(
        self, condition: Primitive, x1: Primitive | Scalar, x2: Primitive | Scalar
    ) -> Primitive:
        """`x1` where the bool tensor holds, else `x2`."""

    @required
    def equal(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """``x1 == x2`` as bool."""


class NumericTensorOps(Protocol):
    """Integers and floats (comparison, extrema and order also take bool, false before true)."""

    @required
    def arange(
        self, *, start: RealScalar, step: RealScalar, length: int, dtype: DType, device: DeviceId
    ) -> Primitive:
        """``start + i * step`` for i below `length`, computed in `dtype`."""

    @required
    def add(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """``x1 + x2``; integers wrap around."""

    @required
    def subtract(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """``x1 - x2``; integers wrap around."""

    @required
    def multiply(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """``x1 * x2``; integers wrap around."""

    @required
    def floor_divide(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """``floor(x1 / x2)``; an integer divided by zero gives 0."""

    @required
    def remainder(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """``x1 - floor(x1 / x2) * x2``, exact; an integer modulo zero gives 0."""

    @required
    def pow(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """``x1 ** x2``; of integers exact, a negative exponent giving the truncated reciprocal."""

    @required
    def abs(self, x: Primitive) -> Primitive:
        """Absolute value."""

    @required
    def less(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """``x1 < x2`` as bool."""

    @required
    def sum(
        self, x: Primitive, *, axis: tuple[int, ...], keepdims: bool = False, dtype: DType
    ) -> Primitive:
        """Sum over axes, computed in and returned as `dtype`; 16-bit floats add up in float32."""

    @required
    def prod(
        self, x: Primitive, *, axis: tuple[int, ...], keepdims: bool = False, dtype: DType
    ) -> Primitive:
        """Product over axes, computed in and returned as `dtype`."""

    @required
    def max(self, x: Primitive, *, axis: tuple[int, ...], keepdims: bool = False) -> Primitive:
        """Largest element over axes; NaN propagates."""

    @required
    def argmax(self, x: Primitive, *, axis: int, keepdims: bool = False, dtype: DType) -> Primitive:
        """Place of the largest element along an axis: the first of equals; NaN is largest."""

    @required
    def argsort(
        self, x: Primitive, *, axis: int, descending: bool = False, dtype: DType
    ) -> Primitive:
        """Places in sorted order along an axis; stable in both directions, NaN largest."""

    @required
    def matmul(self, x1: Primitive, x2: Primitive) -> Primitive:
        """Matrix product over the last two axes, others broadcast; 16-bit floats in float32."""

    @required
    def scatter_add(
        self, x: Primitive, indices: Primitive, value: Primitive, *, axis: int
    ) -> Primitive:
        """`x` with each of `value` added at its place with `axis` replaced by the index."""


class FloatTensorOps(Protocol):
    """Floats."""

    @required
    def divide(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """``x1 / x2``."""

    @required
    def exp(self, x: Primitive) -> Primitive:
        """``e ** x``."""

    @required
    def log(self, x: Primitive) -> Primitive:
        """Natural logarithm."""

    @required
    def log1p(self, x: Primitive) -> Primitive:
        """``log(1 + x)``, exact near 0."""

    @required
    def sqrt(self, x: Primitive) -> Primitive:
        """Square root."""

    @required
    def sin(self, x: Primitive) -> Primitive:
        """Sine of radians."""

    @required
    def cos(self, x: Primitive) -> Primitive:
        """Cosine of radians."""

    @required
    def tanh(self, x: Primitive) -> Primitive:
        """Hyperbolic tangent."""

    @required
    def atan(self, x: Primitive) -> Primitive:
        """Inverse tangent in radians."""

    @required
    def floor(self, x: Primitive) -> Primitive:
        """Largest integer not above x."""

    @required
    def round(self, x: Primitive) -> Primitive:
        """Nearest integer, halves to the even one."""


class IntTensorOps(Protocol):
    """Integers."""

    @required
    def bitwise_left_shift(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """``x1 << x2``; 0 for a shift by the width or more."""

    @required
    def bitwise_right_shift(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """``x1 >> x2``, keeping the sign; a shift by the width or more leaves only the sign."""


class BoolTensorOps(Protocol):
    """Bits: of integers, or booleans as single bits."""

    @required
    def bitwise_and(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """``x1 & x2``."""

    @required
    def bitwise_or(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """``x1 | x2``."""

    @required
    def bitwise_xor(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """``x1 ^ x2``."""

    @required
    def bitwise_not(self, x: Primitive) -> Primitive:
        """``~x``."""
