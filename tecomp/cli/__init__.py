"""The command-line interface `tecomp`."""

from tecomp.cli.main import main as main
