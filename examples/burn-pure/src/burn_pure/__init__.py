"""Plain Python as a backend: the declaration of the plugin, which imports nothing heavy."""

from __future__ import annotations

from burn.plugin_api import Backend, BackendSpec, DeviceInfo, DType, DTypeUsage, Kind, hookimpl

USAGE = {dtype: DTypeUsage.GENERAL for dtype in DType.members() if dtype.kind in Kind.REAL}
"""What the device does with each dtype. Complex dtypes need more than the required ops."""


@hookimpl
def burn_backends() -> list[BackendSpec]:
    """The backend ``pure``."""
    return [
        BackendSpec(
            name="pure",
            load=_load,
            probe=_probe,
            device_types=("cpu",),
            api_version=(0, 1),
            fork_safe=("cpu",),
        )
    ]


def _load() -> Backend:
    from burn_pure.backend import PureBackend

    return PureBackend()


def _probe() -> list[DeviceInfo]:
    return [DeviceInfo("cpu", 0, hardware="the Python interpreter", usage=USAGE)]
