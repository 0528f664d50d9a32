"""array-api-strict as a backend: a whole plugin over a namespace of the array API standard."""

from typing import Any

from burn.plugins import BackendSpec, DeviceInfo, hookimpl


def load() -> Any:
    """Make the backend; only now is the array library imported."""
    import array_api_strict
    import numpy as np

    from burn.backend import ArrayBackend

    class StrictBackend(ArrayBackend):
        def __init__(self) -> None:
            super().__init__(array_api_strict)

        def name(self, device: Any) -> str:
            return "strict"

        def quiet(self) -> Any:  # the library computes with NumPy
            return np.errstate(all="ignore")

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
