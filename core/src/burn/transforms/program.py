"""Program: a graph that is called with tensors, on any device."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

from burn.autodiff import is_wrapped, untracked
from burn.devices import VMAP, Device, TensorType, transforms
from burn.devices.transfer import fail
from burn.dispatch import common_device, join_trace, meta_of
from burn.errors import ArgumentError, DeviceMismatchError, DTypeError
from burn.functions.assignment import assign
from burn.functions.common import DeviceLike, dispatch
from burn.functions.views import is_view, rebind, root_of, write
from burn.generator import reserve
from burn.ir import Execution, GraphIr, OperationIr, TensorIr
from burn.quant_scheme import QDType
from burn.transforms._arguments import is_tensor
from burn.transforms._calling import (
    Calling,
    Result,
    calling_of,
    check_same,
    number_of,
    other_containers,
    other_leaf,
    primitive_of,
    value_of,
)
from burn.transforms._constants import check_module, modules_in
from burn.transforms._parts import QuantizedIr, joined, parts_of
from burn.tree import flatten, unflatten

if TYPE_CHECKING:
    from burn.dtype import DType
    from burn.tensor.tensor import Tensor

__all__ = ["Program"]

_MAX_PREPARED: Final = 16
"""Number of op tables for which a program is kept ready to run."""


def _program_of(graph: GraphIr) -> Program:
    return Program(*_parts(graph))


def _parts(graph: GraphIr) -> tuple[Any, ...]:
    """What a graph consists of."""
    return tuple([getattr(graph, field.name) for field in fields(GraphIr)])


@dataclass(frozen=True, eq=False)
class Program(GraphIr):
    """A graph that is called like the function that it was traced from.

    `burn.ir.trace` makes one, and `from_bytes` and `from_text` read one that was saved: that takes
    the tensors of all inputs, those from outside of the function last, and returns a tuple of all
    outputs, those that are rebound last.

    Attributes
    ----------
    calling : Calling
        The arguments and results, and the tensors from outside of the function.
    """

    calling: Calling = None  # type: ignore[assignment]  # __post_init__ sets it
    _prepared: dict[Any, tuple[Execution, list[Any]]] = field(
        default_factory=dict, init=False, repr=False
    )

    def __post_init__(self) -> None:
        if self.calling is None:
            vars(self)["calling"] = calling_of(self)

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<Program of {len(self.operations)} operations>"

    def __reduce__(self) -> Any:
        return Program, (*_parts(self), self.calling)

    @staticmethod
    def from_bytes(data: bytes) -> Program:
        """The program of some bytes, to be called with the tensors of all its inputs.

        Parameters
        ----------
        data : bytes
            What `to_bytes` gives.

        Returns
        -------
        Program
            It takes those from outside of the function that was traced as its last arguments, and
            returns a tuple of all outputs.

        Raises
        ------
        GraphError
            If they are the bytes of no correct program; nothing is executed.

        Examples
        --------
        >>> import burn
        >>> x = burn.asarray([1.0, 2.0], device="cpu")
        >>> program = burn.ir.trace(lambda x: x * 2.0, x)
        >>> (y,) = burn.ir.Program.from_bytes(program.to_bytes())(x)
        >>> y.tolist()
        [2.0, 4.0]
        """
        return _program_of(GraphIr.from_bytes(data))

    @staticmethod
    def from_text(text: str) -> Program:
        """The program of a text, to be called as that of `from_bytes`.

        Parameters
        ----------
        text : str
            What `to_text` gives.

        Returns
        -------
        Program
            The program, which has been checked.

        Raises
        ------
        GraphError
            If it is the text of no correct program; nothing is executed.

        Examples
        --------
        >>> import burn
        >>> x = burn.ones(2, device="cpu")
        >>> text = burn.ir.trace(lambda x: x * 2.0, x).to_text()
        >>> burn.ir.Program.from_text(text)(x)
        (Tensor([2., 2.], device='cpu:0'),)
        """
        return _program_of(GraphIr.from_text(text))

    def __call__(self, *args: Any, device: DeviceLike | None = None) -> Any:
        """Run the program on the device of the tensors.

        Parameters
        ----------
        *args
            What the function takes. Tensors have the shapes and dtypes of the examples; they may be
            tracked, and are differentiated then, if the examples were not.
        device : Device or str, optional
            Where a program without tensors among its inputs runs; by default where it was traced.

        Returns
        -------
        object
            What the function returns.

        Raises
        ------
        ArgumentError
            If an argument is another one than the program was traced with.
        ShapeError, DTypeError
            If a tensor has another shape or dtype.
        DeviceMismatchError
            If tensors are on several devices.
        """
        calling = self.calling
        leaves, structure = flatten(args)
        if structure != calling.structure:
            raise other_containers(calling, args)
        if calling.modules:
            for expected, given in zip(calling.modules, modules_in(structure), strict=True):
                check_module(expected, given)
        inputs, tensors, layered = self._inputs(leaves)
        where = self._device(tensors, device)
        is_layered = any(map(is_wrapped, inputs))
        if is_layered:
            layered = [x.tensor_type.device for x in tensors]
        where = functools.reduce(common_device, layered, where)
        execution, types = self._on(where, is_layered=is_layered)
        outputs = self._run(execution, inputs, where)
        made = [
            dispatch.wrap(primitive, tensor_type)
            for primitive, tensor_type in zip(
                joined(outputs, [kind.dtype for kind in types]), types, strict=True
            )
        ]
        if calling.is_tracked:
            made = self._without_leaves(made, leaves)
        if calling.rebound:
            self._rebind(leaves, made[len(made) - len(calling.rebound) :])
        rest = iter(made)
        results = [
            _result(next(rest), result) if result.__class__ is Result else result
            for result in calling.results
        ]
        return unflatten(calling.result_structure, results)

    def _inputs(self, leaves: Sequence[Any]) -> tuple[list[Any], list[Tensor], list[Device]]:
        """The inputs of the graph, the tensors, and devices with more layers than the examples."""
        calling = self.calling
        inputs: list[Any] = []
        tensors: list[Tensor] = []
        layered: list[Device] = []
        for argument, leaf in zip(calling.arguments, leaves, strict=True):
            if isinstance(argument.input, (TensorIr, QuantizedIr)):
                primitive = primitive_of(argument, leaf)
                inputs += parts_of(leaf.primitive if calling.is_tracked else primitive)
                tensors.append(leaf)
                if len(leaf.tensor_type.device.layers) > argument.layers:
                    layered.append(leaf.tensor_type.device)
            elif argument.input is not None:
                inputs.append(number_of(argument, leaf))
            else:
                check_same(argument, leaf)
        for x, dtype in zip(calling.captured, calling.captured_dtypes, strict=True):
            join_trace(x)
            if x.tensor_type.dtype is not dtype:
                raise DTypeError(
                    f"a tensor from outside of the function is {meta_of(x)}, and was {dtype} when "
                    "the program was traced",
                    hint="Trace the function anew",
                    operation="a program",
                )
            inputs += parts_of(x.primitive if calling.is_tracked else value_of(x))
        for first, second in calling.same:
            if inputs[first] is not inputs[second]:
                raise other_leaf(calling, first, second)
        return inputs, [*tensors, *calling.captured], layered

    def _device(self, tensors: Sequence[Tensor], device: DeviceLike | None) -> Device:
        """The hardware that the program runs on."""
        found: Device | None = None if device is None else Device(device)
        for x in tensors:
            own = x.tensor_type.device
            if found is not None and own.hardware is not found.hardware:
                raise DeviceMismatchError(
                    f"tensors of a program are on {found.hardware} and {own.hardware}",
                    hint="Move them to one device; tensors from outside of the function that was "
                    "traced stay where they are, so pass them as arguments to move them",
                    operation="a program",
                )
            found = own.hardware if found is None else found
        found = found or self.calling.device
        if found is None:
            raise ArgumentError(
                "the program has no tensor among its inputs",
                hint='Name the device: program(device="cpu")',
                operation="a program",
            )
        return found.hardware

    def _on(self, device: Device, *, is_layered: bool) -> tuple[Execution, list[TensorType]]:
        """The graph on the op table of a device, and the types of its outputs there.

        Where no layer tracks or batches an input, the ops of the hardware give the same.
        """
        key = device.ops, is_layered
        found = self._prepared.get(key)
        if found is None:
            self._check_dtypes(device)
            calling = self.calling
            results = [result for result in calling.results if result.__class__ is Result]
            results += [result for _, result in calling.rebound]
            types = []
            dtypes = [output.dtype for output in self.outputs]
            for result in results:
                dtype = dtypes.pop(0)
                if result.scheme is not None:
                    dtype = QDType(result.scheme)
                    del dtypes[: len(result.scheme.part_dtypes) - 1]
                target = device
                if len(result.layers) > len(device.layers):
                    target = device.layered(result.layers, is_checkpointing=result.is_checkpointing)
                types.append(target.tensor_type(dtype))
            if len(self._prepared) >= _MAX_PREPARED:
                self._prepared.clear()
            table = device.ops if is_layered else device.hardware.ops
            try:
                execution = Execution(self, table)
            except Exception as error:  # noqa: BLE001 — of whatever library is underneath
                fail(device, error, "a constant of a program")
            self._prepared[key] = found = execution, types
        return found

    def _check_dtypes(self, device: Device) -> None:
        """Raise unless a device has the dtypes of all tensors."""
        made_by: dict[DType, OperationIr | None] = {}
        for operation in self.operations:
            if isinstance(operation, OperationIr):
                for output in operation.outputs:
                    made_by.setdefault(output.dtype, operation)
        made_by |= dict.fromkeys([constant.tensor.dtype for constant in self.constants])
        for dtype, maker in made_by.items():
            try:
                device.tensor_type(dtype)
            except DTypeError as error:
                error.operation = "a constant of a program" if maker is None else maker.describe()
                raise

    def _run(self, execution: Execution, inputs: Sequence[Any], device: Device) -> Sequence[Any]:
        draw = (0, 0)
        if self.draw is not None:
            if any(transform.kind == VMAP for transform in transforms()):
                raise ArgumentError(
                    "a program that draws random numbers would draw the same for all examples",
                    hint="Call the function itself inside of burn.vmap",
                    operation="a program",
                )
            draw = reserve(device.generator, self.draw.words)
        try:
            return execution.run(inputs, draw)
        except Exception as error:  # noqa: BLE001 — of whatever library is underneath
            failure = error
        return fail(device, failure, execution.describe(failure))

    def _without_leaves(self, made: list[Tensor], leaves: Sequence[Any]) -> list[Tensor]:
        """Outputs of which leaves track those alone that the function returns tracked."""
        for argument, leaf in zip(self.calling.arguments, leaves, strict=True):
            if is_tensor(leaf) and not argument.is_leaf and is_wrapped(leaf.primitive):
                return made
        results = [result for result in self.calling.results if result.__class__ is Result]
        results += [result for _, result in self.calling.rebound]
        return [
            x if result.is_tracked else _untracked(x, result)
            for x, result in zip(made, results, strict=True)
        ]

    def _rebind(self, leaves: Sequence[Any], values: Sequence[Tensor]) -> None:
        """Give the tensors that the function rebinds their new values."""
        calling = self.calling
        given = Counter([id(root_of(leaf)) for leaf in leaves if is_tensor(leaf)])
        outside = {id(root_of(item)) for item in calling.captured}
        targets = []
        for index, result in calling.rebound:
            target = leaves[index] if index >= 0 else calling.captured[-1 - index]
            root = id(root_of(target))
            if (root in outside or given[root] > 1) if index >= 0 else root in given:
                raise ArgumentError(
                    "the program writes to a tensor that shares elements with an argument",
                    hint="Pass a copy: x.astype(x.dtype, copy=True)",
                    operation="a program",
                )
            # A view from outside that shares elements still is computed from its root.
            targets.append((target, result.is_leaf, index < 0 and is_view(target)))
        for (target, is_leaf, is_independent), value in zip(targets, values, strict=True):
            if is_leaf:
                assign(target, value, require_grad=True)
            elif is_independent:
                rebind(target, value)
            else:
                write(target, lambda value=value: value, "a program")  # type: ignore[misc]  # of this round


def _result(x: Tensor, result: Result) -> Tensor:
    """A result, as a leaf if the function makes one of it."""
    return dispatch.require_grad(dispatch.detach(x)) if result.is_leaf else x


def _untracked(x: Tensor, result: Result) -> Tensor:
    """A result that the function returns untracked, on the device where it does."""
    device = x.device.hardware.layered(result.layers, is_checkpointing=result.is_checkpointing)
    return dispatch.wrap(untracked(x.primitive), device.tensor_type(x.dtype))
