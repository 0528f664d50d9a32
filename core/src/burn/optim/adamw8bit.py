"""AdamW with moments in 8 bits: codes of blocks of elements, which share a scale.

T. Dettmers et al., "8-bit optimizers via block-wise quantization" (2022, arXiv:2110.02861).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Unpack

import numpy as np

from burn.docstrings import documented_as
from burn.dtype import float32, uint8
from burn.functions.creation import asarray, zeros
from burn.functions.elementwise import abs, equal
from burn.functions.indexing import take
from burn.functions.manipulation import reshape
from burn.functions.nn.optimizer import adam_step
from burn.functions.rearranging import pad
from burn.functions.searching import searchsorted, where
from burn.functions.statistical import max
from burn.ops.arguments import as_integer
from burn.ops.shapes import size
from burn.optim._options import Common, Lists, Rate, Values
from burn.optim.adam import AdamW
from burn.optim.optimizer import Optimizer

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.tensor.tensor import Tensor

__all__ = ["AdamW8bit"]

_DECADES: Final = 7
"""Powers of ten that the numbers of codes span: an exponent of the paper's section 2.1."""


@documented_as(AdamW)
class AdamW8bit(Optimizer):
    """`AdamW` whose moments take a byte an element (Dettmers et al., 2022, arXiv:2110.02861).

    The moments of a parameter are cut into blocks in row-major order. Each has a scale, its largest
    magnitude, and its elements are codes of 256 numbers that are the closer, the nearer they are to
    0. The step is `burn.optim.adam_step` of the moments that the codes stand for.

    The other parameters are those of `AdamW`.

    Parameters
    ----------
    block_size : int
        Number of elements that share a scale.
    least_size : int
        Parameters with fewer elements have moments of floats, as in `AdamW`.

    Examples
    --------
    >>> import burn
    >>> net = burn.nn.Linear(128, 64, device=burn.Device("cpu").autodiff())
    >>> optimizer = burn.optim.AdamW8bit(net)
    >>> optimizer.step((net(burn.ones((4, 128), device="cpu")) ** 2).mean().backward())
    >>> state = optimizer.state_dict()
    >>> state["weight.first_codes"].dtype.name, state["weight.first_codes"].size
    ('uint8', 8192)
    """

    _state_names = ("first_codes", "first_scales", "second_codes", "second_scales")
    _is_one_op = False

    def __init__(
        self,
        parameters: Any = None,
        learning_rate: Rate = 1e-3,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 0.01,
        block_size: int = 256,
        least_size: int = 4096,
        **common: Unpack[Common],
    ) -> None:
        options = {
            "learning_rate": learning_rate,
            "beta1": beta1,
            "beta2": beta2,
            "epsilon": epsilon,
            "weight_decay": weight_decay,
            "block_size": block_size,
            "least_size": least_size,
        }
        super().__init__(parameters, options, **common)

    def _checked_option(self, name: str, value: Any) -> Any:
        if name == "block_size":
            return as_integer(value, name, "AdamW8bit", least=1)
        if name == "least_size":
            return as_integer(value, name, "AdamW8bit", least=0)
        return super()._checked_option(name, value)

    def _first_states(self, parameter: Tensor, options: Mapping[str, Any]) -> tuple[Tensor, ...]:
        shapes = self._state_shapes(parameter.shape, options)
        kinds = (uint8, parameter.dtype) * 2
        # Whatever number the code 0 is, times a scale of 0 it is 0.
        return tuple(
            [
                zeros(shape, dtype=kind, device=parameter.device)
                for shape, kind in zip(shapes, kinds, strict=True)
            ]
        )

    def _state_shapes(self, shape: Shape, options: Mapping[str, Any]) -> tuple[Shape, ...]:
        """Of few elements there are no codes, and the scales are the moments."""
        count, length = size(shape), options["block_size"]
        if count < options["least_size"] or not count:
            return ((0,), shape) * 2
        blocks = -(-count // length)
        return ((blocks, length), (blocks, 1)) * 2

    def _compute(self, lists: Lists, step: int, options: dict[str, Any]) -> Values:
        parameters, gradients, states = lists
        del options["block_size"], options["least_size"]
        tables = [_Table(parameters[0], numbers) for numbers in (_signed(), _unsigned())]
        moments = [
            [
                table.restored(codes, scales, x)
                for codes, scales, x in zip(*columns, parameters, strict=True)
            ]
            for table, columns in zip(tables, (states[:2], states[2:]), strict=True)
        ]
        new, *found = adam_step(
            parameters, gradients, *moments, step=step, decoupled=True, **options
        )
        columns: list[Any] = []
        for table, values, codes in zip(tables, found, states[::2], strict=True):
            pairs = [table.stored(*pair) for pair in zip(values, codes, strict=True)]
            columns += [list(column) for column in zip(*pairs, strict=True)]
        return new, columns


class _Table:
    """The numbers of codes on the device of a tensor."""

    def __init__(self, like: Tensor, numbers: Numbers) -> None:
        kind: Any = {"dtype": float32, "device": like.device}
        self._numbers = asarray(numbers, **kind)
        self._bounds = asarray((numbers[1:] + numbers[:-1]) / 2.0, **kind)

    def restored(self, codes: Tensor, scales: Tensor, x: Tensor) -> Tensor:
        """The moments of a parameter."""
        if not codes.size:
            return scales
        values = take(self._numbers, codes.astype(x.device.settings.int_dtype))
        flat = reshape(values * scales.astype(float32), (codes.size,))
        return reshape(flat[: x.size], x.shape).astype(x.dtype)

    def stored(self, values: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
        """Codes, and scales, of moments; of as many blocks as there were."""
        if not like.size:
            return like, values
        flat = reshape(values.astype(float32), (values.size,))
        blocks = reshape(pad(flat, (0, like.size - values.size)), like.shape)
        # Rounded as it is kept.
        scales = max(abs(blocks), axis=1, keepdims=True).astype(values.dtype)
        wide = scales.astype(float32)
        ratio = blocks / where(equal(wide, 0.0), 1.0, wide)
        return searchsorted(self._bounds, ratio).astype(uint8), scales


Numbers = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


@functools.cache
def _unsigned() -> Numbers:
    """256 numbers from 0 to 1; each of the decades has twice as many as the one below."""
    parts = [np.array([0.0, 1.0])]
    for decade in range(_DECADES):
        ends = np.linspace(0.1, 1.0, 2 ** (decade + 1) + 1)
        parts.append(10.0 ** (decade + 1 - _DECADES) * (ends[1:] + ends[:-1]) / 2.0)
    return np.sort(np.concatenate(parts))


@functools.cache
def _signed() -> Numbers:
    """256 numbers from -1 to 1, without -1 itself."""
    parts = [np.array([0.0, 1.0])]
    for decade in range(_DECADES):
        ends = np.linspace(0.1, 1.0, 2**decade + 1)
        middles = 10.0 ** (decade + 1 - _DECADES) * (ends[1:] + ends[:-1]) / 2.0
        parts += [middles, -middles]
    return np.sort(np.concatenate(parts))
