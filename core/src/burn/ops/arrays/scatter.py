"""Writing at indices that a tensor holds, which may repeat.

Updates take effect in row-major order of the indices: of several assignments to one element the
last wins; sums, products and extrema combine all values. An index is in [-n, n) for an axis of
length n; for any other see `burn.ops.arrays.indexing`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeAlias

from burn.dtype import DType, Kind
from burn.errors import DTypeError, ShapeError
from burn.ops._attributes import check_choice
from burn.ops._precision import in_float32
from burn.ops.arrays.indexing import check_gather_shapes, check_same_shape, check_selection, spread
from burn.ops.batching import leading_axes, leading_axes_of
from burn.ops.index_arithmetic import index_dtype, narrow, positions, wrap_negative_indices
from burn.ops.op import Context, Tag, op
from burn.ops.shapes import size
from burn.ops.signature import (
    AnyOperand,
    Axis,
    Cotangent,
    Gradients,
    IndexOperand,
    Meta,
    Primitive,
    Role,
    Shape,
)
from burn.ops.table import OpTable

Update: TypeAlias = Annotated[Literal["assign", "add", "multiply", "min", "max"], Role.CHOICE]

Combine = Callable[[Primitive, Primitive], Primitive]


@op(Tag.COMPUTE_BOUND | Tag.CHECKS_INDICES)
def scatter(
    x: AnyOperand, indices: IndexOperand, value: AnyOperand, *, axis: Axis, update: Update
) -> Meta:
    """`x` updated by each element of `value` where its index replaces the position along ``axis``.

    `update` is ``assign``, ``add``, ``multiply``, ``min`` or ``max``; booleans are not added or
    multiplied. Equal extrema share the gradient.
    """
    check_gather_shapes(x.shape, indices.shape, axis)
    check_same_shape("value", value.shape, indices.shape)
    check_update(update, x.dtype)
    return x


@scatter.decomposition
def _(
    ops: OpTable, x: Primitive, indices: Primitive, value: Primitive, *, axis: int, update: str
) -> Primitive:
    check_update(update, ops.dtype(x))
    if update == "add":
        return ops.scatter_add(x, indices, value, axis=axis)
    combine = _combination(ops, update, ops.dtype(x))
    check_same_shape("value", tuple(value.shape), tuple(indices.shape))
    check_gather_shapes(tuple(x.shape), tuple(indices.shape), axis)
    if 0 in indices.shape:
        return x
    if combine is None:
        writer = _writer(ops, x, indices, axis)
        return ops.where(ops.equal(writer, 0), x, _written(ops, value, writer, axis))
    return _combined(ops, x, indices, value, axis=axis, combine=combine)


scatter.batching(leading_axes)


def _flops(
    output: Meta, x: Meta, indices: Meta, value: Meta, *, update: str, **attributes: Any
) -> int:
    """Each value is combined with an element."""
    return 0 if update == "assign" else size(value.shape)


scatter.cost(_flops)


def _combination(ops: OpTable, update: str, dtype: DType) -> Combine | None:
    """The function that combines two values of one element; None if the later one wins."""
    if update == "assign":
        return None
    if update == "multiply":
        combine: Combine = ops.multiply
    elif update == "max":
        combine = ops.bitwise_or if dtype.is_bool else ops.maximum
    else:
        combine = ops.bitwise_and if dtype.is_bool else ops.minimum
    return combine


@in_float32
def _combined(
    ops: OpTable,
    x: Primitive,
    indices: Primitive,
    value: Primitive,
    *,
    axis: int,
    combine: Combine,
) -> Primitive:
    runs = _Runs(ops, indices, x.shape[axis], axis)
    total = runs.scan(ops.gather(value, runs.order, axis=axis), combine)
    writer = runs.last(x)
    untouched = ops.equal(writer, 0)
    return ops.where(untouched, x, combine(x, _written(ops, total, writer, axis)))


def _writer(ops: OpTable, x: Primitive, indices: Primitive, axis: int) -> Primitive:
    """For each element of `x` 1 + the position along `axis` of the last index to it, or 0."""
    runs = _Runs(ops, indices, x.shape[axis], axis)
    last = runs.last(x)
    sorted_position = ops.add(runs.order, 1)
    return ops.where(ops.equal(last, 0), 0, _written(ops, sorted_position, last, axis))


def _written(ops: OpTable, value: Primitive, writer: Primitive, axis: int) -> Primitive:
    """For each element the value of its writer; arbitrary for an element without one."""
    return ops.gather(value, ops.maximum(ops.subtract(writer, 1), 0), axis=axis)


class _Runs:
    """Indices sorted along an axis, stably: equal indices form a run."""

    def __init__(self, ops: OpTable, indices: Primitive, length: int, axis: int) -> None:
        self.ops = ops
        self.axis = axis
        self.length = indices.shape[axis]
        front = wrap_negative_indices(ops, indices, length)
        self.order = ops.argsort(front, axis=axis, dtype=index_dtype(ops))
        self.sorted = ops.gather(front, self.order, axis=axis)
        # Unchanged, so that the op that reads an index out of range reports it.
        self.indices = ops.gather(indices, self.order, axis=axis)

    def same(self, step: int) -> Primitive:
        """Whether an element has the same index as the one `step` positions later."""
        later = narrow(self.ops, self.sorted, self.axis, step, self.length - step)
        earlier = narrow(self.ops, self.sorted, self.axis, 0, self.length - step)
        return self.ops.equal(later, earlier)

    def scan(self, x: Primitive, combine: Combine) -> Primitive:
        """The inclusive scan of each run: an element combined with those before it in the run."""
        ops, axis, step = self.ops, self.axis, 1
        while step < self.length:
            head = narrow(ops, x, axis, 0, step)
            tail = narrow(ops, x, axis, step, self.length - step)
            earlier = narrow(ops, x, axis, 0, self.length - step)
            joined = ops.where(self.same(step), combine(earlier, tail), tail)
            x = ops.concat([head, joined], axis=axis)
            step *= 2
        return x

    def last(self, x: Primitive) -> Primitive:
        """For each element of `x` 1 + the sorted position of the last index to it, or 0."""
        ops, axis = self.ops, self.axis
        ends = ops.bitwise_not(self.same(1))
        shape = list(self.sorted.shape)
        shape[axis] = 1
        end = ops.full(shape=tuple(shape), fill_value=True, dtype=ops.dtype(ends))
        ends = ops.concat([ends, end], axis=axis)
        position = ops.where(ends, positions(ops, self.sorted.shape, axis, start=1), 0)
        zeros = ops.full(shape=tuple(x.shape), fill_value=0, dtype=index_dtype(ops))
        return ops.scatter_add(zeros, self.indices, position, axis=axis)


@scatter.gradient(saves=("x", "indices", "value", "output"))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    x, indices, value, output = ctx.saved
    axis, update = ctx.attrs["axis"], ctx.attrs["update"]
    if 0 in indices.shape:
        return g, None, value
    if update == "add":
        return g, None, ops.gather(g, indices, axis=axis) if ctx.needs[2] else None
    if update == "assign":
        writer = _writer(ops, x, indices, axis)
        own = ops.equal(
            ops.gather(writer, indices, axis=axis), positions(ops, indices.shape, axis, start=1)
        )
        return (
            ops.where(ops.equal(writer, 0), g, 0.0),
            None,
            ops.where(own, ops.gather(g, indices, axis=axis), 0.0),
        )
    if update == "multiply":
        return _product_gradient(ops, x, indices, value, g, axis)
    held = ops.equal(x, output)
    holds = ops.equal(value, ops.gather(output, indices, axis=axis))
    dtype = ops.dtype(g)
    count = ops.scatter_add(
        ops.cast(held, dtype=dtype), indices, ops.cast(holds, dtype=dtype), axis=axis
    )
    share = ops.divide(g, ops.maximum(count, 1.0))
    return (
        ops.where(held, share, 0.0),
        None,
        ops.where(holds, ops.gather(share, indices, axis=axis), 0.0),
    )


def _product_gradient(
    ops: OpTable,
    x: Primitive,
    indices: Primitive,
    value: Primitive,
    g: Primitive,
    axis: int,
) -> Gradients:
    """The derivative by a factor is the product of all others, computed without a division."""
    ones = ops.full(shape=tuple(x.shape), fill_value=1.0, dtype=ops.dtype(x))
    factors = ops.scatter(ones, indices, value, axis=axis, update="multiply")
    runs = _Runs(ops, indices, x.shape[axis], axis)
    sorted_values = ops.gather(value, runs.order, axis=axis)
    before = _shifted(ops, runs.scan(sorted_values, ops.multiply), runs.same(1), axis)
    # The product of those after it: the same scan, reversed.
    backwards = _Reversed(runs)
    after = backwards.scan(ops.flip(sorted_values, axes=(axis,)), ops.multiply)
    after = ops.flip(_shifted(ops, after, backwards.same(1), axis), axes=(axis,))
    others = ops.multiply(before, after)
    inverse = ops.argsort(runs.order, axis=axis, dtype=index_dtype(ops))
    others = ops.gather(others, inverse, axis=axis)
    others = ops.multiply(others, ops.gather(ops.multiply(x, g), indices, axis=axis))
    return ops.multiply(g, factors), None, others


class _Reversed(_Runs):
    """The runs of others in reverse order."""

    def __init__(self, runs: _Runs) -> None:
        self.ops, self.axis, self.length = runs.ops, runs.axis, runs.length
        self.sorted = self.ops.flip(runs.sorted, axes=(runs.axis,))


def _shifted(ops: OpTable, x: Primitive, same: Primitive, axis: int) -> Primitive:
    """The element before each in its run, or 1."""
    first = tuple(1 if number == axis else length for number, length in enumerate(x.shape))
    one = ops.full(shape=first, fill_value=1.0, dtype=ops.dtype(x))
    earlier = ops.where(same, narrow(ops, x, axis, 0, x.shape[axis] - 1), 1.0)
    return ops.concat([one, earlier], axis=axis)


@op(Tag.COMPUTE_BOUND | Tag.CHECKS_INDICES)
def select_assign(
    x: AnyOperand, indices: IndexOperand, value: AnyOperand, *, axis: Axis, update: Update
) -> Meta:
    """`x` updated with slices of `value` at the indices along `axis` in a 1-d tensor.

    `update` is that of `scatter`.
    """
    check_same_shape("value", value.shape, check_selection(x.shape, indices.shape, axis))
    check_update(update, x.dtype)
    return x


@select_assign.decomposition
def _(
    ops: OpTable, x: Primitive, indices: Primitive, value: Primitive, *, axis: int, update: str
) -> Primitive:
    expanded = spread(ops, indices, x.shape, axis)
    return ops.scatter(x, expanded, value, axis=axis, update=update)


select_assign.batching(leading_axes_of("x", "value"))
select_assign.cost(_flops)


@op(Tag.CHECKS_INDICES | Tag.SELECTION)
def gather_nd(x: AnyOperand, indices: IndexOperand) -> Meta:
    """One part of `x` for each row of indices, which index its first axes.

    ``output[i, j, ...] = x[indices[i, j, 0], indices[i, j, 1], ...]``: the last axis of `indices`
    is as long as there are axes to index.
    """
    return Meta(_parts(x.shape, indices.shape), x.dtype)


@gather_nd.decomposition
def _(ops: OpTable, x: Primitive, indices: Primitive) -> Primitive:
    shape = _parts(tuple(x.shape), tuple(indices.shape))
    rows, flat = _flattened(ops, x, indices)
    return ops.reshape(ops.select(rows, flat, axis=0), shape=shape)


gather_nd.batching(leading_axes_of("indices"))


@op(Tag.COMPUTE_BOUND | Tag.CHECKS_INDICES)
def scatter_nd(x: AnyOperand, indices: IndexOperand, value: AnyOperand, *, update: Update) -> Meta:
    """`x` updated with a part of `value` for each row of indices; `gather_nd` reads them.

    `update` is that of `scatter`.
    """
    check_same_shape("value", value.shape, _parts(x.shape, indices.shape))
    check_update(update, x.dtype)
    return x


@scatter_nd.decomposition
def _(
    ops: OpTable, x: Primitive, indices: Primitive, value: Primitive, *, update: str
) -> Primitive:
    shape = tuple(x.shape)
    check_same_shape("value", tuple(value.shape), _parts(shape, tuple(indices.shape)))
    rows, flat = _flattened(ops, x, indices)
    value = ops.reshape(value, shape=(flat.shape[0], rows.shape[1]))
    result = ops.select_assign(rows, flat, value, axis=0, update=update)
    return ops.reshape(result, shape=shape)


def _flattened(ops: OpTable, x: Primitive, indices: Primitive) -> tuple[Primitive, Primitive]:
    """`x` as a matrix with a row for each part, and the flat index of each row of indices."""
    depth = indices.shape[-1]
    shape, lead = tuple(x.shape), tuple(indices.shape[:-1])
    total, count = size(shape[:depth]), size(lead)
    counting = index_dtype(ops)
    rows = ops.reshape(indices, shape=(count, depth))
    zero = ops.full(shape=(1,), fill_value=0, dtype=counting)
    flat = ops.full(shape=(count,), fill_value=0, dtype=counting)
    for axis in range(depth):
        length = shape[axis]
        index = ops.reshape(narrow(ops, rows, 1, axis, 1), shape=(count,))
        # Reading one of so many zeros reports an index out of range: the flat one might be in it.
        fault = ops.select(ops.expand(zero, shape=(length,)), index, axis=0)
        front = wrap_negative_indices(ops, index, length)
        front = ops.maximum(ops.minimum(front, length - 1), fault)
        flat = ops.add(ops.multiply(flat, length), front)
    lines = ops.reshape(x, shape=(total, size(shape[depth:])))
    return lines, flat


def _parts(shape: Shape, indices: Shape) -> Shape:
    """Shape of the parts that rows of indices select."""
    if not indices or indices[-1] > len(shape):
        raise ShapeError(
            f"indices of shape {indices} for a tensor with {len(shape)} axes",
            hint="The last axis of the indices has one index for each axis that is indexed",
        )
    return (*indices[:-1], *shape[indices[-1] :])


def check_update(update: str, dtype: DType) -> None:
    """Raise unless an update exists, and for the dtype."""
    check_choice("update", update, scatter.attributes["update"].choices)
    if dtype.is_bool and update in ("add", "multiply"):
        raise DTypeError(f"booleans take no update {update!r}", hint='"max" is or, "min" is and')
    if dtype.kind is Kind.COMPLEX and update in ("min", "max"):
        raise DTypeError(f"complex numbers have no order: no update {update!r}")
