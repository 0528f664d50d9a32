"""Modules of other modules."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from burn.errors import OperandTypeError
from burn.nn._slots import STATE
from burn.nn.module import Module

__all__ = ["Sequential"]


class Sequential(Module):
    """Modules one after another: each gets what the one before it returns.

    Parameters
    ----------
    *modules : Module, callable, or one OrderedDict of them
        Functions such as `burn.nn.functional.relu` are modules without parameters. The path of a
        parameter has the index of its module, or its key: ``0.weight``.

    Raises
    ------
    OperandTypeError
        If one is not callable.

    Examples
    --------
    >>> import burn
    >>> from burn import nn
    >>> net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    >>> net(burn.ones((8, 4))).shape
    (8, 2)
    >>> [name for name, _ in net.named_parameters()]
    ['0.weight', '0.bias', '2.weight', '2.bias']
    """

    def __init__(self, *modules: Any) -> None:
        named = {str(index): module for index, module in enumerate(modules)}
        if len(modules) == 1 and isinstance(modules[0], OrderedDict):
            named = dict(modules[0])
        vars(self).update({name: _checked(module, name) for name, module in named.items()})

    @property
    def _sequence(self) -> list[Any]:
        return [item for name, item in vars(self).items() if name != STATE]

    def forward(self, x: Any) -> Any:
        """The output of the last module, for an input of the first."""
        for module in self._sequence:
            x = module(x)
        return x

    def __len__(self) -> int:
        return len(self._sequence)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._sequence)

    def __getitem__(self, index: int | slice) -> Any:
        """A module by its index; a Sequential of several by a slice."""
        found = self._sequence[index]
        return Sequential(*found) if isinstance(index, slice) else found

    def __setitem__(self, index: int, module: Any) -> None:
        """Put a module instead of the one at an index, under its name."""
        names = [name for name in vars(self) if name != STATE]
        setattr(self, names[index], _checked(module, names[index]))


def _checked(module: Any, name: str) -> Any:
    if not callable(module):
        raise OperandTypeError(
            f"module {name} is an object of type {type(module).__name__}",
            hint="Pass modules one by one: Sequential(*layers)",
            operation="nn.Sequential",
        )
    return module
