"""What an import costs: names are resolved when they are used."""

import subprocess
import sys

import pytest

HEAVY = ["numpy", "ml_dtypes", "msgpack", "torch", "cupy", "pyopencl", "rich", "click", "pluggy"]


def loaded_after(code):
    """Which heavy modules a process has loaded after some code."""
    program = f"{code}\nimport sys\nprint(*[name for name in {HEAVY} if name in sys.modules])"
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()


def test_import_burn_loads_nothing():
    assert loaded_after("import burn; burn.__version__") == []


def test_using_burn_on_the_cpu_loads_no_other_array_library():
    loaded = loaded_after("import burn; burn.ones(2, device='cpu') + 1")
    assert "numpy" in loaded
    assert not {"torch", "cupy", "pyopencl", "rich", "click"} & set(loaded)


@pytest.mark.parametrize("package", ["nn", "optim", "store", "data", "train"])
def test_a_package_imports_a_module_when_one_of_its_names_is_used(package):
    program = f"import burn.{package}, sys; print(*[one for one in sys.modules if 'burn.' in one])"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    own = {word for word in result.stdout.split() if word.startswith(f"burn.{package}.")}
    assert own == set()


def test_every_public_name_resolves_and_is_listed():
    import burn

    names = dir(burn)
    assert {"Tensor", "Device", "float32", "bool", "sum", "random", "no_grad"} <= set(names)
    for name in names:
        assert getattr(burn, name) is not None or name == "newaxis"
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        burn.nonsense  # noqa: B018 — looking is what raises


@pytest.mark.parametrize("name", ["fft", "linalg", "random", "signal"])
def test_a_module_of_the_namespace_is_imported_by_its_name(name):
    lines = [
        f"import burn.{name} as module",
        "import burn",
        f"assert burn.{name} is module",
        f"from burn.{name} import *",
        "assert all(globals()[one] is getattr(module, one) for one in module.__all__)",
    ]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)
