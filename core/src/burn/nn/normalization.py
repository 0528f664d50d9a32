"""Normalization: of batches with running statistics, of layers, groups, instances and channels."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from burn.autodiff import running_again
from burn.devices import VMAP
from burn.docstrings import documented_as
from burn.errors import AutodiffError, ShapeError
from burn.functions.creation import zeros
from burn.functions.data_type import finfo
from burn.functions.normalize import as_shape, find_device, number_dtype
from burn.functions.rearranging import tile
from burn.functions.statistical import mean
from burn.nn import functional as F, init
from burn.nn.module import Module
from burn.ops.arguments import as_integer

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.functions.common import DeviceLike, DTypeLike
    from burn.tensor.tensor import Tensor

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "LocalResponseNorm",
    "RMSNorm",
]


_LAYOUTS: Final = {2: "(N, C)", 3: "(N, C, L)", 4: "(N, C, H, W)", 5: "(N, C, D, H, W)"}
"""By numbers of axes."""


class _ChannelNorm(Module):
    """Normalization of channels with known statistics, or with those of the input."""

    buffers = ("running_mean", "running_var")

    _ranks: ClassVar[tuple[int, ...]]
    """Numbers of axes of inputs."""

    def __init__(
        self,
        num_features: int,
        epsilon: float,
        *,
        affine: bool,
        track_running_stats: bool,
        dtype: DTypeLike | None,
        device: DeviceLike | None,
    ) -> None:
        self.num_features, self.epsilon = num_features, epsilon
        self.affine, self.track_running_stats = affine, track_running_stats
        self.weight, self.bias = _scale_and_shift(
            num_features, scale=affine, shift=affine, dtype=dtype, device=device
        )
        self.running_mean: Tensor | None = None
        self.running_var: Tensor | None = None
        self.num_batches_tracked: Tensor | None = None
        if track_running_stats:
            target = find_device(device, self._operation)
            self.running_mean = init.zeros(num_features, dtype=dtype, device=target)
            self.running_var = init.ones(num_features, dtype=dtype, device=target)
            self.num_batches_tracked = zeros((), dtype=target.settings.int_dtype, device=target)

    @property
    def _operation(self) -> str:
        return f"nn.{type(self).__name__}"

    def _check(self, x: Tensor) -> None:
        """Raise ShapeError unless `x` has a layout of the layer, and its channels."""
        if len(x.shape) not in self._ranks or x.shape[1] != self.num_features:
            raise ShapeError(
                f"an input of shape {x.shape} for {self.num_features} channels",
                hint=f"The shape is {' or '.join([_LAYOUTS[rank] for rank in self._ranks])}",
                operation=self._operation,
            )

    def _with(self, x: Tensor, means: Tensor, variances: Tensor) -> Tensor:
        """The input normalized with known statistics, in its dtype."""
        y = F.batch_norm(x, means, variances, self.weight, self.bias, epsilon=self.epsilon)
        return y if y.dtype is x.dtype else y.astype(number_dtype(x))

    def _check_that_it_can_update(self, x: Tensor) -> None:
        if VMAP in x.device.layers:
            raise AutodiffError(
                "running statistics cannot be updated inside burn.vmap, where each example has "
                "statistics of its own",
                hint="Call eval() before, or use a layer without running statistics: GroupNorm, or "
                "track_running_stats=False",
                operation=self._operation,
            )


class _BatchNorm(_ChannelNorm):
    """What layers of batch normalization share."""

    def __init__(
        self,
        num_features: int,
        epsilon: float = 1e-5,
        momentum: float | None = 0.1,
        *,
        affine: bool = True,
        track_running_stats: bool = True,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
    ) -> None:
        super().__init__(
            num_features,
            epsilon,
            affine=affine,
            track_running_stats=track_running_stats,
            dtype=dtype,
            device=device,
        )
        self.momentum = momentum

    def forward(self, x: Tensor) -> Tensor:
        """The input, normalized; in training the running statistics get other values."""
        self._check(x)
        olds = self.running_mean, self.running_var
        if not self.is_training(x) and olds[0] is not None and olds[1] is not None:
            return self._with(x, olds[0], olds[1])
        if running_again.get():
            olds = None, None
        elif olds[0] is not None:
            self._check_that_it_can_update(x)
        output: Tensor
        output, *news = F.batch_norm_training(
            x,
            *olds,
            self.weight,
            self.bias,
            momentum=1.0 if self.momentum is None else self.momentum,
            epsilon=self.epsilon,
        )
        count = self.num_batches_tracked
        if self.momentum is None and count is not None and news[0] is not None:
            count.assign(count + 1)
            divisor = count.astype(news[0].dtype)
            news = [old + (new - old) / divisor for old, new in zip(olds, news, strict=True)]
        for old, new in zip(olds, news, strict=True):
            if old is not None:
                old.assign(new)
        return output


class BatchNorm1d(_BatchNorm):
    """`BatchNorm2d` of vectors, of shape (N, C), or signals, of shape (N, C, L).

    Examples
    --------
    >>> import burn
    >>> burn.nn.BatchNorm1d(3)(burn.ones((8, 3))).shape
    (8, 3)
    """

    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Each channel of a batch of images, of shape (N, C, H, W), with mean 0 and variance 1.

    Ioffe and Szegedy, 2015, arXiv:1502.03167. In training the statistics are those of the batch,
    and move the running ones; else they are the running ones.

    Parameters
    ----------
    num_features : int
        Number of channels.
    epsilon : float
        Added to the variance.
    momentum : float or None
        Weight of a batch in the running statistics; None: they are the means of all batches.
    affine : bool
        Whether there are a scale and a shift for each channel.
    track_running_stats : bool
        Whether there are running statistics. If not, those of the batch count always.
    dtype : DType, optional
        Of parameters and running statistics.
    device : Device or str, optional
        Where they are.

    Attributes
    ----------
    weight, bias : Tensor, shape (num_features,), or None
        Scale and shift; ones and zeros at first.
    running_mean, running_var : Tensor, shape (num_features,), or None
        Running statistics; zeros and ones at first.
    num_batches_tracked : Tensor, shape (), or None
        Number of batches; it is counted where `momentum` is None alone.

    Raises
    ------
    ShapeError
        When called, if the input has another layout, or in training too few elements of a channel.
    AutodiffError
        When called in training inside of `burn.vmap`, if there are running statistics.

    Notes
    -----
    Functions of `burn.checkpoint` run twice; their first run updates the running statistics.

    Examples
    --------
    >>> import burn
    >>> layer = burn.nn.BatchNorm2d(3)
    >>> layer(burn.ones((8, 3, 4, 4))).shape
    (8, 3, 4, 4)
    """

    _ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """`BatchNorm2d` of volumes, of shape (N, C, D, H, W).

    Examples
    --------
    >>> import burn
    >>> burn.nn.BatchNorm3d(3)(burn.ones((8, 3, 2, 2, 2))).shape
    (8, 3, 2, 2, 2)
    """

    _ranks = (5,)


class _InstanceNorm(_ChannelNorm):
    """What layers of instance normalization share."""

    def __init__(
        self,
        num_features: int,
        epsilon: float = 1e-5,
        momentum: float = 0.1,
        *,
        affine: bool = False,
        track_running_stats: bool = False,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
    ) -> None:
        super().__init__(
            num_features,
            epsilon,
            affine=affine,
            track_running_stats=track_running_stats,
            dtype=dtype,
            device=device,
        )
        self.momentum = momentum

    def forward(self, x: Tensor) -> Tensor:
        """The input, normalized; in training the running statistics get other values."""
        self._check(x)
        means, variances = self.running_mean, self.running_var
        if means is None or variances is None or running_again.get():
            return F.instance_norm(x, self.weight, self.bias, epsilon=self.epsilon)
        if not self.is_training(x):
            return self._with(x, means, variances)
        self._check_that_it_can_update(x)
        batch, channels, *spatial = x.shape
        step = F.batch_norm_training(  # of one example that has the channels of all
            x.reshape((1, batch * channels, *spatial)),
            tile(means, batch),
            tile(variances, batch),
            momentum=self.momentum,
        )
        for old, new in (means, step.running_mean), (variances, step.running_variance):
            old.assign(mean(new.reshape((batch, channels)), axis=0))
        return F.instance_norm(x, self.weight, self.bias, epsilon=self.epsilon)


class InstanceNorm1d(_InstanceNorm):
    """`InstanceNorm2d` of signals, of shape (N, C, L).

    Examples
    --------
    >>> import burn
    >>> burn.nn.InstanceNorm1d(3)(burn.ones((8, 3, 4))).shape
    (8, 3, 4)
    """

    _ranks = (3,)


class InstanceNorm2d(_InstanceNorm):
    """Each channel of each image, of shape (N, C, H, W), with mean 0 and variance 1.

    Ulyanov et al., 2016, arXiv:1607.08022.

    Parameters
    ----------
    num_features : int
        Number of channels.
    epsilon : float
        Added to the variance.
    momentum : float
        Weight of a batch in the running statistics.
    affine : bool
        Whether there are a scale and a shift for each channel.
    track_running_stats : bool
        Whether there are running statistics, which replace those of the instances after training.
    dtype : DType, optional
        Of parameters and running statistics.
    device : Device or str, optional
        Where they are.

    Attributes
    ----------
    weight, bias : Tensor, shape (num_features,), or None
        Scale and shift; ones and zeros at first.
    running_mean, running_var, num_batches_tracked : Tensor or None
        As in `BatchNorm2d`; batches are not counted.

    Raises
    ------
    ShapeError
        When called, if the input has another layout.
    AutodiffError
        When called in training inside of `burn.vmap`, if there are running statistics.

    Examples
    --------
    >>> import burn
    >>> burn.nn.InstanceNorm2d(3, affine=True)(burn.ones((8, 3, 4, 4))).shape
    (8, 3, 4, 4)
    """

    _ranks = (4,)


class InstanceNorm3d(_InstanceNorm):
    """`InstanceNorm2d` of volumes, of shape (N, C, D, H, W).

    Examples
    --------
    >>> import burn
    >>> burn.nn.InstanceNorm3d(3)(burn.ones((8, 3, 2, 2, 2))).shape
    (8, 3, 2, 2, 2)
    """

    _ranks = (5,)


class GroupNorm(Module):
    """Each group of channels of each example, of shape (N, C, ...), with mean 0 and variance 1.

    Wu and He, 2018, arXiv:1803.08494.

    Parameters
    ----------
    num_groups : int
        Number of groups of neighbouring channels; it divides `num_channels`.
    num_channels : int
        Number of channels.
    epsilon : float
        Added to the variance.
    affine : bool
        Whether there are a scale and a shift for each channel.
    dtype : DType, optional
        Of the parameters.
    device : Device or str, optional
        Where they are.

    Attributes
    ----------
    weight, bias : Tensor, shape (num_channels,), or None
        Scale and shift; ones and zeros at first.

    Raises
    ------
    ShapeError
        If the groups do not divide the channels; when called, if the input has others.

    Examples
    --------
    >>> import burn
    >>> burn.nn.GroupNorm(2, 6)(burn.ones((8, 6, 4, 4))).shape
    (8, 6, 4, 4)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        epsilon: float = 1e-5,
        *,
        affine: bool = True,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
    ) -> None:
        as_integer(num_groups, "num_groups", "nn.GroupNorm")
        as_integer(num_channels, "num_channels", "nn.GroupNorm")
        if num_groups < 1 or num_channels % num_groups:
            raise ShapeError(
                f"{num_channels} channels cannot be divided into {num_groups} groups",
                hint="The number of groups divides the number of channels",
                operation="nn.GroupNorm",
            )
        self.num_groups, self.num_channels = num_groups, num_channels
        self.epsilon, self.affine = epsilon, affine
        self.weight, self.bias = _scale_and_shift(
            num_channels, scale=affine, shift=affine, dtype=dtype, device=device
        )

    def forward(self, x: Tensor) -> Tensor:
        """The input, normalized."""
        if len(x.shape) < 2 or x.shape[1] != self.num_channels:
            raise ShapeError(
                f"an input of shape {x.shape} for {self.num_channels} channels",
                hint="The shape is (N, C, ...)",
                operation="nn.GroupNorm",
            )
        return F.group_norm(x, self.num_groups, self.weight, self.bias, epsilon=self.epsilon)


class LayerNorm(Module):
    """The last axes with mean 0 and variance 1.

    Ba et al., 2016, arXiv:1607.06450.

    Parameters
    ----------
    normalized_shape : int or tuple of int
        Lengths of the axes.
    epsilon : float
        Added to the variance.
    elementwise_affine : bool
        Whether there are a scale and a shift for each element.
    bias : bool
        Whether there is a shift, where `elementwise_affine` is true.
    dtype : DType, optional
        Of the parameters.
    device : Device or str, optional
        Where they are.

    Attributes
    ----------
    weight, bias : Tensor, shape normalized_shape, or None
        Scale and shift; ones and zeros at first.

    Raises
    ------
    ShapeError
        When called, if the last axes of the input have other lengths.

    Examples
    --------
    >>> import burn
    >>> burn.nn.LayerNorm(4)(burn.ones((8, 3, 4))).shape
    (8, 3, 4)
    """

    def __init__(
        self,
        normalized_shape: int | tuple[int, ...],
        epsilon: float = 1e-5,
        *,
        elementwise_affine: bool = True,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
    ) -> None:
        self.normalized_shape, self.epsilon = normalized_shape, epsilon
        self.elementwise_affine = elementwise_affine
        self.weight, self.bias = _scale_and_shift(
            as_shape(normalized_shape, "nn.LayerNorm"),
            scale=elementwise_affine,
            shift=elementwise_affine and bias,
            dtype=dtype,
            device=device,
        )

    def forward(self, x: Tensor) -> Tensor:
        """The input, normalized."""
        axis = _last_axes(x, self.normalized_shape, "nn.LayerNorm")
        return F.layer_norm(x, self.weight, self.bias, axis=axis, epsilon=self.epsilon)


class RMSNorm(Module):
    """The last axes divided by the root of their mean square.

    Zhang and Sennrich, 2019, arXiv:1910.07467.

    Parameters
    ----------
    normalized_shape : int or tuple of int
        Lengths of the axes.
    epsilon : float or None
        Added to the mean square. None: the distance of 1 to the next number of the input's dtype,
        as in PyTorch.
    elementwise_affine : bool
        Whether there is a scale for each element.
    dtype : DType, optional
        Of the parameter.
    device : Device or str, optional
        Where it is.

    Attributes
    ----------
    weight : Tensor, shape normalized_shape, or None
        Scale; ones at first.

    Raises
    ------
    ShapeError
        When called, if the last axes of the input have other lengths.

    Examples
    --------
    >>> import burn
    >>> burn.nn.RMSNorm(4)(burn.ones((8, 3, 4))).shape
    (8, 3, 4)
    """

    def __init__(
        self,
        normalized_shape: int | tuple[int, ...],
        epsilon: float | None = None,
        *,
        elementwise_affine: bool = True,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
    ) -> None:
        self.normalized_shape, self.epsilon = normalized_shape, epsilon
        self.elementwise_affine = elementwise_affine
        self.weight, _ = _scale_and_shift(
            as_shape(normalized_shape, "nn.RMSNorm"),
            scale=elementwise_affine,
            shift=False,
            dtype=dtype,
            device=device,
        )

    def forward(self, x: Tensor) -> Tensor:
        """The input, normalized."""
        axis = _last_axes(x, self.normalized_shape, "nn.RMSNorm")
        epsilon = finfo(number_dtype(x)).eps if self.epsilon is None else self.epsilon
        return F.rms_norm(x, self.weight, axis=axis, epsilon=epsilon)


@documented_as(F.local_response_norm)
class LocalResponseNorm(Module):
    """Channels divided by what their neighbours hold; see `burn.nn.functional.local_response_norm`.

    Krizhevsky et al., "ImageNet classification with deep convolutional neural networks", NIPS 2012.

    Examples
    --------
    >>> import burn
    >>> burn.nn.LocalResponseNorm(2)(burn.ones((8, 6, 4, 4))).shape
    (8, 6, 4, 4)
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, x: Tensor) -> Tensor:
        """In the shape of the input, (N, C, ...)."""
        return F.local_response_norm(x, self.size, alpha=self.alpha, beta=self.beta, k=self.k)


def _scale_and_shift(
    shape: int | Shape,
    *,
    scale: bool,
    shift: bool,
    dtype: DTypeLike | None,
    device: DeviceLike | None,
) -> tuple[Tensor | None, Tensor | None]:
    """Ones and zeros, or None."""
    return (
        init.ones(shape, dtype=dtype, device=device) if scale else None,
        init.zeros(shape, dtype=dtype, device=device) if shift else None,
    )


def _last_axes(x: Tensor, expected: int | tuple[int, ...], operation: str) -> int | tuple[int, ...]:
    """The axes of an input that are normalized together, counted from its last."""
    lengths = (expected,) if isinstance(expected, int) else tuple(expected)
    if not lengths or x.shape[-len(lengths) :] != lengths:
        raise ShapeError(
            f"an input of shape {x.shape}",
            hint=f"Its last axes have the lengths {lengths}",
            operation=operation,
        )
    return -1 if len(lengths) == 1 else tuple(range(-len(lengths), 0))
