"""Every public function and class documents what it takes; functions have an example that runs."""

import inspect
import re
import types

import pytest

import burn

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

NO_EXAMPLE = {"burn.register_backend"}  # what it adds stays in the process; `registered` has one


def sections(function):
    """The sections of a docstring by their titles, as lists of lines; "" is what comes first."""
    found, title = {"": []}, ""
    lines = inspect.getdoc(function).splitlines()
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
