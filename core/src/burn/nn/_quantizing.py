"""Quantization of whole models: `Module.quantize`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from burn.dtype import float32, float64
from burn.errors import ArgumentError, OperandTypeError, ShapeError
from burn.functions.elementwise import maximum, minimum
from burn.functions.gradient import no_grad
from burn.functions.linalg.norms import max_abs_norm, vector_norm
from burn.functions.statistical import max as greatest, min as least
from burn.nn._layer_selection import Only, scheme_for, selected_layers
from burn.nn._preparation import begin_generation, own_state, prepare, quantization_of
from burn.nn._quantization_report import LayerReport, QuantizationReport, bytes_in, bytes_of
from burn.nn._reading import described_on_a_line
from burn.nn.linear import Embedding, Linear
from burn.nn.quantization import (
    FakeQuantization,
    LayerQuantization,
    QuantizedEmbeddingTable,
    QuantizedInputs,
    split_input,
)
from burn.quant_scheme import QDType, QuantScheme
from burn.quantization import (
    Calibration,
    CalibrationRange,
    compute_q_params,
    default_quant_scheme,
)

if TYPE_CHECKING:
    from burn.nn.module import Module
    from burn.tensor.tensor import Tensor

__all__ = ["quantize_model"]

_OPERATION = "Module.quantize"


@dataclass(slots=True, eq=False)
class _Plan:
    """What is to become of a layer, computed before anything is changed.

    Attributes
    ----------
    path : str
        Of the layer.
    layer : Module
        The layer.
    activations : QuantScheme or None
        Of its inputs.
    scheme : QuantScheme or None
        Of its weight; None if that stays as it is.
    note : str
        Why the weight stays as it is.
    value : Tensor or None
        The quantized weight.
    scales : Tensor or None
        Fixed scales of its inputs.
    """

    path: str
    layer: Any
    activations: QuantScheme | None
    scheme: QuantScheme | None = None
    note: str = ""
    value: Tensor | None = None
    scales: Tensor | None = None


def quantize_model(
    model: Module,
    scheme: QuantScheme | None,
    *,
    only: Only,
    calibration: Calibration | None,
    activations: QuantScheme | None,
    batches: Iterable[Any] | None,
) -> QuantizationReport:
    """What `Module.quantize` does."""
    for name, quant_scheme in (("scheme", scheme), ("activations", activations)):
        if quant_scheme is not None and not isinstance(quant_scheme, QuantScheme):
            raise OperandTypeError(
                f"{name} is an object of type {type(quant_scheme).__name__}",
                hint="Pass a burn.quantization.QuantScheme",
                operation=_OPERATION,
            )
    plans = [
        _planned(path, layer, scheme, activations)
        for path, layer in selected_layers(model, only, _OPERATION)
    ]
    _check_that_some_fit(plans)
    before = bytes_in(model)
    if batches is not None:
        _calibrate(model, [plan for plan in plans if plan.activations is not None], batches)
    once: dict[int, _Plan] = {}
    for plan in plans:
        once.setdefault(id(plan.layer.weight), plan)
    rows = []
    for plan in once.values():
        plan.value = _quantized(plan, calibration)
        rows.append(_row(plan))
    dtypes = {key: plan.layer.weight.dtype for key, plan in once.items() if plan.scheme is not None}
    for plan in plans:  # when all are computed: an error leaves the model as it was
        _apply(plan)
    for module in model.modules():
        if isinstance(module, Embedding) and id(module.weight) in dtypes:
            module.quantization = QuantizedEmbeddingTable(dtypes[id(module.weight)])
    begin_generation()
    prepare(model)
    return QuantizationReport(rows, before, bytes_in(model))


def _check_that_some_fit(plans: list[_Plan]) -> None:
    if any(plan.scheme or plan.activations for plan in plans):
        return
    if all(isinstance(plan.layer.weight.dtype, QDType) for plan in plans):
        raise ArgumentError(
            "the weights are quantized already",
            hint="Give them float values first: layer.weight.assign(layer.weight.dequantize())",
            operation=_OPERATION,
        )
    raise ShapeError(
        f"no weight was quantized: {plans[0].path or 'the weight'} {plans[0].note}",
        hint="Choose another scheme, or other layers by only=...",
        operation=_OPERATION,
    )


def _planned(
    path: str, layer: Any, scheme: QuantScheme | None, activations: QuantScheme | None
) -> _Plan:
    """What a layer is to become, by the arguments or by what `prepare_qat` has added to it."""
    own = quantization_of(layer)
    if isinstance(own, FakeQuantization):
        scheme = own.scheme if scheme is None else scheme
        activations = own.activations if activations is None else activations
    plan = _Plan(path, layer, activations if isinstance(layer, Linear) else None)
    weight = layer.weight
    if isinstance(weight.dtype, QDType):
        plan.note = "is quantized already"
        return plan
    if scheme is None:
        scheme = default_quant_scheme(weight.device)
    try:
        plan.scheme = scheme_for(scheme, weight.shape)
    except ShapeError as error:
        plan.note = f"stays {weight.dtype.name}: {error.rule}"
        plan.activations = None
    return plan


# Weights.


def _quantized(plan: _Plan, calibration: Calibration | None) -> Tensor | None:
    """The quantized weight of a layer, if it is to be one."""
    if plan.scheme is None:
        return None
    own = quantization_of(plan.layer)
    if calibration is None and isinstance(own, FakeQuantization):
        calibration = own.calibration
    if calibration is None:
        is_fine = plan.scheme.value.bits == 8
        calibration = Calibration.MIN_MAX if is_fine else Calibration.MIN_ERROR
    weight: Tensor = plan.layer.weight.detach().inner()
    return weight.quantize_dynamic(plan.scheme, calibration=calibration)


def _row(plan: _Plan) -> LayerReport:
    weight, value = plan.layer.weight, plan.value
    size = bytes_of(weight)
    start = plan.path, described_on_a_line(plan.layer), weight.shape
    if value is None:
        return LayerReport(*start, None, 0.0, 0.0, size, size, plan.note)
    wide = float64 if weight.dtype is float64 else float32
    exact = weight.detach().inner().astype(wide)
    difference = value.dequantize(wide) - exact
    norm = float(vector_norm(exact))
    return LayerReport(
        *start,
        plan.scheme,
        float(vector_norm(difference)) / norm if norm else 0.0,
        float(max_abs_norm(difference)) if difference.size else 0.0,
        size,
        bytes_of(value),
    )


def _apply(plan: _Plan) -> None:
    """Let a layer have its quantized weight, and what goes with it."""
    layer = plan.layer
    weight = layer.weight
    if plan.value is not None:
        weight.assign(plan.value.to_device(weight.device), require_grad=False)
    if plan.scheme is not None and quantization_of(layer) is not None:
        del layer.quantization
    if plan.activations is not None:
        layer.quantization = QuantizedInputs(plan.activations, plan.scales)


# Activations.


class _RangeObserver(LayerQuantization):
    """Keeps the least and the greatest number of all inputs of a layer."""

    buffers = ("least", "greatest")

    def __init__(self, inner: LayerQuantization | None) -> None:
        self.inner = inner
        self.least: Tensor | None = None
        self.greatest: Tensor | None = None

    def call(self, layer: Module, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        x, _, _ = split_input(args, keywords)
        if x.size:
            low, high = least(x.detach()), greatest(x.detach())
            self.least = low if self.least is None else minimum(self.least, low)
            self.greatest = high if self.greatest is None else maximum(self.greatest, high)
        if self.inner is not None:
            return self.inner.call(layer, args, keywords)
        return layer.forward(*args, **keywords)


def _calibrate(model: Module, plans: list[_Plan], batches: Iterable[Any]) -> None:
    """Compute fixed scales of the inputs of layers from what they get for examples."""
    for plan in plans:
        if plan.activations is not None and plan.activations.level.block:
            raise ArgumentError(
                f"fixed scales of the scheme {plan.activations}",
                hint="Blocks of an input differ from batch to batch: choose a scheme with a scale "
                "of the tensor, or leave out batches, so that each call computes its scales",
                operation=_OPERATION,
            )
    if not plans:
        raise ArgumentError(
            "batches without a scheme of activations, or without a Linear layer",
            hint="Pass activations=scheme; weights need no batches",
            operation=_OPERATION,
        )
    with _observed([plan.layer for plan in plans]) as observers, _inferring(model):
        is_empty = True
        for batch in batches:
            is_empty = False
            if isinstance(batch, Mapping):
                model(**batch)
            else:
                model(*(batch if isinstance(batch, tuple) else (batch,)))
        for plan, observer in zip(plans, observers, strict=True):
            plan.scales = _fixed_scales(plan, observer, is_empty=is_empty)


def _fixed_scales(plan: _Plan, observer: _RangeObserver, *, is_empty: bool) -> Tensor:
    low, high = observer.least, observer.greatest
    if low is None or high is None or plan.activations is None:
        raise ArgumentError(
            "batches are empty" if is_empty else f"no batch reached the layer {plan.path}",
            hint="Pass examples of inputs: a list of tensors, or of tuples or dicts of arguments",
            operation=_OPERATION,
        )
    if not (isfinite(float(low)) and isfinite(float(high))):
        raise ArgumentError(
            f"inputs of the layer {plan.path} range from {float(low)} to {float(high)}",
            hint="Leave examples with NaN or infinities out of batches",
            operation=_OPERATION,
        )
    ends = [tensor.astype(float32).reshape(1) for tensor in (low, high)]
    parameters = compute_q_params(plan.activations, CalibrationRange(*ends))
    return parameters.scales.detach().inner().to_device(plan.layer.weight.device)


@contextmanager
def _observed(layers: list[Any]) -> Iterator[list[_RangeObserver]]:
    """Let observers stand at the inputs of layers."""
    before = [quantization_of(layer) for layer in layers]
    observers = [_RangeObserver(item) for item in before]
    try:
        for layer, observer in zip(layers, observers, strict=True):
            layer.quantization = observer
        yield observers
    finally:
        for layer, item in zip(layers, before, strict=True):
            if item is None:
                del layer.quantization
            else:
                layer.quantization = item


@contextmanager
def _inferring(model: Module) -> Iterator[None]:
    """Let a model infer, without gradients, and then do what it did before."""
    modes = [(own_state(module), own_state(module).is_eval) for module in model.modules()]
    model.eval()
    try:
        with no_grad():
            yield
    finally:
        for state, is_eval in modes:
            state.is_eval = is_eval
        begin_generation()
