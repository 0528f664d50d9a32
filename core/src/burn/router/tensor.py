"""RouterTensor: a tensor that is somewhere else, by its number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn.dtype import DType
from burn.ir import Status, TensorIr

if TYPE_CHECKING:
    from burn.router.channel import TensorOwner

__all__ = ["RouterTensor", "as_input"]


class RouterTensor:
    """The primitive of a router: the client drops the tensor when nothing holds this any more.

    Attributes
    ----------
    id : int
        Number of the tensor at its client.
    shape : tuple of int
        Length of each axis.
    dtype : DType
        Dtype of the elements.
    client : TensorOwner
        What runs the operations on it.
    """

    __slots__ = ("__weakref__", "client", "dtype", "id", "shape")

    id: int
    shape: tuple[int, ...]
    dtype: DType
    client: TensorOwner

    def __init__(self, id: int, shape: tuple[int, ...], dtype: DType, client: TensorOwner) -> None:
        self.id = id
        self.shape = shape
        self.dtype = dtype
        self.client = client

    def __del__(self) -> None:
        self.client.drop(self.id)

    def __repr__(self) -> str:
        return f"RouterTensor({self.id}, {self.ir})"

    @property
    def ir(self) -> TensorIr:
        """What operations name it by."""
        # In half of the time that the class takes.
        return tuple.__new__(TensorIr, (self.id, self.shape, self.dtype, Status.READ_ONLY))


def as_input(operand: Any) -> Any:
    """An operand as an operation has it."""
    if operand.__class__ is RouterTensor:
        return operand.ir
    if operand.__class__ is list:
        return tuple(map(as_input, operand))
    return operand
