"""The kit itself: it finds deliberate bugs."""

import dataclasses

import numpy as np
import pytest

import burn
from burn.ir import Execution, GraphIr
from burn.ir.codec import decode_graph
from burn.ops import REGISTRY
from burn.plugins import BackendSpec, DeviceInfo, registered
from burn.testing import Selection, Subject, checks_of, find_check, run
from kernel_mutants import IN_GATE, KERNEL_MUTANTS
from mutants import (
    DEVICE_MUTANTS,
    MUTANTS,
    RELAXED,
    SHOWN_BY_FEW,
    WRONG_RULES,
    Mutant,
    TwoDevices,
)
from program_mutants import PROGRAM_MUTANTS

USAGE = burn.Device("cpu").info.usage
ONE = [DeviceInfo("unit", 0, "a mutant", usage=USAGE)]
TWO = [DeviceInfo("unit", index, "a mutant") for index in range(2)]


def first_failure(backend, probe, selection):
    """How the first check ended that the last device of a backend fails, or None."""
    spec = BackendSpec("mutant", lambda: backend, lambda: list(probe), ("unit",))
    with registered(spec):
        subject = Subject.of(burn.Device(f"mutant:{len(probe) - 1}"))
        for check in checks_of(subject, selection):
            result = check.run()
            if result.status.is_wrong:
                return result
    return None


def mutants():
    """Those of kernels are many of few sorts, of which the gate tries a part."""
    for mutant in [*MUTANTS, *SHOWN_BY_FEW, *PROGRAM_MUTANTS]:
        yield pytest.param(mutant, id=mutant.name)
    for number, mutant in enumerate(KERNEL_MUTANTS):
        marks = pytest.mark.exhaustive if number % IN_GATE else ()
        yield pytest.param(mutant, id=f"{mutant.member}: {mutant.name}", marks=marks)


@pytest.mark.parametrize("mutant", list(mutants()))
def test_the_quick_kit_finds_a_bug(mutant):
    where = {"ops": (mutant.member,)}
    if mutant.suite:
        where = {"ops": (mutant.member, ""), "suites": (mutant.suite,)}  # "": about no op
    found = first_failure(mutant.backend(), ONE, Selection(**where, quick=True))
    assert found is not None
    assert found.message
    assert found.script


@pytest.mark.parametrize("mutant", SHOWN_BY_FEW, ids=lambda mutant: mutant.name)
def test_a_quick_run_of_few_shapes_finds_what_few_samples_show(mutant):
    spec = BackendSpec("mutant", mutant.backend, lambda: list(ONE), ("unit",))
    with registered(spec):
        options = {"ops": [mutant.member], "suites": ["values"], "quick": True}
        report = run("mutant", **options, few_shapes=True)
        assert report.failures
        assert len(report.results) < len(run("mutant", **options).results)


def test_free_memory_of_the_process_hides_no_memory_that_is_kept():
    (mutant,) = [item for item in MUTANTS if item.name == "a product keeps its memory"]
    np.ones(30 << 20, np.uint8)  # glibc takes what is smaller than this from its heap from now on
    pieces = [np.ones(1 << 20, np.uint8) for _ in range(200)]
    del pieces[::2]  # so much is free there, between pieces in use
    where = Selection(ops=(mutant.member, ""), suites=(mutant.suite,), quick=True)
    assert "grew" in first_failure(mutant.backend(), ONE, where).message


def test_the_kit_names_the_operands_that_are_kept():
    (mutant,) = [item for item in MUTANTS if item.name == "a product keeps its operands"]
    spec = BackendSpec("mutant", mutant.backend, lambda: list(ONE), ("unit",))
    with registered(spec):
        found = find_check(
            Subject.of(burn.Device("mutant")), "memory/operands are freed with their last name"
        ).run()
    assert "matmul: x and y and x and y are still there" in found.message


@pytest.mark.parametrize("note", ["products and sums", "quotients", "dynamic quantization"])
def test_the_quick_kit_finds_a_program_that_rounds_less_often(note):
    pytest.importorskip("llvmlite")
    spec = BackendSpec("mutant", RELAXED.backend, lambda: list(ONE), ("unit",))
    with registered(spec):
        subject = Subject.of(burn.Device("mutant"))
        chosen = Selection(suites=("rounding",), dtypes=("float32",), quick=True)
        (check,) = [check for check in checks_of(subject, chosen) if check.note == note]
        result = check.run()
        assert result.status.is_wrong
        assert "other bits" in result.message
        subject.backend.rounds_each_operation = False  # it says so
        assert not list(checks_of(subject, chosen))


def test_there_are_a_hundred_bugs_of_every_sort():
    assert len(MUTANTS) + len(KERNEL_MUTANTS) + len(DEVICE_MUTANTS) >= 100
    assert len({mutant.member for mutant in MUTANTS}) >= 30


OF_DEVICES = Selection(suites=("contract", "creation"), quick=True)


def test_the_quick_kit_passes_two_devices():
    assert first_failure(TwoDevices(), TWO, OF_DEVICES) is None


@pytest.mark.parametrize("kind", DEVICE_MUTANTS)
def test_the_quick_kit_finds_a_device_that_is_ignored(kind):
    assert first_failure(kind(), TWO, OF_DEVICES) is not None


@pytest.mark.parametrize("wrong", WRONG_RULES)
def test_the_quick_kit_finds_a_wrong_batching_rule(wrong, monkeypatch):
    op, rule = WRONG_RULES[wrong]
    backend = Mutant("a copy of burn-cpu", "exp", lambda right: right).backend()
    selection = Selection(ops=(op,), suites=("batching",), quick=True)
    assert first_failure(backend, ONE, selection) is None
    monkeypatch.setattr(REGISTRY[op], "batch", rule)
    found = first_failure(backend, ONE, selection)
    assert found.message
    assert found.script


def swapped(data):
    """A program of some bytes whose operations have their first two operands exchanged."""
    graph = decode_graph(data)
    operations = [
        operation._replace(inputs=operation.inputs[::-1]) for operation in graph.operations
    ]
    return dataclasses.replace(graph, operations=tuple(operations))


def negated(execution, inputs, draw=(0, 0)):
    """The outputs of a program with the other sign."""
    return tuple(
        [execution.table.negative(item) for item in run_execution(execution, inputs, draw)]
    )


run_execution = Execution.run


@pytest.mark.parametrize(
    ("owner", "name", "wrong"),
    [(GraphIr, "from_bytes", swapped), (Execution, "run", negated)],
    ids=["bytes", "a run"],
)
def test_the_quick_kit_finds_a_wrong_program(owner, name, wrong, monkeypatch):
    subject = Subject.of(burn.Device("cpu"))
    selection = Selection(ops=("subtract",), suites=("programs",), quick=True)
    assert not [check for check in checks_of(subject, selection) if check.run().status.is_wrong]
    monkeypatch.setattr(owner, name, wrong)
    assert [check for check in checks_of(subject, selection) if check.run().status.is_wrong]
