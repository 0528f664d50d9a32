"""Checks of a graph, and a pass that says where each tensor is used for the last time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from burn.errors import BurnError, GraphError
from burn.ir._forms import (
    MAX_GRAPHS,
    check_operation,
    check_scalar,
    check_tensor,
    is_id,
    shown,
)
from burn.ir._operands import infer, tensors_among
from burn.ir.graph import (
    Constant,
    Draw,
    Drop,
    GraphIr,
    Input,
    OperationIr,
    ScalarIr,
    Status,
    TensorIr,
)
from burn.ops import Meta, Op, Tag

__all__ = ["check", "check_bodies", "with_last_uses"]


def check(graph: GraphIr) -> None:
    """Raise unless a program is one that can run.

    Each op is known, and its operands and attributes are what its signature says; the outputs are
    what `Op.infer` gives. Each tensor is defined once, before it is used, and not used after it was
    dropped or used for the last time; inputs and constants are never dropped or overwritten. Each
    scalar is declared. Constants have values of their shape and dtype. A graph whose lengths
    depend on data can only return them. All that holds for the programs that operations run, too.

    Parameters
    ----------
    graph : GraphIr
        The program.

    Raises
    ------
    GraphError
        If it breaks a rule; the message names the operation, its line in the user's program, and
        the rule.

    Examples
    --------
    >>> import burn
    >>> from burn.ir import GraphIr, OperationIr, Status, TensorIr
    >>> x = TensorIr(0, (3,), burn.float32)
    >>> y = TensorIr(1, (4,), burn.float32, Status.NOT_INIT)
    >>> check(GraphIr((x,), (), (OperationIr("exp", (x,), {}, (y,)),), ()))
    Traceback (most recent call last):
    burn.errors.GraphError: operation 0, exp: %1 is recorded as float32[4], and is float32[3]
    """
    _check(graph, 0)


def check_bodies(operation: OperationIr, depth: int = 0) -> None:
    """Raise unless the programs that an operation runs are correct.

    Parameters
    ----------
    operation : OperationIr
        The operation.
    depth : int
        Number of programs that it is part of, beside one.

    Raises
    ------
    GraphError
        If one breaks a rule.
    """
    for name, value in operation.attributes.items():
        if isinstance(value, GraphIr):
            try:
                _check(value, depth + 1)
            except GraphError as error:
                error.operation = f"{name}: {error.operation}" if error.operation else name
                raise


def _check(graph: GraphIr, depth: int) -> None:
    if depth >= MAX_GRAPHS:
        raise GraphError(f"there are more than {MAX_GRAPHS} programs within each other")
    scope = _Scope(depth)
    location = ""
    try:
        location = "inputs"
        for source in graph.inputs:
            scope.declare(source)
        location = "constants"
        for constant in graph.constants:
            scope.declare(_checked(constant))
        location = "draw"
        if graph.draw is not None:
            scope.declare_draw(graph.draw)
        scope.borrowed = frozenset(scope.alive)
        for index, operation in enumerate(graph.operations):
            location = _location(index, operation)
            if isinstance(operation, Drop):
                scope.end(operation.id, "dropped")
            else:
                scope.run(operation)
        location = "outputs"
        for tensor in graph.outputs:
            scope.use_as_output(tensor)
        location = "donated"
        _check_donated(graph)
    except BurnError as error:
        within = f"{location}: {error.operation}" if error.operation else location
        raise GraphError(error.rule, hint=error.hint, operation=within) from error


def with_last_uses(graph: GraphIr) -> GraphIr:
    """The program with the last use of each tensor marked, so that its memory can be used again.

    Parameters
    ----------
    graph : GraphIr
        A program. The marks that it has are replaced.

    Returns
    -------
    GraphIr
        The same operations. A tensor that an operation made, and that the program does not return,
        has the status `Status.READ_WRITE` where it is used last, and a `Drop` after the operation
        that made it if it is never used. Inputs belong to the caller, and constants to all runs of
        the program: they have neither.

    Examples
    --------
    >>> import burn
    >>> from burn.ir import GraphIr, OperationIr, Status, TensorIr
    >>> x, y, z = [TensorIr(id, (3,), burn.float32) for id in range(3)]
    >>> made = [tensor._replace(status=Status.NOT_INIT) for tensor in (y, z)]
    >>> first = OperationIr("exp", (x,), {}, (made[0],))
    >>> second = OperationIr("add", (y, y), {}, (made[1],))
    >>> print(with_last_uses(GraphIr((x,), (), (first, second), (z,))))
    input %0: float32[3]
    %1: float32[3] = exp(%0)
    %2: float32[3] = add(%1, %1!)
    output %2
    """
    later = {source.id for source in graph.inputs if isinstance(source, TensorIr)}
    later |= {constant.tensor.id for constant in graph.constants}
    later |= {tensor.id for tensor in graph.outputs}

    def marked(operand: Input) -> Input:
        if isinstance(operand, TensorIr):
            last = operand.id not in later
            later.add(operand.id)
            return operand._replace(status=Status.READ_WRITE if last else Status.READ_ONLY)
        if isinstance(operand, tuple):
            return _backwards(operand, marked)
        return operand

    operations: list[OperationIr | Drop] = []
    for operation in reversed(graph.operations):
        if isinstance(operation, OperationIr):
            operations += [
                Drop(output.id) for output in reversed(operation.outputs) if output.id not in later
            ]
            operations.append(operation._replace(inputs=_backwards(operation.inputs, marked)))
    return replace(graph, operations=tuple(operations[::-1]))


def _backwards(items: tuple[Any, ...], function: Any) -> tuple[Any, ...]:
    """What a function gives for each item, called for the last one first."""
    return tuple([function(item) for item in items[::-1]][::-1])


def _location(index: int, operation: Any) -> str:
    if isinstance(operation, Drop):
        return f"operation {index}, drop"
    if not isinstance(operation, OperationIr):
        raise GraphError(f"operation {index} is no OperationIr, and no Drop: {shown(operation)}")
    return f"operation {index}, {operation.name}" + (operation.source and f" at {operation.source}")


def _check_donated(graph: GraphIr) -> None:
    """See that each donation names an input, and an output like it, and none of them twice."""
    outputs = [donation.output for donation in graph.donated if donation.output is not None]
    inputs = [donation.input for donation in graph.donated]
    for found, among, what in ((inputs, graph.inputs, "input"), (outputs, graph.outputs, "output")):
        for index in found:
            if not is_id(index) or index >= len(among):
                raise GraphError(f"there is no {what} {shown(index)}")
        if len(set(found)) != len(found):
            raise GraphError(f"an {what} is named twice")
    for input, output in graph.donated:
        given = graph.inputs[input]
        if isinstance(given, ScalarIr):
            raise GraphError(f"input {input} is a number, and has no memory")
        if output is not None and graph.outputs[output][1:3] != given[1:3]:
            raise GraphError(
                f"input {input} is {given}, and output {output} is {graph.outputs[output]}",
                hint="The output that takes the memory of an input has its shape and dtype",
            )


def _checked(constant: Constant) -> TensorIr:
    """The tensor of a constant, which has the shape and dtype of the values."""
    tensor, data = constant
    check_tensor(tensor)
    if (tensor.shape, tensor.dtype) != (data.shape, data.dtype):
        found = Meta(data.shape, data.dtype)
        raise GraphError(f"%{tensor.id} is recorded as {tensor}, and its values are {found}")
    return tensor


class _Scope:
    """What is defined at one point of a program."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.alive: dict[int, TensorIr] = {}
        self.gone: dict[int, str] = {}
        self.scalars: dict[int, ScalarIr] = {}
        self.borrowed: frozenset[int] = frozenset()
        """Tensors that exist before a run and after it."""

    def declare(self, one: TensorIr | ScalarIr) -> None:
        """Define an input."""
        if isinstance(one, ScalarIr):
            check_scalar(one)
            if one.plus:
                raise GraphError(f"${one.id} is declared here, and nothing is added to it")
            if one.id in self.scalars:
                raise GraphError(f"${one.id} is declared twice")
            self.scalars[one.id] = one
            return
        check_tensor(one)
        if one.status is not Status.READ_ONLY or None in one.shape:
            raise GraphError(
                f"%{one.id} exists before a run",
                hint="Its status must be READ_ONLY, and its lengths known",
            )
        self.define(one)

    def declare_draw(self, draw: Draw) -> None:
        """Define the numbers that a run reserves random numbers by."""
        for scalar in (draw.seed, draw.offset):
            check_scalar(scalar)
            self.declare(scalar)
        if not draw.seed.kind is draw.offset.kind is int:
            raise GraphError("seed and offset are integers")
        if not is_id(draw.words):
            raise GraphError(f"the number of words is {shown(draw.words)}")

    def define(self, tensor: TensorIr) -> None:
        """Define a tensor."""
        if tensor.id in self.alive or tensor.id in self.gone:
            raise GraphError(f"%{tensor.id} is defined twice")
        self.alive[tensor.id] = tensor

    def use(self, tensor: TensorIr) -> None:
        """Use a tensor."""
        defined = self._defined(tensor.id)
        if (defined.shape, defined.dtype) != (tensor.shape, tensor.dtype):
            raise GraphError(f"%{tensor.id} is used as {tensor}, and is defined as {defined}")
        if tensor.status is Status.READ_WRITE:
            self.end(tensor.id, "used for the last time")

    def use_as_output(self, tensor: TensorIr) -> None:
        """Return a tensor to the caller."""
        check_tensor(tensor)
        if tensor.status is not Status.READ_ONLY:
            raise GraphError(f"%{tensor.id} is returned, so its status must be READ_ONLY")
        self.use(tensor)

    def end(self, id: int, how: str) -> None:
        """Note that a tensor is not there any more."""
        self._defined(id)
        if id in self.borrowed:
            raise GraphError(f"%{id} exists after a run, and is {how} here")
        del self.alive[id]
        self.gone[id] = how

    def run(self, operation: OperationIr) -> None:
        """Use the inputs of an operation, and define its outputs."""
        definition = check_operation(operation)
        for tensor in tensors_among(operation.inputs):
            if None in tensor.shape:
                raise GraphError(f"%{tensor.id} has a length that depends on data, and is used")
            self.use(tensor)
        for value in operation.attributes.values():
            if isinstance(value, ScalarIr):
                declared = self.scalars.get(value.id)
                if declared is None or declared.kind is not value.kind:
                    raise GraphError(f"no {value.kind.__name__} ${value.id} is declared")
        check_bodies(operation, self.depth)
        metas = _inferred(definition, operation)
        for tensor, meta in zip(operation.outputs, metas, strict=True):
            if (tensor.shape, tensor.dtype) != meta:
                inferred = TensorIr(tensor.id, *meta)
                raise GraphError(f"%{tensor.id} is recorded as {tensor}, and is {inferred}")
            if None in meta.shape and Tag.DATA_DEPENDENT not in definition.tags:
                raise GraphError(f"no length of %{tensor.id} depends on data")
            self.define(tensor)

    def _defined(self, id: int) -> TensorIr:
        tensor = self.alive.get(id)
        if tensor is None:
            how = f"was {self.gone[id]} before" if id in self.gone else "is not defined"
            raise GraphError(f"%{id} {how}")
        return tensor


def _inferred(definition: Op, operation: OperationIr) -> tuple[Meta, ...]:
    """What the op says that the outputs are."""
    try:
        return infer(definition, operation.inputs, operation.attributes)
    except BurnError:
        raise
    except Exception as error:  # a rule may compute with any number that it is given
        raise GraphError(f"no shape follows from the operands and attributes: {error}") from error
