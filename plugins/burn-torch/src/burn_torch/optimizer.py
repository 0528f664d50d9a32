"""Steps of optimizers by torch's kernels for lists of tensors: fused ones, or one per operation.

The fused kernels write in place: to tensors that are donated and that nothing else refers to, or
to copies.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import torch

from burn.plugin_api import STEPS, Donated, StepFormula, Steps
from burn_torch.base import TorchOps
from burn_torch.dtypes import HALF_FLOATS, Tensor
from burn_torch.writing import is_unused

__all__ = ["OptimizerOps"]

Tensors: TypeAlias = list[Tensor]

# torch does not type these functions, which its own optimizers call.
_add: Final[Any] = torch._foreach_add
_multiply: Final[Any] = torch._foreach_mul
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


class OptimizerOps(Steps, TorchOps):
    """Steps that write to new tensors, and to those that are donated."""

    @_in_float32
    def sgd_step(
        self,
        parameters: Tensors,
        gradients: Tensors,
        velocities: Tensors,
        **attributes: Any,
    ) -> Tensors:
        """The kernel of `torch.optim.SGD`."""
        momentum, weight_decay = attributes["momentum"], attributes["weight_decay"]
        STEPS["sgd_step"].rule(parameters, gradients, velocities, **attributes)
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
        **attributes: Any,
    ) -> Tensors:
        """The kernel of `torch.optim.Adam` and `torch.optim.AdamW`."""
        moments = first_moments, second_moments, largest_moments
        STEPS["adam_step"].rule(parameters, gradients, *moments, **attributes)
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

    def run_step(
        self, formula: StepFormula, lists: list[Tensors], numbers: tuple[float, ...]
    ) -> tuple[Tensor, ...]:
        """Kernels for lists of tensors: one for each sum, root or product of a formula."""
        return tuple(self._composed(*lists, formula=formula, numbers=numbers))

    @_in_float32
    def _composed(
        self, *lists: Tensors, formula: StepFormula, numbers: tuple[float, ...]
    ) -> Tensors:
        uses = _uses(formula)
        values: list[Any] = [*lists, *numbers]
        for function, used in formula.instructions:
            found = _apply(function, *[values[index] for index in used])
            values.append(found if uses[len(values)] == 1 else list(_made(found)))
        return [x for index in formula.results for x in _made(values[index])]


@functools.lru_cache(maxsize=256)
def _uses(formula: StepFormula) -> Counter[int]:
    """How often each value of a formula is read; a result is read at the end."""
    used = [index for instruction in formula.instructions for index in instruction.operands]
    return Counter([*used, *formula.results])


class _New(list[Tensor]):
    """Tensors that one instruction alone reads, which may overwrite them."""


class _Term:
    """A product or quotient of lists of tensors, with a factor, that a kernel may add to others.

    Attributes
    ----------
    x : list of Tensor
        What is multiplied.
    y : list of Tensor or None
        By what it is multiplied or divided.
    divides : bool
        Whether it is divided.
    factor : float
        A number that the result has as a factor.
    """

    def __init__(
        self, x: Tensors, y: Tensors | None = None, factor: float = 1.0, *, divides: bool = False
    ) -> None:
        self.x = x
        self.y = y
        self.factor = factor
        self.divides = divides

    def made(self) -> Tensors:
        """As tensors."""
        x = self.x
        if self.y is not None:
            x = _run("div" if self.divides else "mul", x, self.y)
        return x if self.factor == 1.0 and x is not self.x else _run("mul", x, self.factor)

    def added(self, other: Tensors, sign: float) -> Tensors:
        """Other tensors with this added or subtracted."""
        factor = sign * self.factor
        if self.y is None:
            return _run("add", other, self.x, alpha=factor)
        return _run("addcdiv" if self.divides else "addcmul", other, self.x, self.y, value=factor)


def _run(name: str, x: Tensors, *others: Any, **options: float) -> _New:
    """Run a kernel for lists of tensors, in place where that is allowed."""
    if isinstance(x, _New):
        getattr(torch, f"_foreach_{name}_")(x, *others, **options)
        return x
    return _New(getattr(torch, f"_foreach_{name}")(x, *others, **options))


def _made(value: Tensors | _Term) -> Tensors:
    return value.made() if isinstance(value, _Term) else value


_NAMES: Final = {
    "add": "add",
    "divide": "div",
    "maximum": "maximum",
    "sqrt": "sqrt",
    "subtract": "sub",
}
"""Names of kernels of torch."""


def _apply(function: str, x: Any, y: Any = None) -> Tensors | _Term:
    """An elementwise op of lists of tensors, terms and numbers; only the second may be a number."""
    if function == "multiply" and isinstance(y, float):
        if isinstance(x, _Term):
            return _Term(x.x, x.y, x.factor * y, divides=x.divides)
        return _Term(x, None, y)
    if function == "multiply":
        return _Term(_made(x), _made(y))
    if function == "divide" and not isinstance(y, float):
        return _Term(_made(x), _made(y), divides=True)
    if function in {"add", "subtract"} and isinstance(y, _Term):
        return y.added(_made(x), 1.0 if function == "add" else -1.0)
    if function == "sign":
        return _signs(_made(x))
    others = [] if y is None else [_made(y)]
    return _run(_NAMES[function], _made(x), *others)


def _rate(rate: Any) -> Any:
    """A learning rate as the kernels take it: a number, or of a CUDA graph a tensor of float32."""
    return rate.to(torch.float32) if rate.__class__ is Tensor else rate


def _dense(tensors: Tensors) -> Tensors:
    return [tensor if tensor.is_contiguous() else tensor.contiguous() for tensor in tensors]


def _decayed(gradients: Tensors, parameters: Tensors, weight_decay: float) -> Tensors:
    """The gradients with those of an L2 penalty."""
    return list(_add(gradients, parameters, alpha=weight_decay)) if weight_decay else gradients


def _signs(tensors: Tensors) -> Tensors:
    """Signs, by scaling and clamping: the sign of NaN is NaN, and 0 by torch's."""
    largest = torch.finfo(tensors[0].dtype).max
    for _ in range(2):  # so that the smallest number is above 1
        tensors = _run("mul", tensors, largest)
    _clamp_min_(tensors, -1.0)
    _clamp_max_(tensors, 1.0)
    return tensors
