"""Values of the nodes of a kernel, each computed where it is first needed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from burn.dtype import DType, bool_, float32
from burn.kernels.kernel import Apply, Index, Literal, Load, Reduce, Scalar, Store
from burn.kernels.schedule import position
from burn.kernels.writer import Value

if TYPE_CHECKING:
    from burn.kernels.serial import Serial, VectorWriter

__all__ = ["Point", "Values"]


class Point(NamedTuple):
    """A part of the space: an index of each axis, one of them with several lanes.

    The keys tell points that are computed at a time apart.
    """

    indices: dict[int, Value]
    keys: dict[int, int]
    active: Value | None

    def at(self, axis: int, index: Value, key: int = 0, active: Value | None = None) -> Point:
        indices, keys = {**self.indices, axis: index}, {**self.keys, axis: key}
        return Point(indices, keys, self.active if active is None else active)


class Values:
    """Values by node and point, in scopes of statements."""

    def __init__(self, schedule: Serial, writer: VectorWriter) -> None:
        self._schedule = schedule
        self._writer = writer
        self._kernel = kernel = schedule.kernel
        self._body = kernel.body
        self._levels = kernel.is_row_level
        self._scopes: list[dict[tuple[int, tuple[int, ...]], Value]] = []
        self._arrays: dict[tuple[int, tuple[int, ...]], Any] = {}
        self._columns = list(range(kernel.rows, len(kernel.space)))
        self._kept: dict[int, int] = {}
        self._phase = 0

    @contextlib.contextmanager
    def _scope(self) -> Iterator[None]:
        """Statements whose values are not used after them."""
        self._scopes.append({})
        yield
        self._scopes.pop()
        self._writer.restrict(None)

    def _reduce(self, number: int) -> Reduce:
        return cast("Reduce", self._body[number])

    def _operand(self, reduce: int) -> int:
        return self._reduce(reduce).operand

    def _kind(self, reduce: int) -> tuple[str, DType]:
        node = self._reduce(reduce)
        return node.kind, node.dtype

    def _key(self, node: int, point: Point) -> tuple[int, tuple[int, ...]]:
        return node, tuple([point.keys.get(axis, 0) for axis in self._schedule.axes[node]])

    def _value(self, node: int, point: Point) -> Value:
        """A value that has been computed."""
        key = self._key(node, point)
        return next(scope[key] for scope in reversed(self._scopes) if key in scope)

    def _evaluate(self, order: list[int], point: Point) -> None:
        """Compute nodes, in order, that have not been."""
        self._writer.restrict(point.active)
        for node in order:
            key = self._key(node, point)
            if any(key in scope for scope in self._scopes):
                continue
            value = self._scopes[-1][key] = self._computed(node, point)
            if self._kept.get(node) == self._phase and not self._levels[node]:
                array = self._arrays[self._key(node, point._replace(keys=self._row_keys(point)))]
                self._writer.set_element(array, self._column_index(point), value)

    def _row_keys(self, point: Point) -> dict[int, int]:
        return {axis: key for axis, key in point.keys.items() if axis < self._kernel.rows}

    def _column_index(self, point: Point) -> Value:
        """The index among all columns."""
        writer, index = self._writer, self._writer.integer(0)
        for axis in self._columns:
            length = writer.integer(self._kernel.space[axis])
            index = writer.add(writer.multiply(index, length), point.indices[axis])
        return index

    def _computed(self, number: int, point: Point) -> Value:
        writer, node = self._writer, self._body[number]
        if self._kept.get(number, self._phase) < self._phase:
            array = self._arrays[self._key(number, point._replace(keys=self._row_keys(point)))]
            return writer.element(array, self._column_index(point))
        match node:
            case Load():
                index = self._index(node, point)
                for gathered, stride in node.gathers:
                    value = self._value(gathered, point)
                    part = writer.index_of(value, self._body[gathered].dtype)
                    index = writer.add(index, writer.multiply(part, writer.integer(stride)))
                guard = None if node.guard is None else self._value(node.guard, point)
                return writer.load(node.input, index, node.dtype, guard)
            case Index():
                return writer.value_of(point.indices[node.axis], node.dtype)
            case Literal():
                return writer.literal(node.value, node.dtype)
            case Scalar():
                return writer.scalar(node.number, node.dtype)
            case Apply():
                values = tuple([self._value(operand, point) for operand in node.operands])
                of = self._body[node.operands[-1]].dtype
                if number in self._kernel.terms:
                    return writer.term(*values, dtype=node.dtype)
                if (
                    self._kernel.relaxed
                    and node.function == "divide"
                    and self._levels[node.operands[1]] > self._levels[number]
                ):
                    return self._quotient((values[0], values[1]), node.dtype)
                return writer.apply(node.function, values, node.dtype, of)
        raise AssertionError(node)

    def _quotient(self, operands: tuple[Value, Value], dtype: DType) -> Value:
        """A quotient by what each row has once: a product with its inverse.

        The divisor is scaled where it is so small or large that its inverse is no normal number.
        """
        x, divisor = operands

        def apply(function: str, *operands: Value) -> Value:
            gives_bool = function in {"less", "greater"}
            return self._writer.apply(function, operands, bool_ if gives_bool else dtype, dtype)

        def literal(exponent: int) -> Value:
            return self._writer.literal(2.0**exponent, dtype)

        dtype = dtype if dtype.itemsize >= 4 else float32
        size = apply("abs", divisor)
        small, large = apply("less", size, literal(-64)), apply("greater", size, literal(64))
        scale = apply("where", large, literal(-64), literal(0))
        scale = apply("where", small, literal(64), scale)
        inverse = apply("divide", literal(0), apply("multiply", divisor, scale))
        return apply("multiply", apply("multiply", x, scale), inverse)

    def _index(self, access: Load | Store, point: Point) -> Value:
        return position(self._writer, access.offset, access.strides, point.indices)

    def _store(self, store: Store, point: Point) -> None:
        self._writer.restrict(point.active)
        dtype = self._kernel.outputs[store.output][0]
        index = self._index(store, point)
        self._writer.store(store.output, index, self._value(store.node, point), dtype)
