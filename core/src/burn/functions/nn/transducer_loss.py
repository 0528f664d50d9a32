"""The loss of transducers: labels without an alignment, each of which depends on those before it.

A. Graves, "Sequence transduction with recurrent neural networks" (2012, arXiv:1211.3711).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from burn.dtype import float32
from burn.errors import ArgumentError, DTypeError, ShapeError
from burn.functions.creation import arange, full
from burn.functions.elementwise import clip, logaddexp, logical_or
from burn.functions.indexing import take_along_axis
from burn.functions.manipulation import broadcast_to, concat, expand_dims, squeeze, stack
from burn.functions.nn.loss import Reduction, reduce_losses
from burn.functions.nn.softmax import log_softmax
from burn.functions.normalize import as_flag, as_float, check_tensor, number_dtype, rank_of
from burn.functions.quantization import numbers_of
from burn.functions.rearranging import narrow
from burn.functions.searching import where
from burn.ops import LOG_ZERO
from burn.ops.arguments import as_integer
from burn.public_calls import shown_value

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["rnnt_loss"]

_LAYOUT: Final = "x is (N, T, S + 1, C), targets are (N, S), and the lengths (N,)"


def rnnt_loss(
    x: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    /,
    *,
    blank: int = 0,
    fused_log_softmax: bool = True,
    reduction: Reduction = "mean",
) -> Tensor:
    """Negative log-likelihoods of targets, summed over all alignments with the frames.

    Parameters
    ----------
    x : Tensor, shape (N, T, S + 1, C)
        Scores of the classes for each frame, after each number of labels.
    targets : Tensor of int, shape (N, S)
        Labels, none of which is `blank`; what is beyond their length is not read.
    input_lengths : Tensor of int, shape (N,)
        Numbers of frames, from 1 to T.
    target_lengths : Tensor of int, shape (N,)
        Numbers of labels, from 0 to S.
    blank : int
        The class that means no label, and the next frame. A negative one counts from the end.
    fused_log_softmax : bool
        Whether the softmax is taken here; otherwise `x` has logarithms of probabilities.
    reduction : {"mean", "sum", "none"}
        Whether the losses are averaged, added up or returned as they are.

    Returns
    -------
    Tensor
        The loss in nats: 0-d, or of shape (N,) without a reduction.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other, or there is no frame.
    DTypeError
        If targets or lengths are no integers.
    ArgumentError
        If there is no class `blank`.
    OutOfRangeError
        If a label is no class or the blank, or a length out of its range; on an asynchronous device
        at the next read.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.zeros((1, 2, 2, 2), device="cpu")
    >>> one = burn.asarray([1], device="cpu")
    >>> loss = F.rnnt_loss(x, one[None], one + 1, one)  # 2 alignments of 3 choices of 1/2
    >>> round(burn.exp(-loss).item(), 6)
    0.25
    """
    operation = "rnnt_loss"
    blank = _checked_blank(x, targets, input_lengths, target_lengths, blank)
    x = numbers_of(as_float(x, operation))
    dtype = x.dtype
    if dtype.itemsize < float32.itemsize:
        x = x.astype(float32)  # sums of many logarithms
    log_probs = log_softmax(x) if as_flag(fused_log_softmax, "fused_log_softmax", operation) else x
    count, frames, states, classes = x.shape
    integers = x.device.settings.int_dtype
    targets = targets.astype(integers)
    lengths, labels = input_lengths.astype(integers), target_lengths.astype(integers)
    # What is read and out of its range becomes an index that no axis has; all else is in range.
    emitted = arange(states - 1, device=x.device) < expand_dims(labels, axis=1)
    wrong = logical_or(targets < 0, targets == blank)
    classes_of_labels = where(emitted, where(wrong, classes, targets), 0)
    last_frame = where(lengths < 1, frames, lengths - 1)
    last_state = where(labels < 0, states, labels)
    shape = (count, frames, states - 1, 1)
    emissions = take_along_axis(
        narrow(log_probs, 0, states - 1, axis=2),
        broadcast_to(expand_dims(classes_of_labels, (1, 3)), shape),
        axis=3,
    )
    blanks = narrow(log_probs, blank, 1, axis=3)
    walks = _walks(squeeze(blanks, axis=3), squeeze(emissions, axis=3))
    # All walks end with a blank in the last frame, after all labels.
    final = _picked(walks, clip(last_frame + last_state, 0, frames + states - 2), last_state)
    losses = -(final + _picked(squeeze(blanks, axis=3), last_frame, last_state))
    return reduce_losses(losses, reduction, operation).astype(dtype, copy=False)


def _walks(blanks: Tensor, emissions: Tensor) -> Tensor:
    """Logarithms of the probabilities to reach a frame with a number of labels.

    `blanks` has the shape (N, T, S + 1), and `emissions` (N, T, S). Frame and number of labels add
    up to the index along axis 1 of the result, (N, T + S, S + 1): what has one sum is computed at
    once, of what has a sum of one less.
    """
    count, frames, states = blanks.shape
    blanks, emissions = _by_sums(blanks), _by_sums(emissions)
    beyond = full((count, 1), LOG_ZERO, dtype=number_dtype(blanks), device=blanks.device)
    start = arange(states, device=blanks.device) == 0
    reached = where(start, blanks[:, 0] * 0.0, LOG_ZERO)
    found = [reached]
    for total in range(1, frames + states - 1):
        stay = reached + blanks[:, total - 1]
        moved = reached[:, :-1] + emissions[:, total - 1]
        reached = logaddexp(stay, concat([beyond, moved], axis=1))
        found.append(reached)
    return stack(found, axis=1)


def _by_sums(x: Tensor) -> Tensor:
    """Elements (N, T, U) by the sums of their last two indices; `LOG_ZERO` where there is none."""
    count, frames, states = x.shape
    sums = frames + states
    frame = expand_dims(arange(sums, device=x.device), axis=1) - arange(states, device=x.device)
    inside = (frame >= 0) & (frame < frames)
    index = broadcast_to(clip(frame, 0, frames - 1), (count, sums, states))
    return where(inside, take_along_axis(x, index, axis=1), LOG_ZERO)


def _picked(x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Of each matrix of (N, A, B) the element at a row and a column."""
    count, _, width = x.shape
    row = broadcast_to(expand_dims(rows, (1, 2)), (count, 1, width))
    found = squeeze(take_along_axis(x, row, axis=1), axis=1)
    return squeeze(take_along_axis(found, expand_dims(columns, axis=1), axis=1), axis=1)


def _checked_blank(
    x: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int
) -> int:
    """The class that is no label, counted from 0; raises unless the tensors fit each other."""
    operation = "rnnt_loss"
    for name, tensor in (
        ("targets", targets),
        ("input_lengths", input_lengths),
        ("target_lengths", target_lengths),
    ):
        check_tensor(tensor, name, operation)
        if not tensor.dtype.is_integer:
            raise DTypeError(f"{name} are integers, not {tensor.dtype}", operation=operation)
    shapes = [tensor.shape for tensor in (targets, input_lengths, target_lengths)]
    if rank_of(x, operation) == 4:
        count, frames, states, classes = x.shape
        fits = shapes == [(count, states - 1), (count,), (count,)]
    if x.ndim != 4 or not fits or not frames:
        raise ShapeError(
            f"x of shape {x.shape}, targets {shapes[0]} and lengths {shapes[1]} and {shapes[2]}",
            hint=f"{_LAYOUT}, with a frame at least",
            operation=operation,
        )
    number = as_integer(blank, "blank", operation)
    if not -classes <= number < classes:
        raise ArgumentError(
            f"blank is {shown_value(number)}, and there are {classes} classes",
            hint="It is the number of a class",
            operation=operation,
        )
    return number % classes
