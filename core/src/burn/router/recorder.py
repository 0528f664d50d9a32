"""Recorder: the client of a trace, which writes operations down instead of running them."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from burn.autodiff import recording
from burn.backend import Backend
from burn.dtype import DType, DTypeUsage
from burn.errors import TraceError, UnsupportedOpError
from burn.generator import GeneratorState, Key, after
from burn.ir import Constant, Draw, OperationIr, ScalarIr, Status, TensorIr
from burn.ops import Op, OpTable, Tag
from burn.ops.source import source_line
from burn.router.table import Inference, RouterTable
from burn.router.tensor import RouterTensor, as_input
from burn.tensor_data import TensorData

if TYPE_CHECKING:
    from burn.device_id import DeviceId

__all__ = ["Recorder", "TraceBackend"]

_ALTERNATIVES: Final = (
    "Compute with tensors: burn.where or burn.cond instead of if, burn.while_loop instead of while;"
    " or read values outside of the function, or return the tensor"
)


class Recorder:
    """Writes down the operations of one call of a function.

    Attributes
    ----------
    operations : list of OperationIr
        What was called, in order.
    constants : list of Constant
        Host data that was made tensors.
    draw : Draw or None
        The random numbers that were drawn.
    alive : set of int
        Numbers of the tensors that something holds.
    is_open : bool
        Whether the function is running.
    device : str
        Name of the device that the function uses; empty before it uses one.
    scalars : iterator of int
        Numbers of the numbers that each run gets anew.
    is_differentiated : bool
        Whether what the program does not record for gradients is to be untracked at each run.
    """

    def __init__(
        self, scalars: Iterator[int] | None = None, *, is_differentiated: bool = False
    ) -> None:
        self.operations: list[OperationIr] = []
        self.constants: list[Constant] = []
        self.draw: Draw | None = None
        self.alive: set[int] = set()
        self.is_open = True
        self.drop = self.alive.discard
        self._tensors = itertools.count()
        self.scalars = itertools.count() if scalars is None else scalars
        self.is_differentiated = is_differentiated
        self._thread = threading.get_ident()
        self.device = ""

    def use(self, device: str) -> None:
        """Learn the name of a device that the function uses.

        Raises
        ------
        TraceError
            If it uses another one.
        """
        if not self.device:
            self.device = device
        elif device != self.device:
            raise TraceError(
                f"a program runs on one device, and the function uses {self.device} and {device}",
                hint="Trace what runs on each device for itself, and move tensors between",
            )

    def next_id(self) -> int:
        """A number for a new tensor."""
        number = next(self._tensors)
        self.alive.add(number)
        return number

    def tensor(self, shape: tuple[int, ...], dtype: DType) -> RouterTensor:
        """A new tensor without a value."""
        return RouterTensor(self.next_id(), shape, dtype, self)

    def scalar(self, kind: type[int | float]) -> ScalarIr:
        """A new number that each run gets anew."""
        return ScalarIr(next(self.scalars), kind)

    @contextlib.contextmanager
    def discarding(self) -> Iterator[None]:
        """Context whose operations and constants are forgotten at the end."""
        counts = len(self.operations), len(self.constants)
        try:
            yield
        finally:
            del self.operations[counts[0] :], self.constants[counts[1] :]

    def check_open(self) -> None:
        """Raise unless the function is running.

        Raises
        ------
        TraceError
            If it has returned.
        """
        if not self.is_open:
            raise TraceError(
                "a tensor was kept from a trace that has ended, and has no value",
                hint="Return it from the function that is traced. Where a call that failed has "
                "left it, as in an attribute, assign another one",
            )

    def register(self, operation: OperationIr) -> None:
        """Write down an operation.

        Raises
        ------
        TraceError
            In another thread, or after the function has returned.
        """
        self.check_open()
        if threading.get_ident() != self._thread:
            raise TraceError(
                "another thread uses tensors of a function while it is traced",
                hint="Trace functions before threads share their tensors",
            )
        self.operations.append(operation)

    def register_data(self, tensor: TensorIr, data: TensorData) -> None:
        """Make host data a constant of the program."""
        self.constants.append(Constant(tensor, TensorData(data.array.copy())))

    def reserve(self, generator: Key, words: int) -> GeneratorState:
        """The state of the generator at the next of its numbers, which each run reserves anew."""
        del generator  # of the one device that the program runs on: see `use`
        if self.draw is None:
            self.draw = Draw(self.scalar(int), self.scalar(int), 0)
        state = after(GeneratorState(0, 0), self.draw.words)
        following = after(state, words)
        seed, offset = self.draw.seed, self.draw.offset
        self.draw = self.draw._replace(words=following.offset * 4)
        return GeneratorState(seed, offset + state.offset)  # type: ignore[arg-type]  # scalars stand for the numbers


def value_error(what: str) -> TraceError:
    """The error of a function that is traced and needs a value."""
    where = source_line()
    return TraceError(
        f"{what} has no value while a function is traced{where and f' ({where} needs it)'}",
        hint=_ALTERNATIVES,
    )


class TraceTable(RouterTable):
    """The ops of one device in a trace: nothing runs."""

    is_observed = False
    is_recorded = True

    def _resolve(self, definition: Op) -> Callable[..., Any]:
        name = definition.name
        infer = Inference(definition)
        several = definition.returns_tuple
        native_dtype = self.backend.native_dtype
        if Tag.DATA_DEPENDENT in definition.tags:
            return _refusing(definition)

        def call(*operands: Any, **attributes: Any) -> Any:
            metas = infer(operands, attributes)
            for _, dtype in metas:
                if native_dtype(dtype) is None:
                    raise UnsupportedOpError(
                        f"a result is {dtype}, which the device does not have", operation=name
                    )
            client = _client_of(operands)
            if client is None:
                client = self.backend.recorder(self.device)
            made = [RouterTensor(client.next_id(), *meta, client) for meta in metas]
            outputs = tuple(
                [
                    TensorIr(router_tensor.id, *meta, Status.NOT_INIT)
                    for router_tensor, meta in zip(made, metas, strict=True)
                ]
            )
            client.register(
                OperationIr(
                    name, tuple(map(as_input, operands)), attributes, outputs, source_line()
                )
            )
            if client.is_differentiated and recording.get() is False and name != "detach":
                made = [
                    self.detach(router_tensor) if router_tensor.dtype.is_float else router_tensor
                    for router_tensor in made
                ]
            return tuple(made) if several else made[0]

        return call

    def origin(self, definition: Op) -> str:
        """Where the op comes from on the device that is traced."""
        del definition
        return "native"


def _client_of(operands: Sequence[Any]) -> Any:
    """The one recorder of the tensors among operands; None if there is none.

    Raises
    ------
    TraceError
        If they belong to several traces.
    """
    client = None
    for operand in operands:
        if operand.__class__ is list:
            found = _client_of(operand)
        elif operand.__class__ is RouterTensor:
            found = operand.client
        else:
            continue
        if client is not None and found is not client and found is not None:
            client.check_open()
            found.check_open()
            raise TraceError(
                "tensors of two traces meet",
                hint="Return tensors from the function that is traced, and pass them as arguments",
            )
        client = found or client
    return client


def _refusing(definition: Op) -> Callable[..., Any]:
    def call(*operands: Any, **attributes: Any) -> Any:
        del operands, attributes
        where = source_line()
        raise TraceError(
            f"the shape of {definition.name} depends on values, which a function that is traced "
            f"does not have{where and f' ({where})'}",
            hint="Use a mask (burn.where), which keeps the shape, or call it outside",
        )

    return call


class TraceBackend(Backend):
    """A backend whose ops are written down by the recorder of the running trace.

    Parameters
    ----------
    backend : Backend
        The backend that would run them.
    recorder : callable
        Returns the recorder of the running trace, or None.
    spell : callable
        Returns the name of a device of the backend.
    """

    def __init__(
        self,
        backend: Backend,
        recorder: Callable[[], Recorder | None],
        spell: Callable[[DeviceId], str],
    ) -> None:
        self._backend = backend
        self._recorder = recorder
        self._spell = spell

    def recorder(self, device: DeviceId) -> Recorder:
        """The recorder of the running trace, for a device.

        Raises
        ------
        TraceError
            If none runs, or the function uses another device.
        """
        found = self._recorder()
        if found is None:
            raise TraceError(
                "the device is that of a trace, and no function is traced here",
                hint="Name the device itself",
            )
        found.use(self._spell(device))
        return found

    def name(self, device: DeviceId) -> str:
        """``trace<cpu>`` for the backend ``cpu``."""
        return f"trace<{self._backend.name(device)}>"

    def native_dtype(self, dtype: DType) -> DType | None:
        """The dtype itself, if the device has it."""
        return None if self._backend.native_dtype(dtype) is None else dtype

    def dtype_usage(self, device: DeviceId, dtype: DType) -> DTypeUsage:
        """What the device can do with a dtype."""
        return self._backend.dtype_usage(device, dtype)

    def device_count(self, type_id: int) -> int:
        """Number of devices of a type."""
        return self._backend.device_count(type_id)

    def sync(self, device: DeviceId) -> None:
        """Raise TraceError: nothing runs."""
        del device
        raise TraceError(
            "sync inside of a function that is traced: nothing runs there", hint="Call it outside"
        )

    def memory_cleanup(self, device: DeviceId) -> None:
        """Raise TraceError: nothing runs."""
        self.sync(device)

    def for_device(self, device: DeviceId) -> OpTable:
        """The op table of a device."""
        # Each trace has a client of its own, which the calls find.
        return TraceTable(self, device, cast("Any", None))

    def from_data(self, data: TensorData, device: DeviceId) -> RouterTensor:
        """A constant of the program."""
        recorder = self.recorder(device)
        tensor = recorder.tensor(data.array.shape, data.dtype)
        recorder.register_data(tensor.ir, data)
        return tensor

    def to_data(self, x: RouterTensor) -> TensorData:
        """Raise TraceError: a tensor has no value."""
        recorder: Any = x.client
        recorder.check_open()
        raise value_error(str(x.ir))
