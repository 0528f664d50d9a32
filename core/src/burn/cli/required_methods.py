"""The methods that a backend must implement, as source code: signatures and docstrings.

They are read from the protocols, so `burn new-plugin` writes what this version of core requires.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from burn.backend import tensor_ops

__all__ = ["RequiredMethod", "required_methods"]

_INDENT: Final = " " * 8


@dataclass(frozen=True)
class RequiredMethod:
    """One method of a protocol.

    Attributes
    ----------
    name : str
        Its name, which is that of the op.
    protocol : str
        Name of the protocol that has it.
    topic : str
        The first line of the docstring of that protocol.
    source : str
        Signature and docstring of the method, indented as in a class.
    types : frozenset of str
        The names in its annotations that are not builtins.
    """

    name: str
    protocol: str
    topic: str
    source: str
    types: frozenset[str]

    @property
    def stub(self) -> str:
        """The method, not implemented yet."""
        message = f"{self.name} is not implemented yet"
        return f'    @required\n{self.source}\n{_INDENT}raise UnsupportedOpError("{message}")\n'


def required_methods() -> list[RequiredMethod]:
    """Every method that the protocols of the ops require, in their order."""
    source = inspect.getsource(tensor_ops)
    lines = source.splitlines()
    return [
        RequiredMethod(
            name=method.name,
            protocol=protocol.name,
            topic=(ast.get_docstring(protocol) or "").partition("\n")[0],
            source="\n".join(lines[method.lineno - 1 : method.end_lineno]),
            types=frozenset(_annotated(method)) - vars(builtins).keys(),
        )
        for protocol in ast.parse(source).body
        if isinstance(protocol, ast.ClassDef)
        for method in protocol.body
        if isinstance(method, ast.FunctionDef) and _is_required(method)
    ]


def _is_required(method: ast.FunctionDef) -> bool:
    marks = [node.id for node in method.decorator_list if isinstance(node, ast.Name)]
    return tensor_ops.required.__name__ in marks


def _annotated(method: ast.FunctionDef) -> Iterator[str]:
    arguments = [*method.args.posonlyargs, *method.args.args, *method.args.kwonlyargs]
    for annotation in [method.returns, *(argument.annotation for argument in arguments)]:
        if annotation is not None:
            for node in ast.walk(annotation):
                if isinstance(node, ast.Name):
                    yield node.id
