"""Pages that are made of what the code says of itself: ops, functions, classes, the parity map.

MkDocs calls `on_files` before it reads the pages of this folder.
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
from burn.backend import Backend, is_implemented
from burn.cli.required_methods import RequiredMethod, required_methods
from burn.dtype import DType, Kind
from burn.ops import REGISTRY, Op, Operand, Tag
from burn.testing import SAMPLES

logging.getLogger("markdown").setLevel(logging.WARNING)
os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")

KIND_NAMES = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    pages = {
        "authors/required-ops.md": required_page(),
        "reference/ops.md": ops_page(),
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


def markdown(docstring: str | None) -> str:
    """A docstring as Markdown: definition lists become bullets, sections paragraphs."""
    text = inspect.cleandoc(docstring or "")
    text = re.sub(r"(?m)^Raises\n-+\n(\w+)\n    ((?:.+\n?(?:    )?)+)", _raises, text)
    text = re.sub(r"(?m)^(``.+``)\n    ((?:.+\n?(?:    )?)+?)(?=^``|\Z)", _bullet, text)
    return re.sub(r"(?m)^(\w[\w ]*)\n-{3,}$", r"**\1**\n", text)


def _raises(match: re.Match[str]) -> str:
    text = " ".join(match[2].split())
    return f"Raises `{match[1]}` {text[:1].lower()}{text[1:]}"


def _bullet(match: re.Match[str]) -> str:
    return f"- {match[1]}: {' '.join(match[2].split())}\n"


def kinds(spec: Operand) -> str:
    """The kinds of dtypes that an operand takes, in words."""
    if spec.kinds == Kind.ANY:
        return "any dtype"
    return ", ".join(KIND_NAMES[letter] for letter in str(spec.kinds))


# The page of the required ops.


def required_page() -> Iterator[str]:
    """Every method that a backend has to write, and what the kit tries of it."""
    methods = required_methods()
    members = [
        name
        for name, member in vars(Backend).items()
        if callable(member) and not is_implemented(member)
    ]
    yield "# The required operations\n"
    yield (
        f"A backend writes {len(members)} members of `Backend` and the {len(methods)} methods on "
        "this page; every other operation has a [default](overriding.md) made of them. The page "
        "is made of the protocols, of the op definitions and of the samples of the conformance "
        "kit, so it says what this version asks for.\n"
    )
    yield _CONVENTIONS
    yield "## Beside the operations\n"
    for name in members:
        yield from _member(name)
    topics = dict.fromkeys((method.protocol, method.topic) for method in methods)
    for protocol, topic in topics:
        yield f"## {protocol}\n\n{topic}\n"
        for method in methods:
            if method.protocol == protocol:
                yield from _required(method)


_CONVENTIONS = """What is true of all of them:

- **Operands.** They are on one device, and those that are computed with each other have one dtype.
  Shapes broadcast as in NumPy. Where a Python number may stand, at least one operand is a tensor.
  The number lies in the range of that tensor's dtype, and the method rounds it to the dtype before
  it computes: 0.1 equals the float32 nearest to it. A float tensor may meet an int.
- **Results.** A result has the dtype of the operands, unless the operation says otherwise:
  comparisons give bool, and an attribute `dtype` (a [`DType`](../reference/tensor.md)) is what
  comes out. Functions of floats give NaN and infinities where IEEE 754 does, and never raise. The
  sign of a zero is that of IEEE 754 where elements are moved, chosen, rounded or multiplied, and
  free in other results; the sign of a NaN is free.
- **Memory.** An operand is never written to. A result may share memory with an operand, as long as
  neither is ever written to. Operands come in any layout that methods of the backend produce.
- **Shapes.** A tensor may have no axes (one element), or an axis of length 0 (no elements).
- **Axes** are in `[0, rank)`. The `axis` of a reduction is a tuple of different ones; over none it
  leaves the elements as they are.
- **Precision.** Where a sum or a product of several elements is taken, 16-bit floats are computed
  in float32 and rounded once.
- **Refusals.** Kinds of dtypes, and what `full` and `arange` are given, were checked before. On the
  rest of what "not accepted" lists a method raises an exception, whichever: burn finds the reason.
  Where nothing underneath notices, `burn.ops.REGISTRY[name].infer` raises: it takes the operands
  as `Meta(shape, dtype)`, and returns the shape and the dtype of the result. Only for an index that
  a tensor holds is the error the method's own, an `OutOfRangeError`.
- **The kit** tries each with the samples that are listed, in every dtype of their kind that the
  device has, and compares with a reference in float64, with [tolerances](kit.md#tolerances).
"""


def _member(name: str) -> Iterator[str]:
    method = getattr(Backend, name)
    yield f"### `{name}`\n"
    yield f"```python\ndef {name}{_signature(method)}\n```\n"
    yield markdown(method.__doc__) + "\n"


def _required(method: RequiredMethod) -> Iterator[str]:
    yield f"### `{method.name}`\n"
    yield f"```python\n{inspect.cleandoc(_head(method.source))}\n```\n"
    yield markdown(getattr(Backend, method.name).__doc__) + "\n"
    definition = REGISTRY.get(method.name)
    if definition is None:  # uploads and downloads
        return
    yield from _operands(definition)
    samples = SAMPLES[method.name]
    notes = [_DTYPE.sub(" to each dtype", one.note) for one in samples.samples]
    yield f"The kit tries: {_listed(note for note in notes if not note.startswith('complex'))}.\n"
    errors = [one for one in samples.errors if not one.lenient]
    if errors:
        refused = (f"{one.note} (`{one.expected.__name__}`)" for one in errors)
        yield f"Not accepted: {_listed(refused)}.\n"


_DTYPE = re.compile(rf" to ({'|'.join(dtype.name for dtype in DType.members())})$")


def _listed(notes: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(notes))


def _head(source: str) -> str:
    """A method up to its docstring."""
    return source.partition('"""')[0].rstrip()


def _signature(function: Any) -> str:
    return str(inspect.signature(function)).replace("'", "")


def _operands(definition: Op) -> Iterator[str]:
    for name, spec in definition.operands.items():
        text = f"list of tensors of {kinds(spec)}" if spec.is_list else kinds(spec)
        yield f"- `{name}`: {text}{', or a number' * spec.scalar}{', or None' * spec.optional}"
    yield ""


# The page of all ops.


def ops_page() -> Iterator[str]:
    """Every op, by family."""
    required = sum(op.is_required for op in REGISTRY.values())
    yield "# Operations\n"
    yield (
        f"burn has {len(REGISTRY)} operations. {required} are required of a backend; the others "
        "have a default made of those, or are computed on the host where a backend has nothing "
        "better. `burn ops BACKEND` says which of them a backend has itself. What users call are "
        "the [functions](functions.md); operations take and return primitives, and every "
        "attribute is explicit.\n"
    )
    for module, definitions in _families().items():
        title = module.rpartition(".")[2].replace("_", " ").capitalize()
        yield f"## {title} {{ #family-{module.rpartition('.')[2]} }}\n\n{_about(module)}\n"
        for definition in definitions:
            yield from _op(definition)


def _families() -> dict[str, list[Op]]:
    families: dict[str, list[Op]] = {}
    for op in REGISTRY.values():
        families.setdefault(op.__module__, []).append(op)
    return {module: families[module] for module in sorted(families)}


def _op(definition: Op) -> Iterator[str]:
    names = [*definition.operands]
    if definition.attributes:
        names.append("*")
    for attribute in definition.attributes.values():
        shown = "" if attribute.required else f"={attribute.default!r}"
        names.append(attribute.name + shown)
    outputs = ", ".join(definition.outputs)
    yield f"### {definition.name}\n"
    yield f"```python\n{definition.name}({', '.join(names)}) -> {outputs}\n```\n"
    yield markdown(definition.__doc__) + "\n"
    yield from _operands(definition)
    yield f"*{_origin(definition)}; {_gradient(definition)}.*\n"


def _origin(definition: Op) -> str:
    if definition.is_required:
        return "Required"
    return "Has a default" if definition.default is not None else "On the host by default"


def _gradient(definition: Op) -> str:
    if Tag.UNTRACKED in definition.tags:
        return "refuses tracked operands"
    if Tag.NO_GRADIENT in definition.tags:
        return "no gradient"
    if definition.vjp is not None:
        return "its gradient is a rule"
    return "its gradient is that of its default"


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
    for module in sorted(chapters, key=lambda one: (one not in _BASES, one)):
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
