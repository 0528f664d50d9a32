"""Generated kernels of a device whose backend has a language for them, and nothing more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from burn.compiler.fusion import fuses, planned
from burn.compiler.passes import lowered
from burn.compiler.plan import KernelCall, Target
from burn.compiler.straight import Straight
from burn.ir import GraphIr, OperationIr
from burn.ops import REGISTRY, STEPS, OpTable, Tag, observing, size

if TYPE_CHECKING:
    from burn.kernels import Kernel
    from burn.kernels.code import Code

__all__ = ["Generated"]


class Generated(Straight):
    """A program as kernels in the language of the backend (`Backend.dialect`), and calls of ops.

    An op that the backend itself has a kernel for stays a call where that pays: products,
    convolutions, sorts, random numbers, reads and writes at indices, and steps of optimizers for
    small parameters, which are one launch for all of them. All else is part of generated kernels,
    or decomposed until it is.

    Parameters
    ----------
    graph : GraphIr
        A program, which has been simplified.
    table : OpTable
        The ops of the device.
    """

    def __init__(self, graph: GraphIr, table: OpTable) -> None:
        self._backend: Any = observing.plain(table.backend)
        self._codes: dict[Kernel, Code] = {}

        def keeps(operation: OperationIr) -> bool:
            return _stays(operation) and table.origin(REGISTRY[operation.name]) == "native"

        reports_late = getattr(self._backend, "named", None) is not None
        target = Target(self._backend.dialect.dtypes, keeps, reports_late=reports_late)

        def wanted(operation: OperationIr) -> bool:
            return not keeps(operation) and not fuses(operation, target)

        super().__init__(planned(lowered(graph, wanted, table), target), table, self._launch)

    def _launch(self, call: KernelCall) -> Callable[..., Any]:
        code = self._codes.get(call.kernel)
        if code is None:
            code = self._codes[call.kernel] = self._backend.dialect.source(call.kernel)
        shapes = tuple([output.shape for output in call.outputs])
        return self._backend.load_kernel(code, shapes)  # type: ignore[no-any-return]  # a function

    @property
    def kernels(self) -> Mapping[str, str]:
        """The sources of the kernels, by their names, in the order in which they first run."""
        codes = self._codes.values()
        return {f"{code.entry}_{number}": code.text for number, code in enumerate(codes)}


_LARGE: Final = 1 << 14
"""Elements of a parameter from which a kernel of its own, which overwrites it, is faster."""


def _stays(operation: OperationIr) -> bool:
    """Whether a call of an op is better than a generated kernel, where the backend has the op."""
    tags = REGISTRY[operation.name].tags
    if tags & (Tag.RANDOM | Tag.CHECKS_INDICES):
        return True
    if operation.name in STEPS:
        sizes = [size(tensor.shape) for tensor in operation.outputs]  # type: ignore[arg-type]  # lengths are known
        return sum(sizes) < _LARGE * len(sizes)
    return Tag.COMPUTE_BOUND in tags and Tag.REDUCTION not in tags
