"""CPU seconds of each test, as pytest's option ``--costs`` prints them."""

import os
from collections import Counter

import pytest

SHOWN = 40
"""Files, and tests, that are printed."""


class Costs:
    """Notes what each test costs, with the processes that it starts and waits for.

    Workers of xdist send it with their reports, and at their end what they took to start.
    """

    def __init__(self):
        self.last = 0.0
        self.start_up = 0.0
        self.tests = Counter()

    def pytest_collection_finish(self):
        self.last = self.start_up = cpu_seconds()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item):
        now = cpu_seconds()
        item.user_properties = [("cpu", now - self.last)]
        self.last = now

    def pytest_runtest_logreport(self, report):
        self.tests[report.nodeid] += dict(report.user_properties).get("cpu", 0.0)

    def pytest_sessionfinish(self, session):
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["start_up"] = self.start_up

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        self.start_up += getattr(node, "workeroutput", {}).get("start_up", 0.0)

    def pytest_terminal_summary(self, terminalreporter):
        files, functions = Counter(), Counter()
        for name, seconds in self.tests.items():
            files[name.partition("::")[0]] += seconds
            functions[name.partition("[")[0]] += seconds
        write = terminalreporter.write_line
        terminalreporter.section("costs in seconds of CPU")
        write(f"{sum(files.values()):7.1f} {len(self.tests)} tests")
        write(f"{self.start_up:7.1f} imports and collection")
        for what in files, functions, self.tests:
            write("")
            for name, seconds in what.most_common(SHOWN):
                write(f"{seconds:7.2f} {name}")


def cpu_seconds():
    """What this process has used, and those that it has waited for."""
    return sum(os.times()[:4])
