"""A new plugin: its name, its files, and the folder that they are written to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from itertools import groupby
from pathlib import Path
from string import Template
from types import MappingProxyType
from typing import Final

from packaging.version import Version

import burn
from burn.device_id import BACKEND_IDS
from burn.errors import ArgumentError
from burn.ops import REGISTRY
from burn.plugins import API_VERSION, hookspec, registry

__all__ = [
    "NAMESPACE",
    "check_name",
    "check_namespace",
    "distribution",
    "render",
    "requirement",
    "write",
]

NAMESPACE: Final = "numpy"
"""The default namespace of the array API standard, which core depends on."""

_FILES: Final = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    ".gitignore": "gitignore",
    ".github/workflows/test.yml": "workflow.yml",
    "src/{module}/__init__.py": "init.py",
    "src/{module}/plugin.py": "plugin_{kind}.py",
    "src/{module}/backend.py": "backend_{kind}.py",
    "src/{module}/expected_failures.txt": "expected_failures.txt",
    "src/{module}/py.typed": None,
    "tests/test_{module}.py": "test.py",
}
"""The files of a plugin, and the template of each; None for an empty one."""

_REQUIREMENTS: Final = {
    "numpy": "numpy>=2.1",
    "array_api_strict": "array-api-strict>=2.4",
}
"""The requirements of known namespaces."""

_PROGRESS: Final = {
    "array": "Every op works. Add methods for ops that the library does faster to\n"
    "`src/{module}/backend.py`.",
    "bare": "The methods to implement are marked `required` in\n"
    "`src/{module}/backend.py`. When all are implemented, this works:",
}
"""The state of a new plugin."""

_NUMPY_FAILURES: Final = """
# NumPy's complex functions depart from the standard.
special_cases/expm1/*/what * @ native  # NaN where a part is infinite, and -0.0 for -0.0
special_cases/tan/*/what * @ native  # the sign of a zero where the imaginary part is infinite
special_cases/tanh/*/what * @ native  # the sign of a zero where the real part is infinite
special_cases/divide/*/the largest * @ native  # NaN where 1 / divisor overflows
special_cases/log1p/*/the largest * @ native  # 0 for small numbers
special_cases/sign/*/the largest * @ native  # 0 where the magnitude overflows
values/sign/*/complex, with a NaN @ native  # the sign of an infinite part beside the NaN
settings/sign/*/complex, with a NaN @ native  # likewise
"""
"""The expected failures of a backend over NumPy."""

_NAME: Final = re.compile(r"(?=.{1,30}$)[a-z][a-z0-9]*(_[a-z0-9]+)*")


def check_name(name: str) -> None:
    """Refuse a name that a backend of a third party cannot have.

    Raises
    ------
    ArgumentError
        If it is not a name that a user could write, or it is taken.
    """
    if not _NAME.fullmatch(name):
        likely = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
        likely = likely.removeprefix("burn_")
        raise ArgumentError(
            f"a backend cannot be called {name!r}: its name starts with a letter and has "
            "up to 30 lower-case letters and digits, words joined by single underscores",
            hint=f"Try {likely}" if _NAME.fullmatch(likely) else "Try my_chip",
        )
    if name.startswith("burn_"):
        raise ArgumentError(
            f"the distribution of {name!r} would be called {distribution(name)}",
            hint=f"Leave burn out: {name.removeprefix('burn_')}",
        )
    if name == "core" or name in BACKEND_IDS:
        raise ArgumentError(
            f"the name {name!r} is kept for a package of this project",
            hint=f"Kept are core, {', '.join(sorted(BACKEND_IDS))}",
        )
    if name in registry.entries:
        raise ArgumentError(
            f"the name {name!r} is taken by {registry.entries[name].plugin}, which is installed "
            "here, and a name belongs to one plugin",
            hint="Choose another name, or uninstall it first",
        )


def check_namespace(namespace: str) -> None:
    """Refuse a string that is not the name of a module.

    Raises
    ------
    ArgumentError
        If it is not one.
    """
    if not all(part.isidentifier() for part in namespace.split(".")):
        raise ArgumentError(
            f"{namespace!r} is no name of a module",
            hint="Give the name to import, such as numpy, array_api_strict or jax.numpy",
        )


def distribution(name: str) -> str:
    """Name of the distribution of a backend: burn-my-chip for my_chip."""
    return f"burn-{name.replace('_', '-')}"


def requirement(namespace: str) -> tuple[str, bool]:
    """The requirement for a namespace, and whether it is known rather than guessed."""
    library = namespace.partition(".")[0]
    if library in _REQUIREMENTS:
        return _REQUIREMENTS[library], True
    return library.replace("_", "-"), False


def render(
    name: str,
    kind: str,
    namespace: str = NAMESPACE,
    lacks: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> dict[str, str]:
    """The files of a plugin by their paths.

    Parameters
    ----------
    name : str
        Name of the backend, which `check_name` has accepted.
    kind : str
        ``"array"`` for a backend over a namespace, ``"bare"`` for one without a library.
    namespace : str
        For the kind ``"array"``: the module that follows the array API standard.
    lacks : mapping of str to sequence of str
        What the module lacks of it, by op; see `burn.cli.namespace_needs.lacks_of`.
    """
    values = {**_values(name, kind, namespace), **_substitutes(namespace, lacks)}
    folder = resources.files(__package__) / "templates"
    files = {}
    for path, template in _FILES.items():
        text = ""
        if template is not None:
            source = folder / f"{template.format(kind=kind)}.template"
            text = Template(source.read_text(encoding="utf-8")).substitute(values)
        files[path.format(module=values["module"])] = text
    return files


def _values(name: str, kind: str, namespace: str) -> Mapping[str, str]:
    """The value of each placeholder of the templates."""
    from burn.cli.required_methods import required_methods

    methods = required_methods()
    core = Version(burn.__version__)
    numpy = "xp" if namespace == "numpy" else "np"
    title = name.replace("_", " ")
    return {
        "name": name,
        "distribution": distribution(name),
        "module": f"burn_{name}",
        "class_name": "".join(part.capitalize() for part in name.split("_")) + "Backend",
        "namespace": namespace,
        "library_imports": "\n".join(
            sorted({f"import {namespace} as xp", f"import numpy as {numpy}"}, key=str.lower)
        ),
        "numpy": numpy,
        "requirements": f', "{requirement(namespace)[0]}"' if kind == "array" else "",
        "description": f"{namespace if kind == 'array' else title} as a backend of burn for Python",
        "core_version": f">={core.major}.{core.minor},<{core.major}.{core.minor + 1}",
        "api_version": str(API_VERSION),
        "group": hookspec.project_name,
        "hardware": namespace if kind == "array" else "an example",
        "methods": "\n".join(
            f"    # {topic}\n\n" + "\n".join(method.stub for method in group)
            for topic, group in groupby(methods, key=lambda method: method.topic)
        ).rstrip(),
        "count": str(len(methods)),
        "imports": _imports({"DeviceId", "DType"}.union(*(method.types for method in methods))),
        "known_failures": _NUMPY_FAILURES if (kind, namespace) == ("array", "numpy") else "",
        "progress": _PROGRESS[kind].format(name=name, module=f"burn_{name}"),
    }


_ARRAY_IMPORTS: Final = frozenset({"ArrayBackend", "DeviceId", "DType", "DTypeUsage", "TensorData"})


def _substitutes(namespace: str, lacks: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The placeholders of the template for arrays: stubs of the methods that need more.

    A required op of which the namespace is not enough is a method to write. Any other one has its
    default, also where `ArrayBackend` has a method.
    """
    from burn.backend import ArrayBackend
    from burn.cli.required_methods import required_methods

    stubs, types = [], set(_ARRAY_IMPORTS)
    required = {method.name: method for method in required_methods()}
    for name, missing in lacks.items():
        what = f"{namespace} lacks {', '.join(missing)}"
        if name in required and name in REGISTRY:
            method = required[name]
            stubs.append(f"\n    # {what}.\n{method.stub.rstrip()}\n")
            types |= {*method.types, "UnsupportedOpError", "required"}
        elif name in REGISTRY and hasattr(ArrayBackend, name):
            stubs.append(f"\n    # {what}: the default of burn runs.\n    {name}: Any = None\n")
    device = "" if "asarray(device=...)" in lacks.get("from_data", ()) else _UPLOAD_DEVICE
    return {
        "array_imports": _import_line(types),
        "upload_device": device,
        "lacking": "".join(stubs),
    }


_UPLOAD_DEVICE: Final = "\n            device=self.native_device(device),"


def _import_line(types: Iterable[str]) -> str:
    """One import of types from the plugin API, over several lines if it is long."""
    names = [*sorted({*types} - {"required"}, key=str.lower)]
    names += ["required"] * ("required" in types)
    line = f"from burn.plugin_api import {', '.join(names)}"
    if len(line) <= _LINE:
        return line
    return "\n".join(["from burn.plugin_api import (", *[f"    {name}," for name in names], ")"])


_LINE: Final = 100
"""Columns of a line of a new package, as its pyproject.toml says."""


def _imports(types: Iterable[str]) -> str:
    """Lines that import types from the plugin API, in the order of isort."""
    names = {*types, "Backend", "DTypeUsage", "UnsupportedOpError"}
    return "\n".join(f"    {name}," for name in [*sorted(names, key=str.lower), "required"])


def write(files: Mapping[str, str], folder: Path) -> None:
    """Write a plugin to a new or empty folder.

    Raises
    ------
    ArgumentError
        If the folder is not empty, or cannot be written to.
    """
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ArgumentError(
                f"{folder} exists already, and nothing is overwritten",
                hint="Move it away, or choose another directory with --directory",
            )
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise ArgumentError(
            f"{error.filename or folder} cannot be written: {error.strerror or error}",
            hint="Choose another directory with --directory",
        ) from error
