"""Compiled: a backend whose every call of an op is a program of one operation, compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from burn.compiler import Executable, compiled
from burn.ir import GraphIr, OperationIr, ScalarIr, Status, TensorIr, infer
from burn.ops import Op, OpTable, Tag, resolve

if TYPE_CHECKING:
    from burn.aliases import Primitive
    from burn.device_id import DeviceId

__all__ = ["Compiled"]

_RUNS: Final = 3
"""Runs of each call: a device may record the second one, and replay it from the third on."""


class Compiled:
    """A backend that compiles each call of an op before it runs it.

    The graph is that of the one operation, which passes decompose and fuse as they do in larger
    programs. So all that the kit says of ops and of their gradients it says of compiled ones.

    Parameters
    ----------
    backend : Backend
        The backend to compile for.

    Examples
    --------
    >>> import burn
    >>> import numpy as np
    >>> from burn.ops import resolve
    >>> device = burn.Device("cpu")
    >>> ops = resolve(Compiled(device.backend), device.id)
    >>> x = device.backend.from_data(burn.TensorData(np.array([1.0, 4.0])), device.id)
    >>> ops.sqrt(x).tolist()
    [1.0, 2.0]
    """

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def __repr__(self) -> str:
        return f"Compiled({self._backend!r})"

    @property
    def wrapped(self) -> Any:
        """The backend that is compiled for."""
        return self._backend

    def for_device(self, device: DeviceId) -> _CompilingTable:
        """The ops of one device, each of which is compiled."""
        return _CompilingTable(resolve(self._backend, device))


class _CompilingTable(OpTable):
    """The ops of one device as programs of one operation."""

    is_observed = False

    def __init__(self, table: OpTable) -> None:
        self.table = table
        self.backend = table.backend
        self.device = table.device
        self.dtypes = table.dtypes

    def _resolve(self, definition: Op) -> Callable[..., Any]:
        if Tag.DATA_DEPENDENT in definition.tags:  # no program has it
            return getattr(self.table, definition.name)  # type: ignore[no-any-return]  # an op
        known: dict[Any, Executable] = {}

        def call(*operands: Any, **attributes: Any) -> Any:
            inputs: list[Any] = []
            inner = [self._input(one, inputs) for one in operands]
            signature, numbers = self._split(definition, attributes)
            key = repr((inner, signature))
            found = known.get(key)
            if found is None:
                found = known[key] = self._compiled(definition, inner, signature, numbers)
            runs = [found.run([*inputs, *numbers.values()]) for _ in range(_RUNS)]
            return runs[-1] if definition.returns_tuple else runs[-1][0]

        return call

    def _input(self, operand: Any, inputs: list[Primitive]) -> Any:
        """An operand as an operation has it; the primitives go to the inputs."""
        if isinstance(operand, list):
            return tuple([self._input(one, inputs) for one in operand])
        if operand is None or operand.__class__ in {bool, int, float, complex}:
            return operand
        inputs.append(operand)
        return TensorIr(len(inputs) - 1, tuple(operand.shape), self.dtype(operand))

    @staticmethod
    def _split(
        definition: Op, attributes: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, int | float]]:
        """The attributes of a program, and those numbers that each run of it is given.

        A 0 is a part of the program: with it some ops take fewer operands, as steps that have no
        momentum take no velocities.
        """
        numbers = {
            name: value
            for name, attribute in definition.attributes.items()
            if attribute.role.is_runtime
            and (value := attributes.get(name)).__class__ in {int, float}
            and value != 0
        }
        scalars = {
            name: ScalarIr(index, type(value))
            for index, (name, value) in enumerate(numbers.items())
        }
        return {**attributes, **scalars}, numbers

    def _compiled(
        self,
        definition: Op,
        operands: Sequence[Any],
        attributes: Mapping[str, Any],
        numbers: Mapping[str, int | float],
    ) -> Executable:
        metas = infer(definition, operands, {**attributes, **numbers})
        tensors = [
            one
            for operand in operands
            for one in (operand if operand.__class__ is tuple else [operand])
            if isinstance(one, TensorIr)
        ]
        outputs = [
            TensorIr(len(tensors) + index, *meta, Status.NOT_INIT)
            for index, meta in enumerate(metas)
        ]
        operation = OperationIr(definition.name, tuple(operands), attributes, tuple(outputs))
        scalars = [one for one in attributes.values() if isinstance(one, ScalarIr)]
        results = tuple([one._replace(status=Status.READ_ONLY) for one in outputs])
        return compiled(GraphIr((*tensors, *scalars), (), (operation,), results), self.table)

    def origin(self, definition: Op) -> str:
        """Where the op comes from on the device that is compiled for."""
        return self.table.origin(definition)
