"""Programs as data: calls of ops that can be printed, saved, checked, sent and run again."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from burn.ir._operands import infer, metas_of, promoted_dtype
from burn.ir.check import with_last_uses
from burn.ir.execution import Execution
from burn.ir.graph import (
    Constant,
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
    "Draw",
    "Drop",
    "Execution",
    "GraphIr",
    "Input",
    "OperationIr",
    "ScalarIr",
    "Status",
    "TensorIr",
    "infer",
    "metas_of",
    "promoted_dtype",
    "with_example_scalars",
    "with_last_uses",
]

_ABOVE: Final = {
    "Program": "burn.transforms.program",
    "RuntimeNumber": "burn.transforms.tracing",
    "TensorSpec": "burn.transforms.tracing",
    "trace": "burn.transforms.tracing",
}
"""Public names that take and return tensors of users, so that their modules import this one."""

if TYPE_CHECKING:
    from burn.transforms.program import Program as Program
    from burn.transforms.tracing import (
        RuntimeNumber as RuntimeNumber,
        TensorSpec as TensorSpec,
        trace as trace,
    )
else:

    def __getattr__(name: str) -> Any:
        if name in _ABOVE:
            return getattr(importlib.import_module(_ABOVE[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def __dir__() -> list[str]:
    return sorted([*__all__, *_ABOVE])
