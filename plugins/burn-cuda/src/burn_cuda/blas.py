"""Matrix products of a device: cuBLAS and cuBLASLt; in compiled programs what is the fastest."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
from cupy.cuda import cublas

from burn.plugin_api import Shape, bfloat16, complex64, complex128, float16, float32, float64
from burn_cuda.products import Products
from burn_cuda.small_products import TILES, launch_of, suits
from burn_cuda.streams import Streams

__all__ = ["Blas"]

Array = Any

_FLOAT32: Final = 0
_FLOAT64: Final = 1
_COMPLEX128: Final = 5
_CUDA_DATA_TYPES: Final = {
    float32.numpy: _FLOAT32,
    float64.numpy: _FLOAT64,
    float16.numpy: 2,
    bfloat16.numpy: 14,
    complex64.numpy: 4,
    complex128.numpy: _COMPLEX128,
}
"""cudaDataType of the dtypes that cuBLAS multiplies."""

_FACTOR_TYPES: Final = {
    kind: _FLOAT32 if kind in (2, 14) else kind for kind in _CUDA_DATA_TYPES.values()
}
"""cudaDataType of the factors of a product."""

_INT8, _INT32, _E4M3 = 3, 10, 28
"""cudaDataType of codes, and of the sums of products of integers."""

_COMPUTE_INT32: Final = 72
_COMPUTE_FLOAT32: Final = 68
_COMPUTE_FAST_TF32: Final = 77
_COMPUTE_FLOAT64: Final = 70
_DEFAULT_ALGORITHM: Final = -1
_ALIGNMENT: Final = 256
"""Bytes to which cuBLASLt expects memory to be aligned, unless it is told otherwise."""

_ALPHA_AND_BETA: Final = (np.array([1.0, 0.0], np.complex64), np.array([1.0, 0.0], np.complex128))
_FLOAT32_FACTORS, _FLOAT64_FACTORS = [
    (pair.ctypes.data, pair.ctypes.data + pair.itemsize) for pair in _ALPHA_AND_BETA
]
"""Host addresses of cuBLAS's alpha (1) and beta (0); real numbers are read from complex ones."""

_INTEGER_FACTORS: Final = np.array([1, 0], np.int32)


class Blas(Streams):
    """The products of one device.

    Attributes
    ----------
    tf32 : bool
        Whether float32 matrices may be multiplied in TF32.
    empty : callable
        From a shape and a dtype to a new array.
    """

    tf32: bool
    empty: Callable[[Shape, Any], Array]

    @contextlib.contextmanager
    def tuned_products(self) -> Iterator[None]:
        """Context in which products are computed by the algorithm that is fastest here.

        The first product of its kind is timed, which waits for the device.
        """
        self._thread.tunes = True
        try:
            yield
        finally:
            self._thread.tunes = False

    @functools.cached_property
    def _products(self) -> Products:
        return Products(self.empty, lambda: int(self.stream().ptr), self.elapsed)

    def gemm(
        self,
        a: Array,
        b: Array,
        out: Array,
        shape: tuple[int, int, int],
        *,
        transposed: tuple[bool, bool] = (False, False),
        leading: tuple[int, int] | None = None,
        strides: tuple[int, int, int] = (0, 0, 0),
        batch: int = 1,
        bias: Array = None,
    ) -> bool:
        """Matrix products of cuBLAS, of row-major matrices: ``out[i] = a[i] @ b[i] + bias``.

        Parameters
        ----------
        a, b, out : array
            The first matrix of each.
        shape : tuple of int
            Rows of `a`, columns of `b`, and terms of each sum.
        transposed : tuple of bool
            Whether the memory of `a`, and of `b`, holds the transposed matrix.
        leading : tuple of int, optional
            Elements between rows in the memory of `a`, and of `b`.
        strides : tuple of int
            Elements from one matrix to the next in `a`, in `b` and in `out`.
        batch : int
            Number of products.
        bias : array, optional
            A dense vector of the dtype of `out`.

        Returns
        -------
        bool
            False if there is a bias, and no algorithm that adds it here.
        """
        rows, columns, terms = shape
        if leading is None:
            leading = (rows if transposed[0] else terms, terms if transposed[1] else columns)
        kind, result = _CUDA_DATA_TYPES[a.dtype], _CUDA_DATA_TYPES[out.dtype]
        if kind in (_FLOAT64, _COMPLEX128):
            compute, factors = _COMPUTE_FLOAT64, _FLOAT64_FACTORS
        else:
            compute, factors = _COMPUTE_FLOAT32, _FLOAT32_FACTORS
            if self.tf32 and kind == _FLOAT32:
                compute = _COMPUTE_FAST_TF32
        one, zero = factors
        # cuBLAS is column-major: it multiplies the transposed matrices in reverse order.
        tunes = getattr(self._thread, "tunes", False)
        addresses: tuple[int, ...] = (b.address, a.address, out.address)
        if bias is not None:
            addresses = (*addresses, bias.address)
        if tunes or (bias is not None and not any(address % _ALIGNMENT for address in addresses)):
            groups = (
                (compute, _FACTOR_TYPES[kind], (kind, result)),
                ((columns, rows, terms), transposed[::-1], leading[::-1]),
                (batch, (strides[1], strides[0], strides[2]), bias is not None),
            )
            own: list[Callable[[], None]] = []
            if (
                tunes
                and kind == result == _FLOAT32
                and batch == 1
                and bias is None
                and suits(shape)
            ):
                own = [
                    functools.partial(
                        launch_of,
                        self.compile,
                        tile,
                        shape,
                        transposed,
                        leading,
                        (a.address, b.address, out.address),
                    )
                    for tile in TILES
                ]
            if self._products.run(groups, factors, addresses, own, tunes=tunes):
                return True
        if bias is not None:
            return False
        handle = self.device.cublas_handle
        flags = (int(transposed[1]), int(transposed[0]), columns, rows, terms)
        right, left = (b.address, kind, leading[1]), (a.address, kind, leading[0])
        target = (out.address, result, columns)
        ends = (compute, _DEFAULT_ALGORITHM)
        if batch == 1:
            cublas.gemmEx(handle, *flags, one, *right, *left, zero, *target, *ends)
            return True
        a_step, b_step, out_step = strides
        cublas.gemmStridedBatchedEx(
            handle,
            *flags,
            one,
            *right,
            b_step,
            *left,
            a_step,
            zero,
            *target,
            out_step,
            batch,
            *ends,
        )
        return True

    def multiply_codes(
        self,
        a: Array,
        b: Array,
        out: Array,
        shape: tuple[int, int, int],
        *,
        scales: tuple[Array, Array] | None = None,
        bias: Array = None,
    ) -> bool:
        """The product of 8-bit codes on tensor cores: ``out = a @ b.T``, which is scaled.

        The first product of integers of its kind is timed, which waits for the device.

        Parameters
        ----------
        a, b : array
            Dense matrices of int8, or of uint8 with the bits of E4M3. Their addresses are multiples
            of 16.
        out : array
            A dense matrix, of int32 for int8, else of float32 or of 16-bit floats.
        shape : tuple of int
            Rows of `a`, rows of `b`, and terms of each sum. All are multiples of 16, but the first
            of E4M3.
        scales : tuple of array, optional
            Of E4M3: scales in float32 of `a` and of `b`; one each, or one for each row of both.
        bias : array, optional
            A dense vector of the dtype of `out`, of 16 bits.

        Returns
        -------
        bool
            Whether the library has an algorithm for it here.
        """
        rows, columns, terms = shape
        is_float = a.dtype.itemsize == 1 and a.dtype.kind == "u"
        if is_float:
            kinds = (_COMPUTE_FLOAT32, _FLOAT32, (_E4M3, _CUDA_DATA_TYPES[out.dtype]))
            factors = _FLOAT32_FACTORS
        else:
            kinds = (_COMPUTE_INT32, _INT32, (_INT8, _INT32))
            first = _INTEGER_FACTORS.ctypes.data
            factors = (first, first + _INTEGER_FACTORS.itemsize)
        addresses = [b.address, a.address, out.address]
        addresses += [] if bias is None else [bias.address]
        scaling = ""
        if scales is not None:
            addresses += [scale.address for scale in reversed(scales)]
            scaling = "tensor" if scales[0].size == 1 and scales[1].size == 1 else "rows"
        groups = (
            kinds,
            ((columns, rows, terms), (True, False), (terms, terms)),
            (1, (0, 0, 0), bias is not None, scaling),
        )
        tunes = getattr(self._thread, "tunes", False)
        if not is_float:  # the sums are exact: the fastest algorithm gives what others give
            tunes = tunes or not self.is_capturing or self._products.is_tuned(groups)
        return self._products.run(groups, factors, tuple(addresses), tunes=tunes)
