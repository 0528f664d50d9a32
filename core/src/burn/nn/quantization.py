"""Quantized layers: their inputs and outputs, and training that knows of the quantization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from burn.errors import ShapeError
from burn.functions.code_products import linear_of_codes
from burn.functions.quantization import numbers_of
from burn.nn import functional as F
from burn.nn._layer_selection import Only, scheme_for, selected_layers
from burn.nn._structure import copy_with
from burn.nn.linear import Linear
from burn.nn.module import Module
from burn.quant_scheme import QDType, QuantLevel
from burn.quantization import Calibration, default_quant_scheme

if TYPE_CHECKING:
    from burn.dtype import DType
    from burn.quant_scheme import QuantScheme
    from burn.tensor.tensor import Tensor

__all__ = [
    "FakeQuantization",
    "LayerQuantization",
    "QuantizedEmbeddingTable",
    "QuantizedInputs",
    "prepare_qat",
]


class LayerQuantization(Module):
    """Base of what a layer has as its attribute ``quantization``.

    Of a layer with such an attribute, ``layer(x)`` returns what `call` returns, which calls
    ``layer.forward``.
    """

    calls_layers: ClassVar[bool] = True

    def call(self, layer: Module, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """What a call of the layer returns.

        Parameters
        ----------
        layer : Module
            The layer.
        args, keywords : tuple and dict
            Of the call.

        Returns
        -------
        object
            For the caller of the layer.
        """
        return layer.forward(*args, **keywords)


class QuantizedInputs(LayerQuantization):
    """Quantizes the input of a Linear layer, so that the product is one of codes.

    `Module.quantize` adds it to layers, for its argument `activations`. Where the input is tracked,
    the layer computes with the restored input, through which the gradient passes unchanged.

    Parameters
    ----------
    scheme : QuantScheme
        Of inputs.
    scales : Tensor, optional
        Fixed scales, as calibration gives. By default each call computes those of its input.

    Examples
    --------
    >>> import burn
    >>> from burn import nn
    >>> from burn.quantization import QuantScheme, QuantStore, ScaleDType
    >>> layer = nn.Linear(64, 32, bias=False, device="cpu")
    >>> scheme = QuantScheme(store=QuantStore.NATIVE).per_block((1, -1), ScaleDType.F32)
    >>> report = layer.quantize(scheme, activations=scheme)
    >>> layer(burn.ones((8, 64), device="cpu")).shape
    (8, 32)
    """

    buffers = ("scales",)

    def __init__(self, scheme: QuantScheme, scales: Tensor | None = None) -> None:
        self.scheme = scheme
        self.scales = scales

    def call(self, layer: Module, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """The output of the layer for a quantized input.

        Parameters
        ----------
        layer : Module
            The layer.
        args, keywords : tuple and dict
            Of the call.

        Returns
        -------
        Tensor
            In the dtype of the input.
        """
        x, others, keywords = split_input(args, keywords)
        x, scheme = numbers_of(x), _of_rank(self.scheme, x.ndim)
        weight: Tensor = vars(layer)["weight"]
        if x.is_tracked or not _has_codes(weight) or scheme.level.is_global:
            rounded = F.fake_quantize(x, scheme, scales=self.scales)
            return layer.forward(rounded, *others, **keywords)
        return linear_of_codes(x, weight, vars(layer)["bias"], scheme, scales=self.scales)


class QuantizedEmbeddingTable(LayerQuantization):
    """Restores the vectors of a quantized Embedding in the dtype that its table had.

    `Module.quantize` adds it to layers.

    Parameters
    ----------
    dtype : DType
        Of the vectors; `Module.astype` changes it.
    """

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype

    def call(self, layer: Module, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """The vectors of indices.

        Parameters
        ----------
        layer : Module
            The layer.
        args, keywords : tuple and dict
            Of the call.

        Returns
        -------
        Tensor
            In the dtype of the table.
        """
        found: Tensor = layer.forward(*args, **keywords)
        return found if found.dtype is self.dtype else found.astype(self.dtype)

    def _take_dtype(self, dtype: DType) -> None:
        self.dtype = dtype


class FakeQuantization(LayerQuantization):
    """Rounds the weight of a layer, and perhaps its input, to what quantization would leave.

    All is computed in floats, and gradients pass the rounding unchanged, so the parameters are
    trained for what `Module.quantize` makes of them. `prepare_qat` adds it to layers.

    Parameters
    ----------
    scheme : QuantScheme
        Of the weight.
    calibration : Calibration
        How the range of the weight is found.
    activations : QuantScheme, optional
        Of the inputs of Linear layers. By default they are not rounded.

    Notes
    -----
    Jacob et al., 2018, arXiv:1712.05877, section 3; the gradient is the straight-through estimator
    of Bengio et al., 2013, arXiv:1308.3432.
    """

    def __init__(
        self,
        scheme: QuantScheme,
        *,
        calibration: Calibration = Calibration.MIN_MAX,
        activations: QuantScheme | None = None,
    ) -> None:
        self.scheme, self.calibration, self.activations = scheme, calibration, activations

    def call(self, layer: Module, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """The output of the layer with a rounded weight.

        Parameters
        ----------
        layer : Module
            The layer.
        args, keywords : tuple and dict
            Of the call.

        Returns
        -------
        Tensor
            With a gradient to the weight.
        """
        weight: Tensor = vars(layer)["weight"]
        rounded = F.fake_quantize(weight, self.scheme, calibration=self.calibration)
        copy = copy_with(layer, {id(weight): rounded}, {}, is_cast=True)
        if self.activations is not None:
            x, others, keywords = split_input(args, keywords)
            args = F.fake_quantize(x, _of_rank(self.activations, x.ndim)), *others
        return copy.forward(*args, **keywords)


def prepare_qat(
    model: Module,
    scheme: QuantScheme | None = None,
    *,
    only: Only = None,
    calibration: Calibration = Calibration.MIN_MAX,
    activations: QuantScheme | None = None,
) -> Module:
    """Let a model train with the errors that quantization will make.

    Its parameters stay floats. In each call the layers compute with weights that are quantized and
    restored. Afterwards ``model.quantize()`` quantizes them by the same schemes.

    Parameters
    ----------
    model : Module
        On an autodiff device, to be trained.
    scheme : QuantScheme, optional
        Of weights; by default that of the device, `burn.default_quant_scheme`.
    only : str, class, callable, or list of these, optional
        Selects layers, as in `Module.quantize`.
    calibration : Calibration
        How the ranges of weights are found.
    activations : QuantScheme, optional
        Of the inputs of Linear layers. By default they stay as they are.

    Returns
    -------
    Module
        The same model. Layers whose weights the scheme does not fit stay as they are.

    Raises
    ------
    ArgumentError
        If `only` fits no layer.
    ShapeError
        If the scheme fits no weight of the selected layers.

    Examples
    --------
    >>> import burn
    >>> from burn import nn
    >>> from burn.quantization import QuantScheme, QuantValue, ScaleDType
    >>> device = burn.Device("cpu").autodiff()
    >>> net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 2)).to(device)
    >>> scheme = QuantScheme(QuantValue.Q4S).per_block((1, 32), ScaleDType.F16)
    >>> optimizer = burn.optim.Adam(nn.prepare_qat(net, scheme))
    >>> loss = (net(burn.ones((8, 32), device=device)) ** 2).mean()
    >>> optimizer.step(loss.backward())
    >>> net.quantize().rows[0].scheme == scheme
    True
    """
    operation = "nn.prepare_qat"
    is_fitting, reason = False, ""
    for path, layer in selected_layers(model, only, operation):
        weight: Tensor = vars(layer)["weight"]
        wanted = default_quant_scheme(weight.device) if scheme is None else scheme
        try:
            found = scheme_for(wanted, weight.shape)
        except ShapeError as error:
            reason = f"{path or 'the weight'}: {error.rule}"
            continue
        is_fitting = True
        layer.quantization = FakeQuantization(
            found,
            calibration=calibration,
            activations=activations if isinstance(layer, Linear) else None,
        )
    if not is_fitting:
        raise ShapeError(
            f"the scheme fits no weight; {reason}",
            hint="Choose another scheme, or other layers by only=...",
            operation=operation,
        )
    return model


def _has_codes(weight: Tensor) -> bool:
    """Whether there are products of the codes of a weight: it is quantized, and of one level."""
    return isinstance(weight.dtype, QDType) and not weight.dtype.scheme.level.is_global


def _of_rank(scheme: QuantScheme, rank: int) -> QuantScheme:
    """A scheme for an input of fewer axes than its blocks have: one row is a vector."""
    block = scheme.level.block
    if len(block) <= rank:
        return scheme
    while len(block) > max(rank, 1) and block[0] in (1, -1):
        block = block[1:]
    return scheme.with_level(QuantLevel(block, is_global=scheme.level.is_global))


def split_input(
    args: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[Tensor, tuple[Any, ...], dict[str, Any]]:
    """The first argument of a call, which may have its name, and the others."""
    if args:
        return args[0], args[1:], keywords
    others = dict(keywords)
    return others.pop("x"), (), others
