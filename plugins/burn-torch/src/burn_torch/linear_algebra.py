"""Matrix products, and decompositions by torch.linalg."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, Final

import torch

from burn.plugin_api import REGISTRY, DType, broadcast_shapes
from burn_torch.base import TorchOps
from burn_torch.dtypes import HALF_FLOATS, TORCH_DTYPES, Tensor
from burn_torch.precision import in_float32
from burn_torch.settings import without_autocast

_matmul, _addmm, _linear = torch.matmul, torch.addmm, torch.nn.functional.linear
_mm, _flatten = torch.mm, torch.flatten
_linalg: Any = torch.linalg
_EXACT_DTYPES: Final = frozenset([torch.float32, torch.float64])
"""Dtypes whose products torch computes exactly on every device, unless it is set otherwise."""


def _or_on_host(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: where torch raises, the host implementation computes, or raises burn's error."""
    name = method.__name__
    computed = in_float32(method)

    @functools.wraps(method)
    def call(self: Any, *operands: Any, **attributes: Any) -> Any:
        try:
            return computed(self, *operands, **attributes)
        except (RuntimeError, IndexError):  # LinAlgError is a RuntimeError
            host: Any = REGISTRY[name].host
            return host(self.ops, *operands, **attributes)

    return call


class LinearAlgebraOps(TorchOps):
    """Matrices, which are the last two axes."""

    def matmul(self, x1: Tensor, x2: Tensor) -> Tensor:
        """`torch.matmul`, of matrices only."""
        rank, other = x1.dim(), x2.dim()
        if rank < 2 or other < 2:
            raise ValueError("matrices have two axes or more")
        dtype = x1.dtype
        if self._is_exact(dtype):
            result = _mm(x1, x2) if rank == other == 2 else _matmul(x1, x2)
            if result.dtype is dtype:  # under autocast it is not
                return result
        if not self.on_host and not (dtype.is_floating_point or dtype.is_complex):
            return _of_integers(x1, x2)
        return self._product(_matmul, x1, x2)

    def linear(
        self, x: Tensor, weight: Tensor, bias: Tensor | None, *, transposed: bool = False
    ) -> Tensor:
        """`torch.nn.functional.linear` if transposed, else `torch.addmm`."""
        dtype = x.dtype
        if transposed and dtype in HALF_FLOATS:  # torch's linear may round before it adds the bias
            weight, transposed = weight.mT, False
        if weight.dim() != 2 or not x.dim():  # torch takes vectors, and numbers, too
            raise ValueError(f"x {x.shape}, weight {weight.shape}")
        outputs = weight.size(0 if transposed else 1)
        if bias is not None and (bias.dim() != 1 or bias.size(0) != outputs):
            raise ValueError(f"bias {bias.shape}, weight {weight.shape}")
        function = _linear if transposed else _affine
        if self._is_exact(dtype):
            result = function(x, weight, bias)
            if result.dtype is dtype:
                return result
        return self._product(function, x, weight, bias)

    def linear_grad(
        self, x: Tensor, g: Tensor, *, transposed: bool = False
    ) -> tuple[Tensor, Tensor]:
        """`torch.mm`, and a sum."""
        if not x.dim() or x.shape[:-1] != g.shape[:-1]:
            raise ValueError(f"x {x.shape}, g {g.shape}")
        x, g = _rows(x), _rows(g)
        rows, columns = (g, x) if transposed else (x, g)
        dtype = x.dtype
        weight = _mm(rows.t(), columns) if self._is_exact(dtype) else None
        if weight is None or weight.dtype is not dtype:
            weight = self._product(_mm, rows.t(), columns)
        return weight, torch.sum(g, 0)

    def _is_exact(self, dtype: torch.dtype) -> bool:
        """Whether torch, as it is set, computes products of a dtype exactly."""
        if dtype in _EXACT_DTYPES:
            return not self.products.is_reduced()
        if self.on_host or dtype not in HALF_FLOATS:
            return False
        return not torch.are_deterministic_algorithms_enabled()

    def _product(self, function: Callable[..., Tensor], *operands: Tensor | None) -> Tensor:
        """A product under exact settings without autocast; 16-bit floats in float32 on the host."""
        with contextlib.ExitStack() as stack:
            if self.products.is_reduced():
                stack.enter_context(self.products.exact())
            if torch._C._is_any_autocast_enabled():
                stack.enter_context(without_autocast(self.torch_device))
            dtype = operands[0].dtype  # type: ignore[union-attr]  # the first one is a tensor
            if not (self.on_host and dtype in HALF_FLOATS):
                return function(*operands)
            wide = [None if operand is None else operand.to(torch.float32) for operand in operands]
            return function(*wide).to(dtype)

    @_or_on_host
    def solve(self, x1: Tensor, x2: Tensor) -> Tensor:
        """`torch.linalg.solve`, of matrices only."""
        _check(x1, x2)
        batch = broadcast_shapes(x1.shape[:-2], x2.shape[:-2])  # torch's loads sympy
        result: Tensor = _linalg.solve(
            x1.expand(*batch, *x1.shape[-2:]), x2.expand(*batch, *x2.shape[-2:])
        )
        return result

    @in_float32
    def solve_triangular(
        self, x1: Tensor, x2: Tensor, *, upper: bool, unit_diagonal: bool = False
    ) -> Tensor:
        """`torch.linalg.solve_triangular`; the default raises where the diagonal holds 0."""
        attributes = {"upper": upper, "unit_diagonal": unit_diagonal}
        if x1.dim() < 2 or not (unit_diagonal or x1.diagonal(dim1=-2, dim2=-1).all()):
            return self.decomposed("solve_triangular", x1, x2, **attributes)
        result: Tensor = _linalg.solve_triangular(x1, x2, upper=upper, unitriangular=unit_diagonal)
        return result

    @_or_on_host
    def det(self, x: Tensor) -> Tensor:
        """`torch.linalg.det`."""
        _check(x)
        result: Tensor = _linalg.det(x)
        return result

    @in_float32
    def inv(self, x: Tensor) -> Tensor:
        """`torch.linalg.inv`; where torch raises, the default solves, or raises burn's error."""
        try:
            result: Tensor = _linalg.inv(x)
        except RuntimeError:
            return self.decomposed("inv", x)
        return result

    @_or_on_host
    def slogdet(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """`torch.linalg.slogdet`."""
        _check(x)
        sign, logarithm = torch.linalg.slogdet(x)
        return sign, logarithm

    @_or_on_host
    def cholesky(self, x: Tensor) -> Tensor:
        """`torch.linalg.cholesky` of the Hermitian part."""
        result: Tensor = _linalg.cholesky(_hermitian(x))
        return result

    @_or_on_host
    def qr(self, x: Tensor, *, complete: bool = False) -> tuple[Tensor, Tensor]:
        """`torch.linalg.qr`, made unique by a non-negative diagonal of r."""
        _check(x)
        q, r = torch.linalg.qr(x, "complete" if complete else "reduced")
        count = min(x.shape[-2:])
        factors = _positive_factors(r.diagonal(dim1=-2, dim2=-1))
        r = r.clone()
        r[..., :count, :] *= factors[..., :, None]
        r = torch.triu(r)  # the factors -1 made -0.0 below the diagonal
        q = q.clone()
        q[..., :count] *= torch.conj_physical(factors)[..., None, :]
        return q, r

    def _check_finite(self, x: Tensor, values: Tensor) -> None:
        """Raise for NaN, which accelerators accept; the decomposition has waited for the device."""
        if not self.on_host and not (torch.isfinite(x).all() and torch.isfinite(values).all()):
            raise RuntimeError("the decomposition did not converge")

    @_or_on_host
    def svd(self, x: Tensor, *, full_matrices: bool) -> tuple[Tensor, Tensor, Tensor]:
        """`torch.linalg.svd` with canonical signs, or phases, of the vectors."""
        _check(x)
        u, s, vh = torch.linalg.svd(x, full_matrices)
        self._check_finite(x, s)
        factors = _column_factors(u)
        count = s.shape[-1]
        vh = vh.clone()
        vh[..., :count, :] *= torch.conj_physical(factors)[..., :count, None]
        return u * factors[..., None, :], s, vh

    @_or_on_host
    def svdvals(self, x: Tensor) -> Tensor:
        """`torch.linalg.svdvals`."""
        _check(x)
        result: Tensor = _linalg.svdvals(x)
        self._check_finite(x, result)
        return result

    @_or_on_host
    def eigh(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """`torch.linalg.eigh` of the Hermitian part, with canonical signs, or phases."""
        values, vectors = torch.linalg.eigh(_hermitian(x))
        return values, vectors * _column_factors(vectors)[..., None, :]

    @_or_on_host
    def eigvalsh(self, x: Tensor) -> Tensor:
        """`torch.linalg.eigvalsh` of the Hermitian part."""
        result: Tensor = _linalg.eigvalsh(_hermitian(x))
        return result

    @_or_on_host
    def eig(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """`torch.linalg.eig` with canonical phases of the vectors."""
        self._check_order()
        _check(x)
        values, vectors = torch.linalg.eig(x)
        return values, vectors * _column_factors(vectors)[..., None, :]

    @_or_on_host
    def eigvals(self, x: Tensor) -> Tensor:
        """`torch.linalg.eigvals`."""
        self._check_order()
        _check(x)
        if not torch.isfinite(x).all():
            raise RuntimeError("LAPACK accepts NaN")
        result: Tensor = _linalg.eigvals(x)
        return result

    @_or_on_host
    def lu_decomposition(self, x: Tensor, *, index_dtype: DType) -> tuple[Tensor, Tensor]:
        """`torch.linalg.lu_factor`; LAPACK's complex pivots are not those of largest magnitude."""
        self._check_order()
        if x.dtype.is_complex or not x.numel() or not index_dtype.is_integer:
            raise RuntimeError("computed on the host")
        result, pivots, _ = torch.linalg.lu_factor_ex(x)
        order, _, _ = torch.lu_unpack(result, pivots, unpack_data=False)
        return result, torch.argmax(order, -2).to(TORCH_DTYPES[index_dtype])

    def _check_order(self) -> None:
        """Raise on accelerators, whose libraries do not order results as LAPACK does."""
        if not self.on_host:
            raise RuntimeError("computed on the host, by LAPACK")


def _affine(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if bias is None:
        return _matmul(x, weight)
    if x.dim() == 2:
        return _addmm(bias, x, weight)
    rows = _addmm(bias, x.reshape(x.shape[:-1].numel(), x.shape[-1]), weight)
    return rows.reshape(*x.shape[:-1], weight.shape[1])


def _rows(x: Tensor) -> Tensor:
    """A tensor as a matrix with the same last axis."""
    return x if x.dim() == 2 else _flatten(x, 0, -2) if x.dim() > 2 else x.unsqueeze(0)


def _check(*matrices: Tensor) -> None:
    for x in matrices:
        if x.dim() < 2:
            raise RuntimeError("matrices have two axes or more")


def _hermitian(x: Tensor) -> Tensor:
    _check(x)
    if x.shape[-1] != x.shape[-2]:  # a column would broadcast
        raise ValueError("the matrices are not square")
    half = x * 0.5
    return half + torch.conj_physical(half.transpose(-1, -2))


def _positive_factors(values: Tensor) -> Tensor:
    """Factors of magnitude 1 that make the values non-negative."""
    if not values.dtype.is_complex:
        return torch.where(values < 0.0, -1.0, 1.0).to(values.dtype)
    zero = values == 0.0
    magnitude = torch.where(zero, 1.0, torch.abs(values))
    return torch.where(zero, 1.0, torch.conj_physical(values) / magnitude).to(values.dtype)


def _column_factors(vectors: Tensor) -> Tensor:
    """`_positive_factors` of the largest element by magnitude of each column."""
    if not vectors.numel():
        return vectors.new_ones((*vectors.shape[:-2], vectors.shape[-1]))
    rows = torch.argmax(torch.abs(vectors), -2, keepdim=True)
    return _positive_factors(torch.gather(vectors, -2, rows)[..., 0, :])


def _of_integers(x1: Tensor, x2: Tensor) -> Tensor:
    """A product of integer matrices row by row: torch has no kernel for accelerators."""
    rows = [
        torch.sum(x1[..., row, :, None] * x2, -2, dtype=x1.dtype) for row in range(x1.shape[-2])
    ]
    if rows:
        return torch.stack(rows, -2)
    batch = broadcast_shapes(x1.shape[:-2], x2.shape[:-2])  # torch's loads sympy
    return x1.new_zeros((*batch, 0, x2.shape[-1]))
