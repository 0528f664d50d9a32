"""The group of all commands, which prints errors of burn on one line."""

from __future__ import annotations

import contextlib
import faulthandler
import sys
from typing import Any

import click

import burn
from burn.cli._output import close_stdout, printable
from burn.cli.check import check
from burn.cli.devices import devices
from burn.cli.info import info
from burn.cli.new_plugin import new_plugin
from burn.cli.ops import ops
from burn.cli.plugins import plugins
from burn.errors import BurnError

__all__ = ["main"]


class _Group(click.Group):
    """A group whose commands report burn's errors on one line, with exit status 1."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by its name: burn's own, else one that a plugin brings."""
        return super().get_command(ctx, cmd_name) or _of_plugins().get(cmd_name)

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the program."""
        if not faulthandler.is_enabled():  # a plugin that crashes the process is named
            with contextlib.suppress(OSError, RuntimeError, ValueError):  # without standard error
                faulthandler.enable()
        try:
            return super().main(*args, **options)
        finally:
            if options.get("standalone_mode", True):
                close_stdout()

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except BurnError as error:
            raise click.ClickException(printable(" ".join(str(error).split()))) from error


def _of_plugins() -> dict[str, click.Command]:
    """The commands that plugins bring, by their names."""
    from burn.plugins import registry

    with contextlib.redirect_stdout(sys.stderr):  # for what they print meanwhile
        answers = registry.ask("burn_commands")
    return {
        command.name: command
        for _, commands in answers
        for command in (commands if isinstance(commands, list) else [])
        if isinstance(command, click.Command) and command.name
    }


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(burn.__version__, prog_name="burn-core", message="%(prog)s %(version)s")
def main() -> None:
    """One tensor program, any hardware.

    \b
    Examples:
      burn devices              what can be computed on here
      burn devices --check      whether it computes what it should
      burn plugins              what is installed, and what is wrong with it
      burn ops cpu              which ops a backend has of its own
      burn check cuda           whether a backend does all that it should
      burn info                 what to paste into a bug report
      burn new-plugin mychip    a package to write a backend in

    \b
    Exit status:
      0   the command did what it was asked to
      1   an error, which is on standard error, or a check that failed
      2   a command or an option that there is not

    Colours are for terminals. NO_COLOR=1 turns them off, FORCE_COLOR=1 keeps them in a pipe,
    COLUMNS=100 sets the width.

    \b
    Completion of commands, options and backends, by a line in ~/.bashrc, ~/.zshrc
    or ~/.config/fish/config.fish:
      eval "$(_BURN_COMPLETE=bash_source burn)"
      eval "$(_BURN_COMPLETE=zsh_source burn)"
      _BURN_COMPLETE=fish_source burn | source
    """  # noqa: D301 — \b keeps click from filling the paragraph


for command in (devices, plugins, ops, info, check, new_plugin):
    main.add_command(command)
