"""The group of all commands, and what becomes of burn's errors in them."""

from __future__ import annotations

from typing import Any

import click

import burn
from burn.cli.devices import devices
from burn.errors import BurnError

__all__ = ["main"]


class _Group(click.Group):
    """A group whose commands report burn's errors on one line, with exit status 1."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except BurnError as error:
            raise click.ClickException(" ".join(str(error).split())) from error


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(burn.__version__, prog_name="burn-core", message="%(prog)s %(version)s")
def main() -> None:
    """One tensor program, any hardware.

    \b
    Examples:
      burn devices              what can be computed on here
      BURN_DEVICE=cpu burn devices
    """  # noqa: D301 — \b keeps click from filling the paragraph


main.add_command(devices)
