"""Low-rank adaptation: linear layers that stay as they are, and small ones that learn beside them.

E. J. Hu et al., "LoRA: Low-rank adaptation of large language models" (2021, arXiv:2106.09685).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeVar

from burn.errors import ArgumentError, OperandTypeError
from burn.functions.gradient import no_grad
from burn.functions.linalg.linear_algebra import matmul
from burn.functions.normalize import number_dtype
from burn.functions.quantization import numbers_of
from burn.nn import functional as F, init
from burn.nn._layer_selection import Only, selected_layers
from burn.nn.linear import Linear
from burn.nn.module import Module
from burn.ops.arguments import as_integer, real_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from burn.tensor.tensor import Tensor

__all__ = ["LoRALinear", "add_lora", "merge_lora"]

_Model = TypeVar("_Model", bound=Module)


class LoRALinear(Module):
    """A frozen `Linear`, plus a product of two thin matrices that are trained.

    The output is ``base(x) + alpha / rank * x @ down.T @ up.T``. At first `up` is 0, so the layer
    computes what `base` does.

    Parameters
    ----------
    base : Linear
        The layer, whose parameters are frozen; its weight may be quantized.
    rank : int
        Number of rows of `down` and of columns of `up`, at least 1.
    alpha : float, optional
        The output of the matrices is multiplied by ``alpha / rank``. By default `rank`.
    dropout : float
        In training, the probability that an element of their input is 0.

    Attributes
    ----------
    base : Linear
        The layer.
    down : Tensor, shape (rank, in_features)
        Normally distributed at first, with a variance of ``1 / in_features``.
    up : Tensor, shape (out_features, rank)
        Zeros at first.

    Raises
    ------
    ArgumentError
        If a number is out of its range.
    OperandTypeError
        If `base` is no `Linear`.

    See Also
    --------
    add_lora : Replaces the linear layers of a model.

    Examples
    --------
    >>> import burn
    >>> layer = burn.nn.LoRALinear(burn.nn.Linear(64, 32), rank=4)
    >>> layer(burn.ones((8, 64))).shape
    (8, 32)
    >>> layer.down.shape, layer.up.shape
    ((4, 64), (32, 4))
    """

    def __init__(
        self, base: Linear, rank: int, *, alpha: float | None = None, dropout: float = 0.0
    ) -> None:
        operation = "nn.LoRALinear"
        if not isinstance(base, Linear):
            raise OperandTypeError(
                f"base is an object of type {type(base).__name__}",
                hint="It is a Linear; nn.add_lora replaces those of a model",
                operation=operation,
            )
        self.rank = as_integer(rank, "rank", operation, least=1)
        self.alpha = (
            float(self.rank)
            if alpha is None
            else real_number(alpha, "alpha", operation, above=0.0, below=math.inf)
        )
        self.dropout = real_number(dropout, "dropout", operation, least=0.0, most=1.0)
        self.base = base.freeze()
        kind: Any = {"dtype": number_dtype(base.weight), "device": base.weight.device}
        deviation = max(base.in_features, 1) ** -0.5
        self.down = init.normal((self.rank, base.in_features), std=deviation, **kind)
        self.up = init.zeros((base.out_features, self.rank), **kind)

    def forward(self, x: Tensor) -> Tensor:
        """Shape (..., out_features) for an input of shape (..., in_features)."""
        given = F.dropout(x, self.dropout, training=self.is_training(x)) if self.dropout else x
        change = F.linear(F.linear(given, self.down, transposed=True), self.up, transposed=True)
        output: Tensor = self.base(x) + change * (self.alpha / self.rank)
        return output

    def merged(self) -> Linear:
        """The layer with what was learned added to its weight.

        Returns
        -------
        Linear
            `base`, which computes what this module does without dropout. A weight that was
            quantized is one of floats; `Module.quantize` quantizes it again.
        """
        with no_grad():
            change = matmul(self.up.detach(), self.down.detach()) * (self.alpha / self.rank)
            weight = self.base.weight.detach()
            self.base.weight.assign(numbers_of(weight) + change.inner())
        return self.base


def add_lora(
    model: _Model,
    rank: int,
    *,
    alpha: float | None = None,
    dropout: float = 0.0,
    only: Only = None,
) -> _Model:
    """Freeze a model, and replace its linear layers by `LoRALinear`.

    Parameters
    ----------
    model : Module
        The model, which is changed. Its weights may be quantized.
    rank, alpha, dropout
        As of `LoRALinear`.
    only : str, class, callable, or list of these, optional
        Selects linear layers, as in `Module.quantize`: a pattern of paths, such as
        ``"*.query"``; a class of modules; a function of path and layer. By default all.

    Returns
    -------
    Module
        The model; a `LoRALinear` if it is a `Linear` itself. Only the matrices beside its layers
        are trained: the parameters whose paths end in ``down`` and ``up``.

    Raises
    ------
    ArgumentError
        If there is no linear layer, or `only` fits none.

    Examples
    --------
    >>> from burn import nn
    >>> net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    >>> net = nn.add_lora(net, rank=2, only="0")
    >>> [path for path, x in net.named_parameters() if path.endswith(("down", "up"))]
    ['0.down', '0.up']
    >>> nn.merge_lora(net)
    Sequential(
        Linear(64, 32),  # frozen
        ReLU(),
        Linear(32, 10),  # frozen
    )
    """
    chosen = [selected_layer for _, selected_layer in selected_layers(model, only, "nn.add_lora")]
    layers = {id(module): module for module in chosen if isinstance(module, Linear)}
    if not layers:
        raise ArgumentError(
            "there is no Linear among the selected layers",
            hint="Low-rank matrices are put beside linear layers",
            operation="nn.add_lora",
        )
    model.freeze()
    made = {
        key: LoRALinear(layer, rank, alpha=alpha, dropout=dropout) for key, layer in layers.items()
    }
    adapted: _Model = _with_replaced(model, lambda module: made.get(id(module), module))
    return adapted


def merge_lora(model: _Model) -> _Model:
    """Replace each `LoRALinear` of a model by a linear layer that computes the same.

    Parameters
    ----------
    model : Module
        The model, which is changed.

    Returns
    -------
    Module
        The model; a `Linear` if it is a `LoRALinear` itself. Its parameters stay frozen; see
        `Module.unfreeze`.

    Examples
    --------
    >>> from burn import nn
    >>> nn.merge_lora(nn.add_lora(nn.Linear(4, 2), rank=1))
    Linear(4, 2)
    """
    made: dict[int, Linear] = {}

    def plain(one: Module) -> Module:
        if not isinstance(one, LoRALinear):
            return one
        if id(one) not in made:
            made[id(one)] = one.merged()
        return made[id(one)]

    merged: _Model = _with_replaced(model, plain)
    return merged


def _with_replaced(model: Any, replacement: Callable[[Module], Module]) -> Any:
    """A model in which modules are replaced; one that replaces another is not searched."""
    new = replacement(model)
    if new is not model:
        return new
    for module in model.modules():
        for name, value in list(vars(module).items()):
            changed = _replaced(value, replacement)
            if changed is not value:
                setattr(module, name, changed)
    return model


def _replaced(value: Any, replacement: Callable[[Module], Module]) -> Any:
    """The value of an attribute with modules replaced; the value itself if there are none."""
    if isinstance(value, Module):
        return replacement(value)
    if isinstance(value, dict):
        items = {key: _replaced(part, replacement) for key, part in value.items()}
        return items if any(items[key] is not part for key, part in value.items()) else value
    if isinstance(value, (list, tuple)):
        parts = [_replaced(part, replacement) for part in value]
        if all(new is old for new, old in zip(parts, value, strict=True)):
            return value
        if isinstance(value, list):
            return parts
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value
