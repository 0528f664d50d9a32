"""Reading several tensors at once."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Self

from burn.functions.common import dispatch
from burn.functions.normalize import check_tensor
from burn.tensor._async_reads import awaited, running_loop
from burn.tensor_data import TensorData

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from burn.devices import Device
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

    def execute_async(self) -> Coroutine[Any, Any, list[TensorData]]:
        """The values of all tensors, to be awaited: other tasks run while the devices work.

        Returns
        -------
        coroutine of list of TensorData
            Of the values that the tensors have when this is called, in the order in which they
            were registered; see `Tensor.data_async`.

        Raises
        ------
        ExecutionError
            In the task that awaits it: if work that one of them depends on failed.
        UnsupportedOpError
            In the task that awaits it: if that is no task of asyncio.

        Examples
        --------
        >>> import asyncio, burn
        >>> x, y = burn.ones(2, device="cpu"), burn.zeros(1, device="cpu")
        >>> async def read():
        ...     return await burn.Transaction().register(x).register(y).execute_async()
        >>> [data.tolist() for data in asyncio.run(read())]
        [[1.0, 1.0], [0.0]]
        """
        return _execute([dispatch.wrap(x.primitive, x.tensor_type) for x in self._tensors])


async def _execute(tensors: list[Tensor]) -> list[TensorData]:
    """Read tensors, in the thread of each device."""
    import asyncio  # not imported with burn

    operation = "Transaction.execute_async"
    running_loop(operation)
    indices: dict[Device, list[int]] = {}
    for index, x in enumerate(tensors):
        indices.setdefault(x.device, []).append(index)
    reads = [
        awaited(
            functools.partial(dispatch.read_all, [tensors[index] for index in own]),
            device,
            operation,
        )
        for device, own in indices.items()
    ]
    found = await asyncio.gather(*reads)
    results: dict[int, TensorData] = {}
    for own, data in zip(indices.values(), found, strict=True):
        results.update(zip(own, data, strict=True))
    return [results[index] for index in range(len(tensors))]
