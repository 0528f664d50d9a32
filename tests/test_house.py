"""The house stays in order: floors, private modules, names, and modules that one can read."""

import ast
import functools
import graphlib
import importlib
import re
from pathlib import Path
from typing import NamedTuple

import pytest

import burn

ROOT = Path(__file__).parent.parent
CORE = Path(burn.__file__).parent
SOURCES = [CORE.parent, *sorted(ROOT.glob("plugins/*/src")), *sorted(ROOT.glob("examples/*/src"))]

PLUGINS = {"burn_cpu", "burn_cuda", "burn_nvidia", "burn_opencl", "burn_torch", "torch", "cupy"}

MAX_LINES = 400
"""Without docstrings."""

LONGER = {
    "burn.testing.samples.scatter": "one op family, and its cases share what they write with",
}
"""Modules that are longer, and why."""


def python_files():
    return [path for folder in SOURCES for path in sorted(folder.rglob("*.py"))]


def module_name(path):
    """The name by which a file is imported."""
    (folder,) = [folder for folder in SOURCES if path.is_relative_to(folder)]
    return ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")


class Source(NamedTuple):
    """What a file imports, what of that at run time, and its lines that are no docstring."""

    imports: tuple
    run_time_imports: tuple
    lines_of_code: int


@functools.cache
def source_of(path):
    """What is asked of a file; its tree is not kept, as every collection would go through it."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    return Source(
        tuple(imported(tree)), tuple(imported(tree, for_types=False)), lines_of_code(tree, text)
    )


def imported(tree, *, for_types=True):
    """Modules that are imported anywhere in a module; `for_types` includes ``TYPE_CHECKING``."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom):
            if node.module and not node.level:
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif not isinstance(node, ast.expr) and (
            for_types
            or not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
        ):
            yield from imported(node, for_types=for_types)


def floors():
    """The floor of each module and package of ``burn``, as the contributing guide has it."""
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("### Floors")[2]
    return {
        room: int(floor)
        for floor, rooms in re.findall(r"^\| (\d+) \| ([^|]+) \|", table, re.MULTILINE)
        for room in re.findall(r"`(\w+)`", rooms)
    }


def rooms_below():
    """The modules and packages of ``burn`` that each of them imports at run time."""
    found, rooms = {}, set(floors())
    for path in CORE.rglob("*.py"):
        here = path.relative_to(CORE).parts[0].removesuffix(".py")
        for name in source_of(path).run_time_imports:
            package, _, rest = name.partition(".")
            if package == "burn" and here not in ("__init__", "__main__"):
                room = rest.partition(".")[0]
                found.setdefault(here, set()).add(room if room in rooms else "namespace")
    return {here: below - {here} for here, below in found.items()}


def test_every_module_has_a_floor():
    rooms = {path.stem for path in CORE.glob("*.py")} - {"__init__", "__main__"}
    rooms |= {path.parent.name for path in CORE.glob("*/__init__.py")}
    assert rooms == set(floors())


def test_no_module_imports_from_a_floor_above():
    floor = floors()
    for here, rooms in rooms_below().items():
        assert not {room for room in rooms if floor[room] > floor[here]}, here


def test_nothing_goes_in_circles():
    graphlib.TopologicalSorter(rooms_below()).prepare()


def test_core_names_no_plugin():
    for path in CORE.rglob("*.py"):
        packages = {name.partition(".")[0] for name in source_of(path).imports}
        assert not packages & PLUGINS, path


def test_a_private_module_is_imported_within_its_package_alone():
    elsewhere = list(ROOT.glob("tests/*.py"))
    for path in [*python_files(), *elsewhere]:
        here = module_name(path) if path not in elsewhere else ""
        for name in source_of(path).imports:
            package = re.match(r"(burn\w*(?:\.\w+)*?)\._[a-z]", name)
            if package:
                assert f"{here}.".startswith(f"{package[1]}."), f"{path} imports {name}"


@pytest.mark.parametrize("package", ["burn", "burn.testing", "burn.nn", "burn.optim"])
def test_a_public_name_that_is_also_a_module_is_that_module(package):
    module = importlib.import_module(package)
    folder = Path(module.__file__).parent
    for name in dir(module):
        if (folder / f"{name}.py").is_file() or (folder / name / "__init__.py").is_file():
            assert getattr(module, name) is importlib.import_module(f"{package}.{name}")


def lines_of_code(tree, text):
    """Lines that are no docstring."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [
        node.body[0]
        for node in ast.walk(tree)
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None
    ]
    documentation = sum(text.end_lineno - text.lineno + 1 for text in texts)
    return len(text.splitlines()) - documentation


def test_a_module_is_short_enough_to_be_read():
    longer = {
        module_name(path) for path in python_files() if source_of(path).lines_of_code > MAX_LINES
    }
    assert longer == set(LONGER)
