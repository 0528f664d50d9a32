"""Subject: the device under test; Call: an op with operands and attributes, made on it."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.aliases import Shape, Slices
from burn.autodiff import Autodiff
from burn.devices import hand_down_generator
from burn.dispatch import to_scalar
from burn.dtype import DType, DTypeUsage, Kind, int32, int64
from burn.ops import REGISTRY, Meta, Op, Operand, OpTable, Tag, resolve
from burn.quant_scheme import QuantScheme
from burn.tensor_data import TensorData
from burn.testing._check import Failure
from burn.testing._compiled import Compiled
from burn.testing._minimal import Minimal
from burn.testing._script import Transcript
from burn.testing.op_samples import Array, OpSamples, Sample, resolve_attributes

if TYPE_CHECKING:
    from burn.aliases import Primitive
    from burn.device_id import DeviceId
    from burn.devices import Device

__all__ = ["Call", "Subject", "map_arrays", "subjects", "widened"]


class Subject:
    """One device of one backend, with the table of its ops.

    Parameters
    ----------
    backend : Backend
        The backend.
    device : DeviceId
        One of its devices.
    minimal : bool
        Whether to hide what the backend has beyond the required ops.
    compiles : bool
        Whether each call of an op is compiled before it runs.
    handle : Device, optional
        The same device as users know it, if they do. What they do with it is tried as well.

    Attributes
    ----------
    backend : Backend
        The backend, or the `Minimal` or `Compiled` over it.
    device : DeviceId
        The device.
    handle : Device or None
        The device as users know it.
    table : OpTable
        Its ops.
    """

    def __init__(
        self,
        backend: Any,
        device: DeviceId,
        *,
        minimal: bool = False,
        compiles: bool = False,
        handle: Device | None = None,
    ) -> None:
        self.backend: Any = Minimal(backend) if minimal else backend
        if compiles:
            self.backend = Compiled(self.backend)
        self.device = device
        self.handle = handle
        hand_down_generator()
        self.table: OpTable = resolve(self.backend, device)
        self._dtypes: dict[Sample, list[DType]] = {}

    @classmethod
    def of(cls, device: Device, *, minimal: bool = False, compiles: bool = False) -> Subject:
        """The subject for a device."""
        hardware = device.hardware
        options: Any = {"minimal": minimal, "compiles": compiles}
        return cls(hardware.backend, hardware.id, handle=hardware, **options)

    def __repr__(self) -> str:
        """The same in every process, as test runners that share out work want it."""
        name, (kind, index) = self.backend.name(self.device), self.device
        return f"Subject({name}:{kind}:{index}{self.options})"

    @property
    def hides(self) -> bool:
        """Whether what the backend has beyond the required ops is hidden."""
        backend = self.backend.wrapped if self.compiles else self.backend
        return isinstance(backend, Minimal)

    @property
    def compiles(self) -> bool:
        """Whether each call of an op is compiled."""
        return isinstance(self.backend, Compiled)

    @property
    def options(self) -> str:
        """The arguments that make such a subject: ``", minimal=True"``."""
        minimal = ", minimal=True" if self.hides else ""
        return minimal + (", compiles=True" if self.compiles else "")

    @property
    def missing(self) -> list[str]:
        """Required ops that the backend does not have."""
        return [
            name
            for name, definition in REGISTRY.items()
            if definition.is_required and self.table.origin(definition) == "unsupported"
        ]

    def transcript(self) -> tuple[Subject, Transcript]:
        """A subject that writes calls into a program instead of making them, and that program."""
        transcript = Transcript(self.backend, self.device, self.handle)
        writing = copy.copy(self)
        writing.backend = transcript
        writing.table = transcript.table("ops")
        return writing, transcript

    @property
    def index_dtype(self) -> DType:
        """Dtype of indices where a sample does not say: int64, or int32 without it."""
        return int64 if self.supports(int64) else int32

    @property
    def is_minimal(self) -> bool:
        """Whether every op beyond the required ones is the default."""
        beyond = [op for op in REGISTRY.values() if not op.is_required]
        return not any(self.table.origin(op) == "native" for op in beyond)

    @functools.cached_property
    def autodiff(self) -> Autodiff:
        """Gradients over the backend."""
        return Autodiff(self.backend)

    @functools.cached_property
    def second_autodiff(self) -> Any:
        """Gradients over `autodiff`."""
        return Autodiff(self.autodiff)

    def supports(self, dtype: DType) -> bool:
        """Whether the device computes with a dtype."""
        return DTypeUsage.GENERAL in self.backend.dtype_usage(self.device, dtype)

    def quiet(self) -> AbstractContextManager[Any]:
        """Context in which the library underneath says nothing about float results."""
        return self.backend.quiet()  # type: ignore[no-any-return]  # of a Backend

    def dtypes(self, samples: OpSamples, one: Sample) -> list[DType]:
        """Dtypes to try a sample with: those that it is meant for and the device has."""
        found = self._dtypes.get(one)
        if found is None:
            found = self._dtypes[one] = [
                dtype
                for dtype in DType.members()
                if dtype.kind in _kinds(one)
                and self.supports(dtype)
                and all(map(self.supports, _other_dtypes(samples, one, dtype, self.index_dtype)))
            ]
        return found

    def upload(self, array: Array, layout: Array | None = None) -> Primitive:
        """A primitive with the values of `array`, and strides like those of `layout`."""
        if not array.shape:
            # As reductions make it: some libraries have an object of their own for it.
            single = self.backend.from_data(TensorData(array.reshape(1)), self.device)
            dtype = DType.of(array.dtype)
            if dtype.is_complex:
                return self.table.sum(single, axis=(0,), dtype=dtype)
            return self.table.max(single, axis=(0,))
        layout = array if layout is None else layout
        if 0 in layout.shape or (layout.flags.c_contiguous and not _is_part(layout)):
            return self.backend.from_data(TensorData(np.array(array, order="C")), self.device)
        strides = layout.strides
        once = tuple(
            slice(0, 1) if stride == 0 and length > 1 else slice(None)
            for stride, length in zip(strides, layout.shape, strict=True)
        )
        if any(part.stop for part in once):
            return self.table.expand(self.upload(array[once], layout[once]), shape=layout.shape)
        order = sorted(range(layout.ndim), key=lambda axis: -abs(strides[axis]))
        if order != list(range(layout.ndim)):
            inner = self.upload(array.transpose(order), layout.transpose(order))
            inverse = tuple(order.index(axis) for axis in range(layout.ndim))
            return self.table.permute(inner, axes=inverse)
        lengths, slices = _slices_of(layout) or _slices_with(_steps(layout), layout.shape)
        indices = [range(start, start + length * step, step) for start, length, step in slices]
        longer = np.full(lengths, array.dtype.type(1))
        longer[np.ix_(*indices)] = array
        whole = self.backend.from_data(TensorData(longer), self.device)
        return self.table.slice(whole, slices=slices)

    def read(self, primitive: Primitive) -> Array:
        """The values of a primitive."""
        data: TensorData = self.backend.to_data(primitive)
        return data.array


def subjects(backend: Any, device: DeviceId, *, handle: Device | None = None) -> list[Subject]:
    """A device with all that its backend has, and with the required ops alone, if that is less."""
    whole = Subject(backend, device, handle=handle)
    if whole.is_minimal:
        return [whole]
    return [whole, Subject(backend, device, minimal=True, handle=handle)]


@dataclass
class Call:
    """One op, its operands on the host in the dtypes of the call, and its attributes.

    Attributes
    ----------
    op : Op
        The op.
    operands : tuple
        Arrays, numbers, or lists of arrays.
    layouts : tuple
        Like `operands`, but with the layouts that the arrays shall have on the device.
    attributes : dict
        Attributes, without placeholders.
    """

    op: Op
    operands: tuple[Any, ...]
    layouts: tuple[Any, ...]
    attributes: dict[str, Any]

    @classmethod
    def of(cls, samples: OpSamples, one: Sample, dtype: DType, index: DType) -> Call:
        """The call that a sample means for a dtype."""

        def convert(spec: Operand, value: Any) -> Any:
            if value is None:
                return None
            if not isinstance(value, np.ndarray):
                return to_scalar(value, dtype)
            if spec.promotes or spec.is_list:
                return value.astype(dtype.numpy)
            return value.astype(index.numpy) if value.dtype == np.int64 else value

        specs = samples.op.operands.values()
        with np.errstate(all="ignore"):
            operands = tuple(
                [convert(spec, part) for part in operand]
                if spec.is_list
                else convert(spec, operand)
                for spec, operand in zip(specs, one.operands, strict=True)
            )
        attributes = resolve_attributes(one.attributes, dtype, index)
        return cls(samples.op, operands, one.operands, attributes)

    @property
    def metas(self) -> list[Any]:
        """The operands as `Op.infer` takes them."""
        return map_arrays(lambda array: Meta(array.shape, DType.of(array.dtype)), self.operands)

    @property
    def widened(self) -> list[Any]:
        """The operands as a reference takes them; numbers are rounded as in a tensor before."""
        arrays = [
            part
            for spec, operand in zip(self.op.operands.values(), self.operands, strict=True)
            for part in (operand if spec.is_list else [operand])
            if spec.promotes and isinstance(part, np.ndarray)
        ]
        return [
            widened(np.asarray(operand, arrays[0].dtype)).item()
            if arrays and type(operand) in (float, complex)
            else operand
            for operand in map_arrays(widened, self.operands)
        ]

    def upload(self, subject: Subject) -> list[Any]:
        """The operands on a device, in the layouts of the sample."""
        result: list[Any] = []
        for operand, layout in zip(self.operands, self.layouts, strict=True):
            if isinstance(operand, list):
                pairs = zip(operand, layout, strict=True)
                result.append([subject.upload(pair, like) for pair, like in pairs])
            elif isinstance(operand, np.ndarray):
                result.append(subject.upload(operand, layout))
            else:
                result.append(operand)
        return result

    def outputs(self, result: Any) -> tuple[Any, ...]:
        """What the op returned, as a tuple also where there is one output.

        Raises
        ------
        Failure
            If it is no tuple of as many tensors as the op has outputs, or is one where the op has
            a single output.
        """
        is_sequence = type(result) in _SEQUENCES
        if not self.op.returns_tuple:
            if is_sequence:
                raise Failure(f"{self.op.name} returned a sequence, not its one output")
            return (result,)
        names = self.op.output_names(self.operands, self.attributes)
        flat = is_sequence and not any(type(item) in _SEQUENCES for item in result)
        if not flat or len(result) != len(names):
            found = f"{len(result)} objects" if flat else "lists" if is_sequence else "one object"
            raise Failure(
                f"{self.op.name} returned {found}: it returns a flat tuple of {len(names)} tensors"
                f" ({', '.join(names)}), also where its outputs are lists"
            )
        return tuple(result)


def map_arrays(function: Callable[[Any], Any], operands: Sequence[Any]) -> list[Any]:
    """Apply a function to all operands that are neither numbers nor None, and within lists."""
    return [
        map_arrays(function, operand)
        if isinstance(operand, list)
        else operand
        if type(operand) in _NO_ARRAYS
        else function(operand)
        for operand in operands
    ]


_SEQUENCES: Final = (tuple, list)
"""By the type itself: a `Meta` is a named tuple, and a primitive may be one."""

_NO_ARRAYS: Final = (bool, int, float, complex, NoneType)
"""By the type itself: a NumPy scalar may be a float, and is a primitive."""


def widened(array: Array) -> Array:
    """The values in complex128, float64, int64, uint64 or bool, whichever is of their kind."""
    kind = DType.of(array.dtype).kind
    wide = {
        Kind.COMPLEX: np.complex128,
        Kind.FLOAT: np.float64,
        Kind.INT: np.int64,
        Kind.UINT: np.uint64,
        Kind.BOOL: np.bool_,
    }
    return array.astype(wide[kind])


def _kinds(one: Sample) -> Kind:
    return Kind.REAL if one.kinds is None else one.kinds


def _other_dtypes(samples: OpSamples, one: Sample, dtype: DType, index: DType) -> Iterator[DType]:
    """Dtypes that a call needs beside the one that is tried."""
    op = samples.op
    for value in resolve_attributes(one.attributes, dtype, index).values():
        if isinstance(value, DType):
            yield value
        elif isinstance(value, QuantScheme):
            yield value.storage_dtype
            yield value.scale_dtype.storage
    for spec, operand in zip(op.operands.values(), one.operands, strict=True):
        if not spec.promotes and isinstance(operand, np.ndarray) and operand.dtype != np.int64:
            yield DType.of(operand.dtype)
    if Tag.UNTRACKED in op.tags:
        call = Call.of(samples, one, dtype, index)
        for meta in call.outputs(op.infer(*call.metas, **call.attributes)):
            yield meta.dtype


def _is_part(layout: Array) -> bool:
    """Whether an array without gaps is some rows of a larger one."""
    whole = layout.base
    return whole is not None and _slices_of(layout) is not None and whole.size > layout.size


def _slices_of(layout: Array) -> tuple[Shape, Slices] | None:
    """The slices by which an array is a view of a whole one, and the shape of that; else None.

    The axes of both are in one order.
    """
    whole = layout.base
    if not isinstance(whole, np.ndarray) or whole.ndim != layout.ndim:
        return None
    if not whole.flags.c_contiguous or not whole.size:
        return None
    offset = layout.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    slices = []
    for length, stride, total, unit in zip(
        layout.shape, layout.strides, whole.shape, whole.strides, strict=True
    ):
        start, offset = divmod(offset, unit)
        step = stride // unit if length > 1 else 1
        last = start + (length - 1) * step
        if (length > 1 and stride != step * unit) or not (0 <= start < total > last >= 0):
            return None
        slices.append((start, length, step))
    return whole.shape, tuple(slices)


def _slices_with(steps: Sequence[int], shape: Shape) -> tuple[Shape, Slices]:
    """Slices of a shape with these steps, and a shape in which there is room for them."""
    lengths = tuple(abs(step) * length for step, length in zip(steps, shape, strict=True))
    slices = tuple(
        (0 if step > 0 else total - 1, length, step)
        for step, length, total in zip(steps, shape, lengths, strict=True)
    )
    return lengths, slices


def _steps(layout: Array) -> list[int]:
    """Distance of neighbours along each axis, in units of the packed axes after it."""
    steps: list[int] = []
    unit = layout.itemsize
    for length, stride in reversed(list(zip(layout.shape, layout.strides, strict=True))):
        step = math.ceil(abs(stride) / unit) if length > 1 else 1
        steps.insert(0, step if stride >= 0 else -step)
        unit *= step * length
    return steps
