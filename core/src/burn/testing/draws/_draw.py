"""Draw: the choices of one sample that is drawn, the same in each run.

Draws are of several sorts in turn, so that a few of them have had every sort: see `Sort`.
"""

from __future__ import annotations

import enum
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from burn.aliases import Shape
from burn.dtype import DType, Kind, float32, int64
from burn.errors import BurnError
from burn.ops import Op
from burn.testing.arrays import booleans, floats, integers
from burn.testing.op_samples import Array, OpSamples, Sample
from burn.testing.subject import Call

__all__ = [
    "DRAWERS",
    "Draw",
    "Drawer",
    "Layout",
    "Sort",
    "draws",
    "has_slopes",
    "is_array",
    "sort_of",
    "typical_sample",
    "with_layouts",
]


class Sort(enum.Enum):
    """What is special about the shapes of a draw."""

    RANK = "rank"
    """Four to six axes."""

    LONG = "long"
    """One element more than fits the blocks, groups and tiles of libraries: 32, 64, 256, 1024."""

    PART = "part"
    """Parts of larger tensors."""

    ANY = "any"
    """Up to six axes of any length from 0 to 6."""

    HUGE = "huge"
    """More elements, or rows, than 16 bits count."""


class Layout(enum.Enum):
    """How the elements of an operand lie in memory."""

    PLAIN = "plain"
    """One after the other."""

    ROWS = "rows"
    """One after the other, from an offset on."""

    MARGINS = "margins"
    """As a part of a larger tensor: rows are further apart than they are long."""

    STEPS = "steps"
    """Every second, third or seventh element of a larger tensor, some axes backwards."""

    TURNED = "turned"
    """With axes in another order."""

    REPEATED = "repeated"
    """The first elements again and again, with strides of 0."""


class Turn(NamedTuple):
    """What is special about a draw: its shape, and the layout of its first operand."""

    sort: Sort
    layout: Layout
    shape: Shape


_TURNS: Final = (
    Turn(Sort.RANK, Layout.STEPS, (2, 3, 4, 3)),
    Turn(Sort.LONG, Layout.ROWS, (3, 1025)),
    Turn(Sort.PART, Layout.MARGINS, (5, 6)),
    Turn(Sort.RANK, Layout.TURNED, (2, 1, 3, 2, 2, 3)),
    Turn(Sort.LONG, Layout.STEPS, (1025,)),
    Turn(Sort.RANK, Layout.PLAIN, (2, 3, 1, 4, 2)),
    Turn(Sort.LONG, Layout.TURNED, (33, 65)),
    Turn(Sort.PART, Layout.MARGINS, (4, 5, 6)),
    Turn(Sort.ANY, Layout.REPEATED, ()),
    Turn(Sort.ANY, Layout.STEPS, ()),
    Turn(Sort.RANK, Layout.REPEATED, (2, 3, 4, 3)),
    Turn(Sort.LONG, Layout.MARGINS, (2, 33, 65)),
    Turn(Sort.PART, Layout.STEPS, (5, 6)),
    Turn(Sort.RANK, Layout.STEPS, (2, 1, 3, 2, 2, 3)),
    Turn(Sort.LONG, Layout.PLAIN, (1025, 2)),
    Turn(Sort.RANK, Layout.TURNED, (2, 3, 1, 4, 2)),
    Turn(Sort.LONG, Layout.STEPS, (3, 1025)),
    Turn(Sort.PART, Layout.ROWS, (4, 5, 6)),
    Turn(Sort.ANY, Layout.TURNED, ()),
    Turn(Sort.ANY, Layout.MARGINS, ()),
)
"""Draws one after the other. Libraries that compile a program per shape have it from other ops."""

_HUGE: Final[tuple[Shape, ...]] = ((70_001,), (70_001, 2), (2, 70_001))
"""More than a grid has groups along its second axis, and than 16 bits count."""

_DISTINCT: Final = 997
"""Values of a huge tensor that differ; a prime, so that no two blocks have the same."""

_RANGES: Final = {
    Kind.FLOAT: np.array([-2.0, 2.0]),
    Kind.COMPLEX: np.array([-2.0 - 2.0j, 2.0 + 2.0j]),
    Kind.INT: np.array([-9, 9]),
    Kind.UINT: np.array([0, 9]),
    Kind.BOOL: np.array([False, True]),
}
"""The smallest and the largest of drawn values, unless samples of the op say otherwise."""


def sort_of(number: int) -> Sort:
    """What is special about the shapes of a draw."""
    return _TURNS[number % len(_TURNS)].sort


def has_slopes(number: int) -> bool:
    """Whether a draw is one of few elements, no two of which have to be equal."""
    turn = _TURNS[number % len(_TURNS)]
    return turn.sort is not Sort.LONG and turn.layout is not Layout.REPEATED


Drawer: TypeAlias = "Callable[[Draw], Sample | None]"
"""Makes a sample of an op; None if the op has none of this sort."""

DRAWERS: Final[dict[str, Drawer]] = {}
"""By the name of an op, what draws its samples."""


def draws(*names: str) -> Callable[[Drawer], Drawer]:
    """Decorator: a function draws the samples of these ops."""

    def attach(drawer: Drawer) -> Drawer:
        DRAWERS.update(dict.fromkeys(names, drawer))
        return drawer

    return attach


class Draw:
    """The choices of one draw.

    Parameters
    ----------
    samples : OpSamples
        The op, with its samples.
    number : int
        Which draw of this op.
    kind : Kind
        The kind of dtypes that it is for.
    sort : Sort, optional
        What shall be special about its shapes; each sort in turn if left out.
    attempt : int
        Which attempt at it.

    Attributes
    ----------
    op : Op
        The op.
    sort : Sort
        What is special about its shapes.
    has_ties : bool
        Whether it has chosen equal elements, so that the largest one has no derivative.
    random : random.Random
        What draws; its seed is the name of the op and the number.
    """

    def __init__(
        self,
        samples: OpSamples,
        number: int,
        kind: Kind,
        sort: Sort | None = None,
        attempt: int = 0,
    ) -> None:
        self.samples = samples
        self.op: Op = samples.op
        self.number = number
        self.kind = kind
        self.sort = sort_of(number) if sort is None else sort
        self._layout = Layout.PLAIN if sort is Sort.HUGE else _TURNS[number % len(_TURNS)].layout
        self.has_ties = False
        self.random = random.Random(f"{self.op.name} {number} {attempt}")  # noqa: S311 — no secret

    def sample(self) -> Sample | None:
        """What the drawer of the op draws; None if the op does not accept it."""
        one = DRAWERS[self.op.name](self)
        if one is None:
            return None
        is_differentiable = one.differentiable and not self.has_ties
        one = replace(one, kinds=self.kind, differentiable=is_differentiable)
        return one if _is_accepted(self.samples, one) else None

    # Numbers.

    def chance(self, probability: float) -> bool:
        """True with a probability."""
        return self.random.random() < probability

    def among(self, *choices: Any) -> Any:
        """One of several values."""
        return self.random.choice(choices)

    def integer(self, low: int, high: int) -> int:
        """From `low` to `high`, both included."""
        return self.random.randint(low, high)

    # Shapes and axes.

    def shape(self, *, least: int = 0, empty: bool = True) -> Shape:
        """A shape of the sort of this draw, with at least some axes."""
        if self.sort is Sort.HUGE:
            return _HUGE[self.number % len(_HUGE)]
        if self.sort is not Sort.ANY:
            shape = _TURNS[self.number % len(_TURNS)].shape
            return shape if len(shape) >= least else (*shape, 2)
        rank = self.integer(least, 6)
        lengths = (0, 1, 2, 3, 5, 6) if empty and self.chance(0.2) else (1, 2, 3, 5, 6)
        return tuple(self.among(*(lengths if rank < 4 else lengths[:-2])) for _ in range(rank))

    def broadcastable(self, shape: Shape) -> Shape:
        """A shape that broadcasts to another one: axes of length 1, and fewer axes."""
        if self.chance(0.0 if self.sort is Sort.RANK else 0.4):
            return shape
        kept = tuple(1 if self.chance(0.5) else length for length in shape)
        return kept[self.integer(0, len(kept)) :] if self.chance(0.4) else kept

    def axis(self, shape: Shape) -> int:
        """One axis; the last one only as often as others."""
        return self.integer(0, len(shape) - 1)

    def axes(self, shape: Shape) -> tuple[int, ...]:
        """Some axes, in any order; of many axes two or three that are not all neighbours."""
        rank = len(shape)
        if rank < 4:
            chosen = self.random.sample(range(rank), self.integer(min(rank, 1), rank))
        else:
            chosen = [0, 1]
            while max(chosen) - min(chosen) < len(chosen):
                chosen = self.random.sample(range(rank), rank // 2)
        return tuple(chosen if self.chance(0.3) else sorted(chosen))

    # Values.

    def floats(self, *shape: int, low: float = -2.0, high: float = 2.0) -> Array:
        """Floats between two numbers, in a layout of the sort of this draw."""
        return self.view(floats(*shape, low=low, high=high, phase=self.random.random()))

    def integers(self, *shape: int, low: int = -9, high: int = 10) -> Array:
        """Integers from `low` up to, but without, `high`."""
        return self.view(integers(*shape, low=low, high=high, phase=self.random.random()))

    def noise(self, *shape: int) -> Array:
        """Random floats between -2 and 2: roundings of those that are spread evenly cancel out."""
        generator = np.random.Generator(np.random.PCG64(self.random.getrandbits(64)))
        return self.view(generator.uniform(-2.0, 2.0, shape))

    def like(self, values: Array, shape: Shape) -> Array:
        """Values of the kind of others, between the smallest and the largest of them."""
        if self.sort is Sort.HUGE:
            return np.resize(self._plain(values, (_DISTINCT,)), shape)
        return self.view(self._plain(values, shape))

    def _plain(self, values: Array, shape: Shape) -> Array:
        kind, phase = values.dtype.kind, self.random.random()
        if kind == "b":
            return booleans(*shape, phase=phase)
        if kind == "c":
            return self._plain(values.real, shape) + 1j * self._plain(values.imag, shape)
        low, high = values.min(), values.max()
        if kind == "f":
            return floats(*shape, low=float(low), high=float(high), phase=phase)
        drawn = integers(*shape, low=int(low), high=int(high) + 1, phase=phase)
        return drawn.astype(values.dtype)

    def values(self, *shape: int) -> Array:
        """Floats, integers, booleans or complex numbers, as is the kind of this draw."""
        return self.like(_RANGES[self.kind], shape)

    def view(self, array: Array, *, repeats: bool = True) -> Array:
        """The same values in the layout of this draw, or the first ones again and again.

        Operands after the first have any layout.
        """
        layout = self._layout
        if self.sort is not Sort.HUGE:
            self._layout = self.among(layout, *Layout)
        if not array.ndim or not array.size or layout is Layout.PLAIN:
            return array
        if layout is Layout.ROWS:
            return self._placed(array, margins=(1, *(0,) * (array.ndim - 1)))
        if layout is Layout.MARGINS:
            return self._placed(array, margins=(1,) * array.ndim)
        if layout is Layout.REPEATED and repeats:
            return self._repeated(array)
        if layout is Layout.TURNED:
            return self._placed(array, margins=(0,) * array.ndim, turns=True)
        if array.size > 1000:
            steps = (*(1,) * (array.ndim - 1), 3)
        else:
            steps = tuple(self.among(1, 2, -1, -2, 3) for _ in range(array.ndim))
        return self._placed(array, margins=(0,) * array.ndim, steps=steps, turns=self.chance(0.5))

    def _placed(
        self,
        array: Array,
        *,
        margins: Sequence[int],
        steps: Sequence[int] | None = None,
        turns: bool = False,
    ) -> Array:
        """A view of a larger array, with axes in any order in memory."""
        order = list(range(array.ndim))
        if turns:
            self.random.shuffle(order)
            if order == sorted(order):
                order.reverse()
        slices, lengths = [], []
        for axis in order:
            length, step = array.shape[axis], steps[axis] if steps else 1
            before = margins[axis] and self.integer(margins[axis], 2)
            last = before + (length - 1) * abs(step)
            lengths.append(last + 1 + (margins[axis] and self.integer(1, 2)))
            end = before - 1 if before else None
            slices.append(slice(before, last + 1, step) if step > 0 else slice(last, end, step))
        memory = np.full(lengths, array.dtype.type(1))
        view = memory[tuple(slices)].transpose([order.index(axis) for axis in range(array.ndim)])
        view[...] = array
        return view

    def _repeated(self, array: Array) -> Array:
        """An array that repeats its first elements along some axes, with strides of 0."""
        self.has_ties = True
        once = tuple(slice(0, 1) if self.chance(0.5) else slice(None) for _ in range(array.ndim))
        return np.broadcast_to(array[once], array.shape)


def is_array(operand: Any) -> bool:
    """Whether an operand is an array."""
    return isinstance(operand, np.ndarray)


def typical_sample(draw: Draw, least: int = 4) -> Sample | None:
    """One of the first samples of an op for the kind of a draw: some finite values."""
    found: dict[str, Sample] = {}
    for sample in draw.samples.samples:
        arrays = [operand for operand in sample.operands if is_array(operand)]
        if draw.kind not in _kinds(sample) or not any(array.size >= least for array in arrays):
            continue
        if all(array.size and _is_moderate(array) for array in arrays):
            found.setdefault(arrays[-1].dtype.kind + arrays[0].dtype.kind, sample)
    chosen: Sample | None = draw.among(*found.values()) if found else None
    return chosen


def _is_moderate(array: Array) -> bool:
    if array.dtype.kind in "iu":
        return bool(np.abs(array).max() <= 1000)
    return bool(np.isfinite(array).all())


def _is_accepted(samples: OpSamples, one: Sample) -> bool:
    dtype = next(dtype for dtype in (float32, *DType.members()) if dtype.kind in _kinds(one))
    call = Call.of(samples, one, dtype, int64)
    try:
        outputs = call.outputs(call.op.infer(*call.metas, **call.attributes))
    except BurnError:
        return False
    return all(math.prod(length or 0 for length in output.shape) < 200_000 for output in outputs)


def _kinds(one: Sample) -> Kind:
    return Kind.REAL if one.kinds is None else one.kinds


def with_layouts(draw: Draw) -> Sample | None:
    """One of the samples of an op, with its operands in other layouts."""
    chosen = [sample for sample in draw.samples.samples if draw.kind in _kinds(sample)]
    if not chosen:
        return None
    one: Sample = draw.among(*chosen)
    operands = tuple(
        [draw.view(part, repeats=False) for part in operand]
        if isinstance(operand, list)
        else draw.view(operand, repeats=False)
        if is_array(operand)
        else operand
        for operand in one.operands
    )
    return replace(one, note="", operands=operands)
