"""Samples of codes and scales of quantized tensors.

Results are equal to the bit: each is rounded as `burn.testing.quantization_reference` says.
"""

from __future__ import annotations

import numpy as np

import burn.testing.quantization_reference as of
from burn.errors import DTypeError, ShapeError
from burn.quant_scheme import QuantScheme, QuantValue, ScaleDType
from burn.testing.arrays import (
    SPECIAL,
    expanded,
    floats,
    long,
    reversed_view,
    strided,
    transposed,
)
from burn.testing.op_samples import Array, Sample, error, reference, sample
from burn.testing.samples.quantized._quantized import (
    INT8,
    ROWS,
    SCHEMES,
    TWO_LEVELS,
    WORDS,
    X,
    quantized,
    scheme_of,
)


def _ties(scheme: QuantScheme) -> Array:
    """Every number of a value, what is halfway between two, and what lies beyond both ends."""
    codes = np.arange(2**scheme.value.bits)
    if not scheme.value.is_float:
        codes = codes - codes.size // 2
    numbers = of.numbers_of(scheme.value, codes.astype(np.int64))
    numbers = np.unique(numbers[np.isfinite(numbers)])
    between = (numbers[1:] + numbers[:-1]) / 2
    return np.concatenate([numbers, between, 2.0 * numbers[[0, -1]], SPECIAL])


_HUGE = np.array([[1.0, -1.0, 0.9, -0.7, 0.5, -0.3, 0.0, -0.1]] * 3) * 3.4e38
"""Numbers up to the largest of float32; of 16 bits they are infinite."""


def _with_scales(note: str, scheme: QuantScheme, x: Array = X) -> Sample:
    _, scales, global_scale = quantized(scheme)
    return sample(note, x, scales, global_scale, scheme=scheme)


@reference(
    "quantize_values",
    samples=[
        *[_with_scales(note, scheme) for note, scheme in (SCHEMES | TWO_LEVELS).items()],
        *[
            sample(
                f"ties of {value.name}", _ties(scheme), np.ones(1, np.float32), None, scheme=scheme
            )
            for value in QuantValue
            for scheme in [scheme_of(value)]
        ],
        sample("numbers of one code", X, np.array([1e30], np.float32), None, scheme=INT8),
        sample("a scale of 0", floats(5), np.zeros(1, np.float32), None, scheme=INT8),
        sample("a scale of NaN", floats(5), np.array([np.nan], np.float32), None, scheme=INT8),
        sample(
            "an infinite scale", long(SPECIAL), np.array([np.inf], np.float32), None, scheme=INT8
        ),
        sample(
            "bits of NaN as scales",
            floats(2, 4),
            np.array([[127], [255]], np.uint8),
            None,
            scheme=scheme_of(QuantValue.Q8S, 4, scale=ScaleDType.UE4M3),
        ),
        sample(
            "the smallest scales",
            floats(2, 4, low=-0.1, high=0.1),
            np.array([[1], [0]], np.uint8),
            None,
            scheme=scheme_of(QuantValue.E4M3, 4, scale=ScaleDType.UE4M3),
        ),
        *[
            sample(
                f"codes of {value.name} whose products are infinite",
                _HUGE,
                np.array([[2.7e36], [3.4e38 / most], [3.4e38]], np.float32),
                None,
                scheme=scheme_of(value, 8),
            )
            for value in QuantValue
            for most in [max(map(abs, value.range))]
        ],
        sample("0-d", floats(), np.array([0.25], np.float32), None, scheme=INT8),
        sample("empty", floats(0, 8), np.zeros(1, np.float32), None, scheme=INT8),
        sample(
            "empty blocks",
            floats(0, 8),
            np.zeros((0, 1), np.float32),
            None,
            scheme=scheme_of(QuantValue.Q4F, -1, 8, store=WORDS),
        ),
        _with_scales("transposed", SCHEMES["int4 in words"], transposed(X)),
        _with_scales("strided", SCHEMES["E2M1 in bytes"], strided(X)),
        _with_scales("reversed", SCHEMES["int2 in words"], reversed_view(X)),
        _with_scales("expanded", INT8, expanded(floats(16), 8, 16)),
        sample(
            "strided scales",
            X,
            transposed(quantized(scheme_of(QuantValue.Q8S, 1, 4)).scales),
            None,
            scheme=scheme_of(QuantValue.Q8S, 1, 4),
        ),
    ],
    errors=[
        error(
            "blocks that do not divide",
            ShapeError,
            floats(3, 5),
            np.ones((3, 2), np.float32),
            None,
            scheme=scheme_of(QuantValue.Q8S, 1, 2),
        ),
        error(
            "words that do not divide",
            ShapeError,
            floats(3, 5),
            np.ones(1, np.float32),
            None,
            scheme=SCHEMES["int8 in words"],
        ),
        error(
            "a packed axis that is not there",
            ShapeError,
            floats(8),
            np.ones(1, np.float32),
            None,
            scheme=scheme_of(QuantValue.Q4F, store=ROWS),
        ),
        error(
            "a block of more axes",
            ShapeError,
            floats(8),
            np.ones(1, np.float32),
            None,
            scheme=scheme_of(QuantValue.Q8S, 1, 8),
        ),
        error(
            "scales of another shape",
            ShapeError,
            floats(4),
            np.ones(2, np.float32),
            None,
            scheme=INT8,
        ),
        error(
            "scales of another dtype",
            DTypeError,
            floats(4),
            np.ones(1),
            None,
            scheme=INT8,
            lenient=True,
        ),
        error(
            "a global scale of one level",
            ShapeError,
            floats(4),
            np.ones(1, np.float32),
            np.ones(1, np.float32),
            scheme=INT8,
        ),
        error(
            "two levels without a global scale",
            ShapeError,
            floats(2, 8),
            np.ones((2, 1), np.uint8),
            None,
            scheme=TWO_LEVELS["two levels"],
        ),
    ],
    exact=True,
    widens=False,
)
def _(x: Array, scales: Array, global_scale: Array | None, *, scheme: QuantScheme) -> Array:
    return of.pack(of.quantize_values(x, scales, global_scale, scheme), scheme)


@reference(
    "quantize_dynamic",
    samples=[
        *[sample(note, X, scheme=scheme) for note, scheme in SCHEMES.items()],
        sample(
            "zeros", np.zeros((2, 8)), scheme=scheme_of(QuantValue.Q8S, 4, scale=ScaleDType.UE4M3)
        ),
        sample(
            "zeros and powers of two",
            np.zeros((2, 8)),
            scheme=scheme_of(QuantValue.Q8S, 4, scale=ScaleDType.UE8M0),
        ),
        sample(
            "a block of zeros",
            np.stack([np.zeros(8), floats(8)]),
            scheme=scheme_of(QuantValue.Q4S, 8),
        ),
        sample("one negative number", np.array([-2.5]), scheme=scheme_of(QuantValue.Q8F)),
        sample("special numbers", SPECIAL, scheme=INT8),
        sample(
            "blocks of special numbers",
            np.array([[np.nan, 1.0], [np.inf, 1.0], [-np.inf, -1.0], [-0.0, 0.0], [3.0, -1.0]]),
            scheme=scheme_of(QuantValue.Q8S, 2),
        ),
        *[
            sample(
                f"special numbers and scales of {scale.value}",
                np.array([[np.nan, 1.0], [np.inf, 1.0], [-0.0, 0.0], [3.0, -1.0]]),
                scheme=scheme_of(QuantValue.E4M3, 2, scale=scale),
            )
            for scale in (ScaleDType.F16, ScaleDType.UE8M0, ScaleDType.UE4M3)
        ],
        sample(
            "scales beyond UE4M3",
            np.array([[6e4], [5e4], [1.0]]),
            scheme=scheme_of(QuantValue.Q8S, 1, 1, scale=ScaleDType.UE4M3),
        ),
        *[
            sample(
                f"{note} beyond {scale.value}",
                np.concatenate([[3e38, -1e7, 6e4], floats(61)]).reshape(2, 32),
                scheme=scheme_of(QuantValue.Q4S, *block, scale=scale),
            )
            for scale in (ScaleDType.F16, ScaleDType.BF16, ScaleDType.UE4M3)
            for note, block in (("blocks", (1, 32)), ("a tensor", ()))
        ],
        sample("0-d", floats(), scheme=INT8),
        sample("empty", floats(0, 8), scheme=SCHEMES["int8 in words"]),
        sample("empty blocks", floats(2, 0), scheme=scheme_of(QuantValue.Q8S, 1, -1)),
        sample("no blocks", floats(0, 8), scheme=scheme_of(QuantValue.Q4F, 2, 8, store=WORDS)),
        sample("five axes", floats(2, 2, 2, 2, 4), scheme=scheme_of(QuantValue.Q8F, 1, 2, 1, 2, 2)),
        sample("fewer axes in a block", floats(3, 2, 4), scheme=scheme_of(QuantValue.Q8S, 2)),
        sample("transposed", transposed(X), scheme=SCHEMES["int4 in words"]),
        sample("strided", strided(X), scheme=SCHEMES["E4M3 in words"]),
        sample("reversed", reversed_view(X), scheme=SCHEMES["int4 in bytes"]),
        sample("expanded", expanded(floats(16), 8, 16), scheme=SCHEMES["int2"]),
    ],
    errors=[
        error(
            "blocks that do not divide",
            ShapeError,
            floats(3, 5),
            scheme=scheme_of(QuantValue.Q8S, 2),
        ),
        error(
            "words that do not divide", ShapeError, floats(3, 6), scheme=SCHEMES["int8 in words"]
        ),
        error("two levels", ShapeError, floats(2, 8), scheme=TWO_LEVELS["two levels"]),
    ],
    exact=True,
    widens=False,
)
def _(x: Array, *, scheme: QuantScheme) -> tuple[Array, Array]:
    quantized = of.quantize(x, scheme)
    return quantized.values, quantized.scales


def _beside(scale: ScaleDType) -> Array:
    """Numbers of a dtype of scales, and their float32 neighbours."""
    table = of.scale_numbers(scale) if scale is not ScaleDType.F32 else np.array([1.0, 0.1, 3e-5])
    normal = table[(table >= 2.0**-100) & (table <= 2.0**100)]
    chosen = normal[:: -(-normal.size // 60)].astype(np.float32)
    above = np.nextafter(chosen, np.float32(np.inf))
    below = np.nextafter(chosen, np.float32(0.0))
    return np.concatenate([chosen, above, below]).astype(np.float64)


@reference(
    "round_up_scales",
    samples=[
        *[
            sample(f"{scale.value}", _beside(scale), scheme=scheme_of(QuantValue.Q8S, scale=scale))
            for scale in ScaleDType
        ],
        *[
            sample(
                f"special numbers in {scale.value}",
                long(np.array([np.nan, np.inf, 0.0, 1e-4])),
                scheme=scheme_of(QuantValue.Q8S, scale=scale),
            )
            for scale in ScaleDType
        ],
        *[
            sample(
                f"too large for {scale.value}",
                np.array([3e38, 5e4, 448.0, 450.0]),
                scheme=scheme_of(QuantValue.Q8S, scale=scale),
            )
            for scale in ScaleDType
        ],
        sample("matrix", floats(2, 3, low=0.0), scheme=SCHEMES["int4 in words"]),
        sample("0-d", np.array(0.3), scheme=SCHEMES["int4 in words"]),
        sample("empty", floats(0, 3), scheme=SCHEMES["int4 in words"]),
        sample("transposed", transposed(floats(4, 3, low=0.0)), scheme=SCHEMES["E2M1"]),
        sample("strided", strided(floats(4, 3, low=0.0)), scheme=SCHEMES["int2"]),
    ],
    exact=True,
    widens=False,
)
def _(scales: Array, *, scheme: QuantScheme) -> Array:
    return of.round_up(scales, scheme.scale_dtype)
