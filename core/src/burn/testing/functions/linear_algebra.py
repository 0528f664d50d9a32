"""Calls of linear algebra, of Fourier transforms and of ``burn.signal``."""

from __future__ import annotations

from typing import Final

import numpy as np

from burn.errors import ShapeError
from burn.testing.arrays import complexes, floats
from burn.testing.function_samples import call, function_calls, wrong

_M: Final = floats(3, 4)
_SQUARE: Final = floats(2, 3, 3) + 4.0 * np.eye(3)
_POSITIVE: Final = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
_V: Final = floats(3)

function_calls("linalg.matmul", call("matrices", _M, floats(4, 2)), call("a vector", _M, floats(4)))
function_calls("linalg.tensordot", call("one axis", _M, floats(4, 2), axes=1))
function_calls("linalg.vecdot", call("rows", _M, floats(3, 4, phase=0.7)))
function_calls(
    "linalg.dot",
    call("vectors", _V, floats(3, phase=0.6)),
    errors=[wrong("of other lengths", ShapeError, floats(9), floats(3))],
)
function_calls("linalg.matvec", call("a vector", _M, floats(4)))
function_calls("linalg.outer", call("vectors", _V, floats(2)))
function_calls("linalg.outer_dim", call("rows", floats(2, 3), floats(2, 4)))
function_calls("linalg.cross", call("vectors", _V, floats(3, phase=0.6)))
function_calls("linalg.matrix_power", call("squared", _SQUARE, 2), call("inverted", _SQUARE, -1))
for _name in ("det", "inv", "slogdet", "eigvals", "eig", "lu", "lu_decomposition"):
    function_calls(
        f"linalg.{_name}", call("square", _SQUARE), needs_complex=_name.startswith("eig")
    )
for _name in ("matrix_rank", "pinv"):
    function_calls(
        f"linalg.{_name}",
        call("a matrix", _M),
        call("a bound", _M, rtol=0.01),
        call("a tensor of bounds", _M, rtol=np.array(0.01)),
    )
for _name in ("eigh", "eigvalsh", "cholesky"):
    function_calls(f"linalg.{_name}", call("symmetric", _POSITIVE))
function_calls(
    "linalg.solve", call("a vector", _SQUARE[0], _V), call("columns", _SQUARE, floats(3, 2))
)
function_calls("linalg.qr", call("reduced", _M), call("complete", _M, mode="complete"))
function_calls("linalg.svd", call("reduced", _M, full_matrices=False))
function_calls("linalg.svdvals", call("a matrix", _M))
function_calls(
    "linalg.cosine_similarity",
    call("rows", _M, floats(3, 4, phase=0.7)),
    call("squares beyond float16", _M * 300, floats(3, 4, phase=0.7) * 300),
)
for _name in ("l0_norm", "l1_norm", "l2_norm", "max_abs_norm", "min_abs_norm"):
    function_calls(f"linalg.{_name}", call("all", _M), call("an axis", _M, axis=1, keepdims=True))
function_calls("linalg.lp_norm", call("an axis", _M, 3, axis=1))
function_calls("linalg.matrix_norm", call("of Frobenius", _M), call("the largest sum", _M, ord=1))
function_calls("linalg.vector_norm", call("all", _M), call("of order 1", _M, axis=0, ord=1))
function_calls("linalg.vector_normalize", call("rows", _M))

for _name in ("fft", "ifft", "hfft", "irfft"):
    function_calls(
        f"fft.{_name}",
        call("complex", complexes(2, 5)),
        call("longer", complexes(2, 5), n=8, axis=0, norm="ortho"),
    )
for _name in ("rfft", "ihfft"):
    function_calls(
        f"fft.{_name}",
        call("real", _M),
        call("shorter", _M, n=3, norm="forward"),
        needs_complex=True,
    )
for _name in ("fftn", "ifftn", "irfftn"):
    function_calls(
        f"fft.{_name}",
        call("complex", complexes(2, 4)),
        call("an axis", complexes(2, 4), axes=(0,)),
        call("a shape", complexes(2, 4), s=(3, 2)),
    )
function_calls(
    "fft.rfftn", call("real", _M), call("a shape", _M, s=(2, 4), axes=(0, 1)), needs_complex=True
)
for _name in ("fftfreq", "rfftfreq"):
    function_calls(f"fft.{_name}", call("a length", 6), call("a distance", 5, d=0.5))
for _name in ("fftshift", "ifftshift"):
    function_calls(f"fft.{_name}", call("all", _M), call("an axis", _M, axes=1))

for _name in ("cfft", "icfft", "irfft"):
    function_calls(f"signal.{_name}", call("pairs", floats(2, 5), floats(2, 5, phase=0.6), n=4))
function_calls("signal.rfft", call("real", _M, n=4))
function_calls(
    "signal.stft",
    call("frames", floats(2, 16), n_fft=8, hop_length=4),
    call("a window", floats(2, 16), n_fft=8, win_length=6, window=floats(6, low=0.5)),
)
function_calls(
    "signal.istft",
    call("frames", floats(2, 5, 5), floats(2, 5, 5, phase=0.6), n_fft=8, hop_length=4),
    call(
        "a window",
        *[floats(2, 5, 9), floats(2, 5, 9, phase=0.6)],
        n_fft=8,
        win_length=6,
        window=floats(6, low=0.5),
        length=12,
    ),
)
