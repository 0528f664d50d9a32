"""The command ``burn new-plugin``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from burn.cli._output import own_stdout

__all__ = ["new_plugin"]


@click.command("new-plugin")
@click.argument("name")
@click.option(
    "--kind",
    type=click.Choice(["array", "bare"]),
    default="array",
    show_default=True,
    help="Over an array library that follows the array API standard, or without one.",
)
@click.option(
    "--namespace",
    metavar="MODULE",
    help="For the kind array: the module of the library.  [default: numpy]",
)
@click.option(
    "--directory",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="The folder to make.  [default: burn-NAME]",
)
def new_plugin(*, name: str, kind: str, namespace: str | None, directory: Path | None) -> None:
    """Make a package with a new backend.

    NAME is the name of the device: burn.ones(3, device="NAME"). The distribution is burn-NAME, its
    module burn_NAME. The package is complete: it installs, is listed by `burn devices`, and has
    tests that run the conformance kit and a workflow that runs the tests.

    A namespace that can be imported is compared with what the backend asks of the array API
    standard. Required operations for which it has no function, or not the keywords, are written as
    methods to be implemented.

    \b
    The kinds:
      array   every op works, by functions of the library and by defaults
      bare    a class with the required methods, documented and to be implemented

    \b
    Examples:
      burn new-plugin mychip --kind bare
      burn new-plugin mylib --namespace mylib.array_api
      burn new-plugin tryout --directory /tmp/tryout

    \b
    Exit status:
      0   the package was written
      1   the name cannot be used, or the folder is not empty
    """  # noqa: D301 — \b keeps click from filling the paragraph
    from burn.cli.namespace_needs import imported, lacks_of
    from burn.cli.scaffold import (
        NAMESPACE,
        check_name,
        check_namespace,
        distribution,
        render,
        requirement,
        write,
    )

    if kind == "bare" and namespace is not None:
        raise click.UsageError("--namespace is for the kind array; a bare backend has none.")
    with own_stdout() as out:
        check_name(name)
        check_namespace(namespace or NAMESPACE)
        folder = directory or Path(distribution(name))
        module = imported(namespace) if kind == "array" and namespace else None
        lacks = {} if module is None else lacks_of(module)
        files = render(name, kind, namespace or NAMESPACE, lacks)
        write(files, folder)
        for path in files:
            out.write(f"{folder / path}\n")
        package, is_known = requirement(namespace or NAMESPACE)
        if kind == "array" and not is_known:
            out.write(f"\nThat {package!r} brings {namespace} is a guess: see pyproject.toml.\n")
        if namespace and kind == "array":
            report = _report(namespace, lacks, is_there=module is not None)
            out.write("\n" + "".join(f"{line}\n" for line in report))
        out.write(
            "\nNext, in the environment that has burn-core:\n"
            f"  pip install -e {_shown(folder)}\n"
            "  burn devices\n"
            f"  burn check {name} --quick\n"
        )


def _report(namespace: str, lacks: Mapping[str, list[str]], *, is_there: bool) -> Iterator[str]:
    """What a namespace lacks of the array API standard, and what that means."""
    from burn.ops import REGISTRY

    if not is_there:
        yield f"{namespace} cannot be imported here, so what it lacks of the array API standard is"
        yield "not known: run this again where it is installed."
        return
    to_write = [name for name in lacks if name in REGISTRY and REGISTRY[name].is_required]
    others = [name for name in lacks if name in REGISTRY and name not in to_write]
    if not lacks:
        yield f"{namespace} has every function and keyword that the backend asks for."
    if to_write:
        yield f"{namespace} is not enough of the array API standard for these required operations:"
        for name in to_write:
            yield f"  {name}: it lacks {', '.join(lacks[name])}"
        yield "They are marked `required` in backend.py: implement them."
        yield "If most of them are, --kind bare is the better beginning."
    if others:
        yield f"It lacks what these would use, and burn's defaults run: {', '.join(others)}."


def _shown(folder: Path) -> str:
    """A folder as an argument for a shell and pip, which must not read it as a package name."""
    import shlex

    text = str(folder)
    return shlex.quote(text if folder.is_absolute() else f"./{text}")
