"""Samples of every op, in one module per family, named like those in `burn.ops`.

Importing this package fills `burn.testing.sample.SAMPLES`.
"""

from burn.testing.samples import (
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

__all__ = [
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
    "optimizer",
    "random",
    "reduction",
    "scan",
    "scatter",
    "signal",
    "sorting",
    "statistics",
]
