"""Tokens of the text of a graph: a line of it, taken token by token."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn

from burn.errors import GraphError
from burn.ir._forms import INTEGER_BITS, shown

__all__ = ["CONSTANTS", "Line", "unescaped"]

_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r]+)
    | (?P<number>[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<id>[%$@][0-9]+)
    | (?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<source>\#.*)
    | (?P<symbol>\.\.\.|[()\[\],=:+!?-])""",
    re.VERBOSE | re.DOTALL,
)


class Line:
    """The tokens of a line, which are taken one after the other."""

    def __init__(self, line: str) -> None:
        self.tokens = self._tokens(line)
        self.source = ""
        self.kind = self.text = ""
        self.column = 0
        self.next()

    def _tokens(self, line: str) -> Iterator[re.Match[str]]:
        position = 0
        while position < len(line):
            match = _TOKEN.match(line, position)
            if match is None:
                self.column = position + 1
                raise self.unexpected(line[position])
            yield match
            position = match.end()

    def next(self) -> str:
        """Take a token: its text. The one after it is then `kind` and `text`."""
        taken = self.text
        self.kind = self.text = ""
        for match in self.tokens:
            kind = match.lastgroup or ""
            if kind == "source":
                self.source = _source(match[0][1:].strip())
            elif kind != "space":
                self.kind, self.text, self.column = kind, match[0], match.start() + 1
                break
        return taken

    def unexpected(self, text: str) -> GraphError:
        """The error of a token that does not belong here."""
        return GraphError(f"unexpected {shown(text)} in column {self.column}")

    def fail(self) -> NoReturn:
        """Raise the error of the next token."""
        if not self.text:
            raise GraphError("the line ends too early")
        raise self.unexpected(self.text)

    def accept(self, text: str) -> bool:
        """Take a token if it is this one."""
        if self.text != text or self.kind == "string":
            return False
        self.next()
        return True

    def expect(self, text: str) -> None:
        """Take this token."""
        if not self.accept(text):
            self.fail()

    def name(self) -> str:
        """Take a name."""
        if self.kind != "name":
            self.fail()
        return self.next()

    def id(self, sign: str) -> int:
        """Take the number of a tensor, after ``%``, a scalar, after ``$``, or a program, ``@``."""
        if self.kind != "id" or self.text[0] != sign:
            self.fail()
        return _integer(self.next()[1:])

    def integer(self) -> int:
        """Take an integer, with a sign or without."""
        value = self._real()
        if value.__class__ is not int:
            raise GraphError(f"{shown(value)} is no integer")
        return value

    def number(self) -> Any:
        """Take a boolean, an integer, a float or a complex number."""
        if not self.accept("complex"):
            return self._real()
        self.expect("(")
        real = self._real()
        self.expect(",")
        imaginary = self._real()
        self.expect(")")
        if not real.__class__ is imaginary.__class__ is float:
            raise GraphError("the parts of a complex number are floats")
        return complex(real, imaginary)

    def _real(self) -> Any:
        sign = -1 if self.accept("-") else 1
        if self.kind == "name":
            name = self.next()
            if name not in CONSTANTS:
                raise GraphError(f"{shown(name)} is no number")
            value = CONSTANTS[name]
        elif self.kind == "number":
            text = self.next()
            value = _integer(text) if text.isdigit() else float(text)
            if value == math.inf:
                raise GraphError(f"{shown(text)} is too large for a float", hint="Infinity is inf")
        else:
            self.fail()
        return value if sign > 0 else -value

    def items(self, end: str, item: Callable[[], Any]) -> Iterator[Any]:
        """Take what is separated by commas, and the bracket after it."""
        while not self.accept(end):
            yield item()
            if self.text != end:
                self.expect(",")

    def end(self) -> None:
        """Raise unless all tokens have been taken."""
        if self.text:
            self.fail()


CONSTANTS: Final = {"True": True, "False": False, "nan": math.nan, "inf": math.inf}


def _integer(digits: str) -> int:
    # The interpreter needs long for the digits of a large number.
    if len(digits) > INTEGER_BITS or int(digits).bit_length() >= INTEGER_BITS:
        raise GraphError(f"{shown(digits)} has more than {INTEGER_BITS} bits")
    return int(digits)


def _source(text: str) -> str:
    """The source line of a comment, which is a string literal if a line cannot hold it as it is."""
    if not text or text[0] not in "'\"":
        return text
    match = _TOKEN.fullmatch(text)
    if match is None or match.lastgroup != "string":
        raise GraphError(f"{shown(text)} is no string literal")
    return unescaped(text)


_ESCAPE: Final = re.compile(
    r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|([\\'\"ntr])|(.?))", re.DOTALL
)

_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r"}


def unescaped(literal: str) -> str:
    """The string of a literal as `repr` writes it."""

    def character(match: re.Match[str]) -> str:
        digits = match[1] or match[2] or match[3]
        if match[4]:
            return _ESCAPED.get(match[4], match[4])
        if not digits or int(digits, 16) > 0x10FFFF:
            raise GraphError(f"{match[0]!r} is no escape sequence")
        return chr(int(digits, 16))

    return _ESCAPE.sub(character, literal[1:-1])
