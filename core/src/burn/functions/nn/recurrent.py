"""Recurrent layers over a whole sequence: one layer, one direction.

Weights have PyTorch's layout, with the rows of all gates in one matrix. The modules of the same
names in `burn.nn` have several layers and both directions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from burn.docstrings import documented_as
from burn.errors import OperandTypeError
from burn.functions import calls
from burn.functions.normalize import as_flag

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["gru", "lstm", "rnn"]


def gru(
    x: Tensor,
    state: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None = None,
    bias_hh: Tensor | None = None,
    /,
    *,
    reset_after: bool = True,
    reverse: bool = False,
) -> tuple[Tensor, Tensor]:
    """Gated recurrent units: each step mixes the state with a candidate.

    In each step t, with ``r, z, n`` the three parts of ``a = x[t] @ weight_ih.T + bias_ih`` and of
    ``b = h @ weight_hh.T + bias_hh``: ``r = sigmoid(a_r + b_r)``, ``z = sigmoid(a_z + b_z)``,
    ``n = tanh(a_n + r * b_n)`` and ``h = (1 - z) * n + z * h``.

    Parameters
    ----------
    x : Tensor, shape (T, N, I)
        Features of N examples in T steps, at least one; float.
    state : Tensor, shape (N, H)
        h before the first step.
    weight_ih : Tensor, shape (3 * H, I)
        Multiplies the features.
    weight_hh : Tensor, shape (3 * H, H)
        Multiplies h.
    bias_ih, bias_hh : Tensor, shape (3 * H,), optional
        Added to the products.
    reset_after : bool
        Whether r multiplies the product, as in PyTorch and cuDNN. Otherwise it multiplies the
        state, as in the paper: ``b_n`` is then that of ``r * h``, and ``n = tanh(a_n + b_n)``.
    reverse : bool
        Whether the steps are taken from the last to the first.

    Returns
    -------
    output : Tensor, shape (T, N, H)
        h after each step.
    state : Tensor, shape (N, H)
        h after the last step that was taken.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other, or there is no step.

    Notes
    -----
    K. Cho et al., 2014, arXiv:1406.1078.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x, state = burn.ones((5, 2, 3), device="cpu"), burn.ones((2, 4), device="cpu")
    >>> weights = burn.zeros((12, 3), device="cpu"), burn.zeros((12, 4), device="cpu")
    >>> output, h = F.gru(x, state, *weights)  # every gate is 0.5, and the candidate 0
    >>> output.shape, h[0, 0].item()
    ((5, 2, 4), 0.03125)
    """
    if reverse.__class__ is not bool:
        reverse = as_flag(reverse, "reverse", "gru")
    if reset_after.__class__ is not bool:
        reset_after = as_flag(reset_after, "reset_after", "gru")
    operands = (x, state, weight_ih, weight_hh, bias_ih, bias_hh)
    output, h = calls.gru(*operands, reset_after=reset_after, reverse=reverse)
    return output, h


@documented_as(gru)
def rnn(
    x: Tensor,
    state: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None = None,
    bias_hh: Tensor | None = None,
    /,
    *,
    nonlinearity: Literal["tanh", "relu"] = "tanh",
    reverse: bool = False,
) -> tuple[Tensor, Tensor]:
    """A recurrent layer: ``h = tanh(x[t] @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh)``.

    The other parameters are those of `gru`.

    Parameters
    ----------
    weight_ih : Tensor, shape (H, I)
        Multiplies the features.
    weight_hh : Tensor, shape (H, H)
        Multiplies h.
    bias_ih, bias_hh : Tensor, shape (H,), optional
        Added to the products.
    nonlinearity : {"tanh", "relu"}
        What is applied to the sum.

    Raises
    ------
    ArgumentError
        If `nonlinearity` is none of the two.

    Notes
    -----
    J. L. Elman, "Finding Structure in Time", Cognitive Science 14, 1990.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.ones((3, 1, 1), device="cpu")
    >>> one, zero = burn.ones((1, 1), device="cpu"), burn.zeros((1, 1), device="cpu")
    >>> output, state = F.rnn(x, zero, one, one, nonlinearity="relu")
    >>> burn.reshape(output, (3,)).tolist(), state.item()
    ([1.0, 2.0, 3.0], 3.0)
    """
    if reverse.__class__ is not bool:
        reverse = as_flag(reverse, "reverse", "rnn")
    operands = (x, state, weight_ih, weight_hh, bias_ih, bias_hh)
    output, h = calls.rnn(*operands, nonlinearity=nonlinearity, reverse=reverse)
    return output, h


def lstm(
    x: Tensor,
    state: tuple[Tensor, Tensor],
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None = None,
    bias_hh: Tensor | None = None,
    /,
    *,
    reverse: bool = False,
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Long short-term memory: a recurrent layer with a cell state, which gates change and read.

    In each step t, with ``i, f, k, o`` the four parts of ``x[t] @ weight_ih.T + bias_ih +
    h @ weight_hh.T + bias_hh``: ``c = sigmoid(f) * c + sigmoid(i) * tanh(k)`` and
    ``h = sigmoid(o) * tanh(c)``.

    Parameters
    ----------
    x : Tensor, shape (T, N, I)
        Features of N examples in T steps, at least one; float.
    state : tuple of two Tensors, shape (N, H) each
        h and c before the first step.
    weight_ih : Tensor, shape (4 * H, I)
        Multiplies the features.
    weight_hh : Tensor, shape (4 * H, H)
        Multiplies h.
    bias_ih, bias_hh : Tensor, shape (4 * H,), optional
        Added to the products.
    reverse : bool
        Whether the steps are taken from the last to the first.

    Returns
    -------
    output : Tensor, shape (T, N, H)
        h after each step.
    state : tuple of two Tensors, shape (N, H) each
        h and c after the last step that was taken.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other, or there is no step.

    Notes
    -----
    S. Hochreiter and J. Schmidhuber, "Long Short-Term Memory", Neural Computation 9, 1997, with
    the forget gate of F. Gers, J. Schmidhuber and F. Cummins, "Learning to Forget", 2000.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.ones((5, 2, 3), device="cpu")
    >>> state = burn.zeros((2, 4), device="cpu"), burn.ones((2, 4), device="cpu")
    >>> weights = burn.zeros((16, 3), device="cpu"), burn.zeros((16, 4), device="cpu")
    >>> output, (h, c) = F.lstm(x, state, *weights)  # every gate is 0.5
    >>> output.shape, c[0, 0].item()
    ((5, 2, 4), 0.03125)
    """
    if reverse.__class__ is not bool:
        reverse = as_flag(reverse, "reverse", "lstm")
    if not isinstance(state, (tuple, list)) or len(state) != 2:
        raise OperandTypeError(
            f"state is an object of type {type(state).__name__}, and two tensors are needed",
            hint="Pass (h, c): the hidden state and that of the cell",
            operation="lstm",
        )
    operands = (x, *state, weight_ih, weight_hh, bias_ih, bias_hh)
    output, h, c = calls.lstm(*operands, reverse=reverse)
    return output, (h, c)
