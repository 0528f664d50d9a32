"""Linear algebra: the extension of the array API standard, and what is like it."""

from burn.functions.linalg import *
from burn.functions.linalg import __all__


def __dir__() -> list[str]:
    return __all__
