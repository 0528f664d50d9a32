"""Compilation of whole programs, if llvmlite is installed (``burn-cpu[compile]``)."""

from __future__ import annotations

import dataclasses
import functools
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from burn.plugin_api import (
    REGISTRY,
    DeviceId,
    DType,
    Execution,
    GraphIr,
    OperationIr,
    OpTable,
    Plan,
    Tag,
    Target,
    fuses,
    lowered,
    planned,
)

if TYPE_CHECKING:
    from burn_cpu.native import Machine

__all__ = ["NativeRunner", "compiled_program", "compiler", "native_runner"]

_log = logging.getLogger("burn")

_MAX_PRODUCT: Final = 32 * 32 * 32
"""Multiplications up to which a matrix product is generated code."""


def compiled_program(
    graph: GraphIr, device: DeviceId, backend: Any
) -> Callable[..., tuple[Any, ...]] | None:
    """A function that runs a program by native code; None where there is no compiler."""
    machine = compiler()
    if machine is None:
        return None
    from burn_cpu.program import NativeProgram

    table = OpTable(backend, device)
    target = _target(machine)
    lower = lowered(
        graph, lambda operation: not fuses(operation, target) and not _keeps(operation), table
    )
    return NativeProgram(planned(lower, target), table, machine)


_FEW_STRIDED_ROWS: Final = 4096
"""Rows side by side in memory, as of sums over the first axis: 256 of them are one item."""


class NativeRunner:
    """Runs ops as native code; a `KernelRunner`.

    Parameters
    ----------
    machine : Machine
        The compiler.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.target = dataclasses.replace(
            _target(machine), keeps=lambda _: False, max_product=0, strided_rows=_FEW_STRIDED_ROWS
        )

    def program(self, plan: Plan, table: OpTable) -> Execution:
        """Native code, which is the same for all plans with equal kernels."""
        from burn_cpu.program import NativeProgram

        return NativeProgram(plan, table, self._machine, is_shared=True)


def native_runner() -> NativeRunner | None:
    """What runs ops as native code; None where there is no compiler."""
    machine = compiler()
    return None if machine is None else NativeRunner(machine)


@functools.cache
def compiler() -> Machine | None:
    """The compiler; None without llvmlite, or where it does not know this machine."""
    if os.environ.get("BURN_CPU_JIT", "1") == "0":
        return None
    try:
        from burn_cpu.native import machine

        return machine()
    except Exception as error:  # noqa: BLE001 — programs run op by op whatever is wrong with it
        _log.debug("burn-cpu compiles no programs: %s", error)
        return None


def _target(machine: Machine) -> Target:
    """All real dtypes; float16 where the processor converts it."""
    dtypes = frozenset(
        [
            dtype
            for dtype in DType.members()
            if dtype.kind != "c" and (dtype.name != "float16" or machine.has_half)
        ]
    )
    return Target(dtypes, _keeps, max_product=_MAX_PRODUCT, checks=True)


def _keeps(operation: OperationIr) -> bool:
    """Whether NumPy computes an operation, which could be decomposed."""
    op = REGISTRY[operation.name]
    tags = op.tags
    if op.fuses is not None or Tag.REDUCTION in tags:
        return False
    return bool(tags & (Tag.COMPUTE_BOUND | Tag.RANDOM | Tag.CHECKS_INDICES))
