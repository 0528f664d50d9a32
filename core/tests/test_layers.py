"""Core is built in floors: a module imports only from floors below its own, or its own."""

import ast
from pathlib import Path

import burn

ROOT = Path(burn.__file__).parent

FLOORS = {
    "errors": 0,
    "dtype": 1,
    "aliases": 0,
    "data": 2,
    "device_id": 2,
    "generator": 2.5,
    "backend": 3,
    "ops": 4,
    "autodiff": 5,
    "plugins": 6,
    "ranking": 6.5,
    "selection": 6.7,
    "tensor_type": 6.5,
    "device": 7,
    "transfer": 7.5,
    "dispatch": 8,
    "tensor": 9,
    "namespace": 10,
    "cli": 12,
    "interop": 11,
    "__main__": 13,
    "testing": 11,
}


def room(module: str) -> str:
    """The room a module is in; a name that is no module is one of the public namespace."""
    name = module.split(".")[1]
    return name if name in FLOORS else "namespace"


def imports_at_run_time(tree: ast.AST) -> set[str]:
    """Modules of burn that are imported when a module runs, wherever in it that stands."""
    found = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("burn"):
            if node.module == "burn":
                found |= {f"burn.{alias.name}" for alias in node.names}
            else:
                found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("burn.")}
        else:
            found |= imports_at_run_time(node)
    return found


def test_every_module_has_a_floor():
    rooms = {path.stem for path in ROOT.glob("*.py")} | {
        path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "__pycache__"
    }
    assert rooms - {"__init__"} == set(FLOORS)


def test_no_module_imports_from_a_floor_above():
    wrong = []
    for path in ROOT.rglob("*.py"):
        here = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if here == "__init__":
            continue
        for module in imports_at_run_time(ast.parse(path.read_text(encoding="utf-8"))):
            there = room(module)
            if there != here and FLOORS[there] >= FLOORS[here]:
                wrong.append(f"{path.relative_to(ROOT)} imports {module}")
    assert not wrong


def test_core_names_no_plugin():
    plugins = {"burn_cpu", "burn_cuda", "burn_opencl", "burn_torch", "torch", "cupy"}
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            assert plugins.isdisjoint(name.split(".")[0] for name in names), path
