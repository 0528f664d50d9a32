"""Recurrent layers and their cells, with PyTorch's parameters and outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias

from burn.docstrings import documented_as
from burn.errors import ArgumentError, ShapeError
from burn.functions.creation import zeros
from burn.functions.manipulation import concat, expand_dims, moveaxis, squeeze, stack
from burn.functions.normalize import number_dtype
from burn.nn import functional as F, init
from burn.nn.module import Module
from burn.ops.arguments import as_integer, real_number

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.functions.common import DeviceLike, DTypeLike
    from burn.tensor.tensor import Tensor

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNCell"]

Nonlinearity: TypeAlias = Literal["tanh", "relu"]

_PARAMETERS: Final = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")

_THREE_GATES: Final = {"(H, ": "(3 * H, ", "(H,)": "(3 * H,)"}
_FOUR_GATES: Final = {"(H, ": "(4 * H, ", "(H,)": "(4 * H,)"}
"""Shapes of parameters where each is that of several gates, for `documented_as`."""


class _Recurrent(Module):
    """What layers and cells share: the parameters of a layer, and one call for a sequence."""

    _gates: ClassVar[int]
    _state_names: ClassVar[tuple[str, ...]] = ("h",)
    bias: bool

    def _operation(self) -> str:
        return f"nn.{type(self).__name__}"

    def _set_sizes(self, input_size: int, hidden_size: int) -> None:
        self.input_size = as_integer(input_size, "input_size", self._operation(), least=0)
        self.hidden_size = as_integer(hidden_size, "hidden_size", self._operation(), least=1)

    def _set_parameters(
        self,
        features: int,
        suffix: str,
        *,
        dtype: DTypeLike | None,
        device: DeviceLike | None,
    ) -> None:
        """New parameters of one layer in one direction, whose names end in a suffix."""
        rows, bound = self._gates * self.hidden_size, self.hidden_size**-0.5
        shapes: tuple[Shape, ...] = ((rows, features), (rows, self.hidden_size), (rows,), (rows,))
        for name, shape in zip(_PARAMETERS, shapes, strict=True):
            value = None
            if self.bias or len(shape) == 2:
                value = init.uniform(shape, -bound, bound, dtype=dtype, device=device)
            setattr(self, f"{name}{suffix}", value)

    def _call_op(
        self, x: Tensor, states: tuple[Tensor, ...], parameters: list[Any], *, reverse: bool
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The output and the last states of one layer in one direction."""
        raise NotImplementedError

    def _run_layer(
        self, x: Tensor, states: tuple[Tensor, ...], suffix: str, *, reverse: bool = False
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        parameters = [getattr(self, f"{name}{suffix}") for name in _PARAMETERS]
        return self._call_op(x, states, parameters, reverse=reverse)

    def _check_input(self, x: Tensor, batched_rank: int) -> bool:
        """Whether `x` is a batch; raises ShapeError for another rank or number of features."""
        rank = len(x.shape)
        if rank not in (batched_rank, batched_rank - 1) or x.shape[-1] != self.input_size:
            lengths = ("N", "I") if batched_rank == 2 else ("T", "N", "I")
            if getattr(self, "batch_first", False):
                lengths = ("N", "T", "I")
            alone = [length for length in lengths if length != "N"]
            raise ShapeError(
                f"an input of shape {x.shape} for {self.input_size} features",
                hint=f"The shape is ({', '.join(lengths)}), or ({', '.join(alone)}"
                f"{',' * (len(alone) == 1)}) for one example",
                operation=self._operation(),
            )
        return rank == batched_rank

    def _check_states(self, states: tuple[Tensor, ...], shape: Shape) -> None:
        """Raise ShapeError unless all states have a shape."""
        for name, state in zip(self._state_names, states, strict=True):
            if state.shape != shape:
                raise ShapeError(
                    f"the state {name} has shape {state.shape} where {shape} is needed",
                    hint="Leave the state out to begin with zeros",
                    operation=self._operation(),
                )


class _RnnKind(_Recurrent):
    _gates = 1
    nonlinearity: Nonlinearity

    def _call_op(
        self, x: Tensor, states: tuple[Tensor, ...], parameters: list[Any], *, reverse: bool
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        output, h = F.rnn(x, *states, *parameters, nonlinearity=self.nonlinearity, reverse=reverse)
        return output, (h,)


class _LstmKind(_Recurrent):
    _gates = 4
    _state_names = ("h", "c")

    def _call_op(
        self, x: Tensor, states: tuple[Tensor, ...], parameters: list[Any], *, reverse: bool
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        h, c = states
        return F.lstm(x, (h, c), *parameters, reverse=reverse)


class _GruKind(_Recurrent):
    _gates = 3
    reset_after: bool

    def _call_op(
        self, x: Tensor, states: tuple[Tensor, ...], parameters: list[Any], *, reverse: bool
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        output, h = F.gru(x, *states, *parameters, reset_after=self.reset_after, reverse=reverse)
        return output, (h,)


class _Layers(_Recurrent):
    """Several layers, in one direction or both."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
    ) -> None:
        self._set_sizes(input_size, hidden_size)
        self.num_layers = as_integer(num_layers, "num_layers", self._operation(), least=1)
        self.bias, self.batch_first, self.bidirectional = bias, batch_first, bidirectional
        self.dropout = real_number(dropout, "dropout", self._operation(), least=0.0, most=1.0)
        if self.dropout and num_layers == 1:
            raise ArgumentError(
                f"dropout is {dropout}, and there is one layer",
                hint="It drops elements between layers; put a Dropout behind this one",
                operation=self._operation(),
            )
        directions = len(self._directions())
        for layer in range(self.num_layers):
            features = hidden_size * directions if layer else input_size
            for direction in self._directions():
                suffix = f"_l{layer}{direction}"
                self._set_parameters(features, suffix, dtype=dtype, device=device)

    def _directions(self) -> tuple[str, ...]:
        """What names of parameters end in, for each direction."""
        return ("", "_reverse") if self.bidirectional else ("",)

    def _run(
        self, x: Tensor, states: tuple[Tensor, ...] | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The output of the last layer, and the last states of all layers and directions."""
        is_batch = self._check_input(x, 3)
        if not is_batch:
            x = expand_dims(x, axis=1)
        elif self.batch_first:
            x = moveaxis(x, 0, 1)
        directions = self._directions()
        count, examples = self.num_layers * len(directions), x.shape[1]
        if states is None:
            zero = zeros((examples, self.hidden_size), dtype=number_dtype(x), device=x.device)
            first = [(zero,) * len(self._state_names)] * count
        else:
            batch = (examples,) if is_batch else ()
            self._check_states(states, (count, *batch, self.hidden_size))
            if not is_batch:
                states = tuple([expand_dims(state, axis=1) for state in states])
            first = [tuple([state[index] for state in states]) for index in range(count)]
        last: list[tuple[Tensor, ...]] = []
        for layer in range(self.num_layers):
            outputs = []
            for direction in directions:
                output, ends = self._run_layer(
                    x, first[len(last)], f"_l{layer}{direction}", reverse=bool(direction)
                )
                outputs.append(output)
                last.append(ends)
            x = outputs[0] if len(outputs) == 1 else concat(outputs, axis=2)
            if self.dropout and layer + 1 < self.num_layers:
                x = F.dropout(x, self.dropout, training=self.is_training(x))
        ends = tuple([stack(each) for each in zip(*last, strict=True)])
        if not is_batch:
            return squeeze(x, axis=1), tuple([squeeze(state, axis=1) for state in ends])
        return moveaxis(x, 0, 1) if self.batch_first else x, ends


class RNN(_RnnKind, _Layers):
    """Recurrent layers: in each step ``h = tanh(W_ih x + b_ih + W_hh h + b_hh)``.

    Parameters
    ----------
    input_size : int
        Number of features I of a step.
    hidden_size : int
        Number of hidden values H.
    num_layers : int
        Number of layers L, each of which takes the output of the one before.
    nonlinearity : {"tanh", "relu"}
        What is applied to the sum.
    bias : bool
        Whether there are biases.
    batch_first : bool
        Whether inputs and outputs have the axes (N, T, ...) instead of (T, N, ...). States have the
        same shape either way.
    dropout : float
        Probability with which training zeroes an element of the output of a layer, but the last.
    bidirectional : bool
        Whether a second set of layers takes the steps from the last to the first.
    dtype : DType, optional
        Of the parameters.
    device : Device or str, optional
        Where they are.

    Attributes
    ----------
    weight_ih_l0, weight_hh_l0 : Tensor, shapes (H, I) and (H, H)
        Of layer 0; later layers have the shape (H, H), or (H, 2 * H) if bidirectional. The names of
        the second direction end in ``_reverse``.
    bias_ih_l0, bias_hh_l0 : Tensor, shape (H,), or None
        Its biases.

    Examples
    --------
    >>> import burn
    >>> layer = burn.nn.RNN(4, 8, device="cpu")
    >>> output, h = layer(burn.ones((5, 2, 4), device="cpu"))
    >>> output.shape, h.shape
    ((5, 2, 8), (1, 2, 8))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: Nonlinearity = "tanh",
        *,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
    ) -> None:
        self.nonlinearity = nonlinearity
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            bias=bias,
            batch_first=batch_first,
            dropout=dropout,
            bidirectional=bidirectional,
            dtype=dtype,
            device=device,
        )

    def forward(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Output and last state for x of shape (T, N, I), or (T, I) without a batch.

        `state` and the last state have the shape (D * L, N, H) for D directions; without one it is
        0. The output has the shape (T, N, D * H).
        """
        output, (h,) = self._run(x, None if state is None else (state,))
        return output, h


@documented_as(RNN, _FOUR_GATES)
class LSTM(_LstmKind, _Layers):
    """Layers with long short-term memory: a cell state that gates change and read.

    In each step ``c = sigmoid(f) * c + sigmoid(i) * tanh(k)`` and ``h = sigmoid(o) * tanh(c)``,
    where i, f, k and o are the parts of ``W_ih x + b_ih + W_hh h + b_hh``.

    The parameters are those of `RNN`.

    Examples
    --------
    >>> import burn
    >>> layer = burn.nn.LSTM(4, 8, num_layers=2, bidirectional=True, device="cpu")
    >>> output, (h, c) = layer(burn.ones((5, 2, 4), device="cpu"))
    >>> output.shape, h.shape, c.shape
    ((5, 2, 16), (4, 2, 8), (4, 2, 8))
    """

    def forward(
        self, x: Tensor, state: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Output and last state for x of shape (T, N, I), or (T, I) without a batch.

        A state is a tuple (h, c) of the shape (D * L, N, H) each for D directions; without one they
        are 0. The output has the shape (T, N, D * H).
        """
        output, (h, c) = self._run(x, state)
        return output, (h, c)


@documented_as(RNN, _THREE_GATES)
class GRU(_GruKind, _Layers):
    """Layers of gated recurrent units: each step mixes the state with a candidate.

    In each step ``h = (1 - z) * n + z * h``, where ``r = sigmoid(W_ir x + b_ir + W_hr h + b_hr)``,
    ``z`` is the same with parameters of its own, and
    ``n = tanh(W_in x + b_in + r * (W_hn h + b_hn))``.

    The other parameters are those of `RNN`.

    Parameters
    ----------
    reset_after : bool
        Whether r multiplies the product with the state, as in PyTorch, or else the state.

    Attributes
    ----------
    weight_ih_l0, weight_hh_l0 : Tensor, shapes (3 * H, I) and (3 * H, H)
        Of layer 0, with the rows of r, z and n; later layers have the shape (3 * H, H), or
        (3 * H, 2 * H) if bidirectional. The names of the second direction end in ``_reverse``.

    Examples
    --------
    >>> import burn
    >>> layer = burn.nn.GRU(4, 8, batch_first=True, device="cpu")
    >>> output, h = layer(burn.ones((2, 5, 4), device="cpu"))
    >>> output.shape, h.shape
    ((2, 5, 8), (1, 2, 8))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        bias: bool = True,
        reset_after: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
    ) -> None:
        self.reset_after = reset_after
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            bias=bias,
            batch_first=batch_first,
            dropout=dropout,
            bidirectional=bidirectional,
            dtype=dtype,
            device=device,
        )

    def forward(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Output and last state for x of shape (T, N, I), or (T, I) without a batch.

        `state` and the last state have the shape (D * L, N, H) for D directions; without one it is
        0. The output has the shape (T, N, D * H).
        """
        output, (h,) = self._run(x, None if state is None else (state,))
        return output, h


class _Cell(_Recurrent):
    """One step of one layer."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
    ) -> None:
        self._set_sizes(input_size, hidden_size)
        self.bias = bias
        self._set_parameters(input_size, "", dtype=dtype, device=device)

    def _step(self, x: Tensor, states: tuple[Tensor, ...] | None) -> tuple[Tensor, ...]:
        """The states after a step."""
        is_batch = self._check_input(x, 2)
        batch = x.shape[:-1]
        if states is None:
            zero = zeros((*batch, self.hidden_size), dtype=number_dtype(x), device=x.device)
            states = (zero,) * len(self._state_names)
        else:
            self._check_states(states, (*batch, self.hidden_size))
        if not is_batch:
            x, states = expand_dims(x), tuple([expand_dims(state) for state in states])
        _, ends = self._run_layer(expand_dims(x), states, "")
        return ends if is_batch else tuple([squeeze(state, axis=0) for state in ends])


class RNNCell(_RnnKind, _Cell):
    """One step of a recurrent layer; see `RNN`.

    Parameters
    ----------
    input_size : int
        Number of features I.
    hidden_size : int
        Number of hidden values H.
    nonlinearity : {"tanh", "relu"}
        What is applied to the sum.
    bias : bool
        Whether there are biases.
    dtype : DType, optional
        Of the parameters.
    device : Device or str, optional
        Where they are.

    Attributes
    ----------
    weight_ih, weight_hh : Tensor, shapes (H, I) and (H, H)
        The weights.
    bias_ih, bias_hh : Tensor, shape (H,), or None
        The biases.

    Examples
    --------
    >>> import burn
    >>> cell = burn.nn.RNNCell(4, 8, device="cpu")
    >>> cell(burn.ones((2, 4), device="cpu")).shape
    (2, 8)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        nonlinearity: Nonlinearity = "tanh",
        *,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
    ) -> None:
        self.nonlinearity = nonlinearity
        super().__init__(input_size, hidden_size, bias=bias, dtype=dtype, device=device)

    def forward(self, x: Tensor, state: Tensor | None = None) -> Tensor:
        """The next state, (N, H), for x of shape (N, I); or of one example, without N."""
        (h,) = self._step(x, None if state is None else (state,))
        return h


@documented_as(RNNCell, _FOUR_GATES)
class LSTMCell(_LstmKind, _Cell):
    """One step of long short-term memory; see `LSTM`.

    The parameters are those of `RNNCell`.

    Examples
    --------
    >>> import burn
    >>> cell = burn.nn.LSTMCell(4, 8, device="cpu")
    >>> h, c = cell(burn.ones((2, 4), device="cpu"))
    >>> h.shape, c.shape
    ((2, 8), (2, 8))
    """

    def forward(
        self, x: Tensor, state: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """The next h and c, (N, H), for x of shape (N, I); or of one example, without N."""
        h, c = self._step(x, state)
        return h, c


@documented_as(RNNCell, _THREE_GATES)
class GRUCell(_GruKind, _Cell):
    """One step of gated recurrent units; see `GRU`.

    The other parameters are those of `RNNCell`.

    Parameters
    ----------
    reset_after : bool
        Whether the reset gate multiplies the product with the state, or else the state.

    Examples
    --------
    >>> import burn
    >>> cell = burn.nn.GRUCell(4, 8, device="cpu")
    >>> cell(burn.ones((2, 4), device="cpu")).shape
    (2, 8)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        bias: bool = True,
        reset_after: bool = True,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
    ) -> None:
        self.reset_after = reset_after
        super().__init__(input_size, hidden_size, bias=bias, dtype=dtype, device=device)

    def forward(self, x: Tensor, state: Tensor | None = None) -> Tensor:
        """The next state, (N, H), for x of shape (N, I); or of one example, without N."""
        (h,) = self._step(x, None if state is None else (state,))
        return h
