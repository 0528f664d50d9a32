"""What the tests of this plugin share."""

import contextlib

import pytest

import burn


@pytest.fixture(scope="session")
def everything(request):
    """Whether ``--all`` was given; else a test tries a representative part."""
    return request.config.getoption("all")


@pytest.fixture(scope="session")
def with_kernels():
    """A context in which the device uses the kernels for CPUs, or those for GPUs."""
    from burn_opencl.launcher import Launcher

    @contextlib.contextmanager
    def use(kind, *, units=None, **settings):
        device = burn.Device("opencl")
        own = device.backend.for_device(device.id)
        runtime = own.launcher.runtime
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(runtime, "is_cpu", kind == "cpu")
            patch.setattr(runtime, "units", units or runtime.units)
            launcher = Launcher(runtime, own)
            for name, value in settings.items():
                setattr(launcher, name, value)
            patch.setattr(own, "launcher", launcher)
            yield device

    return use
