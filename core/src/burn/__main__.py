"""``python -m burn``: the command line."""

from burn.cli import main

main()
