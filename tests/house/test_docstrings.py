"""Every public function and class documents what it takes; functions have an example that runs."""

import ast
import inspect
import re
import types
from pathlib import Path
from typing import NamedTuple

import griffe
import pytest

import burn
from burn.docstrings import documented_as

MODULES = [
    *["data", "fft", "linalg", "nn.functional", "nn.init", "optim", "random", "signal", "store"],
    *["train", "tree"],
]


def public_functions():
    """The functions of the public namespace and of its modules, by their full names."""
    yield from functions_of("burn", burn)
    for name in MODULES:
        module = burn
        for part in name.split("."):
            module = getattr(module, part)
        yield from functions_of(f"burn.{name}", module)


def functions_of(prefix, module):
    for name in dir(module):
        member = getattr(module, name)
        if isinstance(member, types.FunctionType) and not name.startswith("_"):
            yield f"{prefix}.{name}", member


FUNCTIONS = dict(public_functions())

DOCS = Path(__file__).parents[2] / "docs"

NO_EXAMPLE = {"burn.register_backend"}  # what it adds stays in the process; `registered` has one


def sections(function):
    """The sections of a docstring by their titles, as lists of lines; "" is what comes first."""
    return sections_of(inspect.getdoc(function))


def sections_of(text):
    found, title = {"": []}, ""
    lines = text.splitlines()
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if line and re.fullmatch(r"-{3,}", below):
            title = line
            found[title] = []
        elif not re.fullmatch(r"-{3,}", line):
            found[title].append(line)
    return found


def documented(lines):
    """The names in a section "Parameters": on lines that are not indented, before the types."""
    return [
        name.strip().lstrip("*")
        for line in lines
        if line and not line.startswith(" ")
        for name in line.partition(" : ")[0].split(",")
    ]


@pytest.mark.together("name", sorted(FUNCTIONS))
def test_a_docstring_has_a_summary_every_parameter_the_result_and_an_example(name):
    function = FUNCTIONS[name]
    found = sections(function)
    assert re.fullmatch(r"[A-Z0-9*`\"].*[.:?]", found[""][0]), "a summary is one line"
    assert documented(found.get("Parameters", [])) == list(inspect.signature(function).parameters)
    assert "Returns" in found or inspect.signature(function).return_annotation == "None"
    example = "\n".join(found.get("Examples", ["no example"]))
    assert re.search(r"(import|from) burn", example) or name in NO_EXAMPLE
    assert set(re.findall(r'device="([^"]*)"', example)) <= {"cpu"}, "a device that may be missing"


def public_classes():
    """The classes of packages, by their full names."""
    for package in ("data", "nn", "optim", "store", "train"):
        module = getattr(burn, package)
        for name in dir(module):
            if inspect.isclass(getattr(module, name)):
                yield f"burn.{package}.{name}", getattr(module, name)


CLASSES = dict(public_classes())


@pytest.mark.together("name", sorted(CLASSES))
def test_a_class_documents_its_arguments_or_names_a_class_that_does(name):
    found = sections(CLASSES[name])
    assert re.fullmatch(r"[A-Z0-9*`\"].*[.:?]", found[""][0]), "a summary is one line"
    package = name.rpartition(".")[0]
    others = [
        CLASSES.get(f"{package}.{item}") for item in re.findall(r"`(\w+)`", " ".join(found[""]))
    ]
    takes = list(inspect.signature(CLASSES[name]).parameters)
    documents = [
        documented(sections(item).get("Parameters", []))
        for item in (CLASSES[name], *others)
        if item
    ]
    assert takes in documents or "Attributes" in found


METHODS = {
    f"{name}.{method}": getattr(value, method)
    for name, value in CLASSES.items()
    for method in vars(value)
    if not method.startswith("_") and inspect.isfunction(getattr(value, method))
}


@pytest.mark.together("name", sorted(METHODS))
def test_a_method_documents_its_arguments(name):
    found = sections(METHODS[name])
    assert re.fullmatch(r"[A-Z0-9*`\"].*[.:?]", found[""][0]), "a summary is one line"
    if "Parameters" in found or not name.endswith(".forward"):
        takes = [
            parameter
            for parameter in inspect.signature(METHODS[name]).parameters
            if parameter != "self"
        ]
        assert documented(found.get("Parameters", [])) == takes


# Docstrings that are completed by others.


class Written(NamedTuple):
    """A function or class as its source has it."""

    docstring: str
    described: set
    keywords: set
    is_completed: bool


def written():
    """The functions and classes of core that have docstrings; several may have a name."""
    core = Path(burn.__file__).parent
    found = {}
    for path in [*core.glob("functions/**/*.py"), *core.glob("nn/*.py"), *core.glob("optim/*.py")]:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node):
                found.setdefault(node.name, []).append(as_written(node))
    return found


def as_written(node):
    text = ast.get_docstring(node)
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    methods = [child for child in node.body if getattr(child, "name", "") == "__init__"]
    takes = getattr(methods[0] if methods else node, "args", None)
    return Written(
        text,
        set(documented(sections_of(text).get("Parameters", []))),
        {argument.arg for argument in [*takes.args, *takes.kwonlyargs]} - {"self"}
        if takes
        else set(),
        any(decorator.startswith("documented_as(") for decorator in decorators),
    )


SOURCES = written()
COMPLETED = [
    pytest.param(source, id=name)
    for name, sources in sorted(SOURCES.items())
    for source in sources
    if source.is_completed
]


def described(source, seen=()):
    """The parameters that a docstring describes, and those that it names describe."""
    named = {name for name in re.findall(r"`(?:\w+\.)*(\w+)`", source.docstring) if name in SOURCES}
    others = [
        described(other, (*seen, name)) for name in named - {*seen} for other in SOURCES[name]
    ]
    return source.described.union(*others)


@pytest.mark.together("source", COMPLETED)
def test_a_docstring_that_leaves_out_a_keyword_names_a_function_that_describes_it(source):
    assert source.keywords <= described(source)


def test_functions_and_classes_of_modules_alone_are_completed():
    texts = [path.read_text(encoding="utf-8") for path in Path(burn.__file__).parent.rglob("*.py")]
    decorators = re.findall(r"^ *@documented_as\(", "\n".join(texts), re.MULTILINE)
    assert len(decorators) == len(COMPLETED) > 200
    assert {*decorators} == {"@documented_as("}, (
        "sections are looked for at the indentation of these"
    )


def test_editors_and_help_show_what_a_docstring_has_and_what_it_takes_over():
    found = sections(burn.nn.functional.conv1d)
    assert documented(found["Parameters"])[:4] == ["x", "weight", "bias", "stride"]
    assert "x : Tensor, shape (N, C, L)" in found["Parameters"]
    assert "    A batch of signals, float." in found["Parameters"]
    assert found["Raises"][0] == "ShapeError"


@documented_as(burn.nn.functional.huber_loss, {"Largest error": "The error"})
def loss(prediction, target, /, *, factor=1.0, delta=1.0):
    """Some loss.

    Parameters
    ----------
    target : Tensor
        Its own.
    factor : float
        Its own too.

    Raises
    ------
    ShapeError
        Also its own.
    """


def test_a_docstring_keeps_its_own_descriptions():
    found = sections(loss)
    assert documented(found["Parameters"]) == ["prediction", "target", "factor", "delta"]
    assert found["Parameters"][3:5] == ["    Its own.", "factor : float"]
    assert found["Parameters"][-2].startswith("    The error of which the square counts")
    assert found["Raises"][:3] == ["ShapeError", "    Also its own.", "ArgumentError"]
    assert "Examples" not in found


def test_the_pages_show_what_help_shows():
    extensions = griffe.load_extensions(DOCS / "completed_docstrings.py")
    core = Path(burn.__file__).parents[1]
    module = griffe.load(
        "burn.functions.nn.convolution", search_paths=[core], extensions=extensions
    )
    for name in ("conv1d", "conv2d"):
        text = inspect.getdoc(getattr(burn.nn.functional, name))
        assert module[name].docstring.value == text
