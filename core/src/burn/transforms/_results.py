"""What a function returns that is compiled, and what it rebinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from burn.devices import Device, TensorType
from burn.errors import TraceError
from burn.functions.common import dispatch
from burn.functions.views import Step, base_of, is_view, root_of
from burn.ir import ScalarIr
from burn.transforms._arguments import is_tensor
from burn.transforms._code import Code, Given, one_level
from burn.transforms._constants import is_module_part
from burn.transforms._parts import parts_of
from burn.tree import taken_apart, unflatten

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor
    from burn.transforms.tracing import Tracing

__all__ = ["Output", "Results", "View", "rebound_of"]


@dataclass(frozen=True, slots=True)
class Output:
    """An output of a program.

    Attributes
    ----------
    tensor_type : TensorType
        That of the tensor which users get.
    is_leaf : bool
        Whether that is a new leaf.
    is_tracked : bool
        Whether it is tracked by inputs.
    is_first : bool
        Of a quantized tensor, which is an output for each part: whether it is the first one.
    """

    tensor_type: TensorType
    is_leaf: bool = False
    is_tracked: bool = False
    is_first: bool = True


@dataclass(frozen=True, slots=True)
class View:
    """A result that shares elements with another tensor.

    Attributes
    ----------
    variable : str
        The name of the result in the generated function.
    base : str
        The name of the tensor that it is a view of.
    steps : tuple of Step
        The ops that lead to it; none if it is `base` itself.
    is_tracked : bool
        Whether its gradient goes on to a tracked `base`.
    """

    variable: str
    base: str
    steps: tuple[Step, ...]
    is_tracked: bool


class Results:
    """What a function returns, and what it rebinds.

    Attributes
    ----------
    outputs : list of Output
        The outputs of the program.
    primitives : list of primitive
        Each in the trace.
    views : list of View
        The results that are made of outputs and other tensors after the program ran.
    """

    def __init__(
        self, trace: Tracing, code: Code, known: Mapping[int, str], given: Sequence[Given]
    ) -> None:
        self.outputs: list[Output] = []
        self.primitives: list[Any] = []
        self.views: list[View] = []
        self._trace = trace
        self._code = code
        self._known = dict(known)
        self._captured = {id(captured.tensor) for captured in trace.captured}
        self._given = [given.stand_in for given in given]
        self._variables = {id(given.stand_in): given.variable for given in given}
        self._made: dict[int, list[tuple[str, Tensor]]] = {}

    def result(self, value: Any) -> str:
        """How the generated function makes the result; adds its outputs and views."""
        expression = self.expression(value, "the result")
        for views in self._made.values():
            self._share(views)
        return expression

    def expression(self, value: Any, name: str) -> str:
        """How the generated function makes a part of the result."""
        known = self._known.get(id(value))
        if known is not None:
            return known
        if is_tensor(value):
            return self._tensor(value)
        if isinstance(value, ScalarIr):
            raise TraceError(
                f"{name} is a runtime number, and a program returns tensors",
                hint="Count outside of the function, or pass a tensor instead",
                operation="compile",
            )
        if isinstance(value, Device):
            return self._code.constant(value.untraced)
        taken = taken_apart(value)
        if taken is None or (is_module_part(taken[1]) and self._is_from_outside(taken)):
            return self._code.constant(value)
        children, metadata = taken
        if isinstance(value, dict) and type(value) is dict:
            parts = [
                f"{self._code.constant(key)}: {self.expression(part, f'{name}[{key!r}]')}"
                for key, part in value.items()
            ]
            return f"{{{', '.join(parts)}}}"
        parts = [self.expression(child, f"{name}[{index}]") for index, child in enumerate(children)]
        if value is None:
            return "None"
        if type(value) is list:
            return f"[{', '.join(parts)}]"
        joined = "".join([f"{part}, " for part in parts])
        if type(value) is tuple:
            return f"({joined})"
        make = self._code.constant(unflatten, "make")
        structure = self._code.constant(one_level(type(value), metadata, len(parts)))
        return f"{make}({structure}, ({joined}))"

    def _is_from_outside(self, taken: tuple[Sequence[Any], Any]) -> bool:
        """Whether a module has parameters and buffers from outside alone."""
        children, part = taken
        tensors = [*children, *filter(is_tensor, part.constants.values())]
        return all(
            id(tensor) in self._captured or not tensor.tensor_type.device.is_traced
            for tensor in tensors
        )

    def _tensor(self, x: Tensor) -> str:
        if id(x) in self._captured or not x.tensor_type.device.is_traced:
            return self._code.constant(x, "c")
        if is_view(x) and not dispatch.is_require_grad(x):
            return self._view(x)
        return self._output(x)

    def _view(self, x: Tensor) -> str:
        """The name of a result that is a view: of a tensor from outside, or of one made inside."""
        name = self._known[id(x)] = self._code.new("v")
        base, steps = base_of(x, self._given)
        variable = self._variables.get(id(base))
        if variable is None:
            self._made.setdefault(id(base), []).append((name, x))
        else:
            self._add_view(name, x, base, variable, steps)
        return name

    def _share(self, views: Sequence[tuple[str, Tensor]]) -> None:
        """Add the views of a tensor that was made inside, and that tensor where it is seen."""
        name, x = views[0]
        root = root_of(x)
        if len(views) == 1 and id(root) not in self._known:
            self.views.append(View(name, self._output(x), (), is_tracked=True))
            return
        variable = self._known.get(id(root)) or self._tensor(root)
        for name, x in views:
            self._add_view(name, x, root, variable, base_of(x)[1])

    def _add_view(
        self, name: str, x: Tensor, base: Tensor, variable: str, steps: tuple[Step, ...]
    ) -> None:
        is_tracked = dispatch.is_tracked(x) or not dispatch.is_tracked(base)
        self.views.append(View(name, variable, steps, is_tracked))

    def _output(self, x: Tensor) -> str:
        is_leaf = dispatch.is_require_grad(x) and not self._trace.is_leaf_from_outside(x)
        is_tracked = self._trace.tracks(x) and not is_leaf
        index = self._add(x, is_leaf=is_leaf, is_tracked=is_tracked)
        self._known[id(x)] = f"r{index}"
        return f"r{index}"

    def _add(self, x: Tensor, *, is_leaf: bool, is_tracked: bool = False) -> int:
        """Add the outputs of a tensor: the index of the first."""
        index = len(self.outputs)
        tensor_type = x.tensor_type.device.untraced.tensor_type(x.tensor_type.dtype)
        for part in parts_of(x.primitive):
            is_first = len(self.outputs) == index
            self.primitives.append(part)
            self.outputs.append(Output(tensor_type, is_leaf, is_tracked, is_first))
        return index

    def add_rebound(self, x: Tensor) -> int:
        """The index of the output to which something is rebound."""
        is_leaf = dispatch.is_require_grad(x)
        if dispatch.is_tracked(x) and not is_leaf:
            raise TraceError(
                "the function gives a tensor from outside a tracked value, whose graph no "
                "program has",
                hint="Write .detach() of the value",
                operation="compile",
            )
        return self._add(x, is_leaf=is_leaf)


def rebound_of(given: Sequence[Given]) -> list[tuple[int, Tensor]]:
    """The inputs that the function has rebound, by their indices, with their new values.

    Of a quantized tensor that is the index of its first part.
    """
    roots = [id(root_of(given.tensor if given.is_argument else given.stand_in)) for given in given]
    counts = Counter([root for root, given in zip(roots, given, strict=True) if given.is_first])
    changed = {id(given.stand_in) for given in given if given.stand_in.primitive is not given.start}
    found = []
    for index, item in enumerate(given):
        if item.stand_in.primitive is item.start or not item.is_first:
            continue
        if item.is_argument:
            if counts[roots[index]] > 1:
                raise TraceError(
                    f"the function writes to {item.name}, which shares elements with another "
                    "tensor that it uses",
                    hint="Pass a copy: x.astype(x.dtype, copy=True)",
                    operation="compile",
                )
        elif roots[index] != id(item.stand_in) and roots[index] in changed:
            continue  # a view is computed from its root
        found.append((index, item.stand_in))
    return found
