"""Samples of the parts of complex numbers, and complex samples of ops that have real ones.

Those of products and decompositions of matrices stand beside the real ones.

Of infinite and NaN parts only those are tried for which NumPy gives what the standard says.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from burn.dtype import Kind, bool_, complex64, complex128, float32, int32, uint8
from burn.errors import DTypeError
from burn.testing.arrays import (
    SPECIAL,
    booleans,
    complexes,
    expanded,
    floats,
    pairs,
    reversed_view,
    strided,
    transposed,
)
from burn.testing.op_samples import (
    INDEX_DTYPE,
    SAMPLES,
    TESTED_DTYPE,
    Array,
    Reference,
    Sample,
    also_for_complex,
    error,
    reference,
    sample,
)
from burn.testing.samples.arrays import (
    data_dependent,
    indexing,
    layout,
    reduction,
    scan,
    scatter,
    slicing,
)
from burn.testing.samples.elementwise import arithmetic, comparison, unary_functions
from burn.testing.samples.elementwise.elementwise_samples import unary_floats, unary_integers

ADDED_TO: Final = (
    *(arithmetic, comparison, data_dependent, unary_functions, indexing, layout, reduction, scan),
    *(scatter, slicing),
)
"""The modules whose ops get complex samples here."""


def _unary(prefix: str = "complex ", **attributes: Any) -> list[Sample]:
    """Complex numbers in every layout."""
    return [
        sample(f"{prefix}0-d", complexes(), **attributes),
        sample(f"{prefix}vector", complexes(9), **attributes),
        sample(f"{prefix}empty", complexes(0, 3), **attributes),
        sample(f"{prefix}transposed", transposed(complexes(3, 4)), **attributes),
        sample(f"{prefix}strided", strided(complexes(2, 3)), **attributes),
        sample(f"{prefix}reversed", reversed_view(complexes(5)), **attributes),
        sample(f"{prefix}expanded", expanded(complexes(3), 2, 3), **attributes),
    ]


def _binary() -> list[Sample]:
    """Pairs of complex numbers: every way in which they meet."""
    return [
        sample("complex 0-d", complexes(), complexes(phase=0.2)),
        sample("complex", complexes(2, 3), complexes(2, 3, phase=0.2)),
        sample("complex, broadcast", complexes(3, 1), complexes(4, phase=0.2)),
        sample("complex, empty", complexes(0, 4), complexes(4)),
        sample("complex, number right", complexes(2, 3), 1.5 - 0.5j),
        sample("complex, number left", 0.5 + 2j, complexes(2, 3)),
        sample("complex, real number", complexes(2, 3), 2.5),
        sample("complex 0-d, number", complexes(), 1.5 - 0.5j),
        sample("complex, views", transposed(complexes(3, 4)), strided(complexes(3, 4, phase=0.2))),
    ]


_PARTS_TRIED: Final = np.append(SPECIAL, 1.5)
_SPECIAL: Final = np.array([complex(a, b) for a in _PARTS_TRIED for b in _PARTS_TRIED])
"""Each special float, or a finite one, as real part with each as imaginary part."""

_INTEGER_ERRORS = [error("booleans", DTypeError, booleans(3))]

reference(
    "real",
    samples=[*unary_floats(), *unary_integers(), *_unary(), sample("parts", _SPECIAL)],
    errors=_INTEGER_ERRORS,
    exact=True,
)(np.real)
reference(
    "imag",
    samples=[*unary_floats(), *unary_integers(), *_unary(), sample("parts", _SPECIAL)],
    errors=_INTEGER_ERRORS,
    exact=True,
)(np.imag)
reference(
    "conj",
    samples=[*unary_floats(), *unary_integers(), *_unary(), sample("parts", _SPECIAL)],
    errors=_INTEGER_ERRORS,
    exact=True,
)(np.conj)


def _complex(real: Array, imag: Array) -> Array:
    result = np.empty(np.broadcast_shapes(real.shape, imag.shape), np.complex128)
    result.real = real
    result.imag = imag
    return result


reference(
    "complex",
    samples=[
        sample("0-d", floats(), floats(phase=0.1)),
        sample("broadcast", floats(3, 1), floats(4, phase=0.1)),
        sample("empty", floats(0), floats(1)),
        sample("views", transposed(floats(3, 4)), strided(floats(3, 4, phase=0.1))),
        sample("special floats", *pairs(SPECIAL)),
    ],
    exact=True,
)(_complex)

for _name in ("add", "subtract", "multiply"):
    also_for_complex(_name, samples=_binary())
also_for_complex(
    "unique_rows_indices",
    samples=[
        sample("complex rows", np.array([[2j, 1.0], [1.0 - 1j, 0.0], [2j, 1.0]]), dtype=INDEX_DTYPE)
    ],
)
also_for_complex("divide", samples=_binary(), reference=np.divide)
also_for_complex(
    "pow",
    samples=[
        *_binary(),
        sample("complex, to a whole power", complexes(5), 2 + 0j),
        sample("complex, to no power", complexes(5), 0j),
    ],
    reference=np.power,
)
for _name in ("equal", "not_equal"):
    also_for_complex(
        _name,
        samples=[
            *_binary(),
            sample("complex, equal", complexes(4), complexes(4)),
            sample("complex, parts differ", complexes(3), complexes(3) + np.array([0, 1, 1j])),
            sample("complex, special parts", _SPECIAL[:, None], _SPECIAL[::2]),
        ],
    )
also_for_complex(
    "where",
    samples=[
        sample("complex", booleans(3, 1), complexes(4), complexes(3, 4, phase=0.2)),
        sample("complex and number", booleans(4), 1j, complexes(4)),
        sample("complex, special parts", booleans(_SPECIAL.size), _SPECIAL, np.flip(_SPECIAL)),
    ],
)

also_for_complex(
    "round",
    samples=[
        *_unary(),
        sample("complex halves", np.array([0.5 - 1.5j, 2.5 + 0.5j, -0.5j, -2.5])),
        sample("complex, special parts", _SPECIAL),
    ],
    reference=lambda x: _complex(np.rint(x.real), np.rint(x.imag)),
)

_SIMPLE: Final[dict[str, Reference | None]] = {
    "negative": None,
    "reciprocal": np.reciprocal,
    "square": None,
}
for _name, _function in _SIMPLE.items():
    also_for_complex(_name, samples=_unary(), reference=_function)
_TRIANGLES: Final = np.array([3 + 4j, -6 + 8j, 0.75 - 1j, -1.5 - 2j, 2j, -7.0])
"""Numbers whose magnitudes floats can hold."""

also_for_complex(
    "abs",
    samples=[
        sample("complex", _TRIANGLES),
        sample("complex 0-d", np.array(3 - 4j)),
        sample("complex, empty", complexes(0, 2)),
        sample("complex, strided", strided(_TRIANGLES)),
        sample("complex, special parts", _SPECIAL[:-1]),
    ],
    reference=np.abs,
)


def _complex_sign(x: Array) -> Array:
    """A number with a NaN has no sign, also where its other part is infinite."""
    return np.where(np.isnan(x), complex(np.nan, np.nan), np.sign(x))


also_for_complex(
    "sign",
    samples=[
        *_unary(),
        sample("complex zeros", _SPECIAL[_SPECIAL == 0.0]),
        sample("complex, with a NaN", _SPECIAL[np.isnan(_SPECIAL)]),
    ],
    reference=_complex_sign,
)

for _name in (
    *("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "sin", "cos", "tan", "tanh"),
    *("sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh"),
):
    also_for_complex(
        _name, samples=[*_unary(), sample("complex, larger", complexes(20, low=-9.0, high=9.0))]
    )


def _of_parts(function: Reference, combine: Reference) -> Reference:
    return lambda x: combine(function(x.real), function(x.imag))


_PARTS: Final[dict[str, Reference]] = {
    "isnan": _of_parts(np.isnan, np.logical_or),
    "isinf": _of_parts(np.isinf, np.logical_or),
    "isfinite": _of_parts(np.isfinite, np.logical_and),
}
for _name, _function in _PARTS.items():
    also_for_complex(
        _name,
        samples=[*_unary(), sample("complex, special parts", _SPECIAL)],
        reference=_function,
    )


def _over(function: Any) -> Reference:
    def call(
        x: Array, *, axis: tuple[int, ...], keepdims: bool = False, dtype: Any = None
    ) -> Array:
        del dtype
        return np.asarray(function(x, axis=axis, keepdims=keepdims))

    return call


for _name, _reduction in (("sum", np.sum), ("prod", np.prod)):
    also_for_complex(
        _name,
        samples=[
            sample("complex rows", complexes(3, 4), axis=(1,), dtype=TESTED_DTYPE),
            sample("complex, all", complexes(2, 3), axis=(0, 1), dtype=TESTED_DTYPE),
            sample("complex, kept", complexes(2, 3), axis=(0,), keepdims=True, dtype=TESTED_DTYPE),
            sample("complex, none", complexes(0, 3), axis=(0,), dtype=TESTED_DTYPE),
            sample("complex in complex128", complexes(4), axis=(0,), dtype=complex128),
        ],
        reference=_over(_reduction),
    )


def _mean(x: Array, *, axis: tuple[int, ...], keepdims: bool = False) -> Array:
    return _complex(
        np.mean(x.real, axis=axis, keepdims=keepdims), np.mean(x.imag, axis=axis, keepdims=keepdims)
    )


also_for_complex(
    "mean",
    samples=[
        sample("complex rows", complexes(3, 4), axis=(1,)),
        sample("complex, all", complexes(3, 4), axis=(0, 1), keepdims=True),
    ],
    reference=_mean,
)
for _name, _scan in (("cumsum", np.cumsum), ("cumprod", np.cumprod)):
    also_for_complex(
        _name,
        samples=[
            sample("complex", complexes(3, 4), axis=1),
            sample("complex, transposed", transposed(complexes(3, 4)), axis=0),
            sample("complex, empty", complexes(0, 2), axis=0),
        ],
        reference=_scan,
    )
for _note, _dtype in (("complex64", complex64), ("complex128", complex128)):
    also_for_complex(
        "cast",
        samples=[sample(f"complex to {_note}", complexes(2, 3), dtype=_dtype)],
        reference=lambda x, **_: x,
    )
also_for_complex(
    "cast",
    samples=[sample("complex to bool", np.array([0, 1, 1j]), dtype=bool_)],
    reference=lambda x, *, dtype: x != 0 if dtype.is_bool else x,
)
_OVER_ALL: Final[dict[str, Any]] = {"axis": (0,)}
for _name, _attributes in (("cast", {}), ("sum", _OVER_ALL), ("prod", _OVER_ALL)):
    also_for_complex(
        _name,
        errors=[
            error(f"complex to {_dtype}", DTypeError, complexes(3), dtype=_dtype, **_attributes)
            for _dtype in (float32, int32, uint8)
        ],
    )
for _name in ("any", "all"):
    also_for_complex(_name, samples=[sample("complex", np.array([[0, 1j], [0, 0]]), axis=(1,))])

# Ops that move elements do not look at them: what they do with floats they do with these.
_MOVED: Final = (
    *("concat", "expand", "flip", "pad", "permute", "reshape", "slice", "slice_assign", "unfold"),
    *("gather", "gather_nd", "index_axis", "select"),
)


def _with_imaginary(operand: Any) -> Any:
    if isinstance(operand, list):
        return [_with_imaginary(part) for part in operand]
    if isinstance(operand, np.ndarray) and operand.dtype.kind == "f":
        return np.asarray(operand * (1 - 0.5j))
    return complex(operand, 2.0) if isinstance(operand, float) else operand


for _name in _MOVED:
    also_for_complex(
        _name,
        samples=[
            sample(f"complex, {item.note}", *map(_with_imaginary, item.operands), **item.attributes)
            for item in SAMPLES[_name].samples
            if item.kinds == Kind.FLOAT and item.note != "special floats"
        ],
    )

for _name in ("argwhere", "unique_indices"):
    also_for_complex(
        _name,
        samples=[
            sample(
                "complex", np.array([[2, 1j, 0], [1j, 0, -1j], [2, 2 - 1j, -2]]), dtype=INDEX_DTYPE
            )
        ],
    )

for _name in ("scatter", "scatter_nd", "select_assign"):
    also_for_complex(
        _name,
        samples=[
            sample(f"complex, {item.note}", *map(_with_imaginary, item.operands), **item.attributes)
            for item in SAMPLES[_name].samples
            if item.kinds == Kind.FLOAT and item.attributes["update"] not in ("min", "max")
        ],
    )
