"""The line of the user's program that called an op."""

import contextlib
import os
import sys
import threading
import types
from pathlib import Path

import pytest

import burn
from burn.ops import source
from burn.ops.source import source_line
from burn.testing import assert_close


def own(line):
    """What `source_line` gives for a line of this file."""
    path = __file__
    below = str(Path.cwd()) + os.sep
    return f"{path.removeprefix(below)}:{line}"


def this_line():
    return sys._getframe(1).f_lineno


def test_the_innermost_line_outside_of_burn_is_given():
    found, line = source_line(), this_line()
    assert found == own(line)


def run_as(filename, text="found = source_line()", **names):
    """What `source_line` gives in a module of that file name, called from here."""
    module = types.ModuleType("somewhere")
    vars(module).update(source_line=source_line, **names)
    exec(compile(text, filename, "exec"), vars(module))  # noqa: S102 — what a user's module does
    return module.found


PACKAGE = Path(burn.__file__).parent


@pytest.mark.parametrize(
    "filename",
    [
        str(PACKAGE / "functions" / "of_a_test.py"),
        str(PACKAGE / "of_a_test.py"),
        str(Path(contextlib.__file__).parent / "of_a_test.py"),
        "<frozen importlib._bootstrap>",
    ],
)
def test_frames_of_burn_and_of_the_standard_library_are_passed_over(filename):
    assert run_as(filename).startswith(own(""))


def test_an_operation_of_a_program_has_the_line_at_which_it_was_traced():
    x = burn.ones(2, device="cpu")

    def double(x):
        return x * 2.0

    program = burn.ir.trace(double, x)
    with burn.profile(show=False) as profile:
        program(x)
    (event,) = profile.events
    assert event.line == own(double.__code__.co_firstlineno + 1)


@pytest.mark.parametrize(
    ("filename", "shown"),
    [
        ("<stdin>", "<stdin>:1"),
        ("<string>", "<string>:1"),
        (str(Path.cwd() / "folder" / "train.py"), f"{Path('folder') / 'train.py'}:1"),
        (str(PACKAGE.parent / "burning" / "train.py"), None),
        (str(Path(contextlib.__file__).parent / "site-packages" / "library.py"), None),
    ],
)
def test_files_are_shown(filename, shown):
    below = str(Path.cwd()) + os.sep
    assert run_as(filename) == (shown or f"{filename.removeprefix(below)}:1")


def test_a_line_of_a_function_that_burn_calls_is_the_users():
    lines = []

    def loss(x):
        lines.append((source_line(), this_line()))
        return (x * x).sum()

    gradient = burn.grad(loss)(burn.asarray([1.0, 2.0], device="cpu"))
    assert_close(gradient, [2.0, 4.0])
    assert [found for found, _ in lines] == [own(line) for _, line in lines]
    assert len(lines) == 1


def test_a_thread_without_a_line_of_the_user_gives_nothing():
    found = []
    thread = threading.Thread(
        target=source_line.__class__(
            compile("found.append(source_line())", str(PACKAGE / "of_a_test.py"), "exec"),
            {"found": found, "source_line": source_line},
        )
    )
    thread.start()
    thread.join()
    assert found == [""]


def test_a_working_directory_that_is_gone(tmp_path, monkeypatch):
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    monkeypatch.setattr(source, "_shown", {})
    assert source_line().partition(":")[0].endswith("test_source_line.py")
