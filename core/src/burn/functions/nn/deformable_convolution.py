"""Convolution of images in deformed windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.docstrings import documented_as
from burn.functions import calls
from burn.functions.nn._spatial_arguments import Padding, PerAxis, as_padding, check_batch, per_axis
from burn.functions.nn.convolution import conv2d
from burn.ops.arguments import as_integer

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["deform_conv2d"]


@documented_as(conv2d)
def deform_conv2d(
    x: Tensor,
    offset: Tensor,
    weight: Tensor,
    /,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    stride: PerAxis = 1,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    weight_groups: int = 1,
    offset_groups: int = 1,
) -> Tensor:
    """Convolution of images in deformed windows.

    J. Dai et al., "Deformable convolutional networks" (2017, arXiv:1703.06211); with a mask, X. Zhu
    et al., "Deformable ConvNets v2" (2019, arXiv:1811.11168).

    The other parameters are those of `conv2d`.

    Parameters
    ----------
    x : Tensor, shape (N, C, H, W)
        A batch of images, float; interpolated bilinearly between elements, and zero outside.
    offset : Tensor, shape (N, 2 * offset_groups * kernel height * kernel width, rows, columns)
        For each group, element of the kernel and window: by how many elements the sampling point
        moves down, then to the right.
    weight : Tensor, shape (O, C / weight_groups, kernel height, kernel width)
        A kernel for each output channel and each channel of its group.
    mask : Tensor, shape (N, offset_groups * kernel height * kernel width, rows, columns), optional
        Factors of the sampled values; ones by default.
    padding : int, or tuple of int or of pairs of int
        Number of zeros at both ends of each axis; a pair has those before and after.
    weight_groups : int
        Number of groups of channels that are convolved separately.
    offset_groups : int
        Number of groups of channels that share their offsets.

    Returns
    -------
    Tensor, shape (N, O, rows, columns)
        As many rows and columns as `conv2d` gives.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([[[[1.0, 3.0]]]], device="cpu")
    >>> offset = burn.asarray([[[[0.0, 0.0]], [[0.5, 0.5]]]], device="cpu")
    >>> F.deform_conv2d(x, offset, burn.ones((1, 1, 1, 1), device="cpu")).tolist()
    [[[[2.0, 1.5]]]]
    """
    operation = "deform_conv2d"
    check_batch(operation, 2, x)
    return calls.deform_conv2d(
        x,
        offset,
        weight,
        mask,
        bias,
        stride=per_axis(stride, 2, "stride", operation),
        padding=as_padding(padding, 2, operation),
        dilation=per_axis(dilation, 2, "dilation", operation),
        weight_groups=as_integer(weight_groups, "weight_groups", operation),
        offset_groups=as_integer(offset_groups, "offset_groups", operation),
    )
