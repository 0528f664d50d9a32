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

ROOT = Path(__file__).parents[2]
CORE = Path(burn.__file__).parent
SOURCES = [CORE.parent, *sorted(ROOT.glob("plugins/*/src")), *sorted(ROOT.glob("examples/*/src"))]

PLUGINS = {"burn_cpu", "burn_cuda", "burn_nvidia", "burn_opencl", "burn_torch", "torch", "cupy"}

MAX_LINES = 400
"""Without docstrings."""

LONGER = {
    "burn.testing.samples.arrays.scatter": "one op family, whose cases share what they write with",
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
    found = list(statements(ast.parse(text)))
    return Source(
        tuple(name for node, _ in found for name in imported(node)),
        tuple(name for node, for_types in found if not for_types for name in imported(node)),
        len(text.splitlines()) - sum(lines_of_docstring(node) for node, _ in found),
    )


def statements(node, *, for_types=False):
    """Each statement in a node, and whether it is below ``if TYPE_CHECKING``; no expressions."""
    yield node, for_types
    checks = isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield from statements(child, for_types=for_types or checks)


def imported(node):
    """Modules that a statement imports."""
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names if not node.level]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


def lines_of_docstring(node):
    """How many lines the docstring of a module, class or function has."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    if not isinstance(node, documented) or ast.get_docstring(node, clean=False) is None:
        return 0
    return node.body[0].end_lineno - node.body[0].lineno + 1


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


def test_the_lowest_floor_names_no_module():
    for room in [room for room, floor in floors().items() if floor == 0]:
        tree = ast.parse((CORE / f"{room}.py").read_text(encoding="utf-8"))
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert id(node) in docstrings or not re.search(r"\bburn\.\w", node.value), room


def test_nothing_goes_in_circles():
    graphlib.TopologicalSorter(rooms_below()).prepare()


def test_core_names_no_plugin():
    for path in CORE.rglob("*.py"):
        packages = {name.partition(".")[0] for name in source_of(path).imports}
        assert not packages & PLUGINS, path


def test_a_private_module_is_imported_within_its_package_alone():
    elsewhere = list(ROOT.glob("tests/**/*.py"))
    for path in [*python_files(), *elsewhere]:
        here = module_name(path) if path not in elsewhere else ""
        for name in source_of(path).imports:
            package = re.match(r"(burn\w*(?:\.\w+)*?)\._[a-z]", name)
            if package:
                assert f"{here}.".startswith(f"{package[1]}."), f"{path} imports {name}"


@pytest.mark.parametrize(
    "package",
    ["burn", "burn.testing", "burn.nn", "burn.optim", "burn.store", "burn.data", "burn.train"],
)
def test_a_public_name_that_is_also_a_module_is_that_module(package):
    module = importlib.import_module(package)
    folder = Path(module.__file__).parent
    for name in dir(module):
        if (folder / f"{name}.py").is_file() or (folder / name / "__init__.py").is_file():
            assert getattr(module, name) is importlib.import_module(f"{package}.{name}")


def test_a_module_is_short_enough_to_be_read():
    longer = {
        module_name(path) for path in python_files() if source_of(path).lines_of_code > MAX_LINES
    }
    assert longer == set(LONGER)
