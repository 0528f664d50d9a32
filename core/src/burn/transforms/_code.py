"""The text of a generated function, and the tensors that it gets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from burn.autodiff import Leaf
from burn.ops.quantized_primitive import is_quantized
from burn.transforms._constants import is_same
from burn.transforms._parts import ir_of
from burn.transforms.compilation import Miss
from burn.tree import Structure

if TYPE_CHECKING:
    from burn.devices import TensorType
    from burn.ir import TensorIr

__all__ = ["Code", "Given", "one_level"]


@dataclass(slots=True)
class Given:
    """A tensor that a program gets.

    Attributes
    ----------
    name : str
        How errors name it.
    tensor_type : TensorType
        That of the example.
    variable : str
        The name of the tensor in the generated function.
    state : str
        ``""`` of an untracked tensor, ``"leaf"``, or ``"tracked"`` if computed from leaves.
    is_argument : bool
        Whether it is passed.
    tensor : Tensor or None
        The example; None after the trace, as the two below.
    stand_in : Tensor or None
        What the function gets for it.
    start : primitive or None
        What that holds at first.
    part : str
        Of a quantized tensor, which is an input for each part: the attribute of the primitive.
    is_first : bool
        Whether it is no part, or the first one.
    has_hooks : bool
        Whether it is a leaf with hooks.
    """

    name: str
    tensor_type: TensorType
    variable: str
    state: str
    is_argument: bool
    tensor: Any
    stand_in: Any
    start: Any
    part: str = ""
    is_first: bool = True
    has_hooks: bool = False

    @property
    def value(self) -> str:
        """What the program gets of it, in the generated function."""
        if self.part:
            return f"{self.variable}.primitive.{self.part}"
        return f"{self.variable}.primitive" + (".primitive" if self.state else "")

    @property
    def ir(self) -> TensorIr:
        """The input of the program."""
        return ir_of(getattr(self.start, self.part) if self.part else self.start)

    def parts(self) -> list[Given]:
        """An input for each part of a quantized tensor; itself of any other."""
        if not is_quantized(self.start):
            return [self]
        names = ("values", "scales", "global_scale")[: len(self.start.parts)]
        return [replace(self, part=name, is_first=name == "values") for name in names]

    def release(self) -> None:
        """Let go of the tensors."""
        self.tensor = self.stand_in = self.start = None


class Code:
    """Lines of a function, and the objects that they name.

    Attributes
    ----------
    lines : list of str
        The lines.
    names : dict
        The objects by their names.
    """

    __slots__ = ("_count", "_known", "_misses", "lines", "names")

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {"is_same": is_same}
        self._misses: dict[str, str] = {}
        self._known: dict[int, str] = {}
        self._count = 0

    def new(self, prefix: str) -> str:
        """A name that is not used."""
        self._count += 1
        return f"{prefix}{self._count}"

    def constant(self, value: Any, prefix: str = "k") -> str:
        """The name of an object."""
        name = self.new(prefix)
        self.names[name] = value
        return name

    def shared(self, value: Any, prefix: str) -> str:
        """The name of an object that lines name again and again."""
        name = self._known.get(id(value))
        if name is None:
            name = self._known[id(value)] = self.constant(value, prefix)
        return name

    def unless(self, condition: str, what: str) -> None:
        """Let the function miss, because something differs, unless a condition holds."""
        self.lines.append(f"if not ({condition}): return {self._miss(what)}")

    def attempt(self, expression: str, what: str) -> str:
        """The name of a value; the function misses if the expression raises."""
        name = self.new("v")
        self.lines += [
            f"try: {name} = {expression}",
            f"except Exception: return {self._miss(what)}",
        ]
        return name

    def _miss(self, what: str) -> str:
        name = self._misses.get(what)
        if name is None:
            name = self._misses[what] = self.constant(Miss(what), "m")
        return name

    def check_tensor(self, given: Given) -> None:
        """Check a tensor as far as the primitive does not matter, and that.

        An object never changes its shape, so that of a tensor from outside is no question.
        """
        x, variable = given.tensor, given.variable
        device = x.tensor_type.device
        kind = self.shared(x.tensor_type, "T")
        what = f"the dtype or the device of {given.name}"
        self.unless(f"{variable}.tensor_type is {kind}", what)
        if device.layers:
            self._check_tracked(given, self.shared(device.backend.tensor_type, "A"))
        if given.is_argument:
            self._check_shape(given)

    def _check_tracked(self, given: Given, tracked: str) -> None:
        primitive = f"{given.variable}.primitive"
        what = f"whether {given.name} is a leaf"
        if not given.state:
            self.unless(f"{primitive}.__class__ is not {tracked}", what)
            return
        node = f"{primitive}.node"
        is_leaf = "is" if given.state == "leaf" else "is not"
        self.names["Leaf"] = Leaf
        self.unless(f"{primitive}.__class__ is {tracked} and {node}.__class__ {is_leaf} Leaf", what)
        if given.state == "tracked":
            return
        outside: Any = given.tensor.primitive
        hooks = outside.node.hooks
        condition = f"{node}.hooks is None"
        given.has_hooks = hooks is not None
        if hooks is not None:
            functions = self.constant(list(hooks.functions.values()))
            condition = (
                f"{node}.hooks is {self.constant(hooks)} "
                f"and [*{node}.hooks.functions.values()] == {functions}"
            )
        self.unless(condition, f"the hooks of {given.name}")

    def _check_shape(self, given: Given) -> None:
        outside: Any = given.tensor.primitive
        shape = tuple(outside.shape)
        found = f"{given.variable}.primitive.shape" if given.part else f"{given.value}.shape"
        if not outside.shape == shape:  # noqa: SIM201 — of any class
            found = f"tuple({found})"
        self.unless(f"{found} == {shape!r}", f"the shape of {given.name}")


def one_level(kind: type, metadata: Any, count: int) -> Structure:
    """The structure of a container with leaves alone."""
    return Structure(kind, metadata, (Structure(None, None, ()),) * count)
