"""Runs of training: metrics, a loop with a log, and curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from burn.lazy_names import modules_of, resolver
from burn.public_calls import has_callers

if TYPE_CHECKING:
    from burn.train.averages import *
    from burn.train.classification import *
    from burn.train.evaluation import *
    from burn.train.fitting import *
    from burn.train.history import *
    from burn.train.metrics import *
    from burn.train.ranking import *
    from burn.train.stopping import *

_FAMILIES: Final[dict[str, tuple[str, ...]]] = {
    "averages": ("Mean", "MeanAbsoluteError", "MeanSquaredError", "Perplexity"),
    "classification": ("Accuracy", "ConfusionMatrix", "FBetaScore", "Precision", "Recall"),
    "evaluation": ("evaluate",),
    "fitting": ("fit",),
    "history": ("History",),
    "metrics": ("Metric",),
    "ranking": ("AUROC",),
    "stopping": ("EarlyStopping",),
}
"""The public names of each module of this package, which is imported when one of them is used."""

_MODULE_OF: Final = modules_of(_FAMILIES)

has_callers(__name__)

__all__ = [*_MODULE_OF]  # noqa: PLE0604 — names from the table above


if not TYPE_CHECKING:  # a type checker knows the names above, and is to report all others
    __getattr__ = resolver("burn.train", _MODULE_OF)


def __dir__() -> list[str]:
    return sorted(__all__)
