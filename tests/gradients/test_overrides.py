"""Methods of backends that were written for another definition of their op."""

import logging
import re
from pathlib import Path

import numpy as np
import pytest

import burn
import burn.plugin_api
from burn.errors import UnsupportedOpError
from burn.ops import REGISTRY
from burn.ops.overrides import difference_of, misfits
from burn.plugins import API_VERSION, BackendSpec, DeviceInfo
from burn.plugins.api_changes import API_CHANGES, changes_since
from burn.testing import SUITES, MockBackend, MockDevice, Subject
from burn.testing.subject import Call


class EarlierBackend(MockBackend):
    """Methods as plugin API 0.1 had them, and one with a parameter that no call gives."""

    def __init__(self):
        super().__init__("earlier", [MockDevice("unit")])
        self.calls = []

    def adam_step(  # of one parameter, before the operands were lists
        self,
        parameter,
        gradient,
        first_moment,
        second_moment,
        *,
        step,
        learning_rate,
        beta1=0.9,
        beta2=0.999,
        epsilon=1e-8,
        weight_decay=0.0,
    ):
        raise AssertionError("adam_step has other operands now")

    def sgd_step(self, parameter, gradient, velocity, *, learning_rate, momentum=0.0):
        raise AssertionError("sgd_step has other attributes now")

    def linear(self, x, weight, bias):  # before there was `transposed`
        self.calls.append("linear")
        found = self.ops.matmul(x, weight)
        return found if bias is None else self.ops.add(found, bias)

    def square(self, x, *, workspace):
        raise AssertionError("nothing gives a workspace")

    def var(self, x, axes, *, keepdims=False, correction=0.0):
        raise AssertionError("var has one operand")

    def softplus(self, x, *, beta):  # without the default of `beta`
        self.calls.append("softplus")
        return self.ops.decomposed("softplus", x, beta=beta)


SPEC = BackendSpec(
    name="earlier",
    load=EarlierBackend,
    probe=lambda: [DeviceInfo("unit", 0, "an earlier one")],
    device_types=("unit",),
)


@pytest.fixture
def device():
    with burn.registered(SPEC):
        yield burn.Device("earlier")


def test_a_method_with_operands_of_an_earlier_api_is_left_out(device):
    parameter = burn.asarray([1.0, 2.0], device=device)
    host = burn.asarray([1.0, 2.0], device="cpu")
    zeros, zeros_host = burn.zeros_like(parameter), burn.zeros_like(host)
    options = {"step": 1, "learning_rate": 0.1}
    found, *_ = burn.optim.adam_step(parameter, parameter, zeros, zeros, **options)
    expected, *_ = burn.optim.adam_step(host, host, zeros_host, zeros_host, **options)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6)
    found, _ = burn.optim.sgd_step(parameter, parameter, None, learning_rate=0.1)
    np.testing.assert_allclose(found.numpy(), [0.9, 1.8], rtol=1e-6)
    assert device.ops.origin(REGISTRY["adam_step"]) == "derived"


def test_a_method_with_a_parameter_that_no_call_gives_is_left_out(device):
    x = burn.asarray([1.0, 3.0], device=device)
    assert burn.square(x).tolist() == [1.0, 9.0]
    assert burn.var(x).item() == 1.0


def test_a_method_without_an_attribute_runs_while_that_has_its_default(device):
    ops = device.ops
    backend = ops.backend
    x = burn.asarray([[1.0, 2.0]], device=device).primitive
    weight = burn.asarray([[1.0, 0.0], [3.0, 1.0]], device=device).primitive
    found = [
        ops.linear(x, weight, None),
        ops.linear(x, weight, None, transposed=False),
        ops.linear(x, weight, None, transposed=True),
    ]
    values = [backend.to_data(item).array.tolist() for item in found]
    assert values == [[[7.0, 2.0]], [[7.0, 2.0]], [[1.0, 5.0]]]
    assert backend.calls == ["linear"] * 2


def test_a_method_without_the_default_of_an_attribute_gets_it(device):
    x = burn.asarray([0.0], device=device).primitive
    value = device.ops.backend.to_data(device.ops.softplus(x)).array
    np.testing.assert_allclose(value, np.log(2.0), rtol=1e-6)
    assert device.ops.backend.calls == ["softplus"]


def test_a_required_method_that_takes_other_operands_is_named():
    class Unfit(MockBackend):
        def add(self, x1):
            return x1

        def sum(self, x, *, axis, dtype):
            return self.ops.decomposed("mean", x, axis=axis, dtype=dtype)

    spec = BackendSpec(
        "unfit",
        lambda: Unfit("unfit", [MockDevice("unit")]),
        lambda: [DeviceInfo("unit", 0, "unit")],
        ("unit",),
    )
    with burn.registered(spec):
        x = burn.ones(2, device="unfit")
        with pytest.raises(UnsupportedOpError, match="'add' of Unfit takes 1 of the 2 operands"):
            x + x
        with pytest.raises(UnsupportedOpError, match="'sum' of Unfit does not take 'keepdims'"):
            burn.sum(x, keepdims=True)


def test_what_does_not_fit_is_said_once_when_the_backend_is_loaded(caplog):
    with burn.registered(SPEC), caplog.at_level(logging.WARNING, logger="burn"):
        device = burn.Device("earlier")
        (burn.ones(2, device=device) + 1.0).tolist()
        burn.ones(2, device=device)
    (record,) = caplog.records
    text = record.getMessage()
    assert "Written for plugin API 0.1" in text
    assert "adam_step takes 4 of the 5 operands parameters, gradients" in text
    assert "square requires 'workspace', which no call gives" in text
    assert "linear takes" not in text
    assert "lists of parameters" in text
    assert "burn.plugin_api" in text


def test_only_what_certainly_fails_is_a_misfit():
    takes_all = lambda *operands, **attributes: None  # noqa: E731 — a signature to look at
    assert difference_of(REGISTRY["adam_step"], takes_all) is None
    assert difference_of(REGISTRY["add"], np.add) is None
    assert difference_of(REGISTRY["sum"], lambda x, axis, keepdims=False, dtype=None: x) is None
    assert difference_of(REGISTRY["arange"], lambda start, step, length, dtype, device: 0) is None
    assert difference_of(REGISTRY["arange"], lambda start, step, length, dtype: 0).problem


def test_no_method_of_an_installed_backend_is_a_misfit():
    for device in burn.Device.enumerate():
        assert misfits(device.ops.backend) == {}


@pytest.mark.parametrize(
    ("returned", "found"),
    [
        (lambda x: ([x, x], []), "returned lists"),
        (lambda x: (x,), "returned 1 objects"),
        (lambda x: x, "returned one object"),
    ],
)
def test_the_kit_says_that_outputs_which_are_lists_are_flat(returned, found):
    arrays = [np.ones(2)] * 2
    call = Call(REGISTRY["sgd_step"], (arrays, arrays, []), (arrays, arrays, []), {})
    with pytest.raises(AssertionError, match=rf"sgd_step {found}: it returns a flat tuple of 2 .*"):
        call.outputs(returned(np.ones(2)))
    assert len(call.outputs((arrays[0], arrays[1]))) == 2


def test_the_kit_names_the_methods_that_are_left_out(device):
    checks = SUITES["contract"].checks(Subject(device.backend, device.id), [])
    (check,) = [check for check in checks if "methods take the operands" in check.name]
    result = check.run()
    assert result.status.value == "failed"
    assert "sgd_step does not take 'dampening'" in result.message


def test_the_page_about_versions_has_every_change_and_every_name_in_it_exists():
    page = (Path(__file__).parents[2] / "docs" / "authors" / "versioning.md").read_text(
        encoding="utf-8"
    )
    known = {*REGISTRY, *dir(burn.plugin_api), *dir(burn.plugin_api.Backend)}
    for change in API_CHANGES:
        version = ".".join(map(str, change.version))
        assert f"| {version} | {change.what} |" in page
        assert set(re.findall(r"`(\w+)`", change.what)) <= known
    assert API_CHANGES[-1].version == API_VERSION
    assert changes_since(API_VERSION) == ""
