"""Eager ops as programs of one op, which run as generated kernels.

The program of a call is lowered and fused like any other. Where that makes kernels alone, and few
of them, they run the call; otherwise its op's default does. Numbers are given at each launch, so
that none makes a new kernel. A plan is kept for what else decides which kernels these are: the
shapes and dtypes of the operands, and the other attributes.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from burn.compiler.eager_lengths import with_lengths_of_launches
from burn.compiler.fusion import fuses, planned
from burn.compiler.fusion_rules import number_for
from burn.compiler.passes import lowered, simplified
from burn.compiler.plan import KernelCall, Plan, Target
from burn.compiler.straight import Straight
from burn.errors import BurnError
from burn.ir import GraphIr, OperationIr, ScalarIr, TensorIr, infer
from burn.ops import REGISTRY, Op, OpTable, Role, Tag
from burn.ops.signature import parameters_of

if TYPE_CHECKING:
    from burn.dtype import DType
    from burn.ir.execution import Execution
    from burn.kernels import Kernel
    from burn.kernels.code import Code

__all__ = ["DialectRunner", "KernelRunner", "eager_method", "is_generated", "one_op_plan"]

_MOST_PLANS: Final = 4096
"""Plans of an op that are kept; when there are more, they are made anew."""

_MOST_KERNELS: Final = 4
"""Kernels of one call: what takes more is better run by the methods that its default calls."""

_NUMBERS: Final = frozenset([bool, int, float, complex])

_KINDS: Final = {Role.NUMBER: float, Role.RUNTIME_NUMBER: float, Role.RUNTIME_INTEGER: int}
"""Roles of attributes that a launch may be given, and the kinds of these numbers."""

_GIVEN: Final = (frozenset(_KINDS), frozenset([Role.RUNTIME_NUMBER, Role.RUNTIME_INTEGER]))
"""Roles of attributes that a launch is given: as many as the decomposition permits, which may
decide by a number what it computes."""


class KernelRunner(Protocol):
    """Runs the plans of calls on a device.

    Attributes
    ----------
    target : Target
        What its kernels compute.
    """

    target: Target

    def program(self, plan: Plan, table: OpTable) -> Execution:
        """What runs a plan of kernels and views, in any number of threads at a time."""


class DialectRunner:
    """Runs kernels in the language of a backend (`Backend.dialect`).

    Parameters
    ----------
    backend : Backend
        What has the language.
    """

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._codes: dict[Kernel, Code] = {}
        reports_late = getattr(backend, "named", None) is not None
        dialect = backend.dialect
        divided = {
            name: getattr(dialect, name)
            for name in ("rows", "strided_rows", "long_columns")
            if hasattr(dialect, name)
        }
        self.target = Target(dialect.dtypes, lambda _: False, reports_late=reports_late, **divided)

    def program(self, plan: Plan, table: OpTable) -> Execution:
        """A launch for each kernel, one after the other."""
        return Straight(plan, table, self._launch)

    def _launch(self, call: KernelCall) -> Callable[..., Any]:
        code = self._codes.get(call.kernel)
        if code is None:
            if len(self._codes) >= _MOST_PLANS:
                self._codes.clear()
            code = self._codes[call.kernel] = self._backend.dialect.source(call.kernel)
        shapes = tuple([output.shape for output in call.outputs])
        return self._backend.load_kernel(code, shapes)  # type: ignore[no-any-return]  # a function


def is_generated(definition: Op) -> bool:
    """Whether an op may be kernels: it computes with tensors, and the same each time."""
    if definition.tags & (Tag.VIEW | Tag.CREATION | Tag.RANDOM | Tag.DATA_DEPENDENT):
        return False
    if any(
        attribute.role in {Role.GRAPH, Role.SCHEME} for attribute in definition.attributes.values()
    ):
        return False
    is_fused = Tag.ELEMENTWISE in definition.tags or definition.combines is not None
    return definition.default is not None or is_fused


def one_op_plan(
    definition: Op,
    operands: Sequence[Any],
    attributes: Mapping[str, Any],
    table: OpTable,
    target: Target,
) -> Plan | None:
    """The plan of a call of an op.

    Parameters
    ----------
    definition : Op
        The op.
    operands : sequence
        The operands as those of an operation: TensorIr, tuples of these, None, or numbers. The
        program is given tensors and scalars in the order of their ids.
    attributes : dict of str to value
        The attributes; those that are a ScalarIr are given at each run.
    table : OpTable
        The ops of the device.
    target : Target
        What kernels of the device compute.

    Returns
    -------
    Plan or None
        None unless the call is kernels and views alone.

    Examples
    --------
    >>> import burn
    >>> target = Target(frozenset([burn.float32]), lambda operation: False)
    >>> x, table = TensorIr(0, (4, 8), burn.float32), burn.Device("cpu").ops
    >>> plan = one_op_plan(REGISTRY["softmax"], [x], {"axis": 1}, table, target)
    >>> [step.name for step in plan.steps]
    ['kernel of max, subtract, exp, sum, divide']
    """
    scalars = [value for value in attributes.values() if value.__class__ is ScalarIr]
    inputs = tuple(sorted([*_named(operands), *scalars], key=lambda value: value.id))
    metas = infer(definition, operands, attributes)
    first = 1 + max([value.id for value in inputs], default=0)
    outputs = tuple([TensorIr(number, *meta) for number, meta in enumerate(metas, first)])
    operation = OperationIr(definition.name, tuple(operands), dict(attributes), outputs)
    graph = simplified(GraphIr(inputs, (), (operation,), outputs), table)
    if any(value.dtype.is_complex for value in (*inputs, *outputs) if isinstance(value, TensorIr)):
        return None
    whole = dataclasses.replace(target, rows=0, strided_rows=0)  # reductions are divided below
    plan = planned(lowered(graph, lambda operation: not fuses(operation, target), table), whole)
    calls = [step for step in plan.steps if isinstance(step, OperationIr)]
    if any(Tag.VIEW not in REGISTRY[call.name].tags for call in calls):
        return None
    if len(plan.steps) - len(calls) > _MOST_KERNELS:
        return None
    return with_lengths_of_launches(plan, target)


def _named(operands: Sequence[Any]) -> Iterator[Any]:
    """The tensors and scalars among operands."""
    for operand in operands:
        if operand.__class__ is tuple:
            yield from operand
        elif operand.__class__ in {TensorIr, ScalarIr}:
            yield operand


def eager_method(
    definition: Op, table: OpTable, runner: KernelRunner, fallback: Callable[..., Any]
) -> Callable[..., Any]:
    """The callable of an op by generated kernels.

    Parameters
    ----------
    definition : Op
        An op that `is_generated`.
    table : OpTable
        The ops of the device.
    runner : KernelRunner
        Runs the kernels.
    fallback : callable
        Runs the calls that kernels do not compute.
    """
    return _EagerOp(definition, table, runner, fallback).method()


class _Call(NamedTuple):
    """A call as one of a program of one op.

    Attributes
    ----------
    operands, attributes
        As `one_op_plan` takes them.
    arguments : list of str
        What the program is run with: expressions of the parameters of the method.
    """

    operands: list[Any]
    attributes: dict[str, Any]
    arguments: list[str]


class _EagerOp:
    """Writes the functions of an op: its method, which finds a plan, and one for each plan."""

    def __init__(
        self, definition: Op, table: OpTable, runner: KernelRunner, fallback: Callable[..., Any]
    ) -> None:
        self._definition = definition
        self._table = table
        self._runner = runner
        self._fallback = fallback
        self._plans: dict[Any, Callable[..., Any]] = {}
        attributes = definition.attributes.values()
        self._numbers = {
            attribute.name: attribute.role for attribute in attributes if attribute.role in _KINDS
        }

    def method(self) -> Callable[..., Any]:
        """A function with the signature of the op."""
        definition = self._definition
        names: dict[str, Any] = {
            "_find": self._plans.get,
            "_plan_of": self._plan,
            "_NUMBERS": _NUMBERS,
        }
        parameters = parameters_of(definition.operands)
        parameters += ["*"] if definition.attributes else []
        for name, attribute in definition.attributes.items():
            names[f"_default_{name}"] = attribute.default
            parameters.append(name if attribute.required else f"{name}=_default_{name}")
        key = "".join([f"{part}, " for part in self._key()])
        operands = "".join([f"{name}, " for name in definition.operands])
        attributes = ", ".join([f"{name!r}: {name}" for name in definition.attributes])
        text = f"""
def {definition.name}({", ".join(parameters)}):
    _key = ({key})
    _plan = _find(_key)
    if _plan is None:
        _plan = _plan_of(_key, ({operands}), {{{attributes}}})
    return _plan({", ".join([*definition.operands, *self._numbers])})
"""
        exec(text, names)  # noqa: S102 — its names are those of a definition
        return names[definition.name]  # type: ignore[no-any-return]  # a function

    def _key(self) -> Iterator[str]:
        """What decides which plan a call has."""
        for name, spec in self._definition.operands.items():
            if spec.is_list:
                yield f"tuple([(x.shape, x.dtype) for x in {name}])"
            elif spec.optional:
                yield f"None if {name} is None else ({name}.shape, {name}.dtype)"
            elif spec.scalar:
                kind = f"{name}.__class__"
                yield f"{kind} if {kind} in _NUMBERS else ({name}.shape, {name}.dtype)"
            else:
                yield f"{name}.shape, {name}.dtype"
        for name, attribute in self._definition.attributes.items():
            if name in self._numbers:
                yield f"{name} is None"
            else:
                yield f"repr({name})" if attribute.role is Role.SCALAR else name

    def _plan(
        self, key: Any, operands: Sequence[Any], attributes: dict[str, Any]
    ) -> Callable[..., Any]:
        """What runs a call, and all with this key."""
        run = self._filled(operands, attributes)
        run = run or self._compiled(self._call(operands, attributes, _GIVEN[0]))
        if run is None and (self._numbers or any(map(_is_number, operands))):
            run = self._by_numbers(attributes)
        return _kept(self._plans, key, run or self._uncompiled(attributes))

    def _filled(
        self, operands: Sequence[Any], attributes: Mapping[str, Any]
    ) -> Callable[..., Any] | None:
        """Runs calls of a required op with tensors without elements, which no kernel has."""
        given = self._call(operands, attributes, frozenset()).operands
        if not self._definition.is_required or not any(
            0 in tensor.shape for tensor in _named(given)
        ):
            return None
        ((shape, dtype),) = infer(self._definition, given, attributes)
        number = dtype.numpy.type(self._definition.combines == "product").item()
        return lambda *_: self._table.full(shape=shape, fill_value=number, dtype=dtype)

    def _by_numbers(self, attributes: dict[str, Any]) -> Callable[..., Any]:
        """Runs calls with these attributes, by plans for some of their numbers."""
        plans: dict[Any, Callable[..., Any]] = {}
        split = len(self._definition.operands)
        roles = list(self._numbers.items())

        def run(*given: Any) -> Any:
            fixed = [
                number
                for (_, role), number in zip(roles, given[split:], strict=True)
                if role not in _GIVEN[1]
            ]
            key = repr([*filter(_is_number, given[:split]), *fixed])
            return (plans.get(key) or plan_of(key, given))(*given)

        def plan_of(key: Any, given: Sequence[Any]) -> Callable[..., Any]:
            whole = attributes | dict(zip(self._numbers, given[split:], strict=True))
            made = self._compiled(self._call(given[:split], whole, _GIVEN[1]))
            return _kept(plans, key, made or self._uncompiled(attributes))

        return run

    def _uncompiled(self, attributes: dict[str, Any]) -> Callable[..., Any]:
        """Runs the calls with these attributes that kernels do not compute."""
        fallback, split = self._fallback, len(self._definition.operands)
        fixed = {name: value for name, value in attributes.items() if name not in self._numbers}
        if not self._numbers:
            return lambda *operands: fallback(*operands, **fixed)

        def run(*given: Any) -> Any:
            numbers = dict(zip(self._numbers, given[split:], strict=True))
            return fallback(*given[:split], **fixed, **numbers)

        return run

    def _call(
        self, operands: Sequence[Any], attributes: Mapping[str, Any], given: frozenset[Role]
    ) -> _Call:
        """A call as a program: attributes of the roles `given` are scalars of it.

        So are numbers among the operands, if `given` are all roles that can be.
        """
        made = _Call([], {}, [])
        ids = itertools.count()

        def tensor(x: Any, text: str) -> TensorIr:
            made.arguments.append(text)
            return TensorIr(next(ids), tuple(x.shape), self._table.dtype(x))

        for name, operand in zip(self._definition.operands, operands, strict=True):
            if operand is None or _is_number(operand):
                made.operands.append(operand)
            elif isinstance(operand, list):
                parts = [tensor(x, f"{name}[{index}]") for index, x in enumerate(operand)]
                made.operands.append(tuple(parts))
            else:
                made.operands.append(tensor(operand, name))
        dtype = self._dtype(made.operands)
        for index, (name, operand) in enumerate(
            zip(self._definition.operands, operands, strict=True)
        ):
            if _is_number(operand) and given is _GIVEN[0] and _is_of(operand, dtype):
                kind = float if dtype.is_float else int
                made.operands[index] = ScalarIr(next(ids), kind)
                is_narrow = dtype.is_float and dtype.itemsize < 4
                made.arguments.append(f"_rounded({name}, _dtype).value" if is_narrow else name)
        for name, value in attributes.items():
            role = self._numbers.get(name)
            if role in given and value is not None:
                made.attributes[name] = ScalarIr(next(ids), _KINDS[role])
                made.arguments.append(name)
            else:
                made.attributes[name] = value
        return made

    def _dtype(self, operands: Sequence[Any]) -> Any:
        """The dtype of the operands that promote."""
        specs = self._definition.operands.values()
        found = [
            operand.dtype
            for operand, spec in zip(operands, specs, strict=True)
            if spec.promotes and operand.__class__ is TensorIr
        ]
        return found[0] if found else None

    def _compiled(self, call: _Call) -> Callable[..., Any] | None:
        """Kernels for a call: a function of the operands and numbers; None if there are none."""
        try:
            plan = one_op_plan(
                self._definition, call.operands, call.attributes, self._table, self._runner.target
            )
        except (BurnError, AttributeError, TypeError):  # of a decomposition that needs a number
            return None
        if plan is None:
            return None
        names = {
            "_run": self._runner.program(plan, self._table).function,
            "_rounded": number_for,
            "_dtype": self._dtype(call.operands),
        }
        parameters = ", ".join([*self._definition.operands, *self._numbers])
        item = "" if self._definition.returns_tuple else "[0]"
        text = f"lambda {parameters}: _run({', '.join([*call.arguments, '0', '0'])}){item}"
        return eval(text, names)  # type: ignore[no-any-return]  # noqa: S307 — as in `method`


def _is_number(operand: Any) -> bool:
    return operand.__class__ in _NUMBERS


def _is_of(number: Any, dtype: DType | None) -> bool:
    """Whether a number is one of a dtype of real numbers."""
    if dtype is None or dtype.is_bool or dtype.is_complex or isinstance(number, complex):
        return False
    return dtype.is_float or not isinstance(number, float)


def _kept(
    plans: dict[Any, Callable[..., Any]], key: Any, plan: Callable[..., Any]
) -> Callable[..., Any]:
    """A plan, which is kept."""
    if len(plans) >= _MOST_PLANS:
        plans.clear()
    plans[key] = plan
    return plan
