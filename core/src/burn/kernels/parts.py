"""Reductions of few rows over many columns as two kernels, so that many lanes or threads work."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from burn.dtype import DType, float32
from burn.kernels._serial_nodes import phases_of
from burn.kernels.kernel import Apply, Index, Kernel, Literal, Load, Node, Reduce, Store, known
from burn.kernels.layout import collapsed

__all__ = ["divided"]


def divided(kernel: Kernel, columns: int) -> tuple[Kernel, Kernel] | None:
    """A reduction as one of parts of the columns, and one of their results.

    In which order values are added depends on their number and on `columns` alone.

    Parameters
    ----------
    kernel : Kernel
        A kernel, whose lengths are known.
    columns : int
        Columns of a part; the last one may have fewer.

    Returns
    -------
    partial : Kernel
        Reduces each part. It has an output for each reduction, with a row for each part; float16
        and bfloat16 are float32 there.
    final : Kernel
        Gives the outputs of the kernel, from its inputs and after them the outputs of `partial`.

    None if reductions need each other, if there is not one axis of columns after `collapsed`, or if
    an output has values of columns.

    Examples
    --------
    >>> from burn import float32
    >>> from burn.kernels import Kernel, Load, Reduce, Store
    >>> from burn.kernels.parts import divided
    >>> body = (Load(0, 0, (1,), float32), Reduce("sum", 0, float32))
    >>> stores = (Store(0, 1, 0, (0,)),)
    >>> total = Kernel((1000,), 0, (float32,), (), ((float32, 1),), body, stores)
    >>> partial, final = divided(total, 300)
    >>> (partial.space, partial.ragged), final.space
    (((4, 300), 1000), (4,))
    """
    kernel = collapsed(kernel)
    reduces = [number for number, node in enumerate(kernel.body) if isinstance(node, Reduce)]
    if (
        len(kernel.space) != kernel.rows + 1
        or not all(kernel.is_of_rows(store) for store in kernel.stores)
        or max(phases_of(kernel), default=0) != 1
    ):
        return None
    *rows, total = known(kernel.space)
    count = -(-total // columns)
    size = math.prod(rows)
    strides = [size, *[math.prod(rows[axis + 1 :]) for axis in range(len(rows))], 0]
    dtypes = [_wide(kernel.body[number].dtype) for number in reduces]
    body, numbers = _of_parts(kernel, columns)
    partial = dataclasses.replace(
        kernel,
        space=(count, *rows, columns),
        rows=kernel.rows + 1,
        outputs=tuple([(dtype, count * size) for dtype in dtypes]),
        body=tuple(body),
        stores=tuple(
            [
                Store(output, numbers[number], 0, tuple(strides))
                for output, number in enumerate(reduces)
            ]
        ),
        overwrites=(),
        ragged=total,
    )
    loads = [
        Load(len(kernel.inputs) + output, 0, (*strides[1:-1], size), dtype)
        for output, dtype in enumerate(dtypes)
    ]
    return partial, _final(kernel, loads, count)


def _wide(dtype: DType) -> DType:
    return float32 if dtype.is_float and dtype.itemsize < 4 else dtype


def _of_parts(kernel: Kernel, columns: int) -> tuple[list[Node], dict[int, int]]:
    """The body in a space whose first axis counts parts, and the new numbers of the nodes."""
    body: list[Node] = []
    numbers: dict[int, int] = {}
    for number, node in enumerate(kernel.body):
        if isinstance(node, Index):
            body.append(node._replace(axis=node.axis + 1))
            if node.axis == kernel.rows:
                last, dtype = len(body), node.dtype
                body += [Index(0, dtype), Literal(columns, dtype)]
                body.append(Apply("multiply", (last, last + 1), dtype))
                body.append(Apply("add", (last + 2, last - 1), dtype))
        elif isinstance(node, Load):
            *_, stride = strides = known(node.strides)
            load = node._replace(strides=(stride * columns, *strides))
            body.append(_renumbered(load, numbers))
        else:
            body.append(_renumbered(node, numbers))
        numbers[number] = len(body) - 1
    return body, numbers


def _final(kernel: Kernel, loads: list[Load], count: int) -> Kernel:
    """The reduction of partial results, which come first in the body."""
    body: list[Node] = [*loads]
    numbers: dict[int, int] = {}
    partial = iter(enumerate(loads))
    for number, node in enumerate(kernel.body):
        if kernel.is_row_level[number]:
            numbers[number] = len(body)
            if isinstance(node, Reduce):
                operand, load = next(partial)
                body.append(node._replace(operand=operand, dtype=load.dtype))
            else:
                body.append(_renumbered(node, numbers))
    return dataclasses.replace(
        kernel,
        space=(*kernel.space[:-1], count),
        inputs=(*kernel.inputs, *[load.dtype for load in loads]),
        body=tuple(body),
        stores=tuple([store._replace(node=numbers[store.node]) for store in kernel.stores]),
    )


def _renumbered(node: Node, numbers: Mapping[int, int]) -> Node:
    """A node with new numbers of those that it needs."""
    if isinstance(node, Apply):
        return node._replace(operands=tuple([numbers[operand] for operand in node.operands]))
    if isinstance(node, Reduce):
        return node._replace(operand=numbers[node.operand])
    if isinstance(node, Load):
        gathers = tuple([(numbers[gather], step) for gather, step in node.gathers])
        guard = None if node.guard is None else numbers[node.guard]
        return node._replace(gathers=gathers, guard=guard)
    return node
