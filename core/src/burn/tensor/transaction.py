"""Reading several tensors at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from burn.functions.common import dispatch
from burn.functions.normalize import check_tensor
from burn.tensor_data import TensorData

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["Transaction"]


class Transaction:
    """Reads tensors together, with one wait per device instead of one per tensor.

    Examples
    --------
    >>> import burn
    >>> x, y = burn.ones(2, device="cpu"), burn.zeros(1, device="cpu")
    >>> [data.array.tolist() for data in burn.Transaction().register(x).register(y).execute()]
    [[1.0, 1.0], [0.0]]
    """

    def __init__(self) -> None:
        self._tensors: list[Tensor] = []

    def register(self, x: Tensor) -> Self:
        """Add a tensor; returns the transaction.

        Parameters
        ----------
        x : Tensor
            Of any device.

        Raises
        ------
        OperandTypeError
            If `x` is no tensor.
        """
        check_tensor(x, "x", "Transaction.register")
        self._tensors.append(x)
        return self

    def execute(self) -> list[TensorData]:
        """The values of all tensors, in the order in which they were registered.

        Raises
        ------
        ExecutionError
            If work that one of them depends on failed.
        """
        return dispatch.read_all(self._tensors)
