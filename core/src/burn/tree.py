"""Nested containers of tensors: lists, tuples, named tuples, dicts, None, and registered classes.

Everything else in a container is a leaf. The transforms (`burn.grad`, `burn.vmap`, ...) take and
return such containers.
"""

from __future__ import annotations

import builtins
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from burn.errors import ArgumentError, OperandTypeError
from burn.public_calls import shown_value

__all__ = ["Structure", "flatten", "leaves", "map", "register", "unflatten"]


def __dir__() -> list[str]:
    return __all__


_Container = TypeVar("_Container")

Flatten: TypeAlias = Callable[[Any], tuple[Sequence[Any], Any]]
Unflatten: TypeAlias = Callable[[Any, Sequence[Any]], Any]


class Structure(NamedTuple):
    """The containers of a tree without its leaves; two are equal if the containers agree.

    Attributes
    ----------
    kind : type or None
        Class of the container; None for a leaf.
    metadata : object
        What `unflatten` needs beside the children, such as the keys of a dict.
    children : tuple of Structure
        Of the children in order.
    """

    kind: type | None
    metadata: Any
    children: tuple[Structure, ...]

    @property
    def leaf_count(self) -> int:
        """Number of leaves."""
        return 1 if self.kind is None else sum([child.leaf_count for child in self.children])


_LEAF: Final = Structure(None, None, ())

_registered: Final[dict[type, tuple[Flatten, Unflatten]]] = {
    list: (lambda tree: (tree, None), lambda _, children: list(children)),
    tuple: (lambda tree: (tree, None), lambda _, children: tuple(children)),
    type(None): (lambda _: ((), None), lambda _, __: None),
    dict: (
        lambda tree: (list(tree.values()), tuple(tree)),
        lambda keys, children: dict(zip(keys, children, strict=True)),
    ),
    OrderedDict: (
        lambda tree: (list(tree.values()), tuple(tree)),
        lambda keys, children: OrderedDict(zip(keys, children, strict=True)),
    ),
}


_leaf_kinds: Final[set[type]] = set()
"""Classes of the leaves that were met."""


def register(container: type[_Container], flatten: Flatten, unflatten: Unflatten) -> None:
    """Make the objects of a class containers.

    Parameters
    ----------
    container : type
        The class; its subclasses are registered on their own.
    flatten : callable
        ``flatten(x)`` returns the children of an object, and what else makes it: an object with
        ``==``.
    unflatten : callable
        ``unflatten(metadata, children)`` makes an object of them.

    Returns
    -------
    None
        From now on `burn.grad` and the others look into such objects.

    Raises
    ------
    ArgumentError
        If the class is registered already.

    Examples
    --------
    >>> import burn
    >>> class Line:
    ...     def __init__(self, slope, offset):
    ...         self.slope, self.offset = slope, offset
    >>> burn.tree.register(
    ...     Line,
    ...     lambda line: ((line.slope, line.offset), None),
    ...     lambda _, children: Line(*children),
    ... )
    >>> burn.tree.leaves(Line(1.0, 2.0))
    [1.0, 2.0]
    """
    if container in _registered:
        raise ArgumentError(
            f"{container.__name__} is registered already", operation="tree.register"
        )
    _registered[container] = (flatten, unflatten)
    _leaf_kinds.discard(container)


def _rules_of(kind: type) -> tuple[Flatten, Unflatten] | None:
    """How a container is taken apart and made; None for a leaf."""
    found = _registered.get(kind)
    if found is None and issubclass(kind, tuple) and hasattr(kind, "_fields"):  # a named tuple
        found = _registered[kind] = (
            lambda tree: (tree, None),
            lambda _, children: kind(*children),
        )
    if found is None:
        _leaf_kinds.add(kind)
    return found


def taken_apart(tree: Any) -> tuple[Sequence[Any], Any] | None:
    """The children of a container, and what else makes it, as at `register`; None for a leaf."""
    rules = _rules_of(tree.__class__)
    return None if rules is None else rules[0](tree)


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """The leaves of a tree, and its structure.

    Parameters
    ----------
    tree : object
        Nested containers, or a leaf.

    Returns
    -------
    leaves : list
        In the order of the containers.
    structure : Structure
        For `unflatten`.

    Examples
    --------
    >>> import burn
    >>> leaves, structure = burn.tree.flatten({"a": [1, 2], "b": 3})
    >>> leaves
    [1, 2, 3]
    >>> burn.tree.unflatten(structure, [leaf * 2 for leaf in leaves])
    {'a': [2, 4], 'b': 6}
    """
    found: list[Any] = []
    return found, _flatten_into(tree, found)


def _flatten_into(tree: Any, found: list[Any]) -> Structure:
    rules = _rules_of(tree.__class__)
    if rules is None:
        found.append(tree)
        return _LEAF
    children, metadata = rules[0](tree)
    structures = []
    for child in children:
        if child.__class__ in _leaf_kinds:  # most children, so without a call
            found.append(child)
            structures.append(_LEAF)
        else:
            structures.append(_flatten_into(child, found))
    return Structure(tree.__class__, metadata, tuple(structures))


def leaves(tree: Any) -> list[Any]:
    """The leaves of a tree.

    Parameters
    ----------
    tree : object
        Nested containers, or a leaf.

    Returns
    -------
    list
        In the order of the containers.

    Examples
    --------
    >>> import burn
    >>> burn.tree.leaves([1, (2, None, {"a": 3})])
    [1, 2, 3]
    """
    return flatten(tree)[0]


def unflatten(structure: Structure, leaves: Sequence[Any]) -> Any:
    """The tree of a structure with other leaves.

    Parameters
    ----------
    structure : Structure
        What `flatten` returned.
    leaves : sequence
        As many as the structure has.

    Returns
    -------
    object
        New containers of the same classes.

    Raises
    ------
    ArgumentError
        If the number of leaves differs.

    Examples
    --------
    >>> import burn
    >>> _, structure = burn.tree.flatten((1, [2]))
    >>> burn.tree.unflatten(structure, ["a", "b"])
    ('a', ['b'])
    """
    if len(leaves) != structure.leaf_count:
        raise ArgumentError(
            f"{len(leaves)} leaves for a structure of {structure.leaf_count}",
            operation="tree.unflatten",
        )
    return _unflatten_from(structure, iter(leaves))


def _unflatten_from(structure: Structure, rest: Any) -> Any:
    if structure.kind is None:
        return next(rest)
    children = [
        next(rest) if child is _LEAF else _unflatten_from(child, rest)
        for child in structure.children
    ]
    return _registered[structure.kind][1](structure.metadata, children)


def map(function: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """A tree with the results of a function of each leaf.

    Parameters
    ----------
    function : callable
        Of one leaf of each tree.
    tree : object
        Nested containers, or a leaf.
    *rest : object
        Trees with the containers of the first; at its leaves they may have more.

    Returns
    -------
    object
        Containers as in `tree`.

    Raises
    ------
    OperandTypeError
        If the containers of another tree differ.

    Examples
    --------
    >>> import burn
    >>> burn.tree.map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"a": 10, "b": [20]})
    {'a': 11, 'b': [22]}
    """
    if not callable(function):
        raise OperandTypeError(
            f"takes a function, not {shown_value(function)}",
            hint="Pass a function of one leaf of each tree",
            operation="tree.map",
        )
    first, structure = flatten(tree)
    others = [flatten_like(structure, other, "tree.map") for other in rest]
    return unflatten(structure, [function(*pair) for pair in zip(first, *others, strict=True)])


def flatten_like(structure: Structure, tree: Any, operation: str) -> list[Any]:
    """What a tree has at the leaves of a structure, whose containers it has as well.

    Raises
    ------
    OperandTypeError
        If the containers differ.
    """
    if structure.kind is None:
        return [tree]
    children: Sequence[Any] = ()
    metadata: Any = None
    if tree.__class__ is structure.kind:
        children, metadata = _registered[structure.kind][0](tree)
        if isinstance(tree, dict) and set(tree) == set(structure.metadata):
            children, metadata = [tree[key] for key in structure.metadata], structure.metadata
    if (
        tree.__class__ is not structure.kind
        or metadata != structure.metadata
        or len(children) != len(structure.children)
    ):
        raise OperandTypeError(
            f"{describe(tree)} where {_described(structure)} is expected",
            hint="The containers must agree",
            operation=operation,
        )
    return [
        leaf
        for child, part in zip(structure.children, children, strict=True)
        for leaf in flatten_like(child, part, operation)
    ]


def broadcast(prefix: Any, structure: Structure, operation: str) -> list[Any]:
    """For each leaf of a structure what a prefix of it has there: one leaf stands for all below.

    Raises
    ------
    OperandTypeError
        If the containers of the prefix are not those of the structure.
    """
    if prefix is None or structure.kind is None or _rules_of(prefix.__class__) is None:
        return [prefix] * structure.leaf_count
    one_level = structure._replace(children=tuple([_LEAF] * len(structure.children)))
    parts = flatten_like(one_level, prefix, operation)
    return [
        leaf
        for child, part in zip(structure.children, parts, strict=True)
        for leaf in broadcast(part, child, operation)
    ]


def paths(tree: Any, name: str) -> list[str]:
    """How each leaf is written, starting from a name: ``x['weights'][0]``."""
    rules = _rules_of(tree.__class__)
    if rules is None:
        return [name]
    children, metadata = rules[0](tree)
    keys = metadata if isinstance(tree, dict) else range(len(children))
    return [
        path
        for key, child in zip(keys, children, strict=True)
        for path in paths(child, f"{name}[{key!r}]")
    ]


def describe(tree: Any) -> str:
    """A short description of a tree in an error."""
    return _described(flatten(tree)[1]) if _rules_of(tree.__class__) else type(tree).__name__


def _described(structure: Structure) -> str:
    if structure.kind is None:
        return "a leaf"
    if isinstance(structure.metadata, builtins.tuple):
        keys = ", ".join(builtins.map(repr, structure.metadata))
        return f"a {structure.kind.__name__} of {keys or 'nothing'}"
    return f"a {structure.kind.__name__} of {len(structure.children)}"
