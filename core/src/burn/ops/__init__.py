"""The op table: every operation, defined once.

A module of this package defines a family of ops. Importing the package imports all families, which
fills `REGISTRY`. A new op is a definition in its family (see CONTRIBUTING.md) and nothing else.

``__all__`` has what plugins use of it, which they import from `burn.plugin_api`: the op table, the
roles of operands and attributes, and the checks and formulas that native implementations of an op
share with its decomposition.
"""

from burn.ops import (  # noqa: F401 — importing a family registers its ops
    blocks,
    control,
)
from burn.ops._attributes import Attribute, without
from burn.ops._axis_maps import AxisMap, range_sum_map
from burn.ops._precision import in_float32
from burn.ops.arrays import (  # noqa: F401 — importing a family registers its ops
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
from burn.ops.arrays.indexing import check_same_shape
from burn.ops.arrays.random import (
    PHILOX_KEY_STEPS,
    PHILOX_MULTIPLIERS,
    PHILOX_ROUNDS,
    UNIFORM_BITS,
    largest_below,
    philox_state,
    signed_word,
    uniform_words,
)
from burn.ops.arrays.sorting import check_index_dtype
from burn.ops.batching import (
    BatchedCall,
    BatchingRule,
    aligned_axes,
    first_of,
    leading_axes,
    leading_axes_of,
    merging,
)
from burn.ops.elementwise import (  # noqa: F401 — importing a family registers its ops
    activation,
    arithmetic,
    binary_functions,
    comparison,
    complex_numbers,
    rectifier,
    special_functions,
    unary_functions,
)
from burn.ops.linalg import (  # noqa: F401 — importing a family registers its ops
    decomposition,
    dense,
    eigenvalues,
    inverse,
    linear_algebra,
    matrix_exponential,
    signal,
    triangular,
)
from burn.ops.linalg.linear_algebra import transpose_matrices
from burn.ops.networks import (  # noqa: F401 — importing a family registers its ops
    attention,
    ctc,
    gru,
    loss,
    normalization,
    recurrent,
    softmax,
)
from burn.ops.networks.attention import (
    AttentionAttributes,
    AttentionShapes,
    attention_shapes,
    check_broadcasts_to_scores,
)
from burn.ops.networks.ctc import LOG_ZERO, check_ctc
from burn.ops.networks.normalization import check_channels, check_last_axis
from burn.ops.networks.recurrence import (
    RecurrentShape,
    check_recurrent_gradients,
    ordered_steps,
    recurrent_shape,
)
from burn.ops.op import REGISTRY, Context, Op, Tag, op, register
from burn.ops.optimizers import optimizer  # noqa: F401 — importing a family registers its ops
from burn.ops.optimizers.expressions import Instruction, StepFormula, step_formula
from burn.ops.optimizers.optimizer import STEPS, Donated
from burn.ops.quantized import (  # noqa: F401 — importing a family registers its ops
    quantization,
    quantized_products,
)
from burn.ops.quantized.quantized_codes import decode_scales, greatest_codes, split_shapes
from burn.ops.quantized.quantized_operands import wide_of
from burn.ops.shapes import broadcast_shapes, check_axis, check_bitcast, size
from burn.ops.signature import (
    AnyList,
    AnyOperand,
    AnyOrScalar,
    Axes,
    Axis,
    AxisPairs,
    AxisSlices,
    BoolOperand,
    BroadcastAxis,
    ComplexOperand,
    Cotangent,
    FillValue,
    Flag,
    FloatList,
    FloatOperand,
    FloatOrScalar,
    Gradients,
    Graph,
    IndexOperand,
    InexactOperand,
    InexactOrScalar,
    Integer,
    IntegerOrScalar,
    IntegralOperand,
    IntegralOrScalar,
    Meta,
    Number,
    NumberOperand,
    NumberOrScalar,
    NumericOperand,
    NumericOrScalar,
    Operand,
    OptionalBool,
    OptionalFloat,
    OptionalNumber,
    OptionalSpatialNumbers,
    Pairs,
    Part,
    RealOperand,
    RealOrScalar,
    Role,
    RuntimeInteger,
    RuntimeNumber,
    Sizes,
    TargetDType,
    TargetShape,
    TensorList,
)
from burn.ops.table import OpTable, resolve
from burn.ops.windows import (  # noqa: F401 — importing a family registers its ops
    average_pooling,
    convolution,
    deformable,
    grids,
    max_pooling,
    resampling,
    unfolding,
)
from burn.ops.windows.average_pooling import (
    adaptive_window_bounds,
    average_pool_divisors,
    window_element_counts,
    window_sum_map,
)
from burn.ops.windows.convolution import flipped_padding
from burn.ops.windows.convolution_shapes import (
    ConvAttributes,
    ConvGeometry,
    ConvTransposeAttributes,
    ConvWeightGradAttributes,
    check_conv_bias,
    conv_geometry,
    conv_transpose_geometry,
    conv_weight_grad_geometry,
)
from burn.ops.windows.deformable_shapes import (
    DeformableAttributes,
    DeformableGeometry,
    check_deformable_gradient,
    deformable_geometry,
    undeformed_positions,
)
from burn.ops.windows.max_pooling import check_pool_index_dtype, check_pool_indices, lowest_value
from burn.ops.windows.resampling import InterpolateAttributes, interpolation_maps
from burn.ops.windows.sliding_windows import (
    AvgPoolAttributes,
    MaxPoolAttributes,
    PatchAttributes,
    SlidingAttributes,
    Windows,
    check_pooled,
    pool_windows,
    pooled_shape,
    split_spatial_axes,
    unpooled_shape,
)
from burn.ops.windows.unfolding import check_columns, image_windows

__all__ = [
    "LOG_ZERO",
    "PHILOX_KEY_STEPS",
    "PHILOX_MULTIPLIERS",
    "PHILOX_ROUNDS",
    "REGISTRY",
    "STEPS",
    "UNIFORM_BITS",
    "AnyList",
    "AnyOperand",
    "AnyOrScalar",
    "AttentionAttributes",
    "AttentionShapes",
    "Attribute",
    "AvgPoolAttributes",
    "Axes",
    "Axis",
    "AxisMap",
    "AxisPairs",
    "AxisSlices",
    "BatchedCall",
    "BatchingRule",
    "BoolOperand",
    "BroadcastAxis",
    "ComplexOperand",
    "Context",
    "ConvAttributes",
    "ConvGeometry",
    "ConvTransposeAttributes",
    "ConvWeightGradAttributes",
    "Cotangent",
    "DeformableAttributes",
    "DeformableGeometry",
    "Donated",
    "FillValue",
    "Flag",
    "FloatList",
    "FloatOperand",
    "FloatOrScalar",
    "Gradients",
    "Graph",
    "IndexOperand",
    "InexactOperand",
    "InexactOrScalar",
    "Instruction",
    "Integer",
    "IntegerOrScalar",
    "IntegralOperand",
    "IntegralOrScalar",
    "InterpolateAttributes",
    "MaxPoolAttributes",
    "Meta",
    "Number",
    "NumberOperand",
    "NumberOrScalar",
    "NumericOperand",
    "NumericOrScalar",
    "Op",
    "OpTable",
    "Operand",
    "OptionalBool",
    "OptionalFloat",
    "OptionalNumber",
    "OptionalSpatialNumbers",
    "Pairs",
    "Part",
    "PatchAttributes",
    "RealOperand",
    "RealOrScalar",
    "RecurrentShape",
    "Role",
    "RuntimeInteger",
    "RuntimeNumber",
    "Sizes",
    "SlidingAttributes",
    "StepFormula",
    "Tag",
    "TargetDType",
    "TargetShape",
    "TensorList",
    "Windows",
    "adaptive_window_bounds",
    "aligned_axes",
    "attention_shapes",
    "average_pool_divisors",
    "broadcast_shapes",
    "check_axis",
    "check_bitcast",
    "check_broadcasts_to_scores",
    "check_channels",
    "check_columns",
    "check_conv_bias",
    "check_ctc",
    "check_deformable_gradient",
    "check_index_dtype",
    "check_last_axis",
    "check_pool_index_dtype",
    "check_pool_indices",
    "check_pooled",
    "check_recurrent_gradients",
    "check_same_shape",
    "conv_geometry",
    "conv_transpose_geometry",
    "conv_weight_grad_geometry",
    "decode_scales",
    "deformable_geometry",
    "first_of",
    "flipped_padding",
    "greatest_codes",
    "image_windows",
    "in_float32",
    "interpolation_maps",
    "largest_below",
    "leading_axes",
    "leading_axes_of",
    "lowest_value",
    "merging",
    "op",
    "ordered_steps",
    "philox_state",
    "pool_windows",
    "pooled_shape",
    "range_sum_map",
    "recurrent_shape",
    "register",
    "resolve",
    "signed_word",
    "size",
    "split_shapes",
    "split_spatial_axes",
    "step_formula",
    "transpose_matrices",
    "undeformed_positions",
    "uniform_words",
    "unpooled_shape",
    "wide_of",
    "window_element_counts",
    "window_sum_map",
    "without",
]


def __dir__() -> list[str]:
    return __all__
