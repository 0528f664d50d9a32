"""A picture of a graph: operations from top to bottom, and lines where tensors go."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from burn.ir._layout import Layout
from burn.ir.graph import GraphIr, OperationIr, ScalarIr, TensorIr

__all__ = ["draw"]

_HEIGHT: Final = 38.0
_ROW: Final = 76.0
_MARGIN: Final = 16.0
_TITLE_CHARACTER: Final = 7.3
_META_CHARACTER: Final = 6.7
_MAX_CHARACTERS: Final = 40
_MAX_TOOLTIP: Final = 2000

_LONGEST_LINE: Final = 10
"""Rows that a line crosses at most. A box that is farther from where it is used is shown there
once more, as a reference: so the lines of large graphs stay few, and one can follow them."""

_STYLE: Final = """
.burn-graph { font: 12px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.burn-graph .page { fill: #ffffff; stroke: none; }
.burn-graph text { fill: #1f2328; text-anchor: middle; }
.burn-graph .meta { fill: #59636e; font-size: 11px; }
.burn-graph .caption { text-anchor: start; }
.burn-graph rect { fill: #eef4fc; stroke: #5e8fc9; }
.burn-graph .input rect { fill: #e9f6ec; stroke: #4f9d69; }
.burn-graph .constant rect { fill: #f4f1ea; stroke: #a08b5b; }
.burn-graph .output rect { fill: #fdeef0; stroke: #c7606f; }
.burn-graph .reference rect { fill: none; stroke: #8c959f; stroke-dasharray: 4 3; }
.burn-graph path { fill: none; stroke: #8c959f; stroke-width: 1.3; }
.burn-graph marker path { fill: #8c959f; stroke: none; }
.burn-graph g:hover > path { stroke: #d1651f; stroke-width: 2.5; }
@media (prefers-color-scheme: dark) {
.burn-graph .page { fill: #0d1117; }
.burn-graph text { fill: #e6edf3; }
.burn-graph .meta { fill: #9198a1; }
.burn-graph rect { fill: #132339; stroke: #4d84c4; }
.burn-graph .input rect { fill: #12261a; stroke: #468f5f; }
.burn-graph .constant rect { fill: #26221a; stroke: #94804f; }
.burn-graph .output rect { fill: #2d161b; stroke: #b95a69; }
.burn-graph path { stroke: #6e7781; }
.burn-graph marker path { fill: #6e7781; }
}
"""


_ARROW: Final = (
    '<defs><marker id="burn-graph-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" '
    'markerHeight="6" orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>'
)


@dataclass(slots=True)
class _Box:
    """A box of the picture.

    Attributes
    ----------
    kind : str
        ``operation``, ``input``, ``constant``, ``output`` or ``reference``.
    title, meta : str
        Its two lines of text.
    tooltip : str
        What it shows on demand.
    row : int
        Its row.
    is_scalar : bool
        Whether it makes numbers, which many operations may use.
    """

    kind: str
    title: str
    meta: str
    tooltip: str
    row: int = 0
    is_scalar: bool = False


class _Picture:
    """The boxes of a graph and the edges between them.

    Attributes
    ----------
    boxes : list of _Box
        The boxes.
    edges : list of (int, int)
        Pairs of boxes, the second in a later row.
    """

    def __init__(self, graph: GraphIr) -> None:
        self.boxes: list[_Box] = []
        self.edges: list[tuple[int, int]] = []
        self._makers: dict[tuple[type, int], int] = {}
        self._references: dict[tuple[int, int], int] = {}
        uses: list[tuple[int, list[int]]] = []
        for number, given in enumerate(graph.inputs):
            box = _Box("input", f"input {number}", _named(given), _named(given))
            box.is_scalar = isinstance(given, ScalarIr)
            self._add(box, [given])
        for constant in graph.constants:
            tensor = constant.tensor
            self._add(_Box("constant", "constant", _named(tensor), _named(tensor)), [tensor])
        if graph.draw is not None:
            words = f"{graph.draw.words} words a run"
            box = _Box("input", "random numbers", words, words, is_scalar=True)
            self._add(box, [graph.draw.seed, graph.draw.offset])
        sources = len(self.boxes)
        for one in graph.operations:
            if isinstance(one, OperationIr):
                used = self._used([*one.inputs, *one.attributes.values()])
                box = _Box("operation", one.name, _outputs(one), _described(one))
                uses.append((self._add(box, one.outputs), used))
        for number, tensor in enumerate(graph.outputs):
            used = self._used([tensor])
            box = _Box("output", f"output {number}", _named(tensor), _named(tensor))
            uses.append((self._add(box, []), used))
        self._choose_rows(sources, uses)
        for box_number, used in uses:
            for one_used in used:
                self._connect(one_used, box_number)

    def _add(self, box: _Box, made: Any) -> int:
        """Add a box that makes tensors or scalars."""
        number = len(self.boxes)
        self.boxes.append(box)
        for one in made:
            self._makers[type(one), one.id] = number
        return number

    def _used(self, values: Any) -> list[int]:
        """The boxes that make some values, each once."""
        found: dict[int, None] = {}
        for value in values:
            for one in value if value.__class__ is tuple else (value,):
                maker = self._makers.get((type(one), getattr(one, "id", -1)))
                if maker is not None:
                    found[maker] = None
        return list(found)

    def _choose_rows(self, sources: int, uses: list[tuple[int, list[int]]]) -> None:
        """An operation is below all that it uses; an input is just above where it is used first.

        So is an operation that uses one other at most: no line gets longer by that.
        """
        boxes = self.boxes
        for number, used in uses:
            boxes[number].row = 1 + max([boxes[one].row for one in used], default=0)
        first: dict[int, int] = {}
        for number, used in reversed(uses):
            if number in first and sum(one >= sources for one in used) < 2:
                boxes[number].row = first[number] - 1
            for one in used:
                first[one] = min(first.get(one, boxes[number].row), boxes[number].row)
        for number in range(sources):
            boxes[number].row = first.get(number, 1) - 1

    def _connect(self, start: int, end: int) -> None:
        row = self.boxes[end].row
        box = self.boxes[start]
        if row - box.row > (1 if box.is_scalar else _LONGEST_LINE):
            start = self._reference(start, row - 1)
        self.edges.append((start, end))

    def _reference(self, number: int, row: int) -> int:
        """The box that represents another one in a row far below it."""
        found = self._references.get((number, row))
        if found is None:
            box = self.boxes[number]
            found = self._add(_Box("reference", box.title, box.meta, box.tooltip, row), [])
            self._references[number, row] = found
        return found


def draw(graph: GraphIr) -> str:
    """A picture of a graph, as a document in SVG.

    Parameters
    ----------
    graph : GraphIr
        The graph.

    Returns
    -------
    str
        The document.
    """
    (main, width, height), *bodies = [_drawn(one, caption) for caption, one in _programs(graph, "")]
    groups = main
    for parts, own_width, own_height in bodies:
        groups += [f'<svg y="{height:.0f}">', *parts, "</svg>"]
        width, height = max(width, own_width), height + own_height
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="burn-graph" role="img" '
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">'
    )
    page = '<rect class="page" width="100%" height="100%"/>'
    return "\n".join([opening, f"<style>{_STYLE}</style>", _ARROW, page, *groups, "</svg>\n"])


def _programs(graph: GraphIr, caption: str) -> Iterator[tuple[str, GraphIr]]:
    """A program and those that its operations run, each with what it is."""
    yield caption, graph
    for one in graph.operations:
        if isinstance(one, OperationIr):
            for name, value in one.attributes.items():
                if isinstance(value, GraphIr):
                    owner = f"{one.name} %{one.outputs[0].id}"
                    within = f" of {caption}" if caption else ""
                    yield from _programs(value, f"{name} of {owner}{within}")


def _drawn(graph: GraphIr, caption: str) -> tuple[list[str], float, float]:
    """The elements of the picture of one program below a caption, and its width and height."""
    picture = _Picture(graph)
    boxes = picture.boxes
    widths = [
        max(len(box.title) * _TITLE_CHARACTER, len(box.meta) * _META_CHARACTER) + 18.0
        for box in boxes
    ]
    layout = Layout(widths, [box.row for box in boxes], picture.edges)
    width = max(layout.width, len(caption) * _TITLE_CHARACTER) + 2.0 * _MARGIN
    height = (max(layout.row, default=0)) * _ROW + _HEIGHT + 2.0 * _MARGIN
    parts = [
        *_lines(layout, boxes, widths),
        *[
            _shown(box, _MARGIN + x, _top(box.row), box_width)
            for box, x, box_width in zip(boxes, layout.x, widths, strict=False)
        ],
    ]
    if caption:
        text = (
            f'<text class="caption" x="{_MARGIN:.0f}" y="{_MARGIN:.0f}">{_escaped(caption)}</text>'
        )
        parts = [text, f'<svg y="{_MARGIN:.0f}">', *parts, "</svg>"]
        height += _MARGIN
    return parts, width, height


def _top(row: int) -> float:
    return _MARGIN + row * _ROW


def _lines(layout: Layout, boxes: list[_Box], widths: list[float]) -> Iterator[str]:
    """The lines that begin at each box, as a group with the tooltip of the box."""
    starts = _ports(layout, widths, layout.segments)
    into: list[list[int]] = [[] for _ in layout.row]
    for number, below in enumerate(layout.segments):
        for one in below:
            into[one].append(number)
    ends = _ports(layout, widths, into)
    paths: list[list[str]] = [[] for _ in boxes]
    for number, below in enumerate(layout.segments):
        top = _top(layout.row[number]) + _HEIGHT
        bottom = top + _ROW - _HEIGHT
        middle = (top + bottom) / 2.0
        for one in below:
            x1, x2 = _MARGIN + starts[number, one], _MARGIN + ends[one, number]
            path = f"M{x1:.1f} {top:.0f}C{x1:.1f} {middle:.0f} {x2:.1f} {middle:.0f} {x2:.1f} "
            is_box = one < len(boxes)
            path += f"{bottom:.0f}" if is_box else f"{bottom:.0f}v{_HEIGHT:.0f}"
            arrow = ' marker-end="url(#burn-graph-arrow)"' if is_box else ""
            paths[layout.source[number]].append(f'<path d="{path}"{arrow}/>')
    for box, drawn in zip(boxes, paths, strict=True):
        if drawn:
            yield f"<g><title>{_escaped(box.tooltip)}</title>{''.join(drawn)}</g>"


def _ports(
    layout: Layout, widths: list[float], neighbours: list[list[int]]
) -> dict[tuple[int, int], float]:
    """Where the line to each neighbour leaves a box: spread over its middle, in their order."""
    found = {}
    for number, others in enumerate(neighbours):
        spread = 0.6 * widths[number] if number < len(widths) else 0.0
        step = min(spread / len(others), 24.0) if others else 0.0
        first = layout.x[number] - step * (len(others) - 1) / 2.0
        for index, other in enumerate(sorted(others, key=layout.x.__getitem__)):
            found[number, other] = first + step * index
    return found


def _shown(box: _Box, x: float, top: float, width: float) -> str:
    corner = 4 if box.kind == "operation" else _HEIGHT / 2
    return (
        f'<g class="{box.kind}"><title>{_escaped(box.tooltip)}</title>'
        f'<rect x="{x - width / 2.0:.1f}" y="{top:.0f}" width="{width:.1f}" '
        f'height="{_HEIGHT:.0f}" rx="{corner:.0f}"/>'
        f'<text x="{x:.1f}" y="{top + 16.0:.0f}">{_escaped(box.title)}</text>'
        f'<text class="meta" x="{x:.1f}" y="{top + 31.0:.0f}">{_escaped(box.meta)}</text></g>'
    )


def _named(one: TensorIr | ScalarIr) -> str:
    return f"%{one.id}: {one}" if isinstance(one, TensorIr) else f"${one.id}: {one.kind.__name__}"


def _outputs(operation: OperationIr) -> str:
    """The outputs of an operation in a few characters; several equal ones with their number."""
    counts: dict[str, int] = {}
    for output in operation.outputs:
        counts[str(output)] = counts.get(str(output), 0) + 1
    parts = [name if count == 1 else f"{count}x {name}" for name, count in counts.items()]
    return _cropped(f"%{operation.outputs[0].id}: {', '.join(parts)}", _MAX_CHARACTERS)


def _described(operation: OperationIr) -> str:
    """The source line of an operation, the call, and what it makes."""
    values = [
        *map(_operand, operation.inputs),
        *[f"{name}={_operand(value)}" for name, value in operation.attributes.items()],
    ]
    lines = [operation.source, f"{operation.name}({', '.join(values)})"]
    lines += map(_named, operation.outputs)
    return _cropped("\n".join(filter(None, lines)), _MAX_TOOLTIP)


def _operand(value: Any) -> str:
    if isinstance(value, GraphIr):
        return f"<{len(value.operations)} operations>"
    if isinstance(value, TensorIr):
        return f"%{value.id}"
    if value.__class__ is tuple and any(isinstance(one, TensorIr) for one in value):
        return f"[{', '.join(map(_operand, value))}]"
    return str(value)


def _cropped(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


_NOT_IN_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _escaped(text: str) -> str:
    """Text as XML has it; what no document in XML may contain is replaced."""
    return escape(_NOT_IN_XML.sub("�", text))
