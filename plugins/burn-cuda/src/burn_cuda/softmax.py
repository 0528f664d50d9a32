"""Softmax and its like: a block or a warp for each row, which reads it twice and writes it once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from burn_cuda.kernels import THREADS, c_type

if TYPE_CHECKING:
    from burn_cuda.launcher import Launcher

__all__ = ["SoftmaxOps", "row_launch"]

Array = Any

_WARP: Final = 32
_SHORT_ROW: Final = 1024


def row_launch(
    launcher: Launcher, name: str, x: Array, rows: int, n: int, *rest: Any, **types: str
) -> None:
    """Launch a kernel of rows; `rest` are its arguments before the numbers of both."""
    lanes = _WARP if n <= _SHORT_ROW else THREADS
    definitions: dict[str, str | int] = {
        "T": c_type(launcher.dtypes[x.dtype]),
        "LANES": lanes,
        f"HAS_{name}": 1,
        **types,
    }
    kernel = launcher.kernel(name, "rows.cu", **definitions)
    launcher.run_blocks(kernel, -(-rows * lanes // THREADS), *rest, rows, n)


class SoftmaxOps:
    """Functions of rows, which lie along an axis."""

    launcher: Launcher

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
