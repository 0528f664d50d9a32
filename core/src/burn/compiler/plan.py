"""Plan: what a compiled program does, step by step: calls of ops, and of generated kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from burn.backend.invalid_values import index_error
from burn.dtype import DType
from burn.errors import OutOfRangeError
from burn.ir import GraphIr, HostNumber, OperationIr, TensorIr, tensors_among
from burn.kernels import Kernel

__all__ = ["Check", "KernelCall", "Plan", "Step", "Target", "inputs_of"]


@dataclass(frozen=True)
class Target:
    """What a device computes with generated kernels.

    Attributes
    ----------
    dtypes : frozenset of DType
        Dtypes that kernels may load, compute and store.
    keeps : callable
        Whether an operation stays a call of the device's own op, where it could be decomposed or
        be part of a kernel. Operations without either are calls in any case.
    max_product : int
        Multiplications up to which a matrix product is a generated kernel.
    checks : bool
        Whether the runner of the plan reads the outputs that `KernelCall.checks` names, and raises.
        Otherwise operations that check indices are calls.
    makes_own : callable
        Whether the results of a call are dense memory that nothing else refers to, so that a kernel
        may overwrite them.
    reports_late : bool
        Whether the device reports indices that are out of range when values are next read, so that
        all steps have run by then.
    rows : int
        Rows that keep the device busy: a reduction to fewer ones over many columns is two kernels,
        the first one of partial results.
    strided_rows : int
        The same, where neighbours in memory are of several rows, as in the sum over the first axis.
    long_columns : int
        Columns from which on a reduction is divided in this way.
    copies : callable
        Whether a call copies operands that are views with strides: then kernels store them densely.
    """

    dtypes: frozenset[DType]
    keeps: Callable[[OperationIr], bool]
    max_product: int = 0
    checks: bool = False
    makes_own: Callable[[OperationIr], bool] = lambda _: False
    reports_late: bool = False
    rows: int = 32
    strided_rows: int = 32
    long_columns: int = 8192
    copies: Callable[[OperationIr], bool] = lambda _: False


class Check(NamedTuple):
    """An output of a kernel that says whether indices are in range.

    Attributes
    ----------
    output : int
        Number of the output among those of the kernel: for each index 0, or the index if it is out
        of range, for `error`.
    length : int
        Length of the axis.
    operation : OperationIr
        The operation whose indices they are.
    """

    output: int
    length: int
    operation: OperationIr

    def error(self, index: int) -> OutOfRangeError:
        """The error for an index that is out of range."""
        error = index_error(index, self.length)
        vars(error)["checked"] = self.operation
        return error


class KernelCall(NamedTuple):
    """The launch of a generated kernel.

    Attributes
    ----------
    kernel : Kernel
        What is computed.
    inputs : tuple of TensorIr
        The tensors that it reads, dense and in row-major order.
    scalars : tuple of HostNumber, int or float
        The numbers that it is given.
    outputs : tuple of TensorIr
        The tensors that it makes.
    over : tuple of (int or None)
        For each output the number of the input whose memory it takes, one of those that
        `Kernel.overwrites` names; None for memory of its own.
    operations : tuple of OperationIr
        What it replaces, in order.
    checks : tuple of Check
        Outputs that say whether indices are in range.
    """

    kernel: Kernel
    inputs: tuple[TensorIr, ...]
    scalars: tuple[HostNumber | int | float, ...]
    outputs: tuple[TensorIr, ...]
    over: tuple[int | None, ...]
    operations: tuple[OperationIr, ...]
    checks: tuple[Check, ...] = ()

    @property
    def source(self) -> str:
        """The line of the user's program of the first operation."""
        return self.operations[0].source

    @property
    def name(self) -> str:
        """The operations as in a profile: ``kernel of exp, sum``."""
        names = [operation.name for operation in self.operations]
        more = f" and {len(names) - 6} more" if len(names) > 6 else ""
        return f"kernel of {', '.join(names[:6])}{more}"

    def describe(self) -> str:
        """The operations as in a message: ``kernel of exp, sum at train.py:12``."""
        return f"{self.name} at {self.source}" if self.source else self.name


Step: TypeAlias = OperationIr | KernelCall


def inputs_of(step: Step) -> Iterable[TensorIr]:
    """The tensors that a step reads."""
    return step.inputs if isinstance(step, KernelCall) else tensors_among(step.inputs)


@dataclass(frozen=True)
class Plan:
    """The steps of a program.

    Attributes
    ----------
    graph : GraphIr
        The program that they compute, after the passes.
    steps : tuple of Step
        What a run does, in order.
    reasons : dict of int to str
        Why the operation at an index of the graph is a call and no part of a kernel.
    last_use : dict of int to int
        For each tensor that a step makes, and that is no output, the index of the last step that
        reads it.
    """

    graph: GraphIr
    steps: tuple[Step, ...]
    reasons: Mapping[int, str]
    last_use: Mapping[int, int]
