"""The passes over a program, in order: those for every device, and those for a target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from burn.compiler.algebra import algebra
from burn.compiler.common_subexpressions import common_subexpressions
from burn.compiler.constants import constants
from burn.compiler.dead_code import dead_code
from burn.compiler.decomposition import decomposition
from burn.compiler.inner_programs import inner_programs
from burn.ir import Donation, GraphIr, OperationIr, TensorIr, tensors_among
from burn.ops import REGISTRY, OpTable

__all__ = ["lowered", "simplified"]


def simplified(graph: GraphIr, table: OpTable) -> GraphIr:
    """The program without what no device needs to do; see the modules of the passes.

    Parameters
    ----------
    graph : GraphIr
        A correct program.
    table : OpTable
        The ops of the device, which computes constants.

    Returns
    -------
    GraphIr
        A correct program, without marks of last uses.
    """
    graph = common_subexpressions(dead_code(graph))
    graph = dead_code(algebra(constants(graph, table)))
    return _with_donations(inner_programs(graph))


def lowered(graph: GraphIr, wanted: Callable[[OperationIr], bool], table: OpTable) -> GraphIr:
    """The program with operations replaced by what their ops are made of, and simplified again.

    Parameters
    ----------
    graph : GraphIr
        A program.
    wanted : callable
        Whether an operation is to be replaced; see `decomposition`. It is not asked of operations
        of complex numbers that the device has itself: kernels compute with real ones.
    table : OpTable
        The ops of the device.

    Returns
    -------
    GraphIr
        A program with numbers of a run of the class `HostNumber`, without marks of last uses.
    """

    def is_replaced(operation: OperationIr) -> bool:
        tensors = [*tensors_among(operation.inputs), *operation.outputs]
        if any(tensor.dtype.is_complex for tensor in tensors):
            origin = table.origin(REGISTRY[operation.name])
            return origin != "native" and wanted(operation)
        return wanted(operation)

    graph = algebra(decomposition(graph, is_replaced, table))
    return dead_code(common_subexpressions(graph))


def _with_donations(graph: GraphIr) -> GraphIr:
    """The program without donations that passes have made impossible.

    An input that is an output is not overwritten. An output that is an input, a constant, or
    another output, has memory already.
    """
    outputs = Counter([output.id for output in graph.outputs])
    given = {source.id for source in graph.inputs if isinstance(source, TensorIr)}
    given.update([constant.tensor.id for constant in graph.constants])

    def is_possible(donation: Donation) -> bool:
        if graph.inputs[donation.input].id in outputs:
            return False
        if donation.output is None:
            return True
        id = graph.outputs[donation.output].id
        return outputs[id] == 1 and id not in given

    return replace(graph, donated=tuple(filter(is_possible, graph.donated)))
