"""Everything that a plugin imports from core, in one module: the plugin API.

``API_VERSION`` is its version: a larger minor version adds names, members with defaults and ops
with defaults; a larger major version may change or remove any. What is not here may change at any
time. Users' code needs none of it: that imports ``burn``.

A name is imported when it is first used, so that the module that an entry point names imports
no op and no array library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from burn.aliases import *
    from burn.backend import *
    from burn.compiler import *
    from burn.device_id import *
    from burn.dtype import *
    from burn.errors import *
    from burn.ir import *
    from burn.ir.check import *
    from burn.ir.execution import *
    from burn.ir.host_number import *
    from burn.kernels.c import *
    from burn.kernels.chunks import *
    from burn.kernels.code import *
    from burn.kernels.expressions import *
    from burn.kernels.functions import *
    from burn.kernels.groups import *
    from burn.kernels.layout import *
    from burn.kernels.parts import *
    from burn.kernels.schedule import *
    from burn.kernels.serial import *
    from burn.kernels.steps import *
    from burn.kernels.writer import *
    from burn.locks import *
    from burn.ops import *
    from burn.plugins import *
    from burn.quant_scheme import *
    from burn.shared_kernels import *
    from burn.tensor_data import *

_MODULES: Final = (
    "burn.plugins",
    "burn.errors",
    "burn.locks",
    "burn.compiler",
    "burn.aliases",
    "burn.device_id",
    "burn.dtype",
    "burn.quant_scheme",
    "burn.backend",
    "burn.tensor_data",
    "burn.ops",
    "burn.ir",
    "burn.ir.check",
    "burn.ir.execution",
    "burn.ir.host_number",
    "burn.kernels.code",
    "burn.kernels.writer",
    "burn.kernels.functions",
    "burn.kernels.expressions",
    "burn.kernels.layout",
    "burn.kernels.c",
    "burn.kernels.groups",
    "burn.kernels.chunks",
    "burn.kernels.schedule",
    "burn.kernels.serial",
    "burn.kernels.parts",
    "burn.kernels.steps",
    "burn.shared_kernels",
)
"""Where the names stand, those first that take the least time to import."""


if not TYPE_CHECKING:  # a type checker knows the names above, and is to report all others

    def __getattr__(name: str) -> Any:
        if name == "__all__":  # of a star import
            return __dir__()
        # Python asks every module for names such as __path__: that imports nothing.
        for module_name in () if name.startswith("__") else _MODULES:
            module = importlib.import_module(module_name)
            if name in module.__all__:
                value = globals()[name] = getattr(module, name)
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    modules = [importlib.import_module(name) for name in _MODULES]
    return sorted({name for module in modules for name in module.__all__})
