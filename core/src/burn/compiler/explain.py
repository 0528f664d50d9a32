"""Text about a plan, for people: what each kernel computes, and why calls are calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from burn.compiler.fusion_rules import shape_of
from burn.compiler.plan import KernelCall, Plan
from burn.ir import OperationIr, TensorIr
from burn.ir._operands import tensors_among
from burn.ops.shapes import size

__all__ = ["explained"]

_MOST_NAMES = 12


def explained(plan: Plan) -> str:
    """What a plan runs as one kernel, and what it calls and why.

    Parameters
    ----------
    plan : Plan
        The plan.
    """
    reasons = {
        operation.outputs[0].id: plan.reasons[index]
        for index, operation in enumerate(plan.graph.operations)
        if index in plan.reasons and isinstance(operation, OperationIr)
    }
    lines = []
    kernels = calls = moved = 0
    for number, step in enumerate(plan.steps):
        if isinstance(step, KernelCall):
            kernels += 1
            read, written = _bytes(step.inputs), _bytes(step.outputs)
            moved += read + written
            lines += _kernel(number, step, read, written)
        else:
            reason = reasons.get(step.outputs[0].id, "it is a view that a call or the caller reads")
            calls += reason != ""
            moved += _bytes(tensors_among(step.inputs)) + _bytes(step.outputs)
            lines.append(f"{number:4} call    {step.describe()}")
            lines.append(f"             {reason}")
    total = f"{kernels} kernels and {calls} calls, which read and write {_shown(moved)}"
    return "\n".join([total, *lines])


def _kernel(number: int, step: KernelCall, read: int, written: int) -> list[str]:
    """The lines of a kernel."""
    kernel = step.kernel
    rows, columns = kernel.row_count, kernel.column_count
    length = f"{rows} rows x {columns} columns" if kernel.rows < len(kernel.space) else f"{rows}"
    counts = Counter([(one.source, one.name) for one in step.operations])
    by_source: dict[str, list[str]] = {}
    for (source, name), count in counts.items():
        names = by_source.setdefault(source, [])
        names.append(name if count == 1 else f"{count} {name}")
    moved = f"reads {_shown(read)} of {len(step.inputs)} tensors, writes {_shown(written)}"
    lines = [f"{number:4} kernel  {length}: {moved}"]
    for source, names in by_source.items():
        more = f", and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        where = source and f"    # {source}"
        lines.append(f"             {', '.join(names[:_MOST_NAMES])}{more}{where}")
    return lines


def _bytes(tensors: Iterable[TensorIr]) -> int:
    known = [one for one in tensors if None not in one.shape]
    return sum([size(shape_of(one)) * one.dtype.itemsize for one in known])


def _shown(count: int) -> str:
    """A number of bytes."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 10240 or unit == "GiB":
            return f"{count:,} {unit}"
        count = round(count / 1024)
    raise AssertionError
