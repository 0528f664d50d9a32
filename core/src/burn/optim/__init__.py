"""Optimizers of modules and of other containers of parameters, and what they are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from burn.functions.nn.optimizer import *
from burn.functions.nn.optimizer import __all__ as _STEPS
from burn.lazy_names import modules_of, resolver
from burn.public_calls import exports, has_callers

if TYPE_CHECKING:
    from burn.optim import schedules as schedules
    from burn.optim.accumulation import *
    from burn.optim.adafactor import *
    from burn.optim.adagrad import *
    from burn.optim.adam import *
    from burn.optim.adamw8bit import *
    from burn.optim.adan import *
    from burn.optim.averaging import *
    from burn.optim.clipping import *
    from burn.optim.lamb import *
    from burn.optim.lbfgs import *
    from burn.optim.lion import *
    from burn.optim.loss_scaling import *
    from burn.optim.muon import *
    from burn.optim.optimizer import *
    from burn.optim.sgd import *
    from burn.optim.state import *

_FAMILIES: Final = {
    "accumulation": ("GradientAccumulator",),
    "adafactor": ("Adafactor",),
    "adagrad": ("Adagrad", "RMSprop"),
    "adam": ("Adam", "AdamW"),
    "adamw8bit": ("AdamW8bit",),
    "adan": ("Adan",),
    "averaging": ("ExponentialMovingAverage",),
    "clipping": ("clip_by_global_norm", "clip_by_value"),
    "lamb": ("Lamb",),
    "lbfgs": ("LBFGS",),
    "lion": ("Lion",),
    "loss_scaling": ("LossScaler",),
    "muon": ("Muon",),
    "optimizer": ("Optimizer",),
    "sgd": ("SGD",),
    "state": ("State",),
}
"""The public names of each module of this package, which is imported when one of them is used."""

_MODULE_OF: Final = modules_of(_FAMILIES)

_SUBMODULES: Final = ("schedules",)

has_callers(__name__)
exports(globals())

__all__ = [*_SUBMODULES, *_STEPS, *_MODULE_OF]  # noqa: PLE0604 — names from the table above


if not TYPE_CHECKING:  # a type checker knows the names above, and is to report all others
    __getattr__ = resolver("burn.optim", _MODULE_OF, _SUBMODULES, hints="_hints")


def __dir__() -> list[str]:
    return sorted(__all__)
