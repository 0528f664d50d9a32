"""Softmax and its like: rows that fit are read once, into registers, and written once."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from burn_cuda.base import Array, CudaOps
from burn_cuda.kernels import THREADS, c_type

if TYPE_CHECKING:
    from burn_cuda.launcher import Launcher

__all__ = ["SoftmaxOps", "row_launch", "row_shape"]


_PACK_BYTES: Final = 16
_WARP: Final = 32
_FEW_PACKS: Final = 4
_MANY_LANES: Final = 512
_MOST_LANES: Final = 1024
_MANY_BYTES: Final = 64
_MOST_BYTES: Final = 128
"""So much of a row a thread holds in registers, where there are enough threads, and at most."""

_COUNTS: Final = (1, 2, 4, 6, 8, 16, 24, 32)
"""How many packs a kernel is made for."""


class _Shape(NamedTuple):
    """How the elements of a row are dealt out."""

    lanes: int
    packs: int
    width: int


@functools.lru_cache(maxsize=1024)
def row_shape(n: int, itemsize: int) -> _Shape:
    """Lanes and packs for rows of a length; no packs for those that registers do not hold."""
    width = _PACK_BYTES // itemsize
    if n % width:
        width = 1
    wide = max(itemsize, 4) * width
    most = _MOST_BYTES // wide
    many = most if itemsize < 4 else _MANY_BYTES // wide
    count = -(-n // width)
    few, lanes = min(many, _FEW_PACKS), 1
    while lanes < _MANY_LANES and lanes * (few if lanes < _WARP else many) < count:
        lanes *= 2
    if lanes * most < count and lanes < _MOST_LANES:
        lanes *= 2
    packs = -(-count // lanes)
    if packs > most:
        return _Shape(_MOST_LANES, 0, _PACK_BYTES // itemsize)
    return _Shape(lanes, next(one for one in _COUNTS if one >= packs), width)


def row_launch(
    launcher: Launcher, name: str, x: Array, rows: int, n: int, *rest: Any, **types: str
) -> None:
    """Launch a kernel of rows; `rest` are its arguments before the numbers of both."""
    lanes, packs, width = row_shape(n, x.dtype.itemsize)
    definitions: dict[str, str | int] = {
        "T": c_type(launcher.dtypes[x.dtype]),
        "LANES": lanes,
        "PACKS": packs,
        "WIDTH": width,
        f"HAS_{name}": 1,
        **types,
    }
    kernel = launcher.kernel(name, "rows.cu", **definitions)
    if not rows:
        return
    block = max(lanes, THREADS) if lanes <= _WARP else lanes
    kernel((-(-rows * lanes // block),), (block,), (*rest, rows, n))


class SoftmaxOps(CudaOps):
    """Functions of rows, which lie along an axis."""

    def softmax(self, x: Array, *, axis: int) -> Array:
        """Exponentials, less the maximum of their row, over their sum."""
        return self._rows("softmax", axis, x)

    def softmax_grad(self, output: Array, g: Array, *, axis: int) -> Array:
        """One kernel."""
        return self._rows("softmax_grad", axis, output, g)

    def log_softmax(self, x: Array, *, axis: int) -> Array:
        """One kernel."""
        return self._rows("log_softmax", axis, x)

    def log_softmax_grad(self, output: Array, g: Array, *, axis: int) -> Array:
        """One kernel."""
        return self._rows("log_softmax_grad", axis, output, g)

    def cross_entropy(self, logits: Array, targets: Array, *, axis: int) -> Array:
        """One kernel."""
        launcher = self.launcher
        n, order = _classes(logits, targets, axis)
        rows = launcher.dense(logits.transpose(order))
        out = launcher.empty(targets.shape, logits.dtype)
        if out.size:
            classes = c_type(launcher.dtypes[targets.dtype])
            given = (rows, launcher.dense(targets), out, *launcher.flag("cross_entropy"))
            row_launch(launcher, "cross_entropy", logits, out.size, n, *given, TARGET=classes)
        return out

    def cross_entropy_grad(self, logits: Array, targets: Array, g: Array, *, axis: int) -> Array:
        """One kernel."""
        launcher = self.launcher
        n, order = _classes(logits, targets, axis)
        if g.shape != targets.shape or g.dtype is not logits.dtype:
            raise ValueError(f"g of shape {g.shape} for {targets.shape}")
        rows = launcher.dense(logits.transpose(order))
        out = launcher.empty(rows.shape, logits.dtype)
        if out.size:
            classes = c_type(launcher.dtypes[targets.dtype])
            given = (rows, launcher.dense(targets), launcher.dense(g), out)
            flag = launcher.flag("cross_entropy_grad")
            name = "cross_entropy_grad"
            row_launch(launcher, name, logits, targets.size, n, *given, *flag, TARGET=classes)
        return out.transpose(tuple([order.index(number) for number in range(len(order))]))

    def _rows(self, name: str, axis: int, *operands: Array) -> Array:
        launcher = self.launcher
        first = operands[0]
        rank = len(first.shape)
        if not 0 <= axis < rank:
            raise IndexError(f"axis {axis} of {rank}")
        if any(one.shape != first.shape or one.dtype is not first.dtype for one in operands):
            raise ValueError(f"operands of different shapes or dtypes for {name}")
        last = axis == rank - 1
        order = (*[number for number in range(rank) if number != axis], axis)
        moved = [launcher.dense(one if last else one.transpose(order)) for one in operands]
        out = launcher.empty(moved[0].shape, first.dtype)
        if out.size:
            n = first.shape[axis]
            row_launch(launcher, name, first, out.size // n, n, *moved, out)
        if last:
            return out
        return out.transpose(tuple([order.index(number) for number in range(rank)]))


def _classes(logits: Array, targets: Array, axis: int) -> tuple[int, tuple[int, ...]]:
    """Number of classes, and the order of axes in which they come last."""
    rank = len(logits.shape)
    if not 0 <= axis < rank:
        raise IndexError(f"axis {axis} of {rank}")
    if targets.shape != (*logits.shape[:axis], *logits.shape[axis + 1 :]):
        raise ValueError(f"targets of shape {targets.shape} for logits of shape {logits.shape}")
    return logits.shape[axis], (*[one for one in range(rank) if one != axis], axis)
