"""Pages that are made of what the code says of itself: functions, classes, the parity map.

MkDocs calls `on_files` before it reads the pages of this folder. `op_pages.py` makes those of ops.
"""

from __future__ import annotations

import collections
import csv
import importlib
import inspect
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import burn
import burn.namespace
from burn.dtype import DType

logging.getLogger("markdown").setLevel(logging.WARNING)
os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    pages = {
        "reference/functions.md": functions_page(),
        "reference/nn.md": classes_page("burn.nn", "Modules", _MODULES, _RETURNED),
        "reference/optim.md": classes_page("burn.optim", "Optimizers", _OPTIMIZERS, _SCHEDULES),
        "reference/quantization.md": classes_page(
            "burn.quantization", "Quantization", _QUANTIZATION, ()
        ),
        "reference/store.md": classes_page("burn.store", "Files and checkpoints", _STORE, ()),
        "reference/data.md": classes_page("burn.data", "Data", _DATA, ()),
        "reference/train.md": classes_page("burn.train", "Training", _TRAIN, ()),
        "reference/parity.md": parity_page(Path(config.docs_dir)),
    }
    for path, lines in pages.items():
        files.append(File.generated(config, path, content="\n".join(lines) + "\n"))
    return files


# The page of the public functions.


NAMESPACES = (
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
    "quantization",
    "random",
    "signal",
    "tree",
)
"""Modules of functions whose names are not in ``burn`` itself."""

PACKAGES = {"burn.transforms": "burn.transforms"}
"""Packages whose functions are one chapter."""


def functions_page() -> Iterator[str]:
    """Every public function: those of ``burn`` by chapter, then a namespace after the other."""
    yield "# Functions\n"
    yield (
        "What is called as `burn.name`, by the chapters of the array API standard and then what is "
        "beyond it; after that the functions of `"
        + "`, `".join(f"burn.{name}" for name in NAMESPACES)
        + "`. Each has an anchor of its name: `functions.html#burn.sum`.\n"
    )
    chapters: dict[str, list[str]] = {}
    for name in public_functions(burn, burn.namespace.PUBLIC):
        module = getattr(burn, name).__module__
        chapters.setdefault(PACKAGES.get(module.rpartition(".")[0], module), []).append(name)
    for module in sorted(chapters, key=_order):
        yield f"## {_title(module)}\n\n{_about(module)}\n"
        for name in chapters[module]:
            yield _entry(f"burn.{name}", f"{module}.{name}")
    for namespace in NAMESPACES:
        module = importlib.import_module(f"burn.{namespace}")
        yield f"## burn.{namespace}\n\n{_about(module.__name__)}\n"
        for name in public_functions(module, dir(module)):
            yield _entry(f"burn.{namespace}.{name}", f"{getattr(module, name).__module__}.{name}")


def public_functions(module: Any, names: Iterable[str]) -> list[str]:
    """Those names that are functions, or classes that are called like one (``burn.no_grad``)."""
    found = []
    for name in names:
        value = getattr(module, name)
        is_function = inspect.isfunction(value) or (inspect.isclass(value) and name.islower())
        if is_function and not name.startswith("_") and not isinstance(value, DType):
            found.append(name)
    return found


def _entry(public: str, path: str, more: str = "") -> str:
    """The documentation of an object, with the public name as its heading and its anchor."""
    name = public.rpartition(".")[2]
    options = f"{{heading: {public}, toc_label: {name}{more}}}"
    return f'<a id="{public}"></a>\n\n::: {path}\n    options: {options}\n'


def _title(module: str) -> str:
    return module.rpartition(".")[2].replace("_", " ").capitalize()


def _order(module: str) -> tuple[bool, str]:
    """The chapters of the standard first."""
    return "chapter" not in _about(module), module


def _about(module: str) -> str:
    return (sys.modules[module].__doc__ or "").partition("\n")[0]


def _cell(text: str) -> str:
    """Text as it can stand in a table."""
    return " ".join(text.split()).replace("|", "\\|")


# The pages of classes.


_MODULES = """What is called as `burn.nn.name`. [Modules](../users/modules.md) says how to use
them. They are made of the [functions](functions.md) of `burn.nn.functional`.
"""

_OPTIMIZERS = """What is called as `burn.optim.name`. [Optimizers](../users/optimizers.md) says how
to use them. [Functions](functions.md) has those of `burn.optim` and `burn.optim.schedules`.
"""


_QUANTIZATION = """What is called as `burn.quantization.name`.
[Quantization](../users/quantization.md) says how to use it, and
[Functions](functions.md#burn.quantization.quantize_dynamic) what its functions do.
"""

_STORE = """What is called as `burn.store.name`.
[Files and checkpoints](../users/checkpoints.md) says how to use it, and
[Functions](functions.md#burn.store.save) what its functions do.
"""

_DATA = """What is called as `burn.data.name`. [Data](../users/data.md) says how to use it, and
[Functions](functions.md#burn.data.split) what its functions do.
"""

_TRAIN = """What is called as `burn.train.name`. [Training](../users/training.md) says how to use
it, and [Functions](functions.md#burn.train.fit) what its functions do.
"""

_RETURNED = (
    "burn.nn.summary.Summary",
    "burn.nn.summary.ModuleSummary",
    "burn.nn._state_dict.LoadReport",
    "burn.nn._quantization_report.QuantizationReport",
    "burn.nn._quantization_report.LayerReport",
)

_SCHEDULES = ("burn.optim.schedules.Schedule",)


def classes_page(package: str, title: str, text: str, returned: Sequence[str]) -> Iterator[str]:
    """Every public class of a package, by the modules that define them; what they return."""
    yield f"# {title}\n\n{text}"
    public = importlib.import_module(package)
    chapters: dict[str, list[str]] = {}
    for name in dir(public):
        value = getattr(public, name)
        if inspect.isclass(value):
            chapters.setdefault(value.__module__, []).append(name)
    for module in sorted(chapters, key=lambda chapter: (chapter not in _BASES, chapter)):
        yield f"## {_title(module)}\n\n{_about(module)}\n"
        for name in chapters[module]:
            yield _entry(
                f"{package}.{name}",
                f"{module}.{name}",
                ", merge_init_into_class: true, show_bases: false",
            )
    if returned:
        yield "## What they return\n"
    for path in returned:
        yield f"::: {path}\n"


_BASES = ("burn.nn.module", "burn.optim.optimizer")
"""Modules whose classes stand before those that are made of them."""


# The page of the parity map.


def parity_page(folder: Path) -> Iterator[str]:
    """What each operation and function of the Rust original is here, and how it is written."""
    with (folder / "parity.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with (folder / "parity_examples.csv").open(encoding="utf-8", newline="") as file:
        lines = csv.DictReader(file, delimiter="|", quoting=csv.QUOTE_NONE)
        calls = {line["name"]: line["call"] for line in lines}
    counts = collections.Counter(row["status"] for row in rows)
    yield "# Names of burn\n"
    yield (
        f"The {len(rows)} operations, functions and modules of the Rust framework burn, and what "
        f"they are here: {counts['same']} are the same, {counts['another name']} the same under "
        f"another name or as a case of another function, {counts['differs']} differ, "
        f"{counts['planned']} are planned, {counts['absent']} are not here, {counts['not needed']} "
        "not needed in Python. `op:` stands before what users do not call. The calls give what the "
        "original gives, and run as tests: `x`, `y`, `s`, `u`, `v`, `h` and `r` are floats, `n`, "
        "`i` and `j` integers, `m` is a mask, `gradient` that of the sum of a function, `counted` "
        "a module with the parameters 0.1, 0.2 and so on, `stepped` a parameter after two steps of "
        "an optimizer. A keyword `axis` stands where the original has `dim`.\n"
    )
    titles = {
        "burn_ops": "Traits of a backend",
        "burn_tensor_api": "Tensor and functions",
        "burn_tensor_data": "TensorData",
        "burn_core": "burn-core: what a module is",
        "burn_nn": "burn-nn: layers and losses",
        "burn_optim": "burn-optim: optimizers",
    }
    for source, title in titles.items():
        yield f"## {title}\n"
        own = [row for row in rows if row["source"] == source]
        for group in dict.fromkeys(row["group"] for row in own):
            yield f"### {group}\n\n| burn | here | | as the original |\n|---|---|---|---|"
            for row in own:
                if row["group"] == group:
                    here = f"`{row['counterpart']}`" if row["counterpart"] else ""
                    says = f"{row['status']}: {row['note']}" if row["note"] else row["status"]
                    bare = re.sub("^(float|int|bool)_", "", row["name"])
                    names = (f"{group}.{row['name']}", row["name"], bare)
                    call = next((f"`{calls[name]}`" for name in names if name in calls), "")
                    call = "" if not here or row["status"] == "same" else call
                    yield f"| `{row['name']}` | {here} | {_cell(says)} | {call} |"
            yield ""
