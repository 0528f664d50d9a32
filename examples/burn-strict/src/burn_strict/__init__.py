"""array-api-strict as a backend: a whole plugin over a namespace of the array API standard."""

from typing import Any

from burn.plugins import BackendSpec, DeviceInfo, hookimpl


def load() -> Any:
    """Make the backend; only now is the array library imported."""
    import array_api_strict
    import numpy as np

    from burn.backend import ArrayBackend, is_implemented
    from burn.ops import REGISTRY

    class StrictBackend(ArrayBackend):
        def __init__(self) -> None:
            super().__init__(array_api_strict)
            # The library computes with NumPy, which warns of float results from its modules.
            for name in REGISTRY:
                method = getattr(self, name, None)
                if is_implemented(method):
                    setattr(self, name, self.quiet()(method))

        def name(self, device: Any) -> str:
            return "strict"

        def quiet(self) -> Any:
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
