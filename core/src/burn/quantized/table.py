"""QuantizedTable: the op table of quantized tensors, derived from the table below and the ops.

No op is named here. A call without a quantized operand goes to the table below. Any other is run by
the first of these that applies:

- a view, or a selection that moves elements, acts on codes and on scales, where its block map, or
  one scale for the tensor, allows it; codes remain the same;
- a selection by order (a sort, a maximum) acts on integer codes that share one scale;
- any other selection restores the numbers, computes, and quantizes with the first scheme, if all
  tensors of a list are quantized;
- the op's rule for quantized operands (`Op.on_quantized`) computes with codes and scales;
- the numbers are restored, in the float dtype of the other operands, and the op computes with them.

Results of the last two are floats, or are quantized again: see `Propagation`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from burn.aliases import Primitive, Shape
from burn.autodiff import is_tracked
from burn.dtype import DType, Kind, complex64, float32, promote
from burn.errors import DTypeError, ShapeError
from burn.ops import Meta, Op, Operand, OpTable, Role, Tag, decode_scales
from burn.ops.quantized_primitive import QuantizedPrimitive, is_quantized
from burn.ops.table import DecoratorTable, with_requirement, wrapping
from burn.quant_scheme import (
    MAX_BLOCK_AXES,
    Propagation,
    QDType,
    QuantLevel,
    QuantScheme,
    QuantStore,
)
from burn.quantized.calibration import quantize_dynamic

__all__ = ["QuantizedTable"]


class QuantizedTable(DecoratorTable):
    """The ops of one device on tensors some of which are quantized.

    Parameters
    ----------
    below : OpTable
        The table that computes, of a backend or a decorator.
    float_dtype : DType
        The dtype of numbers restored where no other operand has one.
    propagation : Propagation
        Whether results of arithmetic are quantized again.
    """

    def __init__(
        self,
        below: OpTable,
        float_dtype: DType = float32,
        propagation: Propagation = Propagation.INHIBIT,
    ) -> None:
        super().__init__(below, QuantizedPrimitive)
        self.float_dtype = float_dtype
        self.propagation = propagation
        self._dtypes_of_calls: dict[tuple[Any, ...], tuple[DType, bool]] = {}

    def dtype(self, primitive: Any) -> DType:
        """DType of a primitive, a `QDType` of a quantized one."""
        return primitive.dtype if is_quantized(primitive) else self.below.dtype(primitive)

    def _resolve(self, definition: Op) -> Callable[..., Any]:
        inner = getattr(self.below, definition.name)
        if not definition.operands:
            return inner  # type: ignore[no-any-return]  # an entry of a table
        is_quantized_call = self._is_own
        keeps = definition.tags & (Tag.VIEW | Tag.SELECTION)
        run_by_tags = functools.partial(self._kept if keeps else self._computed, definition)
        run = with_requirement(definition, run_by_tags)

        def wrap(inner: Callable[..., Any]) -> Callable[..., Any]:
            def call(*operands: Any, **attributes: Any) -> Any:
                if not any(map(is_quantized_call, operands)):
                    return inner(*operands, **attributes)
                return run(*operands, **attributes)

            return call

        return wrapping(inner, wrap)

    # Views and selections.

    def _kept(self, definition: Op, *operands: Any, **attributes: Any) -> Any:
        """A view or selection, whose results are quantized as the first operand is."""
        if _is_mixed(operands):
            return self._computed(definition, *operands, **attributes)
        dtype, _ = self._dtypes_of(definition, operands)
        self._own_dtypes(definition, attributes, dtype)
        specs = definition.operands.values()
        metas = [self._meta(*pair, dtype) for pair in zip(specs, operands, strict=True)]
        definition.infer(*metas, **attributes)  # block maps count on what it checks
        result = self._rearranged(definition, operands, attributes)
        if result is not NotImplemented:
            return result
        again = functools.partial(self._again, definition, _first_scheme(operands))
        restored = self._restored(definition, operands, attributes, dtype)
        return self._each(definition, restored, again)

    def _rearranged(
        self, definition: Op, operands: Sequence[Any], attributes: Mapping[str, Any]
    ) -> Any:
        """A view or selection of codes and scales; NotImplemented if it needs the numbers."""
        first, *others = operands
        tensors = first if isinstance(first, list) else [first]
        dtypes = {tensor.dtype if is_quantized(tensor) else None for tensor in tensors}
        specs = list(definition.operands.values())
        if len(dtypes) != 1 or None in dtypes or any(spec.promotes for spec in specs[1:]):
            return NotImplemented
        if specs[0].kinds != Kind.ANY:  # it compares elements
            return self._ordered(definition, tensors[0], others, attributes)
        scheme = tensors[0].scheme
        blocks = self._moved_scales(definition, first, others, attributes)
        if blocks is None and Tag.VIEW in definition.tags:
            raise ShapeError(
                f"the result has no blocks that are those of {scheme}",
                hint="Elements of a block share a scale. Call .dequantize() first",
            )
        if blocks is None:
            return NotImplemented
        values, store = self._moved_codes(definition, first, others, attributes)
        scales, block = blocks
        made, global_scale = _stored(scheme, store), tensors[0].global_scale
        shape = made.logical_shape(tuple(values.shape))
        if scheme.level.block and shape:
            made = made.with_level(_level(scheme.level, shape, block))
        elif scheme.level.block:
            made, global_scale = made.fitting(()), None
        return QuantizedPrimitive(values, scales, global_scale, made)

    def _moved_scales(
        self, definition: Op, first: Any, others: Sequence[Any], attributes: Mapping[str, Any]
    ) -> tuple[Primitive, Shape] | None:
        """Scales after a view or selection, and the blocks that share them; None if there are none.

        If one scale is that of the tensor, it remains so.
        """
        tensors = first if isinstance(first, list) else [first]
        lead = tensors[0]
        scheme = lead.scheme
        if not scheme.level.block:
            return (
                (lead.scales, ())
                if all(tensor.scales is lead.scales for tensor in tensors)
                else None
            )
        blocks = {scheme.blocks(tensor.shape) for tensor in tensors}
        shares_global = all(tensor.global_scale is lead.global_scale for tensor in tensors)
        if definition.blocks is None or len(blocks) > 1 or not shares_global:
            return None
        extent = [tensor.shape for tensor in tensors] if isinstance(first, list) else lead.shape
        found = definition.blocks(extent, *blocks, is_ordered=False, **attributes)
        if found is None or len(_trimmed(found[0])) > MAX_BLOCK_AXES:
            return None
        block, mapped = found
        stored = [tensor.scales for tensor in tensors] if isinstance(first, list) else lead.scales
        scales = self._op(definition, stored, others, mapped)
        if block:
            return scales, block
        scales = self.below.reshape(scales, shape=(1,))  # that of one element
        if scheme.level.is_global:
            scales = decode_scales(self.below, scales, lead.global_scale, scheme, float32)
        return scales, block

    def _moved_codes(
        self, definition: Op, first: Any, others: Sequence[Any], attributes: Mapping[str, Any]
    ) -> tuple[Primitive, QuantStore]:
        """Stored codes after a view or selection, and how they are stored."""
        tensors = first if isinstance(first, list) else [first]
        scheme = tensors[0].scheme
        stored = [tensor.values for tensor in tensors] if isinstance(first, list) else first.values
        if scheme.per_word == 1:
            return self._op(definition, stored, others, attributes), scheme.store
        word = [1] * len(tensors[0].shape)
        word[scheme.store.axis] = scheme.per_word
        found = None
        if definition.blocks is not None:
            extent = (
                [tensor.shape for tensor in tensors] if isinstance(first, list) else first.shape
            )
            found = definition.blocks(extent, tuple(word), is_ordered=True, **attributes)
        if found is not None and sorted(found[0])[-2:] in ([scheme.per_word], [1, scheme.per_word]):
            block, mapped = found
            axis = block.index(scheme.per_word) - len(block)
            moved = self._op(definition, stored, others, mapped)
            return moved, QuantStore(scheme.store.kind, axis)
        codes = [self.below.unpack_values(tensor.values, scheme=scheme) for tensor in tensors]
        moved = self._op(
            definition, codes if isinstance(first, list) else codes[0], others, attributes
        )
        return self._packed(moved, scheme)

    def _packed(self, codes: Primitive, scheme: QuantScheme) -> tuple[Primitive, QuantStore]:
        """Codes as a scheme stores them, or natively where words do not divide them."""
        fitting = scheme.fitting(tuple(codes.shape))
        if fitting.per_word == 1:
            return codes, fitting.store
        return self.below.pack_values(codes, scheme=fitting), fitting.store

    def _ordered(
        self,
        definition: Op,
        x: QuantizedPrimitive,
        others: Sequence[Any],
        attributes: Mapping[str, Any],
    ) -> Any:
        """A selection by order, of integer codes that share a scale."""
        scheme = x.scheme
        if scheme.level.block or scheme.value.is_float or Tag.ELEMENTWISE in definition.tags:
            return NotImplemented
        codes = self.below.unpack_values(x.values, scheme=scheme)
        result = self._op(definition, codes, others, attributes)
        native = scheme.native.storage_dtype

        def quantized(primitive: Primitive) -> Any:
            if self.below.dtype(primitive) is not native:
                return primitive  # indices
            values, store = self._packed(primitive, scheme)
            return QuantizedPrimitive(values, x.scales, None, _stored(scheme, store))

        return self._each(definition, result, quantized)

    def _op(
        self, definition: Op, first: Any, others: Sequence[Any], attributes: Mapping[str, Any]
    ) -> Any:
        return getattr(self.below, definition.name)(first, *others, **attributes)

    def _again(self, definition: Op, scheme: QuantScheme, primitive: Primitive) -> Any:
        """The result of a selection, quantized; indices as they are."""
        try:
            fitting = self._scheme_of_result(scheme, primitive)
        except ShapeError as error:
            raise ShapeError(
                f"the result of {definition.name} is quantized like its operand, and {error.rule}",
                hint="Call .dequantize() on the operand first",
            ) from None
        return quantize_dynamic(self.below, primitive, fitting) if fitting else primitive

    def _scheme_of_result(self, scheme: QuantScheme, primitive: Primitive) -> QuantScheme | None:
        """How a result is quantized; None for one that is no float, or that autodiff tracks.

        Raises
        ------
        ShapeError
            If the blocks of the scheme do not divide it.
        """
        if not self.below.dtype(primitive).is_float or is_tracked(primitive):
            return None
        shape = tuple(primitive.shape)
        fitting = scheme.fitting(shape)
        fitting.check(shape)
        return fitting

    # Arithmetic.

    def _computed(self, definition: Op, *operands: Any, **attributes: Any) -> Any:
        """Arithmetic, whose results are floats, or are quantized again."""
        dtype, converts = self._dtypes_of(definition, operands)
        inhibits = self._own_dtypes(definition, attributes, dtype)
        result = NotImplemented
        if definition.quantized is not None:
            others = self._common(definition, operands, dtype) if converts else operands
            result = definition.quantized(self.below, dtype, *others, **attributes)
            inhibits = inhibits or Tag.CONTRACTION not in definition.tags
        if result is NotImplemented:
            result = self._restored(definition, operands, attributes, dtype)
        if inhibits or self.propagation is Propagation.INHIBIT:
            return result
        again = functools.partial(self._propagated, _first_scheme(operands))
        return self._each(definition, result, again)

    def _own_dtypes(self, definition: Op, attributes: dict[str, Any], dtype: DType) -> bool:
        """Give dtypes that functions took from a quantized operand the value of its numbers.

        Returns
        -------
        bool
            Whether the user names another dtype, in which results stay.
        """
        names_other = False
        for name, attribute in definition.attributes.items():
            if attribute.role is Role.DTYPE and name in attributes:
                if attributes[name].__class__ is QDType:
                    attributes[name] = dtype
                else:
                    names_other = True
        return names_other

    def _dtypes_of(self, definition: Op, operands: Sequence[Any]) -> tuple[DType, bool]:
        """`_float_dtype`, and whether operands are converted to it; found once for their dtypes."""
        key = (
            definition.name,
            *[getattr(operand, "dtype", operand.__class__) for operand in operands],
        )
        found = self._dtypes_of_calls.get(key)
        if found is None:
            dtype = self._float_dtype(definition, operands)
            pairs = zip(operands, self._common(definition, operands, dtype), strict=True)
            found = dtype, any(item is not other for item, other in pairs)
            if list not in key:
                self._dtypes_of_calls[key] = found
        return found

    def _float_dtype(self, definition: Op, operands: Sequence[Any]) -> DType:
        """The dtype of the operands that are not quantized; of floats, that of the device.

        Raises
        ------
        DTypeError
            If the op takes no floats.
        """
        found: DType | None = None
        for (name, spec), operand in zip(definition.operands.items(), operands, strict=True):
            for part in operand if isinstance(operand, list) else (operand,):
                if is_quantized(part):
                    if Kind.FLOAT not in spec.kinds or not (spec.promotes or spec.is_list):
                        raise DTypeError(
                            f"{name} takes {spec.kinds.describe()} tensors, got {part.dtype}",
                            hint="Quantized tensors stand for floats",
                        )
                elif spec.promotes and hasattr(part, "dtype"):
                    dtype = self.below.dtype(part)
                    if dtype.is_float or dtype.is_complex:
                        found = dtype if found is None else promote(found, dtype)
        found = found or self.float_dtype
        is_complex = any(operand.__class__ is complex for operand in operands)
        return promote(found, complex64) if is_complex else found

    def _restored(
        self,
        definition: Op,
        operands: Sequence[Any],
        attributes: Mapping[str, Any],
        dtype: DType,
    ) -> Any:
        """The op on the numbers that quantized operands stand for."""
        restore = functools.partial(self._restore, dtype=dtype)
        numbers = [
            [restore(part) for part in operand] if isinstance(operand, list) else restore(operand)
            for operand in self._common(definition, operands, dtype)
        ]
        return getattr(self.below, definition.name)(*numbers, **attributes)

    def _restore(self, operand: Any, dtype: DType) -> Any:
        if not is_quantized(operand):
            return operand
        if dtype.is_complex:
            return self.below.cast(operand.dequantized(self.below, dtype.component), dtype=dtype)
        return operand.dequantized(self.below, dtype)

    def _common(self, definition: Op, operands: Sequence[Any], dtype: DType) -> list[Any]:
        """The operands, of which those that are not quantized have the dtype if they promote."""

        def converted(spec: Operand, one: Any) -> Any:
            if not spec.promotes or is_quantized(one) or one is None:
                return one
            if not hasattr(one, "dtype"):
                return float(one) if dtype.is_float else complex(one)
            return one if self.below.dtype(one) is dtype else self.below.cast(one, dtype=dtype)

        return [
            [converted(spec, part) for part in operand]
            if isinstance(operand, list)
            else converted(spec, operand)
            for spec, operand in zip(definition.operands.values(), operands, strict=True)
        ]

    def _propagated(self, scheme: QuantScheme, primitive: Primitive) -> Any:
        """A result quantized again, where that is possible."""
        try:
            fitting = self._scheme_of_result(scheme, primitive)
        except ShapeError:
            return primitive
        return quantize_dynamic(self.below, primitive, fitting) if fitting else primitive

    def _each(self, definition: Op, result: Any, function: Callable[[Primitive], Any]) -> Any:
        if not definition.returns_tuple:
            return function(result)
        return tuple([function(item) for item in result])

    def _meta(self, spec: Operand, operand: Any, dtype: DType) -> Any:
        """What the rule of an op takes for an operand."""
        if isinstance(operand, list):
            return [self._meta(spec, part, dtype) for part in operand]
        if is_quantized(operand):
            return Meta(operand.shape, dtype)
        if not hasattr(operand, "dtype"):
            return operand
        found = self.below.dtype(operand)
        return Meta(tuple(operand.shape), dtype if spec.promotes else found)


def _stored(scheme: QuantScheme, store: QuantStore) -> QuantScheme:
    """The scheme with a store."""
    return scheme if store == scheme.store else scheme.with_store(store)


def _level(level: QuantLevel, shape: Shape, block: Shape) -> QuantLevel:
    """The level whose blocks have these lengths: the one that there was, if it has."""
    if len(level.block) <= len(shape) and level.lengths(shape) == tuple(block):
        return level
    lengths = tuple(
        [
            -1 if -1 in level.block and length == whole and whole > 1 else length
            for length, whole in zip(block, shape, strict=True)
        ]
    )
    return QuantLevel(_trimmed(lengths), is_global=level.is_global)


def _trimmed(block: Shape) -> Shape:
    """The lengths of a block without the first ones that are 1, but for the last."""
    while len(block) > 1 and block[0] == 1:
        block = block[1:]
    return block


def _is_mixed(operands: Sequence[Any]) -> bool:
    """Whether some tensors of a list are quantized and others are not."""
    lists = [
        [is_quantized(part) for part in operand]
        for operand in operands
        if operand.__class__ is list
    ]
    return any(any(operand) and not all(operand) for operand in lists)


def _first_scheme(operands: Sequence[Any]) -> QuantScheme:
    """The scheme of the first quantized operand."""
    for operand in operands:
        for part in operand if isinstance(operand, list) else (operand,):
            if is_quantized(part):
                return part.scheme  # type: ignore[no-any-return]  # of a QuantizedPrimitive
    raise TypeError("no operand is quantized")
