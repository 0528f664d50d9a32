"""Specialization: a compiled call, as a function that recognizes such calls and runs them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

from burn.autodiff import recording
from burn.devices import Device, running_trace, trace_counts, transforms
from burn.devices.default import chosen
from burn.devices.transfer import fail
from burn.dispatch import DispatchTensor
from burn.errors import ArgumentError, BurnError
from burn.functions.assignment import assign
from burn.functions.common import dispatch
from burn.functions.views import is_view, rebind, root_of, view_by
from burn.generator import reserve
from burn.ir import GraphIr
from burn.ops.observing import changes
from burn.ops.quantized_primitive import of_parts
from burn.quant_scheme import QuantScheme
from burn.transforms._code import Code, Given
from burn.transforms._donation import Donors, with_donations
from burn.transforms._parts import scheme_of
from burn.transforms._program_vjp import ProgramPullback, made_ready, track
from burn.transforms.compilation import Miss

if TYPE_CHECKING:
    from burn.devices import TensorType
    from burn.tensor.tensor import Tensor
    from burn.transforms._compiling import Recorded
    from burn.transforms._program_vjp import Backward
    from burn.transforms._results import Output

__all__ = ["Specialization"]

_FILE: Final = "<burn.compile>"
"""File name of the generated functions."""

_TRACED: Final = Miss("the trace around it")


class Specialization:
    """A call that was compiled.

    Parameters
    ----------
    recorded : Recorded
        What the call does.
    donated : sequence of Given
        The arguments that the caller gives up.
    lock : lock
        Held while a call rebinds tensors.

    Attributes
    ----------
    call : callable
        From the arguments and the keywords to the result; for another call to a
        `burn.transforms.compilation.Miss`.
    described : dict of str to str
        The arguments, as a warning describes them.
    graph : GraphIr
        The program, after the passes.
    """

    def __init__(self, recorded: Recorded, donated: Sequence[Given], lock: Any) -> None:
        self.described = recorded.signature.described
        self._donated = donated
        self._traced = with_donations(recorded, donated)
        self._lock = lock
        self.executable: Any = None
        if recorded.device is not None:
            self.executable = made_ready(self._traced, recorded.device)
        self.call: Callable[[Any, Any], Any] = self._generated(recorded)

    @property
    def graph(self) -> GraphIr:
        return self._traced if self.executable is None else self.executable.graph

    def _generated(self, recorded: Recorded) -> Callable[[Any, Any], Any]:
        """The function that recognizes the call and runs the program."""
        code = recorded.code
        code.names |= {
            "transforms": transforms,
            "recording": recording.get,
            "chosen": chosen,
            "counts": trace_counts,
            "running_trace": running_trace,
            "traced": _TRACED,
        }
        checks, code.lines = code.lines, []
        code.lines.append("if counts[0] and running_trace() is not None: return traced")
        code.unless("not transforms()", "the transforms around it")
        code.unless(f"recording() is {recording.get()}", "burn.no_grad()")
        if recorded.asks_for_default:
            code.unless(f"chosen() is {code.constant(chosen())}", "the default device")
        code.lines += checks
        for read, value in recorded.watched:
            code.unless(
                f"{code.constant(read)}() == {code.constant(value)}",
                "a module or an optimizer that it uses: its mode, or an attribute",
            )
        device = recorded.device
        if device is not None:
            hardware = code.constant(device)
            code.unless(f"{hardware}.compiles", f"the settings of {device}")
            if _quantizes(recorded.graph):
                config = code.constant(device.settings.quantization)
                what = f"the settings of {device} for quantized tensors"
                now = f"{hardware}.settings.quantization"
                code.unless(f"{now} is {config} or {now} == {config}", what)
        self._check_arguments(recorded, code)
        body = self._body(recorded, code)
        lock = code.constant(self._lock_of(recorded))
        lines = [
            "def call(args, keywords):",
            *[f"    {line}" for line in code.lines],
            f"    with {lock}:",
            *[f"        {line}" for line in body],
        ]
        text = "\n".join(lines)
        exec(compile(text, _FILE, "exec"), code.names)  # noqa: S102 — it has names of objects alone
        return code.names.pop("call")  # type: ignore[no-any-return]  # the function

    def _lock_of(self, recorded: Recorded) -> Any:
        """What is held while a call runs the program and rebinds tensors."""
        if recorded.rebound or recorded.effects or self._traced.donated or not self.executable:
            return self._lock
        return self.executable.lock

    def _check_arguments(self, recorded: Recorded, code: Code) -> None:
        """What is asked of the arguments together."""
        arguments = [given for given in recorded.given if given.is_argument and given.is_first]
        leaves = [f"{argument.variable}.primitive.node" for argument in arguments if argument.state]
        if len(leaves) > 1:
            code.unless(
                f"len({{{', '.join(leaves)}}}) == {recorded.leaf_count}",
                "which arguments are one leaf",
            )
        rebound = {index for index, _ in recorded.rebound}
        writes = any(recorded.given[index].is_argument for index in rebound)
        outside = {
            id(code.names[given.variable])
            for index, given in enumerate(recorded.given)
            if not given.is_argument and (writes or index in rebound or given.state)
        }
        for argument in arguments if outside else ():
            code.unless(
                f"id({argument.variable}) not in {code.constant(frozenset(outside))}",
                f"whether {argument.name} is a tensor from outside",
            )
        for index, _ in recorded.rebound:
            target = recorded.given[index]
            others = [
                argument.variable for argument in arguments if argument.variable != target.variable
            ]
            if not target.is_argument:
                continue
            if others:
                condition = " and ".join([f"{other} is not {target.variable}" for other in others])
                code.unless(condition, "which arguments are one tensor")
            code.names["check_views"] = _check_views
            users = [given.variable for given in recorded.given if given.is_first]
            code.lines.append(
                f"if {target.variable}.link: check_views({target.variable}, {target.name!r}, "
                f"({''.join([f'{user}, ' for user in users])}))"
            )

    def _body(self, recorded: Recorded, code: Code) -> list[str]:
        """The lines that read what is from outside, run the program and rebind."""
        checks, code.lines = code.lines, []
        graph = recorded.graph
        if recorded.device is not None and (graph.outputs or graph.draw or self.graph.operations):
            self._run(recorded, recorded.device, code)
        else:
            code.lines += _joined(self._outside(recorded, code))
        self._rebind(recorded, code)
        for effect in recorded.effects:
            code.lines.append(f"{code.constant(effect, 'effect')}()")
        for given in self._donated:
            code.names["give_up"] = _give_up
            code.lines.append(f"give_up({given.variable}, {given.name!r})")
        self._results(recorded, code)
        code.lines.append(f"return {recorded.result}")
        body, code.lines = code.lines, checks
        return body

    def _outside(self, recorded: Recorded, code: Code) -> dict[str, list[str]]:
        """For the variables of tensors from outside, the lines that check them.

        One that is rebound may not share elements with an argument.
        """
        found = dict(recorded.checks)
        arguments = [
            given.variable for given in recorded.given if given.is_argument and given.is_first
        ]
        code.names["check_shared"] = _check_shared
        for index, _ in recorded.rebound if arguments else ():
            target = recorded.given[index]
            x = target.variable
            if not target.is_argument:
                check = f"if {x}.link: check_shared({x}, ({', '.join(arguments)},))"
                found[x] = [*found[x], check]
        return found

    def _run(self, recorded: Recorded, device: Device, code: Code) -> None:
        """The lines that run the program."""
        names = code.names
        watched: Callable[..., Any] = _as_it_is
        checks = self._outside(recorded, code)
        donating: list[str] = []
        if self._traced.donated:
            donors = Donors(self._traced, recorded.given, device, code)
            watched = donors.watched
            donating = donors.lines(checks)
        code.lines += [*_joined(checks), *donating]
        # What the inputs hold before: a tensor that is rebound holds something else then.
        inputs = [f"p{index}" for index in range(len(recorded.given))]
        numbers = [f"n{index}" for index in range(len(recorded.numbers))]
        values = [*[given.value for given in recorded.given], *recorded.numbers]
        code.lines += [
            f"{name} = {value}" for name, value in zip([*inputs, *numbers], values, strict=True)
        ]
        draw = "0, 0"
        if recorded.graph.draw is not None:
            names["reserve"] = reserve
            generator = code.constant(device.generator)
            draw = "seed, offset"
            code.lines.append(f"{draw} = reserve({generator}, {recorded.graph.draw.words})")

        def renew() -> None:
            names["changes_seen"] = changes[0]
            names["run"] = watched(self.executable.function)

        renew()
        names |= {
            "changes": changes,
            "renew": renew,
            "explain": functools.partial(self._explain, device),
        }
        outputs = "".join([f"o{index}, " for index in range(len(recorded.graph.outputs))])
        target = f"({outputs}) = " if outputs else ""
        arguments = ", ".join([*inputs, *numbers, draw])
        run = [f"{target}run({arguments})"]
        if self.executable.checks_numbers:
            code.lines += self._check_numbers(recorded, arguments, names)
        if donating:
            code.lines.append(f"if copies: given = with_copies(({arguments}), copies)")
            run = [f"if copies: {target}run(*given)", f"else: {run[0]}"]
        code.lines += [
            "if changes[0] != changes_seen: renew()",
            "failure = None",
            "try:",
            *[f"    {line}" for line in run],
            "except Exception as error: failure = error",
            "if failure is not None: explain(failure)",
        ]
        if recorded.backward is not None:
            self._track(recorded, recorded.backward, device, draw, code)

    def _check_numbers(
        self, recorded: Recorded, arguments: str, names: dict[str, Any]
    ) -> list[str]:
        """The line that checks numbers which no run before had.

        What allows a count allows a greater one.
        """
        scalars = recorded.graph.inputs[len(recorded.given) :]
        allowed: dict[str, Any] = {f"a{index}": None for index in range(len(scalars))}

        def check(given: Sequence[Any]) -> None:
            self.executable.check(given)
            numbers = given[len(recorded.given) : len(recorded.given) + len(allowed)]
            names.update(zip(allowed, numbers, strict=True))

        names |= {"check_numbers": check, **allowed}
        differ = [
            f"{name} is None or n{index} < {name}"
            if scalar.kind is int  # type: ignore[union-attr]  # a number
            else f"n{index} != {name}"
            for index, (name, scalar) in enumerate(zip(allowed, scalars, strict=True))
        ]
        return [f"if {' or '.join(differ)}: check_numbers(({arguments}))"]

    def _track(
        self, recorded: Recorded, backward: Backward, device: Device, draw: str, code: Code
    ) -> None:
        """The line that makes tracked outputs."""
        code.names["track"] = functools.partial(track, ProgramPullback(recorded, backward, device))
        nodes = [f"{recorded.given[index].variable}.primitive.node" for index in backward.sources]
        saved = [f"p{index}" if kind == "input" else f"o{index}" for kind, index in backward.saved]
        tracked = ", ".join([f"o{index}" for index in backward.outputs])
        numbers = [f"n{index}" for index in backward.numbers]
        code.lines.append(
            f"({tracked},) = track([{', '.join(nodes)}], ({tracked},), "
            f"({''.join([f'{name}, ' for name in saved])}), "
            f"({''.join([f'{number}, ' for number in numbers])}), ({draw}))"
        )

    def _rebind(self, recorded: Recorded, code: Code) -> None:
        """The lines that give tensors their new values."""
        names = code.names
        for input, index in recorded.rebound:
            one = recorded.given[input]
            output: Output = recorded.outputs[index]
            x, new = one.variable, _primitive(output, index, code)
            keeps_type = output.tensor_type is one.tensor_type and not one.part
            names["rebind"] = _rebind
            general = (
                f"rebind({x}, {new}, {code.shared(output.tensor_type, 'T')}, {output.is_leaf})"
            )
            if keeps_type and not output.is_leaf and not one.state:
                code.lines += [
                    f"if {new} is not p{input}:",
                    f"    if {x}.link: {general}",
                    f"    else: {x}.primitive = {new}",
                ]
            elif keeps_type and output.is_leaf and one.state == "leaf":
                names["renew_leaf"] = dispatch.renew_leaf
                code.lines += [
                    f"if {new} is not p{input}:",
                    f"    if {x}.link or not renew_leaf({x}, {new}): {general}",
                ]
            else:
                code.lines.append(general)

    def _results(self, recorded: Recorded, code: Code) -> None:
        """The lines that make tensors of outputs."""
        names = code.names
        for index, output in enumerate(recorded.outputs[: recorded.result_count]):
            if not output.is_first:
                continue
            kind = code.shared(output.tensor_type, "T")
            if output.is_leaf:
                names["new_leaf"] = _new_leaf
                code.lines.append(f"r{index} = new_leaf(o{index}, {kind})")
                continue
            names["Tensor"] = dispatch.tensor_class
            code.lines.append(
                f"r{index} = Tensor(); r{index}.primitive = {_primitive(output, index, code)}; "
                f"r{index}.tensor_type = {kind}; r{index}.link = None"
            )
        for view in recorded.views:
            made = view.base
            if view.steps:
                names["view_by"] = view_by
                made += f", {code.constant(view.steps)}, is_tracked={view.is_tracked}"
                made = f"view_by({made})"
            code.lines.append(f"{view.variable} = {made}")

    def _explain(self, device: Device, failure: Exception) -> NoReturn:
        """Raise the error of a run that failed, outside of the handler."""
        operation = self.executable.describe(failure)
        if isinstance(failure, BurnError):
            failure.operation = operation
        fail(device, failure, operation)


def _as_it_is(run: Callable[..., Any]) -> Callable[..., Any]:
    return run


def _joined(checks: Mapping[str, Sequence[str]]) -> list[str]:
    return [line for lines in checks.values() for line in lines]


def _quantizes(graph: GraphIr) -> bool:
    """Whether a program, or one in it, has an operation on codes."""
    values = [
        value
        for operation in graph.operations
        for value in getattr(operation, "attributes", {}).values()
        if isinstance(value, (QuantScheme, GraphIr))
    ]
    return any(isinstance(value, QuantScheme) or _quantizes(value) for value in values)


def _primitive(output: Output, index: int, code: Code) -> str:
    """How a generated function makes the primitive of an output, or of parts from there on."""
    dtype: Any = output.tensor_type.dtype
    scheme = scheme_of(dtype)
    if scheme is None:
        return f"o{index}"
    code.names["of_parts"] = of_parts
    parts = ", ".join([f"o{index + part}" for part in range(len(scheme.part_dtypes))])
    return f"of_parts([{parts}], {code.constant(scheme)})"


def _check_views(x: Tensor, name: str, users: Sequence[Tensor]) -> None:
    """Raise ArgumentError if a tensor that a function writes to is a view, or if one is used."""
    if any(is_view(user) and root_of(user) is root_of(x) for user in users):
        raise ArgumentError(
            f"the function writes to {name}, which shares elements with another tensor",
            hint="Pass a copy: x.astype(x.dtype, copy=True)",
            operation="compile",
        )


def _check_shared(target: Tensor, arguments: Sequence[Tensor]) -> None:
    """Raise ArgumentError if a tensor from outside that a function writes to is passed as well."""
    if any(root_of(argument) is root_of(target) for argument in arguments):
        raise ArgumentError(
            "the function writes to a tensor from outside that shares elements with an argument",
            hint="Pass a copy: x.astype(x.dtype, copy=True)",
            operation="compile",
        )


def _rebind(x: Tensor, primitive: Any, tensor_type: TensorType, is_leaf: bool) -> None:
    value: Tensor = dispatch.wrap(primitive, tensor_type)
    if is_leaf:
        assign(x, value, require_grad=True)
    else:
        rebind(x, value)


def _new_leaf(primitive: Any, tensor_type: TensorType) -> Tensor:
    leaf: Tensor = dispatch.require_grad(dispatch.wrap(primitive, tensor_type))
    return leaf


class _GivenUp:
    """What a tensor holds after a call that may have overwritten its memory."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        raise ArgumentError(
            f"the tensor was donated to a compiled function as {self._name}, which may have "
            "overwritten its memory",
            hint="Use what the function returns; or pass a copy",
            operation="compile",
        )


def _give_up(x: DispatchTensor, name: str) -> None:
    """Make any use of a tensor an error."""
    x.primitive = x.tensor_type = _GivenUp(name)  # type: ignore[assignment]  # any attribute of it raises
