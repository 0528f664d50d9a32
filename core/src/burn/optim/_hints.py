"""Names of PyTorch and Optax, which errors answer with those of this package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypedDict

from burn.errors import MissingAttributeError, OperandTypeError

__all__ = ["NAMES", "Hinted", "Unknown", "refuse_keywords"]

_ATTRIBUTES: Final = {
    "add_param_group": "Make the optimizer when the model is complete, with groups= for patterns "
    "of paths",
    "lr": "Read or set learning_rate",
    "param_groups": "Pass groups= for options by patterns of paths; read or set learning_rate",
    "zero_grad": "There is nothing to set to zero: backward() returns new gradients, which step "
    "takes",
}
"""Attributes of optimizers elsewhere."""

_ONE_OPERATION: Final = "Leave it out: one operation updates all parameters of equal options"

_KEYWORDS: Final = {
    "adjust_lr_fn": "Pass adjustment",
    "b1": "Pass beta1",
    "b2": "Pass beta2",
    "b3": "Pass beta3",
    "betas": "Pass beta1 and beta2",
    "eps": "Pass epsilon",
    "foreach": _ONE_OPERATION,
    "fused": _ONE_OPERATION,
    "history_size": "Pass history",
    "initial_accumulator_value": "Pass initial_total",
    "line_search_fn": "Pass line_search",
    "lr": "Pass learning_rate",
    "lr_decay": "Pass learning_rate_decay",
    "mask": "Pass weight_decay_mask",
    "max_eval": "Pass evaluations",
    "max_iter": "Pass iterations",
    "maximize": "Minimize the negative loss",
    "ns_coefficients": "Pass coefficients",
    "ns_steps": "Pass iterations",
    "params": "Pass parameters",
    "tolerance_grad": "Pass tolerance_gradient",
}
"""Keywords of optimizers elsewhere."""

NAMES: Final = {
    "AdaGrad": "Use Adagrad",
    "Adamax": "Adam is near it",
    "EMA": "Use ExponentialMovingAverage",
    "GradScaler": "Use LossScaler",
    "MultiSteps": "Use GradientAccumulator",
    "NAdam": "Adam is near it",
    "RAdam": "Adam with schedules.warmup is near it",
    "RMSProp": "Use RMSprop",
    "adagrad": "Use Adagrad",
    "adam": "Use Adam",
    "adamw": "Use AdamW",
    "adan": "Use Adan",
    "apply_updates": "step and update of an optimizer give the next parameters",
    "clip": "Use clip_by_value",
    "clip_grad_norm_": "Use clip_by_global_norm, which returns new gradients; or clip_norm= of an "
    "optimizer",
    "clip_grad_value_": "Use clip_by_value, which returns new gradients; or clip_value= of an "
    "optimizer",
    "ema": "Use ExponentialMovingAverage",
    "lbfgs": "Use LBFGS",
    "lion": "Use Lion",
    "lr_scheduler": "Use schedules: functions of the step, which an optimizer takes as its "
    "learning rate",
    "rmsprop": "Use RMSprop",
    "sgd": "Use SGD",
    "swa_utils": "Use ExponentialMovingAverage",
}
"""Names of packages of optimizers elsewhere."""


class Unknown(TypedDict):
    """No keyword at all, for a type checker; at run time `refuse_keywords` says what is meant."""


def refuse_keywords(unknown: Mapping[str, object], operation: str) -> None:
    """Raise OperandTypeError if there are keywords that an optimizer does not have."""
    for name in unknown:
        raise OperandTypeError(
            f"there is no keyword {name!r}", hint=_KEYWORDS.get(name, ""), operation=operation
        )


class Hinted:
    """Base of the optimizers: attributes of those elsewhere cannot be read or set."""

    if not TYPE_CHECKING:  # a type checker reports all names that are not defined

        def __getattr__(self, name: str) -> Any:
            if name in _ATTRIBUTES:
                _refuse_attribute(self, name)
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self
            )

        def __setattr__(self, name: str, value: Any) -> None:
            if name in _ATTRIBUTES:
                _refuse_attribute(self, name)
            super().__setattr__(name, value)


def _refuse_attribute(owner: object, name: str) -> NoReturn:
    raise MissingAttributeError(
        f"there is no attribute {name!r}", hint=_ATTRIBUTES[name], operation=type(owner).__name__
    )
