"""Neural networks: the functions of their layers and losses, in `burn.nn.functional`."""

from burn.nn import functional

__all__ = ["functional"]


def __dir__() -> list[str]:
    return __all__
