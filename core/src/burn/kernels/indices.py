"""Arithmetic of indices as text, and formulas: integers of the numbers that a launch is given."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from burn.kernels.kernel import Extent, Length

__all__ = ["Arithmetic", "Formula", "IndexTexts", "is_constant", "quotient_up"]


class IndexTexts:
    """Arithmetic of indices, which are texts; that of constants is done at once.

    Attributes
    ----------
    quotient_text, remainder_text, minimum_text : str
        How a language spells them for ``{0}`` and ``{1}``, neither of which is negative.
    """

    quotient_text: ClassVar[str]
    remainder_text: ClassVar[str]
    minimum_text: ClassVar[str]

    def index(self, text: str) -> str:
        """What is computed by a text."""
        raise NotImplementedError

    def length(self, length: Length) -> str:
        """A number that each launch is given, as an index."""
        raise NotImplementedError

    def integer(self, value: Extent) -> str:
        """A constant index, or one that each launch is given."""
        return self.length(value) if isinstance(value, Length) else str(value)

    def add(self, a: str, b: str) -> str:
        """The sum of two indices."""
        if "0" in {a, b}:
            return b if a == "0" else a
        return str(int(a) + int(b)) if is_constant(a, b) else self.index(f"{a} + {b}")

    def multiply(self, a: str, b: str) -> str:
        """The product of two indices."""
        if "1" in {a, b}:
            return b if a == "1" else a
        if "0" in {a, b} or is_constant(a, b):
            return str(int(a) * int(b)) if is_constant(a, b) else "0"
        return self.index(f"{a} * {b}")

    def divide(self, a: str, b: str) -> str:
        """The quotient of two indices."""
        if b == "1" or is_constant(a, b):
            return a if b == "1" else str(int(a) // max(int(b), 1))
        return self.index(self.quotient_text.format(a, b))

    def remainder(self, a: str, b: str) -> str:
        """The remainder of two indices."""
        if b == "1" or is_constant(a, b):
            return "0" if b == "1" else str(int(a) % max(int(b), 1))
        return self.index(self.remainder_text.format(a, b))

    def minimum(self, a: str, b: str) -> str:
        """The smaller one of two indices."""
        if a == b or is_constant(a, b):
            return a if a == b else str(min(int(a), int(b)))
        return self.index(self.minimum_text.format(a, b))


class Arithmetic(IndexTexts):
    """Arithmetic in Python, of the numbers ``s`` of a launch.

    A schedule computes its geometry by it as it does indices by a `burn.kernels.writer.Writer`.
    """

    quotient_text = "{0} // {1}"
    remainder_text = "{0} % {1}"
    minimum_text = "min({0}, {1})"

    def index(self, text: str) -> str:
        """An expression."""
        return f"({text})"

    def length(self, length: Length) -> str:
        """A number of the launch."""
        return f"s[{length.number}]"


@dataclass(frozen=True)
class Formula:
    """A number that follows from those that a launch is given.

    Attributes
    ----------
    text : str
        An expression of `Arithmetic`.

    Examples
    --------
    >>> from burn.kernels.indices import Formula
    >>> Formula("-(-s[0] // 256)")((1000,))
    4
    """

    text: str

    @functools.cached_property
    def _function(self) -> Callable[[Sequence[Any]], Any]:
        # The text consists of numbers, operators and subscripts of s.
        function: Callable[[Sequence[Any]], Any] = eval(f"lambda s: {self.text}")  # noqa: S307 — see above
        return function

    def __call__(self, scalars: Sequence[Any]) -> Any:
        """The number at a launch with these scalars; any, where the kernel has no `Length`."""
        return self._function(scalars)


def quotient_up(writer: Any, a: Any, b: int) -> Any:
    """The quotient of an index by a constant, rounded up."""
    return writer.divide(writer.add(a, writer.integer(b - 1)), writer.integer(b))


def is_constant(*indices: str) -> bool:
    """Whether indices are constants."""
    return all(index.lstrip("-").isdigit() for index in indices)
