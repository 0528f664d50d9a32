"""Devices of a router, for a while."""

import burn
from burn.plugins import BackendSpec, DeviceInfo
from burn.router import RouterBackend


def routed(name, channel, count=1):
    """A context in which devices of a router with a channel have a name."""
    spec = BackendSpec(
        name,
        load=lambda: RouterBackend(channel),
        probe=lambda: [DeviceInfo("unit", index, name) for index in range(count)],
        device_types=("unit",),
    )
    return burn.registered(spec)
