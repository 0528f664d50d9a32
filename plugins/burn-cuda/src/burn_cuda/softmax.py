"""Softmax, its gradient and cross entropy: a row that fits into registers is loaded once."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from burn_cuda.base import Array, CudaOps
from burn_cuda.kernels import THREADS, c_type

if TYPE_CHECKING:
    from burn_cuda.launcher import Launcher

__all__ = ["SoftmaxOps", "row_kernel", "row_launch", "row_shape"]


_PACK_BYTES: Final = 16
_WARP_LANES: Final = 32
_MAX_PACKS_WITHIN_WARP: Final = 4
_WANTED_LANES: Final = 512
_MAX_LANES: Final = 1024
_WANTED_BYTES_OF_THREAD: Final = 64
_MAX_BYTES_OF_THREAD: Final = 128
"""Bytes of a row that a thread keeps in registers: up to `_WANTED_LANES` lanes, and at most."""

_PACK_COUNTS: Final = (1, 2, 4, 6, 8, 16, 24, 32)
"""Packs of a thread that kernels are compiled for."""


class _Shape(NamedTuple):
    """How a row is distributed: lanes, packs of each lane, and elements of a pack."""

    lanes: int
    packs: int
    width: int


@functools.lru_cache(maxsize=1024)
def row_shape(n: int, itemsize: int) -> _Shape:
    """The distribution of rows of a length; 0 packs for rows that do not fit into registers."""
    width = _PACK_BYTES // itemsize
    if n % width:
        width = 1
    wide = max(itemsize, 4) * width
    max_packs = _MAX_BYTES_OF_THREAD // wide
    wanted_packs = max_packs if itemsize < 4 else _WANTED_BYTES_OF_THREAD // wide
    count = -(-n // width)
    few, lanes = min(wanted_packs, _MAX_PACKS_WITHIN_WARP), 1
    while lanes < _WANTED_LANES and lanes * (few if lanes < _WARP_LANES else wanted_packs) < count:
        lanes *= 2
    if lanes * max_packs < count and lanes < _MAX_LANES:
        lanes *= 2
    packs = -(-count // lanes)
    if packs > max_packs:
        return _Shape(_MAX_LANES, 0, _PACK_BYTES // itemsize)
    return _Shape(lanes, next(item for item in _PACK_COUNTS if item >= packs), width)


def row_kernel(
    launcher: Launcher, name: str, dtype: Any, n: int, family: str | None = None, **types: str
) -> Any:
    """A kernel for rows of `n` elements; `family` is the one that it is compiled with."""
    lanes, packs, width = row_shape(n, dtype.itemsize)
    definitions: dict[str, str | int] = {
        "T": c_type(launcher.dtypes[dtype]),
        "LANES": lanes,
        "PACKS": packs,
        "WIDTH": width,
        f"HAS_{family or name}": 1,
        **types,
    }
    return launcher.kernel(name, "rows.cu", **definitions)


def row_launch(
    launcher: Launcher, name: str, x: Array, rows: int, n: int, *rest: Any, **types: str
) -> None:
    """Launch a kernel of rows; `rest` are its arguments before `rows` and `n`."""
    kernel = row_kernel(launcher, name, x.dtype, n, **types)
    if not rows:
        return
    lanes = row_shape(n, x.dtype.itemsize).lanes
    block = max(lanes, THREADS) if lanes <= _WARP_LANES else lanes
    kernel((-(-rows * lanes // block),), (block,), (*rest, rows, n))


class SoftmaxOps(CudaOps):
    """Ops that normalize along an axis."""

    def softmax(self, x: Array, *, axis: int) -> Array:
        """One kernel."""
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
            step = 1
            if not any(g.strides):  # one number for all, as that of a mean
                step = 0
            elif not launcher.is_dense(g):
                g = launcher.copied(g)
            given = (rows, launcher.dense(targets), g, out, step)
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
        if any(
            operand.shape != first.shape or operand.dtype is not first.dtype for operand in operands
        ):
            raise ValueError(f"operands of different shapes or dtypes for {name}")
        last = axis == rank - 1
        order = (*[number for number in range(rank) if number != axis], axis)
        moved = [
            launcher.dense(operand if last else operand.transpose(order)) for operand in operands
        ]
        out = launcher.empty(moved[0].shape, first.dtype)
        if out.size:
            n = first.shape[axis]
            row_launch(launcher, name, first, out.size // n, n, *moved, out)
        if last:
            return out
        return out.transpose(tuple([order.index(number) for number in range(rank)]))


def _classes(logits: Array, targets: Array, axis: int) -> tuple[int, tuple[int, ...]]:
    """Number of classes, and the order of axes that moves them last."""
    rank = len(logits.shape)
    if not 0 <= axis < rank:
        raise IndexError(f"axis {axis} of {rank}")
    if targets.shape != (*logits.shape[:axis], *logits.shape[axis + 1 :]):
        raise ValueError(f"targets of shape {targets.shape} for logits of shape {logits.shape}")
    return logits.shape[axis], (*[index for index in range(rank) if index != axis], axis)
