"""What training adds at random: dropout of elements and channels, and noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from burn.functions import random
from burn.functions.normalize import number_dtype
from burn.nn import functional as F
from burn.nn.module import Module
from burn.ops.arguments import real_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from burn.tensor.tensor import Tensor

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "GaussianNoise"]


class _Dropout(Module):
    """What layers of dropout share."""

    _function: ClassVar[Callable[..., Tensor]]

    def __init__(self, p: float = 0.5) -> None:
        self.p = real_number(p, "p", f"nn.{type(self).__name__}", least=0.0, most=1.0)

    def forward(self, x: Tensor) -> Tensor:
        """In the shape of the input; the input itself after training."""
        return self._function(x, self.p, training=self.is_training(x))


class Dropout(_Dropout):
    """In training, elements zeroed with a probability; the others times ``1 / (1 - p)``.

    Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from Overfitting", JMLR
    2014. The generator of the device decides, so that the same seed drops the same elements on
    every backend.

    Parameters
    ----------
    p : float
        The probability of zero, from 0 to 1.

    Raises
    ------
    ArgumentError
        If `p` is not between 0 and 1.

    Examples
    --------
    >>> import burn
    >>> layer = burn.nn.Dropout(0.75)
    >>> x = burn.ones(1000, device=burn.Device("cpu").autodiff())
    >>> sorted(set(layer(x).tolist()))
    [0.0, 4.0]
    >>> sorted(set(layer.eval()(x).tolist()))
    [1.0]
    """

    _function = staticmethod(F.dropout)


class Dropout1d(_Dropout):
    """`Dropout` of whole signals, of shape (..., C, L), instead of elements.

    Examples
    --------
    >>> import burn
    >>> burn.nn.Dropout1d(0.5)(burn.ones((8, 3, 4))).shape
    (8, 3, 4)
    """

    _function = staticmethod(F.dropout1d)


class Dropout2d(_Dropout):
    """`Dropout` of whole images, of shape (..., C, H, W), instead of elements.

    Examples
    --------
    >>> import burn
    >>> burn.nn.Dropout2d(0.5)(burn.ones((8, 3, 4, 4))).shape
    (8, 3, 4, 4)
    """

    _function = staticmethod(F.dropout2d)


class Dropout3d(_Dropout):
    """`Dropout` of whole volumes, of shape (..., C, D, H, W), instead of elements.

    Examples
    --------
    >>> import burn
    >>> burn.nn.Dropout3d(0.5)(burn.ones((8, 3, 4, 4, 4))).shape
    (8, 3, 4, 4, 4)
    """

    _function = staticmethod(F.dropout3d)


class AlphaDropout(_Dropout):
    """`Dropout` for `SELU`, which keeps mean 0 and variance 1.

    Klambauer et al., 2017, arXiv:1706.02515.

    Parameters
    ----------
    p : float
        The probability of an element to be dropped, from 0 to 1.

    Examples
    --------
    >>> import burn
    >>> burn.nn.AlphaDropout(0.1)(burn.ones((8, 3))).shape
    (8, 3)
    """

    _function = staticmethod(F.alpha_dropout)


class GaussianNoise(Module):
    """In training, normal numbers with mean 0 are added to the input.

    Parameters
    ----------
    std : float
        Their standard deviation.

    Raises
    ------
    ArgumentError
        If it is negative.

    Examples
    --------
    >>> import burn
    >>> burn.nn.GaussianNoise(0.1)(burn.ones((8, 3))).shape
    (8, 3)
    """

    def __init__(self, std: float) -> None:
        self.std = real_number(std, "std", "nn.GaussianNoise", least=0.0)

    def forward(self, x: Tensor) -> Tensor:
        """In the shape of the input; the input itself after training."""
        if not self.is_training(x) or self.std == 0.0:
            return x
        return x + random.normal(x.shape, 0.0, self.std, dtype=number_dtype(x), device=x.device)
