"""Matrix products by cuBLASLt: those of compiled programs, and those to which a vector is added.

A program gets the algorithm that is fastest on the device, others the first that the library names.
The library is called by ctypes. Each call has memory to work in of its own, so that a graph has no
nodes that allocate.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

__all__ = ["Products", "library"]

Array = Any

_log = logging.getLogger("burn")

_NAMES: Final = ("libcublasLt.so.13", "libcublasLt.so.12")
_WORKSPACE_BYTES: Final = 32 << 20
"""What NVIDIA recommends for Hopper."""

_CANDIDATES: Final = 12
"""Algorithms that are timed for each product."""

_TIMED_RUNS: Final = 3
_TRANSPOSE_FIRST: Final = 3
_TRANSPOSE_SECOND: Final = 4
_EPILOGUE: Final = 7
_BIAS: Final = 8
_FIRST_SCALE: Final = 17
_SECOND_SCALE: Final = 18
_FIRST_SCALE_MODE: Final = 31
_SECOND_SCALE_MODE: Final = 32
_BATCH_COUNT: Final = 5
_BATCH_STRIDE: Final = 6
_MAX_WORKSPACE: Final = 1
"""Attributes of descriptions of products, of matrices and of the search."""

_EPILOGUE_BIAS: Final = 4
_SCALE_VECTOR: Final = 3
"""The scales of an operand are a vector: one for each row of the first, or column of the second."""

_BYTE: Final = np.dtype(np.uint8)


class _Found(ctypes.Structure):
    """An algorithm: cublasLtMatmulHeuristicResult_t."""

    _fields_ = (
        ("algorithm", ctypes.c_uint64 * 8),
        ("workspace", ctypes.c_size_t),
        ("status", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


@functools.cache
def library() -> Any:
    """The library; None where it is not installed."""
    for name in _NAMES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


class _Failed(Exception):  # noqa: N818 — a status, which never leaves this module
    """A call returned a status other than 0."""


def _call(name: str, *arguments: Any) -> None:
    status = getattr(library(), name)(*arguments)
    if status:
        raise _Failed(f"{name} returned {status}")


class _Product:
    """A product with all that does not change from call to call."""

    def __init__(self) -> None:
        self.description = ctypes.c_void_p()
        self.layouts = [ctypes.c_void_p() for _ in range(3)]
        self.pointers: list[int] = []
        """The attributes that are addresses: of the vector, and of the scales of the operands."""
        self.pointed: list[int] = []
        """These addresses, as they are described."""
        self.call: _Call | None = None
        """The call with the algorithm that is used."""
        self.own: int | None = None
        """The number of the kernel that is used instead of it."""

    def point(self, addresses: Sequence[int]) -> None:
        """Describe addresses that have changed."""
        for index, (attribute, address) in enumerate(zip(self.pointers, addresses, strict=True)):
            if address != self.pointed[index]:
                _describe(self, attribute, ctypes.c_void_p(address))
                self.pointed[index] = address


class _Call:
    """A call of the library for a product, with an algorithm; addresses are set before each."""

    def __init__(
        self, handle: ctypes.c_void_p, product: _Product, found: _Found, factors: tuple[int, int]
    ) -> None:
        pointer = ctypes.c_void_p
        self.product = product
        self.workspace = int(found.workspace)
        self._a, self._b, self._out, self._space, self._stream = [pointer() for _ in range(5)]
        first, second, result = product.layouts
        one, zero = factors
        self._arguments = (
            *(handle, product.description, pointer(one), self._a, first, self._b, second),
            *(pointer(zero), self._out, result, self._out, result),
            *(ctypes.byref(found.algorithm), self._space, ctypes.c_size_t(found.workspace)),
            self._stream,
        )

    def launch(self, addresses: tuple[int, ...], space: int, stream: int) -> None:
        """Compute the product of some memory, with that of the vector and of scales last."""
        self._a.value, self._b.value, self._out.value, *others = addresses
        self._space.value, self._stream.value = space, stream
        self.product.point(others)
        _call("cublasLtMatmul", *self._arguments)


class Products:
    """Products of one device.

    Parameters
    ----------
    empty : callable
        From a shape and a dtype to a new array.
    stream : callable
        Address of the current stream.
    elapsed : callable
        From a function to the milliseconds that the device takes for what it launches.
    """

    def __init__(
        self,
        empty: Callable[[tuple[int, ...], Any], Array],
        stream: Callable[[], int],
        elapsed: Callable[[Callable[[], None]], float],
    ) -> None:
        self._empty = empty
        self._stream = stream
        self._elapsed = elapsed
        self._lock = threading.Lock()
        self._known: dict[Any, _Product | None] = {}
        self._tuned: dict[Any, _Product | None] = {}
        self._handle = ctypes.c_void_p()

    def is_tuned(self, key: tuple[Any, ...]) -> bool:
        """Whether the algorithms of a product have been timed."""
        return key in self._tuned

    def run(
        self,
        key: tuple[Any, ...],
        factors: tuple[int, int],
        addresses: tuple[int, ...],
        own: Sequence[Callable[[], None]] = (),
        *,
        tunes: bool = True,
    ) -> bool:
        """Compute a product; return whether the library took it.

        Parameters
        ----------
        key : tuple
            The arguments of ``_described``, in groups.
        factors : tuple of int
            Host addresses of the factors of the product and of the old result.
        addresses : tuple of int
            Of the operands and the result, as of column-major matrices; of the vector that is
            added to each column, if the key has one; and of the scales of both operands.
        own : sequence of callable
            Kernels of this plugin that compute it: one of them may be the fastest.
        tunes : bool
            Whether the first call times the algorithms, which waits for the device. What is found
            is for other calls that tune alone: results do not depend on what was called before.
        """
        known = self._tuned if tunes else self._known
        with self._lock:
            try:
                product = known[key]
            except KeyError:
                product = known[key] = self._chosen(key, factors, addresses, own, tunes=tunes)
            if product is None or product.call is None:
                return False
            if product.own is not None:
                own[product.own]()
                return True
            try:
                self._launch(product.call, addresses)
            except _Failed as error:
                _log.debug("cuBLASLt fails: %s", error)
                known[key] = None
                return False
            return True

    def _chosen(
        self,
        key: tuple[Any, ...],
        factors: tuple[int, int],
        addresses: tuple[int, ...],
        own: Sequence[Callable[[], None]],
        *,
        tunes: bool,
    ) -> _Product | None:
        """The description of a product, with its algorithm."""
        try:
            if not self._handle:
                _call("cublasLtCreate", ctypes.byref(self._handle))
            product = _described(*[item for group in key for item in group])
            product.point(addresses[3:])  # the library looks at them when it names algorithms
            calls = [
                _Call(self._handle, product, found, factors)
                for found in self._candidates(product, _CANDIDATES if tunes else 1)
            ]
            if tunes:
                self._tune(product, calls, addresses, own)
            elif calls:
                product.call = calls[0]
        except (_Failed, AttributeError) as error:
            _log.debug("cuBLASLt does not take %s: %s", key, error)
            return None
        return product

    def _tune(
        self,
        product: _Product,
        calls: list[_Call],
        addresses: tuple[int, ...],
        own: Sequence[Callable[[], None]],
    ) -> None:
        """Choose the call that takes the least time, or a kernel of this plugin."""
        times = []
        for call in calls:
            try:
                times.append(
                    (self._fastest(functools.partial(self._launch, call, addresses)), call)
                )
            except _Failed as error:
                _log.debug("cuBLASLt does not run an algorithm: %s", error)
        if not times:
            return
        fastest, product.call = min(times, key=lambda time: time[0])
        for number, kernel in enumerate(own):
            time = self._fastest(kernel)
            if time < fastest:
                fastest, product.own = time, number

    def _fastest(self, launch: Callable[[], None]) -> float:
        """The milliseconds of a launch, once it has been warmed up."""
        launch()
        return min([self._elapsed(launch) for _ in range(_TIMED_RUNS)])

    def _candidates(self, product: _Product, wanted: int) -> list[_Found]:
        """Algorithms, the one that the library expects to be the fastest first."""
        preference = ctypes.c_void_p()
        _call("cublasLtMatmulPreferenceCreate", ctypes.byref(preference))
        limit = ctypes.c_size_t(_WORKSPACE_BYTES)
        _call(
            "cublasLtMatmulPreferenceSetAttribute",
            *(preference, _MAX_WORKSPACE, ctypes.byref(limit), ctypes.sizeof(limit)),
        )
        results, count = (_Found * wanted)(), ctypes.c_int()
        first, second, result = product.layouts
        _call(
            "cublasLtMatmulAlgoGetHeuristic",
            *(self._handle, product.description, first, second, result, result),
            *(preference, wanted, results, ctypes.byref(count)),
        )
        _call("cublasLtMatmulPreferenceDestroy", preference)
        return [result for result in results[: count.value] if result.status == 0]

    def _launch(self, call: _Call, addresses: tuple[int, ...]) -> None:
        space = None
        if call.workspace:
            space = self._empty((call.workspace,), _BYTE)
        call.launch(addresses, 0 if space is None else space.address, self._stream())


def _described(
    compute: int,
    scale: int,
    kinds: tuple[int, int],
    shape: tuple[int, int, int],
    transposed: tuple[bool, bool],
    leading: tuple[int, int],
    batch: int,
    strides: tuple[int, int, int],
    has_bias: bool,
    scaling: str = "",
) -> _Product:
    """The description of a product of column-major matrices.

    Parameters
    ----------
    compute, scale : int
        cublasComputeType_t, and cudaDataType of the factors.
    kinds : tuple of int
        cudaDataType of the operands, and of the result.
    shape : tuple of int
        Rows and columns of the result, and terms of each sum.
    transposed : tuple of bool
        Whether the memory of each operand holds the transposed matrix.
    leading : tuple of int
        Elements between columns in the memory of each operand.
    batch : int
        Number of products.
    strides : tuple of int
        Elements from one matrix to the next of each operand and of the result.
    has_bias : bool
        Whether a vector is added to each column before the result is rounded.
    scaling : {"", "tensor", "rows"}
        Whether the operands have scales, of float32: one each, or vectors.
    """
    product = _Product()
    _call("cublasLtMatmulDescCreate", ctypes.byref(product.description), compute, scale)
    _describe(product, _TRANSPOSE_FIRST, ctypes.c_int32(int(transposed[0])))
    _describe(product, _TRANSPOSE_SECOND, ctypes.c_int32(int(transposed[1])))
    if has_bias:
        _describe(product, _EPILOGUE, ctypes.c_int32(_EPILOGUE_BIAS))
        product.pointers.append(_BIAS)
    if scaling:
        product.pointers += [_FIRST_SCALE, _SECOND_SCALE]
    if scaling == "rows":
        _describe(product, _FIRST_SCALE_MODE, ctypes.c_int32(_SCALE_VECTOR))
        _describe(product, _SECOND_SCALE_MODE, ctypes.c_int32(_SCALE_VECTOR))
    product.pointed = [0] * len(product.pointers)
    rows, columns, terms = shape
    sizes = (
        (kinds[0], (terms, rows) if transposed[0] else (rows, terms), leading[0]),
        (kinds[0], (columns, terms) if transposed[1] else (terms, columns), leading[1]),
        (kinds[1], (rows, columns), rows),
    )
    for layout, (kind, (m, n), step), stride in zip(product.layouts, sizes, strides, strict=True):
        _call(
            "cublasLtMatrixLayoutCreate",
            *(ctypes.byref(layout), kind, ctypes.c_uint64(m), ctypes.c_uint64(n)),
            ctypes.c_int64(step),
        )
        if batch > 1:
            count, distance = ctypes.c_int32(batch), ctypes.c_int64(stride)
            for attribute, cell in ((_BATCH_COUNT, count), (_BATCH_STRIDE, distance)):
                _call(
                    "cublasLtMatrixLayoutSetAttribute",
                    *(layout, attribute, ctypes.byref(cell), ctypes.sizeof(cell)),
                )
    return product


def _describe(product: _Product, attribute: int, value: Any) -> None:
    """Set an attribute of the description of a product."""
    _call(
        "cublasLtMatmulDescSetAttribute",
        *(product.description, attribute, ctypes.byref(value), ctypes.sizeof(value)),
    )
