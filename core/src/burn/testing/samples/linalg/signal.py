"""Samples of Fourier transforms."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from burn.errors import ArgumentError, AxisError, ShapeError
from burn.testing.arrays import expanded, floats, reversed_view, strided, transposed
from burn.testing.op_samples import Array, Sample, error, reference, sample

_LENGTHS: Final = (1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 30)


def _fitted(x: Array, axis: int, n: int) -> Array:
    """Cropped, or padded with zeros, along an axis."""
    x = np.moveaxis(x, axis, -1)
    result = np.zeros((*x.shape[:-1], n), x.dtype)
    kept = min(n, x.shape[-1])
    result[..., :kept] = x[..., :kept]
    return np.moveaxis(result, -1, axis)


def _magnitude(*parts: Array, axis: int, n: int) -> Any:
    """Sum of magnitudes along an axis, kept."""
    return sum(np.sum(abs(_fitted(part, axis, n)), axis=axis, keepdims=True) for part in parts)


def _rfft(x: Array, *, axis: int, n: int) -> tuple[Array, Array]:
    spectrum = np.fft.rfft(x, n, axis)
    return spectrum.real, spectrum.imag


def _rfft_terms(x: Array, *, axis: int, n: int) -> tuple[Any, Any]:
    return n, _magnitude(x, axis=axis, n=n)


_VALUES_ALONE: Final[dict[str, Any]] = {"differentiable": False}
"""For lengths at which central differences take long: gradient rules are one for all lengths."""

_LAYOUTS: Final[list[tuple[str, Array, dict[str, Any]]]] = [
    *[(f"{length} elements", floats(2, length), {"axis": 1, "n": length}) for length in _LENGTHS],
    ("cropped", floats(2, 9), {"axis": 1, "n": 6}),
    ("padded", floats(2, 5), {"axis": 1, "n": 8}),
    ("padded to an odd length", floats(5), {"axis": 0, "n": 9}),
    ("first axis", floats(6, 3), {"axis": 0, "n": 6}),
    ("middle axis", floats(2, 5, 3), {"axis": 1, "n": 5}),
    ("empty batch", floats(0, 4), {"axis": 1, "n": 4}),
    ("no elements, padded", floats(2, 0), {"axis": 1, "n": 3}),
    ("two factors", floats(130), {"axis": 0, "n": 130, **_VALUES_ALONE}),
    ("three factors", floats(30), {"axis": 0, "n": 5 * 13 * 13, **_VALUES_ALONE}),
    ("a large prime", floats(2, 67), {"axis": 1, "n": 67, **_VALUES_ALONE}),
    ("a large prime and a factor", floats(201), {"axis": 0, "n": 201, **_VALUES_ALONE}),
    ("transposed", transposed(floats(3, 6)), {"axis": 1, "n": 6}),
    ("strided", strided(floats(3, 6)), {"axis": 1, "n": 6}),
    ("reversed", reversed_view(floats(3, 6)), {"axis": 0, "n": 3}),
    ("expanded", expanded(floats(6), 3, 6), {"axis": 0, "n": 3}),
]


def _real_samples() -> list[Sample]:
    return [sample(note, array, **attributes) for note, array, attributes in _LAYOUTS]


def _complex_samples(**more: Any) -> list[Sample]:
    return [
        sample(note, array, floats(*array.shape, phase=0.1), **attributes, **more)
        for note, array, attributes in _LAYOUTS
    ]


_PAIR_ERRORS: Final = [
    error("parts differ in shape", ShapeError, floats(4), floats(1), axis=0, n=4),
    error("pair without elements", ArgumentError, floats(4), floats(4), axis=0, n=0),
    error("pair, axis out of range", AxisError, floats(4), floats(4), axis=1, n=4),
    error("pair, negative axis", AxisError, floats(4), floats(4), axis=-1, n=4, lenient=True),
]

reference(
    "rfft",
    samples=_real_samples(),
    errors=[
        error("without elements", ArgumentError, floats(4), axis=0, n=0),
        error("negative length", ArgumentError, floats(4), axis=0, n=-2),
        error("axis out of range", AxisError, floats(4), axis=1, n=4),
        error("negative axis", AxisError, floats(4), axis=-1, n=4, lenient=True),
    ],
    terms=_rfft_terms,
)(_rfft)


def _irfft(re: Array, im: Array, *, axis: int, n: int) -> Array:
    # Fitted first: NumPy returns whatever was in memory where there is no spectrum.
    spectrum = _fitted(re + 1j * im, axis, n // 2 + 1)
    return np.fft.irfft(spectrum, n, axis)


def _irfft_terms(re: Array, im: Array, *, axis: int, n: int) -> tuple[Any, Any]:
    return n, 2.0 * _magnitude(re, im, axis=axis, n=n // 2 + 1) / n


reference("irfft", samples=_complex_samples(), errors=_PAIR_ERRORS, terms=_irfft_terms)(_irfft)


def _cfft(re: Array, im: Array, *, axis: int, n: int, inverse: bool = False) -> tuple[Array, Array]:
    signal = re + 1j * im
    spectrum = np.fft.ifft(signal, n, axis) * n if inverse else np.fft.fft(signal, n, axis)
    return spectrum.real, spectrum.imag


def _cfft_terms(
    re: Array, im: Array, *, axis: int, n: int, inverse: bool = False
) -> tuple[Any, Any]:
    del inverse
    return n, _magnitude(re, im, axis=axis, n=n)


reference(
    "cfft",
    samples=[
        *_complex_samples(),
        sample("inverse", floats(2, 6), floats(2, 6, phase=0.1), axis=1, n=6, inverse=True),
        sample("inverse, padded", floats(2, 3), floats(2, 3, phase=0.1), axis=0, n=5, inverse=True),
    ],
    errors=_PAIR_ERRORS,
    terms=_cfft_terms,
)(_cfft)
