"""The required ops, by the kind of tensor they work on.

Their full meaning stands with their definitions in `burn.ops`; a test holds the two together.

Operands. Tensors that are computed with each other have one dtype, and shapes broadcast as in NumPy
where an op has two operands or more of that kind. Every op takes tensors without axes and tensors
without elements, in whatever layout the ops of the same backend made them. Where an operand may be
a Python number, at least one other is a tensor. The number lies in the range of its dtype and is
rounded to it before anything is computed: 0.1 equals the float32 nearest to it. A float tensor may
meet an int. Attributes come as keywords, sequences among them as tuples; axes count from the front,
and who calls may leave out an attribute that has a default.

Results. No op changes an operand, and nobody writes to a tensor once it is made; so a result may be
a view of an operand, or the operand itself. float16 and bfloat16 may be computed in float32, or in
more, and are rounded when the result is done. Functions of floats give NaN and infinities where
IEEE 754 does, and neither raise nor warn. The sign of a NaN is free, and what else it carries. The
sign of a zero is that of IEEE 754 where elements are moved, chosen, rounded or multiplied, and free
in other results. Complex numbers come only to a backend that declares complex dtypes (see
`Backend.native_dtype`).

Errors. Kinds of dtypes, and the numbers that creation ops take, were checked before. Other operands
that its definition refuses an op must not accept; it may raise anything on them, and Dispatch finds
the words. Where no library underneath notices, ask the definition itself, which returns the shape
and the dtype of the result: ``burn.ops.REGISTRY["matmul"].infer(Meta(shape, dtype), ...)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, TypeVar

if TYPE_CHECKING:
    from burn.aliases import Primitive, RealScalar, Scalar, Shape, Slices
    from burn.device_id import DeviceId
    from burn.dtype import DType
    from burn.tensor_data import TensorData

__all__ = [
    "BaseTensorOps",
    "BoolTensorOps",
    "FloatTensorOps",
    "IntTensorOps",
    "NumericTensorOps",
    "is_implemented",
    "required",
    "specializing",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def required(function: _Function) -> _Function:
    """Mark a protocol method that a backend has to write; until then the op counts as missing."""
    function.__burn_stub__ = True  # type: ignore[attr-defined]  # functions take attributes
    return function


def specializing(
    method: Callable[..., Any], for_dtype: Callable[[DType], Callable[..., Any]]
) -> Callable[..., Any]:
    """Give the method of an op a faster variant for each dtype.

    Parameters
    ----------
    method : callable
        The method, which takes every dtype.
    for_dtype : callable
        From a `DType` to the variant for it, called once for each dtype. Core calls the variant
        where all tensor operands that promote have that dtype.
    """
    method.specialize = for_dtype  # type: ignore[attr-defined]  # functions take attributes
    return method


def is_implemented(method: object) -> TypeGuard[Callable[..., Any]]:
    """Whether a method of a backend is there: neither None nor still marked as `required`."""
    return method is not None and not getattr(method, "__burn_stub__", False)


class BaseTensorOps(Protocol):
    """Tensors of any kind: entering and leaving, layout, choice and places."""

    @required
    def from_data(self, data: TensorData, device: DeviceId) -> Primitive:
        """Upload host data. The memory of `data` is the caller's again afterwards.

        ``data.array`` has any strides, and may have no axes or no elements; it may be read-only.
        Its byte order is that of the host.
        """

    @required
    def to_data(self, x: Primitive) -> TensorData:
        """Read the values back; waits for the work they depend on.

        The array has the dtype that ``DType.numpy`` names (bfloat16 is that of ml_dtypes) and any
        strides. It may be read-only, and may share the memory of `x`: nobody writes to it.

        Raises
        ------
        ExecutionError
            If that work failed.
        """

    @required
    def full(
        self, *, shape: Shape, fill_value: Scalar, dtype: DType, device: DeviceId
    ) -> Primitive:
        """Every element `fill_value`, a number in the range of `dtype`, rounded to it."""

    @required
    def cast(self, x: Primitive, *, dtype: DType) -> Primitive:
        """The elements as another dtype, or `x` itself where it is that already.

        Float to integer truncates and saturates, and NaN becomes 0. Integer to integer wraps
        around. Anything to bool is whether it is not 0, so NaN is true; bool to anything is 0 or 1.
        What becomes a float is rounded to the nearest, of two to the even one, and to infinity
        beyond the largest: an integer of 64 bits in one go, and not through float64. On the way to
        16 bits there may be a rounding to float32.
        """

    @required
    def reshape(self, x: Primitive, *, shape: Shape) -> Primitive:
        """The same elements, row-major, under another shape."""

    @required
    def permute(self, x: Primitive, *, axes: tuple[int, ...]) -> Primitive:
        """Output axis i is input axis ``axes[i]``."""

    @required
    def expand(self, x: Primitive, *, shape: Shape) -> Primitive:
        """Repeat axes of length 1, and new leading axes, up to `shape`: that of the result."""

    @required
    def slice(self, x: Primitive, *, slices: Slices) -> Primitive:
        """Per axis (start, length, step): element i of the output is ``start + i * step``.

        The step is negative or positive. All places lie within the axis, so no start counts from
        the end; where the length is 0 there are none, and the start means nothing.
        """

    @required
    def slice_assign(self, x: Primitive, value: Primitive | Scalar, *, slices: Slices) -> Primitive:
        """A copy of `x` with `value`, broadcast, at the places of a slice: those of `slice`."""

    @required
    def concat(self, tensors: list[Primitive], *, axis: int) -> Primitive:
        """Join tensors, one or more, along an axis; their other lengths are equal."""

    @required
    def gather(self, x: Primitive, indices: Primitive, *, axis: int) -> Primitive:
        """``output[i, j, k] = x[i, indices[i, j, k], k]`` for axis 1; the other lengths are equal.

        Indices have any integer dtype, also one that does not hold the length of the axis.
        Negative ones count from the end. `burn.backend.array.index_error` writes the error.

        Raises
        ------
        OutOfRangeError
            Now or at the next read, if an index is outside [-n, n).
        """

    @required
    def where(
        self, condition: Primitive, x1: Primitive | Scalar, x2: Primitive | Scalar
    ) -> Primitive:
        """`x1` where the bool tensor holds, else `x2`; what is not chosen has no influence."""

    @required
    def equal(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """``x1 == x2`` as bool. NaN equals nothing; integers of 64 bits are compared exactly."""


class NumericTensorOps(Protocol):
    """Integers and floats (comparison, extrema and order also take bool, false before true)."""

    @required
    def arange(
        self, *, start: RealScalar, step: RealScalar, length: int, dtype: DType, device: DeviceId
    ) -> Primitive:
        """``start + i * step`` for i below `length`, computed in `dtype` or more exactly.

        For an integer dtype all numbers are integers in its range.
        """

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
        """``floor(x1 / x2)`` of the exact quotient: ``1.0 // 0.1`` is 9.

        An integer divided by zero gives 0, a float what `divide` gives. Of an infinite dividend it
        is NaN or that infinity.
        """

    @required
    def remainder(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """``x1 - floor(x1 / x2) * x2``, exact, with the sign of the divisor.

        An integer modulo zero gives 0, a float NaN.
        """

    @required
    def pow(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """``x1 ** x2``; of floats as `pow` of IEEE 754, so anything to the power 0 is 1.

        Of integers it is exact and wraps around; a negative exponent gives the truncated
        reciprocal, which is 0, 1 or -1, and 0 for the base 0.
        """

    @required
    def abs(self, x: Primitive) -> Primitive:
        """Absolute value; the smallest integer of a signed dtype stays itself."""

    @required
    def less(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """``x1 < x2`` as bool; false for NaN. Integers of 64 bits are compared exactly."""

    @required
    def sum(
        self, x: Primitive, *, axis: tuple[int, ...], keepdims: bool = False, dtype: DType
    ) -> Primitive:
        """Sum over axes, computed in and returned as `dtype`; 16-bit floats add up in float32.

        Each element becomes a `dtype` first. Integers wrap around. The axes come in any order, each
        once; without any the elements stay as they are. Over no elements the sum is 0.
        """

    @required
    def prod(
        self, x: Primitive, *, axis: tuple[int, ...], keepdims: bool = False, dtype: DType
    ) -> Primitive:
        """Product over axes, computed in and returned as `dtype`, like `sum`; of none it is 1."""

    @required
    def max(self, x: Primitive, *, axis: tuple[int, ...], keepdims: bool = False) -> Primitive:
        """Largest element over axes; NaN propagates. It is not defined over no elements."""

    @required
    def argmax(self, x: Primitive, *, axis: int, keepdims: bool = False, dtype: DType) -> Primitive:
        """Place of the largest element along an axis: the first of equals; NaN is largest.

        `dtype` is one of integers. It is not defined over no elements.
        """

    @required
    def argsort(
        self, x: Primitive, *, axis: int, descending: bool = False, dtype: DType
    ) -> Primitive:
        """Places in sorted order along an axis; stable in both directions, NaN largest.

        So in descending order NaN comes first, and equal elements, zeros of both signs among them,
        keep the order that they have: it is not the ascending order reversed.
        """

    @required
    def matmul(self, x1: Primitive, x2: Primitive) -> Primitive:
        """Matrix product over the last two axes, others broadcast; 16-bit floats in float32.

        Both have two axes or more. Integers wrap around; over no elements the sums are 0.
        """

    @required
    def scatter_add(
        self, x: Primitive, indices: Primitive, value: Primitive, *, axis: int
    ) -> Primitive:
        """`x` with each of `value` added at its place with `axis` replaced by the index.

        All values of an index that occurs more than once are added, 16-bit floats in float32;
        integers wrap around. `value` and `indices` have one shape; the indices are as in `gather`.

        Raises
        ------
        OutOfRangeError
            Now or at the next read, if an index is outside [-n, n).
        """


class FloatTensorOps(Protocol):
    """Floats."""

    @required
    def divide(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """``x1 / x2``; by zero an infinity, or NaN for 0 and NaN."""

    @required
    def exp(self, x: Primitive) -> Primitive:
        """``e ** x``; too large it is infinite."""

    @required
    def log(self, x: Primitive) -> Primitive:
        """Natural logarithm: -inf of 0, NaN below."""

    @required
    def log1p(self, x: Primitive) -> Primitive:
        """``log(1 + x)``, exact near 0: -inf of -1, NaN below."""

    @required
    def sqrt(self, x: Primitive) -> Primitive:
        """Square root: NaN below 0."""

    @required
    def sin(self, x: Primitive) -> Primitive:
        """Sine of radians: NaN of an infinity. It holds for large angles too."""

    @required
    def cos(self, x: Primitive) -> Primitive:
        """Cosine of radians: NaN of an infinity. It holds for large angles too."""

    @required
    def tanh(self, x: Primitive) -> Primitive:
        """Hyperbolic tangent, exact near 0."""

    @required
    def atan(self, x: Primitive) -> Primitive:
        """Inverse tangent in radians, between -pi / 2 and pi / 2."""

    @required
    def floor(self, x: Primitive) -> Primitive:
        """Largest integer not above x; zeros keep their sign, NaN and infinities stay."""

    @required
    def round(self, x: Primitive) -> Primitive:
        """Nearest integer, halves to the even one; -0.3 becomes -0.0, NaN and infinities stay."""


class IntTensorOps(Protocol):
    """Integers."""

    @required
    def bitwise_left_shift(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """``x1 << x2``; 0 for a shift by the width or more.

        What a negative shift in a tensor gives is free.
        """

    @required
    def bitwise_right_shift(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """``x1 >> x2``, keeping the sign; a shift by the width or more leaves only the sign.

        What a negative shift in a tensor gives is free.
        """


class BoolTensorOps(Protocol):
    """Bits: of integers, or booleans as single bits."""

    @required
    def bitwise_and(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """``x1 & x2``: of bits, or of booleans."""

    @required
    def bitwise_or(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """``x1 | x2``: of bits, or of booleans."""

    @required
    def bitwise_xor(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """``x1 ^ x2``: of bits, or of booleans."""

    @required
    def bitwise_not(self, x: Primitive) -> Primitive:
        """``~x``: of bits, or of booleans."""
