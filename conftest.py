"""The two sizes of a test run: the gate, and with ``--all`` everything."""

import gc
import os
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from burn.dtype import DType

os.environ.setdefault("BURN_DEVICE_PRIORITY", "cpu")  # the default device, whatever there is

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
    config.addinivalue_line(
        "markers",
        "together(name, cases): small cases that are one test, and tests of their own with --all "
        "or -k; they share fixtures",
    )
    if config.getoption("costs"):
        from costs import Costs

        config.pluginmanager.register(Costs())
    if config.getoption("hypothesis_profile", None) is None:
        settings.load_profile("all" if config.getoption("all") else "gate")


def pytest_make_parametrize_id(val: object) -> str | None:
    return val.name if isinstance(val, DType) else None


ParameterSet = type(pytest.param())


class Together:
    """Cases of a function that the gate tries in one test: values of some of its parameters."""

    def __init__(self, names: str | tuple[str, ...], cases: Iterable[Any]) -> None:
        self.names = (names,) if isinstance(names, str) else names
        self.cases = []
        for case in cases:
            if not isinstance(case, ParameterSet):
                self.cases.append((case,) if isinstance(names, str) else tuple(case))
            elif not any(mark.name == "exhaustive" for mark in case.marks):
                self.cases.append(tuple(case.values))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    mark = metafunc.definition.get_closest_marker("together")
    if mark is not None:
        names, cases = mark.args
        if metafunc.config.getoption("all") or metafunc.config.getoption("keyword"):
            metafunc.parametrize(names, list(cases), **mark.kwargs)
        else:
            group = Together(names, cases)
            metafunc.parametrize(group.names, [[group] * len(group.names)], ids=["together"])


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    group = next((item for item in given.values() if isinstance(item, Together)), None)
    if group is None:
        return None
    errors, skipped = [], []
    for case in group.cases:
        try:
            pyfuncitem.obj(**{**given, **dict(zip(group.names, case, strict=True))})
        except pytest.skip.Exception as skip:
            skipped.append(skip)
        except Exception as error:  # noqa: BLE001 — raised with the others
            error.add_note(f"in the case {case!r}")
            errors.append(error)
    if errors:
        raise ExceptionGroup(f"{len(errors)} of {len(group.cases)} cases fail", errors)
    if skipped and len(skipped) == len(group.cases):
        raise skipped[0]
    return True


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
