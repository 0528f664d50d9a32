"""Backend: the members that core requires of a backend beside its ops."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, TypeVar, runtime_checkable

from burn.backend.dlpack import HOST, export_host, read_in_place
from burn.backend.tensor_ops import (
    BaseTensorOps,
    BoolTensorOps,
    FloatTensorOps,
    IntTensorOps,
    NumericTensorOps,
    required,
)
from burn.dtype import DType, DTypeUsage
from burn.errors import ExportError, MissingAttributeError, UnsupportedOpError
from burn.generator import seed as seed_generator
from burn.quant_scheme import QuantConfig, QuantScheme

if TYPE_CHECKING:
    from burn.aliases import Primitive, Scalar, Shape, Slices
    from burn.device_id import DeviceId
    from burn.ir import GraphIr
    from burn.kernels.code import Code
    from burn.ops import OpTable
    from burn.tensor_data import TensorData

__all__ = ["AutodiffBackend", "Backend", "is_backend"]

_Input = TypeVar("_Input")
_Output = TypeVar("_Output")


@runtime_checkable
class Backend(
    BaseTensorOps, NumericTensorOps, FloatTensorOps, IntTensorOps, BoolTensorOps, Protocol
):
    """A backend: the required ops of its bases, and the members here.

    Subclass it and implement the members that are marked required: then every op works, with
    gradients. A method named like any other op (``burn.ops.REGISTRY``) replaces the op's default.

    There is one backend object per plugin. Its methods get DeviceIds with its own type ids.
    Primitives are whatever the library underneath computes with: they have ``shape``, which
    ``tuple`` converts to a tuple of int, and ``dtype``, an object that `native_dtype` returns. No
    method changes an operand. The class of a primitive is not bool, int, float or complex.

    The methods of ops take operands by position and attributes by keyword, and repeat the defaults
    of attributes. For a backend without an array library underneath see ``examples/burn-pure``,
    which has only the required ops.

    An op method may have an attribute ``specialize``, a function from a DType to the callable to
    take where all tensor operands that promote have that dtype: a way to leave out checks that
    only some dtypes need.
    """

    @required
    def name(self, device: DeviceId) -> str:
        """Name of the backend, such as ``"cuda"``; that of its `BackendSpec`."""

    @required
    def native_dtype(self, dtype: DType) -> object | None:
        """The object that primitives of a dtype have as their ``dtype``; None if there is none.

        It is hashable, and the identical object each time. Without a library that has dtypes it may
        be `dtype` itself. A backend with complex dtypes needs methods for many ops that have a
        default, as the defaults of most functions hold for real numbers only.
        """

    @required
    def dtype_usage(self, device: DeviceId, dtype: DType) -> DTypeUsage:
        """What a device can do with a dtype. Ask the hardware wherever devices can differ.

        ``DTypeUsage.NONE`` where there is no native dtype; ``DTypeUsage.GENERAL`` where every op
        works.
        """

    @required
    def device_count(self, type_id: int) -> int:
        """Number of devices of a type; 0 where its driver or library is missing, never an error.

        `type_id` is the index of the type in ``BackendSpec.device_types``, or a number that none of
        them has, up to 255: there are 0 devices of such a type.
        """

    @required
    def sync(self, device: DeviceId) -> None:
        """Wait for all work on a device; nothing to do where methods return when they are done.

        Raises
        ------
        ExecutionError
            If work failed after it was queued, with the device's own message.
        """

    def for_device(self, device: DeviceId) -> Any:
        """The object with the op methods of one device, which may hold a stream, queue or pool.

        It has the other members of the backend too.
        """
        del device
        return self

    @functools.cached_property
    def ops(self) -> OpTable:
        """The ops of the device that this object serves; core sets it when it opens the device.

        ``self.ops.decomposed("gelu", x)`` runs the default of an op, for a case that a method
        leaves to it. A backend whose methods use it and that has several devices returns an object
        for each of them from `for_device`.
        """
        raise MissingAttributeError(
            f"{type(self).__name__} has no op table yet", hint="Call resolve(backend, device) first"
        )

    named: Callable[[str, Callable[..., Any]], Callable[..., Any]] | None = None
    """From the name of an op whose indices are checked late, and the function that runs it, to a
    function that runs it under this name.

    None, the default, where an index that is out of range raises at once. An asynchronous device
    keeps the name, so that the error that the next read raises names the op that was called; see
    `CheckedOps.named`.
    """

    def quiet(self) -> contextlib.AbstractContextManager[Any]:
        """Context in which the library underneath neither warns nor raises about float results.

        If it sets context variables, as ``numpy.errstate`` does, core runs each op method in a
        Context copied inside of it, so that no setting of the user's changes what an op returns.
        A library with other settings that do meets them in its methods: no op runs twice.
        """
        return contextlib.nullcontext()

    def is_out_of_memory(self, error: Exception) -> bool:
        """Whether an exception of the library underneath means that memory ran out.

        By default a `MemoryError`. An op may also raise `burn.OutOfMemoryError` itself.
        """
        return isinstance(error, MemoryError)

    def supports_dtype(self, device: DeviceId, dtype: DType) -> bool:
        """Whether a device can store a dtype and compute with it."""
        return DTypeUsage.GENERAL in self.dtype_usage(device, dtype)

    def seed(self, device: DeviceId, seed: int) -> None:
        """Seed the random numbers of a device."""
        seed_generator((self.name(device), device), seed)

    def ad_enabled(self, device: DeviceId) -> bool:
        """Whether tensors can be tracked: only under Autodiff."""
        del device
        return False

    def default_quant_scheme(self, device: DeviceId) -> QuantScheme:
        """How tensors are quantized on a device where the user names no scheme.

        By default 8 bits, an element for each code, and one scale for the tensor, which every shape
        allows. A backend whose kernels are faster for another scheme may name that; the user
        chooses with ``device.configure(quantization=...)``.
        """
        del device
        return QuantConfig().scheme

    def staging(self, data: TensorData, device: DeviceId) -> TensorData:
        """Host data that will be uploaded soon, in memory from which uploading is fast."""
        del device
        return data

    def share(self, data: TensorData, device: DeviceId) -> Primitive | None:
        """A primitive in the memory of host data; None where the device cannot read it there.

        The memory may belong to another library, be read-only, or have any strides. No op may write
        to it, and it must not be reused when the primitive is freed. The primitive keeps
        ``data.array`` alive.
        """
        del data, device
        return None

    def to_device(self, x: Primitive, device: DeviceId) -> Primitive | None:
        """A primitive of one device of this backend on another device of it.

        None, the default, if it has to go through the host. The copy may be asynchronous: it runs
        after the work that `x` depends on, and before the memory of `x` is reused. An error on the
        device of `x` is raised at the latest by the next read of the other device.
        """
        del x, device
        return None

    def device_of(self, x: object) -> DeviceId | None:
        """The device of an object of the library underneath that can be a primitive.

        None for every other object, such as an array of another library, or of a subclass that
        computes differently. An array of a dtype without a `DType` has a device: core then says
        which dtypes there are. By default None for all objects: then users cannot make tensors of
        primitives (`burn.Tensor.from_primitive`), and `burn.from_dlpack` goes by the memory alone.

        Raises
        ------
        BurnError
            If an object is refused for a reason that the user should know.
        """
        del x
        return None

    def as_primitive(self, x: Any) -> Primitive:
        """The primitive in the memory of an object of which `device_of` names the device.

        By default the object itself. `burn.Tensor.from_primitive` calls it, and `burn.from_dlpack`
        for arrays of the backend's ``BackendSpec.libraries``.
        """
        return x

    def dlpack_device(self, device: DeviceId) -> tuple[int, int]:
        """Type and number of the memory of a device in DLPack's numbering; by default host memory.

        A device with memory of its own implements `to_dlpack` and `from_dlpack`, or exports copies
        in host memory.
        """
        del device
        return HOST

    def to_dlpack(
        self,
        x: Primitive,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """DLPack capsule of a primitive, in the memory that `dlpack_device` names.

        Core marks shared memory as read-only, and requests a copy where the version of DLPack has
        no such mark.

        Raises
        ------
        BufferError
            If the primitive cannot be exported like this.
        """
        if stream is not None:
            raise ExportError(f"host memory has no stream {stream!r}", hint="Leave stream out")
        read = functools.partial(self.to_data, x)
        data = read_in_place(read) if copy is False else read()
        return export_host(data, max_version=max_version, copy=copy)

    def from_dlpack(self, x: Any, device: DeviceId) -> Primitive | None:
        """A primitive in the memory of an object with `__dlpack__`, which lies on this device.

        None if the backend cannot. For arrays of other libraries in memory that the host can read,
        core calls `share` instead. An array of the backend's own library, whose shape or gradient
        its user may change, becomes another object in the same memory.
        On a CUDA device the object may have only `__cuda_array_interface__`.
        """
        del x, device
        return None

    def can_write(self, x: Primitive, views: list[Primitive]) -> bool:
        """Whether a write to the memory of `x` changes these views of it and nothing else.

        Then core calls `write_slice` for ``tensor[key] = value``. If it is False, as by default,
        core computes a new primitive with `slice_assign`, which copies all elements. It may be True
        for memory that the backend allocated, to which only `x`, the primitives in `views`, the
        list itself, and one tensor for each of them refer. Any other reference, such as by a value
        saved for a gradient or by an exported array, makes it False. All views must lie in the
        memory of `x`.
        """
        del x, views
        return False

    def write_slice(self, x: Primitive, value: Primitive | Scalar, *, slices: Slices) -> None:
        """`slice_assign` in the memory of `x`, for which `can_write` was True.

        `value` has the dtype of `x` and broadcasts to the slice. If this raises, `x` is unchanged.
        """
        del x, value, slices
        raise UnsupportedOpError(
            f"{type(self).__name__} has can_write and no write_slice", hint="Define both"
        )

    counts_references: tuple[str, ...] = ()
    """What of a primitive all that uses its memory refers to, as the counts of CPython show it.

    Attributes of the primitive, each after a dot; an empty string is the primitive itself. Where
    `can_write` was True, and none of these has got more references since, it is True still:
    `burn.compile`, which asks for all that a call rebinds, counts in generated code then. By
    default it asks `can_write` at each call.
    """

    overwrites_donated: bool = False
    """Whether the methods of steps, such as `adam_step`, take `Donated` lists of primitives.

    They hold parameters and states of an optimizer, whose memory a method may overwrite.
    """

    rounds_each_operation: bool = True
    """Whether compiled programs give the bits of the methods for ``+ - * /``, `sqrt`, comparisons,
    casts and roundings.

    False where the compiler of the library contracts a product and a sum to one fused multiply-add
    or computes a quotient as a product, and cannot be told not to: users learn it from the docs of
    the backend, and the kit leaves out what such programs cannot pass. A program whose
    ``graph.relaxed`` is true may do so in any case.
    """

    def read_all(self, tensors: list[Primitive]) -> list[TensorData]:
        """The values of several tensors of one device; a backend may wait once for all of them."""
        return [self.to_data(tensor) for tensor in tensors]

    dialect: Any = None
    """The language in which core writes kernels for the device; None, the default, for none.

    An object with ``dtypes``, a frozenset of those that kernels may have, and ``source(kernel)``,
    which returns a `Code` for `load_kernel`. It may have ``rows``, ``strided_rows`` and
    ``long_columns``, which say when reductions of single ops are divided: see `Target`.
    """

    def load_kernel(
        self, code: Code, shapes: tuple[Shape, ...]
    ) -> Callable[
        [tuple[Primitive, ...], tuple[float, ...], tuple[Primitive | None, ...]],
        tuple[Primitive, ...],
    ]:
        """Compile a kernel of `dialect`; a backend that has one has both.

        `shapes` are those of the outputs. What is returned launches the kernel:
        ``launch(inputs, scalars, out)`` returns the outputs. An entry of `out` is the primitive
        whose memory an output takes, which is dense and is returned, or None: then the launch
        allocates it. Inputs have any layout; the launch copies those that are not dense, in
        row-major order. If there is an output without elements, nothing is launched for it.
        """
        del code, shapes
        raise UnsupportedOpError(
            f"{type(self).__name__} has a dialect and no load_kernel", hint="Define both"
        )

    def kernel_runner(self, device: DeviceId) -> Any | None:
        """What runs ops without a method of the backend as generated kernels: a `KernelRunner`.

        None, the default, leaves it to core, which runs kernels of `dialect` if there is one.
        """
        del device
        return None

    def compile(
        self, graph: GraphIr, device: DeviceId
    ) -> Callable[..., tuple[Primitive, ...]] | None:
        """A function that runs a whole program, for `burn.compile`; None to leave it to core.

        Without it core runs generated kernels, if the backend has a `dialect`, and else the ops of
        the program one after the other. A backend whose library has a compiler hands the program
        to it: it calls its own ops on the values that the library traces, as `Execution` does.

        `graph` is correct and has been optimized: ops of the table, in an order in which they can
        run. The function is called with a primitive for each tensor among ``graph.inputs`` and a
        number for each `ScalarIr` there, in order, and after them with the seed and the offset of
        the random numbers if ``graph.draw`` is not None. It returns the primitives of
        ``graph.outputs``, in order. ``graph.donated`` are the inputs whose memory the function may
        overwrite, since nothing else refers to it; if the memory becomes that of an output, it
        returns the primitive of the input. It changes no other primitive that it is given, and none
        that it has returned.

        Core calls the function by one thread at a time. It may raise what the ops raise, at once or
        where values are read next. What the function has of these attributes core uses:
        ``explain()`` returns text about what runs, ``kernels`` is a dict of sources by name, and
        ``describe(error)`` says which operation raised an error.
        """
        del graph, device
        return None

    def memory_persistent_allocations(
        self, device: DeviceId, input: _Input, func: Callable[[_Input], _Output]
    ) -> _Output:
        """Run `func` on `input`; memory that it allocates is expected to live long."""
        del device
        return func(input)

    def memory_cleanup(self, device: DeviceId) -> None:
        """Return cached memory that is not in use to the system."""
        del device


@runtime_checkable
class AutodiffBackend(Backend, Protocol):
    """A backend whose float tensors can be tracked: what `burn.autodiff.Autodiff` adds."""

    def require_grad(self, tensor: Primitive, device: DeviceId) -> Primitive:
        """A new leaf with the value of a tensor."""

    def is_require_grad(self, tensor: Primitive) -> bool:
        """Whether a tensor is a leaf."""

    def backward(
        self,
        tensor: Primitive,
        cotangent: Primitive | float | None = None,
        *,
        retain_graph: bool = False,
        inputs: Sequence[Primitive] | None = None,
    ) -> Any:
        """Gradients of a tensor by the leaves it was computed from, or by some inputs alone."""

    def grad(self, tensor: Primitive, gradients: Any) -> Primitive | None:
        """Gradient of a tensor; None if it is untracked, or a leaf that had no influence."""

    def grad_remove(self, tensor: Primitive, gradients: Any) -> Primitive | None:
        """Gradient of a tensor, removed from the gradients."""

    def grad_replace(self, tensor: Primitive, gradients: Any, grad: Primitive) -> None:
        """Replace the gradient of a tensor."""

    def retain_grad(self, tensor: Primitive) -> None:
        """Keep the gradient of a tensor that is no leaf, in later passes."""

    def register_hook(
        self, tensor: Primitive, hook: Callable[[Primitive], Primitive | None]
    ) -> Any:
        """Call a function with the complete gradient of a tensor; the handle can remove it."""

    def inner(self, tensor: Primitive) -> Primitive:
        """The float tensor of the backend below."""

    def int_inner(self, tensor: Primitive) -> Primitive:
        """The integer tensor of the backend below."""

    def bool_inner(self, tensor: Primitive) -> Primitive:
        """The bool tensor of the backend below."""

    def q_inner(self, tensor: Primitive) -> Primitive:
        """The quantized tensor of the backend below; such a tensor is never tracked."""

    def from_inner(self, tensor: Primitive) -> Primitive:
        """A float tensor of the backend below as an untracked one."""

    def int_from_inner(self, tensor: Primitive) -> Primitive:
        """An integer tensor of the backend below."""

    def bool_from_inner(self, tensor: Primitive) -> Primitive:
        """A bool tensor of the backend below."""

    def q_from_inner(self, tensor: Primitive) -> Primitive:
        """A quantized tensor of the backend below: a constant to every gradient."""

    def set_distributed_params(self, tensor: Primitive, param_id: int) -> Primitive:
        """Mark a leaf as a parameter that several devices share."""

    def distributed_params(self, tensor: Primitive) -> Any | None:
        """Identity of a leaf that several devices share, or None."""

    def is_distributed(self, tensor: Primitive) -> bool:
        """Whether a tensor is marked as shared."""


def is_backend(value: object) -> TypeGuard[Backend]:
    """Whether an object has all methods of a `Backend`, be it by its ``__getattr__``.

    Since Python 3.12 `isinstance` does not see what ``__getattr__`` finds.
    """
    names = [name for name in dir(Backend) if not name.startswith("_")]
    return all(hasattr(value, name) for name in names if callable(getattr(Backend, name)))
