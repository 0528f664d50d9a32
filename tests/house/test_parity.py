"""The parity map says of each operation and function of the original what it is here.

The examples of ``docs/parity_examples.csv`` are what the original documents: its calls on these
operands, written with the functions of this library, and the values that its documentation, its
tests or the formula of the function give. The device that they run on records the ops.
"""

import ast
import csv
import inspect
import math
import re
from pathlib import Path
from typing import ClassVar

import pytest

import burn
from burn.backend import AutodiffBackend, Backend
from burn.ops import REGISTRY, OpTable
from burn.plugins import BackendSpec, DeviceInfo
from burn.quantization import QParams, Quantized, QuantScheme, QuantStore
from burn.tensor_data import TensorData
from burn.testing.reference_backend import NumpyBackend

DOCS = Path(__file__).parents[2] / "docs"
with (DOCS / "parity.csv").open(encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file))
with (DOCS / "parity_examples.csv").open(encoding="utf-8", newline="") as file:
    EXAMPLES = {
        row["name"]: row for row in csv.DictReader(file, delimiter="|", quoting=csv.QUOTE_NONE)
    }

PLANNED = {"distributed operations"}
"""Capabilities that are still to come, and bring counterparts of their own."""

OWNERS = {
    "AutodiffBackend": AutodiffBackend,
    "Backend": Backend,
    "Device": burn.Device,
    "Module": burn.nn.Module,
    "Optimizer": burn.optim.Optimizer,
    "Quantized": Quantized,
    "Tensor": burn.Tensor,
    "TensorData": TensorData,
    "Transaction": burn.Transaction,
    "burn": burn,
}

OPERATORS = {"__getitem__": "[", "__setitem__": "] = "}


def label(row):
    return f"{row['group']}.{row['name']}"


def bare(row):
    """The name without the kind of the elements."""
    return re.sub("^(float|int|bool|q)_", "", row["name"])


def example_of(row):
    """The example of a row: rows for floats, integers, booleans and quantized tensors share one."""
    names = (label(row), row["name"], bare(row))
    return next((EXAMPLES[name] for name in names if name in EXAMPLES), None)


def find(counterpart):
    """The object that a counterpart names."""
    if counterpart.startswith("op:"):
        return REGISTRY[counterpart[3:]]
    owner, *path = counterpart.split(".")
    found = OWNERS[owner]
    for name in path:
        found = getattr(found, name)
    return found


class RecordingTable(OpTable):
    """A table of ops that notes which ones are called."""

    called: ClassVar[set[str]] = set()

    def __getattr__(self, name):
        run = super().__getattr__(name)

        def recorded(*operands, **attributes):
            self.called.add(name)
            return run(*operands, **attributes)

        vars(self)[name] = recorded
        return recorded


class RecordingBackend(NumpyBackend):
    """NumPy, and a note of which ops were called."""

    def name(self, device):
        return "recording"

    def device_count(self, type_id):
        return 1 if type_id == 0 else 0

    def sync(self, device):
        pass

    def for_device(self, device):
        return RecordingTable(self, device)


@pytest.fixture(scope="module")
def recording():
    """A device that notes which ops were called."""
    spec = BackendSpec(
        name="recording",
        device_types=("cpu",),
        probe=lambda: [DeviceInfo(type="cpu", index=0, hardware="this test")],
        load=RecordingBackend,
    )
    with burn.registered(spec):  # for these tests alone
        yield burn.Device("recording")


def tracked(x):
    return burn.Tensor.from_inner(x).require_grad()


def gradient(function, x):
    """The gradient of the sum of what a function gives."""
    x = tracked(x)
    return x.grad(function(x).sum().backward())


def counted(module):
    """A module whose parameters hold 0.1, 0.2, 0.3 and so on."""
    return module.map(lambda _, w: burn.reshape(burn.arange(1, w.size + 1) / 10.0, w.shape)).eval()


def stepped(optimizer):
    """What two steps make of a parameter whose gradients are those of the sum of its squares."""
    x = burn.asarray([1.0, 2.0])
    state = optimizer.init(x)
    for _ in range(2):
        x, state = optimizer.update(x, 2.0 * x, state)
    return x


def operands(device):
    """What the examples compute with."""
    with burn.default_device(device):
        return {
            "burn": burn,
            "device": device,
            "backend": device.backend,
            "autodiff": device.autodiff().backend,
            "quantized": Quantized(device.backend),
            "ops": device.ops,
            "tracked": tracked,
            "gradient": gradient,
            "counted": counted,
            "stepped": stepped,
            "x": burn.asarray([[1.0, -2.0, 3.0], [5.0, 9.0, 6.0]]),
            "y": burn.asarray([[2.0, 3.0, 4.0], [1.0, 2.0, 3.0]]),
            "s": burn.asarray([[12.0, -2.0, 3.0], [5.0, 3.0, 6.0]]),
            "v": burn.asarray([1.0, 2.0, 3.0, 4.0]),
            "u": burn.asarray([0.0, -1.0, 2.0]),
            "h": burn.asarray([0.0, -0.5, 1.0]),
            "r": burn.asarray([-1.5, 0.5, 1.5, 2.5]),
            "n": burn.asarray([[1, 2, 3], [4, 5, 6], [7, 8, 9]]),
            "i": burn.asarray([4, 9, 2]),
            "j": burn.asarray([7, 12, 13]),
            "m": burn.asarray([[True, False, True], [False, True, False]]),
            "special": burn.asarray([math.nan, math.inf, -math.inf, 1.0]),
            "signal": burn.asarray([[[1.0, 2.0, 1.0, 4.0]]]),
            "edge": burn.asarray([[[1.0, -1.0]]]),
            "image": burn.asarray([[[[0.0, 1.0], [2.0, 3.0]]]]),
            "cube": burn.asarray([[[[[0.0, 1.0], [2.0, 3.0]]]]]),
        }


FLOATS = ("x", "y", "s", "v", "u", "h", "r")
"""The operands of floats."""

STEP = 0.0625
"""The scale of quantized operands, whose numbers are multiples of it."""


def quantized_operands(call, names):
    """What an example of quantized tensors computes with: the numbers are the same."""
    scheme = QuantScheme(store=QuantStore.NATIVE)
    used = [name for name in FLOATS if re.search(rf"\b{name}\b", call)]
    assert used, f"{call} has no operand of floats"
    found = {}
    for name in used:
        x = names[name]
        step = STEP if float(burn.max_abs(x)) < 127 * STEP else 2 * STEP
        found[name] = x.quantize(scheme, QParams(burn.asarray([step])))
        assert found[name].tolist() == x.tolist()
    return names | found


def plain(value):
    """A result as numbers in lists."""
    if isinstance(value, TensorData):
        value = value.array
    if isinstance(value, (list, tuple)):
        return type(value)(map(plain, value)) if type(value) is list else tuple(map(plain, value))
    return value.tolist() if hasattr(value, "tolist") else value


def agrees(found, expected, tolerance=2e-6):
    """Whether numbers agree, to the digits that the examples have, and are of one kind."""
    if isinstance(expected, (list, tuple)):
        return (
            isinstance(found, (list, tuple))
            and len(found) == len(expected)
            and all(agrees(*pair, tolerance) for pair in zip(found, expected, strict=True))
        )
    if isinstance(expected, float):
        close = math.isclose(found, expected, rel_tol=tolerance, abs_tol=tolerance)
        return type(found) is float and close
    return type(found) is type(expected) and found == expected


def run(example, device, *, quantizes=False):
    """What the call of an example gives."""
    names = operands(device)
    if quantizes or "quantized." in example["call"]:
        with burn.default_device(device):
            names = quantized_operands(example["call"], names)
    *statements, expression = example["call"].split("; ")
    options = burn.set_print_options()
    try:
        with burn.default_device(device):
            for statement in statements:
                exec(statement, names)  # noqa: S102 — of a file beside this one
            return plain(eval(expression, names))  # noqa: S307 — of a file beside this one
    finally:
        burn.set_print_options(**vars(options))


def test_every_row_of_the_original_is_there():
    names = [(row["source"], row["group"], row["name"]) for row in ROWS]
    assert len(set(names)) == len(names)
    assert sum(row["source"] == "burn_ops" for row in ROWS) == 469
    assert sum(row["source"] == "burn_tensor_api" for row in ROWS) == 399
    assert {row["source"] for row in ROWS} == {
        *("burn_core", "burn_nn", "burn_ops", "burn_optim", "burn_tensor_api", "burn_tensor_data")
    }


@pytest.mark.together("counterpart", sorted({row["counterpart"] for row in ROWS} - {""}))
def test_a_counterpart_exists(counterpart):
    found = find(counterpart)
    assert callable(found) or inspect.isdatadescriptor(found) or hasattr(found, "infer")


@pytest.mark.parametrize(
    ("status", "has_counterpart", "has_note"),
    [
        ("same", True, False),
        ("another name", True, False),
        ("differs", True, True),
        ("planned", False, True),
        ("absent", False, True),
        ("not needed", False, True),
    ],
)
def test_a_row_says_what_its_status_promises(status, has_counterpart, has_note):
    for row in ROWS:
        if row["status"] == status:
            assert bool(row["counterpart"]) is has_counterpart, row
            assert bool(row["note"]) is has_note, row


def test_a_row_has_one_of_six_statuses():
    statuses = {"same", "another name", "differs", "planned", "absent", "not needed"}
    assert {row["status"] for row in ROWS} == statuses


def test_the_same_name_is_the_same_name():
    for row in ROWS:
        last = re.split("[.:]", row["counterpart"])[-1]
        if row["status"] in ("same", "another name"):
            assert (last in (row["name"], bare(row))) is (row["status"] == "same"), row


def test_what_is_planned_names_a_capability():
    assert {row["note"] for row in ROWS if row["status"] == "planned"} == PLANNED


def test_every_example_belongs_to_a_row():
    used = [example_of(row) for row in ROWS]
    assert [name for name, example in EXAMPLES.items() if example not in used] == []


@pytest.mark.together("name", EXAMPLES)
def test_an_example_gives_what_the_original_documents(name, recording):
    example = EXAMPLES[name]
    expected = ast.literal_eval(example["gives"])
    found = run(example, recording)
    assert agrees(found, expected), f"{example['call']} gives {found}"


QUANTIZED_AGAIN = {"q_abs", "q_cat", "q_max_abs", "q_max_abs_dim"}
"""What gives tensors quantized again, whose codes cannot be those of the operands."""

HALF_STEP = 9 / 127.5 / 2
"""How far that moves numbers in [-9, 9]."""

OF_QUANTIZED = [row for row in ROWS if row["group"] == "QTensorOps" and example_of(row)]


@pytest.mark.together("row", OF_QUANTIZED)
def test_an_example_gives_the_same_with_quantized_operands(row, recording):
    example = example_of(row)
    found = run(example, recording, quantizes=True)
    expected = ast.literal_eval(example["gives"])
    tolerance = HALF_STEP if row["name"] in QUANTIZED_AGAIN else 2e-6
    assert agrees(found, expected, tolerance), f"{example['call']} gives {found}"


@pytest.mark.together("row", [row for row in ROWS if row["status"] in ("same", "another name")])
def test_the_example_of_a_row_runs_its_counterpart(row, recording):
    example = example_of(row)
    assert example is not None, "a row that claims to be the same has no example"
    counterpart = row["counterpart"]
    if counterpart.startswith("op:"):
        RecordingTable.called.clear()
        run(example, recording, quantizes=row["group"] == "QTensorOps")
        assert counterpart[3:] in RecordingTable.called
    elif counterpart.startswith("burn."):
        assert re.search(rf"{re.escape(counterpart)}\b", example["call"])
    else:
        name = counterpart.split(".")[-1]
        assert OPERATORS.get(name, f".{name}") in example["call"]
