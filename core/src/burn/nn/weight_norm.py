"""Weights in two factors: lengths, and directions.

T. Salimans and D. P. Kingma, "Weight normalization: a simple reparameterization to accelerate
training of deep neural networks" (2016, arXiv:1602.07868).
"""

from __future__ import annotations

import copy
from typing import Any

from burn.errors import ArgumentError, OperandTypeError
from burn.functions.elementwise import equal
from burn.functions.gradient import no_grad
from burn.functions.linalg.norms import vector_norm
from burn.functions.normalize import normalize_axis
from burn.functions.searching import where
from burn.nn.module import Module
from burn.tensor.tensor import Tensor

__all__ = ["WeightNorm"]


class WeightNorm(Module):
    """A layer whose weight is ``magnitude * direction / norm(direction)``; both are trained.

    Parameters
    ----------
    layer : Module
        A layer with an attribute `weight`: `Linear`, `Conv2d` and their like. The parameters here
        replace the weight; all else of the layer stays.
    axis : int, optional
        The axis of the weight along which each index has a length of its own: that of the outputs
        by default. None for one length of the whole weight.

    Attributes
    ----------
    layer : Module
        The layer, without its weight.
    magnitude : Tensor
        The lengths, of the shape of the weight with 1 in place of all other axes; at first those
        of the weight.
    direction : Tensor
        In the shape of the weight, which it is at first.

    Raises
    ------
    OperandTypeError
        If the layer has no weight of floats.
    AxisError
        If the weight has no such axis.

    Notes
    -----
    As ``torch.nn.utils.parametrizations.weight_norm``, whose parameters are called
    ``original0`` (the lengths) and ``original1``.

    Examples
    --------
    >>> import burn
    >>> layer = burn.nn.WeightNorm(burn.nn.Linear(4, 2))
    >>> layer(burn.ones((8, 4))).shape
    (8, 2)
    >>> [(path, x.shape) for path, x in layer.named_parameters()]
    [('layer.bias', (2,)), ('magnitude', (2, 1)), ('direction', (2, 4))]
    """

    def __init__(self, layer: Module, axis: int | None = 0) -> None:
        weight = getattr(layer, "weight", None)
        if not isinstance(weight, Tensor) or not weight.dtype.is_float:
            raise OperandTypeError(
                f"an object of type {type(layer).__name__} has no weight of floats",
                hint="Linear, Embedding and convolutions have one",
                operation="nn.WeightNorm",
            )
        if axis is not None:
            axis = normalize_axis(weight, axis, "nn.WeightNorm")
        self.layer: Any = layer
        self.axis = axis
        self.layer.weight = None
        with no_grad():
            self.magnitude = self._lengths(weight.detach())
        self.direction = weight

    def _lengths(self, x: Tensor) -> Tensor:
        axes = tuple([number for number in range(x.ndim) if number != self.axis])
        return vector_norm(x, axis=axes, keepdims=True)

    @property
    def weight(self) -> Tensor:
        """The weight with which the layer computes; a direction of zeros gives zeros."""
        lengths = self._lengths(self.direction)
        return self.direction * (self.magnitude / where(equal(lengths, 0.0), 1.0, lengths))

    def forward(self, *args: Any, **keywords: Any) -> Any:
        """What the layer computes with the weight."""
        layer = copy.copy(self.layer)
        object.__setattr__(layer, "weight", self.weight)  # of a copy that nothing else sees
        return layer.forward(*args, **keywords)

    def merged(self) -> Module:
        """The layer with the weight as its parameter.

        Returns
        -------
        Module
            `layer`, which computes the same from then on; this module has no layer any more.

        Raises
        ------
        ArgumentError
            If it was merged before.
        """
        if self.layer is None:
            raise ArgumentError("the layer was merged before", operation="nn.WeightNorm.merged")
        layer: Any = self.layer
        self.layer = None
        with no_grad():
            layer.weight = self.weight.detach()
        merged: Module = layer
        return merged
