"""Connectionist temporal classification, one frame of all targets at a time, in float64.

The states and walks are those of `burn.ops.ctc`.
"""

from __future__ import annotations

import numpy as np

from burn.backend.refusal import Refusal, refused_index
from burn.dtype import int64
from burn.ops.ctc import NEVER, check_ctc
from burn_cpu.base import Array, CpuOps
from burn_cpu.indexing import out_of_range


class CtcOps(CpuOps):
    """The loss and its gradient."""

    def ctc_loss(
        self,
        log_probs: Array,
        targets: Array,
        input_lengths: Array,
        target_lengths: Array,
        *,
        blank: int,
    ) -> Array:
        """The walks forward."""
        walks = _Walks(log_probs, targets, input_lengths, target_lengths, blank)
        reached = walks.start()
        for frame in range(walks.frames):
            reached = walks.step(reached, frame)
        total = walks.total(reached)
        losses = np.where(total < 0.5 * NEVER, np.inf, -total)
        return losses.astype(log_probs.dtype)

    def ctc_loss_grad(
        self,
        log_probs: Array,
        targets: Array,
        input_lengths: Array,
        target_lengths: Array,
        g: Array,
        *,
        blank: int,
    ) -> Array:
        """The walks forward and backward, and what passes each state in each frame."""
        walks = _Walks(log_probs, targets, input_lengths, target_lengths, blank)
        if g.shape != (walks.count,):
            raise ValueError(f"g of shape {g.shape} for {walks.count} targets")
        reached = np.empty((walks.frames + 1, walks.count, walks.states))
        reached[0] = walks.start()
        for frame in range(walks.frames):
            reached[frame + 1] = walks.step(reached[frame], frame)
        total = walks.total(reached[-1])
        impossible = total < 0.5 * NEVER
        weight = np.where(impossible, 0.0, -g.astype(np.float64))[:, None]
        passing = np.empty((walks.frames, walks.count, walks.states))
        left = walks.end()
        for frame in reversed(range(walks.frames)):
            left = walks.step_back(left, frame)
            np.add(reached[frame + 1], left, out=passing[frame])
        passing -= np.where(impossible, 0.0, total)[:, None]
        np.exp(passing, out=passing)
        passing *= weight
        frames = np.arange(walks.frames)[:, None]
        passing[frames >= walks.input_lengths] = 0.0
        result = np.zeros(log_probs.shape)
        # One row of classes for each frame and target, which are numbered here.
        row = frames * walks.count + np.arange(walks.count)
        places = row[..., None] * log_probs.shape[2] + walks.classes
        np.add.at(result.reshape(-1), places.reshape(-1), passing.reshape(-1))
        return result.astype(log_probs.dtype)


class _Walks:
    """The states of a batch of targets, which lie along the second axis."""

    def __init__(
        self,
        log_probs: Array,
        targets: Array,
        input_lengths: Array,
        target_lengths: Array,
        blank: int,
    ) -> None:
        check_ctc(log_probs, targets, input_lengths, target_lengths, blank)
        self.frames, self.count, classes = log_probs.shape
        labels = targets.shape[1]
        self.states = 2 * labels + 1
        self.input_lengths = _checked(input_lengths, self.frames)
        self.target_lengths = _checked(target_lengths, labels)
        self.shortest = int(self.input_lengths.min(initial=self.frames))
        refused = refused_index(int64, Refusal.BLANK)
        marked = np.where(targets == blank, refused, targets.astype(np.int64))
        read = np.where(np.arange(labels) < self.target_lengths[:, None], marked, blank)
        if ((read < 0) | (read >= classes)).any():
            raise out_of_range(read, classes, least=0)
        self.classes = np.full((self.count, self.states), blank, np.intp)
        self.classes[:, 1::2] = read
        # What it costs to come to a state from the last but one before it: nothing, or all.
        self.skip = np.full((self.count, self.states), NEVER)
        moved = self.classes[:, 2:] != self.classes[:, :-2]
        self.skip[:, 2:][moved & (self.classes[:, 2:] != blank)] = 0.0
        examples = np.arange(self.count)[:, None]
        emissions = log_probs[:, examples, self.classes].astype(np.float64)
        self.emissions = np.maximum(emissions, NEVER)
        self._ways = np.empty((3, self.count, self.states))

    def start(self) -> Array:
        """Before the first frame a walk is, as it were, in the first blank."""
        reached = np.full((self.count, self.states), NEVER)
        reached[:, 0] = 0.0
        return reached

    def end(self) -> Array:
        """After the last frame a walk is in the last label or in the blank after it."""
        state, last = np.arange(self.states), 2 * self.target_lengths[:, None]
        return np.where((state == last) | (state == last - 1), 0.0, NEVER)

    def step(self, reached: Array, frame: int) -> Array:
        """Log-probability of the first frames on all walks to a state, with this frame."""
        stay, move, skip = self._ways
        stay[...] = reached
        move[:, :1] = NEVER
        move[:, 1:] = reached[:, :-1]
        skip[:, :2] = NEVER
        np.add(reached[:, :-2], self.skip[:, 2:], out=skip[:, 2:])
        met = self._sum_of_ways()
        met += self.emissions[frame]
        return self._while_running(met, reached, frame)

    def step_back(self, left: Array, frame: int) -> Array:
        """Log-probability of the frames after this one on all walks from a state."""
        if frame + 1 == self.frames:
            return left
        stay, move, skip = self._ways
        np.add(left, self.emissions[frame + 1], out=stay)
        move[:, -1:] = NEVER
        move[:, :-1] = stay[:, 1:]
        skip[:, -2:] = NEVER
        np.add(stay[:, 2:], self.skip[:, 2:], out=skip[:, :-2])
        return self._while_running(self._sum_of_ways(), left, frame + 1)

    def _sum_of_ways(self) -> Array:
        """Logarithm of the sum of the three probabilities."""
        largest = np.maximum.reduce(self._ways, axis=0)
        self._ways -= largest
        np.exp(self._ways, out=self._ways)
        total = np.add.reduce(self._ways, axis=0)
        np.log(total, out=total)
        total += largest
        return total

    def _while_running(self, new: Array, old: Array, frame: int) -> Array:
        """The new values of inputs that have a frame, and the old ones of others."""
        if frame < self.shortest:
            return new
        return np.where((frame < self.input_lengths)[:, None], new, old)

    def total(self, reached: Array) -> Array:
        """Log-probability of the whole input on all walks."""
        examples, last = np.arange(self.count), 2 * self.target_lengths
        before = np.where(last > 0, reached[examples, last - 1], NEVER)
        return np.logaddexp(reached[examples, last], before)


def _checked(lengths: Array, largest: int) -> Array:
    """Lengths in [0, largest] as places."""
    if ((lengths < 0) | (lengths > largest)).any():
        raise out_of_range(lengths, largest + 1, least=0)
    return lengths.astype(np.intp)
