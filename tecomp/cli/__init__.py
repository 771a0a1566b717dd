"""The command `tecomp`."""

from tecomp.cli.command import main as main
