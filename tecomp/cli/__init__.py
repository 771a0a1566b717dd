"""The command `tecomp`."""

from tecomp.cli.main import main as main
