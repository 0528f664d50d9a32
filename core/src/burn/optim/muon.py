"""Muon: steps along orthogonal matrices near a mean of gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Unpack

from burn.docstrings import documented_as
from burn.errors import DTypeError, OperandTypeError, ShapeError
from burn.functions.common import DTypeLike
from burn.functions.elementwise import maximum
from burn.functions.linalg.norms import vector_norm
from burn.functions.nn.optimizer import sgd_step
from burn.functions.normalize import as_dtype, check_choice
from burn.ops.arguments import as_integer, real_number
from burn.optim._options import Common, Lists, Rate, Values
from burn.optim.adam import AdamW
from burn.optim.optimizer import Optimizer

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.dtype import DType
    from burn.tensor.tensor import Tensor

__all__ = ["Muon"]

_COEFFICIENTS: Final = (3.4445, -4.7750, 2.0315)


@documented_as(AdamW)
class Muon(Optimizer):
    """Momentum whose steps are made orthogonal, for matrices; as ``torch.optim.Muon``.

    Newton and Schulz's iteration brings all singular values of a step near 1 (Jordan et al., 2024,
    https://kellerjordan.github.io/posts/muon). It is for the weights of hidden layers. Update all
    other parameters by another optimizer: both take the same gradients.

    The other parameters are those of `AdamW`.

    Parameters
    ----------
    parameters : Module, or containers of tensors, optional
        See `Optimizer`; each with two axes.
    momentum : float
        Decay of the mean of gradients, in [0, 1).
    nesterov : bool
        Whether the step is along the mean of the gradient and that mean.
    coefficients : tuple of three floats
        Of the polynomial ``a * x + b * x**3 + c * x**5`` of each iteration.
    epsilon : float
        Smaller norms count as this.
    iterations : int
        Number of iterations.
    adjustment : str
        How the learning rate depends on the shape of a matrix of m rows and n columns:
        ``"original"``, ``sqrt(max(1, m / n))``; ``"match_rms_adamw"``, ``0.2 * sqrt(max(m, n))``
        (Liu et al., 2025, arXiv:2502.16982), with which rates of AdamW can be used.
    dtype : DType
        In which the iteration computes. bfloat16 is precise enough; in float32 on devices without
        it.

    Raises
    ------
    ShapeError
        If a parameter is no matrix.

    Examples
    --------
    >>> import burn
    >>> from burn import nn
    >>> net = nn.Sequential(
    ...     nn.Linear(4, 8), nn.Linear(8, 2)
    ... ).to(burn.Device("cpu").autodiff())
    >>> named = net.named_parameters()
    >>> optimizers = [
    ...     burn.optim.Muon([(path, x) for path, x in named if x.ndim == 2], 0.02),
    ...     burn.optim.AdamW([(path, x) for path, x in named if x.ndim != 2]),
    ... ]
    >>> gradients = (net(burn.ones((3, 4), device="cpu")) ** 2).mean().backward()
    >>> for optimizer in optimizers:
    ...     optimizer.step(gradients)
    """

    _state_names = ("mean",)
    _is_one_op = False

    def __init__(
        self,
        parameters: Any = None,
        learning_rate: Rate = 1e-3,
        *,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        coefficients: Sequence[float] = _COEFFICIENTS,
        epsilon: float = 1e-7,
        iterations: int = 5,
        adjustment: str = "original",
        dtype: DTypeLike = "bfloat16",
        **common: Unpack[Common],
    ) -> None:
        options = {
            "learning_rate": learning_rate,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "coefficients": coefficients,
            "epsilon": epsilon,
            "iterations": iterations,
            "adjustment": adjustment,
            "dtype": dtype,
        }
        super().__init__(parameters, options, **common)
        for slot in self._slots:
            _check_matrix(slot.tensor, slot.path)

    def _checked_option(self, name: str, value: Any) -> Any:
        if name == "coefficients":
            given = value if isinstance(value, (tuple, list)) else (value,)
            numbers = tuple([real_number(item, "a coefficient", "Muon") for item in given])
            if len(numbers) != 3:
                raise OperandTypeError(
                    f"takes 3 coefficients, not {len(numbers)}", operation="Muon"
                )
            return numbers
        if name == "iterations":
            return as_integer(value, name, "Muon", least=0)
        if name == "momentum":
            return real_number(value, name, "Muon", least=0.0, below=1.0)
        if name == "adjustment":
            check_choice(value, tuple(_ADJUSTMENTS), name, "Muon")
            return value
        if name == "dtype":
            dtype = as_dtype(value, "Muon")
            if not dtype.is_float:
                raise DTypeError(f"takes a float dtype, not {dtype}", operation="Muon")
            return dtype
        return super()._checked_option(name, value)

    def _first_states(self, parameter: Tensor, options: Any) -> tuple[Tensor, ...]:
        _check_matrix(parameter, "of Muon.init")
        return super()._first_states(parameter, options)

    def _compute(self, lists: Lists, step: int, options: dict[str, Any]) -> Values:
        del step
        parameters, gradients, states = lists
        (old,), momentum = states, options["momentum"]
        # The velocities of this step are the means; its parameters are not used.
        _, means = sgd_step(
            old, gradients, old, learning_rate=0.0, momentum=momentum, dampening=momentum
        )
        changes = []
        for x, gradient, mean in zip(parameters, gradients, means, strict=True):
            direction = mean
            if options["nesterov"]:
                direction = gradient * (1.0 - momentum) + mean * momentum
            change = _orthogonal(direction, options).astype(x.dtype)
            changes.append(change * _ADJUSTMENTS[options["adjustment"]](x.shape))
        rate, decay = options["learning_rate"], options["weight_decay"]
        new, _ = sgd_step(parameters, changes, learning_rate=rate, weight_decay=decay)
        return new, [means]


def _check_matrix(x: Tensor, path: str) -> None:
    if x.ndim != 2:
        raise ShapeError(
            f"the parameter {path!r} has shape {x.shape}, and not two axes",
            hint="Update it by another optimizer, such as AdamW: both take the same gradients",
            operation="Muon",
        )


def _orthogonal(x: Tensor, options: dict[str, Any]) -> Tensor:
    """A matrix with the singular vectors of another one, and singular values near 1."""
    a, b, c = options["coefficients"]
    is_tall = x.shape[0] > x.shape[1]
    x = x.astype(_available(options["dtype"], x))
    x = x.mT if is_tall else x
    x = x / maximum(vector_norm(x), options["epsilon"])
    for _ in range(options["iterations"]):
        gram = x @ x.mT
        x = x * a + (gram * b + (gram @ gram) * c) @ x
    return x.mT if is_tall else x


def _available(dtype: DType, x: Tensor) -> DType:
    return dtype if x.device.supports_dtype(dtype) else x.dtype


def _original(shape: Shape) -> float:
    return math.sqrt(max(1.0, shape[0] / max(shape[1], 1)))


def _as_adamw(shape: Shape) -> float:
    return 0.2 * math.sqrt(max(shape))


_ADJUSTMENTS: Final = {"original": _original, "match_rms_adamw": _as_adamw}
