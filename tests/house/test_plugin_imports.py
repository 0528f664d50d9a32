"""Plugins import from core the plugin API alone, and tests of plugins also what users do."""

import ast
from pathlib import Path

import pytest

import burn.plugin_api

ROOT = Path(__file__).parents[2]
PLUGINS = sorted(
    path.parent
    for path in ROOT.glob("*/burn-*/pyproject.toml")
    if path.parent.parent.name != "core"
)
USER_MODULES = ("burn.fft", "burn.linalg", "burn.nn", "burn.optim", "burn.random", "burn.signal")


def imported_modules(path):
    """Modules of burn that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (name for name in names if name and name.partition(".")[0] == "burn")


def is_for_tests(module):
    return module in ("burn", *USER_MODULES) or module.startswith(("burn.nn.", "burn.testing"))


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda path: path.name)
def test_a_plugin_imports_the_plugin_api_alone(plugin):
    wrong = {
        f"{path.relative_to(ROOT)}: {module}"
        for path in (plugin / "src").rglob("*.py")
        for module in imported_modules(path)
        if module != "burn.plugin_api"
    }
    assert not wrong


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda path: path.name)
def test_tests_of_a_plugin_import_what_users_and_plugins_may(plugin):
    wrong = {
        f"{path.relative_to(ROOT)}: {module}"
        for path in plugin.rglob("tests/**/*.py")
        for module in imported_modules(path)
        if module != "burn.plugin_api" and not is_for_tests(module)
    }
    assert not wrong


def test_every_name_of_the_plugin_api_is_there():
    for name in dir(burn.plugin_api):
        assert getattr(burn.plugin_api, name) is not None


def test_a_star_import_of_the_plugin_api_gives_every_name():
    names = {}
    exec("from burn.plugin_api import *", names)  # noqa: S102 — a function has no star import
    assert set(dir(burn.plugin_api)) == names.keys() - {"__builtins__"}


def test_the_plugin_api_names_its_version():
    major, minor = burn.plugin_api.API_VERSION
    assert (major, minor) >= (0, 1)
