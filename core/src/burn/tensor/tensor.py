"""Tensor: the array that users hold."""

from __future__ import annotations

import builtins
import operator
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from burn.autodiff import Gradients
from burn.backend.dlpack import is_readable
from burn.devices.device import Device
from burn.dispatch import DispatchTensor, binary, reflected
from burn.dtype import DType
from burn.errors import (
    ArgumentError,
    AutodiffError,
    BurnError,
    DeviceMismatchError,
    MissingAttributeError,
    OperandTypeError,
    ScalarRangeError,
    ShapeError,
)
from burn.functions import (
    elementwise,
    interchange,
    linear_algebra,
    manipulation,
    searching,
    sorting,
    statistical,
    utility,
)
from burn.functions.common import DeviceLike, dispatch
from burn.functions.printing import format_values
from burn.functions.views import write
from burn.ops.shapes import size
from burn.tensor import arrow, numpy_protocol, subscript
from burn.tensor_data import TensorData

if TYPE_CHECKING:
    from burn.aliases import RealScalar, Shape

__all__ = ["Tensor"]


def _in_place(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The in-place form of an operator."""

    def call(x: Tensor, other: Any, /) -> Tensor:
        write(x, lambda: function(x, other), f"i{function.__name__.strip('_')}")
        return x

    return call


class Tensor(DispatchTensor):
    """An n-dimensional array of one dtype on one device.

    Make one with `burn.asarray`, `burn.zeros` and their like. Operators and methods run where the
    tensor lives; results stay there.

    ``x[i] = v`` and ``x += y`` give this object a new value. Its views (basic indexing, `reshape`,
    `permute_dims`, `transpose`, `moveaxis`, ``.T``, ``.mT``, `squeeze`, `expand_dims`, `flip`,
    `split`, `chunk`, `unstack`, `narrow`, `broadcast_to`) show it, and a write to a view changes
    the tensor that it was made of. No other tensor changes. ``==`` compares elements, and a tensor
    hashes by identity.

    Attributes
    ----------
    primitive : object
        For experts: the object of the library that the device computes with, such as a
        `numpy.ndarray` or a `torch.Tensor`. It is not a copy, so nobody may write to it. Of a
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

    # What it is.

    @property
    def shape(self) -> Shape:
        """Length of each axis."""
        return tuple(self.primitive.shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.primitive.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return size(self.primitive.shape)

    @property
    def dtype(self) -> DType:
        """Dtype of the elements."""
        return self.tensor_type.dtype

    @property
    def device(self) -> Device:
        """Where the tensor lives."""
        return self.tensor_type.device

    @property
    def T(self) -> Tensor:  # noqa: N802 — the standard's name
        """A matrix with its axes exchanged."""
        if self.ndim != 2:
            raise MissingAttributeError(
                f"T is for matrices, not for shape {self.shape}",
                hint="Use .mT for a stack of matrices, or burn.permute_dims",
            )
        return manipulation.matrix_transpose(self)

    @property
    def mT(self) -> Tensor:  # noqa: N802 — the standard's name
        """A matrix, or a stack of them, with the last two axes exchanged."""
        if self.ndim < 2:
            raise MissingAttributeError(f"mT is for matrices, not for shape {self.shape}")
        return manipulation.matrix_transpose(self)

    # Operators. Those of two operands go straight to the op table when the operands agree.

    __add__ = binary(dispatch, "add")
    __sub__ = binary(dispatch, "subtract")
    __mul__ = binary(dispatch, "multiply")
    __truediv__ = binary(dispatch, "divide")
    __floordiv__ = binary(dispatch, "floor_divide")
    __mod__ = binary(dispatch, "remainder")
    __pow__ = binary(dispatch, "pow")
    __and__ = binary(dispatch, "bitwise_and")
    __or__ = binary(dispatch, "bitwise_or")
    __xor__ = binary(dispatch, "bitwise_xor")
    __lshift__ = binary(dispatch, "bitwise_left_shift")
    __rshift__ = binary(dispatch, "bitwise_right_shift")
    __radd__ = reflected(dispatch, "add")
    __rsub__ = reflected(dispatch, "subtract")
    __rmul__ = reflected(dispatch, "multiply")
    __rtruediv__ = reflected(dispatch, "divide")
    __rfloordiv__ = reflected(dispatch, "floor_divide")
    __rmod__ = reflected(dispatch, "remainder")
    __rpow__ = reflected(dispatch, "pow")
    __rand__ = reflected(dispatch, "bitwise_and")
    __ror__ = reflected(dispatch, "bitwise_or")
    __rxor__ = reflected(dispatch, "bitwise_xor")
    __rlshift__ = reflected(dispatch, "bitwise_left_shift")
    __rrshift__ = reflected(dispatch, "bitwise_right_shift")
    __lt__ = binary(dispatch, "less")
    __le__ = binary(dispatch, "less_equal")
    __gt__ = binary(dispatch, "greater")
    __ge__ = binary(dispatch, "greater_equal")
    __neg__ = elementwise.negative
    __pos__ = elementwise.positive
    __abs__ = elementwise.abs
    __invert__ = elementwise.bitwise_invert
    __matmul__ = linear_algebra.matmul

    def __rmatmul__(self, other: Tensor, /) -> Tensor:
        return linear_algebra.matmul(other, self)

    def __eq__(self, other: object, /) -> Any:
        """Elementwise equality; with what is no tensor or number, Python's own."""
        if isinstance(other, (Tensor, builtins.bool, int, float, complex, np.generic)):
            return elementwise.equal(self, other)  # type: ignore[arg-type]  # checked above
        return NotImplemented

    def __ne__(self, other: object, /) -> Any:
        """Elementwise inequality; with what is no tensor or number, Python's own."""
        if isinstance(other, (Tensor, builtins.bool, int, float, complex, np.generic)):
            return elementwise.not_equal(self, other)  # type: ignore[arg-type]  # checked above
        return NotImplemented

    __hash__ = object.__hash__

    # In place: the object, and all that shares its elements, gets the value of `x + y`.

    __iadd__ = _in_place(operator.add)
    __isub__ = _in_place(operator.sub)
    __imul__ = _in_place(operator.mul)
    __itruediv__ = _in_place(operator.truediv)
    __ifloordiv__ = _in_place(operator.floordiv)
    __imod__ = _in_place(operator.mod)
    __ipow__ = _in_place(operator.pow)
    __iand__ = _in_place(operator.and_)
    __ior__ = _in_place(operator.or_)
    __ixor__ = _in_place(operator.xor)
    __ilshift__ = _in_place(operator.lshift)
    __irshift__ = _in_place(operator.rshift)
    __imatmul__ = _in_place(operator.matmul)

    # Indexing.

    def __getitem__(self, key: Any, /) -> Tensor:
        return subscript.getitem(self, key)

    def __setitem__(self, key: Any, value: Any, /) -> None:
        subscript.setitem(self, key, value)

    # As other libraries see it.

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
        copy: builtins.bool | None = None,
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

    # To the host.

    def data(self) -> TensorData:
        """The values on the host; waits for the work that they depend on."""
        return dispatch.to_data(self)

    def numpy(self) -> np.ndarray[Any, Any]:
        """The values as a read-only NumPy array, without a copy where memory is shared.

        Raises
        ------
        AutodiffError
            If the tensor is tracked: what is computed with the array would have no gradient.
        """
        if self.is_tracked:
            raise AutodiffError(
                "numpy() of a tracked tensor would drop its gradient",
                hint="Call .detach() or .inner() first",
            )
        array = self.data().array.view()
        array.flags.writeable = False
        return array

    def __array__(self, dtype: Any = None, copy: builtins.bool | None = None) -> Any:
        """Conversion by NumPy, where the device's memory is the host's."""
        if not is_readable(self.__dlpack_device__()):
            raise OperandTypeError(
                f"NumPy cannot read the memory of {self.device}", hint="Call .numpy() to copy it"
            )
        array = self.numpy()
        if copy is False and dtype is not None and array.dtype != dtype:
            raise ArgumentError("the dtype cannot change without a copy")
        return np.array(array, dtype=dtype, copy=True if copy else None)

    def __arrow_array__(self, type: Any = None) -> Any:
        """For pyarrow: an array of the elements, or of lists of them along the first axis."""
        return arrow.arrow_array(self, type)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """For polars, and whatever else reads Arrow's C stream interface: the same as a stream."""
        return arrow.arrow_stream(self, requested_schema)

    def tolist(self) -> Any:
        """The values as nested lists of Python numbers; a number for a 0-d tensor."""
        return self.data().array.tolist()

    def item(self) -> Any:
        """The value of a tensor with one element, as a Python number.

        Raises
        ------
        ShapeError
            If it has more elements, or none.
        """
        if self.size != 1:
            raise ShapeError(
                f"a tensor of shape {self.shape} is not one number",
                hint="Index it or reduce it to one element; .tolist() gives them all",
            )
        return self.data().array.item()

    def __float__(self) -> float:
        return float(self._real_item("float"))

    def __int__(self) -> int:
        number = self._real_item("int")
        try:
            return int(number)
        except (OverflowError, ValueError):
            raise ScalarRangeError(f"{number} is no integer", operation="int") from None

    def __complex__(self) -> complex:
        return complex(self.item())

    def _real_item(self, operation: str) -> RealScalar:
        number: RealScalar | complex = self.item()
        if isinstance(number, complex):
            raise OperandTypeError(
                f"a {self.dtype} tensor is no real number",
                hint="Take burn.real() or burn.abs() of it",
                operation=operation,
            )
        return number

    def __index__(self) -> int:
        if not self.dtype.is_integer:
            raise OperandTypeError(f"a {self.dtype} tensor is no index")
        return int(self._real_item("index"))

    def __bool__(self) -> builtins.bool:
        return builtins.bool(self.item())

    def __len__(self) -> int:
        if not self.shape:
            raise OperandTypeError("a 0-d tensor has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.shape:
            raise OperandTypeError("a 0-d tensor has no elements to go through")
        return (self[number] for number in range(self.shape[0]))

    def __format__(self, spec: str) -> str:
        """The number of a tensor with one element, formatted: ``f"{loss:.3f}"``."""
        if not spec:
            return str(self)
        if self.size != 1:
            raise ShapeError(
                f"a tensor of shape {self.shape} is not one number, which {spec!r} could format",
                hint="Reduce it to one element; burn.set_print_options says how tensors are shown",
                operation="format",
            )
        try:
            return format(self.item(), spec)
        except ValueError as error:
            raise ArgumentError(f"{self.dtype}, {spec!r}: {error}", operation="format") from None

    def __repr__(self) -> str:
        data = dispatch.to_data(self).array
        values = format_values(data, prefix="Tensor(")
        notes = [f"device={str(self.device)!r}"]
        if self.dtype is not self.device.settings.default_for(self.dtype):
            notes.append(f"dtype={self.dtype}")
        if not self.size:
            notes.append(f"shape={self.shape}")
        if self.is_require_grad:
            notes.append("require_grad")
        elif self.is_tracked:
            notes.append("tracked")
        return f"Tensor({values}, {', '.join(notes)})"

    # Between devices.

    def to_device(self, device: DeviceLike, /, *, stream: Any = None) -> Tensor:
        """The tensor on another device; itself where it is there already.

        Parameters
        ----------
        device : Device or str
            Where to.
        stream : None
            For the standard: burn orders the work by itself.

        Returns
        -------
        Tensor
            In the same memory where both devices compute in it, else in a copy. No change of one
            is ever seen through the other. The gradient of a tracked tensor comes back to where
            the tensor was.

        Raises
        ------
        DTypeError
            If the device does not have the dtype.
        AutodiffError
            If it is tracked, and the device has no autodiff.
        """
        if stream is not None:
            raise ArgumentError(
                f"no stream is taken, got {stream!r}",
                hint="Leave stream out: burn orders the work by itself",
                operation="to_device",
            )
        target = Device(device)
        if target is self.device:
            return self
        if target.hardware is not self.device.hardware:
            return dispatch.to_device(self, target)
        if target.is_autodiff:
            return dispatch.from_inner(self)
        if self.is_tracked:
            raise AutodiffError(
                "leaving the autodiff device would drop the gradient of a tracked tensor",
                hint="Say so with .inner()",
            )
        return dispatch.inner(self)

    # Gradients.

    def require_grad(self) -> Tensor:
        """A new leaf with the value of this tensor: gradients are kept for it.

        Raises
        ------
        AutodiffError
            If the tensor was computed from a leaf.
        OperandTypeError
            If it is not on an autodiff device.
        DTypeError
            If it is not a float tensor.

        Examples
        --------
        >>> import burn
        >>> x = burn.asarray([3.0], device=burn.Device("cpu").autodiff()).require_grad()
        >>> gradients = (x * x).sum().backward()
        >>> x.grad(gradients).tolist()
        [6.0]
        """
        return dispatch.require_grad(self)

    @property
    def is_require_grad(self) -> builtins.bool:
        """Whether it is a leaf that gradients are kept for."""
        return dispatch.is_require_grad(self)

    @property
    def is_tracked(self) -> builtins.bool:
        """Whether it is a leaf, or was computed from one."""
        return dispatch.is_tracked(self)

    def backward(self, cotangent: Tensor | None = None) -> Gradients:
        """Gradients of this tensor by the leaves it was computed from; frees the graph.

        Parameters
        ----------
        cotangent : Tensor, optional
            Gradient of what is really differentiated by this tensor, in its shape. Needed unless
            the tensor has one element.

        Raises
        ------
        AutodiffError
            If it depends on no leaf, or the graph was freed by an earlier backward.
        ShapeError
            If there is no cotangent of the right shape.
        DTypeError
            If the cotangent has another dtype.
        """
        if cotangent is not None:
            _check_tensor(cotangent, "cotangent", "backward")
            if cotangent.device != self.device:
                raise DeviceMismatchError(
                    f"a cotangent on {cotangent.device} for a tensor on {self.device}",
                    hint=f'Move it with .to_device("{self.device.name}")',
                )
        return dispatch.backward(self, cotangent)  # type: ignore[no-any-return]  # Gradients

    # They give None for a leaf that the output ignored. Their type says Any for it, since a check
    # of every gradient of every training loop would find nothing.

    def grad(self, gradients: Gradients) -> Tensor | Any:
        """Gradient of this leaf, on the device below autodiff; None if the output ignored it."""
        return dispatch.grad(self, gradients)

    def grad_remove(self, gradients: Gradients) -> Tensor | Any:
        """Gradient of this leaf, which is taken out of the gradients."""
        return dispatch.grad_remove(self, gradients)

    def grad_replace(self, gradients: Gradients, grad: Tensor) -> None:
        """Put another gradient, of the shape and dtype of this leaf, in place of its own."""
        _check_tensor(grad, "grad", "grad_replace")
        dispatch.grad_replace(self, gradients, grad)

    def inner(self) -> Tensor:
        """The value on the device below autodiff, untracked."""
        return dispatch.inner(self)

    @classmethod
    def from_primitive(cls, primitive: Any, device: DeviceLike) -> Tensor:
        """A tensor of what its backend computes with: `primitive` of a tensor, or one like it.

        The memory is shared, with no questions asked: who changes the object changes the tensor,
        and every view of it.

        Parameters
        ----------
        primitive : object
            An object of the library that the device computes with (a `numpy.ndarray` for
            ``"cpu"``), or what `primitive` is of a tracked tensor.
        device : Device or str
            The device that it lies on. With autodiff the tensor is untracked, unless `primitive`
            is of a tracked one.

        Raises
        ------
        OperandTypeError
            If the device does not compute with such objects.
        DeviceMismatchError
            If it lies on another device.
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
        return interchange.from_primitive(primitive, Device(device))

    @classmethod
    def from_inner(cls, x: Tensor) -> Tensor:
        """A tensor on the autodiff device of its hardware, untracked."""
        _check_tensor(x, "x", "from_inner")
        return dispatch.from_inner(x)

    def detach(self) -> Tensor:
        """The value on the same device, untracked."""
        return dispatch.wrap(dispatch.inner(self).primitive, self.tensor_type)

    def __copy__(self) -> Tensor:
        """An independent tensor, a leaf if this is one, else tracked if this is tracked."""
        if self.is_require_grad:
            return self.require_grad()
        return dispatch.wrap(self.primitive, self.tensor_type)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        """Like `copy.copy`, of a leaf or an untracked tensor: a graph is not copied."""
        self._check_portable("copy.deepcopy")
        return self.__copy__()

    def __reduce__(self) -> tuple[object, ...]:
        self._check_portable("pickle")
        device = self.device.__reduce__()  # not the device, which another process may not have
        return _unpickle, (self.data().array, self.dtype.name, device, self.is_require_grad)

    def _check_portable(self, operation: str) -> None:
        if self.is_tracked and not self.is_require_grad:
            raise AutodiffError(
                "the tensor was computed from a leaf: a copy of it would lose its graph",
                hint="Call .detach() first; a leaf keeps require_grad",
                operation=operation,
            )

    # Functions that are methods too.

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


def _check_tensor(value: object, name: str, operation: str) -> None:
    if not isinstance(value, Tensor):
        raise OperandTypeError(
            f"{name} must be a tensor, not an object of type {type(value).__name__}",
            hint="burn.asarray() makes a tensor of numbers, sequences and arrays",
            operation=operation,
        )


class _Refused(Tensor):
    """A tensor that was sent to a process which cannot use its device; using it says why."""

    __slots__ = ("arguments", "error")

    arguments: tuple[Any, ...]
    error: BurnError

    def __getattr__(self, name: str) -> NoReturn:  # its primitive and its type are not set
        error = self.error  # a new one each time: who raises it may write into it
        raise type(error)(error.rule, hint=error.hint)

    def __repr__(self) -> str:
        return f"<Tensor of another process: {self.error}>"

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickle, self.arguments


def _unpickle(
    array: np.ndarray[Any, Any],
    dtype: str,
    device: tuple[Callable[..., Device], tuple[Any, ...]],
    require_grad: builtins.bool,
) -> Tensor:
    data = TensorData(array.astype(DType.of(dtype).numpy, copy=False))
    make, arguments = device
    try:
        tensor = dispatch.from_data(data, make(*arguments))
    except BurnError as error:
        if not _is_worker():
            raise
        # A pool loses a task that cannot be unpickled, and waits for it forever.
        refused = object.__new__(_Refused)
        refused.arguments = array, dtype, device, require_grad
        refused.error = error
        return refused
    return tensor.require_grad() if require_grad else tensor


def _is_worker() -> builtins.bool:
    """Whether `multiprocessing` started this process; it is imported in those that it starts."""
    module = sys.modules.get("multiprocessing.process")
    return module is not None and module.parent_process() is not None


dispatch.tensor_class = Tensor
