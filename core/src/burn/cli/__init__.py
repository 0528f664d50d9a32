"""The command ``burn``: what is installed, and what works.

Only here are click and rich imported, and array libraries only by the commands that need them.
"""

from burn.cli._group import main
from burn.public_calls import has_callers

__all__ = ["main"]

has_callers(__name__)
