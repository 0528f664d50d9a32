"""Datasets, and loaders that make batches of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from burn.lazy_names import modules_of, resolver
from burn.public_calls import has_callers

if TYPE_CHECKING:
    from burn.data.collating import *
    from burn.data.datasets import *
    from burn.data.loader import *
    from burn.data.randomness import *
    from burn.data.splitting import *

_FAMILIES: Final = {
    "collating": ("collate",),
    "datasets": ("Arrays", "Concatenated", "Mapped", "Subset", "Windows"),
    "loader": ("DataLoader",),
    "randomness": ("rng",),
    "splitting": ("split",),
}
"""The public names of each module of this package, which is imported when one of them is used."""

_MODULE_OF: Final = modules_of(_FAMILIES)

has_callers(__name__)

__all__ = [*_MODULE_OF]  # noqa: PLE0604 — names from the table above


if not TYPE_CHECKING:  # a type checker knows the names above, and is to report all others
    __getattr__ = resolver("burn.data", _MODULE_OF)


def __dir__() -> list[str]:
    return sorted(__all__)
