"""The documentation: it builds without a warning, its examples run, and what it names is there."""

import functools
import importlib
import importlib.util
import inspect
import json
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

import burn
import burn.namespace
from burn.cli import main
from burn.cli.required_methods import required_methods
from burn.cli.scaffold import render, write
from burn.device_id import BACKEND_IDS
from burn.ops import REGISTRY

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NAMESPACES = [
    "nn",
    "nn.functional",
    "nn.init",
    "optim",
    "optim.schedules",
    "store",
    "data",
    "train",
    "linalg",
    "fft",
    "random",
    "signal",
    "tree",
]
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))

NEEDS = {"authors/tracing.md": "jax"}
"""Pages whose examples need a library that the gate does without."""

BLOCK = re.compile(r"^```(python|pycon)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

RUN = """
import doctest
import gc
import importlib.util
import json
import os
import sys


def run(page, path):
    names = {"__name__": "__main__"}
    failed = 0
    os.chdir(os.path.dirname(path))  # pages write files
    with open(path, encoding="utf-8") as file:
        blocks = json.load(file)
    for language, line, text in blocks:
        if language == "python":
            exec(compile("\\n" * line + text, page, "exec"), names)
        else:
            test = doctest.DocTestParser().get_doctest(text, names, page, page, line)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
            failed += runner.run(test, clear_globs=False).failed
            names = test.globs
    return bool(failed)


def main():
    if len(sys.argv) == 3:
        return run(*sys.argv[1:])
    import burn  # and what most pages take, once for all

    net = burn.nn.Linear(2, 2, device=burn.Device("cpu").autodiff())
    burn.optim.Adam(net, 0.1).step(burn.compile(net)(burn.ones((1, 2))).sum().backward())
    burn.train, burn.data, burn.store, burn.testing.assert_close
    if importlib.util.find_spec("torch"):
        import torch
    gc.freeze()  # no page goes through it, or frees it
    for page, path in json.loads(sys.argv[1]):
        child = os.fork()
        if not child:
            output = os.open(path + ".output", os.O_CREAT | os.O_WRONLY)
            os.dup2(output, 1)
            os.dup2(output, 2)
            return run(page, path)
        status = os.waitpid(child, 0)[1]
        with open(path + ".status", "w", encoding="utf-8") as file:
            file.write(str(status))


if __name__ == "__main__":  # worker processes import this program
    sys.exit(main())
"""


def text_of(page):
    return (DOCS / page).read_text(encoding="utf-8")


def examples(page):
    """The Python blocks of a page: language, line number, text."""
    text = text_of(page)
    return [
        (match[1], text.count("\n", 0, match.start()) + 1, match[2])
        for match in BLOCK.finditer(text)
    ]


def commands():
    """The lines of the pages that call ``burn``."""
    for page in PAGES:
        text = text_of(page)
        inline = re.findall(r"`(burn [a-z][^`]*)`", text)
        blocks = re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
        for line in [*inline, *lines]:
            words = line.partition("#")[0].split()
            if words[:1] == ["burn"] and len(words) > 1:
                yield page, words[1:]


@pytest.fixture(scope="module")
def site(once, everything):
    """The documentation as HTML; in the gate without docstrings, and an index for the search."""
    return once("site", functools.partial(build, whole=everything))


def build(folder, *, whole):
    variables = {"NO_MKDOCS_2_WARNING": "1", "DOCS_SEARCH": str(whole)}
    result = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, **variables, "DOCS_REFERENCE": str(whole)},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_it_builds_without_a_warning_and_has_every_page(site):
    for page in PAGES:
        assert (site / page).with_suffix(".html").is_file()


def test_what_the_reference_shows_is_there(site):
    names = {
        name
        for path in [*DOCS.rglob("*.md"), *site.rglob("*.html")]
        for name in re.findall(r"::: (burn\.[\w.]+)", path.read_text(encoding="utf-8"))
    }
    assert len(names) > 300
    for name in names:
        assert pkgutil.resolve_name(name) is not None


def test_a_page_fetches_nothing_from_elsewhere(site):
    elsewhere = re.compile(r"<(?:script|img|iframe|link)[^>]* (?:src|href)=\"?(?:https?:)?//")
    for path in site.rglob("*.html"):
        assert not elsewhere.search(path.read_text(encoding="utf-8")), path
    for path in site.rglob("*.css"):
        assert "@import" not in path.read_text(encoding="utf-8"), path


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("reference/ops.html", list(REGISTRY)),
        (
            "authors/required-ops.html",
            [op.name for op in REGISTRY.values() if op.is_required]
            + ["from_data", "to_data", "name", "sync", "native_dtype"],
        ),
    ],
)
def test_the_pages_that_are_made_of_the_code_have_every_op(site, page, expected):
    anchors = set(re.findall(r'<h3 id="([^"]+)"', (site / page).read_text(encoding="utf-8")))
    assert set(expected) <= anchors


def test_the_pages_of_operations_are_what_the_code_says(run_python):
    result = run_python(DOCS / "op_pages.py", "--check")
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.skipif(
    not burn.Device.enumerate("opencl") or not burn.Device.enumerate("torch"),
    reason="not all backends of the page are here",
)
def test_the_page_of_who_computes_what_is_what_the_backends_have(run_python):
    result = run_python(DOCS / "bodies.py", "--check")
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_function_page_has_an_anchor_for_every_public_function(site):
    text = (site / "reference" / "functions.html").read_text(encoding="utf-8")
    modules = ["burn", *(f"burn.{name}" for name in NAMESPACES)]
    names = [
        f"{module}.{name}"
        for module in modules
        for name, value in inspect.getmembers(importlib.import_module(module))
        if inspect.isfunction(value) and not name.startswith("_")
    ]
    assert len(names) > 300
    assert {"burn.sum", "burn.nn.functional.softmax", "burn.optim.adam_step"} <= {*names}
    names += ["burn.no_grad", "burn.custom_vjp"]
    assert [name for name in names if f'id="{name}"' not in text] == []


@pytest.mark.parametrize("package", ["nn", "optim", "quantization", "store", "data", "train"])
def test_the_page_of_a_package_has_an_anchor_for_every_class(site, package):
    text = (site / "reference" / f"{package}.html").read_text(encoding="utf-8")
    module = getattr(burn, package)
    classes = [name for name in dir(module) if inspect.isclass(getattr(module, name))]
    assert classes
    assert [name for name in classes if f'id="burn.{package}.{name}"' not in text] == []


RUNNING = [page for page in PAGES if examples(page) and page != "authors/first-backend.md"]
"""Pages whose examples run in a process each; where there are forks, of one that imports burn."""


@pytest.fixture(scope="module")
def outcomes(once, run_python):
    """The folder in which each page has its output and status."""

    def run_all(folder):
        program = folder / "run.py"
        program.write_text(RUN, encoding="utf-8")
        pages = []
        for number, page in enumerate(RUNNING):
            if page in NEEDS and importlib.util.find_spec(NEEDS[page]) is None:
                continue
            blocks = folder / str(number) / "blocks.json"
            blocks.parent.mkdir()
            blocks.write_text(json.dumps(examples(page)), encoding="utf-8")
            pages.append((page, str(blocks)))
        if hasattr(os, "fork"):
            result = run_python("-W", "error", program, json.dumps(pages), BURN_DEVICE="cpu")
            assert result.returncode == 0, result.stdout + result.stderr
            return
        for page, blocks in pages:
            result = run_python("-W", "error", program, page, blocks, BURN_DEVICE="cpu")
            Path(f"{blocks}.output").write_text(result.stdout + result.stderr, encoding="utf-8")
            Path(f"{blocks}.status").write_text(str(result.returncode), encoding="utf-8")

    return once("pages", run_all)


@pytest.mark.parametrize("page", RUNNING)
def test_the_examples_of_a_page_run(page, outcomes):
    if page in NEEDS:
        pytest.importorskip(NEEDS[page])
    path = outcomes / str(RUNNING.index(page))
    status = (path / "blocks.json.status").read_text(encoding="utf-8")
    assert status == "0", (path / "blocks.json.output").read_text(encoding="utf-8")


def test_the_first_backend_is_made_as_its_page_says(run_python, install_folder, tmp_path):
    text = text_of("authors/first-backend.md")
    files = re.findall(r'^```python title="([^"]+)"\n(.*?)^```$', text, re.MULTILINE | re.DOTALL)
    folder = tmp_path / "burn-abacus"
    write(render("abacus", "bare"), folder)
    backend = folder / "src" / "burn_abacus" / "backend.py"
    source = backend.read_text(encoding="utf-8")
    stubs = {method.name: method.stub for method in required_methods()}
    for title, code in files:
        if title == "src/burn_abacus/backend.py, imports":
            source = source.replace(
                "from burn.plugin_api import", f"{code}from burn.plugin_api import", 1
            )
        elif title == "src/burn_abacus/backend.py":
            for method in re.split(r"\n(?=    def )", code):
                stub = stubs[re.match(r"    def (\w+)", method)[1]]
                assert stub in source
                source = source.replace(stub, method.rstrip("\n") + "\n")
        else:
            (folder / title).write_text(code, encoding="utf-8")
    backend.write_text(source, encoding="utf-8")
    path = install_folder(folder)
    program, blocks = tmp_path / "run.py", tmp_path / "blocks.json"
    program.write_text(RUN, encoding="utf-8")
    blocks.write_text(json.dumps(examples("authors/first-backend.md")), encoding="utf-8")
    result = run_python("-W", "error", program, "first-backend.md", blocks, PYTHONPATH=path)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("page", PAGES)
def test_a_page_names_only_what_is_there(page):
    text = text_of(page)
    for name in set(re.findall(r"`burn\.([a-z]\w*(?:\.\w+)*)", text, re.IGNORECASE)):
        assert find(name) is not None
    sources = [
        path.read_text(encoding="utf-8")
        for folder in ("core", "plugins")
        for path in (ROOT / folder).rglob("src/**/*.py")
    ]
    for variable in set(re.findall(r"BURN_[A-Z_]+", text)) - {"BURN_CORE"}:
        assert any(variable in source for source in sources), variable


def comparison():
    """The rows of the table that compares gradients: what is here, and where the example is."""
    table = text_of("users/autodiff.md").partition("## Names elsewhere")[2].partition("\n## ")[0]
    for line in re.findall(r"^\| (?!JAX).*\|$", table, re.MULTILINE):
        _, _, here, example = (cell.strip() for cell in line[1:-1].split("|"))
        page, heading = re.fullmatch(r"\[.*\]\((.*)#(.*)\)", example).groups()
        yield here, f"users/{page or 'autodiff.md'}", heading


def section(page, heading):
    """The examples under a heading, which is named by its anchor."""
    for part in re.split(r"^(?=##? )", text_of(page), flags=re.MULTILINE):
        title = part.partition("\n")[0].lstrip("# ").lower()
        if re.sub(r"\W+", "-", title) == heading:
            return "".join(match[2] for match in BLOCK.finditer(part))
    raise AssertionError(f"{page} has no section {heading}")


@pytest.mark.parametrize(("here", "page", "heading"), list(comparison()))
def test_what_the_comparison_of_gradients_names_is_in_the_example_of_its_line(here, page, heading):
    names = re.findall(
        r"burn(?:\.\w+)+|\.\w+(?=\()|\w+(?==)", " ".join(re.findall("`(.*?)`", here))
    )
    assert names
    assert [name for name in names if name not in section(page, heading)] == []


def find(name):
    """What is called burn.name: a public name, or one of a module."""
    found, path = burn, "burn"
    for part in name.split("."):
        path = f"{path}.{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            found = importlib.import_module(path)
    return found


@pytest.mark.parametrize(
    ("page", "words"),
    [pytest.param(*command, id=f"{command[0]} {' '.join(command[1])}") for command in commands()],
)
def test_a_page_calls_only_commands_and_options_that_are_there(page, words):
    command = main.get_command(click.Context(main), words[0])
    assert command is not None
    options = {opt for parameter in command.params for opt in parameter.opts}
    used = {word.partition("=")[0] for word in words[1:] if word.startswith("-")}
    assert used <= options | {"--help"}


def test_the_names_that_are_kept_are_listed():
    text = text_of("authors/publishing.md")
    names = re.search(r"claims one is\srefused: ([^.]*)\.", text)[1]
    assert set(re.split(r",\s+", names)) == {"core", *BACKEND_IDS}
