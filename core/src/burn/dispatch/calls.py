"""Calls of ops on tensors: a function for each op, with the signature of its definition.

Where the operands agree, a call goes straight to the op of the device. It is resolved once for the
types of its operands (`burn.dispatch.resolution`), and then costs two look-ups. All else, such as
operands of two dtypes and numbers that promote, goes to `Dispatch.execute`. `Dispatch.explain`
raises the error of a call that failed, after the handler: so users see one without a context.

The text of the functions is generated from the definitions, since one function for all ops takes
twice as long. Ops whose operands and attributes are alike share it.
"""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import ref

from burn.dispatch._operands import DispatchTensor
from burn.dispatch.resolution import not_flat, resolve_uniform, settle, wrapped
from burn.ops import REGISTRY, Op, Operand
from burn.ops.signature import parameters_of

if TYPE_CHECKING:
    from burn.aliases import Primitive
    from burn.devices import TensorType
    from burn.dispatch.dispatch import Dispatch

__all__ = ["call_of", "call_on_lists"]

_Tensor = TypeVar("_Tensor", bound=DispatchTensor)


def call_of(
    dispatch: Dispatch[_Tensor], name: str, *, reflected: bool = False, views: Any = None
) -> Callable[..., _Tensor]:
    """The function of an op: operands are positional, attributes are keywords.

    Parameters
    ----------
    dispatch : Dispatch
        What runs the calls whose operands do not agree.
    name : str
        The op.
    reflected : bool
        Whether its two operands are taken in reverse, as for ``number + tensor``.
    views : object, optional
        Of a view op: where its results become views (`burn.functions.views`). The attributes are
        positional, too.
    """
    definition = REGISTRY[name]
    if not any(spec.promotes for spec in definition.operands.values()):
        return functools.partial(dispatch.execute, name)
    make = _maker(_source(definition, reflected=reflected, is_view=views is not None))
    made: Callable[..., _Tensor] = make(name, dispatch, views)
    made.__name__ = made.__qualname__ = name
    return made


def call_on_lists(
    dispatch: Dispatch[Any],
    name: str,
    lists: Sequence[list[Primitive]],
    tensor_type: TensorType,
    attributes: Mapping[str, Any],
) -> Sequence[Primitive]:
    """Run an op of lists on primitives of one TensorType, without a tensor around each.

    Lists that are `Donated` remain so where the backend overwrites them.
    """

    def tensors() -> list[list[Any]]:
        return [[dispatch.wrap(item, tensor_type) for item in items] for items in lists]

    try:
        found = tensor_type.calls.get(name) or resolve_uniform(name, tensors(), tensor_type, name)
        copy, function, *_ = found
        if not tensor_type.device.ops.backend.overwrites_donated:
            lists = [list(items) for items in lists]
        made: Sequence[Primitive] = (  # of an op with several outputs
            function(*lists, **attributes)
            if copy is None
            else copy().run(function, *lists, **attributes)
        )
    except Exception as error:  # noqa: BLE001 — `explain` says what is wrong
        failure = error
    else:
        if made and made[0].__class__ in {list, tuple}:
            raise not_flat(made[0], name)
        return made
    return dispatch.explain(failure, name, tensors(), attributes)


@functools.cache
def _maker(source: str) -> Callable[..., Callable[..., Any]]:
    """What makes the calls of ops that share a text."""
    namespace: dict[str, Any] = {
        "__name__": __name__,
        "settle": settle,
        "wrapped": wrapped,
        "ref": ref,
    }
    exec(compile(source, "<burn.dispatch>", "exec"), namespace)  # noqa: S102 — made of the names of operands and attributes
    return namespace["make"]  # type: ignore[no-any-return]  # defined by the text


_CALL: Final = """\
def make(name_, dispatch_, views_):
    execute_, resolve_, explain_ = dispatch_.execute, dispatch_.resolve, dispatch_.explain
    def call({parameters}):
        try:
            {before}type_, lead_ = {lead}.tensor_type, {lead}.primitive
        except (AttributeError, LookupError, TypeError):
            {execute}
{agreement}\
        try:
            copy_, function_, types_, class_, output_ = type_.calls[{key}]
        except AttributeError:  # an operand is no tensor
            {execute}
        except KeyError:
            copy_, function_, types_, class_, output_ = resolve_(
                name_, ({operands},), type_, {key}, {attributes}
            )
        try:
            if copy_ is None:
                primitive_ = function_({primitives}{keywords})
            else:
                primitive_ = copy_().run(function_, {primitives}{keywords})
        except Exception as error_:
            failure_ = error_
        else:
{result}
        explain_(failure_, name_, ({operands},), {attributes})
    return call
"""

_AGREES: Final = """\
        other_ = {name}.tensor_type
        if other_ is not type_ and other_ not in type_.constants:
            if type_ not in other_.constants:
                {execute}
            type_ = other_
"""
"""A tensor: of the type of the others, or a constant beside them, or they beside it."""

_IS_TENSOR: Final = f"""\
        if {{name}}.__class__ is not {{lead}}.__class__:
            {{execute}}
{_AGREES}"""

_IS_TENSOR_OR_NONE: Final = f"""\
        if {{name}} is not None:
{textwrap.indent(_IS_TENSOR, "    ")}"""

_IS_TENSOR_OR_NUMBER: Final = f"""\
        if {{name}}.__class__ is {{lead}}.__class__:
{textwrap.indent(_AGREES, "    ")}\
            {{name}}_ = {{name}}.primitive
        else:
            try:
                {{name}}_ = type_.scalars[{{name}}.__class__]({{name}})
            except (KeyError, OverflowError):
                {{execute}}
"""

_ARE_TENSORS: Final = """\
        for one_ in {name}:
            if one_.__class__ is not {lead}.__class__ or one_.tensor_type is not type_:
                {execute}
"""

_RESULT: Final = """\
            result_ = class_()
            result_.primitive = primitive_
            result_.tensor_type = {output}
            result_.link = None
            return result_"""

_BEFORE_VIEW: Final = "writes_ = views_.writes; "

_VIEW: Final = """\
            result_ = class_()
            result_.primitive = primitive_
            result_.tensor_type = {output}
            link_ = {lead}.link
            if link_.__class__ is tuple:
                root_ = link_[0]
                live_ = root_.link
            else:
                root_, live_, link_ = {lead}, link_, None
            result_.link = root_, link_, name_, ({values},)
            if live_ is None:
                live_ = views_.of(root_)
            live_.add(ref(result_, live_.discard))
            if writes_ != views_.writes:
                views_.compute(result_)
            return result_"""
"""As `Views.add` of `burn.functions.views`, in line: a call takes a tenth of a view."""

_RESULTS: Final = """\
            return wrapped(primitive_, types_, class_)"""

_OF_ANY_DTYPE: Final = "types_[primitive_.dtype]"
_OF_ONE_DTYPE: Final = "output_ or settle(type_.calls, {key}, types_, primitive_)"


def _source(definition: Op, *, reflected: bool, is_view: bool) -> str:
    """The text of a function ``make``, from the name of an op to its call."""
    operands = definition.operands
    attributes = definition.attributes.values()
    parameters = parameters_of(operands)
    if reflected:
        parameters.reverse()
    parameters.append("/")
    if attributes:
        if not is_view:
            parameters.append("*")
        parameters += [
            attribute.name if attribute.required else f"{attribute.name}={attribute.default!r}"
            for attribute in attributes
        ]
    keywords = "".join([f", {attribute.name}={attribute.name}" for attribute in attributes])
    others = [name for name, spec in operands.items() if not spec.promotes]
    types = "".join([", " + _read(other, "tensor_type", operands[other]) for other in others])
    key = f"(name_{types})" if others else "name_"
    promoting = [name for name, spec in operands.items() if spec.promotes]
    lead = promoting.pop() if reflected else promoting.pop(0)
    if operands[lead].is_list:
        promoting.insert(0, lead)
    parts = {
        "execute": f"return execute_(name_, {', '.join(operands)}{keywords})",
        "lead": f"{lead}[0]" if operands[lead].is_list else lead,
        "key": key,
        "operands": ", ".join(operands),
        "keywords": keywords,
        "values": ", ".join([attribute.name for attribute in attributes]),
        "attributes": "{"
        + ", ".join([f"{attribute.name!r}: {attribute.name}" for attribute in attributes])
        + "}",
    }
    agreement = [_agreement(operands[name]).format(name=name, **parts) for name in promoting]
    result = _RESULTS if definition.returns_tuple else _VIEW if is_view else _RESULT
    output = _OF_ANY_DTYPE if "dtype" in definition.attributes else _OF_ONE_DTYPE
    return _CALL.format(
        **parts,
        parameters=", ".join(parameters),
        agreement="".join(agreement),
        primitives=", ".join(
            [_primitive(name, spec, is_lead=name == lead) for name, spec in operands.items()]
        ),
        before=_BEFORE_VIEW if is_view else "",
        result=result.format(output=output.format(key=key), **parts),
    )


def _agreement(spec: Operand) -> str:
    """The text of lines that see whether an operand agrees with the leading one."""
    if spec.is_list:
        return _ARE_TENSORS
    if spec.scalar:
        return _IS_TENSOR_OR_NUMBER
    return _IS_TENSOR_OR_NONE if spec.optional else _IS_TENSOR


def _primitive(name: str, spec: Operand, *, is_lead: bool) -> str:
    """The text of what the backend takes of an operand."""
    if spec.is_list:
        return f"[one_.primitive for one_ in {name}]"
    if is_lead:
        return "lead_"
    if spec.promotes and spec.scalar:
        return f"{name}_"
    return _read(name, "primitive", spec)


def _read(name: str, attribute: str, spec: Operand) -> str:
    """The text of an attribute of a tensor that may be None."""
    return (
        f"{name} if {name} is None else {name}.{attribute}"
        if spec.optional
        else f"{name}.{attribute}"
    )
