"""``burn new-plugin``: what it makes installs, is found, is clean, and says what it lacks."""

import json
import os
import re
import subprocess
import sys
import tomllib
import types
from pathlib import Path

import array_api_strict
import numpy as np
import pytest
from click.testing import CliRunner

import burn
from burn.cli import main
from burn.cli.namespace_needs import lacks_of
from burn.cli.required_methods import required_methods
from burn.cli.scaffold import check_name, render, write
from burn.device_id import BACKEND_IDS
from burn.errors import ArgumentError
from burn.ops import REGISTRY
from burn.plugins import API_VERSION, BackendSpec, DeviceInfo

ROOT = Path(__file__).parents[2]

VARIANTS = {
    "numpy": ("array", "numpy"),
    "array-api-strict": ("array", "array_api_strict"),
    "bare": ("bare", "numpy"),
}


@pytest.fixture(scope="session")
def installed(once, install_folder):
    """The PYTHONPATH with a new package of a kind, which is built once."""

    def path(kind, namespace="numpy"):
        def build(folder):
            write(render("my_chip", kind, namespace), folder / "new")
            install_folder(folder / "new")

        return install_folder(once(f"my_chip-{kind}-{namespace}", build) / "new")

    return path


@pytest.fixture(params=VARIANTS)
def variant(request):
    return VARIANTS[request.param]


@pytest.fixture
def folder(variant, tmp_path):
    """A package of each kind, as the command makes it."""
    kind, namespace = variant
    target = tmp_path / "burn-my-chip"
    options = ["--namespace", namespace] if kind == "array" else []
    result = CliRunner().invoke(
        main, ["new-plugin", "my_chip", "--kind", kind, "--directory", str(target), *options]
    )
    assert result.exit_code == 0, result.output
    assert f"pip install -e {target}" in result.stdout
    return target


def refused(*arguments):
    result = CliRunner().invoke(main, ["new-plugin", *map(str, arguments)])
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.mark.parametrize(
    "variant",
    ["numpy", pytest.param("array-api-strict", marks=pytest.mark.exhaustive), "bare"],
    indirect=True,
)
def test_a_new_package_is_installed_and_listed(variant, installed, run_burn):
    variables = {"PYTHONPATH": installed(*variant), "BURN_PLUGINS": "my_chip"}
    result = run_burn("devices", "--json", **variables)
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["broken"] == []
    (device,) = [device for device in document["devices"] if device["backend"] == "my_chip"]
    assert device["name"] == "my_chip:0"
    plugins = json.loads(run_burn("plugins", "--json", **variables).stdout)["plugins"]
    (plugin,) = [plugin for plugin in plugins if plugin["backend"] == "my_chip"]
    assert plugin["distribution"] == "burn-my-chip"
    assert plugin["api_version"] == list(API_VERSION)


def test_a_new_package_has_what_the_readme_says(folder):
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == "burn-my-chip"
    assert project["entry-points"]["burn"] == {"my_chip": "burn_my_chip.plugin"}
    major, minor = burn.__version__.split(".")[:2]
    assert f"burn-core>={major}.{minor},<{major}.{int(minor) + 1}" in project["dependencies"]
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert names == {
        ".github/workflows/test.yml",
        ".gitignore",
        "README.md",
        "pyproject.toml",
        "src/burn_my_chip/__init__.py",
        "src/burn_my_chip/backend.py",
        "src/burn_my_chip/expected_failures.txt",
        "src/burn_my_chip/plugin.py",
        "src/burn_my_chip/py.typed",
        "tests/test_burn_my_chip.py",
    }
    assert "${{ matrix.python }}" in (folder / ".github/workflows/test.yml").read_text()


@pytest.mark.parametrize("name", ["a", "my_chip", "an_accelerator_with_a_long_name"[:30]])
@pytest.mark.parametrize(("kind", "namespace"), VARIANTS.values(), ids=VARIANTS)
def test_a_new_package_is_clean_for_its_own_ruff_and_for_ours(name, kind, namespace, tmp_path):
    check_name(name)
    write(render(name, kind, namespace), tmp_path / "new")
    package = f"burn_{name}"
    ours = ["--config", ROOT / "pyproject.toml", "--config", 'src = ["src"]']
    ours += ["--config", f'lint.isort.known-first-party = ["{package}"]']
    # Overrides take what the protocol passes, and NumPy is one namespace of several.
    ours += ["--ignore", "ARG002,ICN001"]
    for options in ([], ours):
        run_ruff("check", *options, folder=tmp_path / "new")
    run_ruff("format", "--check", folder=tmp_path / "new")


def run_ruff(*arguments, folder):
    command = [sys.executable, "-m", "ruff", *map(str, arguments), "--no-cache", "."]
    result = subprocess.run(
        command, cwd=folder, capture_output=True, encoding="utf-8", timeout=60, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_bare_backend_has_every_required_method_and_none_counts_as_written(installed, run_burn):
    variables = {"PYTHONPATH": installed("bare"), "BURN_PLUGINS": "my_chip"}
    result = run_burn("ops", "my_chip", "--json", **variables)
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    origins = {item["name"]: item["origins"]["my_chip"] for item in document["ops"]}
    missing = {name for name, origin in origins.items() if origin == "unsupported"}
    required = {op.name for op in REGISTRY.values() if op.is_required}
    assert missing == required
    assert {method.name for method in required_methods()} == required | {"from_data", "to_data"}


def test_an_array_backend_has_every_op(installed, run_burn):
    variables = {"PYTHONPATH": installed("array"), "BURN_PLUGINS": "my_chip"}
    result = run_burn("ops", "my_chip", "--json", **variables)
    assert result.returncode == 0, result.stderr
    (backend,) = json.loads(result.stdout)["backends"]
    assert backend["counts"]["unsupported"] == 0


@pytest.mark.parametrize(
    ("ops", "least"), [pytest.param("*", 1000, marks=pytest.mark.exhaustive), ("so*", 200)]
)
def test_an_array_backend_conforms_as_it_is(installed, run_burn, tmp_path, ops, least):
    report = tmp_path / "report.json"
    variables = {"PYTHONPATH": installed("array"), "BURN_PLUGINS": "my_chip,cpu"}
    options = ("--quick", "--op", ops, "--json", report)
    result = run_burn("check", "my_chip", *options, **variables)
    assert result.returncode == 0, result.stdout
    (device,) = json.loads(report.read_text(encoding="utf-8"))["devices"]
    assert device["conforms"]
    assert device["counts"]["passed"] > least
    assert device["counts"]["unsupported"] == 0


def test_the_kit_tells_what_a_bare_backend_lacks(installed, run_burn, tmp_path):
    report = tmp_path / "report.json"
    options = ("--suite", "contract", "--suite", "values", "--quick", "--json", report)
    result = run_burn("check", "my_chip", *options, PYTHONPATH=installed("bare"))
    assert result.returncode == 1
    assert "Traceback" not in result.stdout + result.stderr
    (device,) = json.loads(report.read_text(encoding="utf-8"))["devices"]
    failed = {failure["check"] for failure in device["failures"]}
    required = {op.name for op in REGISTRY.values() if op.is_required}
    assert {f"contract/{name}/required" for name in required} <= failed
    assert not [name for name in failed if name.startswith("values/")]
    assert device["counts"]["unsupported"] > 1000


def test_the_tests_of_a_new_package_run_the_kit(installed, tmp_path):
    folder = tmp_path / "new"
    write(render("my_chip", "array"), folder)
    result = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-v",
            "-p",
            "no:cacheprovider",
            "--burn-op=hardtanh",
            "-k",
            "hardtanh/float32 or declares",
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": installed("array"), "BURN_PLUGINS": "my_chip,cpu"},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "test_the_plugin_declares_its_backend PASSED" in result.stdout
    assert re.search(r"hardtanh/float32 PASSED", result.stdout)


def test_the_readme_of_a_new_package_runs(installed, run_python, tmp_path):
    write(render("my_chip", "array"), tmp_path / "new")
    text = (tmp_path / "new" / "README.md").read_text(encoding="utf-8")
    program = tmp_path / "readme.py"
    program.write_text(text.partition("```python\n")[2].partition("```")[0], encoding="utf-8")
    variables = {"PYTHONPATH": installed("array"), "BURN_PLUGINS": "my_chip,cpu"}
    result = run_python("-W", "error", program, **variables)
    assert result.returncode == 0, result.stderr
    assert "[ 0,  1,  4,  9, 16, 25]" in result.stdout


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("My-Chip", "Try my_chip"),
        ("burn-npu", "Try npu"),
        ("2d", "Try my_chip"),
        ("a b", "Try a_b"),
        ("chip_", "Try chip"),
        ("", "Try my_chip"),
        ("ünit", "Try"),
        ("x" * 31, "up to 30"),
        ("burn_npu", "Leave burn out: npu"),
        ("core", "kept for a package of this project"),
        ("strict", "taken by burn-strict"),
        *[(name, "kept for a package of this project") for name in BACKEND_IDS],
    ],
)
def test_a_name_that_cannot_be_used_is_refused_with_a_reason(name, hint, tmp_path):
    target = tmp_path / "new"
    assert hint in refused("--directory", target, "--", name)
    assert not target.exists()


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    assert "nothing is overwritten" in refused("my_chip", "--directory", tmp_path)
    assert "nothing is overwritten" in refused("my_chip", "--directory", tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


def test_an_empty_folder_and_one_that_is_not_there_are_used(tmp_path):
    (tmp_path / "empty").mkdir()
    for target in (tmp_path / "empty", tmp_path / "deep" / "down"):
        result = CliRunner().invoke(main, ["new-plugin", "my_chip", "--directory", str(target)])
        assert result.exit_code == 0, result.output
        assert (target / "pyproject.toml").is_file()


def test_a_folder_that_cannot_be_made_is_an_error_on_one_line(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert "cannot be written" in refused("my_chip", "--directory", tmp_path / "file" / "new")


def test_without_a_directory_it_is_named_after_the_distribution(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["new-plugin", "my_chip"])
    assert result.exit_code == 0, result.output
    assert [path.name for path in tmp_path.iterdir()] == ["burn-my-chip"]
    assert "pip install -e ./burn-my-chip\n" in result.stdout


def test_a_namespace_is_for_arrays_and_the_name_of_a_module(tmp_path):
    target = tmp_path / "new"
    assert "no name of a module" in refused(
        "my_chip", "--namespace", "no module", "--directory", target
    )
    result = CliRunner().invoke(
        main, ["new-plugin", "my_chip", "--kind", "bare", "--namespace", "numpy"]
    )
    assert result.exit_code == 2
    assert not target.exists()


def test_the_requirement_of_an_unknown_library_is_its_name_and_said_to_be_a_guess(tmp_path):
    target = tmp_path / "new"
    options = ["--namespace", "some_library.array_api", "--directory", str(target)]
    result = CliRunner().invoke(main, ["new-plugin", "my_chip", *options])
    assert result.exit_code == 0, result.output
    assert "'some-library' brings some_library.array_api is a guess" in result.stdout
    project = tomllib.loads((target / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["dependencies"][1:] == ["some-library"]


def test_names_are_checked_before_anything_is_written():
    with pytest.raises(ArgumentError):
        check_name("not a name")


@pytest.fixture
def poor_namespace(monkeypatch):
    """NumPy without some functions of the standard, and without keywords of others."""
    module = types.ModuleType("poor_arrays")
    vars(module).update({name: getattr(np, name) for name in np.__all__})
    for name in ("hypot", "copysign", "nextafter", "tanh", "bool"):  # and there is bool_
        delattr(module, name)
    module.full = lambda shape, fill_value, dtype=None: np.full(shape, fill_value, dtype)
    module.sum = lambda x, axis=None, keepdims=False: np.sum(x, axis=axis, keepdims=keepdims)
    monkeypatch.setitem(sys.modules, "poor_arrays", module)
    return module


def test_a_namespace_of_the_standard_lacks_nothing():
    assert lacks_of(np) == lacks_of(array_api_strict) == {}


def test_what_a_namespace_lacks_is_said_and_left_to_the_author(poor_namespace, tmp_path):
    assert lacks_of(poor_namespace) == {
        "tanh": ["tanh"],
        "copysign": ["copysign"],
        "nextafter": ["nextafter"],
        "hypot": ["hypot"],
        "full": ["full(device=...)"],
        "sum": ["sum(dtype=...)"],
        "scatter_add": ["sum(dtype=...)"],
    }
    target = tmp_path / "new"
    options = ["--namespace", "poor_arrays", "--directory", str(target)]
    result = CliRunner().invoke(main, ["new-plugin", "my_chip", *options])
    assert result.exit_code == 0, result.output
    assert "  sum: it lacks sum(dtype=...)\n" in result.stdout
    assert "burn's defaults run: copysign, nextafter, hypot.\n" in result.stdout
    for command in ("check", "format --check"):
        run_ruff(*command.split(), folder=target)
    backend = {}
    exec((target / "src/burn_my_chip/backend.py").read_text(encoding="utf-8"), backend)  # noqa: S102
    spec = BackendSpec(
        "my_chip", backend["MyChipBackend"], lambda: [DeviceInfo("cpu", 0, "")], ("cpu",)
    )
    with burn.registered(spec):
        device = burn.Device("my_chip")
        x = burn.asarray([3.0, 4.0], device=device)
        assert burn.hypot(x, burn.flip(x)).tolist() == [5.0, 5.0]
        assert (x == 3.0).tolist() == [True, False]
        origins = {name: device.ops.origin(REGISTRY[name]) for name in lacks_of(poor_namespace)}
        assert {name for name, origin in origins.items() if origin == "unsupported"} == {
            *("tanh", "full", "sum", "scatter_add")
        }


def test_a_namespace_that_is_not_installed_is_not_judged(tmp_path):
    options = ["--namespace", "some_library", "--directory", str(tmp_path / "new")]
    result = CliRunner().invoke(main, ["new-plugin", "my_chip", *options])
    assert "some_library cannot be imported here" in result.stdout
