"""Pictures of graphs: what is in them, and that it can be read."""

import itertools
import random
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from burn import float32, int64
from burn.compiler import Target, planned
from burn.compiler.explain import drawn, explained
from burn.ir import Constant, Draw, Drop, GraphIr, HostNumber, OperationIr, ScalarIr, TensorIr
from burn.ir.svg import PictureStep, draw
from burn.tensor_data import TensorData

SVG = "{http://www.w3.org/2000/svg}"


def tensor(number, *shape, dtype=float32):
    return TensorIr(number, shape, dtype)


def chain(length):
    """A graph of elementwise functions, one after the other."""
    steps = [
        OperationIr("exp", (tensor(i, 8),), {}, (tensor(i + 1, 8),), f"chain.py:{i}")
        for i in range(length)
    ]
    return GraphIr((tensor(0, 8),), (), tuple(steps), (tensor(length, 8),))


def random_graph(seed, length=60, *, nearby=20):
    """A graph whose operations use some of the tensors made before, which have many shapes."""
    drawn = random.Random(seed)
    made = [tensor(i, *[drawn.randint(1, 10_000)] * drawn.randint(0, 3)) for i in range(5)]
    inputs, operations = tuple(made), []
    for number in range(5, 5 + length):
        used = tuple(drawn.choice(made[-nearby:]) for _ in range(drawn.randint(1, 3)))
        made.append(tensor(number, *[drawn.randint(1, 10_000)] * drawn.randint(0, 3)))
        operations.append(OperationIr("f" * drawn.randint(1, 20), used, {}, (made[-1],)))
    return GraphIr(inputs, (), tuple(operations), tuple(drawn.sample(made, 4)))


class Picture:
    """What a document shows: its boxes by kind, and its lines."""

    def __init__(self, graph, document=None):
        text = graph.svg() if document is None else document
        self.root = ET.fromstring(text)  # noqa: S314 — made by the program under test
        self.boxes = {}
        for group in self.root.iter(f"{SVG}g"):
            if "class" in group.attrib:
                self.boxes.setdefault(group.get("class"), []).append(Box(group))
        self.all = [box for boxes in self.boxes.values() for box in boxes]
        groups = [group for group in self.root.iter(f"{SVG}g") if "class" not in group.attrib]
        self.paths = [path for group in groups for path in group.iter(f"{SVG}path")]
        self.arrows = [path for path in self.paths if "marker-end" in path.attrib]

    def titles(self, kind):
        return [box.title for box in self.boxes.get(kind, [])]


class Box:
    def __init__(self, group):
        rect = group.find(f"{SVG}rect")
        self.left, self.top = float(rect.get("x")), float(rect.get("y"))
        self.right = self.left + float(rect.get("width"))
        self.bottom = self.top + float(rect.get("height"))
        self.title, self.meta, *_ = [*(text.text for text in group.findall(f"{SVG}text")), ""]
        self.titles_inside = [
            inner.find(f"{SVG}text").text
            for inner in group.iter(f"{SVG}g")
            if inner is not group and "class" in inner.attrib
        ]
        self.tooltip = group.find(f"{SVG}title").text


def ends(path):
    """Where a line begins, and where it ends, before a piece straight down."""
    numbers = [float(number) for number in re.findall(r"[\d.]+", path.get("d").partition("v")[0])]
    return numbers[:2], numbers[-2:]


def test_every_input_constant_operation_and_output_has_a_box():
    seed, offset, rate = ScalarIr(0, int), ScalarIr(1, int), ScalarIr(2, float)
    noise = {"shape": (8,), "low": 0.0, "high": 1.0, "dtype": float32}
    graph = GraphIr(
        (tensor(0, 8), rate),
        (Constant(tensor(1, 8), TensorData(np.zeros(8, np.float32))),),
        (
            OperationIr(
                "random_uniform", (), {**noise, "seed": seed, "offset": offset + 2}, (tensor(2, 8),)
            ),
            OperationIr("concat", ((tensor(0, 8), tensor(1, 8)),), {"axis": 0}, (tensor(3, 16),)),
            Drop(0),
            OperationIr("add", (tensor(2, 8), 1.0), {}, (tensor(4, 8),), "train.py:12"),
        ),
        (tensor(3, 16), tensor(4, 8), tensor(4, 8)),
        Draw(seed, offset, 8),
    )
    picture = Picture(graph)
    assert picture.titles("input") == ["input 0", "input 1", "random numbers"]
    assert picture.titles("constant") == ["constant"]
    assert picture.titles("operation") == ["random_uniform", "concat", "add"]
    assert picture.titles("output") == ["output 0", "output 1", "output 2"]
    assert [box.meta for box in picture.boxes["operation"]] == [
        "%2: float32[8]",
        "%3: float32[16]",
        "%4: float32[8]",
    ]
    assert picture.boxes["operation"][2].tooltip == "train.py:12\nadd(%2, 1.0)\n%4: float32[8]"
    assert "seed=$0, offset=$1 + 2" in picture.boxes["operation"][0].tooltip
    # The generator to the draw; both to concat; to add; and to three outputs.
    assert len(picture.arrows) == 1 + 2 + 1 + 3


def test_an_operation_with_several_outputs_says_how_many():
    outputs = (tensor(1, 4), tensor(2, 4), tensor(3, 4, dtype=int64))
    graph = GraphIr((tensor(0, 4),), (), (OperationIr("f", (tensor(0, 4),), {}, outputs),), outputs)
    assert Picture(graph).boxes["operation"][0].meta == "%1: 2x float32[4], int64[4]"


@pytest.mark.parametrize("seed", range(5))
def test_no_box_overlaps_another_and_no_line_crosses_one(seed):
    picture = Picture(random_graph(seed))
    rows = {}
    for box in picture.all:
        rows.setdefault(box.top, []).append(box)
    for row in rows.values():
        row.sort(key=lambda box: box.left)
        for left, right in itertools.pairwise(row):
            assert left.right < right.left
    for path in picture.paths:
        if "v" in path.get("d"):  # straight down through a row
            _, (x, y) = ends(path)
            assert not [box for box in rows.get(y, []) if box.left <= x <= box.right]


@pytest.mark.parametrize("seed", range(5))
def test_every_line_goes_down_from_a_box_to_one_that_uses_it(seed):
    graph = random_graph(seed)
    picture = Picture(graph)
    pairs = {(source.id, use.outputs[0].id) for use in graph.operations for source in use.inputs}
    assert len(picture.arrows) == len(pairs) + len(graph.outputs)
    for path in picture.arrows:
        (_, start), (x, y) = ends(path)
        assert start < y
        assert [box for box in picture.all if box.top == y and box.left < x < box.right]


@pytest.mark.parametrize("seed", range(5))
def test_the_document_is_as_large_as_what_it_shows(seed):
    picture = Picture(random_graph(seed))
    width, height = float(picture.root.get("width")), float(picture.root.get("height"))
    assert min(box.left for box in picture.all) >= 0.0
    assert width - 20.0 <= max(box.right for box in picture.all) <= width
    assert height - 20.0 <= max(box.bottom for box in picture.all) <= height


def test_a_box_that_is_far_above_is_shown_again_where_it_is_used():
    graph = chain(30)
    last = OperationIr("add", (tensor(30, 8), tensor(0, 8)), {}, (tensor(31, 8),))
    picture = Picture(GraphIr(graph.inputs, (), (*graph.operations, last), (tensor(31, 8),)))
    (reference,) = picture.boxes["reference"]
    assert (reference.title, reference.meta) == ("input 0", "%0: float32[8]")
    assert reference.top == picture.boxes["operation"][-2].top
    assert not [path for path in picture.paths if "v" in path.get("d")]


def test_an_operation_with_one_operand_stands_just_above_its_first_use():
    graph = chain(5)
    early = OperationIr("sin", (tensor(6, 8),), {}, (tensor(7, 8),))
    then = OperationIr("cos", (tensor(7, 8),), {}, (tensor(8, 8),))
    last = OperationIr("add", (tensor(5, 8), tensor(8, 8)), {}, (tensor(9, 8),))
    inputs, operations = (*graph.inputs, tensor(6, 8)), (early, then, *graph.operations, last)
    picture = Picture(GraphIr(inputs, (), operations, (tensor(9, 8),)))
    tops = {box.title: box.top for box in picture.all if box.title != "exp"}
    rows = sorted({box.top for box in picture.all})
    assert [rows.index(tops[name]) for name in ("input 1", "sin", "cos", "add")] == [3, 4, 5, 6]


FUSED = """
    input %0: float32[64, 256]
    input %1: float32[256, 256]
    %2: float32[64, 256] = matmul(%0, %1)    # a.py:1
    %3: float32[64, 256] = exp(%2)    # a.py:2
    %4: float32[64, 256] = multiply(%3, 2.0)    # a.py:2
    %5: float32[64] = sum(%4, axis=(1,), dtype=float32)    # a.py:3
    %6: float32[256, 256] = permute(%1, axes=(1, 0))    # a.py:4
    output %5
    output %6
"""


def plan():
    target = Target(frozenset([float32]), lambda operation: operation.name == "matmul")
    return planned(GraphIr.from_text(FUSED), target)


def test_a_kernel_is_a_frame_around_its_operations_with_the_number_of_the_text():
    picture = Picture(None, drawn(plan()))
    lines = explained(plan()).splitlines()
    assert picture.titles("call") == ["0 matmul"]
    assert picture.titles("kernel") == ["1 kernel: 64 rows x 256 columns"]
    assert picture.titles("view") == ["2 permute"]
    assert [line.split()[:2] for line in lines if line[:4].strip().isdigit()] == [
        ["0", "call"],
        ["1", "kernel"],
        ["2", "call"],
    ]
    (frame,) = picture.boxes["kernel"]
    assert frame.titles_inside == ["exp", "multiply", "sum"]
    assert frame.meta == "%5: float32[64]"
    assert picture.boxes["operation"][1].tooltip.startswith("a.py:2\nmultiply(%3, 2.0)")


def test_a_frame_holds_its_boxes_and_lines_lead_to_it_and_away():
    picture = Picture(None, drawn(plan()))
    (frame,) = picture.boxes["kernel"]
    (inner,) = picture.root.findall(f"{SVG}g/{SVG}svg")
    left, top = float(inner.get("x")), float(inner.get("y"))
    for box in picture.boxes["operation"]:
        assert frame.left < left + box.left < left + box.right < frame.right
        assert frame.top < top + box.top < top + box.bottom < frame.bottom
    inside = set(inner.iter(f"{SVG}path"))
    assert len(inside) == 2  # exp to multiply, multiply to sum
    lines = [ends(path) for path in picture.arrows if path not in inside]
    entering = [x for _, (x, y) in lines if y == frame.top and frame.left < x < frame.right]
    leaving = [x for (x, y), _ in lines if y == frame.bottom and frame.left < x < frame.right]
    assert len(entering) == 1  # from the product
    assert len(leaving) == 1  # to the output


def test_a_line_leads_from_a_scalar_to_the_kernel_that_computes_with_it():
    x, rate, step, y = tensor(0, 8), ScalarIr(0, float), ScalarIr(1, int), tensor(1, 8)
    operation = OperationIr("exp", (x,), {}, (y,))
    numbers = (HostNumber.of(rate) / (1.0 - 0.9 ** HostNumber.of(step)), 1e-8)
    kernel = PictureStep("kernel", "0 kernel: 8", (operation,), (x, *numbers), (y,))
    graph = GraphIr((x, rate, step), (), (operation,), (y,))
    picture = Picture(graph, draw(graph, [kernel]))
    assert len(picture.arrows) == 3 + 1


HOSTILE = ["<script>&\"'", "]]>", "\x00\x1b\ud800\uffff", "<!--", "&amp;", "é 漢 🔥"]


@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_is_shown_and_not_read(text):
    operation = OperationIr(text, (tensor(0, 8),), {"mode": text}, (tensor(1, 8),), text)
    picture = Picture(GraphIr((tensor(0, 8),), (), (operation,), (tensor(1, 8),)))
    (box,) = picture.boxes["operation"]
    shown = re.sub("[\x00\x1b\ud800\uffff]", "\N{REPLACEMENT CHARACTER}", text)
    assert box.title == shown
    assert box.tooltip == f"{shown}\n{shown}(%0, mode={shown})\n%1: float32[8]"
    assert not list(picture.root.iter(f"{SVG}script"))


def test_a_graph_without_operations_has_its_inputs_and_outputs():
    assert not Picture(GraphIr((), (), (), ())).all
    x = tensor(0, 8)
    picture = Picture(GraphIr((x, tensor(1, 8)), (), (), (x,)))
    assert len(picture.all) == 3
    assert len(picture.arrows) == 1


def test_an_input_that_nothing_uses_stands_beside_the_others():
    graph = chain(3)
    picture = Picture(GraphIr((*graph.inputs, tensor(9, 8)), (), graph.operations, graph.outputs))
    used, unused = picture.boxes["input"]
    assert used.top == unused.top
    assert unused.left - used.right < 40.0


def test_a_length_that_depends_on_data_is_shown_as_unknown():
    output = TensorIr(1, (None, 2), int64)
    operation = OperationIr("argwhere", (tensor(0, 8, 8),), {"dtype": int64}, (output,))
    picture = Picture(GraphIr((tensor(0, 8, 8),), (), (operation,), (output,)))
    assert picture.boxes["operation"][0].meta == "%1: int64[?, 2]"


@pytest.mark.parametrize("make", [chain, lambda length: random_graph(0, length, nearby=200)])
def test_a_picture_grows_with_the_number_of_operations(make):
    small, large = len(make(200).svg()), len(make(2000).svg())
    assert large < 15 * small


def luminance(colour):
    """Relative luminance of a colour, by WCAG 2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_text_has_enough_contrast_with_every_box(mode):
    style = re.search("<style>(.*)</style>", chain(1).svg(), re.DOTALL)[1]
    light, dark = style.split("@media (prefers-color-scheme: dark)")
    fills = dict(re.findall(r"\.burn-graph ([^{]+) \{[^}]*fill: (#\w{6})", light))
    if mode == "dark":
        changed = dict(re.findall(r"\.burn-graph ([^{]+) \{[^}]*fill: (#\w{6})", dark))
        assert changed.keys() == fills.keys()
        fills = changed
    backgrounds = [fill for name, fill in fills.items() if "rect" in name or name == ".page"]
    assert len(backgrounds) == 7
    for text in (fills["text"], fills[".meta"]):
        for background in backgrounds:
            bright, dim = sorted(map(luminance, (text, background)), reverse=True)
            assert (bright + 0.05) / (dim + 0.05) >= 4.5
