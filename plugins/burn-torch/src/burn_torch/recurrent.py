"""Recurrent layers by torch's own, which are those of cuDNN and oneDNN where these have them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import torch

from burn.plugin_api import check_recurrent_gradients, recurrent_shape
from burn_torch.base import TorchOps
from burn_torch.dtypes import Tensor
from burn_torch.precision import in_float32
from burn_torch.settings import without_autocast

# As Any: torch gives these no types.
_functions: Any = torch._VF
_suits_cudnn: Any = torch.backends.cudnn.is_acceptable


class _Kind(NamedTuple):
    """A kind of layer: torch's function, cuDNN's number of it, and how many gates it has."""

    name: str
    cudnn_mode: int
    gates: int


_LSTM: Final = _Kind("lstm", 2, 4)
_GRU: Final = _Kind("gru", 3, 3)
_RNN: Final = {"relu": _Kind("rnn_relu", 0, 1), "tanh": _Kind("rnn_tanh", 1, 1)}


class RecurrentOps(TorchOps):
    """One layer in one direction. Gradients are torch's, of a layer that is computed again."""

    @in_float32
    def rnn(self, *operands: Any, nonlinearity: str, reverse: bool = False) -> tuple[Tensor, ...]:
        """`torch.rnn_tanh` or `torch.rnn_relu`."""
        if not _suits(operands, _RNN[nonlinearity], 1):
            attributes = {"nonlinearity": nonlinearity, "reverse": reverse}
            return self.decomposed("rnn", *operands, **attributes)
        return self._outputs(_RNN[nonlinearity], operands, reverse=reverse)

    @in_float32
    def rnn_grad(
        self, *operands: Any, nonlinearity: str, reverse: bool = False, needs_x: bool = True
    ) -> tuple[Tensor, ...]:
        """The gradient of `torch.rnn_tanh` or `torch.rnn_relu`."""
        flags = {"reverse": reverse, "needs_x": needs_x}
        if not _suits(operands, _RNN[nonlinearity], 1):
            return self.decomposed("rnn_grad", *operands, nonlinearity=nonlinearity, **flags)
        return self._gradients(_RNN[nonlinearity], operands, **flags)[:-1]

    @in_float32
    def lstm(self, *operands: Any, reverse: bool = False) -> tuple[Tensor, ...]:
        """`torch.lstm`."""
        if not _suits(operands, _LSTM, 2):
            return self.decomposed("lstm", *operands, reverse=reverse)
        return self._outputs(_LSTM, operands, reverse=reverse)

    @in_float32
    def lstm_grad(
        self, *operands: Any, reverse: bool = False, needs_x: bool = True
    ) -> tuple[Tensor, ...]:
        """The gradient of `torch.lstm`."""
        flags = {"reverse": reverse, "needs_x": needs_x}
        if not _suits(operands, _LSTM, 2):
            return self.decomposed("lstm_grad", *operands, **flags)
        return self._gradients(_LSTM, operands, **flags)[:-1]

    @in_float32
    def gru(
        self, *operands: Any, reset_after: bool = True, reverse: bool = False
    ) -> tuple[Tensor, ...]:
        """`torch.gru`, whose reset gate comes after the product."""
        if not _suits(operands, _GRU, 1) or not reset_after:
            return self.decomposed("gru", *operands, reset_after=reset_after, reverse=reverse)
        return self._outputs(_GRU, operands, reverse=reverse)

    @in_float32
    def gru_grad(
        self,
        *operands: Any,
        reset_after: bool = True,
        reverse: bool = False,
        needs_x: bool = True,
    ) -> tuple[Tensor, ...]:
        """The gradient of `torch.gru`."""
        flags = {"reverse": reverse, "needs_x": needs_x}
        if not _suits(operands, _GRU, 1) or not reset_after:
            return self.decomposed("gru_grad", *operands, reset_after=reset_after, **flags)
        return self._gradients(_GRU, operands, **flags)

    def _outputs(
        self, kind: _Kind, operands: Sequence[Any], *, reverse: bool
    ) -> tuple[Tensor, ...]:
        x, *states = operands[:-4]
        with self._exact():
            weights = self._packed(kind, x, _complete(operands[-4:]))
            return _layer(kind, x, states, weights, reverse=reverse, training=False)

    def _gradients(
        self, kind: _Kind, operands: Sequence[Any], *, reverse: bool, needs_x: bool
    ) -> tuple[Tensor, ...]:
        """Gradients by `x`, by the states, and by all weights and biases."""
        count = (len(operands) - 6) // 2  # x, four parameters, g, and each state with its gradient
        x, *states = operands[: 1 + count]
        cotangents = operands[5 + count :]
        with self._exact(), torch.inference_mode(mode=False), torch.enable_grad():
            weights = self._packed(kind, x, _complete(operands[1 + count : 5 + count]))
            inputs = [_leaf(state) for state in (*states, *weights)]
            x = _leaf(x) if needs_x else x.detach()
            states, weights = inputs[:count], inputs[count:]
            outputs = _layer(kind, x, states, weights, reverse=reverse, training=True)
            pairs = [
                (output, g) for output, g in zip(outputs, cotangents, strict=True) if g is not None
            ]
            wanted = [x, *inputs] if needs_x else inputs
            gradients = torch.autograd.grad(
                [output for output, _ in pairs],
                wanted,
                [g for _, g in pairs],
                allow_unused=True,
                materialize_grads=True,
            )
        return gradients if needs_x else (x.new_zeros(()).expand(x.shape), *gradients)

    @contextlib.contextmanager
    def _exact(self) -> Iterator[None]:
        """Context in which no setting of the user makes products less exact."""
        with contextlib.ExitStack() as stack:
            for precision in (self.products, self.recurrences):
                if precision.is_reduced():
                    stack.enter_context(precision.exact())
            if torch._C._is_any_autocast_enabled():
                stack.enter_context(without_autocast(self.torch_device))
            yield

    def _packed(self, kind: _Kind, x: Tensor, parameters: list[Tensor]) -> list[Tensor]:
        """Parameters as cuDNN wants them: side by side in memory, or else it warns at each call."""
        if not (x.is_cuda and _suits_cudnn(x)):
            return parameters
        # The function moves the tensors into the memory it allocates: these, and not their owners'.
        parameters = [parameter.detach().contiguous() for parameter in parameters]
        hidden = parameters[1].shape[1]
        with torch.no_grad():
            torch._cudnn_rnn_flatten_weight(
                parameters,
                4,
                x.shape[2],
                kind.cudnn_mode,
                hidden,
                proj_size=0,
                num_layers=1,
                batch_first=False,
                bidirectional=False,
            )
        return parameters


def _suits(operands: Sequence[Any], kind: _Kind, states: int) -> bool:
    """Whether torch computes a call, or its gradient, and exactly.

    It does if nothing is empty, and some gradient is given.

    Raises an error if the shapes do not fit each other.
    """
    x, *rest = operands
    if kind is _RNN["tanh"] and x.is_cuda and x.dtype is torch.float32:
        return False  # cuDNN's tanh of float32 there is 7e-6 from the exact one, at 1 on an H200
    weight_ih, weight_hh, *biases = rest[states : states + 4]
    names = ("h", "c")[:states]
    shape = recurrent_shape(
        kind.gates, x, weight_ih, weight_hh, biases, **dict(zip(names, rest, strict=False))
    )
    cotangents = rest[states + 4 :]
    if cotangents:
        g, *by_states = cotangents
        named = {f"g_{name}": by_state for name, by_state in zip(names, by_states, strict=True)}
        check_recurrent_gradients(shape, g, **named)
        if all(cotangent is None for cotangent in cotangents):
            return False
    return 0 not in (*shape, x.shape[2])


def _complete(parameters: Sequence[Any]) -> list[Tensor]:
    """Weights and biases, with zeros for a bias that is None."""
    weight_ih, weight_hh, *biases = parameters
    zeros = [weight_ih.new_zeros(weight_ih.shape[0]) if bias is None else bias for bias in biases]
    return [weight_ih, weight_hh, *zeros]


def _leaf(x: Tensor) -> Tensor:
    """A tensor in the same memory, for autograd; a copy of one that autograd refuses."""
    return (x.clone() if x.is_inference() else x.detach()).requires_grad_()


def _layer(
    kind: _Kind,
    x: Tensor,
    states: Sequence[Tensor],
    parameters: list[Tensor],
    *,
    reverse: bool,
    training: bool,
) -> tuple[Tensor, ...]:
    """The outputs of torch's layer."""
    first = [state.contiguous().unsqueeze(0) for state in states]  # cuDNN takes no others
    function = getattr(_functions, kind.name)
    flags = (True, 1, 0.0, training, False, False)  # biases, layers, dropout, ..., batch first
    steps = x.flip(0) if reverse else x
    output, *last = function(steps, first if len(first) > 1 else first[0], parameters, *flags)
    return (output.flip(0) if reverse else output, *[item.squeeze(0) for item in last])
