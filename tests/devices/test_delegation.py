"""Objects that find members by ``__getattr__``: `isinstance` misses those since Python 3.12."""

import inspect
import typing

import numpy as np
import pytest

import burn
from burn.plugins import BackendSpec, DeviceInfo
from burn.testing import Subject, find_check
from burn.train import EarlyStopping, fit
from burn_cpu.backend import CpuBackend


class Delegating:
    """An object that hands every access on to another one."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)


@pytest.fixture(autouse=True)
def _as_since_python_3_12(monkeypatch):
    """Protocols look for members without ``__getattr__``."""
    metaclass = type(typing.Protocol)

    def has_members(cls, instance):
        if not getattr(cls, "_is_protocol", False):
            return type.__instancecheck__(cls, instance)
        absent = object()
        names = [name for name in dir(cls) if not name.startswith("_")]
        return issubclass_by_name(type(instance), cls) or all(
            inspect.getattr_static(instance, name, absent) is not absent for name in names
        )

    def issubclass_by_name(one, cls):
        return cls in one.__mro__

    monkeypatch.setattr(metaclass, "__instancecheck__", has_members)


@pytest.mark.parametrize("options", [{"compiles": True}, {"minimal": True}, {}], ids=str)
def test_the_kit_knows_a_backend_behind_its_own_layers(options):
    subject = Subject.of(burn.Device("cpu"), **options)
    find_check(subject, "contract/it is a Backend").body()


def test_a_plugin_may_load_an_object_that_delegates():
    spec = BackendSpec(
        "delegating",
        load=lambda: Delegating(CpuBackend()),
        probe=lambda: [DeviceInfo("one", 0, hardware="none")],
        device_types=("one",),
    )
    with burn.registered(spec):
        assert burn.ones(2, device="delegating").tolist() == [1.0, 1.0]


def test_a_part_of_a_checkpoint_and_of_early_stopping_may_delegate(tmp_path):
    model = burn.nn.Linear(2, 1)
    wrapped = Delegating(model)
    EarlyStopping("loss", restore=wrapped)
    batches = [np.ones((1, 2), np.float32)]
    fit(
        lambda batch: {"loss": 1.0},
        batches,
        epochs=1,
        checkpoints=tmp_path,
        parts={"model": wrapped},
        progress=False,
    )
    assert any(tmp_path.iterdir())
