"""The arguments of a call that is compiled: code that recognizes such a call, and stand-ins."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from burn.autodiff import AutodiffTensor, Leaf
from burn.dispatch import meta_of
from burn.functions.common import dispatch
from burn.ir import ScalarIr
from burn.transforms._arguments import is_tensor
from burn.transforms._code import Code, Given, one_level
from burn.transforms._constants import as_it_is_now, is_module_part, is_same
from burn.transforms.compilation import Miss
from burn.transforms.tracing import RuntimeNumber
from burn.tree import taken_apart, unflatten

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor
    from burn.transforms._compiling import Compiling

__all__ = ["Signature", "argument_of", "state_of"]


class Signature:
    """Walks through the arguments of a call.

    Parameters
    ----------
    trace : Compiling
        The trace in which the function will get the stand-ins.
    code : Code
        Receives the checks.
    by_identity : collection of str
        Names of arguments that the function has from elsewhere too: they are passed as they are.
    takes_apart : callable
        Whether a module is an input by its parameters, by its name and itself; or by its identity.

    Attributes
    ----------
    given : list of Given
        The tensors among the arguments.
    numbers : list of (ScalarIr, str)
        The numbers, and how the generated function gets each.
    described : dict of str to str
        What is said of each argument in a warning.
    modules : dict of str to object
        The modules that are told by their identity, by their names.
    taken_apart : set of str
        The arguments with modules that are inputs by their parameters.
    stand_ins : dict of int to str
        Of each tensor or module that the function gets for another one, by its id: the name of
        that.
    """

    def __init__(
        self,
        trace: Compiling,
        code: Code,
        by_identity: frozenset[str],
        takes_apart: Callable[[str, Any], bool],
    ) -> None:
        self.given: list[Given] = []
        self.numbers: list[tuple[ScalarIr, str]] = []
        self.described: dict[str, str] = {}
        self.modules: dict[str, Any] = {}
        self.taken_apart: set[str] = set()
        self.stand_ins: dict[int, str] = {}
        self._kept: list[Any] = []
        self._trace = trace
        self._code = code
        self._by_identity = by_identity
        self._takes_apart = takes_apart
        self._seen: dict[int, Given] = {}

    def release(self) -> None:
        """Let go of the tensors."""
        for given in self.given:
            given.release()
        self._kept.clear()
        self._seen.clear()

    def call(
        self, args: Sequence[Any], keywords: Mapping[str, Any], names: Sequence[str]
    ) -> tuple[list[Any], dict[str, Any]]:
        """What the function gets instead of its arguments."""
        code = self._code
        code.unless(
            f"len(args) == {len(args)} and "
            + (f"len(keywords) == {len(keywords)}" if keywords else "not keywords"),
            "the number of arguments",
        )
        values = []
        for index, (value, name) in enumerate(zip(args, names, strict=True)):
            values.append(self.visit(value, f"args[{index}]", name))
        return values, self._dict(keywords, "keywords", "{}")

    def visit(self, value: Any, expression: str, name: str) -> Any:
        """What the function gets for a value, which `expression` gives in the generated code."""
        code = self._code
        variable = code.new("v")
        code.lines.append(f"{variable} = {expression}")
        if is_tensor(value):
            return self._tensor(value, variable, name)
        if value.__class__ is RuntimeNumber:
            return self._number(value, variable, name)
        taken = taken_apart(value)
        if taken is None:
            return self._static(value, variable, name)
        children, metadata = taken
        if is_module_part(metadata):
            return self._module(value, children, metadata, variable, name)
        self.described[name] = f"a {type(value).__name__} of {len(children)}"
        return self._container(value, children, metadata, variable, name)

    def _container(
        self, value: Any, children: Sequence[Any], metadata: Any, variable: str, name: str
    ) -> Any:
        code, kind = self._code, value.__class__
        what = f"the containers in {name}"
        if value is None:
            code.unless(f"{variable} is None", what)
            return None
        kind_name = code.constant(kind)
        count = len(children)
        condition = f"{variable}.__class__ is {kind_name}"
        if kind is dict:
            code.unless(f"{condition} and len({variable}) == {count}", what)
            made: Any = self._dict(value, variable, f"{name}[{{!r}}]")
        else:
            code.unless(condition, what)
            parts = variable
            if kind not in (list, tuple):
                code.names["taken_apart"] = taken_apart
                parts = code.new("v")
                code.lines.append(f"{parts}, w{parts} = taken_apart({variable})")
                code.unless(f"w{parts} == {code.constant(metadata)}", what)
            code.unless(f"len({parts}) == {count}", what)
            fields = getattr(kind, "_fields", None)
            labels = [
                f"{name}.{fields[index]}" if fields else f"{name}[{index}]"
                for index in range(count)
            ]
            found = [
                self.visit(child, f"{parts}[{index}]", label)
                for index, (child, label) in enumerate(zip(children, labels, strict=True))
            ]
            made = unflatten(one_level(kind, metadata, count), found)
        if kind in (list, dict):
            self._trace.passed.append((name, made, copy.copy(made)))
        return made

    def _dict(self, value: Mapping[Any, Any], variable: str, label: str) -> dict[Any, Any]:
        """A dict, in any order of its keys."""
        code = self._code
        code.names["missing"] = Miss("")
        return {
            key: self.visit(
                part,
                f"{variable}.get({code.constant(key)}, missing)",
                str(key) if label == "{}" else label.format(key),
            )
            for key, part in value.items()
        }

    def _tensor(self, x: Tensor, variable: str, name: str) -> Tensor:
        code = self._code
        if argument_of(name) in self._by_identity:
            code.unless(f"{variable} is {code.constant(x)}", f"{name}, which is another tensor")
            return x
        known = self._seen.get(id(x))
        if known is not None:
            code.unless(f"{variable} is {known.variable}", f"whether {name} is {known.name}")
            return known.stand_in  # type: ignore[no-any-return]  # None after the trace
        code.unless(
            f"{variable}.__class__ is {code.shared(x.__class__, 'k')}", f"the class of {name}"
        )
        return self._given(x, variable, name)

    def _given(self, x: Tensor, variable: str, name: str) -> Tensor:
        primitive, tensor_type = self._trace.stand_in(x)
        value: Tensor = dispatch.wrap(primitive, tensor_type)
        given = Given(
            name,
            x.tensor_type,
            variable,
            state_of(x),
            is_argument=True,
            tensor=x,
            stand_in=value,
            start=primitive,
        )
        self._code.check_tensor(given)
        self._seen[id(x)] = given
        self.given += given.parts()
        self.stand_ins[id(value)] = variable
        self._trace.arguments[id(x)] = argument_of(name)
        self.described[name] = f"{meta_of(x)} on {x.tensor_type.device}{given.state and ', '}" + (
            given.state
        )
        return value

    def _number(self, value: RuntimeNumber, variable: str, name: str) -> ScalarIr:
        code = self._code
        kind = value.value.__class__
        code.unless(
            f"{variable}.__class__ is {code.constant(RuntimeNumber)} "
            f"and {variable}.value.__class__ is {kind.__name__}",
            f"the type of {name}",
        )
        number = self._trace.recorder.scalar(kind)  # type: ignore[arg-type]  # int or float
        self.numbers.append((number, f"{variable}.value"))
        self.described[name] = f"a runtime number, {kind.__name__}"
        return number

    def _static(self, value: Any, variable: str, name: str) -> Any:
        """A value that is part of the program."""
        code = self._code
        # The program is of the value that it has now.
        now = as_it_is_now(value)
        expected = code.constant(now)
        condition = f"is_same({variable}, {expected})"
        if now is value:
            condition = f"{variable} is {expected} or {condition}"
        code.unless(condition, f"the value of {name}")
        self.described[name] = _short(value)
        return value

    def _module(
        self, module: Any, children: Sequence[Tensor], part: Any, variable: str, name: str
    ) -> Any:
        code = self._code
        if argument_of(name) in self._by_identity or not self._takes_apart(name, module):
            code.unless(
                f"{variable} is {code.constant(module)}", f"{name}, which is another module"
            )
            self.modules[name] = module
            self._trace.watch(part.watch())
            self.described[name] = f"a {type(module).__name__}"
            return module
        self.taken_apart.add(argument_of(name))
        tensors = code.new("v")
        parameters = code.constant(ModuleInput(part))
        code.lines.append(f"{tensors} = {parameters}({variable})")
        code.unless(
            f"{tensors} is not None", f"{name}: its structure, buffers, modes or attributes"
        )
        found = []
        for index, (x, path) in enumerate(zip(children, part.paths, strict=True)):
            one = code.new("v")
            code.lines.append(f"{one} = {tensors}[{index}]")
            found.append(self._tensor(x, one, f"{name}.{path}"))
        made = unflatten(one_level(module.__class__, part, len(found)), found)
        self.stand_ins[id(made)] = variable
        self._kept.append(made)
        return made


class ModuleInput:
    """The trainable parameters of a module, if all else of it is as in an example.

    Parameters
    ----------
    part : burn.nn skeleton
        The example beside its parameters.
    """

    def __init__(self, part: Any) -> None:
        self._part = part
        self._last: Any = None
        self._tensors: Sequence[Any] = ()
        self._watch: Any = None
        self._state: object = None

    def __call__(self, module: Any) -> Sequence[Any] | None:
        """The parameters; None if anything else differs."""
        if module is self._last and self._watch() == self._state:
            return self._tensors
        taken = taken_apart(module)
        if taken is None:
            return None
        tensors, part = taken
        expected = self._part
        if part != expected or part.modes != expected.modes:
            return None
        if part.module is not expected.module:
            given, wanted = part.constants, expected.constants
            if given.keys() != wanted.keys():
                return None
            for path, value in given.items():
                if value is not wanted[path] and not is_same(value, wanted[path]):
                    return None
        self._watch = part.watch()
        self._last, self._tensors, self._state = module, tensors, self._watch()
        return tensors


def argument_of(name: str) -> str:
    """The argument that a part of it belongs to, by their names."""
    return name.partition("[")[0].partition(".")[0]


def state_of(x: Tensor) -> str:
    """Whether a tensor is untracked, a leaf, or computed from leaves, as `Given` has it."""
    primitive = x.primitive
    if not isinstance(primitive, AutodiffTensor):
        return ""
    return "leaf" if isinstance(primitive.node, Leaf) else "tracked"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
