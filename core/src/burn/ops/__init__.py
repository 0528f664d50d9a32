"""The op table: every operation, defined once.

A family of ops is a module here. Importing this package fills `REGISTRY`; a new op is a definition
in its family (see CONTRIBUTING.md), and nothing else has to know of it.
"""

from burn.ops import (
    activation,
    arithmetic,
    binary_functions,
    comparison,
    complex_numbers,
    creation,
    data_dependent,
    decomposition,
    functions,
    indexing,
    inverse,
    layout,
    linear_algebra,
    loss,
    optimizer,
    random,
    reduction,
    scan,
    scatter,
    signal,
    sorting,
    statistics,
)
from burn.ops.op import REGISTRY, Context, Op, Tag, op, register
from burn.ops.signature import Meta, Operand
from burn.ops.table import OpTable, resolve

__all__ = [
    "REGISTRY",
    "Context",
    "Meta",
    "Op",
    "OpTable",
    "Operand",
    "Tag",
    "activation",
    "arithmetic",
    "binary_functions",
    "comparison",
    "complex_numbers",
    "creation",
    "data_dependent",
    "decomposition",
    "functions",
    "indexing",
    "inverse",
    "layout",
    "linear_algebra",
    "loss",
    "op",
    "optimizer",
    "random",
    "reduction",
    "register",
    "resolve",
    "scan",
    "scatter",
    "signal",
    "sorting",
    "statistics",
]
