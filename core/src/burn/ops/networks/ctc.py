"""Connectionist temporal classification (Graves et al., 2006): labels without an alignment.

A target of n labels is emitted by a walk through 2 n + 1 states, which are the labels with a blank
before, between and after them. In every frame the walk stays, takes one step, or skips a blank
between two different labels. The loss is the negative logarithm of the probability of all walks.

All probabilities are logarithms. A finite number represents the logarithm of 0, so that the
difference of two of them is defined, and gradients are free of NaN.
"""

from __future__ import annotations

import math
from typing import Final

from burn.errors import ArgumentError, ShapeError
from burn.ops._precision import in_float32
from burn.ops.arrays.indexing import check_same_shape
from burn.ops.batching import merging
from burn.ops.index_arithmetic import index_dtype, mark_invalid_labels, narrow, positions
from burn.ops.op import Context, Tag, op
from burn.ops.signature import (
    Cotangent,
    FloatOperand,
    Gradients,
    IndexOperand,
    Integer,
    Meta,
    Primitive,
)
from burn.ops.table import OpTable
from burn.public_calls import shown_value

LOG_ZERO: Final = -1e30
"""Logarithm of the probability 0. Sums over millions of frames stay finite in float32."""

_IMPOSSIBLE: Final = 0.5 * LOG_ZERO
"""The logarithm of the probability of a possible walk is above this."""


@op(Tag.COMPUTE_BOUND | Tag.CHECKS_INDICES)
def ctc_loss(
    log_probs: FloatOperand,
    targets: IndexOperand,
    input_lengths: IndexOperand,
    target_lengths: IndexOperand,
    *,
    blank: Integer,
) -> Meta:
    """Negative log-likelihood of each target, summed over all its alignments.

    `log_probs` has shape (T, N, C), `targets` (N, S), and the lengths (N,): what is beyond them is
    not read. The class `blank` is no label. A target that does not fit into its frames has
    the loss infinity and the gradient 0. (Graves et al., "Connectionist Temporal Classification",
    ICML 2006.)
    """
    check_ctc(log_probs, targets, input_lengths, target_lengths, blank)
    return Meta((log_probs.shape[1],), log_probs.dtype)


@ctc_loss.decomposition
@in_float32
def _(
    ops: OpTable,
    log_probs: Primitive,
    targets: Primitive,
    input_lengths: Primitive,
    target_lengths: Primitive,
    *,
    blank: int,
) -> Primitive:
    walks = _Walks(ops, log_probs, targets, input_lengths, target_lengths, blank)
    reached = walks.start()
    for frame in range(walks.frames):
        reached = walks.forward(reached, frame)
    return walks.loss(reached)


@ctc_loss.gradient(saves=("log_probs", "targets", "input_lengths", "target_lengths"))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return ops.ctc_loss_grad(*ctx.saved, g, **ctx.attrs), None, None, None


ctc_loss.batching(merging(log_probs=1, targets=0, input_lengths=0, target_lengths=0))


@ctc_loss.cost
def _(output: Meta, log_probs: Meta, targets: Meta, *lengths: Meta, blank: int) -> int:
    # Two additions of probabilities and the emission for each state (equation 6 of the paper).
    return 3 * _steps(log_probs, targets)


@op(Tag.COMPUTE_BOUND | Tag.CHECKS_INDICES, outputs=("gradient",))
def ctc_loss_grad(
    log_probs: FloatOperand,
    targets: IndexOperand,
    input_lengths: IndexOperand,
    target_lengths: IndexOperand,
    g: FloatOperand,
    *,
    blank: Integer,
) -> Meta:
    """Gradient of `ctc_loss` by the log-probabilities.

    It is ``-g`` times the probability that a frame emits a class, given the target (section 4.2
    of the paper, without the softmax that its networks end in).
    """
    check_ctc(log_probs, targets, input_lengths, target_lengths, blank)
    check_same_shape("g", g.shape, (log_probs.shape[1],))
    return log_probs


@ctc_loss_grad.decomposition
@in_float32
def _(
    ops: OpTable,
    log_probs: Primitive,
    targets: Primitive,
    input_lengths: Primitive,
    target_lengths: Primitive,
    g: Primitive,
    *,
    blank: int,
) -> Primitive:
    walks = _Walks(ops, log_probs, targets, input_lengths, target_lengths, blank)
    check_same_shape("g", tuple(g.shape), (walks.count,))
    if walks.frames == 0:
        return log_probs
    reached = [walks.start()]
    for frame in range(walks.frames):
        reached.append(walks.forward(reached[-1], frame))
    total = walks.total(reached[-1])
    impossible = ops.less(total, _IMPOSSIBLE)
    total = ops.where(impossible, 0.0, total)
    weight = ops.where(impossible, 0.0, ops.reshape(g, shape=(walks.count, 1)))
    posteriors = []
    left = walks.end()
    for frame in reversed(range(walks.frames)):
        left = walks.backward(left, frame)
        passing = ops.subtract(ops.add(reached[frame + 1], left), total)
        share = ops.multiply(ops.exp(passing), weight)
        share = ops.where(walks.running(frame), share, 0.0)
        posteriors.append(ops.reshape(share, shape=(1, *share.shape)))
    emitted = ops.negative(ops.concat(posteriors[::-1], axis=0))
    zeros = ops.full(shape=tuple(log_probs.shape), fill_value=0.0, dtype=ops.dtype(log_probs))
    return ops.scatter_add(zeros, walks.classes, emitted, axis=2)


ctc_loss_grad.batching(
    merging(log_probs=1, targets=0, input_lengths=0, target_lengths=0, g=0, outputs=(1,))
)


@ctc_loss_grad.cost
def _(output: Meta, log_probs: Meta, targets: Meta, *operands: Meta, blank: int) -> int:
    # Walks to and from each state, their product over the total, and its share of the class.
    return (3 + 3 + 3) * _steps(log_probs, targets)


def _steps(log_probs: Meta, targets: Meta) -> int:
    """Number of states in all frames of a batch."""
    return log_probs.shape[0] * targets.shape[0] * (2 * targets.shape[1] + 1)


class _Walks:
    """The states of a batch of targets, and the log-probabilities of walks through them.

    Tensors of states have shape (N, L) with L = 2 S + 1.
    """

    def __init__(
        self,
        ops: OpTable,
        log_probs: Primitive,
        targets: Primitive,
        input_lengths: Primitive,
        target_lengths: Primitive,
        blank: int,
    ) -> None:
        check_ctc(log_probs, targets, input_lengths, target_lengths, blank)
        self.ops = ops
        self.frames, self.count = int(log_probs.shape[0]), int(log_probs.shape[1])
        labels = int(targets.shape[1])
        self.states = 2 * labels + 1
        self.dtype = ops.dtype(log_probs)
        self.input_lengths = self._lengths(input_lengths, self.frames)
        self.target_lengths = self._lengths(target_lengths, labels)
        state_class = self._state_classes(targets, labels, blank)
        self.can_skip = self._skips(state_class, blank)
        spread = ops.reshape(state_class, shape=(1, self.count, self.states))
        self.classes = ops.expand(spread, shape=(self.frames, self.count, self.states))
        emissions = ops.gather(log_probs, self.classes, axis=2)
        self.emissions = ops.maximum(emissions, LOG_ZERO)

    def _lengths(self, lengths: Primitive, largest: int) -> Primitive:
        """Lengths as a column; one that is not in [0, largest] is reported like an index."""
        ops = self.ops
        dtype = index_dtype(ops)
        known = ops.arange(start=0, step=1, length=largest + 1, dtype=dtype)
        checked = ops.gather(known, mark_invalid_labels(ops, lengths), axis=0)
        return ops.reshape(checked, shape=(self.count, 1))

    def _state_classes(self, targets: Primitive, labels: int, blank: int) -> Primitive:
        """Class that each state emits: labels at the odd indices, blanks between them."""
        ops = self.ops
        dtype = index_dtype(ops)
        blanks = ops.full(shape=(self.count, self.states), fill_value=blank, dtype=dtype)
        within = ops.less(positions(ops, (self.count, labels), 1), self.target_lengths)
        read = ops.where(within, mark_invalid_labels(ops, targets, blank=blank), blank)
        return ops.slice_assign(blanks, read, slices=((0, self.count, 1), (1, labels, 2)))

    def _skips(self, state_class: Primitive, blank: int) -> Primitive:
        """Whether a walk may skip the state before one."""
        earlier = self._shifted_states(state_class, 2, -1)
        ops = self.ops
        return ops.bitwise_and(
            ops.not_equal(state_class, blank), ops.not_equal(state_class, earlier)
        )

    def _shifted_states(self, x: Primitive, steps: int, fill: float) -> Primitive:
        """The values `steps` states earlier (later if negative), or `fill`."""
        ops = self.ops
        steps, forward = abs(steps), steps > 0
        kept = max(self.states - steps, 0)
        rest = ops.full(shape=(self.count, self.states - kept), fill_value=fill, dtype=ops.dtype(x))
        part = narrow(ops, x, 1, 0 if forward else self.states - kept, kept)
        return ops.concat([rest, part] if forward else [part, rest], axis=1)

    def start(self) -> Primitive:
        """Log-probabilities before the first frame: a walk starts in the first blank."""
        ops = self.ops
        first = ops.full(shape=(self.count, 1), fill_value=0.0, dtype=self.dtype)
        rest = ops.full(shape=(self.count, self.states - 1), fill_value=LOG_ZERO, dtype=self.dtype)
        return ops.concat([first, rest], axis=1)

    def end(self) -> Primitive:
        """Log-probabilities after the last frame: a walk ends in the last label or blank."""
        ops = self.ops
        last = ops.multiply(self.target_lengths, 2)
        state = positions(ops, (self.count, self.states), 1)
        final = ops.bitwise_or(ops.equal(state, last), ops.equal(state, ops.subtract(last, 1)))
        zeros = ops.full(shape=(self.count, self.states), fill_value=0.0, dtype=self.dtype)
        return ops.where(final, zeros, LOG_ZERO)

    def running(self, frame: int) -> Primitive:
        """Whether an input has this frame."""
        return self.ops.less(frame, self.input_lengths)

    def emission(self, frame: int) -> Primitive:
        """Log-probability of the class that each state emits, in a frame."""
        part = narrow(self.ops, self.emissions, 0, frame, 1)
        return self.ops.reshape(part, shape=(self.count, self.states))

    def forward(self, reached: Primitive, frame: int) -> Primitive:
        """Log-probability of the frames up to this one on all walks to a state."""
        ops = self.ops
        skip = ops.where(self.can_skip, self._shifted_states(reached, 2, LOG_ZERO), LOG_ZERO)
        total = ops.logaddexp(
            ops.logaddexp(reached, self._shifted_states(reached, 1, LOG_ZERO)), skip
        )
        return ops.where(self.running(frame), ops.add(total, self.emission(frame)), reached)

    def backward(self, left: Primitive, frame: int) -> Primitive:
        """Log-probability of the frames after this one on all walks from a state."""
        ops = self.ops
        if frame + 1 == self.frames:
            return left
        ahead = ops.add(left, self.emission(frame + 1))
        skip = self._shifted_states(ops.where(self.can_skip, ahead, LOG_ZERO), -2, LOG_ZERO)
        total = ops.logaddexp(ops.logaddexp(ahead, self._shifted_states(ahead, -1, LOG_ZERO)), skip)
        return ops.where(self.running(frame + 1), total, left)

    def total(self, reached: Primitive) -> Primitive:
        """Log-probability of the whole input on all walks, as a column."""
        ops = self.ops
        last = ops.multiply(self.target_lengths, 2)
        before = ops.gather(reached, ops.maximum(ops.subtract(last, 1), 0), axis=1)
        before = ops.where(ops.equal(last, 0), LOG_ZERO, before)
        return ops.logaddexp(ops.gather(reached, last, axis=1), before)

    def loss(self, reached: Primitive) -> Primitive:
        """Negative log-likelihood, infinite where there is no walk."""
        ops = self.ops
        total = ops.reshape(self.total(reached), shape=(self.count,))
        return ops.where(ops.less(total, _IMPOSSIBLE), math.inf, ops.negative(total))


def check_ctc(
    log_probs: Meta | Primitive,
    targets: Meta | Primitive,
    input_lengths: Meta | Primitive,
    target_lengths: Meta | Primitive,
    blank: int,
) -> None:
    """Raise unless the shapes fit each other and the blank is a class."""
    shape = tuple(log_probs.shape)
    if len(shape) != 3:
        raise ShapeError(f"log_probs has shape {shape}", hint="Its shape is (T, N, C)")
    if len(targets.shape) != 2 or targets.shape[0] != shape[1]:
        raise ShapeError(
            f"targets of shape {tuple(targets.shape)} do not fit log_probs of shape {shape}",
            hint=f"Targets have a row for each of the batch: shape ({shape[1]}, S)",
        )
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if tuple(lengths.shape) != (shape[1],):
            raise ShapeError(
                f"{name} has shape {tuple(lengths.shape)} where {(shape[1],)} is needed",
                hint="There is one length for each of the batch",
            )
    if not 0 <= blank < shape[2]:
        raise ArgumentError(
            f"blank is {shown_value(blank)}, and there are {shape[2]} classes",
            hint=f"Use a class from 0 to {shape[2] - 1}",
        )
