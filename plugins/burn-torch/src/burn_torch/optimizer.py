"""Steps of optimizers by torch's kernels for lists of tensors: fused ones, or one per operation.

The fused kernels write in place: to tensors that are donated and that nothing else refers to, or
to copies.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, Unpack

import torch

from burn.plugin_api import (
    AdagradAttributes,
    AdamAttributes,
    AdanAttributes,
    Donated,
    LionAttributes,
    RmspropAttributes,
    SgdAttributes,
    adam_rates,
    adan_rate,
    check_lists,
    check_momentum,
)
from burn_torch.base import TorchOps
from burn_torch.dtypes import HALF_FLOATS, Tensor
from burn_torch.writing import is_unused

__all__ = ["OptimizerOps"]

Tensors: TypeAlias = list[Tensor]

# torch does not type these functions, which its own optimizers call.
_add: Final[Any] = torch._foreach_add
_addcdiv: Final[Any] = torch._foreach_addcdiv
_addcmul: Final[Any] = torch._foreach_addcmul
_multiply: Final[Any] = torch._foreach_mul
_sqrt: Final[Any] = torch._foreach_sqrt
_subtract: Final[Any] = torch._foreach_sub
_add_: Final[Any] = torch._foreach_add_
_addcdiv_: Final[Any] = torch._foreach_addcdiv_
_addcmul_: Final[Any] = torch._foreach_addcmul_
_divide_: Final[Any] = torch._foreach_div_
_multiply_: Final[Any] = torch._foreach_mul_
_clamp_max_: Final[Any] = torch._foreach_clamp_max_
_clamp_min_: Final[Any] = torch._foreach_clamp_min_
_fused_adam: Final[Any] = torch._fused_adam_
_fused_adamw: Final[Any] = torch._fused_adamw_
_fused_sgd: Final[Any] = torch._fused_sgd_


def _clone_each(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [tensor.clone() for tensor in tensors]


_clone: Final[Any] = getattr(torch, "_foreach_clone", _clone_each)  # torch 2.11 does not have it


def _in_float32(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: a step computes 16-bit floats in float32 and rounds once."""

    @functools.wraps(method)
    def call(self: Any, *lists: Tensors, **attributes: Any) -> tuple[Tensor, ...]:
        dtype = lists[0][0].dtype if lists[0] else None
        if dtype not in HALF_FLOATS:
            return tuple(method(self, *lists, **attributes))
        wide = [[tensor.to(torch.float32) for tensor in tensors] for tensors in lists]
        return tuple([item.to(dtype) for item in method(self, *wide, **attributes)])

    return call


class OptimizerOps(TorchOps):
    """Steps that write to new tensors, and to those that are donated."""

    @_in_float32
    def sgd_step(
        self,
        parameters: Tensors,
        gradients: Tensors,
        velocities: Tensors,
        **attributes: Unpack[SgdAttributes],
    ) -> Tensors:
        """The kernel of `torch.optim.SGD`."""
        momentum, weight_decay = attributes["momentum"], attributes["weight_decay"]
        check_lists(parameters, gradients, optional=[velocities])
        check_momentum(momentum, velocities)
        moved = self._writable(parameters)
        following = self._writable(velocities) if momentum else []
        self._fused(
            _fused_sgd,
            [moved, _dense(gradients), following],
            lr=_rate(attributes["learning_rate"]),
            momentum=momentum,
            dampening=attributes["dampening"],
            weight_decay=weight_decay,
            nesterov=attributes["nesterov"] and bool(momentum),
            maximize=False,
            is_first_step=False,
        )
        if velocities and not momentum:
            following = _decayed(gradients, parameters, weight_decay)
        return moved + following

    @_in_float32
    def adam_step(
        self,
        parameters: Tensors,
        gradients: Tensors,
        first_moments: Tensors,
        second_moments: Tensors,
        largest_moments: Tensors,
        **attributes: Unpack[AdamAttributes],
    ) -> Tensors:
        """The kernel of `torch.optim.Adam` and `torch.optim.AdamW`."""
        check_lists(
            parameters, gradients, first_moments, second_moments, optional=[largest_moments]
        )
        lists = [parameters, first_moments, second_moments, largest_moments]
        moved, *states = map(self._writable, lists)
        step: Any = attributes["step"]
        if step.__class__ is Tensor:  # of a program in a CUDA graph
            number = step.to(torch.float32)
        else:
            number = torch.full((), step, dtype=torch.float32, device=self.torch_device)
        self._fused(
            _fused_adamw if attributes["decoupled"] else _fused_adam,
            [moved, _dense(gradients), *states, [number] * len(moved)],
            lr=_rate(attributes["learning_rate"]),
            beta1=attributes["beta1"],
            beta2=attributes["beta2"],
            weight_decay=attributes["weight_decay"],
            eps=attributes["epsilon"],
            amsgrad=bool(largest_moments),
            maximize=False,
        )
        return [tensor for tensors in (moved, *states) for tensor in tensors]

    def _writable(self, tensors: Tensors) -> Tensors:
        """Contiguous tensors that a kernel may overwrite: those that are donated, or copies."""
        references = tensors.references if isinstance(tensors, Donated) else None
        if references is None:
            return self._copies(tensors)
        kept = [
            index
            for index in range(len(tensors))
            if not (tensors[index].is_contiguous() and is_unused(tensors, index, references))
        ]
        found = list(tensors)
        for index, copy in zip(kept, self._copies([tensors[index] for index in kept]), strict=True):
            found[index] = copy
        return found

    def _copies(self, tensors: Tensors) -> Tensors:
        """Contiguous copies: on an accelerator by one kernel, which multiplies by 1."""
        if not tensors:
            return []
        return list(_clone(_dense(tensors)) if self.on_host else _multiply(_dense(tensors), 1.0))

    @staticmethod
    def _fused(kernel: Any, lists: Sequence[Tensors], **attributes: Any) -> None:
        """Run a kernel of contiguous tensors, of which that for CUDA refuses empty ones."""
        chosen = [index for index, tensor in enumerate(lists[0]) if tensor.numel()]
        if len(chosen) < len(lists[0]):
            lists = [[operand[index] for index in chosen] if operand else [] for operand in lists]
        if chosen:
            kernel(*lists, **attributes)

    @_in_float32
    def adagrad_step(
        self,
        parameters: Tensors,
        gradients: Tensors,
        sums: Tensors,
        **attributes: Unpack[AdagradAttributes],
    ) -> Tensors:
        """The formula of the op."""
        check_lists(parameters, gradients, sums)
        gradients = _decayed(gradients, parameters, attributes["weight_decay"])
        sums = _addcmul(sums, gradients, gradients)
        spreads = _spreads(sums, attributes["epsilon"])
        decay = 1.0 + (attributes["step"] - 1) * attributes["learning_rate_decay"]
        rate = attributes["learning_rate"] / decay
        return [*_addcdiv(parameters, gradients, spreads, value=-rate), *sums]

    @_in_float32
    def rmsprop_step(
        self,
        parameters: Tensors,
        gradients: Tensors,
        second_moments: Tensors,
        velocities: Tensors,
        first_moments: Tensors,
        **attributes: Unpack[RmspropAttributes],
    ) -> Tensors:
        """The formula of the op."""
        alpha, rate = attributes["alpha"], attributes["learning_rate"]
        momentum = attributes["momentum"]
        check_lists(parameters, gradients, second_moments, optional=[velocities, first_moments])
        check_momentum(momentum, velocities)
        gradients = _decayed(gradients, parameters, attributes["weight_decay"])
        second_moments = variances = _mean_of_squares(second_moments, gradients, alpha)
        if first_moments:
            first_moments = _means(first_moments, gradients, alpha)
            variances = _addcmul(second_moments, first_moments, first_moments, value=-1)
        spreads = _spreads(variances, attributes["epsilon"])
        if velocities:
            velocities = _multiply(velocities, momentum)
            _addcdiv_(velocities, gradients, spreads)
            moved = _add(parameters, velocities, alpha=-rate)
        else:
            moved = _addcdiv(parameters, gradients, spreads, value=-rate)
        return [*moved, *second_moments, *velocities, *first_moments]

    @_in_float32
    def adan_step(
        self,
        parameters: Tensors,
        gradients: Tensors,
        previous_gradients: Tensors,
        first_moments: Tensors,
        differences: Tensors,
        second_moments: Tensors,
        **attributes: Unpack[AdanAttributes],
    ) -> Tensors:
        """The formula of the op."""
        lists = [previous_gradients, first_moments, differences, second_moments]
        check_lists(parameters, gradients, *lists)
        step, learning_rate = attributes["step"], attributes["learning_rate"]
        beta1, beta2, beta3 = attributes["beta1"], attributes["beta2"], attributes["beta3"]
        changes = _subtract(gradients, previous_gradients)
        first_moments = _means(first_moments, gradients, beta1)
        differences = _means(differences, changes, beta2)
        extrapolated = _add(gradients, changes, alpha=beta2)
        second_moments = _mean_of_squares(second_moments, extrapolated, beta3)
        rate, scale = adam_rates(step, learning_rate, beta1, beta3)
        spreads = _spreads(second_moments, attributes["epsilon"], scale)
        directions = _multiply(first_moments, rate)
        _add_(directions, differences, alpha=adan_rate(step, learning_rate, beta2))
        decay = learning_rate * attributes["weight_decay"]
        if decay and not attributes["proximal"]:
            parameters = _multiply(parameters, 1.0 - decay)
        moved = _addcdiv(parameters, directions, spreads, value=-1)
        if decay and attributes["proximal"]:
            _divide_(moved, 1.0 + decay)
        return [*moved, *first_moments, *differences, *second_moments]

    @_in_float32
    def lion_step(
        self,
        parameters: Tensors,
        gradients: Tensors,
        moments: Tensors,
        **attributes: Unpack[LionAttributes],
    ) -> Tensors:
        """The formula of the op."""
        check_lists(parameters, gradients, moments)
        rate = attributes["learning_rate"]
        directions = _signs(_means(moments, gradients, attributes["beta1"]))
        if attributes["weight_decay"]:
            parameters = _multiply(parameters, 1.0 - rate * attributes["weight_decay"])
        moved = _add(parameters, directions, alpha=-rate)
        return [*moved, *_means(moments, gradients, attributes["beta2"])]


def _rate(rate: Any) -> Any:
    """A learning rate as the kernels take it: a number, or of a CUDA graph a tensor of float32."""
    return rate.to(torch.float32) if rate.__class__ is Tensor else rate


def _dense(tensors: Tensors) -> Tensors:
    return [tensor if tensor.is_contiguous() else tensor.contiguous() for tensor in tensors]


def _decayed(gradients: Tensors, parameters: Tensors, weight_decay: float) -> Tensors:
    """The gradients with those of an L2 penalty."""
    return list(_add(gradients, parameters, alpha=weight_decay)) if weight_decay else gradients


def _means(old: Tensors, new: Tensors, factor: float) -> Tensors:
    """Running means: ``factor * old + (1 - factor) * new``."""
    means = _multiply(old, factor)
    _add_(means, new, alpha=1.0 - factor)
    return list(means)


def _signs(tensors: Tensors) -> Tensors:
    """Signs, in place, by scaling and clamping: the sign of NaN is NaN, and 0 by torch's."""
    largest = torch.finfo(tensors[0].dtype).max
    for _ in range(2):  # so that the smallest number is above 1
        _multiply_(tensors, largest)
    _clamp_min_(tensors, -1.0)
    _clamp_max_(tensors, 1.0)
    return tensors


def _mean_of_squares(old: Tensors, new: Tensors, factor: float) -> Tensors:
    means = _multiply(old, factor)
    _addcmul_(means, new, new, value=1.0 - factor)
    return list(means)


def _spreads(variances: Tensors, epsilon: float, scale: float = 1.0) -> Tensors:
    """Divisors: ``scale * sqrt(variances) + epsilon``."""
    roots = _sqrt(variances)
    if scale != 1.0:
        _multiply_(roots, scale)
    _add_(roots, epsilon)
    return list(roots)
