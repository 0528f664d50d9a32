"""What programs in CUDA graphs are made of, most of it on a CPU."""

import contextlib

import numpy as np
import pytest
import torch

import burn
from burn.plugin_api import (
    DeviceId,
    Donation,
    GraphIr,
    OperationIr,
    OutOfRangeError,
    Replay,
    ScalarIr,
    TensorIr,
    float32,
    registry,
    resolve,
)
from burn_torch import programs
from burn_torch.index_checks import CapturedChecks, IndexChecks
from burn_torch.writing import is_unused

CPU = DeviceId(2)
ADAM = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "weight_decay": 0.0, "decoupled": False}


@pytest.fixture
def backend():
    return resolve(registry.entry("torch").load(), CPU).backend


@pytest.fixture
def compiled(backend, monkeypatch):
    """Programs that run their ops at each call, as those on CUDA do at the first."""
    monkeypatch.setattr(torch.cuda, "device", lambda _: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(programs._Recorder, "follow", lambda _: None)
    monkeypatch.setattr(Replay, "_is_known", lambda *_: False)
    return lambda graph: programs._Program(backend, graph, CPU)


def tensor(id, *shape):
    return TensorIr(id, shape, float32)


def may_write(backend, x):
    """The answer for a tensor of burn; an assertion would refer to its primitive, too."""
    return backend.can_write(x.primitive, [])


def test_a_tensor_is_written_where_nothing_else_refers_to_its_memory(backend):
    x = burn.zeros(4, device=burn.Device("torch/cpu"))
    assert may_write(backend, x)
    for make in (
        lambda t: t,
        lambda t: t[1:],
        lambda t: t.detach(),
        lambda t: t.__dlpack__(),
        torch.from_dlpack,
    ):
        other = make(x.primitive)
        assert not may_write(backend, x)
        del other
        assert may_write(backend, x)
    assert not backend.can_write(x.primitive, [x.primitive])
    shared = x.primitive.numpy()
    assert not may_write(backend, x)
    del shared


def test_memory_of_others_and_of_the_inference_mode_is_not_written(backend):
    class Holder:
        tensor = None

    holder = Holder()
    holder.tensor = torch.from_numpy(np.zeros(3, np.float32))
    assert not backend.can_write(holder.tensor, [])
    with torch.inference_mode():
        holder.tensor = torch.zeros(3)
    assert not backend.can_write(holder.tensor, [])


def test_an_item_of_a_list_is_unused_until_something_else_refers_to_it():
    tensors = [torch.zeros(3)]
    assert is_unused(tensors, 0)
    view = tensors[0][1:]
    assert not is_unused(tensors, 0)
    del view
    assert is_unused(tensors, 0)


def test_a_slice_is_assigned_in_place():
    x = burn.zeros(4, device=burn.Device("torch/cpu"))
    address = x.primitive.data_ptr()
    x[1:3] = 5.0
    assert x.primitive.data_ptr() == address
    assert x.tolist() == [0.0, 5.0, 5.0, 0.0]


def adam_program():
    parameter, gradient, first, second = (tensor(number, 3) for number in range(4))
    rate, step = ScalarIr(0, float), ScalarIr(1, int)
    made = tuple(tensor(10 + number, 3) for number in range(3))
    operation = OperationIr(
        "adam_step",
        ((parameter,), (gradient,), (first,), (second,), ()),
        {**ADAM, "learning_rate": rate, "step": step},
        made,
    )
    return GraphIr(
        (parameter, gradient, first, second, rate, step),
        (),
        (operation,),
        made,
        donated=(Donation(0, 0), Donation(2, 1), Donation(3, 2)),
    )


def test_a_step_reads_its_numbers_from_the_device_and_moves_what_is_donated(compiled, backend):
    program = compiled(adam_program())
    given = [torch.tensor([1.0, 2.0, 3.0]), torch.ones(3), torch.zeros(3), torch.zeros(3)]
    plain = [item.clone() for item in given]
    for step, rate in ((1, 0.1), (2, 0.05)):
        expected = backend.adam_step(
            *[[item] for item in plain], [], **ADAM, learning_rate=rate, step=step
        )
        plain = [expected[0], plain[1], *expected[1:]]
        out = program(*given, rate, step)
        assert [item is other for item, other in zip(out, (given[0], *given[2:]), strict=True)]
        for item, other in zip(out, expected, strict=True):
            torch.testing.assert_close(item, other)


def test_a_step_has_the_requirements_of_its_op(compiled):
    program = compiled(adam_program())
    given = [torch.ones(3) for _ in range(4)]
    with pytest.raises(burn.ArgumentError, match="Count steps from 1"):
        program(*given, 0.1, 0)


def test_an_output_keeps_the_values_of_a_donated_input(compiled):
    x, y, z = tensor(0, 3), tensor(1, 3), tensor(2, 3, 1)
    graph = GraphIr(
        (x,),
        (),
        (
            OperationIr("exp", (x,), {}, (y,)),
            OperationIr("reshape", (x,), {"shape": (3, 1)}, (z,)),
        ),
        (y, z),
        donated=(Donation(0, 0),),
    )
    given = torch.tensor([0.0, 1.0, 2.0])
    moved, kept = compiled(graph)(given)
    assert moved is given
    torch.testing.assert_close(moved, torch.exp(torch.tensor([0.0, 1.0, 2.0])))
    assert kept.flatten().tolist() == [0.0, 1.0, 2.0]


def test_programs_with_numbers_that_the_host_computes_with_are_not_captured(compiled):
    x, rate = tensor(0, 3), ScalarIr(0, float)
    lists = ((x,), (tensor(1, 3),), (tensor(2, 3),))
    made = tuple(tensor(10 + number, 3) for number in range(2))
    attributes = {"learning_rate": rate, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.0}
    operation = OperationIr("lion_step", lists, attributes, made)
    graph = GraphIr((*[operand for (operand,) in lists], rate), (), (operation,), made)
    program = compiled(graph)
    assert "one by one" in program.explain()
    assert len(program(*[torch.ones(3) for _ in range(3)], 0.1)) == 2


def test_indices_of_all_launches_since_a_check_are_checked():
    checks = IndexChecks()
    captured = CapturedChecks(checks, torch.device("cpu"))
    indices = torch.tensor([0, 4])
    with captured.collecting():
        for length in (5, 7):
            assert checks.recorded(indices, length).tolist() == [0, 4]
    captured.launched()
    checks.raise_errors()
    captured.bounds[0, 1] = 5  # as the graph does, given such an index
    captured.launched()
    with pytest.raises(OutOfRangeError, match="index 5 is out of range for an axis of length 5"):
        checks.raise_errors()
    checks.raise_errors()
    captured.launched()
    checks.raise_errors()


def test_a_graph_does_not_check_more_calls_than_it_has_memory_for():
    checks = IndexChecks()
    captured = CapturedChecks(checks, torch.device("cpu"))
    with captured.collecting():
        for _ in range(256):
            checks.recorded(torch.tensor([0]), 5)
        with pytest.raises(RuntimeError, match="more than 256 calls"):
            checks.recorded(torch.tensor([0]), 5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty:UserWarning")
@pytest.mark.parametrize("fails", ["capture_begin", "capture_end"])
def test_a_capture_that_fails_leaves_the_stream(monkeypatch, fails):
    method = getattr(torch.cuda.CUDAGraph, fails)

    def failing(graph, *arguments, **options):
        method(graph, *arguments, **options)
        if fails == "capture_begin":
            graph.capture_end()
        failed.append(graph)
        raise RuntimeError("of a test")

    failed = []
    monkeypatch.setattr(torch.cuda.CUDAGraph, fails, failing)
    before = torch.cuda.current_stream()
    x = burn.ones(1000, device="torch/cuda")

    @burn.compile
    def compiled(x):
        for _ in range(8):
            x = burn.cumulative_sum(x, axis=0)
        return x

    expected = compiled(x).tolist()
    for _ in range(3):
        assert compiled(x).tolist() == expected
    assert failed
    assert torch.cuda.current_stream() == before
