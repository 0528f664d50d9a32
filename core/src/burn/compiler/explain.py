"""A plan for people: as text, what each kernel computes and why calls are calls; as a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from burn.compiler.fusion_rules import shape_of
from burn.compiler.memory import arena
from burn.compiler.plan import KernelCall, Plan, Step, inputs_of
from burn.ir import OperationIr, TensorIr
from burn.ir.svg import PictureStep, draw
from burn.ops.shapes import size

__all__ = ["drawn", "explained"]

_MOST_NAMES: Final = 12


def explained(plan: Plan) -> str:
    """What a plan runs as one kernel, and what it calls and why.

    Parameters
    ----------
    plan : Plan
        The plan.

    Returns
    -------
    str
        A line of sums, and for each step what it is, with the lines of the user's program.

    Examples
    --------
    >>> import burn
    >>> from burn.compiler import Target, planned
    >>> from burn.ir import GraphIr
    >>> graph = GraphIr.from_text('''
    ...     input %0: float32[4, 8]
    ...     %1: float32[4, 8] = exp(%0)    # a.py:1
    ...     %2: float32[4] = sum(%1, axis=(1,), dtype=float32)    # a.py:2
    ...     output %2
    ... ''')
    >>> print(explained(planned(graph, Target(frozenset([burn.float32]), lambda operation: False))))
    1 kernel, 0 calls; they read 128 B and write 16 B
       0 kernel  4 rows x 8 columns: reads 128 B of 1 tensor, writes 16 B
                 exp    # a.py:1
                 sum    # a.py:2
    """
    reasons = _reasons(plan)
    lines = []
    calls = read = written = 0
    for number, step in enumerate(plan.steps):
        given, made = _bytes(inputs_of(step)), _bytes(step.outputs)
        if isinstance(step, KernelCall):
            lines += _kernel(number, step, given, made)
        else:
            reason = reasons.get(step.outputs[0].id, _VIEW)
            lines += [f"{number:4} call    {step.describe()}", f"{'':13}{reason}"]
            if reason is _VIEW:
                continue
            calls += 1
        read, written = read + given, written + made
    kernels = len([step for step in plan.steps if isinstance(step, KernelCall)])
    sums = (
        f"{_counted(kernels, 'kernel')}, {_counted(calls, 'call')}; they read {_shown(read)} and "
    )
    block = arena(plan).size
    memory = f"; what only kernels need takes {_shown(block)}" if block else ""
    return "\n".join([f"{sums}write {_shown(written)}{memory}", *lines])


_VIEW: Final = "a view that a call or the caller reads"


def drawn(plan: Plan) -> str:
    """A picture of what a plan runs, with the numbers of the steps as in the text.

    Parameters
    ----------
    plan : Plan
        The plan.

    Returns
    -------
    str
        A document in SVG: each call is a box, and each kernel a frame around its operations.
    """
    reasons = _reasons(plan)
    steps = [_picture_step(number, step, reasons) for number, step in enumerate(plan.steps)]
    return draw(plan.graph, steps)


def _picture_step(number: int, step: Step, reasons: Mapping[int, str]) -> PictureStep:
    if isinstance(step, KernelCall):
        title = f"{number} kernel: {_length(step)}"
        read = (*step.inputs, *step.scalars)
        return PictureStep("kernel", title, step.operations, read, step.outputs)
    kind: Final = "call" if step.outputs[0].id in reasons else "view"
    inputs = (*step.inputs, *step.attributes.values())
    return PictureStep(kind, f"{number} {step.name}", (step,), inputs, step.outputs)


def _reasons(plan: Plan) -> dict[int, str]:
    """Why calls are calls, by their first outputs; views are not among them."""
    return {
        operation.outputs[0].id: plan.reasons[index]
        for index, operation in enumerate(plan.graph.operations)
        if index in plan.reasons and isinstance(operation, OperationIr)
    }


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _kernel(number: int, step: KernelCall, read: int, written: int) -> list[str]:
    """The lines of a kernel."""
    counts = Counter([(operation.source, operation.name) for operation in step.operations])
    by_source: dict[str, list[str]] = {}
    for (source, name), count in counts.items():
        names = by_source.setdefault(source, [])
        names.append(name if count == 1 else f"{count} {name}")
    moved = (
        f"reads {_shown(read)} of {_counted(len(step.inputs), 'tensor')}, writes {_shown(written)}"
    )
    lines = [f"{number:4} kernel  {_length(step)}: {moved}"]
    for source, names in by_source.items():
        more = f", and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        where = source and f"    # {source}"
        lines.append(f"             {', '.join(names[:_MOST_NAMES])}{more}{where}")
    return lines


def _length(step: KernelCall) -> str:
    """Rows and columns of a kernel."""
    kernel = step.kernel
    rows, columns = kernel.row_count, kernel.column_count
    return f"{rows} rows x {columns} columns" if kernel.rows < len(kernel.space) else f"{rows}"


def _bytes(tensors: Iterable[TensorIr]) -> int:
    known = [tensor for tensor in tensors if None not in tensor.shape]
    return sum([size(shape_of(tensor)) * tensor.dtype.itemsize for tensor in known])


def _shown(count: int) -> str:
    """A number of bytes."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 10240 or unit == "GiB":
            return f"{count:,} {unit}"
        count = round(count / 1024)
    raise AssertionError
