"""Connectionist temporal classification in float64, frame by frame for all targets.

The states and walks are those of `burn.ops.networks.ctc`.
"""

from __future__ import annotations

import numpy as np

from burn.plugin_api import LOG_ZERO, InvalidValue, check_ctc, int64, invalid_value_index
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
        """The forward recursion."""
        walks = _Walks(log_probs, targets, input_lengths, target_lengths, blank)
        reached = walks.start()
        for frame in range(walks.frames):
            reached = walks.step(reached, frame)
        total = walks.total(reached)
        losses = np.where(total < 0.5 * LOG_ZERO, np.inf, -total)
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
        """The forward and backward recursions give the probability of each state in each frame."""
        walks = _Walks(log_probs, targets, input_lengths, target_lengths, blank)
        if g.shape != (walks.count,):
            raise ValueError(f"g of shape {g.shape} for {walks.count} targets")
        reached = np.empty((walks.frames + 1, walks.count, walks.states))
        reached[0] = walks.start()
        for frame in range(walks.frames):
            reached[frame + 1] = walks.step(reached[frame], frame)
        total = walks.total(reached[-1])
        impossible = total < 0.5 * LOG_ZERO
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
        # The row of classes of each frame and target.
        row = frames * walks.count + np.arange(walks.count)
        indices = row[..., None] * log_probs.shape[2] + walks.classes
        np.add.at(result.reshape(-1), indices.reshape(-1), passing.reshape(-1))
        return result.astype(log_probs.dtype)


class _Walks:
    """The states of a batch of targets; the last axis has the states of a target."""

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
        invalid = invalid_value_index(int64, InvalidValue.BLANK)
        marked = np.where(targets == blank, invalid, targets.astype(np.int64))
        read = np.where(np.arange(labels) < self.target_lengths[:, None], marked, blank)
        if ((read < 0) | (read >= classes)).any():
            raise out_of_range(read, classes, least=0)
        self.classes = np.full((self.count, self.states), blank, np.intp)
        self.classes[:, 1::2] = read
        # Log-probability to enter a state from the one two before it: 0, or LOG_ZERO if forbidden.
        self.skip = np.full((self.count, self.states), LOG_ZERO)
        moved = self.classes[:, 2:] != self.classes[:, :-2]
        self.skip[:, 2:][moved & (self.classes[:, 2:] != blank)] = 0.0
        examples = np.arange(self.count)[:, None]
        emissions = log_probs[:, examples, self.classes].astype(np.float64)
        self.emissions = np.maximum(emissions, LOG_ZERO)
        self._transitions = np.empty((3, self.count, self.states))

    def start(self) -> Array:
        """Log-probabilities before the first frame, where every walk is in the first blank."""
        reached = np.full((self.count, self.states), LOG_ZERO)
        reached[:, 0] = 0.0
        return reached

    def end(self) -> Array:
        """Log-probabilities after the last frame: walks end in the last label or the last blank."""
        state, last = np.arange(self.states), 2 * self.target_lengths[:, None]
        return np.where((state == last) | (state == last - 1), 0.0, LOG_ZERO)

    def step(self, reached: Array, frame: int) -> Array:
        """Log-probability of all walks to each state after this frame."""
        stay, move, skip = self._transitions
        stay[...] = reached
        move[:, :1] = LOG_ZERO
        move[:, 1:] = reached[:, :-1]
        skip[:, :2] = LOG_ZERO
        np.add(reached[:, :-2], self.skip[:, 2:], out=skip[:, 2:])
        met = self._sum_of_transitions()
        met += self.emissions[frame]
        return self._while_running(met, reached, frame)

    def step_back(self, left: Array, frame: int) -> Array:
        """Log-probability of the frames after this one on all walks from each state."""
        if frame + 1 == self.frames:
            return left
        stay, move, skip = self._transitions
        np.add(left, self.emissions[frame + 1], out=stay)
        move[:, -1:] = LOG_ZERO
        move[:, :-1] = stay[:, 1:]
        skip[:, -2:] = LOG_ZERO
        np.add(stay[:, 2:], self.skip[:, 2:], out=skip[:, :-2])
        return self._while_running(self._sum_of_transitions(), left, frame + 1)

    def _sum_of_transitions(self) -> Array:
        """Logarithm of the sum of the probabilities of the three transitions."""
        largest = np.maximum.reduce(self._transitions, axis=0)
        self._transitions -= largest
        np.exp(self._transitions, out=self._transitions)
        total = np.add.reduce(self._transitions, axis=0)
        np.log(total, out=total)
        total += largest
        return total

    def _while_running(self, new: Array, old: Array, frame: int) -> Array:
        """New values for inputs that are longer than `frame`, else the old ones."""
        if frame < self.shortest:
            return new
        return np.where((frame < self.input_lengths)[:, None], new, old)

    def total(self, reached: Array) -> Array:
        """Log-probability of the whole input over all walks."""
        examples, last = np.arange(self.count), 2 * self.target_lengths
        before = np.where(last > 0, reached[examples, last - 1], LOG_ZERO)
        return np.logaddexp(reached[examples, last], before)


def _checked(lengths: Array, largest: int) -> Array:
    """Lengths in [0, largest] as intp."""
    if ((lengths < 0) | (lengths > largest)).any():
        raise out_of_range(lengths, largest + 1, least=0)
    return lengths.astype(np.intp)
