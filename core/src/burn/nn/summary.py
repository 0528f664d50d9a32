"""Summaries of modules: the shapes, parameters, operations and bytes of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from burn.devices import running_trace
from burn.functions.gradient import no_grad
from burn.nn import module as modules
from burn.nn._reading import described_on_a_line
from burn.nn._slots import modules_of
from burn.tensor.tensor import Tensor
from burn.transforms.tracing import trace
from burn.tree import leaves

if TYPE_CHECKING:
    from burn.nn.module import Module

__all__ = ["ModuleSummary", "Summary", "summarize"]

_WIDEST: Final = 48
"""Number of characters of a module in the table."""


class ModuleSummary(NamedTuple):
    """What one module of a tree does for an input.

    Attributes
    ----------
    path : str
        Empty for the root.
    depth : int
        Number of modules above it.
    module : str
        As ``repr`` shows it.
    outputs : tuple of str
        Dtype and shape of each output tensor of its last call; empty if it was not called.
    parameters : int
        Number of elements of its parameters and of those below it, each tensor once.
    calls : int
        How often it was called.
    flops : int
        Floating-point operations of all its calls.
    bytes : int
        Size of what the operations of its calls read and write.
    """

    path: str
    depth: int
    module: str
    outputs: tuple[str, ...]
    parameters: int
    calls: int
    flops: int
    bytes: int


@dataclass(frozen=True)
class Summary:
    """What each module of a tree does for an input; it prints as a table.

    Attributes
    ----------
    rows : list of ModuleSummary
        The root first, then each module in the order of its attributes.
    """

    rows: list[ModuleSummary]

    def __str__(self) -> str:
        heads = ("module", "output", "parameters", "calls", "FLOP", "bytes")
        table: list[tuple[str, ...]] = [heads]
        above: list[str] = []
        for row in self.rows:
            above = above[: row.depth]
            name = row.path.removeprefix(above[-1] if above else "").removeprefix(".")
            above.append(row.path)
            label = "  " * row.depth + (f"{name}: " if name else "") + row.module
            if len(label) > _WIDEST:
                label = label[: _WIDEST - 3] + "..."
            numbers = [
                f"{number:,}" for number in (row.parameters, row.calls, row.flops, row.bytes)
            ]
            table.append((label, ", ".join(row.outputs), *numbers))
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        return "\n".join(
            [
                "  ".join(
                    [
                        *map(str.ljust, row[:2], widths[:2]),
                        *map(str.rjust, row[2:], widths[2:]),
                    ]
                ).rstrip()
                for row in table
            ]
        )

    __repr__ = __str__


def summarize(module: Module, inputs: tuple[Any, ...]) -> Summary:
    """The summary of a module for inputs; see `Module.summary`."""
    spans: dict[int, list[tuple[int, int]]] = {}
    outputs: dict[int, tuple[str, ...]] = {}

    def observe(one: Module, call: Callable[[], Any]) -> Any:
        operations = running_trace().recorder.operations  # type: ignore[union-attr]  # `trace` calls
        start = len(operations)
        result = call()
        one = one._module_state.source or one
        spans.setdefault(id(one), []).append((start, len(operations)))
        outputs[id(one)] = tuple([_shown(x) for x in leaves(result) if isinstance(x, Tensor)])
        return result

    token = modules.observer.set(observe)
    try:
        with no_grad():
            program = trace(module, *inputs)
    finally:
        modules.observer.reset(token)
    costs = program.cost().operations
    rows: list[ModuleSummary] = []
    paths = [path for path, _ in modules_of(module)]
    for path, item in modules_of(module):
        own = [costs[start:end] for start, end in spans.get(id(item), ())]
        rows.append(
            ModuleSummary(
                path,
                sum(not above or path.startswith(f"{above}.") for above in paths) - (not path),
                described_on_a_line(item),
                outputs.get(id(item), ()),
                item.num_parameters,
                len(own),
                sum(operation.flops for span in own for operation in span),
                sum(operation.bytes for span in own for operation in span),
            )
        )
    return Summary(rows)


def _shown(x: Tensor) -> str:
    return f"{x.dtype.name}[{', '.join(map(str, x.shape))}]"
