"""The language that the page for authors writes in Python: one writer passes the quick kit."""

import itertools
import re
from pathlib import Path

import pytest

import burn
from burn.ops import REGISTRY, Tag
from burn.testing import Selection, Subject, groups_of, load_samples

PAGE = Path(__file__).parents[2] / "docs" / "authors" / "kernels.md"
SECTION = PAGE.read_text(encoding="utf-8").partition("## Another language")[2]
BLOCKS = re.findall(r"^```python\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
LANGUAGE, BACKEND = BLOCKS[:2]

IN_GATE = ("cast", "pow", "softmax")
PARTS = 12
"""Of the kit; each is a test."""

load_samples()


@pytest.fixture(scope="module")
def device():
    """The device of the page."""
    names = {"burn": burn}
    exec(LANGUAGE + BACKEND.replace("burn.register_backend(spec)", ""), names)  # noqa: S102 — as the page does
    with burn.registered(names["spec"]):
        yield burn.Device("python")


@pytest.fixture(scope="module", params=[False, True], ids=["eager", "compiled"])
def subject(request, device):
    return Subject.of(device, compiles=request.param)


def test_a_writer_has_150_lines_at_most():
    assert len(LANGUAGE.splitlines()) <= 150
    assert "class PythonWriter:" in LANGUAGE


def test_the_language_has_all_elementwise_ops_and_reductions(device):
    for name, op in REGISTRY.items():
        if Tag.ELEMENTWISE in op.tags or op.combines:
            assert device.ops.origin(op) == "generated", name


@pytest.mark.parametrize("op", IN_GATE)
def test_ops_of_the_language_conform(subject, op):
    for group in groups_of(subject, Selection(ops=(op,), quick=True)):
        group.check()
    if subject.compiles:
        assert "KERNELS" in {way.name for way in subject.backend.ways[op]}


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(PARTS))
def test_the_language_conforms(subject, part):
    for group in itertools.islice(groups_of(subject, Selection(quick=True)), part, None, PARTS):
        group.check()
