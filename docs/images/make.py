"""Make the pictures of this folder anew: ``python docs/images/make.py``.

Some show what a command prints on a terminal of this machine. It is run in a pseudo-terminal of a
given width, without the variables of the caller's environment that change what it prints, and drawn
by rich in the colours of a light and of a dark terminal. POSIX only. The others are what the
examples of the tutorial draw, the program of the page on compilation, which follows the colours
of the system, and what two programs of ``examples/`` draw.
"""

from __future__ import annotations

import argparse
import contextlib
import doctest
import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

FOLDER = Path(__file__).parent

THEMES = {
    "light": TerminalTheme(
        (255, 255, 255),
        (36, 41, 47),
        [
            (36, 41, 47),
            (207, 34, 46),
            (17, 99, 41),
            (154, 103, 0),
            (9, 105, 218),
            (130, 80, 223),
            (27, 124, 131),
            (110, 119, 129),
        ],
    ),
    "dark": TerminalTheme(
        (13, 17, 23),
        (201, 209, 217),
        [
            (72, 79, 88),
            (255, 123, 114),
            (63, 185, 80),
            (210, 153, 34),
            (88, 166, 255),
            (188, 140, 255),
            (57, 197, 207),
            (177, 186, 196),
        ],
    ),
}
"""The sixteen colours of a terminal, as GitHub has them around the picture."""

FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def printed(command: list[str], width: int, variables: Mapping[str, str] = {}) -> str:
    """What a command prints on a terminal so many columns wide, escape sequences included."""
    unwanted = ("BURN_", "COLORTERM", "COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR", "TTY_")
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(unwanted)
    }
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    with subprocess.Popen(  # noqa: S603 — our own command
        command,
        env=environment | {"TERM": "xterm-256color", **variables},
        stdin=its,
        stdout=its,
        stderr=its,
    ):
        os.close(its)
        text = b""
        while True:
            try:
                some = os.read(ours, 65536)
            except OSError:  # so Linux says that the other side is closed
                break
            if not some:
                break
            text += some
    os.close(ours)
    return text.decode().replace("\r\n", "\n")


def drawn(text: str, width: int, theme: TerminalTheme) -> str:
    """SVG of what stands on a terminal."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(file=nowhere, record=True, width=width, force_terminal=True)
        console.print(Text.from_ansi(text.rstrip()))
        svg = console.export_svg(title="", theme=theme, unique_id="burn")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # nothing from the network
    svg = svg.replace("Fira Code, monospace", FONTS)
    svg = svg.replace("rgba(255,255,255,0.35)", "rgba(128,128,128,0.5)")  # a frame seen on white
    return "\n".join(line.rstrip() for line in svg.splitlines() if line.strip()) + "\n"


def draw_tutorial(folder: Path) -> list[Path]:
    """Run the examples of the tutorial, which save two pictures in the current folder."""
    page = (FOLDER.parent / "users" / "tutorial.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(python|pycon)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        for language, text in blocks:
            typed = doctest.DocTestParser().get_examples(text)
            for source in [text] if language == "python" else [item.source for item in typed]:
                exec(source, names)  # noqa: S102 — our own page
        return [Path(shutil.copy(name, folder)) for name in ("curves.png", "spirals.png")]


def draw_programs(folder: Path) -> list[Path]:
    """The example of the page on compilation, before and after its operations become kernels."""
    import burn

    page = (FOLDER.parent / "users" / "compiling.md").read_text(encoding="utf-8")
    (typed,) = re.findall(r"^```pycon\n(>>> def block.*?)^```$", page, re.MULTILINE | re.DOTALL)
    example = "".join([example.source for example in doctest.DocTestParser().get_examples(typed)])
    names: dict[str, Any] = {"burn": burn, "F": burn.nn.functional}
    exec(compile(example, "train.py", "exec"), names)  # noqa: S102 — our own page
    gradients = names["gradients"]
    paths = []
    for name, picture in {"before": gradients.graph.svg(), "after": gradients.svg()}.items():
        paths.append(folder / f"compiled-{name}.svg")
        paths[-1].write_text(picture, encoding="utf-8")
    return paths


def draw_examples(folder: Path) -> Iterator[Path]:
    """What programs of ``examples/`` draw when they are trained, which takes some minutes."""
    examples = FOLDER.parent.parent / "examples"
    for program, picture in (("vae.py", "digits.png"), ("resnet.py", "shapes.png")):
        with tempfile.TemporaryDirectory() as scratch:
            command = [sys.executable, str(examples / program), "--device", "cpu", "--out", scratch]
            subprocess.run(command, check=True)  # noqa: S603 — our own program
            name = f"{Path(program).stem}.png"
            yield Path(shutil.copy(Path(scratch, picture), folder / name))


def main() -> None:
    """Make the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=80, help="columns of the terminal; 80")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where to put the pictures")
    options = parser.parse_args()
    burn = str(Path(sys.executable).with_name("burn"))
    for name, arguments in {"devices": ["devices"]}.items():
        prompt = f"\x1b[2m$\x1b[0m burn {' '.join(arguments)}\n"
        text = prompt + printed([burn, *arguments], options.width)
        for theme, colours in THEMES.items():
            path = options.folder / f"{name}-{theme}.svg"
            path.write_text(drawn(text, options.width, colours), encoding="utf-8")
            print(path)
    for path in (
        *draw_tutorial(options.folder.resolve()),
        *draw_programs(options.folder),
        *draw_examples(options.folder),
    ):
        print(path)


if __name__ == "__main__":
    main()
