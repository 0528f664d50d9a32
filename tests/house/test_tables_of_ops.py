"""A fact about an op stands on the op: a container that names several ops needs a reason."""

import ast
from pathlib import Path

from burn.kernels.functions import FUNCTIONS
from burn.ops import REGISTRY

ROOT = Path(__file__).parents[2]
CORE = ROOT / "core" / "src" / "burn"

NAMED = 4
"""So many ops in one container are a table."""

LANGUAGES = ("burn/kernels/", "burn_cpu/llvm_", "burn_opencl/dialect")
"""Modules that spell scalar functions of kernels, of which many have the names of ops."""

ALLOWED = {
    "burn/backend/array.py": "the names of the array API standard, which a namespace has",
    "burn/functions/scattering.py": "values of an argument, as the documentation lists them",
    "burn/nn/init.py": "names of nonlinearities, as PyTorch has them",
    "burn/tensor/_numpy_protocol.py": "the names of NumPy's functions",
    "burn/shared_kernels/": "codes by which sources of kernels select a way to combine elements",
    "burn_opencl/reduction.py": "the same",
    "burn_opencl/expressions.py": "kernels of several ops, and complex numbers in OpenCL C",
    "burn_cuda/": "complex numbers in C++, and the structs of scans",
    "burn_cpu/complex_functions.py": "where NumPy departs from the standard",
    "burn_torch/": "where torch departs from burn, and has no unsigned integers",
}
"""By the path of a module, or of those of a package, why it may have such tables."""


def tables():
    """Path, name and ops of each container of a module, or of a class, that names several ops."""
    for source in [ROOT / "core" / "src", *(ROOT / "plugins").glob("*/src")]:
        for path in sorted(source.rglob("*.py")):
            name = path.relative_to(source).as_posix()
            if not name.startswith(("burn/ops/", "burn/testing/")):
                tree = ast.parse(path.read_text(encoding="utf-8"))
                for target, names in containers(tree.body):
                    yield name, target, names


def containers(statements):
    """Name and ops of the containers that statements assign."""
    for statement in statements:
        if isinstance(statement, ast.ClassDef):
            yield from containers(statement.body)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            targets = getattr(statement, "targets", None) or [statement.target]
            target = ast.unparse(targets[0])
            names = {
                word
                for node in ast.walk(statement.value)
                if isinstance(node, ast.Constant) and isinstance(node.value, str)
                for word in node.value.replace(",", " ").split()
                if word in REGISTRY
            }
            is_text = isinstance(statement.value, ast.Constant)
            if len(names) >= NAMED and target != "__all__" and not is_text:
                yield target, names


def reason(path, names):
    """The key of `ALLOWED` of a module; an empty one for a language, None if there is no reason."""
    if path.startswith(LANGUAGES) and names <= FUNCTIONS.keys() | {"max", "min", "sum", "prod"}:
        return ""
    return next((key for key in ALLOWED if path.startswith(key)), None)


def test_a_container_that_names_several_ops_has_a_reason():
    found = [(path, target) for path, target, names in tables() if reason(path, names) is None]
    assert found == [], "say it on the op, in burn/ops, or have a method"


def test_reasons_are_few_and_needed():
    assert len(ALLOWED) <= 10
    used = {reason(path, names) for path, _, names in tables()}
    assert used - {"", None} == set(ALLOWED)
