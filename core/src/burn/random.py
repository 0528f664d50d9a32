"""Random numbers, the same on every backend for one seed."""

from burn.functions import random as _random, sampling as _sampling
from burn.functions.random import *
from burn.functions.sampling import *
from burn.public_calls import exports

__all__ = _random.__all__ + _sampling.__all__

exports(globals())


def __dir__() -> list[str]:
    return __all__
