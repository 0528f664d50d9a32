"""What the commands look like on a real terminal, and the pictures of it."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")

PLUGIN = """
from burn.dtype import DType, DTypeUsage
from burn.plugins import BackendSpec, DeviceInfo, hookimpl

USAGE = dict.fromkeys(DType.members(), DTypeUsage.GENERAL)


def load():
    raise OSError("libaccelerator.so.12: cannot open shared object file: No such file")


def probe():
    return [
        DeviceInfo("gpu", number, "Some Accelerator 80GB", 80 * 2**30, "driver 570.86.15", USAGE)
        for number in range(2)
    ]


@hookimpl
def burn_backends():
    return [BackendSpec("several", load, probe, ("gpu", "cpu"), priority=1)]
"""


@pytest.fixture(scope="module")
def make():
    """The script that makes the pictures, as a module."""
    spec = importlib.util.spec_from_file_location("make", ROOT / "docs" / "images" / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def on_terminal(make):
    """Lines that ``burn`` prints on a terminal so many columns wide."""

    def run(width, *arguments, **variables):
        command = [sys.executable, "-m", "burn", *arguments]
        return make.printed(command, width, variables).splitlines()

    return run


def plain(lines):
    return [ESCAPE.sub("", line) for line in lines]


@pytest.mark.parametrize(
    "width", [40, *[pytest.param(width, marks=pytest.mark.exhaustive) for width in (80, 140)]]
)
@pytest.mark.parametrize("command", ["devices", "plugins", "ops", "devices --check"])
def test_no_line_is_longer_than_the_terminal_and_nothing_is_cut(
    on_terminal, install, width, command
):
    path = install("several", PLUGIN)
    lines = plain(on_terminal(width, *command.split(), PYTHONPATH=path, BURN_PLUGINS="cpu,several"))
    assert lines
    assert max(map(len, lines)) <= width
    assert "…" not in "".join(lines)


@pytest.mark.parametrize("width", [80, pytest.param(140, marks=pytest.mark.exhaustive)])
def test_a_terminal_gets_colours_unless_it_does_not_want_them(on_terminal, width):
    def lines(**variables):
        return on_terminal(width, "devices", BURN_PLUGINS="cpu", **variables)

    assert any("\x1b[1;32m* cpu:0" in line for line in lines())
    assert not any("\x1b[1;32m" in line for line in lines(NO_COLOR="1"))
    assert not any("\x1b" in line for line in lines(TERM="dumb"))


def test_on_a_terminal_a_reason_is_broken_between_words(on_terminal, install):
    path = install("broken", "raise OSError('the library of the driver cannot be opened')")
    lines = plain(on_terminal(40, "devices", PYTHONPATH=path))
    (start,) = [number for number, line in enumerate(lines) if line.startswith("broken: ")]
    assert " ".join(" ".join(lines[start:]).split()) == (
        "broken: broken of burn-broken 1.2: OSError: the library of the driver cannot be opened"
    )


def test_the_terminal_is_what_a_traceback_of_a_failed_check_is_shown_on(on_terminal, install):
    path = install("several", PLUGIN)
    variables = {"PYTHONPATH": path, "BURN_PLUGINS": "cpu,several"}
    lines = plain(on_terminal(80, "devices", "--check", "-v", **variables))
    assert any(line.startswith("FAIL  several") for line in lines)
    assert any(line.startswith("Traceback") for line in lines)


def test_a_picture_is_the_same_whenever_it_is_made_and_needs_nothing_else(make):
    text = "\x1b[1;32m* cpu:0\x1b[0m  plain  \x1b[31mred\x1b[0m\n"
    for theme in make.THEMES.values():
        picture = make.drawn(text, 80, theme)
        assert picture == make.drawn(text, 80, theme)
        assert re.findall(r"https?://[^\"' ]+", picture) == [
            "http://www.w3.org/2000/svg",
            "https://www.textualize.io",
        ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_pictures_in_the_documentation_show_no_machine(theme):
    picture = (ROOT / "docs" / "images" / f"devices-{theme}.svg").read_text(encoding="utf-8")
    assert "cpu:0" in picture
    assert not re.search(
        r"/(home|root|Users|tmp|work)/|@", re.sub(r"<style>.*?</style>", "", picture)
    )
    assert f"docs/images/devices-{theme}.svg" in (ROOT / "README.md").read_text(encoding="utf-8")
