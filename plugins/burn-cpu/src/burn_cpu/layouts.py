"""Which memory each tensor of a program is in, and how."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn.plugin_api import (
    REGISTRY,
    GraphIr,
    KernelCall,
    OperationIr,
    OpTable,
    Tag,
    TensorIr,
    strided_copy,
    tensors_among,
)

__all__ = ["Layouts"]


class Layouts:
    """Memory and layouts: of each tensor an array like it, which has memory that is never used.

    What a view op does to an array it shows by doing it.

    Parameters
    ----------
    graph : GraphIr
        The program; its inputs and constants have memory of their own.
    table : OpTable
        The ops of the device.
    """

    def __init__(self, graph: GraphIr, table: OpTable) -> None:
        self._table = table
        self._of: dict[int, tuple[int, Any]] = {}
        self._next = 1 << 40
        given = [source for source in graph.inputs if isinstance(source, TensorIr)]
        for tensor in [*given, *[constant.tensor for constant in graph.constants]]:
            self.add(tensor)

    def add(self, tensor: TensorIr) -> None:
        """A tensor with memory of its own, in row-major order."""
        shape: Any = tensor.shape
        like = None if None in shape else np.empty(shape, tensor.dtype.numpy)
        self._of[tensor.id] = tensor.id, like

    def add_over(self, tensor: TensorIr, below: TensorIr) -> None:
        """A tensor that takes the memory of another one."""
        self._of[tensor.id] = self._of[below.id]

    def add_view(self, operation: OperationIr) -> bool:
        """The output of an operation if that is a view."""
        if Tag.VIEW not in REGISTRY[operation.name].tags:
            return False
        (below,) = tensors_among(operation.inputs)
        root, like = self._of[below.id]
        if like is None or not like.size:
            return False
        view = getattr(self._table, operation.name)(like, **operation.attributes)
        if not isinstance(view, np.ndarray) or not np.may_share_memory(view, like):
            return False
        self._of[operation.outputs[0].id] = root, view
        return True

    def root(self, tensor: TensorIr) -> int:
        """The number of the tensor whose memory it is."""
        return self._of[tensor.id][0]

    def like(self, tensor: TensorIr) -> Any:
        """An array of its layout; None if its shape is unknown."""
        return self._of[tensor.id][1]

    def memory(self, root: int) -> Any:
        """An array like the whole memory of a tensor."""
        return self._of[root][1]

    def offset(self, tensor: TensorIr) -> int:
        """Bytes from the begin of its memory to its first element."""
        root, like = self._of[tensor.id]
        whole = self._of[root][1]
        return int(like.__array_interface__["data"][0] - whole.__array_interface__["data"][0])

    def is_dense(self, tensor: TensorIr) -> bool:
        """Whether it is in row-major order."""
        return bool(self.like(tensor).flags.c_contiguous)

    def copy(self, tensor: TensorIr) -> KernelCall:
        """A kernel that copies a view to memory of its own, in row-major order."""
        root, like = self._of[tensor.id]
        shape, dtype = tuple(like.shape), tensor.dtype
        made = TensorIr(self._next, shape, dtype)
        self._next += 1
        self.add(made)
        strides = tuple([stride // like.itemsize for stride in like.strides])
        kernel = strided_copy(shape, self.offset(tensor) // like.itemsize, strides, dtype)
        whole = self._of[root][1]
        return KernelCall(
            kernel, (TensorIr(root, tuple(whole.shape), dtype),), (), (made,), (None,), ()
        )
