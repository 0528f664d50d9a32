"""Programs as data: calls of ops that can be printed, saved, checked, sent and run again."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from burn.ir._operands import infer, may_raise, promoted_dtype, tensors_among
from burn.ir.graph import (
    Constant,
    Donation,
    Draw,
    Drop,
    GraphIr,
    Input,
    OperationIr,
    ScalarIr,
    Status,
    TensorIr,
    with_example_scalars,
)

__all__ = [
    "Constant",
    "Donation",
    "Draw",
    "Drop",
    "GraphIr",
    "Input",
    "OperationIr",
    "ScalarIr",
    "Status",
    "TensorIr",
    "infer",
    "may_raise",
    "promoted_dtype",
    "tensors_among",
    "with_example_scalars",
]

_WHEN_USED: Final = {
    "Execution": "burn.ir.execution",
    "HostNumber": "burn.ir.host_number",
    "Program": "burn.transforms.program",
    "RuntimeNumber": "burn.transforms.tracing",
    "TensorSpec": "burn.transforms.tracing",
    "trace": "burn.transforms.tracing",
    "with_last_uses": "burn.ir.check",
}
"""Names whose modules are imported when they are used: not every program has a graph, and those
that take and return tensors of users are above this package.
"""

if TYPE_CHECKING:
    from burn.ir.check import with_last_uses as with_last_uses
    from burn.ir.execution import Execution as Execution
    from burn.ir.host_number import HostNumber as HostNumber
    from burn.transforms.program import Program as Program
    from burn.transforms.tracing import (
        RuntimeNumber as RuntimeNumber,
        TensorSpec as TensorSpec,
        trace as trace,
    )
else:

    def __getattr__(name: str) -> Any:
        if name in _WHEN_USED:
            return getattr(importlib.import_module(_WHEN_USED[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def __dir__() -> list[str]:
    return sorted([*__all__, *_WHEN_USED])
