"""Activations: elementwise nonlinearities, gates and softmax, each a module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from burn.docstrings import documented_as
from burn.functions import elementwise
from burn.nn import functional as F
from burn.nn.init import constant
from burn.nn.linear import Linear
from burn.nn.module import Module

if TYPE_CHECKING:
    from burn.functions.common import DeviceLike, DTypeLike
    from burn.tensor.tensor import Tensor

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "QuietSoftmax",
    "RReLU",
    "ReLU",
    "ReLU6",
    "Shrink",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "SwiGLU",
    "Tanh",
    "Tanhshrink",
    "Threshold",
    "ThresholdedReLU",
]


class ReLU(Module):
    """``max(x, 0)``; see `burn.nn.functional.relu`."""

    forward = staticmethod(F.relu)


class ReLU6(Module):
    """``min(max(x, 0), 6)``; see `burn.nn.functional.relu6`."""

    forward = staticmethod(F.relu6)


class SELU(Module):
    """Scaled exponential linear unit; see `burn.nn.functional.selu`."""

    forward = staticmethod(F.selu)


class SiLU(Module):
    """Swish, ``x * sigmoid(x)``; see `burn.nn.functional.silu`."""

    forward = staticmethod(F.silu)


class Mish(Module):
    """``x * tanh(softplus(x))``; see `burn.nn.functional.mish`."""

    forward = staticmethod(F.mish)


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``; see `burn.nn.functional.sigmoid`."""

    forward = staticmethod(F.sigmoid)


class LogSigmoid(Module):
    """Logarithm of the sigmoid; see `burn.nn.functional.log_sigmoid`."""

    forward = staticmethod(F.log_sigmoid)


class Tanh(Module):
    """Hyperbolic tangent; see `burn.tanh`."""

    forward = staticmethod(elementwise.tanh)


class Tanhshrink(Module):
    """``x - tanh(x)``; see `burn.nn.functional.tanhshrink`."""

    forward = staticmethod(F.tanhshrink)


class Softsign(Module):
    """``x / (1 + abs(x))``; see `burn.nn.functional.softsign`."""

    forward = staticmethod(F.softsign)


class Hardswish(Module):
    """``x * min(max(x + 3, 0), 6) / 6``; see `burn.nn.functional.hard_swish`."""

    forward = staticmethod(F.hard_swish)


@documented_as(F.hard_sigmoid)
class Hardsigmoid(Module):
    """``min(max(x / 6 + 1 / 2, 0), 1)``; see `burn.nn.functional.hard_sigmoid`."""

    def __init__(self, alpha: float = 1.0 / 6.0, beta: float = 0.5) -> None:
        self.alpha, self.beta = alpha, beta

    def forward(self, x: Tensor) -> Tensor:
        """In the shape of the input."""
        return F.hard_sigmoid(x, alpha=self.alpha, beta=self.beta)


@documented_as(F.leaky_relu)
class LeakyReLU(Module):
    """The input where it is positive, else a multiple; see `burn.nn.functional.leaky_relu`."""

    def __init__(self, negative_slope: float = 0.01) -> None:
        self.negative_slope = negative_slope

    def forward(self, x: Tensor) -> Tensor:
        """In the shape of the input."""
        return F.leaky_relu(x, negative_slope=self.negative_slope)


class RReLU(Module):
    """In training, `LeakyReLU` with slopes that are drawn; see `burn.nn.functional.rrelu`.

    Parameters
    ----------
    lower, upper : float
        The bounds between which slopes are distributed uniformly; after training all slopes are
        their mean.
    """

    def __init__(self, lower: float = 1.0 / 8.0, upper: float = 1.0 / 3.0) -> None:
        self.lower, self.upper = lower, upper

    def forward(self, x: Tensor) -> Tensor:
        """In the shape of the input."""
        return F.rrelu(x, self.lower, self.upper, training=self.is_training(x))


class PReLU(Module):
    """`LeakyReLU` with slopes that are learned; see `burn.nn.functional.prelu`.

    Parameters
    ----------
    num_parameters : int
        One, or the number of channels, which lie along axis 1.
    init : float
        The first value of the slopes.
    dtype : DType, optional
        Of the slopes.
    device : Device or str, optional
        Where they are.

    Attributes
    ----------
    weight : Tensor, shape (num_parameters,)
        The slopes.
    """

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        *,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
    ) -> None:
        # Shown as an argument; read, it is the property of Module, which is the same number.
        vars(self)["num_parameters"] = num_parameters
        self.init = init
        self.weight = constant(num_parameters, init, dtype=dtype, device=device)

    def forward(self, x: Tensor) -> Tensor:
        """In the shape of the input."""
        return F.prelu(x, self.weight)


@documented_as(F.elu)
class ELU(Module):
    """Exponential linear unit; see `burn.nn.functional.elu`."""

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def forward(self, x: Tensor) -> Tensor:
        """In the shape of the input."""
        return F.elu(x, alpha=self.alpha)


@documented_as(F.celu)
class CELU(Module):
    """Continuously differentiable `ELU`; see `burn.nn.functional.celu`."""

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def forward(self, x: Tensor) -> Tensor:
        """In the shape of the input."""
        return F.celu(x, alpha=self.alpha)


@documented_as(F.gelu)
class GELU(Module):
    """Gaussian error linear unit; see `burn.nn.functional.gelu`."""

    def __init__(self, approximate: Literal["none", "tanh"] = "none") -> None:
        self.approximate: Literal["none", "tanh"] = approximate

    def forward(self, x: Tensor) -> Tensor:
        """In the shape of the input."""
        return F.gelu(x, approximate=self.approximate)


@documented_as(F.hardtanh)
class Hardtanh(Module):
    """``min(max(x, low), high)``; see `burn.nn.functional.hardtanh`."""

    def __init__(self, low: float = -1.0, high: float = 1.0) -> None:
        self.low, self.high = low, high

    def forward(self, x: Tensor) -> Tensor:
        """In the shape of the input."""
        return F.hardtanh(x, low=self.low, high=self.high)


@documented_as(F.softplus)
class Softplus(Module):
    """``log(1 + exp(beta * x)) / beta``; see `burn.nn.functional.softplus`."""

    def __init__(self, beta: float = 1.0) -> None:
        self.beta = beta

    def forward(self, x: Tensor) -> Tensor:
        """In the shape of the input."""
        return F.softplus(x, beta=self.beta)


@documented_as(F.hard_shrink)
class Hardshrink(Module):
    """The input, but 0 near 0; see `burn.nn.functional.hard_shrink`."""

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd

    def forward(self, x: Tensor) -> Tensor:
        """In the shape of the input."""
        return F.hard_shrink(x, lambd=self.lambd)


@documented_as(F.soft_shrink)
class Softshrink(Module):
    """The input moved towards 0; see `burn.nn.functional.soft_shrink`."""

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd

    def forward(self, x: Tensor) -> Tensor:
        """In the shape of the input."""
        return F.soft_shrink(x, lambd=self.lambd)


@documented_as(F.shrink)
class Shrink(Module):
    """The input moved towards 0 beyond a threshold; see `burn.nn.functional.shrink`."""

    def __init__(self, lambd: float = 0.5, bias: float = 0.0) -> None:
        self.lambd, self.bias = lambd, bias

    def forward(self, x: Tensor) -> Tensor:
        """In the shape of the input."""
        return F.shrink(x, lambd=self.lambd, bias=self.bias)


@documented_as(F.threshold)
class Threshold(Module):
    """The input above a threshold, else a number; see `burn.nn.functional.threshold`."""

    def __init__(self, threshold: float, value: float) -> None:
        self.threshold, self.value = threshold, value

    def forward(self, x: Tensor) -> Tensor:
        """In the shape of the input."""
        return F.threshold(x, threshold=self.threshold, value=self.value)


@documented_as(F.thresholded_relu)
class ThresholdedReLU(Module):
    """The input where it is above `alpha`, else 0; see `burn.nn.functional.thresholded_relu`."""

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def forward(self, x: Tensor) -> Tensor:
        """In the shape of the input."""
        return F.thresholded_relu(x, alpha=self.alpha)


@documented_as(F.softmax)
class Softmax(Module):
    """``exp(x) / sum(exp(x))`` along an axis; see `burn.nn.functional.softmax`."""

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        """In the shape of the input."""
        return F.softmax(x, axis=self.axis)


@documented_as(F.log_softmax)
class LogSoftmax(Module):
    """Logarithm of the softmax along an axis; see `burn.nn.functional.log_softmax`."""

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        """In the shape of the input."""
        return F.log_softmax(x, axis=self.axis)


@documented_as(F.softmin)
class Softmin(Module):
    """Softmax of the negative input along an axis; see `burn.nn.functional.softmin`."""

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        """In the shape of the input."""
        return F.softmin(x, axis=self.axis)


@documented_as(F.quiet_softmax)
class QuietSoftmax(Module):
    """``exp(x) / (1 + sum(exp(x)))`` along an axis; see `burn.nn.functional.quiet_softmax`."""

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        """In the shape of the input."""
        return F.quiet_softmax(x, axis=self.axis)


class Softmax2d(Module):
    """Softmax over the channels of images, of shape (..., C, H, W)."""

    def forward(self, x: Tensor) -> Tensor:
        """In the shape of the input."""
        return F.softmax(x, axis=-3)


@documented_as(F.glu)
class GLU(Module):
    """Gated linear unit: one half along an axis times the sigmoid of the other.

    See `burn.nn.functional.glu`.
    """

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        """With half the length along the axis."""
        return F.glu(x, axis=self.axis)


class SwiGLU(Module):
    """``silu(linear_inner(x)) * linear_outer(x)`` (Shazeer, 2020, arXiv:2002.05202).

    Parameters
    ----------
    in_features, out_features : int
        Lengths of the last axis of the input and of the output.
    bias : bool
        Whether the linear maps have one.
    dtype : DType, optional
        Of the parameters.
    device : Device or str, optional
        Where they are.

    Attributes
    ----------
    linear_inner, linear_outer : Linear
        The maps: that of the gate, and the other.

    Examples
    --------
    >>> import burn
    >>> burn.nn.SwiGLU(4, 6)(burn.ones((8, 4))).shape
    (8, 6)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        bias: bool = False,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
    ) -> None:
        self.in_features, self.out_features, self.bias = in_features, out_features, bias
        self.linear_inner = Linear(in_features, out_features, bias=bias, dtype=dtype, device=device)
        self.linear_outer = Linear(in_features, out_features, bias=bias, dtype=dtype, device=device)

    def forward(self, x: Tensor) -> Tensor:
        """Shape (..., out_features) for an input of shape (..., in_features)."""
        outer: Tensor = self.linear_outer(x)
        return F.silu(self.linear_inner(x)) * outer
