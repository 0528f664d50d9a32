"""Gradients: what `backward` returns, a mapping from tensors to their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from burn.aliases import Primitive
from burn.autodiff import AutodiffTensor, Gradients as Primitives, Leaf
from burn.dispatch._operands import DispatchTensor, common_device, meta_of
from burn.errors import (
    AutodiffError,
    DTypeError,
    MissingGradientError,
    OperandTypeError,
    ShapeError,
    TraceError,
)

__all__ = ["Gradients", "name_of", "replacement"]

_new = object.__new__

Pairs: TypeAlias = "Sequence[tuple[DispatchTensor, DispatchTensor]]"
"""Leaves with their gradients."""


class Gradients(Mapping[Any, Any]):
    """The gradients that a backward pass computed.

    A mapping from leaves (tensors with `require_grad`) to gradients, which are tensors of the
    device below autodiff, in the order in which the pass completed them. Leaves that the output
    does not depend on are not in it. The gradient of a tensor that was computed from leaves can be
    read if it was kept (`Tensor.retain_grad`, or ``backward(inputs=...)``), but iteration, length,
    `map` and pickling are of leaves alone.

    A leaf and its gradients that are pickled apart belong together again when they are loaded.
    `copy.deepcopy` of both at once keeps them together too.

    Examples
    --------
    >>> import burn
    >>> device = burn.Device("cpu").autodiff()
    >>> x, y, unused = (burn.ones(2, device=device).require_grad() for _ in range(3))
    >>> gradients = (x * y * 3).sum().backward()
    >>> len(gradients), x in gradients, unused in gradients
    (2, True, False)
    >>> gradients[x].tolist()
    [3.0, 3.0]
    >>> sorted({x: "x", y: "y"}[leaf] for leaf in gradients)
    ['x', 'y']
    """

    __slots__ = ("_device", "_level", "_pairs", "_primitives", "_tensor_class")

    def __init__(
        self, primitives: Primitives, tensor_class: type[DispatchTensor], device: Any
    ) -> None:
        self._primitives: Primitives | None = primitives
        self._tensor_class = tensor_class
        self._device = device
        self._level = primitives.level
        self._pairs: Pairs = ()

    @property
    def primitives(self) -> Primitives:
        """The gradients by nodes of the graph, as primitives of the level below autodiff."""
        if self._primitives is None:
            # Not when it is loaded, since the process may lack the device of a leaf.
            primitives = Primitives(self._level)
            for leaf, gradient in self._pairs:
                node = leaf.primitive.node
                primitives.put(node, gradient.primitive)
                if node.key is not None:
                    primitives.by_key[node.key] = node
            self._primitives, self._pairs = primitives, ()
        return self._primitives

    def __len__(self) -> int:
        return len(self._leaves())

    def __iter__(self) -> Iterator[Any]:
        return iter([self._tensor_of(leaf) for leaf in self._leaves()])

    def __contains__(self, x: object) -> bool:
        return self._find(x) is not None

    def __getitem__(self, x: Any) -> Any:
        """The gradient of a tensor.

        Raises
        ------
        MissingGradientError
            If there is none. It is a `KeyError`.
        """
        found = self._find(x)
        if found is None:
            what = meta_of(x) if isinstance(x, DispatchTensor) else type(x).__name__
            raise MissingGradientError(
                f"there is no gradient of this {what}",
                hint="gradients.get(x) gives None where the output does not depend on x; "
                "x.retain_grad() keeps the gradient of a tensor that is no leaf",
            )
        return _wrapped(x, found)

    def get(self, x: Any, default: Any = None) -> Any:
        """The gradient of a tensor, or `default` if there is none."""
        found = self._find(x)
        return default if found is None else _wrapped(x, found)

    def map(self, function: Callable[[Any], Any]) -> Gradients:
        """New gradients of the same leaves.

        Parameters
        ----------
        function : callable
            From a gradient to another one of its shape and dtype.

        Returns
        -------
        Gradients
            These are unchanged.

        Raises
        ------
        ShapeError, DTypeError
            If a result has another shape or dtype.
        OperandTypeError
            If it is no tensor.
        AutodiffError
            If it is tracked.

        Examples
        --------
        >>> import burn
        >>> x = burn.ones(2, device=burn.Device("cpu").autodiff()).require_grad()
        >>> gradients = (x * 30).sum().backward()
        >>> scale = 1.0 / burn.global_norm(gradients)
        >>> [round(one, 3) for one in gradients.map(lambda g: g * scale)[x].tolist()]
        [0.707, 0.707]
        """
        mapped = Primitives(self._level)
        mapped.by_key.update(self.primitives.by_key)
        for leaf in self._leaves():
            gradient = _wrapped(self._tensor_of(leaf), self.primitives.get(leaf))
            what = f"{name_of(function)} in Gradients.map"
            mapped.put(leaf, replacement(function(gradient), gradient, what))
        return Gradients(mapped, self._tensor_class, self._device)

    def merge(self, other: Gradients, function: Callable[[Any, Any], Any]) -> Gradients:
        """New gradients of the leaves that these or others have.

        Parameters
        ----------
        other : Gradients
            Of another pass.
        function : callable
            From the two gradients of a leaf to one of their shape and dtype; a leaf that has one
            gradient alone keeps it.

        Returns
        -------
        Gradients
            These and the others are unchanged.

        Raises
        ------
        ShapeError, DTypeError, OperandTypeError, AutodiffError
            If a result is no gradient, as in `map`.

        Examples
        --------
        >>> import burn
        >>> x, y = (burn.ones(1, device=burn.Device("cpu").autodiff()).require_grad() for _ in "xy")
        >>> one, other = (x * y).sum().backward(), (x * 2).sum().backward()
        >>> total = one.merge(other, lambda a, b: a + b)
        >>> total[x].tolist(), total[y].tolist()
        ([3.0], [1.0])
        """
        merged = Primitives(self._level)
        for gradients in (self, other):
            merged.by_key.update(gradients.primitives.by_key)
            for leaf in gradients._leaves():
                x, primitive = self._tensor_of(leaf), gradients.primitives.get(leaf)
                before = merged.get(leaf)
                if before is not None:
                    gradient = _wrapped(x, before)
                    what = f"{name_of(function)} in Gradients.merge"
                    primitive = replacement(
                        function(gradient, _wrapped(x, primitive)), gradient, what
                    )
                merged.put(leaf, primitive)
        return Gradients(merged, self._tensor_class, self._device)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        shown = [str(meta_of(gradient)) for gradient in self.values()]
        more = [f"... {len(shown) - _SHOWN} more"] if len(shown) > _SHOWN else []
        return f"Gradients({', '.join(shown[:_SHOWN] + more)})"

    def __reduce__(self) -> tuple[object, ...]:
        return _load, (self._tensor_class, self._level, list(self.items()))

    def _leaves(self) -> list[Leaf]:
        return [node for node in self.primitives.by_node if isinstance(node, Leaf)]

    def _find(self, x: object) -> Primitive | None:
        primitive = x.primitive if isinstance(x, DispatchTensor) else None
        if not isinstance(primitive, AutodiffTensor):
            return None
        self.check_trace(x)
        return self.primitives.get(primitive.node)

    def check_trace(self, x: Any) -> None:
        """Raise TraceError if these are gradients from outside of the trace that a tensor is in."""
        if x.tensor_type.device.is_traced and not (self._device and self._device.is_traced):
            raise TraceError(
                "gradients from outside of the function that is traced: each call of the program "
                "would read the same",
                hint="Read the gradient outside, and pass the tensor; or call backward inside",
                operation="grad",
            )

    def _tensor_of(self, leaf: Leaf) -> DispatchTensor:
        """The tensor that the user holds, or an equal one if it is gone or has another value."""
        tensor = None if leaf.owner is None else leaf.owner()
        if tensor is None or getattr(tensor.primitive, "node", None) is not leaf:
            tensor = _new(self._tensor_class)
            tensor_type = leaf.tensor_type or self._device.type_of(leaf.primitive)
            tensor.tensor_type = tensor_type
            tensor.primitive = tensor_type.device.backend.tensor_of(leaf)
            tensor.link = None
        return tensor


_SHOWN: Final = 10
"""Number of gradients that `repr` shows."""


def _load(tensor_class: type[DispatchTensor], level: int, pairs: Pairs) -> Gradients:
    gradients = Gradients(Primitives(level), tensor_class, None)
    gradients._primitives, gradients._pairs = None, pairs
    return gradients


def _wrapped(x: DispatchTensor, gradient: Primitive) -> DispatchTensor:
    """The gradient of a tensor, on the device below autodiff."""
    result = _new(x.__class__)
    result.primitive = gradient
    result.tensor_type = x.tensor_type.device.below.type_of(gradient)
    result.link = None
    return result


def replacement(result: object, gradient: DispatchTensor, what: str) -> Primitive:
    """The primitive of what a function returned for a gradient, if it can replace the gradient.

    Raises
    ------
    BurnError
        Of the class that fits; `what` names the function.
    """
    if not isinstance(result, DispatchTensor):
        raise OperandTypeError(
            f"{what} returned {type(result).__name__}",
            hint="Return a tensor of the shape and dtype of the gradient",
        )
    found, expected = meta_of(result), meta_of(gradient)
    if found.dtype is not expected.dtype:
        raise DTypeError(
            f"{what} returned a {found} for the gradient {expected}",
            hint=f'Call .astype("{expected.dtype}") on it',
        )
    if found.shape != expected.shape:
        raise ShapeError(f"{what} returned a {found} for the gradient {expected}")
    device = gradient.tensor_type.device
    common_device(device, result.tensor_type.device)
    primitive = result.primitive
    if isinstance(primitive, AutodiffTensor) and primitive.level >= len(device.layers):
        raise AutodiffError(
            f"{what} returned a tracked tensor: gradients are not differentiated",
            hint="Call .detach() on it",
        )
    return primitive


def name_of(function: Callable[..., Any]) -> str:
    """The name of a function in errors."""
    return getattr(function, "__qualname__", None) or repr(function)
