"""RouterTable: an op table whose calls become operations, which a client runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from burn.dtype import DType
from burn.errors import DeviceMismatchError
from burn.ir import OperationIr, ScalarIr, Status, TensorIr, infer
from burn.ops import Meta, Op, OpTable, Tag, observing
from burn.router.direct import MAX_SIGNATURES, direct, has_signatures
from burn.router.tensor import RouterTensor, as_input

if TYPE_CHECKING:
    from burn.backend import Backend
    from burn.device_id import DeviceId
    from burn.router.channel import RunnerClient

__all__ = ["Inference", "RouterTable"]


class RouterTable(OpTable):
    """The ops of one device of a router: `Op.infer` says at once what comes out of a call.

    Parameters
    ----------
    backend : Backend
        The router.
    device : DeviceId
        The device.
    client : RunnerClient
        What gets the operations.
    """

    def __init__(self, backend: Backend, device: DeviceId, client: RunnerClient) -> None:
        self.backend = observing.observed(self, backend) if self.is_observed else backend
        self.device = device
        self.client = client
        self.dtypes = {dtype: dtype for dtype in DType.members()}

    def _resolve(self, definition: Op) -> Callable[..., Any]:
        register = self._registering(definition)
        client: Any = self.client
        if hasattr(client, "handles") and has_signatures(definition):
            return direct(definition, client, register)
        return register

    def _registering(self, definition: Op) -> Callable[..., Any]:
        """What registers a call of an op as an operation."""
        name = definition.name
        inference = Inference(definition)
        several = definition.returns_tuple
        depends_on_data = Tag.DATA_DEPENDENT in definition.tags
        wait: Any = _known_shapes
        if depends_on_data and observing.is_observing():
            wait = observing.reporting(self, name, wait, "wait")

        def call(*operands: Any, **attributes: Any) -> Any:
            metas = inference(operands, attributes)
            client = self.client
            inputs: list[Any] = []
            for operand in operands:
                if operand.__class__ is RouterTensor:
                    if operand.client is not client:
                        raise _stranger(operand)
                    inputs.append(operand.ir)
                elif operand.__class__ is list:
                    inputs.append(tuple([_input_of(client, each) for each in operand]))
                else:
                    inputs.append(operand)
            outputs = tuple(
                [
                    _tuple(TensorIr, (client.next_id(), shape, dtype, Status.NOT_INIT))
                    for shape, dtype in metas
                ]
            )
            client.register(_tuple(OperationIr, (name, tuple(inputs), attributes, outputs, "")))
            made = [RouterTensor(id, shape, dtype, client) for id, shape, dtype, _ in outputs]
            if depends_on_data and (
                unknown := [router_tensor for router_tensor in made if None in router_tensor.shape]
            ):
                wait(unknown)
            return tuple(made) if several else made[0]

        return call


_tuple: Any = tuple.__new__
"""Makes a NamedTuple in half of the time that its class takes."""


def _input_of(client: Any, x: RouterTensor) -> TensorIr:
    if x.client is not client:
        raise _stranger(x)
    return x.ir


def _known_shapes(tensors: list[RouterTensor]) -> None:
    """Wait for the shapes of tensors of one client that depend on data."""
    client: Any = tensors[0].client
    found = client.shapes([tensor.ir for tensor in tensors])
    for tensor, shape in zip(tensors, found, strict=True):
        tensor.shape = shape


def _stranger(x: RouterTensor) -> DeviceMismatchError:
    return DeviceMismatchError(
        f"{x.ir} belongs to another client than the one of this device",
        hint="Move it with RouterBackend.to_device",
    )


class Inference:
    """The outputs of the calls of one op, kept for each signature.

    The values of numbers among the operands, and of attributes with a runtime role, are no part of
    a signature: no rule of an op depends on them. They are checked at each call.

    Parameters
    ----------
    definition : Op
        The op.
    """

    def __init__(self, definition: Op) -> None:
        self._definition = definition
        self._runtime = frozenset(
            [
                attribute.name
                for attribute in definition.attributes.values()
                if attribute.role.is_runtime
            ]
        )
        self._known: dict[Any, tuple[Meta, ...]] = {}

    def __call__(self, operands: Sequence[Any], attributes: Mapping[str, Any]) -> tuple[Meta, ...]:
        """Shape and dtype of each output of a call.

        Raises
        ------
        BurnError
            If the op does not accept the call.
        """
        key: Any = (
            *[
                (operand.shape, operand.dtype)
                if operand.__class__ is RouterTensor
                else tuple([(each.shape, each.dtype) for each in operand])
                if operand.__class__ is list
                else operand.__class__
                for operand in operands
            ],
            None,
            *[
                (name, value, value.__class__)
                for name, value in attributes.items()
                if name not in self._runtime
            ],
        )
        if self._runtime:
            self._check_runtime(attributes)
        self._definition.check_numbers(operands)
        try:
            found = self._known.get(key)
        except TypeError:  # a value that is no attribute
            return infer(self._definition, map(as_input, operands), attributes)
        if found is None:
            found = infer(self._definition, map(as_input, operands), attributes)
            if len(self._known) >= MAX_SIGNATURES:
                self._known.clear()
            self._known[key] = found
        return found

    def _check_runtime(self, attributes: Mapping[str, Any]) -> None:
        """Check the numbers that are no part of a signature."""
        requires = self._definition.requires
        if requires is not None and not any(
            value.__class__ is ScalarIr for value in attributes.values()
        ):
            requires(**attributes)
