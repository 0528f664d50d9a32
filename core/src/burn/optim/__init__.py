"""Steps of optimizers, as functions of a parameter, its gradient and the optimizer's state."""

from burn.functions.nn.optimizer import *
from burn.functions.nn.optimizer import __all__


def __dir__() -> list[str]:
    return __all__
