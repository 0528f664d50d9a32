"""The two sizes of a test run: the gate, and with ``--all`` everything."""

import gc

import pytest
from hypothesis import HealthCheck, settings

from burn.dtype import DType

settings.register_profile(
    "gate",
    max_examples=5,
    derandomize=True,  # the same draws in every run: a new find does not stop an unrelated change
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
settings.register_profile("all", settings.get_profile("gate"), max_examples=25)
settings.register_profile(
    "explore", settings.get_profile("gate"), max_examples=400, derandomize=False
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all",
        action="store_true",
        help="everything: tests marked exhaustive, every check of the conformance kit, and all "
        "draws of hypothesis",
    )
    parser.addoption(
        "--costs",
        action="store_true",
        help="print the CPU seconds of the files, functions and tests that take most",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "exhaustive: runs with --all only; the gate has a shorter test of the same rule"
    )
    if config.getoption("costs"):
        from costs import Costs

        config.pluginmanager.register(Costs())
    if config.getoption("hypothesis_profile", None) is None:
        settings.load_profile("all" if config.getoption("all") else "gate")


def pytest_make_parametrize_id(val: object) -> str | None:
    return val.name if isinstance(val, DType) else None


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()  # what was collected stays: tests that collect garbage do not go through it


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("all"):
        return
    left_out = [item for item in items if item.get_closest_marker("exhaustive")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("exhaustive")]
