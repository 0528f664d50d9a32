"""The values of a tensor on the host: as NumPy arrays, Python numbers, columns and text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from burn.autodiff import examples_of
from burn.backend.dlpack import is_readable, read_in_place
from burn.dispatch import join_trace, meta_of
from burn.dtype import Kind
from burn.errors import (
    ArgumentError,
    AutodiffError,
    ExportError,
    OperandTypeError,
    ScalarRangeError,
    ShapeError,
)
from burn.functions.interchange import dlpack_device
from burn.functions.printing import format_values
from burn.functions.quantization import dequantize
from burn.tensor import _arrow as arrow
from burn.tensor._async_reads import awaited
from burn.tensor._attributes import TensorAttributes, dispatch
from burn.tensor_data import TensorData

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from burn.aliases import RealScalar

__all__ = ["HostConversion"]


class HostConversion(TensorAttributes):
    """Base of `Tensor` with the conversions to the host; they wait for the device."""

    __slots__ = ()

    def data(self) -> TensorData:
        """The values on the host; waits for the work that they depend on.

        Of a quantized tensor they are codes and scales: a `burn.quantization.QuantizedData`.
        """
        return dispatch.to_data(self)

    def data_async(self) -> Coroutine[Any, Any, TensorData]:
        """The values on the host, to be awaited: other tasks run while the device works.

        A thread of the device waits, for one read after the other. A task that is cancelled leaves
        its read, and what that raises, behind.

        Returns
        -------
        coroutine of TensorData
            Of the value that the tensor has when this is called.

        Raises
        ------
        ExecutionError
            In the task that awaits it: if work that the tensor depends on failed.
        UnsupportedOpError
            In the task that awaits it: if that is no task of asyncio.

        Examples
        --------
        >>> import asyncio, burn
        >>> async def read():
        ...     x, y = burn.ones(2, device="cpu"), burn.zeros(1, device="cpu")
        ...     return await asyncio.gather(x.data_async(), y.data_async())
        >>> [data.tolist() for data in asyncio.run(read())]
        [[1.0, 1.0], [0.0]]
        """
        now = self._now()
        return awaited(now.data, self.device, f"data_async({meta_of(self)})")

    def item_async(self) -> Coroutine[Any, Any, Any]:
        """The value of a tensor with one element, as a Python number, to be awaited.

        Returns
        -------
        coroutine of bool, int, float or complex
            Of the value that the tensor has when this is called; see `data_async`.

        Raises
        ------
        ShapeError
            In the task that awaits it: if it has more elements, or none.

        Examples
        --------
        >>> import asyncio, burn
        >>> async def read():
        ...     return await burn.arange(5, device="cpu").sum().item_async()
        >>> asyncio.run(read())
        10
        """
        now = self._now()
        return awaited(now.item, self.device, f"item_async({meta_of(self)})")

    def _now(self) -> Self:
        """A tensor of the same value, which no write to this one changes."""
        now: Self = dispatch.wrap(self.primitive, self.tensor_type)
        return now

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
        array = self._numbers().view()
        array.flags.writeable = False
        return array

    def tolist(self) -> Any:
        """The values as nested lists of Python numbers; a number for a 0-d tensor."""
        return self._numbers().tolist()

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
                operation="item",
            )
        return self._numbers().item()

    def _numbers(self) -> np.ndarray[Any, Any]:
        """The values on the host; of a quantized tensor the numbers that it stands for."""
        if self.dtype.kind is Kind.QUANTIZED:
            return dispatch.to_data(dequantize(self)).array  # type: ignore[arg-type]  # a Tensor
        return self.data().array

    # What Python's own functions call.

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
            raise OperandTypeError(f"a {self.dtype} tensor is no index", operation="int")
        return int(self._real_item("index"))

    def __bool__(self) -> bool:
        return bool(self.item())

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
        join_trace(self)
        if self.device.is_traced:  # it has no values
            return f"Tensor({meta_of(self)}, device={str(self.device)!r})"
        is_quantized = self.dtype.kind is Kind.QUANTIZED
        numbers: Any = dequantize(self) if is_quantized else self  # type: ignore[arg-type]  # a Tensor
        primitive, sizes = examples_of(numbers.primitive)
        on_hardware = dispatch.wrap(primitive, self.device.hardware.tensor_type(numbers.dtype))
        values = format_values(on_hardware.data().array, prefix="Tensor(")
        notes = [f"device={str(self.device)!r}"]
        if sizes:
            notes.insert(0, f"batch={sizes}")
        if is_quantized or self.dtype is not self.device.settings.default_for(self.dtype):
            notes.append(f"dtype={self.dtype}")
        if not self.size:
            notes.append(f"shape={self.shape}")
        if self.is_require_grad:
            notes.append("require_grad")
        elif self.is_tracked:
            notes.append("tracked")
        return f"Tensor({values}, {', '.join(notes)})"

    # What NumPy and readers of Arrow's columns call.

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Conversion by NumPy, where the device's memory is the host's."""
        if not is_readable(dlpack_device(self.device)):
            raise OperandTypeError(
                f"NumPy cannot read the memory of {self.device}", hint="Call .numpy() to copy it"
            )
        if copy is False and self.dtype.kind is Kind.QUANTIZED:
            raise ArgumentError(
                "the numbers of a quantized tensor are computed, and are in no memory yet",
                hint="Call .numpy()",
            )
        if copy is False:
            try:
                read_in_place(self.data)
            except ExportError as error:
                raise ArgumentError(error.rule, hint="Leave copy=False out") from None
        array = self.numpy()
        if copy is False and dtype is not None and array.dtype != dtype:
            raise ArgumentError("the dtype cannot change without a copy")
        return np.array(array, dtype=dtype, copy=True if copy else None)

    @property
    def __numpy_dtype__(self) -> np.dtype[Any]:
        """The dtype of the elements, for NumPy and what asks it (``jax.numpy.asarray``)."""
        return self.dtype.numpy

    def __arrow_array__(self, type: Any = None) -> Any:
        """For pyarrow: an array of the elements, or of lists of them along the first axis."""
        return arrow.arrow_array(self, type)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """For polars and other readers of Arrow's C stream interface: the same as a stream."""
        return arrow.arrow_stream(self, requested_schema)
