"""Random numbers, the same on every backend for one seed."""

from burn.functions.random import *
from burn.functions.random import __all__


def __dir__() -> list[str]:
    return __all__
