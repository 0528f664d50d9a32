"""Redaction of a report: it leaves out secrets, user names and home directories."""

from __future__ import annotations

import contextlib
import getpass
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Final

__all__ = ["Scrubber", "is_secret"]

_SECRET_NAME: Final = re.compile(
    r"TOKEN|SECRET|PASSW|CREDENTIAL|COOKIE|PRIVATE|(^|_)(PASS|AUTH|API_?KEY|KEY)($|_)",
    re.IGNORECASE,
)
"""Names of environment variables that hold secrets."""

_SECRET_VALUE: Final = re.compile(
    r"(?=[A-Za-z+=]*[0-9])(?=[0-9+=]*[A-Za-z])[A-Za-z0-9+=]{24,}", re.ASCII
)
"""Letters and digits at a length that only generated keys have."""

_HOME: Final = re.compile(
    r"(?<![\w.-])(?:(?:/[\w.-]+)?/(?:home|Users)/|[A-Z]:[\\/]Users[\\/])[^\s/\\:;,'\"()<>\[\]]+",
    re.IGNORECASE,
)
"""The home directory of any user."""

_URL: Final = re.compile(
    r"([a-z][\w+.-]*://)(?:[^\s/@'\"]*@)?([^\s?'\"]*)(?:\?[^\s'\"]*)?", re.IGNORECASE
)
"""An address; its parts that may be shown are groups."""

_PATH: Final = re.compile(r"\S*[/\\]\S*")

_SHORTEST_SECRET: Final = 6
"""A shorter value, such as ``1``, would be found in every line."""


def is_secret(name: str, value: str) -> bool:
    """Whether an environment variable is better not shown.

    Examples
    --------
    >>> is_secret("BURN_API_TOKEN", "a")
    True
    >>> is_secret("BURN_DEVICE", "cuda:1")
    False
    """
    return bool(_SECRET_NAME.search(name) or _SECRET_VALUE.search(value))


class Scrubber:
    """Redacts a text.

    Home directories become ``~``, names of users in paths ``<user>``; addresses lose what stands
    before an ``@`` and after a ``?``; and what is the value of an environment variable with the
    name of a secret becomes three dots.

    Parameters
    ----------
    environment : dict of str to str
        The environment variables.

    Examples
    --------
    >>> scrub = Scrubber({"HOME": "/data/kim", "USER": "kim", "MY_TOKEN": "tk-123456"})
    >>> scrub("/data/kim/lib.so, /scratch/kim/x, /home/lee/y: tk-123456")
    '~/lib.so, /scratch/<user>/x, ~/y: ...'
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        secrets = {
            value
            for name, value in environment.items()
            if _SECRET_NAME.search(name) and len(value) >= _SHORTEST_SECRET
        }
        homes = set(_homes(environment))
        users = {*_users(environment), *(PurePath(home).name for home in homes)} - {""}
        self._replacements = [
            *((re.compile(re.escape(secret)), "...") for secret in _longest_first(secrets)),
            *((_whole(home), "~") for home in _longest_first(homes)),
            (_HOME, "~"),
            (_URL, r"\1\2"),
        ]
        self._users = [_whole(user) for user in _longest_first(users)]

    def __call__(self, text: str) -> str:
        """The redacted text."""
        for pattern, replacement in self._replacements:
            text = pattern.sub(replacement, text)
        return _PATH.sub(self._without_users, text)

    def _without_users(self, path: re.Match[str]) -> str:
        shown = path.group()
        for user in self._users:
            shown = user.sub("<user>", shown)
        return shown


def _whole(text: str) -> re.Pattern[str]:
    """The text where it is not part of a longer name."""
    return re.compile(rf"(?<![A-Za-z0-9]){re.escape(text)}(?![A-Za-z0-9])")


def _longest_first(texts: set[str]) -> list[str]:
    return sorted(texts, key=lambda text: (-len(text), text))


def _homes(environment: Mapping[str, str]) -> Iterator[str]:
    found = [environment.get("HOME", ""), environment.get("USERPROFILE", ""), _account()[1]]
    for home in found:
        for spelling in (home, os.path.realpath(home) if home else ""):
            stripped = spelling.rstrip("/\\")
            if stripped:  # not the root directory
                yield stripped


def _users(environment: Mapping[str, str]) -> Iterator[str]:
    for name in ("USER", "LOGNAME", "LNAME", "USERNAME"):
        yield environment.get(name, "")
    yield _account()[0]
    with contextlib.suppress(ImportError, KeyError, OSError):  # an account without a name
        yield getpass.getuser()


def _account() -> tuple[str, str]:
    """Name and home directory of the account, as far as the system knows it."""
    try:
        import pwd

        entry = pwd.getpwuid(os.getuid())
    except (ImportError, KeyError):  # not POSIX; an account that is not listed
        return "", ""
    return entry.pw_name, entry.pw_dir
