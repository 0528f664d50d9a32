"""Whether ops on tracked tensors are recorded, and nodes of calls that are no ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Final, Literal

from burn.autodiff.graph import AutodiffTensor, Node, Output, Rule
from burn.errors import AutodiffError
from burn.ops import OpTable
from burn.ops.signature import Primitive

__all__ = ["Capture", "Replay", "custom_node", "recording", "records", "running_again"]


class Capture:
    """In place of False for `recording`: ops are not recorded, but their tracked operands noted.

    Parameters
    ----------
    levels : int
        The number of levels for which this holds; those above record.

    Attributes
    ----------
    tensors : dict
        For each tracked tensor class, so for each level: the tensors by their nodes, in the order
        in which ops with a gradient used them first.
    """

    __slots__ = ("levels", "tensors")

    def __init__(self, levels: int) -> None:
        self.levels = levels
        self.tensors: dict[type[AutodiffTensor], dict[Node, AutodiffTensor]] = {}

    def __bool__(self) -> Literal[False]:
        return False

    def note(self, tensor_type: type[AutodiffTensor], tensor: AutodiffTensor) -> None:
        """Note an operand of an op."""
        self.tensors.setdefault(tensor_type, {}).setdefault(tensor.node, tensor)


class Replay:
    """In place of True for `recording`: ops are recorded, and use known tensors alone.

    Parameters
    ----------
    known : set of Node
        The nodes that ops may use; those that they make are added.
    levels : int
        The number of levels for which this holds; those above record any tensors.
    """

    __slots__ = ("known", "levels")

    def __init__(self, known: set[Node], levels: int) -> None:
        self.known = known
        self.levels = levels

    def __bool__(self) -> Literal[False]:
        return False  # so that `records` is asked

    def check(self, node: Node) -> None:
        """Raise AutodiffError unless a node is known."""
        if node not in self.known and not (
            node.__class__ is Output and node.parents and node.parents[0] in self.known
        ):
            raise AutodiffError(
                "the function used other tracked tensors when it ran again",
                hint="Do not replace what it uses before the backward pass, or pass it as argument",
            )


recording: Final[ContextVar[bool | Capture | Replay]] = ContextVar("burn_recording", default=True)
"""Whether ops on tracked operands are recorded; False inside ``burn.no_grad()``."""

running_again: Final[ContextVar[bool]] = ContextVar("burn_running_again", default=False)
"""Whether a function of `burn.checkpoint` runs for the backward pass, after its first call.

What it does beside its result, such as updating running statistics, is done already.
"""


def records(
    tensor_type: type[AutodiffTensor], operands: Sequence[Any], node: Node | None = None
) -> bool:
    """Whether an op of a level is recorded, as `node`; a `Capture` or `Replay` sees the operands.

    Raises
    ------
    AutodiffError
        If a `Replay` does not know an operand.
    """
    state = recording.get()
    if isinstance(state, bool) or tensor_type.level >= state.levels:
        return state is not False
    for operand in operands:
        if operand.__class__ is tensor_type:
            if isinstance(state, Capture):
                state.note(tensor_type, operand)
            else:
                state.check(operand.node)
        elif operand.__class__ is list:
            records(tensor_type, operand)
    if isinstance(state, Capture):
        return False
    if node is not None:
        state.known.add(node)
    return True


def custom_node(
    tensor_type: type[AutodiffTensor],
    parents: Sequence[Node],
    primitives: Sequence[Primitive],
    vjp: Callable[[OpTable, Sequence[Primitive | None]], Sequence[Primitive | None]],
    ops: OpTable,
    name: str,
) -> list[AutodiffTensor]:
    """Tracked tensors of a call that is no op.

    Parameters
    ----------
    tensor_type : type
        Tracked tensor class of the level.
    parents : sequence of Node
        Nodes of the tensors that the call depends on.
    primitives : sequence
        The outputs, of the level below.
    vjp : callable
        From the table to compute in and the gradient of each output, or None, to that of each
        parent, or None.
    ops : OpTable
        The table of the level below.
    name : str
        What errors call it.
    """

    def call(ops: OpTable, ctx: Node, *cotangents: Primitive | None) -> Sequence[Primitive | None]:
        del ctx
        return vjp(ops, cotangents)

    node = Node()
    node.rule = Rule(name, call, ops, len(primitives))
    node.parents = tuple(parents)
    node.needs = (True,) * len(parents)
    node.saved = ()
    node.attrs = {}
    node.output_shape = primitives[0].shape
    state = recording.get()
    if isinstance(state, Replay) and tensor_type.level < state.levels:
        for parent in parents:
            state.check(parent)
        state.known.add(node)
    several = len(primitives) > 1
    tensors = []
    for index, primitive in enumerate(primitives):
        tensor = tensor_type()
        tensor.primitive = primitive
        tensor.node = Output(node, index, primitive.shape) if several else node
        tensors.append(tensor)
    return tensors
