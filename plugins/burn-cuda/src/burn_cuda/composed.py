"""Ops made of others whose kernels check indices: an error names the op that was called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn.ops import OpTable

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn_cuda.launcher import Launcher

__all__ = ["ComposedOps"]

Array = Any


class ComposedOps:
    """Defaults, each under its own name."""

    launcher: Launcher
    table: OpTable

    def _composed(self, name: str, *operands: Any, **attributes: Any) -> Array:
        with self.launcher.checked.called(name):
            return self.table.decomposed(name, *operands, **attributes)

    def gather_nd(self, x: Array, indices: Array) -> Array:
        """Of one `select`."""
        return self._composed("gather_nd", x, indices)

    def scatter_nd(self, x: Array, indices: Array, value: Array, *, update: str) -> Array:
        """Of one `select_assign`."""
        return self._composed("scatter_nd", x, indices, value, update=update)

    def embedding(self, weight: Array, indices: Array) -> Array:
        """Of one `select`."""
        return self._composed("embedding", weight, indices)

    def nll_loss(self, log_probs: Array, targets: Array, *, axis: int) -> Array:
        """Of one `gather`."""
        return self._composed("nll_loss", log_probs, targets, axis=axis)

    def max_pool_grad(self, g: Array, indices: Array, *, input_size: Shape) -> Array:
        """Of one `scatter_add`."""
        return self._composed("max_pool_grad", g, indices, input_size=input_size)

    def ctc_loss(
        self,
        log_probs: Array,
        targets: Array,
        input_lengths: Array,
        target_lengths: Array,
        *,
        blank: int,
    ) -> Array:
        """A step for each frame."""
        operands = (log_probs, targets, input_lengths, target_lengths)
        return self._composed("ctc_loss", *operands, blank=blank)

    def ctc_loss_grad(
        self,
        log_probs: Array,
        targets: Array,
        input_lengths: Array,
        target_lengths: Array,
        g: Array,
        *,
        blank: int,
    ) -> Array:
        """A step for each frame, forwards and backwards."""
        operands = (log_probs, targets, input_lengths, target_lengths, g)
        return self._composed("ctc_loss_grad", *operands, blank=blank)
