"""Recorders: the functions that run an op on tracked primitives, and record a node.

Their text is generated from the definitions of the ops, since one function for all ops takes twice
as long. Ops whose operands are alike share it.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from burn.autodiff.graph import Node, Output, Rule
from burn.autodiff.recording_state import recording, records
from burn.ops import Op, OpTable
from burn.ops.quiet import without_frame
from burn.ops.signature import Primitive, parameters_of

if TYPE_CHECKING:
    from burn.autodiff.graph import AutodiffTensor

__all__ = ["recorder"]

Saver: TypeAlias = Callable[[Sequence[Any]], Sequence[Any]]
"""From the primitives of operands and outputs to the values that a gradient rule saves."""

_RECORDER: Final = """\
def make(rule_, own_, dtype_, saver_):
    savers_ = {{}}
    def wrap(copy_, inner_):
        def call({parameters}, /{attributes}):
{operands}\
            if {no_node}:
                return {run}{names}{keywords})
            result_ = {run}{primitives}{keywords})
            node_ = Node()
            if not is_recording() and not records(own_, ({names},), node_):
                return result_
            node_.rule = rule_
            node_.parents = ({nodes},)
            node_.needs = needs_ = {needs}
            node_.attrs = {attrs}
{outputs}
        return call
    return wrap
"""

_TENSOR: Final = """\
            if type({name}) is own_:
                {name}_, {name}_node_ = {name}.primitive, {name}.node
            else:
                {name}_, {name}_node_ = {name}, None
"""

_LIST: Final = """\
            {name}_, {name}_node_ = parts({name}, own_)
"""

_SAVED: Final = """\
            try:
                save_ = savers_[needs_]
            except KeyError:
                save_ = savers_[needs_] = saver_(needs_)
            node_.saved = save_(({primitives}, {result}))
"""

_NOTHING_SAVED: Final = """\
            node_.saved = ()
"""

_ONE_OUTPUT: Final = """\
            node_.output_shape = result_.shape
            tensor_ = own_()
            tensor_.primitive = result_
            tensor_.node = node_
            return tensor_"""

_SEVERAL_OUTPUTS: Final = """\
            node_.output_shape = result_[0].shape
            return tracked(result_, node_, own_, dtype_)"""


def recorder(
    definition: Op, rule: Rule, tensor_type: type[AutodiffTensor], dtype: Callable[[Any], Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """What makes of the function of an op on primitives the one that records it.

    Parameters
    ----------
    definition : Op
        The op.
    rule : Rule
        How to differentiate it.
    tensor_type : type
        The class of tracked primitives.
    dtype : callable
        The DType of a primitive below.
    """
    saver = functools.partial(_saver, definition, rule.ops)

    def wrap(inner: Callable[..., Any]) -> Callable[..., Any]:
        copy, function = without_frame(inner)
        make = _maker(_source(definition, is_quiet=copy is not None))
        made: Callable[..., Any] = make(rule, tensor_type, dtype, saver)(copy, function)
        return made

    return wrap


@functools.cache
def _maker(source: str) -> Callable[..., Any]:
    """What makes the recorders of ops that share a text."""
    names = {"is_recording": recording.get, "records": records}
    namespace: dict[str, Any] = {**names, "Node": Node, "parts": _parts, "tracked": _tracked}
    exec(compile(source, "<burn.autodiff>", "exec"), namespace)  # noqa: S102 — made of the names of operands
    return namespace["make"]  # type: ignore[no-any-return]  # defined by the text


def _source(definition: Op, *, is_quiet: bool) -> str:
    """The text of a function ``make``; `is_quiet` says that a call runs in a Context of its own."""
    specs = definition.operands.items()
    names = [name for name, _ in specs]
    nodes = [f"{name}_node_" for name in names]
    primitives = ", ".join([f"{name}_" for name in names])
    needs = ", ".join(
        [
            f"tuple([one_ is not None for one_ in {node}])"
            if spec.is_list
            else f"{node} is not None"
            for node, (_, spec) in zip(nodes, specs, strict=True)
        ]
    )
    if len(specs) == 1 and not any(spec.is_list for _, spec in specs):
        needs = "True"  # else there is no node
    if all(attribute.required for attribute in definition.attributes.values()):
        attributes = list(definition.attributes)
        keywords = "".join([f", {name}={name}" for name in attributes])
        accepted = ", *" + "".join([f", {name}" for name in attributes]) if attributes else ""
        attrs = "{" + ", ".join([f"{name!r}: {name}" for name in attributes]) + "}"
    else:  # those that are not given stay so
        keywords = accepted = ", **attrs"
        attrs = "attrs"
    saved = _SAVED if definition.saves else _NOTHING_SAVED
    result = "*result_" if definition.returns_tuple else "result_"
    outputs = _SEVERAL_OUTPUTS if definition.returns_tuple else _ONE_OUTPUT
    return _RECORDER.format(
        run="copy_().run(inner_, " if is_quiet else "inner_(",
        parameters=", ".join(parameters_of(definition.operands)),
        operands="".join(
            [(_LIST if spec.is_list else _TENSOR).format(name=name) for name, spec in specs]
        ),
        no_node=" and ".join(
            [
                f"not any({node})" if spec.is_list else f"{node} is None"
                for node, (_, spec) in zip(nodes, specs, strict=True)
            ]
        ),
        names=", ".join(names),
        primitives=primitives,
        needs=f"({needs},)",
        nodes=", ".join(nodes),
        attributes=accepted,
        keywords=keywords,
        attrs=attrs,
        outputs=saved.format(primitives=primitives, result=result) + outputs,
    )


def _parts(
    operands: list[Any], tensor_type: type[AutodiffTensor]
) -> tuple[list[Any], tuple[Node | None, ...]]:
    """The primitives of a list, and their nodes."""
    primitives: list[Any] = []
    nodes: list[Node | None] = []
    for operand in operands:
        is_own = operand.__class__ is tensor_type
        primitives.append(operand.primitive if is_own else operand)
        nodes.append(operand.node if is_own else None)
    return primitives, tuple(nodes)


def _tracked(
    outputs: Sequence[Any],
    node: Node,
    tensor_type: type[AutodiffTensor],
    dtype: Callable[[Any], Any],
) -> tuple[Any, ...]:
    """The outputs of a call; integers, such as indices, have no gradient."""
    found = []
    for index, output in enumerate(outputs):
        if dtype(output).is_float:
            tensor = tensor_type()
            tensor.primitive = output
            tensor.node = Output(node, index, output.shape)
            found.append(tensor)
        else:
            found.append(output)
    return tuple(found)


def _saver(definition: Op, ops: OpTable, needs: tuple[Any, ...]) -> Saver:
    """A function that selects the values to save if the gradients of `needs` are required.

    It takes the primitives of the operands and outputs, in order. A value that is not needed is
    saved as None, so that a rule always unpacks the same names.
    """
    wanted = [any(need) if isinstance(need, tuple) else need for need in needs]
    names_in_order = (*definition.operands, *definition.outputs)
    indices = {name: index for index, name in enumerate(names_in_order)}
    saves = definition.saves
    if isinstance(saves, Mapping):
        required = {
            name
            for (operand, names), needed in zip(_in_order(definition, saves), wanted, strict=True)
            if needed
            for name in names
        }
        every = {name for names in saves.values() for name in names}
        names = sorted(every, key=lambda name: indices[name.partition(".")[0]])
    else:
        names = list(saves)
        required = set(names)
    readers = [_reader(name, indices, ops) if name in required else _nothing for name in names]
    if not readers:
        return _save_nothing
    if len(readers) == 1:
        (only,) = readers
        return lambda values: (only(values),)
    return lambda values: [read(values) for read in readers]


def _in_order(
    definition: Op, saves: Mapping[str, tuple[str, ...]]
) -> list[tuple[str, tuple[str, ...]]]:
    return [(operand, saves.get(operand, ())) for operand in definition.operands]


def _nothing(values: Sequence[Any]) -> None:
    del values


def _save_nothing(values: Sequence[Any]) -> tuple[()]:
    del values
    return ()


def _reader(name: str, indices: Mapping[str, int], ops: OpTable) -> Callable[[Sequence[Any]], Any]:
    base, _, field = name.partition(".")
    index = indices[base]
    if not field:
        return operator.itemgetter(index)
    read: Callable[[Any], Any] = ops.dtype if field == "dtype" else _shape

    def read_field(values: Sequence[Any]) -> Any:
        value = values[index]
        if value is None:
            return None
        return [read(part) for part in value] if isinstance(value, list) else read(value)

    return read_field


def _shape(value: Primitive) -> tuple[int, ...]:
    return () if isinstance(value, (bool, int, float, complex)) else tuple(value.shape)
