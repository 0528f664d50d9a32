"""Images cut into patches, and patches added up to images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn.docstrings import documented_as
from burn.functions import calls
from burn.functions.nn._spatial_arguments import Padding, PerAxis, as_padding, per_axis

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["fold4d", "unfold4d"]


def unfold4d(
    x: Tensor,
    /,
    kernel_size: PerAxis,
    *,
    stride: PerAxis = 1,
    padding: Padding = 0,
    dilation: PerAxis = 1,
) -> Tensor:
    """Windows of images as the columns of matrices.

    Parameters
    ----------
    x : Tensor, shape (N, C, H, W)
        A batch of images, float.
    kernel_size : int or tuple of int
        Height and width of a window.
    stride : int or tuple of int
        Distance between neighbouring windows.
    padding : int, or tuple of int or of pairs of int
        Number of zeros at both ends of each axis; a pair has those before and after.
    dilation : int or tuple of int
        Distance between the elements of a window.

    Returns
    -------
    Tensor, shape (N, C * kernel height * kernel width, windows)
        A column for each window, in row-major order; in it one channel after the other.

    Raises
    ------
    ShapeError
        If `x` is no batch of images, or the kernel is longer than the padded image.
    ArgumentError
        If a number is out of its range.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.reshape(burn.arange(6.0, device="cpu"), (1, 1, 2, 3))
    >>> F.unfold4d(x, 2).tolist()
    [[[0.0, 1.0], [1.0, 2.0], [3.0, 4.0], [4.0, 5.0]]]
    """
    return calls.unfold4d(x, **_attributes("unfold4d", kernel_size, stride, padding, dilation))


@documented_as(unfold4d)
def fold4d(
    x: Tensor,
    /,
    output_size: PerAxis,
    kernel_size: PerAxis,
    *,
    stride: PerAxis = 1,
    padding: Padding = 0,
    dilation: PerAxis = 1,
) -> Tensor:
    """Images to which the columns of `unfold4d` add up: its adjoint.

    The other parameters are those of `unfold4d`.

    Parameters
    ----------
    x : Tensor, shape (N, C * kernel height * kernel width, windows)
        A column for each window, float.
    output_size : int or tuple of int
        Height and width of the images.
    kernel_size : int or tuple of int
        Height and width of a window, as given to `unfold4d`.

    Returns
    -------
    Tensor, shape (N, C, *output_size)
        Each element is the sum of its values in all windows.

    Raises
    ------
    ShapeError
        If `x` is not what `unfold4d` gives for images of this size.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> columns = burn.ones((1, 4, 2), device="cpu")
    >>> F.fold4d(columns, (2, 3), 2).tolist()
    [[[[1.0, 2.0, 1.0], [1.0, 2.0, 1.0]]]]
    """
    size = per_axis(output_size, 2, "output_size", "fold4d")
    attributes = _attributes("fold4d", kernel_size, stride, padding, dilation)
    return calls.fold4d(x, output_size=size, **attributes)


def _attributes(
    operation: str, kernel_size: PerAxis, stride: PerAxis, padding: Padding, dilation: PerAxis
) -> dict[str, Any]:
    """The arguments that both functions share, as attributes of their ops."""
    return {
        "kernel_size": per_axis(kernel_size, 2, "kernel_size", operation),
        "stride": per_axis(stride, 2, "stride", operation),
        "padding": as_padding(padding, 2, operation),
        "dilation": per_axis(dilation, 2, "dilation", operation),
    }
