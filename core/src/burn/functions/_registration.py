"""Libraries that must be told of burn's tensors learn of them: einops, imported before or after."""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

__all__ = ["register_with_libraries"]

_EINOPS: Final = "einops"


@functools.cache
def register_with_libraries() -> None:
    """Register burn's tensors with libraries that need it, now or when they are imported.

    Functions that make tensors call this: 20 ns.
    """
    if _EINOPS in sys.modules:
        _register_with_einops()
    else:
        sys.meta_path.insert(0, _AfterEinops())


def _register_with_einops() -> None:
    try:
        importlib.import_module("burn.interop")
    except Exception as error:  # noqa: BLE001 — another version of einops must not break burn
        logging.getLogger("burn").debug("einops does not learn of burn: %s", error)


class _AfterEinops(MetaPathFinder):
    """Finds einops as others do, and has it learn of burn when its own code has run."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module specification of einops that another finder has; None for other modules."""
        if name != _EINOPS:
            return None
        others = [finder for finder in sys.meta_path if finder is not self]
        specs = (other.find_spec(name, path, target) for other in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                run(module)
                _register_with_einops()

            with contextlib.suppress(AttributeError):  # a loader of a kind that no one changes
                spec.loader.exec_module = exec_module  # type: ignore[method-assign]  # of this one
        return spec
