"""A picture of a graph: operations from top to bottom, and lines where tensors go."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final, Literal, NamedTuple

from burn.ir._layout import Layout
from burn.ir.graph import GraphIr, OperationIr, ScalarIr, TensorIr
from burn.ir.host_number import HostNumber

__all__ = ["PictureStep", "draw"]

_LINE: Final = 15.0
_PADDING: Final = 8.0
_GAP: Final = 38.0
_GAP_INSIDE: Final = 18.0
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
.burn-graph .kernel > rect { fill: #f3eefc; stroke: #8b66c4; }
.burn-graph .view rect { fill: #ffffff; stroke: #8c959f; }
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
.burn-graph .kernel > rect { fill: #1f1833; stroke: #7f5cb8; }
.burn-graph .view rect { fill: #0d1117; stroke: #6e7781; }
.burn-graph path { stroke: #6e7781; }
.burn-graph marker path { fill: #6e7781; }
}
"""


_ARROW: Final = (
    '<defs><marker id="burn-graph-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" '
    'markerHeight="6" orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>'
)


class PictureStep(NamedTuple):
    """What runs as one, in the picture of a program that is made ready for a device.

    Attributes
    ----------
    kind : str
        ``call``, ``view``, or ``kernel``, which is a frame around its operations.
    title : str
        What stands above the operations.
    operations : tuple of OperationIr
        What it computes; one operation if it is no kernel.
    inputs : tuple
        The tensors and numbers that it reads.
    outputs : tuple of TensorIr
        The tensors that it makes.
    """

    kind: Literal["call", "view", "kernel"]
    title: str
    operations: tuple[OperationIr, ...]
    inputs: tuple[Any, ...]
    outputs: tuple[TensorIr, ...]


class _Drawing(NamedTuple):
    """Elements with the size of what they show."""

    parts: list[str]
    width: float
    height: float


@dataclass(slots=True)
class _Box:
    """A box of the picture.

    Attributes
    ----------
    kind : str
        ``operation``, ``input``, ``constant``, ``output``, ``reference``, or that of a step.
    title, meta : str
        Its lines of text; the second may be empty.
    tooltip : str
        What it shows on demand.
    row : int
        Its row.
    is_scalar : bool
        Whether it makes numbers, which many operations may use.
    inside : _Drawing, optional
        What stands in it below the text.
    """

    kind: str
    title: str
    meta: str
    tooltip: str
    row: int = 0
    is_scalar: bool = False
    inside: _Drawing | None = None

    @property
    def width(self) -> float:
        """Its width, with room around the text."""
        text = max(len(self.title) * _TITLE_CHARACTER, len(self.meta) * _META_CHARACTER) + 18.0
        return text if self.inside is None else max(text, self.inside.width)

    @property
    def height(self) -> float:
        """Its height."""
        text = _PADDING + _LINE * (2 if self.meta else 1)
        return text if self.inside is None else text + self.inside.height


class _Picture:
    """The boxes of a graph and the edges between them.

    Parameters
    ----------
    graph : GraphIr
        The graph.
    steps : sequence of PictureStep, optional
        What runs as one. Left out, the boxes are the operations of the graph.
    is_inside : bool, optional
        Whether it is shown in a box of another picture: its own have one line of text.

    Attributes
    ----------
    boxes : list of _Box
        The boxes.
    edges : list of (int, int)
        Pairs of boxes, the second in a later row.
    """

    def __init__(
        self, graph: GraphIr, steps: Sequence[PictureStep] = (), *, is_inside: bool = False
    ) -> None:
        self.boxes: list[_Box] = []
        self.edges: list[tuple[int, int]] = []
        self._makers: dict[tuple[type, int], int] = {}
        self._references: dict[tuple[int, int], int] = {}
        uses: list[tuple[int, list[int]]] = []
        self._add_sources(graph)
        sources = len(self.boxes)
        for step in steps or graph.operations:
            if isinstance(step, OperationIr):
                used = self._used([*step.inputs, *step.attributes.values()])
                meta = "" if is_inside else _outputs(step.outputs)
                box = _Box("operation", step.name, meta, _described(step))
                uses.append((self._add(box, step.outputs), used))
            elif isinstance(step, PictureStep):
                uses.append((self._add(_step_box(step), step.outputs), self._used(step.inputs)))
        for number, tensor in enumerate(graph.outputs):
            used = self._used([tensor])
            box = _Box("output", f"output {number}", _named(tensor), _named(tensor))
            uses.append((self._add(box, []), used))
        self._choose_rows(sources, uses)
        first = min([box.row for box in self.boxes], default=0)
        for box in self.boxes:
            box.row -= first
        for box_number, used in uses:
            for one_used in used:
                self._connect(one_used, box_number)

    def _add_sources(self, graph: GraphIr) -> None:
        """Add what a run has before its operations."""
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

    def _add(self, box: _Box, made: Any) -> int:
        """Add a box that makes tensors or scalars."""
        number = len(self.boxes)
        self.boxes.append(box)
        for item in made:
            self._makers[type(item), item.id] = number
        return number

    def _used(self, values: Any) -> list[int]:
        """The boxes that make some values, each once."""
        found: dict[int, None] = {}
        for value in values:
            for part in value if value.__class__ is tuple else (value,):
                ids = [(type(part), getattr(part, "id", -1))]
                if isinstance(part, HostNumber):
                    ids = [(ScalarIr, id) for id in part.scalars]
                found.update({self._makers[id]: None for id in ids if id in self._makers})
        return list(found)

    def _choose_rows(self, sources: int, uses: list[tuple[int, list[int]]]) -> None:
        """An operation is below all that it uses; an input is just above where it is used first.

        So is an operation that uses one other at most: no line gets longer by that.
        """
        boxes = self.boxes
        for number, used in uses:
            boxes[number].row = 1 + max([boxes[number].row for number in used], default=0)
        first: dict[int, int] = {}
        for number, used in reversed(uses):
            if number in first and sum(number >= sources for number in used) < 2:
                boxes[number].row = first[number] - 1
            for item in used:
                first[item] = min(first.get(item, boxes[number].row), boxes[number].row)
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


def draw(graph: GraphIr, steps: Sequence[PictureStep] = ()) -> str:
    """A picture of a graph, as a document in SVG.

    Parameters
    ----------
    graph : GraphIr
        The graph.
    steps : sequence of PictureStep, optional
        What runs as one on a device, in order. Left out, each operation is on its own.

    Returns
    -------
    str
        The document.
    """
    groups, width, height = _drawn(_Picture(graph, steps), _GAP)
    bodies = [_below(caption, program) for caption, program in _programs(graph, "")]
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
    """The programs that the operations of a program run, each with what it is."""
    for operation in graph.operations:
        if isinstance(operation, OperationIr):
            for name, value in operation.attributes.items():
                if isinstance(value, GraphIr):
                    owner = f"{operation.name} %{operation.outputs[0].id}"
                    within = f" of {caption}" if caption else ""
                    inner = f"{name} of {owner}{within}"
                    yield inner, value
                    yield from _programs(value, inner)


def _below(caption: str, graph: GraphIr) -> _Drawing:
    """The picture of a program below a caption."""
    parts, width, height = _drawn(_Picture(graph), _GAP)
    text = f'<text class="caption" x="{_MARGIN:.0f}" y="{_MARGIN:.0f}">{_escaped(caption)}</text>'
    parts = [text, f'<svg y="{_MARGIN:.0f}">', *parts, "</svg>"]
    least = len(caption) * _TITLE_CHARACTER + 2.0 * _MARGIN
    return _Drawing(parts, max(width, least), height + _MARGIN)


def _drawn(picture: _Picture, gap: float) -> _Drawing:
    """The elements of a picture whose rows are so far apart."""
    boxes = picture.boxes
    widths = [box.width for box in boxes]
    layout = Layout(widths, [box.row for box in boxes], picture.edges)
    heights = [0.0] * (max(layout.row, default=-1) + 1)
    for box in boxes:
        heights[box.row] = max(heights[box.row], box.height)
    tops = [_MARGIN]
    for height in heights:
        tops.append(tops[-1] + height + gap)
    parts = [
        *_lines(layout, boxes, widths, tops, gap),
        *[
            _shown(box, _MARGIN + x, tops[box.row], box_width)
            for box, x, box_width in zip(boxes, layout.x, widths, strict=False)
        ],
    ]
    height = tops[-1] + _MARGIN - gap if heights else 2.0 * _MARGIN
    return _Drawing(parts, layout.width + 2.0 * _MARGIN, height)


def _lines(
    layout: Layout, boxes: list[_Box], widths: list[float], tops: list[float], gap: float
) -> Iterator[str]:
    """The lines that begin at each box, as a group with the tooltip of the box."""
    starts = _ports(layout, widths, layout.segments)
    into: list[list[int]] = [[] for _ in layout.row]
    for number, below in enumerate(layout.segments):
        for item in below:
            into[item].append(number)
    ends = _ports(layout, widths, into)
    paths: list[list[str]] = [[] for _ in boxes]
    for number, below in enumerate(layout.segments):
        row = layout.row[number]
        bottom = tops[row + 1]
        top, middle = bottom - gap, bottom - gap / 2.0
        start = tops[row] + boxes[number].height if number < len(boxes) else top
        for item in below:
            x1, x2 = _MARGIN + starts[number, item], _MARGIN + ends[item, number]
            path = f"M{x1:.1f} {start:.0f}" + (f"V{top:.0f}" if start < top else "")
            path += f"C{x1:.1f} {middle:.0f} {x2:.1f} {middle:.0f} {x2:.1f} {bottom:.0f}"
            is_box = item < len(boxes)
            if not is_box:
                path += f"v{tops[row + 2] - gap - bottom:.0f}"
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
    is_round = box.kind in {"input", "constant", "output", "reference"}
    corner = box.height / 2.0 if is_round else 4.0
    text = (
        f'<g class="{box.kind}"><title>{_escaped(box.tooltip)}</title>'
        f'<rect x="{x - width / 2.0:.1f}" y="{top:.0f}" width="{width:.1f}" '
        f'height="{box.height:.0f}" rx="{corner:.0f}"/>'
        f'<text x="{x:.1f}" y="{top + 16.0:.0f}">{_escaped(box.title)}</text>'
    )
    if box.meta:
        text += f'<text class="meta" x="{x:.1f}" y="{top + 31.0:.0f}">{_escaped(box.meta)}</text>'
    if box.inside is not None:
        parts, own_width, own_height = box.inside
        left, below = x - own_width / 2.0, top + box.height - own_height
        text += f'<svg x="{left:.1f}" y="{below:.0f}">{"".join(parts)}</svg>'
    return f"{text}</g>"


def _named(one: TensorIr | ScalarIr) -> str:
    return f"%{one.id}: {one}" if isinstance(one, TensorIr) else f"${one.id}: {one.kind.__name__}"


def _outputs(outputs: Sequence[TensorIr]) -> str:
    """Outputs of an operation in a few characters; several equal ones with their number."""
    counts: dict[str, int] = {}
    for output in outputs:
        counts[str(output)] = counts.get(str(output), 0) + 1
    parts = [name if count == 1 else f"{count}x {name}" for name, count in counts.items()]
    return _cropped(f"%{outputs[0].id}: {', '.join(parts)}", _MAX_CHARACTERS)


def _described(operation: OperationIr) -> str:
    """The source line of an operation, the call, and what it makes."""
    values = [
        *map(_operand, operation.inputs),
        *[f"{name}={_operand(value)}" for name, value in operation.attributes.items()],
    ]
    lines = [operation.source, f"{operation.name}({', '.join(values)})"]
    lines += map(_named, operation.outputs)
    return _cropped("\n".join(filter(None, lines)), _MAX_TOOLTIP)


def _step_box(step: PictureStep) -> _Box:
    """The box of a step; that of a kernel is a frame."""
    box = _Box(step.kind, step.title, _outputs(step.outputs), _step_described(step))
    if step.kind == "kernel":
        program = _Picture(GraphIr((), (), step.operations, ()), is_inside=True)
        box.inside = _drawn(program, _GAP_INSIDE)
    return box


def _step_described(step: PictureStep) -> str:
    """The call, or what a kernel reads and makes."""
    if step.kind != "kernel":
        return _described(step.operations[0])
    lines = [f"{step.title}, of {', '.join(map(_operand, step.inputs))}"]
    return _cropped("\n".join([*lines, *map(_named, step.outputs)]), _MAX_TOOLTIP)


def _operand(value: Any) -> str:
    if isinstance(value, GraphIr):
        return f"<{len(value.operations)} operations>"
    if isinstance(value, TensorIr):
        return f"%{value.id}"
    if value.__class__ is tuple and any(isinstance(part, TensorIr) for part in value):
        return f"[{', '.join(map(_operand, value))}]"
    return str(value)


def _cropped(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


_NOT_IN_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _escaped(text: str) -> str:
    """Text as XML has it; what no document in XML may contain is replaced."""
    return escape(_NOT_IN_XML.sub("�", text))
