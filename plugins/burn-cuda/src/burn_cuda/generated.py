"""Kernels that core generates for ops without a method here, and launches of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from burn.plugin_api import DType
from burn_cuda.base import Array, CudaOps
from burn_cuda.dialect import code_of_launch
from burn_cuda.usage import STORED

if TYPE_CHECKING:
    from burn.plugin_api import Code, Kernel, Shape

__all__ = ["ALIGNMENT", "LONG_COLUMNS", "REAL", "ROWS", "STRIDED_ROWS", "GeneratedOps"]

ALIGNMENT: Final = 16
"""Bytes that the address of an operand of a generated kernel is a multiple of."""

REAL: Final = frozenset([dtype for dtype in STORED if not dtype.is_complex])
"""Dtypes of generated kernels."""

_WARP: Final = 32

ROWS: Final = 264
"""Groups that keep a large GPU busy: two for each of its processors."""

STRIDED_ROWS: Final = _WARP * ROWS
LONG_COLUMNS: Final = 1024


class CudaDialect:
    """CUDA C++ for single ops, whose numbers are arguments of a launch.

    Attributes
    ----------
    dtypes : frozenset of DType
        Dtypes that kernels may have.
    rows, strided_rows, long_columns : int
        When reductions are divided: see `burn.plugin_api.Target`.
    """

    dtypes: frozenset[DType] = REAL
    rows, strided_rows, long_columns = ROWS, STRIDED_ROWS, LONG_COLUMNS

    def source(self, kernel: Kernel) -> Code:
        """The text of a kernel."""
        return code_of_launch(kernel)


class GeneratedOps(CudaOps):
    """A device that runs ops as generated kernels; programs have their own."""

    dialect = CudaDialect()

    def load_kernel(self, code: Code, shapes: tuple[Shape, ...]) -> Callable[..., Any]:
        """A launch whose numbers are arguments."""
        launcher, runtime = self.launcher, self.runtime
        launch = runtime.compile(code.text, code.entry, contracts=code.kernel.relaxed)
        groups, block, kinds = code.groups, (code.lanes,), code.kernel.scalars
        made = [
            functools.partial(launcher.empty, shape, dtype.numpy)
            for shape, (dtype, _) in zip(shapes, code.kernel.outputs, strict=True)
        ]
        is_dense, copied, address = launcher.is_dense, launcher.copied, runtime.address

        def run(
            inputs: tuple[Array, ...], scalars: tuple[float, ...], out: tuple[Array | None, ...]
        ) -> tuple[Array, ...]:
            operands = [
                source if is_dense(source) and not address(source) % ALIGNMENT else copied(source)
                for source in inputs
            ]
            results = [new() if item is None else item for new, item in zip(made, out, strict=True)]
            count = groups(scalars)
            if count:
                numbers = [kind(number) for kind, number in zip(kinds, scalars, strict=True)]
                launch((count,), block, (*operands, *results, *numbers))
            return tuple(results)

        return run
