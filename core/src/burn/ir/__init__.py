"""Programs as data: calls of ops that can be printed, saved, checked, sent and run again."""

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
    "GraphIr",
    "Input",
    "OperationIr",
    "ScalarIr",
    "Status",
    "TensorIr",
    "with_example_scalars",
]
