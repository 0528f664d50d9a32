"""Op: the one definition of an operation, from which everything else is derived.

A definition is a function. Its name, docstring and signature are the op's; its body is the shape
and dtype rule (`Op.infer`), from the metadata of the operands to that of the outputs. Decorators
add the other parts: ``@name.decomposition`` (the op computed by other ops) or ``@name.on_host``
(by NumPy), ``@name.requirement`` (allowed values of attributes), ``@name.number_requirement``
(allowed numbers among the operands), ``@name.gradient`` (the gradient rule), ``@name.batching``
(all examples of a batch at once), ``@name.sharding`` (what becomes of an axis that is divided),
``@name.cost`` (its floating-point
operations), ``@name.inverse_write`` (for a view: the operand after a write to the output),
``@name.block_map`` (for a view or selection: what becomes of the blocks of a quantized operand),
``@name.on_quantized`` (for a contraction: what runs on quantized operands), and
``@name.linearization`` (in place of a gradient rule, for an op whose attributes are programs). Such
a function is called ``_``, and gets the name of the op and the part, as in ``softmax.gradient``::

    @op(Tag.ELEMENTWISE)
    def reciprocal(x: FloatOperand) -> Meta:
        "Elementwise ``1 / x``."
        return x

    @reciprocal.decomposition
    def _(ops, x):
        return ops.divide(1.0, x)

    @reciprocal.gradient(saves=("output",))
    def _(ops, ctx, g):
        (output,) = ctx.saved
        return (ops.multiply(ops.negative(g), ops.multiply(output, output)),)
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, get_type_hints

from burn.dtype import DType, Kind
from burn.errors import BurnError, DTypeError, OperandTypeError
from burn.ops._attributes import Attribute, attributes_of
from burn.ops.signature import Example, Meta, Operand
from burn.public_calls import shown_value
from burn.quant_scheme import QuantScheme

__all__ = ["REGISTRY", "Context", "Op", "Saves", "Tag", "op", "register", "rename_function"]

Saves = tuple[str, ...] | Mapping[str, tuple[str, ...]]


class Tag(enum.Flag):
    """Properties of an op, which generic code reads instead of naming ops."""

    ELEMENTWISE = enum.auto()
    """Each output element depends on the input elements at its index; operands broadcast."""

    VIEW = enum.auto()
    """The output holds elements of the input, rearranged; no arithmetic."""

    REDUCTION = enum.auto()
    CONTRACTION = enum.auto()

    CREATION = enum.auto()
    """Has no tensor operand: the table passes the backend a `device` keyword."""

    RANDOM = enum.auto()

    COMPUTE_BOUND = enum.auto()
    """Gradient checkpointing keeps the outputs; it computes those of memory-bound ops again.

    The arithmetic for each element that is read or written grows with a length or a window:
    contractions, convolutions, pooling, resampling, sorts, decompositions. Reductions have the tag
    because their outputs are small; scans and sums at indices because a device may add in another
    order the next time, and gradients are to be the same to the bit.

    All other ops are memory-bound, with a constant number of operations for each element:
    elementwise functions, casts, layout, reads at indices, softmax and normalization.
    """

    NO_GRADIENT = enum.auto()
    """No output depends on an operand in a differentiable way."""

    DATA_DEPENDENT = enum.auto()
    """The shape of an output depends on data: `Op.infer` gives None for a length it cannot know."""

    SELECTION = enum.auto()
    """The outputs of the operands' dtype hold elements of them, or magnitudes of such: of quantized
    tensors they are quantized as well."""

    UNTRACKED = enum.auto()
    """The outputs are complex, or floats without a gradient: a tracked operand is an error."""

    CHECKS_INDICES = enum.auto()
    """An operand holds indices that may be out of range; an asynchronous device finds out late."""

    RAISES = enum.auto()
    """Other values of operands make it raise an error, such as a singular matrix."""

    NONE = 0


_STORAGE: Final = frozenset({"cast", "concat", "slice_assign"})
"""Ops beside views that work with every dtype that a device can store."""


class Context(Protocol):
    """The call that a gradient rule differentiates."""

    @property
    def saved(self) -> Sequence[Any]:
        """The values named in `saves`, in order; None for one that no required gradient uses."""

    @property
    def attrs(self) -> Mapping[str, Any]:
        """The attributes of the call."""

    @property
    def needs(self) -> Sequence[Any]:
        """For each operand, whether its gradient is required; a tuple for a list of tensors."""

    def shape(self, index: int) -> tuple[int, ...]:
        """Shape of an operand whose gradient is required."""


class Op:
    """An operation.

    Attributes
    ----------
    name : str
        The one name used in protocols, errors and reports.
    operands : dict of str to Operand
        The operands in order.
    attributes : dict of str to Attribute
        The keyword-only attributes.
    outputs : tuple of str
        Names of the outputs. One with the name of a list operand is as many tensors as that list,
        one with the name of an attribute that is a program as many as the outputs of that.
    returns_tuple : bool
        Whether a call returns a tuple: of several outputs, or of the tensors of those that are
        lists, one output after the other.
    tags : Tag
        What kind of work it is.
    default : callable or None
        ``default(ops, *operands, **attributes)``: the op made of other ops. An op without one is
        required of a backend.
    host : callable or None
        Like `default`, but computes with NumPy on the host.
    vjp : callable or None
        ``vjp(ops, ctx, *cotangents)``: one gradient, or None, per operand. `ops` is the table of
        the level below; a cotangent is None where that output was not used.
    saves : tuple of str, or dict of str to tuple of str
        What the rule needs: names of operands and outputs, or ``name.shape`` and ``name.dtype``
        for their metadata alone. A dict says it per operand that wants its gradient.
    requires : callable or None
        ``requires(**attributes)`` raises if a value is not allowed. A table calls it before the op
        of every backend, and `infer` calls it too.
    batch : callable or None
        ``batch(ops, batch, *operands, **attributes)``: the outputs with a batch axis first, from
        operands some of which have it; see `burn.ops.batching`. None if the rule follows from the
        tags, or the decomposition is batched.
    requires_numbers : callable or None
        ``requires_numbers(*operands)`` raises if a Python number among the operands is not allowed
        beside tensors of `number_kinds`. A table calls it before the op of every backend.
    number_kinds : Kind
        The kinds of dtypes of those tensors.
    expression : str, dict of Kind to str, or None
        The text of the scalar formula in kernels (`burn.kernels.expressions`): one for all kinds of
        dtypes, or for each kind. None if it is the scalar function of its name, or follows from
        the decomposition. Of an op of lists it has several results, and the decomposition follows
        from it (`burn.ops.optimizers.expressions`).
    fuses : str or None
        What the op is to fusion: a value of `burn.compiler.fusion_rules.Work`; ``"decomposition"``
        if what it is made of fuses well, though it is costly. None if that follows from the tags.
    combines : str or None
        Of a reduction: how its results for parts of the elements make that for all of them:
        ``"sum"``, ``"product"``, ``"max"``, ``"min"``, or ``"mean"`` of parts of one size. None
        if they do not tell.
    examples : tuple of Example
        Calls that work, and calls that must be refused, on which tests try an op that has no
        samples of its own; those of an elementwise op follow from its tags.
    shards : callable or None
        What becomes of an axis that is divided; see `burn.ops.sharding`. None if it follows from
        the tags and the roles of attributes.
    flops : callable or None
        ``flops(output, *operands, **attributes)``: number of floating-point operations, from
        metadata; `output` is what `infer` returns, and an operation on complex numbers counts once.
        Of an op that runs programs it returns the number of bytes as well.
        None if it follows from the tags, or is the sum over the decomposition; see `burn.ir.cost`.
    write : callable or None
        ``write(ops, x, value, **attributes)``: `x` after the output of this view op was assigned
        `value`, which has the output's shape and dtype. None if the output is read-only.
    blocks : callable or None
        ``blocks(extent, block, /, *, is_ordered, **attributes)``: from the shape of the first
        operand and the lengths of the blocks that divide it, the lengths of blocks of the output,
        and the attributes with which the op runs on a tensor that has an element for each block;
        None if the output has no such blocks. Elements keep their order in a block if `is_ordered`.
        Of a list of tensors `extent` is the list of their shapes.
    quantized : callable or None
        ``quantized(ops, dtype, *operands, **attributes)``: the output, in a float dtype, for
        operands some of which are quantized (`burn.quantized.QuantizedTensor`); NotImplemented
        where those are to be restored first.
    linearize : callable or None
        ``linearize(ops, needs, *operands, **attributes)``: the outputs, those that are to be
        tracked, and a function of the table to compute in and their cotangents (or None) that gives
        the gradients of the operands that `needs` has as True, in order. `needs` has for each
        operand whether it is tracked, a tuple of bools for a list.
    """

    def __init__(
        self,
        rule: Callable[..., Any],
        tags: Tag = Tag.NONE,
        outputs: Sequence[str] = ("output",),
        *,
        expression: str | Mapping[Kind, str] | None = None,
        fuses: str | None = None,
        combines: str | None = None,
        examples: Sequence[Example] = (),
    ) -> None:
        self.name = rule.__name__
        self.__name__ = self.name
        self.__doc__ = rule.__doc__
        self.__module__ = rule.__module__
        self.rule = rule
        self.tags = tags
        self.outputs = tuple(outputs)
        self.expression = expression
        self.fuses = fuses
        self.combines = combines
        self.examples = tuple(examples)
        self.default: Callable[..., Any] | None = None
        self.host: Callable[..., Any] | None = None
        self.vjp: Callable[..., Any] | None = None
        self.saves: Saves = ()
        self.requires: Callable[..., None] | None = None
        self.requires_numbers: Callable[..., None] | None = None
        self.number_kinds: Kind = Kind.ANY
        self.shards: Callable[..., Any] | None = None
        self.batch: Callable[..., Any] | None = None
        self.flops: Callable[..., Any] | None = None
        self.write: Callable[..., Any] | None = None
        self.blocks: Callable[..., Any] | None = None
        self.quantized: Callable[..., Any] | None = None
        self.linearize: Callable[..., Any] | None = None
        hints = get_type_hints(rule, include_extras=True)
        self.operands: dict[str, Operand] = {}
        parameters = inspect.signature(rule).parameters.values()
        self.attributes: dict[str, Attribute] = attributes_of(self.name, parameters, hints)
        for parameter in parameters:
            if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD:
                self.operands[parameter.name] = _operand(self.name, parameter, hints)
        self._has_lists = any(map(self._is_list, self.outputs))
        self.returns_tuple = self._has_lists or len(self.outputs) > 1

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    @property
    def is_required(self) -> bool:
        """Whether a backend must bring it."""
        return self.default is None and self.host is None

    @property
    def may_raise(self) -> bool:
        """Whether values of tensors can make it raise an error, those that are indices included.

        What a program is to overwrite stays until such an op has run, and one whose outputs nothing
        uses runs all the same. An op that runs programs may raise if one of their operations may.
        """
        return bool(self.tags & (Tag.RAISES | Tag.CHECKS_INDICES | Tag.DATA_DEPENDENT))

    @property
    def needs_arithmetic(self) -> bool:
        """Whether a device must compute with the dtype of the operands, beyond storing it."""
        return not self.tags & (Tag.VIEW | Tag.CREATION) and self.name not in _STORAGE

    def _is_list(self, output: str) -> bool:
        return output in self.attributes or (
            output in self.operands and self.operands[output].is_list
        )

    def output_names(
        self, operands: Sequence[Any], attributes: Mapping[str, Any] = {}
    ) -> tuple[str, ...]:
        """The name of each tensor that a call returns: of a list ``name[0]``, ``name[1]``, ...."""
        if not self._has_lists:
            return self.outputs
        given = dict(zip(self.operands, operands, strict=True))
        names: list[str] = []
        for name in self.outputs:
            if self._is_list(name):
                parts = attributes[name].outputs if name in attributes else given[name]
                names += [f"{name}[{index}]" for index in range(len(parts))]
            else:
                names.append(name)
        return tuple(names)

    def decomposition(self, default: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: how to compute the op from other ops."""
        self.default = rename_function(default, f"{self.name}.decomposition")
        return self.default

    def on_host(self, host: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: how to compute the op with NumPy, where no other ops can."""
        self.host = rename_function(host, f"{self.name}.on_host")
        return self.host

    def requirement(self, requires: Callable[..., None]) -> Callable[..., None]:
        """Decorator: raises if a value of an attribute is not allowed."""
        self.requires = rename_function(requires, f"{self.name}.requirement")
        return self.requires

    def number_requirement(
        self, kinds: Kind
    ) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """Decorator: raises if a number among the operands, beside such tensors, is not allowed."""

        def attach(requires: Callable[..., None]) -> Callable[..., None]:
            self.number_kinds = kinds
            self.requires_numbers = rename_function(requires, f"{self.name}.number_requirement")
            return self.requires_numbers

        return attach

    def gradient(self, *, saves: Saves = ()) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorator: the gradient rule, and what it needs to have saved."""
        if self._has_lists:
            raise TypeError(f"op {self.name}: an op with lists of outputs has no gradient rule")
        for name in self.operands:
            if name in self.outputs and any(
                text.partition(".")[0] == name for text in _names(saves)
            ):
                raise TypeError(f"op {self.name}: {name!r} is an operand and an output: which one?")

        def attach(vjp: Callable[..., Any]) -> Callable[..., Any]:
            self.vjp = rename_function(vjp, f"{self.name}.gradient")
            self.saves = saves
            return self.vjp

        return attach

    def batching(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: how to run the op on all examples of a batch at once."""
        self.batch = rename_function(rule, f"{self.name}.batching")
        return self.batch

    def sharding(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: what becomes of an axis that is divided."""
        self.shards = rename_function(rule, f"{self.name}.sharding")
        return self.shards

    def cost(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: number of floating-point operations that tags and decomposition misstate."""
        self.flops = rename_function(rule, f"{self.name}.cost")
        return self.flops

    def inverse_write(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: what the operand of a view op is after a write to the output."""
        self.write = rename_function(rule, f"{self.name}.inverse_write")
        return self.write

    def block_map(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: what becomes of the blocks of a quantized operand."""
        self.blocks = rename_function(rule, f"{self.name}.block_map")
        return self.blocks

    def on_quantized(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: what runs on quantized operands."""
        self.quantized = rename_function(rule, f"{self.name}.on_quantized")
        return self.quantized

    def linearization(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: how to run the op on tracked operands, and its gradients."""
        self.linearize = rename_function(rule, f"{self.name}.linearization")
        return self.linearize

    def infer(self, *operands: Any, **attributes: Any) -> Any:
        """Metadata of the outputs, from that of the operands; touches no data.

        Parameters
        ----------
        *operands : Meta, Python number, None or list of Meta
            What the op would get.
        **attributes
            Its attributes.

        Returns
        -------
        Meta, or a tuple of Meta for an op with several outputs

        Raises
        ------
        BurnError
            If the op does not accept this; the message names the op and what it got.
        """
        try:
            self._check_operands(operands)
            self._check_attributes(attributes)
            if self.requires is not None:
                self.requires(**attributes)
            self.check_numbers(operands)
            return self.rule(*operands, **attributes)
        except BurnError as error:
            if not error.operation:
                error.operation = self.describe(operands, attributes)
            raise

    def check_numbers(self, operands: Sequence[Any]) -> None:
        """Raise if a Python number among the operands is not allowed beside the tensors."""
        if self.requires_numbers is None:
            return
        kinds = [operand.dtype.kind for operand in operands if hasattr(operand, "dtype")]
        if kinds and kinds[0] in self.number_kinds:
            self.requires_numbers(*operands)

    def describe(self, operands: Sequence[Any], attributes: Mapping[str, Any] = {}) -> str:
        """Write a call as in a message: ``sum(float32[2, 3], axis=4)``."""
        parts = [
            _shown_list(operand) if isinstance(operand, list) else _shown(operand)
            for operand in operands
        ]
        parts += [f"{name}={_shown_value(value)}" for name, value in attributes.items()]
        return f"{self.name}({', '.join(parts)})"

    def _check_operands(self, operands: Sequence[Any]) -> None:
        if len(operands) != len(self.operands):
            raise OperandTypeError(
                f"takes {len(self.operands)} operands ({', '.join(self.operands)}), "
                f"got {len(operands)}"
            )
        promoted: DType | None = None
        for (name, spec), operand in zip(self.operands.items(), operands, strict=True):
            metas = operand if spec.is_list else [operand]
            for meta in metas:
                if meta is None and spec.optional:
                    continue
                if not isinstance(meta, Meta):
                    if not spec.scalar:
                        raise OperandTypeError(f"{name} must be a tensor, not {shown_value(meta)}")
                    continue
                if meta.dtype.kind not in spec.kinds:
                    raise DTypeError(
                        f"{name} takes {spec.kinds.describe()} tensors, got {meta.dtype}",
                        hint=f"Convert it with .astype(), or use an op for {meta.dtype} tensors",
                    )
                if spec.promotes:
                    if promoted is not None and promoted is not meta.dtype:
                        raise DTypeError(
                            f"operands have different dtypes, {promoted} and {meta.dtype}"
                        )
                    promoted = meta.dtype

    def _check_attributes(self, attributes: Mapping[str, Any]) -> None:
        for name, value in attributes.items():
            attribute = self.attributes.get(name)
            if attribute is None:
                known = ", ".join(self.attributes) or "none"
                raise OperandTypeError(f"has no attribute {name!r}", hint=f"It has: {known}")
            attribute.check(value)
        for attribute in self.attributes.values():
            if attribute.required and attribute.name not in attributes:
                raise OperandTypeError(f"needs the attribute {attribute.name!r}")


def _shown(operand: Any) -> str:
    """An operand as in a message; of any other object the type, since it may be a large array."""
    if isinstance(operand, Meta):
        return str(operand)
    if operand is None or isinstance(operand, (bool, int, float, complex)):
        return shown_value(operand)
    return type(operand).__name__


def _shown_value(value: Any) -> str:
    """An attribute as in a message; of a program the number of its operations."""
    if isinstance(value, QuantScheme):
        return value.text
    operations = getattr(value, "operations", None)
    return shown_value(value) if operations is None else f"<{len(operations)} operations>"


def _shown_list(operands: Sequence[Any]) -> str:
    """A list of operands as in a message, which has the first few of many."""
    parts = list(map(_shown, operands[:_MAX_SHOWN]))
    if len(operands) > _MAX_SHOWN:
        parts.append(f"... {len(operands) - _MAX_SHOWN} more")
    return f"[{', '.join(parts)}]"


_MAX_SHOWN: Final = 8


def _names(saves: Saves) -> list[str]:
    if isinstance(saves, Mapping):
        return [name for names in saves.values() for name in names]
    return list(saves)


def _operand(op_name: str, parameter: inspect.Parameter, hints: Mapping[str, Any]) -> Operand:
    for item in getattr(hints.get(parameter.name), "__metadata__", ()):
        if isinstance(item, Operand):
            return item
    raise TypeError(
        f"op {op_name}: annotate operand {parameter.name!r} with an alias of burn.ops.signature"
    )


def rename_function(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Name a function called ``_``, or a lambda, as tracebacks and profiles are to show it."""
    current: Any = function
    while current is not None and current.__name__ in {"_", "<lambda>"}:
        current.__name__ = current.__qualname__ = name
        wrapped = getattr(current, "__wrapped__", None)
        if wrapped is None:
            current.__code__ = current.__code__.replace(co_name=name, co_qualname=name)
        current = wrapped
    return function


REGISTRY: Final[dict[str, Op]] = {}
"""The op table: every op by its name."""


def register(definition: Op) -> Op:
    """Put an op into the table.

    Raises
    ------
    ValueError
        If the name is taken.
    """
    if definition.name in REGISTRY:
        raise ValueError(f"op {definition.name!r} is defined twice")
    REGISTRY[definition.name] = definition
    return definition


def op(
    tags: Tag = Tag.NONE,
    outputs: Sequence[str] = ("output",),
    *,
    expression: str | Mapping[Kind, str] | None = None,
    fuses: str | None = None,
    combines: str | None = None,
    examples: Sequence[Example] = (),
) -> Callable[[Callable[..., Any]], Op]:
    """Decorator: make a definition an op and put it into the table."""

    def define(rule: Callable[..., Any]) -> Op:
        return register(
            Op(
                rule,
                tags,
                outputs,
                expression=expression,
                fuses=fuses,
                combines=combines,
                examples=examples,
            )
        )

    return define
