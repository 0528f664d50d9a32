"""Files of tensors, and checkpoints of training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from burn.lazy_names import modules_of, resolver
from burn.public_calls import has_callers

if TYPE_CHECKING:
    from burn.store.checkpoints import *
    from burn.store.files import *

_FAMILIES: Final = {
    "checkpoints": ("Checkpoint", "Checkpoints"),
    "files": ("load", "load_into", "read_metadata", "save"),
}
"""The public names of each module of this package, which is imported when one of them is used."""

_MODULE_OF: Final = modules_of(_FAMILIES)

has_callers(__name__)

__all__ = [*_MODULE_OF]  # noqa: PLE0604 — names from the table above


if not TYPE_CHECKING:  # a type checker knows the names above, and is to report all others
    __getattr__ = resolver("burn.store", _MODULE_OF)


def __dir__() -> list[str]:
    return sorted(__all__)
