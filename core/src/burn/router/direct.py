"""Direct calls: ops of a client that runs them at once in this process, without an OperationIr.

To write an operation down takes longer than a small op. So where nothing else would read it, a call
whose signature is known goes from the table straight to the function that runs the op. Every other
call is registered at the client as an operation: the first of each signature, and again one that
fails, to raise the error that says why.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from burn.ops import Op, Tag
from burn.router.tensor import RouterTensor

if TYPE_CHECKING:
    from burn.dtype import DType
    from burn.router.channel import DirectClient

__all__ = ["MAX_SIGNATURES", "direct"]

MAX_SIGNATURES: Final = 4096
"""Number of signatures of one op that a table keeps; then it starts anew."""

_new = object.__new__


def direct(
    definition: Op, client: DirectClient, register: Callable[..., Any]
) -> Callable[..., Any]:
    """The callable of an op that runs calls of known signatures on primitives.

    Parameters
    ----------
    definition : Op
        The op.
    client : DirectClient
        The client of the table.
    register : callable
        Runs a call of the op as an operation.
    """
    operands = definition.operands.values()
    if (
        not operands
        or definition.returns_tuple
        or Tag.DATA_DEPENDENT in definition.tags
        or any(spec.is_list for spec in operands)
        or any(attribute.role.is_runtime for attribute in definition.attributes.values())
    ):
        return register
    known = _Signatures(definition, client)
    if definition.attributes or len(operands) > 2:
        return _any(client, register, known)
    return (_one if len(operands) == 1 else _two)(client, register, known)


_Known = tuple[tuple[int, ...], "DType", Callable[..., Any]]
"""Shape and dtype of the output of a call, and what runs it."""


class _Signatures(dict[tuple[Any, ...], _Known]):
    """What is known of the calls of an op.

    A signature has the shapes and dtypes of tensors, the classes of numbers, the attributes, and
    the classes of these, since 1 and 1.0 and True are equal.
    """

    def __init__(self, definition: Op, client: DirectClient) -> None:
        super().__init__()
        self._client = client
        self._name = definition.name
        self._promotes = [spec.promotes for spec in definition.operands.values()]

    def learn(
        self, made: RouterTensor, operands: Sequence[Any], attributes: Mapping[str, Any]
    ) -> None:
        """Keep the signature of a call that was registered, and has made a tensor."""
        signature: list[Any] = []
        dtypes = []
        for x, promotes in zip(operands, self._promotes, strict=True):
            if x.__class__ is RouterTensor:
                signature += (x.shape, x.dtype)
                if promotes:
                    dtypes.append(x.dtype)
            else:
                signature.append(x.__class__)
        key = (*signature, *attributes.items(), *map(type, attributes.values()))
        function = self._client.function(self._name, dtypes[0] if dtypes else None)
        if len(self) >= MAX_SIGNATURES:
            self.clear()
        with contextlib.suppress(TypeError):  # of an attribute that is no key, such as a list
            self[key] = made.shape, made.dtype, function


def _one(
    client: DirectClient, register: Callable[..., Any], known: _Signatures
) -> Callable[..., Any]:
    """An op of one operand without attributes."""
    handles, next_id = client.handles, client.next_id

    def call(x: RouterTensor) -> RouterTensor:
        try:
            shape, dtype, function = known[x.shape, x.dtype]
            result = function(handles[x.id])
        except Exception:  # noqa: BLE001 — to register the call raises the error that says why
            result = None
        if result is None:
            made: RouterTensor = register(x)
            known.learn(made, (x,), {})
            return made
        made = _new(RouterTensor)
        made.id = id = next_id()
        handles[id] = result
        made.shape = shape
        made.dtype = dtype
        made.client = client
        return made

    return call


def _two(
    client: DirectClient, register: Callable[..., Any], known: _Signatures
) -> Callable[..., Any]:
    """An op of two operands, without attributes; repeats `_one`, as a call takes a tenth of it."""
    handles, next_id = client.handles, client.next_id

    def call(x1: Any, x2: Any) -> RouterTensor:
        try:
            if x2.__class__ is not RouterTensor:
                shape, dtype, function = known[x1.shape, x1.dtype, x2.__class__]
                result = function(handles[x1.id], x2)
            elif x1.__class__ is not RouterTensor:
                shape, dtype, function = known[x1.__class__, x2.shape, x2.dtype]
                result = function(x1, handles[x2.id])
            else:
                shape, dtype, function = known[x1.shape, x1.dtype, x2.shape, x2.dtype]
                result = function(handles[x1.id], handles[x2.id])
        except Exception:  # noqa: BLE001 — to register the call raises the error that says why
            result = None
        if result is None:
            made: RouterTensor = register(x1, x2)
            known.learn(made, (x1, x2), {})
            return made
        made = _new(RouterTensor)
        made.id = id = next_id()
        handles[id] = result
        made.shape = shape
        made.dtype = dtype
        made.client = client
        return made

    return call


def _any(
    client: DirectClient, register: Callable[..., Any], known: _Signatures
) -> Callable[..., Any]:
    """An op of any operands and attributes."""
    handles, next_id = client.handles, client.next_id

    def call(*operands: Any, **attributes: Any) -> RouterTensor:
        signature: list[Any] = []
        primitives = []
        try:
            for x in operands:
                if x.__class__ is RouterTensor:
                    signature += (x.shape, x.dtype)
                    primitives.append(handles[x.id])
                else:
                    signature.append(x.__class__)
                    primitives.append(x)
            shape, dtype, function = known[
                (*signature, *attributes.items(), *map(type, attributes.values()))
            ]
            result = function(*primitives, **attributes)
        except Exception:  # noqa: BLE001 — to register the call raises the error that says why
            result = None
        if result is None:
            made: RouterTensor = register(*operands, **attributes)
            known.learn(made, operands, attributes)
            return made
        made = _new(RouterTensor)
        made.id = id = next_id()
        handles[id] = result
        made.shape = shape
        made.dtype = dtype
        made.client = client
        return made

    return call
