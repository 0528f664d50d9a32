"""What makes ops of generated kernels, for the tables of devices; it imports the compiler late."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from burn.device_id import DeviceId
    from burn.ops import Op, OpTable

__all__ = ["hand_down_generator"]


def hand_down_generator() -> None:
    """Let op tables generate ops: they are below the compiler, and know it from here alone."""
    from burn.ops import OpTable

    if OpTable.generator is None:
        OpTable.generator = _Generator()


class _Generator:
    """The `Generator` of all tables; see `burn.compiler.eager`."""

    def runner(self, backend: Any, device: DeviceId) -> Any | None:
        """The backend's own, or one of its dialect."""
        own = getattr(backend, "kernel_runner", None)
        runner = None if own is None else own(device)
        if runner is None and getattr(backend, "dialect", None) is not None:
            from burn.compiler.eager import DialectRunner

            return DialectRunner(backend)
        return runner

    def covers(self, definition: Op) -> bool:
        """Whether an op may be kernels."""
        from burn.compiler.eager import is_generated

        return is_generated(definition)

    def method(
        self, table: OpTable, definition: Op, fallback: Callable[..., Any]
    ) -> Callable[..., Any]:
        """The callable of an op."""
        from burn.compiler.eager import eager_method

        runner: Any = table.runner  # there is one, as the table knows
        return eager_method(definition, table, runner, fallback)
