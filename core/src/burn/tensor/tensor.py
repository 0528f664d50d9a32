"""Tensor: the array that users hold."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from burn.autodiff import DistributedParams
from burn.devices import Device
from burn.dispatch import join_trace
from burn.dtype import DType
from burn.errors import ArgumentError, AutodiffError, BurnError, MissingAttributeError
from burn.functions import (
    assignment,
    elementwise,
    interchange,
    manipulation,
    primitives,
    quantization,
    searching,
    sorting,
    statistical,
    utility,
)
from burn.functions.common import DeviceLike, dispatch
from burn.functions.normalize import as_device, check_tensor
from burn.public_calls import exports, shown_value
from burn.quant_scheme import QuantScheme
from burn.tensor import _numpy_protocol as numpy_protocol
from burn.tensor._conversion import HostConversion
from burn.tensor._differentiable import Differentiable
from burn.tensor._operators import Operators
from burn.tensor_data import QuantizedData, TensorData

__all__ = ["Tensor"]


class Tensor(Operators, HostConversion, Differentiable):
    """An n-dimensional array of one dtype on one device.

    Make one with `burn.asarray`, `burn.zeros` and their like. Operators and methods run on the
    device of the tensor, and their results stay there.

    ``x[i] = v`` and ``x += y`` give this object a new value. Its views (basic indexing, `reshape`,
    `permute_dims`, `transpose`, `moveaxis`, ``.T``, ``.mT``, `squeeze`, `expand_dims`, `flip`,
    `split`, `chunk`, `unstack`, `narrow`, `broadcast_to`) show it, and a write to a view changes
    the tensor that it was made of. No other tensor changes. ``==`` compares elements, and a tensor
    hashes by identity.

    Attributes
    ----------
    primitive : object
        For experts: the object of the library that the device computes with, such as a
        `numpy.ndarray` or a `torch.Tensor`. It is not a copy, so do not write to it. Of a
        tracked tensor it is what autodiff keeps; ``x.detach().primitive`` is the library's object.
        `from_primitive` is the way back.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1.0, 2.0, 3.0], device="cpu")
    >>> (2 * x + 1).tolist()
    [3.0, 5.0, 7.0]
    """

    __slots__ = ()

    @property
    def T(self) -> Tensor:  # noqa: N802 — the standard's name
        """A matrix with its axes exchanged."""
        rank = len(self.primitive.shape)
        if rank != 2:
            raise MissingAttributeError(
                f"T is for matrices, not for shape {self.shape}",
                hint="Use .mT for a stack of matrices, or burn.permute_dims",
            )
        return manipulation.transposed_matrices(self, rank)

    @property
    def mT(self) -> Tensor:  # noqa: N802 — the standard's name
        """A matrix, or a stack of them, with the last two axes exchanged."""
        rank = len(self.primitive.shape)
        if rank < 2:
            raise MissingAttributeError(f"mT is for matrices, not for shape {self.shape}")
        return manipulation.transposed_matrices(self, rank)

    # What array libraries call.

    def __array_ufunc__(
        self, function: np.ufunc, method: str, /, *inputs: Any, **options: Any
    ) -> Any:
        """An operator of a NumPy scalar and a tensor; a function of NumPy's is refused."""
        return numpy_protocol.array_ufunc(self, function, method, inputs, options)

    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        """The namespace ``burn``.

        Raises
        ------
        ArgumentError
            If it does not follow that version of the array API standard.
        """
        return interchange.array_namespace(api_version)

    def __dlpack__(
        self,
        /,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule, from which another library makes an array.

        The memory is shared and marked as read-only, since a tensor's value never changes. The
        protocol before version 1.0 has no such mark: it gets a copy, unless `copy` is False. What
        has negative strides is copied too, as not every library takes them.

        Parameters
        ----------
        stream : int, optional
            Stream on which the consumer works; None in host memory.
        max_version : tuple of int, optional
            Newest version that the consumer understands.
        dl_device : tuple of int, optional
            Type and number of the device where the consumer wants the memory: that of the
            tensor, or the host.
        copy : bool, optional
            True for a copy; False for none.

        Raises
        ------
        ExportError
            If that cannot be, or the tensor is tracked. It is a `BufferError`.
        """
        return interchange.to_dlpack(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Type and number of the device in DLPack's numbering."""
        return interchange.dlpack_device(self.device)

    # Between devices.

    def to_device(self, device: DeviceLike, /, *, stream: Any = None) -> Tensor:
        """The tensor on another device; itself if it is there already.

        Parameters
        ----------
        device : Device or str
            Destination.
        stream : None
            For the standard: burn orders the work by itself.

        Returns
        -------
        Tensor
            In the same memory if both devices compute in it, otherwise a copy. A change of one is
            never seen through the other. The gradient of a tracked tensor returns to the device
            that the tensor came from.

        Raises
        ------
        DTypeError
            If the device does not have the dtype.
        AutodiffError
            If it is tracked, and the device has no autodiff.
        """
        if stream is not None:
            raise ArgumentError(
                f"no stream is taken, got {shown_value(stream)}",
                hint="Leave stream out: burn orders the work by itself",
                operation="to_device",
            )
        return dispatch.to_device(self, as_device(device, "to_device"))

    @classmethod
    def from_primitive(cls, primitive: Any, device: DeviceLike) -> Tensor:
        """A tensor that wraps an object of the backend's library, such as `primitive` of a tensor.

        The memory is shared without a check: a change of the object changes the tensor and every
        view of it.

        Parameters
        ----------
        primitive : object
            An object of the library that the device computes with (a `numpy.ndarray` for
            ``"cpu"``), or what `primitive` is of a tracked tensor.
        device : Device or str
            The device that holds it. With autodiff the tensor is untracked, unless `primitive`
            is of a tracked one.

        Raises
        ------
        OperandTypeError
            If the device does not compute with such objects.
        DeviceMismatchError
            If another device holds it.
        DTypeError
            If the device does not have its dtype.
        AutodiffError
            If it is tracked, and the device has no autodiff.

        Examples
        --------
        >>> import burn, numpy
        >>> x = burn.asarray([1.0, 4.0], device="cpu")
        >>> burn.Tensor.from_primitive(numpy.cbrt(x.primitive), "cpu").device
        Device('cpu:0')
        """
        return primitives.from_primitive(primitive, as_device(device, "from_primitive"))

    @classmethod
    def from_inner(cls, x: Tensor, device: DeviceLike | None = None) -> Tensor:
        """The value of a tensor on an autodiff device of its hardware, untracked.

        Parameters
        ----------
        x : Tensor
            Usually one of the device below, such as a gradient.
        device : Device or str, optional
            The device to return to, with its strategy of gradient checkpointing. By default that
            of the tensor if it has autodiff, else ``x.device.autodiff()``.

        Raises
        ------
        ArgumentError
            If the device has no autodiff.
        DeviceMismatchError
            If the device is other hardware.

        Examples
        --------
        >>> import burn
        >>> device = burn.Device("cpu").autodiff().gradient_checkpointing()
        >>> burn.Tensor.from_inner(burn.ones(2, device="cpu"), device).device
        Device('autodiff<cpu:0, checkpointing>')
        """
        check_tensor(x, "x", "from_inner")
        return dispatch.from_inner(x, None if device is None else as_device(device, "from_inner"))

    def __copy__(self) -> Tensor:
        """An independent tensor, a leaf if this is one, else tracked if this is tracked."""
        if self.is_require_grad:
            return _shared(self.require_grad(), self.distributed_params)
        join_trace(self)
        return dispatch.wrap(self.primitive, self.tensor_type)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        """Like `copy.copy`, of a leaf or an untracked tensor: a graph is not copied."""
        self._check_portable("copy.deepcopy")
        return self.__copy__()

    def __reduce__(self) -> tuple[object, ...]:
        self._check_portable("pickle")
        device = self.device.__reduce__()  # its parts, since another process may lack the device
        # What other pickles hold of the same leaf, such as gradients, finds it by its key.
        key = self.primitive.node.identity() if self.is_require_grad else None
        shared = self.distributed_params
        data = self.data()
        array: Any = data.array
        if isinstance(data, QuantizedData):
            array = tuple([part.array for part in data.parts])
        return _unpickle, (array, self.dtype.name, device, key, shared)

    def _check_portable(self, operation: str) -> None:
        if self.is_tracked and not self.is_require_grad:
            raise AutodiffError(
                "the tensor was computed from a leaf: a copy of it would lose its graph",
                hint="Call .detach() first; a leaf keeps require_grad",
                operation=operation,
            )

    # Functions that are methods too.

    assign = assignment.assign
    dequantize = quantization.dequantize
    quantize = quantization.quantize
    quantize_dynamic = quantization.quantize_dynamic
    astype = manipulation.astype
    reshape = manipulation.reshape
    flatten = manipulation.flatten
    permute_dims = manipulation.permute_dims
    transpose = manipulation.transpose
    broadcast_to = manipulation.broadcast_to
    squeeze = manipulation.squeeze
    sum = statistical.sum
    prod = statistical.prod
    mean = statistical.mean
    max = statistical.max
    min = statistical.min
    any = utility.any
    all = utility.all
    argmax = searching.argmax
    argmin = searching.argmin
    argsort = sorting.argsort
    sort = sorting.sort
    abs = elementwise.abs
    exp = elementwise.exp
    log = elementwise.log
    sqrt = elementwise.sqrt
    square = elementwise.square
    clip = elementwise.clip


exports(vars(Tensor))  # functions that are methods too


class _Refused(Tensor):
    """A tensor unpickled in a process that cannot use its device; any use raises the reason."""

    __slots__ = ("arguments", "error")

    arguments: tuple[Any, ...]
    error: BurnError

    def __getattr__(
        self, name: str
    ) -> NoReturn:  # called for `primitive` and `tensor_type`, which are unset
        error = self.error  # raised anew each time, since callers write into it
        raise type(error)(error.rule, hint=error.hint)

    def __repr__(self) -> str:
        return f"<Tensor of another process: {self.error}>"

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickle, self.arguments


def _unpickle(
    array: Any,
    dtype: str,
    device: tuple[Callable[..., Device], tuple[Any, ...]],
    key: bytes | None,
    shared: DistributedParams | None,
) -> Tensor:
    if isinstance(array, tuple):
        data: TensorData = QuantizedData(array, QuantScheme.parse(dtype))
    else:
        data = TensorData(array.astype(DType.of(dtype).numpy, copy=False))
    make, arguments = device
    try:
        tensor = dispatch.from_data(data, make(*arguments))
    except BurnError as error:
        if not _is_worker():
            raise
        # A pool waits forever for a task that cannot be unpickled.
        refused = object.__new__(_Refused)
        refused.arguments = array, dtype, device, key, shared
        refused.error = error
        return refused
    if key is not None:
        tensor = _shared(tensor.require_grad(), shared)
        tensor.primitive.node.key = key
    return tensor


def _shared(leaf: Tensor, params: DistributedParams | None) -> Tensor:
    """A new leaf that several devices share, as the one that it is a copy of."""
    return leaf if params is None else leaf.set_distributed_params(params.param_id)


def _is_worker() -> bool:
    """Whether `multiprocessing` started this process; then it is imported here."""
    module = sys.modules.get("multiprocessing.process")
    return module is not None and module.parent_process() is not None


dispatch.tensor_class = Tensor
