"""Samples of every op: a module for each family, named and grouped like those of `burn.ops`.

Importing this package fills `burn.testing.op_samples.SAMPLES`.
"""

from burn.testing.samples import (
    control,
    derived,
)
from burn.testing.samples.arrays import (
    creation,
    data_dependent,
    indexing,
    layout,
    random,
    reduction,
    scan,
    scatter,
    slicing,
    sorting,
    statistics,
)
from burn.testing.samples.elementwise import (
    activation,
    arithmetic,
    binary_functions,
    comparison,
    complex_numbers,
    rectifier,
    special_functions,
    unary_functions,
)
from burn.testing.samples.linalg import (
    decomposition,
    dense,
    eigenvalues,
    inverse,
    linear_algebra,
    matrix_exponential,
    signal,
    triangular,
)
from burn.testing.samples.networks import (
    attention,
    ctc,
    gru,
    loss,
    normalization,
    recurrent,
    softmax,
)
from burn.testing.samples.optimizers import (
    adaptive_optimizer,
    optimizer,
)
from burn.testing.samples.quantized import (
    dequantization,
    quantization,
    quantized_products,
)
from burn.testing.samples.windows import (
    average_pooling,
    convolution,
    convolution_gradient,
    deformable,
    deformable_convolution,
    grids,
    max_pooling,
    resampling,
    transposed_convolution,
    unfolding,
)

derived.attach()

__all__ = [
    "activation",
    "adaptive_optimizer",
    "arithmetic",
    "attention",
    "average_pooling",
    "binary_functions",
    "comparison",
    "complex_numbers",
    "control",
    "convolution",
    "convolution_gradient",
    "creation",
    "ctc",
    "data_dependent",
    "decomposition",
    "deformable",
    "deformable_convolution",
    "dense",
    "dequantization",
    "derived",
    "eigenvalues",
    "grids",
    "gru",
    "indexing",
    "inverse",
    "layout",
    "linear_algebra",
    "loss",
    "matrix_exponential",
    "max_pooling",
    "normalization",
    "optimizer",
    "quantization",
    "quantized_products",
    "random",
    "rectifier",
    "recurrent",
    "reduction",
    "resampling",
    "scan",
    "scatter",
    "signal",
    "slicing",
    "softmax",
    "sorting",
    "special_functions",
    "statistics",
    "transposed_convolution",
    "triangular",
    "unary_functions",
    "unfolding",
]
