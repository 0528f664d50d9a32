"""The required ops, by the kind of tensor that they take.

Their full meaning is in their definitions in `burn.ops`; a test keeps the two consistent.

Operands. Tensor operands that are combined have one dtype, and their shapes broadcast as in NumPy.
Every op takes tensors without axes and tensors without elements, in every layout that ops of the
backend produce. Where an operand may be a Python number, at least one other is a tensor. The number
lies in the range of the dtype of the tensor and is rounded to it before anything is computed: 0.1
equals the float32 nearest to it. Beside a float tensor it may be an int. Attributes are keywords,
and sequences are tuples; axes count from the front. Attributes that have a default may be omitted.

Outputs. An op with one output returns it; one with several returns a tuple, and so does one whose
outputs are lists. Lists are flat in it, one output after the other: ``adam_step`` of two parameters
returns ``(parameter, parameter, first moment, first moment, second moment, second moment)``.

Results. No op changes an operand, and no tensor is written to once it is made; so a result may be a
view of an operand, or the operand itself. float16 and bfloat16 may be computed in float32 or wider,
and are rounded once at the end. Functions of floats return NaN and infinities where IEEE 754 does,
and neither raise nor warn. The sign and payload of a NaN are unspecified. The sign of a zero is
that of IEEE 754 and of the array API standard in elementwise functions and in what moves, selects
or rounds elements. It is unspecified in sums and products over axes, matrix products, scatter-add
and arange.
Only a backend that declares complex dtypes gets complex numbers (see `Backend.native_dtype`).

Errors. Kinds of dtypes, and the numbers of creation ops, are checked before. An op must not accept
other operands that its definition refuses; it may raise any exception for them, and Dispatch raises
the definition's error. Where no library underneath checks them, call the definition, which returns
the shape and dtype of the result: ``burn.ops.REGISTRY["matmul"].infer(Meta(shape, dtype), ...)``.
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
    """Mark a protocol method that a backend must implement; marked, the op counts as missing."""
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
    """Whether a backend has a method: neither None nor marked as `required`."""
    return method is not None and not getattr(method, "__burn_stub__", False)


class BaseTensorOps(Protocol):
    """Tensors of any kind: host data, layout, selection and indexing."""

    @required
    def from_data(self, data: TensorData, device: DeviceId) -> Primitive:
        """Upload host data. The caller may change the memory of `data` afterwards.

        ``data.array`` has any strides, and may have no axes or no elements; it may be read-only.
        Its byte order is that of the host.
        """

    @required
    def to_data(self, x: Primitive) -> TensorData:
        """Read the values back; waits for the work they depend on.

        The array has the dtype ``DType.numpy`` (bfloat16 of ml_dtypes) and any strides. It may be
        read-only, and may share the memory of `x`: the caller does not write to it.

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
        around. Any number to bool is whether it is not 0, so NaN is True; bool to any dtype is 0 or
        1. Conversions to float round to nearest, ties to even, and to infinity beyond the range: a
        64-bit integer once, and not through float64. Conversions to 16 bits may round to float32
        first.
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

        The step is negative or positive. All indices lie within the axis, and none counts from the
        end; where the length is 0 the start has no meaning.
        """

    @required
    def slice_assign(self, x: Primitive, value: Primitive | Scalar, *, slices: Slices) -> Primitive:
        """A copy of `x` with `value`, broadcast, written to the elements that `slice` selects."""

    @required
    def concat(self, tensors: list[Primitive], *, axis: int) -> Primitive:
        """Join tensors, one or more, along an axis; their other lengths are equal."""

    @required
    def gather(self, x: Primitive, indices: Primitive, *, axis: int) -> Primitive:
        """``output[i, j, k] = x[i, indices[i, j, k], k]`` for axis 1; the other lengths are equal.

        Indices have any integer dtype, also one that does not hold the length of the axis.
        Negative ones count from the end. `burn.plugin_api.index_error` makes the error.

        Raises
        ------
        OutOfRangeError
            At once or at the next read, if an index is outside [-n, n).
        """

    @required
    def where(
        self, condition: Primitive, x1: Primitive | Scalar, x2: Primitive | Scalar
    ) -> Primitive:
        """`x1` where `condition` is True, else `x2`; NaN that is not selected has no influence."""

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

        An integer divided by zero is 0, a float as in `divide`. An infinite dividend gives NaN by
        every other divisor. An infinite divisor gives 0, or -1 where the signs differ. A zero has
        the sign of the exact quotient.
        """

    @required
    def remainder(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """``x1 - floor(x1 / x2) * x2``, exact, with the sign of the divisor.

        An integer modulo zero gives 0, a float NaN, and so does an infinite dividend. An infinite
        divisor gives the dividend, or the divisor where their signs differ. A zero has the sign of
        the divisor.
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

        Each element is cast to `dtype` first. Integers wrap around. The axes come in any order,
        each once; without axes the elements are returned. Over no elements the sum is 0.
        """

    @required
    def prod(
        self, x: Primitive, *, axis: tuple[int, ...], keepdims: bool = False, dtype: DType
    ) -> Primitive:
        """Product over axes, computed in and returned as `dtype`, like `sum`; 1 of no elements."""

    @required
    def max(self, x: Primitive, *, axis: tuple[int, ...], keepdims: bool = False) -> Primitive:
        """Largest element over axes; NaN propagates. It is not defined over no elements."""

    @required
    def argsort(
        self, x: Primitive, *, axis: int, descending: bool = False, dtype: DType
    ) -> Primitive:
        """Indices in sorted order along an axis; stable in both directions, NaN largest.

        So in descending order NaN comes first, and equal elements, such as zeros of both signs,
        keep their order: it is not the ascending order reversed.
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
        """`x` with each element of `value` added at its position with `axis` replaced by the index.

        All values of a repeated index are added, 16-bit floats in float32;
        integers wrap around. `value` and `indices` have one shape; the indices are as in `gather`.

        Raises
        ------
        OutOfRangeError
            At once or at the next read, if an index is outside [-n, n).
        """


class FloatTensorOps(Protocol):
    """Floats."""

    @required
    def divide(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """``x1 / x2``; by zero an infinity, or NaN for 0 and NaN."""

    @required
    def exp(self, x: Primitive) -> Primitive:
        """``e ** x``; infinite on overflow."""

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

        The result of a negative shift in a tensor is unspecified.
        """

    @required
    def bitwise_right_shift(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """``x1 >> x2``, keeping the sign; a shift by the width or more leaves only the sign.

        The result of a negative shift in a tensor is unspecified.
        """


class BoolTensorOps(Protocol):
    """Bitwise ops on integers, and on booleans as single bits."""

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
