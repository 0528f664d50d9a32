"""Tensors in few bits: quantizing, restoring, and the ranges and scales of calibration."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from burn.autodiff import untracked
from burn.devices import Device
from burn.dispatch import common_device, join_trace, meta_of
from burn.dtype import Kind, float32
from burn.errors import ArgumentError, BurnError, DTypeError, OperandTypeError, ShapeError
from burn.functions import calls
from burn.functions.common import DeviceLike, DTypeLike, dispatch
from burn.functions.normalize import as_dtype, check_tensor, find_device
from burn.ops import REGISTRY
from burn.ops.quantized_primitive import of_parts
from burn.public_calls import public_operation, shown_value
from burn.quant_scheme import QDType, QuantScheme
from burn.quantized import Calibration, calibration as _calibration
from burn.tree import register

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "CalibrationRange",
    "QParams",
    "compute_q_params",
    "compute_range",
    "default_quant_scheme",
    "dequantize",
    "is_quantized",
    "numbers_of",
    "of_tensors",
    "part_tensors",
    "quantize",
    "quantize_dynamic",
]


@dataclass(frozen=True)
class CalibrationRange:
    """The ends of a range, or of those of the blocks of a tensor.

    Attributes
    ----------
    min, max : Tensor
        Of the shape of the scales: (1,), or one for each block.
    """

    min: Tensor
    max: Tensor


@dataclass(frozen=True)
class QParams:
    """What codes are multiplied by.

    Attributes
    ----------
    scales : Tensor
        Floats, which the scheme's dtype of scales represents; shape (1,), or one for each block.
    global_ : Tensor or None
        Of two levels: float32, shape (1,).
    """

    scales: Tensor
    global_: Tensor | None = None


register(
    CalibrationRange,
    lambda item: ((item.min, item.max), None),
    lambda _, parts: CalibrationRange(*parts),
)
register(
    QParams, lambda item: ((item.scales, item.global_), None), lambda _, parts: QParams(*parts)
)


def default_quant_scheme(device: DeviceLike | None = None) -> QuantScheme:
    """The scheme that a device quantizes with where none is named.

    Parameters
    ----------
    device : Device or str, optional
        Device of the result; the default device if left out.

    Returns
    -------
    QuantScheme
        That of ``device.settings.quantization``.

    Examples
    --------
    >>> import burn
    >>> print(burn.quantization.default_quant_scheme("cpu"))
    q8f(scale=float32, store=native)
    """
    found: Device = find_device(device, "default_quant_scheme")
    return found.settings.quantization.scheme


def is_quantized(x: Tensor, /) -> bool:
    """Whether a tensor is quantized.

    Examples
    --------
    >>> import burn
    >>> burn.quantization.is_quantized(burn.ones(4, device="cpu").quantize_dynamic())
    True
    """
    check_tensor(x, "x", "is_quantized")
    return x.dtype.kind is Kind.QUANTIZED


def compute_range(
    scheme: QuantScheme, x: Tensor, /, calibration: Calibration = Calibration.MIN_MAX
) -> CalibrationRange:
    """The range of a tensor, or of each block of a scheme.

    Parameters
    ----------
    scheme : QuantScheme
        What shares a scale.
    x : Tensor
        Floats.
    calibration : Calibration
        From the smallest to the largest number, from the mean of magnitudes (for `Q2S`), or by
        the least squared error of 31 shares of the largest magnitude.

    Returns
    -------
    CalibrationRange
        Two tensors, float32 (float64 of float64), of shape (1,), or with one element for each
        block. Without elements a range is 0 to 0.

    Raises
    ------
    ShapeError
        If blocks do not divide the tensor.
    ArgumentError
        For the mean of magnitudes in two levels.

    Examples
    --------
    >>> import burn
    >>> from burn.quantization import QuantLevel, QuantScheme, compute_range
    >>> scheme = QuantScheme().with_level(QuantLevel.per_block(2))
    >>> found = compute_range(scheme, burn.asarray([-1.0, 2.0, 3.0, 5.0], device="cpu"))
    >>> found.min.tolist(), found.max.tolist()
    ([-1.0, 3.0], [2.0, 5.0])
    """
    _check_scheme(scheme, "compute_range")
    _check_calibration(calibration, "compute_range")
    x = _floats(x, "compute_range")
    try:
        low, high = _calibration.compute_range(
            dispatch.for_device(x.device.dispatch_id), x, scheme, calibration
        )
    except (ArgumentError, ShapeError) as error:
        error.operation = error.operation or public_operation("compute_range")
        raise
    return CalibrationRange(low, high)


def compute_q_params(scheme: QuantScheme, range: CalibrationRange, /) -> QParams:
    """The scales of ranges: ``2 * max(abs(min), abs(max)) / (b - a)`` for values in [a, b].

    A scale is rounded up to the scheme's dtype. In two levels the global scale is the largest one
    divided by the largest number of that dtype, and the others are divided by it.

    Parameters
    ----------
    scheme : QuantScheme
        How tensors are stored.
    range : CalibrationRange
        As `compute_range` returns it.

    Returns
    -------
    QParams
        What `quantize` takes.

    Examples
    --------
    >>> import burn
    >>> from burn.quantization import QuantScheme, QuantValue, compute_q_params, compute_range
    >>> scheme = QuantScheme(QuantValue.Q8S)
    >>> found = compute_range(scheme, burn.asarray([-2.54, 1.0, 0.0, 0.0], device="cpu"))
    >>> round(compute_q_params(scheme, found).scales.item(), 5)
    0.02
    """
    _check_scheme(scheme, "compute_q_params")
    if not isinstance(range, CalibrationRange):
        raise OperandTypeError(
            f"range must be a CalibrationRange, not {type(range).__name__}",
            hint="compute_range makes one of a tensor",
            operation="compute_q_params",
        )
    low = _floats(range.min, "compute_q_params")
    high = _floats(range.max, "compute_q_params")
    ops = dispatch.for_device(low.device.dispatch_id)
    scales, global_ = _calibration.compute_parameters(ops, low, high, scheme)
    numbers = _calibration.decoded(ops, scales, scheme, low.dtype)
    return QParams(numbers, global_)


def quantize(x: Tensor, /, scheme: QuantScheme, qparams: QParams) -> Tensor:
    """A tensor in few bits, with given scales.

    Parameters
    ----------
    x : Tensor
        Floats. The result is not tracked.
    scheme : QuantScheme
        How to store it.
    qparams : QParams
        The scales, as `compute_q_params` returns them; they are rounded up to the scheme's dtype.

    Returns
    -------
    Tensor
        Of the shape of `x`, with the dtype ``QDType(scheme)``. Codes out of range are clamped;
        where a scale is 0, and of NaN, a code is 0.

    Raises
    ------
    ShapeError
        If blocks or packed words do not divide the shape, or the scales do not fit it.

    Examples
    --------
    >>> import burn
    >>> from burn.quantization import QParams, QuantScheme
    >>> qparams = QParams(burn.asarray([0.5], device="cpu"))
    >>> x = burn.asarray([0.0, 0.6, 1.0, -3.0], device="cpu")
    >>> burn.quantization.quantize(x, QuantScheme(), qparams).tolist()
    [0.0, 0.5, 1.0, -3.0]
    """
    _check_scheme(scheme, "quantize")
    x = _floats(x, "quantize").detach()
    if not isinstance(qparams, QParams):
        raise OperandTypeError(
            f"qparams must be a QParams, not {type(qparams).__name__}",
            hint="compute_q_params makes one of a range; quantize_dynamic needs none",
            operation="quantize",
        )
    expected = scheme.scales_shape(x.shape) if _fits(scheme, x) else (1,)
    given = qparams.scales
    check_tensor(given, "qparams.scales", "quantize")
    if given.shape != expected and given.size == 1 and not scheme.level.block:
        given = given.reshape(expected)
    scales = calls.round_up_scales(_floats(given, "quantize"), scheme=scheme)
    values = calls.quantize_values(x, scales, qparams.global_, scheme=scheme)
    return _joined(values, scales, qparams.global_, scheme)


def quantize_dynamic(
    x: Tensor,
    /,
    scheme: QuantScheme | None = None,
    *,
    calibration: Calibration = Calibration.MIN_MAX,
) -> Tensor:
    """A tensor in few bits, with scales by the largest magnitude of it, or of each block.

    Parameters
    ----------
    x : Tensor
        Floats, or a quantized tensor. The result is not tracked.
    scheme : QuantScheme, optional
        How to store it. By default `default_quant_scheme` of the device.
    calibration : Calibration
        How the range of each block is found.

    Returns
    -------
    Tensor
        Of the shape of `x`, with the dtype ``QDType(scheme)``. A block of zeros remains zeros; a
        block with NaN or an infinity becomes NaN.

    Raises
    ------
    ShapeError
        If blocks or packed words do not divide the shape.

    Examples
    --------
    >>> import burn
    >>> from burn.quantization import QuantScheme, QuantValue
    >>> x = burn.asarray([12.7, -3.04, 0.1, 0.0], device="cpu")
    >>> q = burn.quantization.quantize_dynamic(x, QuantScheme(QuantValue.Q8S))
    >>> q.data().codes.tolist()
    [127, -30, 1, 0]
    """
    x = _floats(x, "quantize_dynamic").detach()
    if scheme is None:
        scheme = x.device.settings.quantization.scheme
    _check_scheme(scheme, "quantize_dynamic")
    _check_calibration(calibration, "quantize_dynamic")
    if not scheme.level.is_global and calibration is Calibration.MIN_MAX:
        values, scales = calls.quantize_dynamic(x, scheme=scheme)
        return _joined(values, scales, None, scheme)
    ops = dispatch.for_device(x.device.dispatch_id)
    try:
        low, high = _calibration.compute_range(ops, x, scheme, calibration)
    except (ArgumentError, ShapeError) as error:
        error.operation = error.operation or public_operation("quantize_dynamic")
        raise
    scales, global_ = _calibration.compute_parameters(ops, low, high, scheme)
    values = calls.quantize_values(x, scales, global_, scheme=scheme)
    return _joined(values, scales, global_, scheme)


def dequantize(x: Tensor, /, dtype: DTypeLike | None = None) -> Tensor:
    """The numbers that a quantized tensor stands for: code times scale.

    Parameters
    ----------
    x : Tensor
        A quantized tensor; floats are returned as they are, or cast.
    dtype : DType or str, optional
        A float dtype. By default that of the device.

    Returns
    -------
    Tensor
        Floats, untracked if `x` is quantized.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([0.0, 1.0, 2.55], device="cpu")
    >>> [round(one, 2) for one in x.quantize_dynamic().dequantize().tolist()]
    [0.0, 1.0, 2.54]
    """
    check_tensor(x, "x", "dequantize")
    if x.dtype.kind is not Kind.QUANTIZED:
        if not x.dtype.is_float:
            raise DTypeError(
                f"a {x.dtype} tensor is not quantized",
                hint="Convert integers with .astype()",
                operation="dequantize",
            )
        return x if dtype is None else x.astype(dtype)
    wanted = x.device.settings.float_dtype if dtype is None else as_dtype(dtype, "dequantize")
    if wanted.kind is not Kind.FLOAT:
        raise DTypeError(
            f"quantized tensors stand for floats, not for {wanted}",
            hint="Convert the result with .astype()",
            operation="dequantize",
        )
    return calls.cast(x, dtype=wanted)


def numbers_of(x: Tensor) -> Tensor:
    """A tensor; of a quantized one the floats that it stands for.

    For a function whose steps would each be rounded to codes again, or split blocks.
    """
    return dequantize(x) if x.dtype.kind is Kind.QUANTIZED else x


def _joined(values: Tensor, scales: Tensor, global_: Tensor | None, scheme: QuantScheme) -> Tensor:
    """The quantized tensor of its parts, which are constants from then on."""
    parts = [values, scales] if global_ is None else [values, scales, global_]
    for part in parts:
        join_trace(part)
    device = functools.reduce(common_device, [part.device for part in parts])
    primitive = of_parts([untracked(part.primitive) for part in parts], scheme)
    return dispatch.wrap(primitive, device.tensor_type(QDType(scheme)))


def part_tensors(x: Tensor) -> list[Tensor]:
    """The stored codes, scales and, in two levels, global scale of a quantized tensor."""
    join_trace(x)
    device = x.device
    parts = zip(x.primitive.scheme.part_dtypes, x.primitive.parts, strict=True)
    return [dispatch.wrap(part, device.tensor_type(dtype)) for dtype, part in parts]


def of_tensors(parts: Sequence[Tensor], scheme: QuantScheme, operation: str) -> Tensor:
    """The quantized tensor of stored codes, scales and, in two levels, a global scale.

    Raises
    ------
    DTypeError, ShapeError
        If they are not those of the scheme, or do not fit each other.
    DeviceMismatchError
        If they are on different devices.
    """
    values, scales, *rest = parts
    global_ = rest[0] if rest else None
    metas = [None if tensor is None else meta_of(tensor) for tensor in (values, scales, global_)]
    try:
        for part in parts[1:]:
            common_device(values.device, part.device)
        REGISTRY["dequantize_values"].infer(*metas, scheme=scheme, dtype=float32)
    except BurnError as error:
        error.operation = operation
        raise
    return _joined(values, scales, global_, scheme)


def _floats(x: Tensor, operation: str) -> Tensor:
    """A tensor of floats; of a quantized one its numbers."""
    check_tensor(x, "x", operation)
    if x.dtype.kind is Kind.QUANTIZED:
        return dequantize(x)
    if not x.dtype.is_float:
        raise DTypeError(
            f"takes floats, got {x.dtype}",
            hint="Convert the tensor with .astype()",
            operation=operation,
        )
    return x


def _fits(scheme: QuantScheme, x: Tensor) -> bool:
    return len(scheme.level.block) <= x.ndim


def _check_scheme(scheme: object, operation: str) -> None:
    if not isinstance(scheme, QuantScheme):
        raise OperandTypeError(
            f"scheme must be a QuantScheme, not {type(scheme).__name__}", operation=operation
        )


def _check_calibration(calibration: object, operation: str) -> None:
    if not isinstance(calibration, Calibration):
        raise OperandTypeError(
            f"calibration must be a Calibration, not {shown_value(calibration)}",
            hint=f"One of {', '.join(map(str, Calibration))}",
            operation=operation,
        )
