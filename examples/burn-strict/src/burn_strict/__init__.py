"""array-api-strict as a backend: a whole plugin over a namespace of the array API standard."""

from typing import Any

from burn.plugin_api import BackendSpec, DeviceInfo, hookimpl


def load() -> Any:
    """Make the backend; the array library is imported only now."""
    import array_api_strict

    from burn.plugin_api import ArrayBackend

    class StrictBackend(ArrayBackend):
        def __init__(self) -> None:
            super().__init__(array_api_strict)

        def name(self, device: Any) -> str:
            return "strict"

    return StrictBackend()


@hookimpl
def burn_backends() -> list[BackendSpec]:
    """The backend ``strict``, with one device."""
    device = DeviceInfo("cpu", 0, hardware="array-api-strict")
    return [
        BackendSpec(
            "strict",
            load=load,
            probe=lambda: [device],
            device_types=("cpu",),
            api_version=(0, 1),
            fork_safe=("cpu",),
        )
    ]
