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
]
