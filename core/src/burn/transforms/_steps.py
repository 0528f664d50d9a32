"""Functions of branches and loops, from leaves to leaves, with what their results must be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from burn.autodiff import examples_of
from burn.devices import running_trace
from burn.dispatch import meta_of
from burn.dtype import DType, Kind
from burn.errors import AutodiffError, DTypeError, OperandTypeError, ShapeError
from burn.functions.creation import asarray
from burn.functions.views import independent
from burn.ops.arguments import python_number
from burn.transforms._arguments import is_tensor
from burn.tree import Structure, describe, flatten, paths, unflatten

if TYPE_CHECKING:
    from burn.devices import Device
    from burn.tensor.tensor import Tensor

__all__ = [
    "Body",
    "Branch",
    "Carry",
    "Condition",
    "ScanStep",
    "Step",
    "check_one",
    "device_of",
    "truth_of",
]


_KINDS: Final = {bool: Kind.ANY, int: Kind.NUMBER, float: Kind.INEXACT, complex: Kind.COMPLEX}
"""Kinds of dtypes that hold numbers of a class."""


class Body:
    """A function of the user, from leaves to leaves that are tensors.

    Parameters
    ----------
    function : callable
        The function.
    structure : Structure
        The containers of its arguments.
    name, operation : str
        How errors name it, and the function of burn that calls it.
    device : Device or None
        Where numbers become tensors.

    Attributes
    ----------
    name : str
        How errors name it.
    result : Structure
        The containers of what it returned last.
    paths : list of str
        How errors name the leaves of that.
    metas : list of Meta
        What these are.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        structure: Structure,
        name: str,
        operation: str,
        device: Device | None,
    ) -> None:
        self._function = function
        self._structure = structure
        self.name = name
        self.operation = operation
        self.device = device
        self.result: Any = None
        self.paths: list[str] = []
        self.metas: list[Any] = []

    def call(self, leaves: Sequence[Any]) -> Any:
        """The result, in its containers and tensors of its own."""
        tensors = self(leaves)
        return unflatten(self.result, [independent(tensor) for tensor in tensors])

    def __call__(self, leaves: Sequence[Any]) -> list[Tensor]:
        """The leaves of the result."""
        # Other tensors, since the function may write to its arguments.
        own = [independent(leaf) if is_tensor(leaf) else leaf for leaf in leaves]
        return self._leaves_of(self._function(*unflatten(self._structure, own)))

    def _leaves_of(self, returned: Any) -> list[Tensor]:
        found, self.result = flatten(returned)
        self.paths = paths(returned, f"the result of {self.name}")
        return self._tensors(found)

    def _tensors(self, leaves: Sequence[Any], dtypes: Sequence[DType] = ()) -> list[Tensor]:
        """Leaves of the result as tensors."""
        pairs = zip_longest(zip(leaves, self.paths, strict=True), dtypes)
        tensors = [
            _as_tensor(leaf, name, self.operation, self.device, dtype)
            for (leaf, name), dtype in pairs
        ]
        self.metas = [meta_of(tensor) for tensor in tensors]
        return tensors


class Branch(Body):
    """A function whose result is like that of another one, if that was called."""

    def __init__(
        self,
        function: Callable[..., Any],
        structure: Structure,
        name: str,
        operation: str,
        device: Device | None,
        other: Body,
    ) -> None:
        super().__init__(function, structure, name, operation, device)
        self._other = other

    def _leaves_of(self, returned: Any) -> list[Tensor]:
        tensors = super()._leaves_of(returned)
        other = self._other
        if other.result is not None:
            if self.result != other.result:
                name = f"the result of {self.name}"
                raise _other_containers(self, name, other.result, f"that of {other.name}")
            _check_metas(self, other.metas, other.paths)
        return tensors


class Condition(Body):
    """A function whose result is one boolean."""

    def truth(self, leaves: Sequence[Any]) -> bool:
        """The boolean."""
        (tensor,) = self(leaves)
        return bool(tensor)

    def _leaves_of(self, returned: Any) -> list[Tensor]:
        truth = truth_of(returned, f"the result of {self.name}", self.operation, reads=False)
        return super()._leaves_of(truth)


class Carry:
    """A value that a loop hands on from one iteration to the next.

    Attributes
    ----------
    leaves : list of Tensor
        Its first leaves.
    structure : Structure
        Its containers.
    arguments : Structure
        The containers of the arguments of a function of the carry.
    metas, paths : list
        What the leaves are, and how errors name them.
    device : Device or None
        Where numbers become tensors.
    """

    def __init__(self, initial: Any, operation: str, others: Sequence[Any] = ()) -> None:
        leaves, self.structure = flatten(initial)
        self.arguments = Structure(tuple, None, (self.structure,))
        self.paths = paths(initial, "initial")
        self.device = device_of([*leaves, *others])
        self.leaves = [
            _as_tensor(leaf, name, operation, self.device)
            for leaf, name in zip(leaves, self.paths, strict=True)
        ]
        self.metas = [meta_of(leaf) for leaf in self.leaves]

    def last(self, leaves: Sequence[Tensor]) -> Any:
        """The value after the last iteration, in tensors of its own as that of a program."""
        return unflatten(self.structure, [independent(leaf) for leaf in leaves])


class Step(Body):
    """A function from a carry to the next one."""

    def __init__(
        self,
        function: Callable[..., Any],
        structure: Structure,
        name: str,
        operation: str,
        device: Device | None,
        carry: Carry,
    ) -> None:
        super().__init__(function, structure, name, operation, device)
        self._carry = carry

    def _leaves_of(self, returned: Any) -> list[Tensor]:
        return self._next(returned, f"the result of {self.name}")

    def _next(self, returned: Any, name: str) -> list[Tensor]:
        """The leaves of the next carry."""
        found, self.result = flatten(returned)
        carry = self._carry
        self.paths = paths(returned, name)
        if self.result != carry.structure:
            raise _other_containers(self, name, carry.structure, "initial")
        tensors = self._tensors(found, [meta.dtype for meta in carry.metas])
        _check_metas(self, carry.metas, carry.paths)
        return tensors


class ScanStep(Step):
    """A function from a carry and an element to the next carry, and what is stacked.

    Attributes
    ----------
    stacked : Structure
        The containers of what is stacked.
    """

    def __init__(
        self, function: Callable[..., Any], xs: Structure, operation: str, carry: Carry
    ) -> None:
        structure = Structure(tuple, None, (carry.structure, xs))
        super().__init__(function, structure, "the function", operation, carry.device, carry)
        self.stacked: Any = None

    def _leaves_of(self, returned: Any) -> list[Tensor]:
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise OperandTypeError(
                f"the function returns {describe(returned)}",
                hint="It returns a pair: the next carry, and what is stacked, or None",
                operation=self.operation,
            )
        tensors = self._next(returned[0], f"the result of {self.name}[0]")
        found, self.stacked = flatten(returned[1])
        self.paths = paths(returned[1], f"the result of {self.name}[1]")
        return [*tensors, *self._tensors(found)]


def _other_containers(body: Body, name: str, expected: Structure, owner: str) -> OperandTypeError:
    """The error of a result in other containers; it names the first that differs."""
    trees = [unflatten(item, [0] * item.leaf_count) for item in (body.result, expected)]
    shown = [
        "a leaf" if item.kind is None else describe(tree)
        for item, tree in zip((body.result, expected), trees, strict=True)
    ]
    what = f"{name} is {shown[0]}, and {owner} {shown[1]}"
    pairs = zip_longest(*[paths(tree, "") for tree in trees], fillvalue=None)
    for own, other in pairs:
        if own != other and own and other:
            what = f"{name} has {own} where {owner} has {other}"
            break
    return OperandTypeError(what, hint="The containers must be the same", operation=body.operation)


def _check_metas(body: Body, expected: Sequence[Any], owners: Sequence[str]) -> None:
    """Raise unless the leaves of a result have the shapes and dtypes of others."""
    for own, name, other, owner in zip(body.metas, body.paths, expected, owners, strict=True):
        if own != other:
            raise (DTypeError if own.shape == other.shape else ShapeError)(
                f"{name} is {own}, and {owner} {other}",
                hint="They have the same shape and dtype: convert one with .astype(), or begin "
                "with a tensor of that dtype",
                operation=body.operation,
            )


def device_of(leaves: Sequence[Any]) -> Device | None:
    """The device where numbers beside some leaves become tensors; None is the default one."""
    return next((leaf.device.hardware for leaf in leaves if is_tensor(leaf)), None)


def check_one(x: Tensor, name: str, operation: str) -> None:
    """Raise unless a tensor is one value, which is not another one for each example of a batch."""
    if x.shape:
        raise ShapeError(
            f"{name} has shape {x.shape}, and is one value",
            hint="Reduce it, with .all() or .any() for booleans; burn.where chooses for each "
            "element",
            operation=operation,
        )
    if examples_of(x.primitive)[1]:
        raise AutodiffError(
            f"{name} has a value for each example of burn.vmap, which is not one value",
            hint="Compute both and choose with burn.where(condition, x, y); a loop runs for a "
            "known number of iterations (burn.fori_loop), and burn.where keeps what is done",
            operation=operation,
        )


def truth_of(value: Any, name: str, operation: str, *, reads: bool = True) -> Any:
    """A boolean; a tensor of one stays one if `reads` is False, or in a trace."""
    number = python_number(value)
    if isinstance(number, bool):
        return number
    if not is_tensor(value):
        raise OperandTypeError(
            f"{name} is an object of type {type(value).__name__}",
            hint="It is a boolean, or a tensor of one",
            operation=operation,
        )
    if not value.dtype.is_bool:
        raise DTypeError(
            f"{name} is a tensor of {value.dtype}",
            hint="Compare it: x != 0",
            operation=operation,
        )
    check_one(value, name, operation)
    return bool(value) if reads and running_trace() is None else value


def _as_tensor(
    leaf: Any, name: str, operation: str, device: Device | None, dtype: DType | None = None
) -> Tensor:
    """A leaf as a tensor; a number gets a dtype if it has numbers of that kind."""
    if is_tensor(leaf):
        return leaf
    number = python_number(leaf)
    if not isinstance(number, (bool, int, float, complex)):
        raise OperandTypeError(
            f"{name} is an object of type {type(leaf).__name__}, no tensor",
            hint="burn.asarray() makes a tensor of sequences and arrays",
            operation=operation,
        )
    if dtype is not None and dtype.kind not in _KINDS[type(number)]:
        dtype = None
    return asarray(number, dtype=dtype, device=device)
