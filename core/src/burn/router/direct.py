"""Direct calls: ops of a client that runs them at once in this process, without an OperationIr.

To write an operation down takes longer than a small op. So where nothing else would read it, a call
whose signature is known goes from the table straight to the function that runs the op. The first
call of each signature is registered at the client as an operation.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from burn.ir import OperationIr
from burn.ops import Op, Tag
from burn.router.tensor import RouterTensor, as_input

if TYPE_CHECKING:
    from burn.dtype import DType
    from burn.router.channel import DirectClient

__all__ = ["MAX_SIGNATURES", "direct", "has_signatures"]

MAX_SIGNATURES: Final = 4096
"""Number of signatures of one op that a table keeps; then it starts anew."""


def direct(
    definition: Op, client: DirectClient, register: Callable[..., Any]
) -> Callable[..., Any]:
    """The callable of an op that runs calls of known signatures on primitives.

    A signature has the shapes and dtypes of tensors, the classes of numbers, the attributes, and
    the classes of these, since 1 and 1.0 and True are equal.

    Parameters
    ----------
    definition : Op
        The op, which `has_signatures`.
    client : DirectClient
        The client of the table.
    register : callable
        Runs a call of the op as an operation.
    """
    name = definition.name
    promotes = [spec.promotes for spec in definition.operands.values()]
    handles, next_id = client.handles, client.next_id
    known: dict[Any, tuple[tuple[int, ...], DType, Callable[..., Any]]] = {}

    def learn(*operands: Any, **attributes: Any) -> Any:
        """Register a call, and keep its signature."""
        made = register(*operands, **attributes)
        function = client.function(name, _promoted(operands, promotes))
        if len(known) >= MAX_SIGNATURES:
            known.clear()
        with contextlib.suppress(TypeError):  # of an attribute that is no key, such as a list
            known[_signature(operands, attributes)] = made.shape, made.dtype, function
        return made

    def call(*operands: Any, **attributes: Any) -> Any:
        signature: list[Any] = []  # as `_signature`, in line: that is a tenth of a call
        primitives = []
        try:
            for x in operands:
                if x.__class__ is RouterTensor:
                    signature += (x.shape, x.dtype.name)
                    primitives.append(handles[x.id])
                else:
                    signature.append(x.__class__)
                    primitives.append(x)
            if attributes:
                signature += (*attributes.items(), *map(type, attributes.values()))
            shape, dtype, function = known[(*signature,)]
        except (KeyError, TypeError):  # it is new, or has a tensor of another client
            return learn(*operands, **attributes)
        try:
            result = function(*primitives, **attributes)
        except Exception as error:  # noqa: BLE001 — of whatever library is underneath
            failure = error
        else:
            made = RouterTensor(next_id(), shape, dtype, client)
            handles[made.id] = result
            return made
        inputs = tuple(map(as_input, operands))
        return client.explain(failure, OperationIr(name, inputs, attributes, (), ""))

    return call


def has_signatures(definition: Op) -> bool:
    """Whether the shape of the one output of a call follows from its signature."""
    specs = definition.operands.values()
    return not (
        not specs
        or definition.returns_tuple
        or Tag.DATA_DEPENDENT in definition.tags
        or any(spec.is_list for spec in specs)
        or any(attribute.role.is_runtime for attribute in definition.attributes.values())
    )


def _signature(operands: Sequence[Any], attributes: Mapping[str, Any]) -> tuple[Any, ...]:
    signature: list[Any] = []
    for x in operands:
        signature += (x.shape, x.dtype.name) if x.__class__ is RouterTensor else (x.__class__,)
    if attributes:
        signature += (*attributes.items(), *map(type, attributes.values()))
    return tuple(signature)


def _promoted(operands: Sequence[Any], promotes: Sequence[bool]) -> DType | None:
    """The dtype of the tensors among operands that promote; None if none does."""
    for x, promoting in zip(operands, promotes, strict=True):
        if promoting and x.__class__ is RouterTensor:
            return x.dtype
    return None
