"""burn.profile and BURN_LOG_OPS: each op is seen once, and nothing of it stays."""

import gc
import io
import json
import os
import re
import threading
import types
from pathlib import Path

import numpy as np
import pytest

import burn
import burn.nn.functional as F
from burn.devices import forget_plans
from burn.functions.common import dispatch
from burn.ops import REGISTRY, OpTable, observing, resolve
from burn.ops.op_log import duration_text
from burn.ops.table import specialized
from burn.profiling.summary import cost_of
from burn.testing import MockDevice, assert_close, mock_backend

CPU = burn.Device("cpu")
DEVICES = burn.Device.enumerate()


@pytest.fixture(autouse=True)
def nothing_stays():
    """After each test no table and no plan has a callable that reports."""
    yield
    assert not observing.is_observing()
    assert wrapped() == []


def is_wrapper(one):
    return isinstance(one, types.FunctionType) and one.__module__ == observing.__name__


def wrapped():
    """What reports to observers: ops and backends of tables, and plans of calls."""
    found = []
    for table in [obj for obj in gc.get_objects() if issubclass(type(obj), OpTable)]:
        found += [(table, name) for name, item in vars(table).items() if is_wrapper(item)]
        if type(vars(table).get("backend")).__module__ == observing.__name__:
            found.append((table, "backend"))
    for device in [*DEVICES, CPU.autodiff()]:
        for tensor_type in device.types.values():
            plans = tensor_type.calls.items()
            found += [(device, name) for name, plan in plans if is_wrapper(plan[0])]
    return found


def calls(rows):
    return {row.name: row.calls for row in rows}


def names(profile):
    return [event.name for event in profile.events]


# What is seen.


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_each_op_of_a_program_is_counted_once(device):
    x = burn.asarray([[1.0, 2.0], [3.0, 4.0]], dtype="float32", device=device)
    x + x  # planned before: the plan is made anew
    with burn.profile(show=False) as profile:
        for _ in range(3):
            y = burn.exp(x @ x + x)
        total = float(y.sum())
    assert calls(profile.by_op()) == {"matmul": 3, "add": 3, "exp": 3, "sum": 1, "to_data": 1}
    assert calls(profile.by_device()) == {device.name: 11}
    assert total == pytest.approx(float(burn.exp(x @ x + x).sum()))
    add = next(event for event in profile.events if event.name == "add")
    assert add.describe() == "add(float32[2, 2], float32[2, 2])"
    assert [str(meta) for meta in add.outputs] == ["float32[2, 2]"]
    assert 0 < add.duration <= add.end - add.start


def test_plans_of_calls_with_numbers_attributes_and_several_outputs_are_seen():
    x = burn.asarray([3, 1, 2], device=CPU)
    with burn.profile(show=False) as profile:
        x + 1
        2.5 * x
        burn.sort(x, descending=True)
        burn.concat([x, x])
    described = [event.describe() for event in profile.events]
    assert described[0] == "add(int64[3], 1)"
    assert "multiply(2.5, float32[3])" in described
    assert any(text.startswith("sort(int64[3], axis=0, descending=True") for text in described)
    assert "concat([int64[3], int64[3]], axis=0)" in described


def test_an_op_that_is_made_of_others_counts_once_and_has_parts():
    table = resolve(burn.testing.NumpyBackend(), burn.DeviceId(0))
    assert table.origin(REGISTRY["softmax"]) == "derived"
    x = table.full(shape=(2, 3), fill_value=1.0, dtype=burn.float32)
    with burn.profile(show=False) as profile:
        table.softmax(x, axis=1)
    assert names(profile) == ["softmax"]
    (softmax,) = profile.events
    assert [part.name for part in softmax.parts] == ["max", "subtract", "exp", "sum", "divide"]
    assert {part.line for part in softmax.parts} == {softmax.line}
    for part in softmax.parts:
        assert softmax.start <= part.start <= part.end <= softmax.end
    inside = sum(part.duration for part in softmax.parts)
    assert inside <= softmax.duration < softmax.end - softmax.start


@pytest.mark.parametrize("device", [CPU.autodiff(), CPU.autodiff().gradient_checkpointing()])
def test_the_ops_of_gradients_are_seen_on_the_device_below(device):
    x = burn.asarray([1.0, 2.0], device=device).require_grad()
    with burn.profile(show=False) as profile:
        loss = (x * x).sum()
        gradients = loss.backward()
    assert_close(x.grad(gradients), [2.0, 4.0])
    assert names(profile)[:2] == ["multiply", "sum"]
    assert names(profile).count("multiply") == 3
    assert calls(profile.by_device()) == {"cpu:0": len(profile.events)}


def test_transforms_are_seen():
    x = burn.asarray([[1.0, 2.0], [3.0, 4.0]], device=CPU)
    with burn.profile(show=False) as profile:
        burn.vmap(lambda row: burn.exp(row).sum())(x)
    assert names(profile) == ["exp", "sum"]


def test_programs_that_were_traced_are_seen():
    x = burn.asarray([1.0, 2.0], device=CPU)
    program = burn.ir.trace(lambda x: burn.exp(x) + x, x)
    program(x)
    for _ in range(2):
        with burn.profile(show=False) as profile:
            program(x)
        assert names(profile) == ["exp", "add"]
        program(x)
    with burn.profile(show=False) as profile:
        burn.ir.trace(lambda x: burn.exp(x) + x, x)
    assert names(profile) == []


def test_writes_in_place_are_seen():
    x = burn.zeros(3, device=CPU)
    with burn.profile(show=False) as profile:
        x[1] = 2.0
    assert x.tolist() == [0.0, 2.0, 0.0]
    assert [name for name in names(profile) if name in {"write_slice", "slice_assign"}] != []


def test_the_line_of_the_program_is_known():
    x = burn.ones(3, device=CPU)
    with burn.profile(show=False) as profile:
        F.gelu(x)
        y = F.gelu(x)
        y + y
    lines = profile.by_line()
    first = test_the_line_of_the_program_is_known.__code__.co_firstlineno + 3
    path = __file__.removeprefix(f"{Path.cwd()}{os.sep}")
    assert sorted(calls(lines).items()) == [(f"{path}:{first + line}", 1) for line in range(3)]


def test_all_threads_are_seen():
    x = burn.ones(3, device=CPU)
    inside, done = threading.Barrier(3), threading.Barrier(3)

    def work():
        x + x
        inside.wait(30)
        for _ in range(100):
            burn.exp(x)
        done.wait(30)
        x + x

    threads = [threading.Thread(target=work, name=f"worker {index}") for index in range(2)]
    for thread in threads:
        thread.start()
    with burn.profile(show=False) as profile:
        inside.wait(30)
        burn.sqrt(x)
        done.wait(30)
        for thread in threads:
            thread.join()
    found = calls(profile.by_op())
    assert (found["exp"], found["sqrt"]) == (200, 1)
    by_thread = {event.thread[1] for event in profile.events if event.name == "exp"}
    assert by_thread == {"worker 0", "worker 1"}


def test_threads_that_resolve_ops_while_profiles_come_and_go_leave_nothing_behind():
    stop = threading.Event()
    x = burn.ones(3, device=CPU)

    def work():
        while not stop.is_set():
            assert_close(burn.exp(x) - burn.exp(x) + x, [1.0, 1.0, 1.0])

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(50):
            with burn.profile(show=False):
                burn.sqrt(x)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_an_op_that_is_resolved_while_the_last_observer_goes_is_not_kept():
    with burn.profile(show=False) as profile:

        class Backend(burn.testing.NumpyBackend):
            def name(self, device):
                observing.stop(profile)  # as another thread may, while the op is wrapped
                return super().name(device)

        table = resolve(Backend(), burn.DeviceId(0))
        assert is_wrapper(table.exp)
        assert "exp" not in vars(table)
        assert not is_wrapper(table.exp)


@pytest.mark.parametrize("call", [burn.exp, lambda x: dispatch.execute("exp", x)])
def test_a_plan_that_is_made_while_plans_are_forgotten_is_not_kept(call, monkeypatch):
    real = CPU.ops.exp

    def specialize(dtype):
        forget_plans()  # as another thread may, at the end of a profile
        return real

    def exp(x):
        return real(x)

    exp.specialize = specialize
    monkeypatch.setitem(vars(CPU.ops), "exp", exp)
    x = burn.ones(3, device=CPU)
    forget_plans()
    call(x)
    assert x.tensor_type.calls == {}


# Transfers and waits.


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_uploads_reads_and_waits_for_shapes_are_round_trips(device):
    with burn.profile(show=False) as profile:
        x = burn.asarray([1.0, 0.0, 2.0, 3.0], dtype="float32", device=device)
        x.tolist()
        burn.nonzero(x)
        burn.Transaction().register(x).register(x).execute()
    rows = {row.name: row for row in profile.round_trips()}
    uploads = [event for event in profile.events if event.name == "from_data"]
    assert [cost_of(event).bytes for event in uploads] == [16]
    reads = [event for event in profile.events if event.kind == "read"]
    assert [cost_of(event).bytes for event in reads] == [16, 32]
    (argwhere,) = [event for event in profile.events if event.name == "argwhere"]
    inside = [part for part in argwhere.walk() if part.kind == "read"]
    assert rows["read"].calls == 2 + len(inside)
    assert ("wait" in rows) == (not inside)
    if not inside:
        assert (rows["wait"].calls, rows["wait"].bytes) == (1, 0)


def test_a_copy_between_devices_of_a_backend_is_seen():
    backend = mock_backend("pair", [MockDevice("unit"), MockDevice("unit")])
    with burn.registered(backend):
        x = burn.ones(4, dtype="float32", device="pair:0")
        with burn.profile(show=False) as profile:
            x.to_device("pair:1")
    moved = [event for event in profile.events if event.kind in {"copy", "read"}]
    assert [(event.device, cost_of(event).bytes) for event in moved] == [("pair:0", 16)]


def test_a_router_sends_ops_and_waits_for_shapes():
    with burn.profile(show=False) as profile:
        x = burn.asarray([1.0, 0.0, 2.0], dtype="float32", device="router/cpu")
        burn.nonzero(x + x)[0].tolist()
    assert names(profile)[:3] == ["from_data", "add", "argwhere"]
    assert calls(profile.by_device()) == {"router/cpu:0": len(profile.events)}
    add = profile.events[1]
    assert [(part.name, part.device) for part in add.parts] == [("add", "cpu:0")]
    (wait,) = [node for event in profile.events for node in event.walk() if node.kind == "wait"]
    assert (wait.name, wait.device) == ("argwhere", "router/cpu:0")
    found = calls(profile.round_trips())
    assert (found["upload"], found["read"], found["wait"]) == (2, 2, 1)


# Sums.


def test_sums_add_up():
    x = burn.ones((8, 16), dtype="float32", device=CPU)
    with burn.profile(show=False) as profile:
        y = x @ x.T
        y + y
        burn.exp(y)
    rows = {row.name: row for row in profile.by_op()}
    matmul, add = rows["matmul"], rows["add"]
    assert (matmul.flops, matmul.bytes) == (2 * 8 * 8 * 16, 4 * (2 * 8 * 16 + 64))
    assert (add.flops, add.bytes) == (64, 4 * 3 * 64)
    assert add.flops_per_second == pytest.approx(add.flops / add.seconds)
    assert add.bytes_per_second == pytest.approx(add.bytes / add.seconds)
    assert sum(row.share for row in rows.values()) == pytest.approx(1.0)
    for rows in (profile.by_op(), profile.by_line(), profile.by_device()):
        assert sum(row.calls for row in rows) == len(profile.events)
        assert [row.seconds for row in rows] == sorted([row.seconds for row in rows], reverse=True)
    inside = sum(row.seconds for row in profile.by_op())
    assert profile.outside == pytest.approx(profile.seconds - inside)
    assert 0 < profile.outside < profile.seconds


def test_every_op_of_the_table_has_a_cost_in_a_profile():
    x = burn.asarray([[2.0, 1.0], [1.0, 3.0]], device=CPU)
    with burn.profile(show=False) as profile:
        burn.linalg.svd(x)
        burn.unique_all(x)
        burn.random.normal((3,), device=CPU)
        burn.fft.fft(x)
        F.conv2d(burn.ones((1, 1, 4, 4), device=CPU), burn.ones((1, 1, 2, 2), device=CPU))
    assert all(row.flops >= 0 and row.bytes >= 0 for row in profile.by_op())
    conv = next(row for row in profile.by_op() if row.name == "conv")
    assert conv.flops == 2 * 9 * 4


# Beginning and end.


def test_nested_profiles_see_their_own_part():
    x = burn.ones(3, device=CPU)
    with burn.profile(show=False) as outer:
        burn.exp(x)
        with burn.profile(show=False) as inner:
            burn.sqrt(x)
        burn.tanh(x)
    assert names(outer) == ["exp", "sqrt", "tanh"]
    assert names(inner) == ["sqrt"]
    burn.exp(x)
    assert len(outer.events) == 3


def test_an_exception_ends_a_profile(capsys):
    x = burn.ones(3, device=CPU)
    seen = []

    def work():
        with burn.profile() as profile:
            seen.append(profile)
            burn.exp(x)
            x + burn.ones(2, device=CPU)

    with pytest.raises(burn.ShapeError, match=r"^add\(float32\[3\], float32\[2\]\)"):
        work()
    assert "exp" in capsys.readouterr().out
    assert names(seen[0]) == ["exp", "full"]


def test_it_decorates_functions(capsys):
    x = burn.ones(3, device=CPU)

    @burn.profile()
    def work():
        return burn.exp(x)

    for _ in range(2):
        work()
        assert "exp  " in capsys.readouterr().out


def test_tables_that_are_made_in_a_profile_are_seen_and_set_free():
    with burn.profile(show=False) as profile:
        table = resolve(burn.testing.NumpyBackend(), burn.DeviceId(0))
        x = table.backend.from_data(burn.TensorData(np.array([1.0, 2.0])), table.device)
        table.exp(x)
        assert is_wrapper(vars(table)["exp"])
    assert names(profile) == ["from_data", "exp"]
    assert not vars(table).keys() & REGISTRY.keys()
    table.exp(x)
    assert names(profile) == ["from_data", "exp"]


def test_what_keeps_an_op_beyond_the_profile_runs_it_without_a_report():
    with burn.profile(show=False) as profile:
        exp = CPU.ops.exp
        special = specialized(exp, burn.float32)
    x = burn.ones(3, device=CPU)
    for function in (exp, special):
        assert_close(burn.Tensor.from_primitive(function(x.primitive), CPU), burn.exp(x).numpy())
    assert names(profile) == []


def test_a_device_is_synchronized_after_each_call_of_the_program(monkeypatch):
    waits = []
    backend = CPU.backend
    monkeypatch.setattr(backend, "sync", waits.append)
    x = burn.ones((2, 2), device=CPU)
    with burn.profile(show=False):
        burn.exp(x)
        burn.eye(2, device=CPU)
    assert waits == [CPU.id, CPU.id]
    with burn.profile(show=False, synchronize=False):
        burn.exp(x)
    assert len(waits) == 2


def test_flags_may_be_of_numpy(capsys):
    with burn.profile(synchronize=np.bool_(False), show=np.bool_(False)) as profile:
        burn.ones(3, device=CPU)
    assert (profile.synchronize, capsys.readouterr().out) == (False, "")


def test_arguments_are_checked(tmp_path):
    with pytest.raises(burn.OperandTypeError, match="synchronize must be True or False"):
        burn.profile(synchronize="yes").__enter__()
    with pytest.raises(FileNotFoundError):
        burn.profile(tmp_path / "missing" / "trace.json").__enter__()


# Output.


def profiled(path=None, **options):
    x = burn.ones((64, 64), dtype="float32", device=CPU)
    with burn.profile(path, **options) as profile:
        for _ in range(2):
            F.gelu(x @ x)
        burn.nonzero(x[0])
    return profile


def test_the_tables_have_ops_lines_devices_and_round_trips(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    profile = profiled()
    text = capsys.readouterr().out
    assert text == f"{profile}\n"
    assert "\x1b" not in text
    blocks = text.split("\n\n")
    assert "calls take" in blocks[0]
    heads = [block.split()[0] for block in blocks[1:]]
    assert heads == ["op", "line", "device", "round"]
    head, rule, *rows = blocks[1].splitlines()
    assert head.split() == ["op", "calls", "time", "share", "bytes", "FLOP", "GB/s", "GFLOP/s"]
    assert set(rule) == {"-"}
    (matmul,) = [row.split() for row in rows if row.startswith("matmul")]
    assert matmul[1] == "2"
    assert matmul[5:9] == ["98.3", "kB", "1.05", "M"]
    assert rows[-1].startswith("total")
    assert rows[-1].split()[1] == str(len(profile.events))
    assert all(line == line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize("width", [40, 60, 80])
def test_the_tables_keep_to_the_width(width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    text = str(profiled(show=False))
    assert max(map(len, text.splitlines())) <= width
    assert "calls" in text
    assert ("GFLOP/s" in text) == (width == 80)


def test_output_without_unicode_has_other_units(monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", out)
    profiled()
    out.flush()
    text = out.buffer.getvalue().decode("ascii")
    assert " us " in text


def test_many_lines_are_summed_up():
    names = {"burn": burn, "x": burn.ones(3, device=CPU)}
    with burn.profile(show=False) as profile:
        for index in range(30):
            exec(compile("burn.exp(x)", f"file{index}.py", "exec"), names)  # noqa: S102 — 30 lines
    text = str(profile)
    assert len(profile.by_line()) == 30
    assert text.count(".py:1") == 19
    assert "11 others" in text


def test_a_profile_without_calls_says_so():
    with burn.profile(show=False) as profile:
        pass
    assert "0 calls" in str(profile)
    assert "\n" not in str(profile)


def test_the_trace_has_nested_slices_in_a_track_for_each_thread_and_device(tmp_path):
    path = tmp_path / "trace.json"
    x = burn.ones((4, 4), dtype="float32", device=CPU)
    with burn.profile(path, show=False) as profile:
        burn.eye(3, device=CPU)
        thread = threading.Thread(target=lambda: burn.exp(x), name="worker")
        thread.start()
        thread.join()
        x @ x
    trace = json.loads(path.read_text(encoding="utf-8"))
    slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    tracks = {
        event["tid"]: event["args"]["name"]
        for event in trace["traceEvents"]
        if event["ph"] == "M" and event["name"] == "thread_name"
    }
    assert sorted(tracks.values()) == ["MainThread, cpu:0", "worker, cpu:0"]
    assert len(slices) == sum(1 for event in profile.events for _ in event.walk())
    assert {tracks[bounds["tid"]] for bounds in slices if bounds["name"] == "exp"} == {
        "worker, cpu:0"
    }
    for bounds in slices:
        assert {type(bounds["ts"]), type(bounds["dur"])} == {float}
        assert min(bounds["ts"], bounds["dur"]) >= 0
    (matmul,) = [bounds for bounds in slices if bounds["name"] == "matmul"]
    assert matmul["args"]["call"] == "matmul(float32[4, 4], float32[4, 4])"
    assert (matmul["args"]["flops"], matmul["args"]["bytes"]) == (128, 192)
    check_nesting([bounds for bounds in slices if tracks[bounds["tid"]].startswith("Main")])
    profile.to_json(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


def check_nesting(slices):
    """Slices of a track lie within each other or apart: viewers draw nothing else."""
    open_until = []
    for bounds in sorted(slices, key=lambda bounds: (bounds["ts"], -bounds["dur"])):
        begin, end = bounds["ts"], bounds["ts"] + bounds["dur"]
        while open_until and open_until[-1] <= begin:
            open_until.pop()
        assert not open_until or end <= open_until[-1] + 1e-3
        open_until.append(end)


# The log.

PROGRAM = """
import burn
x = burn.ones(16, dtype="float32", device="cpu")
x + x
burn.exp(burn.asarray([1.0], device=burn.Device("cpu").autodiff()).require_grad())
"""


def test_a_variable_logs_each_op(run_python):
    result = run_python("-c", PROGRAM, BURN_LOG_OPS="1")
    assert (result.returncode, result.stdout) == (0, "")
    lines = result.stderr.splitlines()
    patterns = [
        r"full\(shape=\(16,\), fill_value=1(\.0)?, dtype=float32\)",
        r"add\(float32\[16\], float32\[16\]\)",
        r"from_data\(float32\[1\]\)",
        r"exp\(float32\[1\]\)",
    ]
    for line, pattern, number in zip(lines, patterns, (3, 4, 5, 5), strict=True):
        full = rf"burn op: {pattern} [\d.]+ (µs|ms|s) on cpu:0 at <string>:{number}"
        assert re.fullmatch(full, line), line


@pytest.mark.parametrize("value", ["", "0"])
def test_without_the_variable_nothing_is_logged(run_python, value):
    result = run_python("-c", PROGRAM, BURN_LOG_OPS=value)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_a_program_that_configures_logging_gets_each_line_once(run_python):
    program = f"import logging; logging.basicConfig(format='own %(message)s')\n{PROGRAM}"
    result = run_python("-c", program, BURN_LOG_OPS="1")
    lines = result.stderr.splitlines()
    assert len(lines) == 4
    assert all(line.startswith("own burn op: ") for line in lines)


def test_a_profile_and_the_log_work_together(run_python):
    program = f"""
import burn
with burn.profile(show=False) as profile:
    exec({PROGRAM!r})
print(len(profile.events))
"""
    result = run_python("-c", program, BURN_LOG_OPS="1")
    assert result.stdout == "4\n"
    assert len(result.stderr.splitlines()) == 4


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0 µs"),
        (40, "0.04 µs"),
        (3_214, "3.21 µs"),
        (999_499, "999 µs"),
        (999_500, "1 ms"),
        (81_234_567, "81.2 ms"),
        (1.5e9, "1.5 s"),
        (1.234e11, "123 s"),
    ],
)
def test_durations_have_three_digits(nanoseconds, text):
    assert duration_text(nanoseconds) == text
