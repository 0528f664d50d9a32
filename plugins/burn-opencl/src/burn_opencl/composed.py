"""Ops made of others whose kernels check indices: an error names the op that was called."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from burn.ops import OpTable

if TYPE_CHECKING:
    from burn_opencl.launcher import Launcher

__all__ = ["CHECKED", "COMPOSED", "ComposedOps"]

COMPOSED: Final = (
    "embedding",
    "nll_loss",
    "cross_entropy",
    "cross_entropy_grad",
    "ctc_loss",
    "ctc_loss_grad",
)

CHECKED: Final = (*COMPOSED, "gather_nd", "scatter_nd", "max_pool_grad")
"""Ops beside those of indexing whose kernels check indices."""


class ComposedOps:
    """Defaults, each under its own name; the methods are added below."""

    launcher: Launcher
    table: OpTable


def _composed(name: str) -> Callable[..., Any]:
    def call(self: ComposedOps, *operands: Any, **attributes: Any) -> Any:
        with self.launcher.checked.called(name):
            return self.table.decomposed(name, *operands, **attributes)

    call.__name__ = name
    call.__qualname__ = f"ComposedOps.{name}"
    call.__doc__ = "The default."
    return call


for _name in COMPOSED:
    setattr(ComposedOps, _name, _composed(_name))
