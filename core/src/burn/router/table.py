"""RouterTable: an op table whose calls become operations, which a client runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from burn.dtype import DType
from burn.ir import OperationIr, ScalarIr, Status, TensorIr, with_example_scalars
from burn.ops import Meta, Op, OpTable, Tag
from burn.router.tensor import RouterTensor

if TYPE_CHECKING:
    from burn.backend import Backend
    from burn.device_id import DeviceId
    from burn.router.channel import RunnerClient

__all__ = ["Inference", "RouterTable", "as_input"]

_MAX_SIGNATURES: Final = 4096
"""Number of signatures of one op whose outputs a table keeps; then it starts anew."""


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
        self.backend = backend
        self.device = device
        self.client = client
        self.dtypes = {dtype: dtype for dtype in DType.members()}

    def _resolve(self, definition: Op) -> Callable[..., Any]:
        name = definition.name
        infer = Inference(definition)
        several = len(definition.outputs) > 1
        depends_on_data = Tag.DATA_DEPENDENT in definition.tags

        def call(*operands: Any, **attributes: Any) -> Any:
            metas = infer(operands, attributes)
            client = self.client
            made = [RouterTensor(client.next_id(), *meta, client) for meta in metas]
            outputs = tuple(
                [
                    TensorIr(one.id, *meta, Status.NOT_INIT)
                    for one, meta in zip(made, metas, strict=True)
                ]
            )
            client.register(OperationIr(name, tuple(map(as_input, operands)), attributes, outputs))
            if depends_on_data:
                for one in made:
                    if None in one.shape:
                        one.shape = client.shape(one.ir)
            return tuple(made) if several else made[0]

        return call


def as_input(operand: Any) -> Any:
    """An operand as an operation has it."""
    if operand.__class__ is RouterTensor:
        return operand.ir
    if operand.__class__ is list:
        return tuple(map(as_input, operand))
    return operand


class Inference:
    """The outputs of the calls of one op, kept for each signature.

    The values of numbers among the operands, and of attributes with a runtime role, are no part of
    a signature: no rule of an op depends on them.

    Parameters
    ----------
    definition : Op
        The op.
    """

    def __init__(self, definition: Op) -> None:
        self._definition = definition
        self._runtime = frozenset(
            [one.name for one in definition.attributes.values() if one.role.is_runtime]
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
                (one.shape, one.dtype)
                if one.__class__ is RouterTensor
                else tuple([(each.shape, each.dtype) for each in one])
                if one.__class__ is list
                else one.__class__
                for one in operands
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
        try:
            found = self._known.get(key)
        except TypeError:  # a value that is no attribute
            return self._infer(operands, attributes)
        if found is None:
            found = self._infer(operands, attributes)
            if len(self._known) >= _MAX_SIGNATURES:
                self._known.clear()
            self._known[key] = found
        return found

    def _infer(self, operands: Sequence[Any], attributes: Mapping[str, Any]) -> tuple[Meta, ...]:
        known = with_example_scalars(attributes)
        metas = self._definition.infer(*map(_meta, operands), **known)
        return (metas,) if len(self._definition.outputs) == 1 else tuple(metas)

    def _check_runtime(self, attributes: Mapping[str, Any]) -> None:
        """Check the numbers that are no part of a signature."""
        requires = self._definition.requires
        if requires is not None and not any(
            [value.__class__ is ScalarIr for value in attributes.values()]
        ):
            requires(**attributes)


def _meta(operand: Any) -> Any:
    if operand.__class__ is RouterTensor:
        return Meta(operand.shape, operand.dtype)
    if operand.__class__ is list:
        return [_meta(one) for one in operand]
    return operand
