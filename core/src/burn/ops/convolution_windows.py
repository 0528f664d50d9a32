"""Old names of `burn.ops.convolution_shapes`, until plugins import burn.plugin_api."""

from burn.ops.convolution_shapes import (
    ConvAttributes as ConvRule,
    ConvGeometry as Convolution,
    ConvTransposeAttributes as ConvTransposeRule,
    ConvWeightGradAttributes as ConvWeightGradRule,
    check_conv_bias as check_bias,
    conv_geometry as convolution,
    conv_transpose_geometry as transposed_convolution,
    conv_weight_grad_geometry as weight_gradient,
    patch_windows,
)

__all__ = [
    "ConvRule",
    "ConvTransposeRule",
    "ConvWeightGradRule",
    "Convolution",
    "check_bias",
    "convolution",
    "patch_windows",
    "transposed_convolution",
    "weight_gradient",
]
