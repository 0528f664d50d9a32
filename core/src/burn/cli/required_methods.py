"""The methods that a backend has to write, as source code: signatures and docstrings, no bodies.

They are read from the protocols, so that what `burn new-plugin` writes is what this core asks for.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from burn.backend import tensor_ops

__all__ = ["RequiredMethod", "imports", "required_methods"]

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
        What that protocol is about: the first line of its docstring.
    source : str
        Signature and docstring as they stand in the protocol, indented as in a class.
    types : frozenset of str
        The names in its annotations.
    """

    name: str
    protocol: str
    topic: str
    source: str
    types: frozenset[str]

    @property
    def stub(self) -> str:
        """The method as one that is still to be written."""
        message = f"{self.name} is still to be written"
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
            types=frozenset(_annotated(method)),
        )
        for protocol in ast.parse(source).body
        if isinstance(protocol, ast.ClassDef)
        for method in protocol.body
        if isinstance(method, ast.FunctionDef) and _is_required(method)
    ]


def imports(types: frozenset[str]) -> str:
    """The import statements that bring the names of annotations, sorted."""
    found: dict[str, list[str]] = {}
    for node in ast.walk(ast.parse(inspect.getsource(tensor_ops))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("burn."):
            names = sorted({alias.name for alias in node.names} & types)
            if names:
                found[node.module] = names
    return "\n".join(f"from {module} import {', '.join(found[module])}" for module in sorted(found))


def _is_required(method: ast.FunctionDef) -> bool:
    marks = [node.id for node in method.decorator_list if isinstance(node, ast.Name)]
    return tensor_ops.required.__name__ in marks


def _annotated(method: ast.FunctionDef) -> Iterator[str]:
    arguments = [*method.args.posonlyargs, *method.args.args, *method.args.kwonlyargs]
    for annotation in [method.returns, *(one.annotation for one in arguments)]:
        if annotation is not None:
            for node in ast.walk(annotation):
                if isinstance(node, ast.Name):
                    yield node.id
