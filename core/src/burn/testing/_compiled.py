"""Compiled: a backend whose every call of an op is a program of one operation, compiled."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from burn.compiler import Executable, compiled
from burn.ir import GraphIr, OperationIr, ScalarIr, Status, TensorIr, infer
from burn.ops import REGISTRY, Op, OpTable, Tag, resolve
from burn.testing._bits import differing_bits
from burn.testing._check import Failure
from burn.testing._first_calls import first_call
from burn.testing.op_samples import SAMPLES

if TYPE_CHECKING:
    from burn.aliases import Primitive
    from burn.device_id import DeviceId

__all__ = ["Compiled", "Way"]

_RUNS: Final = 3
"""Runs of each call: a device may record the second one, and replay it from the third on."""

_KEPT: Final = 8
"""Programs of each op that are kept: the checks of a sample are one after the other."""


class Way(enum.Enum):
    """How a call of an op ran."""

    KERNELS = "generated kernels"
    """As a program with generated kernels."""
    CALLS = "no generated kernel"
    """As a program of calls of ops, or as what else `Backend.compile` made of it."""


class Compiled:
    """A backend that compiles each call of an op before it runs it.

    The graph is that of the one operation, which passes decompose and fuse as they do in larger
    programs. So all that the kit says of ops and of their gradients it says of compiled ones. A
    program that calls the op alone must give its bits, where the op rounds at most once: what a
    library gives of others depends on where in memory its operands and results are.

    Parameters
    ----------
    backend : Backend
        The backend to compile for.

    Attributes
    ----------
    ways : dict of str to set of Way
        How the calls of each op ran.

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
        self.ways: dict[str, set[Way]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def __repr__(self) -> str:
        return f"Compiled({self._backend!r})"

    @property
    def wrapped(self) -> Any:
        """The backend that is compiled for."""
        return self._backend

    def count(self, definition: Op, has_kernels: bool) -> None:
        """Note how a call of an op ran."""
        ways = self.ways.setdefault(definition.name, set())
        ways.add(Way.KERNELS if has_kernels else Way.CALLS)

    def way_of(self, name: str) -> Way | None:
        """How the calls of an op ran, or those of its parts; `Way.CALLS` where some ran so."""
        if name not in REGISTRY or Tag.DATA_DEPENDENT in REGISTRY[name].tags:
            return None
        ways = self.ways.get(name) or set().union(*self.ways.values())
        return next((way for way in reversed(Way) if way in ways), None)

    def for_device(self, device: DeviceId) -> _CompilingTable:
        """The ops of one device, each of which is compiled."""
        return _CompilingTable(resolve(self._backend, device), self)


class _CompilingTable(OpTable):
    """The ops of one device as programs of one operation."""

    is_observed = False

    def __init__(self, table: OpTable, whole: Compiled) -> None:
        self.table = table
        self._whole = whole
        self.backend = table.backend
        self.device = table.device
        self.dtypes = table.dtypes

    def _resolve(self, definition: Op) -> Callable[..., Any]:
        eager = getattr(self.table, definition.name)
        known: dict[Any, Executable] = {}

        def call(*operands: Any, **attributes: Any) -> Any:
            inputs: list[Any] = []
            inner = [self._input(operand, inputs) for operand in operands]
            signature, numbers = self._split(definition, attributes)
            key = repr((inner, signature))
            found = known.get(key)
            given = [*inputs, *numbers.values()]
            runs = []
            if found is None:
                if len(known) == _KEPT:
                    del known[next(iter(known))]
                with first_call():
                    found = known[key] = self._compiled(definition, inner, signature, numbers)
                    runs = [found.run(given)]
            runs += [found.run(given) for _ in range(_RUNS - len(runs))]
            result = runs[-1] if definition.returns_tuple else runs[-1][0]
            self._whole.count(definition, bool(found.kernels))
            operations = found.graph.operations
            calls = [
                operation.name for operation in operations if isinstance(operation, OperationIr)
            ]
            is_exact = definition.name in SAMPLES and SAMPLES[definition.name].exact
            if is_exact and found.is_calls_alone and calls == [definition.name]:
                self._check_bits(definition, result, partial(eager, *operands, **attributes))
            return result

        return eager if Tag.DATA_DEPENDENT in definition.tags else call  # no program has it

    def _check_bits(self, definition: Op, result: Any, eager: Callable[[], Any]) -> None:
        """See that a program has the bits of an eager call of the same kernels."""

        def read(result: Any) -> list[Any]:
            outputs = result if definition.returns_tuple else [result]
            return [self.backend.to_data(output).array for output in outputs]

        found, expected = read(result), read(eager())
        index = differing_bits(found, expected, lambda: read(eager()))
        if index is not None:
            raise Failure(
                f"{definition.name}: output {index} of its program, which calls it alone, is "
                f"{found[index]}, and {expected[index]} without a program"
            )

    def _input(self, operand: Any, inputs: list[Primitive]) -> Any:
        """An operand as an operation has it; the primitives go to the inputs."""
        if isinstance(operand, list):
            return tuple([self._input(part, inputs) for part in operand])
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
            part
            for operand in operands
            for part in (operand if operand.__class__ is tuple else [operand])
            if isinstance(part, TensorIr)
        ]
        outputs = [
            TensorIr(len(tensors) + index, *meta, Status.NOT_INIT)
            for index, meta in enumerate(metas)
        ]
        operation = OperationIr(definition.name, tuple(operands), attributes, tuple(outputs))
        found = [value for value in attributes.values() if isinstance(value, ScalarIr)]
        scalars = sorted(found, key=lambda scalar: scalar.id)  # as the numbers of a run
        results = tuple([output._replace(status=Status.READ_ONLY) for output in outputs])
        return compiled(GraphIr((*tensors, *scalars), (), (operation,), results), self.table)

    def origin(self, definition: Op) -> str:
        """Where the op comes from on the device that is compiled for."""
        return self.table.origin(definition)
